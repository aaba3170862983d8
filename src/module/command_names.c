/* command_names.c - the files that a command names before it is run: its outputs, and files that its words name.
 *
 * command_scripts.c decides what counts when it runs, and this follows the same rules; but what is filled in for {NAME}
 * is not known yet. A declared file is known by its binding, an output is the command's own, and a value that another
 * node makes is left to the run.
 */

#include <string.h>

#include "base/json.h"
#include "files/glob.h"
#include "files/meet.h"
#include "files/path.h"
#include "module/command.h"
#include "module/command_words.h"
#include "os/file.h"

#define NOT_KNOWN "\001" /* in a word: what is filled in later. No such path is told */

typedef struct naming {
    stet_value descriptor, inputs;
    stet_value hold; /* an input whose text is being filled in */
    stet_buf text;   /* of a value of `vars` */
    bool words, shell;
    const char *root, *cwd;
    stet_map seen; /* of command_word_reads */
    stet_named_fn each;
    void *ctx;
} naming;

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+@%";

/* A value of `vars`, as fill_in has it. The words of a list are told apart by spaces; a list that is a word of its own is
 * handled by add_argument. */
static const char *constant(naming *n, const char *name, size_t len) {
    stet_value v;
    if (!stet_value_find(stet_value_get(n->descriptor, "vars"), name, len, &v))
        return NULL;
    bool list = stet_value_type(v) == STET_TYPE_ARRAY;
    stet_buf_clear(&n->text);
    for (size_t i = 0; i < (list ? stet_value_count(v) : 1); i++) {
        stet_value one = list ? stet_value_at(v, i) : v;
        size_t bytes;
        const char *s = stet_value_type(one) == STET_TYPE_STRING ? stet_value_as_string(&one, &bytes) : NULL;
        if (s && n->shell && strspn(s, plain) != bytes)
            return NOT_KNOWN;
        stet_buf_str(&n->text, i ? " " : "");
        if (s)
            stet_buf_add(&n->text, s, bytes);
        else
            stet_json_write(&n->text, one, STET_JSON_CANONICAL);
    }
    return stet_buf_cstr(&n->text);
}

/* A text that the author gives as an input stands for itself. In a shell string it would be quoted: then it does if
 * there is nothing in it to quote. */
static const char *fill_in(void *ctx, const char *name, size_t len) {
    naming *n = ctx;
    stet_value produces = stet_value_get(n->descriptor, "produces");
    if (!stet_value_find(n->inputs, name, len, &n->hold))
        return stet_value_find(produces, name, len, NULL) ? NOT_KNOWN : constant(n, name, len);
    size_t bytes = 0;
    const char *text = stet_value_type(n->hold) == STET_TYPE_STRING ? stet_value_as_string(&n->hold, &bytes) : NULL;
    return text && strlen(text) == bytes && (!n->shell || strspn(text, plain) == bytes) ? text : NOT_KNOWN;
}

/* Does it write that, or into that? */
static bool is_own(const naming *n, const char *path) {
    stet_value produces = stet_value_get(n->descriptor, "produces"), depfile = stet_value_get(n->descriptor, "depfile");
    bool own = stet_value_type(depfile) == STET_TYPE_STRING &&
               stet_path_meets(stet_value_as_string(&depfile, NULL), path, false);
    for (size_t i = 0; i < stet_value_count(produces) && !own; i++) {
        stet_value v = stet_value_at(produces, i);
        char *out;
        if (stet_path_meant(n->root, "", stet_value_as_string(&v, NULL), &out, NULL) != STET_OK)
            continue;
        own = stet_path_meets(out, path, false);
        stet_free(out);
    }
    return own;
}

static void take_word(void *ctx, const command_word *w) {
    naming *n = ctx;
    bool program = w->kind == COMMAND_WORD_PROGRAM;
    if (program ? !strchr(w->text, '/') : !n->words)
        return;
    if (w->kind == COMMAND_WORD_MAY_WRITE || strstr(w->text, NOT_KNOWN) || strstr(w->from, NOT_KNOWN))
        return;
    char *path, *dir = !*w->from                       ? stet_strdup(n->cwd)
                       : w->from[0] == '/' || !*n->cwd ? stet_strdup(w->from)
                                                       : stet_file_join(n->cwd, w->from);
    stet_status status = stet_path_normal(n->root, dir, w->text, &path, NULL);
    char *named = w->text[0] == '/' || !*dir ? stet_strdup(w->text) : stet_file_join(dir, w->text),
         *real = n->root && strstr(named, "..") && !strpbrk(named, "*?[\\") ? stet_path_real(n->root, named) : NULL;
    stet_free(named);
    stet_free(dir);
    if (status != STET_OK) {
        stet_free(real);
        return;
    }
    bool outside = path[0] == '/' || strncmp(path, "../", 3) == 0;
    if (w->kind == COMMAND_WORD_PATTERN && w->guessed) {
        stet_free(real);
        stet_free(path);
        return;
    }
    if (w->kind == COMMAND_WORD_PATTERN) {
        char *below = stet_asprintf("%s/**", path);
        if (!outside && stet_glob_check(path, NULL) == STET_OK)
            n->each(n->ctx, STET_NAMED_PATTERN, path, NULL);
        if (!outside && stet_glob_check(below, NULL) == STET_OK)
            n->each(n->ctx, STET_NAMED_PATTERN, below, NULL);
        stet_free(below);
    } else if (command_word_reads(&n->seen, path, w) && !outside && !is_own(n, path)) {
        if (!w->guessed)
            stet_map_put(&n->seen, path, strlen(path), (stet_slot){.n = COMMAND_WORD_TAKEN});
        n->each(n->ctx, w->guessed ? STET_NAMED_GUESS : STET_NAMED_READ, path, NULL);
        if (real && strcmp(real, path) != 0 && !is_own(n, real)) /* behind a link ".." is another directory */
            n->each(n->ctx, w->guessed ? STET_NAMED_GUESS : STET_NAMED_READ, real, NULL);
    }
    stet_free(real);
    stet_free(path);
}

/* A word of a list: a list in `vars` that it is becomes as many. */
static void add_argument(naming *n, const char *text, command_words *words) {
    size_t len = strlen(text);
    stet_value v;
    if (!n->shell && len > 2 && *text == '{' && text[len - 1] == '}' &&
        stet_value_find(stet_value_get(n->descriptor, "vars"), text + 1, len - 2, &v) &&
        stet_value_type(v) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < stet_value_count(v); i++) {
            stet_value one = stet_value_at(v, i);
            const char *s = stet_value_type(one) == STET_TYPE_STRING ? stet_value_as_string(&one, NULL) : NULL;
            command_words_add(words, s ? stet_strdup(s) : stet_json_print(one, STET_JSON_CANONICAL, NULL));
        }
        return;
    }
    stet_buf filled = STET_BUF(0);
    stet_path_fill(text, fill_in, n, &filled);
    command_words_add(words, stet_strdup(stet_buf_cstr(&filled)));
    stet_buf_release(&filled);
}

void command_names(const char *root, stet_value d, stet_value node, stet_named_fn each, void *ctx) {
    stet_value v, produces = stet_value_get(d, "produces"), argv = stet_value_get(d, "argv");
    naming n = {
        .descriptor = d, .inputs = stet_value_get(node, "inputs"), .root = root, .cwd = "", .each = each, .ctx = ctx};
    n.words = !stet_value_find(d, "scripts", 7, &v) || stet_value_as_bool(v);
    n.shell = stet_value_find(d, "shell", 5, NULL);
    for (size_t i = 0; i < stet_value_count(produces); i++) {
        v = stet_value_at(produces, i);
        char *path;
        if (stet_path_meant(root, "", stet_value_as_string(&v, NULL), &path, NULL) != STET_OK)
            continue;
        each(ctx, STET_NAMED_WRITTEN, path, stet_value_key_at(produces, i, NULL));
        stet_free(path);
    }
    char *cwd = NULL;
    if (stet_value_find(d, "cwd", 3, &v) &&
        stet_path_normal(root, "", stet_value_as_string(&v, NULL), &cwd, NULL) == STET_OK)
        n.cwd = cwd;
    command_words words = {0};
    stet_value shell = stet_value_get(d, "shell");
    if (n.shell) {
        command_words_add(&words, stet_strdup("/bin/sh"));
        command_words_add(&words, stet_strdup("-c"));
    }
    for (size_t i = 0; i < (n.shell ? 1 : stet_value_count(argv)); i++) {
        v = n.shell ? shell : stet_value_at(argv, i);
        add_argument(&n, stet_value_as_string(&v, NULL), &words);
    }
    command_words_of_list(words.at, words.len, NULL, 0, NULL, take_word, &n);
    command_words_release(&words);
    stet_map_release(&n.seen);
    stet_buf_release(&n.text);
    stet_free(cwd);
}
