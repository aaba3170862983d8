/* calls.c - the calls of a project: settings, nodes, and the executor that runs them. */

#include "call/calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "call/adapter.h"
#include "call/function.h"
#include "call/orchestrate_local.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "process/local.h"
#include "repo/remote.h"

static stet_status wrong(stet_error *err, const char *name, const char *what) {
    return stet_fail(err, STET_INVALID, "calls.%s in config.toml is %s", name, what);
}

static stet_status take_ms(stet_value table, const char *name, int64_t *out, stet_error *err) {
    stet_value v;
    if (!stet_value_find(table, name, strlen(name), &v))
        return STET_OK;
    int64_t ms = stet_units_ms(v);
    if (ms < 0)
        return wrong(err, name, "no time: write seconds, or \"90s\", \"10m\", \"2h\"");
    *out = ms;
    return STET_OK;
}

static stet_status take_count(stet_value table, const char *name, int64_t most, int64_t *out, stet_error *err) {
    stet_value v;
    if (!stet_value_find(table, name, strlen(name), &v))
        return STET_OK;
    if (stet_value_type(v) != STET_TYPE_INT || stet_value_as_int(v) < 1 || stet_value_as_int(v) > most)
        return wrong(err, name, "not in its range");
    *out = stet_value_as_int(v);
    return STET_OK;
}

static stet_status take_pools(stet_value table, stet_value *out, stet_error *err) {
    stet_value v;
    *out = stet_value_null();
    if (!stet_value_find(table, "pools", 5, &v))
        return STET_OK;
    if (stet_value_type(v) != STET_TYPE_OBJECT)
        return wrong(err, "pools", "no table: write [calls.pools] and NAME = PLACES");
    for (size_t i = 0; i < stet_value_count(v); i++) {
        size_t len;
        const char *name = stet_value_key_at(v, i, &len);
        stet_value n = stet_value_at(v, i);
        if (!stet_function_pool_name(name, len) || stet_value_type(n) != STET_TYPE_INT || stet_value_as_int(n) < 1 ||
            stet_value_as_int(n) > STET_SHARE_MAX)
            return stet_fail(err, STET_INVALID,
                             "calls.pools.%.64s in config.toml: a pool has a name of letters, digits, _ and -, and "
                             "from 1 to %d places",
                             name, STET_SHARE_MAX);
    }
    *out = stet_value_retain(v);
    return STET_OK;
}

stet_status stet_calls_config_read(const stet_project *p, stet_calls_config *out, stet_error *err) {
    stet_value table = stet_project_setting(p, "calls"), remote;
    int64_t adapters = 16;
    stet_calls_config c = {.backoff = {.attempts = STET_BACKOFF_ATTEMPTS,
                                       .first_ms = STET_BACKOFF_FIRST_MS,
                                       .most_ms = STET_BACKOFF_MOST_MS},
                           .poll_timeout_ms = STET_ADAPTER_POLL_MS,
                           .lease_ms = STET_ORCH_LEASE_MS};
    stet_status status = STET_OK;
    if (stet_value_type(table) != STET_TYPE_NULL && stet_value_type(table) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_INVALID, "calls in config.toml is no table");
    status = take_count(table, "attempts", 1000, &c.backoff.attempts, err);
    if (status == STET_OK)
        status = take_ms(table, "first", &c.backoff.first_ms, err);
    if (status == STET_OK)
        status = take_ms(table, "most", &c.backoff.most_ms, err);
    if (status == STET_OK)
        status = take_ms(table, "poll_timeout", &c.poll_timeout_ms, err);
    if (status == STET_OK)
        status = take_ms(table, "lease", &c.lease_ms, err);
    if (status == STET_OK)
        status = take_count(table, "adapters", 1000, &adapters, err);
    if (status == STET_OK && stet_value_find(table, "remote", 6, &remote)) {
        if (stet_value_type(remote) != STET_TYPE_STRING)
            status = wrong(err, "remote", "no URI: write \"file:///...\"");
        else
            c.remote = stet_strdup(stet_value_as_string(&remote, NULL));
    }
    if (status == STET_OK)
        status = take_count(table, "slots", STET_SHARE_MAX, &c.slots, err);
    if (status == STET_OK)
        status = take_pools(table, &c.pools, err);
    c.adapters = (size_t)adapters;
    if (status == STET_OK)
        *out = c;
    else
        stet_free(c.remote);
    return status;
}

void stet_calls_config_release(stet_calls_config *c) {
    stet_free(c->remote);
    stet_value_release(c->pools);
    *c = (stet_calls_config){0};
}

char *stet_calls_dir(const stet_project *p) {
    return stet_project_path(p, "local/calls");
}

stet_status stet_calls_open(stet_project *p, stet_repo *repo, struct uv_loop_s *loop, const stet_calls_config *config,
                            const char *remote, const stet_executor_opts *more, stet_executor **out, stet_error *err) {
    stet_executor_opts o = more ? *more : (stet_executor_opts){0};
    char *dir = stet_calls_dir(p);
    char *uri = NULL;
    remote = remote ? remote : config->remote;
    stet_status status = remote ? stet_calls_remote(repo, remote, &uri, err) : STET_OK;
    o.root = stet_project_root(p);
    o.dir = dir;
    o.remote = uri;
    o.backoff = config->backoff;
    o.poll_timeout_ms = config->poll_timeout_ms;
    o.adapters = config->adapters;
    if (status == STET_OK)
        status = stet_executor_open(repo, loop, &o, out, err);
    stet_free(dir);
    stet_free(uri);
    return status;
}

bool stet_calls_is_local(const char *function) {
    static const char prefix[] = STET_ADAPTER_SCHEME "stet-exec-local";
    const char *rest = function + sizeof prefix - 1;
    return strncmp(function, prefix, sizeof prefix - 1) == 0 && (*rest == '/' || *rest == '?' || !*rest);
}

stet_status stet_calls_check(const char *function, stet_error *err) {
    stet_adapter_uri u;
    if (stet_calls_is_local(function))
        return stet_backend_local_check(function, err);
    stet_status status = stet_adapter_uri_parse(function, &u, err);
    if (status == STET_OK)
        stet_adapter_uri_release(&u);
    return status;
}

/* The literal that an argument is. What a node means goes into the call, not which node it was: so the same inputs are
 * the same call, however they were made, and a remote needs nothing else to know them. */
static stet_status arg_node(stet_repo *r, const stet_call_arg *arg, stet_hash *out, stet_error *err) {
    stet_hash datum;
    stet_status status =
        arg->node ? stet_repo_eval(r, *arg->node, &datum, err) : stet_repo_put_value(r, arg->value, &datum, err);
    return status == STET_OK ? stet_node_literal(datum, stet_repo_sink(r), out, err) : status;
}

static stet_value bytes_value(const void *bytes, size_t len) {
    char *text = stet_alloc(len * 4 / 3 + 8);
    stet_value v = stet_value_object(), inner = stet_value_object();
    stet_value_put(&inner, "bytes@1", stet_value_string_n(text, stet_base64url_encode(bytes, len, text)));
    stet_value_put(&v, "/", inner);
    stet_free(text);
    return v;
}

static stet_status put_bytes(stet_repo *r, const void *bytes, size_t len, stet_hash *datum, stet_error *err) {
    stet_value v = bytes_value(bytes, len);
    stet_status status = stet_repo_put_value(r, v, datum, err);
    stet_value_release(v);
    return status;
}

/* One file of the code, as a datum: its content, or the SHA-256 of it. */
static stet_status put_file(stet_repo *r, const char *root, const char *path, bool in_place, stet_hash *datum,
                            stet_error *err) {
    char *full = stet_file_join(root, path);
    stet_hash hash;
    stet_status status = in_place ? stet_file_hash(full, &hash, NULL, err) : STET_OK;
    if (status == STET_OK && in_place)
        status = put_bytes(r, hash.bytes, sizeof hash.bytes, datum, err);
    else if (status == STET_OK) {
        int fd = stet_sys_open(full, O_RDONLY, 0);
        struct stat st;
        /* As long as it is now: one that grows while it is read must have an end. */
        status = fd < 0 || stet_sys_fstat(fd, &st) != 0 ? stet_fail_errno(err, errno, "cannot read %s", full)
                                                        : stet_repo_put_file(r, fd, full, st.st_size, datum, err);
        if (fd >= 0)
            stet_sys_close(fd);
    }
    stet_free(full);
    return status;
}

/* {PATH: datum...} */
static stet_status put_files(stet_repo *r, const char *root, const stet_names *names, bool in_place, stet_value *code,
                             stet_error *err) {
    stet_names paths = *names;
    stet_status status = STET_OK;
    stet_value map = stet_value_object();
    for (size_t i = 0; i < paths.len && status == STET_OK; i++) {
        stet_hash datum;
        stet_value name;
        status = stet_value_string_checked(paths.at[i], strlen(paths.at[i]), &name, err);
        if (status != STET_OK) {
            stet_fail_in(err, "the name of a file that the call runs");
            break;
        }
        stet_value_release(name);
        status = put_file(r, root, paths.at[i], in_place, &datum, err);
        if (status == STET_OK)
            stet_value_put(&map, paths.at[i], stet_hash_text(datum));
    }
    if (status == STET_OK)
        *code = map;
    else
        stet_value_release(map);
    return status;
}

static void put_if_any(stet_value *to, const char *name, stet_value v) {
    if (stet_value_count(v) > 0)
        stet_value_put(to, name, stet_value_retain(v));
}

/* Looks for ways to the project among the arguments. */
static stet_status look_at_args(stet_repo *r, const stet_function *f, const stet_calls_node_spec *s,
                                stet_function_found *found, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < s->count && status == STET_OK && !found->unseen; i++) {
        stet_hash datum;
        stet_value v = stet_value_retain(s->args[i].value);
        if (s->args[i].node) {
            status = stet_repo_eval(r, *s->args[i].node, &datum, err);
            if (status == STET_OK)
                status = stet_repo_value(r, datum, &v, err);
        }
        char *why = status == STET_OK ? stet_function_value_above(f, s->root, v) : NULL;
        if (why) {
            stet_free(found->open);
            found->open = why;
            found->unseen = true;
        }
        stet_value_release(v);
    }
    return status;
}

stet_status stet_calls_unseen(stet_repo *r, const stet_calls_node_spec *s, char **why, stet_error *err) {
    stet_function f;
    stet_function_found found;
    *why = NULL;
    if (!stet_calls_is_local(s->function))
        return STET_OK;
    stet_status status = stet_function_parse(s->function, &f, err);
    if (status != STET_OK)
        return status;
    stet_value env = stet_function_environment(&f);
    stet_function_bind(&f, env);
    status = stet_function_find(&f, s->root, &found, err);
    if (status == STET_OK) {
        status = look_at_args(r, &f, s, &found, err);
        if (status == STET_OK && found.unseen) {
            *why = found.open;
            found.open = NULL;
        }
        stet_function_found_release(&found);
    }
    stet_value_release(env);
    stet_function_release(&f);
    return status;
}

/* What a job of stet-exec-local gets: its files, and in `beside` its environment. Both are null or empty for others. */
static stet_status put_job(stet_repo *r, const stet_calls_node_spec *s, stet_value *code, stet_value *beside,
                           stet_error *err) {
    stet_function f;
    stet_function_found found;
    *code = stet_value_null();
    if (!stet_calls_is_local(s->function))
        return STET_OK;
    stet_status status = stet_function_parse(s->function, &f, err);
    if (status != STET_OK)
        return status;
    stet_value env = stet_function_environment(&f), dirs = stet_value_array(), job = stet_value_object();
    stet_function_bind(&f, env);
    status = stet_function_find(&f, s->root, &found, err);
    if (status == STET_OK) {
        status = put_files(r, s->root, &found.code, f.in_place, code, err);
        for (size_t i = 0; i < found.dirs.len && status == STET_OK; i++) {
            stet_value name = stet_value_null();
            status = stet_value_string_checked(found.dirs.at[i], strlen(found.dirs.at[i]), &name, err);
            stet_value_push(&dirs, name);
        }
        put_if_any(&job, "env", env);
        put_if_any(&job, "dirs", dirs);
        put_if_any(&job, "places", found.places);
        if (status == STET_OK)
            status = look_at_args(r, &f, s, &found, err);
        if (found.open)
            stet_value_put(&job, "open", stet_value_bool(true));
        if (stet_value_count(job) >
            0) { /* as bytes: texts of a value are normalised, and these must stay as they are */
            size_t len;
            char *text = stet_json_print(job, STET_JSON_CANONICAL, &len);
            stet_value_put(beside, "job", bytes_value(text, len));
            stet_free(text);
        }
        if (s->open && status == STET_OK) {
            *s->open = found.open;
            found.open = NULL;
        }
        stet_function_found_release(&found);
    }
    stet_value_release(env);
    stet_value_release(dirs);
    stet_value_release(job);
    stet_function_release(&f);
    return status;
}

stet_status stet_calls_node(stet_repo *r, const stet_calls_node_spec *s, stet_hash *node, stet_error *err) {
    stet_status status = stet_calls_check(s->function, err);
    if (status != STET_OK)
        return status;
    stet_node_more more = {.code = stet_value_null()};
    stet_hash beside, *inputs = stet_alloc_zero((s->count + 1) * sizeof *inputs);
    status = stet_repo_begin(r, err);
    bool begun = status == STET_OK;
    for (size_t i = 0; i < s->count && status == STET_OK; i++) {
        status = arg_node(r, &s->args[i], &inputs[i], err);
        if (status != STET_OK)
            stet_fail_in(err, "argument %zu", i + 1);
    }
    stet_value around = stet_value_object();
    if (s->open)
        *s->open = NULL;
    if (stet_value_type(s->beside) != STET_TYPE_NULL)
        stet_value_put(&around, "inputs", stet_value_retain(s->beside));
    if (status == STET_OK)
        status = put_job(r, s, &more.code, &around, err);
    if (status == STET_OK && stet_value_count(around) > 0) {
        status = stet_repo_put_value(r, around, &beside, err);
        more.beside = &beside;
    }
    stet_value_release(around);
    if (status == STET_OK)
        status = stet_node_call_with(s->function, inputs, s->count, &more, stet_repo_sink(r), node, err);
    stet_value_release(more.code);
    if (status == STET_OK)
        status = stet_repo_commit(r, err);
    else if (begun)
        stet_repo_rollback(r);
    stet_free(inputs);
    return status;
}

stet_status stet_calls_owner(const char *dir, char out[200], stet_error *err) {
    char *home = NULL, machine[40], *real = NULL;
    stet_status status = stet_home_dir(&home, err);
    if (status == STET_OK)
        status = stet_machine_id(home, machine, err);
    if (status == STET_OK)
        status = stet_file_mkdirs(dir, 0755, err);
    if (status == STET_OK)
        status = stet_file_realpath(dir, &real, err);
    if (status == STET_OK) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(stet_hash_of(real, strlen(real)), hex);
        snprintf(out, 200, "%s/%.16s", machine, hex);
    }
    stet_free(home);
    stet_free(real);
    return status;
}

stet_status stet_calls_lend(stet_hub *hub, const char *dir, stet_repo **lent, stet_error *err) {
    *lent = NULL;
    if (stet_hub_repo(hub))
        return STET_OK;
    char *local = stet_file_dirname(dir), *path = stet_file_join(local, "repo.db");
    stet_status status = stet_repo_open_path(path, 0, lent, err);
    if (status == STET_OK)
        stet_hub_lend(hub, *lent);
    stet_free(path);
    stet_free(local);
    return status;
}

stet_status stet_calls_remote(stet_repo *r, const char *text, char **uri, stet_error *err) {
    stet_remote_rows rows = {0};
    if (strchr(text, ':')) { /* no name of a remote */
        stet_status fine = stet_hub_check_uri(text, err);
        if (fine == STET_OK)
            *uri = stet_strdup(text);
        return fine;
    }
    stet_status status = stet_remote_list(r, &rows, err);
    const char *found = NULL;
    for (size_t i = 0; i < rows.len; i++)
        if (strcmp(rows.at[i].name, text) == 0)
            found = rows.at[i].uri;
    if (status == STET_OK && !found) {
        status = stet_fail(err, STET_NOT_FOUND, "there is no remote %.200s", text);
        stet_hint(err,
                  "write file:///PATH, postgres://USER@HOST/DATABASE, or the name of a remote that `stet remote list` "
                  "shows");
    }
    if (status == STET_OK)
        status = stet_hub_check_uri(found, err);
    if (status == STET_OK)
        *uri = stet_strdup(found);
    else if (found)
        stet_fail_in(err, "the remote %.200s", text);
    stet_remote_rows_release(&rows);
    return status;
}

/* Logs are named by their execution. */
static stet_status sweep_logs(stet_project *p, stet_repo *r, int64_t before_ms, bool dry_run, int64_t *count,
                              stet_error *err) {
    char *dir = stet_calls_dir(p), *logs = stet_file_join(dir, "logs");
    stet_names names = {0};
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_file_list(logs, &names, &inner);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&inner);
        status = STET_OK;
    }
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        char *path = stet_file_join(logs, names.at[i]), execution[37] = "";
        struct stat st;
        stet_attempt a;
        snprintf(execution, sizeof execution, "%s", names.at[i]);
        bool old = stet_sys_stat(path, &st) == 0 && (int64_t)st.st_mtime * 1000 < before_ms;
        stet_status known = old ? stet_attempt_get(r, execution, &a, &inner) : STET_OK;
        if (old && known == STET_OK)
            stet_attempt_release(&a);
        stet_error_clear(&inner);
        if (known == STET_NOT_FOUND) {
            ++*count;
            if (!dry_run)
                status = stet_file_remove(path, &inner);
        }
        stet_free(path);
    }
    stet_error_move(err, &inner);
    stet_names_release(&names);
    stet_free(logs);
    stet_free(dir);
    return status;
}

stet_status stet_calls_sweep(stet_project *p, stet_repo *r, bool dry_run, int64_t *count, stet_error *err) {
    int64_t before_ms = stet_clock_ms() - STET_CALLS_KEEP_MS;
    stet_hub *own = stet_hub_of_repo(r);
    stet_status status = stet_claim_sweep(own, STET_CALLS_KEEP_MS, dry_run, count, err);
    stet_hub_close(own);
    stet_local_sweep(dry_run, count);
    return status == STET_OK ? sweep_logs(p, r, before_ms, dry_run, count, err) : status;
}
