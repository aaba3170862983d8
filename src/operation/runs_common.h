/* runs_common.h - what the operations on runs, registry, history and queue share. */
#ifndef STET_OPERATION_RUNS_COMMON_H
#define STET_OPERATION_RUNS_COMMON_H

#include "drive/drive.h"
#include "fleet/query.h"
#include "fleet/registry.h"
#include "operation/op.h"
#include "operation/text.h"
#include "os/clock.h"

/* The driver for resume, rerun and the queue's workers. */
stet_fleet_driver stet_runs_driver(const stet_op_ctx *ctx);

/* The arguments that most operations have. */
#define RUNS_SCOPE_PARAM(what, by_default)                                                                             \
    {                                                                                                                  \
        .name = "scope", .type = STET_PARAM_ENUM, .summary = what, .choices = stet_runs_scopes,                        \
        .default_json = by_default                                                                                     \
    }
#define RUNS_ID_PARAM                                                                                                  \
    {                                                                                                                  \
        .name = "run-id", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,             \
        .metavar = "RUN", .summary = "Id of the run, or a unique beginning or ending of it"                            \
    }
#define RUNS_REPO_PARAM                                                                                                \
    {                                                                                                                  \
        .name = "repo", .type = STET_PARAM_STRING, .metavar = "PATH",                                                  \
        .summary = "Of this project alone: its root, or any directory in it"                                           \
    }
#define RUNS_VERIFY_PARAM                                                                                              \
    {                                                                                                                  \
        .name = "verify", .type = STET_PARAM_BOOL, .default_json = "false",                                            \
        .summary = "Read and hash every state.json, also those whose size and times did not change"                    \
    }
extern const char *const stet_runs_scopes[];
extern const char *const stet_runs_lifecycles[]; /* as --status takes them */

/* Schemas. */
#define RUNS_RECORD                                                                                                    \
    "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"appId\",\"appVersion\",\"workflowId\","          \
    "\"title\","                                                                                                       \
    "\"repo\",\"runDir\",\"statePath\",\"createdAt\",\"updatedAt\",\"loopStage\",\"lifecycle\",\"derivedLifecycle\","  \
    "\"archived\",\"archivedAt\",\"archiveReason\",\"tasks\",\"commitCount\",\"verifierGatedCommitCount\","            \
    "\"openFeedbackCount\",\"inputsDigest\",\"sourceFingerprint\",\"freshness\",\"provenance\",\"labels\","            \
    "\"failure\"],\"properties\":{\"runId\":{\"type\":\"string\"},\"repo\":{\"type\":\"string\"},"                     \
    "\"lifecycle\":{\"enum\":[\"queued\",\"running\",\"blocked\",\"completed\",\"failed\",\"archived\","               \
    "\"interrupted\",\"resolved\"]},\"resolvedBy\":{},\"derivedLifecycle\":{\"enum\":[\"queued\",\"running\","         \
    "\"blocked\",\"completed\","                                                                                       \
    "\"failed\"]},\"archived\":{\"type\":\"boolean\"},\"freshness\":{\"enum\":[\"valid\",\"stale\",\"missing\"]},"     \
    "\"tasks\":{\"type\":\"object\"},\"labels\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}"
#define RUNS_NAMES                                                                                                     \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"runId\",\"repo\"],\"properties\":{\"runId\":"  \
    "{\"type\":\"string\"},\"repo\":{\"type\":\"string\"}}}}"
#define RUNS_FRESHNESS                                                                                                 \
    "{\"type\":\"object\",\"required\":[\"status\",\"persistedFingerprint\",\"currentFingerprint\",\"staleRuns\","     \
    "\"newRuns\",\"missingRuns\",\"unreadableRuns\",\"staleCount\",\"newCount\",\"missingCount\",\"unreadableCount\"]" \
    ","                                                                                                                \
    "\"properties\":{\"status\":{\"enum\":[\"valid\",\"stale\",\"absent\"]},\"staleRuns\":" RUNS_NAMES                 \
    ",\"newRuns\":" RUNS_NAMES ",\"missingRuns\":" RUNS_NAMES ",\"unreadableRuns\":" RUNS_NAMES "}}"
#define RUNS_PROBLEMS "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"code\",\"message\"]}}"

/* Loads the registry: with `scope` of the arguments, otherwise home; with `verify` if given. Outside a project the
 * scope is home. */
STET_CHECKED stet_status stet_runs_load(stet_op_ctx *ctx, stet_value args, stet_registry **out, stet_error *err);
STET_CHECKED stet_status stet_runs_options(stet_op_ctx *ctx, stet_value args, stet_registry_opts *out, char **home,
                                           char **root, stet_error *err);
/* Loads all projects and finds the run that the arguments name by run_id (and repo, if given). */
STET_CHECKED stet_status stet_runs_find(stet_op_ctx *ctx, stet_value args, const char *key, stet_registry **reg,
                                        const stet_fleet_record **out, const char **from, stet_error *err);
/* Adds the runs with these ids. */
STET_CHECKED stet_status stet_runs_pick_named(stet_registry *reg, stet_value ids, const char *repo,
                                              stet_fleet_records *out, stet_error *err);
/* For operations that change something. STET_DENIED: this is not the current project, and the caller must not change
 * others. */
STET_CHECKED stet_status stet_runs_confine(stet_op_ctx *ctx, const char *repo, stet_error *err);
/* The real root that `repo` of the arguments names, or NULL if absent. A listed project that no longer exists keeps its
 * listed path. */
STET_CHECKED stet_status stet_runs_repo(stet_op_ctx *ctx, stet_value args, char **out, stet_error *err);
/* Builds a query from the arguments app, text, label, status, since, until, include_archived, limit, offset, cursor and
 * order. It borrows from `keep`, which must outlive the query. */
typedef struct stet_runs_query_keep {
    stet_value app, text, label, cursor, order;
    char *repo;
} stet_runs_query_keep;
STET_CHECKED stet_status stet_runs_query(stet_op_ctx *ctx, stet_value args, stet_fleet_query *q,
                                         stet_runs_query_keep *keep, stet_error *err);
/* The `query` member of a result. Belongs to the caller. */
stet_value stet_runs_query_value(stet_value args);

/* A page of the requested runs: {schemaVersion, scope, freshness, total, offset, limit, nextCursor, problems,
 * nextAction}, and under `rows` the value of `row` for each. The caller frees `*reg`; it is NULL after a failure. */
STET_CHECKED stet_status stet_runs_page(stet_op_ctx *ctx, stet_value args, bool newest_first, const char *rows,
                                        stet_value (*row)(const stet_fleet_record *r), stet_registry **reg,
                                        stet_value *out, stet_error *err);

const char *stet_runs_actor(void);
/* The next command for a run, one that works. Belongs to the caller. */
stet_value stet_runs_next_step(const stet_fleet_record *r);

/* Exit status: corrupt if files of the registry could not be read (named in `problems`). */
stet_status stet_runs_verdict(stet_value result);

/* Panels. */
stet_style stet_runs_style(const char *lifecycle);
void stet_runs_put(stet_render *r, stet_value object, const char *key); /* a member as plain text, "-" if null */
void stet_runs_age(stet_value object, const char *key, char out[STET_TIME_TEXT]); /* "now", "5 s", "3 d", "-" */
/* What a table shows for a run: its title, otherwise its app, which is under the key `app`. Borrowed from *keep. */
const char *stet_runs_what(stet_value record, const char *app, stet_value *keep);
bool stet_runs_several_projects(stet_value rows); /* by their `repo` */
void stet_runs_cell_project(stet_table *t, stet_value row);
void stet_runs_put_records(stet_render *r, stet_value records);
void stet_runs_put_record(stet_render *r, stet_value record);
void stet_runs_put_tasks(stet_render *r, stet_value tasks);
/* The ending of an id by which people name the run: without the time that it begins with, or less. */
const char *stet_runs_short(const char *id);
/* A command with the id of the record's run, or of the run that resolved it, shortened. */
void stet_runs_put_command(stet_render *r, stet_value command, stet_value record);
void stet_runs_put_freshness(stet_render *r, stet_value freshness);
void stet_runs_put_problems(stet_render *r, stet_value problems);
void stet_runs_put_next(stet_render *r, stet_value next_action);
void stet_runs_put_page(stet_render *r, stet_value result, size_t shown, const char *order);

#endif
