package realcli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestDayOfAUser replays a day of a new user with the real claude: a pipeline of `starter init` in a repository,
// mistakes, questions, a kill, a limit, a budget, and the result.
func TestDayOfAUser(t *testing.T) {
	cli := Claude()
	program := installed(t, cli)
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs, err := testenv.Programs(checkout, t.TempDir(), "./starter", "./worker",
		"./internal/supervisor/passbook-call")
	require.NoError(t, err)
	api := modelapi.NewAnthropic()
	t.Cleanup(api.Close)
	made := exec.Command(filepath.Join(programs, "starter"), "server", "build")
	made.Dir = checkout
	built, err := made.CombinedOutput()
	require.NoError(t, err, string(built))
	server := strings.Fields(string(built))
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(s *testscript.Env) error {
			home, bin := filepath.Join(s.WorkDir, "home"), filepath.Join(s.WorkDir, "bin")
			require.NoError(t, os.MkdirAll(bin, 0o755))
			require.NoError(t, os.MkdirAll(home, 0o700))
			require.NoError(t, cli.WriteHome(home, api.URL))
			require.NoError(t, os.Symlink(program[0], filepath.Join(bin, "claude")))
			s.Vars = append(testenv.CleanEnv(os.Environ()), "WORK="+s.WorkDir, "HOME="+home, "XDG_CACHE_HOME="+cache,
				"PATH="+bin+":"+programs+":"+os.Getenv("PATH"), "PASSBOOK_STATE_DIR="+filepath.Join(s.WorkDir, "state"),
				"PASSBOOK_SERVER="+server[len(server)-1], "PASSBOOK_SETTINGS="+filepath.Join(s.WorkDir, "settings.yaml"), "GIT_CONFIG_GLOBAL="+os.DevNull,
				"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost")
			s.Vars = append(s.Vars, cli.Environ(api.URL)...)
			s.Defer(func() { stopServer(t, s, filepath.Join(programs, "starter"), checkout) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": testenv.Exits, "awaits": awaits, "killworker": killWorker,
			"answers": func(ts *testscript.TestScript, _ bool, args []string) { answers(ts, api, args[0]) },
			"change":  change, "merge": merge,
			"silent": func(*testscript.TestScript, bool, []string) { <-api.Silent() },
		},
	})
}

// answers FILE: the model's answers from now on, a JSON list of turns.
func answers(ts *testscript.TestScript, api *modelapi.API, file string) {
	var turns []modelapi.Turn
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &turns))
	api.Script(turns...)
}

// awaits FILE PATTERN: a line of the file matches, soon.
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for late := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		raw, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && pattern.Match(raw) {
			return
		}
		if time.Now().After(late) {
			ts.Fatalf("no line of %s matches %s: %s", args[0], args[1], raw)
		}
	}
}

// change FILE OLD NEW: replaces a text that must occur.
func change(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}

var workerPID = regexp.MustCompile(`(?m)^Worker +pid (\d+)`)

// killworker: kills the background worker with SIGKILL.
func killWorker(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Exec("starter", "server", "status"))
	found := workerPID.FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no worker runs")
	}
	pid, err := strconv.Atoi(found[1])
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
}

// stopServer ends the server and the worker of a script.
func stopServer(t *testing.T, s *testscript.Env, starter, checkout string) {
	cmd := exec.Command(starter, "server", "stop", "--now")
	cmd.Dir, cmd.Env = checkout, s.Vars
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

var mergeCommand = regexp.MustCompile(`git merge (\S+)`)

// merge RUN: takes the result by the command that the end of the run names.
func merge(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("starter", "status", args[0]))
	found := mergeCommand.FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no command takes the result")
	}
	ts.Check(ts.Exec("git", "merge", "-q", "--no-edit", found[1]))
}
