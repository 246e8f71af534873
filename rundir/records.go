package rundir

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/durable"
)

// Records visits every file of the directory that may name blobs of the store: its JSON and JSONL, and what was torn off. The workspace and what
// the run was given are the user's, and archived runs have directories of their own.
func (d Dir) Records(visit func(name string, r io.Reader) error) error {
	skip := map[string]bool{d.Path(archivesDir): true, d.Path(WorkspaceDir): true, d.Path(InputsDir): true}
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
	return ext == ".json" || ext == ".jsonl" || filepath.Base(filepath.Dir(path)) == filepath.Base(tornDir)
}

// Archived gives the directories of the runs that were archived here.
func (d Dir) Archived() ([]Dir, error) {
	entries, err := os.ReadDir(d.Path(archivesDir))
	if os.IsNotExist(err) {
		return nil, nil
	}
	var out []Dir
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "run-") {
			out = append(out, Dir{Root: d.Path(archivesDir + "/" + e.Name()), Disk: d.Disk})
		}
	}
	return out, err
}
