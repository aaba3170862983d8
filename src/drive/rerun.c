/* rerun.c - reruns up-to-date actions in a copy of the project and compares the results. */

#include "drive/rerun.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "drive/drive_internal.h"
#include "drive/rerun_command.h"
#include "drive/scratch.h"
#include "files/files.h"
#include "os/file.h"

#define LOADED 1000 /* actions after which a scheduler is closed, to free its memory */

/* One branch of one space, with the numbers of its actions. */
typedef struct place {
    char *space, *branch;
    STET_VEC(int64_t) actions;
} place;

typedef struct rerunning {
    const stet_rerun_spec *spec;
    stet_project *project; /* the copy */
    STET_VEC(place) places;
    uint64_t random;
    size_t total, compared, left_out, accepted, outdated, differ;
    stet_value wrong, varying, notes;
    stet_rerun_copy copy; /* for commands */
    /* What is open. */
    place *at;
    stet_space *s;
    stet_files *files;
    stet_sched *sched;
    size_t used;
} rerunning;

static bool note_action(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    place *p = ctx;
    (void)name, (void)name_len, (void)bytes;
    if (len > 0)
        *stet_vec_add(&p->actions) = action;
    return true;
}

static void close_place(rerunning *r) {
    stet_sched_close(r->sched);
    stet_files_close(r->files);
    stet_space_close(r->s);
    r->sched = NULL;
    r->files = NULL;
    r->s = NULL;
    r->at = NULL;
    r->used = 0;
}

static stet_status open_place(rerunning *r, place *p, stet_error *err) {
    if (r->at == p && r->used++ < LOADED)
        return STET_OK;
    close_place(r);
    stet_status status = stet_space_open(r->project, p->space, STET_SPACE_MUST_EXIST, &r->s, err);
    if (status == STET_OK)
        status = stet_files_open(r->project, r->s, &r->files, err);
    if (status == STET_OK)
        status = stet_files_set_branch(r->files, p->branch, err);
    stet_sched_opts opts = {.persist = true, .files = r->files};
    if (status == STET_OK)
        status = stet_sched_open(r->project, r->s, p->branch, &opts, &r->sched, err);
    if (status == STET_OK)
        r->at = p;
    return status;
}

static void on_note(void *ctx, const stet_error *what) {
    rerunning *r = ctx;
    stet_value_push(&r->notes, stet_value_string(what->message));
}

/* Brings patterns and files up to date as in a run, so that no action of an edited pattern counts as up to date. */
static stet_status update_copy(rerunning *r, const place *p, stet_error *err) {
    stet_drive_spec spec = {.space = p->space, .branch = p->branch, .ctx = r, .note = on_note};
    return drive_bring_up(r->project, &spec, false, err);
}

static stet_status list_places(rerunning *r, const char *name, stet_error *err) {
    stet_space *s;
    stet_arena arena = STET_ARENA_INIT;
    stet_branch_info *at;
    size_t count = 0;
    stet_status status = stet_space_open(r->project, name, STET_SPACE_MUST_EXIST, &s, err);
    if (status != STET_OK)
        return status;
    status = stet_space_branches(s, NULL, false, 100000, &arena, &at, &count, err);
    /* The branch is damaged, and the check has reported it: the default branch can still be compared. */
    if (status == STET_CORRUPT) {
        stet_error_clear(err);
        *stet_vec_add(&r->places) = (place){.space = stet_strdup(name), .branch = stet_strdup("")};
        status = STET_OK;
    }
    for (size_t i = 0; i < count && status == STET_OK; i++)
        *stet_vec_add(&r->places) = (place){.space = stet_strdup(name), .branch = stet_strdup(at[i].name)};
    stet_arena_release(&arena);
    stet_space_close(s);
    return status;
}

/* Processes outstanding marks, and lists all recorded actions. */
static stet_status list_actions(rerunning *r, place *p, stet_error *err) {
    stet_space *s;
    int64_t branch;
    stet_action_filter all = {.generation = -1};
    stet_status status = stet_space_open(r->project, p->space, STET_SPACE_MUST_EXIST, &s, err);
    if (status != STET_OK)
        return status;
    status = stet_observe_catch_up(s, err);
    if (status == STET_OK)
        status = stet_space_branch(s, p->branch, &branch, err);
    if (status == STET_OK)
        status = stet_observe_scan(s, branch, &all, note_action, p, err);
    r->total += p->actions.len;
    stet_space_close(s);
    return status;
}

static stet_value place_of(const place *p, const stet_rerun *one) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "space", stet_value_string(p->space));
    stet_value_put(&v, "branch", stet_value_string(p->branch));
    stet_value_put(&v, "piece", stet_value_string(one->piece));
    stet_value_put(&v, "node", stet_value_string(one->node));
    return v;
}

static stet_status rerun_one(rerunning *r, place *p, int64_t action, stet_error *err) {
    stet_rerun one;
    stet_status status = open_place(r, p, err);
    if (status != STET_OK)
        return status;
    status = stet_sched_rerun(r->sched, action, &one, err);
    if (status == STET_OK && r->spec->commands && stet_value_type(one.row) == STET_TYPE_OBJECT)
        status = drive_rerun_command(&r->copy, &(stet_rerun_place){p->space, p->branch, r->spec}, action, &one, err);
    r->compared += status == STET_OK && one.outcome <= STET_RERUN_VARIES;
    r->left_out += status == STET_OK && one.outcome == STET_RERUN_LEFT_OUT;
    r->accepted += status == STET_OK && one.outcome == STET_RERUN_ACCEPTED;
    r->outdated += status == STET_OK && one.outcome == STET_RERUN_OUTDATED;
    if (status == STET_OK && one.outcome == STET_RERUN_DIFFERS && r->differ++ < STET_RERUN_MOST) {
        stet_value v = place_of(p, &one);
        stet_value_put(&v, "differences", stet_value_retain(one.differences));
        stet_value_put(&v, "unrecordedReads", stet_value_retain(one.unrecorded));
        stet_value_push(&r->wrong, v);
    }
    if (status == STET_OK && one.outcome == STET_RERUN_VARIES && stet_value_count(r->varying) < STET_RERUN_MOST)
        stet_value_push(&r->varying, place_of(p, &one));
    stet_rerun_release(&one);
    return status;
}

/* splitmix64 */
static uint64_t next_random(rerunning *r) {
    uint64_t z = r->random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

/* Chooses the n-th action that was not chosen yet, and moves it to the end of the remaining ones of its place. */
static int64_t choose(rerunning *r, size_t left, const size_t gone[], place **from) {
    size_t n = (size_t)(next_random(r) % left);
    for (size_t i = 0;; i++) {
        place *p = &r->places.at[i];
        size_t there = p->actions.len - gone[i];
        if (n >= there) {
            n -= there;
            continue;
        }
        int64_t action = p->actions.at[n];
        p->actions.at[n] = p->actions.at[there - 1];
        *from = p;
        return action;
    }
}

static stet_status report_progress(rerunning *r, size_t done, size_t of, stet_error *err) {
    if (r->spec->cancelled && r->spec->cancelled(r->spec->ctx))
        return stet_fail(err, STET_CANCELLED, "interrupted");
    if (r->spec->progress && done % 64 == 0)
        r->spec->progress(r->spec->ctx, (int64_t)done, (int64_t)of, "rerun");
    return STET_OK;
}

static stet_status rerun_all(rerunning *r, stet_error *err) {
    stet_status status = STET_OK;
    size_t done = 0;
    for (size_t i = 0; i < r->places.len && status == STET_OK; i++)
        for (size_t k = 0; k < r->places.at[i].actions.len && status == STET_OK; k++) {
            status = report_progress(r, done++, r->total, err);
            if (status == STET_OK)
                status = rerun_one(r, &r->places.at[i], r->places.at[i].actions.at[k], err);
        }
    return status;
}

static stet_status rerun_some(rerunning *r, stet_error *err) {
    size_t *gone = stet_alloc_zero((r->places.len + 1) * sizeof *gone);
    stet_status status = STET_OK;
    for (size_t left = r->total; left > 0 && r->compared < r->spec->most && status == STET_OK; left--) {
        place *p;
        int64_t action = choose(r, left, gone, &p);
        gone[p - r->places.at]++;
        status = report_progress(r, r->compared, r->spec->most < r->total ? r->spec->most : r->total, err);
        if (status == STET_OK)
            status = rerun_one(r, p, action, err);
    }
    stet_free(gone);
    return status;
}

static stet_status rerun(rerunning *r, stet_error *err) {
    stet_names names = {0};
    stet_status status = stet_space_names(r->project, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++)
        status = list_places(r, names.at[i], err);
    stet_names_release(&names);
    for (size_t i = 0; i < r->places.len && status == STET_OK; i++)
        status = update_copy(r, &r->places.at[i], err);
    for (size_t i = 0; i < r->places.len && status == STET_OK; i++)
        status = list_actions(r, &r->places.at[i], err);
    if (status == STET_OK)
        status = r->spec->most > 0 ? rerun_some(r, err) : rerun_all(r, err);
    close_place(r);
    drive_rerun_copy_close(&r->copy);
    return status;
}

static stet_value report_of(rerunning *r) {
    const struct {
        const char *name;
        size_t n;
    } counts[] = {{"actions", r->total},     {"compared", r->compared}, {"leftOut", r->left_out},
                  {"accepted", r->accepted}, {"outdated", r->outdated}, {"differ", r->differ}};
    stet_value v = stet_value_object();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        stet_value_put(&v, counts[i].name, stet_value_int((int64_t)counts[i].n));
    stet_value_put(&v, "wrong", stet_value_retain(r->wrong));
    if (stet_value_count(r->varying) > 0)
        stet_value_put(&v, "varying", stet_value_retain(r->varying));
    if (stet_value_count(r->notes) > 0)
        stet_value_put(&v, "notes", stet_value_retain(r->notes));
    if (r->spec->most > 0)
        stet_value_put(&v, "seed", stet_value_int((int64_t)r->spec->seed));
    return v;
}

stet_status stet_rerun_project(stet_project *project, const stet_rerun_spec *spec, stet_value *report,
                               stet_error *err) {
    rerunning r = {.spec = spec,
                   .random = spec->seed,
                   .wrong = stet_value_array(),
                   .varying = stet_value_array(),
                   .notes = stet_value_array(),
                   .copy.of = project};
    stet_scratch scratch;
    stet_status status = STET_OK;
    if (stet_drive_persist(project)) { /* otherwise nothing is recorded as up to date */
        status = stet_scratch_open(project, &scratch, err);
        if (status == STET_OK) {
            r.project = scratch.project;
            status = rerun(&r, err);
            stet_scratch_close(&scratch);
        }
    }
    if (status == STET_OK)
        *report = report_of(&r);
    for (size_t i = 0; i < r.places.len; i++) {
        stet_free(r.places.at[i].space);
        stet_free(r.places.at[i].branch);
        stet_vec_release(&r.places.at[i].actions);
    }
    stet_vec_release(&r.places);
    stet_value_release(r.wrong);
    stet_value_release(r.varying);
    stet_value_release(r.notes);
    return status;
}
