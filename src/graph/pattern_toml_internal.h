/* pattern_toml_internal.h - what the parts of the TOML reader share.
 *
 *   pattern_toml_say.c      the texts, and problems in them
 *   pattern_toml_source.c   the other files: included ones, parameters, variables
 *   pattern_toml_names.c    fills {name} in: what vars, matrix and parameters stand for
 *   pattern_toml_expand.c   templates, matrix, foreach and when: the nodes that are meant
 *   pattern_toml_files.c    who reads and writes which file
 *   pattern_toml.c          nodes
 *
 * A converter is one reading. It walks the TOML with `at`, a JSON Pointer to the current place: toml_enter descends one
 * key and returns the mark that toml_leave goes back to. A problem is reported for the current place.
 */
#ifndef STET_GRAPH_PATTERN_TOML_INTERNAL_H
#define STET_GRAPH_PATTERN_TOML_INTERNAL_H

#include <sys/types.h>

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
    bool after;          /* it is named in `after` */
} toml_edge;

typedef struct toml_word {
    char *text;
    size_t node;
} toml_word;

/* One of the files that make up the pattern: the first is the pattern file, the others are included. */
typedef struct toml_file {
    char *shown; /* for messages */
    char *path;
    char *text;
    size_t len;
    stet_value root;
    dev_t device;
    ino_t inode;
} toml_file;

/* Where a node, or a member of one, was written, if that is not /nodes/ID of the first file. */
typedef struct toml_origin {
    size_t file;
    char *pointer;
} toml_origin;

typedef struct toml_converter {
    const char *file, *text;
    size_t len;
    const stet_pattern_checks *checks; /* or NULL: no other file can be read */
    STET_VEC(toml_file) files;
    STET_VEC(size_t) order;     /* of files: what a file includes comes before it */
    STET_VEC(size_t) including; /* files that are being included, each by the one before */
    size_t in;                  /* the file that problems are about while the pattern is expanded */
    bool expanding;             /* `at` is a place in files.at[in]; otherwise a place in `root`, and has an origin */
    STET_VEC(toml_file) data;   /* files of parameters and variables, without text and root */
    stet_map origins;           /* "ID" and "ID/MEMBER" -> index in origin */
    STET_VEC(toml_origin) origin;
    stet_value vars, templates, raw; /* of all files, as written; raw: the nodes */
    stet_map where;                  /* "vars/NAME", "templates/NAME", "nodes/NAME" -> its file */
    stet_value params, env;          /* what was read of the files that `params` and `env-file` name */
    stet_value filled;               /* vars with names filled in */
    STET_VEC(const char *) filling;  /* vars that are being filled in */
    stet_value groups;               /* nodes with `matrix` or `foreach`: {NAME: [ID...]} */
    stet_value absent;               /* nodes whose `when` is false: {NAME: true} */
    const char *project;             /* its root, or NULL: not known */
    stet_value root, nodes;          /* as read */
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
    const char *except; /* what the list of files that is being converted leaves out, or NULL (files/glob.h) */
    stet_buf at;
} toml_converter;

/* Reads the files that the pattern consists of, and those with its parameters. False after a problem. */
bool toml_read_sources(toml_converter *c);
void toml_release_sources(toml_converter *c);
/* The file that a member of "vars", "templates" or "nodes" was written in. */
size_t toml_file_of(const toml_converter *c, const char *member, const char *key, size_t len);
/* Is it one of these files, other than the first? */
bool toml_is_source(const toml_converter *c, const char *path);

/* Fills names in. What a place {name} can stand for, from the nearest to the farthest: */
typedef struct toml_scope {
    stet_value own;    /* {NAME: is it a file?}: names of the node that the command fills in; left alone */
    stet_value values; /* of matrix and foreach */
    stet_value vars;   /* of the node and its template */
} toml_scope;
enum {
    TOML_FILL_TEXT = 1, /* numbers and booleans become texts */
    TOML_FILL_PATH = 2, /* values with braces are refused: they would be taken for names */
    TOML_FILL_STRICT =
        4, /* a name that stands for nothing is a problem; otherwise only one that looks like a mistake */
    TOML_FILL_DOLLAR = 8,   /* a value that begins with a dollar is no reference */
    TOML_FILL_OWN_LAST = 16 /* a name of the node's own is left alone only if nothing else has it */
};
/* The same value with names filled in, at any depth. A text that is one name alone becomes that value, and in a list the
 * elements of that list. */
stet_value toml_fill(toml_converter *c, const toml_scope *s, stet_value v, unsigned how);
/* What `name` stands for, beyond the node's own names; belongs to the caller. False: nothing. */
bool toml_lookup(toml_converter *c, const toml_scope *s, const char *name, size_t len, stet_value *out);
/* Appends the text of a value that stands in a text. False: it has none. */
bool toml_text_of(stet_value v, stet_buf *out);
/* The names that a command uses, with their values; `command` is changed where it escapes a name that looks like a
 * mistake. */
stet_value toml_command_vars(toml_converter *c, const toml_scope *s, stet_value *command);

/* The combinations that `matrix` or `foreach` of a node means (pattern_toml_matrix.c): an array of pairs of
 * {NAME: VALUE}, all values and those that the instance is known by. */
stet_value toml_combinations(toml_converter *c, stet_value matrix, stet_value foreach);
/* What is added to the node's name for one of them. */
void toml_combination_name(stet_value known_by, bool foreach, stet_buf *out);
/* Is the condition true? */
bool toml_when(toml_converter *c, const toml_scope *s, stet_value when);

/* Sets c->root and c->nodes to the pattern with vars, templates, matrix, foreach and when expanded. */
void toml_expand(toml_converter *c);

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
/* The reader names the writer in `after`. */
void toml_waits_after(toml_converter *c, const char *reader, const char *writer, size_t writer_len);
/* Reports nodes that wait for each other. */
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
