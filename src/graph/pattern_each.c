/* pattern_each.c - expands `each` in stet.toml: one command for each of many files. */

#include "graph/pattern_each.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "graph/pattern.h"

/* Members that stay with the list; all others are about its commands. */
static bool of_list(const char *key) {
    return strcmp(key, "id") == 0 || strcmp(key, "title") == 0 || strcmp(key, "description") == 0 ||
           strcmp(key, "metadata") == 0;
}

static stet_value reference(const char *text) {
    stet_value r = stet_value_object();
    stet_value_put(&r, "$", stet_value_string(text));
    return r;
}

/* Converts a binding for a child: references become members of its argument, and inputs of the list. */
static stet_value hand_over(stet_value binding, stet_value *list_inputs) {
    typedef struct frame {
        stet_value v, made;
        size_t next;
    } frame;
    STET_VEC(frame) stack = {0};
    stet_value done = stet_value_null(), holder = stet_value_array();
    stet_value_push(&holder, stet_value_retain(binding)); /* so that the top is a member as well */
    *stet_vec_add(&stack) = (frame){holder, stet_value_array(), 0};
    while (stack.len > 0) {
        frame *f = &stack.at[stack.len - 1];
        stet_value item, made;
        size_t len;
        if (f->next < stet_value_count(f->v)) {
            item = stet_value_at(f->v, f->next++);
            stet_type t = stet_value_type(item);
            bool whole = (t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT) || stet_link_is(item, NULL);
            if (t == STET_TYPE_OBJECT && stet_value_find(item, "$", 1, NULL)) {
                char name[32], text[48];
                snprintf(name, sizeof name, "from%zu", stet_value_count(*list_inputs) - 1); /* not counting `list` */
                snprintf(text, sizeof text, "argument/%s", name);
                stet_value_put(list_inputs, name, stet_value_retain(item));
                made = reference(text);
            } else if (whole) {
                made = stet_value_retain(item);
            } else {
                *stet_vec_add(&stack) =
                    (frame){item, t == STET_TYPE_ARRAY ? stet_value_array() : stet_value_object(), 0};
                continue;
            }
        } else {
            made = f->made;
            if (--stack.len == 0) {
                done = stet_value_retain(stet_value_at(made, 0));
                stet_value_release(made);
                break;
            }
            f = &stack.at[stack.len - 1];
        }
        const char *key = stet_value_key_at(f->v, f->next - 1, &len);
        if (key)
            stet_value_put_n(&f->made, key, len, made);
        else
            stet_value_push(&f->made, made);
    }
    stet_vec_release(&stack);
    stet_value_release(holder);
    return done;
}

void stet_pattern_each(stet_value node, const char *name, stet_value *nodes) {
    stet_value id = stet_value_get(node, "id"), inputs = stet_value_get(node, "inputs");
    stet_value list = stet_value_object(), map = stet_value_object(), child = stet_value_object(),
               child_inputs = stet_value_object();
    stet_value map_inputs = stet_value_object(), module = stet_value_object(), v;
    stet_buf list_id = STET_BUF(0);
    stet_buf_printf(&list_id, "%s.files", stet_value_as_string(&id, NULL));

    stet_value_put(&list, "id", stet_value_string(stet_buf_cstr(&list_id)));
    stet_value_put(&module, "type", stet_value_string("ref"));
    stet_value_put(&module, "ref", stet_value_string("files"));
    stet_value produces = stet_value_get(stet_value_get(node, "module"), "produces"), distinct = stet_value_array();
    for (size_t i = 0; i < stet_value_count(produces); i++)
        stet_value_push(&distinct, stet_value_retain(stet_value_at(produces, i)));
    stet_value_put(&module, "distinct", distinct);
    stet_value_put(&module, "name", stet_value_string(name));
    stet_value_put(&list, "module", module);
    v = stet_value_object();
    stet_value_put(&v, "files", stet_value_retain(stet_value_get(inputs, name)));
    stet_value_put(&list, "inputs", v);

    stet_value_put(&child, "id", stet_value_string("run"));
    for (size_t i = 0; i < stet_value_count(node); i++) {
        size_t len;
        const char *key = stet_value_key_at(node, i, &len);
        if (of_list(key))
            stet_value_put_n(&map, key, len, stet_value_retain(stet_value_at(node, i)));
        else if (strcmp(key, "inputs") != 0)
            stet_value_put_n(&child, key, len, stet_value_retain(stet_value_at(node, i)));
    }
    stet_value_put(&map_inputs, "list", reference(stet_buf_cstr(&list_id)));
    for (size_t i = 0; i < stet_value_count(inputs); i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        stet_value_put_n(&child_inputs, key, len,
                         strcmp(key, name) == 0 ? reference("argument/element")
                                                : hand_over(stet_value_at(inputs, i), &map_inputs));
    }
    stet_value_put(&child, "inputs", child_inputs);

    stet_value pattern = stet_value_object(), children = stet_value_array();
    stet_value_push(&children, child);
    stet_value_put(&pattern, "pattern", stet_value_int(STET_PATTERN_FORMAT));
    stet_value_put(&pattern, "name", stet_value_retain(id));
    stet_value_put(&pattern, "nodes", children);
    stet_value_put(&pattern, "result", reference("run"));
    module = stet_value_object();
    stet_value_put(&module, "type", stet_value_string("ref"));
    stet_value_put(&module, "ref", stet_value_string("map"));
    stet_value_put(&module, "key", stet_value_string("path"));
    stet_value_put(&module, "pattern", pattern);
    stet_value_put(&map, "module", module);
    stet_value_put(&map, "inputs", map_inputs);
    stet_value_push(nodes, list);
    stet_value_push(nodes, map);
    stet_buf_release(&list_id);
    stet_value_release(node);
}

stet_value stet_pattern_each_files(const char *id, const char *name, const char *matching) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "each", reference(id));
    stet_value_put(&v, "name", stet_value_string(name));
    if (matching)
        stet_value_put(&v, "matching", stet_value_string(matching));
    return v;
}
