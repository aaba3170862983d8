"""Shared by the tests of the Python package. Each test has a directory of its own, in which it runs; `stet check` finds nothing in it afterwards."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

STET = os.environ.get("STET", "stet")
M = "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789"
N = "bbcdefghijklmnopqrstuvwxyzABCDEFGH123456789"


def pytest_configure(config):
    config.addinivalue_line("markers", "broken: leaves something behind that `stet check` names")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    import stet.cache

    stet.cache._defaults.clear()
    yield tmp_path
    stet.cache._defaults.clear()
    os.chdir("/")
    if (tmp_path / ".stet/config.toml").is_file() and not request.node.get_closest_marker("broken"):
        done = subprocess.run([STET, "-C", str(tmp_path), "check"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


class Run:
    """Runs texts of Python as processes of their own, in the test's directory."""

    def __init__(self, directory):
        self.directory = directory

    def file(self, name, text):
        path = self.directory / name
        new = path.with_name(path.name + ".new")
        new.write_text(textwrap.dedent(text))
        new.replace(path)  # another process may be about to read it
        # Python takes a compiled file for current by its whole second.
        for old in (path.parent / "__pycache__").glob(path.stem + ".*"):
            old.unlink()
        return path

    def start(self, text, *args, name="script.py", env=None, **more):
        path = self.file(name, text)
        return subprocess.Popen([sys.executable, str(path), *map(str, args)], cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **(env or {})}, **more)

    def __call__(self, text, *args, status=0, **more):
        process = self.start(text, *args, **more)
        out, err = process.communicate(timeout=120)
        assert process.returncode == status, out + err
        self.err = err
        return out.split()


@pytest.fixture
def run(here):
    return Run(here)


def stet(*words, cwd=None):
    return subprocess.run([STET, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120)


def objects(directory):
    return sorted(p.name for p in (pathlib.Path(directory) / "objects").iterdir())
