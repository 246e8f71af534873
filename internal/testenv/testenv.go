// Package testenv prepares what the tests of whole programs share: programs that are built once, temporary files in memory, and an environment
// without the settings of the user who runs the tests. Only tests import it.
package testenv

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ProgramsVar is the variable that names a folder of programs built by scripts/test. Unset: each suite builds what it needs.
const ProgramsVar = "PASSBOOK_TEST_PROGRAMS"

// Programs returns a folder that holds the programs of the packages (such as "./starter") of the checkout: the folder that [ProgramsVar] names, or
// dir, into which they are built. A program that the named folder lacks is an error.
func Programs(checkout, dir string, packages ...string) (string, error) {
	if built := os.Getenv(ProgramsVar); built != "" {
		return built, holds(built, packages)
	}
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}, packages...)...)
	cmd.Dir = checkout
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", strings.Join(packages, " "), err, out)
	}
	return dir, nil
}

func holds(dir string, packages []string) error {
	var problems []error
	for _, p := range packages {
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(p))); err != nil {
			problems = append(problems, fmt.Errorf("%s names a folder without the program of %s: %w", ProgramsVar, p, err))
		}
	}
	return errors.Join(problems...)
}

// Clean returns the variables of an environment that do not configure Passbook or Temporal, and one that switches the keeper off: tests kill workers
// and servers, and start them again themselves. A test of the keeper sets the variable again.
func Clean(env []string) []string {
	out := []string{"PASSBOOK_KEEPER=false"}
	for _, v := range env {
		if !strings.HasPrefix(v, "PASSBOOK_") && !strings.HasPrefix(v, "TEMPORAL_") {
			out = append(out, v)
		}
	}
	return out
}

// HoldPorts occupies the default ports of the server and its Web UI until release is called. Servers that tests start at the same time would all
// choose these ports, and all but one would fail and start again; now each finds free ports. A port that another process has is left alone.
func HoldPorts() (release func()) {
	var held []net.Listener
	for _, address := range []string{"127.0.0.1:7233", "127.0.0.1:8233"} {
		if l, err := net.Listen("tcp", address); err == nil {
			held = append(held, l)
		}
	}
	return func() {
		for _, l := range held {
			_ = l.Close() // nothing was written to it
		}
	}
}
