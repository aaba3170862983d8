/* project_store.c - the store "project": what .stet/ must contain, and abandoned temporary files. */

#include <string.h>

#include "operation/op.h"
#include "os/file.h"

#define TEMP_AGE_S (24 * 3600)

static bool present(stet_project *p) {
    (void)p;
    return true; /* an open project always exists */
}

static void add_problem(stet_value *problems, const char *where, const char *what, bool repaired) {
    stet_store_problem(problems, "project", where, what, strlen(what), repaired);
}

static bool has_line(const stet_buf *text, const char *line) {
    size_t n = strlen(line);
    for (size_t at = 0; at < text->len;) { /* it may contain a NUL */
        const char *end = memchr(text->data + at, '\n', text->len - at);
        size_t len = end ? (size_t)(end - text->data) - at : text->len - at;
        if ((len == n || (len == n + 1 && text->data[at + n] == '\r')) && memcmp(text->data + at, line, n) == 0)
            return true;
        at += len + 1;
    }
    return false;
}

/* Databases that Git or a file synchroniser copies to another machine are corrupt there. */
static stet_status check(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err) {
    (void)ctx;
    char *path = stet_project_path(p, ".gitignore");
    stet_buf text = STET_BUF(1 << 20);
    stet_error why = STET_ERROR_INIT;
    stet_status status = stet_file_read(path, 1 << 20, &text, &why);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&why);
        status = STET_OK;
    }
    if (status != STET_OK) {
        stet_error_move(err, &why);
    } else if (!has_line(&text, "local/") && !has_line(&text, "/local/")) {
        const char *line = text.len && text.data[text.len - 1] != '\n' ? "\nlocal/\n" : "local/\n";
        if (repair)
            status = stet_file_append(path, line, strlen(line), true, err);
        add_problem(problems, path, "does not keep local/ out of version control", repair && status == STET_OK);
    }
    stet_buf_release(&text);
    stet_free(path);
    return status;
}

static stet_status gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    char *dir = stet_project_path(p, "local/temp");
    stet_names names = {0};
    int64_t items = 0, bytes = 0;
    stet_status status = stet_file_list_if_there(dir, &names, err);
    for (size_t i = 0; status == STET_OK && i < names.len; i++) {
        if (ctx->cancelled(ctx)) {
            status = stet_fail(err, STET_CANCELLED, "interrupted");
            break;
        }
        char *path = stet_file_join(dir, names.at[i]);
        struct stat st;
        if (stet_sys_lstat(path, &st) == 0 && stet_file_temp_is_dead(names.at[i], TEMP_AGE_S, &st)) {
            items++;
            bytes += S_ISREG(st.st_mode) ? (int64_t)st.st_size : 0;
            if (!dry_run)
                status = stet_file_remove_tree(path, err);
        }
        stet_free(path);
    }
    stet_value_put(report, "items", stet_value_int(items));
    stet_value_put(report, "bytes", stet_value_int(bytes));
    stet_names_release(&names);
    stet_free(dir);
    return status;
}

const stet_store stet_store_project = {
    .name = "project",
    .summary = "The directory .stet/ itself and its temporary files",
    .present = present,
    .check = check,
    .gc = gc,
};
