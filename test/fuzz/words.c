/* words.c - any words of a command line, separated by NULs.
 *
 * They are accepted, or refused with an error that is itself a valid value. Accepted words can be checked again and
 * stay as they are.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const states[] = {"pending", "running", "failed", NULL};

static const stet_param params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .summary = "A cell"},
    {.name = "value", .type = STET_PARAM_JSON, .flags = STET_PARAM_POSITIONAL, .summary = "A value"},
    {.name = "limit", .letter = 'n', .type = STET_PARAM_INT, .summary = "How many", .min = -5, .max = 1000},
    {.name = "ratio", .letter = 'r', .type = STET_PARAM_NUMBER, .summary = "A ratio"},
    {.name = "dry-run", .letter = 'd', .type = STET_PARAM_BOOL, .summary = "Nothing is done", .default_json = "false"},
    {.name = "state", .type = STET_PARAM_ENUM, .flags = STET_PARAM_REPEATED, .summary = "States", .choices = states},
    {.name = "set", .letter = 's', .type = STET_PARAM_PAIR, .summary = "Settings"},
    {.name = "include-content", .type = STET_PARAM_BOOL, .summary = "Content too", .optional_value = "true"},
    {.name = "file", .letter = 'f', .type = STET_PARAM_FILE, .summary = "A file"},
    {.name = "since", .type = STET_PARAM_TIME, .summary = "A time"},
    {0},
};
static const stet_op op = {.name = "thing do", .summary = "Do a thing", .params = params};

static void check_error(stet_error *err) {
    assert(err->status != STET_OK && err->message[0]);
    stet_value v = stet_error_value(err), back;
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_status status = stet_json_parse(text, len, &back, NULL);
    assert(status == STET_OK && stet_value_equal(v, back));
    stet_free(text);
    stet_value_release(back);
    stet_value_release(v);
    stet_error_clear(err);
}

static void check_args(stet_value given, stet_op_spelling spelling) {
    stet_error err = STET_ERROR_INIT;
    stet_value args, again;
    if (stet_op_check_spelled(&op, given, spelling, &args, &err) != STET_OK) {
        check_error(&err);
        return;
    }
    stet_status status = stet_op_check_args(&op, args, &again, &err);
    assert(status == STET_OK && stet_value_equal(args, again));
    stet_value_release(again);
    stet_value_release(args);
}

/* The first byte: words after the operation's name, words with it, or the arguments as JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > 8192)
        return 0;
    int how = data[0] % 3;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    stet_error err = STET_ERROR_INIT;
    if (how == 2) {
        stet_value given;
        if (stet_json_parse(text, size - 1, &given, NULL) == STET_OK) {
            check_args(given, STET_SPELL_NAMES);
            stet_value_release(given);
        }
        free(text);
        return 0;
    }
    char *words[64];
    int count = 0;
    for (size_t at = 0; at < size && count < 64; at += strlen(text + at) + 1)
        words[count++] = text + at;
    stet_cli_words w = {0};
    stet_status status = stet_cli_parse_for(how == 0 ? &op : NULL, count, words, &w, &err);
    if (status != STET_OK)
        check_error(&err);
    else if (w.op == &op)
        check_args(w.given, STET_SPELL_FLAGS);
    stet_cli_words_release(&w);
    free(text);
    return 0;
}
