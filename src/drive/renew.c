/* renew.c - reads the pattern files of existing pieces again.
 *
 * The file of a pattern is an input of its piece and of everything that reads the piece, over any number of documents,
 * pieces and spaces. So every drive looks at the file, not only a drive that names it. If the file is gone, the piece
 * stays as it is: its program is stored with it. A file that no longer defines its piece is an error, like a file that
 * can't be read.
 */

#include <string.h>

#include "base/map.h"
#include "drive/drive_internal.h"
#include "graph/argument.h"
#include "os/file.h"

static bool is_due(const driver *d, const stet_piece *p) {
    bool given = d->named && d->piece && strcmp(d->piece, p->name) == 0;
    return !given && drive_source_changed(d->project, p);
}

static stet_status renew(driver *d, const stet_piece *p, stet_error *err) {
    char *file = drive_source_path(d->project, stet_get(p->envelope, "source")), *piece = stet_strdup(p->name);
    stet_status status = drive_set_up(d, file, &piece, false, err);
    if (status != STET_OK)
        stet_fail_in(err, "the pattern of piece \"%s\"", piece);
    stet_free(file);
    stet_free(piece);
    return status;
}

/* Sets up what a piece and those that it reads are by now. `names` are to be visited; an array. */
stet_status drive_renew_patterns(driver *d, stet_value names, stet_error *err) {
    int64_t branch;
    stet_map seen = {0};
    stet_value todo = stet_retain(names);
    stet_status status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    while (status == STET_OK && stet_count(todo) > 0) {
        stet_value name = stet_retain(stet_at(todo, stet_count(todo) - 1));
        size_t len = 0;
        const char *text = stet_typeof(name) == STET_STRING ? stet_as_string(&name, &len) : "";
        stet_remove_at(&todo, stet_count(todo) - 1);
        stet_piece *p = NULL;
        if (!stet_map_get(&seen, text, len) && stet_piece_load(d->space, branch, text, -1, &p, NULL) == STET_OK) {
            stet_map_put(&seen, text, len, (stet_slot){.n = 1});
            if (is_due(d, p)) {
                status = renew(d, p, err);
                stet_piece_free(p);
                p = NULL;
                if (status == STET_OK && stet_piece_load(d->space, branch, text, -1, &p, NULL) != STET_OK)
                    p = NULL;
            }
            if (status == STET_OK && p)
                status = stet_piece_check_parts(d->space, branch, p, err);
            stet_value read = p ? stet_get(stet_get(p->envelope, "process"), "pieces") : stet_null();
            for (size_t i = 0; i < stet_count(read); i++)
                stet_push(&todo, stet_retain(stet_at(read, i)));
        }
        stet_piece_free(p);
        stet_release(name);
    }
    stet_release(todo);
    stet_map_release(&seen);
    return status;
}

typedef struct due_pieces {
    const driver *d;
    stet_value *out;
} due_pieces;

static void add_due(void *ctx, const stet_piece *p) {
    due_pieces *x = ctx;
    if (is_due(x->d, p))
        stet_push(x->out, stet_string(p->name));
}

/* The pieces of one branch whose pattern files have changed, by name; the caller releases them. */
static stet_status due(const driver *d, stet_space *space, const char *branch_name, stet_value *out, stet_error *err) {
    int64_t branch;
    *out = stet_array();
    stet_status status = stet_space_branch(space, branch_name ? branch_name : "", &branch, err);
    return status == STET_OK ? stet_piece_each(space, branch, add_due, &(due_pieces){d, out}, err) : status;
}

stet_status drive_patterns_changed(stet_project *project, stet_space *space, const char *branch, bool *changed,
                                   stet_error *err) {
    stet_value names;
    stet_status status = due(&(driver){.project = project}, space, branch, &names, err);
    *changed = stet_count(names) > 0;
    stet_release(names);
    return status;
}

/* Once for each time that it goes wrong, however often it is looked at. */
static void tell(driver *d, stet_map *wrong, const stet_error *why) {
    size_t len = strlen(why->message);
    if (!stet_map_get(&d->wrong, why->message, len) && !stet_map_get(wrong, why->message, len) && d->spec->note)
        d->spec->note(d->spec->ctx, why);
    stet_map_put(wrong, why->message, len, (stet_slot){.n = 1});
}

typedef struct piece_actions {
    const stet_piece *p;
    stet_numbers failed;
    stet_arena arena;
    STET_VEC(stet_action_key) keys;
} piece_actions;

static bool add_action(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    piece_actions *all = ctx;
    (void)bytes, (void)len;
    for (size_t i = 0; i < all->failed.len; i++)
        if (all->failed.at[i] == action)
            return true;
    *stet_vec_add(&all->keys) = stet_piece_action(all->p, stet_arena_strndup(&all->arena, name, name_len));
    return true;
}

/* All of its actions, for whoever reads them. One that failed is not up to date anyway. */
static stet_status make_unknown(stet_space *space, int64_t branch, const stet_piece *p, stet_error *err) {
    piece_actions all = {.p = p, .arena = STET_ARENA_INIT};
    stet_action_filter filter = {.piece = p->doc, .generation = -1};
    stet_status status = stet_observe_failed(space, branch, p->doc, &all.failed, err);
    if (status == STET_OK)
        status = stet_observe_scan(space, branch, &filter, add_action, &all, err);
    if (status == STET_OK)
        status = stet_observe_distrust(space, branch, all.keys.at, all.keys.len, STET_REASON_PATTERN, err);
    stet_numbers_release(&all.failed);
    stet_vec_release(&all.keys);
    stet_arena_release(&all.arena);
    return status;
}

/* Sets up what has changed in the driver's space. What goes wrong is told by `teller`. */
static stet_status renew_space(driver *d, driver *teller, stet_map *wrong, stet_error *err) {
    int64_t branch;
    stet_value names;
    stet_status status = due(d, d->space, d->spec->branch, &names, err);
    if (status == STET_OK)
        status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    for (size_t i = 0; i < stet_count(names) && status == STET_OK; i++) {
        stet_value name = stet_at(names, i);
        stet_error why = STET_ERROR_INIT;
        stet_piece *p = NULL;
        if (stet_piece_load(d->space, branch, stet_as_string(&name, NULL), -1, &p, &why) == STET_OK &&
            renew(d, p, &why) != STET_OK) {
            if (d != teller)
                stet_fail_in(&why, "space \"%s\"", stet_space_name(d->space));
            tell(teller, wrong, &why);
            if (d == teller && d->spec->wrong)
                d->spec->wrong(d->spec->ctx, stet_as_string(&name, NULL), &why);
            if (d->distrust && p)
                status = make_unknown(d->space, branch, p, err);
        }
        stet_piece_free(p);
        stet_error_clear(&why);
    }
    stet_release(names);
    return status;
}

/* Another space, on its main branch: opened for writing only if there is something to set up. */
static stet_status renew_far(driver *d, const char *name, stet_map *wrong, stet_error *err) {
    stet_drive_spec spec = {.space = name, .no_scan = d->spec->no_scan};
    stet_drive_outcome outcome = {0};
    driver far = {.project = d->project, .spec = &spec, .out = &outcome, .distrust = d->distrust};
    bool changed = false;
    stet_status status = stet_space_open(d->project, name, STET_SPACE_READ_ONLY, &far.space, err);
    if (status == STET_OK)
        status = drive_patterns_changed(d->project, far.space, NULL, &changed, err);
    stet_space_close(far.space);
    far.space = NULL;
    if (status != STET_OK && status != STET_NOT_FOUND) { /* it may be of an older format, which a writer brings up */
        stet_error_clear(err);
        status = STET_OK;
        changed = true;
    }
    if (status == STET_OK && changed) {
        stet_sched_opts opts = {.persist = stet_drive_persist(d->project)};
        status = drive_open(&far, &opts, err);
        if (status == STET_OK)
            status = renew_space(&far, d, wrong, err);
        if (status == STET_OK && far.set_up)
            status = drive_bring_files_up(&far, err);
        if (status == STET_OK && far.set_up)
            status = stet_files_save(far.files, err);
        d->set_up = d->set_up || far.set_up;
        drive_close(&far);
    }
    stet_drive_outcome_release(&outcome);
    return status;
}

stet_status drive_renew_all(driver *d, stet_error *err) {
    stet_names names = {0};
    stet_map wrong = {0};
    stet_status status = renew_space(d, d, &wrong, err);
    if (status == STET_OK)
        status = stet_space_names(d->project, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        stet_error why = STET_ERROR_INIT;
        bool here = strcmp(names.at[i], stet_space_name(d->space)) == 0; /* its other branches are not this one's */
        if (!here && renew_far(d, names.at[i], &wrong, &why) != STET_OK && why.status != STET_NOT_FOUND)
            tell(d, &wrong, &why);
        stet_error_clear(&why);
    }
    stet_names_release(&names);
    stet_map_release(&d->wrong);
    d->wrong = wrong;
    return status;
}
