package e2e_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestClaimOfAnotherHost freezes the worker of one host in the middle of a call, long past its heartbeat. The claim of
// that host holds: a worker of another host makes no second call of it, and status names the host that the run waits
// for. When the first worker continues, its call is joined.
func TestClaimOfAnotherHost(t *testing.T) {
	t.Parallel()
	url := fakes3.Start(t)
	h := newEnv(t, "PASSBOOK_STORE="+url)
	h.spoil(slow("5", "20"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("005")
	frozen := h.worker()
	h.signal(frozen, syscall.SIGSTOP)

	other := exec.Command(filepath.Join(programs, "worker"))
	other.Dir = project
	other.Env = append(append(h.env, h.running().Server.Env()...), "PASSBOOK_STATE_DIR="+h.dir("elsewhere"))
	var output strings.Builder
	other.Stdout, other.Stderr = &output, &output
	require.NoError(t, other.Start())
	id, err := process.Of(other.Process.Pid)
	require.NoError(t, err)
	h.met[id.PID] = id
	ended := make(chan struct{})
	go func() { defer close(ended); _ = other.Wait() }()
	t.Cleanup(func() { _ = other.Process.Kill(); <-ended })

	host := string(bytes.TrimSpace(read(t, filepath.Join(h.state(), "host-id"))))
	c, id5 := h.dial(), metaOf(t, dir).RunID
	until(t, "the run waits for the first host", func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), id5, "")
		require.NoError(t, err)
		for _, a := range d.GetPendingActivities() {
			if claimed, waits := contract.ClaimInActivityID(a.GetActivityId()); waits {
				require.Equal(t, host, claimed.Host)
				return true
			}
		}
		return false
	})
	message := regexp.MustCompile("Blocked: +host " + host + " may still be making the call, and no worker answers there")
	until(t, "status names the host", func() bool { return message.MatchString(h.starter("status", dir)) })
	require.Equal(t, 1, h.count("start", "005"))
	h.signal(frozen, syscall.SIGCONT)
	h.finish(dir)
	h.undisturbed(dir, 0)
	require.Equal(t, 1, h.count("start", "005"))
}
