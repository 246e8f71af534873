package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
)

// ErrNotFound means that no Chromium is installed.
var ErrNotFound = errors.New("browser not found")

const howToInstall = "install one with `sudo apt-get install chromium` (Debian, Ubuntu), `brew install --cask " +
	"chromium` (macOS) or `npx playwright install chromium`, or set the path of a Chromium or Chrome"

// knownPrograms are the programs to try, best first.
var knownPrograms = []string{
	"chromium",
	"chromium-browser",
	"google-chrome-stable",
	"google-chrome",
	"/usr/lib/chromium/chromium",
	"/snap/bin/chromium",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// playwright are the places in HOME of the browsers that Playwright installs.
var playwright = []string{
	".cache/ms-playwright/chromium-*/chrome-linux*/chrome",
	"Library/Caches/ms-playwright/chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
}

// Find returns the path of the browser: the explicit one, a path or a name in PATH, or the first known one that
// exists, or else the newest one that Playwright installed. A missing explicit one is not replaced. The error is
// [ErrNotFound].
func Find(explicit string) (string, error) { return find(os.Environ(), explicit) }

// findFor searches the PATH of the context's environment first.
func findFor(ctx context.Context, explicit string) (string, error) {
	path, err := find(environ.Merge(ctx, os.Environ()), explicit)
	if err != nil && environ.FromContext(ctx) != nil {
		return Find(explicit)
	}
	return path, err
}

func find(env []string, explicit string) (string, error) {
	if explicit != "" {
		path, err := environ.LookPath(explicit, env)
		if err != nil {
			return "", fmt.Errorf("%w: %w: %s", ErrNotFound, err, howToInstall)
		}
		return path, nil
	}
	for _, name := range knownPrograms {
		if path, err := environ.LookPath(name, env); err == nil {
			return path, nil
		}
	}
	if path := installed(environ.Value(env, "HOME")); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, howToInstall)
}

// installed returns the newest browser that Playwright installed: the one with the highest number in its path.
func installed(home string) (newest string) {
	highest := 0
	for _, pattern := range playwright {
		paths, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil { // the name of the home is a pattern
			continue
		}
		for _, path := range paths {
			_, rest, _ := strings.Cut(path, "/ms-playwright/chromium-")
			number, _, _ := strings.Cut(rest, "/")
			if n, err := strconv.Atoi(number); err == nil && n > highest && environ.Executable(path) == nil {
				newest, highest = path, n
			}
		}
	}
	return newest
}
