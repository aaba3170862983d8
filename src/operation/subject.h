/* subject.h - what a word means that somebody gives to why, status, run or action show.
 *
 *     piece_subject s;
 *     piece_subject_find(&c, args, &s);   // c: a piece_call; a failure sticks to it
 *     if (piece_good(&c) && s.document)
 *         *result = piece_document_value(&c, &s);
 *     piece_subject_release(&s);
 *
 * Every name that stet prints is understood, the first that fits:
 *
 *   PIECE           "totals", "totals@user:x"
 *   PIECE/NODE      "totals/c[in%2Fa].run"
 *   NODE            of the only piece, or of the only one that has such a node
 *   a document      its id, or a cell of it: "file:src/a.c", "file:src~1a.c/hash", "env:CC"; the id of
 *                   the cell that a node writes stands for the node
 *   a file          its path from the current directory, if a node makes it, an action has read it, or it is there
 */
#ifndef STET_OPERATION_SUBJECT_H
#define STET_OPERATION_SUBJECT_H

#include "operation/piece_common.h"

typedef struct piece_subject {
    stet_piece *piece; /* of a piece or an action */
    char *node;        /* of an action */
    char *document;    /* the id of a document that is no piece's: then `piece` and `node` are NULL */
    char *path;        /* of such a document that is a file */
} piece_subject;

/* What `piece` and `action` of the arguments name; without either, the only piece. */
void piece_subject_find(piece_call *c, stet_value args, piece_subject *out);
void piece_subject_release(piece_subject *s);
/* Makes an action of it: of a file the one that makes it. A piece is no action: STET_INVALID sticks to the call. */
void piece_subject_action(piece_call *c, piece_subject *s);
/* {"document","path"?,"exists"?,"left"?,"maker"?,"readers":[{"piece","action","state","changed"}],"outdated","stale"}: the action
 * that makes it, the actions whose last run read it, those of them that it has made outdated since, and how many more
 * actions wait for these. */
stet_value piece_document_value(piece_call *c, const piece_subject *s);
/* Prints such a value as one sentence. */
void piece_print_document(stet_value document, stet_buf *out);

/* Splits "PIECE/NODE" if such a piece is stored and has such a node. The caller frees both. */
bool piece_split(stet_space *space, int64_t branch, const char *word, char **piece, char **node);

#endif
