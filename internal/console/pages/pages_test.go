package pages

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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

// TestPagesOfferWhatAccessAllows: a decider may answer, a reader only read.
func TestPagesOfferWhatAccessAllows(t *testing.T) {
	d := newDesk(t)
	stored(t, d)
	for can, row := range map[api.Access]struct{ operations, answers bool }{
		api.CanOperate: {true, true}, api.CanDecide: {false, true}, api.CanRead: {false, false},
	} {
		d.can = can
		_, page := d.get("/runs/" + second)
		require.Equal(t, row.operations, strings.Contains(page, "/do/"), can)
		_, page = d.get("/inbox")
		require.Equal(t, row.answers, strings.Contains(page, `<form class="answer"`), can)
		for _, path := range []string{"/do/cancel", "/do/revert?at=cp-S1", "/do/steer"} {
			code, _ := d.get("/runs/" + second + path)
			require.Equal(t, row.operations, code == http.StatusOK, "%s %s", can, path)
			if !row.operations {
				code, _, _ = d.post("/runs/"+second+path, url.Values{})
				require.Equal(t, http.StatusForbidden, code, "%s %s", can, path)
			}
		}
	}
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
		"/runs/" + first + "/do/fork?at=cp-S9",
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
	s.add(run.KindChildrenListed, run.ChildrenListed{Stage: "write", Count: 300, Digest: s.blobs.keep("[]").Digest})
	for i := range 200 {
		p := s.lane(i, fmt.Sprintf("%012d", i), fmt.Sprintf("file-%03d.go", i+1))
		if i == 2 {
			s.endLane(p, "it is broken")
			continue
		}
		s.endLane(p, "")
		s.add(run.KindChildMerged, run.ChildMerged{Index: i, Key: p.Key, Name: p.Name, Changed: 1,
			Tree: run.Blob{Digest: "tree"}})
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

// TestStartPage offers the pipelines of this folder; nothing else can be started, and what was entered is shown again.
func TestStartPage(t *testing.T) {
	repository := t.TempDir()
	t.Chdir(repository)
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n",
		"passbook/fix/pipeline.yaml": "pipeline: fix\nagent: {run: [cat], reply: text}\n" +
			"inputs:\n  area: {type: string, description: folder to work in}\n" +
			"roles: {writer: {prompt: p.md, gives: report}}\nstages:\n  - {name: work, steps: [{role: writer}]}\n",
		"passbook/fix/p.md":             "{{task}} in {{area}}\n",
		"passbook/broken/pipeline.yaml": "pipeline: [\n",
		"passbook/no-pipeline/notes.md": "x",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	file := filepath.Join(repository, "passbook/fix/pipeline.yaml")
	d := newDesk(t)
	_, page := d.get("/start")
	require.Equal(t, 2, strings.Count(page, `href="/start?pipeline=`))
	code, page := d.get("/start?pipeline=" + url.QueryEscape(file))
	require.Equal(t, http.StatusOK, code, shownText(page))
	require.Contains(t, shownText(page), "area folder to work in")
	code, page = d.get("/start?pipeline=" + url.QueryEscape(filepath.Join(repository, "passbook/broken/pipeline.yaml")))
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, shownText(page), "pipeline.yaml:2: not valid YAML")
	code, page, _ = d.post("/start", url.Values{"config": {file}, "task": {"Fix the sum"}, "request": {"r"}})
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, shownText(page), "area")
	require.Contains(t, page, "Fix the sum</textarea>")
	for _, other := range []string{"/etc/passwd", "passbook/fix/pipeline.yaml", "fix", repository + "/passbook/../passbook/fix/pipeline.yaml"} {
		code, _ = d.get("/start?pipeline=" + url.QueryEscape(other))
		require.Equal(t, http.StatusNotFound, code, other)
		code, _, _ = d.post("/start", url.Values{"config": {other}})
		require.Equal(t, http.StatusNotFound, code, other)
	}
	for _, can := range []api.Access{api.CanRead, api.CanDecide} {
		d.can = can
		code, _ = d.get("/start")
		require.Equal(t, http.StatusForbidden, code)
		code, _, _ = d.post("/start", url.Values{"config": {file}})
		require.Equal(t, http.StatusForbidden, code)
	}
	require.Zero(t, d.connected)
}
