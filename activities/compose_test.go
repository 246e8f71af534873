package activities

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/browser"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func (h *house) compose(at work.StepRef, g work.Given) (string, error) {
	at.Plan, at.Inputs = h.in.At.Plan, h.in.At.Inputs
	e := env(context.Background())
	e.RegisterActivity(h.acts.Compose)
	got, err := e.ExecuteActivity(h.acts.Compose, work.ComposeInput{Store: h.s.URL(), At: at, Given: g})
	if err != nil {
		return "", err
	}
	var res work.ComposeResult
	require.NoError(h.t, got.Get(&res))
	raw, err := load(context.Background(), h.s, res.Prompt.Digest)
	return string(raw), err
}

func TestAPromptOfABuilder(t *testing.T) {
	h := newHouse(t, "answer")
	got, err := h.compose(work.StepRef{Round: 1}, work.Given{Artifact: h.in.Artifact})
	require.NoError(t, err)
	golden(t, "builder.prompt.md", got)
}

func TestAPromptOfAnAuditorHasItsOwnNameAndThePictures(t *testing.T) {
	h := newHouse(t, "answer")
	manifest, err := json.Marshal([]run.Shot{{Name: "full-800x600.png"}, {Name: "scroll-1.png"}})
	require.NoError(t, err)
	pictures := h.put(string(manifest))
	at := work.StepRef{Stage: 1, Round: 2, Step: 1, Member: "auditor-B"}
	got, err := h.compose(at, work.Given{Artifact: h.in.Artifact, Pictures: &pictures})
	require.NoError(t, err)
	golden(t, "auditor-B.prompt.md", got)
}

func TestWhatIsMissingCannotBeTriedAgain(t *testing.T) {
	h := newHouse(t, "answer")
	nothing, err := h.s.PutJSON(context.Background(), map[string]any{"version": 1})
	require.NoError(t, err)
	inputs := h.in.At
	tests := []struct {
		name string
		at   work.StepRef
		says string
	}{
		{"file", work.StepRef{Plan: inputs.Plan, Inputs: string(nothing), Round: 1}, "builder.md is not among the run's inputs"},
		{"stage", work.StepRef{Plan: inputs.Plan, Inputs: inputs.Inputs, Stage: 7, Round: 1}, "the plan has no stage 8"},
		{"step", work.StepRef{Plan: inputs.Plan, Inputs: inputs.Inputs, Round: 1, Step: 9}, "stage build has no step 10"},
		{"role", work.StepRef{Plan: inputs.Plan, Inputs: inputs.Inputs, Stage: 1, Round: 1, Step: 1, Member: "nobody"}, `no role "nobody"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.in.At = tt.at
			_, err := h.compose(tt.at, work.Given{})
			require.ErrorContains(t, err, tt.says)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.True(t, app.NonRetryable())
			require.Equal(t, "BadInput", app.Type())
		})
	}
}

func TestWithoutABrowserThereAreNoPicturesAndNoError(t *testing.T) {
	h := newHouse(t, "answer")
	h.acts.cfg.Browser = browser.Options{Exec: filepath.Join(h.dir, "no-browser")}
	e := env(context.Background())
	e.RegisterActivity(h.acts.TakeScreenshots)
	shots := pipeline.Screenshots{Sizes: []pipeline.Size{{Width: 800, Height: 600}}, Kinds: []string{"full"}}
	got, err := e.ExecuteActivity(h.acts.TakeScreenshots, work.ShotsInput{Store: h.s.URL(), Artifact: *h.in.Artifact, Name: "page.html", Shots: shots, HeartbeatMS: 1000})
	require.NoError(t, err)
	var res work.ShotsResult
	require.NoError(t, got.Get(&res))
	require.True(t, res.Permanent)
	require.Contains(t, res.Message, "no-browser")
	require.Contains(t, res.Message, "install one with")
	require.Zero(t, res.Count)
}
