/* own.c - directories of stet that are not inside .stet/ of their project by name. Part of project.h.
 *
 * `local` in config.toml may name any directory, even one inside the project, and .stet may be a link. Files in these
 * directories are not files of the project: they change with every run, and a database that is opened and closed like a
 * file loses its locks (db/held.c). Most projects have no such directory; for them nothing here costs anything.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/vec.h"
#include "os/file.h"
#include "project/internal.h"

typedef struct own_dir {
    char *path; /* absolute, as named */
    char *real; /* NULL as long as it does not exist */
    size_t projects;
} own_dir;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static STET_VEC(own_dir) dirs; /* guarded by `lock` */
static atomic_size_t count;

void project_own_add(const char *path) {
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < dirs.len && strcmp(dirs.at[i].path, path) != 0)
        i++;
    if (i == dirs.len)
        *stet_vec_add(&dirs) = (own_dir){.path = stet_strdup(path)};
    dirs.at[i].projects++;
    atomic_store(&count, dirs.len);
    pthread_mutex_unlock(&lock);
}

void project_own_drop(const char *path) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < dirs.len; i++)
        if (strcmp(dirs.at[i].path, path) == 0 && --dirs.at[i].projects == 0) {
            stet_free(dirs.at[i].path);
            stet_free(dirs.at[i].real);
            dirs.at[i] = dirs.at[--dirs.len];
            break;
        }
    if (dirs.len == 0)
        stet_vec_release(&dirs);
    atomic_store(&count, dirs.len);
    pthread_mutex_unlock(&lock);
}

static bool is_at(const char *path, const char *top) {
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

static const char *real_of(own_dir *d) {
    if (!d->real && stet_file_realpath(d->path, &d->real, NULL) != STET_OK)
        d->real = NULL;
    return d->real;
}

bool stet_project_has_own(void) {
    return atomic_load(&count) > 0;
}

bool stet_project_is_own(const char *path) {
    bool own = false;
    if (!stet_project_has_own())
        return false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < dirs.len && !own; i++)
        own = is_at(path, dirs.at[i].path) || (real_of(&dirs.at[i]) && is_at(path, dirs.at[i].real));
    pthread_mutex_unlock(&lock);
    return own;
}

bool stet_project_leads_to_own(const char *path) {
    char *real = NULL;
    if (!stet_project_has_own())
        return false;
    bool own =
        stet_project_is_own(path) || (stet_file_realpath(path, &real, NULL) == STET_OK && stet_project_is_own(real));
    stet_free(real);
    return own;
}

bool stet_project_holds_own(const char *path) {
    bool holds = false;
    char *real = NULL;
    if (!stet_project_has_own())
        return false;
    if (stet_file_realpath(path, &real, NULL) != STET_OK)
        real = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < dirs.len && !holds; i++)
        holds = is_at(dirs.at[i].path, path) || (real && real_of(&dirs.at[i]) && is_at(dirs.at[i].real, real));
    pthread_mutex_unlock(&lock);
    stet_free(real);
    return holds;
}
