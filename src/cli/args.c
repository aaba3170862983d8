/* args.c - parses the words of a command line into an operation and its arguments. */

#include "cli/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "os/file.h"

static const char *const formats[] = {"text", "json", NULL};
static const char *const colours[] = {"auto", "always", "never", NULL};

const stet_cli_global stet_cli_globals[] = {
    {"json", 0, NULL, "Print the result, or the error, as one line of JSON", NULL},
    {"project", 'C', "DIR", "Work on the project that DIR lies in, not the one around the current directory", NULL},
    {"format", 0, "FORMAT", "text, or json, which is the same as --json", formats},
    {"quiet", 'q', NULL, "Print no progress, no warnings, no output of commands, and no text after a change", NULL},
    {"verbose", 'v', NULL, "Show what commands print while they run, each line behind the name of its node", NULL},
    {"color", 0, "WHEN", "Colours: auto is on a terminal unless NO_COLOR is set or TERM is dumb", colours},
    {"help", 'h', NULL, "Show help about the command", NULL},
    {"version", 0, NULL, "Print the version", NULL},
    {0},
};

typedef STET_VEC(const char *) strings;

typedef struct parser {
    stet_cli_words *out;
    stet_error *err;
    int count;
    char *const *words;
    int at;             /* the next word */
    strings positional; /* after the operation's name */
    bool ended;         /* "--" was seen */
} parser;

bool stet_cli_is_noun(const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i < stet_op_count(); i++) {
        const char *name = stet_op_at(i)->name;
        if (strncmp(name, word, n) == 0 && name[n] == ' ')
            return true;
    }
    return false;
}

static bool has_positional(const stet_op *op) {
    for (const stet_param *q = op->params; q && q->name; q++)
        if (q->flags & STET_PARAM_POSITIONAL)
            return true;
    return false;
}

static void see_help(const parser *p) {
    if (p->out->op)
        stet_hint(p->err, "see: stet %s --help", p->out->op->name);
    else if (p->out->noun[0])
        stet_hint(p->err, "see: stet %s --help", p->out->noun);
    else
        stet_hint(p->err, "see: stet --help");
}

static void put_valid(const parser *p, stet_value list) {
    if (p->err)
        stet_detail(p->err, "valid", list);
    else
        stet_value_release(list);
}

/* The valid first words: each noun once, and operations of one word. */
static stet_status unknown_command(const parser *p, const char *word) {
    stet_suggest s = stet_suggest_begin(word);
    stet_buf valid = STET_BUF(4096);
    stet_value list = stet_value_array();
    strings firsts = {0};
    for (size_t i = 0; i < stet_op_count(); i++) {
        const char *name = stet_op_at(i)->name;
        size_t n = strcspn(name, " ");
        if (firsts.len && strlen(firsts.at[firsts.len - 1]) == n && strncmp(firsts.at[firsts.len - 1], name, n) == 0)
            continue;
        char *first = stet_strndup(name, n);
        *stet_vec_add(&firsts) = first;
        stet_suggest_offer(&s, first);
        stet_buf_printf(&valid, "%s%s", valid.len ? ", " : "", first);
        stet_value_push(&list, stet_value_string(first));
    }
    stet_fail(p->err, STET_INVALID, "there is no command \"%.100s\"; there are: %s", word, stet_buf_cstr(&valid));
    if (s.best)
        stet_hint(p->err, "did you mean: stet %s?", s.best);
    put_valid(p, list);
    see_help(p);
    for (size_t i = 0; i < firsts.len; i++)
        stet_free((char *)firsts.at[i]);
    stet_vec_release(&firsts);
    stet_buf_release(&valid);
    return STET_INVALID;
}

static stet_status unknown_verb(const parser *p, const char *noun, const char *verb) {
    stet_suggest s = stet_suggest_begin(verb ? verb : "");
    stet_buf valid = STET_BUF(4096);
    stet_value list = stet_value_array();
    size_t n = strlen(noun);
    for (size_t i = 0; i < stet_op_count(); i++) {
        const char *name = stet_op_at(i)->name;
        if (strncmp(name, noun, n) != 0 || name[n] != ' ')
            continue;
        stet_suggest_offer(&s, name + n + 1);
        stet_buf_printf(&valid, "%s%s", valid.len ? ", " : "", name + n + 1);
        stet_value_push(&list, stet_value_string(name + n + 1));
    }
    if (verb)
        stet_fail(p->err, STET_INVALID, "%s has no command \"%.100s\"; it has: %s", noun, verb, stet_buf_cstr(&valid));
    else
        stet_fail(p->err, STET_INVALID, "%s needs one of its commands: %s", noun, stet_buf_cstr(&valid));
    if (s.best)
        stet_hint(p->err, "did you mean: stet %s %s?", noun, s.best);
    put_valid(p, list);
    see_help(p);
    stet_buf_release(&valid);
    return STET_INVALID;
}

static stet_status unknown_flag(const parser *p, const char *word, const char *name) {
    stet_suggest s = stet_suggest_begin(name);
    stet_buf valid = STET_BUF(4096);
    stet_value list = stet_value_array();
    const stet_op *op = p->out->op;
    for (const stet_param *q = op ? op->params : NULL; q && q->name; q++) {
        if (q->flags & (STET_PARAM_HIDDEN | STET_PARAM_POSITIONAL))
            continue;
        stet_suggest_offer(&s, q->name);
        stet_buf_printf(&valid, "%s--%s", valid.len ? ", " : "", q->name);
        stet_value_push(&list, stet_value_stringf("--%s", q->name));
    }
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
        stet_suggest_offer(&s, g->name);
        stet_buf_printf(&valid, "%s--%s", valid.len ? ", " : "", g->name);
        stet_value_push(&list, stet_value_stringf("--%s", g->name));
    }
    int shown = (int)strcspn(word, "=");
    if (op)
        stet_fail(p->err, STET_INVALID, "%s has no flag %.*s; it takes: %s", op->name, shown < 100 ? shown : 100, word,
                  stet_buf_cstr(&valid));
    else
        stet_fail(p->err, STET_INVALID, "there is no flag %.*s before a command; there are: %s",
                  shown < 100 ? shown : 100, word, stet_buf_cstr(&valid));
    char *plural = op && p->positional.len > 0 ? stet_asprintf("%ss %s", op->name, p->positional.at[0]) : NULL;
    if (plural && stet_op_find(plural)) /* `stet run search --limit 3` */
        stet_hint(p->err, "did you mean: stet %s?", plural);
    else if (s.best)
        stet_hint(p->err, "did you mean --%s?", s.best);
    else if (op && word[1] != '-' && has_positional(op))
        stet_hint(p->err, "if %.60s is a value, put it after `--`: stet %s -- %.60s", word, op->name, word);
    else if (!op)
        stet_hint(p->err, "flags of a command come after its name");
    stet_free(plural);
    put_valid(p, list);
    see_help(p);
    stet_buf_release(&valid);
    return STET_INVALID;
}

static stet_status text_value(const parser *p, const char *label, const char *text, stet_value *out) {
    stet_status status = stet_value_string_checked(text, strlen(text), out, p->err);
    if (status != STET_OK)
        stet_fail_in(p->err, "%s", label);
    return status;
}

static stet_status json_value(const parser *p, const char *label, const char *text, size_t len, stet_value *out) {
    stet_status status = stet_json_read(text, len, NULL, out, p->err);
    if (status == STET_OK)
        return status;
    stet_fail_in(p->err, "%s: \"%.60s\" is no JSON", label, text);
    if (len && text[0] != '{' && text[0] != '[' && text[0] != '"' && stet_utf8_valid(text, len)) {
        stet_buf quoted = STET_BUF(4096);
        stet_json_write_string(&quoted, text, len < 100 ? stet_utf8_valid_prefix(text, len) : 0);
        if (len < 100)
            stet_hint(p->err, "a string is written with double quotes inside the shell's: '%s'",
                      stet_buf_cstr(&quoted));
        else
            stet_hint(p->err, "a string is written with double quotes inside the shell's: '\"...\"'");
        stet_buf_release(&quoted);
    } else {
        stet_hint(p->err, "quote it for the shell with single quotes, or give - and write it to standard input");
    }
    return status;
}

#define TEXT_MAX ((size_t)64 << 20)

/* The content of @FILE, or of standard input. */
static stet_status read_text(parser *p, const char *label, const char *text, stet_value *out) {
    stet_buf b = STET_BUF(TEXT_MAX + 1);
    stet_status status = STET_OK;
    if (*text == '@')
        status = stet_file_read(text + 1, TEXT_MAX, &b, p->err);
    for (ssize_t n = *text == '@' ? 0 : 1; n > 0 && status == STET_OK && !b.overflow;) {
        char block[65536];
        n = stet_sys_read(0, block, sizeof block);
        if (n < 0)
            status = stet_fail_errno(p->err, errno, "cannot read standard input");
        else
            stet_buf_add(&b, block, (size_t)n);
    }
    if (status == STET_OK && b.overflow)
        status = stet_fail(p->err, STET_LIMIT, "more than %zu MiB", TEXT_MAX >> 20);
    if (status == STET_OK)
        status = stet_value_string_checked(stet_buf_cstr(&b), b.len, out, p->err);
    if (status != STET_OK)
        stet_fail_in(p->err, "%s", label);
    stet_buf_release(&b);
    return status;
}

/* Converts a word to a value of the parameter's type. */
static stet_status word_value(parser *p, const stet_param *param, const char *text, stet_value *out) {
    char label[STET_PARAM_NAME_MAX + 4];
    stet_param_spell(param, STET_SPELL_FLAGS, label);
    if ((param->flags & STET_PARAM_FROM_FILE) && !p->ended && (*text == '@' || strcmp(text, "-") == 0))
        return read_text(p, label, text, out);
    switch (param->type) {
    case STET_PARAM_INT: {
        char *end;
        errno = 0;
        long long n = strtoll(text, &end, 10);
        bool digits = text[0] == '-' ? text[1] >= '0' && text[1] <= '9' : text[0] >= '0' && text[0] <= '9';
        if (!digits || *end)
            return stet_fail(p->err, STET_INVALID, "%s: an integer expected, not \"%.100s\"", label, text);
        if (errno == ERANGE)
            return stet_fail(p->err, STET_INVALID, "%s: %.100s does not fit in 64 bits", label, text);
        *out = stet_value_int(n);
        return STET_OK;
    }
    case STET_PARAM_NUMBER: {
        stet_value v;
        if (stet_json_read(text, strlen(text), NULL, &v, NULL) == STET_OK) {
            if (stet_value_type(v) == STET_TYPE_INT || stet_value_type(v) == STET_TYPE_DOUBLE) {
                *out = v;
                return STET_OK;
            }
            stet_value_release(v);
        }
        return stet_fail(p->err, STET_INVALID, "%s: a number expected, not \"%.100s\"", label, text);
    }
    case STET_PARAM_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return stet_fail(p->err, STET_INVALID, "%s: true or false expected, not \"%.100s\"", label, text);
        *out = stet_value_bool(text[0] == 't');
        return STET_OK;
    case STET_PARAM_JSON:
        if (strcmp(text, "-") == 0) {
            if (param->flags & STET_PARAM_REPEATED)
                return stet_fail(p->err, STET_INVALID, "%s: standard input gives one value, not one of many", label);
            if (p->out->reads_stdin)
                return stet_fail(p->err, STET_INVALID, "%s: standard input can be read for one value only", label);
            p->out->reads_stdin = true;
            p->out->stdin_param = param;
            *out = stet_value_null();
            return STET_OK;
        }
        return json_value(p, label, text, strlen(text), out);
    case STET_PARAM_PAIR: {
        const char *equals = strchr(text, '=');
        if (!equals || equals == text) {
            stet_fail(p->err, STET_INVALID, "%s: KEY=JSON expected, not \"%.100s\"", label, text);
            stet_hint(p->err, "for example: %s name='\"text\"'", label);
            return STET_INVALID;
        }
        if (!stet_utf8_valid(text, (size_t)(equals - text)))
            return stet_fail(p->err, STET_INVALID, "%s: the key is not valid UTF-8", label);
        stet_value v, object = stet_value_object();
        stet_status status = json_value(p, label, equals + 1, strlen(equals + 1), &v);
        if (status != STET_OK) {
            stet_value_release(object);
            return status;
        }
        stet_value_put_n(&object, text, (size_t)(equals - text), v);
        *out = object;
        return STET_OK;
    }
    default:
        return text_value(p, label, text, out);
    }
}

static stet_status put_arg(parser *p, const stet_param *param, stet_value v) {
    char key[STET_PARAM_NAME_MAX], label[STET_PARAM_NAME_MAX + 4];
    stet_param_key(param, key);
    stet_param_spell(param, STET_SPELL_FLAGS, label);
    stet_value *given = &p->out->given, before;
    bool again = stet_value_find(*given, key, strlen(key), &before);
    if (param->type == STET_PARAM_PAIR) {
        size_t len;
        const char *name = stet_value_key_at(v, 0, &len);
        stet_value other, all = again ? stet_value_retain(before) : stet_value_object();
        if (stet_value_find(all, name, len, &other)) {
            stet_fail(p->err, STET_INVALID, "%s: %.100s is given twice", label, name);
            stet_value_release(all);
            stet_value_release(v);
            return STET_INVALID;
        }
        stet_value_put_n(&all, name, len, stet_value_retain(stet_value_at(v, 0)));
        stet_value_release(v);
        stet_value_put(given, key, all);
    } else if (param->flags & STET_PARAM_REPEATED) {
        stet_value list = again ? stet_value_retain(before) : stet_value_array();
        stet_value_push(&list, v);
        stet_value_put(given, key, list);
    } else if (again) {
        stet_value_release(v);
        return stet_fail(p->err, STET_INVALID, "%s is given twice", label);
    } else {
        stet_value_put(given, key, v);
    }
    return STET_OK;
}

static stet_status put_word(parser *p, const stet_param *param, const char *text) {
    stet_value v;
    stet_status status = word_value(p, param, text, &v);
    return status == STET_OK ? put_arg(p, param, v) : status;
}

static void choose(parser *p, const stet_op *op) {
    p->out->op = op;
    p->out->noun[0] = 0;
}

/* The noun is an operation as well, and the flag belongs to that operation. */
static void choose_noun_itself(parser *p) {
    const stet_op *op = p->out->noun[0] ? stet_op_find(p->out->noun) : NULL;
    if (op)
        choose(p, op);
}

static bool is_flag(const char *word) {
    return word[0] == '-' && word[1] != 0 && !(word[1] >= '0' && word[1] <= '9') &&
           !(word[1] == '.' && word[2] >= '0' && word[2] <= '9');
}

/* The value of a flag: the text after "=", or the next word. */
static stet_status flag_text(parser *p, const char *label, const char *attached, const char **out) {
    if (attached) {
        *out = attached;
        return STET_OK;
    }
    if (p->at < p->count && !is_flag(p->words[p->at])) {
        *out = p->words[p->at++];
        return STET_OK;
    }
    stet_fail(p->err, STET_INVALID, "%s needs a value", label);
    if (p->at < p->count && strcmp(p->words[p->at], "--") != 0)
        stet_hint(p->err, "if %.100s is meant to be the value: %s%s%.100s", p->words[p->at], label,
                  label[1] == '-' ? "=" : "", p->words[p->at]);
    see_help(p);
    return STET_INVALID;
}

static stet_status no_text(const parser *p, const char *label, const char *attached) {
    if (!attached)
        return STET_OK;
    stet_fail(p->err, STET_INVALID, "%s takes no value", label);
    see_help(p);
    return STET_INVALID;
}

static stet_status choice_of(const parser *p, const stet_cli_global *g, const char *text, int *out) {
    stet_suggest s = stet_suggest_begin(text);
    stet_buf all = STET_BUF(1024);
    for (*out = 0; g->choices[*out]; ++*out) {
        if (strcmp(text, g->choices[*out]) == 0) {
            stet_buf_release(&all);
            return STET_OK;
        }
        stet_suggest_offer(&s, g->choices[*out]);
        stet_buf_printf(&all, "%s%s", *out ? ", " : "", g->choices[*out]);
    }
    stet_fail(p->err, STET_INVALID, "--%s: \"%.100s\" is none of: %s", g->name, text, stet_buf_cstr(&all));
    if (s.best)
        stet_hint(p->err, "did you mean %s?", s.best);
    stet_buf_release(&all);
    return STET_INVALID;
}

static stet_status global_flag(parser *p, const stet_cli_global *g, const char *label, const char *attached) {
    stet_cli_words *w = p->out;
    const char *text = "";
    stet_status status = g->metavar ? flag_text(p, label, attached, &text) : no_text(p, label, attached);
    if (status != STET_OK)
        return status;
    if (strcmp(g->name, "json") == 0)
        w->json = true;
    else if (strcmp(g->name, "help") == 0)
        w->help = true;
    else if (strcmp(g->name, "version") == 0)
        w->version = true;
    else if (strcmp(g->name, "quiet") == 0)
        w->quiet = true;
    else if (strcmp(g->name, "verbose") == 0)
        w->verbose = true;
    else if (strcmp(g->name, "project") == 0) {
        if (!*text)
            return stet_fail(p->err, STET_INVALID, "--project: a directory expected, not an empty word");
        w->project = text;
    } else {
        int chosen;
        status = choice_of(p, g, text, &chosen);
        if (status == STET_OK && g->choices == formats)
            w->json = chosen == 1;
        else if (status == STET_OK)
            w->colour = (stet_cli_colour)chosen;
    }
    return status;
}

static stet_status param_flag(parser *p, const stet_param *param, const char *label, const char *attached) {
    const char *text;
    if (!attached && param->optional_value) {
        stet_value v;
        stet_status status = stet_json_parse(param->optional_value, strlen(param->optional_value), &v, p->err);
        return status == STET_OK ? put_arg(p, param, v) : status;
    }
    if (!attached && param->type == STET_PARAM_BOOL) {
        bool value = true;
        if (p->at < p->count && !has_positional(p->out->op) &&
            (strcmp(p->words[p->at], "true") == 0 || strcmp(p->words[p->at], "false") == 0))
            value = p->words[p->at++][0] == 't';
        return put_arg(p, param, stet_value_bool(value));
    }
    stet_status status = flag_text(p, label, attached, &text);
    return status == STET_OK ? put_word(p, param, text) : status;
}

/* Operations that print in several formats have a --format of their own. */
static bool has_own(const stet_op *op, const char *name) {
    return op && stet_op_param(op, name) != NULL;
}

static stet_status long_flag(parser *p, const char *word) {
    char name[STET_PARAM_NAME_MAX], label[STET_PARAM_NAME_MAX + 4];
    size_t n = strcspn(word + 2, "=");
    const char *attached = word[2 + n] ? word + 2 + n + 1 : NULL;
    if (n == 0 || n >= sizeof name)
        return unknown_flag(p, word, "");
    for (size_t i = 0; i < n; i++)
        name[i] = word[2 + i] == '_' ? '-' : word[2 + i];
    name[n] = 0;
    memcpy(label, "--", 2);
    memcpy(label + 2, name, n + 1);
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++)
        if (strcmp(g->name, name) == 0 && !has_own(p->out->op, name))
            return global_flag(p, g, label, attached);
    choose_noun_itself(p);
    if (!p->out->op)
        return unknown_flag(p, word, name);
    const stet_param *param = stet_op_param(p->out->op, name);
    if (param && !(param->flags & STET_PARAM_POSITIONAL))
        return param_flag(p, param, label, attached);
    if (param) {
        char metavar[STET_PARAM_NAME_MAX + 4];
        stet_param_spell(param, STET_SPELL_FLAGS, metavar);
        stet_fail(p->err, STET_INVALID, "%s is given by its place, without a flag: stet %s %s", metavar,
                  p->out->op->name, metavar);
        see_help(p);
        return STET_INVALID;
    }
    if (strncmp(name, "no-", 3) == 0) {
        param = stet_op_param(p->out->op, name + 3);
        if (param && param->type == STET_PARAM_BOOL && !(param->flags & STET_PARAM_POSITIONAL)) {
            stet_status status = no_text(p, label, attached);
            return status == STET_OK ? put_arg(p, param, stet_value_bool(false)) : status;
        }
    }
    return unknown_flag(p, word, name);
}

/* -n 3, -n3, -n=3, and booleans in one word: -qn3. */
static stet_status short_flags(parser *p, const char *word) {
    for (const char *c = word + 1; *c; c++) {
        char label[3] = {'-', *c, 0};
        const char *rest = c[1] ? c + 1 + (c[1] == '=') : NULL;
        const stet_cli_global *g = stet_cli_globals;
        while (g->name && g->letter != *c)
            g++;
        if (!g->name)
            choose_noun_itself(p);
        const stet_param *param = p->out->op ? p->out->op->params : NULL;
        while (param && param->name && param->letter != *c)
            param++;
        if (param && !param->name)
            param = NULL;
        if (!g->name && !param)
            return unknown_flag(p, word, "");
        bool valued = g->name ? g->metavar != NULL : param->type != STET_PARAM_BOOL && !param->optional_value;
        stet_status status = g->name ? global_flag(p, g, label, valued ? rest : NULL)
                                     : param_flag(p, param, label, valued ? rest : NULL);
        if (status != STET_OK || valued)
            return status;
    }
    return STET_OK;
}

/* A word that is not a flag: part of the operation's name, or an argument. */
static stet_status plain_word(parser *p, const char *word) {
    stet_cli_words *w = p->out;
    if (w->op) {
        *stet_vec_add(&p->positional) = word;
        return STET_OK;
    }
    char name[sizeof w->noun * 2];
    size_t n = strlen(word);
    if (n >= sizeof w->noun)
        return w->noun[0] ? unknown_verb(p, w->noun, word) : unknown_command(p, word);
    if (!w->noun[0]) {
        const stet_op *op = stet_op_find(word);
        bool noun = word[0] && !strchr(word, ' ') && stet_cli_is_noun(word);
        if (noun)
            memcpy(w->noun, word, n + 1);
        else if (op && !strchr(word, ' '))
            choose(p, op);
        else
            return unknown_command(p, word);
        return STET_OK;
    }
    memcpy(name, w->noun, strlen(w->noun));
    name[strlen(w->noun)] = ' ';
    memcpy(name + strlen(w->noun) + 1, word, n + 1);
    const stet_op *op = stet_op_find(name);
    if (op) {
        choose(p, op);
        return STET_OK;
    }
    op = stet_op_find(w->noun); /* a word that is both an operation and a noun */
    if (!op || !has_positional(op))
        return unknown_verb(p, w->noun, word);
    choose(p, op);
    *stet_vec_add(&p->positional) = word;
    return STET_OK;
}

static stet_status assign_positional(parser *p) {
    const stet_op *op = p->out->op;
    size_t next = 0;
    for (const stet_param *param = op->params; param && param->name; param++) {
        if (!(param->flags & STET_PARAM_POSITIONAL))
            continue;
        bool all = param->flags & STET_PARAM_REPEATED || param->type == STET_PARAM_PAIR;
        do {
            if (next == p->positional.len)
                return STET_OK;
            stet_status status = put_word(p, param, p->positional.at[next++]);
            if (status != STET_OK)
                return status;
        } while (all);
    }
    if (next == p->positional.len)
        return STET_OK;
    if (has_positional(op))
        stet_fail(p->err, STET_INVALID, "%s: \"%.100s\" is one argument too many", op->name, p->positional.at[next]);
    else
        stet_fail(p->err, STET_INVALID, "%s takes no argument, but \"%.100s\" was given", op->name,
                  p->positional.at[next]);
    see_help(p);
    return STET_INVALID;
}

static stet_status walk(parser *p) {
    while (p->at < p->count) {
        const char *word = p->words[p->at++];
        stet_status status = STET_OK;
        if (p->ended || !is_flag(word)) {
            status = plain_word(p, word);
        } else if (strcmp(word, "--") == 0) {
            p->ended = true;
        } else {
            status = word[1] == '-' ? long_flag(p, word) : short_flags(p, word);
        }
        if (status != STET_OK)
            return status;
    }
    stet_cli_words *w = p->out;
    if (!w->op && w->noun[0] && !w->help && !w->version) {
        const stet_op *op = stet_op_find(w->noun);
        if (!op)
            return unknown_verb(p, w->noun, NULL);
        choose(p, op);
    }
    if (!w->op || w->help || w->version)
        return STET_OK;
    return assign_positional(p);
}

stet_status stet_cli_parse(int count, char *const *words, stet_cli_words *out, stet_error *err) {
    return stet_cli_parse_for(NULL, count, words, out, err);
}

stet_status stet_cli_parse_for(const stet_op *op, int count, char *const *words, stet_cli_words *out, stet_error *err) {
    parser p = {.out = out, .err = err, .count = count, .words = words};
    out->given = stet_value_object();
    out->op = op;
    /* Look for --json first, so that a mistake before it is reported in JSON too. It can't be the value of a flag,
     * because such a value begins with a dash only after "=". */
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        out->json = out->json || strcmp(words[i], "--json") == 0;
    for (int i = 0; i < count; i++)
        if (!stet_utf8_valid(words[i], strlen(words[i])))
            return stet_fail(err, STET_INVALID, "word %d of the command line is not valid UTF-8", i + 1);
    stet_status status = walk(&p);
    stet_vec_release(&p.positional);
    return status;
}

void stet_cli_words_release(stet_cli_words *w) {
    stet_value_release(w->given);
    w->given = stet_value_null();
}
