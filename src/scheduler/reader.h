/* reader.h - reads cells with links followed, through a transaction that records each read.
 *
 *     stet_reader r = {.tx = tx, .record = true, .space = open_space, .ctx = ctx};
 *     stet_value v;
 *     stet_status status = stet_reader_binding(&r, inputs, path, STET_RECURSIVE, &v, &err);
 *     stet_reader_release(&r); // frees composed values too
 *
 * A link on the way to what is read is itself read, and then what it leads to. Inside a value that is read recursively
 * every link is replaced by what it leads to (null if nothing is there), unless it is marked asCell. A path that leads
 * to such a link, or below it, reads what it leads to. Values without links are returned as they are. Links in a cycle,
 * and more than STET_READER_MAX_LINKS of them, are STET_LIMIT.
 *
 * Which children of a coordinator exist, and what each computes, is up to the coordinator. So whoever reads a document
 * of a child reads the output of its coordinator as well, shallowly, even if nothing else leads there: a link that
 * names the child is enough. That is what makes the coordinator run first. Actions below the coordinator are exempt.
 *
 * A link without `space` leads to a document of the space that contains the link, whichever space reads it. A link that
 * stays in a value from another space (asCell, stet_reader_raw) is returned with the name of that space in it, so that
 * it leads to the same cell wherever the value is written. A shallow read leaves the links below its value as they are.
 */
#ifndef STET_SCHEDULER_READER_H
#define STET_SCHEDULER_READER_H

#include "base/vec.h"
#include "graph/process.h"
#include "memory/space.h"

#define STET_READER_MAX_HOPS  64
#define STET_READER_MAX_LINKS 1000000

typedef struct stet_reader {
    stet_tx *tx;
    bool record;
    /* The space of a link, by name. */
    stet_status (*space)(void *ctx, const char *name, stet_space **out, stet_error *err);
    void *ctx;
    const char *piece, *node; /* the action that reads; NULL: no action */
    size_t links;
    STET_VEC(stet_value) owned;
} stet_reader;

/* Reads all that a cell consists of, for the record alone: each place that links lead to is read once. A link that can't
 * be followed (a circle, an absent space, a damaged document) does not hide the others. */
void stet_reader_visit(stet_reader *r, const stet_docname *name, stet_pathref path);

/* Reads a cell; `path` is in the envelope. Borrowed until the transaction ends or the reader is released.
 * STET_NOT_FOUND: nothing is there. */
STET_CHECKED stet_status stet_reader_cell(stet_reader *r, stet_space *space, const stet_docname *name,
                                          stet_pathref path, stet_read_kind kind, stet_value *out, stet_error *err);
/* Reads below a binding whose references are links. */
STET_CHECKED stet_status stet_reader_binding(stet_reader *r, stet_value binding, stet_pathref path, stet_read_kind kind,
                                             stet_value *out, stet_error *err);
/* Finds where a write through a binding goes: below a binding that is a cell (asCell), with links on the way followed,
 * including one at the end, and each of them read. STET_INVALID: no cell is bound there. */
typedef struct stet_reader_place {
    stet_space *space; /* NULL: the transaction's */
    char *id, *scope;
    stet_path path; /* in the envelope */
} stet_reader_place;
STET_CHECKED stet_status stet_reader_locate(stet_reader *r, stet_value binding, stet_pathref path,
                                            stet_reader_place *out, stet_error *err);
void stet_reader_place_release(stet_reader_place *p);
/* Records a read of the place itself, because no link leads on from there: for callers that do not write there. */
STET_CHECKED stet_status stet_reader_place_read(stet_reader *r, const stet_reader_place *at, stet_error *err);
/* Reads recursively, with links inside the value left as they are and not read. */
STET_CHECKED stet_status stet_reader_raw(stet_reader *r, stet_value binding, stet_pathref path, stet_value *out,
                                         stet_error *err);
/* A value with its links replaced. */
STET_CHECKED stet_status stet_reader_value(stet_reader *r, stet_value v, stet_value *out, stet_error *err);
void stet_reader_release(stet_reader *r);
/* The id of the output of the next coordinator above a document of a child, outermost first; NULL: there is no other.
 * `*at` is NULL at first. A coordinator that the action `node` of `piece` (NULL: no action) is below, or is itself, is
 * left out. Caller frees. */
char *stet_reader_coordinator(const stet_docname *doc, const char *piece, const char *node, const char **at);
/* Is there a link anywhere in a value? */
bool stet_reader_has_links(stet_value v);

#endif
