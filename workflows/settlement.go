package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// settlement journals what the result of a call changes.
type settlement struct {
	*call
	last   bool   // it completes the step
	review string // that the next epoch pauses for: the step was cancelled before it
}

type event struct {
	kind    run.Kind
	payload any
}

func (se settlement) run(ctx workflow.Context) error {
	changes, err := se.changes(ctx)
	if err != nil {
		return err
	}
	for _, ev := range se.events(changes) {
		se.journal.emit(ctx, ev.kind, se.round.Stage, ev.payload)
	}
	return nil
}

// events are those of the result. Only one that is accepted changes more than the pass.
func (se settlement) events(changes *run.WorkspaceUpdated) []event {
	res := se.result
	all := []event{{run.KindPassEnd, se.passEnd()}}
	if res.Source != "" {
		all = append(all, event{run.KindEffectReused, run.Effect{
			Step: se.Key, Call: se.callID, Class: se.effectClass(), Policy: se.replayPolicy(), Status: "reused",
			Result: res.Source, USD: res.SourceUSD, Source: se.in.Start.Source.RunID,
		}})
	}
	if res.Outcome != run.CategoryOK {
		return all
	}
	if res.Artifact != nil && res.Modified {
		all = append(all, event{run.KindArtifactUpdated, run.ArtifactUpdated{Step: se.Key, Call: se.callID, Artifact: *res.Artifact}})
	}
	if res.Setup != nil && !res.Reused {
		ev := *res.Setup
		ev.Step, ev.Call = se.Key, se.callID
		all = append(all, event{run.KindWorkspaceSetup, ev})
	}
	if res.Tampered != nil {
		ev := *res.Tampered
		ev.Step, ev.Call = se.Key, se.callID
		all = append(all, event{run.KindWorkspaceTampered, ev})
	}
	if changes != nil {
		all = append(all, event{run.KindWorkspaceUpdated, *changes})
	}
	for _, n := range res.Notes {
		all = append(all, event{run.KindNoteAppended, n})
	}
	if se.role.Score != "" && se.member == "" { // members of a group return none
		all = append(all, event{run.KindScoreRecorded, se.score()})
	}
	return all
}

// score is the one that the loop waits for.
func (se settlement) score() run.ScoreRecorded {
	ev := run.ScoreRecorded{
		Name: se.role.Score, Step: se.Key, Round: se.at.Round, Score: se.result.Score, Why: se.result.ScoreWhy,
		Threshold: se.round.Threshold, Auditors: len(se.context.Replies),
	}
	ev.Met = ev.Score != nil && ev.Threshold != nil && *ev.Score >= *ev.Threshold
	return ev
}

// changes updates the run's checkout to what a call left, and returns the event to journal. It runs before the call
// settles, so that the journal has both events or none and the sync can be repeated. A lane's changes are synced when its
// run merges it.
func (se settlement) changes(ctx workflow.Context) (*run.WorkspaceUpdated, error) {
	if se.result.Changes == nil || se.result.Outcome != run.CategoryOK {
		return nil, nil
	}
	ev := *se.result.Changes
	ev.Step, ev.Call = se.Key, se.callID
	if se.in.Start.Lane != nil {
		return &ev, nil
	}
	var out contract.SyncWorkspaceResult
	summary := "sync the changes of " + se.title() + " to the checkout"
	if err := se.checkout.run(ctx, summary, contract.SyncWorkspace, func() targetSetter {
		in := contract.SyncWorkspaceInput{Tree: *se.workspace(), Message: se.commitMessage(), Previous: se.state().Tree}
		in.Tree.Tree = ev.Tree
		return &in
	}, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", summary, err)
	}
	ev.Commit = out.Commit
	se.journalRecovered(ctx, "", out.Recovered, 0)
	return &ev, nil
}

func (se settlement) passEnd() run.PassEnd {
	res := se.result
	end := run.PassEnd{
		Pass: se.passRef(), Call: se.callID, Outcome: res.Outcome, StartedAt: se.startedAt, Attempts: se.attempt,
		Reply: res.Reply, Envelope: res.Envelope, Attempted: res.Outcome != run.CategoryOK &&
			res.Output != nil, Artifact: res.Artifact, Modified: res.Modified, Validation: res.Validation,
		Tally: res.Tally, Findings: res.Findings, Found: res.Found, Scope: res.Scope,
		Score: res.Score, Verdict: res.Verdict, Approved: se.approved(), ID: se.role.ID, Keep: se.role.Keep, Data: res.Data,
		Value: res.Value,
		Spend: res.Spend, Reused: res.Reused, Joined: res.Joined, ResumedFrom: res.ResumedFrom,
		Tools: res.Tools, Session: res.Session,
	}
	if se.Kind == pipeline.KindRun {
		end.ExitCode = res.ExitCode
	}
	end.CompletedAt, end.DurationMS = span(se.startedAt, res.StartedAt, res.DurationMS)
	if se.context.Artifact != nil {
		end.Before = se.context.Artifact.Digest
	}
	if res.Changes != nil {
		end.Tree, end.Modified = &res.Changes.Tree, true
	}
	se.withTampered(&end)
	end.Notes, end.Lacks = notesAdded(res.Notes, se.role.Notes)
	if se.last {
		end.Next = se.round.nextPlace(se.at)
		end.LastInRound = se.round.lastInRound(se.at)
	}
	end.Review = se.review
	for _, i := range se.steering {
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

// withTampered adds to the result of a command that protected files were restored before it.
func (se settlement) withTampered(end *run.PassEnd) {
	t := se.state().Tampered
	if se.Kind != pipeline.KindRun || t == nil {
		return
	}
	end.Tampered = t
	end.Validation.Warnings = append(slices.Clone(end.Validation.Warnings), t.Warning())
}

func (se settlement) commitMessage() string {
	return fmt.Sprintf("%s\n\nPassbook-Run: %s\nPassbook-Step: %s\n", se.DescriptionOf(se.member, se.at.Round),
		se.in.Target.RunID, se.Key)
}
