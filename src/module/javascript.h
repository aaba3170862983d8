/* javascript.h - `javascript` modules: what the core knows of them, and what the plug-in offers.
 *
 * The core checks descriptors, finds the text of an implementation and fingerprints it; none of that loads an engine.
 * The engine (JavaScriptCore) is in the plug-in plugins/javascript, opened when a function is first prepared, run, or a
 * pattern written in JavaScript is read. How functions see their inputs: docs/javascript.md.
 */
#ifndef STET_MODULE_JAVASCRIPT_H
#define STET_MODULE_JAVASCRIPT_H

#include "scheduler/module.h"

/* Counts up when the same text may give other results than before: it is part of every fingerprint. */
#define STET_JAVASCRIPT_VERSION 1

#define STET_JAVASCRIPT_MAX_TEXT  (16u << 20)
#define STET_JAVASCRIPT_TIME_MS   10000
#define STET_JAVASCRIPT_MEMORY_MB 512

typedef struct stet_javascript_limits {
    int64_t time_ms;   /* of processor time, per run */
    int64_t memory_mb; /* by which the process may grow in a run */
} stet_javascript_limits;

/* A function: the text of one, or a file's text and the name of what it exports. Borrowed for the call. */
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
    const char *version; /* STET_VERSION */
    stet_status (*open)(stet_javascript_engine **out, stet_error *err);
    void (*close)(stet_javascript_engine *engine);
    /* Compiles. STET_INVALID with file, line and column for text that is no function. */
    stet_status (*prepare)(stet_javascript_engine *engine, const stet_javascript_source *source,
                           stet_javascript_program **out, stet_error *err);
    void (*forget)(stet_javascript_engine *engine, stet_javascript_program *program);
    /* Runs to the end: exactly one of stet_run_succeed and stet_run_fail is called. */
    void (*start)(stet_javascript_engine *engine, stet_javascript_program *program, stet_run *run);
    /* Evaluates a pattern written in JavaScript; `*out` is its JSON form, unchecked. */
    stet_status (*pattern)(stet_javascript_engine *engine, const stet_javascript_source *source, stet_value *out,
                           stet_error *err);
} stet_javascript_plugin;

/* Opens the plug-in. */
STET_CHECKED stet_status stet_javascript_load(const stet_javascript_plugin **out, stet_error *err);

/* Is it one by its name: *.js or *.mjs? */
bool stet_javascript_is_pattern(const char *file);
/* The JSON form of a pattern written in JavaScript (docs/javascript.md), for stet_pattern_of_value. `file` is for
 * messages. `*out` belongs to the caller. */
STET_CHECKED stet_status stet_javascript_pattern(const char *file, const char *text, size_t len, stet_value *out,
                                                 stet_error *err);

#endif
