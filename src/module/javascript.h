/* javascript.h - `javascript` modules: what the core knows about them, and what the plug-in offers.
 *
 * The core checks descriptors, fingerprints them and finds the text of an implementation; none of that loads an engine.
 * The engine (JavaScriptCore) is in the plug-in plugins/javascript. It is opened when a function is first prepared or
 * run, or when a pattern written in JavaScript is read. docs/javascript.md describes how functions see their inputs.
 */
#ifndef STET_MODULE_JAVASCRIPT_H
#define STET_MODULE_JAVASCRIPT_H

#include "os/plugin.h"
#include "scheduler/module.h"

/* Increased when the same text may give other results than before: it is part of every fingerprint. */
#define STET_JAVASCRIPT_VERSION 2

#define STET_JAVASCRIPT_MAX_TEXT  (16u << 20)
#define STET_JAVASCRIPT_TIME_MS   10000
#define STET_JAVASCRIPT_MEMORY_MB 512

typedef struct stet_javascript_limits {
    int64_t time_ms;   /* processor time per run */
    int64_t memory_mb; /* how much the process may grow in a run */
} stet_javascript_limits;

/* A function: its text, or a file's text and the name of an export. Borrowed for the call. */
typedef struct stet_javascript_source {
    const char *file; /* for messages; NULL for text in a descriptor */
    const char *text;
    size_t len;
    const char *export_name; /* NULL for text in a descriptor */
    bool handler;
    stet_javascript_limits limits;
} stet_javascript_source;

typedef struct stet_javascript_engine stet_javascript_engine;
typedef struct stet_javascript_program stet_javascript_program;

/* What the plug-in exports as `stet_plugin_javascript`. An engine is used by one thread at a time. */
typedef struct stet_javascript_plugin {
    stet_plugin plugin;
    stet_status (*open)(stet_javascript_engine **out, stet_error *err);
    void (*close)(stet_javascript_engine *engine);
    /* Asked often during a run; true stops the run with STET_CANCELLED. NULL: nobody is asked. */
    void (*cancel)(stet_javascript_engine *engine, bool (*cancelled)(void *ctx), void *ctx);
    bool (*worn)(const stet_javascript_engine *engine); /* a run hit a limit: do not reuse it for another project */
    /* Compiles a function. STET_INVALID, with file, line and column: the text is not a function. */
    stet_status (*prepare)(stet_javascript_engine *engine, const stet_javascript_source *source,
                           stet_javascript_program **out, stet_error *err);
    void (*forget)(stet_javascript_engine *engine, stet_javascript_program *program);
    /* Runs to the end; calls exactly one of stet_run_succeed and stet_run_fail. */
    void (*start)(stet_javascript_engine *engine, stet_javascript_program *program, stet_run *run);
    /* Evaluates a pattern written in JavaScript; `*out` is its JSON form, unchecked. */
    stet_status (*pattern)(stet_javascript_engine *engine, const stet_javascript_source *source, stet_value *out,
                           stet_error *err);
} stet_javascript_plugin;

/* Opens the plug-in. */
STET_CHECKED stet_status stet_javascript_load(const stet_javascript_plugin **out, stet_error *err);

/* Keeps a released engine for the next use by this thread. False: closes the kept engine and keeps none. */
void stet_javascript_keep_engine(bool keep);

/* Is this a pattern in JavaScript by its name: *.js or *.mjs? */
bool stet_javascript_is_pattern(const char *file);
/* How the script of a pattern runs. */
typedef struct stet_javascript_script {
    stet_value config;            /* [module.javascript] of the project, for its limits; or null */
    bool (*cancelled)(void *ctx); /* asked often; true ends the script with STET_CANCELLED. May be NULL */
    void *ctx;
} stet_javascript_script;
/* The JSON form of a pattern written in JavaScript (docs/javascript.md), for stet_pattern_of_value. `script` is a
 * stet_javascript_script, or NULL. `file` is for messages. `*out` belongs to the caller. */
STET_CHECKED stet_status stet_javascript_pattern(void *script, const char *file, const char *text, size_t len,
                                                 stet_value *out, stet_error *err);

#endif
