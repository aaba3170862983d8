"""Documents from Python: a counter that any number of processes may raise at once, and what has changed since a moment.

    PYTHONPATH=build/python python3 examples/python/visits.py
"""
import stet

with stet.Project.init() as project, project.space() as space:
    if space.get("visits", None) is None:
        space.set("visits", {"total": 0, "by": {}})

    def visit(tx, name="somebody"):
        visits = tx.get("visits")
        visits["total"] += 1
        visits["by"][name] = visits["by"].get(name, 0) + 1
        tx.set("visits", visits)
        return visits["total"]

    before = space.seq
    total, commit = space.transact(visit)  # again by itself, if another process was faster
    print(f"visit {total}, sequence {commit.seq}")
    for change in space.changes("visits", after=before):
        print("changed:", change["path"])
