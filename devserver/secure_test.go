package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// listening returns the addresses on which a process listens, of all protocols with ports.
func listening(t *testing.T, pid int) (tcp, udp []string) {
	t.Helper()
	mine := map[string]bool{}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if m := regexp.MustCompile(`^socket:\[(\d+)\]$`).FindStringSubmatch(to); err == nil && m != nil {
			mine[m[1]] = true
		}
	}
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, kind))
		require.NoError(t, err)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) < 10 || !mine[f[9]] || strings.HasPrefix(kind, "tcp") && f[3] != "0A" { // LISTEN
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			require.NoError(t, err)
			if strings.HasPrefix(kind, "udp") {
				udp = append(udp, f[1])
				continue
			}
			require.Contains(t, []string{"0100007F", "00000000000000000000000001000000"}, strings.Split(f[1], ":")[0],
				"port %d listens beyond loopback", port)
			tcp = append(tcp, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	return tcp, udp
}

// TestEveryPortRefusesStrangers: of all ports of the process only the Web UI's speaks to a client without a certificate
// of this server's authority, and those of the services speak to the server alone.
func TestEveryPortRefusesStrangers(t *testing.T) {
	c, _ := fresh(t)
	ui, err := url.Parse(c.UI)
	require.NoError(t, err)
	tcp, udp := listening(t, c.cmd.Process.Pid)
	require.Empty(t, udp)
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
		require.ErrorContains(t, shake(t, address, other.client(nameSystem)), "certificate signed by unknown authority",
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

// TestRoles calls the frontend as each common name.
func TestRoles(t *testing.T) {
	c, _ := fresh(t, "--headless")
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
				require.ErrorContains(t, err, "unauthorized", "%s may not %s", name, what)
			}
		}
	}
}

// TestRenewedCertificatesNeedNoRestart: the server presents what is in its folder now.
func TestRenewedCertificatesNeedNoRestart(t *testing.T) {
	c, _ := fresh(t, "--headless")
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
	_, err = c.dial(t).ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"}, "any")
	require.NoError(t, err)
}

func TestCertificatesAreCheckedBeforeTheStart(t *testing.T) {
	a := newAuthority(t)
	require.NoError(t, os.Remove(a.dir.key(nameUI)))
	var output bytes.Buffer
	require.Equal(t, exitFault, run(t.Context(),
		[]string{"--port", "0", "--headless", "--tls-dir", string(a.dir)}, io.Discard, &output))
	require.Contains(t, output.String(), "read the certificate of ui")
	output.Reset()
	require.Equal(t, exitUsage, run(t.Context(), []string{"--port", "0"}, io.Discard, &output))
	require.Contains(t, output.String(), "--tls-dir is missing")
	output.Reset()
	require.Equal(t, exitUsage, run(t.Context(), []string{"--port", "0", "--tls-dir", string(a.dir)}, io.Discard, &output))
	require.Contains(t, output.String(), "--ui-login-dir is missing")
}

// TestServerOnIPv6 also has its certificate.
func TestServerOnIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, l.Close())
	c, _ := fresh(t, "--ip", "::1", "--headless")
	_, err = c.dial(t).CheckHealth(testContext(t), nil)
	require.NoError(t, err)
}
