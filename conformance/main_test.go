package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// project is the checkout; base is the folder of everything that the tests make.
var project, base string

// TestMain plays claude, or a browser, when it was started under that name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "claude":
		os.Exit(playClaude(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "browser":
		os.Exit(playBrowser(os.Args[0]))
	}
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withPrograms builds the programs once, and ends at last whatever runs in the shared house.
func withPrograms(tests func() int) (code int, err error) {
	if project, err = filepath.Abs(".."); err != nil {
		return 1, err
	}
	if base, err = os.MkdirTemp("", "passbook-conformance-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(base)
	bin := filepath.Join(base, "bin")
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./starter", "./worker")
	build.Dir = project
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	for _, name := range []string{"claude", "browser"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			return 1, err
		}
	}
	defer func() { err = errors.Join(err, closeHouse()) }()
	return tests(), nil
}
