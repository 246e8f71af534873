package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecide(t *testing.T) {
	able, unable := Host{Bwrap: "/usr/bin/bwrap", Isolation: true}, Host{Problem: "no bubblewrap", Fix: "install it"}
	for name, row := range map[string]struct {
		request Request
		host    Host
		want    Held
		err     string
	}{
		"default":         {Request{}, able, Held{Mode: Workspace, Network: []string{Internet}}, ""},
		"setting":         {Request{OfHost: Strict}, able, Held{Mode: Strict, Network: []string{Closed}}, ""},
		"definition wins": {Request{Mode: None, OfHost: Strict}, able, Held{Mode: None, Network: []string{HostNetwork}}, ""},
		"addresses": {Request{Network: []string{"a:1"}}, able,
			Held{Mode: Workspace, Network: []string{"a:1"}}, ""},
		"network of the settings": {Request{Offered: []string{Internet, "a:1"}}, able,
			Held{Mode: Workspace, Network: []string{Internet, "a:1"}}, ""},
		"strict has none":     {Request{Mode: Strict, Offered: []string{"a:1"}}, able, Held{Mode: Strict, Network: []string{Closed}}, ""},
		"strict with network": {Request{Mode: Strict, Network: []string{Internet}}, able, Held{Mode: Strict, Network: []string{Internet}}, ""},
		"default, impossible": {Request{}, unable, Held{}, "sandbox workspace: this host does not offer it: no bubblewrap; " +
			"install it; or, if agents may do all that you may, set sandbox.mode: none"},
		"none, impossible":     {Request{Mode: None}, unable, Held{Mode: None, Network: []string{HostNetwork}}, ""},
		"setting none":         {Request{OfHost: None}, unable, Held{Mode: None, Network: []string{HostNetwork}}, ""},
		"network needs a mode": {Request{Mode: None, Network: []string{"a:1"}}, able, Held{}, "network: a:1 needs a sandbox"},
		"host in a definition": {Request{Network: []string{Internet, HostNetwork}}, able, Held{}, "is a word of the settings"},
		"no isolation":         {Request{}, Host{Bwrap: "/usr/bin/bwrap"}, Held{}, "set sandbox.network: host"},
		"network of the host": {Request{Offered: []string{HostNetwork}}, Host{Bwrap: "/usr/bin/bwrap"},
			Held{Mode: Workspace, Network: []string{HostNetwork}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decide(row.request, row.host)
			if row.err != "" {
				require.ErrorContains(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

// wrapped returns the paths that a call sees and whether it can write them.
func wrapped(t *testing.T, mode string, env []string, program string, made ...string) (map[string]bool, string) {
	t.Helper()
	root := t.TempDir()
	home := filepath.Join(root, "home")
	for _, name := range made {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte("{}"), 0o700))
	}
	work := filepath.Join(root, "scratch", "work")
	require.NoError(t, os.MkdirAll(work, 0o700))
	c := Call{
		Held: Held{Mode: mode, Network: []string{HostNetwork}}, Bwrap: "bwrap", Path: filepath.Join(home, program),
		Argv: []string{program}, Environ: append(env, "HOME="+home, "PATH="+filepath.Join(home, "tools/bin")),
		Delivery: filepath.Join(root, "scratch"), Work: work,
	}
	args, err := c.Wrap()
	require.NoError(t, err)
	seen := map[string]bool{}
	for i, arg := range args {
		if (arg == "--ro-bind" || arg == "--bind") && args[i+1] == args[i+2] {
			if rel, err := filepath.Rel(home, args[i+2]); err == nil && filepath.IsLocal(rel) {
				seen[rel] = arg == "--bind"
			}
		}
	}
	return seen, root
}

func TestClaudeSeesItsOwnFiles(t *testing.T) {
	files := []string{"tools/bin/claude", ".claude/settings.json", ".claude/.credentials.json", ".claude.json",
		".ssh/id_ed25519", ".cache/go-build/README", ".codex/auth.json", ".gitconfig", ".local/bin/tool"}
	seen, root := wrapped(t, Workspace, nil, "tools/bin/claude", files...)
	project := ".claude/projects/" + unusual.ReplaceAllString(filepath.Join(root, "scratch", "work"), "-")
	require.Equal(t, map[string]bool{
		"tools/bin": false, ".claude/settings.json": false, ".claude/.credentials.json": true, project: true,
		".cache/go-build": true, ".gitconfig": false, ".local/bin": false,
	}, seen)
	copied, err := os.ReadFile(filepath.Join(root, "scratch", homeFolder, ".claude.json"))
	require.NoError(t, err)
	require.Equal(t, `{"projects":{}}`, string(copied))

	seen, root = wrapped(t, Strict, []string{"GOCACHE=/tmp"}, "tools/bin/claude", files...)
	project = ".claude/projects/" + unusual.ReplaceAllString(filepath.Join(root, "scratch", "work"), "-")
	require.Equal(t, map[string]bool{
		"tools/bin": false, ".claude/settings.json": false, ".claude/.credentials.json": true, project: true,
	}, seen)
}

// What the setup of a workspace downloads is there in later calls, also for a user who has never used the tool.
func TestCachesOfToolsAreCreated(t *testing.T) {
	seen, _ := wrapped(t, Workspace, nil, "tools/bin/agent", "tools/bin/agent", "tools/bin/go")
	require.Equal(t, map[string]bool{
		"tools/bin": false, ".cache/go-build": true, "go/pkg/mod": true, "go/pkg/sumdb": true,
	}, seen)
	seen, _ = wrapped(t, Strict, nil, "tools/bin/agent", "tools/bin/agent", "tools/bin/go")
	require.Equal(t, map[string]bool{"tools/bin": false}, seen)
}

func TestProgramInHomeShowsItsFileOnly(t *testing.T) {
	seen, _ := wrapped(t, Workspace, nil, "agent.sh", "agent.sh", "secret.txt")
	require.Equal(t, map[string]bool{"agent.sh": false}, seen)
}

func TestProgramBesideRunsOrInACheckoutShowsItsFileOnly(t *testing.T) {
	for name, row := range map[string]struct{ made, hidden, seen string }{
		"a checkout":  {"project/.git/HEAD", "", "project/agent.sh"},
		"beside runs": {"project/.env", "project/runs", "project/agent.sh"},
		"elsewhere":   {"project/.env", "runs", "project"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range []string{row.made, "project/agent.sh"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o700))
			}
			b := binds{call: Call{Hidden: []string{filepath.Join(root, row.hidden)}}, at: map[string]bool{}}
			if row.hidden == "" {
				b.call.Hidden = nil
			}
			b.program(filepath.Join(root, "project/agent.sh"))
			seen := filepath.Join(root, row.seen)
			require.Equal(t, []string{"--ro-bind", seen, seen}, b.args())
		})
	}
}

func TestPackageOfProgramIsSeen(t *testing.T) {
	root := t.TempDir()
	script := filepath.Join(root, "lib", "node_modules", "@a", "agent", "cli.js")
	require.NoError(t, os.MkdirAll(filepath.Dir(script), 0o700))
	require.NoError(t, os.WriteFile(script, nil, 0o700))
	link := filepath.Join(root, "bin", "agent")
	require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
	require.NoError(t, os.Symlink(script, link))
	b := binds{call: Call{Path: link}, at: map[string]bool{}}
	b.program(link)
	args := b.args()
	require.True(t, slices.Contains(args, filepath.Join(root, "bin")))
	require.True(t, slices.Contains(args, filepath.Join(root, "lib", "node_modules")))
}

// TestBorrowedObjectsAreSeen has an agent name the objects of another repository in the folder that its continued
// session works in.
func TestBorrowedObjectsAreSeen(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"source/objects", "other/objects", "work/.git/objects/info", "delivery"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "work/.git/objects/info/alternates"),
		[]byte(filepath.Join(root, "other/objects")+"\n"), 0o600))
	args, err := Call{Held: Held{Mode: Workspace, Network: []string{HostNetwork}}, Path: "/bin/sh", Argv: []string{"sh"},
		Delivery: filepath.Join(root, "delivery"), Work: filepath.Join(root, "work"),
		Objects: filepath.Join(root, "source/objects")}.Wrap()
	require.NoError(t, err)
	require.Contains(t, args, filepath.Join(root, "source/objects"))
	require.NotContains(t, args, filepath.Join(root, "other/objects"))
}

// TestSocketsOfServicesAreHidden: these resolve names, build, and start containers, also without a network.
func TestSocketsOfServicesAreHidden(t *testing.T) {
	for _, socket := range []string{"/run/systemd/resolve/io.systemd.Resolve", "/nix/var/nix/daemon-socket/socket",
		"/var/guix/daemon-socket/socket", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/nscd/socket"} {
		for _, dir := range system() {
			require.False(t, within(socket, dir), "%s shows %s", dir, socket)
		}
	}
}

func TestNamedAddresses(t *testing.T) {
	require.Equal(t, []string{"127.0.0.1:9000", "gateway.corp:443", "proxy.corp:80", "b.corp:8080", "[::1]:1"},
		Named([]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:9000/v1", "OPENAI_BASE_URL=https://gateway.corp/openai",
			"GOPROXY=http://proxy.corp,http://b.corp:8080|direct", "HOME=http://home", "GOOGLE_GEMINI_BASE_URL=none",
			"PIP_INDEX_URL=https://user:secret@gateway.corp/simple", "PIP_EXTRA_INDEX_URL=http://[::1]:1", "ES_BASE_URL=http://es"}))
}
