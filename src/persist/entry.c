/* entry.c - one entry: reading, canonical text, hash, conflict order, and the copy that is handed out. */
#include "persist/format.h"

#include <assert.h>
#include <string.h>

/* Formats are opaque, but never need escapes. */
static bool valid_format(const char *s, size_t len) {
    if (!len || len > STET_PERSIST_KIND_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (s[i] < 0x20 || s[i] > 0x7e || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

static bool all_bare(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!stet_token_char((unsigned char)s[i]))
            return false;
    return len > 0;
}

static void write_key(stet_buf *b, const char *s, size_t len) {
    if (all_bare(s, len)) {
        stet_buf_add(b, s, len);
        return;
    }
    stet_buf_char(b, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7f) {
            stet_buf_printf(b, "\\u%04X", c);
            continue;
        }
        if (c == '"' || c == '\\')
            stet_buf_char(b, '\\');
        stet_buf_char(b, (char)c);
    }
    stet_buf_char(b, '"');
}

static bool node_is(const stet_node *n, const char *key) {
    return n->key_len == strlen(key) && !memcmp(n->key, key, n->key_len);
}

/* A table with an `id` is a content, and must be valid. NULL in *id: the table is something else. */
static bool content_of(const stet_tree *tree, const stet_node *n, const stet_node **id, const stet_node **size,
                       const stet_node **format) {
    *id = n->type == STET_NODE_TABLE ? stet_tree_find(tree, n, "id") : NULL;
    if (!*id)
        return true;
    *size = stet_tree_find(tree, n, "size");
    *format = stet_tree_find(tree, n, "format");
    return stet_persist_valid_kind(n->key, n->key_len) && (*id)->type == STET_NODE_STRING &&
           stet_persist_valid_id((*id)->text, (*id)->text_len) && *size && (*size)->type == STET_NODE_INT &&
           (*size)->number >= 0 && *format && (*format)->type == STET_NODE_STRING &&
           valid_format((*format)->text, (*format)->text_len);
}

static bool write_canonical(const stet_tree *tree, const stet_pentry *e, const char *hash, stet_buf *b,
                            const char **why) {
    char created[24];
    stet_created_print(e->created, created);
    stet_buf_char(b, '[');
    write_key(b, e->block, e->block_len);
    stet_buf_printf(b, ".%.43s.%s]\n", e->module, created);
    size_t contents = 0;
    for (const stet_node *n = stet_tree_child(tree, &tree->nodes.at[0]); n; n = stet_tree_next(tree, n)) {
        const stet_node *id, *size, *format;
        if (node_is(n, "hash"))
            continue;
        if (!content_of(tree, n, &id, &size, &format)) {
            *why = "a content without a proper id, size and format";
            return false;
        }
        write_key(b, n->key, n->key_len);
        stet_buf_str(b, " = ");
        if (!id) {
            stet_buf_add(b, n->raw, n->raw_len);
        } else {
            if (++contents > STET_PERSIST_CONTENTS_MAX) {
                *why = "too many contents";
                return false;
            }
            stet_buf_str(b, "{ id = \"");
            stet_buf_add(b, id->text, id->text_len);
            stet_buf_str(b, "\", size = ");
            stet_buf_add(b, size->text, size->text_len);
            stet_buf_str(b, ", format = \"");
            stet_buf_add(b, format->text, format->text_len);
            stet_buf_char(b, '"');
            for (const stet_node *x = stet_tree_child(tree, n); x; x = stet_tree_next(tree, x)) {
                if (x == id || x == size || x == format)
                    continue;
                stet_buf_str(b, ", ");
                write_key(b, x->key, x->key_len);
                stet_buf_str(b, " = ");
                stet_buf_add(b, x->raw, x->raw_len);
            }
            stet_buf_str(b, " }");
        }
        stet_buf_char(b, '\n');
    }
    stet_buf_printf(b, "hash = \"%.11s\"\n", hash);
    if (b->overflow) {
        *why = "an entry of more than 1 MiB";
        return false;
    }
    return true;
}

static void preimage_key(const stet_pentry *e, stet_buf *b) {
    char created[24];
    size_t n = stet_created_print(e->created, created);
    stet_buf_add(b, e->block, e->block_len);
    stet_buf_add(b, e->module, STET_PERSIST_HASH);
    stet_buf_add(b, created, n);
}

static void short_hash(const stet_buf *preimage, char out[STET_PERSIST_HASH_SHORT + 1]) {
    stet_hash h = stet_hash_of(preimage->data, preimage->len);
    stet_base64url_encode(h.bytes, 8, out);
}

void stet_pentry_scratch_release(stet_pentry_scratch *s) {
    stet_tree_release(&s->tree);
    stet_buf_release(&s->preimage);
    stet_buf_release(&s->text);
}

size_t stet_table_len(const char *text, size_t len) {
    for (const char *p = text, *end = text + len; (p = memchr(p, '\n', (size_t)(end - p)));) {
        p++;
        if (p == end)
            break;
        if (*p == '[')
            return (size_t)(p - text);
    }
    return len;
}

/* Up to the newline after the line `hash = "..."`; 0 if there is none. */
static size_t complete_len(const char *text, size_t len) {
    static const char hash[] = "\nhash = \"";
    const char *p = memmem(text, len, hash, sizeof hash - 1);
    if (!p)
        return 0;
    size_t end = (size_t)(p - text) + sizeof hash - 1 + STET_PERSIST_HASH_SHORT + 1;
    return end < len && text[end] == '\n' ? end + 1 : 0;
}

stet_pentry_state stet_pentry_parse_slow(const char *text, size_t len, stet_arena *arena, stet_pentry_scratch *s,
                                         stet_pentry *out, size_t *used, const char **why) {
    *used = stet_table_len(text, len);
    memset(out, 0, sizeof *out);
    if (*used > STET_PERSIST_ENTRY_MAX) {
        *why = "an entry of more than 1 MiB";
        return STET_PENTRY_MALFORMED;
    }
    const char *newline = memchr(text, '\n', *used);
    size_t line = newline ? (size_t)(newline - text) : *used;
    const char *parts[3];
    size_t lens[3];
    if (stet_header_parse(text, line, arena, parts, lens, 3) != 3 || !stet_block_valid(parts[0], lens[0]) ||
        !stet_persist_valid_hash(parts[1], lens[1]) || !stet_created_parse(parts[2], lens[2], &out->created)) {
        *why = "a table name that is no execution key";
        return STET_PENTRY_MALFORMED;
    }
    out->block = parts[0];
    out->block_len = (uint32_t)lens[0];
    out->module = parts[1];
    if (!stet_tree_parse(&s->tree, text + line, *used - line, false, why)) {
        /* Other bytes may follow the entry: zeros where a file grew before a power cut, or half of a lost line. */
        size_t whole = complete_len(text, *used);
        if (!whole || !stet_tree_parse(&s->tree, text + line, whole - line, false, why))
            return STET_PENTRY_MALFORMED;
    }
    const stet_node *hash = stet_tree_find(&s->tree, &s->tree.nodes.at[0], "hash");
    if (!hash || hash->type != STET_NODE_STRING || hash->text_len != STET_PERSIST_HASH_SHORT ||
        !all_bare(hash->text, hash->text_len)) {
        *why = "an entry without a hash";
        return STET_PENTRY_MALFORMED;
    }
    memcpy(out->hash, hash->text, STET_PERSIST_HASH_SHORT);
    stet_buf_clear(&s->preimage);
    preimage_key(out, &s->preimage);
    stet_tree_preimage(&s->tree, &s->tree.nodes.at[0], "hash", &s->preimage);
    char computed[STET_PERSIST_HASH_SHORT + 1];
    short_hash(&s->preimage, computed);
    if (memcmp(computed, out->hash, STET_PERSIST_HASH_SHORT) != 0) {
        *why = "an entry whose hash does not match";
        return STET_PENTRY_WRONG_HASH;
    }
    stet_buf_clear(&s->text);
    s->text.max = STET_PERSIST_ENTRY_MAX;
    if (!write_canonical(&s->tree, out, computed, &s->text, why))
        return STET_PENTRY_MALFORMED;
    /* If the source already is in canonical form, point into it. */
    const char *at = s->text.len <= *used && !memcmp(text, s->text.data, s->text.len)
                         ? text
                         : stet_arena_strndup(arena, s->text.data, s->text.len);
    out->text = at;
    out->text_len = (uint32_t)s->text.len;
    char created[24];
    size_t head =
        (size_t)((const char *)memchr(at, '\n', s->text.len) - at) - 1 - stet_created_print(out->created, created);
    out->module = at + head - 1 - STET_PERSIST_HASH;
    if (all_bare(out->block, out->block_len))
        out->block = at + 1;
    else
        out->block = stet_arena_strndup(arena, out->block, out->block_len);
    return STET_PENTRY_OK;
}

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool eat(cursor *c, const char *literal, size_t len) {
    if ((size_t)(c->end - c->at) < len || memcmp(c->at, literal, len) != 0)
        return false;
    c->at += len;
    return true;
}
#define EAT(c, literal) eat(c, literal, sizeof literal - 1)

static size_t span_bare(const cursor *c) {
    const char *p = c->at;
    while (p < c->end && stet_token_char((unsigned char)*p))
        p++;
    return (size_t)(p - c->at);
}

/* Reads a decimal without sign or leading zeros that fits int64; returns its length, 0 if there is none. */
static size_t span_decimal(const cursor *c, uint64_t *value) {
    const char *p = c->at;
    uint64_t v = 0;
    while (p < c->end && *p >= '0' && *p <= '9' && p - c->at < 19)
        v = v * 10 + (uint64_t)(*p++ - '0');
    size_t len = (size_t)(p - c->at);
    if (!len || (len > 1 && *c->at == '0') || v > INT64_MAX || (p < c->end && *p >= '0' && *p <= '9'))
        return 0;
    *value = v;
    return len;
}

/* Reads `{ id = "...", size = N, format = "..."`; the cursor stops behind it. */
static bool eat_content(cursor *c, stet_pcontent *out) {
    if (!EAT(c, "{ id = \""))
        return false;
    const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
    if (!quote)
        return false;
    out->id = c->at;
    out->id_len = (uint32_t)(quote - c->at);
    c->at = quote;
    if (!EAT(c, "\", size = "))
        return false;
    size_t digits = span_decimal(c, &out->size);
    c->at += digits;
    if (!digits || !EAT(c, ", format = \""))
        return false;
    quote = memchr(c->at, '"', (size_t)(c->end - c->at));
    if (!quote)
        return false;
    out->format = c->at;
    out->format_len = (uint32_t)(quote - c->at);
    c->at = quote + 1;
    return true;
}

/* A fast path for text in canonical form with only plain contents and integers, which is nearly all there is. True only
 * if the general parser would give the same result; then out->text is the source itself. */
static bool parse_canonical(const char *text, size_t len, stet_pentry_scratch *s, stet_pentry *out, size_t *used) {
    cursor c = {text, text + (len > STET_PERSIST_ENTRY_MAX ? STET_PERSIST_ENTRY_MAX : len)};
    if (!EAT(&c, "["))
        return false;
    if (c.at < c.end && *c.at == '"') {
        out->block = ++c.at;
        while (c.at < c.end && *c.at != '"' && *c.at != '\\' && *c.at != '\n')
            c.at++;
        out->block_len = (uint32_t)(c.at - out->block);
        if (!EAT(&c, "\"") || all_bare(out->block, out->block_len))
            return false;
    } else {
        out->block = c.at;
        out->block_len = (uint32_t)span_bare(&c);
        c.at += out->block_len;
    }
    if (!stet_block_valid(out->block, out->block_len) || !EAT(&c, "."))
        return false;
    out->module = c.at;
    if (span_bare(&c) != STET_PERSIST_HASH)
        return false;
    c.at += STET_PERSIST_HASH;
    if (!EAT(&c, "."))
        return false;
    const char *created = c.at;
    c.at += span_decimal(&c, &out->created);
    size_t created_len = (size_t)(c.at - created);
    if (!stet_created_parse(created, created_len, &out->created) || !EAT(&c, "]\n"))
        return false;
    stet_buf *b = &s->preimage;
    stet_buf_clear(b);
    stet_buf_add(b, out->block, out->block_len);
    stet_buf_add(b, out->module, STET_PERSIST_HASH);
    stet_buf_add(b, created, created_len);
    const char *last = NULL;
    size_t last_len = 0, contents = 0;
    while (!EAT(&c, "hash = \"")) {
        const char *kind = c.at;
        size_t kind_len = span_bare(&c);
        size_t shorter = kind_len < last_len ? kind_len : last_len;
        int order = last ? memcmp(last, kind, shorter) : -1;
        if (!stet_persist_valid_kind(kind, kind_len) || order > 0 || (order == 0 && last_len >= kind_len))
            return false;
        last = kind;
        last_len = kind_len;
        c.at += kind_len;
        if (!EAT(&c, " = "))
            return false;
        stet_buf_add(b, kind, kind_len);
        if (c.at < c.end && *c.at == '{') {
            stet_pcontent x;
            if (++contents > STET_PERSIST_CONTENTS_MAX || !eat_content(&c, &x) || !EAT(&c, " }\n") ||
                !stet_persist_valid_id(x.id, x.id_len) || !valid_format(x.format, x.format_len))
                return false;
            stet_buf_add(b, "format", 6);
            stet_buf_add(b, x.format, x.format_len);
            stet_buf_add(b, "id", 2);
            stet_buf_add(b, x.id, x.id_len);
            stet_buf_add(b, "size", 4);
            const char *size = x.id + x.id_len + 10; /* after `", size = ` */
            stet_buf_add(b, size, (size_t)(x.format - size) - 12);
        } else {
            uint64_t number;
            size_t digits = span_decimal(&c, &number);
            stet_buf_add(b, c.at, digits);
            c.at += digits;
            if (!digits || !EAT(&c, "\n"))
                return false;
        }
    }
    if (c.end - c.at < STET_PERSIST_HASH_SHORT)
        return false;
    memcpy(out->hash, c.at, STET_PERSIST_HASH_SHORT);
    c.at += STET_PERSIST_HASH_SHORT;
    if (!EAT(&c, "\"\n"))
        return false;
    char computed[STET_PERSIST_HASH_SHORT + 1];
    short_hash(b, computed);
    if (memcmp(computed, out->hash, STET_PERSIST_HASH_SHORT) != 0)
        return false;
    out->text = text;
    out->text_len = (uint32_t)(c.at - text);
    /* Only blank lines may follow, up to the next table. */
    const char *end = text + len;
    while (c.at < end && *c.at == '\n')
        c.at++;
    if (c.at < end && *c.at != '[')
        return false;
    *used = (size_t)(c.at - text);
    out->older = 0;
    out->in_log = false;
    return true;
}

stet_pentry_state stet_pentry_parse(const char *text, size_t len, stet_arena *arena, stet_pentry_scratch *scratch,
                                    stet_pentry *out, size_t *used, const char **why) {
    if (parse_canonical(text, len, scratch, out, used))
        return STET_PENTRY_OK;
    return stet_pentry_parse_slow(text, len, arena, scratch, out, used, why);
}

bool stet_pentry_content(const stet_pentry *e, size_t *at, stet_pcontent *out) {
    cursor c = {e->text + *at, e->text + e->text_len};
    while (c.at < c.end) {
        const char *newline = memchr(c.at, '\n', (size_t)(c.end - c.at));
        const char *next = newline ? newline + 1 : c.end;
        cursor line = {c.at, next};
        out->kind = line.at;
        out->kind_len = (uint32_t)span_bare(&line);
        line.at += out->kind_len;
        if (*c.at != '[' && out->kind_len && EAT(&line, " = ") && eat_content(&line, out)) {
            out->extra = line.at;
            out->extra_len = (uint32_t)(next - 3 - line.at); /* up to ` }` and the newline */
            *at = (size_t)(next - e->text);
            return true;
        }
        c.at = next;
    }
    *at = e->text_len;
    return false;
}

uint64_t stet_pentry_size(const stet_pentry *e) {
    uint64_t total = 0;
    stet_pcontent c;
    for (size_t at = 0; stet_pentry_content(e, &at, &c);)
        total = c.size > UINT64_MAX - total ? UINT64_MAX : total + c.size;
    return total;
}

stet_status stet_pentry_make(const stet_persist_key *key, stet_pcontent_in *contents, size_t count, stet_pextra *extra,
                             size_t extra_count, stet_arena *arena, stet_pentry_scratch *s, stet_pentry *out,
                             stet_error *err) {
    stet_status status = stet_persist_key_check(key, true, err);
    if (status != STET_OK)
        return status;
    stet_buf body = STET_BUF(STET_PERSIST_ENTRY_MAX);
    for (size_t i = 0; i < count; i++) {
        const stet_pcontent_in *c = &contents[i];
        stet_buf_printf(&body, "%s = { id = \"%s\", size = %llu, format = \"%s\"", c->kind, c->id,
                        (unsigned long long)c->size, c->format);
        for (size_t k = 0; k < c->extra_count; k++) {
            stet_buf_str(&body, ", ");
            write_key(&body, c->extra[k].key, strlen(c->extra[k].key));
            stet_buf_printf(&body, " = %s", c->extra[k].raw);
        }
        stet_buf_str(&body, " }\n");
    }
    for (size_t k = 0; k < extra_count; k++) {
        write_key(&body, extra[k].key, strlen(extra[k].key));
        stet_buf_printf(&body, " = %s\n", extra[k].raw);
    }
    const char *why = "more than 1 MiB of contents";
    memset(out, 0, sizeof *out);
    out->block_len = (uint32_t)(key->block_len ? key->block_len : strlen(key->block_id));
    out->block = stet_arena_strndup(arena, key->block_id, out->block_len);
    out->module = stet_arena_strndup(arena, key->module_hash, STET_PERSIST_HASH);
    out->created = key->created_at;
    bool ok = !body.overflow && stet_tree_parse(&s->tree, body.len ? body.data : "", body.len, false, &why);
    if (ok) {
        stet_buf_clear(&s->preimage);
        preimage_key(out, &s->preimage);
        stet_tree_preimage(&s->tree, &s->tree.nodes.at[0], "hash", &s->preimage);
        char computed[STET_PERSIST_HASH_SHORT + 1];
        short_hash(&s->preimage, computed);
        memcpy(out->hash, computed, STET_PERSIST_HASH_SHORT);
        stet_buf_clear(&s->text);
        s->text.max = STET_PERSIST_ENTRY_MAX;
        ok = write_canonical(&s->tree, out, computed, &s->text, &why);
        if (ok) {
            out->text = stet_arena_strndup(arena, s->text.data, s->text.len);
            out->text_len = (uint32_t)s->text.len;
        }
    }
    stet_buf_release(&body);
    return ok ? STET_OK : stet_fail(err, STET_INVALID, "the entry can't be written: %s", why);
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len) {
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

int stet_pentry_compare(const stet_pentry *a, const stet_pentry *b) {
    int c = compare_bytes(a->block, a->block_len, b->block, b->block_len);
    if (!c)
        c = memcmp(a->module, b->module, STET_PERSIST_HASH);
    if (c || a->created == b->created)
        return c;
    char x[24], y[24];
    size_t x_len = stet_created_print(a->created, x), y_len = stet_created_print(b->created, y);
    return compare_bytes(x, x_len, y, y_len);
}

bool stet_pentry_same_key(const stet_pentry *a, const stet_pentry *b) {
    return a->created == b->created && a->block_len == b->block_len &&
           !memcmp(a->module, b->module, STET_PERSIST_HASH) && !memcmp(a->block, b->block, a->block_len);
}

static void preimage_of(const stet_pentry *e, stet_pentry_scratch *s) {
    const char *why, *newline = memchr(e->text, '\n', e->text_len);
    stet_buf_clear(&s->preimage);
    preimage_key(e, &s->preimage);
    bool ok = stet_tree_parse(&s->tree, newline, e->text_len - (size_t)(newline - e->text), false, &why);
    assert(ok); /* canonical text parses */
    if (ok)
        stet_tree_preimage(&s->tree, &s->tree.nodes.at[0], "hash", &s->preimage);
}

int stet_pentry_prefer(const stet_pentry *a, const stet_pentry *b) {
    stet_pcontent x = {0}, y = {0};
    size_t at_a = 0, at_b = 0;
    bool more_a = stet_pentry_content(a, &at_a, &x), more_b = stet_pentry_content(b, &at_b, &y);
    while (more_a || more_b) {
        int c = !more_b ? -1 : !more_a ? 1 : compare_bytes(x.kind, x.kind_len, y.kind, y.kind_len);
        uint64_t size_a = c <= 0 ? x.size : 0, size_b = c >= 0 ? y.size : 0;
        if (size_a != size_b)
            return size_a > size_b ? 1 : -1;
        if (c <= 0)
            more_a = stet_pentry_content(a, &at_a, &x);
        if (c >= 0)
            more_b = stet_pentry_content(b, &at_b, &y);
    }
    stet_pentry_scratch s = {0}, t = {0};
    preimage_of(a, &s);
    preimage_of(b, &t);
    int c = compare_bytes(s.preimage.data, s.preimage.len, t.preimage.data, t.preimage.len);
    stet_pentry_scratch_release(&s);
    stet_pentry_scratch_release(&t);
    return c ? c : compare_bytes(a->text, a->text_len, b->text, b->text_len);
}

bool stet_pentry_same_contents(const stet_pentry *a, const stet_pentry *b) {
    stet_pcontent x, y;
    for (size_t at_a = 0, at_b = 0;;) {
        bool more_a = stet_pentry_content(a, &at_a, &x), more_b = stet_pentry_content(b, &at_b, &y);
        if (more_a != more_b)
            return false;
        if (!more_a)
            return true;
        /* One id may be qualified and the other not: compare the hash, which is their first part. */
        if (x.size != y.size || compare_bytes(x.kind, x.kind_len, y.kind, y.kind_len) != 0 ||
            compare_bytes(x.format, x.format_len, y.format, y.format_len) != 0 ||
            memcmp(x.id, y.id, STET_PERSIST_HASH) != 0)
            return false;
    }
}

typedef struct handed_out {
    stet_persist_entry e;
    stet_arena arena;
} handed_out;

stet_persist_entry *stet_pentry_copy(const stet_pentry *e) {
    handed_out *h = stet_alloc_zero(sizeof *h);
    stet_arena *a = &h->arena;
    stet_persist_entry *out = &h->e;
    out->text = stet_arena_strndup(a, e->text, e->text_len);
    out->key.block_id = stet_arena_strndup(a, e->block, e->block_len);
    out->key.block_len = e->block_len;
    out->key.module_hash = stet_arena_strndup(a, e->module, STET_PERSIST_HASH);
    out->key.created_at = e->created;
    memcpy(out->hash, e->hash, STET_PERSIST_HASH_SHORT);
    out->in_log = e->in_log;
    stet_pcontent c;
    for (size_t at = 0; stet_pentry_content(e, &at, &c);)
        out->content_count++;
    out->contents = stet_arena_zero(a, (out->content_count + 1) * sizeof *out->contents);
    size_t i = 0;
    for (size_t at = 0; stet_pentry_content(e, &at, &c); i++)
        out->contents[i] = (stet_persist_content){.kind = stet_arena_strndup(a, c.kind, c.kind_len),
                                                  .id = stet_arena_strndup(a, c.id, c.id_len),
                                                  .format = stet_arena_strndup(a, c.format, c.format_len),
                                                  .extra = stet_arena_strndup(a, c.extra, c.extra_len),
                                                  .size = c.size};
    out->total_size = stet_pentry_size(e);
    out->elapsed_ms = -1;
    const char *elapsed = strstr(out->text, "\nelapsed_ms = ");
    uint64_t ms;
    if (elapsed) {
        cursor n = {elapsed + 14, out->text + e->text_len};
        if (span_decimal(&n, &ms))
            out->elapsed_ms = (int64_t)ms;
    }
    return out;
}

void *stet_persist_entry_room(stet_persist_entry *e, size_t size) {
    return stet_arena_alloc(&((handed_out *)e)->arena, size);
}

void stet_persist_entry_free(stet_persist_entry *e) {
    if (!e)
        return;
    handed_out *h = (handed_out *)e;
    stet_arena_release(&h->arena);
    free(h);
}

const stet_persist_content *stet_persist_entry_content(const stet_persist_entry *e, const char *kind) {
    if (!e || !kind)
        return NULL;
    for (size_t i = 0; i < e->content_count; i++)
        if (!strcmp(e->contents[i].kind, kind))
            return &e->contents[i];
    return NULL;
}

/* Finds a further key. The caller releases the tree. */
static const stet_node *find_extra(stet_tree *tree, const stet_persist_entry *e, const stet_persist_content *c,
                                   const char *key) {
    const char *why, *body = strchr(e->text, '\n');
    if (!stet_tree_parse(tree, body, strlen(body), false, &why))
        return NULL;
    const stet_node *table = &tree->nodes.at[0];
    if (c && !(table = stet_tree_find(tree, table, c->kind)))
        return NULL;
    return stet_tree_find(tree, table, key);
}

bool stet_persist_extra_string(const stet_persist_entry *e, const stet_persist_content *c, const char *key,
                               stet_buf *out) {
    stet_tree tree = {0};
    const stet_node *n = find_extra(&tree, e, c, key);
    bool found = n && n->type == STET_NODE_STRING;
    if (found)
        stet_buf_add(out, n->text, n->text_len);
    stet_tree_release(&tree);
    return found;
}

bool stet_persist_extra_int(const stet_persist_entry *e, const stet_persist_content *c, const char *key, int64_t *out) {
    stet_tree tree = {0};
    const stet_node *n = find_extra(&tree, e, c, key);
    bool found = n && n->type == STET_NODE_INT;
    if (found)
        *out = n->number;
    stet_tree_release(&tree);
    return found;
}
