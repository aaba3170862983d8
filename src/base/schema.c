/* schema.c - checks a value against a JSON Schema: the keywords that contain schemas. */

#include "base/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/schema_check.h"

typedef stet_schema_outcome outcome;
typedef stet_schema_ctx ctx;

static outcome apply(ctx *c, stet_value schema, stet_value instance);

/* The member or element was evaluated: "unevaluatedProperties" and "unevaluatedItems" leave it alone. */
static void mark(ctx *c, size_t index) {
    if (c->marks)
        c->marks->is[index] = true;
}

/* Applies `schema` to a member or an element, at its path. */
static outcome apply_below(ctx *c, stet_value schema, const char *key, size_t key_len, size_t index, stet_value item) {
    size_t len = c->path.buf.len;
    if (key)
        stet_path_push_n(&c->path, key, key_len);
    else
        stet_path_push_index(&c->path, index);
    if (c->path.buf.overflow)
        return stet_schema_broken(
            c, stet_fail(c->err, STET_LIMIT, "value: a path of more than %d bytes", STET_PATH_MAX_BYTES));
    stet_schema_marks *marks = c->marks; /* those of the container */
    c->marks = NULL;
    outcome result = apply(c, schema, item);
    c->marks = marks;
    c->path.buf.len = len;
    return result;
}

/* Whether an element matches; a mismatch is not described. */
static outcome try_below(ctx *c, stet_value schema, size_t index, stet_value item) {
    c->quiet++;
    outcome result = apply_below(c, schema, NULL, 0, index, item);
    c->quiet--;
    return result;
}

static outcome check_properties(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    size_t count = stet_value_count(instance);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(instance, i, &len);
        stet_value member;
        if (!stet_value_find(argument, key, len, &member))
            continue;
        outcome result = apply_below(c, member, key, len, 0, stet_value_at(instance, i));
        if (result != STET_SCHEMA_MATCH)
            return result;
        mark(c, i);
    }
    return STET_SCHEMA_MATCH;
}

/* Whether one of the patterns matches the name of a member. */
static outcome matches_some(ctx *c, stet_value patterns, const char *key, size_t len) {
    for (size_t i = 0; i < stet_value_count(patterns); i++) {
        size_t pattern_len = 0;
        const char *pattern = stet_value_key_at(patterns, i, &pattern_len);
        outcome result = stet_schema_matches(c, pattern, pattern_len, key, len);
        if (result != STET_SCHEMA_MISMATCH)
            return result;
    }
    return STET_SCHEMA_MISMATCH;
}

static outcome check_pattern_properties(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    size_t count = stet_value_count(instance), patterns = stet_value_count(argument);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(instance, i, &len);
        for (size_t k = 0; k < patterns; k++) {
            size_t pattern_len = 0;
            const char *pattern = stet_value_key_at(argument, k, &pattern_len);
            outcome result = stet_schema_matches(c, pattern, pattern_len, key, len);
            if (result == STET_SCHEMA_MISMATCH)
                continue;
            if (result == STET_SCHEMA_MATCH)
                result = apply_below(c, stet_value_at(argument, k), key, len, 0, stet_value_at(instance, i));
            if (result != STET_SCHEMA_MATCH)
                return result;
            mark(c, i);
        }
    }
    return STET_SCHEMA_MATCH;
}

/* A member that `false` refuses is unknown; the message lists those that are known. */
static outcome apply_to_other(ctx *c, const char *name, stet_value schema, stet_value argument, stet_value instance,
                              size_t i) {
    size_t len = 0;
    const char *key = stet_value_key_at(instance, i, &len);
    outcome result = apply_below(c, argument, key, len, 0, stet_value_at(instance, i));
    if (result == STET_SCHEMA_MISMATCH && stet_value_type(argument) == STET_TYPE_BOOL && !c->quiet) {
        stet_value known = stet_value_get(schema, "properties");
        c->keyword = name;
        stet_buf_clear(&c->what);
        stet_buf_str(&c->what, "unknown member");
        for (size_t k = 0; k < stet_value_count(known) && c->what.len < 300; k++) {
            stet_buf_str(&c->what, k ? ", " : "; known are ");
            stet_buf_str(&c->what, stet_value_key_at(known, k, NULL));
        }
    }
    if (result == STET_SCHEMA_MATCH)
        mark(c, i);
    return result;
}

static outcome check_additional(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    stet_value known = stet_value_get(schema, "properties"), patterns = stet_value_get(schema, "patternProperties");
    size_t count = stet_value_count(instance);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(instance, i, &len);
        stet_value ignored;
        if (stet_value_type(known) == STET_TYPE_OBJECT && stet_value_find(known, key, len, &ignored))
            continue;
        outcome result =
            stet_value_type(patterns) == STET_TYPE_OBJECT ? matches_some(c, patterns, key, len) : STET_SCHEMA_MISMATCH;
        if (result == STET_SCHEMA_MISMATCH)
            result = apply_to_other(c, "additionalProperties", schema, argument, instance, i);
        if (result != STET_SCHEMA_MATCH)
            return result;
    }
    return STET_SCHEMA_MATCH;
}

static outcome check_property_names(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    for (size_t i = 0; i < stet_value_count(instance); i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(instance, i, &len);
        stet_value name = stet_value_string_n(key, len);
        outcome result = apply_below(c, argument, key, len, 0, name);
        stet_value_release(name);
        if (result == STET_SCHEMA_MISMATCH && !c->quiet) {
            c->keyword = "propertyNames";
            stet_buf_str(&c->what, " as the name of this member");
        }
        if (result != STET_SCHEMA_MATCH)
            return result;
    }
    return STET_SCHEMA_MATCH;
}

static outcome check_dependent_schemas(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    for (size_t i = 0; i < stet_value_count(argument); i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(argument, i, &len);
        stet_value ignored;
        outcome result = stet_value_find(instance, key, len, &ignored) ? apply(c, stet_value_at(argument, i), instance)
                                                                       : STET_SCHEMA_MATCH;
        if (result != STET_SCHEMA_MATCH)
            return result;
    }
    return STET_SCHEMA_MATCH;
}

static outcome check_items(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != STET_TYPE_ARRAY)
        return STET_SCHEMA_MATCH;
    size_t count = stet_value_count(instance);
    for (size_t i = stet_value_count(stet_value_get(schema, "prefixItems")); i < count; i++) {
        outcome result = apply_below(c, argument, NULL, 0, i, stet_value_at(instance, i));
        if (result != STET_SCHEMA_MATCH)
            return result;
        mark(c, i);
    }
    return STET_SCHEMA_MATCH;
}

static outcome check_prefix_items(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_ARRAY)
        return STET_SCHEMA_MATCH;
    size_t count = stet_value_count(instance), schemas = stet_value_count(argument);
    for (size_t i = 0; i < count && i < schemas; i++) {
        outcome result = apply_below(c, stet_value_at(argument, i), NULL, 0, i, stet_value_at(instance, i));
        if (result != STET_SCHEMA_MATCH)
            return result;
        mark(c, i);
    }
    return STET_SCHEMA_MATCH;
}

/* A limit beside "contains", or `otherwise`. */
static outcome contains_limit(ctx *c, stet_value schema, const char *name, uint64_t otherwise, uint64_t *out) {
    stet_value v;
    *out = otherwise;
    if (!stet_value_find(schema, name, strlen(name), &v))
        return STET_SCHEMA_MATCH;
    const char *expected = stet_schema_wrong_shape(STET_SHAPE_COUNT, v);
    if (expected)
        return stet_schema_malformed(c, name, expected);
    *out = stet_schema_count(v);
    return STET_SCHEMA_MATCH;
}

static outcome check_contains(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != STET_TYPE_ARRAY)
        return STET_SCHEMA_MATCH;
    uint64_t least = 1, most = UINT64_MAX, found = 0;
    if (contains_limit(c, schema, "minContains", 1, &least) != STET_SCHEMA_MATCH ||
        contains_limit(c, schema, "maxContains", UINT64_MAX, &most) != STET_SCHEMA_MATCH)
        return STET_SCHEMA_BROKEN;
    for (size_t i = 0; i < stet_value_count(instance); i++) {
        outcome result = try_below(c, argument, i, stet_value_at(instance, i));
        if (result == STET_SCHEMA_BROKEN)
            return STET_SCHEMA_BROKEN;
        if (result == STET_SCHEMA_MATCH) {
            found++;
            mark(c, i);
        }
    }
    if (found < least)
        return stet_schema_mismatch(c, least == 1 ? "contains" : "minContains", instance,
                                    "at least %llu element%s that match the schema of \"contains\"",
                                    (unsigned long long)least, least == 1 ? "" : "s");
    if (found > most)
        return stet_schema_mismatch(c, "maxContains", instance,
                                    "at most %llu element%s that match the schema of \"contains\"",
                                    (unsigned long long)most, most == 1 ? "" : "s");
    return STET_SCHEMA_MATCH;
}

static outcome check_all(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    for (size_t i = 0; i < stet_value_count(argument); i++) {
        outcome result = apply(c, stet_value_at(argument, i), instance);
        if (result != STET_SCHEMA_MATCH)
            return result;
    }
    return STET_SCHEMA_MATCH;
}

/* If several alternatives failed, the one that went deepest into the instance is probably the one its author meant. If
 * none went below the top, all of their expectations are listed. */
typedef struct alternatives {
    stet_buf all, where, what;
    size_t depth;
    const char *keyword;
} alternatives;

static void add_alternative(ctx *c, alternatives *a, size_t here) {
    if (c->quiet)
        return;
    if (c->where_depth > here && c->where_depth > a->depth) {
        a->depth = c->where_depth;
        a->keyword = c->keyword;
        stet_buf_clear(&a->where);
        stet_buf_add(&a->where, c->where.data, c->where.len);
        stet_buf_clear(&a->what);
        stet_buf_add(&a->what, c->what.data, c->what.len);
    } else if (c->where_depth == here && a->all.len < 300) {
        const char *found = memmem(c->what.data, c->what.len, ", found ", 8);
        size_t len = found ? (size_t)(found - c->what.data) : c->what.len;
        stet_buf_str(&a->all, a->all.len ? "; or " : "");
        stet_buf_add(&a->all, c->what.data, len);
    }
}

static outcome none_matched(ctx *c, alternatives *a, const char *name, size_t count, stet_value instance) {
    if (c->quiet)
        return STET_SCHEMA_MISMATCH;
    if (a->depth) {
        stet_buf_clear(&c->where);
        stet_buf_add(&c->where, a->where.data, a->where.len);
        stet_buf_clear(&c->what);
        stet_buf_add(&c->what, a->what.data, a->what.len);
        c->where_depth = a->depth;
        c->keyword = a->keyword;
        return STET_SCHEMA_MISMATCH;
    }
    return stet_schema_mismatch(c, name, instance, "one of %zu alternatives (%s)", count, stet_buf_cstr(&a->all));
}

static outcome check_some(ctx *c, const char *name, bool only_one, stet_value argument, stet_value instance) {
    alternatives a = {.all = STET_BUF(0), .where = STET_BUF(0), .what = STET_BUF(0)};
    size_t count = stet_value_count(argument), matched = 0, first = 0, here = stet_path_depth(stet_path_ref(&c->path));
    outcome result = STET_SCHEMA_MISMATCH;
    for (size_t i = 0; i < count; i++) {
        outcome one = apply(c, stet_value_at(argument, i), instance);
        if (one == STET_SCHEMA_BROKEN) {
            result = STET_SCHEMA_BROKEN;
            break;
        }
        if (one == STET_SCHEMA_MISMATCH) {
            add_alternative(c, &a, here);
            continue;
        }
        if (++matched == 2 && only_one) {
            result = stet_schema_mismatch(c, name, instance,
                                          "exactly one alternative to match, but numbers %zu and %zu do", first, i);
            break;
        }
        first = i;
        result = STET_SCHEMA_MATCH;
        if (!only_one && !c->marks)
            break;
    }
    if (result == STET_SCHEMA_MISMATCH && !matched)
        none_matched(c, &a, name, count, instance);
    stet_buf_release(&a.all);
    stet_buf_release(&a.where);
    stet_buf_release(&a.what);
    return result;
}

static outcome check_any(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    return check_some(c, "anyOf", false, argument, instance);
}

static outcome check_one(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    return check_some(c, "oneOf", true, argument, instance);
}

static outcome check_not(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    stet_schema_marks *marks = c->marks; /* what the schema of "not" evaluates does not count */
    c->marks = NULL;
    c->quiet++;
    outcome result = apply(c, argument, instance);
    c->quiet--;
    c->marks = marks;
    if (result == STET_SCHEMA_MATCH)
        return stet_schema_mismatch(c, "not", instance, "a value that does not match the schema of \"not\"");
    return result == STET_SCHEMA_MISMATCH ? STET_SCHEMA_MATCH : STET_SCHEMA_BROKEN;
}

/* "if" chooses between "then" and "else" beside it. */
static outcome check_if(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    c->quiet++;
    outcome result = apply(c, argument, instance);
    c->quiet--;
    if (result == STET_SCHEMA_BROKEN)
        return STET_SCHEMA_BROKEN;
    stet_value chosen;
    if (!stet_value_find(schema, result == STET_SCHEMA_MATCH ? "then" : "else", 4, &chosen))
        return STET_SCHEMA_MATCH;
    return apply(c, chosen, instance);
}

static outcome check_reference(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    stet_value target;
    if (!stet_schema_resolve(c->root, argument, &target))
        return stet_schema_malformed(c, "$ref", STET_SCHEMA_REFERENCE_RULE);
    return apply(c, target, instance);
}

static outcome check_unevaluated_properties(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    for (size_t i = 0; i < stet_value_count(instance); i++) {
        outcome result = c->marks->is[i] ? STET_SCHEMA_MATCH
                                         : apply_to_other(c, "unevaluatedProperties", schema, argument, instance, i);
        if (result != STET_SCHEMA_MATCH)
            return result;
    }
    return STET_SCHEMA_MATCH;
}

static outcome check_unevaluated_items(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_ARRAY)
        return STET_SCHEMA_MATCH;
    for (size_t i = 0; i < stet_value_count(instance); i++) {
        outcome result =
            c->marks->is[i] ? STET_SCHEMA_MATCH : apply_below(c, argument, NULL, 0, i, stet_value_at(instance, i));
        if (result != STET_SCHEMA_MATCH)
            return result;
        mark(c, i);
    }
    return STET_SCHEMA_MATCH;
}

static stet_schema_checker *const applicators[STET_KEYWORD_COUNT] = {
    [STET_KEYWORD_REF] = check_reference,
    [STET_KEYWORD_ADDITIONAL_PROPERTIES] = check_additional,
    [STET_KEYWORD_ALL_OF] = check_all,
    [STET_KEYWORD_ANY_OF] = check_any,
    [STET_KEYWORD_CONTAINS] = check_contains,
    [STET_KEYWORD_DEPENDENT_SCHEMAS] = check_dependent_schemas,
    [STET_KEYWORD_IF] = check_if,
    [STET_KEYWORD_ITEMS] = check_items,
    [STET_KEYWORD_NOT] = check_not,
    [STET_KEYWORD_ONE_OF] = check_one,
    [STET_KEYWORD_PATTERN_PROPERTIES] = check_pattern_properties,
    [STET_KEYWORD_PREFIX_ITEMS] = check_prefix_items,
    [STET_KEYWORD_PROPERTIES] = check_properties,
    [STET_KEYWORD_PROPERTY_NAMES] = check_property_names,
    [STET_KEYWORD_UNEVALUATED_ITEMS] = check_unevaluated_items,
    [STET_KEYWORD_UNEVALUATED_PROPERTIES] = check_unevaluated_properties,
};

static outcome apply_keyword(ctx *c, const stet_schema_keyword *k, stet_value schema, stet_value argument,
                             stet_value instance) {
    const char *expected = stet_schema_wrong_shape(k->shape, argument);
    if (expected)
        return stet_schema_malformed(c, k->name, expected);
    stet_schema_checker *check = applicators[k->id] ? applicators[k->id] : stet_schema_assertions[k->id];
    return check ? check(c, schema, argument, instance) : STET_SCHEMA_MATCH;
}

/* The keywords are checked in three passes: "type" first, because its message is the clearest; "unevaluated*" last,
 * because they depend on what all others have evaluated. */
static int pass_of(stet_schema_keyword_id id) {
    return id == STET_KEYWORD_TYPE                                                             ? 0
           : id == STET_KEYWORD_UNEVALUATED_ITEMS || id == STET_KEYWORD_UNEVALUATED_PROPERTIES ? 2
                                                                                               : 1;
}

static outcome apply_pass(ctx *c, int pass, stet_value schema, stet_value instance) {
    size_t count = stet_value_count(schema);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *name = stet_value_key_at(schema, i, &len);
        const stet_schema_keyword *k = stet_schema_keyword_find(name, len);
        if (!k || pass_of(k->id) != pass)
            continue;
        outcome result = apply_keyword(c, k, schema, stet_value_at(schema, i), instance);
        if (result != STET_SCHEMA_MATCH)
            return result;
    }
    return STET_SCHEMA_MATCH;
}

static bool asks_for_marks(stet_value schema, stet_value instance) {
    stet_value ignored;
    switch (stet_value_type(instance)) {
    case STET_TYPE_OBJECT:
        return stet_value_find(schema, "unevaluatedProperties", 21, &ignored);
    case STET_TYPE_ARRAY:
        return stet_value_find(schema, "unevaluatedItems", 16, &ignored);
    default:
        return false;
    }
}

/* Each schema object marks for itself what it evaluates. The schema around it gets these marks only if the instance
 * matches. */
static outcome apply_object(ctx *c, stet_value schema, stet_value instance) {
    stet_schema_marks *outer = c->marks, own = {0, NULL};
    if (outer || asks_for_marks(schema, instance)) {
        own.count = stet_value_count(instance);
        own.is = stet_alloc(own.count + 1);
        memset(own.is, 0, own.count + 1);
        c->marks = &own;
    }
    outcome result = STET_SCHEMA_MATCH;
    for (int pass = 0; pass < 3 && result == STET_SCHEMA_MATCH; pass++)
        result = apply_pass(c, pass, schema, instance);
    c->marks = outer;
    for (size_t i = 0; outer && result == STET_SCHEMA_MATCH && i < own.count; i++)
        outer->is[i] |= own.is[i];
    free(own.is);
    return result;
}

/* The only recursive function of the checker, with its limits. */
static outcome apply(ctx *c, stet_value schema, stet_value instance) {
    if (c->depth == STET_SCHEMA_MAX_DEPTH)
        return stet_schema_broken(
            c, stet_fail(c->err, STET_LIMIT,
                         "schema: more than %d schemas inside each other (a $ref that leads back to itself?)",
                         STET_SCHEMA_MAX_DEPTH));
    if (++c->steps > STET_SCHEMA_MAX_STEPS)
        return stet_schema_broken(c,
                                  stet_fail(c->err, STET_LIMIT, "schema: more than %d steps", STET_SCHEMA_MAX_STEPS));
    switch (stet_value_type(schema)) {
    case STET_TYPE_BOOL:
        return stet_value_as_bool(schema) ? STET_SCHEMA_MATCH
                                          : stet_schema_mismatch(c, "false", instance, "nothing here");
    case STET_TYPE_OBJECT: {
        c->depth++;
        outcome result = apply_object(c, schema, instance);
        c->depth--;
        return result;
    }
    default:
        return stet_schema_broken(c, stet_fail(c->err, STET_INVALID, "schema: expected an object, true or false"));
    }
}

stet_status stet_schema_check(stet_value schema, stet_value instance, stet_error *err) {
    ctx c = {.root = schema,
             .path = STET_PATH_INIT,
             .where = STET_BUF(0),
             .what = STET_BUF(0),
             .err = err,
             .quiet = err ? 0 : 1};
    outcome result = apply(&c, schema, instance);
    stet_status status = result == STET_SCHEMA_MATCH ? STET_OK : result == STET_SCHEMA_BROKEN ? c.status : STET_INVALID;
    if (result == STET_SCHEMA_MISMATCH && err) {
        const char *where = c.where.len ? stet_buf_cstr(&c.where) : "value";
        stet_fail(err, status, "%.400s: %s", where, stet_buf_cstr(&c.what));
        stet_detail(err, "pointer", stet_value_string_n(stet_buf_cstr(&c.where), c.where.len));
        stet_detail(err, "keyword", stet_value_string(c.keyword));
    }
    stet_schema_forget_patterns(&c);
    stet_buf_release(&c.where);
    stet_buf_release(&c.what);
    stet_path_release(&c.path);
    return status;
}
