cat >/dev/null
if grep -q HELLO greeting.txt; then
	echo "It can be heard."
	echo "VERDICT: approved"
else
	echo "greeting.txt:1: say it louder."
	echo "VERDICT: rejected"
fi
