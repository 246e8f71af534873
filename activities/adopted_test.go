package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestCallContinuesAdoptedSession with a copy, of a role that continues no session itself. Without the file, or on
// another host, it begins a new one and records why.
func TestCallContinuesAdoptedSession(t *testing.T) {
	for name, row := range map[string]struct {
		host, program, said, warning string
		gone                         bool
	}{
		"here":            {host: "here", program: "claude"},
		"another host":    {host: "elsewhere", program: "claude", said: "s-1 said 1", warning: "its file is on another host, elsewhere"},
		"another program": {host: "here", program: "codex", said: "s-1 said 1", warning: "it is a session of codex"},
		"the file is gone": {host: "here", program: "claude", said: "s-1 said 1", warning: "this host has no file of the session",
			gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := conversing(t, tell)
			h.acts.cfg.Host = "here"
			h.define("{prompt: reader.md, gives: report, session: continue}", "{prompt: reader.md, gives: report}")
			file := filepath.Join(h.dir, "state", "sessions", "run-1", "s-0")
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.MkdirAll(filepath.Join(h.dir, ".claude"), 0o700))
			if !row.gone {
				require.NoError(t, os.WriteFile(file, []byte("s-0 said it\n"), 0o600))
			}
			h.next("1", &run.KeptSession{ID: "s-0", Host: row.host, Program: row.program, File: "run-1/s-0", Digest: "d"})
			said, kept, validation := h.said()
			require.Nil(t, kept)
			if row.warning == "" {
				require.Regexp(t, `^[0-9a-f-]+ said it s-1 said 1$|^s-1 said it s-1 said 1$`, said)
				require.Empty(t, validation.Warnings)
				raw, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, "s-0 said it\n", string(raw))
				return
			}
			require.Equal(t, row.said, said)
			require.Len(t, validation.Warnings, 1)
			require.Contains(t, validation.Warnings[0], row.warning)
		})
	}
}
