package connect_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
)

const newProfile = `[profile.passbook]
address = "127.0.0.1:7233"
namespace = "default"

[profile.passbook.tls]
client_cert_path = "/s \"1\"/certs/cli.crt"
client_key_path = "/s \"1\"/certs/cli.key"
server_ca_cert_path = "/s \"1\"/certs/ca.crt"
`

func writeProfile(t *testing.T, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "temporalio", "temporal.toml")
	t.Setenv("TEMPORAL_CONFIG_FILE", file)
	if text != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
	}
	_, err := connect.WriteProfile(local.Server{Address: "127.0.0.1:7233", Namespace: "default",
		Certs: certs.Dir(`/s "1"/certs`)})
	after, readErr := os.ReadFile(file)
	require.NoError(t, readErr)
	return string(after), err
}

func TestProfileIsWritten(t *testing.T) {
	const other = "# mine\n[profile.default]\naddress = 'a:1' # why\n\n[profile.default.grpc_meta]\nx = \"[y]\"\n"
	for name, row := range map[string]struct{ before, after string }{
		"no file":              {"", newProfile},
		"beside others":        {other, other + "\n" + newProfile},
		"again":                {newProfile, newProfile},
		"an older one, last":   {other + "\n" + newProfile, other + "\n" + newProfile},
		"an older one, before": {"[profile.passbook]\naddress = \"old:1\"\n" + other, other + "\n" + newProfile},
		"an older one between": {other +
			"[ profile . \"passbook\" . codec ]\nendpoint = \"http://x\"\n[profile.b]\napi_key = \"k\"\n",
			other + "[profile.b]\napi_key = \"k\"\n\n" + newProfile},
		"a similar name": {"[profile.passbook-two]\naddress = \"b:1\"\n",
			"[profile.passbook-two]\naddress = \"b:1\"\n\n" + newProfile},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.after, must(writeProfile(t, row.before))(t))
		})
	}
}

func TestProfileKeepsTheFile(t *testing.T) {
	for name, before := range map[string]string{
		"inline table":       "profile = {passbook = {address = \"old:1\"}}\n",
		"dotted key":         "profile.passbook.address = \"old:1\"\n",
		"text like a header": "[profile.b]\napi_key = \"\"\"\n[profile.passbook]\n\"\"\"\n",
		"no TOML":            "[profile\n",
	} {
		t.Run(name, func(t *testing.T) {
			after, err := writeProfile(t, before)
			require.ErrorContains(t, err, "write the profile into ")
			require.Equal(t, before, after)
		})
	}
}

func TestProfileKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.toml"), filepath.Join(dir, "link.toml")
	require.NoError(t, os.WriteFile(real, nil, 0o640))
	require.NoError(t, os.Symlink(real, link))
	t.Setenv("TEMPORAL_CONFIG_FILE", link)
	must(connect.WriteProfile(local.Server{Address: "127.0.0.1:7233", Namespace: "default"}))(t)
	info := must(os.Lstat(link))(t)
	require.NotZero(t, info.Mode()&fs.ModeSymlink)
	info = must(os.Stat(real))(t)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
	text := must(os.ReadFile(real))(t)
	require.Equal(t, 0, strings.Count(string(text), "tls"), "the server has no certificates")
}
