/* repo.c - bytes that come into the repository of calls from elsewhere.
 *
 * They are streams of objects, replies of programs that speak for remotes, names of refs, and records as they lie in
 * the file. None of them crashes, and what is accepted is complete.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "repo/execmap.h"
#include "repo/history.h"
#include "repo/hub_kind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stet_repo *repo;

static void must(bool holds) {
    if (!holds)
        abort();
}

static void open_once(void) {
    char path[64];
    if (repo)
        return;
    snprintf(path, sizeof path, "/tmp/stet-fuzz-repo.%d.db", (int)getpid());
    must(stet_repo_open_path(path, 0, &repo, NULL) == STET_OK);
    must(stet_repo_begin(repo, NULL) == STET_OK && stet_repo_commit(repo, NULL) == STET_OK);
    unlink(path);
}

/* What is applied can be read. */
static stet_status read_back(void *ctx, const stet_sent *sent, stet_error *err) {
    stet_record_type type;
    stet_value v;
    (void)ctx;
    (void)err;
    if (!sent->lost) {
        must(stet_repo_get_any(repo, sent->id, &type, &v, NULL) == STET_OK);
        stet_value_release(v);
    }
    return STET_OK;
}

static void as_pack(const char *bytes, size_t len) {
    stet_copy_report report = {0};
    must(stet_repo_begin(repo, NULL) == STET_OK);
    if (stet_pack_apply(repo, bytes, len, &report, NULL) == STET_OK)
        must(stet_pack_each(bytes, len, read_back, NULL, NULL) == STET_OK);
    stet_repo_rollback(repo);
}

/* The bytes as the body of records in a stream whose checksums are right. */
static void as_objects(const char *bytes, size_t len) {
    stet_pack p = STET_PACK_INIT;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(bytes + at, 0, len - at);
        size_t n = end ? (size_t)(end - bytes) - at : len - at;
        stet_pack_object(&p, stet_hash_of(bytes + at, n), bytes + at, n);
        if (n % 3 == 0)
            stet_pack_lost(&p, stet_hash_of(bytes + at, n), STET_RECORD_DATUM, bytes + at, n);
        at += n + 1;
    }
    stet_pack_end(&p);
    as_pack(p.bytes.data, p.bytes.len);
    stet_pack_release(&p);
}

static bool count_one(void *ctx, stet_hash id, stet_value record) {
    size_t *left = ctx;
    (void)id;
    (void)record;
    return --*left > 0;
}

/* As rows that somebody wrote into the file, and everything that reads them. */
static void as_rows(const char *bytes, size_t len) {
    STET_VEC(stet_hash) ids = {0};
    must(stet_repo_begin(repo, NULL) == STET_OK);
    for (size_t at = 0; at < len && ids.len < 20;) {
        const char *end = memchr(bytes + at, 0, len - at);
        size_t n = end ? (size_t)(end - bytes) - at : len - at;
        stet_record_type type = STET_RECORD_DATUM;
        stet_record_says(bytes + at, n, &type);
        stet_hash id = stet_hash_of(bytes + at, n);
        stet_stmt *s = stet_db_stmt(repo->db, "INSERT OR REPLACE INTO object(id, type, state, added_s, bytes) "
                                              "VALUES(?, ?, 0, 1, ?)");
        stet_bind_id(s, 1, &id);
        stet_bind_int(s, 2, type);
        stet_bind_blob(s, 3, bytes + at, n);
        stet_run(s);
        *stet_vec_add(&ids) = id;
        at += n + 1;
    }
    for (size_t i = 0; i < ids.len; i++) {
        stet_value v;
        stet_hash out;
        bool there;
        size_t left = 100;
        stet_pins pins = {0};
        if (stet_repo_value(repo, ids.at[i], &v, NULL) == STET_OK)
            stet_value_release(v);
        if (stet_repo_dag_value(repo, ids.at[i], &v, NULL) == STET_OK)
            stet_value_release(v);
        stet_status st = stet_repo_eval(repo, ids.at[i], &out, NULL);
        st = stet_execmap_list(repo, ids.at[i], &pins, NULL) == STET_OK ? st : st;
        st = stet_execmap_get(repo, ids.at[i], ids.at[0], &there, &out, NULL) == STET_OK ? st : st;
        st = stet_history_log(repo, ids.at[i], 100, count_one, &left, NULL) == STET_OK ? st : st;
        stet_vec_release(&pins);
    }
    stet_repo_rollback(repo);
    stet_vec_release(&ids);
}

static stet_status take(void *ctx, const stet_sent *sent, stet_error *err) {
    (void)err;
    *(size_t *)ctx += sent->len;
    return STET_OK;
}

static void as_reply(const char *bytes, size_t len) {
    stet_value v;
    stet_refs refs = {0};
    stet_hash ids[2] = {{{0}}, {{1}}};
    bool have[2];
    size_t sum = 0, given, missing;
    if (stet_json_parse(bytes, len, &v, NULL) != STET_OK)
        return;
    if (stet_external_refs_of("x", v, "refs/", &refs, NULL) == STET_OK)
        for (size_t i = 0; i < refs.len; i++)
            must(!stet_ref_wrong(refs.at[i].name));
    stet_refs_release(&refs);
    stet_status st = stet_external_have_of("x", v, ids, 2, have, NULL);
    st = stet_external_objects_of("x", v, take, &sum, &given, &missing, NULL) == STET_OK ? st : st;
    st = stet_external_updated_of("x", v, NULL) == STET_OK ? st : st;
    stet_value_release(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    open_once();
    as_pack(text, size);
    as_objects(text, size);
    as_rows(text, size);
    as_reply(text, size);
    must(!stet_ref_wrong(text) || *stet_ref_wrong(text));
    free(text);
    return 0;
}
