/* queue.c - the queue of runs to do: one file, changed under a lock.
 *
 * Invariants
 *   Q1  An entry is in the file from the time it is added until it is pruned after its end. Nothing else removes an
 *       entry.
 *   Q2  Every change is made under queue.lock, on what the file holds at that moment.
 *   Q3  Only the token of its lease settles or renews a leased entry.
 *   Q4  attempts counts leases and never exceeds maxAttempts.
 */

#include "fleet/queue.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "fleet/overlay.h"
#include "fleet/repos.h"
#include "fleet/state.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/proc.h"

#define QUEUE_MAX_BYTES ((size_t)1 << 30)
#define LOCK_WAIT_MS    30000
#define PREFIX_MIN      6
#define ENDING_MIN      4
#define BACKOFF_MAX     6

static const char *const status_names[STET_QUEUE_STATUSES] = {"pending", "leased",    "drained", "done",
                                                              "failed",  "cancelled", "parked"};

const char *stet_queue_status_name(stet_queue_status s) {
    return status_names[s];
}

bool stet_queue_status_of_name(const char *name, stet_queue_status *out) {
    for (int i = 0; i < STET_QUEUE_STATUSES; i++)
        if (strcmp(status_names[i], name) == 0) {
            *out = (stet_queue_status)i;
            return true;
        }
    return false;
}

/* The changes of status that people may make. Workers change it by lease and settle. */
bool stet_queue_allowed(stet_queue_status from, stet_queue_move move, stet_queue_status *to) {
    static const struct {
        unsigned from;
        stet_queue_status to;
    } table[] = {
        [STET_QUEUE_CANCEL] = {1u << STET_QUEUED_PENDING | 1u << STET_QUEUED_LEASED | 1u << STET_QUEUED_DRAINED |
                                   1u << STET_QUEUED_FAILED | 1u << STET_QUEUED_PARKED,
                               STET_QUEUED_CANCELLED},
        [STET_QUEUE_REQUEUE] = {1u << STET_QUEUED_DRAINED | 1u << STET_QUEUED_FAILED | 1u << STET_QUEUED_CANCELLED |
                                    1u << STET_QUEUED_PARKED,
                                STET_QUEUED_PENDING},
        [STET_QUEUE_DONE] = {1u << STET_QUEUED_DRAINED, STET_QUEUED_DONE},
        [STET_QUEUE_FAIL] = {1u << STET_QUEUED_DRAINED, STET_QUEUED_FAILED},
    };
    if (move == STET_QUEUE_PRIORITY) {
        *to = from;
        return from == STET_QUEUED_PENDING || from == STET_QUEUED_PARKED || from == STET_QUEUED_DRAINED;
    }
    *to = table[move].to;
    return (table[move].from & 1u << from) != 0;
}

static bool time_of(stet_value object, const char *key, int64_t *ms) {
    stet_value v = stet_value_get(object, key);
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    return s != NULL && stet_time_parse(s, len, ms);
}

static stet_status text_member(stet_value *object, const char *key, const char *text, stet_error *err) {
    stet_value v = stet_value_null();
    if (text != NULL) {
        stet_status st = stet_value_string_checked(text, strlen(text), &v, err);
        if (st != STET_OK) {
            stet_fail_in(err, "%s", key);
            return st;
        }
    }
    stet_value_put(object, key, v);
    return STET_OK;
}

static stet_queue_status status_of(stet_value entry) {
    stet_value v = stet_value_get(entry, "status");
    stet_queue_status s = STET_QUEUED_PENDING;
    stet_queue_status_of_name(stet_value_as_string(&v, NULL), &s); /* checked when it was read */
    return s;
}

static stet_status check_entry(const char *path, size_t index, stet_value entry, stet_error *err) {
    stet_value id = stet_value_get(entry, "id"), status = stet_value_get(entry, "status"),
               at = stet_value_get(entry, "enqueuedAt");
    stet_queue_status s;
    int64_t ms;
    if (stet_value_type(id) != STET_TYPE_STRING || stet_value_type(status) != STET_TYPE_STRING ||
        stet_value_type(at) != STET_TYPE_STRING ||
        !stet_queue_status_of_name(stet_value_as_string(&status, NULL), &s) || !time_of(entry, "enqueuedAt", &ms) ||
        stet_value_type(stet_value_get(entry, "priority")) != STET_TYPE_INT ||
        stet_value_type(stet_value_get(entry, "attempts")) != STET_TYPE_INT) {
        stet_status st = stet_fail(err, STET_CORRUPT, "%s: entries[%zu] is not one", path, index);
        stet_hint(err, "mend that entry by hand, or move the file away");
        return st;
    }
    return STET_OK;
}

static char *queue_path(const stet_queue *q, const char *name) {
    return stet_asprintf("%s/registry/%s", q->home, name);
}

static stet_status load(const stet_queue *q, stet_value *entries, stet_error *err) {
    char *path = queue_path(q, "queue.json");
    stet_value all = stet_value_null(), list;
    stet_status st = stet_derived_load(path, QUEUE_MAX_BYTES, STET_QUEUE_SCHEMA, &all, err);
    if (st == STET_OK && stet_value_type(all) == STET_TYPE_NULL)
        *entries = stet_value_array();
    else if (st == STET_OK) {
        list = stet_value_get(all, "entries");
        if (stet_value_type(list) != STET_TYPE_ARRAY)
            st = stet_fail(err, STET_CORRUPT, "%s: entries is not an array", path);
        for (size_t i = 0; st == STET_OK && i < stet_value_count(list); i++)
            st = check_entry(path, i, stet_value_at(list, i), err);
        if (st == STET_OK)
            *entries = stet_value_retain(list);
        stet_value_release(all);
    }
    stet_free(path);
    return st;
}

static int compare(stet_value a, stet_value b) {
    int64_t x = stet_value_as_int(stet_value_get(a, "priority")), y = stet_value_as_int(stet_value_get(b, "priority"));
    if (x != y)
        return x < y ? -1 : 1;
    time_of(a, "enqueuedAt", &x);
    time_of(b, "enqueuedAt", &y);
    if (x != y)
        return x < y ? -1 : 1;
    return stet_value_compare(stet_value_get(a, "id"), stet_value_get(b, "id"));
}

/* Puts an entry where the order wants it. The list is sorted; whoever mended it by hand may have changed that, which
 * the next insertion does not make worse. Consumes `entry`. */
static void insert(stet_value *entries, stet_value entry) {
    size_t low = 0, high = stet_value_count(*entries);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(stet_value_at(*entries, middle), entry) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    stet_value_insert_at(entries, low, entry);
}

/* The numbers of the entries in the order in which they are taken: that of the file, or with the newest of each priority
 * first. The caller frees it. */
static size_t *order_of(const stet_queue *q, stet_value entries) {
    size_t n = stet_value_count(entries), *order = stet_alloc((n + 1) * sizeof *order);
    for (size_t from = 0, to; from < n; from = to) {
        stet_value priority = stet_value_get(stet_value_at(entries, from), "priority");
        for (to = from + 1;
             to < n && stet_value_equal(stet_value_get(stet_value_at(entries, to), "priority"), priority);)
            to++;
        for (size_t i = from; i < to; i++)
            order[i] = q->newest_first ? from + (to - 1 - i) : i;
    }
    return order;
}

typedef struct txn {
    const stet_queue *q;
    stet_lock *lock;
    stet_value entries;
} txn;

static stet_status begin(const stet_queue *q, txn *t, stet_error *err) {
    *t = (txn){.q = q};
    char *path = queue_path(q, "queue.lock");
    stet_status st = stet_repos_make_home(q->home, err);
    if (st == STET_OK)
        st = stet_lock_open(path, STET_LOCK_PLAIN, &t->lock, err);
    if (st == STET_OK)
        st = stet_lock_take(t->lock, STET_LOCK_EXCLUSIVE, q->lock_timeout_ms > 0 ? q->lock_timeout_ms : LOCK_WAIT_MS,
                            err);
    if (st == STET_OK)
        st = load(q, &t->entries, err);
    if (st != STET_OK) {
        stet_lock_close(t->lock);
        t->lock = NULL;
    }
    stet_free(path);
    return st;
}

/* Writes if `st` is OK, and gives the lock back either way. */
static stet_status end(txn *t, stet_status st, stet_error *err) {
    if (st == STET_OK) {
        stet_value all = stet_value_object();
        char *path = queue_path(t->q, "queue.json");
        stet_value_put(&all, "schemaVersion", stet_value_int(STET_QUEUE_SCHEMA));
        stet_value_put(&all, "entries", stet_value_retain(t->entries));
        st = stet_derived_store(path, QUEUE_MAX_BYTES, all, err);
        stet_value_release(all);
        stet_free(path);
    }
    stet_value_release(t->entries);
    stet_lock_close(t->lock);
    return st;
}

/* The same, and hands over the changed entry. */
static stet_status end_with(txn *t, stet_status st, stet_value e, stet_value *entry, stet_error *err) {
    st = end(t, st, err);
    if (st == STET_OK)
        *entry = e;
    else
        stet_value_release(e);
    return st;
}

static void abandon(txn *t) {
    stet_value_release(t->entries);
    stet_lock_close(t->lock);
}

static stet_status find(stet_value entries, const char *id, size_t *index, stet_error *err) {
    size_t hits = 0, len = strlen(id);
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value v = stet_value_get(stet_value_at(entries, i), "id");
        const char *s = stet_value_as_string(&v, NULL);
        if (strcmp(s, id) == 0) {
            *index = i;
            return STET_OK;
        }
        size_t whole = strlen(s);
        if ((len >= PREFIX_MIN && strncmp(s, id, len) == 0) ||
            (len >= ENDING_MIN && len < whole && strcmp(s + whole - len, id) == 0)) {
            *index = i;
            hits++;
        }
    }
    if (hits == 1)
        return STET_OK;
    stet_status st = hits > 1
                         ? stet_fail(err, STET_CONFLICT, "%zu entries of the queue begin or end with %.80s", hits, id)
                         : stet_fail(err, STET_NOT_FOUND, "there is no entry %.80s in the queue", id);
    stet_hint(err, "stet queue list shows them");
    return st;
}

/* Changes one entry in place: out of the list, so that nothing is copied. */
static stet_value take(txn *t, size_t index) {
    stet_value entry = stet_value_retain(stet_value_at(t->entries, index));
    stet_value_put_at(&t->entries, index, stet_value_null());
    stet_value_put(&entry, "updatedAt", stet_time_value(stet_clock_ms()));
    return entry;
}

static void set_status(stet_value *entry, stet_queue_status s) {
    stet_value_put(entry, "status", stet_value_string(stet_queue_status_name(s)));
    if (s != STET_QUEUED_LEASED)
        stet_value_put(entry, "lease", stet_value_null());
    if (s == STET_QUEUED_DONE || s == STET_QUEUED_FAILED || s == STET_QUEUED_CANCELLED || s == STET_QUEUED_PARKED)
        stet_value_put(entry, "endedAt", stet_time_value(stet_clock_ms()));
    else
        stet_value_put(entry, "endedAt", stet_value_null());
}

stet_status stet_queue_list(const stet_queue *q, const char *repo, const char *status, stet_value *out,
                            stet_error *err) {
    stet_value entries;
    stet_status st = load(q, &entries, err);
    if (st != STET_OK)
        return st;
    stet_value picked = stet_value_array();
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value e = stet_value_at(entries, i);
        if ((repo == NULL || stet_value_text_is(stet_value_get(e, "repo"), repo)) &&
            (status == NULL || stet_value_text_is(stet_value_get(e, "status"), status)))
            insert(&picked, stet_value_retain(e));
    }
    stet_value_release(entries);
    size_t *order = order_of(q, picked);
    *out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(picked); i++)
        stet_value_push(out, stet_value_retain(stet_value_at(picked, order[i])));
    stet_free(order);
    stet_value_release(picked);
    return STET_OK;
}

stet_status stet_queue_show(const stet_queue *q, const char *id, stet_value *out, stet_error *err) {
    stet_value entries;
    size_t index;
    stet_status st = load(q, &entries, err);
    if (st != STET_OK)
        return st;
    st = find(entries, id, &index, err);
    if (st == STET_OK)
        *out = stet_value_retain(stet_value_at(entries, index));
    stet_value_release(entries);
    return st;
}

static stet_value new_id(int64_t now) {
    uint8_t random[5];
    char hex[11];
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    stet_random(random, sizeof random);
    stet_hex_encode(random, sizeof random, hex);
    gmtime_r(&seconds, &tm);
    return stet_value_stringf("q%04d%02d%02dT%02d%02d%02dZ-%s", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday,
                              tm.tm_hour, tm.tm_min, tm.tm_sec, hex);
}

static bool empty(const char *s) {
    return s == NULL || *s == 0;
}

stet_status stet_queue_add(const stet_queue *q, const stet_queue_spec *spec, stet_value *entry, stet_error *err) {
    if (empty(spec->app) && empty(spec->workflow) && empty(spec->run_id)) {
        stet_status st = stet_fail(err, STET_INVALID, "the entry names nothing to run");
        stet_hint(err, "give --app, --workflow or --run-id");
        return st;
    }
    if (empty(spec->repo))
        return stet_fail(err, STET_INVALID, "the entry names no project to run in");
    if (!empty(spec->run_id) && !stet_run_id_valid(spec->run_id, strlen(spec->run_id)))
        return stet_fail(err, STET_INVALID, "\"%.100s\" is no run id", spec->run_id);
    stet_value e = stet_value_object();
    int64_t now = stet_clock_ms(), most = spec->max_attempts > 0 ? spec->max_attempts : STET_QUEUE_MAX_ATTEMPTS;
    stet_value_put(&e, "schemaVersion", stet_value_int(STET_QUEUE_SCHEMA));
    stet_value_put(&e, "id", new_id(now));
    stet_value_put(&e, "priority", stet_value_int(spec->priority));
    stet_value_put(&e, "enqueuedAt", stet_time_value(now));
    stet_value_put(&e, "updatedAt", stet_time_value(now));
    stet_value_put(&e, "attempts", stet_value_int(0));
    stet_value_put(&e, "maxAttempts", stet_value_int(most));
    stet_value_put(&e, "notBefore", stet_value_null());
    stet_value_put(&e, "inputs",
                   stet_value_type(spec->inputs) == STET_TYPE_OBJECT ? stet_value_retain(spec->inputs)
                                                                     : stet_value_null());
    stet_value_put(&e, "lastError", stet_value_null());
    set_status(&e, STET_QUEUED_PENDING);
    stet_status st = text_member(&e, "app", empty(spec->app) ? NULL : spec->app, err);
    if (st == STET_OK)
        st = text_member(&e, "workflow", empty(spec->workflow) ? NULL : spec->workflow, err);
    if (st == STET_OK)
        st = text_member(&e, "runId", empty(spec->run_id) ? NULL : spec->run_id, err);
    if (st == STET_OK)
        st = text_member(&e, "repo", spec->repo, err);
    if (st == STET_OK)
        st = text_member(&e, "note", spec->note, err);
    txn t;
    if (st == STET_OK)
        st = begin(q, &t, err);
    if (st != STET_OK) {
        stet_value_release(e);
        return st;
    }
    if (stet_value_count(t.entries) >= STET_QUEUE_ENTRIES_MAX)
        st = stet_fail(err, STET_LIMIT, "the queue has %d entries, which is the most", STET_QUEUE_ENTRIES_MAX);
    else
        insert(&t.entries, stet_value_retain(e));
    return end_with(&t, st, e, entry, err);
}

static bool ready(stet_value e, const char *repo, int64_t now, int64_t *ready_at) {
    int64_t at;
    if (status_of(e) != STET_QUEUED_PENDING || (repo != NULL && !stet_value_text_is(stet_value_get(e, "repo"), repo)))
        return false;
    if (!time_of(e, "notBefore", &at) || at <= now)
        return true;
    if (*ready_at == 0 || at < *ready_at)
        *ready_at = at;
    return false;
}

stet_status stet_queue_drain(const stet_queue *q, const char *repo, size_t limit, stet_value *drained,
                             size_t *remaining, stet_error *err) {
    txn t;
    stet_status st = begin(q, &t, err);
    if (st != STET_OK)
        return st;
    stet_value out = stet_value_array();
    int64_t now = stet_clock_ms(), ignored = 0;
    size_t left = 0, *order = order_of(q, t.entries);
    for (size_t k = 0; k < stet_value_count(t.entries); k++) {
        size_t i = order[k];
        stet_value e = stet_value_at(t.entries, i);
        if (status_of(e) != STET_QUEUED_PENDING ||
            (repo != NULL && !stet_value_text_is(stet_value_get(e, "repo"), repo)))
            continue;
        if (!ready(e, repo, now, &ignored) || stet_value_count(out) >= limit) {
            left++;
            continue;
        }
        stet_value entry = take(&t, i);
        set_status(&entry, STET_QUEUED_DRAINED);
        stet_value_put(&entry, "attempts", stet_value_int(stet_value_as_int(stet_value_get(entry, "attempts")) + 1));
        stet_value_push(&out, stet_value_retain(entry));
        stet_value_put_at(&t.entries, i, entry);
    }
    stet_free(order);
    if (stet_value_count(out) == 0)
        abandon(&t);
    else
        st = end(&t, STET_OK, err);
    if (st == STET_OK) {
        *drained = out;
        *remaining = left;
    } else
        stet_value_release(out);
    return st;
}

stet_status stet_queue_change(const stet_queue *q, const char *id, stet_queue_move move, int64_t priority,
                              const char *note, stet_value *entry, stet_error *err) {
    static const char *const words[] = {"cancel", "requeue", "mark as done", "mark as failed", "move"};
    txn t;
    size_t index;
    stet_status st = begin(q, &t, err);
    if (st != STET_OK)
        return st;
    st = find(t.entries, id, &index, err);
    if (st != STET_OK) {
        abandon(&t);
        return st;
    }
    stet_queue_status from = status_of(stet_value_at(t.entries, index)), to;
    if (!stet_queue_allowed(from, move, &to)) {
        abandon(&t);
        return stet_fail(err, STET_CONFLICT, "entry %.80s is %s: there is nothing to %s", id,
                         stet_queue_status_name(from), words[move]);
    }
    stet_value e = take(&t, index);
    if (move == STET_QUEUE_PRIORITY)
        stet_value_put(&e, "priority", stet_value_int(priority));
    else
        set_status(&e, to);
    if (move == STET_QUEUE_REQUEUE) {
        stet_value_put(&e, "attempts", stet_value_int(0));
        stet_value_put(&e, "notBefore", stet_value_null());
        stet_value_put(&e, "lastError", stet_value_null());
    }
    if (note != NULL)
        st = text_member(&e, "note", note, err);
    stet_value_remove_at(&t.entries, index);
    insert(&t.entries, stet_value_retain(e));
    return end_with(&t, st, e, entry, err);
}

static bool lease_ended(stet_value lease, int64_t now) {
    stet_proc_id holder;
    int64_t until;
    char host[65] = "";
    if (!time_of(lease, "expiresAt", &until) || until <= now)
        return true;
    if (gethostname(host, sizeof host) != 0 || !stet_value_text_is(stet_value_get(lease, "host"), host) ||
        !stet_proc_id_of_value(stet_value_get(lease, "process"), &holder))
        return false; /* a lease of another machine: only its time can tell */
    return !stet_proc_alive(holder);
}

/* An expired lease: its entry is pending again, or parked after too many attempts. */
static void lapse(txn *t, size_t index) {
    stet_value e = take(t, index);
    bool last = stet_value_as_int(stet_value_get(e, "attempts")) >= stet_value_as_int(stet_value_get(e, "maxAttempts"));
    stet_value_put(&e, "lastError", stet_value_string("its worker went away without a word"));
    set_status(&e, last ? STET_QUEUED_PARKED : STET_QUEUED_PENDING);
    stet_value_put_at(&t->entries, index, e);
}

/* Do two entries run the same thing? Then one waits for the other: they would write the same files. Entries may also
 * name one piece in different ways, which only their driver finds out (STET_DRIVE_WAITING). */
static bool same_target(stet_value a, stet_value b) {
    static const char *const keys[] = {"repo", "app", "workflow"};
    bool named = stet_value_type(stet_value_get(a, "app")) == STET_TYPE_STRING ||
                 stet_value_type(stet_value_get(a, "workflow")) == STET_TYPE_STRING;
    if (!named)
        return stet_value_equal(stet_value_get(a, "repo"), stet_value_get(b, "repo")) &&
               stet_value_equal(stet_value_get(a, "runId"), stet_value_get(b, "runId"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!stet_value_equal(stet_value_get(a, keys[i]), stet_value_get(b, keys[i])))
            return false;
    return true;
}

static bool waits(stet_value entries, stet_value e) {
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value other = stet_value_at(entries, i);
        if (status_of(other) == STET_QUEUED_LEASED && same_target(e, other))
            return true;
    }
    return false;
}

static stet_value new_lease(const char *token, int64_t now, int64_t lease_ms) {
    char host[65] = "";
    stet_value lease = stet_value_object();
    if (gethostname(host, sizeof host) != 0)
        host[0] = 0;
    stet_value_put(&lease, "token", stet_value_string(token));
    stet_value_put(&lease, "process", stet_proc_id_value(stet_proc_self()));
    stet_value_put(&lease, "host", stet_value_string(host));
    stet_value_put(&lease, "leasedAt", stet_time_value(now));
    stet_value_put(&lease, "expiresAt", stet_time_value(now + lease_ms));
    return lease;
}

stet_status stet_queue_lease(const stet_queue *q, const char *repo, int64_t lease_ms, char token[STET_QUEUE_TOKEN],
                             stet_value *entry, int64_t *ready_at, stet_error *err) {
    return stet_queue_lease_but(q, repo, lease_ms, NULL, NULL, token, entry, ready_at, err);
}

stet_status stet_queue_lease_but(const stet_queue *q, const char *repo, int64_t lease_ms,
                                 bool (*but)(void *ctx, const char *id), void *ctx, char token[STET_QUEUE_TOKEN],
                                 stet_value *entry, int64_t *ready_at, stet_error *err) {
    txn t;
    stet_status st = begin(q, &t, err);
    if (st != STET_OK)
        return st;
    int64_t now = stet_clock_ms(), later = 0;
    size_t n = stet_value_count(t.entries), found = n;
    bool lapsed = false;
    for (size_t i = 0; i < n; i++)
        if (status_of(stet_value_at(t.entries, i)) == STET_QUEUED_LEASED &&
            lease_ended(stet_value_get(stet_value_at(t.entries, i), "lease"), now)) {
            lapse(&t, i);
            lapsed = true;
        }
    size_t *order = order_of(q, t.entries);
    for (size_t k = 0; k < n && found == n; k++) {
        size_t i = order[k];
        stet_value e = stet_value_at(t.entries, i), id = stet_value_get(e, "id");
        if (!ready(e, repo, now, &later))
            continue;
        if ((but == NULL || !but(ctx, stet_value_as_string(&id, NULL))) && !waits(t.entries, e))
            found = i;
        else if (later == 0 || now < later)
            later = now;
    }
    stet_free(order);
    if (ready_at != NULL)
        *ready_at = found < n ? 0 : later;
    if (found == n) {
        if (lapsed)
            st = end(&t, STET_OK, err);
        else
            abandon(&t);
        return st != STET_OK ? st : stet_fail(err, STET_NOT_FOUND, "nothing in the queue is ready");
    }
    uint8_t random[16];
    stet_random(random, sizeof random);
    stet_hex_encode(random, sizeof random, token);
    stet_value e = take(&t, found);
    set_status(&e, STET_QUEUED_LEASED);
    stet_value_put(&e, "lease", new_lease(token, now, lease_ms));
    stet_value_put(&e, "attempts", stet_value_int(stet_value_as_int(stet_value_get(e, "attempts")) + 1));
    stet_value_put_at(&t.entries, found, stet_value_retain(e));
    st = end(&t, STET_OK, err);
    if (st == STET_OK)
        *entry = e;
    else
        stet_value_release(e);
    return st;
}

/* The entry whose lease has this token, under a begun transaction, which is abandoned on failure. */
static stet_status find_leased(txn *t, const char *id, const char *token, size_t *index, stet_error *err) {
    stet_status st = find(t->entries, id, index, err);
    if (st == STET_OK) {
        stet_value e = stet_value_at(t->entries, *index);
        if (status_of(e) != STET_QUEUED_LEASED ||
            !stet_value_text_is(stet_value_get(stet_value_get(e, "lease"), "token"), token))
            st = stet_fail(err, STET_CONFLICT, "entry %.80s is no longer leased to this worker", id);
    }
    if (st != STET_OK)
        abandon(t);
    return st;
}

stet_status stet_queue_renew(const stet_queue *q, const char *id, const char *token, int64_t lease_ms,
                             stet_error *err) {
    txn t;
    size_t index;
    stet_status st = begin(q, &t, err);
    if (st != STET_OK || (st = find_leased(&t, id, token, &index, err)) != STET_OK)
        return st;
    stet_value e = take(&t, index), lease = stet_value_retain(stet_value_get(e, "lease"));
    stet_value_put(&lease, "expiresAt", stet_time_value(stet_clock_ms() + lease_ms));
    stet_value_put(&e, "lease", lease);
    stet_value_put_at(&t.entries, index, e);
    return end(&t, STET_OK, err);
}

stet_status stet_queue_begun(const stet_queue *q, const char *id, const char *token, const char *run_id,
                             stet_error *err) {
    txn t;
    size_t index;
    stet_status st = begin(q, &t, err);
    if (st != STET_OK || (st = find_leased(&t, id, token, &index, err)) != STET_OK)
        return st;
    stet_value e = take(&t, index);
    st = text_member(&e, "runId", run_id, err);
    stet_value_put_at(&t.entries, index, e);
    return end(&t, st, err);
}

stet_status stet_queue_settle(const stet_queue *q, const char *id, const char *token, stet_queue_outcome outcome,
                              int64_t retry_ms, const char *run_id, const char *note, stet_value *entry,
                              stet_error *err) {
    static const stet_queue_status to[] = {
        [STET_OUTCOME_DONE] = STET_QUEUED_DONE,      [STET_OUTCOME_FAILED] = STET_QUEUED_FAILED,
        [STET_OUTCOME_PARKED] = STET_QUEUED_PARKED,  [STET_OUTCOME_RETRY] = STET_QUEUED_PENDING,
        [STET_OUTCOME_RETURN] = STET_QUEUED_PENDING,
    };
    txn t;
    size_t index;
    stet_status st = begin(q, &t, err);
    if (st != STET_OK || (st = find_leased(&t, id, token, &index, err)) != STET_OK)
        return st;
    stet_value e = take(&t, index);
    int64_t attempts = stet_value_as_int(stet_value_get(e, "attempts")),
            most = stet_value_as_int(stet_value_get(e, "maxAttempts"));
    stet_queue_status status = to[outcome];
    if (outcome == STET_OUTCOME_RETRY && attempts >= most)
        status = STET_QUEUED_PARKED;
    if (outcome == STET_OUTCOME_RETURN)
        stet_value_put(&e, "attempts", stet_value_int(attempts - 1));
    if (outcome == STET_OUTCOME_RETRY && status == STET_QUEUED_PENDING) {
        int64_t doubled = attempts < BACKOFF_MAX ? attempts : BACKOFF_MAX;
        stet_value_put(&e, "notBefore", stet_time_value(stet_clock_ms() + (retry_ms << doubled) / 2));
    }
    set_status(&e, status);
    st = text_member(&e, "lastError", outcome == STET_OUTCOME_DONE ? NULL : note, err);
    if (st == STET_OK && !empty(run_id))
        st = text_member(&e, "runId", run_id, err);
    stet_value_put_at(&t.entries, index, stet_value_retain(e));
    return end_with(&t, st, e, entry, err);
}

stet_status stet_queue_prune(const stet_queue *q, int64_t before_ms, bool dry_run, size_t *dropped, stet_error *err) {
    txn t;
    stet_status st;
    if (dry_run) {
        t = (txn){.q = q};
        st = load(q, &t.entries, err);
    } else
        st = begin(q, &t, err);
    if (st != STET_OK)
        return st;
    size_t count = 0;
    for (size_t i = stet_value_count(t.entries); i-- > 0;) {
        stet_value e = stet_value_at(t.entries, i);
        stet_queue_status s = status_of(e);
        int64_t ended;
        /* Failed and parked entries are kept until somebody has looked at them. */
        if ((s != STET_QUEUED_DONE && s != STET_QUEUED_CANCELLED) || !time_of(e, "endedAt", &ended) ||
            ended >= before_ms)
            continue;
        stet_value_remove_at(&t.entries, i);
        count++;
    }
    if (dry_run || count == 0)
        abandon(&t);
    else
        st = end(&t, STET_OK, err);
    if (st == STET_OK)
        *dropped = count;
    return st;
}
