// Command agent is the built-in scripted agent as a small program of its own: a walk asks it thousands of times.
package main

import (
	"os"

	"github.com/passbook-run/passbook/agent/scripted"
)

func main() { os.Exit(scripted.Main(os.Stdin, os.Stdout, os.Stderr, os.Getenv)) }
