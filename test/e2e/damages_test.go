package e2e_test

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// damage is a way to damage a file; other is the same file of another run. It returns nil if there is nothing to
// damage.
type damage struct {
	name string
	of   func(raw, other []byte) []byte // returns the content of the damaged file
}

func damages() []damage {
	return []damage{
		{"deleted", nil},
		{"cut", func(raw, _ []byte) []byte { return raw[:len(raw)/2] }},
		{"one byte changed", func(raw, _ []byte) []byte {
			out := bytes.Clone(raw)
			for i := len(out) / 2; i < len(out); i++ {
				if c := out[i]; c >= 'a' && c <= 'y' || c >= '0' && c <= '8' {
					out[i]++
					return out
				}
			}
			return nil
		}},
		{"another run's", func(raw, other []byte) []byte {
			if bytes.Equal(raw, other) {
				return nil
			}
			return other
		}},
		{"duplicated", func(raw, _ []byte) []byte { return append(bytes.Clone(raw), raw...) }},
	}
}

// TestWalkDamages damages one file of a cancelled run, and resumes it: either that is refused and changes nothing, or
// the run completes, and a repair leaves a directory in which a check finds nothing, unless the file follows from no
// event. CI runs one file with each damage, -walk.seed chooses others.
func TestWalkDamages(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	o := h.operator(h.dial())
	other := cancelled(t, h, o).dir
	var names []string
	for name := range tree(t, other.Root) {
		if name != rundir.SpendFile && len(read(t, other.Path(name))) > 1 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	random := rand.New(rand.NewSource(*walkSeed))
	gate := make(chan struct{}, 4)
	for _, how := range damages() {
		chosen := names
		if !*walkAll {
			at := random.Intn(len(names))
			chosen = names[at : at+1]
		}
		for _, name := range chosen {
			t.Run(name+"/"+how.name, func(t *testing.T) {
				t.Parallel()
				gate <- struct{}{}
				defer func() { <-gate }()
				if l := cancelled(t, h.within(t), o); l.damage(name, how, other) {
					l.survives(name)
				}
			})
		}
	}
}

// cancelled returns a run that was cancelled in its third pass.
func cancelled(t *testing.T, h *environment, o operations.Operator) *subject {
	t.Helper()
	l := h.subject(t, o).steerAgents("hold-end").start().called(3)
	require.NoError(t, o.Cancel(t.Context(), l.dir))
	l.is(run.Cancelled).closed()
	return l.steerAgents("-hold-end")
}

// damage damages a file, and reports whether there was something to damage.
func (l *subject) damage(name string, how damage, other rundir.Dir) bool {
	l.t.Helper()
	path := l.dir.Path(name)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false // it has another name in each run
	}
	require.NoError(l.t, err)
	if how.of == nil {
		require.NoError(l.t, os.Remove(path))
		if name == rundir.CostLog {
			require.NoError(l.t, os.Remove(l.dir.Path(rundir.SpendFile))) // a link to it
		}
		return true
	}
	theirs, err := os.ReadFile(other.Path(name))
	require.NoError(l.t, err)
	now := how.of(raw, theirs)
	if now == nil {
		return false
	}
	require.NoError(l.t, os.WriteFile(path, now, 0o600))
	return true
}

// survives resumes a damaged run.
func (l *subject) survives(name string) {
	t := l.t
	// it follows from no event, or events are read from it
	given := slices.Contains([]string{rundir.ClaimFile, rundir.OwnerFile, rundir.EventsFile, rundir.MetaFile}, name)
	before := tree(t, l.dir.Root)
	if _, err := l.o.Resume(t.Context(), l.dir, operations.Reopening{}); err != nil {
		require.True(t, given, "resume: %v", err)
		now := tree(t, l.dir.Root)
		for file, sum := range before {
			require.Equal(t, sum, now[file], "a resume that is refused (%v) changes nothing: %s", err, file)
		}
		return
	}
	l.is(run.Done).closed()
	if name == rundir.ClaimFile || name == rundir.EventsFile {
		return // neither can be rebuilt
	}
	s, err := store.Open(t.Context(), l.o.Settings.Store)
	require.NoError(t, err)
	_, err = rundir.Repair(t.Context(), l.dir, rundir.RepairOptions{Apply: true, Blobs: blobs.Of(s),
		ReadTree: blobs.ReadTree})
	require.NoError(t, err)
	r, err := rundir.Check(t.Context(), l.dir, rundir.CheckOptions{ReadTree: blobs.ReadTree, Deep: blobs.Of(s)})
	require.NoError(t, err)
	for _, i := range r.Issues { // the journal records the damage that was repaired
		require.Equal(t, rundir.SeverityInfo, i.Severity, "%s: %s", i.Code, i.Message)
	}
}
