package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/passbook-run/passbook/examples"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"starter": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs one script per behaviour, each with its own state directory. The condition [server] requires a
// Temporal server.
func TestScripts(t *testing.T) {
	server, ok, err := local.Cached(local.Options{StateDir: t.TempDir()})
	if err != nil {
		ok = false
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			state := filepath.Join(e.WorkDir, "state")
			e.Setenv("PASSBOOK_STATE_DIR", state)
			e.Setenv("PASSBOOK_KEEPER", "false")
			e.Setenv("PASSBOOK_KEEP_AWAKE", "false")
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			if ok {
				e.Setenv("PASSBOOK_SERVER", server)
			}
			e.Defer(func() {
				_, _ = local.Stop(context.Background(), state, 20*time.Second)
				_, _ = supervisor.StopAll(context.Background(), filepath.Join(state, "scratch"), "end of the test")
			})
			return nil
		},
		Condition: func(c string) (bool, error) {
			if c == "server" {
				return ok && !testing.Short(), nil
			}
			return false, fmt.Errorf("unknown condition %q", c)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "pipeline": definitionOf, "stubs": stubs, "example": example, "rests": rests,
			"overwrite": overwrite, "reference": reference, "turns": turns,
			"refused": refused,
		},
	})
}

// exits N ARG... runs the starter and checks its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("starter", args[1:]...)
	got := 0
	var exit interface{ ExitCode() int }
	if err != nil {
		if !asExit(err, &exit) {
			ts.Fatalf("starter: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func asExit(err error, exit *interface{ ExitCode() int }) bool {
	e, ok := err.(interface{ ExitCode() int })
	if ok {
		*exit = e
	}
	return ok
}

// definitionOf implements `pipeline NAME`: it compares the table of a definition.
func definitionOf(ts *testscript.TestScript, _ bool, args []string) {
	for _, suffix := range []string{".yaml", ".table.txt"} {
		raw, err := os.ReadFile(filepath.Join(source, "pipeline", "testdata", args[0]+suffix))
		if suffix != ".yaml" && os.IsNotExist(err) {
			continue
		}
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[0]+suffix), raw, 0o644))
	}
}

// source returns the root of the source tree: scripts run elsewhere.
var source = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

var pathShape = regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_./-]*\.(?:md|css|html)\b`)

// stubs FILE creates everything that a definition names.
func stubs(ts *testscript.TestScript, _ bool, args []string) {
	for _, p := range pathShape.FindAllString(ts.ReadFile(args[0]), -1) {
		path := filepath.Join(filepath.Dir(ts.MkAbs(args[0])), p)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		ts.Check(os.WriteFile(path, []byte("text of "+p+"\n"), 0o644))
	}
}

// example DIR copies the corpus example.
func example(ts *testscript.TestScript, _ bool, args []string) {
	sub, err := fs.Sub(examples.Files, "corpus")
	ts.Check(err)
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), sub))
}

// reference DIR NAME copies a run that another program recorded.
func reference(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), os.DirFS(filepath.Join(source, "rundir", "testdata", "reference", args[1]))))
}

// overwrite FILE TEXT damages a file.
func overwrite(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[1]), 0o644))
}

// rests FILE DIR ID REASON creates a run that paused before its first pass, or, with the reason done, a finished run,
// or with waiting_limit one that waits for its provider.
func rests(ts *testscript.TestScript, _ bool, args []string) {
	pausedRun(ts.Check, ts.MkAbs(args[0]), ts.MkAbs(args[1]), ts.MkAbs("state"), args[2], args[3])
}

// pausedRun creates a run that paused before its first pass, or, with the reason done or failed, a closed run.
func pausedRun(check func(error), path, dir, state, id, reason string) {
	ctx := context.Background()
	def, err := operations.Load(os.DirFS(filepath.Dir(path)), filepath.Base(path), path)
	check(err)
	s, err := store.Open(ctx, "file://"+filepath.Join(state, "store"))
	check(err)
	stored, err := def.Upload(ctx, s)
	check(err)
	claim := run.Claim{Version: 1, RunID: id, ThreadID: id, CreatedAt: "2026-01-02T03:04:05.000Z",
		Pipeline: def.Plan.Pipeline, ConfigHash: def.Plan.ConfigHash, Store: s.URL()}
	d := projector.At(dir)
	check(d.Take(claim))
	check(operations.Index(state, id, dir))
	start := run.RunStart{
		Pipeline: claim.Pipeline, RunID: id, ThreadID: id, Epoch: 1, CreatedAt: claim.CreatedAt,
		Definition: stored.Definition, Plan: stored.Plan,
		Inputs: stored.Inputs, Policy: stored.Policy, ConfigHash: claim.ConfigHash, TotalPasses: def.Plan.Total,
		Budget:   run.Budget{CapUSD: 5, WarnUSD: 4},
		Artifact: &run.ArtifactRef{File: def.Plan.Artifact.File, Seed: *stored.Seed},
		Stages:   []run.StageRef{{Name: "build", Kind: "once"}},
	}
	last := event{run.KindRunPaused, run.RunPaused{Reason: reason}}
	if ended := run.Status(reason); ended.Closed() {
		last = event{run.KindRunEnd, run.RunEnd{Status: ended}}
	} else if ended == run.WaitingLimit {
		last = event{run.KindRunLimited, run.RunLimited{Limited: *run.NewLimited([]run.LimitedCall{{
			Limit: run.Limit{Kind: run.LimitPlan, Account: "claude-max", Agent: "claude -p"},
			Until: "2099-01-02T13:30:00.000Z", N: 1,
		}})}}
	}
	var lines []string
	for i, e := range []event{{run.KindRunStart, start}, last} {
		text, err := line(int64(i+1), e.kind, e.payload)
		check(err)
		lines = append(lines, text)
	}
	p, err := d.Project(ctx, blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	check(err)
	if p.Outcome != run.ProjectionWritten {
		check(fmt.Errorf("projection: %s", p.Outcome))
	}
	if reason == string(run.Done) {
		_, err = d.Seal(ctx, blobs.Of(s), projector.Sealing{RunID: id, First: 1, Tail: p.Tail})
		check(err)
	}
}

// refused DIR ID tries every verb that writes to a run of a newer release.
func refused(ts *testscript.TestScript, _ bool, args []string) {
	dir, id := args[0], args[1]
	for _, verb := range []string{
		"pause " + dir, "cancel " + dir, "resume " + dir, "steer " + dir + " faster", "budget " + dir + " --usd 9",
		"revert " + dir + " --to cp-S1", "promote " + dir + " --to out.html",
		"repair-state " + dir + " --apply", "rebuild " + id + " --output-dir " + dir,
	} {
		ts.Check(os.WriteFile(ts.MkAbs("verb"), []byte(verb), 0o600))
		exits(ts, false, append([]string{"1"}, strings.Fields(verb)...))
		if text := ts.ReadFile("stderr"); !strings.Contains(text, "has version 2, and this program") {
			ts.Fatalf("starter %s: %s", verb, text)
		}
	}
}

// turns DIR ID FOLDER... creates a run whose workspace is the first folder at the start, and the next at the end of
// each turn. A folder with "hand" in its name is a manual edit, and back-1 reverts to turn 1.
func turns(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	dir, id := ts.MkAbs(args[0]), args[1]
	s, err := store.Open(ctx, "file://"+ts.MkAbs("state/store"))
	ts.Check(err)
	d := projector.At(dir)
	ts.Check(d.Take(run.Claim{Version: 1, RunID: id, ThreadID: id, CreatedAt: "2026-01-02T03:04:05.000Z",
		Pipeline: "turns", Store: s.URL()}))
	ts.Check(operations.Index(ts.MkAbs("state"), id, dir))
	tale := workspaceStory{ts: ts, store: s, states: map[string]run.State{}}
	for _, folder := range args[2:] {
		tale.addTurn(id, folder)
	}
	p, err := d.Project(ctx, blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: tale.lines})
	ts.Check(err)
	if p.Outcome != run.ProjectionWritten {
		ts.Fatalf("projection: %s", p.Outcome)
	}
}

// workspaceStory writes the journal of a run that works on a tree.
type workspaceStory struct {
	ts     *testscript.TestScript
	store  *store.Store
	state  run.State
	states map[string]run.State // at the end of each turn
	lines  []string
	turns  int
}

func (w *workspaceStory) add(kind run.Kind, payload any) {
	text, err := line(w.state.Seq+1, kind, payload)
	w.ts.Check(err)
	w.lines = append(w.lines, text)
	e, err := run.ParseEvent([]byte(text))
	w.ts.Check(err)
	w.state = run.Apply(w.state, e)
}

func (w *workspaceStory) addTurn(id, folder string) {
	if to, ok := strings.CutPrefix(folder, "back-"); ok {
		then := w.states[to]
		w.add(run.KindRunReverted, run.RunReverted{To: then.Seq, Cause: "revert",
			Abandoned: run.Range{First: then.Seq + 1, Last: w.state.Seq}, State: &then})
		return
	}
	saved, err := tree.Save(context.Background(), w.store, w.ts.MkAbs(folder), tree.Rules{}, nil)
	w.ts.Check(err)
	b := workspace.Blob(saved)
	if len(w.lines) == 0 {
		w.add(run.KindRunStart, run.RunStart{Pipeline: "turns", RunID: id, ThreadID: id, Epoch: 1,
			Workspace: &run.Workspace{Kind: "dir", Source: "/gone", Tree: b}})
		return
	}
	if strings.Contains(folder, "hand") {
		w.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Cause: "edited", Tree: b, Changed: 1})
		return
	}
	w.turns++
	call := fmt.Sprintf("%s/g0.turns.%d", id, w.turns)
	w.add(run.KindPassEnd, run.PassEnd{
		Pass: run.Pass{Step: "turns/1", Role: "worker", Gives: "changes", Round: w.turns}, Call: call, Outcome: "ok",
		Tree:  &b,
		Spend: run.Spend{USD: 0.25 * float64(w.turns)},
	})
	w.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Call: call, Tree: b, Changed: w.turns})
	w.states[strconv.Itoa(w.turns)] = w.state
}

func line(seq int64, kind run.Kind, payload any) (string, error) {
	raw, err := run.Payload(payload)
	if err != nil {
		return "", err
	}
	return run.Event{Seq: seq, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: raw}.Line()
}

// subOf returns one of the examples.
func subOf(t testing.TB, name string) fs.FS {
	t.Helper()
	sub, err := fs.Sub(examples.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}
