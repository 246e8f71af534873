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

// smallDisk returns a run directory on a separate disk, which only root can mount.
func smallDisk(t *testing.T, h *environment) string {
	t.Helper()
	dir := h.dir("small")
	mountSmall(t, dir, "3m")
	return filepath.Join(dir, "run")
}

// mountSmall mounts a memory disk of that size.
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

// fill fills a disk, and returns the file to be removed.
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

// TestFullDisk fills the disk of the directory while a terminal is attached: the terminal shows which file system is
// full and what to do, a resume that comes too early calls nothing, and the next one takes effect at once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_HEARTBEAT=3s")
	dir := smallDisk(t, h)
	mounted := filepath.Dir(dir)
	fault, release := h.held("3")
	h.spoil(fault)
	h.begin(dir)
	h.mid("003")
	at := h.attach("run", "--config", tiny(), "--output-dir", dir)
	until(t, "the terminal is attached", func() bool { return strings.Contains(at.output(), "Attached to run") })
	filler := fill(t, mounted, 0)
	release()
	full := "no space left on device (file system " + mounted + ": 0 B of 3.0 MiB free)"
	until(t, "the attached terminal shows it", func() bool { return strings.Contains(at.output(), full) })
	require.Regexp(t, shownOutput(t, "docs/recovery.md", "  ! Paused, a disk is full", "/data/run",
		regexp.QuoteMeta(dir), "/data:", regexp.QuoteMeta(mounted)+":", `20\.0 GiB`, `3\.0 MiB`, "starter resume",
		".*starter resume"), at.output())
	calls := h.count("start", "")
	require.Contains(t, h.starter("resume", dir), full, "it came too early")
	require.Equal(t, calls, h.count("start", ""))

	require.NoError(t, os.Remove(filler))
	require.NotContains(t, h.starter("resume", dir), full)
	pauses := of[run.RunPaused](eventsOf(t, dir), run.KindRunPaused)
	require.NotEmpty(t, pauses, "the directory follows at once")
	require.Equal(t, run.DiskFull, pauses[0].Reason)
	h.finish(dir)
	require.Zero(t, at.wait(), at.output())
	h.undisturbed(dir, 0)
}

// TestDecisionOnFullDisk: the answer to a decision reports that the directory cannot record it, and the run can be
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
	require.Contains(t, answer["message"], "Free space there, then run: starter resume "+dir)
	status, answer, err := c.post(path+"/decide", "", decide("halt"))
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, status, answer)
	require.Contains(t, answer["detail"], "was already decided with continue")
	require.Contains(t, c.do(path+"/decide", "", decide("continue"))["message"],
		"already decided.\nThe run has accepted the decision, and its directory does not record it yet")

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

// TestFullStateDirectory: if the server cannot write its database, the attached terminal shows it. With free space the
// run continues without a command.
func TestFullStateDirectory(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_HEARTBEAT=3s")
	mountSmall(t, h.state(), "64m")
	dir := h.dir("run")
	h.spoil(slow("3", "6"))
	h.begin(dir)
	h.mid("003")
	at := h.attach("run", "--config", tiny(), "--output-dir", dir)
	until(t, "the terminal is attached", func() bool { return strings.Contains(at.output(), "Attached to run") })
	message := regexp.MustCompile("the embedded server cannot write to the state directory " + h.state() +
		` \(file system ` + h.state() + `: .* of 64\.0 MiB free\)`)
	var fillers []string
	until(t, "the attached terminal shows it", func() bool {
		// repeatedly: the server may free space
		fillers = append(fillers, fill(t, h.state(), len(fillers)))
		return message.MatchString(at.output())
	})
	for _, f := range fillers {
		require.NoError(t, os.Remove(f))
	}
	require.Zero(t, at.wait(), at.output())
	complete(t, dir)
}
