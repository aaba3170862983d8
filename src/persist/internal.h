/* internal.h - the handle, shared by the files of this folder.
 *
 * Locks between processes, always taken in this order:
 *   objects        exclusive while objects are deleted
 *   modification   exclusive while the log is appended to or cut, objects are put in place, or snapshots are written
 *   entry_log      exclusive while the log is cut, shared while it is read without the modification lock
 *
 * Inside the process, the holder of one of the first two also holds write_mutex. state_mutex is taken after it and
 * guards what is in memory.
 *
 * Order of steps (something is written before what refers to it, and deleted after it):
 *   put            temporary file, fsync, marker, object into place, log
 *   cleanup        new snapshot (fsync, rename, fsync of the directory), log cut, markers, merged snapshots, objects
 *
 * So a kill in between leaves at worst an object without an entry, or an entry that occurs twice.
 */
#ifndef STET_PERSIST_INTERNAL_H
#define STET_PERSIST_INTERNAL_H

#include <pthread.h>

#include "base/map.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/watch.h"
#include "persist/snapshot.h"

/* What a file or directory looked like. `racy`: it may have changed since without looking different, because its time
 * is more recent than the file system's clock can tell apart. */
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
    stet_pentries entries; /* as in the file, duplicates included */
    stet_pstamp stamp;
    int64_t offset; /* how far it was read */
    char *tail;     /* the last table before offset */
    size_t tail_len;
    bool ends_in_newline;
    uint64_t oldest; /* created_at of the oldest of the first `oldest_of` entries */
    size_t oldest_of;
    stet_plog_parsed parsed;
    /* For the index (log_index.c): which bytes of the file are where in memory, if they were read in a few pieces. */
    struct {
        const char *text;
        size_t len;
        int64_t from;
    } pieces[4];
    size_t piece_count;
    int64_t indexed; /* bytes that the index on disk covers */
} stet_plog;

typedef struct stet_premembered { /* a snapshot that this machine knew last; kept in local/last */
    stet_pid hash;
    stet_psnapshot *snapshot; /* read on demand */
    bool lost;                /* could not be read back */
} stet_premembered;

typedef struct stet_pchooser { /* a strategy of the public interface */
    stet_persist_choose choose;
    void *ctx;
} stet_pchooser;

struct stet_persist {
    stet_persist_config config;
    char *dir, *local, *temp, *trash;
    char *snapshots_dir, *log_dir, *log_path, *objects_dir, *fresh_dir, *locks_dir, *pins_dir;
    char machine_id[40];
    char read_only[256];            /* the reason, or "" */
    atomic_bool ready;              /* the directories exist */
    stet_persist_strategy strategy; /* instead of the default strategy; or NULL */
    void *strategy_ctx;
    stet_pchooser chooser;

    pthread_mutex_t write_mutex;
    stet_lock *objects_lock, *modification_lock;
    ino_t objects_lock_ino, modification_lock_ino;
    char *marker; /* an empty file that markers are hard links to, one per day */
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
        /* The snapshots that no other descends from, sorted by hash; borrowed from files and remembered. */
        stet_psnapshot **at;
        size_t len, cap;
    } tips;
    bool stale;    /* a load failed half way: rebuild everything */
    bool vanished; /* a remembered snapshot is neither present nor an ancestor of a present one */
    /* Descriptors that make checking cheap, without walking a path. They may refer to files that were replaced a moment
     * ago, so the paths themselves are checked once a second, and by writers. */
    int files_fd, log_look_fd;
    atomic_int objects_fd;
    int64_t looked_at_us;
    stet_pset live;
    uint64_t generation; /* grows when live changes */
    uint64_t reported;   /* the generation that stet_persist_wait last reported */
    int log_fd;
    ino_t log_fd_ino;

    pthread_mutex_t uses_mutex;
    struct stet_puses *uses;
    stet_watch *watch;
};

/* In open.c. */
char *stet_ppath(const char *dir, const char *name);
STET_CHECKED stet_status stet_persist_make_layout(stet_persist *p, stet_error *err);
STET_CHECKED stet_status stet_persist_may_write(const stet_persist *p, stet_error *err);
/* Takes write_mutex and the modification lock (before it the objects lock if `objects`), or returns STET_BUSY with none
 * held. */
STET_CHECKED stet_status stet_persist_lock(stet_persist *p, bool objects, stet_error *err);
void stet_persist_unlock(stet_persist *p);

/* In state.c. The caller holds state_mutex. */
/* `locked`: the caller holds the modification lock. */
STET_CHECKED stet_status stet_persist_load(stet_persist *p, bool locked, stet_error *err);
/* Lists everything again. */
STET_CHECKED stet_status stet_persist_reload(stet_persist *p, bool locked, stet_error *err);
void stet_persist_state_release(stet_persist *p);
bool stet_persist_is_known(const stet_persist *p, const char *hash); /* present, or an ancestor of a present one */
/* Remembers the snapshot in entry_snapshots/ as the last one known here. */
void stet_persist_remember(stet_persist *p, const stet_pid *hash);
/* Drops what this machine remembers of snapshots that are lost; of a directory that is gone, all that it remembers. */
void stet_persist_forget(stet_persist *p);
/* A sorted copy of all entries, with references to their texts. */
typedef struct stet_pview {
    stet_pentries entries;
    struct {
        stet_ptexts **at;
        size_t len, cap;
    } texts;
} stet_pview;
void stet_pview_take(stet_persist *p, stet_pview *view);
void stet_pview_release(stet_pview *view);
/* Reads a whole regular file, not a symlink; *text is from malloc. */
STET_CHECKED stet_status stet_persist_read_file(const char *path, char **text, size_t *len, struct stat *st,
                                                stet_error *err);

/* In log.c. */
/* Notes that these bytes, which began at `from`, are read: `offset` moves behind them. */
void stet_plog_passed(stet_plog *l, const char *text, size_t len, int64_t from);
/* In log_index.c. Takes the beginning of the log from the index. False: no index fits, and nothing is changed. */
bool stet_plog_recall(stet_persist *p, int fd, int64_t size);
/* Writes the index if much was read beyond it. */
void stet_plog_keep_index(stet_persist *p);
/* Reads what is new. *changed: something is new. *anew: the log had to be read from its beginning. The caller holds
 * state_mutex. */
STET_CHECKED stet_status stet_plog_load(stet_persist *p, bool may_lock, bool *changed, bool *anew, stet_error *err);
void stet_plog_release(stet_plog *l);
/* The caller holds the modification lock and has just loaded the log. */
STET_CHECKED stet_status stet_plog_append(stet_persist *p, const stet_pentry *e, size_t count, stet_error *err);
STET_CHECKED stet_status stet_plog_cut(stet_persist *p, stet_error *err); /* the caller also holds the log's lock */
STET_CHECKED stet_status stet_plog_lock(stet_persist *p, stet_error *err);
void stet_plog_unlock(stet_persist *p);

/* In object.c. */
typedef enum stet_pobject_state {
    STET_POBJECT_GOOD,
    STET_POBJECT_MISSING,
    STET_POBJECT_WRONG, /* size or bytes do not match the id */
} stet_pobject_state;
#define STET_POBJECT_SUFFIX ".zst"
/* The bytes of a trivial object, which is never stored; NULL if the object is not trivial. */
const char *stet_pobject_trivial(const char *id, size_t *len);
/* How an object is known to be right. A sealed one was hashed before, and its file looks as it did then. */
typedef enum stet_pobject_proof { STET_POBJECT_BY_SIZE, STET_POBJECT_BY_SEAL, STET_POBJECT_BY_HASH } stet_pobject_proof;
/* Reads an object, streams it to `sink` (may be NULL) and checks it. With a sink the size alone is never enough. An
 * error of the sink is returned in *status. */
stet_pobject_state stet_pobject_read(stet_persist *p, const char *id, uint64_t size, stet_pobject_proof proof,
                                     stet_persist_sink sink, void *ctx, stet_status *status, stet_error *err);
/* Reads the next bytes of a file whose stat is `st`. Holes are filled in instead of read, because the kernel would
 * allocate pages for them. */
STET_CHECKED stet_status stet_pobject_read_piece(int fd, const char *path, const struct stat *st, char *bytes,
                                                 size_t room, size_t *got, stet_error *err);
/* In seal.c. */
/* Records that the bytes of this object are known to be right now. */
void stet_pseal_put(stet_persist *p, const char *id, const char *object);
/* The same of a file that looked like this before its bytes were read. */
void stet_pseal_put_as(stet_persist *p, const char *id, const struct stat *object);
/* Are the bytes still known to be right, according to stat? */
bool stet_pseal_holds(stet_persist *p, const char *id, const struct stat *object);
void stet_pseal_sweep(stet_persist *p); /* removes seals of objects that are gone */

/* In object.c. */
/* The length of the id that a file name in objects/ stands for, with or without suffix; 0 if it is not an object. */
size_t stet_pobject_name(const char *name, bool *compressed);

/* In trash.c. */
/* Where one cleanup moves what it deletes. Created on first use. */
typedef struct stet_ptrash {
    char *dir; /* of this batch */
    bool off;  /* delete at once */
} stet_ptrash;
STET_CHECKED stet_status stet_ptrash_entries(stet_persist *p, stet_ptrash *t, const stet_pentry *const *entries,
                                             size_t count, stet_error *err);
/* Moves PATH to NAME in the batch, or deletes it. It may be absent. */
STET_CHECKED stet_status stet_ptrash_file(stet_persist *p, stet_ptrash *t, const char *path, const char *name,
                                          stet_error *err);
void stet_ptrash_release(stet_ptrash *t);

/* In marks.c. */
/* The set of "module.created_at" that are pinned or tagged. */
STET_CHECKED stet_status stet_pmarks_load(stet_persist *p, stet_map *out, stet_error *err);

/* In uses.c. */
void stet_puses_open(stet_persist *p);
void stet_puses_close(stet_persist *p);
void stet_puses_hit(stet_persist *p, const char *module, uint64_t created, int64_t saved_ms);
void stet_puses_miss(stet_persist *p);
/* Maps "module.created_at" to the last use in milliseconds since 1970, by all processes of this machine. */
STET_CHECKED stet_status stet_puses_load(stet_persist *p, stet_map *out, uint64_t *hits, uint64_t *misses,
                                         uint64_t *saved_ms, stet_error *err);
/* Forgets entries that are not in `live` (same keys). */
STET_CHECKED stet_status stet_puses_compact(stet_persist *p, const stet_map *live, stet_error *err);

/* In cleanup.c. */
/* Merges and applies the default strategy, without deleting objects. The caller holds the modification lock. */
STET_CHECKED stet_status stet_persist_merge_locked(stet_persist *p, stet_error *err);
/* The same as `how` says, without content. */
STET_CHECKED stet_status stet_persist_clean_locked(stet_persist *p, const stet_persist_cleanup *how, stet_error *err);
/* Is a merge due: more than one tip, or too many or too old entries in the log? The caller holds state_mutex. *next_ms
 * as in stet_persist_tick. */
bool stet_persist_merge_due(stet_persist *p, int64_t *next_ms);

/* In cleanup_objects.c. */
typedef struct stet_pdoomed {
    char *name; /* in objects/ */
    uint64_t size;
} stet_pdoomed;
typedef struct stet_pdoomed_list {
    stet_pdoomed *at;
    size_t len, cap;
} stet_pdoomed_list;
void stet_pdoomed_release(stet_pdoomed_list *l);
/* Lists the objects to delete, given the ids that are kept and those that are gone, with or without orphans. */
STET_CHECKED stet_status stet_pobjects_doomed(stet_persist *p, const stet_map *kept, const stet_map *gone, bool orphans,
                                              stet_pdoomed_list *out, stet_error *err);
/* Deletes markers: `seen` ids except those in `fresh`; then unreferenced markers that are too old. */
STET_CHECKED stet_status stet_pmarkers_clean(stet_persist *p, const stet_map *seen, const stet_map *fresh,
                                             uint64_t *removed, stet_error *err);

#endif
