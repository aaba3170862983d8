/* pattern_toml_say.c - collects problems in a stet.toml, each with its line and column. */

#include "graph/pattern_toml_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/toml.h"

/* Where the pointer into the expanded pattern leads in the files as they were written. Caller frees. */
static char *as_written(const toml_converter *c, const char *pointer, size_t *file) {
    *file = c->expanding ? c->in : 0;
    if (c->expanding || strncmp(pointer, "/nodes/", 7) != 0)
        return stet_strdup(pointer);
    const char *id = pointer + 7, *member = id + strcspn(id, "/"), *rest = *member ? member + 1 : member;
    rest += strcspn(rest, "/");
    const stet_slot *slot = *member ? stet_map_get(&c->origins, id, (size_t)(rest - id)) : NULL;
    if (!slot) {
        slot = stet_map_get(&c->origins, id, (size_t)(member - id));
        rest = member;
    }
    if (!slot)
        return stet_strdup(pointer);
    *file = c->origin.at[slot->n].file;
    return stet_asprintf("%s%s", c->origin.at[slot->n].pointer, rest);
}

void toml_add_problem(toml_converter *c, const char *pointer, const char *message, const char *fix) {
    if (stet_value_count(c->problems) >= STET_PATTERN_MAX_PROBLEMS)
        return;
    size_t line, column, file;
    stet_value p = stet_value_object(), v;
    /* A problem with something that is absent is reported at the nearest thing that exists. */
    char *place = as_written(c, pointer, &file);
    const toml_file *f = &c->files.at[file];
    stet_value_put(&p, "file", stet_value_string(f->shown));
    for (;;) {
        if (*place && stet_toml_locate(f->text, f->len, place, &line, &column)) {
            stet_value_put(&p, "line", stet_value_int((int64_t)line));
            stet_value_put(&p, "column", stet_value_int((int64_t)column));
            break;
        }
        char *slash = strrchr(place, '/');
        if (!slash)
            break;
        *slash = 0;
    }
    stet_free(place);
    stet_value_put(&p, "pointer", stet_value_string(pointer));
    stet_value_put(&p, "message",
                   stet_value_string_checked(message, strlen(message), &v, NULL) == STET_OK
                       ? v
                       : stet_value_string("(a message that is not UTF-8)"));
    stet_value_put(&p, "fix", stet_value_string(fix));
    stet_value_push(&c->problems, p);
}

void toml_problem(toml_converter *c, const char *fix, const char *format, ...) {
    char message[900];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    toml_add_problem(c, stet_buf_cstr(&c->at), message, fix);
}

size_t toml_enter(toml_converter *c, const char *key, size_t len) {
    size_t mark = c->at.len;
    stet_buf_char(&c->at, '/');
    for (size_t i = 0; i < len; i++) {
        if (key[i] == '~' || key[i] == '/')
            stet_buf_str(&c->at, key[i] == '~' ? "~0" : "~1");
        else
            stet_buf_char(&c->at, key[i]);
    }
    return mark;
}

void toml_leave(toml_converter *c, size_t mark) {
    c->at.len = mark;
    if (c->at.data)
        c->at.data[mark] = 0;
}

void toml_add_syntax(toml_converter *c, stet_error *why) {
    stet_value p = stet_value_object();
    stet_value_put(&p, "file", stet_value_string(c->files.at[c->in].shown));
    unsigned line, column;
    int said = 0; /* bytes of the message that name the place, which is a separate member here */
    if (sscanf(why->message, "line %u, column %u: %n", &line, &column, &said) == 2) {
        stet_value_put(&p, "line", stet_value_int(line));
        stet_value_put(&p, "column", stet_value_int(column));
    }
    stet_value_put(&p, "pointer", stet_value_string(""));
    stet_value_put(&p, "message", stet_value_string(why->message + said));
    stet_value_put(&p, "fix", stet_value_string(stet_has_hint(why) ? why->hint : "write TOML 1.0"));
    stet_value_push(&c->problems, p);
    stet_error_clear(why);
}

stet_status toml_say(toml_converter *c, stet_value *problems, stet_error *err) {
    stet_value first = stet_value_at(c->problems, 0), message = stet_value_get(first, "message"),
               fix = stet_value_get(first, "fix");
    stet_value line = stet_value_get(first, "line"), shown = stet_value_get(first, "file");
    if (stet_value_type(line) == STET_TYPE_INT)
        stet_fail(err, STET_INVALID, "%s, line %lld: %s", stet_value_as_string(&shown, NULL),
                  (long long)stet_value_as_int(line), stet_value_as_string(&message, NULL));
    else
        stet_fail(err, STET_INVALID, "%s: %s", stet_value_as_string(&shown, NULL),
                  stet_value_as_string(&message, NULL));
    stet_hint(err, "%s", stet_value_as_string(&fix, NULL));
    if (problems)
        *problems = c->problems;
    else
        stet_value_release(c->problems);
    return STET_INVALID;
}

void toml_place(toml_converter *c, stet_value json, const char *pointer, stet_buf *out) {
    unsigned index;
    int end = 0;
    if (sscanf(pointer, "/nodes/%u%n", &index, &end) != 1 || end == 0) {
        stet_buf_str(out, strncmp(pointer, "/argument/default", 17) == 0 ? "/argument" : pointer);
        return;
    }
    stet_value id = stet_value_get(stet_value_at(stet_value_get(json, "nodes"), index), "id");
    size_t mark = c->at.len, len = 0;
    const char *text = stet_value_as_string(&id, &len);
    if (len > 6 && strcmp(text + len - 6, ".files") == 0 && !stet_value_find(c->nodes, text, len, NULL))
        len -= 6; /* the list of a node with `each` */
    toml_enter(c, "nodes", 5);
    toml_enter(c, text ? text : "", len);
    stet_buf_str(out, stet_buf_cstr(&c->at));
    toml_leave(c, mark);
    const char *rest = pointer + end;
    if (strncmp(rest, "/module/argv", 12) == 0 || strncmp(rest, "/module/shell", 13) == 0)
        stet_buf_str(out, "/command");
    else if (strncmp(rest, "/module/pattern", 15) == 0 || strncmp(rest, "/inputs/list", 12) == 0)
        return; /* of a node with `each`: the whole node */
    else if (strncmp(rest, "/module/", 8) == 0)
        stet_buf_str(out, rest + 7);
    else
        stet_buf_str(out, rest);
}
