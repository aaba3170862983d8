/* lookout.c - which files a piece follows, and the watch over them during a drive. */

#include "drive/lookout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "files/path.h"
#include "files/watch.h"
#include "graph/piece.h"
#include "memory/observe.h"
#include "os/clock.h"

#define PAGE    1000 /* pieces or actions per page */
#define STEP_MS 100  /* how often the thread checks whether it should end */
#define TAKE_MS 1000 /* how often it tries to take over from another process */

typedef struct named {
    void (*each)(void *ctx, const char *id);
    void *ctx;
} named;

static bool name_link(void *ctx, stet_value binding, stet_pathref place) {
    named *n = ctx;
    stet_value link, id;
    (void)place;
    if (!stet_link_is(binding, &link))
        return true;
    id = stet_value_get(link, "id");
    const char *text = stet_value_text(&id, "");
    if (strncmp(text, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0 ||
        strncmp(text, STET_GLOB_PREFIX, strlen(STET_GLOB_PREFIX)) == 0)
        n->each(n->ctx, text);
    return true;
}

/* Collects what one node refers to: in its inputs, the file of its code, and the environment variables that a command
 * gets. */
static void name_node(named *n, stet_value node) {
    stet_binding_walk(stet_value_get(node, "inputs"), name_link, n);
    stet_value module = stet_value_get(node, "module"), env = stet_value_get(module, "env"),
               code = stet_value_get(stet_value_get(module, "implementation"), "file");
    char *path;
    if (stet_value_type(code) == STET_TYPE_STRING &&
        stet_path_normal(NULL, "", stet_value_as_string(&code, NULL), &path, NULL) == STET_OK) {
        char *id = stet_file_id(path);
        n->each(n->ctx, id);
        stet_free(id);
        stet_free(path);
    }
    for (size_t k = 0; stet_value_type(env) == STET_TYPE_ARRAY && k < stet_value_count(env); k++) {
        stet_value name = stet_value_at(env, k);
        if (stet_value_type(name) != STET_TYPE_STRING || strchr(stet_value_as_string(&name, NULL), '='))
            continue; /* "NAME=VALUE" is set */
        char *id = stet_asprintf(STET_ENV_PREFIX "%s", stet_value_as_string(&name, NULL));
        n->each(n->ctx, id);
        stet_free(id);
    }
}

/* Visits the nodes of a piece; with `closed_too` even if the piece is known to refer to no files. */
static stet_status walk_piece(stet_space *space, int64_t branch, const char *piece, bool closed_too,
                              stet_node_visit each, void *ctx, stet_error *err) {
    stet_piece *p;
    stet_process *g;
    stet_status status = stet_piece_load(space, branch, piece, -1, &p, err);
    if (status != STET_OK)
        return status;
    if (closed_too || !p->closed) {
        status = stet_piece_process(space, branch, p, -1, &g, err);
        if (status == STET_OK) {
            stet_process_walk(g, each, ctx);
            stet_process_free(g);
        }
    }
    stet_piece_free(p);
    return status;
}

typedef stet_status each_piece(void *ctx, const char *piece, stet_error *err);

static stet_status walk_pieces(stet_space *space, int64_t branch, each_piece *each, void *ctx, stet_error *err) {
    char *after = NULL;
    bool more = true;
    stet_status status = STET_OK;
    while (more && status == STET_OK) {
        stet_value names = stet_value_null();
        status = stet_piece_names(space, branch, after, PAGE, &names, &more, err);
        for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
            stet_value v = stet_value_at(names, i);
            stet_free(after);
            after = stet_strdup(stet_value_as_string(&v, NULL));
            status = each(ctx, after, err);
        }
        more = more && stet_value_count(names) > 0;
        stet_value_release(names);
    }
    stet_free(after);
    return status;
}

static void name_one(void *ctx, const char *top, stet_value node) {
    (void)top;
    name_node(ctx, node);
}

stet_status stet_lookout_names(stet_space *space, int64_t branch, const char *piece,
                               void (*each)(void *ctx, const char *id), void *ctx, stet_error *err) {
    named n = {each, ctx};
    return walk_piece(space, branch, piece, false, name_one, &n, err);
}

static void follow(void *ctx, const char *id) {
    if (stet_files_follow(ctx, id, NULL) != STET_OK) {
        /* not a valid path or variable name: nothing to follow */
    }
}

stet_status stet_lookout_follow(stet_files *files, stet_space *space, const char *branch, const char *piece,
                                stet_error *err) {
    int64_t number;
    stet_status status = stet_space_branch(space, branch ? branch : "", &number, err);
    return status == STET_OK ? stet_lookout_names(space, number, piece, follow, files, err) : status;
}

static bool is_file(const char *id) {
    return strncmp(id, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0 ||
           strncmp(id, STET_GLOB_PREFIX, strlen(STET_GLOB_PREFIX)) == 0 ||
           strncmp(id, STET_ENV_PREFIX, strlen(STET_ENV_PREFIX)) == 0;
}

/* An absent file has no document, but the actions that looked for it have recorded the read. */
static stet_status follow_reads(stet_files *files, stet_space *space, int64_t branch, stet_error *err) {
    stet_action_filter filter = {.generation = -1, .limit = PAGE};
    stet_status status = STET_OK;
    for (bool more = true; more && status == STET_OK; more = filter.after != 0) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record *at;
        size_t count = 0;
        int64_t next = 0;
        status = stet_observe_list(space, branch, &filter, &arena, &at, &count, &next, err);
        for (size_t i = 0; i < count && status == STET_OK; i++)
            for (size_t k = 0; at[i].observed && k < at[i].read_count; k++)
                if (!at[i].reads[k].space && at[i].reads[k].name.id && is_file(at[i].reads[k].name.id))
                    follow(files, at[i].reads[k].name.id);
        filter.after = next;
        stet_arena_release(&arena);
    }
    return status;
}

typedef struct all_pieces {
    stet_space *space;
    int64_t branch;
    named n;
    const char *piece;
    void (*output)(void *ctx, const char *piece, const char *node, const char *path);
    void *ctx;
} all_pieces;

static stet_status name_piece(void *ctx, const char *piece, stet_error *err) {
    all_pieces *a = ctx;
    return walk_piece(a->space, a->branch, piece, false, name_one, &a->n, err);
}

stet_status stet_lookout_names_all(stet_space *space, int64_t branch, void (*each)(void *ctx, const char *id),
                                   void *ctx, stet_error *err) {
    all_pieces a = {.space = space, .branch = branch, .n = {each, ctx}};
    return walk_pieces(space, branch, name_piece, &a, err);
}

static void output_one(void *ctx, const char *top, stet_value node) {
    all_pieces *a = ctx;
    stet_value module = stet_value_get(node, "module"), produces = stet_value_get(module, "produces"),
               depfile = stet_value_get(module, "depfile");
    for (size_t i = 0; stet_value_type(produces) == STET_TYPE_OBJECT && i < stet_value_count(produces); i++) {
        stet_value path = stet_value_at(produces, i);
        if (stet_value_type(path) == STET_TYPE_STRING)
            a->output(a->ctx, a->piece, top, stet_value_as_string(&path, NULL));
    }
    if (stet_value_type(depfile) == STET_TYPE_STRING)
        a->output(a->ctx, a->piece, top, stet_value_as_string(&depfile, NULL));
}

static stet_status outputs_of_piece(void *ctx, const char *piece, stet_error *err) {
    all_pieces *a = ctx;
    a->piece = piece;
    return walk_piece(a->space, a->branch, piece, true, output_one, a, err);
}

stet_status stet_lookout_outputs_all(stet_space *space, int64_t branch,
                                     void (*each)(void *ctx, const char *piece, const char *node, const char *path),
                                     void *ctx, stet_error *err) {
    all_pieces a = {.space = space, .branch = branch, .output = each, .ctx = ctx};
    return walk_pieces(space, branch, outputs_of_piece, &a, err);
}

stet_status stet_lookout_follow_all(stet_files *files, stet_space *space, const char *branch, stet_error *err) {
    int64_t number;
    stet_status status = stet_space_branch(space, branch ? branch : "", &number, err);
    if (status == STET_OK)
        status = stet_lookout_names_all(space, number, follow, files, err);
    return status == STET_OK ? follow_reads(files, space, number, err) : status;
}

struct stet_lookout {
    char *root, *space;
    pthread_t thread;
    bool started;
    atomic_bool stop;
    atomic_int state;
    pthread_mutex_t lock; /* guards `why` */
    stet_error why;
};

static void give_up(stet_lookout *w, stet_error *err) {
    pthread_mutex_lock(&w->lock);
    stet_error_clear(&w->why);
    stet_error_move(&w->why, err);
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->state, STET_LOOKOUT_FAILED);
}

static void pause_ms(stet_lookout *w, int64_t ms) {
    for (int64_t t = 0; t < ms && !atomic_load(&w->stop); t += STEP_MS)
        stet_clock_sleep_ms(STEP_MS);
}

static void *watch(void *ctx) {
    stet_lookout *w = ctx;
    stet_error err = STET_ERROR_INIT;
    stet_project *project = NULL;
    stet_space *space = NULL;
    stet_files *files = NULL;
    stet_watcher *watcher = NULL;
    stet_status status = stet_project_open(w->root, &project, &err);
    if (status == STET_OK)
        status = stet_space_open(project, w->space, 0, &space, &err);
    while (status == STET_OK && !atomic_load(&w->stop)) {
        if (!watcher) {
            status = stet_files_open(project, space, &files, &err);
            if (status == STET_OK)
                status = stet_watcher_open(project, space, files, &watcher, &err);
            atomic_store(&w->state, STET_LOOKOUT_WATCHING);
            if (status == STET_BUSY) {
                stet_error_clear(&err);
                stet_files_close(files);
                files = NULL;
                status = STET_OK;
                pause_ms(w, TAKE_MS);
            }
        } else {
            status = stet_watcher_step(watcher, STEP_MS, NULL, &err);
        }
    }
    stet_watcher_close(watcher);
    stet_files_close(files);
    stet_space_close(space);
    stet_project_close(project);
    if (status != STET_OK)
        give_up(w, &err);
    return NULL;
}

stet_lookout *stet_lookout_start(stet_project *project, const char *space) {
    stet_lookout *w = stet_alloc_zero(sizeof *w);
    w->root = stet_strdup(stet_project_root(project));
    w->space = stet_strdup(space);
    pthread_mutex_init(&w->lock, NULL);
    w->started = pthread_create(&w->thread, NULL, watch, w) == 0;
    if (!w->started) {
        stet_error err = STET_ERROR_INIT;
        stet_fail(&err, STET_LIMIT, "cannot start a thread that watches files");
        give_up(w, &err);
    }
    return w;
}

stet_lookout_state stet_lookout_look(stet_lookout *w, stet_error *why) {
    stet_lookout_state state = (stet_lookout_state)atomic_load(&w->state);
    if (state == STET_LOOKOUT_FAILED && why) {
        pthread_mutex_lock(&w->lock);
        stet_error_move(why, &w->why);
        pthread_mutex_unlock(&w->lock);
    }
    return state;
}

void stet_lookout_stop(stet_lookout *w) {
    if (!w)
        return;
    atomic_store(&w->stop, true);
    if (w->started)
        pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    stet_error_clear(&w->why);
    stet_free(w->root);
    stet_free(w->space);
    stet_free(w);
}
