/* estimate.c - estimates how long a drive will still take, from the times of earlier runs. */

#include "drive/estimate.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "fleet/state.h"
#include "os/clock.h"
#include "os/file.h"

#define NAMES_SHOWN 3
#define READ_MAX    (2 << 20) /* bytes of a run file that is read for durations */
#define ASKED_MAX   1000      /* nodes of earlier runs that are looked up in the graph */

typedef struct running {
    char *node;
    int64_t since_us; /* 0: it waits for its turn */
} running;

struct stet_estimate {
    stet_map known; /* node -> milliseconds of its longest completed run */
    stet_map idle;  /* the same, without those that have begun in this drive */
    STET_VEC(running) running;
    size_t working, most; /* actions that work now; maximum number so far */
    int64_t began_us;
};

static void learn_task(stet_estimate *e, stet_value task) {
    stet_value id = stet_value_get(task, "id"), from = stet_value_get(task, "startedAt"),
               to = stet_value_get(task, "endedAt");
    size_t len, from_len, to_len;
    const char *node = stet_value_as_string(&id, &len), *began = stet_value_as_string(&from, &from_len),
               *ended = stet_value_as_string(&to, &to_len);
    stet_task_status status;
    int64_t began_ms, ended_ms;
    if (!stet_task_status_of(stet_value_get(task, "status"), &status) || status != STET_TASK_COMPLETED ||
        node == NULL || began == NULL || ended == NULL || !stet_time_parse(began, from_len, &began_ms) ||
        !stet_time_parse(ended, to_len, &ended_ms) || ended_ms < began_ms)
        return;
    /* The longest counts: a run whose result was restored from an earlier one says nothing about the cost of the
     * action. */
    const stet_slot *before = stet_map_get(&e->known, node, len);
    if (before != NULL && (int64_t)before->n >= ended_ms - began_ms)
        return;
    stet_map_put(&e->known, node, len, (stet_slot){.n = (uint64_t)(ended_ms - began_ms)});
    stet_map_put(&e->idle, node, len, (stet_slot){.n = (uint64_t)(ended_ms - began_ms)});
}

static void learn_run(stet_estimate *e, const char *path, const char *id, const char *piece) {
    stet_state s;
    struct stat st;
    /* Reading a run file with many thousand tasks would take longer than the estimate is worth. */
    if (stet_sys_stat(path, &st) != 0 || st.st_size > READ_MAX)
        return;
    if (stet_state_read(path, id, NULL, &s, NULL) != STET_OK)
        return;
    stet_value of = stet_value_get(s.root, "piece"), tasks = stet_value_get(s.root, "tasks");
    if (stet_value_text_is(of, piece))
        for (size_t i = 0; i < stet_value_count(tasks); i++)
            learn_task(e, stet_value_at(tasks, i));
    stet_state_release(&s);
}

static int newest_first(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

stet_estimate *stet_estimate_new(stet_project *project, const char *piece) {
    stet_estimate *e = stet_alloc_zero(sizeof *e);
    stet_names names = {0};
    e->began_us = stet_clock_monotonic_us();
    char *runs = stet_project_path(project, "runs"),
         *part = stet_asprintf("-%.*s-", (int)(strcspn(piece, "@") < 40 ? strcspn(piece, "@") : 40), piece);
    if (stet_file_list(runs, &names, NULL) == STET_OK) {
        /* The id contains the name of the piece, and ids sort by time: most runs of other pieces are never opened. */
        size_t kept = 0, read = 0;
        for (size_t i = 0; i < names.len; i++)
            if (strstr(names.at[i], part)) {
                char *name = names.at[i];
                names.at[i] = names.at[kept];
                names.at[kept++] = name;
            }
        if (kept > 1)
            qsort(names.at, kept, sizeof *names.at, newest_first);
        for (; read < kept && read < STET_ESTIMATE_RUNS; read++) {
            char *path = stet_asprintf("%s/%s/state.json", runs, names.at[read]);
            learn_run(e, path, names.at[read], piece);
            stet_free(path);
        }
    }
    stet_names_release(&names);
    stet_free(runs);
    stet_free(part);
    return e;
}

void stet_estimate_free(stet_estimate *e) {
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->running.len; i++)
        stet_free(e->running.at[i].node);
    stet_vec_release(&e->running);
    stet_map_release(&e->idle);
    stet_map_release(&e->known);
    stet_free(e);
}

static running *find(const stet_estimate *e, const char *node) {
    for (size_t i = 0; i < e->running.len; i++)
        if (strcmp(e->running.at[i].node, node) == 0)
            return &e->running.at[i];
    return NULL;
}

void stet_estimate_started(stet_estimate *e, const char *node, bool works) {
    *stet_vec_add(&e->running) = (running){.node = stet_strdup(node)};
    stet_map_remove(&e->idle, node, strlen(node));
    stet_estimate_works(e, node, works);
}

void stet_estimate_works(stet_estimate *e, const char *node, bool works) {
    running *r = find(e, node);
    if (r == NULL || works == (r->since_us != 0))
        return;
    r->since_us = works ? stet_clock_monotonic_us() : 0;
    e->working = works ? e->working + 1 : e->working - 1;
    if (e->working > e->most)
        e->most = e->working;
}

void stet_estimate_ended(stet_estimate *e, const char *node) {
    running *r = find(e, node);
    if (r == NULL)
        return;
    e->working -= r->since_us != 0;
    stet_free(r->node);
    *r = e->running.at[--e->running.len];
}

int64_t stet_estimate_of(const stet_estimate *e, const char *node) {
    const stet_slot *slot = stet_map_get(&e->known, node, strlen(node));
    return slot != NULL ? (int64_t)slot->n : -1;
}

/* What works takes the rest of its last time; the longest rest is the minimum. What waits takes its last time, or the
 * mean. What is not even begun takes the mean of those that have not begun. All of it is divided by the number that
 * worked at the same time. */
int64_t stet_estimate_left(const stet_estimate *e, size_t queued, int64_t now_us) {
    if (stet_map_len(&e->known) == 0)
        return -1;
    int64_t work = 0, longest = 0, all = 0, mean = 0;
    size_t waiting = stet_map_len(&e->idle);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&e->known, &i, &key, &len, &slot);)
        mean += (int64_t)slot->n;
    mean /= (int64_t)stet_map_len(&e->known);
    for (size_t i = 0; i < e->running.len; i++) {
        const running *r = &e->running.at[i];
        int64_t took = stet_estimate_of(e, r->node);
        int64_t left = (took < 0 ? mean : took) - (r->since_us ? (now_us - r->since_us) / 1000 : 0);
        if (left < 0)
            continue;
        work += left;
        longest = left > longest ? left : longest;
    }
    for (size_t i = 0; stet_map_next(&e->idle, &i, &key, &len, &slot);)
        all += (int64_t)slot->n;
    if (waiting > 0)
        work += all / (int64_t)waiting * (int64_t)(queued < waiting ? queued : waiting);
    int64_t shared = work / (int64_t)(e->most > 0 ? e->most : 1);
    return shared > longest ? shared : longest;
}

int64_t stet_estimate_saved(const stet_estimate *e, bool (*there)(void *ctx, const char *node), void *ctx) {
    int64_t saved = 0;
    /* Asking for each of 100,000 nodes would take longer than the run, and few of so many were removed meanwhile. */
    bool ask = there && stet_map_len(&e->idle) <= ASKED_MAX;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&e->idle, &i, &key, &len, &slot);) {
        char *node = stet_strndup(key, len);
        if (!ask || there(ctx, node))
            saved += (int64_t)slot->n;
        stet_free(node);
    }
    return saved;
}

static void print_span(int64_t ms, stet_buf *out) {
    int64_t s = ms / 1000;
    if (s < 60)
        stet_buf_printf(out, "%lld s", (long long)s);
    else if (s < 3600)
        stet_buf_printf(out, "%lld min %lld s", (long long)(s / 60), (long long)(s % 60));
    else
        stet_buf_printf(out, "%lld h %lld min", (long long)(s / 3600), (long long)(s / 60 % 60));
}

void stet_estimate_note(const stet_estimate *e, size_t queued, stet_buf *out) {
    int64_t now = stet_clock_monotonic_us(), left = stet_estimate_left(e, queued, now);
    print_span((now - e->began_us) / 1000, out);
    if (left > 0) { /* 0: longer than ever, and nobody knows */
        stet_buf_str(out, ", about ");
        print_span(left + 999, out);
        stet_buf_str(out, " left");
    }
    size_t shown = 0;
    for (size_t i = 0; i < e->running.len && shown < NAMES_SHOWN; i++)
        if (e->running.at[i].since_us)
            stet_buf_printf(out, "%s%s", shown++ == 0 ? ": " : ", ", e->running.at[i].node);
    if (e->working > shown)
        stet_buf_printf(out, " and %zu more", e->working - shown);
}
