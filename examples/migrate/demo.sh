#!/bin/sh
# Runs pipeline.yaml on a repository with 200 small scripts, offline: one lane each, reviewed and merged.
# Usage: [FILES=200] demo.sh [FOLDER]; everything stays in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
starter=${STARTER:-$here/../../bin/starter}
home=${1:-$(mktemp -d)}
mkdir -p "$home/repository/src"
case $starter in /*) ;; *) starter=$PWD/$starter ;; esac
home=$(cd "$home" && pwd)

cd "$home/repository"
n=1
while [ "$n" -le "${FILES:-200}" ]; do
	name=$(printf 'part-%03d.sh' "$n")
	cat >"src/$name" <<'END'
#!/bin/sh
name=`basename "$0" .sh`
echo "$name has `wc -l <"$0" | tr -d ' '` lines"
END
	n=$((n + 1))
done
cat >test.sh <<'END'
#!/bin/sh
# Runs each script; none uses backticks.
set -eu
for script in src/*.sh; do
	sh "$script" | grep -q 'has 3 lines'
done
if grep -l '`' src/*.sh; then exit 1; fi
echo "all scripts pass"
END
git init -q
git add .
git -c user.name=Demo -c user.email=demo@localhost commit -q -m "Scripts with backticks"

# A separate server and worker, with scripted/claude first in PATH.
export PASSBOOK_STATE_DIR="$home/state" PATH="$here/scripted:$PATH"
bwrap --unshare-user --ro-bind / / true 2>/dev/null || {
	echo "No sandbox is possible here: the demo runs its scripted agents without one."
	export PASSBOOK_SANDBOX_MODE=none
}
trap '"$starter" server stop >/dev/null' EXIT
trap 'exit 130' INT
"$starter" run --config "$here/pipeline.yaml" --source "$home/repository" --output-dir "$home/run"

branch=$(git branch --format='%(refname:short)' --list 'passbook-*')
echo
git --no-pager log --oneline -3 "$branch"
git --no-pager diff --shortstat "HEAD..$branch"
"$starter" check "$home/run"
echo
echo "Everything is in $home: see run/delivery.patch and run/events.jsonl."
