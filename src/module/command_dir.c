/* command_dir.c - a directory that a command produced, stored as one object and restored from it.
 *
 * The object is "stet-directory 1\n", then for each member, in order of paths, one line of canonical JSON and its
 * bytes:
 *
 *     {"kind":"d"|"f"|"l"|"x","path":PATH,"size":N}\n BYTES
 *
 * The kinds are directory, file, symbolic link (its bytes are its target) and executable file. Paths are escaped as in
 * ids.
 *
 * A directory is restored beside its place and moved there whole. What comes from disk is not trusted: paths that lead
 * out of the directory are refused, and links are made last, so that nothing is written through one.
 */

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/vec.h"
#include "files/path.h"
#include "module/command.h"
#include "os/file.h"

#define MAGIC    "stet-directory 1\n"
#define MAX_LINE 65536
#define MAX_LINK 4096

static void put_head(stet_persist_put *w, const char *kind, const char *path, uint64_t size) {
    stet_value v = stet_value_object();
    stet_buf escaped = STET_BUF(0);
    size_t len;
    stet_path_escape(path, &escaped);
    stet_value_put(&v, "kind", stet_value_string(kind));
    stet_value_put(&v, "path", stet_value_string_n(escaped.data, escaped.len));
    stet_value_put(&v, "size", stet_value_int((int64_t)size));
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_persist_put_bytes(w, text, len);
    stet_persist_put_bytes(w, "\n", 1);
    stet_free(text);
    stet_buf_release(&escaped);
    stet_value_release(v);
}

/* A file that changes meanwhile would make the rest unreadable: its size is kept to, whatever there is. */
static stet_status put_file(stet_persist_put *w, const char *full, uint64_t size, stet_error *err) {
    static const size_t block = 256 * 1024;
    int fd = stet_sys_open(full, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot read", full);
    char *bytes = stet_alloc(block);
    stet_status status = STET_OK;
    while (size > 0 && status == STET_OK) {
        size_t want = size < block ? (size_t)size : block, got;
        status = stet_file_read_all(fd, full, bytes, want, &got, err);
        if (status == STET_OK && got < want)
            status = stet_fail(err, STET_CONFLICT, "%s: it became shorter while it was read", full);
        if (status == STET_OK)
            stet_persist_put_bytes(w, bytes, want);
        size -= want;
    }
    stet_free(bytes);
    stet_sys_close(fd);
    return status;
}

static stet_status put_member(stet_persist_put *w, const char *top, const char *path, bool *directory,
                              stet_error *err) {
    struct stat st;
    char *full = stet_file_join(top, path), target[MAX_LINK];
    stet_status status = STET_OK;
    *directory = false;
    if (stet_sys_lstat(full, &st) != 0) {
        status = stet_fail_errno(err, errno, "%s", full);
    } else if (S_ISDIR(st.st_mode)) {
        put_head(w, "d", path, 0);
        *directory = true;
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(full, target, sizeof target);
        if (n < 0 || n == (ssize_t)sizeof target)
            status = stet_fail(err, STET_IO, "%s: cannot read the link", full);
        if (status == STET_OK) {
            put_head(w, "l", path, (uint64_t)n);
            stet_persist_put_bytes(w, target, (size_t)n);
        }
    } else if (S_ISREG(st.st_mode)) {
        put_head(w, st.st_mode & 0111 ? "x" : "f", path, (uint64_t)st.st_size);
        status = put_file(w, full, (uint64_t)st.st_size, err);
    }
    stet_free(full);
    return status;
}

stet_status command_dir_put(stet_persist_put *w, const char *top, stet_error *err) {
    STET_VEC(char *) todo = {0};
    stet_status status = STET_OK;
    stet_persist_put_bytes(w, MAGIC, strlen(MAGIC));
    *stet_vec_add(&todo) = stet_strdup("");
    while (todo.len > 0 && status == STET_OK) {
        char *below = todo.at[--todo.len], *dir = *below ? stet_file_join(top, below) : stet_strdup(top);
        stet_names names = {0};
        status = stet_file_list(dir, &names, err);
        for (size_t i = 0; i < names.len && status == STET_OK; i++) {
            bool directory;
            char *path = *below ? stet_file_join(below, names.at[i]) : stet_strdup(names.at[i]),
                 *full = stet_file_join(dir, names.at[i]);
            /* As where a directory is looked at: these do not count. */
            if (!stet_path_is_uncounted(full))
                status = put_member(w, top, path, &directory, err);
            else
                directory = false;
            if (status == STET_OK && directory)
                *stet_vec_add(&todo) = stet_strdup(path);
            stet_free(full);
            stet_free(path);
        }
        stet_names_release(&names);
        stet_free(dir);
        stet_free(below);
    }
    for (size_t i = 0; i < todo.len; i++)
        stet_free(todo.at[i]);
    stet_vec_release(&todo);
    return status;
}

typedef struct pending_link {
    char *path, *target;
} pending_link;

typedef struct unpacker {
    const char *top;
    stet_buf line; /* being gathered: the first one, or a member's */
    bool begun;
    char kind;       /* of the member whose bytes come, 0: a line comes */
    uint64_t rest;   /* of its bytes */
    int fd;          /* of a file */
    char *path;      /* where it goes */
    stet_buf target; /* of a link */
    STET_VEC(pending_link) links;
} unpacker;

static stet_status damaged(stet_error *err) {
    return stet_fail(err, STET_CORRUPT, "a stored directory is damaged");
}

static bool is_name(const char *part, size_t len, const char *name) {
    return len == strlen(name) && strncasecmp(part, name, len) == 0; /* for file systems that do not tell case apart */
}

/* A path that stays below the top, and that command_dir_put could have stored: `.git` and `.stet` say what other
 * programs do. */
static bool safe(const char *path) {
    if (!*path || *path == '/')
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || is_name(p, n, ".") || is_name(p, n, "..") || is_name(p, n, ".git") || is_name(p, n, ".stet"))
            return false;
        p += n;
        if (*p && !*++p)
            return false;
    }
    return true;
}

static stet_status member_done(unpacker *u, stet_error *err) {
    stet_status status = STET_OK;
    if (u->kind == 'l') {
        *stet_vec_add(&u->links) = (pending_link){u->path, stet_strdup(stet_buf_cstr(&u->target))};
        u->path = NULL;
    } else if (u->fd >= 0 && stet_sys_close(u->fd) != 0) {
        status = stet_fail_errno(err, errno, "%s: cannot close", u->path);
    }
    u->fd = -1;
    u->kind = 0;
    stet_free(u->path);
    u->path = NULL;
    return status;
}

static stet_status begin_member(unpacker *u, stet_error *err) {
    stet_value v, kind, path, size;
    if (stet_json_parse(u->line.data, u->line.len, &v, NULL) != STET_OK)
        return damaged(err);
    kind = stet_value_get(v, "kind");
    path = stet_value_get(v, "path");
    size = stet_value_get(v, "size");
    stet_buf plain = STET_BUF(0);
    size_t len;
    const char *text = stet_value_as_string(&path, &len);
    const char *letter = stet_value_type(kind) == STET_TYPE_STRING ? stet_value_as_string(&kind, NULL) : "";
    bool fine = text && stet_value_type(size) == STET_TYPE_INT && stet_value_as_int(size) >= 0 && strlen(letter) == 1 &&
                strchr("dflx", letter[0]) && stet_path_unescape(text, len, &plain) && safe(stet_buf_cstr(&plain)) &&
                (letter[0] != 'd' || stet_value_as_int(size) == 0) &&
                (letter[0] != 'l' || stet_value_as_int(size) < MAX_LINK);
    stet_status status = fine ? STET_OK : damaged(err);
    if (fine) {
        u->kind = letter[0];
        u->rest = (uint64_t)stet_value_as_int(size);
        u->path = stet_file_join(u->top, plain.data);
        stet_buf_clear(&u->target);
        if (u->kind == 'd' && stet_sys_mkdir(u->path, 0777) != 0)
            status = stet_fail_errno(err, errno, "%s: cannot create", u->path);
        if (u->kind == 'f' || u->kind == 'x') {
            u->fd = stet_sys_open(u->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, u->kind == 'x' ? 0777 : 0666);
            if (u->fd < 0)
                status = stet_fail_errno(err, errno, "%s: cannot create", u->path);
        }
    }
    stet_buf_release(&plain);
    stet_value_release(v);
    stet_buf_clear(&u->line);
    return status == STET_OK && u->rest == 0 ? member_done(u, err) : status;
}

static stet_status unpack(void *ctx, const void *bytes, size_t len, stet_error *err) {
    unpacker *u = ctx;
    const char *at = bytes, *end = at + len;
    stet_status status = STET_OK;
    while (at < end && status == STET_OK) {
        if (u->kind) {
            size_t n = u->rest < (uint64_t)(end - at) ? (size_t)u->rest : (size_t)(end - at);
            if (u->kind == 'l')
                stet_buf_add(&u->target, at, n);
            else
                status = stet_file_write_all(u->fd, u->path, at, n, err);
            at += n;
            u->rest -= n;
            if (status == STET_OK && u->rest == 0)
                status = member_done(u, err);
            continue;
        }
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline ? newline : end) - at);
        stet_buf_add(&u->line, at, n);
        at += n + (newline != NULL);
        if (u->line.overflow) {
            status = damaged(err);
        } else if (newline && !u->begun) {
            u->begun = u->line.len == strlen(MAGIC) - 1 && memcmp(u->line.data, MAGIC, u->line.len) == 0;
            stet_buf_clear(&u->line);
            status = u->begun ? STET_OK : damaged(err);
        } else if (newline) {
            status = begin_member(u, err);
        }
    }
    return status;
}

static stet_status make_links(unpacker *u, stet_error *err) {
    for (size_t i = 0; i < u->links.len; i++)
        if (stet_sys_symlink(u->links.at[i].target, u->links.at[i].path) != 0)
            return stet_fail_errno(err, errno, "%s: cannot make the link", u->links.at[i].path);
    return STET_OK;
}

/* A directory for temporary ones from which it can be moved to where it belongs. Caller frees. */
static char *waiting_dir(const char *temp_dir, const char *path) {
    char *parent = stet_file_dirname(path);
    struct stat here, there;
    bool near =
        stet_sys_stat(temp_dir, &here) == 0 && stet_sys_stat(parent, &there) == 0 && here.st_dev == there.st_dev;
    char *name = near ? stet_file_temp_name(temp_dir, "restore") : stet_file_temp_name(parent, ".stet-restore");
    stet_free(parent);
    return name;
}

stet_status command_dir_restore(stet_persist *p, const stet_persist_content *c, const char *temp_dir, const char *path,
                                stet_error *err) {
    char *temp = waiting_dir(temp_dir, path);
    unpacker u = {.top = temp, .fd = -1, .line = STET_BUF(MAX_LINE), .target = STET_BUF(MAX_LINK)};
    stet_status status = STET_OK;
    if (stet_sys_mkdir(temp, 0777) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot create", temp);
    if (status == STET_OK)
        status = stet_persist_read(p, c->id, c->size, unpack, &u, err);
    if (status == STET_OK && (u.kind || u.line.len > 0 || !u.begun))
        status = damaged(err);
    if (status == STET_OK)
        status = make_links(&u, err);
    if (status == STET_OK)
        status = stet_file_remove_tree(path, err);
    if (status == STET_OK && stet_sys_rename(temp, path) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot put it in place", path);
    if (u.fd >= 0)
        stet_sys_close(u.fd);
    if (status != STET_OK && stet_file_remove_tree(temp, NULL) != STET_OK) {
        /* stet gc sweeps it */
    }
    for (size_t i = 0; i < u.links.len; i++) {
        stet_free(u.links.at[i].path);
        stet_free(u.links.at[i].target);
    }
    stet_vec_release(&u.links);
    stet_buf_release(&u.line);
    stet_buf_release(&u.target);
    stet_free(u.path);
    stet_free(temp);
    return status;
}
