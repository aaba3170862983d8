/* op.c - arguments and schemas of operations, and calling them. The table itself is in table.c. */

#include "operation/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/schema.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "os/clock.h"

static const char *const type_names[] = {"null",     "a boolean", "an integer", "a number",
                                         "a string", "an array",  "an object"};

const stet_param *stet_op_param(const stet_op *op, const char *name) {
    for (const stet_param *p = op->params; p && p->name; p++) {
        const char *a = p->name, *b = name;
        while (*a && (*a == *b || (*a == '-' && *b == '_'))) {
            a++;
            b++;
        }
        if (!*a && !*b)
            return p;
    }
    return NULL;
}

void stet_param_key(const stet_param *param, char out[STET_PARAM_NAME_MAX]) {
    size_t n = strlen(param->name);
    assert(n < STET_PARAM_NAME_MAX);
    for (size_t i = 0; i <= n; i++)
        out[i] = param->name[i] == '-' ? '_' : param->name[i];
}

static void upper_name(const char *name, char out[STET_PARAM_NAME_MAX]) {
    size_t n = strlen(name);
    assert(n < STET_PARAM_NAME_MAX);
    for (size_t i = 0; i <= n; i++)
        out[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
}

void stet_param_metavar(const stet_param *param, stet_buf *out) {
    static const char *const by_type[] = {
        [STET_PARAM_STRING] = "TEXT", [STET_PARAM_INT] = "N",     [STET_PARAM_NUMBER] = "X",
        [STET_PARAM_BOOL] = "BOOL",   [STET_PARAM_ENUM] = "WORD", [STET_PARAM_JSON] = "JSON",
        [STET_PARAM_FILE] = "FILE",   [STET_PARAM_TIME] = "TIME", [STET_PARAM_PAIR] = "KEY=JSON",
    };
    if (param->metavar) {
        stet_buf_str(out, param->metavar);
    } else if (param->type == STET_PARAM_ENUM) {
        for (size_t i = 0; param->choices[i]; i++) {
            if (i)
                stet_buf_char(out, '|');
            stet_buf_str(out, param->choices[i]);
        }
    } else if (param->flags & STET_PARAM_POSITIONAL) {
        char upper[STET_PARAM_NAME_MAX];
        upper_name(param->name, upper);
        stet_buf_str(out, upper);
    } else {
        stet_buf_str(out, by_type[param->type]);
    }
}

void stet_param_spell(const stet_param *param, stet_op_spelling spelling, char out[STET_PARAM_NAME_MAX + 4]) {
    if (spelling != STET_SPELL_FLAGS) {
        stet_param_key(param, out);
        return;
    }
    size_t n = strlen(param->name);
    assert(n < STET_PARAM_NAME_MAX);
    if (!(param->flags & STET_PARAM_POSITIONAL)) {
        memcpy(out, "--", 2);
        memcpy(out + 2, param->name, n + 1);
    } else if (param->metavar && strlen(param->metavar) < STET_PARAM_NAME_MAX) {
        memcpy(out, param->metavar, strlen(param->metavar) + 1);
    } else {
        upper_name(param->name, out);
    }
}

typedef struct check {
    const stet_op *op;
    stet_op_spelling spelling;
    stet_error *err;
} check;

static stet_status wrong_type(const check *c, const stet_param *p, const char *wanted, stet_value got) {
    char name[STET_PARAM_NAME_MAX + 4];
    stet_param_spell(p, c->spelling, name);
    stet_fail(c->err, STET_INVALID, "%s: %s expected, not %s", name, wanted, type_names[stet_value_type(got)]);
    if (stet_value_type(got) == STET_TYPE_STRING && (p->type == STET_PARAM_BOOL || p->type == STET_PARAM_INT))
        stet_hint(c->err, "give it without quotes");
    return STET_INVALID;
}

static stet_status check_choice(const check *c, const stet_param *p, stet_value v) {
    if (stet_value_type(v) != STET_TYPE_STRING)
        return wrong_type(c, p, "a string", v);
    size_t len;
    const char *text = stet_value_as_string(&v, &len);
    stet_suggest s = stet_suggest_begin(text);
    stet_buf valid = STET_BUF(4096);
    stet_value list = stet_value_array();
    for (size_t i = 0; p->choices[i]; i++) {
        if (len == strlen(p->choices[i]) && memcmp(text, p->choices[i], len) == 0) {
            stet_buf_release(&valid);
            stet_value_release(list);
            return STET_OK;
        }
        stet_suggest_offer(&s, p->choices[i]);
        stet_buf_printf(&valid, "%s%s", i ? ", " : "", p->choices[i]);
        stet_value_push(&list, stet_value_string(p->choices[i]));
    }
    char name[STET_PARAM_NAME_MAX + 4];
    stet_param_spell(p, c->spelling, name);
    stet_fail(c->err, STET_INVALID, "%s: \"%.100s\" is none of: %s", name, text, stet_buf_cstr(&valid));
    if (s.best)
        stet_hint(c->err, "did you mean %s?", s.best);
    stet_detail(c->err, "valid", list);
    stet_buf_release(&valid);
    return STET_INVALID;
}

/* Checks one value (one element of a repeated parameter). `*out` belongs to the caller. */
static stet_status check_one(const check *c, const stet_param *p, stet_value v, stet_value *out) {
    char name[STET_PARAM_NAME_MAX + 4];
    stet_type type = stet_value_type(v);
    switch (p->type) {
    case STET_PARAM_STRING:
    case STET_PARAM_FILE:
        if (type != STET_TYPE_STRING)
            return wrong_type(c, p, "a string", v);
        if (p->type == STET_PARAM_FILE) {
            size_t len;
            const char *path = stet_value_as_string(&v, &len);
            stet_param_spell(p, c->spelling, name);
            if (len == 0 || strlen(path) != len)
                return stet_fail(c->err, STET_INVALID, "%s: a path can't be empty or hold a NUL", name);
        }
        break;
    case STET_PARAM_INT:
        if (type != STET_TYPE_INT)
            return wrong_type(c, p, "an integer", v);
        if ((p->min || p->max) && (stet_value_as_int(v) < p->min || stet_value_as_int(v) > p->max)) {
            stet_param_spell(p, c->spelling, name);
            if (p->max == INT64_MAX)
                return stet_fail(c->err, STET_INVALID, "%s: %lld is below %lld, the least allowed", name,
                                 (long long)stet_value_as_int(v), (long long)p->min);
            return stet_fail(c->err, STET_INVALID, "%s: %lld is not between %lld and %lld", name,
                             (long long)stet_value_as_int(v), (long long)p->min, (long long)p->max);
        }
        break;
    case STET_PARAM_NUMBER:
        if (type != STET_TYPE_INT && type != STET_TYPE_DOUBLE)
            return wrong_type(c, p, "a number", v);
        break;
    case STET_PARAM_BOOL:
        if (type != STET_TYPE_BOOL)
            return wrong_type(c, p, "a boolean", v);
        break;
    case STET_PARAM_ENUM: {
        stet_status status = check_choice(c, p, v);
        if (status != STET_OK)
            return status;
        break;
    }
    case STET_PARAM_JSON:
        break;
    case STET_PARAM_TIME: {
        if (type == STET_TYPE_INT)
            break;
        if (type != STET_TYPE_STRING)
            return wrong_type(c, p, "a time as a string", v);
        size_t len;
        const char *text = stet_value_as_string(&v, &len);
        int64_t ms;
        stet_status status = stet_time_parse_human(text, stet_clock_ms(), &ms, c->err);
        if (status != STET_OK) {
            stet_param_spell(p, c->spelling, name);
            stet_fail_in(c->err, "%s", name);
            return status;
        }
        *out = stet_value_int(ms);
        return STET_OK;
    }
    case STET_PARAM_PAIR:
        if (type != STET_TYPE_OBJECT)
            return wrong_type(c, p, "an object", v);
        break;
    }
    *out = stet_value_retain(v);
    return STET_OK;
}

static stet_status check_param(const check *c, const stet_param *p, stet_value v, stet_value *out) {
    if (!(p->flags & STET_PARAM_REPEATED) || p->type == STET_PARAM_PAIR)
        return check_one(c, p, v, out);
    if (stet_value_type(v) != STET_TYPE_ARRAY)
        return wrong_type(c, p, "an array", v);
    if ((p->flags & STET_PARAM_REQUIRED) && stet_value_count(v) == 0) {
        char name[STET_PARAM_NAME_MAX + 4];
        stet_param_spell(p, c->spelling, name);
        return stet_fail(c->err, STET_INVALID, "%s: at least one is needed", name);
    }
    stet_value list = stet_value_array();
    for (size_t i = 0; i < stet_value_count(v); i++) {
        stet_value item;
        stet_status status = check_one(c, p, stet_value_at(v, i), &item);
        if (status != STET_OK) {
            stet_value_release(list);
            return status;
        }
        stet_value_push(&list, item);
    }
    *out = list;
    return STET_OK;
}

static bool offered(const stet_param *p, stet_op_spelling spelling) {
    return !(p->flags & STET_PARAM_CLI_ONLY) || spelling != STET_SPELL_NAMES;
}

static stet_status unknown_name(const check *c, const char *key) {
    stet_suggest s = stet_suggest_begin(key);
    stet_buf valid = STET_BUF(4096);
    stet_value list = stet_value_array();
    for (const stet_param *p = c->op->params; p && p->name; p++) {
        if ((p->flags & STET_PARAM_HIDDEN) || !offered(p, c->spelling))
            continue;
        char name[STET_PARAM_NAME_MAX + 4];
        stet_param_spell(p, c->spelling, name);
        stet_suggest_offer(&s, p->name);
        stet_buf_printf(&valid, "%s%s", valid.len ? ", " : "", name);
        stet_value_push(&list, stet_value_string(name));
    }
    if (valid.len == 0)
        stet_fail(c->err, STET_INVALID, "%s takes no parameter, but \"%.100s\" was given", c->op->name, key);
    else
        stet_fail(c->err, STET_INVALID, "%s has no parameter \"%.100s\"; it takes: %s", c->op->name, key,
                  stet_buf_cstr(&valid));
    if (s.best) {
        char name[STET_PARAM_NAME_MAX + 4];
        stet_param_spell(stet_op_param(c->op, s.best), c->spelling, name);
        stet_hint(c->err, "did you mean %s?", name);
    }
    stet_detail(c->err, "valid", list);
    stet_buf_release(&valid);
    return STET_INVALID;
}

static stet_value parse_literal(const char *json) {
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    if (stet_json_parse(json, strlen(json), &v, &err) != STET_OK) {
        assert(!"a literal in the operation table is no JSON");
        stet_error_clear(&err);
        return stet_value_null();
    }
    return v;
}

stet_status stet_op_check_spelled(const stet_op *op, stet_value given, stet_op_spelling spelling, stet_value *out,
                                  stet_error *err) {
    stet_error own = STET_ERROR_INIT; /* details are added to it whether or not the caller wants the error */
    check c = {op, spelling, err ? err : &own};
    stet_status status = STET_OK;
    stet_value args = stet_value_object();
    if (stet_value_type(given) != STET_TYPE_OBJECT && stet_value_type(given) != STET_TYPE_NULL) {
        status = stet_fail(c.err, STET_INVALID, "%s: arguments are an object, not %s", op->name,
                           type_names[stet_value_type(given)]);
        goto end;
    }
    for (size_t i = 0; i < stet_value_count(given); i++) {
        size_t len;
        const char *key = stet_value_key_at(given, i, &len);
        const stet_param *p = strlen(key) == len ? stet_op_param(op, key) : NULL;
        if (!p || !offered(p, spelling)) {
            status = unknown_name(&c, key);
            goto end;
        }
        char name[STET_PARAM_NAME_MAX];
        stet_param_key(p, name);
        stet_value v, before;
        if (stet_value_find(args, name, strlen(name), &before)) {
            status = stet_fail(c.err, STET_INVALID, "%s is given twice, with hyphens and with underscores", name);
            goto end;
        }
        status = check_param(&c, p, stet_value_at(given, i), &v);
        if (status != STET_OK)
            goto end;
        stet_value_put(&args, name, v);
    }
    for (const stet_param *p = op->params; p && p->name; p++) {
        char name[STET_PARAM_NAME_MAX], spelled[STET_PARAM_NAME_MAX + 4];
        stet_param_key(p, name);
        stet_value there;
        if (stet_value_find(args, name, strlen(name), &there))
            continue;
        if (p->default_json) {
            stet_value literal = parse_literal(p->default_json), v;
            status = check_param(&c, p, literal, &v);
            stet_value_release(literal);
            assert(status == STET_OK && "a default in the operation table does not fit its parameter");
            if (status != STET_OK)
                goto end;
            stet_value_put(&args, name, v);
        } else if (p->flags & STET_PARAM_REQUIRED) {
            stet_param_spell(p, spelling, spelled);
            status = stet_fail(c.err, STET_INVALID, "%s: %s is missing (%s)", op->name, spelled, p->summary);
            goto end;
        }
    }
    *out = args;
    args = stet_value_null();
end:
    stet_value_release(args);
    stet_error_clear(&own);
    return status;
}

stet_status stet_op_check_args(const stet_op *op, stet_value given, stet_value *out, stet_error *err) {
    return stet_op_check_spelled(op, given, STET_SPELL_NAMES, out, err);
}

static stet_value one_schema(const stet_param *p) {
    static const char *const types[] = {
        [STET_PARAM_STRING] = "string", [STET_PARAM_INT] = "integer", [STET_PARAM_NUMBER] = "number",
        [STET_PARAM_BOOL] = "boolean",  [STET_PARAM_ENUM] = "string", [STET_PARAM_JSON] = NULL,
        [STET_PARAM_FILE] = "string",   [STET_PARAM_TIME] = "string", [STET_PARAM_PAIR] = "object",
    };
    stet_value schema = stet_value_object();
    if (types[p->type])
        stet_value_put(&schema, "type", stet_value_string(types[p->type]));
    if (p->type == STET_PARAM_ENUM) {
        stet_value list = stet_value_array();
        for (size_t i = 0; p->choices[i]; i++)
            stet_value_push(&list, stet_value_string(p->choices[i]));
        stet_value_put(&schema, "enum", list);
    }
    if (p->type == STET_PARAM_INT && (p->min || p->max)) {
        stet_value_put(&schema, "minimum", stet_value_int(p->min));
        if (p->max != INT64_MAX)
            stet_value_put(&schema, "maximum", stet_value_int(p->max));
    }
    return schema;
}

stet_value stet_op_args_schema(const stet_op *op, stet_op_spelling spelling) {
    stet_value properties = stet_value_object(), required = stet_value_array();
    for (const stet_param *p = op->params; p && p->name; p++) {
        if ((p->flags & STET_PARAM_HIDDEN) || !offered(p, spelling))
            continue;
        char name[STET_PARAM_NAME_MAX];
        stet_param_key(p, name);
        stet_value schema = one_schema(p);
        if ((p->flags & STET_PARAM_REPEATED) && p->type != STET_PARAM_PAIR) {
            stet_value list = stet_value_object();
            stet_value_put(&list, "type", stet_value_string("array"));
            stet_value_put(&list, "items", schema);
            if (p->flags & STET_PARAM_REQUIRED)
                stet_value_put(&list, "minItems", stet_value_int(1));
            schema = list;
        }
        stet_value_put(&schema, "description", stet_value_string(p->summary));
        if (p->default_json)
            stet_value_put(&schema, "default", parse_literal(p->default_json));
        stet_value_put(&properties, name, schema);
        if (p->flags & STET_PARAM_REQUIRED)
            stet_value_push(&required, stet_value_string(name));
    }
    stet_value schema = stet_value_object();
    stet_value_put(&schema, "type", stet_value_string("object"));
    stet_value_put(&schema, "properties", properties);
    if (stet_value_count(required))
        stet_value_put(&schema, "required", required);
    else
        stet_value_release(required);
    stet_value_put(&schema, "additionalProperties", stet_value_bool(false));
    return schema;
}

stet_value stet_op_result_schema(const stet_op *op) {
    return parse_literal(op->result_schema ? op->result_schema : "{\"type\":\"object\"}");
}

/* Checks the current directory: relative file names start from it, and such paths become parts of values. */
static stet_status check_dir(const stet_op_ctx *ctx, stet_error *err) {
    if (!ctx->cwd || (ctx->op->flags & STET_OP_NO_PROJECT) || stet_utf8_valid(ctx->cwd, strlen(ctx->cwd)))
        return STET_OK;
    stet_fail(err, STET_INVALID, "%s: the path of the current directory is not UTF-8", ctx->cwd);
    stet_hint(err, "rename that directory, or start stet in another one of the project");
    return STET_INVALID;
}

stet_status stet_op_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value answer = stet_value_null();
    stet_status status = check_dir(ctx, err);
    if (status == STET_OK)
        status = ctx->op->run(ctx, args, &answer, err);
    if (status != STET_OK) {
        stet_value_release(answer);
        return status;
    }
    if (stet_value_type(answer) != STET_TYPE_NULL && getenv("STET_CHECK_RESULTS")) {
        stet_value schema = stet_op_result_schema(ctx->op);
        stet_error why = STET_ERROR_INIT;
        if (stet_schema_check(schema, answer, &why) != STET_OK) {
            status = stet_fail(err, STET_INTERNAL, "%s: its result does not fit its own schema: %s", ctx->op->name,
                               why.message);
            stet_error_clear(&why);
        }
        stet_value_release(schema);
    }
    if (status == STET_OK)
        *result = answer;
    else
        stet_value_release(answer);
    return status;
}

bool stet_op_cancelled(void *ctx) {
    stet_op_ctx *c = ctx;
    return c->cancelled(c);
}

stet_status stet_op_call(stet_op_ctx *ctx, stet_value given, stet_value *result, stet_error *err) {
    stet_value args;
    stet_status status = stet_op_check_args(ctx->op, given, &args, err);
    if (status != STET_OK)
        return status;
    status = stet_op_run(ctx, args, result, err);
    stet_value_release(args);
    return status;
}

stet_status stet_op_verdict(const stet_op *op, stet_value result) {
    return op->verdict && stet_value_type(result) == STET_TYPE_OBJECT ? op->verdict(result) : STET_OK;
}
