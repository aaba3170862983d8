/* engine.h - inside the plug-in: one engine is one virtual machine with one realm in it, shared by all programs, which
 * can change nothing in it (realm.js).
 *
 *   engine.c    the machine, its limits, preparing and running
 *   view.c      inputs and cells as the realm sees them, and what was read of them
 *   source.c    the text of functions and files: what is a function, what a file exports
 *   text.c      strings and values, both ways
 *   failure.c   exceptions as errors
 *   pattern.c   patterns written in JavaScript
 *
 *   realm.js    the world of a function; regexp.js, machine.js, expression.js: regular expressions that can be stopped
 *   builder.js  the functions of patterns
 */
#ifndef STET_PLUGIN_JAVASCRIPT_ENGINE_H
#define STET_PLUGIN_JAVASCRIPT_ENGINE_H

#include <JavaScriptCore/JavaScript.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/vec.h"
#include "module/javascript.h"

/* A script of ours as a string, with a NUL at the end. */
#define EMBED(name, file)                                                                                              \
    __asm__(".section .rodata\n.global " #name "\n.hidden " #name "\n" #name ":\n.incbin \"" file                      \
            "\"\n.byte 0\n.previous\n");                                                                               \
    extern const char name[]

/* Of out[0]; the same numbers as in realm.js. */
enum { SCALAR, OBJECT, ARRAY, ABSENT, CELL, BULK, VIEW, TEXT, REFUSED };
/* Of a run's mode; the same in realm.js. */
enum { MODE_HANDLER = 1, MODE_POSITIONAL = 2, MODE_FACTORY = 4 };

/* More reads than these below one container become one recursive read of it. */
#define MAX_READS 64

/* A container (or cell) that the running function holds. Views are numbered over all runs, so that one from an earlier
 * run is recognised. */
typedef struct view {
    stet_value value;        /* as peeked; children that are links are peeked at by path */
    stet_value binding;      /* while still inside the bindings: what stands there, else null */
    uint32_t parent;         /* index; its own for the root */
    uint32_t path, path_len; /* in view_set.paths */
    uint32_t touched;        /* children taken */
    bool bound;              /* children come from bindings */
    bool cell;
    bool shallow;   /* type, key set or length was looked at */
    bool recursive; /* all of it was */
    bool covered;   /* a read at or below it is recorded already */
    bool shallow_done, recursive_done;
} view;

/* A scalar that was taken, or a key that was asked for and is not there. */
typedef struct leaf {
    uint32_t parent;
    uint32_t path, path_len;
    bool absent;
} leaf;

typedef struct view_set {
    STET_VEC(view) views;
    STET_VEC(leaf) leaves;
    STET_VEC(uint32_t) counts; /* scratch */
    stet_buf paths;
    stet_path scratch;
    uint64_t base; /* number of views.at[0] */
} view_set;

typedef enum stop_reason { STOP_NONE, STOP_TIME, STOP_MEMORY, STOP_STUCK } stop_reason;

struct stet_javascript_engine {
    JSContextGroupRef group;
    JSGlobalContextRef context;
    JSObjectRef invoke, forget, freeze, serialize; /* of realm.js; protected */
    JSObjectRef build;                             /* of builder.js; NULL until a pattern is read */
    char *build_names;                             /* of the functions it offers */
    double *out;                                   /* the memory shared with the realm */

    /* The run in progress. */
    stet_run *run;
    view_set views;
    stet_error error; /* of a function of ours: what ended the run is this, whatever exception it became */
    size_t logged;

    /* Limits (engine.c). */
    stet_javascript_limits limits;
    stop_reason stopped;
    uint64_t forgotten;  /* programs */
    uint64_t serial;     /* of runs */
    int64_t start_us;    /* processor time when it began */
    int64_t looked_us;   /* and when it was last looked at */
    int64_t baseline_kb; /* resident size before it */
    int statm;
};

struct stet_javascript_program {
    JSObjectRef function;    /* the function, or what makes a file's exports anew; protected */
    JSValueRef export_value; /* its name, or NULL; protected */
    char *file;              /* NULL for text */
    unsigned mode;
    stet_javascript_limits limits;
};

/* ---- text.c */
JSStringRef js_string(const char *utf8, size_t len);
JSValueRef js_text(JSContextRef context, const char *utf8, size_t len);
/* UTF-8 of a string, at the end of `out`; false if it has half a surrogate pair in it. */
bool js_utf8(JSStringRef string, stet_buf *out);
/* Of any value, converted to a string if that works; for messages. */
void js_describe(JSContextRef context, JSValueRef value, stet_buf *out);
JSValueRef js_get(JSContextRef context, JSObjectRef object, const char *key);
void js_set(JSContextRef context, JSObjectRef object, const char *key, JSValueRef value);
/* A scalar as it is. Not for containers. */
JSValueRef js_of_scalar(JSContextRef context, stet_value v);
/* JSON of a value, at the end of `out`; says whether integers beyond 2^53 may be in it. */
bool js_json(stet_value v, stet_buf *out);
/* The value that `finish` of realm.js gave, with out[0] SCALAR or TEXT. */
STET_CHECKED stet_status js_to_value(stet_javascript_engine *e, JSValueRef value, bool text, stet_value *out,
                                     stet_error *err);

/* ---- view.c */
void views_define(stet_javascript_engine *e, JSObjectRef host);
void views_begin(stet_javascript_engine *e);
void views_end(stet_javascript_engine *e);
uint64_t views_root(stet_javascript_engine *e);
/* The inputs are positions 0 to *count - 1. */
bool views_positional(stet_value bindings, size_t *count);
/* Records what was read so far. */
STET_CHECKED stet_status views_flush(stet_javascript_engine *e, stet_error *err);
/* The whole value of a view, recorded as read. Borrowed until the run ends. */
STET_CHECKED stet_status views_whole(stet_javascript_engine *e, double number, stet_value *out, stet_error *err);

/* ---- source.c */
/* Is `made`, the source text the engine has of a function, all that `text` holds apart from space, comments, outer
 * parentheses and a semicolon? */
bool source_is_function(const char *text, size_t len, const char *made, size_t made_len);
/* The same text, with another word wherever `async` stands, in strings and comments, too. Text without `async` in it is
 * not copied: false. */
bool source_without_async(const char *text, size_t len, stet_buf *out);
/* Text of a file in which `export` is blanked out, as the body of a function that returns its exports. Lines and, but
 * for `export default`, columns stay. */
STET_CHECKED stet_status source_of_file(const stet_javascript_source *source, const char *parameters, stet_buf *out,
                                        stet_error *err);

/* ---- failure.c */
/* Names of scripts, for finding their frames. */
#define SCRIPT_REALM  "stet:realm"
#define SCRIPT_INLINE "stet:function"
/* What an exception says, with file, line and column of the user's text. */
stet_status js_failure(stet_javascript_engine *e, const char *file, JSValueRef exception, stet_status status,
                       stet_error *err);

/* ---- engine.c */
/* The engine that this thread is in: what the engine calls back is given no pointer. */
extern _Thread_local stet_javascript_engine *engine_current;
void engine_arm(stet_javascript_engine *e, const stet_javascript_limits *limits);
/* Evaluates; `*out` is not protected. Under the limits armed. */
STET_CHECKED stet_status engine_evaluate(stet_javascript_engine *e, const char *text, size_t len, const char *file,
                                         JSValueRef *out, stet_error *err);
/* The same for text of a user's: async functions are refused. */
STET_CHECKED stet_status engine_compile(stet_javascript_engine *e, const char *text, size_t len, const char *file,
                                        JSValueRef *out, stet_error *err);
/* An error for the script that was stopped, or STET_OK. */
stet_status engine_stopped(stet_javascript_engine *e, stet_error *err);

/* ---- pattern.c */
stet_status pattern_evaluate(stet_javascript_engine *e, const stet_javascript_source *source, stet_value *out,
                             stet_error *err);

#endif
