/* fleet.c - the registry over 10,000 runs of 37 KB: refresh from nothing, look, search, archive.
 *
 * Everything is done as the program does it, process start included. "cold" means with the page cache dropped, inodes
 * and directories too, where that is allowed; otherwise posix_fadvise drops the pages of the files. STET_BENCH_RUNS
 * makes it smaller. The peer is the goal that was set. Beside it stands the floor: what the same looks or reads cost
 * alone in the same minute.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "project/project.h"

static stet_error err;

static void die(const char *what) {
    fprintf(stderr, "bench/fleet: %s: %s\n", what, err.message);
    exit(1);
}

/* A state of about 37 KB: 96 tasks with what tasks have. */
static void state_text(stet_buf *b, const char *id, int i) {
    bool failed = i % 10 == 3;
    char at[STET_TIME_TEXT];
    stet_time_print(1760000000000 + (int64_t)i * 60000, at);
    stet_buf_printf(b,
                    "{\n  \"app\": {\"id\": \"app-%d\", \"title\": \"Nightly report\", \"version\": \"1.%d\"},\n  "
                    "\"commits\": [],\n  \"createdAt\": \"%s\",\n  \"feedback\": [],\n  \"id\": \"%s\",\n"
                    "  \"inputs\": {\"region\": \"r-%d\", \"rows\": %d, \"source\": \"warehouse/table-%d\"},\n"
                    "  \"labels\": [],\n  \"loopStage\": \"done\",\n  \"options\": {},\n  \"schemaVersion\": 2,\n"
                    "  \"summary\": {\"ran\": 96, \"stood\": 1200, \"savedMs\": 54000},\n  \"tasks\": [\n",
                    i % 7, i % 5, at, id, i % 13, i, i % 101);
    for (int t = 0; t < 96; t++)
        stet_buf_printf(b,
                        "    {\n      \"action\": \"transform/step-%d\",\n      \"attempt\": 1,\n      \"endedAt\": "
                        "\"%s\",\n      \"id\": \"transform/step-%d\",\n      \"kind\": \"command\",\n      \"log\": "
                        "\"logs/transform-step-%d-0a1b2c3d.log\",\n      \"result\": \"%064x\",\n      \"startedAt\": "
                        "\"%s\",\n      \"status\": \"%s\"\n    }%s\n",
                        t, at, t, t, t * 7919 + i, at, failed && t == 95 ? "failed" : "completed", t < 95 ? "," : "");
    stet_buf_printf(
        b, "  ],\n  \"title\": \"Nightly report %d\",\n  \"updatedAt\": \"%s\",\n  \"workflowId\": \"w-%d\"\n}\n", i,
        at, i % 7);
}

static size_t generate(const char *root, int runs) {
    stet_buf b = STET_BUF(0);
    size_t bytes = 0;
    for (int i = 0; i < runs; i++) {
        char id[64], dir[4300], path[4400];
        snprintf(id, sizeof id, "2026%04dT%06dZ-report-%08x", i / 1000, i % 1000, i * 2654435761u);
        snprintf(dir, sizeof dir, "%s/.stet/runs/%s", root, id);
        snprintf(path, sizeof path, "%s/state.json", dir);
        stet_buf_clear(&b);
        state_text(&b, id, i);
        bytes += b.len;
        int fd = -1;
        if (stet_sys_mkdir(dir, 0755) != 0 || (fd = stet_sys_open(path, O_WRONLY | O_CREAT, 0644)) < 0)
            die(path);
        if (stet_file_write_all(fd, path, b.data, b.len, &err) != STET_OK)
            die("write");
        stet_sys_close(fd);
    }
    stet_buf_release(&b);
    return bytes;
}

typedef struct cost {
    double ms, cpu_ms, mib;
} cost;

static void child_of(void (*work)(const void *), const void *what, cost *out) {
    struct rusage use;
    int status;
    fflush(stdout);
    int64_t started = stet_clock_monotonic_us();
    pid_t pid = fork();
    if (pid == 0) {
        work(what);
        _exit(0);
    }
    if (wait4(pid, &status, 0, &use) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "bench/fleet: a child ended with %d\n", status);
        exit(1);
    }
    out->ms = (double)(stet_clock_monotonic_us() - started) / 1000;
    out->cpu_ms = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
                  (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
    out->mib = (double)use.ru_maxrss / 1024;
}

static void become(const void *what) {
    const char *const *argv = what;
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

/* The floor: what the system asks for the same files when nothing is made of them. Every source is looked at, or read,
 * by as many threads as the program uses, in the order of the disk; there is no parser, no hash, no index. No program
 * that answers from its sources can be faster. */
enum { FLOOR_THREADS = 32 };

typedef struct place {
    uint64_t inode;
    char name[64];
} place;

static struct {
    place *places;
    size_t count;
    atomic_size_t next;
    int dir;
    bool read;
} bare;

static int by_inode(const void *a, const void *b) {
    const place *x = a, *y = b;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void *bare_looks(void *unused) {
    static _Thread_local char bytes[65536];
    char path[128];
    struct stat st;
    for (size_t i; (i = atomic_fetch_add(&bare.next, 1)) < bare.count;) {
        snprintf(path, sizeof path, "%s/state.json", bare.places[i].name);
        if (!bare.read) {
            if (fstatat(bare.dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
                _exit(1);
            continue;
        }
        int fd = openat(bare.dir, path, O_RDONLY);
        while (read(fd, bytes, sizeof bytes) > 0)
            ;
        close(fd);
    }
    return unused;
}

static void bare_work(const void *what) {
    pthread_t threads[FLOOR_THREADS];
    DIR *dir = opendir(".stet/runs");
    struct dirent *entry;
    size_t room = 0;
    bare.dir = dirfd(dir);
    bare.read = *(const bool *)what;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        if (bare.count == room) {
            room = room ? room * 2 : 1024;
            bare.places = stet_realloc(bare.places, room * sizeof *bare.places);
        }
        place *p = &bare.places[bare.count++];
        p->inode = entry->d_ino;
        snprintf(p->name, sizeof p->name, "%.63s", entry->d_name);
    }
    qsort(bare.places, bare.count, sizeof *bare.places, by_inode);
    for (int i = 0; i < FLOOR_THREADS; i++)
        if (pthread_create(&threads[i], NULL, bare_looks, NULL) != 0)
            _exit(1);
    for (int i = 0; i < FLOOR_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void forget(const char *root) {
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    if (fd >= 0) {
        if (write(fd, "3", 1) == 1) {
            close(fd);
            return;
        }
        close(fd);
    }
    char *dir = stet_file_join(root, ".stet/runs");
    stet_names names = {0};
    if (stet_file_list(dir, &names, &err) != STET_OK)
        die(dir);
    for (size_t i = 0; i < names.len; i++) {
        char *path = stet_asprintf("%s/%s/state.json", dir, names.at[i]);
        int file = open(path, O_RDONLY);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        close(file);
        stet_free(path);
    }
    stet_names_release(&names);
    stet_free(dir);
}

static double worst_mib;
static char root[4096];

/* The best of a few: the machine is not ours alone. */
static void keep_best(cost *best, cost c) {
    best->ms = c.ms < best->ms ? c.ms : best->ms;
    best->cpu_ms = c.cpu_ms < best->cpu_ms ? c.cpu_ms : best->cpu_ms;
}

typedef struct task {
    const char *name;
    int times;
    double goal;
    const char *const *argv;
    bool reads; /* the sources, rather than looks at them */
    bool cold;
    void (*before)(void); /* NULL: nothing */
} task;

/* With the floor beside it, the two in turns, so that both meet the same neighbours. */
static void measure(const task *t) {
    cost ours = {1e9, 1e9, 0}, least = {1e9, 1e9, 0}, c;
    for (int i = 0; i < t->times; i++) {
        if (t->before != NULL)
            t->before();
        if (t->cold)
            forget(root);
        child_of(become, t->argv, &c);
        keep_best(&ours, c);
        worst_mib = c.mib > worst_mib ? c.mib : worst_mib;
        if (t->cold)
            forget(root);
        child_of(bare_work, &t->reads, &c);
        keep_best(&least, c);
    }
    printf(
        "fleet %s: ours %.0f ms, peer %.0f ms, ratio %.2f (goal 1); CPU %.0f ms; the bare %s %.0f ms, CPU %.0f ms%s\n",
        t->name, ours.ms, t->goal, ours.ms / t->goal, ours.cpu_ms, t->reads ? "reads" : "looks", least.ms, least.cpu_ms,
        least.ms > t->goal ? ": the goal is below the floor of this machine" : "");
    fflush(stdout);
}

static void from_nothing(void) {
    if (unlink(".stet/local/registry/index.json") != 0 && errno != ENOENT)
        die("unlink");
    if (system("rm -rf \"$STET_HOME\"") != 0)
        die("rm");
}

int main(void) {
    const char *stet = getenv("STET"), *n = getenv("STET_BENCH_RUNS");
    int runs = n ? atoi(n) : 10000;
    bool created;
    if (stet == NULL)
        die("STET names the program");
    if (getcwd(root, sizeof root) == NULL || stet_project_init(root, &created, &err) != STET_OK)
        die("init");
    if (stet_file_mkdirs(".stet/runs", 0755, &err) != STET_OK)
        die("mkdir");
    size_t bytes = generate(root, runs);
    printf("fleet: %d runs of %zu bytes\n", runs, bytes / (size_t)runs);
    stet_clock_sleep_ms(2100); /* a state written just now is read again at every look */
    double scale = (double)runs / 10000;
    const char *refresh[] = {stet, "registry", "refresh", "--json", NULL};
    const char *show[] = {stet, "registry", "show", "--json", NULL};
    const char *home[] = {stet, "registry", "show", "--scope", "home", "--json", NULL};
    const char *verify[] = {stet, "registry", "show", "--verify", "--json", NULL};
    const char *search[] = {stet, "runs", "search", "--text", "r-7 report", "--status", "failed", "--json", NULL};
    const char *history[] = {stet, "history", "--json", NULL};
    const char *stats[] = {stet, "runs", "stats", "--json", NULL};
    const char *archive[] = {stet,
                             "runs",
                             "archive",
                             "--older-than-days",
                             "1",
                             "--until",
                             "2025-10-12T03:32:20Z",
                             "--state",
                             "completed",
                             "--state",
                             "failed",
                             "--json",
                             NULL};
    const task tasks[] = {
        {"refresh from nothing, cold", 2, 1500 * scale, refresh, true, true, from_nothing},
        {"refresh from nothing, warm", 2, 1500 * scale, refresh, true, false, from_nothing},
        {"refresh again", 3, 1500 * scale, refresh, false, false, NULL},
        {"registry show, cold", 3, 150 * scale, show, false, true, NULL},
        {"registry show, warm", 5, 150 * scale, show, false, false, NULL},
        {"registry show --scope home, warm", 5, 150 * scale, home, false, false, NULL},
        {"runs search, cold", 2, 100 * scale, search, false, true, NULL},
        {"runs search, warm", 5, 100 * scale, search, false, false, NULL},
        {"history, warm", 5, 100 * scale, history, false, false, NULL},
        {"runs stats, warm", 5, 100 * scale, stats, false, false, NULL},
        {"registry show --verify, warm", 2, 1500 * scale, verify, true, false, NULL},
        {"archive of 4,000", 1, 1000 * scale, archive, false, false, NULL},
    };
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        measure(&tasks[i]);
    printf("fleet memory: ours %.0f MiB, peer 60 MiB, ratio %.2f (goal 1)\n", worst_mib, worst_mib / 60);
    return 0;
}
