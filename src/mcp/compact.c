/* compact.c - results and hints in the size and the words of a model. */

#include "mcp/compact.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/args.h"
#include "mcp/tool.h"

#define WORDS_MAX 32
#define FIELDS    "fields"

/* How the result of an operation is cut down. Lists end with NULL. */
typedef struct cut {
    const char *op;
    const char *rows;             /* the member that is an array of rows, or NULL */
    const char *record;           /* the member that is one record, or NULL */
    const char *const *row_keeps; /* members of a row or record that stay */
    const char *const *drops;     /* members of the result that go */
    bool newest;                  /* newest first, ten at a time, unless the caller says otherwise */
} cut;

static const char *const run_keeps[] = {"runId",   "lifecycle",    "appId",      "piece",  "createdAt", "tasks",
                                        "failure", "inputsDigest", "resolvedBy", "labels", "archived",  NULL};
static const char *const entry_keeps[] = {"runId", "lifecycle", "app", "createdAt", "duration", NULL};
static const char *const page_drops[] = {"schemaVersion", "freshness", "query",      "scope",
                                         "offset",        "repos",     "nextAction", NULL};
static const char *const show_drops[] = {"schemaVersion", "persisted", "resolvedFrom", "freshness", NULL};
static const char *const resume_drops[] = {"schemaVersion", "record",    "statePath", "resolvedFrom",
                                           "freshness",     "loopStage", NULL};
static const char *const rerun_drops[] = {"schemaVersion", "statePath", "originalRepo", NULL};
static const char *const index_drops[] = {"schemaVersion", "index", NULL};
static const char *const run_drops[] = {"metrics", "causes",  "unchanged", "conflicts", "loaded",
                                        "flushes", "effects", "watched",   NULL};

static const cut cuts[] = {
    {"runs search", "records", NULL, run_keeps, page_drops, true},
    {"runs list", "records", NULL, run_keeps, page_drops, true},
    {"history", "entries", NULL, entry_keeps, page_drops, true},
    {"runs show", NULL, "record", run_keeps, show_drops, false},
    {"runs resume", NULL, NULL, NULL, resume_drops, false},
    {"runs rerun", NULL, NULL, NULL, rerun_drops, false},
    {"registry show", NULL, NULL, NULL, index_drops, false},
    {"registry refresh", NULL, NULL, NULL, index_drops, false},
    {"run", NULL, NULL, NULL, run_drops, false},
    {"piece pull", NULL, NULL, NULL, run_drops, false},
};

static const cut *cut_of(const stet_op *op) {
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        if (strcmp(cuts[i].op, op->name) == 0)
            return &cuts[i];
    return NULL;
}

/* A flag that is not set is off: nobody has to be told. Parameters for special cases are taken, but not listed. */
static void drop_defaults(stet_value *properties) {
    static const char *const special[] = {"retry_failed", "observe_only", "watch", "verify", NULL};
    for (size_t i = 0; special[i]; i++)
        stet_value_remove(properties, special[i], strlen(special[i]));
    for (size_t i = 0; i < stet_value_count(*properties); i++) {
        stet_value schema = stet_value_retain(stet_value_at(*properties, i)), off = stet_value_get(schema, "default");
        const char *key = stet_value_key_at(*properties, i, NULL);
        if (stet_value_type(off) == STET_TYPE_BOOL && !stet_value_as_bool(off)) {
            stet_value_remove(&schema, "default", 7);
            stet_value_put(properties, key, schema);
        } else {
            stet_value_release(schema);
        }
    }
}

void stet_mcp_shorten(stet_value *schema) {
    stet_value properties = stet_value_retain(stet_value_get(*schema, "properties"));
    drop_defaults(&properties);
    stet_value_put(schema, "properties", properties);
}

void stet_mcp_add_fields(const stet_op *op, stet_value *schema) {
    if (cut_of(op) == NULL)
        return;
    stet_value properties = stet_value_retain(stet_value_get(*schema, "properties")), v;
    static const char text[] =
        "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"More members to give; \\\"*\\\": all\"}";
    if (stet_json_parse(text, strlen(text), &v, NULL) == STET_OK)
        stet_value_put(&properties, FIELDS, v);
    stet_value_put(schema, "properties", properties);
}

static bool takes(const stet_op *op, const char *name) {
    for (const stet_param *p = op->params; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* A single value where an array is expected. */
static void wrap(const stet_op *op, stet_value *args) {
    for (const stet_param *p = op->params; p && p->name; p++) {
        char key[STET_PARAM_NAME_MAX];
        const char *const names[] = {key, p->name};
        stet_param_key(p, key);
        for (size_t i = 0; i < 2 && (p->flags & STET_PARAM_REPEATED) && p->type != STET_PARAM_PAIR; i++) {
            stet_value v;
            if (!stet_value_find(*args, names[i], strlen(names[i]), &v) || stet_value_type(v) != STET_TYPE_STRING)
                continue;
            stet_value list = stet_value_array();
            stet_value_push(&list, stet_value_retain(v));
            stet_value_put(args, names[i], list);
        }
    }
}

void stet_mcp_prepare(const stet_op *op, stet_value given, bool whole, stet_value *args, stet_value *fields) {
    const cut *c = whole ? NULL : cut_of(op);
    stet_value v;
    *args = stet_value_retain(given);
    *fields = stet_value_array();
    if (c && stet_value_find(given, FIELDS, strlen(FIELDS), &v) && !takes(op, FIELDS)) {
        if (stet_value_type(v) == STET_TYPE_ARRAY) {
            stet_value_release(*fields);
            *fields = stet_value_retain(v);
        } else {
            stet_value_push(fields, stet_value_retain(v));
        }
        stet_value_remove(args, FIELDS, strlen(FIELDS));
    }
    if (c && c->newest && takes(op, "limit") && !stet_value_find(*args, "limit", 5, &v))
        stet_value_put(args, "limit", stet_value_int(10));
    if (c && c->newest && takes(op, "order") && !stet_value_find(*args, "order", 5, &v))
        stet_value_put(args, "order", stet_value_string("newest"));
    wrap(op, args);
}

static bool in_list(const char *const *list, const char *key) {
    for (size_t i = 0; list && list[i]; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}

static bool asked_for(stet_value fields, const char *key) {
    for (size_t i = 0; i < stet_value_count(fields); i++)
        if (stet_value_text_is(stet_value_at(fields, i), key))
            return true;
    return false;
}

static bool says_nothing(stet_value v) {
    return stet_value_type(v) == STET_TYPE_NULL || (stet_value_type(v) == STET_TYPE_BOOL && !stet_value_as_bool(v)) ||
           ((stet_value_type(v) == STET_TYPE_ARRAY || stet_value_type(v) == STET_TYPE_OBJECT) &&
            stet_value_count(v) == 0);
}

/* The counts that are not zero. */
static stet_value some_of(stet_value counts) {
    stet_value out = stet_value_object();
    for (size_t i = 0; i < stet_value_count(counts); i++)
        if (stet_value_type(stet_value_at(counts, i)) != STET_TYPE_INT ||
            stet_value_as_int(stet_value_at(counts, i)) != 0)
            stet_value_put(&out, stet_value_key_at(counts, i, NULL), stet_value_retain(stet_value_at(counts, i)));
    return out;
}

static stet_value compact_row(const cut *c, stet_value row, stet_value fields) {
    stet_value out = stet_value_object();
    for (size_t i = 0; i < stet_value_count(row); i++) {
        const char *key = stet_value_key_at(row, i, NULL);
        stet_value v = stet_value_at(row, i);
        if (asked_for(fields, key))
            stet_value_put(&out, key, stet_value_retain(v));
        else if (in_list(c->row_keeps, key) && !says_nothing(v))
            stet_value_put(&out, key, strcmp(key, "tasks") == 0 ? some_of(v) : stet_value_retain(v));
    }
    return out;
}

stet_value stet_mcp_compact(const stet_op *op, stet_value result, stet_value fields) {
    const cut *c = cut_of(op);
    if (c == NULL || asked_for(fields, "*") || stet_value_type(result) != STET_TYPE_OBJECT)
        return result;
    stet_value out = stet_value_object();
    for (size_t i = 0; i < stet_value_count(result); i++) {
        const char *key = stet_value_key_at(result, i, NULL);
        stet_value v = stet_value_at(result, i);
        if (in_list(c->drops, key) && !asked_for(fields, key))
            continue;
        if (c->rows && strcmp(key, c->rows) == 0) {
            stet_value rows = stet_value_array();
            for (size_t k = 0; k < stet_value_count(v); k++)
                stet_value_push(&rows, compact_row(c, stet_value_at(v, k), fields));
            stet_value_put(&out, key, rows);
        } else if (c->record && strcmp(key, c->record) == 0 && stet_value_type(v) == STET_TYPE_OBJECT) {
            stet_value_put(&out, key, compact_row(c, v, fields));
        } else if (stet_value_type(v) != STET_TYPE_NULL) {
            stet_value_put(&out, key, stet_value_retain(v));
        }
    }
    stet_value_release(result);
    return out;
}

/* Words after "stet" as far as they are a command of a tool; its arguments. 0: they are none. */
static int command_words(char **words, int count, stet_value *args, const stet_op **op) {
    int best = 0;
    for (int n = 1; n <= count; n++) {
        const char *last = words[n - 1];
        /* Once it is a command, only what looks like an argument belongs to it: a flag, a value, or a name to fill in. */
        bool argument = last[0] == '-' || strpbrk(last, "0123456789/.=@") != NULL || (n > 1 && words[n - 2][0] == '-');
        for (const char *s = last; !argument && *s; s++)
            argument = isupper((unsigned char)*s) && s == last && s[1] != 0 && isupper((unsigned char)s[1]);
        if (best > 0 && !argument)
            break;
        stet_cli_words parsed = {0};
        stet_value checked;
        stet_error err = STET_ERROR_INIT;
        bool good = stet_cli_parse(n, words, &parsed, &err) == STET_OK && parsed.op && !parsed.help &&
                    !parsed.project && !parsed.reads_stdin && !(parsed.op->flags & STET_OP_CLI_ONLY) &&
                    stet_op_check_args(parsed.op, parsed.given, &checked, &err) == STET_OK;
        if (good) {
            stet_value_release(checked);
            stet_value_release(*args);
            *args = stet_value_retain(parsed.given);
            *op = parsed.op;
            best = n;
        }
        stet_error_clear(&err);
        stet_cli_words_release(&parsed);
    }
    return best;
}

/* The command that begins at `text`, behind "stet ": how many bytes it has. */
static size_t say_command(const char *text, stet_buf *out) {
    char *copy = stet_strdup(text), *words[WORDS_MAX];
    size_t ends[WORDS_MAX] = {0};
    int count = 0;
    for (size_t i = 0; copy[i] && count < WORDS_MAX;) {
        size_t len = strcspn(copy + i, " \n"), bare = len;
        while (bare > 1 && strchr(",;:.)`\"", copy[i + bare - 1]) != NULL)
            bare--;
        words[count] = copy + i;
        ends[count++] = i + bare;
        bool more = copy[i + len] == ' ' && bare == len && copy[i + len + 1] != ' ' && copy[i + len + 1] != '(';
        copy[i + bare] = 0;
        if (!more)
            break;
        i += len + 1;
    }
    stet_value args = stet_value_null();
    const stet_op *op = NULL;
    int n = command_words(words, count, &args, &op);
    if (n > 0) {
        char name[STET_MCP_TOOL_NAME_MAX];
        stet_mcp_tool_name(op, name);
        stet_buf_str(out, name);
        if (stet_value_count(args) > 0) {
            stet_buf_char(out, ' ');
            stet_json_write(out, args, STET_JSON_CANONICAL);
        }
    }
    stet_value_release(args);
    stet_free(copy);
    return n > 0 ? ends[n - 1] : 0;
}

stet_value stet_mcp_speak(const char *text) {
    stet_buf out = STET_BUF(0);
    while (*text) {
        const char *at = strstr(text, "stet ");
        if (at == NULL)
            break;
        stet_buf_add(&out, text, (size_t)(at - text));
        size_t len = at == text || !isalnum((unsigned char)at[-1]) ? say_command(at + 5, &out) : 0;
        if (len == 0)
            stet_buf_add(&out, at, 5);
        text = at + 5 + len;
    }
    stet_buf_str(&out, text);
    stet_value v = stet_value_string_n(stet_buf_cstr(&out), out.len);
    stet_buf_release(&out);
    return v;
}

static void speak_member(stet_value *object, const char *key) {
    stet_value v = stet_value_get(*object, key);
    if (stet_value_type(v) == STET_TYPE_STRING)
        stet_value_put(object, key, stet_mcp_speak(stet_value_as_string(&v, NULL)));
}

static void speak_list(stet_value *result, const char *list, const char *key) {
    stet_value all = stet_value_get(*result, list);
    if (stet_value_type(all) != STET_TYPE_ARRAY || stet_value_count(all) == 0)
        return;
    stet_value said = stet_value_array();
    for (size_t i = 0; i < stet_value_count(all); i++) {
        stet_value one = stet_value_retain(stet_value_at(all, i)), error = stet_value_get(one, "error");
        if (stet_value_type(one) == STET_TYPE_OBJECT) {
            speak_member(&one, key);
            if (stet_value_type(error) == STET_TYPE_OBJECT) {
                stet_value copy = stet_value_retain(error);
                speak_member(&copy, "hint");
                stet_value_put(&one, "error", copy);
            }
        }
        stet_value_push(&said, one);
    }
    stet_value_put(result, list, said);
}

stet_value stet_mcp_speak_in(stet_value result) {
    if (stet_value_type(result) != STET_TYPE_OBJECT)
        return result;
    speak_member(&result, "hint");
    speak_member(&result, "nextAction");
    speak_list(&result, "nextActions", "command");
    speak_list(&result, "problems", "hint");
    return result;
}
