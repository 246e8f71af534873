package fsck

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// examined is a directory as read by one check, and its findings.
type examined struct {
	dir       projector.Dir
	opts      CheckOptions
	shadow    *projector.Shadow // what the projector would write; nil: only some files are read
	meta      metaRead
	stream    scanned
	answers   []rundir.Answer
	cross     *crossCheckpoint
	parent    *run.CrossParent
	effective run.EffectiveStatus
	found     []Issue
	lag       []Issue         // findings, unless a process is writing
	files     map[string]bool // of the findings
	lost      []string        // damaged files that cannot be rebuilt; see findLost

	// the lines of a damaged events.jsonl as they were written; nil: unknown, or not requested
	whole  []string
	broken []run.JournalDamage // the differences of events.jsonl
}

// crossCheckpoint is cross_checkpoint.json of a run across projects: what the run waits for. The kind determines the
// subject of a hand-off; the ID repeats it.
type crossCheckpoint struct {
	pending bool
	kind    string // plan, project or cfa
	id      string // of the hand-off: cross_plan:…, project:ALIAS:…, cfa:…
	alias   string // of the project, if the hand-off is about one
	child   string // the hand-off in that project's run
	paused  bool   // has the state in which a final acceptance was paused
	gate    bool   // a gate is pending
	cursor  *object.Object
	err     error // the file is not a JSON object
}

// metaRead is meta.json as read by one check.
type metaRead struct {
	raw    []byte // nil: missing
	object *object.Object
	err    error // not a JSON object, or not written by Passbook
	typed  rundir.Meta
}

// further is the result of lines after those in meta.json.
type further struct {
	records.Header
	chain run.Chain
}

// scanned is the result of the stream: the lines in meta.json, and the lines after them.
type scanned struct {
	lines, size int64 // lines in meta.json, or all lines if it has no mark
	chain       run.Chain
	want        records.Header // result of these lines
	artifact    string
	checkpoints map[string]kept
	turns       []string // digests of the trees at the end of turns, from turn 0
	calls       calls

	beyond  int64   // complete lines after those
	torn    int64   // bytes after the last line feed
	further further // result of all lines

	last                      int64 // highest seq so far
	unreadable, gaps, repeats places
	misnamed                  places // names in them lead out of the directory, or are reserved
}

// places counts lines and lists the first of them.
type places struct {
	n     int
	first []int64 // at most three
}

// kept is the expected contents of a checkpoint's directory.
type kept struct {
	seq      int64
	artifact string // digest; empty: none
	notes    []run.Notes
}

// good reports whether the file was read.
func (m metaRead) good() bool { return m.object != nil && m.err == nil }

func (m metaRead) status() run.Status { return run.Status(m.object.Text("status")) }

// handoff returns the open question in meta.json. There is one if phase_handoff is an object.
func (m metaRead) handoff() (id string, there bool) {
	if !m.good() || !bytes.HasPrefix(m.object.Values["phase_handoff"], []byte("{")) {
		return "", false
	}
	h := object.ObjectIn(m.object, "phase_handoff")
	if id = h.Text("id"); id == "" {
		id = h.Text("handoff_id")
	}
	return id, true
}

func (p *places) add(line int64) {
	if p.n++; p.n <= 3 {
		p.first = append(p.first, line)
	}
}

func (p places) String() string {
	words := make([]string, len(p.first))
	for i, n := range p.first {
		words[i] = fmt.Sprint(n)
	}
	text := "line " + strings.Join(words, ", ")
	if p.n > len(p.first) {
		text += fmt.Sprintf(" and %d more", p.n-len(p.first))
	}
	return text
}

// commands names the run in the commands of a hint. Its id may be unknown.
func (x *examined) commands(hint string) string {
	id := "RUN-ID"
	if claim, err := x.dir.Claim(); err == nil && claim.RunID != "" {
		id = shell.Quote(claim.RunID)
	}
	return strings.NewReplacer("RUN-ID", id, "RUN", shell.Quote(x.dir.Root)).Replace(hint)
}

// issue returns a finding.
func (x *examined) issue(c Code, file, message string) Issue {
	r, _ := ruleOf(c)
	hint := x.commands(r.hint)
	switch {
	case c == HaltDecisionWithoutHaltedMeta && x.endedOtherwise():
		hint = hintEnded
	case c == LogRowUnreadable && file == "": // of promotions.jsonl, which follows from no event
		hint = hintRow
	}
	if r.hint == hintDecide || c == RunningWithoutLiveWorkflow {
		if _, open := x.asks(); open {
			hint = "starter decide " + shell.Quote(x.dir.Root)
		}
	}
	if x.files == nil {
		x.files = map[string]bool{}
	}
	if file != "" {
		x.files[file] = true
	}
	return Issue{Code: c, Severity: r.severity, Message: message, Hint: hint, file: file}
}
