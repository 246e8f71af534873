package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// fakeDirectory promises what rundir.Dir.Project promises, in memory. Tests injure it; it answers by what it holds.
type fakeDirectory struct {
	mu       sync.Mutex
	epoch    int
	lines    []string
	written  []string // what history and segments hold: a rebuild restores it
	batches  []contract.ProjectInput
	seals    []contract.ArchiveSegmentInput
	before   map[int]func()        // the nth batch, from 1
	on       map[run.Kind]func()   // once, when such an event has been written
	sealing  func()                // while a segment is written
	edited   *run.Blob             // what Inspect finds
	mended   *run.WorkspaceUpdated // what it finds in the run's checkout, once
	full     int                   // number of batches for which the disk is full
	opening  func()                // while it is opened
	opens    []contract.OpenInput
	restored bool   // the artifact was restored while the run was paused
	taken    error  // by another start
	cluster  string // that has continued the run
	shorter  bool   // it is lost before it is sealed
	note     func(string)
	head     string // newest segment

	troubles []contract.RecoveredError // what the next projection had to get over

	damage  []run.JournalDamage // what is found where a batch is verified
	missing []run.JournalDamage // what a rebuild repairs
	unkept  []run.JournalDamage // what keeps a segment from being stored
}

func (d *fakeDirectory) Inspect(_ context.Context, in contract.InspectInput) (contract.InspectResult, error) {
	d.note("Inspect")
	if in.Tree != nil {
		res := contract.InspectResult{Workspace: d.mended}
		d.mended = nil
		return res, nil
	}
	return contract.InspectResult{Edited: d.edited, Restored: d.restored}, nil
}

// FindCheckpoint folds the lines: the newest checkpoint of that name.
func (d *fakeDirectory) FindCheckpoint(_ context.Context, in contract.CheckpointInput) (run.Checkpoint, error) {
	var s run.State
	var found *run.Checkpoint
	for _, line := range d.lines {
		e, err := run.ParseEvent([]byte(line))
		if err != nil {
			return run.Checkpoint{}, err
		}
		s = run.Apply(s, e)
		if c, ok := run.NewCheckpoint(s, ""); ok && c.ID == in.ID {
			found = &c
		}
	}
	if found == nil {
		return run.Checkpoint{}, temporal.NewNonRetryableApplicationError("there is no checkpoint "+in.ID,
			contract.ErrBadInput, nil)
	}
	return *found, nil
}

func (d *fakeDirectory) tail() run.Tail {
	return run.Tail{Seq: int64(len(d.lines)), Chain: run.Chain("").Over(d.lines)}
}

func (d *fakeDirectory) Open(_ context.Context, in contract.OpenInput) (contract.OpenResult, error) {
	d.note("Open")
	d.opens = append(d.opens, in)
	if d.opening != nil {
		d.opening()
	}
	if d.taken == nil && in.Tail.Seq > 0 && in.Tail != d.tail() {
		return contract.OpenResult{},
			temporal.NewNonRetryableApplicationError("it does not end there", contract.ErrNewer, nil)
	}
	return contract.OpenResult{Host: "here", Task: strings.ReplaceAll(in.Task, "open-sesame", "<hidden>")}, d.taken
}

// NextEpoch continues from the lines.
func (d *fakeDirectory) NextEpoch(_ context.Context, in contract.NextEpochInput) (contract.NextEpochResult, error) {
	d.note("NextEpoch")
	if d.cluster != "" {
		return contract.NextEpochResult{Elsewhere: d.cluster}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	first, err := run.ParseEvent([]byte(d.lines[0]))
	if err != nil {
		return contract.NextEpochResult{}, err
	}
	s := d.folded()
	d.epoch = max(d.epoch, s.Epoch) + 1
	return contract.NextEpochResult{Epoch: d.epoch, State: s, Tail: d.tail(), Start: run.PayloadOf[run.RunStart](first),
		Host: "here", Head: d.head, Ended: rundir.HasEnded(d.lines)}, nil
}

func (d *fakeDirectory) Project(_ context.Context, in contract.ProjectInput) (contract.ProjectResult, error) {
	if len(in.Lines) == 0 {
		return d.project(in), nil
	}
	d.mu.Lock()
	d.batches = append(d.batches, in)
	hook := d.before[len(d.batches)]
	d.mu.Unlock()
	if hook != nil {
		hook()
	}
	if d.noRoom() {
		d.note("Project: disk full")
		return contract.ProjectResult{}, errFull
	}
	res := d.project(in)
	d.mu.Lock()
	res.Recovered, d.troubles = d.troubles, nil
	d.mu.Unlock()
	d.note(fmt.Sprintf("Project %d-%d %s", in.First, in.First+int64(len(in.Lines))-1, res.Outcome))
	if res.Outcome == "written" {
		d.runHooks(in.Lines)
	}
	return res, nil
}

var errFull = temporal.NewNonRetryableApplicationError("no space left on device", contract.ErrDiskFull, nil)

func (d *fakeDirectory) noRoom() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full--
	return d.full >= 0
}

// resumedOrEnded reports whether a batch is one for which the whole journal is verified.
func resumedOrEnded(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		return strings.Contains(l, string(run.KindRunEnd)) || strings.Contains(l, string(run.KindRunResumed))
	})
}

func (d *fakeDirectory) project(in contract.ProjectInput) contract.ProjectResult {
	d.mu.Lock()
	defer d.mu.Unlock()
	tail := d.tail()
	approved := func(s run.State) bool { return s.Reason == run.ReasonReviewApproved && !rundir.HasEnded(d.lines) }
	if s := d.folded(); s.Status == run.Done && !approved(s) && !d.holds(in) {
		return contract.ProjectResult{Outcome: "newer", Tail: tail}
	}
	if len(d.damage) > 0 && !in.Verified && resumedOrEnded(in.Lines) {
		return contract.ProjectResult{Outcome: "damaged", Tail: tail, Damage: d.damage}
	}
	switch {
	case in.Epoch < d.epoch:
		return contract.ProjectResult{Outcome: "newer", Tail: tail}
	case in.First > tail.Seq+1:
		return contract.ProjectResult{Outcome: "behind", Tail: tail}
	case run.Chain("").Over(d.lines[:in.First-1]) != in.Prev:
		return contract.ProjectResult{Outcome: "newer", Tail: tail}
	}
	have := d.lines[in.First-1:]
	if len(have) > len(in.Lines) || !slices.Equal(have, in.Lines[:len(have)]) {
		return contract.ProjectResult{Outcome: "newer", Tail: tail}
	}
	d.lines = append(d.lines, in.Lines[len(have):]...)
	d.written = slices.Clone(d.lines)
	return contract.ProjectResult{Outcome: "written", Tail: d.tail()}
}

// holds reports whether a batch reaches the end of the lines alone.
func (d *fakeDirectory) holds(in contract.ProjectInput) bool {
	n := len(d.lines) - int(in.First) + 1
	if n < 0 || n > len(in.Lines) ||
		n == 0 && slices.ContainsFunc(in.Lines,
			func(l string) bool { return !strings.Contains(l, string(run.KindDecisionRefused)) }) {
		return false
	}
	return run.Chain("").Over(d.lines[:in.First-1]) == in.Prev && slices.Equal(d.lines[in.First-1:], in.Lines[:n])
}

// folded is what the lines fold into, if they can be read.
func (d *fakeDirectory) folded() (s run.State) {
	for _, line := range d.lines {
		if e, err := run.ParseEvent([]byte(line)); err == nil {
			s = run.Apply(s, e)
		}
	}
	return s
}

// current refuses work for an execution that has not written all events.
func (d *fakeDirectory) current(at contract.Target) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int64(len(d.lines)) <= at.Seq {
		return nil
	}
	return temporal.NewNonRetryableApplicationError("it has later events", contract.ErrNewer, nil)
}

// add adds an event of another execution.
func (d *fakeDirectory) add(t *testing.T, kind run.Kind, payload any) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	raw, err := run.Payload(payload)
	require.NoError(t, err)
	s := d.folded()
	line, err := run.Event{Seq: s.Seq + 1, TS: s.TS, Kind: kind, Phase: &s.Phase, Payload: raw}.Line()
	require.NoError(t, err)
	d.lines = append(d.lines, line)
}

// become replaces the lines of the directory.
func (d *fakeDirectory) become(lines []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = slices.Clone(lines)
}

// runHooks calls the hooks of the kinds that were written.
func (d *fakeDirectory) runHooks(lines []string) {
	for _, line := range lines {
		e, err := run.ParseEvent([]byte(line))
		if err != nil {
			panic(err)
		}
		d.mu.Lock()
		hook := d.on[e.Kind]
		delete(d.on, e.Kind)
		d.mu.Unlock()
		if hook != nil {
			hook()
		}
	}
}

func (d *fakeDirectory) Rebuild(context.Context, contract.RebuildInput) (contract.RebuildResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("Rebuild")
	d.lines = slices.Clone(d.written)
	return contract.RebuildResult{Tail: d.tail(), Damage: d.missing}, nil
}

func (d *fakeDirectory) Seal(_ context.Context,
	in contract.ArchiveSegmentInput) (contract.ArchiveSegmentResult, error) {
	d.mu.Lock()
	if d.shorter {
		d.shorter = false
		d.mu.Unlock()
		return contract.ArchiveSegmentResult{},
			temporal.NewNonRetryableApplicationError("the directory is gone", contract.ErrDirectoryLost, nil)
	}
	d.seals = append(d.seals, in)
	hook := d.sealing
	d.sealing = nil
	d.mu.Unlock()
	if hook != nil {
		hook()
	}
	d.note(fmt.Sprintf("Seal %d-%d", in.First, in.Tail.Seq))
	if len(d.unkept) > 0 {
		return contract.ArchiveSegmentResult{Head: in.Head, Last: in.First - 1, Damage: d.unkept}, nil
	}
	d.head = fmt.Sprintf("segment-%d", in.Tail.Seq)
	return contract.ArchiveSegmentResult{Head: d.head, Last: in.Tail.Seq}, nil
}

// when has f called once, after an event of a kind was written.
func (d *fakeDirectory) when(kind run.Kind, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on == nil {
		d.on = map[run.Kind]func(){}
	}
	d.on[kind] = f
}

// lose is a directory whose events are gone.
func (d *fakeDirectory) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = nil
}

// intrude is a line that this execution did not write.
func (d *fakeDirectory) intrude(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// events reads the lines, which must be numbered without gaps, in times that never go back.
func (d *fakeDirectory) events(t *testing.T) []run.Event {
	t.Helper()
	var out []run.Event
	ts := ""
	for i, line := range d.lines {
		e, err := run.ParseEvent([]byte(line))
		require.NoError(t, err)
		require.EqualValues(t, i+1, e.Seq)
		require.GreaterOrEqual(t, e.TS, ts)
		ts = e.TS
		out = append(out, e)
	}
	return out
}

// state is what the events on disk fold into.
func (d *fakeDirectory) state(t *testing.T) run.State {
	t.Helper()
	var s run.State
	for _, e := range d.events(t) {
		s = run.Apply(s, e)
		require.Empty(t, s.InvalidTransition, "event %d (%s)", e.Seq, e.Kind)
	}
	return s
}

// strange is the kind of an event of another program.
const strange run.Kind = "note"

// namesPhases wants each event to name the phase that is open, and the work of a stage within a phase of it. Otherwise
// it would be shown with another stage.
func (d *fakeDirectory) namesPhases(t *testing.T) {
	t.Helper()
	var s run.State
	for _, line := range d.lines {
		e, err := run.ParseEvent([]byte(line))
		if err != nil {
			continue
		}
		before := s
		s = run.Apply(s, e)
		named := ""
		if e.Phase != nil {
			named = *e.Phase
		}
		switch e.Kind {
		case run.KindRunStart, run.KindRunReplaying, run.KindRunEnd, run.KindPhaseStart, run.KindRunReverted, strange:
			continue // they are about the run, or begin a phase
		}
		group, _, _ := strings.Cut(string(e.Kind), ".")
		if len(s.Projects) > 0 || named == "delivery" && slices.Contains([]string{"delivery", "effect", "question"}, group) {
			continue
		}
		require.Equal(t, before.Phase, named, "event %d (%s)", e.Seq, e.Kind)
		if e.Kind == run.KindPassStart {
			require.True(t, before.PhaseOpen, "event %d (%s)", e.Seq, e.Kind)
		}
	}
}
