/* drive.c - one run of a piece: set it up, settle it, report the result. */

#include "base/text.h"
#include "drive/drive_internal.h"
#include "drive/leftover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "drive/estimate.h"
#include "drive/lookout.h"
#include "drive/scratch.h"
#include "files/glob.h"
#include "files/path.h"
#include "files/watch.h"
#include "graph/argument.h"
#include "graph/near.h"
#include "module/bound.h"
#include "module/javascript.h"
#include "module/left.h"
#include "module/orphan.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/sys.h"
#include "scheduler/standing.h"

bool stet_drive_persist(const stet_project *project) {
    stet_value v = stet_project_setting(project, "scheduler.persist");
    return stet_value_type(v) != STET_TYPE_BOOL || stet_value_as_bool(v);
}

stet_status stet_drive_demand_path(const char *text, stet_path *out, stet_error *err) {
    stet_path_push(out, "value");
    if (text[0] == '/') {
        stet_path below = STET_PATH_INIT;
        stet_status status = stet_path_of_pointer(&below, text, strlen(text), err);
        stet_buf_add(&out->buf, stet_path_ref(&below).bytes, stet_path_ref(&below).len);
        stet_path_release(&below);
        return status;
    }
    if (text[0])
        stet_path_push(out, text);
    return STET_OK;
}

#define ASK_MS  1000 /* how long a watching process may take to answer */
#define LOOK_MS 300  /* while watching: how often to look for commits of others, and for files if there is no watch */

/* Opens the followed files of another space, for commands that run there. */
stet_status drive_files_of(void *ctx, stet_space *space, void **files, stet_error *err) {
    driver *d = ctx;
    stet_files *f;
    stet_status status = stet_files_open(d->project, space, &f, err);
    if (status == STET_OK)
        *files = *stet_vec_add(&d->far_files) = f;
    return status;
}

static stet_status scan_far(stet_space *space, stet_files *files, stet_error *err) {
    stet_files_report r = {0};
    stet_status status = STET_OK;
    if (stet_files_unsettled(files) || stet_files_was_lost(files))
        status = stet_lookout_follow_all(files, space, "", err);
    if (status != STET_OK)
        return status;
    status = stet_files_refresh(files, &r, err);
    stet_value_release(r.list);
    if (status != STET_OK)
        return status;
    status = stet_files_settle(files, err);
    return status == STET_OK ? stet_files_save(files, err) : status;
}

/* Scans the files of one other space, and adds the spaces that it reads to `names`. */
static stet_status scan_far_space(driver *d, const char *name, stet_names *names, stet_error *err) {
    stet_space *space;
    stet_files *files = NULL;
    stet_status status = stet_space_open(d->project, name, STET_SPACE_MUST_EXIST, &space, err);
    if (status != STET_OK)
        return status;
    status = stet_observe_others(space, names, err);
    if (status == STET_OK)
        status = stet_files_open(d->project, space, &files, err);
    if (status == STET_OK)
        status = scan_far(space, files, err);
    stet_files_close(files);
    stet_space_close(space);
    return status;
}

/* Documents of other spaces may depend on files too. */
static stet_status scan_other_spaces(driver *d, stet_error *err) {
    stet_names names = {0};
    stet_status status = stet_observe_others(d->space, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        stet_error mine = STET_ERROR_INIT;
        bool before = strcmp(names.at[i], stet_space_name(d->space)) == 0 || drive_names_hold(&names, i, names.at[i]);
        char *name = stet_strdup(names.at[i]);
        if (!before)
            status = scan_far_space(d, name, &names, &mine);
        stet_free(name);
        if (status == STET_NOT_FOUND) /* reported by note_absent */
            status = STET_OK;
        else if (status != STET_OK && err)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
    }
    stet_names_release(&names);
    return status;
}

static bool may_come(void *ctx, const char *path) {
    const driver *d = ctx;
    int64_t branch;
    return stet_space_branch(d->space, stet_files_branch(d->files), &branch, NULL) != STET_OK ||
           stet_output_may_come(d->space, branch, stet_project_root(d->project), path);
}

static stet_status distrust_readers(driver *d, const char *path, stet_error *err) {
    stet_numbers readers = {0};
    stet_arena arena = STET_ARENA_INIT;
    char *id = stet_file_id(path);
    int64_t branch;
    stet_status status = stet_space_branch(d->space, stet_files_branch(d->files), &branch, err);
    if (status == STET_OK)
        status =
            stet_observe_readers(d->space, branch, &(stet_docname){id, ""}, STET_PATH_ROOT, STET_VALUE, &readers, err);
    for (size_t i = 0; i < readers.len && status == STET_OK; i++) {
        stet_action_record r;
        status = stet_observe_get(d->space, readers.at[i], &arena, &r, err);
        if (status == STET_OK && !r.failed)
            status = stet_observe_distrust(d->space, branch, &r.key, 1, STET_REASON_LEFT, err);
    }
    stet_free(id);
    stet_arena_release(&arena);
    stet_numbers_release(&readers);
    return status;
}

/* Files left by removed commands may have been read because a node might still have written them. If none did, their
 * readers are judged again. */
static stet_status judge_tolerated(driver *d, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < d->tolerated.len && status == STET_OK; i++)
        if (stet_files_is_left(d->files, d->tolerated.at[i]) && !may_come(d, d->tolerated.at[i]))
            status = distrust_readers(d, d->tolerated.at[i], err);
    stet_names_release(&d->tolerated);
    return status;
}

/* A run that was killed may have allowed any of them to be read. */
static stet_status judge_all_left(driver *d, stet_error *err) {
    char *id;
    stet_look look;
    stet_status status = STET_OK;
    for (size_t i = 0; status == STET_OK && stet_files_at(d->files, i, &id, &look); i++) {
        bool made = id && (look.flags & STET_LOOK_MADE) && stet_look_there(&look);
        char *path = made ? stet_file_of_id(id, strlen(id)) : NULL;
        stet_free(id);
        if (!path || !stet_files_is_left(d->files, path)) {
            stet_free(path);
        } else if (may_come(d, path)) {
            *stet_vec_add(&d->tolerated) = path;
        } else {
            status = distrust_readers(d, path, err);
            stet_free(path);
        }
    }
    return status;
}

static bool is_outdated(driver *d, int64_t branch, int64_t action) {
    if (!d->standing_known)
        d->standing_known = stet_standing_load(d->space, branch, &d->standing, NULL) == STET_OK;
    return !d->standing_known || !stet_state_holds(stet_standing_of(&d->standing, action));
}

/* Each question walks over all nodes. Beyond this number a new file counts as a source; at worst an action runs once
 * more. */
#define MAX_ASKED 100

bool drive_is_pending(void *ctx, const char *path) {
    driver *d = ctx;
    int64_t branch;
    bool pending = stet_space_branch(d->space, stet_files_branch(d->files), &branch, NULL) != STET_OK, written = false;
    for (size_t end = strlen(path); end > 0 && !pending;) { /* the path itself, or a directory above it */
        stet_numbers found = {0};
        char *part = stet_strndup(path, end);
        if (stet_files_writers(d->files, part, &found, NULL) == STET_OK)
            for (size_t i = 0; i < found.len && !pending; i++)
                pending = is_outdated(d, branch, found.at[i]);
        written |= found.len > 0;
        stet_numbers_release(&found);
        stet_free(part);
        while (end > 0 && path[end - 1] != '/')
            end--;
        end -= end > 0;
    }
    return pending || (!written && d->asked++ < MAX_ASKED && may_come(d, path));
}

/* Each scan may change what is outdated. */
static void forget_standing(driver *d) {
    if (d->standing_known)
        stet_standing_release(&d->standing);
    d->standing_known = false;
    d->asked = 0;
}

/* Before a scan: follows what nodes refer to by now, and judges files that removed commands have left. */
static stet_status prepare_scan(driver *d, bool watched, stet_error *err) {
    stet_status status = STET_OK;
    if (stet_files_unsettled(d->files) || (!watched && stet_files_was_lost(d->files)))
        status = stet_lookout_follow_all(d->files, d->space, d->spec->branch, err);
    if (status != STET_OK)
        return status;
    status = stet_orphans_take(d->project, d->files, may_come, d, &d->orphans, err);
    return status == STET_OK && d->orphans ? judge_all_left(d, err) : status;
}

static stet_status scan(driver *d, stet_files_report *r, stet_error *err) {
    stet_status status = stet_files_refresh(d->files, r, err);
    forget_standing(d);
    if (status != STET_OK)
        return status;
    status = stet_files_settle(d->files, err);
    return status == STET_OK ? scan_other_spaces(d, err) : status;
}

/* Brings the documents of files up to date: asks a process that watches them, or scans all of them. */
stet_status drive_bring_files_up(driver *d, stet_error *err) {
    stet_files_report r;
    bool watched = !d->spec->no_scan && stet_files_ask(d->files, ASK_MS);
    stet_status status = prepare_scan(d, watched, err);
    if (d->set_up)
        stet_files_nodes_changed(d->files);
    if (status != STET_OK || d->spec->no_scan)
        return status;
    status = scan(d, &r, err);
    d->out->files = r.followed;
    d->out->files_changed = r.changed + r.appeared + r.vanished;
    d->out->watched = watched;
    stet_value_release(r.list);
    return status;
}

/* Commands have run, and commands of lists were added and removed: patterns are matched again. */
stet_status drive_on_rested(void *ctx, stet_error *err) {
    driver *d = ctx;
    stet_status status = STET_OK;
    if (d->orphans) { /* some of these files belong to commands that were removed meanwhile */
        stet_sched_pause(d->sched);
        status = stet_orphans_take(d->project, d->files, may_come, d, &d->orphans, err);
    }
    stet_files_nodes_changed(d->files);
    if (status == STET_OK)
        status = stet_files_rematch(d->files, err);
    forget_standing(d);
    return status == STET_OK ? judge_tolerated(d, err) : status;
}

/* No action is recorded to write this file: may one that has not run yet? */
bool drive_may_make(void *ctx, stet_space *space, int64_t branch, const char *path) {
    driver *d = ctx;
    bool may = stet_output_may_come(space, branch, stet_project_root(d->project), path);
    if (may && space == d->space)
        *stet_vec_add(&d->tolerated) = stet_strdup(path);
    return may;
}

typedef struct making {
    driver *d;
    const stet_sched_place *at;
} making;

static bool may_make(void *ctx, const char *path) {
    making *m = ctx;
    return drive_may_make(m->d, m->at->space, m->at->branch, path);
}

/* A file left by a removed command would not exist in a build from scratch, so that reading it is refused. */
stet_status drive_accept_read(void *ctx, const stet_sched_place *at, stet_run *run, const char *id, stet_error *err) {
    making m = {ctx, at};
    size_t skip = strlen(STET_GLOB_PREFIX);
    /* The pattern does not match such a file; the node that makes its directory runs first. */
    if (at->files && strncmp(id, STET_GLOB_PREFIX, skip) == 0) {
        stet_buf pattern = STET_BUF(0);
        stet_status status = STET_OK;
        if (stet_path_unescape(id + skip, strlen(id + skip), &pattern))
            status = stet_bound_read_way(run, at->files, stet_project_root(m.d->project), stet_buf_cstr(&pattern), err);
        stet_buf_release(&pattern);
        return status;
    }
    if (!at->files || strncmp(id, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) != 0)
        return STET_OK;
    stet_left l = {.run = run,
                   .files = at->files,
                   .root = stet_project_root(m.d->project),
                   .may_make = may_make,
                   .may_make_ctx = &m};
    char *path = stet_file_of_id(id, strlen(id)), *left = path ? stet_left_find(&l, path) : NULL;
    stet_status status = left ? stet_left_fail(&l, left, err) : STET_OK;
    stet_free(left);
    stet_free(path);
    return status;
}

/* While watching: waits for the next commit by another process, or by the thread that watches files. */
static stet_status await_news(driver *d, bool *news, stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    stet_status status = stet_sched_wait(d->sched, LOOK_MS, news, err);
    bool by_hand = stet_lookout_look(d->follow, &why) == STET_LOOKOUT_FAILED;
    if (why.status != STET_OK && d->spec->note)
        d->spec->note(d->spec->ctx, &why);
    stet_error_clear(&why);
    if (status == STET_OK && by_hand) {
        stet_files_report r;
        status = stet_files_scan(d->files, &r, err);
        forget_standing(d);
        stet_value_release(r.list);
    } else if (status == STET_OK && *news) {
        status = stet_files_catch_up(d->files, err);
    }
    return status;
}

static stet_status demand_cell(driver *d, const stet_docname *name, stet_pathref path, stet_error *err) {
    *stet_vec_add(&d->parts) = (stet_sched_cell){
        {stet_arena_strdup(&d->arena, name->id), stet_arena_strdup(&d->arena, name->scope ? name->scope : "")},
        {stet_arena_dup(&d->arena, path.bytes, path.len), path.len}};
    return stet_sched_demand_cell(d->sched, name->id, name->scope, path, err);
}

stet_status drive_demand_node(driver *d, const char *node, stet_error *err) {
    stet_value row;
    stet_status status = stet_piece_row(d->space, d->branch, d->stored, node, &row, err);
    if (status == STET_NOT_FOUND)
        stet_piece_hint_node(d->space, d->branch, d->stored, node, err);
    if (status != STET_OK)
        return status;
    stet_link link;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    if (stet_link_read(stet_value_get(row, "output"), &link, &path))
        status = demand_cell(d, &(stet_docname){link.id, link.scope}, stet_path_ref(&path), err);
    else
        status = stet_fail(err, STET_INVALID, "node \"%s\" has no output that could be wanted", node);
    stet_path_release(&path);
    stet_value_release(row);
    return status;
}

bool drive_wants_part(const driver *d) {
    return stet_value_count(d->spec->demand) + stet_value_count(d->spec->nodes) > 0;
}

static stet_status demand(driver *d, stet_error *err) {
    if (!drive_wants_part(d))
        return stet_sched_demand_piece(d->sched, d->piece, err);
    stet_status status = stet_sched_touch_piece(d->sched, d->piece, err);
    stet_vec_clear(&d->parts);
    stet_arena_clear(&d->arena);
    d->out->part = true;
    for (size_t i = 0; i < stet_value_count(d->spec->nodes) && status == STET_OK; i++) {
        stet_value v = stet_value_at(d->spec->nodes, i);
        status = drive_demand_word(d, stet_value_text(&v, ""), err);
    }
    char *doc = stet_piece_doc(d->piece);
    for (size_t i = 0; i < stet_value_count(d->spec->demand) && status == STET_OK; i++) {
        stet_value v = stet_value_at(d->spec->demand, i);
        stet_path path = STET_PATH_INIT;
        status = stet_drive_demand_path(stet_value_text(&v, ""), &path, err);
        if (status == STET_OK)
            status = demand_cell(d, &(stet_docname){doc, stet_piece_scope(d->piece)}, stet_path_ref(&path), err);
        stet_path_release(&path);
    }
    stet_free(doc);
    return status;
}

void drive_take_report(driver *d, const stet_sched_report *r) {
    stet_value_release(d->out->report.problems);
    d->out->report = *r;
    d->out->stood = r->stood;
    stet_value_release(d->out->failed_before);
    d->out->failed_before = stet_value_retain(stet_sched_failed_before(d->sched));
}

/* Clears the stop mark of a piece: driving a piece starts it again. */
static stet_status unstop(stet_tx *tx, void *ctx, stet_error *err) {
    return stet_piece_set_stopped(tx, ctx, false, err);
}

static stet_status wake(driver *d, stet_error *err) {
    bool start = !d->spec->send || d->spec->send->settle;
    stet_status status = drive_look(d, err);
    if (status == STET_OK && d->stored->stopped && start)
        status = stet_space_transact(d->space, d->spec->branch, unstop, d->stored, NULL, err);
    return status;
}

/* A piece that was deleted while it ran has nothing left to run, which is a failure. */
static stet_status still_there(driver *d, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    stet_status status = drive_look(d, &mine);
    if (status == STET_NOT_FOUND) {
        status = stet_fail(err, STET_CONFLICT, "piece \"%s\" was deleted while it ran", d->piece);
        stet_hint(err, "what its commands have written is still there; run it again if that was a mistake");
    } else if (status != STET_OK && err) {
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    return status;
}

/* Reports each missing space once: documents of a misspelt space are read as absent, and nothing fails. */
static stet_status note_absent(driver *d, stet_error *err) {
    stet_value now = stet_value_null();
    stet_status status = stet_standing_absent(d->space, d->branch, d->piece, &now, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < stet_value_count(now) && d->spec->note; i++) {
        bool reported = false;
        for (size_t k = 0; k < stet_value_count(d->out->absent) && !reported; k++)
            reported = stet_value_equal(stet_value_at(now, i), stet_value_at(d->out->absent, k));
        stet_error what = STET_ERROR_INIT;
        stet_buf b = STET_BUF(0);
        stet_standing_print_absent(stet_value_at(now, i), &b);
        stet_fail(&what, STET_NOT_FOUND, "%s", stet_buf_cstr(&b));
        stet_hint(&what, "its documents are read as absent; a space is created by the first write to it");
        if (!reported)
            d->spec->note(d->spec->ctx, &what);
        stet_error_clear(&what);
        stet_buf_release(&b);
    }
    stet_value_release(d->out->absent);
    d->out->absent = now;
    return STET_OK;
}

/* While watching: reads changed patterns. An invalid one, as in the middle of an edit, is reported once, and the old
 * pattern stays in use. */
static stet_status watch_patterns(driver *d, bool *news, stet_error *err) {
    d->named = d->set_up = false;
    stet_status status = drive_renew_all(d, err);
    if (status != STET_OK || !d->set_up)
        return status;
    *news = true;
    status = drive_bring_files_up(d, err);
    if (status == STET_OK)
        status = drive_look(d, err);
    return status == STET_OK ? demand(d, err) : status;
}

static stet_status refuse_invalid(driver *d, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < d->parts.len && status == STET_OK; i++)
        status = drive_refuse_invalid(d, &d->parts.at[i].name, d->parts.at[i].path, err);
    if (drive_wants_part(d))
        return status;
    stet_path value = STET_PATH_INIT;
    char *doc = stet_piece_doc(d->piece);
    stet_path_push(&value, "value");
    status = drive_refuse_invalid(d, &(stet_docname){doc, stet_piece_scope(d->piece)}, stet_path_ref(&value), err);
    stet_path_release(&value);
    stet_free(doc);
    return status;
}

typedef struct pattern_search {
    const char *id;
    bool found;
} pattern_search;

static void take_named(void *ctx, const char *id) {
    pattern_search *s = ctx;
    s->found |= strcmp(id, s->id) == 0;
}

static void note_unmatched(driver *d, const char *pattern, const char *directory) {
    stet_error what = STET_ERROR_INIT;
    stet_buf shown = STET_BUF(0);
    stet_glob_show(pattern, &shown);
    if (directory) {
        stet_fail(&what, STET_NOT_FOUND, "the pattern \"%s\" matches no file, but the directory %s",
                  stet_buf_cstr(&shown), directory);
        stet_hint(&what,
                  "patterns give files; \"%s/**\" gives those in it and below, and a path without wildcards names a "
                  "directory as a whole",
                  stet_buf_cstr(&shown));
    } else {
        stet_fail(&what, STET_NOT_FOUND, "the pattern \"%s\" matches no file", stet_buf_cstr(&shown));
        stet_hint(&what, "correct the pattern, or create the files; paths are seen from the top of the project");
    }
    d->spec->note(d->spec->ctx, &what);
    stet_error_clear(&what);
    stet_buf_release(&shown);
}

/* Warns if a pattern of `files` or `each` yields no files, which its author hardly meant. */
static stet_status note_patterns(driver *d, stet_error *err) {
    int64_t branch;
    stet_names patterns = {0};
    stet_status status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    stet_files_unmatched(d->files, &patterns);
    for (size_t i = 0; i < patterns.len && status == STET_OK && d->spec->note; i++) {
        char *directory = stet_files_only_directory(d->files, patterns.at[i]);
        stet_buf id = STET_BUF(0);
        stet_buf_str(&id, STET_GLOB_PREFIX);
        stet_path_escape(patterns.at[i], &id);
        pattern_search s = {stet_buf_cstr(&id), false};
        /* words of commands are patterns too, and may match nothing */
        status = stet_lookout_names(d->space, branch, d->piece, take_named, &s, err);
        if (s.found)
            note_unmatched(d, patterns.at[i], directory);
        stet_buf_release(&id);
        stet_free(directory);
    }
    stet_names_release(&patterns);
    return status;
}

/* Turns of handlers that a killed process has left come before the run. */
static stet_status finish_events(driver *d, stet_error *err) {
    stet_error lost = STET_ERROR_INIT;
    if (d->spec->dry_run || d->spec->observe_only)
        return STET_OK;
    stet_status status = stet_sched_finish_events(d->sched, d->piece, &lost, err);
    if (lost.status != STET_OK && d->spec->note) {
        stet_fail_in(&lost, "an event that was interrupted has been finished, and a handler failed");
        d->spec->note(d->spec->ctx, &lost);
    }
    stet_error_clear(&lost);
    return status;
}

typedef stet_status drive_step(driver *d, stet_error *err);

/* Takes steps until one of them fails; the list ends with NULL. */
static stet_status take_steps(driver *d, drive_step *const steps[], stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; steps[i] && status == STET_OK; i++)
        status = steps[i](d, err);
    return status;
}

static stet_status send_event(driver *d, stet_error *err) {
    const stet_drive_event *e = d->spec->send;
    return stet_sched_send(d->sched, d->piece, e->stream, e->event, e->id, e->sent, err);
}

static stet_status save_files(driver *d, stet_error *err) {
    return stet_files_save(d->files, err);
}

/* Settles what is demanded, and checks what has come of it. */
static stet_status settle(driver *d, bool first, stet_sched_report *r, stet_error *err) {
    bool watch = d->spec->watch;
    stet_status status = stet_sched_settle(d->sched, r, err);
    drive_take_report(d, r);
    if (status != STET_OK)
        return status;
    drive_step *steps[8] = {NULL};
    size_t n = 0;
    if (!watch)
        steps[n++] = drive_check_files; /* cppcheck-suppress legacyUninitvar ; it is initialised above */
    if (r->runs > 0)
        steps[n++] = still_there; /* cppcheck-suppress legacyUninitvar ; it is initialised above */
    if (d->spec->result && !watch)
        steps[n++] = drive_read_result;
    steps[n++] = note_absent;
    if (first && (r->runs > 0 || d->set_up))
        steps[n++] = note_patterns;
    if (watch && r->runs > 0)
        steps[n++] = save_files;
    if (!watch)
        steps[n++] = refuse_invalid;
    steps[n] = NULL;
    status = take_steps(d, steps, err);
    if (status == STET_OK)
        status = drive_count_accepted(d, err);
    d->out->stood = d->out->report.stood;
    r->accepted = d->out->report.accepted;
    r->through = d->out->report.through;
    r->stood = d->out->report.stood;
    return status;
}

/* While watching: waits until something has changed. `*stopped`: by `stet piece stop`. */
static stet_status await_change(driver *d, bool *stopped, stet_error *err) {
    for (;;) {
        bool news;
        if (drive_is_cancelled(d))
            return stet_fail(err, STET_CANCELLED, "stopped");
        stet_status status = await_news(d, &news, err);
        if (status != STET_OK || (status = watch_patterns(d, &news, err)) != STET_OK ||
            (status = drive_look(d, err)) != STET_OK)
            return status;
        *stopped = d->stored->stopped;
        if (*stopped || news)
            return STET_OK;
        stet_live_answer(d->live, d->sched, stet_space_name(d->space), d->spec->branch ? d->spec->branch : "",
                         d->piece);
    }
}

static stet_status watch(driver *d, stet_error *err) {
    bool stopped = false;
    d->follow = stet_lookout_start(d->project, d->spec->space ? d->spec->space : "main");
    d->live = stet_live_open(d->project);
    for (bool first = true;; first = false) {
        stet_sched_report r = {0};
        int64_t begun = stet_clock_monotonic_us();
        stet_status status = settle(d, first, &r, err);
        if (status == STET_OK && d->spec->settled && (first || r.runs > 0))
            status = d->spec->settled(d->spec->ctx, &r, (stet_clock_monotonic_us() - begun) / 1000, err);
        drive_let_go(d); /* while it waits, runs with arguments of their own may have the piece */
        if (status == STET_OK)
            status = await_change(d, &stopped, err);
        if (status == STET_OK && !stopped)
            status = drive_hold(d, d->piece, err);
        if (status != STET_OK || stopped)
            return status;
    }
}

/* The run that is continued, and the argument that this run alone has. */
static stet_status take_argument(driver *d, stet_error *err) {
    stet_status status = d->spec->dry_run ? drive_settle_lent(d, true, err) : STET_OK;
    /* What was lent at set-up has to be given back first. */
    if (status == STET_OK && !d->lent_at_setup)
        status = drive_check_inputs(d, err);
    if (status == STET_OK && (d->spec->run_id || d->spec->begun))
        status = drive_continue_run(d, err);
    if (status == STET_OK)
        status = drive_lend(d, err);
    if (status == STET_OK && d->lent_at_setup)
        status = drive_check_inputs(d, err);
    bool exists;
    stet_value argument;
    if (status == STET_OK)
        status = drive_argument(d, &exists, &d->argument_seq, &argument, err);
    if (status == STET_OK)
        stet_value_release(argument);
    return status;
}

static stet_status drive(driver *d, stet_error *err) {
    d->out->dry = d->spec->dry_run;
    stet_status status =
        take_steps(d, (drive_step *const[]){drive_prepare, take_argument, wake, drive_bring_files_up, NULL}, err);
    if (status == STET_OK && d->spec->send)
        status = send_event(d, err);
    else if (status == STET_OK && !d->lent) /* handlers see the argument that the piece has */
        status = finish_events(d, err);
    if (status != STET_OK || (d->spec->send && !d->spec->send->settle))
        return status;
    if (d->spec->dry_run)
        return take_steps(d, (drive_step *const[]){demand, drive_explain, drive_count_accepted, note_absent, NULL},
                          err);
    status = take_steps(d, (drive_step *const[]){demand, d->spec->explain ? drive_explain : NULL, NULL}, err);
    if (status != STET_OK)
        return status;
    stet_sched_report r = {0};
    return d->spec->watch ? watch(d, err) : settle(d, true, &r, err);
}

static stet_status drive_in(stet_project *project, const stet_drive_spec *spec, stet_drive_outcome *out,
                            stet_error *err) {
    driver d = {.project = project, .spec = spec, .out = out};
    int64_t start = stet_clock_monotonic_us();
    *out = (stet_drive_outcome){.report = {.problems = stet_value_array()}};
    stet_sched_opts opts = {.persist = stet_drive_persist(project),
                            .observe_only = spec->observe_only,
                            .retry_failed = spec->retry_failed,
                            .ctx = &d,
                            .cancelled = drive_is_cancelled,
                            .event = drive_on_event,
                            .log = drive_on_log,
                            .say = drive_on_say,
                            .rested = drive_on_rested,
                            .may_make = drive_may_make,
                            .accept_read = drive_accept_read,
                            .files_of = drive_files_of,
                            .done_at = spec->run_id ? drive_done_at : NULL,
                            .jobs = spec->jobs,
                            .stop_on_failure = spec->stop_on_failure};
    stet_status status = drive_open(&d, 0, &opts, err);
    if (status == STET_OK)
        status = drive(&d, err);
    if (d.sched) {
        status = drive_end_run(&d, status, err);
        stet_status given = drive_give_back(&d, status == STET_OK ? err : NULL);
        status = status == STET_OK ? given : status;
    }
    if (status == STET_OK && spec->result == STET_DRIVE_NEED_RESULT && out->result_error.status != STET_OK) {
        status = out->result_error.status;
        if (err)
            stet_error_move(err, &out->result_error);
    }
    out->piece = d.piece ? d.piece : stet_strdup("");
    if (!out->run_id)
        out->run_id = stet_strdup("");
    stet_live_close(d.live);
    stet_lookout_stop(d.follow);
    if (d.files && out->report.runs > 0 && status != STET_INTERNAL) {
        /* If this fails, the next run has to read some files again. */
        stet_status saved = stet_files_save(d.files, status == STET_OK ? err : NULL);
        status = status == STET_OK ? saved : status;
    }
    for (size_t i = 0; i < d.far_files.len && out->report.runs > 0 && status == STET_OK; i++)
        status = stet_files_save(d.far_files.at[i], err);
    out->duration_ms = (stet_clock_monotonic_us() - start) / 1000;
    drive_close(&d);
    return status;
}

stet_status stet_drive(stet_project *project, const stet_drive_spec *spec, stet_drive_outcome *out, stet_error *err) {
    if (!spec->dry_run)
        return drive_in(project, spec, out, err);
    stet_scratch scratch;
    *out = (stet_drive_outcome){
        .report = {.problems = stet_value_array()}, .piece = stet_strdup(""), .run_id = stet_strdup("")};
    stet_status status = stet_scratch_open(project, &scratch, err);
    if (status != STET_OK)
        return status;
    stet_drive_outcome_release(out);
    status = drive_in(scratch.project, spec, out, err);
    stet_scratch_close(&scratch);
    return status;
}

void stet_drive_outcome_release(stet_drive_outcome *out) {
    stet_free(out->piece);
    stet_free(out->run_id);
    stet_value_release(out->report.problems);
    stet_value_release(out->actions);
    stet_value_release(out->failed_before);
    stet_value_release(out->metrics);
    stet_value_release(out->absent);
    stet_value_release(out->unverified);
    stet_value_release(out->result);
    stet_error_clear(&out->result_error);
    *out = (stet_drive_outcome){0};
}

stet_value stet_drive_outcome_value(const stet_drive_outcome *out) {
    const stet_sched_report *r = &out->report;
    const struct {
        const char *name;
        size_t n;
    } counts[] = {
        {"ran", r->ran},       {"restored", r->restored},   {"stood", out->stood},   {"failed", r->failed},
        {"aside", r->aside},   {"left", r->left},           {"waiting", r->waiting}, {"runs", r->runs},
        {"nodes", r->total},   {"unchanged", r->unchanged}, {"effects", r->effects}, {"conflicts", r->dropped},
        {"loaded", r->loaded}, {"flushes", r->flushes}};
    const size_t accepted[] = {r->accepted, r->through};
    static const char *const accepted_names[] = {"accepted", "throughAccepted"};
    stet_value v = stet_value_object(), causes = stet_value_object();
    stet_value_put(&v, "piece", stet_value_string(out->piece));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        stet_value_put(&v, counts[i].name, stet_value_int((int64_t)counts[i].n));
    for (size_t i = 0; i < 2; i++)
        if (r->accepted + r->through > 0)
            stet_value_put(&v, accepted_names[i], stet_value_int((int64_t)accepted[i]));
    stet_value_put(&causes, "unknown", stet_value_int((int64_t)r->causes[0]));
    stet_value_put(&causes, "dirty", stet_value_int((int64_t)r->causes[1]));
    stet_value_put(&causes, "asked", stet_value_int((int64_t)r->causes[2]));
    stet_value_put(&v, "causes", causes);
    if (out->installed_now) {
        stet_value in = stet_value_object();
        stet_value_put(&in, "created", stet_value_bool(out->installed.created));
        stet_value_put(&in, "generation", stet_value_int(out->installed.generation));
        stet_value_put(&in, "added", stet_value_int((int64_t)out->installed.added));
        stet_value_put(&in, "changed", stet_value_int((int64_t)out->installed.altered));
        stet_value_put(&in, "gone", stet_value_int((int64_t)out->installed.gone));
        stet_value_put(&in, "kept", stet_value_int((int64_t)out->installed.kept));
        stet_value_put(&v, "setup", in);
    }
    if (out->files > 0) {
        stet_value_put(&v, "files", stet_value_int((int64_t)out->files));
        stet_value_put(&v, "filesChanged", stet_value_int((int64_t)out->files_changed));
        stet_value_put(&v, "watched", stet_value_bool(out->watched));
    }
    if (out->dry)
        stet_value_put(&v, "dryRun", stet_value_bool(true));
    if (stet_value_type(out->actions) == STET_TYPE_ARRAY)
        stet_value_put(&v, "actions", stet_value_retain(out->actions));
    if (stet_value_count(out->absent) > 0)
        stet_value_put(&v, "absentSpaces", stet_value_retain(out->absent));
    if (stet_value_type(out->metrics) == STET_TYPE_OBJECT)
        stet_value_put(&v, "metrics", stet_value_retain(out->metrics));
    stet_value_put(&v, "durationMs", stet_value_int(out->duration_ms));
    stet_value_put(&v, "runId", out->run_id[0] ? stet_value_string(out->run_id) : stet_value_null());
    stet_value_put(&v, "committed", stet_value_bool(out->committed));
    stet_value_put(&v, "problems", stet_value_retain(r->problems));
    if (out->part)
        stet_value_put(&v, "part", stet_value_bool(true));
    if (stet_value_count(out->failed_before) > 0)
        stet_value_put(&v, "failedBefore", stet_value_retain(out->failed_before));
    if (stet_value_count(out->unverified) > 0)
        stet_value_put(&v, "unverified", stet_value_retain(out->unverified));
    if (out->has_result)
        stet_value_put(&v, "result", stet_value_retain(out->result));
    if (out->result_error.status != STET_OK)
        stet_value_put(&v, "resultError", stet_error_value(&out->result_error));
    return v;
}
