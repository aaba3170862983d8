/* connection.c - asks a PostgreSQL server, and connects again when the connection is lost.
 *
 *   P1. Every wait has an end: for a connection (connect_timeout, 10 s unless set), for an answer (PG_ANSWER_MS), for a
 *       server that comes back (PG_AGAIN_MS).
 *   P2. A question that changes something and can't be asked twice is asked once. If the connection is lost before its
 *       answer, `lost` is set, and the caller finds out what happened.
 *   P3. An answer that came too late belongs to nobody: the connection is dropped with it.
 */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "postgres.h"

#define CONNECT_S "10"

void pg_arg_bytes(pg_args *a, const void *bytes, size_t len) {
    a->values[a->count] = bytes ? bytes : "";
    a->lengths[a->count] = (int)len;
    a->formats[a->count++] = 1;
}

void pg_arg_id(pg_args *a, const stet_hash *id) {
    static const stet_hash zeros;
    if (id && !stet_hash_equal(*id, zeros))
        pg_arg_bytes(a, id->bytes, sizeof id->bytes);
    else
        a->values[a->count++] = NULL;
}

void pg_arg_int(pg_args *a, int64_t v) {
    snprintf(a->numbers[a->count], sizeof a->numbers[0], "%lld", (long long)v);
    a->values[a->count] = a->numbers[a->count];
    a->formats[a->count++] = 0;
}

void pg_arg_text(pg_args *a, const char *text) {
    a->values[a->count] = text;
    a->formats[a->count++] = 0;
}

void pg_arg_buf(pg_args *a, const stet_buf *b) {
    pg_arg_bytes(a, b->data, b->len);
}

static void big(stet_buf *b, uint32_t v) {
    uint32_t n = htonl(v);
    stet_buf_add(b, &n, sizeof n);
}

void pg_array_begin(stet_buf *b, int type, size_t count) {
    stet_buf_clear(b);
    big(b, 1); /* dimensions */
    big(b, 0); /* no nulls */
    big(b, (uint32_t)type);
    big(b, (uint32_t)count);
    big(b, 1); /* the index of the first */
}

void pg_array_bytes(stet_buf *b, const void *bytes, size_t len) {
    big(b, (uint32_t)len);
    stet_buf_add(b, bytes, len);
}

void pg_array_int2(stet_buf *b, int v) {
    uint16_t n = htons((uint16_t)v);
    pg_array_bytes(b, &n, sizeof n);
}

void pg_array_int8(stet_buf *b, int64_t v) {
    uint64_t n = htobe64((uint64_t)v);
    pg_array_bytes(b, &n, sizeof n);
}

void pg_array_bool(stet_buf *b, bool v) {
    char n = v;
    pg_array_bytes(b, &n, 1);
}

void pg_array_ids(stet_buf *b, const stet_hash *ids, size_t count) {
    pg_array_begin(b, PG_BYTEA, count);
    for (size_t i = 0; i < count; i++)
        pg_array_bytes(b, ids[i].bytes, sizeof ids[i].bytes);
}

int64_t pg_int(const PGresult *r, int row, int column) {
    uint64_t n = 0;
    if (PQgetlength(r, row, column) != (int)sizeof n || PQgetisnull(r, row, column))
        return 0;
    memcpy(&n, PQgetvalue(r, row, column), sizeof n);
    return (int64_t)be64toh(n);
}

bool pg_id(const PGresult *r, int row, int column, stet_hash *out) {
    *out = (stet_hash){{0}};
    if (PQgetlength(r, row, column) != (int)sizeof out->bytes)
        return false;
    memcpy(out->bytes, PQgetvalue(r, row, column), sizeof out->bytes);
    return true;
}

/* The first line of what libpq or the server says. */
static int line_of(const char *text) {
    size_t len = strcspn(text, "\n");
    return (int)(len > 400 ? 400 : len);
}

void pg_disconnect(pg *p) {
    if (p->c)
        PQfinish(p->c);
    p->c = NULL;
    for (size_t i = 0; i < p->prepared_count; i++)
        stet_free(p->prepared[i]);
    stet_free(p->prepared);
    p->prepared = NULL;
    p->prepared_count = 0;
}

/* A server that answers and refuses will refuse again; one that does not answer, or starts, may come back. */
static stet_status refused(pg *p, const char *const *keys, const char *const *values, stet_error *err) {
    const char *said = PQerrorMessage(p->c);
    PGPing ping = PQpingParams(keys, values, 1);
    bool full = strstr(said, "too many clients") || strstr(said, "remaining connection slots");
    bool missing = strstr(said, "database \"") && strstr(said, "does not exist");
    stet_status status = ping == PQPING_REJECT || full ? STET_BUSY
                         : ping != PQPING_OK           ? STET_IO
                         : missing                     ? STET_NOT_FOUND
                                                       : STET_DENIED;
    stet_fail(err, status, "hub %s: %.*s", p->address.shown, line_of(said), said);
    if (status == STET_NOT_FOUND)
        stet_hint(err, "create the database (createdb), and then the hub: stet hub init");
    else if (status == STET_DENIED)
        stet_hint(err, "check user and password (~/.pgpass, PGPASSWORD, a service) and the server's pg_hba.conf");
    else if (status == STET_IO)
        stet_hint(err, "is the server running, and does it accept connections from this machine?");
    return status;
}

static stet_status set_up(pg *p, stet_error *err) {
    char *sql = stet_asprintf("SET client_encoding = 'UTF8'; SET search_path = \"%s\"; SET statement_timeout = %d; "
                              "SET synchronous_commit = on; SET client_min_messages = error; LISTEN \"stet:%s\"",
                              p->address.schema, PG_ANSWER_MS, p->address.schema);
    PGresult *r = PQexec(p->c, sql);
    stet_free(sql);
    bool fine = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    if (fine)
        return STET_OK;
    const char *said = PQerrorMessage(p->c);
    return stet_fail(err, STET_IO, "hub %s: %.*s", p->address.shown, line_of(said), said);
}

static void quiet(void *ctx, const char *message) {
    (void)ctx;
    (void)message;
}

stet_status pg_connect(pg *p, stet_error *err) {
    const char *keys[] = {"connect_timeout", "fallback_application_name", "dbname", NULL};
    const char *values[] = {CONNECT_S, "stet", p->address.conninfo, NULL};
    if (getenv("PGCONNECT_TIMEOUT"))
        values[0] = ""; /* the user's own */
    pg_disconnect(p);
    p->c = PQconnectdbParams(keys, values, 1);
    p->news++; /* whatever came while nobody listened */
    stet_status status = PQstatus(p->c) == CONNECTION_OK ? STET_OK : refused(p, keys, values, err);
    if (status == STET_OK) {
        PQsetNoticeProcessor(p->c, quiet, NULL);
        status = set_up(p, err);
    }
    if (status != STET_OK)
        pg_disconnect(p);
    return status;
}

void pg_look(pg *p) {
    if (!p->c)
        return;
    bool there = PQconsumeInput(p->c) && PQstatus(p->c) == CONNECTION_OK;
    PGnotify *n;
    while ((n = PQnotifies(p->c)) != NULL) {
        p->news += n->be_pid != PQbackendPID(p->c);
        PQfreemem(n);
    }
    if (!there)
        pg_disconnect(p);
}

/* P1. True: something can be read. */
static bool wait_for_input(pg *p, int64_t deadline_us) {
    for (;;) {
        int left = (int)((deadline_us - stet_clock_monotonic_us()) / 1000);
        int flushed = PQflush(p->c);
        struct pollfd fd = {PQsocket(p->c), (short)(POLLIN | (flushed == 1 ? POLLOUT : 0)), 0};
        if (fd.fd < 0 || flushed < 0 || left <= 0)
            return false;
        int n = poll(&fd, 1, left);
        if (n > 0 && fd.revents & (POLLIN | POLLERR | POLLHUP))
            return PQconsumeInput(p->c);
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* The next result; NULL: there is none. *silent: no answer in time, or no connection. */
static PGresult *next_result(pg *p, int64_t deadline_us, bool *silent) {
    *silent = false;
    while (PQisBusy(p->c))
        if (!wait_for_input(p, deadline_us)) {
            *silent = true;
            return NULL;
        }
    return PQgetResult(p->c);
}

static stet_status lost(pg *p, stet_error *err) {
    const char *said = p->c ? PQerrorMessage(p->c) : "";
    p->lost = true;
    p->state[0] = 0;
    stet_fail(err, STET_IO, "hub %s: the connection was lost%s%.*s", p->address.shown, *said ? ": " : "", line_of(said),
              said);
    pg_disconnect(p); /* P3 */
    return STET_IO;
}

/* What a failed statement means. */
static stet_status failed(pg *p, const PGresult *r, stet_error *err) {
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE), *said = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    stet_status status = STET_IO;
    state = state ? state : "";
    said = said ? said : PQerrorMessage(p->c);
    snprintf(p->state, sizeof p->state, "%s", state);
    if (strncmp(state, "57P", 3) == 0 || strncmp(state, "08", 2) == 0 || PQstatus(p->c) != CONNECTION_OK)
        return lost(p, err); /* the server is being stopped */
    if (strcmp(state, "23503") == 0)
        return stet_fail(err, STET_NOT_FOUND, "hub %s: an object that is named is not stored", p->address.shown);
    if (strncmp(state, "40", 2) == 0 || strcmp(state, "55P03") == 0 || strcmp(state, "57014") == 0)
        status = STET_BUSY;
    else if (strcmp(state, "42P01") == 0 || strcmp(state, "42883") == 0 || strcmp(state, "3F000") == 0)
        status = STET_NOT_FOUND;
    else if (strcmp(state, "42501") == 0)
        status = STET_DENIED;
    stet_fail(err, status, "hub %s: %.*s", p->address.shown, line_of(said), said);
    if (status == STET_NOT_FOUND)
        stet_hint(err, "there is no hub in the schema %s; make one: stet hub init", p->address.schema);
    else if (strncmp(state, "53", 2) == 0)
        stet_hint(err, "the server is out of a resource (SQLSTATE %s); nothing was stored", state);
    return status;
}

/* The name of a statement that the server knows by now. */
static stet_status prepare(pg *p, const char *sql, char name[24], stet_error *err) {
    bool silent;
    for (size_t i = 0; i < p->prepared_count; i++)
        if (strcmp(p->prepared[i], sql) == 0) {
            snprintf(name, 24, "s%zu", i);
            return STET_OK;
        }
    snprintf(name, 24, "s%zu", p->prepared_count);
    if (!PQsendPrepare(p->c, name, sql, 0, NULL))
        return lost(p, err);
    PGresult *r = next_result(p, stet_clock_monotonic_us() + PG_ANSWER_MS * (int64_t)1000, &silent);
    if (!r)
        return lost(p, err);
    stet_status status = PQresultStatus(r) == PGRES_COMMAND_OK ? STET_OK : failed(p, r, err);
    PQclear(r);
    while (p->c && (r = next_result(p, stet_clock_monotonic_us() + PG_ANSWER_MS * (int64_t)1000, &silent)) != NULL)
        PQclear(r);
    if (status != STET_OK)
        return status;
    char **more = stet_alloc((p->prepared_count + 1) * sizeof *more);
    if (p->prepared_count)
        memcpy(more, p->prepared, p->prepared_count * sizeof *more);
    stet_free(p->prepared);
    p->prepared = more;
    p->prepared[p->prepared_count++] = stet_strdup(sql);
    return STET_OK;
}

static stet_status begin_question(pg *p, const char *sql, const pg_args *a, stet_error *err) {
    static const pg_args none;
    char name[24];
    a = a ? a : &none;
    p->lost = false;
    p->state[0] = 0;
    pg_look(p);
    if (!p->c)
        return lost(p, err);
    stet_status status = prepare(p, sql, name, err);
    if (status == STET_OK && !PQsendQueryPrepared(p->c, name, a->count, a->values, a->lengths, a->formats, 1))
        status = lost(p, err);
    return status;
}

stet_status pg_ask(pg *p, const char *sql, const pg_args *a, PGresult **out, stet_error *err) {
    *out = NULL;
    stet_status status = begin_question(p, sql, a, err);
    int64_t deadline = stet_clock_monotonic_us() + PG_ANSWER_MS * (int64_t)1000;
    bool silent = false;
    while (status == STET_OK) {
        PGresult *r = next_result(p, deadline, &silent);
        if (silent)
            status = lost(p, err);
        if (!r)
            break;
        ExecStatusType is = PQresultStatus(r);
        if (is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK) {
            PQclear(*out);
            *out = r;
            continue;
        }
        status = failed(p, r, err);
        PQclear(r);
    }
    while (status != STET_OK && p->c) { /* what is left of the answer */
        PGresult *r = next_result(p, deadline, &silent);
        if (silent)
            pg_disconnect(p);
        if (!r)
            break;
        PQclear(r);
    }
    if (status == STET_OK && !*out)
        status = lost(p, err);
    if (status != STET_OK) {
        PQclear(*out);
        *out = NULL;
    }
    return status;
}

/* P1. */
static stet_status connect_again(pg *p, stet_error *err) {
    int64_t deadline = stet_clock_monotonic_us() + PG_AGAIN_MS * (int64_t)1000;
    for (int wait = 20;; wait = wait < 500 ? wait * 2 : 500) {
        stet_error inner = STET_ERROR_INIT;
        stet_status status = pg_connect(p, &inner);
        bool may_come = status == STET_IO || status == STET_BUSY;
        if (status == STET_OK || !may_come || stet_clock_monotonic_us() > deadline) {
            stet_error_move(err, &inner);
            return status;
        }
        stet_error_clear(&inner);
        stet_clock_sleep_ms(wait);
    }
}

bool pg_try_again(pg *p, int *tries, stet_error *err) {
    bool clash = strncmp(p->state, "40", 2) == 0; /* a deadlock, or two that changed the same */
    if ((!p->lost && !clash) || ++*tries >= PG_TRIES)
        return false;
    stet_error inner = STET_ERROR_INIT;
    if (p->lost && connect_again(p, &inner) != STET_OK) {
        stet_error_clear(err);
        stet_error_move(err, &inner);
        return false;
    }
    stet_error_clear(err);
    return true;
}

stet_status pg_ask_again(pg *p, const char *sql, const pg_args *a, PGresult **out, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    stet_status status;
    int tries = 0;
    do
        status = pg_ask(p, sql, a, out, &inner);
    while (status != STET_OK && pg_try_again(p, &tries, &inner));
    if (status != STET_OK)
        status = inner.status;
    stet_error_move(err, &inner);
    return status;
}

stet_status pg_tell(pg *p, const char *sql, stet_error *err) {
    PGresult *r;
    stet_status status = pg_ask(p, sql, NULL, &r, err);
    PQclear(r);
    return status;
}

stet_status pg_each(pg *p, const char *sql, const pg_args *a, pg_row *row, void *ctx, stet_error *err) {
    stet_status status = begin_question(p, sql, a, err), told = STET_OK;
    bool silent = false;
    if (status == STET_OK)
        PQsetSingleRowMode(p->c);
    while (status == STET_OK) {
        PGresult *r = next_result(p, stet_clock_monotonic_us() + PG_ANSWER_MS * (int64_t)1000, &silent);
        if (silent)
            status = lost(p, err);
        if (!r)
            break;
        ExecStatusType is = PQresultStatus(r);
        if (is == PGRES_SINGLE_TUPLE && told == STET_OK)
            told = row(ctx, r, 0, err);
        else if (is != PGRES_SINGLE_TUPLE && is != PGRES_TUPLES_OK && told == STET_OK)
            status = failed(p, r, err);
        PQclear(r);
    }
    while (status != STET_OK && p->c) {
        PGresult *r = next_result(p, stet_clock_monotonic_us() + PG_ANSWER_MS * (int64_t)1000, &silent);
        if (silent)
            pg_disconnect(p);
        if (!r)
            break;
        PQclear(r);
    }
    return told != STET_OK ? told : status;
}
