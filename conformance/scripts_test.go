package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// scriptsDir holds the scripts: each is some failures of one kind, as somebody meets them at a terminal. The rows that it shows stand in its head.
const scriptsDir = "testdata/script"

// TestScripts runs every script in the shared house, one after the other: they share its file of faults. Each begins in a folder of its own with the
// corpus example and page.yaml in it; LOGS, STATE and PASSES are those of the run in the folder run, STARTER is the program.
func TestScripts(t *testing.T) {
	starter(t, "server", "start")
	makeUntouched(t)
	testscript.RunT(inTurn{t}, testscript.Params{
		Dir: scriptsDir, Setup: setUp, RequireExplicitExec: true, Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "faults": setFaults, "change": change, "awaits": awaits, "mid": mid, "calls": countCalls, "undisturbed": undisturbed,
			"killworker": killWorkerOf, "damage": damage, "listing": listing, "disk": disk, "fill": fillDisk, "readonly": readonly, "says": says,
			"workersays": workerSays, "loseblob": loseBlob, "noagents": noAgents,
		},
	})
}

// inTurn runs scripts one after the other.
type inTurn struct{ *testing.T }

func (inTurn) Parallel()     {}
func (inTurn) Verbose() bool { return testing.Verbose() }
func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

// setUp makes the folder of a script.
func setUp(e *testscript.Env) error {
	env, err := environment()
	if err != nil {
		return err
	}
	for _, v := range env {
		if strings.HasPrefix(v, "PASSBOOK_") || strings.HasPrefix(v, "PATH=") {
			e.Vars = append(e.Vars, v)
		}
	}
	if err := serverRuns(); err != nil {
		return err
	}
	e.Vars = append(e.Vars, "LOGS=run/_orchestrator/logs", "STATE=run/_orchestrator/state.json", "PASSES=run/_orchestrator/passes",
		"STARTER="+filepath.Join(base, "bin", "starter"))
	if err := layFaults([]byte("[]\n")); err != nil {
		return err
	}
	logged, err := os.ReadFile(callsPath())
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	e.Values[callsFrom{}] = len(logged)
	said, err := os.ReadFile(workerLogPath())
	if err != nil {
		return err
	}
	e.Values[saidFrom{}] = len(said)
	return layPage(e.WorkDir)
}

// serverRuns has the house's server and worker run: scripts begin in folders from which the server could not be built.
func serverRuns() error {
	cmd, err := newCommand(context.Background(), project, "server", "start")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("start the server: %w\n%s", err, out)
	}
	return nil
}

// callsFrom is the key of where the call log ended when a script began.
type callsFrom struct{}

// saidFrom is the key of where the worker's log ended when a script began.
type saidFrom struct{}

func workerLogPath() string { return filepath.Join(statePath(), "worker", "worker.log") }

// condition: disk says that a script can have a disk of its own.
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
	raw, err := os.ReadFile(filepath.Join(project, "conformance", "testdata", "page.yaml"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "page.yaml"), raw, 0o600)
}

func layFaults(raw []byte) error {
	if err := os.WriteFile(faultsPath(), raw, 0o600); err != nil {
		return err
	}
	return os.RemoveAll(faultsPath() + ".attempts")
}

// exits CODE ARG...: the starter ends with this code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec("starter", args[1:]...); err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("starter: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// faults [FILE]: what goes wrong from now on, counted afresh; without a file nothing does.
func setFaults(ts *testscript.TestScript, _ bool, args []string) {
	raw := "[]\n"
	if len(args) > 0 {
		raw = ts.ReadFile(args[0])
	}
	ts.Check(layFaults([]byte(raw)))
}

// change FILE OLD NEW: the text is there, and is another one now; \n in the new one begins a line.
func change(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], strings.ReplaceAll(args[2], `\n`, "\n"), 1)), 0o600))
}

// damage FILE TEXT: the file holds only this text now.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[1]+"\n"), 0o600))
}

// awaits FILE PATTERN: some line of the file matches, soon.
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	soon(ts, "a line of "+args[0]+" matches "+args[1], func() bool {
		raw, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && pattern.Match(raw)
	})
}

// mid CALL: the call of that name (002, weaver-1) has begun.
func mid(ts *testscript.TestScript, _ bool, args []string) {
	soon(ts, "call "+args[0]+" has begun", func() bool { return begunCalls(ts, args[0]) > 0 })
}

// calls CALL N: it was made so many times since the script began.
func countCalls(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	if got := begunCalls(ts, args[0]); got != want {
		ts.Fatalf("call %s was made %d times, not %d", args[0], got, want)
	}
}

func begunCalls(ts *testscript.TestScript, at string) (n int) {
	for _, c := range callsOf(ts) {
		if c.Event == "start" && c.At == at {
			n++
		}
	}
	return n
}

// made is a line of the call log.
type made struct {
	Event string `json:"event"`
	At    string `json:"at"`
	PID   int    `json:"pid"`
}

// callsOf are the lines of the call log since the script began.
func callsOf(ts *testscript.TestScript) (all []made) {
	raw, err := os.ReadFile(callsPath())
	if os.IsNotExist(err) {
		return nil
	}
	ts.Check(err)
	from, _ := ts.Value(callsFrom{}).(int)
	for line := range strings.Lines(string(raw[from:])) {
		var c made
		if strings.HasSuffix(line, "\n") { // else it is being written
			ts.Check(json.Unmarshal([]byte(line), &c))
			all = append(all, c)
		}
	}
	return all
}

// noagents: nothing is left of any agent, nor of what it has started: each leads a process group of its own.
func noAgents(ts *testscript.TestScript, _ bool, _ []string) {
	for _, c := range callsOf(ts) {
		if err := syscall.Kill(-c.PID, 0); c.PID > 1 && !errors.Is(err, syscall.ESRCH) {
			ts.Fatalf("agent %d of call %s, or a child of it, still lives (%v)", c.PID, c.At, err)
		}
	}
}

func soon(ts *testscript.TestScript, what string, holds func() bool) {
	tick, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			ts.Fatalf("waited in vain until %s", what)
		}
	}
}

// killworker: the worker ends the hard way.
func killWorkerOf(ts *testscript.TestScript, _ bool, _ []string) {
	pid := workerOf(ts)
	if pid == 0 {
		ts.Fatalf("no worker runs")
	}
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	soon(ts, "the worker is gone", func() bool { return workerOf(ts) == 0 })
}

// workerOf is the process of the house's worker, 0 when there is none.
func workerOf(ts *testscript.TestScript) int {
	var status struct {
		Worker *struct {
			Process struct {
				PID int `json:"pid"`
			} `json:"process"`
		} `json:"worker"`
	}
	ts.Check(ts.Exec("starter", "server", "status", "--json"))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
	if status.Worker == nil {
		return 0
	}
	return status.Worker.Process.PID
}

// disk DIR SIZE: the folder is a disk of that size until the script ends.
func disk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(mount("-t", "tmpfs", "-o", "size="+args[1], "passbook-script", dir))
	ts.Defer(func() { ts.Check(exec.Command("umount", "-l", dir).Run()) })
}

// fill FILE: it takes all the room that its disk has left.
func fillDisk(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	for size := 1 << 16; size > 0; size /= 2 {
		for err = nil; err == nil; _, err = f.Write(make([]byte, size)) {
			continue
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		ts.Fatalf("fill %s: %v", args[0], err)
	}
}

// readonly DIR on|off: nothing can be written to the disk, or it can again.
func readonly(ts *testscript.TestScript, _ bool, args []string) {
	mode := map[string]string{"on": "ro", "off": "rw"}[args[1]]
	soon(ts, args[0]+" is "+mode, func() bool { return mount("-o", "remount,"+mode, ts.MkAbs(args[0])) == nil }) // a file may be open for a moment
}

// says PATTERN ARG...: what the starter prints matches, soon.
func says(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	soon(ts, "starter says "+args[0], func() bool {
		_ = ts.Exec("starter", args[1:]...) // its code is another matter
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// workersays PATTERN: the worker has logged that since the script began.
func workerSays(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	soon(ts, "the worker says "+args[0], func() bool {
		raw, err := os.ReadFile(workerLogPath())
		from, _ := ts.Value(saidFrom{}).(int)
		return err == nil && pattern.Match(raw[min(from, len(raw)):])
	})
}

// loseblob DIR KEY: the store loses what the run's first event names under that key.
func loseBlob(ts *testscript.TestScript, _ bool, args []string) {
	first, _, _ := strings.Cut(ts.ReadFile(filepath.Join(args[0], "events.jsonl")), "\n")
	_, digest, ok := strings.Cut(first, `"`+args[1]+`":"`)
	if !ok || len(digest) < 64 {
		ts.Fatalf("the first event names no %s", args[1])
	}
	removed := 0
	ts.Check(filepath.WalkDir(filepath.Join(statePath(), "store"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, digest[48:64]) {
			return err
		}
		removed++
		return os.Remove(path)
	}))
	if removed != 1 {
		ts.Fatalf("%d blobs of the store end like %s", removed, digest[:64])
	}
}

// listing DIR FILE: the names and digests of all files of a folder are written to a file, to be compared.
func listing(ts *testscript.TestScript, _ bool, args []string) {
	var text strings.Builder
	root := ts.MkAbs(args[0])
	ts.Check(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		fmt.Fprintf(&text, "%s %s\n", rel, digest(raw))
		return err
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text.String()), 0o600))
}

// untouched is the page of a run of page.yaml to which nothing happened.
var untouched string

// makeUntouched makes that run.
func makeUntouched(t *testing.T) {
	t.Helper()
	folder := filepath.Join(base, "undisturbed")
	require.NoError(t, layPage(folder))
	spoil(t, "[]")
	starter(t, "run", "--config", filepath.Join(folder, "page.yaml"), "--output-dir", filepath.Join(folder, "run"))
	untouched = string(read(t, filepath.Join(folder, "run", "artifact.html")))
}

// undisturbed DIR: the run there is through, and its page is that of a run to which nothing happened.
func undisturbed(ts *testscript.TestScript, _ bool, args []string) {
	if ts.ReadFile(filepath.Join(args[0], "artifact.html")) != untouched {
		ts.Fatalf("%s/artifact.html is not the page of an undisturbed run", args[0])
	}
	if !strings.Contains(ts.ReadFile(filepath.Join(args[0], "_orchestrator", "state.json")), `"currentPhase": "complete"`) {
		ts.Fatalf("the run in %s is not through", args[0])
	}
}

var (
	scriptHead = regexp.MustCompile(`(?m)\A((?:#.*\n)+)`)
	rowName    = regexp.MustCompile(`\b(?:ER|RX|LC|IV|RS)-\d\d\b`)
)

// scriptRows gives the scripts by the rows that their heads name.
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

// TestEveryFailureHasItsScript: a row about failures is named by exactly one script, or unscripted says why none tells it.
func TestEveryFailureHasItsScript(t *testing.T) {
	by := scriptRows(t)
	for _, group := range []string{"ER", "RX", "LC", "IV", "RS"} {
		for n := 1; n <= groupSizes[group]; n++ {
			row := fmt.Sprintf("%s-%02d", group, n)
			why, without := unscripted[row]
			if without {
				require.Empty(t, by[row], "%s: %s", row, why)
				continue
			}
			require.Len(t, by[row], 1, "scripts of %s", row)
		}
	}
	for row, scripts := range by {
		_, size, _ := strings.Cut(row, "-")
		n, err := strconv.Atoi(size)
		require.NoError(t, err)
		require.LessOrEqual(t, n, groupSizes[row[:2]], "%v name a row that there is not", scripts)
	}
	require.Empty(t, slices.DeleteFunc(slices.Collect(maps.Keys(unscripted)), rowName.MatchString))
}
