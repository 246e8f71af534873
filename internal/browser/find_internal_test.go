package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInstalledByPlaywright: the newest browser that can be executed.
func TestInstalledByPlaywright(t *testing.T) {
	home := t.TempDir()
	require.Empty(t, installed(home))
	for name, mode := range map[string]os.FileMode{
		"chromium-999/chrome-linux": 0o700, "chromium-1100/chrome-linux": 0o700, "chromium-1187/chrome-linux64": 0o700,
		"chromium-1200/chrome-linux64": 0o600, "chromium-next/chrome-linux": 0o700,
		"chromium_headless_shell-1300/chrome-linux": 0o700,
	} {
		path := filepath.Join(home, ".cache", "ms-playwright", name, "chrome")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), mode))
	}
	require.Equal(t, filepath.Join(home, ".cache/ms-playwright/chromium-1187/chrome-linux64/chrome"), installed(home))
}
