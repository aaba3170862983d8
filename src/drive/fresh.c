/* fresh.c - brings one cell up to date without naming a pattern, and reports what a run would find. */

#include <string.h>

#include "drive/drive_internal.h"
#include "drive/scratch.h"
#include "os/file.h"

stet_status drive_open(driver *d, unsigned flags, stet_sched_opts *opts, stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    stet_status status = stet_space_open(d->project, spec->space ? spec->space : "main", flags, &d->space, err);
    if (status != STET_OK)
        return status;
    stet_observe_switch(d->space, opts->persist);
    status = stet_files_open(d->project, d->space, &d->files, err);
    if (status != STET_OK || (status = stet_files_set_branch(d->files, spec->branch, err)) != STET_OK ||
        (status = stet_space_branch(d->space, spec->branch ? spec->branch : "", &d->branch, err)) != STET_OK)
        return status;
    stet_files_set_pending(d->files, drive_is_pending, d);
    opts->files = d->files;
    return stet_sched_open(d->project, d->space, spec->branch, opts, &d->sched, err);
}

void drive_close(driver *d) {
    stet_sched_close(d->sched);
    stet_files_close(d->files);
    for (size_t i = 0; i < d->far_files.len; i++)
        stet_files_close(d->far_files.at[i]);
    stet_vec_release(&d->far_files);
    stet_piece_free(d->stored);
    stet_map_release(&d->reported);
    stet_value_release(d->invalid);
    stet_vec_release(&d->parts);
    stet_arena_release(&d->arena);
    stet_names_release(&d->tolerated);
    stet_space_close(d->space);
    stet_lock_close(d->hold);
    stet_free(d->held);
}

/* The piece to which a document belongs, or all pieces. The caller releases them. */
static stet_status pieces_of(driver *d, const stet_docname *name, stet_value *names, stet_error *err) {
    bool more;
    *names = stet_value_array();
    char *piece = stet_piece_around(name);
    if (piece) {
        stet_value_push(names, stet_value_string(piece));
        stet_free(piece);
        return STET_OK;
    }
    stet_value_release(*names);
    *names = stet_value_null();
    return stet_piece_names(d->space, d->branch, NULL, 10000, names, &more, err);
}

/* Reports that an action failed, so that the value would be old. */
static stet_status say_failed(stet_sched *sched, const stet_sched_report *r, stet_error *err) {
    drive_failure first;
    drive_first_failure(r->problems, stet_sched_failed_before(sched), &first);
    const char *in = first.piece + (strncmp(first.piece, "piece:", 6) == 0 ? 6 : 0);
    return stet_fail(err, STET_FAILED, "not fresh: %s%s%s: %s", in, *in ? "/" : "", first.node, first.message);
}

/* Brings the patterns up to date that a document may depend on. */
static stet_status renew_for(driver *d, const stet_docname *name, stet_pathref path, stet_error *err) {
    stet_value names;
    stet_status status = pieces_of(d, name, &names, err);
    if (status != STET_OK)
        return status;
    bool whole = stet_piece_name_of(name->id) && stet_path_depth(path) <= 1;
    char *piece =
        strncmp(name->id, "piece:", 6) == 0 ? stet_strndup(name->id + 6, strcspn(name->id + 6, ":")) : stet_strdup("");
    status = drive_renew_patterns(d, names, whole ? NULL : piece, err);
    stet_free(piece);
    stet_value_release(names);
    return status == STET_OK ? drive_renew_all(d, err) : status;
}

static stet_status save_all_files(driver *d, stet_error *err) {
    stet_status status = stet_files_save(d->files, err);
    for (size_t i = 0; i < d->far_files.len && status == STET_OK; i++)
        status = stet_files_save(d->far_files.at[i], err);
    return status;
}

static stet_status settle_cell(driver *d, const stet_docname *name, stet_pathref path, stet_error *err) {
    stet_sched_report report = {0};
    stet_status status = stet_sched_demand_cell(d->sched, name->id, name->scope, path, err);
    if (status != STET_OK)
        return status;
    status = stet_sched_settle(d->sched, &report, err);
    if (status == STET_OK && report.runs > 0)
        status = save_all_files(d, err);
    if (status == STET_OK && report.failed > 0)
        status = say_failed(d->sched, &report, err);
    stet_value_release(report.problems);
    return status;
}

static stet_status get_fresh(driver *d, const stet_docname *name, stet_pathref path, stet_value *out, stet_error *err) {
    size_t ran;
    stet_status status = renew_for(d, name, path, err);
    if (status != STET_OK || (status = drive_bring_files_up(d, err)) != STET_OK ||
        (status = settle_cell(d, name, path, err)) != STET_OK)
        return status;
    /* Actions that were put aside, because others kept changing what they read, are tried again here. */
    status = stet_sched_get_fresh(d->sched, &(stet_sched_want){.cell = {*name, path}}, &ran, out, err);
    if (status != STET_OK)
        return status;
    status = drive_refuse_invalid(d, name, path, err);
    if (status == STET_OK)
        status = drive_note_accepted(d, name, err);
    if (status != STET_OK)
        stet_value_release(*out);
    return status;
}

stet_status stet_drive_fresh(stet_project *project, const stet_drive_spec *spec, const stet_docname *name,
                             stet_pathref path, stet_value *out, stet_error *err) {
    stet_drive_outcome outcome = {0};
    driver d = {.project = project, .spec = spec, .out = &outcome};
    stet_sched_opts opts = {.persist = stet_drive_persist(project),
                            .retry_failed = spec->retry_failed,
                            .ctx = &d,
                            .cancelled = drive_is_cancelled,
                            .rested = drive_on_rested,
                            .may_make = drive_may_make,
                            .accept_read = drive_accept_read,
                            .files_of = drive_files_of};
    stet_status status = drive_open(&d, STET_SPACE_MUST_EXIST, &opts, err);
    if (status == STET_OK)
        status = drive_settle_lent(&d, false, err);
    if (status == STET_OK)
        status = get_fresh(&d, name, path, out, err);
    if (status == STET_FAILED)
        stet_hint(err, "without --fresh what was made last is printed");
    drive_close(&d);
    stet_drive_outcome_release(&outcome);
    return status;
}

stet_status drive_bring_up(stet_project *project, const stet_drive_spec *spec, bool distrust, stet_error *err) {
    stet_drive_outcome outcome = {0};
    driver d = {.project = project, .spec = spec, .out = &outcome, .distrust = distrust};
    stet_sched_opts opts = {.persist = stet_drive_persist(project)};
    stet_status status = drive_open(&d, STET_SPACE_MUST_EXIST, &opts, err);
    if (status == STET_OK)
        status = drive_settle_lent(&d, true, err);
    if (status == STET_OK)
        status = drive_renew_all(&d, err);
    if (status == STET_OK)
        status = drive_bring_files_up(&d, err);
    drive_close(&d);
    stet_drive_outcome_release(&outcome);
    return status;
}

/* Have patterns of this space changed or, if `others` is given, files? Adds the spaces that it reads to `others`. */
static stet_status space_changed(stet_project *project, const char *name, const char *branch, stet_names *others,
                                 bool *changed) {
    stet_space *space = NULL;
    stet_files *files = NULL;
    stet_status status = stet_space_open(project, name, STET_SPACE_READ_ONLY, &space, NULL);
    if (status == STET_OK)
        status = drive_patterns_changed(project, space, branch, changed, NULL);
    if (status == STET_OK && !*changed) {
        stet_value lent = stet_value_null();
        int64_t number;
        *changed = stet_space_branch(space, branch ? branch : "", &number, NULL) == STET_OK &&
                   drive_any_lent(space, number, &lent, NULL) == STET_OK && stet_value_count(lent) > 0;
        stet_value_release(lent);
    }
    if (status == STET_OK && others && !*changed) {
        stet_observe_switch(space, stet_drive_persist(project));
        status = stet_observe_others(space, others, NULL);
        if (status == STET_OK)
            status = stet_files_open(project, space, &files, NULL);
        if (status == STET_OK)
            status = stet_files_set_branch(files, branch, NULL);
        *changed = status == STET_OK && (stet_files_changed(files) || stet_files_branch_differs(files));
    }
    stet_files_close(files);
    stet_space_close(space);
    return status;
}

bool drive_names_hold(const stet_names *names, size_t len, const char *name) {
    for (size_t i = 0; i < len; i++)
        if (strcmp(names->at[i], name) == 0)
            return true;
    return false;
}

/* Files matter in the spaces that are read, directly or through others; patterns in all. A space that can't be opened
 * is reported by the operation that shows it. */
static bool anything_changed(stet_project *project, const stet_drive_spec *spec) {
    stet_names read = {0}, all = {0};
    const char *own = spec->space ? spec->space : "main";
    bool forked = spec->branch && *spec->branch, changed = false;
    stet_status status = space_changed(project, own, spec->branch, &read, &changed);
    if (status == STET_OK && !changed)
        status = stet_space_names(project, &all, NULL);
    for (size_t i = 0; i < read.len && status == STET_OK && !changed; i++) {
        char *name = stet_strdup(read.at[i]); /* a copy, since the list grows */
        bool checked = drive_names_hold(&read, i, name) || (strcmp(name, own) == 0 && !forked);
        if (!checked && space_changed(project, name, NULL, &read, &changed) != STET_OK)
            changed = false;
        stet_free(name);
    }
    for (size_t i = 0; i < all.len && status == STET_OK && !changed; i++) {
        bool checked = drive_names_hold(&read, read.len, all.at[i]) || (strcmp(all.at[i], own) == 0 && !forked);
        if (!checked && space_changed(project, all.at[i], NULL, NULL, &changed) != STET_OK)
            changed = false;
    }
    stet_names_release(&read);
    stet_names_release(&all);
    return status == STET_OK && changed;
}

stet_status stet_drive_preview(stet_project *project, const stet_drive_spec *spec, stet_scratch *out, bool *changed,
                               stet_error *err) {
    *changed = anything_changed(project, spec);
    if (!*changed)
        return STET_OK;
    stet_status status = stet_scratch_open(project, out, err);
    if (status == STET_OK) {
        status = drive_bring_up(out->project, spec, true, err);
        if (status != STET_OK)
            stet_scratch_close(out);
    }
    return status;
}
