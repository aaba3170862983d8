/* sources.c - finds the runs under the runs/ directories of projects, and reads their states. */

#include "fleet/sources.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/file.h"

/* A file written within this time before a look may be written again without a new time stamp (FAT keeps two seconds).
 */
#define RACY_NS      ((int64_t)2000000000)
#define THREADS_MAX  32
#define PARALLEL_MIN 32
#define PROBE        32    /* sources that are timed, to see whether the file system has them in memory */
#define SLOW_NS      15000 /* stat takes 2 microseconds if it has, 50 and more if not */
#define GRAIN        8
#define NO_STATE     "there is no state.json"

/* Calls a function for `count` items, in several threads, a few items at a time. */
typedef struct crowd {
    void (*work)(struct crowd *c, size_t thread, size_t from, size_t to);
    void *ctx;
    size_t count, next;
    pthread_mutex_t mutex;
} crowd;

typedef struct crowd_member {
    crowd *crowd;
    size_t number;
} crowd_member;

static void *take_part(void *arg) {
    crowd_member *m = arg;
    crowd *c = m->crowd;
    for (;;) {
        pthread_mutex_lock(&c->mutex);
        size_t from = c->next, to = from + GRAIN < c->count ? from + GRAIN : c->count;
        c->next = to;
        pthread_mutex_unlock(&c->mutex);
        if (from == to)
            return NULL;
        c->work(c, m->number, from, to);
    }
}

/* Uses fewer threads if no more can be started; the caller's thread is one of them. */
static void work_together(crowd *c, size_t threads) {
    crowd_member members[THREADS_MAX] = {0};
    pthread_t ids[THREADS_MAX];
    size_t started = 0;
    pthread_mutex_init(&c->mutex, NULL);
    for (size_t i = 0; i < threads; i++)
        members[i] = (crowd_member){c, i};
    while (started + 1 < threads && pthread_create(&ids[started], NULL, take_part, &members[started + 1]) == 0)
        started++;
    take_part(&members[0]);
    for (size_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    pthread_mutex_destroy(&c->mutex);
}

typedef struct look {
    int dir; /* the open runs/: ten thousand paths from the root cost more than what they lead to */
    stet_sight *sights;
} look;

static void look_at(const look *l, stet_sight *s) {
    char path[NAME_MAX + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/state.json", s->name);
    if (stet_sys_lstatat(l->dir, path, &st) != 0) {
        s->status = errno == ENOENT ? STET_NOT_FOUND : STET_IO;
        s->reason = errno == ENOENT ? NO_STATE : "its state.json can't be looked at";
        return;
    }
    s->stamp = stet_stamp_of(&st);
}

static void look_at_some(crowd *c, size_t thread, size_t from, size_t to) {
    look *l = c->ctx;
    (void)thread;
    for (size_t i = from; i < to; i++)
        look_at(l, &l->sights[i]);
}

static int by_place(const void *a, const void *b) {
    const stet_sight *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void look_at_all(look *l, size_t count) {
    size_t probed = count < PROBE ? count : PROBE;
    int64_t started = stet_clock_ns();
    for (size_t i = 0; i < probed; i++)
        look_at(l, &l->sights[i]);
    bool slow = stet_clock_ns() - started > (int64_t)probed * SLOW_NS;
    look rest = {l->dir, l->sights + probed};
    crowd c = {.work = look_at_some, .ctx = &rest, .count = count - probed};
    if (slow && c.count > 0)
        qsort(rest.sights, c.count, sizeof *rest.sights, by_place);
    work_together(&c, slow && c.count > PARALLEL_MIN ? THREADS_MAX : 1);
}

/* Is it a run's directory, by its name and kind? What is to be told but is none gets a reason. */
static bool is_candidate(int dir, const struct dirent *entry, stet_sight *s) {
    const char *name = entry->d_name;
    struct stat st;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, "~new.", 5) == 0 || entry->d_type == DT_REG)
        return false;
    if (entry->d_type != DT_DIR) {
        if (stet_sys_lstatat(dir, name, &st) != 0 || (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode)))
            return false;
        if (S_ISLNK(st.st_mode)) {
            s->status = STET_CORRUPT;
            s->reason = "it is a symbolic link, not a directory";
        }
    }
    if (s->status == STET_OK && !stet_run_id_valid(name, strlen(name))) {
        s->status = STET_CORRUPT;
        s->reason = "its name is no run id (letters, digits, and . _ : -)";
    }
    return true;
}

stet_status stet_sources_look(const char *runs_dir, uint32_t repo, bool stamps, stet_arena *arena, stet_sights *out,
                              stet_error *err) {
    DIR *dir = stet_sys_opendir(runs_dir);
    if (dir == NULL)
        return errno == ENOENT ? STET_OK : stet_fail_errno(err, errno, "%s", runs_dir);
    struct dirent *entry;
    stet_sights candidates = {0};
    stet_status st = STET_OK;
    while ((errno = 0, entry = stet_sys_readdir(dir)) != NULL) {
        stet_sight s = {.repo = repo, .place = entry->d_ino};
        if (!is_candidate(dirfd(dir), entry, &s))
            continue;
        s.name = stet_arena_strdup(arena, entry->d_name);
        *stet_vec_add(s.status == STET_OK ? &candidates : out) = s;
    }
    if (errno != 0)
        st = stet_fail_errno(err, errno, "%s", runs_dir);
    if (stamps)
        look_at_all(&(look){dirfd(dir), candidates.at}, candidates.len);
    else if (candidates.len > 0)
        qsort(candidates.at, candidates.len, sizeof *candidates.at, by_place); /* and read in this order */
    for (size_t i = 0; i < candidates.len; i++)
        *stet_vec_add(out) = candidates.at[i];
    stet_vec_release(&candidates);
    closedir(dir);
    return st;
}

typedef struct reading {
    const stet_sources_opts *opts;
    stet_source_job *jobs;
    stet_arena *arenas;
    stet_buf *scratch; /* by thread */
} reading;

static void read_one(const reading *r, stet_source_job *j, stet_arena *arena, stet_buf *scratch) {
    char path[PATH_MAX + NAME_MAX];
    stet_state s;
    stet_error why = STET_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s/state.json", j->runs_dir, j->name);
    j->status = stet_state_survey(path, j->name, scratch, &s, &why);
    if (j->status != STET_OK) {
        const char *reason = j->status == STET_NOT_FOUND ? NO_STATE : why.message;
        size_t prefix = strlen(path);
        if (strncmp(reason, path, prefix) == 0) /* the path is shown beside the reason */
            reason += prefix + (strncmp(reason + prefix, ": ", 2) == 0 ? 2 : reason[prefix] == ' ' ? 1 : 0);
        j->reason = stet_arena_strdup(arena, reason);
        stet_error_clear(&why);
        return;
    }
    j->record = stet_arena_alloc(arena, sizeof *j->record);
    stet_fleet_record_derive(&s, j->root, j->repo, arena, j->record);
    if (s.stamp.mtime_ns > r->opts->started_ns - RACY_NS || s.stamp.ctime_ns > r->opts->started_ns - RACY_NS)
        j->record->stamp = (stet_state_stamp){0};
    stet_state_release(&s);
}

static void read_some(crowd *c, size_t thread, size_t from, size_t to) {
    reading *r = c->ctx;
    if (r->opts->cancelled != NULL && r->opts->cancelled(r->opts->context))
        return;
    for (size_t i = from; i < to; i++)
        read_one(r, &r->jobs[i], &r->arenas[thread], &r->scratch[thread]);
}

void stet_sources_read(const stet_sources_opts *opts, stet_source_job *jobs, size_t count, stet_arena **arenas,
                       size_t *arena_count) {
    size_t threads = count < PARALLEL_MIN ? 1 : THREADS_MAX;
    stet_buf scratch[THREADS_MAX];
    for (size_t i = 0; i < threads; i++)
        scratch[i] = (stet_buf)STET_BUF(0);
    *arenas = stet_alloc_zero((threads + 1) * sizeof **arenas); /* one more for the caller */
    *arena_count = threads;
    reading r = {opts, jobs, *arenas, scratch};
    crowd c = {.work = read_some, .ctx = &r, .count = count};
    work_together(&c, threads);
    for (size_t i = 0; i < threads; i++)
        stet_buf_release(&scratch[i]);
}
