package rundir

import (
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/internal/build"
)

// NewerError refuses to write what another release, usually a newer one, has written. Nothing was changed.
type NewerError struct {
	Op      string // such as "write run directory"
	Object  string
	File    string // the file with the version; empty: the object
	Version int
	Known   int    // the version that this program reads
	Program string // the release that wrote it; empty: not recorded
	Else    string // what else to do; empty: nothing
}

func (e *NewerError) Error() string {
	what := "its format"
	if e.File != "" {
		what = e.File
	}
	needed := "the release that wrote it"
	if e.Program != "" {
		needed = "Passbook " + e.Program
	}
	if e.Version > e.Known {
		needed += " or a newer one"
	}
	return fmt.Sprintf("%s %s: %s has version %d, and this program (%s) reads %d; nothing was changed. Use %s%s", e.Op,
		e.Object, what, e.Version, build.Version(), e.Known, needed, e.Else)
}

// VersionOf returns the member "version" of a JSON object, whatever the object has beside it; 0 without one.
func VersionOf(raw []byte) int {
	var v struct {
		Version json.RawMessage `json:"version"`
	}
	var n int
	if json.Unmarshal(raw, &v) != nil || json.Unmarshal(v.Version, &n) != nil {
		return 0
	}
	return n
}
