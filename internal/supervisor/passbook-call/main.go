// Command passbook-call supervises one call of an agent. A worker starts it, and it outlives the worker.
package main

import (
	"os"

	"github.com/passbook-run/passbook/internal/supervisor"
)

func main() { os.Exit(supervisor.Main(os.Args[1:])) }
