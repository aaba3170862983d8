/* remote.c - remotes: adding, listing, fetching, pushing. */

#include "repo/remote.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "repo/execmap.h"
#include "repo/history.h"
#include "repo/hub_kind.h"
#include "repo/text.h"
#include "repo/travel.h"

enum { NAME_MAX_LEN = 64, URI_MAX = 4096, TRIES = 5 };
#define HEADS   "refs/heads/"
#define REMOTES "refs/remotes/"

static stet_status check_name(const char *name, stet_error *err) {
    size_t len = strlen(name);
    if (len && len <= NAME_MAX_LEN && name[0] != '.' && name[0] != '-' &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len)
        return STET_OK;
    return stet_fail(err, STET_INVALID,
                     "\"%.100s\" is no name of a remote: up to 64 letters, digits and ._-, no dot or hyphen first",
                     name);
}

static stet_status no_such(const char *name, stet_error *err) {
    stet_fail(err, STET_NOT_FOUND, "there is no remote %.100s", name);
    stet_hint(err, "stet remote list shows those there are");
    return STET_NOT_FOUND;
}

static stet_status check_uri(const char *uri, stet_error *err) {
    stet_buf b = STET_BUF(0);
    if (strncmp(uri, "postgres", 8) == 0) /* first: a password in it is not to be printed */
        return stet_hub_check_uri(uri, err);
    const char *wrong = stet_text_uri(uri, strlen(uri), &b);
    stet_buf_release(&b);
    if (wrong || strlen(uri) > URI_MAX)
        return stet_fail(err, STET_INVALID, "%.200s: not a URI: %s", uri, wrong ? wrong : "too long");
    if (strncmp(uri, STET_REMOTE_SCHEME, strlen(STET_REMOTE_SCHEME)) == 0) {
        stet_hub *remote;
        stet_status st = stet_external_open(uri, 0, &remote, err);
        if (st == STET_OK)
            stet_hub_close(remote);
        return st;
    }
    if (strncmp(uri, "file:", 5) == 0)
        return STET_OK;
    stet_fail(err, STET_UNSUPPORTED, "%.200s: no kind of remote that stet knows", uri);
    stet_hint(err, "file:///PATH, postgres://USER@HOST/DATABASE, or %sNAME/... for the program %sNAME",
              STET_REMOTE_SCHEME, STET_REMOTE_PROGRAM);
    return STET_UNSUPPORTED;
}

stet_status stet_remote_add(stet_repo *r, const char *name, const char *uri, stet_error *err) {
    bool begun;
    stet_status st = check_name(name, err);
    if (st == STET_OK)
        st = check_uri(uri, err);
    if (st == STET_OK)
        st = stet_repo_enter(r, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *s = stet_db_stmt(r->db, "INSERT OR IGNORE INTO remote(name, uri, added_ms) VALUES(?, ?, ?)");
    stet_bind_text(s, 1, name, strlen(name));
    stet_bind_text(s, 2, uri, strlen(uri));
    stet_bind_int(s, 3, stet_clock_ms());
    stet_run(s);
    st = stet_db_status(r->db, err);
    if (st == STET_OK && stet_db_changes(r->db) == 0)
        st = stet_fail(err, STET_CONFLICT, "there is a remote %s already", name);
    return stet_repo_leave(r, begun, st, err);
}

stet_status stet_remote_list(stet_repo *r, stet_remote_rows *out, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK || nothing)
        return st;
    stet_stmt *s = stet_db_stmt(r->db, "SELECT name, uri, added_ms FROM remote ORDER BY name");
    while (stet_step(s)) {
        size_t len;
        stet_remote_row row;
        const char *text = stet_column_text(s, 0, &len);
        row.name = stet_strndup(text, len);
        text = stet_column_text(s, 1, &len);
        row.uri = stet_strndup(text, len);
        row.added_ms = stet_column_int(s, 2);
        *stet_vec_add(out) = row;
    }
    return stet_db_status(r->db, err);
}

void stet_remote_rows_release(stet_remote_rows *rows) {
    for (size_t i = 0; i < rows->len; i++) {
        stet_free(rows->at[i].name);
        stet_free(rows->at[i].uri);
    }
    stet_vec_release(rows);
}

static stet_status uri_of(stet_repo *r, const char *name, char **out, stet_error *err) {
    stet_remote_rows rows = {0};
    stet_status st = stet_remote_list(r, &rows, err);
    *out = NULL;
    for (size_t i = 0; i < rows.len && st == STET_OK; i++)
        if (strcmp(rows.at[i].name, name) == 0)
            *out = stet_strdup(rows.at[i].uri);
    stet_remote_rows_release(&rows);
    return st == STET_OK && !*out ? no_such(name, err) : st;
}

stet_status stet_remote_remove(stet_repo *r, const char *name, int64_t *refs, stet_error *err) {
    bool begun;
    char *uri = NULL, *prefix = stet_asprintf(REMOTES "%s/", name);
    stet_refs theirs = {0};
    stet_status st = uri_of(r, name, &uri, err);
    if (st == STET_OK)
        st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK) {
        st = stet_repo_refs(r, prefix, &theirs, err);
        for (size_t i = 0; i < theirs.len && st == STET_OK; i++)
            st = stet_repo_swap(r, &(stet_ref_swap){theirs.at[i].name, &theirs.at[i].target, NULL}, 1, err);
        stet_stmt *s = stet_db_stmt(r->db, "DELETE FROM remote WHERE name = ?");
        stet_bind_text(s, 1, name, strlen(name));
        stet_run(s);
        st = stet_repo_leave(r, begun, st, err);
        if (st == STET_OK && refs)
            *refs += (int64_t)theirs.len;
    }
    stet_refs_release(&theirs);
    stet_free(prefix);
    stet_free(uri);
    return st;
}

static stet_status open_remote(const char *uri, int64_t timeout_ms, unsigned flags, stet_hub **out, stet_error *err) {
    return strncmp(uri, STET_REMOTE_SCHEME, strlen(STET_REMOTE_SCHEME)) == 0
               ? stet_external_open(uri, timeout_ms, out, err)
               : stet_hub_open(uri, flags, out, err);
}

static void add_change(stet_remote_report *report, const char *name, const stet_hash *before, const stet_hash *after) {
    stet_remote_change c = {.name = stet_strdup(name), .had = before != NULL, .has = after != NULL};
    if (before)
        c.before = *before;
    if (after)
        c.after = *after;
    c.kind = !before ? "new" : !after ? "gone" : stet_hash_equal(*before, *after) ? "same" : "moved";
    *stet_vec_add(report) = c;
}

static void clear_report(stet_remote_report *report) {
    for (size_t i = 0; i < report->len; i++)
        stet_free(report->at[i].name);
    stet_vec_clear(report);
    report->objects = report->bytes = report->pins = 0;
}

void stet_remote_report_release(stet_remote_report *report) {
    clear_report(report);
    stet_vec_release(report);
}

/* Swaps for what a report says is to change. Names and ids are the report's. */
typedef STET_VEC(stet_ref_swap) swaps;

static void add_swaps(const stet_remote_report *report, swaps *out) {
    for (size_t i = 0; i < report->len; i++) {
        const stet_remote_change *c = &report->at[i];
        if (strcmp(c->kind, "same") != 0)
            *stet_vec_add(out) = (stet_ref_swap){c->name, c->had ? &c->before : NULL, c->has ? &c->after : NULL};
    }
}

/* What becomes of each refs/remotes/NAME/X, by what the remote's heads are. Both lists are sorted. */
static void compare(const char *name, const stet_refs *theirs, const stet_refs *ours, stet_remote_report *report) {
    size_t i = 0, j = 0, skip = strlen(REMOTES) + strlen(name) + 1;
    while (i < theirs->len || j < ours->len) {
        const char *a = i < theirs->len ? theirs->at[i].name + strlen(HEADS) : NULL;
        const char *b = j < ours->len ? ours->at[j].name + skip : NULL;
        int order = !a ? 1 : !b ? -1 : strcmp(a, b);
        char *full = stet_asprintf(REMOTES "%s/%s", name, order <= 0 ? a : b);
        add_change(report, full, order >= 0 ? &ours->at[j].target : NULL, order <= 0 ? &theirs->at[i].target : NULL);
        stet_free(full);
        i += order <= 0;
        j += order >= 0;
    }
}

static stet_status fetch_once(stet_repo *r, stet_hub *remote, const char *name, const stet_remote_opts *o,
                              stet_remote_report *report, stet_error *err) {
    stet_refs theirs = {0}, ours = {0};
    stet_hashes roots = {0};
    swaps list = {0};
    stet_copy_report copied = {0};
    char *prefix = stet_asprintf(REMOTES "%s/", name);
    stet_status st = remote->kind->refs(remote, HEADS, &theirs, err);
    if (st == STET_OK)
        st = stet_repo_refs(r, prefix, &ours, err);
    if (st == STET_OK) {
        compare(name, &theirs, &ours, report);
        add_swaps(report, &list);
        for (size_t i = 0; i < theirs.len; i++)
            *stet_vec_add(&roots) = theirs.at[i].target;
        stet_side here = stet_side_of_repo(r);
        stet_transfer_opts t = {.roots = roots.at,
                                .root_count = roots.len,
                                .swaps = list.at,
                                .swap_count = list.len,
                                .whole = o->whole,
                                .aside = r,
                                .cancelled = o->cancelled,
                                .progress = o->progress,
                                .ctx = o->ctx};
        st = stet_transfer(&remote->side, &here, &t, &copied, err);
        report->objects = copied.objects;
        report->bytes = copied.bytes;
    }
    if (st == STET_OK && o->pins)
        st = stet_travel_fetch(r, remote, o, report, err);
    stet_free(prefix);
    stet_refs_release(&theirs);
    stet_refs_release(&ours);
    stet_vec_release(&roots);
    stet_vec_release(&list);
    return st;
}

/* Where only two fetches got in each other's way, the second looks again. */
static stet_status again(stet_status st, int *tries, stet_error *err) {
    if (st != STET_CONFLICT || ++*tries >= TRIES)
        return st;
    stet_error_clear(err);
    return STET_OK;
}

stet_status stet_remote_fetch(stet_repo *r, const char *name, const stet_remote_opts *opts, stet_remote_report *report,
                              stet_error *err) {
    stet_hub *remote;
    char *uri;
    stet_error why = STET_ERROR_INIT;
    stet_status st = uri_of(r, name, &uri, err);
    if (st != STET_OK)
        return st;
    st = open_remote(uri, opts->timeout_ms, STET_REPO_READ_ONLY | STET_REPO_MUST_EXIST, &remote, err);
    stet_free(uri);
    if (st != STET_OK)
        return st;
    for (int tries = 0;;) {
        clear_report(report);
        /* One snapshot of a repository in a file: nothing is swept from under the transfer. */
        st = remote->repo ? stet_repo_begin_read(remote->repo, &why) : STET_OK;
        if (st == STET_OK)
            st = fetch_once(r, remote, name, opts, report, &why);
        if (remote->repo && stet_repo_in_transaction(remote->repo))
            stet_repo_rollback(remote->repo);
        if (st == STET_OK || again(st, &tries, &why) != STET_OK)
            break;
    }
    stet_hub_close(remote);
    if (st != STET_OK) {
        stet_error_move(err, &why);
        stet_fail_in(err, "remote %s", name);
    }
    return st;
}

static const stet_hash *find_ref(const stet_refs *refs, const char *name) {
    for (size_t i = 0; i < refs->len; i++)
        if (strcmp(refs->at[i].name, name) == 0)
            return &refs->at[i].target;
    return NULL;
}

static stet_status wanted_heads(stet_repo *r, const char *const *heads, size_t count, stet_refs *out, stet_error *err) {
    if (count == 0)
        return stet_repo_refs(r, HEADS, out, err);
    for (size_t i = 0; i < count; i++) {
        bool there;
        stet_ref ref;
        ref.name = stet_asprintf(HEADS "%s", heads[i]);
        stet_status st = stet_repo_ref(r, ref.name, &there, &ref.target, err);
        if (st == STET_OK && !there)
            st = stet_fail(err, STET_NOT_FOUND, "there is no head %.200s", heads[i]);
        if (st != STET_OK || find_ref(out, ref.name)) {
            stet_free(ref.name);
            if (st != STET_OK)
                return st;
            continue;
        }
        *stet_vec_add(out) = ref;
    }
    return STET_OK;
}

static stet_status check_forward(stet_repo *r, const char *name, const stet_hash *before, stet_hash after,
                                 stet_error *err) {
    bool forward = true;
    if (!before)
        return STET_OK;
    stet_status st = stet_repo_is_ancestor(r, *before, after, &forward, err);
    if (st == STET_OK && !forward) {
        stet_fail(err, STET_CONFLICT, "%s is at %s there, which is not in the history of %s here: not a fast-forward",
                  name, stet_short(*before).text, stet_short(after).text);
        stet_hint(err, "fetch, and build on what is there");
        stet_detail(err, "ref", stet_value_string(name));
        st = STET_CONFLICT;
    }
    return st;
}

/* What this repository knows of the remote's heads, after a push. */
static stet_status note_pushed(stet_repo *r, const char *name, const stet_refs *heads, stet_error *err) {
    bool begun;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st != STET_OK)
        return st;
    for (size_t i = 0; i < heads->len && st == STET_OK; i++) {
        bool there;
        stet_hash now;
        char *full = stet_asprintf(REMOTES "%s/%s", name, heads->at[i].name + strlen(HEADS));
        st = stet_repo_ref(r, full, &there, &now, err);
        if (st == STET_OK)
            st = stet_repo_swap(r, &(stet_ref_swap){full, there ? &now : NULL, &heads->at[i].target}, 1, err);
        stet_free(full);
    }
    return stet_repo_leave(r, begun, st, err);
}

static stet_status push_once(stet_repo *r, stet_hub *remote, const stet_refs *heads, const stet_remote_opts *o,
                             stet_remote_report *report, stet_error *err) {
    stet_refs theirs = {0};
    stet_hashes roots = {0};
    swaps list = {0};
    stet_copy_report copied = {0};
    stet_status st = remote->kind->refs(remote, HEADS, &theirs, err);
    for (size_t i = 0; i < heads->len && st == STET_OK; i++) {
        const stet_hash *before = find_ref(&theirs, heads->at[i].name);
        st = check_forward(r, heads->at[i].name, before, heads->at[i].target, err);
        add_change(report, heads->at[i].name, before, &heads->at[i].target);
        *stet_vec_add(&roots) = heads->at[i].target;
    }
    if (st == STET_OK) {
        add_swaps(report, &list);
        stet_side here = stet_side_of_repo(r);
        stet_transfer_opts t = {.roots = roots.at,
                                .root_count = list.len ? roots.len : 0,
                                .swaps = list.at,
                                .swap_count = list.len,
                                .cancelled = o->cancelled,
                                .progress = o->progress,
                                .ctx = o->ctx};
        st = stet_transfer(&here, &remote->side, &t, &copied, err);
        report->objects = copied.objects;
        report->bytes = copied.bytes;
    }
    stet_refs_release(&theirs);
    stet_vec_release(&roots);
    stet_vec_release(&list);
    return st;
}

/* Heads are there already. The index of the remote changes whenever somebody pins a call there: then compare again. */
static stet_status push_pins(stet_repo *r, stet_hub *remote, const stet_remote_opts *o, stet_remote_report *report,
                             stet_error *err) {
    for (int tries = 0;;) {
        stet_status st = stet_repo_begin_read(r, err);
        if (st != STET_OK)
            return st;
        st = stet_travel_push(r, remote, o, report, err);
        stet_repo_rollback(r);
        if (st == STET_NOT_FOUND) /* a record of the old index went with it */
            st = STET_CONFLICT;
        if (st == STET_OK || again(st, &tries, err) != STET_OK)
            return st;
    }
}

stet_status stet_remote_push(stet_repo *r, const char *name, const char *const *heads, size_t count,
                             const stet_remote_opts *opts, stet_remote_report *report, stet_error *err) {
    stet_hub *remote;
    stet_refs ours = {0};
    char *uri;
    stet_error why = STET_ERROR_INIT;
    stet_status st = uri_of(r, name, &uri, err);
    if (st != STET_OK)
        return st;
    st = wanted_heads(r, heads, count, &ours, err);
    if (st == STET_OK)
        st = open_remote(uri, opts->timeout_ms, 0, &remote, err);
    stet_free(uri);
    if (st != STET_OK) {
        stet_refs_release(&ours);
        return st;
    }
    clear_report(report);
    st = stet_repo_begin_read(r, &why);
    if (st == STET_OK) {
        st = push_once(r, remote, &ours, opts, report, &why);
        stet_repo_rollback(r);
    }
    if (st == STET_OK && opts->pins)
        st = push_pins(r, remote, opts, report, &why);
    stet_hub_close(remote);
    if (st == STET_OK)
        st = note_pushed(r, name, &ours, &why);
    stet_refs_release(&ours);
    if (st != STET_OK) {
        stet_error_move(err, &why);
        stet_fail_in(err, "remote %s", name);
    }
    return st;
}
