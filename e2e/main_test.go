package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programs is the folder with the built starter and worker; project is the checkout.
var programs, project string

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withPrograms builds the programs once for all tests.
func withPrograms(tests func() int) (int, error) {
	dir, err := os.MkdirTemp("", "passbook-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if project, err = filepath.Abs(".."); err != nil {
		return 1, err
	}
	programs = dir
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), "./starter", "./worker", "./e2e/victim", "./e2e/agent")
	build.Dir = project
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return tests(), nil
}
