/* meet.h - can a path that is not made yet match one that is wanted?
 *
 *     bool a = stet_path_meets("build/{in.dir}/{in.stem}.o", "build/m*.o", true); // a pattern
 *     bool b = stet_path_meets("site/{in.stem}", "site/a/index.html", false);     // a path: may lie in a directory
 *
 * `text` is a plain path, or one with {...} in it, which stand for parts of other paths. The answer is yes if the path
 * that is made, or something below it, can be `wanted`, or if it is certain to lie in the directory `wanted`. It errs
 * on the side of yes, except for a directory that only might contain it: any path might be such a directory.
 */
#ifndef STET_FILES_MEET_H
#define STET_FILES_MEET_H

#include <stdbool.h>

bool stet_path_meets(const char *text, const char *wanted, bool pattern);

#endif
