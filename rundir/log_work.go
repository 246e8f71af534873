package rundir

import (
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/run"
)

func (l *logbook) scored(e entry) {
	var p run.ScoreRecorded
	e.Decode(&p)
	row := struct {
		TS        string   `json:"ts"`
		PACycle   int      `json:"paCycle"`
		Type      string   `json:"type"`
		Score     *float64 `json:"score"`
		Threshold *float64 `json:"threshold"`
		Auditors  int      `json:"auditorCount"`
		Met       bool     `json:"metThreshold,omitempty"`
		Why       string   `json:"why,omitempty"`
		Seq       int64    `json:"seq"`
	}{e.TS, p.Round, e.After.Wording.Words().Score, p.Score, p.Threshold, p.Auditors, p.Met, p.Why, e.Seq}
	l.row(QualityLog, row)
}

// changeRow is a line of provenance.jsonl: which turn changed which file from what to what.
type changeRow struct {
	Seq    int64  `json:"seq"`
	TS     string `json:"ts"`
	Turn   int    `json:"turn"`
	Step   string `json:"step"`
	Call   string `json:"call"`
	Path   string `json:"path"`
	Old    string `json:"old_path,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Before string `json:"hash_before"`
	After  string `json:"hash_after"`
}

// turn is the number of the last settled turn. The events that follow a pass are part of its turn.
func (e entry) turn() int { return e.book.Turns }

// artifact is one row of provenance.jsonl about the artifact.
func (l *logbook) artifact(e entry) {
	var p run.ArtifactUpdated
	e.Decode(&p)
	before := ""
	if e.Before.Artifact != nil {
		before = e.Before.Artifact.Digest
	}
	l.row(ProvenanceFile, changeRow{Seq: e.Seq, TS: e.TS, Turn: e.turn(), Step: p.Step, Call: p.Call,
		Path: e.book.CurrentArtifactPath, Before: before, After: p.Artifact.Digest})
}

// tree is one row of provenance.jsonl for each file that a turn changed, deletions and renames too (requirement 004).
func (l *logbook) tree(e entry) {
	var p run.WorkspaceUpdated
	e.Decode(&p)
	files := p.Files
	if p.List != nil {
		raw, err := l.load(p.List.Digest)
		if err == nil {
			err = json.Unmarshal(raw, &files)
		}
		if err != nil {
			l.err = fmt.Errorf("list of changed files %s: %w", p.List.Digest, err)
			return
		}
	}
	for _, f := range files {
		l.row(ProvenanceFile, changeRow{Seq: e.Seq, TS: e.TS, Turn: e.turn(), Step: p.Step, Call: p.Call,
			Path: f.Path, Old: f.Old, Kind: f.Kind, Before: f.Before, After: f.After})
	}
}
