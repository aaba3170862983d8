/* inputs.c - are the inputs that a run was given inputs of its pattern? A misspelt one would have no effect, and its run
 * would say that it had it. */

#include <string.h>

#include "base/map.h"
#include "drive/drive_internal.h"

typedef struct reads {
    stet_docname argument;
    stet_map keys; /* of the argument that something links to */
    bool whole;    /* something reads all of it */
} reads;

static bool take_link(void *ctx, stet_value binding, stet_pathref place) {
    reads *r = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len, cursor = 0;
    (void)place;
    if (stet_link_read(binding, &l, &path) && stet_link_leads_to(&l, &r->argument)) {
        bool any = stet_path_next(stet_path_ref(&path), &cursor, &scratch, &key, &len);
        if (any && len == 5 && memcmp(key, "value", 5) == 0) /* the member of the document that holds the argument */
            any = stet_path_next(stet_path_ref(&path), &cursor, &scratch, &key, &len);
        if (any)
            stet_map_put(&r->keys, key, len, (stet_slot){.n = 1});
        else
            r->whole = true;
    }
    stet_buf_release(&scratch);
    stet_path_release(&path);
    return true;
}

/* The schema of the argument, or null. The caller releases it. */
static stet_value schema_of(driver *d) {
    stet_value hash = stet_value_get(d->stored->envelope, "argumentSchema"), schema = stet_value_null();
    if (stet_value_type(hash) != STET_TYPE_STRING)
        return schema;
    char *id = stet_asprintf("schema:%s", stet_value_as_string(&hash, NULL));
    stet_docname name = {id, NULL};
    stet_doc_state state = {0};
    if (stet_space_load(d->space, d->branch, &name, -1, &state, NULL) == STET_OK) {
        if (state.exists)
            schema = stet_value_retain(stet_value_get(state.value, "value"));
        stet_value_release(state.value);
    }
    stet_free(id);
    return schema;
}

static bool is_known(const reads *r, stet_value argument, stet_value schema, const char *key, size_t len) {
    stet_value properties = stet_value_get(schema, "properties");
    return r->whole || stet_map_get(&r->keys, key, len) || stet_value_find(argument, key, len, NULL) ||
           stet_value_find(properties, key, len, NULL);
}

static stet_status refuse(driver *d, const reads *r, stet_value argument, const char *key, size_t len,
                          stet_error *err) {
    stet_buf all = STET_BUF(2048);
    const void *name;
    size_t n;
    stet_slot *slot;
    for (size_t i = 0; i < stet_value_count(argument); i++) {
        const char *known = stet_value_key_at(argument, i, &n);
        stet_buf_printf(&all, "%s%.*s", all.len ? ", " : "", (int)n, known);
    }
    for (size_t i = 0; stet_map_next(&r->keys, &i, &name, &n, &slot);)
        if (!stet_value_find(argument, name, n, NULL))
            stet_buf_printf(&all, "%s%.*s", all.len ? ", " : "", (int)n, (const char *)name);
    stet_fail(err, STET_INVALID, "piece \"%s\" has no input \"%.*s\"", d->piece, (int)(len < 100 ? len : 100), key);
    if (all.len > 0)
        stet_hint(err, "its inputs are: %s", stet_buf_cstr(&all));
    else
        stet_hint(err, "its pattern reads nothing of its argument");
    stet_buf_release(&all);
    return STET_INVALID;
}

stet_status drive_check_inputs(driver *d, stet_error *err) {
    stet_value inputs = d->spec->lend, argument = stet_value_null();
    if (stet_value_count(inputs) == 0)
        return STET_OK;
    char *id = stet_piece_part(d->piece, "argument", NULL);
    reads r = {.argument = stet_piece_at(d->piece, id)};
    stet_process *g = NULL;
    bool exists;
    int64_t seq;
    stet_status status = drive_look(d, err);
    if (status == STET_OK)
        status = stet_piece_process(d->space, d->branch, d->stored, -1, &g, err);
    if (status == STET_OK)
        status = drive_argument(d, &exists, &seq, &argument, err);
    for (size_t i = 0; status == STET_OK && i < g->node_count; i++)
        stet_binding_walk(g->nodes[i].row, take_link, &r);
    if (status == STET_OK)
        stet_binding_walk(d->stored->envelope, take_link, &r);
    stet_value schema = schema_of(d);
    for (size_t i = 0; status == STET_OK && i < stet_value_count(inputs); i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        /* A place inside is checked by its first key, by whoever sets it. */
        if (len > 0 && key[0] != '/' &&
            !is_known(&r, d->lent_at_setup ? stet_value_null() : argument, schema, key, len))
            status = refuse(d, &r, argument, key, len, err);
    }
    stet_value_release(schema);
    stet_value_release(argument);
    stet_map_release(&r.keys);
    stet_process_free(g);
    stet_free(id);
    return status;
}
