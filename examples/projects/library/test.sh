#!/bin/sh
# The library prints a whole number of cents for each item.
for item in bread milk; do
	case $(sh price.sh $item) in
	*[!0-9]* | "") echo "$item: not a number of cents: $(sh price.sh $item)" && exit 1 ;;
	esac
done
echo "library: all prices are cents"
