package browser

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/passbook-run/passbook/environ"
)

// ErrNotFound says that there is no Chromium on this machine.
var ErrNotFound = errors.New("browser not found")

const howToInstall = "install one with `sudo apt-get install chromium` (Debian, Ubuntu) or `brew install --cask chromium` (macOS), or give the path of a Chromium or Chrome"

// usual are the programs to try, best first.
var usual = []string{
	"chromium",
	"chromium-browser",
	"google-chrome-stable",
	"google-chrome",
	"/usr/lib/chromium/chromium",
	"/snap/bin/chromium",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// Find gives the path of the browser: the explicit one, a path or a name in
// PATH, or the first of the usual ones that is there. An explicit one that is
// missing is not replaced by another. The error is [ErrNotFound].
func Find(explicit string) (string, error) { return find(os.Environ(), explicit) }

// findFor looks in the PATH of the context's environment first.
func findFor(ctx context.Context, explicit string) (string, error) {
	path, err := find(environ.Over(ctx, os.Environ()), explicit)
	if err != nil && environ.Of(ctx) != nil {
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
	for _, name := range usual {
		if path, err := environ.LookPath(name, env); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, howToInstall)
}
