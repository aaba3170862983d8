/* doctor.c - the operation doctor: does this machine, user and project provide what stet needs? */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "operation/op.h"
#include "operation/text.h"
#include "operation/version.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/proc.h"

#define YEAR_2024_MS  1704067200000LL
#define YEAR_2100_MS  4102444800000LL
#define LOW_WATCHES   8192
#define LOW_INSTANCES 64
#define LOW_FILES     256
#define LOW_BYTES     (256LL << 20)
#define NO_BYTES      (8LL << 20)

typedef enum finding { FINE, DOUBTFUL, BAD } finding;

static void add(stet_value *checks, const char *name, finding f, const char *hint, const char *format, ...)
    STET_PRINTF(5, 6);
static void add(stet_value *checks, const char *name, finding f, const char *hint, const char *format, ...) {
    static const char *const words[] = {[FINE] = "ok", [DOUBTFUL] = "warn", [BAD] = "fail"};
    char detail[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    stet_value text, row = stet_value_object();
    if (stet_value_string_checked(detail, strlen(detail), &text, NULL) != STET_OK)
        text = stet_value_string("(not valid UTF-8)");
    stet_value_put(&row, "name", stet_value_string(name));
    stet_value_put(&row, "status", stet_value_string(words[f]));
    stet_value_put(&row, "detail", text);
    if (f != FINE && hint && *hint)
        stet_value_put(&row, "hint", stet_value_string(hint));
    stet_value_push(checks, row);
}

static void add_error(stet_value *checks, const char *name, finding f, stet_error *why) {
    add(checks, name, f, why->hint, "%s", why->message);
    stet_error_clear(why);
}

static void check_libraries(stet_value *checks) {
    stet_value libraries = stet_ops_libraries();
    stet_buf text = STET_BUF(4096);
    stet_buf_printf(&text, "stet %s", stet_version());
    for (size_t i = 0; i < stet_value_count(libraries); i++) {
        stet_value version = stet_value_at(libraries, i);
        stet_buf_printf(&text, ", %s %s", stet_value_key_at(libraries, i, NULL), stet_value_as_string(&version, NULL));
    }
    add(checks, "versions", FINE, NULL, "%s", stet_buf_cstr(&text));
    stet_buf_release(&text);
    stet_value_release(libraries);
}

/* The directory itself, or the nearest one above it that exists. Caller frees. */
static char *nearest(const char *path) {
    char *at = stet_strdup(path);
    while (!stet_file_exists(at) && strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
        char *up = stet_file_dirname(at);
        stet_free(at);
        at = up;
    }
    return at;
}

static void check_space(stet_value *checks, const char *name, const char *dir) {
    struct statvfs fs;
    if (statvfs(dir, &fs) != 0) {
        add(checks, name, DOUBTFUL, "", "%s: free space is not known: %s", dir, strerror(errno));
        return;
    }
    long long bytes = (long long)fs.f_bavail * (long long)fs.f_frsize;
    finding f = bytes < NO_BYTES ? BAD : bytes < LOW_BYTES ? DOUBTFUL : FINE;
    add(checks, name, f, "make room on this file system", "%lld MiB free", bytes >> 20);
}

static void check_home(stet_value *checks, char **home) {
    stet_error why = STET_ERROR_INIT;
    if (stet_home_dir(home, &why) != STET_OK) {
        *home = NULL;
        add_error(checks, "home", BAD, &why);
        return;
    }
    char *dir = nearest(*home);
    bool there = strcmp(dir, *home) == 0;
    if (access(dir, W_OK | X_OK) != 0)
        add(checks, "home", BAD, "make it writable, or set STET_HOME to another directory", "%s: %s", dir,
            strerror(errno));
    else
        add(checks, "home", FINE, NULL, "%s%s", *home, there ? "" : " (not there yet, can be made)");
    stet_free(dir);
}

static void check_file_system(stet_value *checks, const char *local) {
    stet_error why = STET_ERROR_INIT;
    bool network;
    const char *type = "";
    if (stet_file_is_network(local, &network, &type, &why) != STET_OK)
        add_error(checks, "file-system", DOUBTFUL, &why);
    else if (network)
        add(checks, "file-system", BAD, "set local = \"PATH\" in .stet/config.toml to a directory on a local disk",
            "%s lies on a network file system (%s): databases can't be kept there", local, type);
    else
        add(checks, "file-system", FINE, NULL, "local%s%s", *type ? ": " : "", type);
}

static void check_project(stet_op_ctx *ctx, stet_value *checks, char **local) {
    stet_error why = STET_ERROR_INIT;
    stet_project *p;
    stet_status status = ctx->project(ctx, &p, &why);
    *local = NULL;
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&why);
        add(checks, "project", FINE, NULL, "none here; stet init makes one");
        return;
    }
    if (status != STET_OK) {
        add_error(checks, "project", BAD, &why);
        return;
    }
    char *wanted = stet_project_path(p, "local"), *dir = nearest(wanted);
    if (access(dir, W_OK | X_OK) != 0)
        add(checks, "project", BAD, "make it writable for this user", "%s: %s", dir, strerror(errno));
    else
        add(checks, "project", FINE, NULL, "%s", stet_project_root(p));
    check_file_system(checks, dir);
    check_space(checks, "space", dir);
    stet_free(wanted);
    *local = dir;
}

/* Opens a file twice: the second lock must be refused while the first is held. The file is removed again. */
static void check_locks(stet_value *checks, const char *dir) {
    if (!dir || access(dir, W_OK | X_OK) != 0) {
        add(checks, "locks", FINE, NULL, "not tried: there is no directory to write in yet");
        return;
    }
    stet_error why = STET_ERROR_INIT;
    char *path = stet_file_temp_name(dir, "doctor");
    stet_lock *one = NULL, *two = NULL;
    stet_status status = stet_lock_open(path, STET_LOCK_PLAIN, &one, &why);
    if (status == STET_OK)
        status = stet_lock_open(path, STET_LOCK_PLAIN, &two, &why);
    if (status == STET_OK)
        status = stet_lock_take(one, STET_LOCK_EXCLUSIVE, 0, &why);
    if (status != STET_OK) {
        add_error(checks, "locks", BAD, &why);
    } else if (stet_lock_take(two, STET_LOCK_EXCLUSIVE, 0, NULL) == STET_BUSY) {
        add(checks, "locks", FINE, NULL, "a held lock is refused to others");
    } else {
        add(checks, "locks", BAD, "set local = \"PATH\" in .stet/config.toml to a directory on a local disk",
            "two holders got the same lock in %s", dir);
    }
    stet_lock_close(two);
    stet_lock_close(one);
    if (stet_file_remove(path, &why) != STET_OK)
        stet_error_clear(&why); /* its name has pid and time, so that a sweep removes it */
    stet_free(path);
}

static bool read_number(const char *path, long long *out) {
    stet_buf text = STET_BUF(64);
    bool got = stet_file_read(path, 0, &text, NULL) == STET_OK && text.len > 0;
    if (got)
        *out = strtoll(stet_buf_cstr(&text), NULL, 10);
    stet_buf_release(&text);
    return got;
}

static void check_inotify(stet_value *checks) {
    long long watches, instances;
    if (!read_number("/proc/sys/fs/inotify/max_user_watches", &watches) ||
        !read_number("/proc/sys/fs/inotify/max_user_instances", &instances)) {
        add(checks, "inotify", DOUBTFUL, "files are scanned instead of watched", "its limits can't be read");
        return;
    }
    bool low = watches < LOW_WATCHES || instances < LOW_INSTANCES;
    add(checks, "inotify", low ? DOUBTFUL : FINE,
        "raise them: sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512",
        "%lld watches, %lld instances", watches, instances);
}

static void check_limits(stet_value *checks) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        add(checks, "open-files", DOUBTFUL, "", "the limit can't be read: %s", strerror(errno));
    else
        add(checks, "open-files", files.rlim_cur < LOW_FILES ? DOUBTFUL : FINE, "raise it: ulimit -n 1024",
            "%llu at a time", (unsigned long long)files.rlim_cur);
}

static void plugins_in(stet_buf *found, const char *dir) {
    stet_names names = {0};
    if (stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++) {
            size_t n = strlen(names.at[i]);
            if (n > 3 && strcmp(names.at[i] + n - 3, ".so") == 0)
                stet_buf_printf(found, "%s%.*s", found->len ? ", " : "", (int)(n - 3), names.at[i]);
        }
    stet_names_release(&names);
}

/* Beside the program as built, beside it as installed, and in the configured directory: the first that has a
 * plug-in. */
static void check_plugins(stet_value *checks) {
    stet_buf found = STET_BUF(4096);
    char *exe = NULL;
    if (stet_file_realpath("/proc/self/exe", &exe, NULL) == STET_OK) {
        char *bin = stet_file_dirname(exe), *up = stet_file_dirname(bin);
        char *built = stet_file_join(bin, "lib/stet"), *installed = stet_file_join(up, "lib/stet");
        plugins_in(&found, built);
        if (!found.len)
            plugins_in(&found, installed);
        stet_free(built);
        stet_free(installed);
        stet_free(up);
        stet_free(bin);
        stet_free(exe);
    }
    if (!found.len)
        plugins_in(&found, STET_PREFIX "/lib/stet");
    add(checks, "plug-ins", FINE, NULL, "%s", found.len ? stet_buf_cstr(&found) : "none");
    stet_buf_release(&found);
}

static void check_time(stet_value *checks, const char *dir) {
    int64_t now = stet_clock_ms();
    char text[STET_TIME_TEXT];
    stet_time_print(now, text);
    struct stat st;
    if (now < YEAR_2024_MS || now > YEAR_2100_MS)
        add(checks, "clock", BAD, "set the clock of this machine", "it says %s", text);
    else if (dir && stat(dir, &st) == 0 && (int64_t)st.st_mtime * 1000 > now + 3600000)
        add(checks, "clock", DOUBTFUL, "set the clock: files from the future are hashed again and again",
            "%s was changed after now (%s)", dir, text);
    else
        add(checks, "clock", FINE, NULL, "%s", text);
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    (void)err;
    stet_value checks = stet_value_array();
    char *home, *local;
    check_libraries(&checks);
    check_home(&checks, &home);
    check_project(ctx, &checks, &local);
    check_locks(&checks, local ? local : home && stet_file_exists(home) ? home : NULL);
    check_inotify(&checks);
    check_limits(&checks);
    check_plugins(&checks);
    check_time(&checks, local);
    stet_free(home);
    stet_free(local);
    bool ok = true;
    for (size_t i = 0; i < stet_value_count(checks); i++) {
        stet_value status = stet_value_get(stet_value_at(checks, i), "status");
        ok = ok && strcmp(stet_value_as_string(&status, NULL), "fail") != 0;
    }
    *result = stet_value_object();
    stet_value_put(result, "ok", stet_value_bool(ok));
    stet_value_put(result, "checks", checks);
    return STET_OK;
}

static stet_status verdict(stet_value result) {
    return stet_value_as_bool(stet_value_get(result, "ok")) ? STET_OK : STET_FAILED;
}

static void render(stet_render *r, stet_value result) {
    stet_value checks = stet_value_get(result, "checks");
    for (size_t i = 0; i < stet_value_count(checks); i++) {
        stet_value row = stet_value_at(checks, i), status = stet_value_get(row, "status"),
                   name = stet_value_get(row, "name"), detail = stet_value_get(row, "detail"),
                   hint = stet_value_get(row, "hint");
        size_t len;
        const char *word = stet_value_as_string(&status, &len);
        stet_text_styled(r, word[0] == 'o' ? STET_STYLE_GOOD : word[0] == 'w' ? STET_STYLE_WARN : STET_STYLE_BAD, word);
        stet_text_pad(r->out, len, 6);
        const char *title = stet_value_as_string(&name, &len);
        stet_buf_str(r->out, title);
        stet_text_pad(r->out, len, 13);
        const char *text = stet_value_as_string(&detail, &len);
        stet_text_plain(r, text, len);
        stet_buf_char(r->out, '\n');
        if (stet_value_type(hint) == STET_TYPE_STRING) {
            text = stet_value_as_string(&hint, &len);
            stet_buf_str(r->out, "      -> ");
            stet_text_plain(r, text, len);
            stet_buf_char(r->out, '\n');
        }
    }
}

static const stet_example examples[] = {{"doctor", "look at everything"}, {0}};

const stet_op stet_ops_doctor[] = {
    {.name = "doctor",
     .summary = "Look whether this machine and project offer what stet needs",
     .description =
         "Versions, the home directory, the project and its file system, locks, limits, plug-ins, the clock: each "
         "with ok, warn or fail and the way out. Exit status 1 if something fails. To try locks, a file is made "
         "and removed again.",
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"ok\",\"checks\"],\"additionalProperties\":false,\"properties\":{\"ok\":{"
         "\"type\":\"boolean\"},\"checks\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
         "\"status\",\"detail\"],\"additionalProperties\":false,\"properties\":{\"name\":{\"type\":\"string\"},"
         "\"status\":{"
         "\"enum\":[\"ok\",\"warn\",\"fail\"]},\"detail\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"}}}}}}",
     .examples = examples,
     .flags = STET_OP_READ_ONLY | STET_OP_IDEMPOTENT | STET_OP_NO_PROJECT | STET_OP_COMMON,
     .run = run,
     .render = render,
     .verdict = verdict},
    {0},
};
