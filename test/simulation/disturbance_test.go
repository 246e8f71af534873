package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
)

// happens decides whether a disturbance happens, and records it. A shrunk plan lists those that do.
func (w *world) happens(name string, chance func() bool) bool {
	if w.plan.only == nil && !chance() || w.plan.only != nil && !slices.Contains(w.plan.only, name) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened = append(w.happened, name)
	return true
}

// dice are the choices of a disturbance. They follow from the seed and the step alone, so that a shrunk plan, in which
// other disturbances are missing, has the same ones.
func (w *world) dice() *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(w.picks)<<1|1)) }

// disturb does what may happen before a ticket continues, and returns the error with which its step fails.
func (w *world) disturb(k *ticket) error {
	r := w.dice()
	if k.worker != nil {
		w.steps++
		if w.plan.planned != nil && w.steps >= w.plan.plannedAt && w.plan.planned(w) {
			w.plan.planned = nil
		}
		if w.steps == w.plan.crashAt {
			w.count[crash]++
			return w.crash(k, r)
		}
	}
	for _, t := range disturbances {
		do := w.possible(t, k, r)
		if do == nil || w.count[t] >= w.plan.most[t] && w.plan.only == nil {
			continue
		}
		if w.happens(fmt.Sprintf("%d %s", w.picks, t), func() bool { return r.IntN(w.plan.calm) == 0 }) {
			w.count[t]++
			return do()
		}
	}
	return w.refused(k)
}

// possible returns what a disturbance does; nil: it cannot happen now.
func (w *world) possible(t disturbance, k *ticket, r *rand.Rand) func() error {
	switch t {
	case crash:
		if k.worker == nil {
			return nil
		}
		return func() error { return w.crash(k, r) }
	case loss:
		if f := w.anyFlight(r); f != nil {
			return func() error { w.note("lost delivery " + f.key); f.lose(nil); return nil }
		}
	case kill:
		if all := w.machine.agents(); len(all) > 0 {
			p := all[r.IntN(len(all))]
			return func() error { w.note("killed supervisor of " + w.callName(p.dir)); p.end(); return nil }
		}
	case note:
		return func() error { w.message(r); return nil }
	case fullDisk:
		return func() error { w.full = 1 + r.IntN(30); w.note("the disk is full"); return w.refused(k) }
	case awayStore:
		return func() error { w.away = 1 + r.IntN(6); w.note("the store is away"); return w.refused(k) }
	case unreadable:
		return func() error {
			w.note("the store cannot be read")
			w.mu.Lock()
			w.unread = 1 + r.IntN(6)
			w.mu.Unlock()
			return w.refused(k)
		}
	case terminated, reset, restored:
		return w.ending(t, r)
	}
	return nil
}

// ending returns how the workflow can be ended now.
func (w *world) ending(t disturbance, r *rand.Rand) func() error {
	first := w.first
	switch n := len(w.begun); {
	case w.leaves(), w.epochs == maxEpochs-1: // no epoch could follow
		return nil
	case t == terminated:
		return func() error { w.terminate(r, -1); return nil }
	case t == restored:
		first = 0
		fallthrough
	case n > first:
		return func() error { w.terminate(r, first+r.IntN(n-first)); return nil }
	}
	return nil
}

// crash kills the worker of a step.
func (w *world) crash(k *ticket, r *rand.Rand) error {
	w.note("crash of " + k.worker.name)
	k.worker.crash()
	if k.op == disk.OpWrite && k.bytes > 1 {
		return disk.Torn{Bytes: r.IntN(k.bytes)}
	}
	return nil
}

// refused fails a step while the disk is full or the store is away.
func (w *world) refused(k *ticket) error {
	grows := slices.Contains([]disk.Op{disk.OpMkdir, disk.OpCreate, disk.OpWrite, disk.OpLink}, k.op)
	switch {
	case w.full > 0 && k.worker != nil && grows:
		w.full--
		if k.op == disk.OpWrite && k.bytes > 1 {
			return fmt.Errorf("%w: %w", disk.Torn{Bytes: k.bytes / 2}, syscall.ENOSPC)
		}
		return syscall.ENOSPC
	case w.away > 0 && strings.HasPrefix(k.path, w.storeFolder()):
		w.away--
		return store.ErrUnreachable
	}
	return nil
}
