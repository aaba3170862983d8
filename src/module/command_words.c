/* command_words.c - finds the words of a command that may name a file it reads or a program it starts. */

#include "module/command_words.h"

#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "os/file.h"

#define MAX_FROM   8  /* directories that it changes to */
#define MAX_DEPTH  8  /* strings in strings */
#define MAX_BRACES 64 /* words that "{a,b}" may become */
#define BREAKS     " \t\r\n'\"`()<>|&;,:={}[]#"

/* WRITTEN is sure to be so: the shell opens it first. COPIED is written by a program that may fail, or leave what is
 * there as it is. */
typedef enum word_role { PLAIN, READ, WRITTEN, COPIED, APPENDED, NO_FILE } word_role;

/* A word of a command, its quotes gone. */
typedef struct word {
    char *text;
    /* The same with quoted characters after backslashes, and "*" for parts that only a shell could tell; if the shell
     * would match it with files, or there is such a part. */
    char *pattern;
    bool unknown; /* part of it only a shell could tell */
    bool into;    /* if a directory is there, it is written into */
    word_role role;
} word;

typedef struct scanner {
    command_word_fn each;
    void *ctx;
    STET_VEC(char *) from;
    STET_VEC(char *) among; /* directories that it changes to of which part is unknown: patterns */
    char *here;             /* the directory that it is in now, as far as can be told */
    stet_map variables;     /* set in the text: name -> value, own */
    int depth;
    int strings;    /* in a string of which it is not known that it is a command */
    bool prints;    /* words of a command that only prints them */
    int blocks;     /* in what may be left out or repeated: if, for, a function */
    unsigned lists; /* and-or lists that have begun */
    bool chained;   /* behind "&&": what is written is so for the rest of this list alone */
    bool maybe;     /* behind "||" */
    bool negated;   /* behind "!": what comes after "&&" does so if it fails */
} scanner;

typedef STET_VEC(word) words;

static void words_clear(words *w) {
    for (size_t i = 0; i < w->len; i++) {
        stet_free(w->at[i].text);
        stet_free(w->at[i].pattern);
    }
    stet_vec_clear(w);
}

static void scanner_begin(scanner *s, command_word_fn each, void *ctx) {
    *s = (scanner){.each = each, .ctx = ctx, .here = stet_strdup(""), .lists = 1};
    *stet_vec_add(&s->from) = stet_strdup("");
}

static void scanner_end(scanner *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->variables, &i, &key, &len, &slot);)
        stet_free(slot->p);
    stet_map_release(&s->variables);
    for (size_t i = 0; i < s->from.len; i++)
        stet_free(s->from.at[i]);
    for (size_t i = 0; i < s->among.len; i++)
        stet_free(s->among.at[i]);
    stet_vec_release(&s->from);
    stet_vec_release(&s->among);
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

static void tell_pattern(scanner *s, const char *text, bool guessed) {
    command_word w = {.text = text, .kind = COMMAND_WORD_PATTERN, .list = s->lists};
    w.guessed = guessed || s->strings > 0 || s->prints;
    for (size_t i = 0; *text && (!guessed || says_something(text)) && i < s->from.len; i++) {
        w.from = s->from.at[i];
        s->each(s->ctx, &w);
    }
}

static void add_escaped(stet_buf *out, const char *text) {
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            stet_buf_char(out, '\\');
        stet_buf_char(out, *text);
    }
}

static void tell(scanner *s, const char *text, command_word_kind kind) {
    if (!*text || (kind == COMMAND_WORD && text[0] == '-'))
        return;
    command_word w = {.text = text, .kind = kind, .list = s->lists, .guessed = s->strings > 0 || s->prints};
    for (size_t i = 0; i < s->from.len; i++) {
        w.from = s->from.at[i];
        s->each(s->ctx, &w);
    }
    bool below = kind == COMMAND_WORD && text[0] != '/' && !w.guessed && says_something(text);
    for (size_t i = 0; below && i < s->among.len; i++) {
        stet_buf path = STET_BUF(0);
        stet_buf_printf(&path, "%s/", s->among.at[i]);
        add_escaped(&path, text);
        tell_pattern(s, stet_buf_cstr(&path), true);
        stet_buf_release(&path);
    }
}

/* What is written, so that whatever reads it later reads what the command wrote: for certain, or if what writes it
 * succeeds. */
static void tell_written(scanner *s, const word *one, bool certain) {
    if (!*one->text || s->strings || one->unknown || one->pattern || (!certain && s->negated))
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

static void changes_to(scanner *s, const char *dir) {
    size_t n = s->from.len;
    for (size_t i = 0; *dir && i < n && s->from.len < MAX_FROM; i++) {
        const char *from = s->from.at[i];
        char *to = dir[0] == '/' || !*from ? stet_strdup(dir) : stet_file_join(from, dir);
        *stet_vec_add(&s->from) = to;
    }
}

/* To a directory of which part is unknown. */
static void changes_among(scanner *s, const char *pattern) {
    if (s->among.len < MAX_FROM)
        *stet_vec_add(&s->among) = stet_strdup(pattern);
}

static void goes_to(scanner *s, const char *dir) {
    char *to = dir[0] == '/' || !*s->here ? stet_strdup(dir) : stet_file_join(s->here, dir);
    stet_free(s->here);
    s->here = to;
    changes_to(s, dir);
}

/* The word itself, and what stands in it behind "=", between "," and ":", behind "@" or an option's letter. */
static void tell_parts(scanner *s, const char *text) {
    tell(s, text, COMMAND_WORD);
    if (text[0] == '@')
        tell(s, text + 1, COMMAND_WORD);
    if (text[0] == '-' && text[1] && text[1] != '-' && text[2])
        tell(s, text + 2, COMMAND_WORD);
    if (!strpbrk(text, "=,:"))
        return;
    const char *equals = strchr(text, '=');
    if (equals)
        tell(s, equals + 1, COMMAND_WORD);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "=,:");
        char *part = stet_strndup(p, n);
        if (n != strlen(text))
            tell(s, part, COMMAND_WORD);
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

/* A string that may be for a shell, or for anybody. */
static void tell_string(scanner *s, const char *text) {
    if (!strpbrk(text, BREAKS))
        return;
    if (s->depth < MAX_DEPTH && strpbrk(text, " \t\n;|&()<>`")) {
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
    s->strings--;
}

static void tell_patterns(scanner *s, const char *text, bool guessed) {
    if (!tell_braces(s, text, true, guessed, MAX_BRACES))
        tell_pattern(s, text, guessed);
}

static void tell_word(scanner *s, const word *w) {
    if (w->pattern) {
        tell_patterns(s, w->pattern, w->unknown);
        const char *equals = strchr(w->pattern, '=');
        if (equals)
            tell_patterns(s, equals + 1, w->unknown);
        if (w->unknown && w->pattern[0] == '-' && w->pattern[1] && w->pattern[1] != '-')
            tell_patterns(s, w->pattern + 2, true);
    }
    if (!w->unknown)
        tell_parts(s, w->text);
    if (!w->pattern)
        tell_braces(s, w->text, false, false, MAX_BRACES);
    tell_string(s, w->text);
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

static bool is_assignment(const char *text, size_t *name_len) {
    const char *p = text;
    while ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || *p == '_' || (p > text && *p >= '0' && *p <= '9'))
        p++;
    *name_len = (size_t)(p - text);
    return p > text && *p == '=';
}

static void set_variable(scanner *s, const char *name, size_t len, const char *value) {
    stet_slot *old = stet_map_get(&s->variables, name, len);
    if (old) {
        stet_free(old->p);
        old->p = stet_strdup(value);
    } else {
        stet_map_put(&s->variables, name, len, (stet_slot){.p = stet_strdup(value)});
    }
}

static void forget_variable(scanner *s, const char *name, size_t len) {
    stet_slot *old = stet_map_get(&s->variables, name, len);
    if (old) {
        stet_free(old->p);
        stet_map_remove(&s->variables, name, len);
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
            if (at[i].unknown)
                changes_among(s, at[i].pattern ? at[i].pattern : "*");
            else
                goes_to(s, t);
            return;
        }
        if (strcmp(base, "dd") == 0 && strncmp(t, "of=", 3) == 0) {
            memmove(at[i].text, t + 3, strlen(t + 3) + 1);
            at[i].role = COPIED;
        }
    }
}

static void take_argument(scanner *s, const char *program, word *at, size_t i) {
    const char *before = i ? at[i - 1].text : "";
    word *w = &at[i];
    if (w->role == READ)
        tell_word(s, w);
    if (w->role != PLAIN)
        return;
    if (is_shell(program) && gives_text(before)) {
        if (s->depth < MAX_DEPTH) {
            s->depth++;
            scan(s, w->text);
            s->depth--;
        }
        return;
    }
    if (strcmp(before, "-C") == 0 && !w->unknown)
        changes_to(s, w->text);
    if (strcmp(before, "-m") == 0)
        tell_module(s, w->text);
    static const char *const executes[] = {"-exec", "-execdir", "-ok", "-okdir"};
    if (ONE_OF(before, executes) && !w->unknown)
        tell(s, w->text, COMMAND_WORD_PROGRAM);
    tell_word(s, w);
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

static void take_command(scanner *s, words *w) {
    size_t i = 0, name_len;
    for (size_t k = 0; k < w->len; k++) /* the shell opens them first */
        if (w->at[k].role == WRITTEN)
            tell_written(s, &w->at[k], true);
    s->negated = false;
    bool another = false, begun = false; /* behind a program that starts others; behind any program or keyword */
    const char *program = "";
    for (; i < w->len; i++) {
        const word *one = &w->at[i];
        if (one->role == READ)
            tell_word(s, one);
        if (one->role != PLAIN)
            continue;
        count_blocks(s, one->text);
        if (is_assignment(one->text, &name_len)) {
            if (one->unknown || s->blocks || s->chained || s->maybe || s->strings)
                forget_variable(s, one->text, name_len);
            else
                set_variable(s, one->text, name_len, one->text + name_len + 1);
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
        if (strchr(program, '/') || one->pattern)
            tell_word(s, one);
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

/* A word that is being read. */
typedef struct reading {
    words done;
    stet_buf text, pattern;
    bool any; /* it has begun, though it may be empty */
    bool unknown, glob;
    bool delimits;   /* it ends a here-document */
    word_role role;  /* of the next one */
    stet_names ends; /* of here-documents that begin with the next line */
} reading;

static void add_byte(reading *r, char c, bool quoted) {
    if (quoted && strchr("*?[]\\", c))
        stet_buf_char(&r->pattern, '\\');
    r->glob |= !quoted && strchr("*?[", c) != NULL;
    stet_buf_char(&r->pattern, c);
    stet_buf_char(&r->text, c);
    r->any = true;
}

/* A part that only a shell could tell: any name may be there. */
static void add_unknown(reading *r) {
    stet_buf_char(&r->pattern, '*');
    r->any = r->unknown = true;
}

static void end_word(reading *r) {
    if (r->any) {
        bool glob = r->glob || (r->unknown && says_something(stet_buf_cstr(&r->pattern)));
        if (r->delimits)
            *stet_vec_add(&r->ends) = stet_strdup(stet_buf_cstr(&r->text));
        r->delimits = false;
        *stet_vec_add(&r->done) = (word){.text = stet_strdup(stet_buf_cstr(&r->text)),
                                         .pattern = glob ? stet_strdup(stet_buf_cstr(&r->pattern)) : NULL,
                                         .unknown = r->unknown,
                                         .role = r->role};
        r->role = PLAIN;
    }
    stet_buf_clear(&r->text);
    stet_buf_clear(&r->pattern);
    r->any = r->unknown = r->glob = false;
}

/* Where "$(...)", "(...)" or "`...`" ends, from behind its beginning: at what ends it, or at the end of the text. */
static const char *close_of(const char *p, char end) {
    int depth = 0;
    for (; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == end && depth == 0)
            return p;
        else if (*p == '\'' && end != '`') {
            const char *q = strchr(p + 1, '\'');
            p = q ? q : p;
        } else if (end == ')')
            depth += (*p == '(') - (*p == ')');
    }
    return p;
}

/* A command in a word: what it gives is not known, what it names is. Where it ends. */
static const char *substitution(scanner *s, const char *begin, char end) {
    const char *close = close_of(begin, end);
    char *text = stet_strndup(begin, (size_t)(close - begin)), *here = stet_strdup(s->here);
    bool chained = s->chained, maybe = s->maybe;
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        scan(s, text);
        s->depth--;
    }
    s->chained = chained;
    s->maybe = maybe;
    stet_free(s->here);
    s->here = here;
    stet_free(text);
    return *close ? close + 1 : close;
}

/* What begins with "$". Where it ends. */
static const char *dollar(scanner *s, const char *p, reading *r, bool quoted) {
    if (p[1] == '(' && p[2] == '(') { /* a number */
        const char *close = strstr(p, "))");
        add_unknown(r);
        return close ? close + 2 : p + strlen(p);
    }
    if (p[1] == '(') {
        add_unknown(r);
        return substitution(s, p + 2, ')');
    }
    const char *name = p + 1 + (p[1] == '{'), *end = name;
    while ((*end >= 'A' && *end <= 'Z') || (*end >= 'a' && *end <= 'z') || *end == '_' || (*end >= '0' && *end <= '9'))
        end++;
    const stet_slot *slot = stet_map_get(&s->variables, name, (size_t)(end - name));
    if (slot && (p[1] != '{' || *end == '}')) {
        for (const char *v = slot->p; *v; v++)
            add_byte(r, *v, quoted);
        r->any = true;
        return end + (p[1] == '{');
    }
    if (end - name == 3 && memcmp(name, "PWD", 3) == 0 && (p[1] != '{' || *end == '}')) { /* where it is */
        add_byte(r, '.', quoted);
        return end + (p[1] == '{');
    }
    if (p[1] == '{') { /* "${X:-file}": what stands in it may be a file */
        const char *close = close_of(p + 2, '}');
        char *text = stet_strndup(p + 2, (size_t)(close - p) - 2);
        tell_broken(s, text);
        const char *dash = strpbrk(text, "-=+");
        if (dash)
            tell_parts(s, dash + 1);
        stet_free(text);
        add_unknown(r);
        return *close ? close + 1 : close;
    }
    if (end > name || (*name && strchr("@*#?$!-", *name))) {
        add_unknown(r);
        return end > name ? end : name + 1;
    }
    add_byte(r, '$', true);
    return p + 1;
}

/* In double quotes, from behind the first. Where it ends. */
static const char *quoted(scanner *s, const char *p, reading *r) {
    r->any = true;
    while (*p && *p != '"') {
        if (*p == '$')
            p = dollar(s, p, r, true);
        else if (*p == '`') {
            p = substitution(s, p + 1, '`');
            add_unknown(r);
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
    bool number = r->any && stet_buf_cstr(&r->text)[strspn(stet_buf_cstr(&r->text), "0123456789")] == 0;
    if (number) { /* "2>": no word */
        r->any = false;
        stet_buf_clear(&r->text);
        stet_buf_clear(&r->pattern);
    }
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
        for (size_t i = keep; i < w->len; i++) {
            stet_free(w->at[i].text);
            stet_free(w->at[i].pattern);
        }
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
    } else if (*p == ')' && top && !top->here) {
        top->choices = false;
    } else if (*p == ')' && top) {
        stet_free(s->here);
        s->here = top->here;
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

static void scan(scanner *s, const char *p) {
    reading r = {.text = STET_BUF(0), .pattern = STET_BUF(0)};
    open_places places = {0};
    while (*p) {
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
        } else if (*p == '&' && p[1] == '>') {
            end_word(&r);
            p = redirection(p + 1, &r);
        } else if (strchr("\n;&|()", *p)) {
            bool line = *p == '\n';
            p = separator(s, &r, p, &places);
            if (line && r.ends.len > 0)
                p = here_documents(s, &r, p);
        } else if (*p == '<' || *p == '>') {
            if (p[1] == '(') { /* "<(command)" */
                add_unknown(&r);
                p = substitution(s, p + 2, ')');
            } else
                p = redirection(p, &r);
        } else if (*p == '\'') {
            const char *end = strchr(p + 1, '\'');
            r.any = true;
            for (p++; *p && p != end; p++)
                add_byte(&r, *p, true);
            p += *p != 0;
        } else if (*p == '"') {
            p = quoted(s, p + 1, &r);
        } else if (*p == '`') {
            add_unknown(&r);
            p = substitution(s, p + 1, '`');
        } else if (*p == '\\' && p[1]) {
            if (p[1] != '\n')
                add_byte(&r, p[1], true);
            p += 2;
        } else if (*p == '$') {
            p = dollar(s, p, &r, false);
        } else {
            add_byte(&r, *p++, false);
        }
    }
    end_word(&r);
    take_command_or_choices(s, &r, &places);
    for (size_t i = 0; i < places.len; i++)
        stet_free(places.at[i].here);
    stet_vec_release(&places);
    stet_vec_release(&r.done);
    stet_buf_release(&r.text);
    stet_buf_release(&r.pattern);
    stet_names_release(&r.ends);
}

void command_words_of_shell(const char *text, command_word_fn each, void *ctx) {
    scanner s;
    scanner_begin(&s, each, ctx);
    scan(&s, text);
    scanner_end(&s);
}

void command_words_of_list(char *const *argv, size_t len, command_word_fn each, void *ctx) {
    scanner s;
    words w = {0};
    scanner_begin(&s, each, ctx);
    for (size_t i = 0; i < len; i++)
        *stet_vec_add(&w) = (word){.text = stet_strdup(argv[i])};
    take_command(&s, &w);
    stet_vec_release(&w);
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
