#!/bin/sh
# Each line: what is tried, what it must say.
cd "$(dirname "$0")" || exit 1
failed=0

is() {
	if [ "$2" = "$3" ]; then
		echo "$1: ok"
	else
		echo "$1: it says $2, not $3"
		failed=1
	fi
}

is "the sum" "$(sh bin/ledger data/expenses.csv 2>&1)" 50.70
is "how many" "$(sh bin/ledger data/expenses.csv count 2>&1)" 3
is "by category" "$(sh bin/ledger data/expenses.csv categories 2>&1 | tr '\n' ' ')" "books 42.50 food 8.20 "
is "a word that it does not know" "$(sh bin/ledger data/expenses.csv average >/dev/null 2>&1; echo $?)" 2
exit $failed
