#!/bin/sh
# Runs shop.yaml on copies of library/, billing/ and orders/, offline: three runs, a contract check, a question, and the
# delivery to all three. On a terminal it asks you; otherwise the work is accepted.
# Usage: demo.sh [FOLDER]; everything stays in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
starter=${STARTER:-$here/../../bin/starter}
home=${1:-$(mktemp -d)}
mkdir -p "$home"
case $starter in /*) ;; *) starter=$PWD/$starter ;; esac
home=$(cd "$home" && pwd)

for name in library billing orders; do
	cp -R "$here/$name" "$home/$name"
	git -C "$home/$name" init -q
	git -C "$home/$name" add .
	git -C "$home/$name" -c user.name=Demo -c user.email=demo@localhost commit -q -m "Prices in dollars"
done
mkdir "$home/pipeline"
cp -R "$here/shop.yaml" "$here/library.yaml" "$here/service.yaml" "$here/prompts" "$home/pipeline"
cd "$home"

# A separate server and worker, with scripted/claude first in PATH.
export PASSBOOK_STATE_DIR="$home/state" PATH="$here/scripted:$PATH"
bwrap --unshare-user --ro-bind / / true 2>/dev/null || {
	echo "No sandbox is possible here: the demo runs its scripted agents without one."
	export PASSBOOK_SANDBOX_MODE=none
}
trap '"$starter" server stop >/dev/null' EXIT
trap 'exit 130' INT

run() {
	"$starter" run --config pipeline/shop.yaml --output-dir run
}

if [ -t 0 ]; then
	run
else
	run || [ $? = 4 ] # it waits for a decision
	"$starter" status run || [ $? = 4 ]
	"$starter" decide run --action continue --note "all three fit together"
	"$starter" watch run # it may be done by now
fi

echo
for name in library billing orders; do
	git -C "$name" --no-pager log --oneline -1 --format="$name: branch cents, %s" cents
	git -C "$name" --no-pager diff --stat HEAD..cents
done
"$starter" check run
echo
echo "Everything is in $home: see run/cross_checkpoint.json, and run/library, run/billing, run/orders."
