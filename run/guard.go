package run

import (
	"fmt"
	"strings"
)

// Tampered lists protected files of the workspace that a pass changed. They were restored before anything used them.
type Tampered struct {
	Step  string       `json:"step"`
	Call  string       `json:"call"`
	Role  string       `json:"role"`
	Count int          `json:"count"`
	First []FileChange `json:"files"` // the first of them; the kind replaced is a file that became something else
}

// MaxTampered is how many files a [Tampered] lists.
const MaxTampered = 12

// Text lists the files in one line: test.sh (changed), tests/a (removed).
func (t *Tampered) Text() string {
	if t == nil {
		return ""
	}
	var names []string
	for _, f := range t.First {
		name := f.Path
		if f.Old != "" {
			name = f.Old
		}
		names = append(names, fmt.Sprintf("%s (%s)", clipped(name, 200), f.Kind))
	}
	if more := t.Count - len(t.First); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return OneLine(strings.Join(names, ", "))
}

// Files is the number of protected files; nil: none.
func (t *Tampered) Files() int {
	if t == nil {
		return 0
	}
	return t.Count
}

// Warning describes what was restored.
func (t *Tampered) Warning() string {
	return fmt.Sprintf("tampered: %s changed %s, restored: %s", t.Role, Plural(t.Count, "protected file"), t.Text())
}

// Scope is what a plan declares about the work: the paths that it will change.
type Scope struct {
	Role   string   `json:"role"`   // that declared it
	Digest string   `json:"digest"` // of all paths, as a JSON list
	Count  int      `json:"count"`
	Paths  []string `json:"paths"` // the first of them
	// workspace at that time; empty in the event that declares it
	Tree string `json:"tree,omitempty"`
}

// MaxScope is how many paths a [Scope] lists.
const MaxScope = 12

// Found are the findings about the changes of a run besides those of its roles: protected files that were restored, files
// outside the scope of the plan, files that changed ignore rules hide, and files whose names are refused. The digest is
// that of all findings, in the form of a structured verdict.
type Found struct {
	Findings
	Outside []string `json:"outside,omitempty"` // changed files outside the scope, the first of them
	Count   int      `json:"outside_count,omitempty"`
	Scope   string   `json:"scope_of,omitempty"` // the role that declared the scope

	Hidden      []string `json:"hidden,omitempty"` // files of the tree that ignore rules hide since the start, the first of them
	HiddenCount int      `json:"hidden_count,omitempty"`

	Refused []string `json:"refused,omitempty"` // left out of the tree because of their names, the first of them
}

// MaxFound is how many files of a kind a [Found] lists.
const MaxFound = 12

// Blob is the digest of the findings; empty: there are none.
func (f *Found) Blob() string {
	if f == nil {
		return ""
	}
	return f.Digest
}

// listed lists the first files of some in one line; empty: there are none.
func listed(first []string, count int) string {
	if count == 0 {
		return ""
	}
	text := strings.Join(first, ", ")
	if more := count - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return OneLine(text)
}

// Warnings describe the changes outside the scope and the hidden files.
func (f *Found) Warnings() (all []string) {
	if f == nil {
		return nil
	}
	if f.Count > 0 {
		all = append(all, fmt.Sprintf("outside the scope that %s declared: %s: %s", f.Scope, Plural(f.Count, "file"),
			listed(f.Outside, f.Count)))
	}
	if f.HiddenCount > 0 {
		all = append(all, fmt.Sprintf("hidden by changed ignore rules, and still part of the work: %s: %s",
			Plural(f.HiddenCount, "file"), listed(f.Hidden, f.HiddenCount)))
	}
	return all
}

// GuardFacts describe protected files that the last change touched, what else was found about the changes, and what
// passes only in the workspace.
func (s State) GuardFacts() []Fact {
	facts := guardFacts(s.Tampered, s.Found)
	if len(s.OnlyInWorkspace()) > 0 {
		facts = append(facts, Fact{"Fresh folder", s.FreshText()})
	}
	return facts
}

func guardFacts(t *Tampered, found *Found) []Fact {
	var facts []Fact
	if t != nil {
		facts = append(facts, Fact{"Tampered", fmt.Sprintf("by %s, restored: %s", t.Role, t.Text())})
	}
	if found == nil {
		return facts
	}
	for _, f := range []Fact{
		{"Out of scope", listed(found.Outside, found.Count)}, {"Hidden files", listed(found.Hidden, found.HiddenCount)},
		{"Refused names", listed(found.Refused, len(found.Refused))},
	} {
		if f.Text != "" {
			facts = append(facts, f)
		}
	}
	return facts
}

// guard adopts the findings about the changes of a pass, and the scope that it declares.
func (f *folder) guard(p *PassEnd) {
	if p.Turn() && p.Outcome == CategoryOK {
		f.Tampered, f.Found = nil, p.Found
	}
	if p.Scope == nil {
		return
	}
	scope := *p.Scope
	if f.Tree != nil {
		scope.Tree = f.Tree.Digest
	}
	f.Scope, f.Found = &scope, nil
}

func (f *folder) tampered(e *Event) {
	t := decoded[Tampered](e)
	f.Tampered = &t
}

// tampered records a decision of the run: protected files were restored.
func (l *Log) tampered(_ *Entry, t Tampered) {
	l.decide(LogDecision{Decision: "restore-protected", Reason: t.Warning(), Context: t.Step})
}

func tamperedHeadline(_ *Entry, t Tampered) string { return "  ! " + t.Warning() }
