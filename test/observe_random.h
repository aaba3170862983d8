/* observe_random.h - what the random workloads of observations draw from one seed: documents, places in them, values.
 * Outputs of actions, "out0", "out1"..., are documents of their own, numbered from RANDOM_DOCS on. */
#ifndef STET_TEST_OBSERVE_RANDOM_H
#define STET_TEST_OBSERVE_RANDOM_H

#include "expect.h"

#include "memory/observe.h"

enum { RANDOM_DOCS = 6 };
static const char *const doc_ids[RANDOM_DOCS] __attribute__((unused)) = {"d0", "d1", "d2", "d3", "d4", "d0"};
static const char *const doc_scopes[RANDOM_DOCS] __attribute__((unused)) = {"", "", "", "", "", "user:x"};

static uint64_t seed;

static inline unsigned rnd(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static inline void random_path(stet_path *p) {
    static const char *const keys[] = {"a", "b", "0", "1"};
    stet_path_push(p, "value");
    for (unsigned n = rnd(4); n; n--)
        stet_path_push(p, keys[rnd(4)]);
}

static inline stet_value random_value(int depth) {
    stet_value v;
    switch (rnd(depth > 2 ? 3 : 5)) {
    case 0:
        return stet_value_int(rnd(3));
    case 1:
        return stet_value_string(rnd(2) ? "x" : "y");
    case 2:
        return stet_value_null();
    case 3:
        v = stet_value_array();
        for (unsigned n = rnd(3); n; n--)
            stet_value_push(&v, random_value(depth + 1));
        return v;
    default:
        v = stet_value_object();
        if (rnd(2))
            stet_value_put(&v, "a", random_value(depth + 1));
        if (rnd(2))
            stet_value_put(&v, "b", random_value(depth + 1));
        return v;
    }
}

static inline int doc_number(const stet_docname *name) {
    int n;
    for (int i = 0; i < RANDOM_DOCS; i++)
        if (strcmp(name->id, doc_ids[i]) == 0 && strcmp(name->scope ? name->scope : "", doc_scopes[i]) == 0)
            return i;
    assert_int_equal(sscanf(name->id, "out%d", &n), 1);
    return RANDOM_DOCS + n;
}

/* NULL: it can't be opened now, and `err` says why. */
static inline stet_space *open_named(const char *name) {
    stet_space *s = NULL;
    char *path = stet_asprintf("%s.db", name);
    stet_status st = stet_space_open_path(path, name, 0, &s, &err);
    stet_free(path);
    return st == STET_OK ? s : NULL;
}

#endif
