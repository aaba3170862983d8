/* command_variables.c - what the variables of a shell text may be, with every value that they get. */

#include "module/command_scan.h"

size_t words_name_length(const char *p) {
    size_t n = 0;
    while ((p[n] >= 'A' && p[n] <= 'Z') || (p[n] >= 'a' && p[n] <= 'z') || p[n] == '_' ||
           (n > 0 && p[n] >= '0' && p[n] <= '9'))
        n++;
    return n;
}

/* "NAME=", "NAME+=", "NAME[i]=". The value begins at *value. */
bool words_is_assignment(const char *text, size_t *name_len, const char **value) {
    const char *p = text + (*name_len = words_name_length(text));
    if (*p == '[' && strchr(p, ']'))
        p = strchr(p, ']') + 1;
    p += *p == '+';
    *value = p + 1;
    return *name_len > 0 && *p == '=';
}

variable *words_variable_of(scanner *s, const char *name, size_t len) {
    stet_slot *slot = stet_map_get(&s->variables, name, len);
    return slot ? slot->p : NULL;
}

/* A value that it may have from somewhere in the text. */
void words_join(scanner *s, const char *name, size_t len, const command_form *f) {
    variable *v = words_variable_of(s, name, len);
    if (!v) {
        v = stet_alloc(sizeof *v);
        *v = (variable){0};
        stet_map_put(&s->variables, name, len, (stet_slot){.p = v});
    }
    s->learned |= command_forms_add(&v->values, f->text, f->pattern, f->glob);
}

void words_join_unknown(scanner *s, const char *name, size_t len) {
    words_join(s, name, len, &(command_form){.text = (char *)unknown_text, .pattern = (char *)unknown_text});
}

/* It is set here. `sure`: whatever else happens. */
void words_note_set(scanner *s, const char *name, size_t len, bool sure) {
    variable *v = words_variable_of(s, name, len);
    v->times = v->pass == s->pass ? v->times + 1 : 1;
    v->pass = s->pass;
    v->sure = sure && s->blocks == 0 && s->shells == 0 && !s->chained && !s->maybe && !s->strings;
}

static void assign_form(scanner *s, const char *text, size_t name_len, const char *value) {
    command_form f = {.text = (char *)value, .pattern = (char *)value};
    words_join(s, text, name_len, &f);
    if (value - text >= 2 && value[-2] == '+') { /* behind what it was */
        stet_buf longer = STET_BUF(0);
        variable *v = words_variable_of(s, text, name_len);
        for (size_t i = 0, n = v->values.len; i < n; i++) {
            stet_buf_clear(&longer);
            stet_buf_str(&longer, v->values.at[i].text);
            if (longer.len == 0 || longer.data[longer.len - 1] != COMMAND_UNKNOWN)
                stet_buf_char(&longer, COMMAND_UNKNOWN);
            f.text = f.pattern = longer.data;
            words_join(s, text, name_len, &f);
        }
        stet_buf_clear(&longer);
        stet_buf_printf(&longer, "%c%s", COMMAND_UNKNOWN, value);
        f.text = f.pattern = longer.data;
        words_join(s, text, name_len, &f);
        stet_buf_release(&longer);
    }
}

void words_assign(scanner *s, const word *w, size_t name_len, bool sure) {
    size_t len;
    const char *value;
    if (words_is_assignment(w->text, &len, &value))
        assign_form(s, w->text, len, value);
    for (size_t i = 0; i < w->others.len; i++)
        if (words_is_assignment(w->others.at[i].text, &len, &value))
            assign_form(s, w->others.at[i].text, len, value);
    words_note_set(s, w->text, name_len, sure && !w->unknown && w->text[name_len] == '=');
}

/* "for NAME in WORDS", and words of an array: the shell has matched them with files. */
void words_join_word(scanner *s, const char *name, size_t len, const word *w) {
    const char *value;
    size_t unused;
    command_form first = {.text = w->text, .pattern = w->pattern ? w->pattern : w->text, .glob = w->pattern != NULL};
    words_join(s, name, len, &first);
    for (size_t i = 0; i < w->others.len; i++)
        words_join(s, name, len, &w->others.at[i]);
    if (w->text[0] == '[' && (value = strstr(w->text, "]=")) != NULL) /* "[key]=value" */
        words_join(s, name, len, &(command_form){.text = (char *)value + 2, .pattern = (char *)value + 2});
    else if (strpbrk(w->text, " \t\n") && !words_is_assignment(w->text, &unused, &value)) /* it may be several */
        for (const char *p = w->text; *(p += strspn(p, " \t\n"));) {
            size_t n = strcspn(p, " \t\n");
            char *part = stet_strndup(p, n);
            words_join(s, name, len, &(command_form){.text = part, .pattern = part});
            stet_free(part);
            p += n;
        }
}
