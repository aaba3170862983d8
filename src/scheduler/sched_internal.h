/* sched_internal.h - what the files of the loop share. Nobody else includes it. */
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
#include "scheduler/reader.h"
#include "scheduler/sched.h"

typedef struct sched_piece {
    stet_piece *piece;
    char *failures;       /* id of the document that lists what fails: {NODE: error} */
    int level;            /* above those of the pieces that it reads; -1: not known yet */
    bool whole;           /* its result and its effects are wanted */
    bool part;            /* some of it is wanted */
    bool retried;         /* what failed before was marked, to run again */
    bool entered;         /* what a start has to do for it was done */
    bool loaded;          /* nothing is recorded, and all of it is in memory */
    bool outdated;        /* somebody else has set it up anew: what is in memory of it is of the graph before */
    bool looked, failing; /* did something fail, as far as this process has looked? */
    bool known_failures;  /* what failed before is in memory, for whoever would wait for it */
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
    bool certain; /* whoever wants the piece wants it */
    bool materializer;
    bool has_cells; /* it may write through its inputs */
    bool same_code; /* the record is of the code that it has now */
    bool observed;  /* the record has reads of it, or has them since this process ran it */
    bool failed;
    bool ran; /* in this settling */
    bool asked;
    bool stays; /* in memory: it was unloaded in this settling before, and came back */
} sched_action;

#define SCHED_WINDOW 10000

struct stet_sched {
    stet_project *project;
    stet_space *space;
    char *branch_name;
    int64_t branch;
    stet_sched_opts opts;
    stet_hash runtime;
    stet_path ground; /* in the document of a piece: what changes when it is set up anew */
    bool outdated;    /* some piece is */
    stet_memo *memo;
    stet_plan *plan;
    stet_map pieces;  /* result document id -> sched_piece * */
    stet_map numbers; /* number of an action in the record -> plan id; of those loaded */
    int64_t version;  /* of the database, when numbers and what the plan has asked were last known to hold */
    bool others;      /* somebody else has written since the marks were last looked at */
    size_t window;
    bool more;     /* there are marks that were not taken up yet, */
    int64_t after; /* above this number, */
    size_t left;   /* about so many */
    int64_t since; /* marks up to here were found not to be needed for `demand`: they are not taken up; 0: all are */
    bool woken;    /* they may be needed now */
    stet_hash demand;
    int64_t looked;     /* version of the database when the marks were last looked at */
    bool hold, holding; /* look-ups share one snapshot, which is begun by the first */
    stet_map gone;      /* numbers of actions that were unloaded in this settling */
    stet_map spaces;    /* name -> stet_space * */
    stet_map plain;     /* documents known to hold no links: what is bound to them is read there */
    stet_map schemas;   /* hash -> position in schema_values */
    stet_map states;    /* kind type -> state of an opened kind */
    stet_templates templates;
    STET_VEC(stet_value) schema_values;
    stet_group *group;
    stet_plan_nodes members; /* plan ids, in the order of the group */
    stet_plan_nodes stored;  /* those of groups that are stored, until there are enough to look which may go */
    int64_t group_since, flush_us;
    int64_t seen;                  /* commits up to here are known to the plan */
    STET_VEC(int64_t) mine;        /* sequences of own commits above `seen` */
    stet_map wanted;               /* number of a document, path: what wanted cells were found to consist of */
    STET_VEC(char *) wanted_cells; /* for asking again which cells a wanted one leads to */
    stet_lock *effects;
    stet_sched_report report;
    stet_arena arena; /* of one run */
    /* Asynchronous actions (sched_async.c) */
    struct sched_async *async; /* NULL until there is one */
    int64_t group_head;        /* sequence of the space when the group's snapshot was taken */
    bool preflight;            /* settling what a handler is going to read: */
    const stet_tx_read_record *preflight_reads;
    size_t preflight_count;
    const char *const *preflight_nodes; /* "piece:NAME NODE" */
    size_t preflight_node_count;
    bool stopped;             /* one failed, and no other is started */
    bool trouble;             /* something that costs much has failed, or waits for what has: others may have to wait */
    stet_value failed_before; /* what the last settling found failed already: [{"piece","node","error"}] */
    bool reload;              /* what was done to children did not hold: marks are to be looked at again */
};

int64_t sched_now(stet_sched *s);

/* sched_load.c */
/* {NODE: error} of a piece; the caller releases it. */
STET_CHECKED stet_status sched_failures(stet_sched *s, const sched_piece *p, stet_value *out, stet_error *err);
void sched_piece_free(sched_piece *p);
STET_CHECKED stet_status sched_piece_of(stet_sched *s, const char *doc, sched_piece **out, stet_error *err);
/* Loads an action, or finds it loaded. STET_NOT_FOUND: its piece or node is gone. */
STET_CHECKED stet_status sched_load(stet_sched *s, const char *piece_doc, const char *node, uint32_t *id,
                                    stet_error *err);
/* The same with its number and what the record has of it; NULL: nothing that can be trusted. */
STET_CHECKED stet_status sched_load_action(stet_sched *s, const char *piece_doc, const char *node, int64_t number,
                                           const stet_memo_action *x, uint32_t *id, stet_error *err);
/* The plan's number of an action, or STET_PLAN_NONE. */
uint32_t sched_find_loaded(stet_sched *s, const sched_piece *piece, const char *node);
uint32_t sched_doc(stet_sched *s, const char *space_uuid, const stet_docname *name);
STET_CHECKED stet_status sched_space(void *ctx, const char *name, stet_space **out, stet_error *err);
stet_status sched_readers(void *ctx, stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                          bool *covered, stet_error *err);
STET_CHECKED stet_status sched_kind_state(stet_sched *s, const stet_module_kind *kind, void **state, stet_error *err);
STET_CHECKED stet_status sched_schema(stet_sched *s, stet_value hash, stet_value *out, stet_error *err);
/* Others have written, or actions were taken from the plan: what was asked of the record is asked again. */
void sched_forget_asked(stet_sched *s);
/* Loads one that was just made: there is no record of it. */
STET_CHECKED stet_status sched_load_new(stet_sched *s, const char *piece_doc, const char *node, uint32_t *id,
                                        stet_error *err);
/* Loads and marks what the record calls dirty or unknown, from the beginning and up to a window of them; s->more: there
 * are more, and sched_load_more goes on. */
STET_CHECKED stet_status sched_load_pending(stet_sched *s, stet_error *err);
STET_CHECKED stet_status sched_load_more(stet_sched *s, stet_error *err);
/* One that is dirty, and of which the record may know better: it becomes what the record says. */
STET_CHECKED stet_status sched_look_again(stet_sched *s, uint32_t id, stet_error *err);
/* What was found not to be needed may be needed now: it is taken up again, before anything late runs. */
void sched_wake(stet_sched *s);
/* Asks what was found not to be needed for what is wanted now; `s->since` says. STET_NOT_FOUND: nothing is known. */
STET_CHECKED stet_status sched_survey(stet_sched *s, stet_survey *out, stet_error *err);
/* After a store: takes actions out of memory that ran, stand and are stored, if there are many. */
void sched_unload(stet_sched *s);
void sched_action_free(sched_action *a);

/* An event that a handler sends: to a stream of this piece. */
typedef struct sched_sent {
    char *piece, *stream;
    stet_value event;
} sched_sent;

/* One run of one action. */
typedef struct action_run {
    stet_run base; /* first: module kinds see this */
    stet_sched *s;
    sched_action *a;
    stet_tx *tx; /* NULL between start and refresh of an asynchronous one */
    stet_reader reader;
    stet_value result;
    STET_VEC(stet_docname) wrote; /* documents written to through cells; the strings are its own */
    stet_error error;
    stet_buf *log; /* what it says is kept here instead of being told; NULL: told at once */
    bool failed;
    bool asynchronous;            /* start has returned: its end stores it */
    bool placed;                  /* its output is written already */
    struct sched_lists *children; /* made and gone; NULL: it is no coordinator */
    STET_VEC(sched_sent) sent;    /* by a handler: events that are delivered after it */
} action_run;

/* children.c */
STET_CHECKED stet_status sched_children_set(action_run *r, const stet_run_child *at, size_t len, stet_error *err);
/* The run returned a pattern, or null. */
STET_CHECKED stet_status sched_children_returned(action_run *r, stet_value pattern, stet_error *err);
void sched_children_lists(const action_run *r, stet_observation *o);
/* The run is in the group: the plan learns of its children. */
STET_CHECKED stet_status sched_children_apply(stet_sched *s, sched_action *a, struct sched_lists *lists,
                                              stet_error *err);
void sched_children_release(action_run *r);
void sched_children_forget(sched_action *a); /* what is in memory of them */
bool sched_child_there(action_run *r);       /* has the child that the action belongs to not gone meanwhile? */
/* How far up in a chain of children its place is, as far as a run of the coordinator in this process tells. */
uint32_t sched_child_place(stet_sched *s, const sched_action *a);
/* Marks the coordinator of a child's action if somebody else wrote into the document of the child since. */
STET_CHECKED stet_status sched_child_mend(stet_sched *s, sched_action *a, stet_error *err);
/* The same for what a commit of others changed, and actions that are loaded. */
STET_CHECKED stet_status sched_children_overwritten(stet_sched *s, const stet_doc_change *at, size_t len,
                                                    stet_error *err);
/* Somebody else changed this document: if it is an index, rows of those children may be others now. */
void sched_children_news(stet_sched *s, const char *doc);

/* install.c: what the graph must know of module kinds. */
stet_process_modules sched_modules(stet_sched *s);
/* Notes that a commit by others has set up a piece anew that is in memory. */
void sched_install_news(stet_sched *s, const stet_doc_change *change, int64_t seq);
/* Takes what is in memory of such pieces out of it. Nothing of them may be under way or not yet stored. */
void sched_renew(stet_sched *s);

/* sched_run.c */
/* Prepares a run on what the group has, and starts its module. */
STET_CHECKED stet_status sched_run_begin(stet_sched *s, sched_action *a, action_run *r, stet_error *err);
STET_CHECKED stet_status sched_run_transaction(action_run *r, stet_error *err);
void sched_run_drop(action_run *r); /* instead of store */
void sched_run_execute(action_run *r);
void sched_run_check(action_run *r); /* the result, and its place in the transaction */
/* Adds it to the group and tells the plan; ends the run. */
STET_CHECKED stet_status sched_run_store(action_run *r, stet_error *err);
void sched_effect_done(stet_sched *s); /* gives up the lock between processes */
void sched_emit(stet_sched *s, stet_sched_event_kind kind, const sched_action *a, const stet_error *error);

/* The row of one that is about to run, and its view. STET_NOT_FOUND: the graph has another in its place, or none; its
 * piece is outdated then. */
STET_CHECKED stet_status sched_row_take(stet_sched *s, sched_action *a, stet_error *err);
/* Of one that waits to run or has run: a first build of many commands has most of them in memory at once, and a row is
 * read again in no time beside a command. */
void sched_row_drop(sched_action *a);

/* Fills an action from its row. */
STET_CHECKED stet_status sched_decode_row(sched_action *a, stet_error *err);

/* sched_cell.c: writing through inputs */
/* Consumes `value`. */
STET_CHECKED stet_status sched_cell_write(action_run *r, stet_pathref path, stet_value value, stet_error *err);
/* Does what was written match the schemas of the cells? */
STET_CHECKED stet_status sched_cells_check(action_run *r, stet_error *err);
/* Forgets what was written and keeps what was read: the transaction is begun anew in the group. */
STET_CHECKED stet_status sched_cells_drop(action_run *r, stet_error *err);
void sched_cells_release(action_run *r);
/* An event for the stream that a cell stands for. Consumes `value`. */
STET_CHECKED stet_status sched_cell_send(action_run *r, stet_pathref path, stet_value value, stet_error *err);
void sched_sent_release(action_run *r);
/* Tells the plan what a run has written beside its output: that is its own, with what it wrote before. */
void sched_cells_learn(stet_sched *s, const sched_action *a, const stet_doc_change *changes, size_t count);
bool sched_has_cells(stet_value inputs);
/* Where a row says that its node may write: "materializer". In the arena. */
size_t sched_bound_cells(const sched_action *a, stet_arena *arena, stet_address **out); /* inputs that are cells */
/* What an action of other code wrote into the cells that it has still: that stays its own. */
void sched_cells_recall(stet_sched *s, const sched_action *a);
size_t sched_envelopes(const sched_action *a, stet_arena *arena, stet_address **out);

/* sched_async.c: actions that are under way while others run */
STET_CHECKED stet_status sched_async_run(stet_sched *s, sched_action *a, stet_error *err);
void sched_async_ended(action_run *r); /* by succeed or fail */
stet_status sched_async_refresh(action_run *r, stet_error *err);
/* Waits until something happens, at most `ms`; reports what storing the results said. */
STET_CHECKED stet_status sched_async_wait(stet_sched *s, int64_t ms, stet_error *err);
size_t sched_async_count(const stet_sched *s);
action_run *sched_async_running(const stet_sched *s, const sched_action *a); /* NULL: it is not under way */
void sched_async_cancel(stet_sched *s);                                      /* and waits until all have ended */
STET_CHECKED stet_status sched_async_loop(stet_sched *s, struct uv_loop_s **out, stet_error *err);
void sched_async_free(stet_sched *s);

/* sched_want.c: what is wanted */
/* For stet_binding_walk over a result: what a link leads to is wanted. `ctx` is the scheduler. */
bool sched_demand_link(void *ctx, stet_value binding, stet_pathref place);
/* Wanted cells, and where they lead now; *grew: to more than before. */
STET_CHECKED stet_status sched_demand_cells(stet_sched *s, bool *grew, stet_error *err);
/* What a start has to do for the pieces that are wanted. */
STET_CHECKED stet_status sched_enter(stet_sched *s, stet_error *err);

/* sched.c: settles what is wanted, these cells, and these actions ("piece:NAME NODE"; passed over if not there). */
STET_CHECKED stet_status sched_make_fresh(stet_sched *s, const stet_tx_read_record *at, size_t count,
                                          const char *const *nodes, size_t node_count, size_t *runs, stet_error *err);

/* sched_report.c: what a settling has come to */
void sched_report_cycles(stet_sched *s); /* those that were put aside, each with its circle */
/* How many failed, are left, and are there. `left`: how many do not stand, if that is known; else negative. */
STET_CHECKED stet_status sched_report_count(stet_sched *s, int64_t left, stet_error *err);
/* Is it a piece of which a part is wanted, and not to prepare an event? */
bool sched_part(const stet_sched *s, const sched_piece *p);

/* sched_run.c */
STET_CHECKED stet_status sched_run(stet_sched *s, uint32_t id, stet_error *err);
void sched_problem(stet_sched *s, const sched_action *a, const stet_error *error, const char *cycle);

/* sched_ops.c: what a module kind may do with a run. */
extern const stet_run_ops sched_run_ops;

/* sched_store.c */
STET_CHECKED stet_status sched_flush(stet_sched *s, stet_error *err);
STET_CHECKED stet_status sched_flush_due(stet_sched *s, stet_error *err); /* if it is time */
int64_t sched_flush_in_us(const stet_sched *s); /* how long the group may still wait; negative: it is time */
/* Tells the plan of commits by others. */
STET_CHECKED stet_status sched_news(stet_sched *s, bool *any, stet_error *err);
STET_CHECKED stet_status sched_tell_changes(stet_sched *s, const stet_doc_change *changes, size_t count, uint32_t by,
                                            stet_error *err);

#endif
