/* map.h - a hash map from bytes to a pointer or a 64-bit number.
 *
 *     stet_map m = {0};
 *     stet_map_put(&m, key, len, (stet_slot){.n = 7});
 *     stet_slot *s = stet_map_get(&m, key, len); // NULL if absent; valid until the next put or remove
 *     for (size_t i = 0; stet_map_next(&m, &i, &key, &len, &s);)
 *         total += s->n;
 *     stet_map_release(&m);
 *
 * Keys are copied. Iteration is in insertion order (removed slots are skipped), so it is deterministic.
 */
#ifndef STET_BASE_MAP_H
#define STET_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef union stet_slot {
    void *p;
    uint64_t n;
} stet_slot;

typedef struct stet_map {
    struct stet_map_entry *entries; /* in insertion order */
    uint64_t *table;                /* open addressing, indices into entries plus one, with half of the hash */
    size_t len, used, cap, table_cap;
} stet_map;

stet_slot *stet_map_get(const stet_map *m, const void *key, size_t key_len);
/* Adds or replaces; returns the slot. */
stet_slot *stet_map_put(stet_map *m, const void *key, size_t key_len, stet_slot value);
/* The slot of a key; adds the key with `value` if it is absent. One look-up instead of two. `*added` tells which. */
stet_slot *stet_map_have(stet_map *m, const void *key, size_t key_len, stet_slot value, bool *added);
bool stet_map_remove(stet_map *m, const void *key, size_t key_len);
size_t stet_map_len(const stet_map *m);
/* The key is valid as long as the slot. */
bool stet_map_next(const stet_map *m, size_t *cursor, const void **key, size_t *key_len, stet_slot **value);
void stet_map_clear(stet_map *m);
void stet_map_release(stet_map *m);

/* The hash function of the map (64-bit, seeded per process against crafted collisions). */
uint64_t stet_map_hash(const void *key, size_t len);

#endif
