// Package agent runs one agent process and reads its reply.
//
// A child reads its prompt from a regular file and writes its answer to one (a pipe truncates long replies). It
// runs under a supervisor, leaves no processes behind, and survives the worker. A reply is either complete or a
// Failure with a category of requirement 002 §1.5. The package does not retry, store, or evaluate replies.
package agent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// DefaultGrace is the time between SIGTERM and SIGKILL.
const DefaultGrace = 5 * time.Second

// DefaultOutput is the maximum number of bytes kept of a child's output, if a command sets none.
const DefaultOutput = 32e6

// MarkEnv is the variable that identifies the processes of one delivery, whatever group or session they moved to.
const MarkEnv = "PASSBOOK_DELIVERY"

// Command is one call of an agent. Paths are absolute.
type Command struct {
	Argv        []string
	Env         []string          // names of additional variables to pass on
	Shell       bool              // a shell command: it gets no variables of agents
	Environment []string          // KEY=value source of the variables; nil means os.Environ()
	ExtraEnv    map[string]string // set in any case
	Dir         string            // scratch directory, created by the caller
	Prompt      string            // a regular file, its standard input
	Stdout      string            // created; must not exist, so no earlier answer is overwritten
	Stderr      string            // likewise
	Run         string            // id of the run, for messages; empty: unknown
	Mark        string            // value of MarkEnv, unique: identifies processes of a lost supervisor
	Timeout     time.Duration     // on the monotonic clock; 0: none
	Idle        time.Duration     // maximum time without output; 0: none
	Tools       bool              // a tool of the agent that runs counts as output
	Output      int64             // maximum bytes of stdout, and of stderr; 0: DefaultOutput
	Grace       time.Duration     // between SIGTERM and SIGKILL; 0: DefaultGrace
	Sandbox     *sandbox.Call     // nil: none; Path, Argv, Environ and Work are filled in
	Refused     error             // why this host cannot start it as asked; nil: it can
}

// validate validates a command before anything is created.
func (c Command) validate() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("start agent: no program; set agent.run in the pipeline file")
	}
	for what, path := range map[string]string{
		"scratch directory": c.Dir, "prompt": c.Prompt, "stdout": c.Stdout, "stderr": c.Stderr,
	} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("start agent %s: path of the %s must be absolute, got %q", c.Argv[0], what, path)
		}
	}
	info, err := os.Stat(c.Dir)
	if err != nil {
		return fmt.Errorf("start agent %s: scratch directory: %w", c.Argv[0], err)
	}
	if !info.IsDir() {
		return fmt.Errorf("start agent %s: scratch directory %s is not a directory", c.Argv[0], c.Dir)
	}
	return nil
}

// Find reports whether the program exists. A name relative to the scratch directory is not checked.
func (c Command) Find() error {
	if c.Refused != nil {
		return fmt.Errorf("start agent %s: %w", c.Argv[0], c.Refused)
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return nil
	}
	_, err := c.lookPath()
	return err
}

// call returns the command in the supervisor's format.
func (c Command) call() (supervisor.Call, error) {
	if err := c.validate(); err != nil {
		return supervisor.Call{}, err
	}
	if c.Refused != nil {
		return supervisor.Call{}, fmt.Errorf("start agent %s: %w", c.Argv[0], c.Refused)
	}
	program, err := c.lookPath()
	call := supervisor.Call{
		Path: program, Argv: c.Argv, Dir: c.Dir, Stdin: c.Prompt, Stdout: c.Stdout, Stderr: c.Stderr,
		Timeout: c.Timeout, Idle: c.Idle, Tools: c.Tools, Output: cmp.Or(c.Output, DefaultOutput), Grace: cmp.Or(c.Grace, DefaultGrace),
	}
	if err != nil || c.Sandbox == nil || !c.Sandbox.Bound() {
		return call, err
	}
	s := *c.Sandbox
	s.Path, s.Argv, s.Environ, s.Work = program, c.Argv, c.Environ(), c.Dir
	call.Path, call.Sandbox = s.Bwrap, true
	call.Network = s.Reaches()
	call.Argv, err = s.Wrap()
	return call, err
}

// createFiles checks the prompt and creates the output files.
func (c Command) createFiles() error {
	in, err := openPrompt(c.Prompt)
	if err != nil {
		return err
	}
	files := []*os.File{in}
	for _, path := range []string{c.Stdout, c.Stderr} {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("start agent %s: create output file: %w", c.Argv[0], errors.Join(err, closeAll(files)))
		}
		files = append(files, f)
	}
	return closeAll(files)
}

func openPrompt(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("start agent: open prompt: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("start agent: open prompt: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}

func closeAll(files []*os.File) error {
	var failed []error
	for _, f := range files {
		failed = append(failed, f.Close())
	}
	return errors.Join(failed...)
}
