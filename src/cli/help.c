/* help.c - help texts from the operation table. */

#include "cli/help.h"

#include <string.h>

#include "base/utf8.h"
#include "cli/args.h"
#include "operation/text.h"

#define WIDEST   100
#define COLUMN   30
#define SHOWN(p) (!((p)->flags & STET_PARAM_HIDDEN))

const stet_help_item stet_help_statuses[] = {
    {"0", "It worked. Also when the reader of standard output went away before the end."},
    {"1", "Failed: an action or a call failed, or a check found problems."},
    {"2", "Invalid: a mistake in the command line or in the input."},
    {"3", "Not found."},
    {"4", "Conflict: somebody else changed what this relied on."},
    {"5", "Busy: a lock or a time-out. Trying again later may work."},
    {"6", "Corrupt: stored bytes are not what was written."},
    {"7", "Input or output: disk full, no permission, closed standard output."},
    {"8", "Unsupported: a missing part, or a newer format."},
    {"9", "Denied by policy."},
    {"10", "Limit: larger, deeper or more than a stated maximum."},
    {"70", "Internal: a bug in stet."},
    {"130", "Cancelled: Ctrl-C or SIGTERM. The first asks the operation to stop, a second one ends it at once."},
    {0},
};

const stet_help_item stet_help_variables[] = {
    {"STET_HOME", "Directory of what belongs to this user on this machine. Without it: $XDG_STATE_HOME/stet, then "
                  "~/.local/state/stet."},
    {"XDG_STATE_HOME", "See STET_HOME."},
    {"NO_COLOR", "If set and not empty, no colours unless --color=always."},
    {"TERM", "No colours if it is unset or \"dumb\"."},
    {0},
};

static size_t width_of(const stet_render *r) {
    return r->width == 0 ? 80 : r->width > WIDEST ? WIDEST : r->width;
}

static void heading(stet_render *r, const char *text) {
    stet_buf_char(r->out, '\n');
    stet_text_styled(r, STET_STYLE_BOLD, text);
    stet_buf_char(r->out, '\n');
}

/* Writes "  name     summary", with the summary wrapped in its column. */
static void item(stet_render *r, const char *name, const char *summary, size_t column) {
    size_t wide = stet_utf8_width(name, strlen(name)) + 2;
    stet_buf_printf(r->out, "  %s", name);
    if (wide + 2 > column) {
        stet_buf_char(r->out, '\n');
        wide = 0;
    }
    for (; wide < column; wide++)
        stet_buf_char(r->out, ' ');
    stet_text_wrap(r->out, summary, column, width_of(r), true);
}

/* Commands by what people want to do, as words: a command, or the first word of several. */
typedef struct topic {
    const char *title;
    const char *const *words;
} topic;

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const topic topics[] = {
    {"Begin a project", WORDS("init", "pattern write", "pattern check", "trust", "doctor")},
    {"Run it, and see what is out of date", WORDS("run", "status", "why", "watch", "get", "set")},
    {"Look at earlier runs, and queue new ones", WORDS("runs", "history", "queue", "registry", "project")},
    {"Patterns, pieces and their actions", WORDS("pattern", "piece", "action")},
    {"Documents, branches and spaces", WORDS("doc", "branch", "space")},
    {"Files and stored results", WORDS("file", "persist", "check", "gc")},
    {"Calls, and sharing their results", WORDS("call", "worker", "dag", "remote")},
    {"Help and other programs", WORDS("help", "version", "mcp")},
};
#define TOPICS (sizeof topics / sizeof *topics)

/* How many bytes of the name a word covers; 0: it is not meant. */
static size_t covers(const char *word, const char *name) {
    size_t n = strlen(word);
    return strncmp(word, name, n) == 0 && (name[n] == 0 || name[n] == ' ') ? n : 0;
}

/* The topic whose word says most of the name; TOPICS: none. */
static size_t topic_of(const stet_op *op) {
    size_t best = TOPICS, most = 0;
    for (size_t i = 0; i < TOPICS; i++)
        for (const char *const *word = topics[i].words; *word; word++)
            if (covers(*word, op->name) > most) {
                most = covers(*word, op->name);
                best = i;
            }
    return best;
}

static bool listed(const stet_op *op, bool all) {
    return all || op->flags & STET_OP_COMMON;
}

/* In the order of the topic's words, then of the table. */
static void topic_items(stet_render *r, size_t t, bool all, size_t column) {
    bool any = false;
    for (const char *const *word = t < TOPICS ? topics[t].words : WORDS(""); *word; word++)
        for (size_t i = 0; i < stet_op_count(); i++) {
            const stet_op *op = stet_op_at(i);
            const char *by = NULL;
            for (const char *const *w = t < TOPICS ? topics[t].words : WORDS(""); *w; w++)
                if (covers(*w, op->name) > 0 && (!by || strlen(*w) > strlen(by)))
                    by = *w;
            if (!listed(op, all) || topic_of(op) != t || (t < TOPICS && (!by || strcmp(by, *word) != 0)))
                continue;
            if (!any)
                heading(r, t < TOPICS ? topics[t].title : "Other commands");
            any = true;
            item(r, op->name, op->summary, column);
        }
}

void stet_help_overview(stet_render *r, bool all) {
    stet_buf_str(r->out, "stet " STET_VERSION ": durable incremental computation\n\n");
    stet_buf_str(r->out, "usage: stet [--json] [--project DIR] COMMAND [ARGUMENT...]\n");
    if (!all)
        stet_buf_str(r->out, "\nCommon commands, by what they are for:\n");
    size_t column = 0;
    for (size_t i = 0; i < stet_op_count(); i++)
        if (listed(stet_op_at(i), all) && strlen(stet_op_at(i)->name) + 4 > column)
            column = strlen(stet_op_at(i)->name) + 4;
    for (size_t t = 0; t <= TOPICS; t++)
        topic_items(r, t, all, column + 1);
    if (all) {
        heading(r, "Flags of every command");
        for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
            stet_buf flag = STET_BUF(256);
            if (g->letter)
                stet_buf_printf(&flag, "-%c, --%s", g->letter, g->name);
            else
                stet_buf_printf(&flag, "    --%s", g->name);
            if (g->metavar)
                stet_buf_printf(&flag, " %s", g->metavar);
            item(r, stet_buf_cstr(&flag), g->summary, COLUMN);
            stet_buf_release(&flag);
        }
        heading(r, "Exit status");
        for (const stet_help_item *s = stet_help_statuses; s->name; s++)
            item(r, s->name, s->text, 8);
    }
    stet_buf_str(r->out, all ? "\nstet COMMAND --help says more about one command.\n"
                             : "\nstet help lists all commands; stet COMMAND --help says more about one.\n");
}

void stet_help_noun(stet_render *r, const char *noun) {
    size_t n = strlen(noun), column = 0;
    stet_buf_printf(r->out, "usage: stet %s COMMAND [ARGUMENT...]\n", noun);
    heading(r, "Commands");
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < stet_op_count(); i++) {
            const stet_op *op = stet_op_at(i);
            if (strncmp(op->name, noun, n) != 0 || (op->name[n] != ' ' && op->name[n] != 0))
                continue;
            if (pass == 0 && strlen(op->name) + 5 > column)
                column = strlen(op->name) + 5;
            if (pass == 1)
                item(r, op->name, op->summary, column);
        }
    stet_buf_printf(r->out, "\nstet %s COMMAND --help says more about one of them.\n", noun);
}

static void param_form(stet_buf *out, const stet_param *p) {
    if (p->flags & STET_PARAM_POSITIONAL) {
        stet_param_metavar(p, out);
        return;
    }
    stet_buf_printf(out, "--%s", p->name);
    if (p->optional_value) {
        stet_buf_str(out, "[=");
        stet_param_metavar(p, out);
        stet_buf_char(out, ']');
    } else if (p->type != STET_PARAM_BOOL) {
        stet_buf_char(out, ' ');
        stet_param_metavar(p, out);
    }
}

void stet_help_usage(stet_buf *out, const stet_op *op) {
    stet_buf_printf(out, "stet %s", op->name);
    for (int positional = 0; positional < 2; positional++)
        for (const stet_param *p = op->params; p && p->name; p++) {
            if (!SHOWN(p) || !!(p->flags & STET_PARAM_POSITIONAL) != positional)
                continue;
            bool optional = !(p->flags & STET_PARAM_REQUIRED);
            stet_buf_str(out, optional ? " [" : " ");
            param_form(out, p);
            if (p->flags & STET_PARAM_REPEATED || p->type == STET_PARAM_PAIR)
                stet_buf_str(out, positional ? "..." : " ...");
            if (optional)
                stet_buf_char(out, ']');
        }
}

void stet_help_notes(stet_buf *out, const stet_param *p) {
    const char *gap = "";
    if (p->type == STET_PARAM_ENUM) {
        stet_buf_str(out, "one of: ");
        for (size_t i = 0; p->choices[i]; i++)
            stet_buf_printf(out, "%s%s", i ? ", " : "", p->choices[i]);
        gap = "; ";
    }
    if (p->type == STET_PARAM_INT && (p->min || p->max)) {
        if (p->max == INT64_MAX)
            stet_buf_printf(out, "%sat least %lld", gap, (long long)p->min);
        else
            stet_buf_printf(out, "%s%lld to %lld", gap, (long long)p->min, (long long)p->max);
        gap = "; ";
    }
    if (p->type == STET_PARAM_JSON) {
        stet_buf_printf(out, "%s- reads standard input", gap);
        gap = "; ";
    }
    if (p->default_json && strcmp(p->default_json, "false") != 0 && strcmp(p->default_json, "[]") != 0 &&
        strcmp(p->default_json, "{}") != 0) {
        size_t n = strlen(p->default_json);
        bool quoted = n > 2 && p->default_json[0] == '"' && !memchr(p->default_json, '\\', n);
        stet_buf_printf(out, "%sdefault %.*s", gap, (int)(quoted ? n - 2 : n), p->default_json + quoted);
        if (p->type == STET_PARAM_BOOL)
            stet_buf_printf(out, ", --no-%s turns it off", p->name);
        gap = "; ";
    }
    if ((p->flags & STET_PARAM_REPEATED || p->type == STET_PARAM_PAIR) && !(p->flags & STET_PARAM_POSITIONAL))
        stet_buf_printf(out, "%smay be repeated", gap);
}

static void param_item(stet_render *r, const stet_param *p) {
    stet_buf left = STET_BUF(4096), right = STET_BUF(8192), notes = STET_BUF(8192);
    if (!(p->flags & STET_PARAM_POSITIONAL)) {
        if (p->letter)
            stet_buf_printf(&left, "-%c, ", p->letter);
        else
            stet_buf_str(&left, "    ");
    }
    param_form(&left, p);
    stet_help_notes(&notes, p);
    stet_buf_str(&right, p->summary);
    if (notes.len)
        stet_buf_printf(&right, " (%s)", stet_buf_cstr(&notes));
    item(r, stet_buf_cstr(&left), stet_buf_cstr(&right), COLUMN);
    stet_buf_release(&left);
    stet_buf_release(&right);
    stet_buf_release(&notes);
}

static void params_of(stet_render *r, const stet_op *op, bool positional, const char *title) {
    bool any = false;
    for (const stet_param *p = op->params; p && p->name; p++) {
        if (!SHOWN(p) || !!(p->flags & STET_PARAM_POSITIONAL) != positional)
            continue;
        if (!any)
            heading(r, title);
        any = true;
        param_item(r, p);
    }
}

void stet_help_op(stet_render *r, const stet_op *op) {
    stet_buf usage = STET_BUF(65536);
    stet_help_usage(&usage, op);
    stet_buf_str(r->out, "usage: ");
    stet_text_wrap(r->out, stet_buf_cstr(&usage), 7, width_of(r), true);
    stet_buf_release(&usage);
    stet_buf_printf(r->out, "\n%s.\n", op->summary);
    if (op->description) {
        stet_buf_char(r->out, '\n');
        stet_text_wrap(r->out, op->description, 0, width_of(r), false);
    }
    params_of(r, op, true, "Arguments");
    params_of(r, op, false, "Flags");
    heading(r, "Examples");
    for (const stet_example *e = op->examples; e && e->command; e++) {
        stet_buf_printf(r->out, "  stet %s\n", e->command);
        if (e->purpose) {
            stet_buf_str(r->out, "      ");
            stet_text_wrap(r->out, e->purpose, 6, width_of(r), true);
        }
    }
    stet_buf_char(r->out, '\n');
    stet_text_wrap(r->out,
                   "Flags of every command: --json, --project DIR, --quiet, --color WHEN, --help (see: stet help).", 0,
                   width_of(r), false);
}
