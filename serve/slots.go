package serve

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// pool bounds how many tasks of several queues one worker works on. A poll holds no slot of it, so a queue without tasks takes none from another.
type pool struct {
	mu      sync.Mutex
	most    int
	used    int
	changed chan struct{} // closed and replaced when a slot may have become free
}

func newPool(most int) *pool { return &pool{most: most, changed: make(chan struct{})} }

// tell wakes all who wait for a slot. The lock is held.
func (p *pool) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// gate lets the polls of one queue through while the pool has slots and the gate is open. It is a [worker.SlotSupplier].
type gate struct {
	*pool
	shut  bool
	polls int // that wait for a task
	tasks int
}

// slot is the data of a permit.
type slot struct{ used bool }

func (g *gate) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		permit, changed := g.try()
		if permit != nil {
			return permit, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (g *gate) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit {
	permit, _ := g.try()
	return permit
}

func (g *gate) try() (permit *worker.SlotPermit, changed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || g.used+g.polls >= g.most {
		return nil, g.changed
	}
	g.polls++
	return &worker.SlotPermit{UserData: &slot{}}, nil
}

func (g *gate) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	info.Permit().UserData.(*slot).used = true
	g.polls, g.tasks, g.used = g.polls-1, g.tasks+1, g.used+1
}

func (g *gate) ReleaseSlot(info worker.SlotReleaseInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if info.Permit().UserData.(*slot).used {
		g.tasks, g.used = g.tasks-1, g.used-1
	} else {
		g.polls--
	}
	g.tell()
}

func (g *gate) MaxSlots() int { return g.most }

// set opens or shuts the gate. Polls that are out come back with a task or without, within a minute.
func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = !open
	g.tell()
}

// empty says that no poll is out and no task is worked on.
func (g *gate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.polls == 0 && g.tasks == 0
}
