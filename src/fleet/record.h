/* record.h - what the registry knows of one run: derived from its state.json, never the other way round.
 *
 * A record is plain data whose strings live in an arena. stet_fleet_record_derive makes one from a state that was just
 * read; stet_fleet_record_write and stet_fleet_record_read carry it through a line of index.json;
 * stet_fleet_record_value shows it to people and programs, with the overlays and the freshness that the registry has
 * put in.
 *
 * Strings are never NULL; what is not known is "".
 */
#ifndef STET_FLEET_RECORD_H
#define STET_FLEET_RECORD_H

#include "base/arena.h"
#include "fleet/state.h"

#define STET_FLEET_RECORD_VERSION     1
#define STET_FLEET_RECORD_INPUTS_MAX  512 /* bytes of the digest of inputs that free text is looked for in */
#define STET_FLEET_RECORD_MESSAGE_MAX 240

typedef enum stet_freshness { STET_FRESH_VALID, STET_FRESH_STALE, STET_FRESH_MISSING } stet_freshness;

typedef struct stet_provenance {
    const char *rerun_of, *rerun_of_repo, *origin_run_id, *reason, *created_at, *actor;
    int64_t generation; /* 0: no rerun, and all strings are "" */
} stet_provenance;

typedef struct stet_fleet_record {
    /* from the source */
    const char *id, *app_id, *app_version, *app_title, *workflow_id, *title, *piece, *actor;
    const char *created_at, *updated_at, *loop_stage;
    const char *inputs; /* digest */
    const char *failed_task, *failed_message;
    const char *labels; /* each followed by '\n' */
    stet_provenance provenance;
    int64_t created_ms, updated_ms;
    int64_t stood, ran, saved_ms, active_ms; /* of its summary; 0 if that does not say */
    stet_state_counts counts;
    stet_hash fingerprint;
    stet_state_stamp stamp; /* all zero: always read again */
    stet_lifecycle derived;
    /* where it was found */
    const char *repo; /* real path of the project's root; shared by all records of it */
    uint32_t repo_index;
    /* laid over it, when the registry is looked at */
    stet_lifecycle lifecycle;
    bool archived;
    const char *archived_at, *archive_reason;
    stet_freshness freshness;
    struct stet_fleet_record *persisted; /* the row of the index, if that is another */
} stet_fleet_record;

const char *stet_freshness_name(stet_freshness f);

/* Fills everything that comes from the source. `repo` is borrowed for the record's life. */
void stet_fleet_record_derive(const stet_state *s, const char *repo, uint32_t repo_index, stet_arena *arena,
                              stet_fleet_record *out);
stet_provenance stet_provenance_read(stet_value v, stet_arena *arena);
stet_value stet_provenance_value(const stet_provenance *p); /* null if there is none */
/* Labels as an array of strings, and back. */
stet_value stet_fleet_record_labels(const stet_fleet_record *r);
const char *stet_labels_text(stet_value labels, stet_arena *arena);
bool stet_fleet_record_has_label(const stet_fleet_record *r, const char *label);

/* One line of the index, without the newline. */
void stet_fleet_record_write(const stet_fleet_record *r, stet_buf *out);
/* STET_CORRUPT if it is not one. `repos` turns the line's number of a repo into its root. */
STET_CHECKED stet_status stet_fleet_record_read(const char *line, size_t len, const char *const *repos,
                                                size_t repo_count, stet_arena *arena, stet_fleet_record *out,
                                                stet_error *err);

/* The RunRecord of every surface. Belongs to the caller. */
stet_value stet_fleet_record_value(const stet_fleet_record *r);
char *stet_fleet_record_dir(const stet_fleet_record *r); /* <repo>/.stet/runs/<id>; caller frees */

/* createdAt, then id, then repo: the one order of lists and pages. */
int stet_fleet_record_compare(const stet_fleet_record *a, const stet_fleet_record *b);
/* Milliseconds between the first and the last sign of life, for one that ended; else until `now_ms`. */
int64_t stet_fleet_record_duration(const stet_fleet_record *r, int64_t now_ms);

#endif
