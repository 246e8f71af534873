package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shared is a run that several rows check. It is made once; if that fails, every row that needs it fails.
type shared struct {
	once sync.Once
	make func(t *testing.T) result
	r    result
	ok   bool

	skipped bool
}

func (s *shared) get(t *testing.T) result {
	t.Helper()
	s.once.Do(func() {
		defer func() { s.skipped = t.Skipped() }()
		s.r = s.make(t)
		s.ok = true
	})
	if s.skipped {
		t.Skip("the run of this row cannot be made here; the first skipped row has the reason")
	}
	require.True(t, s.ok, "the run of this row could not be made; see the first failed row")
	return s.r
}

var (
	demoRun      = &shared{make: makeDemo}
	recoveredRun = &shared{make: makeRecovered}
	pausedRun    = &shared{make: makePaused}
	budgetRun    = &shared{make: makeBudget}
	archivedRun  = &shared{make: makeArchived}
	tinyRun      = &shared{make: makeTiny}
)

// makeDemo is the whole demo, observed from before its beginning.
func makeDemo(t *testing.T) result {
	setRowsFaults(t, "[]")
	from := len(calls(t, 0))
	r := result{dir: filepath.Join(base, "demo")}
	s := observe(t, r.dir)
	s.holdCalls(t, rowsEnv.faults())
	r.output = starter(t, "demo", "--output-dir", r.dir)
	r.seen, r.calls = s.end(), calls(t, from)
	require.Contains(t, r.output, "Done: 56 of 56 passes, 3 cycles, 70 calls")
	return r
}

// runTiny runs the small pipeline to its end, attached.
func runTiny(t *testing.T, dir string, more ...string) string {
	t.Helper()
	return starter(t, append([]string{"run", "--config", example("corpus-tiny.yaml"), "--output-dir", dir}, more...)...)
}

// makeTiny is the small pipeline without faults.
func makeTiny(t *testing.T) result {
	setRowsFaults(t, "[]")
	r := result{dir: filepath.Join(base, "tiny")}
	from := len(calls(t, 0))
	r.output = runTiny(t, r.dir)
	r.calls = calls(t, from)
	return r
}

// auditSeconds is the time of each auditor in the second cycle of the recovered run.
const auditSeconds = 5.0

// makeRecovered meets most errors of agents, and completes.
func makeRecovered(t *testing.T) result {
	setRowsFaults(t, strings.Join([]string{
		"- {at: 3, do: exit, code: 1, stderr: Connection reset by peer}",
		"- {at: 4, do: rate_limit}",
		"- {at: 6, do: no_markers}",
		"- {at: 7, do: width, width: 800}",
		"- {at: 9, do: bad_json}",
		"- {at: 10, do: is_error}",
		"- {at: 11, do: empty}",
		"- {at: auditor-A-1, do: slow, seconds: 1}",
		"- {at: auditor-C-1, do: slow, seconds: 1}",
		"- {at: auditor-B-1, attempt: all, do: exit}",
		"- {at: weaver-1, do: say, text: It has no score.}",
		"- {at: refine-1, attempt: all, do: no_html}",
		fmt.Sprintf("- {at: auditor-A-2, do: slow, seconds: %v}", auditSeconds),
		fmt.Sprintf("- {at: auditor-B-2, do: slow, seconds: %v}", auditSeconds),
		fmt.Sprintf("- {at: auditor-C-2, do: slow, seconds: %v}", auditSeconds),
	}, "\n"))
	r := result{dir: filepath.Join(base, "recovered")}
	from := len(calls(t, 0))
	s := observe(t, r.dir)
	r.output = runTiny(t, r.dir)
	r.seen, r.calls = s.end(), calls(t, from)
	return r
}

// atPause is what was seen of the paused run.
var atPause struct {
	during  object // state.json while a call ran
	state   object // and during the first pause
	logs    map[string]string
	report  string // of cost-report, with a torn line in the cost log
	edited  string // digest of the artifact after an edit in the first pause
	removed string // digest of the artifact that was removed in the second pause
}

const (
	// torn is the end of a log after a crash.
	torn = `{"pa`
	// edit is added to the page by hand.
	edit = "<!-- edited by hand -->\n"
)

// makePaused is paused in pass 3, damaged in several ways, moved, and resumed.
func makePaused(t *testing.T) result {
	setRowsFaults(t, rowsEnv.held("3", 1)+"\n"+rowsEnv.held("6", 1))
	first, r := result{dir: filepath.Join(base, "paused-first")}, result{dir: filepath.Join(base, "paused")}
	runTiny(t, first.dir, "--detach")
	begun(t, first, 3)
	atPause.during = first.state(t)
	pause(t, first, 1, "3")
	atPause.state = first.state(t)
	require.NoError(t, os.Rename(first.dir, r.dir))
	damagePaused(t, r)
	starter(t, "resume", "--output-dir", r.dir)
	begun(t, r, 6)
	pause(t, r, 2, "6")
	atPause.removed = digest(r.file(t, "artifact.html"))
	require.NoError(t, os.Remove(r.path("artifact.html")))
	starter(t, "resume", r.dir)
	r.output = runTiny(t, r.dir)
	return r
}

// begun waits until state.json shows that a pass runs.
func begun(t *testing.T, r result, n int) {
	t.Helper()
	until(t, "pass "+padded(n)+" runs", func() bool {
		raw, err := os.ReadFile(r.path(statePathIn))
		if err != nil {
			return false
		}
		running, _ := parse(t, raw)["inFlightPass"].(map[string]any)
		return running["globalPassNumber"] == float64(n)
	})
}

// pause pauses a run for the nth time during a held call, and waits until its directory shows the pause and its
// checkpoint.
func pause(t *testing.T, r result, nth int, at string) {
	t.Helper()
	starter(t, "pause", r.dir)
	rowsEnv.release(t, at)
	until(t, "the run is paused", func() bool {
		s, n := r.state(t), 0
		for _, c := range s.objects(t, "checkpoints") {
			if strings.HasPrefix(c.text(t, "id"), "cp-PAUSE-") {
				n++
			}
		}
		meta := parse(t, r.file(t, "meta.json")) // is written last
		return s["currentPhase"] == "paused" && n == nth && meta["status"] == "paused"
	})
}

// damagePaused does to a paused run what crashes and operators do.
func damagePaused(t *testing.T, r result) {
	t.Helper()
	page := []byte(strings.Replace(string(r.file(t, "artifact.html")), "</body>", edit+"</body>", 1))
	require.Contains(t, string(page), edit)
	require.NoError(t, os.WriteFile(r.path("artifact.html"), page, 0o600))
	atPause.edited = digest(page)
	atPause.logs = r.logFiles(t)
	text := atPause.logs["cost.jsonl"] + torn
	require.NoError(t, os.WriteFile(r.path(logs+"cost.jsonl"), []byte(text), 0o600))
	atPause.report = starter(t, "cost-report", r.dir)
	require.NoError(t, os.WriteFile(r.path("_orchestrator/state.json.tmp.1"), []byte(`{"schemaVersion":3,`), 0o600))
}

// makeBudget exceeds its budget once, and continues after a raise.
func makeBudget(t *testing.T) result {
	setRowsFaults(t, "[]")
	config := copyExample(t, "poor", "budget: {usd: 2, warn_at: 0.8}", "budget: {usd: 0.5}")
	r := result{dir: filepath.Join(base, "budget")}
	output, code := try(t, "run", "--config", config, "--output-dir", r.dir)
	require.Equal(t, 3, code, output)
	outOfBudget = r.state(t)
	budgetPause = filepath.Join(base, "budget-pause")
	require.NoError(t, os.CopyFS(budgetPause, os.DirFS(r.dir)))
	starter(t, "budget", r.dir, "--usd", "5")
	starter(t, "resume", r.dir)
	r.output = starter(t, "run", "--config", config, "--output-dir", r.dir)
	return r
}

var (
	outOfBudget object // state.json when the budget was spent
	budgetPause string // a copy of the directory at that time
)

// beforeArchive is the directory that was used again for another configuration, with the digests of its files.
var beforeArchive map[string]string

// makeArchived uses the directory of a completed run for another configuration.
func makeArchived(t *testing.T) result {
	tiny := tinyRun.get(t)
	setRowsFaults(t, "[]")
	config := copyExample(t, "changed", "      - R4: research/axis-innovations.md\n", "")
	r := result{dir: filepath.Join(base, "archived")}
	require.NoError(t, os.CopyFS(r.dir, os.DirFS(tiny.dir)))
	beforeArchive = tree(t, r.dir)
	r.output = starter(t, "run", "--config", config, "--output-dir", r.dir, "--fresh")
	return r
}

var (
	moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
	uuid4  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	hash16 = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// elapsed is the time between two texts of time.
func elapsed(t *testing.T, from, to string) time.Duration {
	t.Helper()
	return when(t, to).Sub(when(t, from))
}
