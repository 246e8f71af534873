package projector

import (
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// snapshot records the tree at the end of a turn. The number of a turn is never reused, and the bytes follow from the
// event and the store, so a snapshot is only ever rewritten with the same contents. The tree is written before the
// manifest that records it.
func (p *Projector) snapshot(w *batchWriter, e run.Event, before run.State) error {
	var end run.PassEnd
	e.Decode(&end)
	tree, ok := TreeAfter(end, before)
	if !ok {
		return nil
	}
	n := p.records.Turns + 1
	if p.shadow == nil && !w.evidenceOnly && p.meta.Workspace != nil && p.meta.Workspace.Snapshots == run.SnapshotsFull {
		dir := p.Dir.Path(layout.SnapshotTree(n))
		if err := p.Dir.Inside().Mkdir(p.Dir.Path(layout.SnapshotDir(n)), layout.DirPerm); err != nil {
			return err
		}
		if err := p.Blobs.LayDown(p.Ctx, tree, dir); err != nil {
			return err
		}
		if err := p.Dir.Inside().SettleAll(dir); err != nil {
			return err
		}
	}
	p.manifest(w, n, tree)
	return nil
}

func (p *Projector) manifest(w *batchWriter, n int, tree string) {
	w.add(wholeFile{name: layout.SnapshotManifest(n), tree: tree,
		load: func() ([]byte, error) { return p.Blobs.Manifest(p.Ctx, tree) }})
}

// TreeAfter is the tree at the end of a turn; ok is false if the pass is not a turn.
func TreeAfter(end run.PassEnd, before run.State) (tree string, ok bool) {
	switch {
	case !end.Turn() || before.Tree == nil:
		return "", false
	case end.Tree != nil:
		return end.Tree.Digest, true
	}
	return before.Tree.Digest, true
}
