/* pattern_toml.h - patterns written in TOML (stet.toml), made for pipelines of commands over files.
 *
 *     stet_value json, problems;
 *     stet_status status = stet_pattern_toml_convert("stet.toml", text, len, &checks, &json, &problems, &err); // JSON
 *     stet_pattern *pattern; // or checked too
 *     status = stet_pattern_toml_parse("stet.toml", text, len, &checks, &pattern, &problems, &err);
 *
 * docs/pipelines.md describes the form. It is converted as follows:
 *
 *   command = ["cc", "{src}"]          module {"type":"command","argv":[...]}
 *   command = "cc {src}"               module {"type":"command","shell":"..."}
 *   call = "dml+exec://ADAPTER/PATH"   module {"type":"call","function":...}, with args, retries, remote
 *   python = "steps.py:load"           module {"type":"python","implementation":{"file","export"}}
 *   javascript = "..."                 module {"type":"javascript","implementation":"..."}
 *   ref = "sum"                        module {"type":"ref","ref":"sum"}
 *   files.src = "a.c"                  input src: a link to the document file:a.c
 *   files.src = "src/x*.c"             input src: a link to the document glob:src/x*.c, and a reference to each file of
 *                                      another node that it matches
 *   files.src = "$other.out"           input src: {"$": "other/files/out"}; so is a path that another node produces
 *   inputs.x = "$other/rows"           input x: {"$": "other/rows"}; "$$" at the start is one dollar
 *   each.src = "src/x*.c"              a command for each file: two nodes (pattern_each.h)
 *   after = ["other"]                  input "after": [{"$": "other"}]
 *   command = "cc {flags}"             module {..., "vars": {"flags": VALUE}} if `flags` is none of the node's own names
 *   include, templates, vars, matrix,  nothing of their own: they are expanded first (pattern_toml_expand.c)
 *   foreach, when, params, env-file
 *
 * Other files are read only if checks->other is given.
 *
 * Errors name line and column of the TOML text. Ownership as in pattern.h.
 */
#ifndef STET_GRAPH_PATTERN_TOML_H
#define STET_GRAPH_PATTERN_TOML_H

#include "graph/pattern.h"

#define STET_PATTERN_TOML "stet.toml"

/* Is this a pattern in TOML by its name? */
bool stet_pattern_is_toml(const char *file);
STET_CHECKED stet_status stet_pattern_toml_convert(const char *file, const char *text, size_t len,
                                                   const stet_pattern_checks *checks, stet_value *json,
                                                   stet_value *problems, stet_error *err);
STET_CHECKED stet_status stet_pattern_toml_parse(const char *file, const char *text, size_t len,
                                                 const stet_pattern_checks *checks, stet_pattern **out,
                                                 stet_value *problems, stet_error *err);

#endif
