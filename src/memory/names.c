/* names.c - the grammar of ids, scopes, branches and spaces, and cells as text. */
#include "memory/internal.h"

static stet_status check_text(const char *what, const char *text, size_t max, stet_error *err) {
    size_t len = 0;
    while ((unsigned char)(text[len] - 0x20) < 0x7F - 0x20) /* most names are short ASCII */
        len++;
    if (!text[len] && len <= max)
        return STET_OK;
    len = strlen(text);
    if (len > max)
        return stet_fail(err, STET_LIMIT, "%s of %zu bytes: at most %zu are allowed", what, len, max);
    if (!stet_utf8_valid(text, len))
        return stet_fail(err, STET_INVALID, "%s is not valid UTF-8", what);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        /* C0, DEL, and C1, which UTF-8 writes as C2 80 to C2 9F. */
        if (c < 0x20 || c == 0x7F || (c == 0xC2 && (unsigned char)text[i + 1] < 0xA0))
            return stet_fail(err, STET_INVALID, "%s holds a control character at byte %zu", what, i);
    }
    return STET_OK;
}

stet_status stet_docname_check(const stet_docname *name, stet_error *err) {
    if (!name->id || !*name->id)
        return stet_fail(err, STET_INVALID, "empty document id: expected 1 to %d bytes", STET_ID_MAX);
    stet_status st = check_text("document id", name->id, STET_ID_MAX, err);
    return st != STET_OK ? st : check_text("scope", name->scope ? name->scope : "", STET_ID_MAX, err);
}

stet_status stet_branch_name_check(const char *name, stet_error *err) {
    return check_text("branch name", name, STET_BRANCH_NAME_MAX, err);
}

stet_status stet_space_name_check(const char *name, stet_error *err) {
    size_t len = strlen(name);
    if (len == 0 || len > 64)
        return stet_fail(err, STET_INVALID,
                         "space name of %zu bytes: expected 1 to 64 of a-z, 0-9, dot, underscore, hyphen", len);
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || (c == '.' && i > 0)))
            return stet_fail(err, STET_INVALID,
                             "space name \"%.64s\": expected a-z, 0-9, dot, underscore, hyphen, no dot first", name);
    }
    return STET_OK;
}

stet_status stet_cell_parse(const char *cell, bool meta, char **id, stet_path *path, stet_error *err) {
    size_t id_len = strcspn(cell, "/");
    stet_buf b = STET_BUF(STET_ID_MAX * 4);
    for (size_t i = 0; i < id_len; i++) {
        char c = cell[i];
        if (c == '~') {
            if (cell[i + 1] != '0' && cell[i + 1] != '1') {
                stet_buf_release(&b);
                return stet_fail(err, STET_INVALID, "cell \"%.200s\": a tilde in an id is written ~0, a slash ~1",
                                 cell);
            }
            c = cell[++i] == '0' ? '~' : '/';
        }
        stet_buf_char(&b, c);
    }
    stet_docname name = {stet_buf_cstr(&b), NULL};
    stet_status st = b.overflow ? stet_fail(err, STET_LIMIT, "document id of more than %d bytes", STET_ID_MAX)
                                : stet_docname_check(&name, err);
    stet_path inner = STET_PATH_INIT;
    if (st == STET_OK)
        st = stet_path_of_pointer(&inner, cell + id_len, strlen(cell + id_len), err);
    if (st == STET_OK) {
        stet_path_set(path, STET_PATH_ROOT);
        if (!meta)
            stet_path_push(path, "value");
        stet_buf_add(&path->buf, inner.buf.data ? inner.buf.data : "", inner.buf.len);
        if (path->buf.overflow || stet_path_depth(stet_path_ref(path)) > STET_PATH_MAX_KEYS)
            st = stet_fail(err, STET_LIMIT, "cell \"%.200s\": path too long", cell);
        else
            *id = stet_buf_take(&b, NULL);
    }
    stet_path_release(&inner);
    stet_buf_release(&b);
    return st;
}

void stet_cell_print(const char *id, stet_pathref path, stet_buf *out) {
    for (const char *p = id; *p; p++) {
        if (*p == '~' || *p == '/')
            stet_buf_str(out, *p == '~' ? "~0" : "~1");
        else
            stet_buf_char(out, *p);
    }
    size_t cursor = 0, len = 0;
    const char *key = NULL;
    stet_buf scratch = STET_BUF(0);
    bool value = stet_path_next(path, &cursor, &scratch, &key, &len) && len == 5 && memcmp(key, "value", 5) == 0;
    stet_buf_release(&scratch);
    if (!value && path.len > 0)
        stet_buf_char(out, '/');
    stet_path_print(value ? (stet_pathref){path.bytes + cursor, path.len - cursor} : path, out);
}
