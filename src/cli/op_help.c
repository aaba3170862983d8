/* op_help.c - the operation `help`: the table as text, as JSON, as reference, as man page and as completion script. */

#include <string.h>

#include "base/suggest.h"
#include "cli/args.h"
#include "cli/help.h"
#include "operation/op.h"

#define TOPIC_MAX 128

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static stet_value param_value(const stet_param *p) {
    static const char *const types[] = {
        [STET_PARAM_STRING] = "string", [STET_PARAM_INT] = "int",   [STET_PARAM_NUMBER] = "number",
        [STET_PARAM_BOOL] = "bool",     [STET_PARAM_ENUM] = "enum", [STET_PARAM_JSON] = "json",
        [STET_PARAM_FILE] = "file",     [STET_PARAM_TIME] = "time", [STET_PARAM_PAIR] = "pair",
    };
    stet_value v = stet_value_object();
    stet_value_put(&v, "name", stet_value_string(p->name));
    stet_value_put(&v, "type", stet_value_string(types[p->type]));
    stet_value_put(&v, "summary", stet_value_string(p->summary ? p->summary : ""));
    stet_value_put(&v, "required", stet_value_bool(p->flags & STET_PARAM_REQUIRED));
    stet_value_put(&v, "positional", stet_value_bool(p->flags & STET_PARAM_POSITIONAL));
    stet_value_put(&v, "repeated", stet_value_bool(p->flags & STET_PARAM_REPEATED || p->type == STET_PARAM_PAIR));
    if (p->letter)
        stet_value_put(&v, "letter", stet_value_string_n(&p->letter, 1));
    return v;
}

static stet_value op_value(const stet_op *op) {
    static const struct {
        unsigned flag;
        const char *name;
    } flags[] = {
        {STET_OP_READ_ONLY, "readOnly"},    {STET_OP_DESTRUCTIVE, "destructive"},
        {STET_OP_IDEMPOTENT, "idempotent"}, {STET_OP_LONG, "long"},
        {STET_OP_COMMON, "common"},         {STET_OP_CLI_ONLY, "cliOnly"},
        {STET_OP_NO_PROJECT, "noProject"},
    };
    stet_value v = stet_value_object(), params = stet_value_array(), examples = stet_value_array(),
               names = stet_value_array();
    for (const stet_param *p = op->params; p && p->name; p++)
        if (!(p->flags & STET_PARAM_HIDDEN))
            stet_value_push(&params, param_value(p));
    for (const stet_example *e = op->examples; e && e->command; e++) {
        stet_value example = stet_value_object();
        stet_value_put(&example, "command", stet_value_string(e->command));
        stet_value_put(&example, "purpose", stet_value_string(e->purpose ? e->purpose : ""));
        stet_value_push(&examples, example);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (op->flags & flags[i].flag)
            stet_value_push(&names, stet_value_string(flags[i].name));
    stet_buf usage = STET_BUF(65536);
    stet_help_usage(&usage, op);
    stet_value_put(&v, "name", stet_value_string(op->name));
    stet_value_put(&v, "summary", stet_value_string(op->summary));
    stet_value_put(&v, "description", stet_value_string(op->description ? op->description : ""));
    stet_value_put(&v, "usage", stet_value_string(stet_buf_cstr(&usage)));
    stet_value_put(&v, "params", params);
    stet_value_put(&v, "examples", examples);
    stet_value_put(&v, "flags", names);
    stet_value_put(&v, "argumentsSchema", stet_op_args_schema(op, STET_SPELL_NAMES));
    stet_value_put(&v, "resultSchema", stet_op_result_schema(op));
    stet_buf_release(&usage);
    return v;
}

/* Joins the words with blanks. Text that is too long is cut, and then matches no operation. */
static void join_topic(stet_value words, char out[TOPIC_MAX]) {
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < stet_value_count(words); i++) {
        stet_value word = stet_value_at(words, i);
        const char *text = stet_value_as_string(&word, NULL);
        size_t n = strlen(text);
        if (at + n + 2 > TOPIC_MAX)
            n = TOPIC_MAX - at - 2;
        if (at)
            out[at++] = ' ';
        memcpy(out + at, text, n);
        at += n;
        out[at] = 0;
        if (at + 2 >= TOPIC_MAX)
            break;
    }
}

static bool about(const stet_op *op, const char *topic) {
    size_t n = strlen(topic);
    return n == 0 || (strncmp(op->name, topic, n) == 0 && (op->name[n] == 0 || op->name[n] == ' '));
}

static stet_status unknown_topic(const char *topic, stet_error *err) {
    stet_suggest s = stet_suggest_begin(topic);
    for (size_t i = 0; i < stet_op_count(); i++) {
        const char *name = stet_op_at(i)->name;
        stet_suggest_offer(&s, name);
        if (!strchr(topic, ' ')) /* a noun alone */
            stet_suggest_offer_n(&s, name, strcspn(name, " "));
    }
    stet_fail(err, STET_NOT_FOUND, "there is no command \"%s\"", topic);
    if (s.best)
        stet_hint(err, "did you mean: stet help %.*s?", (int)s.best_len, s.best);
    stet_hint(err, "stet help lists all commands");
    return STET_NOT_FOUND;
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    stet_value shell = stet_value_get(args, "completion");
    const char *shell_name = stet_value_as_string(&shell, NULL);
    bool reference = stet_value_as_bool(stet_value_get(args, "reference")),
         man = stet_value_as_bool(stet_value_get(args, "man"));
    char topic[TOPIC_MAX];
    join_topic(stet_value_get(args, "command"), topic);
    if (reference + man + (shell_name != NULL) > 1)
        return stet_fail(err, STET_INVALID, "--reference, --man and --completion exclude each other");
    if (reference || man || shell_name) {
        stet_buf text = STET_BUF(0);
        if (reference)
            stet_help_reference(&text);
        else if (man)
            stet_help_man(&text);
        else if (strcmp(shell_name, "bash") == 0)
            stet_help_bash(&text);
        else if (strcmp(shell_name, "zsh") == 0)
            stet_help_zsh(&text);
        else
            stet_help_fish(&text);
        *result = stet_value_object();
        stet_value_put(result, "text", stet_value_string(stet_buf_cstr(&text)));
        stet_buf_release(&text);
        return STET_OK;
    }
    stet_value operations = stet_value_array();
    for (size_t i = 0; i < stet_op_count(); i++)
        if (about(stet_op_at(i), topic))
            stet_value_push(&operations, op_value(stet_op_at(i)));
    if (stet_value_count(operations) == 0) {
        stet_value_release(operations);
        return unknown_topic(topic, err);
    }
    *result = stet_value_object();
    stet_value_put(result, "version", stet_value_string(stet_version()));
    stet_value_put(result, "topic", stet_value_string(topic));
    stet_value_put(result, "overview", stet_value_bool(stet_value_as_bool(stet_value_get(args, "overview"))));
    stet_value_put(result, "operations", operations);
    return STET_OK;
}

static void render(stet_render *r, stet_value result) {
    stet_value text = stet_value_get(result, "text"), topic = stet_value_get(result, "topic");
    size_t len;
    if (stet_value_type(text) == STET_TYPE_STRING) {
        const char *bytes = stet_value_as_string(&text, &len);
        stet_buf_add(r->out, bytes, len);
        return;
    }
    const char *name = stet_value_as_string(&topic, &len);
    const stet_op *op = stet_op_find(name);
    if (len == 0)
        stet_help_overview(r, !stet_value_as_bool(stet_value_get(result, "overview")));
    else if (op && !stet_cli_is_noun(name))
        stet_help_op(r, op);
    else if (!op)
        stet_help_noun(r, name);
    else {
        stet_help_op(r, op);
        stet_buf_char(r->out, '\n');
        stet_help_noun(r, name);
    }
}

static const stet_param params[] = {
    {.name = "command",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED,
     .metavar = "COMMAND",
     .summary = "A command, or the first word of some",
     .default_json = "[]"},
    {.name = "reference",
     .type = STET_PARAM_BOOL,
     .summary = "Print the reference of all commands in markdown",
     .default_json = "false"},
    {.name = "man", .type = STET_PARAM_BOOL, .summary = "Print the man page", .default_json = "false"},
    {.name = "completion",
     .type = STET_PARAM_ENUM,
     .metavar = "SHELL",
     .summary = "Print the completion script of a shell",
     .choices = shells},
    {.name = "overview",
     .type = STET_PARAM_BOOL,
     .flags = STET_PARAM_HIDDEN,
     .summary = "The common commands alone",
     .default_json = "false"},
    {0},
};

static const stet_example examples[] = {
    {"help", "all commands"},
    {"help project", "the commands that begin with that word"},
    {"help project add", "one command"},
    {"help --completion bash", "a completion script for the shell to source"},
    {0},
};

const stet_op stet_ops_help[] = {
    {.name = "help",
     .summary = "Explain stet and its commands",
     .description =
         "With --json: every operation with its parameters, schemas and examples.\n\nCompletion: `source <(stet help "
         "--completion bash)` in ~/.bashrc; for zsh and fish, write the script to a file that the shell loads "
         "(_stet in a directory of $fpath; ~/.config/fish/completions/stet.fish).",
     .params = params,
     .result_schema =
         "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"version\":{\"type\":\"string\"},"
         "\"topic\":{\"type\":\"string\"},\"overview\":{\"type\":\"boolean\"},\"text\":{\"type\":\"string\"},"
         "\"operations\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\",\"summary\","
         "\"description\",\"usage\",\"params\",\"examples\",\"flags\",\"argumentsSchema\",\"resultSchema\"]}}}}",
     .examples = examples,
     .flags = STET_OP_READ_ONLY | STET_OP_IDEMPOTENT | STET_OP_CLI_ONLY | STET_OP_NO_PROJECT | STET_OP_COMMON,
     .run = run,
     .render = render},
    {0},
};
