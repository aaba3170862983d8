/* adapter.c - replies of adapters and names of functions: any bytes end in a reply or an error.
 *
 * A reply that is accepted holds what it promises.
 */

#include <stdlib.h>
#include <string.h>

#include "call/adapter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    stet_adapter_reply r;
    stet_adapter_reply_parse("fuzz", text, size, &r);
    if (r.status == STET_ADAPTER_PENDING) {
        size_t len;
        if (stet_value_type(r.token) != STET_TYPE_STRING || !stet_value_as_string(&r.token, &len) ||
            len > STET_ADAPTER_TOKEN_MAX)
            abort();
        if (r.poll_after_ms < -1 || r.poll_after_ms > STET_ADAPTER_AFTER_MAX)
            abort();
    } else if (r.status == STET_ADAPTER_FAILED_TRANSIENT) {
        if (r.error.status == STET_OK || !strstr(r.error.message, "fuzz"))
            abort();
    } else if (r.status != STET_ADAPTER_DONE_OK && r.status != STET_ADAPTER_DONE_ERROR)
        abort();
    stet_adapter_reply_release(&r);
    stet_adapter_uri u;
    stet_error err = STET_ERROR_INIT;
    if (stet_adapter_uri_parse(text, &u, &err) == STET_OK) {
        if (!u.adapter[0] || strchr(u.adapter, '/') || u.adapter[0] == '.')
            abort();
        stet_adapter_uri_release(&u);
    } else if (err.status == STET_OK)
        abort();
    stet_error_clear(&err);
    free(text);
    return 0;
}
