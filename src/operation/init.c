/* init.c - the operation init: makes a directory a project. */

#include "operation/op.h"
#include "operation/text.h"
#include "os/file.h"

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value dir = stet_value_get(args, "dir");
    const char *given = stet_value_as_string(&dir, NULL);
    const char *base = ctx->project_dir ? ctx->project_dir : ctx->cwd;
    char *path = !given ? stet_strdup(base) : given[0] == '/' ? stet_strdup(given) : stet_file_join(base, given);
    bool created;
    stet_project *p;
    stet_status status = stet_project_init(path, &created, err);
    if (status == STET_OK)
        status = stet_project_open(path, &p, err);
    stet_free(path);
    if (status != STET_OK)
        return status;
    *result = stet_value_object();
    stet_value_put(result, "root", stet_value_string(stet_project_root(p)));
    stet_project_close(p);
    stet_value_put(result, "created", stet_value_bool(created));
    return STET_OK;
}

static void render(stet_render *r, stet_value result) {
    stet_value root = stet_value_get(result, "root");
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "created")) ? "created the project "
                                                                               : "already a project: ");
    stet_text_value(r, root);
    stet_buf_char(r->out, '\n');
}

static const stet_param params[] = {
    {.name = "dir",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "DIR",
     .summary = "The directory, made if it is not there; without it the current one"},
    {0},
};

static const stet_example examples[] = {
    {"init", "make the current directory a project"},
    {"init analysis", "make a new directory a project"},
    {0},
};

const stet_op stet_ops_init[] = {
    {.name = "init",
     .summary = "Make a directory a project",
     .description =
         "Creates .stet/ with config.toml and .gitignore in it. A project that is there already is left as it "
         "is.",
     .params = params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"root\",\"created\"],\"additionalProperties\":false,"
                      "\"properties\":{\"root\":{\"type\":\"string\"},\"created\":{\"type\":\"boolean\"}}}",
     .examples = examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_COMMON | STET_OP_NO_PROJECT,
     .run = run,
     .render = render},
    {0},
};
