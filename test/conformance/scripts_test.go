package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
)

// scriptsDir holds the scripts. Each shows failures of one kind at a terminal and names the rows that it covers in its
// first lines.
const scriptsDir = "testdata/script"

// TestScripts runs the scripts, up to four at a time, each in a separate environment. A script
// begins in an empty folder with the corpus example and page.yaml; LOGS, STATE and PASSES are those of the run in the
// folder run, STARTER is the program.
func TestScripts(t *testing.T) {
	t.Parallel()
	makeUntouched(t)
	testscript.Run(t, testscript.Params{
		Dir: scriptsDir, Setup: setUp, RequireExplicitExec: true, Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": testenv.Exits, "faults": setFaults, "change": change, "awaits": awaits, "mid": mid, "calls": countCalls,
			"undisturbed": undisturbed,
			"killworker":  killWorkerOf, "noworker": noWorker, "damage": damage, "listing": listing, "disk": disk,
			"fill": fillDisk, "readonly": readonly,
			"prints": prints, "workerlogs": workerLogs, "loseblob": loseBlob, "noagents": noAgents,
		},
	})
}

// envKey is the key of a script's environment among its values.
type envKey struct{}

// setUp takes an environment for a script and fills the script's folder.
func setUp(s *testscript.Env) error {
	e, err := takeEnv()
	s.Defer(func() { giveBack(s.T().(testing.TB), e) })
	if err != nil {
		return err
	}
	s.Values[envKey{}] = e
	for _, v := range e.vars() {
		if strings.HasPrefix(v, "PASSBOOK_") || strings.HasPrefix(v, "PATH=") {
			s.Vars = append(s.Vars, v)
		}
	}
	s.Vars = append(s.Vars, "LOGS=run/_orchestrator/logs", "STATE=run/_orchestrator/state.json",
		"PASSES=run/_orchestrator/passes",
		"STARTER="+filepath.Join(base, "bin", "starter"))
	return layPage(s.WorkDir)
}

// envOf returns the environment of a script.
func envOf(ts *testscript.TestScript) *env { return ts.Value(envKey{}).(*env) }

// condition: with disk, a script can mount a separate disk.
func condition(name string) (bool, error) {
	if name != "disk" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	return os.Getuid() == 0 && runtime.GOOS == "linux", nil
}

// layPage copies the example's files and the scripts' pipeline.
func layPage(folder string) error {
	if err := os.CopyFS(folder, os.DirFS(example(""))); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(project, "test", "conformance", "testdata", "page.yaml"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "page.yaml"), raw, 0o600)
}

// untouched is the page of a run of page.yaml without failures.
var untouched string

// makeUntouched makes that run.
func makeUntouched(t *testing.T) {
	t.Helper()
	e, err := takeEnv()
	defer giveBack(t, e)
	require.NoError(t, err)
	folder := filepath.Join(base, "undisturbed")
	require.NoError(t, layPage(folder))
	e.starter(t, "run", "--config", filepath.Join(folder, "page.yaml"), "--output-dir", filepath.Join(folder, "run"))
	untouched = string(read(t, filepath.Join(folder, "run", "artifact.html")))
}

var (
	scriptHead = regexp.MustCompile(`(?m)\A((?:#.*\n)+)`)
	rowName    = regexp.MustCompile(`\b(?:AT|ER|RX|LC|IV|RS|OP)-\d\d\b`)
)

// scriptRows returns the names of the scripts by the rows that their heads name.
func scriptRows(t *testing.T) map[string][]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(scriptsDir, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	by := map[string][]string{}
	for _, name := range names {
		head := scriptHead.FindString(string(read(t, name)))
		require.NotEmpty(t, head, "%s has no head", name)
		for _, row := range rowName.FindAllString(head, -1) {
			by[row] = append(by[row], strings.TrimSuffix(filepath.Base(name), ".txtar"))
		}
	}
	return by
}
