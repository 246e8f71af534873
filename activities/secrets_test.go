package activities

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

const sesame = "open-sesame"

// leaks names the files of the store that hold the secret.
func (h *house) leaks() []string {
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

// spilling is a house whose builder is given a task with a secret, and gives it back in every way.
func spilling(t *testing.T, play string) *house {
	t.Helper()
	h := newHouse(t, play)
	h.secret = sesame
	h.builder()
	given := work.Given{Artifact: h.in.Artifact, Feedback: "Say " + sesame}
	asked, err := h.acts.Compose(context.Background(), work.ComposeInput{Store: h.s.URL(), At: h.in.At, Given: given})
	require.NoError(t, err)
	require.NotEmpty(t, asked.Prompt.Raw)
	h.in.Prompt, h.in.Given = asked.Prompt, &given
	return h
}

func TestTheAgentGetsAndGivesWhatIsNotWrittenDown(t *testing.T) {
	h := spilling(t, "spill")
	first, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, "ok", first.Outcome, first.Message)

	sent, err := os.ReadFile(filepath.Join(h.dir, "prompt"))
	require.NoError(t, err)
	require.Contains(t, string(sent), "Say open-sesame")
	require.Equal(t, h.in.Prompt.Raw, h.put(string(sent)).Digest, "the bytes that were sent are recorded")
	require.NoError(t, os.RemoveAll(filepath.Join(h.dir, "store", "blobs", h.in.Prompt.Raw[:2])), "only the test has stored them")

	page, err := load(context.Background(), h.s, first.Artifact.Digest)
	require.NoError(t, err)
	require.Equal(t, "<!DOCTYPE html>\n<html>open-sesame</html>\n", string(page), "the artifact is the user's data")
	reply, err := load(context.Background(), h.s, first.Reply.Digest)
	require.NoError(t, err)
	require.Equal(t, "<hidden>\n```html\n<!DOCTYPE html>\n<html><hidden></html>\n```\n", string(reply))
	require.Equal(t, []string{string(page)}, h.leaks())

	again, err := h.passOf(context.Background(), h.worker())
	require.NoError(t, err)
	require.True(t, again.Reused)
	again.Reused = false
	require.Equal(t, first, again, "the same answer is judged the same, although nobody has its bytes any more")
}

func TestNoCutGoesThroughASecret(t *testing.T) {
	h := spilling(t, "spill and fail")
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.NotEqual(t, "ok", res.Outcome)
	for _, words := range []string{res.Message, res.Diagnostics} {
		require.NotContains(t, words, "open", words)
	}
	require.Contains(t, res.Diagnostics, "could not say <hidden>")
	require.Contains(t, res.Message, "x<hi")
	require.Empty(t, h.leaks())
}

func TestAPromptThatComesOutOtherwiseIsNotSent(t *testing.T) {
	h := spilling(t, "spill")
	h.in.Given.Feedback = "Say something else"
	_, err := h.pass(context.Background())
	require.ErrorContains(t, err, "the prompt comes out otherwise than it was composed")
	require.Zero(t, h.started())
}

func TestAnotherSecretIsAnotherQuestion(t *testing.T) {
	one, other := work.PassInput{Prompt: run.Blob{Digest: "shown", Raw: "one"}}, work.PassInput{Prompt: run.Blob{Digest: "shown", Raw: "other"}}
	require.NotEqual(t, asked(one), asked(other))
}

func TestNothingLeavesInAResult(t *testing.T) {
	h := newHouse(t, "answer")
	h.secret = sesame
	say := func(out any, err error) func(context.Context, struct{}) (any, error) {
		return func(context.Context, struct{}) (any, error) { return out, err }
	}
	tells := func(err error) error {
		_, err = telling(h.acts, say(nil, err))(context.Background(), struct{}{})
		return err
	}
	for _, row := range []struct {
		name  string
		err   error
		kind  string
		final bool
	}{
		{"plain", errors.New("no open-sesame"), "", false},
		{"of a kind", badInput("no %s", sesame), work.ErrBadInput, true},
		{"with a cause", temporal.NewApplicationErrorWithCause("no open-sesame", "Odd", errors.New(sesame)), "Odd", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var app *temporal.ApplicationError
			require.ErrorAs(t, tells(row.err), &app)
			require.Equal(t, "no <hidden>", app.Message())
			require.Equal(t, row.kind, app.Type())
			require.Equal(t, row.final, app.NonRetryable())
			require.NoError(t, errors.Unwrap(app), "a cause would be told, too")
		})
	}
	plain := errors.New("as it is")
	require.Equal(t, plain, tells(plain))

	res := work.PassResult{
		Message: sesame, Diagnostics: sesame, ScoreWhy: sesame, Verdict: sesame,
		Validation: run.Validation{Checks: []run.Check{{Detail: sesame}}, Warnings: []string{sesame}},
	}
	h.acts.hide(&res)
	shots := work.ShotsResult{Message: sesame, Troubles: []work.Trouble{{Message: sesame, Diagnostics: sesame}}}
	h.acts.hide(&shots)
	project := work.ProjectResult{Troubles: []work.Trouble{{Message: sesame}}}
	h.acts.hide(&project)
	deliver := work.DeliverResult{Why: sesame}
	h.acts.hide(&deliver)
	round := work.Round{Title: sesame, Steps: []work.Step{{}}}
	round.Steps[0].Run, round.Steps[0].Ask, round.Steps[0].Description, round.Steps[0].LogTitle = sesame, sesame, sesame, sesame
	h.acts.hide(&round)
	for _, r := range []any{res, shots, project, deliver, round} {
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		require.NotContains(t, string(raw), sesame)
	}
}

func TestTheKeyOfMarksIsTheStores(t *testing.T) {
	dir := t.TempDir()
	one, other := config.Settings{Store: "file://" + filepath.Join(dir, "one")}, config.Settings{Store: "file://" + filepath.Join(dir, "other")}
	secret := "sk-" + "ant-" + strings.Repeat("a1", 20)
	mark := func(s config.Settings) string {
		r, err := NewRedactor(s, nil)
		require.NoError(t, err)
		return r.Text(secret)
	}
	require.Regexp(t, `^\[redacted:anthropic-key:[0-9a-f]{4}\]$`, mark(one))
	require.Equal(t, mark(one), mark(one))
	require.NotEqual(t, mark(one), mark(other))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "no-folder"), nil, 0o600))
	require.Equal(t, "[redacted:anthropic-key]", mark(config.Settings{Store: "file://" + filepath.Join(dir, "no-folder")}), "without a store it is hidden all the same")
	_, err := NewRedactor(config.Settings{Redact: config.Redact{Patterns: config.Lines{"("}}}, nil)
	require.ErrorContains(t, err, "redact.patterns")
}

func TestNothingIsLeftOfACallThatWasEnded(t *testing.T) {
	h := newHouse(t, "hang")
	ctx, end := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { _, err := h.pass(ctx); done <- err }()
	h.awaitStart(1)
	end(temporal.NewCanceledError())
	require.Error(t, <-done)
	h.noScratch()
}

func TestAnAnswerOfAnEarlierReleaseIsRead(t *testing.T) {
	h := newHouse(t, "answer")
	l := h.ledger()
	ans := answer{Version: 1, Call: l.call, Delivery: 1, Host: "here", Stdout: h.put(envelopeOf("An answer.")), Stderr: h.put("")}
	_, err := l.put(context.Background(), ans)
	require.NoError(t, err)
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, "ok", res.Outcome)
	require.InDelta(t, 0.25, res.Spend.USD, 1e-9)
	require.Zero(t, h.started())
}
