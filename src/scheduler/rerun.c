/* rerun.c - runs an action again and compares, storing nothing (check --rerun). */

#include "scheduler/rerun.h"

#include "scheduler/sched_internal.h"

#define MOST 20 /* differences and reads that are told of one action */

/* JSON, cut at a whole character. */
static stet_value shown(stet_value v) {
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    if (len > STET_RERUN_SHOWN) {
        len = STET_RERUN_SHOWN;
        while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
            len--;
        char *cut = stet_asprintf("%.*s...", (int)len, text);
        stet_free(text);
        text = cut;
    }
    stet_value out = stet_value_string(text);
    stet_free(text);
    return out;
}

static void differ(stet_rerun *out, stet_value cell, stet_value stored, stet_value recomputed) {
    out->outcome = STET_RERUN_DIFFERS;
    if (stet_value_count(out->differences) >= MOST) {
        stet_value_release(cell);
        stet_value_release(stored);
        stet_value_release(recomputed);
        return;
    }
    stet_value d = stet_value_object();
    stet_value_put(&d, "cell", cell);
    stet_value_put(&d, "stored", stored);
    stet_value_put(&d, "recomputed", recomputed);
    stet_value_push(&out->differences, d);
}

static stet_value cell_of(const char *space, const stet_docname *name, stet_pathref path) {
    stet_buf b = STET_BUF(0);
    if (space)
        stet_buf_printf(&b, "%s: ", space);
    stet_cell_print(name->id, path, &b);
    if (name->scope && *name->scope)
        stet_buf_printf(&b, " (scope %s)", name->scope);
    stet_value v = stet_value_string(stet_buf_cstr(&b));
    stet_buf_release(&b);
    return v;
}

static stet_value at_path(stet_value envelope, stet_pathref path) {
    stet_value v;
    return stet_path_lookup(envelope, path, &v) ? shown(v) : stet_value_string("(absent)");
}

/* Is a read one of those that the record has, or below one? */
static bool is_recorded(const stet_sched *s, const stet_action_record *was, const stet_tx_read_record *r) {
    const char *uuid = r->space == s->space ? NULL : stet_space_uuid(r->space);
    for (size_t i = 0; i < was->read_count; i++) {
        const stet_observed *o = &was->reads[i];
        const char *scope = o->name.scope ? o->name.scope : "", *mine = r->name.scope ? r->name.scope : "";
        if ((o->space == NULL) != (uuid == NULL) || (uuid && strcmp(o->space, uuid) != 0) ||
            strcmp(o->name.id, r->name.id) != 0 || strcmp(scope, mine) != 0)
            continue;
        if (o->kind == STET_RECURSIVE ? stet_path_is_prefix(o->path, r->path)
                                      : r->kind == STET_SHALLOW && stet_path_compare(o->path, r->path) == 0)
            return true;
    }
    return false;
}

static void compare_reads(const action_run *r, const stet_action_record *was, stet_rerun *out) {
    const stet_tx_read_record *at;
    size_t count;
    stet_arena arena = STET_ARENA_INIT;
    stet_tx_reads(r->tx, &arena, &at, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_recorded(r->s, was, &at[i]))
            continue;
        out->outcome = STET_RERUN_DIFFERS;
        const char *space = at[i].space == r->s->space ? NULL : stet_space_name(at[i].space);
        if (stet_value_count(out->unrecorded) < MOST)
            stet_value_push(&out->unrecorded, cell_of(space, &at[i].name, at[i].path));
    }
    stet_arena_release(&arena);
}

/* How it ended: the message of a failure, or none. */
static void compare_end(const action_run *r, const stet_action_record *was, stet_rerun *out) {
    stet_value note = stet_value_null(), message = stet_value_null();
    if (r->failed == was->failed &&
        (!r->failed || stet_hash_equal(stet_hash_of(r->error.message, strlen(r->error.message)), was->error)))
        return;
    if (was->failed && stet_json_parse(was->note, was->note_len, &note, NULL) == STET_OK)
        message = stet_value_get(stet_value_get(note, "error"), "message");
    differ(out, stet_value_string("error"),
           !was->failed                                   ? stet_value_string("(succeeded)")
           : stet_value_type(message) == STET_TYPE_STRING ? stet_value_retain(message)
                                                          : stet_value_string("(failed)"),
           r->failed ? stet_value_string(r->error.message) : stet_value_string("(succeeded)"));
    stet_value_release(note);
}

/* The index of children counts how often it was written; that is no result. */
static bool is_serial(const stet_doc_change *c, stet_pathref path) {
    stet_path want = STET_PATH_INIT;
    stet_path_push(&want, "value");
    stet_path_push(&want, "serial");
    bool is = strncmp(c->name.id, "piece:", 6) == 0 && strstr(c->name.id, ":children:") &&
              stet_path_compare(stet_path_ref(&want), path) == 0;
    stet_path_release(&want);
    return is;
}

/* Neither is what a run keeps beside the value of a cell before it writes there (graph/owned.h). */
static bool is_kept(const stet_doc_change *c, stet_pathref path) {
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    const char *part = strncmp(c->name.id, "piece:", 6) == 0 ? strchr(c->name.id + 6, ':') : NULL;
    bool is = part && (strcmp(part, ":argument") == 0 || strncmp(part, ":cell:", 6) == 0) && path.len > 0 &&
              !stet_path_is_prefix(stet_path_ref(&value), path);
    stet_path_release(&value);
    return is;
}

/* What it would change of what is stored. The transaction is the group's after this. */
static stet_status compare_writes(action_run *r, stet_rerun *out, stet_error *err) {
    stet_sched *s = r->s;
    const stet_doc_change *changes;
    size_t count;
    stet_status status = stet_group_add(s->batch.group, r->tx, &changes, &count, err);
    if (status != STET_OK)
        return status;
    r->tx = NULL;
    stet_tx *after = NULL;
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    if (count > 0)
        status = stet_tx_begin_in(s->batch.group, &after, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_doc_state before;
        stet_value now = stet_value_null();
        status = stet_space_load(s->space, s->branch, &changes[i].name, -1, &before, err);
        if (status != STET_OK)
            break;
        stet_error absent = STET_ERROR_INIT;
        if (stet_tx_peek(after, NULL, &changes[i].name, STET_PATH_ROOT, &now, &absent) != STET_OK)
            now = stet_value_null();
        stet_error_clear(&absent);
        for (size_t k = 0; k < changes[i].len; k++) {
            /* A document that comes or goes: its value. */
            stet_pathref path = changes[i].at[k].path.len > 0 ? changes[i].at[k].path : stet_path_ref(&value);
            if (!is_serial(&changes[i], path) && !is_kept(&changes[i], path))
                differ(out, cell_of(NULL, &changes[i].name, path), at_path(before.value, path), at_path(now, path));
        }
        stet_value_release(before.value);
    }
    stet_tx_abort(after);
    stet_path_release(&value);
    return status;
}

/* Runs it in a group of its own, of which nothing is stored. */
static stet_status run_again(stet_sched *s, sched_action *a, const stet_action_record *was, stet_rerun *out,
                             stet_error *err) {
    action_run r;
    stet_status status = sched_run_begin(s, a, &r, err);
    if (status == STET_OK && !sched_child_there(&r)) {
        out->outcome = STET_RERUN_OUTDATED;
    } else if (status == STET_OK) {
        a->verify = true; /* a coordinator looks at each of its children */
        sched_run_execute(&r);
        sched_run_check(&r);
        if (r.failed && r.wrote.len > 0)
            status = sched_cells_drop(&r, err);
        compare_reads(&r, was, out);
        compare_end(&r, was, out);
        if (status == STET_OK && !r.failed)
            status = compare_writes(&r, out, err);
    }
    sched_cells_release(&r);
    stet_reader_release(&r.reader);
    stet_tx_abort(r.tx);
    stet_value_release(r.result);
    stet_error_clear(&r.error);
    sched_children_release(&r);
    if (s->batch.group)
        stet_group_end(s->batch.group);
    s->batch.group = NULL;
    return status;
}

/* Does it carry on what it wrote itself (`c.set(c.get() + 1)`)? What it read then is not there any more. A
 * coordinator's list of its children is no such state. */
static bool carries_state(const stet_action_record *was) {
    for (size_t i = 0; i < was->read_count; i++)
        for (size_t k = 0; k < was->known_count; k++) {
            const stet_observed *r = &was->reads[i], *w = &was->known[k];
            const char *scope = r->name.scope ? r->name.scope : "", *other = w->name.scope ? w->name.scope : "";
            if (!r->space && strcmp(r->name.id, w->name.id) == 0 && strcmp(scope, other) == 0 &&
                (stet_path_is_prefix(r->path, w->path) || stet_path_is_prefix(w->path, r->path)) &&
                !strstr(r->name.id, ":children:"))
                return true;
        }
    return false;
}

/* Did it fail for a reason that lies outside its inputs: a part that was not installed, a disk, a limit? */
static bool failed_outside(const stet_action_record *was) {
    static const stet_status inside[] = {STET_FAILED, STET_INVALID, STET_NOT_FOUND, STET_CONFLICT, STET_CORRUPT};
    stet_value note;
    stet_status code = STET_FAILED;
    if (!was->failed || stet_json_parse(was->note, was->note_len, &note, NULL) != STET_OK)
        return false;
    stet_value name = stet_value_get(stet_value_get(note, "error"), "code");
    bool outside =
        stet_value_type(name) == STET_TYPE_STRING && stet_status_of_name(stet_value_as_string(&name, NULL), &code);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        outside = outside && code != inside[i];
    stet_value_release(note);
    return outside;
}

stet_status stet_sched_rerun(stet_sched *s, int64_t action, stet_rerun *out, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record was;
    uint32_t id;
    *out = (stet_rerun){.outcome = STET_RERUN_OUTDATED,
                        .row = stet_value_null(),
                        .differences = stet_value_array(),
                        .unrecorded = stet_value_array()};
    stet_status status = stet_observe_get(s->space, action, &arena, &was, err);
    if (status == STET_OK) {
        char *piece = stet_piece_of_action(&was.key);
        out->piece = piece ? piece : stet_strdup(was.key.piece);
        out->node = stet_strdup(was.key.action);
    }
    if (status == STET_OK && was.accepted && was.cause.state == STET_STATE_STANDS)
        out->outcome = STET_RERUN_ACCEPTED;
    if (status != STET_OK || out->outcome == STET_RERUN_ACCEPTED || !was.observed ||
        was.cause.state != STET_STATE_STANDS || was.run != STET_RUN_ACTION ||
        !stet_hash_equal(was.runtime, s->runtime) || failed_outside(&was)) {
        stet_arena_release(&arena);
        return status;
    }
    stet_error mine = STET_ERROR_INIT;
    char *key = stet_piece_key_of(&(stet_docname){was.key.piece, was.key.scope});
    status = key ? sched_load(s, key, was.key.action, &id, &mine) : STET_NOT_FOUND;
    stet_free(key);
    if (status == STET_NOT_FOUND) { /* its node is gone */
        stet_error_clear(&mine);
        status = STET_OK;
    } else if (status == STET_OK) {
        sched_action *a = stet_plan_data(s->plan, id);
        if (a->effect || !a->kind || a->kind->asynchronous || carries_state(&was)) {
            out->outcome = STET_RERUN_LEFT_OUT;
            if (!a->effect && a->kind && strcmp(a->kind->type, "command") == 0 &&
                stet_hash_equal(was.implementation, a->fingerprint)) {
                status = sched_row_take(s, a, &mine);
                if (status == STET_OK)
                    out->row = stet_value_retain(a->row);
            }
        } else if (stet_hash_equal(was.implementation, a->fingerprint)) {
            out->outcome = STET_RERUN_SAME;
            status = run_again(s, a, &was, out, &mine);
        }
    }
    stet_error_move(err, &mine);
    stet_arena_release(&arena);
    return status;
}

void stet_rerun_release(stet_rerun *r) {
    stet_free(r->piece);
    stet_free(r->node);
    stet_value_release(r->row);
    stet_value_release(r->differences);
    stet_value_release(r->unrecorded);
    *r = (stet_rerun){0};
}
