/* memory_patch.c - the nine patch operations: what they do, what they refuse, all or none, and their stored form. */

#include "../expect.h"

#include "memory/internal.h"
#include "memory/record.h"

static stet_value json(const char *text) {
    stet_value v = stet_value_null();
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

/* Single quotes stand for double ones, so that rows can be read. */
static stet_value quoted(const char *text) {
    char *copy = stet_strdup(text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    stet_value v = json(copy);
    free(copy);
    return v;
}

typedef struct row {
    const char *before, *ops;
    const char *after;  /* or NULL: refused */
    stet_status status; /* then */
} row;

static const row rows[] = {
    /* replace */
    {"{'a':1}", "[{'op':'replace','path':'/a','value':2}]", "{'a':2}", 0},
    {"{}", "[{'op':'replace','path':'/a/b/c','value':2}]", "{'a':{'b':{'c':2}}}", 0},
    {"{'a':[1,2]}", "[{'op':'replace','path':'/a/1','value':9}]", "{'a':[1,9]}", 0},
    {"{'a':[1,2]}", "[{'op':'replace','path':'/a/2','value':9}]", "{'a':[1,2,9]}", 0},
    {"{'a':[1,2]}", "[{'op':'replace','path':'/a/3','value':9}]", NULL, STET_NOT_FOUND},
    {"{'a':[1,2]}", "[{'op':'replace','path':'/a/x','value':9}]", NULL, STET_INVALID},
    {"{'a':[1,2]}", "[{'op':'replace','path':'/a/01','value':9}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'replace','path':'/a/b','value':2}]", NULL, STET_INVALID},
    {"{'a':null}", "[{'op':'replace','path':'/a/b','value':2}]", NULL, STET_INVALID},
    {"{'a':'text'}", "[{'op':'replace','path':'/a/b/c','value':2}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]", "{'b':2}", 0},
    {"{'a':1}", "[{'op':'replace','path':'','value':3}]", NULL, STET_INVALID},
    {"{'a':{'':{'/~':1}}}", "[{'op':'replace','path':'/a//~1~0','value':2}]", "{'a':{'':{'/~':2}}}", 0},
    {"{'a':{'b':1}}", "[{'op':'replace','path':['a','b'],'value':2}]", "{'a':{'b':2}}", 0},
    /* add */
    {"{'a':[2,3]}", "[{'op':'add','path':'/a/0','value':1}]", "{'a':[1,2,3]}", 0},
    {"{'a':[2,3]}", "[{'op':'add','path':'/a/2','value':4}]", "{'a':[2,3,4]}", 0},
    {"{'a':[2,3]}", "[{'op':'add','path':'/a/-','value':4}]", "{'a':[2,3,4]}", 0},
    {"{'a':[2,3]}", "[{'op':'add','path':'/a/3','value':4}]", NULL, STET_NOT_FOUND},
    {"{'a':1}", "[{'op':'add','path':'/b/c','value':4}]", "{'a':1,'b':{'c':4}}", 0},
    {"{'a':[]}", "[{'op':'add','path':'/a/0/x','value':4}]", NULL, STET_NOT_FOUND},
    /* remove */
    {"{'a':1,'b':2}", "[{'op':'remove','path':'/a'}]", "{'b':2}", 0},
    {"{'a':[1,2,3]}", "[{'op':'remove','path':'/a/1'}]", "{'a':[1,3]}", 0},
    {"{'a':1}", "[{'op':'remove','path':'/b'}]", NULL, STET_NOT_FOUND},
    {"{'a':1}", "[{'op':'remove','path':'/b/c'}]", NULL, STET_NOT_FOUND},
    {"{'a':[1]}", "[{'op':'remove','path':'/a/-'}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'remove','path':''}]", NULL, STET_INVALID},
    /* move */
    {"{'a':{'x':1},'b':{}}", "[{'op':'move','from':'/a/x','path':'/b/y'}]", "{'a':{},'b':{'y':1}}", 0},
    {"{'a':[1,2,3]}", "[{'op':'move','from':'/a/0','path':'/a/2'}]", "{'a':[2,3,1]}", 0},
    {"{'a':{'x':1}}", "[{'op':'move','from':'/a','path':'/a/x/y'}]", NULL, STET_INVALID},
    {"{'a':{'x':1}}", "[{'op':'move','from':'/a','path':'/a'}]", "{'a':{'x':1}}", 0},
    {"{'a':1}", "[{'op':'move','from':'/b','path':'/c'}]", NULL, STET_NOT_FOUND},
    {"{'a':1}", "[{'op':'move','from':'/a','path':'/b/c/d'}]", "{'b':{'c':{'d':1}}}", 0},
    {"{'a':1,'s':2}", "[{'op':'move','from':'/a','path':'/s/x'}]", NULL, STET_INVALID},
    /* splice */
    {"{'a':[1,2,3,4]}", "[{'op':'splice','path':'/a','index':1,'remove':2,'add':[9]}]", "{'a':[1,9,4]}", 0},
    {"{'a':[1,2]}", "[{'op':'splice','path':'/a','index':2,'add':[3,4]}]", "{'a':[1,2,3,4]}", 0},
    {"{'a':[1,2]}", "[{'op':'splice','path':'/a','remove':99}]", "{'a':[]}", 0},
    {"{'a':[1,2]}", "[{'op':'splice','path':'/a','index':3}]", NULL, STET_NOT_FOUND},
    {"{'a':[1,2]}", "[{'op':'splice','path':'/a','index':-1}]", NULL, STET_INVALID},
    {"{'a':{}}", "[{'op':'splice','path':'/a','add':[1]}]", NULL, STET_INVALID},
    {"{}", "[{'op':'splice','path':'/a','add':[1]}]", NULL, STET_NOT_FOUND},
    /* append */
    {"{'a':[1]}", "[{'op':'append','path':'/a','values':[2,3]}]", "{'a':[1,2,3]}", 0},
    {"{}", "[{'op':'append','path':'/a/b','values':[2]}]", "{'a':{'b':[2]}}", 0},
    {"{'a':1}", "[{'op':'append','path':'/a','values':[2]}]", NULL, STET_INVALID},
    {"{'a':[1]}", "[{'op':'append','path':'/a','values':2}]", NULL, STET_INVALID},
    /* add-unique */
    {"{'a':[1]}", "[{'op':'add-unique','path':'/a','value':{'x':1}}]", "{'a':[1,{'x':1}]}", 0},
    {"{'a':[1,{'x':1}]}", "[{'op':'add-unique','path':'/a','value':{'x':1}}]", "{'a':[1,{'x':1}]}", 0},
    {"{'a':[1]}", "[{'op':'add-unique','path':'/a','value':1.0}]", "{'a':[1]}", 0},
    {"{}", "[{'op':'add-unique','path':'/a','value':1}]", "{'a':[1]}", 0},
    /* remove-by-value */
    {"{'a':[1,2,1,3]}", "[{'op':'remove-by-value','path':'/a','value':1}]", "{'a':[2,3]}", 0},
    {"{'a':[1]}", "[{'op':'remove-by-value','path':'/a','value':7}]", "{'a':[1]}", 0},
    {"{}", "[{'op':'remove-by-value','path':'/a','value':7}]", NULL, STET_NOT_FOUND},
    /* increment */
    {"{'n':1}", "[{'op':'increment','path':'/n'}]", "{'n':2}", 0},
    {"{'n':1}", "[{'op':'increment','path':'/n','by':-3}]", "{'n':-2}", 0},
    {"{'n':1}", "[{'op':'increment','path':'/n','by':0.5}]", "{'n':1.5}", 0},
    {"{}", "[{'op':'increment','path':'/a/n','by':5}]", "{'a':{'n':5}}", 0},
    {"{'n':9223372036854775807}", "[{'op':'increment','path':'/n'}]", NULL, STET_LIMIT},
    {"{'n':1e308}", "[{'op':'increment','path':'/n','by':1e308}]", NULL, STET_LIMIT},
    {"{'n':'x'}", "[{'op':'increment','path':'/n'}]", NULL, STET_INVALID},
    {"{'n':1}", "[{'op':'increment','path':'/n','by':'x'}]", NULL, STET_INVALID},
    /* lists, and what is no list of operations */
    {"{'a':1}", "[]", "{'a':1}", 0},
    {"{'a':1}", "[{'op':'remove','path':'/a'},{'op':'remove','path':'/a'}]", NULL, STET_NOT_FOUND},
    {"{'a':[1,2]}",
     "[{'op':'add','path':'/a/0','value':0},{'op':'move','from':'/a/2','path':'/none/0/1'},"
     "{'op':'remove','path':'/b'}]",
     NULL, STET_NOT_FOUND},
    {"{'a':1}", "{'op':'remove'}", NULL, STET_INVALID},
    {"{'a':1}", "[3]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'copy','path':'/a'}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'path':'/a'}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'remove'}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'remove','path':'a'}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'remove','path':'/a','value':1}]", NULL, STET_INVALID},
    {"{'a':1}", "[{'op':'replace','path':'/a'}]", NULL, STET_INVALID},
};

static void every_operation(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stet_value before = quoted(rows[i].before), list = quoted(rows[i].ops), doc = stet_value_retain(before);
        stet_arena arena = STET_ARENA_INIT;
        stet_patches ops = {0};
        stet_status st = stet_patches_of_value(list, true, &arena, &ops, &err);
        if (st == STET_OK)
            st = stet_patches_apply(ops.at, ops.len, &doc, &err);
        if (st != rows[i].status)
            fail_msg("row %zu, %s: %s %s", i, rows[i].ops, stet_status_name(st), err.message);
        stet_value want = quoted(rows[i].after ? rows[i].after : rows[i].before);
        if (!stet_value_equal(doc, want)) {
            char *got = stet_json_print(doc, STET_JSON_CANONICAL, NULL);
            fail_msg("row %zu, %s: %s", i, rows[i].ops, got);
        }
        if (st == STET_OK) { /* the stored form does the same, and prints as the same operations */
            stet_buf bytes = STET_BUF(0);
            stet_patches again = {0};
            stet_value other = stet_value_retain(before);
            stet_patches_encode(&bytes, ops.at, ops.len);
            assert_true(stet_patches_decode(bytes.data, bytes.len, &again));
            OK(stet_patches_apply(again.at, again.len, &other, &err));
            assert_true(stet_value_equal(other, want));
            stet_value one = stet_patches_to_value(ops.at, ops.len), two = stet_patches_to_value(again.at, again.len);
            assert_true(stet_value_equal(one, two));
            for (size_t cut = 0; cut < bytes.len; cut++) { /* damaged bytes are refused or decode, never crash */
                stet_patches part = {0};
                stet_patches_decode(bytes.data, cut, &part);
                stet_patches_release(&part);
                bytes.data[cut] ^= 0x41;
                stet_patches_decode(bytes.data, bytes.len, &part);
                stet_patches_release(&part);
                bytes.data[cut] ^= 0x41;
            }
            stet_value_release(one);
            stet_value_release(two);
            stet_value_release(other);
            stet_patches_release(&again);
            stet_buf_release(&bytes);
        }
        stet_error_clear(&err);
        stet_value same = quoted(rows[i].before); /* whoever held the old value still sees it */
        assert_true(stet_value_equal(before, same));
        stet_value_release(same);
        stet_value_release(want);
        stet_value_release(doc);
        stet_value_release(before);
        stet_value_release(list);
        stet_patches_release(&ops);
        stet_arena_release(&arena);
    }
}

static void depth_is_bounded(void **state) {
    (void)state;
    stet_value deep = stet_value_array();
    for (int i = 0; i < 400; i++) {
        stet_value outer = stet_value_array();
        stet_value_push(&outer, deep);
        deep = outer;
    }
    stet_path p = STET_PATH_INIT;
    for (int i = 0; i < 200; i++)
        stet_path_push(&p, "k");
    stet_patch op = {.kind = STET_PATCH_ADD, .path = stet_path_ref(&p), .value = deep};
    stet_value doc = stet_value_object();
    FAILS(stet_patches_apply(&op, 1, &doc, &err), STET_LIMIT, "511");
    for (int i = 0; i < 100; i++)
        stet_path_pop(&p);
    op.path = stet_path_ref(&p);
    OK(stet_patches_apply(&op, 1, &doc, &err));
    assert_int_equal(stet_value_depth(doc), 100 + 401);
    /* and by moving */
    stet_path from = STET_PATH_INIT, to = STET_PATH_INIT;
    stet_path_set(&from, stet_path_ref(&p));
    for (int i = 0; i < 150; i++)
        stet_path_push(&to, "t");
    stet_patch move = {.kind = STET_PATCH_MOVE, .from = stet_path_ref(&from), .path = stet_path_ref(&to)};
    FAILS(stet_patches_apply(&move, 1, &doc, &err), STET_LIMIT, "511");
    stet_path_release(&from);
    stet_path_release(&to);
    stet_path_release(&p);
    stet_value_release(doc);
    stet_value_release(deep);
}

static void records_survive_and_damage_is_seen(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    stet_arena arena = STET_ARENA_INIT;
    stet_path p = STET_PATH_INIT;
    stet_change leaves[40];
    for (int i = 0; i < 40; i++) {
        stet_path_set(&p, STET_PATH_ROOT);
        stet_path_push(&p, "value");
        stet_path_push_index(&p, (size_t)(10 + i));
        stet_pathref r = stet_path_ref(&p);
        leaves[i] =
            (stet_change){{stet_arena_strndup(&arena, r.bytes, r.len), r.len}, i % 2 ? STET_KEYSET : STET_VALUE};
    }
    int64_t last = 0;
    char body[] = "0123456789abcde";
    stet_record_start(&b);
    stet_record_add(&b, &last, 3, STET_REVISION_SET, 0, body, 10, leaves, 1);
    stet_record_add(&b, &last, 1000000, STET_REVISION_PATCH, 77, body + 10, 5, leaves, 40);
    stet_record_add(&b, &last, ((int64_t)1 << 39), STET_REVISION_DELETE, 1, "", 0, leaves, 2);
    stet_record_rev rev;
    bool damaged;
    assert_true(stet_record_find(b.data, b.len, 1000000, &rev, &damaged));
    assert_int_equal(rev.back, 77);
    assert_int_equal(rev.body_at, 10);
    assert_int_equal(rev.body_len, 5);
    assert_ptr_equal(stet_record_body(&rev, body, 15), body + 10);
    assert_null(stet_record_body(&rev, body, 14)); /* cut */
    body[12] ^= 4;
    assert_null(stet_record_body(&rev, body, 15)); /* a flipped bit */
    const stet_change *at = stet_record_leaves(&rev, &arena);
    assert_non_null(at);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(stet_path_compare(at[i].path, leaves[i].path), 0);
        assert_int_equal(at[i].kind, leaves[i].kind);
    }
    assert_false(stet_record_find(b.data, b.len, 4, &rev, &damaged));
    assert_false(damaged);
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            stet_record r;
            b.data[i] = (char)(b.data[i] ^ (1 << bit));
            stet_record_begin(&r, b.data, b.len);
            while (stet_record_next(&r, &rev))
                stet_record_leaves(&rev, &arena);
            stet_record_begin(&r, b.data, i);
            while (stet_record_next(&r, &rev))
                stet_record_leaves(&rev, &arena);
            b.data[i] = (char)(b.data[i] ^ (1 << bit));
        }
    stet_path_release(&p);
    stet_arena_release(&arena);
    stet_buf_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(records_survive_and_damage_is_seen),
    };
    return cmocka_run_group_tests_name("memory patches", tests, NULL, NULL);
}
