package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/internal/testenv"
)

// programs is the folder with the built starter and worker; project is the checkout.
var programs, project string

func TestMain(m *testing.M) {
	flag.Parse()
	if *noCache {
		worker.SetStickyWorkflowCacheSize(0) // of workers in this process
	}
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withPrograms finds or builds the programs for all tests.
func withPrograms(tests func() int) (int, error) {
	if err := testenv.UseMemory(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "passbook-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if project, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	if programs, err = testenv.Programs(project, dir, "./starter", "./worker", "./internal/supervisor/passbook-call",
		"./test/browser", "./test/e2e/victim", "./test/e2e/agent"); err != nil {
		return 1, err
	}
	defer testenv.HoldPorts()()
	code := tests()
	return code, endShared()
}
