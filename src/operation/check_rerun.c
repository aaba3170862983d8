/* check_rerun.c - `check --rerun`: computes what is up to date again and compares. */

#include "operation/check_rerun.h"

#include <stdlib.h>
#include <string.h>

#include "drive/rerun.h"
#include "operation/text.h"
#include "os/clock.h"

#define SAMPLE 100 /* the default */

/* `*most` 0: no limit. */
static stet_status parse_sample(stet_value args, size_t *most, stet_error *err) {
    stet_value v = stet_value_get(args, "sample");
    *most = SAMPLE;
    if (stet_value_type(v) != STET_TYPE_STRING)
        return STET_OK;
    const char *text = stet_value_as_string(&v, NULL);
    char *end;
    *most = 0;
    if (strcmp(text, "all") == 0)
        return STET_OK;
    long long n = strtoll(text, &end, 10);
    if (*text >= '1' && *text <= '9' && !*end && n < 1000000000) {
        *most = (size_t)n;
        return STET_OK;
    }
    stet_fail(err, STET_INVALID, "\"%.100s\" is not a number of actions", text);
    stet_hint(err, "write a number from 1, or all: stet check --rerun all");
    return STET_INVALID;
}

stet_status stet_check_rerun_args(stet_value args, stet_error *err) {
    size_t most;
    if (!stet_value_as_bool(stet_value_get(args, "rerun")) && stet_value_as_bool(stet_value_get(args, "commands"))) {
        stet_fail(err, STET_INVALID, "--commands is only for --rerun");
        stet_hint(err, "write stet check --rerun --commands, or leave it out");
        return STET_INVALID;
    }
    if (!stet_value_as_bool(stet_value_get(args, "rerun")) &&
        (stet_value_find(args, "sample", 6, NULL) || stet_value_find(args, "seed", 4, NULL))) {
        stet_fail(err, STET_INVALID, "a number of actions, or a seed, is only for --rerun");
        stet_hint(err, "write stet check --rerun, or leave it out");
        return STET_INVALID;
    }
    return parse_sample(args, &most, err);
}

static void on_progress(void *ctx, int64_t done, int64_t total, const char *note) {
    stet_op_ctx *c = ctx;
    c->progress(c, done, total, note);
}

stet_status stet_check_rerun(stet_op_ctx *ctx, stet_value args, stet_value *out, stet_error *err) {
    stet_rerun_spec spec = {.commands = stet_value_as_bool(stet_value_get(args, "commands")),
                            .ctx = ctx,
                            .cancelled = stet_op_cancelled,
                            .progress = on_progress};
    stet_value seed;
    stet_project *p;
    stet_status status = parse_sample(args, &spec.most, err);
    if (status == STET_OK)
        status = ctx->project(ctx, &p, err);
    if (status != STET_OK)
        return status;
    if (stet_value_find(args, "seed", 4, &seed)) {
        spec.seed = (uint64_t)stet_value_as_int(seed);
    } else {
        stet_random(&spec.seed, sizeof spec.seed);
        spec.seed &= 0xFFFFFFFF; /* short enough to be typed */
    }
    status = stet_rerun_project(p, &spec, out, err);
    if (status == STET_OK && spec.commands)
        stet_value_put(out, "commands", stet_value_bool(true));
    return status;
}

static long long count_of(stet_value rerun, const char *name) {
    return (long long)stet_value_as_int(stet_value_get(rerun, name));
}

static void put_place(stet_render *r, stet_value w) {
    stet_value branch = stet_value_get(w, "branch"), space = stet_value_get(w, "space");
    stet_buf_str(r->out, "  ");
    stet_text_value(r, stet_value_get(w, "piece"));
    stet_buf_char(r->out, '/');
    stet_text_value(r, stet_value_get(w, "node"));
    if (strcmp(stet_value_as_string(&space, NULL), "main") != 0) {
        stet_buf_str(r->out, " (space ");
        stet_text_value(r, space);
        stet_buf_char(r->out, ')');
    }
    if (*stet_value_as_string(&branch, NULL)) {
        stet_buf_str(r->out, " (branch ");
        stet_text_value(r, branch);
        stet_buf_char(r->out, ')');
    }
}

static void put_wrong(stet_render *r, stet_value w) {
    stet_value differences = stet_value_get(w, "differences"), reads = stet_value_get(w, "unrecordedReads");
    put_place(r, w);
    stet_buf_char(r->out, '\n');
    for (size_t i = 0; i < stet_value_count(differences); i++) {
        stet_value d = stet_value_at(differences, i);
        stet_buf_str(r->out, "    ");
        stet_text_value(r, stet_value_get(d, "cell"));
        stet_buf_str(r->out, ": stored ");
        stet_text_value(r, stet_value_get(d, "stored"));
        stet_buf_str(r->out, ", recomputed ");
        stet_text_value(r, stet_value_get(d, "recomputed"));
        stet_buf_char(r->out, '\n');
    }
    for (size_t i = 0; i < stet_value_count(reads); i++) {
        stet_buf_str(r->out, "    read without being recorded: ");
        stet_text_value(r, stet_value_at(reads, i));
        stet_buf_char(r->out, '\n');
    }
}

void stet_check_rerun_render(stet_render *r, stet_value rerun) {
    stet_value wrong = stet_value_get(rerun, "wrong"), seed;
    long long differ = count_of(rerun, "differ");
    stet_buf_printf(r->out, "rerun: %lld of %lld actions compared", count_of(rerun, "compared"),
                    count_of(rerun, "actions"));
    if (count_of(rerun, "leftOut"))
        stet_buf_printf(r->out, ", %lld left out (%scalls, effects)", count_of(rerun, "leftOut"),
                        stet_value_as_bool(stet_value_get(rerun, "commands")) ? "some commands, " : "commands, ");
    if (count_of(rerun, "accepted"))
        stet_buf_printf(r->out, ", %lld accepted and not compared", count_of(rerun, "accepted"));
    if (count_of(rerun, "outdated"))
        stet_buf_printf(r->out, ", %lld outdated", count_of(rerun, "outdated"));
    if (stet_value_find(rerun, "seed", 4, &seed))
        stet_buf_printf(r->out, ", seed %lld", (long long)stet_value_as_int(seed));
    stet_buf_printf(r->out, differ ? ": %lld differ\n" : ": all the same\n", differ);
    stet_value notes = stet_value_get(rerun, "notes");
    for (size_t i = 0; i < stet_value_count(notes); i++) {
        stet_buf_str(r->out, "  ");
        stet_text_value(r, stet_value_at(notes, i));
        stet_buf_str(r->out, "; compared as it was set up\n");
    }
    stet_value varying = stet_value_get(rerun, "varying");
    for (size_t i = 0; i < stet_value_count(varying); i++) {
        put_place(r, stet_value_at(varying, i));
        stet_buf_str(r->out, ": not reproducible, two reruns differ from each other\n");
    }
    for (size_t i = 0; i < stet_value_count(wrong); i++)
        put_wrong(r, stet_value_at(wrong, i));
    if (differ > (long long)stet_value_count(wrong))
        stet_buf_printf(r->out, "  and %lld more\n", differ - (long long)stet_value_count(wrong));
}
