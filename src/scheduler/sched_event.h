/* sched_event.h - what sched_event.c and sched_queue.c share. Not included anywhere else. */
#ifndef STET_SCHEDULER_SCHED_EVENT_H
#define STET_SCHEDULER_SCHED_EVENT_H

#include "scheduler/sched_internal.h"

#define SCHED_MAX_DELIVERIES 1000 /* of one event: itself, and what handlers send */
#define SCHED_EVENT_MAX_LOG  (1u << 20)

/* Whose turn it is, and what its handler did. */
typedef struct sched_event_turn {
    const char *key;  /* of the entry in the queue; NULL: the event that is being sent */
    char *stream;     /* its whole name, once it was found */
    char *handler;    /* the one that ran; NULL: none is left */
    bool more;        /* other handlers of the stream come after it */
    stet_value sent;  /* [ENTRY]: events that it sent on */
    stet_value entry; /* borrowed from the queue; null without a key */
} sched_event_turn;

/* Sending one event, or finishing those that wait in the queue of a piece. */
typedef struct sched_sending {
    stet_sched *s;
    sched_piece *piece; /* whose queue it is */
    const char *asked;  /* the stream as it was given; NULL: only the queue is worked off */
    stet_value event;
    char *doc, *queue_doc, *lost_doc; /* of the event, of the queue, of turns that failed */
    stet_sched_sent *out;
    char hash[STET_HASH_HEX];
    bool done;   /* the event was applied, now or before */
    bool queued; /* something follows from it that waits, or waited, in the queue */
    /* Of one attempt */
    stet_value queue; /* as the transaction sees it; null: empty */
    sched_event_turn turn;
    char about[STET_EVENT_MAX_ID + 1]; /* the id of the event that the turn follows from */
    STET_VEC(char *) coordinators;     /* "PIECE_KEY NODE": on whose word a child is there */
    bool known;                        /* the event was applied before */
    bool moved;                        /* others changed what was read: it is worth another try */
    bool idle;                         /* nothing is left to do */
    char *log_node;                    /* who printed first */
} sched_sending;

void sched_sending_release(sched_sending *e);

/* In sched_event.c: takes the next turn. STET_OK with `idle`: there was none. Any other status: the handler's error, and
 * nothing has changed. */
STET_CHECKED stet_status sched_event_attempt(sched_sending *e, stet_error *err);

/* In sched_queue.c. */
/* Finds whose turn it is. The transaction will not be committed if the queue changes meanwhile. */
STET_CHECKED stet_status sched_queue_look(sched_sending *e, stet_tx *tx, stet_error *err);
/* Writes the queue as it is after the turn. */
STET_CHECKED stet_status sched_queue_write(sched_sending *e, stet_tx *tx, stet_error *err);

#endif
