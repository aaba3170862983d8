/* format.h - the text format: tokens, the TOML subset, and single entries. No file is touched here.
 *
 * The reader is strict. It accepts the subset of TOML that the format uses (bare and quoted keys, one-line strings,
 * integers, booleans, arrays, inline tables; other scalars only as literals that are kept as they are). It limits depth
 * and size, and does not recurse. An entry is accepted only if its hash is right.
 *
 * Canonical text. Every entry is held and written in one form, so that machines which merge the same entries write the
 * same bytes: keys sorted by bytes, `hash` last, a content as { id, size, format, then further keys sorted }. Values
 * that the format does not know are kept verbatim.
 *
 * Mapping hash. The hash is over the keys sorted by bytes, each followed by its value, without separators:
 *   strings          as they are
 *   integers         in decimal
 *   booleans         true or false
 *   other literals   as they are written
 *   lists            the elements in order
 *   tables           by the same rule
 */
#ifndef STET_PERSIST_FORMAT_H
#define STET_PERSIST_FORMAT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/vec.h"
#include "persist/persist.h"

#define STET_PERSIST_HASH_SHORT 11 /* characters of an entry hash */
#define STET_PERSIST_DEPTH_MAX  16 /* nested arrays and inline tables */

typedef enum stet_node_type {
    STET_NODE_STRING,
    STET_NODE_INT,
    STET_NODE_LITERAL,
    STET_NODE_ARRAY,
    STET_NODE_TABLE
} stet_node_type;

typedef struct stet_node {
    stet_node_type type;
    uint32_t first, last,
        next; /* Children and sibling: index plus one; 0: none. Children of tables are sorted by key. */
    uint32_t key_len, text_len, raw_len;
    const char *key;  /* decoded */
    const char *text; /* decoded string, or the decimal, or the literal */
    const char *raw;  /* as in the source */
    int64_t number;   /* of STET_NODE_INT */
} stet_node;

typedef struct stet_tree {
    struct {
        stet_node *at; /* at[0] is the root, a table */
        size_t len, cap;
    } nodes;
    stet_arena arena; /* decoded strings */
} stet_tree;

/* Reads `key = value` lines into `tree`, which is cleared first and may be reused. Texts point into `text` or the
 * tree's arena. False: *why says what is wrong. */
bool stet_tree_parse(stet_tree *tree, const char *text, size_t len, bool lists_span_lines, const char **why);
const stet_node *stet_tree_find(const stet_tree *tree, const stet_node *table, const char *key);
const stet_node *stet_tree_child(const stet_tree *tree, const stet_node *of); /* first */
const stet_node *stet_tree_next(const stet_tree *tree, const stet_node *sibling);
/* Appends the text that the mapping hash is over, without the key `except` of the topmost table (NULL: all keys). */
void stet_tree_preimage(const stet_tree *tree, const stet_node *node, const char *except, stet_buf *out);
void stet_tree_release(stet_tree *tree);

/* Parses a table header `[a.b.c]` at the start of a line (without its newline) into its decoded parts. Returns their
 * number, 0 if the header is malformed, or -1 if there are more than `max`. */
int stet_header_parse(const char *line, size_t len, stet_arena *arena, const char **parts, size_t *lens, int max);

typedef struct stet_pentry {
    const char *text;   /* canonical: from '[' to the newline after `hash` */
    const char *block;  /* decoded */
    const char *module; /* 43 characters */
    uint64_t created;
    uint32_t text_len, block_len;
    uint32_t older; /* in a set: index plus one of the next older entry of the same block and module */
    char hash[STET_PERSIST_HASH_SHORT]; /* as recorded */
    bool in_log;
} stet_pentry;

typedef enum stet_pentry_state {
    STET_PENTRY_OK,
    STET_PENTRY_WRONG_HASH, /* well-formed: key and recorded hash are set, the rest can't be trusted */
    STET_PENTRY_MALFORMED
} stet_pentry_state;

/* Memory that parsing reuses. Zero-initialised. */
typedef struct stet_pentry_scratch {
    stet_tree tree;
    stet_buf preimage, text;
} stet_pentry_scratch;
void stet_pentry_scratch_release(stet_pentry_scratch *s);

/* Parses the table at the start of `text`. *used is set to where the next one may begin, whatever the outcome. An entry
 * that is not in canonical form is rewritten into `arena`. */
stet_pentry_state stet_pentry_parse(const char *text, size_t len, stet_arena *arena, stet_pentry_scratch *scratch,
                                    stet_pentry *out, size_t *used, const char **why);
/* The same without the short cut for canonical text; for tests that compare the two. */
stet_pentry_state stet_pentry_parse_slow(const char *text, size_t len, stet_arena *arena, stet_pentry_scratch *scratch,
                                         stet_pentry *out, size_t *used, const char **why);
/* Length of the table that begins here: up to the next line that begins with '['. */
size_t stet_table_len(const char *text, size_t len);

/* Walks the contents of an entry's canonical text. */
typedef struct stet_pcontent {
    const char *kind, *id, *format, *extra; /* not terminated; escapes in format are not decoded */
    uint32_t kind_len, id_len, format_len, extra_len;
    uint64_t size;
} stet_pcontent;
bool stet_pentry_content(const stet_pentry *e, size_t *cursor, stet_pcontent *out);
uint64_t stet_pentry_size(const stet_pentry *e); /* of all contents, saturating */

/* A further key; `raw` is its value as TOML. */
typedef struct stet_pextra {
    const char *key, *raw;
} stet_pextra;
typedef struct stet_pcontent_in {
    const char *kind, *id, *format;
    uint64_t size;
    stet_pextra *extra;
    size_t extra_count;
} stet_pcontent_in;
/* Makes the canonical text of a new entry, with its hash. */
STET_CHECKED stet_status stet_pentry_make(const stet_persist_key *key, stet_pcontent_in *contents, size_t count,
                                          stet_pextra *extra, size_t extra_count, stet_arena *arena,
                                          stet_pentry_scratch *scratch, stet_pentry *out, stet_error *err);

/* Order of keys as the mapping hash sorts them: block, module, created_at as text. */
int stet_pentry_compare(const stet_pentry *a, const stet_pentry *b);
bool stet_pentry_same_key(const stet_pentry *a, const stet_pentry *b);
/* Decides which of two entries with the same key stays: positive if `a` does. Compares content sizes in the order of
 * kinds, then the bytes; the larger one stays. Zero only for identical texts. */
int stet_pentry_prefer(const stet_pentry *a, const stet_pentry *b);
/* Do both have the same kinds with the same bytes, sizes and formats? Further keys may differ. */
bool stet_pentry_same_contents(const stet_pentry *a, const stet_pentry *b);

/* Makes the copy of an entry that is handed out. */
stet_persist_entry *stet_pentry_copy(const stet_pentry *e);
void *stet_persist_entry_room(stet_persist_entry *e, size_t size); /* memory that lives as long as the copy */

/* A character of base64url, and also of a bare key. */
static inline bool stet_token_char(unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
/* The text of a decimal created_at. */
size_t stet_created_print(uint64_t created, char out[24]);
/* 1 to 15 digits, no leading zero. */
bool stet_created_parse(const char *s, size_t len, uint64_t *out);
/* Valid UTF-8, no control characters, not reserved, 1 to the maximum number of bytes. */
bool stet_block_valid(const char *s, size_t len);

#endif
