/* pattern_internal.h - what the files that read patterns share. Not included anywhere else.
 *
 *   binding.c          the small forms, and what a reference refers to
 *   pattern_check.c    reads a parsed pattern into stet_pattern and reports problems
 *   pattern_names.c    finds nodes that read what others write
 *   pattern.c          from a file's text to a parsed pattern
 */
#ifndef STET_GRAPH_PATTERN_INTERNAL_H
#define STET_GRAPH_PATTERN_INTERNAL_H

#include "graph/pattern.h"

typedef struct pattern_checker {
    const char *file;
    const char *text; /* NULL: no text, so problems have no lines */
    size_t len;
    const stet_pattern_checks *checks;
    stet_pattern *p;
    stet_value problems;
    stet_buf at; /* JSON Pointer of the current place */
} pattern_checker;

/* In binding.c: resolves a reference. False: `err` says what is wrong with it. */
bool pattern_resolve(stet_pattern *p, stet_value binding, stet_pattern_ref *out, stet_error *err);
/* In pattern_check.c: fills c->p from a parsed pattern; adds problems to c->problems. */
void pattern_check_root(pattern_checker *c, stet_value root);
/* Notes what is wrong with a node, by its place in `nodes`. */
void pattern_problem_of(pattern_checker *c, size_t node, const char *fix, const char *message);
/* pattern_names.c: fills c->p->after. Nodes that wait for each other because of files are a problem. */
void pattern_check_names(pattern_checker *c);

#endif
