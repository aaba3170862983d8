/* pattern_toml_circle.c - finds nodes that wait for each other.
 *
 * References among values may form a cycle and still settle. Files can't: none of the commands could run first. Nor can
 * `after`, and values that commands print: such a node has no value before it has run. So a circle is a mistake if a file
 * is in it, an `after`, or if all of its nodes are commands.
 */

#include "graph/pattern_toml_internal.h"

#include <string.h>

#include "graph/circle.h"

void toml_waits(toml_converter *c, const char *reader, const char *writer, size_t writer_len, const char *wanted,
                const char *path) {
    stet_slot *from = stet_map_get(&c->numbers, reader, strlen(reader)),
              *to = stet_map_get(&c->numbers, writer, writer_len);
    if (from && to && from->n == to->n && wanted)
        toml_problem(c, "leave it out: a build from nothing does not have it when the command begins",
                     "node \"%s\" reads its own output \"%.100s\"", reader, path);
    if (from && to && from->n != to->n)
        *stet_vec_add(&c->edges) =
            (toml_edge){from->n, to->n, wanted ? stet_strdup(wanted) : NULL, path ? stet_strdup(path) : NULL, false};
}

void toml_waits_after(toml_converter *c, const char *reader, const char *writer, size_t writer_len) {
    size_t before = c->edges.len;
    toml_waits(c, reader, writer, writer_len, NULL, NULL);
    if (c->edges.len > before)
        c->edges.at[before].after = true;
}

static bool is_command(const toml_converter *c, size_t node) {
    return stet_value_find(stet_value_at(c->nodes, node), "command", 7, NULL);
}

static const char *name_of(const toml_converter *c, size_t node) {
    return stet_value_key_at(c->nodes, node, NULL);
}

static void say_circle(toml_converter *c, const size_t *way, size_t len) {
    stet_buf said = STET_BUF(700);
    bool files = false;
    for (size_t i = 0; i < len; i++) {
        const toml_edge *e = &c->edges.at[way[i]];
        stet_buf_printf(&said, "%snode \"%s\" ", i ? ", " : "", name_of(c, e->from));
        if (e->wanted)
            stet_buf_printf(&said, "reads \"%.100s\", which takes in \"%.100s\" of node \"%s\"", e->wanted, e->path,
                            name_of(c, e->to));
        else
            stet_buf_printf(&said, "%s node \"%s\"", e->after ? "comes after" : "needs", name_of(c, e->to));
        files |= e->wanted != NULL;
    }
    toml_leave(c, 0);
    toml_enter(c, "nodes", 5);
    const char *id = name_of(c, c->edges.at[way[0]].from);
    toml_enter(c, id, strlen(id));
    toml_problem(c,
                 files ? "narrow the pattern or path so that it leaves that file out, or write the file elsewhere"
                       : "none of them could run first: let one of them do without the other",
                 "a circle: %s", stet_buf_cstr(&said));
    toml_leave(c, 0);
    stet_buf_release(&said);
}

void toml_check_circles(toml_converter *c) {
    size_t nodes = stet_value_count(c->nodes);
    STET_VEC(stet_circle_edge) edges = {0};
    size_t *way = stet_alloc((nodes + 1) * sizeof *way);
    STET_VEC(size_t) which = {0};
    for (size_t i = 0; i < c->edges.len; i++)
        *stet_vec_add(&edges) =
            (stet_circle_edge){c->edges.at[i].from, c->edges.at[i].to, c->edges.at[i].wanted || c->edges.at[i].after};
    size_t len = stet_circle_find(nodes, edges.at, edges.len, way);
    if (len == 0) { /* of commands alone */
        stet_vec_clear(&edges);
        for (size_t i = 0; i < c->edges.len; i++)
            if (is_command(c, c->edges.at[i].from) && is_command(c, c->edges.at[i].to)) {
                *stet_vec_add(&which) = i;
                *stet_vec_add(&edges) = (stet_circle_edge){c->edges.at[i].from, c->edges.at[i].to, true};
            }
        len = stet_circle_find(nodes, edges.at, edges.len, way);
        for (size_t i = 0; i < len; i++)
            way[i] = which.at[way[i]];
    }
    if (len > 0)
        say_circle(c, way, len);
    stet_vec_release(&which);
    stet_vec_release(&edges);
    stet_free(way);
}

void toml_release_circles(toml_converter *c) {
    for (size_t i = 0; i < c->edges.len; i++) {
        stet_free(c->edges.at[i].wanted);
        stet_free(c->edges.at[i].path);
    }
    stet_vec_release(&c->edges);
    stet_map_release(&c->numbers);
}
