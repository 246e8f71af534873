package api

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"
	"time"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/scaffold"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// AdoptInput is the input of [Host.Adopt].
type AdoptInput struct {
	Session     string // id of the conversation
	Task        string // empty: the first message of the conversation
	Then        string // a pipeline; empty: the built-in one
	WhenLimited bool
}

// Conversations lists the conversations of claude and codex that were held in the repository of the current folder, the
// newest first.
func (h Host) Conversations(ctx context.Context) ([]sessions.Conversation, error) {
	r, err := hereRepository(ctx)
	if err != nil {
		return nil, err
	}
	var all []sessions.Conversation
	of := map[string]bool{}
	for _, name := range sessions.AdoptablePrograms {
		found, err := sessions.Program{Name: name, Environ: os.Environ()}.List(func(folder string) bool {
			if _, known := of[folder]; !known {
				of[folder] = operations.OfRepository(ctx, r.Root(), folder)
			}
			return of[folder]
		})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b sessions.Conversation) int { return b.At.Compare(a.At) })
	return all, nil
}

func hereRepository(ctx context.Context) (*git.Repo, error) {
	r, err := git.Open(ctx, ".")
	if err == nil {
		return r, nil
	}
	here, failed := os.Getwd()
	return nil, errors.Join(failed, &operations.SourceError{Source: here,
		Why: "adopt works on a git repository with a commit: " + err.Error()})
}

// Adopt returns the definition and the directory of the run that adopts a conversation. If there is such a run, they are
// those of that run.
func (h Host) Adopt(ctx context.Context, in AdoptInput) (def operations.Definition, dir string, err error) {
	if len(in.Task) > maxTask {
		return def, "", invalid("the task has %d bytes; the maximum is %d: put the rest into a file, and name it",
			len(in.Task), maxTask)
	}
	r, err := hereRepository(ctx)
	if err != nil {
		return def, "", err
	}
	if def, dir, err = h.adopted(in, r.Root()); dir != "" || err != nil {
		return def, dir, err
	}
	c, a, err := operations.FindConversation(in.Session, os.Environ())
	if err != nil {
		return def, "", err
	}
	if err := a.CheckPlace(ctx, c, r.Root()); err != nil {
		return def, "", err
	}
	task := in.Task
	if task == "" {
		task = c.First
	}
	if task == "" {
		return def, "", invalid("the conversation has no message of a user: name the task with %s", h.flag("task"))
	}
	if in.Then != "" {
		def, err = h.LoadFile(in.Then)
	} else {
		def, err = h.adoptDefinition(ctx, r, c)
	}
	if err != nil {
		return def, "", err
	}
	a.WhenLimited = in.WhenLimited
	def.Adopt = &a
	if err := def.CheckAdoption(); err != nil {
		return def, "", err
	}
	if err := def.Ask(task, r.Root(), "include"); err != nil {
		return def, "", &InputError{err}
	}
	if err := def.Give(nil, ""); err != nil {
		return def, "", &InputError{err}
	}
	def.Warnings = append(def.Warnings, adoptWarnings(c, in.WhenLimited, time.Now())...)
	return def, a.RunDir(h.Settings.RunRoot, r.Root()), nil
}

// adopted returns the definition of the run that has adopted a conversation, and its directory; empty: there is none.
func (h Host) adopted(in AdoptInput, root string) (def operations.Definition, dir string, err error) {
	for _, name := range sessions.AdoptablePrograms {
		a := operations.Adoption{Program: sessions.Program{Name: name}, ID: in.Session}
		d := rundir.At(a.RunDir(h.Settings.RunRoot, root))
		claim, err := d.Claim()
		if errors.Is(err, rundir.ErrNoRun) {
			continue
		}
		if err != nil {
			return def, "", err
		}
		if def, err = operations.LoadRun(d, price.With(h.Settings.Prices)...); err != nil {
			return def, "", nil //nolint:nilerr // it was only claimed: its start is repeated
		}
		meta, err := d.Meta()
		switch {
		case err == nil && in.Task != "" && in.Task != meta.State.Task:
			return def, "", invalid("run %s has adopted this conversation with another task: leave %s out to attach to it",
				claim.RunID, h.flag("task"))
		case in.Then != "":
			return def, "", invalid("run %s has adopted this conversation already: leave %s out to attach to it", claim.RunID,
				h.flag("then"))
		}
		return def, d.Root, nil
	}
	return def, "", nil
}

// adoptDefinition is the built-in pipeline for a conversation: with the tests that `starter init` finds, and a review of
// all changes since the conversation began.
func (h Host) adoptDefinition(ctx context.Context, r *git.Repo, c sessions.Conversation) (def operations.Definition, err error) {
	here, err := filepath.Abs(".")
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return def, err
	}
	below, err := filepath.Rel(r.Root(), here)
	if err != nil {
		return def, err
	}
	base, err := r.CommitAt(ctx, c.Began)
	if err != nil {
		return def, err
	}
	found := scaffold.Find(r.Root(), below)
	files, err := scaffold.Files(scaffold.Options{Kind: scaffold.Adopt(), Agent: c.Program, Setup: found.Setup,
		Verify: found.Test, Git: true, Base: base})
	if err != nil {
		return def, err
	}
	folder := fstest.MapFS{}
	for _, f := range files {
		folder[f.Path] = &fstest.MapFile{Data: f.Data, Mode: 0o600}
	}
	return operations.Load(folder, scaffold.Definition, "adopt/"+scaffold.Definition, price.With(h.Settings.Prices)...)
}

// adoptWarnings are what an operator may not expect of an adoption.
func adoptWarnings(c sessions.Conversation, whenLimited bool, now time.Time) (all []string) {
	if c.Damaged > 0 {
		all = append(all, run.Plural(c.Damaged, "line")+" of the conversation's file are damaged; the copy does without them")
	}
	switch holds := operations.Holds(c, now); {
	case holds && !whenLimited:
		all = append(all, "the conversation met a usage limit"+until(c.Limit.Until)+"; the run begins at once, and waits if "+
			"the limit still holds; with --when-limited it begins with the wait")
	case whenLimited && !holds:
		all = append(all, "the file of the conversation records no limit that still holds: the run begins at once, and waits "+
			"if its account is limited")
	}
	return all
}

func until(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " until " + run.Time(at)
}
