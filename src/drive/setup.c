/* setup.c - finds the piece to drive and brings it in line with its pattern. */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "graph/argument.h"
#include "module/javascript.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/sys.h"

#define USE_UP_NODES 10000 /* a larger pattern is released while its graph is built */

/* A file that was changed less than this before it was read may have been changed again within the same tick of the
 * file system's clock: its times prove nothing. */
#define TICK_NS 20000000

/* The path of a file as it is stored: inside the project relative to its root, so that a project that is moved or
 * copied uses its own patterns. Links below the root are not followed, because their targets may change. */
static char *kept_path(const stet_project *p, const char *file) {
    const char *root = stet_project_root(p);
    size_t len = strlen(root);
    struct stat top, st;
    if (strncmp(file, root, len) == 0 && file[len] == '/')
        return stet_strdup(file + len + 1);
    /* The path may lead to the project in another way, for example through a link. */
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

/* What is stored about a file. */
static stet_value source_of(const char *kept, const struct stat *st, int64_t seen_ns) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "file", stet_value_string(kept));
    stet_value_put(&v, "size", stet_value_int(st->st_size));
    stet_value_put(&v, "mtimeNs", stet_value_int((int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec));
    stet_value_put(&v, "ctimeNs", stet_value_int((int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec));
    stet_value_put(&v, "inode", stet_value_int((int64_t)st->st_ino));
    stet_value_put(&v, "device", stet_value_int((int64_t)st->st_dev));
    stet_value_put(&v, "seenNs", stet_value_int(seen_ns));
    return v;
}

static bool same_file(stet_value was, stet_value now) {
    static const char *const keys[] = {"file", "size", "mtimeNs", "ctimeNs", "inode", "device"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!stet_value_equal(stet_value_get(was, keys[i]), stet_value_get(now, keys[i])))
            return false;
    int64_t seen = stet_value_as_int(stet_value_get(was, "seenNs"));
    return stet_value_as_int(stet_value_get(was, "mtimeNs")) + TICK_NS < seen &&
           stet_value_as_int(stet_value_get(was, "ctimeNs")) + TICK_NS < seen;
}

/* A pattern file, found and inspected once. */
typedef struct pattern_file {
    const char *given; /* for messages */
    char *kept;        /* as stored */
    stet_value source; /* what is stored about it, with the time of this inspection */
} pattern_file;

static stet_status inspect_file(const stet_project *p, const char *given, pattern_file *out, stet_error *err) {
    struct stat st;
    char *file;
    int64_t seen = stet_clock_ns();
    *out = (pattern_file){.given = given, .source = stet_value_null()};
    stet_status status = stet_file_absolute(given, &file, err);
    if (status != STET_OK)
        return status;
    if (stet_sys_stat(file, &st) != 0) {
        status = stet_fail_errno(err, errno, "%s", given);
    } else {
        out->kept = kept_path(p, file);
        out->source = source_of(out->kept, &st, seen);
    }
    stet_free(file);
    return status;
}

static void forget(pattern_file *f) {
    stet_free(f->kept);
    stet_value_release(f->source);
}

/* The other files that the pattern was made from: {"others": [...]} of its source. They are looked at before they are
 * read, so a later change shows. */
typedef struct other_files {
    const stet_project *project;
    stet_value seen;
} other_files;

static void note_other(void *ctx, const char *path) {
    other_files *o = ctx;
    pattern_file f;
    stet_value gone = stet_value_object();
    stet_value_put(&gone, "file", stet_value_string(path)); /* reading it fails, and so does the pattern */
    bool there = inspect_file(o->project, path, &f, NULL) == STET_OK;
    stet_value_push(&o->seen, stet_value_retain(there ? f.source : gone));
    stet_value_release(gone);
    forget(&f);
}

/* Is each file provably the one from which the piece was set up? `now` is what is known of the pattern file itself. */
static bool same_source(const stet_project *p, stet_value was, stet_value now) {
    stet_value others = stet_value_get(was, "others");
    bool same = same_file(was, now);
    for (size_t i = 0; i < stet_value_count(others) && same; i++) {
        stet_value other = stet_value_at(others, i);
        char *path = drive_source_path(p, other);
        pattern_file f = {0};
        same = path && inspect_file(p, path, &f, NULL) == STET_OK && same_file(other, f.source);
        forget(&f);
        stet_free(path);
    }
    return same;
}

bool drive_source_changed(const stet_project *project, const stet_piece *p) {
    stet_value source = stet_value_get(p->envelope, "source");
    char *path = drive_source_path(project, source);
    pattern_file now = {0};
    bool there = path && inspect_file(project, path, &now, NULL) == STET_OK,
         changed = there && (p->rebuild || !same_source(project, source, now.source));
    forget(&now);
    stet_free(path);
    return changed;
}

/* docs/pattern-format.md, "Pieces and pattern files": does the piece follow its file whatever the pattern is named? It
 * does if its name is not, or once was not, that of the pattern. */
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

/* The changes to a piece whose program stays. */
typedef struct small_change {
    driver *d;
    const char *piece;
    stet_value source, set, unset;
} small_change;

static stet_status write_small(stet_tx *tx, void *ctx, stet_error *err) {
    small_change *c = ctx;
    int64_t branch = c->d->branch;
    stet_piece *p; /* as seen by this transaction */
    stet_status status = stet_piece_load(c->d->space, branch, c->piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(c->source) != STET_TYPE_NULL) {
        stet_docname result = stet_piece_name(p, NULL);
        status = stet_tx_write_member(tx, &result, "source", stet_value_retain(c->source), err);
    }
    if (status == STET_OK)
        status = stet_piece_adjust(tx, branch, p, c->unset, c->set, err);
    stet_piece_free(p);
    return status;
}

/* Keeps the program, and stores where it came from (null: as before) and the values to set. */
static stet_status adjust(driver *d, const stet_piece *piece, stet_value source, bool own, stet_error *err) {
    small_change c = {d, piece->name, source, own ? d->spec->set : stet_value_null(),
                      own ? d->spec->unset : stet_value_null()};
    stet_status status = own ? drive_hold(d, piece->name, err) : STET_OK;
    if (status == STET_OK && own)
        status = drive_accept_stored(d, piece, err);
    if (status != STET_OK ||
        (stet_value_type(source) == STET_TYPE_NULL && stet_value_count(c.set) == 0 && stet_value_count(c.unset) == 0))
        return status;
    return stet_space_transact(d->space, d->spec->branch, write_small, &c, NULL, err);
}

static stet_piece *find_piece(const driver *d, const char *name) {
    stet_piece *p = NULL;
    return name && stet_piece_load(d->space, d->branch, name, -1, &p, NULL) == STET_OK ? p : NULL;
}

/* Is the piece up to date with the file, which is provably unchanged? Then the file is not even read. */
static bool is_set_up(const driver *d, const stet_piece *p, const pattern_file *file) {
    return p && p->marked && !p->rebuild &&
           same_source(d->project, stet_value_get(p->envelope, "source"), file->source);
}

static stet_status install(driver *d, stet_pattern *pattern, const char *piece, stet_value source, bool own,
                           stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    stet_sched_installed made;
    stet_sched_setup setup = {.pattern = pattern, .piece = piece, .source = source, .ctx = d};
    if (own) {
        setup.set = d->lent_at_setup ? spec->lend : spec->set;
        setup.unset = spec->unset;
        setup.accept = drive_accept_new;
    }
    pattern->use_up = pattern->node_count > USE_UP_NODES;
    stet_status status = own ? drive_hold(d, piece, err) : STET_OK;
    if (status == STET_OK)
        status = stet_files_unsettle(d->files, err);
    if (status == STET_OK)
        status = stet_sched_set_up(d->sched, &setup, own ? &d->out->installed : &made, err);
    if (status != STET_OK)
        return status;
    d->out->installed_now = d->out->installed_now || own;
    d->set_up = true;
    return stet_lookout_follow(d->files, d->space, spec->branch, piece, err);
}

/* Reads the file and updates the piece. `before` is the stored piece, or NULL. `*piece` NULL: it gets the name of the
 * pattern. */
static stet_status set_up_from(driver *d, pattern_file *file, const stet_piece *before, char **piece, bool own,
                               stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    stet_pattern *pattern = NULL;
    stet_piece *found = NULL;
    stet_javascript_script script = {
        stet_value_get(stet_value_get(stet_project_config(d->project), "module"), "javascript"), spec->cancelled,
        spec->ctx};
    other_files others = {d->project, stet_value_array()};
    stet_pattern_checks checks = {.module = stet_module_check,
                                  .script = stet_javascript_pattern,
                                  .script_ctx = &script,
                                  .names = stet_module_names,
                                  .other = note_other,
                                  .other_ctx = &others,
                                  .root = stet_project_root(d->project)};
    stet_status status = stet_pattern_load(file->given, &checks, &pattern, NULL, err);
    if (stet_value_count(others.seen) > 0)
        stet_value_put(&file->source, "others", others.seen);
    else
        stet_value_release(others.seen);
    if (status == STET_OK && !*piece) {
        status = stet_piece_in(pattern->name, spec->scope, piece, err);
        if (status == STET_OK)
            before = found = find_piece(d, *piece);
    }
    bool named = own && spec->pattern, same = status == STET_OK && is_called(*piece, pattern->name);
    if (status == STET_OK && before && !named && !same && !is_tied(before))
        status = say_detached(before, file->given, pattern->name, err);
    if (status == STET_OK && (!same || (before && is_tied(before))))
        stet_value_put(&file->source, "tied", stet_value_bool(true));
    /* A new piece may lack an argument that its pattern accepts, but for what the run lends. */
    d->lent_at_setup = own && !before && stet_value_count(spec->lend) > 0;
    bool same_program =
        before && before->marked && !before->rebuild && pattern && stet_hash_equal(before->program, pattern->hash);
    if (status == STET_OK)
        status = same_program ? adjust(d, before, file->source, own, err)
                              : install(d, pattern, *piece, file->source, own, err);
    stet_piece_free(found);
    stet_pattern_free(pattern);
    return status;
}

stet_status drive_set_up_again(driver *d, const stet_piece *p, bool own, stet_error *err) {
    pattern_file file;
    char *path = drive_source_path(d->project, stet_value_get(p->envelope, "source")), *piece = stet_strdup(p->name);
    stet_status status = inspect_file(d->project, path, &file, err);
    if (status == STET_OK)
        status = is_set_up(d, p, &file) ? adjust(d, p, stet_value_null(), own, err)
                                        : set_up_from(d, &file, p, &piece, own, err);
    if (status != STET_OK)
        stet_fail_in(err, "the pattern of piece \"%s\"", p->name);
    forget(&file);
    stet_free(path);
    stet_free(piece);
    return status;
}

/* Sets up the piece that is run without naming a pattern: it exists, and its file may have changed. */
static stet_status set_up_stored(driver *d, stet_error *err) {
    stet_status status = drive_look(d, err);
    if (status != STET_OK)
        return status;
    return drive_source_changed(d->project, d->stored) ? drive_set_up_again(d, d->stored, true, err)
                                                       : adjust(d, d->stored, stet_value_null(), true, err);
}

static stet_status renew_driven(driver *d, stet_error *err) {
    stet_value names = stet_value_array();
    stet_value_push(&names, stet_value_string(d->piece));
    stet_status status = drive_renew_patterns(d, names, drive_wants_part(d) ? d->piece : NULL, err);
    stet_value_release(names);
    return status == STET_OK ? drive_renew_all(d, err) : status;
}

/* The piece that was set up from a file is stored in a document, by the path of the file: the name of the pattern is
 * inside the file, which is not read if it is unchanged. */
static char *memory_of(const pattern_file *file) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_of(file->kept, strlen(file->kept)), hex);
    return stet_asprintf("pattern-file:%s", hex);
}

/* `*piece` NULL: nothing is stored. */
static stet_status recall_piece(const driver *d, const pattern_file *file, char **piece, stet_error *err) {
    stet_doc_state state;
    char *id = memory_of(file);
    *piece = NULL;
    stet_status status = stet_space_load(d->space, d->branch, &(stet_docname){id, NULL}, -1, &state, err);
    if (status == STET_OK) {
        stet_value hold;
        const char *name =
            state.exists ? stet_value_text_at(stet_value_get(state.value, "value"), "piece", &hold) : NULL;
        if (name)
            status = stet_piece_in(name, d->spec->scope, piece, err);
        stet_value_release(state.value);
    }
    stet_free(id);
    return status;
}

typedef struct file_memory {
    const char *id, *piece, *file;
} file_memory;

static stet_status write_memory(stet_tx *tx, void *ctx, stet_error *err) {
    const file_memory *m = ctx;
    stet_value envelope = stet_value_object(), value = stet_value_object();
    stet_value_put(&value, "piece", stet_value_string(m->piece));
    stet_value_put(&value, "file", stet_value_string(m->file));
    stet_value_put(&envelope, "value", value);
    return stet_tx_put(tx, &(stet_docname){m->id, NULL}, envelope, err);
}

static stet_status remember_piece(const driver *d, const pattern_file *file, stet_error *err) {
    char *id = memory_of(file), *name = stet_piece_bare(d->piece);
    file_memory m = {id, name, file->kept};
    stet_status status = stet_space_transact(d->space, d->spec->branch, write_memory, &m, NULL, err);
    stet_free(name);
    stet_free(id);
    return status;
}

/* Sets up the piece of the given file. A stored name is trusted only if the file is provably the same: otherwise the
 * pattern may have another name by now, which makes it another piece. */
static stet_status set_up_given(driver *d, pattern_file *file, stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    char *known = NULL;
    stet_status status = spec->piece ? STET_OK : recall_piece(d, file, &known, err);
    if (status != STET_OK)
        return status;
    stet_piece *before = find_piece(d, spec->piece ? d->piece : known);
    if (known && before && same_source(d->project, stet_value_get(before->envelope, "source"), file->source))
        d->piece = stet_strdup(known);
    else if (!spec->piece) {
        stet_piece_free(before);
        before = NULL;
    }
    status = is_set_up(d, before, file) ? adjust(d, before, stet_value_null(), true, err)
                                        : set_up_from(d, file, before, &d->piece, true, err);
    stet_piece_free(before);
    if (status == STET_OK && !spec->piece && (!known || strcmp(known, d->piece) != 0))
        status = remember_piece(d, file, err);
    stet_free(known);
    d->named = true;
    return status;
}

stet_status drive_look(driver *d, stet_error *err) {
    const char *branch = d->spec->branch ? d->spec->branch : "";
    stet_piece *now = NULL;
    stet_status status = stet_space_branch(d->space, branch, &d->branch, err);
    if (status == STET_OK)
        status = stet_piece_load(d->space, d->branch, d->piece, -1, &now, err);
    if (status == STET_OK) {
        stet_piece_free(d->stored);
        d->stored = now;
    }
    return status;
}

stet_status drive_prepare(driver *d, stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    if (!spec->piece && !spec->pattern)
        return stet_fail(err, STET_INVALID, "neither a pattern nor a piece was named");
    stet_status status = spec->piece ? stet_piece_in(spec->piece, spec->scope, &d->piece, err) : STET_OK;
    if (status == STET_OK && spec->pattern) {
        pattern_file file;
        status = inspect_file(d->project, spec->pattern, &file, err);
        if (status == STET_OK)
            status = set_up_given(d, &file, err);
        forget(&file);
    } else if (status == STET_OK) {
        status = set_up_stored(d, err);
    }
    return status == STET_OK ? renew_driven(d, err) : status;
}
