package fsck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// RepairOptions are the inputs of a repair.
type RepairOptions struct {
	Apply           bool                // write; otherwise only report the changes
	EffectiveStatus run.EffectiveStatus // as for a check
	Blobs           projector.Blobs     // the store in run.json, to rebuild derived files
	Now             time.Time
	By              string // operator, for the audit file

	ReadTree func(manifest []byte) error // as for a check
}

// RepairResult reports what a repair changes, or has changed.
type RepairResult struct {
	IssueCodes            []Code   `json:"issue_codes"` // findings of the check, each code once
	Changes               []Change `json:"changes"`
	Applied               bool     `json:"applied"`
	NeedsOperatorDecision bool     `json:"needs_operator_decision"` // nothing is changed before an operator decides
	// why nothing, or not everything, is repaired, and what to do; may be empty
	RepairHint string `json:"repair_hint"`
	BackupPath string `json:"backup_path"` // relative to the directory; empty: nothing was replaced
	AuditPath  string `json:"audit_path"`
}

// Change is one key of meta.json, or one file, before and after. A missing key is null.
type Change struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Code   Code            `json:"issue_code"`
}

// LiveError reports that a run is in progress, so that nothing may be repaired. Nothing was written.
type LiveError struct {
	Dir string
	Why string
}

func (e *LiveError) Error() string {
	return fmt.Sprintf("%s is live (%s): nothing was repaired. Its next event updates files that lag; for other "+
		"findings, repair it while it is paused or waits, or after it has ended", e.Dir, e.Why)
}

// Repair makes meta.json and the other derived files consistent with the events. It
// repairs only damage with a single correct result, and never contradicts a status that the events have settled. It
// changes as few keys as possible and keeps unknown keys. Damaged lines of events.jsonl are restored if the segments in
// the store have them and the result matches the chain in meta.json; otherwise events are never written.
//
// On return with Applied the changes are on disk, in this order: a copy of each replaced file, under
// run_state_repairs/; the complete new file; and an audit file. The next repair repeats an interrupted one from the
// beginning. A repair that finds nothing to do writes nothing. A run that is at work, or whose directory is being
// written to, is refused with [LiveError]; an open run that is paused or waits makes no call and writes no file.
func Repair(ctx context.Context, d projector.Dir, o RepairOptions) (RepairResult, error) {
	x, err := examine(ctx, d, CheckOptions{EffectiveStatus: o.EffectiveStatus, ReadTree: o.ReadTree}, false)
	if err != nil {
		return RepairResult{}, err
	}
	if err := x.readWhole(ctx, o.Blobs); err != nil {
		return RepairResult{}, err
	}
	p := x.plan()
	live := x.live()
	switch {
	case len(p.changes) > 0 && live != nil && o.Apply:
		return RepairResult{}, live
	case len(p.changes) > 0 && live != nil:
		p.hint = live.Error()
	}
	if !o.Apply || len(p.changes) == 0 {
		return p.result(), nil
	}
	lock, err := lockRepair(d, o)
	if err != nil {
		return RepairResult{}, err
	}
	defer lock.Unlock()
	// read again, now that no other process writes
	if x, err = examine(ctx, d, CheckOptions{EffectiveStatus: o.EffectiveStatus, ReadTree: o.ReadTree}, true); err != nil {
		return RepairResult{}, err
	}
	if live := x.live(); live != nil {
		return RepairResult{}, live
	}
	return x.repair(ctx, o)
}

// live returns why an open run is not repaired now; nil: it is closed, paused, or waits.
func (x *examined) live() error {
	status := x.folded()
	if x.stream.beyond > 0 {
		status = x.stream.further.State.Status
	}
	if x.opts.EffectiveStatus.Liveness != run.LiveOpen || status.Class() == run.OperatorPause {
		return nil
	}
	return &LiveError{Dir: x.dir.Root, Why: "its workflow is open, and it is " + cmp.Or(string(status), "pending")}
}

// lockRepair takes the directory's lock, or fails at once.
func lockRepair(d projector.Dir, o RepairOptions) (*disk.Lock, error) {
	if err := d.Known(); err != nil {
		return nil, err
	}
	lock, err := d.Inside().TryLock(d.Path(layout.LockFile), disk.Self("repair-state", o.Now))
	var held *disk.ErrHeld
	if errors.As(err, &held) {
		return nil, &LiveError{Dir: d.Root, Why: held.Owner.String() + " is writing"}
	}
	return lock, err
}

// repairPlan is the plan of a repair.
type repairPlan struct {
	codes    []Code
	changes  []Change
	edit     bool // keys of meta.json
	catchUp  bool // let the projector continue from meta.json
	anew     bool // let the projector rebuild everything derived
	lines    bool // restore events.jsonl
	operator bool
	hint     string
}

func (p repairPlan) result() RepairResult {
	return RepairResult{
		IssueCodes: p.codes, Changes: append([]Change{}, p.changes...), NeedsOperatorDecision: p.operator,
		RepairHint: p.hint,
	}
}

// plan decides how to repair the findings, without changing anything.
func (x *examined) plan() repairPlan {
	p := repairPlan{codes: []Code{}}
	x.note(&p)
	if why := x.onlyOperator(); why != "" {
		p.operator, p.hint = true, why
		return p
	}
	x.planChanges(&p)
	if p.hint == "" && len(p.changes) == 0 && !x.report().OK {
		p.hint = "none of these findings has a single correct repair: run starter check for hints"
	}
	return p
}

// note adds each code that was found to the plan, once.
func (x *examined) note(p *repairPlan) {
	for _, i := range sorted(x.found) {
		if !slices.Contains(p.codes, i.Code) {
			p.codes = append(p.codes, i.Code)
		}
	}
}

// onlyOperator returns why an operator must decide before any change, or "".
func (x *examined) onlyOperator() string {
	id, there := x.meta.handoff()
	undecided := there && x.answer(id) == nil
	q, open := x.asks()
	switch f := x.folded(); {
	case x.has(InterruptedWithActiveHandoff) && open:
		return fmt.Sprintf("the interrupted run waits for a decision on %s: decide it (starter decide %s), which "+
			"continues the run", q.ID, shell.Quote(x.dir.Root))
	case x.has(InterruptedWithActiveHandoff) && undecided:
		return fmt.Sprintf("the interrupted run waits for a decision on hand-off %s: decide it, then resume", id)
	case x.has(HaltDecisionWithoutHaltedMeta) && x.endedOtherwise():
		return fmt.Sprintf("a halt was decided, but the events settle the run as %s, which a repair does not change", f)
	case x.has(HaltDecisionWithoutHaltedMeta) && f != run.Halted:
		return "a halt was decided, but the events do not record it: send the decision to the run"
	case x.has(CheckpointPendingWithoutActiveHandoff):
		return crossFile + " waits for a hand-off that does not exist: correct or remove it"
	case x.has(CrossTerminalWithStaleHandoff) && x.cross.pending:
		return fmt.Sprintf("the run has ended, and %s still waits for hand-off %s: decide it", crossFile, id)
	case x.has(CrossTerminalWithStaleHandoff) && x.cross.err != nil:
		return fmt.Sprintf("the run has ended, but %s, which may still wait for hand-off %s, cannot be read", crossFile, id)
	}
	return ""
}

// change records one key of meta.json; a nil after drops the key.
func (p *repairPlan) change(o *object.Object, field string, after json.RawMessage, c Code) {
	p.edit = true
	p.changes = append(p.changes, Change{Field: field, Before: flat(o.Values[field]), After: flat(after), Code: c})
}

// planChanges changes the keys that differ from the events, and lets the projector do the rest.
func (x *examined) planChanges(p *repairPlan) {
	if x.has(StreamMissing) {
		return // nothing is derived from no event
	}
	damaged := x.has(streamDamage()...)
	if damaged && x.whole != nil {
		x.planLines(p)
		return
	}
	if damaged {
		p.hint = layout.EventsFile + " itself was changed, and the store does not have its lines, so nothing is derived " +
			"from it: " + x.commands(hintHistory)
		return
	}
	why := x.keyCode()
	if x.meta.good() && why != "" {
		want, err := object.ObjectOf(x.stream.want.Meta)
		if err != nil {
			p.hint = err.Error()
			return
		}
		for _, k := range x.strayKeys() {
			p.change(x.meta.object, k, want.Values[k], why)
		}
	}
	x.planFiles(p)
}

// keyCode is the finding for which keys of meta.json are changed; empty: none.
func (x *examined) keyCode() Code {
	for _, i := range sorted(slices.Clone(x.found)) {
		switch i.Code {
		case HaltDecisionWithoutHaltedMeta, TerminalEventWithoutTerminalMeta, TerminalMetaWithoutTerminalEvent,
			InterruptedEventWithoutInterruptedMeta,
			StatusMismatch, AwaitingWithoutActiveHandoff, HandoffEventWithoutMetaHandoff, MetaHandoffWithoutEvent,
			TerminalWithStaleHandoff, DerivedFileBehind:
			return i.Code
		}
	}
	return ""
}

// planFiles lets the projector continue from meta.json or rebuild everything.
func (x *examined) planFiles(p *repairPlan) {
	note := func(field, before string, c Code) {
		p.changes = append(p.changes, Change{Field: field, Before: object.Quote(before),
			After: object.Quote("as the events give it"), Code: c})
	}
	for _, i := range sorted(slices.Clone(x.found)) {
		switch {
		case i.file == "" || i.Code == ArtifactHashMismatch && !x.artifactIsMissing() || !x.restores(i):
			continue
		case i.Code == StreamTornTail || i.Code == DerivedFileBehind && i.file == layout.MetaFile:
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

// flat is a value on one line; nil stays nil.
func flat(v json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if len(v) == 0 || json.Compact(&out, v) != nil {
		return nil
	}
	return out.Bytes()
}
