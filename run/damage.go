package run

import (
	"fmt"
	"slices"
	"strings"
)

// keptDamage is how many damages the state names. All of them stand in the journal.
const keptDamage = 4

// SegmentFile begins the name of a segment in the store.
const SegmentFile = "segment "

// Missing stands for a line, or a piece of the journal, that is not there at all.
const Missing = "missing"

// JournalDamage is the payload of journal.damaged: a line of the directory's events.jsonl, or a segment of the journal in the store, is not what was
// written. Expected and Found are sha-256 digests in hex, or [Missing]; of a segment Found is what is wrong with it.
type JournalDamage struct {
	File     string `json:"file"`           // events.jsonl, or segment <digest>
	Line     int64  `json:"line,omitempty"` // from 1; 0: it is not known which, and the digests are chains over all lines
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Repaired bool   `json:"repaired,omitempty"`
	Kept     string `json:"kept,omitempty"` // copy of the file as it was found, in the directory
}

// Same says that two are about the same damage, whatever became of it. Where the line is not known, the digests are of all lines so far and change with
// every new one.
func (d JournalDamage) Same(other JournalDamage) bool {
	whole := d.Line == 0 && !strings.HasPrefix(d.File, SegmentFile)
	return d.File == other.File && d.Line == other.Line && (whole || d.Found == other.Found)
}

func (d JournalDamage) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ", line %d,", d.Line)
	}
	if d.Found == Missing {
		b.WriteString(" is missing")
	} else {
		fmt.Fprintf(&b, " is not what was written: expected %s, found %s", shortened(d.Expected), shortened(d.Found))
	}
	if d.Repaired {
		b.WriteString("; repaired")
	}
	if d.Kept != "" {
		fmt.Fprintf(&b, "; the file as it was found is %s", d.Kept)
	}
	return b.String()
}

// shortened cuts a digest; other text stays whole.
func shortened(s string) string {
	if len(s) == 64 && !strings.Contains(s, " ") {
		return "sha256 " + s[:12]
	}
	return s
}

// Damages says that the state names this damage already.
func (s State) Damages(d JournalDamage) bool { return slices.ContainsFunc(s.Damage, d.Same) }

func (f *folder) noteDamage(e *Event) {
	var p JournalDamage
	e.Decode(&p)
	f.Damage = newest(append(list(f, f.Damage), p), keptDamage)
	f.problem(e, "", "state-corruption", p.String(), 0)
}
