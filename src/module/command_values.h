/* command_values.h - what a word or a variable of a shell string may become.
 *
 * A word has several forms if it holds a variable that the string sets to several values. A part of which only a
 * shell could tell anything is COMMAND_UNKNOWN in its text and pattern: any bytes may be there, a slash included.
 *
 *     command_forms f = {0};
 *     command_forms_add(&f, "a.c", "a.c", false);
 *     command_forms_release(&f);
 */
#ifndef STET_MODULE_COMMAND_VALUES_H
#define STET_MODULE_COMMAND_VALUES_H

#include "base/buf.h"
#include "base/vec.h"

#define COMMAND_UNKNOWN   '\002'
#define COMMAND_MAX_FORMS 64

typedef struct command_form {
    char *text;
    /* The same with quoted characters after backslashes, for one that the shell matches with files. */
    char *pattern;
    bool glob; /* the shell matches it with files */
} command_form;
typedef STET_VEC(command_form) command_forms;

/* False: it is among them, or they are too many; then one of them becomes COMMAND_UNKNOWN. */
bool command_forms_add(command_forms *f, const char *text, const char *pattern, bool glob);
void command_forms_release(command_forms *f);

bool command_is_unknown(const char *text); /* has it a part of which only a shell could tell? */
/* What "${NAME OPERATOR OPERAND}" makes of the value of NAME. `operation` begins with the operator. False: unknown. */
bool command_value_change(const char *value, const char *operation, stet_buf *out);
/* "a\nb" with a line end in it, as C, printf and $'' have it. */
void command_decode(const char *text, stet_buf *out);

#endif
