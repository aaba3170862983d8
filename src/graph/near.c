/* near.c - suggests node names when a name is not found. */

#include "graph/near.h"

#include "base/suggest.h"

#define NAMED 12 /* nodes that are listed if none is similar */

void stet_process_hint_node(const stet_process *g, const char *typed, stet_error *err) {
    stet_suggest near = stet_suggest_begin(typed);
    stet_buf names = STET_BUF(0);
    for (size_t i = 0; i < g->node_count; i++) {
        stet_suggest_offer(&near, g->nodes[i].id);
        if (i < NAMED)
            stet_buf_printf(&names, "%s%s", i ? ", " : "", g->nodes[i].id);
    }
    if (near.best)
        stet_hint(err, "did you mean \"%s\"?", near.best);
    else if (g->node_count > 0)
        stet_hint(err, "its nodes are %s%s", stet_buf_cstr(&names), g->node_count > NAMED ? ", ..." : "");
    stet_buf_release(&names);
}

void stet_piece_hint_node(stet_space *space, int64_t branch, const stet_piece *p, const char *typed, stet_error *err) {
    stet_process *g;
    if (!err || stet_piece_process(space, branch, p, -1, &g, NULL) != STET_OK)
        return;
    stet_process_hint_node(g, typed, err);
    stet_process_free(g);
}
