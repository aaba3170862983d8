/* pull.c - runs a pattern from C and prints its result, as `stet run FILE` does.
 *
 *     cc -o pull pull.c $(pkg-config --cflags --libs stet) && ./pull site/stet.toml
 *
 * It compiles as C and as C++.
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <stet.h>

static volatile sig_atomic_t stop;

static void on_interrupt(int number) {
    (void)number;
    stop = 1;
}

static bool cancelled(void *ctx) {
    (void)ctx;
    return stop != 0;
}

static int failed(stet_status status, stet_error *err) {
    fprintf(stderr, "%s: %s\n", stet_status_name(status), err->message);
    if (err->hint[0])
        fprintf(stderr, "  %s\n", err->hint);
    stet_error_clear(err);
    return (int)status;
}

static long long number(stet_value report, const char *name) {
    return (long long)stet_value_as_int(stet_value_get(report, name));
}

int main(int argc, char **argv) {
    stet_error err = STET_ERROR_INIT;
    stet_project *project;
    stet_value result = stet_value_null(), report = stet_value_null(), nodes = stet_value_array();
    if (argc < 2) {
        fprintf(stderr, "usage: pull PATTERN [NODE...]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        stet_value_push(&nodes, stet_value_string(argv[i]));
    stet_status status = stet_project_find(".", &project, &err);
    if (status != STET_OK)
        return failed(status, &err);
    signal(SIGINT, on_interrupt);
    stet_pull_request want = STET_PULL_REQUEST_INIT;
    want.pattern = argv[1];
    want.nodes = nodes;
    want.cancelled = cancelled;
    status = stet_piece_pull(project, &want, &result, &report, &err);
    if (status == STET_OK || status == STET_FAILED) {
        char *text = stet_json_print(result, STET_JSON_CANONICAL, NULL);
        printf("ran %lld, failed %lld: %s\n", number(report, "ran"), number(report, "failed"), text);
        stet_free(text);
        stet_value_release(result);
        stet_value_release(report);
    }
    stet_value_release(nodes);
    stet_project_close(project);
    return status == STET_OK ? 0 : failed(status, &err);
}
