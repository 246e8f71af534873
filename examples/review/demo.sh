#!/bin/sh
# Runs pipeline.yaml on a copy of repository/, offline: a plan, a question, a rejected review, an approved one, and the
# delivery. On a terminal it asks you; otherwise the plan is accepted.
# Usage: demo.sh [FOLDER]; everything stays in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
starter=${STARTER:-$here/../../bin/starter}
home=${1:-$(mktemp -d)}
mkdir -p "$home"
case $starter in /*) ;; *) starter=$PWD/$starter ;; esac
home=$(cd "$home" && pwd)

cp -R "$here/repository" "$home/repository"
cd "$home/repository"
git init -q
git add .
git -c user.name=Demo -c user.email=demo@localhost commit -q -m "A sum with a bug"

# A separate server and worker, with scripted/claude first in PATH.
export PASSBOOK_STATE_DIR="$home/state" PATH="$here/scripted:$PATH"
bwrap --unshare-user --ro-bind / / true 2>/dev/null || {
	echo "No sandbox is possible here: the demo runs its scripted agents without one."
	export PASSBOOK_SANDBOX_MODE=none
}
trap '"$starter" server stop >/dev/null' EXIT
trap 'exit 130' INT

run() {
	"$starter" run --config "$here/pipeline.yaml" --source "$home/repository" --output-dir "$home/run" \
		--task "total.sh loses the last number when its line has no line feed at the end. Fix it."
}

if [ -t 0 ]; then
	run
else
	run || [ $? = 4 ] # it waits for a decision
	"$starter" decide --show "$home/run"
	"$starter" decide "$home/run" --action continue --note "as planned"
	"$starter" watch "$home/run" # it may be done by now
fi

branch=$(git branch --format='%(refname:short)' --list 'passbook-*')
echo
test -z "$(git status --short)"
echo "Your checkout is unchanged; branch $branch has the result:"
git --no-pager log --oneline -2 "$branch"
git --no-pager diff --stat "HEAD..$branch"
git worktree add -q "$home/look" "$branch"
(cd "$home/look" && sh test.sh)
echo
echo "Everything is in $home: see run/delivery.patch, run/events.jsonl and run/_orchestrator/logs/orchestrator.log."
