package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// settle writes down what a pass came to: the whole record, then what follows from it. last: the step is through with it.
func (p *pass) settle(ctx workflow.Context, last bool) error {
	res := p.result
	phase := p.e.round.Stage
	tree, err := p.carry(ctx, res)
	if err != nil {
		return err
	}
	if err := p.e.j.emit(ctx, run.KindPassEnd, phase, p.record(res, last)); err != nil {
		return err
	}
	if err := p.reused(ctx, res); err != nil {
		return err
	}
	if res.Outcome != "ok" {
		return nil
	}
	if res.Artifact != nil && res.Modified {
		ev := run.ArtifactUpdated{Step: p.step.Key, Call: p.id, Artifact: *res.Artifact}
		if err := p.e.j.emit(ctx, run.KindArtifactUpdated, phase, ev); err != nil {
			return err
		}
	}
	if tree != nil {
		if err := p.e.j.emit(ctx, run.KindWorkspaceUpdated, phase, *tree); err != nil {
			return err
		}
	}
	for _, n := range res.Notes {
		if err := p.e.j.emit(ctx, run.KindNoteAppended, phase, n); err != nil {
			return err
		}
	}
	return p.score(ctx, res)
}

func (p *pass) record(res *work.PassResult, last bool) run.PassEnd {
	end := run.PassEnd{
		Pass: p.about(), Call: p.id, Outcome: res.Outcome, StartedAt: p.began, Attempts: p.tried,
		Reply: res.Reply, Envelope: res.Envelope, Attempted: res.Outcome != "ok" && res.Output != nil, Artifact: res.Artifact, Modified: res.Modified, Validation: res.Validation, Tally: res.Tally,
		Score: res.Score, Verdict: res.Verdict, Approved: p.approved(), As: p.step.As, Value: p.value(res), Spend: res.Spend, Reused: res.Reused, Joined: res.Joined,
	}
	end.CompletedAt, end.DurationMS = span(p.began, res.StartedAt, res.DurationMS)
	if p.given.Artifact != nil {
		end.Before = p.given.Artifact.Digest
	}
	if res.Changes != nil {
		end.Tree, end.Modified = &res.Changes.Tree, true
	}
	end.Notes, end.Lacks = added(res.Notes, p.role.Notes)
	if last {
		end.Next = p.e.after(p.at)
		end.LastInRound = p.e.lastInRound(p.at)
	}
	end.Review = p.review
	return end
}

// added says what was added to notes, and which of the wanted notes nothing was added to.
func added(notes []run.NoteAppended, wanted []string) (got []run.Added, lacks []string) {
	has := func(name string) bool {
		return slices.ContainsFunc(notes, func(n run.NoteAppended) bool { return n.Note == name })
	}
	for _, n := range notes {
		got = append(got, run.Added{Name: n.Note, File: n.File, Chars: n.Entry.Chars})
	}
	for _, name := range wanted {
		if !has(name) {
			lacks = append(lacks, name)
		}
	}
	return got, lacks
}

// span gives when the last attempt ended, and the time from the beginning of the first.
func span(began, started string, durationMS int64) (completed string, total int64) {
	first, err1 := time.Parse(run.TimeFormat, began)
	last, err2 := time.Parse(run.TimeFormat, started)
	if err1 != nil || err2 != nil {
		return started, durationMS
	}
	end := last.Add(time.Duration(durationMS) * time.Millisecond)
	return run.Time(end), end.Sub(first).Milliseconds()
}

// score records the number that the loop waits for; only a call outside a group can give it.
func (p *pass) score(ctx workflow.Context, res *work.PassResult) error {
	if p.role.Score == "" || p.member != "" {
		return nil
	}
	ev := run.ScoreRecorded{
		Name: p.role.Score, Step: p.step.Key, Round: p.at.Round, Score: res.Score, Why: res.ScoreWhy, Threshold: p.e.round.Threshold,
		Auditors: len(p.given.Replies),
	}
	ev.Met = res.Score != nil && ev.Threshold != nil && *res.Score >= *ev.Threshold
	return p.e.j.emit(ctx, run.KindScoreRecorded, p.e.round.Stage, ev)
}
