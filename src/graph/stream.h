/* stream.h - the streams of a piece and of its children: names under which events are sent, and the handlers that take
 * them.
 *
 * A handler's row has "stream", a link to the cell that stands for its stream: the handler's own (the document
 * `piece:NAME:node:HANDLER`, whose value is {"$stream": true}), or a named cell. Several handlers may share one. The
 * header of the process graph has "streams", {STREAM: [HANDLER, ...]}, so that sending an event looks at these nodes
 * alone and runs no factory.
 *
 * A child has streams of its own, named as its nodes are: `rows[7].add` is the stream "add" of the child of "rows"
 * whose key is 7. They are not listed anywhere: which there are follows from the template, and whether the child is
 * there is told by its document. The header has "childStreams", how such names look, for people.
 */
#ifndef STET_GRAPH_STREAM_H
#define STET_GRAPH_STREAM_H

#include "graph/child.h"
#include "graph/piece.h"

bool stet_stream_is_handler(stet_value row);
/* {STREAM: [HANDLER, ...]}, both in order; empty if there are none. */
stet_value stet_streams_of(const stet_process *g, size_t *handlers);
/* ["rows[KEY].add", ...]: streams that children of this graph have, as far as patterns tell. */
stet_value stet_streams_of_children(const stet_process *g);
/* Puts {"$stream": true} where handlers have streams of their own. */
STET_CHECKED stet_status stet_streams_write(stet_tx *tx, const stet_process *g, stet_error *err);

typedef struct stet_stream {
    char *name;          /* "add", "rows[7].add" */
    char *child;         /* "rows[7]", the child whose stream it is, which need not be there; NULL: the piece's own */
    char *coordinator;   /* whose child that is: "rows", or "rows[]" of a filter */
    stet_value handlers; /* {ID: ROW}, in the order of their ids */
} stet_stream;
/* `name` is that of the stream, of a handler of it, or the id of its cell (`piece:NAME:node:STREAM`). STET_NOT_FOUND
 * names those that are there. `modules` and `all` as for stet_child_row. */
STET_CHECKED stet_status stet_stream_find(const stet_child_docs *docs, const stet_piece *p, const char *name,
                                          const stet_process_modules *modules, stet_templates *all, stet_stream *out,
                                          stet_error *err);
void stet_stream_release(stet_stream *s);
/* The name of the stream that a cell stands for, if it can be one: a part of the piece, "NAME" or "NAME/KEY". `path` is
 * relative to the value. */
bool stet_stream_name(const char *piece, const char *id, stet_pathref path, stet_buf *out);

#endif
