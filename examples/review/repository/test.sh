#!/bin/sh
# Each case: what is read, and what is to be said.
failed=0
expect() {
	said=$(printf "$1" | sh ./total.sh 2>&1)
	if [ "$said" != "$2" ]; then
		echo "FAIL: total of '$1' is '$said', not '$2'"
		failed=1
	fi
}
expect '1\n2\n3\n' 6
expect '' 0
expect '5\n' 5
[ "$failed" = 0 ] && echo "all tests pass"
exit "$failed"
