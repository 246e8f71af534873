package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// forge reads the issue and the pull request of a run beside its loop. What is new there becomes messages and events, as
// if an operator had sent it; the loop acts on the state. What is to be written there follows from the state too, so it
// can be repeated and nothing is written twice.
type forge struct {
	*execution
	handlers *handlers
	idle     int       // looks in a row that found nothing
	written  string    // what the last look has written
	retryAt  time.Time // the forge takes no requests before
	trouble  string    // error of the last look
}

// Intervals between looks: each that finds nothing doubles it.
const (
	firstLook = 10 * time.Second
	lastLook  = 5 * time.Minute
	// noChecksAfter is the time after a push when a commit without a check has none
	noChecksAfter = 10 * time.Minute
)

// byForge is who resumes a run because its pull request has changed.
const byForge = "github"

// start begins to look, if the run has an issue or a pull request.
func (fg *forge) start(ctx workflow.Context) {
	if fg.in.Start.Forge == nil {
		return
	}
	workflow.GoNamed(ctx, "forge", func(ctx workflow.Context) {
		ready := func() bool { return fg.inbox.isOpen() && fg.state().Forge != nil }
		if workflow.Await(ctx, ready) != nil {
			return
		}
		for fg.open() {
			if err := fg.look(ctx); err != nil {
				return // cancelled
			}
			next := min(firstLook<<min(fg.idle, 10), lastLook)
			if left := fg.retryAt.Sub(workflow.Now(ctx)); left > next {
				next = left
			}
			waits := workflow.AwaitOptions{Timeout: time.Duration(float64(next) * fg.in.Options.TimeScale),
				TimerOptions: workflow.TimerOptions{Summary: "until the forge is read again"}}
			if _, err := workflow.AwaitWithOptions(ctx, waits, fg.wanted); err != nil {
				return
			}
		}
	})
}

func (fg *forge) open() bool { return !fg.state().Status.Closed() && !fg.journal.isNewer() }

// toWrite identifies what is to be written on the forge, or read of a new commit.
func (fg *forge) toWrite() string {
	s := fg.state()
	text := fmt.Sprint(s.Forge.Asked != nil, len(s.Forge.Refused))
	if q, open := s.Asks(); open {
		text += q.ID
	}
	if p := s.Forge.Pull; p != nil {
		text += p.Head
	}
	return text
}

// wanted reports whether reading is due before its time. What failed is repeated at its time only.
func (fg *forge) wanted() bool {
	return !fg.open() || fg.trouble == "" && fg.retryAt.IsZero() && fg.toWrite() != fg.written
}

// look reads and writes once.
func (fg *forge) look(ctx workflow.Context) error {
	in, writes := fg.input(), fg.toWrite()
	var res contract.ForgeResult
	err := workflow.ExecuteActivity(fg.options(ctx), contract.LookAtForge, in).Get(ctx, &res)
	if ctx.Err() != nil || !fg.open() {
		return ctx.Err()
	}
	fg.idle, fg.retryAt = fg.idle+1, time.Time{}
	if err != nil {
		fg.failed(ctx, err)
		return nil
	}
	fg.trouble, fg.written = "", writes
	if at, err := time.Parse(run.TimeFormat, res.RetryAt); err == nil {
		fg.retryAt, fg.written = at, ""
	}
	if fg.apply(ctx, in, res) {
		fg.idle = 0
	}
	return nil
}

func (fg *forge) input() contract.ForgeInput {
	s := fg.state()
	in := contract.ForgeInput{Target: fg.in.Target, PlanUse: fg.planUse(), Forge: *s.Forge, Pipeline: s.Pipeline,
		Host: fg.in.Claim.Host}
	if q, open := s.Asks(); open && q.Project == nil && !q.Unattended {
		in.Question = &q
	}
	if a := s.Forge.Asked; a != nil && (in.Question == nil || in.Question.ID != a.Question) {
		in.Answer = answerTo(s, a.Question)
	}
	return in
}

// answerTo describes how a question ended.
func answerTo(s run.State, id string) string {
	for _, d := range s.Decisions {
		if d.ID == id {
			return fmt.Sprintf("answered by %s: %s", cmp.Or(d.By, "an operator"), d.Action)
		}
	}
	return "no longer open"
}

// options are for one look: the next one follows anyway.
func (fg *forge) options(ctx workflow.Context) workflow.Context {
	ctx = fg.host.directoryOptions(ctx, "read and write on "+fg.in.Start.Forge.Repo)
	opts := workflow.GetActivityOptions(ctx)
	opts.RetryPolicy.MaximumAttempts = 3
	opts.RetryPolicy.NonRetryableErrorTypes = append(opts.RetryPolicy.NonRetryableErrorTypes, contract.ErrForge,
		contract.ErrBadInput)
	return workflow.WithActivityOptions(ctx, opts)
}

// failed journals an error of the forge, once.
func (fg *forge) failed(ctx workflow.Context, err error) {
	if isType(err, contract.ErrNewer) {
		fg.journal.lookSoon()
	}
	text := errorMessage(err)
	if text != fg.trouble {
		fg.inbox.deferError(fg.record(ctx, run.KindErrorNoted, run.ErrorNoted{Context: "forge", Category: run.CategoryUnknown,
			Message: run.Cut(text, maxNoticeText)}))
	}
	fg.trouble = text
}

// apply acts on what was found, and journals it in the same write. news: there was something.
func (fg *forge) apply(ctx workflow.Context, in contract.ForgeInput, res contract.ForgeResult) (news bool) {
	ev := run.ForgeRead{Read: res.Read, Told: res.Told, Asked: res.Asked, Answered: res.Answered, Replied: res.Replied,
		Closed: res.Closed}
	posted := fg.state().Forge.Asked
	if res.Asked != nil {
		posted = res.Asked
	}
	for _, c := range res.Comments {
		name, text, known, command := run.CommentCommand(c.Text)
		var err error
		switch {
		case command && !known: // of another program
			continue
		case command:
			err = fg.answer(ctx, c, posted, name, text)
		case c.Where == "issue":
			err = fg.send(ctx, contract.VerbSteer, contract.Message{Text: c.Text, By: sender(c)})
		default:
			ev.Comments = append(ev.Comments, run.PullComment{ID: c.ID, By: c.By, At: c.At, Text: c.Text})
		}
		if err != nil {
			ev.Refused = append(ev.Refused, run.Refusal{Comment: c.ID, On: c.On, By: c.By, Why: run.Cut(errorMessage(err), 500)})
		}
	}
	if ev.Read != in.Forge.Read || ev.Told && !in.Forge.Told || ev.Asked != nil || ev.Answered || len(ev.Replied) > 0 || ev.Closed {
		news = true
		fg.inbox.deferError(fg.record(ctx, run.KindForgeRead, ev))
	}
	if p := fg.state().Forge.Pull; p != nil && res.Seen != nil && in.Forge.Pull != nil && p.Head == in.Forge.Pull.Head {
		news = fg.observe(ctx, *p, *res.Seen) || news
	}
	if res.Closed && (res.Seen == nil || !res.Seen.Merged) {
		fg.journal.cancel()
	}
	return news
}

// observe journals a change of the pull request.
func (fg *forge) observe(ctx workflow.Context, p run.Pull, seen run.PullSeen) bool {
	pushed, err := time.Parse(run.TimeFormat, p.PushedAt)
	if seen.Checks == "" && err == nil && !workflow.Now(ctx).Before(pushed.Add(noChecksAfter)) {
		seen.Checks = run.ChecksNone
	}
	if p.PullSeen.Same(seen) {
		return false
	}
	fg.inbox.deferError(fg.record(ctx, run.KindPullObserved, run.PullObserved{Number: p.Number, Head: p.Head, PullSeen: seen}))
	return true
}

// answer decides the open question, if the comment answers it: it came after the comment with the question.
func (fg *forge) answer(ctx workflow.Context, c contract.ForgeComment, posted *run.Posted, name, text string) error {
	q, open := fg.state().Asks()
	switch {
	case !open && posted != nil:
		return unmet("the question is %s", answerTo(fg.state(), posted.Question))
	case !open:
		return unmet("no question is open")
	case posted == nil || posted.Question != q.ID || c.ID < posted.Comment:
		return unmet("it answers an earlier question")
	}
	action, feedback, err := q.Reply(name, text)
	if err != nil {
		return err
	}
	m := contract.Message{ID: q.ID, Action: action, By: sender(c), Feedback: feedback}
	if !run.NeedsFeedback(action) && action != run.ActionFix {
		m.Feedback, m.Note = "", feedback
	}
	return fg.send(ctx, contract.VerbDecide, m)
}

// sender is who sent a message, and how that is known.
func sender(c contract.ForgeComment) string { return fmt.Sprintf("github %s (%s)", c.By, c.Level) }

// send handles a message as one of an operator.
func (fg *forge) send(ctx workflow.Context, verb string, m contract.Message) error {
	m, err := fg.inbox.redacted(ctx, m)
	if err != nil {
		return err
	}
	for _, kind := range messages(fg.runID()) {
		if kind.verb == verb {
			_, err = fg.handlers.handle(ctx, kind, m)
		}
	}
	return err
}

// leave writes what is left to be written there before the run ends, and removes what the run has there. Errors do not
// stop the end.
func (fg *forge) leave(ctx workflow.Context, end run.Status) {
	s := fg.state()
	if fg.in.Start.Forge == nil || s.Forge == nil || fg.journal.isNewer() {
		return
	}
	const patience = 2 * time.Minute
	opts := workflow.GetActivityOptions(fg.options(ctx))
	opts.ScheduleToCloseTimeout = patience
	ctx = workflow.WithActivityOptions(ctx, opts)
	if s.Forge.Asked != nil || len(s.Forge.Refused) > 0 {
		var res contract.ForgeResult
		in := fg.input()
		if in.Question = nil; s.Forge.Asked != nil && in.Answer == "" {
			in.Answer = "no longer open: the run is " + string(end)
		}
		if err := workflow.ExecuteActivity(ctx, contract.LookAtForge, in).Get(ctx, &res); err != nil {
			fg.failed(ctx, err)
		} else {
			fg.inbox.deferError(fg.record(ctx, run.KindForgeRead, run.ForgeRead{Read: s.Forge.Read, Answered: res.Answered,
				Replied: res.Replied}))
		}
	}
	if s.Forge.Pull == nil || end != run.Done && end != run.Halted || fg.in.Start.Workspace == nil {
		return
	}
	in := contract.LeaveForgeInput{Target: fg.in.Target, PlanUse: fg.planUse(), Workspace: *fg.in.Start.Workspace,
		Commit: s.Commit, Tree: s.Tree, Forge: *fg.state().Forge}
	if err := workflow.ExecuteActivity(ctx, contract.LeaveForge, in).Get(ctx, nil); err != nil {
		fg.failed(ctx, err)
	}
}

// pullMoved reports whether a run that waits for its pull request has something to do.
func (x *execution) pullMoved() bool {
	f := x.state().Forge
	if f == nil || f.Pull == nil {
		return false
	}
	step, _ := f.NextPull(time.Time{})
	return string(step) != x.state().Reason
}

// waitPaused is the wait of a paused run.
func (x *execution) waitPaused() wait {
	w, s := wait{name: waitPause}, x.state()
	if s.Forge == nil || s.Forge.Pull == nil {
		return w
	}
	switch s.Reason {
	case run.ForChecks:
		w.name = waitChecks
	case run.ForReview:
		w.name = waitReview
	default:
		return w
	}
	w.until, w.summary = s.Forge.Until(), fmt.Sprintf("until pull request #%d is no longer followed", s.Forge.Pull.Number)
	return w
}

// pushed reports whether the pull request has the work as it is.
func (ds *deliveries) pushed() bool {
	s := ds.state()
	return s.Forge != nil && s.Forge.Pull != nil && s.Forge.Pull.Head == s.Commit && s.Delivery != nil && s.Delivery.Pull > 0
}

// follow does what comes next about the pull request.
func (ds *deliveries) follow(ctx workflow.Context, action string) (*run.RunEnd, error) {
	f := *ds.state().Forge
	name := fmt.Sprintf("pull request #%d", f.Pull.Number)
	step, trigger := f.NextPull(workflow.Now(ctx))
	switch {
	case step == run.PullMerged:
		return &run.RunEnd{Status: run.Done, Reason: name + " was merged"}, nil
	case step == run.PullClosed:
		return &run.RunEnd{Status: run.Halted, Reason: name + " was closed"}, nil
	case action == run.ActionSkip:
		return &run.RunEnd{Status: run.Done, Reason: name + " is open; an operator ended the run"}, nil
	case step == run.PullLate:
		return &run.RunEnd{Status: run.Done, Reason: name + " is open, and no longer followed"}, nil
	case step == run.PullChecks, step == run.PullReview:
		ds.pause(ctx, string(step), f.Pull.URL, "")
		return nil, nil
	}
	return nil, ds.goBack(ctx, f, trigger, step == run.PullRound)
}

// goBack sends the run back to its work because of what happened to the pull request; or asks an operator about that, if
// its rounds are used up or the last one changed nothing.
func (ds *deliveries) goBack(ctx workflow.Context, f run.ForgeState, trigger string, decided bool) error {
	if trigger == run.TriggerConflict {
		if merged, err := ds.mergeBase(ctx); !merged || err != nil {
			return err
		}
	}
	lead, err := ds.round.redoRoutes(ctx)
	if err != nil {
		return err
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionDelivery, Question: f.Pull.Finds(trigger), Phase: deliveryPhase, Round: f.Pull.Rounds + 1,
		Trigger: trigger, Digest: f.Pull.Diff, Deadlines: ds.questions.deadlines(ctx, nil),
	}
	if f.Pull.Log != nil {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "log", Digest: f.Pull.Log.Digest})
	}
	switch {
	case decided && lead.back != nil:
		return ds.questions.settle(ctx, ask, lead, run.ActionFix, byForge)
	case f.Pull.Rounds >= f.Ref.After.Max:
		ask.Question += fmt.Sprintf(". The maximum of %s is used up. What should happen?", run.Plural(f.Ref.After.Max, "round"))
	default:
		ask.Question += ". The last round changed nothing about it. What should happen?"
	}
	return ds.questions.ask(ctx, ask, lead)
}

// mergeBase merges the base of the pull request into the workspace. false: the run waits first.
func (ds *deliveries) mergeBase(ctx workflow.Context) (merged bool, err error) {
	var res contract.MergeBaseResult
	in := contract.MergeBaseInput{Forge: *ds.in.Start.Forge, SyncWorkspaceInput: contract.SyncWorkspaceInput{
		Tree:    *ds.workspace(),
		Message: fmt.Sprintf("Merge the base of the pull request\n\nPassbook-Run: %s\n", ds.runID())}}
	if err := ds.checkout.run(ctx, "merge the base of the pull request", contract.MergeBase, same(&in), &res); err != nil {
		return false, fmt.Errorf("merge the base of the pull request: %w", err)
	}
	if res.RetryAt != "" {
		ds.limited(ctx, res.RetryAt)
		return false, nil
	}
	ds.journalRecovered(ctx, "", res.Recovered, 0)
	if res.Changes != nil {
		ds.journal.emit(ctx, run.KindWorkspaceUpdated, deliveryPhase, *res.Changes)
	}
	return true, nil
}

// limited has the run wait until the forge takes requests again.
func (ds *deliveries) limited(ctx workflow.Context, until string) {
	ds.journal.emit(ctx, run.KindRunLimited, deliveryPhase, run.RunLimited{Limited: *run.NewLimited([]run.LimitedCall{{
		Limit: run.Limit{Kind: run.LimitRate, Reset: until, Account: ds.in.Start.Forge.Repo, Agent: byForge},
		Until: until, Since: run.Time(workflow.Now(ctx)), N: 1,
	}})})
}

// settle journals a question and its answer at once: what happened outside of the run decides it.
func (qs *questions) settle(ctx workflow.Context, ask run.QuestionRequested, lead routes, action, by string) error {
	if err := qs.awaitResumed(ctx); err != nil {
		return err
	}
	ask.Unattended = true
	qs.open(ctx, ask, lead)
	q, _ := qs.state().Asks()
	_, err := qs.decide(ctx, contract.Message{ID: q.ID, Action: action, By: by})
	return err
}

// feedback is what the next round gets to read. After a fix because of a pull request, it has what was observed.
func (qs *questions) feedback(q run.Question, m contract.Message) string {
	f := qs.state().Forge
	if !run.FollowsPull(q.Trigger) || m.Action != run.ActionFix || f == nil || f.Pull == nil {
		return feedbackOf(m)
	}
	text := f.Pull.Findings(q.Trigger)
	if m.Feedback != "" {
		text = m.Feedback + "\n\n" + text
	}
	return text
}

// closedIssue is why a run is cancelled without an operator's request; empty: it is not.
func (x *execution) closedIssue() string {
	f := x.state().Forge
	if f == nil || !f.Closed || f.Ref.Issue == nil {
		return ""
	}
	return fmt.Sprintf("issue #%d was closed", f.Ref.Issue.Number)
}
