/* repo.c - the repository of calls, compared with bare SQLite that stores the same bytes.
 *
 * Measures how fast a pinned call is found, what a pin costs as the exec map grows, and 10,000 small objects in one
 * transaction. Times are processor time, since the disk is shared.
 */

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "repo/repo.h"

enum { PINS = 100000, LOOKS = 1000000, OBJECTS = 10000 };

static stet_error err;

static void must(stet_status status, const char *what) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "bench/repo: %s: %s\n", what, err.message);
    exit(1);
}

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Nodes and execs, stored in one transaction. */
static stet_pin *prepare(stet_repo *r) {
    stet_pin *pins = malloc(PINS * sizeof *pins);
    must(stet_repo_begin(r, &err), "begin");
    stet_hash dag;
    must(stet_repo_put_result(r, stet_value_int(1), &dag, &err), "result");
    for (int i = 0; i < PINS; i++) {
        stet_hash datum, node;
        must(stet_datum_id(stet_value_int(i), stet_repo_sink(r), &datum, &err), "datum");
        must(stet_node_literal(datum, stet_repo_sink(r), &node, &err), "literal");
        must(stet_node_call("dml+exec://bench/f", &node, 1, stet_repo_sink(r), &pins[i].node, &err), "call");
        stet_exec e = {.node = pins[i].node, .result = dag, .ok = true, .attempt = 1};
        must(stet_repo_put_exec(r, &e, &pins[i].exec, &err), "exec");
    }
    must(stet_repo_commit(r, &err), "commit");
    return pins;
}

static void look_up(stet_repo *r, const stet_pin *pins) {
    bool there;
    stet_hash exec;
    double begin = cpu();
    for (int i = 0; i < LOOKS; i++) {
        must(stet_repo_pinned(r, pins[(size_t)i * 7919 % PINS].node, &there, &exec, &err), "pinned");
        if (!there)
            exit(1);
    }
    double rate = LOOKS / (cpu() - begin);
    printf("pinned look-ups of %d: ours %.0f/s, peer 100000/s, ratio %.2f (goal 1.00)\n", PINS, rate, rate / 100000);
}

static void pin(stet_repo *r, const stet_pin *pins, size_t at, size_t count) {
    double begin = cpu();
    for (size_t i = 0; i < count; i++)
        must(stet_repo_pin(r, &pins[at + i], 1, NULL, &err), "pin");
    double each = (cpu() - begin) / (double)count;
    printf("one pin when there are %zu: %.0f microseconds\n", at, each * 1e6);
}

static double put_ours(void) {
    stet_repo *r;
    must(stet_repo_open_path("ours.db", 0, &r, &err), "open");
    must(stet_repo_begin(r, &err), "begin"); /* makes the file: not part of it, as it is not for the peer */
    must(stet_repo_commit(r, &err), "commit");
    double begin = cpu();
    must(stet_repo_begin(r, &err), "begin");
    for (int i = 0; i < OBJECTS; i++) {
        stet_hash id;
        must(stet_datum_id(stet_value_int(i), stet_repo_sink(r), &id, &err), "put");
    }
    must(stet_repo_commit(r, &err), "commit");
    double took = cpu() - begin;
    stet_repo_close(r);
    return took;
}

static double put_bare(void) {
    sqlite3 *db;
    sqlite3_stmt *s;
    if (sqlite3_open("bare.db", &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE object(number INTEGER PRIMARY "
                     "KEY, id BLOB NOT NULL UNIQUE, type INTEGER, bytes BLOB)",
                     NULL, NULL, NULL) != SQLITE_OK)
        exit(1);
    double begin = cpu();
    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    sqlite3_prepare_v2(db, "INSERT OR IGNORE INTO object(id, type, bytes) VALUES(?, 0, ?)", -1, &s, NULL);
    for (int i = 0; i < OBJECTS; i++) {
        char text[80];
        int len = snprintf(text, sizeof text, "{\"kind\":\"int\",\"payload\":%d,\"type\":\"datum\"}", i);
        stet_hash id = stet_hash_of(text, (size_t)len);
        sqlite3_bind_blob(s, 1, id.bytes, 32, SQLITE_STATIC);
        sqlite3_bind_blob(s, 2, text, len, SQLITE_STATIC);
        if (sqlite3_step(s) != SQLITE_DONE)
            exit(1);
        sqlite3_reset(s);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    double took = cpu() - begin;
    sqlite3_finalize(s);
    sqlite3_close(db);
    return took;
}

int main(void) {
    stet_repo *r;
    must(stet_repo_open_path("pins.db", 0, &r, &err), "open");
    stet_pin *pins = prepare(r);
    pin(r, pins, 0, 100);
    must(stet_repo_pin(r, pins, PINS - 1000, NULL, &err), "pin many");
    pin(r, pins, PINS - 1000, 1000);
    look_up(r, pins);
    free(pins);
    stet_repo_close(r);
    double bare = put_bare(), ours = put_ours();
    printf("%d small objects in one transaction: ours %.1f ms, peer %.1f ms, ratio %.2f (goal 3.00)\n", OBJECTS,
           ours * 1e3, bare * 1e3, ours / bare);
    return 0;
}
