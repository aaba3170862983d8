/* fleet.h - making projects and runs for tests of the fleet. Include after expect.h. */
#ifndef STET_TEST_FLEET_H
#define STET_TEST_FLEET_H

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "fleet/registry.h"
#include "os/file.h"
#include "project/project.h"

static char fleet_home[PATH_MAX] __attribute__((unused));

static __attribute__((unused)) void fleet_put(const char *path, const char *text) {
    char *dir = stet_file_dirname(path);
    OK(stet_file_mkdirs(dir, 0755, &err));
    stet_free(dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A project in ./NAME; returns its real path, to be freed with free. */
static __attribute__((unused)) char *fleet_project(const char *name) {
    bool created;
    OK(stet_project_init(name, &created, &err));
    char *real = realpath(name, NULL);
    assert_non_null(real);
    if (getcwd(fleet_home, sizeof fleet_home - 16) == NULL)
        fail();
    strcat(fleet_home, "/home");
    return real;
}

/* A conforming state: tasks as JSON text without the brackets, members as further text (",\"labels\":[]"). */
static __attribute__((unused)) char *fleet_state(const char *id, const char *created, const char *tasks,
                                                 const char *more) {
    return stet_asprintf("{\"schemaVersion\":2,\"id\":\"%s\",\"createdAt\":\"%s\",\"updatedAt\":\"%s\",\"app\":{\"id\":"
                         "\"app\",\"version\":"
                         "\"1\",\"title\":\"App\"},\"workflowId\":\"flow\",\"title\":\"Title of "
                         "%s\",\"loopStage\":\"running\",\"inputs\":"
                         "{\"k\":\"needle-%s\"},\"options\":{},\"tasks\":[%s]%s}\n",
                         id, created, created, id, id, tasks, more);
}

static __attribute__((unused)) void fleet_run(const char *root, const char *id, const char *created, const char *tasks,
                                              const char *more) {
    char *path = stet_asprintf("%s/.stet/runs/%s/state.json", root, id), *text = fleet_state(id, created, tasks, more);
    fleet_put(path, text);
    stet_free(path);
    stet_free(text);
}

#define DONE_TASK   "{\"id\":\"t\",\"status\":\"completed\"}"
#define FAILED_TASK "{\"id\":\"t\",\"status\":\"failed\",\"error\":{\"message\":\"boom\"}}"
#define HALF_DONE   "{\"id\":\"a\",\"status\":\"completed\"},{\"id\":\"b\",\"status\":\"pending\"}"

static __attribute__((unused)) stet_registry *fleet_load(const char *root, stet_scope scope) {
    stet_registry *reg;
    stet_registry_opts opts = {.home = fleet_home, .root = root, .scope = scope};
    OK(stet_registry_load(&opts, &reg, &err));
    return reg;
}

static __attribute__((unused)) void fleet_refresh(const char *root, stet_scope scope) {
    stet_registry *reg;
    stet_registry_opts opts = {.home = fleet_home, .root = root, .scope = scope};
    OK(stet_registry_refresh(&opts, &reg, &err));
    stet_registry_free(reg);
}

/* The record with this id, or NULL. */
static __attribute__((unused)) stet_fleet_record *fleet_find(stet_registry *reg, const char *id) {
    for (size_t i = 0; i < reg->records.len; i++)
        if (strcmp(reg->records.at[i]->id, id) == 0)
            return reg->records.at[i];
    return NULL;
}

static __attribute__((unused)) char *fleet_read(const char *path) {
    stet_buf b = STET_BUF(0);
    OK(stet_file_read(path, 0, &b, &err));
    return stet_buf_take(&b, NULL);
}

#endif
