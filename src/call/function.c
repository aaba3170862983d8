/* function.c - functions of stet-exec-local: their options, and the files of the project that they name. */

#include "call/function.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/vec.h"
#include "call/adapter.h"

static const char *const passed[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"};

static void add_word(stet_words *w, char *word) {
    if (w->len > 0)
        w->len--; /* the NULL */
    *stet_vec_add(w) = word;
    *stet_vec_add(w) = NULL;
}

static void release_words(stet_words *w) {
    for (size_t i = 0; i < w->len; i++)
        stet_free(w->at[i]);
    stet_vec_release(w);
}

void stet_function_release(stet_function *f) {
    release_words(&f->argv);
    release_words(&f->env);
    release_words(&f->outputs);
    release_words(&f->files);
    stet_free(f->command);
    stet_free(f->cwd);
    *f = (stet_function){0};
}

/* The path from the top for `path` as written in the directory `cwd`, without empty and "." parts, ".." resolved as
 * text. NULL: it is absolute, the top itself, or outside. Caller frees. */
static char *from_top(const char *cwd, const char *path) {
    if (!*path || *path == '/')
        return NULL;
    stet_buf b = STET_BUF(0);
    bool inside = true;
    char *whole = stet_asprintf("%s/%s", cwd, path);
    for (const char *p = whole; *p && inside;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            inside = b.len > 0;
            while (b.len > 0 && b.data[b.len - 1] != '/')
                b.len--;
            b.len -= b.len > 0; /* the slash */
        } else if (n > 0 && !(n == 1 && *p == '.')) {
            if (b.len > 0)
                stet_buf_char(&b, '/');
            stet_buf_add(&b, p, n);
        }
        p += n + (p[n] == '/');
    }
    stet_free(whole);
    char *out = inside && b.len > 0 ? stet_strdup(stet_buf_cstr(&b)) : NULL;
    stet_buf_release(&b);
    return out;
}

static stet_status wrong(stet_error *err, const char *name, const char *value, const char *what) {
    stet_fail(err, STET_INVALID, "%s=%.200s: %s", name, value, what);
    stet_hint(err, "docs/calls.md lists the options of stet-exec-local");
    return STET_INVALID;
}

static stet_status take_option(stet_function *f, const char *name, const char *value, stet_value v, stet_error *err) {
    if (strcmp(name, "arg") == 0)
        add_word(&f->argv, stet_strdup(value));
    else if (strcmp(name, "command") == 0) {
        if (f->command)
            return wrong(err, name, value, "it stands twice");
        f->command = stet_strdup(value);
    } else if (strcmp(name, "cwd") == 0) {
        char *path = strcmp(value, ".") == 0 ? stet_strdup("") : from_top("", value);
        if (!path)
            return wrong(err, name, value, "a directory below the project");
        stet_free(f->cwd);
        f->cwd = path;
    } else if (strcmp(name, "file") == 0 || strcmp(name, "files") == 0) {
        char *path = from_top("", value);
        if (!path)
            return wrong(err, name, value,
                         name[4] ? "a path below the project" : "a path below the directory that it runs in");
        add_word(name[4] ? &f->files : &f->outputs, path);
    } else if (strcmp(name, "env") == 0) {
        const char *set = strchr(value, '='), *now = set ? NULL : getenv(value);
        if (!*value || set == value)
            return wrong(err, name, value, "NAME or NAME=VALUE");
        if (set)
            add_word(&f->env, stet_strdup(value));
        else if (now)
            add_word(&f->env, stet_asprintf("%s=%s", value, now));
    } else if (strcmp(name, "timeout") == 0 || strcmp(name, "max-cpu") == 0) {
        int64_t ms = stet_units_ms(v);
        if (ms < 0)
            return wrong(err, name, value, "seconds, or 90s, 10m, 2h");
        if (*name == 't')
            f->timeout_ms = ms;
        else
            f->max_cpu_s = (uint64_t)(ms + 999) / 1000;
    } else if (strcmp(name, "max-memory") == 0 || strcmp(name, "max-file-size") == 0) {
        uint64_t bytes = stet_units_bytes(v);
        if (bytes == 0)
            return wrong(err, name, value, "bytes, or 512M, 2G");
        *(strcmp(name, "max-memory") == 0 ? &f->max_memory : &f->max_file_size) = bytes;
    } else if (strcmp(name, "in-place") == 0 && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
        f->in_place = *value == 't';
    else if (strcmp(name, "retry-on") == 0) {
        char *end;
        long code = strtol(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || code < 1 || code > 255)
            return wrong(err, name, value, "an exit status from 1 to 255");
        f->retry_on[code / 64] |= (uint64_t)1 << (code % 64);
    } else if (strcmp(name, "stdout") == 0 && (strcmp(value, "json") == 0 || strcmp(value, "text") == 0))
        f->text = *value == 't';
    else if (strcmp(name, "stdin") == 0 && (strcmp(value, "json") == 0 || strcmp(value, "null") == 0))
        f->no_input = *value == 'n';
    else if (strcmp(name, "v") != 0)
        return wrong(err, name, value, "there is no such option");
    return STET_OK;
}

stet_status stet_function_parse(const char *uri, stet_function *out, stet_error *err) {
    stet_adapter_uri u;
    stet_function f = {0};
    stet_status status = stet_adapter_uri_parse(uri, &u, err);
    if (status != STET_OK)
        return status;
    f.cwd = stet_strdup("");
    f.retry_on[STET_ADAPTER_TRANSIENT / 64] |= (uint64_t)1 << (STET_ADAPTER_TRANSIENT % 64);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        if (getenv(passed[i]))
            add_word(&f.env, stet_asprintf("%s=%s", passed[i], getenv(passed[i])));
    if (f.env.len == 0)
        add_word(&f.env, stet_strdup("STET=1")); /* an environment all the same, and not that of this process */
    add_word(&f.argv, NULL);                     /* the place of the program, which is set below */
    for (size_t i = 0; i < stet_value_count(u.query) && status == STET_OK; i++) {
        stet_value pair = stet_value_at(u.query, i), name = stet_value_at(pair, 0), value = stet_value_at(pair, 1);
        status = take_option(&f, stet_value_as_string(&name, NULL), stet_value_as_string(&value, NULL), value, err);
    }
    if (status == STET_OK && (f.command != NULL) == (*u.path != 0))
        status = stet_fail(err, STET_INVALID, "%.200s: a function has either a program or command=", uri);
    if (status == STET_OK && f.command && f.argv.len > 2)
        status = stet_fail(err, STET_INVALID, "%.200s: command= takes no arg=", uri);
    if (status == STET_OK && f.command) {
        f.argv.at[0] = stet_strdup("sh");
        add_word(&f.argv, stet_strdup("-c"));
        add_word(&f.argv, stet_strdup(f.command));
    } else if (status == STET_OK && (*u.path == '/' || !strchr(u.path, '/')))
        f.argv.at[0] = stet_strdup(u.path);
    else if (status == STET_OK) {
        char *path = from_top("", u.path);
        if (path)
            f.argv.at[0] = stet_asprintf("./%s", path); /* not a name for $PATH */
        else
            status = stet_fail(err, STET_INVALID, "%.200s: its program is not below the project", uri);
        stet_free(path);
    }
    stet_adapter_uri_release(&u);
    if (status == STET_OK)
        *out = f;
    else
        stet_function_release(&f);
    return status;
}

/* Files that were found. */
typedef struct finder {
    const stet_function *f;
    const char *root;
    stet_names *out;
    stet_error *err;
    stet_status status; /* the first failure */
} finder;

/* Everything in .stet is stet's. */
static bool is_own(const char *path) {
    return strncmp(path, ".stet", 5) == 0 && (path[5] == '/' || !path[5]);
}

static bool is_output(const stet_function *f, const char *path) {
    bool same = false;
    for (size_t i = 0; i + 1 < f->outputs.len && !same; i++) {
        char *output = from_top(f->cwd, f->outputs.at[i]);
        same = output && strcmp(output, path) == 0;
        stet_free(output);
    }
    return same;
}

/* Adds a file, or with `deep` everything in a directory; `path` is from the top. False: it is neither. */
static bool add_path(finder *n, const char *path, bool deep) {
    char *full = stet_file_join(n->root, path);
    struct stat st;
    bool found = !is_own(path) && !is_output(n->f, path) && stet_sys_stat(full, &st) == 0 &&
                 (S_ISREG(st.st_mode) || (deep && S_ISDIR(st.st_mode)));
    if (found && S_ISREG(st.st_mode)) {
        if (n->out->len >= 2 * STET_FUNCTION_CODE_MAX)
            n->status = stet_fail(n->err, STET_LIMIT, "a call names more than %d files", STET_FUNCTION_CODE_MAX);
        else
            *stet_vec_add(n->out) = stet_strdup(path);
    } else if (found) {
        stet_names names = {0};
        n->status = stet_file_list(full, &names, n->err);
        for (size_t i = 0; i < names.len && n->status == STET_OK; i++) {
            char *child = stet_file_join(path, names.at[i]);
            struct stat own;
            char *where = stet_file_join(n->root, child);
            /* A link to a directory may lead back: only links to files are followed. */
            bool link = stet_sys_lstat(where, &own) == 0 && S_ISLNK(own.st_mode);
            add_path(n, child, !link);
            stet_free(where);
            stet_free(child);
        }
        stet_names_release(&names);
    }
    stet_free(full);
    return found;
}

static void escape(stet_buf *b, const char *text) {
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            stet_buf_char(b, '\\');
        stet_buf_char(b, *text);
    }
}

/* The same for everything that a pattern matches. */
static bool add_pattern(finder *n, const char *path, bool deep) {
    stet_buf b = STET_BUF(0);
    glob_t found = {0};
    bool any = false;
    escape(&b, n->root);
    stet_buf_char(&b, '/');
    stet_buf_str(&b, path);
    if (glob(stet_buf_cstr(&b), GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && n->status == STET_OK; i++)
            any |= add_path(n, found.gl_pathv[i] + strlen(n->root) + 1, deep);
    globfree(&found);
    stet_buf_release(&b);
    return any;
}

/* The next word of a line for the shell, without its quotes; false: there is none. Not the shell's own rules: a word that
 * they would read otherwise names no file, or one more than needed. *target: it stands behind a >. */
static bool next_word(const char **at, stet_buf *word, bool *target) {
    const char *p = *at;
    bool any = false;
    stet_buf_clear(word);
    *target = false;
    for (; *p && strchr(" \t\r\n;|&()<>`", *p); p++)
        if (!strchr(" \t\r\n", *p))
            *target = *p == '>' || (*target && *p == '|');
    for (char quote = 0; *p && (quote || !strchr(" \t\r\n;|&()<>`", *p)); p++) {
        any = true;
        if (quote ? *p == quote : *p == '\'' || *p == '"')
            quote = quote ? 0 : *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            stet_buf_char(word, *++p);
        else
            stet_buf_char(word, *p);
    }
    *at = p;
    return any;
}

/* A word of a command line: a path, or OPTION=PATH. */
static void visit_word(const stet_function *f, const char *word, bool patterns, stet_function_visit *visit, void *ctx) {
    const char *equal = strchr(word, '=');
    for (const char *p = word; p; p = p == word && equal ? equal + 1 : NULL) {
        char *path = from_top(f->cwd, p);
        if (path && !is_own(path) && !is_output(f, path))
            visit(ctx, path, patterns && strpbrk(path, "*?["), false);
        stet_free(path);
    }
}

void stet_function_named(const stet_function *f, stet_function_visit *visit, void *ctx) {
    stet_buf word = STET_BUF(0);
    bool target;
    if (f->command)
        for (const char *at = f->command; next_word(&at, &word, &target);)
            if (!target)
                visit_word(f, stet_buf_cstr(&word), true, visit, ctx);
    stet_buf_release(&word);
    for (size_t i = 0; !f->command && i + 1 < f->argv.len; i++)
        if (i > 0)
            visit_word(f, f->argv.at[i], false, visit, ctx);
        else if (strncmp(f->argv.at[0], "./", 2) == 0)
            visit(ctx, f->argv.at[0] + 2, false, false);
    for (size_t i = 0; i + 1 < f->files.len; i++)
        visit(ctx, f->files.at[i], strpbrk(f->files.at[i], "*?[") != NULL, true);
}

static void add_named(void *ctx, const char *path, bool pattern, bool declared) {
    finder *n = ctx;
    if (n->status != STET_OK)
        return;
    bool found = pattern ? add_pattern(n, path, declared) : add_path(n, path, declared);
    if (!found && declared && n->status == STET_OK) {
        n->status = stet_fail(n->err, STET_NOT_FOUND, "files=%.300s: the project has no such file", path);
        stet_hint(n->err, "a path, a directory or a pattern, relative to the project");
    }
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

stet_status stet_function_code(const stet_function *f, const char *root, stet_names *out, stet_error *err) {
    finder n = {.f = f, .root = root, .out = out, .err = err};
    size_t from = out->len, kept = from;
    stet_function_named(f, add_named, &n);
    if (out->len > from)
        qsort(out->at + from, out->len - from, sizeof *out->at, compare);
    for (size_t i = from; i < out->len; i++)
        if (kept > from && strcmp(out->at[kept - 1], out->at[i]) == 0)
            stet_free(out->at[i]);
        else
            out->at[kept++] = out->at[i];
    out->len = kept;
    if (n.status == STET_OK && kept - from > STET_FUNCTION_CODE_MAX)
        n.status = stet_fail(err, STET_LIMIT, "a call names more than %d files", STET_FUNCTION_CODE_MAX);
    return n.status;
}

char *stet_function_unnamed(const stet_function *f, const char *root, const stet_names *code, const char *text) {
    static const char ends[] = " \t\r\n:;,'\"`()[]<>";
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ends);
        char *word = stet_strndup(p, n);
        const char *inside = strstr(word, ".work/"); /* the directory of the job, in full */
        char *path = from_top(inside ? "" : f->cwd, inside ? inside + 6 : word);
        char *full = path ? stet_file_join(root, path) : NULL;
        bool there = path && !is_own(path) && !is_output(f, path) && stet_file_exists(full);
        for (size_t i = 0; i < code->len && there; i++)
            there = strncmp(code->at[i], path, strlen(path)) != 0;
        stet_free(word);
        stet_free(full);
        if (there)
            return path;
        stet_free(path);
        p += n;
        p += strspn(p, ends);
    }
    return NULL;
}
