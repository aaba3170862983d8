/* look.c - looks at one file: its hash, size and mode, with as little reading as is safe. */

#include "files/look.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "db/db.h"
#include "files/path.h"
#include "os/clock.h"
#include "os/file.h"
#include "project/project.h"

#define TICK_NS    10000000           /* file systems take their times from a clock that ticks every 1 to 10 ms */
#define WAIT_BYTES ((int64_t)1 << 20) /* larger files are worth waiting for the tick: then they are read once */
#define MAX_FILES  10000000           /* in a directory */
#define LINK_BYTES 4096

/* A text that is looked for while bytes are hashed. */
typedef struct search {
    const char *text;
    size_t len;
    bool found;
} search;

static int64_t ns(struct timespec t) {
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Not stet_clock_ns: it must tick as times of files do. */
int64_t stet_look_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return ns(t);
}

static bool recent(int64_t time, int64_t now) {
    return time >= now - TICK_NS;
}

static uint32_t mode_of(const struct stat *st) {
    return st->st_mode & 0111 ? STET_LOOK_EXECUTABLE : STET_LOOK_FILE;
}

/* Hashes what is left of the file, whose bytes pass through a buffer: what is searched for may lie across its borders,
 * so the end of what was read last stays before what is read next. */
static stet_status hash_rest(int fd, const char *path, bool small, search *q, stet_hash *hash, uint64_t *size,
                             stet_error *err) {
    static const size_t block = 256 * 1024;
    size_t keep = q && !q->found ? q->len - 1 : 0, kept = 0, room = small ? 8192 : block;
    char *bytes = stet_alloc(keep + room);
    stet_hasher *h = stet_hasher_begin();
    stet_status status = STET_OK;
    *size = 0;
    for (ssize_t n = 1; n > 0 && status == STET_OK;) {
        n = stet_sys_read(fd, bytes + kept, room);
        if (n < 0)
            status = stet_fail_errno(err, errno, "cannot read %s", path);
        if (n <= 0)
            break;
        stet_hasher_add(h, bytes + kept, (size_t)n);
        *size += (uint64_t)n;
        if (!q || q->found)
            continue;
        size_t have = kept + (size_t)n;
        q->found = memmem(bytes, have, q->text, q->len) != NULL;
        kept = q->found ? 0 : have < keep ? have : keep;
        memmove(bytes, bytes + have - kept, kept);
    }
    stet_free(bytes);
    *hash = stet_hasher_end(h);
    return status;
}

/* Of what may not be read: whatever happens to it, it is another one then. */
static stet_hash unreadable(const struct stat *st) {
    int64_t numbers[5] = {ns(st->st_mtim), ns(st->st_ctim), (int64_t)st->st_ino, (int64_t)st->st_size,
                          (int64_t)st->st_mode};
    return stet_hash_of(numbers, sizeof numbers);
}

static stet_look look_of(const struct stat *st, stet_hash hash, uint64_t size) {
    return (stet_look){.hash = hash,
                       .mtime = ns(st->st_mtim),
                       .ctime = ns(st->st_ctim),
                       .inode = st->st_ino,
                       .size = size,
                       .mode = mode_of(st)};
}

/* What is no file, and need not be waited for as a pipe would be, is not there. Nor is a database that this process has
 * open, by whatever name: as a file it must not be opened. */
static stet_status read_file(int root_fd, const char *path, search *q, stet_look *out, stet_error *err) {
    struct stat st = {0};
    *out = (stet_look){0};
    if (fstatat(root_fd, path, &st, 0) == 0 && stet_db_is_open(&st))
        return STET_OK;
    int fd = stet_sys_openat(root_fd, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0 && errno == EACCES && fstatat(root_fd, path, &st, 0) == 0) {
        if (S_ISREG(st.st_mode))
            *out = look_of(&st, unreadable(&st), (uint64_t)st.st_size);
        return STET_OK;
    }
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO))
        return STET_OK;
    if (fd < 0)
        return stet_fail_errno(err, errno, "cannot read %s", path);
    stet_status status = STET_OK;
    if (stet_sys_fstat(fd, &st) != 0)
        status = stet_fail_errno(err, errno, "cannot look at %s", path);
    stet_hash hash = {{0}};
    uint64_t size = 0;
    bool regular = status == STET_OK && S_ISREG(st.st_mode);
    if (regular)
        status = hash_rest(fd, path, st.st_size <= 8192, q, &hash, &size, err);
    /* What was opened may be another file than the one that was looked at first. */
    if (regular && status == STET_OK) {
        *out = look_of(&st, hash, size);
        out->flags = size == (uint64_t)st.st_size ? 0 : STET_LOOK_RACY;
    }
    stet_sys_close(fd);
    return status;
}

char *stet_look_target(int root_fd, const char *path) {
    char text[LINK_BYTES];
    ssize_t n = readlinkat(root_fd, path, text, sizeof text);
    return n < 0 ? NULL : stet_strndup(text, (size_t)n);
}

static uint64_t link_print(const char *text) {
    stet_hash h = stet_hash_of(text, strlen(text));
    uint64_t print;
    memcpy(&print, h.bytes, sizeof print);
    return print ? print : 1;
}

typedef struct member {
    char *path;     /* below the directory */
    char *link;     /* where it says it leads, if it is a link */
    bool empty;     /* that is a directory of the project with nothing in it: not the same as nothing at all */
    struct stat st; /* of what a link leads to, if that is a file */
} member;
typedef STET_VEC(member) members;

static void members_release(members *m) {
    for (size_t i = 0; i < m->len; i++) {
        stet_free(m->at[i].path);
        stet_free(m->at[i].link);
    }
    stet_vec_release(m);
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const member *)a)->path, ((const member *)b)->path);
}

static bool is_at(const char *path, const char *top) {
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

typedef struct walking {
    const char *dir, *root; /* root: links to directories in it are followed; NULL: none are */
    stet_names todo;        /* below dir */
    stet_names entered;     /* real paths of directories that links lead to */
    members *out;
    bool gone;   /* `dir` itself is */
    bool linked; /* a link leads out of it to another place in the project, or nowhere */
} walking;

/* Does a link lead to another place in the project? What it leads nowhere to may be made there. */
static bool leads_out(const walking *w, const char *at, char *real) {
    char top[PATH_MAX];
    if (!w->root || !realpath(w->dir, top))
        return false;
    if (!realpath(at, real)) {
        *real = 0;
        return true;
    }
    return is_at(real, w->root) && !is_at(real, top) && !is_at(top, real);
}

/* A directory of the project that is not counted already, as part of this one or through another link. `real`: where it
 * is. */
static bool enters(walking *w, const char *real) {
    size_t root_len = strlen(w->root);
    if (is_at(real + root_len, "/.stet") || is_at(real + root_len, "/.git") || stet_project_is_own(real))
        return false;
    for (size_t i = 0; i < w->entered.len; i++)
        if (is_at(real, w->entered.at[i]))
            return false;
    *stet_vec_add(&w->entered) = stet_strdup(real);
    return true;
}

static void meet_member(walking *w, char *path) {
    char *at = stet_file_join(w->dir, path);
    struct stat st, behind;
    char *link = NULL;
    bool there = stet_sys_lstat(at, &st) == 0; /* else it is gone meanwhile */
    if (there && S_ISLNK(st.st_mode)) {
        link = stet_look_target(AT_FDCWD, at);
        there = link != NULL;
        char real[PATH_MAX];
        bool out = there && leads_out(w, at, real);
        w->linked |= out;
        if (there && stet_sys_stat(at, &behind) == 0) {
            if (S_ISREG(behind.st_mode))
                st = behind;
            else if (S_ISDIR(behind.st_mode) && out && enters(w, real))
                *stet_vec_add(&w->todo) = stet_strdup(path);
        }
    }
    there = there && (link || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    if (there && S_ISDIR(st.st_mode))
        *stet_vec_add(&w->todo) = stet_strdup(path);
    if (there)
        *stet_vec_add(w->out) = (member){.path = path, .link = link, .st = st};
    else
        stet_free(path);
    stet_free(at);
}

/* The directory and everything below it. What goes away meanwhile is not there. */
static stet_status walk(const char *dir, const char *root, members *out, bool *gone, bool *linked, stet_error *err) {
    walking w = {.dir = dir, .root = root, .out = out};
    stet_status status = STET_OK;
    struct stat top;
    if (stet_sys_stat(dir, &top) == 0)
        *stet_vec_add(out) = (member){.path = stet_strdup(""), .st = top};
    *stet_vec_add(&w.todo) = stet_strdup("");
    while (w.todo.len > 0 && status == STET_OK) {
        char *below = w.todo.at[--w.todo.len], *full = *below ? stet_file_join(dir, below) : stet_strdup(dir);
        stet_names names = {0};
        stet_error inner = STET_ERROR_INIT;
        status = stet_file_list(full, &names, &inner);
        if (status == STET_NOT_FOUND || status == STET_DENIED) { /* the latter counts by what stat says of it */
            w.gone |= !*below && status == STET_NOT_FOUND;
            stet_error_clear(&inner);
            status = STET_OK;
        }
        stet_error_move(err, &inner);
        size_t before = out->len;
        for (size_t i = 0; i < names.len && status == STET_OK; i++) {
            char *at = stet_file_join(full, names.at[i]);
            if (!stet_path_is_uncounted(at))
                meet_member(&w, *below ? stet_file_join(below, names.at[i]) : stet_strdup(names.at[i]));
            stet_free(at);
            if (out->len > MAX_FILES)
                status = stet_fail(err, STET_LIMIT, "%s: more than %d files in it", dir, MAX_FILES);
        }
        struct stat st;
        bool empty = *below && out->len == before && stet_sys_lstat(full, &st) == 0 && S_ISLNK(st.st_mode);
        for (size_t i = before; empty && i-- > 0;)
            if (strcmp(out->at[i].path, below) == 0) {
                out->at[i].empty = true;
                break;
            }
        stet_names_release(&names);
        stet_free(below);
        stet_free(full);
    }
    *gone = w.gone;
    *linked = w.linked;
    stet_names_release(&w.todo);
    stet_names_release(&w.entered);
    if (out->len)
        qsort(out->at, out->len, sizeof *out->at, by_path);
    return status;
}

/* Adds what a member is to the hash: its kind and bytes. A file that is gone meanwhile counts as empty: the next look
 * sees it. */
static stet_status hash_member(const char *dir, const member *m, search *q, stet_hasher *h, stet_error *err) {
    char kind = S_ISDIR(m->st.st_mode) ? 'd' : S_ISLNK(m->st.st_mode) ? 'l' : m->st.st_mode & 0111 ? 'x' : 'f';
    stet_status status = STET_OK;
    stet_hash content = stet_hash_of("", 0);
    stet_hasher_add(h, m->path, strlen(m->path) + 1);
    if (q && !q->found) { /* a copy of a tree, as `cp --parents` makes it, has the path in its names */
        char *name = stet_file_join("/", m->path);
        q->found = strstr(name, q->text) != NULL;
        stet_free(name);
    }
    if (m->link) {
        stet_hasher_add(h, "l", 1);
        stet_hasher_add(h, m->link, strlen(m->link) + 1);
        if (q)
            q->found |= strstr(m->link, q->text) != NULL;
    }
    if (m->empty)
        stet_hasher_add(h, "e", 1);
    if (S_ISREG(m->st.st_mode)) {
        stet_look look;
        char *at = stet_file_join(dir, m->path);
        status = read_file(AT_FDCWD, at, q, &look, err);
        if (status == STET_OK && stet_look_there(&look))
            content = look.hash;
        stet_free(at);
    } else if (S_ISDIR(m->st.st_mode) && !(m->st.st_mode & 0400)) {
        kind = 'u'; /* it may be that it can't be listed */
    }
    stet_hasher_add(h, &kind, 1);
    stet_hasher_add(h, content.bytes, sizeof content.bytes);
    return status;
}

/* What stat says of everything, as hashes: a directory with the same is not read again. */
static void print_of(const members *m, int64_t now, stet_look *out) {
    stet_hasher *h = stet_hasher_begin(), *attributes = stet_hasher_begin();
    bool racy = false;
    for (size_t i = 0; i < m->len; i++) {
        const struct stat *st = &m->at[i].st;
        int64_t numbers[4] = {ns(st->st_mtim), (int64_t)st->st_ino, (int64_t)st->st_size, (int64_t)st->st_mode},
                ctime = ns(st->st_ctim);
        stet_hasher_add(h, m->at[i].path, strlen(m->at[i].path) + 1);
        if (m->at[i].link)
            stet_hasher_add(h, m->at[i].link, strlen(m->at[i].link) + 1);
        if (m->at[i].empty)
            stet_hasher_add(h, "e", 1);
        stet_hasher_add(h, numbers, sizeof numbers);
        stet_hasher_add(attributes, &ctime, sizeof ctime);
        racy |= recent(numbers[0], now) || recent(ctime, now);
        out->size += !S_ISDIR(st->st_mode);
    }
    stet_hash print = stet_hasher_end(h), ctimes = stet_hasher_end(attributes);
    memcpy(&out->mtime, print.bytes, 8);
    memcpy(&out->inode, print.bytes + 8, 8);
    memcpy(&out->ctime, ctimes.bytes, 8);
    out->flags = racy ? STET_LOOK_RACY : 0;
}

/* A symbolic link at the end of the path. Its own number and time go into those of what it leads to: a link that led
 * elsewhere for a while is another one. */
typedef struct step {
    uint64_t print, inode;
    int64_t ctime;
} step;

static stet_status look_directory(const char *dir, const char *root, const step *link, const stet_look *known,
                                  int64_t now, search *q, stet_look *out, stet_error *err) {
    members m = {0};
    bool gone = false, linked = false;
    stet_status status = walk(dir, root, &m, &gone, &linked, err);
    *out = (stet_look){0};
    if (status != STET_OK || gone) {
        members_release(&m);
        return status;
    }
    out->mode = STET_LOOK_DIRECTORY;
    print_of(&m, now, out);
    out->inode ^= link->inode;
    out->ctime ^= link->ctime;
    out->flags |= linked ? STET_LOOK_LINKED : 0;
    out->flags |= link->print && recent(link->ctime, now) ? STET_LOOK_RACY : 0;
    if (known && known->mode == out->mode && known->size == out->size && known->mtime == out->mtime &&
        known->ctime == out->ctime && known->inode == out->inode && !(known->flags & STET_LOOK_RACY)) {
        out->hash = known->hash;
        members_release(&m);
        return STET_OK;
    }
    stet_hasher *h = stet_hasher_begin();
    for (size_t i = 0; i < m.len && status == STET_OK; i++)
        status = hash_member(dir, &m.at[i], q, h, err);
    out->hash = stet_hasher_end(h);
    members_release(&m);
    return status;
}

/* Where the root is, for functions that take no directory; "" if it is not known. Caller frees. */
static char *root_of(int root_fd) {
    char link[64], root[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", root_fd);
    ssize_t n = root_fd == AT_FDCWD ? -1 : readlink(link, root, sizeof root - 1);
    return stet_strndup(root, n < 0 ? 0 : (size_t)n);
}

static char *whole(const char *root, const char *path) {
    return *path == '/' || !*root ? stet_strdup(path) : stet_file_join(root, path);
}

static void fold(stet_look *l, const step *link) {
    if (!l->mode || !link->print)
        return;
    l->link = link->print;
    l->flags |= STET_LOOK_LINKED;
    l->inode ^= link->inode;
    l->ctime = l->ctime > link->ctime ? l->ctime : link->ctime;
}

/* What is there, a link followed. *there: it is, and counts. */
static stet_status stat_of(int root_fd, const char *path, struct stat *st, step *link, bool *there, stet_error *err) {
    *link = (step){0};
    int failed = fstatat(root_fd, path, st, AT_SYMLINK_NOFOLLOW);
    if (failed == 0 && S_ISLNK(st->st_mode)) {
        char *text = stet_look_target(root_fd, path);
        if (text)
            *link = (step){link_print(text), (uint64_t)st->st_ino * 0x9E3779B97F4A7C15u, ns(st->st_ctim)};
        stet_free(text);
        failed = fstatat(root_fd, path, st, 0);
    }
    *there = failed == 0 && (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
    if (failed == 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES ||
        errno == ENAMETOOLONG)
        return STET_OK;
    return stet_fail_errno(err, errno, "cannot look at %s", path);
}

/* Is what stat says the same as at an earlier look, which was not so early that this proves nothing? */
static bool same_stat(const stet_look *known, const struct stat *st, const step *link) {
    stet_look now = look_of(st, (stet_hash){{0}}, (uint64_t)st->st_size);
    fold(&now, link);
    return known && known->mode == now.mode && known->link == now.link &&
           stet_look_between(known, &now) == STET_LOOK_UNTOUCHED && !(known->flags & STET_LOOK_RACY);
}

static bool is_own(int root_fd, const char *path) {
    if (!stet_project_has_own())
        return false;
    char *root = root_of(root_fd), *full = whole(root, path);
    bool own = stet_project_leads_to_own(full);
    stet_free(full);
    stet_free(root);
    return own;
}

static stet_status look(int root_fd, const char *path, const stet_look *known, search *q, stet_look *out,
                        stet_error *err) {
    struct stat st;
    int64_t now = stet_look_clock();
    step link;
    bool there;
    stet_status status = stat_of(root_fd, path, &st, &link, &there, err);
    if (status != STET_OK || !there || (S_ISDIR(st.st_mode) && is_own(root_fd, path))) {
        *out = (stet_look){.link = link.print, .flags = link.print ? STET_LOOK_LINKED : 0};
        return status;
    }
    if (S_ISREG(st.st_mode)) {
        if (same_stat(known, &st, &link)) {
            *out = *known;
            out->flags |= link.print ? STET_LOOK_LINKED : 0;
            return STET_OK;
        }
        if (is_own(root_fd, path)) {
            *out = (stet_look){0};
            return STET_OK;
        }
        if (st.st_size >= WAIT_BYTES && recent(ns(st.st_mtim), now)) {
            stet_clock_sleep_ms(2 * TICK_NS / 1000000);
            now = stet_look_clock();
        }
        status = read_file(root_fd, path, q, out, err);
        fold(out, &link);
        if (status == STET_OK && out->mode && (recent(out->mtime, now) || recent(out->ctime, now)))
            out->flags |= STET_LOOK_RACY;
    } else {
        char *root = root_of(root_fd), *dir = whole(root, path);
        status = look_directory(dir, *root ? root : NULL, &link, known, now, q, out, err);
        if (out->mode)
            out->link = link.print;
        if (out->mode && link.print)
            out->flags |= STET_LOOK_LINKED;
        stet_free(dir);
        stet_free(root);
    }
    return status;
}

bool stet_look_is_own(int root_fd, const char *path) {
    struct stat st;
    return is_own(root_fd, path) || (fstatat(root_fd, path, &st, 0) == 0 && stet_db_is_open(&st));
}

stet_status stet_look_at(int root_fd, const char *path, const stet_look *known, stet_look *out, stet_error *err) {
    return look(root_fd, path, known, NULL, out, err);
}

stet_status stet_look_search(int root_fd, const char *path, const char *text, bool *found, stet_look *out,
                             stet_error *err) {
    search q = {text, strlen(text), *found};
    stet_status status = look(root_fd, path, NULL, &q, out, err);
    if (status == STET_OK && out->link) {
        char *target = stet_look_target(root_fd, path);
        q.found |= target && strstr(target, text) != NULL;
        stet_free(target);
    }
    *found = q.found;
    return status;
}

stet_status stet_look_placed(int root_fd, const char *path, stet_hash hash, const struct stat *as, stet_look *out,
                             stet_error *err) {
    struct stat st;
    if (as->st_size >= WAIT_BYTES) /* past the tick, so that the next look need not read it either */
        stet_clock_sleep_ms(2 * TICK_NS / 1000000);
    int64_t now = stet_look_clock();
    if (fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != as->st_ino || st.st_dev != as->st_dev ||
        st.st_size != as->st_size || ns(st.st_mtim) != ns(as->st_mtim))
        return stet_look_at(root_fd, path, NULL, out, err);
    *out = look_of(&st, hash, (uint64_t)st.st_size);
    if (recent(out->mtime, now) || recent(out->ctime, now))
        out->flags |= STET_LOOK_RACY;
    return STET_OK;
}

stet_look_rest stet_look_between(const stet_look *was, const stet_look *now) {
    if (was->inode != now->inode || was->mtime != now->mtime || was->size != now->size)
        return STET_LOOK_REWRITTEN;
    return was->ctime == now->ctime ? STET_LOOK_UNTOUCHED : STET_LOOK_ATTRIBUTES;
}

bool stet_look_changed_since(int root_fd, const char *path, int64_t since) {
    struct stat st;
    step link;
    bool there;
    if (stat_of(root_fd, path, &st, &link, &there, NULL) != STET_OK)
        return true;
    if (!there)
        return false;
    bool changed = ns(st.st_ctim) >= since || ns(st.st_mtim) >= since || link.ctime >= since;
    if (S_ISDIR(st.st_mode) && !changed) {
        members m = {0};
        char *root = root_of(root_fd), *dir = whole(root, path);
        changed = walk(dir, *root ? root : NULL, &m, &(bool){false}, &(bool){false}, NULL) != STET_OK;
        for (size_t i = 0; i < m.len && !changed; i++)
            changed = ns(m.at[i].st.st_ctim) >= since || ns(m.at[i].st.st_mtim) >= since;
        members_release(&m);
        stet_free(dir);
        stet_free(root);
    }
    return changed;
}

void stet_look_links(int root_fd, const char *path, stet_names *out) {
    members m = {0};
    char *root = root_of(root_fd), *dir = whole(root, path), *top = *root ? stet_path_real(root, path) : NULL;
    bool fine = *root && walk(dir, root, &m, &(bool){false}, &(bool){false}, NULL) == STET_OK;
    for (size_t i = 0; i < m.len && fine; i++) {
        char *at = m.at[i].link ? stet_file_join(dir, m.at[i].path) : NULL,
             *real = at ? stet_path_real(root, at) : NULL;
        if (real && !(top && (is_at(real, top) || is_at(top, real))))
            *stet_vec_add(out) = stet_strdup(real);
        stet_free(real);
        stet_free(at);
    }
    members_release(&m);
    stet_free(top);
    stet_free(dir);
    stet_free(root);
}

bool stet_look_same(const stet_look *a, const stet_look *b) {
    return a->mode == b->mode &&
           (a->mode == 0 || (a->size == b->size && a->link == b->link && stet_hash_equal(a->hash, b->hash)));
}

bool stet_look_unaltered(const stet_look *made, const stet_look *now) {
    return made->link ? made->link == now->link : stet_look_same(made, now);
}

stet_value stet_look_value(const stet_look *l) {
    stet_value v = stet_value_object();
    char hex[STET_HASH_HEX];
    stet_hash_hex(l->hash, hex);
    stet_value_put(&v, "hash", stet_value_string(hex));
    stet_value_put(&v, "mode", stet_value_int(l->mode == STET_LOOK_DIRECTORY ? l->mode : l->mode & 0777));
    stet_value_put(&v, "size", stet_value_int((int64_t)l->size));
    if (l->link) {
        char print[17];
        snprintf(print, sizeof print, "%016llx", (unsigned long long)l->link);
        stet_value_put(&v, "link", stet_value_string(print));
    }
    return v;
}

bool stet_look_of_value(stet_value v, stet_look *out) {
    stet_value hash = stet_value_get(v, "hash"), mode = stet_value_get(v, "mode"), size = stet_value_get(v, "size");
    size_t len;
    *out = (stet_look){0};
    if (stet_value_type(hash) != STET_TYPE_STRING || stet_value_type(mode) != STET_TYPE_INT ||
        stet_value_type(size) != STET_TYPE_INT)
        return false;
    const char *hex = stet_value_as_string(&hash, &len);
    int64_t m = stet_value_as_int(mode);
    if (!stet_hash_of_hex(hex, len, &out->hash) || stet_value_as_int(size) < 0)
        return false;
    if (m != STET_LOOK_DIRECTORY && m != 0644 && m != 0755)
        return false;
    stet_value link;
    if (stet_value_find(v, "link", 4, &link)) {
        const char *print = stet_value_type(link) == STET_TYPE_STRING ? stet_value_as_string(&link, NULL) : "";
        char *end;
        out->link = strtoull(print, &end, 16);
        if (end != print + 16 || *end)
            return false;
    }
    out->mode = m == STET_LOOK_DIRECTORY ? STET_LOOK_DIRECTORY : 0100000u | (uint32_t)m;
    out->size = (uint64_t)stet_value_as_int(size);
    return true;
}
