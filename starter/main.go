// Command starter runs pipelines and shows, pauses and resumes them.
package main

import (
	"os"

	"github.com/passbook-run/passbook/internal/cli"
	_ "github.com/passbook-run/passbook/internal/store/clouds"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
