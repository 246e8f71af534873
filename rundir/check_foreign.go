package rundir

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Blank is the state that the fold of the stream begins with.
func (d Dir) Blank() run.State {
	if d.Foreign() {
		return run.ForeignState()
	}
	return run.State{}
}

// Fold begins the fold of the stream, of Passbook's own or of another program's.
func (d Dir) Fold() *run.Fold { return run.NewFold(d.Blank(), run.History{}) }

// recorded is the status that a directory of another program records. That is what its events come to, with two exceptions, for such programs
// write decisions beside the stream, and refuse to resume a run after they have written that it starts:
// an end in meta.json that the events have said, or that a decision to halt has made, holds whatever came after it; and a run whose hand-off was decided
// is running.
func recorded(s run.State, meta run.Status, answers []answer) run.Status {
	decided := func(halts bool) bool {
		return slices.ContainsFunc(answers, func(a answer) bool {
			return a.halts() == halts && (halts || s.Handoff != nil && a.HandoffID == s.Handoff.ID)
		})
	}
	switch {
	case s.Status == run.Done:
	case terminal(meta) && s.LastEnd() == meta, meta == run.Halted && decided(true),
		meta == run.Running && s.Status == run.AwaitingPhaseHandoff && decided(false):
		return meta
	}
	return s.Status
}

// recorded is the status that the directory records: the events alone say it, but in the directory of another program.
func (x *examined) recorded() run.Status {
	switch {
	case x.own || !x.meta.good():
		return x.folded()
	case x.child:
		return x.meta.status()
	}
	return recorded(x.stream.state(), x.meta.status(), x.answers)
}

// isChild says that a directory is that of a project in a run across projects: it has no stream, for its events are in that of its parent.
func (d Dir) isChild() (bool, error) {
	if !d.Foreign() || d.there(EventsFile) {
		return false, nil
	}
	root, err := filepath.Abs(d.Root)
	if err != nil {
		return false, err
	}
	raw, err := At(filepath.Dir(root)).metaBytes()
	if err != nil || raw == nil {
		return false, err
	}
	above, err := parseObject(raw)
	if err != nil {
		return false, nil //nolint:nilerr // what is above is no run
	}
	_, declared := objectIn(above, "projects").values[filepath.Base(root)]
	return declared, nil
}

// judgeOrder names events of another program that stand in an unusual order. They are folded all the same.
func (x *examined) judgeOrder() {
	if x.stream.fold == nil {
		return
	}
	const most = 5
	u := x.stream.fold.Unusual()
	if u.Count == 0 {
		return
	}
	var said []string
	for _, e := range u.First[:min(most, len(u.First))] {
		said = append(said, fmt.Sprintf("event %d: %s", e.Seq, e.Message))
	}
	if more := u.Count - int64(len(said)); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	x.find(StreamOrderUnusual, "the events stand in an unusual order: "+strings.Join(said, "; "))
}

// nowForeign reads where the run of another program stands. Its meta.json is not ours: only the status and the decisions beside it count.
func (d Dir) nowForeign() (Now, error) {
	var n Now
	s, err := d.readStream(0)
	if err != nil {
		return n, err
	}
	fold := d.Fold()
	for _, line := range s.lines {
		n.Tail.Seq++
		if e, err := run.ParseEvent([]byte(line)); err == nil {
			fold.Apply(e)
		}
	}
	n.State, n.Snapshot = fold.State(), fold.Snapshot()
	raw, err := d.metaBytes()
	if err != nil || raw == nil {
		return n, err
	}
	meta, err := parseObject(raw)
	if err != nil {
		n.Why = fmt.Errorf("%s is %w: %v", d.Path(MetaFile), ErrDamaged, err)
		return n, nil
	}
	if child, err := d.isChild(); child || err != nil {
		n.State.Status = run.Status(meta.text("status"))
		return n, err
	}
	answers, err := d.readAnswers()
	n.State.Status = recorded(n.State, run.Status(meta.text("status")), answers)
	return n, err
}
