package workflows_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/histories"
	"github.com/passbook-run/passbook/workflows"
)

// historiesDir is the folder of the recorded histories. docs/workflow-changes.md describes how they are recorded.
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
	require.Empty(t, missing, "record them: docs/workflow-changes.md")
}

// onlyRead are kinds of events in directories that other programs wrote.
var onlyRead = []run.Kind{run.KindRunStarted, run.KindRunHalted, run.KindSnapshotCreated}

// required lists what the workflows can do.
func required(t *testing.T) []histories.Part {
	t.Helper()
	all := []histories.Part{histories.Continued, histories.ContinuedWithQuestion, histories.Reset, histories.Encrypted,
		histories.Cancelled}
	acts := &activities.Activities{}
	called := append(names(acts.RegisterDirectory, acts.RegisterCalls), contract.StartScheduled, contract.AwaitRun)
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
		if !slices.Contains(onlyRead, kind) {
			all = append(all, histories.EventPart(string(kind)))
		}
	}
	for _, name := range histories.Types() {
		all = append(all, histories.WorkflowPart(name))
	}
	return append(all, timers(t)...)
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

// timers are the summaries of all timers up to their first variable part, from the source.
func timers(t *testing.T) []histories.Part {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var all []histories.Part
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			for _, summary := range summaries(n) {
				beginning, _, _ := strings.Cut(summary, "%")
				all = append(all, histories.TimerPart(beginning))
			}
			return true
		})
	}
	require.NotEmpty(t, all)
	return all
}

// summaries are the texts of the timer that a piece of source starts: the text in the call of a function that waits,
// or in the options of a timer.
func summaries(n ast.Node) (all []string) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			if f.Sel.Name != "sleepUnlessPaused" {
				return nil
			}
		case *ast.Ident:
			if f.Name != "awaitFor" {
				return nil
			}
		default:
			return nil
		}
		for _, arg := range n.Args {
			all = append(all, texts(arg)...)
		}
	case *ast.CompositeLit:
		if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "TimerOptions" {
			all = texts(n)
		}
	}
	return all
}

// texts are the string literals in a piece of source.
func texts(n ast.Node) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

// without are the required parts that do not occur among others.
func without(required, others []histories.Part) []histories.Part {
	return slices.DeleteFunc(slices.Clone(required), func(p histories.Part) bool {
		return slices.ContainsFunc(others, func(other histories.Part) bool { return p.Covers(other) })
	})
}
