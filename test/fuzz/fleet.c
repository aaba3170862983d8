/* fleet.c - any bytes as a run's state, as a row of the index and as a whole index.
 *
 * They are accepted or refused, and never believed beyond what they say. An accepted state makes a record that survives
 * its way through a row.
 */

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/index.h"
#include "fleet/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const stet_state *s) {
    stet_arena arena = STET_ARENA_INIT;
    stet_fleet_record made, back;
    const char *repos[] = {"/project"};
    stet_fleet_record_derive(s, repos[0], 0, &arena, &made);
    assert(strlen(made.inputs) <= STET_FLEET_RECORD_INPUTS_MAX);
    stet_buf row = STET_BUF(0);
    stet_fleet_record_write(&made, &row);
    assert(memchr(row.data, '\n', row.len) == NULL);
    stet_error err = STET_ERROR_INIT;
    stet_status st = stet_fleet_record_read(row.data, row.len, repos, 1, &arena, &back, &err);
    /* A time that was cut to what a record holds may not read back; nothing else may be lost. */
    if (st == STET_OK) {
        assert(strcmp(made.id, back.id) == 0 && strcmp(made.title, back.title) == 0);
        assert(made.derived == back.derived && made.created_ms == back.created_ms);
        assert(stet_hash_equal(made.fingerprint, back.fingerprint));
        stet_value v = stet_fleet_record_value(&back), w = stet_fleet_record_value(&made);
        assert(stet_value_equal(v, w));
        stet_value_release(v);
        stet_value_release(w);
    }
    stet_error_clear(&err);
    stet_buf_release(&row);
    stet_arena_release(&arena);
}

static void check_index(const uint8_t *data, size_t size) {
    char path[] = "/tmp/stet-fuzz-index-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    stet_arena arena = STET_ARENA_INIT;
    stet_fleet_index index = {0};
    stet_error err = STET_ERROR_INIT;
    if (stet_fleet_index_load(path, &arena, &index, &err) == STET_OK)
        stet_vec_release(&index.rows);
    stet_error_clear(&err);
    stet_arena_release(&arena);
    unlink(path);
}

/* Reading the whole and surveying are one judgement. */
static void check_state(const char *text, size_t len) {
    stet_state whole, survey;
    stet_error why = STET_ERROR_INIT, other = STET_ERROR_INIT;
    stet_status status = stet_state_parse(text, len, NULL, &whole, &why);
    assert(stet_state_parse_survey(text, len, NULL, &survey, &other) == status);
    assert(status == STET_OK || strcmp(why.message, other.message) == 0);
    if (status == STET_OK) {
        assert(memcmp(&whole.counts, &survey.counts, sizeof whole.counts) == 0);
        assert(stet_value_equal(stet_value_get(whole.failed, "id"), stet_value_get(survey.failed, "id")));
        check_record(&whole);
        check_record(&survey);
        stet_state_release(&whole);
        stet_state_release(&survey);
    }
    stet_error_clear(&why);
    stet_error_clear(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    stet_fleet_record r;
    stet_arena arena = STET_ARENA_INIT;
    const char *repos[] = {"/project"};
    switch (data[0] % 8) {
    case 0:
        check_index((const uint8_t *)text, len);
        break;
    case 1:
        if (stet_fleet_record_read(text, len, repos, 1, &arena, &r, NULL) == STET_OK) {
            stet_value v = stet_fleet_record_value(&r);
            stet_value_release(v);
        }
        break;
    default:
        check_state(text, len);
    }
    stet_arena_release(&arena);
    return 0;
}
