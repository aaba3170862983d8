/* command_programs.c - what programs do with their arguments: files that they write, texts that they run. */

#include "module/command_scan.h"
#include "os/file.h"

bool words_is_keyword(const char *text) {
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
            words_changes_among(s, f->glob ? f->pattern : f->text);
        else
            words_changes_to(s, f->text);
    }
    if (w->unknown || w->pattern)
        words_changes_among(s, w->pattern ? w->pattern : w->text);
    else
        words_goes_to(s, w->text);
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
            words_tell_word(s, &at[i]); /* "cd d && ls" reads it */
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
            words_changes_to(s, value);
        else if (value && *value)
            words_changes_among(s, value);
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
        words_tell_module(s, option[i + 1] ? option + i + 1 : next);
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
            words_tell_unlikely(s, name);
            if (i == 0 && (p == text || strspn(text, "0123456789,$ /") >= (size_t)(p - text)))
                words_tell(s, name, COMMAND_WORD);
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
    s->target = w->role == READ;
    if (w->role == READ)
        words_tell_word(s, w);
    s->target = false;
    if (w->role != PLAIN) {
        s->exact = false;
        return;
    }
    if (words_is_assignment(w->text, &len, &value))
        words_assign(s, w, len, false);
    else if (ONE_OF(program, namers) && (len = words_name_length(w->text)) > 0 && !w->text[len])
        words_join_unknown(s, w->text, len);
    if (is_shell(program) && gives_text(before)) {
        s->exact = false;
        if (s->depth < MAX_DEPTH) {
            s->depth++;
            words_scan(s, w->text);
            s->blocks++;
            for (size_t k = 0; k < w->others.len; k++)
                words_scan(s, w->others.at[k].text);
            s->blocks--;
            s->depth--;
        }
        return;
    }
    take_module(s, before, w->text);
    take_module(s, w->text, "");
    static const char *const executes[] = {"-exec", "-execdir", "-ok", "-okdir"};
    if (ONE_OF(before, executes) && !w->unknown)
        words_tell(s, w->text, COMMAND_WORD_PROGRAM);
    size_t n = strlen(program);
    if (n >= 3 && strcmp(program + n - 3, "sed") == 0)
        tell_of_sed(s, w->text);
    words_tell_word(s, w);
    s->exact = false;
}

/* What starts or ends something that may be left out, or be done in any order. */
static void count_blocks(scanner *s, const char *text) {
    static const char *const opens[] = {"if", "for", "while", "until", "case", "{"}, *const closes[] = {"fi", "done",
                                                                                                        "esac", "}"};
    s->blocks += ONE_OF(text, opens);
    s->blocks -= ONE_OF(text, closes) && s->blocks > 0;
}

/* The words of "eval" are a text, and so is the first one of "trap". */
static void take_eval(scanner *s, const word *at, size_t n) {
    stet_buf text = STET_BUF(0);
    for (size_t i = 0; i < n; i++)
        if (at[i].role == PLAIN)
            stet_buf_printf(&text, "%s ", at[i].text);
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        s->blocks++; /* what it writes depends on what it becomes */
        words_scan(s, stet_buf_cstr(&text));
        s->blocks--;
        s->depth--;
    }
    stet_buf_release(&text);
}

/* The words of an array, one or more lines of them. */
static void take_elements(scanner *s, words *w) {
    const char *name = s->array;
    for (size_t i = 0; i < w->len; i++) {
        words_tell_word(s, &w->at[i]);
        words_join_word(s, name, strlen(name), &w->at[i]);
    }
    words_clear(w);
}

/* "for NAME in WORDS". */
static void take_loop(scanner *s, const words *w) {
    size_t i = 0;
    while (i < w->len && strcmp(w->at[i].text, "for") != 0 && strcmp(w->at[i].text, "select") != 0)
        i++;
    if (i + 1 >= w->len || words_name_length(w->at[i + 1].text) != strlen(w->at[i + 1].text) || !*w->at[i + 1].text)
        return;
    const char *name = w->at[i + 1].text;
    bool in = i + 2 < w->len && strcmp(w->at[i + 2].text, "in") == 0;
    for (size_t k = i + 3; in && k < w->len; k++)
        if (w->at[k].role == PLAIN)
            words_join_word(s, name, strlen(name), &w->at[k]);
    if (!in)
        words_join_unknown(s, name, strlen(name));
    if (words_variable_of(s, name, strlen(name)))
        words_note_set(s, name, strlen(name), false);
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

/* "gen/x" in `grep gen/x`: what such a program searches or replaces is likely no file, though it looks like one. It is the
 * first operand; behind an option it may be, and what follows it then too. A pattern, or what only a shell could tell, is
 * not meant. Bare words may be texts for any program (words_tell). */
static bool is_expression(const char *program, const words *w, size_t first, size_t at) {
    static const char *const filters[] = {"grep", "egrep", "fgrep", "zgrep", "rg", "sed", "awk", "gawk", "mawk", "jq"};
    const word *one = &w->at[at];
    bool set = strcmp(program, "tr") == 0;
    if ((!set && !ONE_OF(program, filters)) || one->role != PLAIN || one->pattern || one->unknown ||
        one->others.len > 0 || strpbrk(one->text, "*?[{%\\"))
        return false;
    for (size_t i = first; i < at && !set; i++)
        if (w->at[i].text[0] != '-' && w->at[i].role == PLAIN && (i == first || w->at[i - 1].text[0] != '-'))
            return false;
    return true;
}

void words_take_command(scanner *s, words *w) {
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
        alone &= w->at[k].role != PLAIN || words_is_assignment(w->at[k].text, &name_len, &value);
        starts |= strcmp(stet_file_basename(w->at[k].text), "xargs") == 0 ||
                  strcmp(stet_file_basename(w->at[k].text), "parallel") == 0;
    }
    if (starts)
        take_token(s, w);
    take_directories(s, w->at, w->len);
    for (size_t k = 0; k < w->len; k++) /* the shell opens them first */
        if (w->at[k].role == WRITTEN)
            words_tell_written(s, &w->at[k], true);
    s->negated = false;
    bool another = false, begun = false; /* behind a program that starts others; behind any program or keyword */
    const char *program = "";
    for (; i < w->len; i++) {
        const word *one = &w->at[i];
        s->exact = s->target = one->role == READ;
        if (one->role == READ)
            words_tell_word(s, one);
        s->exact = s->target = false;
        if (one->role != PLAIN)
            continue;
        count_blocks(s, one->text);
        if (words_is_assignment(one->text, &name_len, &value)) {
            words_assign(s, one, name_len, alone);
            words_tell_word(s, one);
            continue;
        }
        if (begun && (one->text[0] == '-' || (another && strchr("0123456789", one->text[0])))) {
            words_tell_word(s, one);
            continue;
        }
        begun = true;
        program = one->text;
        if (!one->unknown)
            words_tell(s, program, COMMAND_WORD_PROGRAM);
        for (size_t k = 0; k < one->others.len; k++)
            if (!command_is_unknown(one->others.at[k].text))
                words_tell(s, one->others.at[k].text, COMMAND_WORD_PROGRAM);
        if (strchr(program, '/') || one->pattern || one->unknown || one->others.len > 0 || another || s->strings)
            words_tell_word(s, one);
        s->dynamic |= strcmp(program, "eval") == 0 || strcmp(program, ".") == 0 || strcmp(program, "source") == 0;
        another |= starts_another(program);
        s->negated |= strcmp(program, "!") == 0;
        if (!words_is_keyword(program) && !starts_another(program)) {
            i++;
            break;
        }
    }
    for (size_t k = i; another && k < w->len && k < i + 2; k++)
        if (w->at[k].role == PLAIN && !w->at[k].unknown)
            words_tell(s, w->at[k].text, COMMAND_WORD_PROGRAM);
    size_t rest = i < w->len ? i : w->len;
    mark(s, program, w->at + rest, w->len - rest);
    static const char *const printers[] = {"echo", "printf", ":", "true", "false", "exit"};
    for (size_t k = rest; k < w->len; k++) {
        s->prints = (ONE_OF(program, printers) && w->at[k].role == PLAIN) || is_expression(program, w, rest, k);
        s->behind_option = k > rest && w->at[k - 1].role == PLAIN && w->at[k - 1].text[0] == '-';
        take_argument(s, program, w->at + rest, k - rest);
        s->prints = s->behind_option = false;
    }
    if (strcmp(program, "eval") == 0)
        take_eval(s, w->at + rest, w->len - rest);
    if (strcmp(program, "trap") == 0) { /* a text, and signals */
        size_t text = rest < w->len && strcmp(w->at[rest].text, "--") == 0 ? rest + 1 : rest;
        if (text < w->len)
            take_eval(s, w->at + text, 1);
    }
    for (size_t k = rest; k < w->len; k++)
        if (w->at[k].role == WRITTEN || w->at[k].role == COPIED)
            words_tell_written(s, &w->at[k], w->at[k].role == WRITTEN);
    for (size_t k = 0; k < w->len; k++)
        if (w->at[k].role == WRITTEN || w->at[k].role == COPIED || w->at[k].role == APPENDED)
            words_tell_may_write(s, &w->at[k]);
    words_clear(w);
}
