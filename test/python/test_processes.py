"""Processes that share a directory: each other, the program, and ones that are killed."""
import os
import signal
import time

from conftest import M, stet as program

from stet import Entry, ExecutionKey, FsPersister

WRITER = """
    import sys
    from datetime import datetime, timedelta, timezone
    from stet import *
    p, me = FsPersister(), sys.argv[1]
    begin = datetime.now(timezone.utc)
    for i in range(int(sys.argv[2])):
        k = ExecutionKey(me, "A" * 43, begin + timedelta(milliseconds=i))
        assert p.put(Entry(k, {"i": i, "pad": "x" * 2000 + str(i)})) is not None
        print(i, flush=True)
"""


def test_two_processes_and_the_program_see_one_another(run, here):
    program("init", "-q", cwd=here)
    processes = [run.start(WRITER, f"writer{n}", 40, name=f"w{n}.py") for n in range(2)]
    p = FsPersister()
    while any(q.poll() is None for q in processes):
        for e in p.entries()[-3:]:
            assert p.get(e.execution_key, exact_match_created_at=True).variables["i"] >= 0
        listed = program("persist", "list", "--limit", 5, cwd=here)
        assert listed.returncode == 0, listed.stderr
    for q in processes:
        out, err = q.communicate()
        assert q.returncode == 0, err
    for n in range(2):
        assert [p.get(e.execution_key, exact_match_created_at=True).variables["i"] for e in p.entries(f"writer{n}")] == list(range(40))
    assert "80" in program("persist", "stats", cwd=here).stdout


def test_what_the_program_puts_is_read_here_and_the_other_way_round(here):
    program("init", "-q", cwd=here)
    (here / "vars.json").write_text('{"x": [1, 2]}')
    assert program("persist", "put", "--block", "b", "--module", M, "--variables", "vars.json", "--format", "json", "--output", "vars.json", "--output-format", "text").returncode == 0
    e = FsPersister().get(ExecutionKey("b", M))
    assert e.variables == {"x": [1, 2]} and e.output == '{"x": [1, 2]}'
    FsPersister().put(Entry(ExecutionKey("c", M, e.execution_key.created_at), {"y": 1}, {"note": "n"}, output="shown"))
    assert program("persist", "get", "--block", "c", "--module", M, "--kind", "output").stdout == "shown"
    assert "note" in program("persist", "show", "--block", "c").stdout
    FsPersister().cleanup(lambda entries: [])
    assert program("persist", "get", "--block", "c", "--module", M, "--kind", "output").stdout == "shown"


def test_a_writer_that_is_killed_leaves_whole_entries(run, here):
    done = 0
    for round in range(6):
        q = run.start(WRITER, f"round{round}", 100000)
        for _ in range(3 + round):
            q.stdout.readline()
        time.sleep(0.0017 * round)
        os.kill(q.pid, signal.SIGKILL)
        acknowledged = 3 + round + len(q.stdout.read().split())
        q.wait()
        p = FsPersister()
        entries = p.entries(f"round{round}")
        assert len(entries) in (acknowledged, acknowledged + 1)
        for i, e in enumerate(entries):
            assert p.get(e.execution_key, exact_match_created_at=True).variables["i"] == i
        done += len(entries)
    assert done >= 33 and p.check() == []


def test_a_function_killed_on_the_way_is_run_again(run):
    text = """
        import os, signal, sys
        from stet import persistent_cache
        @persistent_cache
        def f(x):
            print("ran", flush=True)
            if len(sys.argv) > 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return x
        f(1)
    """
    text = text.replace("len(sys.argv) > 1", "os.environ.get('DIE')")
    run(text, status=-signal.SIGKILL, env={"DIE": "1"})
    assert run(text) == ["ran"] and run(text) == []


def test_a_process_that_ends_leaves_a_snapshot(run):
    run("""
        from stet import persistent_cache
        @persistent_cache
        def f(x):
            return x
        f(1)
    """)
    assert [e.in_log for e in FsPersister().entries()] == [False]


def test_worker_processes_of_multiprocessing_share_a_function(run):
    text = """
        import multiprocessing, sys
        from stet import persistent_cache
        @persistent_cache
        def f(x):
            return x * x
        if __name__ == "__main__":
            f(0)
            for how in "fork", "spawn":
                with multiprocessing.get_context(how).Pool(2) as pool:
                    print(sum(pool.map(f, range(20))))
    """
    assert run(text) == ["2470", "2470"] and len(FsPersister().entries()) == 20


def test_ctrl_c_ends_a_computation_and_keeps_nothing_of_it(run):
    q = run.start("""
        import time
        from stet import persistent_cache
        @persistent_cache
        def f(x):
            print("ran", flush=True)
            time.sleep(60)
        f(1)
    """)
    q.stdout.readline()
    q.send_signal(signal.SIGINT)
    assert q.wait() != 0 and FsPersister().entries() == []
    q.communicate()
