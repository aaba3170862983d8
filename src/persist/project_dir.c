/* project_dir.c - where the persist directory of a project lies, and how it is configured. */

#include "persist/project_dir.h"

static stet_status read_config(stet_project *project, stet_persist_config *config, stet_error *err) {
    *config = stet_persist_config_default();
    stet_status status = stet_persist_config_read(stet_project_setting(project, "persist"), config, err);
    if (status != STET_OK)
        stet_fail_in(err, "%s/.stet/config.toml", stet_project_root(project));
    return status;
}

static char *directory(stet_project *project, const stet_persist_config *config) {
    return config->dir_path[0] == '/' ? stet_strdup(config->dir_path) : stet_project_path(project, config->dir_path);
}

stet_status stet_persist_project_path(stet_project *project, char **out, stet_error *err) {
    stet_persist_config config;
    stet_status status = read_config(project, &config, err);
    if (status == STET_OK)
        *out = directory(project, &config);
    return status;
}

stet_status stet_persist_open_project(stet_project *project, bool read_only,
                                      void (*change)(stet_persist_config *, void *), void *ctx, stet_persist **out,
                                      stet_error *err) {
    stet_persist_config config;
    stet_status status = read_config(project, &config, err);
    if (status != STET_OK)
        return status;
    if (change)
        change(&config, ctx);
    char *dir = directory(project, &config), *local = stet_project_path(project, "local/persist"),
         *temp = stet_project_path(project, "local/temp");
    stet_persist_place place = {
        .dir = dir, .local_dir = local, .temp_dir = temp, .config = &config, .read_only = read_only};
    status = stet_persist_open_place(&place, out, err);
    stet_free(temp);
    stet_free(local);
    stet_free(dir);
    return status;
}
