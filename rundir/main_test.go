package rundir

import (
	"fmt"
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/testenv"
)

// TestMain keeps the directories of these tests in memory.
func TestMain(m *testing.M) {
	if err := testenv.UseMemory(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
