package host

import (
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/format"
)

// format checks that this program can use the state directory.
func (e *examiner) format() {
	dir, writes := e.Settings.StateDir, format.State()
	m, err := format.ReadState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		m, err = format.Mark{Version: 1, Program: "an earlier build"}, nil
	}
	if err == nil {
		err = writes.Check(dir)
	}
	switch {
	case err != nil:
		e.add(Problem, "disk", "state format", "", "%v", err)
	case m.Version < writes.Version():
		e.ok("disk", "state format", "%d, of %s; the next command that writes upgrades it to %d", m.Version, m.Program,
			writes.Version())
	default:
		e.ok("disk", "state format", "%d", m.Version)
	}
}
