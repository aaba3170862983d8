/* cli.c - runs one command line: calls the operation and writes its output and exit status. */

#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "operation/text.h"
#include "os/clock.h"

#define STDIN_MAX ((size_t)256 << 20)

typedef struct cli {
    stet_op_ctx ctx;
    stet_cli_words words;
    stet_out out;
    stet_project *project;
    char *cwd;
    bool progress_terminal; /* standard error is a terminal: progress is one line that changes */
    bool progress_shown;
    char *speaker;         /* the node whose output was shown last, until something else is */
    int64_t progress_next; /* the earliest time of the next display, monotonic */
} cli;

static volatile sig_atomic_t stop_asked;

static void on_stop(int number) {
    (void)number;
    if (stop_asked)
        _exit(STET_CANCELLED);
    stop_asked = 1;
}

static void catch_signals(void) {
    struct sigaction stop = {.sa_handler = on_stop}; /* no SA_RESTART: a call that waits returns */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    static const int stops[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        /* A signal that was ignored at the start (a background job of a shell, nohup) stays ignored. */
        if (sigaction(stops[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(stops[i], &stop, NULL);
}

static void hide_progress(cli *c) {
    if (!c->progress_shown)
        return;
    c->progress_shown = false;
    fputs("\r\033[K", stderr);
}

static void put_error_text(cli *c, const stet_error *err) {
    hide_progress(c);
    stet_buf text = STET_BUF(0);
    stet_render r = {.out = &text};
    stet_buf_str(&text, "stet: ");
    stet_text_plain(&r, err->message, strlen(err->message));
    stet_buf_char(&text, '\n');
    if (stet_has_hint(err)) {
        stet_buf_str(&text, "hint: ");
        stet_text_plain(&r, err->hint, strlen(err->hint));
        stet_buf_char(&text, '\n');
    }
    fwrite(text.data, 1, text.len, stderr);
    stet_buf_release(&text);
}

static size_t columns_of(int fd) {
    struct winsize size;
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col ? size.ws_col : 80;
}

static bool use_colour(const cli *c) {
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    if (c->words.colour != STET_COLOUR_AUTO)
        return c->words.colour == STET_COLOUR_ALWAYS;
    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* What a command printed: behind its name, or live with the name in front of each line. */
static void output(void *ctx, const char *node, const char *bytes, size_t len, bool live) {
    stet_op_ctx *o = ctx;
    cli *c = o->surface;
    stet_buf text = STET_BUF(0), before = STET_BUF(0);
    stet_render r = {.out = &text, .colour = use_colour(c), .width = columns_of(STDOUT_FILENO)};
    if (live) {
        stet_buf_printf(&before, "%s | ", node);
    } else if (!c->speaker || strcmp(c->speaker, node) != 0) {
        stet_text_styled(&r, STET_STYLE_BOLD, node);
        stet_text_styled(&r, STET_STYLE_BOLD, ":");
        stet_buf_char(&text, '\n');
    }
    free(c->speaker);
    c->speaker = strdup(node);
    stet_text_output(&r, stet_buf_cstr(&before), bytes, len);
    hide_progress(c);
    stet_out_add(&c->out, stet_buf_cstr(&text), text.len);
    stet_out_flush(&c->out);
    stet_buf_release(&before);
    stet_buf_release(&text);
}

static void put_line(cli *c, stet_value v) {
    stet_buf text = STET_BUF(0);
    stet_json_write(&text, v, STET_JSON_CANONICAL);
    stet_buf_char(&text, '\n');
    hide_progress(c);
    stet_out_add(&c->out, stet_buf_cstr(&text), text.len);
    stet_buf_release(&text);
}

static void put_text(cli *c, stet_value v) {
    stet_buf text = STET_BUF(0);
    stet_render r = {.out = &text, .colour = use_colour(c), .width = columns_of(STDOUT_FILENO)};
    if (c->ctx.op->render)
        c->ctx.op->render(&r, v);
    else
        stet_json_write(&text, v, STET_JSON_PRETTY);
    hide_progress(c);
    stet_out_add(&c->out, stet_buf_cstr(&text), text.len);
    stet_buf_release(&text);
}

/* What failed, where errors go: standard output has results alone. */
static void put_failure(cli *c, stet_value v) {
    stet_buf text = STET_BUF(0);
    stet_render r = {
        .out = &text, .colour = use_colour(c) && isatty(STDERR_FILENO), .width = columns_of(STDERR_FILENO)};
    c->ctx.op->render(&r, v);
    hide_progress(c);
    stet_out_flush(&c->out);
    fwrite(text.data, 1, text.len, stderr);
    stet_buf_release(&text);
}

static void put_value(cli *c, stet_value v) {
    if (c->words.json)
        put_line(c, v);
    else
        put_text(c, v);
}

static stet_status open_project(stet_op_ctx *ctx, stet_project **out, stet_error *err) {
    cli *c = ctx->surface;
    if (!c->project) {
        stet_status status = stet_project_find(ctx->project_dir ? ctx->project_dir : ctx->cwd, &c->project, err);
        if (status != STET_OK)
            return status;
    }
    *out = c->project;
    return STET_OK;
}

static stet_status output_state(cli *c, stet_error *err) {
    stet_status status = stet_out_status(&c->out, err);
    if (status == STET_OK && stet_out_reader_gone(&c->out))
        return stet_fail(err, STET_CANCELLED, "nobody reads standard output any more");
    return status;
}

static stet_status emit(stet_op_ctx *ctx, stet_value event, stet_error *err) {
    cli *c = ctx->surface;
    put_value(c, event);
    stet_out_flush(&c->out);
    return output_state(c, err);
}

static stet_status write_out(stet_op_ctx *ctx, const void *bytes, size_t len, stet_error *err) {
    cli *c = ctx->surface;
    hide_progress(c);
    stet_out_add(&c->out, bytes, len);
    return output_state(c, err);
}

static bool cancelled(stet_op_ctx *ctx) {
    (void)ctx;
    return stop_asked != 0;
}

/* On a terminal, progress is one line that changes ten times a second; elsewhere, a line every ten seconds, so that a
 * log shows that the program is alive. Nothing is shown for a short operation. */
static void progress(stet_op_ctx *ctx, int64_t done, int64_t total, const char *note) {
    cli *c = ctx->surface;
    int64_t now = stet_clock_monotonic_us();
    if (c->words.quiet || c->words.json || now < c->progress_next)
        return;
    bool first = c->progress_next == 0;
    c->progress_next = now + (!c->progress_terminal ? 10000000 : first ? 300000 : 100000);
    if (first)
        return;
    stet_buf text = STET_BUF(4096);
    stet_render r = {.out = &text};
    if (total > 0)
        stet_buf_printf(&text, "%lld/%lld", (long long)done, (long long)total);
    else
        stet_buf_printf(&text, "%lld", (long long)done);
    if (note) {
        stet_buf_str(&text, "  ");
        stet_text_plain(&r, note, strnlen(note, 400));
    }
    if (c->progress_terminal) { /* cut to one line, because a wrapped line can't be erased */
        size_t fits = stet_text_fitting(stet_buf_cstr(&text), text.len, columns_of(STDERR_FILENO) - 1);
        fprintf(stderr, "\r\033[K%.*s", (int)fits, stet_buf_cstr(&text));
    } else
        fprintf(stderr, "stet: %s\n", stet_buf_cstr(&text));
    fflush(stderr);
    c->progress_shown = c->progress_terminal;
    stet_buf_release(&text);
}

static void warn(stet_op_ctx *ctx, const char *format, ...) {
    cli *c = ctx->surface;
    if (c->words.quiet)
        return;
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    hide_progress(c);
    stet_buf text = STET_BUF(0);
    stet_render r = {.out = &text};
    stet_text_plain(&r, message, strlen(message));
    fprintf(stderr, "stet: warning: %s\n", stet_buf_cstr(&text));
    stet_buf_release(&text);
}

/* Reads a JSON parameter that was given as "-" from standard input. */
static stet_status read_stdin(cli *c, stet_error *err) {
    const stet_param *param = c->words.stdin_param;
    char key[STET_PARAM_NAME_MAX], label[STET_PARAM_NAME_MAX + 4];
    stet_param_key(param, key);
    stet_param_spell(param, STET_SPELL_FLAGS, label);
    stet_buf text = STET_BUF(STDIN_MAX);
    stet_status status = STET_OK;
    for (;;) {
        char *room = stet_buf_reserve(&text, 65536);
        if (!room) {
            status = stet_fail(err, STET_LIMIT, "%s: standard input has more than %zu bytes", label, STDIN_MAX);
            break;
        }
        ssize_t n = read(STDIN_FILENO, room, 65536);
        if (n > 0) {
            text.len += (size_t)n;
        } else if (n == 0) {
            break;
        } else if (stop_asked) {
            status = stet_fail(err, STET_CANCELLED, "interrupted");
            break;
        } else if (errno != EINTR) {
            status = stet_fail_errno(err, errno, "%s: standard input", label);
            break;
        }
    }
    stet_value v;
    if (status == STET_OK) {
        status = stet_json_read(stet_buf_cstr(&text), text.len, NULL, &v, err);
        if (status == STET_OK)
            stet_value_put(&c->words.given, key, v);
        else
            stet_fail_in(err, "%s: standard input is no JSON", label);
    }
    stet_buf_release(&text);
    return status;
}

static void replace_operation(cli *c, const char *name, stet_value given) {
    stet_value_release(c->words.given);
    c->words.given = given;
    c->words.op = stet_op_find(name);
    c->words.reads_stdin = false;
}

/* `stet`, `stet NOUN --help`, `stet NOUN VERB --help` are the help operation with those words. */
static void turn_into_help(cli *c) {
    stet_value given = stet_value_object(), topic = stet_value_array();
    const char *name = c->words.op ? c->words.op->name : c->words.noun;
    if (*name)
        stet_value_push(&topic, stet_value_string(name));
    stet_value_put(&given, "command", topic);
    if (!*name && !c->words.help)
        stet_value_put(&given, "overview", stet_value_bool(true));
    replace_operation(c, "help", given);
}

static stet_status perform(cli *c, stet_error *err) {
    stet_op_ctx *ctx = &c->ctx;
    stet_status status;
    if (c->words.version && !c->words.help) {
        if (!c->words.json) {
            stet_out_add(&c->out, "stet " STET_VERSION "\n", strlen("stet " STET_VERSION "\n"));
            return STET_OK;
        }
        replace_operation(c, "version", stet_value_object());
    } else if (c->words.help || !c->words.op) {
        turn_into_help(c);
    }
    ctx->op = c->words.op;
    c->cwd = getcwd(NULL, 0);
    if (!c->cwd)
        return stet_fail_errno(err, errno, "the current directory");
    ctx->cwd = c->cwd;
    ctx->project_dir = c->words.project;
    struct stat st;
    if (ctx->project_dir && !(ctx->op->flags & STET_OP_NO_PROJECT) && stat(ctx->project_dir, &st) != 0)
        return stet_fail(err, STET_NOT_FOUND, "--project %s: no such directory", ctx->project_dir);
    if (c->words.json)
        ctx->write_out = NULL;
    if (c->words.reads_stdin) {
        status = read_stdin(c, err);
        if (status != STET_OK)
            return status;
    }
    stet_value args, result = stet_value_null();
    status = stet_op_check_spelled(ctx->op, c->words.given, STET_SPELL_FLAGS, &args, err);
    if (status != STET_OK) {
        stet_hint(err, "see: stet %s --help", ctx->op->name);
        return status;
    }
    status = stet_op_run(ctx, args, &result, err);
    stet_value_release(args);
    if (status != STET_OK)
        return status;
    status = stet_op_verdict(ctx->op, result);
    bool answers = ctx->op->flags & STET_OP_ANSWERS;
    bool wordless =
        c->words.quiet && !c->words.json && !(ctx->op->flags & STET_OP_READ_ONLY) && !answers && status == STET_OK;
    if (answers && !c->words.json && status != STET_OK) {
        put_failure(c, result);
        wordless = true;
    }
    if (stet_value_type(result) != STET_TYPE_NULL && !wordless)
        put_value(c, result);
    stet_value_release(result);
    return status;
}

static void show_error(cli *c, const stet_error *err) {
    if (!c->words.json || c->out.error_number) {
        put_error_text(c, err);
        return;
    }
    stet_value wrapper = stet_value_object();
    stet_value_put(&wrapper, "error", stet_error_value(err));
    put_line(c, wrapper);
    stet_value_release(wrapper);
}

int stet_cli_main(int argc, char **argv) {
    return stet_cli_run(NULL, argc > 0 ? argc - 1 : 0, argv + 1);
}

int stet_cli_run(const stet_op *op, int count, char *const *words) {
    stet_out_guard();
    catch_signals();
    cli c = {.out = STET_OUT_INIT};
    c.ctx = (stet_op_ctx){.surface = &c,
                          .project = open_project,
                          .emit = emit,
                          .progress = progress,
                          .cancelled = cancelled,
                          .write_out = write_out,
                          .warn = warn};
    c.progress_terminal = isatty(STDERR_FILENO);
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_cli_parse_for(op, count, words, &c.words, &err);
    c.ctx.json = c.words.json;
    c.ctx.output = c.words.json || c.words.quiet ? NULL : output;
    c.ctx.live = c.words.verbose;
    if (status == STET_OK)
        status = perform(&c, &err);
    hide_progress(&c);
    stet_out_flush(&c.out);
    if (status == STET_CANCELLED && stet_out_reader_gone(&c.out) && !stop_asked) {
        /* The reader of the stream closed it: not a failure. */
        stet_error_clear(&err);
        status = STET_OK;
    }
    if (err.status != STET_OK)
        show_error(&c, &err);
    stet_error_clear(&err);
    stet_out_flush(&c.out);
    stet_status written = stet_out_status(&c.out, &err);
    if (written != STET_OK) {
        put_error_text(&c, &err);
        status = written;
    }
    stet_error_clear(&err);
    if (c.project)
        stet_project_close(c.project);
    stet_cli_words_release(&c.words);
    stet_out_release(&c.out);
    free(c.cwd);
    free(c.speaker);
    return (int)status;
}
