/* config.c - options with their defaults, from the tables of a configuration file. */
#include "persist/persist.h"

#include <stddef.h>
#include <string.h>

stet_persist_config stet_persist_config_default(void) {
    return (stet_persist_config){.dir_path = "persist",
                                 .auto_variables_format = "pickle",
                                 .object_id_mode = STET_PERSIST_DEDUPLICATION,
                                 .verify = STET_PERSIST_VERIFY_ALWAYS,
                                 .use_fresh_object_statuses = true,
                                 .cleanup_default_include_content = false,
                                 .cleanup_default_delete_orphan_objects = true,
                                 .cleanup_on_exit = true,
                                 .entry_merge_timeout_seconds = 3600,
                                 .max_entries_in_log = -1,
                                 .grace_days = 7,
                                 .trash_days = 7,
                                 .marker_days = 30,
                                 .max_local_bytes = -1,
                                 .lock_timeout_ms = 5000,
                                 .vanished_wait_ms = 5000,
                                 .strategy = {.max_entries_per_block = 3,
                                              .max_entries_per_module = 2,
                                              .max_entry_age_days = -1,
                                              .max_total_content_size = -1}};
}

typedef struct key {
    const char *name;
    size_t offset;
    enum { BOOLEAN, NUMBER, UNLIMITED, WORD } type; /* UNLIMITED: -1 or positive */
} key;

#define AT(field) offsetof(stet_persist_config, field)
static const key defaults[] = {
    {"dir_path", AT(dir_path), WORD},
    {"auto_variables_format", AT(auto_variables_format), WORD},
    {"object_id_mode", AT(object_id_mode), WORD},
    {"entry_storage_format", 0, WORD},
    {"verify", AT(verify), WORD},
    {"compression", AT(compress), WORD},
    {"use_fresh_object_statuses", AT(use_fresh_object_statuses), BOOLEAN},
    {"cleanup_default_include_content", AT(cleanup_default_include_content), BOOLEAN},
    {"cleanup_default_delete_orphan_objects", AT(cleanup_default_delete_orphan_objects), BOOLEAN},
    {"cleanup_on_exit", AT(cleanup_on_exit), BOOLEAN},
    {"entry_merge_timeout_seconds", AT(entry_merge_timeout_seconds), UNLIMITED},
    {"max_entries_in_log", AT(max_entries_in_log), UNLIMITED},
    {"max_local_bytes", AT(max_local_bytes), UNLIMITED},
    {"grace_days", AT(grace_days), NUMBER},
    {"trash_days", AT(trash_days), NUMBER},
    {"marker_days", AT(marker_days), NUMBER},
    {"lock_timeout_ms", AT(lock_timeout_ms), NUMBER},
    {"vanished_wait_ms", AT(vanished_wait_ms), NUMBER},
    {NULL, 0, 0},
};
static const key strategy[] = {
    {"max_entries_per_block", AT(strategy.max_entries_per_block), UNLIMITED},
    {"max_entries_per_module", AT(strategy.max_entries_per_module), UNLIMITED},
    {"max_entry_age_days", AT(strategy.max_entry_age_days), UNLIMITED},
    {"max_total_content_size", AT(strategy.max_total_content_size), UNLIMITED},
    {NULL, 0, 0},
};

static bool one_of(const char *s, const char *a, const char *b) {
    return !strcmp(s, a) || !strcmp(s, b);
}

static stet_status read_word(const char *table, const key *k, stet_value v, stet_persist_config *c, stet_error *err) {
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    if (!s || strlen(s) != len)
        return stet_fail(err, STET_INVALID, "%s.%s: expected a string", table, k->name);
    const char *expected = NULL;
    if (!strcmp(k->name, "dir_path")) {
        if (!len || len >= sizeof c->dir_path)
            expected = "a path of up to 255 bytes";
        else
            memcpy(c->dir_path, s, len + 1);
    } else if (!strcmp(k->name, "auto_variables_format")) {
        if (!one_of(s, "pickle", "json"))
            expected = "\"pickle\" or \"json\"";
        else
            memcpy(c->auto_variables_format, s, len + 1);
    } else if (!strcmp(k->name, "object_id_mode")) {
        if (!one_of(s, "deduplication", "execution_key_qualified"))
            expected = "\"deduplication\" or \"execution_key_qualified\"";
        else
            c->object_id_mode = *s == 'd' ? STET_PERSIST_DEDUPLICATION : STET_PERSIST_EXECUTION_KEY_QUALIFIED;
    } else if (!strcmp(k->name, "entry_storage_format")) {
        if (strcmp(s, "toml") != 0)
            expected = "\"toml\"";
    } else if (!strcmp(k->name, "verify")) {
        if (!one_of(s, "always", "size"))
            expected = "\"always\" or \"size\"";
        else
            c->verify = *s == 'a' ? STET_PERSIST_VERIFY_ALWAYS : STET_PERSIST_VERIFY_SIZE;
    } else {
        if (!one_of(s, "none", "zstd"))
            expected = "\"none\" or \"zstd\"";
        else
            c->compress = *s == 'z';
    }
    if (expected)
        return stet_fail(err, STET_INVALID, "%s.%s: \"%.60s\" is not %s", table, k->name, s, expected);
    return STET_OK;
}

static stet_status read_table(const char *name, stet_value table, const key *keys, stet_persist_config *c,
                              stet_error *err) {
    if (stet_value_type(table) == STET_TYPE_NULL)
        return STET_OK;
    if (stet_value_type(table) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_INVALID, "%s: expected a table", name);
    for (size_t i = 0; i < stet_value_count(table); i++) {
        const char *given = stet_value_key_at(table, i, NULL);
        stet_value v = stet_value_at(table, i);
        const key *k = keys;
        while (k->name && strcmp(k->name, given) != 0)
            k++;
        if (!k->name) {
            stet_fail(err, STET_INVALID, "%s.%.60s: no such option", name, given);
            stet_hint(err, "the options are listed in docs/persist.md");
            return STET_INVALID;
        }
        void *at = (char *)c + k->offset;
        if (k->type == WORD) {
            stet_status status = read_word(name, k, v, c, err);
            if (status != STET_OK)
                return status;
        } else if (k->type == BOOLEAN) {
            if (stet_value_type(v) != STET_TYPE_BOOL)
                return stet_fail(err, STET_INVALID, "%s.%s: expected true or false", name, k->name);
            *(bool *)at = stet_value_as_bool(v);
        } else {
            int64_t n = stet_value_as_int(v);
            if (stet_value_type(v) != STET_TYPE_INT || n > INT64_MAX / 86400000 ||
                (k->type == NUMBER ? n < 0 : n <= 0 && n != -1)) {
                /* Sizes may be larger than numbers of days. */
                bool size = strstr(k->name, "bytes") || strstr(k->name, "size");
                if (stet_value_type(v) != STET_TYPE_INT || !size || n <= 0)
                    return stet_fail(err, STET_INVALID, "%s.%s: expected %s", name, k->name,
                                     k->type == NUMBER ? "a number from 0 on" : "-1 or a positive number");
            }
            *(int64_t *)at = n;
        }
    }
    return STET_OK;
}

stet_status stet_persist_config_read(stet_value table, stet_persist_config *config, stet_error *err) {
    if (stet_value_type(table) == STET_TYPE_NULL)
        return STET_OK;
    if (stet_value_type(table) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_INVALID, "persist: expected a table");
    for (size_t i = 0; i < stet_value_count(table); i++) {
        const char *name = stet_value_key_at(table, i, NULL);
        if (strcmp(name, "defaults") != 0 && strcmp(name, "default_cleanup_strategy") != 0)
            return stet_fail(err, STET_INVALID,
                             "persist.%.60s: no such table; there are defaults and default_cleanup_strategy", name);
    }
    stet_persist_config c = *config;
    stet_status status = read_table("persist.defaults", stet_value_get(table, "defaults"), defaults, &c, err);
    if (status == STET_OK)
        status = read_table("persist.default_cleanup_strategy", stet_value_get(table, "default_cleanup_strategy"),
                            strategy, &c, err);
    if (status == STET_OK)
        status = stet_persist_limits_check(&c.strategy, err);
    if (status == STET_OK)
        *config = c;
    return status;
}

stet_status stet_persist_limits_check(const stet_persist_limits *l, stet_error *err) {
    const struct {
        const char *name;
        int64_t value;
    } all[] = {{"max_entries_per_block", l->max_entries_per_block},
               {"max_entries_per_module", l->max_entries_per_module},
               {"max_entry_age_days", l->max_entry_age_days},
               {"max_total_content_size", l->max_total_content_size}};
    bool any = false;
    for (size_t i = 0; i < 4; i++) {
        if (all[i].value <= 0 && all[i].value != -1)
            return stet_fail(err, STET_INVALID, "%s must be -1 or a positive integer", all[i].name);
        any = any || all[i].value > 0;
    }
    return any ? STET_OK : stet_fail(err, STET_INVALID, "at least one limit of the cleanup strategy must be positive");
}

static const char *word_of(const stet_persist_config *c, const key *k) {
    if (!strcmp(k->name, "object_id_mode"))
        return c->object_id_mode == STET_PERSIST_DEDUPLICATION ? "deduplication" : "execution_key_qualified";
    if (!strcmp(k->name, "entry_storage_format"))
        return "toml";
    if (!strcmp(k->name, "verify"))
        return c->verify == STET_PERSIST_VERIFY_ALWAYS ? "always" : "size";
    if (!strcmp(k->name, "compression"))
        return c->compress ? "zstd" : "none";
    return (const char *)c + k->offset; /* a path or a format, as read */
}

static stet_value table_value(const stet_persist_config *c, const key *keys) {
    stet_value table = stet_value_object();
    for (const key *k = keys; k->name; k++) {
        const void *at = (const char *)c + k->offset;
        stet_value_put(&table, k->name,
                       k->type == WORD      ? stet_value_stringf("%s", word_of(c, k))
                       : k->type == BOOLEAN ? stet_value_bool(*(const bool *)at)
                                            : stet_value_int(*(const int64_t *)at));
    }
    return table;
}

stet_value stet_persist_config_value(const stet_persist_config *config) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "defaults", table_value(config, defaults));
    stet_value_put(&v, "default_cleanup_strategy", table_value(config, strategy));
    return v;
}
