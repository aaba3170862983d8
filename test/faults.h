/* faults.h - the hook of os/sys.h for tests: fails, shortens, interrupts or kills at the n-th matching call.
 *
 * From outside, for any program that links faults.c (every test program, and build/test/stet):
 *
 *   STET_FAULT="call=write,n=3,action=fail,errno=ENOSPC,path=spaces,sticky=1"
 *                             the third write, and all after it, of a file whose path contains "spaces"
 *   STET_FAULT_COUNT=FILE     at exit, writes how many calls matched
 *
 *   call    a name of stet_sys_call_name; "any" (the default); or "durable": those that change what is on disk
 *   n       counted from 1; 0 or absent: never, only count
 *   action  fail (the default), short, eintr, kill, kill_after
 *   errno   EIO (the default), ENOSPC, EACCES, ...
 *   path    a substring of the path; if only a descriptor is known, of the path that it is open on
 *   sticky  1: all matching calls from the n-th on
 *
 * From inside:
 *
 *     for (int n = 1;; n++) {
 *         faults_arm(STET_SYS_WRITE, n, STET_SYS_FAIL, ENOSPC);
 *         status = work();
 *         faults_disarm();
 *         if (!faults_fired())
 *             break;                   // the run passed untouched
 *         assert(status != STET_OK);   // and nothing or everything must have happened
 *     }
 *
 * The counter is atomic; arming is for one thread.
 *
 * With STET_UNGUARDED set, writes from outside can also change the documents of pieces: for tests of damage.
 */
#ifndef STET_TEST_FAULTS_H
#define STET_TEST_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/sys.h"

void faults_arm(stet_sys_call call, int64_t n, stet_sys_action action, int error_number);
void faults_arm_any(int64_t n, stet_sys_action action, int error_number);
void faults_arm_durable(int64_t n, stet_sys_action action, int error_number);
/* After arming: only calls on paths with this substring (copied), and all from the n-th on. */
void faults_path(const char *substring);
void faults_sticky(void);
/* Removes the hook. Counts stay readable until the next arming. */
void faults_disarm(void);
int64_t faults_count(void); /* matching calls since arming */
bool faults_fired(void);    /* did the fault strike since arming? */

/* How many descriptors this process has open: equal before and after means that none leaked. */
int faults_descriptors(void);
/* Moves to a new directory in memory (or stays, where there is none), removed at exit: for tests that run an operation
 * thousands of times and do not need a disk that syncs. */
void faults_fast_directory(void);
/* How many names in `dir` (not below) contain `substring`. */
int faults_names(const char *dir, const char *substring);

/* SQL that takes the reads of every third action out of a space's index. */
#define LOSE_READS "UPDATE place_index SET reads = reads & 7905747460161236406, shallow = shallow & 7905747460161236406"

#endif
