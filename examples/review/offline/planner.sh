cat >/dev/null
echo "Write greeting.txt with one line: a greeting."
