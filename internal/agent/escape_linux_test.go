package agent

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
)

var update = flag.Bool("update", false, "write the table of docs/security.md")

// scopes is the version of Landlock that restricts abstract sockets, in Linux 6.12.
const scopes = 6

// escape is one attempt to leave a sandbox. Its script exits with 0 if it succeeds. If it has a mark, it succeeds if
// that file exists afterwards outside of the sandbox.
type escape struct {
	name, script, mark string

	notHeld string // why mode workspace does not hold it; empty: it does
	since   int    // version of Landlock from which it is held all the same
}

// hostDependent are escapes that some hosts hold without a sandbox, such as those that only root can try.
var hostDependent = []string{"file handles", "core dumps", "memory, by files in /", "memory, by files in /dev",
	"processes, as root", "memory", "disk", "processors", "by IPv4 in IPv6", "a setting of the kernel", "trace it",
	"a key of the kernel", "what only root reads", "by a name of the resolver", "by its own name",
	"change the routes"}

// get asks by the proxy of the sandbox, if there is one.
const get = "curl -sf --noproxy '' --max-time 5 "

// class is a kind of escapes that run in one call.
type class struct {
	name    string
	network string // of the call in mode workspace
	escapes []escape
}

// escapes is the table of what hostile agents try. ROOT has a home, a state directory, a folder and another call.
var escapes = []class{
	{"read files outside", sandbox.Internet, []escape{
		{"a file of the home", `cat "$HOME/notes.txt"`, "", "", 0},
		{"a listing of the home", `ls "$HOME" | grep -q notes.txt`, "", "", 0},
		{"a folder outside", `cat "$ROOT/outside/secret"`, "", "", 0},
		{"by a symlink", `ln -s "$ROOT/outside/secret" link; cat link`, "", "", 0},
		{"by a hard link", `ln "$ROOT/outside/secret" hard && cat hard`, "", "", 0},
		{"by parent folders", `cat ../../../../outside/secret`, "", "", 0},
		{"by the root of another process", `cat /proc/$VICTIM/root"$ROOT/outside/secret"`, "", "", 0},
		{"by the root of its supervisor", `cat /proc/$PPID/root"$ROOT/outside/secret"`, "", "", 0},
		{"another call", `cat "$ROOT/scratch/other/1/prompt.md"`, "", "", 0},
		{"the state directory", `cat "$ROOT/state/worker.json"`, "", "", 0},
	}},
	{"write files outside", sandbox.Internet, []escape{
		{"a start file of the shell", `echo x >"$HOME/.bashrc"`, "home/.bashrc", "", 0},
		{"a program in autostart", `mkdir -p "$HOME/.config/autostart"; echo x >"$HOME/.config/autostart/x"`,
			"home/.config/autostart/x", "", 0},
		{"hooks of another agent", `mkdir -p "$HOME/.claude"; echo x >"$HOME/.claude/settings.json"`,
			"home/.claude/settings.json", "", 0},
		{"a new file outside", `echo x >"$ROOT/outside/new"`, "outside/new", "", 0},
		{"by a symlink", `ln -s "$ROOT/outside" dir; echo x >dir/linked`, "outside/linked", "", 0},
		{"its exit record", `echo x >../exit.json.mine`, "scratch/call/1/exit.json.mine", "", 0},
		{"another call", `echo x >"$ROOT/scratch/other/1/work"`, "scratch/other/1/work", "", 0},
		{"the state directory", `echo x >"$ROOT/state/key"`, "state/key", "", 0},
		{"by the root of another process", `echo x >/proc/$VICTIM/root"$ROOT/outside/proc"`, "outside/proc", "", 0},
		{"a setting of the kernel", `cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern`, "", "", 0},
		{"a build cache", `echo x >"$HOME/.cache/go-build/planted"`, "home/.cache/go-build/planted",
			"builds need their caches; `strict` hides them", 0},
	}},
	{"signal or trace processes", sandbox.Internet, []escape{
		{"signal one", `kill -0 $VICTIM`, "", "", 0},
		{"its environment", `cat /proc/$VICTIM/environ`, "", "", 0},
		{"its folder", `readlink /proc/$VICTIM/cwd`, "", "", 0},
		{"its files", `ls /proc/$VICTIM/fd`, "", "", 0},
		{"its memory map", `cat /proc/$VICTIM/maps`, "", "", 0},
		{"its limits", `prlimit --pid $VICTIM`, "", "", 0},
		{"its priority", `renice -n 1 -p $VICTIM`, "", "", 0},
		{"its processors", `taskset -p $VICTIM`, "", "", 0},
		{"its namespaces", `readlink /proc/$VICTIM/ns/mnt`, "", "", 0},
		{"name it", `cat /proc/$VICTIM/cmdline | grep -q sleep`, "", "", 0},
		{"trace it", `perl -MPOSIX -e '%n = (x86_64 => 101, aarch64 => 117);
			exit(syscall($n{(POSIX::uname())[4]} || exit(1), 0x4206, $ENV{VICTIM} + 0, 0, 0) ? 1 : 0)'`, "", "", 0},
	}},
	{"reach the network", sandbox.Closed, []escape{
		{"a port of this host", `bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"`, "", "", 0},
		{"by name", `bash -c "exec 3<>/dev/tcp/localhost/$PORT"`, "", "", 0},
		{"by the unspecified address", `bash -c "exec 3<>/dev/tcp/0.0.0.0/$PORT"`, "", "", 0},
		{"by IPv4 in IPv6", `perl -MSocket -e 'socket(S, PF_INET6, SOCK_STREAM, 0);
			connect(S, pack_sockaddr_in6($ENV{PORT}, "\0" x 10 . "\xff\xff\x7f\0\0\1")) or exit 1'`, "", "", 0},
		{"an abstract socket", `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0);
			connect(S, pack_sockaddr_un("\0$ENV{ABSTRACT}")) or exit 1'`, "", "", 0},
		{"a socket in a folder", `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0);
			connect(S, pack_sockaddr_un("$ENV{ROOT}/outside/socket")) or exit 1'`, "", "", 0},
		{"by a decimal address", `bash -c "exec 3<>/dev/tcp/2130706433/$PORT"`, "", "", 0},
		{"by a short address", `bash -c "exec 3<>/dev/tcp/127.1/$PORT"`, "", "", 0},
		{"connections of this host", `grep -qi ":$(printf %04X $PORT) " /proc/self/net/tcp`, "", "", 0},
	}},
	{"reach this host and private networks with network: internet", sandbox.Internet, []escape{
		{"a port of this host", `bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"`, "", "", 0},
		{"by the proxy", get + `http://127.0.0.1:$PORT/`, "", "", 0},
		{"in a tunnel", get + `-p http://127.0.0.1:$PORT/`, "", "", 0},
		{"by name", get + `http://localhost:$PORT/`, "", "", 0},
		{"by a name of the resolver", get + `http://any.localhost:$PORT/`, "", "", 0},
		{"by the unspecified address", get + `http://0.0.0.0:$PORT/`, "", "", 0},
		{"by a short address", get + `http://127.1:$PORT/`, "", "", 0},
		{"by another loopback address", get + `http://127.9.9.9:$PORT/`, "", "", 0},
		{"by IPv4 in IPv6", get + `-g "http://[::ffff:127.0.0.1]:$PORT/"`, "", "", 0},
		{"by its own address", get + `http://$OWN:$PORT/`, "", "", 0},
		{"by its own name", get + `http://$(hostname):$PORT/`, "", "", 0},
		{"by its own address, without the proxy", `curl -sf --max-time 5 -x '' http://$OWN:$PORT/`, "", "", 0},
		{"change the routes", `ip route add unreachable 198.51.100.0/24 && ip route del unreachable 198.51.100.0/24`, "", "", 0},
		{"an abstract socket", `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0);
			connect(S, pack_sockaddr_un("\0$ENV{ABSTRACT}")) or exit 1'`, "", "", 0},
	}},
	{"reach ports of this host with sandbox.network: host", sandbox.HostNetwork, []escape{
		{"a port of this host", `bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"`, "", "the setting allows it", 0},
		{"an abstract socket", `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0);
			connect(S, pack_sockaddr_un("\0$ENV{ABSTRACT}")) or exit 1'`, "", "before Linux 6.12", scopes},
	}},
	{"read credentials", sandbox.Internet, []escape{
		{"what only root reads", `cat /etc/.pwd.lock`, "", "", 0},
		{"SSH", `cat "$HOME/.ssh/id_ed25519"`, "", "", 0},
		{"AWS", `cat "$HOME/.aws/credentials"`, "", "", 0},
		{"git", `cat "$HOME/.git-credentials"`, "", "", 0},
		{"netrc", `cat "$HOME/.netrc"`, "", "", 0},
		{"GitHub", `cat "$HOME/.config/gh/hosts.yml"`, "", "", 0},
		{"Docker", `cat "$HOME/.docker/config.json"`, "", "", 0},
		{"Kubernetes", `cat "$HOME/.kube/config"`, "", "", 0},
		{"of another agent", `cat "$HOME/.codex/auth.json"`, "", "", 0},
		{"the environment of a run", `cat "$ROOT/state/environ/run.json"`, "", "", 0},
		{"keys of Passbook", `cat "$ROOT/state/keys/grant"`, "", "", 0},
		{"a key of the kernel", `perl -MPOSIX -e '%n = (x86_64 => 250, aarch64 => 219);
			my ($kind, $name) = ("user", $ENV{MINE});
			exit(syscall($n{(POSIX::uname())[4]} || exit(1), 10, -3, $kind, $name, 0) < 0 ? 1 : 0)'`, "", "", 0},
	}},
	{"exhaust this host", sandbox.Internet, []escape{
		{"file handles", `[ "$(bash -c 'ulimit -Hn')" -gt 65536 ]`, "", "", 0},
		{"core dumps", `ulimit -c 1`, "", "", 0},
		{"memory, by files in /", `echo x >"/$MINE" && rm "/$MINE"`, "", "", 0},
		{"memory, by files in /dev", `echo x >"/dev/$MINE" && rm "/dev/$MINE"`, "", "", 0},
		{"memory", `[ "$(ulimit -v)" = unlimited ]`, "", "agents need much; use a container or a slice with a limit", 0},
		{"disk", `[ "$(ulimit -f)" = unlimited ]`, "", "builds need much; use a quota", 0},
		{"processors", `[ "$(ulimit -t)" = unlimited ]`, "", "`limits.timeout` ends the call", 0},
		{"processes, as root", `[ "$(id -u)" = 0 ]`, "", "users have at most 8192 in a sandbox", 0},
	}},
}

// ground is what the scripts attack.
type ground struct {
	root    string
	environ []string
	victim  *exec.Cmd
}

func newGround(t *testing.T) ground {
	t.Helper()
	root, err := os.MkdirTemp("", "e") // a short name: it contains a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	for _, name := range []string{
		"home/notes.txt", "home/.ssh/id_ed25519", "home/.aws/credentials", "home/.git-credentials", "home/.netrc",
		"home/.config/gh/hosts.yml", "home/.docker/config.json", "home/.kube/config", "home/.codex/auth.json",
		"home/.cache/go-build/README", "outside/secret", "scratch/other/1/prompt.md", "state/worker.json",
		"state/environ/run.json", "state/keys/grant",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("secret\n"), 0o600))
	}
	g := ground{root: root, victim: exec.Command("sleep", "600")}
	require.NoError(t, g.victim.Start())
	t.Cleanup(func() { _ = g.victim.Process.Kill(); _ = g.victim.Wait() })
	runtime.LockOSThread() // the keyring is that of a thread, and of processes that it starts
	if _, err := unix.KeyctlJoinSessionKeyring(filepath.Base(root)); err == nil {
		_, err := unix.AddKey("user", filepath.Base(root), []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING)
		require.NoError(t, err)
	}
	tcp := listening(t, "tcp", "0.0.0.0:0")
	listening(t, "unix", filepath.Join(root, "outside", "socket"))
	listening(t, "unix", "@passbook-test-"+filepath.Base(root))
	g.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(root, "home"), "ROOT=" + root,
		"VICTIM=" + strconv.Itoa(g.victim.Process.Pid), "PORT=" + port(tcp), "MINE=" + filepath.Base(root),
		"ABSTRACT=passbook-test-" + filepath.Base(root), "OWN=" + ownAddress(t),
	}
	return g
}

func listening(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	s := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// ownAddress is an address of this host beside the loopback, if there is one.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	own := "127.0.0.1"
	for _, a := range all {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil && !ip.IsLoopback() {
			own = ip.String()
		}
	}
	return own
}

// attempt runs the scripts of a class in one call, and returns the names of those that succeed.
func (g ground) attempt(t *testing.T, c class, confined *sandbox.Call) (succeeded []string) {
	t.Helper()
	var driver strings.Builder
	for _, e := range c.escapes {
		fmt.Fprintf(&driver, "if sh -c '%s' >/dev/null 2>&1 </dev/null; then echo '%s'; fi\n",
			strings.ReplaceAll(e.script, "'", `'\''`), e.name)
	}
	delivery := filepath.Join(g.root, "scratch", "call", "1")
	require.NoError(t, os.RemoveAll(delivery))
	require.NoError(t, os.MkdirAll(filepath.Join(delivery, "work"), 0o700))
	cmd := commandIn(delivery, "")
	cmd.Argv, cmd.Dir, cmd.Environment = []string{"sh", "-c", driver.String()}, filepath.Join(delivery, "work"), g.environ
	cmd.Env = []string{"ROOT", "VICTIM", "PORT", "MINE", "ABSTRACT", "OWN"}
	self, err := os.Executable()
	require.NoError(t, err)
	if confined != nil {
		confined.Supervisor = []string{self, supervisor.Verb}
		confined.Delivery, confined.Network, confined.Hidden = delivery, []string{c.network}, []string{g.root}
		cmd.Sandbox = confined
	}
	p, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
	require.NoError(t, err)
	child, err := Start(p, cmd)
	require.NoError(t, err)
	require.Zero(t, result(t, child).Code, read(t, cmd.Stderr))
	lines := strings.Split(read(t, cmd.Stdout), "\n")
	for _, e := range c.escapes {
		ok := slices.Contains(lines, e.name)
		if e.mark != "" {
			_, err := os.Stat(filepath.Join(g.root, e.mark))
			ok = err == nil
		}
		if ok {
			succeeded = append(succeeded, e.name)
		}
	}
	return succeeded
}

func TestEscapes(t *testing.T) {
	host := sandbox.Examine()
	if host.Problem != "" {
		t.Skip(host.Problem)
	}
	for _, pasta := range []string{host.Pasta, ""} {
		for _, c := range escapes {
			name, way := c.name, "without pasta"
			if pasta != "" {
				way = "with pasta"
			}
			t.Run(name+"/"+way, func(t *testing.T) {
				if pasta != "" && c.network != sandbox.Internet {
					t.Skip("it forwards the Internet only")
				}
				free := newGround(t).attempt(t, c, nil)
				held := newGround(t).attempt(t, c, &sandbox.Call{
					Held: sandbox.Held{Mode: sandbox.Workspace}, Bwrap: host.Bwrap, Pasta: pasta, Private: host.Private,
				})
				for _, e := range c.escapes {
					depends := slices.Contains(hostDependent, e.name)
					require.True(t, depends || slices.Contains(free, e.name), "%s does nothing without a sandbox", e.name)
					switch {
					case e.notHeld == "" || e.since > 0 && host.Landlock >= e.since:
						require.NotContains(t, held, e.name)
					case !depends:
						require.Contains(t, held, e.name, "it is held: say so")
					}
				}
			})
		}
	}
}

// TestDocsShowWhatIsNotHeld compares docs/security.md with the table.
func TestDocsShowWhatIsNotHeld(t *testing.T) {
	const page, from, to = "../../docs/security.md",
		"<!-- escapes: written by go test ./internal/agent -run TestDocsShowWhatIsNotHeld -update -->\n",
		"<!-- end of escapes -->\n"
	var want bytes.Buffer
	want.WriteString("| attempt | ways tested | not blocked by `workspace` |\n|---|--:|--:|\n")
	var open bytes.Buffer
	for _, c := range escapes {
		n := 0
		for _, e := range c.escapes {
			if e.notHeld != "" {
				n++
				fmt.Fprintf(&open, "| %s: %s | %s |\n", c.name, e.name, e.notHeld)
			}
		}
		fmt.Fprintf(&want, "| %s | %d | %d |\n", c.name, len(c.escapes), n)
	}
	fmt.Fprintf(&want, "\n| not blocked | why |\n|---|---|\n%s", open.String())
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, begins := strings.Cut(string(raw), from)
	have, tail, ends := strings.Cut(rest, to)
	require.True(t, begins && ends, "the marks of the table are gone from %s", page)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+from+want.String()+to+tail), 0o644))
		return
	}
	require.Equal(t, want.String(), have)
}
