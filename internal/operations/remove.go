package operations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Removal names the runs to remove.
type Removal struct {
	Runs       []string // ids, beginnings of ids, or directories
	Offline    bool     // without Temporal, whose executions stay until their retention ends
	Discard    bool     // remove commits and changes that exist only in the run's checkout
	KeepBranch bool     // the run's branch stays in the repository
}

// Removable is one run with all that it has left, as far as this host can remove it.
type Removable struct {
	RunID           string
	Pipeline        string
	Directory       string
	EffectiveStatus run.EffectiveStatus
	Store           string
	Parts           []Part   // in the order of removal
	Kept            []string // what stays, and why
	Problems        []error  // why it cannot be removed; empty: it can

	named string // so it is found again
	there bool   // the directory exists and is the run's
}

// Part is one thing that a run has left, and how it is removed. Removing a missing part is not an error.
type Part struct {
	What    string // workflow, checkout, branch, scratch, environment, store, directory, registry
	Where   string
	Amount  Amount // zero: it has none
	Note    string
	Removed bool // already

	remove func(context.Context) error
}

func (p *Removable) part(what, where string, amount Amount, note string, remove func(context.Context) error) {
	p.Parts = append(p.Parts, Part{What: what, Where: where, Amount: amount, Note: note, remove: remove})
}

func (p *Removable) keep(format string, args ...any) {
	p.Kept = append(p.Kept, fmt.Sprintf(format, args...))
}

// refuse records a problem. While there is one, nothing is removed.
func (p *Removable) refuse(format string, args ...any) {
	p.Problems = append(p.Problems, &RefusedError{Verb: removeVerb, Why: fmt.Sprintf(format, args...)})
}

// unmet notes a precondition that does not hold.
func (p *Removable) unmet(format string, args ...any) {
	p.Problems = append(p.Problems,
		&RefusedError{Verb: removeVerb, Why: fmt.Sprintf(format, args...), FailedPrecondition: true})
}

const removeVerb = string(run.Remove)

// RemoveError reports why runs cannot be removed, with every reason of each. Nothing was removed.
type RemoveError struct{ Runs []Removable }

func (e *RemoveError) Error() string {
	var lines []string
	for _, r := range e.Runs {
		for _, p := range r.Problems {
			lines = append(lines, fmt.Sprintf("run %s: %v", r.RunID, p))
		}
	}
	return strings.Join(append(lines, "nothing was removed"), "\n")
}

// Unwrap returns the problems, so that errors.As finds a conflict.
func (e *RemoveError) Unwrap() (all []error) {
	for _, r := range e.Runs {
		all = append(all, r.Problems...)
	}
	return all
}

// Removables lists what a removal would remove. It changes nothing. The error is that of a name without a run; the
// reasons against a removal are in Problems.
func (o Operator) Removables(ctx context.Context, r Removal) ([]Removable, error) {
	var subjects []removed
	var wrong []error
	for _, what := range r.Runs {
		s, err := o.removed(ctx, what)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if !slices.ContainsFunc(subjects, func(other removed) bool { return other.claim.RunID == s.claim.RunID }) {
			subjects = append(subjects, s)
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	var out []Removable
	for _, s := range subjects {
		p, err := o.removable(ctx, r, s, subjects)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Removed reports whether all parts of a run are removed.
func (p Removable) Removed() bool {
	return len(p.Problems) == 0 && !slices.ContainsFunc(p.Parts, func(part Part) bool { return !part.Removed })
}

// RemovalError reports a removal that ended early. The parts record which are removed.
type RemovalError struct {
	RunID string
	Runs  []Removable // all that were to be removed
	Err   error
}

func (e *RemovalError) Unwrap() error { return e.Err }

func (e *RemovalError) Error() string {
	lines := []string{fmt.Sprintf("remove run %s: %v", e.RunID, e.Err)}
	for _, r := range e.Runs {
		lines = append(lines, "Run "+r.RunID+":")
		for _, part := range r.Parts {
			word := "not removed"
			if part.Removed {
				word = "removed"
			}
			lines = append(lines, fmt.Sprintf("  %-11s  %-11s  %s", word, part.What, part.Where))
		}
	}
	return strings.Join(append(lines, "Fix the cause and run the same command again: it removes the rest"), "\n")
}

// Remove removes runs and all that they have left. If one of them cannot be removed, none is, with a *RemoveError. A
// *RemovalError lists what is removed and what is not. After an interruption, a repeated call removes the rest.
func (o Operator) Remove(ctx context.Context, r Removal) ([]Removable, error) {
	all, err := o.Removables(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := Refusals(all); err != nil {
		return all, err
	}
	held, err := o.hold(ctx, all)
	if err != nil {
		return all, errors.Join(err, held.free(false))
	}
	r.Runs = nil
	for _, p := range all {
		r.Runs = append(r.Runs, p.named)
	}
	all, err = o.removeHeld(ctx, r)
	return all, errors.Join(err, held.free(err == nil))
}

// removeHeld removes runs whose directories no other process changes. It checks again what was found.
func (o Operator) removeHeld(ctx context.Context, r Removal) ([]Removable, error) {
	all, err := o.Removables(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := Refusals(all); err != nil {
		return all, err
	}
	for _, p := range all {
		if err := p.removeParts(ctx); err != nil {
			return all, &RemovalError{RunID: p.RunID, Runs: all, Err: err}
		}
	}
	return all, nil
}

// removeParts removes the parts one after another, and marks each.
func (p Removable) removeParts(ctx context.Context) error {
	for i := range p.Parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.Parts[i].remove(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.Parts[i].What, err)
		}
		p.Parts[i].Removed = true
	}
	return nil
}

// heldRuns are the locks of the runs that are being removed.
type heldRuns struct {
	turns []*disk.Lock
	dirs  []func() error // unlock each directory
}

// hold waits until no start uses any of the directories, and acquires their locks.
func (o Operator) hold(ctx context.Context, all []Removable) (held heldRuns, err error) {
	byDir := map[string]bool{} // whether it exists
	for _, p := range all {
		byDir[p.Directory] = byDir[p.Directory] || p.there
	}
	// in one order, so that two removals do not wait for each other
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		turn, err := o.turn(ctx, rundir.At(dir))
		if err != nil {
			return held, err
		}
		held.turns = append(held.turns, turn)
		if !byDir[dir] {
			continue
		}
		unlock, err := rundir.LockForRemoval(rundir.At(dir))
		if writer := (*disk.ErrHeld)(nil); errors.As(err, &writer) {
			return held, &RefusedError{Verb: removeVerb,
				Why: fmt.Sprintf("%s is being written by %s; nothing was removed. Wait for it to end", dir,
					writer.Owner), FailedPrecondition: true}
		} else if err != nil {
			return held, err
		}
		held.dirs = append(held.dirs, unlock)
	}
	return held, nil
}

// free releases the locks. removed: the runs are removed, so the locks of their starts are too.
func (h heldRuns) free(removed bool) (err error) {
	for _, unlock := range h.dirs {
		err = errors.Join(err, unlock())
	}
	for _, turn := range h.turns {
		if removed {
			err = errors.Join(err, turn.Remove())
		} else {
			err = errors.Join(err, turn.Unlock())
		}
	}
	return err
}

// Refusals returns the *RemoveError of the runs that cannot be removed; nil: all can.
func Refusals(all []Removable) error {
	refused := slices.DeleteFunc(slices.Clone(all), func(p Removable) bool { return len(p.Problems) == 0 })
	if len(refused) == 0 {
		return nil
	}
	return &RemoveError{Runs: refused}
}
