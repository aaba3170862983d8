/* python.c - the module kind `python`: checks descriptors, and runs functions in processes of Python. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/path.h"
#include "module/bound.h"
#include "module/kinds.h"
#include "module/python.h"
#include "os/clock.h"

#define MAX_STARTS 10 /* of a process whose file changes all the time */
#define END_US     10000000

static stet_status wrong(stet_error *err, const char *hint, const char *message) {
    stet_fail(err, STET_INVALID, "%s", message);
    stet_hint(err, "%s", hint);
    return STET_INVALID;
}

static const char *text_of(const stet_value *v) {
    size_t len;
    const char *s = stet_value_type(*v) == STET_TYPE_STRING ? stet_value_as_string(v, &len) : NULL;
    return s && strlen(s) == len && len > 0 ? s : NULL;
}

/* NAME, or NAME.NAME for what is inside a class. */
static bool is_name(const char *s) {
    return s[0] != '.' && !strstr(s, "..") && s[strlen(s) - 1] != '.' && s[strcspn(s, " \t\r\n:/\\()[]\"'-")] == '\0';
}

static stet_status check_implementation(stet_value implementation, stet_error *err) {
    static const char example[] = "write {\"file\": \"steps.py\", \"export\": \"load\"}";
    static const char *const members[] = {"file", "export"};
    if (stet_value_type(implementation) != STET_TYPE_OBJECT)
        return wrong(err, example, "a module of type \"python\" needs an implementation: a file and a function");
    stet_value file = stet_value_get(implementation, "file"), export_name = stet_value_get(implementation, "export");
    const char *path = text_of(&file), *function = text_of(&export_name);
    char *normal = NULL;
    if (!path || path[0] == '/' || stet_path_normal(NULL, "", path, &normal, NULL) != STET_OK ||
        strncmp(normal, "../", 3) == 0) {
        stet_free(normal);
        return wrong(err, example, "the implementation's file is no path inside the project");
    }
    stet_free(normal);
    if (!function || !is_name(function))
        return wrong(err, example, "the implementation's export is no name of a function");
    return stet_module_members(implementation, members, sizeof members / sizeof *members, "implementation",
                               "docs/python.md", err);
}

static bool limit_ok(stet_value limits, const char *name, int64_t max) {
    stet_value v;
    return !stet_value_find(limits, name, strlen(name), &v) ||
           (stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) > 0 && stet_value_as_int(v) <= max);
}

static stet_status check_files(stet_value files, stet_value inputs, stet_error *err) {
    for (size_t i = 0; i < (stet_value_type(files) == STET_TYPE_ARRAY ? stet_value_count(files) : 0); i++) {
        stet_value name = stet_value_at(files, i);
        const char *s = text_of(&name);
        if (!s || !stet_value_find(inputs, s, strlen(s), NULL))
            return wrong(err, "name inputs of the node", "\"files\" names what is no input");
    }
    return stet_value_type(files) == STET_TYPE_ARRAY ? STET_OK
                                                     : wrong(err, "name inputs of the node", "\"files\" is no list");
}

static stet_status check(stet_value d, stet_value node, stet_error *err) {
    static const char *const members[] = {"type",  "implementation", "handler",      "interpreter", "limits",
                                          "files", "argumentSchema", "resultSchema", "metadata"};
    stet_value v;
    stet_status status = stet_module_members(d, members, sizeof members / sizeof *members, "module of type \"python\"",
                                             "docs/python.md", err);
    if (status == STET_OK && stet_value_find(d, "handler", 7, &v) && stet_value_type(v) != STET_TYPE_BOOL)
        status = wrong(err, "write true, or leave it out", "\"handler\" is no boolean");
    if (status == STET_OK && stet_value_find(d, "limits", 6, &v) &&
        (stet_value_type(v) != STET_TYPE_OBJECT || !limit_ok(v, "timeMs", 86400000) ||
         !limit_ok(v, "memoryMb", 1 << 24)))
        status = wrong(err, "write {\"timeMs\": 60000, \"memoryMb\": 1024}", "\"limits\" are no limits");
    if (status == STET_OK && stet_value_find(d, "interpreter", 11, &v) && (!text_of(&v) || !strchr(text_of(&v), '/')))
        status = wrong(err, "write \"/usr/bin/python3\", or \".venv/bin/python\" below the project",
                       "\"interpreter\" is no path of a program");
    if (status == STET_OK && stet_value_find(d, "files", 5, &v))
        status = check_files(v, stet_value_get(node, "inputs"), err);
    return status == STET_OK ? check_implementation(stet_value_get(d, "implementation"), err) : status;
}

static stet_input_use use(stet_value descriptor, const char *input, size_t len) {
    (void)descriptor;
    (void)input;
    (void)len;
    return STET_INPUT_MAYBE;
}

static int64_t setting(stet_value config, const char *name, int64_t otherwise) {
    stet_value v = stet_value_type(config) == STET_TYPE_OBJECT ? stet_value_get(config, name) : stet_value_null();
    return stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) > 0 ? stet_value_as_int(v) : otherwise;
}

static stet_status open_kind(const stet_module_host *host, void **state, stet_error *err) {
    (void)err;
    python_state *s = stet_alloc_zero(sizeof *s);
    s->host = *host;
    s->root = stet_strdup(host->project_root);
    s->files = host->files;
    s->limits.time_ms = setting(host->config, "time_limit_ms", PYTHON_TIME_MS);
    s->limits.memory_mb = setting(host->config, "memory_limit_mb", PYTHON_MEMORY_MB);
    *state = s;
    return STET_OK;
}

static void close_kind(void *state) {
    python_state *s = state;
    while (s->processes.len > 0)
        python_process_end(s, s->processes.at[0]);
    stet_vec_release(&s->processes);
    stet_free(s->root);
    stet_free(s);
}

/* What is imported is no part of it: that is read while running, and recorded as reads (python_code.c). */
static stet_status fingerprint(void *state, stet_value descriptor, stet_hash *out, stet_error *err) {
    static const char *const parts[] = {"implementation", "interpreter", "limits", "files"};
    (void)state;
    stet_status status = check_implementation(stet_value_get(descriptor, "implementation"), err);
    if (status != STET_OK)
        return status;
    stet_value all = stet_value_object(), v;
    stet_value_put(&all, "kind", stet_value_string("python"));
    stet_value_put(&all, "version", stet_value_int(PYTHON_VERSION));
    stet_value_put(&all, "handler", stet_value_bool(stet_value_as_bool(stet_value_get(descriptor, "handler"))));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (stet_value_find(descriptor, parts[i], strlen(parts[i]), &v))
            stet_value_put(&all, parts[i], stet_value_retain(v));
    *out = stet_hash_value(all);
    stet_value_release(all);
    return STET_OK;
}

static void name_files(const char *root, stet_value descriptor, stet_value node, stet_named_fn each, void *ctx) {
    stet_value file = stet_value_get(stet_value_get(descriptor, "implementation"), "file");
    char *path = NULL;
    (void)node;
    if (text_of(&file) && stet_path_normal(root, "", text_of(&file), &path, NULL) == STET_OK)
        each(ctx, STET_NAMED_READ, path, NULL);
    stet_free(path);
}

/* The interpreter: a path of the node, from the project's root, or that of Debian. Caller frees. */
static char *interpreter_of(const python_state *s, stet_value descriptor) {
    stet_value v = stet_value_get(descriptor, "interpreter");
    const char *text = text_of(&v);
    return text ? stet_file_join(s->root, text) : stet_strdup(PYTHON_INTERPRETER);
}

/* The document of the interpreter as it is named: a link that is pointed elsewhere counts. */
static stet_status read_interpreter(python_run *r, const char *interpreter, stet_error *err) {
    python_look look = {.there = true, .any = true};
    bool there; /* otherwise starting it says so */
    stet_status status = stet_path_normal(r->s->root, "", interpreter, &look.path, err);
    if (status == STET_OK && r->recorded)
        status = python_code_read(r, &look, 1, &there, err);
    stet_free(look.path);
    return status;
}

/* The file leads out of the project, where nobody would see it change. */
static stet_status check_place(const python_state *s, const char *file, stet_error *err) {
    char *full = stet_file_join(s->root, file);
    bool inside = true;
    stet_status status = STET_OK;
    if (access(full, F_OK) == 0)
        status = stet_file_inside(s->root, full, &inside, err);
    if (status == STET_OK && !inside)
        status = stet_fail(err, STET_DENIED, "%s leads out of the project", file);
    stet_free(full);
    return status;
}

/* A document has changed since this run read it: the run conflicts with that when it is stored, and is repeated on a newer
 * state. (Declined, it would be repeated on the same one.) */
static stet_status newer(const python_run *r, stet_error *err) {
    return stet_fail(err, STET_FAILED, "%s: a file that it reads has changed just now", stet_run_name(r->run));
}

/* Y1: a process that has imported what the documents say. */
static stet_status process_of(python_run *r, stet_error *err) {
    stet_value descriptor = stet_run_descriptor(r->run),
               file_value = stet_value_get(stet_value_get(descriptor, "implementation"), "file");
    const char *written = stet_value_as_string(&file_value, NULL);
    char *file = NULL, *interpreter = interpreter_of(r->s, descriptor);
    bool as_seen = false;
    stet_status status = stet_path_normal(r->s->root, "", written, &file, err);
    if (status == STET_OK)
        status = check_place(r->s, file, err);
    if (status == STET_OK)
        status = read_interpreter(r, interpreter, err);
    for (int i = 0; i < MAX_STARTS && status == STET_OK && !as_seen; i++) {
        status = python_process_get(r->s, interpreter, file, &r->p, r->run, err);
        if (status == STET_OK)
            status = python_code_read(r, r->p->looks.at, r->p->looks.len, &as_seen, err);
        if (status == STET_OK && !as_seen) {
            python_process_end(r->s, r->p);
            r->p = NULL;
        }
    }
    if (status == STET_OK && r->outdated)
        status = newer(r, err);
    else if (status == STET_OK && !as_seen)
        status = stet_fail(err, STET_CONFLICT, "%s changes all the time", file);
    if (status == STET_OK && r->p->error)
        status = stet_fail(err, STET_FAILED, "%s", r->p->error);
    stet_free(file);
    stet_free(interpreter);
    return status;
}

static stet_status answer_look(python_run *r, stet_value message, stet_value *answer, stet_error *err) {
    python_looks looks = {0};
    stet_buf refused = STET_BUF(4096);
    bool lazy = stet_value_as_bool(stet_value_get(message, "lazy"));
    stet_status status = STET_OK;
    *answer = stet_value_object();
    if (!python_looks_add(r->s, stet_value_get(message, "looks"), &looks))
        status = stet_fail(err, STET_FAILED, "the process of Python told of no files");
    if (status == STET_OK)
        status = python_code_opened(r, &looks, lazy, &refused, err);
    if (refused.len > 0)
        stet_value_put(answer, "refused", stet_value_string(stet_buf_cstr(&refused)));
    python_looks_release(&looks);
    stet_buf_release(&refused);
    return status;
}

/* Answers a request. What fails for a reason of the run's is an exception in Python, and remembered: whatever the
 * function makes of it, the run fails for that reason. */
static stet_status answer(python_run *r, const char *op, stet_value message, stet_error *err) {
    stet_value reply = stet_value_null();
    stet_error mine = STET_ERROR_INIT;
    stet_status status =
        strcmp(op, "look") == 0 ? answer_look(r, message, &reply, &mine) : python_serve(r, op, message, &reply, &mine);
    if (status != STET_OK) {
        stet_value_release(reply);
        reply = stet_value_object();
        stet_value_put(&reply, "error", stet_value_string(mine.message));
        if (r->error.status == STET_OK)
            stet_error_move(&r->error, &mine);
    }
    stet_error_clear(&mine);
    status = python_process_send(r->p, reply, err);
    stet_value_release(reply);
    return status;
}

/* How an action ended that said nothing about it. */
static stet_status fail_silent(stet_value ended, stet_error *err) {
    int64_t number = stet_value_as_int(stet_value_get(ended, "signal"));
    if (number > 0) {
        stet_fail(err, STET_FAILED, "the function was killed by signal %d (%s)", (int)number, strsignal((int)number));
        stet_hint(err, "if the machine ran out of memory, set \"limits\": {\"memoryMb\": N} in the module");
    } else {
        stet_fail(err, STET_FAILED, "the function ended its process with exit code %d",
                  (int)stet_value_as_int(stet_value_get(ended, "code")));
        stet_hint(err, "let it return a value or raise an exception");
    }
    return STET_FAILED;
}

/* From the call to the end of the action's process. `*result` belongs to the caller. */
static stet_status converse(python_run *r, stet_value *result, stet_error *err) {
    int64_t deadline = stet_clock_monotonic_us() + r->limits.time_ms * 1000;
    bool told = false, over = false;
    stet_status outcome = STET_OK;
    *result = stet_value_null();
    while (!over) {
        stet_value message, v;
        stet_status status = python_process_receive(r->s, r->p, r, deadline, &message, told ? NULL : err);
        if (status != STET_OK) { /* it is of no use any more, and neither is what it did */
            python_process_logs(r->p, r->run);
            python_process_end(r->s, r->p);
            r->p = NULL;
            return told ? outcome : status;
        }
        v = stet_value_get(message, "op");
        const char *op = text_of(&v) ? text_of(&v) : "";
        if (strcmp(op, "begin") == 0) {
            stet_error none = STET_ERROR_INIT;
            if (stet_proc_identify(stet_value_as_int(stet_value_get(message, "pid")), &r->p->action, &none) != STET_OK)
                stet_error_clear(&none); /* it has ended already */
        } else if (strcmp(op, "ended") == 0) {
            over = true;
            if (!told)
                outcome = fail_silent(message, err);
        } else if (strcmp(op, "done") == 0 || strcmp(op, "failed") == 0) {
            stet_value error = stet_value_get(message, "error");
            if (strcmp(op, "done") == 0)
                *result = stet_value_retain(stet_value_get(message, "result"));
            else
                outcome = stet_fail(err, STET_FAILED, "%s", text_of(&error) ? text_of(&error) : "it failed");
            if (stet_value_as_bool(stet_value_get(message, "memory")))
                stet_hint(err, "a function may take %lld MiB: set \"limits\": {\"memoryMb\": N} in the module",
                          (long long)r->limits.memory_mb);
            told = true;
            deadline = stet_clock_monotonic_us() + END_US;
        } else {
            status = answer(r, op, message, err);
            if (status != STET_OK) {
                stet_value_release(message);
                python_process_end(r->s, r->p);
                r->p = NULL;
                return status;
            }
        }
        stet_value_release(message);
    }
    python_process_rest(r->p, r->run);
    return outcome;
}

/* Files that it was given are looked at before and after: a library may open them without Python's knowledge. */
static stet_status look_at_files(python_run *r, stet_error *err) {
    python_looks looks = {0};
    stet_buf refused = STET_BUF(4096);
    for (size_t i = 0; i < r->files.len; i++)
        *stet_vec_add(&looks) = (python_look){.path = stet_strdup(r->files.at[i]), .any = true};
    stet_status status = looks.len > 0 ? python_code_opened(r, &looks, false, &refused, err) : STET_OK;
    python_looks_release(&looks);
    stet_buf_release(&refused);
    return status;
}

static stet_status call(python_run *r, stet_value *result, stet_error *err) {
    stet_value descriptor = stet_run_descriptor(r->run), message = stet_value_object(), inputs = stet_value_null();
    bool positional = false;
    stet_status status = python_inputs(r, &inputs, &positional, err);
    if (status == STET_OK)
        status = look_at_files(r, err);
    if (status == STET_OK && r->outdated)
        status = newer(r, err);
    if (stet_run_waits(r->run)) { /* what it reads has turned out to be outdated: an effect must not begin */
        if (status != STET_OK && err)
            stet_error_clear(err);
        status = stet_fail(err, STET_CANCELLED, "%s: it waits", stet_run_name(r->run));
    }
    stet_value_put(&message, "inputs", inputs);
    stet_value_put(&message, "positional", stet_value_bool(positional));
    stet_value_put(&message, "handler", stet_value_bool(r->handler));
    stet_value_put(&message, "event", stet_value_retain(stet_run_event(r->run)));
    stet_value_put(&message, "free", stet_value_bool(stet_run_is_effect(r->run)));
    stet_value_put(&message, "memory", stet_value_int(r->limits.memory_mb << 20));
    stet_value_put(&message, "export",
                   stet_value_retain(stet_value_get(stet_value_get(descriptor, "implementation"), "export")));
    if (status == STET_OK)
        status = python_process_send(r->p, message, err);
    stet_value_release(message);
    if (status != STET_OK)
        return status;
    status = converse(r, result, err);
    if (r->recorded && !stet_run_is_effect(r->run) && status != STET_CANCELLED) {
        stet_error mine = STET_ERROR_INIT;
        stet_status again = python_code_again(r, &mine);
        if (again == STET_OK && r->outdated)
            again = newer(r, &mine);
        else if (again == STET_OK && r->touched)
            again = stet_fail(&mine, STET_CONFLICT, "%s: a file that it reads has changed while it ran",
                              stet_run_name(r->run));
        if (again != STET_OK) {
            if (err)
                stet_error_clear(err);
            stet_error_move(err, &mine);
            status = again;
        }
        stet_error_clear(&mine);
    }
    if (r->error.status != STET_OK && status != STET_CONFLICT && status != STET_CANCELLED) {
        if (err)
            stet_error_clear(err);
        status = r->error.status;
        stet_error_move(err, &r->error);
    }
    return status;
}

static stet_status start(void *state, stet_run *run, stet_error *err) {
    python_state *s = state;
    stet_value descriptor = stet_run_descriptor(run), limits = stet_value_get(descriptor, "limits"),
               result = stet_value_null();
    python_run r = {.s = s, .run = run, .error = STET_ERROR_INIT};
    r.handler = stet_value_as_bool(stet_value_get(descriptor, "handler"));
    r.recorded = s->files && !r.handler; /* no record is kept of a handler's run */
    r.limits.time_ms = setting(limits, "timeMs", s->limits.time_ms);
    r.limits.memory_mb = setting(limits, "memoryMb", s->limits.memory_mb);
    stet_status status = check_implementation(stet_value_get(descriptor, "implementation"), err);
    if (status == STET_OK)
        status = process_of(&r, err);
    if (status == STET_OK)
        status = call(&r, &result, err);
    if (status == STET_OK)
        stet_run_succeed(run, result);
    else
        stet_value_release(result);
    python_opened_release(&r);
    stet_names_release(&r.files);
    stet_error_clear(&r.error);
    return status;
}

const stet_module_kind stet_module_python = {
    .version = STET_MODULE_VERSION,
    .type = "python",
    .open = open_kind,
    .close = close_kind,
    .check = check,
    .use = use,
    .fingerprint = fingerprint,
    .start = start,
    .names = name_files,
};
