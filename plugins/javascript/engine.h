/* engine.h - private declarations of the JavaScript plug-in.
 *
 * One engine is one virtual machine with one realm in it. All programs share the realm and can't change anything in it
 * (realm.js).
 *
 *   engine.c        the machine, its limits, preparing and running
 *   view.c          inputs and cells as the script sees them, and what was read of them
 *   source.c        the text of functions and files: what is a function, what a file exports
 *   truth.c         conditions in patterns, which must not be references
 *   text.c          strings and values, both ways
 *   failure.c       exceptions as errors
 *   pattern.c       patterns written in JavaScript
 *
 *   realm.js        the world of a function
 *   regexp.js, machine.js, expression.js
 *                   regular expressions that can be stopped
 *   builder.js      the functions of patterns
 */
#ifndef STET_PLUGIN_JAVASCRIPT_ENGINE_H
#define STET_PLUGIN_JAVASCRIPT_ENGINE_H

#include <JavaScriptCore/JavaScript.h>

#include "module/javascript.h"
#include "module/library_calls.h"

/* A script of ours as a string, with a NUL at the end. */
#define EMBED(name, file)                                                                                              \
    __asm__(".section .rodata\n.global " #name "\n.hidden " #name "\n" #name ":\n.incbin \"" file                      \
            "\"\n.byte 0\n.previous\n");                                                                               \
    extern const char name[]

/* Values of out[0]; the same numbers as in realm.js. */
enum { SCALAR, OBJECT, ARRAY, ABSENT, CELL, BULK, VIEW, TEXT, REFUSED };
/* Bits of a run's mode; the same as in realm.js. */
enum { MODE_HANDLER = 1, MODE_POSITIONAL = 2, MODE_FACTORY = 4 };

/* More reads than this below one container become one recursive read of it. */
#define MAX_READS 64

/* A container (or cell) that the running function holds. Views are numbered across all runs, so that a view of an
 * earlier run is recognised. */
typedef struct view {
    stet_value value;        /* as peeked; children that are links are looked up by path */
    stet_value binding;      /* the binding here, while still inside the bindings; otherwise null */
    uint32_t parent;         /* index of the parent; the root's own index for the root */
    uint32_t path, path_len; /* in view_set.paths */
    uint32_t touched;        /* children taken */
    bool bound;              /* children come from bindings */
    bool cell;
    bool shallow;   /* type, key set or length was looked at */
    bool recursive; /* all of it was looked at */
    bool covered;   /* a read at or below it is already recorded */
    bool shallow_done, recursive_done;
} view;

/* A scalar that was taken, or a key that was requested and leads to nothing. */
typedef struct leaf {
    uint32_t parent;
    uint32_t path, path_len;
    bool missing; /* the container has no such key, and its key set shows that */
} leaf;

typedef struct view_set {
    STET_VEC(view) views;
    STET_VEC(leaf) leaves;
    STET_VEC(uint32_t) counts; /* scratch */
    stet_buf paths;
    stet_path scratch;
    uint64_t base; /* number of views.at[0] */
} view_set;

typedef enum stop_reason { STOP_NONE, STOP_TIME, STOP_MEMORY, STOP_STUCK, STOP_CANCELLED } stop_reason;

struct stet_javascript_engine {
    JSContextGroupRef group;
    JSGlobalContextRef context;
    JSObjectRef invoke, forget, freeze, serialize; /* of realm.js; protected */
    JSObjectRef build;                             /* of builder.js; NULL until a pattern is read */
    char *build_names;                             /* names of the functions that it offers */
    double *out;                                   /* the memory shared with the realm */

    /* The run in progress. */
    stet_run *run;
    size_t lead;       /* characters before the user's text in its first line */
    size_t lines;      /* of that text, while it is compiled; else 0 */
    const char *asked; /* the text with what truth.c puts in, while a pattern is evaluated */
    view_set views;
    stet_error error; /* of one of our functions: the true reason why the run ended, whatever exception it became */
    size_t logged;

    /* Limits (engine.c). */
    stet_javascript_limits limits;
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    stop_reason stopped;
    bool worn;           /* a run was stopped: the heap stays large and is rarely collected */
    uint64_t forgotten;  /* programs */
    uint64_t serial;     /* of runs */
    int64_t start_us;    /* processor time when the run began */
    int64_t looked_us;   /* processor time at the last check */
    int64_t baseline_kb; /* resident size before the run */
    int statm;
};

struct stet_javascript_program {
    JSObjectRef function;    /* the function, or the function that makes a file's exports anew; protected */
    JSValueRef export_value; /* its name, or NULL; protected */
    char *file;              /* NULL for text */
    unsigned mode;
    stet_javascript_limits limits;
};

/* In text.c. */
JSStringRef js_string(const char *utf8, size_t len);
JSValueRef js_text(JSContextRef context, const char *utf8, size_t len);
/* Appends the UTF-8 of a string to `out`; false if the string has half a surrogate pair in it. */
bool js_utf8(JSStringRef string, stet_buf *out);
/* Appends a description of any value, converted to a string if possible; for messages. */
void js_describe(JSContextRef context, JSValueRef value, stet_buf *out);
JSValueRef js_get(JSContextRef context, JSObjectRef object, const char *key);
void js_set(JSContextRef context, JSObjectRef object, const char *key, JSValueRef value);
/* Converts a scalar. Not for containers. */
JSValueRef js_of_scalar(JSContextRef context, stet_value v);
/* Appends the JSON of a value to `out`; returns whether it may contain integers beyond 2^53. */
bool js_json(stet_value v, stet_buf *out);
/* Converts the value that `finish` of realm.js returned, with out[0] SCALAR or TEXT. */
STET_CHECKED stet_status js_to_value(stet_javascript_engine *e, JSValueRef value, bool text, stet_value *out,
                                     stet_error *err);

/* In view.c. */
void views_define(stet_javascript_engine *e, JSObjectRef host);
void views_begin(stet_javascript_engine *e);
void views_end(stet_javascript_engine *e);
uint64_t views_root(stet_javascript_engine *e);
/* Are the inputs positional, 0 to *count - 1? */
bool views_positional(stet_value bindings, size_t *count);
/* Records what was read so far. */
STET_CHECKED stet_status views_flush(stet_javascript_engine *e, stet_error *err);
/* The whole value of a view, recorded as read. Borrowed until the run ends. */
STET_CHECKED stet_status views_whole(stet_javascript_engine *e, double number, stet_value *out, stet_error *err);

/* In source.c. What is put before the text of a user, in its first line. */
#define TEXT_LEAD "'use strict';(function(){return(" /* so that `this` is nothing */
#define FILE_LEAD "(function(){'use strict';"
/* Is `made`, the engine's source text of a function, all that `text` holds apart from space, comments, outer
 * parentheses and a semicolon? */
bool source_is_function(const char *text, size_t len, const char *made, size_t made_len);
/* The same text with another word in place of every `async`, also in strings and comments. False, and nothing copied,
 * if the text does not contain `async`. */
bool source_without_async(const char *text, size_t len, stet_buf *out);
/* A token of the text that source_of_file made. Kinds: 'w' a word or number, 's' a string, a regular expression or a
 * template without holes, '`', 'm' and 'e' the parts of a template with some, 'p' an operator, or the bracket itself. */
typedef struct source_token {
    size_t start, end;
    char kind;
} source_token;
typedef STET_VEC(source_token) source_tokens;
/* The text of a file with `export` blanked out, as the body of a function that returns its exports. Lines stay the
 * same, and so do columns, but for those of the first line: they begin at FILE_LEAD and the parameters. A byte order
 * mark is left out; text that is not UTF-8 is refused. `tokens` may be NULL. */
STET_CHECKED stet_status source_of_file(const stet_javascript_source *source, const char *parameters, stet_buf *out,
                                        source_tokens *tokens, stet_error *err);

/* In truth.c. The text with calls of `$truth_`, and a column in it as one of the text without them. */
#define TRUTH_OPEN  "$truth_(/*stet~*/"
#define TRUTH_CLOSE "/*stet~*/)"
void truth_ask(const char *text, size_t len, const source_token *tokens, size_t count, stet_buf *out);
long truth_column(const char *text, long line, long column);

/* In failure.c. */
/* Names of scripts, for finding their frames. */
#define SCRIPT_REALM  "stet:realm"
#define SCRIPT_INLINE "stet:function"
/* Says where the text begins that messages will be about, and how many lines it has (`len` 0: it is not known). */
void js_text_begins(stet_javascript_engine *e, size_t lead, const char *text, size_t len);
/* The message of an exception, with file, line and column of the user's text. */
stet_status js_failure(stet_javascript_engine *e, const char *file, JSValueRef exception, stet_status status,
                       stet_error *err);

/* In engine.c. */
/* The engine that this thread is in. The engine passes no pointer to its callbacks. */
extern _Thread_local stet_javascript_engine *engine_current;
void engine_arm(stet_javascript_engine *e, const stet_javascript_limits *limits);
/* Evaluates text under the armed limits; `*out` is not protected. */
STET_CHECKED stet_status engine_evaluate(stet_javascript_engine *e, const char *text, size_t len, const char *file,
                                         JSValueRef *out, stet_error *err);
/* The same for text of a user: async functions are refused. */
STET_CHECKED stet_status engine_compile(stet_javascript_engine *e, const char *text, size_t len, const char *file,
                                        JSValueRef *out, stet_error *err);
/* The error of a stopped script, or STET_OK. */
stet_status engine_stopped(stet_javascript_engine *e, stet_error *err);

/* In pattern.c. */
stet_status pattern_evaluate(stet_javascript_engine *e, const stet_javascript_source *source, stet_value *out,
                             stet_error *err);

#endif
