/* stream.h - the streams of a piece and of its children: names that events are sent to, and their handlers.
 *
 * A handler's row has "stream", a link to the cell that represents its stream: the handler's own (the document
 * `piece:NAME:node:HANDLER`, whose value is {"$stream": true}), or a named cell. Several handlers may share one. The
 * header of the process graph has "streams", {STREAM: [HANDLER, ...]}, so that sending an event looks only at these
 * nodes and runs no factory.
 *
 * A child has streams of its own, named like its nodes: `rows[7].add` is the stream "add" of the child of "rows" whose
 * key is 7. They are not listed anywhere: the template says which exist, and the document of the child says whether the
 * child exists. The header has "childStreams", which shows people what such names look like.
 */
#ifndef STET_GRAPH_STREAM_H
#define STET_GRAPH_STREAM_H

#include "graph/child.h"
#include "graph/piece.h"

bool stet_stream_is_handler(stet_value row);
/* {STREAM: [HANDLER, ...]}, both in order; empty if there are none. */
stet_value stet_streams_of(const stet_process *g, size_t *handlers);
/* ["rows[KEY].add", ...]: streams of children of this graph, as far as patterns tell. */
stet_value stet_streams_of_children(const stet_process *g);
/* Writes {"$stream": true} for handlers that have streams of their own. */
STET_CHECKED stet_status stet_streams_write(stet_tx *tx, const stet_process *g, stet_error *err);

typedef struct stet_stream {
    char *name;          /* "add", "rows[7].add" */
    char *child;         /* "rows[7]", the child whose stream it is, which may not exist; NULL: the piece's own */
    char *coordinator;   /* its coordinator: "rows", or "rows[]" of a filter */
    stet_value handlers; /* {ID: ROW}, in the order of their ids */
} stet_stream;
/* `name` is that of the stream, of one of its handlers, or the id of its cell (`piece:NAME:node:STREAM`). The message
 * of STET_NOT_FOUND lists the existing ones. `modules` and `all` as for stet_child_row. */
STET_CHECKED stet_status stet_stream_find(const stet_child_docs *docs, const stet_piece *p, const char *name,
                                          const stet_process_modules *modules, stet_templates *all, stet_stream *out,
                                          stet_error *err);
void stet_stream_release(stet_stream *s);
/* The name of the stream that a cell represents, if it can be one: a part of the piece, "NAME" or "NAME/KEY". `path` is
 * relative to the value. */
bool stet_stream_name(const char *piece, const stet_docname *name, stet_pathref path, stet_buf *out);

#endif
