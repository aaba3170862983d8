/* sched_other.h - a process of its own that works on the same piece, and dies.
 *
 * It dies at any system call, right after a sync (others may see the commit or not), or when everything is done and
 * nobody knows about it yet.
 *
 *     other_main(); // first in main: the other process is the same program
 *     bool killed = other_process(w, "add", 7, "e1", 3); // sends an event to piece "p"; stream NULL: settles
 */
#ifndef TEST_SCHED_OTHER_H
#define TEST_SCHED_OTHER_H

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "sched_kit.h"

extern char **environ;

/* `end`: at that call; negative: after that many syncs; 0: at its end. */
static inline bool other_process(world *w, const char *stream, long value, const char *id, int end) {
    char number[32], at[32];
    snprintf(number, sizeof number, "%ld", value);
    snprintf(at, sizeof at, "%d", end);
    setenv("OTHER_STREAM", stream ? stream : "", 1);
    setenv("OTHER_VALUE", number, 1);
    setenv("OTHER_ID", id ? id : "", 1);
    setenv("OTHER_END", at, 1);
    setenv("OTHER_ROOT", stet_project_root(w->project), 1);
    char name[] = "other", *argv[] = {name, NULL};
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    unsetenv("OTHER_ROOT");
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        fail_msg("the other process ended with status %d", status);
    return killed;
}

static inline int other_work(int end) {
    world w = {.opts = {.persist = true}};
    stet_sched_sent sent;
    stet_sched_report report;
    const char *stream = getenv("OTHER_STREAM");
    engine_find_plugins();
    if (end > 0)
        faults_arm_any(end, STET_SYS_KILL, 0);
    else
        faults_arm(STET_SYS_FSYNC, -end, STET_SYS_KILL_AFTER, 0);
    if (stet_project_open(getenv("OTHER_ROOT"), &w.project, NULL) != STET_OK ||
        stet_space_open(w.project, "main", 0, &w.space, NULL) != STET_OK ||
        stet_sched_open(w.project, w.space, "", &w.opts, &w.sched, NULL) != STET_OK)
        return 1;
    if (*stream)
        (void)!stet_sched_send(w.sched, "p", stream, stet_value_int(strtol(getenv("OTHER_VALUE"), NULL, 10)),
                               getenv("OTHER_ID"), &sent, NULL);
    else if (stet_sched_demand_piece(w.sched, "p", NULL) != STET_OK ||
             stet_sched_settle(w.sched, &report, NULL) != STET_OK)
        return 1;
    if (end == 0)
        kill(getpid(), SIGKILL);
    faults_disarm();
    return 0;
}

static inline void other_main(void) {
    if (getenv("OTHER_ROOT"))
        _exit(other_work(atoi(getenv("OTHER_END"))));
}

#endif
