package simulation_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// world is one simulated run: a host with workers, the disk, and the scheduler that lets one of them run at a time.
type world struct {
	seed    uint64
	plan    plan
	random  *rand.Rand // only the scheduler, and the process whose turn it is, may use it
	answers *rand.Rand // of the operator
	root    string
	dir     rundir.Dir
	store   string
	machine *machine
	calls   *callLog
	fault   fault // planted

	mu       sync.Mutex
	parked   []*ticket
	arrivals chan struct{}
	over     chan struct{}
	workers  []*worker
	flights  []*inFlight
	env      *testsuite.TestWorkflowEnvironment // of the open execution; nil: none is open
	real     *realRun                           // instead, of a run with a real server
	broken   []error
	log      []string
	picks    int
	steps    int // of workers on the disk
	quiets   int
	count    map[disturbance]int
	happened []string       // disturbances, as a plan lists them
	faults   []string       // ways in which agents fail, in order
	failed   map[string]int // how often they did
	full     int            // steps that a full disk fails
	away     int            // steps that an absent store fails
	unread   int            // reads of the store that fail
	begun    []begun        // the executions that led to the open one, with it
	first    int            // of this epoch
	amended  run.PlanRef    // another plan in the store
	reverts  bool           // the operator reverts the run when it pauses
	resetTo  int            // the one that the next execution repeats; -1: none

	retries            map[string]bool // activities that the environment repeats
	left               bool            // it has left a goroutine behind
	running            bool            // the last epoch has no end: its workflow was ended
	began              int64           // last event before this epoch
	stopped            bool            // it does not end
	epochs, executions int             // beyond the first epoch; in all

	settled map[string]settled // files that must no longer change

	meta    []byte // that a planted fault puts back
	journal []byte // as the last projection left it
	read    *reading
	batches int
}

// ticket is one goroutine that waits for its turn.
type ticket struct {
	key    string
	name   string  // without what differs between two executions of the same seed
	worker *worker // of a step
	op     disk.Op
	path   string
	bytes  int
	turn   chan order
}

// order is the decision that a ticket receives with its turn.
type order struct {
	worker *worker // that executes an activity
	err    error   // with which a step fails
}

// park waits for the turn of a ticket.
func (w *world) park(k *ticket) order {
	k.turn, k.name = make(chan order, 1), w.name(k.key)
	w.mu.Lock()
	w.parked = append(w.parked, k)
	w.mu.Unlock()
	select {
	case w.arrivals <- struct{}{}:
	default:
	}
	return <-k.turn
}

// choose returns a number below n.
func (w *world) choose(n int) int { return w.random.IntN(n) }

// schedule lets one ticket run at a time until the run has ended. All other goroutines are blocked when it chooses,
// so the order depends on the seed alone.
func (w *world) schedule() {
	for {
		select {
		case <-w.arrivals:
		case <-w.over:
			return
		}
		for w.tick(); w.pick(); w.tick() {
		}
	}
}

// tick waits until all other goroutines are blocked. It takes time, so that the timers that two of them set at
// different turns never fire at the same time: which of them is first would not depend on the seed.
func (w *world) tick() {
	const odd = 1007 * time.Nanosecond // not in a whole number of times in any interval of the programs
	time.Sleep(odd)
	synctest.Wait()
}

// pick lets one ticket continue, and returns false if none waits.
func (w *world) pick() bool {
	w.mu.Lock()
	waiting := slices.Clone(w.parked)
	w.mu.Unlock()
	if len(waiting) == 0 {
		return false
	}
	if w.picks++; w.picks > maxPicks {
		w.stop(fmt.Errorf("the run does not end: %d steps", w.picks))
	}
	slices.SortStableFunc(waiting, func(a, b *ticket) int { return cmp.Compare(a.name, b.name) })
	k := waiting[w.choose(len(waiting))]
	w.note(k.name)
	o := w.order(k)
	w.mu.Lock()
	w.parked = slices.DeleteFunc(w.parked, func(p *ticket) bool { return p == k })
	w.mu.Unlock()
	k.turn <- o
	return true
}

const maxPicks = 60_000

// order decides what a ticket does. Its own choices do not depend on what disturbs the run.
func (w *world) order(k *ticket) order {
	o := order{worker: k.worker}
	late, place := w.choose(40), w.choose(len(w.workers))
	seconds := time.Duration(1+w.choose(15)) * time.Second
	if o.err = w.disturb(k); late == 0 {
		time.Sleep(seconds)
	}
	if o.worker == nil {
		o.worker = w.workers[place]
	}
	return o
}

var (
	temporary = regexp.MustCompile(`\.tmp\.[0-9A-Za-z]+`)
	digests   = regexp.MustCompile(`[0-9a-f]{12,}`) // some depend on the name of the world's folder
)

// name is a path without what differs between two executions of the same seed.
func (w *world) name(path string) string {
	path = temporary.ReplaceAllString(strings.ReplaceAll(path, w.root, "ROOT"), ".tmp")
	return digests.ReplaceAllString(path, "#")
}

// callName is the call and delivery of a scratch directory.
func (w *world) callName(dir string) string {
	call := filepath.Base(filepath.Dir(dir))
	return call + "/" + filepath.Base(dir)
}

// note adds a line to the record of the run.
func (w *world) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, line)
}

// fail records that something does not hold.
func (w *world) fail(format string, args ...any) { w.check(fmt.Errorf(format, args...)) }

func (w *world) check(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, err)
}

func (w *world) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.broken...)
}

// stop terminates a run that does not end.
func (w *world) stop(err error) {
	if w.picks > 2*maxPicks { // it did not help
		panic(fmt.Sprintf("%v; the last steps:\n%s", err, strings.Join(w.log[max(0, len(w.log)-30):], "\n")))
	}
	if w.stopped {
		return
	}
	w.check(err)
	w.stopped, w.resetTo = true, -1
	if w.real == nil {
		w.env.SignalWorkflow(termination, nil)
	}
}
