/* runs_panel.c - runs as people see them: a line in a list, and one run with its tasks. */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "operation/runs_common.h"
#include "os/file.h"

#define ID_COLUMNS      26
#define PROJECT_COLUMNS 16
#define TASKS_SHOWN     40

/* "20261115T174500Z-", with which the ids begin that stet makes. */
static bool is_stamp(const char *id) {
    static const char shape[] = "00000000T000000Z-";
    for (size_t i = 0; shape[i]; i++)
        if (shape[i] == '0' ? id[i] < '0' || id[i] > '9' : id[i] != shape[i])
            return false;
    return id[sizeof shape - 1] != 0;
}

const char *stet_runs_short(const char *id) {
    const char *rest = is_stamp(id) ? id + strlen("00000000T000000Z-") : id;
    size_t len = strlen(rest);
    if (len <= ID_COLUMNS)
        return rest;
    const char *random = strrchr(rest, '-');
    return random && strlen(random) > 8 && strlen(random) <= ID_COLUMNS ? random + 1 : rest + len - ID_COLUMNS;
}

/* The command with short ids in place of whole ones, as they are typed. */
static void put_command(stet_render *r, const char *command, const char *id) {
    const char *at = id && *id ? strstr(command, id) : NULL;
    if (at == NULL) {
        stet_text_plain(r, command, strlen(command));
        return;
    }
    const char *brief = stet_runs_short(id);
    stet_text_plain(r, command, (size_t)(at - command));
    stet_text_plain(r, brief, strlen(brief));
    stet_text_plain(r, at + strlen(id), strlen(at + strlen(id)));
}

void stet_runs_put_command(stet_render *r, stet_value command, stet_value record) {
    stet_value id = stet_value_get(record, "runId"), by = stet_value_get(record, "resolvedBy");
    const char *text = stet_value_text(&command, ""), *whole = stet_value_text(&id, ""),
               *mender = stet_value_text(&by, "");
    put_command(r, text, *mender && strstr(text, mender) ? mender : whole);
}

/* How long a record's run took, or how long it has been going on; false: not known. */
static bool duration_of(stet_value record, char out[STET_TIME_TEXT]) {
    stet_value from = stet_value_get(record, "createdAt"), to = stet_value_get(record, "updatedAt"),
               life = stet_value_get(record, "lifecycle");
    size_t n, m;
    int64_t a, b;
    const char *s = stet_value_as_string(&from, &n), *e = stet_value_as_string(&to, &m);
    if (s == NULL || e == NULL || !stet_time_parse(s, n, &a) || !stet_time_parse(e, m, &b))
        return false;
    if (stet_value_text_is(life, "running"))
        b = stet_clock_ms();
    stet_duration_print(b > a ? b - a : 0, out);
    return true;
}

const char *stet_runs_what(stet_value record, const char *app, stet_value *keep) {
    *keep = stet_value_get(record, "title");
    if (stet_value_type(*keep) != STET_TYPE_STRING)
        *keep = stet_value_get(record, app);
    return stet_value_type(*keep) == STET_TYPE_STRING ? stet_value_as_string(keep, NULL) : "";
}

static void put_what(stet_table *t, stet_value record) {
    stet_value failure = stet_value_get(record, "failure"), title, task, message;
    if (stet_value_type(failure) == STET_TYPE_OBJECT) {
        task = stet_value_get(failure, "task");
        message = stet_value_get(failure, "message");
        stet_table_cellf(t, "%s: %s", stet_value_as_string(&task, NULL), stet_value_as_string(&message, NULL));
    } else
        stet_table_cell(t, stet_runs_what(record, "appId", &title));
}

bool stet_runs_several_projects(stet_value rows) {
    for (size_t i = 1; i < stet_value_count(rows); i++)
        if (!stet_value_equal(stet_value_get(stet_value_at(rows, i), "repo"),
                              stet_value_get(stet_value_at(rows, 0), "repo")))
            return true;
    return false;
}

void stet_runs_cell_project(stet_table *t, stet_value row) {
    stet_value repo = stet_value_get(row, "repo");
    const char *name = stet_file_basename(stet_value_text(&repo, ""));
    size_t len = strlen(name), fits = stet_text_fitting(name, len, PROJECT_COLUMNS);
    if (fits == len)
        stet_table_cell(t, name);
    else
        stet_table_cellf(t, "%.*s\xe2\x80\xa6", (int)stet_text_fitting(name, len, PROJECT_COLUMNS - 1), name);
}

void stet_runs_put_records(stet_render *r, stet_value records) {
    static const char *const heads[] = {"RUN", "STATE", "AGE", "TOOK", "DONE"};
    bool several = stet_runs_several_projects(records);
    stet_table t = {.columns = several ? 7 : 6};
    if (stet_value_count(records) == 0)
        return;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        stet_table_cell(&t, heads[i]);
    if (several)
        stet_table_cell(&t, "PROJECT");
    stet_table_cell(&t, "WHAT");
    for (size_t i = 0; i < stet_value_count(records); i++) {
        stet_value rec = stet_value_at(records, i), id = stet_value_get(rec, "runId"),
                   life = stet_value_get(rec, "lifecycle"), actions = stet_value_get(rec, "actions");
        bool stale = stet_value_text_is(stet_value_get(rec, "freshness"), "stale");
        const char *l = stet_value_text(&life, "");
        char age[STET_TIME_TEXT], took[STET_TIME_TEXT] = "-";
        stet_runs_age(rec, "createdAt", age);
        if (!duration_of(rec, took))
            snprintf(took, sizeof took, "-");
        stet_table_cell(&t, stet_runs_short(stet_value_text(&id, "")));
        stet_table_style(&t, stet_runs_style(l));
        stet_table_cellf(&t, "%s%s", l, stale ? "*" : "");
        stet_table_cell(&t, age);
        stet_table_cell(&t, took);
        stet_table_cellf(&t, "%lld/%lld", (long long)stet_value_as_int(stet_value_get(actions, "done")),
                         (long long)stet_value_as_int(stet_value_get(actions, "total")));
        if (several)
            stet_runs_cell_project(&t, rec);
        put_what(&t, rec);
    }
    stet_table_print(&t, r, true);
}

static void put_line(stet_render *r, const char *name, stet_value object, const char *key) {
    if (stet_value_type(stet_value_get(object, key)) == STET_TYPE_NULL)
        return;
    stet_buf_printf(r->out, "  %-12s", name);
    stet_runs_put(r, object, key);
    stet_buf_char(r->out, '\n');
}

static void put_labels(stet_render *r, stet_value labels) {
    for (size_t i = 0; i < stet_value_count(labels); i++) {
        stet_buf_printf(r->out, i ? ", " : "  %-12s", "labels");
        stet_text_value(r, stet_value_at(labels, i));
    }
    if (stet_value_count(labels) > 0)
        stet_buf_char(r->out, '\n');
}

void stet_runs_put_record(stet_render *r, stet_value rec) {
    stet_value id = stet_value_get(rec, "runId"), life = stet_value_get(rec, "lifecycle"),
               from = stet_value_get(rec, "provenance"), title = stet_value_get(rec, "title");
    const char *l = stet_value_text(&life, "");
    char text[STET_TIME_TEXT];
    bool going = strcmp(l, "running") == 0;
    stet_text_styled(r, STET_STYLE_BOLD, "run ");
    stet_text_styled(r, STET_STYLE_BOLD, stet_runs_short(stet_value_text(&id, "")));
    stet_buf_str(r->out, "  ");
    stet_text_styled(r, stet_runs_style(l), l);
    if (going && duration_of(rec, text)) {
        stet_buf_printf(r->out, " for %s", text);
    } else {
        stet_runs_age(rec, "createdAt", text);
        stet_buf_printf(r->out, strcmp(text, "now") == 0 ? " %s" : " %s ago", text);
        if (duration_of(rec, text))
            stet_buf_printf(r->out, ", took %s", text);
    }
    stet_buf_char(r->out, '\n');
    put_line(r, "id", rec, "runId");
    if (!stet_value_equal(title, stet_value_get(rec, "appId")))
        put_line(r, "title", rec, "title");
    put_line(r, "app", rec, "appId");
    put_line(r, "project", rec, "repo");
    if (!stet_value_text_is(stet_value_get(rec, "loopStage"), "done"))
        put_line(r, "stage", rec, "loopStage");
    if (stet_value_type(from) == STET_TYPE_OBJECT) {
        stet_buf_printf(r->out, "  %-12s", "rerun of");
        stet_runs_put(r, from, "rerunOf");
        stet_buf_printf(r->out, ", generation %lld\n",
                        (long long)stet_value_as_int(stet_value_get(from, "generation")));
    }
    put_labels(r, stet_value_get(rec, "labels"));
    put_line(r, "resolved by", rec, "resolvedBy");
    put_line(r, "archived", rec, "archivedAt");
    put_line(r, "because", rec, "archiveReason");
    if (!stet_value_text_is(stet_value_get(rec, "freshness"), "valid"))
        put_line(r, "freshness", rec, "freshness");
}

static void put_task(stet_table *t, stet_value task) {
    static const struct {
        const char *status, *mark;
        stet_style style;
    } marks[] = {{"completed", "\xe2\x9c\x93", STET_STYLE_GOOD},
                 {"failed", "\xe2\x9c\x97", STET_STYLE_BAD},
                 {"running", ">", STET_STYLE_BOLD},
                 {"", "\xc2\xb7", STET_STYLE_DIM}};
    stet_value status = stet_value_get(task, "status"), id = stet_value_get(task, "id"),
               error = stet_value_get(task, "error"), from = stet_value_get(task, "startedAt"),
               to = stet_value_get(task, "endedAt"), said;
    stet_buf words = STET_BUF(1024);
    const char *why = stet_value_text_at_or(task, "reason", "", &said);
    char took[STET_TIME_TEXT] = "";
    int64_t a, b;
    size_t n, m, kind = 0;
    const char *s = stet_value_as_string(&from, &n), *e = stet_value_as_string(&to, &m);
    while (*marks[kind].status && !stet_value_text_is(status, marks[kind].status))
        kind++;
    if (s != NULL && e != NULL && stet_time_parse(s, n, &a) && stet_time_parse(e, m, &b))
        stet_duration_print(b > a ? b - a : 0, took);
    else if (s != NULL && stet_value_text_is(status, "running") && stet_time_parse(s, n, &a))
        stet_duration_print(stet_clock_ms() > a ? stet_clock_ms() - a : 0, took);
    if (stet_fleet_last_words(stet_value_get(error, "details"), &words))
        why = stet_buf_cstr(&words);
    else if (stet_value_type(error) == STET_TYPE_OBJECT)
        why = stet_value_text_at_or(error, "message", "", &said);
    else if (stet_value_type(error) == STET_TYPE_STRING)
        why = stet_value_as_string(&error, NULL);
    stet_table_style(t, marks[kind].style);
    stet_table_cellf(t, "  %s %s", marks[kind].mark, stet_value_text(&id, ""));
    stet_table_cell(t, took);
    stet_table_cell(t, why);
    stet_buf_release(&words);
}

/* Cheap actions are counted, not listed (`settle`), unless they failed. */
static bool is_counted(stet_value task) {
    return stet_value_text_is(stet_value_get(task, "kind"), "settle") &&
           !stet_value_text_is(stet_value_get(task, "status"), "failed");
}

void stet_runs_put_tasks(stet_render *r, stet_value tasks) {
    stet_table t = {.columns = 3};
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value task = stet_value_at(tasks, i);
        if (is_counted(task))
            continue;
        if (shown < TASKS_SHOWN)
            put_task(&t, task);
        left += shown >= TASKS_SHOWN;
        shown++;
    }
    if (shown > 0)
        stet_table_print(&t, r, false);
    if (left > 0)
        stet_buf_printf(r->out, "  and %zu more: stet runs show --json lists them\n", left);
}
