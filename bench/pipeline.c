/* pipeline.c - pipelines, compared with ninja and make.
 *
 * Measures a scan against a bare loop of stat, a first build of trivial commands, a null build without and with a live
 * watch, one changed input, and restoring a large output. CPU time of the process and its children is measured where
 * the work is our own, wall time where the commands' work counts. STET_BENCH_FILES, STET_BENCH_COMMANDS and
 * STET_BENCH_RESTORE_MB change the sizes.
 */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

#define PER_DIRECTORY 250

/* CPU seconds of another process so far. */
static double process_cpu(pid_t pid) {
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(text, sizeof text, f))
        return 0;
    fclose(f);
    return strtod(text, NULL) / 1e9;
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

/* The least CPU time of some runs, in milliseconds. */
static double least(const char *line, int rounds) {
    double best = 1e9, busy;
    for (int i = 0; i < rounds; i++) {
        run(line, &busy);
        best = busy < best ? busy : best;
    }
    return best * 1e3;
}

static void write_builds(long n) {
    FILE *toml = fopen("stet.toml", "w"), *ninja = fopen("build.ninja", "w"), *make = fopen("Makefile", "w");
    if (!toml || !ninja || !make)
        abort();
    fprintf(toml, "name = \"bench\"\n");
    fprintf(ninja, "rule c\n command = cp $in $out\n");
    fprintf(make, "all:");
    for (long i = 0; i < n; i++)
        fprintf(make, " make/%ld/%ld", i / PER_DIRECTORY, i);
    fprintf(make, "\n");
    for (long i = 0; i < n; i++) {
        char path[64];
        long dir = i / PER_DIRECTORY;
        const char *const tops[] = {"in", "make"};
        for (int k = 0; i % PER_DIRECTORY == 0 && k < 2; k++) {
            snprintf(path, sizeof path, "%s/%ld", tops[k], dir);
            if (mkdir(path, 0755) != 0)
                abort();
        }
        snprintf(path, sizeof path, "in/%ld/%ld", dir, i);
        put(path, path);
        fprintf(toml,
                "[nodes.n%ld]\ncommand = [\"cp\", \"{in}\", \"{out}\"]\nfiles = \"in/%ld/%ld\"\n"
                "produces = \"ours/%ld/%ld\"\n",
                i, dir, i, dir, i);
        fprintf(ninja, "build ninja/%ld/%ld: c in/%ld/%ld\n", dir, i, dir, i);
        fprintf(make, "make/%ld/%ld: in/%ld/%ld\n\t@cp $< $@\n", dir, i, dir, i);
    }
    fclose(toml);
    fclose(ninja);
    fclose(make);
}

/* A null build beside a live watch: what the run itself costs, and what it costs the process that watches. */
static void watched(const char *stet, const char *line, long n, double ninja) {
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execl(stet, stet, "file", "watch", (char *)NULL);
        _exit(1);
    }
    char json[4200];
    snprintf(json, sizeof json, "%s run --json | grep -q '\"watched\":true'", stet);
    for (int i = 0; i < 200 && system(json) != 0; i++)
        stet_clock_sleep_ms(50);
    double before = process_cpu(pid), ours = least(line, 20), beside = (process_cpu(pid) - before) * 1e3 / 20;
    printf("pipeline.null build of %ld commands with a watch: ours %.1f ms (and %.1f ms in the watch), peer %.1f ms "
           "(ninja, "
           "CPU), ratio %.4f (goal 0.0200 at 100,000)\n",
           n, ours, beside, ninja, ours / ninja);
    double busy;
    put("in/0/5", "changed beside a watch");
    run(line, &busy);
    printf("pipeline.one input of %ld changed beside a watch: ours %.1f ms (CPU)\n", n, busy * 1e3);
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

static void builds(const char *stet) {
    const char *given = getenv("STET_BENCH_COMMANDS");
    long n = given ? atol(given) : 1000;
    char line[4200];
    double ours_cpu, ninja_cpu;
    if (mkdir("build", 0755) != 0 || chdir("build") != 0 || mkdir("in", 0755) != 0 || mkdir("make", 0755) != 0)
        abort();
    write_builds(n);
    snprintf(line, sizeof line, "%s init > /dev/null", stet);
    run(line, &ours_cpu);
    snprintf(line, sizeof line, "%s run > /dev/null", stet);
    double ours = run(line, &ours_cpu), ninja = run("ninja > /dev/null", &ninja_cpu), make_cpu;
    double make = run("make -s -j3 > /dev/null", &make_cpu);
    printf(
        "pipeline.first build of %ld commands: ours %.2f s, peer %.2f s (ninja; make %.2f s), ratio %.2f (goal 2.00)\n",
        n, ours, ninja, make, ours / ninja);
    run(line, &ours_cpu);
    stet_clock_sleep_ms(50);
    run(line, &ours_cpu);
    double best = least(line, 5), best_ninja = least("ninja > /dev/null", 5),
           best_make = least("make -s > /dev/null", n > 5000 ? 1 : 3);
    printf(
        "pipeline.null build of %ld commands: ours %.1f ms, peer %.1f ms (ninja, CPU; make %.1f ms), ratio %.2f (goal "
        "1.00)\n",
        n, best, best_ninja, best_make, best / best_ninja);
    best = best_ninja = 1e9;
    for (int i = 0; i < 5; i++) {
        char text[32];
        snprintf(text, sizeof text, "changed %d", i);
        put("in/0/7", text);
        run(line, &ours_cpu);
        run("ninja > /dev/null", &ninja_cpu);
        best = ours_cpu * 1e3 < best ? ours_cpu * 1e3 : best;
        best_ninja = ninja_cpu * 1e3 < best_ninja ? ninja_cpu * 1e3 : best_ninja;
    }
    printf("pipeline.one input of %ld changed: ours %.1f ms, peer %.1f ms (ninja, CPU), ratio %.2f (goal 1.00)\n", n,
           best, best_ninja, best / best_ninja);
    watched(stet, line, n, least("ninja > /dev/null", 5));
    if (chdir("..") != 0)
        abort();
}

/* One output of a gigabyte, put back: by reflink where the file system has them, else by hard link. */
static void restores(const char *stet) {
    const char *given = getenv("STET_BENCH_RESTORE_MB");
    long megabytes = given ? atol(given) : 256;
    char line[4200];
    double busy;
    if (mkdir("restore", 0755) != 0 || chdir("restore") != 0)
        abort();
    FILE *toml = fopen("stet.toml", "w");
    if (!toml)
        abort();
    fprintf(
        toml,
        "name = \"r\"\n[nodes.big]\ncommand = \"head -c %ldM /dev/zero | openssl enc -aes-128-ctr -pass pass:x -nosalt "
        "-pbkdf2 > {out} 2> /dev/null\"\nproduces = \"big\"\n",
        megabytes);
    fclose(toml);
    snprintf(line, sizeof line,
             "%s init > /dev/null && printf '[module.command]\\nhardlink = true\\n' >> .stet/config.toml", stet);
    run(line, &busy);
    snprintf(line, sizeof line, "%s run > /dev/null", stet);
    run(line, &busy);
    double best = 1e9, copy = run("cp --reflink=never big copy", &busy);
    for (int i = 0; i < 3; i++) {
        run("rm big", &busy);
        double took = run(line, &busy);
        best = took < best ? took : best;
    }
    printf("pipeline.restore of %ld MB: ours %.0f ms, peer %.0f ms (cp), ratio %.3f\n", megabytes, best * 1e3,
           copy * 1e3, best / copy);
    if (chdir("..") != 0)
        abort();
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
    restores(stet);
    snprintf(line, sizeof line, "rm -rf %s", dir);
    if (chdir("/") != 0 || system(line) != 0)
        return 1;
    stet_free(bench);
    stet_free(build);
    stet_free(stet);
    free(paths);
    return 0;
}
