/* job_log.c - what jobs of this machine write: where it is kept, and the progress that they report. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/adapter.h"
#include "call/orchestrate_local.h"
#include "os/clock.h"
#include "os/file.h"

#define LINE_MAX_BYTES ((size_t)8 << 10)

char *stet_backend_local_log(const char *dir, stet_hash key, const char *stream) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(key, hex);
    return stet_asprintf("%s/logs/%s.%s", dir, hex, stream);
}

static void put_count(stet_value *to, const char *name, stet_value v) {
    if (stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) >= 0)
        stet_value_put(to, name, stet_value_int(stet_value_as_int(v)));
}

/* Text that is not UTF-8, or too long, is left out. */
static void put_note(stet_value *to, const char *text, size_t len) {
    stet_value note;
    if (len > 0 && len <= STET_ADAPTER_NOTE_MAX && stet_value_string_checked(text, len, &note, NULL) == STET_OK)
        stet_value_put(to, "note", note);
}

/* One line: an object, or "DONE/TOTAL NOTE", or a note alone. */
static stet_value read_line(const char *line, size_t len) {
    stet_value out = stet_value_object(), v = stet_value_null();
    if (len > 0 && *line == '{' && stet_json_parse(line, len, &v, NULL) == STET_OK) {
        stet_value note = stet_value_get(v, "note");
        size_t n = 0;
        put_count(&out, "done", stet_value_get(v, "done"));
        put_count(&out, "total", stet_value_get(v, "total"));
        if (stet_value_type(note) == STET_TYPE_STRING) {
            const char *text = stet_value_as_string(&note, &n);
            put_note(&out, text, n);
        }
        stet_value_release(v);
        return out;
    }
    char *text = stet_strndup(line, len);
    long long done, total;
    int at = 0;
    if (sscanf(text, "%lld/%lld%n", &done, &total, &at) == 2 && at > 0 && done >= 0 && total >= 0) {
        stet_value_put(&out, "done", stet_value_int(done));
        stet_value_put(&out, "total", stet_value_int(total));
    } else if (at = 0, sscanf(text, "%lld%n", &done, &at) == 1 && at > 0 && !text[at] && done >= 0)
        stet_value_put(&out, "done", stet_value_int(done));
    else
        at = 0;
    at += (int)strspn(text + at, " \t");
    put_note(&out, text + at, strlen(text + at));
    stet_free(text);
    return out;
}

/* A line that is not complete is still being written. An empty one is a sign of life, and says no more than that. */
stet_value stet_backend_local_progress(const char *dir, stet_hash key) {
    char *path = stet_backend_local_log(dir, key, "progress"), bytes[LINE_MAX_BYTES + 1];
    stet_value out = stet_value_null();
    struct stat st;
    int fd = stet_sys_open(path, O_RDONLY, 0);
    stet_free(path);
    if (fd < 0)
        return out;
    bool there = stet_sys_fstat(fd, &st) == 0 && st.st_size > 0;
    off_t from = there && st.st_size > (off_t)LINE_MAX_BYTES ? st.st_size - (off_t)LINE_MAX_BYTES : 0;
    ssize_t n = there ? stet_sys_pread(fd, bytes, LINE_MAX_BYTES, from) : 0;
    stet_sys_close(fd);
    if (n <= 0)
        return out;
    size_t end = (size_t)n;
    while (end > 0 && bytes[end - 1] != '\n')
        end--;
    while (end > 0 && isspace((unsigned char)bytes[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && bytes[begin - 1] != '\n')
        begin--;
    out = read_line(bytes + begin, end - begin);
    stet_value_put(&out, "beat", stet_time_value((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000));
    return out;
}
