/* subject.c - what a word means: a piece, an action, a document, a file. */

#include "operation/subject.h"

#include <string.h>

#include "base/text.h"
#include "drive/maker.h"
#include "files/glob.h"
#include "files/path.h"
#include "graph/child.h"
#include "graph/near.h"
#include "os/file.h"
#include "scheduler/standing.h"

#define PIECES_MAX  10000 /* pieces that are searched for a node */
#define READERS_MAX 1000  /* readers that are listed */

void piece_subject_release(piece_subject *s) {
    stet_piece_free(s->piece);
    stet_free(s->node);
    stet_free(s->document);
    stet_free(s->path);
    *s = (piece_subject){0};
}

static bool has_node(stet_space *space, int64_t branch, const stet_piece *p, const char *node) {
    stet_value row;
    if (stet_piece_row(space, branch, p, node, &row, NULL) != STET_OK)
        return false;
    stet_value_release(row);
    return true;
}

bool piece_split(stet_space *space, int64_t branch, const char *word, char **piece, char **node) {
    bool found = false;
    for (const char *slash = strchr(word, '/'); slash && !found;
         slash = strchr(slash + 1, '/')) { /* a scope may hold some */
        stet_piece *p = NULL;
        char *name = stet_strndup(word, (size_t)(slash - word));
        found = *name && stet_piece_load(space, branch, name, -1, &p, NULL) == STET_OK &&
                has_node(space, branch, p, slash + 1);
        if (found) {
            *piece = stet_strdup(p->name);
            *node = stet_strdup(slash + 1);
        }
        stet_piece_free(p);
        stet_free(name);
    }
    return found;
}

/* An action by its piece and its id. */
static bool take_action(piece_call *c, const char *piece, const char *node, piece_subject *out) {
    out->piece = NULL;
    if (stet_piece_load(c->space, c->branch, piece, -1, &out->piece, NULL) != STET_OK)
        return false;
    if (!has_node(c->space, c->branch, out->piece, node)) {
        stet_piece_free(out->piece);
        out->piece = NULL;
        return false;
    }
    out->node = stet_strdup(node);
    return true;
}

static bool take_split(piece_call *c, const char *word, piece_subject *out) {
    char *piece = NULL, *node = NULL;
    bool found = piece_split(c->space, c->branch, word, &piece, &node) && take_action(c, piece, node, out);
    stet_free(piece);
    stet_free(node);
    return found;
}

/* The pieces that have a node of this name. The caller releases them. */
static stet_value pieces_with(piece_call *c, stet_value args, const char *node) {
    bool more;
    stet_value names = piece_names_in(c, args, PIECES_MAX, &more), out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(names); i++) {
        stet_value name = stet_value_at(names, i);
        stet_piece *p = NULL;
        if (stet_piece_load(c->space, c->branch, stet_value_as_string(&name, NULL), -1, &p, NULL) == STET_OK &&
            has_node(c->space, c->branch, p, node))
            stet_value_push(&out, stet_value_retain(name));
        stet_piece_free(p);
    }
    stet_value_release(names);
    return out;
}

/* False: no piece has such a node; or the failure sticks, because several have. */
static bool take_node(piece_call *c, stet_value args, const char *word, piece_subject *out) {
    stet_value with = pieces_with(c, args, word), first = stet_value_at(with, 0);
    size_t count = stet_value_count(with), common = 0;
    stet_value hold, name, only = stet_value_null();
    for (size_t i = 0; i < count; i++) {
        name = stet_value_at(with, i);
        if (*stet_piece_scope(stet_value_as_string(&name, NULL)) == 0) {
            only = name;
            common++;
        }
    }
    /* Without a scope the common one is meant, as everywhere. */
    if (count > 1 && common == 1 && !stet_value_text_at(args, "scope", &hold)) {
        first = only;
        count = 1;
    }
    bool found = count == 1 && take_action(c, stet_value_as_string(&first, NULL), word, out);
    if (count > 1) {
        stet_value second = stet_value_at(with, 1);
        c->status = stet_fail(c->err, STET_INVALID, "%zu pieces have a node \"%s\"", count, word);
        stet_hint(c->err, "say which: %s/%s or %s/%s", stet_value_text(&first, ""), word, stet_value_text(&second, ""),
                  word);
    }
    stet_value_release(with);
    return found;
}

static bool is_known(piece_call *c, const char *id) {
    stet_numbers readers = {0};
    stet_doc_state d = {.value = stet_value_null()};
    bool known = stet_space_load(c->space, c->branch, &(stet_docname){id, NULL}, -1, &d, NULL) == STET_OK && d.exists;
    stet_value_release(d.value);
    if (!known)
        known = stet_observe_readers(c->space, c->branch, &(stet_docname){id, ""}, STET_PATH_ROOT, STET_VALUE, &readers,
                                     NULL) == STET_OK &&
                readers.len > 0;
    stet_numbers_release(&readers);
    return known;
}

/* The cell "piece:NAME:node:NODE" stands for the node that writes it. */
static bool take_output(piece_call *c, stet_value args, const char *id, piece_subject *out) {
    stet_value hold;
    const char *scope = stet_value_text_at(args, "scope", &hold);
    char *around = stet_piece_around(&(stet_docname){id, scope}),
         *prefix = around ? stet_piece_part(around, "node", "") : NULL;
    bool found = prefix && strncmp(id, prefix, strlen(prefix)) == 0 && take_action(c, around, id + strlen(prefix), out);
    stet_free(prefix);
    stet_free(around);
    return found;
}

/* A document by its id, or by a cell of it as messages print it. */
static bool take_document(piece_call *c, stet_value args, const char *word, piece_subject *out) {
    bool found = take_output(c, args, word, out);
    if (!strchr(word, ':') || found)
        return found;
    stet_path path = STET_PATH_INIT;
    char *id = NULL;
    if (is_known(c, word))
        out->document = stet_strdup(word);
    else if (stet_cell_parse(word, false, &id, &path, NULL) == STET_OK && take_output(c, args, id, out))
        found = true;
    else if (id && is_known(c, id))
        out->document = stet_strdup(id);
    stet_free(id);
    stet_path_release(&path);
    if (out->document)
        out->path = stet_file_of_id(out->document, strlen(out->document));
    return found || out->document;
}

/* A file of the project: does a node make it, has an action read it, or is it there? */
static bool take_file(piece_call *c, const char *word, piece_subject *out) {
    const char *root = stet_project_root(c->stored);
    char *path = stet_maker_path(root, c->ctx->cwd, word), *piece = NULL, *node = NULL;
    stet_numbers readers = {0};
    bool known = false;
    if (path && stet_maker_find(c->space, c->branch, root, NULL, path, &piece, &node, NULL) == STET_OK)
        known = node != NULL;
    if (path && !known && stet_maker_readers(c->space, c->branch, path, &readers, NULL) == STET_OK)
        known = readers.len > 0;
    if (path && !known) {
        char *full = stet_file_join(root, path);
        known = stet_file_exists(full);
        stet_free(full);
    }
    if (known) {
        out->document = stet_file_id(path);
        out->path = path;
        path = NULL;
    }
    stet_numbers_release(&readers);
    stet_free(path);
    stet_free(piece);
    stet_free(node);
    return known;
}

static void say_unknown(piece_call *c, stet_value args, const char *word) {
    stet_value none = stet_value_retain(args);
    stet_piece *only = NULL;
    stet_value_remove(&none, "piece", 5);
    bool one = piece_find(c, none, &only, NULL) == STET_OK;
    if (one) {
        c->status = stet_fail(c->err, STET_NOT_FOUND,
                              "there is no piece or file \"%s\", and piece \"%s\" has no such node", word, only->name);
        stet_piece_hint_node(c->space, c->branch, only, word, c->err);
    } else {
        c->status = stet_fail(c->err, STET_NOT_FOUND, "there is no piece, node or file \"%s\"", word);
        stet_hint(c->err, "`stet status` lists the pieces, and `stet action list PIECE` the nodes of one");
    }
    stet_piece_free(only);
    stet_value_release(none);
}

void piece_subject_find(piece_call *c, stet_value args, piece_subject *out) {
    stet_value hold[2];
    const char *word = stet_value_text_at(args, "piece", &hold[0]),
               *node = stet_value_text_at(args, "action", &hold[1]);
    stet_error mine = STET_ERROR_INIT;
    *out = (piece_subject){0};
    if (!piece_good(c))
        return;
    stet_status status = piece_find(c, args, &out->piece, &mine);
    if (status == STET_OK && node) {
        stet_value row = stet_value_null();
        size_t len = strlen(out->piece->name);
        bool full = strncmp(node, out->piece->name, len) == 0 && node[len] == '/' &&
                    has_node(c->space, c->branch, out->piece, node + len + 1);
        out->node = stet_strdup(full ? node + len + 1 : node);
        stet_error_clear(&mine);
        c->status = stet_piece_row(c->space, c->branch, out->piece, out->node, &row, c->err); /* fails if it has none */
        stet_value_release(row);
    } else if (status != STET_OK && (!word || node || (status != STET_NOT_FOUND && status != STET_INVALID))) {
        c->status = status;
        stet_error_move(c->err, &mine);
    } else if (status != STET_OK && !take_split(c, word, out) && !take_node(c, args, word, out) && piece_good(c) &&
               !take_document(c, args, word, out) && !take_file(c, word, out)) {
        say_unknown(c, args, word);
    }
    stet_error_clear(&mine);
}

/* Is it the document, a directory around the file, or a pattern that matches it? */
static bool is_about(const piece_subject *s, const char *id) {
    size_t prefix = strlen(STET_GLOB_PREFIX);
    if (strcmp(id, s->document) == 0)
        return true;
    if (!s->path)
        return false;
    bool about = false;
    char *path = stet_file_of_id(id, strlen(id));
    if (path) {
        size_t n = strlen(path);
        about = strncmp(path, s->path, n) == 0 && s->path[n] == '/';
    } else if (strncmp(id, STET_GLOB_PREFIX, prefix) == 0) {
        stet_buf pattern = STET_BUF(0);
        about = stet_path_unescape(id + prefix, strlen(id + prefix), &pattern) &&
                stet_glob_match(stet_buf_cstr(&pattern), s->path);
        stet_buf_release(&pattern);
    }
    stet_free(path);
    return about;
}

/* Has the document changed since the action read it, so that the action is outdated? */
static bool is_outdated_by(piece_call *c, const piece_subject *s, const stet_action_record *r,
                           stet_action_state state) {
    bool changed = false;
    for (size_t i = 0; i < r->read_count && !changed && (state == STET_STATE_DIRTY || state == STET_STATE_UNKNOWN);
         i++) {
        stet_doc_state d = {.value = stet_value_null()};
        if (r->reads[i].space || !r->reads[i].name.id || !is_about(s, r->reads[i].name.id))
            continue;
        changed =
            stet_space_load(c->space, c->branch, &r->reads[i].name, -1, &d, NULL) == STET_OK && d.seq > r->reads[i].seq;
        stet_value_release(d.value);
    }
    return changed;
}

static stet_value action_row(const char *piece, const stet_action_record *r, stet_action_state state) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "piece", stet_value_string(piece));
    stet_value_put(&v, "action", stet_value_string(r->key.action));
    stet_value_put(&v, "state", stet_value_string(piece_state_name(r, state)));
    return v;
}

/* How many actions are stale because of one of these. */
static size_t count_stale(const stet_standing *s, const stet_numbers *because) {
    size_t n = 0;
    for (size_t i = 0; i < s->stale.len; i++) {
        const stet_stale_root *root = &s->roots[s->root_of.at[i]];
        bool of = false;
        for (size_t k = 0; k < because->len && !of; k++)
            of = root->action == because->at[k];
        n += of;
    }
    return n;
}

static stet_status readers_of(piece_call *c, const piece_subject *s, stet_numbers *out) {
    return s->path ? stet_maker_readers(c->space, c->branch, s->path, out, c->err)
                   : stet_observe_readers(c->space, c->branch, &(stet_docname){s->document, ""}, STET_PATH_ROOT,
                                          STET_VALUE, out, c->err);
}

/* `maker` is left out: a command looks at what it is about to replace. */
static void add_readers(piece_call *c, const piece_subject *s, int64_t maker, stet_value *out) {
    stet_numbers readers = {0}, outdated = {0};
    stet_value list = stet_value_array();
    const stet_standing *all = piece_standing(c);
    if (piece_good(c))
        c->status = readers_of(c, s, &readers);
    size_t count = readers.len;
    for (size_t i = 0; i < readers.len && piece_good(c); i++) {
        if (readers.at[i] == maker) {
            count--;
            continue;
        }
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        if (stet_observe_get(c->space, readers.at[i], &arena, &r, NULL) == STET_OK) {
            stet_action_state state = stet_standing_state(all, &r);
            char *piece = stet_piece_of_action(&r.key);
            bool changed = is_outdated_by(c, s, &r, state);
            if (changed)
                *stet_vec_add(&outdated) = readers.at[i];
            if (piece && stet_value_count(list) < READERS_MAX) {
                stet_value v = action_row(piece, &r, state);
                stet_value_put(&v, "changed", stet_value_bool(changed));
                stet_value_push(&list, v);
            }
            stet_free(piece);
        }
        stet_arena_release(&arena);
    }
    stet_value_put(out, "readers", list);
    stet_value_put(out, "readerCount", stet_value_int((int64_t)count));
    stet_value_put(out, "outdated", stet_value_int((int64_t)outdated.len));
    stet_value_put(out, "stale", stet_value_int((int64_t)(piece_good(c) ? count_stale(all, &outdated) : 0)));
    stet_numbers_release(&readers);
    stet_numbers_release(&outdated);
}

/* The action that makes the file. A node with `each` whose list is up to date makes what its commands have made and
 * nothing else, whatever its paths might be. */
static void find_maker(piece_call *c, const piece_subject *s, int64_t *action, stet_value *out) {
    char *piece = NULL, *node = NULL;
    stet_piece *p = NULL;
    const char *root = stet_project_root(c->stored);
    *action = 0;
    if (piece_good(c) && s->path)
        c->status = stet_maker_recorded(c->space, c->branch, root, NULL, s->path, &piece, &node, c->err);
    bool recorded = node != NULL;
    if (piece_good(c) && s->path && !recorded)
        c->status = stet_maker_find(c->space, c->branch, root, NULL, s->path, &piece, &node, c->err);
    if (piece_good(c) && node && stet_piece_load(c->space, c->branch, piece, -1, &p, NULL) == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_value wrong = piece_wrong(c, p), row = stet_value_null();
        stet_action_key key = stet_piece_action(p, node);
        piece_find_action(c, &key, &arena, &r);
        if (piece_good(c)) {
            stet_action_state state = piece_state_in(wrong, piece_standing(c), &r);
            bool coordinator = stet_piece_row(c->space, c->branch, p, node, &row, NULL) == STET_OK &&
                               stet_child_role_of(row) != STET_CHILD_NONE;
            if (recorded || !coordinator || state != STET_STATE_STANDS) {
                *action = r.action;
                stet_value_put(out, "maker", action_row(p->name, &r, state));
            }
        }
        stet_value_release(row);
        stet_value_release(wrong);
        stet_arena_release(&arena);
    }
    stet_piece_free(p);
    stet_free(piece);
    stet_free(node);
}

/* Is it as a command has written it? Without a maker that command is gone. */
static bool is_made(piece_call *c, const piece_subject *s) {
    stet_doc_state d = {.value = stet_value_null()};
    bool made = stet_space_load(c->space, c->branch, &(stet_docname){s->document, NULL}, -1, &d, NULL) == STET_OK &&
                stet_value_as_bool(stet_value_get(stet_value_get(d.value, "value"), "made"));
    stet_value_release(d.value);
    return made;
}

stet_value piece_document_value(piece_call *c, const piece_subject *s) {
    stet_value v = stet_value_object();
    int64_t maker;
    stet_value_put(&v, "document", stet_value_string(s->document));
    find_maker(c, s, &maker, &v);
    if (s->path) {
        char *full = stet_file_join(stet_project_root(c->stored), s->path);
        stet_value path;
        if (stet_value_string_checked(s->path, strlen(s->path), &path, NULL) == STET_OK)
            stet_value_put(&v, "path", path);
        stet_value_put(&v, "exists", stet_value_bool(stet_file_exists(full)));
        stet_value_put(&v, "left", stet_value_bool(!stet_value_find(v, "maker", 5, NULL) && is_made(c, s)));
        stet_free(full);
    }
    add_readers(c, s, maker, &v);
    return v;
}

void piece_subject_action(piece_call *c, piece_subject *s) {
    if (piece_good(c) && s->document) {
        stet_value document = piece_document_value(c, s), maker = stet_value_get(document, "maker"), hold[2];
        piece_subject made = {0};
        if (piece_good(c) && stet_value_type(maker) != STET_TYPE_OBJECT) {
            c->status = stet_fail(c->err, STET_NOT_FOUND, "%s: no node makes it", s->path ? s->path : s->document);
            stet_hint(c->err, "`stet why %s` names the nodes that read it", s->path ? s->path : s->document);
        } else if (piece_good(c)) {
            c->status = stet_piece_load(c->space, c->branch, stet_value_text_at_or(maker, "piece", "", &hold[0]), -1,
                                        &made.piece, c->err);
            made.node = stet_strdup(stet_value_text_at_or(maker, "action", "", &hold[1]));
        }
        stet_value_release(document);
        piece_subject_release(s);
        *s = made;
    } else if (piece_good(c) && !s->node) {
        c->status = stet_fail(c->err, STET_INVALID, "\"%s\" is a piece: name one of its actions", s->piece->name);
        stet_piece_hint_node(c->space, c->branch, s->piece, "", c->err);
    }
}

static void print_count(stet_buf *out, const char *before, int64_t n, const char *one, const char *many) {
    stet_buf_printf(out, "%s%lld %s", before, (long long)n, n == 1 ? one : many);
}

void piece_print_document(stet_value document, stet_buf *out) {
    stet_value path = stet_value_get(document, "path"), id = stet_value_get(document, "document"),
               maker = stet_value_get(document, "maker"), piece = stet_value_get(maker, "piece"),
               action = stet_value_get(maker, "action"), state = stet_value_get(maker, "state");
    int64_t readers = stet_value_as_int(stet_value_get(document, "readerCount")),
            outdated = stet_value_as_int(stet_value_get(document, "outdated")),
            stale = stet_value_as_int(stet_value_get(document, "stale"));
    bool file = stet_value_type(path) == STET_TYPE_STRING;
    stet_buf_str(out, stet_value_text(file ? &path : &id, ""));
    if (stet_value_type(maker) == STET_TYPE_OBJECT)
        stet_buf_printf(out, " is made by %s/%s (%s)", stet_value_text(&piece, ""), stet_value_text(&action, ""),
                        stet_value_text(&state, ""));
    else if (stet_value_as_bool(stet_value_get(document, "left")))
        stet_buf_str(out, " was made by a command that is gone (stet gc --outputs removes it)");
    else if (file)
        stet_buf_str(out, " is a source: no node makes it");
    if (file && !stet_value_as_bool(stet_value_get(document, "exists")))
        stet_buf_str(out, ", and does not exist");
    if (readers == 0) {
        stet_buf_str(out, file ? "; no action has read it" : ": no action has read it");
        return;
    }
    print_count(out, file ? "; " : ": ", readers, "action has read it", "actions have read it");
    if (outdated > 0)
        print_count(out, ", and ", outdated, "of them is outdated because of it", "of them are outdated because of it");
    if (stale > 0)
        print_count(out, "; ", stale, "more action waits for those", "more actions wait for those");
}
