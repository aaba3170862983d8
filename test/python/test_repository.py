"""Repository, Dag and what they give out: calls from Python."""
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import stet

from conftest import STET

SUM = "import json, sys\nargs = json.load(sys.stdin)\nprint('adding', file=sys.stderr)\nprint(sum(args[0]) * (args[1] if len(args) > 1 else 1))\n"


@pytest.fixture
def repository(here, monkeypatch):
    stet.Project.init(here)
    monkeypatch.chdir(here)
    monkeypatch.setenv("STET_JOBS", str(here.parent / (here.name + ".jobs")))
    (here / "total.py").write_text(SUM)
    return stet.Repository()


def test_literals_calls_imports_and_commits(repository, here):
    dag = repository.dag("report")
    rows = dag.literal([3, 1, 2])
    assert rows.value() == [3, 1, 2] and rows == dag.literal([3, 1, 2]) and len({rows, dag.literal([3, 1, 2])}) == 1
    total = dag.call(stet.Uri.local("total.py"), rows)
    assert total.wait() == 6 and total.value() == 6 and total.exec_id
    assert total.logs()["stderr"] == "adding\n" and total.status()["state"] in ("completed_ok", "pinned_hit")
    double = dag.call(stet.Uri.local("total.py"), [1], total)  # waits for its argument
    assert double.wait() == 6
    commit = dag.commit(double, "the first one")
    assert commit.head == "main" and commit.changed and not dag.commit(double).changed
    assert repository.dags() == {"report": commit.dag}
    other = stet.Repository(here).dag("other")
    taken = other.import_("report")
    assert taken.value() == 6 and taken.node == double.node
    assert other.call(stet.Uri.local("total.py"), [2], taken).wait() == 12
    other.commit({"plain": True})
    assert other.import_("other", head="main").value() == {"plain": True}
    with pytest.raises(stet.NotFoundError, match="no 'none'"):
        other.import_("none")


def test_the_same_call_is_found_and_the_code_counts(repository, here):
    dag = repository.dag("x")
    first = dag.call(stet.Uri.local("total.py"), [1, 2])
    assert first.wait() == 3
    again = dag.call(stet.Uri.local("total.py"), [1, 2])
    assert again.node == first.node and again.wait() == 3 and again.exec_id == first.exec_id
    assert dag.call(stet.Uri.local("total.py"), [1, 2], cache=False).exec_id != first.exec_id
    (here / "total.py").write_text(SUM.replace("sum(", "max("))
    assert dag.call(stet.Uri.local("total.py"), [1, 2]).wait() == 2
    assert repository.execution(first.id).wait() == 3
    assert first.id in [e.id for e in repository.executions(state="ok")]


def test_a_failure_raises_what_the_call_said(repository):
    dag = repository.dag("x")
    bad = dag.call(stet.Uri.local(command="echo reason >&2; exit 3"))
    with pytest.raises(stet.FailedError, match="ended with status 3") as e:
        bad.wait()
    assert e.value.details["failure"]["stderr"] == "reason\n" and e.value.details["failure"]["exit"] == 3 and e.value.details["id"] == bad.id
    with pytest.raises(stet.FailedError):
        dag.commit(bad)
    with pytest.raises(stet.FailedError):
        dag.call(stet.Uri.local("total.py"), bad)
    assert repository.dags() == {}
    with pytest.raises(stet.InvalidError, match="no such option"):
        dag.call(stet.Uri.local("total.py", nonsense=1))


def test_waiting_with_a_time_and_cancelling(repository, here):
    go = here.parent / (here.name + ".go")
    slow = repository.dag("x").call(stet.Uri.local(command=f"echo begun; while ! test -e {go}; do sleep .05; done; echo end", stdout="text"), labels=["slow"])
    with pytest.raises(stet.BusyError):
        slow.wait(timeout=0.2)
    while "begun" not in slow.logs("stdout")["stdout"]:
        time.sleep(0.05)
    assert [e.id for e in repository.executions(label="slow")] == [slow.id] and slow.exec_id is None
    go.touch()
    assert slow.wait() == "begun\nend\n"
    with pytest.raises(stet.ConflictError):
        slow.cancel()
    endless = repository.dag("x").call(stet.Uri.local(command="sleep 1000"))
    assert endless.cancel()["state"] == "failed_terminal"
    with pytest.raises(stet.StetError):
        endless.wait()


def test_calls_may_be_awaited_together(repository):
    async def all_of_them():
        dag = repository.dag("x")
        calls = [dag.call(stet.Uri.local("total.py"), [i, i]) for i in range(4)]
        got = await asyncio.gather(*calls, calls[0].wait_async())
        endless = dag.call(stet.Uri.local(command="sleep 1000"))
        task = asyncio.ensure_future(endless.wait_async())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert endless.status()["state"] == "poll_adapter"  # the waiting has ended, the call goes on
        endless.cancel()
        with pytest.raises(stet.FailedError, match="status 4"):
            await dag.call(stet.Uri.local(command="exit 4"))
        return got

    assert asyncio.run(all_of_them()) == [0, 2, 4, 6, 0]


def test_threads_share_a_repository(repository):
    got = []
    dag = repository.dag("x")
    threads = [threading.Thread(target=lambda i=i: got.append(dag.call(stet.Uri.local("total.py"), [i % 2, 1]).wait())) for i in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(got) == [1, 1, 1, 2, 2, 2]


def test_control_c_ends_the_waiting_and_not_the_call(repository, here):
    text = "import stet, sys\nc = stet.Repository().dag('x').call(stet.Uri.local(command='sleep 1000'))\nprint(c.id, flush=True)\nc.wait()\n"
    p = subprocess.Popen([sys.executable, "-c", text], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    id = p.stdout.readline().strip()
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in p.communicate(timeout=60)[1]
    call = repository.execution(id)
    assert call.status()["state"] == "poll_adapter"
    call.cancel()


def test_addresses(repository, here):
    uri = stet.Uri.local("a dir/x.py", "--depth", 3, files=["lib/*.py", "data"], timeout="10m", in_place=True)
    assert uri == "dml+exec://stet-exec-local/python3?arg=a%20dir/x.py&arg=--depth&arg=3&files=lib/%2A.py&files=data&timeout=10m&in-place=true"
    assert uri.adapter == "stet-exec-local" and uri.path == "python3" and uri.query[0] == ("arg", "a dir/x.py") and isinstance(uri, str)
    for wrong in ("http://x/y", "dml+exec://", "train.py"):
        with pytest.raises(stet.InvalidError, match="begins with dml"):
            stet.Uri(wrong)
    with pytest.raises(stet.InvalidError, match="either a program or command"):
        stet.Uri.local("x", command="y")
    hard = "é &?=+%#/'\"\n;"
    assert repository.dag("x").call(stet.Uri.local("printf", "%s", hard, stdout="text")).wait() == hard
    r = subprocess.run([STET, "call", "list", "--json"], cwd=here, capture_output=True, text=True)
    assert [stet.Uri(c["function"]).query[1] for c in json.loads(r.stdout)["calls"]] == [("arg", hard)]
    assert stet.Repository(here / "lib" if os.path.isdir(here / "lib") else here).root == str(here.resolve())
