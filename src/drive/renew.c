/* renew.c - reads the pattern files of existing pieces again.
 *
 * The file of a pattern is an input of its piece and of everything that reads the piece, through any number of documents,
 * pieces and spaces. So every run checks the file, not only a run that names it. If the file is gone, the piece stays as
 * it is: its program is stored with it. A file that no longer defines its piece is an error, like a file that can't be
 * read.
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

/* `names`: an array of the pieces to begin with. */
stet_status drive_renew_patterns(driver *d, stet_value names, const char *only, stet_error *err) {
    stet_map seen = {0};
    stet_value todo = stet_value_retain(names);
    stet_status status = STET_OK;
    while (status == STET_OK && stet_value_count(todo) > 0) {
        stet_value name = stet_value_retain(stet_value_at(todo, stet_value_count(todo) - 1));
        size_t len = 0;
        const char *text = stet_value_type(name) == STET_TYPE_STRING ? stet_value_as_string(&name, &len) : "";
        stet_value_remove_at(&todo, stet_value_count(todo) - 1);
        stet_piece *p = NULL;
        if (!stet_map_get(&seen, text, len) && stet_piece_load(d->space, d->branch, text, -1, &p, NULL) == STET_OK) {
            stet_map_put(&seen, text, len, (stet_slot){.n = 1});
            if (is_due(d, p)) {
                stet_error mine = STET_ERROR_INIT;
                status = drive_set_up_again(d, p, false, &mine);
                if (status != STET_OK && status != STET_CANCELLED && only && strcmp(text, only) != 0)
                    status = STET_OK; /* drive_renew_all reports it */
                else if (status != STET_OK && err)
                    stet_error_move(err, &mine);
                stet_error_clear(&mine);
                stet_piece_free(p);
                p = NULL;
                if (status == STET_OK && stet_piece_load(d->space, d->branch, text, -1, &p, NULL) != STET_OK)
                    p = NULL;
            }
            if (status == STET_OK && p)
                status = stet_piece_check_parts(d->space, d->branch, p, err);
            stet_value read = p ? stet_value_get(stet_value_get(p->envelope, "process"), "pieces") : stet_value_null();
            for (size_t i = 0; i < stet_value_count(read); i++)
                stet_value_push(&todo, stet_value_retain(stet_value_at(read, i)));
        }
        stet_piece_free(p);
        stet_value_release(name);
    }
    stet_value_release(todo);
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
        stet_value_push(x->out, stet_value_string(p->name));
}

/* The names of the pieces on one branch whose pattern files have changed. The caller releases them. */
static stet_status due(const driver *d, stet_space *space, int64_t branch, stet_value *out, stet_error *err) {
    *out = stet_value_array();
    return stet_piece_each(space, branch, add_due, &(due_pieces){d, out}, err);
}

stet_status drive_patterns_changed(stet_project *project, stet_space *space, const char *branch, bool *changed,
                                   stet_error *err) {
    stet_value names = stet_value_null();
    int64_t number;
    stet_status status = stet_space_branch(space, branch ? branch : "", &number, err);
    if (status == STET_OK)
        status = due(&(driver){.project = project}, space, number, &names, err);
    *changed = stet_value_count(names) > 0;
    stet_value_release(names);
    return status;
}

/* Reports a problem once, however often the file is checked while it stays. */
static void report_once(driver *d, stet_map *wrong, const stet_error *why) {
    size_t len = strlen(why->message);
    if (!stet_map_get(&d->reported, why->message, len) && !stet_map_get(wrong, why->message, len) && d->spec->note)
        d->spec->note(d->spec->ctx, why);
    stet_map_put(wrong, why->message, len, (stet_slot){.n = 1});
}

/* Sets up the changed pieces of the driver's space. `teller` is the driver that reports problems. */
static stet_status renew_space(driver *d, driver *teller, stet_map *wrong, stet_value *invalid, stet_error *err) {
    stet_value names;
    stet_status status = due(d, d->space, d->branch, &names, err);
    for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
        stet_value name = stet_value_at(names, i);
        stet_error why = STET_ERROR_INIT;
        stet_piece *p = NULL;
        bool there = stet_piece_load(d->space, d->branch, stet_value_as_string(&name, NULL), -1, &p, &why) == STET_OK;
        stet_status renewed = there ? drive_set_up_again(d, p, false, &why) : STET_OK;
        if (renewed == STET_CANCELLED) {
            status = renewed;
            if (err)
                stet_error_move(err, &why);
        } else if (renewed != STET_OK) {
            if (d != teller)
                stet_fail_in(&why, "space \"%s\"", stet_space_name(d->space));
            report_once(teller, wrong, &why);
            drive_note_invalid(invalid, stet_space_name(d->space), stet_value_as_string(&name, NULL), why.message);
            if (d == teller && d->spec->wrong)
                d->spec->wrong(d->spec->ctx, stet_value_as_string(&name, NULL), &why);
            if (d->distrust)
                status = drive_distrust(d->project, d->space, d->branch, p, err);
        }
        stet_piece_free(p);
        stet_error_clear(&why);
    }
    stet_value_release(names);
    return status;
}

/* Renews another space, on its main branch. It is opened for writing only if there is something to set up. */
static stet_status renew_far(driver *d, const char *name, stet_map *wrong, stet_value *invalid, stet_error *err) {
    stet_drive_spec spec = {
        .space = name, .no_scan = d->spec->no_scan, .ctx = d->spec->ctx, .cancelled = d->spec->cancelled};
    stet_drive_outcome outcome = {0};
    driver far = {.project = d->project, .spec = &spec, .out = &outcome, .distrust = d->distrust};
    bool changed = false;
    stet_status status = stet_space_open(d->project, name, STET_SPACE_READ_ONLY, &far.space, err);
    if (status == STET_OK)
        status = drive_patterns_changed(d->project, far.space, NULL, &changed, err);
    stet_space_close(far.space);
    far.space = NULL;
    if (status != STET_OK && status != STET_NOT_FOUND) { /* maybe an older format, which a writer migrates */
        stet_error_clear(err);
        status = STET_OK;
        changed = true;
    }
    if (status == STET_OK && changed) {
        stet_sched_opts opts = {.persist = stet_drive_persist(d->project)};
        status = drive_open(&far, STET_SPACE_MUST_EXIST, &opts, err);
        if (status == STET_OK)
            status = renew_space(&far, d, wrong, invalid, err);
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

/* Of a run on another branch: may what it reads in other spaces read the main branch of this one? Otherwise a run on a
 * branch leaves the main branch as it is. */
static bool leads_back(const driver *d, const stet_names *names) {
    bool forked = d->spec->branch && *d->spec->branch, found = false;
    const char *own = stet_space_name(d->space);
    for (size_t i = 0; i < names->len && forked && !found; i++) {
        stet_space *far = NULL;
        stet_names read = {0};
        if (strcmp(names->at[i], own) == 0 ||
            stet_space_open(d->project, names->at[i], STET_SPACE_READ_ONLY, &far, NULL) != STET_OK)
            continue;
        stet_observe_switch(far, stet_drive_persist(d->project));
        found = stet_observe_others(far, &read, NULL) == STET_OK && drive_names_hold(&read, read.len, own);
        stet_names_release(&read);
        stet_space_close(far);
    }
    return found;
}

stet_status drive_renew_all(driver *d, stet_error *err) {
    stet_names names = {0};
    stet_map wrong = {0};
    stet_value invalid = stet_value_object();
    stet_status status = renew_space(d, d, &wrong, &invalid, err);
    if (status == STET_OK)
        status = stet_space_names(d->project, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        stet_error why = STET_ERROR_INIT;
        bool here = strcmp(names.at[i], stet_space_name(d->space)) == 0 && !leads_back(d, &names); /* renewed above */
        stet_status far = here ? STET_OK : renew_far(d, names.at[i], &wrong, &invalid, &why);
        if (far == STET_CANCELLED) {
            status = far;
            if (err)
                stet_error_move(err, &why);
        } else if (far != STET_OK && far != STET_NOT_FOUND) {
            report_once(d, &wrong, &why);
        }
        stet_error_clear(&why);
    }
    stet_names_release(&names);
    stet_map_release(&d->reported);
    d->reported = wrong;
    stet_value_release(d->invalid);
    d->invalid = invalid;
    return status;
}
