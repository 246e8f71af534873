package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// confined returns a command that runs a shell script in a sandbox.
func confined(t *testing.T, script string) Command {
	t.Helper()
	host := sandbox.Examine()
	if host.Problem != "" {
		t.Skip(host.Problem)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	c := commandIn(t.TempDir(), "")
	dir := filepath.Dir(c.Prompt)
	c.Argv, c.Mark, c.Grace = []string{"sh", "-c", script}, dir, 500*time.Millisecond
	c.Sandbox = &sandbox.Call{
		Held: sandbox.Held{Mode: sandbox.Workspace, Network: []string{sandbox.HostNetwork}}, Bwrap: host.Bwrap, Delivery: dir,
		Supervisor: []string{self, supervisor.Verb},
	}
	return c
}

// printed waits for a text of the agent.
func printed(t *testing.T, c Command, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(c.Stdout)
		return err == nil && string(data) == text
	}, bound, 5*time.Millisecond)
}

func nothingLeft(t *testing.T, c Command) {
	t.Helper()
	found, err := process.WithEnv(MarkEnv, c.Mark)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestSandboxedExit(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		code   int
		signal string
	}{
		"success":   {"pwd", 0, ""},
		"failure":   {"exit 3", 3, ""},
		"no such":   {"exec no-such-program 2>&1", 127, ""},
		"a signal":  {"kill -9 $$", -1, "killed"},
		"daemons":   {"setsid sleep 600 & setsid setsid sleep 600 & exit 0", 0, ""},
		"its group": {"sleep 600 & kill -9 0", -1, "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := confined(t, row.script)
			exit := result(t, start(t, c))
			require.Equal(t, row.code, exit.Code, read(t, c.Stderr))
			require.Equal(t, row.signal, exit.Signal)
			nothingLeft(t, c)
			if name == "success" {
				require.Equal(t, c.Dir+"\n", read(t, c.Stdout))
			}
		})
	}
}

func TestSandboxedAgentGetsSIGTERM(t *testing.T) {
	c := confined(t, `trap 'echo ended; exit 7' TERM; echo begun; while :; do sleep 0.02; done`)
	child := start(t, c)
	printed(t, c, "begun\n")
	require.NoError(t, child.Kill("pause now"))
	exit := result(t, child)
	require.Equal(t, 7, exit.Code)
	require.True(t, exit.Killed)
	require.Equal(t, "begun\nended\n", read(t, c.Stdout))
	nothingLeft(t, c)
}

func TestSandboxedStubbornAgentIsKilled(t *testing.T) {
	c := confined(t, `trap '' TERM; (setsid sleep 600 &); echo begun; while :; do sleep 0.02; done`)
	c.Timeout = time.Second
	exit := result(t, start(t, c))
	require.True(t, exit.TimedOut)
	require.Equal(t, "killed", exit.Signal)
	nothingLeft(t, c)
}

func TestSandboxEndsWithItsSupervisor(t *testing.T) {
	c := confined(t, `setsid sleep 600 & echo begun; sleep 600`)
	child, err := begin(c)
	require.NoError(t, err)
	printed(t, c, "begun\n")
	require.NoError(t, child.p.Identity().Signal(9))
	require.Eventually(t, func() bool {
		found, err := process.WithEnv(MarkEnv, c.Mark)
		return err == nil && len(found) == 0
	}, bound, 5*time.Millisecond)
	_, err = child.Result()
	require.ErrorIs(t, err, ErrLost)
}

func TestOtherWorkerStopsSandbox(t *testing.T) {
	c := confined(t, `trap 'exit 7' TERM; echo begun; while :; do sleep 0.02; done`)
	child := start(t, c)
	printed(t, c, "begun\n")
	rec, ok, err := supervisor.ReadRecord(child.p.Dir())
	require.NoError(t, err)
	require.True(t, ok)
	joined := Join(child.p.Dir(), rec.Process)
	require.NoError(t, joined.Kill("by another worker"))
	require.Equal(t, 7, result(t, joined).Code)
	nothingLeft(t, c)
}

func TestSandboxFailsToStart(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Call){
		"bubblewrap": func(c *sandbox.Call) { c.Bwrap = "/bin/sh" }, // which knows none of the options
		"network":    func(c *sandbox.Call) { c.Network, c.Supervisor = []string{"127.0.0.1:80"}, []string{"/bin/false"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := confined(t, "echo never")
			change(c.Sandbox)
			child := start(t, c)
			<-child.Done()
			_, err := child.Result()
			require.ErrorContains(t, err, "start the sandbox: ")
			var spawn *supervisor.SpawnError
			require.ErrorAs(t, err, &spawn)
		})
	}
}

// serving is an HTTP server on the host's loopback that answers with its name.
func serving(t *testing.T, name string) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", name, r.Host, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestSandboxedNetwork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	listed, other := serving(t, "listed"), serving(t, "other")
	const get = "curl -sS --max-time 5 "
	for name, row := range map[string]struct {
		network []string
		script  string
		want    string // of stdout; empty: the command fails
	}{
		"a listed port": {[]string{listed}, get + "http://" + listed + "/a", "listed " + listed + " /a"},
		"by the proxy": {[]string{listed}, get + "--noproxy '' http://" + listed + "/a",
			"listed " + listed + " /a"},
		"in a tunnel": {[]string{listed}, get + "--noproxy '' -p http://" + listed + "/a",
			"listed " + listed + " /a"},
		"another port":              {[]string{listed}, get + "-f http://" + other, ""},
		"another port by the proxy": {[]string{listed}, get + "-f --noproxy '' http://" + other, ""},
		"another port in a tunnel":  {[]string{listed}, get + "-f --noproxy '' -p http://" + other, ""},
		"by name":                   {[]string{listed}, get + "-f http://localhost:" + port(other), ""},
		"a name of this host":       {[]string{"*.localhost"}, get + "-f http://x.localhost:80", ""},
		"a refusal has a reason": {[]string{listed}, get + "--noproxy '' http://example.com/",
			"refused: example.com:80 is not in network of the pipeline's definition\n"},
		"none":                {[]string{sandbox.Closed}, get + "-f http://" + listed, ""},
		"none has no proxies": {[]string{sandbox.Closed}, `echo "proxies: $http_proxy$HTTPS_PROXY"`, "proxies: \n"},
		"internet":            {[]string{sandbox.Internet}, get + "-f http://" + listed, ""},
		"internet and a port": {[]string{sandbox.Internet, listed}, get + "http://" + listed + "/a", "listed " + listed + " /a"},
		"a private address": {[]string{sandbox.Internet}, get + "http://10.1.2.3/", "refused: 10.1.2.3:80 is an address of this " +
			"host or of a private network; to allow it, add \"10.1.2.3:80\" to network in the pipeline's definition\n"},
		"host": {[]string{sandbox.HostNetwork}, get + "http://" + listed + "/a", "listed " + listed + " /a"},
	} {
		t.Run(name, func(t *testing.T) {
			c := confined(t, row.script)
			c.Sandbox.Network = row.network
			exit := result(t, start(t, c))
			require.Equal(t, row.want, read(t, c.Stdout), read(t, c.Stderr))
			require.Equal(t, row.want == "", exit.Code != 0, read(t, c.Stderr))
			nothingLeft(t, c)
		})
	}
}

// TestDirectConnections: programs that know no proxy have a route by pasta, which ends with the call.
func TestDirectConnections(t *testing.T) {
	c := confined(t, "cat /proc/net/route /etc/resolv.conf; id -u")
	c.Sandbox.Network, c.Sandbox.Pasta = []string{sandbox.Internet}, sandbox.Examine().Pasta
	if c.Sandbox.Pasta == "" {
		t.Skip("there is no pasta")
	}
	child := start(t, c)
	require.Zero(t, result(t, child).Code, read(t, c.Stderr))
	require.Empty(t, read(t, c.Stderr))
	require.Contains(t, read(t, c.Stdout), "\t00000000\t010012C6\t", "the default route")
	require.Contains(t, read(t, c.Stdout), "nameserver 198.18.0.1\n")
	raw := read(t, filepath.Join(child.p.Dir(), "pasta.pid"))
	pid, err := strconv.Atoi(strings.TrimSpace(raw))
	require.NoError(t, err)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "pasta is left")
	nothingLeft(t, c)
}

// TestFailingPasta: the call has the proxy, and its output names what it lacks.
func TestFailingPasta(t *testing.T) {
	c := confined(t, "echo begun")
	c.Sandbox.Network, c.Sandbox.Pasta = []string{sandbox.Internet}, "/bin/false"
	require.Zero(t, result(t, start(t, c)).Code)
	require.Equal(t, "begun\n", read(t, c.Stdout))
	require.Equal(t, "passbook-call: programs that use no proxy have no network: pasta ended: \n", read(t, c.Stderr))
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

func TestProcessOutsideGroupIsKilled(t *testing.T) {
	other := commandIn(t.TempDir(), "wait")
	other.Mark = other.Dir
	stays := start(t, other)
	c := commandIn(t.TempDir(), "emigrate")
	c.Mark = c.Dir
	require.Zero(t, result(t, start(t, c)).Code)
	_, emigrant := pids(t, c)
	requireGone(t, emigrant)
	require.True(t, stays.p.Identity().Alive())
}
