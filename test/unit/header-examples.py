#!/usr/bin/env python3
"""Every example in the comment of a header compiles.

An example is a block of lines in a comment that are indented by at least four extra spaces, after an empty line or at the beginning of the comment:

     * Calling sequence
     *
     *     stet_buf b = STET_BUF(0);
     *     stet_buf_release(&b);
     *
     * Lists and tables are indented by two spaces, so that they are not taken for examples:
     *
     *   R1. A rule.

Each block becomes the body of a function in a file that includes the header first, and the compiler checks it without writing anything. Definitions that begin with `static` stand
outside of that function. Variables that a reader has to imagine are declared in DECLARED below. Examples of include/stet.h see that header alone."""
import os, pathlib, re, subprocess, sys, sysconfig

SOURCE = pathlib.Path(os.environ["STET_SOURCE"])
COMPILER = os.environ.get("CC", "cc").split()
FLAGS = "-std=c11 -D_GNU_SOURCE -fsyntax-only -x c -Wall -Wextra -Wno-unused-variable -Wno-unused-parameter -Wno-unused-but-set-variable -Wno-unused-function -Werror".split()
SYSTEM = "#include <poll.h>\n#include <stdio.h>\n#include <string.h>\n#include <stet.h>\n"

# What an example uses without declaring it. `stet_error err` is declared for all, unless a header has another one here; test/expect.h defines one.
DECLARED = {
    "include/stet.h": "const char *text; stet_project *project; stet_space *s; stet_context *context;",
    "src/base/arena.h": "const char *p; size_t n;",
    "src/base/buf.h": "stet_error *err; FILE *file;",
    "src/base/crc32c.h": "const char *bytes, *more; size_t len, more_len;",
    "src/base/error.h": "stet_error *err; const char *name; size_t n, max;",
    "src/base/options.h": "const stet_event *given; stet_error *err;",
    "src/base/map.h": "const void *key; size_t len; uint64_t total;",
    "src/base/pool.h": "size_t bytes;",
    "src/base/regex.h": "const char *pattern, *text; size_t len, text_len;",
    "src/base/schema.h": "stet_value schema, instance;",
    "src/base/suggest.h": "#include \"base/error.h\"\nconst char *typed; stet_error *err;",
    "src/base/text.h": "stet_value object;",
    "src/base/vec.h": "int total;",
    "src/call/adapter.h": "struct uv_loop_s *loop; stet_adapter_request request; stet_adapter_answer answered; void *ctx;",
    "src/call/backoff.h": "uint64_t seed; int64_t failures;",
    "src/call/calls.h": "stet_project *project; stet_repo *repo; struct uv_loop_s *loop; const char *remote; stet_executor *executor; stet_value value; stet_hash other;"
                        " stet_call_ended ended; void *ctx; stet_call *call;",
    "src/call/claim.h": "stet_hub *hub; stet_hash key; const char *me; int64_t lease;",
    "src/call/executor.h": "#include <uv.h>\nstet_repo *repo; uv_loop_t *loop; stet_executor_opts opts; stet_hash node, result; stet_call_ended ended; void *ctx;",
    "src/call/keeper.h": "const char *dir, *root, *uri; int64_t lease;",
    "src/call/orchestrate.h": "#include \"call/orchestrate_local.h\"\nstet_hub *hub; stet_backend_local *local; const char *me; stet_orch_job job; stet_hash result;",
    "src/call/orchestrate_local.h": "const char *dir, *root, *me; stet_hub *hub; stet_orch_job job;",
    "src/cli/args.h": "int argc; char **argv;",
    "src/db/db.h": "stet_db_migration *list; int n; const char *path; stet_db *db; bool next_row(void *, stet_row *);",
    "src/drive/drift.h": "stet_project *project; stet_sched *sched;",
    "src/drive/drive.h": "stet_project *project; bool cancelled(void *); void *ctx;",
    "src/drive/rerun_command.h": "stet_project *project; stet_rerun_spec spec; stet_rerun one; int64_t action;",
    "src/drive/estimate.h": "stet_project *project; size_t queued; stet_buf buf;",
    "src/module/command_fill.h": "stet_run *run; const char *root, *dir; command_spec *spec; stet_value values; stet_error *err;",
    "src/module/left.h": "stet_run *run; stet_files *files; const char *root; bool (*may_make)(void *, const char *); void *ctx;",
    "src/module/orphan.h": "stet_project *project; stet_files *files; bool (*may_come)(void *, const char *); void *ctx; bool left;",
    "src/drive/leftover.h": "stet_project *project; stet_files *files; bool cancelled(void *); void *ctx;",
    "src/drive/lookout.h": "stet_project *project; stet_files *files; stet_space *space; const char *branch; stet_error why;",
    "src/operation/subject.h": "piece_call c; stet_value args, *result;",
    "src/drive/accepted.h": "stet_project *project; ",
    "src/drive/maker.h": "stet_space *space; int64_t branch; const char *root;",
    "src/drive/rerun.h": "stet_project *project;",
    "src/fleet/policy.h": "const char *home;",
    "src/fleet/recall.h": "stet_project *project; stet_value error;",
    "src/fleet/remove.h": "stet_registry *reg; stet_removal_choice choice; stet_hash wanted;",
    "src/drive/scratch.h": "stet_project *project; void use(stet_project *);",
    "src/files/files.h": "stet_project *project; stet_space *space; stet_files_report report;",
    "src/files/glob.h": "const char *path;",
    "src/files/index.h": "const char *dir, *uuid, *key; size_t len; stet_look look; bool reloaded;",
    "src/files/look.h": "int root_fd; stet_look known; int changed;",
    "src/files/places.h": "stet_watch *watch; const char *root, *key, *path, *dir; stet_watch_event event; void each(void *, const char *); void *ctx;",
    "src/files/watch.h": "stet_project *project; stet_space *space; stet_files *files; stet_files_report report; bool stop;",
    "src/fleet/query.h": "stet_registry *reg;",
    "src/fleet/queue.h": "const char *home, *root; stet_value entry; stet_queue_work_opts opts; stet_queue_work_report report;",
    "src/fleet/registry.h": "const char *home, *root;",
    "src/fleet/repos.h": "const char *home, *dir; int64_t now_ms; stet_repos_wait wait; char *root, *path; bool added;",
    "src/fleet/run.h": "stet_project *project; stet_hash digest, result_digest;",
    "src/fleet/sources.h": "const char *runs_dir, *root; uint32_t repo; stet_arena arena, *arenas; stet_sources_opts opts; size_t arena_count;",
    "src/fleet/state.h": "const char *path;",
    "src/graph/argument.h": "stet_tx *tx; stet_piece_setup setup; int64_t branch; stet_piece *piece; stet_value unset, set, names; stet_space *space;",
    "src/graph/cells.h": "stet_value inputs, node, module; stet_process *g; stet_pattern *pattern;",
    "src/graph/near.h": "stet_status status; stet_space *space; int64_t branch; stet_piece *piece; const char *typed; stet_error *err;",
    "src/graph/owned.h": "stet_tx *tx; stet_piece *piece; stet_docname name; stet_pathref path;",
    "src/graph/pattern.h": "const char *text; size_t len; stet_pattern_checks checks;",
    "src/graph/pattern_toml.h": "const char *text; size_t len; stet_pattern_checks checks;",
    "src/graph/piece.h": "stet_space *space; int64_t branch; stet_process *g; stet_pattern *pattern; stet_piece *old; stet_group *group; stet_tx *tx;",
    "src/graph/process.h": "stet_pattern *pattern; stet_process_modules modules; stet_process *old;",
    "src/mcp/page.h": "char *text; size_t len;",
    "src/mcp/pool.h": "stet_mcp_job *job;",
    "src/mcp/rpc.h": "const char *bytes; size_t len; stet_rpc_line on_line; void *ctx; stet_value value;",
    "src/mcp/server.h": "stet_mcp_options options; const char *input; size_t len; FILE *file;",
    "src/memory/observe.h": "stet_group *group; stet_docname name; stet_pathref path; stet_observation observation;",
    "src/memory/record.h": "const void *bytes; size_t len; const stet_change *changes; stet_arena arena;",
    "src/memory/space.h": "stet_project *project; stet_space *s; stet_docname name; stet_pathref path; stet_patch op; stet_commit_result result;",
    "src/memory/walk.h": "stet_space *s; int64_t doc, newest_seq; stet_arena arena;",
    "src/module/depfile.h": "const char *text; size_t len;",
    "src/operation/piece_common.h": "stet_op_ctx *ctx; stet_value args, *result; stet_error *err;",
    "src/operation/text.h": "stet_render *r;",
    "src/os/plugin.h": "static const char stet_library_functions[1];",
    "src/os/proc.h": "const char *const *argv, *const *envp; const char *dir; int out_fd, log_fd, timeout_ms;",
    "src/os/watch.h": "const char *dir;",
    "src/persist/persist.h": "stet_persist_key key; const void *bytes; size_t len; FILE *file;",
    "src/process/local.h": "const char *exec_dir; stet_local_request request;",
    "src/project/project.h": "const char *cwd;",
    "src/repo/hub.h": "stet_repo *mine; stet_hash node, key; stet_value body;",
    "src/repo/history.h": "stet_repo *r; stet_hash dag;",
    "src/repo/pack.h": "stet_hash id; const char *bytes; size_t len; stet_repo *repo; stet_copy_report report;",
    "src/repo/record.h": "stet_value value; stet_record_sink sink;",
    "src/repo/remote.h": "stet_repo *r; stet_remote_opts opts; stet_remote_report report;",
    "src/repo/repo.h": "stet_project *project; stet_value value; const char *uri;",
    "src/repo/repo_internal.h": "stet_repo *r; stet_value record; stet_record_type type; stet_hash id; stet_error *err;",
    "src/repo/text.h": "const char *s; size_t len;",
    "src/scheduler/envelope.h": "stet_space *s; int64_t branch; stet_status open_space(void *, const char *, stet_space **, stet_error *); void *ctx; stet_address cell;"
                                " const stet_address *places; size_t count;",
    "src/graph/makes.h": "stet_space *s; stet_value row; stet_arena arena; const stet_address *places; size_t count;",
    "src/scheduler/plan.h": "stet_plan_source source; stet_plan_read *reads; stet_plan_write *writes; size_t read_count, write_count; stet_pathref path; int64_t now;",
    "src/scheduler/reader.h": "stet_tx *tx; stet_status open_space(void *, const char *, stet_space **, stet_error *); void *ctx; stet_value inputs; stet_pathref path;",
    "src/scheduler/rerun.h": "stet_sched *sched; int64_t number; int wrong;",
    "src/scheduler/sched.h": "stet_project *project; stet_space *space; stet_sched_opts opts; stet_pattern *pattern; stet_value source, set; stet_sched_installed installed;"
                             " stet_sched_report report;",
    "src/scheduler/standing.h": "stet_space *space; int64_t branch, number; int up_to_date;",
    "test/expect.h": "const char *text; size_t len; stet_value v;",
    "test/faults.h": "#include <assert.h>\n#include <errno.h>\nstet_status status, work(void);",
    "test/sched_other.h": "world *w;",
    "test/unit/fake_run.h": "stet_value descriptor, bindings; const stet_module_kind *kind; void *state, *program;",
}


def examples(text):
    """(line number, lines) of each example in a header."""
    found = []
    for comment in re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/', text, re.S):
        if not comment[0].startswith("/*"):
            continue
        first = text.count("\n", 0, comment.start()) + 1
        lines = comment[0][2:-2].split("\n")
        lines = [re.sub(r"^ ", "", lines[0])] + [re.sub(r"^\s*\* ?", "", line) for line in lines[1:]]
        block, empty = [], True
        for number, line in enumerate(lines + ["."], first):
            if line.startswith("    ") and (block or empty):
                block.append((number, line[4:]))
            elif block and line.strip() and not line.startswith("    "):
                found.append((block[0][0], [content for _, content in block]))
                block = []
            elif block:
                block.append((number, ""))
            empty = not line.strip()
    return found


def parts(lines):
    """An example as what stands outside of a function and what stands in it, each with its offset in the example."""
    outside, inside, depth, open_ = [], [], 0, False
    for offset, line in enumerate(lines):
        open_ = open_ or line.startswith("static ")
        (outside if open_ else inside).append((offset, line))
        depth += line.count("{") - line.count("}")
        if open_ and depth == 0 and line.rstrip().endswith(("}", ";")):
            open_ = False
    return outside, inside


def located(header, first, chunk):
    return "".join(f'#line {first + offset} "{header}"\n{line}\n' for offset, line in chunk)


def compiles(header, found, declared):
    public = header == "include/stet.h"
    out = [f'#include "{header.removeprefix("include/").removeprefix("src/")}"\n', SYSTEM, declared, "\n", "" if "*err;" in declared or header == "test/expect.h" else "stet_error err;\n"]
    for number, (first, lines) in enumerate(found):
        outside, inside = parts(lines)
        out += [located(header, first, outside), f"int example_{number}(void);\nint example_{number}(void) {{\n", located(header, first, inside), "return 0;\n}\n"]
    where = ["-I", SOURCE / "include"] + ([] if public else ["-I", SOURCE / "src", "-I", SOURCE, "-I", SOURCE / "test"])
    if header.startswith("plugins/"):
        packages = (SOURCE / header).parent.joinpath("packages").read_text().split()
        where += subprocess.run(["pkg-config", "--cflags", *packages], capture_output=True, text=True, check=True).stdout.split()
    if header.startswith("python/"):
        where += ["-I", sysconfig.get_path("include")]
    return subprocess.run([*COMPILER, *FLAGS, *where, "-"], input="".join(out), capture_output=True, text=True)


def check(name, problem):
    global number, failed
    number += 1
    print(f"{'not ok' if problem else 'ok'} {number} - {name}", flush=True)
    if problem:
        failed = True
        print("".join(f"# {line}\n" for line in problem.splitlines()), end="")


number, failed = 0, False
headers = sorted(str(path.relative_to(SOURCE)) for top in ("include", "src", "plugins", "python", "test") for path in (SOURCE / top).rglob("*.h"))
found = {header: examples((SOURCE / header).read_text()) for header in headers}
found = {header: list_ for header, list_ in found.items() if list_}

# The test itself: what is an example, and that a wrong one is found.
SAMPLE = """/* Title
 *
 *     first();
 *
 *     second();
 *
 *   R1. A rule that goes on
 *       in a second line.
 */
/*     third(); */
"""
check("blocks are told from lists", "" if examples(SAMPLE) == [(3, ["first();", "", "second();", ""]), (10, ["third(); "])] else repr(examples(SAMPLE)))
check("what begins with static stands outside", "" if parts(["static int f(void) {", "    return 1;", "}", "", "f();"]) ==
      ([(0, "static int f(void) {"), (1, "    return 1;"), (2, "}")], [(3, ""), (4, "f();")]) else repr(parts(["static int f(void) {", "    return 1;", "}", "", "f();"])))
for what, line in (("a function that does not exist", "stet_buf_add_one(&b, 'x');"), ("too few arguments", "stet_buf_add(&b, \"x\");"), ("dots in place of code", "if (b.overflow) ..."), ("an undeclared variable", "b.len = length;")):
    result = compiles("src/base/buf.h", [(1, ["stet_buf b = STET_BUF(0);", line])], "")
    check(f"{what} does not compile", "it does" if result.returncode == 0 else "")
check("there are examples", "" if len(found) > 50 else f"in {len(found)} headers only")
check("every declaration belongs to a header with examples", "\n".join(sorted(set(DECLARED) - set(found))))

for header, list_ in found.items():
    result = compiles(header, list_, DECLARED.get(header, ""))
    check(f"{header}: {len(list_)}", result.stderr if result.returncode else "")
print(f"1..{number}")
sys.exit(failed)
