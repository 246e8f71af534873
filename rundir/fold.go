package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/run"
)

// Fold folds the whole of events.jsonl, as a stream: the memory does not grow with it. What is wrong with lines is in the tally. A missing file is empty.
func (d Dir) Fold() (*run.Fold, run.Tally, error) {
	fold := run.NewFold(run.State{}, run.History{})
	f, err := os.Open(d.Path(EventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fold, run.Tally{Findings: []run.Finding{}}, nil
	}
	if err != nil {
		return nil, run.Tally{}, err
	}
	defer f.Close()
	r := run.NewReader(f)
	if err := r.FoldAll(fold); err != nil {
		return nil, r.Tally(), fmt.Errorf("read %s: %w", d.Path(EventsFile), err)
	}
	return fold, r.Tally(), nil
}
