#!/bin/sh
got=$(sh billing.sh "$1" bread)
[ "$got" = "charge 320 cents" ] || { echo "billing: got: $got; want: charge 320 cents"; exit 1; }
echo "billing: fits the library"
