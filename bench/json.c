/* json.c - reading and printing JSON, compared with jansson.
 *
 * The document is 50 MB of mixed content (records with short and long strings, escapes, letters beyond ASCII, integers,
 * decimals, nested arrays and objects), compact and indented.
 */

#include "base/json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Processor time, the kernel's for new memory included: all of it is one thread, and other programs on the machine do
 * not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void add_words(stet_buf *b, size_t n) {
    static const char *const words[] = {"alpha", "the",    "of",  "measurement", "durable",   "größer",  "a",
                                        "cell",  "\\n",    "Ω",   "incremental", "\\\"x\\\"", "日本",    "result",
                                        "which", "stands", "and", "again",       "graph",     "observed"};
    for (size_t i = 0; i < n; i++) {
        if (i)
            stet_buf_char(b, ' ');
        /* Escapes and non-ASCII words come up less often, as in prose. */
        size_t w = random_number() % 20;
        stet_buf_str(b, words[random_number() % 4 && (w == 5 || w == 8 || w == 9 || w == 11 || w == 12) ? 0 : w]);
    }
}

static void add_record(stet_buf *b, uint64_t id, const char *gap) {
    stet_buf_printf(b, "{%s\"id\": %llu,%s\"name\": \"user-%llu\",%s\"active\": %s,%s\"score\": %.17g,%s\"title\": \"",
                    gap, (unsigned long long)id, gap, (unsigned long long)(random_number() % 100000), gap,
                    random_number() % 2 ? "true" : "false", gap, (double)(random_number() >> 11) * 1e-9, gap);
    add_words(b, 3 + random_number() % 5);
    stet_buf_printf(b, "\",%s\"body\": \"", gap);
    add_words(b, 10 + random_number() % 40);
    stet_buf_printf(b,
                    "\",%s\"a_rather_long_member_name\": null,%s\"at\": \"2026-01-%02dT10:%02d:00Z\",%s\"samples\": [",
                    gap, gap, (int)(1 + random_number() % 28), (int)(random_number() % 60), gap);
    size_t n = random_number() % 12;
    for (size_t i = 0; i < n; i++)
        stet_buf_printf(b, "%s%.*f", i ? ", " : "", (int)(1 + random_number() % 6),
                        (double)(random_number() % 1000000) / 997);
    stet_buf_printf(
        b,
        "],%s\"tags\": [\"red\", \"green\", \"blue\"],%s\"where\": {\"x\": %d, \"y\": -%d, \"path\": \"/a/%llu/b\"}%s}",
        gap, gap, (int)(random_number() % 1000), (int)(random_number() % 1000), (unsigned long long)(id % 97), gap);
}

static double best(double a, double b) {
    return a == 0 || b < a ? b : a;
}

static void measure(const char *name, const char *gap) {
    stet_buf text = STET_BUF(0);
    stet_buf_char(&text, '[');
    for (uint64_t id = 0; text.len < 50u * 1000 * 1000; id++) {
        if (id)
            stet_buf_str(&text, ",\n");
        add_record(&text, id, gap);
    }
    stet_buf_char(&text, ']');
    double megabytes = (double)text.len / 1e6;
    double ours = 0, first = 0, theirs = 0, print_ours = 0, print_theirs = 0, release_ours = 0;
    size_t printed = 0, printed_theirs = 0;
    stet_value v;
    for (int round = 0; round < 6; round++) {
        stet_error err = STET_ERROR_INIT;
        double start = now();
        if (stet_json_parse(text.data, text.len, &v, &err)) {
            printf("%s: %s\n", name, err.message);
            exit(1);
        }
        double took = now() - start;
        ours = best(ours, took);
        first = round ? first : took;
        if (round == 5)
            break; /* kept for the printer */
        start = now();
        stet_value_release(v);
        release_ours = best(release_ours, now() - start);
    }
    for (int round = 0; round < 3; round++) {
        double start = now();
        char *out = stet_json_print(v, STET_JSON_CANONICAL, &printed);
        print_ours = best(print_ours, now() - start);
        stet_free(out);
    }
    stet_value_release(v);
    for (int round = 0; round < 2; round++) {
        json_error_t error;
        double start = now();
        json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error);
        theirs = best(theirs, now() - start);
        start = now();
        char *out = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
        print_theirs = best(print_theirs, now() - start);
        printed_theirs = strlen(out);
        free(out);
        json_decref(root);
    }
    printf("json read, %s, %.0f MB: ours %.0f MB/s, jansson %.0f MB/s, ratio %.1f (goal 300 MB/s)\n", name, megabytes,
           megabytes / ours, megabytes / theirs, theirs / ours);
    printf("json canonical print, %s: ours %.0f MB/s, jansson %.0f MB/s, ratio %.1f (goal 1)\n", name,
           (double)printed / 1e6 / print_ours, (double)printed_theirs / 1e6 / print_theirs,
           (double)printed / print_ours / ((double)printed_theirs / print_theirs));
    printf("json read, %s, the first time: ours %.0f MB/s; release: %.0f ms\n", name, megabytes / first,
           release_ours * 1e3);
    stet_buf_release(&text);
}

int main(void) {
    measure("compact", "");
    measure("indented", "\n    ");
    return 0;
}
