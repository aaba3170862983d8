/* open.c - opens a database: what may be opened, how SQLite is configured, and migrations. Part of db.h.
 *
 * Choices
 *   - No memory-mapped reads. If a mapped file is truncated, the process is killed with SIGBUS, where read(2) returns
 *     an error. Mapped reads are not faster for the small reads made here.
 *   - An open costs system calls. So settings go through sqlite3_db_config where possible, and nothing is written to a
 *     database that already has the right version and journal mode.
 *   - A WAL database in a directory that this user can't write is opened if SQLite can do so (its -wal and -shm files
 *     exist). Otherwise SQLite offers immutable=1, which reads wrongly if anybody else writes. So immutable=1 is used
 *     only on a file system that is mounted read-only, where nobody can write.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "db/internal.h"
#include "os/clock.h"
#include "os/file.h"

enum {
    DEFAULT_BUSY_MS = 10000,
    WAL_PAGES = 1000,                /* checkpoint when the WAL is longer than this: 4 MiB */
    WAL_FILE_MAX = 64 * 1024 * 1024, /* a WAL that a long reader made grow is cut back to this */
    CACHE_KIB = 8 * 1024,
};

/* Last resort: writers of stet queue before SQLite's lock, but other programs (a SQLite shell) do not. */
static int on_busy(void *ctx, int count) {
    stet_db *db = ctx;
    int64_t now = stet_clock_monotonic_us();
    if (db->busy_deadline <= 0 && count == 0)
        db->busy_deadline = -(now + (int64_t)db->busy_ms * 1000); /* negative: the deadline of this wait only */
    int64_t deadline = db->busy_deadline < 0 ? -db->busy_deadline : db->busy_deadline;
    if (now >= deadline)
        return 0;
    int64_t us = count < 10 ? 200 : 1000;
    if (us > deadline - now)
        us = deadline - now;
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
    return 1;
}

/* The first four bytes of the kind's name. */
static int64_t kind_number(const char *kind) {
    uint32_t n = 0;
    for (int i = 0; i < 4; i++) {
        n = n << 8 | (unsigned char)*kind;
        if (*kind)
            kind++;
    }
    return (int32_t)n;
}

static stet_status refuse_network(const char *path, stet_error *err) {
    bool network = false;
    const char *name = "";
    stet_status status = stet_file_is_network(path, &network, &name, err);
    if (status != STET_OK || !network)
        return status;
    stet_fail(err, STET_UNSUPPORTED, "%s: on a network file system (%s), where a database can't be kept safely", path,
              name);
    stet_hint(err, "set `local = \"PATH\"` in .stet/config.toml to a directory on a local disk, then run `stet trust`");
    return STET_UNSUPPORTED;
}

typedef struct found {
    bool exists, empty;
    bool writable; /* the file or, if it does not exist, its directory */
    bool dir_writable;
} found;

/* Inspects the file before SQLite touches anything. */
static stet_status inspect(const char *path, const stet_db_opts *opts, found *f, stet_error *err) {
    struct stat st, wal;
    char *dir = stet_file_dirname(path);
    stet_status status = STET_OK;
    *f = (found){0};
    if (stet_sys_stat(path, &st) == 0) {
        f->exists = true;
        f->empty = st.st_size == 0;
        f->writable = access(path, W_OK) == 0;
        if (!S_ISREG(st.st_mode))
            status = stet_fail(err, STET_INVALID, "%s: not a regular file, so no database", path);
    } else if (errno != ENOENT) {
        status = stet_fail_errno(err, errno, "%s: cannot open the database", path);
    } else if (stet_sys_stat(dir, &st) != 0) {
        status = stet_fail_errno(err, errno, "%s: cannot open the database: directory %s", path, dir);
    }
    f->dir_writable = access(dir, W_OK) == 0;
    if (status == STET_OK && !f->exists && (opts->read_only || opts->must_exist))
        status = stet_fail(err, STET_NOT_FOUND, "%s: no such database", path);
    if (status == STET_OK && !opts->read_only && !(f->dir_writable && (f->writable || !f->exists))) {
        status = stet_fail(err, STET_IO, "%s: cannot be written: %s is read-only for this user", path,
                           f->dir_writable ? "the file" : "its directory");
        stet_hint(err, "make %s writable", f->dir_writable ? path : dir);
    }
    if (status == STET_OK && f->empty) {
        /* SQLite would take it for a new database and delete the log. A database gets its first page before it has a
         * WAL, so this one was cut, unless another process has made it between the two checks. */
        char *name = stet_asprintf("%s-wal", path);
        if (stat(name, &wal) == 0 && wal.st_size > 0 && stet_sys_stat(path, &st) == 0 && st.st_size == 0) {
            status = stet_fail(err, STET_CORRUPT, "%s: was cut to 0 bytes, but its log %s is there", path, name);
            stet_hint(err, "restore the file from a backup");
        } else if (opts->read_only) {
            status = stet_fail(err, STET_NOT_FOUND, "%s: empty, so no database yet", path);
        }
        stet_free(name);
    }
    stet_free(dir);
    return status;
}

static bool mounted_read_only(const char *path) {
    struct statvfs fs;
    return statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* A file: URI, for its parameters. */
static char *immutable_uri(const char *path) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "file:");
    for (const char *p = path; *p; p++)
        if (*p == '?' || *p == '#' || *p == '%')
            stet_buf_printf(&b, "%%%02X", (unsigned char)*p);
        else
            stet_buf_char(&b, *p);
    stet_buf_str(&b, "?immutable=1");
    return stet_buf_take(&b, NULL);
}

static stet_status connect(stet_db *db, const found *f, bool volatile_sync, stet_error *err) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (db->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    char *name;
    if (db->read_only && !f->dir_writable && mounted_read_only(db->path)) {
        flags |= SQLITE_OPEN_URI;
        name = immutable_uri(db->path);
    } else { /* "./" ensures that no name has a special meaning to SQLite (":memory:") */
        name = stet_asprintf("%s%s", db->path[0] == '/' ? "" : "./", db->path);
    }
    int rc = sqlite3_open_v2(name, &db->handle, flags, db_vfs_name());
    stet_free(name);
    if (rc != SQLITE_OK)
        return db_fail_rc(db->handle, rc, db->path, "cannot open the database", err);
    db->file = db_file_connected(db->path);
    rc = db_declare_sums(db->handle);
    if (rc != SQLITE_OK)
        return db_fail_rc(db->handle, rc, db->path, "cannot open the database", err);
    sqlite3_busy_handler(db->handle, on_busy, db);
    sqlite3_wal_autocheckpoint(db->handle, WAL_PAGES);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    /* stet makes none of these: in a file that came from elsewhere they would run somebody's SQL. */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    char *sql = stet_asprintf("PRAGMA cell_size_check=on; PRAGMA mmap_size=0; PRAGMA journal_size_limit=%d;"
                              "PRAGMA cache_size=-%d; PRAGMA synchronous=%s",
                              WAL_FILE_MAX, CACHE_KIB, volatile_sync ? "normal" : "full");
    rc = db_exec_raw(db, sql); /* the last two read the schema, which fails if the file is not a database */
    stet_free(sql);
    if (rc == SQLITE_OK)
        return STET_OK;
    stet_status status = db_fail_rc(db->handle, rc, db->path, "cannot open the database", err);
    if (status == STET_IO && db->read_only && !f->dir_writable && err) {
        /* The general hint about permissions would help less. */
        stet_hint_instead(err,
                          "its directory is read-only, and SQLite needs to create files beside a database in WAL mode: "
                          "copy it elsewhere, or open it as a user who may write there");
    }
    return status;
}

typedef struct identity {
    int64_t kind, version;
    bool blank;
    bool foreign; /* it has triggers, views or virtual tables, which stet never makes */
} identity;

/* Two statements: one that selects both pragmas costs more, because their table-valued forms are virtual tables. */
static identity identify(stet_db *db) {
    identity id = {0};
    /* Outside a transaction, another process may create the database between two of these statements. It then seems to
     * have no kind although it is not empty, and is checked once more. */
    for (int inspect = 0; inspect < 2; inspect++) {
        id.kind = stet_db_int(db, "PRAGMA application_id", 0);
        id.version = stet_db_int(db, "PRAGMA user_version", 0);
        id.blank = id.kind == 0 && id.version == 0 && stet_db_int(db, "SELECT count(*) FROM sqlite_schema", 0) == 0;
        if (id.blank || id.kind != 0)
            break;
    }
    /* Only tables and indexes have a first page. */
    id.foreign = !id.blank && stet_db_int(db,
                                          "SELECT count(*) FROM sqlite_schema WHERE ifnull(rootpage, 0) = 0 AND "
                                          "name NOT LIKE 'sqlite!_%' ESCAPE '!'",
                                          0) > 0;
    return id;
}

static stet_status refuse_identity(const stet_db *db, identity id, const stet_db_opts *opts, stet_error *err) {
    if (id.blank)
        return db->read_only ? stet_fail(err, STET_NOT_FOUND, "%s: empty, so no database yet", db->path) : STET_OK;
    if (id.kind != kind_number(opts->kind)) {
        stet_fail(err, STET_INVALID, "%s: a SQLite database, but not one that stet made as a %s", db->path, opts->kind);
        stet_hint(err, "was it put here by mistake? Move it away");
        return STET_INVALID;
    }
    if (id.foreign) {
        stet_fail(err, STET_INVALID, "%s: has triggers, views or virtual tables, which stet did not make", db->path);
        stet_hint(err, "it was changed by another program: put a copy from before in its place, or move it away");
        return STET_INVALID;
    }
    if (id.version > opts->migration_count || id.version < 0) {
        stet_fail(err, STET_UNSUPPORTED, "%s: has version %lld of its format; this stet (%s) knows up to version %d",
                  db->path, (long long)id.version, stet_version(), opts->migration_count);
        stet_hint(err, "use the newer stet that wrote it");
        return STET_UNSUPPORTED;
    }
    if (id.version < opts->migration_count && db->read_only) {
        stet_fail(err, STET_UNSUPPORTED, "%s: has version %lld of its format; this stet (%s) needs version %d",
                  db->path, (long long)id.version, stet_version(), opts->migration_count);
        stet_hint(err, "open it once for writing, which brings it up to date");
        return STET_UNSUPPORTED;
    }
    return STET_OK;
}

static void apply_migrations(stet_db *db, int64_t from, const stet_db_opts *opts) {
    for (int64_t i = from; i < opts->migration_count; i++) {
        const stet_db_migration *m = &opts->migrations[i];
        if (m->sql)
            stet_db_exec(db, m->sql);
        if (m->apply && db->failed.status == STET_OK) {
            stet_error e = STET_ERROR_INIT;
            stet_status status = m->apply(db, opts->ctx, &e);
            if (status != STET_OK)
                stet_fail(&db->failed, status, "%s", e.status != STET_OK ? e.message : "a migration failed");
            stet_error_clear(&e);
        }
    }
    char *sql = stet_asprintf("PRAGMA application_id=%lld; PRAGMA user_version=%d", (long long)kind_number(opts->kind),
                              opts->migration_count);
    stet_db_exec(db, sql);
    stet_free(sql);
}

/* Creates the schema or brings it up to date. If several processes come at the same time, one of them does it: the
 * others check everything again under the lock. */
static stet_status migrate(stet_db *db, const stet_db_opts *opts, stet_error *err) {
    stet_status status = db_lock_writer(db, err);
    if (status != STET_OK)
        return status;
    /* Outside a transaction and before the first table, because the setting is stored in the file. If the process that
     * made the database died before this point, the database is empty and gets here again. */
    identity id = identify(db);
    if (id.blank && db->failed.status == STET_OK)
        stet_db_exec(db, "PRAGMA journal_mode=wal");
    db_unlock_writer(db);
    status = stet_db_status(db, err);
    if (status == STET_OK)
        status = stet_db_begin_write(db, err);
    if (status != STET_OK)
        return status;
    id = identify(db);
    if (db->failed.status == STET_OK) {
        status = refuse_identity(db, id, opts, err);
        if (status != STET_OK) {
            stet_db_rollback(db);
            return status;
        }
    }
    if (id.blank || id.version < opts->migration_count)
        apply_migrations(db, id.version, opts);
    return stet_db_commit(db, err);
}

static stet_status open_all(stet_db *db, const stet_db_opts *opts, stet_error *err) {
    found f;
    stet_status status = refuse_network(db->path, err);
    if (status == STET_OK)
        status = inspect(db->path, opts, &f, err);
    if (status == STET_OK)
        status = connect(db, &f, opts->volatile_sync, err);
    if (status != STET_OK)
        return status;
    identity id = identify(db);
    status = stet_db_status(db, err);
    if (status == STET_OK)
        status = refuse_identity(db, id, opts, err);
    if (status == STET_OK && (id.blank || id.version < opts->migration_count))
        status = migrate(db, opts, err);
    return status;
}

/* Connections that a test keeps: see stet_db_keep_connections. */
enum { KEPT_MAX = 16 };
static struct {
    bool on;
    stet_db *idle[KEPT_MAX]; /* the oldest first */
    int count;
} kept;

static void close_connection(stet_db *db) {
    const void *key;
    size_t key_len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&db->statements, &i, &key, &key_len, &slot);) {
        stet_stmt *s = slot->p;
        sqlite3_finalize(s->handle);
        stet_free(s);
    }
    stet_map_release(&db->statements);
    int rc = sqlite3_close(db->handle);
    assert(rc == SQLITE_OK);
    (void)rc;
    db_file_disconnected(db->file);
    stet_lock_close(db->writer);
    stet_error_clear(&db->failed);
    stet_free(db->path);
    stet_free(db);
}

static void forget_kept(int i) {
    kept.count--;
    memmove(kept.idle + i, kept.idle + i + 1, (size_t)(kept.count - i) * sizeof *kept.idle);
}

static stet_db *take_kept(const char *path, const stet_db_opts *opts) {
    for (int i = kept.count - 1; i >= 0; i--) {
        stet_db *db = kept.idle[i];
        struct stat st;
        if (strcmp(db->path, path) != 0 || db->read_only != opts->read_only || db->volatile_sync != opts->volatile_sync)
            continue;
        bool same = stat(path, &st) == 0 && st.st_dev == db->device && st.st_ino == db->inode;
        assert(same);
        (void)same;
        forget_kept(i);
        db->busy_ms = opts->busy_ms > 0 ? opts->busy_ms : DEFAULT_BUSY_MS;
        return db;
    }
    return NULL;
}

static bool keep(stet_db *db) {
    struct stat st;
    if (!kept.on || db->failed.status != STET_OK || !db->handle || stat(db->path, &st) != 0)
        return false;
    db->device = st.st_dev;
    db->inode = st.st_ino;
    if (kept.count == KEPT_MAX) {
        close_connection(kept.idle[0]);
        forget_kept(0);
    }
    kept.idle[kept.count++] = db;
    return true;
}

void stet_db_keep_connections(bool on) {
    kept.on = on;
    if (!on)
        stet_db_drop_connections("");
}

void stet_db_drop_connections(const char *prefix) {
    for (int i = kept.count - 1; i >= 0; i--) {
        if (strncmp(kept.idle[i]->path, prefix, strlen(prefix)) != 0)
            continue;
        close_connection(kept.idle[i]);
        forget_kept(i);
    }
}

stet_status stet_db_open(const char *path, const stet_db_opts *opts, stet_db **out, stet_error *err) {
    assert(opts->kind && opts->kind[0] && opts->migration_count >= 0);
    stet_db *db = kept.on ? take_kept(path, opts) : NULL;
    stet_status status = STET_OK;
    if (!db) {
        db = stet_alloc_zero(sizeof *db);
        db->path = stet_strdup(path);
        db->read_only = opts->read_only;
        db->volatile_sync = opts->volatile_sync;
        db->busy_ms = opts->busy_ms > 0 ? opts->busy_ms : DEFAULT_BUSY_MS;
        status = open_all(db, opts, err);
    }
    if (status != STET_OK) {
        stet_db_rollback(db);
        db_reset_active(db);
        close_connection(db);
        return status;
    }
    *out = db;
    return STET_OK;
}

void stet_db_close(stet_db *db) {
    if (!db)
        return;
    stet_db_rollback(db);
    db_reset_active(db);
    if (!keep(db))
        close_connection(db);
}
