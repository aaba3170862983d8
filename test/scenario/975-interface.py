#!/usr/bin/env python3
"""The interfaces are what they say: libstet.so exports stet.h and nothing else, the Python package and plug-ins see no more of the library than they may."""
import os, pathlib, re, shutil, subprocess, sysconfig
from tap import finish, t

SOURCE, BUILD = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"])
header = re.sub(r"/\*.*?\*/", "", (SOURCE / "include/stet.h").read_text(), flags=re.S)
header = re.sub(r"^#.*(?:\\\n.*)*", "", header, flags=re.M)
functions = {name: arguments for name, arguments in re.findall(r"STET_API\b[^;{]*?\b(stet_\w+)\(((?:[^()]|\([^()]*\)|\(\*\w+\)\([^()]*\))*)\)", header)}


def run(*command, **how):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **how)


def symbols(path, *flags):
    rows = [line.split() for line in run("nm", *flags, path).stdout.splitlines()]
    return [row[-1] for row in rows if len(row) > 1]


def parameters(text):
    """How many parameters a declaration has. A callback counts as one, whatever it takes itself."""
    while "(" in text:
        text = re.sub(r"\([^()]*\)", "", text)
    return 0 if text.strip() == "void" else text.count(",") + 1


t("the header declares functions", len(functions) > 100, sorted(functions))
mapped = re.findall(r"^ +(stet_\w+);", (SOURCE / "tools/libstet.map").read_text(), flags=re.M)
t("the symbol map names the functions of stet.h, each once", sorted(mapped) == sorted(functions),
          sorted(set(mapped) ^ set(functions)) or "one is named twice")
exported = [s for s in symbols(BUILD / "libstet.so", "-D", "--defined-only") if not s.startswith(("__asan", "__odr_asan", "__tsan", "__gcov"))]
versioned = {s.split("@")[0] for s in exported if "@@STET_" in s}
t("libstet.so exports them with a version, and nothing else", versioned == set(functions),
          sorted(versioned ^ set(functions)))
t("and no other symbol", not [s for s in exported if "@@STET_" not in s and not re.fullmatch(r"STET_\w+(@@STET_\w+)?", s)], exported)
dynamic = run("readelf", "-d", BUILD / "libstet.so").stdout
t("its name has the number of the ABI", "[libstet.so.0]" in dynamic, dynamic)
many = {name: arguments for name, arguments in functions.items() if parameters(arguments) > 7}
t("no function has more than seven parameters", not many, many)

# The Python package: one header, and only exported functions.
alone = pathlib.Path("alone")
(alone / "include").mkdir(parents=True)
shutil.copy(SOURCE / "include/stet.h", alone / "include")
for path in [*SOURCE.glob("python/*.c"), *SOURCE.glob("python/*.h")]:
    shutil.copy(path, alone)
python = sysconfig.get_path("include")
seen = run("gcc", "-std=c11", "-D_GNU_SOURCE", "-Iinclude", f"-I{python}", "-M", *sorted(p.name for p in alone.glob("*.c")), cwd=alone)
t("the Python package compiles with stet.h alone", seen.returncode == 0, seen.stderr)
ours = {word for word in re.split(r"[\s\\]+", seen.stdout) if word and not word.startswith("/") and not word.endswith((":", ".c"))}
t("and includes no other header of stet", ours == {"include/stet.h", "module.h", "persist.h", "space.h"}, sorted(ours))
quoted = {name for path in alone.glob("*.[ch]") for name in re.findall(r'#\s*include\s*"([^"]+)"', path.read_text())}
t("by name or otherwise", quoted == {"stet.h", "module.h", "persist.h", "space.h"}, sorted(quoted))
sanitized = any("__asan" in s or "__tsan" in s for s in symbols(BUILD / "libstet.so", "-D"))
if not sanitized:
    linked = run("gcc", "-std=c11", "-D_GNU_SOURCE", "-Iinclude", f"-I{python}", "-fPIC", "-shared", "-o", "_stet.so", *sorted(p.name for p in alone.glob("*.c")),
                 BUILD / "libstet.so", cwd=alone)
    t("it links with libstet.so", linked.returncode == 0, linked.stderr)
    wanted = {s.split("@")[0] for s in symbols(alone / "_stet.so", "-D", "--undefined-only")} if linked.returncode == 0 else {"stet_"}
    private = {s for s in wanted if s.startswith("stet_")} - set(functions)
    t("and needs exported functions only", not private, sorted(private))
module = symbols(BUILD / "python/stet/_stet.abi3.so", "-D", "--defined-only") if (BUILD / "python").is_dir() else ["PyInit__stet"]
t("the module exports its entry alone", [s for s in module if not s.startswith(("__", "_"))] == ["PyInit__stet"], module)

# Plug-ins: their own code, and one symbol.
library = set(symbols(BUILD / "libstet.a", "--defined-only"))
for plugin in sorted((BUILD / "lib/stet").glob("*.so")):
    exported = [s for s in symbols(plugin, "-D", "--defined-only") if s.startswith("stet")]
    t(f"{plugin.stem} exports one symbol", exported == [f"stet_plugin_{plugin.stem}"], exported)
    # stet_buf_add_slow forwards for a function that a header defines.
    copied = {s for s in symbols(plugin, "--defined-only") if s.startswith("stet_")} & library - {"stet_buf_add_slow"}
    t(f"{plugin.stem} has no copy of a function of the library", not copied, sorted(copied))
    missing = [s for s in symbols(plugin, "-D", "--undefined-only") if s.startswith("stet_")]
    t(f"{plugin.stem} needs none by name, either", not missing, missing)
finish(None)
