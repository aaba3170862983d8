/* travel.c - pins that travel between repositories with fetch, push and merge. */

#include "repo/travel.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* Is the result of this exec stored, and does it have a value? */
static bool is_whole(stet_repo *r, stet_hash result) {
    stet_value v = stet_value_null();
    stet_status st = stet_repo_dag_value(r, result, &v, NULL);
    stet_value_release(v);
    return st == STET_OK || st == STET_LIMIT; /* a result that is too large to be one value is a result */
}

/* A success of this node, as far as its record says. */
static bool is_success(stet_repo *r, const stet_pin *pin, stet_hash *result) {
    stet_exec exec;
    if (stet_hash_is_zero(pin->exec) || stet_repo_get_exec(r, pin->exec, &exec, NULL) != STET_OK)
        return false;
    stet_value_release(exec.timings);
    *result = exec.result;
    return exec.ok && stet_hash_equal(exec.node, pin->node);
}

/* T1 and T2. */
static bool may_travel(stet_repo *r, const stet_pin *pin) {
    stet_hash result;
    return is_success(r, pin, &result) && is_whole(r, result);
}

/* The exec map of the index, and whether there is one. */
static stet_status own_map(stet_repo *r, bool *there, stet_hash *map, stet_error *err) {
    stet_hash commit;
    stet_value v;
    stet_status st = stet_repo_ref(r, STET_REPO_INDEX, there, &commit, err);
    if (st != STET_OK || !*there)
        return st;
    st = stet_repo_get(r, commit, STET_RECORD_COMMIT, &v, err);
    if (st == STET_OK) {
        stet_hash_of_text(stet_value_get(v, "execs"), map);
        stet_value_release(v);
    }
    return st;
}

/* Entries of `theirs` that differ from this repository's pins. */
static stet_status differing(stet_repo *r, stet_hash theirs, stet_pins *out, stet_error *err) {
    bool there;
    stet_hash own;
    stet_status st = own_map(r, &there, &own, err);
    if (st == STET_OK)
        st = stet_execmap_diff(r, there ? &own : NULL, &theirs, out, err);
    size_t n = 0;
    for (size_t i = 0; i < out->len; i++)
        if (!stet_hash_is_zero(out->at[i].exec))
            out->at[n++] = out->at[i];
    out->len = n;
    return st;
}

/* Takes over pins whose exec records are stored. A result may rest on another call whose pin comes with it. So all of
 * them are pinned first; those that have no complete result then get their old pin back, until nothing changes. */
static stet_status take(stet_repo *r, stet_pins *pins, int64_t *count, stet_error *err) {
    stet_pins before = {0};
    stet_hash result;
    size_t n = 0;
    stet_status st = STET_OK;
    for (size_t i = 0; i < pins->len && st == STET_OK; i++) {
        stet_pin own = {.node = pins->at[i].node};
        bool there;
        st = stet_repo_pinned(r, own.node, &there, &own.exec, err);
        if (!there)
            own.exec = (stet_hash){{0}};
        if (st != STET_OK || !is_success(r, &pins->at[i], &result) ||
            (there && stet_hash_compare(own.exec, pins->at[i].exec) <= 0 && may_travel(r, &own)))
            continue;
        *stet_vec_add(&before) = own;
        pins->at[n++] = pins->at[i];
    }
    pins->len = n;
    if (st == STET_OK && n)
        st = stet_repo_pin(r, pins->at, n, NULL, err);
    for (bool again = n > 0; again && st == STET_OK;) {
        stet_pins back = {0};
        size_t left = 0;
        for (size_t i = 0; i < pins->len; i++) {
            bool fine = may_travel(r, &pins->at[i]);
            if (!fine)
                *stet_vec_add(&back) = before.at[i];
            pins->at[left] = pins->at[i];
            before.at[left] = before.at[i];
            left += fine;
        }
        pins->len = left;
        again = back.len > 0;
        if (again)
            st = stet_repo_pin(r, back.at, back.len, NULL, err);
        stet_vec_release(&back);
    }
    *count += (int64_t)pins->len;
    stet_vec_release(&before);
    return st;
}

stet_status stet_travel_merge(stet_repo *r, stet_hash theirs, int64_t *count, stet_error *err) {
    stet_pins pins = {0};
    stet_status st = differing(r, theirs, &pins, err);
    if (st == STET_OK)
        st = take(r, &pins, count, err);
    stet_vec_release(&pins);
    return st;
}

/* A remote's index, as far as it has been read. */
typedef struct distant {
    stet_repo *r;
    stet_hub *remote;
    bool there; /* it has an index */
    stet_hash commit, map, tree;
    stet_hashes wanted; /* records of the exec map to be read */
    stet_pack pack;     /* records that were made for the remote */
    stet_remote_report *report;
} distant;

static void forget_borrowed(stet_repo *r) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->borrowed, &i, &key, &len, &slot);) {
        stet_value_release(*(stet_value *)slot->p);
        free(slot->p);
    }
    stet_map_clear(&r->borrowed);
}

static stet_status take_commit(void *ctx, const stet_sent *sent, stet_error *err) {
    distant *d = ctx;
    stet_value v;
    if (sent->lost || !stet_hash_equal(sent->id, d->commit))
        return stet_fail(err, STET_CORRUPT, "%s: its index is not there", d->remote->side.name);
    stet_status st = stet_record_read(sent->id, sent->bytes, sent->len, STET_RECORD_COMMIT, &v, err);
    if (st != STET_OK)
        return st;
    stet_hash_of_text(stet_value_get(v, "execs"), &d->map);
    stet_hash_of_text(stet_value_get(v, "tree"), &d->tree);
    stet_value_release(v);
    *stet_vec_add(&d->wanted) = d->map;
    return STET_OK;
}

static stet_status take_record(void *ctx, const stet_sent *sent, stet_error *err) {
    distant *d = ctx;
    stet_value v, *kept;
    bool added;
    if (sent->lost)
        return stet_fail(err, STET_CORRUPT, "%s: a part of its index is not there", d->remote->side.name);
    stet_status st = stet_record_read(sent->id, sent->bytes, sent->len, STET_RECORD_EXECMAP, &v, err);
    if (st != STET_OK)
        return st;
    stet_slot *slot = stet_map_have(&d->r->borrowed, sent->id.bytes, sizeof sent->id.bytes, (stet_slot){0}, &added);
    if (!added) {
        stet_value_release(v);
        return STET_OK;
    }
    slot->p = kept = stet_alloc(sizeof *kept);
    *kept = v;
    stet_value parts = stet_value_get(v, "parts");
    for (size_t i = 0; i < stet_value_count(parts); i++)
        stet_hash_of_text(stet_value_at(parts, i), stet_vec_add(&d->wanted));
    return STET_OK;
}

/* Reads the index of the remote: its commit, and the records of its exec map that are not stored here. */
static stet_status read_index(distant *d, stet_error *err) {
    stet_refs refs = {0};
    stet_side *side = &d->remote->side;
    stet_status st = d->remote->kind->refs(d->remote, STET_REPO_INDEX, &refs, err);
    for (size_t i = 0; i < refs.len; i++)
        if (strcmp(refs.at[i].name, STET_REPO_INDEX) == 0) {
            d->there = true;
            d->commit = refs.at[i].target;
        }
    stet_refs_release(&refs);
    if (st != STET_OK || !d->there)
        return st;
    st = side->get(side->ctx, &d->commit, 1, take_commit, d, err);
    if (st == STET_OK && d->wanted.len == 0)
        st = stet_fail(err, STET_NOT_FOUND, "%s has no object %s", side->name, stet_hash_print(d->commit).text);
    while (d->wanted.len && st == STET_OK) {
        stet_hash ask[STET_TRANSFER_IDS];
        size_t n = 0;
        while (d->wanted.len && n < STET_TRANSFER_IDS && st == STET_OK) {
            stet_hash id = d->wanted.at[--d->wanted.len];
            bool have = stet_map_get(&d->r->borrowed, id.bytes, sizeof id.bytes) != NULL;
            if (!have)
                st = stet_repo_has(d->r, id, &have, err);
            if (!have)
                ask[n++] = id;
        }
        if (st == STET_OK && n)
            st = side->get(side->ctx, ask, n, take_record, d, err);
    }
    return st;
}

/* Copies the execs of these pins with all that they name. One that is not complete there does not keep the others from
 * coming. */
static stet_status copy_execs(const stet_side *from, const stet_side *to, stet_pins *pins, stet_repo *aside,
                              const stet_remote_opts *o, stet_remote_report *report, stet_error *err) {
    stet_hashes roots = {0};
    stet_error why = STET_ERROR_INIT;
    stet_copy_report copied = {0};
    for (size_t i = 0; i < pins->len; i++)
        *stet_vec_add(&roots) = pins->at[i].exec;
    stet_transfer_opts t = {.roots = roots.at,
                            .root_count = roots.len,
                            .aside = aside,
                            .cancelled = o->cancelled,
                            .progress = o->progress,
                            .ctx = o->ctx};
    stet_status st = stet_transfer(from, to, &t, &copied, &why);
    bool partly = st == STET_NOT_FOUND || st == STET_CORRUPT;
    size_t n = partly ? 0 : pins->len;
    for (size_t i = 0; i < pins->len && partly; i++) {
        stet_copy_report one = {0};
        stet_error_clear(&why);
        t.roots = &roots.at[i];
        t.root_count = 1;
        st = stet_transfer(from, to, &t, &one, &why);
        copied.objects += one.objects;
        copied.bytes += one.bytes;
        if (st == STET_OK)
            pins->at[n++] = pins->at[i];
        partly = st == STET_OK || st == STET_NOT_FOUND || st == STET_CORRUPT;
        if (partly)
            st = STET_OK;
    }
    pins->len = n;
    report->objects += copied.objects;
    report->bytes += copied.bytes;
    if (st == STET_OK)
        stet_error_clear(&why);
    else
        stet_error_move(err, &why);
    stet_vec_release(&roots);
    return st;
}

static void close_distant(distant *d) {
    forget_borrowed(d->r);
    stet_vec_release(&d->wanted);
    stet_pack_release(&d->pack);
}

stet_status stet_travel_fetch(stet_repo *r, stet_hub *remote, const stet_remote_opts *o, stet_remote_report *report,
                              stet_error *err) {
    distant d = {.r = r, .remote = remote, .pack = STET_PACK_INIT, .report = report};
    stet_pins pins = {0};
    bool begun;
    stet_side here = stet_side_of_repo(r);
    stet_status st = read_index(&d, err);
    if (st == STET_OK && d.there)
        st = differing(r, d.map, &pins, err);
    if (st == STET_OK && pins.len)
        st = copy_execs(&remote->side, &here, &pins, r, o, report, err);
    if (st == STET_OK && pins.len)
        st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK && pins.len)
        st = stet_repo_leave(r, begun, take(r, &pins, &report->pins, err), err);
    close_distant(&d);
    stet_vec_release(&pins);
    return st;
}

/* Is the pin that the remote has of this node a success? Its record is read from there. */
typedef struct judged {
    stet_pin pin;
    bool success;
} judged;

static stet_status judge(void *ctx, const stet_sent *sent, stet_error *err) {
    judged *j = ctx;
    stet_value v, status;
    stet_hash node;
    (void)err;
    if (sent->lost || stet_record_read(sent->id, sent->bytes, sent->len, STET_RECORD_EXEC, &v, NULL) != STET_OK)
        return STET_OK;
    status = stet_value_get(v, "status");
    j->success = stet_hash_of_text(stet_value_get(v, "node"), &node) && stet_hash_equal(node, j->pin.node) &&
                 strcmp(stet_value_as_string(&status, NULL), "ok") == 0;
    stet_value_release(v);
    return STET_OK;
}

/* Leaves in `pins`, which are this repository's, those that the remote should have (T1 to T3). */
static stet_status worth_sending(distant *d, stet_pins *pins, stet_error *err) {
    size_t n = 0;
    stet_status st = STET_OK;
    for (size_t i = 0; i < pins->len && st == STET_OK; i++) {
        judged j = {.pin.node = pins->at[i].node};
        bool there = false;
        if (!may_travel(d->r, &pins->at[i]))
            continue;
        if (d->there)
            st = stet_execmap_get(d->r, d->map, j.pin.node, &there, &j.pin.exec, err);
        if (st == STET_OK && there && stet_hash_compare(j.pin.exec, pins->at[i].exec) < 0)
            st = d->remote->side.get(d->remote->side.ctx, &j.pin.exec, 1, judge, &j, err);
        if (!j.success)
            pins->at[n++] = pins->at[i];
    }
    pins->len = n;
    return st;
}

static stet_status send_pack(distant *d, const stet_ref_swap *swap, stet_error *err) {
    d->report->objects += (int64_t)d->pack.count;
    d->report->bytes += (int64_t)d->pack.bytes.len;
    stet_pack_end(&d->pack);
    stet_status st = d->remote->side.put(d->remote->side.ctx, &d->pack, swap, swap ? 1 : 0, err);
    stet_pack_clear(&d->pack);
    return st;
}

static stet_status add_record(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *err) {
    distant *d = ctx;
    stet_pack_object(&d->pack, id, bytes, len);
    return d->pack.bytes.len < STET_TRANSFER_BYTES ? STET_OK : send_pack(d, NULL, err);
}

/* A new index for the remote: its own with these pins. Execs are there already. */
static stet_status swap_index(distant *d, const stet_pins *pins, stet_error *err) {
    stet_record_sink sink = {add_record, d};
    stet_value commit = stet_value_object();
    stet_hash map, id;
    stet_status st = stet_execmap_make(d->r, d->there ? &d->map : NULL, pins->at, pins->len, &sink, &map, err);
    if (st == STET_OK && !d->there) {
        stet_value tree = stet_value_object();
        stet_value_put(&tree, "dags", stet_value_object());
        stet_value_put(&tree, "type", stet_value_string("tree"));
        st = stet_record_make(tree, STET_RECORD_TREE, &sink, &d->tree, err);
        stet_value_release(tree);
    }
    stet_value_put(&commit, "execs", stet_hash_text(map));
    stet_value_put(&commit, "message", stet_value_string(""));
    stet_value_put(&commit, "parents", stet_value_array());
    stet_value_put(&commit, "time", stet_value_int(stet_clock_ms()));
    stet_value_put(&commit, "tree", stet_hash_text(d->tree));
    stet_value_put(&commit, "type", stet_value_string("commit"));
    if (st == STET_OK)
        st = stet_record_make(commit, STET_RECORD_COMMIT, &sink, &id, err);
    stet_value_release(commit);
    return st == STET_OK ? send_pack(d, &(stet_ref_swap){STET_REPO_INDEX, d->there ? &d->commit : NULL, &id}, err) : st;
}

stet_status stet_travel_push(stet_repo *r, stet_hub *remote, const stet_remote_opts *o, stet_remote_report *report,
                             stet_error *err) {
    distant d = {.r = r, .remote = remote, .pack = STET_PACK_INIT, .report = report};
    stet_pins pins = {0};
    bool there;
    stet_hash own;
    stet_side here = stet_side_of_repo(r);
    stet_status st = own_map(r, &there, &own, err);
    if (st != STET_OK || !there)
        return st;
    st = read_index(&d, err);
    if (st == STET_OK)
        st = stet_execmap_diff(r, d.there ? &d.map : NULL, &own, &pins, err);
    if (st == STET_OK)
        st = worth_sending(&d, &pins, err);
    if (st == STET_OK && pins.len)
        st = copy_execs(&here, &remote->side, &pins, NULL, o, report, err);
    if (st == STET_OK && pins.len)
        st = swap_index(&d, &pins, err);
    if (st == STET_OK)
        report->pins += (int64_t)pins.len;
    close_distant(&d);
    stet_vec_release(&pins);
    return st;
}
