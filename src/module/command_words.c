/* command_words.c - finds the words of a command that may name a file it reads or a program it starts. */

#include "module/command_scan.h"

#define MAX_PASSES 4 /* over the text, to learn what its variables may be */

void words_release_one(word *w) {
    stet_free(w->text);
    stet_free(w->pattern);
    command_forms_release(&w->others);
}

void words_clear(words *w) {
    for (size_t i = 0; i < w->len; i++)
        words_release_one(&w->at[i]);
    stet_vec_clear(w);
}

static void scanner_begin(scanner *s, command_word_fn each, void *ctx) {
    *s = (scanner){.each = each, .ctx = ctx};
}

/* While it learns what its variables may be. */
void words_tell_nobody(void *ctx, const command_word *w) {
    (void)ctx;
    (void)w;
}

static void begin_pass(scanner *s) {
    for (size_t i = 0; i < s->from.len; i++)
        stet_free(s->from.at[i]);
    for (size_t i = 0; i < s->among.len; i++)
        stet_free(s->among.at[i]);
    stet_vec_clear(&s->from);
    stet_vec_clear(&s->among);
    stet_free(s->here);
    s->here = stet_strdup("");
    *stet_vec_add(&s->from) = stet_strdup("");
    s->pass++;
    s->blocks = s->shells = 0;
    s->lists = 1;
    s->work = 0;
    s->chained = s->maybe = s->negated = s->learned = false;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->variables, &i, &key, &len, &slot);) {
        variable *v = slot->p;
        v->single = v->sure && v->times == 1;
    }
}

static void scanner_end(scanner *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->variables, &i, &key, &len, &slot);) {
        variable *v = slot->p;
        command_forms_release(&v->values);
        stet_free(v);
    }
    stet_map_release(&s->variables);
    for (size_t i = 0; i < s->from.len; i++)
        stet_free(s->from.at[i]);
    for (size_t i = 0; i < s->among.len; i++)
        stet_free(s->among.at[i]);
    stet_vec_release(&s->from);
    stet_vec_release(&s->among);
    command_forms_release(&s->words);
    stet_free(s->token);
    stet_free(s->here);
}

static void one_pass(scanner *s, char *const *argv, size_t len) {
    words w = {0};
    begin_pass(s);
    for (size_t i = 0; i < len; i++)
        *stet_vec_add(&w) = (word){.text = stet_strdup(argv[i]), .unknown = command_is_unknown(argv[i])};
    words_take_command(s, &w);
    stet_vec_release(&w);
}

void command_words_of_list(char *const *argv, size_t len, char *const *env, size_t env_len, const stet_map *names,
                           command_word_fn each, void *ctx) {
    scanner s;
    scanner_begin(&s, words_tell_nobody, NULL);
    s.names = names;
    for (size_t i = 0; i < env_len; i++) {
        const char *equals = strchr(env[i], '=');
        if (equals)
            words_join(&s, env[i], (size_t)(equals - env[i]),
                       &(command_form){.text = (char *)equals + 1, .pattern = (char *)equals + 1});
    }
    do /* until nothing new is learned of its variables */
        one_pass(&s, argv, len);
    while (s.learned && s.pass < MAX_PASSES);
    s.dynamic |= s.learned;
    s.each = each;
    s.ctx = ctx;
    one_pass(&s, argv, len);
    scanner_end(&s);
}

/* Slots of `seen` beside COMMAND_WORD_TAKEN. From IN_LIST on: written in the and-or list of that number. */
enum { WRITTEN_FOR_CERTAIN = 2, IN_LIST = 3 };

bool command_word_reads(stet_map *seen, const char *path, const command_word *w) {
    size_t len = strlen(path);
    const stet_slot *slot = stet_map_get(seen, path, len);
    if (w->kind != COMMAND_WORD_WRITTEN)
        return !slot || (slot->n >= IN_LIST && slot->n != IN_LIST + w->list);
    if (!slot || slot->n >= IN_LIST)
        stet_map_put(seen, path, len, (stet_slot){.n = w->chained ? IN_LIST + w->list : WRITTEN_FOR_CERTAIN});
    return false;
}
