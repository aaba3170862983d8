/* persist.c - the readers of the persist format: hostile bytes never crash them.
 *
 * What they accept has the right hash, the short cut for canonical text agrees with the general way, and canonical text
 * is its own canonical form.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "persist/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void entry(const char *text, size_t len) {
    stet_arena arena = STET_ARENA_INIT;
    stet_pentry_scratch scratch = {0};
    stet_pentry fast, slow;
    size_t fast_used, slow_used;
    const char *why;
    stet_pentry_state a = stet_pentry_parse(text, len, &arena, &scratch, &fast, &fast_used, &why);
    stet_pentry_state b = stet_pentry_parse_slow(text, len, &arena, &scratch, &slow, &slow_used, &why);
    assert(a == b && fast_used == slow_used);
    if (a == STET_PENTRY_OK) {
        assert(fast.text_len == slow.text_len && !memcmp(fast.text, slow.text, fast.text_len));
        assert(stet_pentry_same_key(&fast, &slow) && stet_pentry_prefer(&fast, &slow) == 0);
        stet_pentry again;
        size_t used;
        a = stet_pentry_parse(fast.text, fast.text_len, &arena, &scratch, &again, &used, &why);
        assert(a == STET_PENTRY_OK && again.text_len == fast.text_len && !memcmp(again.text, fast.text, fast.text_len));
        stet_persist_entry_free(stet_pentry_copy(&fast));
    }
    stet_arena_release(&arena);
    stet_pentry_scratch_release(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    char *text = malloc(size + 1);
    memcpy(text, data + 1, size - 1);
    size_t len = size - 1;
    text[len] = '\0';
    if (data[0] % 3 == 0) {
        stet_psnapshot *s;
        const char *why;
        if (stet_psnapshot_parse(text, len, &s, &why) == STET_PSNAPSHOT_OK) {
            stet_buf out = STET_BUF(0);
            stet_pid hash;
            stet_psnapshot_print(s->entries.at, s->entries.len, &s, 1, &out, &hash);
            stet_psnapshot *next;
            char *copy = malloc(out.len + 1);
            memcpy(copy, out.data, out.len + 1);
            stet_psnapshot_state state = stet_psnapshot_parse(copy, out.len, &next, &why);
            assert(state == STET_PSNAPSHOT_OK && stet_psnapshot_has_ancestor(next, s->hash.text));
            stet_psnapshot_drop(next);
            stet_buf_release(&out);
        }
        stet_psnapshot_drop(s);
        return 0; /* the snapshot took the text over */
    }
    if (data[0] % 3 == 1) {
        stet_ptexts *texts = stet_ptexts_new();
        stet_pentries entries = {0};
        stet_plog_parsed parsed = {0};
        stet_plog_parse(text, len, texts, &entries, &parsed);
        stet_pset set = {0};
        stet_pentries_sort(&entries);
        stet_pset_build(&set, &entries);
        stet_pset_release(&set);
        stet_ptexts_drop(texts);
    } else
        entry(text, len);
    free(text);
    return 0;
}
