/* command_store.c - outcomes of commands in the persist directory: stores, finds and restores them. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "files/path.h"
#include "module/command.h"
#include "os/file.h"

#define BLOCK      STET_PERSIST_CALL_PREFIX STET_COMMAND_FUNCTION
#define BLOCK_DEPS STET_PERSIST_CALL_PREFIX STET_COMMAND_FUNCTION "?files"

static stet_persist_key key_of(const char *block, stet_hash id, char text[STET_HASH_BASE64]) {
    stet_base64url_encode(id.bytes, sizeof id.bytes, text);
    return (stet_persist_key){.block_id = block, .module_hash = text};
}

stet_value command_result_files(const command_spec *s) {
    stet_value files = stet_value_object();
    for (size_t i = 0; i < s->outputs.len; i++) {
        stet_buf path = STET_BUF(0);
        stet_value v = stet_look_value(&s->outputs.at[i].look);
        stet_path_escape(s->outputs.at[i].path, &path);
        stet_value_put(&v, "path", stet_value_string_n(path.data, path.len));
        if (s->outputs.at[i].target) {
            stet_buf_clear(&path);
            stet_path_escape(s->outputs.at[i].target, &path);
            stet_value_put(&v, "target", stet_value_string_n(path.data, path.len));
        }
        stet_value_put(&files, s->outputs.at[i].name, v);
        stet_buf_release(&path);
    }
    return files;
}

/* Where an output that is a link says it leads. Caller frees; NULL if the result does not tell. */
static char *stored_target(stet_value file) {
    stet_value v = stet_value_get(file, "target");
    size_t len;
    const char *text = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &len) : NULL;
    stet_buf target = STET_BUF(0);
    char *out = text && stet_path_unescape(text, len, &target) ? stet_strdup(target.data) : NULL;
    stet_buf_release(&target);
    return out;
}

/* Are the bytes that were stored those that were hashed? Between the two somebody may have written to the file. A
 * directory and a link are looked at when they are restored. */
static bool has_bytes_of(const stet_persist_content *c, const stet_look *look) {
    char id[STET_HASH_BASE64];
    stet_base64url_encode(look->hash.bytes, sizeof look->hash.bytes, id);
    return look->mode == STET_LOOK_DIRECTORY || look->link ||
           (c->size == look->size && strncmp(c->id, id, strlen(id)) == 0);
}

/* Is the stored result about exactly these outputs? Takes over what they were. */
static bool fits(const command_entry *e, command_spec *s) {
    stet_value files = stet_value_get(e->result, "files");
    if (stet_value_type(files) != STET_TYPE_OBJECT || stet_value_count(files) != s->outputs.len)
        return false;
    for (size_t i = 0; i < s->outputs.len; i++) {
        stet_look look;
        char kind[32];
        stet_value file = stet_value_get(files, s->outputs.at[i].name);
        if (!stet_look_of_value(file, &look))
            return false;
        stet_free(s->outputs.at[i].target);
        s->outputs.at[i].target = stored_target(file);
        if ((look.link != 0) != (s->outputs.at[i].target != NULL))
            return false;
        snprintf(kind, sizeof kind, "file-%zu", i);
        const stet_persist_content *c = stet_persist_entry_content(e->entry, kind);
        if (!c || !has_bytes_of(c, &look))
            return false;
        s->outputs.at[i].look = look;
    }
    return true;
}

stet_status command_entry_get(stet_persist *p, const command_spec *s, stet_hash id, command_entry *out,
                              stet_error *err) {
    static const char *const kinds[] = {"variables", NULL};
    char text[STET_HASH_BASE64];
    stet_persist_key key = key_of(BLOCK, id, text);
    *out = (command_entry){0};
    stet_status status = stet_persist_get(p, &key, STET_PERSIST_LOAD, kinds, &out->entry, err);
    if (status != STET_OK)
        return status;
    const stet_persist_content *c = stet_persist_entry_content(out->entry, "variables");
    out->result = stet_value_null();
    if (!c || !c->bytes || stet_json_parse(c->bytes, c->size, &out->result, NULL) != STET_OK ||
        !fits(out, (command_spec *)(uintptr_t)s)) {
        command_entry_release(out);
        return stet_fail(err, STET_NOT_FOUND, "the stored result is not one of this command");
    }
    return STET_OK;
}

void command_entry_release(command_entry *e) {
    stet_persist_entry_free(e->entry);
    stet_value_release(e->result);
    *e = (command_entry){0};
}

stet_status command_deps_get(stet_persist *p, stet_hash call, size_t age, command_files *out, stet_error *err) {
    char text[STET_HASH_BASE64];
    stet_persist_key key = key_of(BLOCK_DEPS, call, text);
    for (size_t i = 0;; i++) {
        stet_persist_entry *entry;
        stet_status status = stet_persist_get(p, &key, STET_PERSIST_LOAD | STET_PERSIST_NO_COUNT, NULL, &entry, err);
        if (status != STET_OK)
            return status;
        if (i < age) {
            key.created_at = entry->key.created_at - 1;
            stet_persist_entry_free(entry);
            if (key.created_at == 0)
                return stet_fail(err, STET_NOT_FOUND, "no older list");
            continue;
        }
        const stet_persist_content *c = stet_persist_entry_content(entry, "variables");
        stet_value list = stet_value_null();
        if (!c || !c->bytes || stet_json_parse(c->bytes, c->size, &list, NULL) != STET_OK)
            status = stet_fail(err, STET_NOT_FOUND, "the stored list is damaged");
        for (size_t k = 0; k < stet_value_count(list) && status == STET_OK; k++) {
            stet_value v = stet_value_at(list, k);
            size_t len;
            const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &len) : NULL;
            stet_buf path = STET_BUF(0);
            if (!s || !stet_path_unescape(s, len, &path))
                status = stet_fail(err, STET_NOT_FOUND, "the stored list is damaged");
            else
                command_files_add(out, "", path.data);
            stet_buf_release(&path);
        }
        stet_value_release(list);
        stet_persist_entry_free(entry);
        if (status != STET_OK)
            command_files_release(out);
        return status;
    }
}

/* One output, from its object. */
static stet_status restore_file(stet_persist *p, int root_fd, const char *full, command_file *f,
                                const stet_persist_content *c, bool hardlink, stet_look *now, stet_error *err) {
    struct stat as;
    stet_status status = stet_persist_restore(p, c->id, c->size, full, f->look.mode & 0777, hardlink, NULL, &as, err);
    if (status == STET_OK)
        status = stet_look_placed(root_fd, f->path, f->look.hash, &as, now, err);
    /* A hard link has the mode of the object: executable or not must come out right all the same. */
    if (status == STET_OK && hardlink && now->mode != f->look.mode && stet_hash_equal(now->hash, f->look.hash))
        return restore_file(p, root_fd, full, f, c, false, now, err);
    return status;
}

/* A link, in place of whatever is there. What it leads to now may be something else than it was: then the outcome is
 * not this one. */
static stet_status restore_link(int root_fd, const char *full, const command_file *f, stet_look *now, stet_error *err) {
    char *dir = stet_file_dirname(full), *temp = stet_file_temp_name(dir, ".stet-restore");
    stet_status status = STET_OK;
    if (stet_sys_symlink(f->target, temp) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot make the link", full);
    else if (stet_sys_rename(temp, full) != 0) {
        status = stet_fail_errno(err, errno, "%s: cannot put it in place", full);
        unlink(temp);
    }
    if (status == STET_OK)
        status = stet_look_at(root_fd, f->path, NULL, now, err);
    stet_free(dir);
    stet_free(temp);
    return status;
}

stet_status command_restore(stet_persist *p, int root_fd, const char *root, const char *temp_dir, command_spec *s,
                            const command_entry *e, bool hardlink, stet_error *err) {
    for (size_t i = 0; i < s->outputs.len; i++) {
        command_file *f = &s->outputs.at[i];
        stet_look now;
        char kind[32];
        stet_status status = stet_look_at(root_fd, f->path, f->known.inode ? &f->known : NULL, &now, err);
        if (status != STET_OK)
            return status;
        if (!stet_look_same(&now, &f->look)) {
            snprintf(kind, sizeof kind, "file-%zu", i);
            const stet_persist_content *c = stet_persist_entry_content(e->entry, kind);
            char *full = f->path[0] == '/' ? stet_strdup(f->path) : stet_file_join(root, f->path),
                 *dir = stet_file_dirname(full);
            struct stat st;
            status = stet_file_mkdirs(dir, 0755, err);
            bool directory = f->look.mode == STET_LOOK_DIRECTORY && !f->target;
            if (status == STET_OK && !directory && stet_sys_lstat(full, &st) == 0 && S_ISDIR(st.st_mode))
                status = stet_file_remove_tree(full, err);
            if (status == STET_OK && directory) {
                status = command_dir_restore(p, c, temp_dir, full, err);
                if (status == STET_OK)
                    status = stet_look_at(root_fd, f->path, NULL, &now, err);
            } else if (status == STET_OK && f->target)
                status = restore_link(root_fd, full, f, &now, err);
            else if (status == STET_OK)
                status = restore_file(p, root_fd, full, f, c, hardlink, &now, err);
            if (status == STET_OK && !stet_look_same(&now, &f->look))
                status = stet_fail(err, STET_NOT_FOUND, "%s: restored and changed at once by somebody else", f->path);
            stet_free(full);
            stet_free(dir);
            if (status != STET_OK)
                return status;
        }
        f->look = now;
    }
    return STET_OK;
}

static void put_json(stet_persist_put *w, const char *kind, stet_value v) {
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_persist_put_content(w, kind, "json");
    stet_persist_put_bytes(w, text, len);
    stet_free(text);
}

static stet_status store_list(stet_persist *p, stet_hash call, const command_files *found, stet_error *err) {
    char text[STET_HASH_BASE64];
    stet_persist_key key = key_of(BLOCK_DEPS, call, text);
    command_files known = {0};
    stet_error none = STET_ERROR_INIT;
    /* The newest list says the same: nothing to add. */
    bool same = command_deps_get(p, call, 0, &known, &none) == STET_OK && known.len == found->len;
    for (size_t i = 0; same && i < found->len; i++)
        same = strcmp(known.at[i].path, found->at[i].path) == 0;
    command_files_release(&known);
    stet_error_clear(&none);
    if (same)
        return STET_OK;
    stet_value list = stet_value_array();
    for (size_t i = 0; i < found->len; i++) {
        stet_buf path = STET_BUF(0);
        stet_path_escape(found->at[i].path, &path);
        stet_value_push(&list, stet_value_string_n(path.data, path.len));
        stet_buf_release(&path);
    }
    key.created_at = stet_persist_now();
    stet_persist_put *w = stet_persist_put_begin(p, &key);
    put_json(w, "variables", list);
    stet_value_release(list);
    return stet_persist_put_end(w, NULL, err);
}

stet_status command_store(stet_persist *p, const char *root, const command_spec *s, stet_hash id,
                          const command_files *found, stet_value result, const char *output_path,
                          const char *error_path, int64_t elapsed_ms, stet_error *err) {
    char text[STET_HASH_BASE64];
    stet_persist_key key = key_of(BLOCK, id, text);
    if (s->outputs.len + 3 > STET_PERSIST_CONTENTS_MAX)
        return STET_OK;
    stet_status status = STET_OK;
    key.created_at = stet_persist_now();
    stet_persist_put *w = stet_persist_put_begin(p, &key);
    stet_persist_put_elapsed(w, elapsed_ms);
    put_json(w, "variables", result);
    const char *paths[] = {output_path, error_path}, *kinds[] = {"output", "stderr"};
    for (int i = 0; i < 2; i++) {
        struct stat st;
        if (!paths[i] || stet_sys_stat(paths[i], &st) != 0 || st.st_size == 0)
            continue;
        stet_persist_put_content(w, kinds[i], "bytes");
        stet_persist_put_file(w, paths[i]);
    }
    for (size_t i = 0; i < s->outputs.len; i++) {
        const command_file *f = &s->outputs.at[i];
        char kind[32];
        snprintf(kind, sizeof kind, "file-%zu", i);
        char *full = f->path[0] == '/' ? stet_strdup(f->path) : stet_file_join(root, f->path);
        stet_persist_put_content(w, kind, "bytes");
        if (f->target)
            stet_persist_put_bytes(w, f->target, strlen(f->target));
        else if (f->look.mode != STET_LOOK_DIRECTORY)
            stet_persist_put_file(w, full);
        else if (status == STET_OK)
            status = command_dir_put(w, full, err);
        stet_free(full);
    }
    if (status != STET_OK) {
        stet_persist_put_abort(w);
        return status;
    }
    stet_persist_entry *entry = NULL;
    status = stet_persist_put_end(w, &entry, err);
    stet_persist_entry_free(entry);
    if (status == STET_OK && s->depfile)
        status = store_list(p, s->call, found, err);
    return status;
}
