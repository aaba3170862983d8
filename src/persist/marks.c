/* marks.c - pins and tags, kept as empty files.
 *
 * They are pins/MODULE.CREATED_AT and pins/MODULE.CREATED_AT.TAG, which synchronise without ever being in conflict.
 */

#include <errno.h>
#include <string.h>

#include "persist/internal.h"

bool stet_persist_valid_tag(const char *s, size_t len) {
    if (!len || len > STET_PERSIST_KIND_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!stet_token_char((unsigned char)s[i]))
            return false;
    return true;
}

/* The length of "MODULE.CREATED_AT" in a name, 0 if it is not a mark; *tag points behind it. */
static size_t mark_key(const char *name, const char **tag) {
    size_t len = strlen(name), at = STET_PERSIST_HASH + 1;
    uint64_t created;
    if (len <= at || !stet_persist_valid_hash(name, STET_PERSIST_HASH) || name[STET_PERSIST_HASH] != '.')
        return 0;
    const char *dot = strchr(name + at, '.');
    size_t key = dot ? (size_t)(dot - name) : len;
    if (!stet_created_parse(name + at, key - at, &created) || (dot && !stet_persist_valid_tag(dot + 1, len - key - 1)))
        return 0;
    *tag = dot ? dot + 1 : "";
    return key;
}

stet_status stet_pmarks_load(stet_persist *p, stet_map *out, stet_error *err) {
    stet_names names = {0};
    stet_status status = stet_file_list_if_there(p->pins_dir, &names, err);
    const char *tag;
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        size_t len = mark_key(names.at[i], &tag);
        if (len)
            stet_map_put(out, names.at[i], len, (stet_slot){.n = 1});
    }
    stet_names_release(&names);
    return status;
}

stet_status stet_persist_mark(stet_persist *p, const stet_persist_key *key, const char *tag, bool on, stet_error *err) {
    if (!p || !key)
        return stet_fail_null(err);
    stet_status status = stet_persist_may_write(p, err);
    if (status == STET_OK)
        status = stet_persist_key_check(key, true, err);
    if (status == STET_OK && tag && !stet_persist_valid_tag(tag, strlen(tag))) {
        status = stet_fail(err, STET_INVALID, "not a tag: \"%.80s\"", tag);
        stet_hint(err, "1 to %d characters of A-Z a-z 0-9 _ -", STET_PERSIST_KIND_MAX);
    }
    if (status != STET_OK)
        return status;
    char created[24];
    stet_created_print(key->created_at, created);
    char *path =
        stet_asprintf("%s/%.43s.%s%s%s", p->pins_dir, key->module_hash, created, tag ? "." : "", tag ? tag : "");
    if (!on)
        status = stet_file_remove(path, err);
    else {
        stet_persist_entry *entry;
        /* Only an existing entry can be marked. */
        status = stet_persist_get(p, key, STET_PERSIST_EXACT | STET_PERSIST_NO_COUNT, (const char *const[]){NULL},
                                  &entry, err);
        if (status == STET_OK) {
            stet_persist_entry_free(entry);
            status = stet_file_mkdirs(p->pins_dir, 0777, err);
        }
        if (status == STET_OK) {
            int fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666);
            if (fd < 0)
                status = stet_fail_errno(err, errno, "%s: cannot create", path);
            else {
                stet_sys_close(fd);
                status = stet_file_sync_dir(p->pins_dir, err);
            }
        }
    }
    stet_free(path);
    return status;
}

stet_status stet_persist_marks(stet_persist *p, const stet_persist_key *key, stet_value *out, stet_error *err) {
    if (!p || !key || !out)
        return stet_fail_null(err);
    stet_names names = {0};
    stet_status status = stet_persist_key_check(key, false, err);
    if (status == STET_OK)
        status = stet_file_list_if_there(p->pins_dir, &names, err);
    if (status != STET_OK)
        return status;
    char created[24];
    stet_created_print(key->created_at, created);
    char *mine = stet_asprintf("%.43s.%s", key->module_hash, created);
    *out = stet_value_array();
    for (size_t i = 0; i < names.len; i++) {
        const char *tag;
        size_t len = mark_key(names.at[i], &tag);
        if (len == strlen(mine) && !memcmp(names.at[i], mine, len))
            stet_value_push(out, stet_value_string(tag));
    }
    stet_free(mine);
    stet_names_release(&names);
    return STET_OK;
}
