/* toml_pattern.c - patterns in TOML: any bytes end in a pattern or in problems, and never in both. */

#include <stdlib.h>
#include <string.h>

#include "graph/pattern_toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    stet_error err = STET_ERROR_INIT;
    stet_value problems = stet_value_null();
    stet_pattern *p = NULL;
    stet_status status = stet_pattern_toml_parse("f.toml", text, size, NULL, &p, &problems, &err);
    if ((status == STET_OK) != (p != NULL) || (status == STET_INVALID) != (stet_value_count(problems) > 0))
        abort();
    stet_pattern_free(p);
    stet_value_release(problems);
    stet_error_clear(&err);
    free(text);
    return 0;
}
