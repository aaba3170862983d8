/* function_files.c - the files of the project that a function names, and its words as they are in the job's directory. */

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "call/function_words.h"
#include "process/local.h"

/* Everything in .stet is stet's. */
static bool is_own(const char *path) {
    return strncmp(path, ".stet", 5) == 0 && (path[5] == '/' || !path[5]);
}

static bool is_output(const stet_function *f, const char *path) {
    bool same = false;
    for (size_t i = 0; i + 1 < f->outputs.len && !same; i++) {
        char *output = stet_function_path(f->cwd, f->outputs.at[i]);
        same = output && strcmp(output, path) == 0;
        stet_free(output);
    }
    return same;
}

static const char *variable_of(const stet_function *f, const char *name, size_t len) {
    for (size_t i = 0; i + 1 < f->env.len; i++)
        if (strncmp(f->env.at[i], name, len) == 0 && f->env.at[i][len] == '=')
            return f->env.at[i] + len + 1;
    return NULL;
}

/* The path from the top of an absolute path, "" for the top itself; NULL: it is outside. Caller frees. */
static char *inside(const char *root, const char *path) {
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    char *plain = stet_function_path("", path + strspn(path, "/")), *real = NULL, *out = NULL;
    char *again = stet_asprintf("/%s", plain ? plain : "");
    if (strncmp(again, root, len) != 0 || (again[len] && again[len] != '/')) {
        if (stet_file_realpath(path, &real, NULL) == STET_OK) { /* another way to the same place */
            stet_free(again);
            again = real;
        }
    }
    if (strncmp(again, root, len) == 0 && (!again[len] || again[len] == '/'))
        out = stet_strdup(again + len + (again[len] == '/'));
    stet_free(plain);
    stet_free(again);
    return out;
}

/* A word as an absolute path, "~" included; NULL: it is none. Caller frees. */
static char *absolute(const stet_function *f, const char *word) {
    const char *home = *word == '~' && (word[1] == '/' || !word[1]) ? variable_of(f, "HOME", 4) : NULL;
    if (home && *home == '/')
        return stet_asprintf("%s%s", home, word + 1);
    return *word == '/' ? stet_strdup(word) : NULL;
}

static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *add_variable(const stet_function *f, const char *p, stet_buf *out) {
    const char *name = p + 1 + (p[1] == '{');
    size_t n = 0;
    while (in_name(name[n]))
        n++;
    const char *value = n > 0 && (p[1] != '{' || name[n] == '}') ? variable_of(f, name, n) : NULL;
    if (!value)
        return NULL;
    stet_buf_str(out, value);
    return name + n - (p[1] != '{');
}

bool stet_function_next_word(const stet_function *f, const char **at, shell_word *w) {
    const char *p = *at;
    char before = 0;
    stet_buf_clear(&w->text);
    w->target = false;
    for (; *p && strchr(" \t\r\n;|&()<>`", *p); before = *p++)
        if (!strchr(" \t\r\n", *p)) /* <> opens a file to read it, too */
            w->target = (*p == '>' && before != '<') || (w->target && *p == '|');
    w->begin = p;
    for (char quote = 0; *p && (quote || !strchr(" \t\r\n;|&()<>`", *p)); p++) {
        const char *after;
        if (quote ? *p == quote : *p == '\'' || *p == '"')
            quote = quote ? 0 : *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            stet_buf_char(&w->text, *++p);
        else if (*p == '$' && quote != '\'' && (after = add_variable(f, p, &w->text)) != NULL)
            p = after;
        else
            stet_buf_char(&w->text, *p);
    }
    *at = w->end = p;
    return p > w->begin;
}

/* A walk over everything that a function names. */
typedef struct naming {
    const stet_function *f;
    const char *root;
    stet_function_visit *visit;
    void *ctx;
} naming;

/* Every mention of the project's directory in a text. What follows it is read where it is. */
static void visit_mentions(const naming *n, const char *text) {
    size_t len = strlen(n->root);
    for (const char *p = text; (p = strstr(p, n->root)) != NULL; p += len) {
        const char *end = p + len;
        bool begins = p == text || !(in_name(p[-1]) || strchr(".-", p[-1]));
        if (!begins || in_name(*end) || (*end && strchr(".-", *end)))
            continue;
        size_t more = strcspn(end, " \t\r\n'\"`;|&()<>,:=*?[]{}$\\");
        char *whole = stet_strndup(p, len + more);
        char *rest = inside(n->root, whole);
        n->visit(n->ctx, rest ? rest : "", STET_FUNCTION_IN_PLACE, whole);
        stet_free(rest);
        stet_free(whole);
    }
}

/* A word: a path, or OPTION=PATH. */
static void visit_word(const naming *n, const char *word, bool shell) {
    const stet_function *f = n->f;
    const char *equal = strchr(word, '=');
    bool known = false;
    for (const char *p = word; p; p = p == word && equal ? equal + 1 : NULL) {
        char *full = absolute(f, p), *path = full ? inside(n->root, full) : stet_function_path(f->cwd, p);
        bool pattern = shell && path && strpbrk(path, "*?[");
        char *where = full && path ? stet_file_join(n->root, path) : NULL;
        struct stat st;
        bool left_out = path && (is_own(path) || is_output(f, path));
        if (!path || (left_out && !full)) {
            /* none of the project's */
        } else if (!full)
            n->visit(n->ctx, path, pattern ? STET_FUNCTION_PATTERN : STET_FUNCTION_WORD, NULL);
        else if (!left_out && (pattern || (*path && stet_sys_stat(where, &st) == 0 && S_ISREG(st.st_mode) &&
                                           (shell || *p == '/')))) {
            n->visit(n->ctx, path, pattern ? STET_FUNCTION_PATTERN : STET_FUNCTION_WORD, full);
            known = true;
        } else {
            n->visit(n->ctx, path, STET_FUNCTION_IN_PLACE, full);
            known = true;
        }
        stet_free(where);
        stet_free(path);
        stet_free(full);
    }
    if (!known)
        visit_mentions(n, word);
}

/* The next directory of PATH; false: there are no more. */
static bool next_entry(const char **at, char **out) {
    if (!*at)
        return false;
    size_t len = strcspn(*at, ":");
    *out = stet_strndup(*at, len);
    *at = (*at)[len] ? *at + len + 1 : NULL;
    return true;
}

/* A directory of PATH as a path from the top; NULL: it is not one whose programs belong to the project. Those of a
 * virtual environment of Python are installed software, wherever it lies. */
static char *own_entry(const char *root, const char *entry) {
    char *path = *entry == '/' ? inside(root, entry) : NULL, *cfg = stet_asprintf("%s/../pyvenv.cfg", entry);
    if (path && (stet_file_exists(cfg) || is_own(path))) {
        stet_free(path);
        path = NULL;
    }
    stet_free(cfg);
    return path;
}

/* A bare name that PATH may find in the project. */
static void visit_program(const naming *n, const char *name) {
    const char *at = variable_of(n->f, "PATH", 4);
    char *entry;
    if (!*name || strchr(name, '/'))
        return;
    while (next_entry(&at, &entry)) {
        char *dir = own_entry(n->root, entry), *path = dir ? stet_function_path(dir, name) : NULL;
        if (path)
            n->visit(n->ctx, path, STET_FUNCTION_WORD, NULL);
        stet_free(path);
        stet_free(dir);
        stet_free(entry);
    }
}

static bool is_always_passed(const stet_function *f, const char *entry) {
    size_t len = strcspn(entry, "=");
    for (size_t i = 0; i + 1 < f->set.len; i++)
        if (strncmp(f->set.at[i], entry, len + 1) == 0)
            return false;
    for (size_t i = 0; i + 1 < f->passed.len; i++)
        if (strlen(f->passed.at[i]) == len && strncmp(f->passed.at[i], entry, len) == 0)
            return false;
    return true;
}

void stet_function_named(const stet_function *f, const char *root, stet_function_visit *visit, void *ctx) {
    naming n = {f, root, visit, ctx};
    shell_word w = {.text = STET_BUF(0)};
    if (f->command)
        for (const char *at = f->command; stet_function_next_word(f, &at, &w);)
            if (!w.target) {
                visit_word(&n, stet_buf_cstr(&w.text), true);
                visit_program(&n, stet_buf_cstr(&w.text));
            }
    stet_buf_release(&w.text);
    for (size_t i = 0; !f->command && i + 1 < f->argv.len; i++)
        if (i > 0 || f->argv.at[0][0] == '/')
            visit_word(&n, f->argv.at[i], false);
        else if (strncmp(f->argv.at[0], "./", 2) == 0)
            visit(ctx, f->argv.at[0] + 2, STET_FUNCTION_WORD, NULL);
        else
            visit_program(&n, f->argv.at[0]);
    for (size_t i = 0; i + 1 < f->env.len; i++)
        if (!is_always_passed(f, f->env.at[i]) && strncmp(f->env.at[i], "PATH=", 5) != 0)
            visit_word(&n, f->env.at[i], false);
    for (size_t i = 0; i + 1 < f->files.len; i++)
        visit(ctx, f->files.at[i], strpbrk(f->files.at[i], "*?[") ? STET_FUNCTION_FILES_PATTERN : STET_FUNCTION_FILES,
              NULL);
}

/* Files that were found. */
typedef struct finder {
    const stet_function *f;
    const char *root;
    stet_function_found *out;
    STET_VEC(struct stat) above; /* the directories that the walk is in */
    stet_error *err;
    stet_status status; /* the first failure */
} finder;

static bool is_above(const finder *n, const struct stat *st) {
    for (size_t i = 0; i < n->above.len; i++)
        if (n->above.at[i].st_dev == st->st_dev && n->above.at[i].st_ino == st->st_ino)
            return true;
    return false;
}

static void add_name(finder *n, stet_names *to, const char *path) {
    if (n->out->code.len + n->out->dirs.len >= 2 * STET_FUNCTION_CODE_MAX)
        n->status = stet_fail(n->err, STET_LIMIT, "a call names more than %d files", STET_FUNCTION_CODE_MAX);
    else
        *stet_vec_add(to) = stet_strdup(path);
}

/* The directories around a path, and stet's own: a link that leads to one of them goes round in circles, or where nobody
 * reads. */
static void enter(finder *n, const char *path) {
    char *own = stet_file_join(n->root, ".stet"), *dir = stet_file_join(n->root, path);
    struct stat st;
    n->above.len = 0;
    if (stet_sys_stat(own, &st) == 0)
        *stet_vec_add(&n->above) = st;
    while (strlen(dir) > strlen(n->root)) {
        char *up = stet_file_dirname(dir);
        stet_free(dir);
        dir = up;
        if (stet_sys_stat(dir, &st) == 0)
            *stet_vec_add(&n->above) = st;
    }
    stet_free(own);
    stet_free(dir);
}

/* Adds a file, or with `deep` everything in a directory, links followed; `path` is from the top. False: it is neither. */
static bool add_path(finder *n, const char *path, bool deep) {
    char *full = stet_file_join(n->root, path);
    struct stat st, own;
    bool found = !is_own(path) && !is_output(n->f, path) && stet_sys_stat(full, &st) == 0 &&
                 (S_ISREG(st.st_mode) || (deep && S_ISDIR(st.st_mode) && !is_above(n, &st)));
    if (found && S_ISREG(st.st_mode))
        add_name(n, &n->out->code, path);
    else if (found) {
        stet_names names = {0};
        *stet_vec_add(&n->above) = st;
        n->status = stet_file_list(full, &names, n->err);
        bool link = stet_sys_lstat(full, &own) == 0 && S_ISLNK(own.st_mode);
        if (n->status == STET_OK && (names.len == 0 || link))
            add_name(n, &n->out->dirs, path);
        for (size_t i = 0; i < names.len && n->status == STET_OK; i++) {
            char *child = stet_file_join(path, names.at[i]);
            add_path(n, child, true);
            stet_free(child);
        }
        stet_names_release(&names);
        n->above.len--;
    }
    stet_free(full);
    return found;
}

static bool add_from(finder *n, const char *path, bool deep) {
    enter(n, path);
    return add_path(n, path, deep);
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
            any |= add_from(n, found.gl_pathv[i] + strlen(n->root) + 1, deep);
    globfree(&found);
    stet_buf_release(&b);
    return any;
}

static void keep_place(finder *n, const char *written, const char *path) {
    stet_value v;
    if (stet_value_string_checked(written, strlen(written), &v, n->err) == STET_OK) {
        stet_value_release(v);
        stet_value_put(&n->out->places, written, stet_value_stringf("%s", path));
    } else
        n->status = STET_INVALID;
}

static void add_named(void *ctx, const char *path, stet_function_use use, const char *written) {
    finder *n = ctx;
    bool declared = use == STET_FUNCTION_FILES || use == STET_FUNCTION_FILES_PATTERN;
    if (n->status != STET_OK)
        return;
    if (use == STET_FUNCTION_IN_PLACE) {
        char *full = stet_file_join(n->root, path);
        struct stat st;
        bool dir = !*path || (stet_sys_stat(full, &st) == 0 && S_ISDIR(st.st_mode));
        if (!n->out->open || (dir && !n->out->unseen)) {
            stet_free(n->out->open);
            n->out->open = stet_asprintf("it names %s, which it can read in the project itself", written);
        }
        n->out->unseen |= dir; /* a change of a file is seen; what is in a directory may be anything */
        stet_free(full);
        return;
    }
    if (written)
        keep_place(n, written, path);
    bool pattern = use == STET_FUNCTION_PATTERN || use == STET_FUNCTION_FILES_PATTERN;
    bool found = pattern ? add_pattern(n, path, declared) : add_from(n, path, declared);
    if (!found && declared && n->status == STET_OK) {
        n->status = stet_fail(n->err, STET_NOT_FOUND, "files=%.300s: the project has no such file", path);
        stet_hint(n->err, "a path, a directory or a pattern, relative to the project");
    }
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once(stet_names *names) {
    size_t kept = 0;
    if (names->len > 0)
        qsort(names->at, names->len, sizeof *names->at, compare);
    for (size_t i = 0; i < names->len; i++)
        if (kept > 0 && strcmp(names->at[kept - 1], names->at[i]) == 0)
            stet_free(names->at[i]);
        else
            names->at[kept++] = names->at[i];
    names->len = kept;
}

/* Takes over `why`. */
static void is_open(stet_function_found *out, char *why) {
    if (!why)
        return;
    stet_free(out->open);
    out->open = why;
    out->unseen = true;
}

stet_status stet_function_find(const stet_function *f, const char *root, stet_function_found *out, stet_error *err) {
    *out = (stet_function_found){.places = stet_value_object()};
    finder n = {.f = f, .root = root, .out = out, .err = err};
    const char *at = variable_of(f, "PATH", 4);
    char *entry;
    stet_function_named(f, root, add_named, &n);
    while (n.status == STET_OK && next_entry(&at, &entry)) {
        char *path = own_entry(root, entry);
        if (path)
            keep_place(&n, entry, path);
        stet_free(path);
        stet_free(entry);
    }
    if (f->in_place && f->files.len == 0 && !out->unseen)
        is_open(out, stet_strdup("it runs in the project, and files= does not say what it reads there"));
    sort_once(&out->code);
    sort_once(&out->dirs);
    if (!out->unseen && n.status == STET_OK)
        is_open(out, stet_function_above(f, root, &out->code));
    stet_vec_release(&n.above);
    if (n.status == STET_OK && out->code.len > STET_FUNCTION_CODE_MAX)
        n.status = stet_fail(err, STET_LIMIT, "a call names more than %d files", STET_FUNCTION_CODE_MAX);
    if (n.status != STET_OK)
        stet_function_found_release(out);
    return n.status;
}

void stet_function_found_release(stet_function_found *found) {
    stet_names_release(&found->code);
    stet_names_release(&found->dirs);
    stet_value_release(found->places);
    stet_free(found->open);
    *found = (stet_function_found){.places = stet_value_null()};
}

/* Where a word is in the directory of the job; false: it is not written in a way that leads to the project. `prefix`:
 * what stands before the path, OPTION=. */
static bool find_place(const stet_function *f, stet_value places, const char *word, size_t *prefix, const char **path,
                       stet_value *hold) {
    const char *equal = strchr(word, '=');
    for (const char *p = word; p; p = p == word && equal ? equal + 1 : NULL) {
        char *full = absolute(f, p);
        bool found = full && stet_value_find(places, full, strlen(full), hold);
        stet_free(full);
        if (found) {
            *prefix = (size_t)(p - word);
            *path = stet_value_as_string(hold, NULL);
            return true;
        }
    }
    return false;
}

/* For the shell, with wildcards as they are. */
static void add_shell(stet_buf *b, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (!in_name(text[i]) && !strchr("./-+,:@%=*?[]", text[i]))
            stet_buf_char(b, '\\');
        stet_buf_char(b, text[i]);
    }
}

static char *place_command(const stet_function *f, stet_value places) {
    stet_buf b = STET_BUF(0);
    shell_word w = {.text = STET_BUF(0)};
    const char *done = f->command;
    for (const char *at = f->command; stet_function_next_word(f, &at, &w);) {
        size_t prefix;
        const char *path;
        stet_value hold;
        if (w.target || !find_place(f, places, stet_buf_cstr(&w.text), &prefix, &path, &hold))
            continue;
        stet_buf_add(&b, done, (size_t)(w.begin - done));
        add_shell(&b, stet_buf_cstr(&w.text), prefix);
        stet_buf_str(&b, STET_LOCAL_HERE "/");
        add_shell(&b, path, strlen(path));
        done = w.end;
    }
    stet_buf_str(&b, done);
    char *out = stet_strdup(stet_buf_cstr(&b));
    stet_buf_release(&b);
    stet_buf_release(&w.text);
    return out;
}

static void place_word(const stet_function *f, stet_value places, char **word) {
    size_t prefix;
    const char *path;
    stet_value hold;
    if (!find_place(f, places, *word, &prefix, &path, &hold))
        return;
    char *out = stet_asprintf("%.*s" STET_LOCAL_HERE "/%s", (int)prefix, *word, path);
    stet_free(*word);
    *word = out;
}

static void place_path(stet_value places, char **variable) {
    stet_buf b = STET_BUF(0);
    const char *at = *variable + 5;
    char *entry;
    stet_buf_str(&b, "PATH=");
    for (bool first = true; next_entry(&at, &entry); first = false) {
        stet_value hold;
        bool own = stet_value_find(places, entry, strlen(entry), &hold);
        stet_buf_str(&b, first ? "" : ":");
        if (own)
            stet_buf_printf(&b, STET_LOCAL_HERE "/%s", stet_value_as_string(&hold, NULL));
        else
            stet_buf_str(&b, entry);
        stet_free(entry);
    }
    stet_free(*variable);
    *variable = stet_strdup(stet_buf_cstr(&b));
    stet_buf_release(&b);
}

void stet_function_place(stet_function *f, stet_value places) {
    if (stet_value_count(places) == 0)
        return;
    if (f->command) {
        char *line = place_command(f, places);
        stet_free(f->argv.at[2]);
        f->argv.at[2] = line;
    }
    for (size_t i = 0; !f->command && i + 1 < f->argv.len; i++)
        place_word(f, places, &f->argv.at[i]);
    for (size_t i = 0; i + 1 < f->env.len; i++)
        if (strncmp(f->env.at[i], "PATH=", 5) == 0)
            place_path(places, &f->env.at[i]);
        else if (!is_always_passed(f, f->env.at[i]))
            place_word(f, places, &f->env.at[i]);
}

char *stet_function_unnamed(const stet_function *f, const char *root, const char *work, const stet_names *code,
                            const char *text) {
    static const char ends[] = " \t\r\n:;,'\"`()[]<>";
    size_t len = strlen(work);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ends);
        char *word = stet_strndup(p, n);
        bool whole =
            len > 0 && strncmp(word, work, len) == 0 && word[len] == '/'; /* the directory of the job, in full */
        char *path = stet_function_path(whole ? "" : f->cwd, whole ? word + len + 1 : word);
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
