/* call.c - the operations call run, list, show, wait and cancel. */

#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "call/orchestrate.h"
#include "operation/args.h"
#include "operation/call_common.h"
#include "operation/text.h"
#include "os/file.h"

#define SUBMIT_MS 10000 /* how long somebody who leaves waits until the work is known to be under way */
#define LOG_BYTES ((size_t)64 << 10)

/* One argument: node:ID, or JSON. `*held` keeps the node. */
static stet_status take_arg(call_session *s, stet_value v, stet_call_arg *out, stet_hash *held, stet_error *err) {
    size_t len;
    const char *text = stet_value_as_string(&v, &len);
    if (strncmp(text, "node:", 5) == 0) {
        stet_status status = stet_repo_find(s->repo, text + 5, held, err);
        out->node = held;
        return status;
    }
    stet_status status = stet_json_parse(text, len, &out->value, err);
    if (status != STET_OK)
        stet_hint(err, "an argument is JSON (a text in double quotes, '\"like this\"') or node:ID");
    return status;
}

/* `*open`: why its result must not answer a later call, or NULL; the caller's. */
static stet_status make_node(call_session *s, const char *function, stet_value list, stet_hash *node, char **open,
                             stet_error *err) {
    size_t n = stet_value_count(list);
    stet_call_arg *given = stet_alloc_zero((n + 1) * sizeof *given);
    stet_hash *held = stet_alloc_zero((n + 1) * sizeof *held);
    stet_status status = STET_OK;
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        status = take_arg(s, stet_value_at(list, i), &given[i], &held[i], err);
        if (status != STET_OK)
            stet_fail_in(err, "argument %zu", i + 1);
    }
    stet_calls_node_spec spec = {.root = stet_project_root(s->project),
                                 .function = function,
                                 .args = given,
                                 .count = n,
                                 .beside = stet_value_null(),
                                 .open = open};
    if (status == STET_OK)
        status = stet_calls_node(s->repo, &spec, node, err);
    for (size_t i = 0; i < n; i++)
        stet_value_release(given[i].value);
    stet_free(given);
    stet_free(held);
    return status;
}

/* The outcome of a call that was waited for, as the result or as the error. */
static stet_status conclude(call_session *s, stet_call *c, stet_value *result, stet_error *err) {
    if (stet_call_state_of(c) != STET_CALL_FAILED)
        return call_outcome_value(s, c, result, err);
    const stet_error *e = stet_call_outcome_of(c)->error;
    stet_fail(err, e->status, "%s", e->message);
    if (stet_has_hint(e))
        stet_hint(err, "%s", e->hint);
    stet_detail(err, "id", stet_value_string(stet_call_execution(c)));
    return e->status;
}

/* Whoever stops waiting leaves the call behind, under way, and is told how to find it. */
static stet_status leave(call_session *s, stet_call *c, stet_error *err) {
    for (int i = 0; i < SUBMIT_MS / 50 && !s->ended && !stet_call_submitted(c); i++) {
        uv_run(&s->loop, UV_RUN_NOWAIT);
        uv_sleep(50);
    }
    char id[CALL_ID];
    call_id(s, c, id);
    stet_hint(err, "it goes on; wait for it with: stet call wait %s", id);
    stet_detail(err, "id", stet_value_string(id));
    return err->status;
}

static stet_status run_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold, retries;
    stet_hash node;
    stet_call *c = NULL;
    int64_t timeout = 0;
    bool detach = stet_value_as_bool(stet_value_get(args, "detach"));
    if (detach && stet_value_as_bool(stet_value_get(args, "wait")))
        return stet_fail(err, STET_INVALID, "--wait and --detach exclude each other");
    stet_status status = stet_op_duration_arg(args, "timeout", false, &timeout, err);
    if (status == STET_OK)
        status = call_begin(ctx, true, stet_value_text_at(args, "remote", &hold), &s, err);
    if (status != STET_OK)
        return status;
    char *open = NULL;
    char *function = NULL;
    stet_value list;
    status = call_words(ctx, s.project, args, &function, &list, err);
    if (status == STET_OK) {
        status = make_node(&s, function, list, &node, &open, err);
        stet_value_release(list);
    }
    stet_free(function);
    if (status == STET_OK) {
        bool cache = stet_value_as_bool(stet_value_get(args, "cache"));
        if (cache && open)
            ctx->warn(ctx, "the result is not kept for the next call: %s", open);
        stet_call_request r = {.node = node, .cache = cache && !open, .timeout_ms = timeout};
        r.labels = stet_value_get(args, "label");
        if (stet_value_find(args, "retries", 7, &retries))
            r.attempts = stet_value_as_int(retries) + 1;
        status = stet_executor_start(s.executor, &r, call_ended, &s, &c, err);
    }
    if (status == STET_OK) {
        status = call_drive(&s, c, detach ? stet_call_submitted : NULL, -1, err);
        if (status == STET_CANCELLED)
            status = leave(&s, c, err);
        else if (status == STET_OK)
            status = conclude(&s, c, result, err);
    }
    stet_free(open);
    call_end(&s);
    return status;
}

static void run_render(stet_render *r, stet_value call) {
    stet_value id = stet_value_get(call, "id"), value;
    bool ended = stet_value_find(call, "value", 5, &value) || stet_value_find(call, "failure", 7, &value);
    if (ended) {
        call_render(r, call);
        return;
    }
    stet_buf_printf(r->out, "%s: under way; wait for it with: stet call wait %s\n", stet_value_text(&id, ""),
                    stet_value_text(&id, ""));
}

/* Is it a node whose result is there, although no attempt is? It came with a fetch, or its attempt is long gone. */
static bool is_pinned(call_session *s, const char *id, stet_hash *node) {
    bool there = false;
    stet_hash exec;
    return stet_repo_find(s->repo, id, node, NULL) == STET_OK &&
           stet_executor_pinned(s->executor, *node, &there, &exec, NULL) == STET_OK && there;
}

static stet_status wait_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold;
    stet_attempt a;
    stet_call *c = NULL;
    int64_t timeout = 0;
    stet_status status = stet_op_duration_arg(args, "timeout", false, &timeout, err);
    if (status == STET_OK)
        status = call_begin(ctx, true, NULL, &s, err);
    if (status != STET_OK)
        return status;
    const char *id = stet_value_text_at(args, "id", &hold);
    stet_hash node;
    stet_error none = STET_ERROR_INIT;
    status = call_find(&s, id, &a, &none);
    if (status == STET_OK) {
        status = stet_executor_resume(s.executor, a.execution, call_ended, &s, &c, err);
        stet_attempt_release(&a);
    } else if (status == STET_NOT_FOUND && is_pinned(&s, id, &node)) {
        stet_error_clear(&none);
        status =
            stet_executor_start(s.executor, &(stet_call_request){.node = node, .cache = true}, call_ended, &s, &c, err);
    }
    stet_error_move(err, &none);
    if (status == STET_OK) {
        status = call_drive(&s, c, NULL, timeout ? timeout : -1, err);
        if (status == STET_CANCELLED || status == STET_BUSY)
            status = leave(&s, c, err);
        else if (status == STET_OK)
            status = conclude(&s, c, result, err);
    }
    call_end(&s);
    return status;
}

static stet_status cancel_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold;
    stet_attempt a;
    stet_call *c = NULL;
    stet_status status = call_begin(ctx, true, NULL, &s, err);
    if (status != STET_OK)
        return status;
    status = call_find(&s, stet_value_text_at(args, "id", &hold), &a, err);
    if (status == STET_OK) {
        status = stet_executor_cancel(s.executor, a.execution, call_ended, &s, &c, err);
        if (status == STET_OK)
            status = call_drive(&s, c, NULL, -1, err);
        stet_attempt now;
        if (status == STET_OK)
            status = stet_attempt_get(s.repo, a.execution, &now, err);
        if (status == STET_OK) {
            status = call_value(&s, &now, false, result, err);
            stet_attempt_release(&now);
        }
        stet_attempt_release(&a);
    }
    call_end(&s);
    return status;
}

/* What --state leaves. */
static stet_attempt_filter wanted(const char *which, size_t limit) {
    const uint32_t ended = (1u << STET_CALL_STATES) - (1u << STET_CALL_PINNED_HIT);
    const uint32_t ok = 1u << STET_CALL_COMPLETED_OK | 1u << STET_CALL_PINNED_HIT;
    stet_attempt_filter f = {.live = strcmp(which, "live") == 0, .limit = limit};
    if (!f.live && strcmp(which, "all") != 0)
        f.states = strcmp(which, "ok") == 0 ? ok : ended & ~ok;
    return f;
}

/* Keeps those with this label, at most `most`. Returns how many there are. */
static int64_t keep_labelled(stet_attempts *list, stet_value label, size_t most) {
    size_t kept = 0;
    int64_t total = 0;
    for (size_t i = 0; i < list->len; i++) {
        stet_value labels = stet_value_get(list->at[i].detail, "labels");
        bool found = false;
        for (size_t k = 0; k < stet_value_count(labels) && !found; k++)
            found = stet_value_equal(stet_value_at(labels, k), label);
        total += found;
        if (found && kept < most)
            list->at[kept++] = list->at[i];
        else
            stet_attempt_release(&list->at[i]);
    }
    list->len = kept;
    return total;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold, calls = stet_value_array();
    stet_attempts list = {0};
    int64_t limit = stet_value_as_int(stet_value_get(args, "limit"));
    const char *which = stet_value_text_at(args, "state", &hold);
    stet_status status = call_begin(ctx, false, NULL, &s, err);
    if (status != STET_OK) {
        stet_value_release(calls);
        return status;
    }
    int64_t total = 0;
    stet_value label = stet_value_get(args, "label");
    bool labelled = stet_value_type(label) == STET_TYPE_STRING;
    stet_attempt_filter filter = wanted(which, limit > 0 && !labelled ? (size_t)limit : SIZE_MAX);
    status = stet_attempt_list(s.repo, &filter, &list, &total, err);
    if (status == STET_OK && labelled)
        total = keep_labelled(&list, label, limit > 0 ? (size_t)limit : SIZE_MAX);
    for (size_t i = 0; i < list.len && status == STET_OK; i++) {
        stet_value v;
        status = call_value(&s, &list.at[i], false, &v, err);
        if (status == STET_OK)
            stet_value_push(&calls, v);
    }
    stet_attempts_release(&list);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "calls", calls);
        stet_value_put(result, "total", stet_value_int(total));
    } else
        stet_value_release(calls);
    call_end(&s);
    return status;
}

/* "3/10 note". Caller frees. */
static char *progress_cell(stet_value progress) {
    stet_value done, total, note = stet_value_get(progress, "note");
    stet_buf b = STET_BUF(200);
    if (stet_value_find(progress, "done", 4, &done))
        stet_buf_printf(&b, "%lld", (long long)stet_value_as_int(done));
    if (stet_value_find(progress, "total", 5, &total))
        stet_buf_printf(&b, "/%lld", (long long)stet_value_as_int(total));
    if (stet_value_type(note) == STET_TYPE_STRING)
        stet_buf_printf(&b, "%s%.40s", b.len > 0 ? " " : "", stet_value_as_string(&note, NULL));
    char *out = stet_strdup(stet_buf_cstr(&b));
    stet_buf_release(&b);
    return out;
}

static void list_render(stet_render *r, stet_value result) {
    stet_value calls = stet_value_get(result, "calls");
    stet_table t = {.columns = 5};
    if (stet_value_count(calls) == 0) {
        stet_buf_str(r->out, "no calls\n");
        return;
    }
    static const char *const heads[] = {"ID", "STATE", "PROGRESS", "CREATED", "FUNCTION"};
    for (int i = 0; i < 5; i++)
        stet_table_cell(&t, heads[i]);
    for (size_t i = 0; i < stet_value_count(calls); i++) {
        stet_value c = stet_value_at(calls, i);
        static const char *const keys[] = {"id", "state", NULL, "created", "function"};
        for (int k = 0; k < 5; k++) {
            stet_value v = keys[k] ? stet_value_get(c, keys[k]) : stet_value_null();
            char *cell = keys[k] ? stet_strdup(stet_value_text(&v, "")) : progress_cell(stet_value_get(c, "progress"));
            stet_table_cell(&t, cell);
            stet_free(cell);
        }
    }
    stet_table_print(&t, r, true);
    int64_t more = stet_value_as_int(stet_value_get(result, "total")) - (int64_t)stet_value_count(calls);
    if (more > 0)
        stet_buf_printf(r->out, "and %lld more (--limit)\n", (long long)more);
}

/* What adapters said, the end of it. */
static void put_log(call_session *s, const char *execution, stet_value *out) {
    char *dir = stet_calls_dir(s->project), *path = stet_executor_log_path(dir, execution);
    stet_buf b = STET_BUF(0);
    if (stet_file_read(path, (size_t)64 << 20, &b, NULL) == STET_OK && b.len > 0) {
        const char *from = b.len > LOG_BYTES ? b.data + (b.len - LOG_BYTES) : b.data;
        stet_value_put(out, "log", stet_value_stringf("%s", from));
    }
    stet_buf_release(&b);
    stet_free(path);
    stet_free(dir);
}

static void put_claim(call_session *s, const stet_attempt *a, stet_value *out) {
    const unsigned flags = STET_REPO_READ_ONLY | STET_REPO_MUST_EXIST;
    stet_value remote = stet_value_get(a->detail, "remote");
    stet_hub *hub = NULL;
    stet_claim c;
    bool there = false;
    if (stet_value_type(remote) != STET_TYPE_STRING)
        hub = stet_hub_of_repo(s->repo);
    else if (stet_hub_open(stet_value_as_string(&remote, NULL), flags, &hub, NULL) != STET_OK)
        return;
    if (stet_claim_get(hub, a->key, &there, &c, NULL) == STET_OK && there) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "key", stet_hash_text(a->key));
        stet_value_put(&v, "state", stet_value_string(stet_claim_state_name(c.state)));
        stet_value_put(&v, "owner", stet_value_string(c.owner));
        stet_value_put(&v, "attempt", stet_value_int(c.attempt));
        stet_value_put(out, "claim", v);
        stet_value said = stet_value_get(c.job, "progress"); /* of a worker's job, as its worker has noted it */
        if (stet_value_type(remote) == STET_TYPE_STRING && stet_value_type(said) == STET_TYPE_OBJECT)
            stet_value_put(out, "progress", stet_value_retain(said));
        stet_claim_release(&c);
    }
    stet_hub_close(hub);
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold;
    stet_attempt a;
    stet_status status = call_begin(ctx, false, NULL, &s, err);
    if (status != STET_OK)
        return status;
    status = call_find(&s, stet_value_text_at(args, "id", &hold), &a, err);
    if (status == STET_OK) {
        status = call_value(&s, &a, true, result, err);
        stet_hash *execs = NULL;
        size_t count = 0;
        if (status == STET_OK && stet_repo_execs(s.repo, a.node, &execs, &count, NULL) == STET_OK) {
            stet_value list = stet_value_array();
            for (size_t i = 0; i < count; i++)
                stet_value_push(&list, stet_hash_text(execs[i]));
            stet_value_put(result, "execs", list);
            stet_free(execs);
        }
        if (status == STET_OK) {
            put_claim(&s, &a, result);
            put_log(&s, a.execution, result);
        }
        stet_attempt_release(&a);
    }
    call_end(&s);
    return status;
}

#define PARAM_ID                                                                                                       \
    {                                                                                                                  \
        .name = "id", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,                 \
        .metavar = "ID", .summary = "Id of the call, or of its node: the first characters will do, at least six"       \
    }

static const stet_param run_params[] = {
    {.name = "function",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_FROM_FILE,
     .metavar = "FUNCTION",
     .summary = "dml+exec://ADAPTER/PATH?QUERY, or a program, whose arguments follow; put -- before those"},
    {.name = "arg",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED | STET_PARAM_FROM_FILE,
     .metavar = "ARG",
     .summary = "JSON, @FILE or - for JSON in a file or on standard input, or node:ID for the value of a node"},
    {.name = "sh",
     .type = STET_PARAM_STRING,
     .metavar = "LINE",
     .summary = "Instead of a function: a line for the shell, which gets the arguments on standard input"},
    {.name = "with",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REPEATED,
     .metavar = "OPTION=VALUE",
     .summary = "With --sh or a program: an option of stet-exec-local, like files=lib, file=out.bin or stdout=text"},
    {.name = "cache",
     .type = STET_PARAM_BOOL,
     .default_json = "true",
     .summary = "Take a result that is there; with --no-cache it runs again"},
    {.name = "retries",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .min = 0,
     .max = 1000,
     .summary = "How often a job or a poll that fails for now is tried again"},
    {.name = "timeout",
     .type = STET_PARAM_STRING,
     .metavar = "TIME",
     .summary = "The call is given up after this: seconds, or 90s, 10m, 2h"},
    {.name = "remote",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_CLI_ONLY, /* where data is sent to is for a person to say */
     .metavar = "REMOTE",
     .summary =
         "Hub whose workers run it: postgres://..., file:..., or the name of a remote; instead of the configured one"},
    {.name = "label",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REPEATED,
     .metavar = "WORD",
     .summary = "A word to find the call by, with call list --label; no part of the call"},
    {.name = "wait", .type = STET_PARAM_BOOL, .summary = "Wait for the result (default)"},
    {.name = "detach", .type = STET_PARAM_BOOL, .summary = "Leave when it is under way"},
    {0},
};

static const stet_example run_examples[] = {
    {"call run 'dml+exec://stet-exec-local/cat' '{\"a\": 1}'", "run a program on a value"},
    {"call run 'dml+exec://stet-exec-local/?command=wc+-c' '[1,2,3]' --no-cache --timeout 1m",
     "run a line for the shell, again, for at most a minute"},
    {"call run --sh 'wc -c' '[1,2,3]'", "the same, written for people"},
    {"call run -- expr 1 + 2", "a program with its arguments"},
    {0},
};

static const stet_param wait_params[] = {
    PARAM_ID,
    {.name = "timeout",
     .type = STET_PARAM_STRING,
     .metavar = "TIME",
     .summary = "Stop waiting after this; the call goes on"},
    {0},
};

static const stet_example wait_examples[] = {
    {"call wait 79048fe488", "wait for a call and print its result"},
    {0},
};

static const stet_param id_params[] = {PARAM_ID, {0}};

static const stet_example show_examples[] = {
    {"call show 79048fe488", "all that is known of a call, found by the beginning of its node"},
    {0},
};

static const stet_example cancel_examples[] = {
    {"call cancel 25b84dd83f", "give a call up, and end what runs for it"},
    {0},
};

static const char *const list_states[] = {"all", "live", "ok", "failed", NULL};

static const stet_param list_params[] = {
    {.name = "state",
     .type = STET_PARAM_ENUM,
     .choices = list_states,
     .default_json = "\"all\"",
     .summary = "Only those that are under way, that gave a result, or that failed"},
    {.name = "label",
     .type = STET_PARAM_STRING,
     .metavar = "WORD",
     .summary = "Only those that were made with this label"},
    {.name = "limit",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .min = 1,
     .max = 100000,
     .default_json = "50",
     .summary = "At most so many"},
    {0},
};

static const char *const log_streams[] = {"all", "stdout", "stderr", NULL};

static const stet_param logs_params[] = {
    PARAM_ID,
    {.name = "follow",
     .letter = 'f',
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Go on as it grows, until the call has ended"},
    {.name = "stream",
     .type = STET_PARAM_ENUM,
     .choices = log_streams,
     .default_json = "\"all\"",
     .summary = "Only standard output, or only standard error"},
    {.name = "bytes",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .default_json = "1048576",
     .min = 0,
     .max = 67108864,
     .summary = "At most this much from the end of each stream"},
    {0},
};

static const stet_example logs_examples[] = {
    {"call logs 79048fe488", "what the job of a call wrote, to standard output and then to standard error"},
    {0},
};

static const stet_param get_params[] = {
    PARAM_ID,
    {.name = "name",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "NAME",
     .summary = "A file that it made, as file= names it; without it the only one, or the result itself"},
    {.name = "output",
     .letter = 'o',
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_REQUIRED,
     .summary = "Where to write it"},
    {0},
};

static const stet_example get_examples[] = {
    {"call get 79048fe488 -o result.json", "write the result of a call to a file"},
    {0},
};

static const stet_example list_examples[] = {
    {"call list", "the newest calls"},
    {"call list --state live", "those that are under way"},
    {"call list --label nightly", "those with a label"},
    {0},
};

const stet_op stet_ops_call[] = {
    {.name = "call run",
     .summary = "Call a function on arguments, or take the result that is there",
     .description =
         "A call is known by its function, its arguments and the project's files that it runs: the same call again "
         "gives the result that is there, also a failure that the program reported itself, and runs nothing. A call "
         "that is under way, in whatever process, is joined.\n\n"
         "The function names an adapter, a program on $PATH that is asked how far the call is; stet-exec-local runs "
         "programs on this machine: dml+exec://stet-exec-local/PROGRAM?arg=A&arg=B. The arguments are its standard "
         "input, as a JSON array; the JSON that it prints is the result. It runs in a directory of its own, with "
         "copies "
         "of the project's files that the function names. --sh LINE, and a program with its arguments (-- train.py "
         "--depth 3), are other ways to write such a function; relative paths in them are those of the current "
         "directory.\n\n"
         "Ctrl-C stops the waiting and not the call. Exit status 1 if the call failed.",
     .params = run_params,
     .result_schema = CALL_SCHEMA,
     .examples = run_examples,
     .flags = STET_OP_LONG | STET_OP_ANSWERS,
     .run = run_run,
     .render = run_render,
     .verdict = call_verdict},
    {.name = "call wait",
     .summary = "Wait for a call and print its result",
     .description =
         "Goes on with a call that another process has left, or waits for the one that has it. Exit status 1 "
         "if the call failed.",
     .params = wait_params,
     .result_schema = CALL_SCHEMA,
     .examples = wait_examples,
     .flags = STET_OP_LONG | STET_OP_ANSWERS,
     .run = wait_run,
     .render = call_render,
     .verdict = call_verdict},
    {.name = "call logs",
     .summary = "Show what the job of a call has written, while it runs and afterwards",
     .description = "Standard output and standard error of jobs of stet-exec-local that ran in this project, also of "
                    "those that succeeded; up to 16 MiB of each stream. A job that was tried several times has the "
                    "output of its last try. `stet gc` removes output that is older than a week.",
     .params = logs_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"id\",\"ended\"],\"properties\":{\"id\":{\"type\":\"string\"},"
         "\"ended\":{\"type\":\"boolean\"},\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"}}}",
     .examples = logs_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_LONG,
     .run = call_logs_run,
     .render = call_logs_render},
    {.name = "call get",
     .summary = "Write a file that a call made, or its result, to disk",
     .description =
         "Contents of any size are written as they are, a text without quotes, any other result as JSON. A file "
         "that was there is replaced when the new one is complete.",
     .params = get_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"file\",\"size\"],\"properties\":{\"file\":{\"type\":"
                      "\"string\"},\"size\":{\"type\":\"integer\"}}}",
     .examples = get_examples,
     .flags = STET_OP_DESTRUCTIVE | STET_OP_IDEMPOTENT | STET_OP_LONG,
     .run = call_get_run,
     .render = call_get_render},
    {.name = "call list",
     .summary = "List calls, the newest first",
     .params = list_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"calls\",\"total\"],\"properties\":{\"calls\":{\"type\":"
                      "\"array\",\"items\":" CALL_SCHEMA "},\"total\":{\"type\":\"integer\"}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "call show",
     .summary = "Show a call: its state, its result, who runs it, what its adapter said",
     .params = id_params,
     .result_schema = CALL_SCHEMA,
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY,
     .run = show_run},
    {.name = "call cancel",
     .summary = "Give a call up and end what runs for it",
     .description = "Whoever waits for it is told. What others want, in another project on the same remote, they run "
                    "again. A call that has ended is a conflict.",
     .params = id_params,
     .result_schema = CALL_SCHEMA,
     .examples = cancel_examples,
     .flags = STET_OP_LONG,
     .run = cancel_run,
     .render = call_render},
    {0},
};
