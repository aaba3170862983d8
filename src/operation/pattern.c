/* pattern.c - the operations pattern check and pattern show. */

#include <string.h>

#include "base/text.h"
#include "graph/pattern_toml.h"
#include "graph/process.h"
#include "module/javascript.h"
#include "operation/piece_common.h"
#include "operation/text.h"
#include "os/file.h"
#include "scheduler/module.h"

static char *pattern_path(stet_op_ctx *ctx, stet_value args) {
    stet_value hold;
    const char *file = stet_value_text_at_or(args, "file", "", &hold);
    return file[0] == '/' ? stet_strdup(file) : stet_file_join(ctx->cwd, file);
}

/* Messages name the file as it was typed. */
static stet_status load(stet_op_ctx *ctx, stet_value args, stet_pattern **out, stet_value *problems, stet_error *err) {
    stet_value hold;
    const char *shown = stet_value_text_at_or(args, "file", "", &hold);
    stet_javascript_script script = {.cancelled = stet_op_cancelled, .ctx = ctx};
    stet_pattern_checks checks = {.module = stet_module_check,
                                  .script = stet_javascript_pattern,
                                  .script_ctx = &script,
                                  .names = stet_module_names};
    stet_buf text = STET_BUF(0);
    char *path = pattern_path(ctx, args);
    *problems = stet_value_array();
    stet_status status = stet_file_read(path, (size_t)256 << 20, &text, err);
    if (status == STET_OK) {
        stet_value_release(*problems);
        status = stet_pattern_is_toml(path)
                     ? stet_pattern_toml_parse(shown, stet_buf_cstr(&text), text.len, &checks, out, problems, err)
                     : stet_pattern_parse(shown, stet_buf_cstr(&text), text.len, &checks, out, problems, err);
    }
    stet_buf_release(&text);
    stet_free(path);
    return status;
}

static stet_status check_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_pattern *p = NULL;
    stet_value problems;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = load(ctx, args, &p, &problems, &mine);
    if (status != STET_OK && stet_value_count(problems) == 0) {
        stet_value_release(problems);
        if (err)
            stet_error_move(err, &mine);
        return status;
    }
    stet_error_clear(&mine);
    *result = stet_value_object();
    stet_value_put(result, "file", stet_value_retain(stet_value_get(args, "file")));
    stet_value_put(result, "ok", stet_value_bool(p != NULL));
    stet_value_put(result, "problems", problems);
    if (p) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(p->hash, hex);
        stet_value_put(result, "name", stet_value_string(p->name));
        stet_value_put(result, "nodes", stet_value_int((int64_t)p->node_count));
        stet_value_put(result, "cells", stet_value_int((int64_t)p->cell_count));
        stet_value_put(result, "hash", stet_value_string(hex));
    }
    stet_pattern_free(p);
    return STET_OK;
}

static void check_render(stet_render *r, stet_value result) {
    stet_value problems = stet_value_get(result, "problems");
    for (size_t i = 0; i < stet_value_count(problems); i++) {
        stet_value p = stet_value_at(problems, i), line = stet_value_get(p, "line");
        piece_render_text(r, stet_value_get(p, "file"));
        if (stet_value_type(line) == STET_TYPE_INT)
            stet_buf_printf(r->out, ":%lld:%lld", (long long)stet_value_as_int(line),
                            (long long)stet_value_as_int(stet_value_get(p, "column")));
        stet_buf_str(r->out, ": ");
        piece_render_text(r, stet_value_get(p, "message"));
        stet_buf_str(r->out, "\n  ");
        stet_text_styled(r, STET_STYLE_DIM, "fix: ");
        piece_render_text(r, stet_value_get(p, "fix"));
        stet_buf_char(r->out, '\n');
    }
    if (stet_value_as_bool(stet_value_get(result, "ok"))) {
        piece_render_text(r, stet_value_get(result, "name"));
        stet_buf_printf(r->out, ": %lld nodes, %lld cells, no problems\n",
                        (long long)stet_value_as_int(stet_value_get(result, "nodes")),
                        (long long)stet_value_as_int(stet_value_get(result, "cells")));
    } else {
        stet_buf_printf(r->out, "%zu problem%s\n", stet_value_count(problems),
                        stet_value_count(problems) == 1 ? "" : "s");
    }
}

static stet_status check_verdict(stet_value result) {
    return stet_value_as_bool(stet_value_get(result, "ok")) ? STET_OK : STET_INVALID;
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_pattern *p = NULL;
    stet_value problems, hold;
    stet_status status = load(ctx, args, &p, &problems, err);
    stet_value_release(problems);
    if (status != STET_OK)
        return status;
    stet_process *g;
    status = stet_process_build(p, p->name, NULL, &g, err);
    if (status != STET_OK) {
        stet_pattern_free(p);
        return status;
    }
    const char *format = stet_value_text_at_or(args, "format", "text", &hold);
    char hex[STET_HASH_HEX];
    stet_hash_hex(p->hash, hex);
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_string(p->name));
    stet_value_put(result, "version", stet_value_string(p->version));
    stet_value_put(result, "title", stet_value_string(p->title));
    stet_value_put(result, "hash", stet_value_string(hex));
    stet_value_put(result, "format", stet_value_string(format));
    stet_value_put(result, "pattern", stet_value_retain(p->root));
    stet_value_put(result, "graph", stet_process_snapshot(g, g->schemas));
    if (strcmp(format, "dot") == 0 || strcmp(format, "mermaid") == 0) {
        stet_buf b = STET_BUF(0);
        if (format[0] == 'd')
            stet_process_dot(g, &b);
        else
            stet_process_mermaid(g, &b);
        stet_value_put(result, "text", stet_value_string_n(stet_buf_cstr(&b), b.len));
        stet_buf_release(&b);
    }
    stet_process_free(g);
    stet_pattern_free(p);
    return STET_OK;
}

static void show_inputs(stet_render *r, stet_value inputs) {
    for (size_t i = 0; i < stet_value_count(inputs); i++) {
        stet_value v = stet_value_at(inputs, i), ref = stet_value_get(v, "$");
        stet_buf_str(r->out, i ? ", " : "");
        if (stet_value_type(inputs) == STET_TYPE_OBJECT)
            stet_buf_printf(r->out, "%s: ", stet_value_key_at(inputs, i, NULL));
        if (stet_value_type(ref) == STET_TYPE_STRING) {
            piece_render_text(r, ref);
        } else {
            size_t len;
            char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
            stet_text_plain(r, text, len > 60 ? 60 : len);
            stet_free(text);
        }
    }
}

static void show_render(stet_render *r, stet_value result) {
    stet_value text = stet_value_get(result, "text"), pattern = stet_value_get(result, "pattern");
    size_t len;
    if (stet_value_type(text) == STET_TYPE_STRING) {
        const char *s = stet_value_as_string(&text, &len);
        stet_buf_add(r->out, s, len);
        return;
    }
    piece_render_text(r, stet_value_get(result, "name"));
    stet_buf_char(r->out, ' ');
    piece_render_text(r, stet_value_get(result, "version"));
    stet_buf_str(r->out, "\n");
    stet_value nodes = stet_value_get(pattern, "nodes");
    for (size_t i = 0; i < stet_value_count(nodes); i++) {
        stet_value n = stet_value_at(nodes, i), module = stet_value_get(n, "module"),
                   ref = stet_value_get(module, "ref");
        stet_buf_str(r->out, "  ");
        piece_render_text(r, stet_value_get(n, "id"));
        stet_buf_str(r->out, " = ");
        piece_render_text(r, stet_value_type(ref) == STET_TYPE_STRING ? ref : stet_value_get(module, "type"));
        stet_buf_char(r->out, '(');
        show_inputs(r, stet_value_get(n, "inputs"));
        stet_buf_str(r->out, ")\n");
    }
}

static const char *const formats[] = {"text", "json", "dot", "mermaid", NULL};

#define PATTERN_FILE                                                                                                   \
    {                                                                                                                  \
        .name = "file", .type = STET_PARAM_FILE, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,                 \
        .metavar = "FILE", .summary = "The pattern: JSON, TOML, or JavaScript"                                         \
    }

static const stet_param check_params[] = {PATTERN_FILE, {0}};
static const stet_param show_params[] = {PATTERN_FILE,
                                         {.name = "format",
                                          .type = STET_PARAM_ENUM,
                                          .choices = formats,
                                          .summary = "A list of nodes, or a picture for Graphviz or Mermaid",
                                          .default_json = "\"text\""},
                                         {0}};
static const stet_example check_examples[] = {{"pattern check totals.json", "is the pattern right?"}, {0}};
static const stet_example show_examples[] = {
    {"pattern show totals.json", "its nodes and what they read"},
    {"pattern show totals.json --format dot", "a picture for Graphviz"},
    {0},
};

const stet_op stet_ops_pattern[] = {
    {.name = "pattern check",
     .summary = "Check a pattern, and say how to mend it",
     .description =
         "Finds every mistake that can be found without running the pattern: each with its line and column and "
         "what to do about it. Exit status 2 if there is one. The format is described in "
         "docs/pattern-format.md.",
     .params = check_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"file\",\"ok\",\"problems\"],\"properties\":{\"file\":{\"type\":"
         "\"string\"},"
         "\"ok\":{\"type\":\"boolean\"},\"name\":{\"type\":\"string\"},\"nodes\":{\"type\":\"integer\"},\"cells\":{"
         "\"type\":"
         "\"integer\"},\"hash\":{\"type\":\"string\"},\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
         "\"required\":[\"file\",\"pointer\",\"message\",\"fix\"],\"properties\":{\"file\":{\"type\":\"string\"},"
         "\"line\":{"
         "\"type\":\"integer\"},\"column\":{\"type\":\"integer\"},\"pointer\":{\"type\":\"string\"},\"message\":{"
         "\"type\":"
         "\"string\"},\"fix\":{\"type\":\"string\"}}}}}}",
     .examples = check_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = check_run,
     .render = check_render,
     .verdict = check_verdict},
    {.name = "pattern show",
     .summary = "Show what a pattern computes",
     .params = show_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"name\",\"hash\",\"pattern\",\"graph\"],\"properties\":{"
                      "\"name\":{\"type\":\"string\"},\"hash\":{\"type\":\"string\"},\"pattern\":{\"type\":\"object\"},"
                      "\"graph\":{\"type\":\"object\"},\"text\":{\"type\":\"string\"}}}",
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = show_run,
     .render = show_render},
    {0},
};
