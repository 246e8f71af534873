package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// deed is what a verb does with an existing target.
type deed string

const (
	creates   deed = "creates it"
	writes    deed = "writes there"
	adds      deed = "adds its file"
	refuses   deed = "refuses"
	orDeletes deed = "refuses; `--force` replaces"
	orKeeps   deed = "refuses; `--force` keeps it beside"
	archives  deed = "refuses; `--fresh` archives that run"
	completes deed = "completes it, if it is that run's"
	resumes   deed = "resumes that run"
)

// targetTable is the table of verbs and targets that docs/run-directory.md shows.
var targetTable = []struct {
	target string
	does   [8]deed // in the order of targetVerbs
}{
	{"missing", [8]deed{creates, creates, creates, creates, creates, creates, creates, refuses}},
	{"empty", [8]deed{writes, writes, writes, writes, writes, adds, writes, refuses}},
	{"other files", [8]deed{refuses, refuses, refuses, refuses, orDeletes, orKeeps, orKeeps, refuses}},
	{"hidden files only", [8]deed{refuses, refuses, refuses, refuses, orDeletes, adds, orKeeps, refuses}},
	{"another program's `run.json`", [8]deed{refuses, refuses, refuses, refuses, orDeletes, adds, orKeeps, refuses}},
	{"a journal without `run.json`", [8]deed{refuses, refuses, refuses, completes, orDeletes, adds, orKeeps, refuses}},
	{"another run", [8]deed{archives, refuses, refuses, refuses, refuses, refuses, refuses, resumes}},
	{"within another run's directory", [8]deed{refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses}},
	{"a link to an empty directory", [8]deed{writes, writes, writes, writes, writes, adds, writes, refuses}},
	{"a link to other files", [8]deed{refuses, refuses, refuses, refuses, orDeletes, orKeeps, orKeeps, refuses}},
	{"a link to nothing", [8]deed{refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses}},
	{"a file", [8]deed{refuses, refuses, refuses, refuses, refuses, orKeeps, refuses, refuses}},
	{"not writable", [8]deed{refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses}},
	{"another user's, not writable", [8]deed{refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses}},
}

// targetVerbs are the verbs that write to a target, with their arguments.
var targetVerbs = [8]struct {
	name, doc string
	args      func(target string) []string
}{
	{"run", "`run`", func(to string) []string {
		return []string{"run", "--config", "small.yaml", "--output-dir", to, "--detach"}
	}},
	{"fork", "`fork`", func(to string) []string {
		return []string{"fork", "1234-page", "--from", "cp-1", "--output-dir", to, "--detach"}
	}},
	{"replay", "`replay`", func(to string) []string {
		return []string{"replay", "1234-page", "--output-dir", to, "--detach"}
	}},
	{"rebuild", "`rebuild`", func(to string) []string { return []string{"rebuild", "1234-page", "--output-dir", to} }},
	{"snapshot checkout", "`snapshot checkout`", func(to string) []string {
		return []string{"snapshot", "checkout", "5678-tree", "0", to}
	}},
	{"promote an artifact", "`promote`, artifact",
		func(to string) []string { return []string{"promote", "1234-page", "--to", to} }},
	{"promote a workspace", "`promote`, workspace",
		func(to string) []string { return []string{"promote", "5678-tree", "--to", to} }},
	{"resume", "`resume` of a moved directory",
		func(to string) []string { return []string{"resume", "--output-dir", to} }},
}

// TestTargets runs every cell of the table. A refusal exits with 2 and changes no byte below the folder of the test,
// the state directory included. Otherwise every existing file stays.
func TestTargets(t *testing.T) {
	w := newTargetWorld(t)
	for _, row := range targetTable {
		for i, want := range row.does {
			t.Run(row.target+"/"+targetVerbs[i].name, func(t *testing.T) { w.cell(t, row.target, i, want) })
		}
	}
}

// TestResumeOfARunThatIsEnding: a run whose workflow ends between the question for its status and the message is
// resumed in a new epoch.
func TestResumeOfARunThatIsEnding(t *testing.T) {
	w := newTargetWorld(t)
	dir := filepath.Join(w.root, "cancelled")
	w.run(t, "small.yaml", dir, "9012-cancelled", run.Cancelled)
	w.temporal.remember("9012-cancelled", projector.At(dir))
	w.temporal.open = []string{"9012-cancelled"}
	var out bytes.Buffer
	require.Zero(t, Main([]string{"resume", dir, "--trust"}, nil, &out, &out), out.String())
	require.Equal(t, 1, w.temporal.count())
	require.Contains(t, out.String(), "was cancelled and continues in epoch 2")
}

// targetWorld has two finished runs, a definition, and a Temporal server that starts nothing.
type targetWorld struct {
	root, state string
	temporal    *fakeTemporal
	cells       int
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

func newTargetWorld(t *testing.T) *targetWorld {
	t.Helper()
	w := &targetWorld{root: t.TempDir()}
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
	require.NoError(t, local.OpenState(t.Context(), w.state)) // as an earlier command did
	w.temporal = &fakeTemporal{t: t, histories: map[string][]*historypb.HistoryEvent{}}
	for name, value := range map[string]string{
		"PASSBOOK_STATE_DIR": w.state, "PASSBOOK_KEEPER": "false", "PASSBOOK_KEEP_AWAKE": "false",
		"PASSBOOK_RUN_ROOT": filepath.Join(w.root, "runs"),
		"XDG_CONFIG_HOME":   filepath.Join(w.root, "config"), "HOME": w.root,
		"TEMPORAL_ADDRESS": w.temporal.serve(),
	} {
		t.Setenv(name, value)
	}
	t.Chdir(w.root)
	w.run(t, "small.yaml", filepath.Join(w.root, "page"), "1234-page", run.Done)
	w.temporal.remember("1234-page", projector.At(filepath.Join(w.root, "page")))
	w.treeRun(t)
	return w
}

// run creates a finished run of a definition.
func (w *targetWorld) run(t *testing.T, file, dir, id string, ended run.Status) {
	t.Helper()
	check := func(err error) { require.NoError(t, err) }
	pausedRun(check, filepath.Join(w.root, file), dir, w.state, id, string(ended))
}

// treeRun creates a finished run with a workspace.
func (w *targetWorld) treeRun(t *testing.T) {
	t.Helper()
	ctx, id, d := t.Context(), "5678-tree", projector.At(filepath.Join(w.root, "tree"))
	from := filepath.Join(w.root, "files")
	require.NoError(t, os.MkdirAll(from, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "made.txt"), []byte("made\n"), 0o644))
	s, err := store.Open(ctx, "file://"+filepath.Join(w.state, "store"))
	require.NoError(t, err)
	defer s.Close()
	saved, err := tree.Save(ctx, s, from, tree.Rules{}, nil)
	require.NoError(t, err)
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, ThreadID: id, CreatedAt: "2026-01-02T03:04:05.000Z",
		Pipeline: "tree", Store: s.URL()}))
	require.NoError(t, operations.Index(w.state, id, d.Root))
	var lines []string
	for i, e := range []struct {
		kind    run.Kind
		payload any
	}{
		{run.KindRunStart, run.RunStart{Pipeline: "tree", RunID: id, ThreadID: id, Epoch: 1,
			Workspace: &run.Workspace{Kind: "dir", Source: from, Tree: workspace.Blob(saved)}}},
		{run.KindRunEnd, run.RunEnd{Status: run.Done}},
	} {
		text, err := line(int64(i+1), e.kind, e.payload)
		require.NoError(t, err)
		lines = append(lines, text)
	}
	p, err := d.Project(ctx, blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	_, err = d.Seal(ctx, blobs.Of(s), projector.Sealing{RunID: id, First: 1, Tail: p.Tail})
	require.NoError(t, err)
}

// cell is one verb at one target.
func (w *targetWorld) cell(t *testing.T, kind string, verb int, want deed) {
	t.Helper()
	w.cells++
	folder := filepath.Join(w.root, "cell-"+strconv.Itoa(w.cells))
	require.NoError(t, os.Mkdir(folder, 0o755))
	moved := targetVerbs[verb].name == "resume"
	path, inTheWay := w.target(t, kind, folder, moved)
	call := w.here
	if kind == "not writable" || kind == "another user's, not writable" {
		call = w.asNobody(t, kind, path)
	}
	before, started := everything(t, w.root), w.temporal.count()
	args := targetVerbs[verb].args(path)
	output, code := call(args...)
	switch want {
	case refuses, orDeletes, orKeeps:
		require.Equal(t, 2, code, output)
		require.Equal(t, before, everything(t, w.root), "nothing is written")
		require.Equal(t, started, w.temporal.count(), "nothing is started")
		if !moved {
			for _, name := range inTheWay {
				require.Contains(t, output, name)
			}
			require.Regexp(t, "Name (a|another) |choose another|Name ", output, "it says what to do")
		}
	case archives:
		require.Equal(t, 2, code, output)
		require.Contains(t, output, "has another definition; nothing was changed")
		require.Equal(t, before, everything(t, w.root), "nothing is written")
		output, code := call(append(args, "--fresh")...)
		require.Equal(t, 0, code, output)
		old, err := filepath.Glob(filepath.Join(path, "_orchestrator", "archives", "*", "events.jsonl"))
		require.NoError(t, err)
		require.Len(t, old, 1)
		raw, err := os.ReadFile(old[0])
		require.NoError(t, err)
		require.Equal(t, before[relative(t, w.root, filepath.Join(path, "events.jsonl"))], string(raw))
	default:
		require.Equal(t, 0, code, output)
		w.kept(t, before, want)
	}
	if want == refuses && (verb >= 4 && verb <= 6) {
		output, code := call(append(args, "--force")...)
		require.Equal(t, 2, code, output)
		require.Equal(t, before, everything(t, w.root), "force changes nothing")
	}
	if want == orDeletes || want == orKeeps {
		output, code := call(append(args, "--force")...)
		require.Equal(t, 0, code, output)
	}
	if want == orKeeps {
		require.Len(t, besides(t, folder, "."), 1, "it is kept")
	}
	if want != refuses {
		w.made(t, path, targetVerbs[verb].name, started)
	}
}

// target creates the content of a path, and names the obstacle. For resume, the path holds a run that was moved there.
func (w *targetWorld) target(t *testing.T, kind, folder string, moved bool) (path string, inTheWay []string) {
	t.Helper()
	path = filepath.Join(folder, "target")
	lay := func(dir string, files map[string]string) {
		for name, text := range files {
			file := filepath.Join(dir, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
	}
	mkdir := func(dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) }
	others := map[string]string{"page.html": "mine\n", "workspace/precious.txt": "precious\n",
		"events.jsonl": "{\"mine\":1}\n", ".git/HEAD": "ref\n"}
	elsewhere := filepath.Join(folder, "elsewhere")
	id := "9999-" + strconv.Itoa(w.cells)
	switch kind {
	case "missing":
	case "empty":
		mkdir(path)
	case "other files":
		lay(path, others)
		inTheWay = []string{"page.html"}
	case "hidden files only":
		lay(path, map[string]string{".env": "SECRET=1\n"})
		inTheWay = []string{".env"}
	case "another program's `run.json`":
		lay(path, map[string]string{"run.json": `{"version": "2.0", "name": "mine"}`})
		inTheWay = []string{"run.json"}
	case "a journal without `run.json`":
		raw, err := os.ReadFile(filepath.Join(w.root, "page", "events.jsonl"))
		require.NoError(t, err)
		lay(path, map[string]string{"events.jsonl": string(raw)})
		inTheWay = []string{"events.jsonl"}
	case "another run", "within another run's directory":
		old := filepath.Join(folder, "old")
		w.run(t, "other.yaml", old, id, run.Failed)
		require.NoError(t, os.Rename(old, path))
		if kind != "another run" {
			path = filepath.Join(path, "within")
		}
		inTheWay = []string{id}
	case "a link to an empty directory":
		mkdir(elsewhere)
		require.NoError(t, os.Symlink(elsewhere, path))
	case "a link to other files":
		lay(elsewhere, others)
		require.NoError(t, os.Symlink(elsewhere, path))
		inTheWay = []string{"page.html"}
	case "a link to nothing":
		require.NoError(t, os.Symlink(elsewhere, path))
	case "a file":
		lay(folder, map[string]string{"target": "mine\n"})
	case "not writable", "another user's, not writable":
		if moved {
			old := filepath.Join(folder, "old")
			w.run(t, "other.yaml", old, id, run.Failed)
			require.NoError(t, os.Rename(old, path))
		} else {
			mkdir(path)
		}
	default:
		require.Fail(t, "no such target", kind)
	}
	return path, inTheWay
}

// here calls the starter in this process.
func (w *targetWorld) here(args ...string) (output string, code int) {
	var out bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &out)
	return out.String(), code
}

// asNobody calls the starter as a user who is not root and must not write to the target.
func (w *targetWorld) asNobody(t *testing.T, kind, path string) func(...string) (string, int) {
	t.Helper()
	const nobody = 65534
	another := strings.HasPrefix(kind, "another")
	if another && os.Geteuid() != 0 {
		t.Skip("only root can make a directory of another user")
	}
	program, err := exec.LookPath("starter")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755))
		require.NoError(t, filepath.WalkDir(w.root, func(p string, e fs.DirEntry, err error) error {
			if err == nil && p == path && another {
				return fs.SkipDir
			}
			return errors.Join(err, os.Lchown(p, nobody, nobody))
		}))
	}
	if !another {
		require.NoError(t, os.Chmod(path, 0o555))
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
	}
	return func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return err.Error(), -1
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
}

// kept requires every existing file below the root, except records of the runs.
func (w *targetWorld) kept(t *testing.T, before map[string]string, want deed) {
	t.Helper()
	now := everything(t, w.root)
	for name, text := range before {
		noted := strings.HasPrefix(name, "state/") || strings.HasPrefix(name, "page/") ||
			strings.HasPrefix(name, "tree/") || want == resumes
		if !noted {
			require.Equal(t, text, now[name], name)
		}
	}
}

// made checks what a verb creates at its target.
func (w *targetWorld) made(t *testing.T, path, verb string, started int) {
	t.Helper()
	switch verb {
	case "run", "fork", "replay":
		claim, err := projector.At(path).Claim()
		require.NoError(t, err)
		require.Equal(t, "small", claim.Pipeline)
		require.Equal(t, started+1, w.temporal.count())
	case "rebuild":
		d := projector.At(path)
		claim, err := d.Claim()
		require.NoError(t, err)
		require.Equal(t, "1234-page", claim.RunID)
		require.FileExists(t, d.Path(layout.MetaFile))
	case "snapshot checkout", "promote a workspace":
		raw, err := os.ReadFile(filepath.Join(path, "made.txt"))
		require.NoError(t, err)
		require.Equal(t, "made\n", string(raw))
		for name := range everything(t, path) {
			// a checkout never deletes those
			left := verb == "snapshot checkout" && (name == ".git/HEAD" || name == ".env")
			require.True(t, name == "made.txt" || left, name)
		}
	case "promote an artifact":
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			path = filepath.Join(path, "page.html")
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "<!DOCTYPE html>\n", string(raw))
	case "resume":
		require.Equal(t, started+1, w.temporal.count())
	}
}

// everything returns each file and link below a folder, by relative path.
func everything(t *testing.T, root string) map[string]string {
	t.Helper()
	root, err := filepath.EvalSymlinks(root)
	require.NoError(t, err)
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := relative(t, root, path)
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

func relative(t *testing.T, root, path string) string {
	t.Helper()
	rel, err := filepath.Rel(root, path)
	require.NoError(t, err)
	return filepath.ToSlash(rel)
}

// besides returns the copies of files that a promotion replaced.
func besides(t *testing.T, folder, within string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(filepath.Join(folder, within),
		func(path string, _ fs.DirEntry, err error) error {
			if strings.Contains(filepath.Base(path), ".before-") {
				out = append(out, path)
			}
			return err
		}))
	return out
}
