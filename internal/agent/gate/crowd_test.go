package gate

import (
	"container/heap"
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/run"
)

var crowds = flag.Bool("gate.all", false, "1,000 waiting runs for an hour, and 200 through a gate of 4")

// moment is what happens at a time.
type moment struct {
	at time.Time
	do func()
}

type agenda []moment

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(m any)        { *a = append(*a, m.(moment)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// crowd are runs that make one call each, on the clock of their host.
type crowd struct {
	*host
	agenda  agenda
	takes   time.Duration // of a call
	places  int
	running int
	waiting map[string]bool
	asked   int
	before  map[string]bool // who has asked
	started []string        // in order
	freed   time.Time
	empty   time.Duration // the longest time that a place was free while a call waited
}

func (c *crowd) after(d time.Duration, do func()) { heap.Push(&c.agenda, moment{c.now.Add(d), do}) }

// step lets the next moment happen.
func (c *crowd) step() bool {
	if len(c.agenda) == 0 {
		return false
	}
	m := heap.Pop(&c.agenda).(moment)
	c.pass(m.at.Sub(c.now))
	if c.running < c.places && len(c.waiting) > 0 {
		c.empty = max(c.empty, c.now.Sub(c.freed))
	}
	m.do()
	return true
}

// asks has a run ask for its call until it may make it.
func (c *crowd) ask(id string) {
	if !c.waiting[id] {
		return // it was cancelled
	}
	c.asked++
	if c.before[id] { // first its workflow asks
		at, _, err := c.Ask(c.t.Context(), run.Limit{Kind: run.LimitAtOnce, AccountID: ticket(id)})
		require.NoError(c.t, err)
		if !at.IsZero() {
			c.after(at.Sub(c.now), func() { c.ask(id) })
			return
		}
	}
	c.before[id] = true
	n := c.need(id)
	if no := c.asks(n); no != nil {
		at, err := time.Parse(run.TimeFormat, no.Limit.Again)
		require.NoError(c.t, err)
		c.after(at.Sub(c.now), func() { c.ask(id) })
		return
	}
	delete(c.waiting, id)
	c.started = append(c.started, id)
	if c.running++; c.running < c.places {
		c.freed = c.now
	}
	require.LessOrEqual(c.t, c.running, c.places)
	c.claim(n)
	c.after(c.takes, func() {
		c.answer(n, exact(0.01))
		c.settled(id)
		if c.running--; c.running == c.places-1 {
			c.freed = c.now
		}
	})
}

func newCrowd(t *testing.T, runs, places int, takes time.Duration) *crowd {
	c := &crowd{host: newHost(t, atOnce(config.AtOnce{Account: places})), takes: takes, places: places,
		waiting: map[string]bool{}, before: map[string]bool{}}
	for i := range runs {
		id := fmt.Sprintf("r%04d/1", i)
		c.waiting[id] = true
		c.after(time.Duration(i)*time.Millisecond, func() { c.ask(id) })
	}
	c.freed = c.now
	return c
}

// TestPlacesAreUsed: while calls of two seconds wait for four places, none is empty for more than ten seconds, and they
// are made in the order in which they first asked, also beside runs that never ask again.
func TestPlacesAreUsed(t *testing.T) {
	const places, bound = 4, 10 * time.Second
	runs, gone := 40, 9
	if *crowds {
		runs, gone = 200, 29
	}
	c := newCrowd(t, runs, places, 2*time.Second)
	for i := range runs { // some are cancelled while they wait
		if i%7 == 6 && i > places {
			c.after(20*time.Second, func() { delete(c.waiting, fmt.Sprintf("r%04d/1", i)) })
		}
	}
	for c.step() {
	}
	require.Empty(t, c.waiting)
	require.Greater(t, len(c.started), runs-gone)
	require.LessOrEqual(t, c.empty, bound)
	require.IsIncreasing(t, c.started)
	t.Logf("%d calls of %s at %d places: %s, %.1f questions a call, no place empty for more than %s", len(c.started), c.takes,
		places, c.now.Sub(begin).Round(time.Second), float64(c.asked)/float64(len(c.started)), c.empty.Round(time.Millisecond))
}

// TestManyRunsWait counts what the questions of many waiting runs cost.
func TestManyRunsWait(t *testing.T) {
	runs, minutes := 100, 5
	if *crowds {
		runs, minutes = 1000, 60
	}
	c := newCrowd(t, runs, 4, 10*time.Minute)
	for c.now.Before(begin.Add(10 * time.Minute)) {
		c.step() // the first minutes, until their waits are those of their places
	}
	var before, after syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	asked, from, real := c.asked, c.now, time.Now()
	for c.now.Before(from.Add(time.Duration(minutes) * time.Minute)) {
		c.step()
	}
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	asked = c.asked - asked
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	fi, err := os.Stat(c.path)
	require.NoError(t, err)
	perMinute := float64(asked) / float64(minutes)
	t.Logf("%d runs wait: %.0f questions a minute, %s of CPU each (%.2f %% of a core), %s each; heap %d KiB, file %d KiB",
		runs, perMinute, cpu/time.Duration(asked), 100*cpu.Seconds()/float64(minutes*60),
		time.Since(real)/time.Duration(asked), m.HeapAlloc>>10, fi.Size()>>10)
	require.Less(t, perMinute, float64(runs))
	require.Less(t, cpu.Seconds()/float64(minutes*60), 0.1, "of a core")
}
