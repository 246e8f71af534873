package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestStartsInOneDirectoryRunOneAfterAnother locks a directory, by whichever path. A start waits for the lock before
// it reads or writes anything.
func TestStartsInOneDirectoryRunOneAfterAnother(t *testing.T) {
	base := t.TempDir()
	o := Operator{Settings: config.Settings{StateDir: filepath.Join(base, "state")}}
	turn := must(o.turn(t.Context(), rundir.At(filepath.Join(base, "run"))))(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var held *disk.ErrHeld
	for _, path := range []string{"run", "other/../run"} {
		_, err := o.Start(over, Definition{}, rundir.At(filepath.Join(base, path)))
		require.ErrorAs(t, err, &held, path)
		require.ErrorContains(t, err, "start on ")
		require.NoDirExists(t, filepath.Join(base, "run"))
	}
	require.NoError(t, turn.Unlock())
	_, err := o.turn(over, rundir.At(filepath.Join(base, "run")))
	require.NoError(t, err, "it is unlocked")
}

// TestStartKeepsWhatMayHaveStarted: a directory is removed only if its workflow cannot have started.
func TestStartKeepsWhatMayHaveStarted(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, row := range map[string]struct {
		ctx  context.Context
		err  error
		left bool
	}{
		"done":            {t.Context(), nil, false},
		"not sent":        {t.Context(), errors.New("write the environment: disk full"), false},
		"refused":         {t.Context(), serviceerror.NewInvalidArgument("no"), false},
		"not permitted":   {t.Context(), serviceerror.NewPermissionDenied("no", ""), false},
		"no namespace":    {t.Context(), serviceerror.NewNamespaceNotFound("gone"), false},
		"no server":       {t.Context(), serviceerror.NewUnavailable("no server"), true},
		"server is slow":  {t.Context(), serviceerror.NewDeadlineExceeded("slow"), true},
		"server fails":    {t.Context(), serviceerror.NewInternal("failed"), true},
		"already started": {t.Context(), serviceerror.NewWorkflowExecutionAlreadyStarted("there", "", ""), true},
		"timeout here":    {t.Context(), fmt.Errorf("start: %w", context.DeadlineExceeded), true},
		"cancelled here":  {over, errors.New("connection closed"), true},
	} {
		err := ofRequest(row.ctx, row.err)
		require.Equal(t, row.left, mayHaveStarted(err), name)
		if row.err != nil {
			require.EqualError(t, err, row.err.Error(), name)
			require.ErrorIs(t, err, row.err, name)
		}
		if err == nil {
			continue
		}
		dir := rundir.At(filepath.Join(t.TempDir(), "r"))
		begun, claimed := Operator{}.take(dir, run.Claim{Version: 1, RunID: "r"})
		require.NoError(t, claimed)
		require.ErrorIs(t, begun.refused(t.Context(), err), row.err, name)
		_, there := os.Lstat(dir.Root)
		require.Equal(t, row.left, there == nil, "%s: the directory exists only if the workflow may have started", name)
	}
}

// TestPipesAreNotRead: a named pipe without a writer would block the command.
func TestPipesAreNotRead(t *testing.T) {
	const text = "pipeline: p\nagent: {run: [scripted], reply: claude-json}\nartifact: {file: page.html, seed: " +
		"seed.html}\n" +
		"roles:\n  b: {prompt: prompt.md, gives: artifact}\nstages:\n  - {name: s, steps: [{role: b}]}\n"
	for name, want := range map[string]string{
		"p.yaml":    "p.yaml: it is not a regular file",
		"prompt.md": "names prompt.md, which is not a regular file",
		"seed.html": "names seed.html, which is not a regular file",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"p.yaml": text, "prompt.md": "Do it.", "seed.html": "<p>"})
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
			_, err := LoadFile(filepath.Join(dir, "p.yaml"))
			require.ErrorContains(t, err, want)
		})
	}
}

func TestCapabilities(t *testing.T) {
	bin := t.TempDir()
	program := func(name, script string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o755))
	}
	program("claude", "[ \"$*\" = --version ] && echo '2.1.3 (Claude Code)' && echo more; echo x >> "+
		filepath.Join(bin, "asked"))
	program("codex", "exit 1")
	program("my-agent", "touch "+filepath.Join(bin, "called"))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	agents := []pipeline.Agent{
		{Run: []string{"claude", "-p"}}, {Run: []string{"claude", "-p", "--model", "x"}}, {Run: []string{"codex"}},
		{Run: []string{"scripted"}},
		{Run: []string{filepath.Join(bin, "my-agent")}}, {},
	}
	require.Equal(t, []string{"claude 2.1.3 (Claude Code)", "codex", "scripted v1", "my-agent"},
		capabilities(t.Context(), agents, "v1"))
	require.Equal(t, "x\n", string(must(os.ReadFile(filepath.Join(bin, "asked")))(t)), "two agents with one program")
	require.NoFileExists(t, filepath.Join(bin, "called"), "an unknown program is not called")
}

// TestFilesLeftOutOfTheTreeAreListed: a link that points outside does not prevent the start.
func TestFilesLeftOutOfTheTreeAreListed(t *testing.T) {
	for name, row := range map[string]struct {
		workspace pipeline.Workspace
		files     []string
		warnings  []string
	}{
		"a folder": {
			pipeline.Workspace{Dir: "."}, []string{"a.txt"},
			[]string{"left out of the tree: known.key (secret)", "left out of the tree: outside (outside)"},
		},
		"a repository, where one is tracked": {
			pipeline.Workspace{Dir: ".", Git: "worktree", Dirty: "exclude"}, []string{"a.txt", "known.key"},
			[]string{"left out of the tree: outside (outside)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			ctx, s, source := t.Context(), testStore(t), t.TempDir()
			write(t, source, map[string]string{"a.txt": "a\n", "known.key": "k\n"})
			require.NoError(t, os.Symlink("/etc/hosts", filepath.Join(source, "outside")))
			runGit(t, source, "init", "-q")
			runGit(t, source, "add", "-A")
			runGit(t, source, "commit", "-q", "-m", "Begin")
			def := Definition{Plan: &pipeline.Plan{Workspace: &row.workspace}, WorkOn: source}
			w := must(preparing(t, s).prepare(ctx, &def))(t)
			require.Equal(t, row.warnings, def.Warnings)
			begun := must(tree.Load(ctx, s, store.Digest(w.Tree.Digest)))(t)
			var files []string
			for _, e := range begun.Entries {
				files = append(files, e.Path)
			}
			require.Equal(t, row.files, files)
		})
	}
}

// TestSubmodulesAreInTheFirstTree at the commits that the source records; those that are missing are named.
func TestSubmodulesAreInTheFirstTree(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ctx, s := t.Context(), testStore(t)
	repository := func(files map[string]string) string {
		dir := must(filepath.EvalSymlinks(t.TempDir()))(t)
		write(t, dir, files)
		runGit(t, dir, "init", "-q")
		runGit(t, dir, "add", "-fA")
		runGit(t, dir, "commit", "-q", "-m", "Begin")
		return dir
	}
	lib, source := repository(map[string]string{"lib.txt": "l", "test/key.pem": "k"}), repository(map[string]string{"a.txt": "a"})
	for _, name := range []string{"lib", "more/lib"} {
		runGit(t, source, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, name)
	}
	runGit(t, source, "commit", "-q", "-m", "Submodules")
	runGit(t, source, "submodule", "--quiet", "deinit", "-f", "more/lib")
	write(t, source, map[string]string{"lib/lib.txt": "of the user"})

	def := Definition{Plan: &pipeline.Plan{Workspace: &pipeline.Workspace{Git: "worktree", Dirty: "exclude"}}, WorkOn: source}
	warnings := []string{"the workspace lacks submodules that are not initialised in " + source + ": more/lib; to have them, " +
		"run: git -C " + source + " submodule update --init --recursive"}
	require.Equal(t, warnings, def.SubmoduleWarnings(ctx))
	p := preparing(t, s)
	w := must(p.prepare(ctx, &def))(t)
	require.Equal(t, warnings, def.Warnings)
	require.Equal(t, []string{"lib", "more/lib"}, w.Submodules)
	begins := filesIn(t, p.folders.Path(source, p.claim.RunID, ""))
	require.Equal(t, "l", begins["lib/lib.txt"], "not the change of the user")
	require.Equal(t, "k", begins["lib/test/key.pem"], "a tracked file is no secret")
	var paths []string
	for _, e := range must(tree.Load(ctx, s, store.Digest(w.Tree.Digest)))(t).Entries {
		paths = append(paths, e.Path)
	}
	require.Equal(t, []string{".gitmodules", "a.txt", "lib", "lib/lib.txt", "lib/test", "lib/test/key.pem", "more", "more/lib"},
		paths)
	again := must(p.prepare(ctx, &def))(t)
	require.Equal(t, w, again)
}

// preparing is the preparation of a run, whose directory exists.
func preparing(t *testing.T, s *store.Store) preparation {
	t.Helper()
	return preparation{s: s, folders: workspace.In(t.TempDir()), dir: rundir.At(t.TempDir()),
		claim: run.Claim{RunID: "0123456789-r", Store: s.URL()}}
}

// repository is a repository with one commit and uncommitted changes.
func repository(t *testing.T) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	source := must(filepath.EvalSymlinks(t.TempDir()))(t)
	write(t, source, map[string]string{"a.txt": "a\n", ".gitignore": "*.o\n"})
	runGit(t, source, "init", "-q", "-b", "main")
	runGit(t, source, "add", "-A")
	runGit(t, source, "commit", "-q", "-m", "Begin")
	write(t, source, map[string]string{"a.txt": "changed\n", "new.txt": "n\n", "x.o": "o"})
	return source
}

// TestStartsWithUncommittedChanges: what becomes of them, and what the run begins with. The checkout keeps its files.
func TestStartsWithUncommittedChanges(t *testing.T) {
	const changes = "M a.txt\n?? new.txt"
	for dirty, row := range map[string]struct {
		refused string
		begins  map[string]string
		status  string // of the checkout, then
		subject string // of the commit that the run begins at
	}{
		"halt":    {"changes that are not committed (a.txt, new.txt): commit or stash them, or add --dirty", nil, changes, ""},
		"exclude": {"", map[string]string{".gitignore": "*.o\n", "a.txt": "a\n"}, changes, "Begin"},
		"include": {"", map[string]string{".gitignore": "*.o\n", "a.txt": "changed\n", "new.txt": "n\n"}, changes,
			git.ImportMessage},
		"commit": {"", map[string]string{".gitignore": "*.o\n", "a.txt": "changed\n", "new.txt": "n\n"}, "",
			"Changes before a run of p"},
	} {
		t.Run(dirty, func(t *testing.T) {
			source, s := repository(t), testStore(t)
			head := runGit(t, source, "rev-parse", "HEAD")
			def := Definition{Plan: &pipeline.Plan{Pipeline: "p", Workspace: &pipeline.Workspace{Git: "worktree", Dirty: dirty}},
				WorkOn: source, Task: "Fix it"}
			p := preparing(t, s)
			if err := CheckSource(t.Context(), def, p.dir); row.refused != "" {
				require.ErrorContains(t, err, row.refused)
				return
			} else {
				require.NoError(t, err)
			}
			w := must(p.prepare(t.Context(), &def))(t)
			require.Equal(t, "passbook/fix-it-01234567", w.Branch)
			require.Equal(t, w.Base, runGit(t, source, "rev-parse", w.Branch))
			require.Equal(t, row.subject, runGit(t, source, "log", "-1", "--format=%s", w.Base))
			require.Equal(t, dirty == "commit", runGit(t, source, "rev-parse", "main") != head)
			require.Equal(t, row.status, runGit(t, source, "status", "--porcelain"))
			require.Equal(t, "changed\n", string(must(os.ReadFile(filepath.Join(source, "a.txt")))(t)))

			folder := p.folders.Path(source, p.claim.RunID, "")
			require.Equal(t, row.begins, filesIn(t, folder))
			require.Equal(t, folder, must(os.Readlink(p.dir.Path(rundir.WorkspaceDir)))(t))
			again := must(p.prepare(t.Context(), &def))(t)
			require.Equal(t, w.Tree, again.Tree, "a repetition finds the same")
			require.Equal(t, row.begins, filesIn(t, folder))
		})
	}
}

func TestBranchesAreNamedAfterTasks(t *testing.T) {
	for task, want := range map[string]string{
		"Fix the login":       "passbook/fix-the-login-01234567",
		"":                    "passbook/01234567",
		"../.. ~^:?*[\\ @{ é": "passbook/01234567",
		"a.lock b..c":         "passbook/a-lock-b-c-01234567",
		"--force":             "passbook/force-01234567",
		"a task with very many words that are longer than a name": "passbook/a-task-with-very-many-words-that-are-a-01234567",
		"01234567 twice": "passbook/01234567-twice-01234567",
	} {
		got := branchOf(task, "01234567-89ab")
		require.Equal(t, want, got, task)
		runGit(t, t.TempDir(), "check-ref-format", "--branch", got)
	}
}

// TestRefusedStartRemovesWorkspaceAndBranch that it has made, and nothing of another run.
func TestRefusedStartRemovesWorkspaceAndBranch(t *testing.T) {
	source, s := repository(t), testStore(t)
	runGit(t, source, "branch", "passbook/it-76543210")
	state, dir := t.TempDir(), rundir.At(filepath.Join(t.TempDir(), "run"))
	o := Operator{Settings: config.Settings{StateDir: state, Store: s.URL()}}
	def := Definition{Plan: &pipeline.Plan{Pipeline: "p", Workspace: &pipeline.Workspace{Git: "worktree",
		Dirty: "exclude"}}, WorkOn: source}
	claim := run.Claim{Version: 1, RunID: "01234567-r", Store: s.URL()}
	begun := must(o.take(dir, claim))(t)
	begun.source = repositoryOf(def)
	must(o.prepareIn(t.Context(), &def, dir, claim))(t)
	require.Contains(t, runGit(t, source, "branch"), "passbook/p-01234567")

	cause := serviceerror.NewInvalidArgument("no")
	require.ErrorIs(t, begun.refused(t.Context(), cause), cause)
	require.NoDirExists(t, dir.Root)
	require.Equal(t, "* main\n  passbook/it-76543210", runGit(t, source, "branch"))
	require.Empty(t, must(os.ReadDir(filepath.Join(state, "workspaces")))(t))
	require.FileExists(t, filepath.Join(source, "new.txt"))
}

// hiding is an operator that hides one value.
func hiding(t *testing.T) Operator {
	t.Helper()
	r := must(redact.New(redact.Options{Environ: []string{"A_KEY=open-sesame"}, Names: []string{"*_KEY"}}))(t)
	return Operator{Redact: r}
}

func TestStartInputIsRedacted(t *testing.T) {
	const sesame = "say open-sesame"
	in := contract.Input{
		Start: run.RunStart{Task: sesame, Warnings: []string{sesame},
			Found: []run.ErrorNoted{{Message: sesame, Diagnostics: sesame}}},
		Reopen: &contract.Reopen{
			Note: sesame, Reason: sesame, Decision: &contract.Message{Note: sesame, Feedback: sesame, By: sesame},
			Revert: &contract.PendingRevert{Note: sesame},
		},
	}
	raw := must(json.Marshal(hiding(t).hiddenInput(in)))(t)
	require.NotContains(t, string(raw), "open-sesame")
	require.Equal(t, 10, strings.Count(string(raw), "say [redacted:env-A_KEY]"))
	require.Equal(t, sesame, in.Start.Warnings[0], "the caller's are as they were")
	require.Equal(t, sesame, in.Reopen.Decision.Note)
}

func TestSecretInputsAreListed(t *testing.T) {
	def := Definition{
		Folder: fstest.MapFS{"a.md": {Data: []byte("plain")},
			"b.md": {Data: []byte("open-sesame, twice: open-sesame")}},
		Source: []byte("pipeline: p\n"), Plan: &pipeline.Plan{Roles: []pipeline.Role{{Prompt: "a.md"},
			{Prompt: "b.md"}}},
	}
	output := hiding(t).secretInputs(def)
	require.Len(t, output, 1)
	require.Contains(t, output[0], "b.md contains what looks like a secret (env-A_KEY)")
	def.Source = []byte("run: echo open-sesame\n")
	require.Contains(t, hiding(t).secretInputs(def)[0], "the definition contains")
	require.Empty(t, Operator{}.secretInputs(def))
}

func TestBudgetWarnsOfModelsAtRunTime(t *testing.T) {
	for name, row := range map[string]struct {
		agent pipeline.Agent
		usd   float64
		warns bool
	}{
		"no model":       {pipeline.Agent{Run: []string{"codex", "exec"}, Reply: "codex-jsonl"}, 5, true},
		"a model":        {pipeline.Agent{Run: []string{"codex", "exec", "-m", "gpt-5"}, Reply: "codex-jsonl"}, 5, false},
		"a price":        {pipeline.Agent{Reply: "gemini-json", Price: &pipeline.Price{Input: 1}}, 5, false},
		"reported costs": {pipeline.Agent{Reply: "claude-json"}, 5, false},
		"no budget":      {pipeline.Agent{Reply: "gemini-json"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &pipeline.Plan{Agents: []pipeline.Agent{row.agent}, Budget: pipeline.Budget{USD: row.usd}}
			require.Equal(t, row.warns, len(BudgetWarnings(plan)) == 1)
		})
	}
}

// TestFilesOfPipelinesAreNoChanges: those of the definition, and of a pipeline that `starter init` wrote beside it.
func TestFilesOfPipelinesAreNoChanges(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	source := t.TempDir()
	write(t, source, map[string]string{"a.txt": "a\n"})
	runGit(t, source, "init", "-q")
	runGit(t, source, "add", "-A")
	runGit(t, source, "commit", "-q", "-m", "Begin")
	const file = "pipeline: p\nagent: {run: [scripted]}\nworkspace: {git: worktree}\n" +
		"roles: {worker: {prompt: w.md, gives: changes}}\nstages: [{name: once, steps: [{role: worker}]}]\n"
	for _, folder := range []string{"passbook/first", "passbook/second"} {
		write(t, source, map[string]string{folder + "/pipeline.yaml": file, folder + "/w.md": "Work.\n"})
	}
	def := must(LoadFile(filepath.Join(source, "passbook/first/pipeline.yaml")))(t)
	def.WorkOn = source
	dir := rundir.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, CheckSource(t.Context(), def, dir))
	write(t, source, map[string]string{"passbook/notes.txt": "n\n", "passbook/third/x.md": "x\n"})
	var refused *SourceError
	require.ErrorAs(t, CheckSource(t.Context(), def, dir), &refused)
	require.Contains(t, refused.Why, "(passbook/notes.txt, passbook/third/x.md)")
}

// TestRebuiltDirectoryIsHiddenFromGit, as it was when the run began.
func TestRebuiltDirectoryIsHiddenFromGit(t *testing.T) {
	s := testStore(t)
	source := t.TempDir()
	write(t, source, map[string]string{"a.txt": "a\n"})
	b := workspace.Blob(must(tree.Save(t.Context(), s, source, tree.Rules{}, nil))(t))
	d := directoryOf(t, s, "t1",
		entry{run.KindRunStart, run.RunStart{RunID: "t1", ThreadID: "t1", Epoch: 1,
			Workspace: &run.Workspace{Kind: run.WorkspaceGit, Source: source, Tree: b}}},
		runEnded(run.Done))
	moved := rundir.At(filepath.Join(source, "run"))
	require.NoError(t, os.Rename(d.Root, moved.Root))
	require.NoError(t, hideRebuilt(moved))
	require.Equal(t, rundir.HiddenFromGit, string(must(os.ReadFile(moved.Path(".gitignore")))(t)))
}

// TestIncludeFileIsRegular: git would follow a link, and wait for a pipe.
func TestIncludeFileIsRegular(t *testing.T) {
	source := repository(t)
	require.NoError(t, os.Symlink("a.txt", filepath.Join(source, git.IncludeFile)))
	def := Definition{Plan: &pipeline.Plan{Workspace: &pipeline.Workspace{Git: "worktree", Dirty: "exclude"}}, WorkOn: source}
	err := CheckSource(t.Context(), def, rundir.At(t.TempDir()))
	require.ErrorContains(t, err, ".worktreeinclude is not a regular file: replace it with one, or remove it")
}
