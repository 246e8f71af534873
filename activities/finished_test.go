package activities

import (
	"context"
	"encoding/json"
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

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// odd is something that an agent leaves, and what its call comes to.
type odd struct {
	play    string
	outcome run.Category
	message string
}

// TestAgentFilesDetermineOutcome executes agents that have no sandbox, and can change the delivery. internal/supervisor
// has what becomes of its records, TestUnusualOutputFiles and TestUnusualArtifacts have more files.
func TestAgentFilesDetermineOutcome(t *testing.T) {
	for name, row := range map[string]odd{
		"a symlink to a file inside": {`sh printf '<!DOCTYPE html>\n<html>new</html>\n' >inside; ln -sf inside page.html; ` +
			"echo Done.", run.CategoryOK, ""},
		"no artifact": {"sh rm page.html; echo Done.", run.CategoryNoArtifact, "no whole page"},
		"another output": {"sh rm ../stdout; echo Forged. > ../stdout; echo Done.", run.CategoryOutputEmpty,
			"stdout is another file"},
		"more output than is read": {"sh head -c 34000000 /dev/zero", run.CategoryOutputTruncated, "printed more than 32MB"},
		"records are named pipes": {`sh cd ..; for f in *.json r*; do rm "$f"; mkfifo "$f"; done; ` +
			"mkfifo stop.json stop.json.new exit.json worker.json.new; " +
			`printf '<!DOCTYPE html>\n<html>new</html>\n'`, run.CategoryOK, ""},
		"the call is a named pipe": {`sh d=$(dirname "$(dirname "$PWD")"); cd /; rm -rf "$d"; mkfifo "$d"; echo Done.`,
			run.CategoryOutputEmpty, "stdout: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			h := plain(t, row.play)
			h.acts.cfg.Sandbox.Mode = sandbox.None
			h.builder()
			h.judgedOnce(row)
		})
	}
}

// judgedOnce executes the pass twice. The second worker reads the stored answer, and comes to the same.
func (h *harness) judgedOnce(want odd) {
	h.t.Helper()
	res := h.result()
	require.Equal(h.t, want.outcome, res.Outcome, res.Message)
	require.Contains(h.t, res.Message, want.message)
	require.Less(h.t, len(res.Message), 1000)
	require.False(h.t, res.Permanent, "the policy of the plan counts its attempts")
	again := h.resultOf(h.worker())
	require.Equal(h.t, res.Message, again.Message)
	require.True(h.t, again.Reused)
	require.Equal(h.t, 1, h.started())
	h.noScratch()
}

// inShell executes a script in a directory.
func inShell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestUnusualArtifacts: internal/disk has more kinds of files.
func TestUnusualArtifacts(t *testing.T) {
	for name, row := range map[string]struct{ script, problem string }{
		"unchanged":                     {"true", ""},
		"a named pipe":                  {"rm page.html; mkfifo page.html", "page.html is a named pipe"},
		"a symlink to a file outside":   {"touch ../outside; ln -sf ../outside page.html", "page.html: path escapes"},
		"a symlink to itself":           {"rm page.html; ln -s page.html page.html", "page.html: "},
		"not UTF-8":                     {`printf '<html>\377</html>' > page.html`, "page.html is not UTF-8"},
		"sparse":                        {"truncate -s 3G page.html", "page.html is larger than 1MB"},
		"missing, with its directory":   {`rm -rf "$PWD"`, ""},
		"its directory is a file":       {`d=$PWD; cd ..; rm -rf "$d"; touch "$d"`, "it is a file"},
		"its directory is a named pipe": {`d=$PWD; cd ..; rm -rf "$d"; mkfifo "$d"`, "it is a named pipe"},
		"its directory is a symlink": {`d=$PWD; cd ..; mkdir else; mv "$d/page.html" else; rmdir "$d"; ln -s else "$d"`,
			"it is a symlink"},
		"the delivery is a file": {`d=$(dirname "$PWD"); cd /; rm -rf "$d"; touch "$d"`, "is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			delivery := filepath.Join(t.TempDir(), "1")
			st := &runningCall{work: filepath.Join(delivery, calls.WorkDir), before: []byte("seed"), l: newLedger(t),
				limits: pipeline.Limits{Output: 1e6}}
			st.file = filepath.Join(st.work, "page.html")
			folders(st.work)
			write(st.file, "seed")
			inShell(t, st.work, row.script)
			var ans calls.Answer
			require.NoError(t, st.storeFile(t.Context(), &ans))
			require.Contains(t, ans.FileError, row.problem)
			require.Equal(t, row.problem == "", ans.FileError == "")
			require.Nil(t, ans.File)
		})
	}
}

func TestUnusualOutputFiles(t *testing.T) {
	for name, row := range map[string]struct{ script, stdout, stderr, problem string }{
		"regular":                  {"echo Done. >stdout; echo Bad. >stderr", "Done.\n", "Bad.\n", ""},
		"stdout is a named pipe":   {"mkfifo stdout", "", "", "stdout is a named pipe"},
		"stdout is a symlink":      {"ln -s /etc/passwd stdout", "", "", "stdout: path escapes"},
		"long":                     {"echo 12345678901 >stdout; cp stdout stderr", "1234567890", "1234567890", "larger than 10"},
		"no stderr":                {"echo Done. >stdout", "Done.\n", "", ""},
		"stderr is a named pipe":   {"echo Done. >stdout; mkfifo stderr", "Done.\n", "", ""},
		"the delivery was removed": {`rm -rf "$PWD"`, "", "", "stdout: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "1")
			folders(dir)
			inShell(t, dir, row.script)
			out := must(calls.ReadOutputs(dir, 10))(t)
			require.Equal(t, row.stdout, string(out.Stdout))
			require.Equal(t, row.stderr, string(out.Stderr))
			require.Contains(t, out.Problem, row.problem)
			require.Equal(t, row.problem == "", out.Problem == "")
		})
	}
}

func TestFinishedChildOfDeadWorkerIsRecovered(t *testing.T) {
	for name, row := range map[string]struct {
		exit    *agent.Exit
		record  string // instead
		outcome run.Category
	}{
		"it exited":                {&agent.Exit{Duration: 1500 * time.Millisecond}, "", run.CategoryOK},
		"it failed":                {&agent.Exit{Code: 3}, "", run.CategoryAgentExit},
		"it ran out of time":       {&agent.Exit{Code: -1, Signal: "killed", TimedOut: true}, "", run.CategoryAgentTimeout},
		"its end was not recorded": {},
		"half a record":            {record: `{"version":1,"co`},
	} {
		t.Run(name, func(t *testing.T) {
			h := plain(t, "sh echo Again.")
			dir := h.leave(gone(t), gone(t), "From beyond.\n")
			if row.exit == nil {
				if row.record != "" {
					write(filepath.Join(dir, supervisor.ExitFile), row.record)
				}
				require.False(t, h.accepted().Reused)
				require.Equal(t, 1, h.started())
				require.Len(t, h.claims(), 2)
				return
			}
			h.exited(dir, *row.exit)
			res := h.result()
			require.Equal(t, row.outcome, res.Outcome, res.Message)
			require.True(t, res.Reused)
			require.Zero(t, h.started())
			require.Equal(t, row.exit.Duration.Milliseconds(), res.DurationMS)
			require.Equal(t, row.exit.Code, res.ExitCode)
			h.noScratch()
		})
	}
}

func TestUnremovableScratchDoesNotFailCall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a folder that its owner cannot remove needs a mount, and that root")
	}
	h := plain(t, "sh echo Again.")
	busy := filepath.Join(h.leave(gone(t), gone(t), ""), calls.WorkDir, "busy")
	folders(busy)
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "passbook-busy", busy)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", busy).Run()) })
	h.accepted()
	require.Equal(t, 1, h.started())
}

func TestResultTextsAreLimited(t *testing.T) {
	h := plain(t, "sh printf 'VERDICT: '; head -c 3000000 /dev/zero | tr '\\0' x")
	h.in.At.Stage, h.in.At.Step, h.in.Call = 1, 2, "run-1/g0.003.1.-.1"
	res := h.result()
	require.Less(t, len(must(json.Marshal(res))(t)), 64<<10)
	require.True(t, strings.HasPrefix(res.Verdict, "xxx"))
	require.Equal(t, 1, h.started())
}

// TestInvalidWorkspaceIsOutcome: internal/store/tree has what else a tree refuses.
func TestInvalidWorkspaceIsOutcome(t *testing.T) {
	for name, row := range map[string]odd{
		"missing": {`sh d=$PWD; cd /; rm -rf "$d"; echo Done.`, run.CategoryFileIO, "the working directory was removed"},
		"a symlink": {`sh d=$PWD; cd ..; rm -rf "$d"; mkdir else; touch else/secret; ln -s else "$d"; echo Done.`,
			run.CategoryFileIO, "it is a symlink"},
		"git would block": {"sh mkfifo pipe; ln -sf ../pipe .git/index; rm .gitignore; mkfifo .gitignore; echo Done.",
			run.CategoryOK, ""},
		"its repository is elsewhere": {"sh rm -rf .git; echo 'gitdir: /nowhere' > .git; echo Done.", run.CategoryOK, ""},
		"names that are not text": {`sh mkfifo pipe; touch "$(printf 'a\377')"; mkdir "$(printf 'b\nb')"; echo Done.`,
			run.CategoryOK, ""},
		"its configuration includes a named pipe": {"sh mkfifo pipe; git config include.path ../pipe; echo Done.",
			run.CategoryOK, ""},
		"a sparse file": {"sh truncate -s 3G sparse.bin; echo Done.", run.CategoryFileIO, "sparse.bin (3GiB)"},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, row.play, "claude-json", "text")
			h.acts.cfg.Sandbox.Mode = sandbox.None // agents in a sandbox cannot replace their directory
			h.judgedOnce(row)
		})
	}
}

// TestFaultAfterExit fails at a sample of the steps that store an answer, in this worker or in the one after it.
func TestFaultAfterExit(t *testing.T) {
	h := plain(t, `sh n=$(date +%s%N); printf '<!DOCTYPE html>\n<html>%s</html>\n' $n > page.html; echo Done $n.`)
	h.builder()
	first := h.in.Call
	for attempt, k := 1, 0; ; attempt, k = attempt+1, k+3 {
		h.in.Call = strings.Replace(first, ".1.-.1", fmt.Sprint(".1.-.", attempt), 1)
		worker, n := h.worker(), -1
		var mu sync.Mutex
		worker.cfg.OnPoint = func(p Point, _ string) {
			mu.Lock()
			defer mu.Unlock()
			if p == PointExited {
				n = 0
			}
		}
		worker.openStore = func(ctx context.Context, url string) (*store.Store, error) {
			return store.OpenOn(ctx, disk.Disk{Hook: func(disk.Step) error {
				mu.Lock()
				defer mu.Unlock()
				if n < 0 {
					return nil
				}
				if n++; n > k {
					return syscall.ENOSPC
				}
				return nil
			}}, url)
		}
		_, err := h.passOf(context.Background(), worker)
		if err == nil {
			require.Greater(t, k, 20, "the hook never fired")
			return
		}
		if k%2 == 0 {
			n = -1
		} else {
			worker = h.worker()
		}
		res := h.acceptedOf(worker)
		require.True(t, res.Modified)
		require.True(t, res.Reused)
		require.Equal(t, attempt, h.started(), "step %d", k)
		h.noScratch()
	}
}

func TestDuplicateAnswerOfOtherHostIsCounted(t *testing.T) {
	h := newHarness(t, "answer")
	dir := h.leave(gone(t), gone(t), envelopeOf("From here."))
	h.exited(dir, agent.Exit{})
	h.answered(calls.Answer{Delivery: 2, Host: "there"}, "From there.")
	for range 2 {
		res := h.result()
		require.Equal(t, "From there.", h.text(res.Reply.Digest))
		require.Len(t, res.Superseded, 1)
		require.InDelta(t, 0.25, res.Superseded[0].Spend.USD, 1e-9)
		h.noScratch()
	}
}
