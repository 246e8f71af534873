package rundir

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// asked logs questions, their answers, and what concerns trees.
func (l *logbook) asked(e entry) {
	switch e.Kind {
	case run.KindHandoffRequested, run.KindGateRequested, run.KindReviewRequested, run.KindDeliveryRequested:
		q, open := e.after.Asks()
		if open {
			l.line(e.Event, warn, "A decision is wanted: %s (%s)", q.Words(), strings.Join(q.Actions, ", "))
			l.decide(e, decision{Decision: "ask", Reason: q.Trigger, ID: q.ID})
		}
	case run.KindHandoffDecided, run.KindGateDecided, run.KindReviewDecided, run.KindDeliveryDecided:
		l.answered(e)
	case run.KindQuestionReminded:
		l.reminded(e)
	case run.KindStepSkipped:
		var p run.StepSkipped
		e.Decode(&p)
		l.line(e.Event, info, "  %s is skipped: %s", p.Step, p.Why)
		l.decide(e, decision{Decision: "skip-step", Reason: p.Why, Context: p.Step})
	case run.KindWorkspaceUpdated:
		l.tree(e)
	case run.KindDeliveryCompleted:
		l.delivered(e)
	}
}

func (l *logbook) answered(e entry) {
	d := e.after.Decided
	if d == nil || e.after.Illegal != "" {
		return
	}
	var by struct {
		By string `json:"decided_by"`
	}
	e.Decode(&by)
	l.line(e.Event, info, "Decided by %s: %s", by.By, strings.TrimSpace(d.Action+" "+d.Feedback))
	l.decide(e, decision{Decision: "decide-" + d.Action, Reason: d.Feedback, ID: d.ID, By: by.By})
}

func (l *logbook) reminded(e entry) {
	var p run.QuestionReminded
	e.Decode(&p)
	q, open := e.after.Asks()
	switch {
	case !open:
	case p.Expired:
		l.line(e.Event, warn, "Nobody has decided in time: %s", q.Words())
		l.decide(e, decision{Decision: "expire-question", Reason: q.OnExpiry, ID: p.ID})
	default:
		l.line(e.Event, warn, "Reminder %d: a decision is wanted: %s", p.Number, q.Words())
	}
}

// tree is one row of provenance.jsonl for each file that a turn changed, deletions and renames too (requirement 004).
func (l *logbook) tree(e entry) {
	var p run.WorkspaceUpdated
	e.Decode(&p)
	if p.Cause == "edited" {
		l.line(e.Event, warn, "%d files of the workspace were changed outside of the run. They are part of it now.", p.Changed)
		l.decide(e, decision{Decision: "accept-edit", Reason: "nothing was in flight, so it is somebody's edit", ArtifactHash: p.Tree.Digest})
	} else {
		l.line(e.Event, info, "  %d files changed", p.Changed)
	}
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
		l.row(ProvenanceFile, struct {
			Seq    int64  `json:"seq"`
			TS     string `json:"ts"`
			Turn   string `json:"turn"`
			Call   string `json:"call"`
			Path   string `json:"path"`
			Old    string `json:"old_path,omitempty"`
			Kind   string `json:"kind"`
			Before string `json:"hash_before"`
			After  string `json:"hash_after"`
		}{e.Seq, e.TS, p.Step, p.Call, f.Path, f.Old, f.Kind, f.Before, f.After})
	}
}

func (l *logbook) delivered(e entry) {
	var p run.DeliveryCompleted
	e.Decode(&p)
	if !p.Delivered {
		l.line(e.Event, warn, "Nothing was delivered: %s", p.Message)
		l.decide(e, decision{Decision: "no-delivery", Reason: p.Message, ID: p.ID})
		return
	}
	l.line(e.Event, info, "%d files delivered to %s %s", p.Files, p.To, strings.TrimSpace(p.Target+" "+p.Commit))
	l.decide(e, decision{Decision: "deliver", Reason: strings.TrimSpace(p.Action + " " + p.To), ID: p.ID})
}
