#!/usr/bin/env bash
# What a pattern does not allow is refused whoever asks, and changes nothing; documents that are stet's own are not written by hand; a piece follows its file.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
node() { echo '{"id":"'$1'","inputs":['$2',1],"module":{"type":"ref","ref":"sum"}'${3:-}'}'; }
mk() { # mk DEFAULT NAME NUMBER
    echo '{"pattern":1,"name":"'${2:-f}'","argument":{"default":'$1',"schema":{"properties":{"x":{"type":"number"}}}},"cells":{"c":{"default":1,"schema":{"type":"number"}}},
    "nodes":['$(node a '{"$":"argument/x"}')','$(node b '{"$":"a"}')','$(node n ${3:-0})'],"result":{"b":{"$":"b"},"n":{"$":"n"}}}' >f.json
}
argument() { stet get piece:f:argument --json | json value; }
documents() { stet doc list --limit 1000 --json; stet status --json | json pieces; }

mk '{"x":1}'
t "it runs"                                        expect_out "ran 3" stet run f.json
before=$(documents)
t "set is refused by the schema"                   expect_status 2 stet set piece:f:argument/x '"text"'
t "and says where"                                 expect_err "/x: expected a number" stet set piece:f:argument/x '"text"'
t "doc patch, too"                                 expect_status 2 stet doc patch piece:f:argument '[{"op":"add","path":"/x","value":"text"}]'
t "and a cell"                                     expect_status 2 stet set piece:f:cell:c '"text"'
t "a part of the result that is not there"         expect_status 2 stet run f.json --set x=10 --demand nope
t "a node that is not there"                       expect_status 3 stet run f.json nope --set x=10
t "a key that is not overridden"                   expect_status 2 stet run f.json --set x=10 --unset y
t "a value that does not match"                    expect_status 2 stet run f.json --set y=1 --set 'x="text"'
t "a part of the graph"                            expect_status 2 stet set piece:f:process:0 1
t "its metadata"                                   expect_status 2 stet set --meta piece:f/process 1
t "a program"                                      expect_status 2 stet doc delete "$(stet doc list --prefix program: --json | json documents.0.id)"
t "none of these has changed anything"             same "$before" "$(documents)"

stet run f.json --set x=5 >/dev/null
mk '{"x":"d"}'
t "an override keeps a piece from a wrong default" stet run f.json
t "taking it back is refused"                      expect_status 2 stet run f.json --unset x
t "and it is still there"                          same '{"x":5}' "$(argument)"
mk '{"x":2}'
t "with a right default it is taken back"          stet run f.json --unset x
t "and follows"                                    same '{"x":2}' "$(argument)"

STET_UNGUARDED=1 "$STET_FAULTY" set piece:f:argument/x '"text"' >/dev/null
t "what got there nevertheless does not run"       expect_status 2 stet run f.json
t "is not read as fresh"                           expect_status 2 stet get piece:f/b --fresh
t "and status says so"                             expect_out "f is not up to date: the argument" stet status
t "as does why"                                    expect_out "f is not up to date: the argument" stet why f
t "nothing of it stands"                           test "$(stet status --json | json pieces.0.stands)" = 0
stet run f.json --unset x >/dev/null

stet run f.json --set x=7 >/dev/null
for part in $(stet doc list --prefix piece:f:process: --json | tr ',' '\n' | grep -o 'piece:f:process:[0-9]*'); do
    STET_UNGUARDED=1 "$STET_FAULTY" set "$part" 1 >/dev/null
done
stet set piece:f:argument/x 100 >/dev/null
stet run f.json >run.out 2>&1
t "a damaged graph does not run"                   test $? -ne 0
t "and says what to do"                            grep -q 'check --repair' run.out
stet get piece:f/b --fresh >/dev/null 2>&1
t "nor is an old value fresh"                      test $? -ne 0
t "check finds it"                                 expect_status 1 stet check
t "and mends it"                                   stet check --repair
t "the next run sets it up again"                  stet run f.json
t "with what was set"                              test "$(stet get piece:f/b)" = 102
t "which is still said to be"                      same '["x"]' "$(stet status --json | json pieces.0.overridden)"

mk '{"x":1}' f 5
stet run f.json --piece march >/dev/null
mk '{"x":1}' g 6
t "a piece of another name follows its file"       test "$(stet get piece:march/n --fresh 2>/dev/null)" = 7
t "one of the pattern's name is detached"          expect_status 2 stet get piece:f/n --fresh
t "and status says so"                             expect_out 'f.json no longer makes piece "f"' stet status
t "it can be made to follow"                       stet run f.json --piece f
t "and does"                                       test "$(stet get piece:f/n)" = 7

mkdir one && cd one && stet init >/dev/null && mk '{"x":1}' f 1 && stet run f.json >/dev/null && cd ..
cp -r one two
mv one three
cd two && mk '{"x":1}' f 2
t "a copied project has its own pattern"           test "$(stet get piece:f/n --fresh)" = 3
cd ../three && mk '{"x":1}' f 9
t "and so has one that was moved"                  test "$(stet get piece:f/n --fresh)" = 10
cd ..
finish
