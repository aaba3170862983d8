/* runs_files.c - the operations runs logs, tail, export and import: files beside a run's state. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/utf8.h"
#include "fleet/bundle.h"
#include "fleet/run.h"
#include "operation/args.h"
#include "operation/runs_common.h"
#include "os/clock.h"
#include "os/file.h"

#define LOG_CHUNK   ((size_t)256 << 10)
#define POLL_MS     200
#define TAIL_MS     300
#define TAIL_MAX_MS 3000

/* Bytes as a string: what is no UTF-8 becomes "?". */
static stet_value lenient_text(const char *bytes, size_t len) {
    stet_value v;
    if (stet_value_string_checked(bytes, len, &v, NULL) == STET_OK)
        return v;
    stet_buf b = STET_BUF(0);
    while (len > 0) {
        size_t good = stet_utf8_valid_prefix(bytes, len);
        stet_buf_add(&b, bytes, good);
        if (good < len) {
            stet_buf_char(&b, '?');
            good++;
        }
        bytes += good;
        len -= good;
    }
    v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

/* At most LOG_CHUNK bytes of a file from `*at`, which moves on. An absent file is empty. */
static stet_status read_from(const char *path, int64_t *at, stet_buf *out, stet_error *err) {
    stet_buf_clear(out);
    int fd = stet_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENOENT ? STET_OK : stet_fail_errno(err, errno, "%s", path);
    struct stat sb;
    stet_status st = STET_OK;
    char *to = stet_buf_reserve(out, LOG_CHUNK);
    ssize_t n = stet_sys_fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) ? stet_sys_pread(fd, to, LOG_CHUNK, (off_t)*at) : 0;
    if (n < 0)
        st = stet_fail_errno(err, errno, "%s", path);
    else {
        out->len += (size_t)n;
        *at += n;
    }
    stet_sys_close(fd);
    return st;
}

/* The path of a log as its task names it; only what lies in the run's own logs/ is ever read. */
static bool log_allowed(const char *path) {
    return strncmp(path, "logs/", 5) == 0 && strchr(path + 5, '/') == NULL && strcmp(path, "logs/..") != 0 &&
           strcmp(path, "logs/.") != 0 && path[5] != 0;
}

typedef struct reading {
    stet_op_ctx *ctx;
    char *dir;
    const char *task; /* or NULL: all */
    stet_map at;      /* task -> how far it was read */
    stet_value logs;  /* array for the result, when not following */
    bool follow;
    int64_t tail_bytes;
} reading;

static stet_status give(reading *r, stet_value task, const char *bytes, size_t len, bool truncated, stet_error *err) {
    stet_value v = stet_value_object(), text = lenient_text(bytes, len);
    stet_value_put(&v, "task", stet_value_retain(task));
    stet_value_put(&v, "text", text);
    if (r->follow) {
        stet_status st = r->ctx->emit(r->ctx, v, err);
        stet_value_release(v);
        return st;
    }
    stet_value_put(&v, "truncated", stet_value_bool(truncated));
    stet_value_push(&r->logs, v);
    return STET_OK;
}

/* Whatever one task's log has beyond what was read. */
static stet_status read_log(reading *r, stet_value task, const char *relative, bool *more, stet_error *err) {
    size_t len;
    const char *id = stet_value_as_string(&task, &len);
    stet_slot *slot = stet_map_get(&r->at, id, len);
    int64_t at = slot != NULL ? (int64_t)slot->n : 0;
    char *path = stet_file_join(r->dir, relative);
    struct stat sb;
    bool truncated = false;
    if (slot == NULL && stet_sys_stat(path, &sb) == 0 && sb.st_size > r->tail_bytes) {
        at = sb.st_size - r->tail_bytes;
        truncated = true;
    }
    stet_buf b = STET_BUF(LOG_CHUNK * 2), all = STET_BUF(0);
    stet_status st;
    do {
        st = read_from(path, &at, &b, err);
        if (st == STET_OK)
            stet_buf_add(&all, stet_buf_cstr(&b), b.len);
    } while (st == STET_OK && b.len > 0 && all.len < (size_t)r->tail_bytes + LOG_CHUNK);
    if (st == STET_OK && (all.len > 0 || !r->follow))
        st = give(r, task, stet_buf_cstr(&all), all.len, truncated, err);
    *more = *more || all.len > 0;
    stet_map_put(&r->at, id, len, (stet_slot){.n = (uint64_t)at});
    stet_buf_release(&b);
    stet_buf_release(&all);
    stet_free(path);
    return st;
}

static stet_status read_logs(reading *r, const stet_fleet_record *rec, bool *more, bool *ended, bool *known,
                             stet_error *err) {
    stet_state s;
    /* Asked before the logs are read: what was written before the end is seen. */
    stet_driver_state driver = stet_runfile_driver(r->dir, NULL);
    stet_status st = stet_runfile_check_logs(r->dir, err);
    if (st == STET_OK)
        st = stet_fleet_record_reread(rec, &s, err);
    if (st != STET_OK)
        return st;
    stet_value tasks = stet_value_get(s.root, "tasks");
    for (size_t i = 0; i < stet_value_count(tasks) && st == STET_OK; i++) {
        stet_value task = stet_value_at(tasks, i), id = stet_value_get(task, "id"), log = stet_value_get(task, "log");
        const char *path = stet_value_as_string(&log, NULL);
        if (r->task != NULL && strcmp(stet_value_as_string(&id, NULL), r->task) != 0)
            continue;
        *known = true;
        if (path != NULL && log_allowed(path))
            st = read_log(r, id, path, more, err);
    }
    stet_lifecycle l = stet_lifecycle_of(&s.counts);
    *ended = driver != STET_DRIVER_ALIVE && (driver != STET_DRIVER_NONE || l != STET_LIFE_RUNNING);
    stet_state_release(&s);
    return st;
}

static stet_status logs_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    const stet_fleet_record *rec;
    stet_value keep;
    stet_status st = stet_runs_find(ctx, args, "run_id", &reg, &rec, NULL, err);
    if (st != STET_OK)
        return st;
    reading r = {.ctx = ctx,
                 .dir = stet_fleet_record_dir(rec),
                 .task = stet_value_text_at(args, "task", &keep),
                 .logs = stet_value_array(),
                 .follow = stet_value_as_bool(stet_value_get(args, "follow")),
                 .tail_bytes = stet_value_as_int(stet_value_get(args, "bytes"))};
    bool ended = false, known = false;
    for (;;) {
        bool more = false;
        st = read_logs(&r, rec, &more, &ended, &known, err);
        if (st != STET_OK || !r.follow || (ended && !more))
            break;
        if (ctx->cancelled(ctx)) {
            st = stet_fail(err, STET_CANCELLED, "interrupted");
            break;
        }
        if (!more)
            stet_clock_sleep_ms(POLL_MS);
    }
    if (st == STET_OK && r.task != NULL && !known)
        st = stet_fail(err, STET_NOT_FOUND, "run %s has no task %.100s", rec->id, r.task);
    if (st == STET_OK) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "runId", stet_value_string(rec->id));
        stet_value_put(&v, "repo", stet_value_string(rec->repo));
        stet_value_put(&v, "logs", stet_value_retain(r.logs));
        stet_value_put(&v, "followed", stet_value_bool(r.follow));
        *result = v;
    }
    stet_value_release(r.logs);
    stet_map_release(&r.at);
    stet_free(r.dir);
    stet_registry_free(reg);
    return st;
}

/* A log's lines, with control characters made harmless, each after its task's name if there are several. */
static void put_log(stet_render *r, stet_value entry, bool named) {
    stet_value text = stet_value_get(entry, "text"), task = stet_value_get(entry, "task");
    size_t len = 0;
    const char *s = stet_value_as_string(&text, &len), *end = s + len;
    while (s < end) {
        const char *newline = memchr(s, '\n', (size_t)(end - s));
        size_t n = (size_t)((newline != NULL ? newline : end) - s);
        if (named) {
            stet_text_styled(r, STET_STYLE_DIM, stet_value_as_string(&task, NULL));
            stet_text_styled(r, STET_STYLE_DIM, " | ");
        }
        stet_text_plain(r, s, n);
        stet_buf_char(r->out, '\n');
        s += n + 1;
    }
}

static void logs_render(stet_render *r, stet_value result) {
    stet_value logs = stet_value_get(result, "logs");
    if (stet_value_type(stet_value_get(result, "text")) == STET_TYPE_STRING) {
        put_log(r, result, true); /* an event while following */
        return;
    }
    for (size_t i = 0; i < stet_value_count(logs); i++) {
        put_log(r, stet_value_at(logs, i), stet_value_count(logs) > 1);
    }
    if (stet_value_count(logs) == 0 && !stet_value_as_bool(stet_value_get(result, "followed")))
        stet_buf_str(r->out, "no task of this run kept a log\n");
}

/* Where a run's events.jsonl was read to. */
typedef struct tailed {
    int64_t at;
    bool active;
} tailed;

static stet_status tail_file(stet_op_ctx *ctx, const char *repo, const char *id, tailed *t, int64_t *left,
                             stet_error *err) {
    char *path = stet_asprintf("%s/.stet/runs/%s/events.jsonl", repo, id);
    stet_buf b = STET_BUF(LOG_CHUNK * 2);
    int64_t at = t->at;
    stet_status st = read_from(path, &at, &b, err);
    const char *p = stet_buf_cstr(&b), *end = p + b.len, *newline;
    while (st == STET_OK && *left > 0 && (newline = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        stet_value event;
        t->at += newline + 1 - p;
        if (stet_json_read(p, (size_t)(newline - p), NULL, &event, NULL) == STET_OK) {
            if (stet_value_type(event) == STET_TYPE_OBJECT) {
                stet_value_put(&event, "repo", stet_value_string(repo));
                stet_value_put(&event, "runId", stet_value_string(id));
                st = ctx->emit(ctx, event, err);
                (*left)--;
            }
            stet_value_release(event);
        }
        p = newline + 1;
    }
    /* A line beyond all measure is no line of ours. */
    if (b.len >= LOG_CHUNK && t->at + (int64_t)LOG_CHUNK <= at)
        t->at = at;
    stet_buf_release(&b);
    stet_free(path);
    return st;
}

/* One round over all runs: the first one only notes where the files end. */
static stet_status tail_round(stet_op_ctx *ctx, stet_value args, stet_map *seen, bool first, bool from_start,
                              int64_t *left, stet_error *err) {
    stet_registry *reg;
    stet_status st = stet_runs_load(ctx, args, &reg, err);
    if (st != STET_OK)
        return st;
    for (size_t i = 0; i < reg->records.len && st == STET_OK && *left > 0; i++) {
        const stet_fleet_record *r = reg->records.at[i];
        char key[4400];
        int n = snprintf(key, sizeof key, "%s%c%s", r->repo, 0, r->id);
        size_t len = n > 0 && (size_t)n < sizeof key ? (size_t)n : sizeof key - 1;
        stet_slot *slot = stet_map_get(seen, key, len);
        tailed *t = slot != NULL ? slot->p : NULL;
        if (t == NULL) {
            char *path = stet_asprintf("%s/.stet/runs/%s/events.jsonl", r->repo, r->id);
            struct stat sb;
            t = stet_alloc_zero(sizeof *t);
            if (first && !from_start && stet_sys_stat(path, &sb) == 0)
                t->at = sb.st_size;
            stet_free(path);
            stet_map_put(seen, key, len, (stet_slot){.p = t});
        }
        /* A run that ended is looked at once more, for what it wrote last. */
        bool live = r->lifecycle == STET_LIFE_RUNNING || r->lifecycle == STET_LIFE_QUEUED;
        bool changed = stet_clock_ms() - r->updated_ms < 60000;
        if (live || t->active || changed || slot == NULL)
            st = tail_file(ctx, r->repo, r->id, t, left, err);
        t->active = live;
    }
    stet_registry_free(reg);
    return st;
}

static stet_status tail_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_map seen = {0};
    int64_t limit = stet_value_as_int(stet_value_get(args, "limit")), left = limit > 0 ? limit : INT64_MAX;
    int64_t seconds = stet_value_as_int(stet_value_get(args, "seconds")),
            until = stet_clock_monotonic_us() + seconds * 1000000;
    int64_t rest_ms = TAIL_MS;
    bool from_start = stet_value_as_bool(stet_value_get(args, "from_start"));
    stet_status st = tail_round(ctx, args, &seen, true, from_start, &left, err);
    while (st == STET_OK && left > 0 && (seconds == 0 || stet_clock_monotonic_us() < until)) {
        if (ctx->cancelled(ctx))
            st = stet_fail(err, STET_CANCELLED, "interrupted");
        else {
            /* Many runs take their time to look through: then less often, so that watching stays cheap. */
            stet_clock_sleep_ms(rest_ms);
            int64_t rested = stet_clock_monotonic_us();
            st = tail_round(ctx, args, &seen, false, from_start, &left, err);
            int64_t took_ms = (stet_clock_monotonic_us() - rested) / 1000;
            rest_ms = took_ms * 9 > TAIL_MAX_MS ? TAIL_MAX_MS : took_ms * 9 > TAIL_MS ? took_ms * 9 : TAIL_MS;
        }
    }
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&seen, &i, &key, &len, &slot);)
        stet_free(slot->p);
    stet_map_release(&seen);
    if (st == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(result, "events", stet_value_int(limit > 0 ? limit - left : INT64_MAX - left));
    }
    return st;
}

static void tail_render(stet_render *r, stet_value result) {
    stet_value event = stet_value_get(result, "event"), at = stet_value_get(result, "at"),
               repo = stet_value_get(result, "repo"), to = stet_value_get(result, "to");
    if (stet_value_type(event) != STET_TYPE_STRING)
        return; /* the end */
    size_t len;
    const char *when = stet_value_as_string(&at, &len);
    stet_text_styled(r, STET_STYLE_DIM, when != NULL ? when : "-");
    stet_buf_char(r->out, ' ');
    const char *base = stet_file_basename(stet_value_as_string(&repo, NULL));
    stet_text_plain(r, base, strlen(base));
    stet_buf_char(r->out, ' ');
    stet_runs_put(r, result, "runId");
    stet_buf_char(r->out, ' ');
    if (stet_value_type(to) == STET_TYPE_STRING) {
        stet_runs_put(r, result, "task");
        stet_buf_char(r->out, ' ');
        stet_text_styled(r, stet_runs_style(stet_value_as_string(&to, NULL)), stet_value_as_string(&to, NULL));
    } else {
        stet_runs_put(r, result, "event");
        if (stet_value_type(stet_value_get(result, "stage")) == STET_TYPE_STRING) {
            stet_buf_char(r->out, ' ');
            stet_runs_put(r, result, "stage");
        }
    }
    stet_buf_char(r->out, '\n');
}

static stet_value info_value(const stet_bundle_info *info, const char *path) {
    stet_value v = stet_value_object(), file;
    if (stet_value_string_checked(path, strlen(path), &file, NULL) != STET_OK)
        file = stet_value_string("");
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
    stet_value_put(&v, "runId", stet_value_string(info->run_id));
    stet_value_put(&v, "file", file);
    stet_value_put(&v, "files", stet_value_int((int64_t)info->files));
    stet_value_put(&v, "bytes", stet_value_int((int64_t)info->bytes));
    stet_value_put(&v, "sha256", stet_hash_text(info->sha256));
    return v;
}

static stet_status export_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    const stet_fleet_record *rec;
    stet_bundle_info info;
    stet_status st = stet_runs_find(ctx, args, "run_id", &reg, &rec, NULL, err);
    if (st != STET_OK)
        return st;
    char *path = stet_op_path_arg(ctx, args, "output"), *dir = stet_fleet_record_dir(rec);
    if (path == NULL) {
        char *name = stet_asprintf("%s.stet-run", rec->id);
        path = stet_file_join(ctx->cwd, name);
        stet_free(name);
    }
    st = stet_bundle_export(dir, rec->id, path, stet_value_as_bool(stet_value_get(args, "force")), &info, err);
    if (st == STET_CONFLICT)
        stet_hint(err, "--force replaces it");
    if (st == STET_OK)
        *result = info_value(&info, path);
    stet_free(path);
    stet_free(dir);
    stet_registry_free(reg);
    return st;
}

static void export_render(stet_render *r, stet_value result) {
    stet_runs_put(r, result, "file");
    stet_buf_printf(r->out, ": %lld files of run ", (long long)stet_value_as_int(stet_value_get(result, "files")));
    stet_runs_put(r, result, "runId");
    stet_buf_str(r->out, "\nsha256 ");
    stet_runs_put(r, result, "sha256");
    stet_buf_char(r->out, '\n');
}

static stet_status import_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_project *p = NULL;
    stet_bundle_info info;
    bool verify = stet_value_as_bool(stet_value_get(args, "verify_only"));
    stet_status st = verify ? STET_OK : ctx->project(ctx, &p, err);
    if (st != STET_OK)
        return st;
    char *path = stet_op_path_arg(ctx, args, "file");
    st = stet_bundle_import(p, path, verify, &info, err);
    if (st == STET_OK) {
        *result = info_value(&info, path);
        stet_value_put(result, "imported", stet_value_bool(!verify));
        stet_value_put(result, "repo", verify ? stet_value_null() : stet_value_string(stet_project_root(p)));
    }
    stet_free(path);
    return st;
}

static void import_render(stet_render *r, stet_value result) {
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "imported")) ? "imported run " : "whole: run ");
    stet_runs_put(r, result, "runId");
    stet_buf_printf(r->out, ", %lld files\n", (long long)stet_value_as_int(stet_value_get(result, "files")));
}

static const stet_param logs_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    {.name = "task", .type = STET_PARAM_STRING, .summary = "The log of this task alone"},
    {.name = "follow",
     .letter = 'f',
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Go on as it grows, until the run ends"},
    {.name = "bytes",
     .type = STET_PARAM_INT,
     .default_json = "1048576",
     .min = 0,
     .max = 1 << 28,
     .summary = "At most so many bytes of each log, counted from its end"},
    {0},
};
static const stet_param tail_params[] = {
    RUNS_SCOPE_PARAM("All known projects, or the current one alone", "\"home\""),
    {.name = "limit",
     .type = STET_PARAM_INT,
     .default_json = "0",
     .min = 0,
     .max = INT32_MAX,
     .summary = "End after so many events; 0: never"},
    {.name = "seconds",
     .type = STET_PARAM_INT,
     .default_json = "0",
     .min = 0,
     .max = 1000000,
     .summary = "End after so many seconds; 0: never"},
    {.name = "from-start",
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Begin with what was written before"},
    {0},
};
static const stet_param export_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    {.name = "output",
     .letter = 'o',
     .type = STET_PARAM_FILE,
     .summary = "The file to write; without it RUN.stet-run here"},
    {.name = "force", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "Replace a file that is there"},
    {0},
};
static const stet_param import_params[] = {
    {.name = "file",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "FILE",
     .summary = "What runs export wrote"},
    {.name = "verify-only",
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Check every byte, and import nothing"},
    {0},
};

static const stet_example logs_examples[] = {
    {"runs logs 20261115T174500Z-report-0a1b2c3d", "what the tasks of a run printed"},
    {0},
};
static const stet_example tail_examples[] = {
    {"runs tail --from-start --seconds 1", "what happens in all known projects, for one second"},
    {0},
};
static const stet_example export_examples[] = {
    {"runs export 20261115T174500Z-report-0a1b2c3d -o report.stet-run", "one run as one file"},
    {0},
};
static const stet_example import_examples[] = {
    {"runs import exported.stet-run", "bring a run in that came from elsewhere"},
    {"runs import exported.stet-run --verify-only", "is it whole?"},
    {0},
};

#define INFO                                                                                                           \
    "\"schemaVersion\":{\"const\":1},\"runId\":{\"type\":\"string\"},\"file\":{\"type\":\"string\"},\"files\":{"       \
    "\"type\":\"integer\"},\"bytes\":{\"type\":\"integer\"},\"sha256\":{\"type\":\"string\"}"

const stet_op stet_ops_runs_files[] = {
    {.name = "runs logs",
     .summary = "Print what the tasks of a run printed",
     .params = logs_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"repo\",\"logs\",\"followed\"],"
         "\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},\"runId\":{\"type\":"
         "\"string\"},\"repo\":{\"type\":\"string\"},\"followed\":{\"type\":\"boolean\"},\"logs\":{\"type\":\"array\","
         "\"items\":{\"type\":\"object\",\"required\":[\"task\",\"text\",\"truncated\"]}}}}",
     .examples = logs_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT | STET_OP_LONG,
     .run = logs_run,
     .render = logs_render},
    {.name = "runs tail",
     .summary = "Show what happens in runs of all known projects, as it happens",
     .params = tail_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"events\"],\"additionalProperties\":false,"
                      "\"properties\":{\"schemaVersion\":{\"const\":1},\"events\":{\"type\":\"integer\"}}}",
     .examples = tail_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT | STET_OP_LONG,
     .run = tail_run,
     .render = tail_render},
    {.name = "runs export",
     .summary = "Write a run to one file that proves itself",
     .description =
         "State, events and logs, each with its SHA-256, and a sum over all. Importing it elsewhere checks every byte.",
     .params = export_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"file\",\"files\",\"bytes\","
                      "\"sha256\"],\"additionalProperties\":false,\"properties\":{" INFO "}}",
     .examples = export_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_DESTRUCTIVE,
     .run = export_run,
     .render = export_render},
    {.name = "runs import",
     .summary = "Bring in a run from such a file",
     .description =
         "Nothing appears unless every byte is what was exported, and never in place of a run that is there.",
     .params = import_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"file\",\"files\",\"bytes\","
                      "\"sha256\",\"imported\",\"repo\"],\"additionalProperties\":false,\"properties\":{" INFO
                      ",\"imported\":{\"type\":\"boolean\"},\"repo\":{\"type\":[\"string\",\"null\"]}}}",
     .examples = import_examples,
     .run = import_run,
     .render = import_render},
    {0},
};
