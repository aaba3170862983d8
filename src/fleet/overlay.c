/* overlay.c - marks on runs, kept in one small file per kind and project. */

#include "fleet/overlay.h"

#include <string.h>

#include "base/json.h"
#include "fleet/state.h"
#include "os/file.h"
#include "os/lock.h"

#define OVERLAY_MAX  ((size_t)256 << 20)
#define LOCK_WAIT_MS 30000

typedef struct kind_row {
    const char *file, *member;
    stet_type type;
} kind_row;

static const kind_row kinds[STET_OVERLAYS] = {
    [STET_OVERLAY_ARCHIVE] = {"archive.json", "archived", STET_TYPE_OBJECT},
    [STET_OVERLAY_PROVENANCE] = {"provenance.json", "links", STET_TYPE_OBJECT},
    [STET_OVERLAY_LABELS] = {"labels.json", "labels", STET_TYPE_ARRAY},
};

const char *stet_overlay_file(stet_overlay kind) {
    return kinds[kind].file;
}

stet_status stet_derived_load(const char *path, size_t max, int64_t version, stet_value *out, stet_error *err) {
    stet_buf text = STET_BUF(max);
    stet_error why = STET_ERROR_INIT;
    stet_value v = stet_value_null();
    stet_status st = stet_file_read(path, max, &text, &why);
    if (st == STET_NOT_FOUND) {
        stet_error_clear(&why);
        *out = stet_value_null();
        stet_buf_release(&text);
        return STET_OK;
    }
    if (st == STET_OK) {
        st = stet_json_read(stet_buf_cstr(&text), text.len, NULL, &v, &why);
        if (st == STET_INVALID)
            st = why.status = STET_CORRUPT;
        if (st != STET_OK)
            stet_fail_in(&why, "%s", path);
    }
    stet_buf_release(&text);
    stet_value found = stet_value_get(v, "schemaVersion");
    if (st == STET_OK && (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_type(found) != STET_TYPE_INT ||
                          stet_value_as_int(found) < 1))
        st = stet_fail(&why, STET_CORRUPT, "%s: no object with a schemaVersion", path);
    if (st == STET_OK && stet_value_as_int(found) > version) {
        st = stet_fail(&why, STET_UNSUPPORTED, "%s: schemaVersion %lld, this stet knows %lld", path,
                       (long long)stet_value_as_int(found), (long long)version);
        stet_hint(&why, "it was written by a newer stet: use that one");
    }
    if (st == STET_OK)
        *out = v;
    else {
        stet_value_release(v);
        stet_error_move(err, &why);
    }
    return st;
}

stet_status stet_derived_store(const char *path, size_t max, stet_value v, stet_error *err) {
    stet_buf text = STET_BUF(max);
    stet_json_write(&text, v, STET_JSON_PRETTY);
    stet_status st = text.overflow ? stet_fail(err, STET_LIMIT, "%s: more than %zu bytes", path, max)
                                   : stet_file_replace(path, text.data, text.len, 0644, err);
    stet_buf_release(&text);
    return st;
}

static stet_status load_file(const char *path, stet_overlay kind, stet_value *out, stet_error *err) {
    stet_value all, marks;
    stet_status st = stet_derived_load(path, OVERLAY_MAX, STET_OVERLAY_SCHEMA, &all, err);
    if (st != STET_OK)
        return st;
    if (stet_value_type(all) == STET_TYPE_NULL) {
        *out = stet_value_object();
        return STET_OK;
    }
    marks = stet_value_get(all, kinds[kind].member);
    if (stet_value_type(marks) != STET_TYPE_OBJECT)
        st = stet_fail(err, STET_CORRUPT, "%s: \"%s\" is not an object", path, kinds[kind].member);
    for (size_t i = 0; st == STET_OK && i < stet_value_count(marks); i++) {
        size_t len;
        const char *id = stet_value_key_at(marks, i, &len);
        if (!stet_run_id_valid(id, len) || stet_value_type(stet_value_at(marks, i)) != kinds[kind].type)
            st = stet_fail(err, STET_CORRUPT, "%s: the mark of \"%.80s\" is not one", path, id);
    }
    if (st == STET_OK)
        *out = stet_value_retain(marks);
    else
        stet_hint(err, "move %s away: its marks are lost then, the runs are not touched", path);
    stet_value_release(all);
    return st;
}

stet_status stet_overlay_load(const char *registry_dir, stet_overlay kind, stet_value *out, stet_error *err) {
    char *path = stet_file_join(registry_dir, kinds[kind].file);
    stet_status st = load_file(path, kind, out, err);
    stet_free(path);
    return st;
}

static stet_status update(const char *path, stet_overlay kind, stet_value changes, stet_error *err) {
    stet_value marks;
    stet_status st = load_file(path, kind, &marks, err);
    if (st != STET_OK)
        return st;
    for (size_t i = 0; i < stet_value_count(changes); i++) {
        size_t len;
        const char *id = stet_value_key_at(changes, i, &len);
        stet_value mark = stet_value_at(changes, i);
        if (stet_value_type(mark) == STET_TYPE_NULL)
            stet_value_remove(&marks, id, len);
        else
            stet_value_put_n(&marks, id, len, stet_value_retain(mark));
    }
    stet_value all = stet_value_object();
    stet_value_put(&all, "schemaVersion", stet_value_int(STET_OVERLAY_SCHEMA));
    stet_value_put(&all, kinds[kind].member, marks);
    st = stet_derived_store(path, OVERLAY_MAX, all, err);
    stet_value_release(all);
    return st;
}

stet_status stet_overlay_update(const char *registry_dir, stet_overlay kind, stet_value changes, stet_error *err) {
    if (stet_value_count(changes) == 0)
        return STET_OK;
    stet_status st = stet_file_mkdirs(registry_dir, 0755, err);
    if (st != STET_OK)
        return st;
    char *path = stet_file_join(registry_dir, kinds[kind].file),
         *lock_path = stet_file_join(registry_dir, "overlay.lock");
    stet_lock *lock = NULL;
    st = stet_lock_open(lock_path, STET_LOCK_PLAIN, &lock, err);
    if (st == STET_OK)
        st = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, LOCK_WAIT_MS, err);
    if (st == STET_OK)
        st = update(path, kind, changes, err);
    stet_lock_close(lock);
    stet_free(path);
    stet_free(lock_path);
    return st;
}
