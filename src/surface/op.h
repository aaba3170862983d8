/* op.h - the operation table: every operation is declared once, and every surface is rendered from that.
 *
 * A row says what the operation is called, what it takes, what it gives, and which function does it. From it come the
 * command line with its help, the MCP tools, the man page, the reference and shell completion. To add an operation:
 * write its row and handler in src/surface/ops/<noun>.c, and name the array in src/surface/table.c.
 *
 *     static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
 *     const stet_op stet_ops_doc[] = {
 *         {.name = "doc get", .summary = "Print a document or a part of it", .params = get_params, .result_schema =
 * "{...}", .examples = ..., .flags = STET_OP_READ_ONLY, .run = run, .render = panel}, {0}};
 *
 * Handlers get arguments that are already valid: an object with the declared names, of the declared types, defaults
 * filled in, absent optional ones missing. They print nothing: what they answer is a value, which --json prints and MCP
 * returns as it is, and which `render` turns into text for people.
 */
#ifndef STET_SURFACE_OP_H
#define STET_SURFACE_OP_H

#include "base/buf.h"
#include "project/project.h"

typedef enum stet_param_type {
    STET_PARAM_STRING,
    STET_PARAM_INT,
    STET_PARAM_NUMBER,
    STET_PARAM_BOOL, /* on the command line: --name, --no-name, --name=true|false */
    STET_PARAM_ENUM, /* one of `choices` */
    STET_PARAM_JSON, /* any value; text on the command line, "-" reads standard input */
    STET_PARAM_FILE, /* a path; over MCP it can't leave the project unless the server was started so */
    STET_PARAM_TIME, /* RFC 3339 or "2h", "3d ago", "yesterday": the handler gets milliseconds since 1970, an int */
    STET_PARAM_PAIR  /* K=JSON on the command line (repeatable), an object over MCP: the handler gets one object */
} stet_param_type;

typedef enum stet_param_flags {
    STET_PARAM_REQUIRED = 1,
    STET_PARAM_POSITIONAL = 2, /* in the order of declaration */
    STET_PARAM_REPEATED = 4,   /* the handler gets an array; a positional one must be the last */
    STET_PARAM_CLI_ONLY = 16,  /* not offered over MCP: it would make a tool that only reads write */
    STET_PARAM_HIDDEN = 8      /* accepted, not advertised: another spelling of an older or a seed's name */
} stet_param_flags;

typedef struct stet_param {
    const char *name; /* lower case, hyphens: "older-than-days". In args and MCP: underscores ("older_than_days"). The
                         CLI takes both. */
    char letter;      /* short flag, or 0 */
    stet_param_type type;
    unsigned flags;
    const char *metavar; /* "CELL"; NULL: from the type */
    const char *summary;
    const char *const *choices; /* for ENUM, NULL-terminated */
    const char *default_json;   /* filled in when absent; NULL: none */
    int64_t min, max;           /* for INT, when not both 0 */
    const char *optional_value; /* the flag may stand without a value and then means this JSON (--include-content) */
} stet_param;

typedef enum stet_op_flags {
    STET_OP_READ_ONLY = 1,   /* changes nothing, anywhere */
    STET_OP_DESTRUCTIVE = 2, /* may delete or overwrite what a user made */
    STET_OP_IDEMPOTENT = 4,  /* the same call again changes nothing more */
    STET_OP_LONG = 8,        /* may take seconds or run until stopped: progress and cancellation matter */
    STET_OP_COMMON = 16,     /* among the MCP tools shown by default, and in the short `stet help` */
    STET_OP_CLI_ONLY = 32,   /* no MCP tool: `mcp`, `help`, completion */
    STET_OP_NO_PROJECT = 64  /* works without a project */
} stet_op_flags;

typedef struct stet_example {
    const char *command; /* as typed, after `stet `: "doc get config/theme"; run by the tests in a prepared project */
    const char *purpose;
} stet_example;

typedef struct stet_op_ctx stet_op_ctx;
typedef struct stet_op stet_op;

typedef struct stet_render {
    stet_buf *out;
    bool colour;
    size_t width; /* columns of the terminal, 0: not one */
} stet_render;

struct stet_op {
    const char *name;             /* "NOUN VERB" or one everyday word */
    const char *summary;          /* one line, no full stop */
    const char *description;      /* paragraphs; may be NULL */
    const stet_param *params;     /* ends with a row whose name is NULL; NULL: none */
    const char *result_schema;    /* JSON Schema of the result, an object schema */
    const stet_example *examples; /* ends with a row whose command is NULL; at least one */
    unsigned flags;
    stet_status (*run)(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
    /* Text for people, ending in a newline. NULL: the result pretty-printed. May be given an event of stet_op_emit as
     * well. */
    void (*render)(stet_render *r, stet_value result);
    /* Exit status for a result that is an answer but not a success (`check` found problems). NULL: 0. */
    stet_status (*verdict)(stet_value result);
};

/* What a handler may ask of its surface. A handler never reaches around it. */
struct stet_op_ctx {
    const stet_op *op;
    const char *cwd;         /* absolute */
    const char *project_dir; /* --project DIR, or NULL: found from cwd */
    void *surface;           /* the surface's own */
    /* Opens the project on first use and keeps it for the call; borrowed. */
    stet_status (*project)(stet_op_ctx *ctx, stet_project **out, stet_error *err);
    /* A result that comes bit by bit (watch, logs --follow): one event. The CLI prints a line at once, MCP sends a
     * notification. STET_CANCELLED when nobody listens any more. */
    stet_status (*emit)(stet_op_ctx *ctx, stet_value event, stet_error *err);
    /* How far it is: `total` 0 if unknown; `note` may be NULL. Cheap: the surface decides how often it shows. */
    void (*progress)(stet_op_ctx *ctx, int64_t done, int64_t total, const char *note);
    bool (*cancelled)(stet_op_ctx *ctx); /* Ctrl-C, or an MCP cancellation. Looked at in loops. */
    /* Raw bytes to standard output in place of a result (persist get without -o). NULL where there is none (MCP, and
     * the CLI with --json). */
    stet_status (*write_out)(stet_op_ctx *ctx, const void *bytes, size_t len, stet_error *err);
    /* A line for the person or the log, not part of the result. */
    void (*warn)(stet_op_ctx *ctx, const char *format, ...) STET_PRINTF(2, 3);
};

/* The table: all operations, sorted by name. */
size_t stet_op_count(void);
const stet_op *stet_op_at(size_t index);
const stet_op *stet_op_find(const char *name);
const stet_param *stet_op_param(const stet_op *op, const char *name); /* hyphens or underscores */

/* Checks and completes arguments given as an object (MCP; the CLI builds one from its words): unknown names, wrong
 * types, enums, ranges and missing ones are STET_INVALID, with the valid ones and did-you-mean. `out` belongs to the
 * caller. */
STET_CHECKED stet_status stet_op_check_args(const stet_op *op, stet_value given, stet_value *out, stet_error *err);
/* The same for a surface on which parameters are spelled otherwise: with STET_SPELL_FLAGS messages say
 * `--older-than-days` and `CELL` where they else say `older_than_days` and `cell`. */
typedef enum stet_op_spelling { STET_SPELL_NAMES, STET_SPELL_FLAGS } stet_op_spelling;
STET_CHECKED stet_status stet_op_check_spelled(const stet_op *op, stet_value given, stet_op_spelling spelling,
                                               stet_value *out, stet_error *err);
/* A parameter's name in args and MCP ("older_than_days") or as messages of that surface say it. */
#define STET_PARAM_NAME_MAX 64
void stet_param_key(const stet_param *param, char out[STET_PARAM_NAME_MAX]);
void stet_param_spell(const stet_param *param, stet_op_spelling spelling, char out[STET_PARAM_NAME_MAX + 4]);
/* Declared metavar, or one from the type: "N", "FILE", "a|b". Written to `out`. */
void stet_param_metavar(const stet_param *param, stet_buf *out);
/* JSON Schema of the arguments (for MCP and the reference) and of the result. */
stet_value stet_op_args_schema(const stet_op *op);
stet_value stet_op_result_schema(const stet_op *op);
/* Checks arguments, runs the handler, checks its result against the schema where the environment has STET_CHECK_RESULTS
 * (tests set it): a result that does not fit is STET_INTERNAL. A handler that wrote raw bytes with write_out leaves the
 * result null, and null is not checked. */
STET_CHECKED stet_status stet_op_call(stet_op_ctx *ctx, stet_value given, stet_value *result, stet_error *err);
/* The second half of it, for arguments that stet_op_check_spelled gave. */
STET_CHECKED stet_status stet_op_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
/* Exit status of a result: its operation's verdict, or STET_OK. */
stet_status stet_op_verdict(const stet_op *op, stet_value result);

/* The stores that `check` and `gc` cover. Each layer's glue in src/surface/ops declares one, and table.c lists it. */
typedef struct stet_store {
    const char *name; /* "memory", "persist", ... as --only takes it */
    const char *summary;
    /* Is there such a store in this project? */
    bool (*present)(stet_project *p);
    /* Adds an object for each problem to the array `problems`: {"store","what","where","repaired"}. The status is for
     * the check itself failing. */
    stet_status (*check)(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err);
    /* Frees what nobody needs; `report` is an object to be filled: {"items","bytes", ...}. */
    stet_status (*gc)(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err);
} stet_store;
/* Removes the outputs of commands that are gone (drive/leftover.h); `report`: {"removed","kept","bytes"}. */
stet_status stet_outputs_gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err);
/* Adds a problem, as `check` of a store does: `what` has `len` bytes, and may be whatever a damaged file holds. */
void stet_store_problem(stet_value *problems, const char *store, const char *where, const char *what, size_t len,
                        bool repaired);
/* One for each line. */
void stet_store_problems(stet_value *problems, const char *store, const char *where, const stet_buf *lines,
                         bool repaired);
size_t stet_store_count(void);
const stet_store *stet_store_at(size_t index);

#endif
