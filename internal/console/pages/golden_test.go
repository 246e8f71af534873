package pages

import (
	"flag"
	"html"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "rewrite the pages in testdata")

var (
	pieces = regexp.MustCompile(`</?(section|h[1-6]|tr|p|li|ul|summary|dl|dt|pre|figure|div|form|fieldset|label|` +
		`table)\b[^>]*>`)
	drawing   = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	used      = regexp.MustCompile(`<(main|a|form|input|img|textarea|button|option)\b[^>]*>`)
	attribute = regexp.MustCompile(` (href|src|action|data-follow|name|value|placeholder|checked|required|readonly|` +
		`selected)(?:="([^"]*)")?`)
	changing = regexp.MustCompile(`20[0-9]{2}-[0-9-]+ [0-9:]+ UTC|\b[0-9a-f]{13,}\b|(name=request value=|on Linux )[^] ]+`)
)

// outline returns a page as the golden files show it: a line for each block with its text, and in brackets what a
// reader can follow, fill in or send. It begins at a tag. Text of agents may not be markup nor change other text.
func (d *desk) outline(page, from string) string {
	d.t.Helper()
	folder, err := os.Getwd()
	require.NoError(d.t, err)
	_, page, ok := strings.Cut(page, from)
	require.True(d.t, ok && strings.HasSuffix(page, "</html>\n"))
	page = script.ReplaceAllString(drawing.ReplaceAllString(from+page, ""), "")
	for _, bad := range []string{"<script", "<img src=x", "\u202e", "\u2066", "\x1b", "\x07", `style="`,
		`href="javascript:`} {
		require.NotContains(d.t, page, bad)
	}
	var lines []string
	for _, piece := range pieces.Split(used.ReplaceAllStringFunc(page, func(tag string) string {
		shown := "\n[" + used.FindStringSubmatch(tag)[1]
		for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
			shown += " " + a[1] + strings.TrimSuffix("="+a[2], "=")
		}
		return shown + "]"
	}), -1) {
		for line := range strings.Lines(piece) {
			text := strings.ReplaceAll(shownText(line), terminal.Safe(evil), "EVIL")
			text = strings.NewReplacer(d.root, "RUNS", d.state, "STATE", folder, "HERE").Replace(text)
			if text != "" {
				lines = append(lines, changing.ReplaceAllString(text, "${1}…"))
			}
		}
	}
	return html.UnescapeString(strings.Join(slices.Compact(lines), "\n")) + "\n"
}

// TestPages compares the text, the links and the forms of each page with a reviewed file. A page loads only what this
// server has, and browsers do not store it.
func TestPages(t *testing.T) {
	d := newDesk(t)
	testenv.Golden(t, *update, "empty", d.show("/inbox")+d.show("/runs"))
	paths := stored(t, d)
	maps.Copy(paths, map[string]string{"second-question": "/inbox?run=" + fourth, "closed-question": "/inbox?run=" + third,
		"run-all": "/runs/" + first + "?all", "paused": "/runs/" + second, "decide": "/runs/" + first + "/do/decide",
		"checkpoints-all": "/runs/" + second + "/checkpoints?all", "fork-at": "/runs/" + second + "/do/fork?at=cp-S1",
		"done-log": "/runs/" + third + "/log"})
	for name, path := range paths {
		testenv.Golden(t, *update, name, d.show(path))
		w := d.answer(http.MethodGet, path, nil)
		policy := w.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self'", path)
		require.Contains(t, policy, "frame-ancestors 'none'", path)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), path)
	}
	_, page := d.get("/inbox?run=" + fourth[:8])
	require.Contains(t, shownText(page), "2 of 2 waiting", "the beginning of an id")

	lanes := beginIn(t, run.WordingCorpus, fifth, morning)
	lanes.add(run.KindChildrenListed, run.ChildrenListed{Stage: "write", Count: 3, Digest: lanes.blobs.keep("[]").Digest})
	var all []run.LanePlace
	for i, key := range []string{"a", "b", "c"} {
		all = append(all, lanes.lane(i, key, key+".go "+evil))
	}
	lanes.endLane(all[1], "it is broken")
	dir := lanes.write(d.root)
	working := begin(t, all[0].ChildRunID(fifth, 0), morning)
	working.add(run.KindPassStart, run.PassStart{Pass: run.Pass{Step: "001", Round: 1, Role: "builder", Gives: "artifact"},
		Agent: "agent", Call: "001", Attempt: 1, Attempts: 3, Prompt: working.blobs.keep("Write it.")})
	working.in(dir.Path(all[0].Dir("write")), d.root)
	asking(t, all[2].ChildRunID(fifth, 0), morning).in(dir.Path(all[2].Dir("write")), d.root)
	testenv.Golden(t, *update, "lanes", d.show("/runs/"+fifth))
	require.Zero(t, d.connected)
}

const fifth = "55555555-eeee-4eee-8eee-eeeeeeeeeeee"

// show returns the main part of a page after its address.
func (d *desk) show(path string) string {
	d.t.Helper()
	_, page := d.get(path)
	return path + "\n" + d.outline(page, "<main") + "\n"
}

var script = regexp.MustCompile(`<script src="/static/console\.js\?v=[0-9a-f]+" defer></script>`)

// TestFormsKeepWhatWasEntered compares the pages that answer forms with reviewed files. Whatever refuses a form, what
// was entered is shown again, and only a complete form reaches the server.
func TestFormsKeepWhatWasEntered(t *testing.T) {
	const typed = "A long text <b>that</b> took an hour"
	d := newDesk(t)
	s := asking(t, first, morning)
	s.decide("h-1", "continue")
	s.pass(3, "Third.")
	s.ask("h-2")
	s.write(d.root)
	done := begin(t, second, morning)
	done.pass(1, "One.")
	done.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	done.write(d.root)
	decide := func(question, digest, action string) url.Values {
		return url.Values{"question": {question}, "digest": {digest}, "action": {action}, "feedback": {typed}}
	}
	noFeedback := decide("h-2", "d-h-2", "retry_feedback")
	noFeedback["feedback"], noFeedback["note"] = nil, []string{typed + evil}
	ofLink := decide("h-2", "d-h-2", "retry_feedback")
	ofLink["feedback"], ofLink["by"] = nil, []string{typed}
	run, answer := "/runs/"+first, "/runs/"+first+"/do/decide"
	for _, row := range []struct {
		name, path string
		can        api.Access
		form       url.Values
		code       int
		connects   int
	}{
		{"answered by another client", answer, api.CanDecide, decide("h-1", "d-h-1", "halt"), 409, 0},
		{"unknown question", answer, api.CanDecide, decide("h-0", "d-h-2", "continue"), 409, 0},
		{"changed work", answer, api.CanDecide, decide("h-2", "old", "continue"), 409, 0},
		{"no action", answer, api.CanDecide, decide("h-2", "d-h-2", ""), 422, 0},
		{"no feedback", answer, api.CanDecide, noFeedback, 422, 0},
		{"answer by a link", answer, api.CanDecide, ofLink, 422, 0},
		{"answer of a reader", answer, api.CanRead, decide("h-2", "d-h-2", "continue"), 403, 0},
		{"answer without a server", answer, api.CanDecide, decide("h-2", "d-h-2", "continue"), 500, 1},
		{"ended run", "/runs/" + second + "/do/steer", api.CanOperate, url.Values{"text": {typed}}, 409, 0},
		{"removed run", "/runs/" + third + "/do/steer", api.CanOperate, url.Values{"text": {typed}}, 404, 0},
		{"steering without a server", run + "/do/steer", api.CanOperate, url.Values{"text": {typed}}, 500, 1},
		{"steering by a decider", run + "/do/steer", api.CanDecide, url.Values{"text": {typed}}, 403, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			d.can, d.connected, d.base = row.can, 0, ""
			from := "<main"
			if row.name == "answer by a link" {
				d.base, from = "/answer/x", "<body" // it has no navigation
			}
			row.form.Set("request", "r-1")
			w := d.answer(http.MethodPost, row.path, row.form)
			require.Equal(t, row.code, w.Code)
			require.Equal(t, row.connects, d.connected)
			page := w.Body.String()
			require.Contains(t, page, "A long text &lt;b&gt;that&lt;/b&gt; took an hour", "what was entered")
			testenv.Golden(t, *update, "posted-"+strings.ReplaceAll(row.name, " ", "-"),
				d.outline(page, from))
		})
	}
}
