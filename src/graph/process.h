/* process.h - the process graph: a pattern made concrete for one piece, and how it is stored.
 *
 *     stet_process *g;
 *     stet_status status = stet_process_build(pattern, "totals", &modules, &g, &err); // pure: bindings become cells
 *     if (status != STET_OK)
 *         return status;
 *     stet_process_diff d = {0};
 *     stet_process_compare(old, g, &d);
 *     stet_process_diff_release(&d);
 *     stet_process_free(g);
 *
 * A piece called NAME owns these documents and no others:
 *
 *   piece:NAME                 the result; its members source, pattern and process describe the piece
 *   piece:NAME:argument        what people set
 *   piece:NAME:cell:CELL       named cells
 *   piece:NAME:node:NODE       outputs of nodes without an explicit output
 *   piece:NAME:process:N       rows of the process graph, some nodes in each, by the hash of their id
 *
 * A teardown removes only these. The ids depend only on names, so they are the same at every start.
 *
 * A row is what is stored about a node:
 * {"module","inputs","output"|"stream","kind","rank","certain","fingerprint","argumentSchema"?,"resultSchema"?,
 * "after"?, options}. Bindings in it are links; schemas are hashes of documents `schema:HASH`. GraphSnapshotV1 is
 * assembled from the rows on demand (stet_process_snapshot).
 *
 *   rank           writers have a lower rank than their readers; nodes of one cycle share theirs
 *   circle, turn   of a node in a cycle: the smallest name of the nodes in it, and its place in the order of running
 *   certain        a path of inputs that are always read leads from here to the result or to an effect (or everything
 *                  is wanted), so that the node is live whenever the whole piece is wanted, without a walk
 *   fingerprint    what it computes, from what, and where to; nodes with equal fingerprints keep cells, observation and
 *                  state
 *   after          links to what must exist before a first run, besides the inputs: outputs of nodes whose files the
 *                  node reads without declaring it. After that run it is known what it has read
 *   span           of a coordinator (child.h): ranks that its children take
 *   template, returns
 *                  of a coordinator
 *   effects, verifiers, restarts
 *                  of a coordinator: those of the template
 *   parent         of a child's node
 *   shown          its output is part of the result, or everything is wanted
 */
#ifndef STET_GRAPH_PROCESS_H
#define STET_GRAPH_PROCESS_H

#include "graph/pattern.h"
#include "graph/use.h"
#include "memory/space.h"

#define STET_PROCESS_PER_CHUNK 4 /* small enough that most parts are kept completely in their heads */
#define STET_PIECE_MAX_NAME    STET_PATTERN_MAX_NAME

typedef struct stet_process_node {
    const char *id;
    stet_value row; /* owned by the process */
} stet_process_node;

typedef struct stet_process {
    char *piece;  /* NAME or NAME@SCOPE */
    char *result; /* "piece:NAME" */
    char *scope;  /* of every document that the piece owns; "" is the common one */
    int64_t generation;
    stet_hash program;
    stet_value binding; /* the result binding with links, or null */
    bool wants_all;     /* as in the pattern */
    stet_process_node *nodes;
    size_t node_count;
    stet_map ids;       /* id -> index */
    stet_value schemas; /* {HASH: schema} used by the rows */
    bool template;      /* of children: what is wanted depends on where it is used */
    stet_arena arena;
} stet_process;

/* What the graph must know about module kinds. */
typedef struct stet_process_modules {
    void *ctx;
    struct stet_templates *templates; /* where templates of children are kept; NULL: each is read anew */
    stet_status (*fingerprint)(void *ctx, stet_value descriptor, stet_hash *out, stet_error *err);
    stet_input_use (*use)(void *ctx, stet_value descriptor, const char *input, size_t len);
} stet_process_modules;

/* A piece is named by its name and, unless its documents lie in the common scope, by "@" and their scope: "totals",
 * "totals@user:x". Names hold no "@", so each of the two follows from the other. Wherever a `piece` is asked for, this
 * is meant; ids of documents have the name alone. */
bool stet_piece_name_valid(const char *piece);
const char *stet_piece_scope(const char *piece); /* "" is the common one; points into `piece` */
char *stet_piece_bare(const char *piece);        /* its name without a scope; caller frees */
/* `name` may have a scope itself: then another one is STET_INVALID. Scope NULL or "": the name as it is. Caller frees. */
STET_CHECKED stet_status stet_piece_in(const char *name, const char *scope, char **out, stet_error *err);
char *stet_piece_doc(const char *piece);                                      /* "piece:NAME"; caller frees */
char *stet_piece_part(const char *piece, const char *part, const char *name); /* name NULL: "piece:NAME:part" */
/* Names a document that a piece owns. `id` is borrowed. */
stet_docname stet_piece_at(const char *piece, const char *id);
/* The same of any id that belongs to a piece of this scope: what is stored by hash lies in the common scope. */
stet_docname stet_scoped(const char *scope, const char *id);
/* NAME of "piece:NAME", or NULL if the id is not that of a result document. Points into `id`. */
const char *stet_piece_name_of(const char *id);
/* The piece whose result document this is, or NULL if it has not the name of one. Caller frees. */
char *stet_piece_of(const stet_docname *name);
char *stet_piece_of_action(const stet_action_key *key);
/* The piece that a document would belong to, by its name, as its result or as a part of it; or NULL. Caller frees. */
char *stet_piece_around(const stet_docname *name);
/* "piece:" and the piece: what the scheduler knows a piece by. Of a document NULL if it has not the name of a result.
 * Caller frees. */
char *stet_piece_key(const char *piece);
char *stet_piece_key_of(const stet_docname *name);
/* The result document that such a key stands for: no memory but its own. */
typedef struct stet_piece_id {
    stet_docname name;
    char id[STET_PIECE_MAX_NAME + 8];
} stet_piece_id;
void stet_piece_id_of(const char *key, stet_piece_id *out);

STET_CHECKED stet_status stet_process_build(stet_pattern *p, const char *piece, const stet_process_modules *modules,
                                            stet_process **out, stet_error *err);
/* From stored rows: add one object {ID: ROW} at a time. Malformed rows are STET_CORRUPT. */
stet_process *stet_process_new(const char *piece);
STET_CHECKED stet_status stet_process_add_rows(stet_process *g, stet_value rows, stet_error *err);
void stet_process_free(stet_process *g); /* NULL is fine */
/* Names a document that the piece of this graph owns; `id` is borrowed. NULL: its result document. */
stet_docname stet_process_name(const stet_process *g, const char *id);
/* Visits every node of a graph and of the patterns of children, at any depth; those children may not exist yet. `top`
 * is the node of the graph that it is part of; `node` is a row or, inside the pattern of children, as authored. */
typedef void (*stet_node_visit)(void *ctx, const char *top, stet_value node);
void stet_process_walk(const stet_process *g, stet_node_visit each, void *ctx);
/* The same for one row. */
void stet_process_walk_row(const char *top, stet_value row, stet_node_visit each, void *ctx);
const stet_process_node *stet_process_find(const stet_process *g, const char *id);

/* The number of chunks for this many nodes (a power of two), and the chunk of a node. */
uint32_t stet_process_chunks(size_t nodes);
uint32_t stet_process_chunk(const char *id, uint32_t chunks);

/* A link in a row. `id` and `scope` are borrowed from the value; `space` is NULL for the own space. */
typedef struct stet_link {
    stet_value id_value, scope_value, space_value;
    const char *id, *scope, *space;
    bool as_cell;
} stet_link;
/* Decodes a link; appends its keys to `path`, which is not cleared. False: `v` is not a link, or a damaged one. */
bool stet_link_read(stet_value v, stet_link *out, stet_path *path);
/* Does it lead to this document of the own space, or into it? */
bool stet_link_leads_to(const stet_link *l, const stet_docname *name);
/* A link to a cell of the own space. `path` is relative to the value. */
stet_value stet_link_make(const stet_docname *name, stet_pathref path);
/* {"/": {"link@1": MEMBERS}}. Consumes them. */
stet_value stet_link_wrap(stet_value members);
/* Sets a member of a link: "asCell", "scope". Consumes `value`. */
void stet_link_put(stet_value *link, const char *member, stet_value value);

/* Differences, node by node. */
typedef struct stet_process_change {
    const char *id;
    enum {
        STET_CHANGE_ADDED,
        STET_CHANGE_CHANGED,
        STET_CHANGE_GONE,
        STET_CHANGE_MOVED
    } kind; /* moved: the same computation with another rank or other options */
} stet_process_change;
typedef struct stet_process_diff {
    stet_process_change *at; /* ids borrowed from the two graphs */
    size_t len, cap;
    size_t kept;
} stet_process_diff;
void stet_process_compare(const stet_process *before, const stet_process *after, stet_process_diff *out);
/* What differs in a node that is in both: an array of "code", "binding", "schema" and "options". */
stet_value stet_process_differences(stet_value was, stet_value now);
void stet_process_diff_release(stet_process_diff *d);

/* GraphSnapshotV1: {"version":1,"program","generation","nodes":[...]}, nodes in the order of rank and id. Schemas are
 * inserted (looked up in `schemas`, {HASH: schema}); missing argument schemas are filled in as prefixItems. */
stet_value stet_process_snapshot(const stet_process *g, stet_value schemas);

/* Pictures, in the languages of Graphviz and Mermaid. */
void stet_process_dot(const stet_process *g, stet_buf *out);
void stet_process_mermaid(const stet_process *g, stet_buf *out);

#endif
