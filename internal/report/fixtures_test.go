package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// evil is agent output that tries to inject markup, to reorder the text around it, or to widen the page.
const evil = `</pre></title><script>alert(1)</script><img src=x onerror=alert(2)>"'` +
	"\u202emoc.live\u2066aVeryLongWordThatNothingBreaksAVeryLongWordThatNothingBreaks" +
	"AVeryLongWordThatNothingBreaksAVeryLongWordThatNothingBreaks"

// memory is a store in memory, whose trees have empty manifests.
type memory struct{ blobs.Store }

func (memory) Manifest(context.Context, string) ([]byte, error) { return []byte("{}\n"), nil }

func (m memory) keep(data []byte) run.Blob {
	digest, err := m.Put(context.Background(), data)
	if err != nil {
		panic(err)
	}
	return run.Blob{Digest: digest, Size: int64(len(data)), Chars: len(data)}
}

func (m memory) of(digest string) []byte {
	data, err := m.Get(context.Background(), digest)
	if err != nil {
		panic(err)
	}
	return data
}

// copy returns the content of a file to a page.
func (m memory) copy(digest string, to io.Writer) error {
	_, err := to.Write(m.of(digest))
	return err
}

// story writes a journal as the workflow does.
type story struct {
	t        testing.TB
	blobs    memory
	state    run.State
	lines    []string
	phase    string
	artifact run.Blob
	lanes    map[string]*story // by their directories in that of the run
}

func newStory(t testing.TB) *story {
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	return &story{t: t, blobs: memory{blobs.Of(s)}}
}

func (s *story) add(kind run.Kind, payload any) {
	s.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(s.t, err)
	e := run.Event{Seq: s.state.Seq + 1, TS: moment(s.state.Seq + 1), Kind: kind, Payload: raw}
	if s.phase != "" {
		e.Phase = &s.phase
	}
	s.state = run.Apply(s.state, e)
	require.Empty(s.t, s.state.InvalidTransition)
	line, err := e.Line()
	require.NoError(s.t, err)
	s.lines = append(s.lines, line)
}

// dir writes the run directory of the journal, and those of lanes.
func (s *story) dir() rundir.Dir {
	d := s.in(filepath.Join(s.t.TempDir(), "run"))
	for path, lane := range s.lanes {
		lane.in(d.Path(path))
	}
	return d
}

func (s *story) in(path string) rundir.Dir {
	s.t.Helper()
	d := rundir.At(path)
	require.NoError(s.t, d.Take(run.Claim{Version: 1, RunID: s.state.RunID, ThreadID: "run-1"}))
	const piece = 1000
	for first := 0; first < len(s.lines); first += piece {
		last := min(first+piece, len(s.lines))
		p, err := d.Project(s.t.Context(), s.blobs,
			rundir.Batch{Epoch: 1, First: int64(first + 1), Prev: run.Chain("").Over(s.lines[:first]),
				Lines: s.lines[first:last]})
		require.NoError(s.t, err)
		require.Equal(s.t, run.ProjectionWritten, p.Outcome)
	}
	return d
}

// moment advances by ten seconds per event.
func moment(seq int64) string {
	return run.Time(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(seq) * 10 * time.Second))
}

func page(body string) []byte { return []byte("<html>\n<h1>Page</h1>\n" + body + "</html>\n") }

func (s *story) start() {
	inputs, err := json.Marshal(rundir.Inputs{Version: 1})
	require.NoError(s.t, err)
	threshold := 3.5
	s.artifact = s.blobs.keep(page(""))
	s.add(run.KindRunStart, run.RunStart{
		Task: "A page about " + evil, RunKind: "pipeline", Pipeline: "weave", RunID: "run-1", ThreadID: "run-1",
		Epoch: 1, CreatedAt: moment(0), ConfigHash: "0123456789abcdef",
		Definition: s.blobs.keep([]byte("stages: []\n")).Digest, Plan: s.blobs.keep([]byte("{}")).Digest,
		Inputs:   s.blobs.keep(inputs).Digest,
		Artifact: &run.ArtifactRef{File: "artifact.html", Seed: s.artifact},
		Notes: []run.NoteRef{{Name: "conviction", File: "conviction-layer.md"},
			{Name: "discovery", File: "discovery-log.md"}},
		Stages: []run.StageRef{{Name: "write", Kind: "each"}, {Name: "harden", Kind: "repeat"}},
		Budget: run.Budget{CapUSD: 4, WarnUSD: 3}, TotalPasses: 4, MaxRounds: 6, Threshold: &threshold,
		Parent: &run.Parent{RunID: "run-0", Mode: "follow_up"},
	})
	s.phase = "write"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
}

// pass completes a numbered pass: odd numbers are builders, which add a line to the page, even ones verifiers, which
// count.
func (s *story) pass(i, attempts int) {
	p := run.Pass{
		Step: fmt.Sprintf("%03d", i), Number: i, InRound: (i-1)%2 + 1, OfRound: 2, Set: fmt.Sprintf("S%d", (i+1)/2),
		Round: (i + 1) / 2, Order: "A",
		Role: "builder", Gives: "artifact", Title: fmt.Sprintf("Pass %d %s", i, evil), Description: "a pass",
	}
	if i%2 == 0 {
		p.Role, p.Gives = "verifier", "report"
	}
	for n := 1; n < attempts; n++ {
		s.fail(p, n)
	}
	end := s.settle(p, attempts, 0.25, int64(1000*i))
	if i%2 == 0 {
		deep, absent := i, 4-i
		end.Tally = []run.Count{{Name: "deep", Count: &deep}, {Name: "absent" + evil, Count: &absent}}
	} else {
		s.revise(&end, fmt.Sprintf("<p>line %d %s</p>\n", i, evil))
	}
	end.LastInRound = i%2 == 0
	s.end(end)
	if i%2 == 0 {
		s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", i/2), AtPass: i,
			USD: s.state.Total()})
	}
}

func (s *story) fail(p run.Pass, attempt int) {
	s.begin(p, attempt)
	s.add(run.KindPassAttempt, run.PassAttempt{Pass: p, Call: p.Step, Attempt: attempt, Category: "output-truncated",
		Message: "half of it: " + evil, Diagnostics: "the end: " + evil, Judged: true, RetryInMS: 1,
		Spend: &run.Spend{USD: 0.05, Model: "m"}})
}

func (s *story) begin(p run.Pass, attempt int) {
	s.add(run.KindPassStart, run.PassStart{Pass: p, Agent: "agent", Call: p.Step, Attempt: attempt, Attempts: 3,
		Prompt: s.blobs.keep([]byte("prompt")), Before: s.artifact.Digest})
}

// settle starts the last attempt of a pass and returns its end.
func (s *story) settle(p run.Pass, attempts int, usd float64, ms int64) run.PassEnd {
	s.begin(p, attempts)
	reply := s.blobs.keep([]byte("reply: " + evil))
	return run.PassEnd{
		Pass: p, Call: p.Step, Outcome: "ok", StartedAt: s.state.TS, CompletedAt: s.state.TS, DurationMS: ms,
		Attempts: attempts, Reply: &reply, Before: s.artifact.Digest,
		Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "whole", Passed: true}},
			Warnings: []string{}},
		Spend: run.Spend{USD: usd, Tokens: run.Tokens{Input: 100, Output: 20}, Model: "m"},
		Next:  &run.Place{Round: 1, Step: p.Number},
	}
}

// revise adds a line to the page.
func (s *story) revise(end *run.PassEnd, line string) {
	old := s.blobs.of(s.artifact.Digest)
	now := s.blobs.keep(bytes.Replace(old, []byte("</html>"), []byte(line+"</html>"), 1))
	end.Artifact, end.Modified = &now, true
}

func (s *story) end(end run.PassEnd) {
	s.add(run.KindPassEnd, end)
	if end.Artifact != nil {
		s.artifact = *end.Artifact
		s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: end.Step, Artifact: s.artifact})
	}
}

// cycle is one round of the repeated stage: pictures, two auditors, a weaver, and a refiner unless the score is met.
func (s *story) cycle(n int, score float64) {
	s.phase = "harden"
	dir := fmt.Sprintf("screenshots/cycle-%d", n)
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: n, Dir: dir})
	s.shots(n, dir)
	in := func(member, role, gives string) run.Pass {
		return run.Pass{Step: role, Member: member, Role: role, Gives: gives, Round: n, Dir: dir, Title: role,
			Description: role}
	}
	for i, who := range []string{"auditor-A", "auditor-B"} {
		end := s.settle(in(who, "auditor", "report"), 1, 0.125, 2000)
		own := score - 0.5 + float64(i)
		end.Score = &own
		s.end(end)
	}
	s.end(s.settle(in("", "weaver", "report"), 1, 0.125, 2000))
	threshold := 3.5
	s.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Step: "weaver", Round: n, Score: &score,
		Threshold: &threshold, Met: score >= threshold})
	if score < threshold {
		end := s.settle(in("", "refine", "artifact"), 1, 0.25, 3000)
		s.revise(&end, fmt.Sprintf("<p>refined %d</p>\n", n))
		s.end(end)
	}
	s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "harden", Title: "Harden", Outcome: "ok", Round: n, Repeats: true})
}

// shots records two small pictures, and one that must be reduced.
func (s *story) shots(n int, dir string) {
	var shots []run.Shot
	for _, one := range []struct {
		name string
		img  image.Image
	}{{"full-1440x900.png", noise()}, {"viewport-1440x900.png", plain(n)}, {"scroll-1440x900-step1.png", plain(n + 3)}} {
		var buf bytes.Buffer
		require.NoError(s.t, (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&buf, one.img))
		b := one.img.Bounds()
		shots = append(shots, run.Shot{Name: one.name, Digest: s.blobs.keep(buf.Bytes()).Digest, Size: int64(buf.Len()),
			Width: b.Dx(), Height: b.Dy()})
	}
	raw, err := json.Marshal(shots)
	require.NoError(s.t, err)
	s.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: n, Dir: dir, Manifest: s.blobs.keep(raw),
		Count: len(shots), Attempts: 1})
}

func plain(shade int) image.Image {
	img := image.NewGray(image.Rect(0, 0, 144, 90))
	for i := range img.Pix {
		img.Pix[i] = uint8(40 * shade)
	}
	return img
}

// noise is a picture that cannot be compressed.
var noise = sync.OnceValue(func() image.Image {
	img, r := image.NewGray(image.Rect(0, 0, 1600, 400)), rand.New(rand.NewSource(1))
	r.Read(img.Pix)
	return img
})

// storyDir is the directory of wholeStory.
func storyDir(t testing.TB) rundir.Dir { return wholeStory(t).dir() }

// wholeStory is a whole run: four passes, one at the second attempt, a question, two cycles, and the end.
func wholeStory(t testing.TB) *story {
	s := newStory(t)
	s.start()
	s.pass(1, 1)
	s.pass(2, 1)
	s.pass(3, 2)
	s.pass(4, 1)
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "write",
		Type: run.HandoffFeedbackAlways, Trigger: "approved", Round: 1, Digest: "d2",
		Question: "Continue with " + evil, Actions: []string{"continue", "halt"}})
	s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: "continue",
		DecidedBy: "op", DecidedAt: moment(s.state.Seq + 1), Feedback: "yes " + evil})
	s.cycle(1, 2.5)
	s.cycle(2, 3.5)
	s.phase = ""
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	return s
}
