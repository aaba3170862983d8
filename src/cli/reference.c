/* reference.c - docs/reference.md and man/stet.1 from the table. Deterministic: no date, no machine. */
#include <string.h>

#include "cli/args.h"
#include "cli/help.h"

#define SHOWN(p) (!((p)->flags & STET_PARAM_HIDDEN))

/* Escapes text in a cell of a table: a bar would end the cell, and < would begin a tag. */
static void cell(stet_buf *out, const char *text) {
    for (; *text; text++) {
        if (*text == '|')
            stet_buf_str(out, "\\|");
        else if (*text == '<')
            stet_buf_str(out, "&lt;");
        else
            stet_buf_char(out, *text == '\n' ? ' ' : *text);
    }
}

static void anchor(stet_buf *out, const char *name) {
    for (; *name; name++)
        stet_buf_char(out, *name == ' ' ? '-' : *name);
}

static void reference_params(stet_buf *out, const stet_op *op) {
    bool any = false;
    for (int positional = 1; positional >= 0; positional--)
        for (const stet_param *p = op->params; p && p->name; p++) {
            if (!SHOWN(p) || !!(p->flags & STET_PARAM_POSITIONAL) != positional)
                continue;
            if (!any)
                stet_buf_str(out, "| parameter | in JSON | meaning |\n| --- | --- | --- |\n");
            any = true;
            char key[STET_PARAM_NAME_MAX];
            stet_param_key(p, key);
            stet_buf form = STET_BUF(4096), notes = STET_BUF(8192);
            if (p->letter)
                stet_buf_printf(&form, "-%c, ", p->letter);
            if (!positional)
                stet_buf_printf(&form, "--%s", p->name);
            if (positional || p->type != STET_PARAM_BOOL) {
                stet_buf_str(&form, positional ? "" : p->optional_value ? "[=" : " ");
                stet_param_metavar(p, &form);
                stet_buf_str(&form, !positional && p->optional_value ? "]" : "");
            }
            stet_help_notes(&notes, p);
            stet_buf_str(out, "| `");
            cell(out, stet_buf_cstr(&form));
            if (p->flags & STET_PARAM_CLI_ONLY)
                stet_buf_str(out, "` | command line only | ");
            else
                stet_buf_printf(out, "` | `%s` | ", key);
            cell(out, p->summary);
            if (notes.len) {
                stet_buf_str(out, " (");
                cell(out, stet_buf_cstr(&notes));
                stet_buf_char(out, ')');
            }
            stet_buf_str(out, p->flags & STET_PARAM_REQUIRED ? "; required |\n" : " |\n");
            stet_buf_release(&form);
            stet_buf_release(&notes);
        }
    if (any)
        stet_buf_char(out, '\n');
}

static void reference_flags(stet_buf *out, const stet_op *op) {
    static const struct {
        unsigned flag;
        const char *text;
    } words[] = {
        {STET_OP_READ_ONLY, "changes nothing"},
        {STET_OP_DESTRUCTIVE, "may delete or overwrite what a user made"},
        {STET_OP_IDEMPOTENT, "the same call again changes nothing more"},
        {STET_OP_LONG, "may take long"},
        {STET_OP_CLI_ONLY, "command line only"},
        {STET_OP_NO_PROJECT, "needs no project"},
    };
    bool any = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (op->flags & words[i].flag) {
            stet_buf_printf(out, "%s%s", any ? "; " : "*", words[i].text);
            any = true;
        }
    if (any)
        stet_buf_str(out, "*\n\n");
}

void stet_help_reference(stet_buf *out) {
    stet_buf_str(out,
                 "# Reference of the commands\n\n"
                 "Rendered from the operation table by `make docs`; edit the rows in `src/operation/`, not this "
                 "file.\n\n"
                 "Every command takes `--json` and then prints its result, or `{\"error\": {\"code\", \"message\", "
                 "\"hint\", \"details\"}}`, as one line of JSON. The MCP tool of an operation has its name with "
                 "underscores (`stet_project_list`) and returns the same value. Parameters have hyphens in flags and "
                 "underscores in JSON; flags accept both.\n\n"
                 "A word that begins with a dash is a flag, unless it is `-` or a negative number. An id that begins "
                 "with a dash goes after `--`, a flag's value that does is written `--flag=-value`.\n\n"
                 "## Flags of every command\n\n| flag | meaning |\n| --- | --- |\n");
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
        stet_buf_str(out, "| `");
        if (g->letter)
            stet_buf_printf(out, "-%c, ", g->letter);
        stet_buf_printf(out, "--%s%s%s` | ", g->name, g->metavar ? " " : "", g->metavar ? g->metavar : "");
        cell(out, g->summary);
        stet_buf_str(out, " |\n");
    }
    stet_buf_str(out, "\n## Exit status\n\n| status | meaning |\n| --- | --- |\n");
    for (const stet_help_item *s = stet_help_statuses; s->name; s++) {
        stet_buf_printf(out, "| %s | ", s->name);
        cell(out, s->text);
        stet_buf_str(out, " |\n");
    }
    stet_buf_str(out, "\n## Environment\n\n| variable | meaning |\n| --- | --- |\n");
    for (const stet_help_item *v = stet_help_variables; v->name; v++) {
        stet_buf_printf(out, "| `%s` | ", v->name);
        cell(out, v->text);
        stet_buf_str(out, " |\n");
    }
    stet_buf_str(out, "\n## Commands\n\n| command | does |\n| --- | --- |\n");
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *op = stet_op_at(i);
        stet_buf_printf(out, "| [`%s`](#stet-", op->name);
        anchor(out, op->name);
        stet_buf_str(out, ") | ");
        cell(out, op->summary);
        stet_buf_str(out, " |\n");
    }
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *op = stet_op_at(i);
        stet_buf_printf(out, "\n### stet %s\n\n%s.\n\n```\n", op->name, op->summary);
        stet_help_usage(out, op);
        stet_buf_str(out, "\n```\n\n");
        if (op->description)
            stet_buf_printf(out, "%s\n\n", op->description);
        reference_params(out, op);
        reference_flags(out, op);
        for (const stet_example *e = op->examples; e && e->command; e++)
            stet_buf_printf(out, "%s`stet %s`%s%s\n", e == op->examples ? "Examples:\n\n* " : "* ", e->command,
                            e->purpose ? ": " : "", e->purpose ? e->purpose : "");
        stet_value schema = stet_op_result_schema(op);
        size_t len;
        char *text = stet_json_print(schema, STET_JSON_CANONICAL, &len);
        stet_buf_printf(out, "\nResult: `%s`\n", text);
        stet_free(text);
        stet_value_release(schema);
    }
}

/* Writes roff text: a dash becomes \- so that it can be copied, and no line begins with a control character. */
static void roff(stet_buf *out, const char *text) {
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            stet_buf_str(out, "\\&");
        start = *text == '\n';
        if (*text == '\\')
            stet_buf_str(out, "\\e");
        else if (*text == '-')
            stet_buf_str(out, "\\-");
        else
            stet_buf_char(out, *text);
    }
}

static void roff_paragraphs(stet_buf *out, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = stet_strndup(text, n);
        if (n == 0)
            stet_buf_str(out, ".PP\n");
        else if (line[0] == ' ') {
            stet_buf_str(out, ".br\n");
            roff(out, line);
            stet_buf_str(out, "\n.br\n");
        } else {
            roff(out, line);
            stet_buf_char(out, '\n');
        }
        stet_free(line);
        text += n + (text[n] == '\n');
    }
}

static void tagged(stet_buf *out, const char *tag, const char *text) {
    stet_buf_str(out, ".TP\n.B ");
    roff(out, tag);
    stet_buf_char(out, '\n');
    roff(out, text);
    stet_buf_char(out, '\n');
}

static void man_params(stet_buf *out, const stet_op *op) {
    for (int positional = 1; positional >= 0; positional--)
        for (const stet_param *p = op->params; p && p->name; p++) {
            if (!SHOWN(p) || !!(p->flags & STET_PARAM_POSITIONAL) != positional)
                continue;
            stet_buf tag = STET_BUF(4096), text = STET_BUF(8192), notes = STET_BUF(8192);
            if (p->letter)
                stet_buf_printf(&tag, "-%c, ", p->letter);
            if (!positional)
                stet_buf_printf(&tag, "--%s", p->name);
            if (positional || p->type != STET_PARAM_BOOL) {
                stet_buf_str(&tag, positional ? "" : p->optional_value ? "[=" : " ");
                stet_param_metavar(p, &tag);
                stet_buf_str(&tag, !positional && p->optional_value ? "]" : "");
            }
            stet_help_notes(&notes, p);
            stet_buf_str(&text, p->summary);
            if (notes.len)
                stet_buf_printf(&text, " (%s)", stet_buf_cstr(&notes));
            stet_buf_char(&text, '.');
            tagged(out, stet_buf_cstr(&tag), stet_buf_cstr(&text));
            stet_buf_release(&tag);
            stet_buf_release(&text);
            stet_buf_release(&notes);
        }
}

void stet_help_man(stet_buf *out) {
    stet_buf_str(out,
                 ".\\\" Rendered from the operation table by `make docs`.\n"
                 ".TH STET 1 \"\" \"stet " STET_VERSION "\" \"User Commands\"\n"
                 ".SH NAME\nstet \\- durable incremental computation\n"
                 ".SH SYNOPSIS\n.B stet\n[\\-\\-json] [\\-\\-project\n.IR DIR ]\n.I COMMAND\n.RI [ ARGUMENT ...]\n"
                 ".SH DESCRIPTION\n"
                 "stet runs graphs of actions over documents and files, records durably what each action read and "
                 "wrote, and runs again only what a change has contradicted. A project is a directory with\n"
                 ".I .stet/\nin it, found by walking up from the current directory.\n.PP\n"
                 "A word that begins with a dash is a flag, unless it is \\- or a negative number. An id that begins "
                 "with a dash goes after \\-\\-, a flag's value that does is written \\-\\-flag=\\-value. Flags accept "
                 "hyphens and underscores alike.\n"
                 ".SH OPTIONS\nThese flags belong to every command.\n");
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
        stet_buf tag = STET_BUF(256);
        if (g->letter)
            stet_buf_printf(&tag, "-%c, ", g->letter);
        stet_buf_printf(&tag, "--%s%s%s", g->name, g->metavar ? " " : "", g->metavar ? g->metavar : "");
        tagged(out, stet_buf_cstr(&tag), g->summary);
        stet_buf_release(&tag);
    }
    stet_buf_str(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *op = stet_op_at(i);
        stet_buf usage = STET_BUF(65536);
        stet_help_usage(&usage, op);
        stet_buf_str(out, ".SS ");
        roff(out, stet_buf_cstr(&usage));
        stet_buf_char(out, '\n');
        roff(out, op->summary);
        stet_buf_str(out, ".\n");
        if (op->description) {
            stet_buf_str(out, ".PP\n");
            roff_paragraphs(out, op->description);
        }
        man_params(out, op);
        for (const stet_example *e = op->examples; e && e->command; e++) {
            stet_buf_str(out, e == op->examples ? ".PP\nExamples:\n.PP\n.nf\n" : "");
            stet_buf_str(out, ".RS 4\nstet ");
            roff(out, e->command);
            stet_buf_str(out, "\n.RE\n");
        }
        stet_buf_str(out, ".fi\n");
        stet_buf_release(&usage);
    }
    stet_buf_str(out, ".SH EXIT STATUS\n");
    for (const stet_help_item *s = stet_help_statuses; s->name; s++)
        tagged(out, s->name, s->text);
    stet_buf_str(out, ".SH ENVIRONMENT\n");
    for (const stet_help_item *v = stet_help_variables; v->name; v++)
        tagged(out, v->name, v->text);
}
