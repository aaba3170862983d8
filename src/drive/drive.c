#include "drive/drive_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "drive/estimate.h"
#include "drive/lookout.h"
#include "drive/scratch.h"
#include "files/watch.h"
#include "graph/near.h"
#include "module/javascript.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/sys.h"

/* A file whose last change is nearer than this to the moment it was read may have been changed again within the same
 * tick of the file system's clock: its times prove nothing. */
#define TICK_NS 20000000

bool stet_drive_persist(const stet_project *project) {
    stet_value v = stet_project_setting(project, "scheduler.persist");
    return stet_typeof(v) != STET_BOOL || stet_as_bool(v);
}

stet_status stet_drive_demand_path(const char *text, stet_path *out, stet_error *err) {
    stet_path_push(out, "value");
    if (text[0] == '/') {
        stet_path below = STET_PATH_INIT;
        stet_status status = stet_path_of_pointer(&below, text, strlen(text), err);
        stet_buf_add(&out->buf, stet_path_ref(&below).bytes, stet_path_ref(&below).len);
        stet_path_release(&below);
        return status;
    }
    if (text[0])
        stet_path_push(out, text);
    return STET_OK;
}

/* ---- The program
 * ------------------------------------------------------------------------------------------------------------ */

static stet_value source_of(const char *file, const struct stat *st, int64_t seen_ns) {
    stet_value v = stet_object();
    stet_put(&v, "file", stet_string(file));
    stet_put(&v, "size", stet_int(st->st_size));
    stet_put(&v, "mtimeNs", stet_int((int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec));
    stet_put(&v, "ctimeNs", stet_int((int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec));
    stet_put(&v, "inode", stet_int((int64_t)st->st_ino));
    stet_put(&v, "device", stet_int((int64_t)st->st_dev));
    stet_put(&v, "seenNs", stet_int(seen_ns));
    return v;
}

/* Is the file provably the one that the piece was set up from? */
static bool same_source(stet_value was, stet_value now) {
    static const char *const keys[] = {"file", "size", "mtimeNs", "ctimeNs", "inode", "device"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!stet_equal(stet_get(was, keys[i]), stet_get(now, keys[i])))
            return false;
    int64_t seen = stet_as_int(stet_get(was, "seenNs"));
    return stet_as_int(stet_get(was, "mtimeNs")) + TICK_NS < seen &&
           stet_as_int(stet_get(was, "ctimeNs")) + TICK_NS < seen;
}

typedef struct small_change {
    const char *piece, *doc;
    stet_value source, set, schema;
} small_change;

static stet_status write_small(stet_tx *tx, void *ctx, stet_error *err) {
    small_change *c = ctx;
    stet_status status = STET_OK;
    stet_path path = STET_PATH_INIT;
    if (stet_typeof(c->source) != STET_NULL) {
        stet_path_push(&path, "source");
        status = stet_tx_write(tx, &(stet_docname){c->doc, NULL}, stet_path_ref(&path), stet_retain(c->source), err);
        stet_path_pop(&path);
    }
    if (status == STET_OK && stet_count(c->set) > 0)
        status = stet_piece_set_argument(tx, c->piece, c->set, c->schema, err);
    stet_path_release(&path);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------------------------- */

#define ASK_MS       1000  /* how long a process that watches has for its answer */
#define USE_UP_NODES 10000 /* a larger pattern is released while its graph is built */
#define LOOK_MS      300   /* while watching: how often others are looked for, and files where there is no watch */

/* Documents of files become what files are: by asking whoever watches, else by looking at all of them. */
static stet_status bring_files_up(driver *d, stet_error *err) {
    stet_files_report r;
    stet_status status = STET_OK;
    bool watched = !d->spec->no_scan && stet_files_ask(d->files, ASK_MS);
    if (stet_files_unsettled(d->files) || (!watched && stet_files_was_lost(d->files)))
        status = stet_lookout_follow_all(d->files, d->space, d->spec->branch, err);
    else if (d->out->installed_now)
        status = stet_lookout_follow(d->files, d->space, d->spec->branch, d->piece, err);
    if (status != STET_OK || d->spec->no_scan)
        return status;
    status = stet_files_refresh(d->files, &r, err);
    if (status == STET_OK)
        status = stet_files_settle(d->files, err);
    d->out->files = r.followed;
    d->out->files_changed = r.changed + r.appeared + r.vanished;
    d->out->watched = watched;
    stet_release(r.list);
    return status;
}

/* While watching: the next commit that others, or the thread that watches files, have made. */
static stet_status await_news(driver *d, bool *news, stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    stet_status status = stet_sched_wait(d->sched, LOOK_MS, news, err);
    bool by_hand = stet_lookout_look(d->follow, &why) == STET_LOOKOUT_FAILED;
    if (why.status != STET_OK && d->spec->note)
        d->spec->note(d->spec->ctx, &why);
    stet_error_clear(&why);
    if (status == STET_OK && by_hand) {
        stet_files_report r;
        status = stet_files_scan(d->files, &r, err);
        stet_release(r.list);
    } else if (status == STET_OK && *news) {
        status = stet_files_catch_up(d->files, err);
    }
    return status;
}

/* ---- The program ----------------------------------------------------------------------------------------------- */

/* Parts of the argument of a piece whose program is as it was: its schema is kept with it, the file is not read. */
static stet_status set_argument(driver *d, const stet_piece *piece, int64_t branch, stet_error *err) {
    stet_value hash = stet_get(stet_get(piece->envelope, "process"), "argumentSchema");
    stet_doc_state state = {0};
    if (stet_typeof(hash) == STET_STRING) {
        char *id = stet_asprintf("schema:%s", stet_as_string(&hash, NULL));
        stet_status status = stet_space_load(d->space, branch, &(stet_docname){id, NULL}, -1, &state, err);
        stet_free(id);
        if (status != STET_OK)
            return status;
    }
    small_change c = {.piece = piece->name,
                      .doc = piece->doc,
                      .set = d->spec->set,
                      .schema = state.exists ? stet_get(state.value, "value") : stet_null()};
    stet_status status = stet_space_transact(d->space, d->spec->branch, write_small, &c, NULL, err);
    stet_release(state.value);
    return status;
}

/* Makes the piece what the file says; no more than a stat if nothing changed. */
static stet_status set_up(driver *d, stet_error *err) {
    const stet_drive_spec *spec = d->spec;
    struct stat st;
    char *file;
    stet_status status = stet_file_realpath(spec->pattern, &file, err);
    if (status != STET_OK)
        return status;
    int64_t seen = stet_clock_ns(), branch;
    if (stet_sys_stat(file, &st) != 0) {
        status = stet_fail_errno(err, errno, "%s", spec->pattern);
        stet_free(file);
        return status;
    }
    stet_value source = source_of(file, &st, seen);
    stet_free(file);
    stet_piece *before = NULL;
    status = stet_space_branch(d->space, spec->branch ? spec->branch : "", &branch, err);
    if (status == STET_OK && d->piece && stet_piece_load(d->space, branch, d->piece, -1, &before, NULL) == STET_OK &&
        same_source(stet_get(before->envelope, "source"), source)) {
        if (stet_count(spec->set) > 0)
            status = set_argument(d, before, branch, err);
        stet_piece_free(before);
        stet_release(source);
        return status;
    }
    stet_pattern *pattern = NULL;
    stet_pattern_checks checks = {.module = stet_module_check, .script = stet_javascript_pattern};
    if (status == STET_OK)
        status = stet_pattern_load(spec->pattern, &checks, &pattern, NULL, err);
    if (status == STET_OK && !d->piece) {
        d->piece = stet_strdup(pattern->name);
        if (stet_piece_load(d->space, branch, d->piece, -1, &before, NULL) != STET_OK)
            before = NULL;
    }
    if (status == STET_OK && before && stet_hash_equal(before->program, pattern->hash)) {
        small_change c = {before->name, before->doc, source, spec->set, pattern->argument_schema};
        status = stet_space_transact(d->space, spec->branch, write_small, &c, NULL, err);
    } else if (status == STET_OK) {
        pattern->use_up = pattern->node_count > USE_UP_NODES;
        status = stet_files_unsettle(d->files, err);
        if (status == STET_OK)
            status = stet_sched_install(d->sched, pattern, d->piece, source, spec->set, &d->out->installed, err);
        d->out->installed_now = status == STET_OK;
    }
    stet_piece_free(before);
    stet_pattern_free(pattern);
    stet_release(source);
    return status;
}

/* A cheap way to the name of the piece that a file was set up as: the file's name is no help, so the pattern's own name
 * is needed, which is in the file. It is kept beside the source of the pieces, by the file's path. */
static stet_status piece_of_file(driver *d, stet_error *err) {
    if (d->spec->piece) {
        d->piece = stet_strdup(d->spec->piece);
        return STET_OK;
    }
    if (!d->spec->pattern)
        return stet_fail(err, STET_INVALID, "neither a pattern nor a piece was named");
    char *file;
    stet_status status = stet_file_realpath(d->spec->pattern, &file, err);
    if (status != STET_OK)
        return status;
    int64_t branch;
    stet_doc_state state;
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_of(file, strlen(file)), hex);
    char *id = stet_asprintf("pattern-file:%s", hex);
    status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    if (status == STET_OK)
        status = stet_space_load(d->space, branch, &(stet_docname){id, NULL}, -1, &state, err);
    if (status == STET_OK) {
        stet_value name = state.exists ? stet_get(stet_get(state.value, "value"), "piece") : stet_null();
        if (stet_typeof(name) == STET_STRING)
            d->piece = stet_strdup(stet_as_string(&name, NULL));
        stet_release(state.value);
    }
    stet_free(id);
    stet_free(file);
    return status;
}

typedef struct remember_file {
    const char *id, *piece, *file;
} remember_file;

static stet_status write_remember(stet_tx *tx, void *ctx, stet_error *err) {
    remember_file *r = ctx;
    stet_value envelope = stet_object(), value = stet_object();
    stet_put(&value, "piece", stet_string(r->piece));
    stet_put(&value, "file", stet_string(r->file));
    stet_put(&envelope, "value", value);
    return stet_tx_put(tx, &(stet_docname){r->id, NULL}, envelope, err);
}

static stet_status remember_piece(driver *d, const char *known, stet_error *err) {
    if (!d->spec->pattern || d->spec->piece || (known && strcmp(known, d->piece) == 0))
        return STET_OK;
    char *file, hex[STET_HASH_HEX];
    stet_status status = stet_file_realpath(d->spec->pattern, &file, err);
    if (status != STET_OK)
        return status;
    stet_hash_hex(stet_hash_of(file, strlen(file)), hex);
    char *id = stet_asprintf("pattern-file:%s", hex);
    remember_file r = {id, d->piece, file};
    status = stet_space_transact(d->space, d->spec->branch, write_remember, &r, NULL, err);
    stet_free(id);
    stet_free(file);
    return status;
}

/* A pattern file may have been given another name inside since: then it is another piece. */
static stet_status prepare(driver *d, stet_error *err) {
    stet_status status = piece_of_file(d, err);
    if (status != STET_OK || !d->spec->pattern)
        return status;
    char *known = d->piece ? stet_strdup(d->piece) : NULL;
    if (known && !d->spec->piece) {
        /* Trust the name only if the file is provably the same. */
        int64_t branch;
        stet_piece *p = NULL;
        struct stat st;
        char *file = NULL;
        bool same = false;
        if (stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, NULL) == STET_OK &&
            stet_piece_load(d->space, branch, known, -1, &p, NULL) == STET_OK &&
            stet_file_realpath(d->spec->pattern, &file, NULL) == STET_OK && stet_sys_stat(file, &st) == 0) {
            stet_value now = source_of(file, &st, stet_clock_ns());
            same = same_source(stet_get(p->envelope, "source"), now);
            stet_release(now);
        }
        stet_piece_free(p);
        stet_free(file);
        if (!same) {
            stet_free(d->piece);
            d->piece = NULL;
        }
    }
    status = set_up(d, err);
    if (status == STET_OK)
        status = remember_piece(d, known, err);
    stet_free(known);
    return status;
}

/* ---- Driving
 * ------------------------------------------------------------------------------------------------------------------ */

/* The output of one node, which must be there. */
static stet_status demand_node(driver *d, stet_value name, stet_error *err) {
    int64_t branch;
    stet_piece *p;
    stet_value row;
    const char *node = stet_typeof(name) == STET_STRING ? stet_as_string(&name, NULL) : "";
    stet_status status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    if (status == STET_OK)
        status = stet_piece_load(d->space, branch, d->piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    status = stet_piece_row(d->space, branch, p, node, &row, err);
    if (status == STET_NOT_FOUND)
        stet_piece_hint_node(d->space, branch, p, node, err);
    stet_piece_free(p);
    if (status != STET_OK)
        return status;
    stet_link link;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    if (stet_link_read(stet_get(row, "output"), &link, &path))
        status = stet_sched_demand_cell(d->sched, link.id, link.scope, stet_path_ref(&path), err);
    else
        status = stet_fail(err, STET_INVALID, "node \"%s\" has no output that could be wanted", node);
    stet_path_release(&path);
    stet_release(row);
    return status;
}

static stet_status demand(driver *d, stet_error *err) {
    if (stet_count(d->spec->demand) == 0 && stet_count(d->spec->nodes) == 0)
        return stet_sched_demand_piece(d->sched, d->piece, err);
    stet_status status = stet_sched_touch_piece(d->sched, d->piece, err);
    d->out->part = true;
    for (size_t i = 0; i < stet_count(d->spec->nodes) && status == STET_OK; i++)
        status = demand_node(d, stet_at(d->spec->nodes, i), err);
    char *doc = stet_piece_doc(d->piece);
    for (size_t i = 0; i < stet_count(d->spec->demand) && status == STET_OK; i++) {
        stet_value v = stet_at(d->spec->demand, i);
        stet_path path = STET_PATH_INIT;
        status = stet_drive_demand_path(stet_typeof(v) == STET_STRING ? stet_as_string(&v, NULL) : "", &path, err);
        if (status == STET_OK)
            status = stet_sched_demand_cell(d->sched, doc, NULL, stet_path_ref(&path), err);
        stet_path_release(&path);
    }
    stet_free(doc);
    return status;
}

size_t stet_drive_stood(const stet_sched_report *r) {
    size_t off = r->ran + r->aside + r->left + (r->failed > r->failed_now ? r->failed - r->failed_now : 0);
    return r->total > off ? r->total - off : 0;
}

static void take_report(driver *d, const stet_sched_report *r) {
    stet_release(d->out->report.problems);
    d->out->report = *r;
    d->out->stood = stet_drive_stood(r);
    stet_release(d->out->failed_before);
    d->out->failed_before = stet_retain(stet_sched_failed_before(d->sched));
}

/* Starts a stopped piece again: whoever drives it wants it to go on. */
static stet_status unstop(stet_tx *tx, void *ctx, stet_error *err) {
    return stet_piece_set_stopped(tx, ctx, false, err);
}

static stet_status wake(driver *d, bool *stopped, bool start, stet_error *err) {
    int64_t branch;
    stet_piece *p;
    stet_status status = stet_space_branch(d->space, d->spec->branch ? d->spec->branch : "", &branch, err);
    if (status == STET_OK)
        status = stet_piece_load(d->space, branch, d->piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    *stopped = p->stopped;
    if (p->stopped && start)
        status = stet_space_transact(d->space, d->spec->branch, unstop, p, NULL, err);
    stet_piece_free(p);
    return status;
}

static stet_status drive(driver *d, stet_error *err) {
    bool stopped, news;
    stet_status status = prepare(d, err);
    if (status == STET_OK)
        status = wake(d, &stopped, !d->spec->send || d->spec->send->settle, err);
    if (status == STET_OK)
        status = bring_files_up(d, err);
    if (status == STET_OK && d->spec->send) {
        const stet_drive_event *e = d->spec->send;
        status = stet_sched_send(d->sched, d->piece, e->stream, e->event, e->id, e->sent, err);
        if (status != STET_OK || !e->settle)
            return status;
    }
    if (status == STET_OK)
        status = demand(d, err);
    if (status == STET_OK && (d->spec->explain || d->spec->dry_run))
        status = drive_explain(d, err);
    d->out->dry = d->spec->dry_run;
    if (status != STET_OK || d->spec->dry_run)
        return status;
    if (d->spec->watch)
        d->follow = stet_lookout_start(d->project, d->spec->space ? d->spec->space : "main");
    for (bool first = true;; first = false) {
        stet_sched_report r = {0};
        int64_t begun = stet_clock_monotonic_us();
        status = stet_sched_settle(d->sched, &r, err);
        take_report(d, &r);
        if (d->spec->watch && status == STET_OK && r.runs > 0)
            status = stet_files_save(d->files, err);
        if (status != STET_OK || !d->spec->watch)
            return status;
        if (d->spec->settled && (first || r.runs > 0)) {
            status = d->spec->settled(d->spec->ctx, &r, (stet_clock_monotonic_us() - begun) / 1000, err);
            if (status != STET_OK)
                return status;
        }
        do {
            if (drive_is_cancelled(d))
                return stet_fail(err, STET_CANCELLED, "stopped");
            status = await_news(d, &news, err);
            if (status == STET_OK)
                status = wake(d, &stopped, false, err);
            if (status == STET_OK && stopped)
                return STET_OK; /* stet piece stop */
        } while (status == STET_OK && !news);
        if (status != STET_OK)
            return status;
    }
}

static stet_status drive_in(stet_project *project, const stet_drive_spec *spec, stet_drive_outcome *out,
                            stet_error *err) {
    driver d = {.project = project, .spec = spec, .out = out};
    int64_t start = stet_clock_monotonic_us();
    *out = (stet_drive_outcome){.report = {.problems = stet_array()}};
    stet_sched_opts opts = {.persist = stet_drive_persist(project),
                            .observe_only = spec->observe_only,
                            .retry_failed = spec->retry_failed,
                            .ctx = &d,
                            .cancelled = drive_is_cancelled,
                            .event = drive_on_event,
                            .log = drive_on_log,
                            .jobs = spec->jobs,
                            .stop_on_failure = spec->stop_on_failure};
    stet_status status = stet_space_open(project, spec->space ? spec->space : "main", 0, &d.space, err);
    if (status == STET_OK) {
        stet_observe_switch(d.space, opts.persist);
        status = stet_files_open(project, d.space, &d.files, err);
        opts.files = d.files;
    }
    if (status == STET_OK) {
        status = stet_sched_open(project, d.space, spec->branch, &opts, &d.sched, err);
    }
    if (status == STET_OK)
        status = drive(&d, err);
    if (d.sched)
        status = drive_end_run(&d, status, err);
    out->piece = d.piece ? d.piece : stet_strdup("");
    if (!out->run_id)
        out->run_id = stet_strdup("");
    stet_lookout_stop(d.follow);
    if (d.files && out->report.runs > 0 && status != STET_INTERNAL) {
        /* A failure here costs the next run a second look at some files. */
        stet_status saved = stet_files_save(d.files, status == STET_OK ? err : NULL);
        status = status == STET_OK ? saved : status;
    }
    stet_sched_close(d.sched);
    stet_files_close(d.files);
    out->duration_ms = (stet_clock_monotonic_us() - start) / 1000;
    stet_space_close(d.space);
    return status;
}

stet_status stet_drive(stet_project *project, const stet_drive_spec *spec, stet_drive_outcome *out, stet_error *err) {
    if (!spec->dry_run)
        return drive_in(project, spec, out, err);
    stet_scratch scratch;
    *out =
        (stet_drive_outcome){.report = {.problems = stet_array()}, .piece = stet_strdup(""), .run_id = stet_strdup("")};
    stet_status status = stet_scratch_open(project, &scratch, err);
    if (status != STET_OK)
        return status;
    stet_drive_outcome_release(out);
    status = drive_in(scratch.project, spec, out, err);
    stet_scratch_close(&scratch);
    return status;
}

void stet_drive_outcome_release(stet_drive_outcome *out) {
    stet_free(out->piece);
    stet_free(out->run_id);
    stet_release(out->report.problems);
    stet_release(out->actions);
    stet_release(out->failed_before);
    stet_release(out->metrics);
    *out = (stet_drive_outcome){0};
}

stet_value stet_drive_outcome_value(const stet_drive_outcome *out) {
    const stet_sched_report *r = &out->report;
    const struct {
        const char *name;
        size_t n;
    } counts[] = {{"ran", r->ran},           {"stood", out->stood},       {"failed", r->failed},
                  {"aside", r->aside},       {"left", r->left},           {"runs", r->runs},
                  {"nodes", r->total},       {"unchanged", r->unchanged}, {"effects", r->effects},
                  {"conflicts", r->dropped}, {"loaded", r->loaded},       {"flushes", r->flushes}};
    stet_value v = stet_object(), causes = stet_object();
    stet_put(&v, "piece", stet_string(out->piece));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        stet_put(&v, counts[i].name, stet_int((int64_t)counts[i].n));
    stet_put(&causes, "unknown", stet_int((int64_t)r->causes[0]));
    stet_put(&causes, "dirty", stet_int((int64_t)r->causes[1]));
    stet_put(&causes, "asked", stet_int((int64_t)r->causes[2]));
    stet_put(&v, "causes", causes);
    if (out->installed_now) {
        stet_value in = stet_object();
        stet_put(&in, "created", stet_bool(out->installed.created));
        stet_put(&in, "generation", stet_int(out->installed.generation));
        stet_put(&in, "added", stet_int((int64_t)out->installed.added));
        stet_put(&in, "changed", stet_int((int64_t)out->installed.altered));
        stet_put(&in, "gone", stet_int((int64_t)out->installed.gone));
        stet_put(&in, "kept", stet_int((int64_t)out->installed.kept));
        stet_put(&v, "setup", in);
    }
    if (out->files > 0) {
        stet_put(&v, "files", stet_int((int64_t)out->files));
        stet_put(&v, "filesChanged", stet_int((int64_t)out->files_changed));
        stet_put(&v, "watched", stet_bool(out->watched));
    }
    if (out->dry)
        stet_put(&v, "dryRun", stet_bool(true));
    if (stet_typeof(out->actions) == STET_ARRAY)
        stet_put(&v, "actions", stet_retain(out->actions));
    if (stet_typeof(out->metrics) == STET_OBJECT)
        stet_put(&v, "metrics", stet_retain(out->metrics));
    stet_put(&v, "durationMs", stet_int(out->duration_ms));
    stet_put(&v, "runId", out->run_id[0] ? stet_string(out->run_id) : stet_null());
    stet_put(&v, "committed", stet_bool(out->committed));
    stet_put(&v, "problems", stet_retain(r->problems));
    if (out->part)
        stet_put(&v, "part", stet_bool(true));
    if (stet_count(out->failed_before) > 0)
        stet_put(&v, "failedBefore", stet_retain(out->failed_before));
    return v;
}
