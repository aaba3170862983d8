#!/usr/bin/env bash
# The repository of calls by hand: DAGs under names, their history, what differs, merging, excision, damage and its repair.
. "$STET_SOURCE/test/scenario/lib.sh"

t "a project" stet init
t "nothing is there, and looking makes nothing" expect_out "no DAGs" stet dag list
t "not even a file" test ! -e .stet/local/repo.db
t "no refs" expect_out "no refs" stet dag refs
t "no head is no commit" expect_status 3 stet dag log

t "a literal under a name" expect_out "main is now" stet dag commit report '{"total":3}' -m first
t "the same again is no commit" test "$(stet dag commit report '{"total":3}' --json | json changed)" = false
t "another one" stet dag commit report '{"total":4}' -m second
t "an object of its own" stet dag commit names '["a",{"/":{"uri@1":"https://example.com/x"}}]'
t "three commits" same 3 "$(stet dag log --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["commits"]))')"
t "newest first" expect_out "second" stet dag log -n 2
t "two names" same 2 "$(stet dag list --json | json total)"
t "a value comes back" same '{"total":4}' "$(stet dag show main:report --value --json | json value)"
t "with what JSON has no word for" expect_out '"uri@1": "https://example.com/x"' stet dag show main:names --value
old=$(stet dag log --json | json commits.2.commit)
t "and as it was" same '{"total":3}' "$(stet dag show "$old:report" --value --json | json value)"
commit=$(stet dag log --json | json commits.0.commit)
t "an id can be shortened" same "$commit" "$(stet dag show "${commit:0:8}" --json | json id)"
t "but not to nothing" expect_status 3 stet dag show "${commit:0:3}"
t "a commit has no value" expect_err "has no value" stet dag show main --value

t "another head" stet dag commit report '{"total":9}' --head side
t "refs are listed" expect_out "refs/heads/side" stet dag refs refs/heads/
t "what differs" expect_out "changed" stet dag diff main side
t "as JSON" same removed "$(stet dag diff main side --json | json dags.0.change)"
t "both changed it" expect_status 4 stet dag merge side
t "so a side is chosen" expect_out "(merged)" stet dag merge side --prefer theirs
t "and taken" same '{"total":9}' "$(stet dag show main:report --value --json | json value)"
t "again there is nothing to do" expect_out "as before" stet dag merge side
t "the other head goes forward" expect_out "fast-forward" stet dag merge main --head side
t "now they are the same" expect_out "nothing differs" stet dag diff main side
t "a DAG by its name elsewhere" stet dag commit copy --dag main:report --head side
t "a name goes" stet dag commit copy --remove --head side
t "and is gone" expect_status 3 stet dag commit copy --remove --head side
t "a name is needed" expect_status 2 stet dag commit '' 1
t "and one thing to commit" expect_status 2 stet dag commit x 1 --remove
t "a head has no odd name" expect_err "is no name of a head" stet dag commit x 1 --head 'a b'
t "what is no URI is refused" expect_err "URI" stet dag commit x '{"/":{"uri@1":"no uri"}}'
t "and what is stet's own" expect_err "dml:" stet dag commit x '{"/":{"uri@1":"dml://list/of"}}'

secret=$(stet dag commit secret '"the word"' --json | json dag)
node=$(stet dag show "$secret" --json | json record.root)
datum=$(stet dag show "$node" --json | json record.target)
t "excised" expect_out "excised datum" stet dag excise "$datum" --reason "a password"
t "it says so" expect_err "excised: a password" stet dag show main:secret --value
t "with status 6" expect_status 6 stet dag show "$datum"
t "it does not come back" expect_status 9 stet dag commit again '"the word"'
t "the file does not hold it" not grep -aq "the word" .stet/local/repo.db
t "history is not excised" expect_status 2 stet dag excise main --reason x
t "all is whole" stet check --only repo

t "what no head has is garbage" stet dag commit gone '"some text that goes"' --head away
python3 - <<'PYTHON'
import sqlite3
d = sqlite3.connect(".stet/local/repo.db")
d.execute("DELETE FROM ref WHERE name = 'refs/heads/away'")
d.execute("UPDATE object SET added_s = 1")
d.commit()
PYTHON
would=$(stet gc --only repo --dry-run --json | json stores.0.items)
t "gc says what it would sweep" test "$would" -ge 3
t "and sweeps it" same "$would" "$(stet gc --only repo --json | json stores.0.items)"
t "once" same 0 "$(stet gc --only repo --json | json stores.0.items)"
t "what is named stays" same '{"total":9}' "$(stet dag show main:report --value --json | json value)"

stet -q dag commit rot '"will rot"'
python3 - <<'PYTHON'
import sqlite3
d = sqlite3.connect(".stet/local/repo.db")
d.execute("""UPDATE object SET bytes = CAST(replace(CAST(bytes AS TEXT), 'will rot', 'has rott') AS BLOB) WHERE CAST(bytes AS TEXT) LIKE '%will rot%'""")
d.commit()
PYTHON
t "damage is found" expect_status 1 stet check --only repo
t "and not shown" expect_status 6 stet dag show main:rot --value
stet -q check --only repo --repair >/dev/null
t "repair takes it away" expect_status 3 stet dag show main:rot --value
t "the same thing again makes it whole" stet dag commit other '"will rot"'
t "so it is there again" same '"will rot"' "$(stet dag show main:rot --value --json | python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)["value"]))')"
finish
