/* file.c - the operations file scan, list and watch: files of the project that are followed as documents. */

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/files.h"
#include "files/path.h"
#include "files/watch.h"
#include "operation/op.h"
#include "operation/text.h"
#include "os/clock.h"

static stet_status begin(stet_op_ctx *ctx, bool write, stet_space **space, stet_files **files, stet_error *err) {
    stet_project *project;
    stet_status status = ctx->project(ctx, &project, err);
    if (status == STET_OK)
        status = stet_space_open(project, "main", write ? 0 : STET_SPACE_READ_ONLY, space, err);
    if (status != STET_OK)
        return status;
    status = stet_files_open(project, *space, files, err);
    if (status != STET_OK)
        stet_space_close(*space);
    return status;
}

/* Follows a path or a pattern, as typed, and returns its name as a document. */
static stet_status follow(stet_op_ctx *ctx, stet_files *f, const char *word, stet_error *err) {
    stet_project *project;
    char *path;
    stet_status status = ctx->project(ctx, &project, err);
    if (status != STET_OK)
        return status;
    char *full = word[0] == '/' ? stet_strdup(word) : stet_asprintf("%s/%s", ctx->cwd, word);
    status = stet_path_normal(stet_project_root(project), "", full, &path, err);
    stet_free(full);
    if (status != STET_OK)
        return status;
    stet_buf id = STET_BUF(0);
    stet_buf_str(&id, strpbrk(path, "*?[") ? STET_GLOB_PREFIX : STET_FILE_PREFIX);
    stet_path_escape(path, &id);
    status = stet_files_follow(f, id.data, err);
    stet_buf_release(&id);
    stet_free(path);
    return status;
}

static stet_status scan_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_space *space;
    stet_files *files;
    stet_files_report r = {0};
    stet_value paths = stet_value_get(args, "path");
    stet_status status = begin(ctx, true, &space, &files, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < stet_value_count(paths) && status == STET_OK; i++) {
        stet_value v = stet_value_at(paths, i);
        status = follow(ctx, files, stet_value_as_string(&v, NULL), err);
    }
    if (status == STET_OK)
        status = stet_files_scan(files, &r, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "followed", stet_value_int((int64_t)r.followed));
        stet_value_put(result, "read", stet_value_int((int64_t)r.hashed));
        stet_value_put(result, "changed", stet_value_int((int64_t)r.changed));
        stet_value_put(result, "appeared", stet_value_int((int64_t)r.appeared));
        stet_value_put(result, "vanished", stet_value_int((int64_t)r.vanished));
        stet_value_put(result, "documents", stet_value_retain(r.list));
    }
    stet_value_release(r.list);
    stet_files_close(files);
    stet_space_close(space);
    return status;
}

static void scan_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "documents");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value id = stet_value_at(list, i);
        stet_text_value(r, id);
        stet_buf_char(r->out, '\n');
    }
    stet_buf_printf(r->out, "%lld followed, %lld read, %lld changed, %lld new, %lld gone\n",
                    (long long)stet_value_as_int(stet_value_get(result, "followed")),
                    (long long)stet_value_as_int(stet_value_get(result, "read")),
                    (long long)stet_value_as_int(stet_value_get(result, "changed")),
                    (long long)stet_value_as_int(stet_value_get(result, "appeared")),
                    (long long)stet_value_as_int(stet_value_get(result, "vanished")));
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_space *space;
    stet_files *files;
    stet_value list = stet_value_array();
    int64_t limit = stet_value_as_int(stet_value_get(args, "limit"));
    size_t total = 0;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = begin(ctx, false, &space, &files, &mine);
    if (status == STET_NOT_FOUND) { /* no file was ever followed */
        stet_project *p;
        stet_error_clear(&mine);
        status = ctx->project(ctx, &p, err);
    } else if (status != STET_OK) {
        stet_error_move(err, &mine);
    } else {
        char *id;
        stet_look look;
        for (size_t i = 0; stet_files_at(files, i, &id, &look); i++) {
            if (!id)
                continue;
            if ((int64_t)total++ < limit) {
                stet_value row = look.mode >= 0644 ? stet_look_value(&look) : stet_value_object();
                stet_value_put(&row, "document", stet_value_string(id));
                stet_value_put(&row, "present", stet_value_bool(look.mode != 0));
                stet_value_push(&list, row);
            }
            stet_free(id);
        }
        stet_files_close(files);
        stet_space_close(space);
    }
    if (status != STET_OK) {
        stet_value_release(list);
        return status;
    }
    *result = stet_value_object();
    stet_value_put(result, "total", stet_value_int((int64_t)total));
    stet_value_put(result, "files", list);
    return STET_OK;
}

static void list_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "files");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), id = stet_value_get(row, "document"),
                   hash = stet_value_get(row, "hash");
        stet_buf_printf(r->out, "%-12.12s ", stet_value_text(&hash, "-"));
        stet_text_value(r, id);
        if (!stet_value_as_bool(stet_value_get(row, "present"))) {
            stet_buf_str(r->out, "  ");
            stet_text_styled(r, STET_STYLE_WARN, "not there");
        }
        stet_buf_char(r->out, '\n');
    }
    size_t total = (size_t)stet_value_as_int(stet_value_get(result, "total"));
    if (total > stet_value_count(list))
        stet_buf_printf(r->out, "... and %zu more\n", total - stet_value_count(list));
    if (total == 0)
        stet_buf_str(r->out, "no files are followed\n");
}

#define STEP_MS 200 /* how often cancellation is checked */

static stet_status emit_report(stet_op_ctx *ctx, const stet_files_report *r, stet_error *err) {
    if (stet_value_count(r->list) == 0)
        return STET_OK;
    stet_value event = stet_value_object();
    stet_value_put(&event, "changed", stet_value_int((int64_t)r->changed));
    stet_value_put(&event, "appeared", stet_value_int((int64_t)r->appeared));
    stet_value_put(&event, "vanished", stet_value_int((int64_t)r->vanished));
    stet_value_put(&event, "documents", stet_value_retain(r->list));
    stet_status status = ctx->emit(ctx, event, err);
    stet_value_release(event);
    return status;
}

static stet_status watch_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_space *space;
    stet_files *files;
    stet_watcher *watcher = NULL;
    stet_project *project;
    stet_value timeout = stet_value_get(args, "timeout");
    int64_t until = stet_value_type(timeout) == STET_TYPE_NULL
                        ? 0
                        : stet_clock_monotonic_us() + (int64_t)(stet_value_as_double(timeout) * 1e6) + 1;
    stet_status status = begin(ctx, true, &space, &files, err);
    if (status != STET_OK)
        return status;
    status = ctx->project(ctx, &project, err);
    if (status == STET_OK)
        status = stet_watcher_open(project, space, files, &watcher, err);
    int64_t documents = 0;
    while (status == STET_OK && (!until || stet_clock_monotonic_us() < until)) {
        stet_files_report r;
        int64_t rest = until ? (until - stet_clock_monotonic_us()) / 1000 + 1 : STEP_MS;
        status = stet_watcher_step(watcher, rest < STEP_MS ? (int)rest : STEP_MS, &r, err);
        documents += (int64_t)(r.changed + r.appeared + r.vanished);
        if (status == STET_OK)
            status = emit_report(ctx, &r, err);
        stet_value_release(r.list);
        if (status == STET_OK && ctx->cancelled(ctx))
            status = stet_fail(err, STET_CANCELLED, "stopped watching");
    }
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "watched", stet_value_int((int64_t)stet_watcher_count(watcher)));
        stet_value_put(result, "committed", stet_value_int(documents));
    }
    stet_watcher_close(watcher);
    stet_files_close(files);
    stet_space_close(space);
    return status;
}

static void watch_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "documents"), watched = stet_value_get(result, "watched");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value id = stet_value_at(list, i);
        stet_text_value(r, id);
        stet_buf_char(r->out, '\n');
    }
    if (stet_value_type(watched) == STET_TYPE_INT)
        stet_buf_printf(r->out, "%lld directories watched, %lld changes\n", (long long)stet_value_as_int(watched),
                        (long long)stet_value_as_int(stet_value_get(result, "committed")));
}

static const stet_param watch_params[] = {
    {.name = "timeout", .type = STET_PARAM_NUMBER, .metavar = "SECONDS", .summary = "End after so long"},
    {0},
};
static const stet_example watch_examples[] = {
    {"file watch --timeout 0.2", "a watch for a fifth of a second"},
    {0},
};

static const stet_param scan_params[] = {
    {.name = "path",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED,
     .metavar = "PATH",
     .summary = "Follow this file, directory or pattern from now on"},
    {0},
};
static const stet_param list_params[] = {
    {.name = "limit",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "At most so many",
     .default_json = "1000",
     .min = 1,
     .max = 1000000},
    {0},
};
static const stet_example scan_examples[] = {{"file scan", "look at the files that are followed"}, {0}};
static const stet_example list_examples[] = {{"file list", "which files are followed, and what they were"}, {0}};

const stet_op stet_ops_file[] = {
    {.name = "file scan",
     .summary = "Look at the files that are followed, and commit what changed",
     .description =
         "Files that patterns read are documents: file:PATH, with hash, mode and size. A scan compares size, "
         "times and inode, reads what may have changed, and commits what did. stet run does it by itself.",
     .params = scan_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"followed\",\"read\",\"changed\",\"appeared\",\"vanished\","
         "\"documents\"],\"additionalProperties\":false,\"properties\":{\"followed\":{\"type\":\"integer\"},"
         "\"read\":{\"type\":\"integer\"},\"changed\":{\"type\":\"integer\"},\"appeared\":{\"type\":\"integer\"},"
         "\"vanished\":{\"type\":\"integer\"},\"documents\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}",
     .examples = scan_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = scan_run,
     .render = scan_render},
    {.name = "file list",
     .summary = "List the files that are followed",
     .params = list_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"total\",\"files\"],\"additionalProperties\":false,\"properties\":{"
         "\"total\":{\"type\":\"integer\"},\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "file watch",
     .summary = "Follow files as they change, so that runs need not look at them",
     .description = "Listens to the kernel's file events for everything that is followed, and commits each change as "
                    "it comes, until "
                    "it is stopped. While it runs, stet run asks it whether it has seen everything, and looks at no "
                    "file: a run in "
                    "which nothing is to do costs the same however many files there are. One per project; each stet "
                    "run finds it by "
                    "itself, and does without it if it does not answer. Where the kernel can't watch (too many "
                    "directories, a network "
                    "file system) it ends and says so. stet run --watch does the same for itself and for others.",
     .params = watch_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"watched\",\"committed\"],\"properties\":{"
                      "\"watched\":{\"type\":\"integer\"},\"committed\":{\"type\":\"integer\"}}}",
     .examples = watch_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_LONG,
     .run = watch_run,
     .render = watch_render},
    {0},
};
