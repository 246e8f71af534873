package fsck_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/testenv"
)

// TestMain keeps the directories of these tests in memory. What a write promises after a power cut is tested in package
// durable.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == measureVerb {
		if err := measured(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := testenv.UseMemory(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
