/* record.h - the immutable records of calls, each named by the SHA-256 of its bytes.
 *
 *     stet_hash argument, node, call;
 *     stet_status status = stet_datum_id(value, &sink, &argument, &err); // any JSON value; its parts become records
 *     if (status == STET_OK)
 *         status = stet_node_literal(argument, &sink, &node, &err);
 *     if (status == STET_OK) // `call` is the cache key
 *         status = stet_node_call("dml+exec://stet-exec-local/command", &node, 1, &sink, &call, &err);
 *
 * A record is an object with a `type`, in canonical JSON:
 *
 *   {"kind":"int","payload":5,"type":"datum"}
 *       also null bool double string bytes blob uri list set map
 *   {"kind":"literal","target":DATUM,"type":"node"}
 *       also import (target: a DAG)
 *   {"function":URI,"inputs":[NODE...],"kind":"call","type":"node"}
 *       also builtin; a call may have "code":{PATH:DATUM...} too: the content of the files that it runs; and
 *       "beside":DATUM: values that count but are not passed to the function
 *   {"names":{NAME:NODE...},"root":NODE,"type":"dag"}
 *   {"attempt":N,"node":NODE,"result":DAG,"status":"ok"|"error","timings":{NAME:MS...},"type":"exec"}
 *   {"dags":{NAME:DAG...},"type":"tree"}
 *   {"execs":EXECMAP,"message":TEXT,"parents":[COMMIT...],"time":MS,"tree":TREE,"type":"commit"}
 *   {"execs":{NODE:EXEC...},"type":"execmap"}
 *       or {"count":N,"parts":{DIGIT:EXECMAP...},"type":"execmap"}
 *   {"object":ID,"reason":TEXT,"time":MS,"type":"tombstone"}
 *       in place of an object that was excised
 *
 * The fields:
 *   - Ids are 64 hexadecimal digits.
 *   - Strings and names are in Unicode normalization form C, URIs in the canonical form of repo/text.h. Functions that
 *     make a record from a text convert it; a record that is not in that form is refused.
 *   - A double is a number that is not an integer of up to 2^53; those are ints.
 *   - Bytes are base64url.
 *   - A blob is {"parts":[DATUM...],"sha256":HEX,"size":N}: at least two data of kind bytes, which make up the content of
 *     a file.
 *   - Lists hold datum ids; sets hold them sorted and unique; maps hold pairs of key and value id, sorted by key id,
 *     each key once.
 *   - URIs that begin with `dml:` are reserved for stet.
 *
 * A call's id depends only on these fields: names are not part of it. The
 * paths of `code` are relative, without empty, "." and ".." parts; its data are of kind bytes or blob.
 *
 * A record that is read is checked completely: its hash, that its text is canonical, and its fields. A record that
 * can't be verified is STET_CORRUPT, with its id, and is never handed out.
 *
 * Ids are computed whether or not the records are kept: a NULL sink keeps none.
 */
#ifndef STET_EXEC_RECORD_H
#define STET_EXEC_RECORD_H

#include "base/buf.h"
#include "base/hash.h"

#define STET_RECORD_MAX_BYTES ((size_t)64 << 20)

typedef enum stet_record_type {
    STET_RECORD_DATUM,
    STET_RECORD_NODE,
    STET_RECORD_DAG,
    STET_RECORD_EXEC,
    STET_RECORD_TREE,
    STET_RECORD_COMMIT,
    STET_RECORD_EXECMAP,
    STET_RECORD_TOMBSTONE
} stet_record_type;
#define STET_RECORD_TYPES 8
#define STET_EXECMAP_LEAF 16 /* an exec map with up to this many entries is one record; see repo/execmap.h */
const char *stet_record_type_name(stet_record_type type); /* "datum", ... */

/* Receives each record that is made, children first. */
typedef struct stet_record_sink {
    stet_status (*put)(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *err);
    void *ctx;
} stet_record_sink;

/* Checks the fields of a record and computes its id; passes its bytes to `sink` (may be NULL). */
STET_CHECKED stet_status stet_record_make(stet_value record, stet_record_type type, const stet_record_sink *sink,
                                          stet_hash *id, stet_error *err);
/* Parses and verifies bytes that should be the record `id`. `*out` belongs to the caller. */
STET_CHECKED stet_status stet_record_read(stet_hash id, const char *bytes, size_t len, stet_record_type type,
                                          stet_value *out, stet_error *err);

/* The same for a record of any type; the text says which. */
STET_CHECKED stet_status stet_record_read_any(stet_hash id, const char *bytes, size_t len, stet_record_type *type,
                                              stet_value *out, stet_error *err);
/* The type that a text claims to have; nothing else is checked. False: none. */
bool stet_record_says(const char *bytes, size_t len, stet_record_type *type);

/* Appends to `out` the ids that a checked record names, with the types they must have. The entries of an exec map name
 * their execs, which name their nodes; a tombstone names nothing. */
typedef struct stet_record_name {
    stet_hash id;
    stet_record_type type;
} stet_record_name;
typedef struct stet_record_list {
    stet_record_name *at;
    size_t len, cap;
} stet_record_list;
void stet_record_named(stet_value record, stet_record_type type, stet_record_list *out);

/* Makes data of a JSON value: arrays become lists, objects become maps with string keys. Different encodings of one
 * text become one datum; as keys of one object they are STET_INVALID. */
STET_CHECKED stet_status stet_datum_id(stet_value v, const stet_record_sink *sink, stet_hash *id, stet_error *err);
/* The same for texts that must not be normalised, such as file names and whatever must be reproduced byte for byte. A
 * text in normalization form C is a string as above; any other text is a datum of kind bytes. So no two texts become
 * the same datum. */
STET_CHECKED stet_status stet_datum_exact_id(stet_value v, const stet_record_sink *sink, stet_hash *id,
                                             stet_error *err);
/* STET_INVALID: not a URI, or a URI of dml:. */
STET_CHECKED stet_status stet_datum_uri_id(const char *uri, size_t len, const stet_record_sink *sink, stet_hash *id,
                                           stet_error *err);
STET_CHECKED stet_status stet_node_literal(stet_hash datum, const stet_record_sink *sink, stet_hash *id,
                                           stet_error *err);
STET_CHECKED stet_status stet_node_call(const char *function, const stet_hash *inputs, size_t count,
                                        const stet_record_sink *sink, stet_hash *id, stet_error *err);
/* The same with what else identifies the call. */
typedef struct stet_node_more {
    stet_value code;         /* an object {PATH: id of a datum in hex}; empty or null: none */
    const stet_hash *beside; /* a datum; NULL: none */
} stet_node_more;
STET_CHECKED stet_status stet_node_call_with(const char *function, const stet_hash *inputs, size_t count,
                                             const stet_node_more *more, const stet_record_sink *sink, stet_hash *id,
                                             stet_error *err);
/* `names` is an object {NAME: id in hex}, or null. */
STET_CHECKED stet_status stet_dag_id(stet_hash root, stet_value names, const stet_record_sink *sink, stet_hash *id,
                                     stet_error *err);

#endif
