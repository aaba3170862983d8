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
