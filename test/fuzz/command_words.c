/* command_words.c - any shell string, and any list of words: each is read to its end, in a time and with a number of words that grow with it.
 *
 * The first byte: a shell string, or words separated by NULs.
 */

#include "module/command_words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOLD 4000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *ctx, const command_word *w) {
    size_t *told = ctx;
    assert(w->text[0] && w->from);
    assert(++*told < MAX_TOLD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > 2048)
        return 0;
    static char home[] = "HOME=/home/me", x[] = "X=a b", shell[] = "/bin/sh", option[] = "-c";
    char *text = malloc(size), *words[64], *env[] = {home, x};
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    size_t told = 0, n = 0;
    if (data[0] % 2) {
        words[n++] = shell;
        words[n++] = option;
        words[n++] = text;
    } else {
        for (size_t at = 0; at < size && n < 64; at += strlen(text + at) + 1)
            words[n++] = text + at;
    }
    command_words_of_list(words, n, env, 2, NULL, count, &told);
    free(text);
    return 0;
}
