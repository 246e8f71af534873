# An agent that a test steers: the task names a folder with steer=FOLDER. There it logs its calls, waits while it is held, and finds out whether it
# is to fail.
prompt=$(cat)
steer=$(printf '%s\n' "$prompt" | sed -n 's/.*steer=\([^ ]*\).*/\1/p' | head -n 1)
echo "call $*" >>"$steer/calls"
while [ -e "$steer/hold" ]; do sleep 0.05; done
case $prompt in *"End it."*) while [ -e "$steer/hold-end" ]; do sleep 0.05; done ;; esac
if [ -e "$steer/fail" ]; then exit 1; fi
echo "An answer to: $prompt"
