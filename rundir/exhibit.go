package rundir

import (
	"path"

	"github.com/passbook-run/passbook/run"
)

// Pictures lists the screenshots of a round with names relative to the directory; none if none were taken.
func (d Dir) Pictures(s run.Screenshots) ([]run.Shot, error) {
	if s.Count == 0 {
		return nil, nil
	}
	folder := ShotsDir(s)
	var shots []run.Shot
	if err := d.ReadJSON(path.Join(folder, ShotsFile), &shots); err != nil {
		return nil, err
	}
	for i := range shots {
		shots[i].Name = path.Join(folder, path.Base(shots[i].Name))
	}
	return shots, nil
}
