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

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// maxOutputFile is the maximum number of bytes read from a file that an agent wrote.
const maxOutputFile = 64 << 20

// outputs is the output of a finished child. odd describes why stdout is incomplete.
type outputs struct {
	stdout, stderr []byte
	problem        string
}

func outputsOf(dir string) (out outputs, err error) {
	if out.stdout, out.problem, err = readOutputFile(dir, calls.StdoutFile); errors.Is(err, fs.ErrNotExist) {
		out.problem, err = calls.StdoutFile+": no such file", nil
	}
	if err != nil {
		return out, err
	}
	out.stderr, _, err = readOutputFile(dir, stderrFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return out, err
}

// readOutputFile reads a file that an agent wrote below dir, without blocking on a pipe or following a symlink out of
// dir. odd describes a problem with the file; data is what could be read. err is fs.ErrNotExist or a problem of
// the host.
func readOutputFile(dir, name string) (data []byte, problem string, err error) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer func() { _ = root.Close() }()
		data, problem, err = readInRoot(root, name)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || tree.Passing(err) {
		return data, problem, err
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return data, name + ": " + err.Error(), nil
}

func readInRoot(root *os.Root, name string) (data []byte, problem string, err error) {
	fi, err := root.Stat(name)
	if err != nil {
		return nil, "", err
	}
	if !fi.Mode().IsRegular() {
		return nil, name + " is " + fileKind(fi.Mode()), nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxOutputFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, "", err
	}
	if len(data) > maxOutputFile {
		data, problem = data[:maxOutputFile], fmt.Sprintf("%s is larger than %d MiB", name, maxOutputFile>>20)
	}
	return data, problem, nil
}

func fileKind(mode fs.FileMode) string {
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

// checkWorkDir describes a problem with the agent's working directory; empty: none. err is fs.ErrNotExist or a
// problem of the host.
func checkWorkDir(dir string) (problem string, err error) {
	fi, err := os.Lstat(filepath.Join(dir, workDir))
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return "the scratch directory is not a directory", nil
	case err != nil:
		return "", err
	case !fi.IsDir():
		return "the working directory is not a directory: it is " + fileKind(fi.Mode()), nil
	}
	return "", nil
}

// storeFile stores the artifact if the agent changed it in its working directory.
func (st *runningCall) storeFile(ctx context.Context, ans *calls.Answer) error {
	if st.file == "" {
		return nil
	}
	problem, err := checkWorkDir(st.dir)
	var now []byte
	if problem == "" && err == nil {
		now, problem, err = readOutputFile(filepath.Join(st.dir, workDir), filepath.Base(st.file))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the artifact: %w", err)
	case problem == "" && bytes.Equal(now, st.before):
		return nil
	case problem == "" && !utf8.Valid(now):
		problem = filepath.Base(st.file) + " is not UTF-8 text"
	}
	if problem != "" {
		ans.FileError = problem
		return nil
	}
	b, err := blobs.Put(ctx, st.l.Store, now)
	ans.File = &b
	return err
}

// removePipes removes pipes and devices that git would block on in ignore rules and in .git: they are no part of a
// tree. Unreadable folders are reported when the tree is stored.
func removePipes(dir string) error {
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

// outputFailure returns the failure of an attempt whose output is missing or incomplete, or nil.
func outputFailure(ans *calls.Answer, read int) *agent.Failure {
	if ans.StdoutError == "" {
		return nil
	}
	category := run.CategoryOutputEmpty
	if read > 0 {
		category = run.CategoryOutputTruncated
	}
	return agent.NewFailure(category, "read the agent's output: "+shortened(ans.StdoutError), ans.Exit.Code)
}

// readPass reads a reply. An unusable artifact file is a failure: the agent meant to change it.
func readPass(role pipeline.Role, notes []pipeline.Note, ans *calls.Answer, reply string,
	file, before []byte) pass.Reading {
	got := pass.Read(role, notes, reply, file, before)
	if ans.FileError == "" || role.Gives != pipeline.GivesArtifact {
		return got
	}
	got.Outcome, got.Message = run.CategoryNoArtifact,
		"read the artifact that the agent wrote: "+shortened(ans.FileError)
	got.Artifact, got.Modified, got.Validation.Passed = nil, false, false
	return got
}

// maxResultText is the maximum size of a text in a result in bytes, so that Temporal accepts the result.
const maxResultText = 16 << 10

func limitText(words *string) {
	if len(*words) > maxResultText {
		*words = shortened(*words)
	}
}

// limitTexts limits the texts of a result that come from an agent.
func limitTexts(res *contract.PassResult) {
	for _, words := range []*string{&res.Message, &res.Diagnostics, &res.ScoreWhy, &res.Verdict} {
		limitText(words)
	}
	for i := range res.Validation.Checks {
		limitText(&res.Validation.Checks[i].Detail)
	}
	for i := range res.Validation.Warnings {
		limitText(&res.Validation.Warnings[i])
	}
}

func limitSpend(s run.Spend) run.Spend {
	limitText(&s.Model)
	return s
}

// withHost adds this host to the error of a call whose output only this host can read: the call is redelivered here.
func (a *Activities) withHost(call string, err error) error {
	if app := (*temporal.ApplicationError)(nil); err == nil || temporal.IsCanceledError(err) ||
		errors.Is(err, context.Canceled) || errors.As(err, &app) {
		return err
	}
	if none := (*noAnswerError)(nil); errors.As(err, &none) || len(a.finishedDeliveries(call)) == 0 {
		return err
	}
	err = volume.Explain(err) // here, since Temporal reads type and details only from an unwrapped error
	return temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrUnstored, temporal.ApplicationErrorOptions{
		Cause: err, Details: []any{contract.Heartbeat{Host: a.cfg.Host, Call: call}},
	})
}
