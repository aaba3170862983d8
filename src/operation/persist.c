/* persist.c - the operations persist put, get, list, show and stats. */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "operation/args.h"
#include "operation/persist_common.h"
#include "operation/text.h"
#include "os/clock.h"
#include "os/file.h"

static stet_status put_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    static const char *const kinds[] = {"variables", "output", "stderr"};
    stet_value hold, module_value = stet_value_get(args, "module");
    char module[STET_PERSIST_HASH + 1];
    stet_persist_key key = {.module_hash = module, .created_at = stet_persist_now()};
    stet_status status = stet_persist_op_module(stet_value_as_string(&module_value, NULL), module, err);
    if (status == STET_OK && stet_value_type(stet_value_get(args, "created_at")) == STET_TYPE_STRING)
        status = stet_persist_op_created(stet_value_get(args, "created_at"), &key.created_at, err);
    stet_persist *p = NULL;
    if (status == STET_OK)
        status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_value block = stet_value_get(args, "block");
    key.block_id = stet_value_as_string(&block, &key.block_len);
    if (!key.block_len)
        key.block_id = NULL;
    stet_persist_put *w = stet_persist_put_begin(p, &key);
    if (stet_value_type(stet_value_get(args, "elapsed_ms")) == STET_TYPE_INT)
        stet_persist_put_elapsed(w, stet_value_as_int(stet_value_get(args, "elapsed_ms")));
    size_t given = 0;
    for (size_t i = 0; i < 3; i++) {
        const char *file = stet_value_text_at(args, kinds[i], &hold);
        if (!file)
            continue;
        given++;
        stet_value format_value;
        const char *format = stet_value_text_at(args,
                                                i == 0   ? "format"
                                                : i == 1 ? "output_format"
                                                         : "stderr_format",
                                                &format_value);
        stet_persist_put_content(w, kinds[i], format);
        if (stet_value_type(stet_value_get(args, "compress")) == STET_TYPE_BOOL)
            stet_persist_put_compress(w, stet_value_as_bool(stet_value_get(args, "compress")));
        char *path = stet_op_path(ctx, file);
        stet_persist_put_file(w, path);
        stet_free(path);
    }
    stet_persist_entry *e = NULL;
    if (!given) {
        stet_persist_put_abort(w);
        status = stet_fail(err, STET_INVALID, "nothing to put: give at least one of --variables, --output, --stderr");
    } else
        status = stet_persist_put_end(w, &e, err);
    if (status == STET_OK) {
        *result = stet_persist_op_entry(e);
        stet_persist_entry_free(e);
    }
    stet_persist_close(p);
    return status;
}

static void put_render(stet_render *r, stet_value v) {
    stet_value block = stet_value_get(v, "block"), time = stet_value_get(v, "time");
    stet_buf_str(r->out, "put ");
    stet_text_value(r, block);
    char bytes[32];
    stet_persist_op_bytes((uint64_t)stet_value_as_int(stet_value_get(v, "size")), bytes);
    stet_buf_printf(r->out, " of %s: %s in %zu content%s\n", stet_value_as_string(&time, NULL), bytes,
                    stet_value_count(stet_value_get(v, "contents")),
                    stet_value_count(stet_value_get(v, "contents")) == 1 ? "" : "s");
}

static stet_status to_surface(void *ctx, const void *bytes, size_t len, stet_error *err) {
    stet_op_ctx *c = ctx;
    return c->cancelled(c) ? stet_fail(err, STET_CANCELLED, "cancelled") : c->write_out(c, bytes, len, err);
}

static stet_status to_buffer(void *ctx, const void *bytes, size_t len, stet_error *err) {
    (void)err;
    stet_buf_add(ctx, bytes, len);
    return STET_OK;
}

enum { INLINE_TEXT = 256 * 1024 }; /* maximum number of bytes included in a JSON result */

static stet_status give(stet_op_ctx *ctx, stet_persist *p, const stet_persist_content *c, stet_value args,
                        stet_value *result, stet_error *err) {
    stet_value hold;
    const char *file = stet_value_text_at(args, "output_file", &hold);
    if (file) {
        static const char *const names[] = {"reflink", "hardlink", "copy"};
        char *path = stet_op_path(ctx, file);
        stet_persist_restored how;
        stet_status status = stet_persist_restore(
            p, c->id, c->size, path, 0644, stet_value_as_bool(stet_value_get(args, "hardlink")), &how, NULL, err);
        if (status == STET_OK) {
            stet_value_put(result, "path", stet_value_string(path));
            stet_value_put(result, "restored", stet_value_string(names[how]));
        }
        stet_free(path);
        return status;
    }
    if (ctx->write_out)
        return stet_persist_read(p, c->id, c->size, to_surface, ctx, err);
    if (c->size > INLINE_TEXT)
        return STET_OK; /* the result describes it; the bytes need a file */
    stet_buf b = STET_BUF(0);
    stet_status status = stet_persist_read(p, c->id, c->size, to_buffer, &b, err);
    if (status == STET_OK && stet_utf8_valid(stet_buf_cstr(&b), b.len))
        stet_value_put(result, "text", stet_value_string_n(stet_buf_cstr(&b), b.len));
    stet_buf_release(&b);
    return status;
}

static stet_status get_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_value kind_value = stet_value_get(args, "kind");
    const char *kind = stet_value_as_string(&kind_value, NULL);
    stet_persist_entry *named = NULL, *e = NULL;
    status = stet_persist_op_find(p, args, &named, err);
    if (status == STET_OK) {
        /* The same key, but now with objects that are present and right: maybe an older entry. */
        stet_persist_key key = named->key;
        status = stet_persist_get(p, &key, stet_value_as_bool(stet_value_get(args, "exact")) ? STET_PERSIST_EXACT : 0,
                                  (const char *const[]){kind, NULL}, &e, err);
    }
    if (status == STET_OK) {
        *result = stet_persist_op_entry(e);
        stet_value_put(result, "kind", stet_value_string(kind));
        status = give(ctx, p, stet_persist_entry_content(e, kind), args, result, err);
        if (status != STET_OK) {
            stet_value_release(*result);
            *result = stet_value_null();
        }
    }
    stet_persist_entry_free(e);
    stet_persist_entry_free(named);
    stet_persist_close(p);
    return status;
}

static void get_render(stet_render *r, stet_value v) {
    stet_value path = stet_value_get(v, "path"), how = stet_value_get(v, "restored");
    if (stet_value_type(path) != STET_TYPE_STRING)
        return; /* the bytes themselves were written instead */
    stet_buf_str(r->out, "wrote ");
    stet_text_value(r, path);
    stet_buf_printf(r->out, " (%s)\n", stet_value_as_string(&how, NULL));
}

typedef struct listing {
    stet_value entries;
    int64_t total, limit;
} listing;

static bool list_one(void *ctx, const stet_persist_entry *e) {
    listing *l = ctx;
    if (++l->total <= l->limit || l->limit == 0)
        stet_value_push(&l->entries, stet_persist_op_entry(e));
    return true;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_value hold;
    listing l = {.entries = stet_value_array(), .limit = stet_value_as_int(stet_value_get(args, "limit"))};
    status = stet_persist_each(p, stet_value_text_at(args, "block", &hold), list_one, &l, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "total", stet_value_int(l.total));
        stet_value_put(result, "entries", l.entries);
    } else
        stet_value_release(l.entries);
    stet_persist_close(p);
    return status;
}

static void list_render(stet_render *r, stet_value v) {
    stet_value entries = stet_value_get(v, "entries");
    if (!stet_value_count(entries)) {
        stet_buf_str(r->out, "no entries\n");
        return;
    }
    stet_table t = stet_table_begin(5, (const char *const[]){"TIME", "MODULE", "SIZE", "CONTENTS", "BLOCK"});
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value e = stet_value_at(entries, i), time = stet_value_get(e, "time"),
                   module = stet_value_get(e, "module"), block = stet_value_get(e, "block");
        char bytes[32];
        stet_persist_op_bytes((uint64_t)stet_value_as_int(stet_value_get(e, "size")), bytes);
        stet_buf kinds = STET_BUF(200);
        for (size_t k = 0; k < stet_value_count(stet_value_get(e, "contents")); k++) {
            stet_value kind = stet_value_get(stet_value_at(stet_value_get(e, "contents"), k), "kind");
            stet_buf_printf(&kinds, "%s%s", k ? "," : "", stet_value_as_string(&kind, NULL));
        }
        stet_table_cell(&t, stet_value_as_string(&time, NULL));
        stet_table_cellf(&t, "%.12s", stet_value_as_string(&module, NULL));
        stet_table_cell(&t, bytes);
        stet_table_cell(&t, stet_buf_cstr(&kinds));
        stet_table_cell(&t, stet_value_as_string(&block, NULL));
        stet_buf_release(&kinds);
    }
    stet_table_print(&t, r, true);
    int64_t total = stet_value_as_int(stet_value_get(v, "total"));
    if ((size_t)total > stet_value_count(entries))
        stet_buf_printf(r->out, "%zu of %lld; --limit 0 shows all\n", stet_value_count(entries), (long long)total);
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_persist_entry *e = NULL;
    stet_value marks = stet_value_null();
    status = stet_persist_op_find(p, args, &e, err);
    if (status == STET_OK)
        status = stet_persist_marks(p, &e->key, &marks, err);
    if (status == STET_OK) {
        *result = stet_persist_op_entry(e);
        stet_value_put(result, "marks", marks);
        stet_value_put(result, "toml", stet_value_string(e->text));
        stet_value contents = stet_value_retain(stet_value_get(*result, "contents"));
        for (size_t i = 0; i < e->content_count; i++) {
            stet_value c = stet_value_retain(stet_value_at(contents, i));
            stet_value_put(&c, "here",
                           stet_value_bool(stet_persist_has_object(p, e->contents[i].id, e->contents[i].size, true)));
            stet_value_put_at(&contents, i, c);
        }
        stet_value_put(result, "contents", contents);
    }
    stet_persist_entry_free(e);
    stet_persist_close(p);
    return status;
}

static void show_render(stet_render *r, stet_value v) {
    stet_value toml = stet_value_get(v, "toml"), time = stet_value_get(v, "time"), marks = stet_value_get(v, "marks"),
               contents = stet_value_get(v, "contents");
    size_t len;
    const char *text = stet_value_as_string(&toml, &len);
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        stet_text_plain(r, line, n);
        stet_buf_char(r->out, '\n');
        line += n + (line[n] == '\n');
    }
    stet_buf_printf(r->out, "\ncreated %s, %s\n", stet_value_as_string(&time, NULL),
                    stet_value_as_bool(stet_value_get(v, "in_log")) ? "in the log of this machine" : "in the snapshot");
    for (size_t i = 0; i < stet_value_count(contents); i++) {
        stet_value c = stet_value_at(contents, i), kind = stet_value_get(c, "kind");
        if (!stet_value_as_bool(stet_value_get(c, "here"))) {
            stet_text_styled(r, STET_STYLE_BAD, stet_value_as_string(&kind, NULL));
            stet_buf_str(r->out, ": its object is not here, or damaged\n");
        }
    }
    for (size_t i = 0; i < stet_value_count(marks); i++) {
        stet_value m = stet_value_at(marks, i);
        const char *tag = stet_value_as_string(&m, NULL);
        stet_buf_printf(r->out, *tag ? "tagged %s\n" : "pinned%s\n", tag);
    }
}

static stet_status stats_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    status = stet_persist_statistics(p, result, err);
    if (status == STET_OK)
        stet_value_put(result, "dir", stet_value_string(stet_persist_dir(p)));
    stet_persist_close(p);
    return status;
}

static void stats_render(stet_render *r, stet_value v) {
    char bytes[32], trash[32], saved[STET_TIME_TEXT];
    stet_persist_op_bytes((uint64_t)stet_value_as_int(stet_value_get(v, "object_bytes")), bytes);
    stet_persist_op_bytes((uint64_t)stet_value_as_int(stet_value_get(v, "trash_bytes")), trash);
    stet_duration_print(stet_value_as_int(stet_value_get(v, "saved_ms")), saved);
#define N(name) (long long)stet_value_as_int(stet_value_get(v, name))
    stet_buf_printf(r->out,
                    "entries   %lld (%lld in the log, %lld of calls, %lld pinned) of %lld blocks, %lld modules\n",
                    N("entries"), N("log_entries"), N("call_entries"), N("pinned"), N("blocks"), N("modules"));
    stet_buf_printf(r->out, "objects   %lld, %s", N("objects"), bytes);
    if (N("missing_objects"))
        stet_buf_printf(r->out, "; %lld missing", N("missing_objects"));
    stet_buf_printf(r->out, "\ntrash     %s\n", trash);
    stet_buf_printf(r->out, "here      %lld hits, %lld misses, %s saved\n", N("hits"), N("misses"), saved);
#undef N
}

#define BLOCK_PARAM(f)                                                                                                 \
    {                                                                                                                  \
        .name = "block", .letter = 'b', .type = STET_PARAM_STRING, .flags = f, .metavar = "BLOCK",                     \
        .summary = "The block: free text, or a hash; call:NAME for calls"                                              \
    }
#define MODULE_PARAM(f, s)                                                                                             \
    { .name = "module", .letter = 'm', .type = STET_PARAM_STRING, .flags = f, .metavar = "HASH", .summary = s }
#define CREATED_PARAM(s)                                                                                               \
    { .name = "created-at", .letter = 't', .type = STET_PARAM_STRING, .metavar = "TIME", .summary = s }

static const stet_param put_params[] = {
    BLOCK_PARAM(STET_PARAM_REQUIRED),
    MODULE_PARAM(STET_PARAM_REQUIRED,
                 "Hash of the block and all it depends on: 43 characters of base64url, or 64 hexadecimal digits"),
    CREATED_PARAM("When the execution began; without it, now"),
    {.name = "variables", .type = STET_PARAM_FILE, .summary = "File with the variables"},
    {.name = "output", .type = STET_PARAM_FILE, .summary = "File with what the block printed"},
    {.name = "stderr", .type = STET_PARAM_FILE, .summary = "File with what it printed as errors"},
    {.name = "format",
     .type = STET_PARAM_STRING,
     .metavar = "FORMAT",
     .summary = "Of the variables: pickle, json, bytes, text, ...; auto is the configured one",
     .default_json = "\"auto\""},
    {.name = "output-format",
     .type = STET_PARAM_STRING,
     .metavar = "FORMAT",
     .summary = "Of the output",
     .default_json = "\"text\""},
    {.name = "stderr-format",
     .type = STET_PARAM_STRING,
     .metavar = "FORMAT",
     .summary = "Of the errors",
     .default_json = "\"text\""},
    {.name = "elapsed-ms",
     .type = STET_PARAM_INT,
     .metavar = "MS",
     .summary = "What the execution took, for the statistics",
     .min = 0,
     .max = INT64_MAX},
    {.name = "compress",
     .type = STET_PARAM_BOOL,
     .summary = "Store with zstd where that saves a tenth; without it, as configured"},
    {0},
};
static const stet_param get_params[] = {
    BLOCK_PARAM(0),
    MODULE_PARAM(STET_PARAM_REQUIRED, "Module hash, or at least 6 characters of it"),
    CREATED_PARAM("The latest entry up to this time; without it, the latest"),
    {.name = "exact",
     .type = STET_PARAM_BOOL,
     .summary = "Only the entry of exactly --created-at",
     .default_json = "false"},
    {.name = "kind",
     .letter = 'k',
     .type = STET_PARAM_STRING,
     .metavar = "KIND",
     .summary = "Which content",
     .default_json = "\"variables\""},
    {.name = "output-file",
     .letter = 'o',
     .type = STET_PARAM_FILE,
     .summary = "Write it there, whole or not at all; without it, to standard output"},
    {.name = "hardlink",
     .type = STET_PARAM_BOOL,
     .summary = "The file may share its bytes with the object, and is read-only then",
     .default_json = "false"},
    {0},
};
static const stet_param list_params[] = {
    BLOCK_PARAM(0),
    {.name = "limit",
     .letter = 'n',
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "At most so many; 0: all",
     .default_json = "100",
     .min = 0,
     .max = INT64_MAX},
    {0},
};
static const stet_param show_params[] = {
    BLOCK_PARAM(0),
    MODULE_PARAM(0, "Module hash, or at least 6 characters of it"),
    CREATED_PARAM("The latest entry up to this time"),
    {.name = "exact",
     .type = STET_PARAM_BOOL,
     .summary = "Only the entry of exactly --created-at",
     .default_json = "false"},
    {0},
};

static const stet_example put_examples[] = {
    {"persist put --block train --module bbcdefghijklmnopqrstuvwxyzABCDEFGH123456789 --variables model.bin --format "
     "bytes",
     "store what a block left"},
    {0},
};
static const stet_example get_examples[] = {
    {"persist get --block plot --module abcdef --output-file restored.json",
     "restore the latest variables of a module into a file"},
    {0},
};
static const stet_example list_examples[] = {
    {"persist list", "what there is"}, {"persist list --block plot --limit 5", "of one block"}, {0}};
static const stet_example show_examples[] = {
    {"persist show --block plot", "the latest entry of a block, with its pins and whether its objects are here"}, {0}};
static const stet_example stats_examples[] = {{"persist stats", "how much there is, and what it saved"}, {0}};

const stet_op stet_ops_persist[] = {
    {.name = "persist put",
     .summary = "Store an entry: what a block of code left behind",
     .description = "The same key with the same contents is stored once; with other contents it is a conflict. Objects "
                    "are synced before the "
                    "entry is written.",
     .params = put_params,
     .result_schema = STET_PERSIST_ENTRY_SCHEMA,
     .examples = put_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = put_run,
     .render = put_render},
    {.name = "persist get",
     .summary = "Give back a content of the latest entry of a module",
     .description = "An entry whose object is missing or damaged is passed over for the next older one. The bytes are "
                    "checked against their hash.",
     .params = get_params,
     .result_schema = STET_PERSIST_ENTRY_SCHEMA,
     .examples = get_examples,
     .run = get_run,
     .render = get_render},
    {.name = "persist list",
     .summary = "List entries, sorted by block, module and time",
     .params = list_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"total\",\"entries\"],\"additionalProperties\":false,"
                      "\"properties\":{\"total\":{\"type\":"
                      "\"integer\"},\"entries\":{\"type\":\"array\",\"items\":" STET_PERSIST_ENTRY_SCHEMA "}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "persist show",
     .summary = "Show one entry as it is stored",
     .params = show_params,
     .result_schema = STET_PERSIST_ENTRY_SCHEMA,
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY,
     .run = show_run,
     .render = show_render},
    {.name = "persist stats",
     .summary = "Count entries, objects, bytes, hits and the time they saved",
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"entries\",\"objects\",\"object_bytes\",\"hits\",\"misses\",\"saved_ms\"]"
         ",\"properties\":{"
         "\"entries\":{\"type\":\"integer\"},\"objects\":{\"type\":\"integer\"},\"object_bytes\":{\"type\":\"integer\"}"
         ","
         "\"hits\":{\"type\":\"integer\"},\"misses\":{\"type\":\"integer\"},\"saved_ms\":{\"type\":\"integer\"}}}",
     .examples = stats_examples,
     .flags = STET_OP_READ_ONLY,
     .run = stats_run,
     .render = stats_render},
    {0},
};
