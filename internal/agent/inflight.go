package agent

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// InFlightCalls are the running calls of this process by call id: a call has at most one child here. The zero
// value is ready. It is safe for concurrent use.
type InFlightCalls struct {
	mu   sync.Mutex
	byID map[string]*InFlightCall
}

// InFlightCall is one call that is running, or ended and not yet removed.
type InFlightCall struct {
	ID    string
	Child *Child
	ready chan struct{} // closed when Child or err is set
	err   error
}

// Join returns the call with an id. The first caller starts it; others join the same one, even after it ended,
// until Remove. If start fails, all waiting callers get its error and the next Join starts again.
func (f *InFlightCalls) Join(id string, start func() (*Child, error)) (call *InFlightCall, joined bool, err error) {
	call, joined = f.getOrAdd(id)
	if joined {
		<-call.ready
		if call.err != nil {
			return nil, true, call.err
		}
		return call, true, nil
	}
	defer close(call.ready)
	call.Child, call.err = start()
	if call.err != nil {
		f.remove(id, call)
		return nil, false, call.err
	}
	return call, false, nil
}

func (f *InFlightCalls) getOrAdd(id string) (*InFlightCall, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call, ok := f.byID[id]; ok {
		return call, true
	}
	if f.byID == nil {
		f.byID = map[string]*InFlightCall{}
	}
	call := &InFlightCall{ID: id, ready: make(chan struct{})}
	f.byID[id] = call
	return call, false
}

func (f *InFlightCalls) remove(id string, call *InFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[id] == call {
		delete(f.byID, id)
	}
}

// Remove removes a call whose result was stored, if it is the current one of its id.
func (f *InFlightCalls) Remove(call *InFlightCall) { f.remove(call.ID, call) }

// Kill ends the child of one call and reports whether there was one. It does not wait. The error is that of
// [Child.Kill].
func (f *InFlightCalls) Kill(id, cause string) (bool, error) {
	f.mu.Lock()
	call, ok := f.byID[id]
	f.mu.Unlock()
	if !ok {
		return false, nil
	}
	return call.kill(cause)
}

// KillAll ends every child and waits for all of them.
func (f *InFlightCalls) KillAll(cause string) (err error) {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.byID))
	f.mu.Unlock()
	for _, call := range all {
		_, failed := call.kill(cause)
		err = errors.Join(err, failed)
	}
	for _, call := range all {
		if call.Child != nil {
			<-call.Child.Done()
		}
	}
	return err
}

func (f *InFlightCall) kill(cause string) (bool, error) {
	<-f.ready
	if f.Child == nil {
		return false, nil
	}
	return true, f.Child.Kill(cause)
}
