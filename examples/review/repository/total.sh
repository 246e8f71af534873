#!/bin/sh
# Adds up the numbers on standard input, one a line.
sum=0
while read -r number; do
	sum=$((sum + number))
done
echo "$sum"
