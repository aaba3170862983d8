/* help.h - the operation table as text: help, the reference, the man page, completion.
 *
 * Everything here comes from the rows of the table; nothing is written by hand twice.
 */
#ifndef STET_CLI_HELP_H
#define STET_CLI_HELP_H

#include "operation/op.h"

/* The overview: the common operations (`stet`), or all of them (`stet help`). */
void stet_help_overview(stet_render *r, bool all);
void stet_help_noun(stet_render *r, const char *noun);
void stet_help_op(stet_render *r, const stet_op *op);
/* "stet doc get [--at N] CELL" */
void stet_help_usage(stet_buf *out, const stet_op *op);
/* The notes after the summary of a parameter: "one of: a, b; default 3; repeatable". */
void stet_help_notes(stet_buf *out, const stet_param *param);

void stet_help_reference(stet_buf *out); /* markdown */
void stet_help_man(stet_buf *out);       /* roff, man(7) */
void stet_help_bash(stet_buf *out);
void stet_help_zsh(stet_buf *out);
void stet_help_fish(stet_buf *out);

/* Exit statuses and environment variables, for the man page and the reference. */
typedef struct stet_help_item {
    const char *name;
    const char *text;
} stet_help_item;
extern const stet_help_item stet_help_statuses[];  /* ends with a NULL name */
extern const stet_help_item stet_help_variables[]; /* ends with a NULL name */

/* The operation `help`, for stet_op_add. */
extern const stet_op stet_ops_help[];

#endif
