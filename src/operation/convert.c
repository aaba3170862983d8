/* convert.c - the operation pattern convert: prints the JSON form of a pattern. */

#include <string.h>

#include "base/json.h"
#include "graph/pattern_toml.h"
#include "module/javascript.h"
#include "operation/op.h"
#include "os/file.h"

static stet_status convert_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value file = stet_value_get(args, "file"), json, problems = stet_value_null();
    const char *shown = stet_value_as_string(&file, NULL);
    char *path = shown[0] == '/' ? stet_strdup(shown) : stet_file_join(ctx->cwd, shown);
    stet_buf text = STET_BUF(0);
    stet_status status = stet_file_read(path, (size_t)256 << 20, &text, err);
    if (status == STET_OK && stet_pattern_is_toml(path)) {
        status = stet_pattern_toml_convert(shown, stet_buf_cstr(&text), text.len, &json, &problems, err);
        if (status != STET_OK)
            stet_detail(err, "problems", problems);
        else
            stet_value_release(problems);
    } else if (status == STET_OK && stet_javascript_is_pattern(path)) {
        stet_javascript_script script = {.cancelled = stet_op_cancelled, .ctx = ctx};
        status = stet_javascript_pattern(&script, shown, stet_buf_cstr(&text), text.len, &json, err);
    } else if (status == STET_OK) {
        status = stet_json_parse(stet_buf_cstr(&text), text.len, &json, err);
    }
    stet_buf_release(&text);
    stet_free(path);
    if (status != STET_OK)
        return status;
    *result = stet_value_object();
    stet_value_put(result, "pattern", json);
    return STET_OK;
}

static void convert_render(stet_render *r, stet_value result) {
    stet_json_write(r->out, stet_value_get(result, "pattern"), STET_JSON_PRETTY);
}

static const stet_param params[] = {
    {.name = "file",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "FILE",
     .summary = "The pattern, a TOML or JavaScript file (a JSON file comes out as it is)"},
    {0},
};
static const stet_example examples[] = {{"pattern convert totals.json", "print the JSON form"}, {0}};

const stet_op stet_ops_convert[] = {
    {.name = "pattern convert",
     .summary = "Print the JSON form of a pattern that is written in TOML or JavaScript",
     .params = params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"pattern\"],\"additionalProperties\":false,\"properties\":{"
                      "\"pattern\":{\"type\":\"object\"}}}",
     .examples = examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = convert_run,
     .render = convert_render},
    {0},
};
