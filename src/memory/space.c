/* space.c - opening a space, what the handle knows of it, names and branches. */
#include "memory/internal.h"
#include "memory/observe_internal.h"
#include "memory/record.h"
#include "os/sys.h"

#define CATCH_UP_MAX 10000 /* commits by others that are read one by one; if there are more, the cache is dropped */

int64_t stet_space_key(int64_t branch, int64_t doc) {
    return (branch << 40) + doc;
}

stet_status stet_space_enter(stet_space *s, bool *begun, stet_error *err) {
    *begun = false;
    if (stet_db_in_transaction(s->db))
        return STET_OK;
    stet_status st = stet_db_begin_read(s->db, err);
    *begun = st == STET_OK;
    return st;
}

stet_status stet_space_leave(stet_space *s, bool begun, stet_status st, stet_error *err) {
    stet_status stuck = STET_OK;
    if (!begun)
        stuck = st == STET_OK ? stet_db_status(s->db, err) : st;
    else if (st == STET_OK)
        stuck = stet_db_commit(s->db, err);
    else
        stet_db_rollback(s->db);
    return st != STET_OK ? st : stuck;
}

/* Empties the map only; waiting names stay. */
static void empty_names(stet_space *s) {
    stet_map_clear(&s->names);
    s->names_through = 0;
    s->names_missed = s->names_try = 0;
}

static void empty_named(stet_space *s) {
    stet_map_clear(&s->named);
    stet_arena_clear(&s->named_arena);
}

void stet_space_forget_names(stet_space *s) {
    empty_names(s);
    stet_vec_clear(&s->names_new);
    stet_arena_clear(&s->names_arena);
    s->names_next = 0;
    s->names_wait = false;
    empty_named(s);
    stet_observe_forget_piece(s);
}

void stet_space_forget_branches(stet_space *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->branches, &i, &key, &len, &slot);)
        free(slot->p);
    stet_map_clear(&s->branches);
    stet_map_clear(&s->branch_names);
}

static void see_commits(stet_space *s) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits WHERE seq > ?");
    stet_bind_int(q, 1, s->known);
    while (stet_step(q)) {
        size_t len;
        const char *changes;
        bool sound = stet_commit_sound(q, &changes, &len);
        int64_t branch = stet_column_int(q, STET_COMMIT_BRANCH);
        stet_record r;
        stet_record_rev rev;
        stet_record_begin(&r, changes, len);
        while (sound && stet_record_next(&r, &rev))
            stet_cache_old(s, stet_space_key(branch, rev.doc));
        if (!sound || r.damaged) { /* damaged: trust nothing that is in memory */
            stet_reset(q);
            stet_cache_clear(s);
            return;
        }
    }
}

void stet_space_catch_up(stet_space *s) {
    int64_t version = stet_db_data_version(s->db);
    if (version == s->data_version)
        return;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_HEAD " FROM commits ORDER BY seq DESC LIMIT 1");
    bool any = stet_step(q), sound = !any || stet_column_sound(q, STET_COMMIT_SEQ, STET_COMMIT_SUM);
    int64_t seq = stet_column_int(q, STET_COMMIT_SEQ);
    stet_reset(q);
    if (!sound && !s->care) /* counting must not continue from a number that is not verified */
        stet_space_damaged(s, 0, "commit %lld, the newest, is damaged", (long long)seq);
    if (stet_db_failed(s->db))
        return;
    stet_space_forget_branches(s);
    int64_t gone = stet_observe_meta(s, "names_gone", 0);
    if (gone != s->names_gone) { /* a name may come back with another number */
        s->names_gone = gone;
        stet_space_forget_names(s);
    }
    if (seq < s->known || seq - s->known > CATCH_UP_MAX) {
        stet_cache_clear(s); /* there were many commits, or an older copy of the file was restored */
        stet_space_forget_names(s);
    } else if (seq > s->known && s->data_version != -1) { /* a handle that was just opened holds nothing yet */
        see_commits(s);
    }
    if (stet_db_failed(s->db))
        return;
    s->known = seq;
    s->data_version = version;
    s->names_epoch++;
}

stet_status stet_space_refresh(stet_space *s, stet_error *err) {
    if (stet_db_in_transaction(s->db)) {
        stet_space_catch_up(s);
        return stet_db_status(s->db, err);
    }
    if (stet_db_data_version(s->db) == s->data_version)
        return stet_db_status(s->db, err);
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_space_catch_up(s);
    return stet_space_leave(s, begun, STET_OK, err);
}

static stet_status read_uuid(stet_space *s, stet_error *err) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT value FROM space_meta WHERE name = 'uuid'");
    if (stet_step(q)) {
        size_t len;
        const char *text = stet_column_text(q, 0, &len);
        if (len == 36)
            memcpy(s->uuid, text, 37);
    }
    stet_reset(q);
    stet_status st = stet_db_status(s->db, err);
    if (st == STET_OK && !s->uuid[0])
        st = stet_fail(err, STET_CORRUPT, "%s: no UUID", s->path);
    return st;
}

stet_status stet_space_open_path(const char *path, const char *name, unsigned flags, stet_space **out,
                                 stet_error *err) {
    stet_space *s = stet_alloc_zero(sizeof *s);
    s->name = stet_strdup(name);
    s->path = stet_strdup(path);
    s->read_only = (flags & STET_SPACE_READ_ONLY) != 0;
    s->care = (flags & STET_SPACE_CARE) != 0;
    s->cache_max = (size_t)32 << 20;
    s->text = (stet_buf)STET_BUF(0);
    s->data_version = -1;
    stet_db_opts o = {.kind = "space",
                      .migrations = stet_space_migrations,
                      .migration_count = stet_space_migration_count,
                      .read_only = s->read_only,
                      .must_exist = s->read_only || (flags & STET_SPACE_MUST_EXIST)};
    stet_status st = stet_db_open(path, &o, &s->db, err);
    struct stat file;
    if (st == STET_OK && stet_sys_stat(path, &file) == 0) {
        s->device = (uint64_t)file.st_dev;
        s->inode = (uint64_t)file.st_ino;
    }
    if (st == STET_OK)
        st = read_uuid(s, err);
    if (st == STET_OK)
        st = stet_space_refresh(s, err);
    if (st != STET_OK) {
        stet_space_close(s);
        return st;
    }
    *out = s;
    return STET_OK;
}

void stet_space_close(stet_space *s) {
    if (!s)
        return;
    stet_error err = STET_ERROR_INIT;
    if (s->db && stet_observe_sync(s, &err) != STET_OK)
        stet_error_clear(&err); /* batched observations are lost: their actions run again */
    stet_batch_drop(s);
    if (s->db)
        stet_observe_save_stood(s);
    stet_observe_release(s);
    stet_cache_clear(s);
    stet_map_release(&s->cache);
    stet_space_forget_branches(s);
    stet_map_release(&s->branches);
    stet_map_release(&s->branch_names);
    stet_map_release(&s->names);
    stet_map_release(&s->names_fit);
    stet_vec_release(&s->names_new);
    stet_arena_release(&s->names_arena);
    stet_map_release(&s->named);
    stet_arena_release(&s->named_arena);
    stet_buf_release(&s->text);
    stet_changes_release(&s->leaves);
    stet_db_close(s->db);
    free(s->name);
    free(s->path);
    free(s->root);
    free(s);
}

const char *stet_space_name(const stet_space *s) {
    return s ? s->name : NULL;
}

const char *stet_space_uuid(const stet_space *s) {
    return s ? s->uuid : NULL;
}

bool stet_space_replaced(const stet_space *s) {
    struct stat st;
    return s->inode &&
           (stet_sys_stat(s->path, &st) != 0 || (uint64_t)st.st_ino != s->inode || (uint64_t)st.st_dev != s->device);
}

const char *stet_space_path(const stet_space *s) {
    return s->path;
}

const char *stet_space_root(const stet_space *s) {
    return s->root;
}

bool stet_space_read_only(const stet_space *s) {
    return s->read_only;
}

stet_db *stet_space_db(stet_space *s) {
    return s->db;
}

int64_t stet_space_known(const stet_space *s) {
    return s->known;
}

stet_status stet_space_seq(stet_space *s, int64_t *seq, stet_error *err) {
    if (!s || !seq)
        return stet_fail_null(err);
    stet_status st = stet_space_refresh(s, err);
    if (st == STET_OK)
        *seq = s->known;
    return st;
}

void stet_space_set_cache(stet_space *s, size_t bytes) {
    if (!s)
        return;
    s->cache_max = bytes;
    stet_cache_shrink(s);
}

#define NAME_KEY (2 * STET_ID_MAX + 2)

static size_t name_key(const stet_docname *name, char out[NAME_KEY]) {
    const char *scope = name->scope ? name->scope : "";
    size_t id_len = strlen(name->id), scope_len = strlen(scope);
    assert(id_len <= STET_ID_MAX && scope_len <= STET_ID_MAX);
    memcpy(out, name->id, id_len + 1);
    memcpy(out + id_len + 1, scope, scope_len);
    return id_len + 1 + scope_len;
}

static void remember_name(stet_space *s, const char *key, size_t len, uint64_t doc) {
    if (stet_map_len(&s->names) >= STET_NAMES_MAX) {
        if (s->names_new.len) { /* no row has them yet */
            stet_space_write_names(s);
            s->names_wait = true;
        }
        empty_names(s);
    }
    stet_map_put(&s->names, key, len, (stet_slot){.n = doc});
}

#define ABSENT ((uint64_t)1 << 63)

/* Loads the names above names_through into the map. From then on, until others commit, a name that is not in the map
 * does not exist, and a new name needs no query. */
static void load_names(stet_space *s) {
    uint64_t epoch = s->names_epoch;
    if (s->names_through == 0)
        s->names_sum = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT doc, id, scope, written, sum FROM document WHERE doc > ?");
    stet_bind_int(q, 1, s->names_through);
    while (stet_step(q)) {
        size_t id_len, scope_len;
        char key[NAME_KEY];
        bool sound = stet_column_sound(q, 0, 4);
        const char *id = stet_column_text(q, 1, &id_len), *scope = stet_column_text(q, 2, &scope_len);
        int64_t doc = stet_column_int(q, 0);
        if (!sound || id_len > STET_ID_MAX || scope_len > STET_ID_MAX || doc <= s->names_through ||
            stet_map_len(&s->names) >= STET_NAMES_MAX) { /* damaged, or too many */
            stet_reset(q);
            s->names_through = 0;
            if (!sound)
                stet_space_damaged(s, 0, "the name of document number %lld is damaged", (long long)doc);
            return;
        }
        memcpy(key, id, id_len);
        key[id_len] = 0;
        memcpy(key + id_len + 1, scope, scope_len);
        stet_map_put(&s->names, key, id_len + 1 + scope_len, (stet_slot){.n = (uint64_t)doc});
        s->names_through = doc;
        s->names_sum = stet_digest_add(s->names_sum, 1, stet_name_sum(doc, id, id_len, scope, scope_len));
    }
    /* If a name is missing, or others have just committed, names are looked up one by one. */
    if (!stet_db_failed(s->db) && s->names_sum == stet_observe_meta(s, STET_DIGEST_NAMES, -1))
        s->names_whole = epoch;
    else
        s->names_through = 0;
}

/* Is it certain that a name which is not in the map did not exist when the handle last looked? Loading all names costs
 * as much as a number of queries, so it is done after that many were in vain. */
static bool names_are_whole(stet_space *s) {
    enum { FIRST_TRY = 16, LOOKS = 8 };
    if (s->names_through) {
        if (s->names_whole != s->names_epoch)
            load_names(s);
        return s->names_through && s->names_whole == s->names_epoch;
    }
    s->names_try = s->names_try ? s->names_try : FIRST_TRY;
    if (++s->names_missed < s->names_try)
        return false;
    s->names_try *= 2;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT max(doc) FROM document");
    int64_t most = stet_step(q) ? stet_column_int(q, 0) : 0;
    stet_reset(q);
    if (most <= 0 || most > STET_NAMES_MAX / 2 || most > (int64_t)s->names_missed * LOOKS)
        return false;
    load_names(s);
    return s->names_through && s->names_whole == s->names_epoch;
}

static int64_t find_doc(stet_space *s, const stet_docname *name, bool as_known) {
    char key[NAME_KEY];
    size_t len = name_key(name, key);
    stet_slot *slot = stet_map_get(&s->names, key, len);
    if (slot && !(slot->n & ABSENT))
        return (int64_t)slot->n;
    if (as_known) {
        if (slot && slot->n == (ABSENT | s->names_epoch))
            return 0;
        int64_t through = s->names_through;
        if (names_are_whole(s)) {
            slot = through == s->names_through ? slot : stet_map_get(&s->names, key, len); /* loaded just now? */
            return slot && !(slot->n & ABSENT) ? (int64_t)slot->n : 0;
        }
    }
    size_t id_len = strlen(name->id);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT doc, id, scope, written, sum FROM document WHERE id = ? AND scope = ?");
    stet_bind_text(q, 1, key, id_len);
    stet_bind_text(q, 2, key + id_len + 1, len - id_len - 1);
    int64_t doc = 0;
    if (stet_step(q)) {
        bool sound = stet_column_sound(q, 0, 4);
        doc = stet_column_int(q, 0);
        stet_reset(q);
        if (!sound) {
            stet_space_damaged(s, 0, "the name of document \"%s\" is damaged", name->id);
            return 0;
        }
    }
    stet_reset(q);
    if (!doc && stet_space_name_gone(s, key, id_len, key + id_len + 1, len - id_len - 1)) {
        stet_space_damaged(s, 0, "the name of a document is damaged or gone: it may be \"%s\"", name->id);
        return 0;
    }
    if (doc || !stet_db_failed(s->db))
        remember_name(s, key, len, doc ? (uint64_t)doc : ABSENT | s->names_epoch);
    return doc;
}

int64_t stet_space_find_doc(stet_space *s, const stet_docname *name) {
    return find_doc(s, name, false);
}

int64_t stet_space_known_doc(stet_space *s, const stet_docname *name) {
    return find_doc(s, name, true);
}

stet_status stet_space_doc(stet_space *s, const stet_docname *name, int64_t *doc, stet_error *err) {
    stet_status st = stet_docname_check(name, err);
    if (st != STET_OK)
        return st;
    *doc = stet_space_find_doc(s, name);
    return stet_db_status(s->db, err);
}

stet_status stet_space_ids(stet_space *s, const char *prefix, stet_arena *arena, const char *const **out, size_t *count,
                           stet_error *err) {
    STET_VEC(const char *) ids = {0};
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    char *end = stet_asprintf("%s\xFF", prefix); /* no id contains this byte */
    stet_stmt *q = stet_db_stmt(s->db, "SELECT id FROM document WHERE id >= ? AND id < ? AND scope = '' ORDER BY id");
    stet_bind_text(q, 1, prefix, strlen(prefix));
    stet_bind_text(q, 2, end, strlen(end));
    while (stet_step(q)) {
        size_t len;
        const char *id = stet_column_text(q, 0, &len);
        *stet_vec_add(&ids) = stet_arena_strndup(arena, id, len);
    }
    st = stet_db_status(s->db, err);
    *out = stet_arena_dup(arena, ids.at ? (void *)ids.at : (void *)"", ids.len * sizeof *ids.at);
    *count = ids.len;
    stet_vec_release(&ids);
    stet_free(end);
    return stet_space_leave(s, begun, st, err);
}

/* Inserts the row of a name at once. 0: a failure sticks. */
static int64_t insert_name(stet_space *s, const char *id, size_t id_len, const char *scope, size_t scope_len) {
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR IGNORE INTO document(doc, id, scope, written, sum) SELECT n, ?1, ?2,"
                                       " 0, row_sum(n, ?1, ?2, 0) FROM (SELECT 1 + coalesce(max(doc), 0) AS n FROM"
                                       " document)");
    stet_bind_text(q, 1, id, id_len);
    stet_bind_text(q, 2, scope, scope_len);
    stet_run(q);
    if (stet_db_failed(s->db))
        return 0;
    if (stet_db_changes(s->db) == 0) /* another process gave it a number since this handle looked */
        return stet_space_find_doc(s, &(stet_docname){id, scope});
    s->names_given++;
    int64_t doc = stet_db_last_id(s->db);
    stet_space_names_changed(s, &(stet_new_name){doc, 0, id, scope, id_len, scope_len}, 1, 1);
    return stet_db_failed(s->db) ? 0 : doc;
}

/* Gives a name a number now; its row is written with the others. */
static int64_t hold_name(stet_space *s, const char *id, size_t id_len, const char *scope, size_t scope_len) {
    assert(s->names_wait);
    if (s->names_next == 0) {
        stet_stmt *q = stet_db_stmt(s->db, "SELECT max(doc) FROM document");
        s->names_next = (stet_step(q) ? stet_column_int(q, 0) : 0) + 1;
        stet_reset(q);
        if (stet_db_failed(s->db)) {
            s->names_next = 0;
            return 0;
        }
    }
    char *copy = stet_arena_alloc(&s->names_arena, id_len + 1 + scope_len + 1);
    memcpy(copy, id, id_len + 1);
    memcpy(copy + id_len + 1, scope, scope_len + 1);
    if (s->names_new.len == 0)
        s->names_held = s->names_next;
    *stet_vec_add(&s->names_new) = (stet_new_name){s->names_next, 0, copy, copy + id_len + 1, id_len, scope_len};
    s->names_given++;
    if (s->names_first == 0)
        s->names_first = s->names_next;
    return s->names_next++;
}

int64_t stet_space_intern(stet_space *s, const stet_docname *name) {
    char key[NAME_KEY];
    size_t len = name_key(name, key), id_len = strlen(name->id);
    const char *scope = key + id_len + 1;
    size_t scope_len = len - id_len - 1;
    key[len] = 0;
    stet_slot *slot = NULL;
    bool added;
    int64_t doc;
    if (s->names_wait && s->names_through && s->names_whole == s->names_epoch &&
        stet_map_len(&s->names) < STET_NAMES_MAX) { /* a name that is not in the map is new: one look-up is enough */
        slot = stet_map_have(&s->names, key, len, (stet_slot){.n = ABSENT}, &added);
        doc = slot->n & ABSENT ? 0 : (int64_t)slot->n;
    } else {
        doc = stet_space_known_doc(s, name);
    }
    if (doc || stet_db_failed(s->db))
        return doc;
    doc = s->names_wait ? hold_name(s, key, id_len, scope, scope_len) : insert_name(s, key, id_len, scope, scope_len);
    if (doc >= (int64_t)1 << 40) {
        stet_db_fail(s->db, STET_LIMIT, "%s: more documents than numbers", s->path);
        return 0;
    }
    if (doc && slot)
        slot->n = (uint64_t)doc;
    else if (doc)
        remember_name(s, key, len, (uint64_t)doc);
    return doc;
}

void stet_space_hold_names(stet_space *s) {
    assert(stet_db_in_transaction(s->db) && s->names_new.len == 0);
    s->names_wait = true;
    s->names_next = 0;
}

static int by_name(const void *a, const void *b) {
    const stet_new_name *x = a, *y = b;
    size_t len = x->id_len < y->id_len ? x->id_len : y->id_len;
    int order = memcmp(x->id, y->id, len + 1); /* the NUL of the shorter one decides */
    return order ? order : strcmp(x->scope, y->scope);
}

typedef struct names_walk {
    const stet_new_names *names;
    size_t at;
} names_walk;

static bool next_name(void *ctx, stet_row *out) {
    names_walk *w = ctx;
    if (w->at == w->names->len)
        return false;
    const stet_new_name *n = &w->names->at[w->at++];
    stet_row_int(out, 0, n->doc);
    stet_row_text(out, 1, n->id, n->id_len);
    stet_row_text(out, 2, n->scope, n->scope_len);
    stet_row_int(out, 3, n->written);
    stet_row_sum(out, 4);
    return true;
}

void stet_space_write_names(stet_space *s) {
    s->names_wait = false;
    if (s->names_new.len == 0)
        return;
    /* In the order of the index; rows of the table are appended in any case. */
    qsort(s->names_new.at, s->names_new.len, sizeof *s->names_new.at, by_name);
    names_walk w = {&s->names_new, 0};
    stet_db_rows(s->db, "INSERT OR FAIL INTO document(doc, id, scope, written, sum) SELECT a, b, c, d, e FROM given",
                 next_name, &w);
    stet_space_names_changed(s, s->names_new.at, s->names_new.len, 1);
    stet_vec_clear(&s->names_new);
    stet_arena_clear(&s->names_arena);
}

void stet_space_note_written(stet_space *s, int64_t doc, int64_t branch) {
    if (branch >= STET_WRITTEN_BRANCHES)
        return;
    int64_t bit = (int64_t)1 << branch;
    if (s->names_new.len && doc >= s->names_held && doc < s->names_held + (int64_t)s->names_new.len) {
        s->names_new.at[doc - s->names_held].written |= bit;
        return;
    }
    stet_stmt *q = stet_db_stmt(s->db, "UPDATE document SET written = written | ?2, sum = row_sum(doc, id, scope,"
                                       " written | ?2) WHERE doc = ?1 AND sum = row_sum(doc, id, scope, written)");
    stet_bind_int(q, 1, doc);
    stet_bind_int(q, 2, bit);
    stet_run(q);
    if (!stet_db_failed(s->db) && stet_db_changes(s->db) != 1)
        stet_space_damaged(s, 0, "the name of document number %lld is damaged", (long long)doc);
}

bool stet_space_written(stet_space *s, int64_t doc, int64_t branch) {
    bool written = false, sound = true;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT doc, id, scope, written, sum FROM document WHERE doc = ?");
    stet_bind_int(q, 1, doc);
    if (stet_step(q)) {
        sound = stet_column_sound(q, 0, 4);
        written = branch < STET_WRITTEN_BRANCHES && (stet_column_int(q, 3) >> branch & 1);
    }
    stet_reset(q);
    if (!sound)
        stet_space_damaged(s, 0, "the name of document number %lld is damaged", (long long)doc);
    return sound && written;
}

#define NAMED_MAX 16384

/* Neighbouring actions refer to the same documents: those of their piece and of each other. No number is given twice,
 * except one that was not stored after all: then all of this is forgotten. */
static void remember_named(stet_space *s, int64_t doc, const stet_docname *name) {
    size_t id = strlen(name->id) + 1, scope = strlen(name->scope) + 1;
    if (stet_map_len(&s->named) >= NAMED_MAX)
        empty_named(s);
    char *copy = stet_arena_alloc(&s->named_arena, id + scope);
    memcpy(copy, name->id, id);
    memcpy(copy + id, name->scope, scope);
    stet_map_put(&s->named, &doc, sizeof doc, (stet_slot){.p = copy});
}

stet_status stet_space_docname(stet_space *s, int64_t doc, stet_arena *arena, stet_docname *out, stet_error *err) {
    const stet_slot *slot = stet_map_get(&s->named, &doc, sizeof doc);
    if (slot) {
        const char *id = slot->p;
        size_t len = strlen(id);
        out->id = stet_arena_strndup(arena, id, len);
        out->scope = stet_arena_strdup(arena, id + len + 1);
        return STET_OK;
    }
    stet_stmt *q = stet_db_stmt(s->db, "SELECT doc, id, scope, written, sum FROM document WHERE doc = ?");
    stet_bind_int(q, 1, doc);
    bool there = stet_step(q) && stet_column_sound(q, 0, 4);
    if (there) {
        size_t len;
        const char *text = stet_column_text(q, 1, &len);
        out->id = stet_arena_strndup(arena, text, len);
        text = stet_column_text(q, 2, &len);
        out->scope = stet_arena_strndup(arena, text, len);
        remember_named(s, doc, out);
    }
    stet_reset(q);
    stet_status st = stet_db_status(s->db, err);
    if (st == STET_OK && !there)
        st = stet_fail(err, STET_CORRUPT, "%s: the name of document number %lld is damaged or gone", s->path,
                       (long long)doc);
    return st;
}

#define STET_BRANCH_COLUMNS "branch, name, parent, fork, created_ms, deleted_ms, sum"

const stet_branch_entry *stet_space_branch_entry(stet_space *s, int64_t branch) {
    stet_slot *slot = stet_map_get(&s->branches, &branch, sizeof branch);
    if (slot)
        return slot->p;
    stet_branch_entry *b = NULL;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_BRANCH_COLUMNS " FROM branch WHERE branch = ?");
    stet_bind_int(q, 1, branch);
    bool there = stet_step(q);
    if (there && !stet_column_sound(q, 0, 6)) {
        stet_reset(q);
        stet_space_damaged(s, 0, "branch number %lld is damaged", (long long)branch);
        return NULL;
    }
    if (there) {
        b = stet_alloc(sizeof *b);
        *b = (stet_branch_entry){.branch = branch,
                                 .parent = stet_column_is_null(q, 2) ? -1 : stet_column_int(q, 2),
                                 .fork = stet_column_int(q, 3),
                                 .deleted = !stet_column_is_null(q, 5)};
        if (b->parent >= branch) { /* a parent is older than its child; otherwise reading through might not end */
            stet_db_fail(s->db, STET_CORRUPT, "%s: branch %lld has a younger parent", s->path, (long long)branch);
            free(b);
            b = NULL;
        }
    }
    stet_reset(q);
    if (b)
        stet_map_put(&s->branches, &branch, sizeof branch, (stet_slot){.p = b});
    return b;
}

stet_status stet_space_branch(stet_space *s, const char *name, int64_t *branch, stet_error *err) {
    if (!name || !*name) {
        *branch = 0;
        return STET_OK;
    }
    stet_status st = stet_branch_name_check(name, err);
    if (st == STET_OK)
        st = stet_space_refresh(s, err);
    if (st != STET_OK)
        return st;
    size_t len = strlen(name);
    stet_slot *slot = stet_map_get(&s->branch_names, name, len);
    if (slot) {
        *branch = (int64_t)slot->n;
        return STET_OK;
    }
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_BRANCH_COLUMNS " FROM branch WHERE name = ?"
                                       " AND deleted_ms IS NULL");
    stet_bind_text(q, 1, name, len);
    bool there = stet_step(q), sound = !there || stet_column_sound(q, 0, 6);
    int64_t found = there ? stet_column_int(q, 0) : 0;
    stet_reset(q);
    if (!sound)
        stet_space_damaged(s, 0, "branch \"%s\" is damaged", name);
    if ((st = stet_db_status(s->db, err)) != STET_OK)
        return st;
    if (!there) {
        st = stet_fail(err, STET_NOT_FOUND, "no branch \"%s\" in space \"%s\"", name, s->name);
        stet_hint(err, "`stet branch list` shows those there are");
        return st;
    }
    stet_map_put(&s->branch_names, name, len, (stet_slot){.n = (uint64_t)found});
    *branch = found;
    return STET_OK;
}

static stet_status insert_branch(stet_space *s, const char *name, int64_t parent, int64_t fork, stet_error *err) {
    size_t len = strlen(name);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM branch WHERE name = ? AND deleted_ms IS NULL");
    stet_bind_text(q, 1, name, len);
    bool taken = stet_step(q);
    stet_reset(q);
    if (taken)
        return stet_fail(err, STET_CONFLICT, "branch \"%s\" exists in space \"%s\"", name, s->name);
    if (stet_db_int(s->db, "SELECT max(branch) FROM branch", 0) >= STET_BRANCH_MAX)
        return stet_fail(err, STET_LIMIT, "space \"%s\" has had %d branches, the maximum", s->name, STET_BRANCH_MAX);
    q = stet_db_stmt(s->db, "INSERT INTO branch(" STET_BRANCH_COLUMNS ") SELECT n, ?1, ?2, ?3, ?4, NULL,"
                            " row_sum(n, ?1, ?2, ?3, ?4, NULL) FROM (SELECT 1 + max(branch) AS n FROM branch)");
    stet_bind_text(q, 1, name, len);
    stet_bind_int(q, 2, parent);
    stet_bind_int(q, 3, fork);
    stet_bind_int(q, 4, stet_clock_ms());
    stet_run(q);
    return STET_OK;
}

stet_status stet_branch_create(stet_space *s, const char *name, const char *parent, int64_t at, stet_error *err) {
    if (!s)
        return stet_fail_null(err);
    if (!name || !*name)
        return stet_fail(err, STET_INVALID,
                         "empty branch name: the empty one is the default branch, which always exists");
    stet_status st = stet_branch_name_check(name, err);
    if (st != STET_OK || (st = stet_db_begin_write(s->db, err)) != STET_OK)
        return st;
    int64_t from;
    stet_space_catch_up(s);
    st = stet_space_branch(s, parent, &from, err);
    if (st == STET_OK && at > s->known)
        st = stet_fail(err, STET_NOT_FOUND, "sequence %lld: space \"%s\" is at %lld", (long long)at, s->name,
                       (long long)s->known);
    if (st == STET_OK)
        st = insert_branch(s, name, from, at < 0 ? s->known : at, err);
    if (st == STET_OK)
        st = stet_db_commit(s->db, err);
    else
        stet_db_rollback(s->db);
    stet_space_forget_branches(s);
    return st;
}

stet_status stet_branch_delete(stet_space *s, const char *name, stet_error *err) {
    if (!s)
        return stet_fail_null(err);
    if (!name || !*name)
        return stet_fail(err, STET_INVALID, "the default branch can't be deleted");
    stet_status st = stet_db_begin_write(s->db, err);
    if (st != STET_OK)
        return st;
    int64_t branch;
    stet_space_catch_up(s);
    st = stet_space_branch(s, name, &branch, err);
    if (st == STET_OK) {
        stet_stmt *q =
            stet_db_stmt(s->db, "UPDATE branch SET deleted_ms = ?1, sum = row_sum(branch, name, parent, fork,"
                                " created_ms, ?1) WHERE branch = ?2");
        stet_bind_int(q, 1, stet_clock_ms());
        stet_bind_int(q, 2, branch);
        stet_run(q);
        st = stet_db_commit(s->db, err);
    } else {
        stet_db_rollback(s->db);
    }
    stet_space_forget_branches(s);
    return st;
}
