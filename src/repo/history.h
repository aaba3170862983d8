/* history.h - commits: naming objects, appending to a head, logs, differences.
 *
 *     stet_hash id, commit;
 *     stet_record_type type;
 *     stet_status status = stet_history_resolve(r, "main:report", &id, &type, &err);
 *     if (status == STET_OK)
 *         status = stet_history_commit(r, "main", "report", &dag, "nightly", &commit, &err);
 *
 * A commit has a tree of named DAGs and the exec map of the index at that time: what had been computed by then. Commits
 * of a head follow each other; a head is refs/heads/NAME.
 */
#ifndef STET_EXEC_HISTORY_H
#define STET_EXEC_HISTORY_H

#include "repo/repo.h"

/* Resolves a text: a ref ("refs/heads/main"), a head ("main") or a remote's head ("origin/main"), each optionally with
 * ":NAME" for a DAG of its tree; or an id, or the beginning of one. The message of STET_NOT_FOUND says what was
 * searched for. */
STET_CHECKED stet_status stet_history_resolve(stet_repo *r, const char *text, stet_hash *id, stet_record_type *type,
                                              stet_error *err);
/* The same for a text that must name a commit. */
STET_CHECKED stet_status stet_history_resolve_commit(stet_repo *r, const char *text, stet_hash *id, stet_error *err);

/* Makes a new commit on a head, which is created if needed. Its tree has this DAG under this name, or no longer has the
 * name if `dag` is NULL. STET_NOT_FOUND: no such DAG, or no such name to remove. If the name already has this DAG,
 * there is no new commit: `*commit` is the head's. */
STET_CHECKED stet_status stet_history_commit(stet_repo *r, const char *head, const char *name, const stet_hash *dag,
                                             const char *message, stet_hash *commit, stet_error *err);

typedef enum stet_merge_choice { STET_MERGE_REFUSE, STET_MERGE_OURS, STET_MERGE_THEIRS } stet_merge_choice;
typedef enum stet_merge_kind { STET_MERGE_SAME, STET_MERGE_FORWARD, STET_MERGE_MADE } stet_merge_kind;
/* Merges another commit into a head. If the commit is in the head's history, nothing changes; if the head is in the
 * commit's history, the head moves forward to it; otherwise a commit with both as parents is made. A name whose DAG
 * changed on one side since they parted is taken from that side. A name that changed on both sides is STET_CONFLICT,
 * with the names in the details, unless `choice` decides. With `pins`, calls that the commit has pinned as successes,
 * and whose results are complete, are pinned here too. */
STET_CHECKED stet_status stet_history_merge(stet_repo *r, const char *head, stet_hash other, stet_merge_choice choice,
                                            bool pins, const char *message, stet_hash *commit, stet_merge_kind *kind,
                                            stet_error *err);

/* Visits commits from this one back, newest first; `each` gets the record, and returns false to stop. */
STET_CHECKED stet_status stet_history_log(stet_repo *r, stet_hash commit, size_t limit,
                                          bool (*each)(void *ctx, stet_hash id, stet_value record), void *ctx,
                                          stet_error *err);

/* Is `old` the commit `new` or in its history? */
STET_CHECKED stet_status stet_repo_is_ancestor(stet_repo *r, stet_hash old, stet_hash new, bool *out, stet_error *err);

/* The differences between two commits. At most `limit` pins are listed; all are counted. `change` is "added", "removed"
 * or "changed":
 *
 *   {"dags":[{"name","change","before","after"}],"pins":[{"node","change","before","after"}],"pinCount":N}
 */
STET_CHECKED stet_status stet_history_diff(stet_repo *r, stet_hash from, stet_hash to, size_t limit, stet_value *out,
                                           stet_error *err);

#endif
