package rundir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// RepairOptions are the inputs of a repair.
type RepairOptions struct {
	Apply           bool                // write; otherwise only report the changes
	EffectiveStatus run.EffectiveStatus // as for a check
	Blobs           Blobs               // the store in run.json
	ReadTree        func(manifest []byte) error
}

// RepairResult reports what a repair changes, or has changed.
type RepairResult struct {
	IssueCodes            []Code   `json:"issue_codes"` // findings of the check, each code once
	Changes               []Change `json:"changes"`
	Applied               bool     `json:"applied"`
	NeedsOperatorDecision bool     `json:"needs_operator_decision"` // nothing is changed before an operator decides
	// why nothing, or not everything, is repaired, and what to do; may be empty
	RepairHint string   `json:"repair_hint"`
	Kept       []string `json:"kept"` // what was replaced, relative to the directory
}

// Change is a file that is made again, and what was found of it.
type Change struct {
	File  string `json:"file"`
	Found string `json:"found"`
	Code  Code   `json:"issue_code"`
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

// Repair rebuilds every file of a directory that differs from what follows from the events. What it replaces is kept
// in _orchestrator/torn. Damaged lines of events.jsonl are restored if the segments in the store have them and the
// result matches the chain in meta.json; otherwise nothing is derived from them. An artifact that people have edited
// stays; one that is missing is restored.
//
// An interrupted repair is repeated from the beginning, and one that finds nothing to do writes nothing. A run that is at
// work, or whose directory is being written to, is refused with [LiveError]; an open run that is paused or waits makes
// no call and writes no file.
func Repair(ctx context.Context, d Dir, o RepairOptions) (RepairResult, error) {
	res, _, err := repair(ctx, d, o, false)
	if held, herr := d.Locked(); err == nil && o.Apply && len(res.Changes) == 0 && held {
		_, err = lockRepair(d) // the holder may still write what differs
		return res, errors.Join(err, herr)
	}
	if err != nil || !o.Apply || len(res.Changes) == 0 {
		return res, err
	}
	lock, err := lockRepair(d)
	if err != nil {
		return RepairResult{}, err
	}
	defer lock.Unlock()
	res, lines, err := repair(ctx, d, o, true) // again, now that no other process writes
	if err != nil || len(res.Changes) == 0 {
		return res, err
	}
	w, err := d.openCold(ctx, o.Blobs, nil, true)
	if err != nil {
		return res, err
	}
	if lines != nil {
		if _, err := w.replaceLines(lines); err != nil {
			return res, err
		}
	}
	if err := w.append(nil); err != nil {
		return res, err
	}
	if err := w.export(); err != nil {
		return res, fmt.Errorf("repair: %w", err)
	}
	res.Applied, res.Kept = true, append([]string{}, w.kept...)
	return res, nil
}

// repair finds what is to be changed. lines are those of a damaged journal as they were written.
func repair(ctx context.Context, d Dir, o RepairOptions, alone bool) (res RepairResult, lines []string, err error) {
	res = RepairResult{IssueCodes: []Code{}, Changes: []Change{}, Kept: []string{}}
	c, err := examine(ctx, d, CheckOptions{EffectiveStatus: o.EffectiveStatus, ReadTree: o.ReadTree}, alone)
	if err != nil {
		return res, nil, err
	}
	for _, i := range sorted(c.found) {
		if !slices.Contains(res.IssueCodes, i.Code) {
			res.IssueCodes = append(res.IssueCodes, i.Code)
		}
	}
	if res.RepairHint = c.onlyOperator(); res.RepairHint != "" {
		res.NeedsOperatorDecision = true
		return res, nil, nil
	}
	if c.has(JournalDamaged) {
		whole, broken, err := c.intact(ctx, o.Blobs)
		if err != nil {
			return res, nil, err
		}
		if whole == nil {
			res.RepairHint = EventsFile + " itself was changed, and the store does not have its lines, so nothing is " +
				"derived from it: " + c.journalHint()
			return res, nil, nil
		}
		lines = whole
		for _, b := range broken {
			res.Changes = append(res.Changes, Change{File: EventsFile, Found: b.String(), Code: JournalDamaged})
		}
	}
	w, lost := exporter{ctx: ctx, dir: d, blobs: o.Blobs, fold: c.fold}, []string{}
	for _, i := range c.found {
		if r, _ := ruleOf(i.Code); i.File == "" || i.Code == JournalDamaged || i.Hint != c.commands(hintRepair) || r.hint != hintRepair {
			continue
		}
		if o.Blobs == nil {
			return res, nil, errors.New("repair: files are made again from the store, and none was given")
		}
		if _, err := w.content(c.fold.Files[i.File]); Unreadable(err) {
			lost = append(lost, i.File)
		} else if err != nil {
			return res, nil, err
		} else if !slices.ContainsFunc(res.Changes, func(c Change) bool { return c.File == i.File }) {
			res.Changes = append(res.Changes, Change{File: i.File, Found: i.Message, Code: i.Code})
		}
	}
	if len(lost) > 0 {
		res.RepairHint = fmt.Sprintf("%s cannot be made again: the store has lost the content (run starter check --deep %s "+
			"for details)", strings.Join(lost, ", "), shell.Quote(d.Root))
	}
	if len(res.Changes) == 0 && res.RepairHint == "" && !c.report().OK {
		res.RepairHint = "none of these findings has a single correct repair: run starter check for hints"
	}
	if live := c.live(); live != nil && len(res.Changes) > 0 {
		if o.Apply {
			return res, nil, live
		}
		res.RepairHint = live.Error()
	}
	return res, lines, nil
}

// live returns why an open run is not repaired now; nil: it is closed, paused, or waits.
func (c *check) live() error {
	status := c.fold.Header.State.Status
	if c.opts.EffectiveStatus.Liveness != run.LiveOpen || status.Class() == run.OperatorPause {
		return nil
	}
	return &LiveError{Dir: c.dir.Root, Why: "its workflow is open, and it is " + cmp.Or(string(status), "pending")}
}

// lockRepair takes the directory's lock, or fails at once.
func lockRepair(d Dir) (*disk.Lock, error) {
	lock, err := tryLock(d, "repair-state")
	var held *disk.ErrHeld
	if errors.As(err, &held) {
		return nil, &LiveError{Dir: d.Root, Why: held.Owner.String() + " is writing"}
	}
	return lock, err
}
