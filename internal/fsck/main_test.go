package fsck_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/testenv"
)

// TestMain keeps the directories of these tests in memory. Package durable tests what a write promises after a power
// failure.
func TestMain(m *testing.M) {
	if err := testenv.UseMemory(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
