/* stream.h - the streams of a piece: names under which events are sent, and the handlers that take them.
 *
 * A handler's row has "stream", a link to the cell that stands for its stream: the handler's own (the document
 * `piece:NAME:node:HANDLER`, whose value is {"$stream": true}), or a named cell. Several handlers may share one. The
 * header of the process graph has "streams", {STREAM: [HANDLER, ...]}, so that sending an event looks at these nodes
 * alone and runs no factory.
 */
#ifndef STET_GRAPH_STREAM_H
#define STET_GRAPH_STREAM_H

#include "graph/piece.h"

bool stet_stream_is_handler(stet_value row);
/* {STREAM: [HANDLER, ...]}, both in order; empty if there are none. */
stet_value stet_streams_of(const stet_process *g, size_t *handlers);
/* Puts {"$stream": true} where handlers have streams of their own. */
STET_CHECKED stet_status stet_streams_write(stet_tx *tx, const stet_process *g, stet_error *err);
/* The handlers of a stream: an array of node ids, borrowed from the piece. `name` is that of the stream, of a handler
 * of it, or of the member of the result that shows it. STET_NOT_FOUND names those that are there. */
STET_CHECKED stet_status stet_stream_find(const stet_piece *p, const char *name, const char **stream, stet_value *out,
                                          stet_error *err);

#endif
