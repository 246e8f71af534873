package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
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
