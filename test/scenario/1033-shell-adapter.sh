#!/usr/bin/env bash
# An adapter that is a shell script: it stores its result with `stet dag put`, in the repository that the request names.
. "$STET_SOURCE/test/scenario/lib.sh"

mkdir bin
cat >bin/shell-adapter <<'END'
#!/bin/sh
remote=$(sed 's/.*"remote":"\([^"]*\)".*/\1/')
id=$("$STET" dag put --in "$remote" '{"made": ["by", "a", "shell"]}') || exit 75
printf '{"v":1,"status":"done","outcome":"ok","result":"%s"}\n' "$id"
END
chmod +x bin/shell-adapter
export PATH="$PWD/bin:$PATH" STET
t "a project" stet init
t "a DAG is stored" test "$(stet dag put '[1,2]' | wc -c)" = 65
t "and has its value" test "$(stet dag show "$(stet dag put '[1,2]')" --value | tr -d ' \n')" = '[1,2]'
t "the same value is the same DAG" test "$(stet dag put '[1,2]')" = "$(stet dag put '[1, 2]' --json | json dag)"
t "a call through the script" expect_out '"shell"' stet call run dml+exec://shell-adapter/x
t "in a shared repository too" expect_out '"shell"' stet call run --remote "file://$PWD/shared.db" 'dml+exec://shell-adapter/y'
t "what is no value is refused" expect_status 2 stet dag put '{"/":{"bytes@1":"no base64!"}}'
t "and so is a place of another kind" expect_status 2 stet dag put 1 --in ftp://x/
t "and one without objects on this machine" expect_status 8 stet dag put 1 --in dml+remote://x/
finish
