/* project.c - creates, finds and opens projects, and reads their settings. */

#include "project/project.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/toml.h"
#include "base/utf8.h"
#include "os/file.h"
#include "project/internal.h"

#define CONFIG_MAX (1024 * 1024)

static const char config_text[] =
    "# A project of stet: this file says which version of the format .stet/ has, and its options.\n"
    "version = 1\n"
    "\n"
    "# Where this machine's own files go (databases, indexes), if not to .stet/local: an absolute path, or one\n"
    "# relative to the project. Needed where the project lies on a network file system. A place outside of the "
    "project\n"
    "# has to be allowed once on each machine: stet trust.\n"
    "# local = \"/var/tmp/my-project\"\n";

/* Files that must not be synchronised: those of this machine, and in persist/ the locks and this machine's log. */
static const char ignore_text[] = "local/\n"
                                  "persist/locks/\n"
                                  "persist/entry_log/\n"
                                  "persist/local/\n"
                                  ".stet-temp.*\n";

struct stet_project {
    char *root;  /* real path */
    char *local; /* path of the directory local/ */
    char *own;   /* the directory that `local` in config.toml names; NULL: none */
    char *inner; /* the target of .stet if it is a link; NULL: it is not */
    stet_value config;
};

/* Creates a file if it is absent; `*made` is set if so. */
static stet_status make_file(const char *dir, const char *name, const char *text, bool *made, stet_error *err) {
    char *path = stet_file_join(dir, name);
    stet_error e = STET_ERROR_INIT;
    stet_status status = stet_file_exists(path) ? STET_CONFLICT : stet_file_create(path, text, strlen(text), 0644, &e);
    *made = status == STET_OK;
    if (status == STET_CONFLICT)
        status = STET_OK;
    if (status != STET_OK)
        stet_error_move(err, &e);
    stet_error_clear(&e);
    stet_free(path);
    return status;
}

/* The path of a project becomes part of values, messages and stored data, so it must be UTF-8. */
static stet_status check_path(const char *root, stet_error *err) {
    if (stet_utf8_valid(root, strlen(root)))
        return STET_OK;
    stet_fail(err, STET_INVALID, "%s: the path of a project must be UTF-8", root);
    stet_hint(err, "rename the directory");
    return STET_INVALID;
}

/* Checks the path that the directory will have: the real path of the part that exists already. */
static stet_status check_new_path(const char *dir, stet_error *err) {
    char *real = NULL, *at = stet_strdup(dir);
    while (stet_file_realpath(at, &real, NULL) != STET_OK && strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
        char *up = stet_file_dirname(at);
        stet_free(at);
        at = up;
    }
    stet_status status = check_path(dir, err);
    if (status == STET_OK && real)
        status = check_path(real, err);
    stet_free(real);
    stet_free(at);
    return status;
}

stet_status stet_project_init(const char *dir, bool *created, stet_error *err) {
    if (!dir)
        return stet_fail_null(err);
    stet_status status = check_new_path(dir, err); /* before anything is created */
    if (status != STET_OK)
        return status;
    char *inner = stet_file_join(dir, ".stet");
    bool made = false;
    status = stet_file_mkdirs(inner, 0755, err);
    if (status == STET_OK)
        status = make_file(inner, ".gitignore", ignore_text, &made, err);
    /* config.toml comes last, because it makes the directory a project: an init that was killed has not made one, and
     * can be repeated. */
    if (status == STET_OK)
        status = make_file(inner, "config.toml", config_text, &made, err);
    stet_free(inner);
    if (status == STET_OK && created)
        *created = made;
    return status;
}

static stet_status check_version(stet_value config, const char *path, stet_error *err) {
    stet_value version = stet_value_get(config, "version");
    if (stet_value_type(version) != STET_TYPE_INT || stet_value_as_int(version) < 1) {
        stet_fail(err, STET_INVALID, "%s: `version` must be a number from 1 on", path);
        stet_hint(err, "write `version = %d` at the top of it", STET_PROJECT_VERSION);
        return STET_INVALID;
    }
    if (stet_value_as_int(version) <= STET_PROJECT_VERSION)
        return STET_OK;
    stet_fail(err, STET_UNSUPPORTED, "%s: has version %lld of the format; this stet (%s) knows up to version %d", path,
              (long long)stet_value_as_int(version), stet_version(), STET_PROJECT_VERSION);
    stet_hint(err, "use the newer stet that made this project");
    return STET_UNSUPPORTED;
}

/* An absolute path without ".", ".." and empty parts. */
static char *without_dots(const char *path) {
    stet_buf b = STET_BUF(0);
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.') {
            while (b.len > 0 && b.data[--b.len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && *path == '.')) {
            stet_buf_char(&b, '/');
            stet_buf_add(&b, path, n);
        }
        path += n + (path[n] == '/');
    }
    char *out = stet_strdup(b.len ? stet_buf_cstr(&b) : "/");
    stet_buf_release(&b);
    return out;
}

static stet_status place_local(stet_project *p, const char *path, stet_error *err) {
    stet_value local = stet_value_get(p->config, "local");
    if (stet_value_type(local) == STET_TYPE_NULL) {
        p->local = stet_file_join(p->root, ".stet/local");
        return STET_OK;
    }
    size_t len = 0;
    const char *text = stet_value_as_string(&local, &len);
    if (stet_value_type(local) != STET_TYPE_STRING || len == 0 || strlen(text) != len)
        return stet_fail(err, STET_INVALID, "%s: `local` must be the path of a directory, in quotes", path);
    p->local = stet_file_join(p->root, text);
    char *own = without_dots(p->local);
    size_t own_len = strlen(own);
    bool around = strcmp(own, "/") == 0 ||
                  (strncmp(p->root, own, own_len) == 0 && (!p->root[own_len] || p->root[own_len] == '/'));
    if (around) { /* the project lies inside it, so that not everything in it can belong to stet */
        stet_free(own);
        return STET_OK;
    }
    p->own = own;
    project_own_add(p->own);
    return STET_OK;
}

/* .stet may be a link to a directory elsewhere. */
static void place_inner(stet_project *p) {
    char *inner = stet_file_join(p->root, ".stet");
    struct stat st;
    if (stet_sys_lstat(inner, &st) == 0 && S_ISLNK(st.st_mode) && stet_file_realpath(inner, &p->inner, NULL) == STET_OK)
        project_own_add(p->inner);
    stet_free(inner);
}

/* Nothing behind an untrusted link or path is read. */
static stet_status check_trust(const stet_project *p, stet_value reaches, stet_error *err) {
    bool trusted;
    stet_status status = project_is_trusted(p->root, reaches, &trusted, err);
    if (status != STET_OK || trusted)
        return status;
    stet_value first = stet_value_at(reaches, 0), what = stet_value_get(first, "what"),
               where = stet_value_get(first, "where");
    status = stet_fail(err, STET_DENIED, "%s: this project reaches outside of itself: %s leads to %s", p->root,
                       stet_value_as_string(&what, NULL), stet_value_as_string(&where, NULL));
    stet_hint(err, "if you trust this project, allow that once on this machine with `stet trust`");
    return status;
}

static stet_status parse_config(stet_project *p, stet_error *err) {
    char *path = stet_file_join(p->root, ".stet/config.toml");
    stet_buf text = STET_BUF(0);
    stet_status status = stet_file_read(path, CONFIG_MAX, &text, err);
    if (status == STET_OK) {
        status = stet_toml_parse(stet_buf_cstr(&text), text.len, &p->config, err);
        if (status != STET_OK)
            stet_fail_in(err, "%s", path);
    }
    if (status == STET_OK)
        status = check_version(p->config, path, err);
    if (status == STET_OK)
        status = place_local(p, path, err);
    if (status == STET_OK)
        place_inner(p);
    stet_buf_release(&text);
    stet_free(path);
    return status;
}

/* What the settings name. A setting of a wrong type reaches nothing; whoever uses it says what is wrong. */
static stet_status reach_settings(stet_project *p, stet_value *reaches, stet_error *err) {
    stet_value dir = stet_project_setting(p, "persist.defaults.dir_path"),
               remote = stet_project_setting(p, "calls.remote");
    stet_status status = STET_OK;
    if (stet_value_type(stet_project_setting(p, "local")) ==
        STET_TYPE_STRING) /* .stet/local counts as a link of .stet */
        status = project_reach_path(p->root, p->local, "`local` in .stet/config.toml", reaches, err);
    if (status == STET_OK && stet_value_type(dir) == STET_TYPE_STRING) {
        char *path = stet_project_path(p, stet_value_as_string(&dir, NULL));
        status = project_reach_path(p->root, path, "`persist.defaults.dir_path` in .stet/config.toml", reaches, err);
        stet_free(path);
    }
    if (status == STET_OK && stet_value_type(remote) == STET_TYPE_STRING) {
        const char *uri = stet_value_as_string(&remote, NULL);
        static const char scheme[] = "file://";
        const char *path = strncmp(uri, scheme, sizeof scheme - 1) == 0 ? uri + sizeof scheme - 1 : NULL;
        if (path && path[0] == '/')
            status = project_reach_path(p->root, path, "`calls.remote` in .stet/config.toml", reaches, err);
    }
    return status;
}

/* Reads config.toml and lists what the project reaches. With `check` it stops at the first place that is not trusted,
 * before it looks there: .stet and config.toml can be links themselves. */
static stet_status read_config(stet_project *p, bool check, stet_value *reaches, stet_error *err) {
    /* Directories in which stet opens files by name. What lies in `temp` may be links that commands have made. */
    static const struct {
        const char *name;
        int depth;
    } below[] = {{"spaces", 1}, {"exec", 1}, {"files", 2}, {"pieces", 1}, {"persist", 1}, {"registry", 1}};
    char *inner = stet_file_join(p->root, ".stet"), *persist = stet_file_join(inner, "persist");
    stet_status status = project_reach_link(inner, ".stet", reaches, err);
    if (status == STET_OK)
        status = project_reach_inside(inner, ".stet", reaches, err);
    if (status == STET_OK && check)
        status = check_trust(p, *reaches, err);
    if (status == STET_OK)
        status = parse_config(p, err);
    if (status == STET_OK)
        status = reach_settings(p, reaches, err);
    if (status == STET_OK && check)
        status = check_trust(p, *reaches, err);
    if (status == STET_OK)
        status = project_reach_inside(persist, ".stet/persist", reaches, err);
    bool near = false; /* `local` elsewhere is allowed as a whole or not at all */
    if (status == STET_OK)
        status = stet_file_inside(p->root, p->local, &near, err);
    if (status == STET_OK && near) {
        status = project_reach_inside(p->local, "local", reaches, err);
        for (size_t i = 0; i < sizeof below / sizeof *below && status == STET_OK; i++) {
            char *dir = stet_file_join(p->local, below[i].name), *name = stet_file_join("local", below[i].name);
            status = project_reach_below(dir, name, below[i].depth, reaches, err);
            stet_free(name);
            stet_free(dir);
        }
    }
    if (status == STET_OK && check)
        status = check_trust(p, *reaches, err);
    stet_free(persist);
    stet_free(inner);
    return status;
}

static bool holds_project(const char *dir) {
    char *config = stet_file_join(dir, ".stet/config.toml");
    struct stat st;
    /* Without the hook, and regardless of permissions: a config.toml that can't be read exists, and opening it says why
     * it can't. */
    bool there = stat(config, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
    stet_free(config);
    return there;
}

static stet_status open_at(const char *root, bool check, stet_value *reaches, stet_project **out, stet_error *err) {
    if (!holds_project(root)) {
        stet_fail(err, STET_NOT_FOUND, "%s: no stet project (it has no .stet/config.toml)", root);
        stet_hint(err, "make one with `stet init`");
        return STET_NOT_FOUND;
    }
    stet_project *p = stet_alloc_zero(sizeof *p);
    stet_status status = stet_file_realpath(root, &p->root, err);
    if (status == STET_OK)
        status = check_path(p->root, err);
    if (status == STET_OK)
        status = read_config(p, check, reaches, err);
    if (status != STET_OK) {
        stet_project_close(p);
        return status;
    }
    *out = p;
    return STET_OK;
}

stet_status stet_project_open(const char *root, stet_project **out, stet_error *err) {
    if (!root || !out)
        return stet_fail_null(err);
    stet_value reaches = stet_value_array();
    stet_status status = open_at(root, true, &reaches, out, err);
    stet_value_release(reaches);
    return status;
}

stet_status stet_project_open_beside(const stet_project *p, const char *local, stet_project **out, stet_error *err) {
    stet_status status = stet_project_open(p->root, out, err);
    if (status != STET_OK)
        return status;
    stet_free((*out)->local);
    (*out)->local = stet_strdup(local);
    return STET_OK;
}

/* The nearest directory upwards that holds a project. */
static stet_status find_root(const char *from, char **out, stet_error *err) {
    char *at;
    stet_status status = stet_file_realpath(from, &at, err);
    if (status != STET_OK)
        return status;
    while (!holds_project(at)) {
        if (strcmp(at, "/") == 0) {
            stet_free(at);
            status = stet_fail(err, STET_NOT_FOUND, "no stet project in %s, nor in a directory above it", from);
            stet_hint(err, "make one with `stet init`");
            return status;
        }
        char *up = stet_file_dirname(at);
        stet_free(at);
        at = up;
    }
    *out = at;
    return STET_OK;
}

stet_status stet_project_find(const char *from, stet_project **out, stet_error *err) {
    if (!from || !out)
        return stet_fail_null(err);
    char *root;
    stet_status status = find_root(from, &root, err);
    if (status != STET_OK)
        return status;
    status = stet_project_open(root, out, err);
    stet_free(root);
    return status;
}

stet_status stet_project_trust(const char *from, stet_trust what, stet_value *out, stet_error *err) {
    char *root;
    stet_project *p = NULL;
    stet_value reaches = stet_value_array();
    bool trusted = false;
    stet_status status = find_root(from, &root, err);
    if (status != STET_OK)
        return status;
    status = open_at(root, false, &reaches, &p, err);
    if (status == STET_OK && what != STET_TRUST_SHOW)
        status = project_trust_write(p->root, what == STET_TRUST_GRANT ? reaches : stet_value_null(), err);
    if (status == STET_OK)
        status = project_is_trusted(p->root, reaches, &trusted, err);
    if (status == STET_OK) {
        *out = stet_value_object();
        stet_value_put(out, "root", stet_value_string(p->root));
        stet_value_put(out, "trusted", stet_value_bool(trusted));
        stet_value_put(out, "reaches", stet_value_retain(reaches));
    }
    stet_value_release(reaches);
    stet_project_close(p);
    stet_free(root);
    return status;
}

void stet_project_close(stet_project *p) {
    if (!p)
        return;
    if (p->own)
        project_own_drop(p->own);
    if (p->inner)
        project_own_drop(p->inner);
    stet_value_release(p->config);
    stet_free(p->own);
    stet_free(p->inner);
    stet_free(p->local);
    stet_free(p->root);
    stet_free(p);
}

const char *stet_project_root(const stet_project *p) {
    return p ? p->root : NULL;
}

stet_value stet_project_config(const stet_project *p) {
    return p->config;
}

stet_value stet_project_setting(const stet_project *p, const char *dotted) {
    stet_value at = p->config;
    for (const char *key = dotted;;) {
        size_t len = strcspn(key, ".");
        stet_value next;
        if (stet_value_type(at) != STET_TYPE_OBJECT || !stet_value_find(at, key, len, &next))
            return stet_value_null();
        at = next;
        if (!key[len])
            return at;
        key += len + 1;
    }
}

char *stet_project_path(const stet_project *p, const char *relative) {
    if (strcmp(relative, "local") == 0)
        return stet_strdup(p->local);
    if (strncmp(relative, "local/", 6) == 0)
        return stet_file_join(p->local, relative + 6);
    char *inner = stet_file_join(p->root, ".stet");
    char *path = relative[0] ? stet_file_join(inner, relative) : stet_strdup(inner);
    stet_free(inner);
    return path;
}
