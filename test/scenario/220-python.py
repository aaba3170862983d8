#!/usr/bin/python3
"""The Python package: the tests of test/python/, one line for each. (Those of cached functions take longer: 223-python-cache runs them.)"""
import os, pathlib, sys

SOURCE, BUILD = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"])
os.environ["PYTHONPATH"] = str(BUILD / "python")
os.environ["PATH"] = f"{BUILD}:{os.environ['PATH']}"  # adapters
sys.path.insert(0, str(BUILD / "python"))
import pytest

count = failed = 0


class Tap:
    def pytest_runtest_logreport(self, report):
        global count, failed
        if report.when != "call" and report.passed:
            return
        count += 1
        good = report.passed
        failed += not good
        print(f"\n{'ok' if good else 'not ok'} {count} - {report.nodeid.partition('test/python/')[2] or report.nodeid}", flush=True)
        if not good:
            print("\n".join("# " + line for line in str(report.longrepr).splitlines()[-40:]), flush=True)

    def pytest_collectreport(self, report):
        global count, failed
        if report.failed:
            count, failed = count + 1, failed + 1
            print(f"\nnot ok {count} - {report.nodeid}\n# " + str(report.longrepr).replace("\n", "\n# "), flush=True)


status = pytest.main(["-p", "no:cacheprovider", "-qq", "--no-header", "--no-summary", "--tb=short", "-W", "error::pytest.PytestUnraisableExceptionWarning", "--basetemp", str(pathlib.Path.cwd() / "work"),
                      "--rootdir", str(SOURCE / "test/python"), str(SOURCE / "test/python"), *(sys.argv[1:] or ["-k", "not test_cache and not test_keys and not test_function"])], plugins=[Tap()])
print(f"1..{count}")
sys.exit(1 if failed or int(status) not in (0, 1) else 0)
