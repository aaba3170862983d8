/* persist_manage.c - the operations persist cleanup, undelete, pin, tag and watch, and the store "persist". */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "operation/persist_common.h"
#include "operation/text.h"
#include "os/clock.h"
#include "os/file.h"

static stet_persist_choice choice(stet_value args, const char *name) {
    stet_value v = stet_value_get(args, name);
    return stet_value_type(v) != STET_TYPE_BOOL ? STET_PERSIST_AS_CONFIGURED
           : stet_value_as_bool(v)              ? STET_PERSIST_YES
                                                : STET_PERSIST_NO;
}

static stet_status cleanup_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_persist_limits limits = stet_persist_config_of(p)->strategy;
    const struct {
        const char *name;
        int64_t *at;
    } given[] = {{"max_entries_per_block", &limits.max_entries_per_block},
                 {"max_entries_per_module", &limits.max_entries_per_module},
                 {"max_entry_age_days", &limits.max_entry_age_days},
                 {"max_total_content_size", &limits.max_total_content_size}};
    for (size_t i = 0; i < 4; i++)
        if (stet_value_type(stet_value_get(args, given[i].name)) == STET_TYPE_INT)
            *given[i].at = stet_value_as_int(stet_value_get(args, given[i].name));
    stet_persist_cleanup how = {.strategy = stet_persist_strategy_default,
                                .ctx = &limits,
                                .include_content = choice(args, "include_content"),
                                .delete_orphan_objects = choice(args, "delete_orphan_objects"),
                                .max_local_bytes = stet_value_as_int(stet_value_get(args, "max_local_bytes")),
                                .dry_run = stet_value_as_bool(stet_value_get(args, "dry_run")),
                                .force = stet_value_as_bool(stet_value_get(args, "force")),
                                .purge = stet_value_as_bool(stet_value_get(args, "purge"))};
    status = stet_persist_limits_check(&limits, err);
    stet_persist_cleaned c;
    if (status == STET_OK) {
        status = stet_persist_cleanup_run(p, &how, &c, err);
        if (status == STET_OK)
            *result = stet_persist_cleaned_value(&c);
        stet_persist_cleaned_release(&c);
    }
    stet_persist_close(p);
    return status;
}

static void cleanup_render(stet_render *r, stet_value v) {
#define N(name) (long long)stet_value_as_int(stet_value_get(v, name))
    bool dry = stet_value_as_bool(stet_value_get(v, "dry_run"));
    char bytes[32];
    stet_persist_op_bytes((uint64_t)stet_value_as_int(stet_value_get(v, "bytes_removed")), bytes);
    stet_value entries = stet_value_get(v, "entries");
    for (size_t i = 0; dry && i < stet_value_count(entries); i++) {
        stet_value e = stet_value_at(entries, i), block = stet_value_get(e, "block");
        size_t len;
        const char *text = stet_value_as_string(&block, &len);
        char time[STET_TIME_TEXT];
        stet_time_print(stet_persist_created_to_unix((uint64_t)stet_value_as_int(stet_value_get(e, "created_at"))),
                        time);
        stet_buf_printf(r->out, "would go: %s  ", time);
        stet_text_plain(r, text, len);
        stet_buf_char(r->out, '\n');
    }
    stet_buf_printf(r->out, "%s %lld of %lld entries and %lld objects (%s)", dry ? "would remove" : "removed",
                    N("entries_removed"), N("entries_before"), N("objects_removed"), bytes);
    if (N("snapshots_merged"))
        stet_buf_printf(r->out, "; %s %lld snapshots", dry ? "would merge" : "merged", N("snapshots_merged"));
    stet_buf_str(r->out, N("entries_removed") + N("objects_removed") && !dry
                             ? "; `stet persist undelete` brings them back\n"
                             : "\n");
#undef N
}

static bool add_batch(void *ctx, const stet_persist_trashed *b) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "batch", stet_value_string(b->batch));
    stet_value_put(&v, "deleted", stet_time_value(b->deleted_at));
    stet_value_put(&v, "entries", stet_value_int((int64_t)b->entries));
    stet_value_put(&v, "objects", stet_value_int((int64_t)b->objects));
    stet_value_put(&v, "bytes", stet_value_int((int64_t)b->bytes));
    stet_value_push(ctx, v);
    return true;
}

static stet_status undelete_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_value batch, block, module;
    const char *module_text = stet_value_text_at(args, "module", &module);
    char hash[STET_PERSIST_HASH + 1];
    bool dry = stet_value_as_bool(stet_value_get(args, "dry_run"));
    stet_persist_undeleted back = {0};
    stet_value batches = stet_value_array();
    if (module_text)
        status = stet_persist_op_module(module_text, hash, err);
    if (status == STET_OK && dry)
        status = stet_persist_trash_each(p, add_batch, &batches, err);
    if (status == STET_OK)
        status = stet_persist_undelete(p, stet_value_text_at(args, "batch", &batch),
                                       stet_value_text_at(args, "block", &block), module_text ? hash : NULL, dry, &back,
                                       err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "dry_run", stet_value_bool(dry));
        stet_value_put(result, "entries", stet_value_int((int64_t)back.entries));
        stet_value_put(result, "objects", stet_value_int((int64_t)back.objects));
        stet_value_put(result, "batches", batches);
    } else
        stet_value_release(batches);
    stet_persist_close(p);
    return status;
}

static void undelete_render(stet_render *r, stet_value v) {
    stet_value batches = stet_value_get(v, "batches");
    if (stet_value_count(batches)) {
        stet_table t = {.columns = 5};
        static const char *const head[] = {"BATCH", "DELETED", "ENTRIES", "OBJECTS", "SIZE"};
        for (size_t i = 0; i < 5; i++)
            stet_table_cell(&t, head[i]);
        for (size_t i = 0; i < stet_value_count(batches); i++) {
            stet_value b = stet_value_at(batches, i), name = stet_value_get(b, "batch"),
                       deleted = stet_value_get(b, "deleted");
            char bytes[32];
            stet_persist_op_bytes((uint64_t)stet_value_as_int(stet_value_get(b, "bytes")), bytes);
            stet_table_cell(&t, stet_value_as_string(&name, NULL));
            stet_table_cell(&t, stet_value_as_string(&deleted, NULL));
            stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(b, "entries")));
            stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(b, "objects")));
            stet_table_cell(&t, bytes);
        }
        stet_table_print(&t, r, true);
    }
    stet_buf_printf(r->out, "%s %lld entries and %lld objects\n",
                    stet_value_as_bool(stet_value_get(v, "dry_run")) ? "would bring back" : "brought back",
                    (long long)stet_value_as_int(stet_value_get(v, "entries")),
                    (long long)stet_value_as_int(stet_value_get(v, "objects")));
}

static stet_status mark_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    stet_value hold, marks = stet_value_null();
    bool off = stet_value_as_bool(stet_value_get(args, "off"));
    stet_persist_entry *e = NULL;
    status = stet_persist_op_find(p, args, &e, err);
    if (status == STET_OK)
        status = stet_persist_mark(p, &e->key, stet_value_text_at(args, "name", &hold), !off, err);
    if (status == STET_OK)
        status = stet_persist_marks(p, &e->key, &marks, err);
    if (status == STET_OK) {
        *result = stet_persist_op_entry(e);
        stet_value_put(result, "marks", marks);
    }
    stet_persist_entry_free(e);
    stet_persist_close(p);
    return status;
}

static void mark_render(stet_render *r, stet_value v) {
    stet_value block = stet_value_get(v, "block"), time = stet_value_get(v, "time"), marks = stet_value_get(v, "marks");
    stet_text_value(r, block);
    stet_buf_printf(r->out, " of %s: ", stet_value_as_string(&time, NULL));
    if (!stet_value_count(marks))
        stet_buf_str(r->out, "not protected");
    for (size_t i = 0; i < stet_value_count(marks); i++) {
        stet_value m = stet_value_at(marks, i);
        const char *tag = stet_value_as_string(&m, NULL);
        stet_buf_printf(r->out, "%s%s%s", i ? ", " : "", *tag ? "tag " : "pinned", tag);
    }
    stet_buf_char(r->out, '\n');
}

/* The keys of the current entries, to find out what was added and removed. */
typedef struct known {
    stet_value keys; /* an object: "block\nmodule\ncreated_at" -> the entry */
} known;

static bool remember(void *ctx, const stet_persist_entry *e) {
    known *k = ctx;
    char *key =
        stet_asprintf("%s\n%s\n%llu", e->key.block_id, e->key.module_hash, (unsigned long long)e->key.created_at);
    stet_value_put(&k->keys, key, stet_persist_op_entry(e));
    stet_free(key);
    return true;
}

static stet_value only_in(stet_value a, stet_value b) {
    stet_value out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(a); i++) {
        size_t len;
        const char *key = stet_value_key_at(a, i, &len);
        stet_value ignored;
        if (!stet_value_find(b, key, len, &ignored))
            stet_value_push(&out, stet_value_retain(stet_value_at(a, i)));
    }
    return out;
}

static stet_status watch_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_persist *p;
    stet_status status = stet_persist_op_open(ctx, &p, err);
    if (status != STET_OK)
        return status;
    bool merge = stet_value_as_bool(stet_value_get(args, "merge"));
    int64_t count = stet_value_as_int(stet_value_get(args, "count")),
            seconds = stet_value_as_int(stet_value_get(args, "timeout"));
    int64_t until = seconds > 0 ? stet_clock_monotonic_us() + seconds * 1000000 : -1, events = 0;
    known before = {.keys = stet_value_object()};
    if (stet_persist_watch_fd(p, err) < 0)
        status = err && err->status != STET_OK ? err->status : STET_IO;
    if (status == STET_OK)
        status = stet_persist_each(p, NULL, remember, &before, err);
    while (status == STET_OK && !ctx->cancelled(ctx) && (!count || events < count)) {
        int64_t next = -1;
        if (merge && (status = stet_persist_tick(p, &next, err)) != STET_OK)
            break;
        int64_t left = until < 0 ? 500 : (until - stet_clock_monotonic_us()) / 1000;
        if (until >= 0 && left <= 0)
            break;
        if (left > 500)
            left = 500; /* checks for Ctrl-C twice a second */
        stet_error waited = STET_ERROR_INIT;
        status = stet_persist_wait(p, (int)left, &waited);
        if (status == STET_BUSY || status == STET_CANCELLED) {
            stet_error_clear(&waited);
            status = STET_OK;
            continue;
        }
        stet_error_move(err, &waited);
        known after = {.keys = stet_value_object()};
        if (status == STET_OK)
            status = stet_persist_each(p, NULL, remember, &after, err);
        if (status == STET_OK) {
            stet_value event = stet_value_object(), added = only_in(after.keys, before.keys),
                       removed = only_in(before.keys, after.keys);
            /* A merge alone does not change any entry. */
            bool any = stet_value_count(added) || stet_value_count(removed);
            stet_value_put(&event, "event", stet_value_string("changed"));
            stet_value_put(&event, "entries", stet_value_int((int64_t)stet_value_count(after.keys)));
            stet_value_put(&event, "added", added);
            stet_value_put(&event, "removed", removed);
            if (any) {
                events++;
                status = ctx->emit(ctx, event, err);
            }
            stet_value_release(event);
        }
        stet_value_release(before.keys);
        before = after;
    }
    if (status == STET_OK && merge)
        status = stet_persist_on_exit(p, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "events", stet_value_int(events));
        stet_value_put(result, "entries", stet_value_int((int64_t)stet_value_count(before.keys)));
    }
    stet_value_release(before.keys);
    stet_persist_close(p);
    return status;
}

static void watch_render(stet_render *r, stet_value v) {
    if (stet_value_type(stet_value_get(v, "event")) != STET_TYPE_STRING)
        return; /* nothing to show at the end */
    static const char *const sides[] = {"added", "removed"};
    for (size_t s = 0; s < 2; s++) {
        stet_value list = stet_value_get(v, sides[s]);
        for (size_t i = 0; i < stet_value_count(list); i++) {
            stet_value e = stet_value_at(list, i), block = stet_value_get(e, "block"), time = stet_value_get(e, "time"),
                       module = stet_value_get(e, "module");
            stet_buf_printf(r->out, "%c %s  %.12s  ", s ? '-' : '+', stet_value_as_string(&time, NULL),
                            stet_value_as_string(&module, NULL));
            stet_text_value(r, block);
            stet_buf_char(r->out, '\n');
        }
    }
}

#define FIND_PARAMS                                                                                                    \
    {.name = "block", .letter = 'b', .type = STET_PARAM_STRING, .metavar = "BLOCK", .summary = "Of this block"},       \
        {.name = "module",                                                                                             \
         .letter = 'm',                                                                                                \
         .type = STET_PARAM_STRING,                                                                                    \
         .metavar = "HASH",                                                                                            \
         .summary = "Module hash, or at least 6 characters of it"},                                                    \
        {.name = "created-at",                                                                                         \
         .letter = 't',                                                                                                \
         .type = STET_PARAM_STRING,                                                                                    \
         .metavar = "TIME",                                                                                            \
         .summary = "The latest entry up to this time"},                                                               \
        {.name = "exact",                                                                                              \
         .type = STET_PARAM_BOOL,                                                                                      \
         .summary = "Only the entry of exactly --created-at",                                                          \
         .default_json = "false"},                                                                                     \
    {                                                                                                                  \
        .name = "off", .type = STET_PARAM_BOOL, .summary = "Take the protection away", .default_json = "false"         \
    }

static const stet_param cleanup_params[] = {
    {.name = "max-entries-per-block",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "Keep the N latest entries of each block; -1: all",
     .min = -1,
     .max = INT64_MAX},
    {.name = "max-entries-per-module",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "Keep the N latest entries of each module; -1: all",
     .min = -1,
     .max = INT64_MAX},
    {.name = "max-entry-age-days",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "Keep what is younger; -1: any age",
     .min = -1,
     .max = INT64_MAX},
    {.name = "max-total-content-size",
     .type = STET_PARAM_INT,
     .metavar = "BYTES",
     .summary = "Keep so many bytes of contents, the oldest go first; -1: any",
     .min = -1,
     .max = INT64_MAX},
    {.name = "max-local-bytes",
     .type = STET_PARAM_INT,
     .metavar = "BYTES",
     .summary = "With contents: cap on the objects here, least recently used first; -1: none",
     .min = -1,
     .max = INT64_MAX},
    {.name = "include-content", .type = STET_PARAM_BOOL, .summary = "Delete objects too, not only entries"},
    {.name = "delete-orphan-objects",
     .type = STET_PARAM_BOOL,
     .summary = "Delete every object that no entry names, if it is old enough; implies --include-content"},
    {.name = "dry-run",
     .letter = 'n',
     .type = STET_PARAM_BOOL,
     .summary = "Say what would go, and do nothing",
     .default_json = "false"},
    {.name = "force",
     .type = STET_PARAM_BOOL,
     .summary = "Go on although not one entry would be kept",
     .default_json = "false"},
    {.name = "purge",
     .type = STET_PARAM_BOOL,
     .summary = "No trash: what goes is gone, and what is in the trash too",
     .default_json = "false"},
    {0},
};
static const stet_param undelete_params[] = {
    {.name = "batch",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "BATCH",
     .summary = "What one cleanup deleted; without it, all that is in the trash"},
    {.name = "block",
     .letter = 'b',
     .type = STET_PARAM_STRING,
     .metavar = "BLOCK",
     .summary = "Only what belongs to this block"},
    {.name = "module",
     .letter = 'm',
     .type = STET_PARAM_STRING,
     .metavar = "HASH",
     .summary = "Only what belongs to this module"},
    {.name = "dry-run",
     .letter = 'n',
     .type = STET_PARAM_BOOL,
     .summary = "Show what is in the trash, and do nothing",
     .default_json = "false"},
    {0},
};
static const stet_param pin_params[] = {FIND_PARAMS, {0}};
static const stet_param tag_params[] = {
    {.name = "name",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "NAME",
     .summary = "Of the tag: A-Z a-z 0-9 _ -"},
    FIND_PARAMS,
    {0},
};
static const stet_param watch_params[] = {
    {.name = "merge",
     .type = STET_PARAM_BOOL,
     .summary = "Merge what other machines bring, and the log when it is due",
     .default_json = "false"},
    {.name = "count",
     .letter = 'n',
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "End after so many changes; 0: never",
     .default_json = "0",
     .min = 0,
     .max = INT64_MAX},
    {.name = "timeout",
     .type = STET_PARAM_INT,
     .metavar = "SECONDS",
     .summary = "End after so long; 0: never",
     .default_json = "0",
     .min = 0,
     .max = 1000000},
    {0},
};

static const stet_example cleanup_examples[] = {
    {"persist cleanup --max-entries-per-block 1 --dry-run", "what would go if only the latest of each block stayed"},
    {"persist cleanup --max-entries-per-block=-1 --max-entries-per-module=-1 --max-entry-age-days 30 --include-content",
     "delete what is older than a month, with its bytes"},
    {0},
};
static const stet_example undelete_examples[] = {
    {"persist undelete --dry-run", "what the trash holds"}, {"persist undelete", "bring all of it back"}, {0}};
static const stet_example pin_examples[] = {
    {"persist pin --block plot", "keep the latest entry of a block, whatever a cleanup says"}, {0}};
static const stet_example tag_examples[] = {{"persist tag paper --block plot", "name it, which protects it too"}, {0}};
static const stet_example watch_examples[] = {
    {"persist watch --timeout 1", "show entries as they come and go, here for a second"}, {0}};

#define INTEGER "{\"type\":\"integer\"}"
const stet_op stet_ops_persist_manage[] = {
    {.name = "persist cleanup",
     .summary = "Merge log and snapshots, and remove what the strategy does not keep",
     .description =
         "Entries go first; objects only with --include-content, and never while a snapshot can't be read, while the "
         "last one that this machine "
         "knew is missing, or for objects younger than the grace period. What goes lies in the trash for a while.",
     .params = cleanup_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"entries_removed\",\"objects_removed\",\"bytes_removed\",\"dry_run\"],"
         "\"properties\":{"
         "\"entries_removed\":" INTEGER ",\"objects_removed\":" INTEGER ",\"bytes_removed\":" INTEGER
         ",\"dry_run\":{\"type\":\"boolean\"},\"entries\":{\"type\":\"array\"},\"objects\":{\"type\":\"array\"}}}",
     .examples = cleanup_examples,
     .flags = STET_OP_DESTRUCTIVE | STET_OP_LONG,
     .run = cleanup_run,
     .render = cleanup_render},
    {.name = "persist undelete",
     .summary = "Bring back what a cleanup deleted",
     .description = "Until the days that the trash keeps things are over. The next cleanup meets the entries again: "
                    "pin what is to stay.",
     .params = undelete_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"entries\",\"objects\",\"dry_run\",\"batches\"],"
                      "\"properties\":{\"entries\":" INTEGER ",\"objects\":" INTEGER
                      ",\"dry_run\":{\"type\":\"boolean\"},\"batches\":{\"type\":\"array\"}}}",
     .examples = undelete_examples,
     .run = undelete_run,
     .render = undelete_render},
    {.name = "persist pin",
     .summary = "Protect an entry from every cleanup",
     .params = pin_params,
     .result_schema = STET_PERSIST_ENTRY_SCHEMA,
     .examples = pin_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = mark_run,
     .render = mark_render},
    {.name = "persist tag",
     .summary = "Give an entry a tag, which protects it from every cleanup",
     .params = tag_params,
     .result_schema = STET_PERSIST_ENTRY_SCHEMA,
     .examples = tag_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = mark_run,
     .render = mark_render},
    {.name = "persist watch",
     .summary = "Show entries as they come and go, on this machine and from others",
     .description = "With --merge it also does what a long-lived process does: merges snapshots that other machines "
                    "bring, and the log when its time "
                    "has come, and cleans up at the end if that is configured.",
     .params = watch_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"events\",\"entries\"],\"properties\":{\"events\":" INTEGER
                      ",\"entries\":" INTEGER "}}",
     .examples = watch_examples,
     .flags = STET_OP_LONG,
     .run = watch_run,
     .render = watch_render},
    {0},
};

static bool present(stet_project *project) {
    char *dir;
    if (stet_persist_project_path(project, &dir, NULL) != STET_OK)
        return true; /* the configuration is invalid: check reports it */
    char *local = stet_project_path(project, "local/persist");
    bool there = stet_file_exists(dir) || stet_persist_was_used(local);
    stet_free(local);
    stet_free(dir);
    return there;
}

static stet_value where_value(const char *text) {
    stet_value v;
    return stet_value_string_checked(text, strlen(text), &v, NULL) == STET_OK
               ? v
               : stet_value_string("(a name that is not UTF-8)");
}

static void found(void *ctx, const stet_persist_problem *problem) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "store", stet_value_string("persist"));
    stet_value_put(&v, "what", where_value(problem->what));
    stet_value_put(&v, "where", where_value(problem->where));
    stet_value_put(&v, "repaired", stet_value_bool(problem->repaired));
    stet_value_push(ctx, v);
}

static stet_status check(stet_op_ctx *ctx, stet_project *project, bool repair, stet_value *problems, stet_error *err) {
    (void)ctx;
    stet_persist *p;
    stet_status status = stet_persist_open_project(project, !repair, NULL, NULL, &p, err);
    if (status != STET_OK)
        return status;
    status = stet_persist_check(p, repair, found, problems, err);
    stet_persist_close(p);
    return status;
}

/* Removes what the configuration allows, and abandoned files: temporary files of dead processes and expired trash. */
static stet_status gc(stet_op_ctx *ctx, stet_project *project, bool dry_run, stet_value *report, stet_error *err) {
    (void)ctx;
    stet_persist *p;
    stet_status status = stet_persist_open_project(project, dry_run, NULL, NULL, &p, err);
    if (status != STET_OK)
        return status;
    uint64_t items = 0, bytes = 0;
    stet_persist_cleaned c;
    status = stet_persist_sweep(p, false, dry_run, &items, &bytes, err);
    if (status == STET_OK) {
        status = stet_persist_cleanup_run(p, &(stet_persist_cleanup){.dry_run = dry_run}, &c, err);
        if (status == STET_OK) {
            stet_value_put(report, "items", stet_value_int((int64_t)(items + c.entries_removed + c.objects_removed)));
            stet_value_put(report, "bytes", stet_value_int((int64_t)(bytes + c.bytes_removed)));
            stet_value_put(report, "entries", stet_value_int((int64_t)c.entries_removed));
            stet_value_put(report, "objects", stet_value_int((int64_t)c.objects_removed));
        }
        stet_persist_cleaned_release(&c);
    }
    stet_persist_close(p);
    return status;
}

const stet_store stet_store_persist = {
    .name = "persist", .summary = "entries and objects of finished work", .present = present, .check = check, .gc = gc};
