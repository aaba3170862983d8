/* command_fill.c - fills names in in the words of a command. */

#include "module/command_fill.h"

#include <string.h>

#include "base/json.h"
#include "files/path.h"
#include "os/file.h"

static bool is_named(const command_file *f, const char *name, size_t len) {
    return strlen(f->name) == len && memcmp(f->name, name, len) == 0;
}

static bool has_file(void *ctx, const char *name, size_t len) {
    const command_spec *s = ctx;
    const command_files *lists[] = {&s->inputs, &s->outputs};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->len; i++)
            if (is_named(&lists[k]->at[i], name, len))
                return true;
    return false;
}

/* Also a name of files of which there are none now. */
static bool is_files(const command_filler *f, const char *name, size_t len) {
    stet_value names = stet_value_get(stet_run_descriptor(f->run), "files");
    bool found = has_file(f->s, name, len);
    for (size_t i = 0; i < stet_value_count(names) && !found; i++) {
        stet_value n = stet_value_at(names, i);
        size_t n_len;
        const char *s = stet_value_as_string(&n, &n_len);
        found = n_len == len && memcmp(s, name, len) == 0;
    }
    return found;
}

char *command_file_word(const command_spec *s, const char *root, const char *path) {
    if (path[0] != '/' && *s->cwd_rel)
        return stet_file_join(root, path);
    return path[0] == '-' ? stet_asprintf("./%s", path) : stet_strdup(path);
}

static void add_file(command_filler *f, const command_file *file, command_words *out) {
    char *word = command_file_word(f->s, f->root, file->path);
    f->dashed |= file->path[0] == '-' && word[0] == '.';
    command_words_add(out, word);
}

/* One name for each line; `response`: as compilers and linkers read "@FILE", with a backslash before what would end or
 * quote a name. */
static void add_line(command_filler *f, stet_buf *b, const char *name, bool response) {
    if (strchr(name, '\n') && !f->failed) {
        f->failed = true;
        stet_fail(f->err, STET_FAILED, "%s: a file with a line end in its name can't be in a list of names",
                  f->run->name);
        stet_hint(f->err, "rename it, or leave it out of the pattern");
    }
    for (; *name; name++) {
        if (response && strchr(" \t\v\f\r\\'\"", *name))
            stet_buf_char(b, '\\');
        stet_buf_char(b, *name);
    }
    stet_buf_char(b, '\n');
}

/* "{name@list}", "{name@response}": the path of a file with the names in it. It lies where nobody else's does: the name
 * of the node and the names are in its own. */
static bool list(command_filler *f, const char *name, size_t len, command_words *out) {
    const char *at = memchr(name, '@', len);
    size_t n = at ? (size_t)(at - name) : 0, kind = at ? len - n - 1 : 0;
    bool response = kind == 8 && memcmp(at + 1, "response", 8) == 0;
    if (!at || (!response && (kind != 4 || memcmp(at + 1, "list", 4) != 0)) || !is_files(f, name, n))
        return false;
    const command_files *files[] = {&f->s->inputs, &f->s->outputs};
    command_list *l = stet_vec_add(&f->s->lists);
    *l = (command_list){.names = STET_BUF(0)};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < files[k]->len; i++)
            if (is_named(&files[k]->at[i], name, n)) {
                command_words one = {0};
                add_file(f, &files[k]->at[i], &one);
                add_line(f, &l->names, one.at[0], response);
                command_words_release(&one);
            }
    stet_hasher *h = stet_hasher_begin();
    char hex[STET_HASH_HEX];
    stet_hasher_add(h, f->run->name, strlen(f->run->name) + 1);
    stet_hasher_add(h, name, len);
    stet_hasher_add(h, stet_buf_cstr(&l->names), l->names.len);
    stet_hash_hex(stet_hasher_end(h), hex);
    l->path = stet_file_join(f->lists, hex);
    size_t root = strlen(f->root);
    bool near = !*f->s->cwd_rel && strncmp(l->path, f->root, root) == 0 && l->path[root] == '/';
    command_words_add(out, stet_strdup(near ? l->path + root + 1 : l->path));
    return true;
}

static void add_text(command_filler *f, stet_value v, const char *name, size_t len, command_words *out) {
    size_t text_len;
    const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &text_len) : NULL;
    if (s && strlen(s) != text_len && !f->failed) {
        f->failed = true;
        stet_fail(f->err, STET_FAILED, "%s: its input \"%.*s\" holds a NUL, which cannot be part of an argument",
                  f->run->name, (int)len, name);
        stet_hint(f->err, "pass the value on standard input (stdin = true), or write it to a file");
    }
    command_words_add(out, s ? stet_strndup(s, text_len) : stet_json_print(v, STET_JSON_CANONICAL, NULL));
}

/* A name of `vars`: a word, or as many as its list has. */
static bool constant(command_filler *f, const char *name, size_t len, command_words *out) {
    stet_value v, vars = stet_value_get(stet_run_descriptor(f->run), "vars");
    if (!stet_value_find(vars, name, len, &v))
        return false;
    bool list = stet_value_type(v) == STET_TYPE_ARRAY;
    for (size_t i = 0; i < (list ? stet_value_count(v) : 1); i++)
        add_text(f, list ? stet_value_at(v, i) : v, name, len, out);
    return true;
}

/* Paths, parts of them and values by name. False: there is nothing of this name. */
static bool named(command_filler *f, const char *name, size_t len, bool variable, command_words *out) {
    const command_files *lists[] = {&f->s->inputs, &f->s->outputs};
    const char *part;
    size_t name_len = stet_path_place(name, len, has_file, f->s, &part);
    bool found = name_len > 0;
    stet_value v;
    for (int k = 0; k < 2 && found; k++)
        for (size_t i = 0; i < lists[k]->len; i++) {
            const command_file *file = &lists[k]->at[i];
            if (!is_named(file, name, name_len))
                continue;
            stet_buf text = STET_BUF(0);
            if (part && stet_path_part(file->path, part, len - (size_t)(part - name), &text))
                command_words_add(out, stet_buf_take(&text, NULL));
            else
                add_file(f, file, out);
        }
    found = found || is_files(f, name, len) || list(f, name, len, out); /* a pattern may match nothing */
    if (!found && stet_value_find(f->values, name, len, &v) && (len != 5 || memcmp(name, "after", 5) != 0)) {
        add_text(f, v, name, len, out);
        found = true;
    }
    return found || (!variable && constant(f, name, len, out));
}

/* A name in braces that begins here: what it stands for. Returns what follows; NULL: there is none. `*text` is not NULL
 * for "{{name}}", which stands for "{name}"; its length is `*len`. */
static const char *place(command_filler *f, const char *p, command_words *words, const char **text, size_t *len) {
    const char *close = *p == '{' ? strchr(p, '}') : NULL;
    bool variable = p > f->begin && p[-1] == '$';
    *text = NULL;
    if (!close)
        return NULL;
    if (p[1] == '{' && close[1] == '}' && named(f, p + 2, (size_t)(close - p) - 2, variable, words)) {
        *text = p + 1;
        *len = (size_t)(close - p);
        return close + 2;
    }
    return named(f, p + 1, (size_t)(close - p) - 1, variable, words) ? close + 1 : NULL;
}

void command_fill_word(command_filler *f, const char *text, command_words *out) {
    stet_buf b = STET_BUF(0);
    bool many = false;
    f->begin = text;
    for (const char *p = text; *p;) {
        command_words words = {0};
        const char *itself;
        size_t len;
        const char *next = place(f, p, &words, &itself, &len);
        if (next && itself)
            stet_buf_add(&b, itself, len);
        else if (next) {
            bool alone = p == text && !*next;
            for (size_t i = 0; i < words.len; i++) {
                if (alone)
                    command_words_add(out, stet_strdup(words.at[i]));
                else
                    stet_buf_printf(&b, "%s%s", i ? " " : "", words.at[i]);
            }
            many |= alone;
        } else
            stet_buf_char(&b, *p);
        p = next ? next : p + 1;
        command_words_release(&words);
    }
    if (!many)
        command_words_add(out, stet_buf_take(&b, NULL));
    stet_buf_release(&b);
}

/* Where in a string for the shell something stands. */
typedef enum quoting {
    PLAIN,    /* a command: at the top, or in $(...) */
    DOUBLE,   /* "..." */
    SINGLE,   /* '...' */
    PARAMETER /* `...`, ${...}, $((...)), $'...': what is in quotes there depends on the shell */
} quoting;

#define MAX_DEPTH 64 /* beyond that nothing is quoted */

typedef struct shell {
    const char *p;
    quoting at[MAX_DEPTH];
    char ends[MAX_DEPTH]; /* what ends it: ')', '}', '`', '"', '\'' or 0 */
    int parens[MAX_DEPTH];
    int depth;
    bool lost;       /* nobody can tell any more without being a shell */
    bool word_start; /* a "#" here begins a comment */
    stet_names here; /* ends of here-documents that begin with the next line; a tab first: "<<-" */
} shell;

static void enter(shell *s, quoting at, char end) {
    if (s->depth + 1 >= MAX_DEPTH) {
        s->lost = true;
        return;
    }
    s->depth++;
    s->at[s->depth] = at;
    s->ends[s->depth] = end;
    s->parens[s->depth] = 0;
}

/* Does it mean itself without quotes? In a here-document most characters do. */
static bool is_safe(const char *word, bool here) {
    return here ? !strpbrk(word, "\\$`\n")
                : word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,./_+@%:=-")] == 0;
}

static void quote(stet_buf *out, const char *s, quoting at) {
    stet_buf_str(out, at == PLAIN ? "'" : "");
    for (; *s; s++) {
        if (at == DOUBLE && strchr("\\\"$`", *s))
            stet_buf_char(out, '\\');
        if (at != DOUBLE && *s == '\'')
            stet_buf_str(out, "'\\''");
        else
            stet_buf_char(out, *s);
    }
    stet_buf_str(out, at == PLAIN ? "'" : "");
}

static void refuse(command_filler *f, const char *name, size_t len, const char *why, const char *hint) {
    if (f->failed)
        return;
    f->failed = true;
    stet_fail(f->err, STET_FAILED, "%s: %.*s %s", f->run->name, (int)(len < 200 ? len : 200), name, why);
    stet_hint(f->err, "%s", hint);
}

/* `name`, of `len` bytes, is how it is written. */
static void add_words(command_filler *f, shell *s, const char *name, size_t len, const command_words *words, bool here,
                      stet_buf *out) {
    quoting at = s->lost || here ? PARAMETER : s->at[s->depth];
    for (int i = 0; i <= s->depth; i++)
        if (s->ends[i] == '`') /* what is quoted in there is taken apart twice */
            at = PARAMETER;
    f->in_quotes |= at != PLAIN;
    if ((at == DOUBLE || at == SINGLE) && words->len > 1)
        refuse(f, name, len, "stands for several files or words, and is in quotes, where it would be one word",
               "leave out the quotes: each name is quoted");
    for (size_t i = 0; i < words->len; i++) {
        stet_buf_str(out, i ? " " : "");
        if (at != PARAMETER)
            quote(out, words->at[i], at);
        else if (is_safe(words->at[i], here))
            stet_buf_str(out, words->at[i]);
        else
            refuse(f, name, len,
                   "stands where its value can't be quoted: in `...`, ${...}, $((...)), $'...' or a here-document",
                   "set a variable before, x={name}, and use \"$x\" there; write $(...) in place of `...`");
    }
}

/* The word behind "<<": the end of a here-document. */
static void note_here(shell *s, stet_buf *out) {
    stet_buf end = STET_BUF(0);
    const char *p = s->p + 2;
    if (*p == '-') {
        stet_buf_char(&end, '\t');
        p++;
    }
    p += strspn(p, " \t");
    for (char q = 0; *p && (q || !strchr(" \t\n;&|<>()", *p)); p++) {
        if (!q && (*p == '\'' || *p == '"'))
            q = *p;
        else if (q && *p == q)
            q = 0;
        else if (*p == '\\' && p[1] && q != '\'')
            stet_buf_char(&end, *++p);
        else
            stet_buf_char(&end, *p);
    }
    stet_buf_add(out, s->p, (size_t)(p - s->p));
    s->p = p;
    *stet_vec_add(&s->here) = stet_buf_take(&end, NULL);
}

static const char *line_end(const char *p) {
    size_t n = strcspn(p, "\n");
    return p + n + (p[n] != 0);
}

/* The text of here-documents, after the line that they are named in. */
static void take_here(command_filler *f, shell *s, stet_buf *out) {
    for (size_t i = 0; i < s->here.len; i++) {
        const char *end = s->here.at[i];
        bool tabs = *end == '\t', last = false;
        while (*s->p && !last) {
            const char *stop = line_end(s->p), *begin = s->p + (tabs ? strspn(s->p, "\t") : 0);
            size_t n = strcspn(begin, "\n");
            last = n == strlen(end + tabs) && memcmp(begin, end + tabs, n) == 0;
            while (s->p < stop) {
                command_words words = {0};
                const char *itself;
                size_t len;
                const char *next = last ? NULL : place(f, s->p, &words, &itself, &len);
                if (next && itself)
                    stet_buf_add(out, itself, len);
                else if (next)
                    add_words(f, s, s->p, (size_t)(next - s->p), &words, true, out);
                else
                    stet_buf_char(out, *s->p);
                s->p = next ? next : s->p + 1;
                command_words_release(&words);
            }
        }
    }
    stet_names_release(&s->here);
}

/* "$": what comes behind it may have its own rules. */
static void take_dollar(shell *s, stet_buf *out) {
    bool arithmetic = s->p[1] == '(' && s->p[2] == '(', command = s->p[1] == '(', brace = s->p[1] == '{';
    bool quoted = s->p[1] == '\'' && s->at[s->depth] == PLAIN;
    stet_buf_add(out, s->p, command || brace || quoted ? 2 : 1);
    s->p += command || brace || quoted ? 2 : 1;
    s->word_start = command;
    if (arithmetic || brace || quoted)
        enter(s, PARAMETER, arithmetic ? ')' : brace ? '}' : '\'');
    else if (command)
        enter(s, PLAIN, ')');
}

/* "case" in $(...): the ")" of its patterns looks like the end. */
static bool begins_case(const char *p) {
    return strncmp(p, "case", 4) == 0 && (p[4] == ' ' || p[4] == '\t');
}

/* One character, or more, that is not a name in braces. */
static void take(command_filler *f, shell *s, stet_buf *out) {
    quoting at = s->at[s->depth];
    char c = *s->p, end = s->ends[s->depth];
    bool before = s->word_start;
    s->word_start = at == PLAIN && c && strchr(" \t\n;&|()<>", c);
    s->lost |= at == PLAIN && before && s->depth > 0 && begins_case(s->p);
    if (at == SINGLE || (at == PARAMETER && end == '\'')) {
        s->lost |= at == PARAMETER && c == '\\'; /* shells differ in what it does there */
        s->depth -= c == '\'';
    } else if (c == '\\' && s->p[1]) {
        /* In double quotes a backslash stands for itself before a brace, and must not quote what is filled in. */
        bool itself = at == DOUBLE && s->p[1] == '{';
        stet_buf_add(out, itself ? "\\\\" : s->p, 2);
        s->p += itself ? 1 : 2;
        return;
    } else if (c == '$') {
        take_dollar(s, out);
        return;
    } else if (c == '`') {
        if (end == '`')
            s->depth--;
        else
            enter(s, PARAMETER, '`');
    } else if (at == PARAMETER) {
        s->lost |= end != '`' && (c == '"' || c == '\''); /* the end may be in quotes */
        s->parens[s->depth] += (end == ')' && c == '(') || (end == '}' && c == '{');
        if (c == end && s->parens[s->depth]-- == 0)
            s->depth--;
    } else if (c == '"') {
        if (at == DOUBLE)
            s->depth--;
        else
            enter(s, DOUBLE, '"');
    } else if (at == PLAIN && c == '\'') {
        enter(s, SINGLE, '\'');
    } else if (at == PLAIN && c == '(') {
        s->parens[s->depth]++;
    } else if (at == PLAIN && c == ')' && end == ')' && s->parens[s->depth]-- == 0) {
        s->depth--;
    } else if (at == PLAIN && c == '#' && before) {
        size_t n = strcspn(s->p, "\n");
        stet_buf_add(out, s->p, n);
        s->p += n;
        return;
    } else if (at == PLAIN && c == '<' && s->p[1] == '<' && s->p[2] != '<') {
        note_here(s, out);
        return;
    } else if (at == PLAIN && c == '<' && s->p[1] == '<') { /* "<<<", as some shells have it */
        stet_buf_add(out, s->p, 3);
        s->p += 3;
        return;
    } else if (at == PLAIN && c == '\n' && s->here.len > 0) {
        stet_buf_char(out, c);
        s->p++;
        take_here(f, s, out);
        return;
    }
    stet_buf_char(out, c);
    s->p++;
}

void command_fill_shell(command_filler *f, const char *text, command_words *out) {
    stet_buf b = STET_BUF(0);
    shell s = {.p = text, .word_start = true};
    f->begin = text;
    while (*s.p) {
        command_words words = {0};
        const char *itself;
        size_t len;
        const char *next = place(f, s.p, &words, &itself, &len);
        if (next && itself)
            stet_buf_add(&b, itself, len);
        else if (next)
            add_words(f, &s, s.p, (size_t)(next - s.p), &words, false, &b);
        if (next) {
            s.p = next;
            s.word_start = false;
        } else
            take(f, &s, &b);
        command_words_release(&words);
    }
    command_words_add(out, stet_buf_take(&b, NULL));
    stet_names_release(&s.here);
    stet_buf_release(&b);
}
