package activities

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// notify sends a message to one receiver, with these variables in the environment.
func notify(t *testing.T, to pipeline.Notify, env map[string]string) error {
	t.Helper()
	ctx := context.Background()
	url := "file://" + filepath.Join(t.TempDir(), "store")
	s := must(store.Open(ctx, url))(t)
	if to.Timeout == 0 {
		to.Timeout = 10 * time.Second
	}
	plan := must(s.PutJSON(ctx, pipeline.Plan{Version: pipeline.PlanVersion, Notify: []pipeline.Notify{to}}))(t)
	a := newActivities(t, Config{Scratch: t.TempDir(), Supervisor: []string{filepath.Join(programs, supervisor.Program)},
		Sandbox: config.Sandbox{Mode: sandbox.None}, Getenv: func(name string) string { return env[name] }, Links: console{}})
	_, err := a.Notify(ctx, contract.NotifyInput{
		Target: contract.Target{RunID: "run-1", Store: url}, PlanUse: contract.PlanUse{Plan: string(plan)}, Notice: notice,
	})
	return err
}

// console makes links that show what they are made of.
type console struct{}

func (console) Page(run string) string { return "https://console/runs/" + run }

func (console) Answer(run, question, receiver string, ends time.Time) (string, error) {
	return strings.Join([]string{"https://console/q", run, question, receiver, ends.Format(time.DateTime)}, "/"), nil
}

func TestNotifyLinksToTheConsole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "said")
	asked := notice
	t.Cleanup(func() { notice = asked })
	for _, c := range []struct {
		question, expires string
		link              bool
		want              string
	}{
		{"", "", true, "https://console/runs/run-1"},
		{"12-abc", "", false, "https://console/runs/run-1"},
		{"12-abc", "", true, "https://console/q/run-1/12-abc/sh/0001-01-01 00:00:00"},
		{"12-abc", "2026-11-25T09:00:00.000Z", true, "https://console/q/run-1/12-abc/sh/2026-11-25 09:00:00"},
	} {
		notice.QuestionID, notice.ExpiresAt = c.question, c.expires
		script := `cat >"$0"; echo "$PASSBOOK_LINK" >>"$0"; echo "no bell for $PASSBOOK_LINK"; exit 1`
		err := notify(t, pipeline.Notify{Run: []string{"sh", "-c", script, file}, Link: c.link}, nil)
		require.ErrorContains(t, err, "exit status 1: no bell for [link]")
		require.NotContains(t, err.Error(), c.want, "a link is never recorded")
		raw := read(t, file)
		require.Contains(t, raw, `"link":"`+c.want+`"}`)
		require.Contains(t, raw, "\n"+c.want+"\n")
	}
}

var notice = contract.Notice{
	ID: "run-1/7", Run: "run-1", Event: "question", Status: run.AwaitingPhaseHandoff, Question: "Is it <good>?",
	Actions: []string{"continue"},
}

func TestNotifyPosts(t *testing.T) {
	var got *http.Request
	var body []byte
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer hook.Close()
	require.NoError(t, notify(t, pipeline.Notify{WebhookEnv: "HOOK", SecretEnv: "KEY"},
		map[string]string{"HOOK": hook.URL + "/in?token=1", "KEY": "quite secret"}))
	require.Equal(t, "POST /in?token=1", got.Method+" "+got.URL.String())
	require.Equal(t, "run-1/7", got.Header.Get("Idempotency-Key"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	sum := hmac.New(sha256.New, []byte("quite secret"))
	sum.Write(body)
	require.Equal(t, "sha256="+hex.EncodeToString(sum.Sum(nil)), got.Header.Get("Passbook-Signature"))
	var output map[string]any
	require.NoError(t, json.Unmarshal(body, &output))
	require.Equal(t, "Is it <good>?", output["question"])
	require.Equal(t, []any{"continue"}, output["actions"])

	require.NoError(t, notify(t, pipeline.Notify{Webhook: hook.URL}, nil))
	require.Empty(t, got.Header.Get("Passbook-Signature"), "there is no key")
}

func TestNotifyFailures(t *testing.T) {
	release := make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/down":
			http.Error(w, "come back later", http.StatusServiceUnavailable)
		case "/elsewhere":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}
	}))
	defer hook.Close()
	defer close(release)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, row := range []struct {
		name, path, want string
		base             string
		timeout          time.Duration
	}{
		{name: "down", path: "/down", want: "post to $HOOK: 503 Service Unavailable: come back later"},
		{name: "a redirect is not an answer", path: "/elsewhere", want: "post to $HOOK: 302"},
		{name: "slow", path: "/slow", want: "timeout after 50ms", timeout: 50 * time.Millisecond},
		{name: "no server", base: gone.URL, path: "/token", want: "post to $HOOK: "},
		{name: "no address", base: "nothing", path: "/token", want: "post to $HOOK: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := row.base
			if base == "" {
				base = hook.URL
			}
			err := notify(t, pipeline.Notify{WebhookEnv: "HOOK", Timeout: row.timeout}, map[string]string{
				"HOOK": base + row.path + "?secret=x",
			})
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "secret=x", "an address may be a secret")
		})
	}
	require.ErrorContains(t, notify(t, pipeline.Notify{WebhookEnv: "HOOK"}, nil),
		"HOOK is not set where the worker was started")
	require.ErrorContains(t, notify(t, pipeline.Notify{Webhook: hook.URL, SecretEnv: "KEY"}, nil), "KEY is not set")
}

func TestNotifyRunsACommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "said")
	t.Setenv("MAY_SEE", "yes")
	t.Setenv("MAY_NOT_SEE", "no")
	script := `cat >"$0"; echo "$PASSBOOK_NOTICE_ID $PASSBOOK_RUN $PASSBOOK_EVENT $PASSBOOK_STATUS $MAY_SEE ` +
		`$MAY_NOT_SEE" >>"$0"`
	require.NoError(t, notify(t, pipeline.Notify{Run: []string{"sh", "-c", script, file}, Env: []string{"MAY_SEE"}}, nil))
	raw := read(t, file)
	require.Contains(t, raw, `"id":"run-1/7"`)
	require.Contains(t, raw, "\nrun-1/7 run-1 question awaiting_phase_handoff yes \n")

	require.ErrorContains(t, notify(t, pipeline.Notify{Run: []string{"sh", "-c", "echo no bell; exit 3"}}, nil),
		"exit status 3: no bell")
	slow := pipeline.Notify{Run: []string{"sh", "-c", "sleep 60"}, Timeout: 50 * time.Millisecond}
	require.ErrorContains(t, notify(t, slow, nil), "timeout after 50ms")
	require.Error(t, notify(t, pipeline.Notify{Run: []string{"no-such-program"}}, nil))
}
