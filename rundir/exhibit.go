package rundir

import (
	"path"

	"github.com/passbook-run/passbook/run"
)

// Backup is where the artifact as it was before a pass lies, relative to the directory. artifact is the artifact's own file.
func Backup(p run.Pass, artifact string) string { return backupFile(p, artifact) }

// Pictures lists the pictures of one round, named relative to the directory; none if they were not taken.
func (d Dir) Pictures(s run.Screenshots) ([]run.Shot, error) {
	if s.Count == 0 {
		return nil, nil
	}
	folder := shotsDir(s)
	var shots []run.Shot
	if err := d.readJSON(path.Join(folder, shotsFile), &shots); err != nil {
		return nil, err
	}
	for i := range shots {
		shots[i].Name = path.Join(folder, path.Base(shots[i].Name))
	}
	return shots, nil
}
