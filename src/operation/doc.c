/* doc.c - the operations get, set, and doc get, set, patch, delete, log and list. */

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "operation/piece_common.h"
#include "operation/space_common.h"
#include "operation/text.h"
#include "os/clock.h"
#include "scheduler/reader.h"

/* The `process` metadata of a piece is its whole graph (GraphSnapshotV1), which is stored in parts beside the document.
 * If a part can't be read, the whole fails: half a graph would be taken for all of it. */
static stet_status put_snapshot(space_call *c, int64_t at, stet_value *envelope, stet_error *err) {
    stet_value process = stet_value_get(*envelope, "process"), schemas = stet_value_null(), graph;
    char *name = stet_value_type(process) == STET_TYPE_OBJECT ? stet_piece_of(&c->doc) : NULL;
    stet_piece *p = NULL;
    stet_process *g = NULL;
    if (!name)
        return STET_OK;
    stet_status st = stet_piece_load(c->space, c->branch, name, at, &p, err);
    stet_free(name);
    if (st != STET_OK)
        return st;
    st = stet_piece_process(c->space, c->branch, p, at, &g, err);
    stet_piece_free(p);
    if (st != STET_OK)
        return st;
    st = stet_piece_children(c->space, c->branch, at, g, NULL, err);
    if (st == STET_OK)
        st = stet_piece_schemas(c->space, c->branch, g, &schemas, err);
    graph = st == STET_OK ? stet_process_snapshot(g, schemas) : stet_value_null();
    stet_value_retain(process);
    for (size_t i = 0; i < stet_value_count(graph); i++)
        stet_value_put(&process, stet_value_key_at(graph, i, NULL), stet_value_retain(stet_value_at(graph, i)));
    stet_value_put(envelope, "process", process);
    stet_value_release(graph);
    stet_value_release(schemas);
    stet_process_free(g);
    return st;
}

/* Reads a cell with all links followed, including those on the way to it. */
static stet_status get_followed(space_call *c, int64_t at, stet_value *out, stet_error *err) {
    stet_project *project;
    stet_sched *sched;
    stet_sched_opts opts = {0};
    stet_status st = c->ctx->project(c->ctx, &project, err);
    if (st != STET_OK)
        return st;
    st = stet_sched_open(project, c->space, c->branch_name, &opts, &sched, err);
    if (st != STET_OK)
        return st;
    st = stet_sched_get_at(sched, c->doc.id, c->doc.scope, stet_path_ref(&c->path), at, out, err);
    stet_sched_close(sched);
    return st;
}

/* The requested value: `*followed` belongs to the caller, `*value` is borrowed from it or from `document`. */
static stet_status find_value(space_call *c, stet_value args, stet_value document, stet_value *followed,
                              stet_value *value, stet_value *hashed, stet_error *err) {
    bool fresh = stet_value_as_bool(stet_value_get(args, "fresh")),
         raw = stet_value_as_bool(stet_value_get(args, "meta")) || stet_value_as_bool(stet_value_get(args, "raw"));
    stet_value hold, stored = stet_value_null();
    bool there = stet_path_lookup(document, stet_path_ref(&c->path), &stored);
    stet_status st = raw && !there ? STET_NOT_FOUND : STET_OK;
    if (!raw && !fresh && (!there || stet_reader_has_links(stored))) {
        stet_error why = STET_ERROR_INIT;
        st = get_followed(c, stet_value_int_at(args, "at", -1), followed, &why);
        *value = *followed;
        if (st != STET_OK && st != STET_NOT_FOUND)
            stet_error_move(err, &why);
        stet_error_clear(&why);
    } else {
        *value = fresh && !raw ? *followed : stored;
    }
    *hashed = there ? stored : *value;
    if (st == STET_NOT_FOUND) {
        stet_fail(err, st, "nothing at %s in space \"%s\"%s", stet_value_text_at(args, "cell", &hold), c->space_name,
                  there ? ": a link there leads to nothing" : "");
        if (there)
            stet_hint(err, "--raw prints the link");
    }
    return st;
}

/* `followed`: what piece_fresh found, with --fresh. */
static stet_status get_stored(space_call *c, stet_value args, stet_value *followed, stet_value *result,
                              stet_error *err) {
    stet_doc_state d = {0};
    stet_value value, hashed;
    int64_t at = stet_value_int_at(args, "at", -1);
    stet_status st = stet_space_load(c->space, c->branch, &c->doc, at, &d, err);
    if (st != STET_OK)
        return st;
    if (!d.exists)
        st = stet_fail(err, STET_NOT_FOUND, "no document \"%s\"%s%s in space \"%s\"", c->id,
                       *c->scope ? " of scope " : "", c->scope, c->space_name);
    else if (stet_value_as_bool(stet_value_get(args, "meta")))
        st = put_snapshot(c, at, &d.value, err);
    if (st == STET_OK)
        st = find_value(c, args, d.value, followed, &value, &hashed, err);
    if (st == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "id", stet_value_string(c->id));
        stet_value_put(result, "scope", stet_value_string(c->scope));
        stet_value_put(result, "path", space_pointer(stet_path_ref(&c->path)));
        stet_value_put(result, "seq", stet_value_int(d.seq));
        stet_value_put(result, "hash", stet_hash_text(stet_hash_value(hashed)));
        stet_value_put(result, "value", stet_value_retain(value));
    }
    stet_value_release(d.value);
    return st;
}

/* --fresh: runs what the cell depends on. `c` is read-only, so that its space is closed before. */
static stet_status make_fresh(space_call *c, stet_value args, stet_value *followed, stet_error *err) {
    stet_op_ctx *ctx = c->ctx;
    stet_space_close(c->space);
    c->space = NULL;
    stet_status st = piece_fresh(ctx, args, &c->doc, stet_path_ref(&c->path), followed, err);
    if (st != STET_OK)
        return st;
    space_end(c);
    st = space_begin(ctx, args, SPACE_READ, c, err);
    return st == STET_OK ? space_cell(c, args, err) : st;
}

static stet_status get_cell(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_value followed = stet_value_null();
    stet_status st = space_cell(c, args, err);
    if (st == STET_OK && stet_value_as_bool(stet_value_get(args, "fresh")))
        st = make_fresh(c, args, &followed, err);
    if (st == STET_OK)
        st = get_stored(c, args, &followed, result, err);
    stet_value_release(followed);
    return st;
}

static stet_status get_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    if (stet_value_as_bool(stet_value_get(args, "fresh")) && stet_value_int_at(args, "at", -1) >= 0)
        return stet_fail(err, STET_INVALID, "--fresh and --at can't be combined: the past is not computed again");
    return space_run(ctx, args, SPACE_READ, get_cell, result, err);
}

static void get_render(stet_render *r, stet_value result) {
    stet_json_write(r->out, stet_value_get(result, "value"), STET_JSON_PRETTY);
}

static const stet_param get_params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "CELL",
     .summary = "ID[/KEY...], with ~1 for a slash and ~0 for a tilde inside an id or key"},
    {.name = "at",
     .type = STET_PARAM_INT,
     .metavar = "SEQ",
     .summary = "As of this sequence",
     .min = 0,
     .max = INT64_MAX},
    {.name = "fresh",
     .type = STET_PARAM_BOOL,
     .flags = STET_PARAM_CLI_ONLY, /* over MCP this is `piece pull` */
     .summary = "First run the actions that it depends on and that are out of date"},
    {.name = "raw", .type = STET_PARAM_BOOL, .summary = "Print links as they are stored and do not follow them"},
    PARAM_META,
    PARAM_SPACE,
    PARAM_BRANCH,
    PARAM_SCOPE,
    {0},
};

#define GET_SCHEMA                                                                                                     \
    "{\"type\":\"object\",\"required\":[\"id\",\"scope\",\"path\",\"seq\",\"hash\",\"value\"],\"properties\":{"        \
    "\"id\":{\"type\":\"string\"},\"scope\":{\"type\":\"string\"},\"path\":{\"type\":\"string\"},"                     \
    "\"seq\":{\"type\":\"integer\"},\"hash\":{\"type\":\"string\"},\"value\":{}}}"

static stet_value committed(const stet_commit_result *r) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "seq", stet_value_int(r->seq));
    stet_value_put(&v, "changed", stet_value_bool(r->changed));
    stet_value_put(&v, "replayed", stet_value_bool(r->replayed));
    return v;
}

#define COMMIT_SCHEMA                                                                                                  \
    "{\"type\":\"object\",\"required\":[\"seq\",\"changed\",\"replayed\"],\"properties\":{"                            \
    "\"seq\":{\"type\":\"integer\"},\"changed\":{\"type\":\"boolean\"},\"replayed\":{\"type\":\"boolean\"}}}"

static void commit_render(stet_render *r, stet_value result) {
    long long seq = stet_value_as_int(stet_value_get(result, "seq"));
    if (stet_value_as_bool(stet_value_get(result, "replayed")))
        stet_buf_printf(r->out, "done before, at sequence %lld\n", seq);
    else if (stet_value_as_bool(stet_value_get(result, "changed")))
        stet_buf_printf(r->out, "sequence %lld\n", seq);
    else
        stet_buf_printf(r->out, "nothing to change, at sequence %lld\n", seq);
}

/* Applies the preconditions and the session, which every writing operation accepts. */
static stet_status prepare(stet_tx *tx, const stet_docname *name, stet_value args, stet_error *err) {
    stet_value hold_hash, hold_session;
    const char *hash = stet_value_text_at(args, "if_hash", &hold_hash),
               *session = stet_value_text_at(args, "session", &hold_session);
    int64_t local = stet_value_int_at(args, "local", -1);
    stet_status st = hash ? stet_tx_require_hash(tx, name->id, name->scope, hash, err) : STET_OK;
    if (st != STET_OK)
        return st;
    if (stet_value_as_bool(stet_value_get(args, "if_absent")) && (st = stet_tx_need_absent(tx, name, err)) != STET_OK)
        return st;
    if ((session != NULL) != (local >= 0))
        return stet_fail(err, STET_INVALID, "--session and --local go together");
    return session ? stet_tx_session(tx, session, local, err) : STET_OK;
}

/* Changes the document of an operation, c->doc; c->path is the cell of `set`. */
typedef stet_status change_fn(space_call *c, stet_tx *tx, stet_value args, stet_error *err);

static stet_status commit_change(space_call *c, stet_value args, change_fn *change, stet_value *result,
                                 stet_error *err) {
    stet_tx *tx;
    stet_commit_result r;
    stet_status st = stet_tx_begin(c->space, c->branch_name, &tx, err);
    if (st != STET_OK)
        return st;
    st = prepare(tx, &c->doc, args, err);
    if (st == STET_OK)
        st = change(c, tx, args, err);
    if (st != STET_OK) {
        stet_tx_abort(tx);
        return st;
    }
    st = stet_tx_commit(tx, &r, err);
    if (st == STET_OK)
        *result = committed(&r);
    return st;
}

static stet_status apply_set(space_call *c, stet_tx *tx, stet_value args, stet_error *err) {
    return stet_tx_write_outside(tx, &c->doc, stet_path_ref(&c->path), stet_value_retain(stet_value_get(args, "value")),
                                 err);
}

static stet_status set_cell(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_status st = space_cell(c, args, err);
    return st == STET_OK ? commit_change(c, args, apply_set, result, err) : st;
}

static stet_status set_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold;
    char *id = NULL;
    stet_path path = STET_PATH_INIT;
    bool meta = stet_value_as_bool(stet_value_get(args, "meta"));
    /* Before the space is opened, which creates it. */
    stet_status st = stet_cell_parse(stet_value_text_at(args, "cell", &hold), meta, &id, &path, err);
    stet_free(id);
    stet_path_release(&path);
    return st == STET_OK ? space_run(ctx, args, SPACE_WRITE, set_cell, result, err) : st;
}

#define PARAMS_WRITE                                                                                                   \
    {.name = "if-absent", .type = STET_PARAM_BOOL, .summary = "Only if the document is not there"},                    \
        {.name = "if-hash",                                                                                            \
         .type = STET_PARAM_STRING,                                                                                    \
         .metavar = "SHA256",                                                                                          \
         .summary = "Only if the hash of the document's value is this, as doc get shows it"},                          \
        {.name = "session",                                                                                            \
         .type = STET_PARAM_STRING,                                                                                    \
         .metavar = "NAME",                                                                                            \
         .summary = "Names the commit together with --local: the same one again gets the first answer"},               \
    {                                                                                                                  \
        .name = "local", .type = STET_PARAM_INT, .metavar = "N", .summary = "The session's own number of this commit", \
        .min = 0, .max = INT64_MAX                                                                                     \
    }

static const stet_param set_params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "CELL",
     .summary = "ID[/KEY...]; the document and missing parents are created"},
    {.name = "value",
     .type = STET_PARAM_JSON,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "JSON",
     .summary = "The new value; - reads it from standard input"},
    PARAM_META,
    PARAM_SPACE,
    PARAM_BRANCH,
    PARAM_SCOPE,
    PARAMS_WRITE,
    {0},
};

/* Sets the document of an operation that names a whole one. */
static void take_id(space_call *c, stet_value args) {
    stet_value hold;
    c->id = stet_strdup(stet_value_text_at(args, "id", &hold));
    c->doc = (stet_docname){c->id, c->scope};
}

/* Runs doc patch and doc delete. The id is checked before the space is opened, which creates it. */
static stet_status change_run(stet_op_ctx *ctx, stet_value args, space_fn *fn, stet_value *result, stet_error *err) {
    stet_value hold;
    stet_docname name = {stet_value_text_at(args, "id", &hold), NULL};
    stet_status st = stet_docname_check(&name, err);
    return st == STET_OK ? space_run(ctx, args, SPACE_WRITE, fn, result, err) : st;
}

static stet_status apply_patch(space_call *c, stet_tx *tx, stet_value args, stet_error *err) {
    stet_patches ops = {0};
    stet_status st = stet_patches_of_value(stet_value_get(args, "operations"),
                                           stet_value_as_bool(stet_value_get(args, "meta")), &c->arena, &ops, err);
    if (st == STET_OK)
        st = stet_tx_patch_outside(tx, &c->doc, ops.at, ops.len, err);
    stet_patches_release(&ops);
    return st;
}

static stet_status patch_doc(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    take_id(c, args);
    return commit_change(c, args, apply_patch, result, err);
}

static stet_status patch_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return change_run(ctx, args, patch_doc, result, err);
}

static stet_status apply_delete(space_call *c, stet_tx *tx, stet_value args, stet_error *err) {
    stet_value v;
    (void)args;
    /* Fails if the document does not exist. */
    stet_status st = stet_tx_read(tx, NULL, &c->doc, STET_PATH_ROOT, STET_SHALLOW, &v, err);
    return st == STET_OK ? stet_tx_drop_outside(tx, &c->doc, err) : st;
}

static stet_status delete_doc(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    take_id(c, args);
    return commit_change(c, args, apply_delete, result, err);
}

static stet_status delete_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return change_run(ctx, args, delete_doc, result, err);
}

#define PARAM_ID                                                                                                       \
    {                                                                                                                  \
        .name = "id", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,                 \
        .metavar = "ID", .summary = "The document, its id as it is: a slash is no separator here"                      \
    }

static const stet_param patch_params[] = {
    PARAM_ID,
    {.name = "operations",
     .type = STET_PARAM_JSON,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "JSON",
     .summary = "An array of operations; - reads it from standard input"},
    PARAM_META,
    PARAM_SPACE,
    PARAM_BRANCH,
    PARAM_SCOPE,
    PARAMS_WRITE,
    {0},
};

static const stet_param delete_params[] = {PARAM_ID, PARAM_SPACE, PARAM_BRANCH, PARAM_SCOPE, PARAMS_WRITE, {0}};

static stet_value revision_value(const stet_revision *rev, const char *branch) {
    static const char *const kinds[] = {[STET_REVISION_SET] = "set",
                                        [STET_REVISION_PATCH] = "patch",
                                        [STET_REVISION_DELETE] = "delete",
                                        [STET_REVISION_LOST] = "lost"};
    stet_value v = stet_value_object();
    stet_value_put(&v, "seq", stet_value_int(rev->seq));
    stet_value_put(&v, "time", stet_time_value(rev->time_ms));
    stet_value_put(&v, "branch", stet_value_string(branch));
    stet_value_put(&v, "kind", stet_value_string(kinds[rev->kind]));
    stet_value_put(&v, "changes", space_leaves(rev->at, rev->len));
    if (rev->kind == STET_REVISION_SET)
        stet_value_put(&v, "document", stet_value_retain(rev->payload));
    else if (rev->kind == STET_REVISION_PATCH)
        stet_value_put(&v, "operations", stet_value_retain(rev->payload));
    return v;
}

static const char *branch_name(const stet_branch_info *at, size_t count, int64_t branch) {
    for (size_t i = 0; i < count; i++)
        if (at[i].branch == branch)
            return at[i].name;
    return "";
}

static stet_status log_doc(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_revision *revs = NULL;
    stet_branch_info *branches;
    size_t count = 0, branch_count = 0;
    int64_t next = 0, before = stet_value_int_at(args, "before", 0);
    take_id(c, args);
    stet_status st =
        stet_space_history(c->space, c->branch, &c->doc, before, (size_t)stet_value_int_at(args, "limit", 100),
                           &c->arena, &revs, &count, &next, err);
    if (st != STET_OK)
        return st;
    if (count == 0 && before == 0)
        return stet_fail(err, STET_NOT_FOUND, "no document \"%s\" ever was in space \"%s\"", c->id, c->space_name);
    st = stet_space_branches(c->space, NULL, true, STET_BRANCH_MAX, &c->arena, &branches, &branch_count, err);
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++) {
        stet_value_push(&list, revision_value(&revs[i], branch_name(branches, branch_count, revs[i].branch)));
        stet_value_release(revs[i].payload);
    }
    *result = stet_value_object();
    stet_value_put(result, "id", stet_value_string(c->id));
    stet_value_put(result, "revisions", list);
    if (next)
        stet_value_put(result, "next", stet_value_int(next));
    return st;
}

static stet_status log_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_READ, log_doc, result, err);
}

static void log_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "revisions");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value rev = stet_value_at(list, i), time = stet_value_get(rev, "time"), kind = stet_value_get(rev, "kind");
        stet_value branch = stet_value_get(rev, "branch");
        stet_buf_printf(r->out, "%lld  %s  %s", (long long)stet_value_as_int(stet_value_get(rev, "seq")),
                        stet_value_as_string(&time, NULL), stet_value_as_string(&kind, NULL));
        size_t len;
        const char *text = stet_value_as_string(&branch, &len);
        if (len) {
            stet_buf_str(r->out, "  on ");
            stet_text_plain(r, text, len);
        }
        stet_buf_char(r->out, '\n');
        space_render_changes(r, stet_value_get(rev, "changes"), false);
    }
    if (stet_value_type(stet_value_get(result, "next")) == STET_TYPE_INT)
        stet_buf_printf(r->out, "older ones: --before %lld\n",
                        (long long)stet_value_as_int(stet_value_get(result, "next")));
}

static const stet_param log_params[] = {
    PARAM_ID,
    PARAM_LIMIT,
    {.name = "before",
     .type = STET_PARAM_INT,
     .metavar = "SEQ",
     .summary = "Only revisions below this sequence: the next page",
     .min = 1,
     .max = INT64_MAX},
    PARAM_SPACE,
    PARAM_BRANCH,
    PARAM_SCOPE,
    {0},
};

/* A cursor is id and scope with a tab between them, which neither can contain, in base64url: one word for the shell. */
static stet_value cursor_of(const stet_docname *name) {
    char *plain = stet_asprintf("%s\t%s", name->id, name->scope);
    size_t len = strlen(plain);
    char *text = stet_alloc((len * 4 + 2) / 3 + 1);
    stet_base64url_encode(plain, len, text);
    stet_value v = stet_value_string(text);
    stet_free(text);
    stet_free(plain);
    return v;
}

static stet_status read_cursor(const char *text, char **plain, stet_docname *out, stet_error *err) {
    size_t len = strlen(text), got = 0;
    *plain = stet_alloc_zero(len + 1);
    char *tab = stet_base64url_decode(text, len, *plain, &got) ? memchr(*plain, '\t', got) : NULL;
    if (!tab || strlen(*plain) != got)
        return stet_fail(err, STET_INVALID, "--after: not a cursor that doc list gave");
    *tab = 0;
    *out = (stet_docname){*plain, tab + 1};
    return STET_OK;
}

/* `after`: NULL, or the last document of the page before. */
static stet_status list_after(space_call *c, stet_value args, const stet_docname *after, stet_value *result,
                              stet_error *err) {
    stet_value hold, list = stet_value_array();
    stet_doc_info *docs = NULL;
    size_t count = 0;
    bool more = false;
    stet_doc_filter filter = {.limit = (size_t)stet_value_int_at(args, "limit", 100),
                              .prefix = stet_value_text_at(args, "prefix", &hold),
                              .scope = c->scope,
                              .after = after};
    *result = stet_value_object();
    if (c->space) {
        stet_status st = stet_space_list(c->space, c->branch, &filter, &c->arena, &docs, &count, &more, err);
        if (st != STET_OK)
            return st;
    }
    for (size_t i = 0; i < count; i++) {
        stet_value row = stet_value_object();
        stet_value_put(&row, "id", stet_value_string(docs[i].name.id));
        stet_value_put(&row, "scope", stet_value_string(docs[i].name.scope));
        stet_value_put(&row, "seq", stet_value_int(docs[i].seq));
        stet_value_push(&list, row);
    }
    stet_value_put(result, "documents", list);
    if (more)
        stet_value_put(result, "next", cursor_of(&docs[count - 1].name));
    return STET_OK;
}

static stet_status list_docs(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold;
    stet_docname after;
    const char *cursor = stet_value_text_at(args, "after", &hold);
    if (!cursor)
        return list_after(c, args, NULL, result, err);
    char *plain = NULL;
    stet_status st = read_cursor(cursor, &plain, &after, err);
    if (st == STET_OK)
        st = list_after(c, args, &after, result, err);
    stet_free(plain);
    return st;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_LIST, list_docs, result, err);
}

static void list_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "documents"), next = stet_value_get(result, "next");
    stet_table t = stet_table_begin(3, (const char *const[]){"ID", "SCOPE", "SEQ"});
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), id = stet_value_get(row, "id"), scope = stet_value_get(row, "scope");
        stet_table_cell(&t, stet_value_as_string(&id, NULL));
        stet_table_cell(&t, stet_value_as_string(&scope, NULL));
        stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(row, "seq")));
    }
    if (stet_value_count(list) == 0)
        stet_buf_str(r->out, "no documents\n");
    else
        stet_table_print(&t, r, true);
    if (stet_value_count(list) == 0)
        stet_value_release(t.cells);
    if (stet_value_type(next) == STET_TYPE_STRING)
        stet_buf_printf(r->out, "more: --after %s\n", stet_value_as_string(&next, NULL));
}

static const stet_param list_params[] = {
    {.name = "prefix", .type = STET_PARAM_STRING, .metavar = "TEXT", .summary = "Only ids that begin so"},
    {.name = "scope", .type = STET_PARAM_STRING, .metavar = "NAME", .summary = "Only of this scope; without it of any"},
    PARAM_LIMIT,
    {.name = "after", .type = STET_PARAM_STRING, .metavar = "CURSOR", .summary = "The `next` of the page before"},
    PARAM_SPACE,
    PARAM_BRANCH,
    {0},
};

static const char patch_text[] =
    "The operations, applied all or none. Paths are JSON Pointers (or arrays of keys) into the value, with --meta into "
    "the whole document.\n\n"
    "  {\"op\":\"replace\",\"path\":P,\"value\":V}           whatever is there; missing parents are created\n"
    "  {\"op\":\"add\",\"path\":P,\"value\":V}               a member, or an element inserted (\"-\": at the end)\n"
    "  {\"op\":\"remove\",\"path\":P}\n"
    "  {\"op\":\"move\",\"from\":P,\"path\":P}\n"
    "  {\"op\":\"splice\",\"path\":P,\"index\":N,\"remove\":N,\"add\":[...]}\n"
    "  {\"op\":\"append\",\"path\":P,\"values\":[...]}\n"
    "  {\"op\":\"add-unique\",\"path\":P,\"value\":V}        unless an equal element is there\n"
    "  {\"op\":\"remove-by-value\",\"path\":P,\"value\":V}   every equal element\n"
    "  {\"op\":\"increment\",\"path\":P,\"by\":N}            by 1 unless given; absent counts as 0\n\n"
    "A document that is not there is created. Two such commits that read nothing do not conflict: each is applied to "
    "what "
    "is there at its turn.";

static const stet_example get_examples[] = {{"get config/theme", "one field of a document"},
                                            {"get config --at 1", "the document as it was at a sequence"},
                                            {"get config --meta", "value and metadata"},
                                            {0}};
static const stet_example doc_get_examples[] = {{"doc get config", "a whole value"}, {0}};
static const stet_example set_examples[] = {{"set config/theme '\"dark\"'", "set one field"},
                                            {"set events:42 '{\"at\":1}' --if-absent", "only if it is not there"},
                                            {0}};
static const stet_example doc_set_examples[] = {{"doc set config '{\"theme\":\"light\"}'", "replace a whole value"},
                                                {0}};
static const stet_example patch_examples[] = {
    {"doc patch config '[{\"op\":\"increment\",\"path\":\"/visits\"}]'", "count without reading"},
    {"doc patch config '[{\"op\":\"add\",\"path\":\"/tags/0\",\"value\":\"first\"}]'", "insert at the front of a list"},
    {0}};
static const stet_example delete_examples[] = {{"doc delete config", "it stays in the history"}, {0}};
static const stet_example log_examples[] = {{"doc log config --limit 5", "its last five revisions"}, {0}};
static const stet_example list_examples[] = {
    {"doc list", "all documents"}, {"doc list --prefix conf", "those whose id begins so"}, {0}};

#define LOG_SCHEMA                                                                                                     \
    "{\"type\":\"object\",\"required\":[\"id\",\"revisions\"],\"properties\":{\"id\":{\"type\":\"string\"},"           \
    "\"revisions\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"seq\",\"time\",\"branch\","      \
    "\"kind\",\"changes\"],\"properties\":{\"seq\":{\"type\":\"integer\"},\"time\":{\"type\":\"string\"},"             \
    "\"branch\":{\"type\":\"string\"},\"kind\":{\"enum\":[\"set\",\"patch\",\"delete\",\"lost\"]},"                    \
    "\"changes\":{\"type\":\"array\"},\"document\":{\"type\":\"object\"},\"operations\":{\"type\":\"array\"}}}},"      \
    "\"next\":{\"type\":\"integer\"}}}"

#define LIST_SCHEMA                                                                                                    \
    "{\"type\":\"object\",\"required\":[\"documents\"],\"properties\":{\"documents\":{\"type\":\"array\",\"items\":{"  \
    "\"type\":\"object\",\"required\":[\"id\",\"scope\",\"seq\"],\"properties\":{\"id\":{\"type\":\"string\"},"        \
    "\"scope\":{\"type\":\"string\"},\"seq\":{\"type\":\"integer\"}}}},\"next\":{\"type\":\"string\"}}}"

/* Defines an operation under two names. */
#define GET(words, text, shown, more)                                                                                  \
    {                                                                                                                  \
        .name = words, .summary = "Print a document's value or a part of it", .description = text,                     \
        .params = get_params, .result_schema = GET_SCHEMA, .examples = shown, .flags = STET_OP_READ_ONLY | (more),     \
        .run = get_run, .render = get_render                                                                           \
    }
#define SET(words, text, shown, more)                                                                                  \
    {                                                                                                                  \
        .name = words, .summary = "Set a document's value or a part of it", .description = text, .params = set_params, \
        .result_schema = COMMIT_SCHEMA, .examples = shown, .flags = STET_OP_IDEMPOTENT | STET_OP_DESTRUCTIVE | (more), \
        .run = set_run, .render = commit_render                                                                        \
    }

const stet_op stet_ops_doc[] = {
    GET("get", "The same as `doc get`.", get_examples, STET_OP_COMMON),
    GET("doc get",
        "Links are followed, on the way to the cell and in its value; --raw and --meta print them as they are stored. "
        "With --json the answer carries the sequence that made the document so, and the hash of the stored value, "
        "which "
        "--if-hash takes.",
        doc_get_examples, 0),
    SET("set", "The same as `doc set`.", set_examples, STET_OP_COMMON),
    SET("doc set", "Durable when it returns. Setting what is there already changes nothing and makes no new sequence.",
        doc_set_examples, 0),
    {.name = "doc patch",
     .summary = "Apply patch operations to a document, all or none",
     .description = patch_text,
     .params = patch_params,
     .result_schema = COMMIT_SCHEMA,
     .examples = patch_examples,
     .flags = STET_OP_DESTRUCTIVE | STET_OP_COMMON,
     .run = patch_run,
     .render = commit_render},
    {.name = "doc delete",
     .summary = "Delete a document; its history stays",
     .params = delete_params,
     .result_schema = COMMIT_SCHEMA,
     .examples = delete_examples,
     .flags = STET_OP_DESTRUCTIVE,
     .run = delete_run,
     .render = commit_render},
    {.name = "doc log",
     .summary = "Show the revisions of a document, newest first",
     .description = "Each with its sequence, what was done, and which leaves of the document changed.",
     .params = log_params,
     .result_schema = LOG_SCHEMA,
     .examples = log_examples,
     .flags = STET_OP_READ_ONLY,
     .run = log_run,
     .render = log_render},
    {.name = "doc list",
     .summary = "List the documents of a space",
     .description = "In the order of their ids.",
     .params = list_params,
     .result_schema = LIST_SCHEMA,
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = list_run,
     .render = list_render},
    {0},
};
