/* bound.c - finds the files among the inputs of a node. */

#include "module/bound.h"

#include "graph/pattern.h"

const char *stet_bound_id(stet_value binding, stet_value *hold) {
    stet_value link;
    if (!stet_link_is(binding, &link))
        return NULL;
    *hold = stet_value_get(link, "id");
    return stet_value_type(*hold) == STET_TYPE_STRING ? stet_value_as_string(hold, NULL) : NULL;
}

bool stet_bound_is_each(stet_value binding) {
    return stet_value_type(binding) == STET_TYPE_OBJECT && stet_value_find(binding, "each", 4, NULL);
}

bool stet_bound_is_made(stet_value binding) {
    return stet_value_type(binding) == STET_TYPE_OBJECT && stet_value_find(binding, "made", 4, NULL);
}

static bool is_sure(void *ctx, stet_value binding, stet_pathref place) {
    stet_value hold;
    const char *id = stet_bound_id(binding, &hold);
    (void)place;
    return !id || !stet_files_in_doubt(ctx, id);
}

stet_status stet_bound_ready(stet_run *run, stet_files *files, stet_error *err) {
    if (!files || stet_binding_walk(stet_run_bindings(run), is_sure, files))
        return STET_OK;
    stet_status status = stet_files_rematch(files, err);
    return status == STET_OK ? stet_run_refresh(run, err) : status;
}
