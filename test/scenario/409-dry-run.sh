#!/usr/bin/env bash
# A dry run says exactly what a run would have to do, after edits, after a change of the pattern, after a kill, and changes nothing: no
# file and no directory of the project has another content or another time afterwards.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir src
for i in 1 2 3; do echo $i >src/$i.txt; done
write_toml() { # write_toml FLAG
    printf 'name = "d"\n' >stet.toml
    for i in 1 2 3; do
        printf '[nodes.n%s]\ncommand = "echo n%s >> log; echo %s; cat {in} > {out}"\nfiles = "src/%s.txt"\nproduces = "b/%s"\n' $i $i "$1" $i $i >>stet.toml
    done
    printf '[nodes.all]\ncommand = "echo all >> log; cat {in} > {out}"\nfiles = "b/*"\nproduces = "all"\n' >>stet.toml
}
write_toml one
state() { find . -printf '%p %y %m %s %T@ %C@ %i\n' -type f -exec sha256sum {} + | sort | sha256sum; }
names() { sed -n 's/^\([a-z0-9]*\): \(dirty\|unknown\|stale\),.*/\1/p' | sort | tr '\n' ' '; }
# dry NAMES: a dry run names these, and leaves no trace.
dry() {
    local before after out
    before=$(state)
    out=$(cd src && stet run -n) || return 1
    after=$(state)
    same "$1" "$(names <<<"$out")" || { echo "$out"; return 1; }
    same "$before" "$after"
}
t "before anything was run"                     dry "all n1 n2 n3 "
t "it did not even make a space"                test ! -e .stet/local/spaces
stet run >/dev/null
t "with nothing to do"                          dry ""
echo 22 >src/2.txt
t "after an edit: the command, and what may follow" dry "all n2 "
t "again: nothing was taken note of"            dry "all n2 "
: >log
stet run >/dev/null
t "and that is what runs"                       same "all n2 " "$(sort log | tr '\n' ' ')"
rm b/3
t "a lost output"                               dry "all n3 "
stet run >/dev/null
write_toml two
t "after a change of the pattern"               dry "all n1 n2 n3 "
t "which it speaks of"                          expect_out "it would be generation 2: 0 nodes added, 3 changed, 0 gone, 1 kept" stet run -n
t "the piece is what it was"                    same 1 "$(stet piece list --json | json pieces.0.generation)"
printf '[nodes.new]\ncommand = "echo new > {out}"\nproduces = "new"\n' >>stet.toml
t "and a node that is new"                      dry "all n1 n2 n3 new "
echo 'broken' >>stet.toml
t "a pattern with a mistake is refused"         expect_err "stet.toml" stet run -n
write_toml three
STET_FAULT=call=sql,n=40,action=kill faulty run >/dev/null 2>&1
t "after a kill, with a log that nobody has read" dry "all n1 n2 n3 "
"$STET" file watch >/dev/null 2>&1 &
watch=$!
sleep 0.3
t "beside a watch: from the files as they are"  sh -c 'echo 33 > src/3.txt; "$STET" run -n | grep -q "^n3:"'
kill $watch
wait $watch 2>/dev/null
t "the run then does it"                        expect_out "failed 0" stet run
t "and leaves nothing"                          dry ""
t "as JSON it names its generation"             same true "$(stet run -n --json | json dryRun)"
mkdir tmp
t "nothing is left behind where it tried things out" sh -c 'TMPDIR=$PWD/tmp "$STET" run -n && rmdir tmp'
echo 34 >src/3.txt
t "why and status look at files, too"           expect_out "n3" stet why
t "as a dry run does"                           same 1 "$(stet status --json | json pieces.0.dirty)"
t "and change nothing"                          expect_out "ran 2" stet run
finish
