/* pattern.c - the operations pattern check, write, show and convert. */

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "graph/pattern_toml.h"
#include "graph/process.h"
#include "module/javascript.h"
#include "operation/args.h"
#include "operation/piece_common.h"
#include "operation/text.h"
#include "os/file.h"
#include "scheduler/module.h"

#define FILE_MAX ((size_t)256 << 20)

/* The file that the arguments name. */
typedef struct given_file {
    stet_value hold;
    const char *shown; /* as typed, for messages */
    char *path;
    stet_buf text;
} given_file;

static stet_status read_given(stet_op_ctx *ctx, stet_value args, given_file *f, stet_error *err) {
    *f = (given_file){.text = STET_BUF(0)};
    stet_value text = stet_value_get(args, "text");
    size_t len;
    const char *inline_text = stet_value_as_string(&text, &len);
    f->shown = stet_value_text_at_or(args, "file", STET_PATTERN_TOML, &f->hold);
    f->path = stet_op_path(ctx, f->shown);
    if (!inline_text)
        return stet_file_read(f->path, FILE_MAX, &f->text, err);
    stet_buf_add(&f->text, inline_text, len);
    return STET_OK;
}

static void release_given(given_file *f) {
    stet_buf_release(&f->text);
    stet_free(f->path);
}

static void any_other(void *ctx, const char *path) {
    (void)ctx;
    (void)path;
}

static stet_status load(stet_op_ctx *ctx, stet_value args, stet_pattern **out, stet_value *problems, stet_error *err) {
    given_file f;
    stet_javascript_script script = {.cancelled = stet_op_cancelled, .ctx = ctx};
    stet_pattern_checks checks = {.module = stet_module_check,
                                  .script = stet_javascript_pattern,
                                  .script_ctx = &script,
                                  .names = stet_module_names,
                                  .other = any_other};
    *problems = stet_value_array();
    stet_status status = read_given(ctx, args, &f, err);
    checks.path = f.path;
    if (status == STET_OK) {
        stet_value_release(*problems);
        status = stet_pattern_is_toml(f.path)
                     ? stet_pattern_toml_parse(f.shown, stet_buf_cstr(&f.text), f.text.len, &checks, out, problems, err)
                     : stet_pattern_parse(f.shown, stet_buf_cstr(&f.text), f.text.len, &checks, out, problems, err);
    }
    release_given(&f);
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
    stet_value file = stet_value_get(args, "file");
    stet_value_put(result, "file",
                   stet_value_type(file) == STET_TYPE_STRING ? stet_value_retain(file)
                                                             : stet_value_string(STET_PATTERN_TOML));
    stet_value_put(result, "ok", stet_value_bool(p != NULL));
    stet_value_put(result, "problems", problems);
    if (p) {
        stet_value_put(result, "name", stet_value_string(p->name));
        stet_value_put(result, "nodes", stet_value_int((int64_t)p->node_count));
        stet_value_put(result, "cells", stet_value_int((int64_t)p->cell_count));
        stet_value_put(result, "hash", stet_hash_text(p->hash));
    }
    stet_pattern_free(p);
    return STET_OK;
}

static void check_render(stet_render *r, stet_value result) {
    stet_value problems = stet_value_get(result, "problems");
    for (size_t i = 0; i < stet_value_count(problems); i++) {
        stet_value p = stet_value_at(problems, i), line = stet_value_get(p, "line");
        stet_text_value(r, stet_value_get(p, "file"));
        if (stet_value_type(line) == STET_TYPE_INT)
            stet_buf_printf(r->out, ":%lld:%lld", (long long)stet_value_as_int(line),
                            (long long)stet_value_as_int(stet_value_get(p, "column")));
        stet_buf_str(r->out, ": ");
        stet_text_value(r, stet_value_get(p, "message"));
        stet_buf_str(r->out, "\n  ");
        stet_text_styled(r, STET_STYLE_DIM, "fix: ");
        stet_text_value(r, stet_value_get(p, "fix"));
        stet_buf_char(r->out, '\n');
    }
    if (stet_value_as_bool(stet_value_get(result, "ok"))) {
        stet_text_value(r, stet_value_get(result, "name"));
        stet_buf_printf(r->out, ": %lld nodes, %lld cells, no problems\n",
                        (long long)stet_value_as_int(stet_value_get(result, "nodes")),
                        (long long)stet_value_as_int(stet_value_get(result, "cells")));
    } else {
        stet_buf_printf(r->out, "%zu problem%s\n", stet_value_count(problems),
                        stet_value_count(problems) == 1 ? "" : "s");
    }
}

/* A pattern with mistakes is not written: what is there goes on to work. */
static stet_status write_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_status status = check_run(ctx, args, result, err);
    bool good = status == STET_OK && stet_value_as_bool(stet_value_get(*result, "ok"));
    if (status == STET_OK)
        stet_value_put(result, "written", stet_value_bool(good));
    if (!good)
        return status;
    stet_value text = stet_value_get(args, "text"), hold;
    size_t len;
    const char *bytes = stet_value_as_string(&text, &len);
    char *path = stet_op_path(ctx, stet_value_text_at_or(args, "file", STET_PATTERN_TOML, &hold));
    if (strstr(path, "/.stet/")) {
        status = stet_fail(err, STET_INVALID, "%s: what is in .stet belongs to stet, and is no pattern", path);
        stet_hint(err, "write the pattern to another file of the project");
    } else {
        status = stet_file_replace(path, bytes, len, 0644, err);
    }
    stet_free(path);
    if (status != STET_OK)
        stet_value_release(*result);
    return status;
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
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_string(p->name));
    stet_value_put(result, "version", stet_value_string(p->version));
    stet_value_put(result, "title", stet_value_string(p->title));
    stet_value_put(result, "hash", stet_hash_text(p->hash));
    stet_value_put(result, "format", stet_value_string(format));
    stet_value_put(result, "pattern", stet_value_retain(p->root));
    stet_value_put(result, "graph", stet_process_snapshot(g, g->schemas));
    if (strcmp(format, "dot") == 0 || strcmp(format, "mermaid") == 0)
        stet_value_put(result, "text", piece_picture(g, format));
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
            stet_text_value(r, ref);
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
    stet_text_value(r, stet_value_get(result, "name"));
    stet_buf_char(r->out, ' ');
    stet_text_value(r, stet_value_get(result, "version"));
    stet_buf_str(r->out, "\n");
    stet_value nodes = stet_value_get(pattern, "nodes");
    for (size_t i = 0; i < stet_value_count(nodes); i++) {
        stet_value n = stet_value_at(nodes, i), module = stet_value_get(n, "module"),
                   ref = stet_value_get(module, "ref");
        stet_buf_str(r->out, "  ");
        stet_text_value(r, stet_value_get(n, "id"));
        stet_buf_str(r->out, " = ");
        stet_text_value(r, stet_value_type(ref) == STET_TYPE_STRING ? ref : stet_value_get(module, "type"));
        stet_buf_char(r->out, '(');
        show_inputs(r, stet_value_get(n, "inputs"));
        stet_buf_str(r->out, ")\n");
    }
}

static stet_status convert_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    given_file f;
    stet_value json, problems = stet_value_null();
    stet_status status = read_given(ctx, args, &f, err);
    if (status == STET_OK && stet_pattern_is_toml(f.path)) {
        stet_pattern_checks checks = {.other = any_other, .path = f.path};
        status = stet_pattern_toml_convert(f.shown, stet_buf_cstr(&f.text), f.text.len, &checks, &json, &problems, err);
        if (status != STET_OK)
            stet_detail(err, "problems", problems);
        else
            stet_value_release(problems);
    } else if (status == STET_OK && stet_javascript_is_pattern(f.path)) {
        stet_javascript_script script = {.cancelled = stet_op_cancelled, .ctx = ctx};
        status = stet_javascript_pattern(&script, f.shown, stet_buf_cstr(&f.text), f.text.len, &json, err);
    } else if (status == STET_OK) {
        status = stet_json_parse(stet_buf_cstr(&f.text), f.text.len, &json, err);
    }
    release_given(&f);
    if (status != STET_OK)
        return status;
    *result = stet_value_object();
    stet_value_put(result, "pattern", json);
    return STET_OK;
}

static void convert_render(stet_render *r, stet_value result) {
    stet_json_write(r->out, stet_value_get(result, "pattern"), STET_JSON_PRETTY);
}

static const char *const formats[] = {"text", "json", "dot", "mermaid", NULL};

#define PATTERN_FILE                                                                                                   \
    {                                                                                                                  \
        .name = "file", .type = STET_PARAM_FILE, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,                 \
        .metavar = "FILE", .summary = "The pattern: JSON, TOML, or JavaScript"                                         \
    }

#define OPTIONAL_FILE                                                                                                  \
    {                                                                                                                  \
        .name = "file", .type = STET_PARAM_FILE, .flags = STET_PARAM_POSITIONAL, .metavar = "FILE",                    \
        .summary = "The pattern: JSON, TOML or JavaScript, by its ending; stet.toml if not given"                      \
    }

static const stet_param check_params[] = {
    OPTIONAL_FILE,
    {.name = "text", .type = STET_PARAM_STRING, .summary = "Check this text, in place of the file's"},
    {0},
};
static const stet_param write_params[] = {
    OPTIONAL_FILE,
    {.name = "text", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED, .summary = "The text of the pattern"},
    {0},
};
static const stet_param show_params[] = {PATTERN_FILE,
                                         {.name = "format",
                                          .type = STET_PARAM_ENUM,
                                          .choices = formats,
                                          .summary = "A list of nodes, or a picture for Graphviz or Mermaid",
                                          .default_json = "\"text\""},
                                         {0}};
static const stet_param convert_params[] = {
    {.name = "file",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "FILE",
     .summary = "The pattern, a TOML or JavaScript file (a JSON file comes out as it is)"},
    {0},
};
static const stet_example check_examples[] = {{"pattern check totals.json", "is the pattern right?"}, {0}};
static const stet_example write_examples[] = {
    {"pattern write hello.json --text '{\"pattern\": 1, \"name\": \"hello\", \"nodes\": []}'",
     "a pattern of nothing yet"},
    {0},
};
static const stet_example show_examples[] = {
    {"pattern show totals.json", "its nodes and what they read"},
    {"pattern show totals.json --format dot", "a picture for Graphviz"},
    {0},
};
static const stet_example convert_examples[] = {{"pattern convert totals.json", "print the JSON form"}, {0}};

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
    {.name = "pattern write",
     .summary = "Write a pattern to a file, if it is right",
     .description =
         "Checks the text as `pattern check` does, and writes the file only if there is no mistake. Exit status 2 "
         "otherwise, with each mistake and what to do about it.",
     .params = write_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"file\",\"ok\",\"problems\",\"written\"],\"properties\":{"
                      "\"written\":{\"type\":\"boolean\"},\"ok\":{\"type\":\"boolean\"},\"problems\":{\"type\":"
                      "\"array\"}}}",
     .examples = write_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_IDEMPOTENT | STET_OP_DESTRUCTIVE,
     .run = write_run,
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
    {.name = "pattern convert",
     .summary = "Print the JSON form of a pattern that is written in TOML or JavaScript",
     .params = convert_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"pattern\"],\"additionalProperties\":false,\"properties\":{"
                      "\"pattern\":{\"type\":\"object\"}}}",
     .examples = convert_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = convert_run,
     .render = convert_render},
    {0},
};
