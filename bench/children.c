/* children.c - a map over 10,000 rows: the cost of one edit, one append and the removal of the first row.
 *
 * Measures the CPU time of a process from opening the project to the end of the settling, and how many actions run.
 * There is no peer; the goal is that the number of runs does not depend on the number of rows.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/json.h"
#include "scheduler/sched.h"

#define ROWS 10000

static const char pattern_text[] =
    "{\"pattern\":1,\"name\":\"b\",\"argument\":{\"default\":{\"rows\":[]}},\"nodes\":[{\"id\":\"rows\",\"module\":{"
    "\"type\":\"ref\",\"ref\":\"map\",\"key\":\"id\",\"pattern\":{\"pattern\":1,\"name\":\"row\",\"nodes\":[{\"id\":"
    "\"x\",\"module\":{\"type\":\"ref\",\"ref\":\"multiply\"},\"inputs\":[{\"$\":\"argument/element/n\"},2]}],"
    "\"result\":{\"$\":\"x\"}}},\"inputs\":{\"list\":{\"$\":\"argument/rows\"}}}],\"result\":{\"$\":\"rows\"}}";

static void must(stet_status status, const stet_error *err) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "bench/children: %s\n", err->message);
    exit(1);
}

static double cpu_ms(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* Opens, changes nothing but what `patch` says, settles; the CPU time without the change. */
static void measure(const char *name, const stet_patch *patch, size_t goal) {
    stet_error err = STET_ERROR_INIT;
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_sched_report report;
    stet_sched_opts opts = {.persist = true};
    if (patch) {
        stet_tx *tx;
        must(stet_project_open("children", &project, &err), &err);
        must(stet_space_open(project, "main", 0, &space, &err), &err);
        must(stet_tx_begin(space, "", &tx, &err), &err);
        must(stet_tx_patch(tx, &(stet_docname){"piece:b:argument", NULL}, patch, 1, &err), &err);
        must(stet_tx_commit(tx, NULL, &err), &err);
        stet_space_close(space);
        stet_project_close(project);
    }
    double start = cpu_ms();
    must(stet_project_open("children", &project, &err), &err);
    must(stet_space_open(project, "main", 0, &space, &err), &err);
    must(stet_sched_open(project, space, "", &opts, &sched, &err), &err);
    must(stet_sched_demand_piece(sched, "b", &err), &err);
    must(stet_sched_settle(sched, &report, &err), &err);
    stet_sched_close(sched);
    stet_space_close(space);
    stet_project_close(project);
    printf("map of %d rows, %s: ours %.1f ms CPU and %zu runs (goal %zu runs)\n", ROWS, name, cpu_ms() - start,
           report.runs, goal);
    stet_value_release(report.problems);
}

int main(void) {
    stet_error err = STET_ERROR_INIT;
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_sched_installed in;
    stet_pattern *p;
    stet_sched_opts opts = {.persist = true};
    bool created;
    stet_value rows = stet_value_array(), set = stet_value_object();
    for (int i = 0; i < ROWS; i++) {
        stet_value row = stet_value_object();
        stet_value_put(&row, "id", stet_value_stringf("row-%d", i));
        stet_value_put(&row, "n", stet_value_int(i));
        stet_value_put(&row, "text", stet_value_stringf("the text of row %d", i));
        stet_value_push(&rows, row);
    }
    stet_value_put(&set, "rows", rows);
    must(stet_project_init("children", &created, &err), &err);
    must(stet_project_open("children", &project, &err), &err);
    must(stet_space_open(project, "main", 0, &space, &err), &err);
    must(stet_sched_open(project, space, "", &opts, &sched, &err), &err);
    must(stet_pattern_parse("b", pattern_text, strlen(pattern_text), NULL, &p, NULL, &err), &err);
    must(stet_sched_install(sched, p, "b", stet_value_null(), set, &in, &err), &err);
    stet_pattern_free(p);
    stet_value_release(set);
    stet_sched_close(sched);
    stet_space_close(space);
    stet_project_close(project);

    measure("first run", NULL, ROWS + 1);
    measure("nothing changed", NULL, 0);
    stet_path list = STET_PATH_INIT, one = STET_PATH_INIT;
    stet_path_push(&list, "value");
    stet_path_push(&list, "rows");
    stet_path_set(&one, stet_path_ref(&list));
    stet_path_push_index(&one, 5000);
    stet_path_push(&one, "n");
    stet_value row, more = stet_value_array();
    must(stet_json_parse("{\"id\":\"new\",\"n\":7}", 18, &row, &err), &err);
    stet_value_push(&more, row);
    measure("one field edited",
            &(stet_patch){.kind = STET_PATCH_REPLACE, .path = stet_path_ref(&one), .value = stet_value_int(-1)}, 2);
    measure("one row appended", &(stet_patch){.kind = STET_PATCH_APPEND, .path = stet_path_ref(&list), .value = more},
            2);
    measure("first row removed",
            &(stet_patch){.kind = STET_PATCH_SPLICE,
                          .path = stet_path_ref(&list),
                          .index = 0,
                          .count = 1,
                          .value = stet_value_array()},
            1);
    stet_value_release(more);
    stet_path_release(&list);
    stet_path_release(&one);
    return 0;
}
