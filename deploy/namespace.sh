#!/bin/sh
# Brings the namespace to its retention and search attributes. Running it again changes nothing.
set -eu

# try <command...>: the server may still be starting.
try() {
  left=60
  until "$@"; do
    left=$((left - 1))
    if [ "$left" -le 0 ]; then
      echo "gave up: $*" >&2
      exit 1
    fi
    sleep 2
  done
}

settle_namespace() {
  if temporal operator namespace describe -n "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
    temporal operator namespace update -n "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
  else
    temporal operator namespace create -n "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
  fi
}

# settle_attribute <Name=Type>
settle_attribute() {
  if temporal operator search-attribute list -n "$TEMPORAL_NAMESPACE" | grep -qw "${1%=*}"; then
    return 0
  fi
  temporal operator search-attribute create -n "$TEMPORAL_NAMESPACE" --name "${1%=*}" --type "${1#*=}"
}

try temporal operator cluster health
try settle_namespace
for attribute in $SEARCH_ATTRIBUTES; do
  try settle_attribute "$attribute"
done
