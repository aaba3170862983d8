/* pattern.c - reads a pattern from JSON or TOML, and reports its problems. */

#include "graph/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "graph/pattern_internal.h"
#include "graph/pattern_toml.h"
#include "os/file.h"

#define MAX_PATTERN_BYTES ((size_t)256 << 20)

static void error_of_problem(stet_error *err, stet_value problems) {
    stet_value first = stet_value_at(problems, 0);
    stet_value file = stet_value_get(first, "file"), message = stet_value_get(first, "message"),
               fix = stet_value_get(first, "fix");
    stet_value line = stet_value_get(first, "line"), pointer = stet_value_get(first, "pointer");
    size_t more = stet_value_count(problems) - 1;
    char rest[64] = "";
    if (more > 0)
        snprintf(rest, sizeof rest, " (and %zu more problem%s)", more, more == 1 ? "" : "s");
    if (stet_value_type(line) == STET_TYPE_INT)
        stet_fail(err, STET_INVALID, "%s:%lld:%lld: %s%s", stet_value_as_string(&file, NULL),
                  (long long)stet_value_as_int(line), (long long)stet_value_as_int(stet_value_get(first, "column")),
                  stet_value_as_string(&message, NULL), rest);
    else
        stet_fail(err, STET_INVALID, "%s: at \"%s\": %s%s", stet_value_as_string(&file, NULL),
                  stet_value_as_string(&pointer, NULL), stet_value_as_string(&message, NULL), rest);
    stet_hint(err, "%s", stet_value_as_string(&fix, NULL));
    stet_detail(err, "problems", stet_value_retain(problems));
}

static stet_status finish(pattern_checker *c, stet_value root, stet_pattern **out, stet_value *problems,
                          stet_error *err) {
    c->p = stet_alloc_zero(sizeof *c->p);
    c->p->root = root;
    c->p->name = c->p->version = c->p->title = "";
    c->p->after = stet_value_null();
    c->problems = stet_value_array();
    pattern_check_root(c, root);
    if (stet_value_count(c->problems) == 0)
        pattern_check_names(c);
    stet_buf_release(&c->at);
    stet_status status = STET_OK;
    if (stet_value_count(c->problems) > 0) {
        status = STET_INVALID;
        error_of_problem(err, c->problems);
        stet_pattern_free(c->p);
    } else {
        c->p->hash = stet_hash_value(root);
        *out = c->p;
    }
    if (problems)
        *problems = c->problems;
    else
        stet_value_release(c->problems);
    return status;
}

stet_status stet_pattern_of_value(const char *file, stet_value root, const stet_pattern_checks *checks,
                                  stet_pattern **out, stet_value *problems, stet_error *err) {
    pattern_checker c = {.file = file, .checks = checks, .at = STET_BUF(1 << 20)};
    return finish(&c, root, out, problems, err);
}

/* Makes a problem from the error of a reader. */
static stet_value problem_of_error(const char *file, const stet_error *err, const char *fix) {
    stet_value p = stet_value_object(), at;
    stet_value_put(&p, "file", stet_value_string(file));
    if (stet_value_type(err->details) == STET_TYPE_OBJECT) {
        if (stet_value_find(err->details, "line", 4, &at))
            stet_value_put(&p, "line", stet_value_retain(at));
        if (stet_value_find(err->details, "column", 6, &at))
            stet_value_put(&p, "column", stet_value_retain(at));
        else if (stet_value_find(err->details, "line", 4, NULL))
            stet_value_put(&p, "column", stet_value_int(1));
    }
    stet_value_put(&p, "pointer", stet_value_string(""));
    stet_value_put(&p, "message", stet_value_string(err->message));
    stet_value_put(&p, "fix", stet_value_string(stet_has_hint(err) ? err->hint : fix));
    return p;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static stet_status parse_script(const char *file, const char *text, size_t len, const stet_pattern_checks *checks,
                                stet_pattern **out, stet_value *problems, stet_error *err) {
    stet_value root;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = checks->script(checks->script_ctx, file, text, len, &root, &mine);
    if (status == STET_OK)
        return stet_pattern_of_value(file, root, checks, out, problems, err);
    if (problems) {
        *problems = stet_value_array();
        if (status == STET_INVALID)
            stet_value_push(problems, problem_of_error(file, &mine, "see docs/javascript.md"));
    }
    if (err)
        stet_error_move(err, &mine);
    else
        stet_error_clear(&mine);
    return status;
}

stet_status stet_pattern_parse(const char *file, const char *text, size_t len, const stet_pattern_checks *checks,
                               stet_pattern **out, stet_value *problems, stet_error *err) {
    stet_json_limits limits = {.max_bytes = MAX_PATTERN_BYTES};
    stet_value root;
    stet_error mine = STET_ERROR_INIT;
    if (checks && checks->script && (ends_with(file, ".js") || ends_with(file, ".mjs")))
        return parse_script(file, text, len, checks, out, problems, err);
    if (problems)
        *problems = stet_value_array();
    stet_status status = stet_json_read(text, len, &limits, &root, &mine);
    if (status != STET_OK) {
        if (problems) {
            stet_value p = problem_of_error(file, &mine, "write JSON (RFC 8259)");
            stet_value_push(problems, p);
        }
        stet_fail_in(&mine, "%s", file);
        if (err)
            stet_error_move(err, &mine);
        else
            stet_error_clear(&mine);
        return status;
    }
    pattern_checker c = {.file = file, .text = text, .len = len, .checks = checks, .at = STET_BUF(1 << 20)};
    if (problems)
        stet_value_release(*problems);
    return finish(&c, root, out, problems, err);
}

stet_status stet_pattern_load(const char *file, const stet_pattern_checks *checks, stet_pattern **out,
                              stet_value *problems, stet_error *err) {
    stet_buf text = STET_BUF(MAX_PATTERN_BYTES + 1);
    if (problems)
        *problems = stet_value_array();
    stet_status status = stet_file_read(file, MAX_PATTERN_BYTES, &text, err);
    if (status == STET_OK) {
        if (problems)
            stet_value_release(*problems);
        status = stet_pattern_is_toml(file)
                     ? stet_pattern_toml_parse(file, stet_buf_cstr(&text), text.len, checks, out, problems, err)
                     : stet_pattern_parse(file, stet_buf_cstr(&text), text.len, checks, out, problems, err);
    }
    stet_buf_release(&text);
    return status;
}

void stet_pattern_free(stet_pattern *p) {
    if (!p)
        return;
    stet_value_release(p->root);
    stet_value_release(p->after);
    stet_map_release(&p->names);
    stet_arena_release(&p->arena);
    free(p->nodes);
    free(p);
}
