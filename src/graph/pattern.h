/* pattern.h - reads and checks patterns: the authored form of a graph.
 *
 *     stet_pattern *p;
 *     stet_value problems; // every mistake, with line, column and fix
 *     stet_status status = stet_pattern_parse("totals.json", text, len, &checks, &p, &problems, &err);
 *     if (status == STET_OK) {
 *         for (size_t i = 0; i < p->node_count; i++)
 *             printf("%s\n", p->nodes[i].id);
 *         stet_pattern_free(p);
 *     }
 *     stet_value_release(problems);
 *
 * docs/pattern-format.md describes the format. A pattern that parses is valid as far as can be checked without running
 * it: every reference names something, ids are unique, no two nodes write the same cell, schemas are valid, and the
 * kind of each module has accepted its descriptor (`checks`, because this layer knows no module kinds).
 *
 * Ownership: the pattern holds the parsed value; strings and values in it are borrowed and live until
 * stet_pattern_free. `problems` belongs to the caller: an array of {"file","line","column","pointer","message","fix"},
 * at most STET_PATTERN_MAX_PROBLEMS. The error is made from the first.
 *
 * Nothing recurses over the text: a pattern may have a million nodes, and chains as long.
 */
#ifndef STET_GRAPH_PATTERN_H
#define STET_GRAPH_PATTERN_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/path.h"
#include "graph/use.h"

#define STET_PATTERN_FORMAT       1
#define STET_PATTERN_MAX_NODES    2000000
#define STET_PATTERN_MAX_NAME     200
#define STET_PATTERN_MAX_PROBLEMS 100
#define STET_PATTERN_MAX_MS       2147483647

typedef enum stet_ref_kind { STET_REF_ARGUMENT, STET_REF_CELL, STET_REF_NODE, STET_REF_LINK } stet_ref_kind;

/* What a `{"$": "NAME/KEY"}` or a link refers to. */
typedef struct stet_pattern_ref {
    stet_ref_kind kind;
    uint32_t index;    /* of the cell or the node */
    stet_pathref path; /* below it; in the pattern's arena */
    stet_value link;   /* STET_REF_LINK: {"id","path","space","scope"}; borrowed */
    bool as_cell;
} stet_pattern_ref;

typedef struct stet_pattern_cell {
    const char *name;
    stet_value initial; /* `default`; null if not given */
    bool has_default;
    stet_value schema; /* or null */
} stet_pattern_cell;

typedef enum stet_node_kind { STET_NODE_COMPUTATION, STET_NODE_EFFECT, STET_NODE_HANDLER } stet_node_kind;

typedef struct stet_pattern_node {
    const char *id;
    stet_value value;  /* the node as authored */
    stet_value module; /* its descriptor */
    stet_value inputs; /* object or array of bindings, or null */
    stet_node_kind kind;
    bool verifier;
    bool run_on_restart;
    bool no_debounce;
    int64_t debounce_ms, throttle_ms;
    stet_pattern_ref output; /* the explicit output, or STET_REF_NODE with its own index; for a handler: its stream */
    bool explicit_output;
} stet_pattern_node;

typedef struct stet_pattern {
    stet_value root; /* the whole pattern as read */
    stet_hash hash;  /* of its canonical form: the program's identity */
    const char *name;
    const char *version; /* "" if not given */
    const char *title;   /* "" if not given */
    stet_value argument_schema, argument_default;
    bool has_argument_default;
    stet_value result; /* a binding, or null */
    bool wants_all;    /* every node is wanted, whether or not the result leads to it */
    stet_pattern_cell *cells;
    size_t cell_count;
    stet_pattern_node *nodes;
    size_t node_count;
    /* {ID: [reference...]}: what must exist before the node runs for the first time, although its inputs do not name it
     * (pattern_names.c); null: nothing. */
    stet_value after;
    stet_map names; /* of cells (index * 2) and nodes (index * 2 + 1) */
    /* Set by a caller that needs no node after the process graph is built: they are released then. */
    bool use_up;
    stet_arena arena; /* of paths */
} stet_pattern;

typedef struct stet_pattern_checks {
    void *ctx;
    /* Is this module known, and its descriptor valid? May be NULL: then any object with a `type` is accepted. */
    stet_status (*module)(void *ctx, stet_value descriptor, stet_value node, stet_error *err);
    /* The JSON form of a pattern written in JavaScript (a file named *.js or *.mjs). NULL: such patterns are not
     * supported. */
    stet_status (*script)(void *script_ctx, const char *file, const char *text, size_t len, stet_value *out,
                          stet_error *err);
    void *script_ctx;
    /* Tells which files a node names by its module alone. May be NULL: then nothing is known of that. */
    void (*names)(void *ctx, const char *root, stet_value descriptor, stet_value node, stet_named_fn each,
                  void *each_ctx);
    /* Called with the path of each further file, absolute or seen from the current directory, before it is read: those
     * that stet.toml includes or takes parameters from. NULL: no other file can be read. */
    void (*other)(void *other_ctx, const char *path);
    void *other_ctx;
    /* The pattern file as it can be opened, if `file` is not: what it includes is seen from its directory. Or NULL. */
    const char *path;
    /* The project: files may have other names through the links in it. May be NULL: then paths are taken as text. */
    const char *root;
} stet_pattern_checks;

/* `file` is for messages. `problems` may be NULL; otherwise it is always set, to an empty array if there are none. */
STET_CHECKED stet_status stet_pattern_parse(const char *file, const char *text, size_t len,
                                            const stet_pattern_checks *checks, stet_pattern **out, stet_value *problems,
                                            stet_error *err);
/* The same for a value without text (the JSON form of another authored form): problems have pointers but no lines.
 * Consumes `root`. */
STET_CHECKED stet_status stet_pattern_of_value(const char *file, stet_value root, const stet_pattern_checks *checks,
                                               stet_pattern **out, stet_value *problems, stet_error *err);
/* Reads a file, at most 256 MiB. */
STET_CHECKED stet_status stet_pattern_load(const char *file, const stet_pattern_checks *checks, stet_pattern **out,
                                           stet_value *problems, stet_error *err);
void stet_pattern_free(stet_pattern *p); /* NULL is fine */

/* Is this binding a reference? Resolves names in `p`; the path is put in the pattern's arena. False for a plain value.
 * The pattern must have parsed. */
bool stet_pattern_resolve(stet_pattern *p, stet_value binding, stet_pattern_ref *out);

/* Walks a binding depth first and calls `visit` with each reference and its place. It does not descend into a reference
 * or a `{"$literal": ...}`. Returns false as soon as visit does. */
typedef bool (*stet_binding_visit)(void *ctx, stet_value binding, stet_pathref place);
bool stet_binding_walk(stet_value binding, stet_binding_visit visit, void *ctx);
bool stet_binding_is_ref(stet_value v);                        /* {"$": "..."} */
bool stet_binding_is_literal(stet_value v, stet_value *inner); /* {"$literal": ...} */
bool stet_link_is(stet_value v, stet_value *inner);            /* {"/": {"link@1": {...}}} */

/* Letters, digits, "_", "-", "." and at most STET_PATTERN_MAX_NAME bytes, beginning with a letter, digit or "_". */
bool stet_name_valid(const char *name, size_t len);

#endif
