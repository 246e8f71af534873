package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// change is a row of provenance of a workspace, without the time and with the call's name inside its run.
type change struct {
	Turn   int    `json:"turn"`
	Step   string `json:"step"`
	Call   string `json:"call"`
	Path   string `json:"path"`
	Old    string `json:"old_path"`
	Kind   string `json:"kind"`
	Before string `json:"hash_before"`
	After  string `json:"hash_after"`
}

// changesOf reads the rows about files; folders come and go with what is in them.
func changesOf(dir string, now instant) ([]change, error) {
	rows, skipped, err := rundir.Rows[change](rundir.At(dir), rundir.ProvenanceFile)
	if err != nil {
		return nil, err
	}
	if skipped > 0 {
		return nil, fmt.Errorf("%d rows of %s cannot be read", skipped, rundir.ProvenanceFile)
	}
	rows = slices.DeleteFunc(rows, func(c change) bool { return c.Before == "" && c.After == "" })
	for i := range rows {
		rows[i].Call = strings.TrimPrefix(rows[i].Call, now.Meta.RunID+"/")
	}
	return rows, nil
}

// provenanceOf asks of a run what it works on.
func provenanceOf(dir string, want outcome, now instant) error {
	if want.Tree == "" {
		return provenance(dir, now)
	}
	return provenanceOfTree(dir, want, now)
}

// provenanceOfTree wants the rows of an undisturbed run, each with the call that the journal names, and the files that
// the rows end with to be those that are there (9).
func provenanceOfTree(dir string, want outcome, now instant) error {
	rows, err := changesOf(dir, now)
	if err != nil {
		return err
	}
	if !slices.Equal(rows, want.Changes) {
		return fmt.Errorf("the rows are %v, undisturbed they are %v", rows, want.Changes)
	}
	settled := map[string]bool{}
	for _, p := range of[run.PassEnd](now.Events, run.KindPassEnd) {
		settled[strings.TrimPrefix(p.Call, now.Meta.RunID+"/")] = p.Turn()
	}
	hash := map[string]string{}
	for _, c := range rows {
		if !settled[c.Call] {
			return fmt.Errorf("%s was changed by call %s, which is not a turn of the journal", c.Path, c.Call)
		}
		if before, known := hash[c.Path]; known && c.Kind == "changed" && before != c.Before {
			return fmt.Errorf("%s was %s, and call %s records %s", c.Path, before, c.Call, c.Before)
		}
		delete(hash, c.Old)
		if hash[c.Path] = c.After; c.Kind == "removed" {
			delete(hash, c.Path)
		}
	}
	for path, digest := range hash {
		if now.Files[rundir.WorkspaceDir+"/"+path] != digest {
			return fmt.Errorf("%s is not what call after call has made of it", path)
		}
	}
	return nil
}

// lastChanges are the turn that last changed each file and what it did: the round stands in the call's name.
func lastChanges(rows []change) map[string]string {
	out := map[string]string{}
	for _, c := range rows {
		parts := strings.Split(c.Call, ".")
		out[c.Path] = parts[2] + " " + c.Kind
		if c.Old != "" {
			out[c.Old] = parts[2] + " " + c.Kind
		}
	}
	return out
}

// nobodyIn requires that no process works below a folder (8).
func nobodyIn(root string) error {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join("/proc", p.Name(), "cwd"))
		if err == nil && strings.HasPrefix(cwd, root+"/") {
			output, _ := os.ReadFile(filepath.Join("/proc", p.Name(), "cmdline"))
			return fmt.Errorf("process %d survives in %s: %s", pid, cwd,
				strings.ReplaceAll(string(output), "\x00", " "))
		}
	}
	return nil
}
