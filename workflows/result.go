package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// settle journals the result of a pass and what follows from it. last: it completes the step.
func (p *pass) settle(ctx workflow.Context, last bool) error {
	res := p.result
	phase := p.e.round.Stage
	tree, err := p.changesOf(ctx, res)
	if err != nil {
		return err
	}
	if err := p.e.j.emit(ctx, run.KindPassEnd, phase, p.passEnd(res, last)); err != nil {
		return err
	}
	if err := p.journalReused(ctx, res); err != nil {
		return err
	}
	if res.Outcome != run.CategoryOK {
		return nil
	}
	if res.Artifact != nil && res.Modified {
		ev := run.ArtifactUpdated{Step: p.step.Key, Call: p.callID, Artifact: *res.Artifact}
		if err := p.e.j.emit(ctx, run.KindArtifactUpdated, phase, ev); err != nil {
			return err
		}
	}
	if err := p.journalSetup(ctx, res); err != nil {
		return err
	}
	if err := p.journalTampered(ctx, res); err != nil {
		return err
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
	return p.recordScore(ctx, res)
}

func (p *pass) passEnd(res *contract.PassResult, last bool) run.PassEnd {
	end := run.PassEnd{
		Pass: p.passRef(), Call: p.callID, Outcome: res.Outcome, StartedAt: p.startedAt, Attempts: p.attempt,
		Reply: res.Reply, Envelope: res.Envelope, Attempted: res.Outcome != run.CategoryOK &&
			res.Output != nil, Artifact: res.Artifact, Modified: res.Modified, Validation: res.Validation,
		Tally: res.Tally, Findings: res.Findings, Found: res.Found, Scope: res.Scope,
		Score: res.Score, Verdict: res.Verdict, Approved: p.approved(), As: p.step.As, Value: p.value(res),
		Spend: res.Spend, Reused: res.Reused, Joined: res.Joined, ResumedFrom: res.ResumedFrom,
		Tools: res.Tools, Session: res.Session,
	}
	end.CompletedAt, end.DurationMS = span(p.startedAt, res.StartedAt, res.DurationMS)
	if p.context.Artifact != nil {
		end.Before = p.context.Artifact.Digest
	}
	if res.Changes != nil {
		end.Tree, end.Modified = &res.Changes.Tree, true
	}
	p.withTampered(&end)
	end.Notes, end.Lacks = notesAdded(res.Notes, p.role.Notes)
	if last {
		end.Next = p.e.nextPlace(p.at)
		end.LastInRound = p.e.lastInRound(p.at)
	}
	end.Review = p.reviewReason
	for _, i := range p.steering {
		end.Instructions = append(end.Instructions, i.ID)
	}
	return end
}

// notesAdded returns what was added to notes, and which of the wanted notes are missing.
func notesAdded(notes []run.NoteAppended, wanted []string) (got []run.Added, lacks []string) {
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

// span returns when the last attempt ended, and the time since the start of the first.
func span(began, started string, durationMS int64) (completed string, total int64) {
	first, err1 := time.Parse(run.TimeFormat, began)
	last, err2 := time.Parse(run.TimeFormat, started)
	if err1 != nil || err2 != nil {
		return started, durationMS
	}
	end := last.Add(time.Duration(durationMS) * time.Millisecond)
	return run.Time(end), end.Sub(first).Milliseconds()
}

// recordScore journals the score that the loop waits for; members of a group return none.
func (p *pass) recordScore(ctx workflow.Context, res *contract.PassResult) error {
	if p.role.Score == "" || p.member != "" {
		return nil
	}
	ev := run.ScoreRecorded{
		Name: p.role.Score, Step: p.step.Key, Round: p.at.Round, Score: res.Score, Why: res.ScoreWhy,
		Threshold: p.e.round.Threshold,
		Auditors:  len(p.context.Replies),
	}
	ev.Met = res.Score != nil && ev.Threshold != nil && *res.Score >= *ev.Threshold
	return p.e.j.emit(ctx, run.KindScoreRecorded, p.e.round.Stage, ev)
}
