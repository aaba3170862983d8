/* depfile.c - parses the dependency files that compilers write, in the format of Make. */

#include "module/depfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

typedef struct scan {
    const char *text;
    size_t len, at, line;
    bool plain; /* the second reading: backslashes before ":", "#" and a word's end as ninja has them (depfile.h) */
    stet_map seen;
} scan;

/* Length of a line's end at `i`: 1 for LF, 2 for CRLF, else 0. */
static size_t newline(const scan *s, size_t i) {
    if (i < s->len && s->text[i] == '\n')
        return 1;
    return i + 1 < s->len && s->text[i] == '\r' && s->text[i + 1] == '\n' ? 2 : 0;
}

/* Blanks and continued lines. False at the end of the line or text. */
static bool skip_blank(scan *s) {
    while (s->at < s->len) {
        char c = s->text[s->at];
        size_t n;
        if (c == ' ' || c == '\t') {
            s->at++;
        } else if (c == '\\' && (n = newline(s, s->at + 1)) > 0) {
            s->at += 1 + n;
            s->line++;
        } else {
            return newline(s, s->at) == 0;
        }
    }
    return false;
}

/* A colon ends a target if a blank or the line's end follows ("c:\x.o: y" keeps its drive). */
static bool ends_target(const scan *s, size_t colon) {
    size_t next = colon + 1;
    return next >= s->len || s->text[next] == ' ' || s->text[next] == '\t' || newline(s, next) ||
           (s->text[next] == '\\' && newline(s, next + 1));
}

/* A word up to a blank or the end of the line. `*colon`: it ended with one, which is not part of it. */
static void take_word(scan *s, stet_buf *out, bool *colon) {
    *colon = false;
    while (s->at < s->len) {
        char c = s->text[s->at];
        if (c == ' ' || c == '\t' || newline(s, s->at))
            return;
        if (c == '$' && s->at + 1 < s->len && s->text[s->at + 1] == '$') {
            stet_buf_char(out, '$');
            s->at += 2;
            continue;
        }
        if (c == ':' && ends_target(s, s->at)) {
            s->at++;
            *colon = true;
            return;
        }
        if (c != '\\') {
            stet_buf_char(out, c);
            s->at++;
            continue;
        }
        size_t run = 0;
        while (s->at + run < s->len && s->text[s->at + run] == '\\')
            run++;
        char after = s->at + run < s->len ? s->text[s->at + run] : '\n';
        bool last = s->at + run == s->len;
        if (last || newline(s, s->at + run)) { /* the last backslash continues the line */
            for (size_t i = 0; i + 1 < run; i++)
                stet_buf_char(out, '\\');
            s->at += last ? run : run - 1;
            return;
        }
        bool blank = after == ' ' || after == '\t', colon_inside = after == ':' && !ends_target(s, s->at + run);
        if (s->plain && (after == '#' || colon_inside || (blank && run % 2 == 0))) {
            for (size_t i = 0; i < run - !blank; i++)
                stet_buf_char(out, '\\');
            s->at += run;
            if (blank)
                return;
            stet_buf_char(out, after);
            s->at++;
            continue;
        }
        bool special = blank || after == '#';
        for (size_t i = 0; i < (special ? run / 2 : run); i++)
            stet_buf_char(out, '\\');
        s->at += run;
        if (special && run % 2 == 1) {
            stet_buf_char(out, after);
            s->at++;
        } else if (special) {
            return;
        }
    }
}

static void keep(scan *s, stet_depfile *d, const stet_buf *word) {
    if (stet_map_get(&s->seen, word->data, word->len))
        return;
    stet_map_put(&s->seen, word->data, word->len, (stet_slot){.n = 1});
    *stet_vec_add(d) = stet_strndup(word->data, word->len);
}

/* The colon may be the end of a name, and a backslash before it an escape. */
static void keep_with_colon(scan *s, stet_depfile *d, stet_buf *word) {
    bool escaped = word->len > 1 && word->data[word->len - 1] == '\\';
    stet_buf_char(word, ':');
    if (word->overflow)
        return;
    keep(s, d, word);
    if (!escaped)
        return;
    word->data[word->len - 2] = ':';
    word->len--;
    keep(s, d, word);
}

/* One rule, or an empty line. */
static stet_status take_rule(scan *s, stet_depfile *d, stet_buf *word, stet_error *err) {
    size_t first = s->line;
    bool any = false, in_targets = true;
    while (skip_blank(s)) {
        bool colon;
        size_t before = s->at;
        if (!any && s->text[s->at] == '#') { /* a comment */
            while (s->at < s->len && !newline(s, s->at))
                s->at++;
            continue;
        }
        stet_buf_clear(word);
        take_word(s, word, &colon);
        if (word->overflow)
            return stet_fail(err, STET_LIMIT, "line %zu: a path of more than %d bytes", s->line, STET_DEPFILE_MAX_PATH);
        any = true;
        if (colon && in_targets) {
            in_targets = false;
        } else if (!in_targets) {
            if (word->len > 0)
                keep(s, d, word);
            if (colon && s->plain && !word->overflow)
                keep_with_colon(s, d, word);
        }
        if (s->at == before) /* a lone backslash run before a blank: nothing taken would loop */
            s->at++;
    }
    size_t n = newline(s, s->at);
    s->at += n;
    s->line += n > 0;
    if (any && in_targets)
        return stet_fail(err, STET_INVALID, "line %zu: a rule needs a colon after its target", first);
    return STET_OK;
}

stet_status stet_depfile_parse(const char *text, size_t len, stet_depfile *d, stet_error *err) {
    *d = (stet_depfile){0};
    if (len > STET_DEPFILE_MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "%zu bytes, more than the %zu allowed", len, STET_DEPFILE_MAX_BYTES);
    if (len && memchr(text, 0, len))
        return stet_fail(err, STET_INVALID, "line 1: a NUL byte in it");
    scan s = {.text = text, .len = len, .line = 1};
    stet_buf word = STET_BUF(STET_DEPFILE_MAX_PATH);
    stet_status status = STET_OK;
    while (s.at < s.len && status == STET_OK)
        status = take_rule(&s, d, &word, err);
    stet_status again = status;
    s = (scan){.text = text, .len = len, .line = 1, .plain = true, .seen = s.seen};
    while (s.at < s.len && again == STET_OK) /* what only this reading can't take says nothing */
        again = take_rule(&s, d, &word, NULL);
    stet_buf_release(&word);
    stet_map_release(&s.seen);
    if (status != STET_OK)
        stet_depfile_release(d);
    return status;
}

void stet_depfile_release(stet_depfile *d) {
    for (size_t i = 0; i < d->len; i++)
        stet_free(d->at[i]);
    stet_vec_release(d);
}
