/* report.c - finds runs in a loaded registry, and makes the values that every surface shows. */

#include <string.h>

#include "base/text.h"
#include "fleet/registry.h"
#include "os/file.h"

#define PREFIX_MIN 6
#define ENDING_MIN 4
#define NAMES_MAX  20

const stet_registry_repo *stet_registry_repo_of(const stet_registry *reg, const char *root) {
    size_t low = 0, high = reg->repos.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(reg->repos.at[middle].root, root);
        if (order == 0)
            return &reg->repos.at[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

typedef enum match { WHOLE, BEGINNING, ENDING } match;

typedef struct search {
    const char *id, *repo;
    size_t len;
    match how;
} search;

static bool named(const search *s, const char *id, const char *repo) {
    if (s->repo != NULL && strcmp(s->repo, repo) != 0)
        return false;
    size_t len = strlen(id);
    if (s->how == BEGINNING)
        return strncmp(id, s->id, s->len) == 0;
    return s->how == WHOLE ? strcmp(id, s->id) == 0 : len >= s->len && strcmp(id + len - s->len, s->id) == 0;
}

static stet_status ambiguous(const search *s, const stet_fleet_records *hits, stet_error *err) {
    stet_value runs = stet_value_array();
    for (size_t i = 0; i < hits->len && i < NAMES_MAX; i++) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "runId", stet_value_string(hits->at[i]->id));
        stet_value_put(&v, "repo", stet_value_string(hits->at[i]->repo));
        stet_value_push(&runs, v);
    }
    stet_status st;
    if (s->how == WHOLE) {
        st = stet_fail(err, STET_CONFLICT, "run %s is in %zu projects: %s and %s%s", s->id, hits->len,
                       hits->at[0]->repo, hits->at[1]->repo, hits->len > 2 ? ", ..." : "");
        stet_hint(err, "say which with --repo PATH");
    } else {
        st = stet_fail(err, STET_CONFLICT, "%zu runs %s with %s: %s and %s%s", hits->len,
                       s->how == BEGINNING ? "begin" : "end", s->id, hits->at[0]->id, hits->at[1]->id,
                       hits->len > 2 ? ", ..." : "");
        stet_hint(err, "give more of the id");
    }
    stet_detail(err, "runs", runs);
    return st;
}

/* STET_NOT_FOUND if there is none; hits of the current project win over others. */
static stet_status pick(const stet_registry *reg, const search *s, const stet_fleet_records *in,
                        const stet_fleet_record **out, stet_error *err) {
    stet_fleet_records hits = {0}, own = {0};
    for (size_t i = 0; i < in->len; i++) {
        stet_fleet_record *r = in->at[i];
        if (!named(s, r->id, r->repo))
            continue;
        *stet_vec_add(&hits) = r;
        if (reg->root != NULL && strcmp(reg->root, r->repo) == 0)
            *stet_vec_add(&own) = r;
    }
    const stet_fleet_records *best = own.len > 0 ? &own : &hits;
    stet_status st = best->len == 0 ? STET_NOT_FOUND : best->len > 1 ? ambiguous(s, best, err) : STET_OK;
    if (st == STET_OK)
        *out = best->at[0];
    stet_vec_release(&hits);
    stet_vec_release(&own);
    return st;
}

static stet_status not_there(const stet_registry *reg, const search *s, const stet_fleet_record **last,
                             stet_error *err) {
    for (size_t i = 0; i < reg->missing.len; i++)
        if (named(s, reg->missing.at[i]->id, reg->missing.at[i]->repo))
            *last = reg->missing.at[i];
    for (size_t i = 0; i < reg->unreadable.len; i++) {
        const stet_unreadable *u = &reg->unreadable.at[i];
        if (!named(s, u->name, u->repo))
            continue;
        stet_status st = stet_fail(err, u->status, "run %s in %s: %s", u->name, u->repo, u->reason);
        stet_detail(err, "repo", stet_value_string(u->repo));
        return st;
    }
    stet_status st =
        stet_fail(err, STET_NOT_FOUND, "there is no run %s%s%s", s->id, s->repo ? " in " : "", s->repo ? s->repo : "");
    stet_hint(err, *last != NULL ? "its state.json is gone: stet registry refresh forgets it"
                                 : "stet runs search finds runs of all known projects");
    return st;
}

/* Is there anything with this name that is not a record: a missing or an unreadable one? */
static bool haunted(const stet_registry *reg, const search *s) {
    for (size_t i = 0; i < reg->missing.len; i++)
        if (named(s, reg->missing.at[i]->id, reg->missing.at[i]->repo))
            return true;
    for (size_t i = 0; i < reg->unreadable.len; i++)
        if (named(s, reg->unreadable.at[i].name, reg->unreadable.at[i].repo))
            return true;
    return false;
}

stet_status stet_registry_find(const stet_registry *reg, const char *id, const char *repo,
                               const stet_fleet_record **out, const char **from, const stet_fleet_record **last,
                               stet_error *err) {
    search s = {.id = id, .repo = repo, .len = strlen(id), .how = WHOLE};
    const stet_fleet_record *none;
    if (last == NULL)
        last = &none;
    *last = NULL;
    if (!stet_run_id_valid(id, s.len))
        return stet_fail(err, STET_INVALID, "\"%.100s\" is no run id (letters, digits, and . _ : -)", id);
    stet_status st = pick(reg, &s, &reg->records, out, err);
    /* An unreadable run with exactly this id is meant, not another one whose id begins or ends with it. */
    static const struct {
        match how;
        size_t least;
    } parts[] = {{BEGINNING, PREFIX_MIN}, {ENDING, ENDING_MIN}};
    for (size_t i = 0; i < 2 && st == STET_NOT_FOUND && !haunted(reg, &s); i++)
        if (s.len >= parts[i].least) {
            s.how = parts[i].how;
            st = pick(reg, &s, &reg->records, out, err);
        }
    if (st == STET_NOT_FOUND)
        return not_there(reg, &s, last, err);
    if (st == STET_OK && from != NULL)
        *from = reg->root != NULL && strcmp(reg->root, (*out)->repo) == 0 ? "repo" : "home";
    return st;
}

static stet_value names_of(const stet_fleet_records *v, size_t max) {
    stet_value out = stet_value_array();
    for (size_t i = 0; i < v->len && (max == 0 || i < max); i++) {
        stet_value item = stet_value_object();
        stet_value_put(&item, "runId", stet_value_string(v->at[i]->id));
        stet_value_put(&item, "repo", stet_value_string(v->at[i]->repo));
        stet_value_push(&out, item);
    }
    return out;
}

stet_value stet_registry_problems_of(const stet_registry *reg, const char *root) {
    stet_value out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(reg->problems); i++) {
        stet_value p = stet_value_at(reg->problems, i), path = stet_value_get(p, "path");
        const char *file = stet_file_basename(stet_value_text(&path, ""));
        if (stet_value_text_is(stet_value_get(p, "repo"), root) && strcmp(file, "index.json") != 0)
            stet_value_push(&out, stet_value_retain(p)); /* an index is derived, and says nothing that matters here */
    }
    return out;
}

stet_value stet_registry_freshness(const stet_registry *reg, size_t max) {
    stet_value v = stet_value_object(), bad = stet_value_array();
    char hex[STET_HASH_HEX];
    stet_value_put(&v, "status", stet_value_string(stet_fleet_index_status_name(reg->status)));
    if (reg->index.present) {
        stet_hash_hex(reg->index.fingerprint, hex);
        stet_value_put(&v, "persistedFingerprint", stet_value_stringf("sha256:%s", hex));
    } else
        stet_value_put(&v, "persistedFingerprint", stet_value_null());
    stet_hash_hex(reg->fingerprint, hex);
    stet_value_put(&v, "currentFingerprint", stet_value_stringf("sha256:%s", hex));
    stet_value_put(&v, "staleRuns", names_of(&reg->stale, max));
    /* Without an index every run is new, so that a list of all of them would say nothing. */
    stet_fleet_records none = {0};
    stet_value_put(&v, "newRuns", names_of(reg->index.present ? &reg->fresh : &none, max));
    stet_value_put(&v, "missingRuns", names_of(&reg->missing, max));
    for (size_t i = 0; i < reg->unreadable.len && (max == 0 || i < max); i++) {
        const stet_unreadable *u = &reg->unreadable.at[i];
        stet_value item = stet_value_object();
        stet_value_put(&item, "runId", stet_value_string(u->name));
        stet_value_put(&item, "repo", stet_value_string(u->repo));
        stet_value_put(&item, "code", stet_value_string(stet_status_name(u->status)));
        stet_value_put(&item, "reason", stet_value_string(u->reason));
        stet_value_push(&bad, item);
    }
    stet_value_put(&v, "unreadableRuns", bad);
    stet_value_put(&v, "staleCount", stet_value_int((int64_t)reg->stale.len));
    stet_value_put(&v, "newCount", stet_value_int((int64_t)reg->fresh.len));
    stet_value_put(&v, "missingCount", stet_value_int((int64_t)reg->missing.len));
    stet_value_put(&v, "unreadableCount", stet_value_int((int64_t)reg->unreadable.len));
    return v;
}

stet_value stet_registry_counts(const stet_registry *reg) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "total", stet_value_int((int64_t)reg->records.len));
    for (int i = 0; i < STET_LIFECYCLES; i++)
        stet_value_put(&v, stet_lifecycle_name((stet_lifecycle)i), stet_value_int((int64_t)reg->counts[i]));
    stet_value_put(&v, "unreadable", stet_value_int((int64_t)reg->unreadable.len));
    return v;
}

stet_value stet_registry_repos(const stet_registry *reg) {
    stet_value v = stet_value_array();
    for (size_t i = 0; i < reg->repos.len; i++)
        stet_value_push(&v, stet_value_string(reg->repos.at[i].root));
    return v;
}

stet_value stet_registry_next_action(const stet_registry *reg) {
    if (reg->status != STET_FLEET_INDEX_VALID)
        return stet_value_stringf("stet registry refresh --scope %s", reg->scope == STET_SCOPE_HOME ? "home" : "repo");
    if (reg->counts[STET_LIFE_INTERRUPTED] > 0)
        return stet_value_string("stet runs search --status interrupted");
    if (reg->counts[STET_LIFE_BLOCKED] > 0)
        return stet_value_string("stet runs search --status blocked");
    if (reg->counts[STET_LIFE_FAILED] > 0)
        return stet_value_string("stet runs search --status failed");
    return stet_value_string("stet runs search");
}

stet_status stet_fleet_record_reread(const stet_fleet_record *r, stet_state *out, stet_error *err) {
    char *dir = stet_fleet_record_dir(r), *path = stet_file_join(dir, "state.json");
    stet_status st = stet_state_read(path, r->id, NULL, out, err);
    stet_free(path);
    stet_free(dir);
    return st;
}
