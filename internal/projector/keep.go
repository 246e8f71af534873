package projector

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/layout"
)

// keptDir contains files of an operator that were in the way of the run's files.
const keptDir = layout.Orchestrator + "/kept"

// KeepFile moves a file that the run did not create out of the way, and returns its new name relative to the directory:
// name in keptDir, with a number if that is taken. On return the move is on disk.
func (d Dir) KeepFile(file, name string) (string, error) {
	for n := 1; ; n++ {
		to := path.Join(keptDir, filepath.ToSlash(name))
		if n > 1 {
			to = fmt.Sprintf("%s~%d", to, n)
		}
		_, err := d.Lstat(to)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := d.Inside().Mkdir(filepath.Dir(d.Path(to)), layout.DirPerm); err != nil {
			return "", err
		}
		return to, d.Inside().Rename(file, d.Path(to))
	}
}
