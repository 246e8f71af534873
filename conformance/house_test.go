package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long anything may take that should happen soon.
const patience = 90 * time.Second

// The shared house: one state directory with one server and one worker, one call log, one file of faults. Rows run one after the other.
func statePath() string  { return filepath.Join(base, "state") }
func callsPath() string  { return filepath.Join(base, "calls.jsonl") }
func faultsPath() string { return filepath.Join(base, "faults.yaml") }
func fakePath() string   { return filepath.Join(base, "claude") }

// environment is that of somebody who works inside an agent session, with no settings of their own.
var environment = sync.OnceValues(func() ([]string, error) {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PASSBOOK_") && !strings.HasPrefix(v, "TEMPORAL_") && !strings.HasPrefix(v, "PATH=") {
			env = append(env, v)
		}
	}
	settings := filepath.Join(base, "settings.yaml")
	env = append(env, "PASSBOOK_STATE_DIR="+statePath(), "PASSBOOK_SETTINGS="+settings, "PASSBOOK_HEARTBEAT=2s",
		"PASSBOOK_CALL_LOG="+callsPath(), "PASSBOOK_FAULTS="+faultsPath(), "FAKE_CLAUDE_DIR="+fakePath(), "SECRET_OF_THE_WORKER=1",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "PATH="+filepath.Join(base, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return env, errors.Join(os.WriteFile(settings, []byte("{}\n"), 0o600), os.WriteFile(faultsPath(), []byte("[]\n"), 0o600), os.MkdirAll(fakePath(), 0o700))
})

func newCommand(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	env, err := environment()
	cmd := exec.CommandContext(ctx, filepath.Join(base, "bin", "starter"), args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 5*time.Second
	return cmd, err
}

// try runs the starter to its end, in the checkout.
func try(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd, err := newCommand(ctx, project, args...)
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "starter %s does not end:\n%s", strings.Join(args, " "), out)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	require.NoError(t, err)
	return string(out), 0
}

// starter runs the starter and wants it to be fine.
func starter(t *testing.T, args ...string) string {
	t.Helper()
	said, code := try(t, args...)
	require.Zero(t, code, "starter %s:\n%s", strings.Join(args, " "), said)
	return said
}

// workerPID is the process of the house's worker, 0 when there is none.
func workerPID(t *testing.T) int {
	t.Helper()
	var status struct {
		Worker *struct {
			Process struct {
				PID int `json:"pid"`
			} `json:"process"`
		} `json:"worker"`
	}
	require.NoError(t, json.Unmarshal([]byte(starter(t, "server", "status", "--json")), &status))
	if status.Worker == nil {
		return 0
	}
	return status.Worker.Process.PID
}

// killWorker ends the house's worker the hard way, and waits until it is gone.
func killWorker(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(workerPID(t), syscall.SIGKILL))
	until(t, "the worker is gone", func() bool { return workerPID(t) == 0 })
}

// closeHouse stops server and worker, if any were started.
func closeHouse() error {
	if _, err := os.Stat(statePath()); err != nil {
		return nil
	}
	cmd, err := newCommand(context.Background(), project, "server", "stop")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("stop what the tests started: %w\n%s", err, out)
	}
	return nil
}

// spoil sets the faults of the built-in agent and forgets the attempts counted so far.
func spoil(t *testing.T, faults string) {
	t.Helper()
	_, err := environment()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(faultsPath(), []byte(faults+"\n"), 0o600))
	require.NoError(t, os.RemoveAll(faultsPath()+".attempts"))
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(t, "waited in vain until "+what)
		}
	}
}

// example is a pipeline file of the corpus example in the checkout.
func example(name string) string { return filepath.Join(project, "examples", "corpus", name) }

// copyExample gives a copy of the corpus example with some words of its small pipeline replaced, in pairs.
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
