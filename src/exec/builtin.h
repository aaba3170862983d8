/* builtin.h - the functions of `dml:`, which stet evaluates itself. Private to src/exec; stet_repo_eval uses it.
 *
 * They take data and give a datum. Two data are the same if their ids are. Positions count from 0. What is kept in no
 * order (elements of sets, entries of maps) comes out in the order of ids, which is the same everywhere.
 *
 *     dml://list/of X...               a list of them
 *     dml://list/length L              how many elements
 *     dml://list/get L I [ELSE]        the element at position I; ELSE, or a failure, if there is none
 *     dml://list/slice L FROM [TO]     those from position FROM up to, but without, TO; beyond the end there are none
 *     dml://list/append L X...         L and then these
 *     dml://list/assoc L I X           L with X at position I, which is one of L
 *     dml://list/concat L...           one after the other
 *     dml://list/reverse L
 *     dml://list/contains L X          is X an element?
 *
 *     dml://set/of X...                a set of them
 *     dml://set/from-list L            the elements of a list
 *     dml://set/to-list S
 *     dml://set/length S
 *     dml://set/contains S X
 *     dml://set/add S X...
 *     dml://set/remove S X...
 *     dml://set/union S...             in one of them (of none: nothing)
 *     dml://set/intersect S S...       in all of them
 *     dml://set/difference S S...      in the first and in none of the others
 *
 *     dml://map/of K V K V...          the same key twice is a failure
 *     dml://map/length M
 *     dml://map/get M K [ELSE]
 *     dml://map/contains M K
 *     dml://map/keys M                 a list
 *     dml://map/values M               a list, in the order of the keys
 *     dml://map/assoc M K V K V...     M with these, later ones before earlier ones
 *     dml://map/dissoc M K...          M without these
 *     dml://map/merge M...             later ones before earlier ones
 */
#ifndef STET_EXEC_BUILTIN_H
#define STET_EXEC_BUILTIN_H

#include "exec/repo.h"

/* STET_UNSUPPORTED: no such function; STET_FAILED: not with these arguments. Messages name the function. Stores what it
 * makes. */
STET_CHECKED stet_status stet_builtin_apply(stet_repo *r, const char *function, const stet_hash *arguments,
                                            size_t count, stet_hash *datum, stet_error *err);
/* Names ("dml://list/append"), sorted; NULL beyond the last. */
const char *stet_builtin_name(size_t index);

#endif
