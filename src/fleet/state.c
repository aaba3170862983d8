/* state.c - reads a run's state.json, whichever program wrote it, and classifies it. */

#include "fleet/state.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"

static const char *const task_names[STET_TASK_STATUSES] = {"pending", "running", "completed", "failed", "skipped"};
static const char *const stage_names[STET_STAGES] = {"setup", "running", "settling", "verifying", "done"};
static const char *const life_names[STET_LIFECYCLES] = {"queued", "running",  "blocked",     "completed",
                                                        "failed", "archived", "interrupted", "resolved"};

const char *stet_task_status_name(stet_task_status s) {
    return task_names[s];
}

const char *stet_stage_name(stet_stage s) {
    return stage_names[s];
}

const char *stet_lifecycle_name(stet_lifecycle l) {
    return life_names[l];
}

static bool name_in(const char *const *names, int count, const char *s, size_t len, int *out) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == len && memcmp(names[i], s, len) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool stet_task_status_of(stet_value v, stet_task_status *out) {
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    int i;
    if (s == NULL || !name_in(task_names, STET_TASK_STATUSES, s, len, &i))
        return false;
    *out = (stet_task_status)i;
    return true;
}

bool stet_lifecycle_of_name(const char *name, stet_lifecycle *out) {
    int i;
    if (!name_in(life_names, STET_LIFECYCLES, name, strlen(name), &i))
        return false;
    *out = (stet_lifecycle)i;
    return true;
}

bool stet_run_id_valid(const char *id, size_t len) {
    if (len == 0 || len > STET_RUN_ID_MAX)
        return false;
    if (id[0] == '.' && (len == 1 || (len == 2 && id[1] == '.')))
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = id[i];
        bool ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == ':' || c == '-';
        if (!ok)
            return false;
    }
    return true;
}

stet_lifecycle stet_lifecycle_of(const stet_state_counts *c) {
    if (c->tasks[STET_TASK_RUNNING] > 0)
        return STET_LIFE_RUNNING;
    if (c->open_feedback > 0)
        return STET_LIFE_BLOCKED;
    if (c->tasks[STET_TASK_FAILED] > 0)
        return STET_LIFE_FAILED;
    if (c->total > 0 && c->tasks[STET_TASK_COMPLETED] + c->tasks[STET_TASK_SKIPPED] == c->total)
        return STET_LIFE_COMPLETED;
    if (c->gated_commits > 0 && c->tasks[STET_TASK_PENDING] == 0)
        return STET_LIFE_COMPLETED;
    if (c->tasks[STET_TASK_COMPLETED] > 0)
        return STET_LIFE_RUNNING;
    return STET_LIFE_QUEUED;
}

static const char *const type_names[] = {"null",     "a boolean", "an integer", "a number",
                                         "a string", "an array",  "an object"};

static const char *type_name(stet_value v) {
    return type_names[stet_value_type(v)];
}

/* What a member must be if it is there; null counts as absent. Tables are sorted by key, as members are, so that one
 * walk over both checks an object, whatever else is in it. */
typedef struct member {
    const char *key;
    size_t len;
    stet_type type;
    bool required; /* a string must not be empty then */
} member;

#define REQUIRED(key, type)                                                                                            \
    { key, sizeof(key) - 1, type, true }
#define OPTIONAL(key, type)                                                                                            \
    { key, sizeof(key) - 1, type, false }

static stet_status check_member(const member *m, stet_value v, stet_error *err) {
    stet_type type = stet_value_type(v);
    if (type == STET_TYPE_NULL && m->required)
        return stet_fail(err, STET_CORRUPT, "%s is missing", m->key);
    if (type != STET_TYPE_NULL && type != m->type)
        return stet_fail(err, STET_CORRUPT, "%s is %s, expected %s", m->key, type_name(v), type_names[m->type]);
    size_t len = 1;
    if (m->required && type == STET_TYPE_STRING && (stet_value_as_string(&v, &len), len == 0))
        return stet_fail(err, STET_CORRUPT, "%s is empty", m->key);
    return STET_OK;
}

static stet_status check_members(stet_value object, const member *table, size_t count, stet_value *values,
                                 stet_error *err) {
    if (stet_value_type(object) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_CORRUPT, "it is %s, expected an object", type_name(object));
    size_t n = stet_value_count(object), i = 0;
    for (size_t m = 0; m < count; m++) {
        values[m] = stet_value_null();
        for (; i < n; i++) {
            size_t len;
            const char *key = stet_value_key_at(object, i, &len);
            if (len == table[m].len && memcmp(key, table[m].key, len) == 0) {
                values[m] = stet_value_at(object, i++);
                break;
            }
            if (strcmp(key, table[m].key) > 0)
                break;
        }
        stet_status st = check_member(&table[m], values[m], err);
        if (st != STET_OK)
            return st;
    }
    return STET_OK;
}

#define MEMBERS(table) (sizeof(table) / sizeof((table)[0]))

/* Version 1 keeps app, workflowId and title inside `workflow`. */
static stet_status migrate_1(stet_value *root, stet_error *err) {
    static const member table[] = {OPTIONAL("app", STET_TYPE_OBJECT), OPTIONAL("id", STET_TYPE_STRING),
                                   OPTIONAL("title", STET_TYPE_STRING)};
    static const char *const names[] = {"app", "workflowId", "title"};
    stet_value workflow = stet_value_get(*root, "workflow"), v[MEMBERS(table)];
    if (stet_value_type(workflow) != STET_TYPE_NULL) {
        stet_status st = check_members(workflow, table, MEMBERS(table), v, err);
        if (st != STET_OK) {
            stet_fail_in(err, "workflow");
            return st;
        }
        stet_value_retain(workflow); /* outlives its removal below */
        for (size_t i = 0; i < MEMBERS(table); i++)
            if (stet_value_type(v[i]) != STET_TYPE_NULL)
                stet_value_put(root, names[i], stet_value_retain(v[i]));
        stet_value_remove(root, "workflow", 8);
        stet_value_release(workflow);
    }
    stet_value_put(root, "schemaVersion", stet_value_int(2));
    return STET_OK;
}

/* What is known of the tasks, one by one. The first thing wrong sticks: it is told only if nothing worse is found. */
typedef struct task_census {
    stet_state_counts counts;
    stet_map seen;
    stet_value failed; /* retained */
    stet_status status;
    stet_error why;
} task_census;

static stet_status check_task(stet_value task, task_census *c, stet_error *err) {
    static const member table[] = {OPTIONAL("action", STET_TYPE_STRING),  OPTIONAL("attempt", STET_TYPE_INT),
                                   OPTIONAL("endedAt", STET_TYPE_STRING), REQUIRED("id", STET_TYPE_STRING),
                                   OPTIONAL("kind", STET_TYPE_STRING),    OPTIONAL("log", STET_TYPE_STRING),
                                   OPTIONAL("result", STET_TYPE_STRING),  OPTIONAL("startedAt", STET_TYPE_STRING),
                                   REQUIRED("status", STET_TYPE_STRING),  OPTIONAL("verifier", STET_TYPE_BOOL)};
    stet_value v[MEMBERS(table)];
    stet_status st = check_members(task, table, MEMBERS(table), v, err);
    if (st != STET_OK)
        return st;
    size_t len, before = stet_map_len(&c->seen);
    const char *id = stet_value_as_string(&v[3], &len);
    stet_map_put(&c->seen, id, len, (stet_slot){.n = 0});
    if (stet_map_len(&c->seen) == before)
        return stet_fail(err, STET_CORRUPT, "id \"%.80s\" is there twice", id);
    stet_task_status status;
    if (!stet_task_status_of(v[8], &status))
        return stet_fail(err, STET_CORRUPT,
                         "status is \"%.40s\", expected pending, running, completed, failed or skipped",
                         stet_value_as_string(&v[8], NULL));
    if (status == STET_TASK_FAILED && c->counts.tasks[status] == 0)
        c->failed = stet_value_retain(task);
    c->counts.tasks[status]++;
    c->counts.total++;
    bool settle = stet_value_text_is(v[4], "settle");
    c->counts.settle += settle;
    c->counts.settled += settle && status == STET_TASK_COMPLETED;
    return STET_OK;
}

static void take_task(void *ctx, stet_value task) {
    task_census *c = ctx;
    if (c->status != STET_OK)
        return;
    c->status = check_task(task, c, &c->why);
    if (c->status != STET_OK)
        stet_fail_in(&c->why, "tasks[%u]", c->counts.total);
}

static stet_status check_one_feedback(stet_value feedback, stet_state_counts *c, stet_error *err) {
    static const member table[] = {OPTIONAL("id", STET_TYPE_STRING), OPTIONAL("message", STET_TYPE_STRING),
                                   REQUIRED("status", STET_TYPE_STRING), OPTIONAL("task", STET_TYPE_STRING)};
    static const char *const names[] = {"open", "tasked", "resolved", "rejected"};
    stet_value v[MEMBERS(table)];
    stet_status st = check_members(feedback, table, MEMBERS(table), v, err);
    if (st != STET_OK)
        return st;
    size_t len;
    const char *s = stet_value_as_string(&v[2], &len);
    int which;
    if (!name_in(names, 4, s, len, &which))
        return stet_fail(err, STET_CORRUPT, "status is \"%.40s\", expected open, tasked, resolved or rejected", s);
    if (which < 2)
        c->open_feedback++;
    return STET_OK;
}

static stet_status check_feedback(stet_value feedback, stet_state_counts *c, stet_error *err) {
    for (size_t i = 0; i < stet_value_count(feedback); i++) {
        stet_status st = check_one_feedback(stet_value_at(feedback, i), c, err);
        if (st != STET_OK) {
            stet_fail_in(err, "feedback[%zu]", i);
            return st;
        }
    }
    return STET_OK;
}

static stet_status check_commits(stet_value commits, stet_state_counts *c, stet_error *err) {
    static const member table[] = {OPTIONAL("verifierGated", STET_TYPE_BOOL)};
    for (size_t i = 0; i < stet_value_count(commits); i++) {
        stet_value gated;
        stet_status st = check_members(stet_value_at(commits, i), table, MEMBERS(table), &gated, err);
        if (st != STET_OK) {
            stet_fail_in(err, "commits[%zu]", i);
            return st;
        }
        c->commits++;
        if (stet_value_as_bool(gated))
            c->gated_commits++;
    }
    return STET_OK;
}

static stet_status check_version(stet_value root, int64_t *version, stet_error *err) {
    stet_value v = stet_value_get(root, "schemaVersion");
    if (stet_value_type(root) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_CORRUPT, "the state is %s, expected an object", type_name(root));
    if (stet_value_type(v) != STET_TYPE_INT)
        return stet_fail(err, STET_CORRUPT, "schemaVersion is %s, expected an integer", type_name(v));
    *version = stet_value_as_int(v);
    if (*version < 1)
        return stet_fail(err, STET_CORRUPT, "schemaVersion is %lld, there is none below 1", (long long)*version);
    if (*version <= STET_STATE_VERSION)
        return STET_OK;
    stet_status st = stet_fail(err, STET_UNSUPPORTED, "schemaVersion is %lld, this stet reads up to %d",
                               (long long)*version, STET_STATE_VERSION);
    stet_hint(err, "use a newer stet for this run");
    return st;
}

static stet_status check_time(const char *key, stet_value v, int64_t *ms, stet_error *err) {
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    if (!stet_time_parse(s, len, ms))
        return stet_fail(err, STET_CORRUPT, "%s \"%.40s\" is no RFC 3339 time", key, s);
    return STET_OK;
}

static stet_status check_labels(stet_value labels, stet_error *err) {
    for (size_t i = 0; i < stet_value_count(labels); i++)
        if (stet_value_type(stet_value_at(labels, i)) != STET_TYPE_STRING)
            return stet_fail(err, STET_CORRUPT, "labels[%zu] is %s, expected a string", i,
                             type_name(stet_value_at(labels, i)));
    return STET_OK;
}

static stet_status check(stet_state *s, const char *expected_id, task_census *tasks, stet_error *err) {
    enum {
        ACTOR,
        APP,
        COMMITS,
        CREATED,
        FEEDBACK,
        ID,
        INPUTS,
        LABELS,
        STAGE,
        OPTIONS,
        PIECE,
        PROVENANCE,
        REPO,
        SUMMARY,
        TASKS,
        TITLE,
        UPDATED,
        WORKFLOW
    };
    static const member table[] = {OPTIONAL("actor", STET_TYPE_STRING),     OPTIONAL("app", STET_TYPE_OBJECT),
                                   OPTIONAL("commits", STET_TYPE_ARRAY),    REQUIRED("createdAt", STET_TYPE_STRING),
                                   OPTIONAL("feedback", STET_TYPE_ARRAY),   REQUIRED("id", STET_TYPE_STRING),
                                   OPTIONAL("inputs", STET_TYPE_OBJECT),    OPTIONAL("labels", STET_TYPE_ARRAY),
                                   REQUIRED("loopStage", STET_TYPE_STRING), OPTIONAL("options", STET_TYPE_OBJECT),
                                   OPTIONAL("piece", STET_TYPE_STRING),     OPTIONAL("provenance", STET_TYPE_OBJECT),
                                   OPTIONAL("repo", STET_TYPE_STRING),      OPTIONAL("summary", STET_TYPE_OBJECT),
                                   REQUIRED("tasks", STET_TYPE_ARRAY),      OPTIONAL("title", STET_TYPE_STRING),
                                   REQUIRED("updatedAt", STET_TYPE_STRING), OPTIONAL("workflowId", STET_TYPE_STRING)};
    static const member app_table[] = {OPTIONAL("id", STET_TYPE_STRING), OPTIONAL("title", STET_TYPE_STRING),
                                       OPTIONAL("version", STET_TYPE_STRING)};
    static const member provenance_table[] = {
        OPTIONAL("actor", STET_TYPE_STRING),      OPTIONAL("createdAt", STET_TYPE_STRING),
        OPTIONAL("generation", STET_TYPE_INT),    OPTIONAL("originRunId", STET_TYPE_STRING),
        OPTIONAL("reason", STET_TYPE_STRING),     OPTIONAL("rerunOf", STET_TYPE_STRING),
        OPTIONAL("rerunOfRepo", STET_TYPE_STRING)};
    stet_value v[MEMBERS(table)], inner[MEMBERS(provenance_table)];
    int64_t version = 0;
    stet_status st = check_version(s->root, &version, err);
    if (st == STET_OK && version == 1)
        st = migrate_1(&s->root, err);
    if (st == STET_OK)
        st = check_members(s->root, table, MEMBERS(table), v, err);
    if (st != STET_OK)
        return st;
    size_t len;
    const char *id = stet_value_as_string(&v[ID], &len);
    if (!stet_run_id_valid(id, len))
        return stet_fail(err, STET_CORRUPT, "id \"%.80s\" is no run id (letters, digits, and . _ : -)", id);
    if (expected_id != NULL && strcmp(expected_id, id) != 0)
        return stet_fail(err, STET_CORRUPT, "the directory is \"%.100s\" but the id in it is \"%.100s\"", expected_id,
                         id);
    const char *stage = stet_value_as_string(&v[STAGE], &len);
    int which;
    if (version > 1 && !name_in(stage_names, STET_STAGES, stage, len, &which))
        return stet_fail(err, STET_CORRUPT,
                         "loopStage is \"%.40s\", expected setup, running, settling, verifying or done", stage);
    if (stet_value_type(v[APP]) == STET_TYPE_OBJECT &&
        (st = check_members(v[APP], app_table, MEMBERS(app_table), inner, err)) != STET_OK) {
        stet_fail_in(err, "app");
        return st;
    }
    if (stet_value_type(v[PROVENANCE]) == STET_TYPE_OBJECT &&
        (st = check_members(v[PROVENANCE], provenance_table, MEMBERS(provenance_table), inner, err)) != STET_OK) {
        stet_fail_in(err, "provenance");
        return st;
    }
    if ((st = check_time("createdAt", v[CREATED], &s->created_ms, err)) != STET_OK ||
        (st = check_time("updatedAt", v[UPDATED], &s->updated_ms, err)) != STET_OK ||
        (st = check_labels(v[LABELS], err)) != STET_OK)
        return st;
    for (size_t i = 0; i < stet_value_count(v[TASKS]); i++) /* none if they were handed over while reading */
        take_task(tasks, stet_value_at(v[TASKS], i));
    if (tasks->status != STET_OK) {
        stet_error_move(err, &tasks->why);
        return tasks->status;
    }
    s->counts = tasks->counts;
    s->failed = stet_value_retain(tasks->failed);
    if ((st = check_feedback(v[FEEDBACK], &s->counts, err)) != STET_OK)
        return st;
    return check_commits(v[COMMITS], &s->counts, err);
}

static stet_status parse(const char *bytes, size_t len, const char *expected_id, bool survey, stet_state *out,
                         stet_error *err) {
    static const char *const wanted[] = {"id", "status", "error", NULL};
    stet_state s = {0};
    task_census tasks = {.why = STET_ERROR_INIT};
    stet_json_limits limits = {.max_depth = STET_STATE_MAX_DEPTH, .max_bytes = STET_STATE_MAX_BYTES};
    stet_json_stream stream = {.member = "tasks", .wanted = wanted, .element = take_task, .ctx = &tasks};
    stet_status st = stet_json_read_stream(bytes, len, &limits, survey ? &stream : NULL, &s.root, err);
    if (st == STET_OK) {
        s.fingerprint = stet_hash_of(bytes, len);
        st = check(&s, expected_id, &tasks, err);
    } else if (st == STET_INVALID) {
        /* A malformed file is corrupt, not an invalid argument of the caller. */
        st = STET_CORRUPT;
        if (err != NULL)
            err->status = st;
    }
    stet_map_release(&tasks.seen);
    stet_value_release(tasks.failed);
    stet_error_clear(&tasks.why);
    if (st == STET_OK)
        *out = s;
    else
        stet_state_release(&s);
    return st;
}

stet_status stet_state_parse(const char *bytes, size_t len, const char *expected_id, stet_state *out, stet_error *err) {
    return parse(bytes, len, expected_id, false, out, err);
}

stet_status stet_state_parse_survey(const char *bytes, size_t len, const char *expected_id, stet_state *out,
                                    stet_error *err) {
    return parse(bytes, len, expected_id, true, out, err);
}

stet_state_stamp stet_stamp_of(const struct stat *st) {
    return (stet_state_stamp){.size = st->st_size,
                              .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                              .ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
                              .inode = st->st_ino};
}

bool stet_stamp_equal(const stet_state_stamp *a, const stet_state_stamp *b) {
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->inode == b->inode;
}

/* One attempt: *changed tells that the file was written to while it was read. */
static stet_status read_once(int fd, const char *path, stet_buf *b, stet_state_stamp *stamp, bool *changed,
                             stet_error *err) {
    struct stat before, after;
    if (stet_sys_fstat(fd, &before) != 0)
        return stet_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(before.st_mode))
        return stet_fail(err, STET_CORRUPT, "%s is not a regular file", path);
    if ((uint64_t)before.st_size > STET_STATE_MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "%s has %lld bytes, more than the %zu that a run's state may have", path,
                         (long long)before.st_size, STET_STATE_MAX_BYTES);
    stet_buf_clear(b);
    size_t want = (size_t)before.st_size, got = 0;
    char *at = stet_buf_reserve(b, want + 1);
    stet_status st = stet_file_read_all(fd, path, at, want + 1, &got, err);
    if (st != STET_OK)
        return st;
    b->len = got;
    if (stet_sys_fstat(fd, &after) != 0)
        return stet_fail_errno(err, errno, "%s", path);
    *stamp = stet_stamp_of(&after);
    stet_state_stamp first = stet_stamp_of(&before);
    /* The link count falls, and ctime moves, when the file is replaced meanwhile: its bytes are still whole. */
    *changed = got != want || first.size != stamp->size || first.mtime_ns != stamp->mtime_ns;
    return STET_OK;
}

static stet_status read_state(const char *path, const char *expected_id, bool survey, stet_buf *scratch,
                              stet_state *out, stet_error *err) {
    stet_buf own = STET_BUF(0);
    stet_buf *b = scratch ? scratch : &own;
    stet_status st = STET_OK;
    stet_state_stamp stamp = {0};
    bool changed = true;
    for (int attempt = 0; attempt < 4 && changed && st == STET_OK; attempt++) {
        /* O_NONBLOCK: opening a FIFO must not block. */
        int fd = stet_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (fd < 0)
            st = errno == ELOOP ? stet_fail(err, STET_CORRUPT, "%s is a symbolic link", path)
                                : stet_fail_errno(err, errno, "%s", path);
        else {
            st = read_once(fd, path, b, &stamp, &changed, err);
            stet_sys_close(fd);
        }
    }
    if (st == STET_OK && changed)
        st = stet_fail(err, STET_BUSY, "%s is being written all the time", path);
    if (st == STET_OK) {
        st = parse(b->data, b->len, expected_id, survey, out, err);
        if (st == STET_OK)
            out->stamp = stamp;
        else
            stet_fail_in(err, "%s", path);
    }
    stet_buf_release(&own);
    return st;
}

stet_status stet_state_read(const char *path, const char *expected_id, stet_buf *scratch, stet_state *out,
                            stet_error *err) {
    return read_state(path, expected_id, false, scratch, out, err);
}

stet_status stet_state_survey(const char *path, const char *expected_id, stet_buf *scratch, stet_state *out,
                              stet_error *err) {
    return read_state(path, expected_id, true, scratch, out, err);
}

void stet_state_release(stet_state *s) {
    stet_value_release(s->root);
    stet_value_release(s->failed);
    *s = (stet_state){0};
}

stet_status stet_state_refuse_completed(const stet_state *s, const char *id, stet_error *err) {
    stet_value stage = stet_value_get(s->root, "loopStage");
    if (stet_lifecycle_of(&s->counts) != STET_LIFE_COMPLETED ||
        !stet_value_text_is(stage, stet_stage_name(STET_STAGE_DONE)))
        return STET_OK;
    stet_fail(err, STET_CONFLICT, "run %s is completed, and stays as it is", id);
    stet_hint(err, "run it again as a new run: stet runs rerun %s --drive", id);
    return STET_CONFLICT;
}
