package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// installTimeout is the timeout of the command that installs a browser (requirement 002 §4.3.5).
const installTimeout = 120 * time.Second

// takeShots takes the screenshots. If there is no browser, it runs the definition's install command once and retries;
// recovered contains the error that this fixed.
func (a *Activities) takeShots(ctx context.Context, page browser.Page, req browser.Request,
	install []string) (taken browser.Result, recovered []contract.RecoveredError, err error) {
	taken, err = browser.Shoot(ctx, a.browser, page, req)
	if !errors.Is(err, browser.ErrNotFound) || len(install) == 0 {
		return taken, nil, err
	}
	if refused := a.bounds().Allow(a.bounds().OfInstaller(install)); refused != nil {
		return taken, nil, fmt.Errorf("%w; %w", err, refused)
	}
	if failed := runCommand(ctx, install); failed != nil {
		return taken, nil, fmt.Errorf("%w; %w", err, failed)
	}
	missing := contract.RecoveredError{
		Category: run.CategoryScreenshotFailed, Message: oneLine(err),
		Diagnostics: "installed one with: " + strings.Join(install, " "),
	}
	taken, err = browser.Shoot(ctx, a.browser, page, req)
	return taken, []contract.RecoveredError{missing}, err
}

// runCommand runs a command with the PATH and variables of the run, and kills its process group at the end or after the
// timeout. The error contains the end of its output.
func runCommand(ctx context.Context, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	env := environ.Merge(ctx, os.Environ())
	cmd := exec.CommandContext(ctx, environ.Program(argv[0], env), argv[1:]...)
	cmd.Env = env
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s failed: %w: %s", shell.Line(argv...), err, lastOf(string(out)))
}

// lastOf is the end of what a command printed.
func lastOf(output string) string {
	const shown = 500
	output = strings.TrimSpace(output)
	return output[max(0, len(output)-shown):]
}
