/* setup.c - finds the piece to drive and brings it in line with its pattern. */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "drive/drive_internal.h"
#include "graph/argument.h"
#include "module/javascript.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/sys.h"

#define USE_UP_NODES 10000 /* a larger pattern is released while its graph is built */

/* A file whose last change is nearer than this to the moment it was read may have been changed again within the same
 * tick of the file system's clock: its times prove nothing. */
#define TICK_NS 20000000

/* A file as it is remembered: inside the project relative to its root, so that a project that is moved or copied has
 * its own patterns. Links below the root are not followed: where they lead may change. */
static char *kept_path(const stet_project *p, const char *file) {
    const char *root = stet_project_root(p);
    size_t len = strlen(root);
    struct stat top, st;
    if (strncmp(file, root, len) == 0 && file[len] == '/')
        return stet_strdup(file + len + 1);
    /* The project may be reached by another way. */
    for (const char *slash = strchr(file + 1, '/'); slash && stet_sys_stat(root, &top) == 0;
         slash = strchr(slash + 1, '/')) {
        char *above = stet_strndup(file, (size_t)(slash - file));
        bool is = stet_sys_stat(above, &st) == 0 && st.st_ino == top.st_ino && st.st_dev == top.st_dev;
        stet_free(above);
        if (is)
            return stet_strdup(slash + 1);
    }
    return stet_strdup(file);
}

char *drive_source_path(const stet_project *p, stet_value source) {
    stet_value file = stet_value_get(source, "file");
    const char *text = stet_value_as_string(&file, NULL);
    if (!text)
        return NULL;
    return text[0] == '/' ? stet_strdup(text) : stet_file_join(stet_project_root(p), text);
}

static stet_value source_of(const stet_project *p, const char *file, const struct stat *st, int64_t seen_ns) {
    stet_value v = stet_value_object();
    char *kept = kept_path(p, file);
    stet_value_put(&v, "file", stet_value_string(kept));
    stet_free(kept);
    stet_value_put(&v, "size", stet_value_int(st->st_size));
    stet_value_put(&v, "mtimeNs", stet_value_int((int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec));
    stet_value_put(&v, "ctimeNs", stet_value_int((int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec));
    stet_value_put(&v, "inode", stet_value_int((int64_t)st->st_ino));
    stet_value_put(&v, "device", stet_value_int((int64_t)st->st_dev));
    stet_value_put(&v, "seenNs", stet_value_int(seen_ns));
    return v;
}

/* Is the file provably the one that the piece was set up from? */
static bool same_source(stet_value was, stet_value now) {
    static const char *const keys[] = {"file", "size", "mtimeNs", "ctimeNs", "inode", "device"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!stet_value_equal(stet_value_get(was, keys[i]), stet_value_get(now, keys[i])))
            return false;
    int64_t seen = stet_value_as_int(stet_value_get(was, "seenNs"));
    return stet_value_as_int(stet_value_get(was, "mtimeNs")) + TICK_NS < seen &&
           stet_value_as_int(stet_value_get(was, "ctimeNs")) + TICK_NS < seen;
}

bool drive_source_changed(const stet_project *project, const stet_piece *p) {
    stet_value source = stet_value_get(p->envelope, "source");
    char *file = drive_source_path(project, source);
    struct stat st;
    bool there = file && stet_sys_stat(file, &st) == 0, changed = there && p->rebuild;
    if (there && !changed) {
        stet_value now = source_of(project, file, &st, stet_clock_ns());
        changed = !same_source(source, now);
        stet_value_release(now);
    }
    stet_free(file);
    return changed;
}

/* docs/pattern-format.md, "Pieces and pattern files": does the piece follow its file whatever the pattern is called? If
 * its name is not the pattern's, or ever was not. */
static bool is_called(const char *piece, const char *name) {
    size_t len = strcspn(piece, "@");
    return strlen(name) == len && strncmp(piece, name, len) == 0;
}

static bool is_tied(const stet_piece *p) {
    stet_value name = stet_value_get(stet_value_get(p->envelope, "pattern"), "name");
    return stet_value_as_bool(stet_value_get(stet_value_get(p->envelope, "source"), "tied")) ||
           (stet_value_type(name) == STET_TYPE_STRING && !is_called(p->name, stet_value_as_string(&name, NULL)));
}

static stet_status say_detached(const stet_piece *p, const char *path, const char *name, stet_error *err) {
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    stet_fail(err, STET_INVALID, "%s no longer makes piece \"%s\": its pattern is called \"%s\" now", file, p->name,
              name);
    stet_hint(err, "stet piece delete %s removes the piece; stet run %s --piece %s lets it follow the file", p->name,
              file, p->name);
    return STET_INVALID;
}

/* What changes of a piece whose program stays. */
typedef struct small_change {
    driver *d;
    const char *piece;
    stet_value source, set, unset;
} small_change;

static stet_status write_small(stet_tx *tx, void *ctx, stet_error *err) {
    small_change *c = ctx;
    int64_t branch;
    stet_piece *p;
    stet_status status = stet_space_branch(c->d->space, c->d->spec->branch ? c->d->spec->branch : "", &branch, err);
    if (status == STET_OK)
        status = stet_piece_load(c->d->space, branch, c->piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(c->source) != STET_TYPE_NULL) {
        stet_path path = STET_PATH_INIT;
        stet_docname result = stet_piece_name(p, NULL);
        stet_path_push(&path, "source");
        status = stet_tx_write(tx, &result, stet_path_ref(&path), stet_value_retain(c->source), err);
        stet_path_release(&path);
    }
    if (status == STET_OK)
        status = stet_piece_adjust(tx, branch, p, c->unset, c->set, err);
    stet_piece_free(p);
    return status;
}

/* The program stays: where it came from (null: as before), and what is to be set. */
static stet_status adjust(driver *d, const stet_piece *piece, stet_value source, bool own, stet_error *err) {
    small_change c = {d, piece->name, source, own ? d->spec->set : stet_value_null(),
                      own ? d->spec->unset : stet_value_null()};
    stet_status status = own ? drive_accept_stored(d, piece, err) : STET_OK;
    if (status != STET_OK ||
        (stet_value_type(source) == STET_TYPE_NULL && stet_value_count(c.set) == 0 && stet_value_count(c.unset) == 0))
        return status;
    return stet_space_transact(d->space, d->spec->branch, write_small, &c, NULL, err);
}

stet_status drive_set_up(driver *d, const char *path, char **piece, bool own, stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    struct stat st;
    char *file;
    stet_status status = stet_file_absolute(path, &file, err);
    if (status != STET_OK)
        return status;
    int64_t seen = stet_clock_ns(), branch;
    if (stet_sys_stat(file, &st) != 0) {
        status = stet_fail_errno(err, errno, "%s", path);
        stet_free(file);
        return status;
    }
    stet_value source = source_of(d->project, file, &st, seen);
    stet_free(file);
    stet_piece *before = NULL;
    status = stet_space_branch(d->space, spec->branch ? spec->branch : "", &branch, err);
    if (status == STET_OK && *piece && stet_piece_load(d->space, branch, *piece, -1, &before, NULL) == STET_OK &&
        before->marked && !before->rebuild && same_source(stet_value_get(before->envelope, "source"), source)) {
        status = adjust(d, before, stet_value_null(), own, err);
        stet_piece_free(before);
        stet_value_release(source);
        return status;
    }
    stet_pattern *pattern = NULL;
    stet_javascript_script script = {
        stet_value_get(stet_value_get(stet_project_config(d->project), "module"), "javascript"), spec->cancelled,
        spec->ctx};
    stet_pattern_checks checks = {.module = stet_module_check,
                                  .script = stet_javascript_pattern,
                                  .script_ctx = &script,
                                  .names = stet_module_names,
                                  .root = stet_project_root(d->project)};
    if (status == STET_OK)
        status = stet_pattern_load(path, &checks, &pattern, NULL, err);
    if (status == STET_OK && !*piece) {
        status = stet_piece_in(pattern->name, spec->scope, piece, err);
        if (status == STET_OK && stet_piece_load(d->space, branch, *piece, -1, &before, NULL) != STET_OK)
            before = NULL;
    }
    bool named = own && spec->pattern, same = status == STET_OK && is_called(*piece, pattern->name);
    if (status == STET_OK && before && !named && !same && !is_tied(before))
        status = say_detached(before, path, pattern->name, err);
    if (status == STET_OK && (!same || (before && is_tied(before))))
        stet_value_put(&source, "tied", stet_value_bool(true));
    if (status == STET_OK && before && before->marked && !before->rebuild &&
        stet_hash_equal(before->program, pattern->hash)) {
        status = adjust(d, before, source, own, err);
    } else if (status == STET_OK) {
        stet_sched_installed made;
        stet_sched_setup setup = {.pattern = pattern, .piece = *piece, .source = source, .ctx = d};
        if (own) {
            setup.set = spec->set;
            setup.unset = spec->unset;
            setup.accept = drive_accept_new;
        }
        pattern->use_up = pattern->node_count > USE_UP_NODES;
        status = stet_files_unsettle(d->files, err);
        if (status == STET_OK)
            status = stet_sched_set_up(d->sched, &setup, own ? &d->out->installed : &made, err);
        d->out->installed_now = d->out->installed_now || (own && status == STET_OK);
        d->set_up = d->set_up || status == STET_OK;
        if (status == STET_OK)
            status = stet_lookout_follow(d->files, d->space, spec->branch, *piece, err);
    }
    stet_piece_free(before);
    stet_pattern_free(pattern);
    stet_value_release(source);
    return status;
}

/* The piece that is driven without a pattern: it is there, and its file may have changed. */
static stet_status set_up_stored(driver *d, stet_error *err) {
    int64_t branch;
    stet_piece *p;
    stet_status status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    if (status == STET_OK)
        status = stet_piece_load(d->space, branch, d->piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    if (drive_source_changed(d->project, p)) {
        char *file = drive_source_path(d->project, stet_value_get(p->envelope, "source"));
        status = drive_set_up(d, file, &d->piece, true, err);
        if (status != STET_OK)
            stet_fail_in(err, "the pattern of piece \"%s\"", d->piece);
        stet_free(file);
    } else {
        status = adjust(d, p, stet_value_null(), true, err);
    }
    stet_piece_free(p);
    return status;
}

static stet_status renew_driven(driver *d, stet_error *err) {
    stet_value names = stet_value_array();
    stet_value_push(&names, stet_value_string(d->piece));
    stet_status status = drive_renew_patterns(d, names, drive_wants_part(d) ? d->piece : NULL, err);
    stet_value_release(names);
    return status == STET_OK ? drive_renew_all(d, err) : status;
}

/* A cheap way to the name of the piece that a file was set up as: the file's name is no help, so the pattern's own name
 * is needed, which is in the file. It is kept beside the source of the pieces, by the file's path. */
static stet_status piece_of_file(driver *d, stet_error *err) {
    if (d->spec->piece)
        return stet_piece_in(d->spec->piece, d->spec->scope, &d->piece, err);
    if (!d->spec->pattern)
        return stet_fail(err, STET_INVALID, "neither a pattern nor a piece was named");
    char *file;
    stet_status status = stet_file_absolute(d->spec->pattern, &file, err);
    if (status != STET_OK)
        return status;
    int64_t branch;
    stet_doc_state state;
    char hex[STET_HASH_HEX];
    char *kept = kept_path(d->project, file);
    stet_hash_hex(stet_hash_of(kept, strlen(kept)), hex);
    char *id = stet_asprintf("pattern-file:%s", hex);
    stet_free(kept);
    status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    if (status == STET_OK)
        status = stet_space_load(d->space, branch, &(stet_docname){id, NULL}, -1, &state, err);
    if (status == STET_OK) {
        stet_value name =
            state.exists ? stet_value_get(stet_value_get(state.value, "value"), "piece") : stet_value_null();
        if (stet_value_type(name) == STET_TYPE_STRING)
            status = stet_piece_in(stet_value_as_string(&name, NULL), d->spec->scope, &d->piece, err);
        stet_value_release(state.value);
    }
    stet_free(id);
    stet_free(file);
    return status;
}

typedef struct remember_file {
    const char *id, *piece, *file;
} remember_file;

static stet_status write_remember(stet_tx *tx, void *ctx, stet_error *err) {
    remember_file *r = ctx;
    stet_value envelope = stet_value_object(), value = stet_value_object();
    stet_value_put(&value, "piece", stet_value_string(r->piece));
    stet_value_put(&value, "file", stet_value_string(r->file));
    stet_value_put(&envelope, "value", value);
    return stet_tx_put(tx, &(stet_docname){r->id, NULL}, envelope, err);
}

static stet_status remember_piece(driver *d, const char *known, stet_error *err) {
    if (!d->spec->pattern || d->spec->piece || (known && strcmp(known, d->piece) == 0))
        return STET_OK;
    char *file, hex[STET_HASH_HEX];
    stet_status status = stet_file_absolute(d->spec->pattern, &file, err);
    if (status != STET_OK)
        return status;
    char *kept = kept_path(d->project, file);
    stet_hash_hex(stet_hash_of(kept, strlen(kept)), hex);
    char *id = stet_asprintf("pattern-file:%s", hex), *name = stet_piece_bare(d->piece);
    remember_file r = {id, name, kept};
    status = stet_space_transact(d->space, d->spec->branch, write_remember, &r, NULL, err);
    stet_free(name);
    stet_free(id);
    stet_free(kept);
    stet_free(file);
    return status;
}

/* A pattern file may have been given another name inside since: then it is another piece. */
stet_status drive_prepare(driver *d, stet_error *err) {
    stet_status status = piece_of_file(d, err);
    if (status != STET_OK)
        return status;
    if (!d->spec->pattern) {
        status = set_up_stored(d, err);
        return status == STET_OK ? renew_driven(d, err) : status;
    }
    char *known = d->piece ? stet_strdup(d->piece) : NULL;
    if (known && !d->spec->piece) {
        /* Trust the name only if the file is provably the same. */
        int64_t branch;
        stet_piece *p = NULL;
        struct stat st;
        char *file = NULL;
        bool same = false;
        if (stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, NULL) == STET_OK &&
            stet_piece_load(d->space, branch, known, -1, &p, NULL) == STET_OK &&
            stet_file_absolute(d->spec->pattern, &file, NULL) == STET_OK && stet_sys_stat(file, &st) == 0) {
            stet_value now = source_of(d->project, file, &st, stet_clock_ns());
            same = same_source(stet_value_get(p->envelope, "source"), now);
            stet_value_release(now);
        }
        stet_piece_free(p);
        stet_free(file);
        if (!same) {
            stet_free(d->piece);
            d->piece = NULL;
        }
    }
    status = drive_set_up(d, d->spec->pattern, &d->piece, true, err);
    if (status == STET_OK)
        status = remember_piece(d, known, err);
    stet_free(known);
    d->named = true;
    return status == STET_OK ? renew_driven(d, err) : status;
}
