package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// outputSlot waits until no other large output is read, if that of the call is large.
func (a *Activities) outputSlot(ctx context.Context, st *runningCall) (free func(), err error) {
	const large = 1 << 20
	size := int64(0)
	for _, path := range []string{
		filepath.Join(st.dir, calls.StdoutFile), filepath.Join(st.dir, calls.StderrFile), st.file,
	} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			size = max(size, info.Size())
		}
	}
	if size <= large {
		return func() {}, nil
	}
	return a.slots.outputs.acquire(ctx)
}

// storeFile stores the artifact if the agent changed it in its working directory.
func (st *runningCall) storeFile(ctx context.Context, ans *calls.Answer) error {
	if st.file == "" {
		return nil
	}
	problem, err := calls.CheckWorkDir(st.work)
	var now []byte
	if problem == "" && err == nil {
		now, problem, err = st.readArtifact()
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

// readArtifact reads the artifact file in the working directory.
func (st *runningCall) readArtifact() (data []byte, problem string, err error) {
	root, err := os.OpenRoot(st.work)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return calls.ReadFileIn(root, filepath.Base(st.file), int64(st.limits.Output))
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
	for _, words := range append(res.Texts(), &res.Diagnostics) {
		limitText(words)
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
	if none := (*noAnswerError)(nil); errors.As(err, &none) || len(calls.FinishedDeliveries(a.cfg.Scratch, call)) == 0 {
		return err
	}
	err = volume.Explain(err) // here, since Temporal reads type and details only from an unwrapped error
	return temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrUnstored, temporal.ApplicationErrorOptions{
		Cause: err, Details: []any{contract.Heartbeat{Host: a.cfg.Host, Call: call}},
	})
}
