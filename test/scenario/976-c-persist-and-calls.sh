#!/usr/bin/env bash
# Calls and persisted results from C, with the public header and libstet.so alone: what a program does, the shell sees.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH LD_LIBRARY_PATH=$PWD/lib
mkdir include lib && ln -s "$STET_BUILD/libstet.so" lib/libstet.so.0 && cp "$STET_SOURCE/include/stet.h" include/
cat >program.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stet.h>

static stet_error err = STET_ERROR_INIT;

static int done(stet_status status, stet_value call) {
    char *text = stet_json_print(call, STET_JSON_CANONICAL, NULL);
    printf("%s %s\n", stet_status_name(status), status == STET_OK || stet_value_count(call) ? text : err.message);
    stet_free(text);
    stet_value_release(call);
    stet_error_clear(&err);
    return (int)status;
}

static int submit(stet_context *context, int argc, char **argv) {
    stet_call_spec spec = STET_CALL_SPEC_INIT;
    spec.function = argv[2];
    spec.args = stet_value_array();
    spec.attempts = 1;
    for (int i = 3; i < argc; i++)
        stet_value_push(&spec.args, stet_value_int(atoi(argv[i])));
    stet_value call;
    stet_status status = stet_call_submit(context, &spec, &call, &err);
    stet_value_release(spec.args);
    return done(status, call);
}

static int put(stet_project *project, const char *text) {
    stet_persist_options options = STET_PERSIST_OPTIONS_INIT;
    stet_persist *p;
    options.project = project;
    stet_status status = stet_persist_open(&options, &p, &err);
    if (status != STET_OK)
        return done(status, stet_value_null());
    stet_persist_key key = {"from C", 0, "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789", stet_persist_now()};
    stet_persist_put *w = stet_persist_put_begin(p, &key);
    stet_persist_put_content(w, "variables", "json");
    for (const char *c = text; *c; c++)
        stet_persist_put_bytes(w, c, 1);
    status = stet_persist_put_end(w, NULL, &err);
    stet_persist_close(p);
    return done(status, stet_value_null());
}

int main(int argc, char **argv) {
    stet_project *project;
    stet_context *context;
    stet_value call;
    stet_context_options options = STET_CONTEXT_OPTIONS_INIT;
    if (argc < 3 || stet_project_find(".", &project, &err) != STET_OK)
        return 2;
    options.project = project;
    if (stet_context_new(&options, &context, &err) != STET_OK)
        return 2;
    int status = 2;
    if (!strcmp(argv[1], "submit"))
        status = submit(context, argc, argv);
    else if (!strcmp(argv[1], "put"))
        status = put(project, argv[2]);
    else if (!strcmp(argv[1], "status"))
        status = done(stet_call_status(context, argv[2], &call, &err), call);
    else if (!strcmp(argv[1], "cancel"))
        status = done(stet_call_cancel(context, argv[2], &call, &err), call);
    else if (!strcmp(argv[1], "logs"))
        status = done(stet_call_logs(context, argv[2], &call, &err), call);
    else if (!strcmp(argv[1], "wait"))
        status = done(stet_call_wait(context, argv[2], argc > 3 ? atoi(argv[3]) : 0, &call, &err), call);
    stet_context_free(context);
    stet_project_close(project);
    return status;
}
C
sanitizers=
nm -D "$STET_BUILD/libstet.so" | grep -q __asan_init && sanitizers=-fsanitize=address,undefined
nm -D "$STET_BUILD/libstet.so" | grep -q __tsan_init && sanitizers=-fsanitize=thread
t "the program builds as C11"       gcc -std=c11 $sanitizers -Wall -Wextra -Werror -Iinclude -o program program.c "$STET_BUILD/libstet.so"
cp program.c program.cc
t "and as C++17"                    g++ -std=c++17 $sanitizers -Wall -Wextra -Werror -Iinclude -o programcc program.cc "$STET_BUILD/libstet.so"
program=$PWD/program
mkdir work && cd work || exit 1
stet init >/dev/null
L=dml+exec://stet-exec-local
answer() { "$program" "$@" | sed 's/^[a-z_]* //'; }
sum="$L/?command=python3+-c+%27import+json,sys%3B+print(sum(json.load(sys.stdin)))%27"
id=$(answer submit "$sum" 3 4 | json id)
t "a call is submitted"             test -n "$id"
t "its result is waited for"        same 7 "$(answer wait "$id" | json value)"
t "in C++ too"                      same 7 "$(../programcc wait "$id" | sed 's/^[a-z_]* //' | json value)"
t "the status has it"               same 7 "$(answer status "$id" | json value)"
t "and the shell"                   same 7 "$(stet --json call show "$id" | json value)"
t "the same call is not run again"  same 7 "$(answer submit "$sum" 3 4 | json value)"
bad=$(answer submit "$L/?command=exit+3" 1 | json id)
t "a call that fails is a failure"  expect_status 1 "$program" wait "$bad"
loud=$(answer submit "$L/?command=echo+said+%3E%262" 1 | json id)
t "a call that says something"      "$program" wait "$loud"
t "and what its job has written"    same said "$(answer logs "$loud" | json stderr)"
slow=$(answer submit "$L/?command=sleep+1000" 1 | json id)
t "a slow call is under way"        test -n "$slow"
t "waiting ends with its time"      expect_status 5 "$program" wait "$slow" 300
t "cancelling ends the call"        "$program" cancel "$slow"
t "nothing is under way"            same 0 "$(stet --json call list --state live | json total)"
t "there is no such call"           expect_status 3 "$program" status 00000000
t "a result is put, byte by byte"   "$program" put '[1,2,3]'
t "and found by the shell"          same '[1,2,3]' "$(stet persist get --block 'from C' --module abcdefgh)"
finish
