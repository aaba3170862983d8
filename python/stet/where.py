"""Where entries lie, and how a directory is configured.

An explicit path wins. Else the nearest `__marimo__/` or `.stet/` upward; and where there is neither, `__marimo__/persist` for a marimo notebook and
`.stet/persist` for everything else.
"""
import os
import sys
from dataclasses import dataclass
from pathlib import Path


def _marimo():
    """marimo, if this process runs one of its notebooks. It is never imported for that."""
    marimo = sys.modules.get("marimo")
    try:
        return marimo if marimo is not None and marimo.running_in_notebook() else None
    except Exception:
        return None


def start_directory():
    marimo = _marimo()
    if marimo is not None:
        try:
            found = marimo.notebook_dir()
            if found is not None:
                return Path(found)
        except Exception:
            pass
    return Path.cwd()


@dataclass(frozen=True)
class Place:
    kind: str  # "stet", "marimo", or "plain": a directory that belongs to neither
    base: Path  # the .stet or __marimo__ directory
    dir_path: str  # of the entries: relative to base, or absolute

    @property
    def directory(self):
        return self.base / self.dir_path


def exists(kind, base):
    """A `.stet` is a project's if it has its configuration; a `__marimo__` is a directory."""
    return (base / "config.toml").is_file() if kind == "stet" else base.is_dir()


def find_base(start=None):
    """(kind, path) of the nearest base directory, or of the one that would be made."""
    start = Path(os.path.abspath(start if start is not None else start_directory()))
    kinds = [("stet", ".stet"), ("marimo", "__marimo__")]
    if _marimo() is not None:
        kinds.reverse()
    for directory in (start, *start.parents):
        for kind, name in kinds:
            if exists(kind, directory / name):
                return kind, directory / name
    kind, name = kinds[0]
    return kind, start / name


def find(dir_path=None, start=None):
    if dir_path is not None and os.path.isabs(dir_path):
        path = Path(os.path.normpath(dir_path))
        kind = {".stet": "stet", "__marimo__": "marimo"}.get(path.parent.name)
        if kind:
            return Place(kind, path.parent, path.name)
        return Place("plain", path.parent, path.name)
    kind, base = find_base(start)
    return Place(kind, base, os.fspath(dir_path) if dir_path is not None else "persist")


def _tables(file, *keys):
    try:
        with open(file, "rb") as f:
            import tomllib

            table = tomllib.load(f)
    except FileNotFoundError:
        return {}
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def marimo_config(base):
    """[fs_persister.defaults] and [fs_persister.default_cleanup_strategy] of .marimo.toml; those of pyproject.toml ([tool.marimo...]) come over them."""
    parents = (base.parent, *base.parent.parents)
    user = next((d / ".marimo.toml" for d in (*parents, Path.home()) if (d / ".marimo.toml").is_file()), None)
    project = next((d / "pyproject.toml" for d in parents if (d / "pyproject.toml").is_file()), None)
    merged = {}
    for tables in ((_tables(user, "fs_persister") if user else {}), (_tables(project, "tool", "marimo", "fs_persister") if project else {})):
        for name, table in tables.items():
            merged[name] = {**merged.get(name, {}), **table} if isinstance(table, dict) else table
    return merged
