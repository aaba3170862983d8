/* persist_machines.c - three machines and a synchroniser, in random interleavings.
 *
 * The synchroniser copies, deletes, delays, reorders and renames files.
 *
 *   - get never returns wrong bytes;
 *   - when everything has arrived, the machines hold the same snapshot, byte for byte;
 *   - no live entry has lost its object, unless a cleanup deleted that very object while another machine named it anew,
 *     the race that is documented as possible.
 *
 * STET_TEST_SEED=N runs one interleaving, and says what happens.
 */

#include "../expect.h"

#include <dirent.h>

#include "../faults.h"
#include "../persist_place.h"
#include "base/map.h"
#include "base/vec.h"

enum { MACHINES = 3, BLOCKS = 3, MODULES = 3 };
static const char *const shared[] = {"entry_snapshots", "objects", "fresh_objects", "pins"};

static uint64_t random_state;
static bool loud;

static uint32_t rnd(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

#define SAY(...)                                                                                                       \
    do {                                                                                                               \
        if (loud)                                                                                                      \
            print_message("# " __VA_ARGS__);                                                                           \
    } while (0)

typedef struct version {
    uint64_t number;
    bool there;
    char *bytes;
    size_t len;
} version;

typedef struct seen {
    uint64_t number;
    bool there;
    uint64_t hash;
    struct stat st; /* of the file here, when it was last the same */
} seen;

typedef struct machine {
    char dir[32], id[32];
    stet_persist *p;
    stet_persist_config config;
    stet_map base; /* name to seen */
    bool dirty;    /* it did something since it was last wholly synchronised */
    uint64_t seen_changes;
} machine;

typedef struct entry {
    char block[8], module[44];
    uint64_t created;
    char bytes[24];
} entry;

static struct {
    machine m[MACHINES];
    stet_map server; /* name to version */
    struct {
        entry *at;
        size_t len, cap;
    } put;
    stet_map deleted; /* object ids that some cleanup deleted */
    uint64_t clock;
    bool content, orphans;
    int uploads;
    uint64_t changes; /* of the server */
} w;

static char *read_bytes(const char *path, size_t *len) {
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *bytes = stet_alloc((size_t)st.st_size + 1);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    bytes[st.st_size] = '\0';
    *len = (size_t)st.st_size;
    close(fd);
    return bytes;
}

static void write_bytes(const char *path, const char *bytes, size_t len) {
    char temp[600];
    snprintf(temp, sizeof temp, "%s.~sync", path);
    unlink(temp);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return; /* the directory is not there yet */
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
    assert_int_equal(rename(temp, path), 0);
}

/* "X.toml" becomes "X (conflicted copy).toml", "X" becomes "X (1)". */
static void decorate(const char *name, char out[400]) {
    const char *dot = strstr(name, ".toml");
    if (dot && !dot[5])
        snprintf(out, 400, "%.*s (conflicted copy).toml", (int)(dot - name), name);
    else
        snprintf(out, 400, "%s (1)", name);
}

static void sync_name(machine *m, const char *name) {
    char path[500];
    snprintf(path, sizeof path, "%s/d/%s", m->dir, name);
    size_t len = 0, name_len = strlen(name);
    stet_slot *slot = stet_map_get(&m->base, name, name_len);
    seen *base = slot ? slot->p : NULL;
    if (base) {
        struct stat st;
        bool there = lstat(path, &st) == 0;
        slot = stet_map_get(&w.server, name, name_len);
        if (there == base->there && slot && ((version *)slot->p)->number == base->number &&
            (!there || (st.st_ino == base->st.st_ino && st.st_mtim.tv_nsec == base->st.st_mtim.tv_nsec &&
                        st.st_size == base->st.st_size)))
            return; /* nothing is new on either side */
    }
    char *bytes = read_bytes(path, &len);
    uint64_t hash = bytes ? stet_map_hash(bytes, len) : 0;
    if (!base) {
        base = stet_alloc_zero(sizeof *base);
        stet_map_put(&m->base, name, name_len, (stet_slot){.p = base});
    }
    slot = stet_map_get(&w.server, name, name_len);
    version *v = slot ? slot->p : NULL;
    if (!v) {
        v = stet_alloc_zero(sizeof *v);
        stet_map_put(&w.server, name, name_len, (stet_slot){.p = v});
    }
    bool changed_here = base->there != (bytes != NULL) || (bytes && base->hash != hash);
    bool changed_there = base->number != v->number;
    bool upload = changed_here && (!changed_there || (bytes && !v->there));
    if (changed_here && changed_there && bytes && v->there && (v->len != len || memcmp(v->bytes, bytes, len) != 0)) {
        /* Two files of one name: one is renamed, and is a new file. */
        char other[400], to[900];
        decorate(name, other);
        snprintf(to, sizeof to, "%s/d/%s", m->dir, other);
        write_bytes(to, bytes, len);
        m->dirty = true;
        SAY("%s: conflict over %s\n", m->dir, name);
    }
    if (upload) {
        stet_free(v->bytes);
        v->bytes = bytes ? stet_strndup(bytes, len) : NULL;
        if (bytes)
            memcpy(v->bytes, bytes, len);
        v->len = len;
        v->there = bytes != NULL;
        v->number++;
        w.changes++;
        w.uploads++;
        SAY("%s: %s goes up%s\n", m->dir, name, bytes ? "" : " as deleted");
    } else if (changed_there) {
        w.uploads++;
        if (v->there) {
            write_bytes(path, v->bytes, v->len);
            if (rnd(40) == 0) { /* it happens that a copy appears */
                char other[400], to[900];
                decorate(name, other);
                snprintf(to, sizeof to, "%s/d/%s", m->dir, other);
                if (strlen(other) < 120) {
                    write_bytes(to, v->bytes, v->len);
                    m->dirty = true;
                }
            }
            SAY("%s: %s comes\n", m->dir, name);
        } else {
            unlink(path);
            SAY("%s: %s is deleted by the synchroniser\n", m->dir, name);
        }
    }
    base->number = v->number;
    base->there = v->there;
    base->hash = v->there ? stet_map_hash(v->bytes, v->len) : 0;
    if (lstat(path, &base->st) != 0)
        memset(&base->st, 0, sizeof base->st);
    stet_free(bytes);
}

/* Names that exist here or on the server, each with a chance of `of` hundred. */
static void sync_some(machine *m, uint32_t of) {
    if (of == 100) {
        if (!m->dirty && m->seen_changes == w.changes)
            return;
        m->dirty = false;
        m->seen_changes = w.changes;
    }
    stet_names names = {0};
    for (size_t s = 0; s < 4; s++) {
        char dir[300];
        snprintf(dir, sizeof dir, "%s/d/%s", m->dir, shared[s]);
        DIR *d = opendir(dir);
        if (!d)
            continue;
        for (struct dirent *e; (e = readdir(d));)
            if (e->d_name[0] != '.' && !strstr(e->d_name, "~sync"))
                *stet_vec_add(&names) = stet_asprintf("%s/%s", shared[s], e->d_name);
        closedir(d);
    }
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&w.server, &i, &key, &len, &slot);) {
        const stet_slot *base = stet_map_get(&m->base, key, len);
        const version *v = slot->p;
        if (!base ? v->there : ((seen *)base->p)->number != v->number || ((seen *)base->p)->there)
            *stet_vec_add(&names) = stet_strndup(key, len);
    }
    for (size_t i = names.len; i > 1; i--) { /* in any order */
        size_t k = rnd((uint32_t)i);
        char *t = names.at[i - 1];
        names.at[i - 1] = names.at[k];
        names.at[k] = t;
    }
    for (size_t i = 0; i < names.len; i++)
        if (rnd(100) < of)
            sync_name(m, names.at[i]);
    stet_names_release(&names);
}

static void reopen(machine *m) {
    stet_persist_close(m->p);
    OK(place_open(m->dir, m->id, &m->config, &m->p, &err));
}

static void do_put(machine *m) {
    m->dirty = true;
    entry *e = stet_vec_add(&w.put);
    snprintf(e->block, sizeof e->block, "b%u", rnd(BLOCKS));
    snprintf(e->module, sizeof e->module, "%c%.42s", 'a' + (int)rnd(MODULES), &M1[1]);
    e->created = ++w.clock;
    snprintf(e->bytes, sizeof e->bytes, "content %u", rnd(6)); /* few, so that entries share objects */
    SAY("%s: put %s %.2s %llu: %s\n", m->dir, e->block, e->module, (unsigned long long)e->created, e->bytes);
    OK(place_put(m->p, e->block, e->module, e->created, e->bytes, strlen(e->bytes), &err));
    if (!place_has(m->p, e->block, e->module, e->created, e->bytes, strlen(e->bytes)))
        SAY("  and its own merge took it away\n");
}

static void do_get(machine *m) {
    if (!w.put.len)
        return;
    const entry *e = &w.put.at[rnd((uint32_t)w.put.len)];
    stet_persist_key k = {.block_id = e->block, .module_hash = e->module};
    stet_persist_entry *got;
    if (stet_persist_get(m->p, &k, STET_PERSIST_LOAD, NULL, &got, NULL) != STET_OK)
        return;
    const entry *which = NULL;
    for (size_t i = 0; i < w.put.len; i++)
        if (w.put.at[i].created == got->key.created_at)
            which = &w.put.at[i];
    assert_non_null(which);
    assert_string_equal(got->contents[0].bytes, which->bytes);
    stet_persist_entry_free(got);
}

static void do_cleanup(machine *m, bool content) {
    m->dirty = true;
    stet_persist_cleaned out;
    stet_persist_cleanup how = {.include_content = content ? STET_PERSIST_YES : STET_PERSIST_NO,
                                .delete_orphan_objects = w.orphans ? STET_PERSIST_YES : STET_PERSIST_NO};
    if (!content)
        how.delete_orphan_objects = STET_PERSIST_NO;
    stet_status status = stet_persist_cleanup_run(m->p, &how, &out, &err);
    SAY("%s: cleanup%s: %s %s; %llu entries, %llu removed, snapshot %.6s\n", m->dir, content ? " with content" : "",
        stet_status_name(status), err.message, (unsigned long long)out.entries_after,
        (unsigned long long)out.entries_removed, out.snapshot);
    if (content && status == STET_DENIED) {
        stet_error_clear(&err); /* refused: something is not here yet */
        stet_persist_cleaned_release(&out);
        return;
    }
    OK(status);
    for (size_t i = 0; i < stet_value_count(out.objects); i++) {
        stet_value id = stet_value_get(stet_value_at(out.objects, i), "id");
        stet_map_put(&w.deleted, stet_value_as_string(&id, NULL), STET_PERSIST_HASH, (stet_slot){.n = 1});
    }
    stet_persist_cleaned_release(&out);
}

static void start(uint64_t seed) {
    memset(&w, 0, sizeof w);
    random_state = seed * 2654435761u + 12345;
    rnd(2);
    uint32_t mode = rnd(4);
    w.content = mode >= 1;
    w.orphans = mode == 3;
    w.clock = T0;
    for (int i = 0; i < MACHINES; i++) {
        machine *m = &w.m[i];
        snprintf(m->dir, sizeof m->dir, "m%d", i);
        snprintf(m->id, sizeof m->id, "m%d", i);
        mkdir(m->dir, 0777);
        m->config = place_config();
        m->config.max_entries_in_log = rnd(3) ? 3 : -1;
        m->config.strategy.max_entries_per_block = 4;
        m->config.strategy.max_entries_per_module = 5;
        m->config.trash_days = 0;
        m->config.object_id_mode = mode == 1 ? STET_PERSIST_EXECUTION_KEY_QUALIFIED : STET_PERSIST_DEDUPLICATION;
        m->config.use_fresh_object_statuses = mode != 1;
        reopen(m);
        m->dirty = true;
        OK(place_put(m->p, "b0", M1, ++w.clock, "content 0", 9, &err)); /* makes the directories */
        *stet_vec_add(&w.put) = (entry){.block = "b0", .module = M1, .created = w.clock, .bytes = "content 0"};
    }
}

static char *snapshot_bytes(machine *m, int *count) {
    char dir[64];
    snprintf(dir, sizeof dir, "%s/d/entry_snapshots", m->dir);
    DIR *d = opendir(dir);
    char *bytes = NULL;
    *count = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        ++*count;
        char path[400];
        size_t len;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        stet_free(bytes);
        bytes = read_bytes(path, &len);
    }
    if (d)
        closedir(d);
    return bytes;
}

static bool converged(void) {
    char *bytes[MACHINES];
    bool same = true;
    for (int i = 0; i < MACHINES; i++) {
        int count;
        bytes[i] = snapshot_bytes(&w.m[i], &count);
        same = same && count == 1 && bytes[i] && (i == 0 || (bytes[0] && !strcmp(bytes[0], bytes[i])));
    }
    for (int i = 0; i < MACHINES; i++)
        stet_free(bytes[i]);
    return same;
}

static bool has_objects(void *ctx, const stet_persist_entry *e) {
    machine *m = ctx;
    const stet_persist_content *c = &e->contents[0];
    if (!stet_persist_has_object(m->p, c->id, c->size, true)) {
        /* Only what a cleanup deleted, and only where objects are shared. */
        if (!w.content || m->config.object_id_mode == STET_PERSIST_EXECUTION_KEY_QUALIFIED ||
            !stet_map_get(&w.deleted, c->id, STET_PERSIST_HASH))
            fail_msg("%s: entry %s %llu has lost its object %s", m->dir, e->key.block_id,
                     (unsigned long long)e->key.created_at, c->id);
    }
    return true;
}

static void end(void) {
    for (int i = 0; i < MACHINES; i++) {
        machine *m = &w.m[i];
        stet_persist_close(m->p);
        OK(stet_file_remove_tree(m->dir, &err));
        const void *key;
        size_t len;
        stet_slot *slot;
        for (size_t k = 0; stet_map_next(&m->base, &k, &key, &len, &slot);)
            stet_free(slot->p);
        stet_map_release(&m->base);
    }
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t k = 0; stet_map_next(&w.server, &k, &key, &len, &slot);) {
        stet_free(((version *)slot->p)->bytes);
        stet_free(slot->p);
    }
    stet_map_release(&w.server);
    stet_map_release(&w.deleted);
    stet_vec_release(&w.put);
}

static void interleave(uint64_t seed) {
    start(seed);
    int steps = 12 + (int)rnd(14);
    for (int i = 0; i < steps; i++) {
        machine *m = &w.m[rnd(MACHINES)];
        uint32_t what = rnd(100);
        if (what < 30)
            do_put(m);
        else if (what < 40)
            do_get(m);
        else if (what < 55)
            do_cleanup(m, w.content && rnd(2));
        else if (what < 58)
            reopen(m);
        else
            sync_some(m, 20 + rnd(80));
    }
    /* Let everything arrive. */
    int round = 0;
    for (; round < 12; round++) {
        int moved = 0;
        do {
            w.uploads = 0;
            for (int i = 0; i < MACHINES; i++)
                sync_some(&w.m[i], 100);
            moved += w.uploads;
        } while (w.uploads);
        if (!moved && converged())
            break;
        for (int i = 0; i < MACHINES; i++)
            do_cleanup(&w.m[i], false);
    }
    if (round == 12)
        fail_msg("seed %llu: the machines do not agree", (unsigned long long)seed);
    for (int i = 0; i < MACHINES; i++)
        OK(stet_persist_each(w.m[i].p, NULL, has_objects, &w.m[i], &err));
    end();
}

static void interleavings(void **state) {
    (void)state;
    const char *one = getenv("STET_TEST_SEED");
    if (one) {
        loud = true;
        interleave(strtoull(one, NULL, 10));
        return;
    }
    uint64_t n = getenv("STET_TEST_SHORT") ? 300 : getenv("STET_TEST_LONG") ? 200000 : 10000;
    for (uint64_t seed = 1; seed <= n; seed++)
        interleave(seed);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(interleavings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
