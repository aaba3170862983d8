/* changed.c - would a scan find a change? Writes nothing. */

#include <string.h>

#include "files/internal.h"
#include "files/path.h"

/* Does a pattern match a file that nobody follows yet? One that is gone is found by the look at the file itself. */
static bool matches_more(stet_files *f, const char *pattern) {
    stet_names names = {0};
    stet_buf key = STET_BUF(0);
    bool more = stet_files_walk(f, pattern, NULL, NULL, &names, NULL) != STET_OK;
    for (size_t i = 0; i < names.len && !more; i++) {
        stet_buf_clear(&key);
        stet_buf_char(&key, 'f');
        stet_buf_str(&key, names.at[i]);
        const stet_files_entry *e = stet_files_index_find(&f->index, key.data, key.len);
        more = !e || e->gone || !e->looked;
    }
    stet_buf_release(&key);
    stet_names_release(&names);
    return more;
}

bool stet_files_changed(stet_files *f) {
    bool changed = stet_files_unsettled(f) || stet_files_was_lost(f) || stet_files_ready(f, NULL) != STET_OK;
    int64_t head;
    if (!changed) /* an older copy of the space was put back: its documents may be older than the index */
        changed = stet_space_seq(f->space, &head, NULL) != STET_OK || head < f->index.seq;
    for (size_t i = 0; !changed && i < f->index.at.len; i++) {
        const stet_files_entry *e = &f->index.at.at[i];
        stet_look now = {0};
        if (e->gone)
            continue;
        if (e->key[0] == 'g') {
            changed = matches_more(f, e->key + 1);
            continue;
        }
        if (e->key[0] == 'e')
            now = stet_files_variable(f, e->key + 1);
        else
            changed = stet_look_at(f->root_fd, e->key + 1, e->looked ? &e->look : NULL, &now, NULL) != STET_OK;
        changed = changed || !e->looked || !stet_look_same(&e->look, &now);
    }
    return changed;
}
