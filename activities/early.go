package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/workflows/contract"
)

// earlySupervisor is a supervisor that starts while the events before its call are written. As every supervisor, it
// waits until its delivery is claimed, and ends without having done anything if no call claims it.
type earlySupervisor struct {
	started chan struct{}       // closed when process is set
	process *supervisor.Process // nil: it could not be started; the next try reports why
	release func()              // the machine may sleep
}

// startEarly starts the supervisor of a call's first delivery in the background: most calls have no other one. It
// returns the function that ends it if the call did not take it.
func (a *Activities) startEarly(ctx context.Context, in contract.PassInput) (end func()) {
	if a.machine != nil { // it has one order of all steps
		return func() {}
	}
	dir := a.deliveryDir(callID(in), 1)
	awake, release := a.cfg.KeepAwake()
	s := &earlySupervisor{started: make(chan struct{}), release: release}
	a.mu.Lock()
	other := a.early[dir] != nil
	if !other {
		a.early[dir] = s
	}
	a.mu.Unlock()
	if other { // of an attempt that has not ended yet
		release()
		return func() {}
	}
	go func() {
		defer close(s.started)
		if p, err := a.startSupervisor(dir, awake); err == nil {
			s.process = p
		}
	}()
	return func() {
		if !a.removeEarly(dir, s) || s.process == nil {
			return
		}
		if err := s.process.Abandon(); err != nil {
			activity.GetLogger(ctx).Warn("end a supervisor without a call", "call", in.Call, "error", err)
		}
	}
}

// takeEarly returns the supervisor that was started early for a delivery; nil: there is none.
func (a *Activities) takeEarly(dir string) *supervisor.Process {
	a.mu.Lock()
	s := a.early[dir]
	a.mu.Unlock()
	if s == nil || !a.removeEarly(dir, s) || s.process == nil {
		return nil
	}
	select {
	case <-s.process.Done(): // it was killed
		return nil
	default:
		return s.process
	}
}

// removeEarly waits until a supervisor has started, and leaves it to the caller; false: the call has it.
func (a *Activities) removeEarly(dir string, s *earlySupervisor) bool {
	a.mu.Lock()
	mine := a.early[dir] == s
	if mine {
		delete(a.early, dir)
	}
	a.mu.Unlock()
	if mine {
		<-s.started
		s.release()
	}
	return mine
}
