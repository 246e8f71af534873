// Command worker runs a worker in the foreground, for containers and service units.
package main

import (
	"os"

	"github.com/passbook-run/passbook/internal/workercmd"
)

func main() { os.Exit(workercmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
