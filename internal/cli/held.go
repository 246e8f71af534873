package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// heldUp describes why an open run does not continue although no user paused it, and what to do; empty if it continues
// or the cause is unknown. recorded is the status in the directory; without it the workflow is asked in any case.
func (s *session) heldUp(ctx context.Context, d rundir.Dir, recorded run.Status) string {
	if s.Embedded {
		if text := stateFull(s.Settings.StateDir); text != "" {
			return text
		}
	}
	claim, err := d.Claim()
	if err != nil {
		return "" // the next reader of the directory reports it
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	h := s.Held(ctx, claim.RunID, s.EffectiveStatus(ctx, d.CurrentClaim(claim), recorded))
	if h == nil {
		return ""
	}
	return heldWords(*h, d)
}

func heldWords(h run.Held, d rundir.Dir) string {
	if h.DiskFull {
		return fmt.Sprintf("Paused, a disk is full: %s. Nothing is lost. Free space there, then run: %s resume %s",
			h.Cause, program(), shell.Quote(d.Root))
	}
	if h.Waits {
		return fmt.Sprintf("Held up: %s.", h.Cause)
	}
	const held = "Held up: %s. Fix the cause: the run retries every few seconds and continues automatically."
	return fmt.Sprintf(held, h.Cause)
}

// startsWorker returns the arguments that start a worker.
func (a *app) startsWorker() []string {
	if conn, err := connect.Find(a.settings); err == nil && conn.Explicit {
		return []string{"worker"}
	}
	return []string{"server", "start"}
}

// heldLine describes what holds up an open run, as [app.watch] prints it; empty if nothing does or it is unknown.
func (a *app) heldLine(s run.EffectiveStatus, d rundir.Dir) string {
	switch {
	case s.NoWorker != nil:
		return fmt.Sprintf("Held up: %s. Start one: %s %s",
			view.NoWorker(*s.NoWorker), program(), shell.Line(a.startsWorker()...))
	case s.Held != nil:
		return heldWords(*s.Held, d)
	}
	return ""
}

// stateFull reports that the embedded server cannot write its database: no workflow continues or can report it.
func stateFull(dir string) string {
	on, err := volume.Of(dir)
	switch {
	case err != nil:
		return fmt.Sprintf("Held up: the state directory cannot be read: %v", err)
	case on.Full():
		return fmt.Sprintf("Held up: the embedded server cannot write to the state directory %s (%s). "+
			"Free space there: the run then continues automatically.", dir, on)
	}
	return ""
}

// sayAgain is the minimum time between two different notices: each may name another temporary file.
const sayAgain = time.Minute

// notices suppresses repeated notices.
type notices struct {
	last string
	at   time.Time
}

// fresh reports whether to print a notice now.
func (n *notices) fresh(text string, now time.Time) bool {
	if text == "" || text == n.last || n.last != "" && now.Sub(n.at) < sayAgain {
		return false
	}
	n.last, n.at = text, now
	return true
}

// pauseForDisk waits a moment for a run that a full disk paused: if a resume is pending, the pause and its end are
// written together as soon as there is space.
type pauseForDisk struct{ since time.Time }

// briefly reports whether a paused run may continue at any moment.
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

// notice is what holds up a run, found out in the background for a screen.
type notice struct{ text atomic.Pointer[string] }

func (n *notice) set(text string) { n.text.Store(&text) }

// why adds the notice to the description of a paused or finished run.
func (n *notice) why(s run.State, effective run.Status) string {
	if text := n.text.Load(); text != nil && *text != "" && effective.Class() == run.Live {
		return *text
	}
	return view.WhyPaused(s, effective)
}

// followed waits until a directory follows a resume, or returns why it does not.
func (s *session) followed(ctx context.Context, d rundir.Dir, before rundir.Meta) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ask := time.Now().Add(askFor)
	err = every(ctx, refresh, func(now time.Time) (bool, error) {
		m, err := d.Meta()
		resumed := m.State.Starts > before.State.Starts || m.State.Status != run.Paused &&
			m.Events.Seq > before.Events.Seq
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
