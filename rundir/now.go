package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
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
	var n Now
	meta, unread := d.Meta()
	if unread == nil {
		n.Meta = meta
	} else if !disk.Missing(unread) {
		return n, unread
	}
	ends, err := LineEnds(d, EventsFile, n.Meta.Events.Size)
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
			"wrong", d.Path(EventsFile), MetaFile, seen.Seq, seen.Size)
	}
	n.Damage, err = d.Damage(n.State)
	return n, err
}

// saving reports whether the missing meta.json of a run is being written, or was meanwhile: the events precede it.
func (d Dir) saving() bool {
	held, err := d.Locked()
	return err == nil && held || d.Has(MetaFile)
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
	return p, errors.New(d.Path(EventsFile) + " has no " + string(run.KindRunStart))
}

// Plan reads the plan in force: that of the start, or of the last amendment.
func (d Dir) Plan() (pipeline.Plan, error) {
	var p pipeline.Plan
	name, err := d.InForce(PlanFile)
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
	if disk.Missing(err) || m.State.Plan == nil {
		return name, nil // the directory is being made, or is to be rebuilt
	}
	return InForceFile(m.State.Plan.Seq, name), err
}

// Damage returns the damage that the journal records and whether it has been repaired since. It reads events.jsonl only
// if there is damage.
func (d Dir) Damage(s run.State) ([]run.JournalDamage, error) {
	if len(s.Damage) == 0 {
		return nil, nil
	}
	all, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(s.Damage)
	for i, r := range out {
		if r.File == EventsFile && r.Line > 0 && LineDigest(all.Lines, int(r.Line)-1) == r.Expected {
			out[i].Repaired = true
		}
	}
	return out, nil
}
