/* ref.h - the builtin functions behind `{"type": "ref", "ref": NAME}`.
 *
 * They are a table of rows: a name, the form of its inputs, and a function. To add one, write the function in one of
 * ref_*.c, declare it in STET_REFS below, and describe it in docs/pattern-format.md (a test compares the two lists).
 *
 * The form of inputs is a list of names separated by spaces:
 *   a            a required input
 *   a?           an optional input
 *   values...    one input `values` (an array, or an object for its members' values), or else all inputs in order
 *                (positions by number, names by their bytes)
 *   *            at the end: inputs of any other name are allowed
 * The n-th name may also be given as position "n".
 */
#ifndef STET_MODULE_REF_H
#define STET_MODULE_REF_H

#include "scheduler/module.h"

typedef struct ref_row ref_row;

typedef struct ref_call {
    stet_run *run;
    const ref_row *row;
    stet_value bindings; /* the inputs as bound: only names are used */
    void *files;         /* stet_files * of the host, or NULL */
} ref_call;

typedef stet_status (*ref_function)(ref_call *call, stet_value *out, stet_error *err);

struct ref_row {
    const char *name;
    const char *inputs;
    ref_function run;
    const char *maybe;  /* inputs that a run may not need, " a b " with spaces around, "*" for all */
    const char *chosen; /* inputs that are read only if another one says so */
};

/* Is the input bound? */
bool ref_has(const ref_call *call, const char *name);
/* Reads an input; null if it is not bound or has no value. Borrowed. */
stet_status ref_arg(ref_call *call, const char *name, stet_read_kind kind, stet_value *out, stet_error *err);
/* The same below an input. */
stet_status ref_arg_at(ref_call *call, const char *name, stet_pathref below, stet_read_kind kind, stet_value *out,
                       bool *found, stet_error *err);
/* A "values..." input as a new array; the caller releases it. */
stet_status ref_rest(ref_call *call, stet_value *out, stet_error *err);
/* The key under which an input is bound: its name or its position. */
bool ref_key(const ref_call *call, const char *name, char out[24]);
/* Does it have a child pattern, with the members `pattern` and `key`? */
bool ref_has_children(const ref_row *row);
/* Checks the child pattern of `map`, `filter` and `reduce`. */
stet_status ref_check_children(const ref_row *row, stet_value descriptor, stet_value node, stet_error *err);
/* Checks the member `distinct` of `files`: paths that must differ from file to file. */
stet_status ref_check_files(stet_value descriptor, stet_error *err);
/* Fails with "NAME: expected WHAT, found a string". */
stet_status ref_expected(stet_error *err, const char *name, const char *what, stet_value found);
/* false, null, 0 and "" are false, everything else is true. */
bool ref_truth(stet_value v);
/* Appends a value to a text: strings as they are, everything else as JSON. */
void ref_text(stet_buf *b, stet_value v);

/* clang-format off */
#define STET_REFS(X) \
    X(add) X(subtract) X(multiply) X(divide) X(modulo) X(power) X(negate) X(abs) X(round) X(floor) X(ceil) X(sqrt) \
    X(equal) X(notEqual) X(less) X(lessOrEqual) X(greater) X(greaterOrEqual) X(compare) \
    X(and) X(or) X(not) X(xor) \
    X(sum) X(count) X(min) X(max) X(mean) \
    X(value) X(get) X(pick) X(merge) X(keys) X(values) X(length) X(concat) X(flatten) X(sort) X(unique) X(range) \
    X(join) X(split) X(format) X(hash) \
    X(ifElse) X(when) X(unless) \
    X(map) X(filter) X(reduce) X(files)
/* clang-format on */

#define REF_DECLARE(name) extern const ref_row ref_row_##name;
STET_REFS(REF_DECLARE)
#undef REF_DECLARE

#endif
