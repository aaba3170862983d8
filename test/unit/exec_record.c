/* Records of calls: ids that depend on what they should and on nothing else, and readers that take nothing on trust. */
#include "../expect.h"

#include "base/json.h"
#include "exec/record.h"

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

static stet_hash datum(const char *json) {
    stet_value v = parse(json);
    stet_hash id;
    OK(stet_datum_id(v, NULL, &id, &err));
    stet_release(v);
    return id;
}

static void golden_text_of_each_type(void **state) {
    (void)state;
    kept k = {0};
    stet_record_sink sink = {keep, &k};
    stet_hash id, node, call, dag;
    stet_value v = stet_int(5);
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
    OK(stet_dag_id(call, stet_null(), &sink, &dag, &err));
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

static void children_come_before_their_containers(void **state) {
    (void)state;
    kept k = {0};
    stet_record_sink sink = {keep, &k};
    stet_hash id;
    stet_value v = parse("{\"a\":[1,2],\"b\":null}");
    OK(stet_datum_id(v, &sink, &id, &err));
    stet_release(v);
    assert_int_equal(k.count, 7); /* 1, 2, the list, null, two keys, the map */
    assert_true(stet_hash_equal(k.last, id));
}

static void depth_needs_no_stack(void **state) {
    (void)state;
    stet_value v = stet_array();
    for (int i = 0; i < 200000; i++) {
        stet_value outer = stet_array();
        stet_push(&outer, v);
        v = outer;
    }
    stet_hash id;
    OK(stet_datum_id(v, NULL, &id, &err));
    stet_release(v);
}

static void reading_verifies(void **state) {
    (void)state;
    const char *text = "{\"kind\":\"int\",\"payload\":5,\"type\":\"datum\"}";
    stet_value v;
    stet_hash id = stet_hash_of(text, strlen(text));
    OK(stet_record_read(id, text, strlen(text), STET_RECORD_DATUM, &v, &err));
    assert_int_equal(stet_as_int(stet_get(v, "payload")), 5);
    stet_release(v);
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
    stet_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"set\",\"payload\":[\"%s\",\"%s\"],\"type\":\"datum\"}", high, low);
    v = parse(text);
    FAILS(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err), STET_INVALID, "sorted");
    stet_release(v);
    snprintf(text, sizeof text, "{\"kind\":\"map\",\"payload\":[[\"%s\",\"%s\"],[\"%s\",\"%s\"]],\"type\":\"datum\"}",
             low, a, low, b);
    v = parse(text);
    FAILS(stet_record_make(v, STET_RECORD_DATUM, NULL, &id, &err), STET_INVALID, "sorted");
    stet_release(v);
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
    stet_release(back);
    stet_put(&v, "status", stet_string("maybe"));
    FAILS(stet_record_make(v, STET_RECORD_EXEC, NULL, &id, &err), STET_INVALID, "ok or error");
    stet_release(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_text_of_each_type),
        cmocka_unit_test(ids_depend_on_content_alone),
        cmocka_unit_test(children_come_before_their_containers),
        cmocka_unit_test(depth_needs_no_stack),
        cmocka_unit_test(reading_verifies),
        cmocka_unit_test(sets_and_maps_are_sorted),
        cmocka_unit_test(an_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
