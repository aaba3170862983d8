/* ask.c - asks the user, through a client that can, before a tool deletes or overwrites what somebody made. */

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "mcp/internal.h"
#include "os/clock.h"

#define ARGS_SHOWN 400 /* bytes of the arguments in the question */
#define LOOK_MS    20

enum { UNANSWERED, ACCEPTED, DECLINED };

static stet_value question_id(int64_t number) {
    return stet_value_stringf("stet-%lld", (long long)number);
}

void mcp_answered(stet_mcp_server *s, const stet_rpc_message *m) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t at = 0; stet_map_next(&s->requests, &at, &key, &len, &slot);) {
        mcp_request *r = slot->p;
        int64_t number = atomic_load(&r->question);
        stet_value id = question_id(number);
        bool meant = number > 0 && stet_value_equal(id, m->id);
        stet_value_release(id);
        if (!meant)
            continue;
        /* An error is no consent: a client that can't ask says so by it. */
        atomic_store(&r->reply,
                     stet_value_text_is(stet_value_get(m->result, "action"), "accept") ? ACCEPTED : DECLINED);
        return;
    }
    mcp_log(s, STET_MCP_LOG_INFO, "ignored a response");
}

static void put_question(mcp_request *r, const stet_op *op, stet_value args) {
    stet_value params = stet_value_object(), schema = stet_value_object();
    char *tool = stet_strdup(op->name);
    size_t len;
    char *text = stet_json_print(args, STET_JSON_CANONICAL, &len);
    for (char *c = tool; *c; c++)
        *c = *c == ' ' || *c == '-' ? '_' : *c;
    size_t shown = len <= ARGS_SHOWN ? len : stet_utf8_valid_prefix(text, ARGS_SHOWN);
    stet_value_put(&params, "message",
                   stet_value_stringf("stet_%s may delete or overwrite what somebody made. Run it with %.*s%s ?", tool,
                                      (int)shown, text, shown < len ? "..." : ""));
    stet_value_put(&schema, "type", stet_value_string("object"));
    stet_value_put(&schema, "properties", stet_value_object());
    stet_value_put(&params, "requestedSchema", schema);
    stet_buf out = STET_BUF(0);
    stet_rpc_write_request(&out, question_id(atomic_load(&r->question)), "elicitation/create", params);
    mcp_tell(r->s, r, false, &out, NULL);
    stet_free(text);
    stet_free(tool);
}

stet_status mcp_ask(mcp_request *r, const stet_op *op, stet_value args, stet_error *err) {
    stet_mcp_server *s = r->s;
    if (!atomic_load(&s->asks) || r->modern || s->o.threads == 0 || !stet_op_destroys(op, args))
        return STET_OK;
    atomic_store(&r->reply, UNANSWERED);
    atomic_store(&r->question, atomic_fetch_add(&s->questions, 1) + 1);
    put_question(r, op, args);
    while (atomic_load(&r->reply) == UNANSWERED) {
        if (atomic_load(&r->cancelled) || atomic_load(&s->stopping))
            return stet_fail(err, STET_CANCELLED, "cancelled");
        if (atomic_load(&s->deaf))
            return stet_fail(err, STET_DENIED, "nobody can be asked any more: the client has closed its side");
        stet_clock_sleep_ms(LOOK_MS);
    }
    atomic_store(&r->question, 0);
    if (atomic_load(&r->reply) == ACCEPTED)
        return STET_OK;
    stet_fail(err, STET_DENIED, "the user was asked and did not agree: nothing was changed");
    stet_hint(err, "ask the user what to do instead");
    return STET_DENIED;
}
