// Package agent runs one agent process and says what came back.
//
// It promises that a child gets its prompt from a regular file and leaves its answer in one (a pipe cuts long replies short), that it
// lives under a supervisor with nothing of it left behind, that it continues when this process ends, and that a reply is either whole or a
// Failure with one of the categories of requirement 002 §1.5. It does not retry, store, or judge what a reply says.
package agent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/supervisor"
)

// DefaultGrace is how long a child may take to end after SIGTERM.
const DefaultGrace = 5 * time.Second

// DefaultOutput is how much of what a child prints is kept, in bytes.
const DefaultOutput = 64 << 20

// MarkEnv is the variable by which the processes of one delivery of a call are known, whatever group or session they have moved to.
const MarkEnv = "PASSBOOK_DELIVERY"

// Command is one call of an agent. Paths are absolute.
type Command struct {
	Argv     []string
	Env      []string          // names of variables it may see beside the usual ones
	From     []string          // KEY=value: where their values come from; nil means os.Environ()
	ExtraEnv map[string]string // set whatever From says
	Dir      string            // its scratch directory, made by the caller
	Prompt   string            // a regular file, its standard input
	Stdout   string            // created; must not be there yet, so no earlier answer is overwritten
	Stderr   string            // likewise
	Mark     string            // in its environment as MarkEnv: what a lost supervisor has left is found by it; used once
	Timeout  time.Duration     // of the process, on the monotonic clock; 0 is none
	Idle     time.Duration     // without output; 0 is none
	Output   int64             // bytes of stdout, and of stderr; 0 is DefaultOutput
	Grace    time.Duration     // between SIGTERM and SIGKILL; 0 is DefaultGrace
}

// check says what is wrong with a command before anything is created.
func (c Command) check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("start agent: no program is given; name one under agent.run in the pipeline file")
	}
	for what, path := range map[string]string{"scratch directory": c.Dir, "prompt": c.Prompt, "stdout": c.Stdout, "stderr": c.Stderr} {
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

// Find returns nil if the program of the command is there. One that is named relative to its directory is only found there.
func (c Command) Find() error {
	name := c.Argv[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return nil
	}
	_, err := lookPath(name, c.Dir, c.Environ())
	return err
}

// call is the command as its supervisor gets it.
func (c Command) call() (supervisor.Call, error) {
	if err := c.check(); err != nil {
		return supervisor.Call{}, err
	}
	program, err := lookPath(c.Argv[0], c.Dir, c.Environ())
	return supervisor.Call{
		Path: program, Argv: c.Argv, Dir: c.Dir, Stdin: c.Prompt, Stdout: c.Stdout, Stderr: c.Stderr,
		Timeout: c.Timeout, Idle: c.Idle, Output: cmp.Or(c.Output, DefaultOutput), Grace: cmp.Or(c.Grace, DefaultGrace),
	}, err
}

// open makes sure of the prompt, and makes the files of the output.
func (c Command) open() error {
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
