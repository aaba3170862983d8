"""FsPersister: what is put is what is got, and what happens when it can't be."""
import contextlib
import json
import os
import pickle
import random
import resource
import sqlite3
import threading
import time
import tomllib
from collections import defaultdict
from datetime import datetime, timedelta, timezone

import pytest
from conftest import M, N, objects

import stet
from stet import DefaultCleanupStrategy, Entry, EntryMetadata, ExecutionKey, ExecutionKeyClash, FsPersister, Persister

T = ExecutionKey("b", M, datetime.now(timezone.utc)).created_at  # what is older than an hour is merged by the next put
OLD = datetime(2024, 3, 20, 14, 30, 15, 123000)


def key(at=T, block="plot", module=M):
    return ExecutionKey(block, module, at)


def put(p, variables, at=T, block="plot", module=M, **more):
    return p.put(Entry(key(at, block, module), variables), **more)


# ---- keys and entries ----

def test_the_interface_is_abstract_and_FsPersister_fills_it():
    with pytest.raises(TypeError):
        Persister()
    assert issubclass(FsPersister, Persister) and not FsPersister.__abstractmethods__


def test_the_time_of_a_key_is_UTC_in_milliseconds():
    late = ExecutionKey("b", M, datetime(2024, 3, 20, 16, 30, 15, 123999, timezone(timedelta(hours=2))))
    assert late == key(OLD, "b") and late.created_at == OLD and hash(late) == hash(key(OLD, "b"))
    assert late.millis == 63846541815123 == int((OLD - datetime.min) / timedelta(milliseconds=1))


def test_a_key_takes_hexadecimal_digits():
    assert ExecutionKey("b", "00" * 32).module_hash == "A" * 43


def test_entries_are_frozen_and_keys_can_be_in_sets():
    with pytest.raises(Exception):
        Entry(key(), {}).variables = None
    assert len({key(), key(), key(block="other")}) == 2


def test_an_entry_comes_back_with_all_its_contents():
    p = FsPersister()
    m = p.put(Entry(key(), {"x": [1, {"y": (2.5, None)}], "text": "é"}, {"note": "ö\n\"", "n": [1, None]}, output="shown", stderr=b"\x00\xff", elapsed_ms=1500))
    e = p.get(key(None))
    assert e == Entry(key(), {"x": [1, {"y": (2.5, None)}], "text": "é"}, {"note": "ö\n\"", "n": [1, None]}, "shown", b"\x00\xff", 1500)
    assert isinstance(m, EntryMetadata) and m.execution_key == key() and m.created_at == T and m.extra == {"note": "ö\n\"", "n": [1, None]}
    assert m.has_content("variables") and not m.has_content("blob") and m.content_kinds() == ("output", "stderr", "variables")
    assert (m.content_format("variables"), m.content_format("output"), m.content_format("stderr"), m.content_format("blob")) == ("pickle", "text", "bytes", None)
    assert m.content_size("output") == 5 and m.content_size("blob") is None and m.content_object_id("output") in objects(p.directory)
    assert m.elapsed_ms == 1500 and p.entries() == [m]


def test_the_directory_is_the_known_format():
    p = FsPersister()
    p = FsPersister(entry_merge_timeout_seconds=-1)
    m = put(p, {"x": 1}, OLD)
    log = next((p.directory / "entry_log").iterdir())
    table = tomllib.loads(log.read_text())["plot"][M]["63846541815123"]
    assert table["variables"] == {"id": m.content_object_id("variables"), "size": m.content_size("variables"), "format": "pickle"}
    assert (p.directory / "objects" / m.content_object_id("variables")).read_bytes() == pickle.dumps({"x": 1}, 4)


def test_trivial_contents_have_the_known_ids_and_no_files():
    p = FsPersister()
    assert put(p, {}).content_object_id("variables") == "kmJI5S0fpTLDF-N9ok7WUq5kEQ-CGcteBhZovTCR8Eg"
    assert put(p, {}, block="j", content_spec={"variables": "json"}).content_object_id("variables") == "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"
    m = p.put(Entry(key(block="o"), {}, output="", stderr=b""))
    assert m.content_object_id("output") == "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU" == m.content_object_id("stderr")
    assert objects(p.directory) == [] and p.get(key(None, "o")) == Entry(key(block="o"), {}, output="", stderr=b"")


@pytest.mark.parametrize("value", [True, False, "\n", "", {}, [], set(), 0, 1, float("nan")])
def test_a_trivial_output_needs_no_object(value):
    p = FsPersister()
    p.put(Entry(key(), {}, output=value))
    back = p.get(key(None)).output
    assert objects(p.directory) == [] and type(back) is type(value) and (back == value or (back != back and value != value))


def test_values_that_resemble_trivial_ones_stay_themselves():
    p = FsPersister()
    for i, value in enumerate([1.0, 0.0, -0.0, 2, "x", [0], {1: 2}, (), frozenset(), b"\n"]):
        p.put(Entry(key(block=f"b{i}"), {}, output=value))
        back = p.get(key(None, f"b{i}")).output
        assert type(back) is type(value) and repr(back) == repr(value)


# ---- get ----

def test_get_gives_the_latest_up_to_a_time_or_an_exact_one():
    p = FsPersister()
    for i in range(3):
        put(p, {"i": i}, T + timedelta(seconds=i))
    assert p.get(key(None)).variables == {"i": 2}
    assert p.get(key(T + timedelta(seconds=1, milliseconds=999))).variables == {"i": 1}
    assert p.get(key(T - timedelta(milliseconds=1))) is None
    assert p.get(key(T + timedelta(seconds=1)), exact_match_created_at=True).variables == {"i": 1}
    assert p.get(key(T + timedelta(seconds=1, milliseconds=1)), exact_match_created_at=True) is None
    with pytest.raises(ValueError):
        p.get(key(None), exact_match_created_at=True)
    assert p.get(key(None, module=N)) is None and p.get(key(None, "other")) is None


def test_reading_makes_nothing(here):
    assert FsPersister().get(key(None)) is None and list(here.iterdir()) == []


def test_a_content_spec_says_what_is_read():
    p = FsPersister()
    p.put(Entry(key(), {"x": 1}, output="out"))
    assert p.get(key(None), content_spec={"output": "auto"}) == Entry(key(), None, output="out")
    assert p.get(key(None), content_spec={"stderr": "auto"}) is None
    assert p.get(key(None), content_spec={"variables": "json"}) is None


def test_an_older_entry_in_the_wanted_format_is_found():
    p = FsPersister()
    put(p, {"x": 1}, content_spec={"variables": "json"})
    put(p, {"x": 2}, T + timedelta(seconds=1))
    assert p.get(key(None), content_spec={"variables": "json"}).variables == {"x": 1}


def test_a_missing_or_damaged_object_means_the_older_entry_and_then_none():
    p = FsPersister()
    put(p, {"x": "old"})
    m = put(p, {"x": "new"}, T + timedelta(seconds=1))
    path = p.directory / "objects" / m.content_object_id("variables")
    path.chmod(0o644)
    path.write_bytes(b"x" * m.content_size("variables"))
    assert p.get(key(None)).variables == {"x": "old"}
    assert put(p, {"x": "new"}, T + timedelta(seconds=1)) == m and p.get(key(None)).variables == {"x": "new"}
    path.unlink()
    assert p.get(key(None)).variables == {"x": "old"}
    assert p.get(key(T + timedelta(seconds=1)), exact_match_created_at=True) is None
    put(p, {"x": "new"}, T + timedelta(seconds=1))  # the same put heals it


@pytest.mark.broken
def test_a_damaged_entry_is_not_there_and_nothing_is_unpickled(here):
    p = FsPersister()
    put(p, {"x": 1})
    log = next((p.directory / "entry_log").iterdir())
    log.write_text(log.read_text().replace("size = ", "size = 1"))
    assert FsPersister().get(key(None)) is None
    assert stet_check(here) != 0
    put(p, {"x": 1}, T + timedelta(seconds=1))
    assert FsPersister().get(key(None)).variables == {"x": 1}


def stet_check(directory):
    from conftest import stet as program

    return program("check", cwd=directory).returncode


# ---- put ----

def test_put_needs_a_time_and_something_to_put():
    p = FsPersister()
    with pytest.raises(ValueError):
        put(p, {"x": 1}, None)
    with pytest.raises(ValueError):
        put(p, None)


def test_the_same_again_is_fine_and_another_one_clashes():
    p = FsPersister()
    assert put(p, {"x": 1}) == put(p, {"x": 1})
    with pytest.raises(ExecutionKeyClash) as e:
        put(p, {"x": 2})
    assert e.value.code == "conflict" and isinstance(e.value, stet.ConflictError)
    assert p.get(key(None)).variables == {"x": 1}


def test_keyword_arguments_reach_the_pickler_and_the_unpickler():
    p = FsPersister()
    m = put(p, {"x": 1}, protocol=5)
    assert (p.directory / "objects" / m.content_object_id("variables")).read_bytes()[:2] == b"\x80\x05"
    assert p.get(key(None), protocol=5, encoding="latin-1").variables == {"x": 1}
    buffers = []
    put(p, {"x": pickle.PickleBuffer(b"abc")}, block="oob", protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and bytes(p.get(key(None, "oob"), buffers=[b"abc"]).variables["x"]) == b"abc"


def test_keyword_arguments_reach_the_encoder_and_the_decoder():
    p = FsPersister()
    spec = {"variables": "json"}
    m = put(p, {"x": {3}}, content_spec=spec, default=list, separators=(",", ":"))
    assert (p.directory / "objects" / m.content_object_id("variables")).read_bytes() == b'{"x":[3]}'
    assert p.get(key(None), content_spec=spec, default=list, parse_int=float).variables == {"x": [3.0]}

    class Encoder(json.JSONEncoder):
        def default(self, o):
            return "encoded"

    put(p, {"x": {3}}, block="cls", content_spec=spec, cls=Encoder)
    assert p.get(key(None, "cls"), cls=Encoder).variables == {"x": "encoded"}


def test_a_keyword_argument_that_nobody_knows_is_refused():
    p = FsPersister()
    for call in (lambda: put(p, {}, protcol=5), lambda: p.get(key(None), protcol=5)):
        with pytest.raises(TypeError, match="protcol"):
            call()


@pytest.mark.parametrize("spec", [{"variables": "yaml"}, {"variables": "text"}, {"figures": "auto"}])
def test_a_content_spec_that_means_nothing_is_refused(spec):
    p = FsPersister()
    with pytest.raises(ValueError):
        put(p, {}, content_spec=spec)
    with pytest.raises(ValueError):
        p.get(key(None), content_spec=spec)


def test_what_serialising_raises_is_raised_and_nothing_is_left(here):
    p = FsPersister()
    put(p, {"x": 1})
    before = objects(p.directory)
    with pytest.raises(Exception, match="lambda|pickle"):
        put(p, {"big": "x" * 100000, "f": lambda: 1}, block="f")
    with pytest.raises(TypeError):
        put(p, {"f": {1}}, block="f", content_spec={"variables": "json"})
    with pytest.raises(TypeError):
        p.put(Entry(key(block="f"), {}, extra={"f": {1}}))
    assert objects(p.directory) == before and list((here / ".stet/local/temp").iterdir()) == [] and p.get(key(None, "f")) is None


class Refuses:
    def __reduce__(self):
        return _refuse, ()


def _refuse():
    raise KeyError("on the way back")


def test_what_deserialising_raises_is_raised():
    p = FsPersister()
    put(p, {"x": Refuses()})
    with pytest.raises(KeyError, match="on the way back"):
        p.get(key(None))


def test_an_object_larger_than_memory_buffers_is_streamed_and_verified():
    p = FsPersister()
    big = os.urandom(3_000_000)
    m = put(p, {"big": big, "again": big})
    assert m.content_size("variables") < 3_100_000 and p.get(key(None)).variables["again"] == big
    path = p.directory / "objects" / m.content_object_id("variables")
    path.chmod(0o644)
    with open(path, "r+b") as f:
        f.seek(2_000_000)
        f.write(b"damage")
    assert p.get(key(None)) is None
    put(p, {"big": big, "again": big})


def test_the_qualified_mode_shares_no_objects():
    p = FsPersister(object_id_mode="execution_key_qualified")
    a, b = put(p, {"x": 1}), put(p, {"x": 1}, module=N)
    assert {a.content_object_id("variables"), b.content_object_id("variables")} == set(objects(p.directory)) and len(objects(p.directory)) == 2
    assert a.content_object_id("variables").endswith(f".{M}.{a.execution_key.millis}")
    assert put(p, {}, block="t").content_object_id("variables").count(".") == 0  # trivial: shared all the same


# ---- when it can't be stored ----

def test_put_gives_none_while_somebody_holds_the_lock():
    p = FsPersister(lock_timeout_ms=50)
    put(p, {"x": 1})
    other = sqlite3.connect(p.directory / "locks" / "modification.lock", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert put(p, {"x": 2}, T + timedelta(seconds=1)) is None
    assert isinstance(p.last_error, stet.BusyError) and p.last_error.code == "busy"
    assert p.get(key(None)).variables == {"x": 1}
    other.execute("ROLLBACK")
    other.close()
    assert put(p, {"x": 2}, T + timedelta(seconds=1)) is not None


@contextlib.contextmanager
def small_disk(directory):
    """A file system of 1 MiB; where nothing may be mounted, a limit on the size of files, which writes meet in the same way."""
    directory.mkdir()
    if os.geteuid() == 0 and os.system(f"mount -t tmpfs -o size=1m tmpfs {directory} 2>/dev/null") == 0:
        try:
            yield "No space"
        finally:
            os.system(f"umount {directory}")
    else:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        try:
            yield "too large"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_gives_none_with_a_warning_and_leaves_nothing_half(here):
    with small_disk(here / "disk") as wanted:
        p = FsPersister(here / "disk/persist")
        put(p, {"x": 1})
        with pytest.warns(stet.StorageWarning, match=wanted):
            assert put(p, {"x": os.urandom(2_000_000)}, block="big") is None
        assert isinstance(p.last_error, stet.IoError) and isinstance(p.last_error, OSError)
        assert p.get(key(None)).variables == {"x": 1} and p.get(key(None, "big")) is None and p.check() == []
        assert put(p, {"x": 2}, T + timedelta(seconds=1)) is not None
        p.close()


@contextlib.contextmanager
def only_read(directory):
    """Mounted so; without that right, by its permissions, or for root, whom they do not bind, by a version that this program must not write."""
    if os.geteuid() == 0 and os.system(f"mount --bind {directory} {directory} 2>/dev/null && mount -o remount,bind,ro {directory}") == 0:
        try:
            yield
        finally:
            os.system(f"umount {directory}")
    elif os.geteuid() == 0:
        (directory / "persist/config.toml").write_text('version = "2"\n')
        yield
        (directory / "persist/config.toml").write_text('version = "1"\n')
    else:
        os.system(f"chmod -R a-w {directory}")
        try:
            yield
        finally:
            os.system(f"chmod -R u+w {directory}")


def test_a_read_only_directory_is_read_and_put_gives_none(here):
    disk = here / "disk"
    disk.mkdir()
    p = FsPersister(disk / "persist")
    put(p, {"x": 1})
    p.close()
    with only_read(disk):
        with pytest.warns(stet.StorageWarning, match="only read"):
            p = FsPersister(disk / "persist")
        assert p.read_only and p.get(key(None)).variables == {"x": 1}
        with pytest.warns(stet.StorageWarning):
            assert put(p, {"x": 2}, block="b") is None
        with pytest.raises(stet.DeniedError):
            p.cleanup()
        p.close()


def test_a_handle_opened_for_reading_only_reads():
    put(FsPersister(), {"x": 1})
    p = FsPersister(read_only=True)
    assert p.get(key(None)).variables == {"x": 1} and "reading" in p.read_only
    with pytest.warns(stet.StorageWarning):
        assert put(p, {"x": 2}, block="b") is None


@pytest.mark.parametrize("options", [{"auto_variables_format": "yaml"}, {"object_id_mode": "x"}, {"max_entries_in_log": 0}, {"entry_storage_format": "sqlite"},
                                     {"lock_timeout_ms": -5}])
def test_options_are_checked(options):
    with pytest.raises(stet.InvalidError) as e:
        FsPersister(**options)
    assert isinstance(e.value, ValueError) and e.value.code == "invalid"


def test_every_code_of_the_library_has_its_exception():
    from stet.errors import BY_CODE, make

    codes = "failed invalid not_found conflict busy corrupt io unsupported denied limit cancelled internal".split()
    assert sorted(BY_CODE) == sorted(codes)
    for code in codes:
        e = make(code, "what happened", "what to do", {"n": 1})
        again = pickle.loads(pickle.dumps(e))
        assert isinstance(e, stet.StetError) and type(again) is type(e) and (again.code, again.message, again.hint, again.details) == (code, "what happened", "what to do", {"n": 1})
        assert "what happened" in str(e) and "what to do" in str(e)


# ---- cleanup ----

@pytest.mark.parametrize("bad", [0, -2, -100])
@pytest.mark.parametrize("name", ["max_entries_per_block", "max_entries_per_module", "max_entry_age_days", "max_total_content_size"])
def test_limits_of_the_default_strategy_are_checked(name, bad):
    with pytest.raises(ValueError, match=name):
        DefaultCleanupStrategy(**{name: bad})


def test_the_default_strategy_needs_one_limit():
    with pytest.raises(ValueError, match="At least one"):
        DefaultCleanupStrategy(-1, -1, -1, -1)
    with pytest.raises(TypeError):
        DefaultCleanupStrategy(max_entries_per_block=2.5)


def by_the_book(strategy, entries, now):
    """The default strategy as it is specified, in plain Python."""
    doomed = set()
    for limit, group_of in ((strategy.max_entries_per_block, lambda k: k.block_id), (strategy.max_entries_per_module, lambda k: k.module_hash)):
        if limit > 0:
            groups = defaultdict(list)
            for e in entries:
                groups[group_of(e.execution_key)].append(e)
            for group in groups.values():
                group.sort(key=lambda e: e.created_at, reverse=True)
                doomed.update(e.execution_key for e in group[limit:])
    if strategy.max_entry_age_days > 0:
        doomed.update(e.execution_key for e in entries if e.created_at < now - timedelta(days=strategy.max_entry_age_days))
    if strategy.max_total_content_size > 0:
        remaining = sorted((e for e in entries if e.execution_key not in doomed), key=lambda e: e.created_at)
        total = sum(e.content_size("variables") for e in remaining)
        latest = {}
        for e in remaining:
            latest[e.execution_key.block_id] = e
        for last in (False, True):
            for e in remaining:
                if total > strategy.max_total_content_size and (latest[e.execution_key.block_id] is e) == last:
                    total -= e.content_size("variables")
                    doomed.add(e.execution_key)
    return doomed


def test_the_default_strategy_decides_as_specified():
    chance = random.Random(7)
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    modules = ["A" * 42 + c for c in "AEIMQU"]
    for _ in range(300):
        times = chance.sample(range(1, 100_000), chance.randrange(0, 25))
        entries = [EntryMetadata((chance.choice("abc"), chance.choice(modules), ExecutionKey("b", M, now - timedelta(minutes=t)).millis,
                                  {"variables": ("id", chance.randrange(0, 50), "pickle", None)}, -1, None, "", False)) for t in times]
        limits = [chance.choice([-1, 1, 2, 5]), chance.choice([-1, 1, 2]), chance.choice([-1, 1, 20]), chance.choice([-1, 10, 100])]
        if limits == [-1] * 4:
            continue
        strategy = DefaultCleanupStrategy(*limits)
        assert set(strategy(entries)) == by_the_book(strategy, entries, now), limits


def test_cleanup_deletes_what_the_strategy_names_and_passes_arguments_on():
    p = FsPersister()
    for i in range(4):
        put(p, {"i": i}, T + timedelta(seconds=i), block=f"b{i}")
    seen = []

    def strategy(entries, **kwargs):
        seen.append((len(entries), kwargs))
        return [e.execution_key for e in entries if e.execution_key.block_id in kwargs["doomed"]]

    assert p.cleanup(strategy, doomed=["b1"], dry_run=True)["entries_removed"] == 1 and len(p.entries()) == 4
    report = p.cleanup(strategy, include_content=False, doomed=["b1", "b2"])
    assert report["entries_removed"] == 2 and report["wrote_snapshot"]
    assert seen == [(4, {"doomed": ["b1"]}), (4, {"doomed": ["b1", "b2"]})]
    assert [e.execution_key.block_id for e in p.entries()] == ["b0", "b3"] and p.get(key(None, "b1")) is None
    assert p.undelete()[0] == 2 and len(p.entries()) == 4


def test_cleanup_with_content_deletes_objects_that_no_entry_has():
    p = FsPersister(trash_days=0)
    put(p, {"x": "shared"}, block="a")
    put(p, {"x": "shared"}, block="b")
    gone = put(p, {"x": "own"}, block="c").content_object_id("variables")
    p.cleanup(lambda entries: [], include_content=False)
    p.cleanup(lambda entries: [], include_content=False)  # the second one takes the fresh markers
    report = p.cleanup(lambda entries: [e.execution_key for e in entries if e.execution_key.block_id != "a"], include_content=True, delete_orphan_objects=False)
    assert report["objects_removed"] == 1 and gone not in objects(p.directory) and p.get(key(None, "a")).variables == {"x": "shared"}


def test_the_dummy_strategy_only_writes_a_snapshot():
    p = FsPersister()
    put(p, {"x": 1})
    assert p.entries()[0].in_log
    p.cleanup(lambda _: [])
    assert not p.entries()[0].in_log and p.get(key(None)).variables == {"x": 1}


def test_what_a_strategy_raises_comes_out_and_nothing_is_deleted():
    p = FsPersister()
    put(p, {"x": 1})

    def strategy(entries):
        raise ZeroDivisionError("in the strategy")

    with pytest.raises(ZeroDivisionError, match="in the strategy"):
        p.cleanup(strategy)
    assert p.get(key(None)).variables == {"x": 1}
    with pytest.raises(TypeError):
        p.cleanup("no strategy")


def test_a_strategy_reads_and_can_not_write():
    p = FsPersister()
    put(p, {"x": 1})

    def strategy(entries):
        assert p.get(entries[0].execution_key).variables == {"x": 1}
        put(p, {"x": 2}, T + timedelta(seconds=1))

    with pytest.raises(RuntimeError, match="strategy"):
        p.cleanup(strategy)


def test_pins_and_tags_protect():
    p = FsPersister()
    keys = [key(T + timedelta(seconds=i), f"b{i}") for i in range(3)]
    for k in keys:
        p.put(Entry(k, {"x": k.block_id}))
    p.pin(keys[0])
    p.tag(keys[1], "paper")
    assert p.tags(keys[0]) == [""] and p.tags(keys[1]) == ["paper"] and p.tags(keys[2]) == []

    def everything(entries):
        return [e.execution_key for e in entries]

    p.cleanup(everything)
    assert [e.execution_key for e in p.entries()] == keys[:2]
    p.pin(keys[0], False)
    p.cleanup(everything)
    assert [e.execution_key for e in p.entries()] == keys[1:2]


def test_the_strategy_of_the_persister_is_used_when_a_put_merges():
    calls = []

    def keep_all(entries, **kwargs):
        calls.append(len(entries))
        return []

    p = FsPersister(default_cleanup_strategy=keep_all, max_entries_in_log=3)
    for i in range(6):
        put(p, {"i": i}, T + timedelta(seconds=i))
    assert calls and len(p.entries()) == 6
    q = FsPersister(default_cleanup_strategy=DefaultCleanupStrategy(max_entries_per_block=1, max_entries_per_module=-1))
    q.cleanup(q.default_cleanup_strategy)
    assert len(q.entries()) == 1


def test_put_tells_of_an_entry_that_its_own_cleanup_took():
    p = FsPersister(default_cleanup_strategy=lambda entries, **kw: [e.execution_key for e in entries if e.execution_key.block_id == "gone"], max_entries_in_log=1)
    put(p, {"x": 1})
    assert put(p, {"x": 2}, block="gone") is not None and p.get(key(None, "gone")) is None


def test_on_exit_merges_if_it_is_to():
    p = FsPersister(cleanup_on_exit=False)
    put(p, {"x": 1})
    p.on_exit()
    assert p.entries()[0].in_log
    q = FsPersister()
    q.on_exit()
    assert not q.entries()[0].in_log and q.tick() is None


def test_stats_count_hits_and_the_time_saved():
    p = FsPersister()
    p.put(Entry(key(), {"x": 1}, elapsed_ms=2000))
    p.get(key(None))
    p.get(key(None, "other"))
    s = p.stats()
    assert (s["entries"], s["hits"], s["misses"], s["saved_ms"]) == (1, 1, 1, 2000)


# ---- threads, forks, life ----

def test_threads_share_a_persister():
    p, failures = FsPersister(), []

    def work(n):
        try:
            for i in range(25):
                assert put(p, {"n": n, "i": i}, T + timedelta(milliseconds=i), block=f"thread{n}") is not None
                assert p.get(key(T + timedelta(milliseconds=i), f"thread{n}")).variables == {"n": n, "i": i}
                if i == 12:
                    p.cleanup(lambda entries: [])
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == [] and len(p.entries()) == 150


def test_a_persister_that_is_closed_under_a_thread_ends_when_that_has_left():
    p, go = FsPersister(), threading.Event()
    put(p, {"x": "y" * 2_000_000})
    outcomes = []

    def read():
        go.set()
        for _ in range(200):
            try:
                outcomes.append(len(p.get(key(None)).variables["x"]))
            except ValueError:
                return

    t = threading.Thread(target=read)
    t.start()
    go.wait()
    time.sleep(0.02)
    p.close()
    t.join()
    assert set(outcomes) <= {2_000_000}
    with pytest.raises(ValueError, match="closed"):
        p.get(key(None))
    with pytest.raises(ValueError, match="closed"):
        put(p, {})
    p.close()


def test_a_fork_opens_the_directory_again():
    p = FsPersister()
    put(p, {"from": "parent"})
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert p.get(key(None)).variables == {"from": "parent"}
            for i in range(50):
                assert put(p, {"i": i}, T + timedelta(milliseconds=i), block="child") is not None
            status = 0
        finally:
            os._exit(status)
    for i in range(50):
        assert put(p, {"i": i}, T + timedelta(milliseconds=i), block="parent") is not None
    assert os.waitpid(child, 0)[1] == 0
    assert len(p.entries("child")) == len(p.entries("parent")) == 50 and p.check() == []


def test_a_persister_can_be_pickled():
    p = FsPersister(auto_variables_format="json")
    put(p, {"x": 1})
    q = pickle.loads(pickle.dumps(p))
    assert q.directory == p.directory and q.get(key(None)).variables == {"x": 1} and put(q, {"y": 1}, block="q").content_format("variables") == "json"


def test_memory_stays_flat_over_ten_thousand_puts_and_gets():
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    p = FsPersister()
    value = {"x": "y" * 5000, "list": list(range(50))}
    for i in range(20):
        put(p, value, block=f"b{i}")
    marks = []
    for i in range(10_000):
        k = key(block=f"b{i % 20}")
        assert p.get(k).variables == value and p.put(Entry(k, value)) is not None
        if i % 1000 == 999:
            marks.append(resident())
    assert marks[-1] - marks[2] < 2_000_000, marks
