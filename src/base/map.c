#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/error.h"

/* Entries stand in insertion order in one array; the table holds their indices plus one, so 0 is an empty place. A
 * removed entry has no key (NULL) and its place in the table becomes a tombstone, so that probing goes on over it. The
 * array is compacted, and the table made anew, only in put: a walk may remove what it walks over. */
struct stet_map_entry {
    char *key;
    size_t key_len;
    uint64_t hash;
    stet_slot value;
};

#define TOMBSTONE UINT32_MAX
#define NOT_FOUND SIZE_MAX

static uint64_t seed[2];

static void make_seed(void) {
    if (getrandom(seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return;
    /* Early boot only: addresses and the clock are better than nothing. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed[0] = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)&now;
    seed[1] = (uint64_t)now.tv_sec * 0xD1B54A32D192ED03u ^ (uint64_t)(uintptr_t)&make_seed;
}

static inline uint64_t rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

#define SIP_ROUND(a, b, c, d)                                                                                          \
    do {                                                                                                               \
        a += b, b = rotate(b, 13) ^ a, a = rotate(a, 32);                                                              \
        c += d, d = rotate(d, 16) ^ c;                                                                                 \
        a += d, d = rotate(d, 21) ^ a;                                                                                 \
        c += b, b = rotate(b, 17) ^ c, c = rotate(c, 32);                                                              \
    } while (0)

/* SipHash-1-3: keyed, and quick enough for short keys. */
uint64_t stet_map_hash(const void *key, size_t len) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_seed);
    const unsigned char *p = key;
    uint64_t a = seed[0] ^ 0x736f6d6570736575u, b = seed[1] ^ 0x646f72616e646f6du;
    uint64_t c = seed[0] ^ 0x6c7967656e657261u, d = seed[1] ^ 0x7465646279746573u;
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        d ^= word;
        SIP_ROUND(a, b, c, d);
        a ^= word;
    }
    uint64_t last = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    d ^= last;
    SIP_ROUND(a, b, c, d);
    a ^= last;
    c ^= 0xff;
    for (int i = 0; i < 3; i++)
        SIP_ROUND(a, b, c, d);
    return a ^ b ^ c ^ d;
}

/* The place in the table that leads to `key`, or NOT_FOUND. */
static size_t find(const stet_map *m, const void *key, size_t len, uint64_t hash) {
    if (!m->table_cap)
        return NOT_FOUND;
    size_t mask = m->table_cap - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t index = m->table[i];
        if (!index)
            return NOT_FOUND;
        if (index == TOMBSTONE)
            continue;
        const struct stet_map_entry *e = &m->entries[index - 1];
        if (e->hash == hash && e->key_len == len && (!len || !memcmp(e->key, key, len)))
            return i;
    }
}

static void rebuild(stet_map *m) {
    size_t live = 0;
    for (size_t i = 0; i < m->used; i++)
        if (m->entries[i].key)
            m->entries[live++] = m->entries[i];
    m->used = live;
    size_t cap = live < 8 ? 8 : live * 2; /* at least twice the live ones: a put after this is amortised */
    if (cap > UINT32_MAX / 4)
        abort(); /* the indices are 32 bits wide */
    if (cap > m->cap) {
        m->entries = stet_realloc(m->entries, cap * sizeof *m->entries);
        m->cap = cap;
    }
    size_t table_cap = 16;
    while (table_cap < m->cap * 2)
        table_cap *= 2;
    if (table_cap != m->table_cap) {
        free(m->table);
        m->table = stet_alloc(table_cap * sizeof *m->table);
        m->table_cap = table_cap;
    }
    memset(m->table, 0, table_cap * sizeof *m->table);
    for (size_t i = 0; i < live; i++) {
        size_t at = m->entries[i].hash & (table_cap - 1);
        while (m->table[at])
            at = (at + 1) & (table_cap - 1);
        m->table[at] = (uint32_t)(i + 1);
    }
}

stet_slot *stet_map_get(const stet_map *m, const void *key, size_t key_len) {
    if (!m->len)
        return NULL;
    size_t at = find(m, key, key_len, stet_map_hash(key, key_len));
    return at == NOT_FOUND ? NULL : &m->entries[m->table[at] - 1].value;
}

stet_slot *stet_map_put(stet_map *m, const void *key, size_t key_len, stet_slot value) {
    uint64_t hash = stet_map_hash(key, key_len);
    size_t at = find(m, key, key_len, hash);
    if (at != NOT_FOUND) {
        stet_slot *slot = &m->entries[m->table[at] - 1].value;
        *slot = value;
        return slot;
    }
    char *copy = stet_alloc(key_len + 1); /* before anything moves: `key` may be one of ours */
    if (key_len)
        memcpy(copy, key, key_len);
    copy[key_len] = 0;
    /* Every put takes a new entry, so used bounds live places and tombstones together: the table is never over half
     * full. */
    if (m->used == m->cap)
        rebuild(m);
    size_t mask = m->table_cap - 1;
    size_t place = hash & mask;
    while (m->table[place] && m->table[place] != TOMBSTONE)
        place = (place + 1) & mask;
    struct stet_map_entry *e = &m->entries[m->used++];
    *e = (struct stet_map_entry){.key = copy, .key_len = key_len, .hash = hash, .value = value};
    m->table[place] = (uint32_t)m->used;
    m->len++;
    return &e->value;
}

bool stet_map_remove(stet_map *m, const void *key, size_t key_len) {
    if (!m->len)
        return false;
    size_t at = find(m, key, key_len, stet_map_hash(key, key_len));
    if (at == NOT_FOUND)
        return false;
    struct stet_map_entry *e = &m->entries[m->table[at] - 1];
    free(e->key);
    e->key = NULL;
    m->table[at] = TOMBSTONE;
    m->len--;
    return true;
}

size_t stet_map_len(const stet_map *m) {
    return m->len;
}

bool stet_map_next(const stet_map *m, size_t *cursor, const void **key, size_t *key_len, stet_slot **value) {
    while (*cursor < m->used) {
        struct stet_map_entry *e = &m->entries[(*cursor)++];
        if (!e->key)
            continue;
        if (key)
            *key = e->key;
        if (key_len)
            *key_len = e->key_len;
        if (value)
            *value = &e->value;
        return true;
    }
    return false;
}

void stet_map_clear(stet_map *m) {
    for (size_t i = 0; i < m->used; i++)
        free(m->entries[i].key);
    if (m->table_cap)
        memset(m->table, 0, m->table_cap * sizeof *m->table);
    m->len = m->used = 0;
}

void stet_map_release(stet_map *m) {
    for (size_t i = 0; i < m->used; i++)
        free(m->entries[i].key);
    free(m->entries);
    free(m->table);
    *m = (stet_map){0};
}
