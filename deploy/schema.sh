#!/bin/sh
# Brings both databases to the schema of this version. Running it again changes nothing.
set -eu

tool() {
  database=$1
  shift
  temporal-sql-tool --plugin postgres12 --ep "$POSTGRES_HOST" -p 5432 -u "$POSTGRES_USER" --db "$database" "$@"
}

# prepare <database> <folder of its schema>
prepare() {
  tool "$1" create
  tool "$1" setup-schema -v 0.0
  tool "$1" update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

prepare temporal temporal
prepare temporal_visibility visibility
