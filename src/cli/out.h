/* out.h - standard output of the program: buffered, with write failures noticed.
 *
 * A write that fails makes the writer broken, and later writes do nothing. A reader that went away (EPIPE: `stet help |
 * head -1`) is not a failure: the program ends quietly with the status of what it did. Any other error (a full disk, a
 * closed descriptor) is STET_IO with a message.
 */
#ifndef STET_CLI_OUT_H
#define STET_CLI_OUT_H

#include "base/buf.h"

typedef struct stet_out {
    stet_buf buf;
    int error_number; /* of the first write that failed */
} stet_out;

#define STET_OUT_INIT                                                                                                  \
    { STET_BUF(0), 0 }

/* Ensures that descriptors 0, 1 and 2 are open, so that no file of ours gets one of these numbers and is used as a
 * stream. A closed standard output stays unusable: writing to it fails. */
void stet_out_guard(void);
void stet_out_add(stet_out *o, const void *bytes, size_t len); /* flushes by itself when the buffer is large */
void stet_out_flush(stet_out *o);
bool stet_out_reader_gone(const stet_out *o);
/* STET_OK also when the reader went away. */
STET_CHECKED stet_status stet_out_status(const stet_out *o, stet_error *err);
void stet_out_release(stet_out *o);

#endif
