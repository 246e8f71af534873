package rundir

import (
	"context"
	"fmt"
	"path"

	"github.com/passbook-run/passbook/run"
)

const snapshotsDir = "snapshots"

// Trees is what the projector needs of the trees in a store. It knows them by their digests only.
type Trees interface {
	// Manifest lists a whole tree, as a run directory shows it.
	Manifest(ctx context.Context, tree string) ([]byte, error)
	// LayDown makes the folder at dir hold a tree and nothing else; it is created if it is missing. Nothing is synced.
	LayDown(ctx context.Context, tree, dir string) error
	// PutTree stores what a manifest lists, but for the contents of its files. A manifest that was changed is [ErrDamaged].
	PutTree(ctx context.Context, manifest []byte) error
}

// SnapshotManifest is the list of the whole tree that turn n ended with; of turn 0, that the run began with.
func SnapshotManifest(n int) string { return path.Join(snapshotDir(n), "manifest.json") }

// snapshotTree is the tree itself, where the definition wants it laid down.
func snapshotTree(n int) string { return path.Join(snapshotDir(n), "tree") }

func snapshotDir(n int) string { return fmt.Sprintf("%s/turn-%d", snapshotsDir, n) }

// snapshot writes down the tree that a turn ends with. The number of a turn is never given twice, and the bytes follow from the event and the
// store: a snapshot is only ever written again as what it is. The tree is laid down before the manifest that says that it is there.
func (p *projector) snapshot(w *batchWriter, e run.Event, before run.State) error {
	var end run.PassEnd
	e.Decode(&end)
	tree, ok := treeAfter(end, before)
	if !ok {
		return nil
	}
	n := p.book.Turns + 1
	if p.shadow == nil && p.meta.Workspace != nil && p.meta.Workspace.Snapshots == run.SnapshotsFull {
		dir := p.dir.Path(snapshotTree(n))
		if err := p.dir.Disk.Mkdir(p.dir.Path(snapshotDir(n)), dirPerm); err != nil {
			return err
		}
		if err := p.blobs.LayDown(p.ctx, tree, dir); err != nil {
			return err
		}
		if err := p.dir.Disk.SettleAll(dir); err != nil {
			return err
		}
	}
	p.manifest(w, n, tree)
	return nil
}

func (p *projector) manifest(w *batchWriter, n int, tree string) {
	w.add(wholeFile{path: p.dir.Path(SnapshotManifest(n)), tree: tree, load: func() ([]byte, error) { return p.blobs.Manifest(p.ctx, tree) }})
}

// treeAfter is the tree that a turn ends with; ok is false where the pass is none.
func treeAfter(end run.PassEnd, before run.State) (tree string, ok bool) {
	switch {
	case !end.Turn() || before.Tree == nil:
		return "", false
	case end.Tree != nil:
		return end.Tree.Digest, true
	}
	return before.Tree.Digest, true
}
