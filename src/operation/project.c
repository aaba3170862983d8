/* project.c - the operations project list, add and remove: the projects that this user's registry knows. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fleet/repos.h"
#include "operation/args.h"
#include "operation/op.h"
#include "operation/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

#define LOCK_WAIT_MS 10000

static bool give_up(void *ctx) {
    stet_op_ctx *c = ctx;
    return c->cancelled(c);
}

static bool is_project(const char *root) {
    char *config = stet_file_join(root, ".stet/config.toml");
    bool there = stet_file_exists(config);
    stet_free(config);
    return there;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    (void)args;
    char *home;
    stet_value repos;
    stet_status status = stet_home_dir(&home, err);
    if (status != STET_OK)
        return status;
    status = stet_repos_list(home, &repos, err);
    stet_free(home);
    if (status != STET_OK)
        return status;
    stet_value projects = stet_value_array();
    for (size_t i = 0; i < stet_value_count(repos); i++) {
        stet_value entry = stet_value_at(repos, i), path = stet_value_get(entry, "path"), row = stet_value_object();
        stet_value_put(&row, "path", stet_value_retain(path));
        stet_value_put(&row, "addedAt", stet_value_retain(stet_value_get(entry, "addedAt")));
        stet_value_put(&row, "present", stet_value_bool(is_project(stet_value_as_string(&path, NULL))));
        stet_value_push(&projects, row);
    }
    *result = stet_value_object();
    stet_value_put(result, "total", stet_value_int((int64_t)stet_value_count(projects)));
    stet_value_put(result, "projects", projects);
    stet_value_release(repos);
    return STET_OK;
}

static void list_render(stet_render *r, stet_value result) {
    stet_value projects = stet_value_get(result, "projects");
    if (stet_value_count(projects) == 0)
        stet_buf_str(r->out, "no projects are listed; add one with: stet project add\n");
    for (size_t i = 0; i < stet_value_count(projects); i++) {
        stet_value row = stet_value_at(projects, i), path = stet_value_get(row, "path");
        stet_text_value(r, path);
        if (!stet_value_as_bool(stet_value_get(row, "present"))) {
            stet_buf_str(r->out, "  ");
            stet_text_styled(r, STET_STYLE_WARN, "missing");
        }
        stet_buf_char(r->out, '\n');
    }
}

/* The directory that was named, otherwise the current one. Caller frees. */
static char *named_dir(stet_op_ctx *ctx, stet_value args) {
    char *dir = stet_op_path_arg(ctx, args, "dir");
    return dir ? dir : stet_strdup(ctx->project_dir ? ctx->project_dir : ctx->cwd);
}

/* The runs of another program become those of the project: .stet/runs is a link to them, relative if they lie in the
 * project. Nothing of the project's own is replaced. */
static stet_status link_runs(const char *root, const char *dir, stet_error *err) {
    char *real = NULL, *link = stet_file_join(root, ".stet/runs"), *now = NULL;
    struct stat sb;
    stet_status st = stet_file_realpath(dir, &real, err);
    if (st == STET_OK && (stet_sys_stat(real, &sb) != 0 || !S_ISDIR(sb.st_mode)))
        st = stet_fail(err, STET_INVALID, "%s is not a directory", real);
    bool same = st == STET_OK && stet_file_realpath(link, &now, NULL) == STET_OK && strcmp(now, real) == 0;
    /* An empty directory may go; rmdir refuses any other, and whatever is no directory. */
    if (st == STET_OK && !same && stet_sys_lstat(link, &sb) == 0 && (!S_ISDIR(sb.st_mode) || rmdir(link) != 0)) {
        st = stet_fail(err, STET_CONFLICT, "%s is there already, and has runs of its own", link);
        stet_hint(err, "list the directory of the other program as a project of its own: stet init there, and then "
                       "stet project add --runs");
    }
    if (st == STET_OK && !same) {
        size_t len = strlen(root);
        bool inside = strncmp(real, root, len) == 0 && real[len] == '/';
        char *to = inside ? stet_asprintf("../%s", real + len + 1) : stet_strdup(real);
        if (symlink(to, link) != 0)
            st = stet_fail_errno(err, errno, "%s", link);
        stet_free(to);
        /* Whoever asks for the link allows it; all else that the project reaches was allowed when it was opened. */
        stet_value allowed;
        if (st == STET_OK && (st = stet_project_trust(root, STET_TRUST_GRANT, &allowed, err)) == STET_OK)
            stet_value_release(allowed);
    }
    stet_free(now);
    stet_free(link);
    stet_free(real);
    return st;
}

static stet_status add_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repos_wait wait = {LOCK_WAIT_MS, give_up, ctx};
    char *home, *root;
    bool added;
    stet_status status = stet_home_dir(&home, err);
    if (status != STET_OK)
        return status;
    char *dir = named_dir(ctx, args), *runs = stet_op_path_arg(ctx, args, "runs");
    status = stet_repos_add(home, dir, stet_clock_ms(), &wait, &root, &added, err);
    if (status == STET_OK && runs) {
        status = link_runs(root, runs, err);
        if (status != STET_OK)
            stet_free(root);
    }
    stet_free(runs);
    stet_free(dir);
    stet_free(home);
    if (status != STET_OK)
        return status;
    *result = stet_value_object();
    stet_value_put(result, "path", stet_value_string(root));
    stet_value_put(result, "added", stet_value_bool(added));
    stet_free(root);
    return STET_OK;
}

static void add_render(stet_render *r, stet_value result) {
    stet_value path = stet_value_get(result, "path");
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "added")) ? "added " : "already listed: ");
    stet_text_value(r, path);
    stet_buf_char(r->out, '\n');
}

static stet_status remove_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repos_wait wait = {LOCK_WAIT_MS, give_up, ctx};
    char *home, *path;
    stet_status status = stet_home_dir(&home, err);
    if (status != STET_OK)
        return status;
    char *dir = named_dir(ctx, args);
    status = stet_repos_remove(home, dir, &wait, &path, err);
    stet_free(dir);
    stet_free(home);
    if (status != STET_OK)
        return status;
    *result = stet_value_object();
    stet_value_put(result, "path", stet_value_string(path));
    stet_value_put(result, "removed", stet_value_bool(true));
    stet_free(path);
    return STET_OK;
}

static void remove_render(stet_render *r, stet_value result) {
    stet_value path = stet_value_get(result, "path");
    stet_buf_str(r->out, "removed ");
    stet_text_value(r, path);
    stet_buf_str(r->out, " from the list; its files are as they were\n");
}

static const stet_param dir_param[] = {
    {.name = "dir",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "DIR",
     .summary = "A directory of the project; without it the current one"},
    {0},
};

static const stet_param add_params[] = {
    {.name = "dir",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "DIR",
     .summary = "A directory of the project; without it the current one"},
    {.name = "runs",
     .type = STET_PARAM_FILE,
     .metavar = "RUNS",
     .summary = "Its runs are those that another program keeps in this directory (.cw/runs)"},
    {0},
};

static const stet_example list_examples[] = {{"project list", "which projects there are"}, {0}};
static const stet_example add_examples[] = {
    {"project add", "list the project around the current directory"},
    {"project add .", "the same, with the directory named"},
    {0},
};
static const stet_example remove_examples[] = {
    {"project remove", "take the project around the current directory off the list"},
    {0},
};

const stet_op stet_ops_project[] = {
    {.name = "project list",
     .summary = "List the projects that this user has registered",
     .description = "A project that is listed but has no .stet/ any more is shown as missing.",
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"total\",\"projects\"],\"additionalProperties\":false,\"properties\":{"
         "\"total\":{\"type\":\"integer\",\"minimum\":0},"
         "\"projects\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"path\",\"addedAt\","
         "\"present\"],"
         "\"additionalProperties\":false,\"properties\":{\"path\":{\"type\":\"string\"},\"addedAt\":{\"type\":"
         "\"string\"},"
         "\"present\":{\"type\":\"boolean\"}}}}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = list_run,
     .render = list_render},
    {.name = "project add",
     .summary = "Register a project, for commands that look across projects",
     .description =
         "The list is registry/repos.json below STET_HOME. A project is listed once, by the real path of its root, "
         "however it was reached.",
     .params = add_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"path\",\"added\"],\"additionalProperties\":false,"
                      "\"properties\":{\"path\":{\"type\":\"string\"},\"added\":{\"type\":\"boolean\"}}}",
     .examples = add_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = add_run,
     .render = add_render},
    {.name = "project remove",
     .summary = "Take a project off the list of registered ones",
     .description =
         "Nothing in the project itself is touched. A project that is gone from the disk is named by the path that "
         "the list shows.",
     .params = dir_param,
     .result_schema = "{\"type\":\"object\",\"required\":[\"path\",\"removed\"],\"additionalProperties\":false,"
                      "\"properties\":{\"path\":{\"type\":\"string\"},\"removed\":{\"type\":\"boolean\"}}}",
     .examples = remove_examples,
     .flags = STET_OP_NO_PROJECT,
     .run = remove_run,
     .render = remove_render},
    {0},
};
