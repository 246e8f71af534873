package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// RepairOptions is what a repair is told from outside.
type RepairOptions struct {
	Apply    bool         // write; otherwise say what would be written
	Standing run.Standing // as for a check
	Blobs    Blobs        // the store that run.json names: only for making derived files again
	Now      time.Time
	By       string // who repairs, for the audit file

	ReadTree func(manifest []byte) error // as for a check
}

// RepairResult says what a repair changes, or has changed.
type RepairResult struct {
	IssueCodes            []Code   `json:"issue_codes"` // what the check has found, each code once
	Changes               []Change `json:"changes"`
	Applied               bool     `json:"applied"`
	NeedsOperatorDecision bool     `json:"needs_operator_decision"` // nothing is changed before somebody has decided
	RepairHint            string   `json:"repair_hint"`             // why nothing, or not all, is repaired, and what helps; empty: nothing to say
	BackupPath            string   `json:"backup_path"`             // relative to the directory; empty: nothing was replaced
	AuditPath             string   `json:"audit_path"`
}

// Change is one key of meta.json, or one file, before and after. A key that is not there is null.
type Change struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Code   Code            `json:"issue_code"`
}

// LiveError says that a run is being worked on, so that nothing may be repaired. Nothing was written.
type LiveError struct {
	Dir string
	Why string
}

func (e *LiveError) Error() string {
	return fmt.Sprintf("%s is live (%s): nothing was repaired. Its next event writes what is behind again; to repair more, let it end first", e.Dir, e.Why)
}

// Repair brings meta.json, and in Passbook's own directories the other derived files, back in line with the events. Only shapes that have one
// right answer are repaired, and a status that the events have settled is never contradicted. It changes the fewest keys and keeps those that it does
// not know. Lines of events.jsonl that are not what was written are written again where the segments in the store have them, and the whole then gives
// the chain in meta.json; otherwise events are never written.
//
// On return with Applied the changes are on disk, in this order: a copy of each file that is replaced, under run_state_repairs/; the new file,
// whole; and an audit file. A repair that is cut off is done again from the beginning by the next one. One that finds nothing to do writes
// nothing at all. A run that is open, or whose directory is being written to, is refused with [LiveError].
func (d Dir) Repair(ctx context.Context, o RepairOptions) (RepairResult, error) {
	x, err := d.examine(ctx, CheckOptions{Standing: o.Standing, ReadTree: o.ReadTree}, false)
	if err != nil {
		return RepairResult{}, err
	}
	if err := x.readWhole(ctx, o.Blobs); err != nil {
		return RepairResult{}, err
	}
	p := x.plan(o.Now)
	open := o.Standing.Liveness == run.LiveOpen
	live := &LiveError{Dir: d.Root, Why: "its workflow is open"}
	switch {
	case len(p.changes) > 0 && open && o.Apply:
		return RepairResult{}, live
	case len(p.changes) > 0 && open:
		p.hint = live.Error()
	}
	if !o.Apply || len(p.changes) == 0 {
		return p.result(), nil
	}
	lock, err := d.lockRepair(x.own, o)
	if err != nil {
		return RepairResult{}, err
	}
	defer lock.Unlock()
	if x, err = d.examine(ctx, CheckOptions{Standing: o.Standing, ReadTree: o.ReadTree}, true); err != nil { // as it is now that no other process writes
		return RepairResult{}, err
	}
	return x.repair(ctx, o)
}

// lockRepair takes the directory's lock, at once or not at all. Directories of other programs have none; there it keeps out other repairs.
func (d Dir) lockRepair(own bool, o RepairOptions) (*durable.Lock, error) {
	path := d.Path(LockFile)
	if !own {
		path = d.Path(repairsDir + "/repair.lock")
		if err := d.Disk.Mkdir(d.Path(repairsDir), dirPerm); err != nil {
			return nil, err
		}
	}
	lock, err := durable.TryLock(path, durable.Self("repair-state", o.Now))
	var held *durable.ErrHeld
	if errors.As(err, &held) {
		return nil, &LiveError{Dir: d.Root, Why: held.Owner.String() + " is writing"}
	}
	return lock, err
}

// repairPlan is what a repair will do.
type repairPlan struct {
	codes    []Code
	changes  []Change
	edit     bool // keys of meta.json
	catchUp  bool // let the projector go on from meta.json
	anew     bool // let the projector make everything derived again
	lines    bool // write events.jsonl as it was
	operator bool
	hint     string
}

func (p repairPlan) result() RepairResult {
	return RepairResult{
		IssueCodes: p.codes, Changes: append([]Change{}, p.changes...), NeedsOperatorDecision: p.operator, RepairHint: p.hint,
	}
}

// plan decides what is to be done about what was found, without doing it.
func (x *examined) plan(now time.Time) repairPlan {
	p := repairPlan{codes: []Code{}}
	x.note(&p)
	if why := x.onlyOperator(); why != "" {
		p.operator, p.hint = true, why
		return p
	}
	if x.own {
		x.planOwn(&p)
	} else {
		x.planForeign(&p, now)
	}
	if p.hint == "" && len(p.changes) == 0 && !x.report().OK {
		p.hint = "nothing of this has one right answer: starter check says what helps"
	}
	return p
}

// note takes each code that was found into the plan, once.
func (x *examined) note(p *repairPlan) {
	for _, i := range sorted(x.found) {
		if !slices.Contains(p.codes, i.Code) {
			p.codes = append(p.codes, i.Code)
		}
	}
}

// onlyOperator says why nothing may be changed before somebody decides; empty: nothing stands in the way.
func (x *examined) onlyOperator() string {
	id, there := x.meta.handoff()
	undecided := there && x.answer(id) == nil
	q, open := x.asks()
	switch f := x.folded(); {
	case x.has(InterruptedWithActiveHandoff) && open:
		return fmt.Sprintf("the interrupted run waits for a decision on %s: decide it (starter decide %s), which continues the run", q.ID, shell.Quote(x.dir.Root))
	case x.has(InterruptedWithActiveHandoff) && undecided:
		return fmt.Sprintf("the interrupted run waits for a decision on hand-off %s: decide it, then resume", id)
	case x.has(HaltDecisionWithoutHaltedMeta) && x.endedOtherwise():
		return fmt.Sprintf("a halt was decided, but the events settle the run as %s: that is not contradicted", f)
	case x.has(HaltDecisionWithoutHaltedMeta) && x.own && f != run.Halted:
		return "a halt was decided, but the events do not say so: give the decision to the run"
	case !x.own && x.has(TerminalWithStaleHandoff) && x.openInEvents() != "":
		return fmt.Sprintf("the events leave hand-off %s open, and do not say that the run ended: nothing that is undecided is dropped", x.openInEvents())
	case x.has(CheckpointPendingWithoutActiveHandoff):
		return crossFile + " waits for a hand-off that is not there: decide what it is"
	case x.has(CrossTerminalWithStaleHandoff) && x.cross.pending:
		return fmt.Sprintf("the run is over, and %s still waits for hand-off %s: decide it", crossFile, id)
	case x.has(CrossTerminalWithStaleHandoff) && x.cross.err != nil:
		return fmt.Sprintf("the run is over, and whether %s still waits for hand-off %s cannot be read", crossFile, id)
	}
	return ""
}

// change notes one key of meta.json; a nil after drops it.
func (p *repairPlan) change(o *object, field string, after json.RawMessage, c Code) {
	p.edit = true
	p.changes = append(p.changes, Change{Field: field, Before: flat(o.values[field]), After: flat(after), Code: c})
}

// planForeign changes the few keys that the known shapes need.
func (x *examined) planForeign(p *repairPlan, now time.Time) {
	o, state := x.meta.object, x.stream.state()
	switch {
	case x.has(HaltDecisionWithoutHaltedMeta):
		const c = HaltDecisionWithoutHaltedMeta
		at := x.lastHalt().DecidedAt
		if at == "" {
			at = run.Time(now)
		}
		p.change(o, "status", quote(string(run.Halted)), c)
		p.change(o, "halt_reason", quote("phase_handoff_halt"), c)
		p.change(o, "halted_at", quote(at), c)
		x.dropHandoff(p, c)
	case x.has(TerminalEventWithoutTerminalMeta):
		p.change(o, "status", quote(string(state.Status)), TerminalEventWithoutTerminalMeta)
		if state.Status.Settled() || x.cross != nil {
			x.dropHandoff(p, TerminalEventWithoutTerminalMeta)
		}
	case x.has(InterruptedEventWithoutInterruptedMeta):
		p.change(o, "status", quote(string(run.Interrupted)), InterruptedEventWithoutInterruptedMeta)
		p.change(o, "interrupted_at", quote(state.FinishedAt), InterruptedEventWithoutInterruptedMeta)
	case x.has(CrossTerminalWithStaleHandoff):
		x.dropHandoff(p, CrossTerminalWithStaleHandoff)
	case x.has(TerminalWithStaleHandoff):
		x.dropHandoff(p, TerminalWithStaleHandoff)
	}
	if x.has(MetaMissing, MetaUnreadable) {
		p.hint = MetaFile + " is another program's: it holds more than the events do, and cannot be made again from them"
	}
}

// dropHandoff drops a hand-off that is over. One that the checkpoint of a run across projects still waits for stays.
func (x *examined) dropHandoff(p *repairPlan, c Code) {
	if _, there := x.meta.handoff(); there && (x.cross == nil || !x.cross.pending) {
		p.change(x.meta.object, "phase_handoff", nil, c)
	}
}

// planOwn changes the keys that are not what the events give, and lets the projector do the rest.
func (x *examined) planOwn(p *repairPlan) {
	damaged := x.has(ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate)
	if damaged && x.whole != nil {
		x.planLines(p)
		return
	}
	if damaged {
		p.hint = EventsFile + " itself was changed, and nothing is derived from it before that is cleared: " + hintRebuild
		return
	}
	why := x.keyCode()
	if x.meta.good() && why != "" {
		want, err := objectOf(x.stream.want)
		if err != nil {
			p.hint = err.Error()
			return
		}
		for _, k := range x.strayKeys() {
			p.change(x.meta.object, k, want.values[k], why)
		}
	}
	x.planFiles(p)
}

// keyCode is the finding that the keys of meta.json are changed for; empty: none.
func (x *examined) keyCode() Code {
	for _, i := range sorted(slices.Clone(x.found)) {
		switch i.Code {
		case HaltDecisionWithoutHaltedMeta, TerminalEventWithoutTerminalMeta, TerminalMetaWithoutTerminalEvent, InterruptedEventWithoutInterruptedMeta,
			StatusMismatch, AwaitingWithoutActiveHandoff, HandoffEventWithoutMetaHandoff, MetaHandoffWithoutEvent, TerminalWithStaleHandoff, DerivedFileBehind:
			return i.Code
		}
	}
	return ""
}

// planFiles lets the projector go on, or begin again.
func (x *examined) planFiles(p *repairPlan) {
	note := func(field, before string, c Code) {
		p.changes = append(p.changes, Change{Field: field, Before: quote(before), After: quote("as the events give it"), Code: c})
	}
	for _, i := range sorted(slices.Clone(x.found)) {
		switch {
		case i.file == "" || i.Code == ArtifactHashMismatch && !x.artifactIsMissing() || !x.restores(i):
			continue
		case i.Code == StreamTornTail || i.Code == DerivedFileBehind && i.file == MetaFile:
			p.catchUp = true
		default:
			p.anew = true
		}
		note(i.file, i.Message, i.Code)
	}
	if p.hint == "" {
		p.hint = x.lostHint()
	}
}

func quote(s string) json.RawMessage {
	raw, err := marshal(s)
	if err != nil {
		return nil // a string can be encoded
	}
	return raw[:len(raw)-1]
}
