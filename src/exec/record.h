/* record.h - the immutable records of calls: data, nodes, DAGs, outcomes and their history, each named by the SHA-256
 * of its bytes.
 *
 *     stet_hash argument, node, call;
 *     stet_datum_id(value, &sink, &argument, &err);     // any JSON value, its parts as records of their own
 *     stet_node_literal(argument, &sink, &node, &err);
 *     stet_node_call("dml+exec://stet-exec-local/command", &node, 1, &sink, &call, &err);   // `call` is the cache key
 *
 * A record is an object with a `type`, in canonical JSON:
 *
 *     {"kind":"int","payload":5,"type":"datum"}                      null bool int double string bytes uri list set map
 *     {"kind":"literal","target":DATUM,"type":"node"}                also import (target: a DAG)
 *     {"function":URI,"inputs":[NODE...],"kind":"call","type":"node"}    also builtin
 *     {"names":{NAME:NODE...},"root":NODE,"type":"dag"}
 *     {"attempt":N,"node":NODE,"result":DAG,"status":"ok"|"error","timings":{NAME:MS...},"type":"exec"}
 *     {"dags":{NAME:DAG...},"type":"tree"}
 *     {"execs":EXECMAP,"message":TEXT,"parents":[COMMIT...],"time":MS,"tree":TREE,"type":"commit"}
 *     {"execs":{NODE:EXEC...},"type":"execmap"}          or {"count":N,"parts":{DIGIT:EXECMAP...},"type":"execmap"}
 *     {"object":ID,"reason":TEXT,"time":MS,"type":"tombstone"}       stands where an object was excised
 *
 * Ids are 64 hexadecimal digits. Strings and names are in Unicode's normal form C, URIs in the canonical form of
 * exec/text.h: whoever makes a record from a text has it put into that form, whoever hands in a record that is not in
 * it is refused. A double is a number that is no integer of up to 2^53, those are ints. Bytes are base64url. Lists hold
 * datum ids; sets hold them sorted and unique; maps hold pairs of key and value id, sorted by key id, each key once.
 * URIs that begin with `dml:` are reserved for what stet itself means.
 *
 * A call's id depends on its function and on the ids of its inputs, and on nothing else: names are not part of it.
 *
 * A record that is read is checked whole: its hash, that its text is canonical, and its fields. What does not verify is
 * STET_CORRUPT, with its id, and never handed out.
 *
 * Ids are computed whether or not somebody keeps the records: a sink that is NULL keeps none. */
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
#define STET_EXECMAP_LEAF 16 /* entries up to which an exec map is one record; exec/execmap.h says why it is a tree */
const char *stet_record_type_name(stet_record_type type); /* "datum", ... */

/* Is given each record that was made, children first. */
typedef struct stet_record_sink {
    stet_status (*put)(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *err);
    void *ctx;
} stet_record_sink;

/* Checks the fields of a record and gives its id; to `sink` (may be NULL) its bytes. */
STET_CHECKED stet_status stet_record_make(stet_value record, stet_record_type type, const stet_record_sink *sink,
                                          stet_hash *id, stet_error *err);
/* The record behind bytes that are said to be `id`. `*out` belongs to the caller. */
STET_CHECKED stet_status stet_record_read(stet_hash id, const char *bytes, size_t len, stet_record_type type,
                                          stet_value *out, stet_error *err);

/* The same for a record of any type, told by its text. */
STET_CHECKED stet_status stet_record_read_any(stet_hash id, const char *bytes, size_t len, stet_record_type *type,
                                              stet_value *out, stet_error *err);
/* The type that a text says it has, without looking at anything else of it. False: none. */
bool stet_record_says(const char *bytes, size_t len, stet_record_type *type);

/* What a record names, of which type it must be. The entries of an exec map name their execs, which name their nodes; a
 * tombstone names nothing. Added to `out`; the record is one that was checked. */
typedef struct stet_record_name {
    stet_hash id;
    stet_record_type type;
} stet_record_name;
typedef struct stet_record_list {
    stet_record_name *at;
    size_t len, cap;
} stet_record_list;
void stet_record_named(stet_value record, stet_record_type type, stet_record_list *out);

/* A JSON value as data: arrays become lists, objects maps with string keys. Two ways to write one text are one datum;
 * as keys of one object they are STET_INVALID. */
STET_CHECKED stet_status stet_datum_id(stet_value v, const stet_record_sink *sink, stet_hash *id, stet_error *err);
/* The same for what must not be normalised, such as names of files and what else somebody gets byte for byte: a text
 * in normal form C is a string as above, any other is a datum of kind bytes, so that no two texts are one. */
STET_CHECKED stet_status stet_datum_exact_id(stet_value v, const stet_record_sink *sink, stet_hash *id,
                                             stet_error *err);
/* STET_INVALID for what is no URI, and for those of dml:. */
STET_CHECKED stet_status stet_datum_uri_id(const char *uri, size_t len, const stet_record_sink *sink, stet_hash *id,
                                           stet_error *err);
STET_CHECKED stet_status stet_node_literal(stet_hash datum, const stet_record_sink *sink, stet_hash *id,
                                           stet_error *err);
STET_CHECKED stet_status stet_node_call(const char *function, const stet_hash *inputs, size_t count,
                                        const stet_record_sink *sink, stet_hash *id, stet_error *err);
/* `names` is an object {NAME: id in hex}, or null. */
STET_CHECKED stet_status stet_dag_id(stet_hash root, stet_value names, const stet_record_sink *sink, stet_hash *id,
                                     stet_error *err);

stet_value stet_hash_text(stet_hash id);              /* its hex, as a string value */
bool stet_hash_of_text(stet_value v, stet_hash *out); /* the inverse; false for anything else */

#endif
