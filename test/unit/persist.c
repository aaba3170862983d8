/* persist.c - persist through its header.
 *
 * Tests put, get, merge, cleanup with its refusals, trash, pins, cap, compression, restore, stats and check.
 */

#include "../expect.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../faults.h"
#include "os/clock.h"
#include "os/file.h"
#include "persist/persist.h"

#define M1 "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789"
#define M2 "bbcdefghijklmnopqrstuvwxyzABCDEFGH123456789"
#define T0 63875925237555u

static int serial;

/* A new directory for each test; `d/` is the directory, `l/` this machine's own. */
typedef struct place {
    char dir[64], local[64];
    stet_persist_config config;
    stet_persist *p;
} place;

static void reopen(place *x) {
    stet_persist_close(x->p);
    stet_persist_place o = {.dir = x->dir, .local_dir = x->local, .machine_id = "m1", .config = &x->config};
    OK(stet_persist_open_place(&o, &x->p, &err));
}

static place start(void) {
    place x = {.config = stet_persist_config_default()};
    snprintf(x.dir, sizeof x.dir, "t%d/d", ++serial);
    snprintf(x.local, sizeof x.local, "t%d/l", serial);
    x.config.vanished_wait_ms = 0;
    x.config.entry_merge_timeout_seconds = -1; /* the entries here bear an old time */
    x.config.lock_timeout_ms = 300;
    char top[64];
    snprintf(top, sizeof top, "t%d", serial);
    mkdir(top, 0777);
    reopen(&x);
    return x;
}

static stet_persist_key key_of(const char *block, const char *module, uint64_t created) {
    return (stet_persist_key){.block_id = block, .module_hash = module, .created_at = created};
}

static stet_status put(place *x, const char *block, const char *module, uint64_t created, const char *text) {
    stet_persist_key k = key_of(block, module, created);
    stet_persist_put *w = stet_persist_put_begin(x->p, &k);
    stet_persist_put_content(w, "variables", "json");
    stet_persist_put_bytes(w, text, strlen(text));
    return stet_persist_put_end(w, NULL, &err);
}

/* The text of the latest entry up to `created` (0: the latest), or NULL. */
static const char *get(place *x, const char *block, const char *module, uint64_t created) {
    static char text[4096];
    stet_persist_key k = key_of(block, module, created);
    stet_persist_entry *e;
    stet_status status = stet_persist_get(x->p, &k, STET_PERSIST_LOAD, NULL, &e, &err);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&err);
        return NULL;
    }
    OK(status);
    snprintf(text, sizeof text, "%s", stet_persist_entry_content(e, "variables")->bytes);
    stet_persist_entry_free(e);
    return text;
}

static stet_persist_cleaned clean(place *x, stet_persist_cleanup how) {
    stet_persist_cleaned out;
    OK(stet_persist_cleanup_run(x->p, &how, &out, &err));
    stet_persist_cleaned_release(&out);
    return out;
}

static int names(place *x, const char *sub, const char *with) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", x->dir, sub);
    return faults_names(path, with);
}

static char *slurp(place *x, const char *sub) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", x->dir, sub);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read(path, 0, &b, &err));
    return stet_buf_take(&b, NULL);
}

static void write_text(const char *dir, const char *name, const char *text) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static char *only_snapshot(place *x) {
    char path[200];
    snprintf(path, sizeof path, "%s/entry_snapshots", x->dir);
    stet_names n = {0};
    OK(stet_file_list(path, &n, &err));
    assert_int_equal(n.len, 1);
    char *name = stet_asprintf("entry_snapshots/%s", n.at[0]);
    stet_names_release(&n);
    return name;
}

/* The clock moves instead, since the time of a change of the inode can't be set. */
static int64_t shift_ns;
static int64_t shifted(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + shift_ns;
}

static void days_pass(int days) {
    shift_ns = (int64_t)days * 86400 * 1000000000;
    stet_clock_hook = days ? shifted : NULL;
}

static void round_trip(void **state) {
    (void)state;
    place x = start();
    assert_null(get(&x, "b", M1, 0));
    assert_int_equal(access(x.dir, F_OK), -1); /* looking makes nothing */
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0 + 5, "two"));
    OK(put(&x, "b", M2, T0 + 7, "other"));
    assert_string_equal(get(&x, "b", M1, 0), "two");
    assert_string_equal(get(&x, "b", M1, T0 + 4), "one");
    assert_null(get(&x, "b", M1, T0 - 1));
    assert_null(get(&x, "c", M1, 0));
    stet_persist_key k = key_of("b", M1, T0 + 4);
    stet_persist_entry *e;
    FAILS(stet_persist_get(x.p, &k, STET_PERSIST_EXACT, NULL, &e, &err), STET_NOT_FOUND, "at that time");
    k.created_at = 0;
    FAILS(stet_persist_get(x.p, &k, STET_PERSIST_EXACT, NULL, &e, &err), STET_INVALID, "created_at");
    k.created_at = T0;
    OK(stet_persist_get(x.p, &k, STET_PERSIST_EXACT | STET_PERSIST_LOAD, NULL, &e, &err));
    assert_string_equal(e->contents[0].bytes, "one");
    assert_true(e->in_log);
    stet_persist_entry_free(e);
    reopen(&x);
    assert_string_equal(get(&x, "b", M1, 0), "two");
    char *config = slurp(&x, "config.toml");
    assert_string_equal(config, "version = \"1\"\n");
    stet_free(config);
    assert_int_equal(names(&x, "objects", ""), 3);
    assert_int_equal(names(&x, "fresh_objects", ""), 3);
    assert_int_equal(names(&x, "locks", ".lock"), 2);
    stet_persist_close(x.p);
}

static void same_and_clash(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0, "one"));
    FAILS(put(&x, "b", M1, T0, "two"), STET_CONFLICT, "clash");
    stet_persist_stats s;
    OK(stet_persist_stats_get(x.p, &s, &err));
    assert_int_equal(s.entries, 1);
    assert_int_equal(s.objects, 1);
    /* The same after it has moved into a snapshot. */
    clean(&x, (stet_persist_cleanup){0});
    OK(put(&x, "b", M1, T0, "one"));
    FAILS(put(&x, "b", M1, T0, "two"), STET_CONFLICT, "clash");
    /* An object that went away comes back with the same put. */
    char *cmd = stet_asprintf("rm -f %s/objects/*", x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    assert_null(get(&x, "b", M1, 0));
    OK(put(&x, "b", M1, T0, "one"));
    assert_string_equal(get(&x, "b", M1, 0), "one");
    stet_persist_close(x.p);
}

static void bad_arguments(void **state) {
    (void)state;
    place x = start();
    FAILS(put(&x, "header", M1, T0, "x"), STET_INVALID, "block id");
    FAILS(put(&x, "a\nb", M1, T0, "x"), STET_INVALID, "block id");
    FAILS(put(&x, "", M1, T0, "x"), STET_INVALID, "block id");
    FAILS(put(&x, "\xff", M1, T0, "x"), STET_INVALID, "block id");
    FAILS(put(&x, "b", "short", T0, "x"), STET_INVALID, "module hash");
    FAILS(put(&x, "b", "../../../../../../../../../../../../../../x", T0, "x"), STET_INVALID, "module hash");
    FAILS(put(&x, "b", M1, 0, "x"), STET_INVALID, "created_at");
    FAILS(put(&x, "b", M1, 1000000000000000u, "x"), STET_INVALID, "created_at");
    stet_persist_key k = key_of("b", M1, T0);
    static const char *const kinds[] = {"hash", "", "a b", "a.b", "../x"};
    for (size_t i = 0; i < 5; i++) {
        stet_persist_put *w = stet_persist_put_begin(x.p, &k);
        stet_persist_put_content(w, kinds[i], "json");
        stet_persist_put_bytes(w, "x", 1);
        FAILS(stet_persist_put_end(w, NULL, &err), STET_INVALID, "content kind");
    }
    stet_persist_put *w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_content(w, "variables", "a\"b");
    FAILS(stet_persist_put_end(w, NULL, &err), STET_INVALID, "can't be written");
    w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_content(w, "variables", "json");
    stet_persist_put_content(w, "variables", "json");
    FAILS(stet_persist_put_end(w, NULL, &err), STET_INVALID, "twice");
    w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_bytes(w, "x", 1);
    FAILS(stet_persist_put_end(w, NULL, &err), STET_INVALID, "begun");
    assert_int_equal(access(x.dir, F_OK), -1);
    stet_persist_close(x.p);
}

static void several_contents(void **state) {
    (void)state;
    place x = start();
    stet_persist_key k = key_of("call:resize@1", M1, T0);
    stet_persist_put *w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_elapsed(w, 1234);
    stet_persist_put_string(w, "note", "a \"quoted\" \xc3\xa9");
    stet_persist_put_content(w, "variables", "auto");
    stet_persist_put_bytes(w, "\x80\x04}\x94.", 5);
    stet_persist_put_content(w, "output", "text");
    stet_persist_put_bytes(w, "hello", 5);
    stet_persist_put_string(w, "path", "out/a.txt");
    stet_persist_put_int(w, "mode", 0755);
    stet_persist_put_content(w, "stderr", "text");
    stet_persist_entry *e;
    OK(stet_persist_put_end(w, &e, &err));
    assert_int_equal(e->content_count, 3);
    assert_string_equal(e->contents[0].kind, "output");
    assert_string_equal(e->contents[2].format, "pickle");
    assert_string_equal(e->contents[2].id, "kmJI5S0fpTLDF-N9ok7WUq5kEQ-CGcteBhZovTCR8Eg");
    assert_string_equal(e->contents[1].id, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    assert_int_equal(e->elapsed_ms, 1234);
    int64_t mode;
    assert_true(stet_persist_extra_int(e, &e->contents[0], "mode", &mode));
    assert_int_equal(mode, 0755);
    stet_buf b = STET_BUF(0);
    assert_true(stet_persist_extra_string(e, NULL, "note", &b));
    assert_string_equal(b.data, "a \"quoted\" \xc3\xa9");
    stet_buf_release(&b);
    stet_persist_entry_free(e);
    /* Trivial objects are neither stored nor marked. */
    assert_int_equal(names(&x, "objects", ""), 1);
    assert_int_equal(names(&x, "fresh_objects", ""), 1);
    OK(stet_persist_get(x.p, &k, STET_PERSIST_LOAD, (const char *const[]){"stderr", "variables", NULL}, &e, &err));
    assert_int_equal(stet_persist_entry_content(e, "variables")->size, 5);
    assert_memory_equal(stet_persist_entry_content(e, "variables")->bytes, "\x80\x04}\x94.", 5);
    assert_string_equal(stet_persist_entry_content(e, "stderr")->bytes, "");
    assert_null(stet_persist_entry_content(e, "output")->bytes);
    stet_persist_entry_free(e);
    FAILS(stet_persist_get(x.p, &k, 0, (const char *const[]){"nothing", NULL}, &e, &err), STET_NOT_FOUND, "no entry");
    stet_persist_close(x.p);
}

static void trivial_ids(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "{}"));
    OK(put(&x, "b", M1, T0 + 1, ""));
    assert_string_equal(get(&x, "b", M1, T0), "{}");
    assert_string_equal(get(&x, "b", M1, 0), "");
    assert_int_equal(names(&x, "objects", ""), 0);
    stet_persist_close(x.p);
}

static void qualified(void **state) {
    (void)state;
    place x = start();
    x.config.object_id_mode = STET_PERSIST_EXECUTION_KEY_QUALIFIED;
    reopen(&x);
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0 + 1, "one"));
    OK(put(&x, "b", M1, T0 + 2, "{}"));
    assert_int_equal(names(&x, "objects", "." M1 ".63875925237555"), 1);
    assert_int_equal(names(&x, "objects", ""), 2);
    assert_string_equal(get(&x, "b", M1, T0 + 1), "one");
    /* Both modes live together. */
    x.config.object_id_mode = STET_PERSIST_DEDUPLICATION;
    reopen(&x);
    OK(put(&x, "b", M1, T0 + 3, "one"));
    OK(put(&x, "b", M1, T0, "one")); /* the same bytes under the other kind of id */
    assert_int_equal(names(&x, "objects", ""), 3);
    char *cmd = stet_asprintf("rm -f %s/objects/*", x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    OK(put(&x, "b", M1, T0, "one"));
    assert_int_equal(names(&x, "objects", "." M1 ".63875925237555"), 1); /* what the entry names is put back */
    assert_int_equal(names(&x, "objects", ""), 1);
    assert_string_equal(get(&x, "b", M1, T0), "one");
    stet_persist_close(x.p);
}

/* A missing or wrong object means the next older entry. */
static void falls_back(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0 + 1, "two"));
    OK(put(&x, "b", M1, T0 + 2, "three"));
    char *cmd = stet_asprintf("cd %s/objects && for f in *; do case $(cat ./$f) in three) rm -f ./$f;; two) rm -f "
                              "./$f; printf wxy > ./$f;; esac; done",
                              x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    assert_string_equal(get(&x, "b", M1, 0), "one");
    x.config.verify = STET_PERSIST_VERIFY_SIZE;
    reopen(&x);
    assert_string_equal(get(&x, "b", M1, T0 + 1), "one"); /* what is loaded is hashed all the same */
    stet_persist_key k = key_of("b", M1, T0 + 1);
    stet_persist_entry *e;
    OK(stet_persist_get(x.p, &k, STET_PERSIST_EXACT, NULL, &e,
                        &err)); /* the size is right, and more was not asked for */
    FAILS(stet_persist_read(x.p, e->contents[0].id, e->contents[0].size, NULL, NULL, &err), STET_CORRUPT,
          "not what its name says");
    stet_persist_entry_free(e);
    /* put replaces what is wrong. */
    OK(put(&x, "b", M1, T0 + 9, "two"));
    OK(stet_persist_get(x.p, &k, STET_PERSIST_EXACT, NULL, &e, &err));
    OK(stet_persist_read(x.p, e->contents[0].id, e->contents[0].size, NULL, NULL, &err));
    stet_persist_entry_free(e);
    stet_persist_close(x.p);
}

static void merge(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){0});
    assert_true(c.wrote_snapshot);
    assert_int_equal(c.log_entries, 1);
    assert_int_equal(names(&x, "entry_snapshots", ".toml"), 1);
    char *log = slurp(&x, "entry_log/machine_m1.toml");
    assert_null(strstr(log, M1));
    assert_non_null(strstr(log, "[header]"));
    stet_free(log);
    assert_string_equal(get(&x, "b", M1, 0), "one");
    assert_int_equal(names(&x, "fresh_objects", ""), 1); /* goes with the next one */
    c = clean(&x, (stet_persist_cleanup){0});
    assert_false(c.wrote_snapshot);
    assert_int_equal(c.markers_removed, 1);
    OK(put(&x, "b", M1, T0 + 1, "two"));
    c = clean(&x, (stet_persist_cleanup){0});
    assert_true(c.wrote_snapshot);
    assert_int_equal(names(&x, "entry_snapshots", ".toml"), 1);
    reopen(&x);
    assert_string_equal(get(&x, "b", M1, 0), "two");
    assert_string_equal(get(&x, "b", M1, T0), "one");
    stet_persist_close(x.p);
}

static void default_strategy(void **state) {
    (void)state;
    place x = start();
    for (int i = 0; i < 6; i++) {
        char text[16];
        snprintf(text, sizeof text, "v%d", i);
        OK(put(&x, "b", i % 2 ? M1 : M2, T0 + (uint64_t)i, text));
        OK(put(&x, "call:f", i % 2 ? M1 : M2, T0 + 100 + (uint64_t)i, text));
    }
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){0});
    assert_int_equal(c.entries_removed, 3); /* three per block stay; calls are not counted */
    assert_int_equal(c.entries_after, 9);
    assert_int_equal(c.objects_removed, 0);
    assert_null(get(&x, "b", M2, T0 + 2));
    assert_string_equal(get(&x, "b", M1, 0), "v5");
    assert_string_equal(get(&x, "call:f", M2, T0 + 100), "v0");
    stet_persist_limits l = {.max_entries_per_block = -1,
                             .max_entries_per_module = 1,
                             .max_entry_age_days = -1,
                             .max_total_content_size = -1};
    c = clean(&x, (stet_persist_cleanup){.strategy = stet_persist_strategy_default, .ctx = &l});
    assert_int_equal(c.entries_removed, 1);
    /* Age: these entries are of 2025. */
    l = (stet_persist_limits){-1, -1, 30, -1};
    c = clean(&x, (stet_persist_cleanup){.strategy = stet_persist_strategy_default, .ctx = &l});
    assert_int_equal(c.entries_after, 0);
    l = (stet_persist_limits){-1, -1, -1, -1};
    stet_persist_cleaned out;
    FAILS(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){.strategy = stet_persist_strategy_default, .ctx = &l},
                                   &out, &err),
          STET_INVALID, "at least one");
    l.max_entry_age_days = 0;
    FAILS(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){.strategy = stet_persist_strategy_default, .ctx = &l},
                                   &out, &err),
          STET_INVALID, "max_entry_age_days");
    stet_persist_close(x.p);
}

static void size_strategy(void **state) {
    (void)state;
    stet_persist_limits l = {-1, -1, -1, 100};
    stet_persist_item items[6];
    memset(items, 0, sizeof items);
    for (int i = 0; i < 6; i++)
        items[i] = (stet_persist_item){.block_id = i % 2 ? "a" : "b",
                                       .block_len = 1,
                                       .module_hash = M1,
                                       .created_at = (uint64_t)(10 + i),
                                       .size = 40};
    assert_int_equal(stet_persist_strategy_default(&l, items, 6, 100, &err), STET_OK);
    /* Four go: the older of both blocks; the latest of each stay. */
    for (int i = 0; i < 6; i++)
        assert_int_equal(items[i].remove, i < 4);
    for (int i = 0; i < 6; i++)
        items[i].remove = false;
    l.max_total_content_size = 50;
    assert_int_equal(stet_persist_strategy_default(&l, items, 6, 100, &err), STET_OK);
    assert_true(items[4].remove);
    assert_false(items[5].remove);
}

/* A custom strategy, pins and tags. */
static stet_status drop_all(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *e) {
    (void)ctx, (void)now, (void)e;
    for (size_t i = 0; i < count; i++)
        items[i].remove = true;
    return STET_OK;
}

static void pins(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0 + 1, "two"));
    OK(put(&x, "b", M1, T0 + 2, "three"));
    stet_persist_key k = key_of("b", M1, T0), none = key_of("b", M1, T0 + 50);
    OK(stet_persist_mark(x.p, &k, NULL, true, &err));
    k.created_at = T0 + 1;
    OK(stet_persist_mark(x.p, &k, "paper", true, &err));
    FAILS(stet_persist_mark(x.p, &none, NULL, true, &err), STET_NOT_FOUND, "no entry");
    FAILS(stet_persist_mark(x.p, &k, "../x", true, &err), STET_INVALID, "not a tag");
    stet_value marks;
    OK(stet_persist_marks(x.p, &k, &marks, &err));
    assert_int_equal(stet_value_count(marks), 1);
    stet_value_release(marks);
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){.strategy = drop_all});
    assert_int_equal(c.entries_after, 2);
    OK(stet_persist_mark(x.p, &k, "paper", false, &err));
    c = clean(&x, (stet_persist_cleanup){.strategy = drop_all});
    assert_int_equal(c.entries_after, 1);
    assert_string_equal(get(&x, "b", M1, 0), "one");
    stet_persist_close(x.p);
}

static void contents_go_and_return(void **state) {
    (void)state;
    place x = start();
    for (int i = 0; i < 5; i++) {
        char text[16];
        snprintf(text, sizeof text, "v%d", i);
        OK(put(&x, "b", M1, T0 + (uint64_t)i, text));
    }
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){.include_content = STET_PERSIST_YES, .dry_run = true});
    assert_int_equal(c.entries_removed, 3);
    assert_int_equal(names(&x, "objects", ""), 5);
    assert_int_equal(names(&x, "entry_snapshots", ""), 0);
    c = clean(&x, (stet_persist_cleanup){.include_content = STET_PERSIST_YES});
    assert_int_equal(c.entries_removed, 3);
    assert_int_equal(c.objects_removed, 3);
    assert_int_equal(names(&x, "objects", ""), 2);
    assert_null(get(&x, "b", M1, T0 + 2));
    stet_persist_undeleted back;
    OK(stet_persist_undelete(x.p, NULL, NULL, NULL, true, &back, &err));
    assert_int_equal(back.entries, 3);
    assert_null(get(&x, "b", M1, T0 + 2));
    OK(stet_persist_undelete(x.p, NULL, NULL, NULL, false, &back, &err));
    assert_int_equal(back.entries, 3);
    assert_int_equal(back.objects, 3);
    assert_string_equal(get(&x, "b", M1, T0 + 2), "v2");
    reopen(&x);
    assert_string_equal(get(&x, "b", M1, T0), "v0");
    FAILS(stet_persist_undelete(x.p, "1.00000000", NULL, NULL, false, &back, &err), STET_NOT_FOUND, "no batch");
    /* After its time it is gone. */
    clean(&x, (stet_persist_cleanup){.include_content = STET_PERSIST_YES});
    days_pass(8);
    uint64_t items, bytes;
    OK(stet_persist_sweep(x.p, false, false, &items, &bytes, &err));
    assert_true(items >= 3);
    OK(stet_persist_undelete(x.p, NULL, NULL, NULL, false, &back, &err));
    assert_int_equal(back.entries, 0);
    days_pass(0);
    stet_persist_close(x.p);
}

static void orphans(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "kept"));
    char at[200];
    snprintf(at, sizeof at, "%s/objects", x.dir);
    write_text(at, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFX", "orphan");
    write_text(at, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFY", "marked");
    write_text(at, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFX (1)", "stray");
    write_text(at, "notes.txt", "of the user");
    snprintf(at, sizeof at, "%s/fresh_objects", x.dir);
    write_text(at, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFY", "");
    /* Young ones stay. */
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){.delete_orphan_objects = STET_PERSIST_YES});
    assert_int_equal(c.objects_removed, 0);
    days_pass(8);
    c = clean(&x,
              (stet_persist_cleanup){.include_content = STET_PERSIST_YES, .delete_orphan_objects = STET_PERSIST_NO});
    assert_int_equal(c.objects_removed, 0);
    c = clean(&x, (stet_persist_cleanup){.delete_orphan_objects = STET_PERSIST_YES});
    assert_int_equal(c.objects_removed, 1);
    assert_int_equal(names(&x, "objects", "SuFX"), 1); /* the stray copy alone */
    assert_int_equal(names(&x, "objects", "notes"), 1);
    /* A marker that nobody refers to expires, and then its object goes. */
    days_pass(31);
    clean(&x, (stet_persist_cleanup){.delete_orphan_objects = STET_PERSIST_YES});
    assert_int_equal(names(&x, "objects", "SuFY"), 0);
    assert_string_equal(get(&x, "b", M1, 0), "kept");
    days_pass(0);
    stet_persist_close(x.p);
}

/* Where something that might name an object can't be read, no object is deleted. */
static void refusals(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0 + 1, "two"));
    clean(&x, (stet_persist_cleanup){0});
    char at[200];
    snprintf(at, sizeof at, "%s/entry_snapshots", x.dir);
    stet_persist_cleaned out;
    stet_persist_cleanup all = {.include_content = STET_PERSIST_YES};
    write_text(at, "half.toml", "[header]\nversion = \"1\"\nsnap");
    FAILS(stet_persist_cleanup_run(x.p, &all, &out, &err), STET_DENIED, "half.toml");
    clean(&x, (stet_persist_cleanup){0}); /* entries alone are no danger */
    assert_int_equal(names(&x, "entry_snapshots", "half"), 1);
    write_text(at, "half.toml", "[header]\nversion = \"7\"\n");
    FAILS(stet_persist_cleanup_run(x.p, &all, &out, &err), STET_UNSUPPORTED, "half.toml");
    FAILS(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){0}, &out, &err), STET_UNSUPPORTED, "half.toml");
    OK(put(&x, "b", M1, T0 + 2, "three")); /* adding is allowed */
    char *path = stet_asprintf("%s/half.toml", at);
    unlink(path);
    stet_free(path);
    FAILS(stet_persist_cleanup_run(
              x.p, &(stet_persist_cleanup){.include_content = STET_PERSIST_YES, .strategy = drop_all}, &out, &err),
          STET_DENIED, "not one entry");
    /* The last known snapshot went away without a descendant. */
    char *name = only_snapshot(&x);
    path = stet_asprintf("%s/%s", x.dir, name);
    unlink(path);
    FAILS(stet_persist_cleanup_run(x.p, &all, &out, &err), STET_DENIED, "last snapshot that this machine knew");
    assert_string_equal(get(&x, "b", M1, T0 + 1), "two"); /* still known */
    reopen(&x);
    assert_string_equal(get(&x, "b", M1, T0 + 1), "two"); /* and to the next process */
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){.strategy = stet_persist_strategy_none});
    assert_true(c.wrote_snapshot);
    char *again = only_snapshot(&x), *text = slurp(&x, again);
    assert_non_null(strstr(text, strrchr(name, '/') + 1) ? text : strstr(text, M1));
    char parent[44];
    memcpy(parent, strchr(name, '/') + 1, 43);
    parent[43] = '\0';
    assert_non_null(strstr(text, parent)); /* it is the parent */
    stet_free(text);
    stet_free(again);
    stet_free(name);
    stet_free(path);
    c = clean(&x, (stet_persist_cleanup){.include_content = STET_PERSIST_YES, .strategy = drop_all, .force = true});
    assert_int_equal(c.entries_after, 0);
    assert_int_equal(c.objects_removed, 3);
    stet_persist_close(x.p);
}

static void cap(void **state) {
    (void)state;
    place x = start();
    x.config.strategy = (stet_persist_limits){100, -1, -1, -1};
    x.config.max_local_bytes = 3000;
    reopen(&x);
    char text[1001];
    memset(text, 'x', 1000);
    text[1000] = '\0';
    for (int i = 0; i < 6; i++) {
        text[0] = (char)('a' + i);
        OK(put(&x, "b", M1, T0 + (uint64_t)i, text));
    }
    assert_non_null(get(&x, "b", M1, T0)); /* the oldest was just used */
    stet_persist_key pinned = key_of("b", M1, T0 + 1);
    OK(stet_persist_mark(x.p, &pinned, NULL, true, &err));
    stet_persist_cleaned c = clean(&x, (stet_persist_cleanup){0});
    assert_int_equal(c.entries_removed, 0); /* a cap on bytes needs content */
    c = clean(&x, (stet_persist_cleanup){.include_content = STET_PERSIST_YES});
    assert_int_equal(c.entries_after, 3);
    assert_int_equal(names(&x, "objects", ""), 3);
    stet_persist_key k = key_of("b", M1, T0);
    stet_persist_entry *e;
    for (int i = 0; i < 6; i++) {
        k.created_at = T0 + (uint64_t)i;
        bool there = stet_persist_get(x.p, &k, STET_PERSIST_EXACT, NULL, &e, NULL) == STET_OK;
        assert_int_equal(there, i == 0 || i == 1 || i == 5);
        if (there)
            stet_persist_entry_free(e);
    }
    stet_persist_close(x.p);
}

static void triggers(void **state) {
    (void)state;
    place x = start();
    x.config.max_entries_in_log = 3;
    x.config.strategy = (stet_persist_limits){100, -1, -1, -1};
    reopen(&x);
    uint64_t now = stet_persist_now();
    for (int i = 0; i < 3; i++)
        OK(put(&x, "b", M1, now + (uint64_t)i, "x"));
    assert_int_equal(names(&x, "entry_snapshots", ""), 0);
    OK(put(&x, "b", M1, now + 3, "x"));
    assert_int_equal(names(&x, "entry_snapshots", ""), 1);
    x.config.max_entries_in_log = -1;
    x.config.entry_merge_timeout_seconds = 60;
    reopen(&x);
    OK(put(&x, "b", M1, now + 4, "x"));
    int64_t next;
    OK(stet_persist_tick(x.p, &next, &err));
    assert_true(next > 0 && next <= 60000);
    days_pass(1);
    OK(stet_persist_tick(x.p, &next, &err));
    stet_persist_stats s;
    OK(stet_persist_stats_get(x.p, &s, &err));
    assert_int_equal(s.log_entries, 0);
    assert_int_equal(s.entries, 5);
    days_pass(0);
    OK(put(&x, "b", M1, now + 5, "x"));
    OK(stet_persist_on_exit(x.p, &err));
    OK(stet_persist_stats_get(x.p, &s, &err));
    assert_int_equal(s.log_entries, 0);
    stet_persist_close(x.p);
}

/* Two machines; what one deletes or adds arrives at the other in any order and under any name. */
static void machines(void **state) {
    (void)state;
    place a = start(), b = start();
    OK(put(&a, "b", M1, T0, "one"));
    clean(&a, (stet_persist_cleanup){0});
    OK(put(&b, "b", M2, T0, "two"));
    clean(&b, (stet_persist_cleanup){0});
    char *from = only_snapshot(&b),
         *cmd = stet_asprintf("cp '%s/%s' '%s/entry_snapshots/X (conflicted copy).toml'; cp %s/objects/* %s/objects/",
                              b.dir, from, a.dir, b.dir, a.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    assert_string_equal(get(&a, "b", M2, 0), "two");
    assert_string_equal(get(&a, "b", M1, 0), "one");
    stet_persist_cleaned c = clean(&a, (stet_persist_cleanup){0});
    assert_int_equal(c.snapshots_merged, 2);
    char *merged = only_snapshot(&a);
    /* An old one that comes back is known for what it is. */
    cmd = stet_asprintf("cp %s/%s %s/entry_snapshots/", b.dir, from, a.dir);
    assert_int_equal(system(cmd), 0);
    c = clean(&a, (stet_persist_cleanup){0});
    assert_false(c.wrote_snapshot);
    char *still = only_snapshot(&a);
    assert_string_equal(still, merged);
    /* A snapshot under a wrong name gets its own. */
    stet_free(cmd);
    cmd = stet_asprintf("mv %s/%s '%s/entry_snapshots/Y (1).toml'", a.dir, merged, a.dir);
    assert_int_equal(system(cmd), 0);
    reopen(&a);
    assert_string_equal(get(&a, "b", M2, 0), "two");
    clean(&a, (stet_persist_cleanup){0});
    stet_free(still);
    still = only_snapshot(&a);
    assert_string_equal(still, merged);
    stet_free(cmd);
    stet_free(still);
    stet_free(merged);
    stet_free(from);
    stet_persist_close(a.p);
    stet_persist_close(b.p);
}

static stet_status count_bytes(void *ctx, const void *bytes, size_t len, stet_error *e) {
    (void)bytes, (void)e;
    *(uint64_t *)ctx += len;
    return STET_OK;
}

static void large_and_compressed(void **state) {
    (void)state;
    place x = start();
    x.config.compress = true;
    reopen(&x);
    stet_persist_key k = key_of("b", M1, T0);
    stet_persist_put *w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_content(w, "text", "text");
    char line[1024];
    memset(line, 'a', sizeof line);
    for (int i = 0; i < 3000; i++)
        stet_persist_put_bytes(w, line, sizeof line);
    stet_persist_put_content(w, "holes", "bytes");
    stet_persist_put_compress(w, false);
    char *zeros = stet_alloc_zero(300000);
    stet_persist_put_bytes(w, "begin", 5);
    stet_persist_put_bytes(w, zeros, 300000);
    stet_persist_put_bytes(w, "end", 3);
    stet_persist_put_bytes(w, zeros, 300000);
    stet_persist_put_content(w, "noise", "bytes");
    char noise[100000];
    stet_random(noise, sizeof noise);
    stet_persist_put_bytes(w, noise, sizeof noise);
    stet_persist_put_content(w, "small", "text");
    stet_persist_put_bytes(w, line, 1000);
    stet_persist_put_content(w, "plain", "text");
    stet_persist_put_compress(w, false);
    stet_persist_put_bytes(w, line, 1001);
    OK(stet_persist_put_end(w, NULL, &err));
    assert_int_equal(names(&x, "objects", ".zst"), 2);
    assert_int_equal(names(&x, "objects", ""), 5);
    stet_persist_entry *e;
    OK(stet_persist_get(x.p, &k, STET_PERSIST_LOAD, NULL, &e, &err));
    const stet_persist_content *holes = stet_persist_entry_content(e, "holes");
    assert_int_equal(holes->size, 600008);
    assert_memory_equal(holes->bytes, "begin", 5);
    assert_memory_equal(holes->bytes + 5, zeros, 300000);
    assert_memory_equal(holes->bytes + 300005, "end", 3);
    assert_memory_equal(holes->bytes + 300008, zeros, 300000);
    stet_free(zeros);
    assert_null(stet_persist_entry_content(e, "text")->bytes); /* too large for that */
    assert_memory_equal(stet_persist_entry_content(e, "noise")->bytes, noise, sizeof noise);
    assert_memory_equal(stet_persist_entry_content(e, "small")->bytes, line, 1000);
    const stet_persist_content *text = stet_persist_entry_content(e, "text");
    uint64_t total = 0;
    OK(stet_persist_read(x.p, text->id, text->size, count_bytes, &total, &err));
    assert_int_equal(total, 3000 * 1024);
    stet_persist_restored how;
    OK(stet_persist_restore(x.p, text->id, text->size, "restored", 0644, true, &how, NULL, &err));
    assert_int_equal(how, STET_PERSIST_COPY);
    struct stat st;
    assert_int_equal(stat("restored", &st), 0);
    assert_int_equal(st.st_size, 3000 * 1024);
    const stet_persist_content *plain = stet_persist_entry_content(e, "plain");
    OK(stet_persist_restore(x.p, plain->id, plain->size, "restored", 0644, true, &how, NULL, &err));
    assert_int_not_equal(how, STET_PERSIST_COPY); /* a reflink or a hard link */
    assert_int_equal(stat("restored", &st), 0);
    assert_int_equal(st.st_size, 1001);
    OK(stet_persist_restore(x.p, plain->id, plain->size, "restored", 0600, false, &how, NULL, &err));
    assert_int_equal(stat("restored", &st), 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(faults_names(".", ".stet-restore"), 0);
    FAILS(stet_persist_restore(x.p, "../x", 1, "restored", 0600, false, NULL, NULL, &err), STET_INVALID, "object id");
    /* The same bytes again find the compressed one. */
    OK(put(&x, "c", M1, T0, "x"));
    k.created_at++;
    w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_content(w, "small", "text");
    stet_persist_put_bytes(w, line, 1000);
    OK(stet_persist_put_end(w, NULL, &err));
    assert_int_equal(names(&x, "objects", ".zst"), 2);
    stet_persist_entry_free(e);
    stet_persist_close(x.p);
}

/* More than 4 GiB, with a few bytes in the middle and at the end: sizes are 64-bit everywhere, zeros cost no disk. */
static void beyond_four_gib(void **state) {
    (void)state;
    if (getenv("STET_TEST_SHORT"))
        return; /* hashing it takes the sanitizers a minute */
    place x = start();
    const off_t size = ((off_t)4 << 30) + 4097;
    int fd = open("sparse", O_RDWR | O_CREAT, 0666);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(pwrite(fd, "middle", 6, (off_t)1 << 30), 6);
    assert_int_equal(pwrite(fd, "end", 3, size - 3), 3);
    close(fd);
    stet_persist_key k = key_of("b", M1, T0);
    stet_persist_put *w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_content(w, "variables", "bytes");
    stet_persist_put_file(w, "sparse");
    stet_persist_entry *e;
    OK(stet_persist_put_end(w, &e, &err));
    assert_true(e->total_size == (uint64_t)size);
    char path[300];
    struct stat st;
    snprintf(path, sizeof path, "%s/objects/%s", x.dir, e->contents[0].id);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size == size && st.st_blocks < 4096);
    stet_persist_entry_free(e);
    OK(stet_persist_get(x.p, &k, STET_PERSIST_LOAD, NULL, &e, &err));
    assert_null(e->contents[0].bytes);
    stet_persist_entry_free(e);
    unlink("sparse");
    unlink(path);
    stet_persist_close(x.p);
}

static void stats(void **state) {
    (void)state;
    place x = start();
    stet_persist_key k = key_of("call:f", M1, T0);
    stet_persist_put *w = stet_persist_put_begin(x.p, &k);
    stet_persist_put_elapsed(w, 2500);
    stet_persist_put_content(w, "output", "text");
    stet_persist_put_bytes(w, "abc", 3);
    OK(stet_persist_put_end(w, NULL, &err));
    stet_persist_entry *e;
    for (int i = 0; i < 3; i++) {
        OK(stet_persist_get(x.p, &k, 0, NULL, &e, &err));
        stet_persist_entry_free(e);
        if (i == 1)
            reopen(&x);
    }
    assert_null(get(&x, "none", M1, 0));
    stet_persist_stats s;
    OK(stet_persist_stats_get(x.p, &s, &err));
    assert_int_equal(s.hits, 3);
    assert_int_equal(s.misses, 1);
    assert_int_equal(s.saved_ms, 7500);
    assert_int_equal(s.entries, 1);
    assert_int_equal(s.call_entries, 1);
    assert_int_equal(s.object_bytes, 3);
    assert_int_equal(s.missing_objects, 0);
    stet_persist_close(x.p);
}

/* The list of uses that has grown is made short by a cleanup: totals stay, and of the entries those that are here. */
static void uses_are_made_short(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "1"));
    assert_string_equal(get(&x, "b", M1, 0), "1");
    reopen(&x); /* writes the use down */
    char path[100], line[200];
    snprintf(path, sizeof path, "%s/uses", x.local);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_memory_equal(line, "u " M1, 2 + STET_PERSIST_HASH);
    fclose(f);
    f = fopen(path, "a");
    for (int i = 0; i < 32000; i++)
        fprintf(f, "u %s.%d 5\n%s", M1, i, i % 1000 ? "" : "h 1 2 3\nno line of this file\n");
    fprintf(f, "h 9 9 9"); /* torn */
    fclose(f);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    assert_true(before.st_size > 1 << 20); /* large enough to be made short */
    faults_arm(STET_SYS_RENAME, 1, STET_SYS_FAIL, ENOSPC);
    faults_path("uses");
    stet_persist_cleaned out;
    assert_int_equal(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){0}, &out, &err), STET_IO);
    faults_disarm();
    stet_error_clear(&err);
    assert_int_equal(stat(path, &after), 0);
    assert_true(after.st_size == before.st_size);
    clean(&x, (stet_persist_cleanup){0});
    assert_int_equal(stat(path, &after), 0);
    assert_true(after.st_size < 200);
    f = fopen(path, "r");
    char kept[200];
    assert_non_null(fgets(kept, sizeof kept, f));
    fclose(f);
    assert_string_equal(kept, line);
    stet_persist_stats s;
    OK(stet_persist_stats_get(x.p, &s, &err));
    assert_int_equal(s.hits, 1 + 32);
    assert_int_equal(s.misses, 2 * 32);
    stet_persist_close(x.p);
}

typedef struct found {
    int count, repaired;
} found;
static void note(void *ctx, const stet_persist_problem *p) {
    found *f = ctx;
    f->count++;
    f->repaired += p->repaired;
}

static found check(place *x, bool repair) {
    found f = {0};
    OK(stet_persist_check(x->p, repair, note, &f, &err));
    return f;
}

static void checks(void **state) {
    (void)state;
    place x = start();
    assert_int_equal(check(&x, false).count, 0);
    for (int i = 0; i < 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "v%d", i);
        OK(put(&x, "b", i < 2 ? M1 : M2, T0 + (uint64_t)i, text));
        if (i == 1)
            clean(&x, (stet_persist_cleanup){0});
    }
    assert_int_equal(check(&x, false).count, 0);
    /* A torn log, a corrupt snapshot beside the good one, a renamed object, a damaged object. */
    char *cmd = stet_asprintf(
        "cd %s && printf '\\n[torn' >> entry_log/machine_m1.toml && echo junk > 'entry_snapshots/j.toml' && cd objects "
        "&& "
        "for f in *; do case $(cat ./$f) in v0) mv ./$f \"$f (1)\";; v1) rm -f ./$f; printf zz > ./$f;; esac; done",
        x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    found f = check(&x, false);
    assert_int_equal(f.count, 5); /* and the renamed one is missing under its name */
    assert_int_equal(f.repaired, 0);
    f = check(&x, true);
    assert_int_equal(f.count, 5); /* the damaged object is missing now, so that its entry goes */
    assert_int_equal(f.repaired, 5);
    assert_int_equal(check(&x, false).count, 0);
    assert_string_equal(get(&x, "b", M1, 0), "v0");
    assert_string_equal(get(&x, "b", M2, 0), "v3");
    OK(put(&x, "b", M1, T0 + 1, "v1")); /* the same put brings it back */
    assert_string_equal(get(&x, "b", M1, 0), "v1");
    assert_int_equal(check(&x, false).count, 0);
    stet_persist_close(x.p);
}

/* Parts of the directory, or all of it, are removed: what is lost is said, and one repair is enough. */
static void removed(void **state) {
    (void)state;
    static const struct {
        const char *what;
        int found; /* -1: the objects that are named, whatever their number */
        bool keeps;
    } parts[] = {{"%s/entry_snapshots", 1, true}, {"%s/objects", -1, false}, {"%s", 1, false}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        place x = start();
        OK(put(&x, "b", M1, T0, "v0"));
        OK(put(&x, "c", M2, T0, "v1"));
        clean(&x, (stet_persist_cleanup){.strategy = stet_persist_strategy_none});
        stet_persist_key pinned = key_of("c", M2, T0);
        OK(stet_persist_mark(x.p, &pinned, NULL, true, &err));
        stet_persist_close(x.p);
        char *dir = stet_asprintf(parts[i].what, x.dir);
        OK(stet_file_remove_tree(dir, &err));
        stet_free(dir);
        stet_persist_place o = {.dir = x.dir, .local_dir = x.local, .machine_id = "m1"};
        OK(stet_persist_open_place(&o, &x.p, &err));
        found f = check(&x, false);
        assert_int_equal(f.count, parts[i].found < 0 ? 2 : parts[i].found);
        assert_int_equal(check(&x, false).count, f.count); /* until it is repaired */
        f = check(&x, true);
        assert_int_equal(f.repaired, f.count);
        assert_int_equal(check(&x, false).count, 0);
        reopen(&x);
        assert_int_equal(check(&x, false).count, 0);
        if (parts[i].keeps)
            assert_string_equal(get(&x, "b", M1, 0), "v0");
        OK(put(&x, "b", M1, T0 + 1, "v2"));
        assert_string_equal(get(&x, "b", M1, 0), "v2");
        clean(&x, (stet_persist_cleanup){.strategy = stet_persist_strategy_none});
        assert_int_equal(check(&x, false).count, 0);
        stet_persist_close(x.p);
    }
}

static void reads_only(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    stet_persist_close(x.p);
    stet_persist_place o = {.dir = x.dir, .local_dir = x.local, .machine_id = "m1", .read_only = true};
    OK(stet_persist_open_place(&o, &x.p, &err));
    assert_non_null(stet_persist_read_only(x.p));
    assert_string_equal(get(&x, "b", M1, 0), "one");
    FAILS(put(&x, "b", M1, T0 + 1, "two"), STET_DENIED, "only read");
    stet_persist_cleaned out;
    FAILS(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){0}, &out, &err), STET_DENIED, "only read");
    OK(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){.dry_run = true}, &out, &err));
    stet_persist_cleaned_release(&out);
    stet_persist_close(x.p);
    /* A newer directory is read, and left alone. */
    write_text(x.dir, "config.toml", "version = \"2\"\n");
    o.read_only = false;
    OK(stet_persist_open_place(&o, &x.p, &err));
    assert_non_null(strstr(stet_persist_read_only(x.p), "version \"2\""));
    assert_string_equal(get(&x, "b", M1, 0), "one");
    FAILS(put(&x, "b", M1, T0 + 1, "two"), STET_DENIED, "only read");
    stet_persist_close(x.p);
}

/* A directory of somebody else, as a user who may only read it. */
static void not_ours(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    clean(&x, (stet_persist_cleanup){0});
    OK(put(&x, "b", M1, T0 + 1, "two"));
    stet_persist_close(x.p);
    char *cmd = stet_asprintf("chmod 755 . ; chmod -R a+rX t%d; chmod -R a-w t%d", serial, serial);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(10);
        stet_persist_place o = {.dir = x.dir, .local_dir = x.local, .machine_id = "m1"};
        if (stet_persist_open_place(&o, &x.p, NULL) != STET_OK)
            _exit(11);
        if (!stet_persist_read_only(x.p))
            _exit(12);
        stet_persist_key k = key_of("b", M1, 0);
        stet_persist_entry *e;
        if (stet_persist_get(x.p, &k, STET_PERSIST_LOAD, NULL, &e, NULL) != STET_OK ||
            strcmp(e->contents[0].bytes, "two") != 0)
            _exit(13);
        stet_persist_entry_free(e);
        if (put(&x, "b", M1, T0 + 2, "three") != STET_DENIED)
            _exit(14);
        stet_persist_close(x.p);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    cmd = stet_asprintf("chmod -R u+w t%d", serial);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
}

static void symlinks(void **state) {
    (void)state;
    static const char *const dirs[] = {"entry_snapshots", "entry_log", "objects", "fresh_objects", "locks", "pins"};
    for (size_t i = 0; i < 6; i++) {
        place x = start();
        OK(put(&x, "b", M1, T0, "one"));
        stet_persist_close(x.p);
        char *cmd = stet_asprintf("mkdir -p elsewhere; cd %s && rm -rf %s && ln -s ../../elsewhere %s", x.dir, dirs[i],
                                  dirs[i]);
        assert_int_equal(system(cmd), 0);
        stet_free(cmd);
        stet_persist_place o = {.dir = x.dir, .local_dir = x.local, .machine_id = "m1"};
        FAILS(stet_persist_open_place(&o, &x.p, &err), STET_DENIED, "symbolic link");
        assert_int_equal(faults_names("elsewhere", ""), 0);
    }
    /* Files: a log, a snapshot, a marker, an object, a lock that point elsewhere. */
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    clean(&x, (stet_persist_cleanup){0});
    char *cmd = stet_asprintf(
        "echo secret > target; cd %s && rm entry_log/*.toml && ln -s ../../../target entry_log/machine_m1.toml", x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    FAILS(put(&x, "b", M1, T0 + 1, "two"), STET_DENIED, "not a regular file");
    cmd = stet_asprintf("cd %s && rm entry_log/*.toml && ln -s ../../../target entry_snapshots/s.toml && cd objects && "
                        "for f in *; do mv ./$f ../../keep; ln -s ../../keep ./$f; done",
                        x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    assert_string_equal(get(&x, "b", M1, 0), "one"); /* an object behind a link is taken by its hash */
    OK(put(&x, "b", M1, T0 + 1, "two"));
    clean(&x, (stet_persist_cleanup){0});
    char *text = NULL;
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("target", 0, &b, &err));
    text = stet_buf_take(&b, NULL);
    assert_string_equal(text, "secret\n");
    stet_free(text);
    stet_persist_close(x.p);
    cmd =
        stet_asprintf("cd %s && rm -f locks/modification.lock && ln -s ../../../target locks/modification.lock", x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    stet_persist_place o = {.dir = x.dir, .local_dir = x.local, .machine_id = "m1"};
    FAILS(stet_persist_open_place(&o, &x.p, &err), STET_DENIED, "not a regular file");
}

/* A device or a pipe in place of a file is not waited for. */
static void odd_files(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    OK(put(&x, "b", M1, T0 + 1, "two"));
    char *cmd = stet_asprintf("cd %s && mkfifo entry_snapshots/p.toml && mkdir entry_snapshots/d.toml && cd objects && "
                              "for f in *; do case $(cat ./$f) in two) rm -f ./$f; mkfifo ./$f;; esac; done",
                              x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    assert_string_equal(get(&x, "b", M1, 0), "one");
    clean(&x, (stet_persist_cleanup){0});
    stet_persist_close(x.p);
}

/* The locks, or everything, are cleared away while the handle is open; names that are no text lie about. */
static void cleared_away(void **state) {
    (void)state;
    place x = start(), y;
    OK(put(&x, "b", M1, T0, "one"));
    char *cmd = stet_asprintf("rm -rf %s/locks %s/fresh_objects %s/entry_log", x.dir, x.dir, x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    OK(put(&x, "b", M1, T0 + 1, "two"));
    /* Another handle that made the lock file anew is excluded all the same. */
    y = x;
    y.p = NULL;
    reopen(&y);
    OK(put(&y, "b", M1, T0 + 2, "three"));
    assert_string_equal(get(&x, "b", M1, 0), "three");
    char at[200];
    snprintf(at, sizeof at, "%s/entry_snapshots", x.dir);
    write_text(at, "\xff\xfe.toml", "junk");
    stet_persist_cleaned out;
    FAILS(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){.include_content = STET_PERSIST_YES}, &out, &err),
          STET_DENIED, "corrupt");
    clean(&x, (stet_persist_cleanup){0});
    cmd = stet_asprintf("rm -rf %s", x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    assert_null(get(&x, "b", M1, 0));
    OK(put(&x, "b", M1, T0 + 3, "four"));
    assert_string_equal(get(&x, "b", M1, 0), "four");
    stet_persist_close(x.p);
    stet_persist_close(y.p);
}

/* A log that a newer program wrote is not written to, and not cut. */
static void newer_log(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    clean(&x, (stet_persist_cleanup){0});
    char at[200];
    snprintf(at, sizeof at, "%s/entry_log", x.dir);
    const char *newer =
        "[header]\nversion = \"2\"\nentry_table_name_parts = [\"block_id\", \"version\"]\n\n[x.1]\nnew = true\n";
    write_text(at, "machine_m1.toml", newer);
    FAILS(put(&x, "b", M1, T0 + 1, "two"), STET_UNSUPPORTED, "version");
    assert_string_equal(get(&x, "b", M1, 0), "one");
    clean(&x, (stet_persist_cleanup){0});
    char *text = slurp(&x, "entry_log/machine_m1.toml");
    assert_string_equal(text, newer);
    stet_free(text);
    stet_persist_close(x.p);
}

/* Where a file system does not tell case apart, the file of a live object may bear its name in another case. */
static void other_case(void **state) {
    (void)state;
    place x = start();
    OK(put(&x, "b", M1, T0, "one"));
    char *cmd = stet_asprintf(
        "cd %s/objects && for f in *; do mv ./$f ./$(echo $f | tr A-Z a-z); done; rm -f ../fresh_objects/*", x.dir);
    assert_int_equal(system(cmd), 0);
    stet_free(cmd);
    days_pass(30);
    clean(&x, (stet_persist_cleanup){.delete_orphan_objects = STET_PERSIST_YES});
    assert_int_equal(names(&x, "objects", ""), 1);
    assert_null(get(&x, "b", M1, 0)); /* here the name is another one */
    days_pass(0);
    stet_persist_close(x.p);
}

static void jumping_clock(void **state) {
    (void)state;
    static const int days[] = {-30000, 0, 60000, -19000, 400, 0};
    place x = start();
    x.config.strategy = (stet_persist_limits){100, -1, -1, -1};
    reopen(&x);
    for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
        days_pass(days[i]);
        char text[32];
        snprintf(text, sizeof text, "v%zu", i);
        OK(put(&x, "b", M1, T0 + i, text));
        clean(&x, (stet_persist_cleanup){.delete_orphan_objects = STET_PERSIST_YES});
        assert_string_equal(get(&x, "b", M1, 0), text);
        assert_string_equal(get(&x, "b", M1, T0), "v0");
        int64_t next;
        OK(stet_persist_tick(x.p, &next, &err));
    }
    days_pass(0);
    stet_persist_close(x.p);
}

static void configuration(void **state) {
    (void)state;
    stet_persist_config c = stet_persist_config_default();
    stet_value v;
    const char *good = "{\"defaults\":{\"auto_variables_format\":\"json\",\"object_id_mode\":\"execution_key_"
                       "qualified\",\"cleanup_on_exit\":false,"
                       "\"max_entries_in_log\":7,\"max_local_bytes\":9000000000000000},\"default_cleanup_strategy\":{"
                       "\"max_entries_per_block\":-1,\"max_entry_age_days\":9}}";
    OK(stet_json_parse(good, strlen(good), &v, &err));
    OK(stet_persist_config_read(v, &c, &err));
    stet_value_release(v);
    assert_string_equal(c.auto_variables_format, "json");
    assert_int_equal(c.object_id_mode, STET_PERSIST_EXECUTION_KEY_QUALIFIED);
    assert_false(c.cleanup_on_exit);
    assert_int_equal(c.strategy.max_entries_per_block, -1);
    static const char *const bad[] = {
        "{\"defaults\":{\"nothing\":1}}",
        "{\"default\":{}}",
        "{\"defaults\":{\"entry_storage_format\":\"sqlite\"}}",
        "{\"defaults\":{\"max_entries_in_log\":0}}",
        "{\"defaults\":{\"grace_days\":-2}}",
        "{\"defaults\":{\"grace_days\":9223372036854775807}}",
        "{\"defaults\":{\"cleanup_on_exit\":1}}",
        "{\"defaults\":{\"verify\":\"never\"}}",
        "{\"defaults\":3}",
        ("{\"default_cleanup_strategy\":{\"max_entries_per_block\":-1,\"max_entries_per_module\":-1,"
         "\"max_entry_age_days\":-1}}"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stet_persist_config d = stet_persist_config_default();
        OK(stet_json_parse(bad[i], strlen(bad[i]), &v, &err));
        FAILS(stet_persist_config_read(v, &d, &err), STET_INVALID, i == 9 ? "at least one" : "persist");
        stet_value_release(v);
    }
}

/* Entries that stand twice, in the log and in a snapshot, count once; a clash between machines is settled alike. */
static void settles_clashes(void **state) {
    (void)state;
    char *result[2];
    for (int order = 0; order < 2; order++) {
        place a = start(), b = start();
        OK(put(&a, "b", M1, T0, order ? "longer" : "short"));
        OK(put(&b, "b", M1, T0, order ? "short" : "longer"));
        clean(&a, (stet_persist_cleanup){0});
        clean(&b, (stet_persist_cleanup){0});
        char *cmd = stet_asprintf("cp %s/objects/* %s/objects/; cp %s/entry_snapshots/* %s/entry_snapshots/", b.dir,
                                  a.dir, b.dir, a.dir);
        assert_int_equal(system(cmd), 0);
        stet_free(cmd);
        assert_string_equal(get(&a, "b", M1, 0), "longer");
        clean(&a, (stet_persist_cleanup){0});
        char *name = only_snapshot(&a);
        result[order] = slurp(&a, name);
        stet_free(name);
        stet_persist_close(a.p);
        stet_persist_close(b.p);
    }
    assert_string_equal(result[0], result[1]);
    stet_free(result[0]);
    stet_free(result[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),       cmocka_unit_test(same_and_clash), cmocka_unit_test(bad_arguments),
        cmocka_unit_test(several_contents), cmocka_unit_test(trivial_ids),    cmocka_unit_test(qualified),
        cmocka_unit_test(falls_back),       cmocka_unit_test(merge),          cmocka_unit_test(default_strategy),
        cmocka_unit_test(size_strategy),    cmocka_unit_test(pins),           cmocka_unit_test(contents_go_and_return),
        cmocka_unit_test(orphans),          cmocka_unit_test(refusals),       cmocka_unit_test(cap),
        cmocka_unit_test(triggers),         cmocka_unit_test(machines),       cmocka_unit_test(large_and_compressed),
        cmocka_unit_test(beyond_four_gib),  cmocka_unit_test(stats),          cmocka_unit_test(uses_are_made_short),
        cmocka_unit_test(checks),           cmocka_unit_test(removed),        cmocka_unit_test(reads_only),
        cmocka_unit_test(symlinks),         cmocka_unit_test(odd_files),      cmocka_unit_test(configuration),
        cmocka_unit_test(cleared_away),     cmocka_unit_test(not_ours),       cmocka_unit_test(newer_log),
        cmocka_unit_test(other_case),       cmocka_unit_test(jumping_clock),  cmocka_unit_test(settles_clashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
