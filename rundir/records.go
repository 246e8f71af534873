package rundir

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
)

// Records visits every JSON and JSONL file of the directory that can name blobs of the store, and torn lines. It skips
// the workspace, the inputs and archived runs.
func (d Dir) Records(visit func(name string, r io.Reader) error) error {
	skip := map[string]bool{ArchivesDir: true, WorkspaceDir: true, InputsDir: true}
	err := d.Walk(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case skip[name]:
			return fs.SkipDir
		case !e.Type().IsRegular() || !records(name):
			return nil
		}
		f, err := d.OpenFile(name)
		if err != nil {
			return err
		}
		defer disk.Close(f)
		return visit(d.Path(name), f)
	})
	if err != nil {
		return fmt.Errorf("read the records in %s: %w", d.Root, err)
	}
	return nil
}

func records(name string) bool {
	ext := path.Ext(name)
	return ext == ".json" || ext == ".jsonl" || path.Base(path.Dir(name)) == path.Base(TornDir)
}

// Archived returns the directories of the runs that are archived in this one.
func (d Dir) Archived() ([]Dir, error) {
	entries, err := d.ReadDir(ArchivesDir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var out []Dir
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "run-") {
			one := At(d.Path(ArchivesDir + "/" + e.Name()))
			one.Trust = d.Trust
			out = append(out, one)
		}
	}
	return out, err
}
