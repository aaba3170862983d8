/* schema_valid.c - checks that a JSON Schema itself is valid. */

#include <string.h>

#include "base/path.h"
#include "base/regex.h"
#include "base/schema.h"
#include "base/schema_keywords.h"
#include "base/vec.h"

/* A schema, and how much of it has been checked. An explicit stack is used, because schemas may nest deeply. */
typedef struct frame {
    stet_value schema;
    size_t member;   /* the current keyword */
    size_t child;    /* the next subschema in it */
    size_t path_len; /* of this schema */
} frame;

typedef struct ctx {
    stet_value root;
    STET_VEC(frame) stack;
    stet_path path; /* of the current schema */
    stet_error *err;
} ctx;

static stet_status bad_schema(ctx *c, const char *format, ...) STET_PRINTF(2, 3);
static stet_status bad_schema(ctx *c, const char *format, ...) {
    stet_buf pointer = STET_BUF(0);
    stet_path_print(stet_path_ref(&c->path), &pointer);
    va_list args;
    va_start(args, format);
    stet_status status = stet_vfail(c->err, STET_INVALID, format, args);
    va_end(args);
    if (c->err) {
        stet_fail_in(c->err, "schema%s%.300s", pointer.len ? " at " : "", stet_buf_cstr(&pointer));
        stet_detail(c->err, "schema_pointer", stet_value_string_n(stet_buf_cstr(&pointer), pointer.len));
    }
    stet_buf_release(&pointer);
    return status;
}

static stet_status valid_pattern(ctx *c, const char *text, size_t len) {
    stet_error why = STET_ERROR_INIT;
    stet_regex *regex = NULL;
    stet_status status = stet_regex_compile(text, len, &regex, &why);
    if (status == STET_OK)
        stet_regex_free(regex);
    else
        status = bad_schema(c, "%s", why.message);
    stet_error_clear(&why);
    return status;
}

static bool is_strings(stet_value v) {
    bool good = stet_value_type(v) == STET_TYPE_ARRAY;
    for (size_t i = 0; good && i < stet_value_count(v); i++)
        good = stet_value_type(stet_value_at(v, i)) == STET_TYPE_STRING;
    return good;
}

/* Checks the argument of one keyword, except for the subschemas in it. */
static stet_status valid_argument(ctx *c, const stet_schema_keyword *k, stet_value argument) {
    const char *expected = stet_schema_wrong_shape(k->shape, argument);
    if (expected)
        return bad_schema(c, "\"%s\" must be %s", k->name, expected);
    size_t count = stet_value_count(argument), len = 0;
    stet_value target;
    switch (k->shape) {
    case STET_SHAPE_TYPES:
        for (size_t i = 0; i < count; i++)
            if (!stet_schema_type_name(stet_value_at(argument, i)))
                return bad_schema(c, "\"type\": element %zu is not the name of a type", i);
        return STET_OK;
    case STET_SHAPE_STRINGS:
        for (size_t i = 0; i < count; i++)
            if (stet_value_type(stet_value_at(argument, i)) != STET_TYPE_STRING)
                return bad_schema(c, "\"%s\": element %zu is not a string", k->name, i);
        return STET_OK;
    case STET_SHAPE_STRINGS_MAP:
        for (size_t i = 0; i < count; i++)
            if (!is_strings(stet_value_at(argument, i)))
                return bad_schema(c, "\"%s\": member %.100s is not an array of strings", k->name,
                                  stet_value_key_at(argument, i, NULL));
        return STET_OK;
    case STET_SHAPE_PATTERN: {
        const char *text = stet_value_as_string(&argument, &len);
        return valid_pattern(c, text, len);
    }
    case STET_SHAPE_PATTERN_MAP:
        for (size_t i = 0; i < count; i++) {
            const char *text = stet_value_key_at(argument, i, &len);
            stet_status status = valid_pattern(c, text, len);
            if (status != STET_OK)
                return status;
        }
        return STET_OK;
    case STET_SHAPE_REFERENCE:
        if (!stet_schema_resolve(c->root, argument, &target))
            return bad_schema(c, "\"%s\" must be %s", k->name, STET_SCHEMA_REFERENCE_RULE);
        return STET_OK;
    default:
        return STET_OK;
    }
}

/* Moves to the next subschema of the current keyword, if there is one: pushes its path and sets `*out`. */
static bool next_child(ctx *c, frame *f, const stet_schema_keyword *k, stet_value argument, stet_value *out) {
    bool single = k->shape == STET_SHAPE_SCHEMA;
    if (!single && !stet_schema_contains_schemas(k->shape))
        return false;
    size_t child = f->child++, len = 0;
    if (child >= (single ? 1 : stet_value_count(argument)))
        return false;
    stet_path_push(&c->path, k->name);
    if (!single && k->shape != STET_SHAPE_SCHEMA_LIST) {
        const char *key = stet_value_key_at(argument, child, &len);
        stet_path_push_n(&c->path, key, len);
    } else if (!single) {
        stet_path_push_index(&c->path, child);
    }
    *out = single ? argument : stet_value_at(argument, child);
    return true;
}

/* Checks the schema at the top of the stack until it reaches a subschema (pushed) or the end of the schema (popped). */
static stet_status check_on(ctx *c) {
    frame *f = &c->stack.at[c->stack.len - 1];
    size_t count = stet_value_count(f->schema);
    for (; f->member < count; f->member++, f->child = 0) {
        c->path.buf.len = f->path_len;
        size_t len = 0;
        const char *name = stet_value_key_at(f->schema, f->member, &len);
        stet_value argument = stet_value_at(f->schema, f->member), child;
        const stet_schema_keyword *k = stet_schema_keyword_find(name, len);
        if (len == 3 && memcmp(name, "$id", 3) == 0 && c->stack.len > 1)
            return bad_schema(c, "\"$id\" is supported at the root only: a schema inside has no references of its own");
        if (!k) {
            const char *meant = stet_schema_keyword_meant(name, len);
            if (meant)
                return bad_schema(c, "\"%.100s\" is not a keyword; did you mean \"%s\"?", name, meant);
            continue;
        }
        stet_status status = f->child == 0 ? valid_argument(c, k, argument) : STET_OK;
        if (status != STET_OK)
            return status;
        if (!next_child(c, f, k, argument, &child))
            continue;
        if (c->path.buf.overflow)
            return stet_fail(c->err, STET_LIMIT, "schema: a path of more than %d bytes", STET_PATH_MAX_BYTES);
        if (!stet_schema_is(child))
            return bad_schema(c, "expected a schema: an object, true or false");
        if (c->stack.len == STET_SCHEMA_MAX_DEPTH)
            return stet_fail(c->err, STET_LIMIT, "schema: more than %d schemas inside each other",
                             STET_SCHEMA_MAX_DEPTH);
        *stet_vec_add(&c->stack) = (frame){child, 0, 0, c->path.buf.len};
        return STET_OK;
    }
    c->stack.len--;
    return STET_OK;
}

stet_status stet_schema_valid(stet_value schema, stet_error *err) {
    ctx c = {.root = schema, .path = STET_PATH_INIT, .err = err};
    if (!stet_schema_is(schema))
        return bad_schema(&c, "expected a schema: an object, true or false");
    *stet_vec_add(&c.stack) = (frame){schema, 0, 0, 0};
    stet_status status = STET_OK;
    while (c.stack.len && status == STET_OK)
        status = check_on(&c);
    stet_vec_release(&c.stack);
    stet_path_release(&c.path);
    return status;
}
