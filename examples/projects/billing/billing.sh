#!/bin/sh
# Charges for items: prints the amount in dollars of each.
library=$1
shift
for item in "$@"; do
	echo "charge $(sh "$library/price.sh" "$item") dollars"
done
