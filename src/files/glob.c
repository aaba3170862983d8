/* glob.c - matches file names against patterns. */

#include "files/glob.h"

#include <string.h>

#include "base/utf8.h"

bool stet_glob_is(const char *text) {
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        else if (*text == '*' || *text == '?' || *text == '[')
            return true;
    }
    return false;
}

/* Bytes of the character at `s`, of which `n` are left: of one that is valid UTF-8, else 1. */
static size_t character(const char *s, size_t n) {
    unsigned char c = (unsigned char)*s;
    size_t want = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return want <= n && stet_utf8_valid(s, want) ? want : 1;
}

static uint32_t code(const char *s, size_t n) {
    unsigned char c = (unsigned char)*s;
    uint32_t v = n == 1 ? c : n == 2 ? c & 0x1Fu : n == 3 ? c & 0x0Fu : c & 0x07u;
    for (size_t i = 1; i < n; i++)
        v = v << 6 | ((unsigned char)s[i] & 0x3Fu);
    return n == 1 && c >= 0x80 ? 0x110000u + c : v; /* a byte that is no character */
}

/* End of the bracket expression that begins at p[0] == '[', or NULL if it is never closed. */
static const char *bracket_end(const char *p, const char *end) {
    const char *q = p + 1;
    if (q < end && (*q == '!' || *q == '^'))
        q++;
    if (q < end && *q == ']')
        q++;
    while (q < end && *q != ']')
        q += *q == '\\' && q + 1 < end ? 2 : 1;
    return q < end ? q : NULL;
}

static bool in_bracket(const char *p, const char *end, uint32_t c) {
    bool negated = p + 1 < end && (p[1] == '!' || p[1] == '^'), found = false;
    const char *q = p + 1 + negated;
    bool first = true;
    while (q < end && (first || *q != ']')) {
        first = false;
        if (*q == '\\' && q + 1 < end)
            q++;
        size_t n = character(q, (size_t)(end - q));
        uint32_t low = code(q, n), high = low;
        q += n;
        if (q + 1 < end && *q == '-' && q[1] != ']') {
            q++;
            if (*q == '\\' && q + 1 < end)
                q++;
            n = character(q, (size_t)(end - q));
            high = code(q, n);
            q += n;
        }
        found |= low <= c && c <= high;
    }
    return found != negated;
}

static bool hidden(const char *s, size_t n) {
    return (n == 5 && memcmp(s, ".stet", 5) == 0) || (n == 4 && memcmp(s, ".git", 4) == 0);
}

/* One part of a path against one part of a pattern. `*` is tried again one character on: two positions, no recursion.
 */
static bool match_part(const char *p, size_t pn, const char *s, size_t sn) {
    const char *pe = p + pn, *se = s + sn, *star = NULL, *mark = NULL;
    if (hidden(s, sn))
        return false;
    if (sn && *s == '.' && !(pn && *p == '.') && !(pn > 1 && *p == '\\' && p[1] == '.'))
        return false;
    while (s < se) {
        const char *close;
        size_t n = character(s, (size_t)(se - s));
        if (p < pe && *p == '*') {
            star = ++p;
            mark = s;
            continue;
        }
        if (p < pe && *p == '?') {
            p++;
            s += n;
            continue;
        }
        if (p < pe && *p == '[' && (close = bracket_end(p, pe)) != NULL) {
            if (in_bracket(p, close, code(s, n))) {
                p = close + 1;
                s += n;
                continue;
            }
        } else if (p < pe) {
            const char *literal = *p == '\\' && p + 1 < pe ? p + 1 : p;
            if (*literal == *s) {
                p = literal + 1;
                s++;
                continue;
            }
        }
        if (!star)
            return false;
        mark += character(mark, (size_t)(se - mark));
        s = mark;
        p = star;
    }
    while (p < pe && *p == '*')
        p++;
    return p == pe;
}

static size_t part_len(const char *s) {
    return strcspn(s, "/");
}

static bool is_deep(const char *p, size_t n) {
    return n == 2 && p[0] == '*' && p[1] == '*';
}

/* `below`: is it enough that the path ends before the pattern does? Parts are to `**` as characters are to `*`. */
static bool match(const char *p, const char *s, bool below) {
    const char *star = NULL, *mark = NULL;
    while (*s) {
        size_t pn = part_len(p), sn = part_len(s);
        if (*p && is_deep(p, pn)) {
            star = p + pn + (p[pn] == '/');
            mark = s;
            p = star;
            if (below)
                return !hidden(s, sn) || !*s;
            continue;
        }
        if (*p && match_part(p, pn, s, sn)) {
            p += pn;
            s += sn;
            bool more_p = *p == '/', more_s = *s == '/';
            p += more_p;
            s += more_s;
            if (!more_s || more_p || star)
                continue;
            return false;
        }
        if (!star)
            return false;
        sn = part_len(mark);
        if (*mark == '.' || hidden(mark, sn)) /* hidden directories are not descended into by `**` */
            return false;
        mark += sn;
        if (*mark == '/')
            mark++;
        s = mark;
        p = star;
    }
    if (below)
        return *p != 0;
    while (*p && is_deep(p, part_len(p))) {
        p += 2;
        p += *p == '/';
    }
    return *p == 0;
}

/* The first exception, or NULL: "\x1f!PATTERN". */
static const char *exceptions(const char *pattern) {
    const char *at = strchr(pattern, STET_GLOB_EXCEPT);
    while (at && at[1] != '!')
        at = strchr(at + 1, STET_GLOB_EXCEPT);
    return at;
}

size_t stet_glob_len(const char *pattern) {
    const char *at = exceptions(pattern);
    return at ? (size_t)(at - pattern) : strlen(pattern);
}

void stet_glob_show(const char *pattern, stet_buf *out) {
    for (const char *at; (at = exceptions(pattern)) != NULL; pattern = at + 1) {
        stet_buf_add(out, pattern, (size_t)(at - pattern));
        stet_buf_str(out, ", ");
    }
    stet_buf_str(out, pattern);
}

/* Does one of the exceptions match the path, or a directory above it? */
static bool is_excepted(const char *at, const char *path) {
    bool is = false;
    while (at && !is) {
        const char *next = exceptions(at + 2);
        char *one = next ? stet_strndup(at + 2, (size_t)(next - at) - 2) : stet_strdup(at + 2);
        for (const char *slash = strchr(path, '/'); !is && slash; slash = strchr(slash + 1, '/')) {
            char *dir = stet_strndup(path, (size_t)(slash - path));
            is = match(one, dir, false);
            stet_free(dir);
        }
        is = is || match(one, path, false);
        stet_free(one);
        at = next;
    }
    return is;
}

static bool match_except(const char *pattern, const char *path, bool below) {
    const char *at = exceptions(pattern);
    if (!at)
        return match(pattern, path, below);
    char *main = stet_strndup(pattern, (size_t)(at - pattern));
    bool is = (!*main || match(main, path, below)) && !(*path && is_excepted(at, path));
    stet_free(main);
    return is;
}

bool stet_glob_match(const char *pattern, const char *path) {
    return *path && match_except(pattern, path, false);
}

bool stet_glob_below(const char *pattern, const char *dir) {
    return match_except(pattern, dir, true);
}

size_t stet_glob_prefix(const char *pattern) {
    size_t end = 0, len = stet_glob_len(pattern);
    for (size_t i = 0; i < len;) {
        size_t n = part_len(pattern + i);
        char part[STET_GLOB_MAX + 1];
        size_t keep = n < STET_GLOB_MAX ? n : STET_GLOB_MAX;
        memcpy(part, pattern + i, keep);
        part[keep] = 0;
        if (strpbrk(part, "*?[\\") || i + n >= len)
            break;
        end = i + n;
        i += n + 1;
    }
    return end;
}

static stet_status check_one(const char *pattern, stet_error *err) {
    if (!*pattern || *pattern == '/' || strlen(pattern) > STET_GLOB_MAX)
        return stet_fail(err, STET_INVALID, "\"%.200s\" is no pattern of files of the project", pattern);
    for (const char *p = pattern;;) {
        size_t n = part_len(p);
        if (n == 0 || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return stet_fail(err, STET_INVALID,
                             "\"%.200s\": empty parts, \".\" and \"..\" are not allowed in a pattern", pattern);
        for (size_t i = 0; i < n; i++) {
            if (p[i] == '\\') {
                i++;
            } else if (p[i] == '[') {
                const char *close = bracket_end(p + i, p + n);
                if (!close)
                    return stet_fail(err, STET_INVALID, "\"%.200s\": \"[\" is never closed", pattern);
                i = (size_t)(close - p);
            }
        }
        if (!p[n])
            return STET_OK;
        p += n + 1;
    }
}

stet_status stet_glob_check(const char *pattern, stet_error *err) {
    const char *at = exceptions(pattern);
    if (!at)
        return check_one(pattern, err);
    if (strlen(pattern) > STET_GLOB_MAX)
        return stet_fail(err, STET_INVALID, "\"%.200s\" with its exceptions is longer than %d bytes", pattern,
                         STET_GLOB_MAX);
    char *one = stet_strndup(pattern, (size_t)(at - pattern));
    stet_status status = check_one(one, err);
    stet_free(one);
    while (at && status == STET_OK) {
        const char *next = exceptions(at + 2);
        one = next ? stet_strndup(at + 2, (size_t)(next - at) - 2) : stet_strdup(at + 2);
        status = check_one(one, err);
        stet_free(one);
        at = next;
    }
    return status;
}
