/* text.h - text for people: wrapped paragraphs, columns, emphasis. For the `render` functions of operations. */
#ifndef STET_OPERATION_TEXT_H
#define STET_OPERATION_TEXT_H

#include "operation/op.h"

typedef enum stet_style {
    STET_STYLE_BOLD,
    STET_STYLE_DIM,
    STET_STYLE_GOOD, /* green */
    STET_STYLE_WARN, /* yellow */
    STET_STYLE_BAD   /* red */
} stet_style;

/* Renders text with its style if r->colour, otherwise plain. Control characters are shown as "?", so that stored bytes
 * can't control a terminal. */
void stet_text_styled(stet_render *r, stet_style style, const char *text);
void stet_text_plain(stet_render *r, const char *text, size_t len);
void stet_text_value(stet_render *r, stet_value text); /* a string value, plain; nothing for any other */

/* What a command printed, line by line, each behind `before` (may be ""), and ending in a newline. On a terminal control
 * and format characters are shown as "?", and of a line that overwrites itself only the last state is shown. Elsewhere
 * the bytes are left as they are. */
void stet_text_output(stet_render *r, const char *before, const char *bytes, size_t len);

/* Wraps paragraphs to `width` columns, each line after `indent` blanks; with `hanging` the first line has no indent. An
 * empty line separates paragraphs; a line that begins with a blank is kept as it is. Ends in a newline. */
void stet_text_wrap(stet_buf *out, const char *text, size_t indent, size_t width, bool hanging);
/* Adds blanks up to column `to` if `from` is less, otherwise one blank. */
void stet_text_pad(stet_buf *out, size_t from, size_t to);

/* How many bytes of valid UTF-8 fit into this many columns. */
size_t stet_text_fitting(const char *text, size_t len, size_t columns);

/* Rows of cells in aligned columns, two blanks apart; a header row is bold. Cells are strings ("" allowed). On a
 * terminal the last column is cut to the remaining width.
 *
 *     stet_table t = stet_table_begin(2, (const char *const[]){"ID", "STATE"});
 *     stet_table_cell(&t, "17"); // two cells make a row
 *     stet_table_cell(&t, "running");
 *     stet_table_print(&t, r, true); // frees the table too
 */
#define STET_TABLE_COLUMNS 12
typedef struct stet_table {
    size_t columns;
    stet_value cells;
    stet_value styles; /* of each cell, or null */
    stet_value next;   /* of the next cell */
} stet_table;
stet_table stet_table_begin(size_t columns, const char *const heads[]); /* the first row are the headings */
void stet_table_style(stet_table *t, stet_style style);                 /* of the next cell */
void stet_table_cell(stet_table *t, const char *text);
void stet_table_cellf(stet_table *t, const char *format, ...) STET_PRINTF(2, 3);
void stet_table_print(stet_table *t, stet_render *r, bool header);

#endif
