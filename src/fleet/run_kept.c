/* run_kept.c - what a run keeps for whoever continues or repeats it: its argument, and which effects it did. */

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "fleet/run_internal.h"
#include "os/clock.h"
#include "os/file.h"

#define ARGUMENT_FILE "argument.json"
/* Of events.jsonl that is read when a run is continued; a longer one is not read, and its effects are taken for not done. */
#define EVENTS_READ_MAX ((size_t)1 << 30)
#define EFFECT_EVENT    "effect"

static stet_value reference_of(const char *text, size_t len) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "bytes", stet_value_int((int64_t)len));
    stet_value_put(&v, "sha256", stet_hash_text(stet_hash_of(text, len)));
    return v;
}

stet_status stet_runfile_keep_argument(stet_runfile *run, stet_value argument, bool *other, stet_error *err) {
    size_t len;
    char *text = stet_json_print(argument, STET_JSON_CANONICAL, &len);
    stet_value had = stet_value_null(), reference = stet_value_null();
    bool inside = stet_value_find(run->state, "argument", 8, &had), there = inside;
    stet_status st = STET_OK;
    if (len > STET_RUNFILE_INLINE)
        reference = reference_of(text, len);
    if (!inside)
        there = stet_value_find(run->state, "argumentFile", 12, &had);
    *other = there && !stet_value_equal(had, inside ? argument : reference);
    if (len > STET_RUNFILE_ARGUMENT_MAX) {
        st = stet_fail(err, STET_LIMIT, "the argument has %zu bytes, more than the %zu that a run can keep", len,
                       STET_RUNFILE_ARGUMENT_MAX);
    } else if (len > STET_RUNFILE_INLINE && (inside || !there || *other)) {
        char *path = stet_file_join(run->dir, ARGUMENT_FILE);
        st = stet_file_replace(path, text, len, 0644, err);
        stet_free(path);
    }
    stet_free(text);
    if (st != STET_OK) {
        stet_value_release(reference);
        return st;
    }
    bool large = stet_value_type(reference) == STET_TYPE_OBJECT;
    stet_value_remove(&run->state, large ? "argument" : "argumentFile", large ? 8 : 12);
    stet_value_put(&run->state, large ? "argumentFile" : "argument", large ? reference : stet_value_retain(argument));
    return STET_OK;
}

bool stet_runfile_argument(stet_runfile *run, stet_value argument) {
    bool other = false;
    if (!stet_runfile_good(run) || stet_runfile_keep_argument(run, argument, &other, &run->failure) != STET_OK)
        return false; /* sticks */
    stet_runfile_changed(run, false);
    return other;
}

stet_status stet_runfile_read_argument(const char *run_dir, const stet_state *state, bool *exists, stet_value *out,
                                       stet_error *err) {
    stet_value v, wanted = stet_value_get(state->root, "argumentFile");
    *out = stet_value_null();
    *exists = stet_value_find(state->root, "argument", 8, &v);
    if (*exists || stet_value_type(wanted) != STET_TYPE_OBJECT) {
        *out = *exists ? stet_value_retain(v) : stet_value_null();
        return STET_OK;
    }
    char *path = stet_file_join(run_dir, ARGUMENT_FILE);
    struct stat sb;
    stet_buf text = STET_BUF(STET_RUNFILE_ARGUMENT_MAX + 1);
    stet_error why = STET_ERROR_INIT;
    bool regular = stet_sys_lstat(path, &sb) == 0 && S_ISREG(sb.st_mode);
    stet_status st = regular ? stet_file_read(path, STET_RUNFILE_ARGUMENT_MAX, &text, &why) : STET_NOT_FOUND;
    bool same = false;
    if (st == STET_OK) {
        stet_value is = reference_of(text.data, text.len);
        same = stet_value_equal(is, wanted);
        stet_value_release(is);
    }
    if (same)
        st = stet_json_read(text.data, text.len, NULL, out, &why);
    if (!same || st != STET_OK) {
        st = stet_fail(err, STET_CORRUPT, "%s is not the argument that the run had", path);
        stet_hint(err, "without it the run can be neither continued nor repeated");
    }
    *exists = st == STET_OK;
    stet_error_clear(&why);
    stet_buf_release(&text);
    stet_free(path);
    return st;
}

void stet_runfile_effect(stet_runfile *run, const char *id, bool stored, int64_t seq) {
    stet_value line = stet_value_object();
    stet_value_put(&line, "task", stet_runfile_text(id));
    stet_value_put(&line, stored ? "stored" : "begun", stet_value_int(seq));
    stet_value_put(&line, "ms", stet_value_int(stet_clock_ms()));
    stet_runfile_event(run, EFFECT_EVENT, line);
    stet_value_release(line);
    stet_runfile_write_events(run);
}

bool stet_runfile_effect_of(const stet_runfile *run, const char *id, stet_runfile_effect_state *out) {
    stet_value v;
    *out = (stet_runfile_effect_state){0};
    if (!stet_value_find(run->effects, id, strlen(id), &v))
        return false;
    out->begun = stet_value_as_int(stet_value_get(v, "begun"));
    out->begun_ms = stet_value_as_int(stet_value_get(v, "ms"));
    out->stored = stet_value_as_int(stet_value_get(v, "stored"));
    return true;
}

static void take_effect(stet_runfile *run, stet_value v) {
    stet_value had, now = stet_value_object(), task = stet_value_get(v, "task");
    bool stored = stet_value_type(stet_value_get(v, "stored")) == STET_TYPE_INT;
    size_t n;
    const char *id = stet_value_as_string(&task, &n);
    /* One that begins again is not stored any more: its inputs are others by now. */
    if (stored && stet_value_find(run->effects, id, n, &had)) {
        stet_value_release(now);
        now = stet_value_retain(had);
    }
    const char *key = stored ? "stored" : "begun";
    stet_value_put(&now, key, stet_value_retain(stet_value_get(v, key)));
    if (!stored)
        stet_value_put(&now, "ms", stet_value_retain(stet_value_get(v, "ms")));
    stet_value_put_n(&run->effects, id, n, now);
}

/* Of a task only the last change counts, so that most lines are read and forgotten. A line that can't be read is the end
 * of what a killed process wrote. */
static void take_line(stet_runfile *run, const char *line, size_t len, stet_value *last) {
    stet_value v;
    if (stet_json_read(line, len, NULL, &v, NULL) != STET_OK)
        return;
    stet_value task = stet_value_get(v, "task"), event = stet_value_get(v, "event");
    size_t n;
    const char *id = stet_value_as_string(&task, &n);
    if (id != NULL && stet_value_text_is(event, EFFECT_EVENT))
        take_effect(run, v);
    else if (id != NULL && stet_value_text_is(event, "task"))
        stet_value_put_n(last, id, n, stet_value_retain(v));
    stet_value_release(v);
}

void stet_runfile_recall(stet_runfile *run) {
    stet_buf text = STET_BUF(EVENTS_READ_MAX + 1);
    stet_error none = STET_ERROR_INIT;
    struct stat sb;
    stet_value last = stet_value_object();
    run->effects = stet_value_object();
    if (stet_sys_lstat(run->events_path, &sb) == 0 && S_ISREG(sb.st_mode) &&
        stet_file_read(run->events_path, EVENTS_READ_MAX, &text, &none) == STET_OK)
        for (const char *at = text.data, *end = at + text.len; at < end;) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            if (newline == NULL)
                break;
            take_line(run, at, (size_t)(newline - at), &last);
            at = newline + 1;
        }
    for (size_t i = 0; i < stet_value_count(last); i++)
        stet_runfile_replay(run, stet_value_at(last, i));
    stet_value_release(last);
    stet_error_clear(&none);
    stet_buf_release(&text);
}
