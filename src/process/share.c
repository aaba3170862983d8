/* share.c - places that commands share, as locks on files. */

#include "process/share.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "os/lock.h"
#include "process/local.h"

typedef struct share {
    STET_VEC(stet_lock *) places;
    size_t wanted;
} share;

struct stet_share_set {
    STET_VEC(share) shares;
};

static stet_status open_share(const char *path, long long total, long long wanted, share *out, stet_error *err) {
    if (total < 1 || total > STET_SHARE_MAX || wanted < 1 || wanted > total)
        return stet_fail(err, STET_INVALID, "%s: %lld of %lld places make no sense", path, wanted, total);
    out->wanted = (size_t)wanted;
    stet_status status = STET_OK;
    for (long long i = 0; i < total && status == STET_OK; i++) {
        char *one = stet_asprintf("%s.%lld", path, i);
        stet_lock *lock = NULL;
        status = stet_lock_open(one, STET_LOCK_PLAIN, &lock, err);
        if (status == STET_OK)
            *stet_vec_add(&out->places) = lock;
        stet_free(one);
    }
    return status;
}

stet_status stet_share_open(const char *const *words, stet_share_set **out, stet_error *err) {
    stet_share_set *s = stet_alloc_zero(sizeof *s);
    stet_status status = STET_OK;
    for (; *words && status == STET_OK; words += 3) {
        share *next = stet_vec_add(&s->shares);
        *next = (share){0};
        status = words[1] && words[2]
                     ? open_share(words[0], strtoll(words[1], NULL, 10), strtoll(words[2], NULL, 10), next, err)
                     : stet_fail(err, STET_INVALID, "a share of commands is incomplete");
    }
    if (status == STET_OK)
        *out = s;
    else
        stet_share_close(s);
    return status;
}

static void drop_all(stet_share_set *s) {
    for (size_t i = 0; i < s->shares.len; i++)
        for (size_t k = 0; k < s->shares.at[i].places.len; k++)
            if (stet_lock_held(s->shares.at[i].places.at[k]))
                stet_lock_drop(s->shares.at[i].places.at[k]);
}

stet_status stet_share_take(stet_share_set *s, stet_error *err) {
    for (size_t i = 0; i < s->shares.len; i++) {
        const share *one = &s->shares.at[i];
        size_t got = 0;
        for (size_t k = 0; k < one->places.len && got < one->wanted; k++) {
            stet_error inner = STET_ERROR_INIT;
            stet_status status = stet_lock_take(one->places.at[k], STET_LOCK_EXCLUSIVE, 0, &inner);
            got += status == STET_OK;
            if (status != STET_OK && status != STET_BUSY) {
                stet_error_move(err, &inner);
                drop_all(s);
                return status;
            }
            stet_error_clear(&inner);
        }
        if (got < one->wanted) {
            drop_all(s);
            return stet_fail(err, STET_BUSY, "others have the places");
        }
    }
    return STET_OK;
}

void stet_share_close(stet_share_set *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->shares.len; i++) {
        for (size_t k = 0; k < s->shares.at[i].places.len; k++)
            stet_lock_close(s->shares.at[i].places.at[k]);
        stet_vec_release(&s->shares.at[i].places);
    }
    stet_vec_release(&s->shares);
    stet_free(s);
}
