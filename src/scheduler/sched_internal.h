/* sched_internal.h - what the files of the loop share. Not included anywhere else. */
#ifndef STET_SCHEDULER_SCHED_INTERNAL_H
#define STET_SCHEDULER_SCHED_INTERNAL_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/schema.h"
#include "base/vec.h"
#include "graph/child.h"
#include "os/clock.h"
#include "os/lock.h"
#include "scheduler/envelope.h"
#include "scheduler/reader.h"
#include "scheduler/sched.h"

typedef struct sched_piece {
    stet_piece *piece;
    int level;     /* above those of the pieces that it reads; -1: not known yet */
    bool whole;    /* its result and its effects are wanted */
    bool part;     /* some of it is wanted */
    bool entered;  /* what a start has to do for it was done */
    bool loaded;   /* nothing is recorded, and all of it is in memory */
    bool counted;  /* its nodes were, because one was missing */
    bool shown;    /* its result is wanted as a cell, with all that it leads to */
    bool leads;    /* an output that this process has made holds links */
    bool outdated; /* somebody else has set it up anew: what is in memory of it is of the graph before */
} sched_piece;

/* One loaded action. */
typedef struct sched_action {
    sched_piece *piece;
    const char *node;
    stet_value row;  /* of a command: null but while it runs (sched_row_take) */
    stet_value view; /* the row with its id, as module kinds see it; null until it runs */
    const stet_module_kind *kind;
    stet_hash fingerprint;
    char *out_id, *out_scope; /* where its result goes; NULL: nowhere */
    stet_path out_path;       /* in the envelope */
    uint32_t id;              /* in the plan */
    int64_t number;           /* in the record; 0: not known */
    uint32_t conflicts;
    stet_child_role role;
    struct sched_children *children; /* of a coordinator: what it gave them last */
    char *child_doc;                 /* of a child's node: the document that is there as long as the child */
    bool verify;                     /* a coordinator that must look at every child (children.c, K4) */
    bool effect, verifier;
    bool certain;      /* whoever wants the piece wants it */
    uint32_t circle;   /* of nodes of its piece that read each other; 0: none, */
    uint32_t turn;     /* and the order in which they run */
    bool materializer; /* it, or its children, may write through cells (graph/cells.h), */
    bool unasked;      /* and that is reason enough to run it */
    bool has_cells;    /* it may write through its inputs */
    stet_value makes;  /* paths of files that it may make (makes.h), as far as its writes do not tell */
    bool same_code;    /* the record is of the code that it has now */
    bool writes_known; /* it ran in this process: the plan has all that it wrote, stored or not */
    bool observed;     /* the record has reads of it, or has them since this process ran it */
    bool failed;       /* its last run did, */
    bool doubtful;     /* and nobody can say what that rests on: it is unknown in the record */
    uint64_t tried;    /* the round (sched_round) in which it failed last */
    bool declined;     /* in this settling it could not be tried: it is outdated still, and the report says why */
    bool ran;          /* in this settling */
    bool restored;     /* and its results were taken from earlier runs, each time */
    bool asked;
    bool done_before;   /* it is marked, and the run that is continued did it (sched_run.c) */
    bool below_failed;  /* stands or is dirty, and is downstream of what failed, over actions that stand (F5) */
    uint32_t cause;     /* while it waits: the failed action that it waits for, in the plan */
    stet_sched *in;     /* of this scheduler: its own, or that of another space */
    uint32_t own_reads; /* while it waits: how many of its reads in the plan are recorded or declared, plus one */
    /* What it read in its last run has changed, and only there something failed: it is judged by what it reads now. */
    bool unsure;
    uint8_t postponed; /* times in this settling that it gave way to one that failed before and runs again */
    bool came_back;    /* it was unloaded in this settling before: it stays in memory */
} sched_action;

#define SCHED_WINDOW 10000

/* Marks in the record, and how far they were taken up (sched_pending.c). */
typedef struct sched_marks {
    size_t window;          /* how many are loaded at a time */
    bool has_more;          /* there are marks that were not taken up yet, */
    int64_t last;           /* above this number, */
    size_t remaining;       /* about so many */
    int64_t version;        /* stet_observe_version when the marks were last looked at */
    bool changed_by_others; /* somebody else has written since then */
    bool children_remade;   /* children among that: those that others made are marks that were not taken up yet */
    bool reload;            /* what was done to children did not hold: marks are to be looked at again */
    /* Survey stamp: marks at or below it do not affect the current demand and are skipped. 0: consider all. */
    int64_t surveyed;
    bool recheck; /* skipped ones may be needed now */
    stet_hash demand;
    stet_map unloaded; /* numbers of actions that were unloaded in this settling */
    enum {
        SCHED_SNAPSHOT_EACH,   /* each look-up begins its own snapshot, */
        SCHED_SNAPSHOT_WANTED, /* or the first one begins one for all, */
        SCHED_SNAPSHOT_HELD,   /* which it has */
    } snapshot;
} sched_marks;

/* Results that wait to be stored together (sched_store.c). */
typedef struct sched_batch {
    stet_group *group;
    stet_plan_nodes members; /* plan ids, in the order of the group */
    stet_plan_nodes stored;  /* those of groups that are stored, until there are enough to look which may go */
    int64_t since, flush_us;
    int64_t head;          /* sequence of the space when the group's snapshot was taken */
    int moves;             /* how often in a row others committed while a snapshot was taken */
    bool removes_children; /* the group is stored at once, for commands ask the record which files are still written */
    int64_t seen;          /* commits up to here are known to the plan */
    STET_VEC(int64_t) own; /* sequences of own commits above `seen` */
} sched_batch;

/* What has failed, and what waits for it (sched_failed.c). */
typedef struct sched_blocked {
    bool any;                  /* something has failed, was declined, or waits for what has: others may have to wait */
    bool any_far;              /* the same of another space that is read */
    bool retried;              /* what failed before was marked, to run again */
    bool is_stale;             /* `below_failed` of actions is to be found again; */
    stet_plan_nodes new_roots; /* or: only these have failed since it was */
    stet_plan_nodes roots;     /* what it was last found for, */
    stet_plan_nodes below;     /* what was found downstream of those, */
    uint64_t shape;            /* and the shape (stet_plan_shape) of the plan then */
    stet_value failed_before;  /* what the last settling found failed already: [{"piece","node","error"}] */
} sched_blocked;

/* What is wanted as cells (sched_want.c). */
typedef struct sched_want {
    stet_map cells;         /* number of a document, path: what wanted cells were found to consist of */
    STET_VEC(char *) names; /* for asking again which cells a wanted one leads to */
    stet_map named;         /* the same, to name each once */
} sched_want;

/* A settling of what a handler is going to read. */
typedef struct sched_preflight {
    bool active;
    const stet_tx_read_record *reads;
    size_t read_count;
    const char *const *nodes; /* "PIECE_KEY NODE" */
    size_t node_count;
} sched_preflight;

/* What this space has to do with others (sched_far.c). */
typedef struct sched_far_state {
    bool asked;       /* other spaces want more of this one than before */
    bool has_cells;   /* the plan knows cells of other spaces, */
    bool gained;      /* and an action reads some that it did not read before, or waits and has read them */
    int rounds;       /* in this settling: how often something ran elsewhere */
    stet_hash looked; /* what was not up to date elsewhere when the last look for it was made */
    stet_hash seen;   /* what was not up to date elsewhere after the last settling */
} sched_far_state;

struct stet_sched {
    stet_project *project;
    stet_space *space;
    char *branch_name;
    int64_t branch;
    stet_sched_opts opts;
    stet_hash runtime;
    stet_path ground; /* in the document of a piece: what changes when it is set up anew */
    stet_memo *memo;
    stet_plan *plan;
    /* What is in memory (sched_load.c) */
    stet_map pieces;  /* key of a piece (graph/process.h) -> sched_piece * */
    stet_map numbers; /* number of an action in the record -> plan id; of those loaded */
    int64_t version;  /* of the database, when numbers and what the plan has asked were last known to hold */
    bool company;     /* somebody else has written in this settling: marks in memory may be older than the record */
    bool outdated;    /* some piece is */
    stet_map spaces;  /* name -> stet_space * */
    stet_map plain;   /* documents known to hold no links: what is bound to them is read there */
    stet_envelopes envelopes;
    stet_map schemas; /* hash -> position in schema_values */
    stet_map states;  /* kind type -> state of an opened kind */
    stet_templates templates;
    STET_VEC(stet_value) schema_values;
    /* For each plan id, whether the action has, or had in this settling, anything of what sched_noted says. Passes over
     * actions go over these alone: a settling must not cost what is in memory. */
    STET_VEC(uint8_t) noted;
    /* The parts, each owned by its file */
    sched_marks marks;
    sched_batch batch;
    sched_blocked blocked;
    sched_want want;
    sched_preflight preflight;
    sched_far_state far_state;
    /* One settling */
    bool settling;
    bool stopped;   /* one failed, and no other is started */
    uint64_t round; /* see sched_round */
    uint64_t begun; /* the round of the last settling */
    stet_lock *effects;
    stet_sched_report report;
    size_t done_before; /* effects that are marked and were not done again, since the run that is continued did them */
    size_t ran_whole;   /* of the actions that ran: those of pieces that are wanted as a whole */
    stet_arena arena;   /* of one run */
    /* Asynchronous actions (sched_async.c) */
    struct sched_async *async;  /* NULL until there is one */
    struct action_run *section; /* the one of them that has a transaction just now (module.h), or NULL */
    /* Other spaces (sched_far.c) */
    stet_sched *root;      /* the scheduler that asked for this one; NULL: a user did */
    struct sched_far *far; /* of a root: schedulers of other spaces; NULL until there is one */
};

int64_t sched_now(stet_sched *s);

/* In sched_load.c. */
/* Remembers that the action failed, waits, was put aside or declined, is a materializer or makes files of children, or ran, conflicted or came
 * back in this settling. Call it wherever one of these becomes true. */
void sched_note(stet_sched *s, const sched_action *a);
/* For walks over noted actions in the order of the plan, from `*i` = 0; NULL: no more. Those that were removed or
 * unloaded are left out. */
sched_action *sched_noted(const stet_sched *s, size_t *i);
/* Sets the reads and writes of an action to those in the record. */
void sched_restore(stet_sched *s, sched_action *a, const stet_memo_action *x);
void sched_piece_free(sched_piece *p);
/* Pieces are named by their keys (graph/process.h). */
STET_CHECKED stet_status sched_piece_of(stet_sched *s, const char *key, sched_piece **out, stet_error *err);
/* Loads an action, or finds it loaded. STET_NOT_FOUND: its piece or node no longer exists. */
STET_CHECKED stet_status sched_load(stet_sched *s, const char *piece_key, const char *node, uint32_t *id,
                                    stet_error *err);
/* The same with its number and its record; NULL: no record that can be trusted. */
STET_CHECKED stet_status sched_load_action(stet_sched *s, const char *piece_key, const char *node, int64_t number,
                                           const stet_memo_action *x, uint32_t *id, stet_error *err);
/* The plan's number of an action, or STET_PLAN_NONE. */
uint32_t sched_find_loaded(stet_sched *s, const sched_piece *piece, const char *node);
/* The inverse of sched_doc: pointers into the plan's memory. `*uuid` NULL: the own space. */
void sched_doc_parts(const stet_sched *s, uint32_t doc, const char **uuid, stet_docname *name);
bool sched_doc_is_far(const stet_sched *s, uint32_t doc);
/* Can it make files, or its children? Commands do. */
bool sched_may_make(const sched_action *a);
/* Links may lead elsewhere since materializers were loaded: finds again where they may write. */
STET_CHECKED stet_status sched_envelopes_again(stet_sched *s, stet_error *err);
/* The template of its child is another one now. Of a node whose code is the same, takes over where it is in the new
 * graph: whether it is shown, its rank and its like. */
STET_CHECKED stet_status sched_child_renew(stet_sched *s, sched_action *a, stet_error *err);
/* Adds what its bindings say that it may read, as if it had no record, until it does not wait any more. */
STET_CHECKED stet_status sched_also_declared(stet_sched *s, sched_action *a, stet_error *err);
/* Loads an action by its number in the record; one that no longer exists is skipped. */
STET_CHECKED stet_status sched_load_number(stet_sched *s, int64_t number, stet_arena *arena, stet_error *err);

/* In sched_far.c. */
void sched_far_begin(stet_sched *s); /* a settling */
/* Counts the settlings that a user requests. A space that is read may be settled several times for one of those. */
uint64_t sched_round(const stet_sched *s);
bool sched_far_aside(const stet_sched *s); /* was something put aside there? */
/* Brings what is read in other spaces up to date. `*ran`: something ran there; before the call: already in this
 * settling. */
STET_CHECKED stet_status sched_far_fresh(stet_sched *s, bool *ran, stet_error *err);
/* Is something read in another space outdated there? */
STET_CHECKED stet_status sched_far_stale(stet_sched *s, bool *out, stet_error *err);
/* Does that differ from the end of the last settling? */
STET_CHECKED stet_status sched_far_news(stet_sched *s, bool *out, stet_error *err);
STET_CHECKED stet_status sched_far_end(stet_sched *s, stet_error *err);
void sched_far_count(const stet_sched *s, stet_sched_report *out); /* adds what failed and was put aside there */
/* The loaded actions that write a cell of another space; `*in` is the scheduler of that space, NULL if there is none.
 */
STET_CHECKED stet_status sched_far_makers(stet_sched *s, uint32_t doc, stet_pathref path, stet_sched **in,
                                          stet_plan_nodes *out, stet_error *err);
/* Does this scheduler still exist? Its space may have been replaced. */
bool sched_far_knows(stet_sched *s, const stet_sched *other);
void sched_far_free(stet_sched *s);

uint32_t sched_doc(stet_sched *s, const char *space_uuid, const stet_docname *name);
/* Closes spaces whose file was deleted or replaced. Call it between two groups: no transaction may read them. */
void sched_spaces_look(stet_sched *s);
STET_CHECKED stet_status sched_space(void *ctx, const char *name, stet_space **out, stet_error *err);
stet_status sched_readers(void *ctx, stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                          bool *covered, stet_error *err);
STET_CHECKED stet_status sched_kind_state(stet_sched *s, const stet_module_kind *kind, void **state, stet_error *err);
STET_CHECKED stet_status sched_schema(stet_sched *s, stet_value hash, stet_value *out, stet_error *err);
/* Forgets what the record was asked, because others have written, or actions were removed from the plan. */
void sched_forget_asked(stet_sched *s);
/* Loads an action that was just created and has no record. */
STET_CHECKED stet_status sched_load_new(stet_sched *s, const char *piece_key, const char *node, uint32_t *id,
                                        stet_error *err);
/* Loads and marks dirty and unknown actions from the beginning, up to a window of them; s->more: there are more, and
 * sched_load_more continues. */
STET_CHECKED stet_status sched_load_pending(stet_sched *s, stet_error *err);
STET_CHECKED stet_status sched_load_more(stet_sched *s, stet_error *err);
/* Can it be replaced in memory by what the record has? Of other actions, more is in memory than what they read and
 * write. */
bool sched_restorable(const sched_action *a);
/* Updates a dirty or unknown action from the record, which may know better. */
STET_CHECKED stet_status sched_look_again(stet_sched *s, uint32_t id, stet_error *err);
/* Actions that were found unneeded may be needed now: they are loaded again, before any late action runs. */
void sched_wake(stet_sched *s);
/* Looks up which marks are unneeded for the current demand, and sets `s->since`. STET_NOT_FOUND: nothing is known. */
STET_CHECKED stet_status sched_survey(stet_sched *s, stet_survey *out, stet_error *err);
/* After a store: unloads actions that ran, are up to date and stored, if there are many. */
void sched_unload(stet_sched *s);
void sched_action_free(sched_action *a);

/* An event that a handler sends: to the stream of a piece, or to a cell where there may be one later. */
typedef struct sched_sent {
    char *piece, *stream;
    char *id, *scope, *path; /* the cell; `path` is a JSON pointer into the value of its document */
    stet_value event;
} sched_sent;

/* A place that an earlier run wrote, or that this one has looked at, in the argument or a cell of its piece. */
typedef struct sched_earlier {
    char *id;
    stet_path path; /* in the envelope */
    bool met;       /* taken back, or kept: */
    bool kept;      /* it stays the action's own */
} sched_earlier;

/* One run of one action. */
/* May an action run now? In sched_failed.c. */
typedef enum sched_turn {
    SCHED_GO,        /* nothing upstream failed */
    SCHED_WAITS,     /* something did */
    SCHED_POSTPONED, /* something did before, or is outdated, and is going to run again: that comes first */
    SCHED_LATER      /* it is going to read cells of other spaces that it did not read before: those come first */
} sched_turn;

typedef struct action_run {
    stet_run base; /* first: module kinds see this */
    stet_sched *s;
    sched_action *a;
    stet_tx *tx; /* NULL between start and refresh of an asynchronous one */
    stet_reader reader;
    stet_value result;
    STET_VEC(stet_docname) wrote; /* documents written to through cells; the strings are its own */
    STET_VEC(stet_address) set;   /* places written through cells; the strings are its own */
    STET_VEC(sched_earlier) earlier, looked;
    bool earlier_known;
    STET_VEC(char *) docs; /* ids of documents that it writes as a whole, changed or not: they are its own */
    stet_error error;
    stet_buf *log; /* what it says is kept here instead of being told; NULL: told at once */
    bool failed;
    bool declined;                /* nothing is recorded of it; `error` says why */
    bool asynchronous;            /* start has returned: its end stores it */
    bool unwanted;                /* it is stopped as soon as start has returned */
    bool placed;                  /* its output is written already */
    sched_turn turn;              /* what stet_run_waits has said */
    bool leads;                   /* links in what it wrote show more than it or its children make (sched_want.c) */
    struct sched_lists *children; /* made and gone; NULL: it is no coordinator */
    STET_VEC(sched_sent) sent;    /* by a handler: events that are delivered after it */
} action_run;

/* In children.c. */
STET_CHECKED stet_status sched_children_set(action_run *r, const stet_run_child *at, size_t len, stet_error *err);
/* The run returned a pattern, or null. */
STET_CHECKED stet_status sched_children_returned(action_run *r, stet_value pattern, stet_error *err);
void sched_children_lists(const action_run *r, stet_observation *o);
/* The run is in the group: tells the plan about its children. */
STET_CHECKED stet_status sched_children_apply(stet_sched *s, sched_action *a, struct sched_lists *lists,
                                              stet_error *err);
void sched_children_release(action_run *r);
/* The same for a run of which nothing is stored: what this process knows of the children is not what they have. */
void sched_children_give_up(action_run *r);
void sched_children_forget(sched_action *a); /* what is in memory of them */
bool sched_child_there(action_run *r);       /* has the child that the action belongs to not gone meanwhile? */
/* The place in a chain of children, as far as a run of the coordinator in this process tells. */
uint32_t sched_child_place(stet_sched *s, const sched_action *a);
/* Marks the coordinator of a child's action if another writer has changed the document of the child since. */
STET_CHECKED stet_status sched_child_mend(stet_sched *s, sched_action *a, stet_error *err);
/* The same for the changes of a commit by others, and loaded actions. */
STET_CHECKED stet_status sched_children_overwritten(stet_sched *s, const stet_doc_change *at, size_t len,
                                                    stet_error *err);
/* Another process changed this document: if it is an index, rows of its children may have changed. */
void sched_children_news(stet_sched *s, const stet_docname *doc);

/* In install.c: what the graph must know about module kinds. */
stet_process_modules sched_modules(stet_sched *s);
/* Notes that a commit by others has set up a loaded piece again. */
void sched_install_news(stet_sched *s, const stet_doc_change *change, int64_t seq);
/* Unloads such pieces. None of their actions may be under way or not yet stored. */
void sched_renew(stet_sched *s);

/* sched_run.c */
/* Prepares a run on the state of the group, and starts its module. */
STET_CHECKED stet_status sched_run_begin(stet_sched *s, sched_action *a, action_run *r, stet_error *err);
STET_CHECKED stet_status sched_run_transaction(action_run *r, stet_error *err);
void sched_run_drop(action_run *r); /* instead of store */
void sched_run_execute(action_run *r);
void sched_run_check(action_run *r); /* the result, and its place in the transaction */
/* Adds the run to the group, tells the plan, and ends the run. */
STET_CHECKED stet_status sched_run_store(action_run *r, stet_error *err);
/* Did the run end because of stet itself, or on request? Then it says nothing about the action. */
bool sched_run_tells_nothing(const action_run *r);
/* Instead of store, without a transaction: nothing is recorded, the action is as outdated as it was. */
void sched_run_leave(action_run *r);
void sched_effect_done(stet_sched *s); /* gives up the lock between processes */
void sched_tell_pause(stet_sched *s);  /* kinds: others are waited for (module.h) */
void sched_emit(stet_sched *s, stet_sched_event_kind kind, const sched_action *a, const stet_error *error);

/* Loads the row of an action that is about to run, and its view. STET_NOT_FOUND: the graph has another node in its
 * place, or none; then its piece is outdated. */
STET_CHECKED stet_status sched_row_take(stet_sched *s, sched_action *a, stet_error *err);
/* Releases the row of an action that waits to run or has run. In a first build most of many commands are in memory at
 * once, and reading a row again costs little compared with a command. */
void sched_row_drop(sched_action *a);

/* Fills an action from its row. */
STET_CHECKED stet_status sched_decode_row(sched_action *a, stet_error *err);

/* In sched_cell.c: writing through inputs. */
/* Consumes `value`. */
STET_CHECKED stet_status sched_cell_write(action_run *r, stet_pathref path, stet_value value, stet_error *err);
/* Do the writes match the schemas of the cells? */
STET_CHECKED stet_status sched_cells_check(action_run *r, stet_error *err);
/* Discards the writes and keeps the reads: the transaction is begun anew in the group. */
STET_CHECKED stet_status sched_cells_drop(action_run *r, stet_error *err);
void sched_cells_release(action_run *r);
/* Sends an event to the stream that a cell represents. Consumes `value`. */
STET_CHECKED stet_status sched_cell_send(action_run *r, stet_pathref path, stet_value value, stet_error *err);
void sched_sent_release(action_run *r);
/* Notes that the run changes a document through cells. */
void sched_cells_note(action_run *r, const stet_docname *name);
/* The places that the run set through cells, and those of earlier runs that stay the action's own. In the arena. */
size_t sched_cells_set(action_run *r, stet_arena *arena, stet_address **out);
/* Tells the plan what a run has written besides its output, and so owns. */
void sched_cells_learn(action_run *r);
bool sched_has_cells(stet_value inputs);
size_t sched_bound_cells(const sched_action *a, stet_arena *arena, stet_address **out); /* inputs that are cells */
/* Cells that the action still has and that its earlier code wrote stay its own. */
void sched_cells_recall(stet_sched *s, const sched_action *a);
/* The cells in a row, "materializer". In the arena. */
size_t sched_envelopes(const sched_action *a, stet_arena *arena, stet_address **out);
/* The same with the cells of `makes`, an array of paths. */
size_t sched_envelopes_with(const sched_action *a, stet_value makes, stet_arena *arena, stet_address **out);

/* In sched_earlier.c: what earlier runs wrote through cells. */
/* Call it before a write into this document. */
STET_CHECKED stet_status sched_earlier_before(action_run *r, const stet_docname *name, stet_error *err);
/* Call it after a run that succeeded. */
STET_CHECKED stet_status sched_earlier_end(action_run *r, stet_error *err);
/* The run reads at a path of its inputs. */
void sched_earlier_look(action_run *r, stet_pathref path);
/* The number of places of earlier runs that stay the action's own; copies them to `out`, unless that is NULL. */
size_t sched_earlier_kept(action_run *r, stet_address *out);
void sched_earlier_release(action_run *r);
/* A node of a child was removed: takes back what it wrote. */
STET_CHECKED stet_status sched_earlier_gone(stet_sched *s, stet_tx *tx, const sched_action *coordinator,
                                            const char *node, stet_error *err);

/* In sched_async.c: actions that are under way while others run. */
STET_CHECKED stet_status sched_async_run(stet_sched *s, sched_action *a, stet_error *err);
void sched_async_ended(action_run *r); /* by succeed, fail or decline */
stet_status sched_async_refresh(action_run *r, stet_error *err);
/* stet_run_yield: true if the run has ended, and is freed. */
bool sched_async_yield(action_run *r);
void sched_async_suspend(action_run *r);
/* Waits for events, at most `ms`; returns the status of storing the results. */
STET_CHECKED stet_status sched_async_wait(stet_sched *s, int64_t ms, stet_error *err);
size_t sched_async_count(const stet_sched *s);
action_run *sched_async_running(const stet_sched *s, const sched_action *a); /* NULL: it is not under way */
void sched_async_stop(action_run *r);   /* nobody wants it any more: it ends now or soon */
void sched_async_cancel(stet_sched *s); /* and waits until all have ended */
STET_CHECKED stet_status sched_async_loop(stet_sched *s, struct uv_loop_s **out, stet_error *err);
void sched_async_free(stet_sched *s);

/* In sched_want.c: demands. */
/* For stet_binding_walk over a result: demands what a link leads to. `ctx` is the scheduler. */
bool sched_demand_link(void *ctx, stet_value binding, stet_pathref place);
/* Call it after a run that succeeded: notes in the record whether links in its output lead elsewhere. */
STET_CHECKED stet_status sched_note_links(action_run *r, bool links, stet_error *err);
/* Does a child show more than its nodes make? */
bool sched_child_leads(const stet_template *t);
/* Demands the results of whole pieces that show more, as cells. None of our own results may be waiting to be stored. */
STET_CHECKED stet_status sched_show_results(stet_sched *s, stet_error *err);
/* Demands the wanted cells and what they link to now; *grew: more than before. */
STET_CHECKED stet_status sched_demand_cells(stet_sched *s, bool *grew, stet_error *err);
/* What a start has to do for the pieces that are wanted. */
STET_CHECKED stet_status sched_enter(stet_sched *s, stet_error *err);

/* In sched.c: settles the demands, these cells, and these actions ("PIECE_KEY NODE"; skipped if they do not exist). */
STET_CHECKED stet_status sched_make_fresh(stet_sched *s, const stet_tx_read_record *at, size_t count,
                                          const char *const *nodes, size_t node_count, size_t *runs, stet_error *err);

/* In sched_report.c: the outcome of a settling. */
void sched_problem(stet_sched *s, const sched_action *a, const stet_error *error, const char *cycle);
void sched_report_cycles(stet_sched *s); /* those that were put aside, each with its circle */
/* Counts failed, left and all actions. `left`: how many are outdated, if that is known; otherwise negative. */
STET_CHECKED stet_status sched_report_count(stet_sched *s, int64_t left, stet_error *err);
/* Is only a part of this piece wanted, and not to prepare an event? */
bool sched_part(const stet_sched *s, const sched_piece *p);

/* In sched_failed.c: what failed, and what has to wait for it. */
/* Loads all failed actions, as recorded. None of our own results may be waiting to be stored. */
STET_CHECKED stet_status sched_meet_failures(stet_sched *s, stet_error *err);
/* Marks what failed before, so that it runs again if it is wanted. Once for each scheduler. */
STET_CHECKED stet_status sched_retry(stet_sched *s, stet_error *err);
/* Is there a failure, here or in a space that is read? */
bool sched_has_trouble(const stet_sched *s);
/* Finds the actions downstream of failed ones (F5). Nothing may be under way in a transaction. */
STET_CHECKED stet_status sched_find_below(stet_sched *s, stet_error *err);
/* The action failed; an action does not fail any more. */
void sched_fell(stet_sched *s, const sched_action *a);
void sched_rose(stet_sched *s);
/* What is read in other spaces was settled: actions that waited for it and need not any more are considered again, and
 * those that failed because of it wait. */
STET_CHECKED stet_status sched_far_judge(stet_sched *s, stet_error *err);
/* What is read in other spaces is up to date: actions that were put off until then are considered again. If something
 * ran there, so are those that wait and have read cells of other spaces. */
void sched_far_looked(stet_sched *s, bool ran);
/* Does the action read, in another space, the output of one that failed or waits there? */
STET_CHECKED stet_status sched_waits_far(stet_sched *s, sched_action *a, bool *out, stet_error *err);
/* Does the run of an action count, by what it read? If not, all of that is among its reads in the plan then. */
sched_turn sched_turn_of(stet_sched *s, sched_action *a, const stet_tx_read_record *at, size_t count, bool failed);
/* The same for an action that must not even begin, by what its inputs lead to now. */
/* By what a run has read so far, before it does anything. */
sched_turn sched_turn_now(action_run *r);
STET_CHECKED stet_status sched_run_give_way(action_run *r, sched_turn turn, stet_error *err);
STET_CHECKED stet_status sched_turn_before(stet_sched *s, sched_action *a, sched_turn *out, stet_error *err);
/* Adds to the reads of an action in the plan, until it does not wait any more. True: some of it is new. */
bool sched_also_reads(stet_sched *s, sched_action *a, const stet_plan_read *more, size_t count);
/* The action failed or waits: actions that failed because of it wait too. */
void sched_failed_upstream(stet_sched *s, const sched_action *a);
/* At the beginning of a settling: forgets that actions waited in the last one. */
void sched_forget_waiting(stet_sched *s, sched_action *a);
/* At the end of a settling: an action that failed once, and waits now, is not known to fail. */
STET_CHECKED stet_status sched_doubt_waiting(stet_sched *s, stet_error *err);
/* Does the action fail, as far as is known? */
bool sched_fails(const stet_sched *s, const sched_action *a);

/* In sched_leads.c: actions that make a part of what was read and that failed, or are stale because of a failure, as
 * stet_sched_leads_to lists them. The caller releases `*out`, also after a failure. */
STET_CHECKED stet_status sched_failed_makers(stet_sched *s, const stet_tx_read_record *at, size_t count,
                                             stet_value *out, stet_error *err);

/* sched_run.c */
STET_CHECKED stet_status sched_run(stet_sched *s, uint32_t id, stet_error *err);

/* In sched_ops.c: what a module kind may do with a run. */
extern const stet_run_ops sched_run_ops;

/* In sched_store.c. */
/* A failure of this settling that was not stored because its reads no longer hold, or that was mended: it is not
 * reported. `a->failed` stays: the record may have an earlier failure. */
void sched_take_back(stet_sched *s, const sched_action *a);
/* Ends the group: the next transaction sees what is committed by now. What the group has not stored is outdated again.
 */
void sched_group_end(stet_sched *s);
/* The action could not be tried, or others kept changing what it reads: it stays outdated, does not run again in this
 * settling, and the report says why. It must not be under way. */
void sched_decline(stet_sched *s, sched_action *a, const stet_error *error);
STET_CHECKED stet_status sched_flush(stet_sched *s, stet_error *err);
STET_CHECKED stet_status sched_flush_due(stet_sched *s, stet_error *err); /* if it is time */
int64_t sched_flush_in_us(const stet_sched *s); /* how long the group may still wait; negative: store it now */
/* Tells the plan about commits by others. */
STET_CHECKED stet_status sched_news(stet_sched *s, bool *any, stet_error *err);
STET_CHECKED stet_status sched_tell_changes(stet_sched *s, const stet_doc_change *changes, size_t count, uint32_t by,
                                            stet_error *err);

#endif
