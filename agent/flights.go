package agent

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// Flights are the calls under way in this process, by call id: a call has at most one child here, whoever asks.
// The zero value is ready. It is safe for concurrent use.
type Flights struct {
	mu sync.Mutex
	by map[string]*Flight
}

// Flight is one call under way, or ended and not yet taken care of.
type Flight struct {
	ID    string
	Child *Child
	ready chan struct{} // closed when Child or err is set
	err   error
}

// Join returns the flight of a call. The first caller starts it; others get the same one (joined is true), also after it ended, until Forget.
// When start fails, everyone waiting gets its error and the next Join starts afresh.
func (f *Flights) Join(id string, start func() (*Child, error)) (flight *Flight, joined bool, err error) {
	flight, joined = f.enter(id)
	if joined {
		<-flight.ready
		if flight.err != nil {
			return nil, true, flight.err
		}
		return flight, true, nil
	}
	defer close(flight.ready)
	flight.Child, flight.err = start()
	if flight.err != nil {
		f.remove(id, flight)
		return nil, false, flight.err
	}
	return flight, false, nil
}

func (f *Flights) enter(id string) (*Flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flight, ok := f.by[id]; ok {
		return flight, true
	}
	if f.by == nil {
		f.by = map[string]*Flight{}
	}
	flight := &Flight{ID: id, ready: make(chan struct{})}
	f.by[id] = flight
	return flight, false
}

func (f *Flights) remove(id string, flight *Flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[id] == flight {
		delete(f.by, id)
	}
}

// Forget drops a flight whose result was taken care of. A flight that is not the current one of its id is left alone.
func (f *Flights) Forget(flight *Flight) { f.remove(flight.ID, flight) }

// Kill ends the child of one call and says whether there was one. It does not wait for the end. The error is that of [Child.Kill].
func (f *Flights) Kill(id, cause string) (bool, error) {
	f.mu.Lock()
	flight, ok := f.by[id]
	f.mu.Unlock()
	if !ok {
		return false, nil
	}
	return flight.kill(cause)
}

// KillAll ends every child and waits until all of them are gone.
func (f *Flights) KillAll(cause string) (err error) {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.by))
	f.mu.Unlock()
	for _, flight := range all {
		_, failed := flight.kill(cause)
		err = errors.Join(err, failed)
	}
	for _, flight := range all {
		if flight.Child != nil {
			<-flight.Child.Done()
		}
	}
	return err
}

func (f *Flight) kill(cause string) (bool, error) {
	<-f.ready
	if f.Child == nil {
		return false, nil
	}
	return true, f.Child.Kill(cause)
}
