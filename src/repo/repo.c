/* repo.c - opening a repository, its tables, transactions. */
#include "repo/repo_internal.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/file.h"
#include "repo/text.h"

/* Facts: object, ref, remote. Derived from them, compared and rebuilt by `stet check`: pin, exec_of. In flight, and no
 * loss if deleted: attempt, claim, incoming, blob, worker.
 *
 * Rejected: objects in a table without rowids, keyed by id: one tree less, but hashes go to random pages together with
 * their bytes, and a commit of a few objects writes as many large pages. With rowids bytes are appended, and only 40
 * bytes of index go anywhere. */
static const char step1[] =
    /* Immutable records. `state` is a stet_object_state; `added_s`: when it was last put, in seconds: gc leaves young
     * ones alone. */
    "CREATE TABLE object("
    "  number INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE,"
    "  type INTEGER NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  added_s INTEGER NOT NULL,"
    "  bytes BLOB NOT NULL);"
    "CREATE INDEX object_loose ON object(number) WHERE state = 1;"

    "CREATE TABLE ref(name TEXT PRIMARY KEY, target BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE remote(name TEXT PRIMARY KEY, uri TEXT NOT NULL, added_ms INTEGER NOT NULL) WITHOUT ROWID;"

    /* Objects of a fetch that is not through: they wait here until what they name is there too. */
    "CREATE TABLE incoming("
    "  id BLOB PRIMARY KEY, type INTEGER NOT NULL, lost INTEGER NOT NULL, added_s INTEGER NOT NULL,"
    "  bytes BLOB NOT NULL);"

    /* Derived: the exec map of the commit that refs/index/main names. */
    "CREATE TABLE pin(node BLOB PRIMARY KEY, exec BLOB NOT NULL) WITHOUT ROWID;"
    /* Derived: the exec records of each node. */
    "CREATE TABLE exec_of(node BLOB NOT NULL, object INTEGER NOT NULL, PRIMARY KEY(node, object)) WITHOUT ROWID;"

    /* Work in flight. `key`: its execution key. */
    "CREATE TABLE attempt("
    "  execution TEXT PRIMARY KEY,"
    "  node BLOB NOT NULL,"
    "  key BLOB NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  resume INTEGER NOT NULL,"
    "  done INTEGER NOT NULL,"
    "  cache INTEGER NOT NULL,"
    "  retries INTEGER NOT NULL,"
    "  next_ms INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  updated_ms INTEGER NOT NULL,"
    "  token BLOB,"
    "  detail TEXT);"
    "CREATE INDEX attempt_node ON attempt(node);";

/* Attempts by time, newest first, of one node or of all, live ones apart. */
static const char step2[] = "DROP INDEX attempt_node;"
                            "CREATE INDEX attempt_node ON attempt(node, created_ms);"
                            "CREATE INDEX attempt_time ON attempt(created_ms);"
                            "CREATE INDEX attempt_live ON attempt(created_ms) WHERE done = 0;";

/* Claims (hub.h), which were refs to data before: `version` is the hash of `body`, `phase` a stet_hub_phase. Claims that
 * have ended are many, and no question about the others touches them. Old ones are dropped: whoever runs a job for one
 * finds the job by its key and claims it again. */
static const char step3[] = "CREATE TABLE claim("
                            "  key BLOB PRIMARY KEY,"
                            "  version BLOB NOT NULL,"
                            "  phase INTEGER NOT NULL,"
                            "  lease_ms INTEGER NOT NULL,"
                            "  changed_ms INTEGER NOT NULL,"
                            "  node BLOB,"
                            "  result BLOB,"
                            "  body TEXT NOT NULL) WITHOUT ROWID;"
                            "CREATE INDEX claim_queued ON claim(changed_ms) WHERE phase = 0;"
                            "CREATE INDEX claim_held ON claim(lease_ms, changed_ms) WHERE phase = 1;"
                            "CREATE INDEX claim_ended ON claim(changed_ms) WHERE phase = 2;"
                            "CREATE INDEX attempt_key ON attempt(key) WHERE done = 0;"
                            "DELETE FROM ref WHERE name >= 'refs/exec-claims/' AND name < 'refs/exec-claims0';";

/* Of a hub (hub.h): contents by their hash, which lie in data, and workers that have announced themselves. */
static const char step4[] = "CREATE TABLE blob("
                            "  hash BLOB PRIMARY KEY,"
                            "  datum BLOB NOT NULL,"
                            "  size INTEGER NOT NULL,"
                            "  used_s INTEGER NOT NULL) WITHOUT ROWID;"
                            "CREATE TABLE worker("
                            "  name TEXT PRIMARY KEY, until_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;";

const stet_db_migration stet_repo_migrations[] = {{step1, NULL}, {step2, NULL}, {step3, NULL}, {step4, NULL}};
const int stet_repo_migration_count = 4;

stet_id_text stet_hash_print(stet_hash id) {
    stet_id_text t = {{0}};
    stet_hash_hex(id, t.text);
    return t;
}

stet_id_text stet_short(stet_hash id) {
    stet_id_text t = stet_hash_print(id);
    t.text[12] = 0;
    return t;
}

void stet_bind_id(stet_stmt *s, int index, const stet_hash *id) {
    stet_bind_blob(s, index, id->bytes, sizeof id->bytes);
}

bool stet_column_id(stet_stmt *s, int column, stet_hash *out) {
    size_t len;
    const void *bytes = stet_column_blob(s, column, &len);
    *out = (stet_hash){{0}};
    if (len != sizeof out->bytes)
        return false;
    memcpy(out->bytes, bytes, len);
    return true;
}

stet_status stet_repo_open_path(const char *path, unsigned flags, stet_repo **out, stet_error *err) {
    stet_repo *r = stet_alloc_zero(sizeof *r);
    bool nothing;
    r->path = stet_strdup(path);
    r->read_only = (flags & STET_REPO_READ_ONLY) != 0;
    r->must_exist = (flags & STET_REPO_MUST_EXIST) != 0;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK && nothing && r->must_exist)
        st = stet_fail(err, STET_NOT_FOUND, "%s: there is no repository yet", path);
    if (st != STET_OK) {
        stet_repo_close(r);
        return st;
    }
    *out = r;
    return STET_OK;
}

stet_status stet_repo_open(stet_project *p, unsigned flags, stet_repo **out, stet_error *err) {
    char *path = stet_project_path(p, "local/repo.db");
    stet_status st = stet_repo_open_path(path, flags, out, err);
    stet_free(path);
    return st;
}

/* A directory: the repository of the project in it, or a file in the directory itself. Takes `path`. */
static stet_status place_of(char *path, char **out, stet_error *err) {
    struct stat st;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = 0;
    bool there = stet_sys_stat(path, &st) == 0, directory = there && S_ISDIR(st.st_mode);
    *out = NULL;
    stet_status status = STET_OK;
    char *config = stet_file_join(path, ".stet/config.toml");
    if (directory && stet_file_exists(config)) {
        stet_project *p;
        status = stet_project_open(path, &p, err);
        if (status == STET_OK) {
            *out = stet_project_path(p, "local/repo.db");
            stet_project_close(p);
        }
    } else if (directory || (!there && (len < 3 || strcmp(path + len - 3, ".db") != 0))) {
        *out = stet_file_join(path, "repo.db");
    } else {
        *out = stet_strdup(path);
    }
    stet_free(config);
    stet_free(path);
    return status;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The path in file:PATH, file:///PATH or file://localhost/PATH. NULL: it is none of them. */
static char *path_of_uri(const char *uri) {
    if (strncmp(uri, "file:", 5) != 0)
        return NULL;
    const char *s = uri + 5;
    if (strncmp(s, "//", 2) == 0) {
        s += 2;
        if (strncmp(s, "localhost/", 10) == 0)
            s += 9;
    }
    if (*s != '/')
        return NULL;
    stet_buf b = STET_BUF(0);
    for (; *s; s++) {
        char c = *s;
        if (c == '?' || c == '#')
            break;
        if (c == '%') {
            int high = hex_digit(s[1]), low = high < 0 ? -1 : hex_digit(s[2]);
            c = low < 0 ? 0 : (char)(high * 16 + low);
            if (c == 0) {
                stet_buf_release(&b);
                return NULL;
            }
            s += 2;
        }
        stet_buf_char(&b, c);
    }
    return stet_buf_take(&b, NULL);
}

stet_status stet_repo_open_uri(const char *uri, unsigned flags, stet_repo **out, stet_error *err) {
    char *path = path_of_uri(uri), *place;
    if (!path) {
        stet_fail(err, STET_INVALID, "%.200s: not the address of a repository in a file", uri);
        stet_hint(err, "file:///PATH, with the absolute path of a project, of a directory or of a repo.db");
        return STET_INVALID;
    }
    stet_status st = place_of(path, &place, err);
    if (st != STET_OK)
        return st;
    st = stet_repo_open_path(place, flags, out, err);
    stet_free(place);
    return st;
}

char *stet_repo_uri(const stet_repo *r) {
    stet_buf b = STET_BUF(0);
    char *real = NULL, *dir = stet_file_dirname(r->path);
    stet_buf_str(&b, "file://");
    if (stet_file_realpath(dir, &real, NULL) == STET_OK) {
        stet_free(dir);
        dir = real;
    }
    char *path = stet_file_join(dir, stet_file_basename(r->path));
    for (const char *s = path; *s; s++)
        if (strchr("-._~/", *s) || (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'))
            stet_buf_char(&b, *s);
        else
            stet_buf_printf(&b, "%%%02X", (unsigned)(unsigned char)*s);
    stet_free(path);
    stet_free(dir);
    return stet_buf_take(&b, NULL);
}

void stet_repo_close(stet_repo *r) {
    if (!r)
        return;
    stet_db_close(r->db);
    stet_map_release(&r->seen);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->derived, &i, &key, &len, &slot);)
        stet_free(slot->p);
    stet_map_release(&r->derived);
    stet_map_release(&r->borrowed);
    stet_vec_release(&r->names);
    stet_free(r->path);
    free(r);
}

const char *stet_repo_path(const stet_repo *r) {
    return r->path;
}

static stet_status open_as(stet_repo *r, bool read_only, bool create, stet_db **out, stet_error *err) {
    stet_db_opts o = {.kind = "repo",
                      .migrations = stet_repo_migrations,
                      .migration_count = stet_repo_migration_count,
                      .read_only = read_only,
                      .must_exist = !create};
    return stet_db_open(r->path, &o, out, err);
}

/* Somebody who was killed while making the file has left a journal, and whoever only reads can't undo it: it is opened
 * once by who can. */
static stet_status open_db(stet_repo *r, bool create, stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    stet_status st = open_as(r, r->read_only, create, &r->db, &why);
    if (st == STET_IO && r->read_only) {
        stet_db *db;
        if (open_as(r, false, false, &db, NULL) == STET_OK) {
            stet_db_close(db);
            stet_error_clear(&why);
            st = open_as(r, true, create, &r->db, &why);
        }
    }
    if (st != STET_OK)
        stet_error_move(err, &why);
    return st;
}

stet_status stet_repo_ready(stet_repo *r, bool *nothing, stet_error *err) {
    *nothing = false;
    if (r->db && !r->nothing)
        return STET_OK;
    if (!r->nothing && stet_file_exists(r->path)) {
        stet_error why = STET_ERROR_INIT;
        stet_status st = open_db(r, false, &why);
        if (st == STET_OK)
            return st;
        if (st != STET_NOT_FOUND) {
            stet_error_move(err, &why);
            return st;
        }
        stet_error_clear(&why);
    }
    *nothing = true;
    return STET_OK;
}

static stet_status make_file(stet_repo *r, stet_error *err) {
    if (r->read_only)
        return stet_fail(err, STET_DENIED, "%s: opened for reading alone", r->path);
    if (r->db)
        return STET_OK;
    char *dir = stet_file_dirname(r->path);
    stet_status st = stet_file_mkdirs(dir, 0755, err);
    stet_free(dir);
    return st == STET_OK ? open_db(r, true, err) : st;
}

stet_status stet_repo_begin(stet_repo *r, stet_error *err) {
    stet_status st = make_file(r, err);
    if (st == STET_OK)
        st = stet_db_begin_write(r->db, err);
    r->writing = st == STET_OK;
    r->now_s = stet_clock_ms() / 1000;
    return st;
}

stet_status stet_repo_begin_read(stet_repo *r, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK && nothing)
        r->nothing = true;
    else if (st == STET_OK)
        st = stet_db_begin_read(r->db, err);
    return st;
}

stet_status stet_repo_commit(stet_repo *r, stet_error *err) {
    stet_map_clear(&r->seen);
    r->writing = false;
    if (r->nothing) {
        r->nothing = false;
        return STET_OK;
    }
    return stet_db_commit(r->db, err);
}

void stet_repo_rollback(stet_repo *r) {
    stet_map_clear(&r->seen);
    r->writing = false;
    if (!r->nothing && r->db)
        stet_db_rollback(r->db);
    r->nothing = false;
}

bool stet_repo_in_transaction(const stet_repo *r) {
    return r->nothing || (r->db && stet_db_in_transaction(r->db));
}

int64_t stet_repo_news(stet_repo *r) {
    bool nothing;
    if (stet_repo_ready(r, &nothing, NULL) != STET_OK || nothing)
        return -1;
    return stet_db_data_version(r->db);
}

stet_status stet_repo_enter(stet_repo *r, bool *begun, stet_error *err) {
    *begun = false;
    if (r->writing)
        return stet_db_status(r->db, err);
    if (stet_repo_in_transaction(r))
        return stet_fail(err, STET_DENIED, "%s: in a transaction that only reads", r->path);
    stet_status st = stet_repo_begin(r, err);
    *begun = st == STET_OK;
    return st;
}

stet_status stet_repo_leave(stet_repo *r, bool begun, stet_status st, stet_error *err) {
    if (begun) {
        if (st == STET_OK)
            return stet_repo_commit(r, err);
        stet_repo_rollback(r);
        return st;
    }
    if (!r->writing)
        return st;
    if (st != STET_OK)
        stet_db_fail(r->db, st, "%s",
                     err && err->status != STET_OK ? err->message : "a part of the transaction failed");
    stet_status stuck = stet_db_status(r->db, err);
    return st != STET_OK ? st : stuck;
}
