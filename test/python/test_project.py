"""Project, Space, Transaction: documents from Python."""
import json
import os
import signal
import threading
import time

import pytest
from conftest import stet as program

import stet
from stet import LimitError, Project


@pytest.fixture
def space(here):
    with Project.init() as project:
        with project.space() as s:
            yield s


def test_documents_are_written_read_and_patched(space, here):
    value = {"theme": "dark", "n": [1, 2.5, None, True, "é", 2**62], "deep": {"a/b": {"~": 1}}}
    commit = space.set("config", value)
    assert commit.changed and commit.seq == space.seq and space.get("config") == value
    assert space.get("config/n/1") == 2.5 and space.get("config/deep/a~1b/~0") == 1
    space.patch("config", [{"op": "increment", "path": "/n/0"}, {"op": "add", "path": "/new", "value": {}}])
    assert space.get("config/n/0") == 2 and space.get("config/n/0", at=commit.seq) == 1
    assert not space.set("config/n/0", 2).changed
    assert json.loads(program("get", "config/n", cwd=here).stdout) == [2, 2.5, None, True, "é", 2**62]
    space.delete("config")
    with pytest.raises(stet.NotFoundError) as e:
        space.get("config")
    assert e.value.code == "not_found" and isinstance(e.value, LookupError) and space.get("config", None) is None


@pytest.mark.parametrize("bad, error", [({1}, TypeError), ({1: 2}, TypeError), (float("nan"), ValueError), (2**63, OverflowError), (b"x", TypeError), (object(), TypeError)])
def test_what_a_document_can_not_hold_is_refused(space, bad, error):
    for value in (bad, [bad], {"k": {"l": [bad]}}):
        with pytest.raises(error):
            space.set("d", value)
    deep = 1
    for _ in range(600):
        deep = [deep]
    with pytest.raises(LimitError, match="511 levels"):
        space.set("d", deep)
    loop = []
    loop.append(loop)
    with pytest.raises(LimitError, match="511 levels"):
        space.set("d", loop)
    assert space.get("d", None) is None


def test_transactions_are_all_or_nothing(space):
    def both(tx):
        tx.set("a", 1)
        tx.set("b", tx.get("a") + 1)
        return "answer"

    answer, commit = space.transact(both)
    assert answer == "answer" and commit.changed and (space.get("a"), space.get("b")) == (1, 2)

    def fails(tx):
        tx.set("a", 7)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        space.transact(fails)
    assert space.get("a") == 1
    kept = []
    space.transact(kept.append)
    with pytest.raises(ValueError, match="ended"):
        kept[0].get("a")


def test_a_transaction_is_made_again_when_somebody_was_faster(space):
    space.set("n", 0)
    other = Project.find()
    others, attempts = other.space(), []

    def bump(tx):
        n = tx.get("n")
        attempts.append(n)
        if len(attempts) == 1:
            others.set("n", 10)
        tx.set("n", n + 1)

    space.transact(bump)
    assert attempts == [0, 10] and space.get("n") == 11
    with pytest.raises(stet.ConflictError) as e:
        with space.begin() as tx:
            tx.set("n", tx.get("n") + 1)
            others.set("n", 50)
    assert e.value.code == "conflict" and space.get("n") == 50
    with space.begin() as tx:
        tx.set("n", tx.get("n") + 1)
    assert tx.commit_result.seq == space.seq and space.get("n") == 51
    others.close()
    other.close()


def test_preconditions_and_sessions(space):
    def absent(tx):
        tx.require_absent("d")
        tx.set("d", 1)

    space.transact(absent)
    with pytest.raises(stet.ConflictError):
        space.transact(absent)

    def named(tx):
        tx.session("me", 1)
        tx.set("e", 1)

    first, again = space.transact(named)[1], space.transact(named)[1]
    assert not first.replayed and again.replayed and first.seq == again.seq


def test_threads_count_together(space):
    space.set("n", 0)

    def work():
        for _ in range(25):
            space.transact(lambda tx: tx.set("n", tx.get("n") + 1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert space.get("n") == 100


def test_processes_count_together(space, run):
    space.set("n", 0)
    text = """
        from stet import Project
        s = Project.find().space()
        for _ in range(50):
            s.transact(lambda tx: tx.set("n", tx.get("n") + 1))
    """
    processes = [run.start(text, name=f"p{i}.py") for i in range(2)]
    for q in processes:
        assert q.wait() == 0, q.stderr.read()
        q.communicate()
    assert space.get("n") == 100


def test_changes_since_a_sequence(space):
    seq = space.set("d", {"a": 1, "b": 1}).seq
    space.set("d/a", 2)
    last = space.set("d/b", 2).seq
    assert {c["path"] for c in space.changes("d", after=seq)} == {"/value/a", "/value/b"}
    assert [c["seq"] for c in space.changes("d/b", after=seq)] == [last] and space.changes("d", after=last) == []
    assert len(space.changes("d", after=seq, limit=1)) == 1


def test_watch_sees_what_other_processes_commit(space, here):
    seq = space.set("d", {"n": 0}).seq
    space.set("other", 1)
    program("set", "d/n", "1", cwd=here)
    events = list(space.watch("d", after=seq, timeout=0.05))
    assert [[c["path"] for c in e["changes"]] for e in events] == [["/value/n"]]
    seen = []
    ready = threading.Event()

    def follow():
        watching = space.watch("d", after=space.seq)
        ready.set()
        seen.append(next(watching)["changes"][0]["path"])
        watching.close()

    t = threading.Thread(target=follow)
    t.start()
    ready.wait()
    program("set", "d/n", "2", cwd=here)
    t.join(timeout=20)
    assert seen == ["/value/n"]


def test_branches_keep_their_own(space):
    space.set("d", 1)
    space.branch("try")
    space.set("d", 2, branch="try")
    assert (space.get("d"), space.get("d", branch="try")) == (1, 2)
    space.delete_branch("try")
    with pytest.raises(stet.StetError):
        space.get("d", branch="try")


def test_a_pattern_runs_and_what_stands_is_not_run_again(space, here):
    (here / "totals.json").write_text(open(os.path.join(os.environ["STET_SOURCE"], "examples/totals.json")).read())
    project = space.project
    first = project.run("totals.json")
    again = project.run("totals.json")
    assert first["ran"] > 0 and first["failed"] == 0 and again["ran"] == 0 and again["stood"] > 0, (first, again)
    with pytest.raises(stet.NotFoundError):
        project.run("nothing.json")


def test_a_run_gives_its_result_as_it_was_at_one_time(space, here, run):
    """While another process writes: the derived value and what it was made from are of one snapshot."""
    d = {"/": {"link@1": {"id": "d"}}}
    (here / "p.json").write_text(json.dumps({"pattern": 1, "name": "p", "nodes": [{"id": "s", "inputs": {"values": d}, "module": {"type": "ref", "ref": "sum"}}], "result": {"s": {"$": "s"}, "d": d}}))
    space.set("d", {"a": 1})
    assert space.project.run("p.json")["result"] == {"s": 1, "d": {"a": 1}}
    writer = run.start("""
        import time
        from stet import Project
        s, end, i = Project.find().space(), time.time() + 3, 0
        while time.time() < end:
            i += 1
            s.set(f"d/k{i % 4}", i)
    """)
    shown = 0
    while writer.poll() is None:
        said = space.project.run("p.json")
        if said["result"] is None:
            assert said["resultError"]["code"] == "conflict", said
        elif not said["aside"]:
            assert said["result"]["s"] == sum(said["result"]["d"].values()), said
            shown += 1
    writer.communicate()
    assert shown > 0


def test_what_failed_runs_again_unless_it_is_not_to(space, here):
    (here / "f.json").write_text('{"pattern":1,"name":"f","nodes":[{"id":"n","inputs":{"a":1,"b":0},"module":{"type":"ref","ref":"divide"}}],"result":{"$":"n"}}')
    assert [space.project.run("f.json")["ran"] for _ in range(2)] == [1, 1]
    assert space.project.run("f.json", retry_failed=False)["ran"] == 0


def test_events_reach_a_piece_once(space, here):
    (here / "counter.json").write_text(open(os.path.join(os.environ["STET_SOURCE"], "examples/counter.json")).read())
    project = space.project
    piece = project.run("counter.json")["piece"]
    count = f"piece:{piece}:cell:count"
    assert space.get(count) == 0
    applied, seq, id = project.send(piece, "add", 5, id="first")
    again = project.send(piece, "add", 5, id="first")
    assert applied and id == "first" and again == (False, seq, "first")
    assert space.get(count) == 5 and project.run(piece=piece)["failed"] == 0
    with pytest.raises(stet.NotFoundError):
        project.send(piece, "no_such_stream", 1)


def test_commands_of_a_pattern_run_and_their_results_stand(space, here):
    (here / "in.txt").write_text("b\na\n")
    (here / "stet.toml").write_text('name = "sorted"\n[nodes.sort]\ncommand = "sort {i} > {o}"\nfiles = { i = "in.txt" }\nproduces = { o = "out.txt" }\n')
    assert space.project.run("stet.toml")["ran"] == 1 and (here / "out.txt").read_text() == "a\nb\n"
    assert space.project.run("stet.toml")["ran"] == 0
    (here / "in.txt").write_text("d\nc\n")
    assert space.project.run("stet.toml")["ran"] == 1 and (here / "out.txt").read_text() == "c\nd\n"


def test_ctrl_c_ends_a_run_and_its_command(run, here):
    Project.init().close()
    (here / "stet.toml").write_text('name = "slow"\n[nodes.slow]\ncommand = "touch begun; sleep 60; echo > {o}"\nproduces = { o = "out.txt" }\n')
    q = run.start("""
        from stet import Project
        try:
            Project.find().run("stet.toml")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    while not (here / "begun").exists():
        assert q.poll() is None, q.communicate()
        time.sleep(0.01)
    q.send_signal(signal.SIGINT)
    out, err = q.communicate(timeout=30)
    assert out == "interrupted\n" and not (here / "out.txt").exists(), (out, err)


def test_closed_handles_say_so_and_projects_are_found(here):
    with pytest.raises(stet.NotFoundError, match="stet init|project"):
        Project.find()
    project = Project.init()
    s = project.space("other")
    s.set("d", 1)
    project.close()
    assert s.get("d") == 1  # a space keeps its project open
    s.close()
    for call in (lambda: s.get("d"), lambda: project.space()):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(stet.NotFoundError):
        Project.find().space("nowhere", must_exist=True)
    with pytest.raises(stet.InvalidError):
        Project.find().space("NOT VALID")
    with pytest.raises(stet.StetError):
        Project.find().space("other", read_only=True).set("d", 2)


def test_a_child_of_a_fork_opens_the_project_again(space):
    space.set("d", 1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises(ValueError, match="open its project again"):
                space.get("d")
            with pytest.raises(ValueError, match="open it again"):
                space.project.space()
            space.close()
            space.project.close()
            with Project.find() as own, own.space() as mine:
                mine.set("d", mine.get("d") + 1)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0 and space.get("d") == 2
