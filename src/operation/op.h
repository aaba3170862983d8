/* op.h - the operation table: every operation is declared once, and every surface is rendered from it.
 *
 * A row gives the operation's name, its parameters, its result, and the function that runs it. The command line with
 * its help, the MCP tools, the man page, the reference and shell completion come from it. To add an operation, write
 * its row and handler in src/operation/<noun>.c, and name the array in src/operation/table.c.
 *
 *     static stet_status get(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
 *         *result = stet_value_object();
 *         return STET_OK;
 *     }
 *
 *     static const stet_param get_params[] = {{.name = "cell", .type = STET_PARAM_STRING}, {0}};
 *     static const stet_example get_examples[] = {{"doc get config/theme", "Print one value"}, {0}};
 *     static const stet_op stet_ops_doc[] = {{.name = "doc get",
 *                                             .summary = "Print a document or a part of it",
 *                                             .params = get_params,
 *                                             .result_schema = "{\"type\":\"object\"}",
 *                                             .examples = get_examples,
 *                                             .flags = STET_OP_READ_ONLY,
 *                                             .run = get},
 *                                            {0}};
 *
 * Handlers get arguments that are already valid: an object with the declared names, of the declared types, with
 * defaults filled in; optional arguments that were not given are absent. Handlers print nothing. Their answer is a
 * value, which --json prints and MCP returns as it is, and which `render` turns into text for people.
 */
#ifndef STET_OPERATION_OP_H
#define STET_OPERATION_OP_H

#include "base/buf.h"
#include "fleet/drive.h"
#include "project/project.h"

typedef enum stet_param_type {
    STET_PARAM_STRING,
    STET_PARAM_INT,
    STET_PARAM_NUMBER,
    STET_PARAM_BOOL, /* on the command line: --name, --no-name, --name=true|false */
    STET_PARAM_ENUM, /* one of `choices` */
    STET_PARAM_JSON, /* any value; text on the command line, "-" reads standard input */
    STET_PARAM_FILE, /* a path; over MCP it can't leave the project unless the server allows it */
    /* RFC 3339 or "2h", "3d ago", "yesterday"; the handler gets milliseconds since 1970, an int. */
    STET_PARAM_TIME,
    /* K=JSON on the command line (repeatable), an object over MCP; the handler gets one object. */
    STET_PARAM_PAIR
} stet_param_type;

typedef enum stet_param_flags {
    STET_PARAM_REQUIRED = 1,
    STET_PARAM_POSITIONAL = 2, /* in the order of declaration */
    STET_PARAM_REPEATED = 4,   /* the handler gets an array; a positional one must be the last */
    /* Not offered over MCP: it would make a read-only tool write. */
    STET_PARAM_CLI_ONLY = 16,
    /* Accepted but not advertised: another spelling or an older name. */
    STET_PARAM_HIDDEN = 8,
    /* Of a text: on the command line @FILE is the content of a file, and - that of standard input, unless they stand
     * behind "--". */
    STET_PARAM_FROM_FILE = 32
} stet_param_flags;

typedef struct stet_param {
    /* Lower case, with hyphens: "older-than-days". In args and MCP with underscores: "older_than_days". The CLI accepts
     * both. */
    const char *name;
    char letter; /* short flag, or 0 */
    stet_param_type type;
    unsigned flags;
    const char *metavar; /* "CELL"; NULL: from the type */
    const char *summary;
    const char *const *choices; /* for ENUM, NULL-terminated */
    const char *default_json;   /* filled in when absent; NULL: none */
    int64_t min, max;           /* for INT, when not both 0 */
    /* The flag may be given without a value and then means this JSON (--include-content). */
    const char *optional_value;
} stet_param;

typedef enum stet_op_flags {
    STET_OP_READ_ONLY = 1,   /* changes nothing at all */
    STET_OP_DESTRUCTIVE = 2, /* may delete or overwrite what a user made */
    STET_OP_IDEMPOTENT = 4,  /* repeating the call changes nothing more */
    STET_OP_LONG = 8,        /* may take seconds or run until stopped: progress and cancellation matter */
    /* One of the MCP tools offered by default, and listed in the short `stet help`. */
    STET_OP_COMMON = 16,
    STET_OP_CLI_ONLY = 32,   /* not an MCP tool: `mcp`, `help`, completion */
    STET_OP_NO_PROJECT = 64, /* works without a project */
    /* Its result is what people run it for: --quiet prints it, too, and a failed result goes to standard error. */
    STET_OP_ANSWERS = 128
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
    size_t width; /* columns of the terminal; 0: not a terminal */
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
    /* Text for people, ending in a newline. NULL: the result is pretty-printed. It may also be called with an event of
     * `emit`. */
    void (*render)(stet_render *r, stet_value result);
    /* Exit status for a result that is an answer but not a success (`check` found problems). NULL: 0. */
    stet_status (*verdict)(stet_value result);
};

/* What a surface offers to a handler. A handler uses nothing else of it. */
struct stet_op_ctx {
    const stet_op *op;
    const char *cwd;         /* absolute */
    const char *project_dir; /* --project DIR, or NULL: found from cwd */
    /* The result is returned as JSON, not rendered: members that only programs use are worth computing. */
    bool json;
    bool confined;           /* other projects must not be changed */
    void *surface;           /* private to the surface */
    stet_fleet_driver drive; /* drives runs for resume, rerun and the queue; NULL: stet_drive_fleet */
    /* Opens the project on first use and keeps it for the call; borrowed. */
    stet_status (*project)(stet_op_ctx *ctx, stet_project **out, stet_error *err);
    /* Sends one event of a result that comes in parts (watch, logs --follow). The CLI prints a line at once, MCP sends
     * a notification. STET_CANCELLED: nobody listens any more. */
    stet_status (*emit)(stet_op_ctx *ctx, stet_value event, stet_error *err);
    /* Reports progress; `total` is 0 if unknown, `note` may be NULL. Cheap: the surface decides how often it shows it.
     */
    void (*progress)(stet_op_ctx *ctx, int64_t done, int64_t total, const char *note);
    bool (*cancelled)(stet_op_ctx *ctx); /* Ctrl-C, or an MCP cancellation. Check it in loops */
    /* Writes raw bytes to standard output instead of a result (persist get without -o). NULL if not available (MCP, and
     * the CLI with --json). */
    stet_status (*write_out)(stet_op_ctx *ctx, const void *bytes, size_t len, stet_error *err);
    /* Shows what a command printed (stet_drive_spec.output; `live` says whether its parts are wanted). NULL: nobody looks. */
    void (*output)(void *ctx, const char *node, const char *bytes, size_t len, bool live);
    bool live;
    /* Writes a line for the user or the log, which is not part of the result. */
    void (*warn)(stet_op_ctx *ctx, const char *format, ...) STET_PRINTF(2, 3);
};

/* The table: all operations, sorted by name. A program adds its own operations (`help`, `mcp`) at its start, before the
 * table is used; a library never does. */
void stet_op_add(const stet_op *ops);
size_t stet_op_count(void);
const stet_op *stet_op_at(size_t index);
const stet_op *stet_op_find(const char *name);
const stet_param *stet_op_param(const stet_op *op, const char *name); /* hyphens or underscores */

/* Checks and completes arguments given as an object (by MCP; the CLI builds one from its words). Unknown names, wrong
 * types, invalid enum values, numbers out of range and missing arguments are STET_INVALID; the error lists the valid
 * names and suggests a near one. `out` belongs to the caller. */
STET_CHECKED stet_status stet_op_check_args(const stet_op *op, stet_value given, stet_value *out, stet_error *err);
/* The same for a surface that spells parameters differently. With STET_SPELL_FLAGS messages say `--older-than-days` and
 * `CELL` instead of `older_than_days` and `cell`. STET_SPELL_ALL spells like STET_SPELL_NAMES and also accepts
 * parameters that only the command line offers: for programs that embed stet. */
typedef enum stet_op_spelling { STET_SPELL_NAMES, STET_SPELL_FLAGS, STET_SPELL_ALL } stet_op_spelling;
STET_CHECKED stet_status stet_op_check_spelled(const stet_op *op, stet_value given, stet_op_spelling spelling,
                                               stet_value *out, stet_error *err);
/* A parameter's name in args and MCP ("older_than_days"), and as messages of a surface spell it. */
#define STET_PARAM_NAME_MAX 64
void stet_param_key(const stet_param *param, char out[STET_PARAM_NAME_MAX]);
void stet_param_spell(const stet_param *param, stet_op_spelling spelling, char out[STET_PARAM_NAME_MAX + 4]);
/* Appends the declared metavar, or one from the type: "N", "FILE", "a|b". */
void stet_param_metavar(const stet_param *param, stet_buf *out);
/* JSON Schema of the arguments that a surface accepts, and of the result. */
stet_value stet_op_args_schema(const stet_op *op, stet_op_spelling spelling);
stet_value stet_op_result_schema(const stet_op *op);
/* Checks arguments and runs the handler. If the environment has STET_CHECK_RESULTS (tests set it), checks the result
 * against the schema: a mismatch is STET_INTERNAL. A handler that wrote raw bytes with write_out leaves the result
 * null, and null is not checked. */
STET_CHECKED stet_status stet_op_call(stet_op_ctx *ctx, stet_value given, stet_value *result, stet_error *err);
/* `ctx` is a stet_op_ctx: its `cancelled`, for layers below. */
bool stet_op_cancelled(void *ctx);
/* The second half of stet_op_call, for arguments from stet_op_check_spelled. */
STET_CHECKED stet_status stet_op_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
/* May the operation delete or overwrite what somebody made, with these arguments? A dry run and a plan do not. */
bool stet_op_destroys(const stet_op *op, stet_value args);
/* Exit status of a result: its operation's verdict, or STET_OK. */
stet_status stet_op_verdict(const stet_op *op, stet_value result);

/* The stores that `check` and `gc` cover. Each layer's glue in src/operation declares one, and table.c lists it. */
typedef struct stet_store {
    const char *name; /* "memory", "persist", ... as in --only */
    const char *summary;
    /* Does this project have such a store? */
    bool (*present)(stet_project *p);
    /* Adds an object for each problem to the array `problems`: {"store","what","where","repaired"}. A status other than
     * STET_OK means that the check itself failed. */
    stet_status (*check)(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err);
    /* Frees what nothing needs; fills the object `report`: {"items","bytes", ...}. */
    stet_status (*gc)(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err);
} stet_store;
/* Deletes the outputs of removed commands (drive/leftover.h); `report`: {"removed","kept","bytes"}. */
stet_status stet_outputs_gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err);
/* Adds a problem for `check` of a store; `what` has `len` bytes, which may be any content of a damaged file. */
void stet_store_problem(stet_value *problems, const char *store, const char *where, const char *what, size_t len,
                        bool repaired);
/* Adds one problem for each line. */
void stet_store_problems(stet_value *problems, const char *store, const char *where, const stet_buf *lines,
                         bool repaired);
size_t stet_store_count(void);
const stet_store *stet_store_at(size_t index);

#endif
