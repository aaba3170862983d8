/* command_notes.c - what the inputs of a command were when it began, for a process that goes on with the command.
 *
 * The process that starts a command remembers what stat said of each input just before. A process that finds the
 * command after a kill has only times: an input whose last change is not older than the start may have been changed
 * before it or after it. Commands that follow each other in a chain are started within a tick of the file system's
 * clock after their input was written, so this is common. The starter therefore leaves notes in the journal: the time
 * of the start by the clock of files, and the stat data of each input whose times alone do not tell. It also says what
 * the command writes, and on behalf of which space and branch (orphan.h). */
#include <stdio.h>
#include <string.h>

#include "files/path.h"
#include "module/command_run.h"

#define MAX_NOTES 1000 /* inputs beyond these are judged by their times */

static void note(const command_file *f, int64_t launched, size_t before, command_words *out) {
    if (!f->look.inode || out->len - before > MAX_NOTES ||
        (f->look.mode != STET_LOOK_DIRECTORY && f->look.ctime < launched && f->look.mtime < launched))
        return;
    stet_buf line = STET_BUF(0);
    stet_buf_printf(&line, "input %llu %llu %lld %lld ", (unsigned long long)f->look.inode,
                    (unsigned long long)f->look.size, (long long)f->look.mtime, (long long)f->look.ctime);
    stet_path_escape(f->path, &line);
    command_words_add(out, stet_strdup(stet_buf_cstr(&line)));
    stet_buf_release(&line);
}

void command_notes_write(const command_run *c, command_words *out) {
    char line[64];
    snprintf(line, sizeof line, "launched %lld", (long long)c->launched_ns);
    command_words_add(out, stet_strdup(line));
    command_words_add(out, stet_asprintf("space %s", stet_files_space(c->state->files)));
    command_words_add(out, stet_asprintf("branch %s", stet_files_branch(c->state->files)));
    for (size_t i = 0; i < c->spec.outputs.len; i++) {
        stet_buf text = STET_BUF(0);
        stet_buf_str(&text, "output ");
        stet_path_escape(c->spec.outputs.at[i].path, &text);
        command_words_add(out, stet_strdup(stet_buf_cstr(&text)));
        stet_buf_release(&text);
    }
    size_t before = out->len;
    for (size_t i = 0; i < c->spec.inputs.len; i++)
        note(&c->spec.inputs.at[i], c->launched_ns, before, out);
    for (size_t i = 0; i < c->spec.scripts.len; i++)
        note(&c->spec.scripts.at[i], c->launched_ns, before, out);
}

/* The content is the same, or the call would be another one; only how stat described it is taken over. */
static void take(command_files *files, const stet_look *was, const stet_buf *path) {
    for (size_t i = 0; i < files->len; i++) {
        stet_look *look = &files->at[i].look;
        if (look->size == was->size && strlen(files->at[i].path) == path->len &&
            memcmp(files->at[i].path, path->data, path->len) == 0) {
            look->inode = was->inode;
            look->mtime = was->mtime;
            look->ctime = was->ctime;
            look->flags |= STET_LOOK_RACY; /* its content is read again */
        }
    }
}

/* What stat says now, after the command began, proves nothing of how the files were then. */
static void forget_stat(command_files *files) {
    for (size_t i = 0; i < files->len; i++)
        files->at[i].look.inode = 0;
}

void command_notes_read(command_run *c, const stet_task *t) {
    const char *text;
    c->launched_ns = 0;
    forget_stat(&c->spec.inputs);
    forget_stat(&c->spec.scripts);
    for (size_t i = 0; (text = stet_task_note(t, i)) != NULL; i++) {
        unsigned long long inode, size;
        long long mtime, ctime;
        int at = 0;
        if (sscanf(text, "launched %lld", &mtime) == 1) {
            c->launched_ns = mtime;
        } else if (sscanf(text, "input %llu %llu %lld %lld %n", &inode, &size, &mtime, &ctime, &at) == 4 && at > 0) {
            stet_look was = {.inode = inode, .size = size, .mtime = mtime, .ctime = ctime};
            stet_buf path = STET_BUF(0);
            if (stet_path_unescape(text + at, strlen(text + at), &path)) {
                take(&c->spec.inputs, &was, &path);
                take(&c->spec.scripts, &was, &path);
            }
            stet_buf_release(&path);
        }
    }
}
