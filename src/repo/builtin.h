/* builtin.h - the functions of `dml:`, which stet evaluates itself. Private to src/repo.
 *
 * stet_repo_eval calls them. They take data and return a datum. Two data are the same if their ids are. Positions count
 * from 0. What has no order (elements of sets, entries of maps) comes out in the order of ids, which is the same
 * everywhere.
 *
 *   dml://list/of X...               a list of these
 *   dml://list/length L              the number of elements
 *   dml://list/get L I [ELSE]        the element at position I; ELSE, or a failure, if there is none
 *   dml://list/slice L FROM [TO]     the elements from position FROM up to, but not including, TO; none beyond the end
 *   dml://list/append L X...         L followed by these
 *   dml://list/assoc L I X           L with X at position I, which must exist in L
 *   dml://list/concat L...           the lists one after the other
 *   dml://list/reverse L             the elements in reverse order
 *   dml://list/contains L X          is X an element?
 *
 *   dml://set/of X...                a set of these
 *   dml://set/from-list L            the elements of a list
 *   dml://set/to-list S              a list of the elements
 *   dml://set/length S               the number of elements
 *   dml://set/contains S X           is X an element?
 *   dml://set/add S X...             S with these
 *   dml://set/remove S X...          S without these
 *   dml://set/union S...             elements of any of them (of no sets: empty)
 *   dml://set/intersect S S...       elements of all of them
 *   dml://set/difference S S...      elements of the first and of none of the others
 *
 *   dml://map/of K V K V...          a map; the same key twice is a failure
 *   dml://map/length M               the number of entries
 *   dml://map/get M K [ELSE]         the value of K; ELSE, or a failure, if there is none
 *   dml://map/contains M K           is there an entry with key K?
 *   dml://map/keys M                 a list
 *   dml://map/values M               a list, in the order of the keys
 *   dml://map/assoc M K V K V...     M with these entries; later ones win
 *   dml://map/dissoc M K...          M without these keys
 *   dml://map/merge M...             all entries; later maps win
 */
#ifndef STET_EXEC_BUILTIN_H
#define STET_EXEC_BUILTIN_H

#include "repo/repo.h"

/* Applies a function and stores its result. STET_UNSUPPORTED: no such function. STET_FAILED: it fails with these
 * arguments. Messages name the function. */
STET_CHECKED stet_status stet_builtin_apply(stet_repo *r, const char *function, const stet_hash *arguments,
                                            size_t count, stet_hash *datum, stet_error *err);
/* The names of all functions ("dml://list/append"), sorted; NULL beyond the last. */
const char *stet_builtin_name(size_t index);

#endif
