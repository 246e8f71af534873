package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/passbook-run/passbook/internal/testenv"
)

// project is the checkout; base is the folder of everything that the tests make.
var project, base string

// parallelTests is enough for every test that may run in parallel. The tests mostly wait for servers, agents and
// timers, so the number of processors, which is the default, would be too low.
const parallelTests = lanes + 12

// TestMain plays claude when it was started under that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(playClaude(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	code, err := runTests(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runTests provides the programs and the environments, and stops whatever runs in the environments after the tests.
func runTests(tests func() int) (code int, err error) {
	if err := errors.Join(allowParallel(), testenv.UseMemory()); err != nil {
		return 1, err
	}
	if project, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	if base, err = os.MkdirTemp("", "passbook-conformance-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(base)
	if err := makeBin(filepath.Join(base, "bin")); err != nil {
		return 1, err
	}
	all, err := createEnvs()
	if err != nil {
		return 1, err
	}
	defer testenv.HoldPorts()()
	defer func() {
		for _, e := range all {
			err = errors.Join(err, e.stop())
		}
	}()
	return tests(), nil
}

// allowParallel raises the limit of parallel tests, unless the command line sets it.
func allowParallel() error {
	const name = "test.parallel"
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	if set {
		return nil
	}
	return flag.Set(name, strconv.Itoa(parallelTests))
}

// makeBin fills the folder that is first in the PATH of the environments: starter, worker, the browser without
// pictures, and this program as claude.
func makeBin(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	programs, err := testenv.Programs(project, filepath.Join(base, "programs"), "./starter", "./worker",
		"./internal/supervisor/passbook-call", "./test/browser")
	if err != nil {
		return err
	}
	for name, target := range map[string]string{
		"starter": filepath.Join(programs, "starter"), "worker": filepath.Join(programs, "worker"), "claude": self,
		"browser": filepath.Join(programs, "browser"),
	} {
		err = errors.Join(err, os.Symlink(target, filepath.Join(bin, name)))
	}
	return err
}
