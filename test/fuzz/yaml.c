/* yaml.c - the YAML reader: any bytes end in a value or an error; the value printed as JSON is read as the same. */

#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    stet_error err = STET_ERROR_INIT;
    stet_value v, back;
    stet_status status = stet_yaml_parse(text, size, &v, &err);
    if (status != err.status)
        abort();
    if (status == STET_OK) {
        size_t len;
        char *json = stet_json_print(v, STET_JSON_CANONICAL, &len);
        if (stet_json_parse(json, len, &back, NULL) != STET_OK || !stet_value_equal(v, back))
            abort();
        stet_value_release(back);
        if (stet_yaml_parse(json, len, &back, NULL) == STET_OK) { /* JSON is YAML, but for a few numbers */
            if (!stet_value_equal(v, back))
                abort();
            stet_value_release(back);
        }
        stet_free(json);
        stet_value_release(v);
    }
    stet_error_clear(&err);
    free(text);
    return 0;
}
