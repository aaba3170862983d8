/* api.c - the public functions whose form differs from those of persist.h: opening, entries, cleanup, statistics. */

#include <string.h>

#include "base/options.h"
#include "persist/internal.h"
#include "persist/project_dir.h"

/* Calls a strategy of the public interface, in the form that this folder uses. */
static stet_status choose_items(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *err) {
    const stet_pchooser *c = ctx;
    (void)now;
    stet_persist_entry **entries = stet_alloc((count + 1) * sizeof *entries);
    bool *remove = stet_alloc_zero(count + 1);
    for (size_t i = 0; i < count; i++)
        entries[i] = stet_persist_item_entry(&items[i]);
    stet_status status = c->choose(c->ctx, (const stet_persist_entry *const *)entries, count, remove, err);
    for (size_t i = 0; i < count; i++) {
        items[i].remove = status == STET_OK && remove[i];
        stet_persist_entry_free(entries[i]);
    }
    stet_free(remove);
    stet_free(entries);
    return status;
}

/* The configuration of the caller, applied on top of that of the project. */
typedef struct overlay {
    stet_value config;
    stet_status status;
    stet_error *err;
} overlay;

static void lay_over(stet_persist_config *config, void *ctx) {
    overlay *o = ctx;
    o->status = stet_persist_config_read(o->config, config, o->err);
}

static stet_status open_with(const stet_persist_options *o, stet_persist **out, stet_error *err) {
    overlay over = {.config = o->config, .err = err};
    if (o->project) {
        stet_status status = stet_persist_open_project(o->project, o->read_only, lay_over, &over, out, err);
        if (status == STET_OK && over.status != STET_OK) {
            stet_persist_close(*out);
            status = over.status;
        }
        return status;
    }
    if (!o->dir)
        return stet_fail(err, STET_INVALID, "a project or a directory must be given");
    stet_persist_config config = stet_persist_config_default();
    lay_over(&config, &over);
    if (over.status != STET_OK)
        return over.status;
    return stet_persist_open_place(&(stet_persist_place){.dir = o->dir,
                                                         .local_dir = o->local_dir,
                                                         .temp_dir = o->temp_dir,
                                                         .config = &config,
                                                         .read_only = o->read_only},
                                   out, err);
}

stet_status stet_persist_open(const stet_persist_options *options, stet_persist **out, stet_error *err) {
    if (!out)
        return stet_fail_null(err);
    stet_persist_options o;
    stet_persist *p;
    stet_status status = stet_options_read(&o, sizeof o, options, "stet_persist_options", err);
    if (status == STET_OK)
        status = open_with(&o, &p, err);
    if (status != STET_OK)
        return status;
    if (o.choose) {
        p->chooser = (stet_pchooser){o.choose, o.choose_ctx};
        stet_persist_set_strategy(p, choose_items, &p->chooser);
    }
    *out = p;
    return STET_OK;
}

stet_value stet_persist_settings(const stet_persist *p) {
    if (!p)
        return stet_value_null();
    return stet_persist_config_value(&p->config);
}

const stet_persist_key *stet_persist_entry_key(const stet_persist_entry *e) {
    return e ? &e->key : NULL;
}

size_t stet_persist_entry_count(const stet_persist_entry *e) {
    return e ? e->content_count : 0;
}

const stet_persist_content *stet_persist_entry_at(const stet_persist_entry *e, size_t index) {
    return e && index < e->content_count ? &e->contents[index] : NULL;
}

uint64_t stet_persist_entry_size(const stet_persist_entry *e) {
    return e ? e->total_size : 0;
}

int64_t stet_persist_entry_elapsed(const stet_persist_entry *e) {
    return e ? e->elapsed_ms : -1;
}

const char *stet_persist_entry_hash(const stet_persist_entry *e) {
    return e ? e->hash : NULL;
}

bool stet_persist_entry_in_log(const stet_persist_entry *e) {
    return e && e->in_log;
}

stet_value stet_persist_entry_extra(const stet_persist_entry *e, const char *kind, const char *key) {
    if (!e || !key)
        return stet_value_null();
    const stet_persist_content *content = kind ? stet_persist_entry_content(e, kind) : NULL;
    /* Most entries have no further keys; a search of the text shows that without parsing it. */
    if ((kind && !content) || !strstr(e->text, key))
        return stet_value_null();
    stet_buf text = STET_BUF(STET_PERSIST_ENTRY_MAX);
    stet_value v = stet_value_null();
    int64_t number;
    if (stet_persist_extra_int(e, content, key, &number))
        v = stet_value_int(number);
    else if (stet_persist_extra_string(e, content, key, &text) &&
             stet_value_string_checked(stet_buf_cstr(&text), text.len, &v, NULL) != STET_OK)
        v = stet_value_null(); /* an entry is UTF-8 */
    stet_buf_release(&text);
    return v;
}

stet_status stet_persist_clean(stet_persist *p, const stet_persist_clean_options *options, stet_value *report,
                               stet_error *err) {
    if (!p || !report)
        return stet_fail_null(err);
    stet_persist_clean_options o;
    stet_status status = stet_options_read(&o, sizeof o, options, "stet_persist_clean_options", err);
    if (status != STET_OK)
        return status;
    stet_pchooser given = {o.choose, o.choose_ctx};
    stet_persist_cleanup how = {.strategy = o.choose ? choose_items : NULL,
                                .ctx = &given,
                                .include_content = o.include_content,
                                .delete_orphan_objects = o.delete_orphan_objects,
                                .max_local_bytes = o.max_local_bytes,
                                .dry_run = o.dry_run,
                                .force = o.force,
                                .purge = o.purge};
    stet_persist_cleaned cleaned = {0};
    status = stet_persist_cleanup_run(p, &how, &cleaned, err);
    if (status == STET_OK)
        *report = stet_persist_cleaned_value(&cleaned);
    stet_persist_cleaned_release(&cleaned);
    return status;
}

static stet_status read_limits(stet_value limits, stet_persist_limits *out, stet_error *err) {
    const struct {
        const char *name;
        int64_t *at;
    } known[] = {{"max_entries_per_block", &out->max_entries_per_block},
                 {"max_entries_per_module", &out->max_entries_per_module},
                 {"max_entry_age_days", &out->max_entry_age_days},
                 {"max_total_content_size", &out->max_total_content_size}};
    size_t found = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        stet_value v;
        bool given = stet_value_find(limits, known[i].name, strlen(known[i].name), &v);
        if (given && stet_value_type(v) != STET_TYPE_INT)
            return stet_fail(err, STET_INVALID, "%s must be -1 or a positive integer", known[i].name);
        *known[i].at = given ? stet_value_as_int(v) : -1;
        found += given;
    }
    return found == stet_value_count(limits)
               ? STET_OK
               : stet_fail(err, STET_INVALID, "the limits have a member that is not one of the cleanup strategy");
}

stet_status stet_persist_choose_default(stet_value limits, const stet_persist_key *keys, const uint64_t *sizes,
                                        size_t count, uint64_t now, bool *remove, stet_error *err) {
    if (count && (!keys || !sizes || !remove))
        return stet_fail_null(err);
    stet_persist_limits l;
    stet_status status = read_limits(limits, &l, err);
    if (status != STET_OK)
        return status;
    stet_persist_item *items = stet_alloc_zero((count + 1) * sizeof *items);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        status = stet_persist_key_check(&keys[i], false, err);
        if (status != STET_OK)
            break;
        size_t len = keys[i].block_len ? keys[i].block_len : strlen(keys[i].block_id);
        items[i] = (stet_persist_item){.block_id = keys[i].block_id,
                                       .block_len = len,
                                       .module_hash = keys[i].module_hash,
                                       .created_at = keys[i].created_at,
                                       .size = sizes[i],
                                       .is_call = stet_persist_is_call(keys[i].block_id, len)};
    }
    if (status == STET_OK)
        status = stet_persist_strategy_default(&l, items, count, now, err);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        remove[i] = items[i].remove;
    stet_free(items);
    return status;
}

stet_status stet_persist_statistics(stet_persist *p, stet_value *out, stet_error *err) {
    if (!p || !out)
        return stet_fail_null(err);
    stet_persist_stats s;
    stet_status status = stet_persist_stats_get(p, &s, err);
    if (status != STET_OK)
        return status;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"entries", s.entries},
                {"log_entries", s.log_entries},
                {"call_entries", s.call_entries},
                {"blocks", s.blocks},
                {"modules", s.modules},
                {"pinned", s.pinned},
                {"snapshots", s.snapshots},
                {"content_bytes", s.content_bytes},
                {"objects", s.objects},
                {"object_bytes", s.object_bytes},
                {"missing_objects", s.missing_objects},
                {"fresh_markers", s.fresh_markers},
                {"trash_bytes", s.trash_bytes},
                {"hits", s.hits},
                {"misses", s.misses},
                {"saved_ms", s.saved_ms}};
    *out = stet_value_object();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        stet_value_put(out, rows[i].name,
                       stet_value_int((int64_t)(rows[i].value > INT64_MAX ? INT64_MAX : rows[i].value)));
    return STET_OK;
}
