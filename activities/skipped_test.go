package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// beginWith commits more files, whatever the rules say of them, and lets the run begin with that.
func (h *trees) beginWith(files map[string]string) {
	h.t.Helper()
	for name, text := range files {
		require.NoError(h.t, os.MkdirAll(filepath.Join(h.source, filepath.Dir(name)), 0o700))
		h.put(name, text)
		h.git("add", "-f", name)
	}
	h.git("commit", "-q", "-m", "More")
	h.base = h.git("rev-parse", "HEAD")
	plan, err := h.acts.plan(h.t.Context(), h.s, h.tree.Plan)
	require.NoError(h.t, err)
	of := run.Workspace{Kind: "git", Source: h.source, Base: h.base, Branch: h.tree.Workspace.Branch}
	saved, err := workspace.Save(h.t.Context(), h.s, h.source, of, workspace.Rules(*plan.Workspace), nil)
	require.NoError(h.t, err)
	of.Tree = workspace.Blob(saved)
	h.tree = contract.Tree{PlanUse: h.tree.PlanUse, Workspace: of, Tree: of.Tree, Commit: h.base}
}

// settled makes the pass, and brings the checkout to what it left.
func (h *trees) settled() (contract.PassResult, contract.Tree) {
	h.t.Helper()
	res, err := h.pass(context.Background())
	require.NoError(h.t, err)
	require.Equal(h.t, run.CategoryOK, res.Outcome, res.Message)
	to := h.tree
	if res.Changes == nil {
		return res, to
	}
	to.Tree = res.Changes.Tree
	to.Commit = h.carryTo(to).Commit
	return res, to
}

// paths are the files of a stored tree, in order.
func (h *trees) paths(b run.Blob) []string {
	h.t.Helper()
	loaded, err := tree.Load(h.t.Context(), h.s, store.Digest(b.Digest))
	require.NoError(h.t, err)
	var all []string
	for _, e := range loaded.Entries {
		if e.Mode != tree.ModeFolder {
			all = append(all, e.Path)
		}
	}
	return all
}

func TestOutsideLinkIsSkipped(t *testing.T) {
	h := onTree(t, "edit and leave a link")
	res, known := h.settled()
	require.Equal(t, []string{".gitignore", "a.txt", "b.txt", "new.txt"}, h.paths(res.Changes.Tree))
	require.Equal(t, []run.LeftOut{
		{Path: ".env", Reason: "secret"}, {Path: "venv/bin/python3", Reason: "outside"},
		{Path: "ignored.log", Reason: "ignored"}, {Path: "left-out.tmp", Reason: "ignored"},
	}, res.Changes.Skipped)
	require.Equal(t, 4, res.Changes.SkippedCount)
	require.Equal(
		t, []string{"left out of the tree: .env (secret)", "left out of the tree: venv/bin/python3 (outside)"},
		res.Validation.Warnings,
	)
	require.Equal(t, 1, h.started())

	require.NoError(t, os.Symlink("/etc/hosts", filepath.Join(h.workspace(), "hosts")))
	require.Equal(t, contract.InspectResult{}, h.inspect(known), "a link of a person is not part of the tree either")
}

func TestUnstorableFilesFailAttempt(t *testing.T) {
	h := onTree(t, "edit and leave folders that are too deep")
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryFileIO, res.Outcome)
	require.Contains(t, res.Message, "store the agent's files")
	require.Contains(t, res.Message, "dddd")
	require.Contains(t, res.Message, "longer than 4096 bytes")
	require.Less(t, len(res.Message), 1000)
	require.False(t, res.Permanent)
	require.Nil(t, res.Changes)
	require.InDelta(t, 0.25, res.Spend.USD, 1e-9)
	h.noScratch()

	again, err := h.pass(context.Background())
	require.NoError(t, err)
	require.True(t, again.Reused)
	require.Equal(t, run.CategoryFileIO, again.Outcome)
	require.Equal(t, 1, h.started(), "one call is paid for once")
}

func TestBrokenAgentRepositoryIsHarmless(t *testing.T) {
	h := onTree(t, "edit and break the repository")
	res, _ := h.settled()
	require.Equal(t, edited, h.files(res.Changes.Tree))
}

func TestTrackedIgnoredFilesAreKept(t *testing.T) {
	h := onTree(t, "edit secrets")
	h.beginWith(map[string]string{"config/tls.key": "old\n", "old.pem": "old\n", ".aws/known": "known\n"})
	require.Equal(t, []string{".aws/known", ".gitignore", "a.txt", "b.txt", "config/tls.key", "gone.txt", "old.pem"},
		h.paths(h.tree.Tree))
	res, known := h.settled()
	require.Equal(t, []string{".aws/known", ".gitignore", "a.txt", "b.txt", "config/tls.key", "gone.txt"},
		h.paths(res.Changes.Tree))
	require.Equal(
		t, []string{"left out of the tree: .aws/new (secret)", "left out of the tree: config/other.key (secret)"},
		res.Validation.Warnings,
	)
	require.Equal(t, "M\tconfig/tls.key\nD\told.pem", h.git("diff", "--name-status", "main", "passbook/run-1"))

	require.NoError(t, os.WriteFile(filepath.Join(h.workspace(), ".env"), []byte("KEY=mine\n"), 0o600))
	require.Equal(t, contract.InspectResult{}, h.inspect(known),
		"a new secret of a person is none of the run's business")
}

func TestForceAddedFilesAreDelivered(t *testing.T) {
	h := onTree(t, "add by force")
	res, known := h.settled()
	require.Equal(t, []string{".gitignore", "a.txt", "b.txt", "gone.txt", "out/wanted.log"}, h.paths(res.Changes.Tree))
	require.Equal(t, []run.LeftOut{{Path: "out/stray.log", Reason: "ignored"}}, res.Changes.Skipped)
	require.Empty(t, res.Validation.Warnings, "what is ignored is named where the changes are")
	require.Equal(t, "A\tout/wanted.log", h.git("diff", "--name-status", "main", "passbook/run-1"))
	require.Equal(t, contract.InspectResult{}, h.inspect(known))
	require.True(t, h.deliver("", false).Delivered)
	require.Equal(t, "wanted", h.git("show", "result:out/wanted.log"))

	require.NoError(t, os.WriteFile(filepath.Join(h.workspace(), "out/cache.log"), []byte("cache\n"), 0o600))
	h.tree = known
	h.carryTo(known)
	require.FileExists(t, filepath.Join(h.workspace(), "out/cache.log"),
		"what is ignored in a folder of the tree stays")
}

func TestOnlyIgnoredFilesAreReported(t *testing.T) {
	h := onTree(t, "leave what is ignored")
	res, _ := h.settled()
	require.Nil(t, res.Changes)
	require.Equal(t, []string{"left out of the tree: only.log (ignored)"}, res.Validation.Warnings)
}

func TestManySkippedFilesAreCounted(t *testing.T) {
	var saved tree.Saved
	for i := range 30 {
		saved.Skipped = append(saved.Skipped, tree.Skipped{Path: fmt.Sprintf("%02d.key", i), Reason: tree.ReasonSecret})
	}
	saved.Skipped = append(saved.Skipped, tree.Skipped{Path: ".git", Folder: true, Reason: tree.ReasonGit})
	first, count := workspace.Skipped(saved)
	require.Len(t, first, 20)
	require.Equal(t, 30, count)
	output := workspace.LeftOut(saved)
	require.Equal(t, []string{"left out of the tree: 00.key (secret)", "left out of the tree: 10 more"},
		[]string{output[0], output[20]})
}
