#!/usr/bin/env bash
# Outputs that hold the project's path: their results are not used in another place, and are made again when the project moves; all others are
# used everywhere.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir one && cd one || exit 1
stet init >/dev/null
echo x >source
cat >stet.toml <<'TOML'
name = "places"
[nodes.file]
command = "echo file >> ../log; pwd > {out}"
produces = "file.txt"
[nodes.border]
command = "echo border >> ../log; head -c 262140 /dev/zero > {out}; pwd >> {out}"
produces = "border.bin"
[nodes.tree]
command = "echo tree >> ../log; mkdir -p {out}/a; pwd > {out}/a/b"
produces = "tree"
[nodes.link]
command = "echo link >> ../log; mkdir {out}; ln -s $(pwd) {out}/here"
produces = "links"
[nodes.names]
command = "echo names >> ../log; mkdir {out}; cp --parents $(pwd)/source {out}"
produces = "names"
[nodes.said]
command = "echo said >> ../log; pwd"
stdout = "text"
[nodes.free]
command = "echo free >> ../log; basename $(pwd) | wc -l > {out}"
produces = "free.txt"
[nodes.name]
command = "echo name >> ../log; basename $(pwd) > {out}"
produces = "name.txt"
place = true
TOML
ran() { sort ../log | tr '\n' ' '; : >../log; }
t "the first run" stet run
t "runs everything" test "$(ran)" = "border file free link name names said tree "
t "nothing more to do" expect_out "ran 0," stet run
rm -rf file.txt tree border.bin
t "removed outputs" stet run
t "are put back here" test "$(ran)" = "" -a "$(cat file.txt)" = "$PWD"
cd .. && mkdir two && cp one/stet.toml one/source two/ && cd two || exit 1
stet init >/dev/null
cp -r ../one/.stet/persist .stet/
t "a clone with the results" stet run
t "runs what depends on the place" test "$(ran)" = "border file link name names said tree "
t "and has its own path in it" test "$(cat file.txt tree/a/b)" = "$PWD
$PWD" -a "$(readlink links/here)" = "$PWD"
t "also in names of files" test -e "names$PWD/source"
t "across blocks" test "$(tail -c $((${#PWD} + 1)) border.bin)" = "$PWD"
t "and stands" expect_out "ran 0," stet run
cd .. && mv two three && cd three || exit 1
t "a project that moves" expect_out "file: dirty, changed: env:PROJECT=path" stet run --explain
t "makes again what depends on the place" test "$(ran)" = "border file link name names said tree " -a "$(cat file.txt)" = "$PWD"
t "why tells" expect_out "holds the path of the project" stet why places file
t "place = true, where the path is not in the output" test "$(cat name.txt)" = three
t "and nothing of what does not" bash -c '! "$STET" why places free | grep "path of the project"'
finish
