/* compare.c - compares two runs, and computes statistics over many. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/change.h"
#include "base/map.h"
#include "fleet/manage.h"
#include "os/clock.h"

#define DIFF_MAX 1000

/* [{path, a, b}] of the leaves that differ; a side without the leaf has no member. */
static stet_value differences(stet_value a, stet_value b) {
    stet_value out = stet_value_array();
    stet_arena arena = STET_ARENA_INIT;
    stet_changes changes = {0};
    stet_changes_between(&a, &b, DIFF_MAX, &arena, &changes);
    for (size_t i = 0; i < changes.len; i++) {
        stet_value item = stet_value_object(), side;
        stet_buf path = STET_BUF(0);
        stet_path_print(changes.at[i].path, &path);
        stet_value_put(&item, "path", stet_value_string_n(stet_buf_cstr(&path), path.len));
        stet_buf_release(&path);
        if (stet_path_lookup(a, changes.at[i].path, &side))
            stet_value_put(&item, "a", stet_value_retain(side));
        if (stet_path_lookup(b, changes.at[i].path, &side))
            stet_value_put(&item, "b", stet_value_retain(side));
        stet_value_push(&out, item);
    }
    stet_changes_release(&changes);
    stet_arena_release(&arena);
    return out;
}

static int64_t task_ms(stet_value task) {
    stet_value from = stet_value_get(task, "startedAt"), to = stet_value_get(task, "endedAt");
    size_t n, m;
    const char *s = stet_value_as_string(&from, &n), *e = stet_value_as_string(&to, &m);
    int64_t a, b;
    if (s == NULL || e == NULL || !stet_time_parse(s, n, &a) || !stet_time_parse(e, m, &b) || b < a)
        return -1;
    return b - a;
}

static stet_value task_side(stet_value task) {
    if (stet_value_type(task) != STET_TYPE_OBJECT)
        return stet_value_null();
    static const char *const keys[] = {"status", "attempt", "result", "error", NULL};
    stet_value v = stet_value_object();
    for (size_t i = 0; keys[i] != NULL; i++)
        stet_value_put(&v, keys[i], stet_value_retain(stet_value_get(task, keys[i])));
    int64_t ms = task_ms(task);
    stet_value_put(&v, "durationMs", ms >= 0 ? stet_value_int(ms) : stet_value_null());
    return v;
}

static stet_value find_task(const stet_map *index, stet_value tasks, stet_value id) {
    size_t len;
    const char *s = stet_value_as_string(&id, &len);
    stet_slot *slot = stet_map_get(index, s, len);
    return slot != NULL ? stet_value_at(tasks, (size_t)slot->n) : stet_value_null();
}

static void index_tasks(stet_value tasks, stet_map *out) {
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value id = stet_value_get(stet_value_at(tasks, i), "id");
        size_t len;
        const char *s = stet_value_as_string(&id, &len);
        stet_map_put(out, s, len, (stet_slot){.n = i});
    }
}

static bool add_task(stet_value *out, stet_value id, stet_value a, stet_value b) {
    stet_value item = stet_value_object();
    bool same = stet_value_type(a) == STET_TYPE_OBJECT && stet_value_type(b) == STET_TYPE_OBJECT &&
                stet_value_equal(stet_value_get(a, "status"), stet_value_get(b, "status")) &&
                stet_value_equal(stet_value_get(a, "result"), stet_value_get(b, "result"));
    stet_value_put(&item, "id", stet_value_retain(id));
    stet_value_put(&item, "same", stet_value_bool(same));
    stet_value_put(&item, "a", task_side(a));
    stet_value_put(&item, "b", task_side(b));
    stet_value_push(out, item);
    return same;
}

stet_value stet_runs_compare(const stet_state *a, const stet_state *b) {
    static const char *const parts[] = {"app", "inputs", "options", "summary", "commits", NULL};
    stet_value v = stet_value_object(), tasks = stet_value_array();
    stet_value ta = stet_value_get(a->root, "tasks"), tb = stet_value_get(b->root, "tasks");
    stet_map ia = {0}, ib = {0};
    bool same = true;
    for (size_t i = 0; parts[i] != NULL; i++) {
        stet_value d = differences(stet_value_get(a->root, parts[i]), stet_value_get(b->root, parts[i]));
        /* Durations of the summary and times of commits are shown, but do not count as differences. */
        if (i < 3)
            same = same && stet_value_count(d) == 0;
        stet_value_put(&v, parts[i], d);
    }
    index_tasks(ta, &ia);
    index_tasks(tb, &ib);
    for (size_t i = 0; i < stet_value_count(ta); i++) {
        stet_value id = stet_value_get(stet_value_at(ta, i), "id");
        same = add_task(&tasks, id, stet_value_at(ta, i), find_task(&ib, tb, id)) && same;
    }
    for (size_t i = 0; i < stet_value_count(tb); i++) {
        stet_value id = stet_value_get(stet_value_at(tb, i), "id");
        if (stet_value_type(find_task(&ia, ta, id)) == STET_TYPE_NULL)
            same = add_task(&tasks, id, stet_value_null(), stet_value_at(tb, i)) && same;
    }
    stet_map_release(&ia);
    stet_map_release(&ib);
    stet_value_put(&v, "tasks", tasks);
    stet_value_put(&v, "same", stet_value_bool(same));
    return v;
}

typedef STET_VEC(int64_t) times;

typedef struct group {
    const char *name;
    size_t total, lives[STET_LIFECYCLES];
    int64_t stood, ran, saved_ms;
    times durations;
} group;

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void count_in(group *g, const stet_fleet_record *r, int64_t now) {
    g->total++;
    g->lives[r->under]++;
    g->stood += r->stood > 0 ? r->stood : 0;
    g->ran += r->ran > 0 ? r->ran : 0;
    g->saved_ms += r->saved_ms > 0 ? r->saved_ms : 0;
    if (r->derived == STET_LIFE_COMPLETED || r->derived == STET_LIFE_FAILED || r->derived == STET_LIFE_BLOCKED)
        *stet_vec_add(&g->durations) = stet_fleet_record_duration(r, now);
}

/* Without anything to divide by there is no rate: null, not zero. */
static stet_value rate(int64_t part, int64_t whole) {
    stet_value v;
    if (whole <= 0 || stet_value_double((double)part / (double)whole, &v, NULL) != STET_OK)
        return stet_value_null();
    return v;
}

static stet_value group_value(group *g) {
    stet_value v = stet_value_object(), lives = stet_value_object(), durations = stet_value_object(),
               actions = stet_value_object();
    size_t n = g->durations.len;
    int64_t sum = 0;
    if (n > 1)
        qsort(g->durations.at, n, sizeof *g->durations.at, by_number);
    for (size_t i = 0; i < n; i++)
        sum += g->durations.at[i];
    stet_value_put(&durations, "count", stet_value_int((int64_t)n));
    stet_value_put(&durations, "median", n ? stet_value_int(g->durations.at[(n - 1) / 2]) : stet_value_null());
    stet_value_put(&durations, "p90", n ? stet_value_int(g->durations.at[(n * 9 + 9) / 10 - 1]) : stet_value_null());
    stet_value_put(&durations, "max", n ? stet_value_int(g->durations.at[n - 1]) : stet_value_null());
    stet_value_put(&durations, "total", stet_value_int(sum));
    for (int i = 0; i < STET_LIFECYCLES; i++)
        if (i != STET_LIFE_ARCHIVED)
            stet_value_put(&lives, stet_lifecycle_name((stet_lifecycle)i), stet_value_int((int64_t)g->lives[i]));
    int64_t bad = (int64_t)(g->lives[STET_LIFE_FAILED] + g->lives[STET_LIFE_BLOCKED] + g->lives[STET_LIFE_RESOLVED]);
    stet_value_put(&actions, "stood", stet_value_int(g->stood));
    stet_value_put(&actions, "ran", stet_value_int(g->ran));
    stet_value_put(&actions, "hitRate", rate(g->stood, g->stood + g->ran));
    stet_value_put(&v, "total", stet_value_int((int64_t)g->total));
    stet_value_put(&v, "byLifecycle", lives);
    stet_value_put(&v, "failureRate", rate(bad, bad + (int64_t)g->lives[STET_LIFE_COMPLETED]));
    stet_value_put(&v, "durationMs", durations);
    stet_value_put(&v, "actions", actions);
    stet_value_put(&v, "savedMs", stet_value_int(g->saved_ms));
    stet_vec_release(&g->durations);
    return v;
}

stet_value stet_runs_stats(const stet_registry *reg, const stet_fleet_query *q) {
    group all = {0};
    STET_VEC(group) apps = {0};
    stet_map by_app = {0};
    int64_t now = stet_clock_ms();
    for (size_t i = 0; i < reg->records.len; i++) {
        const stet_fleet_record *r = reg->records.at[i];
        if (!stet_fleet_query_match(q, r))
            continue;
        const char *name = r->app_id[0] != 0 ? r->app_id : r->workflow_id;
        stet_slot *slot = stet_map_get(&by_app, name, strlen(name));
        if (slot == NULL) {
            slot = stet_map_put(&by_app, name, strlen(name), (stet_slot){.n = apps.len});
            *stet_vec_add(&apps) = (group){.name = name};
        }
        assert(slot->n < apps.len && apps.at != NULL);
        count_in(&all, r, now);
        count_in(&apps.at[slot->n], r, now);
    }
    stet_value v = group_value(&all), list = stet_value_object(), out = stet_value_array();
    /* An object keeps its members sorted by name. */
    for (size_t i = 0; i < apps.len; i++) {
        stet_value g = group_value(&apps.at[i]);
        stet_value_put(&g, "app", stet_value_string(apps.at[i].name));
        stet_value_put(&list, apps.at[i].name, g);
    }
    for (size_t i = 0; i < stet_value_count(list); i++)
        stet_value_push(&out, stet_value_retain(stet_value_at(list, i)));
    stet_value_put(&v, "apps", out);
    stet_value_release(list);
    stet_vec_release(&apps);
    stet_map_release(&by_app);
    return v;
}
