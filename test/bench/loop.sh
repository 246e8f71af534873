# Executes steps one after another and syncs each answer to the disk: loop.sh FOLDER STEPS [AGENT...]
# It continues after the answers that the folder has.
set -euo pipefail
dir=$1 steps=$2
shift 2
mkdir -p "$dir"
cd "$dir"
touch journal
i=$(wc -l <journal)
while [ "$i" -lt "$steps" ]; do
	i=$((i + 1))
	answer='{}'
	[ $# -eq 0 ] || answer=$(echo "Step $i." | "$@")
	[ -n "$answer" ]
	echo "$answer" >>journal
	sync journal
done
