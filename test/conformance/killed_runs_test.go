package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/supervisor"
)

var (
	killedRun = &shared{make: makeKilled}
	lostRun   = &shared{make: makeLost}
)

// afterKill is a run directory whose worker was killed, before another one starts.
type afterKill struct {
	state           object
	files           map[string]string
	artifact        string
	decisions       []object
	saved, backedUp time.Time // when state.json and the backup were written
}

// inspectKilled returns a run directory whose worker was killed in the call of that name.
func inspectKilled(t *testing.T, r result, at string) afterKill {
	t.Helper()
	f := afterKill{state: r.state(t), files: tree(t, r.dir), artifact: string(r.file(t, "artifact.html")),
		decisions: r.log(t, "decisions.jsonl")}
	f.saved = changed(t, r.path(statePathIn))
	if backup := "_orchestrator/passes/pass-" + at + "/artifact-backup.html"; f.files[backup] != "" {
		f.backedUp = changed(t, r.path(backup))
	}
	return f
}

func changed(t *testing.T, file string) time.Time {
	t.Helper()
	fi, err := os.Stat(file)
	require.NoError(t, err)
	return fi.ModTime()
}

var (
	killedAt     map[string]afterKill // by the call in which the worker was killed
	repeatedPage string               // the artifact while pass 9 is repeated
)

// garbage overwrites files while no worker runs.
const garbage = "<html>overwritten</html>"

// makeKilled is a run whose worker is killed five times, each time in another kind of call. The third time artifact and
// newest backup are overwritten before the next start, the fourth time state.json.
func makeKilled(t *testing.T) result {
	starter(t, "server", "start")
	setRowsFaults(t, strings.Join([]string{
		"- {at: 5, do: kill_engine}",
		"- {at: 6, do: kill_engine}",
		"- {at: 9, do: kill_engine}",
		"- {at: 12, do: kill_engine, when: after}",
		"- {at: weaver-2, do: kill_engine}",
		rowsEnv.held("9", 2),
	}, "\n"))
	r := result{dir: filepath.Join(base, "killed")}
	from := len(calls(t, 0))
	killedAt = map[string]afterKill{}
	runTiny(t, r.dir, "--detach")
	for _, at := range []string{"005", "006", "009", "012", "weaver-2"} {
		until(t, "call "+at+" kills the worker", func() bool {
			return started(calls(t, from), at) == 1 && workerPID(t) == 0
		})
		killedAt[at] = inspectKilled(t, r, at)
		switch at {
		case "009":
			for _, name := range []string{"artifact.html", passDir(9) + "artifact-backup.html"} {
				require.NoError(t, os.WriteFile(r.path(name), []byte(garbage), 0o600))
			}
		case "012":
			require.NoError(t, os.WriteFile(r.path(statePathIn), []byte("x\n"), 0o600))
		}
		starter(t, "server", "start")
		if at == "009" {
			until(t, "pass 9 is repeated", func() bool { return started(calls(t, from), at) == 2 })
			repeatedPage = string(r.file(t, "artifact.html"))
			rowsEnv.release(t, "9")
		}
	}
	r.output = runTiny(t, r.dir)
	r.calls = calls(t, from)
	return r
}

// started returns how often a call was started, and answered how often it was answered.
func started(all []object, at string) int { return len(where(where(all, "event", "start"), "at", at)) }
func answered(all []object, at string) int {
	return len(where(where(all, "event", "answered"), "at", at))
}

// lost is what was seen of the run of which only the directory was left.
var lost struct {
	before, during object // state.json at the loss, and when the call was repeated
	refused        string // the output of run
	wreck          stopped
	wreckBefore    map[string]string
	wreckAfter     map[string]string
	asked          int // calls of the wreck
}

// TestLostRun makes a run in its own environment beside the rows that check it.
func TestLostRun(t *testing.T) {
	t.Parallel()
	lostRun.get(t)
}

// makeLost removes Temporal's database, the store and everything else that is not in the run directory, in the middle
// of pass 6. A copy of the directory is damaged as well, so that nothing is left of that run.
func makeLost(t *testing.T) result {
	e := lostEnv
	defer func() { require.NoError(t, e.stop()) }()
	require.NoError(t, e.setFaults("- {at: 6, do: slow, seconds: 600}\n"+e.held("6", 2)))
	r, config := result{dir: filepath.Join(base, "lost")}, example("corpus-tiny.yaml")
	e.starter(t, "run", "--config", config, "--output-dir", r.dir, "--detach")
	begun(t, r, 6)
	until(t, "call 6 runs", func() bool { return started(e.callsFrom(t, 0), "006") == 1 })
	lost.before = r.state(t)
	loseEverything(t, e)

	wreck := result{dir: filepath.Join(base, "wreck")}
	require.NoError(t, os.CopyFS(wreck.dir, os.DirFS(r.dir)))
	for _, name := range []string{statePathIn, "events.jsonl", "meta.json"} {
		require.NoError(t, os.WriteFile(wreck.path(name), []byte("x\n"), 0o600))
	}
	before := len(e.callsFrom(t, 0))
	lost.wreckBefore = tree(t, wreck.dir)
	lost.wreck.output, lost.wreck.code = e.try(t, "resume", wreck.dir, "--trust", "--force", "--reason",
		"the old server is gone for good")
	lost.wreck.status, _ = e.try(t, "status", wreck.dir)
	lost.wreckAfter, lost.asked = tree(t, wreck.dir), len(e.callsFrom(t, before))

	code := 0
	_, code = e.try(t, "run", "--config", config, "--output-dir", r.dir)
	require.Equal(t, 2, code, "its owner is unknown: its record is lost, too")
	lost.refused, code = e.try(t, "run", "--trust", "--config", config, "--output-dir", r.dir)
	require.Equal(t, 5, code, lost.refused)
	r.output = e.starter(t, "resume", r.dir, "--trust", "--force", "--reason", "the old server is gone for good")
	until(t, "call 6 is repeated", func() bool { return started(e.callsFrom(t, 0), "006") == 2 })
	lost.during = r.state(t)
	e.release(t, "6")
	r.output += e.starter(t, "run", "--config", config, "--output-dir", r.dir)
	r.calls = e.callsFrom(t, 0)
	return r
}

// loseEverything kills server, worker and the supervisors of calls, and removes their state directory.
func loseEverything(t *testing.T, e *env) {
	t.Helper()
	server, worker, err := e.processes()
	require.NoError(t, err)
	calls, err := supervisor.Running(filepath.Join(e.state(), "scratch"))
	require.NoError(t, err)
	require.Len(t, calls, 1)
	for _, pid := range []int{worker, server, calls[0].Process.PID} {
		require.Positive(t, pid)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		until(t, "the process has ended", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
	require.NoError(t, os.RemoveAll(e.state()))
}
