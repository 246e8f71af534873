package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// smallDisk is a run directory on a disk of its own, which only root can make.
func smallDisk(t *testing.T, h *environment) string {
	t.Helper()
	dir := h.dir("small")
	mountSmall(t, dir, "3m")
	return filepath.Join(dir, "run")
}

// mountSmall mounts a disk of that size.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making a small disk needs root")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "passbook-e2e",
		dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %s", out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
}

// fill uses up what room there is, and gives the file to be removed.
func fill(t *testing.T, folder string, nth int) string {
	t.Helper()
	name := filepath.Join(folder, fmt.Sprintf("filler-%d", nth))
	f, err := os.Create(name)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.True(t, errors.Is(err, syscall.ENOSPC) || errors.Is(err, io.ErrShortWrite), err)
	require.NoError(t, f.Close())
	return name
}

// TestFullDisk fills the disk of the directory in the middle of a call: the run pauses, everybody who can be told is
// told which file system is full and what to do, and after a resume that came too early the next one counts at once.
// With space again the run ends as if nothing had been.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_HEARTBEAT=3s")
	dir := smallDisk(t, h)
	mounted := filepath.Dir(dir)
	h.spoil(slow("3", "4"))
	h.begin(dir)
	h.mid("003")
	at := h.attach("attach", dir)
	until(t, "the terminal is attached", func() bool { return strings.Contains(at.output(), "Attached to run") })
	before := read(t, dir+"/events.jsonl")
	filler := fill(t, mounted, 0)
	until(t, "the workflow says that it rests, and why its directory does not", func() bool {
		s := h.status(dir).EffectiveStatus
		return s.Live == run.Paused && s.Held != nil
	})
	calls := h.count("start", "")
	full := "no space left on device (file system " + mounted + ": 0 B of 3.0 MiB free)"
	status := h.starter("status", dir)
	require.Contains(t, status,
		"running (as recorded; its workflow is paused, and the directory follows when it can be written)")
	require.Regexp(t, `Held up: .*`+regexp.QuoteMeta(full), status)
	require.Regexp(t, `Next: free space on the disk, then .*resume `+dir, status)
	until(t, "the attached terminal says it", func() bool { return strings.Contains(at.output(), full) })
	require.Regexp(t, shownOutput(t, "docs/operating.md", "  ! Paused, a disk is full", "/data/run",
		regexp.QuoteMeta(dir), "/data:", regexp.QuoteMeta(mounted)+":", `20\.0 GiB`, `3\.0 MiB`, "starter resume",
		".*starter resume"), at.output())
	require.Contains(t, h.starter("resume", dir), full, "it came too early")
	whole(t, dir, before)
	require.Equal(t, calls, h.count("start", ""), "something was called on a full disk")

	require.NoError(t, os.Remove(filler))
	require.NotContains(t, h.starter("resume", dir), full)
	require.Positive(t, pausesFor(t, dir, run.DiskFull), "the directory follows at once")
	h.finish(dir)
	require.Zero(t, at.wait(), at.output())
	h.undisturbed(dir, 0)
}

// TestDecisionOnFullDisk: the answer to a decision that the directory cannot record says so, and the run can be
// resumed over HTTP although its directory records that it asks.
func TestDecisionOnFullDisk(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := smallDisk(t, h)
	definition, err := testenv.WriteAsks(h.dir("."))
	require.NoError(t, err)
	h.starter("run", definition, "--output-dir", dir, "--detach")
	until(t, "the run asks", func() bool {
		m, err := rundir.At(dir).Meta()
		return err == nil && m.Status == string(run.AwaitingPhaseHandoff)
	})
	c := h.console(strings.TrimSpace(h.starter("token", "create", "ops", "--can", "operate")))
	path := "/v1/runs/" + metaOf(t, dir).RunID
	filler := fill(t, filepath.Dir(dir), 0)
	asked, open := metaOf(t, dir).State.Asks()
	require.True(t, open)
	decide := func(action string) map[string]any { return map[string]any{"action": action, "question": asked.ID} }
	answer := c.do(path+"/decide", "", map[string]any{"action": "continue"})
	require.Contains(t, answer["message"], "its directory does not record it yet. Paused, a disk is full: ")
	require.Contains(t, answer["message"], "Free space there, then send: POST "+path+"/resume")
	b := h.logIn(t, c)
	require.Contains(t, b.get("/inbox"), "Nothing waits for you", "the answered question is not offered again")
	require.Contains(t, b.get("/runs/"+metaOf(t, dir).RunID), "The answer waits to be recorded in the run directory")
	status, answer, err := c.post(path+"/decide", "", decide("halt"))
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, status, answer)
	require.Contains(t, answer["detail"], "was answered with continue at ")
	require.Contains(t, c.do(path+"/decide", "", decide("continue"))["message"],
		"The run has accepted this answer, and its directory does not record it yet")

	require.NoError(t, os.Remove(filler))
	var shown struct {
		Available []run.Operation `json:"available_actions"`
	}
	require.NoError(t, json.Unmarshal([]byte(h.starter("status", dir, "--json")), &shown))
	require.Contains(t, shown.Available, run.Resume)
	c.do(path+"/resume", "", map[string]any{})
	until(t, "the run is done", func() bool { return metaOf(t, dir).Status == string(run.Done) })
	require.Equal(t, 1, strings.Count(string(read(t, dir+"/events.jsonl")), `"kind":"phase_handoff.decided"`))
}

// pausesFor counts the pauses of a reason that are on disk.
func pausesFor(t *testing.T, dir, reason string) (n int) {
	t.Helper()
	for _, p := range of[run.RunPaused](eventsOf(t, dir), run.KindRunPaused) {
		if p.Reason == reason {
			n++
		}
	}
	return n
}

// TestFullStateDirectory: the server cannot write its database then, so no workflow can say anything; the attached
// terminal says it, and with space again the run continues by itself.
func TestFullStateDirectory(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_HEARTBEAT=3s")
	mountSmall(t, h.state(), "64m")
	dir := h.dir("run")
	h.spoil(slow("3", "6"))
	h.begin(dir)
	h.mid("003")
	at := h.attach("attach", dir)
	until(t, "the terminal is attached", func() bool { return strings.Contains(at.output(), "Attached to run") })
	message := regexp.MustCompile("the embedded server cannot write to the state directory " + h.state() +
		` \(file system ` + h.state() + `: .* of 64\.0 MiB free\)`)
	var fillers []string
	until(t, "the attached terminal says it", func() bool {
		// again and again: the server may give back what it had
		fillers = append(fillers, fill(t, h.state(), len(fillers)))
		return message.MatchString(at.output())
	})
	for _, f := range fillers {
		require.NoError(t, os.Remove(f))
	}
	require.Zero(t, at.wait(), at.output())
	complete(t, dir)
}
