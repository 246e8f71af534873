package realcli

import (
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/supervisor"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// installed returns the command of a program. Tests do not install it: it is large.
func installed(t *testing.T, cli CLI) []string {
	t.Helper()
	argv, err := cli.Argv()
	if err != nil {
		t.Skipf("%v: run `make agents` to install %s", err, cli.Name)
	}
	return argv
}
