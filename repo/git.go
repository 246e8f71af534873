package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/environ"
)

// settings hold for every call, whatever the user's configuration says. The user's hooks, signatures and file-system monitor are for
// the user's own commands; the rest makes an answer the same on every machine.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.quotePath=true", "core.safecrlf=false",
	"commit.gpgSign=false", "tag.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
	"i18n.commitEncoding=UTF-8", "advice.addEmbeddedRepo=false", "apply.whitespace=nowarn", "apply.ignoreWhitespace=no",
}

// kept are the variables of the caller that say which configuration and which git there is. All other GIT_* ones would point git at
// another repository or change its answers.
var kept = []string{"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"}

// grace is how long git may take to remove its lock files after it was told to stop.
const grace = 5 * time.Second

// git runs the git program in one folder.
type git struct {
	dir string
	env []string // added to the fixed environment
}

// Error is a git command that failed.
type Error struct {
	Command string // the subcommand
	Dir     string // where it ran
	Said    string // git's own words
	Err     error  // what os/exec says, or the context
}

func (e *Error) Error() string {
	said := e.Said
	if said == "" {
		said = e.Err.Error()
	}
	text := fmt.Sprintf("git %s in %s: %s", e.Command, e.Dir, clip(said, mostSaid))
	if e.locked() {
		text += " (if no git is at work there, remove that lock file, and try again)"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// locked says whether git found a lock of another git.
func (e *Error) locked() bool { return strings.Contains(e.Said, ".lock': File exists") }

// with adds variables to the environment.
func (g git) with(env ...string) git {
	g.env = append(slices.Clip(g.env), env...)
	return g
}

// out runs git and returns its standard output.
func (g git) out(ctx context.Context, args ...string) ([]byte, error) {
	return g.feed(ctx, nil, args...)
}

// feed is out with something on standard input.
func (g git) feed(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	var full []string
	for _, s := range settings {
		full = append(full, "-c", s)
	}
	caller := environ.Over(ctx, os.Environ())
	cmd := exec.CommandContext(ctx, environ.Program("git", caller), append(full, args...)...)
	cmd.Dir, cmd.Env = g.dir, append(environment(caller, g.dir), g.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, &Error{Command: args[0], Dir: g.dir, Err: context.Cause(ctx)}
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%w: install git %s or later, and see that it is on PATH", ErrNoGit, oldest)
	case err != nil:
		return nil, &Error{Command: args[0], Dir: g.dir, Said: strings.TrimSpace(said.String()), Err: err}
	}
	return out.Bytes(), nil
}

// line is the output without its last newline. A path may contain others.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.out(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// environment is the caller's without what would lead git elsewhere, and with nobody there to be asked. Paths are paths, never patterns.
// Reading takes no lock, so that a look at the user's checkout changes nothing in it.
func environment(caller []string, dir string) []string {
	env := slices.DeleteFunc(slices.Clone(caller), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name) || strings.HasPrefix(name, "LC_") || name == "PWD"
	})
	return append(env, "PWD="+dir, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_EDITOR=:", "GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1")
}

// exitCode is that of a git that ran and failed; 0 if err is nil, -1 for every other error.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// zero splits a list of NUL-terminated fields.
func zero(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// zeroed joins paths for git's -z --stdin.
func zeroed(paths []string) []byte { return []byte(strings.Join(paths, "\x00") + "\x00") }
