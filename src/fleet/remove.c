/* remove.c - deletes runs by a plan that is looked at first. */

#include "fleet/remove.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "fleet/overlay.h"
#include "fleet/run.h"
#include "os/file.h"
#include "os/lock.h"

#define DAY_MS     ((int64_t)86400000)
#define FILES_MOST 1000000
#define KEEP_LABEL "keep"

/* Number and size of the files of a run, without following links, and without the driver's lock, which says nothing. */
static stet_status weigh(const char *dir, uint64_t *files, uint64_t *bytes, stet_error *err) {
    stet_names dirs = {0};
    stet_status st = STET_OK;
    *files = *bytes = 0;
    *stet_vec_add(&dirs) = stet_strdup(dir);
    for (size_t i = 0; i < dirs.len && st == STET_OK; i++) {
        stet_names names = {0};
        st = stet_file_list(dirs.at[i], &names, err);
        for (size_t k = 0; k < names.len && st == STET_OK; k++) {
            char *path = stet_file_join(dirs.at[i], names.at[k]);
            struct stat sb;
            if (i == 0 && strcmp(names.at[k], "driver.lock") == 0) {
                stet_free(path);
                continue;
            }
            if (stet_sys_lstat(path, &sb) != 0)
                st = errno == ENOENT ? STET_OK : stet_fail_errno(err, errno, "%s", path);
            else if (S_ISDIR(sb.st_mode))
                *stet_vec_add(&dirs) = stet_strdup(path);
            else {
                ++*files;
                *bytes += (uint64_t)sb.st_size;
            }
            if (st == STET_OK && *files + dirs.len > FILES_MOST)
                st = stet_fail(err, STET_LIMIT, "%s has more than %d files", dir, FILES_MOST);
            stet_free(path);
        }
        stet_names_release(&names);
    }
    stet_names_release(&dirs);
    return st;
}

static bool in_queue(stet_value queue, const stet_fleet_record *r, const char **entry) {
    static const char *const live[] = {"pending", "leased", "drained", "parked"};
    for (size_t i = 0; i < stet_value_count(queue); i++) {
        stet_value e = stet_value_at(queue, i), id = stet_value_get(e, "id");
        bool waiting = false;
        for (size_t k = 0; k < sizeof live / sizeof *live; k++)
            waiting = waiting || stet_value_text_is(stet_value_get(e, "status"), live[k]);
        if (waiting && stet_value_text_is(stet_value_get(e, "runId"), r->id) &&
            stet_value_text_is(stet_value_get(e, "repo"), r->repo)) {
            *entry = stet_value_text(&id, "");
            return true;
        }
    }
    return false;
}

static bool is_link(const char *path) {
    struct stat sb;
    return stet_sys_lstat(path, &sb) == 0 && S_ISLNK(sb.st_mode);
}

static const char *say(stet_removal *plan, const char *format, const char *what) {
    char *text = stet_asprintf(format, what), *copy = stet_arena_strdup(&plan->arena, text);
    stet_free(text);
    return copy;
}

/* D1, D2, D4, D5: why the run stays, or NULL. */
static const char *why_kept(const stet_registry *reg, const stet_removal_choice *c, const stet_fleet_record *r,
                            stet_removal *plan) {
    const stet_registry_repo *repo = stet_registry_repo_of(reg, r->repo);
    const char *entry = "";
    char *dir = stet_fleet_record_dir(r);
    bool driven = stet_runfile_driver(dir, NULL) == STET_DRIVER_ALIVE;
    stet_free(dir);
    if (driven)
        return "it is being driven";
    if (r->under == STET_LIFE_QUEUED || r->under == STET_LIFE_RUNNING || r->under == STET_LIFE_INTERRUPTED)
        return say(plan, "it has not ended: stet runs cancel %s ends it", r->id);
    if (in_queue(c->queue, r, &entry))
        return say(plan, "entry %s of the queue is to run it", entry);
    if (stet_fleet_record_has_label(r, KEEP_LABEL))
        return "it has the label \"" KEEP_LABEL "\"";
    if (repo == NULL || is_link(repo->runs_dir))
        return "its files belong to another program";
    stet_value problems = stet_registry_problems_of(reg, r->repo);
    bool damaged = stet_value_count(problems) > 0;
    stet_value_release(problems);
    return damaged ? "marks of its project can't be read: stet runs show says which" : NULL;
}

static bool is_picked(const stet_removal_choice *c, const stet_fleet_record *r) {
    unsigned wanted = c->rules.statuses ? c->rules.statuses : 1u << STET_LIFE_COMPLETED | 1u << STET_LIFE_RESOLVED;
    unsigned has = 1u << r->under | 1u << r->lifecycle;
    return (wanted & has) != 0 && (c->app == NULL || strcmp(c->app, r->app_id) == 0) &&
           (c->repo == NULL || strcmp(c->repo, r->repo) == 0);
}

static bool is_old(const stet_removal_choice *c, const stet_fleet_record *r) {
    return c->rules.older_than_days > 0 && r->updated_ms < c->now_ms - c->rules.older_than_days * DAY_MS;
}

static stet_status add_run(const stet_registry *reg, const stet_removal_choice *c, const stet_fleet_record *r,
                           stet_removal *plan, stet_error *err) {
    stet_removal_run run = {.record = r, .reason = why_kept(reg, c, r, plan)};
    char *dir = stet_fleet_record_dir(r);
    stet_state s;
    stet_status st = stet_fleet_record_reread(r, &s, err);
    if (st == STET_OK) {
        run.state = s.fingerprint;
        stet_state_release(&s);
        st = weigh(dir, &run.files, &run.bytes, err);
    }
    if (st == STET_OK && run.reason)
        *stet_vec_add(&plan->kept) = run;
    else if (st == STET_OK)
        *stet_vec_add(&plan->runs) = run;
    stet_free(dir);
    return st;
}

static int oldest_first(const void *a, const void *b) {
    const stet_fleet_record *x = *(const stet_fleet_record *const *)a, *y = *(const stet_fleet_record *const *)b;
    if (x->updated_ms != y->updated_ms)
        return x->updated_ms < y->updated_ms ? -1 : 1;
    return stet_fleet_record_compare(x, y);
}

/* By age, and then, for each project that is still larger than it may be, the oldest until it is not. */
static stet_status pick(const stet_registry *reg, const stet_removal_choice *c, stet_removal *plan, stet_error *err) {
    stet_fleet_records all = {0};
    stet_status st = STET_OK;
    for (size_t i = 0; i < reg->records.len; i++)
        *stet_vec_add(&all) = reg->records.at[i];
    if (all.len > 1)
        qsort(all.at, all.len, sizeof *all.at, oldest_first);
    for (size_t i = 0; i < all.len && st == STET_OK; i++)
        if (is_picked(c, all.at[i]) && is_old(c, all.at[i]))
            st = add_run(reg, c, all.at[i], plan, err);
    for (size_t k = 0; k < reg->repos.len && c->rules.max_bytes > 0 && st == STET_OK; k++) {
        uint64_t total = 0, files, bytes;
        for (size_t i = 0; i < all.len && st == STET_OK; i++)
            if (all.at[i]->repo_index == k) {
                char *dir = stet_fleet_record_dir(all.at[i]);
                st = weigh(dir, &files, &bytes, err);
                total += bytes;
                stet_free(dir);
            }
        for (size_t i = 0; i < plan->runs.len; i++)
            total -= plan->runs.at[i].record->repo_index == k ? plan->runs.at[i].bytes : 0;
        for (size_t i = 0; i < all.len && st == STET_OK && total > (uint64_t)c->rules.max_bytes; i++) {
            size_t before = plan->runs.len;
            if (all.at[i]->repo_index != k || !is_picked(c, all.at[i]) || is_old(c, all.at[i]))
                continue;
            st = add_run(reg, c, all.at[i], plan, err);
            if (plan->runs.len > before)
                total -= plan->runs.at[before].bytes;
        }
    }
    stet_vec_release(&all);
    return st;
}

static void keep_at(stet_removal *plan, size_t i, const char *reason) {
    stet_removal_run run = plan->runs.at[i];
    run.reason = reason;
    *stet_vec_add(&plan->kept) = run;
    memmove(&plan->runs.at[i], &plan->runs.at[i + 1], (plan->runs.len - i - 1) * sizeof *plan->runs.at);
    plan->runs.len--;
}

static void key_of(const char *repo, const char *id, stet_buf *key) {
    stet_buf_clear(key);
    stet_buf_printf(key, "%s\n%s", repo, id);
}

/* D3, until nothing changes: a run that stays may itself be resolved by one that was to go. */
static void keep_menders(const stet_registry *reg, stet_removal *plan) {
    stet_buf key = STET_BUF(8192);
    for (bool again = true; again;) {
        stet_map goes = {0};
        again = false;
        for (size_t i = 0; i < plan->runs.len; i++) {
            key_of(plan->runs.at[i].record->repo, plan->runs.at[i].record->id, &key);
            stet_map_put(&goes, key.data, key.len, (stet_slot){.n = i});
        }
        for (size_t i = 0; i < reg->records.len && !again; i++) {
            const stet_fleet_record *r = reg->records.at[i];
            if (r->resolved_by[0] == 0)
                continue;
            key_of(r->repo, r->id, &key);
            if (stet_map_get(&goes, key.data, key.len) != NULL)
                continue;
            key_of(r->repo, r->resolved_by, &key);
            const stet_slot *mender = stet_map_get(&goes, key.data, key.len);
            if (mender != NULL) {
                keep_at(plan, (size_t)mender->n, say(plan, "it has mended run %s, which stays", r->id));
                again = true;
            }
        }
        stet_map_release(&goes);
    }
    stet_buf_release(&key);
}

static int by_record(const void *a, const void *b) {
    return stet_fleet_record_compare(((const stet_removal_run *)a)->record, ((const stet_removal_run *)b)->record);
}

static void seal(stet_removal *plan) {
    stet_buf all = STET_BUF(0);
    char hex[STET_HASH_HEX];
    if (plan->runs.len > 1)
        qsort(plan->runs.at, plan->runs.len, sizeof *plan->runs.at, by_record);
    plan->bytes = 0;
    for (size_t i = 0; i < plan->runs.len; i++) {
        const stet_removal_run *r = &plan->runs.at[i];
        stet_hash_hex(r->state, hex);
        stet_buf_printf(&all, "%s\n%s\n%s %llu %llu\n", r->record->repo, r->record->id, hex,
                        (unsigned long long)r->files, (unsigned long long)r->bytes);
        plan->bytes += r->bytes;
    }
    plan->id = stet_hash_of(stet_buf_cstr(&all), all.len);
    stet_buf_release(&all);
}

stet_status stet_removal_plan(const stet_registry *reg, const stet_removal_choice *choice, stet_removal *out,
                              stet_error *err) {
    *out = (stet_removal){.arena = STET_ARENA_INIT};
    stet_status st = STET_OK;
    for (size_t i = 0; choice->named && i < choice->named->len && st == STET_OK; i++) {
        bool twice = false;
        for (size_t k = 0; k < i; k++)
            twice = twice || choice->named->at[k] == choice->named->at[i];
        if (!twice)
            st = add_run(reg, choice, choice->named->at[i], out, err);
    }
    if (!choice->named)
        st = pick(reg, choice, out, err);
    if (st != STET_OK) {
        stet_removal_release(out);
        return st;
    }
    keep_menders(reg, out);
    seal(out);
    return STET_OK;
}

/* Is the run still what the plan says? NULL: it is. Under the lock of its driver. */
static const char *changed(const stet_removal_run *run, const char *dir, stet_removal *plan) {
    stet_state s;
    stet_error why = STET_ERROR_INIT;
    uint64_t files, bytes;
    stet_status st = stet_fleet_record_reread(run->record, &s, &why);
    bool same = st == STET_OK && stet_hash_equal(s.fingerprint, run->state);
    if (st == STET_OK)
        stet_state_release(&s);
    if (same && weigh(dir, &files, &bytes, &why) == STET_OK && files == run->files && bytes == run->bytes)
        return NULL;
    const char *reason = st == STET_OK || why.status == STET_OK ? "it has changed since the plan was made"
                                                                : say(plan, "%s", why.message);
    stet_error_clear(&why);
    return reason;
}

/* D6. NULL: it is gone. */
static const char *remove_one(const stet_registry_repo *repo, const stet_removal_run *run, stet_removal *plan) {
    char *dir = stet_fleet_record_dir(run->record), *lock_path = stet_file_join(dir, "driver.lock"),
         *temp = stet_file_temp_name(repo->runs_dir, "~new");
    stet_lock *lock = NULL;
    stet_error why = STET_ERROR_INIT;
    const char *reason = NULL;
    stet_status st = is_link(lock_path) ? stet_fail(&why, STET_DENIED, "%s is a symbolic link", lock_path)
                                        : stet_lock_open(lock_path, STET_LOCK_PLAIN, &lock, &why);
    if (st == STET_OK)
        st = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, &why);
    if (st == STET_BUSY)
        reason = "it is being driven";
    else if (st == STET_OK)
        reason = changed(run, dir, plan);
    if (st == STET_OK && !reason && stet_sys_rename(dir, temp) != 0)
        st = stet_fail_errno(&why, errno, "%s", dir);
    if (st == STET_OK && !reason)
        st = stet_file_remove_tree(temp, &why);
    if (st != STET_OK && !reason)
        reason = say(plan, "%s", why.message);
    stet_lock_close(lock);
    stet_error_clear(&why);
    stet_free(temp);
    stet_free(lock_path);
    stet_free(dir);
    return reason;
}

stet_status stet_removal_apply(const stet_registry *reg, stet_removal *plan, stet_error *err) {
    for (size_t i = 0; i < plan->runs.len;) {
        const stet_registry_repo *repo = stet_registry_repo_of(reg, plan->runs.at[i].record->repo);
        const char *reason = repo ? remove_one(repo, &plan->runs.at[i], plan) : "its project is gone";
        if (reason)
            keep_at(plan, i, reason);
        else
            i++;
    }
    plan->bytes = 0;
    for (size_t i = 0; i < plan->runs.len; i++)
        plan->bytes += plan->runs.at[i].bytes;
    /* Marks of runs that are gone; a link to what a rerun repeats stays with the rerun. */
    static const stet_overlay kinds[] = {STET_OVERLAY_ARCHIVE, STET_OVERLAY_LABELS, STET_OVERLAY_PROVENANCE};
    stet_status st = STET_OK;
    for (size_t k = 0; k < reg->repos.len && st == STET_OK; k++) {
        for (size_t n = 0; n < sizeof kinds / sizeof *kinds && st == STET_OK; n++) {
            stet_value changes = stet_value_object(), had;
            for (size_t i = 0; i < plan->runs.len; i++) {
                const stet_fleet_record *r = plan->runs.at[i].record;
                if (r->repo_index == k &&
                    stet_value_find(reg->repos.at[k].overlays[kinds[n]], r->id, strlen(r->id), &had))
                    stet_value_put(&changes, r->id, stet_value_null());
            }
            st = stet_overlay_update(reg->repos.at[k].registry_dir, kinds[n], changes, err);
            stet_value_release(changes);
        }
    }
    return st;
}

void stet_removal_release(stet_removal *plan) {
    stet_vec_release(&plan->runs);
    stet_vec_release(&plan->kept);
    stet_arena_release(&plan->arena);
    *plan = (stet_removal){.arena = STET_ARENA_INIT};
}
