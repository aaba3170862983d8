/* recall.c - looks up in the newest runs what a failed action printed. */

#include "fleet/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "fleet/state.h"
#include "os/file.h"

#define RUNS_MOST   10
#define SECOND_MOST 100 /* with those that began in the same second */
#define SECOND_LEN  16  /* "20261115T174500Z" */
#define LINES_MOST  20
#define BYTES_MOST  2000

struct stet_recall {
    stet_project *project;
    bool looked;
    STET_VEC(stet_state) states; /* newest first */
};

stet_recall *stet_recall_open(stet_project *project) {
    stet_recall *r = stet_alloc_zero(sizeof *r);
    r->project = project;
    return r;
}

static int newest_first(const void *a, const void *b) {
    return -strcmp(*(char *const *)a, *(char *const *)b);
}

static int last_ended_first(const void *a, const void *b) {
    const stet_state *x = a, *y = b;
    return x->updated_ms == y->updated_ms ? 0 : x->updated_ms < y->updated_ms ? 1 : -1;
}

/* Ids sort by the second: the last runs, and all that began in the same second as one of them, by their end. What can't
 * be read tells nothing. */
static void look(stet_recall *r) {
    char *runs = stet_project_path(r->project, "runs");
    stet_names names = {0};
    r->looked = true;
    if (stet_file_list(runs, &names, NULL) == STET_OK && names.len > 1)
        qsort(names.at, names.len, sizeof *names.at, newest_first);
    const char *last = NULL;
    for (size_t i = 0, tried = 0; i < names.len && tried < SECOND_MOST; i++) {
        stet_state s;
        if (!stet_run_id_valid(names.at[i], strlen(names.at[i])))
            continue;
        if (tried >= RUNS_MOST && strncmp(names.at[i], last, SECOND_LEN) != 0)
            break;
        last = names.at[i];
        char *dir = stet_file_join(runs, names.at[i]), *path = stet_file_join(dir, "state.json");
        tried++;
        if (stet_state_read(path, names.at[i], NULL, &s, NULL) == STET_OK)
            *stet_vec_add(&r->states) = s;
        stet_free(path);
        stet_free(dir);
    }
    if (r->states.len > 1)
        qsort(r->states.at, r->states.len, sizeof *r->states.at, last_ended_first);
    stet_names_release(&names);
    stet_free(runs);
}

/* The failed task of this state, or null. */
static stet_value failed_task(const stet_state *s, const char *node) {
    stet_value tasks = stet_value_get(s->root, "tasks");
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value t = stet_value_at(tasks, i);
        if (stet_value_text_is(stet_value_get(t, "id"), node) &&
            stet_value_text_is(stet_value_get(t, "status"), "failed"))
            return t;
    }
    return stet_value_null();
}

static stet_value last_lines(stet_value text) {
    size_t len, from, lines = 0;
    const char *s = stet_value_as_string(&text, &len);
    for (from = len; from > 0 && len - from < BYTES_MOST; from--) {
        lines += s[from - 1] == '\n' && from < len;
        if (lines == LINES_MOST)
            break;
    }
    while (from < len && ((unsigned char)s[from] & 0xC0) == 0x80)
        from++;
    return stet_value_string_n(s + from, len - from);
}

void stet_recall_add(stet_recall *r, const char *piece, const char *node, stet_value *error) {
    static const char *const streams[] = {"stdout", "stderr"};
    if (stet_value_type(*error) != STET_TYPE_OBJECT ||
        stet_value_type(stet_value_get(*error, "details")) == STET_TYPE_OBJECT)
        return;
    if (!r->looked)
        look(r);
    for (size_t i = 0; i < r->states.len; i++) {
        const stet_state *s = &r->states.at[i];
        stet_value task = failed_task(s, node), known = stet_value_get(task, "error"),
                   details = stet_value_get(known, "details"), copy;
        if (!stet_value_text_is(stet_value_get(s->root, "piece"), piece) ||
            stet_value_type(details) != STET_TYPE_OBJECT ||
            !stet_value_equal(stet_value_get(known, "message"), stet_value_get(*error, "message")))
            continue;
        copy = stet_value_object();
        for (size_t k = 0; k < stet_value_count(details); k++)
            stet_value_put(&copy, stet_value_key_at(details, k, NULL), stet_value_retain(stet_value_at(details, k)));
        for (size_t k = 0; k < 2; k++) {
            stet_value text = stet_value_get(copy, streams[k]);
            if (stet_value_type(text) == STET_TYPE_STRING)
                stet_value_put(&copy, streams[k], last_lines(text));
        }
        stet_value_put(error, "details", copy);
        stet_value_put(error, "runId", stet_value_retain(stet_value_get(s->root, "id")));
        return;
    }
}

void stet_recall_close(stet_recall *r) {
    for (size_t i = 0; i < r->states.len; i++)
        stet_state_release(&r->states.at[i]);
    stet_vec_release(&r->states);
    stet_free(r);
}
