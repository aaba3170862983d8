/* schema.c - a schema and an instance, both from the input: [SCHEMA, INSTANCE]. */

#include <stdlib.h>

#include "base/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stet_value both;
    if (stet_json_parse((const char *)data, size, &both, NULL) != STET_OK)
        return 0;
    stet_value schema = stet_value_at(both, 0), instance = stet_value_at(both, 1);
    stet_error err = STET_ERROR_INIT;
    stet_status valid = stet_schema_valid(schema, &err);
    if (valid != err.status)
        abort();
    stet_error_clear(&err);
    stet_status status = stet_schema_check(schema, instance, &err);
    if (status != err.status || status != stet_schema_check(schema, instance, NULL))
        abort();
    stet_error_clear(&err);
    stet_value_release(both);
    return 0;
}
