/* observe_value.c - actions, their observations and their counts as JSON values, for every surface. */

#include "memory/observe_internal.h"

static stet_value cell_value(const stet_docname *name, stet_pathref path) {
    stet_buf b = STET_BUF(0);
    stet_cell_print(name->id, path, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

static void put_place(stet_value *row, const char *space, const stet_docname *name, stet_pathref path) {
    stet_value_put(row, "cell", cell_value(name, path));
    if (name->scope && *name->scope)
        stet_value_put(row, "scope", stet_value_string(name->scope));
    if (space)
        stet_value_put(row, "space", stet_value_string(space));
}

static stet_value places_value(const stet_observed *at, size_t count, bool reads) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++) {
        stet_value row = stet_value_object();
        put_place(&row, at[i].space, &at[i].name, at[i].path);
        if (reads) {
            stet_value_put(&row, "kind", stet_value_string(at[i].kind == STET_SHALLOW ? "shallow" : "recursive"));
            stet_value_put(&row, "seq", stet_value_int(at[i].seq));
        }
        stet_value_push(&list, row);
    }
    return list;
}

static void put_text(stet_value *v, const char *key, const char *text, size_t len) {
    stet_value parsed;
    if (len && stet_json_parse(text, len, &parsed, NULL) == STET_OK)
        stet_value_put(v, key, parsed);
}

stet_value stet_cause_value(const stet_cause *c) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "reason", stet_value_string(stet_reason_name(c->reason)));
    if (c->seq)
        stet_value_put(&v, "seq", stet_value_int(c->seq));
    if (c->name.id) {
        put_place(&v, c->space, &c->name, c->change.path);
        stet_value_put(&v, "kind", stet_value_string(c->change.kind == STET_KEYSET ? "keys" : "value"));
    }
    return v;
}

stet_value stet_action_value(const stet_action_record *r) {
    static const char *const kinds[] = {"", "computation", "effect", "event-handler"};
    static const char *const runs[] = {"", "dependency-collection", "action-run", "event-preflight"};
    stet_value v = stet_value_object();
    stet_value_put(&v, "piece", stet_value_string(r->key.piece));
    stet_value_put(&v, "scope", stet_value_string(r->key.scope ? r->key.scope : ""));
    stet_value_put(&v, "action", stet_value_string(r->key.action));
    stet_value_put(&v, "observed", stet_value_bool(r->observed));
    if (!r->observed)
        return v;
    char hex[STET_HASH_HEX];
    stet_value_put(&v, "kind", stet_value_string(kinds[r->kind]));
    stet_value_put(&v, "run", stet_value_string(runs[r->run]));
    stet_value_put(&v, "generation", stet_value_int(r->generation));
    stet_value_put(&v, "observedAt", stet_value_int(r->observed_at));
    stet_value_put(&v, "commitSeq", r->commit_seq ? stet_value_int(r->commit_seq) : stet_value_null());
    stet_value_put(&v, "timeMs", stet_value_int(r->time_ms));
    stet_hash_hex(r->implementation, hex);
    stet_value_put(&v, "implementation", stet_value_string(hex));
    stet_hash_hex(r->runtime, hex);
    stet_value_put(&v, "runtime", stet_value_string(hex));
    if (r->parent)
        stet_value_put(&v, "parent", stet_value_string(r->parent));
    stet_value_put(&v, "failed", stet_value_bool(r->failed));
    if (r->failed) {
        stet_hash_hex(r->error, hex);
        stet_value_put(&v, "error", stet_value_string(hex));
    }
    stet_value_put(&v, "reads", places_value(r->reads, r->read_count, true));
    stet_value_put(&v, "changedWrites", places_value(r->changed, r->changed_count, false));
    stet_value_put(&v, "knownWrites", places_value(r->known, r->known_count, false));
    stet_value_put(&v, "declaredWrites", places_value(r->declared, r->declared_count, false));
    stet_value_put(&v, "envelopes", places_value(r->envelopes, r->envelope_count, false));
    stet_value_put(&v, "ignoredWrites", places_value(r->ignored, r->ignored_count, false));
    put_text(&v, "options", r->options, r->options_len);
    put_text(&v, "note", r->note, r->note_len);
    return v;
}

stet_value stet_reasons_value(const int64_t counts[STET_REASONS], stet_reason from) {
    stet_value v = stet_value_object();
    for (size_t i = from; i < STET_REASONS; i++)
        if (counts[i])
            stet_value_put(&v, i == STET_REASON_NONE ? "asked" : stet_reason_name((stet_reason)i),
                           stet_value_int(counts[i]));
    return v;
}

static void put_counts(stet_value *v, size_t len, const char *const *names, const int64_t *counts) {
    for (size_t i = 0; i < len; i++)
        stet_value_put(v, names[i], stet_value_int(counts[i]));
}

stet_value stet_observe_stats_value(const stet_observe_stats *st) {
    static const char *const names[] = {"actions",   "observed",      "dirty",    "unknown",      "readRows",
                                        "writeRows", "mirrorRows",    "pastRows", "rows",         "observationBytes",
                                        "pastBytes", "foreignSpaces", "skipped",  "markedThrough"};
    const int64_t counts[] = {st->actions,
                              st->observed,
                              st->dirty,
                              st->unknown,
                              st->read_rows,
                              st->write_rows,
                              st->mirror_rows,
                              st->past_rows,
                              st->actions + st->read_rows + st->write_rows + st->mirror_rows + st->past_rows +
                                  st->dirty + st->unknown,
                              st->observation_bytes,
                              st->past_bytes,
                              st->foreign_spaces,
                              st->stood,
                              st->marked_through};
    stet_value v = stet_value_object();
    put_counts(&v, sizeof names / sizeof *names, names, counts);
    stet_value_put(&v, "unknownByReason", stet_reasons_value(st->marks, STET_REASON_NEVER));
    stet_value dirty = stet_value_object();
    for (int i = STET_REASON_CHANGED; i <= STET_REASON_OVERWRITTEN; i++)
        if (st->marks[i])
            stet_value_put(&dirty, stet_reason_name((stet_reason)i), stet_value_int(st->marks[i]));
    stet_value_put(&v, "dirtyByReason", dirty);
    stet_value_put(&v, "runsByCause", stet_reasons_value(st->runs, STET_REASON_NONE));
    return v;
}

stet_value stet_observe_counts_value(const struct stet_observe_counts *c) {
    static const char *const names[] = {"skipped",      "stored", "keptNoops", "droppedNoops", "marksSet",
                                        "marksCleared", "lost",   "rows",      "bytes"};
    const int64_t counts[] = {c->stood,         c->stored, c->kept_noops, c->dropped_noops, c->marks_set,
                              c->marks_cleared, c->lost,   c->rows,       c->bytes};
    stet_value v = stet_value_object();
    put_counts(&v, sizeof names / sizeof *names, names, counts);
    stet_value_put(&v, "runsByCause", stet_reasons_value(c->runs, STET_REASON_NONE));
    return v;
}

bool stet_action_fails(const stet_action_record *r) {
    bool waits = r->cause.state == STET_STATE_UNKNOWN &&
                 (r->cause.reason == STET_REASON_WAITS || r->cause.reason == STET_REASON_NEVER);
    return r->observed && r->failed && !waits;
}

stet_status stet_observe_failures(stet_space *s, int64_t branch, const char *piece, const char *scope, stet_value *out,
                                  stet_error *err) {
    stet_numbers failed = {0};
    stet_status st = stet_observe_failed(s, branch, piece, scope, &failed, err);
    *out = stet_value_object();
    for (size_t i = 0; i < failed.len && st == STET_OK; i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_value note = stet_value_null(), error;
        st = stet_observe_get(s, failed.at[i], &arena, &r, err);
        if (st == STET_OK && stet_action_fails(&r)) {
            if (!r.note_len || stet_json_parse(r.note, r.note_len, &note, NULL) != STET_OK)
                note = stet_value_null();
            error = stet_value_get(note, "error");
            if (stet_value_type(error) == STET_TYPE_OBJECT) {
                error = stet_value_retain(error);
                stet_value_remove(&error, "details", 7);
            } else {
                error = stet_value_object();
                stet_value_put(&error, "code", stet_value_string("failed"));
                stet_value_put(&error, "message", stet_value_string("it failed; what it said was too long to be kept"));
            }
            stet_value_put(out, r.key.action, error);
            stet_value_release(note);
        }
        stet_arena_release(&arena);
    }
    stet_numbers_release(&failed);
    if (st != STET_OK) {
        stet_value_release(*out);
        *out = stet_value_null();
    }
    return st;
}
