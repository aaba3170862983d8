/* crc32c.h - CRC-32C (Castagnoli), the checksum of stored rows.
 *
 *     uint32_t sum = stet_crc32c(0, bytes, len);
 *     sum = stet_crc32c(sum, more, more_len); // the same as the sum of both in one piece
 *
 * The checksum finds every single flipped bit, every burst of up to 32 bits and all but one in four billion other
 * errors. It does not protect against people: whoever can write the file can write the checksum too. Nothing here has
 * state: any thread may call.
 */
#ifndef STET_BASE_CRC32C_H
#define STET_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Uses the processor's instruction, if there is one. */
uint32_t stet_crc32c(uint32_t sum, const void *bytes, size_t len);
/* Uses a table: eight bytes a step. */
uint32_t stet_crc32c_table(uint32_t sum, const void *bytes, size_t len);

#endif
