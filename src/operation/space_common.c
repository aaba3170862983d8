/* space_common.c - what the operations on spaces share. */

#include "operation/space_common.h"

#include <string.h>

#include "base/text.h"
#include "operation/text.h"
#include "os/clock.h"

/* A name with a NUL inside would be cut. No space, branch, scope or id contains one. */
static stet_status no_nul(stet_value args, const char *name, stet_error *err) {
    stet_value v = stet_value_get(args, name);
    size_t len;
    const char *text = stet_value_as_string(&v, &len);
    if (text && strlen(text) != len)
        return stet_fail(err, STET_INVALID, "--%s: holds a NUL character", name);
    return STET_OK;
}

static stet_status open_space(space_call *c, stet_value args, space_access access, stet_error *err) {
    static const char *const texts[] = {"space", "branch", "scope", "cell", "id"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stet_status st = no_nul(args, texts[i], err);
        if (st != STET_OK)
            return st;
    }
    c->space_name = stet_value_text_at(args, "space", &c->hold[0]);
    c->branch_name = stet_value_text_at(args, "branch", &c->hold[1]);
    c->scope = stet_value_text_at(args, "scope", &c->hold[2]);
    stet_project *p;
    stet_status st = c->ctx->project(c->ctx, &p, err);
    if (st != STET_OK)
        return st;
    const char *name = c->space_name ? c->space_name : "main";
    bool is_default = strcmp(name, "main") == 0 && (!c->branch_name || !*c->branch_name);
    stet_error why = STET_ERROR_INIT;
    st = stet_space_open(p, name, access == SPACE_WRITE ? 0 : STET_SPACE_READ_ONLY, &c->space, &why);
    if (st == STET_NOT_FOUND && access == SPACE_LIST && is_default) {
        stet_error_clear(&why);
        return STET_OK;
    }
    stet_error_move(err, &why);
    return st == STET_OK ? stet_space_branch(c->space, c->branch_name, &c->branch, err) : st;
}

stet_status space_begin(stet_op_ctx *ctx, stet_value args, space_access access, space_call *c, stet_error *err) {
    *c = (space_call){.ctx = ctx, .path = STET_PATH_INIT, .arena = STET_ARENA_INIT};
    stet_status st = open_space(c, args, access, err);
    if (st != STET_OK)
        space_end(c);
    return st;
}

void space_end(space_call *c) {
    stet_space_close(c->space);
    c->space = NULL;
    stet_free(c->id);
    c->id = NULL;
    stet_path_release(&c->path);
    stet_arena_release(&c->arena);
}

stet_status space_run(stet_op_ctx *ctx, stet_value args, space_access access, space_fn *fn, stet_value *result,
                      stet_error *err) {
    space_call c;
    stet_status st = space_begin(ctx, args, access, &c, err);
    if (st != STET_OK)
        return st;
    st = fn(&c, args, result, err);
    space_end(&c);
    return st;
}

stet_status space_cell(space_call *c, stet_value args, stet_error *err) {
    stet_value hold;
    bool meta = stet_value_as_bool(stet_value_get(args, "meta"));
    stet_status st = stet_cell_parse(stet_value_text_at(args, "cell", &hold), meta, &c->id, &c->path, err);
    c->doc = (stet_docname){c->id, c->scope};
    return st;
}

stet_value space_pointer(stet_pathref path) {
    stet_buf b = STET_BUF(0);
    stet_path_print(path, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

stet_value space_leaves(const stet_change *at, size_t len) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < len; i++) {
        stet_value leaf = stet_value_object();
        stet_value_put(&leaf, "path", space_pointer(at[i].path));
        stet_value_put(&leaf, "kind", stet_value_string(at[i].kind == STET_KEYSET ? "keys" : "value"));
        stet_value_push(&list, leaf);
    }
    return list;
}

void space_render_changes(stet_render *r, stet_value changes, bool ids) {
    for (size_t i = 0; i < stet_value_count(changes); i++) {
        stet_value leaf = stet_value_at(changes, i), kind = stet_value_get(leaf, "kind"),
                   scope = stet_value_get(leaf, "scope");
        stet_buf_str(r->out, strcmp(stet_value_as_string(&kind, NULL), "keys") == 0 ? "  keys   " : "  value  ");
        if (ids) {
            stet_text_value(r, stet_value_get(leaf, "id"));
            size_t len = 0;
            stet_value_as_string(&scope, &len);
            if (len) {
                stet_buf_str(r->out, " (");
                stet_text_value(r, scope);
                stet_buf_char(r->out, ')');
            }
            stet_buf_char(r->out, ' ');
        }
        stet_value path = stet_value_get(leaf, "path");
        size_t len = 0;
        stet_value_as_string(&path, &len);
        if (len > 0)
            stet_text_value(r, path);
        else /* the envelope itself was added or removed */
            stet_buf_str(r->out, "(the whole document)");
        stet_buf_char(r->out, '\n');
    }
}
