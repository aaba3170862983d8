#!/bin/sh
# Installs the packages that package-lock.json pins below $STET_BUILD/npm, once for each state of that file, and prints the
# directory. Several tests may ask at once.
set -eu
here=$(dirname "$0")
into=$STET_BUILD/npm
mkdir -p "$into"
exec 9>"$into/lock"
flock 9
want=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum)
if [ "$(cat "$into/installed" 2>/dev/null)" != "$want" ]; then
    rm -rf "$into/node_modules" "$into/installed"
    cp "$here/package.json" "$here/package-lock.json" "$into/"
    for try in 1 2 3; do # a registry may be out of reach for a moment
        npm ci --prefix "$into" --cache "$into/cache" --ignore-scripts --no-audit --no-fund --loglevel=error >"$into/log" 2>&1 && break
        [ $try -lt 3 ] || { cat "$into/log" >&2; exit 1; }
        sleep $try
    done
    rm -rf "$into/cache"
    printf '%s\n' "$want" >"$into/installed"
fi
printf '%s\n' "$into"
