/* cells.c - cells, handlers, effects and materializers through the real scheduler, with JavaScript, across restarts. */

#include "../sched_kit.h"

static void a_run_reads_what_it_wrote(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'cells':{'c':{'default':{'a':1,'b':2}}},'nodes':["
        "{'id':'m','inputs':{'n':{'$':'argument/n'},'c':{'$':'c','asCell':true}},'module':#({n, c}) => { "
        "c.key(`a`).set(n + 10); const seen = c.get().a; c.key(`list`).push(seen); c.key(`list`).push(2); c.update({z: "
        "1}); return [seen, c.get().list.length] }#}],"
        "'result':{'m':{'$':'m'}}}");
    kit_runs(w, "t", "m");
    kit_is(w, "piece:t/m", "[11,2]");
    kit_is(w, "piece:t:cell:c", "{'a':11,'b':2,'list':[11,2],'z':1}");
    kit_runs(w, "t", ""); /* what it changed itself is no reason */
    kit_sound(w);
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

static void what_it_wrote_is_its_own(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'a':1,'b':1}},'cells':{'c':{'default':{'x':0}}},'nodes':["
        "{'id':'m','inputs':{'v':{'$':'argument'},'c':{'$':'c','asCell':true}},'module':#({v, c}) => { "
        "c.key(`a`).set(v.a); c.key(`b`).set(v.b); return v.a }#}],"
        "'result':{'m':{'$':'m'},'c':{'$':'c'}}}");
    kit_run(w, "t");
    kit_is(w, "piece:t:cell:c", "{'a':1,'b':1,'x':0}");
    kit_set(w, "piece:t:cell:c/x", "5"); /* not its own */
    kit_runs(w, "t", "");
    kit_set(w, "piece:t:argument/b", "2"); /* this run changes b alone, and a stays its own */
    kit_runs(w, "t", "m");
    kit_restart(w);
    kit_set(w, "piece:t:cell:c/a", "77");
    kit_sound(w);
    kit_runs(w, "t", "m");
    kit_is(w, "piece:t:cell:c", "{'a':1,'b':2,'x':5}");
    kit_set(w, "piece:t:cell:c/a", "78"); /* and in the process that ran it */
    kit_runs(w, "t", "m");
    kit_end(w);
}

static void a_failed_run_writes_nothing(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'cells':{'c':{'default':0}},'nodes':["
                "{'id':'m','inputs':{'n':{'$':'argument/n'},'c':{'$':'c','asCell':true}},'module':#({n, c}) => { "
                "c.set(n); if (n > 1) throw new Error(`too much`); return n }#}],"
                "'result':{'m':{'$':'m'}}}");
    kit_run(w, "t");
    kit_is(w, "piece:t:cell:c", "1");
    kit_set(w, "piece:t:argument/n", "2");
    kit_runs(w, "t", "m");
    assert_int_equal(w->report.failed, 1);
    kit_is(w, "piece:t:cell:c", "1");
    kit_is(w, "piece:t/m", "1");
    kit_sound(w);
    kit_restart(w);
    kit_runs(w, "t", ""); /* it does not run again before something that it read has changed */
    kit_set(w, "piece:t:argument/n", "0");
    kit_runs(w, "t", "m");
    kit_is(w, "piece:t:cell:c", "0");
    kit_end(w);
}

static void schemas_hold_for_what_is_written(void **state) {
    (void)state;
    world *w = kit_start();
    stet_error e = STET_ERROR_INIT;
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'n':1},'schema':{'properties':{'n':{'type':'integer'}}}},'"
        "cells':{'c':{'default':[],'schema':{'items':{'type':'string'}}}},'nodes':["
        "{'id':'add','stream':{'$':'add'},'inputs':{'c':{'$':'c','asCell':true}},'module':^(e, {c}) => { c.push(e) }^},"
        "{'id':'n','stream':{'$':'n'},'inputs':{'n':{'$':'argument/n','asCell':true}},'module':^(e, {n}) => { n.set(e) "
        "}^},"
        "{'id':'by','stream':{'$':'by'},'inputs':{'c':{'$':'c'}},'argumentSchema':{'type':'array','prefixItems':[{'"
        "type':'string'},{'properties':{'c':{'asCell':true,'maxItems':1}}}]},'module':^(e, {c}) => { c.push(e) }^}],"
        "'result':{'c':{'$':'c'}}}");
    ok(kit_send(w, "t", "add", "'a'", NULL, &err));
    assert_int_equal(kit_send(w, "t", "add", "5", NULL, &e), STET_INVALID);
    assert_non_null(strstr(e.message, "piece:t:cell:c does not match"));
    stet_error_clear(&e);
    assert_int_equal(kit_send(w, "t", "n", "'x'", NULL, &e), STET_INVALID);
    assert_non_null(strstr(e.message, "piece:t:argument does not match"));
    stet_error_clear(&e);
    ok(kit_send(w, "t", "n", "3", NULL, &err));
    /* The event and what a cell holds then must match the schema of the handler, too. */
    assert_int_equal(kit_send(w, "t", "by", "7", NULL, &e), STET_INVALID);
    stet_error_clear(&e);
    assert_int_equal(kit_send(w, "t", "by", "'b'", NULL, &e), STET_INVALID);
    stet_error_clear(&e);
    kit_set(w, "piece:t:cell:c", "[]");
    ok(kit_send(w, "t", "by", "'b'", NULL, &err));
    kit_is(w, "piece:t", "{'c':['b']}");
    kit_is(w, "piece:t:argument/n", "3");
    kit_end(w);
}

/* An action that a schema kept from running runs when what did not match has changed, though it never looked at it. */
static void what_a_schema_looked_at_is_read(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'cells':{'c':{'default':'x'},"
        "'d':{'default':{'a':1},'schema':{'properties':{'a':{'type':'integer'}}}}},'nodes':["
        "{'id':'in','inputs':{'n':{'$':'argument/n'},'c':{'$':'c','asCell':true}},'argumentSchema':{'properties':{'c':{"
        "'type':'integer'}}},'module':#({n}) => n#},"
        "{'id':'out','inputs':{'n':{'$':'argument/n'},'d':{'$':'d','asCell':true}},'module':#({n, d}) => { "
        "d.key(`b`).set(n); return n }#}],'result':{'in':{'$':'in'},'out':{'$':'out'}}}");
    kit_set(w, "piece:t:cell:d/a", "'x'");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 2);
    kit_set(w, "piece:t:cell:c", "2");
    kit_runs(w, "t", "in");
    kit_set(w, "piece:t:cell:d/a", "2");
    kit_runs(w, "t", "out");
    assert_int_equal(w->report.failed, 0);
    kit_set(w, "piece:t:cell:c", "'y'");
    kit_runs(w, "t", "in");
    assert_int_equal(w->report.failed, 1);
    kit_end(w);
}

static void cells_lead_through_links_and_not_everywhere(void **state) {
    (void)state;
    world *w = kit_start();
    stet_error e = STET_ERROR_INIT;
    kit_set(w, "shared", "{'list':[1]}");
    kit_set(w, "via",
            "{'x':{'/':{'link@1':"
            "{'id':'shared','path':['list']}}}}");
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','nodes':["
        "{'id':'n','inputs':[1,2],'module':{'type':'ref','ref':'add'}},"
        "{'id':'add','stream':{'$':'add'},'inputs':{'c':{'/':{'link@1':"
        "{'id':'via','path':['x'],'asCell':true}}}},'module':^(e, {c}) => { c.push(e) }^},"
        "{'id':'far','stream':{'$':'far'},'inputs':{'c':{'/':{'link@1':"
        "{'id':'x','space':'other','asCell':true}}}},'module':^(e, {c}) => { c.set(e) }^},"
        "{'id':'out','stream':{'$':'out'},'inputs':{'c':{'$':'n','asCell':true}},'module':^(e, {c}) => { c.set(e) }^}],"
        "'result':{'n':{'$':'n'}}}");
    ok(kit_send(w, "t", "add", "2", NULL, &err));
    kit_is(w, "shared", "{'list':[1,2]}"); /* the list is still shared */
    kit_is(w, "via/x", "[1,2]");
    stet_space *other;
    ok(stet_space_open(w->project, "other", 0, &other, &err));
    stet_space_close(other);
    assert_int_equal(kit_send(w, "t", "far", "2", NULL, &e), STET_INVALID);
    assert_non_null(strstr(e.message, "space \"other\""));
    stet_error_clear(&e);
    assert_int_equal(kit_send(w, "t", "out", "2", NULL, &e), STET_INVALID);
    assert_non_null(strstr(e.message, "node \"n\" computes"));
    stet_error_clear(&e);
    kit_end(w);
}

static void a_users_value_in_a_named_cell_survives(void **state) {
    (void)state;
    world *w = kit_start();
    const char *one =
        "{'pattern':1,'name':'t','cells':{'c':{'default':1},'d':{'default':1}},'nodes':["
        "{'id':'add','stream':{'$':'add'},'inputs':{'c':{'$':'c','asCell':true}},'module':^(e, {c}) => { c.set(e) }^},"
        "{'id':'x','inputs':{'c':{'$':'c'},'d':{'$':'d'}},'module':#({c, d}) => c + d#}],"
        "'result':{'x':{'$':'x'}}}";
    const char *two =
        "{'pattern':1,'name':'t','cells':{'c':{'default':5},'d':{'default':5},'e':{'default':7}},'nodes':["
        "{'id':'x','inputs':{'c':{'$':'c'},'d':{'$':'d'},'e':{'$':'e'}},'module':#({c, d, e}) => [c, d, e]#}],"
        "'result':{'x':{'$':'x'}}}";
    kit_install(w, "t", one);
    kit_run(w, "t");
    kit_set(w, "piece:t:cell:d", "40");
    ok(kit_send(w, "t", "add", "20", NULL, &err));
    kit_restart(w);
    kit_install(w, "t", two);
    kit_run(w, "t");
    kit_is(w, "piece:t/x", "[20,40,7]");
    kit_is(w, "piece:t:node:add", "not_found"); /* its stream went with the handler */
    kit_install(w, "t", one);
    kit_run(w, "t");
    kit_is(w, "piece:t/x", "60");
    kit_is(w, "piece:t:node:add", "{'$stream':true}");
    kit_end(w);
}

static const char counter[] =
    "{'pattern':1,'name':'t','argument':{'default':{'rows':[1,2,3],'factor':2}},'cells':{'log':{'default':[]}},'nodes':"
    "["
    "{'id':'scaled','inputs':{'rows':{'$':'argument/rows'},'factor':{'$':'argument/factor'}},'module':#({rows, "
    "factor}) => rows.map(r => r * factor)#},"
    "{'id':'total','inputs':{'values':{'$':'scaled'}},'module':{'type':'ref','ref':'sum'}},"
    "{'id':'unread','inputs':{'f':{'$':'argument/factor'}},'module':#({f}) => f * 100#},"
    "{'id':'add','stream':{'$':'add'},'inputs':{'rows':{'$':'argument/rows','asCell':true}},'module':^(event, {rows}) "
    "=> { rows.push(event) }^},"
    "{'id':'snap','stream':{'$':'snap'},'inputs':{'total':{'$':'total'},'unread':{'$':'unread'},'log':{'$':'log','"
    "asCell':true}},'module':^(event, i) => { console.log(`seen`); i.log.push(event ? i.total : i.unread) }^}],"
    "'result':{'total':{'$':'total'},'log':{'$':'log'},'add':{'$':'add'}}}";

static void an_event_sent_twice_is_applied_once(void **state) {
    (void)state;
    world *w = kit_start();
    stet_error e = STET_ERROR_INIT;
    kit_install(w, "t", counter);
    kit_run(w, "t");
    ok(kit_send(w, "t", "add", "4", "one", &err));
    assert_true(w->sent.applied);
    int64_t seq = w->sent.seq;
    ok(kit_send(w, "t", "add", "4", "one", &err));
    assert_false(w->sent.applied);
    assert_int_equal(w->sent.seq, seq);
    kit_restart(w);
    ok(kit_send(w, "t", "add", "4", "one", &err));
    assert_false(w->sent.applied);
    assert_int_equal(kit_send(w, "t", "add", "5", "one", &e), STET_CONFLICT);
    assert_non_null(strstr(e.message, "another content"));
    stet_error_clear(&e);
    kit_is(w, "piece:t:argument/rows", "[1,2,3,4]");
    kit_runs(w, "t", "scaled total");
    kit_is(w, "piece:t/total", "20");
    kit_end(w);
}

static void streams_are_known_after_a_restart(void **state) {
    (void)state;
    world *w = kit_start();
    stet_error e = STET_ERROR_INIT;
    kit_install(w, "t", counter);
    kit_restart(w); /* nothing has ever run */
    ok(kit_send(w, "t", "add", "4", NULL, &err));
    kit_is(w, "piece:t:argument/rows", "[1,2,3,4]");
    assert_int_equal(kit_send(w, "t", "ad", "4", NULL, &e), STET_NOT_FOUND);
    assert_non_null(strstr(e.hint, "add, snap"));
    stet_error_clear(&e);
    assert_int_equal(kit_send(w, "u", "add", "4", NULL, &e), STET_NOT_FOUND);
    assert_non_null(strstr(e.message, "no piece \"u\""));
    stet_error_clear(&e);
    assert_int_equal(kit_send(w, "t", "add", "4", "with space", &e), STET_INVALID);
    stet_error_clear(&e);
    /* A handler is no action: it is neither unknown nor dirty. */
    kit_run(w, "t");
    assert_int_equal(w->report.total, 3);
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.loaded, 0); /* nor is `unread`, which nobody wanted, looked at again */
    kit_end(w);
}

static void preflight_makes_fresh_what_the_handler_reads_and_nothing_else(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", counter);
    ok(kit_send(w, "t", "snap", "true", NULL, &err));
    kit_ran(w, "scaled total");                            /* `unread` is not read, and does not run */
    assert_string_equal(stet_buf_cstr(&w->log), "seen\n"); /* the run that counted */
    kit_is(w, "piece:t:cell:log", "[12]");
    kit_restart(w);
    kit_set(w, "piece:t:argument/factor", "3");
    ok(kit_send(w, "t", "snap", "true", NULL, &err));
    kit_ran(w, "scaled total");
    assert_int_equal(w->sent.made_fresh, 2);
    kit_is(w, "piece:t:cell:log", "[12,18]");
    ok(kit_send(w, "t", "snap", "true", NULL, &err));
    kit_ran(w, "");
    ok(kit_send(w, "t", "snap", "false", NULL, &err));
    kit_ran(w, "unread");
    kit_is(w, "piece:t:cell:log", "[12,18,18,300]");
    /* What a piece wants is not changed by that. */
    kit_set(w, "piece:t:argument/factor", "1");
    kit_runs(w, "t", "scaled total");
    kit_end(w);
}

static void a_failing_handler_leaves_nothing(void **state) {
    (void)state;
    world *w = kit_start();
    stet_error e = STET_ERROR_INIT;
    kit_install(w, "t",
                "{'pattern':1,'name':'t','cells':{'c':{'default':0},'s':{}},'nodes':["
                "{'id':'a','stream':{'$':'s'},'inputs':{'c':{'$':'c','asCell':true}},'module':^(e, {c}) => { "
                "c.set(c.get() + e); if (e < 0) throw new Error(`below`) }^},"
                "{'id':'b','stream':{'$':'s'},'inputs':{'c':{'$':'c','asCell':true}},'module':^(e, {c}) => { if "
                "(c.get() > 9) throw new Error(`full`); c.set(c.get() * 2) }^}],"
                "'result':{'c':{'$':'c'}}}");
    ok(kit_send(w, "t", "s", "3", "e1", &err)); /* both, in the order of their names */
    kit_is(w, "piece:t/c", "6");
    assert_int_not_equal(kit_send(w, "t", "s", "-1", "e2", &e), STET_OK);
    assert_non_null(strstr(e.message, "t/a: "));
    stet_error_clear(&e);
    kit_is(w, "piece:t/c", "6");
    kit_is(w, "piece:t:event:e2", "not_found");
    kit_set(w, "piece:t:cell:c", "0");          /* what failed may be sent again, with another content, too */
    ok(kit_send(w, "t", "b", "5", "e2", &err)); /* by the name of one of the handlers */
    assert_true(w->sent.applied);
    kit_is(w, "piece:t/c", "10");
    kit_end(w);
}

/* A handler that fails after others had the event does not take back what they did. Sending the event again tries this
 * handler again, and no other. */
static void a_second_handler_that_fails_is_tried_again(void **state) {
    (void)state;
    world *w = kit_start();
    stet_error e = STET_ERROR_INIT;
    kit_install(w, "t",
                "{'pattern':1,'name':'t','cells':{'c':{'default':0},'log':{'default':[]},'s':{}},'nodes':["
                "{'id':'dbl','inputs':{'c':{'$':'c'}},'module':#({c}) => c * 2#},"
                "{'id':'a','stream':{'$':'s'},'inputs':{'c':{'$':'c','asCell':true}},'module':^(e, {c}) => { "
                "c.set(c.get() + e) }^},"
                "{'id':'b','stream':{'$':'s'},'inputs':{'d':{'$':'dbl'},'log':{'$':'log','asCell':true}},'module':^(e, "
                "{d, log}) => { if (d > 9) throw new Error(`full`); log.push([`b`, d]) }^},"
                "{'id':'z','stream':{'$':'s'},'inputs':{'d':{'$':'dbl'},'log':{'$':'log','asCell':true}},'module':^(e, "
                "{d, log}) => { log.push([`z`, d]) }^}],"
                "'result':{'log':{'$':'log'}}}");
    ok(kit_send(w, "t", "s", "3", "e1", &err));
    kit_is(w, "piece:t/log", "[['b',6],['z',6]]");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_send(w, "t", "s", "5", "e2", &e), STET_FAILED);
        assert_non_null(strstr(e.message, "event \"e2\" was applied, but \"b\""));
        assert_non_null(strstr(e.message, "full"));
        assert_int_equal(w->sent.applied, i == 0);
        stet_error_clear(&e);
        kit_is(w, "piece:t:cell:c", "8");
        kit_is(w, "piece:t/log", "[['b',6],['z',6],['z',16]]");
        kit_is(w, "piece:t:queue", "not_found");
        kit_restart(w);
    }
    kit_set(w, "piece:t:cell:c", "1");
    ok(kit_send(w, "t", "s", "5", "e2", &err));
    assert_false(w->sent.applied);
    kit_is(w, "piece:t:undelivered:e2", "not_found");
    kit_is(w, "piece:t/log", "[['b',6],['z',6],['z',16],['b',2]]");
    ok(kit_send(w, "t", "s", "5", "e2", &err));
    kit_is(w, "piece:t/log", "[['b',6],['z',6],['z',16],['b',2]]");
    size_t count;
    kit_set(w, "piece:t:cell:c", "9");
    assert_int_equal(kit_send(w, "t", "s", "1", "e3", &e), STET_FAILED);
    stet_error_clear(&e);
    ok(stet_sched_forget_events(w->space, "", INT64_MAX, false, &count, &err));
    assert_int_equal(count, 3);
    kit_is(w, "piece:t:undelivered:e3", "not_found");
    kit_end(w);
}

static void a_conflict_runs_the_handler_again(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", counter);
    /* Two handles send at the same time: each push is there, none twice. */
    stet_space *second;
    stet_sched *other;
    ok(stet_space_open(w->project, "main", 0, &second, &err));
    ok(stet_sched_open(w->project, second, "", &w->opts, &other, &err));
    for (int i = 0; i < 20; i++) {
        char text[16], id[16];
        stet_sched_sent sent;
        snprintf(text, sizeof text, "%d", i);
        snprintf(id, sizeof id, "e%d", i);
        ok(kit_send(w, "t", "add", text, id, &err));
        ok(stet_sched_send(other, "t", "add", stet_value_int(i), id, &sent, &err));
        assert_false(sent.applied);
        ok(stet_sched_send(other, "t", "add", stet_value_int(100 + i), NULL, &sent, &err));
        assert_true(sent.applied);
    }
    kit_is(w, "piece:t:argument/rows/42", "119");
    kit_is(w, "piece:t:argument/rows/43", "not_found");
    stet_sched_close(other);
    stet_space_close(second);
    kit_end(w);
}

static void a_handlers_write_overwrites_only_what_an_action_owns(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'cells':{'owned':{},'free':{'default':0}},'nodes':["
        "{'id':'x','output':{'$':'owned'},'inputs':{'n':{'$':'argument/n'}},'module':#({n}) => n#},"
        "{'id':'y','inputs':{'f':{'$':'free'}},'module':#({f}) => f#},"
        "{'id':'set','stream':{'$':'set'},'inputs':{'o':{'$':'owned','asCell':true},'f':{'$':'free','asCell':true}},'"
        "module':^(e, i) => { i[e[0]].set(e[1]) }^}],"
        "'result':{'x':{'$':'x'},'y':{'$':'y'}}}");
    kit_run(w, "t");
    ok(kit_send(w, "t", "set", "['f',5]", NULL, &err));
    kit_runs(w, "t", "y"); /* a reader, and nobody that would have been overwritten */
    ok(kit_send(w, "t", "set", "['o',5]", NULL, &err));
    kit_restart(w);
    kit_runs(w, "t", "x");
    kit_is(w, "piece:t", "{'x':1,'y':5}");
    kit_end(w);
}

static void events_without_a_record_of_runs(void **state) {
    (void)state;
    world *w = kit_start();
    w->opts.persist = false;
    kit_restart(w);
    kit_install(w, "t", counter);
    ok(kit_send(w, "t", "snap", "true", "a", &err));
    kit_is(w, "piece:t:cell:log", "[12]");
    kit_restart(w);
    kit_set(w, "piece:t:argument/factor", "3");
    ok(kit_send(w, "t", "snap", "true", "a", &err));
    assert_false(w->sent.applied);
    ok(kit_send(w, "t", "snap", "true", "b", &err));
    kit_is(w, "piece:t:cell:log", "[12,18]");
    kit_stop(w);
}

static void events_are_forgotten_by_age(void **state) {
    (void)state;
    world *w = kit_start();
    size_t count;
    kit_install(w, "t", counter);
    for (int i = 0; i < 5; i++)
        ok(kit_send(w, "t", "add", "1", NULL, &err));
    ok(kit_send(w, "t", "add", "1", "known", &err));
    ok(stet_sched_forget_events(w->space, "", 1, false, &count, &err));
    assert_int_equal(count, 0);
    ok(stet_sched_forget_events(w->space, "", INT64_MAX, true, &count, &err));
    assert_int_equal(count, 6);
    kit_is(w, "piece:t:event:known/stream", "'add'");
    ok(stet_sched_forget_events(w->space, "", INT64_MAX, false, &count, &err));
    assert_int_equal(count, 6);
    kit_is(w, "piece:t:event:known", "not_found");
    ok(kit_send(w, "t", "add", "1", "known", &err));
    assert_true(w->sent.applied);
    kit_end(w);
}

static void a_standing_effect_never_repeats_unless_it_says_so(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'nodes':["
        "{'id':'skip','kind':'effect','inputs':{'n':{'$':'argument/n'}},'module':#({n}) => n#},"
        "{'id':'run','kind':'effect','onRestart':'run','inputs':{'n':{'$':'argument/n'}},'module':#({n}) => n#}],"
        "'result':null}");
    kit_run(w, "t");
    assert_int_equal(w->report.effects, 2);
    kit_runs(w, "t", "");
    for (int i = 0; i < 3; i++) {
        kit_restart(w);
        kit_runs(w, "t", "run"); /* once per start */
        kit_runs(w, "t", "");
    }
    kit_set(w, "piece:t:argument/n", "2");
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.runs, 2);
    kit_end(w);
}

/* `index` writes by_id from rows, has an ordinary output, and readers of both. */
static const char indexer[] =
    "{'pattern':1,'name':'t','argument':{'default':{'rows':{'a':1,'b':2},'other':1}},'cells':{'by_id':{'default':{}}},'"
    "nodes':["
    "{'id':'index','materializerWriteInputPaths':['by_id'],'inputs':{'rows':{'$':'argument/"
    "rows'},'by_id':{'$':'by_id','asCell':true}},'module':#({rows, by_id}) => { let n = 0; for (const k of "
    "Object.keys(rows)) { by_id.key(k).set({double: rows[k] * 2}); n++ } return n }#},"
    "{'id':'ra','inputs':{'v':{'$':'by_id/a'}},'module':#({v}) => v ? v.double : -1#},"
    "{'id':'rb','inputs':{'v':{'$':'by_id/b'}},'module':#({v}) => v ? v.double : -1#},"
    "{'id':'count','inputs':{'n':{'$':'index'}},'module':#({n}) => n * 10#},"
    "{'id':'see','stream':{'$':'see'},'inputs':{'v':{'$':'by_id/b'},'log':{'$':'argument/"
    "seen','asCell':true}},'module':^(e, {v, log}) => { log.push(v.double) }^},"
    "{'id':'far','inputs':{'o':{'$':'argument/other'}},'module':#({o}) => o#}],"
    "'result':{'ra':{'$':'ra'},'rb':{'$':'rb'},'far':{'$':'far'}}}";

static void a_materializer_fans_out_only_through_what_changed(void **state) {
    (void)state;
    world *w = kit_piece("t", indexer);
    kit_is(w, "piece:t", "{'far':1,'ra':2,'rb':4}");
    assert_int_equal(w->report.ran, 4); /* it runs before its readers: none of them twice; `count` is not wanted */
    assert_int_equal(w->report.runs, 4);
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_set(w, "piece:t:argument/rows/b", "5");
    kit_restart(w);
    kit_runs(w, "t", "index rb");
    kit_is(w, "piece:t", "{'far':1,'ra':2,'rb':10}");
    kit_sound(w);
    /* The readers of its ordinary output are stale as those of anybody. */
    ok(stet_sched_demand_cell(w->sched, "piece:t:node:count", NULL, (stet_pathref){"value", 6}, &err));
    kit_settle(w);
    kit_ran(w, "count");
    kit_is(w, "piece:t:node:count", "20");
    kit_set(w, "piece:t:argument/rows/c", "1");
    kit_restart(w);
    ok(stet_sched_demand_cell(w->sched, "piece:t:node:count", NULL, (stet_pathref){"value", 6}, &err));
    kit_settle(w);
    kit_ran(w, "index count");
    kit_is(w, "piece:t:node:count", "30");
    kit_end(w);
}

static void a_materializer_is_promoted_by_demand_and_preflight(void **state) {
    (void)state;
    world *w = kit_piece("t", indexer);
    kit_set(w, "piece:t:argument/rows/b", "6");
    kit_restart(w);
    /* Something else of the piece alone: it stays dirty. */
    ok(stet_sched_demand_cell(w->sched, "piece:t:node:far", NULL, (stet_pathref){"value", 6}, &err));
    kit_settle(w);
    kit_ran(w, "");
    kit_restart(w);
    ok(stet_sched_demand_cell(w->sched, "piece:t:node:rb", NULL, (stet_pathref){"value", 6}, &err));
    kit_settle(w);
    kit_ran(w, "index rb");
    kit_is(w, "piece:t:node:rb", "12");
    kit_set(w, "piece:t:argument/rows/b", "7");
    kit_restart(w);
    ok(kit_send(w, "t", "see", "null", NULL, &err));
    kit_ran(w, "index"); /* and no reader of what it wrote: they are not asked for */
    kit_is(w, "piece:t:argument/seen", "[14]");
    /* A cell in its envelope that nobody has read yet. */
    kit_set(w, "piece:t:argument/rows/z", "1");
    kit_restart(w);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, "z");
    ok(stet_sched_demand_cell(w->sched, "piece:t:cell:by_id", NULL, stet_path_ref(&path), &err));
    kit_settle(w);
    kit_ran(w, "index");
    kit_is(w, "piece:t:cell:by_id/z/double", "2");
    stet_path_release(&path);
    kit_end(w);
}

static void a_materializer_runs_at_idle(void **state) {
    (void)state;
    world *w = kit_start();
    /* Nobody reads what it writes: it runs all the same, after everything else. Opaque: it says nowhere that it writes,
     * and nobody looks at its result. */
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'cells':{'c':{'default':0},'d':{'default':0}},'nodes':["
        "{'id':'opaque','inputs':{'n':{'$':'argument/n'},'c':{'$':'c','asCell':true}},'module':#({n, c}) => { c.set(n) "
        "}#},"
        "{'id':'says','materializerWriteInputPaths':[['d']],'inputs':{'x':{'$':'x'},'d':{'$':'d','asCell':true}},'"
        "module':#({x, d}) => { d.set(x) }#},"
        "{'id':'unread','inputs':{'n':{'$':'argument/n'}},'module':#({n}) => n#},"
        "{'id':'x','inputs':{'n':{'$':'argument/n'}},'module':#({n}) => n + 1#},"
        "{'id':'y','inputs':{'n':{'$':'argument/n'}},'module':#({n}) => n + 2#}],"
        "'result':{'y':{'$':'y'}}}");
    kit_run(w, "t");
    assert_memory_equal(stet_buf_cstr(&w->ran), "y ", 2); /* what is wanted first */
    assert_int_equal(w->report.runs, 4);
    assert_null(strstr(stet_buf_cstr(&w->ran), "unread"));
    kit_is(w, "piece:t:cell:c", "1");
    kit_is(w, "piece:t:cell:d", "2");
    kit_set(w, "piece:t:argument/n", "5");
    kit_restart(w);
    kit_run(w, "t");
    assert_memory_equal(stet_buf_cstr(&w->ran), "y ", 2);
    assert_int_equal(w->report.runs, 4);
    kit_is(w, "piece:t:cell:c", "5");
    kit_is(w, "piece:t:cell:d", "6");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

/* A node fails, then gets other code, in one process: it is not listed as failing any more. */
static void a_failure_of_older_code_is_taken_back(void **state) {
    (void)state;
    world *w = kit_start();
    static const char other[] =
        "{'pattern':1,'name':'t','argument':{'default':{'rows':[{'id':1}]}},'nodes':[{'id':'rows',"
        "'inputs':{'list':{'$':'argument/rows'}},'module':{'type':'ref','ref':'map','key':'id',"
        "'pattern':{'pattern':1,'name':'c','nodes':[{'id':'x','inputs':{'e':{'$':"
        "'argument/element/id'}},'module':#({e}) => { %s return e }#}],'result':{'$':'x'}}}}],"
        "'result':{'$':'rows'}}";
    static const char *const codes[] = {"", "throw new Error(`no`);", "e += 1;"};
    for (int i = 0; i < 3; i++) {
        char *text = stet_asprintf(other, codes[i]);
        kit_install(w, "t", text);
        kit_run(w, "t");
        assert_int_equal(w->report.failed, i == 1);
        stet_free(text);
    }
    stet_value failures;
    ok(stet_observe_failures(w->space, 0, "piece:t", NULL, &failures, &err));
    assert_int_equal(stet_value_count(failures), 0);
    stet_value_release(failures);
    kit_is(w, "piece:t", "[2]");
    kit_end(w);
}

/* What was loaded for a part of a piece, or before an event, is wanted when all of it is. */
static void an_effect_that_was_met_before_runs(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        world *w = kit_start();
        stet_path path = STET_PATH_INIT;
        stet_error e = STET_ERROR_INIT;
        kit_install(
            w, "t",
            "{'pattern':1,'name':'t','argument':{'default':{'n':1}},'cells':{'done':{'default':0},'c':{'default':0}},"
            "'nodes':[{'id':'x','inputs':[{'$':'argument/n'},1],'module':{'type':'ref','ref':'add'}},"
            "{'id':'act','kind':'effect','inputs':{'x':{'$':'x'},'done':{'$':'done','asCell':true}},"
            "'module':#({x, done}) => { done.set(x) }#},"
            "{'id':'h','stream':{'$':'h'},'inputs':{'c':{'$':'c','asCell':true},'x':{'$':'x'}},'module':"
            "^(e, {c, x}) => { c.set(x) }^}],'result':{'x':{'$':'x'}}}");
        for (int again = 0; again < 2; again++) {
            stet_path_set(&path, STET_PATH_ROOT);
            stet_path_push(&path, "value");
            stet_path_push(&path, "x");
            if (how == 0)
                ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
            if (how == 0)
                kit_settle(w);
            else
                assert_int_equal(kit_send(w, "t", "h", "1", NULL, &e), STET_OK);
            kit_ran(w, "x");
            kit_runs(w, "t", "act");
            kit_is(w, "piece:t:cell:done", again ? "8" : "2");
            kit_set(w, "piece:t:argument/n", "7");
            kit_restart(w);
        }
        stet_path_release(&path);
        kit_sound(w);
        kit_stop(w);
    }
}

static void patterns_with_wrong_cells_are_refused(void **state) {
    (void)state;
    kit_refused("{'pattern':1,'name':'t','cells':{'c':{}},'nodes':["
                "{'id':'a','materializerWriteInputPaths':['c'],'inputs':{'c':{'$':'c'}},'module':#() => 1#}],"
                "'result':null}",
                "is given a value there, and no cell");
    kit_refused("{'pattern':1,'name':'t','nodes':["
                "{'id':'a','materializerWriteInputPaths':['c'],'inputs':{},'module':#() => 1#}],"
                "'result':null}",
                "has no reference there");
    kit_refused("{'pattern':1,'name':'t','nodes':["
                "{'id':'a','materializerWriteInputPaths':[5],'inputs':{},'module':#() => 1#}],"
                "'result':null}",
                "no path into the inputs");
    kit_refused(
        "{'pattern':1,'name':'t','nodes':["
        "{'id':'b','module':#() => 1#},"
        "{'id':'a','materializerWriteInputPaths':['b'],'inputs':{'b':{'$':'b','asCell':true}},'module':#() => 1#}],"
        "'result':null}",
        "would write to the output of node");
    kit_refused("{'pattern':1,'name':'t','nodes':["
                "{'id':'b','module':#() => 1#},"
                "{'id':'a','stream':{'$':'b'},'module':^() => 1^}],"
                "'result':null}",
                "is the output of node");
    kit_refused("{'pattern':1,'name':'t','nodes':["
                "{'id':'a','stream':{'$':'argument/x'},'module':^() => 1^}],"
                "'result':null}",
                "neither its own nor a named cell");
}

/* The public functions keep to the rules of graph/guard.c, as the command line does. */
static void public_writes_leave_a_piece_whole(void **state) {
    (void)state;
    static const char text[] =
        PATTERN("{'x':1,'y':2}", REF("a", "negate", "{'value':{'$':'argument/x'}}"), "{'a':{'$':'a'}}");
    world *w = kit_piece("t", text);
    stet_error e = STET_ERROR_INIT;
    stet_tx *tx;
    ok(stet_tx_begin(w->space, "", &tx, &err));
    assert_int_equal(stet_tx_set(tx, "piece:t/a", NULL, stet_value_int(9), &e), STET_INVALID);
    stet_error_clear(&e);
    stet_value ops = kit_value("[{'op':'replace','path':'/a','value':9}]");
    assert_int_equal(stet_tx_patch_value(tx, "piece:t", NULL, ops, &e), STET_INVALID);
    stet_error_clear(&e);
    stet_value_release(ops);
    assert_int_equal(stet_tx_delete(tx, "piece:t", NULL, &e), STET_INVALID);
    stet_error_clear(&e);
    assert_int_equal(stet_tx_delete(tx, "piece:t:argument", NULL, &e), STET_INVALID);
    stet_error_clear(&e);
    ok(stet_tx_set(tx, "piece:none", NULL, stet_value_int(1), &err)); /* of no piece */
    ok(stet_tx_commit(tx, NULL, &err));
    kit_is(w, "piece:t", "{'a':-1}");
    /* What is set is an override; the rest follows the pattern. */
    kit_set(w, "piece:t:argument/x", "5");
    kit_install(w, "t",
                PATTERN("{'x':8,'y':3}", REF("a", "negate", "{'value':{'$':'argument/x'}}"), "{'a':{'$':'a'}}"));
    kit_is(w, "piece:t:argument", "{'x':5,'y':3}");
    /* The output of a node is restored by it. */
    kit_run(w, "t");
    kit_set(w, "piece:t:node:a", "77");
    kit_runs(w, "t", "a");
    kit_is(w, "piece:t", "{'a':-5}");
    kit_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_writes_leave_a_piece_whole),
        cmocka_unit_test(a_run_reads_what_it_wrote),
        cmocka_unit_test(what_it_wrote_is_its_own),
        cmocka_unit_test(a_failed_run_writes_nothing),
        cmocka_unit_test(schemas_hold_for_what_is_written),
        cmocka_unit_test(what_a_schema_looked_at_is_read),
        cmocka_unit_test(cells_lead_through_links_and_not_everywhere),
        cmocka_unit_test(a_users_value_in_a_named_cell_survives),
        cmocka_unit_test(an_event_sent_twice_is_applied_once),
        cmocka_unit_test(streams_are_known_after_a_restart),
        cmocka_unit_test(preflight_makes_fresh_what_the_handler_reads_and_nothing_else),
        cmocka_unit_test(a_failing_handler_leaves_nothing),
        cmocka_unit_test(a_second_handler_that_fails_is_tried_again),
        cmocka_unit_test(a_conflict_runs_the_handler_again),
        cmocka_unit_test(a_handlers_write_overwrites_only_what_an_action_owns),
        cmocka_unit_test(events_without_a_record_of_runs),
        cmocka_unit_test(events_are_forgotten_by_age),
        cmocka_unit_test(a_standing_effect_never_repeats_unless_it_says_so),
        cmocka_unit_test(a_materializer_fans_out_only_through_what_changed),
        cmocka_unit_test(a_materializer_is_promoted_by_demand_and_preflight),
        cmocka_unit_test(a_materializer_runs_at_idle),
        cmocka_unit_test(an_effect_that_was_met_before_runs),
        cmocka_unit_test(a_failure_of_older_code_is_taken_back),
        cmocka_unit_test(patterns_with_wrong_cells_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
