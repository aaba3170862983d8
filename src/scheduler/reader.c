/* reader.c - reads cells with links followed, through a transaction that records each read. */

#include "scheduler/reader.h"

#include <string.h>

#include "graph/cells.h"
#include "memory/observe.h"

/* Where a read goes: a document and a path in its envelope. */
typedef struct target {
    stet_space *space; /* NULL: the transaction's */
    stet_docname name;
    stet_path path;
    stet_value hold;      /* keeps the strings of `name` alive */
    stet_value id, scope; /* borrowed from it; short strings lie in these */
} target;

/* The links that were followed, each with the one before it: what a chain that is too long, or a circle, consists of.
 */
#define NO_STEP SIZE_MAX
typedef struct step {
    stet_value link;
    size_t from; /* NO_STEP: the first */
} step;
typedef STET_VEC(step) steps;

static size_t add_step(steps *s, stet_value link, size_t from) {
    *stet_vec_add(s) = (step){stet_value_retain(link), from};
    return s->len - 1;
}

static void steps_release(steps *s) {
    for (size_t i = 0; i < s->len; i++)
        stet_value_release(s->at[i].link);
    stet_vec_release(s);
}

static char *link_text(stet_value link) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_buf b = STET_BUF(256);
    if (stet_link_read(link, &l, &path)) {
        if (l.space)
            stet_buf_printf(&b, "%s:", l.space);
        stet_buf_str(&b, l.id);
        stet_path_print(stet_path_ref(&path), &b);
    }
    char *text = stet_strndup(b.data ? b.data : "", b.len);
    stet_path_release(&path);
    stet_buf_release(&b);
    return text;
}

/* Names the circle, from its smallest member on so that everybody who meets it says the same, or the chain. */
static stet_status too_many(const steps *s, size_t last, stet_error *err) {
    enum { SHOWN = 3 }; /* of a chain, at its beginning and at its end */
    STET_VEC(char *) names = {0};
    stet_buf b = STET_BUF(2048);
    for (size_t i = last; i != NO_STEP; i = s->at[i].from)
        *stet_vec_add(&names) = link_text(s->at[i].link);
    size_t turn = 1; /* names are from the last to the first: the last one comes again after so many */
    while (turn < names.len && strcmp(names.at[0], names.at[turn]) != 0)
        turn++;
    bool circle = turn < names.len;
    if (circle) {
        size_t least = 0;
        for (size_t i = 1; i < turn; i++)
            least = strcmp(names.at[i], names.at[least]) < 0 ? i : least;
        for (size_t i = 0; i <= turn; i++)
            stet_buf_printf(&b, "%s%s", i ? " -> " : "", names.at[(least + turn - i % turn) % turn]);
    } else {
        for (size_t i = names.len; i-- > 0;) {
            if (names.len > 2 * SHOWN && i == SHOWN)
                stet_buf_str(&b, " -> ...");
            if (names.len <= 2 * SHOWN || i < SHOWN || i >= names.len - SHOWN)
                stet_buf_printf(&b, "%s%s", i + 1 < names.len ? " -> " : "", names.at[i]);
        }
    }
    if (circle)
        stet_fail(err, STET_LIMIT, "links lead in a circle: %s", stet_buf_cstr(&b));
    else
        stet_fail(err, STET_LIMIT, "more than %d links one behind the other: %s", STET_READER_MAX_HOPS,
                  stet_buf_cstr(&b));
    stet_hint(err, circle ? "point one of them at a document" : "point one of the first at what the last leads to");
    for (size_t i = 0; i < names.len; i++)
        stet_free(names.at[i]);
    stet_vec_release(&names);
    stet_buf_release(&b);
    return STET_LIMIT;
}

/* "m[b].k" of "piece:NAME:node:m[b].k", or NULL. */
static const char *part_of(const char *id) {
    static const char *const kinds[] = {"node:", "child:", "cell:"};
    const char *colon = strncmp(id, "piece:", 6) == 0 ? strchr(id + 6, ':') : NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && colon; i++)
        if (strncmp(colon + 1, kinds[i], strlen(kinds[i])) == 0)
            return colon + 1 + strlen(kinds[i]);
    return NULL;
}

char *stet_reader_coordinator(const stet_docname *doc, const char *piece, const char *node, const char **at) {
    const char *id = doc->id;
    const char *part = part_of(id);
    if (!part)
        return NULL;
    size_t name = 6 + strcspn(id + 6, ":");
    bool own = piece && strcspn(piece, "@") == name - 6 && strncmp(piece, id + 6, name - 6) == 0 &&
               strcmp(stet_piece_scope(piece), doc->scope ? doc->scope : "") == 0;
    while ((*at = strchr(*at ? *at + 1 : part, '['))) {
        size_t len = (size_t)(*at - part);
        if (!own || strncmp(node, part, len) != 0 || (node[len] != '[' && node[len]))
            return stet_asprintf("%.*s:node:%.*s", (int)name, id, (int)len, part);
    }
    return NULL;
}

/* Whoever has read anything there runs behind it already, and may have looked at less than its keys. */
static stet_status read_coordinator(stet_reader *r, const target *t, const char *id, stet_error *err) {
    stet_docname name = {id, t->name.scope};
    stet_value ignored;
    stet_error mine = STET_ERROR_INIT;
    if (stet_tx_has_read(r->tx, t->space, &name))
        return STET_OK;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_status status = stet_tx_read(r->tx, t->space, &name, stet_path_ref(&path), STET_SHALLOW, &ignored, &mine);
    stet_path_release(&path);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* Documents of files in another space are what files are as long as that space follows them, and what it follows has a
 * document, or is no file. So of one that is not there nothing can be said. */
static stet_status refuse_unseen(const stet_reader *r, const target *t, stet_status status, stet_error *err) {
    stet_value ignored;
    if (status != STET_NOT_FOUND || !t->space || !stet_cells_outside(t->name.id) ||
        stet_tx_peek(r->tx, t->space, &t->name, STET_PATH_ROOT, &ignored, NULL) == STET_OK)
        return status;
    stet_error_clear(err);
    stet_fail(err, STET_INVALID, "space \"%s\" knows nothing of \"%.200s\": each space has its own documents of files",
              stet_space_name(t->space), t->name.id);
    stet_hint(err, "leave \"space\" out of the link, or let a node of that space read it");
    return STET_INVALID;
}

static stet_status read_recorded(stet_reader *r, const target *t, stet_pathref path, stet_read_kind kind,
                                 stet_value *out, stet_error *err) {
    if (!r->record)
        return refuse_unseen(r, t, stet_tx_peek(r->tx, t->space, &t->name, path, out, err), err);
    const char *at = NULL;
    stet_status status = STET_OK;
    for (char *id; status == STET_OK && (id = stet_reader_coordinator(&t->name, r->piece, r->node, &at));) {
        status = read_coordinator(r, t, id, err);
        stet_free(id);
    }
    if (status == STET_OK)
        status = refuse_unseen(r, t, stet_tx_read(r->tx, t->space, &t->name, path, kind, out, err), err);
    return status;
}

/* That there is no such space is what was read (memory/observe.h). STET_NOT_FOUND, unless the read failed. */
static stet_status read_absent_space(stet_reader *r, const char *name, stet_error *err) {
    stet_value ignored;
    stet_error mine = STET_ERROR_INIT;
    char *id = stet_asprintf(STET_SPACE_PREFIX "%s", name);
    stet_status status =
        stet_tx_read(r->tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, STET_RECURSIVE, &ignored, &mine);
    stet_free(id);
    if (status == STET_OK || status == STET_NOT_FOUND) {
        status = STET_NOT_FOUND;
    } else if (err) {
        stet_error_clear(err);
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    return status;
}

/* Points `t` at what a link leads to, plus `rest`. A link without a space leads to the space that it lies in: `t` keeps
 * the one it has. The link's value must stay alive while `t` is used. */
static stet_status follow(stet_reader *r, stet_value link, stet_pathref rest, target *t, stet_error *err) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    if (!stet_link_read(link, &l, &path)) {
        stet_path_release(&path);
        return stet_fail(err, STET_INVALID, "a link that makes no sense: it needs an id, and a path of keys");
    }
    stet_buf_add(&path.buf, rest.bytes, rest.len);
    if (++r->links > STET_READER_MAX_LINKS) {
        stet_path_release(&path);
        return stet_fail(err, STET_LIMIT, "more than %d links in one read", STET_READER_MAX_LINKS);
    }
    stet_space *space = t->space;
    if (l.space) {
        stet_status status = r->space(r->ctx, l.space, &space, err);
        if (status == STET_NOT_FOUND && r->record)
            status = read_absent_space(r, l.space, err);
        if (status != STET_OK) {
            stet_path_release(&path);
            return status;
        }
    }
    stet_value_release(t->hold);
    stet_path_release(&t->path);
    t->hold = stet_value_array();
    stet_value_push(&t->hold, stet_value_retain(l.id_value));
    stet_value_push(&t->hold, stet_value_retain(l.scope_value));
    /* Short strings live in the value that holds them: point into the copy that is kept. */
    t->space = space;
    t->path = path;
    t->name = (stet_docname){NULL, NULL};
    return STET_OK;
}

/* Moves `t` on until no link is on its way any more; each link met is read. */
static stet_status move_on(stet_reader *r, target *t, steps *way, size_t *at_step, stet_error *err) {
    for (int hops = 0;; hops++) {
        if (hops > STET_READER_MAX_HOPS)
            return too_many(way, *at_step, err);
        stet_value root;
        if (stet_value_type(t->hold) == STET_TYPE_ARRAY) {
            t->id = stet_value_at(t->hold, 0);
            t->scope = stet_value_at(t->hold, 1);
            t->name.id = stet_value_as_string(&t->id, NULL);
            t->name.scope =
                stet_value_type(t->scope) == STET_TYPE_STRING ? stet_value_as_string(&t->scope, NULL) : NULL;
        }
        stet_pathref path = stet_path_ref(&t->path);
        stet_status status = stet_tx_peek(r->tx, t->space, &t->name, STET_PATH_ROOT, &root, NULL);
        if (status != STET_OK)
            return STET_OK; /* nothing there, or nothing to be had: whoever reads or writes will be told */
        size_t cursor = 0, key_len;
        const char *key;
        stet_buf scratch = STET_BUF(0);
        stet_value cur = root, link = stet_value_null();
        size_t at = 0;
        bool linked = false, there = true;
        while (there && !linked) {
            if (at > 0 && stet_link_is(cur, NULL)) {
                linked = true;
                link = cur;
                break;
            }
            at = cursor;
            if (!stet_path_next(path, &cursor, &scratch, &key, &key_len))
                break;
            size_t index;
            if (stet_value_type(cur) == STET_TYPE_OBJECT)
                there = stet_value_find(cur, key, key_len, &cur);
            else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, key_len, &index) &&
                     index < stet_value_count(cur))
                cur = stet_value_at(cur, index);
            else
                there = false;
            at = cursor;
        }
        stet_buf_release(&scratch);
        if (!linked)
            return STET_OK;
        /* The link was looked at: that is a read, too. */
        stet_pathref upto = {path.bytes, at};
        stet_value seen;
        status = read_recorded(r, t, upto, STET_RECURSIVE, &seen, err);
        if (status != STET_OK)
            return status;
        stet_value keep = stet_value_retain(link);
        *at_step = add_step(way, link, *at_step);
        stet_path rest = STET_PATH_INIT;
        stet_buf_add(&rest.buf, path.bytes + at, path.len - at);
        status = follow(r, keep, stet_path_ref(&rest), t, err);
        stet_path_release(&rest);
        stet_value_release(keep);
        if (status != STET_OK)
            return status;
    }
}

static stet_status settle_target(stet_reader *r, target *t, stet_error *err) {
    steps way = {0};
    size_t last = NO_STEP;
    stet_status status = move_on(r, t, &way, &last, err);
    steps_release(&way);
    return status;
}

/* Reads what `t` points at, following links on the way. */
static stet_status read_target(stet_reader *r, target *t, stet_read_kind kind, stet_value *out, stet_error *err) {
    stet_status status = settle_target(r, t, err);
    return status == STET_OK ? read_recorded(r, t, stet_path_ref(&t->path), kind, out, err) : status;
}

static void target_release(target *t) {
    stet_value_release(t->hold);
    stet_path_release(&t->path);
}

static bool plain(stet_value v) {
    return stet_value_type(v) != STET_TYPE_ARRAY && stet_value_type(v) != STET_TYPE_OBJECT;
}

typedef struct frame {
    stet_value from, to;
    size_t next;
    int hops;
    stet_space *space; /* that `from` lies in; NULL: the transaction's */
    size_t step;       /* the link that led here, or NO_STEP */
} frame;

/* Is there a link or, in a binding, a literal anywhere in it? */
static bool has_links(stet_value v, bool binding) {
    if (plain(v))
        return false;
    STET_VEC(frame) stack = {0};
    bool found = false;
    *stet_vec_add(&stack) = (frame){.from = v};
    while (stack.len > 0 && !found) {
        frame *f = &stack.at[stack.len - 1];
        if (f->next == 0 && (stet_link_is(f->from, NULL) || (binding && stet_binding_is_literal(f->from, NULL))))
            found = true;
        size_t n = stet_value_count(f->from);
        while (f->next < n && plain(stet_value_at(f->from, f->next)))
            f->next++;
        if (f->next >= n) {
            stack.len--;
            continue;
        }
        stet_value child = stet_value_at(f->from, f->next++);
        *stet_vec_add(&stack) = (frame){.from = child};
    }
    stet_vec_release(&stack);
    return found;
}

bool stet_reader_has_links(stet_value v) {
    return has_links(v, false);
}

/* A link that stays in a value which is taken out of its space names that space from then on. */
static stet_value named(stet_value link, stet_space *space) {
    stet_value inner;
    if (space && stet_link_is(link, &inner) && stet_value_type(stet_value_get(inner, "space")) != STET_TYPE_STRING)
        stet_link_put(&link, "space", stet_value_string(stet_space_name(space)));
    return link;
}

typedef enum { OF_BINDING, OF_VALUE, OF_RAW } links_of;

/* Copies `v`, which lies in `space`, with its links replaced, or (OF_RAW) kept; the copy belongs to the reader. */
static stet_status materialize(stet_reader *r, stet_space *space, stet_value v, links_of of, stet_value *out,
                               stet_error *err) {
    bool binding = of == OF_BINDING;
    if ((of == OF_RAW && !space) || !has_links(v, binding)) {
        *out = v;
        return STET_OK;
    }
    STET_VEC(frame) stack = {0};
    steps way = {0};
    stet_status status = STET_OK;
    stet_value done = stet_value_null();
    bool have = false;
    *stet_vec_add(&stack) = (frame){v, stet_value_retain(v), 0, 0, space, NO_STEP};
    while (stack.len > 0 && status == STET_OK) {
        frame *f = &stack.at[stack.len - 1];
        if (have) {
            size_t i = f->next++, len;
            if (stet_value_type(f->to) == STET_TYPE_ARRAY) {
                stet_value_put_at(&f->to, i, done);
            } else {
                const char *key = stet_value_key_at(f->from, i, &len);
                stet_value_put_n(&f->to, key, len, done);
            }
            have = false;
        }
        stet_value inner;
        stet_link l;
        if (f->next == 0 && binding && stet_binding_is_literal(f->from, &inner)) {
            stet_value_retain(inner);
            stet_value_release(f->to);
            done = inner;
            have = true;
            stack.len--;
            continue;
        }
        if (f->next == 0 && stet_link_is(f->from, NULL)) {
            stet_path ignored = STET_PATH_INIT;
            bool cell = of == OF_RAW || (stet_link_read(f->from, &l, &ignored) && l.as_cell);
            stet_path_release(&ignored);
            if (cell) {
                done = named(f->to, f->space);
                have = true;
                stack.len--;
                continue;
            }
            size_t last = add_step(&way, f->from, f->step);
            if (f->hops >= STET_READER_MAX_HOPS) {
                status = too_many(&way, last, err);
                break;
            }
            target t = {.space = f->space, .path = STET_PATH_INIT, .hold = stet_value_null()};
            stet_value got = stet_value_null();
            status = follow(r, f->from, STET_PATH_ROOT, &t, err);
            if (status == STET_OK)
                status = move_on(r, &t, &way, &last, err);
            if (status == STET_OK)
                status = read_recorded(r, &t, stet_path_ref(&t.path), STET_RECURSIVE, &got, err);
            target_release(&t);
            if (status == STET_NOT_FOUND) {
                if (err)
                    stet_error_clear(err);
                got = stet_value_null();
                status = STET_OK;
            }
            if (status != STET_OK)
                break;
            stet_value_release(f->to);
            int hops = f->hops + 1;
            stack.len--;
            /* What a link leads to is a value: nothing in it is a binding, but it may hold links. */
            *stet_vec_add(&stack) = (frame){got, stet_value_retain(got), 0, hops, t.space, last};
            if (!has_links(got, false)) {
                done = stack.at[--stack.len].to;
                have = true;
            }
            continue;
        }
        size_t n = stet_value_count(f->from);
        while (f->next < n && plain(stet_value_at(f->from, f->next)))
            f->next++;
        if (f->next >= n) {
            done = f->to;
            have = true;
            stack.len--;
            continue;
        }
        stet_value child = stet_value_at(f->from, f->next);
        frame below = {child, stet_value_retain(child), 0, f->hops, f->space, f->step};
        *stet_vec_add(&stack) = below;
    }
    for (size_t i = 0; i < stack.len; i++)
        stet_value_release(stack.at[i].to);
    stet_vec_release(&stack);
    steps_release(&way);
    if (status != STET_OK) {
        if (have)
            stet_value_release(done);
        return status;
    }
    *stet_vec_add(&r->owned) = done;
    *out = done;
    return STET_OK;
}

stet_status stet_reader_cell(stet_reader *r, stet_space *space, const stet_docname *name, stet_pathref path,
                             stet_read_kind kind, stet_value *out, stet_error *err) {
    target t = {.space = space, .name = *name, .path = STET_PATH_INIT, .hold = stet_value_null()};
    stet_value got;
    stet_path_set(&t.path, path);
    stet_status status = read_target(r, &t, kind, &got, err);
    target_release(&t);
    if (status != STET_OK)
        return status;
    if (kind == STET_SHALLOW) {
        *out = got;
        return STET_OK;
    }
    return materialize(r, t.space, got, OF_VALUE, out, err);
}

/* Links of a value, each with the space that it lies in. */
typedef struct found_link {
    stet_value link;
    stet_space *space;
} found_link;
typedef STET_VEC(found_link) found_links;

/* Adds the links in `v` that were not met before. */
static void find_links(stet_value v, stet_space *space, stet_map *met, found_links *out) {
    STET_VEC(frame) stack = {0};
    stet_buf key = STET_BUF(0);
    if (!plain(v))
        *stet_vec_add(&stack) = (frame){.from = v};
    while (stack.len > 0) {
        frame *f = &stack.at[stack.len - 1];
        if (f->next == 0 && stet_link_is(f->from, NULL)) {
            char *text = stet_json_print(f->from, STET_JSON_CANONICAL, NULL);
            stet_buf_clear(&key);
            stet_buf_printf(&key, "%s\n%s", space ? stet_space_uuid(space) : "", text);
            stet_free(text);
            if (!stet_map_get(met, key.data, key.len)) {
                stet_map_put(met, key.data, key.len, (stet_slot){.n = 1});
                *stet_vec_add(out) = (found_link){stet_value_retain(f->from), space};
            }
            stack.len--;
            continue;
        }
        size_t n = stet_value_count(f->from);
        while (f->next < n && plain(stet_value_at(f->from, f->next)))
            f->next++;
        if (f->next >= n) {
            stack.len--;
            continue;
        }
        stet_value child = stet_value_at(f->from, f->next++);
        *stet_vec_add(&stack) = (frame){.from = child};
    }
    stet_buf_release(&key);
    stet_vec_release(&stack);
}

/* Does a link stay a link for whoever reads it? */
static bool stays_link(stet_value link) {
    stet_link l;
    stet_path ignored = STET_PATH_INIT;
    bool cell = stet_link_read(link, &l, &ignored) && l.as_cell;
    stet_path_release(&ignored);
    return cell;
}

void stet_reader_visit(stet_reader *r, const stet_docname *name, stet_pathref path) {
    found_links links = {0};
    stet_map met = {0};
    stet_value got;
    stet_error ignored = STET_ERROR_INIT;
    target t = {.name = *name, .path = STET_PATH_INIT, .hold = stet_value_null()};
    stet_path_set(&t.path, path);
    if (read_target(r, &t, STET_RECURSIVE, &got, &ignored) == STET_OK)
        find_links(got, t.space, &met, &links);
    target_release(&t);
    for (size_t i = 0; i < links.len; i++) {
        target next = {.space = links.at[i].space, .path = STET_PATH_INIT, .hold = stet_value_null()};
        stet_error_clear(&ignored);
        if (!stays_link(links.at[i].link) && follow(r, links.at[i].link, STET_PATH_ROOT, &next, &ignored) == STET_OK &&
            read_target(r, &next, STET_RECURSIVE, &got, &ignored) == STET_OK)
            find_links(got, next.space, &met, &links);
        target_release(&next);
        stet_value_release(links.at[i].link);
    }
    stet_error_clear(&ignored);
    stet_vec_release(&links);
    stet_map_release(&met);
}

stet_status stet_reader_value(stet_reader *r, stet_value v, stet_value *out, stet_error *err) {
    return materialize(r, NULL, v, OF_VALUE, out, err);
}

static stet_status read_binding(stet_reader *r, stet_value binding, stet_pathref path, stet_read_kind kind, bool raw,
                                stet_value *out, stet_error *err) {
    stet_value cur = binding, inner;
    size_t cursor = 0, key_len;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    bool literal = false;
    for (;;) {
        size_t at = cursor;
        if (!literal && stet_link_is(cur, NULL)) {
            target t = {.path = STET_PATH_INIT, .hold = stet_value_null()};
            stet_value got;
            stet_buf_release(&scratch);
            stet_pathref rest = {path.bytes + at, path.len - at};
            stet_status status = follow(r, cur, rest, &t, err);
            if (status == STET_OK)
                status = read_target(r, &t, kind, &got, err);
            target_release(&t);
            if (status != STET_OK)
                return status;
            if (kind == STET_SHALLOW) {
                *out = got;
                return STET_OK;
            }
            return materialize(r, t.space, got, raw ? OF_RAW : OF_VALUE, out, err);
        }
        if (!literal && stet_binding_is_literal(cur, &inner)) {
            cur = inner;
            literal = true;
            continue;
        }
        if (!stet_path_next(path, &cursor, &scratch, &key, &key_len))
            break;
        size_t index;
        bool there = false;
        if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, key_len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, key_len, &index) &&
                 index < stet_value_count(cur)) {
            cur = stet_value_at(cur, index);
            there = true;
        }
        if (!there) {
            stet_buf_release(&scratch);
            return stet_fail(err, STET_NOT_FOUND, "no such input");
        }
    }
    stet_buf_release(&scratch);
    if (literal || raw || kind == STET_SHALLOW) {
        *out = cur;
        return STET_OK;
    }
    return materialize(r, NULL, cur, OF_BINDING, out, err);
}

stet_status stet_reader_place_read(stet_reader *r, const stet_reader_place *at, stet_error *err) {
    stet_value ignored;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_tx_read(r->tx, at->space, &(stet_docname){at->id, at->scope}, stet_path_ref(&at->path),
                                      STET_SHALLOW, &ignored, &mine);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

void stet_reader_place_release(stet_reader_place *p) {
    stet_free(p->id);
    stet_free(p->scope);
    stet_path_release(&p->path);
    *p = (stet_reader_place){.path = STET_PATH_INIT};
}

stet_status stet_reader_locate(stet_reader *r, stet_value binding, stet_pathref path, stet_reader_place *out,
                               stet_error *err) {
    stet_value cur = binding;
    size_t cursor = 0, key_len, index;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    bool there = true;
    while (there && !stet_link_is(cur, NULL)) {
        if (!stet_path_next(path, &cursor, &scratch, &key, &key_len) || stet_binding_is_literal(cur, NULL))
            there = false;
        else if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, key_len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, key_len, &index) &&
                 index < stet_value_count(cur))
            cur = stet_value_at(cur, index);
        else
            there = false;
    }
    stet_buf_release(&scratch);
    stet_link l;
    stet_path ignored = STET_PATH_INIT;
    bool cell = there && stet_link_read(cur, &l, &ignored) && l.as_cell;
    stet_path_release(&ignored);
    if (!cell)
        return stet_fail(err, STET_INVALID,
                         "no cell is bound there: only an input with \"asCell\": true is written to");
    target t = {.path = STET_PATH_INIT, .hold = stet_value_null()};
    stet_status status = follow(r, cur, (stet_pathref){path.bytes + cursor, path.len - cursor}, &t, err);
    if (status == STET_OK)
        status = settle_target(r, &t, err);
    if (status == STET_OK) {
        *out =
            (stet_reader_place){t.space, stet_strdup(t.name.id), stet_strdup(t.name.scope ? t.name.scope : ""), t.path};
        t.path = (stet_path)STET_PATH_INIT;
    }
    target_release(&t);
    return status;
}

stet_status stet_reader_binding(stet_reader *r, stet_value binding, stet_pathref path, stet_read_kind kind,
                                stet_value *out, stet_error *err) {
    return read_binding(r, binding, path, kind, false, out, err);
}

stet_status stet_reader_raw(stet_reader *r, stet_value binding, stet_pathref path, stet_value *out, stet_error *err) {
    return read_binding(r, binding, path, STET_RECURSIVE, true, out, err);
}

void stet_reader_release(stet_reader *r) {
    for (size_t i = 0; i < r->owned.len; i++)
        stet_value_release(r->owned.at[i]);
    stet_vec_release(&r->owned);
    r->links = 0;
}
