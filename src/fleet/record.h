/* record.h - what the registry knows about one run: derived from its state.json, never the other way round.
 *
 * A record is plain data whose strings live in an arena.
 *
 *   stet_fleet_record_derive    makes a record from a state that was just read
 *   stet_fleet_record_write     writes it as a line of index.json
 *   stet_fleet_record_read      reads it from a line of index.json
 *   stet_fleet_record_value     shows it to people and programs, with the registry's overlays and freshness
 *
 * Strings are never NULL; an unknown one is "".
 */
#ifndef STET_FLEET_RECORD_H
#define STET_FLEET_RECORD_H

#include "base/arena.h"
#include "fleet/state.h"

#define STET_FLEET_RECORD_VERSION     1
#define STET_FLEET_RECORD_INPUTS_MAX  512 /* bytes of inputs kept for text search */
#define STET_FLEET_RECORD_MESSAGE_MAX 240

typedef enum stet_freshness { STET_FRESH_VALID, STET_FRESH_STALE, STET_FRESH_MISSING } stet_freshness;

typedef struct stet_provenance {
    const char *rerun_of, *rerun_of_repo, *origin_run_id, *reason, *created_at, *actor;
    int64_t generation; /* 0: not a rerun, and all strings are "" */
} stet_provenance;

typedef struct stet_fleet_record {
    /* From the source. */
    const char *id, *app_id, *app_version, *app_title, *workflow_id, *title, *piece, *actor;
    const char *created_at, *updated_at, *loop_stage;
    const char *inputs; /* shortened, for text search */
    const char *failed_task, *failed_message;
    const char *labels; /* each followed by '\n' */
    /* What it ran, as hashes: its piece with its argument and what was demanded; and its piece alone, "" if the argument
     * was this run's alone. `part`: not all of the piece was demanded. */
    const char *work, *place;
    int64_t part;
    stet_provenance provenance;
    int64_t created_ms, updated_ms;
    int64_t stood, ran, saved_ms, active_ms; /* from its summary; 0 if absent */
    stet_state_counts counts;
    stet_hash fingerprint;
    stet_state_stamp stamp; /* all zero: always read the source again */
    stet_lifecycle derived;
    /* Where it was found. */
    const char *repo; /* real path of the project's root; shared by all records of it */
    uint32_t repo_index;
    /* Overlays, set when the registry is loaded. */
    stet_lifecycle lifecycle;
    stet_lifecycle under;    /* the same without the archive mark */
    const char *resolved_by; /* the run that mended what failed in this one; "" if there is none */
    bool archived;
    const char *archived_at, *archive_reason;
    stet_freshness freshness;
    struct stet_fleet_record *persisted; /* the row of the index, if it differs */
} stet_fleet_record;

/* "no ok.txt here (exit 3)": the last line that a failed command printed tells more than its exit status. False: its
 * details have none. */
bool stet_fleet_last_words(stet_value details, stet_buf *out);

const char *stet_freshness_name(stet_freshness f);
/* The lifecycle that people mean: a run with open feedback and a failed task has failed. */
stet_lifecycle stet_fleet_record_surface(const stet_fleet_record *r);

/* Fills in everything that comes from the source. `repo` is borrowed for the record's lifetime. */
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
/* Parses a line of the index. STET_CORRUPT: it is not valid. `repos` maps the line's repo number to its root. */
STET_CHECKED stet_status stet_fleet_record_read(const char *line, size_t len, const char *const *repos,
                                                size_t repo_count, stet_arena *arena, stet_fleet_record *out,
                                                stet_error *err);

/* The record as every surface shows it. Belongs to the caller. */
stet_value stet_fleet_record_value(const stet_fleet_record *r);
char *stet_fleet_record_dir(const stet_fleet_record *r); /* <repo>/.stet/runs/<id>; caller frees */

/* Compares by createdAt, then id, then repo: the order of all lists and pages. */
int stet_fleet_record_compare(const stet_fleet_record *a, const stet_fleet_record *b);
/* Milliseconds between the first and the last sign of life of a finished run; otherwise until `now_ms`. */
int64_t stet_fleet_record_duration(const stet_fleet_record *r, int64_t now_ms);

#endif
