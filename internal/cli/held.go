package cli

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// heldLine describes what holds up an open run, as [app.watch] prints it; empty if nothing does or it is unknown.
func (a *app) heldLine(s run.EffectiveStatus, d rundir.Dir) string {
	switch {
	case s.NoWorker != nil:
		return fmt.Sprintf("Blocked: %s. %s", view.NoWorker(*s.NoWorker), s.NoWorker.Fix(idOf(d), a.host().WorkerCommand()))
	case s.Held != nil:
		return a.host().HeldText(*s.Held, d)
	}
	return ""
}

// idOf names the run of a directory in commands.
func idOf(d rundir.Dir) string {
	if claim, err := d.Claim(); err == nil {
		return claim.RunID
	}
	return d.Root
}

// repeatAfter is the minimum time between two different notices: each may name another temporary file.
const repeatAfter = time.Minute

// notices suppresses repeated notices.
type notices struct {
	last string
	at   time.Time
}

// fresh reports whether to print a notice now.
func (n *notices) fresh(text string, now time.Time) bool {
	if text == "" || text == n.last || n.last != "" && now.Sub(n.at) < repeatAfter {
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
	return now.Sub(p.since) < api.AskFor
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
