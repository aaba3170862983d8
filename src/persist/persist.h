/* persist.h - entries and content-addressed objects in a directory that Git, Dropbox or rsync may synchronise.
 *
 * stet.h has the greater part of the interface, and says what entries are, how threads and processes share a directory
 * and what fails. This header adds what only other parts of stet use.
 *
 *     stet_persist *p;
 *     stet_persist_place place = {.dir = ".stet/persist", .local_dir = ".stet/local/persist"};
 *     stet_status status = stet_persist_open_place(&place, &p, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_persist_close(p);
 *
 * Ownership. Entries that are handed out are copies (stet_persist_entry_free). Strings in options are copied.
 */
#ifndef STET_PERSIST_PERSIST_H
#define STET_PERSIST_PERSIST_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"

#define STET_PERSIST_ID_MAX       104              /* bytes of an object id, with the NUL: hash.module.created_at */
#define STET_PERSIST_BLOCK_MAX    1024             /* bytes of a block id */
#define STET_PERSIST_KIND_MAX     64               /* bytes of a content kind, a format, a tag */
#define STET_PERSIST_CONTENTS_MAX 4096             /* contents of an entry */
#define STET_PERSIST_ENTRY_MAX    1048576          /* bytes of an entry's text */
#define STET_PERSIST_FILE_MAX     (1u << 30)       /* bytes of a snapshot or a log */
#define STET_PERSIST_CREATED_MAX  999999999999999u /* largest created_at: 15 digits */
#define STET_PERSIST_CALL_PREFIX  "call:"

typedef enum stet_persist_id_mode {
    STET_PERSIST_DEDUPLICATION,
    STET_PERSIST_EXECUTION_KEY_QUALIFIED
} stet_persist_id_mode;
typedef enum stet_persist_verify { STET_PERSIST_VERIFY_ALWAYS, STET_PERSIST_VERIFY_SIZE } stet_persist_verify;

/* The four limits of the default cleanup strategy; -1 means none. */
typedef struct stet_persist_limits {
    int64_t max_entries_per_block, max_entries_per_module, max_entry_age_days, max_total_content_size;
} stet_persist_limits;

typedef struct stet_persist_config {
    char dir_path[256];             /* in a project: relative to .stet, or absolute */
    char auto_variables_format[16]; /* "pickle" or "json": the meaning of the format "auto" */
    stet_persist_id_mode object_id_mode;
    stet_persist_verify verify;
    bool use_fresh_object_statuses;
    bool cleanup_default_include_content;
    bool cleanup_default_delete_orphan_objects;
    bool cleanup_on_exit;
    int64_t entry_merge_timeout_seconds; /* -1: never because of age alone */
    int64_t max_entries_in_log;          /* -1: no limit */
    int64_t grace_days;                  /* younger objects never count as orphans */
    int64_t trash_days;                  /* deleted items can be restored for this long; 0 deletes at once */
    int64_t marker_days;                 /* an unreferenced fresh marker expires after this */
    int64_t max_local_bytes;             /* maximum size of local objects, least recently used first; -1: none */
    int64_t lock_timeout_ms;
    int64_t vanished_wait_ms; /* how long cleanup waits for the successor of a vanished snapshot */
    bool compress;            /* store objects as zstd if that saves at least a tenth */
    stet_persist_limits strategy;
} stet_persist_config;

stet_persist_config stet_persist_config_default(void);
/* The two tables that stet_persist_config_read reads; belongs to the caller. */
stet_value stet_persist_config_value(const stet_persist_config *config);
/* Reads the tables `defaults` and `default_cleanup_strategy` of `table` (an object; null is fine) into `config`.
 * Unknown keys and values out of range are STET_INVALID. */
STET_CHECKED stet_status stet_persist_config_read(stet_value table, stet_persist_config *config, stet_error *err);
/* Each limit must be -1 or positive, and at least one positive. */
STET_CHECKED stet_status stet_persist_limits_check(const stet_persist_limits *limits, stet_error *err);

/* Where a directory is, and how it is used. Strings are copied. */
typedef struct stet_persist_place {
    const char *dir;        /* created by the first put; never by reading */
    const char *local_dir;  /* for this machine alone, never synchronised; NULL: DIR/local */
    const char *temp_dir;   /* on the same file system as DIR, otherwise DIR/local/temp is used; NULL: LOCAL/temp */
    const char *machine_id; /* NULL: the id of this machine (os/proc.h) */
    const stet_persist_config *config; /* NULL: the defaults */
    bool read_only;
} stet_persist_place;

STET_CHECKED stet_status stet_persist_open_place(const stet_persist_place *place, stet_persist **out, stet_error *err);
const stet_persist_config *stet_persist_config_of(const stet_persist *p);
struct stet_persist_entry {
    stet_persist_key key;
    stet_persist_content *contents; /* sorted by kind */
    size_t content_count;
    uint64_t total_size; /* of all contents */
    int64_t elapsed_ms;  /* how long the execution took, or -1 if the entry does not say */
    const char *text;    /* the entry's table, as in a snapshot */
    char hash[12];
    bool in_log; /* not in a snapshot yet */
};

/* A further key of a content, or of the entry itself (content NULL): a string or an integer. False if it is absent. */
bool stet_persist_extra_string(const stet_persist_entry *e, const stet_persist_content *c, const char *key,
                               stet_buf *out);
bool stet_persist_extra_int(const stet_persist_entry *e, const stet_persist_content *c, const char *key, int64_t *out);

/* Is this the block of a call? Its block is "call:FUNCTION", its module the call's id. The default strategy applies its
 * limits on age and size to such entries, never those on their number. */
bool stet_persist_is_call(const char *block_id, size_t len);

/* Converts between created_at and milliseconds since 1970. False: outside the years 1 to 9999. */
bool stet_persist_created_of_unix(int64_t unix_ms, uint64_t *created_at);
int64_t stet_persist_created_to_unix(uint64_t created_at);

bool stet_persist_valid_hash(const char *s, size_t len); /* 43 characters of base64url */
bool stet_persist_valid_id(const char *s, size_t len);   /* an object id of either mode */
bool stet_persist_valid_kind(const char *s, size_t len);
STET_CHECKED stet_status stet_persist_key_check(const stet_persist_key *key, bool with_time, stet_error *err);

/* Adds everything that can be read from a descriptor. */
void stet_persist_put_fd(stet_persist_put *w, int fd, const char *name);

typedef enum stet_persist_restored {
    STET_PERSIST_REFLINK,
    STET_PERSIST_HARDLINK,
    STET_PERSIST_COPY
} stet_persist_restored;
/* Restores an object to `path`, completely or not at all, replacing a file there. A hard link shares its bytes and its
 * read-only mode with the object: use it for files that nobody changes in place. The hash of the bytes is checked,
 * unless the object is large, was checked on this machine before and looks untouched since. `as` (may be NULL) receives
 * the stat of the file before it was moved into place. */
STET_CHECKED stet_status stet_persist_restore(stet_persist *p, const char *id, uint64_t size, const char *path,
                                              mode_t mode, bool allow_hardlink, stet_persist_restored *how,
                                              struct stat *as, stet_error *err);
/* Is the object present, with the right size (and hash if `verify`)? */
bool stet_persist_has_object(stet_persist *p, const char *id, uint64_t size, bool verify);

/* What a strategy sees of an entry: enough to decide, nothing to free. */
typedef struct stet_persist_item {
    const char *block_id;
    size_t block_len;
    const char *module_hash; /* 43 characters, not terminated */
    uint64_t created_at;
    uint64_t size;    /* of all contents */
    int64_t last_use; /* milliseconds since 1970, on this machine; the creation time if it was never used */
    bool is_call, in_log;
    bool keep;   /* pinned or tagged: `remove` is ignored */
    bool remove; /* set by the strategy */
    const struct stet_pentry *of;
} stet_persist_item;
/* The complete entry behind an item of a running cleanup; belongs to the caller. */
stet_persist_entry *stet_persist_item_entry(const stet_persist_item *item);
/* Marks the items to remove. A custom strategy that must agree between machines uses only keys and sizes. */
typedef stet_status (*stet_persist_strategy)(void *ctx, stet_persist_item *items, size_t count, uint64_t now,
                                             stet_error *err);
/* The default strategy; ctx is a stet_persist_limits. */
stet_status stet_persist_strategy_default(void *limits, stet_persist_item *items, size_t count, uint64_t now,
                                          stet_error *err);
/* Sets the strategy that is used wherever no other is given (when a put merges, in a tick, on exit), instead of the
 * default strategy with the configured limits. Set it before the handle is shared; NULL restores the default. A
 * strategy is called with the modification lock held: it may read from the handle, but not write to it. */
void stet_persist_set_strategy(stet_persist *p, stet_persist_strategy strategy, void *ctx);
/* A strategy that removes nothing: cleanup only merges. */
stet_status stet_persist_strategy_none(void *ctx, stet_persist_item *items, size_t count, uint64_t now,
                                       stet_error *err);

typedef struct stet_persist_cleanup {
    stet_persist_strategy strategy; /* NULL: the default strategy with the configured limits */
    void *ctx;
    stet_persist_choice include_content;
    stet_persist_choice delete_orphan_objects; /* YES implies content */
    int64_t max_local_bytes;                   /* 0: as configured; -1: none. Works only with content */
    bool dry_run;
    bool force; /* continue although nothing would be kept */
    bool purge; /* no trash: deleted items can't be restored */
} stet_persist_cleanup;

typedef struct stet_persist_cleaned {
    uint64_t entries_before, entries_after, entries_removed, log_entries;
    uint64_t objects_removed, bytes_removed, markers_removed, snapshots_merged;
    uint64_t trash_purged, temp_removed;
    bool wrote_snapshot, dry_run;
    char snapshot[44]; /* the current snapshot, "" if none */
    /* What was removed, or would be, for a report: up to 1,000 of each. */
    stet_value entries; /* array of {"block","module","created_at","size"} */
    stet_value objects; /* array of {"id","size"} */
} stet_persist_cleaned;

STET_CHECKED stet_status stet_persist_cleanup_run(stet_persist *p, const stet_persist_cleanup *how,
                                                  stet_persist_cleaned *out, stet_error *err);
void stet_persist_cleaned_release(stet_persist_cleaned *c);
/* As `persist cleanup` prints it; belongs to the caller. */
stet_value stet_persist_cleaned_value(const stet_persist_cleaned *c);

int stet_persist_watch_fd(stet_persist *p, stet_error *err); /* readable when something changed; -1 on failure */

typedef struct stet_persist_trashed {
    char batch[64];
    int64_t deleted_at; /* milliseconds since 1970 */
    uint64_t entries, objects, bytes;
} stet_persist_trashed;
typedef bool (*stet_persist_trash_fn)(void *ctx, const stet_persist_trashed *batch);
STET_CHECKED stet_status stet_persist_trash_each(stet_persist *p, stet_persist_trash_fn fn, void *ctx, stet_error *err);
/* Permanently deletes trash older than trash_days, abandoned temporary files and expired markers. */
STET_CHECKED stet_status stet_persist_sweep(stet_persist *p, bool everything, bool dry_run, uint64_t *items,
                                            uint64_t *bytes, stet_error *err);

bool stet_persist_valid_tag(const char *s, size_t len);

typedef struct stet_persist_stats {
    uint64_t entries, log_entries, call_entries, blocks, modules, snapshots, pinned;
    uint64_t content_bytes; /* according to the entries, counting each reference */
    uint64_t objects, object_bytes, missing_objects, fresh_markers;
    uint64_t trash_bytes;
    uint64_t hits, misses, saved_ms; /* on this machine */
} stet_persist_stats;
STET_CHECKED stet_status stet_persist_stats_get(stet_persist *p, stet_persist_stats *out, stet_error *err);

/* Does the local directory show that entries were put or used? Then a persist directory that is not there was removed. */
bool stet_persist_was_used(const char *local);

#endif
