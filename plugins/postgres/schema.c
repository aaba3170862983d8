/* schema.c - the tables of a hub, and how they came to be.
 *
 * A hub is a schema of a database. Its version stands in the table `hub`; `stet hub init` makes what is missing, step by
 * step, under an advisory lock. Nothing else changes the schema.
 *
 * Rules of hub.h that the database itself keeps:
 *
 *   H1, H5. An edge, a ref and a claim name objects by foreign keys: an object that is named can't be deleted, and what
 *           is not there can't be named, whoever writes at the same time.
 *   H3.     Times come from now_ms(), the clock of the server.
 */

#include <stdlib.h>
#include <string.h>

#include "postgres.h"

static const char step1[] =
    "CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql STABLE AS "
    "  'SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint';"

    /* Immutable records. `lost`: `bytes` is a tombstone from elsewhere. `touched_ms`: when somebody last put it or asked
     * for it, give or take some minutes; it has no index, so that it can be renewed in place. */
    "CREATE TABLE object("
    "  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    "  id bytea NOT NULL UNIQUE CHECK (length(id) = 32),"
    "  type smallint NOT NULL,"
    "  lost boolean NOT NULL,"
    "  touched_ms bigint NOT NULL,"
    "  bytes bytea NOT NULL);"
    /* Which objects an object names. */
    "CREATE TABLE edge("
    "  child bigint NOT NULL REFERENCES object,"
    "  parent bigint NOT NULL REFERENCES object ON DELETE CASCADE,"
    "  PRIMARY KEY(child, parent));"
    "CREATE INDEX edge_parent ON edge(parent);"
    "CREATE TABLE ref("
    "  name text COLLATE \"C\" PRIMARY KEY,"
    "  target bigint NOT NULL REFERENCES object,"
    "  changed_ms bigint NOT NULL);"
    "CREATE INDEX ref_target ON ref(target);"

    /* `version` is the hash of `body`, `phase` a stet_hub_phase. Claims change often and are small: room is left in each
     * page, and old versions are removed early. */
    "CREATE TABLE claim("
    "  key bytea PRIMARY KEY CHECK (length(key) = 32),"
    "  version bytea NOT NULL CHECK (length(version) = 32),"
    "  phase smallint NOT NULL CHECK (phase BETWEEN 0 AND 2),"
    "  lease_ms bigint NOT NULL,"
    "  changed_ms bigint NOT NULL,"
    "  node bigint REFERENCES object,"
    "  result bigint REFERENCES object,"
    "  body bytea NOT NULL)"
    "  WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);"
    "CREATE INDEX claim_queued ON claim(changed_ms) WHERE phase = 0;"
    "CREATE INDEX claim_held ON claim(lease_ms) WHERE phase = 1;"
    "CREATE INDEX claim_ended ON claim(changed_ms) WHERE phase = 2;"
    "CREATE INDEX claim_node ON claim(node);"
    "CREATE INDEX claim_result ON claim(result);"

    "CREATE TABLE worker(name text PRIMARY KEY, until_ms bigint NOT NULL, body bytea NOT NULL);"

    /* The parts of a blob belong to an upload: two who store the same blob do not wait for each other. */
    "CREATE TABLE blob("
    "  hash bytea PRIMARY KEY CHECK (length(hash) = 32),"
    "  upload bigint NOT NULL,"
    "  size bigint NOT NULL,"
    "  touched_ms bigint NOT NULL);"
    "CREATE SEQUENCE upload;"
    "CREATE TABLE blob_part(upload bigint, n integer, bytes bytea NOT NULL, PRIMARY KEY(upload, n));"
    "ALTER TABLE blob_part ALTER COLUMN bytes SET STORAGE EXTERNAL;";

static const char *const steps[PG_SCHEMA_VERSION] = {step1};

/* 0: there is none. */
static stet_status version_of(pg *p, int64_t *version, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    *version = 0;
    pg_arg_text(&a, p->address.schema);
    stet_status status = pg_ask_again(
        p, "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1::text AND tablename = 'hub'", &a, &r, err);
    if (status != STET_OK)
        return status;
    bool there = pg_int(r, 0, 0) > 0;
    PQclear(r);
    if (!there)
        return STET_OK;
    status = pg_ask_again(p, "SELECT version FROM hub", NULL, &r, err);
    if (status != STET_OK)
        return status;
    *version = PQntuples(r) == 1 ? pg_int(r, 0, 0) : 0;
    PQclear(r);
    return STET_OK;
}

stet_status pg_schema_check(pg *p, stet_error *err) {
    int64_t version;
    stet_status status = version_of(p, &version, err);
    if (status != STET_OK || version == PG_SCHEMA_VERSION)
        return status;
    if (version == 0) {
        status = stet_fail(err, STET_NOT_FOUND, "hub %s: there is no hub in the schema %s yet", p->address.shown,
                           p->address.schema);
        stet_hint(err, "make one: stet hub init URI");
    } else {
        status = stet_fail(err, STET_UNSUPPORTED, "hub %s: its schema has version %lld, this stet works with %d",
                           p->address.shown, (long long)version, PG_SCHEMA_VERSION);
        stet_hint(err, version > PG_SCHEMA_VERSION ? "install a newer stet on this machine"
                                                   : "bring the hub up to date: stet hub init URI");
    }
    return status;
}

/* In a transaction with the lock held. */
static stet_status migrate(pg *p, bool *changed, stet_error *err) {
    int64_t version;
    char *create = stet_asprintf("CREATE SCHEMA IF NOT EXISTS \"%s\"", p->address.schema);
    stet_status status = version_of(p, &version, err);
    if (status == STET_OK && version > PG_SCHEMA_VERSION)
        status = pg_schema_check(p, err);
    if (status == STET_OK && version == 0)
        status = pg_tell(p, create, err);
    if (status == STET_OK && version == 0)
        status = pg_tell(p, "CREATE TABLE hub(version bigint NOT NULL)", err);
    if (status == STET_OK && version == 0)
        status = pg_tell(p, "INSERT INTO hub(version) VALUES (0)", err);
    stet_free(create);
    for (; version < PG_SCHEMA_VERSION && status == STET_OK; version++) {
        PGresult *r = PQexec(p->c, steps[version]); /* many statements at once */
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            status = stet_fail(err, STET_IO, "hub %s: step %lld of its schema: %s", p->address.shown,
                               (long long)version + 1, PQerrorMessage(p->c));
        PQclear(r);
        *changed = true;
    }
    if (status == STET_OK && *changed) {
        char *set = stet_asprintf("UPDATE hub SET version = %d", PG_SCHEMA_VERSION);
        status = pg_tell(p, set, err);
        stet_free(set);
    }
    return status;
}

stet_status pg_init(const char *uri, bool *changed, stet_error *err) {
    pg p = {0};
    PGresult *r = NULL;
    *changed = false;
    stet_status status = pg_address_parse(uri, &p.address, err);
    if (status == STET_OK)
        status = pg_connect(&p, err);
    if (status == STET_OK)
        status = pg_tell(&p, "BEGIN", err);
    if (status == STET_OK) {
        pg_args a = {0};
        pg_arg_text(&a, p.address.schema);
        status = pg_ask(&p, "SELECT pg_advisory_xact_lock(hashtext('stet hub ' || $1::text))", &a, &r, err);
        PQclear(r);
    }
    if (status == STET_OK)
        status = migrate(&p, changed, err);
    if (status == STET_OK)
        status = pg_tell(&p, "COMMIT", err);
    *changed &= status == STET_OK;
    pg_disconnect(&p);
    pg_address_release(&p.address);
    return status;
}
