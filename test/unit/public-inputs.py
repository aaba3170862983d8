#!/usr/bin/env python3
"""No argument of a function in include/stet.h ends the process: NULL for each pointer, text that is not UTF-8, an empty text, values of each type, an index out of range.

The functions and their parameters are read from the header, so that a new function is tried as well. A program is generated that calls each function once per case in a child of its own: one
argument is wrong and the others are right. A function that returns a status has to answer STET_INVALID to NULL, unless OPTIONAL says that the parameter may be NULL, and a failure to text that is
not UTF-8, unless ANY_BYTES says that the text may be any bytes."""
import collections, os, pathlib, re, shlex, subprocess, sys

SOURCE, BUILD = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"])
COMPILER = os.environ.get("CC", "cc").split()
TYPES = ["stet_value_null()", "stet_value_bool(true)", "stet_value_int(1)", "half()", 'stet_value_string("text")', "list()", "table()"]
NOT_UTF8 = '"\\xff" "b"'

# Makes what a call needs. Each call runs in a process of its own, so that nothing is made twice, and nothing is closed.
FIXTURE = r'''
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stet.h>

enum { NO_STATUS = 200, NO_FIXTURE = 201 };
static stet_error err, caught;
static void need(stet_status status) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "%s\n", caught.message);
    _exit(NO_FIXTURE);
}
static stet_project *project(void) { stet_project *p; need(stet_project_find(".", &p, &caught)); return p; }
static stet_space *space_named(const char *name) { stet_space *s; need(stet_space_open(project(), name, 0, &s, &caught)); return s; }
static stet_space *space(void) { return space_named("main"); }
static stet_tx *tx(void) { stet_tx *t; need(stet_tx_begin(space(), NULL, &t, &caught)); return t; }
static stet_follower *follower(void) { stet_follower *f; need(stet_space_follow(space(), NULL, NULL, NULL, 0, &f, &caught)); return f; }
static stet_context *context(void) { stet_context *c; need(stet_context_new(NULL, &c, &caught)); return c; }
static stet_persist *persist(void) {
    stet_persist_options o = STET_PERSIST_OPTIONS_INIT;
    stet_persist *p;
    o.dir = "results";
    need(stet_persist_open(&o, &p, &caught));
    return p;
}
static stet_persist_key persist_key = {"fit", 0, "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789", 638000000000000};
static stet_value limits(void) { stet_value v = stet_value_object(); stet_value_put(&v, "max_entries_per_block", stet_value_int(1)); return v; }
static stet_persist_put *begun;
static stet_persist_put *put(void) {
    stet_persist_put *w = begun = stet_persist_put_begin(persist(), &persist_key);
    stet_persist_put_content(w, "variables", "json");
    return w;
}
static stet_persist_entry *entry(void) {
    stet_persist_entry *e;
    stet_persist_put *w = put();
    stet_persist_put_bytes(w, "1", 1);
    need(stet_persist_put_end(w, &e, &caught));
    return e;
}
static stet_value half(void) { stet_value v; need(stet_value_double(0.5, &v, &caught)); return v; }
static stet_value list(void) { stet_value v = stet_value_array(); stet_value_push(&v, stet_value_int(1)); return v; }
static stet_value table(void) { stet_value v = stet_value_object(); stet_value_put(&v, "k", stet_value_int(1)); return v; }
static stet_status transaction(stet_tx *t, void *ctx, stet_error *e) { (void)t; (void)ctx; (void)e; return STET_OK; }
static stet_status sink(void *ctx, const void *bytes, size_t len, stet_error *e) { (void)ctx; (void)bytes; (void)len; (void)e; return STET_OK; }
static bool each(void *ctx, const stet_persist_entry *e) { (void)ctx; (void)e; return true; }
static void found(void *ctx, const stet_persist_problem *p) { (void)ctx; (void)p; }
static char room[4096];
static char *printed(void) { return stet_json_print(stet_value_int(1), STET_JSON_CANONICAL, NULL); }
static const stet_action_key action_key = {"report", NULL, "total"};
static const uint64_t sizes[] = {1};
'''

# A right argument: by function and name of the parameter, by type and name, or by type. `*` after a type means that the address of a variable is passed.
GOOD = {
    ("stet_free", "p"): "printed()",
    ("stet_error_set", "format"): '"%s"', ("stet_error_set", "..."): '"x"', ("stet_value_stringf", "format"): '"%s"', ("stet_value_stringf", "..."): '"x"',
    ("stet_tx_get_from", "other"): 'space_named("other")', ("stet_value_as_string", "v"): "&text_value",
    ("stet_branch_create", "name"): '"twig"', ("stet_branch_create", "parent"): "NULL",
    ("stet_project_open", "root"): '"."', ("stet_project_init", "dir"): '"."', ("stet_project_find", "from"): '"."',
    ("stet_context_invoke", "operation"): '"branch list"', ("stet_context_invoke", "args"): "stet_value_null()",
    ("stet_persist_choose_default", "limits"): "limits()", ("stet_persist_choose_default", "remove"): "(bool *)room", ("stet_persist_choose_default", "sizes"): "sizes",
    ("stet_persist_undelete", "batch"): "NULL", ("stet_persist_undelete", "block_id"): "NULL", ("stet_persist_undelete", "module_hash"): "NULL",
    ("stet_persist_put_content", "kind"): '"files"', ("stet_persist_put_file", "path"): '"p.json"', ("stet_persist_get", "kinds"): "NULL", ("stet_persist_mark", "tag"): "NULL",
    ("stet_persist_read", "id"): "persist_key.module_hash", ("stet_persist_put_string", "value"): '"v"', ("stet_tx_patch_value", "operations"): "stet_value_array()",
    ("stet_tx_require_hash", "hex"): '"0000000000000000000000000000000000000000000000000000000000000000"', ("stet_actions_forget", "keys"): "&action_key",
    ("stet_action_distrust", "keys"): "&action_key", ("stet_space_open", "name"): '"main"', ("stet_branch_delete", "name"): '"absent"', ("stet_json_parse", "text"): '"1"',
    ("stet_value *", "array"): "&(stet_value[]){list()}[0]", ("stet_value *", "object"): "&(stet_value[]){table()}[0]",
    ("const char *", "cell"): '"doc/k"', ("const char *", "id"): '"doc"', ("const char *", "scope"): "NULL", ("const char *", "branch"): "NULL",
    ("int64_t", "at"): "-1", ("size_t", "len"): "1", ("size_t", "key_len"): "1", ("size_t", "count"): "1", ("stet_value", "object"): "table()", ("stet_value", "v"): "list()",
    "const char *": '"k"', "stet_project *": "project()", "const stet_project *": "project()", "stet_space *": "space()", "const stet_space *": "space()", "stet_tx *": "tx()",
    "stet_follower *": "follower()", "stet_context *": "context()", "stet_persist *": "persist()", "const stet_persist *": "persist()", "stet_persist_put *": "put()",
    "stet_persist_entry *": "entry()", "const stet_persist_entry *": "entry()", "stet_error *": "&err", "const stet_error *": "&err", "void *": "NULL", "const void *": '"1"',
    "stet_value": 'stet_value_string("text")', "stet_status": "STET_FAILED", "int64_t": "0", "uint64_t": "1", "size_t": "0", "int": "0", "unsigned": "0", "bool": "true", "double": "0.5",
    "stet_json_style": "STET_JSON_CANONICAL", "stet_action_state": "STET_STATE_STANDS", "const stet_action_key *": "&action_key", "const stet_persist_key *": "&persist_key",
    "stet_persist_sink": "sink", "stet_persist_each_fn": "each", "stet_persist_found_fn": "found", "stet_status (*)(stet_tx *tx, void *ctx, stet_error *err)": "transaction",
    "const char *const *": "NULL",
}
# Members of option structs that a right one sets.
OPTIONS = {
    "stet_pull_request": {"pattern": '"p.json"', "jobs": "1"}, "stet_event": {"piece": '"p"', "stream": '"add"'},
    "stet_action_run": {"key": "action_key"}, "stet_actions_query": {}, "stet_changes_query": {"cell": '"doc/k"'}, "stet_persist_options": {"dir": '"results"'},
    "stet_persist_clean_options": {"dry_run": "true"}, "stet_context_options": {}, "stet_call_spec": {"function": '"dml+exec://nowhere/x"', "attempts": "1"},
}
# Structs without a size, whose members are tried as well.
PLAIN = {"stet_action_key": "action_key", "stet_persist_key": "persist_key"}
# Parameters and members that may be NULL. "*": of every function.
OPTIONAL = {
    "*": "err scope branch len ctx",
    "stet_project_init": "created", "stet_tx_commit": "result", "stet_space_transact": "result", "stet_piece_pull": "result report", "stet_piece_send": "result",
    "stet_space_follow": "cell", "stet_branch_create": "parent", "stet_actions_count": "piece", "stet_actions_forget": "keys", "stet_context_new": "options",
    "stet_persist_get": "kinds", "stet_persist_put_end": "entry", "stet_persist_each": "block_id", "stet_persist_undelete": "batch block_id module_hash",
    "stet_persist_mark": "tag", "stet_persist_tick": "next_ms", "stet_persist_read": "sink",
}
# What a call answers whose arguments are all right, if it is not STET_OK.
RIGHT = {
    "stet_piece_send": "STET_NOT_FOUND", "stet_branch_delete": "STET_NOT_FOUND", "stet_action_get": "STET_NOT_FOUND", "stet_persist_read": "STET_NOT_FOUND",
    "stet_persist_mark": "STET_NOT_FOUND", "stet_persist_wait": "STET_BUSY", "stet_call_submit": "STET_NOT_FOUND", "stet_call_wait": "STET_INVALID", "stet_call_status": "STET_INVALID", "stet_call_cancel": "STET_INVALID",
    "stet_call_logs": "STET_INVALID",
}
# Text that is not UTF-8 is no failure here: paths of files, text of which only the hash is stored, and text that is only searched for.
ANY_BYTES = {
    "stet_persist_each": "block_id", "stet_persist_undelete": "block_id", "stet_tx_observe": "implementation runtime error", "stet_persist_open": "local_dir temp_dir dir",
    "stet_actions_list": "scope",  # unused without a piece
    "stet_actions_forget": "piece scope",  # of a key: those of the arguments count
}


def declarations(text):
    """{name: (type of the result, [(type, name)])} of each public function."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.M | re.S)
    found = {}
    for made in re.finditer(r"STET_API\s+(?:STET_CHECKED\s+)?([\w\s\*]+?)(stet_\w+)\((.*?)\)(?:\s*STET_PRINTF\([^)]*\))?;", text, re.S):
        parameters, depth, part = [], 0, ""
        for c in made[3] + ",":
            depth += (c == "(") - (c == ")")
            if c == "," and depth == 0:
                parameters.append(" ".join(part.replace("STET_LIFETIME", "").split()))
                part = ""
            else:
                part += c
        found[made[2]] = (made[1].strip(), [split(p) for p in parameters if p != "void"])
    return found


def split(parameter):
    """(type, name) of a parameter."""
    function = re.fullmatch(r"(.*\(\*)(\w+)(\)\(.*\))", parameter)
    if function:
        return function[1] + function[3], function[2]
    if parameter == "...":
        return parameter, parameter
    made = re.fullmatch(r"(.*?)(\w+)", parameter)
    return made[1].strip(), made[2]


def members(text, struct):
    """[(type, name)] of a struct's members; of several in one declaration, each."""
    body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (struct, struct), text, re.S)[1]
    found = []
    for line in re.sub(r"/\*.*?\*/", " ", body, flags=re.S).split(";"):
        made = re.fullmatch(r"(.*?\b\w+\b[\s\*]*?)\s*(\*?)(\w+(?:,\s*\*?\w+)*)", " ".join(line.split()))
        if made and "(" not in line:
            for name in made[3].split(","):
                kind = (made[1] + " " + ("*" if made[2] or "*" in name else "")).strip()
                found.append((kind, name.strip(" *")))
    return found


def listed(table, function, name):
    return name in (table.get(function, "") + " " + table.get("*", "")).split()


def pointee(kind):
    return kind.replace("const ", "").rstrip(" *")


def is_pointer(kind):
    return kind.endswith("*") or "(*" in kind or kind in ("stet_persist_sink", "stet_persist_each_fn", "stet_persist_found_fn")


header = (SOURCE / "include" / "stet.h").read_text()
functions = declarations(header)
Case = collections.namedtuple("Case", "function name wrong before args")


def right(function, kind, name):
    """(statements before, expression) of a right argument."""
    for key in ((function, name), (kind, name), kind):
        if key in GOOD:
            return "", GOOD[key]
    struct = pointee(kind)
    if struct in OPTIONS:
        set_ = "".join(f" {name}_.{member} = {value};" for member, value in OPTIONS[struct].items())
        return f"{struct} {name}_ = {struct.upper()}_INIT;{set_}", f"&{name}_"
    if kind.endswith("*"):  # what the function sets
        return f"static {kind[:-1].strip()} {name}_;", f"&{name}_"
    raise SystemExit(f"{function}: no right argument for `{kind} {name}`: add one to GOOD")


def cases():
    for function, (_, parameters) in functions.items():
        before, args = zip(*(right(function, *p) for p in parameters)) if parameters else ((), ())
        before = "stet_value text_value = stet_value_string(\"text\"); (void)text_value; " + " ".join(before)

        def case(place, name, wrong, expression, extra=""):
            return Case(function, name, wrong, before + " " + extra, [expression if i == place else a for i, a in enumerate(args)])
        yield case(-1, "", "nothing", "")
        for place, (kind, name) in enumerate(parameters):
            struct = pointee(kind)
            if is_pointer(kind):
                yield case(place, name, "NULL", "NULL")
            if kind == "const char *":
                yield case(place, name, "not UTF-8", NOT_UTF8)
                yield case(place, name, "empty", '""')
            if kind == "stet_value":
                for made in TYPES:
                    yield case(place, name, made, made)
            if kind == "stet_value *" and (kind, name) in GOOD:
                for made in TYPES:
                    yield case(place, name, made, "&(stet_value[]){%s}[0]" % made)
            if kind == "size_t" and name == "index":
                yield case(place, name, "SIZE_MAX", "SIZE_MAX")
            if struct in OPTIONS and kind.startswith("const"):
                yield case(place, name, "no size", args[place], f"{name}_.size = 0;")
            if struct in PLAIN or (struct in OPTIONS and kind.startswith("const")):
                variable = f"{name}_"
                extra = f"{struct} {variable} = {PLAIN[struct]}; " if struct in PLAIN else ""
                inner = [(k, f"{struct}.{m}" if struct in PLAIN else m, m) for k, m in members(header, struct)]
                if struct == "stet_action_run":
                    inner += [(k, "stet_action_key." + m, "key." + m) for k, m in members(header, "stet_action_key")]
                for member_kind, shown, member in inner:
                    wrongs = {"NULL": "NULL", "not UTF-8": NOT_UTF8, "empty": '""'} if member_kind == "const char *" else \
                        {made: made for made in TYPES} if member_kind == "stet_value" else {}
                    for wrong, made in wrongs.items():
                        yield case(place, shown.split(".")[-1], f"{wrong} in {shown}", f"&{variable}", f"{extra}{variable}.{member} = {made};")


def answers_status(function):
    """A put reports its errors at the end."""
    return functions[function][0] == "stet_status" and function != "stet_error_set" or function.startswith("stet_persist_put_") and function != "stet_persist_put_abort"


all_cases = list(cases())
with open("program.c", "w") as out:
    out.write(FIXTURE)
    for number, c in enumerate(all_cases):
        call = f"{c.function}({', '.join(c.args)})"
        if answers_status(c.function) and functions[c.function][0] == "void":
            call = f"({call}, stet_persist_put_end(begun, NULL, &err))"
        elif c.function == "stet_persist_put_begin":
            call = f"stet_persist_put_end({call}, NULL, &err)"
        ends = f"return (int){call};" if answers_status(c.function) else f"{call}; return NO_STATUS;"
        out.write(f"static int case_{number}(void) {{ {c.before} {ends} }}\n")
    out.write("static int (*const cases[])(void) = {" + ", ".join(f"case_{n}" for n in range(len(all_cases))) + "};\n")
    out.write(r'''
int main(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            persist_key.created_at += i;
            _exit(cases[i]());
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("%d\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
    }
    return 0;
}
''')

symbols = subprocess.run(["nm", BUILD / "libstet.a"], capture_output=True, text=True).stdout
sanitizer = ["-fsanitize=address,undefined"] if "__asan_" in symbols else ["-fsanitize=thread"] if "__tsan_" in symbols else []
coverage = ["--coverage"] if "__gcov_" in symbols else []
compiled = subprocess.run([*COMPILER, "-O0", "-w", *sanitizer, *coverage, "-I", SOURCE / "include", "-o", "program", "program.c", BUILD / "libstet.a",
                           *shlex.split("-lsqlite3 -luv -lzstd -lutf8proc -lyaml -lcrypto -lm -ldl -lpthread")], capture_output=True, text=True)
if compiled.returncode:
    sys.exit(f"not ok 1 - the calls compile\n{compiled.stderr}")
os.mkdir("project")
pathlib.Path("project/p.json").write_text('{"pattern":1,"name":"p","argument":{"default":{"x":3}},"nodes":[{"id":"minus","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"negate"}}],'
                                          '"result":{"m":{"$":"minus"}}}')
for command in (["init"], ["set", "doc", '{"k": 1}'], ["set", "doc", '{"k": 1}', "--space", "other"]):
    subprocess.run([os.environ["STET"], *command], cwd="project", check=True, stdout=subprocess.DEVNULL)
ran = subprocess.run(["../program"], cwd="project", stdout=subprocess.PIPE, text=True, env=dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}"))
answers = [int(line) for line in ran.stdout.split()]

STATUS = {200: "nothing", 201: "no fixture"} | {int(n): name for name, n in re.findall(r"(STET_[A-Z_]+) = (\d+)[, ]", re.search(r"typedef enum stet_status \{.*?\}", header, re.S)[0])}


def problem(c, answer):
    if answer < 0:
        return f"ended by signal {-answer}"
    if answer == 201:
        return "what the call needs could not be made"
    if not answers_status(c.function):
        return ""
    if c.wrong == "nothing":
        return "" if STATUS[answer] == RIGHT.get(c.function, "STET_OK") else f"answered {STATUS[answer]}"
    if c.wrong.startswith("NULL") and not listed(OPTIONAL, c.function, c.name) and " in " not in c.wrong and answer != 2:
        return f"answered {STATUS.get(answer, answer)} in place of STET_INVALID"
    if c.wrong.startswith("not UTF-8") and not listed(ANY_BYTES, c.function, c.name) and answer == 0:
        return "answered STET_OK"
    if c.wrong == "no size" and answer != 2:
        return f"answered {STATUS.get(answer, answer)} in place of STET_INVALID"
    return ""


exported = set(re.findall(r"^\s+(stet_\w+);", (SOURCE / "tools" / "libstet.map").read_text(), re.M))
checks = [("every exported function is tried", " ".join(exported ^ set(functions))), ("every case has an answer", "" if len(answers) == len(all_cases) else f"{len(answers)} of {len(all_cases)}")]
for function in functions:
    wrong = [f"{c.name or 'call'}: {c.wrong}: {problem(c, a)}" for c, a in zip(all_cases, answers) if c.function == function and problem(c, a)]
    checks.append((f"{function}: {sum(c.function == function for c in all_cases)} cases", "\n".join(wrong)))
for number, (name, wrong) in enumerate(checks, 1):
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
    if wrong:
        print("".join(f"# {line}\n" for line in wrong.splitlines()), end="")
print(f"1..{len(checks)}")
sys.exit(any(wrong for _, wrong in checks))
