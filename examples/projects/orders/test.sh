#!/bin/sh
got=$(sh orders.sh "$1" bread milk)
[ "$got" = "total 470 cents" ] || { echo "orders: got: $got; want: total 470 cents"; exit 1; }
echo "orders: fits the library"
