/* depfile.c - dependency files: any bytes end in a list or an error; an escaped list reads back as itself. */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "module/depfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    stet_error err = STET_ERROR_INIT;
    stet_depfile d, back;
    if (stet_depfile_parse(text, size, &d, &err) == STET_OK) {
        stet_buf out = STET_BUF(0);
        bool plain = true;
        stet_buf_str(&out, "t:");
        for (size_t i = 0; i < d.len; i++) {
            if (!*d.at[i])
                abort();
            stet_buf_char(&out, ' ');
            for (const char *p = d.at[i]; *p; p++) {
                plain &= *p != '\\' && *p != '\r' && *p != ':' && *p != '\n';
                stet_buf_str(&out, *p == '$' ? "$" : *p == ' ' || *p == '\t' || *p == '#' ? "\\" : "");
                stet_buf_char(&out, *p);
            }
        }
        stet_buf_char(&out, '\n');
        if (plain) { /* backslashes before blanks have no unique spelling */
            if (stet_depfile_parse(out.data, out.len, &back, NULL) != STET_OK || back.len != d.len)
                abort();
            for (size_t i = 0; i < d.len; i++)
                if (strcmp(back.at[i], d.at[i]) != 0)
                    abort();
            stet_depfile_release(&back);
        }
        stet_buf_release(&out);
        stet_depfile_release(&d);
    }
    stet_error_clear(&err);
    free(text);
    return 0;
}
