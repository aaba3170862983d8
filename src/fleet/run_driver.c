/* run_driver.c - who drives a run: the lock, what it says, and requests to its holder. */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "fleet/run_internal.h"
#include "os/file.h"
#include "os/proc.h"

#define OWNER_MAX    ((size_t)4096)
#define LOCK_WAIT_MS 200

static void host_name(char out[65]) {
    if (gethostname(out, 65) != 0)
        out[0] = 0;
    out[64] = 0;
}

stet_status stet_runfile_lock(stet_runfile *run, const char *dir, const char *actor, stet_error *err) {
    char *path = stet_file_join(dir, "driver.lock");
    stet_status st = stet_lock_open(path, STET_LOCK_PLAIN, &run->lock, err);
    if (st == STET_OK) {
        stet_error why = STET_ERROR_INIT;
        st = stet_lock_take(run->lock, STET_LOCK_EXCLUSIVE, LOCK_WAIT_MS, &why);
        if (st == STET_BUSY) {
            stet_value owner;
            stet_buf b = STET_BUF(1024);
            stet_runfile_driver(dir, &owner);
            stet_runfile_owner_text(owner, &b);
            st = stet_fail(err, STET_BUSY, "run %s is being driven by %s", run->id, stet_buf_cstr(&b));
            stet_hint(err, "wait for it, or ask it to stop: stet runs cancel %s", run->id);
            stet_detail(err, "owner", owner);
            stet_buf_release(&b);
            stet_error_clear(&why);
        } else
            stet_error_move(err, &why);
    }
    if (st == STET_OK) {
        char host[65];
        host_name(host);
        stet_value owner = stet_value_object();
        stet_value_put(&owner, "process", stet_proc_id_value(stet_proc_self()));
        stet_value_put(&owner, "host", stet_runfile_text(host));
        stet_value_put(&owner, "actor", stet_runfile_text(actor));
        stet_value_put(&owner, "since", stet_runfile_now());
        stet_buf b = STET_BUF(0);
        stet_json_write(&b, owner, STET_JSON_CANONICAL);
        stet_value_release(owner);
        /* One write over what the last owner wrote, with blanks behind it: whoever is killed here leaves a whole text. */
        struct stat sb;
        size_t was = stet_sys_lstat(path, &sb) == 0 && sb.st_size < (off_t)OWNER_MAX ? (size_t)sb.st_size : 0;
        while (b.len + 1 < was)
            stet_buf_char(&b, ' ');
        stet_buf_char(&b, '\n');
        int fd = stet_sys_open(path, O_WRONLY | O_NOFOLLOW, 0644);
        if (fd < 0)
            st = stet_fail_errno(err, errno, "%s", path);
        else {
            st = stet_file_write_all(fd, path, b.data, b.len, err);
            stet_sys_close(fd);
        }
        stet_buf_release(&b);
    }
    stet_free(path);
    return st;
}

stet_status stet_runfile_check_logs(const char *run_dir, stet_error *err) {
    char *logs = stet_file_join(run_dir, "logs");
    struct stat sb;
    stet_status st = STET_OK;
    if (stet_sys_lstat(logs, &sb) == 0 && !S_ISDIR(sb.st_mode)) {
        st = stet_fail(err, STET_CORRUPT, "%s is not a directory of this run", logs);
        stet_hint(err, "remove it, or put a directory in its place: links in a run are not followed");
    }
    stet_free(logs);
    return st;
}

stet_driver_state stet_runfile_driver(const char *run_dir, stet_value *owner) {
    char *path = stet_file_join(run_dir, "driver.lock");
    int fd = stet_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    stet_free(path);
    if (owner != NULL)
        *owner = stet_value_null();
    if (fd < 0)
        return STET_DRIVER_NONE;
    stet_value said = stet_value_null();
    char text[OWNER_MAX];
    size_t len = 0;
    if (stet_file_read_all(fd, "driver.lock", text, sizeof text, &len, NULL) == STET_OK)
        if (stet_json_read(text, len, NULL, &said, NULL) != STET_OK)
            said = stet_value_null();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    /* F_OFD_GETLK only asks, so that a reader never keeps a driver from taking the lock. */
    bool asked = stet_sys_fcntl_lock(fd, F_OFD_GETLK, &lock) == 0;
    stet_sys_close(fd);
    stet_driver_state state = STET_DRIVER_UNKNOWN;
    stet_proc_id id;
    if (asked && lock.l_type != F_UNLCK)
        state = STET_DRIVER_ALIVE;
    else if (asked && stet_proc_id_of_value(stet_value_get(said, "process"), &id)) {
        char host[65];
        host_name(host);
        stet_value named = stet_value_get(said, "host");
        const char *name = stet_value_as_string(&named, NULL);
        /* Another boot id under this host's name is this machine before its restart. */
        if (id.boot == stet_proc_self().boot || (name != NULL && strcmp(name, host) == 0))
            state = STET_DRIVER_GONE;
    }
    if (owner != NULL)
        *owner = said;
    else
        stet_value_release(said);
    return state;
}

void stet_runfile_owner_text(stet_value owner, stet_buf *out) {
    stet_proc_id id;
    stet_value host = stet_value_get(owner, "host"), since = stet_value_get(owner, "since");
    if (!stet_proc_id_of_value(stet_value_get(owner, "process"), &id)) {
        stet_buf_str(out, "somebody");
        return;
    }
    stet_buf_printf(out, "process %lld", (long long)id.pid);
    if (stet_value_type(host) == STET_TYPE_STRING)
        stet_buf_printf(out, " on %.64s", stet_value_as_string(&host, NULL));
    if (stet_value_type(since) == STET_TYPE_STRING)
        stet_buf_printf(out, " since %.32s", stet_value_as_string(&since, NULL));
}

stet_status stet_runfile_ask_cancel(const char *run_dir, const char *reason, stet_error *err) {
    stet_value ask = stet_value_object();
    stet_value_put(&ask, "at", stet_runfile_now());
    stet_value_put(&ask, "actor", stet_runfile_text(stet_runfile_user()));
    stet_value_put(&ask, "reason", stet_runfile_text(reason));
    stet_buf b = STET_BUF(0);
    stet_json_write(&b, ask, STET_JSON_PRETTY);
    char *path = stet_file_join(run_dir, "cancel.json");
    stet_status st = stet_file_replace(path, b.data, b.len, 0644, err);
    stet_free(path);
    stet_buf_release(&b);
    stet_value_release(ask);
    return st;
}
