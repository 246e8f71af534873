package activities

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
)

// memoryChild names the row of a test process whose memory is measured.
const memoryChild = "ACTIVITIES_TEST_MEMORY"

// largeOutputs are shapes of SIZE bytes of output that once needed 40 times their size in memory.
var largeOutputs = []struct{ name, kind, play string }{
	{"too much text", adapter.Text, "head -c 600000000 /dev/zero"},
	{"diagnostics in short lines", adapter.Text, "yes a | head -c SIZE >&2; exit 3"},
	{"an envelope", adapter.ClaudeJSON,
		`printf '{"is_error":false,"result":"'; head -c SIZE /dev/zero | tr '\0' x; printf '"}'`},
	{"small objects", adapter.ClaudeJSON, `yes '{}' | head -c SIZE; echo '{"is_error":false,"result":"Done."}'`},
	{"a list of small objects", adapter.ClaudeJSON, `printf '['; yes '{},' | head -c SIZE; printf '{}]'`},
}

func TestLargeOutputNeedsBoundedMemory(t *testing.T) {
	const limit, most = 8e6, 180 << 10 // kB; the test itself needs 60,000
	if name := os.Getenv(memoryChild); name != "" {
		reportMemory(t, name, limit)
		return
	}
	for _, row := range largeOutputs {
		t.Run(row.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLargeOutputNeedsBoundedMemory$", "-test.v")
			cmd.Env = append(os.Environ(), memoryChild+"="+row.name)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(out)
			require.NotNil(t, found, string(out))
			peak, err := strconv.Atoi(string(found[1]))
			require.NoError(t, err)
			t.Logf("peak of the worker: %d kB", peak)
			require.Less(t, peak, most)
		})
	}
}

// reportMemory makes a call and prints the peak of this process, which is the worker.
func reportMemory(t *testing.T, name string, limit int) {
	t.Helper()
	for _, row := range largeOutputs {
		if row.name != name {
			continue
		}
		h := newHarness(t, "sh "+strings.ReplaceAll(row.play, "SIZE", strconv.Itoa(limit*9/10)))
		h.reply, h.limits = row.kind, fmt.Sprintf("limits: {output: %dKB}\n", limit/1000)
		self, err := os.Executable()
		require.NoError(t, err)
		h.lay(self)
		_, err = h.pass(t.Context())
		require.NoError(t, err)
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	t.Log(string(regexp.MustCompile(`VmHWM:\s*\d+ kB`).Find(status)))
}
