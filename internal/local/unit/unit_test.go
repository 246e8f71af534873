package unit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/local/unit"
)

var update = flag.Bool("update", false, "write the golden files")

// hard is a service with everything that has a meaning of its own in a unit file or a property list.
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
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

func TestSystemdUnit(t *testing.T) {
	text, err := hard.Systemd()
	require.NoError(t, err)
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

// TestSystemdAcceptsTheUnit has systemd itself read the unit, with a program at a path like that of [hard].
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
	text, err := s.Systemd()
	require.NoError(t, err)
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
	require.Error(t, err, "the verification sees no fault: %s", out)
}

// stringsOf returns the strings of a property list, in order.
func stringsOf(t *testing.T, plist []byte) (out []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(plist))
	inside := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local
			if inside == "string" {
				out = append(out, "")
			}
		case xml.EndElement:
			inside = ""
		case xml.CharData:
			if inside == "string" {
				out[len(out)-1] += string(token)
			}
		}
	}
}

func TestLaunchdAgent(t *testing.T) {
	text, err := hard.Launchd("/home/ann/state 100% & <more>/keeper/keeper.log")
	require.NoError(t, err)
	golden(t, "hard.plist", text)
	want := append([]string{hard.Label(), hard.Exec}, hard.Args...)
	for _, pair := range hard.Env {
		_, value, _ := strings.Cut(pair, "=")
		want = append(want, value)
	}
	log := "/home/ann/state 100% & <more>/keeper/keeper.log"
	require.Equal(t, append(want, log, log), stringsOf(t, text))
}

// fakeManager puts a program into PATH that writes down how it is called. It fails at the calls that fails names.
func fakeManager(t *testing.T, m unit.Manager, fails string) (asked func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$*\" >> '" + log + "'\ncase \"$*\" in *" + fails +
		"*) echo refused >&2; exit 1;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, m.Program), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		raw, err := os.ReadFile(log)
		require.NoError(t, err)
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
			m, err := unit.Of(goos, home, "", 501)
			require.NoError(t, err)
			asked := fakeManager(t, m, "bootout")
			id := map[string]string{"linux": s.Name() + ".service", "darwin": s.Label()}[goos]
			want := func(commands string) string {
				return strings.NewReplacer("UNIT", id, "FILE", m.File(s)).Replace(commands)
			}
			file, err := m.Install(t.Context(), s, "/log")
			require.NoError(t, err)
			require.Equal(t, filepath.Join(home, row.file), file)
			require.FileExists(t, file)
			require.True(t, m.Installed(s))
			require.Equal(t, want(row.install), asked())
			require.NoError(t, m.Start(t.Context(), s))
			require.Equal(t, want(row.start), asked())
			was, err := m.Uninstall(t.Context(), s)
			require.NoError(t, err)
			require.True(t, was)
			require.NoFileExists(t, file)
			require.Equal(t, want(row.uninstall), asked())
			was, err = m.Uninstall(t.Context(), s)
			require.NoError(t, err)
			require.False(t, was)
		})
	}
}

// TestNothingIsWrittenWithoutAManager as in a container, where nothing answers for the user.
func TestNothingIsWrittenWithoutAManager(t *testing.T) {
	m, err := unit.Of("linux", t.TempDir(), "", 501)
	require.NoError(t, err)
	fakeManager(t, m, "show-environment")
	_, err = m.Install(t.Context(), hard, "/log")
	require.ErrorContains(t, err,
		"no service manager answers for this user: systemctl --user show-environment: exit status 1: refused")
	require.False(t, m.Installed(hard))
	_, err = unit.Of("windows", "", "", 0)
	require.ErrorContains(t, err, "no service manager is known on windows")
}
