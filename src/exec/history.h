/* history.h - commits: naming things, adding to a head, what came when, what differs.
 *
 *     status = stet_history_resolve(r, "main:report", &id, &type, &err);
 *     status = stet_history_commit(r, "main", "report", &dag, "nightly", &commit, &err);
 *
 * A commit has a tree of named DAGs and the exec map of the index as it was: what had been computed by then. Commits of
 * a head follow each other; a head is refs/heads/NAME. */
#ifndef STET_EXEC_HISTORY_H
#define STET_EXEC_HISTORY_H

#include "exec/repo.h"

/* What a text names: a ref ("refs/heads/main"), a head ("main") or a remote's ("origin/main"), each with ":NAME" for a
 * DAG of its tree; or an id, or the beginning of one. STET_NOT_FOUND says what was looked for. */
STET_CHECKED stet_status stet_history_resolve(stet_repo *r, const char *text, stet_hash *id, stet_record_type *type,
                                              stet_error *err);
/* The same for what must be a commit. */
STET_CHECKED stet_status stet_history_resolve_commit(stet_repo *r, const char *text, stet_hash *id, stet_error *err);

/* A new commit on a head (made if it is not there), whose tree has this DAG under this name, or (NULL) no longer has
 * the name. STET_NOT_FOUND: no such DAG, or no such name to take away. The same DAG under the same name again is no
 * commit:
 * `*commit` is the head's. */
STET_CHECKED stet_status stet_history_commit(stet_repo *r, const char *head, const char *name, const stet_hash *dag,
                                             const char *message, stet_hash *commit, stet_error *err);

typedef enum stet_merge_choice { STET_MERGE_REFUSE, STET_MERGE_OURS, STET_MERGE_THEIRS } stet_merge_choice;
typedef enum stet_merge_kind { STET_MERGE_SAME, STET_MERGE_FORWARD, STET_MERGE_MADE } stet_merge_kind;
/* Brings another commit into a head: nothing if it is in its history, forward to it if the head is in its, else a
 * commit with both as parents. A name whose DAG changed on one side since they parted is taken from there; one that
 * changed on both is STET_CONFLICT, with the names in its details, unless a choice is given. */
STET_CHECKED stet_status stet_history_merge(stet_repo *r, const char *head, stet_hash other, stet_merge_choice choice,
                                            const char *message, stet_hash *commit, stet_merge_kind *kind,
                                            stet_error *err);

/* Commits from this one on, newest first; `each` is given the record, and false from it ends the walk. */
STET_CHECKED stet_status stet_history_log(stet_repo *r, stet_hash commit, size_t limit,
                                          bool (*each)(void *ctx, stet_hash id, stet_value record), void *ctx,
                                          stet_error *err);

/* Is `old` the commit `new` or in its history? */
STET_CHECKED stet_status stet_repo_is_ancestor(stet_repo *r, stet_hash old, stet_hash new, bool *out, stet_error *err);

/* What differs from commit to commit: {"dags":[{"name","change","before","after"}],"pins":[{"node","change","before",
 * "after"}],"pinCount":N}; `change` is "added", "removed" or "changed". At most `limit` pins are listed, all are
 * counted. */
STET_CHECKED stet_status stet_history_diff(stet_repo *r, stet_hash from, stet_hash to, size_t limit, stet_value *out,
                                           stet_error *err);

#endif
