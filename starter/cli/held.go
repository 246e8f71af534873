package cli

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/serve"
	"github.com/passbook-run/passbook/volume"
)

// heldUp says in a line why an open run does not continue although nobody has paused it, and what to do; empty: it continues, or it is not known.
// recorded is the status in the directory; without it the workflow is asked in any case.
func (s *session) heldUp(ctx context.Context, d rundir.Dir, recorded run.Status) string {
	if s.Embedded {
		if text := stateFull(s.Settings.StateDir); text != "" {
			return text
		}
	}
	claim, err := d.Claim()
	if err != nil {
		return "" // whoever reads the directory next reports it
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	h := s.Held(ctx, claim.RunID, s.Standing(ctx, d.Seat(claim), recorded))
	if h == nil {
		return ""
	}
	return heldWords(*h, d)
}

func heldWords(h run.Held, d rundir.Dir) string {
	if h.DiskFull {
		return fmt.Sprintf("Paused, a disk is full: %s. Nothing is lost. Free space there, then run: %s resume %s", h.Cause, program(), shell.Quote(d.Root))
	}
	if h.Waits {
		return fmt.Sprintf("Held up: %s.", h.Cause)
	}
	return fmt.Sprintf("Held up: %s. Fix the cause: it is tried again every few seconds, and the run then continues by itself.", h.Cause)
}

// noWorkerWords say which queues of a run no worker polls, and since when.
func noWorkerWords(n run.NoWorker) string {
	since := "for more than five minutes"
	if n.Since != "" {
		since = "since " + second(n.Since)
	}
	return fmt.Sprintf("no worker polls %s %s", strings.Join(n.Queues, ", "), since)
}

func second(ts string) string {
	t, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return ts
	}
	return t.Format("2006-01-02 15:04:05 UTC")
}

// startsWorker is what to type where no worker polls.
func (a *app) startsWorker() string {
	if conn, err := serve.FindConnection(a.settings); err == nil && conn.Explicit {
		return program() + " worker"
	}
	return program() + " server start"
}

// heldLine is what keeps an open run from continuing, as [app.watch] prints it; empty: nothing does, or it is not known.
func (a *app) heldLine(s run.Standing, d rundir.Dir) string {
	switch {
	case s.NoWorker != nil:
		return fmt.Sprintf("Held up: %s. Start one: %s", noWorkerWords(*s.NoWorker), a.startsWorker())
	case s.Held != nil:
		return heldWords(*s.Held, d)
	}
	return ""
}

// stateFull says that the embedded server cannot write its database; then no workflow continues, and none can say so.
func stateFull(dir string) string {
	on, err := volume.Of(dir)
	switch {
	case err != nil:
		return fmt.Sprintf("Held up: the state directory cannot be read: %v", err)
	case on.Full():
		return fmt.Sprintf("Held up: the embedded server cannot write to the state directory %s (%s). Free space there: the run then continues by itself.", dir, on)
	}
	return ""
}

// sayAgain is how long a notice that has changed is held back: it may name another temporary file each time.
const sayAgain = time.Minute

// notices keeps the same line from being printed over and over.
type notices struct {
	last string
	at   time.Time
}

// fresh says whether a notice is to be printed now.
func (n *notices) fresh(text string, now time.Time) bool {
	if text == "" || text == n.last || n.last != "" && now.Sub(n.at) < sayAgain {
		return false
	}
	n.last, n.at = text, now
	return true
}

// pauseForDisk gives a run that a full disk has paused a moment: with a resume on its way, the pause and the end of it are written one after the other
// as soon as there is space.
type pauseForDisk struct{ since time.Time }

// briefly says that a run that rests may continue at any moment.
func (p *pauseForDisk) briefly(s run.State, rests bool, now time.Time) bool {
	if !rests || s.Status != run.Paused || s.Reason != run.DiskFull {
		p.since = time.Time{}
		return false
	}
	if p.since.IsZero() {
		p.since = now
	}
	return now.Sub(p.since) < askFor
}

// notice is what holds a run up, for a screen: it is found out in the background.
type notice struct{ text atomic.Pointer[string] }

func (n *notice) set(text string) { n.text.Store(&text) }

// why adds the notice to what a screen shows of a run that rests or is over.
func (n *notice) why(s run.State, stands run.Status) string {
	if text := n.text.Load(); text != nil && *text != "" && stands.Class() == run.Live {
		return *text
	}
	return restsFor(s, stands)
}

// followed waits until a directory follows a resume. A text says why it does not.
func (s *session) followed(ctx context.Context, d rundir.Dir, before rundir.Meta) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ask := time.Now().Add(askFor)
	err = every(ctx, refresh, func(now time.Time) (bool, error) {
		m, err := d.Meta()
		resumed := m.State.Starts > before.State.Starts || m.State.Status != run.Paused && m.Events.Seq > before.Events.Seq
		if err == nil && resumed {
			return true, nil
		}
		if now.Before(ask) {
			return false, nil
		}
		ask = now.Add(askFor)
		text = s.heldUp(ctx, d, "")
		return text != "", nil
	})
	return text, err
}
