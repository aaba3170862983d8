/* resource.c - MCP resources: documents, runs, pieces and graphs by address. */

#include "mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "memory/space.h"
#include "os/file.h"

#define SCHEME       "stet://"
#define PARTS_MAX    4
#define ROWS_AT_ONCE 500

/* An address taken apart; the parts are decoded. */
typedef struct address {
    const char *kind;
    const char *part[PARTS_MAX];
    size_t parts;
    const char *scope; /* ?scope=..., or NULL */
    char text[STET_MCP_URI_MAX];
} address;

typedef struct kind {
    const char *name, *title, *description, *template;
    size_t parts;
    const char *read_op, *list_op;
    stet_value (*args)(const struct kind *k, const address *a);
    stet_status (*list)(const struct kind *k, const stet_mcp_caller *c, stet_value *out, stet_error *err);
    /* For list_plain: the array in the list operation's result, the id in its members, and how it pages. */
    const char *rows, *id, *next, *cursor;
} kind;

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes in place up to `stop` or the end; returns what follows, NULL if it is malformed. */
static char *decode(char *at, const char *stops) {
    char *out = at;
    for (; *at && !strchr(stops, *at); at++) {
        if (*at != '%') {
            *out++ = *at;
            continue;
        }
        int high = hex(at[1]), low = high < 0 ? -1 : hex(at[2]);
        if (low < 0 || (high | low) == 0)
            return NULL;
        *out++ = (char)(high << 4 | low);
        at += 2;
    }
    char *rest = at;
    if (out != at)
        *out = 0;
    return rest;
}

static bool parse(const char *uri, address *a) {
    size_t len = strlen(uri);
    *a = (address){0};
    if (len >= sizeof a->text || strncmp(uri, SCHEME, strlen(SCHEME)) != 0)
        return false;
    memcpy(a->text, uri + strlen(SCHEME), len - strlen(SCHEME) + 1);
    char *at = strchr(a->text, '/');
    if (!at)
        return false;
    *at++ = 0;
    a->kind = a->text;
    for (;;) {
        if (a->parts == PARTS_MAX)
            return false;
        a->part[a->parts++] = at;
        char *rest = decode(at, "/?#");
        if (!rest || rest == at)
            return false;
        char stop = *rest;
        *rest = 0;
        if (!stet_utf8_valid(at, strlen(at)))
            return false;
        at = rest + 1;
        if (!stop)
            return true;
        if (stop == '/')
            continue;
        if (stop == '#' || strncmp(at, "scope=", 6) != 0)
            return false;
        a->scope = at + 6;
        rest = decode(at + 6, "&#?");
        return rest && !*rest && stet_utf8_valid(a->scope, strlen(a->scope));
    }
}

static void encode(stet_buf *out, const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-._~:", *c);
        if (plain)
            stet_buf_char(out, (char)*c);
        else
            stet_buf_printf(out, "%%%02X", *c);
    }
}

static void add(stet_value *list, const kind *k, const char *title, const stet_buf *uri) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "uri", stet_value_string(stet_buf_cstr(uri)));
    stet_value_put(&v, "name", stet_value_string(stet_buf_cstr(uri) + strlen(SCHEME)));
    stet_value_put(&v, "title", stet_value_stringf("%s %s", k->title, title));
    stet_value_put(&v, "mimeType", stet_value_string("application/json"));
    stet_value_push(list, v);
}

/* Every row of a list operation, page after page, up to STET_MCP_LIST_MAX. `args` is consumed. */
static stet_status each_row(const stet_mcp_caller *c, const kind *k, stet_value args, stet_value *rows,
                            stet_error *err) {
    const stet_op *op = stet_op_find(k->list_op);
    stet_status status = STET_OK;
    *rows = stet_value_array();
    if (stet_op_param(op, "limit"))
        stet_value_put(&args, "limit", stet_value_int(ROWS_AT_ONCE));
    while (status == STET_OK && stet_value_count(*rows) < STET_MCP_LIST_MAX) {
        stet_value result;
        status = c->call(c->ctx, op, stet_value_retain(args), &result, err);
        if (status != STET_OK)
            break;
        stet_value page = stet_value_get(result, k->rows),
                   next = k->next ? stet_value_get(result, k->next) : stet_value_null();
        for (size_t i = 0; i < stet_value_count(page); i++)
            stet_value_push(rows, stet_value_retain(stet_value_at(page, i)));
        bool more = stet_value_type(next) != STET_TYPE_NULL && stet_value_count(page) && k->cursor &&
                    stet_op_param(op, k->cursor);
        if (more)
            stet_value_put(&args, k->cursor, stet_value_retain(next));
        stet_value_release(result);
        if (!more)
            break;
    }
    stet_value_release(args);
    if (status != STET_OK) {
        stet_value_release(*rows);
        *rows = stet_value_null();
    }
    return status;
}

static stet_status list_plain(const kind *k, const stet_mcp_caller *c, stet_value *out, stet_error *err) {
    stet_value rows, args = stet_value_object();
    const stet_param *scope = stet_op_param(stet_op_find(k->list_op), "scope");
    if (scope && scope->type == STET_PARAM_ENUM)
        stet_value_put(&args, "scope", stet_value_string("repo")); /* of this project, not of all */
    stet_status status = each_row(c, k, args, &rows, err);
    for (size_t i = 0; status == STET_OK && i < stet_value_count(rows); i++) {
        stet_value id = stet_value_get(stet_value_at(rows, i), k->id);
        if (stet_value_type(id) != STET_TYPE_STRING)
            continue;
        stet_buf uri = STET_BUF(STET_MCP_URI_MAX);
        stet_buf_printf(&uri, SCHEME "%s/", k->name);
        encode(&uri, stet_value_as_string(&id, NULL));
        if (!uri.overflow)
            add(out, k, stet_value_as_string(&id, NULL), &uri);
        stet_buf_release(&uri);
    }
    if (status == STET_OK)
        stet_value_release(rows);
    return status;
}

static stet_status list_space(const kind *k, const stet_mcp_caller *c, const char *space, stet_value *out,
                              stet_error *err) {
    stet_value rows, args = stet_value_object();
    stet_value_put(&args, "space", stet_value_string(space));
    stet_status status = each_row(c, k, args, &rows, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value id = stet_value_get(stet_value_at(rows, i), k->id),
                   scope = stet_value_get(stet_value_at(rows, i), "scope");
        if (stet_value_type(id) != STET_TYPE_STRING)
            continue;
        stet_buf uri = STET_BUF(STET_MCP_URI_MAX);
        stet_buf_printf(&uri, SCHEME "%s/", k->name);
        encode(&uri, space);
        stet_buf_char(&uri, '/');
        encode(&uri, stet_value_as_string(&id, NULL));
        size_t len = 0;
        const char *text = stet_value_type(scope) == STET_TYPE_STRING && strcmp(k->name, "doc") == 0
                               ? stet_value_as_string(&scope, &len)
                               : ""; /* a piece has its scope in its name */
        if (len) {
            stet_buf_str(&uri, "?scope=");
            encode(&uri, text);
        }
        if (!uri.overflow)
            add(out, k, stet_value_as_string(&id, NULL), &uri);
        stet_buf_release(&uri);
    }
    stet_value_release(rows);
    return STET_OK;
}

static stet_status list_spaces(const kind *k, const stet_mcp_caller *c, stet_value *out, stet_error *err) {
    const stet_op *spaces_op = stet_op_find("space list");
    stet_value result;
    if (!spaces_op || !c->permitted(c->ctx, spaces_op))
        return list_space(k, c, "main", out, err);
    stet_status status = c->call(c->ctx, spaces_op, stet_value_object(), &result, err);
    if (status != STET_OK)
        return status;
    stet_value spaces = stet_value_get(result, "spaces");
    for (size_t i = 0; i < stet_value_count(spaces); i++) {
        stet_value name = stet_value_get(stet_value_at(spaces, i), "name");
        stet_error one = STET_ERROR_INIT; /* a space that can't be read does not hide the others */
        if (stet_value_type(name) == STET_TYPE_STRING &&
            list_space(k, c, stet_value_as_string(&name, NULL), out, &one) != STET_OK)
            stet_error_clear(&one);
    }
    stet_value_release(result);
    return STET_OK;
}

/* A document's id as the first part of a cell: its slashes and tildes are no separators. */
static stet_value document_args(const kind *k, const address *a) {
    (void)k;
    stet_buf cell = STET_BUF(0);
    for (const char *c = a->part[1]; *c; c++)
        if (*c == '~' || *c == '/')
            stet_buf_str(&cell, *c == '~' ? "~0" : "~1");
        else
            stet_buf_char(&cell, *c);
    stet_value args = stet_value_object();
    stet_value_put(&args, "space", stet_value_string(a->part[0]));
    stet_value_put(&args, "cell", stet_value_string(stet_buf_cstr(&cell)));
    if (a->scope)
        stet_value_put(&args, "scope", stet_value_string(a->scope));
    stet_buf_release(&cell);
    return args;
}

/* The subject of the reading operation: its first positional parameter. */
static stet_value plain_args(const kind *k, const address *a) {
    stet_value args = stet_value_object();
    if (a->parts == 2)
        stet_value_put(&args, "space", stet_value_string(a->part[0]));
    for (const stet_param *p = stet_op_find(k->read_op)->params; p && p->name; p++)
        if (p->flags & STET_PARAM_POSITIONAL) {
            char key[STET_PARAM_NAME_MAX];
            stet_param_key(p, key);
            stet_value_put(&args, key, stet_value_string(a->part[a->parts - 1]));
            break;
        }
    return args;
}

static const kind kinds[] = {
    {"doc", "Document", "A document of a space, with its sequence and hash", "stet://doc/{space}/{id}", 2, "doc get",
     "doc list", document_args, list_spaces, "documents", "id", "next", "after"},
    {"graph", "Graph of piece", "The graph of a piece: its actions, what they read and write, and their states",
     "stet://graph/{space}/{piece}", 2, "piece graph", "piece list", plain_args, list_spaces, "pieces", "piece", "next",
     "after"},
    {"piece", "Piece", "A piece: one living instance of a pattern", "stet://piece/{space}/{piece}", 2, "piece show",
     "piece list", plain_args, list_spaces, "pieces", "piece", "next", "after"},
    {"run", "Run", "A run: its tasks, their states and errors, and what to do next", "stet://run/{id}", 1, "runs show",
     "runs list", plain_args, list_plain, "records", "runId", "nextCursor", "cursor"},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const stet_op *usable(const stet_mcp_caller *c, const char *name) {
    const stet_op *op = stet_op_find(name);
    return op && (op->flags & STET_OP_READ_ONLY) && c->permitted(c->ctx, op) ? op : NULL;
}

/* The kind of an address, if it is served. */
static const kind *kind_of(const stet_mcp_caller *c, const address *a) {
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, a->kind) == 0)
            return a->parts == kinds[i].parts && (!a->scope || kinds[i].args == document_args) &&
                           usable(c, kinds[i].read_op)
                       ? &kinds[i]
                       : NULL;
    return NULL;
}

stet_value stet_mcp_resource_templates(const stet_mcp_caller *c) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < KINDS; i++) {
        if (!usable(c, kinds[i].read_op))
            continue;
        stet_value v = stet_value_object();
        stet_value_put(&v, "uriTemplate", stet_value_string(kinds[i].template));
        stet_value_put(&v, "name", stet_value_string(kinds[i].name));
        stet_value_put(&v, "title", stet_value_string(kinds[i].title));
        stet_value_put(&v, "description", stet_value_string(kinds[i].description));
        stet_value_put(&v, "mimeType", stet_value_string("application/json"));
        stet_value_push(&list, v);
    }
    return list;
}

static int by_uri(const void *a, const void *b) {
    return stet_value_compare(stet_value_get(*(const stet_value *)a, "uri"),
                              stet_value_get(*(const stet_value *)b, "uri"));
}

stet_status stet_mcp_resource_list(const stet_mcp_caller *c, stet_value *out, stet_error *err) {
    stet_value all = stet_value_array();
    for (size_t i = 0; i < KINDS; i++) {
        if (!usable(c, kinds[i].read_op) || !usable(c, kinds[i].list_op))
            continue;
        stet_status status = kinds[i].list(&kinds[i], c, &all, err);
        if (status != STET_OK) {
            stet_value_release(all);
            return status;
        }
    }
    size_t n = stet_value_count(all);
    stet_value *at = stet_alloc((n ? n : 1) * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = stet_value_at(all, i);
    qsort(at, n, sizeof *at, by_uri);
    *out = stet_value_array();
    for (size_t i = 0; i < n; i++)
        stet_value_push(out, stet_value_retain(at[i]));
    free(at);
    stet_value_release(all);
    return STET_OK;
}

bool stet_mcp_resource_served(const stet_mcp_caller *c, const char *uri) {
    address a;
    return parse(uri, &a) && kind_of(c, &a);
}

stet_status stet_mcp_resource_read(const stet_mcp_caller *c, const char *uri, stet_value *out, stet_error *err) {
    address a;
    const kind *k = parse(uri, &a) ? kind_of(c, &a) : NULL;
    if (!k)
        return stet_fail(err, STET_NOT_FOUND, "there is no resource %.200s", uri);
    const stet_op *op = stet_op_find(k->read_op);
    stet_value result;
    stet_status status = c->call(c->ctx, op, k->args(k, &a), &result, err);
    if (status != STET_OK)
        return status;
    if (stet_op_verdict(op, result) == STET_NOT_FOUND) {
        stet_value_release(result);
        return stet_fail(err, STET_NOT_FOUND, "there is no resource %.200s", uri);
    }
    *out = result;
    return STET_OK;
}

typedef struct open_space {
    char *name;
    stet_space *space;
} open_space;

struct stet_mcp_watch {
    char *from;
    stet_project *project;
    STET_VEC(open_space) spaces;
};

stet_mcp_watch *stet_mcp_watch_new(const char *from) {
    stet_mcp_watch *w = stet_alloc_zero(sizeof *w);
    w->from = stet_strdup(from);
    return w;
}

static void forget(stet_mcp_watch *w) {
    for (size_t i = 0; i < w->spaces.len; i++) {
        stet_space_close(w->spaces.at[i].space);
        free(w->spaces.at[i].name);
    }
    stet_vec_release(&w->spaces);
    if (w->project)
        stet_project_close(w->project);
    w->project = NULL;
}

void stet_mcp_watch_free(stet_mcp_watch *w) {
    if (!w)
        return;
    forget(w);
    free(w->from);
    free(w);
}

static stet_space *space_of(stet_mcp_watch *w, const char *name) {
    for (size_t i = 0; i < w->spaces.len; i++)
        if (strcmp(w->spaces.at[i].name, name) == 0)
            return w->spaces.at[i].space;
    stet_space *s;
    if (stet_space_open(w->project, name, STET_SPACE_READ_ONLY, &s, NULL) != STET_OK)
        return NULL;
    *stet_vec_add(&w->spaces) = (open_space){stet_strdup(name), s};
    return s;
}

static void mark_spaces(stet_mcp_watch *w, stet_buf *out) {
    stet_names names = {0};
    if (stet_space_names(w->project, &names, NULL) != STET_OK)
        stet_buf_str(out, "?");
    for (size_t i = 0; i < names.len; i++) {
        stet_space *s = space_of(w, names.at[i]);
        int64_t seq = -1;
        if (s && stet_space_seq(s, &seq, NULL) != STET_OK)
            seq = -2;
        stet_buf_printf(out, "%s %lld\n", names.at[i], (long long)seq);
    }
    stet_names_release(&names);
}

static void mark_runs(stet_mcp_watch *w, stet_buf *out) {
    char *runs = stet_project_path(w->project, "runs");
    stet_names names = {0};
    if (stet_file_exists(runs) && stet_file_list(runs, &names, NULL) != STET_OK)
        stet_buf_str(out, "?");
    for (size_t i = 0; i < names.len; i++) {
        char *state = stet_asprintf("%s/%s/state.json", runs, names.at[i]);
        struct stat st = {0};
        if (stet_sys_stat(state, &st) == 0)
            stet_buf_printf(out, "%s %lld.%ld %lld %llu\n", names.at[i], (long long)st.st_mtim.tv_sec,
                            st.st_mtim.tv_nsec, (long long)st.st_size, (unsigned long long)st.st_ino);
        free(state);
    }
    stet_names_release(&names);
    stet_free(runs);
}

uint64_t stet_mcp_watch_mark(stet_mcp_watch *w) {
    /* The project may be made, moved or replaced while the server runs: then everything is opened anew. */
    char *config = w->project ? stet_project_path(w->project, "config.toml") : NULL;
    if (config && !stet_file_exists(config))
        forget(w);
    stet_free(config);
    if (!w->project && stet_project_find(w->from, &w->project, NULL) != STET_OK)
        return 0;
    stet_buf text = STET_BUF(0);
    mark_spaces(w, &text);
    mark_runs(w, &text);
    uint64_t mark = stet_map_hash(stet_buf_cstr(&text), text.len) | 1;
    stet_buf_release(&text);
    return mark;
}
