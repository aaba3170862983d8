/* log.c - this machine's log file.
 *
 *   L1. Everything read so far is a prefix of the file: `tail`, the last table before `offset`, is still there. If it
 *       is not, the log was started again, and is read from its beginning.
 *   L2. An append is one write that begins with a newline, so that a torn line before it ends there. A write that fails
 *       is cut back.
 */

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "persist/internal.h"

void stet_plog_release(stet_plog *l) {
    stet_ptexts_drop(l->texts);
    stet_vec_release(&l->entries);
    stet_free(l->tail);
    memset(l, 0, sizeof *l);
}

static bool tail_stands(const stet_plog *l, int fd, int64_t size) {
    if (!l->offset)
        return true;
    if (size < l->offset)
        return false;
    char *bytes = stet_alloc(l->tail_len + 1);
    ssize_t n = stet_sys_pread(fd, bytes, l->tail_len, (off_t)(l->offset - (int64_t)l->tail_len));
    bool same = n == (ssize_t)l->tail_len && !memcmp(bytes, l->tail, l->tail_len);
    stet_free(bytes);
    return same;
}

static void set_tail(stet_plog *l, const char *bytes, size_t len) {
    const size_t max = 4096;
    if (len > max) {
        bytes += len - max;
        len = max;
    }
    l->tail = stet_realloc(l->tail, len + 1);
    memcpy(l->tail, bytes, len);
    l->tail_len = len;
    l->ends_in_newline = len && bytes[len - 1] == '\n';
}

void stet_plog_passed(stet_plog *l, const char *text, size_t len, int64_t from) {
    const size_t most = sizeof l->pieces / sizeof *l->pieces;
    set_tail(l, text, len);
    l->offset = from + (int64_t)len;
    if (l->piece_count < most) {
        l->pieces[l->piece_count].text = text;
        l->pieces[l->piece_count].len = len;
        l->pieces[l->piece_count++].from = from;
    }
}

/* Reads from `from` to the end and adds the entries. A table that is incomplete (an append is in progress, or was torn)
 * is not passed over: it is read again together with what follows. */
static stet_status read_on(stet_persist *p, int fd, int64_t from, int64_t size, stet_error *err) {
    stet_plog *l = &p->log;
    if (from == 0 && stet_plog_recall(p, fd, size)) {
        from = l->offset;
        if (from == size)
            return STET_OK;
    }
    size_t len = (size_t)(size - from), got;
    char *text = stet_alloc(len + 1);
    if (lseek(fd, (off_t)from, SEEK_SET) < 0) {
        stet_free(text);
        return stet_fail_errno(err, errno, "%s: cannot seek", p->log_path);
    }
    stet_status status = stet_file_read_all(fd, p->log_path, text, len, &got, err);
    if (status != STET_OK) {
        stet_free(text);
        return status;
    }
    text[got] = '\0';
    if (!l->texts)
        l->texts = stet_ptexts_new();
    *stet_vec_add(&l->texts->blocks) = text;
    stet_plog_parse(text, got, l->texts, &l->entries, &l->parsed);
    size_t end = got;
    if (l->parsed.last_len && !l->parsed.last_good) {
        end = l->parsed.last_at;
        if (l->parsed.bad)
            l->parsed.bad--; /* it will be counted again */
    }
    if (end)
        stet_plog_passed(l, text, end, from);
    if (got)
        l->ends_in_newline = text[got - 1] == '\n';
    stet_plog_keep_index(p);
    return STET_OK;
}

static int64_t mtime_ns(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Could the file have changed without looking different? Modification times are only as fine as the kernel's clock
 * tick, or a second. */
static bool is_racy(const struct stat *st) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - mtime_ns(st);
    return age < (st->st_mtim.tv_nsec ? 50000000 : 2100000000);
}

/* The version counts as unknown only if nothing in the file is of the known version: a header has no hash, and a
 * flipped bit in it must not lock the log for ever. */
static void note_version(stet_plog *l) {
    if (l->entries.len)
        l->parsed.unknown_version = false;
}

static stet_status take_log_lock(stet_persist *p, stet_lock_mode mode, stet_error *err) {
    if (!p->log_lock) {
        char *path = stet_ppath(p->locks_dir, "entry_log.lock");
        stet_status status = stet_lock_open(path, STET_LOCK_SQLITE, &p->log_lock, err);
        stet_free(path);
        if (status != STET_OK)
            return status;
    }
    return stet_lock_take(p->log_lock, mode, (int)p->config.lock_timeout_ms, err);
}

stet_status stet_plog_load(stet_persist *p, bool may_lock, bool *changed, bool *anew, stet_error *err) {
    stet_plog *l = &p->log;
    struct stat st;
    *changed = *anew = false;
    if (stet_sys_lstat(p->log_path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return stet_fail_errno(err, errno, "%s: cannot stat", p->log_path);
        if (l->stamp.there || !l->stamp.known) {
            *changed = *anew = l->entries.len > 0;
            stet_plog_release(l);
            l->stamp.known = true;
        }
        return STET_OK;
    }
    if (!S_ISREG(st.st_mode))
        return stet_fail(err, STET_DENIED, "%s is not a regular file", p->log_path);
    if (l->stamp.there && !l->stamp.racy && l->stamp.ino == st.st_ino && l->stamp.size == st.st_size &&
        l->stamp.mtime_ns == mtime_ns(&st))
        return STET_OK;

    /* It looks unchanged, but its time is too recent to be sure. Then the last bytes decide, which this process has
     * mostly just appended. */
    if (l->stamp.there && l->stamp.ino == st.st_ino && l->stamp.size == st.st_size &&
        l->stamp.mtime_ns == mtime_ns(&st) && p->log_fd >= 0 && p->log_fd_ino == st.st_ino &&
        tail_stands(l, p->log_fd, st.st_size)) {
        l->stamp.racy = is_racy(&st);
        return STET_OK;
    }

    /* A reader without write permission can't create the lock file; the hashes protect it. */
    bool locked = false;
    stet_status status = STET_OK;
    if (may_lock && !p->read_only[0]) {
        status = take_log_lock(p, STET_LOCK_SHARED, err);
        if (status != STET_OK)
            return status;
        locked = true;
    }
    int fd = stet_sys_open(p->log_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        status = stet_fail_errno(err, errno, "%s: cannot open", p->log_path);
    else if (stet_sys_fstat(fd, &st) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot stat", p->log_path);
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > STET_PERSIST_FILE_MAX)
        status = stet_fail(err, STET_LIMIT, "%s is not a regular file of at most %u bytes", p->log_path,
                           STET_PERSIST_FILE_MAX);
    bool racy = status == STET_OK && is_racy(&st); /* before reading: what is added afterwards may be missed */
    if (status == STET_OK && !tail_stands(l, fd, st.st_size)) {
        *anew = true;
        stet_plog_release(l);
    }
    size_t before = l->entries.len;
    /* The time may have changed although nothing is new. A bad last table is read again only if the file has grown. */
    if (status == STET_OK && (st.st_size > l->offset) && (!l->stamp.there || l->stamp.size != st.st_size || *anew))
        status = read_on(p, fd, l->offset, st.st_size, err);
    else if (status == STET_OK && st.st_size == 0)
        l->ends_in_newline = true;
    if (fd >= 0)
        stet_sys_close(fd);
    if (locked)
        stet_lock_drop(p->log_lock);
    if (status != STET_OK)
        return status;
    note_version(l);
    *changed = *anew || l->entries.len != before;
    l->stamp = (stet_pstamp){
        .known = true, .there = true, .racy = racy, .ino = st.st_ino, .size = st.st_size, .mtime_ns = mtime_ns(&st)};
    return STET_OK;
}

/* Opens the log for appending. It stays open as long as the path leads to the same file. */
static stet_status open_log(stet_persist *p, stet_error *err) {
    if (p->log_fd >= 0 && p->log.stamp.there && p->log_fd_ino == p->log.stamp.ino)
        return STET_OK;
    if (p->log_fd >= 0)
        stet_sys_close(p->log_fd);
    p->log_fd = stet_sys_open(p->log_path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY, 0666);
    if (p->log_fd < 0 && errno == ENOENT) {
        stet_status status = stet_persist_make_layout(p, err);
        if (status != STET_OK)
            return status;
        p->log_fd = stet_sys_open(p->log_path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY, 0666);
    }
    struct stat st;
    if (p->log_fd < 0 || stet_sys_fstat(p->log_fd, &st) != 0)
        return stet_fail_errno(err, errno, "%s: cannot open for appending", p->log_path);
    p->log_fd_ino = st.st_ino;
    return STET_OK;
}

stet_status stet_plog_append(stet_persist *p, const stet_pentry *e, size_t count, stet_error *err) {
    stet_plog *l = &p->log;
    if (l->parsed.unknown_version) {
        stet_fail(err, STET_UNSUPPORTED, "%s is of a version that this program does not write", p->log_path);
        stet_hint(err, "use the newer program that wrote it");
        return STET_UNSUPPORTED;
    }
    stet_status status = open_log(p, err);
    if (status != STET_OK)
        return status;
    int64_t size = l->stamp.there ? l->stamp.size : 0;
    stet_buf text = STET_BUF(STET_PERSIST_FILE_MAX);
    if (!size)
        stet_buf_str(&text, stet_plog_header);
    else if (!l->ends_in_newline)
        stet_buf_char(&text, '\n');
    for (size_t i = 0; i < count; i++) {
        stet_buf_char(&text, '\n');
        stet_buf_add(&text, e[i].text, e[i].text_len);
    }
    if (text.overflow || size + (int64_t)text.len > (int64_t)STET_PERSIST_FILE_MAX)
        status = stet_fail(err, STET_LIMIT, "%s would grow beyond %u bytes", p->log_path, STET_PERSIST_FILE_MAX);
    else
        status = stet_file_write_all(p->log_fd, p->log_path, text.data, text.len, err);
    if (status != STET_OK) {
        /* Everything or nothing. If even this fails, readers see a torn table and skip it. */
        if (ftruncate(p->log_fd, (off_t)size) != 0)
            l->stamp.known = l->stamp.there = false;
        stet_buf_release(&text);
        return status;
    }
    /* The appended bytes are known, and need not be read back unless unread bytes precede them. */
    struct stat st;
    if (l->offset == size && stet_sys_fstat(p->log_fd, &st) == 0 && st.st_size == size + (int64_t)text.len) {
        if (!l->texts)
            l->texts = stet_ptexts_new();
        for (size_t i = 0; i < count; i++) {
            stet_pentry copy = e[i];
            copy.text = stet_arena_strndup(&l->texts->arena, e[i].text, e[i].text_len);
            copy.module = stet_arena_strndup(&l->texts->arena, e[i].module, STET_PERSIST_HASH);
            copy.block = stet_arena_strndup(&l->texts->arena, e[i].block, e[i].block_len);
            copy.in_log = true;
            *stet_vec_add(&l->entries) = copy;
        }
        set_tail(l, text.data, text.len);
        l->offset = st.st_size;
        l->stamp = (stet_pstamp){.known = true,
                                 .there = true,
                                 .racy = true,
                                 .ino = st.st_ino,
                                 .size = st.st_size,
                                 .mtime_ns = mtime_ns(&st)};
    } else
        l->stamp.there = false; /* read the file again */
    stet_buf_release(&text);
    return STET_OK;
}

stet_status stet_plog_cut(stet_persist *p, stet_error *err) {
    stet_status status = open_log(p, err);
    if (status != STET_OK)
        return status;
    const size_t header = strlen(stet_plog_header);
    char *begin = stet_alloc(header);
    bool keep =
        stet_sys_pread(p->log_fd, begin, header, 0) == (ssize_t)header && !memcmp(begin, stet_plog_header, header);
    stet_free(begin);
    if (stet_sys_ftruncate(p->log_fd, keep ? (off_t)header : 0) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot truncate", p->log_path);
    else if (!keep)
        status = stet_file_write_all(p->log_fd, p->log_path, stet_plog_header, header, err);
    stet_plog_release(&p->log);
    return status;
}

stet_status stet_plog_lock(stet_persist *p, stet_error *err) {
    return take_log_lock(p, STET_LOCK_EXCLUSIVE, err);
}

void stet_plog_unlock(stet_persist *p) {
    stet_lock_drop(p->log_lock);
}
