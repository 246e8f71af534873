// Command install installs the programs from npm that tests use, and prints where they are.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/passbook-run/passbook/test/realcli"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	failed := false
	for _, c := range append(realcli.All(), realcli.Inspector()) {
		argv, err := c.Argv()
		if err != nil {
			fmt.Printf("Installing %s %s with npm into the user's cache (once)\n", c.Package, c.Version)
			if err = c.Install(ctx); err == nil {
				argv, err = c.Argv()
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
			continue
		}
		fmt.Printf("%s %s: %s\n", c.Name, c.Version, strings.Join(argv, " "))
	}
	if failed {
		os.Exit(1)
	}
}
