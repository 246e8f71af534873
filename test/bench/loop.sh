# Executes steps one after another and syncs each answer to the disk: bench loop.sh FOLDER STEPS WAIT [AGENT...]
# It continues after the answers that the folder has. With WAIT it waits for a line in the pipe "wake" after that step.
set -euo pipefail
dir=$1 steps=$2 pause=$3
shift 3
mkdir -p "$dir"
cd "$dir"
[ -p wake ] || mkfifo wake
touch journal
i=$(wc -l <journal)
while [ "$i" -lt "$steps" ]; do
	if [ "$i" -eq "$pause" ] && [ "$i" -gt 0 ]; then read -r _ <wake; fi
	i=$((i + 1))
	answer='{}'
	[ $# -eq 0 ] || answer=$(echo "Step $i." | "$@")
	[ -n "$answer" ]
	echo "$answer" >>journal
	sync journal
done
