/* pattern_toml_internal.h - what the parts of the TOML reader share.
 *
 *   pattern_toml_say.c      the text, and problems in it
 *   pattern_toml_files.c    who reads and writes which file
 *   pattern_toml.c          nodes
 *
 * A converter is one reading. It walks the TOML with `at`, a JSON Pointer to the current place: toml_enter descends one
 * key and returns the mark that toml_leave goes back to. A problem is reported for the current place.
 */
#ifndef STET_GRAPH_PATTERN_TOML_INTERNAL_H
#define STET_GRAPH_PATTERN_TOML_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/pattern_toml.h"

/* One file that a node writes. */
typedef struct toml_produced {
    stet_value node; /* its id, a string */
    stet_value name;
    char *path;
    bool each; /* of a node with `each`: the path contains {...}, and stands for many */
    /* If `each`: the path with what is known about the file's in its place, "build/{any.stem}.c.o"; or NULL. */
    char *shape;
    char *written; /* the path as it was written, if links decide what it means; or NULL */
} toml_produced;

/* A node waits for another: for a file that it reads, or for a value. Nodes are given by index. */
typedef struct toml_edge {
    size_t from, to;
    char *wanted, *path; /* what is read, and which output that can be; NULL: a value */
} toml_edge;

typedef struct toml_word {
    char *text;
    size_t node;
} toml_word;

typedef struct toml_converter {
    const char *file, *text;
    size_t len;
    const char *project;    /* its root, or NULL: not known */
    stet_value root, nodes; /* as read */
    stet_value problems;
    stet_map paths;  /* path -> index in outs */
    stet_map names;  /* "NODE/NAME" -> index in outs */
    stet_map firsts; /* node -> index of its first in outs; those of a node follow each other */
    STET_VEC(toml_produced) outs;
    /* Indexes in outs of nodes with `each`: every path that is read is compared with them. */
    STET_VEC(size_t) eaches;
    /* Words of commands, for dependency files that another node's command names: plain ones (word -> 1 + index of its
     * node, or 0: of several), and those with wildcards or {...}, which become wildcards. */
    stet_map words;
    STET_VEC(toml_word) wide_words;
    bool has_words;
    stet_map above;   /* directories of the plain paths in outs */
    stet_map numbers; /* node -> its index */
    STET_VEC(toml_edge) edges;
    stet_buf at;
} toml_converter;

size_t toml_enter(toml_converter *c, const char *key, size_t len);
void toml_leave(toml_converter *c, size_t mark);

/* Adds a problem for the place at `pointer`, or the nearest existing place around it. */
void toml_add_problem(toml_converter *c, const char *pointer, const char *message, const char *fix);
void toml_problem(toml_converter *c, const char *fix, const char *format, ...) STET_PRINTF(3, 4);
/* The text is not TOML: takes over the reader's error. */
void toml_add_syntax(toml_converter *c, stet_error *why);
/* Hands the problems over (`problems` may be NULL) and makes the error from the first: STET_INVALID. */
STET_CHECKED stet_status toml_say(toml_converter *c, stet_value *problems, stet_error *err);
/* The place in the TOML of what the JSON form has at `pointer`. */
void toml_place(toml_converter *c, stet_value json, const char *pointer, stet_buf *out);

stet_value toml_reference(const char *text, size_t len); /* {"$": TEXT} */

/* The first pass over the nodes: who writes what. toml_release_files frees it. */
void toml_collect_produced(toml_converter *c);
void toml_release_files(toml_converter *c);
/* Converts `files` or `each` (`member`) of the node `id`: adds bindings to `inputs` and their names to `names`. */
void toml_convert_files(toml_converter *c, const char *member, stet_value files, const char *id, stet_value *inputs,
                        stet_value *names);
/* Records that the node `reader` waits for `writer`: for the output `path`, which `wanted` matches, or (both NULL) for
 * a value. */
void toml_waits(toml_converter *c, const char *reader, const char *writer, size_t writer_len, const char *wanted,
                const char *path);
/* Reports nodes that wait for each other because of files. */
void toml_check_circles(toml_converter *c);
void toml_release_circles(toml_converter *c);
/* Tells the lists of nodes with `each` what else is written at such paths (pattern_toml_beside.c). `nodes`: as converted.
 */
void toml_look_beside(toml_converter *c, stet_value *nodes);
/* Computes what is known about the paths of nodes with `each` before any file is looked at (pattern_toml_shape.c). */
void toml_shape_outputs(toml_converter *c);
/* Adds the outputs of the node `id` as the member `produces` of its module. */
void toml_convert_produces(toml_converter *c, stet_value id, stet_value *module);

#endif
