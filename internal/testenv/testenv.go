// Package testenv prepares programs, temporary files in memory and a clean environment for tests of whole
// programs. Only tests import it.
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

// ProgramsVar names a folder of programs built by scripts/test. Unset: each suite builds what it needs.
const ProgramsVar = "PASSBOOK_TEST_PROGRAMS"

// Programs returns a folder with the programs of the packages (such as "./starter"): the folder in [ProgramsVar],
// or dir, into which it builds them. A program missing from the former is an error.
func Programs(checkout, dir string, packages ...string) (string, error) {
	if built := os.Getenv(ProgramsVar); built != "" {
		return built, checkPrograms(built, packages)
	}
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-trimpath", "-o",
		dir + string(filepath.Separator)}, packages...)...)
	cmd.Dir = checkout
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", strings.Join(packages, " "), err, out)
	}
	return dir, nil
}

func checkPrograms(dir string, packages []string) error {
	var problems []error
	for _, p := range packages {
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(p))); err != nil {
			problems = append(problems, fmt.Errorf("%s names a folder without the program of %s: %w", ProgramsVar, p,
				err))
		}
	}
	return errors.Join(problems...)
}

// SandboxVar is the mode of the sandboxes of calls in tests of whole programs. Unset: none, because scripts of these
// tests write outside of their calls and report process ids. Tests of sandboxes set it.
const SandboxVar = "PASSBOOK_SANDBOX_MODE"

// CleanEnv removes the variables that configure Passbook or Temporal. It disables the keeper, because tests kill and
// restart workers and servers, and keep_awake. A test of the keeper sets the variable again, as one of sandboxes does
// with [SandboxVar].
func CleanEnv(env []string) []string {
	out := []string{"PASSBOOK_KEEPER=false", "PASSBOOK_KEEP_AWAKE=false", SandboxVar + "=none"}
	for _, v := range env {
		if !strings.HasPrefix(v, "PASSBOOK_") && !strings.HasPrefix(v, "TEMPORAL_") {
			out = append(out, v)
		}
	}
	return out
}

// Isolate sets the environment of [CleanEnv] in this process, and settings whose folders are below root. It returns the
// state directory.
func Isolate(root string) (stateDir string, err error) {
	stateDir = filepath.Join(root, "state")
	settings := filepath.Join(root, "settings.yaml")
	if err := os.WriteFile(settings, []byte("{}\n"), 0o600); err != nil {
		return "", err
	}
	env := append(CleanEnv(os.Environ()), "PASSBOOK_SETTINGS="+settings, "PASSBOOK_STATE_DIR="+stateDir,
		"PASSBOOK_RUN_ROOT="+filepath.Join(root, "runs"), "PASSBOOK_HEARTBEAT=3s", "XDG_CONFIG_HOME="+root,
		"TMPDIR="+root)
	os.Clearenv()
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if err := os.Setenv(name, value); err != nil {
			return "", err
		}
	}
	return stateDir, nil
}

// EndAtOnce lets programs with the race detector that this one starts end without the second that it waits for reports.
func EndAtOnce() error {
	return os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
}

// HoldPorts occupies the default ports of the server and its Web UI until release is called, so that concurrent
// test servers choose free ports and do not collide.
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
