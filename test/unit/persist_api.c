/* persist_api.c - persisted results through the public header alone: put, get, streams, strategies, settings. */

#include "../expect.h"

#define M1 "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789"
#define T0 63875925237555u

static stet_persist *open_dir(const char *dir, const char *config, stet_persist_choose choose, void *ctx) {
    stet_persist_options o = STET_PERSIST_OPTIONS_INIT;
    stet_persist *p = NULL;
    o.dir = dir;
    if (config)
        OK(stet_json_parse(config, strlen(config), &o.config, &err));
    o.choose = choose;
    o.choose_ctx = ctx;
    OK(stet_persist_open(&o, &p, &err));
    stet_value_release(o.config);
    return p;
}

static stet_persist_key key_of(const char *block, uint64_t created) {
    return (stet_persist_key){.block_id = block, .module_hash = M1, .created_at = created};
}

static void put(stet_persist *p, const char *block, uint64_t created, const char *text) {
    stet_persist_key key = key_of(block, created);
    stet_persist_put *w = stet_persist_put_begin(p, &key);
    stet_persist_put_string(w, "who", "me");
    stet_persist_put_elapsed(w, 12);
    stet_persist_put_content(w, "variables", "json");
    stet_persist_put_int(w, "mode", 420);
    stet_persist_put_bytes(w, text, strlen(text));
    OK(stet_persist_put_end(w, NULL, &err));
}

static void what_was_put_is_got(void **state) {
    (void)state;
    stet_persist *p = open_dir("got", NULL, NULL, NULL);
    put(p, "b", T0, "[1]");
    put(p, "b", T0 + 1, "[2]");
    stet_persist_key key = key_of("b", 0);
    stet_persist_entry *e;
    OK(stet_persist_get(p, &key, STET_PERSIST_LOAD, NULL, &e, &err));
    assert_string_equal(stet_persist_entry_key(e)->block_id, "b");
    assert_string_equal(stet_persist_entry_key(e)->module_hash, M1);
    assert_true(stet_persist_entry_key(e)->created_at == T0 + 1);
    assert_int_equal(stet_persist_entry_count(e), 1);
    const stet_persist_content *c = stet_persist_entry_at(e, 0);
    assert_ptr_equal(c, stet_persist_entry_content(e, "variables"));
    assert_null(stet_persist_entry_at(e, 1));
    assert_null(stet_persist_entry_content(e, "value"));
    assert_string_equal(c->bytes, "[2]");
    assert_string_equal(c->format, "json");
    assert_int_equal(stet_persist_entry_size(e), 3);
    assert_int_equal(stet_persist_entry_elapsed(e), 12);
    assert_true(stet_persist_entry_in_log(e));
    stet_value who = stet_persist_entry_extra(e, NULL, "who");
    assert_string_equal(stet_value_as_string(&who, NULL), "me");
    stet_value_release(who);
    assert_int_equal(stet_value_as_int(stet_persist_entry_extra(e, "variables", "mode")), 420);
    assert_int_equal(stet_value_type(stet_persist_entry_extra(e, "variables", "who")), STET_TYPE_NULL);
    assert_int_equal(stet_value_type(stet_persist_entry_extra(e, "value", "mode")), STET_TYPE_NULL);
    stet_persist_entry_free(e);
    key = key_of("nobody", 0);
    FAILS(stet_persist_get(p, &key, 0, NULL, &e, &err), STET_NOT_FOUND, "");
    stet_persist_close(p);
}

typedef struct streamed {
    size_t bytes, pieces, stop_after;
    unsigned char sum;
} streamed;

static stet_status add_piece(void *ctx, const void *bytes, size_t len, stet_error *e) {
    streamed *s = ctx;
    for (size_t i = 0; i < len; i++)
        s->sum = (unsigned char)(s->sum + ((const unsigned char *)bytes)[i]);
    s->bytes += len;
    s->pieces++;
    return s->stop_after && s->bytes > s->stop_after ? stet_error_set(e, STET_LIMIT, "enough at %zu", s->bytes)
                                                     : STET_OK;
}

static void large_contents_stream_both_ways(void **state) {
    (void)state;
    enum { PIECE = 65536, PIECES = 48 };
    static unsigned char piece[PIECE];
    stet_persist *p = open_dir("large", NULL, NULL, NULL);
    stet_persist_key key = key_of("large", T0);
    stet_persist_put *w = stet_persist_put_begin(p, &key);
    unsigned char sum = 0;
    stet_persist_put_content(w, "value", "bytes");
    for (int n = 0; n < PIECES; n++) {
        for (size_t i = 0; i < PIECE; i++)
            sum = (unsigned char)(sum + (piece[i] = (unsigned char)(i * 31 + (size_t)n)));
        stet_persist_put_bytes(w, piece, PIECE);
    }
    stet_persist_entry *e;
    OK(stet_persist_put_end(w, &e, &err));
    stet_persist_entry_free(e);
    OK(stet_persist_get(p, &key, STET_PERSIST_LOAD, NULL, &e, &err));
    const stet_persist_content *c = stet_persist_entry_content(e, "value");
    assert_null(c->bytes); /* above STET_PERSIST_INLINE_MAX */
    streamed s = {0};
    OK(stet_persist_read(p, c->id, c->size, add_piece, &s, &err));
    assert_int_equal(s.bytes, PIECE * PIECES);
    assert_true(s.pieces > 1);
    assert_int_equal(s.sum, sum);
    s = (streamed){.stop_after = 1};
    FAILS(stet_persist_read(p, c->id, c->size, add_piece, &s, &err), STET_LIMIT, "enough");
    stet_persist_entry_free(e);
    stet_persist_close(p);
}

static bool count(void *ctx, const stet_persist_entry *e) {
    (void)e;
    ++*(int *)ctx;
    return true;
}

static int entries_in(stet_persist *p) {
    int n = 0;
    OK(stet_persist_each(p, NULL, count, &n, &err));
    return n;
}

/* Removes the entries of the block that ctx names. */
static stet_status choose_block(void *ctx, const stet_persist_entry *const *entries, size_t n, bool *remove,
                                stet_error *e) {
    if (!ctx)
        return stet_error_set(e, STET_FAILED, "no idea");
    for (size_t i = 0; i < n; i++)
        remove[i] = !strcmp(stet_persist_entry_key(entries[i])->block_id, ctx);
    return STET_OK;
}

static void a_strategy_chooses_what_goes(void **state) {
    (void)state;
    char second[] = "second";
    stet_persist *p = open_dir("chosen", NULL, choose_block, second);
    put(p, "first", T0, "1");
    put(p, "second", T0, "2");
    put(p, "third", T0 + 1, "3"); /* pins are named by module and time */
    stet_persist_key third = key_of("third", T0 + 1);
    OK(stet_persist_mark(p, &third, NULL, true, &err));
    stet_persist_clean_options o = STET_PERSIST_CLEAN_OPTIONS_INIT;
    stet_value report;
    o.dry_run = true;
    OK(stet_persist_clean(p, &o, &report, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(report, "entries_removed")), 1);
    stet_value_release(report);
    assert_int_equal(entries_in(p), 3);
    o.dry_run = false;
    OK(stet_persist_clean(p, &o, &report, &err)); /* with the strategy of the handle */
    assert_string_equal(stet_value_get_string(stet_value_at(stet_value_get(report, "entries"), 0), "block", NULL),
                        "second");
    stet_value_release(report);
    o.choose = choose_block;
    o.choose_ctx = (char[]){"third"}; /* which is pinned */
    OK(stet_persist_clean(p, &o, &report, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(report, "entries_removed")), 0);
    stet_value_release(report);
    o.choose_ctx = NULL;
    FAILS(stet_persist_clean(p, &o, &report, &err), STET_FAILED, "no idea");
    assert_int_equal(entries_in(p), 2);
    stet_persist_undeleted back;
    OK(stet_persist_undelete(p, NULL, NULL, NULL, false, &back, &err));
    assert_int_equal(back.entries, 1);
    assert_int_equal(entries_in(p), 3);
    stet_value counts;
    OK(stet_persist_statistics(p, &counts, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(counts, "entries")), 3);
    assert_int_equal(stet_value_as_int(stet_value_get(counts, "pinned")), 1);
    stet_value_release(counts);
    stet_persist_close(p);
}

static stet_value json(const char *text) {
    stet_value v;
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

static void the_default_strategy_stands_alone(void **state) {
    (void)state;
    stet_persist_key keys[] = {key_of("a", T0), key_of("a", T0 + 2), key_of("a", T0 + 1), key_of("call:f", T0)};
    const uint64_t sizes[] = {1, 1, 1, 1};
    bool remove[] = {false, false, true, true};
    stet_value limits = json("{\"max_entries_per_block\": 1}");
    OK(stet_persist_choose_default(limits, keys, sizes, 4, T0 + 3, remove, &err));
    assert_true(remove[0] && !remove[1] && remove[2]);
    assert_false(remove[3]); /* calls are not limited in number */
    stet_value_release(limits);
    limits = json("{\"max_entries_per_blok\": 1}");
    FAILS(stet_persist_choose_default(limits, keys, sizes, 4, T0, remove, &err), STET_INVALID, "member");
    stet_value_release(limits);
    limits = json("{\"max_entry_age_days\": \"1\"}");
    FAILS(stet_persist_choose_default(limits, keys, sizes, 4, T0, remove, &err), STET_INVALID, "max_entry_age_days");
    stet_value_release(limits);
    FAILS(stet_persist_choose_default(stet_value_null(), keys, sizes, 4, T0, remove, &err), STET_INVALID,
          "at least one");
    limits = json("{\"max_entries_per_block\": 1}");
    keys[0].module_hash = "short";
    FAILS(stet_persist_choose_default(limits, keys, sizes, 4, T0, remove, &err), STET_INVALID, "not a module hash");
    stet_value_release(limits);
}

static void settings_read_back(void **state) {
    (void)state;
    stet_persist *p =
        open_dir("settings",
                 "{\"defaults\": {\"auto_variables_format\": \"json\", \"compression\": \"zstd\", \"grace_days\": 3},"
                 " \"default_cleanup_strategy\": {\"max_entries_per_block\": 9}}",
                 NULL, NULL);
    stet_value all = stet_persist_settings(p), defaults = stet_value_get(all, "defaults");
    assert_string_equal(stet_value_get_string(defaults, "auto_variables_format", NULL), "json");
    assert_string_equal(stet_value_get_string(defaults, "compression", NULL), "zstd");
    assert_string_equal(stet_value_get_string(defaults, "verify", NULL), "always");
    assert_int_equal(stet_value_as_int(stet_value_get(defaults, "grace_days")), 3);
    stet_value limits = stet_value_get(all, "default_cleanup_strategy");
    assert_int_equal(stet_value_as_int(stet_value_get(limits, "max_entries_per_block")), 9);
    stet_persist_close(p);
    /* What is shown can be given: every option, with the same value. */
    char *text = stet_json_print(all, STET_JSON_CANONICAL, NULL);
    p = open_dir("settings", text, NULL, NULL);
    stet_value again = stet_persist_settings(p);
    assert_true(stet_value_equal(all, again));
    stet_value_release(again);
    stet_value_release(all);
    stet_free(text);
    stet_persist_close(p);
    stet_persist_options o = STET_PERSIST_OPTIONS_INIT;
    FAILS(stet_persist_open(&o, &p, &err), STET_INVALID, "a project or a directory");
    o.dir = "settings";
    o.config = json("{\"defaults\": {\"gracedays\": 3}}");
    FAILS(stet_persist_open(&o, &p, &err), STET_INVALID, "gracedays");
    bool created;
    OK(stet_project_init("project", &created, &err));
    OK(stet_project_open("project", &o.project, &err));
    FAILS(stet_persist_open(&o, &p, &err), STET_INVALID, "gracedays");
    stet_value_release(o.config);
    o.config = json("{\"defaults\": {\"dir_path\": \"elsewhere\"}}");
    OK(stet_persist_open(&o, &p, &err));
    stet_project_close(o.project);
    put(p, "b", T0, "1");
    assert_non_null(strstr(stet_persist_dir(p), "project/.stet/elsewhere"));
    stet_persist_close(p);
    stet_value_release(o.config);
    o = (stet_persist_options)STET_PERSIST_OPTIONS_INIT;
    o.dir = "project/.stet/elsewhere";
    o.read_only = true;
    OK(stet_persist_open(&o, &p, &err));
    assert_non_null(stet_persist_read_only(p));
    assert_int_equal(entries_in(p), 1);
    stet_persist_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_got),          cmocka_unit_test(large_contents_stream_both_ways),
        cmocka_unit_test(a_strategy_chooses_what_goes), cmocka_unit_test(the_default_strategy_stands_alone),
        cmocka_unit_test(settings_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
