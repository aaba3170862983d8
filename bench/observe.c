/* observe.c - observations: marking, listing, storing, bytes per action.
 *
 * The peer is the same number of bare SQLite rows, where that comparison makes sense. Prints "NAME: ours X, peer Y,
 * ratio Z (goal G)".
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "db/db.h"
#include "memory/observe.h"
#include "os/clock.h"
#include "os/file.h"

static stet_error err;

static void must(stet_status st, const char *what) {
    if (st != STET_OK) {
        fprintf(stderr, "%s: %s\n", what, err.message);
        exit(1);
    }
}
#define ok(call) must((call), #call)

static double now(void) {
    return (double)stet_clock_monotonic_us() / 1e6;
}

/* CPU time of this process, kernel included: what counts where the machine has other work. */
static double cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Rates by the clock and by CPU time. */
typedef struct rate {
    double wall, cpu;
} rate;

static stet_space *open_in(const char *dir, const char *name) {
    char *path = stet_asprintf("%s/%s.db", dir, name);
    stet_space *s;
    ok(stet_space_open_path(path, name, 0, &s, &err));
    free(path);
    return s;
}

/* Names of actions and documents, made before the clock runs: who drives has them. */
typedef char name_text[32];
static const char *node_name(const char *piece, int action) {
    enum { MOST = 100000 };
    static name_text *outs;
    static const char *of;
    if (!outs || of != piece) {
        outs = realloc(outs, MOST * sizeof *outs);
        of = piece;
        for (int i = 0; i < MOST; i++)
            snprintf(outs[i], sizeof *outs, "%s:node%d", piece, i);
    }
    return outs[action];
}

static void add(stet_group *g, const char *piece, int action, const stet_docname *reads, int read_count,
                int64_t value) {
    static stet_path p = STET_PATH_INIT;
    if (!p.buf.len)
        stet_path_push(&p, "value");
    stet_tx *tx;
    const char *out = node_name(piece, action), *key = out + strlen(piece) + 1;
    ok(stet_tx_begin_in(g, &tx, &err));
    for (int i = 0; i < read_count; i++) {
        stet_value v;
        stet_status st = stet_tx_read(tx, NULL, &reads[i], stet_path_ref(&p), STET_RECURSIVE, &v, &err);
        if (st != STET_NOT_FOUND)
            must(st, "read");
        stet_error_clear(&err);
    }
    stet_docname output = {out, ""};
    ok(stet_tx_write(tx, &output, stet_path_ref(&p), stet_value_int(value), &err));
    stet_address declared = {NULL, output, stet_path_ref(&p)};
    stet_observation o = {.key = {piece, "", key},
                          .kind = STET_ACTION_COMPUTATION,
                          .generation = 1,
                          .run = STET_RUN_ACTION,
                          .declared_writes = &declared,
                          .declared_count = 1};
    ok(stet_observe_attach(tx, &o, &err));
    ok(stet_group_add(g, tx, NULL, NULL, &err));
}

static void edit(stet_space *s, const char *cell, int64_t n) {
    stet_tx *tx;
    ok(stet_tx_begin(s, "", &tx, &err));
    ok(stet_tx_set(tx, cell, NULL, stet_value_int(n), &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

/* `count` actions that read three documents and write one. Returns actions stored per second. */
static rate store_actions(stet_space *s, const char *piece, int count, int per_group, int64_t value) {
    static name_text inputs[1000];
    for (int i = 0; i < 1000; i++)
        snprintf(inputs[i], sizeof *inputs, "in%d", i);
    node_name(piece, 0);
    double start = now(), cpu_start = cpu();
    stet_group *g;
    ok(stet_group_begin(s, "", &g, &err));
    for (int i = 0; i < count; i++) {
        stet_docname reads[3] = {{"config", ""}, {inputs[i % 1000], ""}, {i ? node_name(piece, i - 1) : "first", ""}};
        add(g, piece, i, reads, 3, value + i);
        if (i % per_group == per_group - 1)
            ok(stet_group_flush(g, &err));
    }
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    return (rate){count / (now() - start), count / (cpu() - cpu_start)};
}

static void write_inputs(stet_space *s) {
    stet_tx *tx;
    ok(stet_tx_begin(s, "", &tx, &err));
    ok(stet_tx_set(tx, "config", NULL, stet_value_int(1), &err));
    for (int i = 0; i < 1000; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "in%d", i);
        ok(stet_tx_set(tx, cell, NULL, stet_value_int(i), &err));
    }
    ok(stet_tx_commit(tx, NULL, &err));
}

/* Every action reads another member of one document. */
static void register_readers(stet_group *g, int rows) {
    for (int i = 0; i < rows; i++) {
        stet_tx *tx;
        char key[32];
        snprintf(key, sizeof key, "k%d", i);
        ok(stet_tx_begin_in(g, &tx, &err));
        stet_path p = STET_PATH_INIT;
        stet_path_push(&p, "value");
        stet_path_push(&p, key);
        stet_docname shared = {"shared", ""};
        stet_value v;
        if (stet_tx_read(tx, NULL, &shared, stet_path_ref(&p), STET_RECURSIVE, &v, &err) != STET_OK)
            stet_error_clear(&err);
        stet_observation o = {
            .key = {"p", "", key}, .kind = STET_ACTION_COMPUTATION, .generation = 1, .run = STET_RUN_ACTION};
        ok(stet_observe_attach(tx, &o, &err));
        ok(stet_group_add(g, tx, NULL, NULL, &err));
        stet_path_release(&p);
    }
}

static double mark_one(const char *dir, const char *name, int rows) {
    stet_space *s = open_in(dir, name);
    stet_group *g;
    ok(stet_group_begin(s, "", &g, &err));
    register_readers(g, rows);
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    edit(s, "shared/other", 1); /* the document appears, which touches everybody; they run again below */
    ok(stet_group_begin(s, "", &g, &err));
    register_readers(g, rows);
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    stet_space_close(s);
    s = open_in(dir, name);
    enum { ROUNDS = 500 };
    ok(stet_group_begin(s, "", &g, &err));
    double start = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == 1)
            start = cpu();
        stet_tx *tx;
        char cell[48];
        snprintf(cell, sizeof cell, "shared/k%d", i);
        ok(stet_tx_begin_in(g, &tx, &err));
        ok(stet_tx_set(tx, cell, NULL, stet_value_int(i + 7), &err));
        ok(stet_group_add(g, tx, NULL, NULL, &err));
        ok(stet_group_flush(g, &err));
    }
    double each = (cpu() - start) / (ROUNDS - 1);
    stet_group_end(g);
    stet_observe_stats st;
    ok(stet_observe_stat(s, &st, &err));
    if (st.dirty != ROUNDS) {
        fprintf(stderr, "marked %lld\n", (long long)st.dirty);
        exit(1);
    }
    stet_space_close(s);
    return each;
}

static void mark_many(const char *dir, int readers) {
    stet_space *s = open_in(dir, "many");
    stet_group *g;
    ok(stet_group_begin(s, "", &g, &err));
    for (int i = 0; i < readers; i++) {
        stet_docname reads[1] = {{"config", ""}};
        add(g, "p", i, reads, 1, i);
    }
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    edit(s, "other", 1);
    double best = 1e9, best_cpu = 1e9;
    for (int i = 0; i < 5; i++) {
        double start = now(), cpu_start = cpu();
        edit(s, "config", 100 + i);
        double took = now() - start, cpu_took = cpu() - cpu_start;
        best = took < best ? took : best;
        best_cpu = cpu_took < best_cpu ? cpu_took : best_cpu;
    }
    printf("mark %d readers of one write, in one commit: ours %.0f marks/s, by CPU time %.0f/s (goal 300000)\n",
           readers, readers / best, readers / best_cpu);
    stet_space_close(s);
}

static bool count_row(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    (void)action, (void)name, (void)name_len, (void)bytes;
    *(size_t *)ctx += len != 0;
    return true;
}

static stet_db *bare_open(const char *dir, const char *name) {
    static const stet_db_migration m[] = {
        {"CREATE TABLE a(n INTEGER PRIMARY KEY, b BLOB); CREATE TABLE r(k INTEGER, p BLOB, a INTEGER, PRIMARY KEY(k, "
         "p, a)) "
         "WITHOUT ROWID; CREATE TABLE h(n INTEGER PRIMARY KEY, b BLOB); CREATE TABLE c(n INTEGER PRIMARY KEY, b BLOB);",
         NULL}};
    stet_db_opts o = {.kind = "bare", .migrations = m, .migration_count = 1};
    stet_db *db;
    char *path = stet_asprintf("%s/%s.db", dir, name);
    ok(stet_db_open(path, &o, &db, &err));
    free(path);
    return db;
}

/* The rows of one run of an action that reads what it read before: its commit, the head of its output, itself. */
static void bare_again(stet_db *db, int64_t commit, int64_t action) {
    static const char blob[96];
    stet_stmt *q = stet_db_stmt(db, "INSERT INTO c VALUES(?, ?)");
    stet_bind_int(q, 1, commit);
    stet_bind_blob(q, 2, blob, 40);
    stet_run(q);
    q = stet_db_stmt(db, "INSERT OR REPLACE INTO h VALUES(?, ?)");
    stet_bind_int(q, 1, action);
    stet_bind_blob(q, 2, blob, 20);
    stet_run(q);
    q = stet_db_stmt(db, "INSERT OR REPLACE INTO a VALUES(?, ?)");
    stet_bind_int(q, 1, action);
    stet_bind_blob(q, 2, blob, 80);
    stet_run(q);
}

/* The same bytes as bare rows, one transaction per group. */
static rate bare_rows(const char *dir, int count, int per_group) {
    stet_db *db = bare_open(dir, "bare");
    double start = now(), cpu_start = cpu();
    for (int i = 0; i < count; i++) {
        if (i % per_group == 0)
            ok(stet_db_begin_write(db, &err));
        bare_again(db, i, i);
        for (int k = 0; k < 4; k++) {
            stet_stmt *q = stet_db_stmt(db, "INSERT INTO r VALUES(?, ?, ?)");
            stet_bind_int(q, 1, k == 0 ? 0 : k == 1 ? i % 1000 : i);
            stet_bind_blob(q, 2, "value", 6);
            stet_bind_int(q, 3, k * 1000000 + i);
            stet_run(q);
        }
        if (i % per_group == per_group - 1 || i == count - 1)
            ok(stet_db_commit(db, &err));
    }
    rate r = {count / (now() - start), count / (cpu() - cpu_start)};
    stet_db_close(db);
    return r;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One observation in each durable commit, by turns with the same rows in bare SQLite, so that both meet the same disk:
 * medians. */
static void one_per_commit(const char *dir) {
    enum { COMMITS = 1000, ACTIONS = 100 };
    static double ours[COMMITS], theirs[COMMITS];
    stet_space *s = open_in(dir, "single");
    stet_db *db = bare_open(dir, "bare-single");
    write_inputs(s);
    store_actions(s, "p", ACTIONS, ACTIONS, 0);
    double ours_cpu = 0, theirs_cpu = 0;
    for (int i = 0; i < COMMITS; i++) {
        stet_group *g;
        char a[32], b[32];
        int n = i % ACTIONS;
        snprintf(a, sizeof a, "in%d", n);
        snprintf(b, sizeof b, "p:node%d", n - 1);
        stet_docname reads[3] = {{"config", ""}, {a, ""}, {n ? b : "first", ""}};
        double start = now(), cpu_start = cpu();
        ok(stet_group_begin(s, "", &g, &err));
        add(g, "p", n, reads, 3, 1000000 + i);
        ok(stet_group_flush(g, &err));
        stet_group_end(g);
        ours[i] = now() - start;
        ours_cpu += cpu() - cpu_start;
        start = now(), cpu_start = cpu();
        ok(stet_db_begin_write(db, &err));
        bare_again(db, i, n);
        ok(stet_db_commit(db, &err));
        theirs[i] = now() - start;
        theirs_cpu += cpu() - cpu_start;
    }
    qsort(ours, COMMITS, sizeof *ours, by_size);
    qsort(theirs, COMMITS, sizeof *theirs, by_size);
    printf(
        "one observation per synced commit: ours %.0f us (%.0f of processor), bare rows %.0f us (%.0f), rate of bare "
        "%.2f (goal 0.90)\n",
        ours[COMMITS / 2] * 1e6, ours_cpu / COMMITS * 1e6, theirs[COMMITS / 2] * 1e6, theirs_cpu / COMMITS * 1e6,
        theirs[COMMITS / 2] / ours[COMMITS / 2]);
    stet_space_close(s);
    stet_db_close(db);
}

/* What the tables say, in rows of the plain layout: one for each commit, head, name, action, read and write. */
static double facts(stet_space *s) {
    stet_observe_stats st;
    ok(stet_observe_stat(s, &st, &err));
    return (double)(st.read_rows + st.write_rows +
                    stet_db_int(stet_space_db(s),
                                "SELECT (SELECT count(*) FROM commits) + (SELECT count(*) FROM head)"
                                " + (SELECT count(*) FROM document) + (SELECT count(*) FROM action)",
                                0));
}

/* New actions with three reads and one write, a thousand in each durable commit. */
static void thousand_per_commit(const char *dir) {
    enum { ACTIONS = 30000 };
    stet_space *s = open_in(dir, "thousand");
    write_inputs(s);
    double before = facts(s);
    rate r = store_actions(s, "p", ACTIONS, 1000, 0);
    double rows = (facts(s) - before) / ACTIONS;
    printf("1000 observations per synced commit, %.0f facts each: ours %.0f/s, by CPU time %.0f/s (goal 300000)\n",
           rows, rows * r.wall, rows * r.cpu);
    stet_space_close(s);
}

/* A chain of `actions`, of which the last but ten is dirty: what follows from it is derived, in a handle that has just
 * been opened. The best of some, in CPU time. */
static double derive_stale(const char *dir, const char *name, int actions, size_t *reached) {
    stet_space *s = open_in(dir, name);
    char cell[48];
    snprintf(cell, sizeof cell, "p:node%d", actions - 11);
    edit(s, cell, -5);
    stet_space_close(s);
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        s = open_in(dir, name);
        stet_standing all = {0};
        double start = cpu();
        ok(stet_observe_standing(s, 0, NULL, &all, &err));
        double took = cpu() - start;
        best = took < best ? took : best;
        *reached = all.stale.len;
        stet_standing_release(&all);
        stet_space_close(s);
    }
    return best;
}

static int by_cpu(const void *a, const void *b) {
    const rate *x = a, *y = b;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* `observe store [ROUNDS [GROUP [ACTIONS]]]`: storing alone, several times over, for a profiler. */
static void store_only(const char *dir, int rounds, int per_group, int actions) {
    stet_space *s = open_in(dir, "actions");
    write_inputs(s);
    for (int i = 0; i < rounds; i++) {
        rate r = store_actions(s, "p", actions, per_group, 1000000 * i);
        printf("%d actions: %.0f/s, by CPU time %.0f/s\n", actions, r.wall, r.cpu);
    }
    stet_space_close(s);
    ok(stet_file_remove_tree(dir, &err));
}

int main(int argc, char **argv) {
    mallopt(M_MXFAST, 0); /* as src/main.c does, and for its reason */
    char dir[] = "observe-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    if (argc > 1 && strcmp(argv[1], "store") == 0) {
        store_only(dir, argc > 2 ? atoi(argv[2]) : 6, argc > 3 ? atoi(argv[3]) : 10000,
                   argc > 4 ? atoi(argv[4]) : 100000);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "single") == 0) { /* for strace */
        one_per_commit(dir);
        ok(stet_file_remove_tree(dir, &err));
        return 0;
    }
    /* First, in a heap that nobody has used: what was stored before would weigh on it. */
    enum { ACTIONS = 100000 };
    stet_space *s = open_in(dir, "actions");
    write_inputs(s);
    rate first = store_actions(s, "p", ACTIONS, 10000, 0);
    enum { ROUNDS = 5 };
    rate again[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        again[i] = store_actions(s, "p", ACTIONS, 10000, 1000000 * (i + 1));
    qsort(again, ROUNDS, sizeof *again, by_cpu);
    rate bare = bare_rows(dir, ACTIONS, 10000);
    printf(
        "first run of %d actions with 3 reads and 1 write, groups of 10000: ours %.0f/s, by CPU time %.0f/s, bare rows "
        "by CPU time %.0f/s, ratio %.2f (goal 80000)\n",
        ACTIONS, first.wall, first.cpu, bare.cpu, bare.cpu / first.cpu);
    printf("the same again, new values: by CPU time ours %.0f/s (median of %d, from %.0f to %.0f), bare rows %.0f/s, "
           "ratio %.2f (goal 80000)\n",
           again[ROUNDS / 2].cpu, ROUNDS, again[0].cpu, again[ROUNDS - 1].cpu, bare.cpu,
           bare.cpu / again[ROUNDS / 2].cpu);

    one_per_commit(dir);
    thousand_per_commit(dir);

    size_t rows = 0;
    double start = now(), cpu_start = cpu();
    stet_action_filter f = {.generation = -1};
    ok(stet_observe_scan(s, 0, &f, count_row, &rows, &err));
    printf("list %zu snapshots: ours %.0f rows/s, by CPU time %.0f/s (goal 1000000)\n", rows,
           (double)rows / (now() - start), (double)rows / (cpu() - cpu_start));

    stet_observe_stats st;
    ok(stet_observe_stat(s, &st, &err));
    int64_t bytes = stet_db_int(stet_space_db(s),
                                "SELECT sum(pgsize) FROM dbstat WHERE name IN ('action', 'action_name', 'fingerprint',"
                                " 'place_index', 'mark', 'past_observation')",
                                -1);
    printf("scheduler tables of %d actions: %.1f MiB (goal 64)\n", ACTIONS, (double)bytes / 1048576);

    double few = mark_one(dir, "few", 1000), lots = mark_one(dir, "lots", 100000);
    printf("mark one reader, by CPU time: among 100000 rows %.1f us, among 1000 rows %.1f us, ratio %.2f (goal 1)\n",
           lots * 1e6, few * 1e6, lots / few);
    mark_many(dir, 10000);

    stet_space_close(s);
    enum { FEW = 1000 };
    s = open_in(dir, "chain");
    write_inputs(s);
    store_actions(s, "p", FEW, 1000, 0);
    stet_space_close(s);
    size_t reached = 0;
    double among_few = derive_stale(dir, "chain", FEW, &reached);
    double among_all = derive_stale(dir, "actions", ACTIONS, &reached);
    printf("derive stale, by CPU time: %zu reached among %d %.0f us, among %d %.0f us, ratio %.2f (goal 1)\n", reached,
           ACTIONS, among_all * 1e6, FEW, among_few * 1e6, among_all / among_few);
    ok(stet_file_remove_tree(dir, &err));
    return 0;
}
