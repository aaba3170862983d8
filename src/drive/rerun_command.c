/* rerun_command.c - runs an up-to-date command again in a copy of the project, and compares. */

#include "drive/rerun_command.h"

#include <stdlib.h>
#include <string.h>

#include "drive/drive_internal.h"
#include "files/files.h"
#include "files/look.h"
#include "files/path.h"
#include "os/clock.h"
#include "os/file.h"
#include "scheduler/standing.h"

#define CLOSING 100 /* how often removing the copy is tried: a supervisor may still write to its journal */

void drive_rerun_copy_close(stet_rerun_copy *copy) {
    if (!copy->open)
        return;
    for (int i = 0; i < CLOSING && stet_file_remove_tree(copy->scratch.dir, NULL) != STET_OK; i++)
        stet_clock_sleep_ms(10);
    stet_scratch_close(&copy->scratch);
    copy->open = false;
}

static stet_status open_copy(stet_rerun_copy *copy, const stet_rerun_place *at, stet_error *err) {
    stet_drive_spec spec = {.space = at->space, .branch = at->branch};
    if (copy->open && strcmp(copy->space, at->space) == 0 && strcmp(copy->branch, at->branch) == 0)
        return STET_OK;
    drive_rerun_copy_close(copy);
    stet_status status = stet_scratch_open_tree(copy->of, &copy->scratch, err);
    if (status != STET_OK)
        return status;
    copy->open = true;
    copy->space = at->space;
    copy->branch = at->branch;
    return drive_bring_up(copy->scratch.project, &spec, false, err);
}

/* One command in the copy. */
typedef struct command_again {
    stet_project *project;
    stet_space *space;
    int64_t branch;
    const stet_rerun_place *at;
    stet_action_record was;
    stet_value before; /* [value or null]: of each document that it writes, as they are stored */
} command_again;

static bool is_outside(const char *id) {
    return id[0] == '/' || strncmp(id, "..", 2) == 0;
}

static bool has_text(const char *text, size_t len, const char *part) {
    return *part && memmem(text, len, part, strlen(part));
}

/* Is the project's path in a variable that the command is given by name? */
static bool is_in_env(stet_value module, const char *root) {
    stet_value env = stet_value_get(module, "env");
    for (size_t i = 0; i < stet_value_count(env) && stet_value_type(env) == STET_TYPE_ARRAY; i++) {
        stet_value name = stet_value_at(env, i);
        const char *text = stet_value_as_string(&name, NULL), *value = text ? getenv(text) : NULL;
        if (value && strstr(value, root))
            return true;
    }
    return false;
}

/* May it reach the project itself, by a path that does not depend on where it runs? */
static bool reaches(const command_again *c, stet_value node, const char *root) {
    const char *home = getenv("HOME"), *cwd;
    stet_value module = stet_value_get(node, "module"), dir = stet_value_get(module, "cwd");
    size_t len;
    char *text = stet_json_print(node, STET_JSON_CANONICAL, &len);
    bool in_home = home && *home && strncmp(root, home, strlen(home)) == 0;
    bool yes = has_text(text, len, root) || stet_value_as_bool(stet_value_get(module, "allow-outside")) ||
               (in_home && (has_text(text, len, "~") || has_text(text, len, "HOME"))) || is_in_env(module, root);
    stet_free(text);
    cwd = stet_value_type(dir) == STET_TYPE_STRING ? stet_value_as_string(&dir, NULL) : "";
    yes |= is_outside(cwd);
    for (size_t i = 0; i < c->was.known_count && !yes; i++) {
        char *path = stet_file_of_id(c->was.known[i].name.id, strlen(c->was.known[i].name.id));
        yes = path && is_outside(path);
        stet_free(path);
    }
    return yes;
}

/* The same of what it reads: a script, or data that names files. */
static stet_status reaches_by_read(const command_again *c, stet_files *files, const char *root, bool *yes,
                                   stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->was.read_count && status == STET_OK && !*yes; i++) {
        const stet_observed *r = &c->was.reads[i];
        stet_look look;
        stet_doc_state doc;
        char *path = r->space ? NULL : stet_file_of_id(r->name.id, strlen(r->name.id));
        if (path && !is_outside(path)) {
            status = stet_look_search(stet_files_root(files), path, root, yes, &look, err);
        } else if (!path && !r->space) { /* what another space holds is data as well, and is not looked into */
            status = stet_space_load(c->space, c->branch, &r->name, -1, &doc, err);
            if (status == STET_OK) {
                size_t len;
                char *text = stet_json_print(doc.value, STET_JSON_CANONICAL, &len);
                *yes = has_text(text, len, root);
                stet_free(text);
                stet_value_release(doc.value);
            }
        }
        stet_free(path);
    }
    return status;
}

/* The documents that it writes, as they are now. */
static stet_status read_outputs(const command_again *c, stet_value *out, stet_error *err) {
    *out = stet_value_array();
    for (size_t i = 0; i < c->was.known_count; i++) {
        stet_doc_state doc;
        stet_status status = stet_space_load(c->space, c->branch, &c->was.known[i].name, -1, &doc, err);
        if (status != STET_OK) {
            stet_value_release(*out);
            *out = stet_value_null();
            return status;
        }
        stet_value_push(out, doc.exists ? stet_value_retain(stet_value_get(doc.value, "value")) : stet_value_null());
        stet_value_release(doc.value);
    }
    return STET_OK;
}

static bool is_cancelled(void *ctx) {
    const stet_rerun_spec *spec = ctx;
    return spec->cancelled && spec->cancelled(spec->ctx);
}

/* Runs it, with nothing in the result store. `*error`: a text if it failed; otherwise null. */
static stet_status run_again(const command_again *c, stet_value *outputs, stet_value *error, stet_error *err) {
    char *persist = stet_project_path(c->project, "persist");
    stet_error failed = STET_ERROR_INIT;
    stet_value value;
    const stet_docname *name = &c->was.known[0].name;
    for (size_t i = 1; i < c->was.known_count; i++)
        if (strncmp(name->id, "file:", 5) == 0)
            name = &c->was.known[i].name;
    *outputs = *error = stet_value_null();
    stet_status status = stet_file_remove_tree(persist, err);
    stet_free(persist);
    if (status == STET_OK)
        status = stet_observe_distrust(c->space, c->branch, &c->was.key, 1, STET_REASON_REQUESTED, err);
    if (status != STET_OK)
        return status;
    stet_drive_spec spec = {.space = c->at->space,
                            .branch = c->at->branch,
                            .retry_failed = true,
                            .ctx = (void *)(uintptr_t)c->at->spec,
                            .cancelled = is_cancelled};
    status = stet_drive_fresh(c->project, &spec, name, STET_PATH_ROOT, &value, &failed);
    if (status == STET_OK)
        stet_value_release(value);
    else if (status == STET_FAILED || status == STET_NOT_FOUND)
        *error = stet_value_string(failed.message);
    else
        stet_error_move(err, &failed);
    if (status == STET_FAILED || status == STET_NOT_FOUND)
        status = STET_OK;
    stet_error_clear(&failed);
    if (status == STET_OK)
        status = read_outputs(c, outputs, err);
    if (status != STET_OK)
        stet_value_release(*error);
    return status;
}

static stet_value shown(stet_value v) {
    size_t len;
    if (stet_value_type(v) == STET_TYPE_NULL)
        return stet_value_string("(absent)");
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_value out = stet_value_string(len > STET_RERUN_SHOWN ? "(too long to show)" : text);
    stet_free(text);
    return out;
}

static void differ(stet_rerun *out, const char *cell, stet_value stored, stet_value recomputed) {
    stet_value d = stet_value_object();
    stet_value_put(&d, "cell", stet_value_string(cell));
    stet_value_put(&d, "stored", stored);
    stet_value_put(&d, "recomputed", recomputed);
    stet_value_push(&out->differences, d);
}

static void tell(const command_again *c, stet_value outputs, stet_value error, stet_rerun *out) {
    out->outcome = STET_RERUN_DIFFERS;
    if (stet_value_type(error) == STET_TYPE_STRING) {
        differ(out, "error", stet_value_string("(succeeded)"), stet_value_retain(error));
        return;
    }
    for (size_t i = 0; i < c->was.known_count; i++)
        if (!stet_value_equal(stet_value_at(c->before, i), stet_value_at(outputs, i)))
            differ(out, c->was.known[i].name.id, shown(stet_value_at(c->before, i)), shown(stet_value_at(outputs, i)));
}

static stet_status compare(const command_again *c, stet_rerun *out, stet_error *err) {
    stet_value first, error, second, error_again;
    stet_status status = run_again(c, &first, &error, err);
    if (status != STET_OK)
        return status;
    out->outcome = STET_RERUN_SAME;
    if (stet_value_type(error) != STET_TYPE_NULL || !stet_value_equal(first, c->before)) {
        status = run_again(c, &second, &error_again, err);
        if (status == STET_OK && stet_value_equal(first, second) && stet_value_equal(error, error_again))
            tell(c, first, error, out);
        else if (status == STET_OK)
            out->outcome = STET_RERUN_VARIES;
        if (status == STET_OK) {
            stet_value_release(second);
            stet_value_release(error_again);
        }
    }
    stet_value_release(first);
    stet_value_release(error);
    return status;
}

/* Is it up to date in the copy? */
static stet_status is_up_to_date(const command_again *c, bool *yes, stet_error *err) {
    stet_standing all;
    *yes = false;
    if (!c->was.observed || c->was.failed || c->was.known_count == 0)
        return STET_OK;
    stet_status status = stet_standing_load(c->space, c->branch, &all, err);
    if (status != STET_OK)
        return status;
    *yes = stet_standing_state(&all, &c->was) == STET_STATE_STANDS;
    stet_standing_release(&all);
    return STET_OK;
}

stet_status drive_rerun_command(stet_rerun_copy *copy, const stet_rerun_place *at, int64_t action, stet_rerun *out,
                                stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_files *files = NULL;
    command_again c = {.at = at, .before = stet_value_null()};
    const char *root = stet_project_root(copy->of);
    bool reached = false, stands = false;
    stet_status status = open_copy(copy, at, err);
    if (status != STET_OK)
        return status;
    c.project = copy->scratch.project;
    status = stet_space_open(c.project, at->space, STET_SPACE_MUST_EXIST, &c.space, err);
    if (status == STET_OK)
        status = stet_space_branch(c.space, at->branch, &c.branch, err);
    if (status == STET_OK)
        status = stet_files_open(c.project, c.space, &files, err);
    if (status == STET_OK)
        status = stet_observe_get(c.space, action, &arena, &c.was, err);
    if (status == STET_OK)
        status = is_up_to_date(&c, &stands, err);
    reached = status == STET_OK && stands && reaches(&c, out->row, root);
    if (status == STET_OK && stands && !reached)
        status = reaches_by_read(&c, files, root, &reached, err);
    stet_files_close(files);
    out->outcome = STET_RERUN_LEFT_OUT;
    if (status == STET_OK && stands && !reached) {
        status = read_outputs(&c, &c.before, err);
        if (status == STET_OK)
            status = compare(&c, out, err);
    }
    stet_value_release(c.before);
    stet_space_close(c.space);
    stet_arena_release(&arena);
    if (status != STET_OK || out->outcome == STET_RERUN_DIFFERS || out->outcome == STET_RERUN_VARIES)
        drive_rerun_copy_close(copy); /* what reads its outputs is to be compared with them as they were */
    return status;
}
