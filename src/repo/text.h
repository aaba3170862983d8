/* text.h - the one form of a text: Unicode normalization form C, and canonical URIs.
 *
 *     stet_buf out = STET_BUF(0);
 *     if (!stet_text_is_nfc(s, len))
 *         stet_text_nfc(s, len, &out);
 *     const char *wrong = stet_text_uri(s, len, &out); // NULL, or what is wrong with it
 *
 * Text is valid UTF-8 and may contain NUL; only stet_text_uri takes any bytes, and refuses those that are not UTF-8.
 * Text below U+0300 (all of ASCII and most text in Latin letters) is already normalized and costs one look at each
 * byte. Otherwise the time is that of sorting, even for a text that consists only of accents.
 *
 * File names are bytes and never come here.
 */
#ifndef STET_EXEC_TEXT_H
#define STET_EXEC_TEXT_H

#include "base/buf.h"

bool stet_text_is_nfc(const char *s, size_t len);
/* Appends the normalized text. */
void stet_text_nfc(const char *s, size_t len, stet_buf *out);

/* Appends the canonical form of a URI: scheme in lower case, escapes in upper case and only where they are needed, NFC.
 * A path with the parts `.` or `..` is refused, since their meaning depends on the reader. The authority stays as it
 * is: for `dml+exec:` it is the name of a program, and `A` is not `a`. */
const char *stet_text_uri(const char *s, size_t len, stet_buf *out);

#endif
