/* tool.c - which operations are offered as MCP tools, and how they are described. */

#include "mcp/tool.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "cli/args.h"
#include "mcp/compact.h"

#define EXAMPLE_WORDS 64

struct stet_mcp_tools {
    const stet_op **at; /* sorted by the tool's name */
    size_t len;
    bool result_tool;
    stet_mcp_filter filter; /* its arrays are ours */
    stet_value full;        /* the rendered list, null until asked for */
};

void stet_mcp_tool_name(const stet_op *op, char out[STET_MCP_TOOL_NAME_MAX]) {
    size_t n = 0;
    for (const char *c = "stet_"; *c; c++)
        out[n++] = *c;
    for (const char *c = op->name; *c && n + 1 < STET_MCP_TOOL_NAME_MAX; c++)
        out[n++] = *c == ' ' || *c == '-' ? '_' : *c;
    out[n] = 0;
}

/* `*` for any run of characters; blanks and hyphens are underscores. Without recursion: the last star is tried again
 * one character further on. */
static bool fits(const char *pattern, const char *name) {
    const char *star = NULL, *again = NULL;
    while (*name) {
        char p = *pattern == ' ' || *pattern == '-' ? '_' : *pattern;
        if (p == '*') {
            star = ++pattern;
            again = name;
        } else if (p == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool fits_tool(const char *pattern, const char *tool) {
    return fits(pattern, tool) || fits(pattern, tool + strlen("stet_"));
}

static bool fits_any(stet_value patterns, const char *tool) {
    for (size_t i = 0; i < stet_value_count(patterns); i++) {
        stet_value pattern = stet_value_at(patterns, i);
        if (fits_tool(stet_value_as_string(&pattern, NULL), tool))
            return true;
    }
    return false;
}

static bool can_change(const stet_op *op) {
    return !(op->flags & STET_OP_READ_ONLY) || (op->flags & STET_OP_DESTRUCTIVE);
}

/* What whole jobs need, from an empty directory to a run that is found again and repeated. */
static const char *const job_tools[] = {
    "get",       "init",       "pattern check", "pattern write", "piece send", "queue add", "queue work", "run",
    "runs logs", "runs rerun", "runs resume",   "runs search",   "runs show",  "set",       "status",     "why",
};

static bool is_job_tool(const stet_op *op) {
    for (size_t i = 0; i < sizeof job_tools / sizeof *job_tools; i++)
        if (strcmp(job_tools[i], op->name) == 0)
            return true;
    return false;
}

static bool offered(const stet_mcp_filter *f, const stet_op *op) {
    char name[STET_MCP_TOOL_NAME_MAX];
    stet_mcp_tool_name(op, name);
    if (op->flags & STET_OP_CLI_ONLY)
        return false;
    bool in = stet_value_count(f->allow) ? fits_any(f->allow, name) : f->all || is_job_tool(op);
    return in && !fits_any(f->deny, name) && !(f->read_only && can_change(op));
}

/* A list that guards something must not hold a word that guards nothing. */
static stet_status check_patterns(stet_value patterns, const char *flag, stet_error *err) {
    for (size_t i = 0; i < stet_value_count(patterns); i++) {
        stet_value pattern = stet_value_at(patterns, i);
        const char *text = stet_value_as_string(&pattern, NULL);
        stet_suggest s = stet_suggest_begin(text);
        bool some = fits_tool(text, STET_MCP_RESULT_TOOL);
        for (size_t k = 0; k < stet_op_count() && !some; k++) {
            char name[STET_MCP_TOOL_NAME_MAX];
            stet_mcp_tool_name(stet_op_at(k), name);
            some = fits_tool(text, name) && !(stet_op_at(k)->flags & STET_OP_CLI_ONLY);
            stet_suggest_offer(&s, stet_op_at(k)->name);
        }
        if (some)
            continue;
        stet_fail(err, STET_INVALID, "%s: no tool fits \"%.100s\"", flag, text);
        if (s.best)
            stet_hint(err, "did you mean \"%s\"?", s.best);
        stet_hint(err, "`stet mcp --list --all-tools` lists all tools");
        return STET_INVALID;
    }
    return STET_OK;
}

static int by_tool_name(const void *a, const void *b) {
    char x[STET_MCP_TOOL_NAME_MAX], y[STET_MCP_TOOL_NAME_MAX];
    stet_mcp_tool_name(*(const stet_op *const *)a, x);
    stet_mcp_tool_name(*(const stet_op *const *)b, y);
    return strcmp(x, y);
}

stet_status stet_mcp_tools_new(const stet_mcp_filter *filter, stet_mcp_tools **out, stet_error *err) {
    stet_status status = check_patterns(filter->allow, "--allow", err);
    if (status == STET_OK)
        status = check_patterns(filter->deny, "--deny", err);
    if (status != STET_OK)
        return status;
    stet_mcp_tools *t = stet_alloc_zero(sizeof *t);
    t->filter = *filter;
    stet_value_retain(t->filter.allow);
    stet_value_retain(t->filter.deny);
    t->at = stet_alloc(stet_op_count() * sizeof(const stet_op *));
    for (size_t i = 0; i < stet_op_count(); i++)
        if (offered(filter, stet_op_at(i)))
            t->at[t->len++] = stet_op_at(i);
    qsort(t->at, t->len, sizeof(const stet_op *), by_tool_name);
    t->result_tool = !fits_any(filter->deny, STET_MCP_RESULT_TOOL);
    *out = t;
    return STET_OK;
}

void stet_mcp_tools_free(stet_mcp_tools *t) {
    if (!t)
        return;
    stet_value_release(t->filter.allow);
    stet_value_release(t->filter.deny);
    stet_value_release(t->full);
    free(t->at);
    free(t);
}

const stet_op *stet_mcp_tools_find(const stet_mcp_tools *t, const char *name) {
    for (size_t i = 0; i < t->len; i++) {
        char own[STET_MCP_TOOL_NAME_MAX];
        stet_mcp_tool_name(t->at[i], own);
        if (strcmp(own, name) == 0)
            return t->at[i];
    }
    return NULL;
}

bool stet_mcp_tools_offer(const stet_mcp_tools *t, const stet_op *op) {
    for (size_t i = 0; i < t->len; i++)
        if (t->at[i] == op)
            return true;
    return false;
}

bool stet_mcp_tools_permit(const stet_mcp_tools *t, const stet_op *op) {
    stet_mcp_filter all = t->filter;
    all.all = true;
    return offered(&all, op);
}

bool stet_mcp_tools_offer_result(const stet_mcp_tools *t) {
    return t->result_tool;
}

void stet_mcp_tools_explain(const stet_mcp_tools *t, const char *name, stet_buf *out) {
    stet_suggest s = stet_suggest_begin(name);
    static const char format[] = "unknown tool \"%.100s\"";
    stet_buf_printf(out, format, name);
    for (size_t i = 0; i < stet_op_count(); i++) {
        char own[STET_MCP_TOOL_NAME_MAX];
        const stet_op *op = stet_op_at(i);
        stet_mcp_tool_name(op, own);
        if (strcmp(own, name) != 0)
            continue;
        if (op->flags & STET_OP_CLI_ONLY)
            stet_buf_str(out, ": it is a command of the command line alone");
        else if (t->filter.read_only && can_change(op))
            stet_buf_str(out, ": this server is read-only");
        else
            stet_buf_str(out, ": this server does not offer it (--all-tools, --allow and --deny decide)");
        return;
    }
    char best[STET_MCP_TOOL_NAME_MAX] = "";
    for (size_t i = 0; i < t->len; i++) {
        char own[STET_MCP_TOOL_NAME_MAX];
        stet_mcp_tool_name(t->at[i], own);
        const char *before = s.best;
        stet_suggest_offer(&s, own);
        if (s.best != before)
            memcpy(best, own, sizeof best);
        s.best = s.best ? best : NULL;
    }
    if (best[0])
        stet_buf_printf(out, "; did you mean %s?", best);
}

/* Words as a shell would cut them, for the plain part of its language: blanks, quotes, backslashes. Returns how many,
 * or -1 for anything else. The words point into `text`, which is changed. */
static int split_words(char *text, char *words[EXAMPLE_WORDS]) {
    int n = 0;
    char *in = text, *out = text;
    for (;;) {
        while (*in == ' ')
            in++;
        if (!*in)
            return n;
        if (n == EXAMPLE_WORDS)
            return -1;
        words[n++] = out;
        char quote = 0;
        for (; *in && (quote || *in != ' '); in++) {
            if (quote ? *in == quote : *in == '\'' || *in == '"')
                quote = quote ? 0 : *in;
            else if (*in == '\\' && quote != '\'' && in[1])
                *out++ = *++in;
            else if (!quote && strchr("|<>;&$`(){}*?#\n", *in) && (*in != '#' || in == text || in[-1] == ' '))
                return -1;
            else if (quote == '"' && (*in == '$' || *in == '`'))
                return -1;
            else
                *out++ = *in;
        }
        if (quote)
            return -1;
        bool last = !*in;
        in += !last;
        *out++ = 0;
        if (last)
            return n;
    }
}

bool stet_mcp_tool_example(const stet_op *op, const stet_example *example, stet_value *out) {
    char *text = stet_strdup(example->command), *words[EXAMPLE_WORDS];
    int count = split_words(text, words);
    stet_cli_words parsed = {0};
    stet_error err = STET_ERROR_INIT;
    stet_value checked;
    bool good = count > 0 && stet_cli_parse(count, words, &parsed, &err) == STET_OK && parsed.op == op &&
                !parsed.help && !parsed.reads_stdin && !parsed.project;
    if (good && stet_op_check_args(op, parsed.given, &checked, &err) == STET_OK) {
        stet_value_release(checked);
        *out = stet_value_retain(parsed.given);
    } else {
        good = false;
    }
    stet_error_clear(&err);
    stet_cli_words_release(&parsed);
    free(text);
    return good;
}

#define PAGE_SCHEMA                                                                                                    \
    "{\"type\":\"object\",\"description\":\"A part of a result that is too large for one answer: its JSON text from "  \
    "`offset` on. "                                                                                                    \
    "The next part: tool " STET_MCP_RESULT_TOOL " with this `result` and `next` as `offset`.\","                       \
    "\"required\":[\"page\"],\"additionalProperties\":false,\"properties\":{\"page\":{\"type\":\"object\","            \
    "\"required\":[\"result\",\"bytes\",\"offset\",\"next\",\"text\"],\"additionalProperties\":false,"                 \
    "\"properties\":{\"result\":{\"type\":\"string\"},\"bytes\":{\"type\":\"integer\"},"                               \
    "\"offset\":{\"type\":\"integer\"},\"next\":{\"type\":[\"integer\",\"null\"]},\"text\":{\"type\":\"string\"}}}}}"

static stet_value literal(const char *json) {
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    if (stet_json_parse(json, strlen(json), &v, &err) == STET_OK)
        return v;
    stet_error_clear(&err);
    return stet_value_object();
}

/* The operation's schema, or a page of its result. References into the schema keep their meaning: its definitions move
 * to the root. */
static stet_value output_schema(const stet_op *op, bool whole) {
    if (!whole)
        return literal("{\"type\":\"object\"}");
    stet_value own = stet_op_result_schema(op), schema = stet_value_object(), either = stet_value_array(), defs;
    stet_value_put(&schema, "type", stet_value_string("object"));
    if (stet_value_find(own, "$defs", 5, &defs)) {
        stet_value_put(&schema, "$defs", stet_value_retain(defs));
        stet_value_remove(&own, "$defs", 5);
    }
    stet_value_push(&either, own);
    stet_value_push(&either, literal(PAGE_SCHEMA));
    stet_value_put(&schema, "anyOf", either);
    return schema;
}

static stet_value describe(const stet_op *op, stet_value examples) {
    stet_buf text = STET_BUF(65536);
    stet_buf_printf(&text, "%s.", op->summary);
    if (op->description)
        stet_buf_printf(&text, "\n\n%s", op->description);
    for (size_t i = 0; i < stet_value_count(examples); i++) {
        stet_value example = stet_value_at(examples, i), purpose = stet_value_get(example, "purpose");
        stet_buf_printf(&text, "%s%s: ", i ? "\n" : "\n\nExamples:\n", stet_value_as_string(&purpose, NULL));
        stet_json_write(&text, stet_value_get(example, "arguments"), STET_JSON_CANONICAL);
    }
    stet_value v = stet_value_string(stet_buf_cstr(&text));
    stet_buf_release(&text);
    return v;
}

static stet_value annotations(const stet_op *op) {
    stet_value v = stet_value_object();
    bool read_only = !can_change(op);
    stet_value_put(&v, "title", stet_value_string(op->summary));
    stet_value_put(&v, "readOnlyHint", stet_value_bool(read_only));
    stet_value_put(&v, "destructiveHint", stet_value_bool(op->flags & STET_OP_DESTRUCTIVE));
    stet_value_put(&v, "idempotentHint", stet_value_bool(read_only || (op->flags & STET_OP_IDEMPOTENT)));
    if (read_only)
        stet_value_put(&v, "openWorldHint", stet_value_bool(false));
    return v;
}

static stet_value render(const stet_op *op, bool whole) {
    char name[STET_MCP_TOOL_NAME_MAX];
    stet_mcp_tool_name(op, name);
    stet_value v = stet_value_object(), examples = stet_value_array(), arguments = stet_value_array(),
               schema = stet_op_args_schema(op, STET_SPELL_NAMES);
    for (const stet_example *e = op->examples; e && e->command; e++) {
        stet_value given, example;
        if (!stet_mcp_tool_example(op, e, &given))
            continue;
        example = stet_value_object();
        stet_value_put(&example, "purpose", stet_value_string(e->purpose ? e->purpose : ""));
        stet_value_put(&example, "arguments", stet_value_retain(given));
        stet_value_push(&examples, example);
        stet_value_push(&arguments, given);
    }
    if (whole) {
        stet_value_put(&schema, "examples", arguments);
    } else {
        stet_value_release(arguments);
        stet_mcp_shorten(&schema);
        stet_mcp_add_fields(op, &schema);
    }
    stet_value_put(&v, "name", stet_value_string(name));
    stet_value_put(&v, "title", stet_value_string(op->summary));
    stet_value_put(&v, "description", describe(op, examples));
    stet_value_put(&v, "inputSchema", schema);
    stet_value_put(&v, "outputSchema", output_schema(op, whole));
    stet_value_put(&v, "annotations", annotations(op));
    stet_value_release(examples);
    return v;
}

static stet_value render_result_tool(bool whole) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "name", stet_value_string(STET_MCP_RESULT_TOOL));
    stet_value_put(&v, "title", stet_value_string("Read a further page of a long result"));
    stet_value_put(&v, "description",
                   stet_value_string(
                       "Read a further page of a long result.\n\nA tool whose result is too large for one answer gives "
                       "{\"page\": {\"result\", \"next\", ...}}: a part of the result's JSON text. This tool gives the "
                       "part that begins at `offset`. The latest results are kept while the server runs."));
    stet_value_put(
        &v, "inputSchema",
        literal("{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"result\"],\"properties\":{"
                "\"result\":{\"type\":\"string\",\"description\":\"As `page.result` says\"},"
                "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,\"description\":\"The first byte, as "
                "`page.next` says\"}}}"));
    stet_value_put(&v, "outputSchema", literal(whole ? PAGE_SCHEMA : "{\"type\":\"object\"}"));
    stet_value_put(
        &v, "annotations",
        literal("{\"title\":\"Read a further page of a long result\",\"readOnlyHint\":true,\"destructiveHint\":"
                "false,\"idempotentHint\":true,\"openWorldHint\":false}"));
    return v;
}

stet_status stet_mcp_result_args(const stet_value *args, stet_value *id, int64_t *offset, stet_error *err) {
    stet_value at;
    *offset = 0;
    for (size_t i = 0; i < stet_value_count(*args); i++) {
        const char *key = stet_value_key_at(*args, i, NULL);
        if (strcmp(key, "result") != 0 && strcmp(key, "offset") != 0)
            return stet_fail(err, STET_INVALID, "%s has no parameter \"%.100s\"; it takes: result, offset",
                             STET_MCP_RESULT_TOOL, key);
    }
    *id = stet_value_get(*args, "result");
    if (stet_value_type(*id) != STET_TYPE_STRING)
        return stet_fail(err, STET_INVALID, "result: a string expected");
    if (!stet_value_find(*args, "offset", 6, &at))
        return STET_OK;
    if (stet_value_type(at) != STET_TYPE_INT || stet_value_as_int(at) < 0)
        return stet_fail(err, STET_INVALID, "offset: an integer of at least 0 expected");
    *offset = stet_value_as_int(at);
    return STET_OK;
}

/* In the order of names; "stet_result" takes its place among them. */
static stet_value render_all(const stet_mcp_tools *t) {
    stet_value list = stet_value_array();
    bool pending = t->result_tool;
    for (size_t i = 0; i < t->len; i++) {
        char name[STET_MCP_TOOL_NAME_MAX];
        stet_mcp_tool_name(t->at[i], name);
        if (pending && strcmp(STET_MCP_RESULT_TOOL, name) < 0) {
            stet_value_push(&list, render_result_tool(t->filter.whole));
            pending = false;
        }
        stet_value_push(&list, render(t->at[i], t->filter.whole));
    }
    if (pending)
        stet_value_push(&list, render_result_tool(t->filter.whole));
    return list;
}

stet_value stet_mcp_tools_list(stet_mcp_tools *t, stet_mcp_detail detail) {
    if (stet_value_type(t->full) == STET_TYPE_NULL)
        t->full = render_all(t);
    stet_value list = stet_value_retain(t->full);
    for (size_t i = 0; detail != STET_MCP_STRUCTURED && i < stet_value_count(list); i++) {
        stet_value tool = stet_value_retain(stet_value_at(list, i));
        stet_value_remove(&tool, "title", 5);
        stet_value_remove(&tool, "outputSchema", 12);
        if (detail == STET_MCP_PLAIN)
            stet_value_remove(&tool, "annotations", 11);
        stet_value_put_at(&list, i, tool);
    }
    for (size_t i = 0; detail == STET_MCP_STRUCTURED && i < stet_value_count(list); i++) { /* the title is above it */
        stet_value tool = stet_value_retain(stet_value_at(list, i)), notes;
        notes = stet_value_retain(stet_value_get(tool, "annotations"));
        stet_value_remove(&notes, "title", 5);
        stet_value_put(&tool, "annotations", notes);
        stet_value_put_at(&list, i, tool);
    }
    return list;
}
