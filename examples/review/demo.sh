#!/bin/sh
# Plays the whole story of pipeline.yaml on a copy of repository/, offline: a plan, a question, a rejected round, a second one that is
# approved, and the delivery. On a terminal you are asked; elsewhere the plan is taken as it is.
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

# A server and a worker of its own, so that the worker finds scripted/claude before any other.
export PASSBOOK_STATE_DIR="$home/state" PATH="$here/scripted:$PATH"
trap '"$starter" server stop >/dev/null' EXIT
trap 'exit 130' INT

run() {
	"$starter" run --config "$here/pipeline.yaml" --source "$home/repository" --output-dir "$home/run" \
		--task "total.sh loses the last number when its line has no line feed at the end. Mend it."
}

if [ -t 0 ]; then
	run
else
	run || [ $? = 4 ] # it waits for a decision
	"$starter" decide --show "$home/run"
	"$starter" decide "$home/run" --action continue --note "as planned"
	run
fi

branch=$(git branch --format='%(refname:short)' --list 'passbook-*')
echo
echo "Your checkout is as it was; branch $branch has the result:"
git --no-pager log --oneline -2 "$branch"
git --no-pager diff --stat "HEAD..$branch"
git worktree add -q "$home/look" "$branch"
(cd "$home/look" && sh test.sh)
echo
echo "Everything is in $home: look at run/workspace, run/_orchestrator/logs/orchestrator.log, run/delivery.patch."
