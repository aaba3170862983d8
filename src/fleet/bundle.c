/* bundle.c - packs one run into a single self-verifying file, and unpacks it. */

#include "fleet/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "fleet/run.h"
#include "os/clock.h"
#include "os/file.h"

#define HEAD_MAX  ((size_t)64 << 20)
#define CHUNK     ((size_t)1 << 16)
#define TAIL_OPEN "{\"sha256\":\""
#define TAIL_LEN  (sizeof TAIL_OPEN - 1 + STET_HASH_HEX - 1 + 3) /* "}\n */

static bool path_allowed(const char *path) {
    if (strcmp(path, "state.json") == 0 || strcmp(path, "events.jsonl") == 0 || strcmp(path, "argument.json") == 0)
        return true;
    return strncmp(path, "logs/", 5) == 0 && stet_run_id_valid(path + 5, strlen(path + 5));
}

static stet_status list_files(const char *run_dir, stet_names *out, stet_error *err) {
    static const char *const fixed[] = {"state.json", "events.jsonl", "argument.json"};
    stet_error why = STET_ERROR_INIT;
    stet_names logs = {0};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        char *path = stet_file_join(run_dir, fixed[i]);
        if (stet_file_exists(path))
            *stet_vec_add(out) = stet_strdup(fixed[i]);
        stet_free(path);
    }
    char *dir = stet_file_join(run_dir, "logs");
    stet_status st = stet_runfile_check_logs(run_dir, &why);
    if (st == STET_OK)
        st = stet_file_list(dir, &logs, &why);
    stet_free(dir);
    if (st == STET_NOT_FOUND) {
        stet_error_clear(&why);
        return STET_OK;
    }
    for (size_t i = 0; st == STET_OK && i < logs.len; i++)
        if (stet_run_id_valid(logs.at[i], strlen(logs.at[i])))
            *stet_vec_add(out) = stet_asprintf("logs/%s", logs.at[i]);
    if (st == STET_OK && out->len > STET_BUNDLE_FILES_MAX)
        st = stet_fail(&why, STET_LIMIT, "%s has more than %d files", run_dir, STET_BUNDLE_FILES_MAX);
    stet_names_release(&logs);
    stet_error_move(err, &why);
    return st;
}

static stet_status head_of(const char *run_dir, const char *id, const stet_names *files, stet_value *out,
                           stet_error *err) {
    stet_value head = stet_value_object(), list = stet_value_array();
    stet_status st = STET_OK;
    for (size_t i = 0; i < files->len && st == STET_OK; i++) {
        char *path = stet_file_join(run_dir, files->at[i]);
        stet_hash sum;
        uint64_t size;
        st = stet_file_hash(path, &sum, &size, err);
        if (st == STET_OK) {
            stet_value f = stet_value_object();
            stet_value_put(&f, "path", stet_value_string(files->at[i]));
            stet_value_put(&f, "size", stet_value_int((int64_t)size));
            stet_value_put(&f, "sha256", stet_hash_text(sum));
            stet_value_push(&list, f);
        }
        stet_free(path);
    }
    stet_value_put(&head, "format", stet_value_string("stet-run"));
    stet_value_put(&head, "version", stet_value_int(STET_BUNDLE_VERSION));
    stet_value_put(&head, "runId", stet_value_string(id));
    stet_value_put(&head, "exportedAt", stet_time_value(stet_clock_ms()));
    stet_value_put(&head, "files", list);
    if (st == STET_OK)
        *out = head;
    else
        stet_value_release(head);
    return st;
}

/* Copies exactly `size` bytes, hashing them into one or two sums. STET_CORRUPT if there are fewer. */
static stet_status copy_bytes(int from, const char *from_path, int to, const char *to_path, uint64_t size,
                              stet_hasher *whole, stet_hasher *one, stet_error *err) {
    char *chunk = stet_alloc(CHUNK);
    stet_status st = STET_OK;
    while (size > 0 && st == STET_OK) {
        size_t want = size < CHUNK ? (size_t)size : CHUNK, got = 0;
        st = stet_file_read_all(from, from_path, chunk, want, &got, err);
        if (st == STET_OK && got < want)
            st = stet_fail(err, STET_CORRUPT, "%s is shorter than it should be", from_path);
        if (st == STET_OK && to >= 0)
            st = stet_file_write_all(to, to_path, chunk, got, err);
        if (st == STET_OK && whole != NULL)
            stet_hasher_add(whole, chunk, got);
        if (st == STET_OK && one != NULL)
            stet_hasher_add(one, chunk, got);
        size -= got;
    }
    stet_free(chunk);
    return st;
}

static stet_status write_bundle(const char *run_dir, stet_value head, int out, const char *path, stet_bundle_info *info,
                                stet_error *err) {
    stet_hasher *whole = stet_hasher_begin();
    stet_buf line = STET_BUF(HEAD_MAX);
    stet_value files = stet_value_get(head, "files");
    stet_json_write(&line, head, STET_JSON_CANONICAL);
    stet_buf_char(&line, '\n');
    stet_status st = line.overflow ? stet_fail(err, STET_LIMIT, "%s: too many files", run_dir)
                                   : stet_file_write_all(out, path, line.data, line.len, err);
    stet_hasher_add(whole, stet_buf_cstr(&line), line.len);
    info->bytes = line.len;
    stet_buf_release(&line);
    for (size_t i = 0; i < stet_value_count(files) && st == STET_OK; i++) {
        stet_value f = stet_value_at(files, i), name = stet_value_get(f, "path");
        uint64_t size = (uint64_t)stet_value_as_int(stet_value_get(f, "size"));
        char *from = stet_file_join(run_dir, stet_value_as_string(&name, NULL));
        int fd = stet_sys_open(from, O_RDONLY | O_NOFOLLOW, 0);
        st = fd < 0 ? stet_fail_errno(err, errno, "%s", from) : copy_bytes(fd, from, out, path, size, whole, NULL, err);
        if (fd >= 0)
            stet_sys_close(fd);
        stet_free(from);
        info->bytes += size;
    }
    info->files = stet_value_count(files);
    info->sha256 = stet_hasher_end(whole);
    char tail[TAIL_LEN + 1], hex[STET_HASH_HEX];
    stet_hash_hex(info->sha256, hex);
    snprintf(tail, sizeof tail, TAIL_OPEN "%s\"}\n", hex);
    if (st == STET_OK)
        st = stet_file_write_all(out, path, tail, TAIL_LEN, err);
    info->bytes += TAIL_LEN;
    return st;
}

stet_status stet_bundle_export(const char *run_dir, const char *id, const char *path, bool replace,
                               stet_bundle_info *info, stet_error *err) {
    if (stet_runfile_driver(run_dir, NULL) == STET_DRIVER_ALIVE)
        return stet_fail(err, STET_BUSY, "run %s is being driven; export it when it has ended", id);
    stet_names files = {0};
    stet_value head = stet_value_null();
    stet_state s = {0};
    *info = (stet_bundle_info){0};
    snprintf(info->run_id, sizeof info->run_id, "%s", id);
    char *state = stet_file_join(run_dir, "state.json"), *dir = stet_file_dirname(path);
    char *temp = stet_file_temp_name(dir, ".stet-export");
    stet_status st = stet_state_read(state, id, NULL, &s, err);
    if (st == STET_OK) {
        stet_state_release(&s);
        st = list_files(run_dir, &files, err);
    }
    if (st == STET_OK)
        st = head_of(run_dir, id, &files, &head, err);
    int out = -1;
    if (st == STET_OK && (out = stet_sys_open(temp, O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0)
        st = stet_fail_errno(err, errno, "%s", path);
    if (st == STET_OK)
        st = write_bundle(run_dir, head, out, path, info, err);
    if (st == STET_OK && stet_sys_fsync(out) != 0)
        st = stet_fail_errno(err, errno, "%s", path);
    if (out >= 0)
        stet_sys_close(out);
    if (st == STET_OK && (replace ? stet_sys_rename(temp, path) : stet_sys_rename_new(temp, path)) != 0)
        st = stet_fail_errno(err, errno, "%s", path);
    if (st == STET_OK)
        st = stet_file_sync_parent(path, err);
    else if (out >= 0 && stet_file_remove(temp, NULL) != STET_OK)
        stet_hint(err, "remove %s by hand", temp);
    stet_value_release(head);
    stet_names_release(&files);
    stet_free(temp);
    stet_free(dir);
    stet_free(state);
    return st;
}

static stet_status corrupt(const char *path, const char *what, stet_error *err) {
    return stet_fail(err, STET_CORRUPT, "%s: %s", path, what);
}

/* The first line, read byte block by byte block up to its newline; the descriptor stands behind it afterwards. */
static stet_status read_head(int fd, const char *path, stet_value *out, size_t *len, stet_error *err) {
    stet_buf line = STET_BUF(HEAD_MAX);
    const char *newline = NULL;
    stet_status st = STET_OK;
    while (newline == NULL && st == STET_OK) {
        size_t got = 0;
        char *at = stet_buf_reserve(&line, CHUNK);
        if (at == NULL)
            st = corrupt(path, "its first line has no end", err);
        else
            st = stet_file_read_all(fd, path, at, CHUNK, &got, err);
        if (st == STET_OK && got == 0)
            st = corrupt(path, "is no exported run", err);
        if (st == STET_OK) {
            newline = memchr(at, '\n', got);
            line.len += got;
        }
    }
    if (st == STET_OK) {
        *len = (size_t)(newline - line.data) + 1;
        st = stet_json_read(line.data, *len - 1, NULL, out, NULL);
        if (st != STET_OK)
            st = corrupt(path, "is no exported run", err);
        else if (lseek(fd, (off_t)*len, SEEK_SET) < 0) {
            stet_value_release(*out);
            st = stet_fail_errno(err, errno, "%s", path);
        }
    }
    stet_buf_release(&line);
    return st;
}

static stet_status check_file(const char *path, stet_value file, stet_map *seen, uint64_t *sum, stet_error *err) {
    stet_value name = stet_value_get(file, "path"), n = stet_value_get(file, "size"),
               hex = stet_value_get(file, "sha256");
    size_t name_len = 0, hex_len = 0, before = stet_map_len(seen);
    const char *s = stet_value_as_string(&name, &name_len), *h = stet_value_as_string(&hex, &hex_len);
    stet_hash hash;
    if (s == NULL || strlen(s) != name_len || !path_allowed(s) || stet_value_type(n) != STET_TYPE_INT ||
        stet_value_as_int(n) < 0 || stet_value_as_int(n) > (int64_t)STET_BUNDLE_MAX_BYTES || h == NULL ||
        !stet_hash_of_hex(h, hex_len, &hash))
        return corrupt(path, "it lists a file that no run has", err);
    stet_map_put(seen, s, name_len, (stet_slot){.n = 0});
    if (stet_map_len(seen) == before)
        return corrupt(path, "it lists a file twice", err);
    *sum += (uint64_t)stet_value_as_int(n);
    if (*sum > STET_BUNDLE_MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "%s: larger than any run may be", path);
    return STET_OK;
}

static stet_status check_head(const char *path, stet_value head, size_t head_len, uint64_t size, stet_error *err) {
    stet_value format = stet_value_get(head, "format"), version = stet_value_get(head, "version"),
               id = stet_value_get(head, "runId"), files = stet_value_get(head, "files");
    size_t len = 0;
    const char *text = stet_value_as_string(&format, NULL), *run = stet_value_as_string(&id, &len);
    if (text == NULL || strcmp(text, "stet-run") != 0 || stet_value_type(version) != STET_TYPE_INT)
        return corrupt(path, "is no exported run", err);
    if (stet_value_as_int(version) > STET_BUNDLE_VERSION)
        return stet_fail(err, STET_UNSUPPORTED, "%s: version %lld of the format, this stet reads %d", path,
                         (long long)stet_value_as_int(version), STET_BUNDLE_VERSION);
    if (run == NULL || !stet_run_id_valid(run, len) || stet_value_type(files) != STET_TYPE_ARRAY ||
        stet_value_count(files) > STET_BUNDLE_FILES_MAX)
        return corrupt(path, "its first line is not what it should be", err);
    uint64_t sum = head_len + TAIL_LEN;
    stet_map seen = {0};
    stet_status st = STET_OK;
    for (size_t i = 0; i < stet_value_count(files) && st == STET_OK; i++)
        st = check_file(path, stet_value_at(files, i), &seen, &sum, err);
    if (st == STET_OK && stet_map_get(&seen, "state.json", 10) == NULL)
        st = corrupt(path, "it has no state.json", err);
    if (st == STET_OK && sum != size)
        st = corrupt(path, "it is longer or shorter than its first line says", err);
    stet_map_release(&seen);
    return st;
}

/* Reads all files, into `dir` unless it is NULL, and checks every sum. */
static stet_status unpack(int fd, const char *path, stet_value head, size_t head_len, const char *dir,
                          stet_bundle_info *info, stet_error *err) {
    stet_hasher *whole = stet_hasher_begin();
    stet_value files = stet_value_get(head, "files");
    char tail[TAIL_LEN + 1], hex[STET_HASH_HEX];
    stet_status st = STET_OK;
    if (lseek(fd, 0, SEEK_SET) < 0)
        st = stet_fail_errno(err, errno, "%s", path);
    if (st == STET_OK)
        st = copy_bytes(fd, path, -1, NULL, head_len, whole, NULL, err);
    for (size_t i = 0; i < stet_value_count(files) && st == STET_OK; i++) {
        stet_value f = stet_value_at(files, i), name = stet_value_get(f, "path"), want = stet_value_get(f, "sha256");
        const char *relative = stet_value_as_string(&name, NULL);
        stet_hasher *one = stet_hasher_begin();
        char *to = dir != NULL ? stet_file_join(dir, relative) : NULL;
        int out = -1;
        if (dir != NULL && (out = stet_sys_open(to, O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0)
            st = stet_fail_errno(err, errno, "%s", to);
        if (st == STET_OK)
            st = copy_bytes(fd, path, out, to, (uint64_t)stet_value_as_int(stet_value_get(f, "size")), whole, one, err);
        if (st == STET_OK && out >= 0 && stet_sys_fsync(out) != 0)
            st = stet_fail_errno(err, errno, "%s", to);
        if (out >= 0)
            stet_sys_close(out);
        stet_hash_hex(stet_hasher_end(one), hex);
        if (st == STET_OK && strcmp(hex, stet_value_as_string(&want, NULL)) != 0)
            st = stet_fail(err, STET_CORRUPT, "%s: %s in it is not what was exported", path, relative);
        stet_free(to);
    }
    info->sha256 = stet_hasher_end(whole);
    stet_hash_hex(info->sha256, hex);
    size_t got = 0;
    if (st == STET_OK)
        st = stet_file_read_all(fd, path, tail, TAIL_LEN, &got, err);
    tail[got] = 0;
    char expected[TAIL_LEN + 1];
    snprintf(expected, sizeof expected, TAIL_OPEN "%s\"}\n", hex);
    if (st == STET_OK && strcmp(tail, expected) != 0)
        st = corrupt(path, "its content is not what was exported", err);
    return st;
}

static stet_status place(stet_project *p, int fd, const char *path, stet_value head, size_t head_len,
                         stet_bundle_info *info, stet_error *err) {
    char *runs = stet_project_path(p, "runs"), *final = stet_file_join(runs, info->run_id);
    char *temp = stet_file_temp_name(runs, "~new"), *logs = stet_file_join(temp, "logs");
    char *state = stet_file_join(temp, "state.json");
    stet_state s;
    stet_status st = stet_file_mkdirs(runs, 0755, err);
    if (st == STET_OK && stet_file_exists(final))
        st = stet_fail(err, STET_CONFLICT, "the project has a run %s already", info->run_id);
    if (st == STET_OK)
        st = stet_file_mkdirs(logs, 0755, err);
    if (st == STET_OK)
        st = unpack(fd, path, head, head_len, temp, info, err);
    if (st == STET_OK && (st = stet_state_read(state, info->run_id, NULL, &s, err)) == STET_OK)
        stet_state_release(&s);
    if (st == STET_OK)
        st = stet_file_sync_dir(logs, err);
    if (st == STET_OK)
        st = stet_file_sync_dir(temp, err);
    if (st == STET_OK && stet_sys_rename_new(temp, final) != 0)
        st = stet_fail_errno(err, errno, "%s", final);
    if (st == STET_OK)
        st = stet_file_sync_dir(runs, err);
    else if (stet_file_remove_tree(temp, NULL) != STET_OK)
        stet_hint(err, "remove %s by hand", temp);
    stet_free(state);
    stet_free(logs);
    stet_free(temp);
    stet_free(final);
    stet_free(runs);
    return st;
}

stet_status stet_bundle_import(stet_project *p, const char *path, bool verify_only, stet_bundle_info *info,
                               stet_error *err) {
    *info = (stet_bundle_info){0};
    struct stat sb;
    stet_value head = stet_value_null();
    size_t head_len = 0;
    int fd = stet_sys_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s", path);
    stet_status st = STET_OK;
    if (stet_sys_fstat(fd, &sb) != 0)
        st = stet_fail_errno(err, errno, "%s", path);
    else if (!S_ISREG(sb.st_mode))
        st = stet_fail(err, STET_INVALID, "%s is not a regular file", path);
    if (st == STET_OK)
        st = read_head(fd, path, &head, &head_len, err);
    if (st == STET_OK)
        st = check_head(path, head, head_len, (uint64_t)sb.st_size, err);
    if (st == STET_OK) {
        stet_value id = stet_value_get(head, "runId");
        snprintf(info->run_id, sizeof info->run_id, "%s", stet_value_as_string(&id, NULL));
        info->files = stet_value_count(stet_value_get(head, "files"));
        info->bytes = (uint64_t)sb.st_size;
        st = verify_only ? unpack(fd, path, head, head_len, NULL, info, err)
                         : place(p, fd, path, head, head_len, info, err);
    }
    stet_value_release(head);
    stet_sys_close(fd);
    return st;
}
