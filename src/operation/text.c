/* text.c - text for people: wrapped paragraphs, columns, emphasis. */

#include "operation/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

/* Bytes of a character that is not shown and changes how others are shown (marks of direction, the byte order mark, tags,
 * annotations); 0: it is none. */
static size_t format_character(const unsigned char *s, size_t len) {
    if (len >= 2 && s[0] == 0xd8 && s[1] == 0x9c) /* U+061C */
        return 2;
    if (len >= 3 && s[0] == 0xe2 && s[1] == 0x80 &&
        (s[2] == 0x8b || s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae)))
        return 3; /* U+200B, U+200E, U+200F, U+2028 to U+202E; the joiners between them are part of words */
    if (len >= 3 && s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa0 && s[2] <= 0xaf) /* U+2060 to U+206F */
        return 3;
    if (len >= 3 && s[0] == 0xef && ((s[1] == 0xbb && s[2] == 0xbf) || (s[1] == 0xbf && s[2] >= 0xb9 && s[2] <= 0xbb)))
        return 3; /* U+FEFF, U+FFF9 to U+FFFB */
    return len >= 4 && s[0] == 0xf3 && s[1] == 0xa0 && (s[2] == 0x80 || s[2] == 0x81) ? 4 : 0; /* U+E0000 to U+E007F */
}

/* Valid UTF-8, with control characters and format characters replaced. */
static void put_valid(stet_buf *out, const char *text, size_t len) {
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        /* C0, DEL, and C1 in its UTF-8 form (c2 80..9f). */
        bool control = (c < 0x20 && c != '\t') || c == 0x7f;
        bool c1 = c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0;
        size_t bytes = control ? 1 : c1 ? 2 : c < 0x80 ? 0 : format_character((const unsigned char *)text + i, len - i);
        if (bytes == 0)
            continue;
        stet_buf_add(out, text + from, i - from);
        stet_buf_char(out, '?');
        i += bytes - 1;
        from = i + 1;
    }
    if (from < len)
        stet_buf_add(out, text + from, len - from);
}

void stet_text_plain(stet_render *r, const char *text, size_t len) {
    while (len) {
        size_t valid = stet_utf8_valid_prefix(text, len);
        put_valid(r->out, text, valid);
        if (valid == len)
            return;
        stet_buf_char(r->out, '?');
        text += valid + 1;
        len -= valid + 1;
    }
}

void stet_text_output(stet_render *r, const char *before, const char *bytes, size_t len) {
    const char *end = bytes + len;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes)), *stop = newline ? newline : end;
        size_t n = (size_t)(stop - bytes);
        stet_text_styled(r, STET_STYLE_DIM, before);
        if (r->width == 0) {
            stet_buf_add(r->out, bytes, n);
        } else {
            while (n > 0 && bytes[n - 1] == '\r')
                n--;
            size_t from = n;
            while (from > 0 && bytes[from - 1] != '\r')
                from--;
            stet_text_plain(r, bytes + from, n - from);
        }
        stet_buf_char(r->out, '\n');
        bytes = stop + 1;
    }
}

void stet_text_value(stet_render *r, stet_value text) {
    size_t len;
    const char *bytes = stet_value_as_string(&text, &len);
    if (bytes)
        stet_text_plain(r, bytes, len);
}

void stet_text_styled(stet_render *r, stet_style style, const char *text) {
    static const char *const codes[] = {[STET_STYLE_BOLD] = "1",
                                        [STET_STYLE_DIM] = "2",
                                        [STET_STYLE_GOOD] = "32",
                                        [STET_STYLE_WARN] = "33",
                                        [STET_STYLE_BAD] = "31"};
    if (*text == 0)
        return;
    if (r->colour)
        stet_buf_printf(r->out, "\033[%sm", codes[style]);
    stet_text_plain(r, text, strlen(text));
    if (r->colour)
        stet_buf_str(r->out, "\033[0m");
}

static void blanks(stet_buf *out, size_t n) {
    while (n--)
        stet_buf_char(out, ' ');
}

size_t stet_text_fitting(const char *text, size_t len, size_t columns) {
    size_t fits = 0, wide = 0;
    while (fits < len) {
        size_t n = 1;
        while (fits + n < len && ((unsigned char)text[fits + n] & 0xC0) == 0x80)
            n++;
        wide += stet_utf8_width(text + fits, n);
        if (wide > columns)
            break;
        fits += n;
    }
    return fits;
}

void stet_text_pad(stet_buf *out, size_t from, size_t to) {
    blanks(out, from < to ? to - from : 1);
}

void stet_text_wrap(stet_buf *out, const char *text, size_t indent, size_t width, bool hanging) {
    size_t column = 0; /* 0: the line is still empty */
    bool indented = hanging;
    if (width < indent + 20)
        width = indent + 20;
    const char *at = text;
    while (*at) {
        if (*at == '\n') {
            size_t newlines = strspn(at, "\n");
            bool kept = at[newlines] == ' ' || at[newlines] == '\t';
            at += newlines;
            if (!*at)
                break;
            if (newlines > 1 || kept) {
                stet_buf_str(out, newlines > 1 ? "\n\n" : "\n");
                column = 0;
                indented = false;
            }
            if (kept) {
                size_t n = strcspn(at, "\n");
                blanks(out, indent);
                stet_buf_add(out, at, n);
                at += n;
                column = width; /* the next word begins a new line */
                indented = true;
            }
            continue;
        }
        if (*at == ' ') {
            at++;
            continue;
        }
        size_t n = strcspn(at, " \n");
        size_t wide = stet_utf8_width(at, n);
        if (column && indent + column + 1 + wide > width) {
            stet_buf_char(out, '\n');
            column = 0;
            indented = false;
        }
        if (column) {
            stet_buf_char(out, ' ');
            column++;
        } else if (!indented) {
            blanks(out, indent);
        }
        indented = true;
        stet_buf_add(out, at, n);
        column += wide;
        at += n;
    }
    stet_buf_char(out, '\n');
}

stet_table stet_table_begin(size_t columns, const char *const heads[]) {
    stet_table t = {.columns = columns};
    for (size_t i = 0; i < columns; i++)
        stet_table_cell(&t, heads[i]);
    return t;
}

void stet_table_cell(stet_table *t, const char *text) {
    assert(t->columns > 0 && t->columns <= STET_TABLE_COLUMNS);
    if (stet_value_type(t->cells) != STET_TYPE_ARRAY) {
        t->cells = stet_value_array();
        t->styles = stet_value_array();
    }
    /* As it is shown: what is replaced may be wider than it was. */
    stet_buf clean = STET_BUF(0);
    stet_text_plain(&(stet_render){.out = &clean}, text, strlen(text));
    stet_value_push(&t->cells, stet_value_string(stet_buf_cstr(&clean)));
    stet_buf_release(&clean);
    stet_value_push(&t->styles, t->next);
    t->next = stet_value_null();
}

void stet_table_style(stet_table *t, stet_style style) {
    t->next = stet_value_int(style);
}

void stet_table_cellf(stet_table *t, const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[stet_utf8_valid_prefix(text, strlen(text))] = 0; /* the cut may have split a character */
    stet_table_cell(t, text);
}

/* The minimum width of the last cell; if there is less room, the line wraps. */
#define LAST_MIN 8

void stet_table_print(stet_table *t, stet_render *r, bool header) {
    size_t widths[STET_TABLE_COLUMNS] = {0};
    size_t count = stet_value_count(t->cells);
    assert(count % t->columns == 0);
    for (size_t i = 0; i < count; i++) {
        stet_value cell = stet_value_at(t->cells, i);
        size_t len, wide;
        const char *text = stet_value_as_string(&cell, &len);
        wide = stet_utf8_width(text, len);
        if (wide > widths[i % t->columns])
            widths[i % t->columns] = wide;
    }
    size_t before = 0; /* columns of the terminal before the last cell */
    for (size_t i = 0; i + 1 < t->columns; i++)
        before += widths[i] + 2;
    size_t room = r->width >= before + LAST_MIN ? r->width - before : SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        stet_value cell = stet_value_at(t->cells, i);
        size_t len, column = i % t->columns;
        const char *text = stet_value_as_string(&cell, &len);
        bool cut = column + 1 == t->columns && stet_utf8_width(text, len) > room;
        stet_value style = stet_value_at(t->styles, i);
        bool last = true; /* nothing comes after it: no blanks at the end of a line */
        for (size_t k = column + 1; k < t->columns; k++)
            last = last && stet_value_text_is(stet_value_at(t->cells, i + k - column), "");
        if (header && i < t->columns)
            stet_text_styled(r, STET_STYLE_BOLD, text);
        else if (stet_value_type(style) == STET_TYPE_INT)
            stet_text_styled(r, (stet_style)stet_value_as_int(style), text);
        else
            stet_text_plain(r, text, cut ? stet_text_fitting(text, len, room - 1) : len);
        if (cut)
            stet_buf_str(r->out, "\u2026");
        if (column + 1 < t->columns && !last)
            blanks(r->out, widths[column] - stet_utf8_width(text, len) + 2);
        if (column + 1 == t->columns)
            stet_buf_char(r->out, '\n');
    }
    stet_value_release(t->cells);
    stet_value_release(t->styles);
    t->cells = t->styles = stet_value_null();
}
