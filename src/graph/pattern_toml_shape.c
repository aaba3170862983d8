/* pattern_toml_shape.c - what is known about the outputs of a node with `each` before any file is read.
 *
 * On its own, "{in}.sum" could be any path. Over the files below "src" that end in ".c", it is a path in "src" that
 * ends in ".c.sum". So a node that reads other paths does not wait for it.
 */

#include "graph/pattern_toml_internal.h"

#include <string.h>

#include "files/glob.h"
#include "files/path.h"

#define MAX_STEPS 16 /* lists over lists */
#define ANY       "{any.stem}"
#define DEEP      "{any.dir}"

/* A pattern of files as a path with {...} in it. */
static void of_pattern(const char *p, stet_buf *out) {
    for (bool start = true; *p;) {
        if (start && p[0] == '*' && p[1] == '*' && (!p[2] || p[2] == '/')) {
            stet_buf_str(out, p[2] ? DEEP : DEEP "/" ANY);
            p += 2;
            start = false;
            continue;
        }
        start = *p == '/';
        if (*p == '\\' && p[1]) {
            stet_buf_char(out, p[1]);
            p += 2;
        } else if (*p == '*' || *p == '?') {
            stet_buf_str(out, ANY);
            p++;
        } else if (*p == '[') {
            const char *close = p + 1 + (p[1] == '!' || p[1] == '^');
            close += *close == ']';
            while (*close && *close != ']')
                close += *close == '\\' && close[1] ? 2 : 1;
            stet_buf_str(out, ANY);
            p = *close ? close + 1 : close;
        } else {
            stet_buf_char(out, *p++);
        }
    }
}

/* The part after the last slash, which is never inside {...}; what precedes the slash is the directory. */
static const char *last_part(const char *shape) {
    const char *slash = strrchr(shape, '/');
    return slash ? slash + 1 : shape;
}

/* Adds "NAME" or "NAME.PART" of a file of this shape; false: the text stays as it is. */
static bool put_part(const char *shape, const char *part, size_t len, stet_buf *out) {
    const char *name = last_part(shape), *brace = strrchr(name, '}'), *dot = strrchr(name, '.');
    bool plain = !strstr(name, DEEP), ends = dot && dot > name && (!brace || dot > brace);
    if (!part) {
        stet_buf_str(out, shape);
    } else if (len == 3 && memcmp(part, "dir", 3) == 0) {
        stet_buf_add(out, shape, name > shape ? (size_t)(name - shape) - 1 : 0);
        stet_buf_str(out, name > shape ? "" : ".");
    } else if (plain && len == 4 && memcmp(part, "name", 4) == 0) {
        stet_buf_str(out, name);
    } else if (plain && ends && len == 4 && memcmp(part, "stem", 4) == 0) {
        stet_buf_add(out, name, (size_t)(dot - name));
    } else if (plain && ends && len == 3 && memcmp(part, "ext", 3) == 0) {
        stet_buf_str(out, dot);
    } else {
        return false;
    }
    return true;
}

/* The shape of what `each` names; false: it names several things, or the shape is unknown. */
static bool source_shape(toml_converter *c, stet_value each, int steps, stet_buf *out);

static bool fill(toml_converter *c, const toml_produced *p, int steps, stet_buf *out) {
    stet_value node = stet_value_null(), each = stet_value_null();
    size_t len;
    const char *id = stet_value_as_string(&p->node, &len), *name = "in";
    stet_buf source = STET_BUF(0);
    if (!stet_value_find(c->nodes, id, len, &node) || !stet_value_find(node, "each", 4, &each))
        return false;
    if (stet_value_type(each) == STET_TYPE_OBJECT && stet_value_count(each) == 1) {
        name = stet_value_key_at(each, 0, NULL);
        each = stet_value_at(each, 0);
    }
    bool known = source_shape(c, each, steps, &source);
    for (const char *t = p->path; *t && known;) {
        size_t n = strlen(name);
        const char *close = *t == '{' ? strchr(t, '}') : NULL;
        bool own = close && strncmp(t + 1, name, n) == 0 && (t[n + 1] == '}' || t[n + 1] == '.');
        const char *part = own && t[n + 1] == '.' ? t + n + 2 : NULL;
        if (own && put_part(stet_buf_cstr(&source), part, part ? (size_t)(close - part) : 0, out)) {
            t = close + 1;
        } else if (close) {
            stet_buf_add(out, t, (size_t)(close - t) + 1);
            t = close + 1;
        } else {
            stet_buf_char(out, *t++);
        }
    }
    stet_buf_release(&source);
    return known;
}

static bool source_shape(toml_converter *c, stet_value each, int steps, stet_buf *out) {
    size_t taken = 0, last = 0;
    for (size_t i = 0; stet_value_type(each) == STET_TYPE_ARRAY && i < stet_value_count(each); i++) {
        const char *one = stet_value_at_string(each, i, NULL);
        if (!one || *one != '!') { /* what is left out changes no shape */
            taken++;
            last = i;
        }
    }
    if (taken == 1)
        each = stet_value_at(each, last);
    const char *s = stet_value_type(each) == STET_TYPE_STRING ? stet_value_as_string(&each, NULL) : NULL;
    if (!s || steps == 0)
        return false;
    if (*s != '$') {
        while (s[0] == '.' && s[1] == '/')
            s += 2;
        if (strpbrk(s, "{}"))
            return false;
        of_pattern(s, out);
        return true;
    }
    for (size_t i = 0; i < c->outs.len; i++) { /* "$NODE.NAME" */
        const toml_produced *p = &c->outs.at[i];
        const char *node = stet_value_as_string(&p->node, NULL), *name = stet_value_as_string(&p->name, NULL);
        size_t n = strlen(node);
        if (strncmp(s + 1, node, n) != 0 || s[n + 1] != '.' || strcmp(s + n + 2, name) != 0)
            continue;
        if (p->each)
            return fill(c, p, steps - 1, out);
        stet_buf_str(out, p->path);
        return !strpbrk(p->path, "{}");
    }
    return false;
}

void toml_shape_outputs(toml_converter *c) {
    for (size_t i = 0; i < c->outs.len; i++) {
        stet_buf made = STET_BUF(0);
        char *normal = NULL;
        if (c->outs.at[i].each && fill(c, &c->outs.at[i], MAX_STEPS, &made) &&
            stet_path_normal(NULL, "", stet_buf_cstr(&made), &normal, NULL) == STET_OK)
            c->outs.at[i].shape = normal;
        stet_buf_release(&made);
    }
}
