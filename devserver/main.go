package main

import (
	_ "github.com/temporalio/ui-server/v2/server"
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	_ "go.temporal.io/server/temporal"
	_ "modernc.org/sqlite"
)

func main() {}
