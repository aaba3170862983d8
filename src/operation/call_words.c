/* call_words.c - functions as people write them: a line for the shell, or a program with its arguments. */

#include <string.h>

#include "base/text.h"
#include "operation/call_common.h"
#include "os/file.h"

#define LOCAL "dml+exec://stet-exec-local/"

/* Text in a URI. */
static void add_text(stet_buf *b, const char *text) {
    for (; *text; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                     (*text >= '0' && *text <= '9') || strchr("-._~/", *text);
        if (plain)
            stet_buf_char(b, *text);
        else
            stet_buf_printf(b, "%%%02X", (unsigned char)*text);
    }
}

static void add_option(stet_buf *b, char *separator, const char *name, const char *value) {
    stet_buf_char(b, *separator);
    stet_buf_printf(b, "%s=", name);
    add_text(b, value);
    *separator = '&';
}

/* A word of a line for the shell. */
static void add_quoted(stet_buf *b, const char *word) {
    stet_buf_char(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            stet_buf_str(b, "'\\''");
        else
            stet_buf_char(b, *word);
    stet_buf_char(b, '\'');
}

/* What runs a script that is known by its name alone; NULL: it runs itself. */
static const char *interpreter(const char *path) {
    static const char *const known[][2] = {{".py", "python3"}, {".sh", "sh"}, {".js", "node"}, {".mjs", "node"}};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i][0]);
        if (len > n && strcmp(path + len - n, known[i][0]) == 0)
            return known[i][1];
    }
    return NULL;
}

/* The current directory as a path from the top of the project, "" for the top and outside. Caller frees. */
static char *place(stet_op_ctx *ctx, stet_project *p) {
    const char *root = stet_project_root(p);
    size_t len = strlen(root);
    char *real = NULL, *out = NULL;
    if (stet_file_realpath(ctx->cwd, &real, NULL) == STET_OK && strncmp(real, root, len) == 0 && real[len] == '/')
        out = stet_strdup(real + len + 1);
    stet_free(real);
    return out ? out : stet_strdup("");
}

/* A program and its arguments. Scripts of the project are found from the current directory. */
static void program_uri(stet_op_ctx *ctx, const char *dir, const char *name, stet_value words, stet_buf *b, char *sep) {
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    char *full = *name == '/' ? stet_strdup(name) : stet_file_join(ctx->cwd, name);
    struct stat st;
    bool script = stet_sys_stat(full, &st) == 0 && S_ISREG(st.st_mode), nested = *dir || strchr(name, '/');
    const char *runs = script ? interpreter(name) : NULL;
    stet_buf line = STET_BUF(0);
    if (script && !runs && !nested) { /* a bare name would be looked up in PATH */
        stet_buf_str(&line, "./");
        add_quoted(&line, name);
    } else if (script && !runs && *name != '/') {
        char *path = *dir ? stet_asprintf("%s/%s", dir, name) : stet_strdup(name);
        add_text(b, path);
        stet_free(path);
    } else
        add_text(b, runs ? runs : name);
    if (runs)
        add_option(b, sep, "arg", name);
    for (size_t i = 0; i < stet_value_count(words); i++) {
        stet_value word = stet_value_at(words, i);
        if (line.len > 0) {
            stet_buf_char(&line, ' ');
            add_quoted(&line, stet_value_text(&word, ""));
        } else
            add_option(b, sep, "arg", stet_value_text(&word, ""));
    }
    if (line.len > 0)
        add_option(b, sep, "command", stet_buf_cstr(&line));
    add_option(b, sep, "stdin", "null");
    stet_buf_release(&line);
    stet_free(full);
}

stet_status call_words(stet_op_ctx *ctx, stet_project *p, stet_value args, char **function, stet_value *list,
                       stet_error *err) {
    stet_value hold, sh_hold, with = stet_value_get(args, "with");
    const char *name = stet_value_text_at(args, "function", &hold), *sh = stet_value_text_at(args, "sh", &sh_hold);
    bool uri = name && !sh && strstr(name, "://");
    if (!name && !sh) {
        stet_fail(err, STET_INVALID, "a call needs a function, a program or --sh LINE");
        stet_hint(err, "for example: stet call run --sh 'wc -c' '[1, 2]'");
        return STET_INVALID;
    }
    if (uri && stet_value_count(with) > 0)
        return stet_fail(err, STET_INVALID, "--with is for --sh and programs: a URI has its options in it");
    *list = sh || uri ? stet_value_retain(stet_value_get(args, "arg")) : stet_value_array();
    if (uri) {
        *function = stet_strdup(name);
        return STET_OK;
    }
    if (sh && name) { /* the first word is the first argument */
        stet_value all = stet_value_array(), rest = *list;
        stet_value_push(&all, stet_value_string(name));
        for (size_t i = 0; i < stet_value_count(rest); i++)
            stet_value_push(&all, stet_value_retain(stet_value_at(rest, i)));
        stet_value_release(rest);
        *list = all;
    }
    stet_buf b = STET_BUF(0);
    char sep = '?', *dir = place(ctx, p);
    stet_buf_str(&b, LOCAL);
    if (sh)
        add_option(&b, &sep, "command", sh);
    else
        program_uri(ctx, dir, name, stet_value_get(args, "arg"), &b, &sep);
    if (*dir)
        add_option(&b, &sep, "cwd", dir);
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(with) && status == STET_OK; i++) {
        stet_value one = stet_value_at(with, i);
        const char *text = stet_value_text(&one, ""), *equal = strchr(text, '=');
        char *option = stet_strndup(text, equal ? (size_t)(equal - text) : 0);
        if (!*option || option[strspn(option, "abcdefghijklmnopqrstuvwxyz-")])
            status = stet_fail(err, STET_INVALID, "--with %.200s: OPTION=VALUE expected", text);
        else
            add_option(&b, &sep, option, equal + 1);
        stet_free(option);
    }
    if (status == STET_OK)
        *function = stet_strdup(stet_buf_cstr(&b));
    else
        stet_value_release(*list);
    stet_buf_release(&b);
    stet_free(dir);
    return status;
}
