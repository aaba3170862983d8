/* source.c - the text of functions and files.
 *
 * There is no parser here, because the engine has one. What is needed beyond it comes from a scanner that knows
 * strings, templates, comments, regular expressions and brackets.
 */

#include "engine.h"

#include <ctype.h>
#include <string.h>

/* Passes over space and comments. */
static size_t skip_blank(const char *text, size_t len, size_t i) {
    while (i < len) {
        if (isspace((unsigned char)text[i])) {
            i++;
        } else if (i + 1 < len && text[i] == '/' && text[i + 1] == '/') {
            const char *end = memchr(text + i, '\n', len - i);
            i = end ? (size_t)(end - text) : len;
        } else if (i + 1 < len && text[i] == '/' && text[i + 1] == '*') {
            const char *end = memmem(text + i + 2, len - i - 2, "*/", 2);
            i = end ? (size_t)(end - text) + 2 : len;
        } else {
            break;
        }
    }
    return i;
}

bool source_is_function(const char *text, size_t len, const char *made, size_t made_len) {
    int open = 0;
    size_t i = skip_blank(text, len, 0);
    while (i < len && text[i] == '(' && !(len - i >= made_len && memcmp(text + i, made, made_len) == 0)) {
        open++;
        i = skip_blank(text, len, i + 1);
    }
    /* Text that begins with a parenthesis may be a function in parentheses, or one whose parameters come first. */
    if (len - i < made_len || made_len == 0 || memcmp(text + i, made, made_len) != 0)
        return false;
    i = skip_blank(text, len, i + made_len);
    for (; i < len && text[i] == ')' && open > 0; open--)
        i = skip_blank(text, len, i + 1);
    while (i < len && text[i] == ';')
        i = skip_blank(text, len, i + 1);
    return open == 0 && i == len;
}

bool source_without_async(const char *text, size_t len, stet_buf *out) {
    size_t from = 0;
    for (const char *at; (at = memmem(text + from, len - from, "async", 5)) != NULL;) {
        size_t i = (size_t)(at - text);
        stet_buf_add(out, text + from, i - from);
        stet_buf_str(out, "asynX");
        from = i + 5;
    }
    stet_buf_add(out, text + from, len - from);
    return from > 0;
}

#define MAX_NESTING 1024
#define MAX_EXPORTS 10000

typedef struct scanner {
    const stet_javascript_source *source;
    size_t i;
    size_t line;
    char open[MAX_NESTING]; /* brackets, and ` for a template that is gone on with */
    size_t depth;
    size_t word, word_len; /* the last token, if it is a word */
    char last;             /* the last character of code that is no space; 0 at the start */
    stet_buf *out;
    source_tokens *tokens; /* NULL: nobody wants them */
    stet_buf names;        /* "a, b: c" */
    size_t exports;
    bool has_default;
} scanner;

static bool word_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static stet_status refuse_at(const scanner *s, stet_error *err, const char *hint, const char *what) {
    stet_fail(err, STET_INVALID, "%s:%zu: %s", s->source->file, s->line, what);
    stet_hint(err, "%s", hint);
    stet_detail(err, "line", stet_value_int((int64_t)s->line));
    return STET_INVALID;
}

/* What was added to the output since `start` is a token. */
static void add_token(scanner *s, size_t start, char kind) {
    if (s->tokens)
        *stet_vec_add(s->tokens) = (source_token){start, s->out->len, kind};
}

/* Adds an operator, or one more character to the one before. */
static void add_operator(scanner *s, char c) {
    static const char *const longer[] = {
        "&&",  "||",  "??",   "?.",  "==", "!=", "===", "!==", "=>", ">=", "<=", "++", "--", "**", "..", "...",
        "&&=", "||=", "?\?=", "**=", "+=", "-=", "*=",  "/=",  "%=", "&=", "|=", "^=", "<<", ">>", ">>>"};
    if (!s->tokens)
        return;
    source_token *last = s->tokens->len > 0 ? &s->tokens->at[s->tokens->len - 1] : NULL;
    size_t end = s->out->len;
    if (last && last->kind == 'p' && last->end == end - 1 && last->end > last->start) {
        size_t n = end - last->start;
        bool choice = c == '.' && s->i < s->source->len && isdigit((unsigned char)s->source->text[s->i]); /* a?.5:1 */
        for (size_t k = 0; k < sizeof longer / sizeof *longer && !choice; k++)
            if (strlen(longer[k]) == n && memcmp(longer[k], s->out->data + last->start, n) == 0) {
                last->end = end;
                return;
            }
    }
    add_token(s, end - 1, 'p');
}

/* Copies up to `to`, counting lines. */
static void copy_to(scanner *s, size_t to) {
    for (size_t k = s->i; k < to; k++)
        s->line += s->source->text[k] == '\n';
    stet_buf_add(s->out, s->source->text + s->i, to - s->i);
    s->i = to;
}

/* The same with spaces. */
static void blank_to(scanner *s, size_t to) {
    for (; s->i < to; s->i++) {
        char c = s->source->text[s->i];
        s->line += c == '\n';
        stet_buf_char(s->out, c == '\n' || c == '\r' ? c : ' ');
    }
}

static size_t string_end(const scanner *s, char quote) {
    size_t i = s->i + 1;
    while (i < s->source->len && s->source->text[i] != quote && s->source->text[i] != '\n')
        i += s->source->text[i] == '\\' ? 2 : 1;
    return i < s->source->len ? i + 1 : s->source->len;
}

/* From inside a template: past its end, or past a `${`. */
static size_t template_end(const scanner *s, size_t i, bool *ended) {
    const char *text = s->source->text;
    size_t len = s->source->len;
    for (; i < len; i++) {
        if (text[i] == '\\') {
            i++;
        } else if (text[i] == '`') {
            *ended = true;
            return i + 1;
        } else if (text[i] == '$' && i + 1 < len && text[i + 1] == '{') {
            *ended = false;
            return i + 2;
        }
    }
    *ended = true;
    return len;
}

static size_t regex_end(const scanner *s) {
    const char *text = s->source->text;
    bool class = false;
    size_t i = s->i + 1;
    for (; i < s->source->len && text[i] != '\n'; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '[')
            class = true;
        else if (text[i] == ']')
            class = false;
        else if (text[i] == '/' && !class)
            return i + 1;
    }
    return s->i + 1; /* a division after all */
}

static bool word_is(const scanner *s, size_t at, size_t len, const char *word) {
    return strlen(word) == len && memcmp(s->source->text + at, word, len) == 0;
}

/* Does a slash begin a regular expression here? */
static bool regex_here(const scanner *s) {
    static const char *const before[] = {"return", "typeof", "case", "in",   "of",    "delete", "void",
                                         "throw",  "new",    "do",   "else", "yield", "await",  "instanceof"};
    if (s->last == 0 || strchr("(,=:[!&|?{};+-*%<>~^", s->last))
        return true;
    if (!word_char(s->last))
        return false;
    for (size_t k = 0; k < sizeof before / sizeof *before; k++)
        if (word_is(s, s->word, s->word_len, before[k]))
            return true;
    return false;
}

static size_t word_end(const scanner *s, size_t i) {
    while (i < s->source->len && word_char(s->source->text[i]))
        i++;
    return i;
}

static stet_status add_export(scanner *s, size_t name, size_t name_len, size_t as, size_t as_len, stet_error *err) {
    if (++s->exports > MAX_EXPORTS)
        return refuse_at(s, err, "split the file", "more than 10000 exports");
    if (as_len > 0)
        stet_buf_printf(&s->names, "%.*s:", (int)as_len, s->source->text + as);
    stet_buf_printf(&s->names, "%.*s,", (int)name_len, s->source->text + name);
    return STET_OK;
}

/* { a, b as c } after `export`. */
static stet_status export_list(scanner *s, size_t i, stet_error *err) {
    static const char hint[] = "write: export { name, other as another };";
    const char *text = s->source->text;
    size_t len = s->source->len;
    for (i = skip_blank(text, len, i + 1); i < len && text[i] != '}'; i = skip_blank(text, len, i)) {
        size_t name = i, name_end = word_end(s, i), as = 0, as_end = 0;
        if (name_end == name)
            return refuse_at(s, err, hint, "this list of exports makes no sense");
        i = skip_blank(text, len, name_end);
        if (word_is(s, i, word_end(s, i) - i, "as")) {
            as = skip_blank(text, len, i + 2);
            as_end = word_end(s, as);
            i = skip_blank(text, len, as_end);
        }
        stet_status status = add_export(s, name, name_end - name, as, as_end - as, err);
        if (status != STET_OK)
            return status;
        if (i < len && text[i] == ',')
            i++;
        else if (i < len && text[i] != '}')
            return refuse_at(s, err, hint, "this list of exports makes no sense");
    }
    i = i < len ? i + 1 : len;
    size_t next = skip_blank(text, len, i);
    if (word_is(s, next, word_end(s, next) - next, "from"))
        return refuse_at(s, err, "put what the function needs into its file", "exports of another file's can't be had");
    blank_to(s, i);
    s->last = ';';
    return STET_OK;
}

/* At the word `export`, outside of all brackets. */
static stet_status export_here(scanner *s, size_t end, stet_error *err) {
    static const char hint[] =
        "write: export function NAME(...) {...}, export const NAME = ..., export default ..., or "
        "export { NAME }";
    const char *text = s->source->text;
    size_t len = s->source->len, i = skip_blank(text, len, end), start = i;
    bool is_default = false;
    if (i < len && text[i] == '{')
        return export_list(s, i, err);
    if (word_is(s, i, word_end(s, i) - i, "default")) {
        is_default = true;
        i = start = skip_blank(text, len, i + 7);
    }
    size_t w = word_end(s, i) - i;
    bool function = false, value = false;
    if (word_is(s, i, w, "async")) {
        i = skip_blank(text, len, i + 5);
        w = word_end(s, i) - i;
    }
    if (word_is(s, i, w, "function")) {
        function = true;
        i = skip_blank(text, len, i + w);
        if (i < len && text[i] == '*')
            i = skip_blank(text, len, i + 1);
    } else if (word_is(s, i, w, "class")) {
        function = true;
        i = skip_blank(text, len, i + w);
    } else if (word_is(s, i, w, "const") || word_is(s, i, w, "let") || word_is(s, i, w, "var")) {
        value = true;
        i = skip_blank(text, len, i + w);
    }
    size_t name_end = word_end(s, i);
    bool named = (function || value) && name_end > i && !word_is(s, i, name_end - i, "extends");
    if (!is_default && !named)
        return refuse_at(s, err, hint, "this export is of a kind that is not known here");
    if (is_default && s->has_default)
        return refuse_at(s, err, "name one of them", "a second default export");
    s->has_default |= is_default;
    if (is_default && !(function && named)) {
        /* In the place of the words, as long as they are: what follows keeps its line and column. */
        size_t word = skip_blank(text, len, end);
        stet_buf_str(s->out, "let   ");
        s->i = end;
        blank_to(s, word);
        stet_buf_str(s->out, "$stet_=");
        s->i = word + 7;
        blank_to(s, start);
        stet_buf_str(&s->names, "default:$stet_,");
        s->last = '=';
        return STET_OK;
    }
    if (is_default) {
        stet_buf_str(&s->names, "default:");
        stet_buf_printf(&s->names, "%.*s,", (int)(name_end - i), text + i);
    } else {
        stet_status status = add_export(s, i, name_end - i, 0, 0, err);
        if (status != STET_OK)
            return status;
    }
    blank_to(s, start);
    s->last = ';';
    return STET_OK;
}

static stet_status open_bracket(scanner *s, char c, stet_error *err) {
    if (s->depth >= MAX_NESTING)
        return refuse_at(s, err, "nest less deeply", "more than 1024 brackets inside each other");
    s->open[s->depth++] = c;
    return STET_OK;
}

static stet_status step(scanner *s, stet_error *err) {
    const char *text = s->source->text;
    size_t len = s->source->len, after = skip_blank(text, len, s->i);
    stet_status status = STET_OK;
    bool ended = true;
    if (after > s->i) {
        copy_to(s, after);
        return STET_OK;
    }
    char c = text[s->i];
    size_t begin = s->out->len;
    if (word_char(c)) {
        size_t end = word_end(s, s->i);
        bool member = s->last == '.';
        if (s->depth == 0 && !member && word_is(s, s->i, end - s->i, "export")) {
            status = export_here(s, end, err);
            add_token(s, s->out->len, 'p'); /* nothing goes on behind it */
            return status;
        }
        size_t next = skip_blank(text, len, end);
        if (s->depth == 0 && !member && word_is(s, s->i, end - s->i, "import") && next < len && text[next] != '(' &&
            text[next] != '.')
            return refuse_at(s, err, "put what the function needs into its file", "import is not known here");
        s->word = s->i;
        s->word_len = end - s->i;
        s->last = text[end - 1];
        copy_to(s, end);
        add_token(s, begin, 'w');
        return STET_OK;
    }
    if (c == '"' || c == '\'') {
        copy_to(s, string_end(s, c));
        add_token(s, begin, 's');
        s->last = '"';
        return STET_OK;
    }
    if (c == '/' && regex_here(s)) {
        copy_to(s, regex_end(s));
        add_token(s, begin, 's');
        s->last = '"';
        return STET_OK;
    }
    if (c == '`' || (c == '}' && s->depth > 0 && s->open[s->depth - 1] == '`')) {
        if (c == '}')
            s->depth--;
        copy_to(s, template_end(s, s->i + 1, &ended));
        add_token(s, begin, c == '`' ? (ended ? 's' : '`') : (ended ? 'e' : 'm'));
        if (!ended)
            status = open_bracket(s, '`', err);
        s->last = ended ? '"' : '{';
        return status;
    }
    if (strchr("([{", c))
        status = open_bracket(s, c, err);
    else if (strchr(")]}", c) && s->depth > 0)
        s->depth--;
    s->last = c;
    copy_to(s, s->i + 1);
    if (strchr("()[]{}", c))
        add_token(s, begin, c);
    else
        add_operator(s, c);
    return status;
}

stet_status source_of_file(const stet_javascript_source *source, const char *parameters, stet_buf *out,
                           source_tokens *tokens, stet_error *err) {
    scanner s = {.source = source, .line = 1, .out = out, .tokens = tokens, .names = STET_BUF(1 << 20)};
    stet_status status = STET_OK;
    if (source->len > 2 && memcmp(source->text, "\xef\xbb\xbf", 3) == 0)
        s.i = 3; /* a byte order mark */
    size_t valid = stet_utf8_valid_prefix(source->text, source->len);
    if (valid < source->len) {
        for (size_t k = 0; k < valid; k++)
            s.line += source->text[k] == '\n';
        status = stet_fail(err, STET_INVALID, "%s:%zu: not UTF-8: byte 0x%02x", source->file, s.line,
                           (unsigned char)source->text[valid]);
        stet_hint(err, "store the file as UTF-8");
        stet_detail(err, "line", stet_value_int((int64_t)s.line));
        stet_buf_release(&s.names);
        return status;
    }
    stet_buf_printf(out, "(function(%s){'use strict';", parameters);
    if (source->len > 1 && source->text[0] == '#' && source->text[1] == '!') {
        const char *end = memchr(source->text, '\n', source->len);
        blank_to(&s, end ? (size_t)(end - source->text) : source->len);
    }
    while (s.i < source->len && status == STET_OK)
        status = step(&s, err);
    stet_buf_printf(out, "\n;return{__proto__:null,%s};})", stet_buf_cstr(&s.names));
    stet_buf_release(&s.names);
    if (status == STET_OK && out->overflow)
        status = stet_fail(err, STET_LIMIT, "%s is too large", source->file);
    return status;
}
