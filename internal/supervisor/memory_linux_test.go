package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/testenv"
)

// TestSupervisorMemory limits the peak of the program, which runs as long as its call. Its agent sees it.
func TestSupervisorMemory(t *testing.T) {
	programs, err := testenv.Programs("../..", t.TempDir(), "./internal/supervisor/"+supervisor.Program)
	require.NoError(t, err)
	p := waiting(t, filepath.Join(programs, supervisor.Program))
	begin(t, p, `head -c 10000000 /dev/zero; grep VmHWM "/proc/$PPID/status" >&2`)
	require.Zero(t, ended(t, p).Code)
	raw, err := os.ReadFile(filepath.Join(p.Dir(), "stderr"))
	require.NoError(t, err)
	var kib int
	_, err = fmt.Fscanf(strings.NewReader(string(raw)), "VmHWM: %d kB", &kib)
	require.NoError(t, err, string(raw))
	require.Less(t, kib, 6<<10)
}
