/* sum.c - checksums of rows. Part of db.h.
 *
 * The bytes summed for a column are one byte for its type, and then:
 *   - of a number: its 8 bytes, least significant byte first;
 *   - of a text or blob: 8 bytes of length, and the bytes themselves;
 *   - of NULL: nothing.
 * This form is part of every format that stores checksums: changing it needs a migration.
 */

#include <string.h>

#include "base/crc32c.h"
#include "db/internal.h"

/* Collects small pieces, because a call for each would cost more than the checksum. */
typedef struct gathered {
    uint32_t sum;
    size_t len;
    unsigned char bytes[256];
} gathered;

static void flush(gathered *g) {
    g->sum = stet_crc32c(g->sum, g->bytes, g->len);
    g->len = 0;
}

static void add_tag(gathered *g, char tag) {
    if (g->len == sizeof g->bytes)
        flush(g);
    g->bytes[g->len++] = (unsigned char)tag;
}

static void add_number(gathered *g, char tag, uint64_t n) {
    if (g->len + 9 > sizeof g->bytes)
        flush(g);
    g->bytes[g->len++] = (unsigned char)tag;
    for (int i = 0; i < 8; i++)
        g->bytes[g->len++] = (unsigned char)(n >> (8 * i));
}

static void add_bytes(gathered *g, char tag, const void *at, size_t len) {
    add_number(g, tag, len);
    if (len > sizeof g->bytes / 2) {
        flush(g);
        g->sum = stet_crc32c(g->sum, at, len);
        return;
    }
    if (g->len + len > sizeof g->bytes)
        flush(g);
    if (len)
        memcpy(g->bytes + g->len, at, len);
    g->len += len;
}

static void add_double(gathered *g, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    add_number(g, 'r', bits);
}

static int64_t stored(uint32_t sum) {
    return (int32_t)sum;
}

static int64_t total(gathered *g) {
    flush(g);
    return stored(g->sum);
}

int64_t stet_fields_sum(const stet_field *at, int count) {
    gathered g;
    g.sum = 0;
    g.len = 0;
    for (int i = 0; i < count; i++) {
        switch (at[i].kind) {
        case STET_FIELD_NULL:
            add_tag(&g, 'n');
            break;
        case STET_FIELD_INT:
            add_number(&g, 'i', (uint64_t)at[i].number);
            break;
        case STET_FIELD_TEXT:
            add_bytes(&g, 't', at[i].bytes, at[i].len);
            break;
        case STET_FIELD_BLOB:
            add_bytes(&g, 'b', at[i].bytes, at[i].len);
            break;
        }
    }
    return total(&g);
}

void stet_row_sum(stet_row *r, int fields) {
    stet_row_int(r, fields, stet_fields_sum(r->at, fields));
}

static void add_value(gathered *g, sqlite3_value *v) {
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        add_number(g, 'i', (uint64_t)sqlite3_value_int64(v));
        break;
    case SQLITE_FLOAT:
        add_double(g, sqlite3_value_double(v));
        break;
    case SQLITE_TEXT: {
        const void *text = sqlite3_value_text(v);
        add_bytes(g, 't', text, (size_t)sqlite3_value_bytes(v));
        break;
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_value_blob(v);
        add_bytes(g, 'b', blob, (size_t)sqlite3_value_bytes(v));
        break;
    }
    default:
        add_tag(g, 'n');
    }
}

bool stet_column_sound(stet_stmt *s, int first, int count) {
    if (!s->row || sqlite3_column_type(s->handle, first + count) != SQLITE_INTEGER)
        return false;
    gathered g;
    g.sum = 0;
    g.len = 0;
    for (int i = first; i < first + count; i++)
        add_value(&g, sqlite3_column_value(s->handle, i));
    return sqlite3_column_int64(s->handle, first + count) == total(&g);
}

static void row_sum(sqlite3_context *out, int argc, sqlite3_value **argv) {
    gathered g;
    g.sum = 0;
    g.len = 0;
    for (int i = 0; i < argc; i++)
        add_value(&g, argv[i]);
    sqlite3_result_int64(out, total(&g));
}

static void crc32c(sqlite3_context *out, int argc, sqlite3_value **argv) {
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    const void *at = sqlite3_value_blob(argv[0]);
    size_t len = (size_t)sqlite3_value_bytes(argv[0]);
    sqlite3_result_int64(out, stored(len ? stet_crc32c(0, at, len) : 0));
}

int64_t stet_digest_add(int64_t digest, int64_t rows, int64_t sum) {
    return (int64_t)((((uint64_t)digest >> 32) + (uint64_t)rows) << 32 | ((uint32_t)digest ^ (uint32_t)sum));
}

static void digest_step(sqlite3_context *out, int argc, sqlite3_value **argv) {
    int64_t *digest = sqlite3_aggregate_context(out, sizeof *digest);
    if (!digest)
        return;
    gathered g;
    g.sum = 0;
    g.len = 0;
    for (int i = 0; i < argc; i++)
        add_value(&g, argv[i]);
    *digest = stet_digest_add(*digest, 1, total(&g));
}

static void digest_end(sqlite3_context *out) {
    const int64_t *digest = sqlite3_aggregate_context(out, 0);
    sqlite3_result_int64(out, digest ? *digest : 0);
}

int db_declare_sums(sqlite3 *handle) {
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function_v2(handle, "row_sum", -1, flags, NULL, row_sum, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(handle, "crc32c", 1, flags, NULL, crc32c, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(handle, "row_digest", -1, flags, NULL, NULL, digest_step, digest_end, NULL);
    return rc;
}
