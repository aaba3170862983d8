/* memory.c - any bytes as the record of a commit, as stored patches, and as a list of operations in JSON.
 *
 * They are accepted or refused, and never crash. What is accepted and can be applied is stored and read back as the
 * same. The first byte chooses the kind.
 */

#include <assert.h>

#include "memory/internal.h"
#include "memory/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void records(const char *bytes, size_t len) {
    stet_arena arena = STET_ARENA_INIT;
    stet_record r;
    stet_record_rev rev;
    int64_t last = 0;
    stet_record_begin(&r, bytes, len);
    while (stet_record_next(&r, &rev)) {
        assert(rev.doc > last);
        last = rev.doc;
        const stet_change *at = stet_record_leaves(&rev, &arena);
        for (size_t i = 0; at && i < rev.leaf_count; i++)
            assert(stet_path_valid(at[i].path));
    }
    stet_arena_release(&arena);
}

/* Applied to a document, the operations leave it whole or unchanged, and do the same after a trip through their stored
 * form. */
static void apply(const stet_patches *ops) {
    stet_value start = stet_value_null(), one, two;
    static const char text[] = "{\"value\":{\"a\":[1,2,{\"b\":3}],\"n\":1,\"s\":\"x\"},\"meta\":[]}";
    if (stet_json_parse(text, strlen(text), &start, NULL) != STET_OK)
        return;
    one = stet_value_retain(start);
    two = stet_value_retain(start);
    stet_status st = stet_patches_apply(ops->at, ops->len, &one, NULL);
    if (st != STET_OK)
        assert(stet_value_equal(one, start));
    stet_buf b = STET_BUF(1 << 24);
    stet_patches again = {0};
    stet_patches_encode(&b, ops->at, ops->len);
    bool good = stet_patches_decode(b.data ? b.data : "", b.len, &again);
    assert(good && again.len == ops->len);
    assert(stet_patches_apply(again.at, again.len, &two, NULL) == st);
    assert(stet_value_equal(one, two));
    stet_value printed = stet_patches_to_value(ops->at, ops->len);
    stet_value_release(printed);
    stet_patches_release(&again);
    stet_buf_release(&b);
    stet_value_release(one);
    stet_value_release(two);
    stet_value_release(start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    stet_patches ops = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_value list;
    switch (data[0] % 3) {
    case 0:
        records(bytes, size - 1);
        break;
    case 1:
        if (stet_patches_decode(bytes, size - 1, &ops))
            apply(&ops);
        stet_patches_release(&ops);
        break;
    default:
        if (stet_json_parse(bytes, size - 1, &list, NULL) == STET_OK) {
            if (stet_patches_of_value(list, false, &arena, &ops, NULL) == STET_OK)
                apply(&ops);
            stet_patches_release(&ops);
            stet_value_release(list);
        }
    }
    stet_arena_release(&arena);
    return 0;
}
