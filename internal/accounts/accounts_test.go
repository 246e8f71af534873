package accounts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

var (
	claude = Account{ID: "0123456789abcdef", Name: "claude"}
	start  = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	reset  = start.Add(2 * time.Hour)
)

func wait(count int) time.Duration { return time.Duration(count) * time.Hour }

func shutAt(t *testing.T, h Host, now, until time.Time) Shut {
	t.Helper()
	s, err := h.Close(t.Context(), claude, Limit{Kind: "plan", Until: until, Wait: wait}, now)
	require.NoError(t, err)
	return s
}

func TestOneProbeAfterTheReset(t *testing.T) {
	h := At(t.TempDir(), disk.Disk{})
	ask := func(c Caller, now time.Time) (waits, probe bool) {
		t.Helper()
		s, probe, err := h.Ask(t.Context(), claude.ID, c, now)
		require.NoError(t, err)
		return s != nil, probe
	}
	waits, _ := ask(Caller{Run: "a", Call: "a/1"}, start)
	require.False(t, waits, "a healthy account is not checked")
	s := shutAt(t, h, start, reset)
	leased := Caller{Run: "a", Call: "a/1", Number: s.Number}
	for name, row := range map[string]struct {
		caller Caller
		after  time.Duration
		waits  bool
	}{
		"before the reset, with a lease": {leased, -time.Second, true},
		"without a lease":                {Caller{Run: "b", Call: "b/1"}, time.Second, true},
		"with a lease of another limit":  {Caller{Run: "b", Call: "b/1", Number: s.Number - 1}, time.Second, true},
		"with the lease":                 {leased, 0, false},
		"before the reset, an operator":  {Caller{Run: "b", Call: "b/1", Number: contract.ProbeNow}, -time.Hour, false},
		"long after the reset":           {Caller{Run: "b", Call: "b/1"}, SelfAfter, false},
	} {
		t.Run(name, func(t *testing.T) {
			shutAt(t, h, start, reset)
			waits, probe := ask(row.caller, reset.Add(row.after))
			require.Equal(t, row.waits, waits)
			require.Equal(t, !row.waits, probe)
			require.NoError(t, os.Remove(h.path(claude.ID)))
			s = shutAt(t, h, start, reset)
		})
	}
	now := reset.Add(time.Second)
	leased.Number = s.Number
	_, probe := ask(leased, now)
	require.True(t, probe)
	waits, _ = ask(Caller{Run: "b", Call: "b/1", Number: s.Number}, now)
	require.True(t, waits, "a forged lease makes no second probe")
	_, probe = ask(leased, now.Add(time.Minute))
	require.True(t, probe, "the same call is delivered again")
	_, probe = ask(Caller{Run: "b", Call: "b/1", Number: s.Number}, now.Add(StartWithin+AnswerWithin))
	require.True(t, probe, "the lease passes on")
}

// TestFirstCallIsAfterTheReset: the provider may be a little late, and its text is cut to the minute.
func TestFirstCallIsAfterTheReset(t *testing.T) {
	h := At(t.TempDir(), disk.Disk{})
	s, err := h.Close(t.Context(), claude, Limit{Kind: "plan", Until: reset, After: 10 * time.Second, Wait: wait}, start)
	require.NoError(t, err)
	require.Equal(t, run.Time(reset.Add(10*time.Second)), s.Until)
	shut, _, err := h.Ask(t.Context(), claude.ID, Caller{Run: "a", Call: "a/1", Number: s.Number}, reset.Add(time.Second))
	require.NoError(t, err)
	require.NotNil(t, shut, "also with the lease")
}

func TestConcurrentCallsMakeOneProbe(t *testing.T) {
	dir := t.TempDir()
	s := shutAt(t, At(dir, disk.Disk{}), start, reset)
	var mu sync.Mutex
	probes := 0
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			name := string(rune('a' + i))
			_, probe, err := At(dir, disk.Disk{}).Ask(t.Context(), claude.ID, Caller{Run: name, Call: name, Number: s.Number},
				reset)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if probe {
				probes++
			}
		})
	}
	group.Wait()
	require.Equal(t, 1, probes)
}

func TestLimitsAreNumbered(t *testing.T) {
	h := At(t.TempDir(), disk.Disk{})
	first := shutAt(t, h, start, reset)
	require.Equal(t, run.Time(reset), first.Until)
	same := shutAt(t, h, start.Add(time.Minute), reset.Add(time.Minute))
	require.Equal(t, first.Number, same.Number, "another call met the same limit")
	require.Equal(t, run.Time(reset.Add(time.Minute)), same.Until, "the later reset counts")

	probe := Caller{Run: "a", Call: "a/1", Number: first.Number}
	now := reset.Add(2 * time.Minute)
	_, isProbe, err := h.Ask(t.Context(), claude.ID, probe, now)
	require.NoError(t, err)
	require.True(t, isProbe)
	second := shutAt(t, h, now, time.Time{})
	require.Greater(t, second.Number, first.Number, "the probe met the next limit")
	require.Equal(t, run.Time(now.Add(2*time.Hour)), second.Until, "of unknown length: the second wait")
	ended, err := h.Opened(t.Context(), claude.ID, probe.Call)
	require.NoError(t, err)
	require.Nil(t, ended, "it is the probe of the first limit")

	probe.Number, now = second.Number, now.Add(3*time.Hour)
	_, isProbe, err = h.Ask(t.Context(), claude.ID, probe, now)
	require.NoError(t, err)
	require.True(t, isProbe)
	ended, err = h.Opened(t.Context(), claude.ID, probe.Call)
	require.NoError(t, err)
	require.Equal(t, second.Number, ended.Number)
	waits, _, err := h.Ask(t.Context(), claude.ID, Caller{Run: "b", Call: "b/1"}, now)
	require.NoError(t, err)
	require.Nil(t, waits, "the account is open for all")
	require.Greater(t, shutAt(t, h, now, reset.Add(24*time.Hour)).Number, second.Number)
}

func TestDamagedAccountIsMovedAway(t *testing.T) {
	dir := t.TempDir()
	h := At(dir, disk.Disk{})
	shutAt(t, h, start, reset)
	require.NoError(t, os.WriteFile(h.path(claude.ID), []byte(`{"version":1,`), 0o600))
	s, _, err := h.Ask(t.Context(), claude.ID, Caller{}, start)
	require.NoError(t, err)
	require.Nil(t, s)
	kept, err := filepath.Glob(filepath.Join(h.Dir, "*.damaged-*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.NoError(t, os.WriteFile(h.path(claude.ID), []byte(`{"version":2}`), 0o600))
	_, _, err = h.Ask(t.Context(), claude.ID, Caller{}, start)
	require.ErrorContains(t, err, "a later version of Passbook wrote")
	_, err = h.Close(t.Context(), Account{ID: "../x"}, Limit{}, start)
	require.ErrorContains(t, err, "its id must have 16 hex digits")
}

func TestAccountOfAnAgent(t *testing.T) {
	key, environ := []byte("key"), []string{"PATH=/bin", "ANTHROPIC_API_KEY=one", "GITHUB_TOKEN=x"}
	with := func(ag pipeline.Agent, environ ...string) string { return Of(key, ag, environ).ID }
	stream := pipeline.Agent{Run: []string{"/opt/claude", "-p"}, Reply: "claude-stream"}
	mine := with(stream, environ...)
	require.Len(t, mine, 16)
	require.Equal(t, "claude ("+mine[:8]+")", Of(key, stream, environ).Name)
	require.Equal(t, mine, with(pipeline.Agent{Run: []string{"claude"}, Reply: "claude-json"}, environ...))
	require.Equal(t, mine, with(stream, "GITHUB_TOKEN=y", "ANTHROPIC_API_KEY=one"), "only its own credentials count")
	require.NotEqual(t, mine, with(stream, "ANTHROPIC_API_KEY=two"))
	require.NotEqual(t, mine, with(pipeline.Agent{Run: []string{"codex"}, Reply: "codex-jsonl"}, environ...))
	require.NotEqual(t, mine, Of([]byte("other"), stream, environ).ID)
	other := pipeline.Agent{Run: []string{"./agent.sh"}, Reply: "text"}
	require.NotEqual(t, with(other, "MY_KEY=a"), with(other, "MY_KEY=b"))
	require.Regexp(t, `^agent\.sh \([0-9a-f]{8}\)$`, Of(key, other, nil).Name)
	script := pipeline.Agent{Run: []string{"/bin/sh", "-e", "tools/a.sh", "x"}, Reply: "text"}
	require.Regexp(t, `^sh a\.sh \([0-9a-f]{8}\)$`, Of(key, script, nil).Name)
	for _, unrelated := range [][]string{{"sh", "-e", "tools/b.sh", "x"}, {"sh", "-c", "cat"}, {"python3.12", "a.py"}} {
		require.NotEqual(t, with(script), with(pipeline.Agent{Run: unrelated, Reply: "text"}), unrelated)
	}
	require.Equal(t, with(script), with(pipeline.Agent{Run: []string{"sh", "-e", "tools/a.sh", "x"}, Reply: "text"}))
	for _, row := range []struct {
		name string
		run  []string
	}{
		{"sh -c cat", []string{"sh", "-c", "cat"}},
		{"sh -c ./agent.sh", []string{"sh", "-ec", "./agent.sh --key s3cret"}},
		{"bash", []string{"bash", "-lc", "TOKEN='s3cret word' tool"}},
		{"timeout tool", []string{"timeout", "-k", "5", "90m", "./tool"}},
		{"env tool", []string{"env", "-i", "API_KEY=s3cret", "/opt/tool"}},
	} {
		name := Of(key, pipeline.Agent{Run: row.run, Reply: "text"}, nil).Name
		require.Regexp(t, "^"+regexp.QuoteMeta(row.name)+` \([0-9a-f]{8}\)$`, name)
	}
	for _, launcher := range strings.Fields("nohup pnpm bunx setsid nice timeout env stdbuf xargs npm yarn doas ionice " +
		"chrt flock time unshare systemd-run script bwrap firejail caffeinate parallel kubectl nix tsx ts-node") {
		one := pipeline.Agent{Run: []string{launcher, "one"}, Reply: "text"}
		require.NotEqual(t, with(one), with(pipeline.Agent{Run: []string{launcher, "two"}, Reply: "text"}), launcher)
	}
	named := stream
	named.Account = "max"
	require.Equal(t, with(named, environ...), with(named), "a named account has any credentials")
	require.Equal(t, "max", Of(key, named, nil).Name)
}
