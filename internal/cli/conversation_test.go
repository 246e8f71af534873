package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
)

func TestSessionThatWasNotStored(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	days := filepath.Join(home, "sessions", "2026", "11", "25")
	require.NoError(t, os.MkdirAll(days, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(days, "rollout-x-0199.jsonl"), []byte("{}\n"), 0o600))
	for _, row := range []struct {
		session, option, command string
	}{
		{"0199", "--json", "codex resume 0199"},
		{"0200", "--json", "this host has no file of the session; conversations are on the host of the call"},
		{"0200", "--ephemeral", "# codex did not store it, because its command has --ephemeral; remove the option"},
	} {
		codex := adapter.Adapter{Program: "codex", Ephemeral: "--ephemeral"}
		require.Contains(t, openSession(codex, []string{"codex", "exec", row.option}, row.session), row.command)
	}
}
