package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/environ"
)

// settings override the user's configuration in every call: no hooks, signatures or file-system monitor, and the
// same output on every machine.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.quotePath=true", "core.safecrlf=false",
	"commit.gpgSign=false", "tag.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
	"i18n.commitEncoding=UTF-8", "advice.addEmbeddedRepo=false", "apply.whitespace=nowarn", "apply.ignoreWhitespace=no",
	"merge.renormalize=false",
}

// passedVariables are the GIT_* variables that are passed on. All others could select another repository or change the
// output.
var passedVariables = []string{
	"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES",
}

// grace is the time git has to remove its lock files after SIGTERM.
const grace = 5 * time.Second

// git runs the git program in one folder.
type git struct {
	dir  string
	env  []string // in addition to the fixed environment
	over []string // settings that override the repository's; see guarded

	timeout time.Duration // to read a configuration; 0: readConfig
}

// Error is a failed git command.
type Error struct {
	Command string // subcommand
	Dir     string // working directory
	Message string // git's message
	Err     error  // from os/exec, or the context
}

func (e *Error) Error() string {
	message := e.Message
	if message == "" {
		message = e.Err.Error()
	}
	text := fmt.Sprintf("git %s in %s: %s", e.Command, e.Dir, clip(message, maxMessage))
	if e.locked() {
		text += " (if no other git process is running there, remove the lock file and retry)"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// locked reports whether git found a lock of another git process.
func (e *Error) locked() bool { return strings.Contains(e.Message, ".lock': File exists") }

// wrap adds to an error what failed.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// withEnv adds variables to the environment.
func (g git) withEnv(env ...string) git {
	g.env = append(slices.Clip(g.env), env...)
	return g
}

// output runs git and returns its standard output.
func (g git) output(ctx context.Context, args ...string) ([]byte, error) {
	return g.run(ctx, nil, args...)
}

// run runs git with standard input.
func (g git) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := g.command(ctx, args...)
	var out, message bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &message
	if err := g.failed(ctx, cmd.Run(), args[0], message.String()); err != nil {
		return out.Bytes(), err
	}
	return out.Bytes(), nil
}

// command returns git with arguments, ready to start.
func (g git) command(ctx context.Context, args ...string) *exec.Cmd {
	var full []string
	for _, s := range slices.Concat(settings, g.over) {
		full = append(full, "-c", s)
	}
	caller := environ.Merge(ctx, os.Environ())
	cmd := exec.CommandContext(ctx, environ.Program("git", caller), append(full, args...)...)
	cmd.Dir, cmd.Env = g.dir, append(environment(caller, g.dir), g.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// failed returns the error of a command that ended with err and this text on its standard error. git continues without
// a filter that fails, with bytes that nothing converted: that is an error here.
func (g git) failed(ctx context.Context, err error, command, text string) error {
	message := strings.TrimSpace(text)
	switch {
	case ctx.Err() != nil && err != nil:
		return &Error{Command: command, Dir: g.dir, Err: context.Cause(ctx)}
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: install git %s or later and add it to PATH", ErrNoGit, minVersion)
	case err == nil && strings.Contains(message, "external filter"):
		return &Error{Command: command, Dir: g.dir, Message: message, Err: errFilter}
	case err != nil:
		return &Error{Command: command, Dir: g.dir, Message: message, Err: err}
	}
	return nil
}

var errFilter = errors.New("a filter failed")

// line returns the output without its last newline.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.output(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// environment returns the caller's environment without variables that redirect git, and without prompts. Paths are
// never patterns. Reads take no locks, so they do not change the checkout.
func environment(caller []string, dir string) []string {
	env := slices.DeleteFunc(slices.Clone(caller), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(passedVariables, name) ||
			strings.HasPrefix(name, "LC_") || name == "PWD"
	})
	return append(env, "PWD="+dir, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_EDITOR=:",
		"GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1")
}

// withIndex runs do with a temporary index, which nothing of the user's checkout refers to.
func (g git) withIndex(do func(in git, index string) error) (err error) {
	temp, err := tempFolder("passbook-index-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	return do(g.inIndex(temp), filepath.Join(temp, "index"))
}

// inIndex returns git with the index in a folder.
func (g git) inIndex(folder string) git {
	in := g.withEnv("GIT_INDEX_FILE=" + filepath.Join(folder, "index"))
	in.over = append(slices.Clip(in.over), "core.splitIndex=false", "core.sparseCheckout=false", "core.bare=false")
	return in
}

// exitCode returns the exit code of git; 0 if err is nil, -1 for other errors.
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

// tempFolder creates a temporary folder. That of TMPDIR may have been removed since this process started.
func tempFolder(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirTemp("/tmp", pattern)
	}
	return dir, err
}

// splitNUL splits NUL-terminated fields.
func splitNUL(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// joinNUL joins paths for git's -z --stdin.
func joinNUL(paths []string) io.Reader {
	return strings.NewReader(strings.Join(paths, "\x00") + "\x00")
}
