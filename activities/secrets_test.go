package activities

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

const sesame = "open-sesame"

// leaks names the files of the store that hold the secret.
func (h *harness) leaks() []string {
	h.t.Helper()
	var out []string
	root := filepath.Join(h.dir, "store")
	require.NoError(h.t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), sesame) {
			out = append(out, string(raw))
		}
		return err
	}))
	return out
}

// spilling is a harness whose builder gets a task with a secret, and outputs it in every way.
func spilling(t *testing.T, play string) *harness {
	t.Helper()
	h := newHarness(t, play)
	h.secret = sesame
	h.builder()
	given := contract.StepContext{Artifact: h.in.Artifact, Feedback: "Say " + sesame}
	asked := must(h.acts.Compose(context.Background(), contract.ComposeInput{
		Store: h.s.URL(), At: h.in.At, Context: given,
	}))(t)
	require.NotEmpty(t, asked.Prompt.Raw)
	h.in.Prompt, h.in.Context = asked.Prompt, &given
	return h
}

func TestAgentExchangesSecretsUnstored(t *testing.T) {
	h := spilling(t, "spill")
	first := h.accepted()

	sent := must(os.ReadFile(filepath.Join(h.dir, "prompt")))(t)
	require.Contains(t, string(sent), "Say open-sesame")
	require.Equal(t, h.in.Prompt.Raw, h.put(string(sent)).Digest, "the bytes that were sent are recorded")
	require.NoError(t, os.RemoveAll(filepath.Join(h.dir, "store", "blobs", h.in.Prompt.Raw[:2])),
		"only the test has stored them")

	page := h.text(first.Artifact.Digest)
	require.Equal(t, "<!DOCTYPE html>\n<html>open-sesame</html>\n", page, "the artifact is the user's data")
	const redacted = "<hidden>\n```html\n<!DOCTYPE html>\n<html><hidden></html>\n```\n"
	require.Equal(t, redacted, h.text(first.Reply.Digest))
	require.Equal(t, redacted, h.envelope(first))
	require.Equal(t, []string{page}, h.leaks())

	again := h.resultOf(h.worker())
	require.True(t, again.Reused)
	again.Reused = false
	require.Equal(t, first, again, "the same answer is judged the same, although its bytes are not stored")
}

// envelope reads the stored envelope of a result, in which something was hidden, and returns its text.
func (h *harness) envelope(res contract.PassResult) string {
	h.t.Helper()
	require.NotNil(h.t, res.Envelope)
	require.NotEmpty(h.t, res.Envelope.Raw)
	raw := h.text(res.Envelope.Digest)
	require.Equal(h.t, 1, strings.Count(raw, "\n"))
	var e struct {
		Result string  `json:"result"`
		USD    float64 `json:"total_cost_usd"`
	}
	require.NoError(h.t, json.Unmarshal([]byte(raw), &e))
	require.InDelta(h.t, 0.25, e.USD, 1e-9)
	return e.Result
}

// TestTruncationKeepsSecretsRedacted has the secret where a message is cut off.
func TestTruncationKeepsSecretsRedacted(t *testing.T) {
	h := spilling(t, "spill and fail")
	res := h.result()
	require.Equal(t, run.CategoryAgentExit, res.Outcome)
	require.NotContains(t, res.Message, "open")
	require.Contains(t, res.Message, "x<hi")
	require.NotContains(t, res.Diagnostics, "open")
	require.Contains(t, res.Diagnostics, "could not say <hidden>")
	require.Equal(t, strings.Repeat("x", 296)+"<hidden>", h.envelope(res))
	require.Empty(t, h.leaks())
}

func TestChangedPromptIsNotSent(t *testing.T) {
	h := spilling(t, "spill")
	h.in.Context.Feedback = "Say something else"
	_, err := h.pass(context.Background())
	require.ErrorContains(t, err, "the program may have changed")
	require.Zero(t, h.started())
}

// TestCallIDNamesTheQuestion: another secret, or another session, is another question.
func TestCallIDNamesTheQuestion(t *testing.T) {
	asked := contract.PassInput{Prompt: run.Blob{Digest: "shown", Raw: "one"}, Session: &run.KeptSession{Digest: "one"}}
	secret, session := asked, asked
	secret.Prompt.Raw, session.Session = "other", &run.KeptSession{Digest: "other"}
	require.NotEqual(t, callID(asked), callID(secret))
	require.NotEqual(t, callID(asked), callID(session))
	session.Session = &run.KeptSession{Digest: "one"}
	require.Equal(t, callID(asked), callID(session))
}

func TestResultsAreRedacted(t *testing.T) {
	h := newHarness(t, "answer")
	h.secret = sesame
	say := func(out any, err error) func(context.Context, contract.Target) (any, error) {
		return func(context.Context, contract.Target) (any, error) { return out, err }
	}
	intercepted := func(err error) error {
		_, err = redactingInterceptor(h.acts, say(nil, err))(context.Background(), contract.Target{})
		return err
	}
	for _, row := range []struct {
		name  string
		err   error
		kind  string
		final bool
	}{
		{"plain", errors.New("no open-sesame"), "", false},
		{"of a kind", badInput("no %s", sesame), contract.ErrBadInput, true},
		{"with a cause", temporal.NewApplicationErrorWithCause("no open-sesame", "Odd", errors.New(sesame)), "Odd",
			false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var app *temporal.ApplicationError
			require.ErrorAs(t, intercepted(row.err), &app)
			require.Equal(t, "no <hidden>", app.Message())
			require.Equal(t, row.kind, app.Type())
			require.Equal(t, row.final, app.NonRetryable())
			require.NoError(t, errors.Unwrap(app), "a cause would be recorded, too")
		})
	}
	plain := errors.New("as it is")
	require.Equal(t, plain, intercepted(plain))

	var step contract.Step
	step.Run, step.Ask, step.Description, step.LogTitle = sesame, sesame, sesame, sesame
	errs := []contract.RecoveredError{{Message: sesame, Diagnostics: sesame}}
	for _, res := range []any{
		&contract.PassResult{
			Reading: run.Reading{Message: sesame, ScoreWhy: sesame, Verdict: sesame,
				Validation: run.Validation{Checks: []run.Check{{Detail: sesame}}, Warnings: []string{sesame}}}, Diagnostics: sesame,
		},
		&contract.ShotsResult{Message: sesame, Recovered: slices.Clone(errs)},
		&contract.ProjectResult{Recovered: slices.Clone(errs)},
		&contract.DeliverResult{Reason: sesame},
		&contract.Round{Title: sesame, Steps: []contract.Step{step}},
		&contract.OpenResult{Task: sesame},
	} {
		h.acts.redactResult(res)
		require.NotContains(t, string(must(json.Marshal(res))(t)), sesame)
	}
}

func TestAnswerOfEarlierReleaseIsRead(t *testing.T) {
	h := newHarness(t, "answer")
	h.answered(calls.Answer{Version: 1, Delivery: 1, Host: "here"}, "An answer.")
	require.InDelta(t, 0.25, h.accepted().Spend.USD, 1e-9)
	require.Zero(t, h.started())
}
