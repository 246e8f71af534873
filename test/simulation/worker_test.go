package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// worker is a worker process. When it crashes, every step that it takes later ends its goroutine, and another worker
// has its place.
type worker struct {
	w     *world
	name  string
	proc  *simulated
	acts  *activities.Activities
	does  map[string]reflect.Value // activities by name
	dead  bool                     // only the scheduler sets it
	place int

	flights []*inFlight // all that it got
}

const hostName = "here"

// start starts a worker in a place.
func (w *world) start(place int) *worker {
	k := &worker{w: w, place: place, does: map[string]reflect.Value{}}
	k.proc = w.machine.spawn("", process.Identity{})
	w.machine.next = k
	k.name = fmt.Sprintf("worker %d", k.proc.id.PID)
	var err error
	k.acts, err = activities.New(activities.Config{
		Host: hostName, Scratch: filepath.Join(w.root, "scratch"), Machine: w.machine.boot, OnStep: k.step, OnRead: k.reads,
		Sandbox: config.Sandbox{Mode: "none"}, OnPoint: k.point, Getenv: func(string) string { return "" },
		Concurrency: config.Concurrency{Projections: 4, Segments: 4, Checkouts: 4, Screenshots: 4, Notices: 4},
	})
	w.check(err)
	k.acts.RegisterDirectory(registry{to: k.does})
	k.acts.RegisterLocal(registry{to: k.does})
	k.acts.RegisterCalls(registry{to: k.does})
	return k
}

// crash kills the worker: its deliveries are lost, its waiting supervisors end, and a new worker starts.
func (k *worker) crash() {
	w := k.w
	w.keep()
	w.crashed()
	k.dead = true
	k.proc.end()
	w.machine.orphan(k)
	for _, f := range k.flights { // also those that the server no longer waits for
		f.lose(errCrashed)
	}
	w.workers[k.place] = w.start(k.place)
}

var errCrashed = errors.New("the worker has crashed")

// step is called before each step of the worker on the disk.
func (k *worker) step(s activities.Step) error {
	if k.dead {
		runtime.Goexit()
	}
	k.w.plant(s)
	if s.Path == k.w.storeFolder() || s.Path == k.w.root { // the store is opened with a mutex held
		return nil
	}
	o := k.w.park(&ticket{key: fmt.Sprintf("%s: %s %s", k.name, s.Op, k.w.name(s.Path)), worker: k,
		op: disk.Op(s.Op), path: s.Path, bytes: len(s.Data)})
	if o.err == nil && k.dead {
		runtime.Goexit()
	}
	return o.err
}

// reads is called before the worker reads a file of the store. It does not wait for its turn.
func (k *worker) reads(string) error {
	if k.dead {
		runtime.Goexit()
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if k.w.unread == 0 {
		return nil
	}
	k.w.unread--
	return store.ErrUnreachable
}

// point is called between the steps of a call.
func (k *worker) point(activities.Point, string) {
	if k.dead {
		runtime.Goexit()
	}
}

// registry takes the activities of a worker.
type registry struct{ to map[string]reflect.Value }

func (r registry) RegisterActivity(any) {}

func (r registry) RegisterActivityWithOptions(f any, o activity.RegisterOptions) {
	r.to[o.Name] = reflect.ValueOf(f)
}

func (r registry) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}

// inFlight is one delivery of an activity to a worker.
type inFlight struct {
	key    string
	worker *worker
	local  bool
	cancel context.CancelCauseFunc
	gone   chan error // gets why the server no longer waits for it
}

// lose has the server give up a delivery, which continues unless its worker has crashed.
func (f *inFlight) lose(crashed error) {
	select {
	case f.gone <- crashed:
	default:
	}
	if crashed != nil {
		f.cancel(crashed)
	}
}

// anyFlight returns one of the deliveries that can be lost; nil: there is none.
func (w *world) anyFlight(r *rand.Rand) *inFlight {
	w.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(w.flights), func(f *inFlight) bool { return f.local || len(f.gone) > 0 })
	w.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *inFlight) int { return strings.Compare(a.key, b.key) })
	return all[r.IntN(len(all))]
}

var localActivities = []string{contract.ReadRound, contract.Compose, contract.FindCheckpoint, contract.Amend}

// perform executes an activity: on another worker whenever a delivery is lost, except for a call, which the workflow
// repeats itself. The environment would leave a goroutine behind if the workflow ended before the next attempt.
func (w *world) perform(name string, args []reflect.Value) []reflect.Value {
	ctx := args[0].Interface().(context.Context)
	info := activity.GetInfo(ctx)
	env := w.env
	w.retrying(info.ActivityID, false)
	for n := 0; ; n++ {
		f := &inFlight{key: fmt.Sprintf("%s %s, attempt %d.%d", name, info.ActivityID, info.Attempt, n),
			local: slices.Contains(localActivities, name), gone: make(chan error, 1)}
		out, ok := w.deliver(ctx, name, f, args[1])
		if ok && !out[1].IsNil() {
			w.note(w.name(fmt.Sprintf("%s fails: %v", f.key, out[1].Interface())))
		}
		if ok && out[1].IsNil() {
			return out
		}
		var err error
		switch {
		case ctx.Err() != nil || env.IsWorkflowCompleted():
			err = temporal.NewCanceledError() // no worker gets it again
		case ok:
			w.retrying(info.ActivityID, true)
			return out
		case name == contract.RunPass || name == contract.Turn:
			err = temporal.NewHeartbeatTimeoutError(contract.Heartbeat{Host: hostName})
		default:
			time.Sleep(200 * time.Millisecond)
			continue
		}
		return []reflect.Value{reflect.Zero(f.worker.does[name].Type().Out(0)), reflect.ValueOf(&err).Elem()}
	}
}

// retrying notes that the environment repeats an activity later. If the workflow ends before that, it leaves a
// goroutine behind.
func (w *world) retrying(activity string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.retries == nil {
		w.retries = map[string]bool{}
	}
	w.retries[activity] = is
}

// leaves reports whether a goroutine of the environment may be left behind.
func (w *world) leaves() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left || slices.Contains(slices.Collect(maps.Values(w.retries)), true)
}

// deliver delivers an activity to the worker that the scheduler chooses; false: the delivery was lost.
func (w *world) deliver(ctx context.Context, name string, f *inFlight, in reflect.Value) ([]reflect.Value, bool) {
	stop := waiting(ctx)
	f.worker = w.park(&ticket{key: "begin " + f.key}).worker
	stop()
	// The old one continues after its delivery was lost: only while the server waits, its context is the server's.
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f.cancel = cancel
	unbind := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	w.mu.Lock()
	w.flights, f.worker.flights = append(w.flights, f), append(f.worker.flights, f)
	w.mu.Unlock()
	defer func() {
		unbind()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.flights = slices.DeleteFunc(w.flights, func(o *inFlight) bool { return o == f })
	}()
	done := make(chan []reflect.Value, 1)
	go func() {
		defer cancel(nil)
		done <- f.worker.does[name].Call([]reflect.Value{reflect.ValueOf(inner), in})
	}()
	select {
	case out := <-done:
		if wrote(out[0].Interface()) {
			w.projected()
		}
		return out, true
	case <-f.gone:
		return nil, false
	}
}

// wrote reports whether an activity wrote events.
func wrote(result any) bool {
	switch r := result.(type) {
	case contract.ProjectResult:
		return r.Outcome == run.ProjectionWritten
	case contract.TurnResult:
		return r.Project.Outcome == run.ProjectionWritten
	}
	return false
}

// waiting sends heartbeats until stop: on a server, an activity that waits for a worker has none to lose. The
// environment would not repeat it.
func waiting(ctx context.Context) (stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout == 0 {
		return func() {}
	}
	beat := contract.Heartbeat{Host: hostName}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &beat) != nil {
		beat = contract.Heartbeat{Host: hostName}
	}
	return activities.HeartbeatEvery(ctx, timeout.Milliseconds(), func() any { return beat })
}

// register registers the activities of all workers with an environment.
func (w *world) register() {
	for name, f := range w.workers[0].does {
		typ := f.Type()
		w.env.RegisterActivityWithOptions(reflect.MakeFunc(typ, func(args []reflect.Value) []reflect.Value {
			return w.perform(name, args)
		}).Interface(), activity.RegisterOptions{Name: name})
	}
}

// settle waits until no agent and no delivery is left.
func (w *world) settle() {
	for range 1000 {
		time.Sleep(time.Minute)
		w.mu.Lock()
		left := len(w.flights) + len(w.parked)
		w.mu.Unlock()
		if left+len(w.machine.agents()) == 0 {
			return
		}
	}
	w.fail("agents or deliveries are left")
}
