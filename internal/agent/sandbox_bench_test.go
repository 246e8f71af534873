//go:build linux

package agent

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// BenchmarkSandbox measures what a sandbox adds to a call: the median of calls of true in a sandbox minus that of calls
// without one, alternating.
func BenchmarkSandbox(b *testing.B) {
	host := sandbox.Examine()
	if host.Problem != "" {
		b.Skip(host.Problem)
	}
	program, err := supervisor.Argv()
	require.NoError(b, err)
	took := map[string][]time.Duration{}
	modes := map[string]*sandbox.Held{
		"none": nil, "workspace": {Mode: sandbox.Workspace, Network: []string{sandbox.Open}},
		"strict":    {Mode: sandbox.Strict, Network: []string{sandbox.Closed}},
		"addresses": {Mode: sandbox.Workspace, Network: []string{"127.0.0.1:9999"}},
	}
	for b.Loop() {
		for name, held := range modes {
			c := commandIn(b.TempDir(), "")
			c.Argv = []string{"true"}
			if held != nil {
				c.Sandbox = &sandbox.Call{Held: *held, Bwrap: host.Bwrap, Delivery: filepath.Dir(c.Prompt), Enter: program}
			}
			began := time.Now()
			child, err := begin(c)
			require.NoError(b, err)
			exit, err := child.Result()
			took[name] = append(took[name], time.Since(began))
			require.NoError(b, err)
			require.Zero(b, exit.Code)
		}
	}
	median := func(name string) time.Duration {
		slices.Sort(took[name])
		return took[name][len(took[name])/2]
	}
	b.ReportMetric(float64(median("none").Microseconds()), "none-µs")
	for _, name := range []string{"workspace", "strict", "addresses"} {
		b.ReportMetric(float64((median(name) - median("none")).Microseconds()), name+"-added-µs")
	}
}
