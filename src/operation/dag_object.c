/* dag_object.c - the operations dag show, put, commit, merge and excise: single objects of the repository. */

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "operation/repo_common.h"
#include "operation/text.h"
#include "repo/history.h"
#include "repo/hub.h"

/* The value of an object: that of a datum, of a node that is evaluated, of the root of a DAG, of the result of an
 * exec. */
static stet_status value_of(stet_repo *r, stet_hash id, stet_record_type type, stet_value record, stet_value *out,
                            stet_error *err) {
    stet_hash datum = id, dag = id;
    stet_status st = STET_OK;
    switch (type) {
    case STET_RECORD_NODE:
        st = stet_repo_eval(r, id, &datum, err);
        return st == STET_OK ? stet_repo_value(r, datum, out, err) : st;
    case STET_RECORD_DATUM:
        return stet_repo_value(r, datum, out, err);
    case STET_RECORD_EXEC:
        stet_hash_of_text(stet_value_get(record, "result"), &dag);
        return stet_repo_dag_value(r, dag, out, err);
    case STET_RECORD_DAG:
        return stet_repo_dag_value(r, dag, out, err);
    default:
        return stet_fail(err, STET_INVALID, "a %s has no value: name a datum, a node, a dag or an exec",
                         stet_record_type_name(type));
    }
}

static stet_status show_object(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_hash id;
    stet_record_type type;
    stet_value name = stet_value_get(args, "object"), record, value;
    stet_status st = stet_history_resolve(r, stet_value_as_string(&name, NULL), &id, &type, err);
    if (st != STET_OK)
        return st;
    st = stet_repo_get_any(r, id, &type, &record, err);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "id", stet_hash_text(id));
    stet_value_put(result, "type", stet_value_string(stet_record_type_name(type)));
    stet_value_put(result, "record", record);
    if (!stet_value_as_bool(stet_value_get(args, "value")))
        return STET_OK;
    st = value_of(r, id, type, record, &value, err);
    if (st == STET_OK)
        stet_value_put(result, "value", value);
    return st;
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, show_object, result, err);
}

static void show_render(stet_render *r, stet_value result) {
    stet_value value, id = stet_value_get(result, "id"), type = stet_value_get(result, "type");
    if (!stet_value_find(result, "value", 5, &value)) {
        stet_text_styled(r, STET_STYLE_BOLD, stet_value_as_string(&type, NULL));
        stet_buf_char(r->out, ' ');
        stet_buf_str(r->out, stet_value_as_string(&id, NULL));
        stet_buf_char(r->out, '\n');
        value = stet_value_get(result, "record");
    }
    char *text = stet_json_print(value, STET_JSON_PRETTY, NULL);
    stet_buf_str(r->out, text);
    stet_free(text);
}

static bool removes(stet_value args) {
    return stet_value_as_bool(stet_value_get(args, "remove"));
}

/* The DAG to commit: an existing one, or a new one that holds the value. Nothing is set with --remove. */
static stet_status dag_of(stet_repo *r, stet_value args, stet_hash *dag, stet_error *err) {
    stet_value named = stet_value_get(args, "dag"), value;
    bool literal = stet_value_find(args, "value", 5, &value), gone = removes(args);
    const char *text = stet_value_as_string(&named, NULL);
    stet_record_type type;
    if ((text != NULL) + literal + gone != 1)
        return stet_fail(err, STET_INVALID, "one of these is needed: a VALUE, --dag, or --remove");
    if (gone)
        return STET_OK;
    if (literal)
        return stet_repo_put_result(r, value, dag, err);
    stet_status st = stet_history_resolve(r, text, dag, &type, err);
    if (st == STET_OK && type == STET_RECORD_NODE)
        return stet_dag_id(*dag, stet_value_null(), stet_repo_sink(r), dag, err);
    return st == STET_OK && type != STET_RECORD_DAG
               ? stet_fail(err, STET_INVALID, "\"%.200s\" is a %s, and neither a dag nor a node", text,
                           stet_record_type_name(type))
               : st;
}

/* For adapters, which answer with the id of a DAG in the repository that the request names. */
static stet_status put_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repo *own = NULL;
    stet_hub *hub = NULL;
    stet_hash dag;
    stet_value in = stet_value_get(args, "in");
    stet_status st = STET_OK;
    if (stet_value_type(in) == STET_TYPE_STRING)
        st = stet_hub_open(stet_value_as_string(&in, NULL), 0, &hub, err);
    else if ((st = stet_repo_op_open(ctx, &own, err)) == STET_OK)
        hub = stet_hub_of_repo(own);
    if (st == STET_OK && !stet_hub_repo(hub))
        st = stet_fail(err, STET_UNSUPPORTED, "a DAG can be stored in a repository on this machine only");
    if (st == STET_OK)
        st = stet_repo_put_result(stet_hub_repo(hub), stet_value_get(args, "value"), &dag, err);
    if (st == STET_OK)
        st = stet_hub_send(hub, stet_hub_repo(hub), &dag, 1, err);
    stet_value record = stet_value_null();
    stet_hash root = {{0}};
    if (st == STET_OK)
        st = stet_repo_get(stet_hub_repo(hub), dag, STET_RECORD_DAG, &record, err);
    if (st == STET_OK && !stet_hash_of_text(stet_value_get(record, "root"), &root))
        st = stet_fail(err, STET_CORRUPT, "the DAG that was stored has no root");
    stet_value_release(record);
    stet_hub_close(hub);
    stet_repo_close(own);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "dag", stet_hash_text(dag));
    stet_value_put(result, "node", stet_hash_text(root));
    return STET_OK;
}

static void put_render(stet_render *r, stet_value result) {
    stet_value id = stet_value_get(result, "dag");
    stet_buf_printf(r->out, "%s\n", stet_value_as_string(&id, NULL));
}

/* In a transaction. `*changed`: the head moved. */
static stet_status commit_on(stet_repo *r, stet_value args, const char *head, stet_hash *commit, stet_hash *dag,
                             bool *changed, stet_error *err) {
    stet_value name = stet_value_get(args, "name"), message = stet_value_get(args, "message");
    stet_hash before = {{0}};
    bool there = false;
    stet_status st = dag_of(r, args, dag, err);
    if (st != STET_OK)
        return st;
    char *ref = stet_asprintf("refs/heads/%s", head);
    st = stet_repo_ref(r, ref, &there, &before, err);
    stet_free(ref);
    if (st != STET_OK)
        return st;
    st = stet_history_commit(r, head, stet_value_as_string(&name, NULL), removes(args) ? NULL : dag,
                             stet_value_text(&message, ""), commit, err);
    *changed = st == STET_OK && (!there || !stet_hash_equal(before, *commit));
    return st;
}

static stet_status commit_dag(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold = stet_value_get(args, "head");
    const char *head = stet_value_text(&hold, "main");
    stet_hash dag = {{0}}, commit;
    bool changed;
    stet_status st = stet_repo_begin(r, err);
    if (st != STET_OK)
        return st;
    st = commit_on(r, args, head, &commit, &dag, &changed, err);
    if (st != STET_OK) {
        stet_repo_rollback(r);
        return st;
    }
    st = stet_repo_commit(r, err);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "head", stet_value_string(head));
    stet_value_put(result, "commit", stet_hash_text(commit));
    stet_value_put(result, "dag", removes(args) ? stet_value_null() : stet_hash_text(dag));
    stet_value_put(result, "changed", stet_value_bool(changed));
    return STET_OK;
}

static stet_status commit_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, commit_dag, result, err);
}

static void commit_render(stet_render *r, stet_value result) {
    stet_value head = stet_value_get(result, "head");
    char id[16];
    stet_repo_op_short(stet_value_get(result, "commit"), id);
    stet_buf_printf(r->out, "%s is %s %s\n", stet_value_as_string(&head, NULL),
                    stet_value_as_bool(stet_value_get(result, "changed")) ? "now" : "as before", id);
}

static stet_status merge_heads(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    static const char *const kinds[] = {"same", "forward", "merged"};
    stet_hash other, commit;
    stet_merge_kind kind;
    stet_value head = stet_value_get(args, "head"), from = stet_value_get(args, "from"),
               message = stet_value_get(args, "message"), prefer = stet_value_get(args, "prefer");
    const char *on = stet_value_text(&head, "main"), *side = stet_value_text(&prefer, "");
    stet_merge_choice choice = strcmp(side, "ours") == 0     ? STET_MERGE_OURS
                               : strcmp(side, "theirs") == 0 ? STET_MERGE_THEIRS
                                                             : STET_MERGE_REFUSE;
    stet_status st = stet_history_resolve_commit(r, stet_value_as_string(&from, NULL), &other, err);
    if (st != STET_OK)
        return st;
    char *default_message = stet_asprintf("merge %s", stet_value_as_string(&from, NULL));
    st = stet_history_merge(r, on, other, choice, stet_value_as_bool(stet_value_get(args, "pins")),
                            stet_value_text(&message, default_message), &commit, &kind, err);
    stet_free(default_message);
    if (st == STET_CONFLICT)
        stet_hint(err, "--prefer ours or --prefer theirs");
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "head", stet_value_string(on));
    stet_value_put(result, "commit", stet_hash_text(commit));
    stet_value_put(result, "kind", stet_value_string(kinds[kind]));
    return STET_OK;
}

static stet_status merge_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, merge_heads, result, err);
}

static void merge_render(stet_render *r, stet_value result) {
    stet_value head = stet_value_get(result, "head"), kind = stet_value_get(result, "kind");
    const char *how = stet_value_as_string(&kind, NULL);
    char id[16];
    stet_repo_op_short(stet_value_get(result, "commit"), id);
    stet_buf_printf(r->out, "%s is %s %s%s\n", stet_value_as_string(&head, NULL),
                    strcmp(how, "same") == 0 ? "as before" : "now", id,
                    strcmp(how, "forward") == 0  ? " (fast-forward)"
                    : strcmp(how, "merged") == 0 ? " (merged)"
                                                 : "");
}

static stet_status excise_object(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_hash id;
    stet_record_type type;
    stet_value name = stet_value_get(args, "object"), reason = stet_value_get(args, "reason");
    stet_status st = stet_history_resolve(r, stet_value_as_string(&name, NULL), &id, &type, err);
    if (st != STET_OK)
        return st;
    st = stet_repo_excise(r, id, stet_value_as_string(&reason, NULL), err);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "id", stet_hash_text(id));
    stet_value_put(result, "type", stet_value_string(stet_record_type_name(type)));
    stet_value_put(result, "excised", stet_value_bool(true));
    return STET_OK;
}

static stet_status excise_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, excise_object, result, err);
}

static void excise_render(stet_render *r, stet_value result) {
    stet_value id = stet_value_get(result, "id"), type = stet_value_get(result, "type");
    stet_buf_printf(r->out, "excised %s %s\n", stet_value_as_string(&type, NULL), stet_value_as_string(&id, NULL));
}

#define OBJECT(text)                                                                                                   \
    {                                                                                                                  \
        .name = "object", .type = STET_PARAM_STRING, .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,             \
        .metavar = "OBJECT", .summary = text                                                                           \
    }

static const stet_param show_params[] = {
    OBJECT("An id or its first digits (6 at least), a ref, a head, or HEAD:NAME for a DAG of its tree"),
    {.name = "value", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "What it means, as JSON"},
    {0},
};
static const stet_param put_params[] = {
    {.name = "value",
     .type = STET_PARAM_JSON,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "VALUE",
     .summary = "The value of its root, in JSON"},
    {.name = "in",
     .type = STET_PARAM_STRING,
     .metavar = "URI",
     .summary = "The repository to store it in: snapshot.remote of an adapter's request. Default: the project's own"},
    {0},
};
static const stet_param commit_params[] = {
    {.name = "name",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "NAME",
     .summary = "What the DAG is called in the tree"},
    {.name = "value",
     .type = STET_PARAM_JSON,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "VALUE",
     .summary = "A literal, in JSON"},
    {.name = "dag",
     .type = STET_PARAM_STRING,
     .metavar = "OBJECT",
     .summary = "A DAG or a node that is there, named as for dag show"},
    {.name = "remove", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "Take the name out of the tree"},
    {.name = "head", .type = STET_PARAM_STRING, .metavar = "HEAD", .summary = "On this head; without it main"},
    {.name = "message", .letter = 'm', .type = STET_PARAM_STRING, .metavar = "TEXT", .summary = "Why"},
    {0},
};
static const char *const sides[] = {"ours", "theirs", NULL};
static const stet_param merge_params[] = {
    {.name = "from",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "FROM",
     .summary = "A head, a remote's (origin/main), a ref or a commit"},
    {.name = "head", .type = STET_PARAM_STRING, .metavar = "HEAD", .summary = "Into this head; without it main"},
    {.name = "prefer",
     .type = STET_PARAM_ENUM,
     .choices = sides,
     .summary = "Whose DAG to take for a name that changed on both sides; without it that is a conflict"},
    {.name = "message", .letter = 'm', .type = STET_PARAM_STRING, .metavar = "TEXT", .summary = "Why"},
    {.name = "pins",
     .type = STET_PARAM_BOOL,
     .default_json = "true",
     .summary = "Use results of calls that the commit has; with --no-pins calls that were made there run here too"},
    {0},
};
static const stet_param excise_params[] = {
    OBJECT("A datum, a node, a DAG or an exec record, named as for dag show"),
    {.name = "reason",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REQUIRED,
     .metavar = "TEXT",
     .summary = "Why; it is kept in its place"},
    {0},
};

static const stet_example show_examples[] = {
    {"dag show main:report", "a DAG by its name"},
    {"dag show main:report --value", "its value"},
    {"dag show main", "the commit that a head is at"},
    {0},
};
static const stet_example commit_examples[] = {
    {"dag commit numbers '[1,2,3]' -m first", "a literal under a name"},
    {"dag commit copy --dag main:report --head side", "a DAG that is there, on another head"},
    {"dag commit report --remove", "take a name away"},
    {0},
};
static const stet_example put_examples[] = {{"dag put '{\"total\": 3}'", "store a result and print its id"}, {0}};
static const stet_example merge_examples[] = {
    {"dag merge origin/main", "take over what a remote's head has, after a fetch"},
    {"dag merge side --prefer theirs", "another head into main"},
    {0},
};
static const stet_example excise_examples[] = {
    {"dag excise main:report --reason 'holds a password'", "take the bytes of an object away for good"}, {0}};

const stet_op stet_ops_dag_object[] = {
    {.name = "dag show",
     .summary = "Show an object of the repository of calls, verified",
     .description =
         "The record as it is stored. With --value what it means: data as JSON, builtins evaluated, calls by "
         "their pinned results. What does not verify is not shown, and exit status 6 says so.",
     .params = show_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"id\",\"type\",\"record\"],\"additionalProperties\":false,"
                      "\"properties\":{\"id\":" REPO_ID
                      ",\"type\":{\"type\":\"string\"},\"record\":{\"type\":\"object\"},\"value\":{}}}",
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY,
     .run = show_run,
     .render = show_render},
    {.name = "dag put",
     .summary = "Store a value as a DAG and print its id",
     .description = "For execution adapters: the id is what an adapter answers as the result of a call. A DAG that "
                    "nothing names is deleted by gc after an hour.",
     .params = put_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"dag\",\"node\"],\"additionalProperties\":false,"
                      "\"properties\":{\"dag\":" REPO_ID ",\"node\":" REPO_ID "}}",
     .examples = put_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = put_run,
     .render = put_render},
    {.name = "dag commit",
     .summary = "Put a DAG under a name, in a new commit of a head",
     .description =
         "The commit also keeps which results are pinned for which calls at that time. The same DAG under the "
         "same name again is no new commit.",
     .params = commit_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"head\",\"commit\",\"dag\",\"changed\"],"
         "\"additionalProperties\":false,\"properties\":{\"head\":{\"type\":\"string\"},\"commit\":" REPO_ID
         ",\"dag\":" REPO_ID_OR_NULL ",\"changed\":{\"type\":\"boolean\"}}}",
     .examples = commit_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = commit_run,
     .render = commit_render},
    {.name = "dag merge",
     .summary = "Bring another commit into a head",
     .description =
         "Forward to it if the head is in its history, else by a commit with both as parents. A name whose DAG "
         "changed on one side is taken from there; changed on both it is a conflict, with exit status 4.",
     .params = merge_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"head\",\"commit\",\"kind\"],\"additionalProperties\":false,"
                      "\"properties\":{\"head\":{\"type\":\"string\"},\"commit\":" REPO_ID
                      ",\"kind\":{\"enum\":[\"same\",\"forward\",\"merged\"]}}}",
     .examples = merge_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = merge_run,
     .render = merge_render},
    {.name = "dag excise",
     .summary = "Take the bytes of an object away for good, and leave a tombstone",
     .description =
         "For what should never have been stored. Whoever reads it learns that it was excised, and why; it is "
         "not stored again. Calls whose result it was run again when asked for. Other repositories that have "
         "it keep it. There is no way back.",
     .params = excise_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"id\",\"type\",\"excised\"],\"additionalProperties\":false,"
         "\"properties\":{\"id\":" REPO_ID ",\"type\":{\"type\":\"string\"},\"excised\":{\"type\":\"boolean\"}}}",
     .examples = excise_examples,
     .flags = STET_OP_DESTRUCTIVE,
     .run = excise_run,
     .render = excise_render},
    {0},
};
