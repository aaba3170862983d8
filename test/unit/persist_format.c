/* persist_format.c - the text format of persist.
 *
 * Tests golden vectors, tokens, the strict reader, canonical text, conflicts, snapshots and ancestry.
 */

#include "../expect.h"

#include "persist/snapshot.h"

#define BLOCK  "abcdefghijklmnopqrstuvwxyzABCDEF123456789-_"
#define MODULE "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789"
#define OBJECT "123456789-_abcdefghijklmnopqrstuvwxyzABCDEF"
#define GOLDEN                                                                                                         \
    "[" BLOCK "." MODULE ".63875925237555]\n"                                                                          \
    "variables = { id = \"" OBJECT "\", size = 123, format = \"pickle\" }\n"                                           \
    "hash = \"mIG4wyNQHrw\"\n"

typedef struct parsed {
    stet_arena arena;
    stet_pentry_scratch scratch;
    stet_pentry e;
    size_t used;
    const char *why;
    stet_pentry_state state;
} parsed;

static stet_pentry_state parse(parsed *p, const char *text) {
    memset(p, 0, sizeof *p);
    p->state = stet_pentry_parse(text, strlen(text), &p->arena, &p->scratch, &p->e, &p->used, &p->why);
    return p->state;
}

static void done(parsed *p) {
    stet_arena_release(&p->arena);
    stet_pentry_scratch_release(&p->scratch);
}

/* An entry with the right hash. */
static char *make(const char *block, const char *module, uint64_t created, const char *body) {
    stet_tree tree = {0};
    const char *why;
    assert_true(stet_tree_parse(&tree, body, strlen(body), false, &why));
    stet_buf pre = STET_BUF(0);
    stet_buf_printf(&pre, "%s%s%llu", block, module, (unsigned long long)created);
    stet_tree_preimage(&tree, &tree.nodes.at[0], "hash", &pre);
    stet_hash h = stet_hash_of(pre.data, pre.len);
    char hash[16];
    stet_base64url_encode(h.bytes, 8, hash);
    char *text =
        stet_asprintf("[\"%s\".%s.%llu]\n%shash = \"%s\"\n", block, module, (unsigned long long)created, body, hash);
    stet_buf_release(&pre);
    stet_tree_release(&tree);
    return text;
}

static void golden_entry(void **state) {
    (void)state;
    parsed p;
    assert_int_equal(parse(&p, GOLDEN), STET_PENTRY_OK);
    assert_int_equal(p.used, strlen(GOLDEN));
    assert_memory_equal(p.e.hash, "mIG4wyNQHrw", 11);
    assert_int_equal(p.e.created, 63875925237555);
    assert_int_equal(p.e.text_len, strlen(GOLDEN));
    assert_memory_equal(p.e.text, GOLDEN, strlen(GOLDEN));
    stet_pcontent c;
    size_t at = 0;
    assert_true(stet_pentry_content(&p.e, &at, &c));
    assert_int_equal(c.size, 123);
    assert_memory_equal(c.kind, "variables", 9);
    assert_memory_equal(c.format, "pickle", 6);
    assert_false(stet_pentry_content(&p.e, &at, &c));
    done(&p);
}

static void golden_made(void **state) {
    (void)state;
    stet_arena arena = STET_ARENA_INIT;
    stet_pentry_scratch scratch = {0};
    stet_pentry e;
    stet_pcontent_in in = {.kind = "variables", .id = OBJECT, .format = "pickle", .size = 123};
    stet_persist_key key = {.block_id = BLOCK, .module_hash = MODULE, .created_at = 63875925237555};
    assert_int_equal(stet_pentry_make(&key, &in, 1, NULL, 0, &arena, &scratch, &e, &err), STET_OK);
    assert_int_equal(e.text_len, strlen(GOLDEN));
    assert_memory_equal(e.text, GOLDEN, e.text_len);
    stet_arena_release(&arena);
    stet_pentry_scratch_release(&scratch);
}

/* Whatever the writing, the same entry; and both ways of reading agree. */
static void forms(void **state) {
    (void)state;
    static const char *const same[] = {
        "[ \"" BLOCK "\" . " MODULE
        " . 63875925237555 ] # name\nhash = \"mIG4wyNQHrw\"\nvariables = {format='pickle',size=+1_2_3,id=\"" OBJECT
        "\"} # x\n",
        "[" BLOCK "." MODULE ".63875925237555]\r\n\r\nvariables = { id = \"" OBJECT
        "\", size = 123, format = \"pick\\u006ce\" }\r\nhash = \"mIG4wyNQHrw\"\r\n",
        GOLDEN "\n\n\n",
        "[" BLOCK "." MODULE ".63875925237555]\n\"variables\" = { \"id\" = \"" OBJECT
        "\", size = 123, format = \"pickle\" }\nhash = 'mIG4wyNQHrw'",
        GOLDEN "zeros behind it \x01\x02\n", /* what a power cut may leave */
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        parsed p;
        if (parse(&p, same[i]) != STET_PENTRY_OK)
            fail_msg("form %zu: %s", i, p.why);
        assert_int_equal(p.e.text_len, strlen(GOLDEN));
        assert_memory_equal(p.e.text, GOLDEN, p.e.text_len);
        done(&p);
    }
}

static void malformed(void **state) {
    (void)state;
    static const char *const bad[] = {
        "[a.b]\nhash = \"mIG4wyNQHrw\"\n",
        "[header." MODULE ".63875925237555]\nhash = \"mIG4wyNQHrw\"\n",
        "[\"he\\u0061der\"." MODULE ".63875925237555]\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".063875925237555]\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".1638759252375551]\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".-5]\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE "x.5]\nhash = \"mIG4wyNQHrw\"\n",
        "[x.../../../../../../../../../../../../../../../.5]\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\nhash = \"mIG4wyNQHr\"\n",
        "[x." MODULE ".5]\nhash = \"mIG4wyNQHrw\"\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = { b = 1, }\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = \"\xff\"\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = \"\\ud800\"\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = 99999999999999999999\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = 0x10\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na = \"\"\"\nb\"\"\"\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]\na.b = 1\nhash = \"mIG4wyNQHrw\"\n",
        "[x." MODULE ".5]",
        "[x." MODULE ".5",
        "[",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parsed p;
        if (parse(&p, bad[i]) == STET_PENTRY_OK)
            fail_msg("taken: %s", bad[i]);
        done(&p);
    }
    /* A right hash does not make an id out of a path. */
    static const char *const ids[] = {
        "../../../etc/passwd",      OBJECT "/..", OBJECT ".", OBJECT "." MODULE, OBJECT "." MODULE ".05",
        OBJECT "." MODULE ".5.zst", OBJECT " (1)"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char *body = stet_asprintf("variables = { id = \"%s\", size = 1, format = \"pickle\" }\n", ids[i]);
        char *text = make("x", MODULE, 5, body);
        parsed p;
        assert_int_equal(parse(&p, text), STET_PENTRY_MALFORMED);
        done(&p);
        stet_free(text);
        stet_free(body);
    }
}

/* Kinds and keys that nobody knows are kept as they are, and hashed. */
static void unknown_kept(void **state) {
    (void)state;
    const char *body =
        "a_float = 1.50\n"
        "output = { id = \"" OBJECT "\", size = 7, format = \"text/html\", \"other key\" = [ 1,  2 ], zz = 'q' }\n"
        "strange = { y = [1, {b = 2, a = \"x\"}], x = true }\n"
        "when = 2024-03-20T14:30:15.123Z\n";
    char *text = make("free text: \xc3\xa9", MODULE, 63875925237555, body);
    parsed p;
    assert_int_equal(parse(&p, text), STET_PENTRY_OK);
    assert_memory_equal(p.e.text, text, strlen(text));
    assert_int_equal(stet_pentry_size(&p.e), 7);
    stet_persist_entry *e = stet_pentry_copy(&p.e);
    assert_string_equal(e->key.block_id, "free text: \xc3\xa9");
    stet_buf b = STET_BUF(0);
    assert_true(stet_persist_extra_string(e, &e->contents[0], "zz", &b));
    assert_string_equal(b.data, "q");
    stet_buf_release(&b);
    stet_persist_entry_free(e);
    done(&p);
    stet_free(text);
}

static void times(void **state) {
    (void)state;
    uint64_t c;
    assert_true(stet_persist_created_of_unix(0, &c));
    assert_int_equal(c, 62135596800000);
    assert_true(stet_persist_created_of_unix(1740328437555, &c));
    assert_int_equal(c, 63875925237555);
    assert_int_equal(stet_persist_created_to_unix(63875925237555), 1740328437555);
    assert_false(stet_persist_created_of_unix(INT64_MIN, &c));
    assert_false(stet_persist_created_of_unix(INT64_MAX, &c));
}

static int prefer(const char *body_a, const char *body_b) {
    char *a = make("x", MODULE, 5, body_a), *b = make("x", MODULE, 5, body_b);
    parsed p, q;
    assert_int_equal(parse(&p, a), STET_PENTRY_OK);
    assert_int_equal(parse(&q, b), STET_PENTRY_OK);
    int c = stet_pentry_prefer(&p.e, &q.e), d = stet_pentry_prefer(&q.e, &p.e);
    assert_true((c > 0) == (d < 0) && (c == 0) == (d == 0));
    done(&p);
    done(&q);
    stet_free(a);
    stet_free(b);
    return c;
}

#define CONTENT(kind, id, size, format) kind " = { id = \"" id "\", size = " #size ", format = \"" format "\" }\n"
static void conflicts(void **state) {
    (void)state;
    /* Sizes in the order of kinds decide first. */
    assert_true(prefer(CONTENT("output", OBJECT, 2, "t") CONTENT("variables", OBJECT, 1, "t"),
                       CONTENT("output", OBJECT, 1, "t") CONTENT("variables", OBJECT, 9, "t")) > 0);
    assert_true(prefer(CONTENT("stderr", OBJECT, 1, "t"), CONTENT("variables", OBJECT, 9, "t")) > 0);
    assert_true(prefer(CONTENT("variables", OBJECT, 1, "t"), "x = 1\n") > 0);
    /* Then the larger bytes. */
    assert_true(prefer(CONTENT("variables", MODULE, 1, "t"), CONTENT("variables", OBJECT, 1, "t")) > 0);
    assert_true(prefer(CONTENT("variables", OBJECT, 1, "pickle"), CONTENT("variables", OBJECT, 1, "json")) > 0);
    assert_true(prefer(CONTENT("variables", OBJECT, 1, "t") "z = 1\n", CONTENT("variables", OBJECT, 1, "t")) > 0);
    assert_int_equal(prefer(CONTENT("variables", OBJECT, 1, "t"), CONTENT("variables", OBJECT, 1, "t")), 0);
}

static stet_psnapshot *snapshot_of(const char *text, stet_psnapshot_state want, const char **why) {
    stet_psnapshot *s;
    const char *reason;
    size_t len = strlen(text);
    char *copy = malloc(len + 1);
    memcpy(copy, text, len + 1);
    stet_psnapshot_state got = stet_psnapshot_parse(copy, len, &s, &reason);
    if (got != want)
        fail_msg("state %d, not %d: %s", got, want, reason);
    if (why)
        *why = reason;
    return s;
}

static stet_psnapshot *grow(stet_psnapshot *const *tips, size_t tip_count, const char *block, uint64_t created,
                            char **text_out) {
    char *text = make(block, MODULE, created, CONTENT("variables", OBJECT, 3, "json"));
    parsed p;
    assert_int_equal(parse(&p, text), STET_PENTRY_OK);
    stet_buf out = STET_BUF(0);
    stet_pid hash;
    stet_psnapshot_print(&p.e, 1, tips, tip_count, &out, &hash);
    stet_psnapshot *s = snapshot_of(out.data, STET_PSNAPSHOT_OK, NULL);
    assert_string_equal(s->hash.text, hash.text);
    if (text_out)
        *text_out = stet_strdup(out.data);
    stet_buf_release(&out);
    done(&p);
    stet_free(text);
    return s;
}

static void snapshot_round(void **state) {
    (void)state;
    char *text;
    stet_psnapshot *root = grow(NULL, 0, "b1", 5, &text);
    assert_int_equal(root->entries.len, 1);
    assert_int_equal(root->parents.rows.len, 1);
    assert_int_equal(root->parents.rows.at[0].count, 0);
    /* Each byte matters. */
    size_t len = strlen(text), taken = 0;
    for (size_t i = 0; i < len; i++) {
        char *copy = malloc(len + 1);
        memcpy(copy, text, len + 1);
        copy[i] ^= 0x01;
        stet_psnapshot *s;
        const char *why;
        if (stet_psnapshot_parse(copy, len, &s, &why) == STET_PSNAPSHOT_OK) {
            /* A flip inside an entry leaves the snapshot, without that entry; one in white space changes nothing. */
            taken++;
            for (size_t k = 0; k < s->entries.len; k++)
                assert_int_equal(s->entries.at[k].text_len, root->entries.at[0].text_len);
        }
        stet_psnapshot_drop(s);
    }
    assert_true(taken < len / 2);
    /* And each cut. */
    for (size_t i = 0; i + 1 < len; i++) {
        char *copy = malloc(i + 1);
        memcpy(copy, text, i);
        copy[i] = '\0';
        stet_psnapshot *s;
        const char *why;
        assert_int_not_equal(stet_psnapshot_parse(copy, i, &s, &why), STET_PSNAPSHOT_OK);
        stet_psnapshot_drop(s);
    }
    stet_free(text);
    stet_psnapshot_drop(root);
}

static void ancestry(void **state) {
    (void)state;
    enum { LONG = 120 };
    stet_psnapshot *chain[LONG];
    for (size_t i = 0; i < LONG; i++)
        chain[i] = grow(i ? &chain[i - 1] : NULL, i ? 1 : 0, "b", i + 1, NULL);
    stet_psnapshot *last = chain[LONG - 1];
    assert_int_equal(last->parents.rows.len, STET_PERSIST_ROWS);
    assert_true(stet_psnapshot_has_ancestor(last, chain[LONG - 2]->hash.text));
    assert_true(stet_psnapshot_has_ancestor(last, chain[LONG - 1 - STET_PERSIST_ROWS]->hash.text));
    assert_false(stet_psnapshot_has_ancestor(last, chain[LONG - 2 - STET_PERSIST_ROWS]->hash.text));
    assert_false(stet_psnapshot_has_ancestor(last, last->hash.text));
    /* Merging gives the same bytes whatever the order in which the tips are found. */
    stet_psnapshot *one = grow(&chain[3], 1, "one", 7, NULL), *two = grow(&chain[3], 1, "two", 7, NULL);
    stet_psnapshot *ab[] = {one, two}, *ba[] = {two, one};
    char *x, *y;
    stet_psnapshot *m = grow(ab, 2, "m", 9, &x), *n = grow(ba, 2, "m", 9, &y);
    assert_string_equal(x, y);
    assert_true(stet_psnapshot_has_ancestor(m, one->hash.text));
    assert_true(stet_psnapshot_has_ancestor(m, chain[3]->hash.text));
    assert_true(stet_psnapshot_has_ancestor(m, chain[0]->hash.text));
    stet_free(x);
    stet_free(y);
    stet_psnapshot_drop(m);
    stet_psnapshot_drop(n);
    stet_psnapshot_drop(one);
    stet_psnapshot_drop(two);
    for (size_t i = 0; i < LONG; i++)
        stet_psnapshot_drop(chain[i]);
}

#define HEAD                                                                                                           \
    "[header]\nversion = \"1\"\nsnapshot_hash = \"" OBJECT                                                             \
    "\"\nentry_table_name_parts = [\"block_id\", \"module_hash\", \"created_at\"]\n"
static void hostile_snapshots(void **state) {
    (void)state;
    snapshot_of("", STET_PSNAPSHOT_CORRUPT, NULL);
    snapshot_of("[header]\n", STET_PSNAPSHOT_UNKNOWN, NULL);
    snapshot_of("[header]\nversion = \"2\"\nsnapshot_hash = \"x\"\n", STET_PSNAPSHOT_UNKNOWN, NULL);
    snapshot_of("[header]\nversion = \"1\"\nentry_table_name_parts = [\"block_id\", \"module_hash\", \"created_at\", "
                "\"version\"]\n",
                STET_PSNAPSHOT_UNKNOWN, NULL);
    snapshot_of(HEAD, STET_PSNAPSHOT_CORRUPT, NULL);
    const char *why;
    snapshot_of(HEAD "[parents]\n" OBJECT " = [\"" MODULE "\"]\n" MODULE " = [\"" OBJECT "\"]\n",
                STET_PSNAPSHOT_CORRUPT, &why);
    assert_string_equal(why, "[parents] goes round in a circle");
    snapshot_of(HEAD "[parents]\n" OBJECT " = [\"" OBJECT "\"]\n", STET_PSNAPSHOT_CORRUPT, &why);
    assert_string_equal(why, "[parents] goes round in a circle");
    snapshot_of(HEAD "[parents]\n" OBJECT " = [\"" MODULE "\", \"" MODULE "\"]\n", STET_PSNAPSHOT_CORRUPT, NULL);
    snapshot_of(HEAD "[parents]\n" OBJECT " = [\"../x\"]\n", STET_PSNAPSHOT_CORRUPT, NULL);
    snapshot_of(HEAD "[parents]\n" OBJECT " = [\n  \"" MODULE "\", # over lines\n]\n" GOLDEN GOLDEN,
                STET_PSNAPSHOT_CORRUPT, &why);
    assert_string_equal(why, "an execution key stands twice");
    stet_buf many = STET_BUF(0);
    stet_buf_str(&many, HEAD "[parents]\n");
    for (int i = 0; i < 5000; i++)
        stet_buf_printf(&many, "%043d = []\n", i);
    snapshot_of(many.data, STET_PSNAPSHOT_CORRUPT, &why);
    assert_string_equal(why, "more rows in [parents] than any history needs");
    stet_buf_release(&many);
}

static void sets(void **state) {
    (void)state;
    stet_arena arena = STET_ARENA_INIT;
    stet_pentry_scratch scratch = {0};
    stet_pset set = {0};
    stet_pentries none = {0};
    stet_pset_build(&set, &none);
    for (uint64_t i = 0; i < 500; i++) {
        stet_pentry e;
        char block[16];
        snprintf(block, sizeof block, "b%d", (int)(i % 7));
        stet_persist_key key = {.block_id = block, .module_hash = MODULE, .created_at = 1 + (i * 379) % 500};
        assert_int_equal(stet_pentry_make(&key, NULL, 0, NULL, 0, &arena, &scratch, &e, NULL), STET_OK);
        assert_null(stet_pset_find(&set, &e));
        stet_pset_add(&set, &e);
        assert_non_null(stet_pset_find(&set, &e));
    }
    for (int b = 0; b < 7; b++) {
        char block[16];
        snprintf(block, sizeof block, "b%d", b);
        uint64_t last = UINT64_MAX;
        size_t n = 0;
        for (const stet_pentry *e = stet_pset_newest(&set, block, 2, MODULE, 300); e;
             e = stet_pset_older(&set, e), n++) {
            assert_true(e->created <= 300 && e->created < last);
            last = e->created;
        }
        assert_true(n > 30);
    }
    assert_null(stet_pset_newest(&set, "b0", 2, OBJECT, UINT64_MAX));
    stet_pset_release(&set);
    stet_arena_release(&arena);
    stet_pentry_scratch_release(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_entry),      cmocka_unit_test(golden_made),    cmocka_unit_test(forms),
        cmocka_unit_test(malformed),         cmocka_unit_test(unknown_kept),   cmocka_unit_test(times),
        cmocka_unit_test(conflicts),         cmocka_unit_test(snapshot_round), cmocka_unit_test(ancestry),
        cmocka_unit_test(hostile_snapshots), cmocka_unit_test(sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
