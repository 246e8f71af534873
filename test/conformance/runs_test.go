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

// shared is a run that several rows look at. It is made once; if that fails, every row that needs it fails.
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
		t.Skip("the run that this row looks at cannot be made here; the first row that was skipped says why")
	}
	require.True(t, s.ok, "the run that this row looks at could not be made; see the first row that failed")
	return s.r
}

var (
	demoRun     = &shared{make: makeDemo}
	troubledRun = &shared{make: makeTroubled}
	restedRun   = &shared{make: makeRested}
	budgetRun   = &shared{make: makeBudget}
	archivedRun = &shared{make: makeArchived}
	againRun    = &shared{make: makeAgain}
)

// makeDemo is the whole demo with real pictures, watched from before its beginning.
func makeDemo(t *testing.T) result {
	spoil(t, "[]")
	settle(t, realPictures)
	defer settle(t, blankPictures())
	from := len(calls(t, 0))
	r := result{dir: filepath.Join(base, "demo")}
	s := watch(t, r.dir)
	s.holdCalls(t, rowsEnv.faults())
	r.output = starter(t, "demo", "--output-dir", r.dir)
	r.seen, r.calls = s.end(), calls(t, from)
	require.Contains(t, r.output, "Done: 56 of 56 passes, 3 cycles, 70 calls")
	return r
}

// makeAgain is the small pipeline without any trouble.
func makeAgain(t *testing.T) result {
	spoil(t, "[]")
	r := result{dir: filepath.Join(base, "again")}
	from := len(calls(t, 0))
	r.output = starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", r.dir)
	r.calls = calls(t, from)
	return r
}

// auditSeconds is how long each auditor of the second cycle takes, in the run with most failures.
const auditSeconds = 3.0

// makeTroubled meets most of what an agent can do wrong, and ends all the same.
func makeTroubled(t *testing.T) result {
	spoil(t, strings.Join([]string{
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
		"- {at: weaver-1, do: say, text: It cannot be told.}",
		"- {at: refine-1, attempt: all, do: no_html}",
		fmt.Sprintf("- {at: auditor-A-2, do: slow, seconds: %v}", auditSeconds),
		fmt.Sprintf("- {at: auditor-B-2, do: slow, seconds: %v}", auditSeconds),
		fmt.Sprintf("- {at: auditor-C-2, do: slow, seconds: %v}", auditSeconds),
	}, "\n"))
	r := result{dir: filepath.Join(base, "troubled")}
	from := len(calls(t, 0))
	s := watch(t, r.dir)
	r.output = starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", r.dir)
	r.seen, r.calls = s.end(), calls(t, from)
	return r
}

// rest is what was seen of the run that was paused, while it was.
var rest struct {
	during  object // state.json while a call ran
	paused  object // and while it rested
	logs    map[string]string
	report  string // of cost-report, with a torn line in the cost log
	edited  string // digest of the artifact as somebody left it in the first pause
	removed string // and as it was before somebody removed it in the second
}

// torn is what a crash of somebody else left in a log.
const torn = `{"pa`

// edit is what somebody adds to the page by hand.
const edit = "<!-- a person was here -->\n"

// makeRested is paused in pass 3, hurt in several ways, moved, and resumed.
func makeRested(t *testing.T) result {
	spoil(t, "- {at: 3, do: slow, seconds: 3}\n- {at: 6, do: slow, seconds: 3}")
	first, r := result{dir: filepath.Join(base, "rested-first")}, result{dir: filepath.Join(base, "rested")}
	starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", first.dir, "--detach")
	begun(t, first, 3)
	rest.during = first.state(t)
	pause(t, first, 1)
	rest.paused = first.state(t)
	require.NoError(t, os.Rename(first.dir, r.dir))
	hurt(t, r)
	starter(t, "resume", "--output-dir", r.dir)
	begun(t, r, 6)
	pause(t, r, 2)
	rest.removed = digest(r.file(t, "artifact.html"))
	require.NoError(t, os.Remove(r.path("artifact.html")))
	starter(t, "resume", r.dir)
	r.output = starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", r.dir)
	return r
}

// pause pauses a run for the nth time, and waits until its directory shows that and the checkpoint of it.
func pause(t *testing.T, r result, nth int) {
	t.Helper()
	starter(t, "pause", r.dir)
	until(t, "the run rests", func() bool {
		s, n := r.state(t), 0
		for _, c := range s.objects(t, "checkpoints") {
			if strings.HasPrefix(c.text(t, "id"), "cp-PAUSE-") {
				n++
			}
		}
		raw, err := os.ReadFile(r.path("meta.json")) // written last, so nobody writes any more
		require.NoError(t, err)
		return s["currentPhase"] == "paused" && n == nth && parse(t, raw)["status"] == "paused"
	})
}

// hurt does to a resting run what crashes and people do.
func hurt(t *testing.T, r result) {
	t.Helper()
	page := []byte(strings.Replace(string(r.file(t, "artifact.html")), "</body>", edit+"</body>", 1))
	require.Contains(t, string(page), edit)
	require.NoError(t, os.WriteFile(r.path("artifact.html"), page, 0o600))
	rest.edited = digest(page)
	rest.logs = map[string]string{}
	entries, err := os.ReadDir(r.path(logs))
	require.NoError(t, err)
	for _, e := range entries {
		rest.logs[e.Name()] = string(r.file(t, logs+e.Name()))
	}
	f, err := os.OpenFile(r.path(logs+"cost.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(torn)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	rest.report = starter(t, "cost-report", r.dir)
	require.NoError(t, os.WriteFile(r.path("_orchestrator/state.json.tmp.1"), []byte(`{"schemaVersion":3,`), 0o600))
}

// makeBudget runs out of money once, and goes on after a raise.
func makeBudget(t *testing.T) result {
	spoil(t, "[]")
	config := copyExample(t, "poor", "budget: {usd: 2, warn_at: 0.8}", "budget: {usd: 0.5}")
	r := result{dir: filepath.Join(base, "budget")}
	output, code := try(t, "run", "--config", config, "--output-dir", r.dir)
	require.Equal(t, 3, code, output)
	broke = r.state(t)
	budgetStop = filepath.Join(base, "budget-stop")
	require.NoError(t, os.CopyFS(budgetStop, os.DirFS(r.dir)))
	starter(t, "budget", r.dir, "--usd", "5")
	starter(t, "resume", r.dir)
	r.output = starter(t, "run", "--config", config, "--output-dir", r.dir)
	return r
}

// broke is the state of the run without money, and budgetStop a copy of its directory.
var (
	broke      object
	budgetStop string
)

// before is what the directory held that was used for another configuration.
var before map[string]string

// makeArchived uses the directory of a finished run for another configuration.
func makeArchived(t *testing.T) result {
	spoil(t, "[]")
	config := copyExample(t, "changed", "      - R4: research/axis-innovations.md\n", "")
	r := result{dir: filepath.Join(base, "archived")}
	starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", r.dir)
	before = tree(t, r.dir)
	r.output = starter(t, "run", "--config", config, "--output-dir", r.dir, "--fresh")
	return r
}

var (
	moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
	uuid4  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	hash64 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hash16 = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// elapsed is the time between two texts of time.
func elapsed(t *testing.T, from, to string) time.Duration {
	t.Helper()
	return when(t, to).Sub(when(t, from))
}
