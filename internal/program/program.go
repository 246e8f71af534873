// Package program is the one program of Passbook, which acts by the name or the first word that it is called with.
package program

import (
	"os"
	"slices"

	"github.com/passbook-run/passbook/internal/cli"
	"github.com/passbook-run/passbook/workerhost"
)

// Worker is the name of the program as a worker in the foreground, for containers and service units.
const Worker = "worker"

// Main runs the program and returns its exit code.
func Main(name string, args []string) int {
	if code, child := workerhost.RunChild(args); child {
		return code
	}
	if name == Worker && !slices.Equal(args, []string{"--version"}) {
		args = append([]string{Worker}, args...)
	}
	return cli.Main(args, os.Stdin, os.Stdout, os.Stderr)
}
