package activities

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// trees is a harness with a run on a git repository.
type trees struct {
	*harness
	source string // the repository's checkout
	dir    string // of the run
	base   string
	tree   contract.Tree // as the run begins
	now    *run.Blob     // the tree that was carried last
}

const onTrees = `
pipeline: trees
agent: {run: [AGENT], reply: claude-json, env: [ACTIVITIES_TEST_PLAYS, ACTIVITIES_TEST_FOLDER]}
workspace: {git: worktree, ignore: ['*.tmp']}
delivery: {to: branch, branch: result}
roles:
  worker: {prompt: builder.md, gives: changes}
stages:
  - name: work
    steps: [{role: worker}, {run: 'COMMAND', id: tests}]
`

// onTree creates the harness; edits are pairs of texts in the definition.
func onTree(t *testing.T, play string, edits ...string) *trees {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	h := &trees{harness: newHarness(t, play)}
	root := must(filepath.EvalSymlinks(h.harness.dir))(t)
	h.source, h.dir = filepath.Join(root, "source"), filepath.Join(root, "run")
	require.NoError(t, errors.Join(os.MkdirAll(h.source, 0o700), os.MkdirAll(filepath.Join(h.dir, "_orchestrator"), 0o700)))
	h.put("a.txt", "a\n")
	h.put("b.txt", "b\n")
	h.put("gone.txt", "g\n")
	h.put(".gitignore", "*.log\n")
	h.git("init", "-q", "-b", "main")
	h.git("add", "-A")
	h.git("commit", "-q", "-m", "Begin")

	text := strings.Replace(onTrees, "AGENT", h.agent, 1)
	for i := 0; i < len(edits); i += 2 {
		require.Contains(t, text, edits[i])
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	def, problems := pipeline.Parse("trees.yaml", []byte(text),
		fstest.MapFS{"builder.md": {Data: []byte("Build it.\n")}})
	require.Empty(t, problems)
	plan := pipeline.Expand(def)
	stored := must(h.s.PutJSON(t.Context(), plan))(t)
	h.startFrom(contract.PlanUse{Plan: string(stored)}, plan)
	h.in.Artifact, h.in.Tree, h.in.At = nil, &h.tree, contract.StepRef{
		PlanUse: contract.PlanUse{Plan: string(stored), Inputs: h.in.At.Inputs}, Round: 1,
	}
	h.in.Call = "run-1/g0.001.1.-.1"
	return h
}

// startFrom lets the run start from the last commit of the source.
func (h *trees) startFrom(use contract.PlanUse, plan *pipeline.Plan) {
	h.t.Helper()
	h.base = h.git("rev-parse", "HEAD")
	of := run.Workspace{Kind: "git", Source: h.source, Base: h.base, Branch: "passbook/run-1"}
	rules := workspace.RulesOf(plan)
	rules.Tracked = strings.Split(h.git("ls-files"), "\n")
	saved := must(tree.Save(h.t.Context(), h.s, h.source, rules, nil))(h.t)
	of.Tree = workspace.Blob(saved)
	h.tree = contract.Tree{PlanUse: use, Workspace: of, Tree: of.Tree, Commit: h.base}
}

// put writes a file of the source.
func (h *trees) put(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.source, name), []byte(text), 0o600))
}

func (h *trees) git(args ...string) string {
	h.t.Helper()
	return gitIn(h.t, h.source, args...)
}

// gitIn runs git as the user would.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test",
		"GIT_COMMITTER_EMAIL=test@localhost")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s:\n%s", strings.Join(args, " "), out)
	return strings.TrimRight(string(out), "\n")
}

// files are the paths and contents of a stored tree.
func (h *trees) files(b run.Blob) map[string]string {
	h.t.Helper()
	loaded := must(tree.Load(h.t.Context(), h.s, store.Digest(b.Digest)))(h.t)
	out := map[string]string{}
	for _, e := range loaded.Entries {
		if e.Mode != tree.ModeFolder {
			out[e.Path] = h.text(string(e.Digest))
		}
	}
	return out
}

// edit is an agent that changes the workspace, and leaves in it what is not part of the work.
const edit = "sh echo a2 >a.txt; echo n >new.txt; echo KEY=secret >.env; echo log >ignored.log; echo tmp >left-out.tmp; " +
	"rm gone.txt" + thenAnswer

// edited is the tree after that.
var edited = map[string]string{".gitignore": "*.log\n", "a.txt": "a2\n", "b.txt": "b\n", "new.txt": "n\n"}

func TestAgentChangesBecomeTree(t *testing.T) {
	h := onTree(t, edit)
	res := h.accepted()
	require.True(t, res.Modified)
	require.Equal(t, edited, h.files(res.Changes.Tree), "neither secrets nor what is ignored")
	require.Equal(t, 3, res.Changes.Changed)
	var changed []string
	for _, f := range res.Changes.Files {
		changed = append(changed, f.Kind+" "+f.Path)
	}
	require.Equal(t, []string{"changed a.txt", "removed gone.txt", "added new.txt"}, changed)
	require.Empty(t, h.git("status", "--porcelain"), "the source is not where the agent works")
	h.noScratch()

	again := h.resultOf(h.worker())
	require.True(t, again.Reused)
	require.Equal(t, res.Changes, again.Changes, "the same answer, the same tree")
	require.Equal(t, 1, h.started())
}

func TestUnstoredTreeIsNotRepeated(t *testing.T) {
	h := onTree(t, edit+thenLoseStore)
	_, err := h.pass(context.Background())
	require.Error(t, err, "the store is away")
	h.storeBack()
	res := h.accepted()
	require.Equal(t, 1, h.started())
	require.Equal(t, edited, h.files(res.Changes.Tree))
}

func TestFailedAttemptLeavesNoChanges(t *testing.T) {
	h := onTree(t, `sh if mkdir "$`+folder+`/failed"; then echo junk >junk.txt; exit 1; fi; `+
		strings.TrimPrefix(edit, "sh "))
	res := h.result()
	require.NotEqual(t, run.CategoryOK, res.Outcome)
	require.Nil(t, res.Changes)
	h.in.Call, h.in.Attempt = "run-1/g0.001.1.-.2", 2
	res = h.accepted()
	require.Equal(t, edited, h.files(res.Changes.Tree))
	h.noScratch()
}

func TestCommandStep(t *testing.T) {
	for name, row := range map[string]struct {
		command, value, reply string
		code                  int
	}{
		"fine":     {"cat a.txt", "ok", "a\n", 0},
		"it fails": {"cat b.txt; echo bad >&2; exit 3", "failed", "b\nbad\n", 3},
		"it changes a file": {"echo x >a.txt && echo y >junk.txt && git rev-parse --abbrev-ref HEAD", "ok", "passbook/run-1\n",
			0},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer", "COMMAND", row.command)
			h.in.At.Step = 1
			res := h.accepted()
			require.Equal(t, row.value, res.Value)
			require.Equal(t, row.code, res.ExitCode)
			require.Equal(t, row.code == 0, res.Validation.Passed)
			require.Equal(t, row.reply, h.text(res.Reply.Digest))
			require.Nil(t, res.Changes)
			require.Zero(t, res.Spend.USD)
			require.Zero(t, h.started(), "no agent is asked")
			require.Empty(t, h.git("status", "--porcelain"))
			h.noScratch()
		})
	}
}

// TestCommandWithoutWorkspace finds the artifact and the notes in its folder.
func TestCommandWithoutWorkspace(t *testing.T) {
	h := newHarness(t, "answer")
	h.yaml = strings.NewReplacer("{role: reader}]", `{run: "cat page.html seen.md; ls; echo x >page.html"}]`,
		"roles:", "notes:\n  seen: {file: seen.md, marker: SEEN}\n  none: {file: none.md, marker: NONE}\nroles:").
		Replace(h.yaml)
	h.lay()
	page := h.put("<p>page</p>\n")
	h.in.Artifact = &page
	h.in.Notes = []run.Notes{{Name: "seen", File: "seen.md", Whole: h.put("one\n")}, {Name: "none", File: "none.md"}}
	res := h.accepted()
	require.Equal(t, "<p>page</p>\none\npage.html\nseen.md\n", h.text(res.Reply.Digest))
	require.Nil(t, res.Artifact, "its changes are dropped")
	require.False(t, res.Modified)

	given := contract.StepContext{Notes: h.in.Notes}
	one := must(h.compose(h.in.At, given))(t)
	given.Notes[0].Whole = h.put("two\n")
	require.NotEqual(t, one, must(h.compose(h.in.At, given))(t), "other notes are another question")
	h.noScratch()
}

// TestCommandThatCannotRun: whether the work is right is not known, so it is no failed check.
func TestCommandThatCannotRun(t *testing.T) {
	for code, command := range map[int]string{127: "no-such-program", 126: "chmod -x junk.sh; ./junk.sh"} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			h := onTree(t, "answer", "COMMAND", "echo >junk.sh; "+command)
			h.in.At.Step = 1
			res := h.result()
			require.Equal(t, run.CategorySpawnFailed, res.Outcome)
			require.Equal(t, code, res.ExitCode)
			require.True(t, res.Permanent, "the run pauses")
			require.Contains(t, res.Message, strconv.Quote("echo >junk.sh; "+command), "what ran")
			require.Contains(t, res.Message, strings.Fields(command)[len(strings.Fields(command))-1]+": ", "what the shell printed")
			require.Empty(t, res.Value)
		})
	}
}

func TestCommandTimeout(t *testing.T) {
	h := onTree(t, "answer", "COMMAND", "echo begun; exec sleep 600")
	h.in.At.Step, h.in.TimeoutMS = 1, 300
	res := h.result()
	require.Equal(t, run.CategoryAgentTimeout, res.Outcome, res.Message)
	require.Empty(t, res.Value)
	require.False(t, res.Permanent)
}

// carry stores a tree of these files, and brings the run's own checkout to it.
func (h *trees) carry(files map[string]string) (contract.Tree, contract.SyncWorkspaceResult) {
	h.t.Helper()
	to := h.tree
	to.Tree = h.saved(files)
	return to, h.carryTo(to)
}

// carried is the workspace after carry, as the run knows it.
func (h *trees) carried(files map[string]string) contract.Tree {
	h.t.Helper()
	known, res := h.carry(files)
	known.Commit = res.Commit
	return known
}

// saved stores a tree of these files.
func (h *trees) saved(files map[string]string) run.Blob {
	h.t.Helper()
	folder := h.t.TempDir()
	writeFiles(h.t, folder, files)
	return workspace.Blob(must(tree.Save(h.t.Context(), h.s, folder, tree.Rules{}, nil))(h.t))
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// edit writes files in the checkout, as an operator does.
func (h *trees) edit(files map[string]string) {
	h.t.Helper()
	writeFiles(h.t, h.workspace(), files)
}

func (h *trees) carryTo(to contract.Tree) contract.SyncWorkspaceResult {
	h.t.Helper()
	h.now = &to.Tree
	res := must(do(h.t, h.acts.SyncWorkspace, contract.SyncWorkspaceInput{
		Target: h.target(), Tree: to, Previous: &h.tree.Tree, Message: "Do it\n\nPassbook-Run: run-1\nPassbook-Step: 001\n",
	}))(h.t)
	return res
}

func (h *trees) target() contract.Target {
	return contract.Target{RunID: "run-1", Dir: h.dir, Store: h.s.URL()}
}

func (h *trees) workspace() string { return h.acts.folders.Path(h.source, "run-1", "") }

// committed wants the checkout to be clean at a commit of exactly these files, right behind the base.
func (h *trees) committed(commit string, files map[string]string) {
	h.t.Helper()
	require.Equal(h.t, commit+" "+h.base+" Do it",
		gitIn(h.t, h.workspace(), "log", "-1", "--format=%H %P %s", "passbook/run-1"))
	require.Empty(h.t, gitIn(h.t, h.workspace(), "status", "--porcelain"))
	found := map[string]string{}
	for _, name := range strings.Fields(gitIn(h.t, h.workspace(), "ls-files")) {
		found[name] = read(h.t, filepath.Join(h.workspace(), name))
	}
	require.Equal(h.t, files, found)
}

func TestSyncWorkspace(t *testing.T) {
	for name, damage := range map[string]func(h *trees){
		"complete": func(*trees) {},
		"partial": func(h *trees) {
			require.NoError(h.t, os.Remove(filepath.Join(h.workspace(), "new.txt")))
			h.edit(map[string]string{"a.txt": "ha"})
		},
		"not committed": func(h *trees) { gitIn(h.t, h.workspace(), "reset", "-q", h.base) },
		"removed":       func(h *trees) { require.NoError(h.t, os.RemoveAll(h.workspace())) },
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer")
			to, res := h.carry(edited)
			h.committed(res.Commit, edited)
			damage(h)
			again := h.carryTo(to)
			h.committed(again.Commit, edited)
			require.Equal(t, "main", h.git("branch", "--show-current"))
			require.Equal(t, h.base, h.git("rev-parse", "main"))
			require.Empty(t, h.git("status", "--porcelain"))
			if name != "not committed" {
				require.Equal(t, res.Commit, again.Commit)
			}
		})
	}
}

func TestSyncWorkspaceKeepsExcludedFiles(t *testing.T) {
	h := onTree(t, "answer")
	h.carry(edited)
	h.edit(map[string]string{"cache.tmp": "cache"})
	h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a3\n"})
	require.FileExists(t, filepath.Join(h.workspace(), "cache.tmp"))
	require.NoFileExists(t, filepath.Join(h.workspace(), "new.txt"))
	require.NotContains(t, gitIn(t, h.workspace(), "ls-files"), "cache.tmp")
}

func TestOnlyAcceptedChangesAreDelivered(t *testing.T) {
	h := onTree(t, "answer")
	known := h.carried(edited)
	h.edit(map[string]string{".env": "mine\n", "cache.tmp": "mine\n", "ignored.log": "mine\n", "fixed.txt": "f\n"})
	ev := h.inspect(known).Workspace
	require.Equal(t, 1, ev.Changed)
	h.now = &ev.Tree
	h.edit(map[string]string{"late.txt": "not seen yet\n"})
	require.True(t, h.deliver("", false).Delivered)
	require.Equal(t, "a.txt\nfixed.txt\ngone.txt\nnew.txt",
		h.git("diff", "--name-only", "--no-renames", "main", "result"))
	require.FileExists(t, filepath.Join(h.workspace(), ".env"))
}

// inspect compares the checkout with what the run knows.
func (h *trees) inspect(known contract.Tree) contract.InspectResult {
	h.t.Helper()
	res := must(do(h.t, h.acts.Inspect, contract.InspectInput{Target: h.target(), Tree: &known}))(h.t)
	return res
}

func TestInspectAdoptsCheckoutEdits(t *testing.T) {
	h := onTree(t, "answer")
	known := h.carried(edited)
	require.Equal(t, contract.InspectResult{}, h.inspect(known), "the file is unchanged")

	h.edit(map[string]string{"a.txt": "fixed\n", "mine.txt": "m\n", "ignored.log": "log\n"})
	ev := h.inspect(known).Workspace
	require.NotNil(t, ev)
	require.Equal(t, "edited", ev.Cause)
	require.Equal(t, 2, ev.Changed)
	require.Equal(t, map[string]string{
		".gitignore": "*.log\n", "a.txt": "fixed\n", "b.txt": "b\n", "new.txt": "n\n", "mine.txt": "m\n",
	}, h.files(ev.Tree))
	require.Equal(t, ev.Commit+" Record manual changes", gitIn(t, h.workspace(), "log", "-1", "--format=%H %s"))

	known.Tree, known.Commit = ev.Tree, ev.Commit
	require.Equal(t, contract.InspectResult{}, h.inspect(known))
}

func TestInspectRecreatesCheckout(t *testing.T) {
	h := onTree(t, "answer")
	known := h.carried(edited)
	require.NoError(t, os.RemoveAll(h.workspace()))
	require.Equal(t, contract.InspectResult{Restored: true}, h.inspect(known))
	h.committed(known.Commit, edited)
}

func TestSyncWorkspaceKeepsOperatorFiles(t *testing.T) {
	for _, kind := range []run.WorkspaceKind{run.WorkspaceDir, run.WorkspaceGit} {
		t.Run(string(kind), func(t *testing.T) {
			h := onTree(t, "answer")
			to := h.tree
			to.Workspace.Kind = kind
			h.carryTo(to)
			in := contract.SyncWorkspaceInput{Target: h.target(), Tree: to, Previous: &h.tree.Tree, Message: "Do it\n"}
			in.Tree.Tree = h.saved(map[string]string{"a.txt": "a, better\n"})
			mine := map[string]string{"mine.txt": "mine", "sub/too.txt": "mine too"}
			h.edit(mine)
			h.edit(map[string]string{".passbook-abc": "half of a file"})
			res := must(do(t, h.acts.SyncWorkspace, in))(t)
			kept := filepath.Join(h.dir, "_orchestrator", "edits")
			for name, text := range mine {
				require.Equal(t, text, read(t, filepath.Join(kept, name)))
				require.NoFileExists(t, filepath.Join(h.workspace(), name))
				require.Contains(t, res.Recovered[0].Message, name+" (now _orchestrator/edits/"+name+")")
			}
			require.NoFileExists(t, filepath.Join(h.workspace(), "b.txt"), "the pass has removed it")
			require.NoFileExists(t, filepath.Join(kept, "b.txt"))
			require.NoFileExists(t, filepath.Join(kept, ".passbook-abc"))
			require.Len(t, res.Recovered, 1)
			require.Empty(t, must(do(t, h.acts.SyncWorkspace, in))(t).Recovered)
		})
	}
}
