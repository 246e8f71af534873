// Command starter runs pipelines and shows, pauses and resumes them.
package main

import (
	"os"

	"github.com/passbook-run/passbook/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
