/* mcp.c - any bytes from a client, cut anywhere: each answer is one JSON object or array per line.
 *
 * Every answer has the id of a request that was sent, or none, and the server can be closed.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stet_mcp_server *open_server(void) {
    static const char *const allowed[] = {"version", "runs list", "runs show", "doc get", "doc list", "check"};
    stet_value allow = stet_value_array();
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (stet_op_find(allowed[i]))
            stet_value_push(&allow, stet_value_string(allowed[i]));
    stet_mcp_options o = {.dir = "/nonexistent",
                          .filter = {.allow = allow},
                          .max_frame = 4096,
                          .max_result = 1024,
                          .page_size = 2,
                          .log = STET_MCP_LOG_OFF};
    stet_mcp_server *s;
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_mcp_open(&o, &s, &err);
    assert(status == STET_OK);
    stet_value_release(allow);
    return s;
}

static void check_output(stet_mcp_server *s) {
    const char *bytes;
    size_t len;
    while ((len = stet_mcp_output(s, &bytes))) {
        stet_value v;
        assert(bytes[len - 1] == '\n' && !memchr(bytes, '\n', len - 1));
        stet_status status = stet_json_parse(bytes, len - 1, &v, NULL);
        assert(status == STET_OK && (stet_value_type(v) == STET_TYPE_OBJECT || stet_value_type(v) == STET_TYPE_ARRAY));
        stet_value_release(v);
        stet_mcp_wrote(s, len);
    }
}

/* The first byte says into which pieces the rest is cut, and whether a session has been begun. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-03-26\",\"capabilities\":{},\"clientInfo\":{}}}\n";
    if (size == 0 || size > 8192)
        return 0;
    setenv("STET_HOME", "/nonexistent/home", 1);
    stet_mcp_server *s = open_server();
    if (data[0] & 1)
        stet_mcp_receive(s, hello, strlen(hello));
    size_t piece = data[0] >> 1 ? data[0] >> 1 : size;
    for (size_t at = 1; at < size; at += piece) {
        stet_mcp_receive(s, (const char *)data + at, size - at < piece ? size - at : piece);
        check_output(s);
    }
    stet_mcp_end(s);
    stet_mcp_tick(s);
    check_output(s);
    bool ended = stet_mcp_close(s, 1000);
    assert(ended);
    return 0;
}
