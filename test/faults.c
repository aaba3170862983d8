/* faults.c - the hook of os/sys.h for tests: fails, shortens, interrupts or kills at the n-th matching call. */

#include "faults.h"

#include <errno.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/space.h"

static const uint32_t any_call = (1u << STET_SYS_CALLS) - 1;
static const uint32_t durable_calls = 1u << STET_SYS_WRITE | 1u << STET_SYS_FSYNC | 1u << STET_SYS_TRUNCATE |
                                      1u << STET_SYS_RENAME | 1u << STET_SYS_LINK | 1u << STET_SYS_UNLINK |
                                      1u << STET_SYS_MKDIR | 1u << STET_SYS_RMDIR;

static struct {
    uint32_t calls; /* bit set */
    int64_t n;
    stet_sys_action action;
    int error_number;
    char path[256];
    bool sticky;
    _Atomic int64_t count;
    _Atomic bool fired;
} armed;
static char count_file[4096];

static bool path_matches(const stet_sys_fault *fault) {
    if (!armed.path[0])
        return true;
    if (fault->path)
        return strstr(fault->path, armed.path) != NULL;
    if (fault->fd < 0)
        return false;
    char link[64], target[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fault->fd);
    ssize_t len = readlink(link, target, sizeof target - 1);
    if (len < 0)
        return false;
    target[len] = 0;
    return strstr(target, armed.path) != NULL;
}

static stet_sys_action hook(stet_sys_fault *fault) {
    if (!(armed.calls & 1u << fault->call) || !path_matches(fault))
        return STET_SYS_GO;
    int64_t k = atomic_fetch_add(&armed.count, 1) + 1;
    if (armed.n <= 0 || (armed.sticky ? k < armed.n : k != armed.n))
        return STET_SYS_GO;
    atomic_store(&armed.fired, true);
    fault->error_number = armed.error_number;
    return armed.action;
}

static void arm(uint32_t calls, int64_t n, stet_sys_action action, int error_number) {
    armed.calls = calls;
    armed.n = n;
    armed.action = action;
    armed.error_number = error_number ? error_number : EIO;
    armed.path[0] = 0;
    armed.sticky = false;
    atomic_store(&armed.count, 0);
    atomic_store(&armed.fired, false);
    stet_sys_hook = hook;
}

void faults_arm(stet_sys_call call, int64_t n, stet_sys_action action, int error_number) {
    arm(1u << call, n, action, error_number);
}

void faults_arm_any(int64_t n, stet_sys_action action, int error_number) {
    arm(any_call, n, action, error_number);
}

void faults_arm_durable(int64_t n, stet_sys_action action, int error_number) {
    arm(durable_calls, n, action, error_number);
}

void faults_path(const char *substring) {
    snprintf(armed.path, sizeof armed.path, "%s", substring);
}

void faults_sticky(void) {
    armed.sticky = true;
}

void faults_disarm(void) {
    stet_sys_hook = NULL;
}

int64_t faults_count(void) {
    return atomic_load(&armed.count);
}

bool faults_fired(void) {
    return atomic_load(&armed.fired);
}

int faults_descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        abort();
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the one of this listing */
}

int faults_names(const char *path, const char *substring) {
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strstr(e->d_name, substring) != NULL;
    closedir(dir);
    return n;
}

static char fast_directory[64];
static pid_t fast_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_fast_directory(void) {
    if (getpid() == fast_owner)
        nftw(fast_directory, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

void faults_fast_directory(void) {
    snprintf(fast_directory, sizeof fast_directory, "/dev/shm/stet-test-XXXXXX");
    if (!mkdtemp(fast_directory))
        return;
    fast_owner = getpid();
    if (chdir(fast_directory) != 0)
        abort();
    atexit(remove_fast_directory);
}

static _Noreturn void refuse(const char *item) {
    fprintf(stderr, "STET_FAULT: \"%s\" is not understood\n", item);
    _exit(125);
}

static uint32_t calls_of_name(const char *name) {
    if (strcmp(name, "any") == 0)
        return any_call;
    if (strcmp(name, "durable") == 0)
        return durable_calls;
    for (int i = 0; i < STET_SYS_CALLS; i++)
        if (strcmp(name, stet_sys_call_name((stet_sys_call)i)) == 0)
            return 1u << i;
    refuse(name);
}

static stet_sys_action action_of_name(const char *name) {
    static const struct {
        const char *name;
        stet_sys_action action;
    } actions[] = {{"fail", STET_SYS_FAIL},
                   {"short", STET_SYS_SHORT},
                   {"eintr", STET_SYS_EINTR},
                   {"kill", STET_SYS_KILL},
                   {"kill_after", STET_SYS_KILL_AFTER}};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(name, actions[i].name) == 0)
            return actions[i].action;
    refuse(name);
}

static int errno_of_name(const char *name) {
    for (int i = 1; i < 134; i++) {
        const char *known = strerrorname_np(i);
        if (known && strcmp(known, name) == 0)
            return i;
    }
    refuse(name);
}

static stet_status allow(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, stet_error *err) {
    (void)tx, (void)name, (void)at, (void)len, (void)err;
    return STET_OK;
}

__attribute__((constructor)) static void without_guard(void) {
    if (getenv("STET_UNGUARDED"))
        stet_outside_guard = (stet_write_guard){allow, allow};
}

__attribute__((constructor)) static void from_environment(void) {
    const char *text = getenv("STET_FAULT"), *counted = getenv("STET_FAULT_COUNT");
    if (counted)
        snprintf(count_file, sizeof count_file, "%s", counted);
    if (!text && !counted)
        return;
    uint32_t calls = any_call;
    int64_t n = 0;
    stet_sys_action action = STET_SYS_FAIL;
    int error_number = EIO;
    char path[256] = "";
    bool sticky = false;
    char copy[1024], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *item; (item = strsep(&rest, ","));) {
        char *value = strchr(item, '=');
        if (!*item)
            continue;
        if (!value)
            refuse(item);
        *value++ = 0;
        if (strcmp(item, "call") == 0)
            calls = calls_of_name(value);
        else if (strcmp(item, "n") == 0)
            n = strtoll(value, NULL, 10);
        else if (strcmp(item, "action") == 0)
            action = action_of_name(value);
        else if (strcmp(item, "errno") == 0)
            error_number = errno_of_name(value);
        else if (strcmp(item, "path") == 0)
            snprintf(path, sizeof path, "%s", value);
        else if (strcmp(item, "sticky") == 0)
            sticky = strcmp(value, "1") == 0;
        else
            refuse(item);
    }
    arm(calls, n, action, error_number);
    faults_path(path);
    armed.sticky = sticky;
}

__attribute__((destructor)) static void write_count(void) {
    if (!count_file[0])
        return;
    FILE *f = fopen(count_file, "w");
    if (!f)
        return;
    fprintf(f, "%lld\n", (long long)faults_count());
    fclose(f);
}
