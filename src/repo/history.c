/* history.c - commits of the repository: naming nodes, appending to a head, logs, differences. */

#include "repo/history.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "repo/execmap.h"
#include "repo/text.h"
#include "repo/travel.h"

#define MESSAGE_MAX ((size_t)64 << 10)

static stet_status try_ref(stet_repo *r, const char *prefix, const char *name, size_t len, bool *there, stet_hash *id,
                           stet_error *err) {
    char *full = stet_asprintf("%s%.*s", prefix, (int)len, name);
    stet_status st = stet_ref_wrong(full) ? STET_OK : stet_repo_ref(r, full, there, id, err);
    stet_free(full);
    return st;
}

/* A ref by any of its names. */
static stet_status find_ref(stet_repo *r, const char *text, size_t len, bool *there, stet_hash *id, stet_error *err) {
    static const char *const prefixes[] = {"", "refs/heads/", "refs/remotes/"};
    stet_status st = STET_OK;
    *there = false;
    if (len > STET_REF_MAX)
        return STET_OK;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && st == STET_OK && !*there; i++)
        st = try_ref(r, prefixes[i], text, len, there, id, err);
    return st;
}

static stet_status tree_of(stet_repo *r, stet_hash commit, stet_value *dags, stet_error *err) {
    stet_value c, t;
    stet_hash tree;
    stet_status st = stet_repo_get(r, commit, STET_RECORD_COMMIT, &c, err);
    if (st != STET_OK)
        return st;
    stet_hash_of_text(stet_value_get(c, "tree"), &tree);
    stet_value_release(c);
    st = stet_repo_get(r, tree, STET_RECORD_TREE, &t, err);
    if (st == STET_OK) {
        *dags = stet_value_retain(stet_value_get(t, "dags"));
        stet_value_release(t);
    }
    return st;
}

static stet_status find_dag(stet_repo *r, stet_hash commit, const char *name, stet_hash *id, stet_error *err) {
    stet_value dags, one;
    stet_buf normal = STET_BUF(0);
    stet_status st = tree_of(r, commit, &dags, err);
    if (st != STET_OK)
        return st;
    stet_text_nfc(name, strlen(name), &normal);
    if (stet_value_find(dags, stet_buf_cstr(&normal), normal.len, &one))
        stet_hash_of_text(one, id);
    else
        st = stet_fail(err, STET_NOT_FOUND, "commit %s has no DAG \"%.200s\"", stet_short(commit).text, name);
    stet_buf_release(&normal);
    stet_value_release(dags);
    return st;
}

static stet_status type_of(stet_repo *r, stet_hash id, stet_record_type *type, stet_error *err) {
    bool there;
    stet_object_row row;
    stet_status st = stet_object_row_of(r, id, &there, &row, err);
    if (st == STET_OK && !there)
        st = stet_fail(err, STET_CORRUPT, "object %s is not there", stet_hash_print(id).text);
    if (st == STET_OK)
        *type = row.type;
    return st;
}

stet_status stet_history_resolve(stet_repo *r, const char *text, stet_hash *id, stet_record_type *type,
                                 stet_error *err) {
    const char *colon = strchr(text, ':');
    bool there = false, nothing;
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK)
        st = find_ref(r, text, len, &there, id, err);
    if (st != STET_OK)
        return st;
    if (!there && len >= 6 && len <= 64 && strspn(text, "0123456789abcdef") >= len) {
        char prefix[65];
        memcpy(prefix, text, len);
        prefix[len] = 0;
        st = stet_repo_find(r, prefix, id, err);
    } else if (!there) {
        stet_fail(err, STET_NOT_FOUND, "there is no head, ref or object \"%.*s\"", len > 200 ? 200 : (int)len, text);
        stet_hint(err, "stet dag refs lists the refs; an object is named by at least 6 digits of its id");
        return STET_NOT_FOUND;
    }
    if (st == STET_OK && colon)
        st = find_dag(r, *id, colon + 1, id, err);
    return st == STET_OK ? type_of(r, *id, type, err) : st;
}

stet_status stet_history_resolve_commit(stet_repo *r, const char *text, stet_hash *id, stet_error *err) {
    stet_record_type type;
    stet_status st = stet_history_resolve(r, text, id, &type, err);
    return st == STET_OK && type != STET_RECORD_COMMIT
               ? stet_fail(err, STET_INVALID, "\"%.200s\" is a %s, and not a commit", text, stet_record_type_name(type))
               : st;
}

static stet_status map_of(stet_repo *r, stet_hash commit, stet_hash *out, stet_error *err) {
    stet_value v;
    stet_status st = stet_repo_get(r, commit, STET_RECORD_COMMIT, &v, err);
    if (st == STET_OK) {
        stet_hash_of_text(stet_value_get(v, "execs"), out);
        stet_value_release(v);
    }
    return st;
}

static stet_status index_execs(stet_repo *r, stet_hash *out, stet_error *err) {
    bool there;
    stet_hash commit;
    stet_status st = stet_repo_ref(r, STET_REPO_INDEX, &there, &commit, err);
    if (st == STET_OK && !there)
        return stet_execmap_set(r, NULL, NULL, 0, STET_OBJECT_KEPT, out, NULL, err);
    return st == STET_OK ? map_of(r, commit, out, err) : st;
}

static stet_status put_tree(stet_repo *r, stet_value dags, stet_hash *id, stet_error *err) {
    stet_value tree = stet_value_object();
    stet_value_put(&tree, "dags", stet_value_retain(dags));
    stet_value_put(&tree, "type", stet_value_string("tree"));
    stet_status st = stet_repo_put(r, tree, STET_RECORD_TREE, id, err);
    stet_value_release(tree);
    return st;
}

static stet_status put_commit(stet_repo *r, stet_hash tree, const stet_hash *parent, size_t parent_count,
                              const stet_buf *message, stet_hash *id, stet_error *err) {
    stet_hash execs;
    stet_status st = index_execs(r, &execs, err);
    if (st != STET_OK)
        return st;
    stet_value c = stet_value_object(), parents = stet_value_array();
    for (size_t i = 0; i < parent_count; i++)
        stet_value_push(&parents, stet_hash_text(parent[i]));
    stet_value_put(&c, "execs", stet_hash_text(execs));
    stet_value_put(&c, "message", stet_value_string_n(stet_buf_cstr(message), message->len));
    stet_value_put(&c, "parents", parents);
    stet_value_put(&c, "time", stet_value_int(stet_clock_ms()));
    stet_value_put(&c, "tree", stet_hash_text(tree));
    stet_value_put(&c, "type", stet_value_string("commit"));
    st = stet_repo_put(r, c, STET_RECORD_COMMIT, id, err);
    stet_value_release(c);
    return st;
}

/* Puts the name into the tree, or takes it out. `*same`: it is like that already. */
static stet_status change_tree(stet_value *dags, const stet_buf *name, const stet_hash *dag, bool *same,
                               stet_error *err) {
    stet_value old;
    bool there = stet_value_find(*dags, stet_buf_cstr(name), name->len, &old);
    stet_hash was = {{0}};
    if (there)
        stet_hash_of_text(old, &was);
    *same = dag && there && stet_hash_equal(was, *dag);
    if (!dag && !there)
        return stet_fail(err, STET_NOT_FOUND, "there is no DAG \"%.200s\" to take away", stet_buf_cstr(name));
    if (dag)
        stet_value_put_n(dags, stet_buf_cstr(name), name->len, stet_hash_text(*dag));
    else
        stet_value_remove(dags, stet_buf_cstr(name), name->len);
    return STET_OK;
}

static stet_status commit_in(stet_repo *r, const char *ref, const stet_buf *name, const stet_hash *dag,
                             const stet_buf *message, stet_hash *commit, stet_error *err) {
    bool there, same = false;
    stet_hash old, tree;
    stet_value dags = stet_value_object();
    stet_status st = stet_repo_ref(r, ref, &there, &old, err);
    if (st == STET_OK && there) {
        stet_value_release(dags);
        dags = stet_value_null();
        st = tree_of(r, old, &dags, err);
    }
    if (st == STET_OK)
        st = change_tree(&dags, name, dag, &same, err);
    if (st == STET_OK && same) {
        *commit = old;
    } else if (st == STET_OK) {
        st = put_tree(r, dags, &tree, err);
        if (st == STET_OK)
            st = put_commit(r, tree, &old, there, message, commit, err);
        if (st == STET_OK)
            st = stet_repo_swap(r, &(stet_ref_swap){ref, there ? &old : NULL, commit}, 1, err);
    }
    stet_value_release(dags);
    return st;
}

/* The ref of a head, and texts in normal form. */
static stet_status take_texts(const char *head, const char *name, const char *message, char **ref, stet_buf *normal,
                              stet_buf *said, stet_error *err) {
    stet_value text;
    *ref = stet_asprintf("refs/heads/%s", head);
    const char *wrong = stet_ref_wrong(*ref);
    stet_status st = STET_OK;
    if (wrong)
        st = stet_fail(err, STET_INVALID, "\"%.200s\" is no name of a head: %s", head, wrong);
    if (st == STET_OK && !*name)
        st = stet_fail(err, STET_INVALID, "the name of a DAG is not empty");
    if (st == STET_OK && (strlen(name) > STET_REF_MAX || strlen(message) > MESSAGE_MAX))
        st = stet_fail(err, STET_LIMIT, "a name has at most %d bytes, a message %zu", STET_REF_MAX, MESSAGE_MAX);
    for (int i = 0; i < 2 && st == STET_OK; i++) {
        const char *from = i ? message : name;
        st = stet_value_string_checked(from, strlen(from), &text, err);
        if (st == STET_OK) {
            stet_value_release(text);
            stet_text_nfc(from, strlen(from), i ? said : normal);
        }
    }
    return st;
}

stet_status stet_history_commit(stet_repo *r, const char *head, const char *name, const stet_hash *dag,
                                const char *message, stet_hash *commit, stet_error *err) {
    bool begun;
    stet_hash id;
    char *ref;
    stet_buf normal = STET_BUF(0), said = STET_BUF(0);
    stet_status st = take_texts(head, name, message, &ref, &normal, &said, err);
    if (st == STET_OK) {
        st = stet_repo_enter(r, &begun, err);
        if (st == STET_OK)
            st = stet_repo_leave(r, begun, commit_in(r, ref, &normal, dag, &said, &id, err), err);
    }
    stet_buf_release(&normal);
    stet_buf_release(&said);
    stet_free(ref);
    if (st == STET_OK)
        *commit = id;
    return st;
}

static bool note_commit(void *ctx, stet_hash id, stet_value record) {
    (void)record;
    stet_map_put(ctx, id.bytes, sizeof id.bytes, (stet_slot){.n = 1});
    return true;
}

typedef struct base_search {
    const stet_map *ours;
    bool found;
    stet_hash base;
} base_search;

static bool is_base(void *ctx, stet_hash id, stet_value record) {
    base_search *b = ctx;
    (void)record;
    b->found = stet_map_get(b->ours, id.bytes, sizeof id.bytes) != NULL;
    b->base = id;
    return !b->found;
}

/* The newest commit that is in the history of both. */
static stet_status find_base(stet_repo *r, stet_hash a, stet_hash b, bool *found, stet_hash *base, stet_error *err) {
    stet_map ours = {0};
    base_search search = {.ours = &ours};
    stet_status st = stet_history_log(r, a, SIZE_MAX, note_commit, &ours, err);
    if (st == STET_OK)
        st = stet_history_log(r, b, SIZE_MAX, is_base, &search, err);
    *found = search.found;
    *base = search.base;
    stet_map_release(&ours);
    return st;
}

static void take_name(stet_value *out, const char *name, size_t len, stet_value v) {
    if (stet_value_type(v) == STET_TYPE_NULL)
        stet_value_remove(out, name, len);
    else
        stet_value_put_n(out, name, len, stet_value_retain(v));
}

/* One name, as it is in the tree of theirs or of the base. */
static void merge_name(stet_value base, stet_value theirs, const char *name, size_t len, stet_merge_choice choice,
                       stet_value *out, stet_value *conflicts) {
    stet_value o = stet_value_null(), a = stet_value_null(), b = stet_value_null();
    stet_value_find(base, name, len, &o);
    stet_value_find(*out, name, len, &a);
    stet_value_find(theirs, name, len, &b);
    if (stet_value_equal(a, b) || stet_value_equal(b, o))
        return;
    if (stet_value_equal(a, o) || choice == STET_MERGE_THEIRS)
        take_name(out, name, len, b);
    else if (choice == STET_MERGE_REFUSE)
        stet_value_push(conflicts, stet_value_string_n(name, len));
}

static stet_status merge_trees(stet_repo *r, const stet_hash *base, stet_hash ours, stet_hash theirs,
                               stet_merge_choice choice, stet_value *out, stet_error *err) {
    stet_value o = stet_value_object(), a = stet_value_null(), b = stet_value_null(), conflicts = stet_value_array();
    stet_status st = base ? tree_of(r, *base, &o, err) : STET_OK;
    if (st == STET_OK)
        st = tree_of(r, ours, &a, err);
    if (st == STET_OK)
        st = tree_of(r, theirs, &b, err);
    for (int k = 0; k < 2 && st == STET_OK; k++) {
        stet_value names = k ? b : o;
        for (size_t i = 0; i < stet_value_count(names); i++) {
            size_t len;
            const char *name = stet_value_key_at(names, i, &len);
            if (k == 0 || !stet_value_find(o, name, len, &(stet_value){{0}}))
                merge_name(o, b, name, len, choice, &a, &conflicts);
        }
    }
    if (st == STET_OK && stet_value_count(conflicts)) {
        stet_value first = stet_value_at(conflicts, 0);
        stet_fail(err, STET_CONFLICT, "\"%.200s\"%s changed on both sides", stet_value_as_string(&first, NULL),
                  stet_value_count(conflicts) > 1 ? " and others" : "");
        stet_detail(err, "names", stet_value_retain(conflicts));
        st = STET_CONFLICT;
    }
    stet_value_release(o);
    stet_value_release(b);
    stet_value_release(conflicts);
    if (st == STET_OK)
        *out = a;
    else
        stet_value_release(a);
    return st;
}

static stet_status make_merge(stet_repo *r, stet_hash ours, stet_hash theirs, stet_merge_choice choice,
                              const stet_buf *message, stet_hash *commit, stet_error *err) {
    bool found;
    stet_hash base, tree, parents[2] = {ours, theirs};
    stet_value dags;
    stet_status st = find_base(r, ours, theirs, &found, &base, err);
    if (st == STET_OK)
        st = merge_trees(r, found ? &base : NULL, ours, theirs, choice, &dags, err);
    if (st != STET_OK)
        return st;
    st = put_tree(r, dags, &tree, err);
    stet_value_release(dags);
    return st == STET_OK ? put_commit(r, tree, parents, 2, message, commit, err) : st;
}

static stet_status merge_in(stet_repo *r, const char *ref, stet_hash other, stet_merge_choice choice, bool pins,
                            const stet_buf *message, stet_hash *commit, stet_merge_kind *kind, stet_error *err) {
    bool there, inside = false, forward = true;
    stet_hash now;
    stet_status st = stet_repo_ref(r, ref, &there, &now, err);
    if (st == STET_OK && there)
        st = stet_repo_is_ancestor(r, other, now, &inside, err);
    if (st == STET_OK && there && !inside)
        st = stet_repo_is_ancestor(r, now, other, &forward, err);
    if (st != STET_OK)
        return st;
    *kind = inside ? STET_MERGE_SAME : forward ? STET_MERGE_FORWARD : STET_MERGE_MADE;
    *commit = inside ? now : other;
    if (inside)
        return STET_OK;
    stet_hash execs;
    int64_t count = 0;
    if (pins && (st = map_of(r, other, &execs, err)) == STET_OK)
        st = stet_travel_merge(r, execs, &count, err);
    if (st == STET_OK && !forward)
        st = make_merge(r, now, other, choice, message, commit, err);
    return st == STET_OK ? stet_repo_swap(r, &(stet_ref_swap){ref, there ? &now : NULL, commit}, 1, err) : st;
}

stet_status stet_history_merge(stet_repo *r, const char *head, stet_hash other, stet_merge_choice choice, bool pins,
                               const char *message, stet_hash *commit, stet_merge_kind *kind, stet_error *err) {
    bool begun;
    stet_hash id;
    stet_merge_kind how = STET_MERGE_SAME;
    char *ref;
    stet_buf unused = STET_BUF(0), said = STET_BUF(0);
    stet_status st = take_texts(head, "-", message, &ref, &unused, &said, err);
    if (st == STET_OK) {
        st = stet_repo_enter(r, &begun, err);
        if (st == STET_OK)
            st = stet_repo_leave(r, begun, merge_in(r, ref, other, choice, pins, &said, &id, &how, err), err);
    }
    stet_buf_release(&unused);
    stet_buf_release(&said);
    stet_free(ref);
    if (st == STET_OK) {
        *commit = id;
        *kind = how;
    }
    return st;
}

stet_status stet_repo_is_ancestor(stet_repo *r, stet_hash old, stet_hash new, bool *out, stet_error *err) {
    stet_map seen = {0};
    stet_hashes stack = {0};
    stet_status st = stet_repo_has(r, old, out, err);
    if (st == STET_OK && *out) {
        *out = false;
        *stet_vec_add(&stack) = new;
    }
    while (stack.len && st == STET_OK && !*out) {
        stet_hash id = stack.at[--stack.len];
        bool added;
        stet_value v;
        *out = stet_hash_equal(id, old);
        stet_map_have(&seen, id.bytes, sizeof id.bytes, (stet_slot){.n = 1}, &added);
        if (*out || !added)
            continue;
        st = stet_repo_get(r, id, STET_RECORD_COMMIT, &v, err);
        if (st != STET_OK)
            break;
        stet_value parents = stet_value_get(v, "parents");
        for (size_t i = 0; i < stet_value_count(parents); i++) {
            stet_hash parent;
            if (stet_hash_of_text(stet_value_at(parents, i), &parent))
                *stet_vec_add(&stack) = parent;
        }
        stet_value_release(v);
    }
    stet_map_release(&seen);
    stet_vec_release(&stack);
    return st;
}

typedef struct pending {
    stet_hash id;
    stet_value record;
    int64_t time;
} pending;

typedef STET_VEC(pending) pendings;

static stet_status add_pending(stet_repo *r, stet_map *seen, pendings *all, stet_hash id, stet_error *err) {
    bool added;
    pending p = {.id = id};
    stet_map_have(seen, id.bytes, sizeof id.bytes, (stet_slot){.n = 1}, &added);
    if (!added)
        return STET_OK;
    stet_status st = stet_repo_get(r, id, STET_RECORD_COMMIT, &p.record, err);
    if (st == STET_OK) {
        p.time = stet_value_as_int(stet_value_get(p.record, "time"));
        *stet_vec_add(all) = p;
    }
    return st;
}

/* The newest; of two of one time the one with the larger id, so that the order is the same everywhere. */
static pending take_newest(pendings *all) {
    size_t best = 0;
    for (size_t i = 1; i < all->len; i++)
        if (all->at[i].time > all->at[best].time ||
            (all->at[i].time == all->at[best].time && stet_hash_compare(all->at[i].id, all->at[best].id) > 0))
            best = i;
    pending p = all->at[best];
    all->at[best] = all->at[--all->len];
    return p;
}

stet_status stet_history_log(stet_repo *r, stet_hash commit, size_t limit,
                             bool (*each)(void *ctx, stet_hash id, stet_value record), void *ctx, stet_error *err) {
    stet_map seen = {0};
    pendings all = {0};
    stet_status st = add_pending(r, &seen, &all, commit, err);
    while (all.len && limit && st == STET_OK) {
        pending p = take_newest(&all);
        limit = each(ctx, p.id, p.record) ? limit - 1 : 0;
        stet_value parents = stet_value_get(p.record, "parents");
        for (size_t i = 0; i < stet_value_count(parents) && st == STET_OK && limit; i++) {
            stet_hash parent;
            if (stet_hash_of_text(stet_value_at(parents, i), &parent))
                st = add_pending(r, &seen, &all, parent, err);
        }
        stet_value_release(p.record);
    }
    for (size_t i = 0; i < all.len; i++)
        stet_value_release(all.at[i].record);
    stet_vec_release(&all);
    stet_map_release(&seen);
    return st;
}

static stet_value change_row(const char *key, stet_value name, stet_value before, stet_value after) {
    stet_value row = stet_value_object();
    bool had = stet_value_type(before) != STET_TYPE_NULL, has = stet_value_type(after) != STET_TYPE_NULL;
    stet_value_put(&row, key, name);
    stet_value_put(&row, "change", stet_value_string(had && has ? "changed" : has ? "added" : "removed"));
    stet_value_put(&row, "before", before);
    stet_value_put(&row, "after", after);
    return row;
}

static stet_value diff_dags(stet_value a, stet_value b) {
    stet_value rows = stet_value_array(), other;
    for (size_t i = 0, j = 0; i < stet_value_count(a) || j < stet_value_count(b);) {
        size_t la = 0, lb = 0;
        const char *ka = stet_value_key_at(a, i, &la), *kb = stet_value_key_at(b, j, &lb);
        size_t common = la < lb ? la : lb;
        int order = !ka ? 1 : !kb ? -1 : memcmp(ka, kb, common);
        order = order ? order : ka && kb ? (la > lb) - (la < lb) : order;
        stet_value name = order <= 0 ? stet_value_string_n(ka, la) : stet_value_string_n(kb, lb);
        stet_value before = order <= 0 ? stet_value_retain(stet_value_at(a, i)) : stet_value_null();
        other = order >= 0 ? stet_value_retain(stet_value_at(b, j)) : stet_value_null();
        if (stet_value_equal(before, other)) {
            stet_value_release(name);
            stet_value_release(before);
            stet_value_release(other);
        } else {
            stet_value_push(&rows, change_row("name", name, before, other));
        }
        i += order <= 0;
        j += order >= 0;
    }
    return rows;
}

static stet_status diff_pins(stet_repo *r, stet_hash from, stet_hash to, size_t limit, stet_value *out,
                             stet_error *err) {
    stet_hash a, b;
    stet_pins changed = {0};
    stet_value rows = stet_value_array();
    stet_status st = map_of(r, from, &a, err);
    if (st == STET_OK)
        st = map_of(r, to, &b, err);
    if (st == STET_OK)
        st = stet_execmap_diff(r, &a, &b, &changed, err);
    for (size_t i = 0; i < changed.len && i < limit && st == STET_OK; i++) {
        bool there;
        stet_hash old;
        st = stet_execmap_get(r, a, changed.at[i].node, &there, &old, err);
        if (st == STET_OK)
            stet_value_push(&rows,
                            change_row("node", stet_hash_text(changed.at[i].node),
                                       there ? stet_hash_text(old) : stet_value_null(),
                                       stet_hash_is_zero(changed.at[i].exec) ? stet_value_null()
                                                                             : stet_hash_text(changed.at[i].exec)));
    }
    stet_value_put(out, "pins", rows);
    stet_value_put(out, "pinCount", stet_value_int((int64_t)changed.len));
    stet_vec_release(&changed);
    return st;
}

stet_status stet_history_diff(stet_repo *r, stet_hash from, stet_hash to, size_t limit, stet_value *out,
                              stet_error *err) {
    stet_value a = stet_value_null(), b = stet_value_null(), result = stet_value_object();
    stet_status st = tree_of(r, from, &a, err);
    if (st == STET_OK)
        st = tree_of(r, to, &b, err);
    if (st == STET_OK) {
        stet_value_put(&result, "dags", diff_dags(a, b));
        st = diff_pins(r, from, to, limit, &result, err);
    }
    stet_value_release(a);
    stet_value_release(b);
    if (st == STET_OK)
        *out = result;
    else
        stet_value_release(result);
    return st;
}
