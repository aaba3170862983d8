/* trust.c - the operation trust: allows a project to reach outside of its own directory. */

#include "operation/op.h"
#include "operation/text.h"

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_trust what = stet_value_as_bool(stet_value_get(args, "revoke")) ? STET_TRUST_REVOKE
                      : stet_value_as_bool(stet_value_get(args, "show")) ? STET_TRUST_SHOW
                                                                         : STET_TRUST_GRANT;
    return stet_project_trust(ctx->project_dir ? ctx->project_dir : ctx->cwd, what, result, err);
}

static void render(stet_render *r, stet_value result) {
    stet_value reaches = stet_value_get(result, "reaches");
    bool trusted = stet_value_as_bool(stet_value_get(result, "trusted"));
    stet_text_value(r, stet_value_get(result, "root"));
    if (stet_value_count(reaches) == 0) {
        stet_buf_str(r->out, ": reaches nothing outside of itself; there is nothing to trust\n");
        return;
    }
    stet_buf_str(r->out, trusted ? ": trusted on this machine to reach\n" : ": not trusted to reach\n");
    for (size_t i = 0; i < stet_value_count(reaches); i++) {
        stet_buf_str(r->out, "  ");
        stet_text_value(r, stet_value_get(stet_value_at(reaches, i), "where"));
        stet_buf_str(r->out, "  (");
        stet_text_value(r, stet_value_get(stet_value_at(reaches, i), "what"));
        stet_buf_str(r->out, ")\n");
    }
}

static const stet_param params[] = {
    {.name = "show", .type = STET_PARAM_BOOL, .summary = "Only show what the project reaches, and whether it may"},
    {.name = "revoke", .type = STET_PARAM_BOOL, .summary = "Take the permission back"},
    {0},
};

static const stet_example examples[] = {
    {"trust --show", "what would the project reach outside of its directory?"},
    {"trust", "allow it, for this user on this machine"},
    {0},
};

const stet_op stet_ops_trust[] = {
    {.name = "trust",
     .summary = "Allow a project to reach outside of its own directory",
     .description =
         "stet writes and deletes files where a project says that its own files lie. `local`, "
         "`persist.defaults.dir_path` and `calls.remote` in .stet/config.toml can name a place outside of the project, "
         "and .stet or a file in it can be a symbolic link. A project that you got from somebody else could use this "
         "against you. So stet refuses to open such a project until you have allowed these places once.\n\n"
         "The permission holds for you, on this machine, for this project and the places that are listed. If the "
         "project names another place later, stet asks again. Permissions are kept in trust/ below STET_HOME.",
     .params = params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"root\",\"trusted\",\"reaches\"],\"additionalProperties\":false,"
         "\"properties\":{\"root\":{\"type\":\"string\"},\"trusted\":{\"type\":\"boolean\"},"
         "\"reaches\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
         "\"what\":{\"type\":\"string\"},\"where\":{\"type\":\"string\"}}}}}}",
     .examples = examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_CLI_ONLY,
     .run = run,
     .render = render},
    {0},
};
