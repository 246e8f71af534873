package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/operatorservice/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// listening returns the TCP addresses on which a process listens.
func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	mine := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Skip("needs /proc")
	}
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if socket, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			mine[strings.TrimSuffix(socket, "]")] = true
		}
	}
	for _, kind := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, kind))
		require.NoError(t, err)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) < 10 || !mine[f[9]] || f[3] != "0A" { // LISTEN
				continue
			}
			host, hex, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			require.NoError(t, err)
			require.Contains(t, []string{"0100007F", "00000000000000000000000001000000"}, host,
				"port %d listens beyond loopback", port)
			addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	return addresses
}

// TestSecureServer checks the ready line, the ports, the roles and the renewal of certificates of one server.
func TestSecureServer(t *testing.T) {
	c, args := fresh(t)
	t.Run("ready line", func(t *testing.T) {
		require.Equal(t, ready{Ready: true, Address: c.Address, UI: c.UI, Namespace: "book", DB: args[3],
			PID: c.cmd.Process.Pid, Version: "1.32.1"}, c.ready)
		require.FileExists(t, c.DB)
		require.NoError(t, uiHealth(testContext(t), c.UI[len("http://"):]))
		_, err := c.dial(t).CheckHealth(testContext(t), nil)
		require.NoError(t, err)
	})
	t.Run("ports", func(t *testing.T) { testPorts(t, c) })
	t.Run("roles", func(t *testing.T) { testRoles(t, c) })
	t.Run("renewal", func(t *testing.T) { testRenewal(t, c) })
	require.Zero(t, c.stop(syscall.SIGTERM))
}

// testPorts: only the port of the Web UI answers a client without a certificate of this server's authority, and the
// ports of the services accept only the server.
func testPorts(t *testing.T, c *child) {
	ui, err := url.Parse(c.UI)
	require.NoError(t, err)
	tcp := listening(t, c.cmd.Process.Pid)
	require.Len(t, tcp, 5, "frontend, history, matching, worker and Web UI")
	require.Contains(t, tcp, c.Address)
	require.Contains(t, tcp, ui.Host)
	other := newAuthority(t)
	forged := other.client(nameSystem)
	forged.RootCAs = c.authority.client(nameCLI).RootCAs // it trusts the server, not the other way round
	noCert := c.authority.client(nameCLI)
	noCert.GetClientCertificate = nil
	asServer := c.authority.client(nameSystem)
	for _, address := range tcp {
		if address == ui.Host {
			continue
		}
		require.Error(t, plain(t, address), "%s answers without TLS", address)
		require.ErrorContains(t, shake(t, address, noCert), "certificate required", address)
		require.ErrorContains(t, shake(t, address, forged), "unknown certificate authority", address)
		require.ErrorAs(t, shake(t, address, other.client(nameSystem)), new(x509.UnknownAuthorityError),
			"a client would believe any server")
		require.NoError(t, shake(t, address, asServer), address)
		err := shake(t, address, c.authority.client(nameCLI))
		if address == c.Address {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "bad certificate", "%s has no authorizer", address)
		}
	}
}

// plain asks a port in plain HTTP/2.
func plain(t *testing.T, address string) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	_, err = workflowservice.NewWorkflowServiceClient(conn).GetSystemInfo(testContext(t),
		&workflowservice.GetSystemInfoRequest{})
	return err
}

// testRoles calls the frontend as each common name.
func testRoles(t *testing.T, c *child) {
	type call = func(context.Context, *grpc.ClientConn) error
	calls := map[string]call{
		"read": func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := workflowservice.NewWorkflowServiceClient(c).ListWorkflowExecutions(ctx,
				&workflowservice.ListWorkflowExecutionsRequest{Namespace: "book"})
			return err
		},
		"write": func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := workflowservice.NewWorkflowServiceClient(c).StartWorkflowExecution(ctx,
				&workflowservice.StartWorkflowExecutionRequest{Namespace: "book", WorkflowId: "w",
					WorkflowType: &commonpb.WorkflowType{Name: "any"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}})
			if status.Code(err) == codes.AlreadyExists {
				return nil
			}
			return err
		},
		"work": func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := workflowservice.NewWorkflowServiceClient(c).RespondActivityTaskCompleted(ctx,
				&workflowservice.RespondActivityTaskCompletedRequest{Namespace: "book"})
			if status.Code(err) == codes.InvalidArgument { // there is no task
				return nil
			}
			return err
		},
		"administer": func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := operatorservice.NewOperatorServiceClient(c).ListClusters(ctx, &operatorservice.ListClustersRequest{})
			return err
		},
	}
	for name, may := range map[string][]string{
		nameSystem: {"read", "write", "work", "administer"},
		nameCLI:    {"read", "write", "work", "administer"},
		nameWorker: {"read", "write", "work"},
		nameUI:     {"read", "write"},
		"stranger": nil,
	} {
		conn, err := grpc.NewClient(c.Address, grpc.WithTransportCredentials(credentials.NewTLS(c.authority.client(name))))
		require.NoError(t, err)
		defer conn.Close()
		for what, do := range calls {
			err := do(testContext(t), conn)
			if slices.Contains(may, what) {
				require.NoError(t, err, "%s may %s", name, what)
			} else {
				require.Equal(t, codes.PermissionDenied, status.Code(err), "%s may not %s", name, what)
			}
		}
	}
}

// testRenewal: renewed certificates need no restart.
func testRenewal(t *testing.T, c *child) {
	cl := c.dial(t)
	renewed := c.authority.issue(nameServer)
	for _, name := range []string{nameSystem, nameCLI} {
		c.authority.issue(name)
	}
	seen := c.authority.client(nameCLI)
	seen.VerifyConnection = func(s tls.ConnectionState) error {
		require.Equal(t, renewed.SerialNumber, s.PeerCertificates[0].SerialNumber)
		return nil
	}
	require.NoError(t, shake(t, c.Address, seen))
	_, err := cl.CheckHealth(testContext(t), &client.CheckHealthRequest{}) // on the old connection
	require.NoError(t, err)
	_, err = c.dial(t).ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: "renewed", TaskQueue: "q"}, "any")
	require.NoError(t, err)
}

func TestCertificatesAreCheckedBeforeTheStart(t *testing.T) {
	a := newAuthority(t)
	require.NoError(t, os.Remove(a.dir.key(nameUI)))
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--headless", "--tls-dir", string(a.dir)}, exitFault, "read the certificate of ui"},
		{nil, exitUsage, "--tls-dir is missing"},
		{[]string{"--tls-dir", string(a.dir)}, exitUsage, "--ui-login-dir is missing"},
	} {
		var output bytes.Buffer
		require.Equal(t, row.code, run(t.Context(), append(row.args, "--port", "0"), io.Discard, &output))
		require.Contains(t, output.String(), row.want)
	}
}
