/* proc.c - starts, waits for and identifies processes. */

#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"

static uint64_t boot;

/* Does not use the hook of os/sys.h: the identity of this process must not depend on injected faults. */
static void read_boot_id(void) {
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    int digits = 0;
    for (ssize_t i = 0; i < len && digits < 16; i++) {
        char c = text[i];
        int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (v < 0)
            continue;
        boot = boot << 4 | (uint64_t)v;
        digits++;
    }
}

static uint64_t boot_id(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_boot_id);
    return boot;
}

/* The fields of /proc/PID/stat that are needed. */
typedef struct proc_stat {
    int64_t pid, parent, group, session;
    uint64_t start;
    bool ended;
} proc_stat;

/* The name of the command, in parentheses, may contain anything. So fields are counted from the last closing
 * parenthesis: state is field 3; parent, group and session follow; the number of threads is field 20, the start time
 * field 22. If the first thread of a process has ended, its state is "zombie" although other threads may still run,
 * with open files and held locks, perhaps in the middle of a write. The process has ended only when its last thread
 * has. */
static bool parse_stat(const char *text, proc_stat *out) {
    const char *p = strrchr(text, ')');
    if (!p || p[1] != ' ' || !p[2])
        return false;
    char state = p[2];
    int64_t fields[23] = {0};
    p += 2;
    for (int field = 4; field <= 22; field++) {
        p = strchr(p, ' ');
        if (!p)
            return false;
        p++;
        fields[field] = strtoll(p, NULL, 10);
    }
    *out = (proc_stat){.pid = strtoll(text, NULL, 10),
                       .parent = fields[4],
                       .group = fields[5],
                       .session = fields[6],
                       .start = strtoull(p, NULL, 10),
                       .ended = state == 'X' || (state == 'Z' && fields[20] <= 1)};
    return true;
}

static bool read_whole_stat(int64_t pid, proc_stat *out) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    int saved = n < 0 ? errno : ESRCH;
    close(fd);
    errno = saved;
    if (n <= 0)
        return false;
    text[n] = 0;
    return parse_stat(text, out);
}

static bool read_stat(int64_t pid, bool *ended, uint64_t *start) {
    proc_stat st;
    if (!read_whole_stat(pid, &st))
        return false;
    *ended = st.ended;
    *start = st.start;
    return true;
}

stet_proc_id stet_proc_self(void) {
    /* Cached per pid, so that a forked child looks itself up again. */
    static _Thread_local stet_proc_id self;
    int64_t pid = getpid();
    if (self.pid != pid) {
        bool ended;
        uint64_t start = 0;
        if (!read_stat(pid, &ended, &start))
            start = 0; /* without /proc, processes are told apart by pid alone */
        self = (stet_proc_id){.pid = pid, .start = start, .boot = boot_id()};
    }
    return self;
}

stet_status stet_proc_identify(int64_t pid, stet_proc_id *out, stet_error *err) {
    bool ended;
    uint64_t start;
    if (pid <= 0 || !read_stat(pid, &ended, &start))
        return stet_fail(err, STET_NOT_FOUND, "process %" PRId64 " does not exist", pid);
    *out = (stet_proc_id){.pid = pid, .start = start, .boot = boot_id()};
    return STET_OK;
}

bool stet_proc_announced(const char *text, uint64_t boot_number, stet_proc_id *out) {
    proc_stat st;
    if (!parse_stat(text, &st))
        return false;
    *out = (stet_proc_id){.pid = st.pid, .start = st.start, .boot = boot_number};
    return true;
}

bool stet_proc_alive(stet_proc_id id) {
    bool ended;
    uint64_t start;
    return id.pid > 0 && id.boot == boot_id() && read_stat(id.pid, &ended, &start) && start == id.start && !ended;
}

/* {"pid": 12, "start": 3456, "boot": "0123456789abcdef"}; the boot id is in hex because it needs all 64 bits. */
stet_value stet_proc_id_value(stet_proc_id id) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "pid", stet_value_int(id.pid));
    stet_value_put(&v, "start", stet_value_int((int64_t)(id.start & INT64_MAX)));
    stet_value_put(&v, "boot", stet_value_stringf("%016" PRIx64, id.boot));
    return v;
}

bool stet_proc_id_of_value(stet_value v, stet_proc_id *out) {
    stet_value pid = stet_value_get(v, "pid"), start = stet_value_get(v, "start"), text = stet_value_get(v, "boot");
    size_t len;
    const char *hex = stet_value_as_string(&text, &len);
    if (stet_value_type(pid) != STET_TYPE_INT || stet_value_type(start) != STET_TYPE_INT ||
        stet_value_type(text) != STET_TYPE_STRING || stet_value_as_int(pid) <= 0 || stet_value_as_int(start) < 0 ||
        len != 16 || strspn(hex, "0123456789abcdef") != 16)
        return false;
    *out = (stet_proc_id){stet_value_as_int(pid), (uint64_t)stet_value_as_int(start), strtoull(hex, NULL, 16)};
    return true;
}

extern char **environ;

/* Finds the file of the program, in PATH if `name` has no slash. Like execvp, it remembers a file in PATH that may not
 * be executed. Returns 0 or an errno. */
static int find_program(const char *name, const char *const *envp, const char *cwd, char **out) {
    if (strchr(name, '/')) {
        *out = stet_strdup(name);
        return 0;
    }
    const char *path = NULL;
    for (const char *const *e = envp; *e; e++)
        if (strncmp(*e, "PATH=", 5) == 0)
            path = *e + 5;
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    int result = ENOENT;
    while (path) {
        size_t len = strcspn(path, ":");
        char *dir = len ? stet_strndup(path, len) : stet_strdup(".");
        char *file = stet_file_join(dir, name);
        /* A relative entry of PATH is relative to the directory in which the program will run. */
        char *seen = cwd && file[0] != '/' ? stet_file_join(cwd, file) : stet_strdup(file);
        struct stat st;
        bool there = stat(seen, &st) == 0 && S_ISREG(st.st_mode);
        bool may = there && access(seen, X_OK) == 0;
        stet_free(seen);
        stet_free(dir);
        if (may) {
            *out = file;
            return 0;
        }
        stet_free(file);
        if (there)
            result = EACCES;
        path = path[len] ? path + len + 1 : NULL;
    }
    return result;
}

char *stet_proc_find(const char *name, const char *const *envp, const char *cwd) {
    char *file = NULL;
    return find_program(name, envp, cwd, &file) == 0 ? file : NULL;
}

typedef struct child_plan {
    const char *file;
    char *const *argv;
    char *const *envp;
    const stet_proc_opts *opts;
    int null_fd;  /* /dev/null, or -1 if no stream needs it */
    int error_fd; /* a pipe: exec closes it; otherwise it carries the reason why there was no exec */
} child_plan;

typedef struct child_error {
    int step; /* 'd' chdir, 'l' limits, 'f' descriptors, 'x' exec */
    int error_number;
} child_error;

static bool limit(int resource, uint64_t value) {
    if (value == 0)
        return true;
    struct rlimit r;
    if (getrlimit(resource, &r) != 0)
        return false;
    if (r.rlim_max == RLIM_INFINITY || value < r.rlim_max)
        r.rlim_max = value;
    r.rlim_cur = r.rlim_max;
    return setrlimit(resource, &r) == 0;
}

/* A single write, so that lines of other processes do not get in between. Without /proc processes can't be told apart
 * anyway. */
static void announce(const stet_proc_opts *o) {
    char line[1200];
    size_t len = strlen(o->announce);
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || len > 128)
        return;
    memcpy(line, o->announce, len);
    ssize_t n = read(fd, line + len, sizeof line - len);
    if (n > 0 && write(o->announce_fd, line, len + (size_t)n) < 0)
        return; /* a full disk: the process is then identified by its streams alone */
}

/* Runs between vfork and exec: only async-signal-safe calls, and no memory of the parent is changed except this
 * frame. */
static _Noreturn void become(const child_plan *plan) {
    child_error error = {'f', 0};
    const stet_proc_opts *o = plan->opts;
    int wanted[3] = {o->stdin_fd, o->stdout_fd, o->stderr_fd}, from[3], error_fd = plan->error_fd, extra = -1;

    if (o->new_session)
        setsid();
    else if (o->new_group)
        setpgid(0, 0);

    /* First move the descriptors above the range of the standard streams, so that no dup2 overwrites the source of
     * another. */
    for (int i = 0; i < 3; i++) {
        int fd = wanted[i] >= 0 ? wanted[i] : plan->null_fd;
        from[i] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        if (from[i] < 0)
            goto fail;
    }
    if (o->extra_fd > 0 && (extra = fcntl(o->extra_fd, F_DUPFD_CLOEXEC, 10)) < 0)
        goto fail;
    if (error_fd <= 3 && (error_fd = fcntl(error_fd, F_DUPFD_CLOEXEC, 10)) < 0)
        goto fail;
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], i) < 0)
            goto fail;
    /* exec closes all other descriptors. They are marked rather than closed, because the error pipe is one of them. */
    if (syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) != 0) {
        struct rlimit r;
        int last = getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 65536 ? (int)r.rlim_cur : 65536;
        for (int fd = 3; fd < last; fd++)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    error.step = 'd';
    if (o->cwd && chdir(o->cwd) != 0)
        goto fail;
    error.step = 'l';
    if (!limit(RLIMIT_AS, o->max_memory) || !limit(RLIMIT_CPU, o->max_cpu_s) || !limit(RLIMIT_FSIZE, o->max_file_size))
        goto fail;
    /* The child starts with default signal dispositions and an empty mask, whatever its parent ignores or blocks. */
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            sigaction(s, &dfl, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (o->announce)
        announce(o);
    if (extra >= 0 && dup2(extra, 3) < 0) /* only now: until here 3 may be any of ours */
        goto fail;
    error.step = 'x';
    execve(plan->file, plan->argv, plan->envp);
    if (errno == ENOEXEC) { /* a script without "#!" is run by sh, as in every shell and in execvp */
        size_t n = 0;
        while (plan->argv[n])
            n++;
        char *sh[64];
        if (n < 60) {
            sh[0] = (char *)(uintptr_t) "sh";
            sh[1] = (char *)(uintptr_t)plan->file;
            for (size_t i = 1; i <= n; i++)
                sh[i + 1] = plan->argv[i];
            execve("/bin/sh", sh, plan->envp);
        }
        errno = ENOEXEC;
    }
fail:
    error.error_number = errno;
    /* The pipe is empty and 8 bytes are written atomically. If this fails, the parent sees the pipe close without exec,
     * and exit code 127. */
    if (write(error_fd, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

static stet_status say_why(const child_error *e, const child_plan *plan, stet_error *err) {
    const char *program = plan->opts->argv[0];
    if (e->step == 'd')
        return stet_fail_errno(err, e->error_number, "%s: cannot run in %s", program, plan->opts->cwd);
    if (e->step == 'l')
        return stet_fail_errno(err, e->error_number, "%s: cannot set its limits", program);
    if (e->step == 'f')
        return stet_fail_errno(err, e->error_number, "%s: cannot set up its standard streams", program);
    switch (e->error_number) {
    case ENOENT:
    case ENOTDIR:
        if (strchr(program, '/') && access(plan->file, F_OK) == 0)
            return stet_fail(err, STET_NOT_FOUND, "%s: the interpreter that its first line names does not exist",
                             program);
        stet_fail(err, STET_NOT_FOUND, "%s: no such program%s", program, strchr(program, '/') ? "" : " on PATH");
        stet_hint(err, "install it, or give its full path");
        return STET_NOT_FOUND;
    case EACCES:
    case EPERM:
        stet_fail(err, STET_DENIED, "%s: not executable for this user", program);
        stet_hint(err, "chmod +x %s", plan->file);
        return STET_DENIED;
    case ENOEXEC:
        return stet_fail(err, STET_DENIED, "%s: not a program that this machine can run", program);
    case E2BIG:
        return stet_fail(err, STET_LIMIT, "%s: its arguments and environment are larger than the kernel takes",
                         program);
    default:
        return stet_fail_errno(err, e->error_number, "%s: cannot start", program);
    }
}

static pid_t start_child(const child_plan *plan) {
    /* Signals are blocked around vfork: a handler of the parent must not run in the child, which shares its memory
     * until exec. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    /* Not posix_spawn: it sets no resource limits, and does not tell which step failed. Not fork: it copies the page
     * tables of a parent that may hold large documents. The parent's memory is safe: become() writes to its own frame
     * alone, and ends in exec or _exit. */
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see above */
    if (pid == 0)
        become(plan); /* NOLINT(clang-analyzer-unix.Vfork): system calls alone, see above */
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return pid;
}

stet_status stet_proc_spawn(const stet_proc_opts *opts, stet_proc *out, stet_error *err) {
    const char *const *envp = opts->envp ? opts->envp : (const char *const *)environ;
    if (!opts->argv || !opts->argv[0] || !opts->argv[0][0])
        return stet_fail(err, STET_INVALID, "a program to run must have a name");
    int error_number = EIO;
    if (stet_sys_ask(STET_SYS_SPAWN, opts->argv[0], &error_number) == STET_SYS_FAIL)
        return stet_fail_errno(err, error_number, "%s: cannot start", opts->argv[0]);
    child_plan plan = {.argv = (char *const *)(uintptr_t)opts->argv,
                       .envp = (char *const *)(uintptr_t)envp,
                       .opts = opts,
                       .null_fd = -1};
    child_error why = {'x', 0};
    char *file = NULL;
    why.error_number = find_program(opts->argv[0], envp, opts->cwd, &file);
    if (why.error_number != 0) {
        plan.file = opts->argv[0];
        return say_why(&why, &plan, err);
    }
    plan.file = file;

    stet_status status = STET_OK;
    int pipe_fd[2] = {-1, -1};
    pid_t pid = -1;
    if ((opts->stdin_fd < 0 || opts->stdout_fd < 0 || opts->stderr_fd < 0) &&
        (plan.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
        status = stet_fail_errno(err, errno, "/dev/null: cannot open");
    if (status == STET_OK && pipe2(pipe_fd, O_CLOEXEC) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot start: no pipe", opts->argv[0]);
    if (status == STET_OK) {
        plan.error_fd = pipe_fd[1];
        pid = start_child(&plan);
        if (pid < 0)
            status = stet_fail_errno(err, errno, "%s: cannot start", opts->argv[0]);
    }
    if (plan.null_fd >= 0)
        close(plan.null_fd);
    if (pipe_fd[1] >= 0)
        close(pipe_fd[1]);
    if (pid > 0) {
        ssize_t n;
        do
            n = read(pipe_fd[0], &why, sizeof why);
        while (n < 0 && errno == EINTR);
        if (n == (ssize_t)sizeof why) {
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
            status = say_why(&why, &plan, err);
        }
    }
    if (pipe_fd[0] >= 0)
        close(pipe_fd[0]);
    stet_free(file);
    if (status != STET_OK)
        return status;

    /* The child has not been reaped yet, so its pid can't have been reused. */
    *out = (stet_proc){.id = {.pid = pid, .boot = boot_id()}, .group = opts->new_group || opts->new_session};
    bool ended;
    if (!read_stat(pid, &ended, &out->id.start))
        out->id.start = 0;
    out->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (out->pidfd < 0)
        out->pidfd = -1;
    return STET_OK;
}

/* Waits on the pidfd or, without one, polls. 1: the process has ended; 0: the time is over. */
static int wait_until_ended(const stet_proc *p, int timeout_ms) {
    int64_t deadline = timeout_ms < 0 ? -1 : stet_clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    int64_t pause_ms = 1;
    for (;;) {
        int64_t left = deadline < 0 ? -1 : (deadline - stet_clock_monotonic_us() + 999) / 1000;
        if (deadline >= 0 && left < 0)
            left = 0;
        if (p->pidfd >= 0) {
            struct pollfd f = {.fd = p->pidfd, .events = POLLIN};
            int n = poll(&f, 1, left > INT32_MAX ? INT32_MAX : (int)left);
            if (n != 0 && !(n < 0 && errno == EINTR))
                return 1;
            if (n == 0)
                return 0;
            continue;
        }
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)p->id.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0)
            return 1;
        if (left == 0)
            return 0;
        stet_clock_sleep_ms(left > 0 && left < pause_ms ? left : pause_ms);
        if (pause_ms < 20)
            pause_ms *= 2;
    }
}

stet_status stet_proc_wait(stet_proc *p, int timeout_ms, stet_proc_exit *out, stet_error *err) {
    if (!wait_until_ended(p, timeout_ms))
        return stet_fail(err, STET_BUSY, "process %" PRId64 " is still running after %d ms", p->id.pid, timeout_ms);
    int status;
    pid_t r;
    do
        r = waitpid((pid_t)p->id.pid, &status, 0);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return stet_fail(err, STET_NOT_FOUND, "process %" PRId64 " is no child of this one, or was waited for already",
                         p->id.pid);
    if (p->pidfd >= 0) {
        close(p->pidfd);
        p->pidfd = -1;
    }
    bool signalled = WIFSIGNALED(status);
    if (out)
        *out = (stet_proc_exit){signalled, signalled ? WTERMSIG(status) : WEXITSTATUS(status)};
    return STET_OK;
}

void stet_proc_kill(const stet_proc *p, int signal_number) {
    if (p->id.pid <= 1)
        return;
    if (p->group) {
        /* A group exists as long as any of its members, and its number is not reused meanwhile. Once the leader was
         * reaped and all others are gone, the number could belong to another group; therefore stet_proc_wait ends this
         * handle. */
        kill(-(pid_t)p->id.pid, signal_number);
        return;
    }
    if (p->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, p->pidfd, signal_number, NULL, 0);
    else if (stet_proc_alive(p->id))
        kill((pid_t)p->id.pid, signal_number);
}

typedef STET_VEC(proc_stat) proc_stats;

/* Lists the processes that started at `since` or later. */
static void list_processes(uint64_t since, proc_stats *out) {
    DIR *d = opendir("/proc");
    const struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        proc_stat st;
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_whole_stat(strtoll(e->d_name, NULL, 10), &st) &&
            !st.ended && st.start >= since)
            *stet_vec_add(out) = st;
    }
    if (d)
        closedir(d);
}

/* Is one of its standard streams a file whose path begins with `held`? A process that merely reads the file has it
 * under another descriptor. Processes of other users can't be inspected. */
static bool has_stream(int64_t pid, const char *held) {
    char path[64], target[4096];
    size_t len = strlen(held);
    for (int fd = 0; fd < 3; fd++) {
        snprintf(path, sizeof path, "/proc/%" PRId64 "/fd/%d", pid, fd);
        ssize_t n = readlink(path, target, sizeof target);
        if (n >= (ssize_t)len && memcmp(target, held, len) == 0)
            return true;
    }
    return false;
}

size_t stet_proc_end_family(stet_proc_id leader, const char *held, bool *sure, int signal_number) {
    proc_stats all = {0};
    STET_VEC(bool) in = {0};
    size_t count = 0;
    if (leader.pid && leader.boot != boot_id())
        return 0;
    list_processes(leader.start, &all);
    bool known = leader.pid > 1, given_away = false;
    for (size_t i = 0; i < all.len; i++) {
        const proc_stat *p = &all.at[i];
        *stet_vec_add(&in) = p->pid != getpid() && has_stream(p->pid, held);
        bool member = known && (p->session == leader.pid || p->group == leader.pid);
        if (known && p->pid == leader.pid) {
            *sure |= p->start == leader.start;
            given_away = p->start != leader.start;
        }
        *sure |= in.at[i] && member;
    }
    for (size_t i = 0; i < all.len && known && *sure && !given_away; i++)
        in.at[i] |= all.at[i].session == leader.pid || all.at[i].group == leader.pid;
    for (bool more = true; more;) { /* add the children of any of them */
        more = false;
        for (size_t i = 0; i < all.len; i++)
            for (size_t k = 0; k < all.len && !in.at[i]; k++)
                more |= in.at[i] = in.at[k] && all.at[k].pid == all.at[i].parent;
    }
    for (size_t i = 0; i < all.len; i++)
        if (in.at[i] && all.at[i].pid != getpid()) {
            count++;
            kill((pid_t)all.at[i].pid, signal_number);
        }
    stet_vec_release(&all);
    stet_vec_release(&in);
    return count;
}

stet_status stet_home_dir(char **out, stet_error *err) {
    static const struct {
        const char *name, *below;
    } from[] = {{"STET_HOME", NULL}, {"XDG_STATE_HOME", "stet"}, {"HOME", ".local/state/stet"}};
    const char *home = getenv("STET_HOME");
    if (home && home[0] && home[0] != '/')
        return stet_fail(err, STET_INVALID, "STET_HOME is \"%s\": not an absolute path", home);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        home = getenv(from[i].name);
        if (!home || home[0] != '/') /* a relative XDG_STATE_HOME is ignored, as its specification asks */
            continue;
        if (!stet_utf8_valid(home, strlen(home))) { /* it is shown and stored as text */
            stet_fail(err, STET_INVALID, "%s is \"%s\": not UTF-8", from[i].name, home);
            stet_hint(err, "set STET_HOME to a directory of your own");
            return STET_INVALID;
        }
        *out = from[i].below ? stet_file_join(home, from[i].below) : stet_strdup(home);
        return STET_OK;
    }
    stet_fail(err, STET_INVALID, "neither STET_HOME, XDG_STATE_HOME nor HOME says where stet may keep its state");
    stet_hint(err, "set STET_HOME to a directory of your own");
    return STET_INVALID;
}

/* "<32 hex digits> <host name>\n" */
static bool parse_machine_id(const char *text, size_t len, const char *host, char out[40]) {
    if (len < 34 || text[32] != ' ' || strspn(text, "0123456789abcdef") != 32)
        return false;
    const char *end = memchr(text, '\n', len);
    size_t host_len = (size_t)((end ? end : text + len) - (text + 33));
    if (host_len != strlen(host) || memcmp(text + 33, host, host_len) != 0)
        return false;
    memcpy(out, text, 32);
    out[32] = 0;
    return true;
}

stet_status stet_machine_id(const char *stet_home, char out[40], stet_error *err) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        return stet_fail_errno(err, errno, "cannot tell the host name");
    char *path = stet_file_join(stet_home, "machine-id");
    stet_status status = STET_OK;
    bool have = false;
    /* Repeated, because two processes that create an id at the same time must end up with the same one. */
    for (int turn = 0; turn < 8 && !have && status == STET_OK; turn++) {
        stet_buf b = STET_BUF(4096);
        stet_error e = STET_ERROR_INIT;
        stet_status read = stet_file_read(path, 0, &b, &e);
        if (read == STET_OK)
            have = parse_machine_id(stet_buf_cstr(&b), b.len, host, out);
        else if (read != STET_NOT_FOUND && read != STET_LIMIT)
            status = read;
        if (status != STET_OK)
            stet_error_move(err, &e);
        stet_error_clear(&e);
        stet_buf_release(&b);
        if (have || status != STET_OK)
            break;
        status = stet_file_mkdirs(stet_home, 0755, err);
        if (status != STET_OK)
            break;
        unsigned char random[16];
        char text[320];
        stet_random(random, sizeof random);
        size_t n = stet_hex_encode(random, sizeof random, text);
        n += (size_t)snprintf(text + n, sizeof text - n, " %s\n", host);
        if (read == STET_NOT_FOUND) {
            stet_status made = stet_file_create(path, text, n, 0644, &e);
            if (made != STET_OK && made != STET_CONFLICT) {
                status = made;
                stet_error_move(err, &e);
            }
            stet_error_clear(&e);
        } else {
            status = stet_file_replace(path, text, n, 0644, err);
        }
    }
    if (status == STET_OK && !have)
        status = stet_fail(err, STET_BUSY, "%s: changes all the time: do two machines share this directory?", path);
    if (status == STET_IO) {
        /* The general hint does not mention the way out. */
        stet_hint_instead(err, "make %s writable, or set STET_HOME to another directory", stet_home);
    }
    stet_free(path);
    return status;
}
