package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// console is a starter that serves the HTTP API, with a token that can operate.
type console struct {
	h     *environment
	cmd   *exec.Cmd
	url   string // for browsers
	at    string // for programs
	token string
}

// console starts a console and waits for its address. It ends with the test.
func (h *environment) console(token string) *console {
	h.t.Helper()
	out, err := os.Create(filepath.Join(h.t.TempDir(), "console.log"))
	require.NoError(h.t, err)
	c := &console{h: h, cmd: h.command(context.WithoutCancel(h.t.Context()), "console", "--listen", "127.0.0.1:0"),
		token: token}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	require.NoError(h.t, c.cmd.Start())
	h.t.Cleanup(func() {
		c.end(syscall.SIGTERM)
		out.Close()
	})
	until(h.t, "the console serves", func() bool {
		for line := range strings.Lines(string(read(h.t, out.Name()))) {
			if url, ok := strings.CutPrefix(line, "Console "); ok {
				c.url = strings.TrimSpace(url)
			}
			if url, ok := strings.CutPrefix(line, "API "); ok && strings.HasSuffix(line, "/openapi.json\n") {
				c.at = strings.TrimSuffix(strings.TrimSpace(url), "/openapi.json")
			}
		}
		return c.at != ""
	})
	return c
}

// end ends the console with a signal; nothing if it has ended.
func (c *console) end(s syscall.Signal) {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Signal(s)
		_ = c.cmd.Wait()
	}
}

// post sends a request. A broken connection is an error.
func (c *console) post(path, key string, body any) (status int, answer map[string]any, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(c.h.t.Context(), http.MethodPost, c.at+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return got.StatusCode, answer, err
}

// do sends a request that must succeed.
func (c *console) do(path, key string, body any) map[string]any {
	c.h.t.Helper()
	status, answer, err := c.post(path, key, body)
	require.NoError(c.h.t, err)
	require.Equal(c.h.t, http.StatusOK, status, answer)
	return answer
}

// storyTo writes the files of the story.
func (h *environment) storyTo(folder string) string {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(folder, 0o700))
	for name, text := range storyFiles {
		require.NoError(h.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return filepath.Join(folder, "pipeline.yaml")
}

// TestKilledConsoleActsOnce kills the console between a request and its answer. The same request to the next console
// has no second effect: a start finds its run, and an answer is one to its question.
func TestKilledConsoleActsOnce(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	definition := h.storyTo(h.dir("definition"))
	tr := h.repository(h.dir("source"), "line\n")
	token := strings.TrimSpace(h.starter("token", "create", "ci", "--can", "operate"))

	c := h.console(token)
	start := map[string]any{"config": definition, "source": tr.source, "task": "Add lines."}
	lost := make(chan error, 1)
	go func() {
		_, _, err := c.post("/v1/runs", "one", start)
		lost <- err
	}()
	var dir string
	until(t, "the run is claimed", func() bool {
		claims, err := filepath.Glob(h.dir("runs/*/story-*/run.json"))
		require.NoError(t, err)
		if len(claims) > 0 {
			dir = filepath.Dir(claims[0])
		}
		return dir != ""
	})
	c.end(syscall.SIGKILL)
	<-lost
	c = h.console(token)
	started := c.do("/v1/runs", "one", start)
	require.Equal(t, dir, started["directory"])
	require.Equal(t, started["run_id"], c.do("/v1/runs", "one", start)["run_id"])
	runs, err := filepath.Glob(h.dir("runs/*/*"))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	other := c.do("/v1/runs", "two", start)
	require.NotEqual(t, started["run_id"], other["run_id"], "another key starts another run")

	tr.dir = dir
	tr.asked(run.QuestionHandoff)
	h.decideOnce(c, tr)
}

// killed sends a request with a key, kills the console when the request has its effect, and starts another console. The
// console may have answered in the last moment: its answer is forgotten, as if it had been killed earlier.
func (h *environment) killed(c *console, path, key string, body map[string]any, done func() bool) *console {
	t := h.t
	t.Helper()
	lost := make(chan error, 1)
	go func() {
		_, _, err := c.post(path, key, body)
		lost <- err
	}()
	until(t, "the request "+path+" has its effect", done)
	c.end(syscall.SIGKILL)
	<-lost
	files, err := filepath.Glob(filepath.Join(h.state(), "console", "requests", "*"))
	require.NoError(t, err)
	for _, file := range files {
		var kept map[string]any
		if strings.HasSuffix(file, ".lock") || json.Unmarshal(read(t, file), &kept) != nil {
			continue
		}
		delete(kept, "status")
		raw, err := json.Marshal(kept)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, raw, 0o600))
	}
	return h.console(c.token)
}

// decideOnce kills the console when the question of the run is answered, and repeats the request when the run asks
// again. The answer, which names no question, is not one to the next question.
func (h *environment) decideOnce(c *console, tr *trial) {
	t := h.t
	t.Helper()
	path := "/v1/runs/" + metaOf(t, tr.dir).RunID + "/decide"
	body := map[string]any{"action": run.ActionRetryFeedback, "feedback": "shorter"}
	decided := func() []run.QuestionDecided {
		return of[run.QuestionDecided](eventsOf(t, tr.dir), run.KindHandoffDecided)
	}
	first := tr.asked(run.QuestionHandoff)
	c = h.killed(c, path, "five", body, func() bool { return len(decided()) == 1 })
	next := tr.asked(run.QuestionHandoff, first)
	answer := c.do(path, "five", body)
	require.Equal(t, answer, c.do(path, "five", body))
	require.Len(t, decided(), 1)
	require.Equal(t, run.ActionRetryFeedback, decided()[0].Action)
	require.Equal(t, "ci", decided()[0].DecidedBy)
	require.Equal(t, next.ID, tr.asked(run.QuestionHandoff).ID, "the next question is open")
	body["question"] = first.ID
	require.NotContains(t, c.do(path, "", body)["message"], "does not record it yet", "the first question is decided")
	c.do(path, "six", map[string]any{"action": run.ActionContinue})
	until(t, "another key answers the next question", func() bool { return len(decided()) == 2 })
}

// byAPI starts the run and sends every message with the HTTP API alone. A decision about another question is refused.
func (h *environment) byAPI(c *console) (start storyRunner, send storyClient) {
	start = func(tr *trial, definition string) {
		c.do("/v1/runs", "story", map[string]any{"config": definition, "directory": tr.dir, "source": tr.source,
			"task": "Add lines."})
	}
	return start, func(tr *trial, verb string, m contract.Message) {
		path := "/v1/runs/" + metaOf(tr.t, tr.dir).RunID + "/" + verb
		if verb == contract.VerbSteer {
			c.do(path, "", map[string]any{"text": m.Text, "role": m.Role})
			return
		}
		decision := map[string]any{"action": m.Action, "feedback": m.Feedback, "note": m.Note, "by": m.By}
		decision["question"] = "plan:1:5:00000000"
		status, answer, err := c.post(path, "", decision)
		require.NoError(tr.t, err)
		require.Equal(tr.t, http.StatusUnprocessableEntity, status, answer)
		delete(decision, "question") // the open one, as the other clients answer it
		c.do(path, "", decision)
	}
}
