package host

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// pool bounds the tasks of several queues that one worker runs at once. A poll holds no slot, so a queue without tasks
// takes none from another queue.
type pool struct {
	mu      sync.Mutex
	size    int
	used    int
	changed chan struct{} // closed and replaced when a slot may have become free
}

func newPool(size int) *pool { return &pool{size: size, changed: make(chan struct{})} }

// notify wakes all goroutines that wait for a slot. The caller holds the lock.
func (p *pool) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// gate admits polls of one queue while the pool has slots and the gate is open. It is a [worker.SlotSupplier].
type slotGate struct {
	*pool
	shut  bool
	polls int // waiting for a task
	tasks int
}

// slot is the data of a permit.
type slot struct{ used bool }

func (g *slotGate) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
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

func (g *slotGate) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit {
	permit, _ := g.try()
	return permit
}

func (g *slotGate) try() (permit *worker.SlotPermit, changed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || g.used+g.polls >= g.size {
		return nil, g.changed
	}
	g.polls++
	return &worker.SlotPermit{UserData: &slot{}}, nil
}

func (g *slotGate) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	info.Permit().UserData.(*slot).used = true
	g.polls, g.tasks, g.used = g.polls-1, g.tasks+1, g.used+1
}

func (g *slotGate) ReleaseSlot(info worker.SlotReleaseInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if info.Permit().UserData.(*slot).used {
		g.tasks, g.used = g.tasks-1, g.used-1
	} else {
		g.polls--
	}
	g.notify()
}

func (g *slotGate) MaxSlots() int { return g.size }

// set opens or shuts the gate. Open polls return within a minute, with or without a task.
func (g *slotGate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = !open
	g.notify()
}

// empty reports whether no poll is open and no task is running.
func (g *slotGate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.polls == 0 && g.tasks == 0
}
