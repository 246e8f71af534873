package e2e_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// reader is a browser without scripts that is logged in to a console.
type reader struct {
	t    *testing.T
	base string
	http.Client
}

// get returns a page.
func (b *reader) get(path string) string {
	b.t.Helper()
	answer, err := b.Get(b.base + path)
	return b.page(answer, err)
}

func (b *reader) page(answer *http.Response, err error) string {
	b.t.Helper()
	require.NoError(b.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// answer sends the form of the inbox.
func (b *reader) answer(runID, action, feedback string) string {
	b.t.Helper()
	_, form, ok := strings.Cut(b.get("/inbox?run="+runID), `<form class="answer"`)
	require.True(b.t, ok, "no question is open")
	fields := url.Values{"action": {action}, "feedback": {feedback}}
	for _, m := range hidden.FindAllStringSubmatch(form, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+"/runs/"+runID+"/do/decide",
		strings.NewReader(fields.Encode()))
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.base)
	answer, err := b.Do(r)
	return b.page(answer, err)
}

// testByPages answers the questions of a rejected run by the pages of the console alone, up to its delivery.
func testByPages(t *testing.T, h *environment) {
	c := h.console("")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &reader{t: t, base: c.url, Client: http.Client{Jar: jar}}
	link := strings.TrimSpace(h.starter("console", "link"))
	answer, err := b.Get(link)
	b.page(answer, err)
	tr := h.trial(t)
	tr.steerAgents("verdicts", "rejected\nrejected\nrejected\nrejected\n")
	tr.begin()
	q := tr.asked(run.QuestionHandoff)
	id := metaOf(t, tr.dir).RunID
	require.Contains(t, b.get("/inbox?run="+id), "verdict == approved is not met after 3 rounds")
	require.Contains(t, b.answer(id, "continue", ""), "decided: continue")
	tr.asked(run.QuestionDelivery, q)
	require.Contains(t, b.get("/inbox?run="+id), "&#43;line 5", "the change that the question is about")
	require.Contains(t, b.answer(id, "fix", "five is not enough"), "decided: fix")
	tr.over(run.Done)
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-5"))), "five is not enough")
	require.Contains(t, b.get("/runs/"+id), "The run is completed.")
	require.Contains(t, b.get("/runs/"+id+"/changes"), "Delivered")
}
