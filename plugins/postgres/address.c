/* address.c - takes the address of a hub apart: what libpq gets, the schema, and what may be shown.
 *
 *     postgres://USER@HOST:PORT/DATABASE?schema=NAME&sslmode=verify-full&...
 *
 * Everything but `schema` is libpq's. A password is refused: addresses are stored with calls, given to other processes
 * as an argument, and printed.
 */

#include <stdlib.h>
#include <string.h>

#include "postgres.h"

static stet_status secret(stet_error *err) {
    stet_fail(err, STET_INVALID, "the address of the hub holds a password, which would be stored and printed with it");
    stet_hint(err, "leave the password out of the address: put it into ~/.pgpass, into a service of "
                   "~/.pg_service.conf, or into the variable PGPASSWORD");
    return STET_INVALID;
}

static bool is_schema(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len < 60 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len &&
           (name[0] < '0' || name[0] > '9') && strncmp(name, "pg_", 3) != 0;
}

/* Takes `schema=NAME` out of the options; what is left is for libpq. */
static stet_status take_schema(char *options, char **schema, stet_error *err) {
    char *to = options;
    for (const char *at = options; *at;) {
        size_t len = strcspn(at, "&");
        if (strncmp(at, "schema=", 7) == 0) {
            stet_free(*schema);
            *schema = stet_strndup(at + 7, len - 7);
        } else {
            if (to > options)
                *to++ = '&';
            memmove(to, at, len);
            to += len;
        }
        at += len + (at[len] == '&');
    }
    *to = 0;
    if (is_schema(*schema))
        return STET_OK;
    return stet_fail(err, STET_INVALID,
                     "the address of the hub: \"%.60s\" is not a valid schema: use lower-case letters, digits and _",
                     *schema);
}

/* What libpq reads in the address. The values are checked when it connects. */
static stet_status read_options(pg_address *a, stet_error *err) {
    char *said = NULL;
    const char *host = "", *port = "", *name = "", *service = "";
    PQconninfoOption *all = PQconninfoParse(a->conninfo, &said);
    stet_status status = STET_OK;
    if (!all) {
        size_t len = said ? strcspn(said, "\n") : 0;
        status = stet_fail(err, STET_INVALID, "the address of the hub: %.*s", (int)len, said ? said : "");
        stet_hint(err, "write postgres://USER@HOST:PORT/DATABASE, with options of libpq after a question mark");
        PQfreemem(said);
        return status;
    }
    for (const PQconninfoOption *o = all; o->keyword; o++) {
        if (!o->val)
            continue;
        if (strstr(o->keyword, "password"))
            status = secret(err);
        host = strcmp(o->keyword, "host") == 0 ? o->val : host;
        port = strcmp(o->keyword, "port") == 0 ? o->val : port;
        name = strcmp(o->keyword, "dbname") == 0 ? o->val : name;
        service = strcmp(o->keyword, "service") == 0 ? o->val : service;
    }
    if (status == STET_OK)
        a->shown = stet_asprintf("postgres://%.100s%s%.20s/%.100s%s%.100s", host, *port ? ":" : "", port, name,
                                 *service ? " of service " : "", service);
    PQconninfoFree(all);
    return status;
}

stet_status pg_address_parse(const char *uri, pg_address *out, stet_error *err) {
    *out = (pg_address){.conninfo = stet_strdup(uri), .schema = stet_strdup("stet")};
    char *options = strchr(out->conninfo, '?');
    stet_status status = STET_OK;
    if (strncmp(uri, "postgres://", 11) != 0 && strncmp(uri, "postgresql://", 13) != 0) {
        status = stet_fail(err, STET_INVALID, "the address of the hub does not begin with postgres://");
        stet_hint(err, "write postgres://USER@HOST:PORT/DATABASE");
    }
    if (status == STET_OK && options)
        status = take_schema(options + 1, &out->schema, err);
    if (status == STET_OK && options && !options[1])
        *options = 0;
    if (status == STET_OK)
        status = read_options(out, err);
    if (status != STET_OK)
        pg_address_release(out);
    return status;
}

void pg_address_release(pg_address *a) {
    stet_free(a->conninfo);
    stet_free(a->schema);
    stet_free(a->shown);
    *a = (pg_address){0};
}
