package e2e_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// phone is a browser that was never logged in, at the address of a console.
type phone struct {
	t    *testing.T
	base string
}

func (p phone) do(method, path string, form url.Values) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(form.Encode()))
	require.NoError(p.t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", p.base)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(p.t, err)
	return res.StatusCode, string(body)
}

// linked begins a run that asks twice and writes its notices into a folder, with links.
func (h *environment) linked() (dir, notices string) {
	h.t.Helper()
	notices = h.dir("notices")
	require.NoError(h.t, os.MkdirAll(notices, 0o700))
	h.env = append(h.env, "PASSBOOK_CONSOLE_URL=https://passbook.example.org", "NOTICES="+notices)
	config := h.definition(h.dir("linked"), `pipeline: linked
agent: {run: [sh, -c, "cat >/dev/null; echo Greet the world."], reply: text}
notify:
  - run: [sh, -c, 'echo "$PASSBOOK_LINK" > "$NOTICES/$PASSBOOK_EVENT-$PPID" && mv "$NOTICES/$PASSBOOK_EVENT-$PPID" "$NOTICES/$(basename $PASSBOOK_NOTICE_ID)"']
    env: [NOTICES]
    on: [question]
    link: true
roles: {planner: {prompt: plan.md, gives: report}}
stages: [{name: plan, steps: [{role: planner}, {ask: 'Is this the right plan?'}, {ask: 'Is it still?'}]}]
`, map[string]string{"plan.md": "Plan it.\n"})
	dir = h.dir("run")
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	return dir, notices
}

// linkIn returns the path of the link in the nth notice.
func linkIn(t *testing.T, notices string, n int) string {
	t.Helper()
	var files []string
	until(t, "the notice has arrived", func() bool {
		files, _ = filepath.Glob(filepath.Join(notices, "[0-9]*"))
		return len(files) >= n
	})
	require.Len(t, files, n)
	raw, err := os.ReadFile(files[n-1])
	require.NoError(t, err)
	path, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "https://passbook.example.org")
	require.True(t, ok, "%s", raw)
	return path
}

// TestLinkInANoticeAnswersItsQuestion opens the link in a notice without an account. Its form answers the question of
// the notice, and no other.
func TestLinkInANoticeAnswersItsQuestion(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir, notices := h.linked()
	link := linkIn(t, notices, 1)
	until(t, "the run asks", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
	p := phone{t, h.console("").at}
	before := len(eventsOf(t, dir))
	code, page := p.do(http.MethodGet, link, nil)
	require.Equal(t, http.StatusOK, code, page)
	require.Contains(t, page, "Is this the right plan?")
	code, _ = p.do(http.MethodPost, link+"/do/cancel", nil)
	require.Equal(t, http.StatusNotFound, code)
	require.Len(t, eventsOf(t, dir), before, "nothing was decided")

	field := func(name string) string {
		m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
		require.NotNil(t, m, name)
		return m[1]
	}
	form := url.Values{"question": {field("question")}, "digest": {field("digest")}, "action": {"continue"},
		"by": {"An operator on a train"}}
	code, body := p.do(http.MethodPost, link+"/do/decide", form)
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "This question is answered")
	until(t, "the second question is open", func() bool { return len(metaOf(t, dir).State.Questions) == 1 })
	code, body = p.do(http.MethodPost, link+"/do/decide", form)
	require.Equal(t, http.StatusConflict, code, "the link of the first question does not answer the second one")
	require.Contains(t, body, "no longer open")
	form.Set("question", metaOf(t, dir).State.Questions[0].ID)
	code, _ = p.do(http.MethodPost, link+"/do/decide", form)
	require.Equal(t, http.StatusUnprocessableEntity, code)

	decided := of[run.QuestionDecided](eventsOf(t, dir), run.KindHandoffDecided)
	require.Len(t, decided, 1)
	require.Equal(t, "An operator on a train", decided[0].DecidedBy)
}
