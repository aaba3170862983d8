/* map.c - a hash map from bytes to a pointer or a number, iterated in insertion order. */

#include "base/map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/error.h"

/* Entries are kept in insertion order in one array. A slot of the table holds the index of its entry plus one (0: an
 * empty slot) and the upper half of the hash. Thus a search that passes other keys, or that finds nothing, seldom reads
 * an entry; on large maps each such read is a cache miss. For the same reason a short key is stored in its entry.
 *
 * A removed entry has the length REMOVED, and its slot becomes a tombstone, over which probing continues. Only put
 * compacts the array and rebuilds the table, so that a loop over the map may remove the entry at hand.
 */
enum { NEAR = 24 }; /* a key of up to this size, with its NUL, is stored in the entry */

struct stet_map_entry {
    union {
        char near[NEAR];
        char *far;
    } key;
    size_t key_len;
    uint64_t hash;
    stet_slot value;
};

#define REMOVED   SIZE_MAX
#define TOMBSTONE UINT32_MAX
#define NOT_FOUND SIZE_MAX

static const char *key_of(const struct stet_map_entry *e) {
    return e->key_len < NEAR ? e->key.near : e->key.far;
}

static void free_key(struct stet_map_entry *e) {
    if (e->key_len >= NEAR && e->key_len != REMOVED)
        free(e->key.far);
}

static uint64_t place_of(uint64_t hash, size_t index) {
    return (hash >> 32) << 32 | (uint32_t)(index + 1);
}

static struct stet_map_entry *entry_at(const stet_map *m, size_t place) {
    return &m->entries[(uint32_t)m->table[place] - 1];
}

static uint64_t seed[2];

static void make_seed(void) {
    if (getrandom(seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return;
    /* Only early during boot: addresses and the clock are better than nothing. */
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
    static atomic_bool seeded; /* what pthread_once knows too, but without its call */
    if (!atomic_load_explicit(&seeded, memory_order_acquire)) {
        pthread_once(&once, make_seed);
        atomic_store_explicit(&seeded, true, memory_order_release);
    }
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
    /* The remaining bytes, with the length above them. If the key has at least eight bytes, they are read from its end,
     * otherwise one by one. */
    uint64_t last = 0;
    if (left && len >= 8) {
        memcpy(&last, p + left - 8, 8);
        last >>= 8 * (8 - left);
    } else {
        for (size_t i = 0; i < left; i++)
            last |= (uint64_t)p[i] << (8 * i);
    }
    last |= (uint64_t)len << 56;
    d ^= last;
    SIP_ROUND(a, b, c, d);
    a ^= last;
    c ^= 0xff;
    for (int i = 0; i < 3; i++)
        SIP_ROUND(a, b, c, d);
    return a ^ b ^ c ^ d;
}

/* The slot of the table that refers to `key`, or NOT_FOUND. */
static size_t find(const stet_map *m, const void *key, size_t len, uint64_t hash) {
    if (!m->table_cap)
        return NOT_FOUND;
    size_t mask = m->table_cap - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint64_t place = m->table[i];
        if (!place)
            return NOT_FOUND;
        if ((uint32_t)place == TOMBSTONE || place >> 32 != hash >> 32)
            continue;
        const struct stet_map_entry *e = entry_at(m, i);
        if (e->hash == hash && e->key_len == len && (!len || !memcmp(key_of(e), key, len)))
            return i;
    }
}

static void rebuild(stet_map *m) {
    size_t live = 0;
    for (size_t i = 0; i < m->used; i++)
        if (m->entries[i].key_len != REMOVED)
            m->entries[live++] = m->entries[i];
    m->used = live;
    size_t cap = live < 8 ? 8 : live * 2; /* at least twice the live entries, so that the cost of a put is amortised */
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
        m->table[at] = place_of(m->entries[i].hash, i);
    }
}

stet_slot *stet_map_get(const stet_map *m, const void *key, size_t key_len) {
    if (!m->len)
        return NULL;
    size_t at = find(m, key, key_len, stet_map_hash(key, key_len));
    return at == NOT_FOUND ? NULL : &entry_at(m, at)->value;
}

stet_slot *stet_map_have(stet_map *m, const void *key, size_t key_len, stet_slot value, bool *added) {
    uint64_t hash = stet_map_hash(key, key_len);
    size_t at = find(m, key, key_len, hash);
    *added = at == NOT_FOUND;
    if (at != NOT_FOUND)
        return &entry_at(m, at)->value;
    /* Copied before anything moves: `key` may point into this map. */
    struct stet_map_entry made = {.key_len = key_len, .hash = hash, .value = value};
    char *copy = key_len < NEAR ? made.key.near : (made.key.far = stet_alloc(key_len + 1));
    if (key_len)
        memcpy(copy, key, key_len);
    copy[key_len] = 0;
    /* Every put takes a new entry, so `used` is an upper bound of live slots and tombstones together: the table is
     * never more than half full. */
    if (m->used == m->cap)
        rebuild(m);
    size_t mask = m->table_cap - 1;
    size_t place = hash & mask;
    while (m->table[place] && (uint32_t)m->table[place] != TOMBSTONE)
        place = (place + 1) & mask;
    m->entries[m->used] = made;
    m->table[place] = place_of(hash, m->used);
    m->len++;
    return &m->entries[m->used++].value;
}

stet_slot *stet_map_put(stet_map *m, const void *key, size_t key_len, stet_slot value) {
    bool added;
    stet_slot *slot = stet_map_have(m, key, key_len, value, &added);
    *slot = value;
    return slot;
}

bool stet_map_remove(stet_map *m, const void *key, size_t key_len) {
    if (!m->len)
        return false;
    size_t at = find(m, key, key_len, stet_map_hash(key, key_len));
    if (at == NOT_FOUND)
        return false;
    struct stet_map_entry *e = entry_at(m, at);
    free_key(e);
    e->key_len = REMOVED;
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
        if (e->key_len == REMOVED)
            continue;
        if (key)
            *key = key_of(e);
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
        free_key(&m->entries[i]);
    if (m->table_cap)
        memset(m->table, 0, m->table_cap * sizeof *m->table);
    m->len = m->used = 0;
}

void stet_map_release(stet_map *m) {
    for (size_t i = 0; i < m->used; i++)
        free_key(&m->entries[i]);
    free(m->entries);
    free(m->table);
    *m = (stet_map){0};
}
