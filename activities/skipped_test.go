package activities

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// beginWith commits more files, whatever the rules say of them, and lets the run begin with that.
func (h *trees) beginWith(files map[string]string) {
	h.t.Helper()
	writeFiles(h.t, h.source, files)
	for name := range files {
		h.git("add", "-f", name)
	}
	h.git("commit", "-q", "-m", "More")
	h.startFrom(h.tree.PlanUse, must(h.acts.plan(h.t.Context(), h.s, h.tree.Plan))(h.t))
}

// settled makes the pass, and brings the checkout to what it left.
func (h *trees) settled() (contract.PassResult, contract.Tree) {
	h.t.Helper()
	res := h.accepted()
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
	return slices.Sorted(maps.Keys(h.files(b)))
}

func TestOutsideLinkIsSkipped(t *testing.T) {
	h := onTree(t, "sh mkdir -p venv/bin; ln -s /usr/bin/env venv/bin/python3; "+strings.TrimPrefix(edit, "sh "))
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
	require.Equal(t, contract.InspectResult{}, h.inspect(known), "nor is a link of an operator part of the tree")
}

func TestTrackedIgnoredFilesAreKept(t *testing.T) {
	h := onTree(t, "sh mkdir -p config .aws; echo new >config/tls.key; echo other >config/other.key; echo new >.aws/new; "+
		"rm old.pem"+thenAnswer)
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

	h.edit(map[string]string{".env": "KEY=mine\n"})
	require.Equal(t, contract.InspectResult{}, h.inspect(known),
		"a new secret of an operator is not part of the tree")
}

func TestOnlyIgnoredFilesAreReported(t *testing.T) {
	h := onTree(t, "sh echo log >only.log"+thenAnswer)
	res, _ := h.settled()
	require.Nil(t, res.Changes)
	require.False(t, res.Modified)
	require.Equal(t, []string{"left out of the tree: only.log (ignored)"}, res.Validation.Warnings)
}

func TestTreeFailureIsShort(t *testing.T) {
	f := evaluation{ans: &calls.Answer{TreeError: strings.Repeat("d", 5000)}}.treeFailure()
	require.Equal(t, run.CategoryFileIO, f.Category)
	require.Less(t, len(f.Message), 1000)
}
