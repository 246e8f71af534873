package fsck_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
)

const measureVerb = "measure-a-command"

// measured runs a command in a small process: the peak memory of a child includes that of its parent at the start. It
// prints the time and the peak in KB.
func measured(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	begin := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 { // check has found that meta.json lags
		err = nil
	}
	fmt.Println(int64(time.Since(begin)), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	return err
}

// BenchmarkPrograms measures whole commands: `check` on a run of 100,000 events, and `status` on a directory of another
// program of that size. Peak memory (in KB on Linux) is compared with that of `--help`.
func BenchmarkPrograms(b *testing.B) {
	programs, err := testenv.Programs("../..", b.TempDir(), "./starter")
	require.NoError(b, err)
	environ := append(testenv.CleanEnv(os.Environ()), "HOME="+b.TempDir(), "TEMPORAL_ADDRESS=127.0.0.1:1")
	command := func(b *testing.B, args ...string) (took time.Duration, peak float64) {
		cmd := exec.Command(os.Args[0], append([]string{measureVerb, filepath.Join(programs, "starter")}, args...)...)
		cmd.Env = environ
		out, err := cmd.Output()
		require.NoError(b, err, "%s", out)
		_, err = fmt.Sscan(string(out), &took, &peak)
		require.NoError(b, err, "%s", out)
		return took, peak / 1024
	}
	own, other := busy(b, 100_000).Root, foreign(b).Root
	for name, args := range map[string][]string{"check": {"check", own}, "status": {"status", other}} {
		b.Run(name, func(b *testing.B) {
			var all time.Duration
			var most, least float64
			for b.Loop() {
				took, peak := command(b, args...)
				_, help := command(b, "--help")
				if all += took; least == 0 || help < least {
					least = help
				}
				most = max(most, peak)
			}
			b.ReportMetric(float64(all.Milliseconds())/float64(b.N), "command-ms")
			b.ReportMetric(most, "peak-MB")
			b.ReportMetric(most-least, "MB-above-help")
		})
	}
}
