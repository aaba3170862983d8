/* process.h - the process graph: a pattern made concrete for one piece, and what is kept of it.
 *
 *     stet_process *g;
 *     status = stet_process_build(pattern, "totals", &modules, &g, &err);   // pure: every binding is a cell now
 *     stet_process_diff d = stet_process_diff_of(old, g, ...);
 *     ...
 *     stet_process_free(g);
 *
 * A piece called NAME owns the documents
 *
 *     piece:NAME                 the result; its members source, pattern and process say what the piece is
 *     piece:NAME:argument        what people set
 *     piece:NAME:cell:CELL       named cells
 *     piece:NAME:node:NODE       outputs of nodes that name none
 *     piece:NAME:failures        what fails: {NODE: error}
 *     piece:NAME:process:N       rows of the process graph, some nodes in each, by the hash of their id
 *
 * and nothing else: a teardown removes these alone. The ids depend on names alone, so they are the same on every start.
 *
 * A row is what is stored of a node: {"module","inputs","output"|"stream", "kind", "rank", "certain", "fingerprint",
 * "argumentSchema"?, "resultSchema"?, options}. Bindings in it are links; schemas are hashes of documents
 * `schema:HASH`. GraphSnapshotV1 is assembled from the rows when somebody asks for it (stet_process_snapshot).
 *
 * The row of a coordinator (child.h) has "span" (ranks that its children take), "template" or "returns", "effects" and
 * "restarts" (of the template); that of a child's node has "parent". shown: its output is part of the result.
 *
 * rank: writers have a lower one than their readers; nodes of one cycle share theirs. certain: from here a way of
 * inputs that are always read leads to the result or to an effect (or everything is wanted), so that the node is live
 * whenever the whole piece is wanted, without looking. fingerprint: what it computes from what to where; equal ones
 * keep cells, observation and state.
 */
#ifndef STET_GRAPH_PROCESS_H
#define STET_GRAPH_PROCESS_H

#include "graph/pattern.h"
#include "graph/use.h"

#define STET_PROCESS_PER_CHUNK 4 /* small enough that most parts are kept whole in their heads */
#define STET_PIECE_MAX_NAME    STET_PATTERN_MAX_NAME

typedef struct stet_process_node {
    const char *id;
    stet_value row; /* owned by the process */
} stet_process_node;

typedef struct stet_process {
    char *piece;  /* NAME */
    char *result; /* "piece:NAME" */
    int64_t generation;
    stet_hash program;
    stet_value binding; /* the result binding with links, or null */
    bool wants_all;     /* as the pattern has it */
    stet_process_node *nodes;
    size_t node_count;
    stet_map ids;       /* id -> index */
    stet_value schemas; /* {HASH: schema} used by the rows */
    bool template;      /* of children: what is wanted of it depends on where it is used */
    stet_arena arena;
} stet_process;

/* What the graph must know of module kinds. */
typedef struct stet_process_modules {
    void *ctx;
    struct stet_templates *templates; /* where patterns of children are kept; NULL: each is read anew */
    stet_status (*fingerprint)(void *ctx, stet_value descriptor, stet_hash *out, stet_error *err);
    stet_input_use (*use)(void *ctx, stet_value descriptor, const char *input, size_t len);
} stet_process_modules;

bool stet_piece_name_valid(const char *name);
char *stet_piece_doc(const char *piece);                                      /* "piece:NAME"; caller frees */
char *stet_piece_part(const char *piece, const char *part, const char *name); /* name NULL: "piece:NAME:part" */
/* NAME of "piece:NAME", or NULL if the id is not that of a result document. Points into `id`. */
const char *stet_piece_name_of(const char *id);

STET_CHECKED stet_status stet_process_build(stet_pattern *p, const char *piece, const stet_process_modules *modules,
                                            stet_process **out, stet_error *err);
/* From stored rows: an object {ID: ROW} at a time. Rows that make no sense are STET_CORRUPT. */
stet_process *stet_process_new(const char *piece);
STET_CHECKED stet_status stet_process_add_rows(stet_process *g, stet_value rows, stet_error *err);
void stet_process_free(stet_process *g); /* NULL is fine */
const stet_process_node *stet_process_find(const stet_process *g, const char *id);

/* How many chunks for so many nodes (a power of two), and which one a node is in. */
uint32_t stet_process_chunks(size_t nodes);
uint32_t stet_process_chunk(const char *id, uint32_t chunks);

/* A link as it stands in a row. `id` and `scope` are borrowed from the value, `space` NULL for the own one. */
typedef struct stet_link {
    stet_value id_value, scope_value, space_value;
    const char *id, *scope, *space;
    bool as_cell;
} stet_link;
/* Decodes a link; keys are put on `path`, which is not cleared. False if `v` is none, or a damaged one. */
bool stet_link_read(stet_value v, stet_link *out, stet_path *path);
/* A link to a cell of the own space. `path` is relative to the value. */
stet_value stet_link_make(const char *id, stet_pathref path);
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
    } kind; /* moved: same
computation, other place in the order or other options */
} stet_process_change;
typedef struct stet_process_diff {
    stet_process_change *at; /* ids borrowed from the two graphs */
    size_t len, cap;
    size_t kept;
} stet_process_diff;
void stet_process_compare(const stet_process *before, const stet_process *after, stet_process_diff *out);
void stet_process_diff_release(stet_process_diff *d);

/* GraphSnapshotV1: {"version":1,"program","generation","nodes":[...]}, nodes in the order of rank and id; schemas in
 * place (looked up in `schemas`, {HASH: schema}); argument schemas that were not given filled in as prefixItems. */
stet_value stet_process_snapshot(const stet_process *g, stet_value schemas);

/* Pictures. `snapshot` as above. */
void stet_process_dot(const stet_process *g, stet_buf *out);
void stet_process_mermaid(const stet_process *g, stet_buf *out);

#endif
