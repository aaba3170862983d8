/* runs_common.c - what the operations on runs, registry, history and queue share. */

#include "operation/runs_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fleet/repos.h"
#include "fleet/run.h"
#include "operation/args.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

const char *const stet_runs_scopes[] = {"repo", "home", NULL};
const char *const stet_runs_lifecycles[] = {"queued",   "running",     "blocked",  "completed", "failed",
                                            "archived", "interrupted", "resolved", NULL};

stet_fleet_driver stet_runs_driver(const stet_op_ctx *ctx) {
    return ctx->drive ? ctx->drive : stet_drive_fleet;
}

stet_status stet_runs_page(stet_op_ctx *ctx, stet_value args, bool newest_first, const char *rows,
                           stet_value (*row)(const stet_fleet_record *r), stet_registry **reg, stet_value *out,
                           stet_error *err) {
    enum { NAMED_MAX = 20 }; /* of stale, new, missing and unreadable runs, beside their numbers */
    stet_fleet_query q;
    stet_runs_query_keep keep = {0};
    stet_fleet_page page;
    *reg = NULL;
    stet_status st = stet_runs_query(ctx, args, &q, &keep, err);
    q.newest_first = q.newest_first || newest_first;
    if (st == STET_OK)
        st = stet_runs_load(ctx, args, reg, err);
    if (st == STET_OK)
        st = stet_fleet_query_run(*reg, &q, &page, err);
    stet_free(keep.repo);
    if (st != STET_OK) {
        stet_registry_free(*reg);
        *reg = NULL;
        return st;
    }
    stet_value v = stet_value_object(), list = stet_value_array();
    for (size_t i = 0; i < page.rows.len; i++)
        stet_value_push(&list, row(page.rows.at[i]));
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
    stet_value_put(&v, "scope", stet_value_string((*reg)->scope == STET_SCOPE_HOME ? "home" : "repo"));
    stet_value_put(&v, "freshness", stet_registry_freshness(*reg, NAMED_MAX));
    stet_value_put(&v, "total", stet_value_int((int64_t)page.total));
    stet_value_put(&v, "offset", stet_value_int((int64_t)page.offset));
    stet_value_put(&v, "limit", stet_value_int((int64_t)q.limit));
    stet_value_put(&v, "nextCursor", page.next_cursor ? stet_value_string(page.next_cursor) : stet_value_null());
    stet_value_put(&v, rows, list);
    stet_value_put(&v, "problems", stet_value_retain((*reg)->problems));
    stet_value_put(&v, "nextAction", stet_registry_next_action(*reg));
    stet_fleet_page_release(&page);
    *out = v;
    return STET_OK;
}

stet_value stet_runs_next_step(const stet_fleet_record *r) {
    bool ours = r->piece[0] != 0; /* stet can drive it */
    char *dir = stet_fleet_record_dir(r);
    bool driven = stet_runfile_driver(dir, NULL) == STET_DRIVER_ALIVE;
    stet_free(dir);
    if (r->archived)
        return stet_value_stringf("stet runs archive %s --unarchive", r->id);
    if (driven)
        return stet_value_stringf("stet runs logs %s --follow", r->id);
    if (r->lifecycle == STET_LIFE_RESOLVED)
        return stet_value_stringf("stet runs show %s", r->resolved_by);
    if (r->lifecycle == STET_LIFE_COMPLETED)
        return stet_value_stringf("stet runs logs %s", r->id);
    if (ours)
        return stet_value_stringf("stet runs resume %s --drive", r->id);
    return stet_value_stringf(r->lifecycle == STET_LIFE_FAILED ? "stet runs rerun %s" : "stet runs resume %s", r->id);
}

const char *stet_runs_actor(void) {
    const char *name = getenv("USER");
    if (name == NULL || *name == 0)
        name = getenv("LOGNAME");
    return name != NULL && *name != 0 ? name : "unknown";
}

static bool give_up(void *context) {
    stet_op_ctx *ctx = context;
    return ctx->cancelled(ctx);
}

stet_status stet_runs_options(stet_op_ctx *ctx, stet_value args, stet_registry_opts *out, char **home, char **root,
                              stet_error *err) {
    stet_value scope = stet_value_get(args, "scope");
    const char *text = stet_value_as_string(&scope, NULL);
    stet_project *p = NULL;
    stet_error why = STET_ERROR_INIT;
    *home = *root = NULL;
    stet_status st = stet_home_dir(home, err);
    if (st != STET_OK)
        return st;
    st = ctx->project(ctx, &p, &why);
    if (st == STET_OK)
        *root = stet_strdup(stet_project_root(p));
    else if (st == STET_NOT_FOUND && ctx->project_dir == NULL && (text == NULL || strcmp(text, "home") == 0)) {
        stet_error_clear(&why);
    } else {
        stet_error_move(err, &why);
        stet_free(*home);
        return st;
    }
    *out = (stet_registry_opts){.home = *home,
                                .root = *root,
                                .scope = text != NULL && strcmp(text, "repo") == 0 ? STET_SCOPE_REPO : STET_SCOPE_HOME,
                                .verify = stet_value_as_bool(stet_value_get(args, "verify")),
                                .cancelled = give_up,
                                .context = ctx};
    return STET_OK;
}

stet_status stet_runs_confine(stet_op_ctx *ctx, const char *repo, stet_error *err) {
    stet_project *p = NULL;
    stet_error none = STET_ERROR_INIT;
    bool own = ctx->project(ctx, &p, &none) == STET_OK && strcmp(stet_project_root(p), repo) == 0;
    stet_error_clear(&none);
    if (!ctx->confined || own)
        return STET_OK;
    stet_fail(err, STET_DENIED, "%s is another project, which this server does not change", repo);
    stet_hint(err, "a server that is started with --outside does");
    return STET_DENIED;
}

stet_status stet_runs_load(stet_op_ctx *ctx, stet_value args, stet_registry **out, stet_error *err) {
    stet_registry_opts opts;
    char *home, *root;
    stet_status st = stet_runs_options(ctx, args, &opts, &home, &root, err);
    if (st != STET_OK)
        return st;
    char *also = NULL;
    st = stet_runs_repo(ctx, args, &also, err); /* a project that is named is looked at, whether or not it is listed */
    opts.also = also;
    if (st == STET_OK)
        st = stet_registry_load(&opts, out, err);
    stet_free(also);
    stet_free(home);
    stet_free(root);
    return st;
}

stet_status stet_runs_repo(stet_op_ctx *ctx, stet_value args, char **out, stet_error *err) {
    char *path = stet_op_path_arg(ctx, args, "repo");
    *out = NULL;
    if (path == NULL)
        return STET_OK;
    char *home = NULL;
    stet_project *p = NULL;
    stet_error why = STET_ERROR_INIT;
    stet_value known = stet_value_null();
    stet_status st = stet_project_find(path, &p, &why);
    if (st == STET_OK)
        *out = stet_strdup(stet_project_root(p));
    else if (st == STET_NOT_FOUND && stet_home_dir(&home, NULL) == STET_OK &&
             stet_repos_list(home, &known, NULL) == STET_OK)
        for (size_t i = 0; i < stet_value_count(known) && *out == NULL; i++) {
            stet_value listed = stet_value_get(stet_value_at(known, i), "path");
            if (strcmp(stet_value_as_string(&listed, NULL), path) == 0)
                *out = stet_strdup(path);
        }
    if (*out != NULL) {
        st = STET_OK;
        stet_error_clear(&why);
    } else {
        stet_fail_in(&why, "--repo");
        stet_error_move(err, &why);
    }
    stet_value_release(known);
    stet_free(home);
    stet_free(path);
    stet_project_close(p);
    return st;
}

stet_status stet_runs_find(stet_op_ctx *ctx, stet_value args, const char *key, stet_registry **reg,
                           const stet_fleet_record **out, const char **from, stet_error *err) {
    stet_value keep;
    char *repo;
    const char *id = stet_value_text_at(args, key, &keep);
    stet_status st = stet_runs_repo(ctx, args, &repo, err);
    if (st != STET_OK)
        return st;
    st = stet_runs_load(ctx, args, reg, err);
    if (st == STET_OK) {
        st = stet_registry_find(*reg, id, repo, out, from, NULL, err);
        if (st != STET_OK) {
            stet_registry_free(*reg);
            *reg = NULL;
        }
    }
    stet_free(repo);
    return st;
}

stet_status stet_runs_pick_named(stet_registry *reg, stet_value ids, const char *repo, stet_fleet_records *out,
                                 stet_error *err) {
    for (size_t i = 0; i < stet_value_count(ids); i++) {
        stet_value id = stet_value_at(ids, i);
        const stet_fleet_record *rec;
        stet_status st = stet_registry_find(reg, stet_value_as_string(&id, NULL), repo, &rec, NULL, NULL, err);
        if (st != STET_OK)
            return st;
        for (size_t k = 0; k < reg->records.len; k++)
            if (reg->records.at[k] == rec)
                *stet_vec_add(out) = reg->records.at[k];
    }
    return STET_OK;
}

stet_status stet_runs_query(stet_op_ctx *ctx, stet_value args, stet_fleet_query *q, stet_runs_query_keep *keep,
                            stet_error *err) {
    stet_value statuses = stet_value_get(args, "status"), archived = stet_value_get(args, "include_archived");
    stet_value limit = stet_value_get(args, "limit");
    *keep = (stet_runs_query_keep){.repo = NULL};
    *q = (stet_fleet_query){.app = stet_value_text_at(args, "app", &keep->app),
                            .text = stet_value_text_at(args, "text", &keep->text),
                            .label = stet_value_text_at(args, "label", &keep->label),
                            .cursor = stet_value_text_at(args, "cursor", &keep->cursor),
                            .since_ms = stet_value_as_int(stet_value_get(args, "since")),
                            .until_ms = stet_value_as_int(stet_value_get(args, "until")),
                            .leave_archived =
                                stet_value_type(archived) == STET_TYPE_BOOL && !stet_value_as_bool(archived),
                            .limit = stet_value_type(limit) == STET_TYPE_INT ? (size_t)stet_value_as_int(limit) : 0,
                            .offset = (size_t)stet_value_as_int(stet_value_get(args, "offset"))};
    const char *order = stet_value_text_at(args, "order", &keep->order);
    q->newest_first = order != NULL ? strcmp(order, "newest") == 0 : !ctx->json;
    for (size_t i = 0; i < stet_value_count(statuses); i++) {
        stet_value name = stet_value_at(statuses, i);
        stet_lifecycle l;
        if (stet_lifecycle_of_name(stet_value_as_string(&name, NULL), &l))
            q->statuses |= 1u << l;
    }
    stet_status st = stet_runs_repo(ctx, args, &keep->repo, err);
    q->repo = keep->repo;
    return st;
}

stet_value stet_runs_query_value(stet_value args) {
    static const char *const keys[] = {"app",   "text", "label", "status", "repo", "since", "until", "include_archived",
                                       "order", NULL};
    stet_value v = stet_value_object();
    for (size_t i = 0; keys[i] != NULL; i++) {
        stet_value arg;
        if (!stet_value_find(args, keys[i], strlen(keys[i]), &arg) || stet_value_type(arg) == STET_TYPE_NULL ||
            (stet_value_type(arg) == STET_TYPE_ARRAY && stet_value_count(arg) == 0))
            continue;
        if (strcmp(keys[i], "since") == 0 || strcmp(keys[i], "until") == 0) {
            stet_value_put(&v, keys[i], stet_time_value(stet_value_as_int(arg)));
        } else
            stet_value_put(&v, strcmp(keys[i], "include_archived") == 0 ? "includeArchived" : keys[i],
                           stet_value_retain(arg));
    }
    return v;
}

stet_status stet_runs_verdict(stet_value result) {
    return stet_value_count(stet_value_get(result, "problems")) > 0 ? STET_CORRUPT : STET_OK;
}

stet_style stet_runs_style(const char *lifecycle) {
    if (strcmp(lifecycle, "completed") == 0 || strcmp(lifecycle, "done") == 0 || strcmp(lifecycle, "valid") == 0)
        return STET_STYLE_GOOD;
    if (strcmp(lifecycle, "failed") == 0 || strcmp(lifecycle, "parked") == 0)
        return STET_STYLE_BAD;
    if (strcmp(lifecycle, "blocked") == 0 || strcmp(lifecycle, "interrupted") == 0 || strcmp(lifecycle, "stale") == 0 ||
        strcmp(lifecycle, "absent") == 0 || strcmp(lifecycle, "missing") == 0)
        return STET_STYLE_WARN;
    if (strcmp(lifecycle, "archived") == 0 || strcmp(lifecycle, "resolved") == 0 || strcmp(lifecycle, "cancelled") == 0)
        return STET_STYLE_DIM;
    return STET_STYLE_BOLD;
}

void stet_runs_put(stet_render *r, stet_value object, const char *key) {
    stet_value v = stet_value_get(object, key);
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    if (s != NULL)
        stet_text_plain(r, s, len);
    else if (stet_value_type(v) == STET_TYPE_INT)
        stet_buf_printf(r->out, "%lld", (long long)stet_value_as_int(v));
    else
        stet_buf_char(r->out, '-');
}

void stet_runs_age(stet_value object, const char *key, char out[STET_TIME_TEXT]) {
    stet_value v = stet_value_get(object, key);
    size_t len;
    int64_t ms;
    const char *s = stet_value_as_string(&v, &len);
    if (s == NULL || !stet_time_parse(s, len, &ms))
        snprintf(out, STET_TIME_TEXT, "-");
    else if (stet_clock_ms() - ms < 1000)
        snprintf(out, STET_TIME_TEXT, "now");
    else
        stet_duration_print(stet_clock_ms() - ms, out);
}

#define NAMES_SHOWN 3

static void put_names(stet_render *r, const char *what, stet_value names, stet_value count) {
    size_t n = stet_value_count(names), total = (size_t)stet_value_as_int(count);
    if (total == 0)
        return;
    stet_buf_printf(r->out, "  %s: ", what);
    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        if (i > 0)
            stet_buf_str(r->out, ", ");
        stet_runs_put(r, stet_value_at(names, i), "runId");
        if (stet_value_type(stet_value_get(stet_value_at(names, i), "reason")) == STET_TYPE_STRING) {
            stet_buf_str(r->out, " (");
            stet_runs_put(r, stet_value_at(names, i), "reason");
            stet_buf_char(r->out, ')');
        }
    }
    if (total > NAMES_SHOWN || n < total)
        stet_buf_str(r->out, n > 0 ? ", ..." : "...");
    stet_buf_char(r->out, '\n');
}

/* One line of numbers. Named are those that are not in the list as it is shown, or not as the index has them. */
void stet_runs_put_freshness(stet_render *r, stet_value freshness) {
    static const struct {
        const char *count, *names, *words;
    } kinds[] = {{"newCount", NULL, "new"},
                 {"staleCount", "staleRuns", "changed"},
                 {"missingCount", "missingRuns", "missing"},
                 {"unreadableCount", "unreadableRuns", "unreadable"}};
    stet_value status = stet_value_get(freshness, "status");
    const char *s = stet_value_as_string(&status, NULL), *separator = ": ";
    stet_buf_str(r->out, "index ");
    stet_text_styled(r, stet_runs_style(s), s);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        long long n = (long long)stet_value_as_int(stet_value_get(freshness, kinds[i].count));
        if (n == 0 || (kinds[i].names == NULL && strcmp(s, "absent") == 0)) /* without an index all are new */
            continue;
        stet_buf_printf(r->out, "%s%lld %s", separator, n, kinds[i].words);
        separator = ", ";
    }
    stet_buf_char(r->out, '\n');
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].names != NULL)
            put_names(r, kinds[i].words, stet_value_get(freshness, kinds[i].names),
                      stet_value_get(freshness, kinds[i].count));
}

void stet_runs_put_problems(stet_render *r, stet_value problems) {
    for (size_t i = 0; i < stet_value_count(problems); i++) {
        stet_text_styled(r, STET_STYLE_BAD, "problem: ");
        stet_runs_put(r, stet_value_at(problems, i), "message");
        stet_buf_char(r->out, '\n');
    }
}

void stet_runs_put_next(stet_render *r, stet_value next_action) {
    const char *s = stet_value_as_string(&next_action, NULL);
    if (s == NULL)
        return;
    stet_text_styled(r, STET_STYLE_DIM, "next: ");
    stet_text_plain(r, s, strlen(s));
    stet_buf_char(r->out, '\n');
}

void stet_runs_put_page(stet_render *r, stet_value result, size_t shown, const char *order) {
    int64_t total = stet_value_as_int(stet_value_get(result, "total")),
            offset = stet_value_as_int(stet_value_get(result, "offset"));
    stet_value cursor = stet_value_get(result, "nextCursor");
    if (total == 0)
        stet_buf_str(r->out, "no runs\n");
    else if (shown == 0)
        stet_buf_printf(r->out, "none of %lld shown\n", (long long)total);
    else
        stet_buf_printf(r->out, "%lld to %lld of %lld, %s first\n", (long long)offset + 1,
                        (long long)offset + (long long)shown, (long long)total, order);
    if (stet_value_type(cursor) == STET_TYPE_STRING)
        stet_buf_printf(r->out, "more: --cursor %s\n", stet_value_as_string(&cursor, NULL));
}
