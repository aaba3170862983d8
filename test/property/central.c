/* central.c - the central property, under everything that a person does, at random.
 *
 * Whatever happened before, a run leaves what a fresh project makes of the same programs, documents and files; a second
 * run runs nothing; and `check` finds nothing.
 *
 * The fresh project is the judge: it shares the code that computes, and nothing of what remembers. Actions that fail
 * keep their last good output, so an action that waits for one of those has no value to compare. The fresh project's
 * own record says which actions wait, and none of them may be called up to date here. Everything else is compared:
 * outputs of all wanted actions, results, which actions fail and with which error, states, cells that events have
 * written, and answers of `get --fresh`.
 *
 *     STET_TEST_SEED=7 STET_TEST_STEPS=5000 build/test/property/central
 *
 * A world is one project and STEPS steps. Each step draws its choices from a number of its own, so that steps can be
 * left out. On a difference, steps that do not matter are left out, and the rest is printed as commands for a shell,
 * with a line to replay it here. STET_TEST_KINDS=NAME,NAME... leaves only these kinds of steps; STET_TEST_FROM=N begins
 * at step N.
 */

#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../central_program.h"
#include "../engine.h"
#include "../faults.h"
#include "base/vec.h"
#include "drive/drive.h"
#include "files/files.h"
#include "graph/argument.h"
#include "graph/piece.h"
#include "memory/observe.h"
#include "module/javascript.h"
#include "scheduler/standing.h"

/* Of db/db.h, whose stet_run is another one than that of scheduler/module.h. */
typedef struct stet_stmt stet_stmt;
void stet_db_keep_connections(bool on);
void stet_db_drop_connections(const char *prefix);
void stet_db_exec(stet_db *db, const char *sql);
stet_stmt *stet_db_stmt(stet_db *db, const char *sql);
bool stet_step(stet_stmt *s);
const char *stet_column_text(stet_stmt *s, int column, size_t *len);
STET_CHECKED stet_status stet_db_begin_write(stet_db *db, stet_error *err);
STET_CHECKED stet_status stet_db_commit(stet_db *db, stet_error *err);

extern char **environ;

enum { STEPS = 40 };

typedef enum kind {
    DOC,     /* a document is written or deleted */
    FAR_DOC, /* one of another space, which may not be there yet */
    AWAY,    /* the argument of a piece in another space */
    SET,     /* a key of the argument */
    UNSET,   /* back to its default */
    DEFAULT, /* of the argument or of the cell, in the pattern */
    NODE,    /* of the pattern: another one, a new one */
    REMOVE,  /* of the pattern */
    RENAME,  /* of the pattern */
    RESULT,  /* of the pattern: what is in the result */
    CODE,    /* a file of functions */
    OUTPUT,  /* what an action has made is overwritten */
    EVENT,   /* sent to a handler */
    FORK,    /* of a branch */
    CUT,     /* a branch is deleted; its name can be given again */
    GC,      /* frees what nobody needs, in another process */
    EMPTY,   /* the scheduler's tables are */
    OBSERVE, /* a run that publishes nothing */
    DRY,     /* a run that only says what it would do */
    PART,    /* a run for a part of the result */
    PULL,    /* a part of the result is asked for, and what it needs runs */
    KILLED,  /* a run in another process, killed at any system call */
    BESIDE,  /* a run in another process, to its end; half of them while this one works, too */
    REOPEN,  /* the handle that stays open is closed */
    KINDS
} kind;

static const struct {
    const char *name;
    int weight;
} kinds[KINDS] = {
    [DOC] = {"doc", 200},      [FAR_DOC] = {"far", 60},     [AWAY] = {"away", 50},    [SET] = {"set", 160},
    [UNSET] = {"unset", 30},   [DEFAULT] = {"default", 60}, [NODE] = {"node", 110},   [REMOVE] = {"remove", 20},
    [RENAME] = {"rename", 20}, [RESULT] = {"result", 30},   [CODE] = {"code", 40},    [OUTPUT] = {"output", 40},
    [EVENT] = {"event", 40},   [FORK] = {"fork", 25},       [CUT] = {"cut", 8},       [GC] = {"gc", 5},
    [EMPTY] = {"empty", 10},   [OBSERVE] = {"observe", 15}, [DRY] = {"dry", 6},       [PART] = {"part", 40},
    [PULL] = {"pull", 40},     [KILLED] = {"killed", 4},    [BESIDE] = {"beside", 5}, [REOPEN] = {"reopen", 20},
};

typedef struct step {
    int kind;
    uint64_t dice;
} step;

typedef struct steps {
    step *at;
    size_t len, cap;
    uint32_t drop; /* of the first programs: a bit for each node that is left out, then one for each default */
} steps;

/* A project that is open. `held` stays open while others work on it. */
typedef struct world {
    model m;
    int at;     /* the branch that is worked on */
    int often;  /* of ten steps so many are followed by a run of everything, which is compared */
    int driven; /* the piece that the step at hand has run whole, on the branch it is on; -1: none */
    const char *root;
    stet_project *project;
    stet_space *space;
    struct held {
        stet_project *project;
        stet_space *space;
        stet_files *files;
        stet_sched *sched;
        bool wants[PIECES];
    } held[LINES];
    stet_arena arena;
    stet_buf script;
    char *shown[PIECES]; /* what the pattern files hold */
    bool unseen[LINES];  /* a file has changed that nobody has looked at since, on this branch */
} world;

/* The fresh project, and who in it depends on something that failed. */
typedef struct fresh {
    stet_project *project;
    stet_space *space;
    stet_files *files;
    stet_sched *sched;
    stet_arena arena;
    stet_action_record *records[PIECES];
    size_t counts[PIECES];
    stet_standing standing;
    STET_VEC(const char *) tainted; /* documents */
    STET_VEC(const char *) needed;  /* documents that the results consist of, or that were read for them */
    size_t failed[PIECES];
    bool followed[PIECES]; /* some action reads what another failed to make */
    bool away_failed[FAR]; /* the piece in this space failed, or waits for one that did */
} fresh;

static jmp_buf out_of_here;
static stet_buf difference = STET_BUF(0);
static char *program_path;          /* of this program, for processes of its own */
static const char *court = "judge"; /* where the fresh projects are: a process that replays has its own */
static struct totals {
    long steps, settled, judges, outputs, results, made, failures, again, kills, worlds, sent, pulled, states, waiting;
} totals;
static bool on[KINDS];

static void differ(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void differ(const char *format, ...) {
    char text[4000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stet_buf_clear(&difference);
    stet_buf_str(&difference, text);
    longjmp(out_of_here, 1);
}

#define must(call)                                                                                                     \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            differ("%s: %s: %s", #call, stet_status_name(status_), err.message);                                       \
    } while (0)

static const char *keep(world *w, stet_buf *b) {
    const char *text = stet_arena_strndup(&w->arena, stet_buf_cstr(b), b->len);
    stet_buf_release(b);
    return text;
}

static stet_value parse(const char *text) {
    stet_value v;
    must(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

static char *print(stet_value v) {
    return stet_json_print(v, STET_JSON_CANONICAL, NULL);
}

static line *current(world *w) {
    return &w->m.lines[w->at];
}

static const char *branch_flag(const world *w) {
    static char flag[32];
    snprintf(flag, sizeof flag, "%s%s", w->at ? " --branch " : "", w->at ? line_names[w->at] : "");
    return flag;
}

/* NULL: deleted. */
static void write_doc(stet_space *s, const char *branch, const char *cell, const char *text) {
    stet_tx *tx;
    must(stet_tx_begin(s, branch, &tx, &err));
    if (text) {
        char *id;
        stet_path path = STET_PATH_INIT;
        must(stet_cell_parse(cell, false, &id, &path, &err));
        must(stet_tx_set(tx, cell, NULL, parse(text), &err));
        must(stet_piece_mark_set(tx, &(stet_docname){id, NULL}, stet_path_ref(&path), &err));
        stet_path_release(&path);
        stet_free(id);
    } else {
        must(stet_tx_delete(tx, cell, NULL, &err));
    }
    must(stet_tx_commit(tx, NULL, &err));
}

static void write_file(const char *root, const char *name, const char *text) {
    char *path = stet_file_join(root, name);
    if (text)
        must(stet_file_replace(path, text, strlen(text), 0644, &err));
    else
        must(stet_file_remove(path, &err));
    stet_free(path);
}

static stet_value sets_of(const program *p) {
    stet_value set = stet_value_null();
    for (int k = 0; k < KEYS; k++) {
        char key[8];
        if (!p->sets[k])
            continue;
        snprintf(key, sizeof key, "k%d", k);
        if (stet_value_type(set) == STET_TYPE_NULL)
            set = stet_value_object();
        stet_value_put(&set, key, parse(p->sets[k]));
    }
    return set;
}

static const stet_pattern_checks pattern_checks = {.module = stet_module_check};

static bool is_tainted(const fresh *f, const char *id) {
    for (size_t i = 0; i < f->tainted.len; i++)
        if (strcmp(f->tainted.at[i], id) == 0)
            return true;
    return false;
}

/* Of another space. */
static bool is_tainted_away(const fresh *f, const char *id) {
    for (int i = 0; i < FAR; i++)
        if (f->away_failed[i] && strncmp(id, "piece:", 6) == 0 && id[6] == *away_names[i])
            return true;
    return false;
}

static bool reads_tainted(const fresh *f, const stet_action_record *r) {
    for (size_t i = 0; i < r->read_count; i++)
        if (r->reads[i].space ? is_tainted_away(f, r->reads[i].name.id) : is_tainted(f, r->reads[i].name.id))
            return true;
    return false;
}

static void taint(fresh *f, const stet_action_record *r) {
    for (size_t i = 0; i < r->known_count; i++)
        *stet_vec_add(&f->tainted) = r->known[i].name.id;
    for (size_t i = 0; i < r->declared_count; i++)
        *stet_vec_add(&f->tainted) = r->declared[i].name.id;
}

static bool writes_tainted(const fresh *f, const stet_action_record *r) {
    for (size_t i = 0; i < r->declared_count; i++)
        if (is_tainted(f, r->declared[i].name.id))
            return true;
    for (size_t i = 0; i < r->known_count; i++)
        if (is_tainted(f, r->known[i].name.id))
            return true;
    return false;
}

/* Has it run here, and does it wait for nothing that failed? */
static bool stands_there(const fresh *f, const stet_action_record *r) {
    return r->observed && stet_standing_of(&f->standing, r->action) == STET_STATE_STANDS;
}

/* Of node "nID", or NULL. */
static const stet_action_record *record_there(const fresh *f, int piece, int id) {
    char name[16];
    snprintf(name, sizeof name, "n%d", id);
    for (size_t i = 0; i < f->counts[piece]; i++)
        if (strcmp(f->records[piece][i].key.action, name) == 0)
            return &f->records[piece][i];
    return NULL;
}

static void find_tainted(fresh *f) {
    stet_standing_release(&f->standing);
    must(stet_observe_catch_up(f->space, &err));
    must(stet_standing_load(f->space, 0, &f->standing, &err));
    for (int p = 0; p < PIECES; p++) {
        char doc[16];
        int64_t next;
        snprintf(doc, sizeof doc, "piece:p%d", p);
        stet_action_filter all = {.piece = doc, .generation = -1, .limit = 100000};
        must(stet_observe_list(f->space, 0, &all, &f->arena, &f->records[p], &f->counts[p], &next, &err));
        for (size_t i = 0; i < f->counts[p]; i++) {
            const stet_action_record *r = &f->records[p][i];
            if (r->failed) {
                taint(f, r);
                f->failed[p]++;
            } else if (!stands_there(f, r)) {
                /* Nobody wants it, or it waits for one that failed: then its last good output stays here, and a fresh
                 * project has none. */
                char *id = stet_asprintf("%s:node:%s", r->key.piece, r->key.action);
                *stet_vec_add(&f->tainted) = stet_arena_strdup(&f->arena, id);
                stet_free(id);
                taint(f, r);
            }
        }
    }
    for (bool more = true; more;) {
        more = false;
        for (int p = 0; p < PIECES; p++)
            for (size_t i = 0; i < f->counts[p]; i++) {
                const stet_action_record *r = &f->records[p][i];
                if (!reads_tainted(f, r))
                    continue;
                f->followed[p] = true;
                if (!writes_tainted(f, r)) {
                    taint(f, r);
                    more = true;
                }
            }
    }
}

static bool is_needed(const fresh *f, const char *id) {
    for (size_t i = 0; i < f->needed.len; i++)
        if (strcmp(f->needed.at[i], id) == 0)
            return true;
    return false;
}

static void need(fresh *f, const char *id) {
    if (!is_needed(f, id))
        *stet_vec_add(&f->needed) = stet_arena_strdup(&f->arena, id);
}

static void need_links(fresh *f, stet_value v);

/* What a link leads to, where it leads: not everything that its document holds. */
static void need_place(fresh *f, stet_value v, stet_pathref path) {
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t cursor = 0, len;
    stet_link l;
    stet_path ignored = STET_PATH_INIT;
    while (!stet_link_read(v, &l, &ignored) && stet_path_next(path, &cursor, &scratch, &key, &len)) {
        size_t index;
        if (stet_value_type(v) == STET_TYPE_ARRAY && stet_path_index(key, len, &index) && index < stet_value_count(v))
            v = stet_value_at(v, index);
        else if (stet_value_type(v) != STET_TYPE_OBJECT || !stet_value_find(v, key, len, &v))
            v = stet_value_null();
    }
    need_links(f, v);
    stet_path_release(&ignored);
    stet_buf_release(&scratch);
}

static void need_links(fresh *f, stet_value v) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    if (stet_link_read(v, &l, &path)) {
        char *name = print(v);
        if (!l.space && !is_needed(f, name)) {
            stet_doc_state d;
            need(f, name); /* the link itself, so that circles end */
            need(f, l.id);
            must(stet_space_load(f->space, 0, &(stet_docname){l.id, NULL}, -1, &d, &err));
            if (d.exists)
                need_place(f, stet_value_get(d.value, "value"), stet_path_ref(&path));
            stet_value_release(d.value);
        }
        stet_free(name);
    } else if (stet_value_type(v) == STET_TYPE_OBJECT || stet_value_type(v) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < stet_value_count(v); i++)
            need_links(f, stet_value_at(v, i));
    }
    stet_path_release(&path);
}

/* A first run makes everything fresh that an action may read; what it then did not read is not wanted again. */
static bool action_needed(const fresh *f, const stet_action_record *r) {
    for (size_t i = 0; i < r->declared_count; i++)
        if (is_needed(f, r->declared[i].name.id))
            return true;
    return false;
}

static void find_needed(fresh *f, const bool which[PIECES]) {
    f->needed.len = 0;
    for (int p = 0; p < PIECES; p++) {
        stet_doc_state d;
        if (!which[p])
            continue;
        must(stet_space_load(f->space, 0, &(stet_docname){p ? "piece:p1" : "piece:p0", NULL}, -1, &d, &err));
        need_links(f, stet_value_get(d.value, "value"));
        stet_value_release(d.value);
        for (size_t i = 0; i < f->counts[p]; i++) { /* these run without being asked for */
            const stet_action_record *r = &f->records[p][i];
            for (size_t k = 0; k < r->declared_count && (r->kind == STET_ACTION_EFFECT || r->envelope_count > 0); k++)
                need(f, r->declared[k].name.id);
        }
    }
    for (size_t before = 0; before != f->needed.len;) {
        before = f->needed.len;
        for (int p = 0; p < PIECES; p++)
            for (size_t i = 0; i < f->counts[p]; i++)
                if (action_needed(f, &f->records[p][i]))
                    for (size_t k = 0; k < f->records[p][i].read_count; k++)
                        if (!f->records[p][i].reads[k].space)
                            need(f, f->records[p][i].reads[k].name.id);
    }
}

static void install(stet_sched *s, const program *p, int piece) {
    stet_buf b = STET_BUF(0);
    char name[8];
    stet_pattern *pattern;
    stet_sched_installed in;
    stet_value set = sets_of(p);
    snprintf(name, sizeof name, "p%d", piece);
    write_program(p, piece, &b);
    must(stet_pattern_parse("central.json", stet_buf_cstr(&b), b.len, &pattern_checks, &pattern, NULL, &err));
    must(stet_sched_install(s, pattern, name, stet_value_null(), set, &in, &err));
    stet_pattern_free(pattern);
    stet_value_release(set);
    stet_buf_release(&b);
}

/* What each table of a space holds, as SQL. SQLite takes longer to open a database, and to prepare stet's statements,
 * than a run of these small programs does: so the fresh project's databases stay connected, and are emptied. What stet
 * itself remembers goes with its handles. */
typedef struct table {
    const char *wipe, *dump;
} table;
static STET_VEC(table) tables;

static void learn_tables(stet_db *db) {
    static stet_arena arena = STET_ARENA_INIT;
    stet_stmt *q = stet_db_stmt(
        db, "SELECT 'DELETE FROM ' || t.name, 'SELECT ''INSERT INTO ' || t.name || ' VALUES('' || ' || "
            "group_concat('quote(' || c.name || ')', ' || '','' || ') || ' || '');'' FROM ' || t.name FROM "
            "sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' GROUP BY t.name");
    while (stet_step(q))
        *stet_vec_add(&tables) = (table){stet_arena_strdup(&arena, stet_column_text(q, 0, NULL)),
                                         stet_arena_strdup(&arena, stet_column_text(q, 1, NULL))};
}

static char *image_of(stet_space *s) {
    stet_buf b = STET_BUF(0);
    stet_db *db = stet_space_db(s);
    if (tables.len == 0)
        learn_tables(db);
    for (size_t i = 0; i < tables.len; i++)
        for (stet_stmt *q = stet_db_stmt(db, tables.at[i].dump); stet_step(q);)
            stet_buf_str(&b, stet_column_text(q, 0, NULL));
    return stet_buf_take(&b, NULL);
}

static void restore(stet_project *p, const char *name, const char *image) {
    stet_space *s;
    must(stet_space_open(p, name, 0, &s, &err));
    stet_db *db = stet_space_db(s);
    must(stet_db_begin_write(db, &err));
    for (size_t i = 0; i < tables.len; i++)
        stet_step(stet_db_stmt(db, tables.at[i].wipe));
    stet_db_exec(db, image);
    must(stet_db_commit(db, &err));
    stet_space_close(s);
}

/* Where an empty space of this name lies, made once. */
static char *template_of(const char *name) {
    char *root = stet_file_join(court, "template"), *below = stet_asprintf(".stet/local/spaces/%s.db", name);
    char *path = stet_file_join(root, below);
    if (!stet_file_exists(path)) {
        stet_project *p;
        stet_space *s;
        bool created;
        must(stet_project_init(root, &created, &err));
        must(stet_project_open(root, &p, &err));
        must(stet_space_open(p, name, 0, &s, &err));
        stet_space_close(s);
        stet_db_drop_connections(stet_project_root(p)); /* so that the file has everything */
        stet_project_close(p);
    }
    stet_free(below);
    stet_free(root);
    return path;
}

/* The space of this name, empty. */
static void empty_space(stet_project *p, const char *name) {
    static struct {
        const char *name;
        char *image;
    } images[FAR + 1];
    int i = 0;
    while (images[i].name && strcmp(images[i].name, name) != 0)
        i++;
    if (!images[i].name) {
        char *path = template_of(name);
        stet_space *s;
        must(stet_space_open_path(path, name, 0, &s, &err));
        images[i].image = image_of(s);
        images[i].name = name;
        stet_space_close(s);
        stet_db_drop_connections(path);
        stet_free(path);
    }
    restore(p, name, images[i].image);
}

static stet_pattern *away_pattern(int which) {
    char text[sizeof away_program];
    stet_pattern *pattern;
    snprintf(text, sizeof text, away_program, away_names[which]);
    must(stet_pattern_parse("away.json", text, strlen(text), &pattern_checks, &pattern, NULL, &err));
    return pattern;
}

/* The piece in another space, with its argument, run to its end. False: it failed, or waits for one that did. */
static bool fresh_away(fresh *f, stet_space *s, int which, const char *argument) {
    stet_sched *sched;
    stet_sched_installed in;
    stet_sched_report r;
    stet_standing standing;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record got;
    char cell[40], piece[16];
    stet_sched_opts opts = {.persist = true};
    stet_pattern *pattern = away_pattern(which);
    snprintf(piece, sizeof piece, "piece:%s", away_names[which]);
    snprintf(cell, sizeof cell, "%s:argument/k", piece);
    must(stet_sched_open(f->project, s, "", &opts, &sched, &err));
    must(stet_sched_install(sched, pattern, away_names[which], stet_value_null(), stet_value_null(), &in, &err));
    stet_pattern_free(pattern);
    write_doc(s, "", cell, argument);
    must(stet_sched_demand_piece(sched, away_names[which], &err));
    must(stet_sched_settle(sched, &r, &err));
    stet_value_release(r.problems);
    stet_sched_close(sched);
    must(stet_observe_catch_up(s, &err));
    must(stet_standing_load(s, 0, &standing, &err));
    must(stet_observe_find(s, 0, &(stet_action_key){piece, NULL, "v"}, &arena, &got, &err));
    bool stands = got.observed && !got.failed && stet_standing_of(&standing, got.action) == STET_STATE_STANDS;
    stet_standing_release(&standing);
    stet_arena_release(&arena);
    return stands;
}

/* The other spaces, from scratch if they hold anything else than the last time: few steps change them. */
static void fresh_far(const world *w, fresh *f) {
    static char *made, *images[FAR];
    static bool failed[FAR];
    stet_buf b = STET_BUF(0);
    stet_space *far[FAR] = {NULL};
    for (int i = 0; i < FAR; i++) {
        for (int k = 0; k < 2 && w->m.spaces[i]; k++)
            stet_buf_printf(&b, "%s f%d %s\n", far_names[i], k, w->m.far[i][k] ? w->m.far[i][k] : "");
        stet_buf_printf(&b, "%s %s\n", away_names[i], w->m.away[i] ? w->m.away[i] : "");
    }
    bool same = made && strcmp(made, stet_buf_cstr(&b)) == 0;
    for (int i = 0; i < FAR && same; i++)
        if (w->m.spaces[i])
            restore(f->project, far_names[i], images[i]);
    if (!same) {
        stet_free(made);
        made = NULL; /* until it is */
        for (int i = 0; i < FAR; i++) {
            if (!w->m.spaces[i])
                continue;
            empty_space(f->project, far_names[i]);
            must(stet_space_open(f->project, far_names[i], 0, &far[i], &err));
            for (int k = 0; k < 2; k++)
                if (w->m.far[i][k])
                    write_doc(far[i], "", k ? "f1" : "f0", w->m.far[i][k]);
        }
        for (int i = FAR - 1; i >= 0; i--)
            failed[i] = w->m.away[i] && !fresh_away(f, far[i], i, w->m.away[i]);
        for (int i = 0; i < FAR; i++) {
            if (!w->m.spaces[i])
                continue;
            stet_free(images[i]);
            images[i] = image_of(far[i]);
            stet_space_close(far[i]);
        }
        made = stet_strdup(stet_buf_cstr(&b));
    }
    memcpy(f->away_failed, failed, sizeof failed);
    stet_buf_release(&b);
}

static void fresh_open(const world *w, fresh *f) {
    const line *l = &w->m.lines[w->at];
    bool created;
    char root[32], files[64];
    *f = (fresh){.arena = STET_ARENA_INIT};
    snprintf(root, sizeof root, "%s/%d%d", court, w->m.spaces[0], w->m.spaces[1]); /* the others are not to be there */
    snprintf(files, sizeof files, "%s/.stet/local/files", root);
    if (!stet_file_exists(root))
        must(stet_project_init(root, &created, &err));
    must(stet_file_remove_tree(files, &err));
    must(stet_project_open(root, &f->project, &err));
    empty_space(f->project, "main");
    for (int i = 0; i < FILES && on[CODE]; i++)
        write_file(root, file_names[i], w->m.files[i]);
    fresh_far(w, f);
    must(stet_space_open(f->project, "main", 0, &f->space, &err));
    stet_db_exec(stet_space_db(f->space), "PRAGMA locking_mode=exclusive"); /* spares system calls: nobody else comes */
    stet_tx *tx;
    must(stet_tx_begin(f->space, "", &tx, &err));
    for (int i = 0; i < DOCS; i++)
        if (l->docs[i])
            must(stet_tx_set(tx, doc_names[i], NULL, parse(l->docs[i]), &err));
    must(stet_tx_commit(tx, NULL, &err));
    must(stet_files_open(f->project, f->space, &f->files, &err));
    stet_sched_opts opts = {.persist = true, .files = f->files};
    must(stet_sched_open(f->project, f->space, "", &opts, &f->sched, &err));
    for (int p = 0; p < PIECES; p++)
        install(f->sched, &l->p[p], p);
    for (int p = 0; p < PIECES; p++)
        if (l->p[p].cell)
            write_doc(f->space, "", p ? "piece:p1:cell:c" : "piece:p0:cell:c", l->p[p].cell);
}

static void fresh_settle(fresh *f, const bool which[PIECES]) {
    stet_sched_report r;
    for (int p = 0; p < PIECES; p++)
        if (which[p])
            must(stet_sched_demand_piece(f->sched, p ? "p1" : "p0", &err));
    must(stet_sched_settle(f->sched, &r, &err));
    if (r.aside)
        differ("the fresh project put %zu actions aside", r.aside);
    stet_value_release(r.problems);
    must(stet_space_sync(f->space, &err));
    find_tainted(f);
}

static void fresh_close(fresh *f) {
    stet_sched_close(f->sched);
    stet_files_close(f->files);
    stet_space_close(f->space);
    stet_project_close(f->project);
    stet_standing_release(&f->standing);
    stet_vec_release(&f->tainted);
    stet_vec_release(&f->needed);
    stet_arena_release(&f->arena);
}

/* A fresh project of the model as it is, settled for some pieces, and what others (or the same) need in it. The last
 * one serves again while nothing has changed that it was made of. */
static fresh judge;
static char *judged; /* what it was made of; NULL: it is not there */

static void forget_judge(void) {
    if (judged)
        fresh_close(&judge);
    stet_free(judged);
    judged = NULL;
}

static void write_model(const world *w, const bool which[PIECES], stet_buf *b) {
    const line *l = &w->m.lines[w->at];
    stet_buf_printf(b, "%d%d %d%d\n", which[0], which[1], w->m.spaces[0], w->m.spaces[1]);
    for (int i = 0; i < DOCS; i++)
        stet_buf_printf(b, "%s\n", l->docs[i] ? l->docs[i] : "");
    for (int i = 0; i < FILES; i++)
        stet_buf_printf(b, "%s\n", w->m.files[i] ? w->m.files[i] : "");
    for (int i = 0; i < FAR; i++)
        stet_buf_printf(b, "%s\n%s\n%s\n", w->m.far[i][0] ? w->m.far[i][0] : "", w->m.far[i][1] ? w->m.far[i][1] : "",
                        w->m.away[i] ? w->m.away[i] : "");
    for (int p = 0; p < PIECES; p++) {
        write_program(&l->p[p], p, b);
        for (int k = 0; k < KEYS; k++)
            stet_buf_printf(b, "%s\n", l->p[p].sets[k] ? l->p[p].sets[k] : "");
        stet_buf_printf(b, "%s\n", l->p[p].cell ? l->p[p].cell : "");
    }
}

static fresh *judge_of(const world *w, const bool settled[PIECES], const bool which[PIECES]) {
    stet_buf b = STET_BUF(0);
    write_model(w, settled, &b);
    if (!judged || strcmp(judged, stet_buf_cstr(&b)) != 0) {
        forget_judge();
        fresh_open(w, &judge);
        fresh_settle(&judge, settled);
        stet_sched_close(judge.sched); /* its engine is for whoever runs next */
        must(stet_sched_open(judge.project, judge.space, "", &(stet_sched_opts){.persist = true}, &judge.sched, &err));
        judged = stet_buf_take(&b, NULL);
        totals.judges++;
    }
    stet_buf_release(&b);
    find_needed(&judge, which);
    return &judge;
}

static const bool both[PIECES] = {true, true};

static char *doc_text(stet_space *s, int64_t branch, const char *id) {
    stet_doc_state d;
    must(stet_space_load(s, branch, &(stet_docname){id, NULL}, -1, &d, &err));
    if (!d.exists)
        return stet_strdup("(absent)");
    char *text = print(stet_value_get(d.value, "value"));
    stet_value_release(d.value);
    return text;
}

static char *got_text(stet_sched *s, const char *id, const char *key) {
    stet_value v;
    stet_error e = STET_ERROR_INIT;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    if (key)
        stet_path_push(&path, key);
    stet_status status = stet_sched_get(s, id, NULL, stet_path_ref(&path), &v, &e);
    stet_path_release(&path);
    if (status != STET_OK) {
        char *text = stet_asprintf("(%s: %s)", stet_status_name(status), status == STET_NOT_FOUND ? "" : e.message);
        stet_error_clear(&e);
        return text;
    }
    char *text = print(v);
    stet_value_release(v);
    return text;
}

/* Does a value lead, through links, to what depends on a failure? */
static bool leads_to_tainted(fresh *f, stet_value v, int depth) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    bool found = false;
    if (depth > 20)
        return true;
    if (stet_link_read(v, &l, &path)) {
        found = l.space ? is_tainted_away(f, l.id) : is_tainted(f, l.id);
        if (!found && !l.space) {
            stet_doc_state d;
            must(stet_space_load(f->space, 0, &(stet_docname){l.id, NULL}, -1, &d, &err));
            found = d.exists && leads_to_tainted(f, stet_value_get(d.value, "value"), depth + 1);
            stet_value_release(d.value);
        }
    } else if (stet_value_type(v) == STET_TYPE_OBJECT || stet_value_type(v) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < stet_value_count(v) && !found; i++)
            found = leads_to_tainted(f, stet_value_at(v, i), depth + 1);
    }
    stet_path_release(&path);
    return found;
}

static void error_text(const stet_action_record *r, char *out, size_t size) {
    stet_value v;
    snprintf(out, size, "%.*s", (int)r->note_len, r->note);
    if (stet_json_parse(r->note, r->note_len, &v, NULL) == STET_OK) {
        stet_value m = stet_value_get(stet_value_get(v, "error"), "message");
        if (stet_value_type(m) == STET_TYPE_STRING)
            snprintf(out, size, "%s", stet_value_as_string(&m, NULL));
        stet_value_release(v);
    }
}

/* One action of the fresh project that was wanted there, against the same one here. `standing` NULL: it must be up to
 * date; otherwise what that calls up to date must be so. */
static void compare_action(world *w, fresh *f, const stet_action_record *want, const stet_standing *standing) {
    bool settled = !standing;
    int64_t branch;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record got;
    stet_error e = STET_ERROR_INIT;
    char expected[400], found[400];
    if (!action_needed(f, want))
        return;
    must(stet_space_branch(w->space, line_names[w->at], &branch, &err));
    stet_status status = stet_observe_find(w->space, branch, &want->key, &arena, &got, &e);
    stet_error_clear(&e);
    if (status != STET_OK && status != STET_NOT_FOUND)
        differ("%s %s: %s", want->key.piece, want->key.action, stet_status_name(status));
    bool stands = status == STET_OK && got.observed && got.cause.state == STET_STATE_STANDS;
    if (!settled && stands) {
        stands = stet_standing_of(standing, got.action) == STET_STATE_STANDS;
        totals.states++;
    }
    if (!settled && !stands) {
        stet_arena_release(&arena);
        return;
    }
    if (want->failed) {
        if (status != STET_OK || !got.observed || !got.failed)
            differ("%s %s fails in a fresh project, and not here", want->key.piece, want->key.action);
        error_text(want, expected, sizeof expected);
        error_text(&got, found, sizeof found);
        if (strcmp(expected, found) != 0)
            differ("%s %s: in a fresh project: %s; here: %s", want->key.piece, want->key.action, expected, found);
        totals.failures++;
        stet_arena_release(&arena);
        return;
    }
    if (!stands)
        differ("%s %s: %s after a run that wanted it", want->key.piece, want->key.action,
               status == STET_OK ? stet_action_state_name(got.cause.state) : "no record");
    if (got.failed) {
        error_text(&got, found, sizeof found);
        differ("%s %s succeeds in a fresh project; here: %s", want->key.piece, want->key.action, found);
    }
    for (size_t i = 0; i < want->declared_count; i++) {
        const char *id = want->declared[i].name.id;
        char *a = doc_text(f->space, 0, id), *b = doc_text(w->space, branch, id);
        if (strcmp(a, b) != 0)
            differ("%s%s: in a fresh project: %s; here: %s", id, settled ? "" : " is called up to date", a, b);
        stet_free(a);
        stet_free(b);
        totals.outputs++;
    }
    stet_arena_release(&arena);
}

/* One action that in the fresh project waits for another that failed: here it may have run before that failed, and is
 * not up to date all the same. */
static void compare_waiting(world *w, const fresh *f, const stet_action_record *want, const stet_standing *standing) {
    int64_t branch;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record got;
    stet_error e = STET_ERROR_INIT;
    char *id = stet_asprintf("%s:node:%s", want->key.piece, want->key.action);
    bool needed = is_needed(f, id);
    stet_free(id);
    if (!needed)
        return;
    must(stet_space_branch(w->space, line_names[w->at], &branch, &err));
    stet_status status = stet_observe_find(w->space, branch, &want->key, &arena, &got, &e);
    stet_error_clear(&e);
    if (status == STET_OK && got.observed && !got.failed && stet_standing_of(standing, got.action) == STET_STATE_STANDS)
        differ("%s %s waits for a failure in a fresh project; here it is called up to date", want->key.piece,
               want->key.action);
    stet_arena_release(&arena);
    totals.waiting++;
}

/* Does an effect wait in the fresh project? It is judged by what its inputs may lead to before it runs for the first
 * time, and by what it has read when it has run: here it may be up to date, and so may who reads it. */
static bool effect_waits(world *w, const fresh *f) {
    for (int p = 0; p < PIECES; p++)
        for (int i = 0; i < NODES; i++) {
            const program *x = &current(w)->p[p];
            if (!x->nodes[i] || !strstr(x->nodes[i], "\"kind\":\"effect\""))
                continue;
            const stet_action_record *r = record_there(f, p, x->ids[i]);
            if (!r || !stands_there(f, r))
                return true;
        }
    return false;
}

static void compare_result(world *w, fresh *f, stet_sched *here, int piece, int node) {
    char key[16], doc[16];
    stet_doc_state d;
    snprintf(doc, sizeof doc, "piece:p%d", piece);
    snprintf(key, sizeof key, "n%d", current(w)->p[piece].ids[node]);
    must(stet_space_load(f->space, 0, &(stet_docname){doc, NULL}, -1, &d, &err));
    bool skip = leads_to_tainted(f, stet_value_get(stet_value_get(d.value, "value"), key), 0);
    stet_value_release(d.value);
    if (skip)
        return;
    char *a = got_text(f->sched, doc, key), *b = got_text(here, doc, key);
    if (strcmp(a, b) != 0)
        differ("%s/%s: in a fresh project: %s; here: %s", doc, key, a, b);
    stet_free(a);
    stet_free(b);
    totals.results++;
}

static bool made_there(const fresh *f, int piece, int node) {
    const stet_action_record *r = record_there(f, piece, node);
    return r && stands_there(f, r) && !r->failed;
}

/* The cell that computations write to. Those that failed or wait keep there what they wrote last. */
static void compare_made(world *w, fresh *f, int piece) {
    char id[24];
    int64_t branch;
    for (int i = 0; i < NODES; i++) {
        const program *x = &current(w)->p[piece];
        if (x->nodes[i] && strstr(x->nodes[i], "\"$\":\"m\"") && !made_there(f, piece, x->ids[i]))
            return;
    }
    snprintf(id, sizeof id, "piece:p%d:cell:m", piece);
    must(stet_space_branch(w->space, line_names[w->at], &branch, &err));
    char *a = doc_text(f->space, 0, id), *b = doc_text(w->space, branch, id);
    if (strcmp(a, b) != 0)
        differ("%s: in a fresh project: %s; here: %s", id, a, b);
    stet_free(a);
    stet_free(b);
    totals.made++;
}

static stet_sched *look_sched(world *w) {
    stet_sched *s;
    stet_sched_opts opts = {.persist = true};
    must(stet_sched_open(w->project, w->space, line_names[w->at], &opts, &s, &err));
    return s;
}

static void load_standing(world *w, stet_standing *out) {
    int64_t branch;
    must(stet_observe_catch_up(w->space, &err));
    must(stet_space_branch(w->space, line_names[w->at], &branch, &err));
    must(stet_standing_load(w->space, branch, out, &err));
}

/* `ran`: the pieces that were run whole; `part`: a node of the last one of them that alone was wanted, or -1. */
static void compare_with(world *w, fresh *f, const bool ran[PIECES], int part) {
    stet_sched *here = look_sched(w);
    stet_standing standing;
    bool hesitant = effect_waits(w, f);
    load_standing(w, &standing);
    for (int p = 0; p < PIECES; p++) {
        if (!ran[p])
            continue;
        for (int i = 0; i < NODES; i++)
            if (current(w)->p[p].nodes[i] && (current(w)->p[p].results & 1u << i) && (part < 0 || part == i))
                compare_result(w, f, here, p, i);
        for (size_t i = 0; i < f->counts[p] && part < 0; i++)
            if (stands_there(f, &f->records[p][i]))
                compare_action(w, f, &f->records[p][i], NULL);
            else if (!hesitant)
                compare_waiting(w, f, &f->records[p][i], &standing);
        if (part < 0)
            compare_made(w, f, p);
    }
    stet_standing_release(&standing);
    stet_sched_close(here);
    totals.settled++;
}

static void compare(world *w, const bool ran[PIECES], int part) {
    compare_with(w, judge_of(w, both, ran), ran, part);
}

/* What is called up to date before anything runs is so. */
static void compare_states(world *w) {
    fresh *f = judge_of(w, both, both);
    stet_standing standing;
    bool hesitant = effect_waits(w, f);
    load_standing(w, &standing);
    for (int p = 0; p < PIECES; p++)
        for (size_t i = 0; i < f->counts[p]; i++)
            if (stands_there(f, &f->records[p][i]))
                compare_action(w, f, &f->records[p][i], &standing);
            else if (!hesitant)
                compare_waiting(w, f, &f->records[p][i], &standing);
    stet_standing_release(&standing);
}

/* The files of all programs hold those of the branch: whoever runs one piece may set up another that it reads. */
static void show_one(world *w, int piece) {
    stet_buf b = STET_BUF(0);
    char name[16];
    snprintf(name, sizeof name, "p%d.json", piece);
    write_program(&current(w)->p[piece], piece, &b);
    if (!w->shown[piece] || strcmp(w->shown[piece], stet_buf_cstr(&b)) != 0) {
        write_file(w->root, name, stet_buf_cstr(&b));
        stet_buf_printf(&w->script, "cat >%s <<'E'\n%sE\n", name, stet_buf_cstr(&b));
        stet_free(w->shown[piece]);
        w->shown[piece] = stet_buf_take(&b, NULL);
    }
    stet_buf_release(&b);
}

static void show_programs(world *w) {
    for (int p = 0; p < PIECES; p++)
        if (w->m.lines[w->at].p[p].handler)
            show_one(w, p);
}

typedef struct how {
    const char *part;
    stet_value set, unset;
    bool observe_only, dry_run;
    bool retry;   /* what failed is run again, as `stet run` does unless it is told not to */
    bool by_node; /* `part` is asked for as a node, and not as a part of the result */
    size_t runs, failed;
} how;

static void drive(world *w, int piece, how *h) {
    char name[8], file[16];
    snprintf(name, sizeof name, "p%d", piece);
    snprintf(file, sizeof file, "p%d.json", piece);
    show_programs(w);
    char *path = stet_file_join(w->root, file);
    stet_value demand = stet_value_null();
    if (h->part) {
        demand = stet_value_array();
        stet_value_push(&demand, stet_value_string(h->part));
    }
    stet_drive_spec spec = {.branch = line_names[w->at],
                            .pattern = path,
                            .piece = name,
                            .set = h->set,
                            .unset = h->unset,
                            .demand = h->by_node ? stet_value_null() : demand,
                            .nodes = h->by_node ? demand : stet_value_null(),
                            .explain = pick(8) == 0,
                            .dry_run = h->dry_run,
                            .retry_failed = h->retry,
                            .observe_only = h->observe_only};
    stet_drive_outcome out;
    stet_buf_printf(&w->script, "stet run %s%s%s%s%s%s%s\n", file, branch_flag(w),
                    h->part && h->by_node ? " "
                    : h->part             ? " --demand "
                                          : "",
                    h->part ? h->part : "", h->observe_only ? " --observe-only" : "", h->dry_run ? " --dry-run" : "",
                    h->retry ? "" : " --no-retry-failed");
    must(stet_drive(w->project, &spec, &out, &err));
    h->runs = out.report.runs;
    h->failed = out.report.failed;
    if (out.report.aside) {
        char *why = stet_json_print(out.report.problems, STET_JSON_CANONICAL, NULL);
        differ("p%d: %zu put aside: %s", piece, out.report.aside, why);
        stet_free(why);
    }
    stet_drive_outcome_release(&out);
    stet_value_release(demand);
    stet_free(path);
}

static void held_close(world *w, int n) {
    struct held *h = &w->held[n];
    stet_sched_close(h->sched);
    stet_files_close(h->files);
    stet_space_close(h->space);
    stet_project_close(h->project);
    *h = (struct held){0};
}

/* By the handle that stays open over everything that others do. */
static size_t held_settle(world *w, const bool which[PIECES]) {
    struct held *h = &w->held[w->at];
    stet_sched_report r;
    show_programs(w);
    if (!h->sched) {
        must(stet_project_open(w->root, &h->project, &err));
        must(stet_space_open(h->project, "main", 0, &h->space, &err));
        must(stet_files_open(h->project, h->space, &h->files, &err));
        must(stet_files_set_branch(h->files, line_names[w->at], &err));
        stet_sched_opts opts = {.persist = true, .files = h->files};
        must(stet_sched_open(h->project, h->space, line_names[w->at], &opts, &h->sched, &err));
    }
    must(stet_files_catch_up(h->files, &err));
    must(stet_files_scan(h->files, NULL, &err));
    for (int p = 0; p < PIECES; p++) {
        h->wants[p] = h->wants[p] || which[p];
        if (which[p])
            must(stet_sched_demand_piece(h->sched, p ? "p1" : "p0", &err));
    }
    stet_buf_printf(&w->script, "# by a process that has the project open since its last time here:\n");
    for (int p = 0; p < PIECES; p++)
        if (which[p])
            stet_buf_printf(&w->script, "stet run --piece p%d%s\n", p, branch_flag(w));
    must(stet_sched_settle(h->sched, &r, &err));
    if (r.aside)
        differ("%zu put aside", r.aside);
    stet_value_release(r.problems);
    if (stet_sched_passed_over(h->sched))
        differ("passed over: %s", stet_sched_passed_over(h->sched));
    return r.runs;
}

static void check_all(world *w) {
    if (without("check"))
        return;
    stet_status (*const checks[])(stet_space *, bool, stet_buf *, size_t *, size_t *,
                                  stet_error *) = {stet_observe_check, stet_children_check, stet_space_check};
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    must(stet_space_sync(w->space, &err));
    must(stet_observe_catch_up(w->space, &err));
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        must(checks[i](w->space, false, &problems, &found, &repaired, &err));
        if (found)
            differ("check: %s", stet_buf_cstr(&problems));
    }
    stet_buf_release(&problems);
}

/* Runs, and compares. */
static void settle(world *w) {
    bool which[PIECES] = {true, true};
    int who = pick(8);
    if (who < 2)
        which[who] = false;
    if (pick(6) == 0 && !w->unseen[w->at] && !without("states"))
        compare_states(w);
    bool held = pick(3) == 0;
    size_t runs = 0;
    if (held)
        held_settle(w, which);
    for (int i = 0, first = pick(2); i < PIECES && !held; i++) {
        int p = i ^ first;
        how h = {.set = stet_value_null(), .retry = pick(2)};
        if (which[p] && (p != w->driven || pick(3) == 0)) /* what the first run leaves is mostly compared as it is */
            drive(w, p, &h);
        /* The other may have been run first, on what this one makes: it has to be asked again for whether it holds. */
    }
    w->unseen[w->at] = false;
    compare(w, which, -1);
    if (pick(4) == 0) {
        if (held) {
            runs = held_settle(w, which);
        } else {
            for (int p = 0; p < PIECES; p++) {
                how h = {.set = stet_value_null()};
                if (which[p])
                    drive(w, p, &h);
                runs += h.runs;
            }
        }
        if (runs > 0)
            differ("%zu actions ran in a project that had settled", runs);
        totals.again++;
    }
    if (pick(12) == 0)
        check_all(w);
}

/* `end`: the system call at which it dies; 0: none. `beside`: this process runs the same piece meanwhile. */
static void other_process(world *w, int piece, int end, bool beside) {
    char at[16], number[8];
    snprintf(at, sizeof at, "%d", end);
    snprintf(number, sizeof number, "%d", piece);
    show_programs(w);
    setenv("CENTRAL_OTHER", w->root, 1);
    setenv("CENTRAL_PIECE", number, 1);
    setenv("CENTRAL_BRANCH", line_names[w->at], 1);
    setenv("CENTRAL_END", at, 1);
    char *argv[] = {program_path, NULL};
    pid_t pid;
    int status;
    stet_buf_printf(&w->script, "%sstet run p%d.json%s\n", end ? "# killed in the middle: " : "", piece,
                    branch_flag(w));
    if (posix_spawn(&pid, program_path, NULL, NULL, argv, environ) != 0)
        differ("no other process");
    unsetenv("CENTRAL_OTHER");
    if (beside) {
        how h = {.set = stet_value_null()};
        stet_buf_str(&w->script, "# at the same time:\n");
        drive(w, pick(PIECES), &h);
    }
    if (waitpid(pid, &status, 0) != pid)
        differ("no other process");
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        differ("the other process ended with status %d", status);
    totals.kills += killed;
    if (killed) { /* it may have set the program up, or not */
        how h = {.set = stet_value_null()};
        drive(w, piece, &h);
    }
}

static int other_main(void) {
    char name[8], file[16];
    const char *root = getenv("CENTRAL_OTHER"), *piece = getenv("CENTRAL_PIECE");
    int end = atoi(getenv("CENTRAL_END"));
    stet_project *project;
    stet_drive_outcome out;
    snprintf(name, sizeof name, "p%s", piece);
    snprintf(file, sizeof file, "p%s.json", piece);
    char *path = stet_file_join(root, file);
    stet_drive_spec spec = {.branch = getenv("CENTRAL_BRANCH"), .pattern = path, .piece = name};
    if (end > 0)
        faults_arm_any(end, STET_SYS_KILL, 0);
    if (stet_project_open(root, &project, NULL) != STET_OK)
        return 1;
    return stet_drive(project, &spec, &out, NULL) == STET_OK ? 0 : 1;
}

static void edit_doc(world *w) {
    int i = pick(DOCS);
    stet_buf b = STET_BUF(0);
    if (pick(6))
        random_value(&b, 2, i >= 4);
    const char *text = b.len ? keep(w, &b) : NULL;
    if (!text && !current(w)->docs[i])
        return;
    current(w)->docs[i] = text;
    write_doc(w->space, line_names[w->at], doc_names[i], text);
    if (text)
        stet_buf_printf(&w->script, "stet set %s '%s'%s\n", doc_names[i], text, branch_flag(w));
    else
        stet_buf_printf(&w->script, "stet doc delete %s%s\n", doc_names[i], branch_flag(w));
}

static void edit_far(world *w) {
    int i = pick(FAR), k = pick(2);
    stet_buf b = STET_BUF(0);
    stet_space *s;
    if (pick(6))
        random_value(&b, 2, 2);
    const char *text = b.len ? keep(w, &b) : NULL;
    if (!text && !w->m.far[i][k])
        return;
    must(stet_space_open(w->project, far_names[i], 0, &s, &err));
    write_doc(s, "", k ? "f1" : "f0", text);
    stet_space_close(s);
    w->m.far[i][k] = text;
    w->m.spaces[i] = true;
    if (text)
        stet_buf_printf(&w->script, "stet set f%d '%s' --space %s\n", k, text, far_names[i]);
    else
        stet_buf_printf(&w->script, "stet doc delete f%d --space %s\n", k, far_names[i]);
}

/* Set up the first time; then edited, and run by whoever reads it. */
static void edit_away(world *w) {
    int which = pick(3) == 0;
    char file[16], cell[40];
    stet_space *s;
    stet_buf b = STET_BUF(0);
    random_value(&b, 1, which ? 2 : 3);
    const char *text = keep(w, &b);
    snprintf(file, sizeof file, "%s.json", away_names[which]);
    snprintf(cell, sizeof cell, "piece:%s:argument/k", away_names[which]);
    if (!w->m.away[which]) {
        char *path = stet_file_join(w->root, file);
        int at = w->at;
        stet_buf_printf(&b, away_program, away_names[which]);
        write_file(w->root, file, stet_buf_cstr(&b));
        w->at = 0; /* a run in one space sets up changed programs of the others, on their main branches */
        show_programs(w);
        w->at = at;
        stet_drive_spec spec = {.space = far_names[which], .pattern = path, .piece = away_names[which]};
        stet_drive_outcome out;
        must(stet_drive(w->project, &spec, &out, &err));
        stet_drive_outcome_release(&out);
        stet_free(path);
        stet_buf_printf(&w->script, "cat >%s <<'E'\n%sE\nstet run %s --space %s\n", file, stet_buf_cstr(&b), file,
                        far_names[which]);
        stet_buf_release(&b);
    }
    must(stet_space_open(w->project, far_names[which], 0, &s, &err));
    write_doc(s, "", cell, text);
    stet_space_close(s);
    stet_buf_printf(&w->script, "stet set %s '%s' --space %s\n", cell, text, far_names[which]);
    w->m.away[which] = text;
    w->m.spaces[which] = true;
}

static void set_key(world *w, int p) {
    int k = pick(KEYS);
    char cell[32], key[8];
    stet_buf b = STET_BUF(0);
    random_argument(&b, p, k);
    const char *text = current(w)->p[p].sets[k] = keep(w, &b);
    snprintf(cell, sizeof cell, "piece:p%d:argument/k%d", p, k);
    snprintf(key, sizeof key, "k%d", k);
    if (pick(2)) {
        write_doc(w->space, line_names[w->at], cell, text);
        stet_buf_printf(&w->script, "stet set %s '%s'%s\n", cell, text, branch_flag(w));
        return;
    }
    how h = {.set = stet_value_object()};
    stet_value_put(&h.set, key, parse(text));
    stet_buf_printf(&w->script, "# --set %s='%s' in the next:\n", key, text);
    drive(w, p, &h);
    stet_value_release(h.set);
}

static void unset_key(world *w, int p) {
    int k = pick(KEYS + 1);
    program *x = &current(w)->p[p];
    const char **which = k == KEYS ? &x->cell : &x->sets[k];
    char key[8];
    if (!*which)
        return;
    *which = NULL;
    snprintf(key, sizeof key, k == KEYS ? "cell:c" : "k%d", k);
    how h = {.set = stet_value_null(), .unset = stet_value_array()};
    stet_value_push(&h.unset, stet_value_string(key));
    stet_buf_printf(&w->script, "# --unset %s in the next:\n", key);
    drive(w, p, &h);
    stet_value_release(h.unset);
}

static void make_node(world *w, int p, int i) {
    stet_buf b = STET_BUF(0);
    random_node(&b, p, i, 0, on[CODE]);
    current(w)->p[p].nodes[i] = keep(w, &b);
}

/* The program changed: it is set up at once, with a run of some of it or all of it. */
static void program_changed(world *w, int p) {
    how h = {.set = stet_value_null()};
    drive(w, p, &h);
    w->driven = p;
}

static void edit_node(world *w, int p) {
    make_node(w, p, pick(NODES));
    program_changed(w, p);
}

static void remove_node(world *w, int p) {
    current(w)->p[p].nodes[pick(NODES)] = NULL;
    program_changed(w, p);
}

static void rename_node(world *w, int p) {
    current(w)->p[p].ids[pick(NODES)] = ++w->m.next_id;
    program_changed(w, p);
}

static void edit_result(world *w, int p) {
    current(w)->p[p].results ^= 1u << pick(NODES);
    program_changed(w, p);
}

static void edit_default(world *w, int p) {
    stet_buf b = STET_BUF(0);
    int k = pick(KEYS + 2);
    program *x = &current(w)->p[p];
    if (k == KEYS + 1) {
        random_made(&b);
        x->made_default = keep(w, &b);
    } else if (k == KEYS) {
        random_value(&b, 1, 0);
        if (strncmp(stet_buf_cstr(&b), "{\"/\"", 4) == 0) { /* the handler would write where the link leads */
            stet_buf_release(&b);
            stet_buf_str(&b, "[]");
        }
        x->cell_default = keep(w, &b);
    } else if (pick(6) == 0) {
        x->defaults[k] = NULL;
    } else {
        random_argument(&b, p, k);
        x->defaults[k] = keep(w, &b);
    }
    program_changed(w, p);
}

static void edit_code(world *w) {
    int i = pick(FILES);
    stet_buf b = STET_BUF(0);
    if (pick(8))
        random_file(&b);
    w->m.files[i] = b.len ? keep(w, &b) : NULL;
    memset(w->unseen, true, sizeof w->unseen);
    write_file(w->root, file_names[i], w->m.files[i]);
    if (w->m.files[i])
        stet_buf_printf(&w->script, "cat >%s <<'E'\n%sE\n", file_names[i], w->m.files[i]);
    else
        stet_buf_printf(&w->script, "rm -f %s\n", file_names[i]);
}

/* Of an action that has made something, a child's included. */
static void edit_output(world *w, int p) {
    char doc[16];
    int64_t branch, next;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record *at;
    size_t count, n = 0;
    snprintf(doc, sizeof doc, "piece:p%d", p);
    stet_action_filter all = {.piece = doc, .generation = -1, .limit = 1000};
    must(stet_space_branch(w->space, line_names[w->at], &branch, &err));
    must(stet_observe_list(w->space, branch, &all, &arena, &at, &count, &next, &err));
    const stet_action_record *some = NULL;
    for (size_t i = 0; i < count; i++)
        if (at[i].observed && at[i].declared_count > 0 && pick((int)++n) == 0)
            some = &at[i];
    if (some) {
        stet_buf b = STET_BUF(0);
        random_value(&b, 1, 0);
        const char *text = pick(8) ? keep(w, &b) : NULL, *id = some->declared[0].name.id;
        write_doc(w->space, line_names[w->at], id, text);
        stet_buf_printf(&w->script, text ? "stet set %s '%s'%s\n" : "stet doc delete %s%.0s%s\n", id, text ? text : "",
                        branch_flag(w));
        stet_buf_release(&b);
    }
    stet_arena_release(&arena);
}

static void send_event(world *w, int p) {
    char name[8], cell[24];
    static const char *const events[] = {"1", "2", "5", "{\"a\":1}", "null"};
    const char *event = ONE_OF(events);
    fresh f;
    stet_sched_sent sent, sent_there;
    stet_error e = STET_ERROR_INIT, e_there = STET_ERROR_INIT;
    snprintf(name, sizeof name, "p%d", p);
    snprintf(cell, sizeof cell, "piece:p%d:cell:c", p);
    forget_judge(); /* it would be in the way */
    fresh_open(w, &f);
    stet_value v = parse(event);
    stet_status there = stet_sched_send(f.sched, name, "h", v, NULL, &sent_there, &e_there);
    stet_sched_close(f.sched); /* its engine is for the other one */
    f.sched = NULL;
    find_tainted(&f);
    bool unsure = f.tainted.len > 0 || f.away_failed[0] ||
                  f.away_failed[1]; /* what the handler reads may be what a failed action left */
    show_programs(w);
    stet_drive_event send = {.stream = "h", .event = v, .sent = &sent};
    stet_drive_spec spec = {.branch = line_names[w->at], .piece = name, .send = &send};
    stet_drive_outcome out;
    stet_status got = stet_drive(w->project, &spec, &out, &e);
    stet_drive_outcome_release(&out);
    w->unseen[w->at] = false;
    stet_buf_printf(&w->script, "stet piece send p%d h '%s'%s\n", p, event, branch_flag(w));
    stet_value_release(v);
    char *a = doc_text(f.space, 0, cell);
    int64_t branch;
    must(stet_space_branch(w->space, line_names[w->at], &branch, &err));
    char *b = doc_text(w->space, branch, cell);
    if (!unsure && (there != got || strcmp(e.message, e_there.message) != 0))
        differ("event %s to p%d: in a fresh project: %s %s; here: %s %s", event, p, stet_status_name(there),
               e_there.message, stet_status_name(got), e.message);
    if (!unsure && strcmp(a, b) != 0)
        differ("event %s to p%d: in a fresh project the cell is %s; here: %s", event, p, a, b);
    if (got == STET_OK)
        current(w)->p[p].cell = stet_arena_strdup(&w->arena, b);
    stet_free(a);
    stet_free(b);
    stet_error_clear(&e);
    stet_error_clear(&e_there);
    fresh_close(&f);
    totals.sent++;
}

static void fork_branch(world *w) {
    int to = 1 + pick(LINES - 1);
    if (w->m.lines[to].there)
        return;
    must(stet_branch_create(w->space, line_names[to], line_names[w->at], -1, &err));
    stet_buf_printf(&w->script, "stet branch create %s%s%s\n", line_names[to], w->at ? " --from " : "",
                    line_names[w->at]);
    w->m.lines[to] = *current(w);
    w->unseen[to] = true;
    w->at = to;
}

static void cut_branch(world *w) {
    int which = 1 + pick(LINES - 1);
    if (!w->m.lines[which].there)
        return;
    held_close(w, which);
    if (w->at == which)
        w->at = 0;
    must(stet_branch_delete(w->space, line_names[which], &err));
    w->m.lines[which] = (line){0};
    stet_buf_printf(&w->script, "stet branch delete %s\n", line_names[which]);
}

static void collect_garbage(world *w) {
    char *stet = stet_file_join(getenv("STET_BUILD"), "stet");
    char gc[] = "gc", *argv[] = {stet, gc, NULL};
    pid_t pid;
    int status;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addchdir_np(&files, w->root);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid, stet, &files, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid ||
        !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        differ("stet gc failed");
    posix_spawn_file_actions_destroy(&files);
    stet_free(stet);
    stet_buf_str(&w->script, "stet gc\n");
}

static void empty_tables(world *w) {
    static const char sql[] =
        "DELETE FROM action; DELETE FROM mark; DELETE FROM place_index; DELETE FROM foreign_read; "
        "DELETE FROM survey; DELETE FROM past_observation; DELETE FROM complete_branch";
    for (int i = 0; i < LINES; i++)
        held_close(w, i);
    stet_space_close(w->space);
    must(stet_space_open(w->project, "main", 0, &w->space, &err));
    stet_db *db = stet_space_db(w->space);
    must(stet_db_begin_write(db, &err));
    char *all = stet_strdup(sql), *save;
    for (char *at = strtok_r(all, ";", &save); at; at = strtok_r(NULL, ";", &save))
        stet_db_exec(db, at);
    must(stet_db_commit(db, &err));
    stet_free(all);
    stet_space_close(w->space);
    must(stet_space_open(w->project, "main", 0, &w->space, &err));
    stet_buf_printf(&w->script, "sqlite3 .stet/local/spaces/main.db '%s'\n", sql);
}

static void settle_part(world *w, int p) {
    program *x = &current(w)->p[p];
    bool which[PIECES] = {p == 0, p == 1};
    int i = pick(NODES);
    char key[16];
    if (!x->nodes[i] || !(x->results & 1u << i))
        return;
    snprintf(key, sizeof key, "n%d", x->ids[i]);
    how h = {.part = key, .set = stet_value_null(), .by_node = pick(2), .retry = pick(2)};
    drive(w, p, &h);
    compare(w, which, i);
}

/* What `get --fresh` answers is what a fresh project makes, or it fails where that one fails, too. */
static void pull(world *w, int p) {
    program *x = &current(w)->p[p];
    int i = pick(NODES);
    char key[16], doc[16];
    const bool which[PIECES] = {p == 0, p == 1};
    stet_value v = stet_value_null();
    stet_error e = STET_ERROR_INIT;
    stet_doc_state d;
    stet_path path = STET_PATH_INIT;
    if (!x->nodes[i] || !(x->results & 1u << i))
        return;
    snprintf(doc, sizeof doc, "piece:p%d", p);
    snprintf(key, sizeof key, "n%d", x->ids[i]);
    stet_path_push(&path, "value");
    stet_path_push(&path, key);
    show_programs(w);
    stet_drive_spec spec = {.space = "main", .branch = line_names[w->at]};
    stet_status status = stet_drive_fresh(w->project, &spec, &(stet_docname){doc, NULL}, stet_path_ref(&path), &v, &e);
    w->unseen[w->at] = false;
    stet_buf_printf(&w->script, "stet get %s/%s --fresh%s\n", doc, key, branch_flag(w));
    /* Whether it may fail is a matter of what it needs, not of the other piece. */
    fresh *f = judge_of(w, status == STET_OK ? both : which, which);
    must(stet_space_load(f->space, 0, &(stet_docname){doc, NULL}, -1, &d, &err));
    bool unsure = leads_to_tainted(f, stet_value_get(stet_value_get(d.value, "value"), key), 0);
    stet_value_release(d.value);
    char *want = got_text(f->sched, doc, key);
    char *got = status == STET_OK ? print(v) : stet_asprintf("(%s: %s)", stet_status_name(status), e.message);
    if (status == STET_NOT_FOUND && strncmp(want, "(not_found", 10) == 0)
        unsure = true; /* both say so */
    if (!unsure && strcmp(want, got) != 0 &&
        (status == STET_OK || (f->failed[0] + f->failed[1] == 0 && !f->away_failed[0] && !f->away_failed[1])))
        differ("get --fresh %s/%s: in a fresh project: %s; here: %s", doc, key, want, got);
    stet_free(want);
    stet_free(got);
    stet_value_release(v);
    stet_path_release(&path);
    stet_error_clear(&e);
    totals.pulled++;
}

static void one_step(world *w, const step *s) {
    dice = s->dice | 1;
    for (int i = 0; i < 5; i++)
        pick(2);
    int p = pick(PIECES);
    if (pick(5) == 0) { /* another branch */
        int to = pick(LINES);
        if (w->m.lines[to].there)
            w->at = to;
    }
    if (pick(16) == 0) /* as a process of its own would find it */
        stet_db_drop_connections(w->root);
    w->driven = -1;
    stet_buf_printf(&w->script, "# %s\n", kinds[s->kind].name);
    switch ((kind)s->kind) {
    case DOC:
        edit_doc(w);
        break;
    case FAR_DOC:
        edit_far(w);
        break;
    case AWAY:
        edit_away(w);
        break;
    case SET:
        set_key(w, p);
        break;
    case UNSET:
        unset_key(w, p);
        break;
    case DEFAULT:
        edit_default(w, p);
        break;
    case NODE:
        edit_node(w, p);
        break;
    case REMOVE:
        remove_node(w, p);
        break;
    case RENAME:
        rename_node(w, p);
        break;
    case RESULT:
        edit_result(w, p);
        break;
    case CODE:
        edit_code(w);
        break;
    case OUTPUT:
        edit_output(w, p);
        break;
    case EVENT:
        send_event(w, p);
        break;
    case FORK:
        fork_branch(w);
        break;
    case CUT:
        cut_branch(w);
        break;
    case GC:
        collect_garbage(w);
        break;
    case EMPTY:
        empty_tables(w);
        break;
    case OBSERVE: {
        how h = {.set = stet_value_null(), .observe_only = true};
        drive(w, p, &h);
        break;
    }
    case DRY: {
        how h = {.set = stet_value_null(), .dry_run = true, .retry = pick(2)};
        drive(w, p, &h);
        stet_db_drop_connections("/tmp/"); /* to copies that are gone by now */
        break;
    }
    case PART:
        settle_part(w, p);
        break;
    case PULL:
        pull(w, p);
        break;
    case KILLED:
        other_process(w, p, 1 + pick(pick(2) ? 60 : 700), false);
        break;
    case BESIDE:
        other_process(w, p, 0, pick(2));
        break;
    case REOPEN:
        held_close(w, w->at);
        break;
    case KINDS:
        break;
    }
    if (pick(10) < w->often)
        settle(w);
}

static void begin(world *w, uint64_t seed, uint32_t drop) {
    bool created;
    dice = seed * 0x9E3779B97F4A7C15ull | 1;
    for (int i = 0; i < 20; i++)
        pick(2);
    *w = (world){.arena = STET_ARENA_INIT, .script = STET_BUF(0), .root = "world"};
    w->often = (const int[]){2, 4, 8}[pick(3)];
    w->m.lines[0].there = true;
    w->m.next_id = NODES - 1;
    stet_db_keep_connections(true);
    must(stet_file_remove_tree(w->root, &err));
    must(stet_project_init(w->root, &created, &err));
    must(stet_project_open(w->root, &w->project, &err));
    w->root = stet_arena_strdup(&w->arena, stet_project_root(w->project));
    char *template = template_of("main");
    must(stet_file_mkdirs("world/.stet/local/spaces", 0700, &err));
    must(stet_file_copy(template, "world/.stet/local/spaces/main.db", 0600, false, NULL, &err));
    stet_free(template);
    must(stet_space_open(w->project, "main", 0, &w->space, &err));
    stet_buf_str(&w->script, "stet init\n");
    for (int i = 0; i < FILES && on[CODE]; i++)
        edit_code(w);
    for (int p = 0; p < PIECES; p++) {
        program *x = &current(w)->p[p];
        stet_buf b = STET_BUF(0);
        random_binding(&b, p, 0, 0);
        x->handler = keep(w, &b);
        x->cell_default = "0";
        x->made_default = "{}";
        x->results = (unsigned)pick(1 << NODES) | 5;
        for (int k = 0; k < KEYS; k++) {
            stet_buf d = STET_BUF(0);
            random_argument(&d, p, k);
            x->defaults[k] = keep(w, &d);
            if (drop >> (PIECES * NODES + p * KEYS + k) & 1)
                x->defaults[k] = "null";
        }
        for (int i = 0; i < NODES; i++) {
            x->ids[i] = i;
            if (pick(3))
                make_node(w, p, i);
            if (drop >> (p * NODES + i) & 1)
                x->nodes[i] = NULL;
        }
        program_changed(w, p);
    }
}

static void end(world *w) {
    for (int i = 0; i < LINES; i++)
        held_close(w, i);
    stet_space_close(w->space);
    stet_project_close(w->project);
    stet_db_drop_connections(w->root);
    for (int p = 0; p < PIECES; p++)
        stet_free(w->shown[p]);
    stet_arena_release(&w->arena);
    stet_buf_release(&w->script);
}

/* False: a difference; `difference` and the script say which. What is open stays so. */
static world now;
static size_t volatile reached; /* steps done when a difference was met */

static bool run_world(uint64_t seed, const steps *list) {
    reached = 0;
    if (setjmp(out_of_here))
        return false;
    begin(&now, seed, list->drop);
    for (size_t i = 0; i < list->len; i++) {
        reached = i + 1;
        one_step(&now, &list->at[i]);
    }
    for (int i = 0; i < LINES; i++) {
        if (!now.m.lines[i].there)
            continue;
        now.at = i;
        for (int p = 0; p < PIECES; p++) {
            how h = {.set = stet_value_null()};
            drive(&now, p, &h);
        }
        compare(&now, both, -1);
    }
    check_all(&now);
    end(&now);
    return true;
}

static void random_steps(uint64_t seed, size_t count, steps *out) {
    int total = 0;
    for (int k = 0; k < KINDS; k++)
        total += on[k] ? kinds[k].weight : 0;
    dice = seed * 0xD1342543DE82EF95ull | 1;
    for (int i = 0; i < 20; i++)
        pick(2);
    out->len = 0;
    out->drop = 0;
    for (size_t i = 0; i < count; i++) {
        int n = pick(total), k = 0;
        while (!on[k] || n >= kinds[k].weight)
            n -= on[k] ? kinds[k].weight : 0, k++;
        *stet_vec_add(out) = (step){k, 0};
        out->at[i].dice = ((uint64_t)pick(1 << 30) << 20) ^ (uint64_t)pick(1 << 30);
    }
}

static void write_steps(const char *path, uint64_t seed, const steps *list) {
    stet_buf b = STET_BUF(0);
    stet_buf_printf(&b, "%llu drop:%u", (unsigned long long)seed, list->drop);
    for (size_t i = 0; i < list->len; i++)
        stet_buf_printf(&b, " %s:%llu", kinds[list->at[i].kind].name, (unsigned long long)list->at[i].dice);
    stet_buf_char(&b, '\n');
    must(stet_file_replace(path, stet_buf_cstr(&b), b.len, 0644, &err));
    stet_buf_release(&b);
}

/* Replays in a process of its own, so that a crash counts, too. `*out` (may be NULL) is what it said. */
static bool still_differs(uint64_t seed, const steps *list, char **out) {
    int status;
    pid_t pid;
    char *argv[] = {program_path, NULL};
    if (setjmp(out_of_here))
        return false;
    write_steps("replay.steps", seed, list);
    setenv("CENTRAL_REPLAY", "replay.steps", 1);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "replay.out", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    bool begun = posix_spawn(&pid, program_path, &files, NULL, argv, environ) == 0 && waitpid(pid, &status, 0) == pid;
    posix_spawn_file_actions_destroy(&files);
    unsetenv("CENTRAL_REPLAY");
    bool differs = begun && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (differs && out) {
        stet_buf b = STET_BUF(0);
        if (stet_file_read("replay.out", 1 << 22, &b, NULL) == STET_OK) {
            stet_free(*out);
            *out = stet_buf_take(&b, NULL);
        }
        stet_buf_release(&b);
    }
    return differs;
}

static void shrink(uint64_t seed, steps *list, char **said) {
    time_t until = time(NULL) + (getenv("STET_TEST_SHRINK") ? atoi(getenv("STET_TEST_SHRINK")) : 60);
    for (size_t size = (list->len + 1) / 2; size > 0; size /= 2) {
        for (bool smaller = true; smaller;) {
            smaller = false;
            for (size_t from = 0; from + size <= list->len && time(NULL) < until;) {
                steps less = {.drop = list->drop};
                for (size_t i = 0; i < list->len; i++)
                    if (i < from || i >= from + size)
                        *stet_vec_add(&less) = list->at[i];
                if (still_differs(seed, &less, said)) {
                    stet_vec_release(list);
                    *list = less;
                    smaller = true;
                } else {
                    stet_vec_release(&less);
                    from += size;
                }
            }
        }
    }
    for (int bit = -1; bit < PIECES * (NODES + KEYS) && time(NULL) < until; bit++) {
        steps less = {.drop = list->drop | (bit < 0 ? (1u << PIECES * (NODES + KEYS)) - 1 : 1u << bit)};
        for (size_t i = 0; i < list->len; i++)
            *stet_vec_add(&less) = list->at[i];
        if (still_differs(seed, &less, said))
            list->drop = less.drop;
        stet_vec_release(&less);
    }
}

static bool read_steps(const char *path, uint64_t *seed, steps *list) {
    stet_buf b = STET_BUF(0);
    if (stet_file_read(path, 1 << 20, &b, NULL) != STET_OK)
        return false;
    char *text = stet_buf_take(&b, NULL), *save;
    *seed = strtoull(strtok_r(text, " \n", &save), NULL, 10);
    for (char *at = strtok_r(NULL, " \n", &save); at; at = strtok_r(NULL, " \n", &save)) {
        char *colon = strchr(at, ':');
        *colon = 0;
        if (strcmp(at, "drop") == 0)
            list->drop = (uint32_t)strtoul(colon + 1, NULL, 10);
        for (int k = 0; k < KINDS; k++)
            if (strcmp(kinds[k].name, at) == 0)
                *stet_vec_add(list) = (step){k, strtoull(colon + 1, NULL, 10)};
    }
    stet_free(text);
    return true;
}

static void print_steps(uint64_t seed, const steps *list, const char *said) {
    printf("# %zu steps are left. To replay them here: CENTRAL_REPLAY=FILE, a file with this line:\n# %llu drop:%u",
           list->len, (unsigned long long)seed, list->drop);
    for (size_t i = 0; i < list->len; i++)
        printf(" %s:%llu", kinds[list->at[i].kind].name, (unsigned long long)list->at[i].dice);
    printf("\n# As commands:\n%s", said);
    fflush(stdout);
}

/* CENTRAL_REPLAY: a file with a seed and steps. Prints the commands and what is different; with STET_TEST_SHRINK, and
 * not in a replay of its own, leaves out more of them. */
static int replay(const char *path, bool smaller) {
    steps list = {0};
    uint64_t seed;
    if (!read_steps(path, &seed, &list))
        return 2;
    bool same = run_world(seed, &list);
    if (!same) {
        char *said = stet_asprintf("%s# %s\n", stet_buf_cstr(&now.script), stet_buf_cstr(&difference));
        if (smaller && getenv("STET_TEST_SHRINK"))
            shrink(seed, &list, &said);
        if (smaller)
            print_steps(seed, &list, said);
        else
            printf("%s", said);
        fflush(stdout);
        stet_free(said);
    }
    stet_vec_release(&list);
    return same ? 0 : 3;
}

/* Each seed in a process of its own, two at a time. */
static void many_seeds(int seeds, const char *steps_each) {
    int running = 0, status;
    char *argv[] = {program_path, NULL};
    setenv("STET_TEST_STEPS", steps_each, 1);
    for (int seed = 1; seed <= seeds || running > 0;) {
        if (seed <= seeds && running < 2) {
            char number[16];
            pid_t pid;
            snprintf(number, sizeof number, "%d", seed++);
            setenv("STET_TEST_SEED", number, 1);
            assert_int_equal(posix_spawn(&pid, program_path, NULL, NULL, argv, environ), 0);
            running++;
            continue;
        }
        assert_true(wait(&status) > 0);
        running--;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("a seed differs: see above");
    }
}

static void the_incremental_result_is_that_of_a_fresh_project(void **state) {
    (void)state;
    const char *given = getenv("STET_TEST_SEED"), *exactly = getenv("STET_TEST_STEPS");
    if (getenv("STET_TEST_LONG") && !given && !exactly) {
        many_seeds(20, "50000");
        return;
    }
    long count = exactly ? atol(exactly) : getenv("STET_TEST_SHORT") ? 800 : 20000;
    uint64_t seed = (given ? strtoull(given, NULL, 10) : 1) << 32;
    steps list = {0};
    time_t start = time(NULL);
    long from = getenv("STET_TEST_FROM") ? atol(getenv("STET_TEST_FROM")) / STEPS : 0; /* worlds to leave out */
    seed += (uint64_t)from;
    for (long done = from * STEPS; done < count; done += STEPS, seed++) {
        random_steps(seed, (size_t)(count - done < STEPS ? count - done : STEPS), &list);
        if (!run_world(seed, &list)) {
            char *said = stet_asprintf("%s# %s\n", stet_buf_cstr(&now.script), stet_buf_cstr(&difference));
            list.len = reached;
            printf("# seed %llu, step %zu: %s\n", (unsigned long long)(seed >> 32), (size_t)done + reached,
                   stet_buf_cstr(&difference));
            fflush(stdout);
            shrink(seed, &list, &said);
            print_steps(seed, &list, said);
            fail_msg("the incremental result differs from that of a fresh project: see above");
        }
        totals.steps += (long)list.len;
        totals.worlds++;
    }
    stet_vec_release(&list);
    printf("# seed %s, %ld steps in %ld worlds and %ld s: %ld settlings compared with %ld fresh projects (%ld outputs, "
           "%ld results, %ld cells, %ld failures, %ld that wait for these), %ld states, %ld second runs, %ld events, "
           "%ld pulls, %ld kills\n",
           given ? given : "1", totals.steps, totals.worlds, (long)(time(NULL) - start), totals.settled, totals.judges,
           totals.outputs, totals.results, totals.made, totals.failures, totals.waiting, totals.states, totals.again,
           totals.sent, totals.pulled, totals.kills);
}

/* When it is not test/run that runs this: the build is that of this program. */
static void find_build(void) {
    char *build = stet_strdup(program_path);
    for (int up = 0; up < 3; up++) { /* build/test/property/central */
        char *dir = stet_file_dirname(build);
        stet_free(build);
        build = dir;
    }
    setenv("STET_BUILD", build, 0);
    stet_free(build);
}

/* Durability is not what is tried here: memory spares the syncs. */
static void move_to_memory(void) {
    char *home;
    faults_fast_directory();
    must(stet_file_realpath(".", &home, &err)); /* relative, it would be another one for processes in the project */
    setenv("STET_HOME", home, 1);
    stet_free(home);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_incremental_result_is_that_of_a_fresh_project)};
    const char *only = getenv("STET_TEST_KINDS");
    must(stet_file_realpath("/proc/self/exe", &program_path, &err));
    (void)argv;
    mallopt(M_TRIM_THRESHOLD, 1 << 29); /* the same memory again and again: the kernel need not give it anew */
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
    find_build();
    engine_find_plugins();
    if (getenv("CENTRAL_OTHER"))
        _exit(other_main());
    for (int k = 0; k < KINDS; k++)
        on[k] = kinds[k].weight > 0 && (!only || strstr(only, kinds[k].name));
    if (getenv("CENTRAL_REPLAY") && strcmp(getenv("CENTRAL_REPLAY"), "replay.steps") == 0) {
        court = "judge-again";
        must(stet_file_remove_tree(court, &err));
        _exit(replay("replay.steps", false));
    }
    if (getenv("CENTRAL_REPLAY")) {
        char *path;
        must(stet_file_realpath(getenv("CENTRAL_REPLAY"), &path, &err));
        move_to_memory();
        int result = replay(path, true);
        stet_free(path);
        return result;
    }
    move_to_memory();
    stet_javascript_keep_engine(true); /* a fresh project for each step, and no engine for each of them */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    forget_judge();
    stet_javascript_keep_engine(false);
    stet_db_keep_connections(false);
    return failed;
}
