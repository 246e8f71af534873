package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/durable"
)

// ExitFile is the exit record of a delivery, in its scratch directory: the child and everything it started are gone, and its outputs are complete. The
// record, not the form of a reply, says that a call is finished.
const ExitFile = "exit.json"

const exitVersion = 1

// exitRecord is {"version":1,"delivery":"<dir>","code":0,"started":"…","duration":1200000000} with what else [Exit] has. The duration is in nanoseconds.
type exitRecord struct {
	Version  int    `json:"version"`
	Delivery string `json:"delivery"`
	Exit
	Spawn json.RawMessage `json:"spawn,omitempty"` // why the agent never started: then there is nothing to read
}

// WriteExit records how the child of a delivery ended. On return its outputs and the record are on disk; after an error there is no record, or an
// earlier one.
func WriteExit(dir string, e Exit, outputs ...string) error {
	raw, err := json.Marshal(exitRecord{Version: exitVersion, Delivery: dir, Exit: e})
	if err != nil {
		return err
	}
	disk := durable.Disk{}
	for _, name := range outputs {
		path := filepath.Join(dir, name)
		if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
			continue // the agent removed or replaced it: whoever reads it judges that
		}
		if err := disk.Settle(path); err != nil {
			return err
		}
	}
	return disk.WriteAll([]durable.File{{Path: filepath.Join(dir, ExitFile), Data: append(raw, '\n'), Perm: 0o600, DirPerm: 0o700}})
}

// ReadExit gives the exit record of a delivery; false: there is none, and the child may still run. A record of an unknown version is an error.
func ReadExit(dir string) (e Exit, ok bool, err error) {
	path := filepath.Join(dir, ExitFile)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return e, false, err
	}
	var r exitRecord
	if json.Unmarshal(raw, &r) != nil {
		return e, false, nil // the agent wrote it, and died with its supervisor
	}
	if r.Version != exitVersion {
		return e, false, fmt.Errorf("read exit record %s: version %d is unknown; another release of Passbook wrote it", path, r.Version)
	}
	return r.Exit, r.Spawn == nil, nil
}
