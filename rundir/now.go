package rundir

import (
	"errors"
	"fmt"
	"os"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Now is a run as its directory says it at this moment: meta.json, and the lines that it has not seen yet.
type Now struct {
	Meta     Meta // zero: missing or unreadable
	State    run.State
	Snapshot run.Snapshot
	Tail     run.Tail
	Lag      int64 // lines behind meta.json; 0 where it has seen others
	Why      error // what is wrong with meta.json, or with the stream that it has seen; nil: nothing

	Damage []run.JournalDamage // that the journal records, and whether it has been repaired since
}

// Now reads where the run stands. It costs what the lines behind meta.json cost; without a readable meta.json it folds the whole stream.
func (d Dir) Now() (Now, error) {
	if d.Foreign() {
		return d.nowForeign()
	}
	var n Now
	meta, unread := d.Meta()
	if unread == nil {
		n.Meta = meta
	} else if !missing(unread) {
		return n, unread
	}
	ends, err := d.lineEnds(n.Meta.Events.Size)
	if err != nil {
		return n, err
	}
	seen := n.Meta.Events
	if !ends { // the stream is not the one that meta.json speaks of
		n.Meta = Meta{}
	}
	rest, err := d.readStream(n.Meta.Events.Size)
	if err != nil {
		return n, err
	}
	fold := run.NewFold(n.Meta.State, n.Meta.History)
	n.Tail = run.Tail{Seq: n.Meta.Events.Seq, Chain: n.Meta.Events.Chain}
	for _, line := range rest.lines {
		e := lenient(line)
		e.Seq = n.Tail.Seq + 1
		n.Tail = run.Tail{Seq: e.Seq, Chain: n.Tail.Chain.Then(line)}
		fold.Apply(e)
	}
	if n.Tail.Seq > 0 {
		n.Why = unread
	}
	n.State, n.Snapshot, n.Lag = fold.State(), fold.Snapshot(), n.Tail.Seq-n.Meta.Events.Seq
	if !ends {
		n.Lag = 0
		n.Why = fmt.Errorf("%s is not the file that %s has seen (%d events, %d bytes): starter check lists what is wrong", d.Path(EventsFile), MetaFile, seen.Seq, seen.Size)
	}
	n.Damage, err = d.Damage(n.State)
	return n, err
}

// First gives the event that opened the run.
func (d Dir) First() (run.RunStart, error) {
	var p run.RunStart
	events, _, err := d.Events()
	if err != nil {
		return p, err
	}
	for _, e := range events {
		if e.Kind == run.KindRunStart {
			e.Decode(&p)
			return p, nil
		}
	}
	return p, errors.New(d.Path(EventsFile) + " has no " + string(run.KindRunStart))
}

// Plan reads the plan that the run was started with.
func (d Dir) Plan() (pipeline.Plan, error) {
	var p pipeline.Plan
	err := d.readJSON(PlanFile, &p)
	if err == nil && p.Version != pipeline.PlanVersion {
		err = fmt.Errorf("%s has version %d, and this program reads version %d", d.Path(PlanFile), p.Version, pipeline.PlanVersion)
	}
	return p, err
}

// Foreign says that another program wrote the directory, in the format that ours is compatible with: events and meta.json, and no run.json.
func (d Dir) Foreign() bool {
	there := func(name string) bool { _, err := os.Stat(d.Path(name)); return err == nil }
	return !there(ClaimFile) && (there(EventsFile) || there(MetaFile))
}
