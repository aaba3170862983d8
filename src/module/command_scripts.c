/* command_scripts.c - what a command reads without declaring it.
 *
 * Those are scripts and other files and directories of the project that its words name, and the programs that it
 * starts.
 *
 *   - A file of the project is the document file:PATH, whether it exists or not; a directory is the same, with
 *     everything in it. A directory that the command writes to does not count, nor does the project as a whole.
 *   - A pattern in a shell string is the document glob:PATTERN, and another one for what is in directories that it
 *     matches.
 *   - The first line of a script ("#!") names a program as a word does.
 *   - A program found through PATH is two documents: env:PATH=NAME says which file it is now, and file:/PATH what is in
 *     it. So if another program is found instead, because it appeared or because PATH changed, that is seen like an
 *     edit.
 *
 * In the identity of the call a program outside the project counts by its name and content, not by its location.
 */

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "files/glob.h"
#include "files/path.h"
#include "module/bound.h"
#include "module/command.h"
#include "module/command_words.h"
#include "os/file.h"
#include "os/proc.h"

#define MAX_WORD    4096
#define MAX_SCRIPTS 65536
#define MAX_LINE    256 /* of the first line of a script, as the kernel has it */

typedef struct candidate {
    char *path; /* normal */
    bool program;
    bool plain;  /* a word that does not look like a path */
    bool linked; /* a link leads to it in what is read, whether words count or not */
} candidate;

typedef struct gathering {
    stet_run *run;
    const char *root;
    stet_files *files;
    const command_files *except;
    bool words; /* those that are no programs, too */
    command_spec *s;
    const char *own_path; /* PATH that the node sets itself */
    STET_VEC(candidate) found;
    STET_VEC(char *) tools; /* names that PATH is searched for */
    stet_map seen;          /* of command_word_reads */
    stet_map may_write;     /* paths */
    stet_map dirs;          /* directories that were resolved: what they are, own, or NULL */
    bool too_many;
} gathering;

static bool is_at(const char *path, const char *top) {
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

static bool is_outside(const char *path) {
    return path[0] == '/' || strncmp(path, "../", 3) == 0;
}

static bool is_builtin(const char *word) {
    static const char *const names[] = {
        ":",     ".",     "[",      "alias", "bg",       "break",    "case",   "cd",      "command", "continue",
        "do",    "done",  "echo",   "elif",  "else",     "esac",     "eval",   "exec",    "exit",    "export",
        "false", "fg",    "fi",     "for",   "function", "getopts",  "hash",   "if",      "in",      "jobs",
        "kill",  "local", "printf", "pwd",   "read",     "readonly", "return", "set",     "shift",   "test",
        "then",  "times", "trap",   "true",  "type",     "ulimit",   "umask",  "unalias", "unset",   "until",
        "wait",  "while", "{",      "}",     "!",        "source",   "pushd",  "popd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i]) == 0)
            return true;
    return false;
}

/* Does the command write it, or is it declared? */
static bool is_of_no_account(const gathering *g, const char *path) {
    bool known = g->s->depfile && strcmp(path, g->s->depfile) == 0;
    for (size_t i = 0; i < g->s->outputs.len && !known; i++)
        known = is_at(path, g->s->outputs.at[i].path);
    for (size_t i = 0; i < g->s->inputs.len && !known; i++)
        known = is_at(path, g->s->inputs.at[i].path);
    for (size_t i = 0; i < g->except->len && !known; i++)
        known = strcmp(path, g->except->at[i].path) == 0;
    return known;
}

static void add_tool(gathering *g, const char *name) {
    bool again = is_builtin(name) || strlen(name) > MAX_WORD || strchr(name, '\n');
    for (size_t i = 0; i < g->tools.len && !again; i++)
        again = strcmp(g->tools.at[i], name) == 0;
    if (!again)
        *stet_vec_add(&g->tools) = stet_strdup(name);
}

static void add_candidate(gathering *g, const char *path, bool program, bool plain) {
    size_t len = strlen(path);
    stet_slot *slot = stet_map_get(&g->seen, path, len);
    if (slot && slot->n == COMMAND_WORD_TAKEN)
        return;
    g->too_many |= g->found.len >= MAX_SCRIPTS;
    if (g->too_many || is_of_no_account(g, path))
        return;
    stet_map_put(&g->seen, path, len, (stet_slot){.n = COMMAND_WORD_TAKEN});
    *stet_vec_add(&g->found) = (candidate){stet_strdup(path), program, plain, false};
}

/* What a link leads to, in something that is read. There may be more of them than words can name: that is counted by the
 * look at that something, and here it tells who makes it. */
static void add_linked(gathering *g, const char *path) {
    size_t before = g->found.len;
    if (before < MAX_SCRIPTS / 2) {
        add_candidate(g, path, false, false);
        if (g->found.len > before)
            g->found.at[before].linked = true;
        return;
    }
    char *id = stet_file_id(path);
    stet_value v;
    stet_error none = STET_ERROR_INIT;
    if (stet_run_read_doc(g->run, id, &v, &none) != STET_OK)
        stet_error_clear(&none);
    stet_free(id);
}

/* The file that a path as it was written leads to: what is made of it there is told by the document of that. */
static void add_real(gathering *g, const char *from, const char *text) {
    char *seen = *from ? stet_file_join(from, text) : stet_strdup(text),
         *whole = seen[0] != '/' && *g->s->cwd_rel ? stet_file_join(g->s->cwd_rel, seen) : stet_strdup(seen),
         *real = stet_path_real(g->root, whole);
    if (real)
        add_candidate(g, real, false, false);
    stet_free(real);
    stet_free(whole);
    stet_free(seen);
}

/* Another name of a file through links, or NULL. Caller frees. `last`: the file may be a link itself. */
static char *real_name(gathering *g, const char *path, bool last) {
    const char *slash = strrchr(path, '/');
    char *real = NULL;
    if (!slash && !last)
        return NULL;
    if (is_outside(path)) { /* by its text, and of the project all the same */
        if (path[0] != '/' || is_at(path, g->root))
            real = stet_path_real(g->root, path);
    } else if (last) {
        real = stet_path_real(g->root, path);
    } else {
        stet_slot *slot = stet_map_get(&g->dirs, path, (size_t)(slash - path));
        char *dir = slot ? slot->p : NULL;
        if (!slot) {
            char *named = stet_strndup(path, (size_t)(slash - path));
            dir = stet_path_real_dir(g->root, named);
            stet_map_put(&g->dirs, path, (size_t)(slash - path), (stet_slot){.p = dir});
            stet_free(named);
        }
        real = dir ? stet_asprintf("%s%s", dir, *dir ? slash : slash + 1) : NULL;
    }
    if (real && strcmp(real, path) != 0)
        return real;
    stet_free(real);
    return NULL;
}

/* What a pattern matches, by its document. One that nobody has followed is looked at first (command_kind.c). */
static void read_matches(gathering *g, const char *pattern, bool add) {
    stet_buf id = STET_BUF(0);
    stet_value v;
    stet_error none = STET_ERROR_INIT;
    stet_buf_str(&id, STET_GLOB_PREFIX);
    stet_path_escape(pattern, &id);
    const char *name = stet_buf_cstr(&id);
    if (g->files && (stet_files_in_doubt(g->files, name) || !stet_files_follows(g->files, name)) &&
        stet_files_follow(g->files, name, NULL) == STET_OK)
        g->s->new_tools = true;
    if (stet_run_read_doc(g->run, name, &v, &none) == STET_OK && add && stet_value_type(v) == STET_TYPE_OBJECT) {
        for (size_t i = 0; i < stet_value_count(v); i++) {
            size_t len;
            const char *key = stet_value_key_at(v, i, &len);
            stet_buf path = STET_BUF(0);
            if (stet_path_unescape(key, len, &path))
                add_candidate(g, path.data, false, false);
            stet_buf_release(&path);
        }
    }
    stet_error_clear(&none);
    stet_buf_release(&id);
}

/* The same pattern where the directories before its first wildcard are what links lead to, or NULL. Caller frees. */
static char *real_pattern(gathering *g, const char *pattern) {
    size_t n = strcspn(pattern, "*?[\\");
    while (n > 0 && pattern[n - 1] != '/')
        n--;
    bool elsewhere = is_outside(pattern) && pattern[0] == '/' && !is_at(pattern, g->root);
    return elsewhere ? NULL : stet_path_behind_links(g->root, pattern, n);
}

/* What is in a directory that takes in outputs of commands: one that its command no longer writes is still in it, but a
 * pattern does not match it any more, and that is noticed (command.c). */
static void read_directory(gathering *g, const char *path) {
    char *made = g->files && !is_outside(path) ? stet_files_find_made(g->files, path, false, false, NULL, NULL) : NULL;
    if (made) {
        stet_buf pattern = STET_BUF(0);
        for (const char *p = path; *p; p++)
            stet_buf_printf(&pattern, strchr("*?[]\\", *p) ? "\\%c" : "%c", *p);
        stet_buf_str(&pattern, "/**");
        read_matches(g, stet_buf_cstr(&pattern), false);
        stet_buf_release(&pattern);
    }
    stet_free(made);
}

static void add_pattern(gathering *g, const char *pattern, bool guessed, bool declared) {
    command_file *f = command_files_add(&g->s->patterns, "", pattern);
    f->guessed = guessed;
    f->declared = declared;
}

static void take_pattern(gathering *g, const char *pattern, bool guessed, bool declared) {
    if (is_outside(pattern) || stet_glob_check(pattern, NULL) != STET_OK)
        return;
    char *below = stet_asprintf("%s/**", pattern);
    bool known = false;
    for (size_t i = 0; i < g->s->patterns.len; i++) {
        command_file *f = &g->s->patterns.at[i];
        bool same = !f->matched && strcmp(f->path, pattern) == 0;
        if (same || (!f->matched && strcmp(f->path, below) == 0))
            f->declared &= declared;
        known |= same;
    }
    if (known) {
        stet_free(below);
        return;
    }
    stet_error none = STET_ERROR_INIT;
    if (stet_bound_read_way(g->run, g->files, g->root, pattern, &none) != STET_OK)
        stet_error_clear(&none); /* the document of the pattern can't be read either */
    read_matches(g, pattern, true);
    add_pattern(g, pattern, guessed, declared);
    if (stet_glob_check(below, NULL) == STET_OK) {
        read_matches(g, below, true);
        add_pattern(g, below, guessed, declared);
    }
    stet_free(below);
}

static bool is_directory(const gathering *g, const char *path) {
    char *full = path[0] == '/' ? stet_strdup(path) : stet_file_join(g->root, path);
    struct stat st;
    bool directory = stet_sys_stat(full, &st) == 0 && S_ISDIR(st.st_mode);
    stet_free(full);
    return directory;
}

/* Links that ".." comes after: where they lead decides what the path means. It is read, and is part of the identity if it
 * is not what the path says. */
static void read_way(gathering *g, const char *from, const char *path) {
    char *whole = path[0] == '/' || !*from ? stet_strdup(path) : stet_file_join(from, path);
    size_t n = stet_path_before_up(whole), top = strlen(g->root);
    const char *dir = strncmp(whole, g->root, top) == 0 && whole[top] == '/' ? whole + top + 1 : whole;
    if (n > (size_t)(dir - whole) && g->files && !is_outside(dir)) {
        char *before = stet_strndup(dir, n - 1 - (size_t)(dir - whole)), *way = stet_path_detour(g->root, before),
             *name = stet_asprintf(STET_WAY_VARIABLE "%s", before);
        stet_buf id = STET_BUF(0);
        stet_value v;
        stet_error none = STET_ERROR_INIT;
        stet_buf_str(&id, STET_ENV_PREFIX);
        stet_path_escape(name, &id);
        if (stet_run_read_doc(g->run, stet_buf_cstr(&id), &v, &none) != STET_OK)
            stet_error_clear(&none);
        if ((stet_files_in_doubt(g->files, id.data) || !stet_files_follows(g->files, id.data)) &&
            stet_files_follow(g->files, id.data, NULL) == STET_OK)
            g->s->new_tools = true;
        if (way)
            command_words_add(&g->s->detours, stet_asprintf("%s=%s", before, way));
        stet_free(way);
        stet_buf_release(&id);
        stet_free(name);
        stet_free(before);
    }
    stet_free(whole);
}

static bool is_there(const gathering *g, const char *path) {
    char *full = path[0] == '/' ? stet_strdup(path) : stet_file_join(g->root, path);
    struct stat st;
    bool there = stet_sys_lstat(full, &st) == 0;
    stet_free(full);
    return there;
}

static void take_word(void *ctx, const command_word *w) {
    gathering *g = ctx;
    bool program = w->kind == COMMAND_WORD_PROGRAM, slash = strchr(w->text, '/') != NULL;
    if (program && !slash)
        add_tool(g, w->text);
    if (strlen(w->text) > MAX_WORD || (program && !slash) || (!program && !g->words))
        return;
    char *path, *dir = !*w->from                              ? stet_strdup(g->s->cwd_rel)
                       : w->from[0] == '/' || !*g->s->cwd_rel ? stet_strdup(w->from)
                                                              : stet_file_join(g->s->cwd_rel, w->from);
    if (stet_path_normal(g->root, dir, w->text, &path, NULL) != STET_OK)
        path = NULL; /* the project itself, or part of .stet */
    if (!path) {
        if (w->kind == COMMAND_WORD || program) { /* by its text; behind a link it is something else */
            add_real(g, *w->from && w->text[0] != '/' ? w->from : "", w->text);
            read_way(g, dir, w->text);
        }
    } else if (w->kind == COMMAND_WORD_PATTERN) {
        char *real = real_pattern(g, path);
        char *top = NULL;
        take_pattern(g, path, w->guessed, false);
        if (real)
            take_pattern(g, real, w->guessed, false);
        if (w->anywhere && *g->s->cwd_rel && stet_path_normal(g->root, "", w->text, &top, NULL) == STET_OK)
            take_pattern(g, top, w->guessed, false);
        stet_free(top);
        stet_free(real);
    } else if (w->kind == COMMAND_WORD_MAY_WRITE) {
        if (!stet_map_get(&g->may_write, path, strlen(path)))
            stet_map_put(&g->may_write, path, strlen(path), (stet_slot){.n = 1});
    } else if (w->kind == COMMAND_WORD_WRITTEN && w->into && is_directory(g, path)) {
        /* it stays */
    } else if (!w->unlikely || is_there(g, path)) {
        const stet_slot *slot = stet_map_get(&g->seen, path, strlen(path));
        bool taken = slot && slot->n == COMMAND_WORD_TAKEN, reads = command_word_reads(&g->seen, path, w);
        if (reads)
            add_candidate(g, path, program, !slash && !strchr(w->text, '.'));
        /* Behind a link that is another directory, though the path as it reads may have been taken already. */
        if ((reads || (taken && w->kind != COMMAND_WORD_WRITTEN)) && (strstr(w->text, "..") || strstr(dir, ".."))) {
            add_real(g, *w->from && w->text[0] != '/' ? w->from : "", w->text);
            read_way(g, dir, w->text);
        }
    }
    stet_free(dir);
    stet_free(path);
}

/* Does the word stand so in what the author wrote, and not in a name or value that was filled in? */
static bool is_written_out(const gathering *g, const char *word) {
    stet_value d = stet_run_descriptor(g->run), v, argv = stet_value_get(d, "argv");
    if (stet_value_find(d, "shell", 5, &v))
        return strstr(stet_value_as_string(&v, NULL), word) != NULL;
    for (size_t i = 0; i < stet_value_count(argv); i++) {
        stet_value one = stet_value_at(argv, i);
        if (strstr(stet_value_as_string(&one, NULL), word))
            return true;
    }
    return false;
}

/* Is one of its outputs in that directory? */
static bool writes_into(const gathering *g, const char *dir) {
    bool writes = g->s->depfile && is_at(g->s->depfile, dir);
    for (size_t i = 0; i < g->s->outputs.len && !writes; i++)
        writes = is_at(g->s->outputs.at[i].path, dir);
    for (size_t i = 0; i < g->except->len && !writes; i++)
        writes = is_at(g->except->at[i].path, dir);
    return writes;
}

/* What the file is: by its document, or where it has none by a look. *skip: it is nothing that could be read as a file.
 */
static stet_status look_at(gathering *g, const candidate *c, stet_look *look, bool *skip, stet_error *err) {
    char *full = c->path[0] == '/' ? stet_strdup(c->path) : stet_file_join(g->root, c->path), *id;
    struct stat st;
    bool there = stet_sys_stat(full, &st) == 0, outside = is_outside(c->path);
    stet_free(full);
    *look = (stet_look){0};
    if (there && S_ISDIR(st.st_mode))
        *skip = outside || (!g->words && !c->linked) || writes_into(g, c->path);
    else if (there) /* a pipe may become a file: it is none until then */
        *skip = outside && !S_ISREG(st.st_mode);
    else
        *skip = (outside && !c->program) || !c->path[strspn(c->path, "0123456789")] ||
                (c->plain && !is_written_out(g, c->path)) ||
                (!outside && writes_into(g, c->path)); /* a directory that is made for an output */
    if (*skip)
        return STET_OK;
    stet_status status = stet_bound_read_above(g->run, g->files, g->root, c->path, true, err);
    if (status != STET_OK)
        return status;
    id = stet_file_id(c->path);
    stet_value v;
    stet_error inner = STET_ERROR_INIT;
    status = stet_run_read_doc(g->run, id, &v, &inner);
    stet_free(id);
    if (status == STET_OK && stet_look_of_value(v, look)) {
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_clear(&inner);
    if (status != STET_OK && status != STET_NOT_FOUND && status != STET_UNSUPPORTED)
        return stet_fail(err, status, "%s: cannot read the document of %s", g->run->name, c->path);
    if (!g->files || stet_files_known(g->files, c->path, look))
        return STET_OK;
    if (stet_look_at(stet_files_root(g->files), c->path, NULL, look, &inner) != STET_OK) {
        stet_error_clear(&inner); /* what stet can't read the command can't run either, or tells */
        *skip = true;
    }
    return STET_OK;
}

/* A file that is reached through a link: a command may have written it since its document was made, by another name. */
static stet_status look_now(gathering *g, const char *path, stet_look *look, stet_error *err) {
    stet_look known, now;
    if (!g->files)
        return STET_OK;
    bool seen = stet_files_known(g->files, path, &known);
    stet_status status = stet_look_at(stet_files_root(g->files), path, seen ? &known : NULL, &now, err);
    if (status == STET_OK && stet_look_there(&now))
        *look = now;
    return status;
}

/* Where links in a directory lead. */
static stet_status read_links(gathering *g, const char *path, stet_look *look, stet_error *err) {
    char *id = stet_file_id(path);
    stet_names links = {0};
    if (g->files && !is_outside(path) && stet_files_is_linked(g->files, id))
        stet_look_links(stet_files_root(g->files), path, &links);
    stet_free(id);
    for (size_t i = 0; i < links.len; i++)
        add_linked(g, links.at[i]);
    stet_status status = links.len ? look_now(g, path, look, err) : STET_OK;
    stet_names_release(&links);
    return status;
}

static void take_link(void *ctx, const char *path, bool link) {
    if (link)
        *stet_vec_add((stet_names *)ctx) = stet_strdup(path);
}

/* Where links lead that a pattern matches, or that it goes through. `directories`: what matches may be one. `declared`: it
 * is one of `files`, or follows from one. */
static void read_pattern_links(gathering *g, const char *pattern, bool directories, bool declared) {
    stet_names links = {0}, names = {0};
    stet_buf id = STET_BUF(0);
    stet_buf_str(&id, STET_GLOB_PREFIX);
    stet_path_escape(pattern, &id);
    stet_error none = STET_ERROR_INIT;
    if (g->files && stet_files_is_linked(g->files, stet_buf_cstr(&id)) &&
        stet_files_walk(g->files, pattern, take_link, &links, &names, &none) != STET_OK)
        stet_error_clear(&none); /* what can't be listed here can't be listed by the command */
    for (size_t i = 0; i < links.len; i++) {
        const char *rest = strchr(pattern, '/'); /* no "**" is in it, or the link is a match */
        for (const char *slash = strchr(links.at[i], '/'); slash && rest; slash = strchr(slash + 1, '/'))
            rest = strchr(rest + 1, '/');
        char *real = stet_path_real_dir(g->root, links.at[i]);
        if (real && *real && stet_glob_match(pattern, links.at[i]) && (directories || !is_directory(g, real)))
            add_linked(g, real);
        else if (real && rest) {
            char *behind = stet_asprintf("%s%s", real, *real ? rest : rest + 1);
            take_pattern(g, behind, true, declared);
            stet_free(behind);
        }
        stet_free(real);
    }
    stet_names_release(&links);
    stet_names_release(&names);
    stet_buf_release(&id);
}

static void find_tool(gathering *g, const char *name) {
    char *file = stet_proc_find(name, (const char *const *)g->s->env.at, g->s->cwd);
    if (!g->own_path && g->files) {
        char *id = stet_asprintf(STET_ENV_PREFIX STET_PATH_VARIABLE "%s", name);
        stet_value v;
        stet_error none = STET_ERROR_INIT;
        if (stet_run_read_doc(g->run, id, &v, &none) != STET_OK)
            stet_error_clear(&none);
        if (stet_files_in_doubt(g->files, id) || !stet_files_follows(g->files, id)) {
            if (stet_files_follow(g->files, id, NULL) == STET_OK)
                g->s->new_tools = true;
        }
        stet_free(id);
    }
    char *path = NULL;
    if (file && stet_path_normal(g->root, g->s->cwd_rel, file, &path, NULL) == STET_OK)
        add_candidate(g, path, true, false);
    stet_free(path);
    stet_free(file);
}

/* The program that "#!" in the first line of a script names, and the one that env is to find. */
static void take_first_line(gathering *g, const char *script) {
    char *full = script[0] == '/' ? stet_strdup(script) : stet_file_join(g->root, script), line[MAX_LINE + 1];
    int fd = stet_sys_open(full, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t n = fd < 0 ? -1 : stet_sys_read(fd, line, MAX_LINE);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(full);
    line[n < 0 ? 0 : n] = 0;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "#!", 2) != 0)
        return;
    bool env = false;
    for (char *p = line + 2, *end; *(p += strspn(p, " \t\r")); p = end) {
        end = p + strcspn(p, " \t\r");
        end += *end ? (*end = 0, 1) : 0;
        if (p[0] == '-' || strchr(p, '='))
            continue; /* options of env */
        if (!strchr(p, '/') && env)
            add_tool(g, p);
        char *path;
        if (strchr(p, '/') && stet_path_normal(g->root, g->s->cwd_rel, p, &path, NULL) == STET_OK) {
            add_candidate(g, path, true, false);
            stet_free(path);
        }
        if (env || strcmp(stet_file_basename(p), "env") != 0)
            break;
        env = true;
    }
}

stet_status command_scripts(stet_run *run, const char *root, stet_files *files, const command_files *except,
                            command_spec *s, stet_error *err) {
    stet_value d = stet_run_descriptor(run), v, env = stet_value_get(d, "env");
    gathering g = {.run = run, .root = root, .files = files, .except = except, .s = s};
    g.words = !stet_value_find(d, "scripts", 7, &v) || stet_value_as_bool(v);
    if (stet_value_type(env) == STET_TYPE_OBJECT && stet_value_find(env, "PATH", 4, &v))
        g.own_path = stet_value_as_string(&v, NULL);
    for (size_t i = 0; stet_value_type(env) == STET_TYPE_ARRAY && i < stet_value_count(env); i++) {
        const char *set = stet_value_at_string(env, i, NULL);
        if (set && strncmp(set, "PATH=", 5) == 0)
            g.own_path = set + 5;
    }
    stet_map names = {0};
    for (size_t i = 0; i < s->filled.len; i++)
        stet_map_put(&names, s->filled.at[i], strlen(s->filled.at[i]), (stet_slot){.n = COMMAND_NAME_EXACT});
    const command_files *declared[] = {&s->inputs, &s->outputs};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < declared[k]->len; i++) {
            char *word = command_file_word(s, root, declared[k]->at[i].path);
            stet_map_put(&names, word, strlen(word), (stet_slot){.n = COMMAND_NAME_WORD});
            stet_free(word);
        }
    command_words_of_list(s->argv.at, s->argv.len, s->env.at, s->env.len, &names, take_word, &g);
    stet_map_release(&names);
    stet_status status = STET_OK;
    for (size_t i = 0; i < s->ways.len; i++)
        read_way(&g, "", s->ways.at[i]);
    if (stet_value_find(d, "cwd", 3, &v))
        read_way(&g, "", stet_value_as_string(&v, NULL));
    for (size_t i = 0; i < s->inputs.len; i++) {
        if (s->inputs.at[i].look.mode == STET_LOOK_DIRECTORY) {
            read_directory(&g, s->inputs.at[i].path);
            if (status == STET_OK)
                status = read_links(&g, s->inputs.at[i].path, &s->inputs.at[i].look, err);
        }
        char *real = real_name(&g, s->inputs.at[i].path, s->inputs.at[i].look.link != 0);
        if (real) {
            add_linked(&g, real);
            stet_bound_read_names(run, files, root, s->inputs.at[i].path);
        }
        if (real && status == STET_OK)
            status = look_now(&g, s->inputs.at[i].path, &s->inputs.at[i].look, err);
        stet_free(real);
    }
    for (size_t i = 0, n = s->patterns.len; i < n; i++) {
        char *real = s->patterns.at[i].matched ? real_pattern(&g, s->patterns.at[i].path) : NULL;
        if (real)
            take_pattern(&g, real, true, true);
        stet_free(real);
    }
    for (size_t i = 0; i < s->patterns.len && i < MAX_SCRIPTS; i++) /* those behind links may lead to more */
        read_pattern_links(&g, s->patterns.at[i].path, !s->patterns.at[i].matched && !s->patterns.at[i].guessed,
                           s->patterns.at[i].matched || s->patterns.at[i].declared);
    for (size_t i = 0, tools = 0; i < g.found.len || tools < g.tools.len;) {
        if (tools < g.tools.len) { /* they may be scripts themselves */
            find_tool(&g, g.tools.at[tools++]);
            continue;
        }
        candidate c = g.found.at[i++];
        stet_look look = {0};
        bool skip = false;
        if (status == STET_OK)
            status = look_at(&g, &c, &look, &skip, err);
        char *real = status == STET_OK && !skip ? real_name(&g, c.path, look.link || !stet_look_there(&look)) : NULL;
        if (real) {
            stet_bound_read_names(run, files, root, c.path);
            add_candidate(&g, real, false, false);
            status = look_now(&g, c.path, &look, err);
        }
        stet_free(real);
        if (status == STET_OK && !skip && look.mode == STET_LOOK_DIRECTORY)
            status = read_links(&g, c.path, &look, err);
        if (status == STET_OK && !skip) {
            command_file *f = command_files_add(&s->scripts, "", c.path);
            f->look = look;
            f->may_write = stet_map_get(&g.may_write, c.path, strlen(c.path)) != NULL;
        }
        if (status == STET_OK && !skip && look.mode == STET_LOOK_DIRECTORY)
            read_directory(&g, c.path);
        if (status == STET_OK && !skip && c.program && stet_look_there(&look))
            take_first_line(&g, c.path);
    }
    if (status == STET_OK && g.too_many) {
        status = stet_fail(err, STET_LIMIT, "%s: its command names more than %d files", run->name, MAX_SCRIPTS);
        stet_hint(err, "name what it reads in `files`, and say scripts = false");
    }
    for (size_t i = 0; i < g.found.len; i++)
        stet_free(g.found.at[i].path);
    for (size_t i = 0; i < g.tools.len; i++)
        stet_free(g.tools.at[i]);
    stet_vec_release(&g.found);
    stet_vec_release(&g.tools);
    stet_map_release(&g.seen);
    stet_map_release(&g.may_write);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&g.dirs, &i, &key, &len, &slot);)
        stet_free(slot->p);
    stet_map_release(&g.dirs);
    return status;
}
