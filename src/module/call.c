/* call.c - the `call` module: a node whose value is the result of a call (docs/calls.md).
 *
 *     {"type": "call", "function": "dml+exec://stet-exec-local/sort", "args": ["rows"], "timeout": "10m"}
 *
 * The inputs are the arguments, in the order of `args`, or else of their names. Inputs that `args` leaves out are not
 * passed, but count. Files of the project that the function names are read as documents, whether they exist or not: a
 * change makes the action outdated, and another call. The call is cached, claimed and resumed
 * like every other (call/executor.h): the call itself finds a run that died, so nothing is remembered here. As with a
 * command, the result counts only if the inputs, read again on the newest state, still make the same call.
 *
 * A pinned failure is not taken as an answer: the scheduler runs a failed action only when there is a reason to, and
 * then the call runs.
 */

#include <assert.h>
#include <string.h>
#include <uv.h>

#include "base/units.h"
#include "base/vec.h"
#include "call/calls.h"
#include "call/function.h"
#include "files/files.h"
#include "files/glob.h"
#include "files/path.h"
#include "module/kinds.h"
#include "project/project.h"

#define VERSION   "1"
#define MAX_AGAIN 20
#define SLOTS     16 /* calls at a time, if nobody says how many */

typedef struct call_state call_state;

typedef struct call_run {
    call_state *state;
    stet_run *run;
    stet_hash node;
    stet_call *call;
    int again;
    bool open;    /* no pinned result is an answer */
    bool forced;  /* the same, or a pinned failure is not wanted */
    bool waiting; /* for a slot */
    bool newest;  /* what it reads is read on the newest state, after the call */
} call_run;

struct call_state {
    stet_module_host host;
    stet_repo *repo;
    stet_executor *executor;
    stet_calls_config config;
    STET_VEC(call_run *) active; /* in the order in which they came */
    size_t running;              /* of them, those that have a slot */
};

static const char *text_of(const stet_value *v) {
    size_t len;
    const char *s = stet_value_type(*v) == STET_TYPE_STRING ? stet_value_as_string(v, &len) : NULL;
    return s && strlen(s) == len ? s : NULL;
}

static stet_status wrong(stet_error *err, const char *member, const char *what, const char *hint) {
    stet_fail(err, STET_INVALID, "\"%s\" of a call %s", member, what);
    stet_hint(err, "%s", hint);
    return STET_INVALID;
}

static stet_status check_args(stet_value args, stet_value inputs, stet_error *err) {
    if (stet_value_type(args) != STET_TYPE_ARRAY)
        return wrong(err, "args", "is no list of names", "name the node's inputs in the order of the arguments");
    for (size_t i = 0; i < stet_value_count(args); i++) {
        stet_value name = stet_value_at(args, i);
        const char *s = text_of(&name);
        if (!s || !stet_value_find(inputs, s, strlen(s), NULL))
            return wrong(err, "args", "names no input", "each name must be one of the node's inputs");
    }
    return STET_OK;
}

static stet_status call_check(stet_value d, stet_value node, stet_error *err) {
    static const char *const members[] = {"type",   "function",       "args",         "timeout", "retries",
                                          "remote", "argumentSchema", "resultSchema", "metadata"};
    stet_status status =
        stet_module_members(d, members, sizeof members / sizeof *members, "call", "docs/calls.md", err);
    if (status != STET_OK)
        return status;
    stet_value v = stet_value_get(d, "function");
    const char *function = text_of(&v);
    if (!function)
        return wrong(err, "function", "is no URI", "write \"dml+exec://stet-exec-local/PROGRAM\"");
    status = stet_calls_check(function, err);
    if (status == STET_OK && stet_value_find(d, "args", 4, &v))
        status = check_args(v, stet_value_get(node, "inputs"), err);
    if (status == STET_OK && stet_value_find(d, "timeout", 7, &v) && stet_units_ms(v) < 0)
        status = wrong(err, "timeout", "is no time", "write seconds, or \"90s\", \"10m\", \"2h\"");
    if (status == STET_OK && stet_value_find(d, "retries", 7, &v) &&
        (stet_value_type(v) != STET_TYPE_INT || stet_value_as_int(v) < 0 || stet_value_as_int(v) > 1000))
        status = wrong(err, "retries", "is no number from 0 to 1000", "write how often it is tried again");
    if (status == STET_OK && stet_value_find(d, "remote", 6, &v) && !text_of(&v))
        status = wrong(err, "remote", "is no text", "write \"file:///...\", or the name of a remote");
    return status;
}

static stet_input_use call_use(stet_value descriptor, const char *input, size_t len) {
    (void)descriptor;
    (void)input;
    (void)len;
    return STET_INPUT_ALWAYS;
}

static stet_status call_fingerprint(void *state, stet_value descriptor, stet_hash *out, stet_error *err) {
    (void)state;
    (void)err;
    stet_value v = stet_value_array();
    stet_value_push(&v, stet_value_string("call " VERSION));
    stet_value_push(&v, stet_value_retain(descriptor));
    *out = stet_hash_value(v);
    stet_value_release(v);
    return STET_OK;
}

typedef struct naming {
    stet_named_fn each;
    void *ctx;
} naming;

static bool is_declared(stet_function_use use) {
    return use == STET_FUNCTION_FILES || use == STET_FUNCTION_FILES_PATTERN;
}

static bool is_pattern(stet_function_use use) {
    return use == STET_FUNCTION_PATTERN || use == STET_FUNCTION_FILES_PATTERN;
}

/* A word may be a file; what files= says is one. */
static void name_file(void *ctx, const char *path, stet_function_use use, const char *written) {
    naming *n = ctx;
    (void)written;
    if (!*path) /* the project itself */
        return;
    bool declared = is_declared(use);
    char *below = stet_asprintf("%s/**", path);
    if (!is_pattern(use))
        n->each(n->ctx, declared ? STET_NAMED_READ : STET_NAMED_GUESS, path, NULL);
    else {
        if (stet_glob_check(path, NULL) == STET_OK)
            n->each(n->ctx, STET_NAMED_PATTERN, path, NULL);
        if (declared && stet_glob_check(below, NULL) == STET_OK)
            n->each(n->ctx, STET_NAMED_PATTERN, below, NULL);
    }
    stet_free(below);
}

/* A function with the environment of this process; false: it makes no sense. */
static bool parse_here(const char *function, stet_function *f) {
    if (stet_function_parse(function, f, NULL) != STET_OK)
        return false;
    stet_value env = stet_function_environment(f);
    stet_function_bind(f, env);
    stet_value_release(env);
    return true;
}

static void call_names(const char *root, stet_value d, stet_value node, stet_named_fn each, void *ctx) {
    stet_value v = stet_value_get(d, "function");
    const char *function = text_of(&v);
    stet_function f;
    naming n = {each, ctx};
    (void)node;
    if (!function || !stet_calls_is_local(function) || !parse_here(function, &f))
        return;
    stet_function_named(&f, root, name_file, &n);
    stet_function_release(&f);
}

static stet_run *run_of(call_state *s, const stet_call *c) {
    for (size_t i = 0; i < s->active.len; i++)
        if (s->active.at[i]->call == c)
            return s->active.at[i]->run;
    return NULL;
}

static void on_log(void *ctx, stet_call *c, const char *bytes, size_t len) {
    stet_run *run = run_of(ctx, c);
    if (run)
        stet_run_log(run, "stderr", bytes, len);
}

static void on_progress(void *ctx, stet_call *c, int64_t done, int64_t total, const char *note) {
    stet_run *run = run_of(ctx, c);
    if (run)
        stet_run_progress(run, done, total, note);
}

/* A line that is about no call in particular goes to whoever runs. */
static void on_say(void *ctx, const char *line) {
    call_state *s = ctx;
    if (s->active.len > 0)
        stet_run_log(s->active.at[s->active.len - 1]->run, "stet", line, strlen(line));
}

static stet_status call_open(const stet_module_host *host, void **state, stet_error *err) {
    (void)err;
    call_state *s = stet_alloc_zero(sizeof *s);
    s->host = *host;
    *state = s;
    return STET_OK;
}

/* With the first call, not before: a run in which all of them stand opens nothing. */
static stet_status make_ready(call_state *s, stet_error *err) {
    if (s->executor)
        return STET_OK;
    stet_status status = stet_calls_config_read(s->host.project, &s->config, err);
    if (status == STET_OK && !s->repo)
        status = stet_repo_open(s->host.project, 0, &s->repo, err);
    stet_executor_opts more = {.say = on_say, .log = on_log, .progress = on_progress, .ctx = s};
    if (s->host.jobs > 0 && (size_t)s->host.jobs > s->config.adapters)
        s->config.adapters = (size_t)s->host.jobs;
    if (status == STET_OK)
        status = stet_calls_open(s->host.project, s->repo, s->host.loop, &s->config, NULL, &more, &s->executor, err);
    return status;
}

static void call_close(void *state) {
    call_state *s = state;
    assert(s->active.len == 0);
    stet_executor_close(s->executor);
    stet_repo_close(s->repo);
    stet_calls_config_release(&s->config);
    stet_vec_release(&s->active);
    stet_free(s);
}

static void ended(void *ctx, stet_call *c);

static void run_free(call_run *r) {
    call_state *s = r->state;
    for (size_t i = 0; i < s->active.len; i++)
        if (s->active.at[i] == r) {
            memmove(s->active.at + i, s->active.at + i + 1, (--s->active.len - i) * sizeof *s->active.at);
            break;
        }
    s->running -= !r->waiting;
    stet_call_free(r->call);
    stet_free(r);
}

static void fill_slots(call_state *s);

static void fail_run(call_run *r, stet_error *err) {
    stet_run *run = r->run;
    call_state *s = r->state;
    run_free(r);
    stet_run_fail(run, err);
    stet_error_clear(err);
    fill_slots(s);
}

/* Files that the function names, as documents. */
typedef struct code_reads {
    call_run *r;
    stet_files *files;
    stet_names fresh;  /* paths that nobody has followed yet */
    bool new_patterns; /* the same for patterns */
    stet_status status;
    stet_error *err;
} code_reads;

static void read_code_doc(code_reads *c, const char *id) {
    stet_value v;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_run_read_doc(c->r->run, id, &v, &inner);
    if (status != STET_OK && status != STET_NOT_FOUND && status != STET_UNSUPPORTED && c->status == STET_OK) {
        c->status = status;
        stet_error_move(c->err, &inner);
    }
    stet_error_clear(&inner);
}

static void read_code(void *ctx, const char *path, stet_function_use use, const char *written) {
    code_reads *c = ctx;
    stet_look known;
    bool pattern = is_pattern(use);
    (void)written;
    /* A word like [ is no pattern: nobody could look for it. */
    if (c->status != STET_OK || !*path || (pattern && stet_glob_check(path, NULL) != STET_OK))
        return;
    stet_buf glob = STET_BUF(0);
    char *file = pattern ? NULL : stet_file_id(path);
    if (pattern) {
        stet_buf_str(&glob, STET_GLOB_PREFIX);
        stet_path_escape(path, &glob);
    }
    const char *id = pattern ? stet_buf_cstr(&glob) : file;
    /* A word that can't be the name of a file is none now and later. */
    if (pattern && (stet_files_in_doubt(c->files, id) || !stet_files_follows(c->files, id)))
        c->new_patterns |= stet_files_follow(c->files, id, NULL) == STET_OK;
    else if (!pattern && !stet_files_known(c->files, path, &known) && stet_files_follow(c->files, id, NULL) == STET_OK)
        *stet_vec_add(&c->fresh) = stet_strdup(path);
    read_code_doc(c, id);
    stet_buf_release(&glob);
    stet_free(file);
}

/* A variable that is passed on. Another process that came later may have written its own value into the document: what
 * this one makes would be taken for the result of that value. */
static void read_variable(void *ctx, const char *name) {
    code_reads *c = ctx;
    stet_error none = STET_ERROR_INIT;
    stet_value seen = stet_value_null();
    if (c->status != STET_OK)
        return;
    char *id = stet_asprintf(STET_ENV_PREFIX "%s", name);
    if (!stet_files_follows(c->files, id) && stet_files_follow(c->files, id, NULL) == STET_OK)
        c->new_patterns = true;
    stet_status status = stet_run_read_doc(c->r->run, id, &seen, &none);
    stet_error_clear(&none);
    if (c->r->newest && (status == STET_OK || status == STET_NOT_FOUND) &&
        stet_files_is_overruled(c->files, name, status == STET_OK ? seen : stet_value_null())) {
        c->status = stet_fail(c->err, STET_BUSY, "%s: another run has begun with another value of %s",
                              stet_run_name(c->r->run), name);
        stet_hint(c->err, "end one of them, or run them in two copies of the project");
    }
    stet_free(id);
}

/* Reads the documents of everything that the function names. What nobody has followed before is looked at first; that
 * changes documents that this run has read, which are read again when the call has ended. */
static stet_status read_code_docs(call_run *r, const char *function, stet_error *err) {
    stet_function f;
    stet_function_found found;
    code_reads c = {.r = r, .files = r->state->host.files, .err = err};
    const char *root = stet_project_root(r->state->host.project);
    if (!c.files || !stet_calls_is_local(function) || !parse_here(function, &f))
        return STET_OK;
    stet_function_variables(&f, read_variable, &c);
    stet_function_named(&f, root, read_code, &c);
    /* What a pattern matches now is read too: its document names the files and says nothing about them. The same holds
     * for directories behind links. */
    if (c.status == STET_OK && stet_function_find(&f, root, &found, NULL) == STET_OK) {
        for (size_t i = 0; i < found.code.len; i++)
            read_code(&c, found.code.at[i], STET_FUNCTION_WORD, NULL);
        for (size_t i = 0; i < found.dirs.len; i++)
            read_code(&c, found.dirs.at[i], STET_FUNCTION_WORD, NULL);
        stet_function_found_release(&found);
    }
    if (c.status == STET_OK && c.fresh.len > 0)
        c.status = stet_files_update(c.files, (const char *const *)c.fresh.at, NULL, c.fresh.len, err);
    if (c.status == STET_OK && c.new_patterns)
        c.status = stet_files_rematch(c.files, err);
    if (c.status == STET_OK && (c.fresh.len > 0 || c.new_patterns))
        c.status = stet_files_keep(c.files, err);
    stet_names_release(&c.fresh);
    stet_function_release(&f);
    return c.status;
}

/* The inputs that `order` leaves out, or null if it names all of them; the caller's. */
static stet_value left_out(stet_value inputs, stet_value order) {
    stet_value rest = stet_value_object();
    for (size_t i = 0; i < stet_value_count(inputs); i++) {
        size_t len, n;
        const char *key = stet_value_key_at(inputs, i, &len);
        bool passed = false;
        for (size_t k = 0; k < stet_value_count(order) && !passed; k++) {
            stet_value name = stet_value_at(order, k);
            const char *text = stet_value_as_string(&name, &n);
            passed = n == len && memcmp(text, key, len) == 0;
        }
        if (!passed)
            stet_value_put_n(&rest, key, len, stet_value_retain(stet_value_at(inputs, i)));
    }
    if (stet_value_count(rest) > 0)
        return rest;
    stet_value_release(rest);
    return stet_value_null();
}

/* The node of the call, from the inputs and files as they are now. */
static stet_status evaluate(call_run *r, stet_hash *node, stet_error *err) {
    stet_value d = stet_run_descriptor(r->run), order = stet_value_get(d, "args"), inputs,
               function = stet_value_get(d, "function");
    stet_status status = stet_run_inputs(r->run, &inputs, err);
    if (status != STET_OK)
        return status;
    char *open = NULL;
    bool named = stet_value_type(order) == STET_TYPE_ARRAY;
    size_t n = named ? stet_value_count(order) : stet_value_count(inputs);
    stet_call_arg *args = stet_alloc_zero((n + 1) * sizeof *args);
    for (size_t i = 0; i < n; i++) {
        stet_value name = named ? stet_value_at(order, i) : stet_value_null();
        args[i].value = named ? stet_value_get(inputs, stet_value_as_string(&name, NULL)) : stet_value_at(inputs, i);
    }
    stet_calls_node_spec spec = {.root = stet_project_root(r->state->host.project),
                                 .function = stet_value_as_string(&function, NULL),
                                 .args = args,
                                 .count = n,
                                 .beside = named ? left_out(inputs, order) : stet_value_null(),
                                 .open = &open};
    char *why = NULL;
    status = stet_calls_unseen(r->state->repo, &spec, &why, err);
    if (status == STET_OK && why) { /* nothing would tell when it is outdated */
        status = stet_fail(err, STET_INVALID, "%s: what this call reads in the project is not known: %s",
                           stet_run_name(r->run), why);
        stet_hint(err,
                  "give it the files with files=, without paths that lead above the project, or use a command node");
    }
    stet_free(why);
    if (status == STET_OK)
        status = read_code_docs(r, spec.function, err);
    if (status == STET_OK)
        status = stet_calls_node(r->state->repo, &spec, node, err);
    r->open = open != NULL;
    stet_free(open);
    stet_value_release(spec.beside);
    stet_free(args);
    return status;
}

/* A call without cache of this node that an earlier process has left behind. */
static bool left_behind(call_run *r, char execution[37]) {
    stet_attempts list = {0};
    bool found = false;
    stet_attempt_filter live = {.node = &r->node, .live = true, .limit = 1000};
    if (stet_attempt_list(r->state->repo, &live, &list, NULL, NULL) != STET_OK)
        return false;
    for (size_t i = 0; i < list.len && !found; i++)
        if (!list.at[i].cache) {
            memcpy(execution, list.at[i].execution, sizeof list.at[i].execution);
            found = true;
        }
    stet_attempts_release(&list);
    return found;
}

static stet_status begin(call_run *r, stet_error *err) {
    stet_value d = stet_run_descriptor(r->run), v;
    stet_run_works(r->run, true);
    stet_executor *x = r->state->executor;
    stet_call_free(r->call);
    r->call = NULL;
    r->forced |= r->open;
    char execution[37];
    if (r->forced && left_behind(r, execution))
        return stet_executor_resume(x, execution, ended, r, &r->call, err);
    stet_call_request request = {.node = r->node, .cache = !r->forced};
    if (stet_value_find(d, "timeout", 7, &v))
        request.timeout_ms = stet_units_ms(v);
    if (stet_value_find(d, "retries", 7, &v))
        request.attempts = stet_value_as_int(v) + 1;
    v = stet_value_get(d, "remote");
    char *uri = NULL;
    stet_status status = text_of(&v) ? stet_calls_remote(r->state->repo, text_of(&v), &uri, err) : STET_OK;
    request.remote = uri;
    if (status == STET_OK)
        status = stet_executor_start(x, &request, ended, r, &r->call, err);
    stet_free(uri);
    return status;
}

/* What a failed call says, as the action's error. */
static void failure(call_run *r, stet_hash result, stet_error *err) {
    stet_value v = stet_value_null(), e, message;
    if (stet_repo_dag_value(r->state->repo, result, &v, err) != STET_OK)
        return;
    e = stet_value_get(v, "error");
    message = stet_value_get(e, "message");
    const char *text = text_of(&message);
    stet_fail(err, STET_FAILED, "%s: %s", stet_run_name(r->run), text ? text : "the call failed");
    stet_value said = stet_value_get(e, "stderr");
    size_t len = 0;
    if (stet_value_type(said) == STET_TYPE_STRING && stet_value_as_string(&said, &len) && len > 0)
        stet_run_log(r->run, "stderr", stet_value_as_string(&said, NULL), len);
    for (size_t i = 0; i < stet_value_count(e); i++)
        if (strcmp(stet_value_key_at(e, i, NULL), "message") != 0)
            stet_detail(err, stet_value_key_at(e, i, NULL), stet_value_retain(stet_value_at(e, i)));
    if (stet_value_type(e) != STET_TYPE_OBJECT)
        stet_detail(err, "failure", stet_value_retain(v));
    stet_value_release(v);
}

static void ended(void *ctx, stet_call *c) {
    call_run *r = ctx;
    stet_error err = STET_ERROR_INIT;
    stet_hash now = {{0}};
    stet_call_state state = stet_call_state_of(c);
    stet_call_outcome o = *stet_call_outcome_of(c);
    stet_status status = stet_run_refresh(r->run, &err);
    r->newest = true;
    if (status == STET_OK)
        status = evaluate(r, &now, &err);
    r->newest = false;
    bool same = status == STET_OK && stet_hash_equal(now, r->node);
    bool again = status == STET_OK && !same;
    if (same && state == STET_CALL_PINNED_HIT && !o.ok && !r->forced)
        r->forced = again = true;
    if (again && ++r->again > MAX_AGAIN) /* not its failure: it stays outdated */
        status = stet_fail(&err, STET_BUSY, "%s: its inputs changed %d times before the call was done",
                           stet_run_name(r->run), MAX_AGAIN);
    else if (again) {
        if (!same)
            r->forced = false;
        r->node = now;
        stet_run_suspend(r->run);
        status = begin(r, &err);
        if (status == STET_OK)
            return;
    }
    if (status == STET_OK && state == STET_CALL_FAILED) {
        /* Cancelled by somebody else: it is outdated still, but is not begun again at once. */
        stet_fail(&err, o.error->status == STET_CANCELLED ? STET_BUSY : o.error->status, "%s: %s",
                  stet_run_name(r->run), o.error->message);
        stet_hint(&err, "%s", o.error->hint);
    } else if (status == STET_OK && !o.ok)
        failure(r, o.result, &err);
    else if (status == STET_OK) {
        stet_value v;
        status = stet_repo_dag_value(r->state->repo, o.result, &v, &err);
        if (status == STET_OK) {
            stet_run *run = r->run;
            call_state *s = r->state;
            if (state == STET_CALL_PINNED_HIT)
                stet_run_restored(run);
            run_free(r);
            stet_run_succeed(run, v);
            fill_slots(s);
            return;
        }
    }
    fail_run(r, &err);
}

/* Begins calls that wait, as far as there are slots. Their inputs are read again: time has passed. Called when the run
 * that left a slot has ended, because only one run at a time has its section open. */
static void fill_slots(call_state *s) {
    size_t slots = s->host.jobs > 0 ? (size_t)s->host.jobs : SLOTS;
    for (;;) {
        call_run *r = NULL;
        for (size_t i = 0; i < s->active.len && !r; i++)
            r = s->active.at[i]->waiting ? s->active.at[i] : NULL;
        bool stopped = s->host.stopped && *s->host.stopped;
        if (!r || (s->running >= slots && !stopped) ||
            (s->host.cancelled && s->host.cancelled(s->host.cancelled_ctx))) /* all are about to be cancelled */
            return;
        stet_error err = STET_ERROR_INIT;
        r->waiting = false;
        s->running++;
        stet_status status = stopped
                                 ? stet_fail(&err, STET_CANCELLED, "%s: stopped before it began", stet_run_name(r->run))
                                 : stet_run_refresh(r->run, &err);
        if (status == STET_OK)
            status = evaluate(r, &r->node, &err);
        if (status == STET_OK) {
            stet_run_suspend(r->run);
            status = begin(r, &err);
        }
        if (status != STET_OK) {
            stet_run *run = r->run;
            run_free(r);
            stet_run_fail(run, &err);
            stet_error_clear(&err);
        }
    }
}

static stet_status call_start(void *state, stet_run *run, stet_error *err) {
    call_state *s = state;
    stet_error own = STET_ERROR_INIT;
    stet_status status = make_ready(s, &own);
    if (status != STET_OK) { /* what all calls need: not the failure of this one */
        stet_run_decline(run, &own);
        stet_error_clear(&own);
        return STET_OK;
    }
    call_run *r = stet_alloc_zero(sizeof *r);
    r->state = s;
    r->run = run;
    r->waiting = s->running >= (s->host.jobs > 0 ? (size_t)s->host.jobs : SLOTS);
    s->running += !r->waiting;
    *stet_vec_add(&s->active) = r;
    status = r->waiting ? STET_OK : evaluate(r, &r->node, err);
    if (status == STET_OK && !r->waiting)
        status = begin(r, err);
    if (status != STET_OK)
        run_free(r);
    return status;
}

/* The call goes on; whoever wants it next joins it. */
static void call_cancel(void *state, stet_run *run) {
    call_state *s = state;
    for (size_t i = 0; i < s->active.len; i++)
        if (s->active.at[i]->run == run) {
            stet_error err = STET_ERROR_INIT;
            stet_fail(&err, STET_CANCELLED, "%s: stopped waiting for its call", stet_run_name(run));
            fail_run(s->active.at[i], &err);
            return;
        }
}

const stet_module_kind stet_module_call = {.version = STET_MODULE_VERSION,
                                           .type = "call",
                                           .asynchronous = true,
                                           .open = call_open,
                                           .close = call_close,
                                           .check = call_check,
                                           .use = call_use,
                                           .fingerprint = call_fingerprint,
                                           .names = call_names,
                                           .start = call_start,
                                           .cancel = call_cancel};
