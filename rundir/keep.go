package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// keptDir holds files of an operator that were in the way of the run's own.
const keptDir = orchestrator + "/kept"

// KeepFile moves a file that the run has not made out of its way, and gives its new name, relative to the directory: name in a folder for such files, with a
// number where that is taken. On return it is there on disk.
func (d Dir) KeepFile(file, name string) (string, error) {
	for n := 1; ; n++ {
		to := path.Join(keptDir, filepath.ToSlash(name))
		if n > 1 {
			to = fmt.Sprintf("%s~%d", to, n)
		}
		_, err := os.Lstat(d.Path(to))
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := d.Disk.Mkdir(filepath.Dir(d.Path(to)), dirPerm); err != nil {
			return "", err
		}
		return to, d.Disk.Rename(file, d.Path(to))
	}
}
