/* crc32c.c - CRC-32C, with the processor's instruction where there is one and a table elsewhere. */

#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t table_made = PTHREAD_ONCE_INIT;

static void make_table(void) {
    enum { POLYNOMIAL = 0x82F63B78u }; /* reflected */
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xFF];
}

uint32_t stet_crc32c_table(uint32_t sum, const void *bytes, size_t len) {
    pthread_once(&table_made, make_table);
    const unsigned char *p = bytes;
    uint32_t c = ~sum;
    for (; len >= 8; len -= 8, p += 8) { /* bytes are put together by hand: the same on every byte order */
        uint32_t a = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        c = table[7][a & 0xFF] ^ table[6][a >> 8 & 0xFF] ^ table[5][a >> 16 & 0xFF] ^ table[4][a >> 24] ^
            table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    while (len--)
        c = c >> 8 ^ table[0][(c ^ *p++) & 0xFF];
    return ~c;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t sum, const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    uint64_t c = (uint32_t)~sum;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        c = __builtin_ia32_crc32di(c, word);
    }
    uint32_t rest = (uint32_t)c;
    while (len--)
        rest = __builtin_ia32_crc32qi(rest, *p++);
    return ~rest;
}

uint32_t stet_crc32c(uint32_t sum, const void *bytes, size_t len) {
    return __builtin_cpu_supports("sse4.2") ? by_instruction(sum, bytes, len) : stet_crc32c_table(sum, bytes, len);
}

#else

uint32_t stet_crc32c(uint32_t sum, const void *bytes, size_t len) {
    return stet_crc32c_table(sum, bytes, len);
}

#endif
