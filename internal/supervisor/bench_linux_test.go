package supervisor_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/supervisor"
)

// mostMemory is the bound of one supervisor, which runs as long as its call, in KiB.
const mostMemory = 6 << 10

// BenchmarkCall measures what a supervisor costs: memory while the agent runs, and the time of the CPU of a whole
// call without the agent's own.
func BenchmarkCall(b *testing.B) {
	program := small(b)
	memory := resident(b, program)
	var cpu []time.Duration
	for b.Loop() {
		cpu = append(cpu, spent(b, program))
	}
	slices.Sort(cpu)
	b.ReportMetric(float64(memory), "KiB")
	b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds()), "cpu-µs")
	// the tenth part that others on the machine hurt least
	b.ReportMetric(float64(cpu[len(cpu)/10].Microseconds()), "cpu-µs-undisturbed")
}

func TestSupervisorMemory(t *testing.T) {
	require.Less(t, resident(t, small(t)), mostMemory)
}

// small builds the program.
func small(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), supervisor.Program)
	output, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./passbook-call").CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

// resident is the peak of a supervisor's memory in KiB, seen by its agent.
func resident(t testing.TB, program string) (kib int) {
	t.Helper()
	p := waiting(t, program)
	begin(t, p, `sleep 1.2; grep VmHWM "/proc/$PPID/status"`) // it has looked at the output by then
	require.Zero(t, ended(t, p).Code)
	raw, err := os.ReadFile(filepath.Join(p.Dir(), "stdout"))
	require.NoError(t, err)
	_, err = fmt.Fscanf(bytes.NewReader(raw), "VmHWM: %d kB", &kib)
	require.NoError(t, err, string(raw))
	return kib
}

// spent is the supervisor's time of the CPU, seen by the last that its agent does: what follows is fsync and the
// record.
func spent(t testing.TB, program string) time.Duration {
	t.Helper()
	p := waiting(t, program)
	begin(t, p, `cat /proc/$PPID/task/*/schedstat`)
	require.Zero(t, ended(t, p).Code)
	raw, err := os.ReadFile(filepath.Join(p.Dir(), "stdout"))
	require.NoError(t, err)
	var all time.Duration
	for line := range bytes.Lines(raw) {
		var ns int64
		_, err := fmt.Sscan(string(line), &ns)
		require.NoError(t, err)
		all += time.Duration(ns)
	}
	return all
}
