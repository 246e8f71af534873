package rundir

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/layout"
)

// Records visits every JSON and JSONL file of the directory that can name blobs of the store, and torn lines. It skips
// the workspace, the inputs and archived runs.
func (d Dir) Records(visit func(name string, r io.Reader) error) error {
	skip := map[string]bool{d.Path(layout.ArchivesDir): true, d.Path(layout.WorkspaceDir): true,
		d.Path(layout.InputsDir): true}
	err := filepath.WalkDir(d.Root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case skip[path]:
			return fs.SkipDir
		case !e.Type().IsRegular() || !records(path):
			return nil
		}
		f, err := durable.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return visit(path, f)
	})
	if err != nil {
		return fmt.Errorf("read the records in %s: %w", d.Root, err)
	}
	return nil
}

func records(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".json" || ext == ".jsonl" || filepath.Base(filepath.Dir(path)) == filepath.Base(layout.TornDir)
}

// Archived returns the directories of the runs that are archived in this one.
func (d Dir) Archived() ([]Dir, error) {
	entries, err := os.ReadDir(d.Path(layout.ArchivesDir))
	if os.IsNotExist(err) {
		return nil, nil
	}
	var out []Dir
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "run-") {
			out = append(out, Dir{Root: d.Path(layout.ArchivesDir + "/" + e.Name())})
		}
	}
	return out, err
}
