package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/keyfile"
)

func TestMarksUseTheKeyOfTheStore(t *testing.T) {
	dir := t.TempDir()
	one, other := config.Settings{Store: "file://" + filepath.Join(dir, "one")},
		config.Settings{Store: "file://" + filepath.Join(dir, "other")}
	secret := "sk-" + "ant-" + strings.Repeat("a1", 20)
	mark := func(s config.Settings) string {
		r, err := New(s, nil)
		require.NoError(t, err)
		return r.Text(secret)
	}
	require.Regexp(t, `^\[redacted:anthropic-key:[0-9a-f]{4}\]$`, mark(one))
	require.Equal(t, mark(one), mark(one))
	require.NotEqual(t, mark(one), mark(other))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "no-folder"), nil, 0o600))
	require.Equal(t, "[redacted:anthropic-key]", mark(config.Settings{Store: "file://" +
		filepath.Join(dir, "no-folder")}), "redaction works without a store")
	_, err := New(config.Settings{Redact: config.Redact{Patterns: config.Lines{"("}}}, nil)
	require.ErrorContains(t, err, "redact.patterns")
}

func TestKeysOfTheHostAreRedacted(t *testing.T) {
	s := config.Settings{StateDir: filepath.Join(t.TempDir(), "state[1]")}
	require.NoError(t, os.Mkdir(s.StateDir, 0o700))
	r, err := New(s, nil)
	require.NoError(t, err)
	s.Console.LinkKeyFile = filepath.Join(t.TempDir(), "shared.txt")
	for _, path := range []string{filepath.Join(s.StateDir, "links.key"), s.Console.LinkKeyFile} {
		key, err := keyfile.File{Path: path}.Load()
		require.NoError(t, err)
		LearnKeys(r, s)
		name := strings.ReplaceAll(filepath.Base(path), ".", "-")
		for _, text := range []string{base64.StdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
			hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key))} {
			require.Regexp(t, `^\(\[redacted:`+name+`(:[0-9a-f]{4})?\]=?\)$`, r.Text("("+text+")"))
		}
		again, err := New(s, nil)
		require.NoError(t, err)
		require.Equal(t, []string{name}, again.Kinds(base64.StdEncoding.EncodeToString(key)))
	}
}
