package pages

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestFilesOfAgentsAreServedAsDownloads(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	h := d.answer(http.MethodGet, "/runs/"+first+"/artifact", nil).Header()
	require.Equal(t, "sandbox; default-src 'none'", h.Get("Content-Security-Policy"))
	require.Equal(t, "application/octet-stream", h.Get("Content-Type"))
	require.Equal(t, "attachment; filename*=UTF-8''artifact.html", h.Get("Content-Disposition"))
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	h = d.answer(http.MethodGet, "/runs/"+first+"/pictures/_orchestrator/screenshots/cycle-1/viewport-1440x900.png",
		nil).Header()
	require.Equal(t, "sandbox; default-src 'none'", h.Get("Content-Security-Policy"))
	require.Equal(t, "image/png", h.Get("Content-Type"))
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
}

func TestPagesNeedAnIdentity(t *testing.T) {
	w := httptest.NewRecorder()
	New(api.Host{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/runs", nil))
	require.Equal(t, http.StatusUnauthorized, w.Code)
}

// A page of a run gets an event when the journal has grown, and the output of running calls.
func TestLiveEvents(t *testing.T) {
	d := newDesk(t)
	s := begin(t, first, morning)
	s.pass(1, "One.")
	d.follow(s, s.write(d.root))
}

// A page of a run gets the events of its lanes too.
func TestLiveEventsOfLanes(t *testing.T) {
	d := newDesk(t)
	of := beginIn(t, run.WordingCorpus, first, morning)
	of.add(run.KindChildrenListed, run.ChildrenListed{Stage: "write", Count: 1, Digest: of.blobs.keep("[]").Digest})
	p := of.lane(0, "a", "a.go")
	s := begin(t, p.ChildRunID(first, 0), morning)
	s.pass(1, "One.")
	d.follow(s, s.in(of.write(d.root).Path(p.Dir("write")), d.root))
}

// follow follows the page of the first run while a call begins in a directory.
func (d *desk) follow(s *story, dir rundir.Dir) {
	t := d.t
	server := httptest.NewServer(d.handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/runs/"+first+"/live", nil)
	require.NoError(t, err)
	answer, err := server.Client().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))

	lines := bufio.NewScanner(answer.Body)
	require.True(t, lines.Scan(), "the answer begins at once")
	require.Equal(t, "retry: 2000", lines.Text())
	before := len(s.lines)
	pass := run.Pass{Step: "002", Number: 2, InRound: 2, OfRound: 4, Round: 1, Role: "builder", Gives: "artifact"}
	s.add(run.KindPassStart, run.PassStart{Pass: pass, Agent: "agent", Call: "no-call", Attempt: 1, Attempts: 3,
		Prompt: s.blobs.keep("p"), Before: s.artifact.Digest})
	s.extend(dir, before)
	var kinds []string
	var text strings.Builder
	for lines.Scan() && len(kinds) < 2 {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
		text.WriteString(lines.Text() + "\n")
	}
	require.Equal(t, []string{"now", "changed"}, kinds, text.String())
	require.Contains(t, text.String(), "builder")
	require.Contains(t, text.String(), "No output yet")

	require.NoError(t, server.Config.Shutdown(ctx), "an open stream does not hold up the end of the server")
}
