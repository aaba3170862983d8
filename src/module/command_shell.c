/* command_shell.c - reads shell text: quotes, expansions, redirections and lists of commands. */

#include "module/command_scan.h"
#include "os/file.h"

/* One of the forms of a word that is being read. */
typedef struct draft {
    stet_buf text, pattern;
    bool glob;
} draft;

/* A word that is being read. */
typedef struct reading {
    words done;
    STET_VEC(draft) drafts;
    bool any; /* it has begun, though it may be empty */
    bool unsure;
    bool delimits;   /* it ends a here-document */
    word_role role;  /* of the next one */
    stet_names ends; /* of here-documents that begin with the next line */
} reading;

static void begin_word(reading *r) {
    r->any = true;
    if (r->drafts.len == 0)
        *stet_vec_add(&r->drafts) = (draft){.text = STET_BUF(0), .pattern = STET_BUF(0)};
}

static void add_to_draft(draft *d, char c, bool quoted) {
    if (quoted && strchr("*?[]\\", c))
        stet_buf_char(&d->pattern, '\\');
    d->glob |= !quoted && strchr("*?[", c) != NULL;
    stet_buf_char(&d->pattern, c);
    stet_buf_char(&d->text, c);
}

static void add_byte(reading *r, char c, bool quoted) {
    begin_word(r);
    for (size_t i = 0; i < r->drafts.len; i++)
        add_to_draft(&r->drafts.at[i], c, quoted);
}

/* A part that only a shell could tell. */
static void add_unknown(reading *r) {
    add_byte(r, COMMAND_UNKNOWN, true);
}

/* What the word has been until now. */
static const char *text_so_far(const reading *r) {
    return r->drafts.len > 0 ? stet_buf_cstr(&r->drafts.at[0].text) : "";
}

static void drop_word(reading *r) {
    for (size_t i = 0; i < r->drafts.len; i++) {
        stet_buf_release(&r->drafts.at[i].text);
        stet_buf_release(&r->drafts.at[i].pattern);
    }
    stet_vec_clear(&r->drafts);
    r->any = r->unsure = false;
}

/* A part that may be one of several. */
static void add_forms(reading *r, const command_forms *f, bool quoted) {
    begin_word(r);
    if (f->len == 0 || r->drafts.len * f->len > COMMAND_MAX_FORMS) {
        if (f->len > 0)
            add_unknown(r);
        return;
    }
    size_t n = r->drafts.len;
    for (size_t k = 1; k < f->len; k++) {
        for (size_t i = 0; i < n; i++) {
            draft d = {.text = STET_BUF(0), .pattern = STET_BUF(0), .glob = r->drafts.at[i].glob};
            stet_buf_str(&d.text, stet_buf_cstr(&r->drafts.at[i].text));
            stet_buf_str(&d.pattern, stet_buf_cstr(&r->drafts.at[i].pattern));
            *stet_vec_add(&r->drafts) = d;
        }
    }
    for (size_t k = 0; k < f->len; k++) {
        for (size_t i = 0; i < n; i++) {
            draft *d = &r->drafts.at[k * n + i];
            if (f->at[k].glob) {
                stet_buf_str(&d->text, f->at[k].text);
                stet_buf_str(&d->pattern, f->at[k].pattern);
                d->glob = true;
            } else {
                for (const char *p = f->at[k].text; *p; p++)
                    add_to_draft(d, *p, quoted);
            }
        }
    }
    r->unsure |= f->len > 1;
}

static void end_word(reading *r) {
    if (r->any) {
        begin_word(r);
        draft *d = &r->drafts.at[0];
        const char *text = stet_buf_cstr(&d->text);
        if (r->delimits)
            *stet_vec_add(&r->ends) = stet_strdup(text);
        r->delimits = false;
        word w = {.text = stet_strdup(text),
                  .pattern = d->glob ? stet_strdup(stet_buf_cstr(&d->pattern)) : NULL,
                  .unknown = command_is_unknown(text),
                  .unsure = r->unsure,
                  .role = r->role};
        for (size_t i = 1; i < r->drafts.len; i++) {
            d = &r->drafts.at[i];
            text = stet_buf_cstr(&d->text);
            command_forms_add(&w.others, text, stet_buf_cstr(&d->pattern), d->glob);
        }
        *stet_vec_add(&r->done) = w;
        r->role = PLAIN;
    }
    drop_word(r);
}

/* Where "$(...)", "(...)", "${...}", "`...`" or "..." in quotes ends, from behind its beginning: at what ends it, or at
 * the end of the text. `quoted`: in double quotes, where an apostrophe is one. */
static const char *close_of(const char *p, char end, bool quoted) {
    int depth = 0, cases = 0;
    for (bool begin = true; *p; p++) {
        const char *at = p;
        if (*p == '\\' && p[1]) {
            p++;
        } else if (*p == end && depth == 0 && cases == 0) {
            return p;
        } else if (*p == '\'' && end != '`' && !quoted) {
            const char *q = strchr(p + 1, '\'');
            p = q ? q : p;
        } else if (*p == '"' && end != '`') {
            p = close_of(p + 1, '"', true);
        } else if (*p == '$' && (p[1] == '(' || p[1] == '{')) {
            p = p[1] == '(' ? close_of(p + 2, ')', false) : close_of(p + 2, '}', quoted);
        } else if (*p == '`') {
            p = close_of(p + 1, '`', false);
        } else if (end == ')') {
            if (begin && strncmp(p, "case", 4) == 0 && p[4] && strchr(" \t\n", p[4]))
                cases++;
            else if (begin && strncmp(p, "esac", 4) == 0 && cases > 0)
                cases--;
            depth += (*p == '(') - (*p == ')' && depth > 0);
        }
        if (!*p)
            return p;
        begin = p == at && strchr(" \t\n;|&()", *p) != NULL;
    }
    return p;
}

/* A text in a word that is a command of its own. What it sets and where it changes to is not so outside. */
static void scan_inside(scanner *s, const char *text) {
    char *here = stet_strdup(s->here);
    const char *array = s->array;
    bool chained = s->chained, maybe = s->maybe, exact = s->exact;
    s->array = NULL;
    s->exact = false;
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        s->shells++;
        words_scan(s, text);
        s->shells--;
        s->depth--;
    } else {
        words_tell_broken(s, text);
        words_tell_quoted(s, text);
    }
    s->exact = exact;
    s->array = array;
    s->chained = chained;
    s->maybe = maybe;
    stet_free(s->here);
    s->here = here;
}

/* A command in a word: what it gives is not known, unless it is `pwd`; what it names is. Where it ends. */
static const char *substitution(scanner *s, const char *begin, char end, reading *r) {
    const char *close = close_of(begin, end, false);
    stet_buf text = STET_BUF(0);
    for (const char *p = begin; p < close; p++) {
        if (end == '`' && *p == '\\' && p + 1 < close && strchr("`$\\\"", p[1]))
            p++;
        stet_buf_char(&text, *p);
    }
    const char *command = stet_buf_cstr(&text) + strspn(stet_buf_cstr(&text), " \t\n");
    bool here = strncmp(command, "pwd", 3) == 0 && !command[3 + strspn(command + 3, " \t\n-LP")];
    if (here)
        add_byte(r, '.', true);
    else
        add_unknown(r);
    scan_inside(s, stet_buf_cstr(&text));
    stet_buf_release(&text);
    return *close ? close + 1 : close;
}

static const char *dollar(scanner *s, const char *p, reading *r, bool quoted);
static const char *quoted(scanner *s, const char *p, reading *r);

/* "'...'", or "$'...'" with what C has. Where it ends. */
static const char *apostrophes(const char *p, reading *r, bool decode) {
    begin_word(r);
    const char *end = p;
    while (*end && *end != '\'')
        end += decode && *end == '\\' && end[1] ? 2 : 1;
    char *raw = stet_strndup(p, (size_t)(end - p));
    if (decode) { /* a shell without it takes the dollar for itself */
        command_forms f = {0};
        stet_buf text = STET_BUF(0);
        command_decode(raw, &text);
        char *literal = stet_asprintf("$%s", raw);
        command_forms_add(&f, stet_buf_cstr(&text), stet_buf_cstr(&text), false);
        command_forms_add(&f, literal, literal, false);
        add_forms(r, &f, true);
        stet_free(literal);
        stet_buf_release(&text);
        command_forms_release(&f);
    } else {
        for (const char *c = raw; *c; c++)
            add_byte(r, *c, true);
    }
    stet_free(raw);
    return *end ? end + 1 : end;
}

/* What may be a part of any word, wherever that is. NULL: nothing of the kind. */
static const char *part_of_word(scanner *s, const char *p, reading *r) {
    if (*p == '\'')
        return apostrophes(p + 1, r, false);
    if (*p == '$' && p[1] == '\'')
        return apostrophes(p + 2, r, true);
    if (*p == '"' || (*p == '$' && p[1] == '"'))
        return quoted(s, p + 1 + (*p == '$'), r);
    if (*p == '`')
        return substitution(s, p + 1, '`', r);
    if (*p == '$')
        return dollar(s, p, r, false);
    if (*p == '\\' && p[1]) {
        if (p[1] != '\n')
            add_byte(r, p[1], true);
        return p + 2;
    }
    return NULL;
}

/* What a text becomes as one word: "$(cat f)" of "${X:-$(cat f)}". */
static void forms_of_text(scanner *s, const char *p, bool in_quotes, command_forms *out) {
    reading r = {0};
    begin_word(&r);
    while (*p) {
        const char *next = in_quotes && *p == '\'' ? NULL : part_of_word(s, p, &r);
        if (!next)
            add_byte(&r, *p, in_quotes);
        p = next ? next : p + 1;
    }
    for (size_t i = 0; i < r.drafts.len; i++) {
        const draft *d = &r.drafts.at[i];
        command_forms_add(out, stet_buf_cstr(&d->text), stet_buf_cstr(&d->pattern), d->glob);
    }
    drop_word(&r);
    stet_vec_release(&r.drafts);
}

/* What a variable may be. False: that is not all. */
static bool values_of(scanner *s, const char *name, size_t len, command_forms *out, bool *sure) {
    variable *v = words_variable_of(s, name, len);
    bool known = v && v->values.len > 0 && !s->dynamic;
    *sure = known && v->single && v->pass == s->pass && v->values.len == 1;
    for (size_t i = 0; v && i < v->values.len; i++)
        command_forms_add(out, v->values.at[i].text, v->values.at[i].pattern, v->values.at[i].glob);
    if (!known)
        command_forms_add(out, unknown_text, unknown_text, false);
    return known;
}

/* "${NAME%.c}" and its like, of each value. One that has unknown parts keeps what comes before or behind them. */
static void change_values(const command_forms *from, const char *operation, command_forms *out) {
    for (size_t i = 0; i < from->len; i++) {
        const command_form *f = &from->at[i];
        bool vague = f->glob || command_is_unknown(f->text);
        stet_buf one = STET_BUF(0);
        bool known = command_value_change(f->text, operation, &one);
        if (known)
            command_forms_add(out, stet_buf_cstr(&one), stet_buf_cstr(&one), f->glob);
        if (vague || !known) {
            const char wild[] = {'*', '?', '[', COMMAND_UNKNOWN, 0};
            size_t n = strcspn(f->text, wild);
            const char *end = f->text + strlen(f->text);
            while (end > f->text && !strchr(wild, end[-1]))
                end--;
            stet_buf_clear(&one);
            if (operation[0] == '%')
                stet_buf_add(&one, f->text, n);
            stet_buf_char(&one, COMMAND_UNKNOWN);
            if (operation[0] == '#')
                stet_buf_str(&one, end);
            command_forms_add(out, one.data, one.data, false);
        }
        stet_buf_release(&one);
    }
}

/* "${...}", from behind its brace. Where it ends. */
static const char *braces(scanner *s, const char *p, reading *r, bool quoted) {
    const char *close = close_of(p, '}', quoted);
    char *text = stet_strndup(p, (size_t)(close - p));
    size_t len = words_name_length(text);
    const char *end = *close ? close + 1 : close, *rest = text + len;
    bool sure = false;
    command_forms values = {0}, operands = {0}, out = {0};
    if (*rest == '[' && strchr(rest, ']'))
        rest = strchr(rest, ']') + 1;
    bool pwd = len == 3 && memcmp(text, "PWD", 3) == 0 && !words_variable_of(s, "PWD", 3);
    if (len > 0 && pwd && !*rest) {
        add_byte(r, '.', true);
    } else if (!*rest && len > 0) {
        values_of(s, text, len, &out, &sure);
    } else if (!len && (text[0] == '#' || text[0] == '!')) { /* a length; a variable's variable */
        words_tell_broken(s, text);
        command_forms_add(&out, unknown_text, unknown_text, false);
    } else {
        if (!len) /* "$1" */
            rest += *rest && strchr("@*?$!-", *rest) ? 1 : strspn(rest, "0123456789");
        bool known = len > 0 && !pwd && values_of(s, text, len, &values, &sure);
        const char *operand = rest + (rest[0] == ':' && rest[1] && strchr("-=+?", rest[1]) ? 1 : 0);
        if (*operand && strchr("-=+?", *operand)) {
            forms_of_text(s, operand + 1, quoted, &operands);
            s->strings++;
            for (size_t i = 0; i < operands.len; i++) {
                words_tell_form(s, operands.at[i].text, operands.at[i].glob ? operands.at[i].pattern : NULL);
                if (*operand == '=')
                    words_join(s, text, len, &operands.at[i]);
            }
            s->strings--;
            for (size_t i = 0; i < values.len && *operand != '+'; i++)
                command_forms_add(&out, values.at[i].text, values.at[i].pattern, values.at[i].glob);
            for (size_t i = 0; i < operands.len; i++)
                command_forms_add(&out, operands.at[i].text, operands.at[i].pattern, operands.at[i].glob);
            if (*operand == '+')
                command_forms_add(&out, "", "", false);
        } else {
            forms_of_text(s, rest, false, &operands);
            if (!known)
                for (size_t i = 0; i < s->words.len; i++)
                    command_forms_add(&values, s->words.at[i].text, s->words.at[i].pattern, false);
            for (size_t i = 0; i < operands.len; i++)
                change_values(&values, operands.at[i].glob ? operands.at[i].pattern : operands.at[i].text, &out);
            if (!known)
                command_forms_add(&out, unknown_text, unknown_text, false);
        }
        sure = false;
    }
    if (out.len > 0) {
        add_forms(r, &out, quoted);
        r->unsure |= !sure;
    }
    command_forms_release(&values);
    command_forms_release(&operands);
    command_forms_release(&out);
    stet_free(text);
    return end;
}

/* "$((...))": a number. The commands in it, and the variables that it may set. Where it ends, or NULL: it is none. */
static const char *arithmetic(scanner *s, const char *p, reading *r) {
    const char *inner = close_of(p + 3, ')', false);
    if (*inner && inner[1] != ')')
        return NULL;
    char *text = stet_strndup(p + 3, (size_t)(inner - p - 3));
    command_forms unused = {0};
    forms_of_text(s, text, true, &unused);
    command_forms_release(&unused);
    for (const char *c = text; *c && strpbrk(text, "=+-");) {
        size_t n = words_name_length(c);
        if (n > 0 && strpbrk(c + n, "=+-") && words_variable_of(s, c, n))
            words_join_unknown(s, c, n);
        c += n ? n : 1;
    }
    stet_free(text);
    add_unknown(r);
    return *inner ? inner + 2 : inner;
}

/* What begins with "$". Where it ends. */
static const char *dollar(scanner *s, const char *p, reading *r, bool quoted) {
    if (p[1] == '(' && p[2] == '(') {
        const char *end = arithmetic(s, p, r);
        if (end)
            return end;
    }
    if (p[1] == '(')
        return substitution(s, p + 2, ')', r);
    if (p[1] == '{')
        return braces(s, p + 2, r, quoted);
    const char *name = p + 1;
    size_t len = words_name_length(name);
    if (len == 3 && memcmp(name, "PWD", 3) == 0 && !words_variable_of(s, "PWD", 3)) { /* where it is */
        add_byte(r, '.', true);
        return name + len;
    }
    if (len > 0) {
        command_forms values = {0};
        bool sure;
        values_of(s, name, len, &values, &sure);
        add_forms(r, &values, quoted);
        r->unsure |= !sure;
        command_forms_release(&values);
        return name + len;
    }
    if (*name && strchr("@*#?$!-0123456789", *name)) {
        add_unknown(r);
        return name + 1;
    }
    add_byte(r, '$', true);
    return p + 1;
}

/* "~" at the beginning of a word or of a value. Where it ends. */
static const char *tilde(scanner *s, const char *p, reading *r) {
    size_t n = 1 + strcspn(p + 1, "/ \t\n;|&()<>:'\"$`");
    command_forms values = {0};
    bool sure;
    if (n == 2 && p[1] == '+') {
        add_byte(r, '.', true);
    } else if (n == 1) {
        values_of(s, "HOME", 4, &values, &sure);
        add_forms(r, &values, true);
    } else { /* somebody's, or "~" as it is */
        char *literal = stet_strndup(p, n);
        command_forms_add(&values, literal, literal, false);
        command_forms_add(&values, unknown_text, unknown_text, false);
        add_forms(r, &values, true);
        stet_free(literal);
    }
    r->unsure = true;
    command_forms_release(&values);
    return p + n;
}

/* In double quotes, from behind the first. Where it ends. */
static const char *quoted(scanner *s, const char *p, reading *r) {
    begin_word(r);
    while (*p && *p != '"') {
        if (*p == '$')
            p = dollar(s, p, r, true);
        else if (*p == '`') {
            p = substitution(s, p + 1, '`', r);
        } else {
            if (*p == '\\' && p[1] && strchr("$`\"\\\n", p[1])) {
                p++;
                if (*p == '\n') {
                    p++;
                    continue;
                }
            }
            add_byte(r, *p++, true);
        }
    }
    return *p ? p + 1 : p;
}

/* "<", ">" and what belongs to it. What the next word is. Where it ends. */
static const char *redirection(const char *p, reading *r) {
    const char *so_far = text_so_far(r);
    if (r->any && !so_far[strspn(so_far, "0123456789")]) /* "2>": no word */
        drop_word(r);
    else if (r->any && so_far[0] == '{' && so_far[strlen(so_far) - 1] == '}') /* "{fd}>" */
        drop_word(r);
    end_word(r);
    if (strncmp(p, "<<<", 3) == 0)
        return p + 3;
    if (strncmp(p, "<<", 2) == 0) {
        r->role = NO_FILE;
        r->delimits = true;
        return p + 2 + (p[2] == '-');
    }
    if (p[1] == '&') { /* "2>&1": no file */
        p += 2;
        bool descriptor = *p == '-' || (*p >= '0' && *p <= '9');
        r->role = descriptor ? NO_FILE : WRITTEN;
        return p;
    }
    if (p[0] == '<') {
        r->role = READ;
        return p + 1 + (p[1] == '>');
    }
    r->role = p[1] == '>' ? APPENDED : WRITTEN;
    return p + 1 + (p[1] == '>' || p[1] == '|');
}

/* What is open: "(" or "case". */
typedef struct place {
    char *here;   /* where a subshell began; NULL: a case */
    bool choices; /* of a case: what comes next is what its value is compared with, and no command */
} place;
typedef STET_VEC(place) open_places;

/* Does the command begin or end a case? */
static bool begins_with(const words *w, const char *name) {
    size_t i = 0;
    while (i < w->len && words_is_keyword(w->at[i].text))
        i++;
    return i < w->len && w->at[i].role == PLAIN && strcmp(w->at[i].text, name) == 0;
}

static void take_command_or_choices(scanner *s, reading *r, open_places *open) {
    words *w = &r->done;
    if (begins_with(w, "esac") && open->len > 0 && !open->at[open->len - 1].here)
        open->len--;
    else if (open->len > 0 && open->at[open->len - 1].choices)
        words_clear(w);
    if (begins_with(w, "case")) {
        size_t keep = 0;
        while (keep < w->len && (w->at[keep].role != PLAIN || strcmp(w->at[keep].text, "in") != 0))
            keep++;
        for (size_t i = keep; i < w->len; i++)
            words_release_one(&w->at[i]);
        w->len = keep;
        *stet_vec_add(open) = (place){.choices = true};
    }
    words_take_command(s, w);
}

/* A command ends here: what does that say of the next one? Where that begins. */
static const char *separator(scanner *s, reading *r, const char *p, open_places *open) {
    end_word(r);
    take_command_or_choices(s, r, open);
    bool both = p[0] == '&' && p[1] == '&', either = p[0] == '|' && p[1] == '|', pipe = p[0] == '|' && !either;
    place *top = open->len > 0 ? &open->at[open->len - 1] : NULL;
    if (*p == '(' && !(top && top->choices)) {
        *stet_vec_add(open) = (place){.here = stet_strdup(s->here)};
        s->shells++;
    } else if (*p == ')' && top && !top->here) {
        top->choices = false;
    } else if (*p == ')' && top) {
        stet_free(s->here);
        s->here = top->here;
        s->shells--;
        open->len--;
    } else if (p[0] == ';' && (p[1] == ';' || p[1] == '&') && top && !top->here) {
        top->choices = true;
    }
    if (both) {
        s->chained = true;
    } else if (either || pipe) { /* it may have failed; it may not have ended */
        s->maybe |= either;
        s->lists++;
    } else if (*p != '(' && *p != ')') {
        s->chained = s->maybe = false;
        s->lists++;
    }
    return p + 1 + (both || either);
}

/* Here-documents: words in them count, though nobody may read them. From behind the end of a line to behind the last of
 * them. */
static const char *here_documents(scanner *s, reading *r, const char *p) {
    stet_buf body = STET_BUF(0);
    for (size_t i = 0; i < r->ends.len; i++) {
        while (*p) {
            size_t n = strcspn(p, "\n"), tabs = strspn(p, "\t");
            const char *line = p;
            p += n + (p[n] == '\n');
            if (tabs <= n && strlen(r->ends.at[i]) == n - tabs && memcmp(line + tabs, r->ends.at[i], n - tabs) == 0)
                break;
            stet_buf_add(&body, line, n);
            stet_buf_char(&body, '\n');
        }
    }
    words_tell_string(s, stet_buf_cstr(&body));
    stet_buf_release(&body);
    stet_names_release(&r->ends);
    r->ends = (stet_names){0};
    return p;
}

/* "NAME=(", at the parenthesis. Where the array ends. */
static const char *array(scanner *s, const char *p, reading *r) {
    const char *close = close_of(p + 1, ')', false), *outer = s->array;
    char *text = stet_strndup(p + 1, (size_t)(close - p) - 1), *name = stet_strdup(text_so_far(r));
    name[words_name_length(name)] = 0;
    s->array = name;
    if (s->depth < MAX_DEPTH) {
        s->depth++;
        words_scan(s, text);
        s->depth--;
    }
    s->array = outer;
    if (words_variable_of(s, name, strlen(name)))
        words_note_set(s, name, strlen(name), false);
    drop_word(r);
    stet_free(name);
    stet_free(text);
    return *close ? close + 1 : close;
}

/* "@(a|b)" and its like, which is a pattern for some shells; for others "!(...)" is a command. Where it ends. */
static const char *choice(scanner *s, const char *p, reading *r) {
    const char *close = close_of(p + 2, ')', false);
    char *text = stet_strndup(p + 2, (size_t)(close - p) - 2);
    add_unknown(r);
    s->blocks++;
    scan_inside(s, text);
    s->strings++;
    words_tell_broken(s, text);
    s->strings--;
    s->blocks--;
    stet_free(text);
    return *close ? close + 1 : close;
}

static bool begins_array(const reading *r) {
    size_t len;
    const char *value, *text = text_so_far(r);
    return r->any && words_is_assignment(text, &len, &value) && !*value;
}

static bool begins_value(const reading *r) {
    const char *text = text_so_far(r);
    return !r->any || (*text && strchr("=:", text[strlen(text) - 1]));
}

void words_scan(scanner *s, const char *p) {
    reading r = {0};
    open_places places = {0};
    int shells = s->shells;
    while (*p) {
        const char *next;
        if (strchr(" \t\r", *p)) {
            end_word(&r);
            p++;
        } else if (*p == '#' && !r.any) { /* words of a comment count, too: it may be none */
            size_t n = strcspn(p, "\n");
            char *comment = stet_strndup(p + 1, n - 1);
            words_tell_string(s, comment);
            if (!strpbrk(comment, BREAKS))
                words_tell(s, comment, COMMAND_WORD);
            stet_free(comment);
            p += n;
        } else if (*p == '(' && begins_array(&r)) {
            p = array(s, p, &r);
        } else if (*p && strchr("@+!?*", *p) && p[1] == '(') {
            p = choice(s, p, &r);
        } else if (*p == '~' && begins_value(&r)) {
            p = tilde(s, p, &r);
        } else if (*p == '&' && p[1] == '>') {
            end_word(&r);
            p = redirection(p + 1, &r);
        } else if (strchr("\n;&|()", *p)) {
            bool line = *p == '\n';
            p = separator(s, &r, p, &places);
            if (line && r.ends.len > 0)
                p = here_documents(s, &r, p);
        } else if (*p == '<' || *p == '>') {
            p = p[1] == '(' ? substitution(s, p + 2, ')', &r) : redirection(p, &r); /* "<(command)" */
        } else if ((next = part_of_word(s, p, &r)) != NULL) {
            p = next;
        } else {
            add_byte(&r, *p++, false);
        }
    }
    end_word(&r);
    take_command_or_choices(s, &r, &places);
    for (size_t i = 0; i < places.len; i++)
        stet_free(places.at[i].here);
    s->shells = shells;
    stet_vec_release(&places);
    stet_vec_release(&r.done);
    stet_vec_release(&r.drafts);
    stet_names_release(&r.ends);
}
