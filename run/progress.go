package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// LoopProgress is what the rounds of the loop at work have left.
type LoopProgress struct {
	First    int      `json:"first,omitempty"`    // the first round in Left
	Left     []string `json:"left,omitempty"`     // state that each round left, the newest last; see [State.Work]
	Findings string   `json:"findings,omitempty"` // digest of the findings that were open at the end of the last round
	Files    string   `json:"files,omitempty"`    // as Left, without notes
	Still    int      `json:"still,omitempty"`    // rounds in a row without progress
	Ended    int      `json:"ended,omitempty"`    // the round with which the loop ended for that; 0: it did not
	Why      string   `json:"why,omitempty"`
}

// Work is the digest of what a run works on: tree, artifact and notes.
func (s State) Work() string {
	parts := []string{s.files()}
	for _, n := range s.Notes {
		parts = append(parts, n.Name, n.Whole.Digest)
	}
	return shortDigest(parts...)
}

// files is the digest of tree and artifact.
func (s State) files() string { return shortDigest(DigestOf(s.Tree), DigestOf(s.Artifact)) }

func shortDigest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, " ")))
	return hex.EncodeToString(sum[:6])
}

// openFindings is the digest of the findings of the last verdict; empty: there are none.
func (s State) openFindings() string {
	if s.Judged == nil || s.Judged.Findings == nil {
		return ""
	}
	return s.Judged.Findings.Digest
}

// EndRound returns the progress with the round that ends now: the round makes none if it leaves a state that an earlier round of
// the loop has left, or if it changed no file and its findings are those of the round before.
func (s State) EndRound(round int) LoopProgress {
	p := LoopProgress{First: round}
	if s.LoopProgress != nil {
		p = *s.LoopProgress
	}
	if len(p.Left) > round-p.First { // it was asked about, and ends with the answer
		return p
	}
	work, files, findings := s.Work(), s.files(), s.openFindings()
	earlier := slices.Index(p.Left, work)
	same := len(p.Left) > 0 && files == p.Files && findings != "" && findings == p.Findings
	switch {
	case earlier >= 0:
		p.Still++
		p.Why = fmt.Sprintf("round %d left the work as round %d had left it (%s)", round, p.First+earlier, work)
	case same:
		p.Still++
		p.Why = fmt.Sprintf("round %d changed no file and has the same findings as round %d (%s, findings %.12s)",
			round, round-1, files, findings)
	default:
		p.Still, p.Why = 0, ""
	}
	p.Left = append(slices.Clone(p.Left), work)
	p.Files, p.Findings = files, findings
	return p
}

// stall adopts the progress of a loop that ends for lack of it.
func (f *folder) stall(e *Event) {
	p := decoded[LoopProgress](e)
	f.LoopProgress = &p
}

func (l *Log) stalled(_ *Entry, p LoopProgress) {
	l.decide(LogDecision{Decision: "end-loop", Reason: Plural(p.Still, "round") + " without progress: " + p.Why})
}

func stalledHeadline(_ *Entry, p LoopProgress) string { return "  ! stalled: " + p.Why }

// Stalled describes why a loop ended for lack of progress; empty: it did not.
func (s State) Stalled() string {
	if s.LoopProgress == nil || s.LoopProgress.Ended == 0 {
		return ""
	}
	return fmt.Sprintf("stalled: %s without progress: %s", Plural(s.LoopProgress.Still, "round"), s.LoopProgress.Why)
}
