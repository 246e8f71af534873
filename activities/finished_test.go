package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
)

func TestUnstoredAnswerOfAnyKindIsNotRepeated(t *testing.T) {
	h := plain(t, "print, and lose the store")
	for range 3 {
		_, err := h.passOf(context.Background(), h.acts)
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app, "the store is away")
		require.Equal(t, contract.ErrUnstored, app.Type())
		var where contract.Heartbeat
		require.NoError(t, app.Details(&where))
		require.Equal(t, "here", where.Host, "the answer is nowhere else")
	}
	h.storeBack()
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome)
	require.Equal(t, 1, h.started(), "the answer lies in the scratch directory")
	require.Zero(t, res.ExitCode)
	require.Positive(t, res.DurationMS, "its own times count")
	h.noScratch()
}

// odd is something that an agent leaves, and what its call comes to.
type odd struct {
	name, play string
	outcome    run.Category
	message    string
}

// rootReads is the outcome where permissions bind other users only.
func rootReads(outcome run.Category) run.Category {
	if os.Geteuid() == 0 {
		return "ok"
	}
	return outcome
}

const page = `printf '<!DOCTYPE html>\n<html>new</html>\n' `

var oddArtifacts = []odd{
	{
		"a directory", "sh rm page.html; mkdir page.html; touch page.html/a; echo Done.", "output-no-artifact",
		"page.html is a directory",
	},
	{
		"a symlink to a file outside", "sh " + page + "> ../outside; ln -sf ../outside page.html; echo Done.",
		"output-no-artifact", "page.html: path escapes",
	},
	{
		"an absolute symlink", "sh ln -sf /etc/passwd page.html; echo Done.", "output-no-artifact",
		"page.html: path escapes",
	},
	{"a symlink to a file inside", "sh " + page + "> inside; ln -sf inside page.html; echo Done.", "ok", ""},
	{"a symlink to nothing", "sh ln -sf nowhere page.html; echo Done.", "output-no-artifact", "no whole page"},
	{"a symlink to itself", "sh rm page.html; ln -s page.html page.html; echo Done.", "output-no-artifact",
		"page.html: "},
	{"a named pipe", "sh rm page.html; mkfifo page.html; echo Done.", "output-no-artifact",
		"page.html is a named pipe"},
	{"a socket", "leave a socket", "output-no-artifact", "page.html is a socket"},
	{"a device", "sh rm page.html; mknod page.html c 1 5; echo Done.", "output-no-artifact", "page.html is a device"},
	{"unreadable", "sh " + page + "> page.html; chmod 000 page.html; echo Done.", rootReads("output-no-artifact"), ""},
	{
		"not UTF-8", `sh printf '<!DOCTYPE html>\n<html>\377</html>\n' > page.html; echo Done.`, "output-no-artifact",
		"page.html is not UTF-8",
	},
	{
		"too large", "sh " + page + "> page.html; truncate -s 33M page.html; echo Done.", "output-no-artifact",
		"page.html is larger than 32MB",
	},
	{
		"sparse", "sh truncate -s 3G page.html; echo Done.", "output-no-artifact", "page.html is larger than 32MB",
	},
	{
		"of another user", "sh chown 12345 page.html; echo Done.", "output-no-artifact",
		"page.html is a file of another user (uid 12345)",
	},
	{"missing", "sh rm page.html; echo Done.", "output-no-artifact", "no whole page"},
	{"missing, with its directory", `sh rm -rf "$PWD"; echo Done.`, "output-no-artifact", "no whole page"},
	{
		"its directory is a file", `sh d=$PWD; cd ..; rm -rf "$d"; touch "$d"; echo Done.`, "output-no-artifact",
		"not a directory",
	},
	{
		"its directory is a named pipe", `sh d=$PWD; cd ..; rm -rf "$d"; mkfifo "$d"; echo Done.`, "output-no-artifact",
		"not a directory",
	},
	{
		"its directory is a symlink",
		`sh d=$PWD; cd ..; rm -rf "$d"; mkdir else; ` + page + `> else/page.html; ln -s else "$d"; echo Done.`,
		"output-no-artifact", "is a symlink",
	},
}

var oddReplies = []odd{
	{"no output file", "sh rm ../stdout; echo Done.", "output-empty", "stdout: no such file"},
	{"the output is a directory", "sh rm ../stdout; mkdir ../stdout; echo Done.", "output-empty",
		"stdout is a directory"},
	{
		"the output is a named pipe", "sh rm ../stdout; mkfifo ../stdout; echo Done.", "output-empty",
		"stdout is a named pipe",
	},
	{
		"the output is a symlink", "sh rm ../stdout; ln -s /etc/passwd ../stdout; echo Done.", "output-empty",
		"stdout: path escapes",
	},
	{
		"the output is another file", "sh rm ../stdout; echo Forged. > ../stdout; echo Done.", "output-empty",
		"stdout is another file",
	},
	{
		"the records are named pipes",
		"sh cd ..; rm worker.json supervisor.json environ.json call.json room; mkfifo worker.json supervisor.json " +
			"environ.json call.json room stop.json stop.json.new exit.json worker.json.new; echo Done.", "ok", "",
	},
	{"more output than is read", "sh head -c 34000000 /dev/zero", "output-truncated", "printed more than 32MB"},
	{"output that is not UTF-8", `sh printf 'caf\351\n'`, "ok", ""},
	{"no error output", "sh rm ../stderr; echo Done.", "ok", ""},
	{"error output is a named pipe", "sh rm ../stderr; mkfifo ../stderr; echo Done.", "ok", ""},
	{"more error output than is read", "sh head -c 34000000 /dev/zero >&2; echo Done.", "ok", ""},
	{
		"nothing is left", `sh d=$(dirname "$(dirname "$PWD")"); rm -rf "$d"; echo Done.`, "output-empty",
		"stdout: no such file",
	},
	{
		"the delivery is a named pipe", `sh d=$(dirname "$PWD"); cd /; rm -rf "$d"; mkfifo "$d"; echo Done.`,
		"output-empty", "stdout: no such file",
	},
	{
		"the call is a named pipe", `sh d=$(dirname "$(dirname "$PWD")"); cd /; rm -rf "$d"; mkfifo "$d"; echo Done.`,
		"output-empty", "stdout: no such file",
	},
	{"the exit record is in the way", "sh mkdir ../exit.json; touch ../exit.json/a; echo Done.", "ok", ""},
}

func TestAgentFilesDetermineOutcome(t *testing.T) {
	for what, rows := range map[string][]odd{"artifact": oddArtifacts, "reply": oddReplies} {
		for _, row := range rows {
			t.Run(what+"/"+row.name, func(t *testing.T) {
				if regexp.MustCompile("mknod|chown").MatchString(row.play) && os.Geteuid() != 0 {
					t.Skip("making a device and changing an owner need root")
				}
				h := plain(t, row.play)
				h.acts.cfg.Sandbox.Mode = sandbox.None // agents in a sandbox cannot do most of this
				if what == "artifact" {
					h.builder()
				}
				res, err := h.pass(context.Background())
				require.NoError(t, err)
				require.Equal(t, row.outcome, res.Outcome, res.Message)
				require.Contains(t, res.Message, row.message)
				require.False(t, res.Permanent, "the policy of the plan counts its attempts")
				again, err := h.passOf(context.Background(), h.worker())
				require.NoError(t, err)
				require.Equal(t, res.Message, again.Message)
				require.True(t, again.Reused)
				require.Equal(t, 1, h.started())
				h.noScratch()
			})
		}
	}
}

func TestFinishedChildOfDeadWorkerIsRecovered(t *testing.T) {
	for _, row := range []struct {
		name    string
		exit    *agent.Exit
		record  string // instead
		outcome run.Category
		started int
	}{
		{"it exited", &agent.Exit{Duration: 1500 * time.Millisecond}, "", "ok", 0},
		{"it failed", &agent.Exit{Code: 3}, "", "claude-p-exit-nonzero", 0},
		{"it ran out of time", &agent.Exit{Code: -1, Signal: "killed", TimedOut: true}, "", "claude-p-timeout", 0},
		{"nobody recorded its end", nil, "", "ok", 1},
		{"half a record", nil, `{"version":1,"co`, "ok", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := plain(t, "sh echo Again.")
			h.leave(gone(t), gone(t), "From beyond.\n")
			dir := filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)), "1")
			if row.exit != nil {
				h.exited(dir, *row.exit)
			} else if row.record != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, supervisor.ExitFile), []byte(row.record), 0o600))
			}
			res, err := h.pass(context.Background())
			require.NoError(t, err)
			require.Equal(t, row.outcome, res.Outcome, res.Message)
			require.Equal(t, row.started, h.started())
			require.Equal(t, row.started == 0, res.Reused)
			if row.exit != nil && row.started == 0 {
				require.Equal(t, row.exit.Duration.Milliseconds(), res.DurationMS)
				require.Equal(t, row.exit.Code, res.ExitCode)
			}
			h.noScratch()
		})
	}
}

func TestFinishedChildOfLiveWorkerIsTakenOver(t *testing.T) {
	h := plain(t, "sh echo Again.")
	_, other := someone(t)
	h.leave(other, gone(t), "From beyond.\n")
	h.exited(filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)), "1"), agent.Exit{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, err := h.pass(ctx)
	require.NoError(t, err)
	require.True(t, res.Reused)
	require.Zero(t, h.started())
}

func TestExitRecordReplacesObstacle(t *testing.T) {
	h := plain(
		t, "sh mkdir ../exit.json; touch ../exit.json/a; cd \"$ACTIVITIES_TEST_FOLDER/store\"; mv blobs away; touch "+
			"blobs; echo Done.",
	)
	_, err := h.pass(context.Background())
	require.Error(t, err, "the store is away")
	h.storeBack()
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome)
	require.Equal(t, 1, h.started())
	h.noScratch()
}

func TestUnremovableScratchDoesNotFailCall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a folder that its owner cannot remove needs a mount, and that root")
	}
	busy := func(t *testing.T, h *harness, dir string) {
		folders(dir)
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "passbook-busy",
			dir).CombinedOutput(); err != nil {
			t.Skipf("nothing can be mounted here: %s", out)
		}
		t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", dir).Run()) })
	}
	t.Run("answered", func(t *testing.T) {
		h := plain(
			t, "sh touch \"$ACTIVITIES_TEST_FOLDER/at-work\"; until [ -e \"$ACTIVITIES_TEST_FOLDER/go\" ]; do sleep "+
				"0.01; "+
				"done; echo Done.",
		)
		done := make(chan error, 1)
		go func() { _, err := h.pass(context.Background()); done <- err }()
		h.awaitStart(1)
		busy(t, h, filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)), "1", workDir, "busy"))
		h.letGo()
		require.NoError(t, <-done)
	})
	t.Run("lost", func(t *testing.T) {
		h := plain(t, "sh echo Again.")
		h.leave(gone(t), gone(t), "")
		busy(t, h, filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)), "1", workDir, "busy"))
		res, err := h.pass(context.Background())
		require.NoError(t, err)
		require.Equal(t, run.CategoryOK, res.Outcome)
		require.Equal(t, 1, h.started())
	})
}

func TestResultTextsAreLimited(t *testing.T) {
	h := plain(t, "sh printf 'VERDICT: '; head -c 3000000 /dev/zero | tr '\\0' x")
	h.in.At.Stage, h.in.At.Step, h.in.Call = 1, 2, "run-1/g0.003.1.-.1"
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	raw, err := json.Marshal(res)
	require.NoError(t, err)
	require.Less(t, len(raw), 64<<10)
	require.True(t, strings.HasPrefix(res.Verdict, "xxx"))
	require.Equal(t, 1, h.started())
}

var oddWorkspaces = []odd{
	{"missing", `sh d=$PWD; cd /; rm -rf "$d"; echo Done.`, "file-io", "the working directory was removed"},
	{"a named pipe", `sh d=$PWD; cd ..; rm -rf "$d"; mkfifo "$d"; echo Done.`, "file-io", "it is a named pipe"},
	{"a file", `sh d=$PWD; cd ..; rm -rf "$d"; touch "$d"; echo Done.`, "file-io", "it is a file"},
	{
		"a symlink", `sh d=$PWD; cd ..; rm -rf "$d"; mkdir else; touch else/secret; ln -s else "$d"; echo Done.`,
		"file-io", "it is a symlink",
	},
	{"its rules are a named pipe", "sh rm .gitignore; mkfifo .gitignore; echo Done.", "ok", ""},
	{"rules below are a named pipe", "sh mkdir sub; mkfifo sub/.gitignore; echo Done.", "ok", ""},
	{"its rules are a directory", "sh rm .gitignore; mkdir .gitignore; echo Done.", "ok", ""},
	{"its repository is a named pipe", "sh rm -rf .git; mkfifo .git; echo Done.", "ok", ""},
	{"its index is a named pipe", "sh rm -f .git/index; mkfifo .git/index; echo Done.", "ok", ""},
	{"its index leads to a named pipe", "sh mkfifo pipe; ln -sf ../pipe .git/index; echo Done.", "ok", ""},
	{"its repository is elsewhere", "sh rm -rf .git; echo 'gitdir: /nowhere' > .git; echo Done.", "ok", ""},
	{
		"a pipe, a socket's name and names that are not text",
		`sh mkfifo pipe; touch "$(printf 'a\377')"; mkdir "$(printf 'b\nb')"; echo Done.`, "ok", "",
	},
	{"a file of another repository is a named pipe", "sh mkdir -p sub/.git; mkfifo sub/.git/HEAD; echo Done.", "ok", ""},
	{
		"its configuration includes a named pipe",
		"sh mkfifo pipe; git config include.path ../pipe; echo Done.", "ok", "",
	},
	{
		"a sparse file", "sh truncate -s 3G sparse.bin; echo Done.", "file-io",
		"sparse.bin (3GiB)",
	},
	{"a file that cannot be read", "sh echo x > secret; chmod 000 secret; echo Done.", rootReads("file-io"), ""},
}

func TestInvalidWorkspaceIsOutcome(t *testing.T) {
	for _, row := range oddWorkspaces {
		t.Run(row.name, func(t *testing.T) {
			h := onTree(t, row.play, "claude-json", "text")
			h.acts.cfg.Sandbox.Mode = sandbox.None // agents in a sandbox cannot replace their directory
			res, err := h.pass(t.Context())
			require.NoError(t, err)
			require.Equal(t, row.outcome, res.Outcome, res.Message)
			require.Contains(t, res.Message, row.message)
			require.False(t, res.Permanent)
			again, err := h.passOf(t.Context(), h.worker())
			require.NoError(t, err)
			require.True(t, again.Reused)
			require.Equal(t, 1, h.started())
			h.noScratch()
		})
	}
}

func TestFaultAtEveryStepAfterExit(t *testing.T) {
	h := plain(t, `sh n=$(date +%s%N); printf '<!DOCTYPE html>\n<html>%s</html>\n' $n > page.html; echo Done $n.`)
	h.builder()
	first := h.in.Call
	for k := 0; ; k++ {
		h.in.Call = strings.Replace(first, ".1.-.1", fmt.Sprintf(".1.-.%d", k+1), 1)
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
			return store.OpenOn(ctx, durable.Disk{Hook: func(durable.Step) error {
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
		res, err := h.passOf(context.Background(), worker)
		require.NoError(t, err)
		require.Equal(t, run.CategoryOK, res.Outcome, res.Message)
		require.True(t, res.Modified)
		require.True(t, res.Reused)
		require.Equal(t, k+1, h.started(), "step %d", k)
		h.noScratch()
	}
}

func TestDuplicateAnswerOfOtherHostIsCounted(t *testing.T) {
	ctx, h := context.Background(), newHarness(t, "answer")
	h.leave(gone(t), gone(t), envelopeOf("From here."))
	h.exited(filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)), "1"), agent.Exit{})
	_, err := h.ledger().Put(ctx, calls.Answer{
		Version: calls.Version, Call: callID(h.in), Delivery: 2, Host: "there",
		Stdout: h.put(envelopeOf("From there.")),
		Stderr: h.put(""),
	})
	require.NoError(t, err)
	for range 2 {
		res, err := h.pass(ctx)
		require.NoError(t, err)
		reply, err := blobs.Get(ctx, h.s, res.Reply.Digest)
		require.NoError(t, err)
		require.Equal(t, "From there.", string(reply))
		require.Len(t, res.Superseded, 1)
		require.InDelta(t, 0.25, res.Superseded[0].Spend.USD, 1e-9)
		h.noScratch()
	}
}
