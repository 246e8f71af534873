#!/bin/sh
# Adds up the prices of items.
library=$1 sum=0
shift
for item in "$@"; do
	price=$(sh "$library/price.sh" "$item")
	sum=$((sum + ${price%.*})) # dollars
done
echo "total $sum dollars"
