"""Ways of a shell string to read a file by a name that stands in the string, whole or in parts. For words.py and words_traced.py."""
import os, shlex


def forms(rng, path, python):
    """Commands that read `path`, or try to: a relative path with a directory and no quotes, blanks at most."""
    q, d, b = shlex.quote(path), os.path.dirname(path), os.path.basename(path)
    stem, ext = os.path.splitext(b)
    qd, qb, qs = shlex.quote(d), shlex.quote(b), shlex.quote(stem)
    up = "/".join([".."] * len(d.split("/")))
    blank = " " in path
    bash = lambda text: f"bash -c {shlex.quote(text)}"
    double = '"' + path + '"'
    coded = "".join(f"\\x{ord(c):02x}" if i % 3 == 0 else c for i, c in enumerate(path))
    some = [
        # arithmetic, substitutions in substitutions and quotes
        f"echo $(( $(wc -c < {q}) * 2 ))", f"echo \"$(( $(wc -c < {double}) + 1 ))\"", f"echo \"${{X:-$(cat {double})}}\"", f"echo \"$(echo \"$(cat {double})\")\"",
        f"echo \"${{X:-\"$(cat {double})\"}}\"", f"echo \"`cat {q}`\"", f"echo `echo \\`cat {q}\\``", f"echo ${{X:+no}}${{X-$(cat {q})}}", f"echo \"$( (cat {q}) )\"", f"X=$(cat {q}); echo \"$X\"",
        f"echo \"$(case x in x) cat {q};; esac)\"", bash(f"cat <(cat {q})"), bash(f"echo $(<{q})"), bash(f"if (( $(wc -c < {q}) > 3 )); then echo long; fi"),
        # variables
        f"X={qd}; cat \"$X\"/{qb}", f"X={qd}; cat \"${{X}}/{b}\"", f"X={qs}; cat {qd}/\"$X{ext}\"", f"X={q}; Y=$X; cat \"$Y\"", f"X=$(pwd); cat \"$X\"/{q}", f"cat \"$(pwd)\"/{q}", f"cat \"`pwd`/\"{q}", f"cat \"$(pwd -P)/{path}\"",
        f"cat \"${{PWD}}\"/{q}", f"W=$PWD; cd {qd}; cat \"$W\"/{q}", f"X={q}.bak; cat \"${{X%.bak}}\"", f"X={q}.tar.gz; cat \"${{X%%.tar*}}\"", f"X=pre/{q}; cat \"${{X#pre/}}\"", f"X=a/b/{qb}; cat {qd}/\"${{X##*/}}\"",
        f"X={q}; cat {qd}/\"$(basename \"$X\")\"", f"X={q}; cat \"$(dirname \"$X\")\"/{qb}", f"f() {{ cat \"${{1%.bak}}\"; }}; f {q}.bak", f"f() {{ cat \"$1/{b}\"; }}; f {qd}", f"set -- {qd}; cat \"$1\"/{qb}",
        f"show() {{ cat \"$D\"/{qb}; }}; D={qd}; show", f"for x in {qs} none; do cat {qd}/\"$x\"{shlex.quote(ext)}; done", f"for x in {q}.bak; do cat \"${{x%.*}}\"; done", f"for x in {qd} none; do cat \"$x/{b}\"; done",
        f"echo {qd} | {{ read -r x; cat \"$x\"/{qb}; }}", f"X={qd}; export X; sh -c 'cat \"$X\"/{qb}'" if "'" not in qb else f"cat {q}", f"HOME=$PWD; cat ~/{q}", f"HOME=$PWD/{qd}; cat ~/{qb}", f"D={qd} sh -c {shlex.quote(f'cat $D/{qb}' if not blank else f'cat {q}')}",
        f": \"${{X:={path}}}\"; cat \"$X\"", f"X=; cat \"${{X:-{path}}}\"", f"if true; then X={qd}; else X=none; fi; cat \"$X\"/{qb}", f"true && X={qd}; cat \"$X\"/{qb}",
        bash(f"X={q}; cat \"${{X/none/other}}\""), bash(f"X=none{q}; cat \"${{X/none/}}\""), bash(f"X=ab{q}; cat \"${{X:2}}\""), bash(f"X={qs}; X+={shlex.quote(ext)}; cat {qd}/\"$X\""), bash(f"f=({q} none); cat \"${{f[0]}}\""), bash(f"f=(none {q}); cat \"${{f[@]}}\""),
        bash(f"declare -a f=( {qd} ); cat \"${{f[0]}}\"/{qb}"), bash(f"declare -A m=([x]={q}); cat \"${{m[x]}}\""), bash(f"f+=({q}); cat \"${{f[-1]}}\""), bash(f"cat $'{coded}'"), bash(f"X={q}; Y=X; cat \"${{!Y}}\""),
        # patterns
        f"cat {qd}/[[:alnum:]]*", f"cat {qd}/[![:space:]]*", f"cat {qd}/[{b[0]}]*", f"cat {qd}/{shlex.quote(b[:1])}*", bash(f"shopt -s extglob; eval {shlex.quote(f'cat {qd}/@({qs}|none)*')}"), bash(f"shopt -s globstar; cat {qd}/**/{qb}"), f"cat {qd}/{shlex.quote(b[0])}?*",
        bash(f"cat {qd}/{{{qs},none}}{shlex.quote(ext)}"),
        # programs that start programs
        f"env cat {q}", f"env -i cat {q}", f"env -C {qd} cat {qb}", f"env --chdir={qd} cat {qb}", f"env -u X -C {qd} cat {qb}", f"env X=1 cat {q}", f"nice cat {q}", f"nice -n 5 cat {q}", f"timeout 10 cat {q}", f"timeout -k 5 10 cat {q}", f"nohup cat {q}",
        f"command cat {q}", f"exec cat {q}", f"stdbuf -oL cat {q}", f"setsid cat {q}", f"! cat {q}", bash(f"time cat {q}"), f"sh -c \"sh -c 'cat \\\"{path}\\\"'\"", f"env -C {qd} sh -c {shlex.quote('cat ' + qb)}", f"env -S 'cat {q}'" if not blank else f"env cat {q}",
        f"find {qd} -name {qb} -exec cat {{}} +", f"find {qd} -maxdepth 1 -type f -exec sh -c 'cat \"$1\"' x {{}} \\;", f"printf '%s\\n' {q} | xargs -d '\\n' cat", f"printf 'none\\n{path}\\n' | xargs -d '\\n' cat", f"printf '{path}\\0none\\0' | xargs -0 cat",
        f"echo {qs} | xargs -I@ cat {qd}/@{ext}" if not blank else f"cat {q}", f"echo {qs} | xargs -I{{}} cat {qd}/{{}}{ext}" if not blank else f"cat {q}", f"printf '{d}/%s\\n' {qb} | xargs -d '\\n' cat", f"echo {q} | xargs cat" if not blank else f"cat {q}",
        f"xargs -d '\\n' cat <<E\n{path}\nE", f"while read -r x; do cat \"$x\"; done <<E\n{path}\nnone\nE", f"sh <<'E'\ncat {q}\nE", bash(f"cat <<< \"$(cat {double})\""), bash(f"cat \"$(cat <<< {q})\""), f"eval \"cat {q}\"", f"eval cat {shlex.quote(q)}",
        f"alias c=cat; cat {q}", f"trap 'cat {q}' EXIT" if "'" not in q else f"cat {q}", f"(cd {qd} && cat ./{qb})", f"cd {qd}; cat ./{qb}; cat {shlex.quote(up + '/' + path)}", f"cd -P {qd} && cat {qb}",
        # options
        f"sed -n -e 'r {path}' -e p {q}", f"echo x | sed '1r {path}'", f"echo x | sed '1r{path}'", f"echo x | sed -e p -e 'r {path}' -e d", f"grep -hf {q} {q}", f"grep -hf{q} {q}", f"grep -c --file={q} /dev/null", f"grep -rhf {q} {qd}", f"sort -uo /dev/stdout {q}", f"awk 1 {q}", f"awk -v x=1 -f /dev/null {q}",
        f"dd if={q} status=none", f"tar cf - -C {qd} {qb} | wc -c", f"tar -cf- -C{qd} {qb} | wc -c", f"tar --directory={qd} -cf - {qb} | wc -c", f"wc -c --files0-from=- <<E\nE\ncat {q}", f"cmp {q} {q}", f"paste -d, {q} {q}", f"cat -- {q}", f"cat <{q}", f"exec 5<{q}; cat <&5", f"exec 0<{q}; cat",
        f"test -s {q} && echo full", bash(f"[[ -f {q} ]] && echo file"), bash(f"[[ -s {qd}/{qb} && -r {q} ]] && cat {q}"), bash(f"mapfile -t l < {q}; echo \"${{l[0]}}\""), bash(f"exec {{fd}}<{q}; cat <&$fd"),
        # strings for other programs
        f"{python} -Bc 'print(open(\"{path}\").read())'", f"{python} -Bc \"print(open('{path}').read())\"", f"{python} -Bc 'import os; os.chdir(\"{d}\"); print(open(\"{b}\").read())'", f"{python} -Bc 'import sys; print(open(sys.argv[1]).read())' {q}", f"{python} -B - <<E\nprint(open(\"{path}\").read())\nE",
        f"{python} -Bc 'print(open(\"{d}/\" + \"{b}\").read())'", f"{python} -Bc 'x = \"{stem}\"; print(open(f\"{d}/{{x}}{ext}\").read())'", f"{python} -Bc 'print(open(\"{d}/%s\" % \"{b}\").read())'", f"{python} -Bc 'import pathlib; print((pathlib.Path(\"{d}\") / \"{b}\").read_text())'",
        f"{python} -Bc 'import glob; print([open(x).read() for x in sorted(glob.glob(\"{d}/*\")) if x[-3:] == \"dat\"])'", f"{python} -Bc '# it is\nprint(\"x\", open(\"{path}\").read())'", f"{python} -Bc 'print(\"it\\\"s\", open(\"{path}\").read())'",
        f"awk 'BEGIN {{ while ((getline l < \"{path}\") > 0) print l }}'", f"awk -v f={q} 'BEGIN {{ while ((getline l < f) > 0) print l }}'", f"awk 'BEGIN {{ system(\"cat \\\"{path}\\\"\") }}'", f"perl -e 'open F, \"<\", \"{path}\"; print <F>'", f"perl -ne print {q}", f"perl -pe '' < {q}", f"perl -e 'print `cat \"{path}\"`'",
        f"{python} -Bc 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())' file://\"$PWD\"/{path.replace(' ', '%20')}",
        f"{python} -Bc 'import sys; print(open(sys.argv[1][1:]).read())' @{q}", f"{python} -Bc 'import sys; print(open(sys.argv[1].split(\"=@\")[1]).read())' --data=@{q}"]
    return rng.choice(some)


def modules(rng, python):
    """Commands that import mods/pkg and mods/one.py, from a directory or a path."""
    return rng.choice([f"cd mods && {python} -B -m one", f"cd mods && {python} -Bm one", f"cd mods && {python} -B -mone", f"cd mods && {python} -Bmone", f"cd mods; {python} -Bc 'import one'", f"cd mods; {python} -Bc 'import os, one as x'",
                       f"cd mods; {python} -Bc 'from pkg import two'", f"cd mods; {python} -Bc 'import pkg.two'", f"cd mods; {python} -B -m pkg.two", f"cd mods; {python} -B -m pkg", f"cd mods; {python} -Bc '__import__(\"one\")'",
                       f"cd mods; {python} -Bc 'import importlib; importlib.import_module(\"pkg.two\")'", f"PYTHONPATH=mods {python} -Bc 'import one'", f"PYTHONPATH=mods {python} -B -m pkg.two", f"{python} -Bc 'import sys; sys.path.insert(0, \"mods\"); import one'",
                       f"env -C mods {python} -Bc 'from pkg.two import *'", f"cd mods; {python} -Bc 'import runpy; runpy.run_module(\"one\")'", f"cd mods; {python} -B one.py", f"{python} -B mods/one.py"])
