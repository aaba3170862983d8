/* log_index.c - an index of the log, so that a process that wants one entry need not parse them all.
 *
 * Reading a log means parsing and hashing every table; the result is a position for each. The positions are kept in
 * `log-index` of this machine's own directory, for a prefix of the log that is identified by its length and a checksum
 * of its bytes. If any byte differs, the index is not used. The index is derived and never synced; if it is missing,
 * short or damaged, the log is read in full.
 */

#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "persist/internal.h"

#define MAGIC     "stetplog"
#define FILE_NAME "log-index"
#define LEAST     (128 << 10) /* bytes; an index of a smaller log is not worthwhile */

typedef struct header {
    char magic[8];
    uint64_t check; /* of everything after this member */
    uint64_t covered, sum, rows, bad;
} header;

typedef struct row {
    uint64_t created;
    uint32_t text_at, text_len, module_at, block_at, block_len;
    char hash[STET_PERSIST_HASH_SHORT];
} row;

static char *index_path(const stet_persist *p) {
    return stet_ppath(p->local, FILE_NAME);
}

static bool row_fits(const row *r, const char *text, uint64_t covered) {
    return (uint64_t)r->text_at + r->text_len <= covered && r->text_len > 0 && text[r->text_at] == '[' &&
           (uint64_t)r->module_at + STET_PERSIST_HASH <= covered && (uint64_t)r->block_at + r->block_len <= covered;
}

/* Reads the index and the part of the log that it covers. False: no index fits. */
static bool read_both(const stet_persist *p, int fd, int64_t size, header *h, char **rows, char **text) {
    char *path = index_path(p);
    size_t len, got;
    *rows = *text = NULL;
    bool fine = stet_persist_read_file(path, rows, &len, NULL, NULL) == STET_OK;
    stet_free(path);
    if (!fine)
        *rows = NULL;
    fine = fine && len >= sizeof *h;
    if (fine)
        memcpy(h, *rows, sizeof *h);
    fine = fine && memcmp(h->magic, MAGIC, 8) == 0 && h->covered > 0 && h->covered <= (uint64_t)size &&
           h->covered < UINT32_MAX && h->rows <= len / sizeof(row) && len == sizeof *h + h->rows * sizeof(row) &&
           stet_checksum(*rows + 16, len - 16) == h->check && lseek(fd, 0, SEEK_SET) == 0;
    if (fine) {
        *text = stet_alloc((size_t)h->covered + 1);
        fine = stet_file_read_all(fd, p->log_path, *text, (size_t)h->covered, &got, NULL) == STET_OK &&
               got == h->covered && stet_checksum(*text, got) == h->sum;
    }
    if (fine)
        (*text)[h->covered] = 0;
    return fine;
}

bool stet_plog_recall(stet_persist *p, int fd, int64_t size) {
    stet_plog *l = &p->log;
    header h;
    char *rows, *text;
    if (size < LEAST || l->offset > 0 || l->entries.len > 0)
        return false;
    bool fine = read_both(p, fd, size, &h, &rows, &text);
    stet_pentries entries = {0};
    for (size_t i = 0; fine && i < h.rows; i++) {
        row r;
        memcpy(&r, rows + sizeof h + i * sizeof r, sizeof r);
        fine = row_fits(&r, text, h.covered);
        if (!fine)
            break;
        stet_pentry *e = stet_vec_add(&entries);
        *e = (stet_pentry){.text = text + r.text_at,
                           .block = text + r.block_at,
                           .module = text + r.module_at,
                           .created = r.created,
                           .text_len = r.text_len,
                           .block_len = r.block_len,
                           .in_log = true};
        memcpy(e->hash, r.hash, sizeof r.hash);
    }
    stet_free(rows);
    if (!fine) {
        stet_vec_release(&entries);
        stet_free(text);
        return false;
    }
    if (!l->texts)
        l->texts = stet_ptexts_new();
    *stet_vec_add(&l->texts->blocks) = text;
    stet_vec_release(&l->entries);
    l->entries = entries;
    l->parsed = (stet_plog_parsed){.header_seen = true, .bad = h.bad, .last_good = true};
    stet_plog_passed(l, text, (size_t)h.covered, 0);
    l->indexed = l->offset;
    return true;
}

/* The offset in the log that a pointer of an entry corresponds to. False: the entry was rewritten elsewhere. */
static bool place_of(const stet_plog *l, const char *at, size_t len, uint32_t *out) {
    for (size_t i = 0; i < l->piece_count; i++) {
        uintptr_t from = (uintptr_t)l->pieces[i].text, here = (uintptr_t)at;
        if (here >= from && here + len <= from + l->pieces[i].len) {
            *out = (uint32_t)((uint64_t)l->pieces[i].from + (here - from));
            return true;
        }
    }
    return false;
}

/* Copies the bytes that were read, which lie in several pieces of memory, into one. */
static char *whole(const stet_plog *l) {
    char *text = stet_alloc((size_t)l->offset + 1);
    int64_t at = 0;
    for (size_t i = 0; i < l->piece_count && at == l->pieces[i].from; i++) {
        memcpy(text + at, l->pieces[i].text, l->pieces[i].len);
        at += (int64_t)l->pieces[i].len;
    }
    if (at == l->offset)
        return text;
    stet_free(text);
    return NULL;
}

static void write_index(const stet_persist *p, const stet_buf *b) {
    char *path = index_path(p), *temp = stet_file_temp_name(p->local, "log-index-new");
    int fd = stet_sys_open(temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool fine = fd >= 0 && stet_file_write_all(fd, temp, b->data, b->len, NULL) == STET_OK;
    if (fd >= 0)
        stet_sys_close(fd);
    if (fd >= 0 && (!fine || stet_sys_rename(temp, path) != 0))
        stet_sys_unlink(temp); /* then the next process reads the log */
    stet_free(temp);
    stet_free(path);
}

void stet_plog_keep_index(stet_persist *p) {
    stet_plog *l = &p->log;
    if (p->read_only[0] || l->offset < LEAST || l->offset >= UINT32_MAX ||
        l->offset - l->indexed < LEAST + l->indexed / 4 || l->parsed.unknown_version)
        return;
    header h = {.covered = (uint64_t)l->offset, .rows = l->entries.len, .bad = l->parsed.bad};
    memcpy(h.magic, MAGIC, 8);
    stet_buf b = STET_BUF(STET_PERSIST_FILE_MAX);
    stet_buf_add(&b, &h, sizeof h);
    bool fine = true;
    for (size_t i = 0; i < l->entries.len && fine; i++) {
        const stet_pentry *e = &l->entries.at[i];
        row r;
        memset(&r, 0, sizeof r);
        r.created = e->created;
        r.text_len = e->text_len;
        r.block_len = e->block_len;
        memcpy(r.hash, e->hash, sizeof r.hash);
        fine = place_of(l, e->text, e->text_len, &r.text_at) &&
               place_of(l, e->module, STET_PERSIST_HASH, &r.module_at) &&
               place_of(l, e->block, e->block_len, &r.block_at);
        stet_buf_add(&b, &r, sizeof r);
    }
    char *text = fine && !b.overflow ? whole(l) : NULL;
    if (text) {
        h.sum = stet_checksum(text, (size_t)l->offset);
        memcpy(b.data, &h, sizeof h);
        h.check = stet_checksum(b.data + 16, b.len - 16);
        memcpy(b.data, &h, sizeof h);
        write_index(p, &b);
        l->indexed = l->offset;
    }
    stet_free(text);
    stet_buf_release(&b);
}
