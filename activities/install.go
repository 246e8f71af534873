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

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/browser"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/work"
)

// installAtMost bounds the command that installs a browser (requirement 002 §4.3.5).
const installAtMost = 120 * time.Second

// shoot takes the pictures. Where there is no browser and the definition has a command that installs one, it is run, once, and the pictures are
// tried again; trouble is what was mended so.
func (a *Activities) shoot(ctx context.Context, page browser.Page, req browser.Request, install []string) (taken browser.Result, trouble []work.Trouble, err error) {
	taken, err = browser.Shoot(ctx, a.cfg.Browser, page, req)
	if !errors.Is(err, browser.ErrNotFound) || len(install) == 0 {
		return taken, nil, err
	}
	if failed := execute(ctx, install); failed != nil {
		return taken, nil, fmt.Errorf("%w; %w", err, failed)
	}
	missing := work.Trouble{Category: string(agent.ScreenshotFailed), Message: oneLine(err), Diagnostics: "installed one with: " + strings.Join(install, " ")}
	taken, err = browser.Shoot(ctx, a.cfg.Browser, page, req)
	return taken, []work.Trouble{missing}, err
}

// execute runs a command; at its end, or when it takes too long, no child of it is left.
func execute(ctx context.Context, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, installAtMost)
	defer cancel()
	return finish(group(ctx, argv))
}

// group is a command that ends with all its children when ctx does. It is found with the PATH of the run, whose variables replace the worker's.
func group(ctx context.Context, argv []string) *exec.Cmd {
	env := environ.Over(ctx, os.Environ())
	cmd := exec.CommandContext(ctx, environ.Program(argv[0], env), argv[1:]...)
	cmd.Env = env
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// finish runs a command; its error has the end of what it said.
func finish(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	const shown = 500
	said := strings.TrimSpace(string(out))
	return fmt.Errorf("%s failed: %w: %s", strings.Join(cmd.Args, " "), err, said[max(0, len(said)-shown):])
}
