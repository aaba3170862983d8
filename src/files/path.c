/* path.c - converts between file paths and document ids. */

#include "files/path.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/vec.h"
#include "os/file.h"
#include "project/project.h"

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Bytes of the character at `s` that may stand as they are; 0 if its first byte must be escaped. */
static size_t plain(const char *s, size_t n) {
    unsigned char c = (unsigned char)*s;
    if (c < 0x20 || c == 0x7F || c == '%')
        return 0;
    if (c < 0x80)
        return 1;
    size_t want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (want > n || !stet_utf8_valid(s, want) || (c == 0xC2 && (unsigned char)s[1] < 0xA0))
        return 0;
    return want;
}

void stet_path_escape(const char *path, stet_buf *out) {
    size_t len = strlen(path);
    for (size_t i = 0; i < len;) {
        size_t n = plain(path + i, len - i);
        if (n == 0)
            stet_buf_printf(out, "%%%02X", (unsigned char)path[i]);
        else
            stet_buf_add(out, path + i, n);
        i += n ? n : 1;
    }
}

bool stet_path_unescape(const char *text, size_t len, stet_buf *out) {
    size_t start = out->len;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            stet_buf_char(out, text[i]);
            continue;
        }
        int high = i + 2 < len ? digit(text[i + 1]) : -1, low = i + 2 < len ? digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        stet_buf_char(out, (char)(high * 16 + low));
        i += 2;
    }
    /* Only what escaping gives: one id per file. */
    stet_buf back = STET_BUF(0);
    stet_path_escape(stet_buf_cstr(out) + start, &back);
    bool same = back.len == len && (len == 0 || memcmp(back.data, text, len) == 0);
    stet_buf_release(&back);
    return same && len > 0;
}

char *stet_file_id(const char *path) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, STET_FILE_PREFIX);
    stet_path_escape(path, &b);
    return stet_buf_take(&b, NULL);
}

char *stet_file_of_id(const char *id, size_t len) {
    size_t n = strlen(STET_FILE_PREFIX);
    stet_buf b = STET_BUF(0);
    if (len <= n || memcmp(id, STET_FILE_PREFIX, n) != 0 || !stet_path_unescape(id + n, len - n, &b)) {
        stet_buf_release(&b);
        return NULL;
    }
    return stet_buf_take(&b, NULL);
}

stet_value stet_file_link(const char *id) {
    stet_value link = stet_value_object(), sigil = stet_value_object(), r = stet_value_object();
    stet_value_put(&link, "id", stet_value_string(id));
    stet_value_put(&sigil, "link@1", link);
    stet_value_put(&r, "/", sigil);
    return r;
}

/* Appends the parts of `path` to a normal path. Of a relative one, ".." at the start stay. */
static void append_parts(stet_buf *b, const char *path) {
    bool absolute = b->len > 0 && b->data[0] == '/';
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/"), last = b->len;
        while (last > 0 && b->data[last - 1] != '/')
            last--;
        bool up = n == 2 && p[0] == '.' && p[1] == '.';
        bool stuck = b->len == 0 || (b->len - last == 2 && memcmp(b->data + last, "..", 2) == 0);
        if (up && (absolute || !stuck)) {
            b->len = last > 1 ? last - 1 : absolute;
        } else if (n > 0 && !(n == 1 && p[0] == '.')) {
            if (b->len > 0 && b->data[b->len - 1] != '/')
                stet_buf_char(b, '/');
            stet_buf_add(b, p, n);
        }
        p += n + (p[n] == '/');
    }
    stet_buf_char(b, 0);
    b->len--;
}

/* Is it a file of stet's (project.h)? A path is relative to the root, or outside of it. */
static bool is_stets(const char *root, const char *path) {
    if (strncmp(path, ".stet", 5) == 0 && (path[5] == '/' || !path[5]))
        return true;
    if (!stet_project_has_own() || (!root && path[0] != '/'))
        return false;
    char *full = path[0] == '/' ? stet_strdup(path) : stet_file_join(root, path);
    bool own = stet_project_is_own(full);
    stet_free(full);
    return own;
}

stet_status stet_path_normal(const char *root, const char *from, const char *path, char **out, stet_error *err) {
    stet_buf b = STET_BUF(0), whole = STET_BUF(0);
    size_t root_len = root && strcmp(root, "/") != 0 ? strlen(root) : 0;
    stet_buf_str(&b, *path == '/' ? "/" : "");
    if (*path != '/')
        append_parts(&b, from);
    append_parts(&b, path);
    if (root) {
        stet_buf_str(&whole, "/");
        if (*path != '/')
            append_parts(&whole, root);
        append_parts(&whole, stet_buf_cstr(&b));
        if (strncmp(whole.data, root, root_len) == 0 && (whole.data[root_len] == '/' || !whole.data[root_len])) {
            const char *inside = whole.data + root_len;
            stet_buf_clear(&b);
            stet_buf_str(&b, *inside ? inside + 1 : inside);
        }
    }
    const char *text = stet_buf_cstr(&b);
    size_t len = strlen(text);
    stet_status status = STET_OK;
    if (!*path)
        status = stet_fail(err, STET_INVALID, "an empty path");
    else if (len == 0 || strcmp(text, "/") == 0 || (len >= 2 && strcmp(text + len - 2, "..") == 0))
        status = stet_fail(err, STET_INVALID, "\"%.200s\" is the project itself or a directory above it", path);
    else if (is_stets(root, text))
        status = stet_fail(err, STET_INVALID, "\"%.200s\" belongs to stet", path);
    else
        *out = stet_strdup(text);
    stet_buf_release(&b);
    stet_buf_release(&whole);
    return status;
}

/* Appends a name to a real path, or puts what it leads to before the rest. False: too many links, or too long. */
static bool real_step(stet_buf *at, const char *name, size_t len, char **rest, int *links) {
    size_t before = at->len;
    char target[PATH_MAX];
    if (len == 2 && name[0] == '.' && name[1] == '.') {
        while (at->len > 0 && at->data[--at->len] != '/')
            ;
        return true;
    }
    if (len == 0 || (len == 1 && name[0] == '.'))
        return true;
    stet_buf_printf(at, "/%.*s", (int)len, name);
    ssize_t n = readlink(stet_buf_cstr(at), target, sizeof target - 1);
    if (n <= 0)
        return at->len < PATH_MAX;
    target[n] = 0;
    at->len = target[0] == '/' ? 0 : before;
    char *more = stet_asprintf("%s/%s", target, *rest);
    stet_free(*rest);
    *rest = more;
    return ++*links <= 40 && strlen(more) < PATH_MAX;
}

static char *real_path(const char *root, const char *path, bool directory) {
    char *top = NULL, *rest = stet_strdup(path), *out = NULL;
    stet_buf at = STET_BUF(0);
    int links = 0;
    bool fine = stet_file_realpath(root, &top, NULL) == STET_OK;
    if (fine && path[0] != '/')
        stet_buf_str(&at, strcmp(top, "/") == 0 ? "" : top);
    while (fine && *rest) {
        size_t n = strcspn(rest, "/"), used = n + strspn(rest + n, "/");
        char *name = stet_strndup(rest, n);
        memmove(rest, rest + used, strlen(rest + used) + 1);
        fine = real_step(&at, name, n, &rest, &links);
        stet_free(name);
    }
    const char *real = stet_buf_cstr(&at);
    size_t len = fine && strcmp(top, "/") != 0 ? strlen(top) : 0;
    if (fine && at.len > len + 1 && strncmp(real, top, len) == 0 && real[len] == '/' && !is_stets(top, real + len + 1))
        out = stet_strdup(real + len + 1);
    else if (fine && directory && strcmp(*real ? real : "/", top) == 0)
        out = stet_strdup("");
    stet_buf_release(&at);
    stet_free(rest);
    free(top);
    return out;
}

char *stet_path_real(const char *root, const char *path) {
    return real_path(root, path, false);
}

char *stet_path_real_dir(const char *root, const char *dir) {
    return real_path(root, dir, true);
}

char *stet_path_behind_links(const char *root, const char *path, size_t n) {
    if (n < 2)
        return NULL;
    char *dir = stet_strndup(path, n - 1), *real = stet_path_real_dir(root, dir);
    char *other = !real || strcmp(real, dir) == 0 ? NULL
                  : *real                         ? stet_asprintf("%s/%s", real, path + n)
                                                  : stet_strdup(path + n);
    stet_free(real);
    stet_free(dir);
    return other;
}

stet_status stet_path_meant(const char *root, const char *from, const char *path, char **out, stet_error *err) {
    stet_status status = stet_path_normal(root, from, path, out, err);
    if (status != STET_OK || !root || !strstr(path, ".."))
        return status;
    char *whole = path[0] == '/' || !*from ? stet_strdup(path) : stet_file_join(from, path);
    char *leads = stet_path_real(root, whole), *real = stet_path_real(root, *out);
    stet_free(whole);
    if (leads && (!real || strcmp(leads, real) != 0)) {
        stet_free(*out);
        *out = leads;
        leads = NULL;
    }
    stet_free(leads);
    stet_free(real);
    return status;
}

char *stet_path_detour(const char *root, const char *dir) {
    char *full = dir[0] == '/' ? stet_strdup(dir) : stet_file_join(root, dir), *top = NULL, *real = NULL, *out = NULL;
    stet_buf plain = STET_BUF(0);
    if (stet_file_realpath(root, &top, NULL) == STET_OK && stet_file_realpath(full, &real, NULL) == STET_OK) {
        stet_buf_str(&plain, dir[0] == '/' ? "/" : top);
        append_parts(&plain, dir);
        size_t len = strlen(top);
        if (strcmp(stet_buf_cstr(&plain), real) != 0)
            out = stet_strdup(strncmp(real, top, len) == 0 && real[len] == '/' ? real + len + 1 : real);
    }
    stet_buf_release(&plain);
    stet_free(full);
    free(top);
    free(real);
    return out;
}

size_t stet_path_before_up(const char *path) {
    size_t before = 0;
    bool named = false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        bool up = n == 2 && p[0] == '.' && p[1] == '.';
        if (up && named)
            before = (size_t)(p - path);
        named |= n > 0 && !up && !(n == 1 && p[0] == '.');
        p += n + (p[n] == '/');
    }
    return before;
}

bool stet_path_is_uncounted(const char *full) {
    const char *name = stet_file_basename(full);
    return strcmp(name, ".stet") == 0 || strcmp(name, ".git") == 0 || stet_project_leads_to_own(full);
}

bool stet_path_part(const char *path, const char *part, size_t len, stet_buf *out) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    if (!dot || dot == name) /* ".profile" has no extension */
        dot = name + strlen(name);
    if (len == 4 && memcmp(part, "name", 4) == 0)
        stet_buf_str(out, name);
    else if (len == 4 && memcmp(part, "stem", 4) == 0)
        stet_buf_add(out, name, (size_t)(dot - name));
    else if (len == 3 && memcmp(part, "ext", 3) == 0)
        stet_buf_str(out, dot);
    else if (len == 3 && memcmp(part, "dir", 3) == 0)
        stet_buf_add(out, slash ? path : ".", slash == path ? 1 : slash ? (size_t)(slash - path) : 1);
    else
        return false;
    return true;
}

size_t stet_path_place(const char *text, size_t len, bool (*has)(void *ctx, const char *name, size_t len), void *ctx,
                       const char **part) {
    *part = NULL;
    if (has(ctx, text, len))
        return len;
    size_t dot = len;
    while (dot > 0 && text[dot - 1] != '.')
        dot--;
    stet_buf scratch = STET_BUF(0);
    bool known = dot > 1 && stet_path_part("x", text + dot, len - dot, &scratch) && has(ctx, text, dot - 1);
    stet_buf_release(&scratch);
    if (!known)
        return 0;
    *part = text + dot;
    return dot - 1;
}

typedef struct filling {
    const char *(*path_of)(void *ctx, const char *name, size_t len);
    void *ctx;
} filling;

static bool has_path(void *ctx, const char *name, size_t len) {
    const filling *f = ctx;
    return f->path_of(f->ctx, name, len) != NULL;
}

void stet_path_fill(const char *text, const char *(*path_of)(void *ctx, const char *name, size_t len), void *ctx,
                    stet_buf *out) {
    filling f = {path_of, ctx};
    while (*text) {
        const char *close = *text == '{' ? strchr(text, '}') : NULL, *part = NULL;
        size_t len = close ? (size_t)(close - text) - 1 : 0;
        size_t name_len = close ? stet_path_place(text + 1, len, has_path, &f, &part) : 0;
        const char *path = name_len ? path_of(ctx, text + 1, name_len) : NULL;
        if (!path) {
            stet_buf_char(out, *text++);
            continue;
        }
        if (!part)
            stet_buf_str(out, path);
        else if (!stet_path_part(path, part, (size_t)(close - part), out))
            assert(!"a part that there is of every path");
        text = close + 1;
    }
}
