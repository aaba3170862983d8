/* command_words.c - finds the words of a command that may name a file it reads or a program it starts. */

#include "module/command_words.h"

#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "module/command_values.h"
#include "os/file.h"

#define MAX_FROM    16        /* directories that it changes to */
#define MAX_DEPTH   8         /* strings in strings */
#define MAX_BRACES  64        /* words that "{a,b}" may become */
#define MAX_STRINGS 3         /* strings in strings of which nobody knows who reads them */
#define MAX_WORK    (1 << 17) /* bytes of strings in strings; beyond that their parts are told, and no commands */
#define MAX_PASSES  4         /* over the text, to learn what its variables may be */
#define MAX_FLAGS   4         /* letters of options before a name: "-nfFILE" */
#define BREAKS      " \t\r\n'\"`()<>|&;,:={}[]#"
static const char unknown_text[] = {COMMAND_UNKNOWN, 0};

/* WRITTEN is sure to be so: the shell opens it first. COPIED is written by a program that may fail, or leave what is
 * there as it is. */
typedef enum word_role { PLAIN, READ, WRITTEN, COPIED, APPENDED, NO_FILE } word_role;

/* A word of a command, its quotes gone. */
typedef struct word {
    char *text;    /* COMMAND_UNKNOWN in it: only a shell could tell */
    char *pattern; /* if the shell would match it with files: the same with quoted characters after backslashes */
    command_forms others; /* that it may become as well */
    bool unknown;         /* part of it only a shell could tell */
    bool unsure;          /* it may become something else, or nothing */
    bool into;            /* if a directory is there, it is written into */
    word_role role;
} word;

/* A variable that the text sets. What it may be is joined over the whole text: functions and loops run in any order. */
typedef struct variable {
    command_forms values;
    int pass, times; /* when it was set last; how often in that pass */
    bool sure;       /* the last time was no condition's, and in no shell of its own */
    bool single;     /* in the pass before, it was set once, and for sure */
} variable;

typedef struct scanner {
    command_word_fn each;
    void *ctx;
    STET_VEC(char *) from;
    STET_VEC(char *) among; /* directories that it changes to of which part is unknown: patterns */
    char *here;             /* the directory that it is in now, as far as can be told */
    stet_map variables;     /* name -> variable, own */
    command_forms words;    /* any of its words: what "$1" or a variable that is read from somewhere may be */
    int pass;
    size_t work;       /* bytes of strings that were read as commands in this pass */
    bool learned;      /* in this pass: a variable has a new value */
    bool dynamic;      /* "eval", ".": variables may be set where nobody sees it */
    const char *array; /* in "NAME=(...)": NAME */
    char *token;       /* of "xargs -I TOKEN", or NULL */
    int depth;
    int strings;    /* in a string of which it is not known that it is a command */
    bool prints;    /* words of a command that only prints them */
    bool exact;     /* words that begin with a dash are files: behind "<" and "--" */
    int blocks;     /* in what may be left out or repeated: if, for, a function */
    int shells;     /* in "(...)" and "$(...)": what is set there is not set outside */
    unsigned lists; /* and-or lists that have begun */
    bool chained;   /* behind "&&": what is written is so for the rest of this list alone */
    bool maybe;     /* behind "||" */
    bool negated;   /* behind "!": what comes after "&&" does so if it fails */
} scanner;

typedef STET_VEC(word) words;

static void word_release(word *w) {
    stet_free(w->text);
    stet_free(w->pattern);
    command_forms_release(&w->others);
}

static void words_clear(words *w) {
    for (size_t i = 0; i < w->len; i++)
        word_release(&w->at[i]);
    stet_vec_clear(w);
}

static void scanner_begin(scanner *s, command_word_fn each, void *ctx) {
    *s = (scanner){.each = each, .ctx = ctx};
}

/* While it learns what its variables may be. */
static void tell_nobody(void *ctx, const command_word *w) {
    (void)ctx;
    (void)w;
}

static void begin_pass(scanner *s) {
    for (size_t i = 0; i < s->from.len; i++)
        stet_free(s->from.at[i]);
    for (size_t i = 0; i < s->among.len; i++)
        stet_free(s->among.at[i]);
    stet_vec_clear(&s->from);
    stet_vec_clear(&s->among);
    stet_free(s->here);
    s->here = stet_strdup("");
    *stet_vec_add(&s->from) = stet_strdup("");
    s->pass++;
    s->blocks = s->shells = 0;
    s->lists = 1;
    s->work = 0;
    s->chained = s->maybe = s->negated = s->learned = false;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->variables, &i, &key, &len, &slot);) {
        variable *v = slot->p;
        v->single = v->sure && v->times == 1;
    }
}

static void scanner_end(scanner *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->variables, &i, &key, &len, &slot);) {
        variable *v = slot->p;
        command_forms_release(&v->values);
        stet_free(v);
    }
    stet_map_release(&s->variables);
    for (size_t i = 0; i < s->from.len; i++)
        stet_free(s->from.at[i]);
    for (size_t i = 0; i < s->among.len; i++)
        stet_free(s->among.at[i]);
    stet_vec_release(&s->from);
    stet_vec_release(&s->among);
    command_forms_release(&s->words);
    stet_free(s->token);
    stet_free(s->here);
}

/* Is there anything in it that names something? A lone star stands for the directory as a whole. */
static bool says_something(const char *pattern) {
    for (; *pattern; pattern++)
        if (*pattern == '_' || (unsigned char)*pattern >= 0x80 || (*pattern >= '0' && *pattern <= '9') ||
            ((*pattern | 0x20) >= 'a' && (*pattern | 0x20) <= 'z'))
            return true;
    return false;
}

/* Brackets as stet has them: a class such as [[:lower:]] becomes any character, "[" that nobody closes is itself. */
static void add_brackets(stet_buf *out, const char *p) {
    while (*p) {
        if (*p == '\\' && p[1]) {
            stet_buf_add(out, p, 2);
            p += 2;
            continue;
        }
        if (*p != '[') {
            stet_buf_char(out, *p++);
            continue;
        }
        const char *q = p + 1 + (p[1] == '!' || p[1] == '^');
        bool named = false;
        q += *q == ']';
        while (*q && *q != ']' && *q != '/') {
            const char *close = *q == '[' && q[1] && strchr(":.=", q[1]) ? strchr(q + 2, ']') : NULL;
            named |= close || *q == COMMAND_UNKNOWN;
            q = close ? close + 1 : q + 1 + (*q == '\\' && q[1]);
        }
        if (*q == ']' && named)
            stet_buf_char(out, '?');
        else if (*q == ']')
            stet_buf_add(out, p, (size_t)(q + 1 - p));
        else
            stet_buf_str(out, "\\[");
        p = *q == ']' ? q + 1 : p + 1;
    }
}

static void tell_one_pattern(scanner *s, const char *text, bool guessed, bool anywhere) {
    command_word w = {.text = text, .kind = COMMAND_WORD_PATTERN, .list = s->lists, .anywhere = anywhere};
    w.guessed = guessed || s->strings > 0 || s->prints;
    for (size_t i = 0; *text && (!guessed || says_something(text)) && i < s->from.len; i++) {
        w.from = s->from.at[i];
        s->each(s->ctx, &w);
    }
}

static void tell(scanner *s, const char *text, command_word_kind kind);

/* What is unknown may be empty, any name, or a path: the patterns that cover it. From behind a name it is "*" or
 * reaches below "*"; at the beginning of a name it may be hidden, or directories before it. `left`: with so many
 * unknown parts from here on, that all ways are taken for each. */
static void tell_unknown(scanner *s, const char *text, int left, bool anywhere) {
    static const char *const begins[] = {"*", "**/*", "**/.*", "*/*", ".*/**/*"}, *const behind[] = {"*", "*/**/*",
                                                                                                     "*/*"};
    const char *mark = strchr(text, COMMAND_UNKNOWN);
    if (!mark) {
        stet_buf clean = STET_BUF(0);
        add_brackets(&clean, text);
        tell_one_pattern(s, stet_buf_cstr(&clean), true, anywhere);
        stet_buf_release(&clean);
        return;
    }
    bool begin = mark == text || mark[-1] == '/', last = left > 1 || strchr(mark + 1, COMMAND_UNKNOWN) != NULL;
    size_t n = begin ? (last ? 2 : 5) : (last ? 2 : 3);
    for (size_t i = 0; i < n + begin; i++) {
        stet_buf one = STET_BUF(0);
        const char *rest = mark + 1;
        stet_buf_add(&one, text, (size_t)(mark - text));
        if (i < n)
            stet_buf_str(&one, begin ? begins[i] : behind[i]);
        else if (*rest == '/')
            rest++;
        while (left > 2 && i < n && *rest && strchr(rest, COMMAND_UNKNOWN) != NULL)
            rest = strchr(rest, COMMAND_UNKNOWN) + 1; /* too many: one of them takes in the rest */
        stet_buf_str(&one, rest);
        tell_unknown(s, stet_buf_cstr(&one), left + 1, anywhere || mark == text);
        stet_buf_release(&one);
    }
}

static void tell_pattern(scanner *s, const char *text, bool guessed) {
    stet_buf clean = STET_BUF(0);
    if (command_is_unknown(text)) {
        if (says_something(text))
            tell_unknown(s, text, 0, false);
        return;
    }
    add_brackets(&clean, text);
    tell_one_pattern(s, stet_buf_cstr(&clean), guessed, false);
    const char *deep = strstr(stet_buf_cstr(&clean), "**");
    if (deep) { /* a shell that takes it for "*" looks into links as well */
        stet_buf flat = STET_BUF(0);
        for (const char *p = stet_buf_cstr(&clean); *p; p++)
            if (p[0] != '*' || p[1] != '*')
                stet_buf_char(&flat, *p);
        tell_one_pattern(s, stet_buf_cstr(&flat), guessed, false);
        stet_buf_release(&flat);
    }
    stet_buf_release(&clean);
}

static void add_escaped(stet_buf *out, const char *text) {
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            stet_buf_char(out, '\\');
        stet_buf_char(out, *text);
    }
}

static void tell_from(scanner *s, command_word *w) {
    for (size_t i = 0; i < s->from.len; i++) {
        w->from = s->from.at[i];
        s->each(s->ctx, w);
    }
}

static void tell(scanner *s, const char *text, command_word_kind kind) {
    if (!*text)
        return;
    if (command_is_unknown(text)) {
        stet_buf pattern = STET_BUF(0);
        add_escaped(&pattern, text);
        /* "$i done" that is printed: a message, and a search of the whole project for what is hardly a name. */
        bool message = s->prints && strchr(text, ' ') && !strchr(text, '/');
        if (kind == COMMAND_WORD && !message)
            tell_pattern(s, stet_buf_cstr(&pattern), true);
        stet_buf_release(&pattern);
        return;
    }
    command_word w = {.text = text, .kind = kind, .list = s->lists, .guessed = s->strings > 0 || s->prints};
    w.unlikely = kind == COMMAND_WORD && text[0] == '-' && !s->exact;
    w.guessed |= w.unlikely;
    tell_from(s, &w);
    if (kind == COMMAND_WORD && strpbrk(text, "*?") && says_something(text)) /* another program may match it */
        tell_pattern(s, text, true);
    bool below = kind == COMMAND_WORD && text[0] != '/' && !w.unlikely && says_something(text);
    for (size_t i = 0; below && i < s->among.len; i++) {
        stet_buf path = STET_BUF(0);
        stet_buf_printf(&path, "%s/", s->among.at[i]);
        add_escaped(&path, text);
        tell_pattern(s, stet_buf_cstr(&path), true);
        stet_buf_release(&path);
    }
}

/* Behind letters that may be options: a file if there is one. */
static void tell_unlikely(scanner *s, const char *text) {
    command_word w = {.text = text, .kind = COMMAND_WORD, .list = s->lists, .guessed = true, .unlikely = true};
    if (*text && !command_is_unknown(text))
        tell_from(s, &w);
}

/* What is written, so that whatever reads it later reads what the command wrote: for certain, or if what writes it
 * succeeds. */
static void tell_written(scanner *s, const word *one, bool certain) {
    if (!*one->text || s->strings || one->unknown || one->unsure || one->others.len > 0 || one->pattern ||
        (!certain && s->negated))
        return;
    command_word w = {.text = one->text, .from = s->here, .kind = COMMAND_WORD_WRITTEN, .list = s->lists};
    w.chained = s->chained || !certain;
    w.into = one->into;
    if (s->blocks == 0 && !s->maybe)
        s->each(s->ctx, &w);
}

/* What may be written, whether it is read before or not. */
static void tell_may_write(scanner *s, const word *w) {
    command_word one = {.text = w->text, .kind = COMMAND_WORD_MAY_WRITE, .list = s->lists};
    for (size_t i = 0; *w->text && !w->unknown && i < s->from.len; i++) {
        one.from = s->from.at[i];
        s->each(s->ctx, &one);
    }
}

/* To a directory of which part is unknown. */
static void changes_among(scanner *s, const char *pattern) {
    if (s->among.len <= MAX_FROM) {
        char *added = stet_strdup(s->among.len < MAX_FROM ? pattern : unknown_text); /* too many: anywhere */
        *stet_vec_add(&s->among) = added;
    }
}

static void changes_to(scanner *s, const char *dir) {
    size_t n = s->from.len;
    if (n >= MAX_FROM) /* too many: anywhere */
        changes_among(s, unknown_text);
    for (size_t i = 0; *dir && i < n && s->from.len < MAX_FROM; i++) {
        const char *from = s->from.at[i];
        char *to = dir[0] == '/' || !*from ? stet_strdup(dir) : stet_file_join(from, dir);
        bool again = false;
        for (size_t k = 0; k < s->from.len && !again; k++)
            again = strcmp(s->from.at[k], to) == 0;
        if (again)
            stet_free(to);
        else
            *stet_vec_add(&s->from) = to;
    }
}

static void goes_to(scanner *s, const char *dir) {
    char *to = dir[0] == '/' || !*s->here ? stet_strdup(dir) : stet_file_join(s->here, dir);
    stet_free(s->here);
    s->here = to;
    changes_to(s, dir);
}

/* A part of a word, and what stands in it behind "@", "<" and the like, or in a URL. */
static void tell_part(scanner *s, const char *text) {
    tell(s, text, COMMAND_WORD);
    if (text[0] && strchr("@<+^!:", text[0]))
        tell(s, text + 1, COMMAND_WORD);
    const char *url = strstr(text, "file:"), *path = url ? url + 5 : NULL;
    if (path && strncmp(path, "//", 2) == 0 && path[2] != '/') { /* a host, or the directory that it is in */
        tell(s, path + 2, COMMAND_WORD);
        path = path[2] == '.' ? path + 2 : strchr(path + 2, '/');
    }
    if (!path)
        return;
    stet_buf plain = STET_BUF(0), escaped = STET_BUF(0);
    for (const char *p = path; *p; p++) {
        bool code = *p == '%' && p[1] && p[2];
        stet_buf_str(&escaped, code ? "\\x" : "");
        if (!code)
            stet_buf_char(&escaped, *p);
    }
    command_decode(stet_buf_cstr(&escaped), &plain);
    tell(s, path, COMMAND_WORD);
    tell(s, stet_buf_cstr(&plain), COMMAND_WORD);
    stet_buf_release(&escaped);
    stet_buf_release(&plain);
}

/* The word itself, and what stands in it behind "=", between "," and ":", or behind letters of options. */
static void tell_parts(scanner *s, const char *text) {
    tell_part(s, text);
    if (text[0] == '-' && text[1] && text[1] != '-' && text[2]) {
        tell_part(s, text + 2);
        for (size_t i = 3; i < 3 + MAX_FLAGS && text[i - 1] && strchr("=,:/.", text[i - 1]) == NULL && text[i]; i++) {
            tell_unlikely(s, text + i);
            if (command_is_unknown(text + i))
                tell_part(s, text + i);
        }
    }
    if (!strpbrk(text, "=,:"))
        return;
    const char *equals = strchr(text, '=');
    if (equals)
        tell_part(s, equals + 1);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "=,:");
        char *part = stet_strndup(p, n);
        if (n != strlen(text))
            tell_part(s, part);
        stet_free(part);
        p += n + (p[n] != 0);
    }
}

/* "pkg.tool" of "python3 -m pkg.tool". */
static void tell_module(scanner *s, const char *name) {
    static const char *const ends[] = {".py", "/__main__.py", "/__init__.py"};
    for (size_t i = 0; *name && i < 3; i++) {
        char *path = stet_asprintf("%s%s", name, ends[i]);
        for (char *p = path; p < path + strlen(name); p++)
            *p = *p == '.' ? '/' : *p;
        tell(s, path, COMMAND_WORD);
        stet_free(path);
    }
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) { /* the packages on the way */
        char *path = stet_asprintf("%.*s/__init__.py", (int)(dot - name), name);
        for (char *p = path; p < path + (dot - name); p++)
            *p = *p == '.' ? '/' : *p;
        tell(s, path, COMMAND_WORD);
        stet_free(path);
    }
}

/* A string for somebody else: whatever could be a word in it. */
static void tell_broken(scanner *s, const char *text) {
    while (*text) {
        text += strspn(text, BREAKS);
        size_t n = strcspn(text, BREAKS);
        char *part = stet_strndup(text, n);
        tell(s, part, COMMAND_WORD);
        stet_free(part);
        text += n;
    }
}

/* The end of the braces that begin here, or NULL. *many: they have commas, else "..". */
static const char *braces_end(const char *open, bool *many) {
    int depth = 0;
    bool range = false;
    *many = false;
    for (const char *p = open; *p; p++) {
        depth += (*p == '{') - (*p == '}');
        *many |= *p == ',' && depth == 1;
        range |= p[0] == '.' && p[1] == '.' && depth == 1;
        if (depth == 0)
            return *many || range ? p : NULL;
    }
    return NULL;
}

/* "a{b,c}d" as "abd" and "acd", which some shells make of it; "a{1..3}" as the pattern "a*". False: it has none. */
static bool tell_braces(scanner *s, const char *text, bool pattern, bool guessed, int left) {
    bool many = false;
    const char *open = strchr(text, '{'), *close = open ? braces_end(open, &many) : NULL;
    while (open && !close && (open = strchr(open + 1, '{')) != NULL)
        close = braces_end(open, &many);
    if (!close || left <= 0)
        return false;
    for (const char *p = open + 1, *end; p <= close; p = end + 1) {
        int depth = 0;
        for (end = p; end < close && (depth > 0 || *end != ',' || !many); end++)
            depth += (*end == '{') - (*end == '}');
        stet_buf one = STET_BUF(0);
        stet_buf_add(&one, text, (size_t)(open - text));
        if (many)
            stet_buf_add(&one, p, (size_t)(end - p));
        else
            stet_buf_char(&one, '*');
        stet_buf_str(&one, close + 1);
        const char *made = stet_buf_cstr(&one);
        if (!tell_braces(s, made, pattern || !many, guessed || !many, left / 2)) {
            if (pattern || !many)
                tell_pattern(s, made, guessed || !many);
            else
                tell_parts(s, made);
        }
        stet_buf_release(&one);
    }
    return true;
}

static void scan(scanner *s, const char *p);

/* What a program's text imports: names behind "import", "require" and so on are modules, of whatever language. */
static void tell_imports(scanner *s, const char *text) {
    static const char *const keys[] = {"import", "require", "from ", "use ", "run_module", "include", "load", "source"};
    static const char *const ends[] = {".js", ".mjs", ".cjs", ".json", ".ts", ".rb", ".lua", ".jq", ".pl", ".pm"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        for (const char *at = strstr(text, keys[k]); at; at = strstr(at, keys[k])) {
            const char *p = at + strlen(keys[k]);
            while (*p && *p != '\n' && *p != ';') {
                size_t n = strcspn(p, BREAKS), colons = p[n] == ':' && p[n + 1] == ':' && n ? 2 : 0;
                stet_buf name = STET_BUF(0);
                stet_buf_add(&name, p, n);
                p += n + (p[n] && p[n] != '\n' && p[n] != ';');
                while (colons && (p += colons - 1, n = strcspn(p, BREAKS)) > 0) { /* "A::B" */
                    stet_buf_char(&name, '/');
                    stet_buf_add(&name, p, n);
                    p += n;
                    colons = p[0] == ':' && p[1] == ':' ? 2 : 0;
                    p += colons ? 1 : 0;
                }
                const char *module = stet_buf_cstr(&name);
                tell_module(s, module);
                for (size_t e = 0; *module && e < sizeof ends / sizeof *ends; e++) {
                    char *path = stet_asprintf("%s%s", module, ends[e]);
                    tell_unlikely(s, path);
                    stet_free(path);
                }
                stet_buf_release(&name);
            }
            at = p;
        }
    }
}

/* What stands between two quotes of a kind, or is a line: a name with blanks in it. */
static void tell_quoted(scanner *s, const char *text) {
    for (const char *kind = "'\"`\n"; *kind; kind++) {
        const char *begin = *kind == '\n' ? text : strchr(text, *kind);
        begin = begin && *kind != '\n' ? begin + 1 : begin;
        while (begin && *begin) {
            const char *end = strchr(begin, *kind);
            size_t n = end ? (size_t)(end - begin) : *kind == '\n' ? strlen(begin) : 0, blanks = strspn(begin, " \t");
            if (n > blanks && n < 256) {
                char *part = stet_strndup(begin, n);
                if (says_something(part)) {
                    tell(s, part, COMMAND_WORD);
                    tell(s, part + blanks, COMMAND_WORD);
                }
                stet_free(part);
            }
            begin = end ? end + 1 : NULL;
        }
    }
}

/* The length of what stands for something else here: `what`; "%s", "%03d" for FORMATS; "{name}", "${name}" for FIELDS. */
static const char formats[] = "%", fields[] = "{}";
static size_t stands_for(const char *p, const char *what) {
    if (what != formats && what != fields)
        return strncmp(p, what, strlen(what)) == 0 ? strlen(what) : 0;
    if (what == formats) {
        size_t n = *p == '%' ? 1 + strspn(p + 1, "-+ #0123456789.*") : 0;
        return n && (p[n] | 0x20) >= 'a' && (p[n] | 0x20) <= 'z' ? n + 1 : 0;
    }
    size_t sign = (*p == '$' || *p == '#') && p[1] == '{', n = strcspn(p + sign, "}\n");
    return p[sign] == '{' && p[sign + n] == '}' && memchr(p + sign + 1, '{', n - 1) == NULL ? sign + n + 1 : 0;
}

/* With something unknown in place of what stands for it. NULL: there is nothing of the kind. */
static char *with_unknown(const char *text, const char *what) {
    stet_buf out = STET_BUF(0);
    bool found = false;
    while (*text) {
        size_t n = stands_for(text, what);
        found |= n > 0;
        stet_buf_char(&out, n ? COMMAND_UNKNOWN : *text);
        text += n ? n : 1;
    }
    char *made = stet_buf_take(&out, NULL);
    if (found)
        return made;
    stet_free(made);
    return NULL;
}

/* A string that may be for a shell, or for anybody. */
static void tell_string(scanner *s, const char *text) {
    if (!strpbrk(text, BREAKS))
        return;
    s->work += strlen(text);
    if (s->depth < MAX_DEPTH && s->strings < MAX_STRINGS && s->work < MAX_WORK && strpbrk(text, " \t\n;|&()<>`")) {
        char *here = stet_strdup(s->here);
        s->depth++;
        s->strings++;
        scan(s, text);
        s->strings--;
        s->depth--;
        stet_free(s->here);
        s->here = here;
    }
    s->strings++;
    tell_broken(s, text);
    tell_quoted(s, text);
    if (s->strings == 1)
        tell_imports(s, text);
    s->strings--;
}

static void tell_patterns(scanner *s, const char *text, bool guessed) {
    if (!tell_braces(s, text, true, guessed, MAX_BRACES))
        tell_pattern(s, text, guessed);
}

static void tell_text(scanner *s, const char *text, bool glob) {
    tell_parts(s, text);
    if (!glob)
        tell_braces(s, text, command_is_unknown(text), command_is_unknown(text), MAX_BRACES);
    tell_string(s, text);
}

/* A text that a program fills in: "%s.txt", "{x}.txt", or the token of xargs. */
static void tell_filled(scanner *s, const char *text) {
    char *token = s->token && *s->token ? stet_strdup(s->token) : NULL; /* a command in the text may have another */
    const char *whats[] = {formats, fields, token};
    for (size_t i = 0; i < 3 && whats[i]; i++) {
        char *filled = with_unknown(text, whats[i]);
        if (filled)
            tell_text(s, filled, true);
        stet_free(filled);
    }
    stet_free(token);
}

static void tell_form(scanner *s, const char *text, const char *pattern) {
    if (pattern) {
        tell_patterns(s, pattern, command_is_unknown(pattern));
        for (const char *p = strpbrk(pattern, "=,:"); p; p = strpbrk(p + 1, "=,:"))
            tell_patterns(s, p + 1, command_is_unknown(p + 1));
        for (size_t i = 2; pattern[0] == '-' && pattern[1] != '-' && i < 3 + MAX_FLAGS && pattern[i - 1] && pattern[i];
             i++)
            tell_patterns(s, pattern + i, true);
    }
    if (!pattern || !command_is_unknown(text))
        tell_text(s, text, pattern != NULL);
    if (s->strings > 1 || s->work >= MAX_WORK)
        return;
    tell_filled(s, text);
    if (strchr(text, '\\')) { /* "a\nb" */
        stet_buf decoded = STET_BUF(0);
        command_decode(text, &decoded);
        tell_text(s, stet_buf_cstr(&decoded), true);
        tell_filled(s, stet_buf_cstr(&decoded));
        stet_buf_release(&decoded);
    }
}

static void tell_word(scanner *s, const word *w) {
    if (w->role == PLAIN && !w->unknown && w->text[0] != '-' && !s->strings)
        s->learned |= command_forms_add(&s->words, w->text, w->text, false);
    if (s->each == tell_nobody)
        return;
    tell_form(s, w->text, w->pattern);
    for (size_t i = 0; i < w->others.len; i++)
        tell_form(s, w->others.at[i].text, w->others.at[i].glob ? w->others.at[i].pattern : NULL);
}

static bool is_one_of(const char *text, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}
#define ONE_OF(text, names) is_one_of(text, names, sizeof(names) / sizeof *(names))

static bool is_keyword(const char *text) {
    static const char *const names[] = {"!",     "do", "then", "else", "elif",    "if",      "while",
                                        "until", "{",  "exec", "time", "command", "builtin", "nohup"};
    return ONE_OF(text, names);
}

/* Does it take options, which may have words of their own, before the program that it starts? */
static bool starts_another(const char *text) {
    static const char *const names[] = {"env",   "nice", "xargs",  "sudo",     "timeout", "stdbuf",  "setsid",
                                        "flock", "chrt", "ionice", "parallel", "setarch", "unshare", "strace"};
    return ONE_OF(text, names);
}

static size_t name_length(const char *p) {
    size_t n = 0;
    while ((p[n] >= 'A' && p[n] <= 'Z') || (p[n] >= 'a' && p[n] <= 'z') || p[n] == '_' ||
           (n > 0 && p[n] >= '0' && p[n] <= '9'))
        n++;
    return n;
}

/* "NAME=", "NAME+=", "NAME[i]=". The value begins at *value. */
static bool is_assignment(const char *text, size_t *name_len, const char **value) {
    const char *p = text + (*name_len = name_length(text));
    if (*p == '[' && strchr(p, ']'))
        p = strchr(p, ']') + 1;
    p += *p == '+';
    *value = p + 1;
    return *name_len > 0 && *p == '=';
}

static variable *variable_of(scanner *s, const char *name, size_t len) {
    stet_slot *slot = stet_map_get(&s->variables, name, len);
    return slot ? slot->p : NULL;
}

/* A value that it may have from somewhere in the text. */
static void join(scanner *s, const char *name, size_t len, const command_form *f) {
    variable *v = variable_of(s, name, len);
    if (!v) {
        v = stet_alloc(sizeof *v);
        *v = (variable){0};
        stet_map_put(&s->variables, name, len, (stet_slot){.p = v});
    }
    s->learned |= command_forms_add(&v->values, f->text, f->pattern, f->glob);
}

static void join_unknown(scanner *s, const char *name, size_t len) {
    join(s, name, len, &(command_form){.text = (char *)unknown_text, .pattern = (char *)unknown_text});
}

/* It is set here. `sure`: whatever else happens. */
static void note_set(scanner *s, const char *name, size_t len, bool sure) {
    variable *v = variable_of(s, name, len);
    v->times = v->pass == s->pass ? v->times + 1 : 1;
    v->pass = s->pass;
    v->sure = sure && s->blocks == 0 && s->shells == 0 && !s->chained && !s->maybe && !s->strings;
}

static void assign_form(scanner *s, const char *text, size_t name_len, const char *value) {
    command_form f = {.text = (char *)value, .pattern = (char *)value};
    join(s, text, name_len, &f);
    if (value - text >= 2 && value[-2] == '+') { /* behind what it was */
        stet_buf longer = STET_BUF(0);
        variable *v = variable_of(s, text, name_len);
        for (size_t i = 0, n = v->values.len; i < n; i++) {
            stet_buf_clear(&longer);
            stet_buf_str(&longer, v->values.at[i].text);
            if (longer.len == 0 || longer.data[longer.len - 1] != COMMAND_UNKNOWN)
                stet_buf_char(&longer, COMMAND_UNKNOWN);
            f.text = f.pattern = longer.data;
            join(s, text, name_len, &f);
        }
        stet_buf_clear(&longer);
        stet_buf_printf(&longer, "%c%s", COMMAND_UNKNOWN, value);
        f.text = f.pattern = longer.data;
        join(s, text, name_len, &f);
        stet_buf_release(&longer);
    }
}

static void assign(scanner *s, const word *w, size_t name_len, bool sure) {
    size_t len;
    const char *value;
    if (is_assignment(w->text, &len, &value))
        assign_form(s, w->text, len, value);
    for (size_t i = 0; i < w->others.len; i++)
        if (is_assignment(w->others.at[i].text, &len, &value))
            assign_form(s, w->others.at[i].text, len, value);
    note_set(s, w->text, name_len, sure && !w->unknown && w->text[name_len] == '=');
}

/* "for NAME in WORDS", and words of an array: the shell has matched them with files. */
static void join_word(scanner *s, const char *name, size_t len, const word *w) {
    const char *value;
    size_t unused;
    command_form first = {.text = w->text, .pattern = w->pattern ? w->pattern : w->text, .glob = w->pattern != NULL};
    join(s, name, len, &first);
    for (size_t i = 0; i < w->others.len; i++)
        join(s, name, len, &w->others.at[i]);
    if (w->text[0] == '[' && (value = strstr(w->text, "]=")) != NULL) /* "[key]=value" */
        join(s, name, len, &(command_form){.text = (char *)value + 2, .pattern = (char *)value + 2});
    else if (strpbrk(w->text, " \t\n") && !is_assignment(w->text, &unused, &value)) /* it may be several */
        for (const char *p = w->text; *(p += strspn(p, " \t\n"));) {
            size_t n = strcspn(p, " \t\n");
            char *part = stet_strndup(p, n);
            join(s, name, len, &(command_form){.text = part, .pattern = part});
            stet_free(part);
            p += n;
        }
}

static bool is_shell(const char *program) {
    const char *base = stet_file_basename(program);
    size_t n = strlen(base);
    return n >= 2 && strcmp(base + n - 2, "sh") == 0;
}

/* "-c", "-ec": the next word is a program's text. */
static bool gives_text(const char *option) {
    return option[0] == '-' && option[1] != '-' && strchr(option, 'c');
}

static bool is_compiler(const char *base) {
    static const char *const names[] = {"cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as", "sort", "curl"};
    const char *dash = strrchr(base, '-');
    return ONE_OF(base, names) || (dash && ONE_OF(dash + 1, names));
}

/* Which operands of cp, mv, ln, install and rsync are written: the last one, unless "-t" names a directory. */
static void mark_copied(word *at, size_t n, bool short_t) {
    size_t last = n, operands = 0;
    bool target = false, options = true;
    for (size_t i = 0; i < n; i++) {
        const char *t = at[i].text;
        size_t len = strlen(t);
        if (at[i].role != PLAIN)
            continue;
        if (options && t[0] == '-' && t[1]) {
            if (strcmp(t, "--") == 0)
                options = false;
            bool next = strcmp(t, "--target-directory") == 0 ||
                        (short_t && t[1] != '-' && t[len - 1] == 't' && !strpbrk(t + 1, "gmoS"));
            target |= next || strncmp(t, "--target-directory=", 19) == 0 || (short_t && t[1] == 't' && len > 2);
            if (next && i + 1 < n)
                at[++i].role = NO_FILE;
            else if (strncmp(t, "--target-directory=", 19) == 0 || (short_t && t[1] == 't' && len > 2))
                at[i].role = NO_FILE;
            continue;
        }
        operands++;
        last = i;
    }
    if (!target && operands > 1) {
        at[last].role = COPIED;
        at[last].into = true;
    }
}

/* Is one of its options this letter, or this word? */
static bool has_option(const word *at, size_t n, char letter, const char *name) {
    for (size_t i = 0; i < n && strcmp(at[i].text, "--") != 0; i++) {
        const char *t = at[i].text;
        if (at[i].role == PLAIN && t[0] == '-' &&
            (t[1] == '-' ? strncmp(t, name, strlen(name)) == 0 : (letter && strchr(t, letter))))
            return true;
    }
    return false;
}

/* May it succeed and leave what is there as it is? */
static bool may_leave(const char *base, const word *at, size_t n) {
    static const char *const careful[] = {"cp", "mv", "rsync", "ln"};
    if (strcmp(base, "mkdir") == 0)
        return has_option(at, n, 'p', "--parents");
    if (strcmp(base, "rmdir") == 0)
        return has_option(at, n, 0, "--ignore-fail-on-non-empty");
    if (!ONE_OF(base, careful))
        return false;
    return strcmp(base, "rsync") == 0 || has_option(at, n, 'n', "--no-clobber") || has_option(at, n, 'u', "--update") ||
           has_option(at, n, 'i', "--interactive");
}

static void changes(scanner *s, const word *w) {
    for (size_t i = 0; i < w->others.len; i++) {
        const command_form *f = &w->others.at[i];
        if (f->glob || command_is_unknown(f->text))
            changes_among(s, f->glob ? f->pattern : f->text);
        else
            changes_to(s, f->text);
    }
    if (w->unknown || w->pattern)
        changes_among(s, w->pattern ? w->pattern : w->text);
    else
        goes_to(s, w->text);
}

/* Which words of a program are what, by its name. */
static void mark(scanner *s, const char *program, word *at, size_t n) {
    static const char *const removers[] = {"rm", "rmdir", "tee", "mkdir", "mkfifo", "mktemp"};
    static const char *const touchers[] = {"touch", "truncate"};
    static const char *const copiers[] = {"cp", "mv", "ln", "install", "rsync"};
    static const char *const changers[] = {"cd", "pushd", "chdir"};
    const char *base = stet_file_basename(program);
    bool writes = ONE_OF(base, removers), touches = ONE_OF(base, touchers);
    bool leaves = may_leave(base, at, n) || (strcmp(base, "tee") == 0 && has_option(at, n, 'a', "--append"));
    /* A tree that is removed by force is gone, whatever it was. */
    bool certain = strcmp(base, "rm") == 0 && has_option(at, n, 'f', "--force") &&
                   (has_option(at, n, 'r', "--recursive") || has_option(at, n, 'R', "--recursive"));
    if (ONE_OF(base, copiers))
        mark_copied(at, n, strcmp(base, "rsync") != 0);
    bool options = true;
    for (size_t i = 0; i < n; i++) {
        const char *t = at[i].text;
        bool option = options && t[0] == '-' && t[1];
        if (option && strcmp(t, "--") == 0)
            options = false;
        if (at[i].role == COPIED && leaves)
            at[i].role = APPENDED;
        if (at[i].role != PLAIN)
            continue;
        if (touches && option && (strcmp(t, "-r") == 0 || strcmp(t, "-s") == 0 || strcmp(t, "-d") == 0) && i + 1 < n)
            at[i + 1].role = strcmp(t, "-r") == 0 ? READ : NO_FILE;
        else if (option && strcmp(t, "-o") == 0 && i + 1 < n && is_compiler(base) && at[i + 1].role == PLAIN)
            at[i + 1].role = COPIED;
        else if (!option && (writes || touches))
            at[i].role = touches || leaves ? APPENDED : certain ? WRITTEN : COPIED;
        else if (!option && ONE_OF(base, changers)) {
            tell_word(s, &at[i]); /* "cd d && ls" reads it */
            at[i].role = NO_FILE;
            changes(s, &at[i]);
            return;
        }
        if (strcmp(base, "dd") == 0 && strncmp(t, "of=", 3) == 0) {
            memmove(at[i].text, t + 3, strlen(t + 3) + 1);
            at[i].role = COPIED;
        }
    }
}

/* Directories that options change to: "-C DIR", "-iC DIR", "-CDIR", "--chdir=DIR", "--work-tree DIR". */
static void take_directories(scanner *s, const word *at, size_t n) {
    static const char *const names[] = {"dir", "wd", "tree", "root", "prefix", "path"};
    for (size_t i = 0; i < n; i++) {
        const char *t = at[i].text, *value = NULL;
        if (at[i].role != PLAIN || t[0] != '-')
            continue;
        if (t[1] == '-') {
            const char *equals = strchr(t, '=');
            bool names_one = false;
            for (size_t k = 0; k < sizeof names / sizeof *names && !names_one; k++)
                names_one = strstr(t, names[k]) && (!equals || strstr(t, names[k]) < equals);
            value = !names_one ? NULL : equals ? equals + 1 : "";
        } else {
            size_t flags = strspn(t + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
            value = flags <= MAX_FLAGS && t[1 + flags] == 'C' ? t + 2 + flags : NULL;
        }
        if (value && *value && !command_is_unknown(value))
            changes_to(s, value);
        else if (value && *value)
            changes_among(s, value);
        else if (value && i + 1 < n && at[i + 1].role == PLAIN && at[i + 1].text[0] != '-') {
            char *here = stet_strdup(s->here);
            changes(s, &at[i + 1]);
            stet_free(s->here);
            s->here = here;
        }
    }
}

/* "-m", "-Bm": the next word is a module; "-mMODULE": the rest. */
static void take_module(scanner *s, const char *option, const char *next) {
    for (size_t i = 1; option[0] == '-' && option[1] != '-' && i <= MAX_FLAGS && option[i]; i++) {
        if (option[i] != 'm')
            continue;
        tell_module(s, option[i + 1] ? option + i + 1 : next);
    }
}

/* What sed reads: the rest of a line behind "r" or "R", wherever they are. */
static void tell_of_sed(scanner *s, const char *text) {
    for (const char *p = text; *p && p - text < 1024; p++) {
        if (*p != 'r' && *p != 'R')
            continue;
        const char *begin = p + 1 + strspn(p + 1, " \t");
        size_t ends[] = {strcspn(begin, "\n"), strcspn(begin, "\n;}")};
        for (size_t i = 0; i < 2; i++) {
            char *name = stet_strndup(begin, ends[i]);
            tell_unlikely(s, name);
            if (i == 0 && (p == text || strspn(text, "0123456789,$ /") >= (size_t)(p - text)))
                tell(s, name, COMMAND_WORD);
            stet_free(name);
        }
    }
}

static void take_argument(scanner *s, const char *program, word *at, size_t i) {
    static const char *const namers[] = {"read",   "mapfile", "readarray", "getopts", "let",    "unset",
                                         "printf", "local",   "declare",   "typeset", "export", "readonly"};
    const char *before = i ? at[i - 1].text : "", *value;
    word *w = &at[i];
    size_t len;
    bool exact = w->role == READ;
    for (size_t k = 0; k < i && !exact; k++)
        exact = at[k].role == PLAIN && strcmp(at[k].text, "--") == 0;
    s->exact = exact;
    if (w->role == READ)
        tell_word(s, w);
    if (w->role != PLAIN) {
        s->exact = false;
        return;
    }
    if (is_assignment(w->text, &len, &value))
        assign(s, w, len, false);
    else if (ONE_OF(program, namers) && (len = name_length(w->text)) > 0 && !w->text[len])
        join_unknown(s, w->text, len);
    if (is_shell(program) && gives_text(before)) {
        s->exact = false;
        if (s->depth < MAX_DEPTH) {
            s->depth++;
            scan(s, w->text);
            s->blocks++;
            for (size_t k = 0; k < w->others.len; k++)
                scan(s, w->others.at[k].text);
            s->blocks--;
            s->depth--;
        }
        return;
    }
    take_module(s, before, w->text);
    take_module(s, w->text, "");
    static const char *const executes[] = {"-exec", "-execdir", "-ok", "-okdir"};
    if (ONE_OF(before, executes) && !w->unknown)
        tell(s, w->text, COMMAND_WORD_PROGRAM);
    size_t n = strlen(program);
    if (n >= 3 && strcmp(program + n - 3, "sed") == 0)
        tell_of_sed(s, w->text);
    tell_word(s, w);
    s->exact = false;
}

/* What starts or ends something that may be left out, or be done in any order. */
static void count_blocks(scanner *s, const char *text) {
    static const char *const opens[] = {"if", "for", "while", "until", "case", "{"}, *const closes[] = {"fi", "done",
                                                                                                        "esac", "}"};
    s->blocks += ONE_OF(text, opens);
    s->blocks -= ONE_OF(text, closes) && s->blocks > 0;
}

/* The words of "eval" are a text. */
static void take_eval(scanner *s, const word *at, size_t n) {
    stet_buf text = STET_BUF(0);
    for (size_t i = 0; i < n; i++)
        if (at[i].role == PLAIN)
            stet_buf_printf(&text, "%s ", at[i].text);
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        s->blocks++; /* what it writes depends on what it becomes */
        scan(s, stet_buf_cstr(&text));
        s->blocks--;
        s->depth--;
    }
    stet_buf_release(&text);
}

/* The words of an array, one or more lines of them. */
static void take_elements(scanner *s, words *w) {
    const char *name = s->array;
    for (size_t i = 0; i < w->len; i++) {
        tell_word(s, &w->at[i]);
        join_word(s, name, strlen(name), &w->at[i]);
    }
    words_clear(w);
}

/* "for NAME in WORDS". */
static void take_loop(scanner *s, const words *w) {
    size_t i = 0;
    while (i < w->len && strcmp(w->at[i].text, "for") != 0 && strcmp(w->at[i].text, "select") != 0)
        i++;
    if (i + 1 >= w->len || name_length(w->at[i + 1].text) != strlen(w->at[i + 1].text) || !*w->at[i + 1].text)
        return;
    const char *name = w->at[i + 1].text;
    bool in = i + 2 < w->len && strcmp(w->at[i + 2].text, "in") == 0;
    for (size_t k = i + 3; in && k < w->len; k++)
        if (w->at[k].role == PLAIN)
            join_word(s, name, strlen(name), &w->at[k]);
    if (!in)
        join_unknown(s, name, strlen(name));
    if (variable_of(s, name, strlen(name)))
        note_set(s, name, strlen(name), false);
}

/* "xargs -I TOKEN", "xargs -ITOKEN". */
static void take_token(scanner *s, const words *w) {
    stet_free(s->token);
    s->token = NULL;
    for (size_t i = 0; i < w->len && !s->token; i++) {
        const char *t = w->at[i].text;
        if (t[0] == '-' && (t[1] == 'I' || t[1] == 'i') && t[2])
            s->token = stet_strdup(t + 2);
        else if (strcmp(t, "-I") == 0 && i + 1 < w->len)
            s->token = stet_strdup(w->at[i + 1].text);
    }
}

static void take_command(scanner *s, words *w) {
    size_t i = 0, name_len;
    const char *value;
    if (s->array) {
        take_elements(s, w);
        return;
    }
    if (w->len == 0)
        return;
    take_loop(s, w);
    bool alone = true, starts = false; /* only assignments */
    for (size_t k = 0; k < w->len; k++) {
        alone &= w->at[k].role != PLAIN || is_assignment(w->at[k].text, &name_len, &value);
        starts |= strcmp(stet_file_basename(w->at[k].text), "xargs") == 0 ||
                  strcmp(stet_file_basename(w->at[k].text), "parallel") == 0;
    }
    if (starts)
        take_token(s, w);
    take_directories(s, w->at, w->len);
    for (size_t k = 0; k < w->len; k++) /* the shell opens them first */
        if (w->at[k].role == WRITTEN)
            tell_written(s, &w->at[k], true);
    s->negated = false;
    bool another = false, begun = false; /* behind a program that starts others; behind any program or keyword */
    const char *program = "";
    for (; i < w->len; i++) {
        const word *one = &w->at[i];
        s->exact = one->role == READ;
        if (one->role == READ)
            tell_word(s, one);
        s->exact = false;
        if (one->role != PLAIN)
            continue;
        count_blocks(s, one->text);
        if (is_assignment(one->text, &name_len, &value)) {
            assign(s, one, name_len, alone);
            tell_word(s, one);
            continue;
        }
        if (begun && (one->text[0] == '-' || (another && strchr("0123456789", one->text[0])))) {
            tell_word(s, one);
            continue;
        }
        begun = true;
        program = one->text;
        if (!one->unknown)
            tell(s, program, COMMAND_WORD_PROGRAM);
        for (size_t k = 0; k < one->others.len; k++)
            if (!command_is_unknown(one->others.at[k].text))
                tell(s, one->others.at[k].text, COMMAND_WORD_PROGRAM);
        if (strchr(program, '/') || one->pattern || one->unknown || one->others.len > 0 || another || s->strings)
            tell_word(s, one);
        s->dynamic |= strcmp(program, "eval") == 0 || strcmp(program, ".") == 0 || strcmp(program, "source") == 0;
        another |= starts_another(program);
        s->negated |= strcmp(program, "!") == 0;
        if (!is_keyword(program) && !starts_another(program)) {
            i++;
            break;
        }
    }
    for (size_t k = i; another && k < w->len && k < i + 2; k++)
        if (w->at[k].role == PLAIN && !w->at[k].unknown)
            tell(s, w->at[k].text, COMMAND_WORD_PROGRAM);
    size_t rest = i < w->len ? i : w->len;
    mark(s, program, w->at + rest, w->len - rest);
    static const char *const printers[] = {"echo", "printf", ":", "true", "false", "exit"};
    for (size_t k = rest; k < w->len; k++) {
        s->prints = ONE_OF(program, printers) && w->at[k].role == PLAIN;
        take_argument(s, program, w->at + rest, k - rest);
        s->prints = false;
    }
    if (strcmp(program, "eval") == 0)
        take_eval(s, w->at + rest, w->len - rest);
    for (size_t k = rest; k < w->len; k++)
        if (w->at[k].role == WRITTEN || w->at[k].role == COPIED)
            tell_written(s, &w->at[k], w->at[k].role == WRITTEN);
    for (size_t k = 0; k < w->len; k++)
        if (w->at[k].role == WRITTEN || w->at[k].role == COPIED || w->at[k].role == APPENDED)
            tell_may_write(s, &w->at[k]);
    words_clear(w);
}

/* One of the forms of a word that is being read. */
typedef struct draft {
    stet_buf text, pattern;
    bool glob;
} draft;

/* A word that is being read. */
typedef struct reading {
    words done;
    STET_VEC(draft) drafts;
    bool any; /* it has begun, though it may be empty */
    bool unsure;
    bool delimits;   /* it ends a here-document */
    word_role role;  /* of the next one */
    stet_names ends; /* of here-documents that begin with the next line */
} reading;

static void begin_word(reading *r) {
    r->any = true;
    if (r->drafts.len == 0)
        *stet_vec_add(&r->drafts) = (draft){.text = STET_BUF(0), .pattern = STET_BUF(0)};
}

static void add_to_draft(draft *d, char c, bool quoted) {
    if (quoted && strchr("*?[]\\", c))
        stet_buf_char(&d->pattern, '\\');
    d->glob |= !quoted && strchr("*?[", c) != NULL;
    stet_buf_char(&d->pattern, c);
    stet_buf_char(&d->text, c);
}

static void add_byte(reading *r, char c, bool quoted) {
    begin_word(r);
    for (size_t i = 0; i < r->drafts.len; i++)
        add_to_draft(&r->drafts.at[i], c, quoted);
}

/* A part that only a shell could tell. */
static void add_unknown(reading *r) {
    add_byte(r, COMMAND_UNKNOWN, true);
}

/* What the word has been until now. */
static const char *text_so_far(const reading *r) {
    return r->drafts.len > 0 ? stet_buf_cstr(&r->drafts.at[0].text) : "";
}

static void drop_word(reading *r) {
    for (size_t i = 0; i < r->drafts.len; i++) {
        stet_buf_release(&r->drafts.at[i].text);
        stet_buf_release(&r->drafts.at[i].pattern);
    }
    stet_vec_clear(&r->drafts);
    r->any = r->unsure = false;
}

/* A part that may be one of several. */
static void add_forms(reading *r, const command_forms *f, bool quoted) {
    begin_word(r);
    if (f->len == 0 || r->drafts.len * f->len > COMMAND_MAX_FORMS) {
        if (f->len > 0)
            add_unknown(r);
        return;
    }
    size_t n = r->drafts.len;
    for (size_t k = 1; k < f->len; k++) {
        for (size_t i = 0; i < n; i++) {
            draft d = {.text = STET_BUF(0), .pattern = STET_BUF(0), .glob = r->drafts.at[i].glob};
            stet_buf_str(&d.text, stet_buf_cstr(&r->drafts.at[i].text));
            stet_buf_str(&d.pattern, stet_buf_cstr(&r->drafts.at[i].pattern));
            *stet_vec_add(&r->drafts) = d;
        }
    }
    for (size_t k = 0; k < f->len; k++) {
        for (size_t i = 0; i < n; i++) {
            draft *d = &r->drafts.at[k * n + i];
            if (f->at[k].glob) {
                stet_buf_str(&d->text, f->at[k].text);
                stet_buf_str(&d->pattern, f->at[k].pattern);
                d->glob = true;
            } else {
                for (const char *p = f->at[k].text; *p; p++)
                    add_to_draft(d, *p, quoted);
            }
        }
    }
    r->unsure |= f->len > 1;
}

static void end_word(reading *r) {
    if (r->any) {
        begin_word(r);
        draft *d = &r->drafts.at[0];
        const char *text = stet_buf_cstr(&d->text);
        if (r->delimits)
            *stet_vec_add(&r->ends) = stet_strdup(text);
        r->delimits = false;
        word w = {.text = stet_strdup(text),
                  .pattern = d->glob ? stet_strdup(stet_buf_cstr(&d->pattern)) : NULL,
                  .unknown = command_is_unknown(text),
                  .unsure = r->unsure,
                  .role = r->role};
        for (size_t i = 1; i < r->drafts.len; i++) {
            d = &r->drafts.at[i];
            text = stet_buf_cstr(&d->text);
            command_forms_add(&w.others, text, stet_buf_cstr(&d->pattern), d->glob);
        }
        *stet_vec_add(&r->done) = w;
        r->role = PLAIN;
    }
    drop_word(r);
}

/* Where "$(...)", "(...)", "${...}", "`...`" or "..." in quotes ends, from behind its beginning: at what ends it, or at
 * the end of the text. `quoted`: in double quotes, where an apostrophe is one. */
static const char *close_of(const char *p, char end, bool quoted) {
    int depth = 0, cases = 0;
    for (bool begin = true; *p; p++) {
        const char *at = p;
        if (*p == '\\' && p[1]) {
            p++;
        } else if (*p == end && depth == 0 && cases == 0) {
            return p;
        } else if (*p == '\'' && end != '`' && !quoted) {
            const char *q = strchr(p + 1, '\'');
            p = q ? q : p;
        } else if (*p == '"' && end != '`') {
            p = close_of(p + 1, '"', true);
        } else if (*p == '$' && (p[1] == '(' || p[1] == '{')) {
            p = p[1] == '(' ? close_of(p + 2, ')', false) : close_of(p + 2, '}', quoted);
        } else if (*p == '`') {
            p = close_of(p + 1, '`', false);
        } else if (end == ')') {
            if (begin && strncmp(p, "case", 4) == 0 && p[4] && strchr(" \t\n", p[4]))
                cases++;
            else if (begin && strncmp(p, "esac", 4) == 0 && cases > 0)
                cases--;
            depth += (*p == '(') - (*p == ')' && depth > 0);
        }
        if (!*p)
            return p;
        begin = p == at && strchr(" \t\n;|&()", *p) != NULL;
    }
    return p;
}

/* A text in a word that is a command of its own. What it sets and where it changes to is not so outside. */
static void scan_inside(scanner *s, const char *text) {
    char *here = stet_strdup(s->here);
    const char *array = s->array;
    bool chained = s->chained, maybe = s->maybe, exact = s->exact;
    s->array = NULL;
    s->exact = false;
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        s->shells++;
        scan(s, text);
        s->shells--;
        s->depth--;
    } else {
        tell_broken(s, text);
        tell_quoted(s, text);
    }
    s->exact = exact;
    s->array = array;
    s->chained = chained;
    s->maybe = maybe;
    stet_free(s->here);
    s->here = here;
}

/* A command in a word: what it gives is not known, unless it is `pwd`; what it names is. Where it ends. */
static const char *substitution(scanner *s, const char *begin, char end, reading *r) {
    const char *close = close_of(begin, end, false);
    stet_buf text = STET_BUF(0);
    for (const char *p = begin; p < close; p++) {
        if (end == '`' && *p == '\\' && p + 1 < close && strchr("`$\\\"", p[1]))
            p++;
        stet_buf_char(&text, *p);
    }
    const char *command = stet_buf_cstr(&text) + strspn(stet_buf_cstr(&text), " \t\n");
    bool here = strncmp(command, "pwd", 3) == 0 && !command[3 + strspn(command + 3, " \t\n-LP")];
    if (here)
        add_byte(r, '.', true);
    else
        add_unknown(r);
    scan_inside(s, stet_buf_cstr(&text));
    stet_buf_release(&text);
    return *close ? close + 1 : close;
}

static const char *dollar(scanner *s, const char *p, reading *r, bool quoted);
static const char *quoted(scanner *s, const char *p, reading *r);

/* "'...'", or "$'...'" with what C has. Where it ends. */
static const char *apostrophes(const char *p, reading *r, bool decode) {
    begin_word(r);
    const char *end = p;
    while (*end && *end != '\'')
        end += decode && *end == '\\' && end[1] ? 2 : 1;
    char *raw = stet_strndup(p, (size_t)(end - p));
    if (decode) { /* a shell without it takes the dollar for itself */
        command_forms f = {0};
        stet_buf text = STET_BUF(0);
        command_decode(raw, &text);
        char *literal = stet_asprintf("$%s", raw);
        command_forms_add(&f, stet_buf_cstr(&text), stet_buf_cstr(&text), false);
        command_forms_add(&f, literal, literal, false);
        add_forms(r, &f, true);
        stet_free(literal);
        stet_buf_release(&text);
        command_forms_release(&f);
    } else {
        for (const char *c = raw; *c; c++)
            add_byte(r, *c, true);
    }
    stet_free(raw);
    return *end ? end + 1 : end;
}

/* What may be a part of any word, wherever that is. NULL: nothing of the kind. */
static const char *part_of_word(scanner *s, const char *p, reading *r) {
    if (*p == '\'')
        return apostrophes(p + 1, r, false);
    if (*p == '$' && p[1] == '\'')
        return apostrophes(p + 2, r, true);
    if (*p == '"' || (*p == '$' && p[1] == '"'))
        return quoted(s, p + 1 + (*p == '$'), r);
    if (*p == '`')
        return substitution(s, p + 1, '`', r);
    if (*p == '$')
        return dollar(s, p, r, false);
    if (*p == '\\' && p[1]) {
        if (p[1] != '\n')
            add_byte(r, p[1], true);
        return p + 2;
    }
    return NULL;
}

/* What a text becomes as one word: "$(cat f)" of "${X:-$(cat f)}". */
static void forms_of_text(scanner *s, const char *p, bool in_quotes, command_forms *out) {
    reading r = {0};
    begin_word(&r);
    while (*p) {
        const char *next = in_quotes && *p == '\'' ? NULL : part_of_word(s, p, &r);
        if (!next)
            add_byte(&r, *p, in_quotes);
        p = next ? next : p + 1;
    }
    for (size_t i = 0; i < r.drafts.len; i++) {
        const draft *d = &r.drafts.at[i];
        command_forms_add(out, stet_buf_cstr(&d->text), stet_buf_cstr(&d->pattern), d->glob);
    }
    drop_word(&r);
    stet_vec_release(&r.drafts);
}

/* What a variable may be. False: that is not all. */
static bool values_of(scanner *s, const char *name, size_t len, command_forms *out, bool *sure) {
    variable *v = variable_of(s, name, len);
    bool known = v && v->values.len > 0 && !s->dynamic;
    *sure = known && v->single && v->pass == s->pass && v->values.len == 1;
    for (size_t i = 0; v && i < v->values.len; i++)
        command_forms_add(out, v->values.at[i].text, v->values.at[i].pattern, v->values.at[i].glob);
    if (!known)
        command_forms_add(out, unknown_text, unknown_text, false);
    return known;
}

/* "${NAME%.c}" and its like, of each value. One that has unknown parts keeps what comes before or behind them. */
static void change_values(const command_forms *from, const char *operation, command_forms *out) {
    for (size_t i = 0; i < from->len; i++) {
        const command_form *f = &from->at[i];
        bool vague = f->glob || command_is_unknown(f->text);
        stet_buf one = STET_BUF(0);
        bool known = command_value_change(f->text, operation, &one);
        if (known)
            command_forms_add(out, stet_buf_cstr(&one), stet_buf_cstr(&one), f->glob);
        if (vague || !known) {
            const char wild[] = {'*', '?', '[', COMMAND_UNKNOWN, 0};
            size_t n = strcspn(f->text, wild);
            const char *end = f->text + strlen(f->text);
            while (end > f->text && !strchr(wild, end[-1]))
                end--;
            stet_buf_clear(&one);
            if (operation[0] == '%')
                stet_buf_add(&one, f->text, n);
            stet_buf_char(&one, COMMAND_UNKNOWN);
            if (operation[0] == '#')
                stet_buf_str(&one, end);
            command_forms_add(out, one.data, one.data, false);
        }
        stet_buf_release(&one);
    }
}

/* "${...}", from behind its brace. Where it ends. */
static const char *braces(scanner *s, const char *p, reading *r, bool quoted) {
    const char *close = close_of(p, '}', quoted);
    char *text = stet_strndup(p, (size_t)(close - p));
    size_t len = name_length(text);
    const char *end = *close ? close + 1 : close, *rest = text + len;
    bool sure = false;
    command_forms values = {0}, operands = {0}, out = {0};
    if (*rest == '[' && strchr(rest, ']'))
        rest = strchr(rest, ']') + 1;
    bool pwd = len == 3 && memcmp(text, "PWD", 3) == 0 && !variable_of(s, "PWD", 3);
    if (len > 0 && pwd && !*rest) {
        add_byte(r, '.', true);
    } else if (!*rest && len > 0) {
        values_of(s, text, len, &out, &sure);
    } else if (!len && (text[0] == '#' || text[0] == '!')) { /* a length; a variable's variable */
        tell_broken(s, text);
        command_forms_add(&out, unknown_text, unknown_text, false);
    } else {
        if (!len) /* "$1" */
            rest += *rest && strchr("@*?$!-", *rest) ? 1 : strspn(rest, "0123456789");
        bool known = len > 0 && !pwd && values_of(s, text, len, &values, &sure);
        const char *operand = rest + (rest[0] == ':' && rest[1] && strchr("-=+?", rest[1]) ? 1 : 0);
        if (*operand && strchr("-=+?", *operand)) {
            forms_of_text(s, operand + 1, quoted, &operands);
            s->strings++;
            for (size_t i = 0; i < operands.len; i++) {
                tell_form(s, operands.at[i].text, operands.at[i].glob ? operands.at[i].pattern : NULL);
                if (*operand == '=')
                    join(s, text, len, &operands.at[i]);
            }
            s->strings--;
            for (size_t i = 0; i < values.len && *operand != '+'; i++)
                command_forms_add(&out, values.at[i].text, values.at[i].pattern, values.at[i].glob);
            for (size_t i = 0; i < operands.len; i++)
                command_forms_add(&out, operands.at[i].text, operands.at[i].pattern, operands.at[i].glob);
            if (*operand == '+')
                command_forms_add(&out, "", "", false);
        } else {
            forms_of_text(s, rest, false, &operands);
            if (!known)
                for (size_t i = 0; i < s->words.len; i++)
                    command_forms_add(&values, s->words.at[i].text, s->words.at[i].pattern, false);
            for (size_t i = 0; i < operands.len; i++)
                change_values(&values, operands.at[i].glob ? operands.at[i].pattern : operands.at[i].text, &out);
            if (!known)
                command_forms_add(&out, unknown_text, unknown_text, false);
        }
        sure = false;
    }
    if (out.len > 0) {
        add_forms(r, &out, quoted);
        r->unsure |= !sure;
    }
    command_forms_release(&values);
    command_forms_release(&operands);
    command_forms_release(&out);
    stet_free(text);
    return end;
}

/* "$((...))": a number. The commands in it, and the variables that it may set. Where it ends, or NULL: it is none. */
static const char *arithmetic(scanner *s, const char *p, reading *r) {
    const char *inner = close_of(p + 3, ')', false);
    if (*inner && inner[1] != ')')
        return NULL;
    char *text = stet_strndup(p + 3, (size_t)(inner - p - 3));
    command_forms unused = {0};
    forms_of_text(s, text, true, &unused);
    command_forms_release(&unused);
    for (const char *c = text; *c && strpbrk(text, "=+-");) {
        size_t n = name_length(c);
        if (n > 0 && strpbrk(c + n, "=+-") && variable_of(s, c, n))
            join_unknown(s, c, n);
        c += n ? n : 1;
    }
    stet_free(text);
    add_unknown(r);
    return *inner ? inner + 2 : inner;
}

/* What begins with "$". Where it ends. */
static const char *dollar(scanner *s, const char *p, reading *r, bool quoted) {
    if (p[1] == '(' && p[2] == '(') {
        const char *end = arithmetic(s, p, r);
        if (end)
            return end;
    }
    if (p[1] == '(')
        return substitution(s, p + 2, ')', r);
    if (p[1] == '{')
        return braces(s, p + 2, r, quoted);
    const char *name = p + 1;
    size_t len = name_length(name);
    if (len == 3 && memcmp(name, "PWD", 3) == 0 && !variable_of(s, "PWD", 3)) { /* where it is */
        add_byte(r, '.', true);
        return name + len;
    }
    if (len > 0) {
        command_forms values = {0};
        bool sure;
        values_of(s, name, len, &values, &sure);
        add_forms(r, &values, quoted);
        r->unsure |= !sure;
        command_forms_release(&values);
        return name + len;
    }
    if (*name && strchr("@*#?$!-0123456789", *name)) {
        add_unknown(r);
        return name + 1;
    }
    add_byte(r, '$', true);
    return p + 1;
}

/* "~" at the beginning of a word or of a value. Where it ends. */
static const char *tilde(scanner *s, const char *p, reading *r) {
    size_t n = 1 + strcspn(p + 1, "/ \t\n;|&()<>:'\"$`");
    command_forms values = {0};
    bool sure;
    if (n == 2 && p[1] == '+') {
        add_byte(r, '.', true);
    } else if (n == 1) {
        values_of(s, "HOME", 4, &values, &sure);
        add_forms(r, &values, true);
    } else { /* somebody's, or "~" as it is */
        char *literal = stet_strndup(p, n);
        command_forms_add(&values, literal, literal, false);
        command_forms_add(&values, unknown_text, unknown_text, false);
        add_forms(r, &values, true);
        stet_free(literal);
    }
    r->unsure = true;
    command_forms_release(&values);
    return p + n;
}

/* In double quotes, from behind the first. Where it ends. */
static const char *quoted(scanner *s, const char *p, reading *r) {
    begin_word(r);
    while (*p && *p != '"') {
        if (*p == '$')
            p = dollar(s, p, r, true);
        else if (*p == '`') {
            p = substitution(s, p + 1, '`', r);
        } else {
            if (*p == '\\' && p[1] && strchr("$`\"\\\n", p[1])) {
                p++;
                if (*p == '\n') {
                    p++;
                    continue;
                }
            }
            add_byte(r, *p++, true);
        }
    }
    return *p ? p + 1 : p;
}

/* "<", ">" and what belongs to it. What the next word is. Where it ends. */
static const char *redirection(const char *p, reading *r) {
    const char *so_far = text_so_far(r);
    if (r->any && !so_far[strspn(so_far, "0123456789")]) /* "2>": no word */
        drop_word(r);
    else if (r->any && so_far[0] == '{' && so_far[strlen(so_far) - 1] == '}') /* "{fd}>" */
        drop_word(r);
    end_word(r);
    if (strncmp(p, "<<<", 3) == 0)
        return p + 3;
    if (strncmp(p, "<<", 2) == 0) {
        r->role = NO_FILE;
        r->delimits = true;
        return p + 2 + (p[2] == '-');
    }
    if (p[1] == '&') { /* "2>&1": no file */
        p += 2;
        bool descriptor = *p == '-' || (*p >= '0' && *p <= '9');
        r->role = descriptor ? NO_FILE : WRITTEN;
        return p;
    }
    if (p[0] == '<') {
        r->role = READ;
        return p + 1 + (p[1] == '>');
    }
    r->role = p[1] == '>' ? APPENDED : WRITTEN;
    return p + 1 + (p[1] == '>' || p[1] == '|');
}

/* What is open: "(" or "case". */
typedef struct place {
    char *here;   /* where a subshell began; NULL: a case */
    bool choices; /* of a case: what comes next is what its value is compared with, and no command */
} place;
typedef STET_VEC(place) open_places;

/* Does the command begin or end a case? */
static bool begins_with(const words *w, const char *name) {
    size_t i = 0;
    while (i < w->len && is_keyword(w->at[i].text))
        i++;
    return i < w->len && w->at[i].role == PLAIN && strcmp(w->at[i].text, name) == 0;
}

static void take_command_or_choices(scanner *s, reading *r, open_places *open) {
    words *w = &r->done;
    if (begins_with(w, "esac") && open->len > 0 && !open->at[open->len - 1].here)
        open->len--;
    else if (open->len > 0 && open->at[open->len - 1].choices)
        words_clear(w);
    if (begins_with(w, "case")) {
        size_t keep = 0;
        while (keep < w->len && (w->at[keep].role != PLAIN || strcmp(w->at[keep].text, "in") != 0))
            keep++;
        for (size_t i = keep; i < w->len; i++)
            word_release(&w->at[i]);
        w->len = keep;
        *stet_vec_add(open) = (place){.choices = true};
    }
    take_command(s, w);
}

/* A command ends here: what does that say of the next one? Where that begins. */
static const char *separator(scanner *s, reading *r, const char *p, open_places *open) {
    end_word(r);
    take_command_or_choices(s, r, open);
    bool both = p[0] == '&' && p[1] == '&', either = p[0] == '|' && p[1] == '|', pipe = p[0] == '|' && !either;
    place *top = open->len > 0 ? &open->at[open->len - 1] : NULL;
    if (*p == '(' && !(top && top->choices)) {
        *stet_vec_add(open) = (place){.here = stet_strdup(s->here)};
        s->shells++;
    } else if (*p == ')' && top && !top->here) {
        top->choices = false;
    } else if (*p == ')' && top) {
        stet_free(s->here);
        s->here = top->here;
        s->shells--;
        open->len--;
    } else if (p[0] == ';' && (p[1] == ';' || p[1] == '&') && top && !top->here) {
        top->choices = true;
    }
    if (both) {
        s->chained = true;
    } else if (either || pipe) { /* it may have failed; it may not have ended */
        s->maybe |= either;
        s->lists++;
    } else if (*p != '(' && *p != ')') {
        s->chained = s->maybe = false;
        s->lists++;
    }
    return p + 1 + (both || either);
}

/* Here-documents: words in them count, though nobody may read them. From behind the end of a line to behind the last of
 * them. */
static const char *here_documents(scanner *s, reading *r, const char *p) {
    stet_buf body = STET_BUF(0);
    for (size_t i = 0; i < r->ends.len; i++) {
        while (*p) {
            size_t n = strcspn(p, "\n"), tabs = strspn(p, "\t");
            const char *line = p;
            p += n + (p[n] == '\n');
            if (tabs <= n && strlen(r->ends.at[i]) == n - tabs && memcmp(line + tabs, r->ends.at[i], n - tabs) == 0)
                break;
            stet_buf_add(&body, line, n);
            stet_buf_char(&body, '\n');
        }
    }
    tell_string(s, stet_buf_cstr(&body));
    stet_buf_release(&body);
    stet_names_release(&r->ends);
    r->ends = (stet_names){0};
    return p;
}

/* "NAME=(", at the parenthesis. Where the array ends. */
static const char *array(scanner *s, const char *p, reading *r) {
    const char *close = close_of(p + 1, ')', false), *outer = s->array;
    char *text = stet_strndup(p + 1, (size_t)(close - p) - 1), *name = stet_strdup(text_so_far(r));
    name[name_length(name)] = 0;
    s->array = name;
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        scan(s, text);
        s->depth--;
    }
    s->array = outer;
    if (variable_of(s, name, strlen(name)))
        note_set(s, name, strlen(name), false);
    drop_word(r);
    stet_free(name);
    stet_free(text);
    return *close ? close + 1 : close;
}

/* "@(a|b)" and its like, which is a pattern for some shells; for others "!(...)" is a command. Where it ends. */
static const char *choice(scanner *s, const char *p, reading *r) {
    const char *close = close_of(p + 2, ')', false);
    char *text = stet_strndup(p + 2, (size_t)(close - p) - 2);
    add_unknown(r);
    s->blocks++;
    scan_inside(s, text);
    s->strings++;
    tell_broken(s, text);
    s->strings--;
    s->blocks--;
    stet_free(text);
    return *close ? close + 1 : close;
}

static bool begins_array(const reading *r) {
    size_t len;
    const char *value, *text = text_so_far(r);
    return r->any && is_assignment(text, &len, &value) && !*value;
}

static bool begins_value(const reading *r) {
    const char *text = text_so_far(r);
    return !r->any || (*text && strchr("=:", text[strlen(text) - 1]));
}

static void scan(scanner *s, const char *p) {
    reading r = {0};
    open_places places = {0};
    int shells = s->shells;
    while (*p) {
        const char *next;
        if (strchr(" \t\r", *p)) {
            end_word(&r);
            p++;
        } else if (*p == '#' && !r.any) { /* words of a comment count, too: it may be none */
            size_t n = strcspn(p, "\n");
            char *comment = stet_strndup(p + 1, n - 1);
            tell_string(s, comment);
            if (!strpbrk(comment, BREAKS))
                tell(s, comment, COMMAND_WORD);
            stet_free(comment);
            p += n;
        } else if (*p == '(' && begins_array(&r)) {
            p = array(s, p, &r);
        } else if (*p && strchr("@+!?*", *p) && p[1] == '(') {
            p = choice(s, p, &r);
        } else if (*p == '~' && begins_value(&r)) {
            p = tilde(s, p, &r);
        } else if (*p == '&' && p[1] == '>') {
            end_word(&r);
            p = redirection(p + 1, &r);
        } else if (strchr("\n;&|()", *p)) {
            bool line = *p == '\n';
            p = separator(s, &r, p, &places);
            if (line && r.ends.len > 0)
                p = here_documents(s, &r, p);
        } else if (*p == '<' || *p == '>') {
            p = p[1] == '(' ? substitution(s, p + 2, ')', &r) : redirection(p, &r); /* "<(command)" */
        } else if ((next = part_of_word(s, p, &r)) != NULL) {
            p = next;
        } else {
            add_byte(&r, *p++, false);
        }
    }
    end_word(&r);
    take_command_or_choices(s, &r, &places);
    for (size_t i = 0; i < places.len; i++)
        stet_free(places.at[i].here);
    s->shells = shells;
    stet_vec_release(&places);
    stet_vec_release(&r.done);
    stet_vec_release(&r.drafts);
    stet_names_release(&r.ends);
}

static void one_pass(scanner *s, char *const *argv, size_t len) {
    words w = {0};
    begin_pass(s);
    for (size_t i = 0; i < len; i++)
        *stet_vec_add(&w) = (word){.text = stet_strdup(argv[i]), .unknown = command_is_unknown(argv[i])};
    take_command(s, &w);
    stet_vec_release(&w);
}

void command_words_of_list(char *const *argv, size_t len, char *const *env, size_t env_len, command_word_fn each,
                           void *ctx) {
    scanner s;
    scanner_begin(&s, tell_nobody, NULL);
    for (size_t i = 0; i < env_len; i++) {
        const char *equals = strchr(env[i], '=');
        if (equals)
            join(&s, env[i], (size_t)(equals - env[i]),
                 &(command_form){.text = (char *)equals + 1, .pattern = (char *)equals + 1});
    }
    do /* until nothing new is learned of its variables */
        one_pass(&s, argv, len);
    while (s.learned && s.pass < MAX_PASSES);
    s.dynamic |= s.learned;
    s.each = each;
    s.ctx = ctx;
    one_pass(&s, argv, len);
    scanner_end(&s);
}

/* Slots of `seen` beside COMMAND_WORD_TAKEN. From IN_LIST on: written in the and-or list of that number. */
enum { WRITTEN_FOR_CERTAIN = 2, IN_LIST = 3 };

bool command_word_reads(stet_map *seen, const char *path, const command_word *w) {
    size_t len = strlen(path);
    const stet_slot *slot = stet_map_get(seen, path, len);
    if (w->kind != COMMAND_WORD_WRITTEN)
        return !slot || (slot->n >= IN_LIST && slot->n != IN_LIST + w->list);
    if (!slot || slot->n >= IN_LIST)
        stet_map_put(seen, path, len, (stet_slot){.n = w->chained ? IN_LIST + w->list : WRITTEN_FOR_CERTAIN});
    return false;
}
