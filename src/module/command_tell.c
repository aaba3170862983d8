/* command_tell.c - tells of words, and of everything in them that may name a file. */

#include "module/command_scan.h"
#include "os/file.h"

#define MAX_FROM    16        /* directories that it changes to */
#define MAX_BRACES  64        /* words that "{a,b}" may become */
#define MAX_STRINGS 3         /* strings in strings of which nobody knows who reads them */
#define MAX_WORK    (1 << 17) /* bytes of strings in strings; beyond that their parts are told, and no commands */

/* Is there anything in it that names something? A lone star stands for the directory as a whole. */
static bool says_something(const char *pattern) {
    for (; *pattern; pattern++)
        if (*pattern == '_' || (unsigned char)*pattern >= 0x80 || (*pattern >= '0' && *pattern <= '9') ||
            ((*pattern | 0x20) >= 'a' && (*pattern | 0x20) <= 'z'))
            return true;
    return false;
}

/* Brackets as stet has them: a class such as [[:lower:]] becomes any character, "[" that nobody closes is itself. */
static void add_brackets(stet_buf *out, const char *p) {
    while (*p) {
        if (*p == '\\' && p[1]) {
            stet_buf_add(out, p, 2);
            p += 2;
            continue;
        }
        if (*p != '[') {
            stet_buf_char(out, *p++);
            continue;
        }
        const char *q = p + 1 + (p[1] == '!' || p[1] == '^');
        bool named = false;
        q += *q == ']';
        while (*q && *q != ']' && *q != '/') {
            const char *close = *q == '[' && q[1] && strchr(":.=", q[1]) ? strchr(q + 2, ']') : NULL;
            named |= close || *q == COMMAND_UNKNOWN;
            q = close ? close + 1 : q + 1 + (*q == '\\' && q[1]);
        }
        if (*q == ']' && named)
            stet_buf_char(out, '?');
        else if (*q == ']')
            stet_buf_add(out, p, (size_t)(q + 1 - p));
        else
            stet_buf_str(out, "\\[");
        p = *q == ']' ? q + 1 : p + 1;
    }
}

static void tell_one_pattern(scanner *s, const char *text, bool guessed, bool anywhere) {
    command_word w = {.text = text, .kind = COMMAND_WORD_PATTERN, .list = s->lists, .anywhere = anywhere};
    w.guessed = guessed || s->strings > 0 || s->prints;
    for (size_t i = 0; *text && (!guessed || says_something(text)) && i < s->from.len; i++) {
        w.from = s->from.at[i];
        s->each(s->ctx, &w);
    }
}

/* What is unknown may be empty, any name, or a path: the patterns that cover it. From behind a name it is "*" or
 * reaches below "*"; at the beginning of a name it may be hidden, or directories before it. `left`: with so many
 * unknown parts from here on, that all ways are taken for each. */
static void tell_unknown(scanner *s, const char *text, int left, bool anywhere) {
    static const char *const begins[] = {"*", "**/*", "**/.*", "*/*", ".*/**/*"}, *const behind[] = {"*", "*/**/*",
                                                                                                     "*/*"};
    const char *mark = strchr(text, COMMAND_UNKNOWN);
    if (!mark) {
        stet_buf clean = STET_BUF(0);
        add_brackets(&clean, text);
        tell_one_pattern(s, stet_buf_cstr(&clean), true, anywhere);
        stet_buf_release(&clean);
        return;
    }
    bool begin = mark == text || mark[-1] == '/', last = left > 1 || strchr(mark + 1, COMMAND_UNKNOWN) != NULL;
    size_t n = begin ? (last ? 2 : 5) : (last ? 2 : 3);
    for (size_t i = 0; i < n + begin; i++) {
        stet_buf one = STET_BUF(0);
        const char *rest = mark + 1;
        stet_buf_add(&one, text, (size_t)(mark - text));
        if (i < n)
            stet_buf_str(&one, begin ? begins[i] : behind[i]);
        else if (*rest == '/')
            rest++;
        while (left > 2 && i < n && *rest && strchr(rest, COMMAND_UNKNOWN) != NULL)
            rest = strchr(rest, COMMAND_UNKNOWN) + 1; /* too many: one of them takes in the rest */
        stet_buf_str(&one, rest);
        tell_unknown(s, stet_buf_cstr(&one), left + 1, anywhere || mark == text);
        stet_buf_release(&one);
    }
}

static void tell_pattern(scanner *s, const char *text, bool guessed) {
    stet_buf clean = STET_BUF(0);
    if (command_is_unknown(text)) {
        if (says_something(text))
            tell_unknown(s, text, 0, false);
        return;
    }
    add_brackets(&clean, text);
    tell_one_pattern(s, stet_buf_cstr(&clean), guessed, false);
    const char *deep = strstr(stet_buf_cstr(&clean), "**");
    if (deep) { /* a shell that takes it for "*" looks into links as well */
        stet_buf flat = STET_BUF(0);
        for (const char *p = stet_buf_cstr(&clean); *p; p++)
            if (p[0] != '*' || p[1] != '*')
                stet_buf_char(&flat, *p);
        tell_one_pattern(s, stet_buf_cstr(&flat), guessed, false);
        stet_buf_release(&flat);
    }
    stet_buf_release(&clean);
}

static void add_escaped(stet_buf *out, const char *text) {
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            stet_buf_char(out, '\\');
        stet_buf_char(out, *text);
    }
}

static void tell_from(scanner *s, command_word *w) {
    for (size_t i = 0; i < s->from.len; i++) {
        w->from = s->from.at[i];
        s->each(s->ctx, w);
    }
}

void words_tell(scanner *s, const char *text, command_word_kind kind) {
    if (!*text)
        return;
    if (command_is_unknown(text)) {
        stet_buf pattern = STET_BUF(0);
        add_escaped(&pattern, text);
        /* "$i done" that is printed: a message, and a search of the whole project for what is hardly a name. */
        bool message = s->prints && strchr(text, ' ') && !strchr(text, '/');
        if (kind == COMMAND_WORD && !message)
            tell_pattern(s, stet_buf_cstr(&pattern), true);
        stet_buf_release(&pattern);
        return;
    }
    command_word w = {.text = text, .kind = kind, .list = s->lists, .guessed = s->strings > 0 || s->prints};
    w.unlikely = kind == COMMAND_WORD && text[0] == '-' && !s->exact;
    /* A bare word may be what is searched for, and so may what an option takes: `find -name gen`, `grep -v gen`. */
    w.guessed |= w.unlikely || (kind == COMMAND_WORD && !s->target && (s->behind_option || !strchr(text, '/')));
    tell_from(s, &w);
    if (kind == COMMAND_WORD && strpbrk(text, "*?") && says_something(text)) /* another program may match it */
        tell_pattern(s, text, true);
    bool below = kind == COMMAND_WORD && text[0] != '/' && !w.unlikely && says_something(text);
    for (size_t i = 0; below && i < s->among.len; i++) {
        stet_buf path = STET_BUF(0);
        stet_buf_printf(&path, "%s/", s->among.at[i]);
        add_escaped(&path, text);
        tell_pattern(s, stet_buf_cstr(&path), true);
        stet_buf_release(&path);
    }
}

/* Behind letters that may be options: a file if there is one. */
void words_tell_unlikely(scanner *s, const char *text) {
    command_word w = {.text = text, .kind = COMMAND_WORD, .list = s->lists, .guessed = true, .unlikely = true};
    if (*text && !command_is_unknown(text))
        tell_from(s, &w);
}

/* What is written, so that whatever reads it later reads what the command wrote: for certain, or if what writes it
 * succeeds. */
void words_tell_written(scanner *s, const word *one, bool certain) {
    if (!*one->text || s->strings || one->unknown || one->unsure || one->others.len > 0 || one->pattern ||
        (!certain && s->negated))
        return;
    command_word w = {.text = one->text, .from = s->here, .kind = COMMAND_WORD_WRITTEN, .list = s->lists};
    w.chained = s->chained || !certain;
    w.into = one->into;
    if (s->blocks == 0 && !s->maybe)
        s->each(s->ctx, &w);
}

/* What may be written, whether it is read before or not. */
void words_tell_may_write(scanner *s, const word *w) {
    command_word one = {.text = w->text, .kind = COMMAND_WORD_MAY_WRITE, .list = s->lists};
    for (size_t i = 0; *w->text && !w->unknown && i < s->from.len; i++) {
        one.from = s->from.at[i];
        s->each(s->ctx, &one);
    }
}

/* To a directory of which part is unknown. */
void words_changes_among(scanner *s, const char *pattern) {
    if (s->among.len <= MAX_FROM) {
        char *added = stet_strdup(s->among.len < MAX_FROM ? pattern : unknown_text); /* too many: anywhere */
        *stet_vec_add(&s->among) = added;
    }
}

void words_changes_to(scanner *s, const char *dir) {
    size_t n = s->from.len;
    if (n >= MAX_FROM) /* too many: anywhere */
        words_changes_among(s, unknown_text);
    for (size_t i = 0; *dir && i < n && s->from.len < MAX_FROM; i++) {
        const char *from = s->from.at[i];
        char *to = dir[0] == '/' || !*from ? stet_strdup(dir) : stet_file_join(from, dir);
        bool again = false;
        for (size_t k = 0; k < s->from.len && !again; k++)
            again = strcmp(s->from.at[k], to) == 0;
        if (again)
            stet_free(to);
        else
            *stet_vec_add(&s->from) = to;
    }
}

void words_goes_to(scanner *s, const char *dir) {
    char *to = dir[0] == '/' || !*s->here ? stet_strdup(dir) : stet_file_join(s->here, dir);
    stet_free(s->here);
    s->here = to;
    words_changes_to(s, dir);
}

/* A part of a word, and what stands in it behind "@", "<" and the like, or in a URL. */
static void tell_part(scanner *s, const char *text) {
    words_tell(s, text, COMMAND_WORD);
    if (text[0] && strchr("@<+^!:", text[0]))
        words_tell(s, text + 1, COMMAND_WORD);
    const char *url = strstr(text, "file:"), *path = url ? url + 5 : NULL;
    if (path && strncmp(path, "//", 2) == 0 && path[2] != '/') { /* a host, or the directory that it is in */
        words_tell(s, path + 2, COMMAND_WORD);
        path = path[2] == '.' ? path + 2 : strchr(path + 2, '/');
    }
    if (!path)
        return;
    stet_buf plain = STET_BUF(0), escaped = STET_BUF(0);
    for (const char *p = path; *p; p++) {
        bool code = *p == '%' && p[1] && p[2];
        stet_buf_str(&escaped, code ? "\\x" : "");
        if (!code)
            stet_buf_char(&escaped, *p);
    }
    command_decode(stet_buf_cstr(&escaped), &plain);
    words_tell(s, path, COMMAND_WORD);
    words_tell(s, stet_buf_cstr(&plain), COMMAND_WORD);
    stet_buf_release(&escaped);
    stet_buf_release(&plain);
}

/* The word itself, and what stands in it behind "=", between "," and ":", or behind letters of options. */
static void tell_parts(scanner *s, const char *text) {
    tell_part(s, text);
    if (text[0] == '-' && text[1] && text[1] != '-' && text[2]) {
        tell_part(s, text + 2);
        for (size_t i = 3; i < 3 + MAX_FLAGS && text[i - 1] && strchr("=,:/.", text[i - 1]) == NULL && text[i]; i++) {
            words_tell_unlikely(s, text + i);
            if (command_is_unknown(text + i))
                tell_part(s, text + i);
        }
    }
    if (!strpbrk(text, "=,:"))
        return;
    const char *equals = strchr(text, '=');
    if (equals)
        tell_part(s, equals + 1);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "=,:");
        char *part = stet_strndup(p, n);
        if (n != strlen(text))
            tell_part(s, part);
        stet_free(part);
        p += n + (p[n] != 0);
    }
}

/* "pkg.tool" of "python3 -m pkg.tool". */
void words_tell_module(scanner *s, const char *name) {
    static const char *const ends[] = {".py", "/__main__.py", "/__init__.py"};
    for (size_t i = 0; *name && i < 3; i++) {
        char *path = stet_asprintf("%s%s", name, ends[i]);
        for (char *p = path; p < path + strlen(name); p++)
            *p = *p == '.' ? '/' : *p;
        words_tell(s, path, COMMAND_WORD);
        stet_free(path);
    }
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) { /* the packages on the way */
        char *path = stet_asprintf("%.*s/__init__.py", (int)(dot - name), name);
        for (char *p = path; p < path + (dot - name); p++)
            *p = *p == '.' ? '/' : *p;
        words_tell(s, path, COMMAND_WORD);
        stet_free(path);
    }
}

/* A string for somebody else: whatever could be a word in it. */
void words_tell_broken(scanner *s, const char *text) {
    while (*text) {
        text += strspn(text, BREAKS);
        size_t n = strcspn(text, BREAKS);
        char *part = stet_strndup(text, n);
        words_tell(s, part, COMMAND_WORD);
        stet_free(part);
        text += n;
    }
}

/* The end of the braces that begin here, or NULL. *many: they have commas, else "..". */
static const char *braces_end(const char *open, bool *many) {
    int depth = 0;
    bool range = false;
    *many = false;
    for (const char *p = open; *p; p++) {
        depth += (*p == '{') - (*p == '}');
        *many |= *p == ',' && depth == 1;
        range |= p[0] == '.' && p[1] == '.' && depth == 1;
        if (depth == 0)
            return *many || range ? p : NULL;
    }
    return NULL;
}

/* "a{b,c}d" as "abd" and "acd", which some shells make of it; "a{1..3}" as the pattern "a*". False: it has none. */
static bool tell_braces(scanner *s, const char *text, bool pattern, bool guessed, int left) {
    bool many = false;
    const char *open = strchr(text, '{'), *close = open ? braces_end(open, &many) : NULL;
    while (open && !close && (open = strchr(open + 1, '{')) != NULL)
        close = braces_end(open, &many);
    if (!close || left <= 0)
        return false;
    for (const char *p = open + 1, *end; p <= close; p = end + 1) {
        int depth = 0;
        for (end = p; end < close && (depth > 0 || *end != ',' || !many); end++)
            depth += (*end == '{') - (*end == '}');
        stet_buf one = STET_BUF(0);
        stet_buf_add(&one, text, (size_t)(open - text));
        if (many)
            stet_buf_add(&one, p, (size_t)(end - p));
        else
            stet_buf_char(&one, '*');
        stet_buf_str(&one, close + 1);
        const char *made = stet_buf_cstr(&one);
        if (!tell_braces(s, made, pattern || !many, guessed || !many, left / 2)) {
            if (pattern || !many)
                tell_pattern(s, made, guessed || !many);
            else
                tell_parts(s, made);
        }
        stet_buf_release(&one);
    }
    return true;
}

/* What a program's text imports: names behind "import", "require" and so on are modules, of whatever language. */
static void tell_imports(scanner *s, const char *text) {
    static const char *const keys[] = {"import", "require", "from ", "use ", "run_module", "include", "load", "source"};
    static const char *const ends[] = {".js", ".mjs", ".cjs", ".json", ".ts", ".rb", ".lua", ".jq", ".pl", ".pm"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        for (const char *at = strstr(text, keys[k]); at; at = strstr(at, keys[k])) {
            const char *p = at + strlen(keys[k]);
            while (*p && *p != '\n' && *p != ';') {
                size_t n = strcspn(p, BREAKS), colons = p[n] == ':' && p[n + 1] == ':' && n ? 2 : 0;
                stet_buf name = STET_BUF(0);
                stet_buf_add(&name, p, n);
                p += n + (p[n] && p[n] != '\n' && p[n] != ';');
                while (colons && (p += colons - 1, n = strcspn(p, BREAKS)) > 0) { /* "A::B" */
                    stet_buf_char(&name, '/');
                    stet_buf_add(&name, p, n);
                    p += n;
                    colons = p[0] == ':' && p[1] == ':' ? 2 : 0;
                    p += colons ? 1 : 0;
                }
                const char *module = stet_buf_cstr(&name);
                words_tell_module(s, module);
                for (size_t e = 0; *module && e < sizeof ends / sizeof *ends; e++) {
                    char *path = stet_asprintf("%s%s", module, ends[e]);
                    words_tell_unlikely(s, path);
                    stet_free(path);
                }
                stet_buf_release(&name);
            }
            at = p;
        }
    }
}

/* What stands between two quotes of a kind, or is a line: a name with blanks in it. */
void words_tell_quoted(scanner *s, const char *text) {
    for (const char *kind = "'\"`\n"; *kind; kind++) {
        const char *begin = *kind == '\n' ? text : strchr(text, *kind);
        begin = begin && *kind != '\n' ? begin + 1 : begin;
        while (begin && *begin) {
            const char *end = strchr(begin, *kind);
            size_t n = end ? (size_t)(end - begin) : *kind == '\n' ? strlen(begin) : 0, blanks = strspn(begin, " \t");
            if (n > blanks && n < 256) {
                char *part = stet_strndup(begin, n);
                if (says_something(part)) {
                    words_tell(s, part, COMMAND_WORD);
                    words_tell(s, part + blanks, COMMAND_WORD);
                }
                stet_free(part);
            }
            begin = end ? end + 1 : NULL;
        }
    }
}

/* The length of what stands for something else here: `what`; "%s", "%03d" for FORMATS; "{name}", "${name}" for FIELDS. */
static const char formats[] = "%", fields[] = "{}";
static size_t stands_for(const char *p, const char *what) {
    if (what != formats && what != fields)
        return strncmp(p, what, strlen(what)) == 0 ? strlen(what) : 0;
    if (what == formats) {
        size_t n = *p == '%' ? 1 + strspn(p + 1, "-+ #0123456789.*") : 0;
        return n && (p[n] | 0x20) >= 'a' && (p[n] | 0x20) <= 'z' ? n + 1 : 0;
    }
    size_t sign = (*p == '$' || *p == '#') && p[1] == '{', n = strcspn(p + sign, "}\n");
    return p[sign] == '{' && p[sign + n] == '}' && memchr(p + sign + 1, '{', n - 1) == NULL ? sign + n + 1 : 0;
}

/* With something unknown in place of what stands for it. NULL: there is nothing of the kind. */
static char *with_unknown(const char *text, const char *what) {
    stet_buf out = STET_BUF(0);
    bool found = false;
    while (*text) {
        size_t n = stands_for(text, what);
        found |= n > 0;
        stet_buf_char(&out, n ? COMMAND_UNKNOWN : *text);
        text += n ? n : 1;
    }
    char *made = stet_buf_take(&out, NULL);
    if (found)
        return made;
    stet_free(made);
    return NULL;
}

/* A string that may be for a shell, or for anybody. */
void words_tell_string(scanner *s, const char *text) {
    if (!strpbrk(text, BREAKS))
        return;
    s->work += strlen(text);
    if (s->depth < MAX_DEPTH && s->strings < MAX_STRINGS && s->work < MAX_WORK && strpbrk(text, " \t\n;|&()<>`")) {
        char *here = stet_strdup(s->here);
        s->depth++;
        s->strings++;
        words_scan(s, text);
        s->strings--;
        s->depth--;
        stet_free(s->here);
        s->here = here;
    }
    s->strings++;
    words_tell_broken(s, text);
    words_tell_quoted(s, text);
    if (s->strings == 1)
        tell_imports(s, text);
    s->strings--;
}

static void tell_patterns(scanner *s, const char *text, bool guessed) {
    if (!tell_braces(s, text, true, guessed, MAX_BRACES))
        tell_pattern(s, text, guessed);
}

static void tell_text(scanner *s, const char *text, bool glob) {
    tell_parts(s, text);
    if (!glob)
        tell_braces(s, text, command_is_unknown(text), command_is_unknown(text), MAX_BRACES);
    words_tell_string(s, text);
}

/* A text that a program fills in: "%s.txt", "{x}.txt", or the token of xargs. */
static void tell_filled(scanner *s, const char *text) {
    char *token = s->token && *s->token ? stet_strdup(s->token) : NULL; /* a command in the text may have another */
    const char *whats[] = {formats, fields, token};
    for (size_t i = 0; i < 3 && whats[i]; i++) {
        char *filled = with_unknown(text, whats[i]);
        if (filled)
            tell_text(s, filled, true);
        stet_free(filled);
    }
    stet_free(token);
}

void words_tell_form(scanner *s, const char *text, const char *pattern) {
    if (pattern) {
        tell_patterns(s, pattern, command_is_unknown(pattern));
        for (const char *p = strpbrk(pattern, "=,:"); p; p = strpbrk(p + 1, "=,:"))
            tell_patterns(s, p + 1, command_is_unknown(p + 1));
        for (size_t i = 2; pattern[0] == '-' && pattern[1] != '-' && i < 3 + MAX_FLAGS && pattern[i - 1] && pattern[i];
             i++)
            tell_patterns(s, pattern + i, true);
    }
    if (!pattern || !command_is_unknown(text))
        tell_text(s, text, pattern != NULL);
    if (s->strings > 1 || s->work >= MAX_WORK)
        return;
    tell_filled(s, text);
    if (strchr(text, '\\')) { /* "a\nb" */
        stet_buf decoded = STET_BUF(0);
        command_decode(text, &decoded);
        tell_text(s, stet_buf_cstr(&decoded), true);
        tell_filled(s, stet_buf_cstr(&decoded));
        stet_buf_release(&decoded);
    }
}

void words_tell_word(scanner *s, const word *w) {
    if (w->role == PLAIN && !w->unknown && w->text[0] != '-' && !s->strings)
        s->learned |= command_forms_add(&s->words, w->text, w->text, false);
    if (s->each == words_tell_nobody)
        return;
    const stet_slot *name =
        s->names && !w->pattern && w->others.len == 0 ? stet_map_get(s->names, w->text, strlen(w->text)) : NULL;
    if (name && name->n == COMMAND_NAME_EXACT) {
        command_word exact = {.text = w->text, .kind = COMMAND_WORD, .list = s->lists};
        exact.guessed = s->behind_option || !strchr(w->text, '/');
        tell_from(s, &exact);
        return;
    }
    if (name) {
        words_tell(s, w->text, COMMAND_WORD);
        return;
    }
    words_tell_form(s, w->text, w->pattern);
    for (size_t i = 0; i < w->others.len; i++)
        words_tell_form(s, w->others.at[i].text, w->others.at[i].glob ? w->others.at[i].pattern : NULL);
}
