package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Now is the current state of a run: meta.json and the events after it.
type Now struct {
	Meta     Meta // zero: missing or unreadable
	State    run.State
	Snapshot run.Snapshot
	Tail     run.Tail
	Lag      int64 // lines after those in meta.json; 0 if it has seen others
	Why      error // what is wrong with meta.json, or with the stream that it has seen; nil: nothing

	Damage []run.JournalDamage // that the journal records, and whether it has been repaired since
}

// Now reads the current state of the run: meta.json and the lines after it. Without a readable meta.json it folds the
// whole stream.
func (d Dir) Now() (Now, error) {
	if d.Foreign() {
		return d.nowForeign()
	}
	var n Now
	meta, unread := d.Meta()
	if unread == nil {
		n.Meta = meta
	} else if !layout.Missing(unread) {
		return n, unread
	}
	ends, err := journal.LineEnds(d, layout.EventsFile, n.Meta.Events.Size)
	if err != nil {
		return n, err
	}
	seen := n.Meta.Events
	if !ends { // the stream is not the one that meta.json speaks of
		n.Meta = Meta{}
	}
	fold := run.NewFold(n.Meta.State, n.Meta.History)
	n.Tail = run.Tail{Seq: n.Meta.Events.Seq, Chain: n.Meta.Events.Chain}
	for line, err := range d.Lines(n.Meta.Events.Size) {
		if err != nil {
			return n, err
		}
		n.Tail = run.Tail{Seq: n.Tail.Seq + 1, Chain: line.Chain(n.Tail.Chain)}
		fold.Apply(line.Event.At(n.Tail.Seq))
	}
	if n.Tail.Seq > 0 && !(errors.Is(unread, fs.ErrNotExist) && d.saving()) {
		n.Why = unread
	}
	n.State, n.Snapshot, n.Lag = fold.State(), fold.Snapshot(), n.Tail.Seq-n.Meta.Events.Seq
	if !ends {
		n.Lag = 0
		n.Why = fmt.Errorf("%s is not the file that %s has seen (%d events, %d bytes): starter check lists what is "+
			"wrong", d.Path(layout.EventsFile), layout.MetaFile, seen.Seq, seen.Size)
	}
	n.Damage, err = d.Damage(n.State)
	return n, err
}

// saving reports whether the missing meta.json of a run is being written, or was meanwhile: the events precede it.
func (d Dir) saving() bool {
	held, err := d.Locked()
	return err == nil && held || d.Has(layout.MetaFile)
}

// First returns the event that started the run.
func (d Dir) First() (run.RunStart, error) {
	var p run.RunStart
	for line, err := range d.Lines(0) {
		if err != nil {
			return p, err
		}
		if line.Event.Kind == run.KindRunStart {
			line.Event.Decode(&p)
			return p, nil
		}
	}
	return p, errors.New(d.Path(layout.EventsFile) + " has no " + string(run.KindRunStart))
}

// Plan reads the plan in force: that of the start, or of the last amendment.
func (d Dir) Plan() (pipeline.Plan, error) {
	var p pipeline.Plan
	name, err := d.InForce(layout.PlanFile)
	if err != nil {
		return p, err
	}
	err = d.ReadJSON(name, &p)
	if err == nil && p.Version != pipeline.PlanVersion {
		err = fmt.Errorf("%s has version %d, and this program reads version %d", d.Path(name), p.Version,
			pipeline.PlanVersion)
	}
	return p, err
}

// InForce returns the place of a file that the run was given, such as its plan: at the start, or with the last
// amendment.
func (d Dir) InForce(name string) (string, error) {
	m, err := d.Meta()
	if layout.Missing(err) || m.State.Plan == nil {
		return name, nil // the directory is being made, or is to be rebuilt
	}
	return layout.InForce(m.State.Plan.Seq, name), err
}

// Foreign reports whether another program wrote the directory in the compatible format: events.jsonl or meta.json, and
// no run.json.
func (d Dir) Foreign() bool {
	there := func(name string) bool { _, err := d.Stat(name); return err == nil }
	return !there(layout.ClaimFile) && (there(layout.EventsFile) || there(layout.MetaFile))
}

// Damage returns the damage that the journal records and whether it has been repaired since. It reads events.jsonl only
// if there is damage.
func (d Dir) Damage(s run.State) ([]run.JournalDamage, error) {
	if len(s.Damage) == 0 {
		return nil, nil
	}
	all, err := journal.ReadStream(d, layout.EventsFile, 0)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(s.Damage)
	for i, r := range out {
		if r.File == layout.EventsFile && r.Line > 0 && journal.LineDigest(all.Lines, int(r.Line)-1) == r.Expected {
			out[i].Repaired = true
		}
	}
	return out, nil
}

// Blank returns the state before the first event.
func (d Dir) Blank() run.State {
	if d.Foreign() {
		return run.ForeignState()
	}
	return run.State{}
}

// Fold starts a fold of the stream of Passbook or of another program.
func (d Dir) Fold() *run.Fold { return run.NewFold(d.Blank(), run.History{}) }

// Recorded returns the status that the directory of another program records. It is the folded status with two
// exceptions, because these programs write decisions beside the stream and refuse to resume a run after they have
// recorded its start: an end in meta.json that an event or a decision to halt caused stays in force, and a run whose
// hand-off was decided is running.
func Recorded(s run.State, meta run.Status, answers []Answer) run.Status {
	h, open := s.Open(run.QuestionHandoff)
	decided := func(halts bool) bool {
		return slices.ContainsFunc(answers, func(a Answer) bool {
			return a.Halts() == halts &&
				(halts || open && a.HandoffID == h.ID)
		})
	}
	switch {
	case s.Status == run.Done:
	case Terminal(meta) && s.LastEnd() == meta, meta == run.Halted && decided(true),
		meta == run.Running && s.Status == run.AwaitingPhaseHandoff && decided(false):
		return meta
	}
	return s.Status
}

// IsChild reports whether the directory is that of a project in a cross-project run. Such a directory has no stream:
// its events are in that of its parent.
func (d Dir) IsChild() (bool, error) {
	if !d.Foreign() || d.Has(layout.EventsFile) {
		return false, nil
	}
	root, err := filepath.Abs(d.Root)
	if err != nil {
		return false, err
	}
	raw, err := At(filepath.Dir(root)).ReadRaw(layout.MetaFile)
	if err != nil || raw == nil {
		return false, err
	}
	above, err := object.ParseObject(raw)
	if err != nil {
		return false, nil //nolint:nilerr // what is above is not a run
	}
	_, declared := object.ObjectIn(above, "projects").Values[filepath.Base(root)]
	return declared, nil
}

// nowForeign reads the current state of the run of another program. Of its meta.json only the status counts, with the
// decisions beside it.
func (d Dir) nowForeign() (Now, error) {
	var n Now
	fold := d.Fold()
	for line, err := range d.Lines(0) {
		if err != nil {
			return n, err
		}
		if n.Tail.Seq = line.Number; line.Err == nil {
			fold.Apply(line.Event)
		}
	}
	n.State, n.Snapshot = fold.State(), fold.Snapshot()
	raw, err := d.ReadRaw(layout.MetaFile)
	if err != nil || raw == nil {
		return n, err
	}
	meta, err := object.ParseObject(raw)
	if err != nil {
		n.Why = fmt.Errorf("%s is %w: %v", d.Path(layout.MetaFile), layout.ErrDamaged, err)
		return n, nil
	}
	if child, err := d.IsChild(); child || err != nil {
		n.State.Status = run.Status(meta.Text("status"))
		return n, err
	}
	answers, err := d.ReadAnswers()
	n.State.Status = Recorded(n.State, run.Status(meta.Text("status")), answers)
	return n, err
}
