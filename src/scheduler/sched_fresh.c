/* sched_fresh.c - reads values that are up to date on one snapshot, while others write.
 *
 * A value may come from many documents. Those that a settling has brought up to date may be outdated again when they
 * are read, and the documents beside them newer. So a value is read first, from one snapshot of each space; then
 * everything that it consists of is found to be up to date; then it is found not to have changed since it was read.
 */

#include "scheduler/sched_internal.h"

#define MAX_ROUNDS 100

/* Did the last settling come to its end, and has nobody else committed anything since? A commit in another space counts
 * as soon as it is there, and marks its readers here a moment later: so nothing is known where any action reads one. */
static bool is_quiet(const stet_sched *s, const stet_tx_read_record *at, size_t count) {
    bool own = stet_memo_version(s->space) == s->version && s->report.aside == 0 && !sched_far_aside(s) &&
               stet_map_len(&s->spaces) == 0 && !stet_observe_reads_far(s->space);
    for (size_t i = 0; i < count && own; i++)
        own = at[i].space == s->space;
    return own;
}

static stet_status refuse_failed(stet_sched *s, const stet_tx_read_record *at, size_t count, stet_error *err) {
    stet_value list;
    stet_status status = sched_failed_makers(s, at, count, &list, err);
    if (status == STET_OK && stet_value_count(list) > 0) {
        stet_value first = stet_value_at(list, 0), piece = stet_value_get(first, "piece"),
                   node = stet_value_get(first, "node");
        status = stet_fail(err, STET_FAILED, "not fresh: %s/%s fails, or waits for what failed",
                           stet_value_as_string(&piece, NULL), stet_value_as_string(&node, NULL));
    }
    stet_value_release(list);
    return status;
}

/* Records what a part of the value rests on. What can't be read is told by whoever reads the whole value. */
static void read_part(stet_sched *s, stet_tx *tx, const stet_sched_cell *part) {
    stet_reader r = {.tx = tx, .record = true, .space = sched_space, .ctx = s};
    stet_error ignored = STET_ERROR_INIT;
    stet_value got;
    if (stet_reader_cell(&r, NULL, &part->name, part->path, STET_RECURSIVE, &got, &ignored) != STET_OK)
        stet_error_clear(&ignored);
    stet_reader_release(&r);
}

/* `*said` is what reading the value came to; it counts only if this returns STET_OK and nothing ran. */
static stet_status read_once(stet_sched *s, const stet_sched_want *want, stet_value *out, stet_status *said,
                             stet_error *why, size_t *runs, stet_error *err) {
    stet_reader r = {.record = want->part_count == 0, .space = sched_space, .ctx = s};
    stet_arena arena = STET_ARENA_INIT;
    const stet_tx_read_record *at;
    size_t count;
    stet_value got;
    *runs = 0;
    stet_status status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < want->part_count; i++)
        read_part(s, r.tx, &want->parts[i]);
    *said = stet_reader_cell(&r, NULL, &want->cell.name, want->cell.path, STET_RECURSIVE, &got, why);
    stet_tx_reads(r.tx, &arena, &at, &count);
    if (!is_quiet(s, at, count)) {
        status = sched_make_fresh(s, at, count, NULL, 0, runs, err);
        if (status == STET_OK && *runs == 0)
            status = refuse_failed(s, at, count, err);
        if (status == STET_OK && *runs == 0)
            status = stet_tx_holds(r.tx, err);
    }
    if (status == STET_OK && *runs == 0 && *said == STET_OK)
        *out = stet_value_retain(got);
    stet_arena_release(&arena);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    return status;
}

stet_status stet_sched_get_fresh(stet_sched *s, const stet_sched_want *want, size_t *ran, stet_value *out,
                                 stet_error *err) {
    *ran = 0;
    for (int rounds = 0, conflicts = 0;;) {
        stet_error why = STET_ERROR_INIT, mine = STET_ERROR_INIT;
        stet_status said = STET_OK;
        size_t runs;
        stet_status status = read_once(s, want, out, &said, &why, &runs, &mine);
        bool again = status == STET_CONFLICT || (status == STET_OK && runs > 0);
        rounds++;
        *ran += runs;
        conflicts += status == STET_CONFLICT;
        if (again && (rounds >= MAX_ROUNDS || conflicts > STET_SCHED_MAX_CONFLICTS)) {
            if (status == STET_OK)
                status = stet_fail(&mine, STET_CONFLICT, "made fresh %d times, and outdated again each time", rounds);
            stet_fail_in(&mine, "others keep changing what the value is made of");
            again = false;
        } else if (again && s->opts.cancelled && s->opts.cancelled(s->opts.ctx)) {
            stet_error_clear(&mine);
            status = stet_fail(&mine, STET_CANCELLED, "stopped");
            again = false;
        } else if (status == STET_OK && !again && said != STET_OK) {
            stet_error_move(&mine, &why);
            status = said;
        }
        if (!again && err)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
        stet_error_clear(&why);
        if (!again)
            return status;
        if (runs == 0)
            stet_clock_sleep_ms(conflicts < 3 ? 1 : 5 << (conflicts < 6 ? conflicts : 6));
    }
}
