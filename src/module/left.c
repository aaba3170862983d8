/* left.c - would a run read what a command that is gone has left behind? */

#include "module/left.h"

#include <string.h>

#include "base/buf.h"
#include "files/path.h"
#include "module/bound.h"

typedef struct skipping {
    const stet_left *l;
} skipping;

static bool skips(void *ctx, const char *path) {
    const stet_left *l = ((skipping *)ctx)->l;
    return (l->except && l->except(l->ctx, path)) ||
           (l->may_make && stet_files_is_left(l->files, path) && l->may_make(l->may_make_ctx, path));
}

static bool is_left(const stet_left *l, const char *name) {
    skipping s = {l};
    return stet_files_is_left(l->files, name) && !skips(&s, name);
}

char *stet_left_at(const stet_left *l, const char *path) {
    stet_names names = {0};
    char *left = NULL;
    stet_bound_names(l->root, path, &names);
    for (size_t i = 0; i < names.len && !left; i++)
        if (is_left(l, names.at[i]))
            left = stet_strdup(names.at[i]);
    stet_names_release(&names);
    return left;
}

char *stet_left_among(const stet_left *l, const char *top, bool pattern) {
    skipping s = {l};
    return stet_files_find_made(l->files, top, pattern, true, skips, &s);
}

static void read_doc(const stet_left *l, const char *id) {
    stet_value v;
    stet_error none = STET_ERROR_INIT;
    if (stet_run_read_doc(l->run, id, &v, &none) != STET_OK)
        stet_error_clear(&none); /* that there is none is read, too */
}

static void read_file(const stet_left *l, const char *path) {
    char *id = stet_file_id(path);
    read_doc(l, id);
    stet_free(id);
}

/* Below a directory: a pattern does not match what is left behind, so its document changes when a command goes. */
static void read_pattern(const stet_left *l, const char *dir) {
    stet_buf pattern = STET_BUF(0), id = STET_BUF(0);
    for (const char *p = dir; *p; p++)
        stet_buf_printf(&pattern, strchr("*?[]\\", *p) ? "\\%c" : "%c", *p);
    stet_buf_str(&pattern, "/**");
    stet_buf_str(&id, STET_GLOB_PREFIX);
    stet_path_escape(stet_buf_cstr(&pattern), &id);
    if (!stet_files_follows(l->files, stet_buf_cstr(&id)) &&
        stet_files_follow(l->files, stet_buf_cstr(&id), NULL) != STET_OK)
        stet_buf_clear(&id);
    if (id.len)
        read_doc(l, stet_buf_cstr(&id));
    stet_buf_release(&pattern);
    stet_buf_release(&id);
}

/* One name, of what is a directory or not. Caller frees. */
static char *find_at(const stet_left *l, const char *name, bool directory) {
    if (is_left(l, name))
        return stet_strdup(name);
    char *made = directory ? stet_files_find_made(l->files, name, false, false, NULL, NULL) : NULL;
    if (!made)
        return NULL;
    stet_free(made);
    read_pattern(l, name);
    return stet_left_among(l, name, false);
}

char *stet_left_find(const stet_left *l, const char *path) {
    stet_look look;
    stet_names names = {0};
    char *real = stet_path_real(l->root, path), *left = NULL;
    bool outside = path[0] == '/' || strncmp(path, "../", 3) == 0,
         there = stet_look_at(stet_files_root(l->files), path, NULL, &look, NULL) == STET_OK && stet_look_there(&look),
         directory = there && look.mode == STET_LOOK_DIRECTORY;
    if (outside && real)
        *stet_vec_add(&names) = stet_strdup(real);
    else if (!outside)
        stet_bound_names(l->root, path, &names);
    if (directory && (look.flags & STET_LOOK_LINKED))
        stet_look_links(stet_files_root(l->files), path, &names);
    for (size_t i = 0; i < names.len; i++) {
        stet_error none = STET_ERROR_INIT;
        if (strcmp(names.at[i], path) != 0)
            read_file(l, names.at[i]);
        if (stet_bound_read_above(l->run, l->files, l->root, names.at[i], false, &none) != STET_OK)
            stet_error_clear(&none);
        if (!left && there)
            left = find_at(l, names.at[i], directory);
    }
    stet_names_release(&names);
    stet_free(real);
    return left;
}

stet_status stet_left_fail(const stet_left *l, const char *left, stet_error *err) {
    char *real = stet_path_real(l->root, left);
    read_file(l, left);
    if (real && strcmp(real, left) != 0)
        read_file(l, real);
    stet_free(real);
    stet_fail(err, STET_FAILED, "%s: it would read %s, which a command that is gone has left behind",
              stet_run_name(l->run), left);
    stet_hint(err, "`stet run -k; stet gc --outputs` removes it; if it is to stay, move it, or write it anew");
    return STET_FAILED;
}
