package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store/tree"
	"github.com/passbook-run/passbook/volume"
	"github.com/passbook-run/passbook/work"
)

// maxLeft is how much is read of one file that an agent leaves.
const maxLeft = 64 << 20

// outputs are what a finished child has printed. odd says why stdout is not all of that: it belongs to the answer, which is paid for.
type outputs struct {
	stdout, stderr []byte
	odd            string
}

func outputsOf(dir string) (out outputs, err error) {
	if out.stdout, out.odd, err = readLeft(dir, stdoutFile); errors.Is(err, fs.ErrNotExist) {
		out.odd, err = stdoutFile+": no such file", nil
	}
	if err != nil {
		return out, err
	}
	out.stderr, _, err = readLeft(dir, stderrFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return out, err
}

// readLeft reads a file that an agent left below dir, without waiting for a pipe or leaving dir through a symlink. odd says what is wrong with it; what
// could be read of it is in data. An error is the machine's, or fs.ErrNotExist.
func readLeft(dir, name string) (data []byte, odd string, err error) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer func() { _ = root.Close() }()
		data, odd, err = readBelow(root, name)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || tree.Passing(err) {
		return data, odd, err
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return data, name + ": " + err.Error(), nil
}

func readBelow(root *os.Root, name string) (data []byte, odd string, err error) {
	fi, err := root.Stat(name)
	if err != nil {
		return nil, "", err
	}
	if !fi.Mode().IsRegular() {
		return nil, name + " is " + kindOf(fi.Mode()), nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxLeft+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, "", err
	}
	if len(data) > maxLeft {
		data, odd = data[:maxLeft], fmt.Sprintf("%s is larger than %d MiB", name, maxLeft>>20)
	}
	return data, odd, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}

// workingDir says what is wrong with the agent's working directory as it left it; empty: nothing. An error is the machine's, or fs.ErrNotExist.
func workingDir(dir string) (odd string, err error) {
	fi, err := os.Lstat(filepath.Join(dir, workDir))
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return "the scratch directory is not a directory", nil
	case err != nil:
		return "", err
	case !fi.IsDir():
		return "the working directory is not a directory: it is " + kindOf(fi.Mode()), nil
	}
	return "", nil
}

// takeFile stores the artifact if the agent changed it in its working directory.
func (st *settlement) takeFile(ctx context.Context, ans *answer) error {
	if st.file == "" {
		return nil
	}
	odd, err := workingDir(st.dir)
	var now []byte
	if odd == "" && err == nil {
		now, odd, err = readLeft(filepath.Join(st.dir, workDir), filepath.Base(st.file))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the artifact: %w", err)
	case odd == "" && bytes.Equal(now, st.before):
		return nil
	case odd == "" && !utf8.Valid(now):
		odd = filepath.Base(st.file) + " is not UTF-8 text"
	}
	if odd != "" {
		ans.FileError = odd
		return nil
	}
	b, err := keepData(ctx, st.l.s, now)
	ans.File = &b
	return err
}

// clearPipes removes what git would wait for, where it looks for rules and in its own folder: pipes and devices are no part of a tree. What cannot be
// looked into here is judged when the tree is stored.
func clearPipes(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		below := strings.TrimPrefix(path, dir+"/")
		if err != nil || e.Name() != ".gitignore" && below != ".git" && !strings.HasPrefix(below, ".git/") {
			return nil
		}
		if fi, err := os.Stat(path); err == nil && !fi.IsDir() && !fi.Mode().IsRegular() {
			return os.Remove(path)
		}
		return nil
	})
}

// oddOutput is the failure of an attempt whose output is not what the agent printed, or not all of it; nil: it is.
func oddOutput(ans *answer, read int) *agent.Failure {
	if ans.StdoutError == "" {
		return nil
	}
	f := &agent.Failure{Category: agent.OutputEmpty, Message: "the agent's output cannot be read: " + shortened(ans.StdoutError), ExitCode: ans.Exit.Code}
	if read > 0 {
		f.Category = agent.OutputTruncated
	}
	return f
}

// readPass reads a reply. A file that cannot be the artifact is an outcome: the agent meant to change it.
func readPass(role pipeline.Role, notes []pipeline.Note, ans *answer, reply string, file, before []byte) pass.Reading {
	got := pass.Read(role, notes, reply, file, before)
	if ans.FileError == "" || role.Gives != pipeline.GivesArtifact {
		return got
	}
	got.Outcome, got.Message = pass.OutputNoArtifact, "the artifact that the agent left cannot be used: "+shortened(ans.FileError)
	got.Artifact, got.Modified, got.Validation.Passed = nil, false, false
	return got
}

// wordLimit bounds each text of a result, in bytes: whatever a reply holds, Temporal takes its result.
const wordLimit = 16 << 10

func bound(words *string) {
	if len(*words) > wordLimit {
		*words = shortened(*words)
	}
}

// boundAll bounds the texts of a result that come from an agent.
func boundAll(res *work.PassResult) {
	for _, words := range []*string{&res.Message, &res.Diagnostics, &res.ScoreWhy, &res.Verdict} {
		bound(words)
	}
	for i := range res.Validation.Checks {
		bound(&res.Validation.Checks[i].Detail)
	}
	for i := range res.Validation.Warnings {
		bound(&res.Validation.Warnings[i])
	}
}

func boundSpend(s run.Spend) run.Spend {
	bound(&s.Model)
	return s
}

// held names this host in the error of a call whose finished child only this host can read: the call goes there again, and is made nowhere else.
func (a *Activities) held(call string, err error) error {
	if app := (*temporal.ApplicationError)(nil); err == nil || temporal.IsCanceledError(err) || errors.Is(err, context.Canceled) || errors.As(err, &app) {
		return err
	}
	if none := (*unanswered)(nil); errors.As(err, &none) || len(a.finishedHere(call)) == 0 {
		return err
	}
	err = volume.Explain(err) // here, as Temporal takes kind and details only from an error that nothing wraps
	return temporal.NewApplicationErrorWithOptions(err.Error(), work.ErrUnstored, temporal.ApplicationErrorOptions{
		Cause: err, Details: []any{work.Heartbeat{Host: a.cfg.Host, Call: call}},
	})
}
