package operations

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// hiding is an operator that hides one value.
func hiding(t *testing.T) Operator {
	t.Helper()
	r, err := redact.New(redact.Options{Environ: []string{"A_KEY=open-sesame"}, Names: []string{"*_KEY"}})
	require.NoError(t, err)
	return Operator{Redact: r}
}

func TestStartInputIsRedacted(t *testing.T) {
	const sesame = "say open-sesame"
	in := workflows.Input{
		Start: run.RunStart{Task: sesame, Warnings: []string{sesame},
			Found: []run.ErrorNoted{{Message: sesame, Diagnostics: sesame}}},
		Reopen: &workflows.Reopen{
			Note: sesame, Reason: sesame, Decision: &workflows.Message{Note: sesame, Feedback: sesame, By: sesame},
			Revert: &workflows.PendingRevert{Note: sesame},
		},
	}
	raw, err := json.Marshal(hiding(t).hiddenInput(in))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "open-sesame")
	require.Equal(t, 10, strings.Count(string(raw), "say [redacted:env-A_KEY]"))
	require.Equal(t, sesame, in.Start.Warnings[0], "the caller's are as they were")
	require.Equal(t, sesame, in.Reopen.Decision.Note)
}

func TestSecretInputsAreListed(t *testing.T) {
	def := Definition{
		Folder: fstest.MapFS{"a.md": {Data: []byte("plain")},
			"b.md": {Data: []byte("open-sesame, twice: open-sesame")}},
		Source: []byte("pipeline: p\n"), Plan: &pipeline.Plan{Roles: []pipeline.Role{{Prompt: "a.md"},
			{Prompt: "b.md"}}},
	}
	output := hiding(t).secretInputs(def)
	require.Len(t, output, 1)
	require.Contains(t, output[0], "b.md contains what looks like a secret (env-A_KEY)")
	def.Source = []byte("run: echo open-sesame\n")
	require.Contains(t, hiding(t).secretInputs(def)[0], "the definition contains")
	require.Empty(t, Operator{}.secretInputs(def))
}

// TestBinaryMessageIsRefused sends bytes that are not text, as a message and as an answer.
func TestBinaryMessageIsRefused(t *testing.T) {
	for _, text := range []string{"\xff", "a\x00b"} {
		var refused *RefusedError
		_, err := Operator{}.Send(t.Context(), "run", workflows.VerbSteer, workflows.Message{Text: text})
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Why, "not UTF-8 text")
	}
}
