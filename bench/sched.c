/* sched.c - running and not running: null starts, a few changes among many, early cut-off, propagation.
 *
 * The peer is ninja on the same graph; its files and processes are a different case from documents, and are labelled
 * so. Starts are measured as CPU time of whole processes, propagation as CPU time inside this one.
 *
 *     build/bench/sched [ACTIONS [FILTER]]    100,000 actions in the large graphs by default; FILTER is
 *                                             one of starts, unneeded, set, chain, propagation
 *
 * A process is started with posix_spawn, so that copying this one is not charged to it. Short runs are measured as the
 * best mean of several: a single run is charged by the tick, and the first finds nothing in the caches.
 */

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/clock.h"
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

extern char **environ;

/* CPU milliseconds and peak kilobytes of a command; -1: there is no such program, or it crashed. */
static double run_once(char *const argv[], long *kilobytes) {
    struct rusage r;
    int status;
    pid_t pid;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool there = posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&quiet);
    if (!there || wait4(pid, &status, 0, &r) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
        return -1;
    *kilobytes = r.ru_maxrss;
    return cpu_of(&r) * 1000;
}

/* The best of some rounds, each the mean of some runs. */
static double run_command(char *const argv[], int rounds, int runs, long *kilobytes) {
    double best = -1;
    for (int i = 0; i < rounds; i++) {
        double sum = 0;
        for (int k = 0; k < runs; k++) {
            double ms = run_once(argv, kilobytes);
            if (ms < 0)
                return -1;
            sum += ms;
        }
        if (best < 0 || sum / runs < best)
            best = sum / runs;
    }
    return best;
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* `layers` times `width` nodes; each reads `fan` above it. A chain is a width of 1. With `gates` every node of the
 * first layer reads the node "gate" too, whose value does not follow the cell it reads, and 1, 10, 100 and 1000 of the
 * last read the cells "k1", "k10", "k100" and "k1000". The result is the last layer, or, with `narrow`, one node. */
#define MAX_IN_JAVASCRIPT "{\"type\":\"javascript\",\"implementation\":\"(...values) => Math.max(...values)\"}"
typedef struct graph {
    const char *name;
    int layers, width, inputs, fan;
    bool gates;
    const char *module; /* of each node; NULL: the ref function max */
    bool narrow;
} graph;

static const int affected[] = {1, 10, 100, 1000};
#define AFFECTED (int)(sizeof affected / sizeof *affected)

/* In a process of its own: whoever is started later is charged with the most memory that this one ever had. */
static void apart(void (*fn)(const graph *g), const graph *g) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        fn(g);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        exit(1);
}

static void pattern_file(const graph *g) {
    char file[64];
    stet_buf b = STET_BUF(0);
    snprintf(file, sizeof file, "%s.json", g->name);
    stet_buf_printf(&b, "{\"pattern\":1,\"name\":\"%s\",\"argument\":{\"default\":{", g->name);
    for (int i = 0; i < g->inputs; i++)
        stet_buf_printf(&b, "%s\"k%d\":%d", i ? "," : "", i, i + 1);
    stet_buf_str(&b, "}},");
    if (g->gates)
        stet_buf_str(&b, "\"cells\":{\"k1\":{\"default\":1},\"k10\":{\"default\":1},\"k100\":{\"default\":1},"
                         "\"k1000\":{\"default\":1},\"gated\":{\"default\":1}},");
    stet_buf_str(&b, "\"nodes\":[");
    if (g->gates)
        stet_buf_str(&b, "{\"id\":\"gate\",\"module\":{\"type\":\"ref\",\"ref\":\"min\"},\"inputs\":[{\"$\":"
                         "\"gated\"},0]},");
    for (int l = 0; l < g->layers; l++)
        for (int i = 0; i < g->width; i++) {
            stet_buf_printf(&b, "%s{\"id\":\"n%d-%d\",\"module\":%s,\"inputs\":[", l || i ? "," : "", l, i,
                            g->module ? g->module : "{\"type\":\"ref\",\"ref\":\"max\"}");
            for (int f = 0; f < g->fan; f++)
                if (l == 0)
                    stet_buf_printf(&b, "{\"$\":\"argument/k%d\"},", (i + f) % g->inputs);
                else
                    stet_buf_printf(&b, "{\"$\":\"n%d-%d\"},", l - 1, (i + f) % g->width);
            if (g->gates && l == 0)
                stet_buf_str(&b, "{\"$\":\"gate\"},");
            for (int k = 0; k < AFFECTED && g->gates && l == g->layers - 1; k++)
                if (i < affected[k])
                    stet_buf_printf(&b, "{\"$\":\"k%d\"},", affected[k]);
            stet_buf_str(&b, "0]}");
        }
    stet_buf_str(&b, "],\"result\":[");
    for (int i = 0; i < (g->narrow ? 1 : g->width); i++)
        stet_buf_printf(&b, "%s{\"$\":\"n%d-%d\"}", i ? "," : "", g->layers - 1, i);
    stet_buf_str(&b, "]}");
    must(stet_file_replace(file, b.data, b.len, 0644, &err));
    stet_buf_release(&b);
}

static void write_pattern(const graph *g) {
    apart(pattern_file, g);
    /* A file that is as new as the look at it is read again. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

/* The same graph for ninja: a file and a command per node. The rule is one of a generator, so that files which are
 * there and new enough stand without having been made by it: a hundred thousand processes are no part of a bench. */
static void ninja_files(const graph *g) {
    const char *dir = "ninja";
    stet_buf b = STET_BUF(0);
    must(stet_file_mkdirs(dir, 0755, &err));
    stet_buf_str(&b, "rule touch\n  command = touch $out\n  generator = 1\n  restat = 1\n");
    for (int l = 0; l < g->layers; l++)
        for (int i = 0; i < g->width; i++) {
            stet_buf_printf(&b, "build n%d-%d: touch", l, i);
            for (int f = 0; f < g->fan; f++)
                if (l == 0)
                    stet_buf_printf(&b, " k%d", (i + f) % g->inputs);
                else
                    stet_buf_printf(&b, " n%d-%d", l - 1, (i + f) % g->width);
            stet_buf_str(&b, "\n");
        }
    char *path = stet_file_join(dir, "build.ninja");
    must(stet_file_replace(path, b.data, b.len, 0644, &err));
    stet_free(path);
    stet_buf_release(&b);
    for (int l = -1; l < g->layers; l++)
        for (int i = 0; i < (l < 0 ? g->inputs : g->width); i++) {
            char name[64];
            if (l < 0)
                snprintf(name, sizeof name, "%s/k%d", dir, i);
            else
                snprintf(name, sizeof name, "%s/n%d-%d", dir, l, i);
            FILE *f = fopen(name, "w");
            if (f)
                fclose(f);
        }
}

static void write_ninja(const graph *g) {
    apart(ninja_files, g);
}

static char program[4096];

static void set_cell(const char *piece, const char *part, const char *value) {
    char cell[128];
    long kb;
    snprintf(cell, sizeof cell, "piece:%s:%s", piece, part);
    char *argv[] = {program, (char *)"set", cell, (char *)(uintptr_t)value, NULL};
    (void)run_once(argv, &kb);
}

/* A run after a change; the best of three changes. */
static double run_after(const char *piece, const char *part, int base, char *const argv[], long *kb) {
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        char value[32];
        snprintf(value, sizeof value, "%d", base + i);
        set_cell(piece, part, value);
        double ms = run_once(argv, kb);
        if (ms < best)
            best = ms;
    }
    return best;
}

/* In a process of its own, on the way that `stet run` takes: CPU time from its start to the first action. */
static void on_start(void *ctx, const stet_sched_event *e) {
    bool *told = ctx;
    if (e->kind == STET_SCHED_STARTED && !*told)
        printf("%.3f\n", cpu_now() * 1000);
    *told = *told || e->kind == STET_SCHED_STARTED;
}

static int until_first(const char *piece) {
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_sched_report r;
    bool told = false;
    stet_sched_opts opts = {.persist = true, .ctx = &told, .event = on_start};
    must(stet_project_open(".", &project, &err));
    must(stet_space_open(project, "main", 0, &space, &err));
    must(stet_sched_open(project, space, "", &opts, &sched, &err));
    must(stet_sched_demand_piece(sched, piece, &err));
    must(stet_sched_settle(sched, &r, &err));
    stet_value_release(r.problems);
    stet_sched_close(sched);
    stet_space_close(space);
    stet_project_close(project);
    return 0;
}

static double before_first(const char *self, const char *piece, const char *part, int base) {
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        char command[8192], line[64], value[32];
        snprintf(value, sizeof value, "%d", base + i);
        set_cell(piece, part, value);
        snprintf(command, sizeof command, "'%s' until-first '%s'", self, piece);
        FILE *f = popen(command, "r");
        if (f && fgets(line, sizeof line, f) && atof(line) < best)
            best = atof(line);
        if (f)
            pclose(f);
    }
    return best;
}

static char self[4096];

static double megabytes_of(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 ? (double)st.st_size / 1048576 : 0;
}

static void starts(int layers, int width) {
    char file[64], name[32];
    long kb = 0, peer_kb = 0;
    int n = layers * width;
    snprintf(name, sizeof name, "layers%d", n);
    snprintf(file, sizeof file, "%s.json", name);
    graph g = {name, layers, width, width, 1, true, NULL, false};
    write_pattern(&g);
    char *argv[] = {program, (char *)"run", file, NULL};
    double ms = run_once(argv, &kb);
    printf("sched first run of %d: ours %.0f ms, %.1f us an action, %ld KB; the space is %.0f MiB, documents and graph "
           "included\n",
           n, ms, ms * 1000 / n, kb, megabytes_of(".stet/local/spaces/main.db"));
    write_ninja(&g);
    char *ninja[] = {(char *)"ninja", (char *)"-C", (char *)"ninja", NULL};
    char *dry[] = {(char *)"ninja", (char *)"-C", (char *)"ninja", (char *)"-n", NULL};
    char *nothing[] = {(char *)"/bin/true", NULL};
    double peer = run_command(ninja, 3, 1, &peer_kb), least = run_command(nothing, 5, 20, &kb);
    ms = run_command(argv, 5, 20, &kb);
    printf("sched null start, %d standing: ours %.2f ms %ld KB, ninja over files (another case: it looks at each) %.0f "
           "ms %ld KB, ratio %.4f; /bin/true %.2f ms (goal 3 ms, 20000 KB)\n",
           n, ms, kb, peer, peer_kb, ms / peer, least);
    double before = before_first(self, name, "cell:k1", 10);
    must(stet_file_replace("ninja/k0", "x", 1, 0644, &err));
    peer = run_once(dry, &peer_kb);
    printf(
        "sched 1 of %d affected, before the action: ours %.2f ms, ninja over files (another case), finding out, %.0f "
        "ms %ld KB, ratio %.4f (goal 5 ms)\n",
        n, before, peer, peer_kb, before / peer);
    double first = 0;
    for (int k = 0; k < AFFECTED && affected[k] <= width; k++) {
        char cell[32];
        snprintf(cell, sizeof cell, "cell:k%d", affected[k]);
        ms = run_after(name, cell, 1000 * (affected[k] + 1), argv, &kb);
        if (k == 0)
            first = ms;
        printf("sched %d of %d affected: ours %.2f ms %ld KB with the runs, their storing and the run's files",
               affected[k], n, ms, kb);
        if (k > 0)
            printf("; %.0f us for each further one", (ms - first) * 1000 / (affected[k] - 1));
        printf(" (goal: grows with the affected alone, 40000 KB)\n");
    }
    ms = run_after(name, "cell:gated", 1000, argv, &kb);
    printf(
        "sched early cut-off, %d downstream: ours %.2f ms %ld KB with the action, ratio to 1 affected %.2f (goal: no "
        "walk)\n",
        n, ms, kb, ms / first);
    must(stet_file_remove_tree("ninja", &err));
}

/* What nothing wanted needs stays unknown, and costs a start nothing. */
static void unneeded(int n) {
    long kb = 0, few_kb = 0;
    graph few = {"needed", 1, 1, 1, 1, false, NULL, true}, many = {"unneeded", 1, n, 1, 1, false, NULL, true};
    write_pattern(&few);
    write_pattern(&many);
    char *a[] = {program, (char *)"run", (char *)"needed.json", NULL};
    char *b[] = {program, (char *)"run", (char *)"unneeded.json", NULL};
    (void)run_once(a, &kb);
    (void)run_once(b, &kb);
    (void)run_once(a, &kb); /* it looks at what the other left, once */
    double without = run_command(a, 5, 20, &few_kb), with = run_command(b, 5, 20, &kb);
    printf("sched null start, %d unknown that nothing needs: ours %.2f ms %ld KB, a piece of one action %.2f ms, ratio "
           "%.2f (goal 1)\n",
           n - 1, with, kb, without, with / without);
}

/* Some inputs of many, given with the run. */
static void set_inputs(int inputs, int changed) {
    long kb = 0, peer_kb = 0;
    graph g = {"inputs", 1, inputs, inputs, 1, false, NULL, false};
    write_pattern(&g);
    write_ninja(&g);
    char *run[] = {program, (char *)"run", (char *)"inputs.json", NULL};
    (void)run_once(run, &kb);
    double best = 1e9;
    for (int turn = 0; turn < 3; turn++) {
        char **argv = stet_alloc_zero((size_t)(2 * changed + 4) * sizeof *argv);
        int n = 0;
        for (; n < 3; n++)
            argv[n] = run[n];
        for (int i = 0; i < changed; i++) {
            argv[n++] = (char *)"--set";
            argv[n++] = stet_asprintf("k%d=%d", i * (inputs / changed), 1000000 * (turn + 1) + i);
        }
        double ms = run_once(argv, &kb);
        if (ms < best)
            best = ms;
        for (int i = 4; i < n; i += 2)
            stet_free(argv[i]);
        free(argv);
    }
    for (int i = 0; i < changed; i++) {
        char name[64];
        snprintf(name, sizeof name, "ninja/k%d", i * (inputs / changed));
        must(stet_file_replace(name, "x", 1, 0644, &err));
    }
    char *dry[] = {(char *)"ninja", (char *)"-C", (char *)"ninja", (char *)"-n", NULL};
    double peer = run_once(dry, &peer_kb);
    printf("sched run --set, %d of %d inputs: ours %.1f ms %ld KB with the %d runs stored, ninja over files (another "
           "case), finding out alone, %.1f ms, ratio %.2f (goal: grows with the changed)\n",
           changed, inputs, best, kb, changed, peer, best / peer);
    must(stet_file_remove_tree("ninja", &err));
}

static void chain(int n) {
    long kb = 0, peer_kb = 0;
    graph g = {"longchain", n, 1, 1, 1, false, NULL, false};
    write_pattern(&g);
    write_ninja(&g);
    char *argv[] = {program, (char *)"run", (char *)"longchain.json", NULL};
    char *ninja[] = {(char *)"ninja", (char *)"-C", (char *)"ninja", NULL};
    double first = run_once(argv, &kb);
    printf("sched chain of %d, first run: ours %.0f ms, %.1f us an action, %ld KB\n", n, first, first * 1000 / n, kb);
    set_cell("longchain", "argument/k0", "5000");
    double edit = run_once(argv, &kb), peer = run_once(ninja, &peer_kb);
    printf(
        "sched chain of %d, its head edited: ours %.0f ms, %.1f us a run, %ld KB; ninja over files, nothing to do, %s "
        "(goal: it runs, with a stack of 8 MiB)\n",
        n, edit, edit * 1000 / n, kb, peer < 0 ? "crashes or is not there" : "does it, too");
    must(stet_file_remove_tree("ninja", &err));
}

/* Refs that add a text to a number fail; in a circle each waits for the one before. */
static double run_refs(const char *name, int n, const char *term, bool circle) {
    char file[64];
    snprintf(file, sizeof file, "%s.json", name);
    FILE *f = fopen(file, "w");
    if (!f)
        exit(1);
    fprintf(f, "{\"pattern\":1,\"name\":\"%s\",\"argument\":{\"default\":{\"s\":%s}},\"nodes\":[", name, term);
    for (int i = 0; i < n; i++) {
        fprintf(f, "%s{\"id\":\"n%d\",\"module\":{\"type\":\"ref\",\"ref\":\"add\"},\"inputs\":[", i ? "," : "", i);
        if (circle)
            fprintf(f, "{\"$\":\"n%d\"},1]}", (i + n - 1) % n);
        else
            fprintf(f, "{\"$\":\"argument/s\"},%d]}", i);
    }
    fprintf(f, "],\"result\":{");
    for (int i = 0; i < (circle ? 1 : n); i++)
        fprintf(f, "%s\"r%d\":{\"$\":\"n%d\"}", i ? "," : "", i, i);
    fprintf(f, "}}");
    if (fclose(f) != 0)
        exit(1);
    char *argv[] = {program, (char *)"run", (char *)"-k", file, NULL};
    int64_t start = stet_clock_monotonic_us();
    long kb;
    (void)run_once(argv, &kb);
    return (double)(stet_clock_monotonic_us() - start) / 1000;
}

static void failures(int n) {
    double good = run_refs("succeed", n, "1", false), bad = run_refs("fail", n, "\"x\"", false);
    printf("sched first run of %d refs: %.0f ms elapsed if they succeed, %.0f ms if they fail, ratio %.2f (goal 3)\n",
           n, good, bad, bad / good);
    for (int size = 1000; size <= 20 * n; size *= size < 10000 ? 10 : 2) {
        double ms = run_refs(size == 1000 ? "circle1" : size == 10000 ? "circle2" : "circle3", size, "1", true);
        printf("sched first run of a circle of %d refs: %.0f ms elapsed, %.1f us an action (goal: the same for each "
               "size)\n",
               size, ms, ms * 1000 / size);
    }
}

/* Runs per second, everything stored. */
static void propagation(const graph *g, double goal) {
    char file[64];
    snprintf(file, sizeof file, "%s.json", g->name);
    write_pattern(g);
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
    must(stet_sched_install(sched, pattern, g->name, stet_value_null(), stet_value_null(), &in, &err));
    must(stet_sched_demand_piece(sched, g->name, &err));
    must(stet_sched_settle(sched, &r, &err));
    stet_value_release(r.problems);
    size_t runs = 0;
    double best = 0;
    for (int turn = 0; turn < 10; turn++) {
        stet_tx *tx;
        must(stet_tx_begin(space, "", &tx, &err));
        for (int i = 0; i < g->inputs; i++) {
            char cell[96];
            snprintf(cell, sizeof cell, "piece:%s:argument/k%d", g->name, i);
            must(stet_tx_set(tx, cell, NULL, stet_value_int(1000 * (turn + 2) + i), &err));
        }
        must(stet_tx_commit(tx, NULL, &err));
        double start = cpu_now();
        must(stet_sched_settle(sched, &r, &err));
        double rate = (double)r.runs / (cpu_now() - start);
        runs = r.runs;
        stet_value_release(r.problems);
        if (rate > best)
            best = rate;
    }
    printf("sched propagation, %s: ours %.0f runs/s CPU, %zu runs, stored (goal %.0f)\n", g->name, best, runs, goal);
    stet_pattern_free(pattern);
    stet_sched_close(sched);
    stet_space_close(space);
    stet_project_close(project);
}

static const char *filter = "";

static bool chosen(const char *section) {
    return strstr(section, filter) != NULL;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0); /* children must not repeat what waits in the buffer */
    if (argc == 3 && strcmp(argv[1], "until-first") == 0)
        return until_first(argv[2]);
    const char *build = getenv("STET_BUILD");
    snprintf(program, sizeof program, "%s/stet", build ? build : "build");
    char *real;
    must(stet_file_realpath(program, &real, &err));
    snprintf(program, sizeof program, "%s", real);
    stet_free(real);
    must(stet_file_realpath("/proc/self/exe", &real, &err));
    snprintf(self, sizeof self, "%s", real);
    stet_free(real);
    char dir[] = "/tmp/stet-bench-sched.XXXXXX";
    if (!mkdtemp(dir) || chdir(dir) != 0)
        return 1;
    bool created;
    must(stet_project_init(".", &created, &err));
    int actions = argc > 1 ? atoi(argv[1]) : 100000;
    if (argc > 2)
        filter = argv[2];
    if (actions < 1000)
        return 1;
    struct rlimit stack = {8 << 20, 8 << 20}; /* of whoever is started */
    if (setrlimit(RLIMIT_STACK, &stack) != 0)
        return 1;
    /* Whole processes first: what this one has in memory is no part of what they cost. */
    if (chosen("starts"))
        starts(100, actions / 100);
    if (chosen("unneeded"))
        unneeded(20001);
    if (chosen("set"))
        set_inputs(10000, 100);
    if (chosen("chain"))
        chain(actions);
    if (chosen("failures"))
        failures(1000);
    /* What failed stays in memory, and what waits for it. */
    if (chosen("failures"))
        propagation(&(graph){"beside-failures", 1, 1000, 1, 1, false, NULL, false}, 50000);
    if (chosen("propagation")) {
        must(stet_file_mkdirs("propagation", 0755, &err));
        if (chdir("propagation") != 0)
            return 1;
        must(stet_project_init(".", &created, &err));
        propagation(&(graph){"fan-out-1000", 1, 1000, 1, 1, false, NULL, false}, 50000);
        propagation(&(graph){"chain-1000", 1000, 1, 1, 1, false, NULL, false}, 50000);
        propagation(&(graph){"diamond-100-layers", 100, 10, 1, 2, false, NULL, false}, 50000);
        propagation(&(graph){"javascript-fan-out-1000", 1, 1000, 1, 1, false, MAX_IN_JAVASCRIPT, false}, 20000);
        propagation(&(graph){"javascript-chain-1000", 1000, 1, 1, 1, false, MAX_IN_JAVASCRIPT, false}, 20000);
        propagation(&(graph){"javascript-diamond-100-layers", 100, 10, 1, 2, false, MAX_IN_JAVASCRIPT, false}, 20000);
    }
    if (chdir(dir) != 0)
        return 1;
    must(stet_file_remove_tree(dir, &err));
    return 0;
}
