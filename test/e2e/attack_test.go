package e2e_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/testenv"
)

// TestAnotherUserCannotCommand repeats an attack: another user of the machine reads the task queue of a worker in the
// Web UI, and starts a run there with the shipped starter, with gRPC, or by HTTP with the name of another host. None
// of it gets as far as a workflow.
func TestAnotherUserCannotCommand(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	h := newEnv(t)
	h.starter("server", "start")
	s := h.running().Server
	require.NotNil(t, s)

	for _, host := range []string{s.UI[len("http://"):], "attacker.example"} {
		for _, page := range []string{"/api/v1/namespaces/default/workflows", "/api/v1/namespaces/default/task-queues/q"} {
			code := requestAs(t, host, http.MethodGet, s.UI+page)
			require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, code, "%s of %s", page, host)
		}
		code := requestAs(t, host, http.MethodPost, s.UI+"/api/v1/namespaces/default/workflows/w")
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, code)
	}
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	_, err = workflowservice.NewWorkflowServiceClient(conn).ListWorkflowExecutions(t.Context(),
		&workflowservice.ListWorkflowExecutionsRequest{Namespace: "default"})
	require.Error(t, err)

	shipped := h.shipped()
	out, err := h.asOther(nobody, filepath.Join(shipped, "starter"), "run", "--config",
		filepath.Join(shipped, "corpus-tiny.yaml"), "--detach").CombinedOutput()
	require.Error(t, err, string(out))
	require.Contains(t, string(out), "uses TLS", string(out))
	_, err = h.asOther(nobody, "cat", s.Certs.Key(certs.CLI)).CombinedOutput()
	require.Error(t, err, "the key can be read")
	list, err := h.dial().ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	require.NoError(t, err)
	require.Empty(t, list.Executions)
	_, err = h.dial().CheckHealth(t.Context(), &client.CheckHealthRequest{})
	require.NoError(t, err, "the owner is let in")
}

// requestAs sends a request under the name of a host, and returns the status.
func requestAs(t *testing.T, host, method, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	r.Host = host
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode
}

// asOther is a command of another user, who knows the address of the server, in a folder of theirs.
func (h *environment) asOther(u *user.User, argv ...string) *exec.Cmd {
	h.t.Helper()
	uid, err := strconv.Atoi(u.Uid)
	require.NoError(h.t, err)
	gid, err := strconv.Atoi(u.Gid)
	require.NoError(h.t, err)
	home, err := os.MkdirTemp("", "passbook-other-")
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, os.RemoveAll(home)) })
	require.NoError(h.t, os.Chown(home, uid, gid))
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	h.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = home
	cmd.Env = append(testenv.CleanEnv(os.Environ()), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"PASSBOOK_STATE_DIR="+filepath.Join(home, "state"), "TEMPORAL_ADDRESS="+h.running().Server.Address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return cmd
}

// shipped is a folder with a copy of the starter and of an example that every user can read.
func (h *environment) shipped() string {
	h.t.Helper()
	dir, err := os.MkdirTemp("", "passbook-shipped-")
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, os.RemoveAll(dir)) })
	require.NoError(h.t, os.Chmod(dir, 0o755))
	require.NoError(h.t, os.CopyFS(dir, os.DirFS(filepath.Dir(tiny()))))
	data := read(h.t, filepath.Join(programs, "starter"))
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, "starter"), data, 0o755))
	return dir
}
