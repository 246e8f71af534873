package operations

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestMain lets the test binary be the supervisor of a gate.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

// at is a moment on the day of all events.
func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git",
		append([]string{"-c", "user.name=Test", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

// filesIn is everything below a folder.
func filesIn(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			all[rel+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			all[rel] = "-> " + link
			return err
		default:
			raw, err := os.ReadFile(path)
			all[rel] = string(raw)
			return err
		}
		return nil
	}))
	return all
}

// unchanged is a function that requires a folder to have the files and times that it has now.
func unchanged(t *testing.T, root string) func() {
	t.Helper()
	times := func() map[string]time.Time {
		all := map[string]time.Time{}
		require.NoError(t, filepath.Walk(root, func(path string, fi os.FileInfo, err error) error {
			if err == nil {
				all[path] = fi.ModTime()
			}
			return err
		}))
		return all
	}
	files, before := filesIn(t, root), times()
	return func() {
		t.Helper()
		require.Equal(t, files, filesIn(t, root))
		require.Equal(t, before, times())
	}
}

func testStore(t *testing.T) *store.Store {
	t.Helper()
	s := must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
	return s
}

func blobOf(t *testing.T, s *store.Store, text string) run.Blob {
	t.Helper()
	return run.Blob{Digest: string(must(s.Put(t.Context(), []byte(text)))(t)), Size: int64(len(text)), Chars: len(text)}
}

// entry is one event of a made-up run.
type entry struct {
	kind    run.Kind
	payload any
}

func runEnded(status run.Status) entry { return entry{run.KindRunEnd, run.RunEnd{Status: status}} }

// project writes these events to the directory of a run; an ended run is sealed in the store.
func project(t *testing.T, s *store.Store, d rundir.Dir, id string, events ...entry) {
	t.Helper()
	lines := make([]string, 0, len(events))
	for i, e := range events {
		e := run.Event{Seq: int64(i + 1), TS: run.Time(at(5 + i)), Kind: e.kind, Payload: must(run.Payload(e.payload))(t)}
		lines = append(lines, must(e.Line())(t))
	}
	p := must(d.Project(t.Context(), blobs.Of(s), rundir.Batch{Epoch: 1, First: 1, Lines: lines}))(t)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	if events[len(events)-1].kind == run.KindRunEnd {
		must(d.Seal(t.Context(), blobs.Of(s), rundir.Sealing{RunID: id, First: 1, Tail: p.Tail}))(t)
	}
}

// directoryOf is the directory of a run with these events.
func directoryOf(t *testing.T, s *store.Store, id string, events ...entry) rundir.Dir {
	t.Helper()
	d := rundir.At(filepath.Join(t.TempDir(), id))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, ThreadID: id, Store: s.URL(), Host: "here",
		TaskQueue: "passbook"}))
	project(t, s, d, id, events...)
	return d
}

// page is a run with an artifact; without a status it has not ended.
func page(t *testing.T, s *store.Store, id, text string, status run.Status) rundir.Dir {
	t.Helper()
	events := []entry{
		{run.KindRunStart, run.RunStart{RunID: id, ThreadID: id, Epoch: 1, Pipeline: "page",
			Artifact: &run.ArtifactRef{File: "page.html", Seed: blobOf(t, s, "seed of "+id)}}},
		{run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001", Artifact: blobOf(t, s, text)}},
	}
	if status != "" {
		events = append(events, runEnded(status))
	}
	return directoryOf(t, s, id, events...)
}

var small = pipeline.Plan{
	Version: pipeline.PlanVersion, Pipeline: "small",
	Agents: []pipeline.Agent{{Run: []string{"mine"}, Env: []string{"MY_KEY"}}, {Run: []string{pipeline.Scripted}}},
	Notify: []pipeline.Notify{{Env: []string{"DISPLAY"}}, {WebhookEnv: "HOOK", SecretEnv: "HOOK_KEY"}},
}

// closedRun is a run whose directory and store are complete, and an operator on a server that has lost its workflow.
func closedRun(t *testing.T, kind string, events ...entry) (Operator, rundir.Dir, *fakeTemporal) {
	t.Helper()
	s, f := testStore(t), &fakeTemporal{}
	o := Operator{
		Client: f, Host: "here", Redact: must(secrets.New(config.Settings{}, nil))(t),
		Settings: config.Settings{StateDir: filepath.Join(t.TempDir(), "state"), Store: s.URL(), TaskQueue: "passbook"},
	}
	start := run.RunStart{
		RunID: "r1", ThreadID: "r1", Epoch: 1, Pipeline: "page", Kind: kind,
		Plan:       string(must(s.PutJSON(t.Context(), small))(t)),
		Definition: blobOf(t, s, "stages: []").Digest,
		Policy: string(must(s.PutJSON(t.Context(),
			Policy{Version: 1, Agents: []pipeline.Agent{{Name: "a", Run: []string{"mine"}}}}))(t)),
		Stages:   []run.StageRef{{Name: "write"}},
		Artifact: &run.ArtifactRef{File: "page.html", Seed: blobOf(t, s, "seed")},
	}
	d := directoryOf(t, s, "r1", append([]entry{{run.KindRunStart, start},
		{run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1}}}, events...)...)
	require.NoError(t, Index(o.Settings.StateDir, "r1", d.Root))
	return o, d, f
}

// linesOf are the events of a directory as they are written.
func linesOf(t *testing.T, d rundir.Dir) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(string(must(os.ReadFile(d.Path(rundir.EventsFile)))(t)), "\n"), "\n")
}

// journaled is the directory of a registered run that has begun; with a status, it has ended.
func journaled(t *testing.T, o Operator, id string, status run.Status) rundir.Dir {
	t.Helper()
	d := rundir.At(filepath.Join(filepath.Dir(o.Settings.StateDir), "runs", id))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, Pipeline: "small", Store: o.Settings.Store, Host: o.Host,
		CreatedAt: "2026-01-02T03:04:05.000Z"}))
	s := must(store.Open(t.Context(), o.Settings.Store))(t)
	events := []entry{{run.KindRunStart, run.RunStart{Pipeline: "small", RunID: id}}}
	if status != "" {
		events = append(events, runEnded(status))
	}
	project(t, s, d, id, events...)
	require.NoError(t, Index(o.Settings.StateDir, id, d.Root))
	return d
}

// terminal is an operator at a terminal with an environment, on a machine with one run, "run-1".
func terminal(t *testing.T) (Operator, rundir.Dir, *fakeTemporal) {
	t.Helper()
	root, f := t.TempDir(), &fakeTemporal{}
	o := Operator{
		Client: f, Host: "here",
		Settings: config.Settings{StateDir: filepath.Join(root, "state"), Store: "file://" + filepath.Join(root, "store")},
		Environ: []string{"PATH=/new/bin", "MY_KEY=new", "HOOK=https://hook", "OTHER=hidden", "CLAUDECODE=1",
			"ANTHROPIC_API_KEY=key"},
	}
	d := journaled(t, o, "run-1", "")
	write(t, d.Root, map[string]string{rundir.PlanFile: string(must(json.Marshal(small))(t))})
	return o, d, f
}

// begun is the directory of a run that has events only: none, those of a stage that runs, or also its end.
func begun(t *testing.T, dir, id, kind string) {
	t.Helper()
	require.NoError(t, rundir.At(dir).Take(run.Claim{Version: 1, RunID: id, Pipeline: "small",
		CreatedAt: "2026-01-02T03:04:05.000Z"}))
	lines := ""
	for i, e := range []entry{
		{run.KindRunStart, run.RunStart{Pipeline: "small", RunID: id, TotalPasses: 4}},
		{run.KindPhaseStart, run.PhaseStart{Key: "build", Title: "Build"}}, runEnded(run.Done),
	} {
		if kind == "" || kind != "done" && i == 2 {
			break
		}
		e := run.Event{Seq: int64(i + 1), TS: run.Time(at(5 + i)), Kind: e.kind, Payload: must(run.Payload(e.payload))(t)}
		lines += must(e.Line())(t) + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, rundir.EventsFile), []byte(lines), 0o600))
}
