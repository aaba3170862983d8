/* reach.c - the places outside of itself that a project reaches, and which of them this user trusts. Part of project.h. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "os/file.h"
#include "os/proc.h"
#include "project/internal.h"

#define TRUST_MAX (1 << 20)

/* `where` as it is named, relative to `dir` if it is not absolute. What is trusted is the real place: links on the way
 * may lead elsewhere later. A name that is not UTF-8 could not be told from another one in the record. */
static stet_status add_place(stet_value *reaches, const char *what, const char *dir, const char *where,
                             stet_error *err) {
    stet_value target;
    char *full = stet_file_join(dir, where), *real = NULL;
    if (stet_file_realpath(full, &real, NULL) != STET_OK)
        real = stet_strdup(full);
    stet_status status = stet_value_string_checked(real, strlen(real), &target, err);
    stet_free(real);
    stet_free(full);
    if (status != STET_OK) {
        stet_fail_in(err, "where %s leads", what);
        return status;
    }
    stet_value place = stet_value_object();
    stet_value_put(&place, "what", stet_value_stringf("%s", what));
    stet_value_put(&place, "where", target);
    stet_value_push(reaches, place);
    return STET_OK;
}

/* A link counts wherever it leads: what it leads to can be replaced by a link itself. */
stet_status project_reach_link(const char *path, const char *name, stet_value *reaches, stet_error *err) {
    char target[4096];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return errno == EINVAL || errno == ENOENT || errno == ENOTDIR
                   ? STET_OK
                   : stet_fail_errno(err, errno, "%s: cannot look at it", path);
    target[n] = 0;
    char *dir = stet_file_dirname(path);
    stet_status status = add_place(reaches, name, dir, target, err);
    stet_free(dir);
    return status;
}

stet_status project_reach_inside(const char *dir, const char *name, stet_value *reaches, stet_error *err) {
    return project_reach_below(dir, name, 1, reaches, err);
}

/* The depth is bounded by the caller. */
stet_status project_reach_below(const char *dir, const char *name, int depth, stet_value *reaches, stet_error *err) {
    struct stat st;
    if (depth == 0 || stet_sys_lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return STET_OK; /* not there; or a link, which counts by itself; or a file, and whoever opens it says so */
    stet_names names = {0};
    stet_error gone = STET_ERROR_INIT;
    stet_status status = stet_file_list(dir, &names, &gone);
    if (status == STET_NOT_FOUND) { /* a temporary directory that another process has just removed */
        stet_error_clear(&gone);
        return STET_OK;
    }
    if (status != STET_OK)
        stet_error_move(err, &gone);
    for (size_t i = 0; status == STET_OK && i < names.len; i++) {
        char *path = stet_file_join(dir, names.at[i]), *below = stet_file_join(name, names.at[i]);
        status = project_reach_link(path, below, reaches, err);
        if (status == STET_OK)
            status = project_reach_below(path, below, depth - 1, reaches, err);
        stet_free(path);
        stet_free(below);
    }
    stet_names_release(&names);
    return status;
}

stet_status project_reach_path(const char *root, const char *path, const char *what, stet_value *reaches,
                               stet_error *err) {
    bool inside;
    stet_status status = stet_file_inside(root, path, &inside, err);
    if (status == STET_OK && !inside)
        status = add_place(reaches, what, "/", path, err);
    return status;
}

/* $STET_HOME/trust/HASH.json, by the hash of the root. */
static stet_status record_path(const char *root, char **dir, char **path, stet_error *err) {
    char *home, hex[STET_HASH_HEX];
    stet_status status = stet_home_dir(&home, err);
    if (status != STET_OK)
        return status;
    stet_hash_hex(stet_hash_of(root, strlen(root)), hex);
    char *name = stet_asprintf("%s.json", hex);
    *dir = stet_file_join(home, "trust");
    *path = stet_file_join(*dir, name);
    stet_free(name);
    stet_free(home);
    return STET_OK;
}

stet_status project_is_trusted(const char *root, stet_value reaches, bool *out, stet_error *err) {
    *out = true;
    if (stet_value_count(reaches) == 0)
        return STET_OK;
    char *dir, *path;
    stet_buf text = STET_BUF(TRUST_MAX);
    stet_value record = stet_value_null();
    stet_error why = STET_ERROR_INIT;
    stet_status status = record_path(root, &dir, &path, err);
    if (status != STET_OK)
        return status;
    /* A record that can't be read is no permission. */
    *out = stet_file_read(path, TRUST_MAX, &text, &why) == STET_OK &&
           stet_json_parse(text.data, text.len, &record, &why) == STET_OK;
    stet_value trusted = stet_value_get(record, "reaches"), whose = stet_value_get(record, "root");
    *out = *out && stet_value_type(whose) == STET_TYPE_STRING && !strcmp(stet_value_as_string(&whose, NULL), root);
    for (size_t i = 0; *out && i < stet_value_count(reaches); i++) {
        bool found = false;
        for (size_t k = 0; !found && k < stet_value_count(trusted); k++)
            found = stet_value_equal(stet_value_at(trusted, k), stet_value_at(reaches, i));
        *out = found;
    }
    stet_error_clear(&why);
    stet_value_release(record);
    stet_buf_release(&text);
    stet_free(path);
    stet_free(dir);
    return STET_OK;
}

stet_status project_trust_write(const char *root, stet_value reaches, stet_error *err) {
    char *dir, *path;
    stet_status status = record_path(root, &dir, &path, err);
    if (status != STET_OK)
        return status;
    if (stet_value_count(reaches) == 0) {
        status = stet_file_remove(path, err);
    } else {
        stet_buf text = STET_BUF(0);
        stet_value record = stet_value_object();
        stet_value_put(&record, "root", stet_value_string(root));
        stet_value_put(&record, "reaches", stet_value_retain(reaches));
        stet_json_write(&text, record, STET_JSON_PRETTY);
        stet_value_release(record);
        status = stet_file_mkdirs(dir, 0700, err);
        if (status == STET_OK)
            status = stet_file_replace(path, text.data, text.len, 0600, err);
        stet_buf_release(&text);
    }
    stet_free(path);
    stet_free(dir);
    return status;
}
