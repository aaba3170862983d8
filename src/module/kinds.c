/* kinds.c - the list of built-in module kinds. */

#include "module/kinds.h"

#include <string.h>

#include "base/buf.h"

static const stet_module_kind *const kinds[] = {
    &stet_module_ref, &stet_module_command, &stet_module_call, &stet_module_javascript, &stet_module_python,
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const stet_module_kind *stet_module_find(const char *type) {
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i]->type, type) == 0)
            return kinds[i];
    return NULL;
}

stet_status stet_module_check(void *ctx, stet_value descriptor, stet_value node, stet_error *err) {
    (void)ctx;
    stet_value type = stet_value_get(descriptor, "type");
    const char *name = stet_value_type(type) == STET_TYPE_STRING ? stet_value_as_string(&type, NULL) : "";
    const stet_module_kind *kind = stet_module_find(name);
    if (!kind) {
        stet_buf known = STET_BUF(256);
        for (size_t i = 0; i < KIND_COUNT; i++)
            stet_buf_printf(&known, "%s\"%s\"", i ? ", " : "", kinds[i]->type);
        stet_fail(err, STET_INVALID, "there is no module type \"%.100s\"", name);
        stet_hint(err, "known types: %s", stet_buf_cstr(&known));
        stet_buf_release(&known);
        return STET_INVALID;
    }
    return kind->check ? kind->check(descriptor, node, err) : STET_OK;
}

void stet_module_names(void *ctx, const char *root, stet_value descriptor, stet_value node, stet_named_fn each,
                       void *each_ctx) {
    (void)ctx;
    stet_value type = stet_value_get(descriptor, "type");
    const stet_module_kind *kind =
        stet_value_type(type) == STET_TYPE_STRING ? stet_module_find(stet_value_as_string(&type, NULL)) : NULL;
    if (kind && kind->names)
        kind->names(root, descriptor, node, each, each_ctx);
}

stet_status stet_module_members(stet_value descriptor, const char *const *names, size_t count, const char *what,
                                const char *docs, stet_error *err) {
    for (size_t i = 0; i < stet_value_count(descriptor); i++) {
        const char *key = stet_value_key_at(descriptor, i, NULL);
        bool known = false;
        for (size_t k = 0; k < count; k++)
            known |= strcmp(key, names[k]) == 0;
        if (!known) {
            stet_fail(err, STET_INVALID, "a %s has no member \"%.100s\"", what, key);
            stet_hint(err, "%s lists what there is", docs);
            return STET_INVALID;
        }
    }
    return STET_OK;
}
