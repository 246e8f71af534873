package run

import (
	"fmt"
	"slices"
	"strings"
)

// keptDamage is the maximum number of damages in the state. The journal contains all of them.
const keptDamage = 4

// SegmentFile begins the name of a segment in the store.
const SegmentFile = "segment "

// Missing replaces the digest of a line, or a part of the journal, that does not exist.
const Missing = "missing"

// JournalDamage is the payload of journal.damaged: a line of the directory's events.jsonl, or a segment of the journal
// in the store, differs from what was written. Expected and Found are sha-256 digests in hex, or [Missing]; for a
// segment, Found describes the damage.
type JournalDamage struct {
	File string `json:"file"` // events.jsonl, or segment <digest>
	// from 1; 0: the line is unknown, and the digests are chains over all lines
	Line     int64  `json:"line,omitempty"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Repaired bool   `json:"repaired,omitempty"`
	Kept     string `json:"kept,omitempty"` // copy of the damaged file, in the directory
}

// Same reports whether both describe the same damage, repaired or not. If the line is unknown, the digests cover all
// lines so far and change with every new line.
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

// shortened cuts a digest; other texts stay complete.
func shortened(s string) string {
	if len(s) == 64 && !strings.Contains(s, " ") {
		return "sha256 " + s[:12]
	}
	return s
}

// Damages reports whether the state contains this damage.
func (s State) Damages(d JournalDamage) bool { return slices.ContainsFunc(s.Damage, d.Same) }

func (f *folder) noteDamage(e *Event) {
	var p JournalDamage
	e.Decode(&p)
	f.Damage = newest(append(list(f, f.Damage), p), keptDamage)
	f.problem(e, "", CategoryStateCorruption, p.String(), 0)
}
