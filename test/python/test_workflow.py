"""Workflows: finished steps are not run again, whatever ends the process in between."""
import asyncio
import contextvars
import os
import signal

import pytest

import stet

STEPS = """
    import os, signal, sys
    import stet

    AT = int(sys.argv[1])
    done = 0

    def point():
        global done
        if done == AT:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1

    def note(text):
        with open("log", "a") as f:
            f.write(text + "\\n")

    @stet.step
    def add(a, b):
        note(f"begin {a} {b}")
        point()
        note(f"did {a} {b}")
        point()
        return a + b

    @stet.step(name="fail")
    def fail(n):
        note(f"failed {n}")
        point()
        raise ValueError(n)

    def order(n):
        total = 0
        for i in range(n):
            point()
            total = add(total, i)
            note(f"after {total}")
            point()
            try:
                fail(i)
            except ValueError as e:
                total += e.args[0]
            point()
        return total

    print(stet.workflow("order 17").run(order, 4))
"""


def test_a_kill_at_every_point_repeats_no_finished_step(run, here):
    at = 0
    while True:
        log = here / "log"
        if log.exists():
            log.unlink()
        stet.workflow("order 17").forget()
        process = run.start(STEPS, at)
        out, err = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, err
        before = log.read_text().split("\n")[:-1] if log.exists() else []
        assert run(STEPS, 10_000) == ["12"]
        lines = log.read_text().split("\n")[:-1]
        again = lines[len(before):]
        for line in before:  # whatever came before "after" was finished: it is not done again
            if line.startswith("after"):
                index = before.index(line)
                assert before[index - 1] not in again and before[index - 2] not in again, (at, lines)
        for n in range(4):
            assert 1 <= sum(line.startswith("did") and line.endswith(f" {n}") for line in lines) <= 2, (at, lines)
        count = len(lines)
        assert run(STEPS, 0) == ["12"] and len(log.read_text().split("\n")) - 1 == count  # finished: nothing runs
        at += 1
    assert at == 24 and out.split() == ["12"]


def test_other_arguments_on_replay_end_the_workflow_and_name_both():
    calls = []

    @stet.step
    def charge(card, amount):
        calls.append(amount)
        return amount

    with stet.workflow("w"):
        charge("c", 5)
    with pytest.raises(stet.WorkflowMismatch, match=r"charge\('c', 5\).*charge\('c', 6\)"):
        with stet.workflow("w"):
            try:
                charge("c", 6)
            except Exception:
                pass  # a workflow can't go on from there
    with pytest.raises(stet.WorkflowMismatch):
        with stet.workflow("w"):
            try:
                charge("c", 6)
            except Exception:
                charge("c", 7)
    with stet.workflow("w"):
        assert charge("c", 5) == 5 and charge("c", 5) == 5
    assert calls == [5, 5] and stet.workflow("w").steps() == ["test_other_arguments_on_replay_end_the_workflow_and_name_both.<locals>.charge('c', 5)"] * 2
    with pytest.raises(stet.WorkflowMismatch):
        stet.workflow("r").run(len, "ab"), stet.workflow("r").run(len, "abc")


def test_values_come_back_as_copies_and_equal_arguments_are_the_same():
    @stet.step
    def make(rows, tags=frozenset()):
        rows.append(1)
        return rows, {"a", "b"}

    for _ in range(2):
        with stet.workflow("w"):
            given = [0]
            got, tags = make(given, tags=frozenset(("x", "y")))
            assert got == [0, 1] and got is not given and tags == {"a", "b"}
            if given == [0]:  # the second time nothing ran
                assert _ == 1


def test_a_failure_runs_again_with_the_workflow_and_stands_if_the_workflow_went_on():
    calls = []

    @stet.step
    def f(x):
        calls.append(x)
        if len(calls) == 1 or x == "handled":
            raise OSError(5, "x")
        return x

    with pytest.raises(OSError):
        stet.workflow("w").run(lambda: f(1))
    assert stet.workflow("w").run(lambda: f(1)) == 1 and calls == [1, 1]

    def handles():
        try:
            f("handled")
        except OSError as e:
            return f(e.errno)

    del calls[1:]
    for _ in range(2):
        with stet.workflow("h"):
            assert handles() == 5
    assert calls == [1, "handled", 5]


def test_steps_outside_and_inside_of_steps_are_functions():
    calls = []

    @stet.step
    def inner(x):
        calls.append(x)
        return x

    @stet.step
    def outer(x):
        return inner(x) + inner(x)

    assert inner(1) == 1
    for _ in range(2):
        with stet.workflow("w"):
            assert outer(2) == 4
    assert calls == [1, 2, 2]
    with stet.workflow("w"):
        with pytest.raises(RuntimeError, match="under way"):
            with stet.workflow("v"):
                pass


def test_asynchronous_steps():
    calls = []

    @stet.step
    async def f(x):
        calls.append(x)
        await asyncio.sleep(0)
        return x

    async def all_of(n):
        return sum(await asyncio.gather(*map(f, range(n))))

    for _ in range(2):
        assert asyncio.run(stet.workflow("w").run(all_of, 4)) == 6
    assert sorted(calls) == [0, 1, 2, 3]

    async def block():
        async with stet.workflow("v"):
            return await f(7)

    assert asyncio.run(block()) == asyncio.run(block()) == 7 and len(calls) == 5


def test_one_at_a_time(run, here):
    os.mkfifo(here / "go")
    text = """
        import stet
        with stet.workflow("w"):
            print("in", flush=True)
            open("go").read()
    """
    process = run.start(text)
    assert process.stdout.readline() == "in\n"
    with pytest.raises(stet.BusyError, match="another process"):
        with stet.workflow("w"):
            pass
    with open(here / "go", "w"):
        pass
    assert process.wait(60) == 0
    process.communicate()
    with stet.workflow("w"):
        with pytest.raises(stet.BusyError, match="this process"):
            contextvars.Context().run(stet.workflow("w").steps)


def test_what_can_not_be_stored_is_an_error():
    @stet.step
    def f():
        return lambda: 1

    with pytest.raises(Exception, match="pickle"):
        with stet.workflow("w"):
            f()
    with pytest.raises(TypeError):
        stet.workflow(3)
    with pytest.raises(TypeError, match="generator"):
        @stet.step
        def g():
            yield 1
