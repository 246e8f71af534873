package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
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
	w := newHost(t)
	for n, row := range targetTable {
		for i, want := range row.does {
			t.Run(row.target+"/"+targetVerbs[i].name, func(t *testing.T) {
				folder := filepath.Join(w.root, fmt.Sprintf("cell-%d-%d", n, i))
				require.NoError(t, os.Mkdir(folder, 0o755))
				w.cell(t, row.target, folder, i, want)
				require.NoError(t, os.RemoveAll(folder))
			})
		}
	}
}

// TestResumeOfARunThatIsEnding: a run whose workflow ends between the question for its status and the message is
// resumed in a new epoch.
func TestResumeOfARunThatIsEnding(t *testing.T) {
	w := newHost(t)
	dir := filepath.Join(w.root, "cancelled")
	w.run(t, "small.yaml", dir, "9012-cancelled", run.Cancelled)
	w.hosts(t, rundir.At(dir))
	w.temporal.remember("9012-cancelled", rundir.At(dir))
	w.temporal.open = []string{"9012-cancelled"}
	var out bytes.Buffer
	require.Zero(t, Main([]string{"resume", dir, "--trust"}, nil, &out, &out), out.String())
	require.Equal(t, 1, w.temporal.count())
	require.Contains(t, out.String(), "was cancelled and continues in epoch 2")
}

// hosts makes this host the one that writes a run directory.
func (w *machine) hosts(t *testing.T, d rundir.Dir) {
	t.Helper()
	claim, err := d.Claim()
	require.NoError(t, err)
	claim.Host, err = host.HostID(w.state)
	require.NoError(t, err)
	raw, err := json.Marshal(claim)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.Path(rundir.ClaimFile), raw, 0o600))
}

// TestCancelWithoutDirectory: the directory was deleted, and the workflow is open.
func TestCancelWithoutDirectory(t *testing.T) {
	w := newHost(t)
	dir := filepath.Join(w.root, "deleted")
	w.run(t, "small.yaml", dir, "9012-deleted", "")
	require.NoError(t, os.RemoveAll(dir))
	var out bytes.Buffer
	require.Equal(t, exitStatus, Main([]string{"cancel", "9012-d"}, nil, &out, &out), out.String())
	require.Contains(t, out.String(), "run 9012-deleted has no directory and no open workflow")
	out.Reset()
	w.temporal.open = []string{"9012-deleted"}
	require.Equal(t, exitAttention, Main([]string{"cancel", "9012-d"}, nil, &out, &out), out.String())
	require.Contains(t, out.String(), "Cancelling run 9012-deleted: its directory is missing")
	require.Equal(t, []string{"9012-deleted"}, w.temporal.cancelled)
}

// TestStatusComparesTheDirectory: the workflow of a run that waits has fewer events than the directory, as after
// Temporal's database was restored from a backup.
func TestStatusComparesTheDirectory(t *testing.T) {
	w := newHost(t)
	dir := filepath.Join(w.root, "paused")
	w.run(t, "small.yaml", dir, "9012-paused", "")
	w.hosts(t, rundir.At(dir))
	w.temporal.open = []string{"9012-paused"}
	var out bytes.Buffer
	require.Zero(t, Main([]string{"status", dir}, nil, &out, &out), out.String())
	require.Equal(t, []string{contract.VerbLook}, w.temporal.updates)
}

// cell is one verb at one target.
func (w *machine) cell(t *testing.T, kind, folder string, verb int, want deed) {
	t.Helper()
	moved := targetVerbs[verb].name == "resume"
	path, inTheWay := w.target(t, kind, folder, moved)
	call := w.here
	if strings.Contains(kind, "not writable") {
		call = w.asNobody(t, kind, path)
	}
	before, started := w.files(t, w.root), w.temporal.count()
	args := targetVerbs[verb].args(path)
	output, code := call(args...)
	unchanged := func() {
		t.Helper()
		require.Equal(t, exitUsage, code, output)
		require.Equal(t, before, w.files(t, w.root))
		require.Equal(t, started, w.temporal.count())
	}
	switch want {
	case refuses, orDeletes, orKeeps:
		unchanged()
		if !moved {
			require.Contains(t, output, inTheWay)
			require.Regexp(t, "Name |choose another", output, "it names the next step")
		}
	case archives:
		unchanged()
		require.Contains(t, output, "has another definition; nothing was changed")
		output, code = call(append(args, "--fresh")...)
		require.Zero(t, code, output)
		old, err := filepath.Glob(filepath.Join(path, "_orchestrator", "archives", "*", "events.jsonl"))
		require.NoError(t, err)
		require.Len(t, old, 1)
		raw, err := os.ReadFile(old[0])
		require.NoError(t, err)
		require.Equal(t, before[filepath.Base(folder)+"/target/events.jsonl"], string(raw))
	default:
		require.Zero(t, code, output)
		now := w.files(t, w.root)
		for name, text := range before { // but for records of the runs
			if top, _, _ := strings.Cut(name, "/"); !slices.Contains([]string{"state", "page", "tree"}, top) &&
				want != resumes {
				require.Equal(t, text, now[name], name)
			}
		}
	}
	switch forced := append(args, "--force"); {
	case want == refuses && verb >= 4 && verb <= 6:
		output, code = call(forced...)
		unchanged()
	case want == orDeletes || want == orKeeps:
		output, code = call(forced...)
		require.Zero(t, code, output)
	}
	if want == orKeeps {
		kept := map[string]bool{}
		for name := range w.files(t, folder) {
			if of, rest, is := strings.Cut(name, ".before-"); is {
				moment, _, _ := strings.Cut(rest, "/")
				kept[of+moment] = true
			}
		}
		require.Len(t, kept, 1)
	}
	if want != refuses {
		w.made(t, path, targetVerbs[verb].name, started)
	}
}

// target creates the content of a path, and names the obstacle. For resume, the path holds a run that was moved there.
func (w *machine) target(t *testing.T, kind, folder string, moved bool) (path, inTheWay string) {
	t.Helper()
	path = filepath.Join(folder, "target")
	elsewhere := filepath.Join(folder, "elsewhere")
	id := "9999-" + filepath.Base(folder)
	write := func(dir, name, text string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	others := func(dir string) {
		for _, name := range []string{"page.html", "workspace/precious.txt", "events.jsonl", ".git/HEAD"} {
			write(dir, name, "{\"mine\":1}\n")
		}
	}
	movedRun := func() {
		w.run(t, "other.yaml", filepath.Join(folder, "old"), id, run.Cancelled)
		require.NoError(t, os.Rename(filepath.Join(folder, "old"), path))
	}
	mkdir := func(dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) }
	switch kind {
	case "missing":
	case "empty":
		mkdir(path)
	case "other files":
		others(path)
		return path, "page.html"
	case "hidden files only":
		write(path, ".env", "SECRET=1\n")
		return path, ".env"
	case "another program's `run.json`":
		write(path, "run.json", `{"version": "2.0", "name": "mine"}`)
		return path, "run.json"
	case "a journal without `run.json`":
		raw, err := os.ReadFile(filepath.Join(w.root, "page", "events.jsonl"))
		require.NoError(t, err)
		write(path, "events.jsonl", string(raw))
		return path, "events.jsonl"
	case "another run":
		movedRun()
		return path, id
	case "within another run's directory":
		movedRun()
		return filepath.Join(path, "within"), id
	case "a link to an empty directory", "a link to other files", "a link to nothing":
		require.NoError(t, os.Symlink(elsewhere, path))
		if kind == "a link to an empty directory" {
			mkdir(elsewhere)
		} else if kind == "a link to other files" {
			others(elsewhere)
			return path, "page.html"
		}
	case "a file":
		write(folder, "target", "mine\n")
	case "not writable", "another user's, not writable":
		if moved {
			movedRun()
		} else {
			mkdir(path)
		}
	default:
		require.Fail(t, "no such target", kind)
	}
	return path, ""
}

// asNobody calls the starter as a user who is not root and must not write to the target.
func (w *machine) asNobody(t *testing.T, kind, path string) func(...string) (string, int) {
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

// made checks what a verb creates at its target.
func (w *machine) made(t *testing.T, path, verb string, started int) {
	t.Helper()
	switch verb {
	case "run", "fork", "replay":
		claim, err := rundir.At(path).Claim()
		require.NoError(t, err)
		require.Equal(t, "small", claim.Pipeline)
		require.Equal(t, started+1, w.temporal.count())
	case "rebuild":
		d := rundir.At(path)
		claim, err := d.Claim()
		require.NoError(t, err)
		require.Equal(t, "1234-page", claim.RunID)
		require.FileExists(t, d.Path(rundir.MetaFile))
	case "snapshot checkout", "promote a workspace":
		raw, err := os.ReadFile(filepath.Join(path, "made.txt"))
		require.NoError(t, err)
		require.Equal(t, "made\n", string(raw))
		for name := range w.files(t, path) { // a checkout never deletes .git and .env
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
