package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// screenshots takes screenshots of the artifact, with retries. If all fail, the run continues and records it.
func (st *step) screenshots(ctx workflow.Context) error {
	ev := run.Screenshots{Step: st.Key, Round: st.at.Round, Dir: st.round.Dir, Redo: st.state().Redo(), Next: st.round.nextPlace(st.at)}
	maxAttempts := max(1, st.Shots.Attempts)
	for lost, away := 0, 0; ev.Attempts < maxAttempts; {
		res, err := st.takeScreenshots(ctx, ev.Attempts+1 >= maxAttempts)
		if isType(err, contract.ErrNoSlot) && ctx.Err() == nil {
			continue
		}
		if workerLost(err) && lost < maxLostWorkers {
			lost++ // not the browser's fault
			continue
		}
		if isType(err, contract.ErrNoStore) {
			if err := st.host.awaitRetry(ctx, away, errorMessage(err), never); err != nil {
				return err
			}
			away++
			continue
		}
		if isType(err, contract.ErrDiskFull) {
			st.pause(ctx, run.DiskFull, errorMessage(err), "")
			return nil
		}
		if err != nil {
			return err
		}
		ev.Attempts++
		ev.Manifest, ev.Count, ev.DurationMS, ev.Message = res.Manifest, res.Count, ev.DurationMS+res.DurationMS,
			res.Message
		if res.Source != "" {
			reused := run.Effect{
				Step: st.Key, Class: run.EffectRead, Policy: st.replayPolicy(), Status: "reused", Source: res.Source,
				Result: res.Manifest.Digest,
			}
			st.journal.emit(ctx, run.KindEffectReused, st.round.Stage, reused)
		}
		where := st.state().Wording.ShotsContext(ev.Dir, ev.Round)
		st.journalRecovered(ctx, where, res.Recovered, ev.Attempts)
		if res.Message == "" {
			break
		}
		if res.Permanent {
			maxAttempts = ev.Attempts
		}
		if whole, err := st.handleScreenshotFailure(ctx, ev, res, maxAttempts); err != nil || !whole {
			return err
		}
	}
	ev.Degraded = ev.Count == 0
	if ev.Degraded && st.Shots.IfFailing == "stop" {
		st.pause(ctx, run.PassFailed, "no screenshots: "+ev.Message, "")
		return nil
	}
	st.journal.emit(ctx, run.KindScreenshots, st.round.Stage, ev)
	return nil
}

// handleScreenshotFailure journals a failed attempt, and waits before the next one: 5 s, then 10 s (requirement
// 002 §4.3.5).
func (st *step) handleScreenshotFailure(ctx workflow.Context, ev run.Screenshots, res contract.ShotsResult,
	maxAttempts int) (completed bool, err error) {
	a := run.ShotsAttempt{
		Step: ev.Step, Round: ev.Round, Dir: ev.Dir, Attempt: ev.Attempts, Message: res.Message,
		DurationMS: res.DurationMS,
	}
	var wait time.Duration
	if ev.Attempts < maxAttempts {
		wait = time.Duration(ev.Attempts) * 5 * time.Second
		a.RetryInMS = wait.Milliseconds()
	}
	if st.journal.emit(ctx, run.KindShotsAttempt, st.round.Stage, a); wait == 0 {
		return true, nil
	}
	st.journal.soon()
	st.show(ctx)
	return st.sleepUnlessPaused(ctx, time.Duration(float64(wait)*st.in.Options.TimeScale),
		"before the next screenshot attempt")
}

// maxLostWorkers is the maximum number of workers lost during one set of screenshots.
const maxLostWorkers = 10

func (st *step) takeScreenshots(ctx workflow.Context, last bool) (contract.ShotsResult, error) {
	var res contract.ShotsResult
	if st.state().Artifact == nil {
		return contract.ShotsResult{Message: "there is no artifact", Permanent: true}, nil
	}
	in := contract.ShotsInput{
		RunID: st.in.Target.RunID, Store: st.in.Target.Store, PlanUse: st.planUse(), Artifact: *st.state().Artifact,
		Name:        st.in.Start.Artifact.File,
		Shots:       *st.Shots,
		HeartbeatMS: st.in.Options.HeartbeatMS, Last: last,
		Call: fmt.Sprintf("%s/g%d.%s.%d.-.1", st.callPrefix(), st.state().Generation, st.Key, st.at.Round),
	}
	in.RecordedRun, in.Generations = st.recordedRun()
	id := fmt.Sprintf("screenshots-%d", st.at.Round)
	opts := st.host.callOptions(ctx, st.host.screenshotQueue(st.Step), id, fmt.Sprintf("screenshots of round %d", st.at.Round),
		5*time.Minute, 0)
	err := workflow.ExecuteActivity(opts, contract.TakeScreenshots, in).Get(ctx, &res)
	if err != nil && ctx.Err() == nil && !workerLost(err) && !isType(err, contract.ErrDiskFull) &&
		!isType(err, contract.ErrNoStore) && !isType(err, contract.ErrNoSlot) {
		return contract.ShotsResult{Message: errorMessage(err)}, nil
	}
	return res, err
}
