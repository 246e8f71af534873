package pages

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
)

const (
	first  = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	second = "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
)

var (
	tags  = regexp.MustCompile(`<[^>]*>`)
	space = regexp.MustCompile(`\s+`)
)

// shownText returns the visible text of a page.
func shownText(page string) string {
	return strings.TrimSpace(space.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(page, " ")), " "))
}

// everyPage are the pages about a run.
func everyPage(id string) []string {
	paths := []string{"/inbox", "/inbox?run=" + id, "/runs", "/runs/" + id, "/runs/" + id + "?all"}
	for _, t := range tabs {
		paths = append(paths, "/runs/"+id+t.Path)
	}
	for _, op := range []string{"decide", "fork", "replay", "cancel", "budget", "steer", "amend"} {
		paths = append(paths, "/runs/"+id+"/do/"+op)
	}
	return append(paths, "/runs/"+id+"/passes/4", "/runs/"+id+"/checkpoints?all")
}

func TestEveryPageShowsHostileTextAsText(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	allowed := regexp.MustCompile(`<script src="/static/console\.js\?v=[0-9a-f]+" defer></script>`)
	for _, path := range everyPage(first) {
		code, page := d.get(path)
		require.Equal(t, http.StatusOK, code, "%s: %s", path, shownText(page))
		require.True(t, strings.HasSuffix(page, "</html>\n"), path)
		require.Len(t, allowed.FindAllString(page, -1), 1, path)
		rest := allowed.ReplaceAllString(page, "")
		for _, bad := range []string{"<script", "<img src=x", "\u202e", "\u2066", "\x1b", "\x07", `style="`,
			`href="javascript:`} {
			require.NotContains(t, rest, bad, path)
		}
	}
}

func TestInboxShowsTheOldestQuestionAndWhatItIsAbout(t *testing.T) {
	d := newDesk(t)
	asking(t, second, morning.Add(10*time.Minute)).write(d.root)
	asking(t, first, morning).write(d.root)
	_, page := d.get("/inbox")
	text := shownText(page)
	require.Contains(t, text, "1 of 2 waiting")
	require.Contains(t, text, "weave · 11111111")
	require.Contains(t, text, "cost $0.50 of $4.00")
	require.Contains(t, text, "Second.")
	require.Contains(t, text, "Before")
	require.Contains(t, page, `src="/runs/`+first+`/pictures/_orchestrator/screenshots/cycle-1/viewport-1440x900.png"`)
	require.Contains(t, page, `src="/runs/`+first+`/pictures/_orchestrator/screenshots/cycle-2/viewport-1440x900.png"`)
	require.Contains(t, text, "do it again with your feedback")
	require.Contains(t, page, `name="csrf" value="the-token"`)
	require.Contains(t, page, `name="question" value="h-1"`)
	require.Contains(t, page, `name="digest" value="d-h-1"`)
	_, page = d.get("/inbox?run=" + second)
	require.Contains(t, shownText(page), "2 of 2 waiting")
	_, page = d.get("/inbox?run=" + second[:8])
	require.Contains(t, shownText(page), "2 of 2 waiting", "the beginning of an id")
	_, page = d.get("/inbox?run=" + third)
	require.Contains(t, shownText(page), "That question is no longer open. This is the oldest one.")
}

// TestLogNamesWhatThePlanSets: the log of the console shows the texts of the log file.
func TestLogNamesWhatThePlanSets(t *testing.T) {
	d := newDesk(t)
	s := asking(t, first, morning)
	s.decide("h-1", "continue")
	s.phase = "harden"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: 1, Dir: "screenshots/cycle-1"})
	dir := s.write(d.root)
	_, page := d.get("/runs/" + first + "/log")
	for _, text := range []string{"Artifact backed up to _orchestrator/passes/pass-001/artifact-backup.html",
		"STAGE Harden, cycle 1/6"} {
		raw, err := dir.ReadFile("_orchestrator/logs/orchestrator.log")
		require.NoError(t, err)
		require.Contains(t, string(raw), text)
		require.Contains(t, shownText(page), text)
	}
}

func TestEmptyInbox(t *testing.T) {
	d := newDesk(t)
	_, page := d.get("/inbox")
	require.Contains(t, shownText(page), "Nothing waits for you")
	_, page = d.get("/runs")
	require.Contains(t, shownText(page), "There are no runs yet")
}

func TestAnswersAreChecked(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	for _, row := range []struct {
		name  string
		can   api.Access
		form  url.Values
		code  int
		text  string
		calls int
	}{
		{"another question", api.CanDecide, url.Values{"question": {"h-0"}, "digest": {"d-h-1"}, "action": {"continue"}},
			http.StatusConflict, "This question is no longer open", 0},
		{"changed work", api.CanDecide, url.Values{"question": {"h-1"}, "digest": {"old"}, "action": {"continue"}},
			http.StatusConflict, "was not sent, and nothing has changed because of it", 0},
		{"no action", api.CanDecide, url.Values{"question": {"h-1"}, "digest": {"d-h-1"}},
			http.StatusUnprocessableEntity, "Choose an answer.", 0},
		{"no feedback", api.CanDecide, url.Values{"question": {"h-1"}, "digest": {"d-h-1"}, "action": {"retry_feedback"},
			"note": {"kept " + evil}}, http.StatusUnprocessableEntity, "Retry with feedback needs your feedback", 0},
		{"a reader", api.CanRead, url.Values{"question": {"h-1"}, "digest": {"d-h-1"}, "action": {"continue"}},
			http.StatusForbidden, "your access does not include it", 0},
		{"no server", api.CanDecide, url.Values{"question": {"h-1"}, "digest": {"d-h-1"}, "action": {"continue"}},
			http.StatusInternalServerError, errNoServer.Error(), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			d.can, d.connected = row.can, 0
			code, page, _ := d.post("/runs/"+first+"/do/decide", row.form)
			require.Contains(t, shownText(page), row.text)
			require.Equal(t, row.code, code)
			require.Equal(t, row.calls, d.connected)
			if row.name == "no feedback" {
				require.Contains(t, page, `value="kept &lt;/pre&gt;`)
				require.Contains(t, page, `value="retry_feedback" required checked`)
			}
		})
	}
}

func TestStaleAnswerShowsWhoDecided(t *testing.T) {
	d := newDesk(t)
	s := asking(t, first, morning)
	s.decide("h-1", "continue")
	s.pass(3, "Third.")
	s.ask("h-2")
	s.write(d.root)
	code, page, _ := d.post("/runs/"+first+"/do/decide", url.Values{"question": {"h-1"}, "digest": {"d-h-1"},
		"action": {"halt"}})
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, shownText(page), "Continue was decided by grace")
	require.Contains(t, shownText(page), "Your answer “Halt” was not sent")
	require.Contains(t, shownText(page), "Show the question that is open now")
	require.Zero(t, d.connected)
}

func TestOnlyAllowedActionsAreOffered(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	paused := begin(t, second, morning)
	paused.pass(1, "One.")
	paused.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested, By: "ada"})
	paused.write(d.root)
	offers := func(id string) []string {
		_, page := d.get("/runs/" + id)
		var all []string
		for _, m := range regexp.MustCompile(`/do/([a-z]+)"`).FindAllStringSubmatch(page, -1) {
			all = append(all, m[1])
		}
		return all
	}
	require.Equal(t, []string{"steer", "cancel", "budget", "amend"}, offers(first))
	require.Equal(t, []string{"resume", "steer", "cancel", "budget", "amend"}, offers(second))
	_, page := d.get("/runs/" + second + "/checkpoints")
	require.Contains(t, page, "/do/revert?at=cp-S1")
	_, page = d.get("/runs/" + second + "/do/budget")
	require.Equal(t, []string{`placeholder="4"`, `placeholder="none"`, `placeholder="none"`},
		regexp.MustCompile(`placeholder="[0-9n][^"]*"`).FindAllString(page, -1), "the limits in force")
	d.can = api.CanDecide
	require.Empty(t, offers(first))
	_, page = d.get("/inbox")
	require.Contains(t, page, `<form class="answer"`)
	d.can = api.CanRead
	_, page = d.get("/inbox")
	require.NotContains(t, page, `<form class="answer"`)
	for _, path := range []string{"/do/cancel", "/do/revert?at=cp-S1", "/do/steer"} {
		code, _ := d.get("/runs/" + second + path)
		require.Equal(t, http.StatusForbidden, code, path)
		code, _, _ = d.post("/runs/"+second+path, url.Values{})
		require.Equal(t, http.StatusForbidden, code, path)
	}
	d.can = api.CanOperate
	code, page := d.get("/runs/" + second + "/do/promote")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, shownText(page), "it is paused, which does not allow that")
	require.Zero(t, d.connected)
}

func TestPreviewShowsWhatIsLeftBehind(t *testing.T) {
	d := newDesk(t)
	s := begin(t, first, morning)
	s.pass(1, "One.")
	s.pass(2, "Two.")
	s.pass(3, "Three.")
	s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested, By: "ada"})
	s.write(d.root)
	_, page := d.get("/runs/" + first + "/do/revert?at=cp-S1")
	text := shownText(page)
	require.Contains(t, text, "What is left behind 2 passes cost $0.50 stays counted")
	require.Contains(t, text, "1 pass stays in force")
	require.Contains(t, page, `name="to" value="cp-S1"`)
	_, page = d.get("/runs/" + first + "/do/fork?at=cp-S2")
	require.Contains(t, shownText(page), "What the fork does not take over 1 pass cost $0.25 stays with this run")
	require.Contains(t, page, `name="from" value="cp-S2"`)
	code, _ := d.get("/runs/" + first + "/do/fork?at=cp-S9")
	require.Equal(t, http.StatusNotFound, code)
	require.Zero(t, d.connected)
}

func TestRunsAreFilteredAndPaged(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	done := begin(t, second, morning.Add(time.Minute))
	done.pass(1, "One.")
	done.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	done.write(d.root)
	for path, want := range map[string][]string{
		"/runs": {second[:8], first[:8]}, "/runs?show=asks": {first[:8]}, "/runs?show=done": {second[:8]},
		"/runs?text=2222": {second[:8]}, "/runs?pipeline=none": nil, "/runs?page=99": {second[:8], first[:8]},
		"/runs?page=-1": {second[:8], first[:8]},
	} {
		_, page := d.get(path)
		var got []string
		for _, m := range regexp.MustCompile(`</strong> <code>([0-9a-f]{8})</code>`).FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		require.Equal(t, want, got, path)
	}
}

func TestAddressesLeadOnlyToRuns(t *testing.T) {
	d := newDesk(t)
	dir := asking(t, first, morning).write(d.root)
	secret := dir.Path("_orchestrator/screenshots/secret.png")
	require.NoError(t, os.WriteFile(secret, []byte("no picture"), 0o600))
	for _, path := range []string{
		"/runs/" + url.PathEscape(d.root+"/"+first), "/runs/..", "/runs/%2e%2e", "/runs/" + first[:4], "/runs/nothing",
		"/runs/" + first + "/passes/1", "/runs/" + first + "/passes/x", "/runs/" + first + "/do/list",
		"/runs/" + first + "/pictures/run.json", "/runs/" + first + "/pictures/..%2f..%2fx.png", "/nothing",
		"/runs/" + first + "/pictures/_orchestrator/screenshots/secret.png", "/static/../pages.go",
	} {
		code, _ := d.get(path)
		require.Contains(t, []int{http.StatusNotFound, http.StatusTemporaryRedirect, http.StatusMovedPermanently}, code,
			path)
	}
	code, _ := d.get("/runs/" + first[:8])
	require.Equal(t, http.StatusOK, code, "the beginning of an id")
}

// Of many lanes, the overview lists those that were not merged at once, also the first ones.
func TestOverviewOfManyLanes(t *testing.T) {
	d := newDesk(t)
	s := begin(t, first, morning)
	s.add(run.KindStageExpanded, run.StageExpanded{Stage: "write", Count: 300, Digest: s.blobs.keep("[]").Digest})
	for i := range 200 {
		s.lane = fmt.Sprintf("%012d", i)
		s.add(run.KindLaneStarted, run.LaneStarted{Index: i, Name: fmt.Sprintf("file-%03d.go", i+1)})
		end := run.LaneEnded{Index: i, Name: fmt.Sprintf("file-%03d.go", i+1), Outcome: run.LaneOutcomeDone}
		if i == 2 {
			end.Outcome, end.Reason = run.LaneOutcomeFailed, "it is broken"
		}
		s.add(run.KindLaneEnded, end)
		if i != 2 {
			s.add(run.KindLaneMerged, run.LaneMerged{Index: i, Name: end.Name, Changed: 1})
		}
	}
	s.write(d.root)
	code, page := d.get("/runs/" + first)
	require.Equal(t, http.StatusOK, code)
	shown := shownText(page)
	require.Contains(t, shown, "300 lanes: 199 merged, 1 failed, 100 not started")
	require.Contains(t, shown, "1 of 200, without those that were merged at once")
	require.Contains(t, shown, "failed: it is broken")
	require.NotContains(t, shown, "merged as")
	_, page = d.get("/runs/" + first + "?all")
	require.Equal(t, 199, strings.Count(shownText(page), "merged as"))
	_, page = d.get("/runs/" + first + "/checkpoints")
	require.Regexp(t, `Show \d+ more`, shownText(page))
	require.Equal(t, 120, strings.Count(page, "Fork…"))
}

func TestOverviewListsLanes(t *testing.T) {
	d := newDesk(t)
	s := begin(t, first, morning)
	s.add(run.KindStageExpanded, run.StageExpanded{Stage: "write", Count: 2, Digest: s.blobs.keep("[]").Digest})
	for i, key := range []string{"a", "b"} {
		s.lane = key
		s.add(run.KindLaneStarted, run.LaneStarted{Index: i, Name: key + ".go " + evil})
	}
	s.add(run.KindLaneEnded, run.LaneEnded{Index: 1, Name: "b.go", Outcome: run.LaneOutcomeFailed, Reason: "it is broken"})
	s.write(d.root)
	code, page := d.get("/runs/" + first)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, shownText(page), "2 lanes: 1 failed, 1 active")
	require.Regexp(t, `1 a\.go .*step 1`, shownText(page))
	require.Contains(t, shownText(page), "failed: it is broken")
	for _, bad := range []string{"<img src=x", "\u202e", "\u2066", "\x1b", "\x07"} {
		require.NotContains(t, page, bad)
	}
}
