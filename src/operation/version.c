/* version.c - the operation version: stet and the libraries it was linked with. */

#include <openssl/opensslv.h>
#include <uv.h>
#include <zstd.h>

#include "db/db.h"
#include "operation/op.h"
#include "operation/version.h"

stet_value stet_ops_libraries(void) {
    stet_value libraries = stet_value_object();
    /* The version at compile time: OpenSSL_version() would link all of libcrypto, and relocate it at each start, only
     * for SHA-256. The program is linked statically, so that the version is the same. */
    stet_value_put(&libraries, "libcrypto", stet_value_string(OPENSSL_VERSION_STR));
    stet_value_put(&libraries, "libuv", stet_value_string(uv_version_string()));
    stet_value_put(&libraries, "sqlite", stet_value_string(stet_db_sqlite_version()));
    stet_value_put(&libraries, "zstd", stet_value_string(ZSTD_versionString()));
    return libraries;
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    (void)args;
    (void)err;
    *result = stet_value_object();
    stet_value_put(result, "version", stet_value_string(stet_version()));
    stet_value_put(result, "compiler", stet_value_string(__VERSION__));
    stet_value_put(result, "libraries", stet_ops_libraries());
    return STET_OK;
}

static void render(stet_render *r, stet_value result) {
    stet_value version = stet_value_get(result, "version"), libraries = stet_value_get(result, "libraries");
    stet_buf_printf(r->out, "stet %s\n", stet_value_as_string(&version, NULL));
    for (size_t i = 0; i < stet_value_count(libraries); i++) {
        stet_value text = stet_value_at(libraries, i);
        stet_buf_printf(r->out, "%s %s\n", stet_value_key_at(libraries, i, NULL), stet_value_as_string(&text, NULL));
    }
}

static const stet_example examples[] = {
    {"version", "stet and its libraries"},
    {"version --json", "the same for programs"},
    {0},
};

const stet_op stet_ops_version[] = {
    {.name = "version",
     .summary = "Print the versions of stet and of its libraries",
     .description = "stet --version prints the version of stet alone.",
     .result_schema = "{\"type\":\"object\",\"required\":[\"version\",\"compiler\",\"libraries\"],"
                      "\"additionalProperties\":false,\"properties\":{\"version\":{\"type\":\"string\"},\"compiler\":{"
                      "\"type\":\"string\"},\"libraries\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
                      "\"string\"}}}}",
     .examples = examples,
     .flags = STET_OP_READ_ONLY | STET_OP_IDEMPOTENT | STET_OP_NO_PROJECT,
     .run = run,
     .render = render},
    {0},
};
