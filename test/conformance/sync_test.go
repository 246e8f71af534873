package conformance

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// testSyncs looks over the worker's shoulder: each time state.json is replaced, the new file was synced before, and the
// folder is after.
func testSyncs(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed; the steps of a write are also shown by durable's own tests")
	}
	spoil(t, "[]")
	starter(t, "server", "start")
	trace, dir := filepath.Join(base, "strace.txt"), filepath.Join(base, "synced")
	cmd := exec.Command(strace, "-f", "-y", "-s", "200", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", "-o",
		trace, "-p", strconv.Itoa(workerPID(t)))
	output, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	if line, _ := bufio.NewReader(output).ReadString('\n'); !strings.Contains(line, "attached") {
		_ = cmd.Wait()
		t.Skip("strace may not look at other processes here: " + line)
	}
	starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", dir)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // it ends with the signal
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	n, wrong := replacements(string(raw), dir)
	require.Empty(t, wrong)
	require.GreaterOrEqual(t, n, 16)
}

var (
	synced  = regexp.MustCompile(`f(?:data)?sync\(\d+<([^>]+)>`)
	renamed = regexp.MustCompile(`rename(?:at2?)?\((?:\w+(?:<([^>]*)>)?, )?"([^"]+)", (?:\w+(?:<([^>]*)>)?, )?"([^"]+)"`)
)

// replacements counts how often state.json was replaced, and says what was wrong with the first that was not done as it
// must be.
func replacements(trace, dir string) (n int, wrong string) {
	folder, pending := filepath.Join(dir, "_orchestrator"), false
	known := map[string]bool{}
	for line := range strings.Lines(trace) {
		if m := synced.FindStringSubmatch(line); m != nil {
			known[m[1]] = true
			pending = pending && m[1] != folder
		}
		m := renamed.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		from, to := below(m[1], m[2]), below(m[3], m[4])
		if to != filepath.Join(folder, "state.json") {
			continue
		}
		switch {
		case pending:
			return n, unsyncedFolder
		case !known[from]:
			return n, from + " was renamed without a sync"
		}
		n, pending = n+1, true
	}
	if pending {
		return n, unsyncedFolder
	}
	return n, ""
}

// below returns the path that a system call means: a name, in an open folder unless it is absolute.
func below(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

const unsyncedFolder = "the folder was not synced after a rename"
