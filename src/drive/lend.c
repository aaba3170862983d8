/* lend.c - arguments that hold for one run, and who may drive a piece meanwhile.
 *
 * Invariants
 *   L1  A run with an argument of its own changes the argument of its piece while it runs, and then gives back what was
 *       there before. What it set never becomes an override.
 *   L2  Such a run is alone with its piece: every drive holds the lock of its piece, shared, and such a run holds it
 *       exclusively. So does a run of the fleet: its record is what it alone did.
 *   L3  What is to be given back is stored in the transaction that changes the argument. If the process dies, the next
 *       drive in the space gives it back.
 *   L4  A part of the argument that somebody else has changed meanwhile stays as they set it.
 *
 * The document STET_LENT holds {PIECE: {"by": RUN or null, "parts": [{"key"?, "before"?, "lent"?, "set"}]}}. A part
 * without a key is the argument as a whole. `set`: the part was an override before.
 */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "graph/argument.h"
#include "os/clock.h"
#include "os/file.h"

#define STET_LENT "lent-arguments"
#define WAIT_MS   100

static char *lock_path(const driver *d, const char *piece) {
    char hex[STET_HASH_HEX];
    char *key = stet_asprintf("%s\n%s\n%s", stet_space_name(d->space), d->spec->branch ? d->spec->branch : "", piece);
    stet_hash_hex(stet_hash_of(key, strlen(key)), hex);
    char *name = stet_asprintf("local/pieces/%.32s.lock", hex), *path = stet_project_path(d->project, name);
    stet_free(name);
    stet_free(key);
    return path;
}

static void note_waiting(driver *d, const char *piece) {
    stet_error what = STET_ERROR_INIT;
    long holder = stet_lock_holder(d->hold);
    if (holder > 0)
        stet_fail(&what, STET_BUSY, "waiting for piece \"%s\", which process %ld drives", piece, holder);
    else
        stet_fail(&what, STET_BUSY, "waiting for piece \"%s\", which another process drives", piece);
    stet_hint(&what, "a run of the queue, a rerun and a resumed run are alone with their piece");
    if (d->spec->note)
        d->spec->note(d->spec->ctx, &what);
    stet_error_clear(&what);
}

stet_status drive_hold(driver *d, const char *piece, stet_error *err) {
    bool alone = d->spec->alone || drive_lends(d->spec);
    if (d->spec->dry_run || (d->hold && stet_lock_held(d->hold)))
        return STET_OK;
    stet_status status = STET_OK;
    if (!d->hold) {
        char *path = lock_path(d, piece), *dir = stet_file_dirname(path);
        d->held = stet_strdup(piece);
        status = stet_file_mkdirs(dir, 0755, err);
        if (status == STET_OK)
            status = stet_lock_open(path, STET_LOCK_PLAIN, &d->hold, err);
        stet_free(dir);
        stet_free(path);
    }
    for (int ms = 0; status == STET_OK; ms = WAIT_MS) {
        stet_error mine = STET_ERROR_INIT;
        status = stet_lock_take(d->hold, alone ? STET_LOCK_EXCLUSIVE : STET_LOCK_SHARED, ms, &mine);
        if (status != STET_BUSY) {
            if (status != STET_OK && err)
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
            break;
        }
        stet_error_clear(&mine);
        d->out->occupied = d->spec->no_wait;
        if (d->spec->no_wait)
            return stet_fail(err, STET_BUSY, "piece \"%s\" is being driven", piece);
        if (ms == 0)
            note_waiting(d, piece);
        status = drive_is_cancelled(d) ? stet_fail(err, STET_CANCELLED, "stopped") : STET_OK;
    }
    /* Before anything is set: what is set to the very value that was lent stays. */
    return status == STET_OK ? drive_settle_lent(d, false, err) : status;
}

void drive_let_go(driver *d) {
    if (d->hold && stet_lock_held(d->hold))
        stet_lock_drop(d->hold);
}

bool drive_lends(const stet_drive_spec *spec) {
    return spec->own_argument || stet_value_count(spec->lend) > 0;
}

stet_status drive_argument(driver *d, bool *exists, int64_t *seq, stet_value *out, stet_error *err) {
    char *id = stet_piece_part(d->piece, "argument", NULL);
    stet_docname name = stet_piece_at(d->piece, id);
    stet_doc_state state = {0};
    stet_value v;
    stet_status status = stet_space_load(d->space, d->branch, &name, -1, &state, err);
    *exists = status == STET_OK && state.exists && stet_value_find(state.value, "value", 5, &v);
    *out = *exists ? stet_value_retain(v) : stet_value_null();
    *seq = state.seq;
    if (status == STET_OK)
        stet_value_release(state.value);
    stet_free(id);
    return status;
}

/* The argument as the transaction sees it. Borrowed from the transaction; false: there is none. */
static bool argument_in(stet_tx *tx, const stet_docname *name, stet_value *out) {
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    bool found = stet_tx_read(tx, NULL, name, stet_path_ref(&path), STET_RECURSIVE, out, NULL) == STET_OK;
    stet_path_release(&path);
    return found;
}

/* The first key of KEY or /POINTER; false: the whole argument. */
static bool first_key(const char *text, size_t len, stet_buf *key) {
    stet_path path = STET_PATH_INIT;
    stet_buf scratch = STET_BUF(0);
    const char *at;
    size_t n, cursor = 0;
    stet_buf_clear(key);
    bool found = len > 0;
    if (found && text[0] == '/') {
        found = stet_path_of_pointer(&path, text, len, NULL) == STET_OK &&
                stet_path_next(stet_path_ref(&path), &cursor, &scratch, &at, &n);
        if (found)
            stet_buf_add(key, at, n);
    } else if (found) {
        stet_buf_add(key, text, len);
    }
    stet_buf_release(&scratch);
    stet_path_release(&path);
    return found;
}

/* Is this key, or the whole argument (`key` NULL), among the names of overrides? `*name`: its name there. */
static bool is_override(stet_value names, const char *key, size_t len, stet_value *name) {
    stet_buf one = STET_BUF(0);
    bool found = false;
    for (size_t i = 0; i < stet_value_count(names) && !found; i++) {
        size_t n;
        *name = stet_value_at(names, i);
        const char *text = stet_value_as_string(name, &n);
        if (strcmp(text, ".") == 0)
            found = !key;
        else if (key && strncmp(text, "cell:", 5) != 0)
            found = first_key(text, n, &one) && one.len == len && memcmp(stet_buf_cstr(&one), key, len) == 0;
    }
    stet_buf_release(&one);
    return found;
}

static stet_value pointer_of(const char *key, size_t len) {
    stet_buf b = STET_BUF(0);
    stet_path path = STET_PATH_INIT;
    stet_path_push_n(&path, key, len);
    stet_path_print(stet_path_ref(&path), &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_path_release(&path);
    stet_buf_release(&b);
    return v;
}

typedef struct lending {
    driver *d;
    const char *piece;
    stet_value set, unset, names;
    bool whole, changed;
} lending;

/* What must change so that the argument is `want`: overrides that it lacks go, and what differs is set. */
static void want_argument(lending *l, stet_value have, stet_value want) {
    bool parts = stet_value_type(have) == STET_TYPE_OBJECT && stet_value_type(want) == STET_TYPE_OBJECT;
    stet_value name, v;
    size_t len;
    if (!parts) {
        if (!stet_value_equal(have, want))
            stet_value_put(&l->set, "", stet_value_retain(want));
        return;
    }
    for (size_t i = 0; i < stet_value_count(have); i++) {
        const char *key = stet_value_key_at(have, i, &len);
        if (!stet_value_find(want, key, len, NULL) && is_override(l->names, key, len, &name))
            stet_value_push(&l->unset, stet_value_retain(name));
    }
    for (size_t i = 0; i < stet_value_count(want); i++) {
        const char *key = stet_value_key_at(want, i, &len);
        if (stet_value_find(have, key, len, &v) && stet_value_equal(v, stet_value_at(want, i)))
            continue;
        stet_value at = pointer_of(key, len);
        const char *text = stet_value_as_string(&at, &len);
        stet_value_put_n(&l->set, text, len, stet_value_retain(stet_value_at(want, i)));
        stet_value_release(at);
    }
}

/* {KEY: null} for each part of the argument that changes. */
static stet_value parts_of(lending *l) {
    stet_value keys = stet_value_object();
    stet_buf one = STET_BUF(0);
    for (size_t i = 0; i < stet_value_count(l->set) + stet_value_count(l->unset); i++) {
        size_t n, set = stet_value_count(l->set);
        stet_value v = i < set ? stet_value_null() : stet_value_at(l->unset, i - set);
        const char *text = i < set ? stet_value_key_at(l->set, i, &n) : stet_value_as_string(&v, &n);
        if (first_key(text, n, &one))
            stet_value_put_n(&keys, stet_buf_cstr(&one), one.len, stet_value_null());
        else
            l->whole = true;
    }
    stet_buf_release(&one);
    return keys;
}

static void put_part(stet_value *part, const char *member, stet_value argument, bool there, const char *key,
                     size_t len) {
    stet_value v = argument;
    if (there && (!key || stet_value_find(argument, key, len, &v)))
        stet_value_put(part, member, stet_value_retain(v));
}

/* The parts with the members `before` and `set`; with `lent` once the argument has changed. */
static stet_value describe(const lending *l, stet_value keys, stet_value before, bool was, stet_value lent, bool is) {
    stet_value parts = stet_value_array(), name;
    for (size_t i = 0; i < (l->whole ? 1 : stet_value_count(keys)); i++) {
        size_t len = 0;
        const char *key = l->whole ? NULL : stet_value_key_at(keys, i, &len);
        stet_value part = stet_value_object();
        if (key)
            stet_value_put(&part, "key", stet_value_string_n(key, len));
        put_part(&part, "before", before, was, key, len);
        put_part(&part, "lent", lent, is, key, len);
        stet_value_put(&part, "set", stet_value_bool(is_override(l->names, key, len, &name)));
        stet_value_push(&parts, part);
    }
    return parts;
}

static stet_status write_lent(stet_tx *tx, const char *piece, stet_value entry, stet_error *err) {
    stet_docname name = {STET_LENT, NULL};
    stet_value all, list;
    list = argument_in(tx, &name, &all) ? stet_value_retain(all) : stet_value_object();
    if (stet_value_type(entry) == STET_TYPE_NULL)
        stet_value_remove(&list, piece, strlen(piece));
    else
        stet_value_put(&list, piece, entry);
    if (stet_value_count(list) == 0) {
        stet_value_release(list);
        return stet_tx_drop(tx, &name, err);
    }
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", list);
    return stet_tx_put(tx, &name, envelope, err);
}

static stet_status lend_in(stet_tx *tx, void *ctx, stet_error *err) {
    lending *l = ctx;
    const stet_drive_spec *spec = l->d->spec;
    stet_piece *p;
    stet_status status = stet_piece_load(l->d->space, l->d->branch, l->piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    char *id = stet_piece_part(l->piece, "argument", NULL);
    stet_docname name = stet_piece_at(l->piece, id);
    stet_value have = stet_value_null(), before = stet_value_null(), keys = stet_value_null();
    l->set = stet_value_object();
    l->unset = stet_value_array();
    l->names = stet_value_null();
    l->whole = false;
    if (!l->d->lent_at_setup) /* otherwise what was lent at set-up is all that the argument has */
        status = stet_piece_overrides(l->d->space, l->d->branch, p, &l->names, err);
    bool was = status == STET_OK && argument_in(tx, &name, &have), is;
    before = was ? stet_value_retain(have) : stet_value_null();
    if (status == STET_OK && spec->own_argument)
        want_argument(l, before, spec->argument);
    for (size_t i = 0; i < stet_value_count(spec->lend); i++) {
        size_t len;
        const char *key = stet_value_key_at(spec->lend, i, &len);
        stet_value_put_n(&l->set, key, len, stet_value_retain(stet_value_at(spec->lend, i)));
    }
    if (status == STET_OK) {
        stet_value all;
        keys = parts_of(l);
        l->whole = l->whole || is_override(l->names, NULL, 0, &all);
        status = stet_piece_adjust(tx, l->d->branch, p, l->unset, l->set, err);
    }
    is = argument_in(tx, &name, &have);
    l->changed = is != was || (is && !stet_value_equal(have, before)) || l->d->lent_at_setup;
    if (status == STET_OK && stet_value_count(l->set) + stet_value_count(l->unset) > 0) {
        stet_value entry = stet_value_object();
        stet_value_put(&entry, "by", spec->run_id ? stet_value_string(spec->run_id) : stet_value_null());
        stet_value_put(&entry, "parts", describe(l, keys, before, was, have, is));
        status = write_lent(tx, l->piece, entry, err);
    }
    stet_value_release(keys);
    stet_value_release(before);
    stet_value_release(l->set);
    stet_value_release(l->unset);
    stet_value_release(l->names);
    stet_free(id);
    stet_piece_free(p);
    return status;
}

stet_status drive_lend(driver *d, stet_error *err) {
    lending l = {.d = d, .piece = d->piece};
    if (!drive_lends(d->spec))
        return STET_OK;
    stet_status status = stet_space_transact(d->space, d->spec->branch, lend_in, &l, NULL, err);
    if (status != STET_OK)
        return status;
    d->lent = true;
    d->own_argument = l.changed;
    if (d->run) {
        /* Before anything runs with it: if the process is killed, the record has the argument that its commands had. */
        drive_keep_argument(d, false);
        status = stet_runfile_flush(d->run, err);
    }
    return status == STET_OK ? drive_look(d, err) : status;
}

/* L4: is the part still what the run made of it? */
static bool still_lent(stet_value part, stet_value now, bool there) {
    stet_value key = stet_value_get(part, "key"), v = now, lent;
    size_t len;
    const char *text = stet_value_as_string(&key, &len);
    there = there && (!text || stet_value_find(now, text, len, &v));
    bool was = stet_value_find(part, "lent", 4, &lent);
    return there == was && (!there || stet_value_equal(v, lent));
}

/* Writes without a check: what was there before is what the piece had, whatever its schema says of it. */
static stet_status put_back(stet_tx *tx, const stet_docname *name, stet_value key, stet_value before, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    size_t len;
    const char *text = stet_value_as_string(&key, &len);
    stet_path_push(&path, "value");
    if (text)
        stet_path_push_n(&path, text, len);
    stet_status status = stet_tx_write(tx, name, stet_path_ref(&path), stet_value_retain(before), err);
    if (status == STET_OK)
        status = stet_piece_mark_set(tx, name, stet_path_ref(&path), err);
    stet_path_release(&path);
    return status;
}

static stet_status give_back_in(stet_tx *tx, void *ctx, stet_error *err) {
    lending *l = ctx;
    stet_piece *p = NULL;
    stet_value all, parts, now = stet_value_null(), names = stet_value_null(), unset = stet_value_array();
    if (!argument_in(tx, &(stet_docname){STET_LENT, NULL}, &all)) {
        stet_value_release(unset);
        return STET_OK; /* somebody was faster */
    }
    parts = stet_value_retain(stet_value_get(stet_value_get(all, l->piece), "parts"));
    char *id = stet_piece_part(l->piece, "argument", NULL);
    stet_docname name = stet_piece_at(l->piece, id);
    bool exists = stet_piece_load(l->d->space, l->d->branch, l->piece, -1, &p, NULL) == STET_OK;
    stet_status status = exists ? stet_piece_overrides(l->d->space, l->d->branch, p, &names, err) : STET_OK;
    bool there = status == STET_OK && exists && argument_in(tx, &name, &now);
    stet_value_retain(now);
    for (size_t i = 0; i < stet_value_count(parts) && status == STET_OK && exists; i++) {
        stet_value part = stet_value_at(parts, i), key = stet_value_get(part, "key"), before, over;
        size_t len = 0;
        const char *text = stet_value_as_string(&key, &len);
        bool set = stet_value_as_bool(stet_value_get(part, "set")) && stet_value_find(part, "before", 6, &before);
        if (!still_lent(part, now, there))
            continue;
        if (set)
            status = put_back(tx, &name, key, before, err);
        else if (is_override(names, text, len, &over))
            stet_value_push(&unset, stet_value_retain(over));
        else if (!text && stet_value_count(names) > 0)
            stet_value_push(&unset, stet_value_string("."));
    }
    if (status == STET_OK && stet_value_count(unset) > 0)
        status = stet_piece_unset(tx, l->d->branch, p, unset, err);
    if (status == STET_OK)
        status = write_lent(tx, l->piece, stet_value_null(), err);
    stet_value_release(unset);
    stet_value_release(names);
    stet_value_release(parts);
    stet_value_release(now);
    stet_piece_free(p);
    stet_free(id);
    return status;
}

static stet_status give_back(driver *d, const char *piece, stet_error *err) {
    lending l = {.d = d, .piece = piece};
    return stet_space_transact(d->space, d->spec->branch, give_back_in, &l, NULL, err);
}

stet_status drive_give_back(driver *d, stet_error *err) {
    if (!d->lent)
        return STET_OK;
    d->lent = false;
    return give_back(d, d->piece, err);
}

/* Is nobody at the piece who lends? In a copy of a project nobody is. Nobody begins before `*lock` is closed. */
static bool is_left(driver *d, const char *piece, bool copy, stet_lock **lock) {
    *lock = NULL;
    if (copy || (d->hold && stet_lock_held(d->hold) && strcmp(piece, d->held) == 0))
        return true;
    char *path = lock_path(d, piece);
    bool left = stet_lock_open(path, STET_LOCK_PLAIN, lock, NULL) == STET_OK &&
                stet_lock_take(*lock, STET_LOCK_EXCLUSIVE, 0, NULL) == STET_OK;
    stet_free(path);
    return left;
}

stet_status drive_any_lent(stet_space *space, int64_t branch, stet_value *out, stet_error *err) {
    stet_doc_state state = {0};
    stet_status status = stet_space_load(space, branch, &(stet_docname){STET_LENT, NULL}, -1, &state, err);
    *out = stet_value_null();
    if (status == STET_OK && state.exists)
        *out = stet_value_retain(stet_value_get(state.value, "value"));
    if (status == STET_OK)
        stet_value_release(state.value);
    return status;
}

stet_status drive_settle_lent(driver *d, bool copy, stet_error *err) {
    stet_value all;
    stet_status status = drive_any_lent(d->space, d->branch, &all, err);
    bool changed = false;
    for (size_t i = 0; i < stet_value_count(all) && status == STET_OK; i++) {
        const char *piece = stet_value_key_at(all, i, NULL);
        stet_lock *lock;
        if (is_left(d, piece, copy, &lock)) {
            status = give_back(d, piece, err);
            changed = true;
        }
        stet_lock_close(lock);
    }
    stet_value_release(all);
    return status == STET_OK && changed && d->stored ? drive_look(d, err) : status;
}
