/* schema.c - JSON Schemas: every keyword, what the errors say, what is refused, and the limits. */

#include "base/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static stet_value parse(const char *text) {
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    if (stet_json_parse(text, strlen(text), &v, &err) != STET_OK)
        fail_msg("%s: %s", text, err.message);
    return v;
}

/* `message` NULL: it matches. */
static void check(const char *schema_text, const char *instance_text, const char *message) {
    stet_value schema = parse(schema_text), instance = parse(instance_text);
    stet_error err = STET_ERROR_INIT;
    if (stet_schema_valid(schema, &err) != STET_OK)
        fail_msg("%s: %s", schema_text, err.message);
    stet_status status = stet_schema_check(schema, instance, &err);
    assert_int_equal(stet_schema_check(schema, instance, NULL), status);
    if (!message) {
        if (status != STET_OK)
            fail_msg("%s with %s: %s", schema_text, instance_text, err.message);
    } else {
        if (status != STET_INVALID || strcmp(err.message, message) != 0)
            fail_msg("%s with %s: \"%s\", expected \"%s\"", schema_text, instance_text, err.message, message);
        assert_int_equal(stet_value_type(stet_value_get(err.details, "pointer")), STET_TYPE_STRING);
        assert_int_equal(stet_value_type(stet_value_get(err.details, "keyword")), STET_TYPE_STRING);
    }
    stet_error_clear(&err);
    stet_value_release(schema);
    stet_value_release(instance);
}

static void types(void **state) {
    (void)state;
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    static const struct {
        const char *instance;
        bool is[7];
    } rows[] = {{"null", {1, 0, 0, 0, 0, 0, 0}}, {"true", {0, 1, 0, 0, 0, 0, 0}}, {"7", {0, 0, 1, 1, 0, 0, 0}},
                {"7.0", {0, 0, 1, 1, 0, 0, 0}},  {"7.5", {0, 0, 0, 1, 0, 0, 0}},  {"1e300", {0, 0, 1, 1, 0, 0, 0}},
                {"\"\"", {0, 0, 0, 0, 1, 0, 0}}, {"[]", {0, 0, 0, 0, 0, 1, 0}},   {"{}", {0, 0, 0, 0, 0, 0, 1}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < 7; j++) {
            char text[64];
            snprintf(text, sizeof text, "{\"type\":\"%s\"}", names[j]);
            stet_value schema = parse(text), instance = parse(rows[i].instance);
            assert_int_equal(stet_schema_check(schema, instance, NULL), rows[i].is[j] ? STET_OK : STET_INVALID);
            stet_value_release(schema);
            stet_value_release(instance);
        }
    }
    check("{\"type\":\"string\"}", "7", "value: expected a string, found 7");
    check("{\"type\":\"integer\"}", "7.5", "value: expected an integer, found 7.5");
    check("{\"type\":[\"string\",\"null\",\"array\"]}", "{}",
          "value: expected string, null or array, found an object with 0 members");
    check("{\"type\":[\"string\",\"null\"]}", "null", NULL);
    check("true", "1", NULL);
    check("{}", "1", NULL);
    check("false", "1", "value: expected nothing here, found 1");
}

static void values(void **state) {
    (void)state;
    check("{\"enum\":[1,\"a\",null,[1]]}", "[1]", NULL);
    check("{\"enum\":[1,\"a\",null]}", "1.0", NULL);
    check("{\"enum\":[1,\"a\",null]}", "\"b\"", "value: expected one of 1, \"a\", null, found the string \"b\"");
    check("{\"const\":{\"a\":1}}", "{\"a\":1.0}", NULL);
    check("{\"const\":\"x\"}", "[]", "value: expected \"x\", found an array of 0");
    check("{\"minimum\":2,\"maximum\":3}", "2", NULL);
    check("{\"minimum\":2,\"maximum\":3}", "3", NULL);
    check("{\"minimum\":2}", "1.5", "value: expected a number of at least 2, found 1.5");
    check("{\"maximum\":3}", "4", "value: expected a number of at most 3, found 4");
    check("{\"exclusiveMinimum\":2}", "2", "value: expected a number above 2, found 2");
    check("{\"exclusiveMaximum\":2.5}", "2.5", "value: expected a number below 2.5, found 2.5");
    check("{\"exclusiveMaximum\":2.5}", "2", NULL);
    check("{\"minimum\":9007199254740993}", "9007199254740992",
          "value: expected a number of at least 9007199254740993, found 9007199254740992");
    check("{\"maximum\":1152921504606846976}", "1.152921504606846976e18", NULL);
    check("{\"exclusiveMinimum\":1152921504606846976}", "1152921504606846977", NULL);
    check("{\"minimum\":5}", "\"x\"", NULL);
    check("{\"multipleOf\":3}", "9", NULL);
    check("{\"multipleOf\":3}", "-9", NULL);
    check("{\"multipleOf\":3}", "0", NULL);
    check("{\"multipleOf\":3}", "10", "value: expected a number that is a multiple of 3, found 10");
    check("{\"multipleOf\":0.01}", "19.99", NULL);
    check("{\"multipleOf\":0.1}", "0.3", NULL);
    check("{\"multipleOf\":0.1}", "0.35", "value: expected a number that is a multiple of 0.1, found 0.35");
    check("{\"multipleOf\":0.5}", "9223372036854775807", NULL);
    check("{\"multipleOf\":1e300}", "7", "value: expected a number that is a multiple of 1e+300, found 7");
    check("{\"multipleOf\":7}", "1e300", "value: expected a number that is a multiple of 7, found 1e+300");
    check("{\"multipleOf\":1e-300}", "1e300", NULL);
    check("{\"multipleOf\":5e-324}", "1.7976931348623157e308", NULL);
    check("{\"multipleOf\":2}", "1.2345678901234568e20", NULL);
}

static void strings(void **state) {
    (void)state;
    check("{\"minLength\":2}", "\"\\u00e4\\ud83d\\ude00\"", NULL);
    check("{\"maxLength\":2}", "\"\\u00e4\\ud83d\\ude00\"", NULL);
    check("{\"minLength\":3}", "\"\\u00e4x\"", "value: expected at least 3 characters, found the string \"\xc3\xa4x\"");
    check("{\"maxLength\":1}", "\"ab\"", "value: expected at most 1 character, found the string \"ab\"");
    check("{\"maxLength\":1}", "[1,2,3]", NULL);
    check("{\"pattern\":\"^[a-z]+$\"}", "\"abc\"", NULL);
    check("{\"pattern\":\"b\"}", "\"abc\"", NULL);
    check("{\"pattern\":\"^[a-z]+$\"}", "\"aBc\"",
          "value: expected a string that matches ^[a-z]+$, found the string \"aBc\"");
    check("{\"pattern\":\"^.{3}$\"}", "\"\\u00e4\\u00e4\\u00e4\"", NULL); /* characters, not bytes */
    check("{\"pattern\":\"^.{3}$\"}", "\"abc\"", NULL);
    check("{\"pattern\":\"^\\u00e4+$\"}", "\"\\u00e4\\u00e4\"", NULL);
    check("{\"pattern\":\"^a[^x]b$\"}", "\"a\\u0000b\"", NULL); /* a NUL is a character */
    check("{\"pattern\":\"^(a|b){2}\\\\.[[:digit:]]?$\"}", "\"ab.7\"", NULL);
    check("{\"pattern\":\"^[]a-]+$\"}", "\"]a-\"", NULL);
    check("{\"pattern\":\"^\\\\w+\\\\s$\"}", "\"ab_1 \"", NULL);
    check("{\"pattern\":\"x\"}", "7", NULL);
    check("{\"pattern\":\"x\"}", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\u00e4b\"",
          "value: expected a string that matches x, found the string "
          "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"... (62 bytes)");
    /* More patterns than are kept compiled. */
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{\"allOf\":[");
    for (int i = 0; i < 40; i++)
        stet_buf_printf(&b, "%s{\"pattern\":\"^a{%d}$|x\"}", i ? "," : "", i + 2);
    stet_buf_str(&b, "]}");
    check(stet_buf_cstr(&b), "\"x\"", NULL);
    stet_buf_release(&b);
}

static void arrays(void **state) {
    (void)state;
    check("{\"items\":{\"type\":\"integer\"}}", "[1,2]", NULL);
    check("{\"items\":{\"type\":\"integer\"}}", "[1,2,\"x\"]", "/2: expected an integer, found the string \"x\"");
    check("{\"items\":{\"type\":\"integer\"}}", "{\"a\":\"x\"}", NULL);
    check("{\"prefixItems\":[{\"type\":\"string\"},true],\"items\":{\"type\":\"null\"}}", "[\"a\",1,null,null]", NULL);
    check("{\"prefixItems\":[{\"type\":\"string\"},true],\"items\":{\"type\":\"null\"}}", "[\"a\"]", NULL);
    check("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]",
          "/1: expected nothing here, found 1");
    check("{\"prefixItems\":[{\"type\":\"string\"}]}", "[1]", "/0: expected a string, found 1");
    check("{\"minItems\":1,\"maxItems\":2}", "[1]", NULL);
    check("{\"minItems\":1}", "[]", "value: expected at least 1 element, found an array of 0");
    check("{\"maxItems\":2}", "[1,2,3]", "value: expected at most 2 elements, found an array of 3");
    check("{\"uniqueItems\":true}", "[1,\"1\",[1],{\"a\":1},{\"a\":2},null,false,0]", NULL);
    check("{\"uniqueItems\":true}", "[1,2,1.0]",
          "value: expected elements that are all different (1 is there twice), found an array of 3");
    check("{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]",
          "value: expected elements that are all different (an object with 2 members is there twice), found an array "
          "of 2");
    check("{\"uniqueItems\":false}", "[1,1]", NULL);
}

static void objects(void **state) {
    (void)state;
    const char *schema =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"a/b\":{\"items\":{\"type\":\"null\"}}},"
        "\"required\":[\"name\"],\"additionalProperties\":false}";
    check(schema, "{\"name\":\"x\",\"a/b\":[null]}", NULL);
    check(schema, "{\"a/b\":[]}", "value: expected a member \"name\", found an object with 1 member");
    check(schema, "{\"name\":\"x\",\"a/b\":[null,1]}", "/a~1b/1: expected a null, found 1");
    check(schema, "{\"name\":\"x\",\"nmae\":1}", "/nmae: unknown member; known are a/b, name");
    check("{\"additionalProperties\":{\"type\":\"integer\"},\"properties\":{\"s\":true}}", "{\"s\":\"x\",\"n\":1}",
          NULL);
    check("{\"additionalProperties\":{\"type\":\"integer\"},\"properties\":{\"s\":true}}", "{\"n\":\"x\"}",
          "/n: expected an integer, found the string \"x\"");
    check("{\"additionalProperties\":false}", "{}", NULL);
    check("{\"required\":[\"a\"]}", "[]", NULL);
    check("{\"minProperties\":1}", "{}", "value: expected at least 1 member, found an object with 0 members");
    check("{\"maxProperties\":1}", "{\"a\":1,\"b\":2}",
          "value: expected at most 1 member, found an object with 2 members");
}

static void combinations(void **state) {
    (void)state;
    check("{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "2", NULL);
    check("{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "4", "value: expected a number of at most 3, found 4");
    check("{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "4", NULL);
    check("{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "1",
          "value: expected one of 2 alternatives (expected a string; or expected a number of at least 3), found 1");
    /* The alternative that fits best is what was meant. */
    check("{\"anyOf\":[{\"type\":\"string\"},{\"properties\":{\"a\":{\"type\":\"null\"}}}]}", "{\"a\":1}",
          "/a: expected a null, found 1");
    check("{\"oneOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", "4", NULL);
    check("{\"oneOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", "6",
          "value: expected exactly one alternative to match, but numbers 0 and 1 do, found 6");
    check("{\"oneOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", "5",
          "value: expected one of 2 alternatives (expected a number that is a multiple of 2; or expected a number that "
          "is a multiple of 3), found 5");
    check("{\"not\":{\"type\":\"null\"}}", "1", NULL);
    check("{\"not\":{\"type\":\"null\"}}", "null",
          "value: expected a value that does not match the schema of \"not\", found null");
    check("{\"not\":{\"not\":{\"type\":\"null\"}}}", "null", NULL);
    const char *tree =
        "{\"$ref\":\"#/$defs/"
        "tree\",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"value\":{\"type\":\"integer\"},"
        "\"children\":{\"items\":{\"$ref\":\"#/$defs/tree\"}}},\"required\":[\"value\"]},\"a/b~\":{\"const\":1}}}";
    check(tree, "{\"value\":1,\"children\":[{\"value\":2,\"children\":[]}]}", NULL);
    check(tree, "{\"value\":1,\"children\":[{\"value\":2,\"children\":[{}]}]}",
          "/children/0/children/0: expected a member \"value\", found an object with 0 members");
    check("{\"items\":{\"$ref\":\"#\"},\"type\":[\"array\",\"null\"]}", "[[null,[]],null]", NULL);
    check("{\"items\":{\"$ref\":\"#\"},\"type\":[\"array\",\"null\"]}", "[[null,[1]]]",
          "/0/1/0: expected array or null, found 1");
    check("{\"$defs\":{\"a/b~\":{\"const\":1}},\"$ref\":\"#/$defs/a~1b~0\",\"type\":\"integer\"}", "1", NULL);
}

static void more_of_objects(void **state) {
    (void)state;
    check("{\"patternProperties\":{\"^n\":{\"type\":\"number\"}}}", "{\"n1\":1,\"x\":\"\"}", NULL);
    check("{\"patternProperties\":{\"^n\":{\"type\":\"number\"}}}", "{\"n1\":\"1\"}",
          "/n1: expected a number, found the string \"1\"");
    check("{\"properties\":{\"a\":true},\"patternProperties\":{\"^n\":true},\"additionalProperties\":false}",
          "{\"a\":1,\"n\":1,\"x\":1}", "/x: unknown member; known are a");
    check("{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}",
          "/abc: expected at most 2 characters, found the string \"abc\" as the name of this member");
    check("{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"b\":1}", NULL);
    check("{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
          "value: expected a member \"b\" beside \"a\", found an object with 1 member");
    check("{\"dependentSchemas\":{\"a\":{\"maxProperties\":1}}}", "{\"a\":1,\"b\":2}",
          "value: expected at most 1 member, found an object with 2 members");
    check("{\"allOf\":[{\"properties\":{\"a\":true}}],\"unevaluatedProperties\":false}", "{\"a\":1}", NULL);
    check("{\"allOf\":[{\"properties\":{\"a\":true}}],\"unevaluatedProperties\":false}", "{\"a\":1,\"b\":1}",
          "/b: unknown member");
    check("{\"anyOf\":[{\"properties\":{\"a\":true}},{\"properties\":{\"b\":true}}],\"unevaluatedProperties\":false}",
          "{\"a\":1,\"b\":1}", NULL);
    check("{\"not\":{\"not\":{\"properties\":{\"a\":true}}},\"unevaluatedProperties\":false}", "{\"a\":1}",
          "/a: unknown member");
}

static void more_of_arrays(void **state) {
    (void)state;
    check("{\"contains\":{\"type\":\"null\"}}", "[1,null]", NULL);
    check("{\"contains\":{\"type\":\"null\"}}", "[1]",
          "value: expected at least 1 element that match the schema of \"contains\", found an array of 1");
    check("{\"contains\":{\"type\":\"null\"},\"minContains\":0}", "[1]", NULL);
    check("{\"contains\":{\"type\":\"null\"},\"minContains\":2.0}", "[null,1]",
          "value: expected at least 2 elements that match the schema of \"contains\", found an array of 2");
    check("{\"contains\":{\"type\":\"null\"},\"maxContains\":1}", "[null,null]",
          "value: expected at most 1 element that match the schema of \"contains\", found an array of 2");
    check("{\"prefixItems\":[true],\"contains\":{\"type\":\"null\"},\"unevaluatedItems\":{\"const\":7}}", "[1,null,7]",
          NULL);
    check("{\"prefixItems\":[true],\"unevaluatedItems\":{\"const\":7}}", "[1,8]", "/1: expected 7, found 8");
}

static void conditions(void **state) {
    (void)state;
    const char *schema = "{\"if\":{\"type\":\"string\"},\"then\":{\"minLength\":2},\"else\":{\"minimum\":2}}";
    check(schema, "\"ab\"", NULL);
    check(schema, "\"a\"", "value: expected at least 2 characters, found the string \"a\"");
    check(schema, "1", "value: expected a number of at least 2, found 1");
    check("{\"if\":{\"type\":\"string\"}}", "1", NULL);
    check("{\"then\":false,\"else\":false}", "1", NULL);
    check("{\"items\":{\"$ref\":\"#word\"},\"$defs\":{\"w\":{\"$anchor\":\"word\",\"type\":\"string\"}}}", "[1]",
          "/0: expected a string, found 1");
    check("{\"$id\":\"https://x/y\",\"items\":{\"$ref\":\"https://x/y#/properties/"
          "a\"},\"properties\":{\"a\":{\"type\":\"null\"}}}",
          "[1]", "/0: expected a null, found 1");
}

static void check_refused(const char *schema_text, const char *message) {
    stet_value schema = parse(schema_text);
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_schema_valid(schema, &err);
    if (status == STET_OK || !strstr(err.message, message))
        fail_msg("%s: \"%s\" is not in \"%s\"", schema_text, message, err.message);
    assert_int_equal(stet_value_type(stet_value_get(err.details, "schema_pointer")), STET_TYPE_STRING);
    stet_error_clear(&err);
    assert_int_equal(stet_schema_valid(schema, NULL), status);
    /* Applying it all the same ends in some status, never worse. */
    static const char *const instances[] = {"1", "\"a\"", "[1,2]", "{\"a\":1}"};
    for (size_t i = 0; i < sizeof instances / sizeof *instances; i++) {
        stet_value instance = parse(instances[i]);
        if (stet_schema_check(schema, instance, &err) != STET_OK)
            assert_int_not_equal(err.status, STET_OK);
        stet_error_clear(&err);
        stet_value_release(instance);
    }
    stet_value_release(schema);
}

static void refused(void **state) {
    (void)state;
    check_refused("1", "schema: expected a schema: an object, true or false");
    check_refused("{\"type\":\"int\"}", "\"type\" must be the name of a type");
    check_refused("{\"type\":[\"integer\",\"int\"]}", "element 1 is not the name of a type");
    check_refused("{\"type\":[]}", "\"type\" must be");
    check_refused("{\"enum\":[]}", "\"enum\" must be");
    check_refused("{\"enum\":{}}", "\"enum\" must be");
    check_refused("{\"properties\":[]}", "\"properties\" must be an object");
    check_refused("{\"properties\":{\"a\":{\"properties\":{\"b\":3}}}}",
                  "schema at /properties/a/properties/b: expected a schema");
    check_refused("{\"required\":\"a\"}", "\"required\" must be");
    check_refused("{\"required\":[\"a\",1]}", "element 1 is not a string");
    check_refused("{\"items\":[]}", "\"items\" must be a schema");
    check_refused("{\"prefixItems\":{}}", "\"prefixItems\" must be an array");
    check_refused("{\"prefixItems\":[true,1]}", "schema at /prefixItems/1");
    check_refused("{\"anyOf\":[]}", "not empty");
    check_refused("{\"minItems\":-1}", "an integer from 0");
    check_refused("{\"minLength\":1.5}", "an integer from 0");
    check_refused("{\"minimum\":\"1\"}", "a number");
    check_refused("{\"multipleOf\":0}", "a number above 0");
    check_refused("{\"multipleOf\":-1}", "a number above 0");
    check_refused("{\"uniqueItems\":1}", "true or false");
    check_refused("{\"not\":{\"pattern\":7}}", "schema at /not: \"pattern\" must be a string");
    check_refused("{\"$ref\":\"#/$defs/a\"}", "a reference to a schema of this document");
    check_refused("{\"$ref\":\"#/enum/0\",\"enum\":[{}]}", "\"$ref\" must be");
    check_refused("{\"$ref\":\"#/properties\",\"properties\":{\"a\":true}}", "\"$ref\" must be");
    check_refused("{\"$ref\":\"#/allOf/1\",\"allOf\":[true]}", "\"$ref\" must be");
    check_refused("{\"$ref\":\"#nobody\"}", "\"$ref\" must be");
    check_refused("{\"$ref\":\"#/$defs/~2\",\"$defs\":{\"~2\":true}}", "\"$ref\" must be");
    check_refused("{\"$ref\":\"#%4\"}", "\"$ref\" must be");
    check_refused("{\"items\":{\"$id\":\"x\"}}", "schema at /items: \"$id\" is supported at the root only");
    check_refused("{\"patternProperties\":{\"(\":true}}", "pattern: Unmatched (");
    check_refused("{\"dependentRequired\":{\"a\":[1]}}", "member a is not an array of strings");
    check_refused("{\"if\":1}", "\"if\" must be a schema");
    check_refused("{\"minContains\":-1}", "an integer from 0");
    check_refused("{\"$ref\":\"http://x/y\"}", "\"$ref\" must be");
    check_refused("{\"$ref\":\"#/$defs/a%20b\",\"$defs\":{\"a%20b\":true}}", "\"$ref\" must be");
    check("{\"$ref\":\"#/$defs/a%20b\",\"$defs\":{\"a b\":{\"type\":\"null\"}}}", "null", NULL);
    check_refused("{\"$defs\":{\"a\":1}}", "schema at /$defs/a");
    static const char *const unsupported[] = {"$vocabulary", "$recursiveRef", "additionalItems", "dependencies"};
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"%s\":true}", unsupported[i]);
        check_refused(text, "does not support it");
    }
    check_refused("{\"requird\":[]}", "did you mean \"required\"?");
    check_refused("{\"porperties\":{}}", "did you mean \"properties\"?");
    check_refused("{\"minlength\":1}", "did you mean \"minLength\"?");
    check_refused("{\"item\":{}}", "did you mean \"items\"?");
    check("{\"title\":1,\"description\":1,\"default\":{\"type\":5},\"examples\":1,\"$schema\":1,\"$id\":1,\"$comment\":"
          "1,\"asCell\":true,\"format\":\"date\",\"deprecated\":1,"
          "\"readOnly\":1,\"x-anything\":[],\"ifc\":{}}",
          "1", NULL);
}

static void refused_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *message;
    } cases[] = {{"\\\\d+", "write [0-9] for"},
                 {"(a)\\\\1", "no back references"},
                 {"(?:a)", "is not POSIX"},
                 {"a*?", "after a quantifier"},
                 {"a+*", "after a quantifier"},
                 {"*a", "nothing to repeat"},
                 {"(+a)", "nothing to repeat"},
                 {"a|*", "nothing to repeat"},
                 {"[\\\\d]", "stands for itself"},
                 {"[a", "without its"},
                 {"a{2", "expected {m}"},
                 {"a{}", "expected {m}"},
                 {"a{3,2}", "expected {m}"},
                 {"a{1001}", "more than 1000"},
                 {"a{99999999999999999999}", "more than 1000"},
                 {"((a{100}){100}){100}", "multiply to more"},
                 {"(a", "pattern"},
                 {"[[:nope:]]", "pattern"},
                 {"a\\u0000", "NUL"},
                 {"\\\\", "is not known"},
                 {"[[.a.]]", "collating"},
                 {"\\\\<a", "is not known"},
                 {"[z-a]", "pattern"},
                 {"a{,3}", "expected {m}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"pattern\":\"%s\"}", cases[i].pattern);
        check_refused(text, cases[i].message);
    }
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{\"pattern\":\"");
    for (int i = 0; i < 1025; i++)
        stet_buf_char(&b, 'a');
    stet_buf_str(&b, "\"}");
    check_refused(stet_buf_cstr(&b), "1025 bytes");
    stet_buf_release(&b);
}

static void check_limit(const char *schema_text, const char *instance_text) {
    stet_value schema = parse(schema_text), instance = parse(instance_text);
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_schema_valid(schema, &err), STET_OK);
    assert_int_equal(stet_schema_check(schema, instance, &err), STET_LIMIT);
    assert_int_equal(err.status, STET_LIMIT);
    stet_error_clear(&err);
    stet_value_release(schema);
    stet_value_release(instance);
}

static void limits(void **state) {
    (void)state;
    check_limit("{\"$ref\":\"#\"}", "1");
    check_limit("{\"anyOf\":[{\"$ref\":\"#\"},true]}", "1");
    check_limit("{\"not\":{\"$ref\":\"#\"}}", "1");
    check_limit("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"allOf\":[{\"$ref\":\"#/"
                "$defs/a\"}]}}}",
                "1");
    /* A document as deep as documents get, by a schema that refers to itself. */
    char text[1100];
    memset(text, '[', 510);
    memset(text + 510, ']', 510);
    text[1020] = '\0';
    check("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", text, NULL);
    if (getenv("STET_TEST_SHORT"))
        return;
    /* Two to the power of the depth, stopped by the count of steps. */
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 60; i++)
        stet_buf_printf(&b, "\"%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/%d\"},{\"$ref\":\"#/$defs/%d\"}]},", i, i + 1,
                        i + 1);
    stet_buf_str(&b, "\"60\":false}}");
    stet_value schema = parse(stet_buf_cstr(&b)), instance = parse("1");
    assert_int_equal(stet_schema_check(schema, instance, NULL), STET_LIMIT);
    stet_value_release(schema);
    stet_buf_release(&b);
}

/* For test/property/schema.py: reads lines of a schema, a tab and a value, and prints one answer for each. */
static int answer_lines(void) {
    char *line = NULL;
    size_t size = 0;
    for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;) {
        char *tab = strchr(line, '\t');
        if (!tab)
            break;
        *tab = 0;
        stet_value schema = parse(line), instance = parse(tab + 1);
        stet_error err = STET_ERROR_INIT;
        if (stet_schema_valid(schema, &err) != STET_OK)
            printf("refused %s\n", err.message);
        else if (stet_schema_check(schema, instance, &err) != STET_OK)
            printf("%s %s\n", err.status == STET_INVALID ? "invalid" : "failed", err.message);
        else
            puts("valid");
        stet_error_clear(&err);
        stet_value_release(schema);
        stet_value_release(instance);
    }
    free(line);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--lines") == 0)
        return answer_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),           cmocka_unit_test(values),           cmocka_unit_test(strings),
        cmocka_unit_test(arrays),          cmocka_unit_test(objects),          cmocka_unit_test(combinations),
        cmocka_unit_test(more_of_objects), cmocka_unit_test(more_of_arrays),   cmocka_unit_test(conditions),
        cmocka_unit_test(refused),         cmocka_unit_test(refused_patterns), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
