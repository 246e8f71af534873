package run

import (
	"fmt"
	"strconv"
)

// Problem is the newest error of a run, recovered or not: what a reader of the run sees first.
type Problem struct {
	TS       string   `json:"ts"`
	Context  string   `json:"context"` // pass-34, pa-cycle-2-auditor-B, or the stage
	Category Category `json:"category"`
	Message  string   `json:"message"` // at most 300 characters
	Attempt  int      `json:"attempt,omitempty"`
}

// longestProblem is how much of a message travels with the state, in characters.
const longestProblem = 300

// Context names what an error of this pass happened in (requirement 002 §1.5).
func (p Pass) Context(t Wording) string {
	who := p.Role
	if p.Member != "" {
		who = p.Member
	}
	switch {
	case p.Number > 0:
		return "pass-" + strconv.Itoa(p.Number)
	case p.Dir != "":
		return fmt.Sprintf("%s-%d-%s", t.Words().Context, p.Round, who)
	case p.Member != "":
		return p.Step + "-" + p.Member
	}
	return p.Step
}

// ShotsContext names what an error of pictures happened in. dir is where a repeated stage keeps its evidence; empty in
// another one.
func (t Wording) ShotsContext(dir string, round int) string {
	if dir == "" {
		return "screenshot-capture"
	}
	return fmt.Sprintf("%s-%d-screenshot", t.Words().Context, round)
}

// Counts reports whether an attempt is one of the errors: a lost worker, an operator's decision, a second answer and a
// call that waits for its turn are not.
func (a PassAttempt) Counts() bool {
	return a.Category.IsError() && !(a.Limit != nil && a.Limit.Kind == LimitAtOnce)
}

// problem records an error. Without a context it is the stage's, or the whole run's.
func (f *folder) problem(e *Event, context string, category Category, message string, attempt int) {
	f.Problem = &Problem{TS: e.TS, Context: Where(context, e.Phase), Category: category.In(f.Wording),
		Message: short(message), Attempt: attempt}
}

// Where is the context of an error that no pass is to blame for: the one given, else the stage, else the run.
func Where(context string, phase *string) string {
	switch {
	case context != "":
		return context
	case phase != nil && *phase != "":
		return *phase
	}
	return "run"
}

// short keeps the beginning, which names the operation, and more of the end, which names the cause.
func short(s string) string {
	r := []rune(s)
	if len(r) <= longestProblem {
		return s
	}
	begin := longestProblem / 3
	return string(r[:begin]) + "…" + string(r[len(r)-(longestProblem-begin-1):])
}
