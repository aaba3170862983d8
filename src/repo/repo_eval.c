/* repo_eval.c - evaluates a node to its value. */

#include <string.h>

#include "repo/builtin.h"
#include "repo/execmap.h"

#define EVAL_MAX ((size_t)1 << 20) /* nodes that lead to one another */

typedef enum kind { LITERAL, BUILTIN, THROUGH } kind;

/* A node that waits for others: a builtin for its inputs, an import or a call for the root of a DAG. */
typedef struct frame {
    stet_hash node;
    stet_value record; /* ours */
    kind kind;
    size_t next, count;
    stet_hash through;
} frame;

typedef struct eval {
    stet_repo *r;
    stet_map done; /* node to its number in `data` plus one; 0: begun */
    stet_hashes data;
    STET_VEC(frame) stack;
    stet_error *err;
} eval;

static stet_status root_of(eval *e, stet_hash dag, stet_hash *root) {
    stet_value v;
    stet_status st = stet_repo_get(e->r, dag, STET_RECORD_DAG, &v, e->err);
    if (st == STET_OK) {
        stet_hash_of_text(stet_value_get(v, "root"), root);
        stet_value_release(v);
    }
    return st;
}

/* What a failed call says for itself: a string, or the member `message` of an object. */
static stet_status call_failed(eval *e, stet_hash node, stet_hash dag) {
    stet_value v = stet_value_null(), said;
    stet_hash root;
    stet_value record;
    if (stet_repo_get(e->r, dag, STET_RECORD_DAG, &record, NULL) == STET_OK) {
        stet_value literal;
        stet_hash datum;
        stet_hash_of_text(stet_value_get(record, "root"), &root);
        if (stet_repo_get(e->r, root, STET_RECORD_NODE, &literal, NULL) == STET_OK) {
            if (stet_hash_of_text(stet_value_get(literal, "target"), &datum) &&
                stet_repo_value(e->r, datum, &v, NULL) != STET_OK)
                v = stet_value_null();
            stet_value_release(literal);
        }
        stet_value_release(record);
    }
    said = stet_value_type(v) == STET_TYPE_OBJECT ? stet_value_get(v, "message") : v;
    stet_fail(e->err, STET_FAILED, "call %s failed%s%.300s", stet_short(node).text,
              stet_value_type(said) == STET_TYPE_STRING ? ": " : "",
              stet_value_type(said) == STET_TYPE_STRING ? stet_value_as_string(&said, NULL) : "");
    stet_detail(e->err, "node", stet_hash_text(node));
    stet_detail(e->err, "result", stet_hash_text(dag));
    stet_value_release(v);
    return STET_FAILED;
}

static stet_status result_of(eval *e, stet_hash node, stet_hash *root) {
    bool there;
    stet_hash id;
    stet_exec exec;
    stet_status st = stet_repo_pinned(e->r, node, &there, &id, e->err);
    if (st == STET_OK && !there) {
        stet_fail(e->err, STET_NOT_FOUND, "call %s has no result yet", stet_hash_print(node).text);
        stet_detail(e->err, "node", stet_hash_text(node));
        return STET_NOT_FOUND;
    }
    if (st == STET_OK)
        st = stet_repo_get_exec(e->r, id, &exec, e->err);
    if (st != STET_OK)
        return st;
    stet_value_release(exec.timings);
    return exec.ok ? root_of(e, exec.result, root) : call_failed(e, node, exec.result);
}

static stet_status begin_node(eval *e, stet_hash node) {
    frame f = {.node = node};
    bool added;
    if (e->stack.len >= EVAL_MAX)
        return stet_fail(e->err, STET_LIMIT, "more than %zu nodes that wait for one another", EVAL_MAX);
    stet_map_have(&e->done, node.bytes, sizeof node.bytes, (stet_slot){.n = 0}, &added);
    if (!added) /* only through pins: hashes have no circles */
        return stet_fail(e->err, STET_FAILED, "node %s is its own result", stet_hash_print(node).text);
    stet_status st = stet_repo_get(e->r, node, STET_RECORD_NODE, &f.record, e->err);
    if (st != STET_OK)
        return st;
    stet_value name = stet_value_get(f.record, "kind");
    const char *text = stet_value_as_string(&name, NULL);
    stet_hash target;
    if (strcmp(text, "literal") == 0) {
        f.kind = LITERAL;
    } else if (strcmp(text, "builtin") == 0) {
        f.kind = BUILTIN;
        f.count = stet_value_count(stet_value_get(f.record, "inputs"));
    } else {
        f.kind = THROUGH;
        f.count = 1;
        if (strcmp(text, "call") == 0)
            st = result_of(e, node, &f.through);
        else if (stet_hash_of_text(stet_value_get(f.record, "target"), &target))
            st = root_of(e, target, &f.through);
    }
    if (st == STET_OK)
        *stet_vec_add(&e->stack) = f;
    else
        stet_value_release(f.record);
    return st;
}

static stet_hash input_of(const frame *f, size_t i) {
    stet_hash id = f->through;
    if (f->kind == BUILTIN)
        stet_hash_of_text(stet_value_at(stet_value_get(f->record, "inputs"), i), &id);
    return id;
}

static stet_hash datum_of(const eval *e, stet_hash node) {
    return e->data.at[stet_map_get(&e->done, node.bytes, sizeof node.bytes)->n - 1];
}

static stet_status end_node(eval *e, const frame *f, stet_hash *datum) {
    if (f->kind == LITERAL) {
        stet_hash_of_text(stet_value_get(f->record, "target"), datum);
        return STET_OK;
    }
    if (f->kind == THROUGH) {
        *datum = datum_of(e, f->through);
        return STET_OK;
    }
    stet_hashes arguments = {0};
    for (size_t i = 0; i < f->count; i++)
        *stet_vec_add(&arguments) = datum_of(e, input_of(f, i));
    stet_value function = stet_value_get(f->record, "function");
    stet_status st =
        stet_builtin_apply(e->r, stet_value_as_string(&function, NULL), arguments.at, f->count, datum, e->err);
    stet_vec_release(&arguments);
    return st;
}

static stet_status run(eval *e, stet_hash node, stet_hash *datum) {
    stet_status st = begin_node(e, node);
    while (e->stack.len && st == STET_OK) {
        frame *f = &e->stack.at[e->stack.len - 1];
        if (f->next < f->count) {
            stet_hash child = input_of(f, f->next++);
            stet_slot *slot = stet_map_get(&e->done, child.bytes, sizeof child.bytes);
            if (!slot || slot->n == 0)
                st = begin_node(e, child);
            continue;
        }
        st = end_node(e, f, datum);
        if (st != STET_OK)
            break;
        *stet_vec_add(&e->data) = *datum;
        stet_map_get(&e->done, f->node.bytes, sizeof f->node.bytes)->n = e->data.len;
        stet_value_release(f->record);
        e->stack.len--;
    }
    return st;
}

stet_status stet_repo_eval(stet_repo *r, stet_hash node, stet_hash *datum, stet_error *err) {
    eval e = {.r = r, .err = err};
    stet_hash out;
    stet_status st = run(&e, node, &out);
    for (size_t i = 0; i < e.stack.len; i++)
        stet_value_release(e.stack.at[i].record);
    stet_vec_release(&e.stack);
    stet_vec_release(&e.data);
    stet_map_release(&e.done);
    if (st == STET_OK)
        *datum = out;
    return st;
}

stet_status stet_repo_dag_value(stet_repo *r, stet_hash dag, stet_value *out, stet_error *err) {
    eval e = {.r = r, .err = err};
    stet_hash root, datum;
    stet_status st = root_of(&e, dag, &root);
    if (st == STET_OK)
        st = stet_repo_eval(r, root, &datum, err);
    return st == STET_OK ? stet_repo_value(r, datum, out, err) : st;
}
