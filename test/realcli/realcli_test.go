package realcli

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/supervisor"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// installed returns the command of a program, which it installs once.
func installed(t *testing.T, cli CLI) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := cli.Install(ctx); err != nil {
		t.Skip(err)
	}
	argv, err := cli.Argv()
	if err != nil {
		t.Skip(err)
	}
	return argv
}
