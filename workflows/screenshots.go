package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// screenshots takes screenshots of the artifact, with retries. If all fail, the run continues and records it.
func (e *engine) screenshots(ctx workflow.Context, at run.Place, s contract.Step) error {
	ev := run.Screenshots{Step: s.Key, Round: at.Round, Dir: e.round.Dir, Redo: e.j.state.Redo(), Next: e.nextPlace(at)}
	maxAttempts := max(1, s.Shots.Attempts)
	for lost, away := 0, 0; ev.Attempts < maxAttempts; {
		res, err := e.takeScreenshots(ctx, at, s, ev.Attempts+1 >= maxAttempts)
		if isType(err, contract.ErrNoSlot) && ctx.Err() == nil {
			continue
		}
		if heartbeatTimedOut(err) && lost < maxLostWorkers {
			lost++ // not the browser's fault
			continue
		}
		if isType(err, contract.ErrNoStore) {
			if err := e.awaitRetry(ctx, away, errorMessage(err), never); err != nil {
				return err
			}
			away++
			continue
		}
		if isType(err, contract.ErrDiskFull) {
			return e.pause(ctx, run.DiskFull, errorMessage(err), "")
		}
		if err != nil {
			return err
		}
		ev.Attempts++
		ev.Manifest, ev.Count, ev.DurationMS, ev.Message = res.Manifest, res.Count, ev.DurationMS+res.DurationMS,
			res.Message
		if res.Source != "" {
			reused := run.Effect{
				Step: s.Key, Class: run.EffectRead, Policy: e.replayPolicy(), Status: "reused", Source: res.Source,
				Result: res.Manifest.Digest,
			}
			if err := e.j.emit(ctx, run.KindEffectReused, e.round.Stage, reused); err != nil {
				return err
			}
		}
		where := e.j.state.Wording.ShotsContext(ev.Dir, ev.Round)
		if err := e.journalRecovered(ctx, where, res.Recovered, ev.Attempts); err != nil {
			return err
		}
		if res.Message == "" {
			break
		}
		if res.Permanent {
			maxAttempts = ev.Attempts
		}
		if whole, err := e.handleScreenshotFailure(ctx, ev, res, maxAttempts); err != nil || !whole {
			return err
		}
	}
	ev.Degraded = ev.Count == 0
	if ev.Degraded && s.Shots.IfFailing == "stop" {
		return e.pause(ctx, run.PassFailed, "no screenshots: "+ev.Message, "")
	}
	return e.j.emit(ctx, run.KindScreenshots, e.round.Stage, ev)
}

// handleScreenshotFailure journals a failed attempt, and waits before the next one: 5 s, then 10 s (requirement
// 002 §4.3.5).
func (e *engine) handleScreenshotFailure(ctx workflow.Context, ev run.Screenshots, res contract.ShotsResult,
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
	if err := e.j.emit(ctx, run.KindShotsAttempt, e.round.Stage, a); err != nil || wait == 0 {
		return true, err
	}
	e.control.unflushed = true
	e.showDetails(ctx)
	return e.sleepUnlessPaused(ctx, time.Duration(float64(wait)*e.in.Options.TimeScale),
		"before the next screenshot attempt")
}

// maxLostWorkers is the maximum number of workers lost during one set of screenshots.
const maxLostWorkers = 10

// heartbeatTimedOut reports whether the worker was lost.
func heartbeatTimedOut(err error) bool {
	var t *temporal.TimeoutError
	return errors.As(err, &t) && t.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT
}

func (e *engine) takeScreenshots(ctx workflow.Context, at run.Place, s contract.Step,
	last bool) (contract.ShotsResult, error) {
	var res contract.ShotsResult
	if e.j.state.Artifact == nil {
		return contract.ShotsResult{Message: "there is no artifact", Permanent: true}, nil
	}
	in := contract.ShotsInput{
		RunID: e.in.Target.RunID, Store: e.in.Target.Store, PlanUse: e.planUse(), Artifact: *e.j.state.Artifact,
		Name:        e.in.Start.Artifact.File,
		Shots:       *s.Shots,
		HeartbeatMS: e.in.Options.HeartbeatMS, Last: last,
		Call: fmt.Sprintf("%s/g%d.%s.%d.-.1", e.callPrefix(), e.j.state.Generation, s.Key, at.Round),
	}
	in.RecordedRun, in.Generations = e.recordedRun()
	id := fmt.Sprintf("screenshots-%d", at.Round)
	opts := e.callOptions(ctx, e.screenshotQueue(s), id, fmt.Sprintf("screenshots of round %d", at.Round),
		5*time.Minute, 0)
	err := workflow.ExecuteActivity(opts, contract.TakeScreenshots, in).Get(ctx, &res)
	if err != nil && ctx.Err() == nil && !heartbeatTimedOut(err) && !isType(err, contract.ErrDiskFull) &&
		!isType(err, contract.ErrNoStore) && !isType(err, contract.ErrNoSlot) {
		return contract.ShotsResult{Message: errorMessage(err)}, nil
	}
	return res, err
}
