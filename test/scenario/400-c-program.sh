#!/usr/bin/env bash
# A C program of 40 files, built with the compiler's dependency files: exactly what is needed is compiled, and the program equals one
# built from scratch.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir src inc
python3 - <<'PYTHON'
n = 40
for i in range(n):
    open(f"inc/h{i % 8}.h", "w").write(f"#define H{i % 8} {i % 8}\n")
for i in range(n):
    body = f'#include "../inc/h{i % 8}.h"\nint f{i}(void) {{ return H{i % 8} + {i}; }}\n'
    if i == 0:
        body += "#include <stdio.h>\n" + "".join(f"int f{k}(void);\n" for k in range(n))
        body += 'int main(void) { int s = 0;' + "".join(f" s += f{k}();" for k in range(n)) + ' printf("%d\\n", s); return 0; }\n'
    open(f"src/f{i}.c", "w").write(body)

def toml(flag):
    text = 'name = "program"\n'
    for i in range(n):
        text += f'[nodes.f{i}]\ncommand = ["cc", "{flag}", "-c", "-MMD", "-MF", "o/f{i}.d", "-o", "{{o}}", "{{c}}"]\nfiles = {{ c = "src/f{i}.c" }}\nproduces = {{ o = "o/f{i}.o" }}\ndepfile = "o/f{i}.d"\n'
    objects = ", ".join(f'"$f{i}.o"' for i in range(n))
    text += f'[nodes.link]\ncommand = ["cc", "-o", "{{program}}", "{{o}}"]\nfiles = {{ o = [{objects}] }}\nproduces = {{ program = "program" }}\n[result]\nprogram = "$link"\n'
    return text
open("stet.toml", "w").write(toml("-O0"))
open("O1.toml", "w").write(toml("-O1"))
PYTHON
cp stet.toml O0.toml
ran() { stet run "$@" --json | json ran; }
sums() { (cat program; for i in $(seq 0 39); do cat "o/f$i.o"; done) | sha256sum; }

t "the first build compiles and links"           same 41 "$(ran)"
t "and the program runs"                         same "$(python3 -c 'print(sum(i % 8 + i for i in range(40)))')" "$(./program)"
first=$(sums)
t "nothing changed: nothing runs"                same 0 "$(ran)"
touch src/* inc/*
t "touched without a change: nothing runs"       same 0 "$(ran)"
echo '#define H3 30' >inc/h3.h
t "a header that only the compiler knew of"      same 6 "$(ran)"
t "the program has it"                           same "$(python3 -c 'print(sum((30 if i % 8 == 3 else i % 8) + i for i in range(40)))')" "$(./program)"
echo '#define H3 3' >inc/h3.h
t "and back: restored, not compiled"             stet run
t "to the byte"                                  same "$first" "$(sums)"
echo '/* a comment */' >>src/f7.c
t "a comment: compiled, and not linked"          same 1 "$(ran)"
cp O1.toml stet.toml
t "another flag compiles everything"             same 41 "$(ran)"
cp O0.toml stet.toml
stet run >/dev/null
rm o/f9.o program
echo spoilt >o/f5.o
t "outputs that are gone or spoilt come back"    stet run
t "the program runs"                             same "$(python3 -c 'print(sum(i % 8 + i for i in range(40)))')" "$(./program)"
with=$(sums)
rm -rf o program .stet
stet init >/dev/null
stet run >/dev/null
t "a build from scratch is the same to the byte" same "$with" "$(sums)"
sed -i 's/return/retrun/' src/f4.c
t "a mistake fails the build"                    expect_status 1 stet run
t "with all that the compiler said"              expect_out 'retrun' sh -c '"$STET" run --retry-failed || true'
t "and is not tried again for nothing"           same 0 "$(stet run --no-retry-failed --json | json ran)"
sed -i 's/retrun/return/' src/f4.c
t "mended"                                       stet run
echo 'int broken' >>inc/h2.h
t "a mistake in a header"                        expect_status 1 stet run -k
echo '#define H2 2' >inc/h2.h
t "mended there, it builds again"                stet run
t "the same program"                             same "$with" "$(sums)"
rm src/f11.c
t "a source that is gone is said by name"        expect_out 'there is no file src/f11.c' sh -c '"$STET" run || true'
finish
