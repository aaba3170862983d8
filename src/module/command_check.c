/* command_check.c - checks the description of a command, as far as that is possible without running it. */

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "files/path.h"
#include "module/command.h"

static const char *const members[] = {
    "type",    "argv",  "shell",   "produces",       "files",        "depfile", "env",           "cwd",
    "stdout",  "stdin", "timeout", "cache",          "max-memory",   "max-cpu", "max-file-size", "allow-outside",
    "scripts", "place", "vars",    "argumentSchema", "resultSchema", "metadata"};

static const char *text_of(const stet_value *v, size_t *len) {
    size_t n;
    const char *s = stet_value_type(*v) == STET_TYPE_STRING ? stet_value_as_string(v, &n) : NULL;
    if (s && strlen(s) != n)
        return NULL; /* a NUL can't be passed to a program */
    if (s && len)
        *len = n;
    return s;
}

static bool all_texts(stet_value list) {
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value v = stet_value_at(list, i);
        if (!text_of(&v, NULL))
            return false;
    }
    return true;
}

static bool env_name(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') || s[i] == '_' ||
              (i && s[i] >= '0' && s[i] <= '9')))
            return false;
    return len > 0;
}

static stet_status wrong(stet_error *err, const char *member, const char *what, const char *hint) {
    stet_fail(err, STET_INVALID, "\"%s\" of a command %s", member, what);
    stet_hint(err, "%s", hint);
    return STET_INVALID;
}

static stet_status is_empty(stet_error *err, const char *member) {
    stet_fail(err, STET_INVALID, "the command is empty: nothing stands in \"%s\"", member);
    stet_hint(err, "write [\"PROGRAM\", \"ARGUMENT\"], or a string for a shell");
    return STET_INVALID;
}

/* Names that the command fills in: texts, numbers, booleans and lists of these. */
static bool all_words(stet_value vars) {
    for (size_t i = 0; i < stet_value_count(vars); i++) {
        stet_value v = stet_value_at(vars, i);
        bool list = stet_value_type(v) == STET_TYPE_ARRAY;
        for (size_t k = 0; k < (list ? stet_value_count(v) : 1); k++) {
            stet_value one = list ? stet_value_at(v, k) : v;
            stet_type t = stet_value_type(one);
            if (t == STET_TYPE_NULL || t == STET_TYPE_ARRAY || t == STET_TYPE_OBJECT ||
                (t == STET_TYPE_STRING && !text_of(&one, NULL)))
                return false;
        }
    }
    return true;
}

static stet_status check_files(stet_value d, stet_value node, stet_error *err) {
    stet_value v, inputs = stet_value_get(node, "inputs"), outside = stet_value_get(d, "allow-outside");
    if (stet_value_find(d, "files", 5, &v)) {
        if (stet_value_type(v) != STET_TYPE_ARRAY || !all_texts(v))
            return wrong(err, "files", "is no list of names", "name the inputs that are files");
        for (size_t i = 0; i < stet_value_count(v); i++) {
            stet_value name = stet_value_at(v, i);
            size_t len = 0;
            const char *s = text_of(&name, &len);
            if (!stet_value_find(inputs, s, len, NULL))
                return wrong(err, "files", "names no input", "each name must be one of the node's inputs");
        }
    }
    if (stet_value_find(d, "produces", 8, &v)) {
        if (stet_value_type(v) != STET_TYPE_OBJECT || !all_texts(v))
            return wrong(err, "produces", "is no object of paths", "write {\"NAME\": \"PATH\"}");
        for (size_t i = 0; i < stet_value_count(v); i++) {
            stet_value path = stet_value_at(v, i);
            char *normal;
            stet_status status = stet_path_normal(NULL, "", text_of(&path, NULL), &normal, err);
            if (status != STET_OK)
                return status;
            bool leaves = normal[0] == '/' || strncmp(normal, "../", 3) == 0;
            stet_free(normal);
            if (leaves && !stet_value_as_bool(outside))
                return wrong(err, "produces", "has a path outside the project",
                             "write to a file of the project, or say allow-outside = true");
        }
    }
    return STET_OK;
}

stet_status command_check(stet_value d, stet_value node, stet_error *err) {
    stet_value v;
    stet_status status =
        stet_module_members(d, members, sizeof members / sizeof *members, "command", "docs/pipelines.md", err);
    if (status != STET_OK)
        return status;
    bool argv = stet_value_find(d, "argv", 4, &v), shell;
    if (argv && stet_value_type(v) == STET_TYPE_ARRAY && stet_value_count(v) == 0)
        return is_empty(err, "argv");
    if (argv && (stet_value_type(v) != STET_TYPE_ARRAY || stet_value_count(v) == 0 || !all_texts(v)))
        return wrong(err, "argv", "is no list of strings", "write [\"PROGRAM\", \"ARGUMENT\"]");
    shell = stet_value_find(d, "shell", 5, &v);
    if (shell && !text_of(&v, NULL))
        return wrong(err, "shell", "is no string", "write the command as you would type it");
    if (shell && !text_of(&v, NULL)[strspn(text_of(&v, NULL), " \t\r\n")])
        return is_empty(err, "shell");
    if (argv == shell)
        return stet_fail(err, STET_INVALID, "a command has either \"argv\" or \"shell\"");
    status = check_files(d, node, err);
    if (status != STET_OK)
        return status;
    if (stet_value_find(d, "env", 3, &v)) {
        bool fine = (stet_value_type(v) == STET_TYPE_ARRAY || stet_value_type(v) == STET_TYPE_OBJECT) && all_texts(v);
        for (size_t i = 0; fine && i < stet_value_count(v); i++) {
            size_t len = 0;
            stet_value item = stet_value_at(v, i);
            const char *name =
                stet_value_type(v) == STET_TYPE_OBJECT ? stet_value_key_at(v, i, &len) : text_of(&item, &len);
            const char *sign = stet_value_type(v) == STET_TYPE_ARRAY && name ? strchr(name, '=') : NULL;
            fine = name && env_name(name, sign ? (size_t)(sign - name) : len);
        }
        if (!fine)
            return wrong(
                err, "env", "is neither a list of names nor an object of strings",
                "write [\"CC\"] to pass variables on, or {\"CC\": \"gcc\"} to set them; [\"CC\", \"A=b\"] does both");
    }
    if (stet_value_find(d, "vars", 4, &v) && (stet_value_type(v) != STET_TYPE_OBJECT || !all_words(v)))
        return wrong(err, "vars", "is no object of texts, numbers, booleans and lists of these",
                     "write {\"NAME\": \"WORD\"} or {\"NAME\": [\"WORD\", \"WORD\"]}");
    if (stet_value_find(d, "timeout", 7, &v) && stet_units_ms(v) < 0)
        return wrong(err, "timeout", "is no time", "write seconds, or \"90s\", \"10m\", \"2h\"");
    static const char *const sizes[] = {"max-memory", "max-file-size"};
    for (int i = 0; i < 2; i++)
        if (stet_value_find(d, sizes[i], strlen(sizes[i]), &v) && stet_units_bytes(v) == 0)
            return wrong(err, sizes[i], "is no size", "write bytes, or \"512M\", \"2G\"");
    if (stet_value_find(d, "max-cpu", 7, &v) && stet_units_ms(v) < 0)
        return wrong(err, "max-cpu", "is no time", "write seconds, or \"90s\", \"10m\", \"2h\"");
    static const char *const texts[] = {"cwd", "depfile"};
    for (int i = 0; i < 2; i++)
        if (stet_value_find(d, texts[i], strlen(texts[i]), &v) && !text_of(&v, NULL))
            return wrong(err, texts[i], "is no path", "write a path relative to the project");
    static const char *const flags[] = {"cache", "stdin", "allow-outside", "scripts", "place"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (stet_value_find(d, flags[i], strlen(flags[i]), &v) && stet_value_type(v) != STET_TYPE_BOOL)
            return wrong(err, flags[i], "is neither true nor false", "write true or false");
    if (stet_value_find(d, "stdout", 6, &v)) {
        const char *s = text_of(&v, NULL);
        if (!s || (strcmp(s, "log") != 0 && strcmp(s, "text") != 0 && strcmp(s, "json") != 0))
            return wrong(err, "stdout", "is not one of its words", "write \"log\", \"text\" or \"json\"");
    }
    return STET_OK;
}
