/* bound.c - finds the files among the inputs of a node. */

#include "module/bound.h"

#include <string.h>

#include "files/glob.h"
#include "files/path.h"
#include "graph/pattern.h"

const char *stet_bound_id(stet_value binding, stet_value *hold) {
    stet_value link;
    if (!stet_link_is(binding, &link))
        return NULL;
    *hold = stet_value_get(link, "id");
    return stet_value_type(*hold) == STET_TYPE_STRING ? stet_value_as_string(hold, NULL) : NULL;
}

bool stet_bound_is_each(stet_value binding) {
    return stet_value_type(binding) == STET_TYPE_OBJECT && stet_value_find(binding, "each", 4, NULL);
}

bool stet_bound_is_made(stet_value binding) {
    return stet_value_type(binding) == STET_TYPE_OBJECT && stet_value_find(binding, "made", 4, NULL);
}

static bool is_sure(void *ctx, stet_value binding, stet_pathref place) {
    stet_value hold;
    const char *id = stet_bound_id(binding, &hold);
    (void)place;
    return !id || !stet_files_in_doubt(ctx, id);
}

stet_status stet_bound_ready(stet_run *run, stet_files *files, stet_error *err) {
    if (!files || stet_binding_walk(stet_run_bindings(run), is_sure, files))
        return STET_OK;
    stet_status status = stet_files_rematch(files, err);
    return status == STET_OK ? stet_run_refresh(run, err) : status;
}

/* Is it a link? Or a directory that a command makes as a whole? */
static bool tells(stet_files *files, const char *root, const char *dir, bool absent) {
    char *full = stet_file_join(root, dir);
    struct stat st;
    stet_look look;
    bool there = stet_sys_lstat(full, &st) == 0;
    stet_free(full);
    return (!there && absent) || (there && S_ISLNK(st.st_mode)) ||
           (files && stet_files_known(files, dir, &look) && look.mode == STET_LOOK_DIRECTORY &&
            (look.flags & STET_LOOK_MADE));
}

stet_status stet_bound_read_above(stet_run *run, stet_files *files, const char *root, const char *path, bool absent,
                                  stet_error *err) {
    stet_status status = STET_OK;
    bool outside = path[0] == '/' || strncmp(path, "../", 3) == 0;
    for (const char *slash = strchr(path, '/'); slash && !outside && status == STET_OK;
         slash = strchr(slash + 1, '/')) {
        char *dir = stet_strndup(path, (size_t)(slash - path)), *id = stet_file_id(dir);
        stet_value v;
        stet_error inner = STET_ERROR_INIT;
        if (tells(files, root, dir, absent))
            status = stet_run_read_doc(run, id, &v, &inner);
        if (status == STET_NOT_FOUND || status == STET_UNSUPPORTED)
            status = STET_OK; /* that there is none is read, too */
        if (status == STET_OK)
            stet_error_clear(&inner);
        else
            stet_error_move(err, &inner);
        stet_free(id);
        stet_free(dir);
    }
    return status;
}

stet_status stet_bound_read_way(stet_run *run, stet_files *files, const char *root, const char *pattern,
                                stet_error *err) {
    char *way = stet_asprintf("%.*s/", (int)stet_glob_prefix(pattern), pattern);
    stet_status status = stet_bound_read_above(run, files, root, way, false, err);
    stet_free(way);
    return status;
}

#define MAX_HOPS 40 /* as many links as the kernel follows */

/* The first part of a path that is a link: where it ends; 0: none is. */
static size_t first_link(const char *root, const char *path) {
    size_t n = 0;
    for (bool more = true; more;) {
        n += strcspn(path + n, "/");
        more = path[n] != 0;
        char *part = stet_strndup(path, n), *full = stet_file_join(root, part);
        struct stat st;
        bool there = stet_sys_lstat(full, &st) == 0;
        stet_free(full);
        stet_free(part);
        if (!there)
            return 0;
        if (S_ISLNK(st.st_mode))
            return n;
        n += more;
    }
    return 0;
}

/* `names`: the paths; otherwise the links themselves. */
static void follow_links(const char *root, const char *path, bool names, stet_names *out) {
    char *now = stet_strdup(path);
    for (int hop = 0; hop < MAX_HOPS && now && now[0] != '/' && strncmp(now, "../", 3) != 0; hop++) {
        size_t n = first_link(root, now);
        if (names || n > 0)
            *stet_vec_add(out) = names ? stet_strdup(now) : stet_strndup(now, n);
        char *next = NULL;
        if (n > 0) {
            char *link = stet_strndup(now, n), *full = stet_file_join(root, link),
                 *target = stet_look_target(AT_FDCWD, full), *dir = stet_file_dirname(link),
                 *to = target ? stet_asprintf("%s%s", target, now + n) : NULL;
            if (!to || stet_path_normal(root, strcmp(dir, ".") == 0 ? "" : dir, to, &next, NULL) != STET_OK)
                next = NULL;
            stet_free(to);
            stet_free(dir);
            stet_free(target);
            stet_free(full);
            stet_free(link);
        }
        stet_free(now);
        now = next;
    }
    stet_free(now);
}

void stet_bound_names(const char *root, const char *path, stet_names *out) {
    follow_links(root, path, true, out);
}

void stet_bound_links(const char *root, const char *path, stet_names *out) {
    follow_links(root, path, false, out);
}

void stet_bound_read_names(stet_run *run, stet_files *files, const char *root, const char *path) {
    stet_names names = {0};
    stet_bound_names(root, path, &names);
    for (size_t i = 1; i < names.len; i++) {
        char *id = stet_file_id(names.at[i]);
        stet_value v;
        stet_error none = STET_ERROR_INIT;
        if (stet_run_read_doc(run, id, &v, &none) != STET_OK)
            stet_error_clear(&none); /* that there is none is read, too */
        if (stet_bound_read_above(run, files, root, names.at[i], false, &none) != STET_OK)
            stet_error_clear(&none);
        stet_free(id);
    }
    stet_names_release(&names);
}
