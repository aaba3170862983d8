/* places.c - which directories must be watched so that no change of a followed file is missed. */

#include "files/places.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/vec.h"
#include "os/file.h"

#define MAX_LINKS   40  /* as the kernel has it */
#define MAX_DEVICES 256 /* that were asked what kind of file system they are */

/* Somebody's interest in a name, or in everything of a directory; a list per name. Position 0 is no interest. */
typedef struct interest {
    const char *key; /* NULL: a step on the way, of whomever */
    uint32_t next;
    bool members; /* of a whole directory: changes of members too */
} interest;

/* What the kernel listens to. */
typedef struct place {
    stet_map names; /* name -> first interest */
    uint32_t deep;  /* interests in everything in it */
    bool needed;
} place;

struct stet_places {
    stet_watch *w;
    char *root;
    stet_map at;    /* number of a watch -> place */
    stet_map steps; /* absolute path of a directory, as it was reached -> number of its watch + 1; 0: not there */
    STET_VEC(interest) interests;
    dev_t devices[MAX_DEVICES];
    size_t device_count;
};

stet_places *stet_places_new(stet_watch *w, const char *root) {
    stet_places *p = stet_alloc_zero(sizeof *p);
    p->w = w;
    p->root = stet_strdup(root);
    stet_places_begin(p);
    return p;
}

static void place_clear(place *at) {
    stet_map_release(&at->names);
    *at = (place){0};
}

void stet_places_free(stet_places *p) {
    const void *key;
    size_t len;
    stet_slot *slot;
    if (!p)
        return;
    for (size_t i = 0; stet_map_next(&p->at, &i, &key, &len, &slot);) {
        place_clear(slot->p);
        stet_free(slot->p);
    }
    stet_map_release(&p->at);
    stet_map_release(&p->steps);
    stet_vec_release(&p->interests);
    stet_free(p->root);
    stet_free(p);
}

void stet_places_begin(stet_places *p) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&p->at, &i, &key, &len, &slot);)
        place_clear(slot->p);
    stet_map_clear(&p->steps);
    stet_vec_clear(&p->interests);
    *stet_vec_add(&p->interests) = (interest){0};
}

void stet_places_end(stet_places *p) {
    const void *key;
    size_t len;
    stet_slot *slot;
    STET_VEC(int) idle = {0};
    for (size_t i = 0; stet_map_next(&p->at, &i, &key, &len, &slot);)
        if (!((place *)slot->p)->needed)
            memcpy(stet_vec_add(&idle), key, sizeof(int));
    for (size_t i = 0; i < idle.len; i++) {
        slot = stet_map_get(&p->at, &idle.at[i], sizeof(int));
        place_clear(slot->p);
        stet_free(slot->p);
        stet_map_remove(&p->at, &idle.at[i], sizeof(int));
        stet_watch_lift(p->w, idle.at[i]);
    }
    stet_vec_release(&idle);
}

size_t stet_places_count(const stet_places *p) {
    return stet_map_len(&p->at);
}

/* Changes that other machines make on a network file system are never told. */
static stet_status check_device(stet_places *p, const char *path, dev_t device, stet_error *err) {
    for (size_t i = 0; i < p->device_count; i++)
        if (p->devices[i] == device)
            return STET_OK;
    bool network;
    const char *name;
    stet_status status = stet_file_is_network(path, &network, &name, err);
    if (status == STET_OK && network)
        status =
            stet_fail(err, STET_UNSUPPORTED, "%s: changes on a network file system (%s) can't be watched", path, name);
    if (status == STET_OK && p->device_count < MAX_DEVICES)
        p->devices[p->device_count++] = device;
    return status;
}

/* The place of a directory or file; NULL in *out if nothing is there any more. */
static stet_status listen(stet_places *p, const char *path, bool file, place **out, stet_error *err) {
    int number;
    stet_error inner = STET_ERROR_INIT;
    *out = NULL;
    stet_status status = stet_watch_place(p->w, path, file, &number, &inner);
    if (status == STET_NOT_FOUND || status == STET_INVALID) { /* gone or replaced meanwhile, which was heard */
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    if (status != STET_OK)
        return status;
    stet_slot *slot = stet_map_get(&p->at, &number, sizeof number);
    if (!slot)
        slot = stet_map_put(&p->at, &number, sizeof number, (stet_slot){.p = stet_alloc_zero(sizeof(place))});
    *out = slot->p;
    (*out)->needed = true;
    return STET_OK;
}

/* The place of a directory by its path, which has no links in it. */
static stet_status directory(stet_places *p, const char *path, place **out, stet_error *err) {
    stet_slot *known = stet_map_get(&p->steps, path, strlen(path));
    if (known) {
        *out = known->p;
        return STET_OK;
    }
    struct stat st;
    *out = NULL;
    if (stet_sys_stat(path, &st) != 0)
        return STET_OK;
    stet_status status = check_device(p, path, st.st_dev, err);
    if (status == STET_OK)
        status = listen(p, path, false, out, err);
    if (status == STET_OK && *out)
        stet_map_put(&p->steps, path, strlen(path), (stet_slot){.p = *out});
    return status;
}

static bool listed(const stet_places *p, uint32_t first, const char *key) {
    for (uint32_t i = first; i; i = p->interests.at[i].next)
        if (p->interests.at[i].key == key)
            return true;
    return false;
}

static uint32_t add_interest(stet_places *p, uint32_t first, const char *key, bool members) {
    if (listed(p, first, key))
        return first;
    *stet_vec_add(&p->interests) = (interest){.key = key, .next = first, .members = members};
    return (uint32_t)(p->interests.len - 1);
}

static void interest_in(stet_places *p, place *at, const char *name, const char *key) {
    size_t len = strlen(name);
    stet_slot *slot = stet_map_get(&at->names, name, len);
    if (!slot)
        slot = stet_map_put(&at->names, name, len, (stet_slot){.n = 0});
    slot->n = add_interest(p, (uint32_t)slot->n, key, false);
}

/* A path on its way from a directory that is reached, one part at a time. */
typedef struct walk {
    stet_buf here; /* absolute, without links */
    stet_buf rest;
    place *at;
    int links;
} walk;

static stet_status walk_to(stet_places *p, walk *w, stet_error *err) {
    return directory(p, w->here.len ? stet_buf_cstr(&w->here) : "/", &w->at, err);
}

static void go_up(walk *w) {
    while (w->here.len > 0 && w->here.data[w->here.len - 1] != '/')
        w->here.len--;
    w->here.len -= w->here.len > 0;
    w->here.data[w->here.len] = 0;
}

/* A link is met: what it says stands in its place. False: too many of them. */
static bool follow_link(walk *w, const char *full, const char *after) {
    char target[PATH_MAX];
    ssize_t n = readlink(full, target, sizeof target - 1);
    if (n <= 0 || ++w->links > MAX_LINKS)
        return false;
    target[n] = 0;
    stet_buf rest = STET_BUF(0);
    stet_buf_str(&rest, target);
    if (*after) {
        stet_buf_char(&rest, '/');
        stet_buf_str(&rest, after);
    }
    stet_buf_release(&w->rest);
    w->rest = rest;
    if (target[0] == '/') {
        stet_buf_clear(&w->here);
        stet_buf_str(&w->here, "");
    }
    return true;
}

static stet_status put_last(stet_places *p, const char *key, const char *full, const struct stat *st, stet_error *err) {
    place *own = NULL;
    /* What has another name may be changed by that, in a directory nobody listens to. */
    if (!S_ISREG(st->st_mode) || st->st_nlink < 2)
        return STET_OK;
    stet_status status = check_device(p, full, st->st_dev, err);
    if (status == STET_OK)
        status = listen(p, full, true, &own, err);
    if (status == STET_OK && own)
        own->deep = add_interest(p, own->deep, key, true);
    return status;
}

static stet_status walk_on(stet_places *p, walk *w, const char *key, stet_error *err) {
    stet_status status = walk_to(p, w, err);
    while (status == STET_OK && w->at) {
        char *rest = w->rest.data, name[NAME_MAX + 1];
        size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/");
        if (len == 0 || len > NAME_MAX)
            return STET_OK;
        memcpy(name, rest + skip, len);
        name[len] = 0;
        char *after = rest + skip + len + strspn(rest + skip + len, "/");
        char *remaining = stet_strdup(after);
        stet_buf_clear(&w->rest);
        stet_buf_str(&w->rest, remaining);
        if (strcmp(name, ".") == 0) {
            stet_free(remaining);
            continue;
        }
        if (strcmp(name, "..") == 0) {
            go_up(w);
            stet_free(remaining);
            status = walk_to(p, w, err);
            continue;
        }
        char *full = stet_file_join(w->here.len ? w->here.data : "/", name);
        struct stat st;
        bool there = stet_sys_lstat(full, &st) == 0, last = !*remaining, more = false;
        interest_in(p, w->at, name, last ? key : NULL);
        if (there && S_ISLNK(st.st_mode)) {
            more = follow_link(w, full, remaining);
            if (more)
                status = walk_to(p, w, err);
        } else if (there && last) {
            status = put_last(p, key, full, &st, err);
        } else if (there && S_ISDIR(st.st_mode)) {
            stet_buf_clear(&w->here);
            stet_buf_str(&w->here, full);
            status = walk_to(p, w, err);
            more = true;
        }
        stet_free(full);
        stet_free(remaining);
        if (!more)
            return status;
    }
    return status;
}

stet_status stet_places_put(stet_places *p, const char *key, const char *path, stet_error *err) {
    walk w = {.here = STET_BUF(0), .rest = STET_BUF(0)};
    stet_buf_str(&w.here, path[0] == '/' ? "" : p->root);
    const char *slash = strrchr(path, '/');
    char *dir = path[0] != '/' && slash ? stet_asprintf("%s/%.*s", p->root, (int)(slash - path), path) : NULL;
    /* Most files lie in a directory that was reached before, without a link on the way. */
    if (dir && strncmp(path, "../", 3) != 0 && !strstr(path, "/../") && stet_map_get(&p->steps, dir, strlen(dir))) {
        stet_buf_clear(&w.here);
        stet_buf_str(&w.here, dir);
        path = slash + 1;
    }
    stet_buf_str(&w.rest, path);
    stet_status status = walk_on(p, &w, key, err);
    stet_free(dir);
    stet_buf_release(&w.here);
    stet_buf_release(&w.rest);
    return status;
}

stet_status stet_places_deep(stet_places *p, const char *key, const char *dir, bool members, stet_error *err) {
    char *full = dir[0] == '/' ? stet_strdup(dir) : *dir ? stet_file_join(p->root, dir) : stet_strdup(p->root);
    struct stat st;
    place *at = NULL;
    stet_status status = STET_OK;
    if (stet_sys_stat(full, &st) == 0 && S_ISDIR(st.st_mode)) {
        status = check_device(p, full, st.st_dev, err);
        if (status == STET_OK)
            status = listen(p, full, false, &at, err);
        if (at)
            at->deep = add_interest(p, at->deep, key, members);
    }
    stet_free(full);
    return status;
}

bool stet_places_heard(stet_places *p, const stet_watch_event *event, stet_places_each each, void *ctx) {
    stet_slot *slot = stet_map_get(&p->at, &event->number, sizeof event->number);
    if (!slot)
        return true;
    const place *at = slot->p;
    bool fine = true;
    for (uint32_t i = at->deep; i; i = p->interests.at[i].next)
        if (p->interests.at[i].members || event->kind != STET_WATCH_CHANGED || event->is_dir)
            each(ctx, p->interests.at[i].key);
    if (!*event->name) /* itself: gone or moved away, unless only its times or mode changed */
        return event->kind == STET_WATCH_CHANGED;
    const stet_slot *name = stet_map_get(&at->names, event->name, strlen(event->name));
    for (uint32_t i = name ? (uint32_t)name->n : 0; i; i = p->interests.at[i].next) {
        if (p->interests.at[i].key)
            each(ctx, p->interests.at[i].key);
        else if (event->kind != STET_WATCH_CHANGED || event->is_dir)
            fine = false;
    }
    return fine;
}
