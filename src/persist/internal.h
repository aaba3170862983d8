/* internal.h - the handle, shared by the files of this folder.
 *
 * Locks between processes, always in this order: objects, modification, entry_log.
 *   objects        exclusive while objects are deleted
 *   modification   exclusive while the log is appended to or cut, objects are put in place, or snapshots are written
 *   entry_log      exclusive while the log is cut, shared while it is read without the modification lock
 * Inside the process: write_mutex is held by whoever holds one of the first two; state_mutex, taken after it, guards
 * what is in memory.
 *
 * Order of steps (a referent is written before what refers to it, and deleted after it):
 *   put      temp file, fsync, marker, object into place, log
 *   cleanup  new snapshot (fsync, rename, fsync of the directory), log cut, markers, merged snapshots, objects
 * so that a kill in between leaves at worst an object without an entry or an entry that stands twice. */
#ifndef STET_PERSIST_INTERNAL_H
#define STET_PERSIST_INTERNAL_H

#include <pthread.h>

#include "base/map.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/watch.h"
#include "persist/snapshot.h"

/* What a file or directory looked like. `racy`: it may have changed since without looking different, since its time is
 * younger than the clock of the file system can tell apart. */
typedef struct stet_pstamp {
    bool known, there, racy;
    ino_t ino;
    int64_t size, mtime_ns;
} stet_pstamp;

typedef struct stet_pfile { /* a file of entry_snapshots/ */
    char *name;
    ino_t ino;
    int64_t size, mtime_ns;
    stet_psnapshot_state state;
    const char *why;
    stet_psnapshot *snapshot; /* if OK */
} stet_pfile;

typedef struct stet_plog {
    stet_ptexts *texts;
    stet_pentries entries; /* as they stand in the file, also twice */
    stet_pstamp stamp;
    int64_t offset; /* what of it was read */
    char *tail;     /* the last table before offset */
    size_t tail_len;
    bool ends_in_newline;
    uint64_t oldest; /* created_at of the oldest of the first `oldest_of` entries */
    size_t oldest_of;
    stet_plog_parsed parsed;
    /* For the index of it (log_index.c): which bytes of the file lie where, as far as they were read in a few pieces.
     */
    struct {
        const char *text;
        size_t len;
        int64_t from;
    } pieces[4];
    size_t piece_count;
    int64_t indexed; /* bytes that the index on disk covers */
} stet_plog;

typedef struct stet_premembered { /* a snapshot that this machine knew last, kept in local/last */
    stet_pid hash;
    stet_psnapshot *snapshot; /* read when it is needed */
    bool lost;                /* could not be read back */
} stet_premembered;

struct stet_persist {
    stet_persist_config config;
    char *dir, *local, *temp, *trash;
    char *snapshots_dir, *log_dir, *log_path, *objects_dir, *fresh_dir, *locks_dir, *pins_dir;
    char machine_id[40];
    char read_only[256];            /* why, or "" */
    atomic_bool ready;              /* the directories are there */
    stet_persist_strategy strategy; /* in place of the default one, or NULL */
    void *strategy_ctx;

    pthread_mutex_t write_mutex;
    stet_lock *objects_lock, *modification_lock;
    ino_t objects_lock_ino, modification_lock_ino;
    char *marker; /* an empty file that markers are names of, one for each day */
    int64_t marker_day;

    pthread_mutex_t state_mutex;
    stet_lock *log_lock;
    struct {
        stet_pfile *at;
        size_t len, cap;
    } files;
    stet_pstamp files_stamp;
    stet_plog log;
    struct {
        stet_premembered *at;
        size_t len, cap;
    } remembered;
    struct {
        stet_psnapshot *
            *at; /* borrowed from files and remembered: the snapshots that no other descends from, sorted by hash */
        size_t len, cap;
    } tips;
    bool stale;    /* a load failed half way: build everything anew */
    bool vanished; /* a remembered snapshot is neither present nor an ancestor of one that is */
    /* Descriptors that make looking cheap: without walking a path. They may be of what lay there a moment ago, so the
     * paths themselves are looked at once a second, and by whoever writes. */
    int files_fd, log_look_fd;
    atomic_int objects_fd;
    int64_t looked_at_us;
    stet_pset live;
    uint64_t generation; /* grows when live changes */
    uint64_t reported;   /* the generation that stet_persist_wait last spoke of */
    int log_fd;
    ino_t log_fd_ino;

    pthread_mutex_t uses_mutex;
    struct stet_puses *uses;
    stet_watch *watch;
};

/* ---- open.c ---- */
char *stet_ppath(const char *dir, const char *name);
STET_CHECKED stet_status stet_persist_make_layout(stet_persist *p, stet_error *err);
STET_CHECKED stet_status stet_persist_may_write(const stet_persist *p, stet_error *err);
/* write_mutex and the modification lock (and before it the objects lock if `objects`), or STET_BUSY and none of them.
 */
STET_CHECKED stet_status stet_persist_lock(stet_persist *p, bool objects, stet_error *err);
void stet_persist_unlock(stet_persist *p);

/* ---- state.c: with state_mutex held ---- */
/* `locked`: the caller has the modification lock. */
STET_CHECKED stet_status stet_persist_load(stet_persist *p, bool locked, stet_error *err);
STET_CHECKED stet_status stet_persist_reload(stet_persist *p, bool locked,
                                             stet_error *err); /* lists everything again */
void stet_persist_state_release(stet_persist *p);
bool stet_persist_is_known(const stet_persist *p, const char *hash); /* present or an ancestor of one that is */
/* Remembers the snapshot in entry_snapshots/ as the last one known here. */
void stet_persist_remember(stet_persist *p, const stet_pid *hash);
/* A sorted copy of all entries, and holds on their texts. */
typedef struct stet_pview {
    stet_pentries entries;
    struct {
        stet_ptexts **at;
        size_t len, cap;
    } texts;
} stet_pview;
void stet_pview_take(stet_persist *p, stet_pview *view);
void stet_pview_release(stet_pview *view);
/* Reads a whole regular file that is no symlink; *text is from malloc. */
STET_CHECKED stet_status stet_persist_read_file(const char *path, char **text, size_t *len, struct stat *st,
                                                stet_error *err);

/* ---- log.c ---- */
/* Reads what is new; *changed if anything is, *anew if it must be read from its beginning (done). State held. */
/* These bytes, which began at `from`, are read: `offset` is behind them. */
void stet_plog_passed(stet_plog *l, const char *text, size_t len, int64_t from);
/* log_index.c. Takes the beginning of the log from the index; false: there is none that fits, and nothing is changed.
 */
bool stet_plog_recall(stet_persist *p, int fd, int64_t size);
/* Writes the index, if much was read beyond it. */
void stet_plog_keep_index(stet_persist *p);
STET_CHECKED stet_status stet_plog_load(stet_persist *p, bool may_lock, bool *changed, bool *anew, stet_error *err);
void stet_plog_release(stet_plog *l);
/* With the modification lock; the log has just been loaded. */
STET_CHECKED stet_status stet_plog_append(stet_persist *p, const stet_pentry *e, size_t count, stet_error *err);
STET_CHECKED stet_status stet_plog_cut(stet_persist *p, stet_error *err); /* with the log's lock too */
STET_CHECKED stet_status stet_plog_lock(stet_persist *p, stet_error *err);
void stet_plog_unlock(stet_persist *p);

/* ---- object.c ---- */
typedef enum stet_pobject_state {
    STET_POBJECT_GOOD,
    STET_POBJECT_MISSING,
    STET_POBJECT_WRONG, /* size or bytes are not what the id says */
} stet_pobject_state;
#define STET_POBJECT_SUFFIX ".zst"
/* Bytes of a trivial object, which is never stored; NULL if it is none. */
const char *stet_pobject_trivial(const char *id, size_t *len);
/* Looks at an object, streams it to `sink` (may be NULL) and checks its hash (or only the size if !hash and no sink).
 * An error of the sink comes back as *status. */
stet_pobject_state stet_pobject_read(stet_persist *p, const char *id, uint64_t size, bool hash, stet_persist_sink sink,
                                     void *ctx, stet_status *status, stet_error *err);
/* The next bytes of a file whose status is `st`. Holes are not read but filled in: the kernel would make pages for
 * them. */
STET_CHECKED stet_status stet_pobject_read_piece(int fd, const char *path, const struct stat *st, char *bytes,
                                                 size_t room, size_t *got, stet_error *err);
/* Object, or object with a suffix, that a file name in objects/ stands for: length of the id, 0 if it is none. */
/* ---- seal.c ---- */
/* The bytes of this object are known to be right now. */
void stet_pseal_put(stet_persist *p, const char *id, const char *object);
/* Are they known to be right still, by what stat says? */
bool stet_pseal_holds(stet_persist *p, const char *id, const struct stat *object);
void stet_pseal_sweep(stet_persist *p); /* those of objects that are gone */

/* ---- object.c ---- */
size_t stet_pobject_name(const char *name, bool *compressed);

/* ---- trash.c ---- */
/* A place for what one cleanup deletes. Made on first use. */
typedef struct stet_ptrash {
    char *dir; /* of this batch */
    bool off;  /* delete at once */
} stet_ptrash;
STET_CHECKED stet_status stet_ptrash_entries(stet_persist *p, stet_ptrash *t, const stet_pentry *const *entries,
                                             size_t count, stet_error *err);
/* Moves PATH to NAME of the batch, or deletes it. An absent one is fine. */
STET_CHECKED stet_status stet_ptrash_file(stet_persist *p, stet_ptrash *t, const char *path, const char *name,
                                          stet_error *err);
void stet_ptrash_release(stet_ptrash *t);

/* ---- marks.c ---- */
/* Set of "module.created_at" that are pinned or tagged. */
STET_CHECKED stet_status stet_pmarks_load(stet_persist *p, stet_map *out, stet_error *err);

/* ---- uses.c ---- */
void stet_puses_open(stet_persist *p);
void stet_puses_close(stet_persist *p);
void stet_puses_hit(stet_persist *p, const char *module, uint64_t created, int64_t saved_ms);
void stet_puses_miss(stet_persist *p);
/* "module.created_at" to the last use in milliseconds since 1970, of all processes of this machine. */
STET_CHECKED stet_status stet_puses_load(stet_persist *p, stet_map *out, uint64_t *hits, uint64_t *misses,
                                         uint64_t *saved_ms, stet_error *err);
/* Forgets what is not in `live` (same keys). */
STET_CHECKED stet_status stet_puses_compact(stet_persist *p, const stet_map *live, stet_error *err);

/* ---- cleanup.c ---- */
/* The modification lock is held; merges and applies the default strategy; no objects. */
STET_CHECKED stet_status stet_persist_merge_locked(stet_persist *p, stet_error *err);
/* The same with another way, without content. */
STET_CHECKED stet_status stet_persist_clean_locked(stet_persist *p, const stet_persist_cleanup *how, stet_error *err);
/* Is a merge due: more than one tip, too many or too old entries in the log? State held. *next_ms as in
 * stet_persist_tick. */
bool stet_persist_merge_due(stet_persist *p, int64_t *next_ms);

/* ---- cleanup_objects.c ---- */
typedef struct stet_pdoomed {
    char *name; /* in objects/ */
    uint64_t size;
} stet_pdoomed;
typedef struct stet_pdoomed_list {
    stet_pdoomed *at;
    size_t len, cap;
} stet_pdoomed_list;
void stet_pdoomed_release(stet_pdoomed_list *l);
/* Which objects go, given what stays and what goes (maps of ids), in the mode with or without orphans. */
STET_CHECKED stet_status stet_pobjects_doomed(stet_persist *p, const stet_map *kept, const stet_map *gone, bool orphans,
                                              stet_pdoomed_list *out, stet_error *err);
/* Deletes markers: `seen` ids except those in `fresh`; then those that nobody refers to and that are too old. */
STET_CHECKED stet_status stet_pmarkers_clean(stet_persist *p, const stet_map *seen, const stet_map *fresh,
                                             uint64_t *removed, stet_error *err);

#endif
