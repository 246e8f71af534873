#!/bin/sh
# Plays claude: the model API on loopback sends what it executes and prints.
prompt='' resume='' json=''
while [ $# -gt 0 ]; do
	case $1 in
	--version) echo "2.1.330 (Claude Code)" && exit ;;
	--resume) resume=$2 ;;
	--output-format) json=1 ;;
	-p) case ${2:-} in -* | '') ;; *) prompt=$2 ;; esac ;;
	esac
	shift
done
[ -n "$prompt" ] || prompt=$(cat)
session=$(cat /proc/sys/kernel/random/uuid)
[ -z "$json" ] || echo '{"type":"system","subtype":"init","session_id":"'"$session"'","model":"claude-sonnet-5-5"}'
api() { curl -sSf --noproxy '*' --data-binary @- "$ANTHROPIC_BASE_URL/$1?session=$session&resume=$resume&json=$json"; }
script=$(printf %s "$prompt" | api begin) || exit 1
eval "$script"
