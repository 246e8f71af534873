package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
)

// env is an isolated test environment: a state directory with one server and one worker, a call log and a fault file
// for the scripted agent. Tests in different environments do not affect each other.
type env struct {
	dir     string // holds all of the above
	logSize int    // size of the worker's log when the current test took the environment
}

func (e *env) state() string     { return filepath.Join(e.dir, "state") }
func (e *env) settings() string  { return filepath.Join(e.dir, "settings.yaml") }
func (e *env) callLog() string   { return filepath.Join(e.dir, "calls.jsonl") }
func (e *env) faults() string    { return filepath.Join(e.dir, "faults.yaml") }
func (e *env) fakeDir() string   { return filepath.Join(e.dir, "claude") }
func (e *env) workerLog() string { return filepath.Join(e.state(), "worker", "worker.log") }

// create writes the files that the programs expect. Nothing is started.
func (e *env) create() error {
	return errors.Join(os.MkdirAll(e.fakeDir(), 0o700), os.WriteFile(e.settings(), []byte(blankPictures()), 0o600),
		e.setFaults("[]\n"))
}

// blankPictures are settings with test/browser: it starts at once and takes blank pictures.
func blankPictures() string { return "browser: " + filepath.Join(base, "bin", "browser") + "\n" }

// vars is the environment of every program that is started here: that of a user inside an agent session, without
// settings of the user's own.
func (e *env) vars() []string {
	var vars []string
	for _, v := range testenv.CleanEnv(os.Environ()) {
		if !strings.HasPrefix(v, "PATH=") {
			vars = append(vars, v)
		}
	}
	return append(vars, "PASSBOOK_STATE_DIR="+e.state(), "PASSBOOK_RUN_ROOT="+filepath.Join(e.dir, "runs"),
		"PASSBOOK_SETTINGS="+e.settings(),
		"PASSBOOK_HEARTBEAT=2s", "PASSBOOK_CALL_LOG="+e.callLog(), "PASSBOOK_FAULTS="+e.faults(),
		"FAKE_CLAUDE_DIR="+e.fakeDir(),
		"SECRET_OF_THE_WORKER=1", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli",
		"PATH="+filepath.Join(base, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// setFaults replaces the faults of the scripted agent, resets its attempt counts and holds calls again.
func (e *env) setFaults(yaml string) error {
	return errors.Join(os.WriteFile(e.faults(), []byte(yaml), 0o600), os.RemoveAll(e.faults()+".attempts"),
		os.RemoveAll(filepath.Join(e.dir, "released")))
}

// held is a fault with which an attempt of a call ends only after release.
func (e *env) held(at string, attempt int) string {
	return fmt.Sprintf("- {at: %s, attempt: %d, do: slow, seconds: 600, until: %s}", at, attempt,
		filepath.Join(e.dir, "released", at))
}

// release lets a held call end.
func (e *env) release(t *testing.T, at string) {
	t.Helper()
	file := filepath.Join(e.dir, "released", at)
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)))
}

// command prepares the starter, to be run in the checkout.
func (e *env) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(base, "bin", "starter"), args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = project, e.vars(), 5*time.Second
	return cmd
}

// run runs the starter and returns its output and exit code.
func (e *env) run(args ...string) (out string, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	raw, err := e.command(ctx, args...).CombinedOutput()
	if ctx.Err() != nil {
		return string(raw), 0, fmt.Errorf("starter %s: not finished after %s:\n%s", strings.Join(args, " "), runLimit,
			raw)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(raw), exit.ExitCode(), nil
	}
	return string(raw), 0, err
}

// succeed runs the starter and returns an error unless its exit code is 0.
func (e *env) succeed(args ...string) (string, error) {
	out, code, err := e.run(args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("starter %s: exit code %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out, err
}

// try is run for tests.
func (e *env) try(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	output, code, err := e.run(args...)
	require.NoError(t, err)
	return output, code
}

// starter is succeed for tests.
func (e *env) starter(t *testing.T, args ...string) string {
	t.Helper()
	output, err := e.succeed(args...)
	require.NoError(t, err)
	return output
}

// calls returns the lines of the scripted agent's call log. A line that is being written is left out.
func (e *env) calls() ([]object, error) {
	raw, err := os.ReadFile(e.callLog())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var calls []object
	for line := range bytes.Lines(raw[:bytes.LastIndexByte(raw, '\n')+1]) {
		var c object
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("read call log %s: %w", e.callLog(), err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// callsFrom returns the lines of the call log from a line on.
func (e *env) callsFrom(t *testing.T, from int) []object {
	t.Helper()
	all, err := e.calls()
	require.NoError(t, err)
	return all[from:]
}

// processes returns the process ids of server and worker; 0 means none.
func (e *env) processes() (server, worker int, err error) {
	out, err := e.succeed("server", "status", "--json")
	if err != nil {
		return 0, 0, err
	}
	type entry struct {
		Process struct {
			PID int `json:"pid"`
		} `json:"process"`
	}
	var status struct{ Server, Worker entry }
	err = json.Unmarshal([]byte(out), &status)
	return status.Server.Process.PID, status.Worker.Process.PID, err
}

// killWorker kills the worker and waits until it is gone.
func (e *env) killWorker() error {
	_, pid, err := e.processes()
	if err != nil {
		return err
	}
	if pid == 0 {
		return errors.New("kill the worker: none is running")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the worker: %w", err)
	}
	return e.awaitNoWorker()
}

// awaitNoWorker waits until no worker is running.
func (e *env) awaitNoWorker() error {
	return waitFor("the worker is gone", func() bool {
		_, pid, err := e.processes()
		return err == nil && pid == 0
	})
}

// start starts server and worker unless they are running.
func (e *env) start() error {
	_, err := e.succeed("server", "start")
	return err
}

// stop stops server and worker, if they were ever started. It kills them by their process ids if they cannot be
// stopped.
func (e *env) stop() error {
	if _, err := os.Stat(e.state()); err != nil {
		return nil
	}
	server, worker, err := e.processes()
	if err != nil {
		return err
	}
	_, err = e.succeed("server", "stop", "--now")
	if err == nil {
		return nil
	}
	for _, pid := range []int{worker, server} {
		if pid > 0 {
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	return err
}

const (
	// waitLimit limits the wait for an event that normally happens within seconds.
	waitLimit = 3 * time.Minute
	// runLimit limits one command of the starter; the longest follows the whole demo.
	runLimit = 6 * time.Minute
)

// waitFor polls a condition until it holds. A condition that takes long, because it starts a program, is checked less
// often.
func waitFor(what string, holds func() bool) error {
	end := time.Now().Add(waitLimit)
	for {
		begin := time.Now()
		if holds() {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %s: %s", waitLimit, what)
		}
		time.Sleep(min(max(20*time.Millisecond, 4*time.Since(begin)), time.Second))
	}
}

// until is waitFor for tests.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.NoError(t, waitFor(what, holds))
}

// example is a pipeline file of the corpus example in the checkout.
func example(name string) string { return filepath.Join(project, "examples", "corpus", name) }

// copyExample copies the corpus example with some texts of its small pipeline replaced, in pairs.
func copyExample(t *testing.T, name string, replace ...string) string {
	t.Helper()
	folder := filepath.Join(base, name)
	require.NoError(t, os.CopyFS(folder, os.DirFS(example(""))))
	file := filepath.Join(folder, "corpus-tiny.yaml")
	text := string(read(t, file))
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, text, replace[i])
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
