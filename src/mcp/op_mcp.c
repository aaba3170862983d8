/* op_mcp.c - the operation `mcp`: serves the operations as MCP tools over standard input and output. */

#include <unistd.h>

#include "mcp/server.h"
#include "operation/op.h"
#include "operation/text.h"
#include "os/file.h"

static const char *const levels[] = {"off", "error", "info", NULL};

static bool stop_asked(void *ctx) {
    stet_op_ctx *c = ctx;
    return c->cancelled(c);
}

static stet_mcp_log level_of(stet_value v) {
    const char *text = stet_value_as_string(&v, NULL);
    return text[0] == 'o' ? STET_MCP_LOG_OFF : text[0] == 'i' ? STET_MCP_LOG_INFO : STET_MCP_LOG_ERROR;
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_mcp_options o = {
        .dir = ctx->project_dir ? ctx->project_dir : ctx->cwd,
        .filter = {.all = stet_value_as_bool(stet_value_get(args, "all_tools")),
                   .whole = stet_value_as_bool(stet_value_get(args, "whole")),
                   .read_only = stet_value_as_bool(stet_value_get(args, "read_only")),
                   .allow = stet_value_get(args, "allow"),
                   .deny = stet_value_get(args, "deny")},
        .outside = stet_value_as_bool(stet_value_get(args, "outside")),
        .threads = (size_t)stet_value_as_int(stet_value_get(args, "threads")),
        .max_frame = (size_t)stet_value_as_int(stet_value_get(args, "max_frame")),
        .max_result = (size_t)stet_value_as_int(stet_value_get(args, "max_result")),
        .page_size = (size_t)stet_value_as_int(stet_value_get(args, "page_size")),
        .log = level_of(stet_value_get(args, "log")),
    };
    stet_mcp_server *s;
    char *dir;
    stet_status status = stet_file_realpath(o.dir, &dir, err);
    if (status != STET_OK)
        return status;
    o.dir = dir;
    status = stet_mcp_open(&o, &s, err);
    stet_free(dir);
    if (status != STET_OK)
        return status;
    if (stet_value_as_bool(stet_value_get(args, "list"))) {
        *result = stet_mcp_overview(s);
        stet_mcp_close(s, 0);
        return STET_OK;
    }
    return stet_mcp_serve(s, STDIN_FILENO, STDOUT_FILENO, stop_asked, ctx, err);
}

static void put_names(stet_render *r, stet_value list, const char *key, const char *about, const char *heading) {
    stet_table t = {.columns = 2};
    stet_table_cell(&t, heading);
    stet_table_cell(&t, "");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value name = stet_value_get(stet_value_at(list, i), key),
                   what = stet_value_get(stet_value_at(list, i), about);
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        stet_table_cell(&t, stet_value_as_string(&what, NULL));
    }
    stet_table_print(&t, r, true);
}

static void render(stet_render *r, stet_value result) {
    put_names(r, stet_value_get(result, "tools"), "name", "title", "TOOLS");
    stet_buf_char(r->out, '\n');
    put_names(r, stet_value_get(result, "prompts"), "name", "title", "PROMPTS");
    stet_buf_char(r->out, '\n');
    put_names(r, stet_value_get(result, "resourceTemplates"), "uriTemplate", "description", "RESOURCES");
}

static const stet_param params[] = {
    {.name = "all-tools",
     .type = STET_PARAM_BOOL,
     .summary = "Offer every operation, not only those that most jobs need",
     .default_json = "false"},
    {.name = "read-only",
     .type = STET_PARAM_BOOL,
     .summary = "Offer only what changes nothing",
     .default_json = "false"},
    {.name = "allow",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REPEATED,
     .metavar = "PATTERN",
     .summary = "Offer only tools that fit, such as \"doc *\" or stet_runs_search; repeatable"},
    {.name = "deny",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REPEATED,
     .metavar = "PATTERN",
     .summary = "Do not offer tools that fit; repeatable, and stronger than --allow"},
    {.name = "outside",
     .type = STET_PARAM_BOOL,
     .summary = "Let path arguments leave the project",
     .default_json = "false"},
    {.name = "whole",
     .type = STET_PARAM_BOOL,
     .summary = "For programs: give results as --json prints them, and list whole schemas",
     .default_json = "false"},
    {.name = "list",
     .type = STET_PARAM_BOOL,
     .summary = "Print what a client would be offered, and serve nobody",
     .default_json = "false"},
    {.name = "threads",
     .type = STET_PARAM_INT,
     .summary = "How many operations run at once",
     .default_json = "16",
     .min = 3,
     .max = 256},
    {.name = "max-frame",
     .type = STET_PARAM_INT,
     .metavar = "BYTES",
     .summary = "The largest message that is read",
     .default_json = "16777216",
     .min = 1024,
     .max = 1073741824},
    {.name = "max-result",
     .type = STET_PARAM_INT,
     .metavar = "BYTES",
     .summary = "The largest result that is sent in one piece; larger ones go out in pages",
     .default_json = "1048576",
     .min = 1024,
     .max = 268435456},
    {.name = "page-size",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "Members of one page of a list of tools or resources",
     .default_json = "200",
     .min = 1,
     .max = 10000},
    {.name = "log",
     .type = STET_PARAM_ENUM,
     .summary = "What is written to standard error",
     .choices = levels,
     .default_json = "\"error\""},
    {0},
};

static const stet_example examples[] = {
    {"mcp --list", "the tools, prompts and resources a client is offered"},
    {"mcp --list --all-tools", "the same with every operation as a tool"},
    {"mcp --list --read-only --deny \"project *\"", "what is left for a client that may only look"},
    {0},
};

const stet_op stet_ops_mcp[] = {
    {.name = "mcp",
     .summary = "Serve the operations to an MCP client on standard input and output",
     .description =
         "A client (an agent, an editor) starts `stet mcp` itself; docs/mcp.md says how to tell it to. The server "
         "works "
         "on the project around the current directory, or the one that --project names, and ends when its standard "
         "input does. Protocol versions: 2026-07-28, and 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05.\n\n"
         "Every tool is an operation with the same parameters, and gives what `stet ... --json` prints. Messages for "
         "people go to standard error.",
     .params = params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"tools\",\"prompts\",\"resourceTemplates\"],\"additionalProperties\":"
         "false,\"properties\":{\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
         "\"title\",\"description\",\"inputSchema\",\"outputSchema\",\"annotations\"]}},\"prompts\":{\"type\":"
         "\"array\","
         "\"items\":{\"type\":\"object\",\"required\":[\"name\",\"title\",\"arguments\"]}},\"resourceTemplates\":{"
         "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\",\"uriTemplate\"]}}}}",
     .examples = examples,
     .flags = STET_OP_LONG | STET_OP_CLI_ONLY | STET_OP_NO_PROJECT | STET_OP_COMMON,
     .run = run,
     .render = render},
    {0},
};
