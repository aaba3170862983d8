/* own.c - directories of commands that run apart from the project: where they lie, and what is put into them. */

#include "process/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"

#define NO_OWNER_S (24 * 3600) /* a directory that does not say whose it is may be about to say so */

/* The places for directories of commands, in the order in which they are tried; NULL: there are no more. Caller frees. */
static char *place(size_t i) {
    static const char *const fixed[] = {"/var/tmp", NULL, "/tmp"};
    const char *given = getenv("STET_JOBS"), *temp = getenv("TMPDIR");
    char *home = NULL, *out = NULL;
    if (given && *given)
        return i == 0 ? stet_strdup(given) : NULL;
    if (i < 3 && (fixed[i] || (temp && *temp == '/')))
        return stet_asprintf("%s/stet-%lld", fixed[i] ? fixed[i] : temp, (long long)geteuid());
    if (i < 3)
        return stet_strdup("");
    if (i == 3 && stet_home_dir(&home, NULL) == STET_OK)
        out = stet_file_join(home, "jobs");
    stet_free(home);
    return out;
}

/* Words for the shell have this path in them. */
static bool is_plain(const char *path) {
    return *path == '/' &&
           path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,@%")] == 0;
}

/* Is it, or can it be made, a directory of this user alone, outside the project, in which programs may lie? */
static stet_status check_place(const char *path, const char *apart_from, stet_error *err) {
    struct stat st;
    struct statvfs fs;
    bool in = false;
    if (!is_plain(path))
        return stet_fail(err, STET_INVALID, "%s: not an absolute path of letters, digits and ._-+,@%%", path);
    stet_status status = stet_file_mkdirs(path, 0700, err);
    if (status == STET_OK && (stet_sys_lstat(path, &st) != 0 || statvfs(path, &fs) != 0))
        status = stet_fail_errno(err, errno, "cannot look at %s", path);
    if (status == STET_OK && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)))
        status = stet_fail(err, STET_DENIED, "%s is not a directory of this user alone", path);
    if (status == STET_OK && (fs.f_flag & ST_NOEXEC))
        status = stet_fail(err, STET_DENIED, "%s is on a file system without programs", path);
    if (status == STET_OK)
        status = stet_file_inside(apart_from, path, &in, err);
    if (status == STET_OK && in)
        status = stet_fail(err, STET_INVALID, "%s is in the project", path);
    return status;
}

stet_status stet_local_jobs(const char *apart_from, char **out, stet_error *err) {
    stet_error first = STET_ERROR_INIT;
    for (size_t i = 0;; i++) {
        char *path = place(i), *real = NULL;
        stet_error why = STET_ERROR_INIT;
        if (!path)
            break;
        stet_status status = *path ? check_place(path, apart_from, &why) : STET_NOT_FOUND;
        if (status == STET_OK)
            status = stet_file_realpath(path, &real, &why);
        stet_free(path);
        if (status == STET_OK) {
            stet_error_clear(&first);
            *out = real;
            return STET_OK;
        }
        if (first.status == STET_OK)
            stet_error_move(&first, &why);
        stet_error_clear(&why);
    }
    if (first.status == STET_OK)
        stet_fail(&first, STET_DENIED, "there is no place for the directories of jobs");
    stet_hint(&first, "set STET_JOBS to a directory outside the project");
    stet_status status = first.status;
    stet_error_move(err, &first);
    return status;
}

static char *read_line(const char *dir, const char *name) {
    char *path = stet_file_join(dir, name), *line = NULL;
    stet_buf b = STET_BUF(8192);
    if (stet_file_read(path, 8000, &b, NULL) == STET_OK && b.len > 1 && b.data[b.len - 1] == '\n')
        line = stet_strndup(b.data, b.len - 1);
    stet_buf_release(&b);
    stet_free(path);
    return line;
}

static stet_status write_line(const char *dir, const char *name, const char *line, stet_error *err) {
    char *path = stet_file_join(dir, name), *text = stet_asprintf("%s\n", line);
    int fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    stet_status status = fd < 0 ? stet_fail_errno(err, errno, "cannot write %s", path)
                                : stet_file_write_all(fd, path, text, strlen(text), err);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    stet_free(text);
    return status;
}

const char *stet_jobs_of(const char *drive, char **kept) {
    if (!*kept)
        *kept = read_line(drive, "jobs");
    return *kept;
}

char *stet_own_path(const char *jobs, int64_t number) {
    return stet_asprintf("%s/%lld", jobs, (long long)number);
}

static char *temp_path(const char *work) {
    return stet_asprintf("%s.tmp", work);
}

static void remove_tree(const char *path) {
    if (stet_file_exists(path) && stet_file_remove_tree(path, NULL) != STET_OK) {
        /* something that it left running still writes there: it goes with the drive */
    }
}

void stet_local_remove_work(const char *work) {
    char *temp = temp_path(work);
    remove_tree(work);
    remove_tree(temp);
    stet_free(temp);
}

/* The directory for the commands of a drive, made if there is none. */
static stet_status make_jobs(const char *drive, const char *apart_from, char **jobs, stet_error *err) {
    if (stet_jobs_of(drive, jobs))
        return STET_OK;
    char *places = NULL, *full = NULL, *path = NULL;
    stet_status status = stet_local_jobs(apart_from, &places, err);
    if (status == STET_OK)
        status = stet_file_realpath(drive, &full, err);
    if (status == STET_OK) {
        path = stet_file_join(places, stet_file_basename(drive));
        status = write_line(drive, "jobs", path, err);
    }
    if (status == STET_OK && stet_sys_mkdir(path, 0700) != 0)
        status = stet_fail_errno(err, errno, "cannot make %s", path);
    if (status == STET_OK)
        status = write_line(path, "of", full, err);
    if (status == STET_OK)
        *jobs = path;
    else
        stet_free(path);
    stet_free(places);
    stet_free(full);
    return status;
}

void stet_local_sweep(bool dry_run, int64_t *count) {
    char *dir;
    for (size_t i = 0; (dir = place(i)) != NULL; i++) {
        stet_names names = {0};
        if (*dir && stet_file_list(dir, &names, NULL) == STET_OK)
            for (size_t k = 0; k < names.len; k++) {
                char *path = stet_file_join(dir, names.at[k]), *of = read_line(path, "of");
                struct stat st;
                bool ours = strncmp(names.at[k], "drive.", 6) == 0 && stet_sys_lstat(path, &st) == 0 &&
                            S_ISDIR(st.st_mode) && st.st_uid == geteuid();
                bool gone =
                    ours && (of ? !stet_file_exists(of) : stet_clock_ms() / 1000 - (int64_t)st.st_mtime > NO_OWNER_S);
                *count += gone;
                if (gone && !dry_run)
                    remove_tree(path);
                stet_free(path);
                stet_free(of);
            }
        stet_names_release(&names);
        stet_free(dir);
    }
}

/* Every file gets the mode of a program: what a call names as a script is known by its content alone. */
static stet_status stage_file(const char *work, const stet_local_request *r, size_t i, stet_error *err) {
    const stet_local_file *f = &r->stage[i];
    char *path = stet_file_join(work, f->path), *up = stet_file_dirname(path);
    int fd = -1;
    stet_status status = stet_file_mkdirs(up, 0755, err);
    if (status == STET_OK && (fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0755)) < 0)
        status = stet_fail_errno(err, errno, "cannot write %s", path);
    if (status == STET_OK)
        status =
            f->bytes ? stet_file_write_all(fd, path, f->bytes, f->len, err) : r->write(r->write_ctx, i, fd, path, err);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    stet_free(up);
    return status;
}

/* A word with the path of the directory in it. */
static char *placed(const char *word, const char *work) {
    stet_buf b = STET_BUF(0);
    for (const char *at; (at = strstr(word, STET_LOCAL_HERE)) != NULL; word = at + sizeof STET_LOCAL_HERE - 1) {
        stet_buf_add(&b, word, (size_t)(at - word));
        stet_buf_str(&b, work);
    }
    stet_buf_str(&b, word);
    char *out = stet_strdup(stet_buf_cstr(&b));
    stet_buf_release(&b);
    return out;
}

static void place_words(const stet_local_request *r, stet_own *own) {
    bool temp = false;
    for (size_t i = 0; r->argv[i]; i++) {
        bool here = i == 0 && *r->argv[0] != '/' && strchr(r->argv[0], '/') &&
                    strncmp(r->argv[0], STET_LOCAL_HERE, sizeof STET_LOCAL_HERE - 1) != 0;
        *stet_vec_add(&own->argv) = here ? stet_file_join(own->work, r->argv[0]) : placed(r->argv[i], own->work);
    }
    *stet_vec_add(&own->argv) = NULL;
    for (size_t i = 0; r->envp[i]; i++) {
        temp |= strncmp(r->envp[i], "TMPDIR=", 7) == 0;
        *stet_vec_add(&own->envp) = placed(r->envp[i], own->work);
    }
    if (!temp)
        *stet_vec_add(&own->envp) = stet_asprintf("TMPDIR=%s.tmp", own->work);
    *stet_vec_add(&own->envp) = NULL;
}

stet_status stet_own_make(const char *drive, int64_t number, const stet_local_request *r, char **jobs, stet_own *out,
                          stet_error *err) {
    stet_status status = make_jobs(drive, r->apart_from, jobs, err);
    if (status != STET_OK)
        return status;
    out->work = stet_own_path(*jobs, number);
    char *temp = temp_path(out->work);
    if (stet_sys_mkdir(out->work, 0700) != 0 || stet_sys_mkdir(temp, 0700) != 0)
        status = stet_fail_errno(err, errno, "cannot make a directory for a job, %s", out->work);
    stet_free(temp);
    for (size_t i = 0; i < r->stage_count && status == STET_OK; i++)
        status = stage_file(out->work, r, i, err);
    for (size_t i = 0; r->stage_dirs && r->stage_dirs[i] && status == STET_OK; i++) {
        char *path = stet_file_join(out->work, r->stage_dirs[i]);
        status = stet_file_mkdirs(path, 0755, err);
        stet_free(path);
    }
    if (status == STET_OK) {
        out->cwd = *r->cwd ? stet_file_join(out->work, r->cwd) : stet_strdup(out->work);
        status = stet_file_mkdirs(out->cwd, 0755, err);
        place_words(r, out);
    }
    return status;
}

static void release(stet_own_words *w) {
    for (size_t i = 0; i < w->len; i++)
        stet_free(w->at[i]);
    stet_vec_release(w);
}

void stet_own_release(stet_own *own) {
    release(&own->argv);
    release(&own->envp);
    stet_free(own->work);
    stet_free(own->cwd);
    *own = (stet_own){0};
}
