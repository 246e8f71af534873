package rundir

import (
	"bytes"
	"sync"
)

// maxFolds is how many directories have a fold in memory.
const maxFolds = 32

// Folds has the folds of the directories that this process has written last. One counts only for a meta.json with the
// bytes that this process wrote.
type Folds struct {
	mu  sync.Mutex
	all map[string]*exporter // by directory
}

// take returns the fold of a directory, once.
func (f *Folds) take(root string, meta []byte) *exporter {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.all[root]
	delete(f.all, root)
	if w == nil || !bytes.Equal(w.meta, meta) {
		return nil
	}
	return w
}

func (f *Folds) keep(root string, w *exporter) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil || len(f.all) == maxFolds {
		f.all = map[string]*exporter{}
	}
	f.all[root] = w
}
