/* use.h - how a module uses one of its inputs, and which files it names.
 *
 * The use decides what must be up to date before a first run, and whether an edge can be assumed without having been
 * observed. The names decide which node comes first where one reads what another writes without declaring it
 * (pattern_names.c).
 */
#ifndef STET_GRAPH_USE_H
#define STET_GRAPH_USE_H

typedef enum stet_input_use {
    STET_INPUT_ALWAYS, /* every run reads it, or a part of it */
    /* A run may not need it, which is known only afterwards; brought up to date before a first run. */
    STET_INPUT_MAYBE,
    STET_INPUT_CHOSEN /* read only if another input says so; not brought up to date before a run asks for it */
} stet_input_use;

typedef enum stet_named_kind {
    STET_NAMED_READ,    /* a file or directory that it reads */
    STET_NAMED_GUESS,   /* what may be such a file, or no file at all */
    STET_NAMED_PATTERN, /* a pattern of files that it reads */
    STET_NAMED_WRITTEN  /* a file or directory that it writes; it may have {...} in it, for parts that a run fills in */
} stet_named_kind;

/* One file that a node names. `path` is normal, relative to the project. `output`: the name of what is written. Both
 * are borrowed for the call. */
typedef void (*stet_named_fn)(void *ctx, stet_named_kind kind, const char *path, const char *output);

#endif
