/* call_get.c - the operation call get: a file that a call made, or its result, written to disk. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "operation/call_common.h"
#include "os/file.h"

/* The DAG that a call gave: of its newest attempt, or of what is pinned for its node. */
static stet_status find_result(call_session *s, const char *id, stet_hash *dag, stet_error *err) {
    stet_attempt a;
    stet_exec record;
    stet_hash exec = {{0}}, node;
    bool there = false;
    stet_error none = STET_ERROR_INIT;
    stet_status status = call_find(s, id, &a, &none);
    if (status == STET_OK) {
        there = stet_hash_of_text(stet_value_get(a.detail, "exec"), &exec);
        if (!there)
            status = stet_repo_pinned(s->repo, a.node, &there, &exec, err);
        stet_attempt_release(&a);
    } else if (status == STET_NOT_FOUND && stet_repo_find(s->repo, id, &node, NULL) == STET_OK) {
        stet_error_clear(&none);
        status = stet_repo_pinned(s->repo, node, &there, &exec, err);
    }
    stet_error_move(err, &none);
    if (status == STET_OK && !there) {
        status = stet_fail(err, STET_NOT_FOUND, "the call %.64s has no result", id);
        stet_hint(err, "wait for it with: stet call wait %.64s", id);
    }
    if (status == STET_OK)
        status = stet_repo_get_exec(s->repo, exec, &record, err);
    if (status == STET_OK) {
        *dag = record.result;
        stet_value_release(record.timings);
    }
    return status;
}

/* The part of the result that is asked for: a file by its name, the only one, or all of it. Borrowed. */
static stet_status pick(stet_value value, const char *name, stet_value *out, stet_error *err) {
    stet_value files = stet_value_get(value, "files");
    bool any = stet_value_type(files) == STET_TYPE_OBJECT && stet_value_count(files) > 0;
    *out = value;
    if (name && !(any && stet_value_find(files, name, strlen(name), out))) {
        stet_fail(err, STET_NOT_FOUND, "the call made no file %.300s", name);
        for (size_t i = 0; any && i < stet_value_count(files) && i < 1; i++)
            stet_hint(err, "it made %s", stet_value_key_at(files, i, NULL));
        return STET_NOT_FOUND;
    }
    if (!name && any && stet_value_count(files) == 1)
        *out = stet_value_at(files, 0);
    return STET_OK;
}

/* Writes it as a file has it: contents as they are, a text without quotes, anything else as JSON. */
static stet_status write_value(call_session *s, stet_value v, int fd, const char *path, stet_error *err) {
    stet_hash datum;
    size_t len = 0;
    stet_value bytes = stet_value_get(stet_value_get(v, "/"), "bytes@1");
    if (stet_value_is_blob(v, &datum))
        return stet_repo_write_file(s->repo, datum, fd, path, err);
    if (stet_value_type(bytes) == STET_TYPE_STRING) {
        size_t n;
        const char *text = stet_value_as_string(&bytes, &n);
        char *plain = stet_alloc(n + 1);
        stet_status status = stet_base64url_decode(text, n, plain, &len)
                                 ? stet_file_write_all(fd, path, plain, len, err)
                                 : stet_fail(err, STET_CORRUPT, "bytes@1 is not base64url");
        stet_free(plain);
        return status;
    }
    if (stet_value_type(v) == STET_TYPE_STRING) {
        const char *text = stet_value_as_string(&v, &len);
        return stet_file_write_all(fd, path, text, len, err);
    }
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_status status = stet_file_write_all(fd, path, text, len, err);
    stet_free(text);
    return status;
}

/* Complete or not at all: a file that was there stays until the new one is. */
static stet_status write_whole(call_session *s, stet_value v, const char *path, int64_t *size, stet_error *err) {
    char *dir = stet_file_dirname(path), *temp = stet_file_temp_name(dir, ".stet-temp");
    struct stat st = {0};
    int fd = stet_sys_open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    stet_status status =
        fd < 0 ? stet_fail_errno(err, errno, "cannot write %s", temp) : write_value(s, v, fd, temp, err);
    if (status == STET_OK && (stet_sys_fsync(fd) != 0 || stet_sys_fstat(fd, &st) != 0))
        status = stet_fail_errno(err, errno, "cannot sync %s", temp);
    *size = (int64_t)st.st_size;
    if (fd >= 0 && stet_sys_close(fd) != 0 && status == STET_OK)
        status = stet_fail_errno(err, errno, "cannot close %s", temp);
    if (status == STET_OK && stet_sys_rename(temp, path) != 0)
        status = stet_fail_errno(err, errno, "cannot write %s", path);
    if (status == STET_OK)
        status = stet_file_sync_dir(dir, err);
    else if (fd >= 0)
        unlink(temp);
    stet_free(dir);
    stet_free(temp);
    return status;
}

stet_status call_get_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold, name_hold, out_hold, value, part;
    stet_hash dag;
    int64_t size = 0;
    stet_status status = call_begin(ctx, false, NULL, &s, err);
    if (status != STET_OK)
        return status;
    const char *given = stet_value_text_at(args, "output", &out_hold);
    char *path = *given == '/' ? stet_strdup(given) : stet_file_join(ctx->cwd, given);
    status = find_result(&s, stet_value_text_at(args, "id", &hold), &dag, err);
    if (status == STET_OK)
        status = stet_repo_dag_value(s.repo, dag, &value, err);
    if (status == STET_OK) {
        status = pick(value, stet_value_text_at(args, "name", &name_hold), &part, err);
        if (status == STET_OK)
            status = write_whole(&s, part, path, &size, err);
        stet_value_release(value);
    }
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "file", stet_value_stringf("%s", path));
        stet_value_put(result, "size", stet_value_int(size));
    }
    stet_free(path);
    call_end(&s);
    return status;
}

void call_get_render(stet_render *r, stet_value result) {
    stet_value file = stet_value_get(result, "file");
    stet_buf_printf(r->out, "wrote %lld bytes to %s\n", (long long)stet_value_as_int(stet_value_get(result, "size")),
                    stet_value_text(&file, ""));
}
