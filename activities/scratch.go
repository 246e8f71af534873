package activities

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// layOut makes the scratch directory of a delivery: the prompt, and beside the agent's working directory nothing it could hurt.
func (a *Activities) layOut(ctx context.Context, st *settlement, in work.PassInput, plan *pipeline.Plan, step pipeline.PlanStep, role pipeline.Role) error {
	dir := filepath.Join(st.dir, workDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	prompt, err := a.prompt(ctx, st.l.s, in)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(st.dir, promptFile), prompt, 0o600); err != nil {
		return err
	}
	if err := a.placeFile(ctx, st, in); err != nil {
		return err
	}
	if st.tree != nil {
		if err := a.layOutTree(ctx, st, dir); err != nil {
			return err
		}
	}
	if st.file != "" {
		if err := os.WriteFile(st.file, st.before, 0o600); err != nil {
			return err
		}
	}
	if !slices.Contains(plan.PartsOf(step, role.Name), pipeline.PartPictures) {
		return nil
	}
	return layOutPictures(ctx, st.l.s, in.Pictures, filepath.Join(dir, picturesDir))
}

// clear removes the scratch directory of a delivery that has no answer: half of one is none, and prompt and output lie there with all their secrets.
func clear(dir string) error {
	err := removeAll(dir)
	above := os.Remove(filepath.Dir(dir)) // the call's folder stays while another delivery is in it
	if errors.Is(above, syscall.ENOTEMPTY) || errors.Is(above, fs.ErrExist) || errors.Is(above, fs.ErrNotExist) {
		above = nil
	}
	return errors.Join(err, above)
}

// removeAll removes a folder, also where an agent took its own permissions away.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	opened := filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return errors.Join(err, opened)
	}
	return nil
}

// sweep removes the scratch directories of a call that has its answer. What cannot be removed is logged: the answer counts.
func (a *Activities) sweep(ctx context.Context, dir string) {
	a.warn(ctx, "the scratch directory of an answered call cannot be removed", dir, removeAll(dir))
}

func (a *Activities) warn(ctx context.Context, what, dir string, err error) {
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn(what+"; remove it by hand", "directory", dir, "error", err.Error())
	}
}

// prompt is what the agent is sent. Where secrets are hidden in the stored one, it is made again of what that was made of: never are they stored.
func (a *Activities) prompt(ctx context.Context, s *store.Store, in work.PassInput) ([]byte, error) {
	if in.Prompt.Raw == "" {
		return load(ctx, s, in.Prompt.Digest)
	}
	if in.Given == nil {
		return nil, badInput("secrets are hidden in the prompt %s, and what it was made of is not said", in.Prompt.Digest)
	}
	text, _, err := a.composed(ctx, s, work.ComposeInput{Store: in.Store, At: in.At, Given: *in.Given})
	if err != nil {
		return nil, err
	}
	if got := string(store.DigestOf([]byte(text))); got != in.Prompt.Raw {
		return nil, badInput("the prompt comes out otherwise than it was composed (%.12s, not %.12s): another build of the program? `starter resume` composes it anew", got, in.Prompt.Raw)
	}
	return []byte(text), nil
}

// placeFile says what form the reply has, where the agent finds the artifact if its step is given one, and what that held before.
func (a *Activities) placeFile(ctx context.Context, st *settlement, in work.PassInput) error {
	plan, err := a.plan(ctx, st.l.s, in.At.Plan)
	if err != nil {
		return err
	}
	_, _, step, role, err := find(plan, in.At)
	if err != nil {
		return err
	}
	ag, _ := agentOf(plan, step, role)
	st.kind = replyKind(ag)
	st.tree = treeOf(plan, role, in)
	if in.Artifact == nil || !slices.Contains(plan.PartsOf(step, role.Name), pipeline.PartArtifact) {
		return err
	}
	st.file = filepath.Join(st.dir, workDir, plan.Artifact.File)
	st.before, err = load(ctx, st.l.s, in.Artifact.Digest)
	return err
}

func layOutPictures(ctx context.Context, s *store.Store, manifest *run.Blob, dir string) error {
	shots, err := readShots(ctx, s, manifest)
	if err != nil || len(shots) == 0 {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, shot := range shots {
		if err := fetch(ctx, s, shot.Digest, filepath.Join(dir, shot.Name)); err != nil {
			return err
		}
	}
	return nil
}

// fetch writes a blob to a scratch file. It need not survive a crash.
func fetch(ctx context.Context, s *store.Store, digest, path string) error {
	raw, err := load(ctx, s, digest)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// answerFrom stores what a finished delivery left, and what it holds: that is read here, from the bytes as they came, before anything is hidden in them.
func (a *Activities) answerFrom(ctx context.Context, st *settlement, in work.PassInput, exit agent.Exit, out outputs) (*answer, error) {
	stdout, stderr := string(out.stdout), string(out.stderr)
	ans := &answer{Version: answerVersion, Call: st.l.call, Delivery: st.number, Host: a.cfg.Host, Exit: exit, Prompt: in.Prompt.Original(), StdoutError: out.odd}
	var err error
	if ans.Stdout, err = a.keep(ctx, st.l.s, stdout); err != nil {
		return nil, err
	}
	if ans.Stderr, err = a.keep(ctx, st.l.s, stderr); err != nil {
		return nil, err
	}
	if ans.Envelope, err = a.keepEnvelope(ctx, st.l.s, st.kind, out.stdout); err != nil {
		return nil, err
	}
	if err := a.takeTree(ctx, st, ans); err != nil {
		return nil, err
	}
	if err := st.takeFile(ctx, ans); err != nil {
		return nil, err
	}
	a.hideAll(&ans.StdoutError, &ans.FileError, &ans.TreeError)
	ans.Read, err = a.reading(ctx, st.l.s, in, ans, stdout, stderr)
	return ans, err
}
