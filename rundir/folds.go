package rundir

import "sync"

// maxFolds is how many directories have a fold in memory.
const maxFolds = 32

// Folds has the folds of directories that this process has written. One counts only while the files are as this process
// left them.
type Folds struct {
	mu  sync.Mutex
	all map[string]*exporter // by directory
}

// take returns the fold of a directory, once.
func (f *Folds) take(root string) *exporter {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.all[root]
	delete(f.all, root)
	return w
}

func (f *Folds) keep(root string, w *exporter) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*exporter{}
	}
	for other := range f.all {
		if len(f.all) < maxFolds {
			break
		}
		delete(f.all, other)
	}
	f.all[root] = w
}
