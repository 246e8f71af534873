package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// evil is text of an agent that tries to be markup, to run, to reorder the text around it, or to widen the page.
const evil = `</pre></title></textarea><script>alert(1)</script><img src=x onerror=alert(2)>"'` +
	"\u202emoc.live\u2066 \x1b[31mred\x1b]0;title\x07 javascript:alert(3) " +
	"aVeryLongWordThatNothingBreaksAVeryLongWordThatNothingBreaksAVeryLongWordThatNothingBreaks"

// memory is a store in memory.
type memory struct{ blobs.Store }

func (m memory) keep(data string) run.Blob {
	digest, err := m.Put(context.Background(), []byte(data))
	if err != nil {
		panic(err)
	}
	return run.Blob{Digest: digest, Size: int64(len(data)), Chars: len(data)}
}

// story writes the journal of a run.
type story struct {
	t        testing.TB
	id       string
	blobs    memory
	state    run.State
	lines    []string
	phase    string
	artifact run.Blob
	began    time.Time
}

func (s *story) moment() string {
	return run.Time(s.began.Add(time.Duration(s.state.Seq) * time.Second))
}

func (s *story) add(kind run.Kind, payload any) {
	s.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(s.t, err)
	e := run.Event{Seq: s.state.Seq + 1, TS: s.moment(), Kind: kind, Payload: raw}
	if s.phase != "" {
		e.Phase = &s.phase
	}
	s.state = run.Apply(s.state, e)
	require.Empty(s.t, s.state.InvalidTransition)
	line, err := e.Line()
	require.NoError(s.t, err)
	s.lines = append(s.lines, line)
}

// begin starts a run that revises a page, as an earlier version did.
func begin(t testing.TB, id string, began time.Time) *story { return beginIn(t, "", id, began) }

func beginIn(t testing.TB, words run.Wording, id string, began time.Time) *story {
	bucket, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	s := &story{t: t, id: id, blobs: memory{blobs.Of(bucket)}, began: began}
	inputs, err := json.Marshal(rundir.Inputs{Version: 1})
	require.NoError(t, err)
	s.artifact = s.blobs.keep("<html>\n<script>alert(4)</script>\n</html>\n")
	s.add(run.KindRunStart, run.RunStart{
		Task: "A page about " + evil, RunKind: "pipeline", Pipeline: "weave", RunID: id, ThreadID: id, Epoch: 1,
		CreatedAt: s.moment(), Definition: s.blobs.keep("stages: []\n").Digest, Plan: s.blobs.keep(`{"version":2}`).Digest,
		Inputs: s.blobs.keep(string(inputs)).Digest, Artifact: &run.ArtifactRef{File: "artifact.html", Seed: s.artifact},
		Stages: []run.StageRef{{Name: "write", Kind: "each"}, {Name: "harden", Kind: "repeat"}},
		Budget: run.Budget{CapUSD: 4, WarnUSD: 3}, TotalPasses: 4, MaxRounds: 6, Wording: words,
	})
	s.phase = "write"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	return s
}

// pass completes a pass with a reply, and with a picture of the page.
func (s *story) pass(n int, reply string) {
	p := run.Pass{Step: fmt.Sprintf("%03d", n), Number: n, InRound: n, OfRound: 4, Round: 1, Role: "builder",
		Gives: "artifact", Title: fmt.Sprintf("Pass %d %s", n, evil)}
	s.add(run.KindPassStart, run.PassStart{Pass: p, Agent: "agent", Call: p.Step, Attempt: 1, Attempts: 3,
		Prompt: s.blobs.keep("Make it better. " + evil), Before: s.artifact.Digest})
	answer := s.blobs.keep(reply)
	before, err := s.blobs.Get(s.t.Context(), s.artifact.Digest)
	require.NoError(s.t, err)
	now := s.blobs.keep(strings.Replace(string(before), "</html>",
		fmt.Sprintf("<p>line %d %s</p>\n</html>", n, evil), 1))
	end := run.PassEnd{Pass: p, Call: p.Step, Outcome: "ok", StartedAt: s.state.TS, CompletedAt: s.state.TS,
		DurationMS: 1500, Attempts: 1, Reply: &answer, Before: s.artifact.Digest, Artifact: &now, Modified: true,
		Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "whole " + evil, Passed: true}},
			Warnings: []string{}},
		Spend: run.Spend{USD: 0.25, Tokens: run.Tokens{Input: 100, Output: 20}, Model: "m"},
		Next:  &run.Place{Round: 1, Step: n}}
	s.add(run.KindPassEnd, end)
	s.artifact = now
	s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: p.Step, Artifact: now})
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", n), AtPass: n, USD: s.state.Total()})
}

// shots takes a picture of the page.
func (s *story) shots(round int) {
	var buf bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, 144, 90))
	for i := range img.Pix {
		img.Pix[i] = uint8(60 * round)
	}
	require.NoError(s.t, png.Encode(&buf, img))
	raw, err := json.Marshal([]run.Shot{{Name: "viewport-1440x900.png", Digest: s.blobs.keep(buf.String()).Digest,
		Size: int64(buf.Len()), Width: 144, Height: 90}})
	require.NoError(s.t, err)
	s.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: round, Dir: fmt.Sprintf("screenshots/cycle-%d",
		round), Manifest: s.blobs.keep(string(raw)), Count: 1, Attempts: 1})
}

// ask opens a question about the work so far.
func (s *story) ask(id string) {
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: id, Phase: "write", Round: 1,
		Type: run.HandoffFeedbackAlways, Trigger: "approved", Digest: "d-" + id, Question: "Is it good? " + evil,
		Actions: []string{"continue", "retry_feedback", "halt"}, Subject: s.state.Subject()})
}

func (s *story) decide(id, action string) {
	s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: id, Action: action,
		DecidedBy: "grace", DecidedAt: s.moment(), Feedback: "yes " + evil})
}

// lane starts a lane and returns its place.
func (s *story) lane(index int, key, name string) run.LanePlace {
	p := run.LanePlace{Index: index, Key: key, Name: name}
	s.add(run.KindChildStarted, run.ChildStart{RunID: p.ChildRunID(s.id, 0), LanePlace: p})
	return p
}

// endLane ends a lane with two calls; with a reason, it fails and is left out.
func (s *story) endLane(p run.LanePlace, reason string) {
	end := run.ChildEnd{RunID: p.ChildRunID(s.id, 0), LanePlace: p, Outcome: run.ChildDone,
		Tree: &run.Blob{Digest: "tree"}}
	end.Cost.Spent = run.Totals{Calls: 2, USD: 0.25}
	end.Cost.ByRole = []run.Named{{Name: "builder", Totals: end.Cost.Spent}}
	if reason != "" {
		end.Outcome, end.Reason, end.Tree = run.ChildFailed, reason, nil
	}
	s.add(run.KindChildEnded, end)
	if reason != "" {
		s.add(run.KindChildSkipped, run.ChildSkip{Index: p.Index, Key: p.Key, Name: p.Name, Reason: reason})
	}
}

// write makes the run directory below a folder.
func (s *story) write(root string) rundir.Dir { return s.in(filepath.Join(root, s.id), root) }

func (s *story) in(path, root string) rundir.Dir {
	s.t.Helper()
	d := rundir.At(path)
	require.NoError(s.t, d.Take(run.Claim{Version: 1, RunID: s.id, ThreadID: s.id, Pipeline: "weave",
		CreatedAt: run.Time(s.began), Store: "file://" + filepath.Join(root, "no-store")}))
	p, err := d.Project(s.t.Context(), s.blobs, rundir.Batch{Epoch: 1, First: 1, Lines: s.lines})
	require.NoError(s.t, err)
	require.Equal(s.t, run.ProjectionWritten, p.Outcome)
	return d
}

var morning = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// asking is a run with passes, pictures and an open question.
func asking(t testing.TB, id string, began time.Time) *story {
	s := begin(t, id, began)
	s.pass(1, "First. "+evil)
	s.shots(1)
	s.pass(2, "Second.\n\n```\ncode\n```\n"+evil)
	s.shots(2)
	s.ask("h-1")
	return s
}

// desk is a console over stored runs, without a server.
type desk struct {
	t         testing.TB
	root      string
	handler   http.Handler
	streams   *streams
	connected int // attempts to connect to a server
	can       api.Access
	session   string // of the browser
	state     string // directory
	base      string // of a link; empty: a login
}

var errNoServer = errors.New("no server in this test")

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, root: t.TempDir(), can: api.CanOperate}
	h := api.Host{Program: "starter", Clock: func() run.Clock { return run.Clock{Now: morning.Add(time.Hour)} },
		Settings: config.Settings{StateDir: t.TempDir(), RunRoot: d.root},
		Connect: func(context.Context) (operations.Operator, func(), error) {
			d.connected++
			return operations.Operator{}, nil, errNoServer
		}}
	d.state = h.Settings.StateDir
	s := newSite(h)
	s.now = func() time.Time { return morning.Add(time.Hour) }
	d.streams = &s.streams
	pages := s.routes()
	d.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := access.WithCSRF(access.With(r.Context(), access.Identity{Name: "ada", Can: d.can, Base: d.base}), "the-token")
		ctx = access.WithSession(ctx, d.session)
		pages.ServeHTTP(w, r.WithContext(ctx))
	})
	return d
}

// answer sends a request, with a form if it is a POST.
func (d *desk) answer(method, path string, form url.Values) *httptest.ResponseRecorder {
	d.t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	d.handler.ServeHTTP(w, r)
	return w
}

func (d *desk) get(path string) (int, string) {
	d.t.Helper()
	w := d.answer(http.MethodGet, path, nil)
	return w.Code, w.Body.String()
}

func (d *desk) post(path string, form url.Values) (int, string, string) {
	d.t.Helper()
	w := d.answer(http.MethodPost, path, form)
	return w.Code, w.Body.String(), w.Header().Get("Location")
}

// extend writes further lines of the journal.
func (s *story) extend(d rundir.Dir, before int) {
	s.t.Helper()
	p, err := d.Project(s.t.Context(), s.blobs, rundir.Batch{Epoch: 1, First: int64(before + 1),
		Prev: run.Chain("").Over(s.lines[:before]), Lines: s.lines[before:]})
	require.NoError(s.t, err)
	require.Equal(s.t, run.ProjectionWritten, p.Outcome)
}
