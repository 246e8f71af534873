package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestMissingBrowserIsInstalled(t *testing.T) {
	for name, row := range map[string]struct {
		install string // $1 is where the browser is looked for, $2 a file to leave a mark in
		missing bool   // still
	}{
		"installed": {`echo x >> "$2"; printf '#!/bin/sh\nexit 7\n' > "$1"; chmod +x "$1"`, false},
		"failed":    {`echo x >> "$2"; echo "no network"; exit 3`, true},
	} {
		t.Run(name, func(t *testing.T) {
			program, mark := filepath.Join(t.TempDir(), "chromium"), filepath.Join(t.TempDir(), "mark")
			a := newActivities(t, Config{Browser: program, Sandbox: config.Sandbox{Mode: sandbox.None}})
			shoot := func(install []string) ([]contract.RecoveredError, error) {
				_, recovered, err := a.takeShots(t.Context(), browser.Page{HTML: []byte("<p>"), Name: "page.html"},
					browser.Request{Kinds: []string{"full"}, Sizes: []browser.Size{{W: 100, H: 100}}}, install)
				return recovered, err
			}
			recovered, err := shoot(nil)
			require.ErrorIs(t, err, browser.ErrNotFound)
			require.Empty(t, recovered)
			require.NoFileExists(t, mark)
			recovered, err = shoot([]string{"sh", "-c", row.install, "sh", program, mark})
			output, readErr := os.ReadFile(mark)
			require.NoError(t, readErr)
			require.Equal(t, "x\n", string(output))
			if row.missing {
				require.ErrorIs(t, err, browser.ErrNotFound)
				require.ErrorContains(t, err, "no network")
				require.Empty(t, recovered)
				return
			}
			require.Error(t, err, "the program that was put there is no browser")
			require.NotErrorIs(t, err, browser.ErrNotFound)
			require.Equal(t, run.CategoryScreenshotFailed, recovered[0].Category)
			require.Contains(t, recovered[0].Diagnostics, "sh -c echo x")
		})
	}
}
