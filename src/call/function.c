/* function.c - functions of stet-exec-local: their options and their environment. */

#include "call/function.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/vec.h"
#include "call/adapter.h"
#include "process/local.h"

static const char *const always[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL"};

void stet_words_add(stet_words *w, char *word) {
    if (w->len > 0)
        w->len--; /* the NULL */
    *stet_vec_add(w) = word;
    *stet_vec_add(w) = NULL;
}

void stet_words_release(stet_words *w) {
    for (size_t i = 0; i < w->len; i++)
        stet_free(w->at[i]);
    stet_vec_release(w);
    *w = (stet_words){0};
}

void stet_function_release(stet_function *f) {
    stet_words_release(&f->argv);
    stet_words_release(&f->set);
    stet_words_release(&f->passed);
    stet_words_release(&f->env);
    stet_words_release(&f->outputs);
    stet_words_release(&f->files);
    stet_words_release(&f->pools);
    stet_words_release(&f->needs);
    stet_free(f->command);
    stet_free(f->cwd);
    *f = (stet_function){0};
}

char *stet_function_path(const char *cwd, const char *path) {
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

static bool take_number(const char *text, int64_t most, int64_t *out) {
    size_t len = strlen(text);
    if (len == 0 || len > 9 || strspn(text, "0123456789") != len)
        return false;
    *out = strtoll(text, NULL, 10);
    return *out >= 1 && *out <= most;
}

bool stet_function_pool_name(const char *name, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
              (name[i] >= '0' && name[i] <= '9') || name[i] == '_' || name[i] == '-'))
            return false;
    return len > 0 && len <= 64;
}

static stet_status take_option(stet_function *f, const char *name, const char *value, stet_value v, stet_error *err) {
    if (strcmp(name, "arg") == 0)
        stet_words_add(&f->argv, stet_strdup(value));
    else if (strcmp(name, "command") == 0) {
        if (f->command)
            return wrong(err, name, value, "it stands twice");
        f->command = stet_strdup(value);
    } else if (strcmp(name, "cwd") == 0) {
        char *path = strcmp(value, ".") == 0 ? stet_strdup("") : stet_function_path("", value);
        if (!path)
            return wrong(err, name, value, "a directory below the project");
        stet_free(f->cwd);
        f->cwd = path;
    } else if (strcmp(name, "file") == 0 || strcmp(name, "files") == 0) {
        char *path = stet_function_path("", value);
        if (!path)
            return wrong(err, name, value,
                         name[4] ? "a path below the project" : "a path below the directory that it runs in");
        stet_words_add(name[4] ? &f->files : &f->outputs, path);
    } else if (strcmp(name, "env") == 0) {
        const char *set = strchr(value, '=');
        if (!*value || set == value)
            return wrong(err, name, value, "NAME or NAME=VALUE");
        stet_words_add(set ? &f->set : &f->passed, stet_strdup(value));
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
    else if (strcmp(name, "cpus") == 0) {
        if (!take_number(value, 1024, &f->cpus))
            return wrong(err, name, value, "a number from 1 to 1024");
    } else if (strcmp(name, "pool") == 0) {
        const char *colon = strchr(value, ':');
        size_t len = colon ? (size_t)(colon - value) : strlen(value);
        int64_t n;
        if (!stet_function_pool_name(value, len) || (colon && !take_number(colon + 1, STET_SHARE_MAX, &n)))
            return wrong(err, name, value, "NAME or NAME:N, with letters, digits, _ and - in the name");
        stet_words_add(&f->pools, stet_strdup(value));
    } else if (strcmp(name, "retry-on") == 0) {
        char *end;
        long code = strtol(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || code < 1 || code > 255)
            return wrong(err, name, value, "an exit status from 1 to 255");
        f->retry_on[code / 64] |= (uint64_t)1 << (code % 64);
    } else if (strcmp(name, "stdout") == 0 && (strcmp(value, "json") == 0 || strcmp(value, "text") == 0))
        f->text = *value == 't';
    else if (strcmp(name, "stdin") == 0 && (strcmp(value, "json") == 0 || strcmp(value, "null") == 0))
        f->no_input = *value == 'n';
    else if (strcmp(name, "needs") == 0) {
        if (!stet_function_is_label(value))
            return wrong(err, name, value, "up to 64 letters, digits and ._-");
        stet_words_add(&f->needs, stet_strdup(value));
    } else if (strcmp(name, "v") != 0)
        return wrong(err, name, value, "there is no such option");
    return STET_OK;
}

bool stet_function_is_label(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

stet_status stet_function_parse(const char *uri, stet_function *out, stet_error *err) {
    stet_adapter_uri u;
    stet_function f = {0};
    stet_status status = stet_adapter_uri_parse(uri, &u, err);
    if (status != STET_OK)
        return status;
    f.cwd = stet_strdup("");
    f.cpus = 1;
    f.retry_on[STET_ADAPTER_TRANSIENT / 64] |= (uint64_t)1 << (STET_ADAPTER_TRANSIENT % 64);
    stet_words_add(&f.argv, NULL); /* the place of the program, which is set below */
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
        stet_words_add(&f.argv, stet_strdup("-c"));
        stet_words_add(&f.argv, stet_strdup(f.command));
    } else if (status == STET_OK && (*u.path == '/' || !strchr(u.path, '/')))
        f.argv.at[0] = stet_strdup(u.path);
    else if (status == STET_OK) {
        char *path = stet_function_path("", u.path);
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

/* Is this variable set by the function itself? */
static bool is_set(const stet_function *f, const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i + 1 < f->set.len; i++)
        if (strncmp(f->set.at[i], name, len) == 0 && f->set.at[i][len] == '=')
            return true;
    return false;
}

/* Text that is not plain ASCII is stored as bytes, so that it stays as it is. */
static stet_value variable(const char *value) {
    size_t len = strlen(value), i = 0;
    while (i < len && value[i] >= ' ' && value[i] <= '~')
        i++;
    if (i == len)
        return stet_value_string(value);
    char *text = stet_alloc(len * 4 / 3 + 8);
    stet_value list = stet_value_array();
    stet_value_push(&list, stet_value_string_n(text, stet_base64url_encode(value, len, text)));
    stet_free(text);
    return list;
}

void stet_function_variables(const stet_function *f, void (*visit)(void *ctx, const char *name), void *ctx) {
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!is_set(f, always[i]))
            visit(ctx, always[i]);
    for (size_t i = 0; i + 1 < f->passed.len; i++)
        if (!is_set(f, f->passed.at[i]))
            visit(ctx, f->passed.at[i]);
}

static void put_variable(void *ctx, const char *name) {
    const char *value = getenv(name);
    stet_value v;
    if (value && stet_value_string_checked(name, strlen(name), &v, NULL) == STET_OK) {
        stet_value_release(v);
        stet_value_put(ctx, name, variable(value));
    }
}

stet_value stet_function_environment(const stet_function *f) {
    stet_value env = stet_value_object();
    stet_function_variables(f, put_variable, &env);
    return env;
}

void stet_function_bind(stet_function *f, stet_value environment) {
    stet_words *out = &f->env;
    stet_words_release(out);
    for (size_t i = 0; i < stet_value_count(environment); i++) {
        stet_value v = stet_value_at(environment, i), inner = stet_value_at(v, 0);
        bool plain = stet_value_type(v) == STET_TYPE_STRING;
        size_t n = 0;
        const char *text = stet_value_as_string(plain ? &v : &inner, &n);
        char *bytes = stet_alloc_zero(n + 1);
        size_t len = n;
        if (plain)
            memcpy(bytes, text, n);
        else if (!stet_base64url_decode(text, n, bytes, &len))
            len = 0;
        bytes[len] = 0;
        stet_words_add(out, stet_asprintf("%s=%s", stet_value_key_at(environment, i, NULL), bytes));
        stet_free(bytes);
    }
    for (size_t i = 0; i + 1 < f->set.len; i++)
        stet_words_add(out, stet_strdup(f->set.at[i]));
    if (out->len == 0)
        stet_words_add(out, stet_strdup("STET=1")); /* an environment all the same, and not that of this process */
}
