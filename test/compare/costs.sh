#!/bin/sh
# Prints what starter costs: a build from empty caches with the modules downloaded, sizes, and the peak memory of the
# processes of a run. costs.sh [--no-build]; run it in the checkout.
set -eu
dir=$(mktemp -d)
trap 'PASSBOOK_STATE_DIR="$dir/state" "$dir/bin/starter" server stop --now >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
begun=$(date +%s)
if [ "${1:-}" != --no-build ]; then export GOCACHE="$dir/go" XDG_CACHE_HOME="$dir/cache"; fi
scripts/programs "$dir/bin"
server=$("$dir/bin/starter" server build | sed -n 's/^Temporal server: //p')
[ "${1:-}" = --no-build ] || echo "- build: $((($(date +%s) - begun + 30) / 60)) min ($(($(date +%s) - begun)) s)"
echo "- programs: passbook $(($(stat -L -c %s "$dir/bin/passbook") / 1000000)) MB, Temporal server $(($(stat -c %s "$server") / 1000000)) MB"
mkdir "$dir/run"
cp -R examples "$dir/run"
export PASSBOOK_STATE_DIR="$dir/state" PASSBOOK_SERVER="$server"
"$dir/bin/starter" run --config "$dir/run/examples/agents/any-command.yaml" --output-dir "$dir/run/out" >/dev/null
for pid in $(grep -lsz "^PASSBOOK_STATE_DIR=$dir/state\$" /proc/[0-9]*/environ | cut -d/ -f3); do
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status" 2>/dev/null || true)
	[ -z "$peak" ] || echo "- peak memory: $((peak / 1000)) MB, $(tr '\0' ' ' <"/proc/$pid/cmdline" | sed "s,$dir/,," | cut -c1-60)"
done
