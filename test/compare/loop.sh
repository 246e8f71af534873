#!/bin/sh
# The usual loop around an agent: the same prompt until the tests pass, then a commit. At an error it waits a minute.
# loop.sh PROMPT
set -u
while :; do
	claude -p --dangerously-skip-permissions <"$1" || { sleep 60; continue; }
	sh test.sh && break
done
git add -A
git commit -qm "$(cat "$1")"
