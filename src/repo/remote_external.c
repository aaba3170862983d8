/* remote_external.c - a remote behind a program: one process for each question, JSON in and JSON out.
 *
 * docs/repository.md has the wire format. Nothing that a program says is trusted: names and ids are checked here,
 * objects where they are stored.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "repo/hub_kind.h"

enum { TIMEOUT_MS = 60000, TRANSIENT = 75, NAME_MAX_LEN = 64, SAID_MAX = 64 << 10 };
#define REPLY_MAX ((size_t)256 << 20)

typedef struct stet_external {
    char *program, *uri;
    int64_t timeout_ms;
} stet_external;

typedef struct talk {
    stet_proc proc;
    int out, said; /* -1: at its end */
    stet_buf reply, words;
    int64_t deadline_us;
} talk;

static int request_fd(stet_value request, stet_error *err) {
    size_t len;
    char *text = stet_json_print(request, STET_JSON_CANONICAL, &len);
    int fd = memfd_create("request", MFD_CLOEXEC);
    if (fd < 0)
        stet_fail_errno(err, errno, "a request to a remote");
    else if (stet_file_write_all(fd, "request", text, len, err) != STET_OK || lseek(fd, 0, SEEK_SET) != 0) {
        close(fd);
        fd = -1;
    }
    stet_free(text);
    return fd;
}

/* Reads what is there. The descriptor is closed at its end. */
static void drain(int *fd, stet_buf *b) {
    char block[16384];
    ssize_t n = read(*fd, block, sizeof block);
    if (n > 0)
        stet_buf_add(b, block, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(*fd);
        *fd = -1;
    }
}

static stet_status listen(const stet_external *x, talk *t, stet_error *err) {
    while (t->out >= 0 || t->said >= 0) {
        struct pollfd fds[2] = {{t->out, POLLIN, 0}, {t->said, POLLIN, 0}};
        int64_t left = (t->deadline_us - stet_clock_monotonic_us()) / 1000;
        if (left <= 0)
            return stet_fail(err, STET_BUSY, "%s has not answered within %lld ms", x->program,
                             (long long)x->timeout_ms);
        if (poll(fds, 2, (int)(left > 1000 ? 1000 : left)) < 0 && errno != EINTR)
            return stet_fail_errno(err, errno, "waiting for %s", x->program);
        if (t->out >= 0 && fds[0].revents)
            drain(&t->out, &t->reply);
        if (t->said >= 0 && fds[1].revents)
            drain(&t->said, &t->words);
        if (t->reply.overflow)
            return stet_fail(err, STET_LIMIT, "%s gave a reply of more than %zu MiB", x->program, REPLY_MAX >> 20);
        if (t->words.overflow) { /* the end of what it says is of interest, not all of it */
            stet_buf_clear(&t->words);
            t->words.overflow = false;
        }
    }
    return STET_OK;
}

/* The last line that it said is most often the reason. */
static void last_line(const stet_buf *words, const char **line, int *len) {
    const char *text = stet_buf_cstr(words), *end = text + words->len;
    while (end > text && (end[-1] == '\n' || end[-1] == ' '))
        end--;
    const char *begin = end;
    while (begin > text && begin[-1] != '\n')
        begin--;
    *line = begin;
    *len = end - begin > 500 ? 500 : (int)(end - begin);
}

static stet_status end_talk(const stet_external *x, talk *t, stet_status st, stet_error *err) {
    stet_proc_exit ended = {0};
    if (st != STET_OK)
        stet_proc_kill(&t->proc, SIGKILL);
    int64_t left = (t->deadline_us - stet_clock_monotonic_us()) / 1000;
    int patience = st == STET_OK && left > 0 ? (int)left : 1000;
    if (stet_proc_wait(&t->proc, patience, &ended, NULL) != STET_OK && st == STET_OK) {
        st = stet_fail(err, STET_BUSY, "%s has answered, but does not end", x->program);
        stet_proc_kill(&t->proc, SIGKILL);
        if (stet_proc_wait(&t->proc, 1000, &ended, NULL) != STET_OK)
            stet_hint(err, "it could not be ended either: it hangs in the kernel");
    }
    if (st == STET_OK && (ended.signalled || ended.code != 0)) {
        const char *line;
        int len;
        last_line(&t->words, &line, &len);
        bool now = !ended.signalled && ended.code == TRANSIENT;
        st = stet_fail(err, now ? STET_BUSY : STET_FAILED, "%s %s %d%s%.*s", x->program,
                       ended.signalled ? "was ended by signal" : "ended with status", ended.code, len ? ": " : "", len,
                       line);
    }
    if (t->out >= 0)
        close(t->out);
    if (t->said >= 0)
        close(t->said);
    return st;
}

static stet_status begin_talk(const stet_external *x, stet_value request, talk *t, stet_error *err) {
    int out[2] = {-1, -1}, said[2] = {-1, -1}, in = request_fd(request, err);
    if (in < 0)
        return STET_IO;
    stet_status st = STET_OK;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0)
        st = stet_fail_errno(err, errno, "a pipe to %s", x->program);
    if (st == STET_OK) {
        const char *argv[] = {x->program, NULL};
        stet_proc_opts o = {.argv = argv, .stdin_fd = in, .stdout_fd = out[1], .stderr_fd = said[1], .new_group = true};
        stet_error why = STET_ERROR_INIT;
        st = stet_proc_spawn(&o, &t->proc, &why);
        if (st == STET_NOT_FOUND) {
            stet_fail(err, STET_NOT_FOUND, "there is no program %s on $PATH", x->program);
            stet_hint(err, "the remote %s needs it", x->uri);
        }
        stet_error_move(err, &why);
    }
    int unused[] = {in, out[1], said[1], st == STET_OK ? -1 : out[0], st == STET_OK ? -1 : said[0]};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (unused[i] >= 0)
            close(unused[i]);
    t->out = out[0];
    t->said = said[0];
    return st;
}

/* Asks, and gives the reply, an object with v 1. */
static stet_status ask(const stet_external *x, const char *op, stet_value request, stet_value *reply, stet_error *err) {
    talk t = {.reply = STET_BUF(REPLY_MAX), .words = STET_BUF(SAID_MAX)};
    stet_value v = stet_value_null();
    stet_value_put(&request, "v", stet_value_int(1));
    stet_value_put(&request, "op", stet_value_string(op));
    stet_value_put(&request, "uri", stet_value_string(x->uri));
    t.deadline_us = stet_clock_monotonic_us() + x->timeout_ms * 1000;
    stet_status st = begin_talk(x, request, &t, err);
    stet_value_release(request);
    if (st == STET_OK)
        st = end_talk(x, &t, listen(x, &t, err), err);
    if (st == STET_OK && stet_json_parse(stet_buf_cstr(&t.reply), t.reply.len, &v, NULL) != STET_OK)
        st = stet_fail(err, STET_CORRUPT, "%s gave a reply to %s that is not JSON", x->program, op);
    if (st == STET_OK && (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_as_int(stet_value_get(v, "v")) != 1))
        st = stet_fail(err, STET_CORRUPT, "%s gave a reply to %s that is not an object with \"v\":1", x->program, op);
    stet_buf_release(&t.reply);
    stet_buf_release(&t.words);
    if (st == STET_OK)
        *reply = v;
    else
        stet_value_release(v);
    return st;
}

static stet_status garbled(const char *who, const char *what, stet_error *err) {
    return stet_fail(err, STET_CORRUPT, "%s: its reply %s", who, what);
}

stet_status stet_external_refs_of(const char *who, stet_value reply, const char *prefix, stet_refs *out,
                                  stet_error *err) {
    stet_value refs = stet_value_get(reply, "refs");
    if (stet_value_type(refs) != STET_TYPE_OBJECT)
        return garbled(who, "has no refs", err);
    if (stet_value_count(refs) > STET_REMOTE_REFS)
        return stet_fail(err, STET_LIMIT, "%s lists more than %d refs", who, STET_REMOTE_REFS);
    for (size_t i = 0; i < stet_value_count(refs); i++) {
        size_t len;
        const char *name = stet_value_key_at(refs, i, &len);
        stet_ref ref;
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        if (strlen(name) != len || stet_ref_wrong(name) || !stet_hash_of_text(stet_value_at(refs, i), &ref.target))
            return garbled(who, "has a ref that is none", err);
        ref.name = stet_strndup(name, len);
        *stet_vec_add(out) = ref;
    }
    return STET_OK;
}

stet_status stet_external_have_of(const char *who, stet_value reply, const stet_hash *ids, size_t count, bool *out,
                                  stet_error *err) {
    stet_value have = stet_value_get(reply, "have");
    stet_map said = {0};
    stet_status st = STET_OK;
    if (stet_value_type(have) != STET_TYPE_ARRAY)
        return garbled(who, "has no list `have`", err);
    for (size_t i = 0; i < stet_value_count(have) && st == STET_OK; i++) {
        stet_hash id;
        if (stet_hash_of_text(stet_value_at(have, i), &id))
            stet_map_put(&said, id.bytes, sizeof id.bytes, (stet_slot){.n = 1});
        else
            st = garbled(who, "has an id that is none", err);
    }
    for (size_t i = 0; i < count && st == STET_OK; i++)
        out[i] = stet_map_get(&said, ids[i].bytes, sizeof ids[i].bytes) != NULL;
    stet_map_release(&said);
    return st;
}

static bool type_of_name(stet_value name, stet_record_type *out) {
    if (stet_value_type(name) != STET_TYPE_STRING)
        return false;
    for (int t = 0; t < STET_RECORD_TOMBSTONE; t++)
        if (strcmp(stet_value_as_string(&name, NULL), stet_record_type_name((stet_record_type)t)) == 0) {
            *out = (stet_record_type)t;
            return true;
        }
    return false;
}

stet_status stet_external_objects_of(const char *who, stet_value reply, stet_take_fn *take, void *ctx, size_t *given,
                                     size_t *missing, stet_error *err) {
    stet_value objects = stet_value_get(reply, "objects"), gone = stet_value_get(reply, "missing");
    *given = *missing = 0;
    if (stet_value_type(objects) != STET_TYPE_ARRAY ||
        (stet_value_type(gone) != STET_TYPE_NULL && stet_value_type(gone) != STET_TYPE_ARRAY))
        return garbled(who, "has no objects", err);
    *missing = stet_value_count(gone);
    for (size_t i = 0; i < stet_value_count(objects); i++) {
        stet_value one = stet_value_at(objects, i), record = stet_value_get(one, "record"),
                   stone = stet_value_get(one, "tombstone");
        stet_sent sent = {.lost = stet_value_type(record) == STET_TYPE_NULL};
        stet_value text = sent.lost ? stone : record;
        if (!stet_hash_of_text(stet_value_get(one, "id"), &sent.id) || stet_value_type(text) != STET_TYPE_STRING ||
            (sent.lost && !type_of_name(stet_value_get(one, "type"), &sent.type)))
            return garbled(who, "has an object that is none", err);
        sent.bytes = stet_value_as_string(&text, &sent.len);
        stet_status st = take(ctx, &sent, err);
        if (st != STET_OK)
            return st;
        (*given)++;
    }
    return STET_OK;
}

stet_status stet_external_updated_of(const char *who, stet_value reply, stet_error *err) {
    stet_value ok = stet_value_get(reply, "ok"), ref = stet_value_get(reply, "ref");
    if (stet_value_type(ok) != STET_TYPE_BOOL)
        return garbled(who, "does not say whether refs were swapped", err);
    if (stet_value_as_bool(ok))
        return STET_OK;
    bool named = stet_value_type(ref) == STET_TYPE_STRING;
    stet_fail(err, STET_CONFLICT, "%s: %.200s was changed by somebody else meanwhile", who,
              named ? stet_value_as_string(&ref, NULL) : "a ref");
    if (named)
        stet_detail(err, "ref", stet_value_retain(ref));
    return STET_CONFLICT;
}

static stet_value ids_value(const stet_hash *ids, size_t count) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++)
        stet_value_push(&list, stet_hash_text(ids[i]));
    return list;
}

static stet_status list_refs(stet_hub *h, const char *prefix, stet_refs *out, stet_error *err) {
    const stet_external *x = h->ctx;
    stet_value request = stet_value_object(), reply;
    stet_value_put(&request, "prefix", stet_value_string(prefix));
    stet_status st = ask(x, "list-refs", request, &reply, err);
    if (st != STET_OK)
        return st;
    st = stet_external_refs_of(x->program, reply, prefix, out, err);
    stet_value_release(reply);
    return st;
}

static stet_status get_manifest(void *ctx, const stet_hash *ids, size_t count, bool *out, stet_error *err) {
    const stet_external *x = ctx;
    stet_value request = stet_value_object(), reply;
    stet_value_put(&request, "ids", ids_value(ids, count));
    stet_status st = ask(x, "get-manifest", request, &reply, err);
    if (st != STET_OK)
        return st;
    st = stet_external_have_of(x->program, reply, ids, count, out, err);
    stet_value_release(reply);
    return st;
}

/* Notes what came, so that the rest can be asked for again: a program gives as many at once as it likes. */
typedef struct receipt {
    stet_map *came;
    stet_take_fn *take;
    void *ctx;
} receipt;

static stet_status note(void *ctx, const stet_sent *sent, stet_error *err) {
    receipt *r = ctx;
    stet_map_put(r->came, sent->id.bytes, sizeof sent->id.bytes, (stet_slot){.n = 1});
    return r->take(r->ctx, sent, err);
}

static stet_status get_objects(void *ctx, const stet_hash *ids, size_t count, stet_take_fn *take, void *take_ctx,
                               stet_error *err) {
    const stet_external *x = ctx;
    stet_map came = {0};
    stet_hash *left = stet_alloc((count + 1) * sizeof *left);
    receipt r = {&came, take, take_ctx};
    stet_status st = STET_OK;
    memcpy(left, ids, count * sizeof *left);
    while (count && st == STET_OK) {
        stet_value request = stet_value_object(), reply;
        size_t given = 0, missing = 0, n = 0;
        stet_value_put(&request, "ids", ids_value(left, count));
        st = ask(x, "get-object", request, &reply, err);
        if (st != STET_OK)
            break;
        st = stet_external_objects_of(x->program, reply, note, &r, &given, &missing, err);
        stet_value_release(reply);
        for (size_t i = 0; i < count; i++)
            if (!stet_map_get(&came, left[i].bytes, sizeof left[i].bytes))
                left[n++] = left[i];
        if (st == STET_OK && (given == 0 || missing || n == count))
            break; /* what has not come by now does not come */
        count = n;
    }
    free(left);
    stet_map_release(&came);
    return st;
}

/* The objects of a pack, as a program gets them. */
static stet_status add_object(void *ctx, const stet_sent *sent, stet_error *err) {
    stet_value *list = ctx, one = stet_value_object(), text;
    stet_status st = stet_value_string_checked(sent->bytes, sent->len, &text, err);
    if (st != STET_OK) {
        stet_value_release(one);
        return st;
    }
    stet_value_put(&one, "id", stet_hash_text(sent->id));
    if (sent->lost)
        stet_value_put(&one, "type", stet_value_string(stet_record_type_name(sent->type)));
    stet_value_put(&one, sent->lost ? "tombstone" : "record", text);
    stet_value_push(list, one);
    return STET_OK;
}

static stet_status put_objects(const stet_external *x, const stet_pack *pack, stet_error *err) {
    stet_value objects = stet_value_array(), request = stet_value_object(), reply;
    stet_status st = stet_pack_each(pack->bytes.data, pack->bytes.len, add_object, &objects, err);
    int64_t count = (int64_t)stet_value_count(objects);
    stet_value_put(&request, "objects", objects);
    if (st != STET_OK) {
        stet_value_release(request);
        return st;
    }
    st = ask(x, "put-object", request, &reply, err);
    if (st != STET_OK)
        return st;
    if (stet_value_as_int(stet_value_get(reply, "stored")) != count)
        st = garbled(x->program, "does not say that all objects were stored", err);
    stet_value_release(reply);
    return st;
}

static stet_status update_refs(const stet_external *x, const stet_ref_swap *swaps, size_t count, stet_error *err) {
    stet_value updates = stet_value_array(), request = stet_value_object(), reply;
    for (size_t i = 0; i < count; i++) {
        stet_value one = stet_value_object();
        stet_value_put(&one, "ref", stet_value_string(swaps[i].name));
        stet_value_put(&one, "expect", swaps[i].expect ? stet_hash_text(*swaps[i].expect) : stet_value_null());
        stet_value_put(&one, "set", swaps[i].set ? stet_hash_text(*swaps[i].set) : stet_value_null());
        stet_value_push(&updates, one);
    }
    stet_value_put(&request, "updates", updates);
    stet_status st = ask(x, "update-refs", request, &reply, err);
    if (st != STET_OK)
        return st;
    st = stet_external_updated_of(x->program, reply, err);
    stet_value_release(reply);
    return st;
}

static stet_status put_pack(void *ctx, const stet_pack *pack, const stet_ref_swap *swaps, size_t count,
                            stet_error *err) {
    const stet_external *x = ctx;
    stet_status st = pack->count ? put_objects(x, pack, err) : STET_OK;
    return st == STET_OK && count ? update_refs(x, swaps, count, err) : st;
}

static void close_external(stet_hub *h) {
    stet_external *x = h->ctx;
    stet_free(x->program);
    stet_free(x->uri);
    free(x);
    free(h);
}

static const stet_hub_kind external_kind = {.refs = list_refs, .close = close_external};

stet_status stet_external_open(const char *uri, int64_t timeout_ms, stet_hub **out, stet_error *err) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *name = uri + strlen(STET_REMOTE_SCHEME);
    size_t len = strcspn(name, "/?#");
    if (len == 0 || len > NAME_MAX_LEN || strspn(name, allowed) < len || name[0] == '.' || name[0] == '-')
        return stet_fail(
            err, STET_INVALID,
            "%.200s: after %s comes the name of a program: letters, digits and ._-, no dot or hyphen first", uri,
            STET_REMOTE_SCHEME);
    stet_external *x = stet_alloc_zero(sizeof *x);
    x->program = stet_asprintf("%s%.*s", STET_REMOTE_PROGRAM, (int)len, name);
    x->uri = stet_strdup(uri);
    x->timeout_ms = timeout_ms > 0 ? timeout_ms : TIMEOUT_MS;
    *out = stet_alloc_zero(sizeof **out);
    **out = (stet_hub){
        .kind = &external_kind,
        .side =
            {.ctx = x, .name = x->program, .costly = true, .have = get_manifest, .get = get_objects, .put = put_pack},
        .ctx = x};
    return STET_OK;
}
