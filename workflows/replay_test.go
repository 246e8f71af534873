package workflows_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/histories"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// historiesDir is the folder of the recorded histories. README.md describes how they are recorded.
const historiesDir = "testdata/histories"

// historiesIn reads the histories in a folder.
func historiesIn(t *testing.T, folder string) map[string]*historypb.History {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"+histories.Suffix))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string]*historypb.History{}
	for _, path := range paths {
		h, err := histories.Read(path)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(path), histories.Suffix)] = h
	}
	return all
}

// recorded are the stored histories; no test changes them.
func recorded(t *testing.T) map[string]*historypb.History {
	t.Helper()
	readOnce.Do(func() { storedHistories = historiesIn(t, historiesDir) })
	require.NotEmpty(t, storedHistories)
	return storedHistories
}

var (
	readOnce        sync.Once
	storedHistories map[string]*historypb.History
)

// Of the histories of a release only the journal is compared: other contents may have gained optional fields.
func TestReplay(t *testing.T) {
	released, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	for name, h := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := strings.Contains(string(released), "  "+name+histories.Suffix+"\n")
			require.NoError(t, histories.Replay(h, histories.Options{Journal: old}))
		})
	}
}

// An additional command in the handler of a message, or before an activity, is detected by at least one history.
func TestReplayDetectsAnExtraCommand(t *testing.T) {
	with := map[histories.Part][]*historypb.History{} // from the shortest on
	all := recorded(t)
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Compare(len(all[a].Events), len(all[b].Events))
	}) {
		for _, p := range partsOf(t, all[name]) {
			with[p] = append(with[p], all[name])
		}
	}
	for _, part := range slices.DeleteFunc(required(t), func(p histories.Part) bool { return !plantable(p) }) {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			require.True(t, slices.ContainsFunc(with[part], func(h *historypb.History) bool { return detects(h, part) }))
		})
	}
}

// detects is true if an additional command at a part makes the replay of a history fail.
func detects(h *historypb.History, at histories.Part) bool {
	err := histories.Replay(h, histories.Options{Extra: at})
	return err != nil && strings.Contains(err.Error(), nondeterministic)
}

// nondeterministic is the SDK's code of all errors of replay.
const nondeterministic = "TMPRL1100"

func plantable(p histories.Part) bool {
	for _, of := range []histories.Part{histories.SignalPart(""), histories.UpdatePart(""), histories.ActivityPart("")} {
		if strings.HasPrefix(string(p), string(of)) {
			return true
		}
	}
	return false
}

// Other bytes in the journal are an error, although their command is the same.
func TestReplayComparesTheJournal(t *testing.T) {
	for _, h := range recorded(t) {
		h = proto.Clone(h).(*historypb.History)
		for _, e := range h.Events {
			at := e.GetActivityTaskScheduledEventAttributes()
			if at.GetActivityType().GetName() != contract.Project {
				continue
			}
			in := at.Input.Payloads[0]
			if other := strings.Replace(string(in.Data), "pass.start", "pass.begin", 1); other != string(in.Data) {
				in.Data = []byte(other)
				require.ErrorContains(t, histories.Replay(h, histories.Options{}), "pass.begin")
				return
			}
		}
	}
	require.Fail(t, "no history has a pass")
}

// Everything that is registered, and each kind of event that a workflow writes, occurs in a history.
func TestHistoriesCoverTheWorkflows(t *testing.T) {
	missing := required(t)
	for _, h := range recorded(t) {
		missing = without(missing, partsOf(t, h))
	}
	require.Empty(t, missing, "record them: README.md")
}

// required lists what the workflows can do.
func required(t *testing.T) []histories.Part {
	t.Helper()
	all := []histories.Part{histories.Continued, histories.ContinuedWithQuestion, histories.Reset, histories.Encrypted,
		histories.Cancelled}
	acts := &activities.Activities{}
	called := names(acts.RegisterDirectory, acts.RegisterCalls)
	for _, name := range called {
		all = append(all, histories.ActivityPart(name))
	}
	for _, name := range names(acts.RegisterLocal) {
		all = append(all, histories.LocalActivityPart(name))
	}
	for _, verb := range workflows.Verbs() {
		all = append(all, histories.SignalPart(verb), histories.UpdatePart(verb))
	}
	for _, kind := range run.Kinds() {
		all = append(all, histories.EventPart(string(kind)))
	}
	for _, name := range histories.Types() {
		all = append(all, histories.WorkflowPart(name))
	}
	all = append(all, timers(t)...)
	return slices.DeleteFunc(all, func(p histories.Part) bool { return slices.Contains(withoutHistory, p) })
}

// withoutHistory occur in no history: no test with a server executes them now, and those of this package have none.
// A test with a server that does takes them out of this list.
var withoutHistory = []histories.Part{
	histories.EventPart(string(run.KindQuestionAwaited)),
	histories.EventPart(string(run.KindShotsAttempt)), histories.EventPart(string(run.KindEffectBlocked)),
	histories.EventPart(string(run.KindChildSkipped)),
	histories.TimerPart("until the directory is open"),
	histories.TimerPart("before the next screenshot attempt"),
	histories.ActivityPart(contract.ExamineAgents), // it is no part of a workflow
	// the forge of test/e2e ends with its test, and the histories were recorded before it
	histories.EventPart(string(run.KindForgeRead)), histories.EventPart(string(run.KindPullObserved)),
	histories.ActivityPart(contract.LookAtForge), histories.ActivityPart(contract.MergeBase),
	histories.ActivityPart(contract.LeaveForge),
}

// registry records the names of activities.
type registry struct {
	worker.ActivityRegistry
	names []string
}

func (r *registry) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.names = append(r.names, o.Name)
}

func names(register ...func(worker.ActivityRegistry)) []string {
	r := &registry{}
	for _, all := range register {
		all(r)
	}
	return r.names
}

func partsOf(t *testing.T, h *historypb.History) []histories.Part {
	t.Helper()
	parts, err := histories.Parts(h)
	require.NoError(t, err)
	return parts
}

// timerSummary matches the summary of a timer up to its first variable part: in the call of a function that waits, or
// in a wait.
var timerSummary = regexp.MustCompile(`(?:sleepUnlessPaused\(|awaitFor\(|\bsummary: )[^"{}]*"([^"%]*)`)

// timers are the summaries of all timers, from the source.
func timers(t *testing.T) (all []histories.Part) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range timerSummary.FindAllStringSubmatch(string(source), -1) {
			if !strings.HasSuffix(name, "_test.go") {
				all = append(all, histories.TimerPart(m[1]))
			}
		}
	}
	require.Greater(t, len(all), 8)
	return all
}

// without are the required parts that do not occur among others.
func without(required, others []histories.Part) []histories.Part {
	return slices.DeleteFunc(slices.Clone(required), func(p histories.Part) bool {
		return slices.ContainsFunc(others, func(other histories.Part) bool { return p.Covers(other) })
	})
}

var recordFrom = flag.String("record", "", "choose the historiesDir histories afresh from those in this folder")

// TestRecord replaces the stored histories by those of a folder which, from the smallest on, have a required part that
// no smaller one has, or execute another statement.
func TestRecord(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("histories are recorded with -record FOLDER only")
	}
	require.NotEmpty(t, testing.CoverMode(), "record with -cover")
	all, chosen, missing := historiesIn(t, *recordFrom), []string{}, required(t)
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Compare(proto.Size(all[a]), proto.Size(all[b]))
	}) {
		before := testing.Coverage()
		if histories.Replay(all[name], histories.Options{}) != nil {
			continue // recorded by other code, or with a secret that only its worker removes
		}
		widens := testing.Coverage() > before
		adds := slices.DeleteFunc(partsOf(t, all[name]), func(p histories.Part) bool {
			return !slices.ContainsFunc(missing, func(m histories.Part) bool { return m.Covers(p) }) ||
				plantable(p) && !detects(all[name], p)
		})
		if widens || len(adds) > 0 {
			chosen, missing = append(chosen, name), without(missing, adds)
		}
	}
	require.Empty(t, missing, "no test of test/e2e executes these")
	old, err := filepath.Glob(filepath.Join(historiesDir, "*"+histories.Suffix)) // beside them is the list of releases
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	for _, name := range chosen {
		require.NoError(t, histories.Write(historiesDir, name, all[name]))
	}
	t.Logf("stored %d of %d histories", len(chosen), len(all))
}

var freeze = flag.String("freeze", "", "list the historiesDir histories as those of this release, such as v0.1.0")

// releasedFile lists the histories of each release: a line "# v0.1.0", then digests and names as sha256sum prints them.
const releasedFile = historiesDir + "/released.sha256"

var datedRelease = regexp.MustCompile(`(?m)^## \[([0-9][^\]]*)\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// TestReleasedHistoriesAreKept: a run that a release began must replay in all later ones, so its histories stay as they
// are. A release has a list once the changelog dates it.
func TestReleasedHistoriesAreKept(t *testing.T) {
	if *freeze != "" {
		freezeHistories(t, *freeze)
	}
	raw, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	changelog, err := os.ReadFile("../CHANGELOG.md")
	require.NoError(t, err)
	require.NoError(t, kept(string(raw), string(changelog), historiesDir))
}

// kept checks a list of released histories.
func kept(list, changelog, folder string) error {
	var releases []string
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if release, ok := strings.CutPrefix(line, "# "); ok {
			releases = append(releases, release)
			continue
		}
		want, name, _ := strings.Cut(line, "  ")
		if name == "" {
			continue
		}
		got, err := digestOf(filepath.Join(folder, name))
		if err != nil || got != want {
			return fmt.Errorf("%s, a history of %s, is missing or changed: restore it, and record new ones beside it",
				name, releases[len(releases)-1])
		}
	}
	for _, m := range datedRelease.FindAllStringSubmatch(changelog, -1) {
		if !slices.Contains(releases, "v"+m[1]) {
			return fmt.Errorf("the changelog dates %s, whose histories are not listed: go test ./workflows "+
				"-run TestReleasedHistories -freeze v%[1]s", m[1])
		}
	}
	return nil
}

func digestOf(path string) (string, error) {
	raw, err := os.ReadFile(path)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

func freezeHistories(t *testing.T, release string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(historiesDir, "*"+histories.Suffix))
	require.NoError(t, err)
	f, err := os.OpenFile(releasedFile, os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, "# %s\n", release)
	require.NoError(t, err)
	for _, path := range paths {
		digest, err := digestOf(path)
		require.NoError(t, err)
		_, err = fmt.Fprintf(f, "%s  %s\n", digest, filepath.Base(path))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}
