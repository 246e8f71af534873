package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/run"
)

func TestMissingBrowserIsInstalled(t *testing.T) {
	tests := []struct {
		name    string
		install string // a shell command; $1 is where the browser is looked for, $2 a file to leave a mark in
		message []string
		missing bool // still
	}{
		{"installed", `echo x >> "$2"; printf '#!/bin/sh\nexit 7\n' > "$1"; chmod +x "$1"`, nil, false},
		{
			"failed", `echo x >> "$2"; echo "no network"; exit 3`,
			[]string{"browser not found", "exit status 3", "no network"}, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			program, mark := filepath.Join(t.TempDir(), "chromium"), filepath.Join(t.TempDir(), "mark")
			a := newActivities(t, Config{Browser: program})
			page, req := browser.Page{HTML: []byte("<p>"), Name: "page.html"}, browser.Request{
				Kinds: []string{"full"}, Sizes: []browser.Size{{W: 100, H: 100}},
			}
			_, mended, err := a.takeShots(t.Context(), page, req, nil)
			require.ErrorIs(t, err, browser.ErrNotFound)
			require.Empty(t, mended)
			require.NoFileExists(t, mark)
			_, mended, err = a.takeShots(t.Context(), page, req, []string{"sh", "-c", tt.install, "sh", program, mark})
			require.Error(t, err, "the program that was put there is no browser")
			for _, text := range tt.message {
				require.ErrorContains(t, err, text)
			}
			require.Equal(t, tt.missing, mended == nil)
			if tt.missing {
				require.ErrorIs(t, err, browser.ErrNotFound)
			} else {
				require.Equal(t, run.CategoryScreenshotFailed, mended[0].Category)
				require.Contains(t, mended[0].Message, "browser not found")
				require.Contains(t, mended[0].Diagnostics, "installed one with: sh -c echo x")
				require.NotErrorIs(t, err, browser.ErrNotFound)
			}
			output, err := os.ReadFile(mark)
			require.NoError(t, err)
			require.Equal(t, "x\n", string(output))
		})
	}
}
