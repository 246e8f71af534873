package activities

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
)

// TestTreesOfCallsAreNotEdits: the checkout has what a call left whose turn the journal lacks, because the workflow
// ended before, or because a reset abandoned it. Only what an operator changed is an edit.
func TestTreesOfCallsAreNotEdits(t *testing.T) {
	first := map[string]string{"a.txt": "a1\n", "b.txt": "b1\n", "c.txt": "c1\n"}
	second := map[string]string{"a.txt": "a2\n", "d.txt": "d2\n", "c.txt": "c1\n"}
	for _, kind := range []run.WorkspaceKind{run.WorkspaceDir, run.WorkspaceGit} {
		for name, row := range map[string]struct {
			left func(d *checkout)
			want map[string]string // edits; nil: none
		}{
			"complete":    {func(*checkout) {}, nil},
			"interrupted": {func(d *checkout) { d.interrupted(first, second) }, nil},
			"two turns":   {func(d *checkout) { d.sync(map[string]string{"a.txt": "a3\n"}) }, nil},
			"and an edit": {func(d *checkout) { d.put("mine.txt", "m\n") }, map[string]string{"mine.txt": "m\n"}},
			"an edited file of the call": {func(d *checkout) { d.put("a.txt", "mine\n") },
				map[string]string{"a.txt": "mine\n"}},
			"an edit that was found and not journaled": {func(d *checkout) {
				d.put("mine.txt", "m\n")
				require.NotNil(d.t, d.inspect(d.after(second)).Workspace)
			}, map[string]string{"mine.txt": "m\n"}},
		} {
			if kind == run.WorkspaceGit && name != "complete" && name != "interrupted" && name != "and an edit" {
				continue // git takes a second for each
			}
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				d := &checkout{trees: onTree(t, "answer"), kind: kind}
				known := d.sync(first)
				d.sync(second)
				row.left(d)
				want := maps.Clone(first)
				maps.Copy(want, row.want)
				res := d.inspect(known)
				require.Equal(t, row.want == nil, res.Restored, "%+v", res)
				if require.Equal(t, row.want != nil, res.Workspace != nil, "%+v", res); res.Workspace != nil {
					require.Equal(t, len(row.want), res.Workspace.Changed)
					require.Equal(t, want, d.files(res.Workspace.Tree))
					known.Tree, known.Commit = res.Workspace.Tree, res.Workspace.Commit
				}
				require.Equal(t, want, d.content())
				require.Equal(t, contract.InspectResult{}, d.inspect(known), "a repetition changes nothing")
				d.put("a.txt", "a2\n")
				require.Equal(t, 1, d.inspect(known).Workspace.Changed, "what an operator has put back is an edit")
			})
		}
	}
}

// TestOlderContentIsAnEdit: an operator restores the content that a file had before the last turn.
func TestOlderContentIsAnEdit(t *testing.T) {
	d := &checkout{trees: onTree(t, "answer"), kind: run.WorkspaceDir}
	d.sync(map[string]string{"a.txt": "a1\n"})
	known := d.sync(map[string]string{"a.txt": "a2\n"})
	d.put("a.txt", "mine\n")
	known.Tree = d.inspect(known).Workspace.Tree
	for _, text := range []string{"a2\n", "a1\n"} {
		d.put("a.txt", text)
		res := d.inspect(known)
		require.NotNil(t, res.Workspace, text)
		known.Tree = res.Workspace.Tree
	}
	d.put("a.txt", "a2\n")
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, layout.CheckoutFile), []byte("{"), 0o600))
	require.NotNil(t, d.inspect(known).Workspace, "a damaged record excludes nothing")
}

// checkout is the checkout of a run of one kind of workspace.
type checkout struct {
	*trees
	kind run.WorkspaceKind
	last contract.Tree
}

// sync updates the checkout to what a pass left, and returns the workspace after it.
func (d *checkout) sync(files map[string]string) contract.Tree {
	d.t.Helper()
	to := d.after(files)
	to.Commit = d.carryTo(to).Commit
	d.last = to
	return to
}

// after is the workspace with the files of a pass.
func (d *checkout) after(files map[string]string) contract.Tree {
	d.t.Helper()
	to := d.tree
	if to.Workspace.Kind = d.kind; d.last.Commit != "" {
		to.Commit = d.last.Commit
	}
	to.Tree = d.saved(files)
	return to
}

// interrupted leaves the checkout as an update does that ended in the middle.
func (d *checkout) interrupted(from, to map[string]string) {
	was, now := d.after(from), d.after(to)
	require.NoError(d.t, writeCheckout(d.acts.open(d.dir), checkoutRecord{
		Trees: []string{was.Tree.Digest, now.Tree.Digest}}))
	d.put("b.txt", from["b.txt"])
	require.NoError(d.t, os.Remove(filepath.Join(d.workspace(), "d.txt")))
}

func (d *checkout) put(name, text string) {
	d.t.Helper()
	writeFiles(d.t, d.workspace(), map[string]string{name: text})
}

func (d *checkout) content() map[string]string {
	d.t.Helper()
	saved := must(tree.Save(d.t.Context(), d.s, d.workspace(), tree.Rules{}, nil))(d.t)
	return d.files(run.Blob{Digest: string(saved.Digest)})
}
