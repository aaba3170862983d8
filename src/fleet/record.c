/* record.c - derives the record of a run from its state.json. */

#include "fleet/record.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/file.h"

#define INPUT_MEMBER_MAX 200
#define GENERATION_MAX   ((int64_t)1 << 52)

const char *stet_freshness_name(stet_freshness f) {
    static const char *const names[] = {"valid", "stale", "missing"};
    return names[f];
}

/* A string's bytes up to a NUL or to `max`, cut where a character begins. */
static const char *copy_text(stet_value v, size_t max, stet_arena *arena) {
    size_t len = 0;
    const char *s = stet_value_as_string(&v, &len);
    if (s == NULL)
        return "";
    size_t n = strnlen(s, len);
    if (n > max)
        n = stet_utf8_valid_prefix(s, max);
    return n == 0 ? "" : stet_arena_strndup(arena, s, n);
}

#define TEXT_MAX 400

static const char *text_of(stet_value object, const char *key, stet_arena *arena) {
    return copy_text(stet_value_get(object, key), TEXT_MAX, arena);
}

/* "name=value name=value", each value and the whole bounded: enough to be found by, whatever the inputs weigh. */
static const char *digest_inputs(stet_value inputs, stet_arena *arena) {
    stet_buf all = STET_BUF(STET_FLEET_RECORD_INPUTS_MAX + INPUT_MEMBER_MAX * 2 + 64), one = STET_BUF(16384);
    for (size_t i = 0; i < stet_value_count(inputs) && all.len < STET_FLEET_RECORD_INPUTS_MAX; i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        stet_value v = stet_value_at(inputs, i);
        stet_buf_clear(&one);
        one.overflow = false;
        if (stet_value_type(v) == STET_TYPE_STRING) {
            size_t n;
            const char *s = stet_value_as_string(&v, &n);
            stet_buf_add(&one, s, strnlen(s, n < INPUT_MEMBER_MAX ? n : INPUT_MEMBER_MAX));
        } else
            stet_json_write(&one, v, STET_JSON_CANONICAL);
        size_t n = one.len < INPUT_MEMBER_MAX ? one.len : INPUT_MEMBER_MAX;
        if (all.len > 0)
            stet_buf_char(&all, ' ');
        stet_buf_add(&all, key,
                     stet_utf8_valid_prefix(key, strnlen(key, len < INPUT_MEMBER_MAX ? len : INPUT_MEMBER_MAX)));
        stet_buf_char(&all, '=');
        stet_buf_add(&all, stet_buf_cstr(&one), stet_utf8_valid_prefix(stet_buf_cstr(&one), n));
    }
    size_t n = all.len < STET_FLEET_RECORD_INPUTS_MAX ? all.len : STET_FLEET_RECORD_INPUTS_MAX;
    const char *out = n == 0 ? "" : stet_arena_strndup(arena, all.data, stet_utf8_valid_prefix(all.data, n));
    stet_buf_release(&all);
    stet_buf_release(&one);
    return out;
}

/* Its whole argument, which has its inputs in it; otherwise what was set for it. */
static stet_value what_it_had(stet_value root) {
    stet_value argument = stet_value_get(root, "argument");
    return stet_value_type(argument) == STET_TYPE_OBJECT ? argument : stet_value_get(root, "inputs");
}

stet_provenance stet_provenance_read(stet_value v, stet_arena *arena) {
    stet_provenance p = {.rerun_of = text_of(v, "rerunOf", arena),
                         .rerun_of_repo = copy_text(stet_value_get(v, "rerunOfRepo"), 4096, arena),
                         .origin_run_id = text_of(v, "originRunId", arena),
                         .reason = text_of(v, "reason", arena),
                         .created_at = text_of(v, "createdAt", arena),
                         .actor = text_of(v, "actor", arena),
                         .generation = stet_value_as_int(stet_value_get(v, "generation"))};
    if (p.rerun_of[0] == 0)
        p.generation = 0;
    else if (p.generation < 1)
        p.generation = 1;
    else if (p.generation > GENERATION_MAX) /* the next one must be a number, too */
        p.generation = GENERATION_MAX;
    return p;
}

stet_value stet_provenance_value(const stet_provenance *p) {
    if (p->generation == 0)
        return stet_value_null();
    stet_value v = stet_value_object();
    stet_value_put(&v, "rerunOf", stet_value_string(p->rerun_of));
    stet_value_put(&v, "rerunOfRepo", stet_value_string(p->rerun_of_repo));
    stet_value_put(&v, "originRunId", stet_value_string(p->origin_run_id));
    stet_value_put(&v, "generation", stet_value_int(p->generation));
    stet_value_put(&v, "reason", stet_value_string(p->reason));
    stet_value_put(&v, "createdAt", stet_value_string(p->created_at));
    stet_value_put(&v, "actor", stet_value_string(p->actor));
    return v;
}

const char *stet_labels_text(stet_value labels, stet_arena *arena) {
    stet_buf b = STET_BUF(8192);
    for (size_t i = 0; i < stet_value_count(labels); i++) {
        stet_value v = stet_value_at(labels, i);
        const char *s = stet_value_as_string(&v, NULL);
        if (s == NULL || *s == 0 || strchr(s, '\n') != NULL)
            continue;
        stet_buf_str(&b, s);
        stet_buf_char(&b, '\n');
    }
    const char *out = b.len > 0 && !b.overflow ? stet_arena_strndup(arena, b.data, b.len) : "";
    stet_buf_release(&b);
    return out;
}

stet_value stet_fleet_record_labels(const stet_fleet_record *r) {
    stet_value labels = stet_value_array();
    for (const char *s = r->labels, *end; (end = strchr(s, '\n')) != NULL; s = end + 1)
        stet_value_push(&labels, stet_value_string_n(s, (size_t)(end - s)));
    return labels;
}

bool stet_fleet_record_has_label(const stet_fleet_record *r, const char *label) {
    size_t len = strlen(label);
    for (const char *s = r->labels, *end; (end = strchr(s, '\n')) != NULL; s = end + 1)
        if ((size_t)(end - s) == len && memcmp(s, label, len) == 0)
            return true;
    return false;
}

static const char *hash_text(stet_value v, stet_arena *arena) {
    char hex[STET_HASH_HEX];
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_hash_hex(stet_hash_of(text, len), hex);
    stet_free(text);
    return stet_arena_strndup(arena, hex, 16);
}

/* Only for runs of pieces: what other programs ran is not known. */
static void derive_work(stet_value root, stet_arena *arena, stet_fleet_record *r) {
    static const char *const of_place[] = {"space", "branch"}, *const of_part[] = {"demand", "nodes"};
    stet_value options = stet_value_get(root, "options"), v = stet_value_object(), argument;
    r->work = r->place = "";
    for (size_t i = 0; i < 2; i++)
        stet_value_put(&v, of_place[i], stet_value_retain(stet_value_get(options, of_place[i])));
    stet_value_put(&v, "piece", stet_value_string(r->piece));
    if (r->piece[0] != 0 && !stet_value_as_bool(stet_value_get(options, "ownArgument")))
        r->place = hash_text(v, arena);
    for (size_t i = 0; i < 2; i++) {
        stet_value part = stet_value_get(options, of_part[i]);
        r->part += stet_value_count(part) > 0;
        stet_value_put(&v, of_part[i], stet_value_retain(part));
    }
    if (r->piece[0] != 0 &&
        (stet_value_find(root, "argument", 8, &argument) || stet_value_find(root, "argumentFile", 12, &argument))) {
        stet_value_put(&v, "argument", stet_value_retain(argument));
        r->work = hash_text(v, arena);
    }
    stet_value_release(v);
}

stet_lifecycle stet_fleet_record_surface(const stet_fleet_record *r) {
    return r->derived == STET_LIFE_BLOCKED && r->counts.tasks[STET_TASK_FAILED] > 0 ? STET_LIFE_FAILED : r->derived;
}

bool stet_fleet_last_words(stet_value details, stet_buf *out) {
    static const char *const streams[] = {"stderr", "stdout"};
    stet_value code = stet_value_get(details, "exit");
    for (size_t i = 0; i < 2 && stet_value_type(code) == STET_TYPE_INT; i++) {
        stet_value v = stet_value_get(details, streams[i]);
        size_t len = 0, from;
        const char *s = stet_value_as_string(&v, &len);
        if (s == NULL)
            continue;
        len = strnlen(s, len);
        while (len > 0 && (s[len - 1] == '\n' || s[len - 1] == ' ' || s[len - 1] == '\r'))
            len--;
        for (from = len; from > 0 && s[from - 1] != '\n' && s[from - 1] != '\r';)
            from--;
        if (len == from)
            continue;
        size_t most = STET_FLEET_RECORD_MESSAGE_MAX - 24, n = len - from < most ? len - from : most;
        stet_buf_add(out, s + from, stet_utf8_valid_prefix(s + from, n));
        stet_buf_printf(out, " (exit %lld)", (long long)stet_value_as_int(code));
        return true;
    }
    return false;
}

static void derive_failure(const stet_state *s, stet_arena *arena, stet_fleet_record *r) {
    stet_value error = stet_value_get(s->failed, "error");
    r->failed_task = text_of(s->failed, "id", arena);
    stet_buf said = STET_BUF(STET_FLEET_RECORD_MESSAGE_MAX * 2);
    bool told = stet_fleet_last_words(stet_value_get(error, "details"), &said);
    if (told)
        r->failed_message = stet_arena_strdup(arena, stet_buf_cstr(&said));
    stet_buf_release(&said);
    if (told)
        return;
    if (stet_value_type(error) == STET_TYPE_OBJECT)
        error = stet_value_get(error, "message");
    r->failed_message = copy_text(error, STET_FLEET_RECORD_MESSAGE_MAX, arena);
}

void stet_fleet_record_derive(const stet_state *s, const char *repo, uint32_t repo_index, stet_arena *arena,
                              stet_fleet_record *out) {
    stet_value root = s->root, app = stet_value_get(root, "app"), summary = stet_value_get(root, "summary");
    stet_fleet_record r = {.id = text_of(root, "id", arena),
                           .app_id = text_of(app, "id", arena),
                           .app_version = text_of(app, "version", arena),
                           .app_title = text_of(app, "title", arena),
                           .workflow_id = text_of(root, "workflowId", arena),
                           .title = text_of(root, "title", arena),
                           .piece = text_of(root, "piece", arena),
                           .actor = text_of(root, "actor", arena),
                           .created_at = text_of(root, "createdAt", arena),
                           .updated_at = text_of(root, "updatedAt", arena),
                           .loop_stage = text_of(root, "loopStage", arena),
                           .inputs = digest_inputs(what_it_had(root), arena),
                           .labels = stet_labels_text(stet_value_get(root, "labels"), arena),
                           .provenance = stet_provenance_read(stet_value_get(root, "provenance"), arena),
                           .created_ms = s->created_ms,
                           .updated_ms = s->updated_ms,
                           .stood = stet_value_as_int(stet_value_get(summary, "stood")),
                           .ran = stet_value_as_int(stet_value_get(summary, "ran")),
                           .saved_ms = stet_value_as_int(stet_value_get(summary, "savedMs")),
                           .active_ms = stet_value_as_int(stet_value_get(summary, "activeMs")),
                           .counts = s->counts,
                           .fingerprint = s->fingerprint,
                           .stamp = s->stamp,
                           .derived = stet_lifecycle_of(&s->counts),
                           .repo = repo,
                           .repo_index = repo_index,
                           .archived_at = "",
                           .archive_reason = "",
                           .resolved_by = ""};
    r.lifecycle = r.under = stet_fleet_record_surface(&r);
    derive_failure(s, arena, &r);
    derive_work(root, arena, &r);
    *out = r;
}

/* The line of the index: keys sorted, so that reading is one walk beside the members. The lifecycle is not in it: it is
 * classified again from the counts. */
typedef enum field_kind { TEXT, NUMBER, COUNT, HASH } field_kind;

typedef struct field {
    const char *key;
    field_kind kind;
    size_t at;
} field;

#define AT(member) offsetof(stet_fleet_record, member)

static const field fields[] = {
    {"activeMs", NUMBER, AT(active_ms)},
    {"actor", TEXT, AT(actor)},
    {"appId", TEXT, AT(app_id)},
    {"appTitle", TEXT, AT(app_title)},
    {"appVersion", TEXT, AT(app_version)},
    {"changed", NUMBER, AT(stamp.ctime_ns)},
    {"commits", COUNT, AT(counts.commits)},
    {"completed", COUNT, AT(counts.tasks[STET_TASK_COMPLETED])},
    {"createdAt", TEXT, AT(created_at)},
    {"failed", COUNT, AT(counts.tasks[STET_TASK_FAILED])},
    {"failedMessage", TEXT, AT(failed_message)},
    {"failedTask", TEXT, AT(failed_task)},
    {"fingerprint", HASH, AT(fingerprint)},
    {"gatedCommits", COUNT, AT(counts.gated_commits)},
    {"id", TEXT, AT(id)},
    {"inode", NUMBER, AT(stamp.inode)},
    {"inputs", TEXT, AT(inputs)},
    {"labels", TEXT, AT(labels)},
    {"loopStage", TEXT, AT(loop_stage)},
    {"modified", NUMBER, AT(stamp.mtime_ns)},
    {"openFeedback", COUNT, AT(counts.open_feedback)},
    {"part", NUMBER, AT(part)},
    {"pending", COUNT, AT(counts.tasks[STET_TASK_PENDING])},
    {"piece", TEXT, AT(piece)},
    {"place", TEXT, AT(place)},
    {"ran", NUMBER, AT(ran)},
    {"repo", COUNT, AT(repo_index)},
    {"rerunActor", TEXT, AT(provenance.actor)},
    {"rerunAt", TEXT, AT(provenance.created_at)},
    {"rerunGeneration", NUMBER, AT(provenance.generation)},
    {"rerunOf", TEXT, AT(provenance.rerun_of)},
    {"rerunOfRepo", TEXT, AT(provenance.rerun_of_repo)},
    {"rerunOrigin", TEXT, AT(provenance.origin_run_id)},
    {"rerunReason", TEXT, AT(provenance.reason)},
    {"running", COUNT, AT(counts.tasks[STET_TASK_RUNNING])},
    {"savedMs", NUMBER, AT(saved_ms)},
    {"settle", COUNT, AT(counts.settle)},
    {"settled", COUNT, AT(counts.settled)},
    {"size", NUMBER, AT(stamp.size)},
    {"skipped", COUNT, AT(counts.tasks[STET_TASK_SKIPPED])},
    {"stood", NUMBER, AT(stood)},
    {"title", TEXT, AT(title)},
    {"updatedAt", TEXT, AT(updated_at)},
    {"work", TEXT, AT(work)},
    {"workflowId", TEXT, AT(workflow_id)},
};
#define FIELDS (sizeof fields / sizeof fields[0])

void stet_fleet_record_write(const stet_fleet_record *r, stet_buf *out) {
    const char *base = (const char *)r;
    char sep = '{', hex[STET_HASH_HEX];
    for (size_t i = 0; i < FIELDS; i++) {
        const void *p = base + fields[i].at;
        const char *text = "";
        int64_t number = 0;
        if (fields[i].kind == TEXT)
            text = *(const char *const *)p;
        else if (fields[i].kind == NUMBER)
            number = *(const int64_t *)p;
        else if (fields[i].kind == COUNT)
            number = *(const uint32_t *)p;
        else {
            stet_hash_hex(*(const stet_hash *)p, hex);
            text = hex;
        }
        if (*text == 0 && number == 0)
            continue;
        stet_buf_char(out, sep);
        sep = ',';
        stet_buf_char(out, '"');
        stet_buf_str(out, fields[i].key);
        stet_buf_add(out, "\":", 2);
        if (*text != 0)
            stet_json_write_string(out, text, strlen(text));
        else
            stet_buf_printf(out, "%lld", (long long)number);
    }
    stet_buf_char(out, '}');
}

static stet_status read_field(const field *f, stet_value v, stet_arena *arena, stet_fleet_record *r, stet_error *err) {
    void *p = (char *)r + f->at;
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    int64_t n = stet_value_as_int(v);
    if ((s == NULL) != (f->kind == NUMBER || f->kind == COUNT) || (s == NULL && stet_value_type(v) != STET_TYPE_INT))
        return stet_fail(err, STET_CORRUPT, "\"%s\" is of the wrong type", f->key);
    switch (f->kind) {
    case TEXT:
        *(const char **)p = stet_arena_strndup(arena, s, strnlen(s, len));
        return STET_OK;
    case NUMBER:
        *(int64_t *)p = n;
        return STET_OK;
    case COUNT:
        if (n < 0 || n > UINT32_MAX)
            return stet_fail(err, STET_CORRUPT, "\"%s\" is out of range", f->key);
        *(uint32_t *)p = (uint32_t)n;
        return STET_OK;
    case HASH:
        break;
    }
    if (!stet_hash_of_hex(s, len, p))
        return stet_fail(err, STET_CORRUPT, "\"%s\" is no hash", f->key);
    return STET_OK;
}

stet_status stet_fleet_record_read(const char *line, size_t len, const char *const *repos, size_t repo_count,
                                   stet_arena *arena, stet_fleet_record *out, stet_error *err) {
    stet_value v = stet_value_null();
    stet_json_limits limits = {.max_depth = 4};
    stet_status st = stet_json_read(line, len, &limits, &v, err);
    if (st != STET_OK)
        return st;
    stet_fleet_record r = {0};
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].kind == TEXT)
            *(const char **)(void *)((char *)&r + fields[i].at) = "";
    r.archived_at = r.archive_reason = r.resolved_by = "";
    size_t f = 0;
    for (size_t i = 0; i < stet_value_count(v) && st == STET_OK; i++) {
        const char *key = stet_value_key_at(v, i, NULL);
        int order = 1;
        while (f < FIELDS && (order = strcmp(fields[f].key, key)) < 0)
            f++;
        st = order == 0 ? read_field(&fields[f], stet_value_at(v, i), arena, &r, err)
                        : stet_fail(err, STET_CORRUPT, "\"%.40s\" is no member of a row", key);
    }
    stet_value_release(v);
    if (st != STET_OK)
        return st;
    if (!stet_run_id_valid(r.id, strlen(r.id)) || r.repo_index >= repo_count ||
        !stet_time_parse(r.created_at, strlen(r.created_at), &r.created_ms) ||
        !stet_time_parse(r.updated_at, strlen(r.updated_at), &r.updated_ms))
        return stet_fail(err, STET_CORRUPT, "id, repo or times are wrong");
    r.repo = repos[r.repo_index];
    for (int i = 0; i < STET_TASK_STATUSES; i++)
        r.counts.total += r.counts.tasks[i];
    r.derived = stet_lifecycle_of(&r.counts);
    r.lifecycle = r.under = stet_fleet_record_surface(&r);
    *out = r;
    return STET_OK;
}

char *stet_fleet_record_dir(const stet_fleet_record *r) {
    return stet_asprintf("%s/.stet/runs/%s", r->repo, r->id);
}

static stet_value text_or_null(const char *s) {
    return *s != 0 ? stet_value_string(s) : stet_value_null();
}

/* Actions that were done, and that were to be done: the tasks, or what was counted if there are none. */
static stet_value actions_value(const stet_fleet_record *r) {
    stet_value v = stet_value_object();
    int64_t total = (int64_t)r->counts.total - r->counts.settle,
            done = (int64_t)r->counts.tasks[STET_TASK_COMPLETED] - r->counts.settled;
    if (total == 0)
        total = done = r->ran;
    stet_value_put(&v, "done", stet_value_int(done));
    stet_value_put(&v, "total", stet_value_int(total));
    return v;
}

stet_value stet_fleet_record_value(const stet_fleet_record *r) {
    stet_value v = stet_value_object(), tasks = stet_value_object();
    char hex[STET_HASH_HEX];
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_FLEET_RECORD_VERSION));
    stet_value_put(&v, "runId", stet_value_string(r->id));
    stet_value_put(&v, "appId", text_or_null(r->app_id));
    stet_value_put(&v, "appVersion", text_or_null(r->app_version));
    stet_value_put(&v, "workflowId", text_or_null(r->workflow_id));
    stet_value_put(&v, "title", text_or_null(r->title));
    stet_value_put(&v, "piece", text_or_null(r->piece));
    stet_value_put(&v, "actor", text_or_null(r->actor));
    stet_value_put(&v, "repo", stet_value_string(r->repo));
    stet_value_put(&v, "runDir", stet_value_stringf("%s/.stet/runs/%s", r->repo, r->id));
    stet_value_put(&v, "statePath", stet_value_stringf("%s/.stet/runs/%s/state.json", r->repo, r->id));
    stet_value_put(&v, "createdAt", stet_value_string(r->created_at));
    stet_value_put(&v, "updatedAt", stet_value_string(r->updated_at));
    stet_value_put(&v, "loopStage", stet_value_string(r->loop_stage));
    stet_value_put(&v, "lifecycle", stet_value_string(stet_lifecycle_name(r->lifecycle)));
    stet_value_put(&v, "derivedLifecycle", stet_value_string(stet_lifecycle_name(r->derived)));
    stet_value_put(&v, "resolvedBy", text_or_null(r->resolved_by));
    stet_value_put(&v, "archived", stet_value_bool(r->archived));
    stet_value_put(&v, "archivedAt", text_or_null(r->archived_at));
    stet_value_put(&v, "archiveReason", text_or_null(r->archive_reason));
    stet_value_put(&tasks, "total", stet_value_int(r->counts.total));
    for (int i = 0; i < STET_TASK_STATUSES; i++)
        stet_value_put(&tasks, stet_task_status_name((stet_task_status)i), stet_value_int(r->counts.tasks[i]));
    stet_value_put(&v, "tasks", tasks);
    stet_value_put(&v, "actions", actions_value(r));
    stet_value_put(&v, "commitCount", stet_value_int(r->counts.commits));
    stet_value_put(&v, "verifierGatedCommitCount", stet_value_int(r->counts.gated_commits));
    stet_value_put(&v, "openFeedbackCount", stet_value_int(r->counts.open_feedback));
    if (r->failed_task[0] != 0) {
        stet_value failure = stet_value_object();
        stet_value_put(&failure, "task", stet_value_string(r->failed_task));
        stet_value_put(&failure, "message", stet_value_string(r->failed_message));
        stet_value_put(&v, "failure", failure);
    } else
        stet_value_put(&v, "failure", stet_value_null());
    stet_value_put(&v, "labels", stet_fleet_record_labels(r));
    stet_value_put(&v, "inputsDigest", stet_value_string(r->inputs));
    stet_hash_hex(r->fingerprint, hex);
    stet_value_put(&v, "sourceFingerprint", stet_value_stringf("sha256:%s", hex));
    stet_value_put(&v, "freshness", stet_value_string(stet_freshness_name(r->freshness)));
    stet_value_put(&v, "provenance", stet_provenance_value(&r->provenance));
    return v;
}

int stet_fleet_record_compare(const stet_fleet_record *a, const stet_fleet_record *b) {
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    int order = strcmp(a->id, b->id);
    return order != 0 ? order : strcmp(a->repo, b->repo);
}

int64_t stet_fleet_record_duration(const stet_fleet_record *r, int64_t now_ms) {
    bool going = r->lifecycle == STET_LIFE_RUNNING;
    int64_t ms = (going ? now_ms : r->updated_ms) - r->created_ms;
    return ms > 0 ? ms : 0;
}
