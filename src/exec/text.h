/* text.h - the one form of a text: Unicode's normal form C, and URIs as records hold them.
 *
 *     stet_buf out = STET_BUF(0);
 *     if (!stet_text_is_nfc(s, len))
 *         stet_text_nfc(s, len, &out);
 *     const char *wrong = stet_text_uri(s, len, &out);      // NULL, or what is wrong with it
 *
 * Text is valid UTF-8, with zero bytes if need be; stet_text_uri alone takes any bytes, and refuses those that are not.
 * Text below U+0300 (all of ASCII and most of what is written in Latin letters) is in its normal form and costs one
 * look at each byte. Time is that of sorting, also for a text that is nothing but accents.
 *
 * Names of files are bytes and never come here. */
#ifndef STET_EXEC_TEXT_H
#define STET_EXEC_TEXT_H

#include "base/buf.h"

bool stet_text_is_nfc(const char *s, size_t len);
/* The normal form, appended. */
void stet_text_nfc(const char *s, size_t len, stet_buf *out);

/* The canonical form of a URI, appended: scheme in lower case, escapes in upper case and only where they are needed,
 * NFC. A path with parts `.` or `..` is refused, since what they mean depends on the reader. The authority stays as
 * it is: for `dml+exec:` it is the name of a program, and `A` is not `a`. */
const char *stet_text_uri(const char *s, size_t len, stet_buf *out);

#endif
