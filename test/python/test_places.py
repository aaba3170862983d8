"""Where entries lie: an explicit path, the nearest directory, or a new one; and what the configuration says."""
import os
import sys
import types
from datetime import datetime, timezone

import pytest
from conftest import M, stet as program

import stet
from stet import Entry, ExecutionKey, FsPersister, LegacyPersister, default_persister

T = datetime.now(timezone.utc)


def put(p, block="b"):
    return p.put(Entry(ExecutionKey(block, M, T), {"x": 1}))


@pytest.fixture
def notebook(here, monkeypatch):
    """As inside a marimo notebook, of which only the two functions that are asked are there."""
    marimo = types.ModuleType("marimo")
    marimo.running_in_notebook = lambda: True
    marimo.notebook_dir = lambda: here
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    return here


def test_an_absolute_path_wins(here):
    program("init", "-q", cwd=here)
    p = FsPersister(here / "elsewhere" / "cache")
    put(p)
    assert p.directory == here / "elsewhere" / "cache" and (p.directory / "objects").is_dir() and not (here / ".stet/persist").exists()


def test_the_nearest_directory_upward_is_used(here, monkeypatch):
    program("init", "-q", cwd=here)
    deep = here / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert FsPersister().directory == here / ".stet/persist"
    (here / "a" / "__marimo__").mkdir()
    p = FsPersister()
    put(p)
    assert p.directory == here / "a/__marimo__/persist" and (here / "a/__marimo__/temp").is_dir()
    assert FsPersister(start=here).directory == here / ".stet/persist"
    assert p.check() == []


def test_without_any_a_project_is_made_by_the_first_put(here):
    p = FsPersister()
    assert p.directory == here / ".stet/persist" and list(here.iterdir()) == []
    put(p)
    assert (here / ".stet/config.toml").is_file() and (here / ".stet/.gitignore").is_file() and (here / ".stet/persist/objects").is_dir()
    assert (here / ".stet/local").is_dir() and not (here / ".stet/persist/local").exists()
    assert program("persist", "stats", cwd=here).returncode == 0


def test_a_notebook_of_marimo_gets_its_own_directory(notebook):
    p = FsPersister()
    put(p)
    assert p.directory == notebook / "__marimo__/persist" and (notebook / "__marimo__/temp").is_dir() and not (notebook / ".stet").exists()
    program("init", "-q", cwd=notebook)
    assert FsPersister().directory == notebook / "__marimo__/persist"


def test_a_directory_of_the_name_that_is_no_project_is_passed_over_and_made_one(here, monkeypatch):
    (here / "a/.stet").mkdir(parents=True)
    monkeypatch.chdir(here / "a")
    program("init", "-q", cwd=here)
    assert FsPersister().directory == here / ".stet/persist"
    p = FsPersister(here / "a/.stet/persist")
    put(p)
    assert program("persist", "stats").returncode == 0 and FsPersister().directory == here / "a/.stet/persist"


def test_a_relative_path_is_below_the_directory_that_was_found(here):
    program("init", "-q", cwd=here)
    p = FsPersister("results")
    put(p)
    assert p.directory == here / ".stet/results"


def test_the_configuration_of_a_project_holds_and_arguments_come_over_it(here):
    program("init", "-q", cwd=here)
    with open(here / ".stet/config.toml", "a") as f:
        f.write('\n[persist.defaults]\ndir_path = "kept"\nauto_variables_format = "json"\n[persist.default_cleanup_strategy]\nmax_entries_per_block = 7\n')
    p = FsPersister()
    assert p.directory == here / ".stet/kept" and put(p).content_format("variables") == "json"
    assert p.default_cleanup_strategy.limits == (7, 2, -1, -1)
    q = FsPersister(auto_variables_format="pickle")
    assert put(q, "q").content_format("variables") == "pickle" and len(q.entries()) == 2
    assert "2" in program("persist", "stats", cwd=here).stdout


def test_the_configuration_of_marimo_holds_and_pyproject_comes_over_it(notebook):
    (notebook / ".marimo.toml").write_text('[display]\ntheme = "dark"\n[fs_persister.defaults]\nauto_variables_format = "json"\ndir_path = "mine"\nmax_entries_in_log = 9\n'
                                           "[fs_persister.default_cleanup_strategy]\nmax_entries_per_block = 5\n")
    p = FsPersister()
    assert p.directory == notebook / "__marimo__/mine" and put(p).content_format("variables") == "json" and p.default_cleanup_strategy.max_entries_per_block == 5
    (notebook / "pyproject.toml").write_text('[tool.marimo.fs_persister.defaults]\nauto_variables_format = "pickle"\n')
    assert put(FsPersister(), "b2").content_format("variables") == "pickle" and FsPersister().directory == notebook / "__marimo__/mine"
    (notebook / "pyproject.toml").write_text("[tool.marimo.fs_persister.defaults]\nauto_variables_fromat = 1\n")
    with pytest.raises(stet.InvalidError, match="auto_variables_fromat"):
        FsPersister()


def test_the_default_persister_reads_an_old_cache_where_there_is_one(notebook):
    assert isinstance(default_persister(), FsPersister)
    stet.cache._defaults.clear()
    (notebook / "__marimo__/cache").mkdir(parents=True)
    assert isinstance(default_persister(), LegacyPersister) and default_persister().directory == notebook / "__marimo__/cache"


def test_a_project_of_the_same_path_is_the_one_the_program_uses(here):
    program("init", "-q", cwd=here)
    p = FsPersister(here / ".stet/persist")
    put(p)
    assert not (here / ".stet/persist/local").exists() and "b" in program("persist", "list", cwd=here).stdout


def test_names_that_are_no_utf_8_are_taken_or_refused_with_a_reason(here):
    name = os.fsencode(here) + b"/caf\xe9"
    os.mkdir(name)
    try:
        p = FsPersister(os.fsdecode(name) + "/persist")
        put(p)
        assert p.get(ExecutionKey("b", M)).variables == {"x": 1} and os.fsencode(p.directory) == name + b"/persist"
    except stet.StetError as e:
        assert "UTF-8" in str(e)
