/* function_above.c - can a function reach the project through a directory above it, or by a path in its own text?
 *
 *   U1. A path that leads to the project is one that ends above it, in it or at it, with wildcards and unknown parts
 *       ($x, {x}, `x`) taken for everything that they could stand for, and with links followed.
 *   U2. The home directory is such a path if the project lies below it: "~", $HOME, a bare cd, and what programs call it.
 *   U3. In a line for the shell every word is looked at, and "/" counts. In other text (arguments, scripts, values) "/"
 *       and what begins with a wildcard or an unknown part are too common to mean anything.
 *   U4. A path that is written out, and that function_files.c knows, is not judged again.
 *   U5. `files` says what the function reads: then nobody looks into its scripts and arguments.
 *
 * What is put together from pieces that do not look like paths is not seen.
 */

#include <fnmatch.h>
#include <glob.h>
#include <pwd.h>
#include <string.h>

#include "base/vec.h"
#include "call/function_words.h"
#include "os/file.h"

#define SCRIPT_MAX  ((size_t)4 << 20)
#define MATCHES_MAX 1000
#define JOB_DEPTH   3 /* so many ".." lead from the directory of a job to where those of all projects lie */

static const char separators[] = " \t\r\n'\"`()[]<>,;|&=:";

typedef struct look {
    const stet_function *f;
    const char *root, *home; /* home: NULL if it does not lead to the project */
    char *found;             /* what leads there, in quotes as people know it; NULL: nothing yet */
} look;

static bool is_below(const char *path, const char *dir) {
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (!path[len] || path[len] == '/');
}

/* Is it the project, in it or above it? The top of the file system is above everything. */
static bool meets(const char *root, const char *real) {
    return strcmp(real, "/") == 0 || is_below(root, real) || is_below(real, root);
}

static bool real_meets(const char *root, const char *path) {
    char *real = NULL;
    bool yes = stet_file_realpath(path, &real, NULL) == STET_OK && meets(root, real);
    stet_free(real);
    return yes;
}

static bool match_meets(const char *root, const char *pattern) {
    glob_t g = {0};
    bool yes = false;
    if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0)
        for (size_t i = 0; i < g.gl_pathc && !yes; i++)
            yes = i == MATCHES_MAX || real_meets(root, g.gl_pathv[i]);
    globfree(&g);
    return yes;
}

/* U1. `path` is absolute. `shell`: U3. `written_out`: a path in the project without wildcards counts too. */
static bool leads(const char *root, const char *path, bool shell, bool written_out) {
    char *plain = stet_function_path("", path + strspn(path, "/"));
    const char *at = plain ? plain : "", *to = root + (*root == '/');
    bool wild = false, literal = false, yes = true;
    if (!*at) { /* the top */
        stet_free(plain);
        return shell && strspn(path, "/.") == strlen(path);
    }
    while (*at && *to && yes) {
        size_t n = strcspn(at, "/"), m = strcspn(to, "/");
        char *part = stet_strndup(at, n), *name = stet_strndup(to, m);
        bool unknown = strpbrk(part, "${`%\\") || strcmp(part, "**") == 0;
        bool pattern = unknown || strpbrk(part, "*?[");
        if (pattern && !literal && !shell) { /* U3 */
            stet_free(part);
            stet_free(name);
            stet_free(plain);
            return false;
        }
        if (unknown) /* anything may follow */
            at = to = "";
        else {
            yes = fnmatch(part, name, FNM_PERIOD | FNM_NOESCAPE) == 0 || strcmp(part, name) == 0;
            at += n + (at[n] == '/');
            to += m + (to[m] == '/');
        }
        literal |= !pattern;
        wild |= pattern;
        stet_free(part);
        stet_free(name);
    }
    if (yes && *at && !*to) /* in the project */
        yes = wild || written_out;
    else if (!yes) {
        char *whole = stet_asprintf("/%s", plain);
        yes = strpbrk(whole, "*?[") ? match_meets(root, whole) : written_out && real_meets(root, whole);
        if (!yes && !written_out) { /* U4: a link that leads above; one that leads inside is known */
            char *real = NULL;
            yes = stet_file_realpath(whole, &real, NULL) == STET_OK && is_below(root, real) && strcmp(root, real) != 0;
            stet_free(real);
        }
        stet_free(whole);
    }
    stet_free(plain);
    return yes;
}

/* Is it in a virtual environment of Python? That is installed software, wherever it lies. */
static bool is_installed(const char *root, const char *path) {
    bool yes = false;
    for (const char *p = path + strlen(root); is_below(path, root) && *p && !yes; p += 1 + strcspn(p + 1, "/")) {
        char *cfg = stet_asprintf("%.*s/pyvenv.cfg", (int)(p - path), path);
        yes = stet_file_exists(cfg);
        stet_free(cfg);
    }
    return yes;
}

static void find(look *l, const char *what) {
    if (!l->found)
        l->found = stet_strdup(what);
}

static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A token as an absolute path, "~" and $HOME at its beginning filled in; NULL: it is none. Caller frees. */
static char *absolute(const look *l, const char *token, bool shell) {
    static const char *const homes[] = {"~", "$HOME", "${HOME}"};
    if (*token == '/')
        return stet_strdup(token);
    for (size_t i = 0; i < 3 && l->home; i++) {
        size_t len = strlen(homes[i]);
        if (strncmp(token, homes[i], len) == 0 && (!token[len] || token[len] == '/'))
            return stet_asprintf("%s%s", l->home, token + len);
    }
    if (*token == '~' && in_name(token[1]) && shell) {
        size_t len = strcspn(token + 1, "/");
        char *user = stet_strndup(token + 1, len);
        const struct passwd *p = getpwnam(user);
        stet_free(user);
        return p ? stet_asprintf("%s%s", p->pw_dir, token + 1 + len) : NULL;
    }
    return NULL;
}

/* U2: what programs call the home directory. */
static bool names_home(const char *token) {
    static const char *const names[] = {"HOME", "homedir", "getpwuid", "getpwnam", "getpwall", "userInfo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);
        for (const char *p = token; (p = strstr(p, names[i])) != NULL; p += len)
            if ((p == token || !in_name(p[-1])) && !in_name(p[len]))
                return true;
    }
    size_t len = strlen(token);
    return len > 5 && strcmp(token + len - 5, ".home") == 0; /* Path.home, Dir.home */
}

static size_t depth(const char *path) {
    size_t n = *path != 0;
    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* Does it go up so far that it leaves the directory of the job, and all of them? */
static bool goes_up(const look *l, const char *token, size_t more) {
    size_t up = 0, down = 0, from = depth(l->f->cwd) + more + (l->f->in_place ? 0 : JOB_DEPTH - 1);
    for (const char *p = token; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            down > 0 ? down-- : up++;
        else
            down += n > 0 && !(n == 1 && *p == '.');
        p += n + (p[n] == '/');
    }
    return up > from;
}

/* How a text is looked at. */
typedef struct manner {
    bool shell;       /* U3 */
    bool written_out; /* U4 does not hold */
    bool data;        /* not a program: what it calls the home directory means nothing */
    size_t depth;     /* of the script in the project: it may go up so far */
} manner;

/* A piece of text without separators. */
static void look_at_token(look *l, const char *token, manner m) {
    char *path = absolute(l, token, m.shell);
    if (path ? leads(l->root, path, m.shell, m.written_out) && !is_installed(l->root, path)
             : goes_up(l, token, m.depth))
        find(l, token);
    else if (!path && !m.data && l->home && names_home(token))
        find(l, token);
    stet_free(path);
}

/* Text that is not one path. */
static void look_at_text(look *l, const char *text, size_t len, manner m) {
    m.written_out = true;
    for (size_t i = 0; i < len && !l->found;) {
        size_t n = 0;
        while (i + n < len && text[i + n] && !strchr(separators, text[i + n]))
            n++;
        if (n > 0 && n < 4096) {
            char *token = stet_strndup(text + i, n);
            look_at_token(l, token, m);
            stet_free(token);
        }
        i += n + 1;
    }
}

/* Programs and options behind which "/" is a character. */
static bool takes_text(const char *word) {
    static const char *const known[] = {"tr", "-d", "-F", "-t", "-s", "-c", "echo", "printf"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(word, known[i]) == 0)
            return true;
    return false;
}

/* A word of a line for the shell, or an argument: a path, OPTION=PATH, -OPATH, or text. */
static void look_at_word(look *l, const char *word, const char *before) {
    const manner plain = {.shell = true}, text = {.depth = 0};
    const char *equal = strchr(word, '='), *path = word + strspn(word, "-");
    while (path > word && in_name(*path))
        path++;
    if (strcmp(word, "/") == 0 && takes_text(before))
        return;
    look_at_token(l, word, plain);
    if (equal)
        look_at_token(l, equal + 1, plain);
    if (path > word && (*path == '/' || *path == '~'))
        look_at_token(l, path, (manner){.shell = true, .written_out = true});
    size_t len = strlen(word);
    if (strcspn(word, " \t\r\n'\"`()[]<>,;|&:") < len)
        look_at_text(l, word, len, text);
}

/* A cd without a directory. */
static bool goes_home(const char *word, const char *after) {
    after += strspn(after, " \t");
    return (strcmp(word, "cd") == 0 || strcmp(word, "pushd") == 0) && (!*after || strchr(";|&)\r\n#`}", *after));
}

static void look_at_command(look *l) {
    shell_word w = {.text = STET_BUF(0)};
    char *before = stet_strdup("");
    for (const char *at = l->f->command; !l->found && stet_function_next_word(l->f, &at, &w);) {
        look_at_word(l, stet_buf_cstr(&w.text), before);
        stet_free(before);
        before = stet_strdup(stet_buf_cstr(&w.text));
        if (l->home && goes_home(stet_buf_cstr(&w.text), at))
            find(l, "cd");
    }
    stet_free(before);
    stet_buf_release(&w.text);
}

/* Programs that take a line for the shell as an argument. */
static bool is_shell(const char *program) {
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "env", "busybox"};
    const char *name = stet_file_basename(program);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(name, shells[i]) == 0)
            return true;
    return false;
}

static void look_at_arguments(look *l) {
    bool shell = is_shell(l->f->argv.at[0]);
    for (size_t i = 1; i + 1 < l->f->argv.len && !l->found; i++) {
        const char *word = l->f->argv.at[i];
        look_at_word(l, word, i > 1 ? l->f->argv.at[i - 1] : stet_file_basename(l->f->argv.at[0]));
        if (!l->found && shell)
            look_at_text(l, word, strlen(word), (manner){.shell = true});
        if (!l->found && shell && l->home && strstr(word, "cd")) {
            stet_function line = {.command = l->f->argv.at[i], .env = l->f->env, .cwd = l->f->cwd};
            look inner = {&line, l->root, l->home, NULL};
            look_at_command(&inner);
            l->found = inner.found;
        }
    }
}

/* U5. Is it a text that something runs? */
static bool is_script(const char *path, const stet_buf *b) {
    static const char *const ends[] = {".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts",
                                       ".pl", ".rb", ".r",    ".R",  ".lua", ".jl",  ".php"};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (len > n && strcmp(path + len - n, ends[i]) == 0)
            return true;
    }
    return b->len > 2 && (memcmp(b->data, "#!", 2) == 0 || (b->len > 4 && memcmp(b->data, "\177ELF", 4) == 0));
}

/* A bare cd in a script of the shell. */
static bool script_goes_home(const char *text) {
    for (const char *p = text; (p = strstr(p, "cd")) != NULL; p += 2) {
        const char *from = p;
        while (from > text && strchr(" \t", from[-1]))
            from--;
        if ((from == text || strchr(";|&({\n", from[-1])) && goes_home("cd", p + 2))
            return true;
    }
    return false;
}

static bool look_at_script(look *l, const char *path) {
    char *full = stet_file_join(l->root, path);
    stet_buf b = STET_BUF(SCRIPT_MAX + 1);
    if (stet_file_read(full, SCRIPT_MAX, &b, NULL) == STET_OK && is_script(path, &b)) {
        size_t line = 0; /* what runs it is not what it reads */
        const char *text = stet_buf_cstr(&b);
        if (b.len > 2 && memcmp(text, "#!", 2) == 0)
            line = strcspn(text, "\n");
        look_at_text(l, text + line, b.len - line, (manner){.depth = depth(path) - 1});
        if (!l->found && l->home && !strstr(path, ".py") && script_goes_home(text + line))
            find(l, "cd");
    }
    stet_buf_release(&b);
    stet_free(full);
    return l->found != NULL;
}

static look begin(const stet_function *f, const char *root) {
    look l = {.f = f, .root = root};
    for (size_t i = 0; i + 1 < f->env.len; i++)
        if (strncmp(f->env.at[i], "HOME=/", 6) == 0 && f->env.at[i][6])
            l.home = f->env.at[i] + 5;
    if (l.home && !leads(root, l.home, true, true))
        l.home = NULL;
    return l;
}

char *stet_function_above(const stet_function *f, const char *root, const stet_names *code) {
    look l = begin(f, root);
    if (f->command)
        look_at_command(&l);
    else
        look_at_arguments(&l);
    for (size_t i = 0; i + 1 < f->set.len && !l.found; i++)
        if (strncmp(f->set.at[i], "PATH=", 5) != 0 && strncmp(f->set.at[i], "HOME=", 5) != 0)
            look_at_word(&l, strchr(f->set.at[i], '=') + 1, "");
    for (size_t i = 0; i + 1 < f->passed.len && !l.found; i++)
        for (size_t k = 0; k + 1 < f->env.len && !l.found; k++) {
            size_t len = strlen(f->passed.at[i]);
            if (strncmp(f->env.at[k], f->passed.at[i], len) == 0 && f->env.at[k][len] == '=' &&
                strcmp(f->passed.at[i], "PATH") != 0 && strcmp(f->passed.at[i], "HOME") != 0)
                look_at_word(&l, f->env.at[k] + len + 1, "");
        }
    char *out = l.found ? stet_asprintf("%s leads to the project, or to a directory above it", l.found) : NULL;
    for (size_t i = 0; i < code->len && !l.found && f->files.len == 0; i++)
        if (look_at_script(&l, code->at[i]))
            out = stet_asprintf(
                "%s in %s leads to the project, or to a directory above it; say with files= what it reads", l.found,
                code->at[i]);
    stet_free(l.found);
    return out;
}

static void look_at_value(look *l, stet_value v, int deep) {
    const manner data = {.written_out = true, .data = true};
    size_t len;
    if (stet_value_type(v) == STET_TYPE_STRING) {
        const char *text = stet_value_as_string(&v, &len);
        look_at_token(l, text, data);
        look_at_text(l, text, len < SCRIPT_MAX ? len : SCRIPT_MAX, data);
    }
    for (size_t i = 0; i < stet_value_count(v) && !l->found && deep > 0; i++) {
        look_at_value(l, stet_value_at(v, i), deep - 1);
        if (!l->found && stet_value_type(v) == STET_TYPE_OBJECT) {
            const char *key = stet_value_key_at(v, i, &len);
            look_at_token(l, key, data);
        }
    }
}

char *stet_function_value_above(const stet_function *f, const char *root, stet_value argument) {
    look l = begin(f, root);
    if (f->files.len > 0 || f->no_input)
        return NULL;
    look_at_value(&l, argument, 64);
    char *out =
        l.found
            ? stet_asprintf(
                  "its argument %.200s leads to the project, or to a directory above it; say with files= what it reads",
                  l.found)
            : NULL;
    stet_free(l.found);
    return out;
}
