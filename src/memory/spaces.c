/* spaces.c - the spaces of a project. */
#include "memory/internal.h"

static char *space_path(stet_project *p, const char *name) {
    char *relative = stet_asprintf("local/spaces/%s.db", name);
    char *path = stet_project_path(p, relative);
    free(relative);
    return path;
}

/* [scheduler] keep_observations. */
static stet_status kept_observations(const stet_project *p, int *out, stet_error *err) {
    stet_value v = stet_project_setting(p, "scheduler.keep_observations");
    if (stet_value_type(v) == STET_TYPE_NULL)
        return STET_OK;
    int64_t n = stet_value_type(v) == STET_TYPE_INT ? stet_value_as_int(v) : 0;
    if (n < 1 || n > STET_OBSERVE_KEEP_MAX)
        return stet_fail(err, STET_INVALID,
                         "scheduler.keep_observations in config.toml: expected a whole number from 1 to %d",
                         STET_OBSERVE_KEEP_MAX);
    *out = (int)n;
    return STET_OK;
}

stet_status stet_space_open(stet_project *p, const char *name, unsigned flags, stet_space **out, stet_error *err) {
    if (!p || !name || !out)
        return stet_fail_null(err);
    stet_status st = stet_space_name_check(name, err);
    if (st != STET_OK)
        return st;
    if (flags & ~(unsigned)(STET_SPACE_READ_ONLY | STET_SPACE_MUST_EXIST | STET_SPACE_CARE))
        return stet_fail(err, STET_INVALID, "space \"%s\": unknown flags %#x", name, flags);
    char *path = space_path(p, name);
    bool must = flags & (STET_SPACE_READ_ONLY | STET_SPACE_MUST_EXIST);
    if (must && !stet_file_exists(path)) {
        st = stet_fail(err, STET_NOT_FOUND, "no space \"%s\" in %s", name, stet_project_root(p));
        stet_hint(err, "a space is created by the first write to it; `stet space list` shows those there are");
    } else if (!must) {
        char *dir = stet_file_dirname(path);
        st = stet_file_mkdirs(dir, 0755, err);
        stet_free(dir);
    }
    int keep = 1;
    if (st == STET_OK)
        st = kept_observations(p, &keep, err);
    if (st == STET_OK)
        st = stet_space_open_path(path, name, flags, out, err);
    if (st == STET_OK)
        (*out)->root = stet_strdup(stet_project_root(p));
    if (st == STET_OK && keep > 1)
        stet_observe_keep(*out, keep);
    stet_free(path);
    return st;
}

stet_status stet_space_names(stet_project *p, stet_names *out, stet_error *err) {
    char *dir = stet_project_path(p, "local/spaces");
    stet_names all = {0};
    stet_status st = stet_file_exists(dir) ? stet_file_list(dir, &all, err) : STET_OK;
    for (size_t i = 0; i < all.len; i++) {
        size_t len = strlen(all.at[i]);
        if (len <= 3 || strcmp(all.at[i] + len - 3, ".db") != 0)
            continue;
        char *name = stet_strndup(all.at[i], len - 3);
        if (stet_space_name_check(name, NULL) == STET_OK)
            *stet_vec_add(out) = name;
        else
            free(name);
    }
    stet_names_release(&all);
    stet_free(dir);
    return st;
}
