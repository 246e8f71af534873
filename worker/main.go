// Command worker runs a worker in the foreground: what `starter worker` does, as a program of its own for containers and units.
package main

import (
	"os"

	"github.com/passbook-run/passbook/starter/cli"
	_ "github.com/passbook-run/passbook/store/clouds"
	"github.com/passbook-run/passbook/supervisor"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] != cli.ScriptedVerb && args[0] != supervisor.Verb {
		args = append([]string{"worker"}, args...)
	}
	os.Exit(cli.Main(args, os.Stdin, os.Stdout, os.Stderr))
}
