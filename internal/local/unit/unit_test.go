package unit_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/local/unit"
)

var update = flag.Bool("update", false, "write the golden files")

// hard is a service with every special character of unit files and property lists.
var hard = unit.Service{
	StateDir: "/home/ann/state 100% & <more>",
	Exec:     "/opt/pass book/100% $HOME/starter",
	Args:     []string{"server", "keep", "--managed", "$A %h \"q\" \\"},
	Env: []string{"PATH=/usr/bin:/opt/a b/100%", `PASSBOOK_STATE_DIR=/home/ann/state 100% & <more>`,
		"PASSBOOK_REDACT_PATTERNS=a\\d+\n\"b\" $c"},
}

func golden(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	want := must(os.ReadFile(path))(t)
	require.Equal(t, string(want), string(text))
}

func TestSystemdUnit(t *testing.T) {
	text := must(hard.Systemd())(t)
	golden(t, "hard.service", text)
}

func TestSystemdUnitRefusesWhatSystemdRefuses(t *testing.T) {
	for _, path := range []string{`/a"b/starter`, `/a'b/starter`, `/a\b/starter`, "/a\nb/starter"} {
		_, err := unit.Service{StateDir: "/s", Exec: path}.Systemd()
		require.ErrorContains(t, err, "install the program elsewhere")
	}
	_, err := unit.Service{StateDir: "/s\nExecStart=/bin/x", Exec: "/starter"}.Systemd()
	require.ErrorContains(t, err, "control character")
}

// TestSystemdAcceptsTheUnit: systemd reads the unit, with a program at a path like that of [hard].
func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian: apt-get install systemd)")
	}
	dir := t.TempDir()
	s := hard
	s.Exec = filepath.Join(dir, "pass book", "100% $HOME", "starter")
	require.NoError(t, os.MkdirAll(filepath.Dir(s.Exec), 0o755))
	require.NoError(t, os.WriteFile(s.Exec, []byte("#!/bin/sh\n"), 0o755))
	text := must(s.Systemd())(t)
	file := filepath.Join(dir, s.Name()+".service")
	verify := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), analyze, "--user", "verify", file)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := verify()
	require.NoError(t, err, out)
	require.Empty(t, out)

	require.NoError(t, os.Remove(s.Exec))
	out, err = verify()
	require.Error(t, err, "the verification found no fault: %s", out)
}

func TestLaunchdAgent(t *testing.T) {
	golden(t, "hard.plist", must(hard.Launchd("/home/ann/state 100% & <more>/keeper/keeper.log"))(t))
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

// fakeManager is a program in PATH that records its calls. Those that match fails fail.
func fakeManager(t *testing.T, m unit.Manager, fails string) (asked func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$*\" >> '" + log + "'\ncase \"$*\" in *" + fails +
		"*) echo refused >&2; exit 1;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, m.Program), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		raw := must(os.ReadFile(log))(t)
		require.NoError(t, os.Remove(log))
		return string(raw)
	}
}

func TestInstallAndUninstall(t *testing.T) {
	s := hard
	for goos, row := range map[string]struct{ file, install, start, uninstall string }{
		"linux": {
			".config/systemd/user/" + s.Name() + ".service",
			"--user show-environment\n--user daemon-reload\n--user enable UNIT\n--user restart UNIT\n",
			"--user start UNIT\n",
			"--user disable --now UNIT\n--user daemon-reload\n",
		},
		"darwin": {
			"Library/LaunchAgents/" + s.Label() + ".plist", "bootout gui/501/UNIT\nbootstrap gui/501 FILE\n",
			"kickstart gui/501/UNIT\n", "bootout gui/501/UNIT\n",
		},
	} {
		t.Run(goos, func(t *testing.T) {
			home := t.TempDir()
			m := must(unit.Of(goos, home, "", 501))(t)
			asked := fakeManager(t, m, "bootout")
			id := map[string]string{"linux": s.Name() + ".service", "darwin": s.Label()}[goos]
			want := func(commands string) string {
				return strings.NewReplacer("UNIT", id, "FILE", m.File(s)).Replace(commands)
			}
			file := must(m.Install(t.Context(), s, "/log"))(t)
			require.Equal(t, filepath.Join(home, row.file), file)
			require.FileExists(t, file)
			require.True(t, m.Installed(s))
			require.Equal(t, want(row.install), asked())
			require.NoError(t, m.Start(t.Context(), s))
			require.Equal(t, want(row.start), asked())
			was := must(m.Uninstall(t.Context(), s))(t)
			require.True(t, was)
			require.NoFileExists(t, file)
			require.Equal(t, want(row.uninstall), asked())
			was = must(m.Uninstall(t.Context(), s))(t)
			require.False(t, was)
		})
	}
}

// TestNothingIsWrittenWithoutAManager: as in a container.
func TestNothingIsWrittenWithoutAManager(t *testing.T) {
	m := must(unit.Of("linux", t.TempDir(), "", 501))(t)
	fakeManager(t, m, "show-environment")
	_, err := m.Install(t.Context(), hard, "/log")
	require.ErrorContains(t, err,
		"no service manager answers for this user: systemctl --user show-environment: exit status 1: refused")
	require.False(t, m.Installed(hard))
	_, err = unit.Of("windows", "", "", 0)
	require.ErrorContains(t, err, "no service manager is known on windows")
}
