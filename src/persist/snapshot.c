/* snapshot.c - reads and writes snapshots and logs.
 *
 *   S1. A snapshot is accepted only if its recorded hash is that of its content; its file name says nothing.
 *   S2. The hash is over the entries' recorded hashes, so that one entry whose own text rotted is dropped and the
 *       others stay.
 *   S3. While hashing, the snapshot's own key in [parents] counts as the empty string: the hash can't contain itself.
 *   S4. Ancestry is what a snapshot's own [parents] says. Two snapshots can't each name the other, since hashes are
 *       over names.
 */

#include "persist/snapshot.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"

const char stet_plog_header[] =
    "[header]\nversion = \"1\"\nentry_table_name_parts = [\"block_id\", \"module_hash\", \"created_at\"]\n";

void stet_prows_release(stet_prows *r) {
    stet_vec_release(&r->rows);
    stet_vec_release(&r->refs);
}

static bool node_equals(const stet_node *n, const char *text) {
    return n && n->type == STET_NODE_STRING && n->text_len == strlen(text) && !memcmp(n->text, text, n->text_len);
}

/* Is this a header of version 1 with the key parts that version 1 has? */
static bool header_known(const stet_tree *tree) {
    static const char *const names[] = {"block_id", "module_hash", "created_at"};
    const stet_node *root = &tree->nodes.at[0], *parts = stet_tree_find(tree, root, "entry_table_name_parts");
    if (!node_equals(stet_tree_find(tree, root, "version"), "1") || !parts || parts->type != STET_NODE_ARRAY)
        return false;
    const stet_node *part = stet_tree_child(tree, parts);
    for (int i = 0; i < 3; i++, part = part ? stet_tree_next(tree, part) : NULL)
        if (!node_equals(part, names[i]))
            return false;
    return !part;
}

static bool table_is(const char *text, size_t len, const char *name, size_t *line) {
    const char *newline = memchr(text, '\n', len);
    *line = newline ? (size_t)(newline - text) : len;
    const char *part;
    size_t part_len;
    stet_arena arena = STET_ARENA_INIT;
    bool is = stet_header_parse(text, *line, &arena, &part, &part_len, 1) == 1 && part_len == strlen(name) &&
              !memcmp(part, name, part_len);
    stet_arena_release(&arena);
    return is;
}

static int compare_ids(const void *a, const void *b) {
    return memcmp(a, b, STET_PERSIST_HASH);
}

/* The rows of [parents], in key order. */
static bool read_parents(const stet_tree *tree, stet_prows *out, const char **why) {
    for (const stet_node *n = stet_tree_child(tree, &tree->nodes.at[0]); n; n = stet_tree_next(tree, n)) {
        if (out->rows.len == STET_PERSIST_ROWS_MAX) {
            *why = "more rows in [parents] than any history needs";
            return false;
        }
        if (!stet_persist_valid_hash(n->key, n->key_len) || n->type != STET_NODE_ARRAY) {
            *why = "a row of [parents] that is no list of snapshots";
            return false;
        }
        stet_prow *row = stet_vec_add(&out->rows);
        memset(row, 0, sizeof *row);
        memcpy(row->id.text, n->key, STET_PERSIST_HASH);
        row->first = (uint32_t)out->refs.len;
        for (const stet_node *x = stet_tree_child(tree, n); x; x = stet_tree_next(tree, x)) {
            if (out->refs.len == STET_PERSIST_REFS_MAX || x->type != STET_NODE_STRING ||
                !stet_persist_valid_hash(x->text, x->text_len) ||
                (row->count && memcmp(out->refs.at[out->refs.len - 1].text, x->text, STET_PERSIST_HASH) >= 0)) {
                *why = "a list in [parents] that is not strictly sorted, or too long";
                return false;
            }
            stet_pid *id = stet_vec_add(&out->refs);
            memset(id, 0, sizeof *id);
            memcpy(id->text, x->text, STET_PERSIST_HASH);
            row->count++;
        }
    }
    return true;
}

static const stet_prow *find_row(const stet_prows *r, const char *id) {
    /* The rows are sorted by id. */
    size_t low = 0, high = r->rows.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = memcmp(r->rows.at[mid].id.text, id, STET_PERSIST_HASH);
        if (!c)
            return &r->rows.at[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Do the rows form a graph without a cycle? Removes rows whose parents are gone until none is left. */
static bool acyclic(const stet_prows *r) {
    size_t n = r->rows.len, done = 0;
    uint32_t *waits = stet_alloc_zero((n + 1) * sizeof *waits), *ready = stet_alloc((n + 1) * sizeof *ready);
    /* For each row, the rows that refer to it, by a counting sort of the references. */
    uint32_t *begin = stet_alloc_zero((n + 2) * sizeof *begin), *users = stet_alloc((r->refs.len + 1) * sizeof *users);
    size_t ready_len = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < r->rows.at[i].count; k++) {
                const stet_prow *of = find_row(r, r->refs.at[r->rows.at[i].first + k].text);
                if (!of)
                    continue;
                size_t j = (size_t)(of - r->rows.at);
                if (pass == 0) {
                    waits[i]++;
                    begin[j + 1]++;
                } else
                    users[begin[j]++] = (uint32_t)i;
            }
        if (pass == 0)
            for (size_t j = 0; j < n; j++)
                begin[j + 1] += begin[j];
    }
    /* begin[j] is now the end of the users of j, and begin[j - 1] their start. */
    for (size_t i = 0; i < n; i++)
        if (!waits[i])
            ready[ready_len++] = (uint32_t)i;
    while (ready_len) {
        uint32_t j = ready[--ready_len];
        done++;
        for (uint32_t k = j ? begin[j - 1] : 0; k < begin[j]; k++)
            if (!--waits[users[k]])
                ready[ready_len++] = users[k];
    }
    free(waits);
    free(ready);
    free(begin);
    free(users);
    return done == n;
}

/* A hasher with a buffer, so that it is not called for every few bytes. */
typedef struct feeder {
    stet_hasher *hasher;
    size_t len;
    char bytes[16384];
} feeder;

static void feed(feeder *f, const void *bytes, size_t len) {
    if (f->len + len > sizeof f->bytes) {
        stet_hasher_add(f->hasher, f->bytes, f->len);
        f->len = 0;
        if (len > sizeof f->bytes) {
            stet_hasher_add(f->hasher, bytes, len);
            return;
        }
    }
    memcpy(f->bytes + f->len, bytes, len);
    f->len += len;
}

static void feed_parents(feeder *f, const stet_prows *rows, const stet_pid *own) {
    feed(f, "parents", 7);
    const stet_prow *self = find_row(rows, own->text);
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < rows->rows.len; i++) {
            const stet_prow *row = &rows->rows.at[i];
            if ((row == self) != (pass == 0))
                continue; /* its own row comes first, because the empty string sorts before all others */
            if (row != self)
                feed(f, row->id.text, STET_PERSIST_HASH);
            for (uint32_t k = 0; k < row->count; k++)
                feed(f, rows->refs.at[row->first + k].text, STET_PERSIST_HASH);
        }
}

/* `header` is the preimage of the [header] table without snapshot_hash. Entries are sorted. */
static stet_pid snapshot_hash(const stet_pentry *entries, size_t count, const stet_buf *header,
                              const stet_prows *parents, bool has_parents, const stet_pid *own) {
    feeder *f = stet_alloc(sizeof *f);
    f->hasher = stet_hasher_begin();
    f->len = 0;
    int special = 0; /* how many of the tables header and parents are done */
    for (size_t i = 0; i <= count; i++) {
        const stet_pentry *e = i < count ? &entries[i] : NULL, *before = i ? &entries[i - 1] : NULL;
        bool new_block =
            !e || !before || e->block_len != before->block_len || memcmp(e->block, before->block, e->block_len) != 0;
        for (; new_block && special < 2; special++) {
            const char *name = special ? "parents" : "header";
            size_t name_len = strlen(name);
            if (e) {
                size_t n = e->block_len < name_len ? e->block_len : name_len;
                int c = memcmp(e->block, name, n);
                if (c < 0 || (c == 0 && e->block_len < name_len))
                    break;
            }
            if (special == 0) {
                feed(f, "header", 6);
                feed(f, stet_buf_cstr(header), header->len);
            } else if (has_parents)
                feed_parents(f, parents, own);
        }
        if (!e)
            break;
        if (new_block)
            feed(f, e->block, e->block_len);
        if (new_block || memcmp(e->module, before->module, STET_PERSIST_HASH) != 0)
            feed(f, e->module, STET_PERSIST_HASH);
        char created[24];
        size_t created_len = stet_created_print(e->created, created);
        feed(f, created, created_len);
        feed(f, e->hash, STET_PERSIST_HASH_SHORT);
    }
    stet_hasher_add(f->hasher, f->bytes, f->len);
    stet_hash h = stet_hasher_end(f->hasher);
    free(f);
    stet_pid id;
    memset(&id, 0, sizeof id);
    stet_base64url_encode(h.bytes, sizeof h.bytes, id.text);
    return id;
}

static int by_key(const void *a, const void *b) {
    return stet_pentry_compare(a, b);
}

/* Sorts entries; false if two have the same key. None is dropped. */
static bool sort_unique(stet_pentries *v) {
    bool sorted = true;
    for (size_t i = 1; i < v->len && sorted; i++)
        sorted = stet_pentry_compare(&v->at[i - 1], &v->at[i]) < 0;
    if (sorted)
        return true;
    qsort(v->at, v->len, sizeof *v->at, by_key);
    for (size_t i = 1; i < v->len; i++)
        if (stet_pentry_same_key(&v->at[i - 1], &v->at[i]))
            return false;
    return true;
}

/* Skips blank lines and comments before the first table. */
static size_t skip_preamble(const char *text, size_t len) {
    size_t at = 0;
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        at = 3;
    while (at < len && text[at] != '[') {
        const char *newline = memchr(text + at, '\n', len - at);
        at = newline ? (size_t)(newline - text) + 1 : len;
    }
    return at;
}

stet_psnapshot_state stet_psnapshot_parse(char *text, size_t len, stet_psnapshot **out, const char **why) {
    stet_psnapshot *s = stet_alloc_zero(sizeof *s);
    stet_pentry_scratch scratch = {0};
    stet_buf header = STET_BUF(STET_PERSIST_ENTRY_MAX);
    stet_psnapshot_state state = STET_PSNAPSHOT_CORRUPT;
    s->refs = 1;
    s->text_len = len;
    s->texts = stet_ptexts_new();
    *stet_vec_add(&s->texts->blocks) = text;
    *out = NULL;
    *why = "not a snapshot";

    size_t at = skip_preamble(text, len), line, used;
    size_t table = stet_table_len(text + at, len - at);
    if (!table || !table_is(text + at, table, "header", &line) ||
        !stet_tree_parse(&scratch.tree, text + at + line, table - line, true, why))
        goto done;
    const stet_node *recorded = stet_tree_find(&scratch.tree, &scratch.tree.nodes.at[0], "snapshot_hash");
    if (!header_known(&scratch.tree)) {
        *why = "a version that this program does not know";
        state = STET_PSNAPSHOT_UNKNOWN;
        goto done;
    }
    if (!recorded || recorded->type != STET_NODE_STRING ||
        !stet_persist_valid_hash(recorded->text, recorded->text_len)) {
        *why = "no snapshot_hash in [header]";
        goto done;
    }
    memcpy(s->hash.text, recorded->text, STET_PERSIST_HASH);
    stet_tree_preimage(&scratch.tree, &scratch.tree.nodes.at[0], "snapshot_hash", &header);
    at += table;
    bool has_parents = false;
    if (at < len) {
        table = stet_table_len(text + at, len - at);
        if (table_is(text + at, table, "parents", &line)) {
            has_parents = true;
            if (!stet_tree_parse(&scratch.tree, text + at + line, table - line, true, why) ||
                !read_parents(&scratch.tree, &s->parents, why))
                goto done;
            if (!acyclic(&s->parents)) {
                *why = "[parents] goes round in a circle";
                goto done;
            }
            at += table;
        }
    }
    stet_vec_reserve(&s->entries, (len - at) / 220 + 1);
    for (; at < len; at += used) {
        stet_pentry *e = stet_vec_add(&s->entries);
        stet_pentry_state got = stet_pentry_parse(text + at, len - at, &s->texts->arena, &scratch, e, &used, why);
        if (got == STET_PENTRY_MALFORMED)
            goto done;
        if (got == STET_PENTRY_WRONG_HASH)
            s->dropped++; /* e->text stays NULL: removed below, after the hash of the snapshot was computed */
    }
    if (!sort_unique(&s->entries)) {
        *why = "an execution key stands twice";
        goto done;
    }
    stet_pid computed = snapshot_hash(s->entries.at, s->entries.len, &header, &s->parents, has_parents, &s->hash);
    if (compare_ids(&computed, &s->hash) != 0) {
        *why = "its hash does not match its content";
        goto done;
    }
    if (s->dropped) {
        size_t n = 0;
        for (size_t i = 0; i < s->entries.len; i++)
            if (s->entries.at[i].text)
                s->entries.at[n++] = s->entries.at[i];
        s->entries.len = n;
    }
    state = STET_PSNAPSHOT_OK;
done:
    stet_buf_release(&header);
    stet_pentry_scratch_release(&scratch);
    if (state == STET_PSNAPSHOT_OK)
        *out = s;
    else
        stet_psnapshot_drop(s);
    return state;
}

stet_psnapshot *stet_psnapshot_hold(stet_psnapshot *s) {
    s->refs++;
    return s;
}

void stet_psnapshot_drop(stet_psnapshot *s) {
    if (!s || --s->refs)
        return;
    stet_vec_release(&s->entries);
    stet_prows_release(&s->parents);
    stet_ptexts_drop(s->texts);
    free(s);
}

bool stet_psnapshot_has_ancestor(const stet_psnapshot *s, const char *id) {
    /* Everything in [parents] that can be reached from the snapshot's own row is an ancestor. */
    stet_map seen = {0};
    bool found = false;
    struct {
        const stet_prow **at;
        size_t len, cap;
    } queue = {0};
    const stet_prow *own = find_row(&s->parents, s->hash.text);
    if (own)
        *stet_vec_add(&queue) = own;
    for (size_t i = 0; i < queue.len && !found; i++)
        for (uint32_t k = 0; k < queue.at[i]->count && !found; k++) {
            const char *ref = s->parents.refs.at[queue.at[i]->first + k].text;
            found = !memcmp(ref, id, STET_PERSIST_HASH);
            const stet_prow *row = find_row(&s->parents, ref);
            if (row && !stet_map_get(&seen, ref, STET_PERSIST_HASH)) {
                stet_map_put(&seen, ref, STET_PERSIST_HASH, (stet_slot){.n = 1});
                *stet_vec_add(&queue) = row;
            }
        }
    stet_vec_release(&queue);
    stet_map_release(&seen);
    return found;
}

/* One generation: the ids whose rows come next, sorted and without duplicates. */
typedef struct ids {
    stet_pid *at;
    size_t len, cap;
} ids;

static void sort_ids(ids *v) {
    if (v->len)
        qsort(v->at, v->len, sizeof *v->at, compare_ids);
    size_t n = 0;
    for (size_t i = 0; i < v->len; i++)
        if (!n || compare_ids(&v->at[n - 1], &v->at[i]) != 0)
            v->at[n++] = v->at[i];
    v->len = n;
}

/* Collects the row of `id` from the tables of the tips: the union of what they say, sorted. False if none has such a
 * row. */
static bool collect_row(const stet_pid *id, stet_psnapshot *const *tips, size_t tip_count, ids *out) {
    bool any = false;
    out->len = 0;
    for (size_t t = 0; t < tip_count; t++) {
        const stet_prow *row = find_row(&tips[t]->parents, id->text);
        if (!row)
            continue;
        any = true;
        for (uint32_t k = 0; k < row->count; k++)
            *stet_vec_add(out) = tips[t]->parents.refs.at[row->first + k];
    }
    sort_ids(out);
    return any;
}

static void add_row(stet_prows *rows, const stet_pid *id, const ids *refs) {
    stet_prow *row = stet_vec_add(&rows->rows);
    memset(row, 0, sizeof *row);
    row->id = *id;
    row->first = (uint32_t)rows->refs.len;
    row->count = (uint32_t)refs->len;
    for (size_t i = 0; i < refs->len; i++)
        *stet_vec_add(&rows->refs) = refs->at[i];
}

static int compare_rows(const void *a, const void *b) {
    return memcmp(((const stet_prow *)a)->id.text, ((const stet_prow *)b)->id.text, STET_PERSIST_HASH);
}

/* Collects the rows of the new snapshot in the order in which they are written. The first is its own, whose id is still
 * empty. Only the tables of the tips are used: other files on this machine must not change the bytes. */
static void history(stet_psnapshot *const *tips, size_t tip_count, stet_prows *out) {
    ids own = {0}, generation = {0}, next = {0}, refs = {0};
    stet_map seen = {0};
    for (size_t t = 0; t < tip_count; t++)
        *stet_vec_add(&own) = tips[t]->hash;
    sort_ids(&own);
    stet_pid self;
    memset(&self, 0, sizeof self);
    add_row(out, &self, &own);
    for (size_t i = 0; i < own.len; i++)
        *stet_vec_add(&generation) = own.at[i];
    while (generation.len && out->rows.len < STET_PERSIST_ROWS) {
        next.len = 0;
        for (size_t i = 0; i < generation.len && out->rows.len < STET_PERSIST_ROWS; i++) {
            const stet_pid *id = &generation.at[i];
            if (stet_map_get(&seen, id->text, STET_PERSIST_HASH) || !collect_row(id, tips, tip_count, &refs))
                continue;
            stet_map_put(&seen, id->text, STET_PERSIST_HASH, (stet_slot){.n = 1});
            if (out->refs.len + refs.len > STET_PERSIST_REFS_MAX)
                continue;
            add_row(out, id, &refs);
            for (size_t k = 0; k < refs.len; k++)
                *stet_vec_add(&next) = refs.at[k];
        }
        sort_ids(&next);
        ids swap = generation;
        generation = next;
        next = swap;
    }
    stet_vec_release(&own);
    stet_vec_release(&generation);
    stet_vec_release(&next);
    stet_vec_release(&refs);
    stet_map_release(&seen);
}

static void print_row(const stet_prows *rows, const stet_prow *row, const char *id, stet_buf *out) {
    stet_buf_printf(out, "%.43s = [", id);
    for (uint32_t k = 0; k < row->count; k++)
        stet_buf_printf(out, "%s\"%.43s\"", k ? ", " : "", rows->refs.at[row->first + k].text);
    stet_buf_str(out, "]\n");
}

void stet_psnapshot_print(const stet_pentry *entries, size_t count, stet_psnapshot *const *tips, size_t tip_count,
                          stet_buf *out, stet_pid *hash) {
    stet_prows rows = {0};
    history(tips, tip_count, &rows);
    /* The hash needs sorted rows; the snapshot's own row has the empty id, and so comes first. */
    stet_prows sorted = rows;
    sorted.rows.at = stet_alloc(rows.rows.len * sizeof *sorted.rows.at);
    memcpy(sorted.rows.at, rows.rows.at, rows.rows.len * sizeof *sorted.rows.at);
    qsort(sorted.rows.at, sorted.rows.len, sizeof *sorted.rows.at, compare_rows);
    if (!acyclic(&sorted)) {
        /* Only contradictory, forged histories get here: keep what is certain. */
        rows.rows.len = 1;
        sorted.rows.at[0] = rows.rows.at[0];
        sorted.rows.len = 1;
    }
    static const char header_preimage[] = "entry_table_name_partsblock_idmodule_hashcreated_atversion1";
    stet_buf header = STET_BUF(0);
    stet_buf_str(&header, header_preimage);
    stet_pid own;
    memset(&own, 0, sizeof own);
    *hash = snapshot_hash(entries, count, &header, &sorted, true, &own);
    free(sorted.rows.at);
    stet_buf_release(&header);

    stet_buf_printf(
        out,
        "[header]\nversion = \"1\"\nsnapshot_hash = \"%s\"\nentry_table_name_parts = [\"block_id\", \"module_hash\", "
        "\"created_at\"]\n[parents]\n",
        hash->text);
    for (size_t i = 0; i < rows.rows.len; i++)
        print_row(&rows, &rows.rows.at[i], i ? rows.rows.at[i].id.text : hash->text, out);
    for (size_t i = 0; i < count; i++) {
        stet_buf_char(out, '\n');
        stet_buf_add(out, entries[i].text, entries[i].text_len);
    }
    stet_prows_release(&rows);
}

void stet_plog_parse(const char *text, size_t len, stet_ptexts *texts, stet_pentries *out, stet_plog_parsed *parsed) {
    stet_pentry_scratch scratch = {0};
    size_t used, line;
    for (size_t at = skip_preamble(text, len); at < len; at += used) {
        const char *why;
        size_t table = stet_table_len(text + at, len - at);
        parsed->last_at = at;
        parsed->last_len = table;
        parsed->last_good = false;
        if (table_is(text + at, table, "header", &line)) {
            used = table;
            /* A torn header says nothing, but one that can be read and names another version does. */
            if (stet_tree_parse(&scratch.tree, text + at + line, table - line, true, &why)) {
                const stet_node *version = stet_tree_find(&scratch.tree, &scratch.tree.nodes.at[0], "version");
                if (version && stet_tree_find(&scratch.tree, &scratch.tree.nodes.at[0], "entry_table_name_parts")) {
                    parsed->header_seen = parsed->last_good = true;
                    if (!header_known(&scratch.tree))
                        parsed->unknown_version = true;
                }
            }
            continue;
        }
        stet_pentry e;
        if (stet_pentry_parse(text + at, len - at, &texts->arena, &scratch, &e, &used, &why) == STET_PENTRY_OK) {
            e.in_log = true;
            *stet_vec_add(out) = e;
            parsed->last_good = true;
        } else
            parsed->bad++;
    }
    stet_pentry_scratch_release(&scratch);
}
