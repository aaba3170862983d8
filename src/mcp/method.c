/* method.c - what each method of the protocol does, on the protocol thread. */

#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "mcp/internal.h"
#include "mcp/prompt.h"

#define LIST_TTL_MS 300000 /* tools, prompts and templates stay the same as long as the server runs */

static const char instructions[] =
    "stet is a durable incremental computation engine: results that were computed and that nothing has contradicted "
    "since stand, and are not computed again. This server works on one project, a directory with .stet/ in it. Every "
    "tool is a command of `stet` with the same parameters; lists are cut to what a model needs, and `fields` gives "
    "more. "
    "A result too large for one answer comes as {\"page\": ...}; stet_result reads on. Failures carry {\"error\": "
    "{\"code\", \"message\", \"hint\"}}: the hint says what to do.";

typedef enum era { LEGACY = 1, MODERN = 2 } era;

bool mcp_list_page(const stet_mcp_server *s, stet_value list, const char *what, const char *order, const char *cursor,
                   stet_value *result) {
    size_t first = 0, n = stet_value_count(list);
    if (cursor) {
        if (strncmp(cursor, "after:", 6) != 0 || !cursor[6]) {
            stet_value_release(list);
            return false;
        }
        stet_value last = stet_value_string(cursor + 6);
        while (first < n && stet_value_compare(stet_value_get(stet_value_at(list, first), order), last) <= 0)
            first++;
        stet_value_release(last);
    }
    size_t end = n - first > s->o.page_size ? first + s->o.page_size : n;
    stet_value page = stet_value_array();
    for (size_t i = first; i < end; i++)
        stet_value_push(&page, stet_value_retain(stet_value_at(list, i)));
    *result = stet_value_object();
    if (end < n) {
        stet_value last = stet_value_get(stet_value_at(list, end - 1), order);
        stet_value_put(result, "nextCursor", stet_value_stringf("after:%s", stet_value_as_string(&last, NULL)));
    }
    stet_value_put(result, what, page);
    stet_value_release(list);
    return true;
}

void mcp_cacheable(const mcp_request *r, stet_value *result, int64_t ttl_ms, const char *scope) {
    if (!r->modern)
        return;
    stet_value_put(result, "ttlMs", stet_value_int(ttl_ms));
    stet_value_put(result, "cacheScope", stet_value_string(scope));
}

/* The cursor of a list request, NULL if there is none. False: refused. */
static bool read_cursor(mcp_request *r, stet_value params, stet_value *hold, const char **cursor) {
    *cursor = NULL;
    if (!stet_value_find(params, "cursor", 6, hold))
        return true;
    size_t len;
    *cursor = stet_value_type(*hold) == STET_TYPE_STRING ? stet_value_as_string(hold, &len) : NULL;
    if (*cursor && strlen(*cursor) == len)
        return true;
    mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "cursor: a string expected, as nextCursor gave it");
    return false;
}

static void answer_list(mcp_request *r, stet_value params, stet_value list, const char *what, const char *order) {
    stet_value hold, result;
    const char *cursor;
    if (!read_cursor(r, params, &hold, &cursor)) {
        stet_value_release(list);
        return;
    }
    if (!mcp_list_page(r->s, list, what, order, cursor, &result)) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "cursor: not one that nextCursor gave");
        return;
    }
    mcp_cacheable(r, &result, LIST_TTL_MS, "public");
    mcp_answer(r, result);
}

/* A string parameter of a request; NULL: refused. */
static const char *need_string(mcp_request *r, stet_value params, const char *name, stet_value *hold) {
    size_t len = 0;
    *hold = stet_value_get(params, name);
    const char *text = stet_value_type(*hold) == STET_TYPE_STRING ? stet_value_as_string(hold, &len) : NULL;
    if (text && strlen(text) == len)
        return text;
    mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "%s: a string expected", name);
    return NULL;
}

static stet_value capabilities(void) {
    stet_value v = stet_value_object(), resources = stet_value_object();
    stet_value_put(&resources, "subscribe", stet_value_bool(true));
    stet_value_put(&resources, "listChanged", stet_value_bool(true));
    stet_value_put(&v, "completions", stet_value_object());
    stet_value_put(&v, "tools", stet_value_object());
    stet_value_put(&v, "prompts", stet_value_object());
    stet_value_put(&v, "resources", resources);
    return v;
}

static void m_initialize(mcp_request *r, stet_value params) {
    static const struct {
        const char *version;
        stet_mcp_detail detail;
    } versions[] = {
        {NEWEST_LEGACY, STET_MCP_STRUCTURED},
        {"2025-06-18", STET_MCP_STRUCTURED},
        {BATCHED_VERSION, STET_MCP_ANNOTATED},
        {"2024-11-05", STET_MCP_PLAIN},
    };
    stet_mcp_server *s = r->s;
    stet_value hold, info = stet_value_get(params, "clientInfo");
    if (s->in_session) {
        mcp_refuse(r, STET_RPC_INVALID_REQUEST, stet_value_null(), "initialize was answered before");
        return;
    }
    const char *asked = need_string(r, params, "protocolVersion", &hold);
    if (!asked)
        return;
    if (stet_value_type(stet_value_get(params, "capabilities")) != STET_TYPE_OBJECT ||
        stet_value_type(info) != STET_TYPE_OBJECT) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(),
                   "initialize needs the objects capabilities and clientInfo");
        return;
    }
    size_t v = 0; /* an unknown version is answered with our newest, and the client decides */
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (strcmp(versions[i].version, asked) == 0)
            v = i;
    stet_value name = stet_value_get(info, "name");
    mcp_log(s, STET_MCP_LOG_INFO, "client %.100s, protocol %s", stet_value_text(&name, "?"), versions[v].version);
    s->in_session = true;
    s->detail = versions[v].detail;
    atomic_store(&s->asks, stet_value_type(stet_value_get(stet_value_get(params, "capabilities"), "elicitation")) ==
                               STET_TYPE_OBJECT);
    s->batches = strcmp(versions[v].version, BATCHED_VERSION) == 0;
    stet_value result = stet_value_object();
    stet_value_put(&result, "protocolVersion", stet_value_string(versions[v].version));
    stet_value able = capabilities();
    stet_value_put(&able, "logging", stet_value_object());
    stet_value_put(&result, "capabilities", able);
    stet_value_put(&result, "serverInfo", stet_value_retain(s->server_info));
    stet_value_put(&result, "instructions", stet_value_string(instructions));
    mcp_answer(r, result);
}

static void m_discover(mcp_request *r, stet_value params) {
    (void)params;
    stet_value result = stet_value_object(), versions = stet_value_array();
    stet_value_push(&versions, stet_value_string(MODERN_VERSION));
    stet_value_put(&result, "supportedVersions", versions);
    stet_value_put(&result, "capabilities", capabilities());
    stet_value_put(&result, "instructions", stet_value_string(instructions));
    mcp_cacheable(r, &result, LIST_TTL_MS, "public");
    mcp_answer(r, result);
}

static void m_ping(mcp_request *r, stet_value params) {
    (void)params;
    mcp_answer(r, stet_value_object());
}

static void m_tools_list(mcp_request *r, stet_value params) {
    answer_list(r, params, stet_mcp_tools_list(r->s->tools, r->detail), "tools", "name");
}

static void m_tools_call(mcp_request *r, stet_value params) {
    stet_mcp_server *s = r->s;
    stet_value hold, arguments;
    const char *name = need_string(r, params, "name", &hold);
    if (!name)
        return;
    if (!stet_value_find(params, "arguments", 9, &arguments))
        arguments = stet_value_null();
    else if (stet_value_type(arguments) != STET_TYPE_OBJECT) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "arguments: an object expected");
        return;
    }
    const stet_op *op = stet_mcp_tools_find(s->tools, name);
    bool pages = !op && stet_mcp_tools_offer_result(s->tools) && strcmp(name, STET_MCP_RESULT_TOOL) == 0;
    if (!op && !pages) {
        stet_buf why = STET_BUF(4096);
        stet_mcp_tools_explain(s->tools, name, &why);
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "%s", stet_buf_cstr(&why));
        stet_buf_release(&why);
        return;
    }
    r->op = op;
    r->args = stet_value_type(arguments) == STET_TYPE_NULL ? stet_value_object() : stet_value_retain(arguments);
    bool asks = op && op->flags & STET_OP_DESTRUCTIVE && atomic_load(&s->asks); /* people take their time */
    mcp_submit(r, mcp_run_tool, op && (op->flags & STET_OP_LONG || asks));
}

static void m_prompts_list(mcp_request *r, stet_value params) {
    answer_list(r, params, stet_mcp_prompts_list(r->s->tools, r->detail == STET_MCP_STRUCTURED), "prompts", "name");
}

static void m_prompts_get(mcp_request *r, stet_value params) {
    stet_value hold, result;
    stet_error err = STET_ERROR_INIT;
    const char *name = need_string(r, params, "name", &hold);
    if (!name)
        return;
    if (stet_mcp_prompt_get(r->s->tools, name, stet_value_get(params, "arguments"), &result, &err) == STET_OK)
        mcp_answer(r, result);
    else
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_error_value(&err), "%s", err.message);
    stet_error_clear(&err);
}

static void m_resources_list(mcp_request *r, stet_value params) {
    stet_value hold;
    const char *cursor;
    if (!read_cursor(r, params, &hold, &cursor))
        return;
    r->text = cursor ? stet_strdup(cursor) : NULL;
    mcp_submit(r, mcp_run_list, false);
}

static void m_templates_list(mcp_request *r, stet_value params) {
    stet_mcp_caller caller = mcp_caller(r);
    answer_list(r, params, stet_mcp_resource_templates(&caller), "resourceTemplates", "uriTemplate");
}

static void m_resources_read(mcp_request *r, stet_value params) {
    stet_value hold;
    const char *uri = need_string(r, params, "uri", &hold);
    if (!uri)
        return;
    r->text = stet_strdup(uri);
    mcp_submit(r, mcp_run_read, false);
}

static void m_subscribe(mcp_request *r, stet_value params) {
    stet_value hold, uris = stet_value_array();
    stet_mcp_caller caller = mcp_caller(r);
    const char *uri = need_string(r, params, "uri", &hold);
    if (uri && stet_mcp_resource_served(&caller, uri)) {
        stet_value_push(&uris, stet_value_retain(hold));
        mcp_subscribe(r, uris, false);
        return;
    }
    stet_value_release(uris);
    if (uri)
        mcp_refuse(r, STET_RPC_RESOURCE_NOT_FOUND, stet_value_null(), "there is no resource %.200s", uri);
}

static void m_unsubscribe(mcp_request *r, stet_value params) {
    stet_value hold;
    const char *uri = need_string(r, params, "uri", &hold);
    if (!uri)
        return;
    mcp_unsubscribe(r->s, uri);
    mcp_answer(r, stet_value_object());
}

static void m_listen(mcp_request *r, stet_value params) {
    stet_value filter = stet_value_get(params, "notifications"), list, wanted, uris = stet_value_array();
    stet_mcp_caller caller = mcp_caller(r);
    bool good = stet_value_type(filter) == STET_TYPE_OBJECT, lists = false;
    if (good && stet_value_find(filter, "resourcesListChanged", 20, &list)) {
        good = stet_value_type(list) == STET_TYPE_BOOL;
        lists = stet_value_as_bool(list);
    }
    if (good && stet_value_find(filter, "resourceSubscriptions", 21, &wanted)) {
        good = stet_value_type(wanted) == STET_TYPE_ARRAY && stet_value_count(wanted) <= STET_MCP_MAX_WATCHED;
        for (size_t i = 0; good && i < stet_value_count(wanted); i++) {
            stet_value uri = stet_value_at(wanted, i);
            size_t len = 0;
            const char *text = stet_value_as_string(&uri, &len);
            good = text != NULL;
            if (good && strlen(text) == len && stet_mcp_resource_served(&caller, text))
                stet_value_push(&uris, stet_value_retain(uri));
        }
    }
    if (good) {
        mcp_subscribe(r, uris, lists);
        return;
    }
    stet_value_release(uris);
    mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(),
               "notifications: an object expected, with resourcesListChanged (a boolean) and resourceSubscriptions (at "
               "most %d addresses)",
               STET_MCP_MAX_WATCHED);
}

const char *const mcp_levels[] = {"debug",    "info",  "notice",    "warning", "error",
                                  "critical", "alert", "emergency", NULL};

static void m_set_level(mcp_request *r, stet_value params) {
    stet_value hold;
    const char *level = need_string(r, params, "level", &hold);
    int at = 0;
    if (!level)
        return;
    while (mcp_levels[at] && strcmp(mcp_levels[at], level) != 0)
        at++;
    if (!mcp_levels[at]) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(),
                   "level: one of debug, info, notice, warning, error, critical, alert and emergency expected");
        return;
    }
    atomic_store(&r->s->told_from, at);
    mcp_answer(r, stet_value_object());
}

static void m_complete(mcp_request *r, stet_value params) {
    stet_value argument = stet_value_get(params, "argument");
    if (stet_value_type(stet_value_get(params, "ref")) != STET_TYPE_OBJECT ||
        stet_value_type(stet_value_get(argument, "name")) != STET_TYPE_STRING ||
        stet_value_type(stet_value_get(argument, "value")) != STET_TYPE_STRING) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(),
                   "the objects ref and argument are expected, with the strings name and value in the latter");
        return;
    }
    r->args = stet_value_retain(params);
    mcp_submit(r, mcp_run_complete, false);
}

static const struct {
    const char *name;
    unsigned eras;
    void (*run)(mcp_request *r, stet_value params);
} methods[] = {
    {"completion/complete", LEGACY | MODERN, m_complete},
    {"initialize", LEGACY, m_initialize},
    {"logging/setLevel", LEGACY, m_set_level},
    {"ping", LEGACY, m_ping},
    {"prompts/get", LEGACY | MODERN, m_prompts_get},
    {"prompts/list", LEGACY | MODERN, m_prompts_list},
    {"resources/list", LEGACY | MODERN, m_resources_list},
    {"resources/read", LEGACY | MODERN, m_resources_read},
    {"resources/subscribe", LEGACY, m_subscribe},
    {"resources/templates/list", LEGACY | MODERN, m_templates_list},
    {"resources/unsubscribe", LEGACY, m_unsubscribe},
    {"server/discover", MODERN, m_discover},
    {"subscriptions/listen", MODERN, m_listen},
    {"tools/call", LEGACY | MODERN, m_tools_call},
    {"tools/list", LEGACY | MODERN, m_tools_list},
};

void mcp_dispatch(mcp_request *r, const char *method, stet_value params) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, method) == 0 && (methods[i].eras & (r->modern ? MODERN : LEGACY))) {
            methods[i].run(r, params);
            return;
        }
    mcp_refuse(r, STET_RPC_METHOD_NOT_FOUND, stet_value_null(),
               "there is no method \"%.100s\" in this protocol version", method);
}

static mcp_request *request_of(stet_mcp_server *s, stet_value id) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t at = 0; stet_map_next(&s->requests, &at, &key, &len, &slot);)
        if (stet_value_equal(((mcp_request *)slot->p)->id, id))
            return slot->p;
    return NULL;
}

/* Notifications are never answered, right or wrong. A request sent without an id is not worked on either: nobody would
 * learn what became of it. */
void mcp_notice(stet_mcp_server *s, const char *method, stet_value params) {
    if (strcmp(method, "notifications/cancelled") != 0) {
        mcp_log(s, STET_MCP_LOG_INFO, "notification %.100s", method);
        return;
    }
    stet_value id = stet_value_get(params, "requestId");
    mcp_request *r = stet_rpc_id_valid(id) ? request_of(s, id) : NULL;
    if (r)
        mcp_drop(r);
}
