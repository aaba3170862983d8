/* command_live.c - tells what commands print while they run. */

#include "module/command_run.h"
#include "process/local.h"

#define PART_BYTES ((size_t)256 << 10)
#define MOST_BYTES ((int64_t)16 << 20) /* of one stream of one command: a run's log is to stay a log */

/* Up to the end of the last line. */
static size_t whole_lines(const char *bytes, size_t len) {
    while (len > 0 && bytes[len - 1] != '\n')
        len--;
    return len;
}

void command_tell(command_run *c, bool error, bool all) {
    bool is_result = !error && (c->spec.json_output || c->spec.text_output);
    if (!c->task || is_result)
        return;
    if (c->told_of != c->task) {
        c->told_of = c->task;
        c->told[0] = c->told[1] = 0;
    }
    int64_t *told = &c->told[error];
    for (size_t len = 1; len > 0 && *told < MOST_BYTES;) {
        stet_buf b = STET_BUF(PART_BYTES * 2);
        stet_task_output_from(c->task, error, *told, PART_BYTES, &b);
        len = all || b.len == PART_BYTES ? b.len : whole_lines(stet_buf_cstr(&b), b.len);
        if (len > 0)
            stet_run_say(c->run, error ? "stderr" : "stdout", b.data, len);
        *told += (int64_t)len;
        if (*told >= MOST_BYTES) {
            static const char note[] = "\n(the rest is left out)\n";
            stet_run_say(c->run, error ? "stderr" : "stdout", note, sizeof note - 1);
        }
        stet_buf_release(&b);
    }
}

void command_tell_all(command_state *s) {
    for (size_t i = 0; i < s->active.len; i++) {
        command_run *c = s->active.at[i];
        if (c->working || c->waits_for_node)
            continue;
        command_tell(c, false, false);
        command_tell(c, true, false);
    }
}
