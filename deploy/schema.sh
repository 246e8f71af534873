#!/bin/sh
# Brings both databases to the schema of the tool's version. Running it again changes nothing. Where the server is: SQL_* variables.
set -eu

# prepare <database> <name of its schema>
prepare() {
  temporal-sql-tool --db "$1" create
  temporal-sql-tool --db "$1" setup-schema -v 0.0
  temporal-sql-tool --db "$1" update-schema --schema-name "postgresql/v12/$2"
}

prepare temporal temporal
prepare temporal_visibility visibility
