"""Patterns built in Python (stet.graph): what `write` gives is what `stet run` takes, and functions stay functions."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import stet
from stet import InvalidError

STET = os.path.join(os.environ["STET_BUILD"], "stet")
PIPELINE = """
import stet

@stet.action
def double(value):
    return value * 2

@stet.action(limits={"timeMs": 50000}, title="words of files")
def words(path, many, unit="words"):
    return [len(open(path).read().split()), len(many), unit]

@stet.effect
def report(total, path):
    print("report", total, file=open("report.log", "a"))

@stet.handler
def add(event, count, log):
    count.update(lambda n: n + event)
    log.push(event)

def plain(value): return value

def build():
    p = stet.pattern("built", {"n": 4, "rows": [{"v": 1}]}, cells={"count": 0, "log": []}, title="Built in Python")
    two = p.add(double, {"value": p.argument["n"]})
    four = p.add(double, {"value": two}, id="four")
    p.add(words, {"path": stet.file("data/a.txt"), "many": [stet.file("data/*.txt"), stet.file("c.txt")]})
    made = p.add({"type": "command", "argv": ["sh", "-c", "echo made > made.txt"], "produces": {"out": "made.txt"}}, id="made")
    p.add(words, {"path": stet.file(made["files"]["out"]), "many": [], "unit": {"$": "as it is"}}, id="again", description="of a file that a node makes")
    total = p.add({"type": "ref", "ref": "add"}, [two, p.argument["rows"][0]["v"]])
    p.add(report, {"total": total, "path": "x"})
    stream = p.add(add, {"count": stet.cell(p.cells["count"]), "log": stet.cell(p.cells["log"])})
    p.result = {"two": two, "four": four, "words": stet.graph.Reference(p, "words"), "again": stet.graph.Reference(p, "again"), "total": total, "count": p.cells["count"], "add": stream}
    return p

if __name__ == "__main__":
    print(build().write())
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose interpreter has the package, as one that it is installed for."""
    monkeypatch.chdir(tmp_path)
    subprocess.run([STET, "-q", "init"], check=True)
    site = tmp_path / ("venv/lib/python%d.%d/site-packages" % sys.version_info[:2])
    site.mkdir(parents=True)
    (site / "stet").symlink_to(pathlib.Path(stet.__file__).parent)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to(sys.executable)
    (tmp_path / "venv/pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    (tmp_path / "data").mkdir()
    for name in ("data/a.txt", "data/b.txt", "c.txt"):
        (tmp_path / name).write_text("one two\n")
    (tmp_path / "flow.py").write_text(PIPELINE.replace("stet.action\n", 'stet.action(interpreter="venv/bin/python")\n').replace("stet.effect\n", 'stet.effect(interpreter="venv/bin/python")\n')
                                      .replace("stet.handler\n", 'stet.handler(interpreter="venv/bin/python")\n').replace("limits=", 'interpreter="venv/bin/python", limits='))
    return tmp_path


def run(*words):
    r = subprocess.run([STET, *words, "--json"], capture_output=True, text=True)
    return json.loads(r.stdout) if r.stdout else r.stderr


def test_a_pattern_runs(project):
    made = subprocess.run([project / "venv/bin/python", "flow.py"], capture_output=True, text=True)
    assert made.stdout == str(project / "built.json") + "\n", made.stderr
    said = run("run", "built.json")
    assert said["failed"] == 0, said
    shown = run("piece", "show", "built")["result"]
    assert (shown["two"], shown["four"], shown["total"], shown["count"]) == (8, 16, 9, 0), shown
    assert shown["words"] == [2, 3, "words"] and shown["again"] == [1, 0, {"$": "as it is"}], shown
    assert (project / "report.log").read_text() == "report 9\n"
    run("piece", "send", "built", "add", "5", "--settle")
    assert run("piece", "show", "built")["result"]["count"] == 5
    assert run("run", "built.json")["ran"] == 0
    (project / "flow.py").write_text((project / "flow.py").read_text().replace("value * 2", "value * 3"))
    assert run("run", "built.json")["failed"] == 0 and run("piece", "show", "built")["result"]["four"] == 36


def test_a_file_that_is_written_again_stays(project, monkeypatch):
    monkeypatch.syspath_prepend(project)
    import flow

    path = flow.build().write()
    before = os.stat(path)
    assert flow.build().write() == path and os.stat(path) == before
    assert flow.double(4) == 8 and flow.plain(1) == 1
    with pytest.raises(InvalidError, match="neither an action"):
        stet.pattern("x").add(flow.plain)
    with pytest.raises(InvalidError, match="outside of the project"):
        flow.build().json(project / "data")


def test_mistakes_are_named():
    p = stet.pattern("p", {"n": 1}, cells={"c": 0})
    for mistake, words in [
            (lambda: bool(p.argument["n"]), "asked or compared"), (lambda: p.argument == 1, "asked or compared"), (lambda: [*p.argument], "asked or compared"),
            (lambda: p.argument[1:], "keys and indexes"), (lambda: p.cells["d"], "no cell 'd'"), (lambda: stet.action(5), "takes a function"),
            (lambda: stet.action(nothing=1)(len), "no option nothing"), (lambda: stet.cell(1), "takes a reference"), (lambda: stet.file(1), "takes a path"),
            (lambda: p.add(stet.action(lambda: 1)), "inside a function"), (lambda: p.add({"type": "ref", "ref": "add"}, 5), "a dict or a list"),
            (lambda: p.add({"type": "ref", "ref": "add"}, [stet.pattern("q").argument]), "another pattern"),
            (lambda: p.add({"type": "ref", "ref": "add"}, [[stet.cell(p.argument)]]), "by itself"), (lambda: p.add({"type": "ref", "ref": "add"}, [len]), "no value"),
            (lambda: p.add({"type": "ref", "ref": "add"}, [float("nan")]), "not JSON compliant"), (lambda: p.add({"type": "ref", "ref": "add"}, [{1: 2}]), "no text"),
            (lambda: p.add({"type": "ref", "ref": "add"}, [], id="c"), "already"), (lambda: p.add({"type": "ref", "ref": "add"}, [], nothing=1), "no option nothing")]:
        with pytest.raises(InvalidError, match=words):
            mistake()


def test_nothing_is_imported_that_is_not_used():
    said = subprocess.run([sys.executable, "-c", "import sys; before = set(sys.modules); import stet; print(sorted(set(sys.modules) - before)); stet.action; print(stet.workflow, stet.step)"],
                          capture_output=True, text=True)
    assert said.stdout.startswith("['stet']\n<class 'stet.steps.workflow'"), said.stdout + said.stderr
