# An agent that a test steers: the task names a folder with steer=FOLDER. It logs its calls there, and adds a line to work.txt.
prompt=$(cat)
steer=$(printf '%s\n' "$prompt" | sed -n 's/.*steer=\([^ ]*\).*/\1/p' | head -n 1)
name=$(cat name.txt)
echo "$name" >>"$steer/calls"
while [ -e "$steer/hold-$name" ]; do sleep 0.05; done
echo "line $(($(wc -l <work.txt) + 1)) of $name" >>work.txt
echo "I added a line."
