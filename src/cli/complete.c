/* complete.c - shell completion from the operation table: commands, flags, choices and file names.
 *
 * The scripts are self-contained: they do not call stet, so a key press starts no process. All three find the command
 * in the same way (the first words that are not flags), and then complete by command and by the word before.
 */

#include <string.h>

#include "cli/args.h"
#include "cli/help.h"

#define SHOWN(p)      (!((p)->flags & STET_PARAM_HIDDEN))
#define POSITIONAL(p) (!!((p)->flags & STET_PARAM_POSITIONAL))

/* Writes text in single quotes. Inside them, fish needs \' for a quote; bash and zsh have to leave the quotes. */
static void quoted(stet_buf *out, const char *text, const char *quote) {
    stet_buf_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            stet_buf_str(out, quote);
        else
            stet_buf_char(out, *text);
    }
    stet_buf_char(out, '\'');
}
#define SH_QUOTE   "'\\''"
#define FISH_QUOTE "\\'"

/* Calls `each` for every first word: nouns, and operations of one word. */
typedef void each_first(stet_buf *out, const char *word, const char *summary, bool noun);
static void firsts(stet_buf *out, each_first *each) {
    char last[64] = "";
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *op = stet_op_at(i);
        char word[64];
        size_t n = strcspn(op->name, " ");
        if (n >= sizeof word)
            continue;
        memcpy(word, op->name, n);
        word[n] = 0;
        if (strcmp(word, last) == 0)
            continue;
        memcpy(last, word, n + 1);
        bool noun = stet_cli_is_noun(word);
        each(out, word, noun ? "" : op->summary, noun);
    }
}

static void first_plain(stet_buf *out, const char *word, const char *summary, bool noun) {
    (void)summary;
    (void)noun;
    stet_buf_printf(out, "%s%s", out->len && out->data[out->len - 1] != '\'' ? " " : "", word);
}

static void first_if_noun(stet_buf *out, const char *word, const char *summary, bool noun) {
    (void)summary;
    if (noun)
        stet_buf_printf(out, "%s%s", out->len && out->data[out->len - 1] != '(' ? "|" : "", word);
}

static void choices(stet_buf *out, const char *const *list) {
    for (size_t i = 0; list[i]; i++)
        stet_buf_printf(out, "%s%s", i ? " " : "", list[i]);
}

static void flag_pattern(stet_buf *out, const char *name, char letter) {
    stet_buf_printf(out, "--%s", name);
    if (letter)
        stet_buf_printf(out, "|-%c", letter);
}

/* "-C|--project|--color": global flags whose next word is a value, not a command. */
static void valued_globals(stet_buf *out) {
    bool any = false;
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
        if (!g->metavar)
            continue;
        stet_buf_str(out, any ? "|" : "");
        flag_pattern(out, g->name, g->letter);
        any = true;
    }
}

static void all_flags(stet_buf *out, const stet_op *op) {
    for (const stet_param *p = op ? op->params : NULL; p && p->name; p++)
        if (SHOWN(p) && !POSITIONAL(p))
            stet_buf_printf(out, "--%s ", p->name);
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++)
        stet_buf_printf(out, "%s--%s", g == stet_cli_globals ? "" : " ", g->name);
}

static void bash_values(stet_buf *out, const stet_param *p) {
    if (p->type == STET_PARAM_ENUM) {
        stet_buf_str(out, "_stet_words '");
        choices(out, p->choices);
        stet_buf_char(out, '\'');
    } else if (p->type == STET_PARAM_FILE) {
        stet_buf_str(out, "_stet_files");
    } else if (p->type == STET_PARAM_BOOL) {
        stet_buf_str(out, "_stet_words 'true false'");
    } else {
        stet_buf_str(out, ":");
    }
}

static void bash_op(stet_buf *out, const stet_op *op) {
    stet_buf_str(out, "    ");
    quoted(out, op->name, SH_QUOTE);
    stet_buf_str(out, ")\n        case $prev in\n");
    for (const stet_param *p = op->params; p && p->name; p++) {
        /* A boolean or an optional value comes after "=" only. */
        bool attached = p->type == STET_PARAM_BOOL || p->optional_value;
        if (!SHOWN(p) || POSITIONAL(p))
            continue;
        stet_buf_str(out, "        ");
        flag_pattern(out, p->name, p->letter);
        stet_buf_str(out, attached ? ") [[ $equals ]] && { " : ") ");
        bash_values(out, p);
        stet_buf_str(out, attached ? "; return; } ;;\n" : "; return ;;\n");
    }
    stet_buf_str(out, "        esac\n        [[ $cur == -* ]] && { _stet_words '");
    all_flags(out, op);
    stet_buf_str(out, "'; return; }\n");
    for (const stet_param *p = op->params; p && p->name; p++)
        if (SHOWN(p) && POSITIONAL(p) && (p->type == STET_PARAM_FILE || p->type == STET_PARAM_ENUM)) {
            stet_buf_str(out, "        ");
            bash_values(out, p);
            stet_buf_char(out, '\n');
        }
    if (strcmp(op->name, "help") == 0) {
        stet_buf_str(out, "        _stet_words '");
        firsts(out, first_plain);
        stet_buf_str(out, "'\n");
    }
    stet_buf_str(out, "        ;;\n");
}

static void verbs(stet_buf *out, const char *noun) {
    size_t n = strlen(noun);
    bool any = false;
    for (size_t i = 0; i < stet_op_count(); i++) {
        const char *name = stet_op_at(i)->name;
        if (strncmp(name, noun, n) != 0 || name[n] != ' ')
            continue;
        stet_buf_printf(out, "%s%s", any ? " " : "", name + n + 1);
        any = true;
    }
}

static void bash_noun(stet_buf *out, const char *word, const char *summary, bool noun) {
    (void)summary;
    if (!noun)
        return;
    stet_buf_printf(out, "            %s) _stet_words '", word);
    verbs(out, word);
    stet_buf_str(out, "' ;;\n");
}

/* Writes the code that finds the command in bash and zsh; arrays begin at 0 in bash and at 1 in zsh. */
static void find_command(stet_buf *out, const char *array, const char *from, const char *to) {
    stet_buf_printf(out,
                    "    for ((i = %s; i < %s; i++)); do\n"
                    "        word=${%s[i]}\n"
                    "        case $word in\n"
                    "        ",
                    from, to, array);
    valued_globals(out);
    stet_buf_printf(out,
                    ")\n            ((i++))\n"
                    "            [[ ${%s[i]} == = ]] && ((i++))\n"
                    "            continue ;;\n"
                    "        -*|=) continue ;;\n"
                    "        esac\n"
                    "        if [[ $first ]]; then command=\"$first $word\"; break; fi\n"
                    "        first=$word\n"
                    "        case $first in\n"
                    "        (",
                    array);
    firsts(out, first_if_noun);
    stet_buf_str(out, ") ;;\n        (*) command=$first; break ;;\n        esac\n    done\n");
}

void stet_help_bash(stet_buf *out) {
    stet_buf_str(
        out, "# Completion of stet for bash; from: stet help --completion bash\n"
             "_stet_words() { COMPREPLY+=($(compgen -W \"$1\" -- \"$cur\")); }\n"
             "_stet_files() {\n"
             "    local IFS=$'\\n'\n"
             "    compopt -o filenames 2>/dev/null\n"
             "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
             "}\n"
             "_stet() {\n"
             "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} equals= first= command= word i\n"
             "    COMPREPLY=()\n"
             "    if [[ $cur == = ]]; then cur= equals=1\n"
             "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]} equals=1; fi\n");
    find_command(out, "COMP_WORDS", "1", "COMP_CWORD");
    stet_buf_str(out, "    case $prev in\n"
                      "    --project|-C) compopt -o filenames 2>/dev/null; local IFS=$'\\n'; "
                      "COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
                      "    --color) _stet_words 'auto always never'; return ;;\n"
                      "    esac\n"
                      "    case $command in\n"
                      "    '')\n"
                      "        if [[ $cur == -* ]]; then _stet_words '");
    all_flags(out, NULL);
    stet_buf_str(out, "'; return; fi\n        case $first in\n            '') _stet_words '");
    firsts(out, first_plain);
    stet_buf_str(out, "' ;;\n");
    firsts(out, bash_noun);
    stet_buf_str(out, "        esac ;;\n");
    for (size_t i = 0; i < stet_op_count(); i++)
        bash_op(out, stet_op_at(i));
    stet_buf_str(out, "    esac\n}\ncomplete -F _stet stet\n");
}

/* Writes 'name:summary' for _describe. A colon in a name would need an escape, but no name has one. */
static void zsh_item(stet_buf *out, const char *name, const char *summary) {
    stet_buf both = STET_BUF(8192);
    stet_buf_printf(&both, "%s:%s", name, summary);
    stet_buf_char(out, ' ');
    quoted(out, stet_buf_cstr(&both), SH_QUOTE);
    stet_buf_release(&both);
}

static void zsh_first(stet_buf *out, const char *word, const char *summary, bool noun) {
    zsh_item(out, word, noun ? "commands of this kind" : summary);
}

static void zsh_noun(stet_buf *out, const char *word, const char *summary, bool noun) {
    (void)summary;
    if (!noun)
        return;
    size_t n = strlen(word);
    stet_buf_printf(out, "        (%s) items=(", word);
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *op = stet_op_at(i);
        if (strncmp(op->name, word, n) == 0 && op->name[n] == ' ')
            zsh_item(out, op->name + n + 1, op->summary);
    }
    stet_buf_str(out, "); _describe command items ;;\n");
}

static void zsh_values(stet_buf *out, const stet_param *p) {
    if (p->type == STET_PARAM_ENUM) {
        stet_buf_str(out, "compadd -- ");
        choices(out, p->choices);
    } else if (p->type == STET_PARAM_FILE) {
        stet_buf_str(out, "_files");
    } else if (p->type == STET_PARAM_BOOL) {
        stet_buf_str(out, "compadd -- true false");
    } else {
        stet_buf_str(out, ":");
    }
}

static void zsh_globals(stet_buf *out) {
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
        char name[64] = "--";
        strncat(name, g->name, sizeof name - 3);
        zsh_item(out, name, g->summary);
    }
}

static void zsh_op(stet_buf *out, const stet_op *op) {
    stet_buf_str(out, "    (");
    quoted(out, op->name, SH_QUOTE);
    stet_buf_str(out, ")\n        case $prev in\n");
    for (const stet_param *p = op->params; p && p->name; p++) {
        bool attached = p->type == STET_PARAM_BOOL || p->optional_value;
        if (!SHOWN(p) || POSITIONAL(p))
            continue;
        stet_buf_str(out, "        (");
        flag_pattern(out, p->name, p->letter);
        stet_buf_str(out, attached ? ") [[ -n $equals ]] && { " : ") ");
        zsh_values(out, p);
        stet_buf_str(out, attached ? "; return } ;;\n" : "; return ;;\n");
    }
    stet_buf_str(out, "        esac\n        if [[ $cur == -* ]]; then\n            items=(");
    for (const stet_param *p = op->params; p && p->name; p++)
        if (SHOWN(p) && !POSITIONAL(p)) {
            char name[STET_PARAM_NAME_MAX + 4];
            stet_param_spell(p, STET_SPELL_FLAGS, name);
            zsh_item(out, name, p->summary);
        }
    zsh_globals(out);
    stet_buf_str(out, "); _describe flag items; return\n        fi\n");
    for (const stet_param *p = op->params; p && p->name; p++)
        if (SHOWN(p) && POSITIONAL(p) && (p->type == STET_PARAM_FILE || p->type == STET_PARAM_ENUM)) {
            stet_buf_str(out, "        ");
            zsh_values(out, p);
            stet_buf_char(out, '\n');
        }
    stet_buf_str(out, "        ;;\n");
}

void stet_help_zsh(stet_buf *out) {
    stet_buf_str(out,
                 "#compdef stet\n# Completion of stet for zsh; from: stet help --completion zsh\n"
                 "_stet() {\n"
                 "    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} equals= first= command= word\n"
                 "    local -i i\n    local -a items\n"
                 "    if [[ $cur == --*=* ]]; then prev=${cur%%=*}; cur=${cur#*=}; equals=1; compset -P '*='; fi\n");
    find_command(out, "words", "2", "CURRENT");
    stet_buf_str(out, "    case $prev in\n"
                      "    (--project|-C) _files -/; return ;;\n"
                      "    (--color) compadd -- auto always never; return ;;\n"
                      "    esac\n"
                      "    case $command in\n"
                      "    ('')\n"
                      "        if [[ $cur == -* ]]; then\n            items=(");
    zsh_globals(out);
    stet_buf_str(out, "); _describe flag items; return\n        fi\n        case $first in\n        ('') items=(");
    firsts(out, zsh_first);
    stet_buf_str(out, "); _describe command items ;;\n");
    firsts(out, zsh_noun);
    stet_buf_str(out, "        esac ;;\n");
    for (size_t i = 0; i < stet_op_count(); i++)
        zsh_op(out, stet_op_at(i));
    /* If it is sourced, the script registers the function; if it is autoloaded from $fpath, it is the body of the
     * function. */
    stet_buf_str(out, "    esac\n}\n"
                      "if [[ $funcstack[1] == _stet ]]; then _stet \"$@\"; else compdef _stet stet; fi\n");
}

static void fish_line(stet_buf *out, const char *command) {
    stet_buf condition = STET_BUF(1024);
    stet_buf_printf(&condition, "__stet_command_is \"%s\"", command);
    stet_buf_str(out, "complete -c stet -n ");
    quoted(out, stet_buf_cstr(&condition), FISH_QUOTE);
    stet_buf_release(&condition);
}

static void fish_first(stet_buf *out, const char *word, const char *summary, bool noun) {
    fish_line(out, "");
    stet_buf_printf(out, " -a %s -d ", word);
    quoted(out, noun ? "commands of this kind" : summary, FISH_QUOTE);
    stet_buf_char(out, '\n');
}

static void fish_values(stet_buf *out, const stet_param *p) {
    if (p->type == STET_PARAM_ENUM) {
        stet_buf_str(out, " -x -a '");
        choices(out, p->choices);
        stet_buf_char(out, '\'');
    } else if (p->type == STET_PARAM_FILE) {
        stet_buf_str(out, " -r -F");
    } else if (p->type != STET_PARAM_BOOL && !p->optional_value) {
        stet_buf_str(out, " -x");
    }
}

static void fish_op(stet_buf *out, const stet_op *op) {
    const char *space = strchr(op->name, ' ');
    if (space) {
        char noun[64];
        size_t n = (size_t)(space - op->name);
        memcpy(noun, op->name, n);
        noun[n] = 0;
        fish_line(out, noun);
        stet_buf_printf(out, " -a %s -d ", space + 1);
        quoted(out, op->summary, FISH_QUOTE);
        stet_buf_char(out, '\n');
    }
    for (const stet_param *p = op->params; p && p->name; p++) {
        if (!SHOWN(p) || (POSITIONAL(p) && p->type != STET_PARAM_FILE && p->type != STET_PARAM_ENUM))
            continue;
        fish_line(out, op->name);
        if (POSITIONAL(p) && p->type == STET_PARAM_FILE) {
            stet_buf_str(out, " -F\n");
            continue;
        }
        if (POSITIONAL(p)) {
            stet_buf_str(out, " -a '");
            choices(out, p->choices);
            stet_buf_str(out, "'\n");
            continue;
        }
        stet_buf_printf(out, " -l %s", p->name);
        if (p->letter)
            stet_buf_printf(out, " -s %c", p->letter);
        fish_values(out, p);
        stet_buf_str(out, " -d ");
        quoted(out, p->summary, FISH_QUOTE);
        stet_buf_char(out, '\n');
    }
}

void stet_help_fish(stet_buf *out) {
    stet_buf_str(out, "# Completion of stet for fish; from: stet help --completion fish\n"
                      "function __stet_command_is\n"
                      "    set -l first\n    set -l skip 0\n    set -l nouns (string split ' ' '");
    stet_buf nouns = STET_BUF(4096);
    stet_buf_char(&nouns, '(');
    firsts(&nouns, first_if_noun);
    for (size_t i = 1; i < nouns.len; i++)
        stet_buf_char(out, nouns.data[i] == '|' ? ' ' : nouns.data[i]);
    stet_buf_release(&nouns);
    stet_buf_str(out, "')\n"
                      "    for word in (commandline -opc)[2..-1]\n"
                      "        if test $skip = 1\n            set skip 0\n            continue\n        end\n"
                      "        switch $word\n"
                      "            case -C --project --color\n                set skip 1\n                continue\n"
                      "            case '-*'\n                continue\n"
                      "        end\n"
                      "        if test -n \"$first\"\n            test \"$first $word\" = \"$argv\"\n            "
                      "return\n        end\n"
                      "        set first $word\n"
                      "        if not contains -- $first $nouns\n            break\n        end\n"
                      "    end\n"
                      "    test \"$first\" = \"$argv\"\n"
                      "end\n"
                      "complete -c stet -f\n");
    for (const stet_cli_global *g = stet_cli_globals; g->name; g++) {
        stet_buf_printf(out, "complete -c stet -l %s", g->name);
        if (g->letter)
            stet_buf_printf(out, " -s %c", g->letter);
        if (g->choices) {
            stet_buf_str(out, " -x -a '");
            choices(out, g->choices);
            stet_buf_char(out, '\'');
        } else if (g->metavar) {
            stet_buf_str(out, " -x -a '(__fish_complete_directories)'");
        }
        stet_buf_str(out, " -d ");
        quoted(out, g->summary, FISH_QUOTE);
        stet_buf_char(out, '\n');
    }
    firsts(out, fish_first);
    for (size_t i = 0; i < stet_op_count(); i++)
        fish_op(out, stet_op_at(i));
}
