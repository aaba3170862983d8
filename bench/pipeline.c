/* Pipelines beside ninja: a scan against a bare loop of stat, a first build of trivial commands, a null build, one
 * changed input. CPU time of the process and its children where the work is our own, wall time where the commands' work
 * counts. STET_BENCH_FILES and STET_BENCH_COMMANDS change the sizes. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "files/files.h"
#include "os/clock.h"
#include "os/file.h"

static double cpu(int who) {
    struct rusage u;
    getrusage(who, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6 + (double)u.ru_stime.tv_sec +
           (double)u.ru_stime.tv_usec / 1e6;
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        abort();
    close(fd);
}

static void must(stet_status status, stet_error *err) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static char (*paths)[64];
static long count;
static int root_fd;

static void *stat_range(void *part) {
    struct stat st;
    long k = (long)(intptr_t)part;
    for (long i = count * k / 2; i < count * (k + 1) / 2; i++)
        if (fstatat(root_fd, paths[i], &st, 0) != 0)
            abort();
    return NULL;
}

static void scans(void) {
    const char *given = getenv("STET_BENCH_FILES");
    count = given ? atol(given) : 20000;
    paths = calloc((size_t)count, sizeof *paths);
    stet_error err = STET_ERROR_INIT;
    bool created;
    must(stet_project_init("scan", &created, &err), &err);
    if (chdir("scan") != 0)
        abort();
    stet_project *p;
    stet_space *s;
    stet_files *f;
    must(stet_project_open(".", &p, &err), &err);
    must(stet_space_open(p, "main", 0, &s, &err), &err);
    must(stet_files_open(p, s, &f, &err), &err);
    for (long i = 0; i < count; i++) {
        char dir[32], id[80];
        snprintf(dir, sizeof dir, "d%03ld", i / 250);
        if (i % 250 == 0 && mkdir(dir, 0755) != 0)
            abort();
        snprintf(paths[i], sizeof *paths, "%s/f%06ld", dir, i);
        put(paths[i], paths[i]);
        snprintf(id, sizeof id, "file:%s", paths[i]);
        must(stet_files_follow(f, id, &err), &err);
    }
    must(stet_files_scan(f, NULL, &err), &err);
    stet_clock_sleep_ms(50);
    must(stet_files_scan(f, NULL, &err), &err);
    stet_files_close(f);
    root_fd = open(".", O_RDONLY | O_DIRECTORY);
    double ours = 1e9, bare = 1e9;
    for (int round = 0; round < 5; round++) {
        double from = cpu(RUSAGE_SELF);
        pthread_t t;
        pthread_create(&t, NULL, stat_range, (void *)(intptr_t)1);
        stat_range(NULL);
        pthread_join(t, NULL);
        double took = cpu(RUSAGE_SELF) - from;
        bare = took < bare ? took : bare;
        from = cpu(RUSAGE_SELF);
        must(stet_files_open(p, s, &f, &err), &err);
        must(stet_files_scan(f, NULL, &err), &err);
        stet_files_close(f);
        took = cpu(RUSAGE_SELF) - from;
        ours = took < ours ? took : ours;
    }
    printf("pipeline.scan of %ld files: ours %.1f ms, peer %.1f ms (bare stat), ratio %.2f (goal 1.30)\n", count,
           ours * 1e3, bare * 1e3, ours / bare);
    stet_space_close(s);
    stet_project_close(p);
    if (chdir("..") != 0)
        abort();
}

/* Wall and CPU time of a command line. */
static double run(const char *line, double *busy) {
    double from = cpu(RUSAGE_CHILDREN);
    int64_t start = stet_clock_monotonic_us();
    if (system(line) != 0)
        fprintf(stderr, "failed: %s\n", line);
    *busy = cpu(RUSAGE_CHILDREN) - from;
    return (double)(stet_clock_monotonic_us() - start) / 1e6;
}

static void builds(const char *stet) {
    const char *given = getenv("STET_BENCH_COMMANDS");
    long n = given ? atol(given) : 1000;
    char line[4200];
    double ours_cpu, peer_cpu;
    if (mkdir("build", 0755) != 0 || chdir("build") != 0 || mkdir("in", 0755) != 0)
        abort();
    FILE *toml = fopen("stet.toml", "w"), *ninja = fopen("build.ninja", "w");
    fprintf(toml, "name = \"bench\"\n");
    fprintf(ninja, "rule c\n command = cp $in $out\n");
    for (long i = 0; i < n; i++) {
        char path[48];
        snprintf(path, sizeof path, "in/%ld", i);
        put(path, path);
        fprintf(toml,
                "[nodes.n%ld]\ncommand = [\"cp\", \"{in}\", \"{out}\"]\nfiles = \"in/%ld\"\nproduces = \"ours/%ld\"\n",
                i, i, i);
        fprintf(ninja, "build theirs/%ld: c in/%ld\n", i, i);
    }
    fclose(toml);
    fclose(ninja);
    snprintf(line, sizeof line, "%s init > /dev/null", stet);
    run(line, &ours_cpu);
    snprintf(line, sizeof line, "%s run > /dev/null", stet);
    double ours = run(line, &ours_cpu), peer = run("ninja > /dev/null", &peer_cpu);
    printf("pipeline.first build of %ld commands: ours %.2f s, peer %.2f s (ninja), ratio %.2f (goal 2.00)\n", n, ours,
           peer, ours / peer);
    run(line, &ours_cpu);
    double best = 1e9, best_peer = 1e9;
    for (int i = 0; i < 5; i++) {
        run(line, &ours_cpu);
        run("ninja > /dev/null", &peer_cpu);
        best = ours_cpu < best ? ours_cpu : best;
        best_peer = peer_cpu < best_peer ? peer_cpu : best_peer;
    }
    printf("pipeline.null build of %ld commands: ours %.1f ms, peer %.1f ms (ninja, CPU), ratio %.2f (goal 1.00)\n", n,
           best * 1e3, best_peer * 1e3, best / best_peer);
    put("in/7", "changed");
    ours = run(line, &ours_cpu);
    peer = run("ninja > /dev/null", &peer_cpu);
    printf("pipeline.one input changed: ours %.1f ms, peer %.1f ms (ninja, CPU)\n", ours_cpu * 1e3, peer_cpu * 1e3);
}

int main(void) {
    char dir[] = "/tmp/stet-bench.XXXXXX", exe[4000], line[4200];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (len < 0 || !mkdtemp(dir) || chdir(dir) != 0)
        return 1;
    exe[len] = 0;
    char *bench = stet_file_dirname(exe), *build = stet_file_dirname(bench), *stet = stet_file_join(build, "stet");
    scans();
    builds(stet);
    snprintf(line, sizeof line, "rm -rf %s", dir);
    if (chdir("/") != 0 || system(line) != 0)
        return 1;
    stet_free(bench);
    stet_free(build);
    stet_free(stet);
    free(paths);
    return 0;
}
