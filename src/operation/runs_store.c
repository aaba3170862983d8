/* runs_store.c - the store "runs": what `check` and `gc` do about run files and what is derived from them. */

#include <string.h>

#include "fleet/queue.h"
#include "operation/runs_common.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

#define TEMP_AGE_S    (24 * 3600)
#define QUEUE_KEEP_MS ((int64_t)30 * 86400000)

static bool present(stet_project *p) {
    char *dir = stet_project_path(p, "runs"), *registry = stet_project_path(p, "local/registry");
    bool there = stet_file_exists(dir) || stet_file_exists(registry);
    stet_free(dir);
    stet_free(registry);
    return there;
}

static void add(stet_value *problems, const char *where, const char *what, bool repaired) {
    stet_store_problem(problems, "runs", where, what, strlen(what), repaired);
}

/* Every state.json of the project is read. A damaged index is mended by a new one; what a run or a person said is not
 * mended by guessing. */
static stet_status check(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err) {
    stet_value args = stet_value_object();
    stet_registry_opts opts;
    stet_registry *reg = NULL, *mended = NULL;
    char *home = NULL, *root = NULL;
    stet_value_put(&args, "scope", stet_value_string("repo"));
    stet_value_put(&args, "verify", stet_value_bool(true));
    stet_status st = stet_runs_options(ctx, args, &opts, &home, &root, err);
    if (st == STET_OK) {
        opts.root = stet_project_root(p);
        st = stet_registry_load(&opts, &reg, err);
    }
    bool damaged = false;
    if (st == STET_OK)
        for (size_t i = 0; i < stet_value_count(reg->problems); i++) {
            stet_value path = stet_value_get(stet_value_at(reg->problems, i), "path");
            const char *s = stet_value_as_string(&path, NULL);
            damaged = damaged || (s != NULL && strcmp(stet_file_basename(s), "index.json") == 0);
        }
    if (st == STET_OK && damaged && repair)
        st = stet_registry_refresh(&opts, &mended, err);
    if (st == STET_OK) {
        for (size_t i = 0; i < stet_value_count(reg->problems); i++) {
            stet_value path = stet_value_get(stet_value_at(reg->problems, i), "path"),
                       what = stet_value_get(stet_value_at(reg->problems, i), "message");
            const char *s = stet_value_as_string(&path, NULL);
            bool index = s != NULL && strcmp(stet_file_basename(s), "index.json") == 0;
            add(problems, s != NULL ? s : "", stet_value_as_string(&what, NULL), index && repair);
        }
        for (size_t i = 0; i < reg->unreadable.len; i++) {
            char *where = stet_asprintf("%s/.stet/runs/%s", reg->unreadable.at[i].repo, reg->unreadable.at[i].name);
            add(problems, where, reg->unreadable.at[i].reason, false);
            stet_free(where);
        }
    }
    stet_registry_free(mended);
    stet_registry_free(reg);
    stet_free(home);
    stet_free(root);
    stet_value_release(args);
    return st;
}

/* Removes what a process that died left in `dir` under a name that begins so. */
static stet_status sweep(const char *dir, const char *begins, bool dry_run, int64_t *items, stet_error *err) {
    stet_names names = {0};
    stet_error why = STET_ERROR_INIT;
    stet_status st = stet_file_list(dir, &names, &why);
    if (st == STET_NOT_FOUND) {
        stet_error_clear(&why);
        return STET_OK;
    }
    if (st != STET_OK)
        stet_error_move(err, &why);
    for (size_t i = 0; i < names.len && st == STET_OK; i++) {
        struct stat sb;
        char *path = stet_file_join(dir, names.at[i]);
        if (strncmp(names.at[i], begins, strlen(begins)) == 0 && stet_sys_lstat(path, &sb) == 0 &&
            stet_file_temp_is_dead(names.at[i], TEMP_AGE_S, &sb)) {
            (*items)++;
            if (!dry_run)
                st = stet_file_remove_tree(path, err);
        }
        stet_free(path);
    }
    stet_names_release(&names);
    return st;
}

/* Half-made runs, and half-written files in runs. */
static stet_status sweep_runs(const char *runs, bool dry_run, int64_t *items, stet_error *err) {
    stet_names names = {0};
    stet_error why = STET_ERROR_INIT;
    stet_status st = sweep(runs, "~new.", dry_run, items, err);
    if (st == STET_OK && stet_file_list(runs, &names, &why) != STET_OK)
        stet_error_clear(&why); /* there are none */
    for (size_t i = 0; i < names.len && st == STET_OK; i++) {
        struct stat sb;
        char *dir = stet_file_join(runs, names.at[i]);
        if (stet_run_id_valid(names.at[i], strlen(names.at[i])) && stet_sys_lstat(dir, &sb) == 0 && S_ISDIR(sb.st_mode))
            st = sweep(dir, ".stet-temp.", dry_run, items, err);
        stet_free(dir);
    }
    stet_names_release(&names);
    return st;
}

/* Runs are history, and never removed here. What goes: what processes that died left half-made or half-written, and entries of the queue
 * that ended a month ago. */
static stet_status gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    (void)ctx;
    char *runs = stet_project_path(p, "runs"), *home = NULL;
    int64_t items = 0;
    size_t dropped = 0;
    struct stat sb;
    char *registry = stet_project_path(p, "local/registry");
    stet_status st = sweep_runs(runs, dry_run, &items, err);
    if (st == STET_OK)
        st = sweep(registry, ".stet-temp.", dry_run, &items, err);
    stet_free(registry);
    if (st == STET_OK)
        st = stet_home_dir(&home, err);
    if (st == STET_OK) {
        char *shared = stet_file_join(home, "registry");
        st = sweep(shared, ".stet-temp.", dry_run, &items, err);
        stet_free(shared);
    }
    if (st == STET_OK) {
        stet_queue q = {.home = home};
        char *file = stet_asprintf("%s/registry/queue.json", home);
        if (stet_sys_stat(file, &sb) == 0)
            st = stet_queue_prune(&q, stet_clock_ms() - QUEUE_KEEP_MS, dry_run, &dropped, err);
        stet_free(file);
    }
    stet_value_put(report, "items", stet_value_int(items + (int64_t)dropped));
    stet_value_put(report, "bytes", stet_value_int(0));
    stet_value_put(report, "queueEntries", stet_value_int((int64_t)dropped));
    stet_free(home);
    stet_free(runs);
    return st;
}

const stet_store stet_store_runs = {
    .name = "runs",
    .summary = "Run files, and the registry that is derived from them",
    .present = present,
    .check = check,
    .gc = gc,
};
