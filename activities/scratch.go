package activities

import (
	"context"
	"os"
	"path"
	"path/filepath"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// prepareScratch prepares the directory of a delivery, with its prompt, and the agent's working directory.
func (a *Activities) prepareScratch(ctx context.Context, st *runningCall, in contract.PassInput,
	by process.Identity) error {
	if err := calls.CreateFolder(st.dir, filepath.Join(st.dir, calls.WorkDir)); err != nil {
		return err
	}
	prompt, err := a.prompt(ctx, st.l.Store, in)
	if err != nil {
		return err
	}
	switch {
	case st.session.Prior() && st.folder == nil:
		prompt = append(moved(st.session), prompt...)
	case st.session != nil && !st.session.Prior():
		prompt = continuation(st.session)
	}
	if err := os.WriteFile(filepath.Join(st.dir, calls.PromptFile), prompt, 0o600); err != nil {
		return err
	}
	if st.folder != nil {
		if err := a.enterFolder(ctx, st, in, by); err != nil {
			return err
		}
	} else if st.session != nil && !st.session.Prior() {
		return nil // everything is in the directory of the session
	}
	if st.command() && st.folder == nil {
		return writeInputs(ctx, st.l.Store, in, st.artifact(), st.work)
	}
	if st.file != "" {
		if err := workspace.WriteBelow(st.work, filepath.Base(st.file), st.before, 0o600); err != nil {
			return err
		}
	}
	if !st.gets(pipeline.PartPictures) {
		return nil
	}
	return writePictures(ctx, st.l.Store, in.Pictures, st.work)
}

// removeCallScratch removes the scratch directories of an answered call, and what earlier tries left for their
// sessions. The directory of its session stays if it was interrupted. Errors are logged: the answer counts.
func (a *Activities) removeCallScratch(ctx context.Context, st *runningCall, ans *calls.Answer) {
	keep, dir := ans.Session.WorkDir(), filepath.Dir(st.dir)
	a.warn(ctx, "remove the scratch directory of an answered call", dir, calls.RemoveExcept(dir, keep))
	a.removeEarlier(ctx, st, keep)
}

func (a *Activities) warn(ctx context.Context, what, dir string, err error) {
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn(what+" failed; remove it manually", "directory", dir, "error", err.Error())
	}
}

// prompt returns the prompt to send. If the stored one is redacted, it is composed again: secrets are never
// stored.
func (a *Activities) prompt(ctx context.Context, s *store.Store, in contract.PassInput) ([]byte, error) {
	if in.Prompt.Raw == "" {
		return blobs.Get(ctx, s, in.Prompt.Digest)
	}
	if in.Context == nil {
		return nil, badInput("send prompt %s: it is redacted and its parts are missing", in.Prompt.Digest)
	}
	text, _, err := a.composePrompt(ctx, s, contract.ComposeInput{Store: in.Store, At: in.At, Context: *in.Context})
	if err != nil {
		return nil, err
	}
	if got := string(store.DigestOf([]byte(text))); got != in.Prompt.Raw {
		return nil, badInput("compose the prompt again: got %.12s, want %.12s; the program may have changed: "+
			"run `starter resume %s` to compose it anew", got, in.Prompt.Raw, shell.Quote(runIDOf(ctx, in)))
	}
	return []byte(text), nil
}

// writeInputs writes the artifact and the notes for a command without a workspace. Its changes are dropped.
func writeInputs(ctx context.Context, s *store.Store, in contract.PassInput, artifact, dir string) error {
	files := map[string]string{}
	for _, n := range in.Notes {
		files[n.File] = n.Whole.Digest
	}
	if in.Artifact != nil {
		files[artifact] = in.Artifact.Digest
	}
	for name, digest := range files {
		if digest == "" { // notes without an entry
			continue
		}
		if err := writeBlob(ctx, s, digest, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// picturePaths returns where a call gets its pictures, below its working directory.
func picturePaths(ctx context.Context, s *store.Store, manifest *run.Blob) (paths []string, err error) {
	shots, err := readShots(ctx, s, manifest)
	for _, shot := range shots {
		paths = append(paths, path.Join(picturesDir, shot.Name))
	}
	return paths, err
}

func writePictures(ctx context.Context, s *store.Store, manifest *run.Blob, dir string) error {
	shots, err := readShots(ctx, s, manifest)
	if err != nil || len(shots) == 0 {
		return err
	}
	for _, shot := range shots {
		raw, err := blobs.Get(ctx, s, shot.Digest)
		if err != nil {
			return err
		}
		if err := workspace.WriteBelow(dir, path.Join(picturesDir, shot.Name), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeBlob writes a blob to a scratch file. It need not survive a crash.
func writeBlob(ctx context.Context, s *store.Store, digest, path string) error {
	raw, err := blobs.Get(ctx, s, digest)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// newAnswer stores the output of a finished delivery and reads it from the original bytes, before redaction.
func (a *Activities) newAnswer(ctx context.Context, st *runningCall, in contract.PassInput, exit agent.Exit,
	out calls.Outputs) (*calls.Answer, error) {
	stdout, stderr := string(out.Stdout), string(out.Stderr)
	ans := &calls.Answer{
		Version: calls.AnswerVersion, Call: st.l.Call, Delivery: st.number, Host: a.cfg.Host, Exit: exit, Reply: st.kind,
		Prompt: in.Prompt.Original(), StdoutError: out.Problem,
	}
	var err error
	if ans.Stdout, err = a.storeText(ctx, st.l.Store, stdout); err != nil {
		return nil, err
	}
	if ans.Stderr, err = a.storeText(ctx, st.l.Store, stderr); err != nil {
		return nil, err
	}
	if ans.Envelope, err = a.storeEnvelope(ctx, st.l.Store, st.kind, out.Stdout); err != nil {
		return nil, err
	}
	ans.Tools, ans.Setup = a.toolUses(st.kind, out.Stdout), setupOf(st.dir)
	if kept, err := os.ReadFile(filepath.Join(st.dir, keptFile)); err == nil {
		ans.Notes = append(ans.Notes, string(kept))
	}
	if err := a.storeWorkspace(ctx, st, ans); err != nil {
		return nil, err
	}
	if err := st.storeFile(ctx, ans); err != nil {
		return nil, err
	}
	a.redactAll(&ans.StdoutError, &ans.FileError, &ans.TreeError)
	ans.Read, err = a.readAnswer(ctx, st.l.Store, st.place, in, ans, stdout, stderr)
	return ans, err
}
