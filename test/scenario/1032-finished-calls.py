#!/usr/bin/env python3
"""Finished calls do not pile up in a shared repository: their claims and refs go after a week, results that are still needed stay, and nothing of a call under way is touched."""
import pathlib, sqlite3, subprocess, time

from tap import STET, answer, finish, stet, t

here = pathlib.Path.cwd()
hub = f"file://{here}/hub.db"
p = here / "p"
p.mkdir()
stet("init", cwd=p)


def count(sql):
    db = sqlite3.connect(here / "hub.db")
    got = db.execute(sql).fetchone()[0]
    db.close()
    return got


def work(*more):
    return stet("worker", "--remote", hub, "--idle", "1s", *more, cwd=p)


calls = [subprocess.Popen([STET, "call", "run", "--remote", hub, f"dml+exec://stet-exec-local/echo?arg={n}"], cwd=p, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for n in range(5)]
work("-j", "4")
said = [c.communicate(timeout=300)[0].strip() for c in calls]
t("calls end", said == ["0", "1", "2", "3", "4"], said)
t("their refs are gone", count("SELECT count(*) FROM ref") == 0)
t("their claims are there", count("SELECT count(*) FROM claim WHERE phase = 2") == 5)
answer("call", "run", "--remote", hub, "--detach", "dml+exec://stet-exec-local/echo?arg=9", cwd=p)
t("one is queued", count("SELECT count(*) FROM claim WHERE phase = 0") == 1)
work("-j", "1")
t("and one more has ended", count("SELECT count(*) FROM claim WHERE phase = 2") == 6)
answer("call", "run", "--remote", hub, "--detach", "dml+exec://stet-exec-local/echo?arg=10", cwd=p)
# a week and a day later
db = sqlite3.connect(here / "hub.db")
week = 8 * 24 * 3600
db.execute("UPDATE claim SET changed_ms = changed_ms - ?", (week * 1000,))
db.execute("UPDATE object SET added_s = added_s - ?", (week,))
db.commit()
db.close()
objects = count("SELECT count(*) FROM object")
r = work("-j", "1")
t("a worker takes finished claims away", count("SELECT count(*) FROM claim WHERE phase = 2 AND changed_ms < %d" % (1000 * (time.time() - week / 2))) == 0, r.stdout + r.stderr)
t("with what nobody needs any more", count("SELECT count(*) FROM object") < objects)
t("work that was queued for a week is done", count("SELECT count(*) FROM claim") == 1, count("SELECT count(*) FROM claim"))
r = stet("call", "run", "--remote", hub, "dml+exec://stet-exec-local/echo?arg=10", cwd=p)
t("and its result arrives", r.stdout.strip() == "10", r.stdout + r.stderr)
r = stet("call", "run", "--remote", hub, "dml+exec://stet-exec-local/echo?arg=3", cwd=p)
t("results stay with those who have them", r.stdout.strip() == "3", r.stdout + r.stderr)
finish(p)
