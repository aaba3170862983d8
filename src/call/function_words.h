/* function_words.h - the words of a line for the shell. Private to call/function*.c.
 *
 *     stet_function f;
 *     shell_word w = {.text = STET_BUF(0)};
 *     stet_status status = stet_function_parse("dml+exec://stet-exec-local/?command=cat+x", &f, &err);
 *     for (const char *at = f.command; status == STET_OK && stet_function_next_word(&f, &at, &w);)
 *         printf("%s\n", stet_buf_cstr(&w.text));
 *     stet_buf_release(&w.text);
 *
 * These are not the shell's own rules: a word that the shell would read otherwise names no file, or one more than needed.
 */
#ifndef STET_EXEC_FUNCTION_WORDS_H
#define STET_EXEC_FUNCTION_WORDS_H

#include "call/function.h"

typedef struct shell_word {
    const char *begin, *end; /* as it is written */
    stet_buf text;           /* without quotes, with the variables that are known */
    bool target;             /* it stands behind a > */
} shell_word;

/* The next word; false: there are no more. */
bool stet_function_next_word(const stet_function *f, const char **at, shell_word *w);

#endif
