// Command worker runs a worker in the foreground, for containers and service units.
package main

import (
	"os"

	"github.com/passbook-run/passbook/internal/program"
)

func main() { os.Exit(program.Main(program.Worker, os.Args[1:])) }
