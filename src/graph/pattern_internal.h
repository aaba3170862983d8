/* pattern_internal.h - what the files that read patterns share. Nobody else includes it.
 *
 * binding.c knows the small forms and what a reference stands for; pattern_check.c reads a parsed pattern into
 * stet_pattern and notes what is wrong with it; pattern.c goes from a file's text to there. */
#ifndef STET_GRAPH_PATTERN_INTERNAL_H
#define STET_GRAPH_PATTERN_INTERNAL_H

#include "graph/pattern.h"

typedef struct pattern_checker {
    const char *file;
    const char *text; /* NULL: no text, no lines */
    size_t len;
    const stet_pattern_checks *checks;
    stet_pattern *p;
    stet_value problems;
    stet_buf at; /* JSON Pointer of the place being looked at */
} pattern_checker;

/* binding.c: turns a reference into what it stands for; false: `err` says what is wrong with it. */
bool pattern_resolve(stet_pattern *p, stet_value binding, stet_pattern_ref *out, stet_error *err);
/* pattern_check.c: fills c->p from a parsed pattern; c->problems has what is wrong. */
void pattern_check_root(pattern_checker *c, stet_value root);

#endif
