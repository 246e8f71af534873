package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/passbook-run/passbook/examples"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/forge"
	"github.com/passbook-run/passbook/workerhost"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"starter": func() {
			if code, child := workerhost.RunChild(os.Args[1:]); child {
				os.Exit(code)
			}
			os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs one script per behaviour, each with its own state directory. The condition [server] requires a
// Temporal server.
func TestScripts(t *testing.T) {
	server, ok, err := host.CachedServer(host.ServerOptions{StateDir: t.TempDir()})
	if err != nil {
		ok = false
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			state := filepath.Join(e.WorkDir, "state")
			e.Setenv("PASSBOOK_STATE_DIR", state)
			e.Setenv("PASSBOOK_KEEPER", "false")
			e.Setenv("PASSBOOK_KEEP_AWAKE", "false")
			e.Setenv("PASSBOOK_SANDBOX_MODE", "none") // no script needs bubblewrap
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			if ok {
				e.Setenv("PASSBOOK_SERVER", server)
			}
			e.Values["temporal"], e.Values["files"] = new(*fakeTemporal), map[string]string{}
			e.Defer(func() {
				_, _ = host.Stop(context.Background(), state, 20*time.Second)
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
			"exits": testenv.Exits, "pipeline": definitionOf, "stubs": stubs, "example": example, "stored": stored,
			"overwrite": overwrite, "turns": turns, "refused": refused,
			"journal": journal, "temporal": temporal, "forge": forgeOf, "files": filesCommand,
		},
	})
}

// definitionOf implements `pipeline NAME`: it compares the table of a definition.
func definitionOf(ts *testscript.TestScript, _ bool, args []string) {
	for _, suffix := range []string{".yaml", ".table.txt"} {
		raw, err := os.ReadFile(filepath.Join(source, "pipeline", "testdata", args[0]+suffix))
		if suffix != ".yaml" && os.IsNotExist(err) {
			continue
		}
		ts.Check(err)
		raw = bytes.ReplaceAll(raw, []byte("sandbox workspace"), []byte("no sandbox: this command runs as you"))
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

// overwrite FILE TEXT damages a file.
func overwrite(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[1]), 0o644))
}

// stored FILE DIR ID REASON creates a run that paused before its first pass, or, with the reason done, a finished run,
// or with waiting_limit one that waits for its provider.
func stored(ts *testscript.TestScript, _ bool, args []string) {
	pausedRun(ts.Check, ts.MkAbs(args[0]), ts.MkAbs(args[1]), ts.MkAbs("state"), args[2], args[3])
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
		testenv.Exits(ts, false, append([]string{"1"}, strings.Fields(verb)...))
		if text := ts.ReadFile("stderr"); !strings.Contains(text, "has version 2, and this program") {
			ts.Fatalf("starter %s: %s", verb, text)
		}
	}
}

// journal DIR ID FILE creates a run with the events of a file, a JSON object with kind and payload in each line.
func journal(ts *testscript.TestScript, _ bool, args []string) {
	var events []event
	for text := range strings.Lines(ts.ReadFile(args[2])) {
		var e struct {
			Kind    run.Kind
			Payload json.RawMessage
		}
		ts.Check(json.Unmarshal([]byte(text), &e))
		events = append(events, event{e.Kind, e.Payload})
	}
	writeRun(ts.Check, ts.MkAbs("state"), ts.MkAbs(args[0]), run.Claim{RunID: args[1], Pipeline: "recorded"}, events...)
}

// temporal starts a server that starts no run. `temporal remember ID DIR` adds the history of a run, `temporal open DIR`
// the open workflow of a run, `temporal refuse CODE` refuses starts, and `temporal starts N` requires N starts so far.
func temporal(ts *testscript.TestScript, _ bool, args []string) {
	f := ts.Value("temporal").(**fakeTemporal)
	if *f == nil {
		*f = newTemporal(ts.Check)
		ts.Defer((*f).server.Stop)
		ts.Setenv("TEMPORAL_ADDRESS", (*f).address)
	}
	if len(args) == 0 {
		return
	}
	switch args[0] {
	case "remember":
		(*f).remember(args[1], rundir.At(ts.MkAbs(args[2])))
	case "open":
		claim, err := rundir.At(ts.MkAbs(args[1])).Claim()
		ts.Check(err)
		(*f).open = []string{claim.RunID}
	case "refuse":
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		(*f).refuse = status.Error(codes.Code(n), "refused by the server")
	case "starts":
		if n := strconv.Itoa((*f).count()); n != args[1] {
			ts.Fatalf("%s starts, want %s", n, args[1])
		}
	}
}

// forgeOf implements `forge SOURCE N`: it starts a forge with N open issues with the label ready, and makes SOURCE a clone of
// its repository. A stranger has set the label of #2, and #4 is closed.
func forgeOf(ts *testscript.TestScript, _ bool, args []string) {
	f, err := forge.New(ts.MkAbs("forge"))
	ts.Check(err)
	ts.Defer(f.Close)
	ts.Setenv("PASSBOOK_FORGE_URL", f.URL)
	ts.Setenv("GITHUB_TOKEN", f.Token)
	for _, git := range [][]string{
		{"init", "-q", "-b", "main", args[0]}, {"-C", args[0], "commit", "-q", "--allow-empty", "-m", "Begin"},
		{"-C", args[0], "push", "-q", f.Git, "main"}, {"-C", args[0], "remote", "add", "origin", f.Remote()},
	} {
		ts.Check(ts.Exec("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@localhost"}, git...)...))
	}
	count, err := strconv.Atoi(args[1])
	ts.Check(err)
	for range count {
		switch n := f.Open("ann", "Something to do", "Do it."); n {
		case 2:
			f.Label(n, "ready", "mallory")
		case 4:
			f.Label(n, "ready", "ann")
			f.Shut(n)
		default:
			f.Label(n, "ready", "ann")
		}
	}
}

// files record records all files and folders, and files same requires that they are unchanged. Blobs of the store, and
// what a host or repository has once, may have been added.
func filesCommand(ts *testscript.TestScript, _ bool, args []string) {
	now, before := map[string]string{}, ts.Value("files").(map[string]string)
	for name, text := range everything(ts.Check, ts.MkAbs(".")) {
		if !onceOnly.MatchString(name) {
			now[name] = disk.Digest([]byte(text))
		}
	}
	ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if e.Name() == "state" || e.Name() == ".git" || e.Name() == ".tmp" {
			return fs.SkipDir
		}
		fi, err := e.Info()
		now[path] = fi.Mode().String()
		return err
	}))
	if args[0] == "same" {
		for name := range now {
			if before[name] != now[name] {
				ts.Fatalf("%s is new or changed", name)
			}
			delete(before, name)
		}
		for name := range before {
			ts.Fatalf("%s is gone", name)
		}
	}
	maps.Copy(before, now)
}

var onceOnly = regexp.MustCompile(`^\.tmp/|^state/(store/blobs/|format\.json|starts/|host-id)|` +
	`links\.key$|/\.git/passbook-worktrees-lock$`)

// turns DIR ID FOLDER... creates a run whose workspace is the first folder at the start, and the next at the end of
// each turn. A folder with "hand" in its name is a manual edit, back-1 reverts to turn 1, and done
// ends the run.
func turns(ts *testscript.TestScript, _ bool, args []string) {
	dir, id := ts.MkAbs(args[0]), args[1]
	s, err := store.Open(context.Background(), "file://"+ts.MkAbs("state/store"))
	ts.Check(err)
	w := workspaceStory{ts: ts, store: s, states: map[string]run.State{}}
	for _, folder := range args[2:] {
		w.addTurn(id, folder)
	}
	writeRun(ts.Check, ts.MkAbs("state"), dir, run.Claim{RunID: id, Pipeline: "turns"}, w.events...)
	ts.Check(os.WriteFile(filepath.Join(dir, rundir.PlanFile), []byte(`{"version": 1}`), 0o600))
}

// workspaceStory writes the journal of a run that works on a tree.
type workspaceStory struct {
	ts     *testscript.TestScript
	store  *store.Store
	state  run.State
	states map[string]run.State // at the end of each turn
	events []event
	turns  int
}

func (w *workspaceStory) add(kind run.Kind, payload any) {
	text, err := line(w.state.Seq+1, kind, payload)
	w.ts.Check(err)
	e, err := run.ParseEvent([]byte(text))
	w.ts.Check(err)
	w.state = run.Apply(w.state, e)
	w.events = append(w.events, event{kind, payload})
}

func (w *workspaceStory) addTurn(id, folder string) {
	if to, ok := strings.CutPrefix(folder, "back-"); ok {
		then := w.states[to]
		w.add(run.KindRunReverted, run.RunReverted{To: then.Seq, Cause: "revert",
			Abandoned: run.Range{First: then.Seq + 1, Last: w.state.Seq}, State: &then})
		return
	}
	if folder == "done" {
		w.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
		return
	}
	saved, err := tree.Save(context.Background(), w.store, w.ts.MkAbs(folder), tree.Rules{}, nil)
	w.ts.Check(err)
	b := workspace.Blob(saved)
	if len(w.events) == 0 {
		w.add(run.KindRunStart, run.RunStart{Pipeline: "turns", RunID: id, ThreadID: id, Epoch: 1,
			Workspace: &run.Workspace{Kind: "dir", Source: w.ts.MkAbs(folder), Tree: b}})
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
