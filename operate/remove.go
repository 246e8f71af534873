package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Removal says which runs are to be removed.
type Removal struct {
	Runs       []string // ids, beginnings of ids, or directories
	Offline    bool     // Temporal is not asked, and its executions stay until their retention ends
	Discard    bool     // although commits or changes exist nowhere but in the run's checkout
	KeepBranch bool     // the run's branch stays in the repository
}

// Removable is one run with everything that it has left, as far as this host can remove it.
type Removable struct {
	RunID     string
	Pipeline  string
	Directory string
	Standing  run.Standing
	Store     string
	Parts     []Part   // what is removed, in this order
	Kept      []string // what stays, and why
	Problems  []error  // why nothing is removed; none: it may be

	named string // so it is found again
}

// Part is one thing that a run has left, and how it is removed. Removing what is gone already is no error.
type Part struct {
	What   string // directory, checkout, branch, scratch, store, lock, registry, workflow
	Where  string
	Amount Amount // zero: it has none
	Note   string

	remove func(context.Context) error
}

func (p *Removable) part(what, where string, amount Amount, note string, remove func(context.Context) error) {
	p.Parts = append(p.Parts, Part{What: what, Where: where, Amount: amount, Note: note, remove: remove})
}

func (p *Removable) keep(format string, args ...any) {
	p.Kept = append(p.Kept, fmt.Sprintf(format, args...))
}

// refuse notes a problem. Nothing is removed as long as there is one.
func (p *Removable) refuse(format string, args ...any) {
	p.Problems = append(p.Problems, &RefusedError{Verb: removeVerb, Why: fmt.Sprintf(format, args...)})
}

const removeVerb = string(run.Remove)

// RemoveError says why runs cannot be removed: every reason of each. Nothing was removed.
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

// Unwrap gives the problems, so that a conflict is found.
func (e *RemoveError) Unwrap() (all []error) {
	for _, r := range e.Runs {
		all = append(all, r.Problems...)
	}
	return all
}

// Removables lists what a removal would remove. It changes nothing. The error is that of a name that means no run; why a run may not be removed stands
// in its Problems.
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

// Remove removes runs and everything that they have left. If one of them may not be removed, none is, with a *RemoveError. Cut off anywhere, it can be
// called again and removes the rest.
func (o Operator) Remove(ctx context.Context, r Removal) ([]Removable, error) {
	all, err := o.Removables(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := Refusals(all); err != nil {
		return all, err
	}
	for i, p := range all {
		done, err := o.removeOne(ctx, r, p)
		if err != nil {
			return all[:i], err
		}
		all[i] = done
	}
	return all, nil
}

// Refusals is the *RemoveError of the runs that may not be removed; nil: all of them may.
func Refusals(all []Removable) error {
	refused := slices.DeleteFunc(slices.Clone(all), func(p Removable) bool { return len(p.Problems) == 0 })
	if len(refused) == 0 {
		return nil
	}
	return &RemoveError{Runs: refused}
}

// removeOne removes one run. No start is at work on its directory meanwhile, and what was found before somebody else was is looked at again.
func (o Operator) removeOne(ctx context.Context, r Removal, p Removable) (Removable, error) {
	turn, err := o.turn(ctx, rundir.At(p.Directory))
	if err != nil {
		return p, err
	}
	r.Runs = []string{p.named}
	done, err := o.removeParts(ctx, r)
	if err != nil {
		return p, errors.Join(err, turn.Unlock())
	}
	return done, turn.Remove()
}

func (o Operator) removeParts(ctx context.Context, r Removal) (Removable, error) {
	again, err := o.Removables(ctx, r)
	if err != nil {
		return Removable{}, err
	}
	if err := Refusals(again); err != nil {
		return again[0], err
	}
	p := again[0]
	for i, part := range p.Parts {
		report(ctx, "Removing run "+p.RunID, i, len(p.Parts))
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if err := part.remove(ctx); err != nil {
			return p, fmt.Errorf("remove run %s: %w. Run the command again to remove the rest", p.RunID, err)
		}
	}
	return p, nil
}
