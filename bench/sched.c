/* Running and not running: null starts, one change among many, early cut-off, propagation; beside ninja on the same
 * graph, where its files and processes are another case than documents and are named so. CPU time of whole processes
 * for starts, CPU time inside this one for propagation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"
#include "scheduler/sched.h"

#define must(call)                                                                                                     \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        if ((call) != STET_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, err.message);                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double cpu_of(const struct rusage *r) {
    return (double)r->ru_utime.tv_sec + (double)r->ru_stime.tv_sec +
           ((double)r->ru_utime.tv_usec + (double)r->ru_stime.tv_usec) / 1e6;
}

/* CPU milliseconds and peak kilobytes of a command, the best of `times`. */
static double run_command(char *const argv[], int times, long *kilobytes) {
    double best = 1e9;
    for (int i = 0; i < times; i++) {
        struct rusage r;
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
                _exit(127);
            execvp(argv[0], argv);
            _exit(127);
        }
        if (wait4(pid, &status, 0, &r) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
            return -1;
        if (cpu_of(&r) * 1000 < best) {
            best = cpu_of(&r) * 1000;
            *kilobytes = r.ru_maxrss;
        }
    }
    return best;
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* `layers` times `width` nodes; each reads one above it. A chain is a width of 1. */
static void write_pattern(const char *file, const char *name, int layers, int width, const char *ref) {
    stet_buf b = STET_BUF(0);
    stet_buf_printf(&b, "{\"pattern\":1,\"name\":\"%s\",\"argument\":{\"default\":{", name);
    for (int i = 0; i < width; i++)
        stet_buf_printf(&b, "%s\"k%d\":%d", i ? "," : "", i, i + 1);
    stet_buf_str(&b, "}},\"nodes\":[");
    for (int l = 0; l < layers; l++)
        for (int i = 0; i < width; i++) {
            stet_buf_printf(&b, "%s{\"id\":\"n%d-%d\",\"module\":{\"type\":\"ref\",\"ref\":\"%s\"},\"inputs\":[",
                            l || i ? "," : "", l, i, ref);
            if (l == 0)
                stet_buf_printf(&b, "{\"$\":\"argument/k%d\"},0]}", i);
            else
                stet_buf_printf(&b, "{\"$\":\"n%d-%d\"},0]}", l - 1, i);
        }
    stet_buf_str(&b, "],\"result\":[");
    for (int i = 0; i < width; i++)
        stet_buf_printf(&b, "%s{\"$\":\"n%d-%d\"}", i ? "," : "", layers - 1, i);
    stet_buf_str(&b, "]}");
    must(stet_file_replace(file, b.data, b.len, 0644, &err));
    stet_buf_release(&b);
}

/* The same graph for ninja: a file and a command per node. */
static void write_ninja(const char *dir, int layers, int width) {
    stet_buf b = STET_BUF(0);
    must(stet_file_mkdirs(dir, 0755, &err));
    stet_buf_str(&b, "rule touch\n  command = touch $out\n  restat = 1\n");
    for (int l = 0; l < layers; l++)
        for (int i = 0; i < width; i++) {
            if (l == 0)
                stet_buf_printf(&b, "build n%d-%d: touch k%d\n", l, i, i);
            else
                stet_buf_printf(&b, "build n%d-%d: touch n%d-%d\n", l, i, l - 1, i);
        }
    char *path = stet_file_join(dir, "build.ninja");
    must(stet_file_replace(path, b.data, b.len, 0644, &err));
    stet_free(path);
    stet_buf_release(&b);
    for (int l = -1; l < layers; l++)
        for (int i = 0; i < width; i++) {
            char name[64];
            snprintf(name, sizeof name, l < 0 ? "%s/k%d" : "%s/n%d-%d", dir, l < 0 ? i : l, i);
            FILE *f = fopen(name, "w");
            if (f)
                fclose(f);
        }
}

static char program[4096];

static void null_start(int layers, int width) {
    char file[64], label[64];
    long kb = 0, ninja_kb = 0;
    int n = layers * width;
    snprintf(label, sizeof label, "layers%d", n);
    snprintf(file, sizeof file, "layers%d.json", n);
    write_pattern(file, label, layers, width, "max");
    struct timespec tick = {0, 50000000};
    nanosleep(&tick, NULL);
    char *argv[] = {program, (char *)"run", file, NULL};
    double first = run_command(argv, 1, &kb);
    printf("sched first run of %d actions: ours %.0f ms CPU, %.1f us an action\n", n, first, first * 1000 / n);
    double ours = run_command(argv, 5, &kb);
    double peer = -1;
    if (n <= 10000) { /* ninja has to run a command per node once, before it can start with nothing to do */
        write_ninja("ninja", layers, width);
        char *warm[] = {(char *)"ninja", (char *)"-C", (char *)"ninja", NULL};
        (void)run_command(warm, 1, &ninja_kb);
        peer = run_command(warm, 3, &ninja_kb);
    }
    printf("sched null start, %d standing: ours %.1f ms %ld KB, ninja over files %.0f ms, ratio %.4f (goal 3 ms, 20000 "
           "KB)\n",
           n, ours, kb, peer, peer > 0 ? ours / peer : 0);
    char set[32];
    snprintf(set, sizeof set, "k%d=1000001", width / 2);
    char *edit[] = {program, (char *)"run", file, (char *)"--set", set, NULL};
    double one = run_command(edit, 1, &kb);
    printf("sched one input of %d changed, %d affected: ours %.1f ms %ld KB (with reading the pattern for --set)\n", n,
           layers, one, kb);
}

/* Runs per second, in this process, everything stored. */
static void propagation(const char *name, int layers, int width, const char *ref, double goal) {
    char file[64];
    snprintf(file, sizeof file, "%s.json", name);
    write_pattern(file, name, layers, width, ref);
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_pattern *pattern;
    stet_sched_installed in;
    stet_sched_report r;
    stet_pattern_checks checks = {.module = stet_module_check};
    stet_sched_opts opts = {.persist = true};
    must(stet_project_open(".", &project, &err));
    must(stet_space_open(project, "main", 0, &space, &err));
    must(stet_sched_open(project, space, "", &opts, &sched, &err));
    must(stet_pattern_load(file, &checks, &pattern, NULL, &err));
    must(stet_sched_install(sched, pattern, name, stet_null(), stet_null(), &in, &err));
    must(stet_sched_demand_piece(sched, name, &err));
    must(stet_sched_settle(sched, &r, &err));
    stet_release(r.problems);
    size_t runs = 0;
    double best = 0;
    for (int turn = 0; turn < 5; turn++) {
        stet_tx *tx;
        must(stet_tx_begin(space, "", &tx, &err));
        for (int i = 0; i < width; i++) {
            char cell[96];
            snprintf(cell, sizeof cell, "piece:%s:argument/k%d", name, i);
            must(stet_tx_set(tx, cell, NULL, stet_int(1000 * (turn + 2) + i), &err));
        }
        must(stet_tx_commit(tx, NULL, &err));
        double start = cpu_now();
        must(stet_sched_settle(sched, &r, &err));
        double rate = (double)r.runs / (cpu_now() - start);
        runs = r.runs;
        stet_release(r.problems);
        if (rate > best)
            best = rate;
    }
    printf("sched propagation %s: ours %.0f runs/s CPU (%zu runs, stored; goal %.0f)\n", name, best, runs, goal);
    stet_pattern_free(pattern);
    stet_sched_close(sched);
    stet_space_close(space);
    stet_project_close(project);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0); /* children must not repeat what waits in the buffer */
    const char *build = getenv("STET_BUILD");
    snprintf(program, sizeof program, "%s/stet", build ? build : "build");
    char *real;
    must(stet_file_realpath(program, &real, &err));
    snprintf(program, sizeof program, "%s", real);
    stet_free(real);
    char dir[] = "/tmp/stet-bench-sched.XXXXXX";
    if (!mkdtemp(dir) || chdir(dir) != 0)
        return 1;
    bool created;
    must(stet_project_init(".", &created, &err));
    int scale = argc > 1 ? atoi(argv[1]) : 1000; /* thousandths of the full size */
    propagation("chain1000", 1000, 1, "max", 50000);
    propagation("fan1000", 1, 1000, "max", 50000);
    propagation("layers100", 100, 10, "max", 50000);
    null_start(100, 100);
    null_start(100, 1000 * scale / 1000);
    must(stet_file_remove_tree(dir, &err));
    return 0;
}
