# An agent that a test steers: the task names a folder with steer=FOLDER. There it logs its calls and keeps its prompts, and finds how it is to
# behave. What it does to the files depends on nothing but the files.
role=$1
prompt=$(cat)
steer=$(printf '%s\n' "$prompt" | sed -n 's/.*steer=\([^ ]*\).*/\1/p' | head -n 1)
echo "$role" >>"$steer/calls"
n=$(grep -c "^$role\$" "$steer/calls")
printf '%s\n' "$prompt" >"$steer/prompt-$role-$n"
if [ -e "$steer/hold-$role" ]; then
	echo "half" >half.txt
	echo $$ >"$steer/held-$role"
	while [ -e "$steer/hold-$role" ]; do sleep 0.05; done
	rm half.txt
fi
case $role in
planner) echo "The plan: add a line to work.txt." ;;
implementer)
	echo "line $(($(wc -l <work.txt) + 1))" >>work.txt
	if [ -e "$steer/breaks" ]; then rm "$steer/breaks" && echo "broken" >broken.txt; fi
	echo "I added a line."
	;;
reviewer)
	verdict=$(sed -n "${n}p" "$steer/verdicts" 2>/dev/null)
	echo "work.txt has $(wc -l <work.txt | tr -d ' ') lines."
	echo "VERDICT: ${verdict:-approved}"
	;;
esac
