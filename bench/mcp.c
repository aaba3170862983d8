/* mcp.c - how long an MCP client waits, and what 10,000 calls leave behind in memory.
 *
 * Measures the first answer after the start of the program, a warm small call, and a warm read of a document. The peer
 * of a call is the same frames through `cat`: the bare cost of two processes and two pipes.
 */

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STARTS 40
#define CALLS  10000
#define META                                                                                                           \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"                 \
    "clientCapabilities\":{}}"
#define CALL(tool, arguments)                                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" META ",\"name\":\"" tool                    \
    "\",\"arguments\":" arguments "}}\n"

extern char **environ;

typedef struct child {
    pid_t pid;
    int in, out;
    char *buffer;
    size_t len, cap;
} child;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static child start(const char *const *argv) {
    int to[2], from[2];
    child c = {0};
    posix_spawn_file_actions_t actions;
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        exit(1);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    if (posix_spawnp(&c.pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        exit(1);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    c.in = to[1];
    c.out = from[0];
    c.cap = 1 << 20;
    c.buffer = malloc(c.cap);
    return c;
}

static void stop(child *c) {
    close(c->in);
    close(c->out);
    waitpid(c->pid, NULL, 0);
    free(c->buffer);
}

/* One line there, one line back. */
static const char *ask(child *c, const char *line) {
    size_t len = strlen(line);
    if (write(c->in, line, len) != (ssize_t)len)
        exit(1);
    c->len = 0;
    do {
        ssize_t n = read(c->out, c->buffer + c->len, c->cap - c->len - 1);
        if (n <= 0)
            exit(1);
        c->len += (size_t)n;
    } while (c->buffer[c->len - 1] != '\n');
    c->buffer[c->len] = 0;
    return c->buffer;
}

static double call_us(child *c, const char *line, int calls) {
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        double begun = now_ms();
        for (int i = 0; i < calls / 5; i++)
            ask(c, line);
        double each = (now_ms() - begun) * 1e3 / (calls / 5);
        best = each < best ? each : best;
    }
    return best;
}

static long resident_kb(pid_t pid) {
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmRSS: %ld", &kb);
    if (f)
        fclose(f);
    return kb;
}

static void prepare(const char *stet) {
    char command[4096];
    snprintf(command, sizeof command, "'%s' init -q && '%s' set -q config '{\"theme\":\"dark\"}'", stet, stet);
    if (system(command) != 0)
        exit(1);
}

int main(void) {
    const char *stet = getenv("STET");
    if (!stet)
        return 2;
    prepare(stet);
    const char *server[] = {stet, "mcp", "--all-tools", NULL}, *cat[] = {"cat", NULL};
    static const char version[] = CALL("stet_version", "{}"), get[] = CALL("stet_get", "{\"cell\":\"config/theme\"}");
    double first = 1e9, echo_first = 1e9;
    for (int i = 0; i < STARTS; i++) {
        double begun = now_ms();
        child c = start(server);
        ask(&c, version);
        first = now_ms() - begun < first ? now_ms() - begun : first;
        stop(&c);
        begun = now_ms();
        c = start(cat);
        ask(&c, version);
        echo_first = now_ms() - begun < echo_first ? now_ms() - begun : echo_first;
        stop(&c);
    }
    printf("mcp, first answer after start: ours %.2f ms, cat %.2f ms, ratio %.1f (goal below 30 ms)\n", first,
           echo_first, first / echo_first);
    child c = start(server), e = start(cat);
    ask(&c, version);
    double echo = call_us(&e, version, CALLS), small = call_us(&c, version, CALLS), read = call_us(&c, get, CALLS / 5);
    printf("mcp, warm small call: ours %.0f us, cat %.0f us, ratio %.1f (goal below 1000 us)\n", small, echo,
           small / echo);
    printf("mcp, warm read of a document: ours %.0f us, cat %.0f us, ratio %.1f (goal below 1000 us)\n", read, echo,
           read / echo);
    long before = resident_kb(c.pid);
    for (int i = 0; i < CALLS; i++)
        ask(&c, i % 4 ? version : get);
    long after = resident_kb(c.pid);
    printf("mcp, memory after 10,000 more calls: ours %ld kB, before %ld kB, ratio %.2f (goal no growth)\n", after,
           before, (double)after / (double)before);
    stop(&c);
    stop(&e);
    return 0;
}
