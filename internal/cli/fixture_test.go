package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/examples"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// event is an event of a run that a test creates.
type event struct {
	kind    run.Kind
	payload any
}

func line(seq int64, kind run.Kind, payload any) (string, error) {
	raw, err := run.Payload(payload)
	if err != nil {
		return "", err
	}
	return run.Event{Seq: seq, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: raw}.Line()
}

// writeRun writes the directory of a run with these events and records the run in a state directory. A run that is done
// has its result.
func writeRun(check func(error), state, dir string, claim run.Claim, events ...event) rundir.Dir {
	ctx := context.Background()
	s, err := store.Open(ctx, "file://"+filepath.Join(state, "store"))
	check(err)
	claim.Version, claim.CreatedAt, claim.Store = run.ClaimVersion, "2026-01-02T03:04:05.000Z", s.URL()
	claim.ThreadID = cmp.Or(claim.ThreadID, claim.RunID)
	d := rundir.At(dir)
	check(d.Take(claim))
	check(operations.Index(state, claim.RunID, dir))
	var lines []string
	for i, e := range events {
		text, err := line(int64(i+1), e.kind, e.payload)
		check(err)
		lines = append(lines, text)
	}
	p, err := d.Project(ctx, blobs.Of(s), rundir.Batch{Epoch: 1, First: 1, Lines: lines})
	check(err)
	if p.Outcome != run.ProjectionWritten {
		check(fmt.Errorf("projection: %s", p.Outcome))
	}
	if end, ok := events[len(events)-1].payload.(run.RunEnd); ok && end.Status == run.Done {
		_, err = d.Seal(ctx, blobs.Of(s), rundir.Sealing{RunID: claim.RunID, First: 1, Tail: p.Tail})
		check(err)
	}
	return d
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
	start := run.RunStart{
		Pipeline: def.Plan.Pipeline, RunID: id, ThreadID: id, Epoch: 1, CreatedAt: "2026-01-02T03:04:05.000Z",
		Definition: stored.Definition, Plan: stored.Plan, Inputs: stored.Inputs, Policy: stored.Policy,
		ConfigHash: def.Plan.ConfigHash, TotalPasses: def.Plan.Total, Budget: run.Budget{CapUSD: 5, WarnUSD: 4},
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
	claim := run.Claim{RunID: id, Pipeline: def.Plan.Pipeline, ConfigHash: def.Plan.ConfigHash}
	writeRun(check, state, dir, claim, event{run.KindRunStart, start}, last)
}

// machine is a machine with two finished runs, a definition, and a Temporal server that starts nothing.
type machine struct {
	root, state string
	temporal    *fakeTemporal
}

const smallPipeline = `pipeline: small
agent: {run: [scripted], reply: claude-json}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: prompt.md, gives: artifact}
stages:
  - name: build
    steps: [{role: builder}]
`

func newHost(t *testing.T) *machine {
	t.Helper()
	w := &machine{root: t.TempDir()}
	w.state = filepath.Join(w.root, "state")
	for _, dir := range []string{w.root, filepath.Dir(w.root)} {
		require.NoError(t, os.Chmod(dir, 0o755)) // so that another user can enter
	}
	for name, text := range map[string]string{
		"small.yaml": smallPipeline, "other.yaml": strings.Replace(smallPipeline, "steps: [",
			"steps: [{role: builder}, ", 1), "prompt.md": "Build it.\n", "seed.html": "<!DOCTYPE html>\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o644))
	}
	require.NoError(t, host.OpenState(t.Context(), w.state)) // as an earlier command did
	w.temporal = newTemporal(func(err error) { require.NoError(t, err) })
	t.Cleanup(w.temporal.server.Stop)
	for name, value := range map[string]string{
		"PASSBOOK_STATE_DIR": w.state, "PASSBOOK_KEEPER": "false", "PASSBOOK_KEEP_AWAKE": "false",
		"PASSBOOK_SANDBOX_MODE": "none", "PASSBOOK_RUN_ROOT": filepath.Join(w.root, "runs"),
		"XDG_CONFIG_HOME": filepath.Join(w.root, "config"), "HOME": w.root,
		"TEMPORAL_ADDRESS": w.temporal.address,
	} {
		t.Setenv(name, value)
	}
	t.Chdir(w.root)
	w.run(t, "small.yaml", filepath.Join(w.root, "page"), "1234-page", run.Done)
	w.temporal.remember("1234-page", rundir.At(filepath.Join(w.root, "page")))
	w.treeRun(t)
	return w
}

// run creates a run of a definition.
func (w *machine) run(t *testing.T, file, dir, id string, ended run.Status) {
	t.Helper()
	pausedRun(func(err error) { require.NoError(t, err) }, filepath.Join(w.root, file), dir, w.state, id, string(ended))
}

// treeRun creates a finished run with a workspace.
func (w *machine) treeRun(t *testing.T) {
	t.Helper()
	ctx, id, from := t.Context(), "5678-tree", filepath.Join(w.root, "files")
	require.NoError(t, os.MkdirAll(from, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "made.txt"), []byte("made\n"), 0o644))
	s, err := store.Open(ctx, "file://"+filepath.Join(w.state, "store"))
	require.NoError(t, err)
	saved, err := tree.Save(ctx, s, from, tree.Rules{}, nil)
	require.NoError(t, err)
	w.record(t, filepath.Join(w.root, "tree"), run.Claim{RunID: id, Pipeline: "tree"},
		event{run.KindRunStart, run.RunStart{Pipeline: "tree", RunID: id, ThreadID: id, Epoch: 1,
			Workspace: &run.Workspace{Kind: "dir", Source: from, Tree: workspace.Blob(saved)}}},
		event{run.KindRunEnd, run.RunEnd{Status: run.Done}})
}

func (w *machine) record(t *testing.T, dir string, claim run.Claim, events ...event) rundir.Dir {
	t.Helper()
	return writeRun(func(err error) { require.NoError(t, err) }, w.state, dir, claim, events...)
}

// journaledRun creates a run with one stage of one pass, which has these events after its start.
func (w *machine) journaledRun(t *testing.T, id string, wording run.Wording, events ...event) rundir.Dir {
	t.Helper()
	start := event{run.KindRunStart, run.RunStart{Pipeline: "silent", RunID: id, ThreadID: id, Epoch: 1, TotalPasses: 1,
		Wording: wording, Budget: run.Budget{CapUSD: 5}, Stages: []run.StageRef{{Name: "write", Kind: "once"}}}}
	return w.record(t, filepath.Join(w.root, "runs", id), run.Claim{RunID: id, Pipeline: "silent"},
		append([]event{start}, events...)...)
}

// writing is the pass of such a run.
var writing = run.Pass{Step: "001", Number: 1, InRound: 1, OfRound: 1, Round: 1, Role: "writer", Gives: "report",
	Title: "Writer", Description: "Writer"}

// here calls the starter in this process.
func (w *machine) here(args ...string) (output string, code int) {
	var out bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &out)
	return out.String(), code
}

// everything returns each file and link below a folder, by relative path. The folder may be missing.
func everything(check func(error), root string) map[string]string {
	all := map[string]string{}
	root, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	}
	check(err)
	check(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		check(err)
		if e.Type() == fs.ModeSymlink {
			to, err := os.Readlink(path)
			all[name] = "-> " + to
			return err
		}
		raw, err := os.ReadFile(path)
		all[name] = string(raw)
		return err
	}))
	return all
}

// files is everything below a folder.
func (w *machine) files(t *testing.T, root string) map[string]string {
	t.Helper()
	return everything(func(err error) { require.NoError(t, err) }, root)
}

// subOf returns one of the examples.
func subOf(t testing.TB, name string) fs.FS {
	t.Helper()
	sub, err := fs.Sub(examples.Files, name)
	require.NoError(t, err)
	return sub
}
