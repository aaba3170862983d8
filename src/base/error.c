/* error.c - makes, passes on and prints errors. */

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

enum { MESSAGE_MAX = 1024, HINT_MAX = 512 };

/* Ends a text that snprintf cut at `size` bytes with "...", not in the middle of a character. */
static void mark_cut(char *text, size_t size) {
    size_t keep = size - sizeof "...";
    while (keep > 0 && ((unsigned char)text[keep] & 0xC0) == 0x80)
        keep--;
    memcpy(text + keep, "...", sizeof "...");
}

/* Texts of errors are UTF-8, whatever they quote (names of files, output of programs): any other byte becomes U+FFFD. */
static void mend(char *text, size_t size) {
    char mended[3 * MESSAGE_MAX], *to = mended;
    size_t left = strlen(text), valid = stet_utf8_valid_prefix(text, left);
    assert(3 * left < sizeof mended);
    if (valid == left)
        return;
    for (const char *from = text;; valid = stet_utf8_valid_prefix(from, left)) {
        memcpy(to, from, valid);
        to += valid;
        from += valid;
        left -= valid;
        if (left == 0)
            break;
        to += stet_utf8_encode(0xFFFD, to);
        from++;
        left--;
    }
    *to = 0;
    if ((size_t)(to - mended) >= size)
        mark_cut(mended, size);
    memcpy(text, mended, strlen(mended) + 1);
}

static void print(char *to, size_t size, const char *format, va_list args) {
    int n = vsnprintf(to, size, format, args);
    if (n < 0)
        to[0] = 0;
    else if ((size_t)n >= size)
        mark_cut(to, size);
    mend(to, size);
}

/* One block of memory holds the message and, after its NUL, the hint. Either text may come from the error itself, so
 * that the old block is freed last. */
static void set_texts(stet_error *err, const char *message, const char *hint) {
    size_t len = strlen(message), more = strlen(hint);
    char *both = stet_alloc(len + more + 2);
    memcpy(both, message, len + 1);
    memcpy(both + len + 1, hint, more + 1);
    if (err->status != STET_OK)
        stet_free((void *)err->message);
    err->message = both;
    err->hint = both + len + 1;
}

stet_status stet_vfail(stet_error *err, stet_status status, const char *format, va_list args) {
    assert(status != STET_OK);
    if (!err || err->status != STET_OK)
        return status;
    char text[MESSAGE_MAX];
    print(text, sizeof text, format, args);
    set_texts(err, text, "");
    err->status = status;
    return status;
}

stet_status(stet_fail)(stet_error *err, stet_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    stet_vfail(err, status, format, args);
    va_end(args);
    return status;
}

stet_status stet_error_set(stet_error *err, stet_status status, const char *format, ...) {
    if (status == STET_OK)
        return STET_OK;
    if (!format)
        return stet_fail(err, status, "no message was given");
    va_list args;
    va_start(args, format);
    stet_vfail(err, status, format, args);
    va_end(args);
    return status;
}

static stet_status status_of_errno(int error_number) {
    switch (error_number) {
    case ENOENT:
        return STET_NOT_FOUND;
    case EEXIST:
        return STET_CONFLICT;
    case ETIMEDOUT:
        return STET_BUSY;
    default:
        return STET_IO;
    }
}

static const char *hint_of_errno(int error_number) {
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
        return "free some space there, then try again";
    case EROFS:
        return "that file system is mounted read-only; remount it, or use another place";
    case EACCES:
    case EPERM:
        return "check the owner and the permissions of that path and of the directories above it";
    default:
        return NULL;
    }
}

stet_status(stet_fail_errno)(stet_error *err, int error_number, const char *format, ...) {
    stet_status status = status_of_errno(error_number);
    if (!err || err->status != STET_OK)
        return status;
    char what[MESSAGE_MAX], reason[128];
    va_list args;
    va_start(args, format);
    print(what, sizeof what, format, args);
    va_end(args);
    stet_fail(err, status, "%s: %s", what, strerror_r(error_number, reason, sizeof reason));
    const char *hint = hint_of_errno(error_number);
    if (hint)
        stet_hint(err, "%s", hint);
    return status;
}

void stet_fail_in(stet_error *err, const char *format, ...) {
    if (!err || err->status == STET_OK)
        return;
    char prefix[MESSAGE_MAX], whole[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    print(prefix, sizeof prefix, format, args);
    va_end(args);
    int n = snprintf(whole, sizeof whole, "%s: %s", prefix, err->message);
    if ((size_t)n >= sizeof whole)
        mark_cut(whole, sizeof whole);
    set_texts(err, whole, err->hint);
}

bool stet_has_hint(const stet_error *err) {
    return err->status != STET_OK && err->hint[0];
}

static void vhint(stet_error *err, const char *format, va_list args) {
    char text[HINT_MAX];
    print(text, sizeof text, format, args);
    set_texts(err, err->message, text);
}

void stet_hint(stet_error *err, const char *format, ...) {
    if (!err || err->status == STET_OK || err->hint[0])
        return;
    va_list args;
    va_start(args, format);
    vhint(err, format, args);
    va_end(args);
}

void stet_hint_instead(stet_error *err, const char *format, ...) {
    if (!err || err->status == STET_OK)
        return;
    va_list args;
    va_start(args, format);
    vhint(err, format, args);
    va_end(args);
}

void stet_detail(stet_error *err, const char *key, stet_value item) {
    if (!err || err->status == STET_OK) {
        stet_value_release(item);
        return;
    }
    if (stet_value_type(err->details) != STET_TYPE_OBJECT) {
        stet_value_release(err->details);
        err->details = stet_value_object();
    }
    stet_value_put(&err->details, key, item);
}

void stet_error_clear(stet_error *err) {
    if (!err || err->status == STET_OK)
        return;
    stet_free((void *)err->message); /* the same block holds the hint */
    stet_value_release(err->details);
    *err = (stet_error)STET_ERROR_INIT;
}

void stet_error_move(stet_error *to, stet_error *from) {
    if (to == from)
        return;
    if (to && to->status == STET_OK) {
        *to = *from;
        *from = (stet_error)STET_ERROR_INIT;
    }
    stet_error_clear(from);
}

void stet_error_copy(stet_error *to, const stet_error *from) {
    if (!to || to->status != STET_OK || from->status == STET_OK)
        return;
    stet_fail(to, from->status, "%s", from->message);
    stet_hint(to, "%s", from->hint);
    to->details = stet_value_retain(from->details);
}

stet_value stet_error_value(const stet_error *err) {
    static const stet_error none = STET_ERROR_INIT;
    const stet_error *e = err ? err : &none;
    bool failed = e->status != STET_OK; /* otherwise only the status is set */
    stet_value v = stet_value_object();
    stet_value_put(&v, "code", stet_value_string(stet_status_name(e->status)));
    stet_value_put(&v, "message", stet_value_string(failed ? e->message : ""));
    stet_value_put(&v, "hint", stet_value_string(failed ? e->hint : ""));
    stet_value_put(&v, "details", failed ? stet_value_retain(e->details) : stet_value_null());
    return v;
}

static const struct {
    stet_status status;
    const char *name;
} names[] = {
    {STET_OK, "ok"},
    {STET_FAILED, "failed"},
    {STET_INVALID, "invalid"},
    {STET_NOT_FOUND, "not_found"},
    {STET_CONFLICT, "conflict"},
    {STET_BUSY, "busy"},
    {STET_CORRUPT, "corrupt"},
    {STET_IO, "io"},
    {STET_UNSUPPORTED, "unsupported"},
    {STET_DENIED, "denied"},
    {STET_LIMIT, "limit"},
    {STET_INTERNAL, "internal"},
    {STET_CANCELLED, "cancelled"},
};

const char *stet_status_name(stet_status status) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].status == status)
            return names[i].name;
    return "internal";
}

bool stet_status_of_name(const char *name, stet_status *out) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name)) {
            *out = names[i].status;
            return true;
        }
    return false;
}

/* Without stdio, which may need memory itself. */
static _Noreturn void out_of_memory(void) {
    static const char text[] = "stet: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    abort();
}

void *stet_alloc(size_t size) {
    void *p = malloc(size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *stet_alloc_zero(size_t size) {
    void *p = calloc(1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *stet_realloc(void *p, size_t size) {
    void *q = realloc(p, size ? size : 1);
    if (!q)
        out_of_memory();
    return q;
}

char *stet_strdup(const char *s) {
    return stet_strndup(s, strlen(s));
}

char *stet_strndup(const char *s, size_t len) {
    char *copy = stet_alloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = 0;
    return copy;
}

char *stet_asprintf(const char *format, ...) {
    char *text;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        out_of_memory();
    va_end(args);
    return text;
}

void stet_free(void *p) {
    free(p);
}
