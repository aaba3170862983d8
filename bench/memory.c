/* memory.c - commits, groups of commits, reads and opening of a space.
 *
 * The peer is a bare SQLite loop that writes the same bytes (the same rows, keys and blob lengths) with the same
 * durability in the same run.
 *
 *     memory [DIR]     works in a new directory below DIR (default: the current one)
 */

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory/space.h"
#include "os/clock.h"
#include "os/file.h"

static stet_error err;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != STET_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, err.message);                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void sql(sqlite3 *db, const char *text) {
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", text, sqlite3_errmsg(db));
        exit(1);
    }
}

static double seconds(void) {
    return (double)stet_clock_monotonic_us() / 1e6;
}

/* What the processor did for this process: on a machine that others use too, steadier than the clock. */
static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct peer {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *log, *head;
    int64_t seq;
} peer;

static sqlite3_stmt *prepare(sqlite3 *db, const char *text) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, text, -1, &s, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", text, sqlite3_errmsg(db));
        exit(1);
    }
    return s;
}

static void peer_open(peer *p, const char *path) {
    memset(p, 0, sizeof *p);
    if (sqlite3_open(path, &p->db) != SQLITE_OK)
        exit(1);
    sql(p->db,
        "PRAGMA journal_mode=wal; PRAGMA synchronous=full; PRAGMA cache_size=-8192;"
        "CREATE TABLE commits(seq INTEGER PRIMARY KEY, branch INTEGER, time_ms INTEGER, changes BLOB, body BLOB);"
        "CREATE TABLE head(key INTEGER PRIMARY KEY, seq INTEGER, live INTEGER, links INTEGER, chain INTEGER, bytes "
        "INTEGER, value BLOB)");
    p->begin = prepare(p->db, "BEGIN IMMEDIATE");
    p->commit = prepare(p->db, "COMMIT");
    p->log = prepare(p->db, "INSERT INTO commits VALUES(?, 0, ?, ?, ?)");
    p->head = prepare(p->db, "INSERT OR REPLACE INTO head VALUES(?, ?, 1, 1, 1, 1, ?)");
}

static void run(sqlite3_stmt *s) {
    sqlite3_step(s);
    if (sqlite3_reset(s) != SQLITE_OK)
        exit(1);
}

static char filler[1 << 16];

static void peer_commits(peer *p, int64_t first_key, int count, size_t changes, size_t body, size_t value) {
    run(p->begin);
    for (int i = 0; i < count; i++) {
        sqlite3_bind_int64(p->log, 1, ++p->seq);
        sqlite3_bind_int64(p->log, 2, 1700000000000);
        sqlite3_bind_blob(p->log, 3, filler, (int)changes, SQLITE_STATIC);
        sqlite3_bind_blob(p->log, 4, filler, (int)body, SQLITE_STATIC);
        run(p->log);
    }
    for (int i = 0; i < count; i++) {
        sqlite3_bind_int64(p->head, 1, first_key + i);
        sqlite3_bind_int64(p->head, 2, p->seq);
        if (value)
            sqlite3_bind_blob(p->head, 3, filler, (int)value, SQLITE_STATIC);
        else
            sqlite3_bind_null(p->head, 3);
        run(p->head);
    }
    run(p->commit);
}

static void peer_close(peer *p) {
    sqlite3_finalize(p->begin);
    sqlite3_finalize(p->commit);
    sqlite3_finalize(p->log);
    sqlite3_finalize(p->head);
    sqlite3_close(p->db);
}

/* What the newest commit of a space and its head weigh. */
static void weigh(const char *path, size_t *changes, size_t *body, size_t *value) {
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        exit(1);
    sqlite3_stmt *s =
        prepare(db, "SELECT length(changes), length(body), coalesce(length(value), 0) FROM commits c JOIN head h"
                    " ON h.seq = c.seq ORDER BY c.seq DESC LIMIT 1");
    if (sqlite3_step(s) != SQLITE_ROW)
        exit(1);
    *changes = (size_t)sqlite3_column_int64(s, 0);
    *body = (size_t)sqlite3_column_int64(s, 1);
    *value = (size_t)sqlite3_column_int64(s, 2);
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static stet_pathref value_key(stet_path *p, const char *key) {
    stet_path_set(p, STET_PATH_ROOT);
    stet_path_push(p, "value");
    if (key)
        stet_path_push(p, key);
    return stet_path_ref(p);
}

static void write_field(stet_space *s, const char *id, stet_path *p, int64_t n) {
    stet_tx *tx;
    stet_docname name = {id, NULL};
    MUST(stet_tx_begin(s, NULL, &tx, &err));
    MUST(stet_tx_write(tx, &name, value_key(p, "count"), stet_value_int(n), &err));
    MUST(stet_tx_commit(tx, NULL, &err));
}

static stet_value small_document(int64_t n) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "count", stet_value_int(n));
    stet_value_put(&v, "name", stet_value_string("a document of ordinary size"));
    stet_value_put(&v, "tags", stet_value_array());
    return v;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Single commits, ours and the peer's in turn, so that both meet the same disk. Medians. */
static void bench_single(void) {
    enum { ROUNDS = 400 };
    stet_space *s;
    stet_path p = STET_PATH_INIT;
    peer q;
    MUST(stet_space_open_path("single.db", "single", 0, &s, &err));
    stet_tx *tx;
    MUST(stet_tx_begin(s, NULL, &tx, &err));
    MUST(stet_tx_set(tx, "doc", NULL, small_document(0), &err));
    MUST(stet_tx_commit(tx, NULL, &err));
    write_field(s, "doc", &p, 100000);
    size_t changes, body, value;
    weigh("single.db", &changes, &body, &value);
    peer_open(&q, "single-peer.db");
    peer_commits(&q, 1, 1, changes, body, value);
    static double ours[ROUNDS], theirs[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = seconds();
        write_field(s, "doc", &p, 100001 + i);
        double middle = seconds();
        peer_commits(&q, 1, 1, changes, body, value);
        ours[i] = middle - start;
        theirs[i] = seconds() - middle;
    }
    qsort(ours, ROUNDS, sizeof *ours, by_size);
    qsort(theirs, ROUNDS, sizeof *theirs, by_size);
    printf("memory single commit of a one-field patch (us, median): ours %.1f, peer %.1f, ratio %.2f (goal 1.50)\n",
           ours[ROUNDS / 2] * 1e6, theirs[ROUNDS / 2] * 1e6, ours[ROUNDS / 2] / theirs[ROUNDS / 2]);
    peer_close(&q);
    stet_space_close(s);
    stet_path_release(&p);
}

static void one_group(stet_space *s, stet_group *g, stet_path *p, int count, int64_t n) {
    (void)s;
    for (int i = 0; i < count; i++) {
        char id[32];
        stet_tx *tx;
        snprintf(id, sizeof id, "doc:%06d", i);
        stet_docname name = {id, NULL};
        MUST(stet_tx_begin_in(g, &tx, &err));
        MUST(stet_tx_write(tx, &name, value_key(p, "count"), stet_value_int(n + i), &err));
        MUST(stet_group_add(g, tx, NULL, NULL, &err));
    }
    MUST(stet_group_flush(g, &err));
}

static void bench_groups(void) {
    enum { GROUP = 1000, ROUNDS = 40 };
    stet_space *s;
    stet_group *g;
    stet_path p = STET_PATH_INIT;
    peer q;
    MUST(stet_space_open_path("group.db", "group", 0, &s, &err));
    MUST(stet_group_begin(s, NULL, &g, &err));
    for (int i = 0; i < GROUP; i++) {
        char id[32];
        stet_tx *tx;
        snprintf(id, sizeof id, "doc:%06d", i);
        MUST(stet_tx_begin_in(g, &tx, &err));
        MUST(stet_tx_set(tx, id, NULL, small_document(i), &err));
        MUST(stet_group_add(g, tx, NULL, NULL, &err));
    }
    MUST(stet_group_flush(g, &err));
    one_group(s, g, &p, GROUP, 100000);
    size_t changes, body, value;
    weigh("group.db", &changes, &body, &value);
    peer_open(&q, "group-peer.db");
    peer_commits(&q, 1, GROUP, changes, body, value);
    static double ours[ROUNDS], theirs[ROUNDS], ours_cpu[ROUNDS], theirs_cpu[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = seconds(), cpu = cpu_seconds();
        one_group(s, g, &p, GROUP, 200000 + i);
        double middle = seconds(), cpu_middle = cpu_seconds();
        peer_commits(&q, 1, GROUP, changes, body, value);
        ours[i] = middle - start;
        ours_cpu[i] = cpu_middle - cpu;
        theirs[i] = seconds() - middle;
        theirs_cpu[i] = cpu_seconds() - cpu_middle;
    }
    qsort(ours, ROUNDS, sizeof *ours, by_size);
    qsort(theirs, ROUNDS, sizeof *theirs, by_size);
    qsort(ours_cpu, ROUNDS, sizeof *ours_cpu, by_size);
    qsort(theirs_cpu, ROUNDS, sizeof *theirs_cpu, by_size);
    double scale = 1e6 / GROUP;
    enum { MIDDLE = ROUNDS / 2 };
    printf("memory groups of 1000 commits (us per commit, median): ours %.2f, peer %.2f, ratio %.2f (goal 2.50)\n",
           ours[MIDDLE] * scale, theirs[MIDDLE] * scale, ours[MIDDLE] / theirs[MIDDLE]);
    printf("memory groups of 1000 commits (us of processor per commit, median): ours %.2f, peer %.2f, ratio %.2f\n",
           ours_cpu[MIDDLE] * scale, theirs_cpu[MIDDLE] * scale, ours_cpu[MIDDLE] / theirs_cpu[MIDDLE]);
    peer_close(&q);
    stet_group_end(g);
    stet_space_close(s);
    stet_path_release(&p);
}

static void bench_read(void) {
    enum { READS = 1000000 };
    stet_space *s;
    stet_tx *tx;
    stet_path p = STET_PATH_INIT;
    MUST(stet_space_open_path("read.db", "read", 0, &s, &err));
    stet_value big = stet_value_object();
    for (int i = 0; i < 16000; i++) {
        char key[32];
        snprintf(key, sizeof key, "member%05d", i);
        stet_value_put(&big, key, stet_value_stringf("the value of member %05d, with some text in it", i));
    }
    MUST(stet_tx_begin(s, NULL, &tx, &err));
    MUST(stet_tx_set(tx, "big", NULL, big, &err));
    MUST(stet_tx_commit(tx, NULL, &err));
    stet_docname name = {"big", NULL};
    stet_value v;
    MUST(stet_tx_begin(s, NULL, &tx, &err));
    stet_pathref path = value_key(&p, "member07777");
    double start = seconds();
    for (int i = 0; i < READS; i++)
        MUST(stet_tx_read(tx, NULL, &name, path, STET_RECURSIVE, &v, &err));
    double inside = (seconds() - start) / READS;
    stet_tx_abort(tx);
    start = seconds();
    for (int i = 0; i < READS / 100; i++) {
        MUST(stet_space_get(s, NULL, "big/member07777", NULL, -1, &v, &err));
        stet_value_release(v);
    }
    double alone = (seconds() - start) / (READS / 100.0);
    printf("memory read of one field of a cached 1 MB document (ns): in a transaction %.0f (goal below 1000), alone "
           "with a "
           "look at the file %.0f\n",
           inside * 1e9, alone * 1e9);
    start = seconds();
    enum { PATCHES = 200 };
    for (int i = 0; i < PATCHES; i++)
        write_field(s, "big", &p, i);
    printf("memory one-field patch of a 1 MB document (us per durable commit): %.0f\n",
           (seconds() - start) / PATCHES * 1e6);
    stet_space_close(s);
    start = seconds();
    MUST(stet_space_open_path("read.db", "read", 0, &s, &err));
    MUST(stet_space_get(s, NULL, "big/member07777", NULL, -1, &v, &err));
    stet_value_release(v);
    printf("memory first read of that document by a new handle, 200 patches on (ms): %.1f\n",
           (seconds() - start) * 1e3);
    stet_space_close(s);
    stet_path_release(&p);
}

static void bench_open(int documents) {
    stet_space *s;
    stet_group *g;
    MUST(stet_space_open_path("many.db", "many", 0, &s, &err));
    MUST(stet_group_begin(s, NULL, &g, &err));
    double start = seconds();
    for (int i = 0; i < documents; i++) {
        char id[32];
        stet_tx *tx;
        snprintf(id, sizeof id, "doc:%07d", i);
        MUST(stet_tx_begin_in(g, &tx, &err));
        MUST(stet_tx_set(tx, id, NULL, stet_value_int(i), &err));
        MUST(stet_group_add(g, tx, NULL, NULL, &err));
        if (i % 10000 == 9999)
            MUST(stet_group_flush(g, &err));
    }
    MUST(stet_group_flush(g, &err));
    double made = seconds() - start;
    stet_group_end(g);
    stet_space_close(s);
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        start = seconds();
        MUST(stet_space_open_path("many.db", "many", 0, &s, &err));
        double took = seconds() - start;
        best = took < best ? took : best;
        stet_value v;
        MUST(stet_space_get(s, NULL, "doc:0000007", NULL, -1, &v, &err));
        stet_space_close(s);
    }
    printf("memory opening a space of %d documents (ms): %.3f (goal below 2)\n", documents, best * 1e3);
    printf("memory new documents in groups of 10000 (commits/s): %.0f\n", documents / made);
}

int main(int argc, char **argv) {
    char *dir = stet_file_temp_name(argc > 1 ? argv[1] : ".", "bench-memory");
    MUST(stet_file_mkdirs(dir, 0755, &err));
    if (chdir(dir) != 0)
        return 1;
    bench_single();
    bench_groups();
    bench_read();
    bench_open(1000000);
    if (chdir("..") != 0)
        return 1;
    MUST(stet_file_remove_tree(dir, &err));
    stet_free(dir);
    return 0;
}
