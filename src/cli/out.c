/* out.c - standard output of the program: buffered, with write failures reported. */

#include "cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define ENOUGH 65536

void stet_out_guard(void) {
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF)
            continue;
        /* open() returns the lowest free number, which is `fd`. A closed standard output gets a descriptor that can't be
         * written to. */
        int got = open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
        if (got > fd)
            close(got);
    }
}

void stet_out_flush(stet_out *o) {
    size_t done = 0;
    while (!o->error_number && done < o->buf.len) {
        ssize_t n = write(STDOUT_FILENO, o->buf.data + done, o->buf.len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 1000);
        else if (errno != EINTR)
            o->error_number = errno;
    }
    stet_buf_clear(&o->buf);
}

void stet_out_add(stet_out *o, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len && !o->error_number) {
        size_t part = len < ENOUGH ? len : ENOUGH;
        stet_buf_add(&o->buf, at, part);
        if (o->buf.len >= ENOUGH)
            stet_out_flush(o);
        at += part;
        len -= part;
    }
}

bool stet_out_reader_gone(const stet_out *o) {
    return o->error_number == EPIPE;
}

stet_status stet_out_status(const stet_out *o, stet_error *err) {
    if (!o->error_number || stet_out_reader_gone(o))
        return STET_OK;
    if (o->error_number == EBADF)
        return stet_fail(err, STET_IO, "standard output is closed");
    return stet_fail_errno(err, o->error_number, "standard output");
}

void stet_out_release(stet_out *o) {
    stet_buf_release(&o->buf);
}
