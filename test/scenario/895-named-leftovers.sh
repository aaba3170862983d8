#!/usr/bin/env bash
# An output of a removed node that another node names by its path: the reader fails, as it would in a fresh clone, until the file is removed
# or belongs to somebody again. In all forms of a pattern, for inputs and words, in other pieces too; and not while a node of the new graph may still write it.
. "$STET_SOURCE/test/scenario/lib.sh"
fails() { # fails TEXT WORDS: stet run WORDS fails and says TEXT
    local said
    said=$(stet run "${@:2}" 2>&1) && { echo "$said"; return 1; }
    case $said in *"$1"*) ;; *) echo "$said"; return 1 ;; esac
}
LEFT="which a command that is gone has left behind"
begin() { # begin NAME: an empty project
    cd "$top" && mkdir "$1" && cd "$1" && stet init >/dev/null && mkdir src && echo 1 >src/a && echo 2 >src/b && echo 1 >s
}
top=$PWD

begin toml
R='[nodes.r]
command = "cat {in} > {out}"
files = "g/x"
produces = "o/r"
[nodes.w]
command = "cat g/x > {out}"
produces = "o/w"
[nodes.p]
command = ["python3", "-c", "open(\"o/p\", \"w\").write(open(\"g/x\").read())"]
produces = "o/p"
'
Z='[nodes.z]
command = "cat s > {out}"
produces = "g/x"
'
printf 'name = "p"\n%s%s' "$R" "$Z" >stet.toml
t "a pipeline runs" stet run
printf 'name = "p"\n%s' "$R" >stet.toml
t "an input: it fails" fails "p/r: it would read g/x, $LEFT" -k r
t "a word: it fails" fails "p/w: it would read g/x, $LEFT" -k
t "a string for another program: it fails" fails "p/p: it would read g/x, $LEFT" -k
t "status does not call it up to date" expect_out "3" stet status
t "why says so" expect_out "g/x" stet why r
printf 'name = "p"\n%s[nodes.new]\ncommand = "cat s > {out}"\nproduces = "g/x"\n' "$R" >stet.toml
t "another node that writes it comes first" stet run
printf 'name = "p"\n%s' "$R" >stet.toml
t "gone again" fails "$LEFT" -k
t "gc removes it, though it is named" expect_out "removed g/x" stet gc --outputs
t "then it is missing, as in a clone" fails "there is no file g/x" -k
printf 'name = "p"\n%s%s' "$R" "$Z" >stet.toml
stet run >/dev/null
printf 'name = "p"\n%s' "$R" >stet.toml
stet run -k >/dev/null 2>&1
echo mine >g/x
t "a file that was written anew is a source" stet run
t "and is read" test "$(cat o/r o/w)" = "$(printf 'mine\nmine')"
t "gc leaves it alone" sh -c '"$STET" gc --outputs >/dev/null; test -f g/x'

begin each
cat >stet.toml <<'TOML'
name = "p"
[nodes.e]
each = "src/*"
command = "cat {in} > {out}"
produces = "g/{in.name}"
[nodes.r]
command = "cat {in} > {out}"
files = "g/b"
produces = "o/r"
[nodes.w]
command = "cat g/b > {out}"
produces = "o/w"
[nodes.i]
each = "g/b"
command = "cat {in} > {out}"
produces = "o/i-{in.name}"
TOML
t "each: a pipeline runs" stet run
rm src/b
t "each: an input" fails "p/r: it would read g/b, $LEFT" -k
t "each: a word" fails "p/w: it would read g/b, $LEFT" -k
t "each: a list" fails "p/i[g%2Fb].run: it would read g/b, $LEFT" -k
echo 2 >src/b
t "each: the file is back" stet run
t "each: nothing more to do" expect_out "ran 0," stet run

begin pieces
printf 'name = "p"\n%s[nodes.y]\ncommand = "cat s > {out}"\nproduces = "g/y"\n' "$Z" >p.toml
printf 'name = "q"\n[nodes.r]\ncommand = "cat g/x > {out}"\nproduces = "o/r"\n' >q.toml
t "pieces: one runs" stet run p.toml
t "pieces: another reads its output" stet run q.toml
printf 'name = "p"\n[nodes.y]\ncommand = "cat s > {out}"\nproduces = "g/y"\n' >p.toml
t "pieces: the first runs without the node" stet run p.toml
t "pieces: the second fails" fails "q/r: it would read g/x, $LEFT" q.toml
printf 'name = "p"\n%s[nodes.y]\ncommand = "cat s > {out}"\nproduces = "g/y"\n' "$Z" >p.toml
t "pieces: the node is back" stet run p.toml
t "pieces: and so is its reader" stet run q.toml
stet piece delete p >/dev/null
t "pieces: a whole piece is deleted" fails "q/r: it would read g/x, $LEFT" q.toml

# The file is left from an earlier program, and a node that comes to be during the run writes it.
begin later
printf 'name = "p"\n%s' "$Z" >stet.toml
stet run >/dev/null
cat >stet.toml <<'TOML'
name = "p"
[argument]
what = "g/x"
[nodes.n]
command = "cat {what} > {out}"
inputs = { what = "$argument/what" }
produces = "o/n"
[nodes.slow]
command = "sleep 0.3; echo x > {out}"
produces = "names/x"
[nodes.late]
each = "names/*"
command = "echo new > {out}"
produces = "g/{in.name}"
TOML
t "later: a command that comes to be writes it" stet run
t "later: its reader has read that" test "$(cat o/n)" = new
t "later: nothing more to do" expect_out "ran 0," stet run
finish
