package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/live"
	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// nowPart is what the running calls of a run do.
type nowPart struct {
	Calls []call
	Seq   int64 // see [seqOf]
}

// call is one running call.
type call struct {
	Name    string
	About   string // its description in the plan
	Since   string
	Attempt int
	Doing   string // the tool that runs, tokens
	Lines   []string
	Partial string
	Problem string // why there is no output
}

// newOutput reads the output of calls of this host, with redacted secrets.
func (s *site) newOutput() *live.Calls {
	return &live.Calls{
		File: func(id string) (string, error) { return calls.Output(s.h.Settings.Scratch(), id) },
		Hide: s.h.Secrets.Text,
	}
}

// working reads what the running calls of a run do.
func (s *site) working(sub subject, from *live.Calls) nowPart {
	state, now := sub.State(), s.now()
	lanes := sub.dir.Lanes(state)
	part := nowPart{Seq: seqOf(state, lanes)}
	if len(state.InFlight) == 0 && len(lanes) == 0 {
		return part
	}
	var plan *pipeline.Plan
	if p, err := sub.dir.Plan(); err == nil { // without it, the output is read as text
		plan = &p
	}
	if from == nil {
		from = s.newOutput()
	}
	for _, o := range from.Read(view.InFlight(state, plan, now, lanes...)) {
		c := call{Name: o.Name(), About: o.Description, Attempt: o.Attempt, Doing: o.Text(now),
			Lines: o.Lines, Partial: o.Partial, Since: run.Time(o.InFlightCall.Since)}
		switch {
		case errors.Is(o.Err, calls.ErrNoOutput):
			c.Problem = "No output yet: the call is being started, or it runs on another host."
		case o.Err != nil:
			c.Problem = "Its output is not available here: " + s.h.Secrets.Text(o.Err.Error())
		}
		part.Calls = append(part.Calls, c)
	}
	return part
}

// seqOf is the number of the last event of a run, and with open lanes the sum with theirs: it changes when one of them
// does.
func seqOf(s run.State, lanes []rundir.Lane) int64 {
	seq := s.Seq
	for _, l := range lanes {
		if l.Live != nil {
			seq += l.Live.Seq
		}
	}
	return seq
}

// How often a followed run is read, and the maximum time between two messages to its page.
const (
	refresh = 500 * time.Millisecond
	beat    = 15 * time.Second
)

// maxStreams is the number of pages that are followed at a time.
const maxStreams = 200

// streams are the open streams of events.
type streams struct {
	open   atomic.Int64
	once   sync.Once
	ending chan struct{} // closed when the server ends
}

// end returns a channel that is closed when the server of a request shuts down: a stream would hold it up.
func (s *streams) end(r *http.Request) <-chan struct{} {
	s.once.Do(func() {
		s.ending = make(chan struct{})
		if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
			server.RegisterOnShutdown(func() { close(s.ending) })
		}
	})
	return s.ending
}

// live sends what the running calls of a run do, and when its journal has grown, as server-sent events.
func (s *site) live(w http.ResponseWriter, r *http.Request) {
	sub, err := s.local(r, "")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.streams.open.Add(-1)
	if s.streams.open.Add(1) > maxStreams {
		http.Error(w, "too many pages are followed; close some", http.StatusServiceUnavailable)
		return
	}
	headers(w, "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	if err := out.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.fail(w, r, err)
		return
	}
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		after = seqOf(sub.State(), sub.dir.Lanes(sub.State()))
	}
	f, sent := follower{s: s, sub: sub, from: s.newOutput(), seq: after}, time.Now()
	for text := "retry: 2000\n\n"; ; text = f.next() {
		if text == "" && time.Since(sent) > beat {
			text = ": alive\n\n"
		}
		if text != "" {
			if _, err := io.WriteString(w, text); err != nil || out.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-r.Context().Done():
			if access.Revoked(r.Context()) {
				w.Write([]byte("event: out\ndata: logged out\n\n"))
			}
			return
		case <-s.streams.end(r):
			return
		case <-tick.C:
		}
	}
}

// follower finds out what has changed of a run.
type follower struct {
	s     *site
	sub   subject
	from  *live.Calls
	seq   int64  // that the page shows, see [seqOf]
	shown string // what the calls did
	lost  int    // readings in a row that failed
}

// maxLost is the number of failed readings after which the run is reported as unreadable: a file may be being replaced.
const maxLost = 4

// next returns the events about what has changed; "" if nothing has.
func (f *follower) next() string {
	now, err := f.sub.dir.Now()
	if err != nil || now.State.Seq == 0 && f.sub.Run.Now.State.Seq > 0 { // its files are gone
		if f.lost++; f.lost == maxLost {
			var lost strings.Builder
			event(&lost, "gone", "The directory of this run can no longer be read. The page shows its last state.")
			return lost.String()
		}
		return ""
	}
	back := f.lost >= maxLost
	f.lost = 0
	f.sub.Run.Now = now
	part := f.s.working(f.sub, f.from)
	text, err := f.s.part("now", part)
	var events strings.Builder
	if err == nil && text != f.shown {
		event(&events, "now", text)
		f.shown = text
	}
	if part.Seq != f.seq || back {
		event(&events, "changed", fmt.Sprint(part.Seq))
	}
	f.seq = part.Seq
	return events.String()
}

// event writes one event of a stream.
func event(to *strings.Builder, kind, data string) {
	fmt.Fprintf(to, "event: %s\n", kind)
	for _, line := range strings.Split(data, "\n") {
		fmt.Fprintf(to, "data: %s\n", line)
	}
	to.WriteString("\n")
}

// part executes one template. Characters that change the order of the text around them are shown as codes, as in a
// terminal.
func (s *site) part(name string, body any) (string, error) {
	var out bytes.Buffer
	safe := terminal.NewWriter(&out)
	err := errors.Join(s.pages.ExecuteTemplate(safe, name, body), safe.Flush())
	return out.String(), err
}
