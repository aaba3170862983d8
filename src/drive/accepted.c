/* accepted.c - lets the result of an outdated action stand, takes that back, and counts what stands that way. */

#include "drive/accepted.h"

#include <string.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "graph/child.h"

/* Is it an action whose result could stand? A list of commands, a check of the result and an effect are not. */
static stet_status check_row(stet_value row, const char *node, stet_error *err) {
    const char *why = NULL;
    if (stet_child_role_of(row) != STET_CHILD_NONE)
        why = "it makes the list of other actions; accept one of these";
    else if (stet_value_as_bool(stet_value_get(row, "verifier")))
        why = "it is a verifier, whose verdict nobody else can give";
    else if (stet_value_text_is(stet_value_get(row, "kind"), "effect"))
        why = "it is an effect, and has no result that could stand";
    if (!why)
        return STET_OK;
    stet_fail(err, STET_INVALID, "%s can't be accepted: %s", node, why);
    stet_hint(err, "run it: stet run");
    return STET_INVALID;
}

static stet_status accept(stet_space *s, int64_t branch, const stet_piece *p, const char *node, const char *reason,
                          stet_error *err) {
    stet_value row;
    stet_action_key key = stet_piece_action(p, node);
    stet_status status = stet_piece_row(s, branch, p, node, &row, err);
    if (status != STET_OK)
        return status;
    status = check_row(row, node, err);
    stet_value_release(row);
    if (status != STET_OK)
        return status;
    stet_value note = stet_value_object(), accepted = stet_value_object();
    stet_value_put(&accepted, "reason", stet_value_string(reason));
    stet_value_put(&note, "accepted", accepted);
    char *text = stet_json_print(note, STET_JSON_CANONICAL, NULL);
    stet_value_release(note);
    status = strlen(text) <= STET_OBSERVE_NOTE_MAX
                 ? stet_observe_accept(s, branch, &key, text, err)
                 : stet_fail(err, STET_LIMIT, "the reason is too long: the maximum is about %d bytes",
                             STET_OBSERVE_NOTE_MAX);
    stet_free(text);
    return status;
}

static stet_status revoke(stet_space *s, int64_t branch, const stet_piece *p, const char *node, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r = {0};
    stet_action_key key = stet_piece_action(p, node);
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_observe_find(s, branch, &key, &arena, &r, &mine);
    if (status != STET_OK && status != STET_NOT_FOUND) {
        stet_error_move(err, &mine);
    } else if (status == STET_NOT_FOUND || !r.accepted || r.cause.state != STET_STATE_STANDS) { /* or it has lapsed */
        status = stet_fail(err, STET_INVALID, "%s is not accepted", node);
        stet_hint(err, "`stet action list --state accepted` lists the actions that are");
    } else {
        status = stet_observe_distrust(s, branch, &key, 1, STET_REASON_REQUESTED, err);
    }
    stet_error_clear(&mine);
    stet_arena_release(&arena);
    return status;
}

stet_status stet_drive_accept(stet_project *project, const stet_drive_spec *spec, const char *piece, const char *node,
                              const char *reason, stet_error *err) {
    stet_space *s;
    stet_piece *p = NULL;
    int64_t branch;
    stet_status status = stet_space_open(project, spec->space, STET_SPACE_MUST_EXIST, &s, err);
    if (status != STET_OK)
        return status;
    status = stet_space_branch(s, spec->branch, &branch, err);
    if (status == STET_OK)
        status = stet_piece_load(s, branch, piece, -1, &p, err);
    if (status == STET_OK)
        status = reason ? accept(s, branch, p, node, reason, err) : revoke(s, branch, p, node, err);
    stet_piece_free(p);
    stet_space_close(s);
    return status;
}

stet_status stet_drive_look(stet_project *project, const stet_drive_spec *spec, stet_error *err) {
    return drive_bring_up(project, spec, false, err);
}

static bool is_of(driver *d, int64_t action) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    bool wanted = true,
         of = stet_observe_get(d->space, action, &arena, &r, NULL) == STET_OK && stet_piece_has(d->stored, &r.key);
    if (of && d->out->part && stet_sched_is_wanted(d->sched, d->stored->key, r.key.action, &wanted, NULL) != STET_OK)
        wanted = true;
    stet_arena_release(&arena);
    return of && wanted;
}

stet_status drive_count_accepted(driver *d, stet_error *err) {
    stet_sched_report *r = &d->out->report;
    bool any = false;
    stet_standing all = {0};
    r->accepted = r->through = 0;
    stet_status status = stet_standing_any_accepted(d->space, d->branch, &any, err);
    if (status != STET_OK || !any)
        return status;
    status = stet_standing_load(d->space, d->branch, &all, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < all.accepted.len; i++)
        r->accepted += is_of(d, all.accepted.at[i]);
    for (size_t i = 0; i < all.through.len; i++)
        r->through += is_of(d, all.through.at[i]);
    stet_standing_release(&all);
    if (!d->out->part)
        r->stood -= r->accepted < r->stood ? r->accepted : r->stood;
    return STET_OK;
}

/* Does a cell of the document come from an accepted action? Of a document of a piece, its other documents count, too: links
 * may lead from one to the next. */
stet_status drive_note_accepted(driver *d, const stet_docname *name, stet_error *err) {
    bool any = false;
    stet_standing all = {0};
    stet_status status = d->spec->note ? stet_standing_any_accepted(d->space, d->branch, &any, err) : STET_OK;
    if (status != STET_OK || !any)
        return status;
    status = stet_standing_load(d->space, d->branch, &all, err);
    if (status != STET_OK)
        return status;
    char *piece = stet_piece_around(name);
    stet_numbers writers = {0};
    if (!piece)
        status = stet_observe_writers(d->space, d->branch, name, STET_PATH_ROOT,
                                      STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE, &writers, err);
    const stet_numbers *lists[] = {&all.accepted, &all.through};
    bool said = false;
    for (size_t l = 0; l < 2 && status == STET_OK; l++)
        for (size_t i = 0; i < lists[l]->len && !said; i++) {
            stet_arena arena = STET_ARENA_INIT;
            stet_action_record r;
            bool of = false;
            for (size_t k = 0; k < writers.len && !of; k++)
                of = writers.at[k] == lists[l]->at[i];
            if (stet_observe_get(d->space, lists[l]->at[i], &arena, &r, NULL) == STET_OK) {
                char *own = stet_piece_of_action(&r.key);
                if (of || (piece && own && strcmp(piece, own) == 0)) {
                    stet_error what = STET_ERROR_INIT;
                    stet_fail(&what, STET_INVALID, "%s/%s %s: the value is not proved to be up to date",
                              own ? own : r.key.piece, r.key.action,
                              l == 0 ? "was accepted" : "depends on an accepted result");
                    stet_hint(&what, "`stet why` gives the reason, and `stet accept --revoke` takes it back");
                    d->spec->note(d->spec->ctx, &what);
                    stet_error_clear(&what);
                    said = true;
                }
                stet_free(own);
            }
            stet_arena_release(&arena);
        }
    stet_numbers_release(&writers);
    stet_free(piece);
    stet_standing_release(&all);
    return status;
}
