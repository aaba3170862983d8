/* pattern_toml_internal.h - what the parts of the TOML reader share: the text with what is wrong in it
 * (pattern_toml_say.c), who reads and writes which file (pattern_toml_files.c), and nodes (pattern_toml.c).
 *
 * A converter is one reading. It walks the TOML with `at`, a JSON Pointer to where it is: toml_enter goes down one key
 * and gives the mark that toml_leave goes back to. A problem is said of the place where the converter is. */
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
    bool each; /* of a node with `each`: the path has {...} in it, and stands for many */
} toml_produced;

typedef struct toml_converter {
    const char *file, *text;
    size_t len;
    stet_value root, nodes; /* as read */
    stet_value problems;
    stet_map paths;  /* path -> index in outs */
    stet_map names;  /* "NODE/NAME" -> index in outs */
    stet_map firsts; /* node -> index of its first in outs; those of a node follow each other */
    STET_VEC(toml_produced) outs;
    STET_VEC(size_t) eaches; /* those of nodes with `each`, in outs: every path that is read is compared with them */
    stet_buf at;
} toml_converter;

size_t toml_enter(toml_converter *c, const char *key, size_t len);
void toml_leave(toml_converter *c, size_t mark);

/* Of the place at `pointer`, or of the nearest one around it that is there. */
void toml_add_problem(toml_converter *c, const char *pointer, const char *message, const char *fix);
void toml_problem(toml_converter *c, const char *fix, const char *format, ...) STET_PRINTF(3, 4);
/* The text is no TOML at all: takes over what its reader said. */
void toml_add_syntax(toml_converter *c, stet_error *why);
/* Hands the problems over (`problems` may be NULL) and makes an error of the first: STET_INVALID. */
STET_CHECKED stet_status toml_say(toml_converter *c, stet_value *problems, stet_error *err);
/* Where in the TOML that is which the JSON form has at `pointer`. */
void toml_place(toml_converter *c, stet_value json, const char *pointer, stet_buf *out);

stet_value toml_reference(const char *text, size_t len); /* {"$": TEXT} */

/* The first pass over the nodes: who writes what. toml_release_files undoes it. */
void toml_collect_produced(toml_converter *c);
void toml_release_files(toml_converter *c);
/* `files` or `each` (`member`) of the node `id`: bindings are put to `inputs`, their names to `names`. */
void toml_convert_files(toml_converter *c, const char *member, stet_value files, const char *id, stet_value *inputs,
                        stet_value *names);
/* What the node `id` writes, as the member `produces` of its module. */
void toml_convert_produces(toml_converter *c, stet_value id, stet_value *module);

#endif
