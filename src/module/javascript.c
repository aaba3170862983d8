/* javascript.c - the module kind `javascript`: loads the plug-in and runs functions in it. */

#include "module/javascript.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "files/files.h"
#include "files/path.h"
#include "module/kinds.h"
#include "module/library.h"
#include "os/clock.h"
#include "os/file.h"

#define PACKAGE "libjavascriptcoregtk-4.1-0"

typedef struct javascript {
    char *root;
    stet_files *files; /* of the space that is run, or NULL */
    stet_javascript_limits limits;
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    const stet_javascript_plugin *plugin; /* NULL until something runs */
    stet_javascript_engine *engine;
    stet_map marks;    /* path to file_mark */
    stet_map programs; /* compiled ones, by kept_key */
} javascript;

/* Programs kept; more than a pattern that is written by hand has. */
#define MAX_PROGRAMS 4096

/* What a file was when it was last hashed. One that was changed in the last moment is hashed again. */
typedef struct file_mark {
    struct timespec mtime, ctime;
    off_t size;
    ino_t inode;
    stet_hash hash;
} file_mark;

stet_status stet_javascript_load(const stet_javascript_plugin **out, stet_error *err) {
    static const stet_plugin_request wanted = {.name = "javascript",
                                               .symbol = "stet_plugin_javascript",
                                               .package = PACKAGE,
                                               .library = &stet_library_functions,
                                               .library_size = sizeof stet_library_functions};
    const stet_plugin *plugin;
    stet_status status = stet_plugin_load(&wanted, &plugin, err);
    if (status == STET_OK)
        *out = (const stet_javascript_plugin *)plugin; /* which begins with it */
    return status;
}

bool stet_javascript_is_pattern(const char *file) {
    size_t n = strlen(file);
    return (n > 3 && strcmp(file + n - 3, ".js") == 0) || (n > 4 && strcmp(file + n - 4, ".mjs") == 0);
}

static int64_t setting(stet_value config, const char *name, int64_t otherwise) {
    stet_value v = stet_value_type(config) == STET_TYPE_OBJECT ? stet_value_get(config, name) : stet_value_null();
    return stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) > 0 ? stet_value_as_int(v) : otherwise;
}

stet_status stet_javascript_pattern(void *script, const char *file, const char *text, size_t len, stet_value *out,
                                    stet_error *err) {
    const stet_javascript_script none = {0}, *how = script ? script : &none;
    const stet_javascript_plugin *plugin;
    stet_javascript_engine *engine;
    stet_javascript_source source = {.file = file,
                                     .text = text,
                                     .len = len,
                                     .limits = {setting(how->config, "time_limit_ms", STET_JAVASCRIPT_TIME_MS),
                                                setting(how->config, "memory_limit_mb", STET_JAVASCRIPT_MEMORY_MB)}};
    stet_status status = stet_javascript_load(&plugin, err);
    if (status == STET_OK)
        status = plugin->open(&engine, err);
    if (status != STET_OK)
        return status;
    plugin->cancel(engine, how->cancelled, how->ctx);
    status = plugin->pattern(engine, &source, out, err);
    plugin->close(engine);
    return status;
}

static stet_status refuse(stet_error *err, const char *hint, const char *message) {
    stet_fail(err, STET_INVALID, "%s", message);
    stet_hint(err, "%s", hint);
    return STET_INVALID;
}

/* Relative, and without a way out of the project. */
static bool path_stays_inside(const char *path) {
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return false;
    }
    return true;
}

static stet_status check_implementation(stet_value implementation, stet_error *err) {
    static const char example[] = "write \"implementation\": \"({a, b}) => a + b\", or {\"file\": \"steps.js\", "
                                  "\"export\": \"load\"}";
    size_t len;
    if (stet_value_type(implementation) == STET_TYPE_STRING) {
        const char *text = stet_value_as_string(&implementation, &len);
        if (len > STET_JAVASCRIPT_MAX_TEXT)
            return refuse(err, "put it into a file, or make it smaller", "the text of the function is above 16 MiB");
        if (text[strspn(text, " \t\r\n")] == '\0')
            return refuse(err, example, "the implementation is empty");
        return STET_OK;
    }
    if (stet_value_type(implementation) != STET_TYPE_OBJECT)
        return refuse(err, example, "a module of type \"javascript\" needs an implementation");
    stet_value file = stet_value_get(implementation, "file"), export_name = stet_value_get(implementation, "export");
    if (stet_value_type(file) != STET_TYPE_STRING || !path_stays_inside(stet_value_as_string(&file, NULL)))
        return refuse(err, "write a path below the project's directory: {\"file\": \"steps.js\", \"export\": \"load\"}",
                      "the implementation's file is no path inside the project");
    if (stet_value_find(implementation, "export", 6, NULL) && stet_value_type(export_name) != STET_TYPE_STRING)
        return refuse(err, "write the name of what the file exports; \"default\" unless given",
                      "the implementation's export is no name");
    for (size_t i = 0; i < stet_value_count(implementation); i++) {
        const char *key = stet_value_key_at(implementation, i, NULL);
        if (strcmp(key, "file") != 0 && strcmp(key, "export") != 0) {
            stet_fail(err, STET_INVALID, "an implementation has no member \"%.60s\"", key);
            stet_hint(err, "its members are file and export");
            return STET_INVALID;
        }
    }
    return STET_OK;
}

static bool limit_ok(stet_value limits, const char *name, int64_t max) {
    stet_value v;
    return !stet_value_find(limits, name, strlen(name), &v) ||
           (stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) > 0 && stet_value_as_int(v) <= max);
}

static stet_status check(stet_value descriptor, stet_value node, stet_error *err) {
    static const char known[] = " type implementation handler limits argumentSchema resultSchema metadata ";
    (void)node;
    for (size_t i = 0; i < stet_value_count(descriptor); i++) {
        char word[64];
        snprintf(word, sizeof word, " %.60s ", stet_value_key_at(descriptor, i, NULL));
        if (!strstr(known, word)) {
            stet_fail(err, STET_INVALID, "a module of type \"javascript\" has no member \"%.60s\"",
                      stet_value_key_at(descriptor, i, NULL));
            stet_hint(err, "remove it, or put it into \"metadata\"");
            return STET_INVALID;
        }
    }
    stet_value handler, limits;
    if (stet_value_find(descriptor, "handler", 7, &handler) && stet_value_type(handler) != STET_TYPE_BOOL)
        return refuse(err, "write true, or leave it out", "\"handler\" is no boolean");
    if (stet_value_find(descriptor, "limits", 6, &limits) &&
        (stet_value_type(limits) != STET_TYPE_OBJECT || !limit_ok(limits, "timeMs", 86400000) ||
         !limit_ok(limits, "memoryMb", 1 << 20)))
        return refuse(err, "write {\"timeMs\": 10000, \"memoryMb\": 512}", "\"limits\" are no limits");
    return check_implementation(stet_value_get(descriptor, "implementation"), err);
}

/* The file of an implementation; the caller frees the path. */
static stet_status file_of(const javascript *js, stet_value implementation, char **path, stet_error *err) {
    stet_value file = stet_value_get(implementation, "file");
    stet_status status = check_implementation(implementation, err);
    if (status != STET_OK)
        return status;
    char *full = stet_file_join(js->root, stet_value_as_string(&file, NULL));
    bool inside;
    status = stet_file_inside(js->root, full, &inside, err);
    if (status == STET_OK && !inside) {
        struct stat st;
        char target[512];
        ssize_t n = stat(full, &st) != 0 && errno == ENOENT ? readlink(full, target, sizeof target) : -1;
        if (n >= 0) /* wherever it leads, nothing is there to be read */
            status = stet_fail(err, STET_NOT_FOUND, "%s: a link to %.*s: no such file", full, (int)n, target);
        else
            status = stet_fail(err, STET_DENIED, "%s leads out of the project", full);
    }
    if (status != STET_OK)
        stet_free(full);
    else
        *path = full;
    return status;
}

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static stet_status hash_file(javascript *js, const char *path, stet_hash *out, stet_error *err) {
    struct stat st;
    stet_slot *slot = stet_map_get(&js->marks, path, strlen(path));
    file_mark *mark = slot ? slot->p : NULL;
    int64_t now = stet_clock_ms() / 1000;
    bool there = stat(path, &st) == 0;
    if (mark && there && same_time(mark->mtime, st.st_mtim) && same_time(mark->ctime, st.st_ctim) &&
        mark->size == st.st_size && mark->inode == st.st_ino) {
        *out = mark->hash;
        return STET_OK;
    }
    stet_status status = stet_file_hash(path, out, NULL, err);
    if (status != STET_OK)
        return status;
    if (!mark) {
        mark = stet_alloc_zero(sizeof *mark);
        stet_map_put(&js->marks, path, strlen(path), (stet_slot){.p = mark});
    }
    /* Two writes within one tick of the file system's clock look alike: only an old time can be trusted. */
    *mark = (file_mark){.size = -1};
    if (there && now - st.st_mtim.tv_sec >= 2 && now - st.st_ctim.tv_sec >= 2)
        *mark = (file_mark){st.st_mtim, st.st_ctim, st.st_size, st.st_ino, *out};
    return STET_OK;
}

static stet_status open_kind(const stet_module_host *host, void **state, stet_error *err) {
    (void)err;
    javascript *js = stet_alloc_zero(sizeof *js);
    js->root = stet_strdup(host->project_root);
    js->files = host->files;
    js->cancelled = host->cancelled;
    js->cancelled_ctx = host->cancelled_ctx;
    js->limits.time_ms = setting(host->config, "time_limit_ms", STET_JAVASCRIPT_TIME_MS);
    js->limits.memory_mb = setting(host->config, "memory_limit_mb", STET_JAVASCRIPT_MEMORY_MB);
    *state = js;
    return STET_OK;
}

static void forget_programs(javascript *js) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&js->programs, &i, &key, &len, &slot);)
        js->plugin->forget(js->engine, slot->p);
    stet_map_clear(&js->programs);
}

/* A process that asks for it keeps one engine that nobody uses for the next state that the same thread opens: an engine
 * takes longer to make than a small piece to run, and no run can leave anything behind in it (one frozen realm,
 * ARCHITECTURE.md). A process that was forked off has no threads of it, and does not touch it. */
static _Thread_local bool keeping;
static _Thread_local const stet_javascript_plugin *spare_plugin;
static _Thread_local stet_javascript_engine *spare;
static _Thread_local pid_t spare_pid;

void stet_javascript_keep_engine(bool keep) {
    keeping = keep;
    if (!keep && spare && spare_pid == getpid())
        spare_plugin->close(spare);
    if (!keep)
        spare = NULL;
}

static void put_engine(javascript *js) {
    if (!keeping || spare || js->plugin->worn(js->engine)) {
        js->plugin->close(js->engine);
        return;
    }
    js->plugin->cancel(js->engine, NULL, NULL);
    spare_plugin = js->plugin;
    spare = js->engine;
    spare_pid = getpid();
}

static bool take_engine(javascript *js) {
    if (!spare || spare_pid != getpid())
        return false;
    js->engine = spare;
    spare = NULL;
    return true;
}

static void close_kind(void *state) {
    javascript *js = state;
    forget_programs(js);
    stet_map_release(&js->programs);
    if (js->engine)
        put_engine(js);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&js->marks, &i, &key, &len, &slot);)
        free(slot->p);
    stet_map_release(&js->marks);
    free(js->root);
    free(js);
}

static stet_input_use use(stet_value descriptor, const char *input, size_t len) {
    (void)descriptor;
    (void)input;
    (void)len;
    return STET_INPUT_MAYBE;
}

/* The text of a file is not part of it: that is read while running, and recorded as a read (program_of_file). */
static stet_status fingerprint(void *state, stet_value descriptor, stet_hash *out, stet_error *err) {
    (void)state;
    stet_value implementation = stet_value_get(descriptor, "implementation"), limits;
    stet_status status = check_implementation(implementation, err);
    if (status != STET_OK)
        return status;
    stet_value all = stet_value_object();
    stet_value_put(&all, "kind", stet_value_string("javascript"));
    stet_value_put(&all, "version", stet_value_int(STET_JAVASCRIPT_VERSION));
    stet_value_put(&all, "implementation", stet_value_retain(implementation));
    stet_value_put(&all, "handler", stet_value_bool(stet_value_as_bool(stet_value_get(descriptor, "handler"))));
    if (stet_value_find(descriptor, "limits", 6, &limits))
        stet_value_put(&all, "limits", stet_value_retain(limits));
    *out = stet_hash_value(all);
    stet_value_release(all);
    return STET_OK;
}

static stet_status engine_of(javascript *js, stet_error *err) {
    stet_status status = STET_OK;
    if (!js->plugin)
        status = stet_javascript_load(&js->plugin, err);
    if (status == STET_OK && !js->engine && !take_engine(js))
        status = js->plugin->open(&js->engine, err);
    if (status == STET_OK)
        js->plugin->cancel(js->engine, js->cancelled, js->cancelled_ctx);
    return status;
}

/* `text` is that of the file, if the implementation is one. */
static stet_status compile(javascript *js, stet_value descriptor, const stet_buf *text, void **program,
                           stet_error *err) {
    stet_value implementation = stet_value_get(descriptor, "implementation"),
               limits = stet_value_get(descriptor, "limits");
    stet_value file = stet_value_get(implementation, "file"), export_name = stet_value_get(implementation, "export");
    stet_javascript_source source = {.handler = stet_value_as_bool(stet_value_get(descriptor, "handler"))};
    source.limits.time_ms = setting(limits, "timeMs", js->limits.time_ms);
    source.limits.memory_mb = setting(limits, "memoryMb", js->limits.memory_mb);
    if (text) {
        source.file = stet_value_as_string(&file, NULL);
        source.export_name =
            stet_value_type(export_name) == STET_TYPE_STRING ? stet_value_as_string(&export_name, NULL) : "default";
        source.text = text->data;
        source.len = text->len;
    } else {
        source.text = stet_value_as_string(&implementation, &source.len);
    }
    stet_javascript_program *made;
    stet_status status = engine_of(js, err);
    if (status == STET_OK)
        status = js->plugin->prepare(js->engine, &source, &made, err);
    if (status == STET_OK)
        *program = made;
    return status;
}

static void keep_program(javascript *js, const stet_buf *key, void *program) {
    if (stet_map_len(&js->programs) >= MAX_PROGRAMS)
        forget_programs(js);
    stet_map_put(&js->programs, key->data, key->len, (stet_slot){.p = program});
}

static stet_status program_of_text(javascript *js, stet_value descriptor, void **program, stet_error *err) {
    stet_buf key = STET_BUF(0);
    stet_json_write(&key, descriptor, STET_JSON_CANONICAL);
    stet_slot *slot = stet_map_get(&js->programs, key.data, key.len);
    stet_status status = STET_OK;
    if (slot) {
        *program = slot->p;
    } else {
        status = check_implementation(stet_value_get(descriptor, "implementation"), err);
        if (status == STET_OK)
            status = compile(js, descriptor, NULL, program, err);
        if (status == STET_OK)
            keep_program(js, &key, *program);
    }
    stet_buf_release(&key);
    return status;
}

/* The file of an implementation is an input like any other: the run reads the document of the file, so that a change of
 * it makes the action dirty. What is compiled must be what the document says (C1): otherwise a file that changed
 * between the scan and the run, and changed back afterwards, would leave a result of code that no document ever spoke
 * of. Where the two differ the document is brought up to date first. That conflicts with the read of this run, which is
 * then dropped and repeated by the scheduler.
 *
 * Programs are kept by the hash of their text (C2): a process that runs for long never mixes two versions. */

#define MAX_LOOKS 10 /* at a file that changes all the time */

/* The program of a file as it is now, and the hash of its text. */
static stet_status compile_file(javascript *js, stet_value descriptor, stet_hash *hash, void **program,
                                stet_error *err) {
    stet_buf key = STET_BUF(0), text = STET_BUF(STET_JAVASCRIPT_MAX_TEXT + 1);
    char *path;
    stet_status status = file_of(js, stet_value_get(descriptor, "implementation"), &path, err);
    if (status != STET_OK)
        return status;
    stet_slot *slot = NULL;
    status = hash_file(js, path, hash, err);
    if (status == STET_OK) {
        stet_buf_add(&key, hash->bytes, sizeof hash->bytes);
        stet_json_write(&key, descriptor, STET_JSON_CANONICAL);
        slot = stet_map_get(&js->programs, key.data, key.len);
    }
    if (slot) {
        *program = slot->p;
    } else if (status == STET_OK) {
        status = stet_file_read(path, STET_JAVASCRIPT_MAX_TEXT, &text, err);
        if (status == STET_OK) { /* it may be another one than was hashed */
            *hash = stet_hash_of(text.data, text.len);
            status = compile(js, descriptor, &text, program, err);
        }
        if (status == STET_OK) {
            stet_buf_clear(&key);
            stet_buf_add(&key, hash->bytes, sizeof hash->bytes);
            stet_json_write(&key, descriptor, STET_JSON_CANONICAL);
            slot = stet_map_get(&js->programs, key.data, key.len);
            if (slot) {
                js->plugin->forget(js->engine, *program);
                *program = slot->p;
            } else {
                keep_program(js, &key, *program);
            }
        }
    }
    stet_buf_release(&key);
    stet_buf_release(&text);
    stet_free(path);
    return status;
}

/* What the document of a file says in the run's snapshot; that it was asked is recorded. */
static stet_status read_code(stet_run *run, const char *id, stet_look *out, stet_error *err) {
    stet_value v;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_run_read_doc(run, id, &v, &mine);
    *out = (stet_look){0};
    if (status == STET_OK && !stet_look_of_value(v, out))
        *out = (stet_look){.mode = 3}; /* damaged: no file is like that */
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status != STET_OK)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

static bool agrees(const stet_look *look, bool there, stet_hash hash) {
    return stet_look_there(look) == there && (!there || stet_hash_equal(look->hash, hash));
}

/* C1. A failure to compile is returned as such, once it is known to be a failure of the text that the document says. */
static stet_status program_of_file(javascript *js, stet_run *run, void **program, stet_error *err) {
    stet_value descriptor = stet_run_descriptor(run),
               file = stet_value_get(stet_value_get(descriptor, "implementation"), "file");
    stet_hash hash = {{0}};
    char *path = NULL;
    bool recorded = js->files && !stet_value_as_bool(stet_value_get(descriptor, "handler"));
    if (!recorded) /* a handler runs the code that is there when the event comes, and no record is kept of it */
        return compile_file(js, descriptor, &hash, program, err);
    stet_status status = stet_path_normal(js->root, "", stet_value_as_string(&file, NULL), &path, err);
    if (status != STET_OK)
        return status;
    char *id = stet_file_id(path);
    stet_look said, known;
    status = read_code(run, id, &said, err);
    if (status == STET_OK && !stet_files_known(js->files, path, &known)) {
        /* Nobody followed it: a child whose pattern was made by a run. */
        status = stet_files_update(js->files, (const char *const[]){path}, NULL, 1, err);
        if (status == STET_OK)
            status = stet_files_keep(js->files, err);
    }
    bool settled = false;
    for (int i = 0; status == STET_OK && !settled && i < MAX_LOOKS; i++) {
        stet_error mine = STET_ERROR_INIT;
        stet_hash none = {{0}};
        hash = none;
        stet_status made = compile_file(js, descriptor, &hash, program, &mine);
        bool there = made == STET_OK || !stet_hash_equal(hash, none);
        settled = agrees(&said, there, hash);
        if (!settled && !there && made != STET_NOT_FOUND && stet_look_there(&said)) {
            /* Something is there that can't be read: a directory, a file without permission. */
            status = stet_files_said(js->files, path, &known, err);
            settled = status == STET_OK && stet_look_there(&known);
        }
        if (status == STET_OK && !settled) {
            status = stet_files_update(js->files, (const char *const[]){path}, NULL, 1, err);
            if (status == STET_OK)
                status = stet_files_said(js->files, path, &known, err);
            /* The document has changed since this run read it: this run will be dropped. */
            settled = status == STET_OK && agrees(&known, there, hash);
        }
        if (status == STET_OK && settled && made == STET_NOT_FOUND) {
            const char *where = strstr(mine.message, ": a link to ");
            status = stet_fail(err, STET_NOT_FOUND, "%s%s (the code of %s)", path, where ? where : ": no such file",
                               stet_run_name(run));
        } else if (status == STET_OK && settled && made != STET_OK) {
            status = made;
            stet_error_move(err, &mine);
        }
        stet_error_clear(&mine);
    }
    if (status == STET_OK && !settled)
        status = stet_fail(err, STET_CONFLICT, "%s changes each time it is read", path);
    stet_free(id);
    stet_free(path);
    return status;
}

static stet_status start(void *state, stet_run *run, stet_error *err) {
    javascript *js = state;
    stet_value implementation = stet_value_get(stet_run_descriptor(run), "implementation");
    void *program = NULL;
    stet_status status = stet_value_type(implementation) == STET_TYPE_OBJECT
                             ? program_of_file(js, run, &program, err)
                             : program_of_text(js, stet_run_descriptor(run), &program, err);
    if (status == STET_OK)
        js->plugin->start(js->engine, program, run);
    return status;
}

const stet_module_kind stet_module_javascript = {
    .version = STET_MODULE_VERSION,
    .type = "javascript",
    .open = open_kind,
    .close = close_kind,
    .check = check,
    .use = use,
    .fingerprint = fingerprint,
    .start = start,
};
