package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// pictures takes screenshots of the artifact, a few times if it must; without them the run goes on, and says so.
func (e *engine) pictures(ctx workflow.Context, at run.Place, s work.Step) error {
	ev := run.Screenshots{Step: s.Key, Round: at.Round, Dir: e.round.Dir, Redo: e.j.state.Redo(), Next: e.after(at)}
	most := max(1, s.Shots.Attempts)
	for lost, away := 0, 0; ev.Attempts < most; {
		if err := e.behindReset(ctx); err != nil {
			return err
		}
		res, err := e.shoot(ctx, at, s, ev.Attempts+1 >= most)
		if isType(err, work.ErrNoSlot) && ctx.Err() == nil {
			continue
		}
		if lostWorker(err) && lost < maxLostShots {
			lost++ // the browser was not to blame
			continue
		}
		if isType(err, work.ErrNoStore) {
			if err := e.await(ctx, away, message(err), never); err != nil {
				return err
			}
			away++
			continue
		}
		if isType(err, work.ErrDiskFull) {
			return e.pause(ctx, run.DiskFull, message(err), "")
		}
		if err != nil {
			return err
		}
		ev.Attempts++
		ev.Manifest, ev.Count, ev.DurationMS, ev.Message = res.Manifest, res.Count, ev.DurationMS+res.DurationMS, res.Message
		if res.Source != "" {
			reused := run.Effect{Step: s.Key, Class: run.EffectRead, Policy: e.policy(), Status: "reused", Source: res.Source, Result: res.Manifest.Digest}
			if err := e.j.emit(ctx, run.KindEffectReused, e.round.Stage, reused); err != nil {
				return err
			}
		}
		if err := e.noteTroubles(ctx, run.ShotsContext(ev.Dir, ev.Round), res.Troubles, ev.Attempts); err != nil {
			return err
		}
		if res.Message == "" {
			break
		}
		if res.Permanent {
			most = ev.Attempts
		}
		if whole, err := e.shotsFailed(ctx, ev, res, most); err != nil || !whole {
			return err
		}
	}
	ev.Degraded = ev.Count == 0
	if ev.Degraded && s.Shots.IfFailing == "stop" {
		return e.pause(ctx, run.PassFailed, "no screenshots: "+ev.Message, "")
	}
	return e.j.emit(ctx, run.KindScreenshots, e.round.Stage, ev)
}

// shotsFailed journals an attempt that gave no pictures, and waits for the next one if there is one: 5 s, then 10 s (requirement 002 §4.3.5).
func (e *engine) shotsFailed(ctx workflow.Context, ev run.Screenshots, res work.ShotsResult, most int) (whole bool, err error) {
	a := run.ShotsAttempt{Step: ev.Step, Round: ev.Round, Dir: ev.Dir, Attempt: ev.Attempts, Message: res.Message, DurationMS: res.DurationMS}
	var wait time.Duration
	if ev.Attempts < most {
		wait = time.Duration(ev.Attempts) * 5 * time.Second
		a.RetryInMS = wait.Milliseconds()
	}
	if err := e.j.emit(ctx, run.KindShotsAttempt, e.round.Stage, a); err != nil || wait == 0 {
		return true, err
	}
	e.control.dirty = true // the courier carries it while the run waits
	e.show(ctx)
	return e.wait(ctx, time.Duration(float64(wait)*e.in.Options.TimeScale), "before the next attempt at the screenshots")
}

// maxLostShots is how many workers may be lost over one set of pictures.
const maxLostShots = 10

// lostWorker says that a delivery ended with its worker.
func lostWorker(err error) bool {
	var t *temporal.TimeoutError
	return errors.As(err, &t) && t.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT
}

func (e *engine) shoot(ctx workflow.Context, at run.Place, s work.Step, last bool) (work.ShotsResult, error) {
	var res work.ShotsResult
	if e.j.state.Artifact == nil {
		return work.ShotsResult{Message: "there is no artifact to take pictures of", Permanent: true}, nil
	}
	in := work.ShotsInput{
		RunID: e.in.Target.RunID, Store: e.in.Target.Store, Artifact: *e.j.state.Artifact, Name: e.in.Start.Artifact.File, Shots: *s.Shots,
		HeartbeatMS: e.in.Options.HeartbeatMS, Last: last,
		Call: fmt.Sprintf("%s/g%d.%s.%d.-.1", e.callRoot(), e.j.state.Generation, s.Key, at.Round),
	}
	in.Recorded, in.Generations = e.recorded()
	id := fmt.Sprintf("screenshots-%d", at.Round)
	opts := e.call(ctx, e.shotsQueue(s), id, fmt.Sprintf("screenshots of round %d", at.Round), 5*time.Minute, 0)
	err := workflow.ExecuteActivity(opts, work.TakeScreenshots, in).Get(ctx, &res)
	if err != nil && ctx.Err() == nil && !lostWorker(err) && !isType(err, work.ErrDiskFull) && !isType(err, work.ErrNoStore) && !isType(err, work.ErrNoSlot) {
		return work.ShotsResult{Message: message(err)}, nil
	}
	return res, err
}
