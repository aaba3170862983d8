/* exec_record.c - records of calls: what ids depend on, and readers that trust nothing. */

#include "../expect.h"

#include "base/json.h"
#include "repo/record.h"

static stet_value parse(const char *text) {
    stet_value v;
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

typedef struct kept {
    size_t count;
    stet_hash last;
    char text[4096];
} kept;

static stet_status keep(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *e) {
    kept *k = ctx;
    (void)e;
    assert_true(len < sizeof k->text);
    memcpy(k->text, bytes, len);
    k->text[len] = 0;
    k->last = id;
    k->count++;
    return STET_OK;
}

static stet_hash id_of(const char *json,
                       stet_status (*id_by)(stet_value v, const stet_record_sink *sink, stet_hash *id, stet_error *e)) {
    stet_value v = parse(json);
    stet_hash id;
    OK(id_by(v, NULL, &id, &err));
    stet_value_release(v);
    return id;
}

static stet_hash datum(const char *json) {
    return id_of(json, stet_datum_id);
}

static stet_hash exact(const char *json) {
    return id_of(json, stet_datum_exact_id);
}

static stet_hash of_text(const char *record) {
    return stet_hash_of(record, strlen(record));
}

#define SAME(a, b)  assert_true(stet_hash_equal(a, b))
#define OTHER(a, b) assert_false(stet_hash_equal(a, b))

static void golden_text_of_each_type(void **state) {
    (void)state;
    kept k = {0};
    stet_record_sink sink = {keep, &k};
    stet_hash id, node, call, dag;
    stet_value v = stet_value_int(5);
    OK(stet_datum_id(v, &sink, &id, &err));
    assert_string_equal(k.text, "{\"kind\":\"int\",\"payload\":5,\"type\":\"datum\"}");
    char hex[STET_HASH_HEX];
    stet_hash_hex(id, hex);
    assert_string_equal(hex, "c282241799f990184caf001d49bea3e259c8b8b0970c152066ef569e8176ca14");
    OK(stet_node_literal(id, &sink, &node, &err));
    char want[512];
    snprintf(want, sizeof want, "{\"kind\":\"literal\",\"target\":\"%s\",\"type\":\"node\"}", hex);
    assert_string_equal(k.text, want);
    stet_hash_hex(node, hex);
    OK(stet_node_call("dml+exec://stet-exec-local/command", &node, 1, &sink, &call, &err));
    snprintf(
        want, sizeof want,
        "{\"function\":\"dml+exec://stet-exec-local/command\",\"inputs\":[\"%s\"],\"kind\":\"call\",\"type\":\"node\"}",
        hex);
    assert_string_equal(k.text, want);
    assert_true(stet_hash_equal(call, stet_hash_of(want, strlen(want))));
    stet_hash_hex(call, hex);
    OK(stet_dag_id(call, stet_value_null(), &sink, &dag, &err));
    snprintf(want, sizeof want, "{\"names\":{},\"root\":\"%s\",\"type\":\"dag\"}", hex);
    assert_string_equal(k.text, want);
}

static void ids_depend_on_content_alone(void **state) {
    (void)state;
    assert_true(stet_hash_equal(datum("{\"a\":1,\"b\":[2,\"x\"]}"), datum("{\"b\":[2,\"x\"],\"a\":1.0}")));
    assert_false(stet_hash_equal(datum("[1,2]"), datum("[2,1]")));
    assert_false(stet_hash_equal(datum("1"), datum("\"1\"")));
    assert_false(stet_hash_equal(datum("[]"), datum("{}")));
    stet_hash a = datum("1"), b = datum("2"), n[2], one, two;
    OK(stet_node_literal(a, NULL, &n[0], &err));
    OK(stet_node_literal(b, NULL, &n[1], &err));
    OK(stet_node_call("x://f", n, 2, NULL, &one, &err));
    OK(stet_node_call("x://g", n, 2, NULL, &two, &err));
    assert_false(stet_hash_equal(one, two));
    stet_hash swapped[2] = {n[1], n[0]};
    OK(stet_node_call("x://f", swapped, 2, NULL, &two, &err));
    assert_false(stet_hash_equal(one, two));
}

static stet_hash call_with(stet_value code, const stet_hash *beside) {
    stet_hash id;
    stet_node_more more = {.code = code, .beside = beside};
    OK(stet_node_call_with("x://f", NULL, 0, &more, NULL, &id, &err));
    stet_value_release(code);
    return id;
}

static void code_and_what_stands_beside_are_part_of_a_call(void **state) {
    (void)state;
    stet_hash a = datum("1"), b = datum("2"), plain, id;
    stet_value one = stet_value_object(), two = stet_value_object(), moved = stet_value_object();
    stet_value_put(&one, "lib/x.py", stet_hash_text(a));
    stet_value_put(&two, "lib/x.py", stet_hash_text(b));
    stet_value_put(&moved, "lib/y.py", stet_hash_text(a));
    OK(stet_node_call("x://f", NULL, 0, NULL, &plain, &err));
    stet_hash all[] = {plain,
                       call_with(one, NULL),
                       call_with(two, NULL),
                       call_with(moved, NULL),
                       call_with(stet_value_null(), &a),
                       call_with(stet_value_null(), &b)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(stet_hash_equal(all[i], all[k]));
    /* Nothing beside the inputs is the call as it always was. */
    assert_true(stet_hash_equal(call_with(stet_value_object(), NULL), plain));
    static const char *const paths[] = {"", "/a", "a/", "a//b", ".", "..", "a/.", "./a", "a/..", "../a", "a/../b"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        stet_node_more more = {.code = stet_value_object()};
        stet_value_put(&more.code, paths[i], stet_hash_text(a));
        FAILS(stet_node_call_with("x://f", NULL, 0, &more, NULL, &id, &err), STET_INVALID, "relative paths");
        stet_value_release(more.code);
    }
    stet_node_more more = {.code = stet_value_object()};
    stet_value_put(&more.code, "x", stet_value_string("y"));
    FAILS(stet_node_call_with("x://f", NULL, 0, &more, NULL, &id, &err), STET_INVALID, "relative paths");
    stet_value_put(&more.code, "x", stet_hash_text(a));
    FAILS(stet_node_call_with("dml://list/of", NULL, 0, &more, NULL, &id, &err), STET_INVALID, "a call has");
    stet_value_release(more.code);
}

static void children_come_before_their_containers(void **state) {
    (void)state;
    kept k = {0};
    stet_record_sink sink = {keep, &k};
    stet_hash id;
    stet_value v = parse("{\"a\":[1,2],\"b\":null}");
    OK(stet_datum_id(v, &sink, &id, &err));
    stet_value_release(v);
    assert_int_equal(k.count, 7); /* 1, 2, the list, null, two keys, the map */
    assert_true(stet_hash_equal(k.last, id));
}

static void depth_needs_no_stack(void **state) {
    (void)state;
    stet_value v = stet_value_array();
    for (int i = 0; i < 200000; i++) {
        stet_value outer = stet_value_array();
        stet_value_push(&outer, v);
        v = outer;
    }
    stet_hash id;
    OK(stet_datum_id(v, NULL, &id, &err));
    stet_value_release(v);
}

/* Written down once: a change of any of them makes every stored call a stranger. */
static void known_digests(void **state) {
    (void)state;
    static const struct {
        const char *json, *id;
    } known[] = {
        {"null", "57c749053100edea46992a74b42f3eb1d5b89dac73d80dd07a023fce46af9ca4"},
        {"true", "b6585b6d30068944e07b2c6e1e68e8f9df9f97f2eb5c9f7085ebd39c34a59f0a"},
        {"-7", "480f32d0970d30970be01925ffa047797df0e1094b0ae676b4a3f69b528d51de"},
        {"0.5", "fabfe467be27a7b803fa26828d1d54a4bbad7844f2bce396aa7329acadf79485"},
        {"1e300", "df57657815390de381a78d360de7e06f1665fffe2f1c70486e9c9a0a8c4c0b29"},
        {"\"\"", "c9030d96fe02e30919608dde503070a429ae019c7ff9953c72ca3e79b9005176"},
        {"\"caf\\u00e9\"", "4c8d2f5b62bb72010da8e1987c4f4bd2ee2ff8c22ee0019c97135ccd80527c6d"},
        {"\"cafe\\u0301\"", "4c8d2f5b62bb72010da8e1987c4f4bd2ee2ff8c22ee0019c97135ccd80527c6d"},
        {"[1,[],\"x\"]", "b24c22fd086958f5b08109a02c0df0781074c49e70fea9ed8816873fd61cd8d9"},
        {"{\"b\":1,\"a\":{\"e\\u0301\":null}}", "861d5412d7344b130f4dabf44c64280c9718b780368ff9d2a74e493561ec411c"},
    };
    char hex[STET_HASH_HEX];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        stet_hash_hex(datum(known[i].json), hex);
        assert_string_equal(hex, known[i].id);
    }
    stet_hash_hex(exact("\"cafe\\u0301\""), hex);
    assert_string_equal(hex, "d8f224062b7bb2c488dd9536b5751217124959fcaff6ea9bd736891a450f1a61");
    stet_hash node, call;
    OK(stet_node_literal(datum("{\"argv\":[\"true\"]}"), NULL, &node, &err));
    stet_hash_hex(node, hex);
    assert_string_equal(hex, "146cefb9aee4655d61fd48997a3e708becc25525a67458cfca4cba2ab7000dd5");
    OK(stet_node_call("dml+exec://stet-exec-local/command", &node, 1, NULL, &call, &err));
    stet_hash_hex(call, hex);
    assert_string_equal(hex, "dd4d4ea0ff105ae7b297f9b6d7a7275cbde01d11b28a4f18279671c305fcda47");
}

static void one_text_has_one_id(void **state) {
    (void)state;
    SAME(datum("\"e\\u0301\""), datum("\"\\u00e9\""));
    SAME(datum("\"e\\u0301\""), of_text("{\"kind\":\"string\",\"payload\":\"\u00e9\",\"type\":\"datum\"}"));
    SAME(datum("{\"e\\u0301\":[\"\\u212b\"]}"), datum("{\"\\u00e9\":[\"A\\u030a\"]}"));
    OTHER(datum("\"e\""), datum("\"\\u00e9\""));
    OTHER(datum("\"\\ufb01\""), datum("\"fi\"")); /* another text, though it looks alike */
    stet_value v = parse("{\"e\\u0301\":1,\"\\u00e9\":2}");
    stet_hash id, one, two;
    FAILS(stet_datum_id(v, NULL, &id, &err), STET_INVALID, "the same text");
    OK(stet_datum_exact_id(v, NULL, &id, &err));
    stet_value_release(v);
    v = parse("{\"e\\u0301\":null,\"\\u00e9\":null}");
    FAILS(stet_dag_id(id, v, NULL, &id, &err), STET_INVALID, "the same text");
    stet_value_release(v);
    v = stet_value_array();
    FAILS(stet_dag_id(id, v, NULL, &id, &err), STET_INVALID, "an object");
    stet_value_release(v);
    stet_value a = stet_value_object(), b = stet_value_object();
    stet_value_put(&a, "e\u0301", stet_hash_text(id));
    stet_value_put(&b, "\u00e9", stet_hash_text(id));
    OK(stet_dag_id(id, a, NULL, &one, &err));
    OK(stet_dag_id(id, b, NULL, &two, &err));
    SAME(one, two);
    stet_value_release(a);
    stet_value_release(b);
}

static void exact_texts_are_never_one(void **state) {
    (void)state;
    SAME(exact("[\"plain\",{\"\\u00e9\":1}]"), datum("[\"plain\",{\"\\u00e9\":1}]"));
    OTHER(exact("\"e\\u0301\""), exact("\"\\u00e9\""));
    SAME(exact("\"e\\u0301\""), of_text("{\"kind\":\"bytes\",\"payload\":\"ZcyB\",\"type\":\"datum\"}"));
    OTHER(exact("\"e\\u0301\""), exact("\"ZcyB\""));
    OTHER(exact("{\"e\\u0301\":1}"), exact("{\"\\u00e9\":1}"));
}

static void one_uri_has_one_id(void **state) {
    (void)state;
    stet_hash a, b, n = datum("1");
    OK(stet_datum_uri_id("HTTP://h/%7ee\u0301", 15, NULL, &a, &err));
    SAME(a, of_text("{\"kind\":\"uri\",\"payload\":\"http://h/~\u00e9\",\"type\":\"datum\"}"));
    FAILS(stet_datum_uri_id("DML:x", 5, NULL, &a, &err), STET_INVALID, "dml:");
    FAILS(stet_datum_uri_id("x:\xFF", 3, NULL, &a, &err), STET_INVALID, "UTF-8");
    OK(stet_node_call("X://f/caf%65\u0301", &n, 1, NULL, &a, &err));
    OK(stet_node_call("x://f/caf\u00e9", &n, 1, NULL, &b, &err));
    SAME(a, b);
    OK(stet_node_call("x://F/caf\u00e9", &n, 1, NULL, &b, &err)); /* the name of a program */
    OTHER(a, b);
    FAILS(stet_node_call("x://f/\xC3", &n, 1, NULL, &b, &err), STET_INVALID, "UTF-8");
    OK(stet_node_call("DML://list/get", &n, 1, NULL, &a, &err));
    OK(stet_node_call("dml://list/get", &n, 1, NULL, &b, &err));
    SAME(a, b); /* both builtins */
}

static void numbers(void **state) {
    (void)state;
    SAME(datum("1"), datum("1.0"));
    SAME(datum("0"), datum("-0.0"));
    SAME(datum("100"), datum("1e2"));
    SAME(datum("9007199254740992"), datum("9007199254740992.0"));
    OTHER(datum("1"), datum("1.5"));
    OTHER(datum("1152921504606846976"), datum("1152921504606846976.0")); /* beyond 2^53 a double is not exact */
    SAME(datum("0.5"), of_text("{\"kind\":\"double\",\"payload\":0.5,\"type\":\"datum\"}"));
    kept k = {0};
    stet_record_sink sink = {keep, &k};
    static const char *const doubles[] = {"1152921504606846976.0", "1e300", "-5e-324", "0.1"};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) { /* each is read back as what it was */
        stet_value v = parse(doubles[i]), back;
        stet_hash id;
        OK(stet_datum_id(v, &sink, &id, &err));
        OK(stet_record_read(id, k.text, strlen(k.text), STET_RECORD_DATUM, &back, &err));
        assert_int_equal(stet_value_compare(stet_value_get(back, "payload"), v), 0);
        stet_value_release(back);
        stet_value_release(v);
    }
}

static void reading_verifies(void **state) {
    (void)state;
    const char *text = "{\"kind\":\"int\",\"payload\":5,\"type\":\"datum\"}";
    stet_value v;
    stet_hash id = stet_hash_of(text, strlen(text));
    OK(stet_record_read(id, text, strlen(text), STET_RECORD_DATUM, &v, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(v, "payload")), 5);
    stet_value_release(v);
    FAILS(stet_record_read(id, text, strlen(text), STET_RECORD_NODE, &v, &err), STET_CORRUPT, "another type");
    FAILS(stet_record_read(id, text, strlen(text) - 1, STET_RECORD_DATUM, &v, &err), STET_CORRUPT, "bytes");
    static const struct {
        stet_record_type type;
        const char *text, *message;
    } bad[] = {
        {STET_RECORD_DATUM, "{\"kind\":\"int\", \"payload\":5,\"type\":\"datum\"}", "canonical"},
        {STET_RECORD_DATUM, "{\"kind\":\"int\",\"payload\":\"5\",\"type\":\"datum\"}", "integer"},
        {STET_RECORD_DATUM, "{\"kind\":\"int\",\"payload\":5,\"type\":\"datum\",\"x\":1}", "nothing else"},
        {STET_RECORD_DATUM, "{\"kind\":\"uri\",\"payload\":\"dml:x\",\"type\":\"datum\"}", "dml:"},
        {STET_RECORD_DATUM, "{\"kind\":\"bytes\",\"payload\":\"=\",\"type\":\"datum\"}", "base64url"},
        {STET_RECORD_DATUM, "{\"kind\":\"list\",\"payload\":[\"ab\"],\"type\":\"datum\"}", "ids"},
        {STET_RECORD_DATUM, "{\"kind\":\"double\",\"payload\":1,\"type\":\"datum\"}", "no integer"},
        {STET_RECORD_DATUM, "{\"kind\":\"int\",\"payload\":1.5,\"type\":\"datum\"}", "integer"},
        {STET_RECORD_DATUM, "{\"kind\":\"string\",\"payload\":\"e\u0301\",\"type\":\"datum\"}", "normal form"},
        {STET_RECORD_DATUM, "{\"kind\":\"string\",\"payload\":\"\xFF\",\"type\":\"datum\"}", "not JSON"},
        {STET_RECORD_DATUM, "{\"kind\":\"uri\",\"payload\":\"x:%7e\",\"type\":\"datum\"}", "canonical"},
        {STET_RECORD_DATUM, "{\"kind\":\"uri\",\"payload\":\"X:y\",\"type\":\"datum\"}", "canonical"},
        {STET_RECORD_DATUM, "{\"kind\":\"bytes\",\"payload\":\"ZZ\",\"type\":\"datum\"}", "base64url"},
        {STET_RECORD_NODE, "{\"function\":\"x:e\u0301\",\"inputs\":[],\"kind\":\"call\",\"type\":\"node\"}",
         "canonical"},
        {STET_RECORD_DATUM, "{\"kind\":\"frob\",\"payload\":1,\"type\":\"datum\"}", "unknown kind"},
        {STET_RECORD_NODE, "{\"function\":\"dml://list/get\",\"inputs\":[],\"kind\":\"call\",\"type\":\"node\"}",
         "builtin"},
        {STET_RECORD_NODE, "{\"function\":\"no uri\",\"inputs\":[],\"kind\":\"call\",\"type\":\"node\"}", "URI"},
        {STET_RECORD_DAG, "{\"names\":{},\"root\":1,\"type\":\"dag\"}", "root"},
        {STET_RECORD_EXEC, "{\"type\":\"exec\"}", "exec"},
        {STET_RECORD_DATUM, "{", "not JSON"},
        {STET_RECORD_DATUM, "[]", "another type"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(stet_record_read(stet_hash_of(bad[i].text, strlen(bad[i].text)), bad[i].text, strlen(bad[i].text),
                               bad[i].type, &v, &err),
              STET_CORRUPT, bad[i].message);
}

static void sets_and_maps_are_sorted(void **state) {
    (void)state;
    char a[STET_HASH_HEX], b[STET_HASH_HEX], text[512];
    stet_hash_hex(datum("1"), a);
    stet_hash_hex(datum("2"), b);
    const char *low = strcmp(a, b) < 0 ? a : b, *high = low == a ? b : a;
    stet_value v;
    stet_hash id;
    snprintf(text, sizeof text, "{\"kind\":\"set\",\"payload\":[\"%s\",\"%s\"],\"type\":\"datum\"}", low, high);
    v = parse(text);
    OK(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err));
    stet_value_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"set\",\"payload\":[\"%s\",\"%s\"],\"type\":\"datum\"}", high, low);
    v = parse(text);
    FAILS(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err), STET_INVALID, "sorted");
    stet_value_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"map\",\"payload\":[[\"%s\",\"%s\"],[\"%s\",\"%s\"]],\"type\":\"datum\"}",
             low, a, low, b);
    v = parse(text);
    FAILS(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err), STET_INVALID, "sorted");
    stet_value_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"set\",\"payload\":[\"%s\",\"%s\"],\"type\":\"datum\"}", low, low);
    v = parse(text);
    FAILS(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err), STET_INVALID, "once");
    stet_value_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"map\",\"payload\":[[\"%s\",\"%s\"],[\"%s\",\"%s\"]],\"type\":\"datum\"}",
             high, a, low, b);
    v = parse(text);
    FAILS(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err), STET_INVALID, "sorted");
    stet_value_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"map\",\"payload\":[[\"%s\",\"%s\"],[\"%s\",\"%s\"]],\"type\":\"datum\"}",
             low, a, high, a);
    v = parse(text);
    OK(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err));
    stet_value_release(v);
}

static void an_outcome(void **state) {
    (void)state;
    char hex[STET_HASH_HEX], text[512];
    stet_hash id;
    stet_hash_hex(datum("1"), hex);
    snprintf(text, sizeof text,
             "{\"attempt\":1,\"node\":\"%s\",\"result\":\"%s\",\"status\":\"ok\",\"timings\":{\"elapsedMs\":3},"
             "\"type\":\"exec\"}",
             hex, hex);
    stet_value v = parse(text), back;
    OK(stet_record_make(v, STET_RECORD_EXEC, NULL, &id, &err));
    OK(stet_record_read(id, text, strlen(text), STET_RECORD_EXEC, &back, &err));
    stet_value_release(back);
    stet_value_put(&v, "status", stet_value_string("maybe"));
    FAILS(stet_record_make(v, STET_RECORD_EXEC, NULL, &id, &err), STET_INVALID, "ok or error");
    stet_value_release(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_text_of_each_type),
        cmocka_unit_test(ids_depend_on_content_alone),
        cmocka_unit_test(code_and_what_stands_beside_are_part_of_a_call),
        cmocka_unit_test(children_come_before_their_containers),
        cmocka_unit_test(depth_needs_no_stack),
        cmocka_unit_test(known_digests),
        cmocka_unit_test(one_text_has_one_id),
        cmocka_unit_test(exact_texts_are_never_one),
        cmocka_unit_test(one_uri_has_one_id),
        cmocka_unit_test(numbers),
        cmocka_unit_test(reading_verifies),
        cmocka_unit_test(sets_and_maps_are_sorted),
        cmocka_unit_test(an_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
