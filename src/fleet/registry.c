/* registry.c - the registry: records of all runs of all known projects.
 *
 * Invariants
 *   G1  Loading creates no file, changes no file and takes no lock.
 *   G2  What a record says about a run's state was read from exactly the bytes of its state.json: now, or at an earlier
 *       look since which the file's stamp has not changed.
 *   G3  Every directory under runs/ becomes a record, or is reported as unreadable, or is one that somebody is still
 *       creating ("~new.*").
 *   G4  Damage to one file hides only what that file alone says.
 */

#include "fleet/registry.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/utf8.h"
#include "fleet/overlay.h"
#include "fleet/repos.h"
#include "fleet/run.h"
#include "fleet/sources.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "project/project.h"

#define PREFIX_MIN   6
#define LOCK_WAIT_MS 60000

typedef STET_VEC(stet_source_job) jobs;

const char *stet_fleet_index_status_name(stet_fleet_index_status s) {
    static const char *const names[] = {"valid", "stale", "absent"};
    return names[s];
}

static void add_problem(stet_registry *reg, const char *repo, const char *path, stet_error *why) {
    stet_value p = stet_value_object(), text;
    stet_value_put(&p, "repo", repo != NULL ? stet_value_string(repo) : stet_value_null());
    if (path == NULL || stet_value_string_checked(path, strlen(path), &text, NULL) != STET_OK)
        text = stet_value_null();
    stet_value_put(&p, "path", text);
    stet_value_put(&p, "code", stet_value_string(stet_status_name(why->status)));
    stet_value_put(&p, "message", stet_value_string(why->message));
    stet_value_put(&p, "hint", stet_value_string(why->hint));
    stet_value_push(&reg->problems, p);
    stet_error_clear(why);
}

/* Prints a directory's name, which may be any bytes, as ASCII. */
static const char *shown_name(stet_registry *reg, const char *name) {
    char *copy = stet_arena_strdup(&reg->arena, name);
    if (!stet_utf8_valid(copy, strlen(copy)))
        for (char *s = copy; *s != 0; s++)
            if ((unsigned char)*s >= 0x80)
                *s = '?';
    return copy;
}

/* Adds the project at `path`, or around it with `walk_up`, unless it is there already in whichever way it was reached.
 * A listed one must be there itself: its parent is another project. */
static void add_repo(stet_registry *reg, const char *path, bool walk_up) {
    stet_error why = STET_ERROR_INIT;
    stet_project *p = NULL;
    char *real = NULL;
    const char *root = path;
    stet_status st = walk_up ? stet_project_find(path, &p, &why) : stet_project_open(path, &p, &why);
    if (st == STET_OK)
        root = stet_project_root(p);
    else if (stet_file_realpath(path, &real, NULL) == STET_OK)
        root = real;
    bool known = false;
    for (size_t i = 0; i < reg->repos.len; i++)
        known = known || strcmp(reg->repos.at[i].root, root) == 0;
    if (!known && !stet_utf8_valid(root, strlen(root))) {
        stet_error_clear(&why);
        stet_fail(&why, STET_INVALID, "the path of a project is not valid UTF-8");
        add_problem(reg, NULL, NULL, &why);
    } else if (!known) {
        stet_registry_repo repo = {.root = stet_arena_strdup(&reg->arena, root), .present = st == STET_OK};
        char *runs = p ? stet_project_path(p, "runs") : stet_asprintf("%s/.stet/runs", root);
        char *registry = p ? stet_project_path(p, "local/registry") : stet_asprintf("%s/.stet/local/registry", root);
        repo.runs_dir = stet_arena_strdup(&reg->arena, runs);
        repo.registry_dir = stet_arena_strdup(&reg->arena, registry);
        stet_free(runs);
        stet_free(registry);
        for (int i = 0; i < STET_OVERLAYS; i++)
            repo.overlays[i] = stet_value_object();
        /* A listed project that no longer exists is not damage: its runs are reported as missing. */
        if (st != STET_OK && st != STET_NOT_FOUND)
            add_problem(reg, repo.root, repo.root, &why);
        *stet_vec_add(&reg->repos) = repo;
    }
    stet_error_clear(&why);
    stet_free(real);
    stet_project_close(p);
}

static int by_root(const void *a, const void *b) {
    return strcmp(((const stet_registry_repo *)a)->root, ((const stet_registry_repo *)b)->root);
}

static void load_overlays(stet_registry *reg, stet_registry_repo *repo) {
    for (int kind = 0; kind < STET_OVERLAYS; kind++) {
        stet_error why = STET_ERROR_INIT;
        stet_value marks;
        if (stet_overlay_load(repo->registry_dir, (stet_overlay)kind, &marks, &why) == STET_OK) {
            stet_value_release(repo->overlays[kind]);
            repo->overlays[kind] = marks;
        } else {
            char *path = stet_file_join(repo->registry_dir, stet_overlay_file((stet_overlay)kind));
            add_problem(reg, repo->root, path, &why);
            stet_free(path);
        }
    }
}

/* Marks that another program keeps beside its runs, if runs/ is a link to them: in the same form, in registry/ beside
 * that directory. Our own marks win. Each mark says whose it is. */
static void load_others(stet_registry *reg, stet_registry_repo *repo) {
    static const stet_overlay kinds[] = {STET_OVERLAY_ARCHIVE, STET_OVERLAY_PROVENANCE};
    struct stat sb;
    char *runs = NULL;
    if (stet_sys_lstat(repo->runs_dir, &sb) != 0 || !S_ISLNK(sb.st_mode) ||
        stet_file_realpath(repo->runs_dir, &runs, NULL) != STET_OK)
        return;
    char *above = stet_file_dirname(runs), *dir = stet_file_join(above, "registry");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        stet_error why = STET_ERROR_INIT;
        stet_value marks;
        if (stet_overlay_load(dir, kinds[k], &marks, &why) != STET_OK) {
            char *path = stet_file_join(dir, stet_overlay_file(kinds[k]));
            add_problem(reg, repo->root, path, &why);
            stet_free(path);
            continue;
        }
        for (size_t i = 0; i < stet_value_count(marks); i++) {
            size_t len;
            const char *id = stet_value_key_at(marks, i, &len);
            if (stet_value_find(repo->overlays[kinds[k]], id, len, NULL))
                continue;
            stet_value mark = stet_value_retain(stet_value_at(marks, i)), by;
            if (stet_value_string_checked(dir, strlen(dir), &by, NULL) == STET_OK)
                stet_value_put(&mark, STET_OVERLAY_BY, by);
            stet_value_put_n(&repo->overlays[kinds[k]], id, len, mark);
        }
        stet_value_release(marks);
    }
    stet_free(dir);
    stet_free(above);
    stet_free(runs);
}

static stet_status find_repos(stet_registry *reg, const stet_registry_opts *opts, stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    if (opts->root != NULL) {
        stet_project *p;
        stet_status st = stet_project_find(opts->root, &p, err);
        if (st != STET_OK)
            return st;
        stet_project_close(p);
        add_repo(reg, opts->root, true);
        if (reg->repos.len == 0)
            return stet_fail(err, STET_INVALID, "the path of the project is not valid UTF-8");
        reg->root = reg->repos.at[0].root;
    }
    if (opts->scope == STET_SCOPE_HOME) {
        stet_value known;
        if (stet_repos_list(opts->home, &known, &why) == STET_OK) {
            for (size_t i = 0; i < stet_value_count(known); i++) {
                stet_value path = stet_value_get(stet_value_at(known, i), "path");
                add_repo(reg, stet_value_as_string(&path, NULL), false);
            }
            stet_value_release(known);
        } else {
            char *path = stet_asprintf("%s/registry/repos.json", opts->home);
            add_problem(reg, NULL, path, &why);
            stet_free(path);
        }
    }
    if (opts->also != NULL && opts->scope == STET_SCOPE_HOME)
        add_repo(reg, opts->also, false);
    if (reg->repos.len > 1)
        qsort(reg->repos.at, reg->repos.len, sizeof *reg->repos.at, by_root);
    for (size_t i = 0; i < reg->repos.len; i++) {
        load_overlays(reg, &reg->repos.at[i]);
        load_others(reg, &reg->repos.at[i]);
    }
    return STET_OK;
}

static char *index_path(const stet_registry *reg, stet_scope scope) {
    if (scope == STET_SCOPE_HOME)
        return stet_asprintf("%s/registry/index.json", reg->home);
    const stet_registry_repo *repo = stet_registry_repo_of(reg, reg->root);
    return stet_file_join(repo->registry_dir, "index.json");
}

/* The index is read in a thread of its own while directories are looked through. */
typedef struct index_task {
    char *path;
    stet_arena arena;
    stet_fleet_index index;
    stet_error why;
    stet_status status;
} index_task;

static void *load_index(void *arg) {
    index_task *t = arg;
    t->status = stet_fleet_index_load(t->path, &t->arena, &t->index, &t->why);
    return NULL;
}

/* Reports entries beside the runs that are not runs. */
static void look_through(stet_registry *reg, uint32_t repo_index, bool stamps, stet_sights *out) {
    const stet_registry_repo *repo = &reg->repos.at[repo_index];
    stet_error why = STET_ERROR_INIT;
    size_t kept = out->len;
    if (repo->present && stet_sources_look(repo->runs_dir, repo_index, stamps, &reg->arena, out, &why) != STET_OK)
        add_problem(reg, repo->root, repo->runs_dir, &why);
    for (size_t i = kept; i < out->len; i++) {
        const stet_sight *s = &out->at[i];
        if (s->status == STET_OK)
            out->at[kept++] = *s;
        else
            *stet_vec_add(&reg->unreadable) =
                (stet_unreadable){shown_name(reg, s->name), repo->root, s->status, s->reason};
    }
    out->len = kept;
}

/* Rows by project and id. */
typedef struct row_map {
    stet_map map;
    stet_buf key;
} row_map;

static void set_key(row_map *m, const char *repo, const char *id) {
    stet_buf_clear(&m->key);
    stet_buf_add(&m->key, repo, strlen(repo) + 1);
    stet_buf_str(&m->key, id);
}

/* Which rows still say what their sources say, and which sources must be read. Rows are taken over in their own order,
 * which is the order of records already. */
static void match(stet_registry *reg, const stet_sights *seen, bool verify, jobs *work) {
    enum { UNSEEN, CHANGED, UNCHANGED };
    row_map rows = {.key = STET_BUF(0)};
    stet_fleet_records *all = &reg->index.rows;
    unsigned char *fate = stet_alloc_zero(all->len + 1);
    for (size_t i = 0; i < all->len; i++) {
        set_key(&rows, all->at[i]->repo, all->at[i]->id);
        stet_map_put(&rows.map, rows.key.data, rows.key.len, (stet_slot){.n = i});
    }
    for (size_t i = 0; i < seen->len; i++) {
        const stet_sight *s = &seen->at[i];
        const stet_registry_repo *repo = &reg->repos.at[s->repo];
        set_key(&rows, repo->root, s->name);
        stet_slot *slot = stet_map_get(&rows.map, rows.key.data, rows.key.len);
        stet_fleet_record *row = slot != NULL ? all->at[slot->n] : NULL;
        bool same = row != NULL && !verify && row->stamp.inode != 0 && stet_stamp_equal(&row->stamp, &s->stamp);
        if (row != NULL) {
            row->repo = repo->root;
            row->repo_index = s->repo;
            fate[slot->n] = same ? UNCHANGED : CHANGED;
        }
        if (!same)
            *stet_vec_add(work) = (stet_source_job){
                .name = s->name, .runs_dir = repo->runs_dir, .root = repo->root, .repo = s->repo, .row = row};
    }
    for (size_t i = 0; i < all->len; i++) {
        stet_fleet_record *row = all->at[i];
        if (fate[i] == UNCHANGED)
            *stet_vec_add(&reg->records) = row;
        else if (fate[i] == UNSEEN) {
            row->freshness = STET_FRESH_MISSING;
            if (stet_registry_repo_of(reg, row->repo) != NULL)
                *stet_vec_add(&reg->missing) = row;
        }
    }
    stet_free(fate);
    stet_map_release(&rows.map);
    stet_buf_release(&rows.key);
}

static void settle(stet_registry *reg, jobs *work) {
    for (size_t i = 0; i < work->len; i++) {
        stet_source_job *j = &work->at[i];
        if (j->record == NULL) {
            if (j->status == STET_OK)
                continue; /* cancelled */
            *stet_vec_add(&reg->unreadable) =
                (stet_unreadable){shown_name(reg, j->name), j->root, j->status, j->reason};
            if (j->row != NULL) {
                j->row->freshness = STET_FRESH_MISSING;
                *stet_vec_add(&reg->missing) = j->row;
            }
            continue;
        }
        bool same = j->row != NULL && stet_hash_equal(j->row->fingerprint, j->record->fingerprint);
        j->record->freshness = j->row != NULL && !same ? STET_FRESH_STALE : STET_FRESH_VALID;
        j->record->persisted = j->row;
        *stet_vec_add(&reg->records) = j->record;
        if (j->row == NULL)
            *stet_vec_add(&reg->fresh) = j->record;
        else if (!same)
            *stet_vec_add(&reg->stale) = j->record;
    }
}

/* Is somebody at it, or was: then a free lock means that it was left. Tasks get into the file of a run when they begin:
 * by its tasks a run may be queued still, or completed already, and under way by its stage. */
static bool is_under_way(const stet_fleet_record *r) {
    bool begun = strcmp(r->loop_stage, stet_stage_name(STET_STAGE_SETUP)) != 0 &&
                 strcmp(r->loop_stage, stet_stage_name(STET_STAGE_DONE)) != 0;
    return r->derived == STET_LIFE_RUNNING ||
           ((r->derived == STET_LIFE_QUEUED || r->derived == STET_LIFE_COMPLETED) && begun);
}

static void lay_over(stet_registry *reg, stet_fleet_record *r) {
    const stet_registry_repo *repo = &reg->repos.at[r->repo_index];
    size_t len = strlen(r->id);
    stet_value mark;
    r->archived = stet_value_find(repo->overlays[STET_OVERLAY_ARCHIVE], r->id, len, &mark);
    r->under = stet_fleet_record_surface(r);
    if (is_under_way(r)) {
        char *dir = stet_fleet_record_dir(r);
        stet_driver_state driver = stet_runfile_driver(dir, NULL);
        if (driver == STET_DRIVER_GONE)
            r->under = STET_LIFE_INTERRUPTED;
        else if (driver == STET_DRIVER_ALIVE && r->derived == STET_LIFE_COMPLETED)
            r->under = STET_LIFE_RUNNING;
        stet_free(dir);
    }
    r->lifecycle = r->under;
    if (r->archived) {
        stet_value at = stet_value_get(mark, "archivedAt"), reason = stet_value_get(mark, "reason");
        const char *when = stet_value_as_string(&at, NULL), *why = stet_value_as_string(&reason, NULL);
        r->archived_at = when != NULL ? stet_arena_strdup(&reg->arena, when) : "";
        r->archive_reason = why != NULL ? stet_arena_strdup(&reg->arena, why) : "";
        r->lifecycle = STET_LIFE_ARCHIVED;
    }
    /* The origin that the run itself names takes precedence over a link in the overlay. */
    if (r->provenance.generation == 0 && stet_value_find(repo->overlays[STET_OVERLAY_PROVENANCE], r->id, len, &mark))
        r->provenance = stet_provenance_read(mark, &reg->arena);
    if (stet_value_find(repo->overlays[STET_OVERLAY_LABELS], r->id, len, &mark))
        r->labels = stet_labels_text(mark, &reg->arena);
}

static int by_order(const void *a, const void *b) {
    return stet_fleet_record_compare(*(stet_fleet_record *const *)a, *(stet_fleet_record *const *)b);
}

static int by_name(const void *a, const void *b) {
    const stet_unreadable *x = a, *y = b;
    int order = strcmp(x->repo, y->repo);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static void sort_records(stet_fleet_records *v) {
    bool sorted = true;
    for (size_t i = 1; i < v->len && sorted; i++)
        sorted = stet_fleet_record_compare(v->at[i - 1], v->at[i]) < 0;
    if (!sorted)
        qsort(v->at, v->len, sizeof *v->at, by_order);
}

static void conclude(stet_registry *reg) {
    sort_records(&reg->records);
    sort_records(&reg->stale);
    sort_records(&reg->fresh);
    sort_records(&reg->missing);
    if (reg->unreadable.len > 1)
        qsort(reg->unreadable.at, reg->unreadable.len, sizeof *reg->unreadable.at, by_name);
    reg->fingerprint = stet_fleet_index_fingerprint(&reg->records);
    bool drift = reg->stale.len + reg->fresh.len + reg->missing.len > 0;
    reg->status = !reg->index.present ? STET_FLEET_INDEX_ABSENT
                  : drift             ? STET_FLEET_INDEX_STALE
                                      : STET_FLEET_INDEX_VALID;
}

/* Everything but the overlays: what the sources say, and how that compares with the index. */
static stet_status load_sources(const stet_registry_opts *opts, stet_registry **out, stet_error *err) {
    if (opts->scope == STET_SCOPE_REPO && opts->root == NULL)
        return stet_fail(err, STET_NOT_FOUND, "there is no project here, and the scope is repo");
    stet_registry *reg = stet_alloc_zero(sizeof *reg);
    reg->scope = opts->scope;
    reg->problems = stet_value_array();
    reg->home = stet_arena_strdup(&reg->arena, opts->home);
    stet_status st = find_repos(reg, opts, err);
    if (st != STET_OK) {
        stet_registry_free(reg);
        return st;
    }
    int64_t started_ns = stet_clock_ns();
    index_task task = {.path = index_path(reg, opts->scope)};
    struct stat sb;
    pthread_t thread;
    bool indexed = stet_sys_stat(task.path, &sb) == 0;
    bool apart = indexed && sb.st_size > (1 << 20) && pthread_create(&thread, NULL, load_index, &task) == 0;
    if (!apart)
        load_index(&task);
    stet_sights seen = {0};
    for (size_t i = 0; i < reg->repos.len; i++)
        look_through(reg, (uint32_t)i, indexed && !opts->verify, &seen);
    if (apart)
        pthread_join(thread, NULL);
    if (task.status == STET_OK)
        reg->index = task.index;
    else {
        reg->index = (stet_fleet_index){.generated_at = ""};
        add_problem(reg, opts->scope == STET_SCOPE_REPO ? reg->root : NULL, task.path, &task.why);
    }
    stet_free(task.path);
    jobs work = {0};
    match(reg, &seen, opts->verify, &work);
    stet_vec_release(&seen);
    stet_sources_opts reading = {started_ns, opts->cancelled, opts->context};
    stet_sources_read(&reading, work.at, work.len, &reg->arenas, &reg->arena_count);
    reg->read = work.len;
    /* The arena of the rows is released together with those of the readers. */
    reg->arenas[reg->arena_count++] = task.arena;
    settle(reg, &work);
    stet_vec_release(&work);
    if (opts->cancelled != NULL && opts->cancelled(opts->context)) {
        stet_registry_free(reg);
        return stet_fail(err, STET_CANCELLED, "interrupted while reading runs");
    }
    conclude(reg);
    *out = reg;
    return STET_OK;
}

stet_status stet_registry_load(const stet_registry_opts *opts, stet_registry **out, stet_error *err) {
    stet_registry *reg = NULL;
    stet_status st = load_sources(opts, &reg, err);
    if (st != STET_OK)
        return st;
    assert(reg != NULL);
    *out = reg;
    for (size_t i = 0; i < reg->records.len; i++)
        lay_over(reg, reg->records.at[i]);
    stet_registry_resolve(reg);
    for (size_t i = 0; i < reg->records.len; i++)
        reg->counts[reg->records.at[i]->lifecycle]++;
    return STET_OK;
}

/* The index of one project, out of the records of all. */
static stet_status store_repo(stet_registry *reg, const char *generated_at, stet_error *err) {
    const stet_registry_repo *repo = stet_registry_repo_of(reg, reg->root);
    stet_fleet_records rows = {0};
    uint32_t at = (uint32_t)(repo - reg->repos.at);
    for (size_t i = 0; i < reg->records.len; i++)
        if (reg->records.at[i]->repo_index == at) {
            stet_fleet_record *copy = stet_arena_dup(&reg->arena, reg->records.at[i], sizeof *copy);
            copy->repo_index = 0;
            *stet_vec_add(&rows) = copy;
        }
    char *path = index_path(reg, STET_SCOPE_REPO);
    stet_status st = stet_file_mkdirs(repo->registry_dir, 0755, err);
    if (st == STET_OK)
        st = stet_fleet_index_store(path, "repo", repo->root, generated_at, &repo->root, 1, &rows, err);
    stet_vec_release(&rows);
    stet_free(path);
    return st;
}

/* Restores links that the runs themselves name and that the overlay has lost. */
static stet_status store_links(stet_registry *reg, stet_error *err) {
    for (size_t k = 0; k < reg->repos.len; k++) {
        stet_value lost = stet_value_object(), had;
        for (size_t i = 0; i < reg->records.len; i++) {
            const stet_fleet_record *r = reg->records.at[i];
            if (r->repo_index == k && r->provenance.generation > 0 &&
                !stet_value_find(reg->repos.at[k].overlays[STET_OVERLAY_PROVENANCE], r->id, strlen(r->id), &had))
                stet_value_put(&lost, r->id, stet_provenance_value(&r->provenance));
        }
        stet_error why = STET_ERROR_INIT;
        stet_status st = stet_overlay_update(reg->repos.at[k].registry_dir, STET_OVERLAY_PROVENANCE, lost, &why);
        stet_value_release(lost);
        /* If another project's overlay can't be written, this index is still brought up to date. */
        if (st != STET_OK && reg->root != NULL && strcmp(reg->root, reg->repos.at[k].root) == 0 && st != STET_CORRUPT &&
            st != STET_UNSUPPORTED) {
            stet_error_move(err, &why);
            return st;
        }
        stet_error_clear(&why);
    }
    return STET_OK;
}

static stet_status store_home(stet_registry *reg, const char *generated_at, stet_error *err) {
    const char **roots = stet_alloc((reg->repos.len + 1) * sizeof *roots);
    for (size_t i = 0; i < reg->repos.len; i++)
        roots[i] = reg->repos.at[i].root;
    char *path = index_path(reg, STET_SCOPE_HOME);
    stet_status st =
        stet_fleet_index_store(path, "home", reg->home, generated_at, roots, reg->repos.len, &reg->records, err);
    stet_free(path);
    stet_free(roots);
    return st;
}

stet_status stet_registry_refresh(const stet_registry_opts *opts, stet_registry **out, stet_error *err) {
    if (opts->scope == STET_SCOPE_REPO && opts->root == NULL)
        return stet_fail(err, STET_NOT_FOUND, "there is no project here, and the scope is repo");
    char *lock_path = stet_file_join(opts->home, "registry/index.lock");
    stet_lock *lock = NULL;
    stet_registry *reg = NULL;
    char now[STET_TIME_TEXT];
    stet_status st = stet_repos_make_home(opts->home, err);
    if (st == STET_OK && opts->root != NULL) {
        char *root = NULL;
        bool added;
        st = stet_repos_add(opts->home, opts->root, stet_clock_ms(), NULL, &root, &added, err);
        stet_free(root);
    }
    /* One process at a time: the result of an older scan must not replace a newer one. */
    if (st == STET_OK)
        st = stet_lock_open(lock_path, STET_LOCK_PLAIN, &lock, err);
    if (st == STET_OK)
        st = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, LOCK_WAIT_MS, err);
    stet_registry_opts all = *opts;
    all.scope = STET_SCOPE_HOME;
    if (st == STET_OK)
        st = load_sources(&all, &reg, err);
    stet_time_print(stet_clock_ms(), now);
    assert(st != STET_OK || reg != NULL);
    if (st == STET_OK)
        st = store_links(reg, err);
    if (st == STET_OK)
        st = store_home(reg, now, err);
    if (st == STET_OK && reg->root != NULL)
        st = store_repo(reg, now, err);
    stet_lock_close(lock);
    stet_registry_free(reg);
    stet_free(lock_path);
    if (st != STET_OK)
        return st;
    all = *opts;
    all.verify = false; /* every file was just read */
    return stet_registry_load(&all, out, err);
}

void stet_registry_free(stet_registry *reg) {
    if (reg == NULL)
        return;
    for (size_t i = 0; i < reg->repos.len; i++)
        for (int k = 0; k < STET_OVERLAYS; k++)
            stet_value_release(reg->repos.at[i].overlays[k]);
    stet_vec_release(&reg->repos);
    stet_vec_release(&reg->records);
    stet_vec_release(&reg->unreadable);
    stet_vec_release(&reg->stale);
    stet_vec_release(&reg->fresh);
    stet_vec_release(&reg->missing);
    stet_vec_release(&reg->index.rows);
    stet_value_release(reg->problems);
    for (size_t i = 0; i < reg->arena_count; i++)
        stet_arena_release(&reg->arenas[i]);
    stet_free(reg->arenas);
    stet_arena_release(&reg->arena);
    stet_free(reg);
}
