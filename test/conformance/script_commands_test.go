package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// faults [FILE]: the faults from now on, none without a file; attempts are counted from 1. $WORK is the folder of the
// script.
func setFaults(ts *testscript.TestScript, _ bool, args []string) {
	raw := "[]\n"
	if len(args) > 0 {
		raw = strings.ReplaceAll(ts.ReadFile(args[0]), "$WORK", ts.Getenv("WORK"))
	}
	ts.Check(envOf(ts).setFaults(raw))
}

// change FILE OLD NEW: replaces a text that must occur; \n in the new one begins a line.
func change(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1],
		strings.ReplaceAll(args[2], `\n`, "\n"), 1)), 0o600))
}

// damage FILE TEXT: replaces the content of the file.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[1]+"\n"), 0o600))
}

// awaits FILE PATTERN: a line of the file matches, soon.
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	soon(ts, "a line of "+args[0]+" matches "+args[1], func() bool {
		raw, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && pattern.Match(raw)
	})
}

// mid CALL: the call of that name (002, weaver-1) begins, soon.
func mid(ts *testscript.TestScript, _ bool, args []string) {
	soon(ts, "call "+args[0]+" has begun", func() bool { return started(callsOf(ts), args[0]) > 0 })
}

// calls CALL N: the call was made N times since the script began.
func countCalls(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	if got := started(callsOf(ts), args[0]); got != want {
		ts.Fatalf("call %s was made %d times, not %d", args[0], got, want)
	}
}

func callsOf(ts *testscript.TestScript) []object {
	calls, err := envOf(ts).calls()
	ts.Check(err)
	return calls
}

// noagents: no agent runs, nor a process that it has started: each agent leads its own process group.
func noAgents(ts *testscript.TestScript, _ bool, _ []string) {
	for _, c := range callsOf(ts) {
		pid, ok := c["pid"].(float64)
		if !ok || pid <= 1 {
			ts.Fatalf("the call log has no process id: %v", c)
		}
		if err := syscall.Kill(-int(pid), 0); !errors.Is(err, syscall.ESRCH) {
			ts.Fatalf("agent %v of call %v, or a child of it, is still running (%v)", pid, c["at"], err)
		}
	}
}

// soon is waitFor for scripts.
func soon(ts *testscript.TestScript, what string, holds func() bool) {
	ts.Check(waitFor(what, holds))
}

// killworker: kills the worker.
func killWorkerOf(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(envOf(ts).killWorker()) }

// noworker: no worker runs, soon.
func noWorker(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(envOf(ts).awaitNoWorker()) }

// disk DIR SIZE: mounts a disk of that size until the script ends.
func disk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(mount("-t", "tmpfs", "-o", "size="+args[1], "passbook-script", dir))
	ts.Defer(func() { ts.Check(exec.Command("umount", "-l", dir).Run()) })
}

// fill FILE: the file takes all space of its disk.
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

// readonly DIR on|off: remounts the disk.
func readonly(ts *testscript.TestScript, _ bool, args []string) {
	mode := map[string]string{"on": "ro", "off": "rw"}[args[1]]
	// a file may be open for a moment
	soon(ts, args[0]+" is "+mode, func() bool { return mount("-o", "remount,"+mode, ts.MkAbs(args[0])) == nil })
}

// prints PATTERN ARG...: the output of the starter matches, soon.
func prints(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	soon(ts, "starter prints "+args[0], func() bool {
		_ = ts.Exec("starter", args[1:]...) // with any code
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// workerlogs PATTERN: the worker has logged a matching line since the script began, soon.
func workerLogs(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	soon(ts, "the worker logs "+args[0], func() bool {
		raw, err := os.ReadFile(envOf(ts).workerLog())
		return err == nil && pattern.Match(raw[min(envOf(ts).logSize, len(raw)):])
	})
}

// loseblob DIR KEY: removes the blob under that key of the run's first event from the store.
func loseBlob(ts *testscript.TestScript, _ bool, args []string) {
	first, _, _ := strings.Cut(ts.ReadFile(filepath.Join(args[0], "events.jsonl")), "\n")
	_, digest, ok := strings.Cut(first, `"`+args[1]+`":"`)
	if !ok || len(digest) < 64 {
		ts.Fatalf("the first event names no %s", args[1])
	}
	removed := 0
	ts.Check(filepath.WalkDir(filepath.Join(envOf(ts).state(), "store"),
		func(path string, e fs.DirEntry, err error) error {
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

// listing DIR FILE: writes the names and digests of all files of a folder to a file.
func listing(ts *testscript.TestScript, _ bool, args []string) {
	files, err := digests(ts.MkAbs(args[0]))
	ts.Check(err)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "%s %s\n", name, files[name])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text.String()), 0o600))
}

// undisturbed DIR: the run is complete, with the page of a run without faults.
func undisturbed(ts *testscript.TestScript, _ bool, args []string) {
	if ts.ReadFile(filepath.Join(args[0], "artifact.html")) != untouched {
		ts.Fatalf("%s/artifact.html is not the page of an undisturbed run", args[0])
	}
	if !strings.Contains(ts.ReadFile(filepath.Join(args[0], "_orchestrator", "state.json")),
		`"currentPhase": "complete"`) {
		ts.Fatalf("the run in %s is not complete", args[0])
	}
}

// mount calls the system's mount.
func mount(args ...string) error { return exec.Command("mount", args...).Run() }
