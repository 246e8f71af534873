package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// removable lists what a run has left, in the order of removal: first what can be refused, last what identifies the
// rest.
func (o Operator) removable(ctx context.Context, r Removal, s removed, all []removed) (Removable, error) {
	p := Removable{
		RunID: s.claim.RunID, Pipeline: s.claim.Pipeline, Directory: s.dir.Root, Store: s.store,
		EffectiveStatus: o.removedStatus(ctx, r, s),
		Kept:            []string{}, named: s.named, there: s.there,
	}
	o.mayRemove(&p, r, s)
	for _, step := range []func(context.Context, *Removable, Removal, removed, []removed) error{
		o.workflowParts, o.gitParts, o.workspaceParts, o.edits, o.scratchParts, o.environmentParts, o.sessionParts, o.storeParts,
		o.directoryParts,
		o.registryParts,
	} {
		if err := step(ctx, &p, r, s, all); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (o Operator) removedStatus(ctx context.Context, r Removal, s removed) run.EffectiveStatus {
	if r.Offline {
		return run.NewEffectiveStatus(s.state.Status, run.LiveUnknown, "Temporal was not asked")
	}
	return o.EffectiveStatus(ctx, s.seat(), s.state.Status)
}

// seat returns the claim of the run at its current host.
func (s removed) seat() run.Claim {
	if !s.there {
		return s.claim
	}
	return s.dir.CurrentClaim(s.claim)
}

// mayRemove records the problems of a removal, except those of the run's checkout.
func (o Operator) mayRemove(p *Removable, r Removal, s removed) {
	if host := s.seat().Host; host != "" && host != o.Host {
		p.refuse("its directory is on another host (%.8s): remove it there", host)
	}
	if of := run.OfLane(p.RunID); of != "" {
		p.refuse("it is a lane of run %s: remove that run", of)
	}
	if s.there {
		if err := AtHome(o.Settings.StateDir, s.claim, s.dir); err != nil {
			p.Problems = append(p.Problems, err)
		}
	}
	st := p.EffectiveStatus
	_, open := s.state.Asks()
	switch live := st.Liveness; {
	case live == run.LiveOpen && st.Recorded.Closed():
		p.unmet("it is %s, and its workflow is about to close: run the command again in a moment", st.Recorded)
	case live == run.LiveOpen:
		c := run.Conflict(st.Status, run.Remove, run.Terms{Undecided: open})
		p.Problems = append(p.Problems,
			&RefusedError{Verb: removeVerb, Why: fmt.Sprintf("it is %s. End it first: starter cancel %s", st.Status,
				p.RunID),
				Conflict: c})
	case live == run.LiveUnknown && !r.Offline:
		p.unmet("whether it is live is unknown (%s). Make that server reachable; or, if the run has ended, remove "+
			"only its data on this host and in the store: --offline", st.Detail)
	case live == run.LiveUnknown && !st.Recorded.Closed() && !s.begun:
		p.refuse("it is recorded as %s, and only Temporal knows whether it is live: run the command without --offline",
			st.Recorded)
	}
}

// scratchParts lists what the run's calls have left in scratch folders.
func (o Operator) scratchParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	scratch := o.Settings.Scratch()
	dirs, err := calls.Folders(scratch, p.RunID)
	if err != nil || len(dirs) == 0 {
		return err
	}
	var sum Amount
	for _, dir := range dirs {
		if err := measure(dir, &sum); err != nil {
			return err
		}
	}
	p.part("scratch", scratch, sum, "folders of "+counted(len(dirs), "call")+
		"; processes that still run there are ended",
		func(ctx context.Context) error {
			if err := calls.EndAll(ctx, scratch, p.RunID); err != nil {
				return err
			}
			for _, dir := range dirs {
				if err := os.RemoveAll(dir); err != nil {
					return err
				}
			}
			return nil
		})
	return nil
}

// counted is "1 call" or "2 calls".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// measure adds up the files below a folder.
func measure(root string, sum *Amount) error {
	return filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			sum.Objects++
			sum.Bytes += fi.Size()
		}
		return err
	})
}

// storeParts is the store's note of the removal, after which `store gc` removes what only this run needs. Other
// objects may be needed by other runs.
func (o Operator) storeParts(ctx context.Context, p *Removable, _ Removal, s removed, all []removed) error {
	if err := o.keptForOthers(p, all); err != nil {
		return err
	}
	blobs, err := OpenStore(ctx, s.store)
	if err != nil {
		return err
	}
	var n Amount
	for _, prefix := range []string{"calls/", "checkpoints/", "late/"} {
		names, err := blobs.List(ctx, prefix+p.RunID+"/")
		if err != nil {
			return err
		}
		n.Objects += len(names)
	}
	if s.begun {
		return nil
	}
	raw, err := json.Marshal(removalNote{Version: 1, Claim: s.claim, Directory: s.dir.Root, Workspace: s.work})
	if err != nil {
		return err
	}
	p.part("store", s.store, n,
		counted(n.Objects, "record")+" of calls and checkpoints, and the journal: released for starter store gc",
		func(ctx context.Context) error {
			blobs, err := OpenStore(ctx, s.store)
			if err != nil {
				return err
			}
			_, err = blobs.Create(ctx, removedPrefix+p.RunID, raw)
			return err
		})
	return nil
}

// keptForOthers lists the runs made from this one: `store gc` keeps what they need while they exist.
func (o Operator) keptForOthers(p *Removable, all []removed) error {
	rows, _, err := Here(o.Settings.StateDir, o.Settings.RunRoot)
	if err != nil {
		return err
	}
	var of []string
	for _, row := range rows {
		too := slices.ContainsFunc(all, func(s removed) bool { return s.claim.RunID == row.RunID })
		if comes := row.Source == p.RunID || row.ThreadID == p.RunID; comes && !too && row.RunID != p.RunID {
			mode := row.Mode
			if mode == "" {
				mode = "of its lineage"
			}
			of = append(of, fmt.Sprintf("%s (%s)", row.RunID, strings.ReplaceAll(mode, "_", "-")))
		}
	}
	if slices.Sort(of); len(of) > 0 {
		p.keep("calls, checkpoints and journal in the store, as long as these runs need them: %s",
			strings.Join(of, ", "))
	}
	return nil
}

// directoryParts returns the run directory, without files that the run did not create.
func (o Operator) directoryParts(_ context.Context, p *Removable, _ Removal, s removed, _ []removed) error {
	if s.dir.Root == "" {
		return nil
	}
	if !s.there {
		if left, err := s.dir.ReadDir("."); err == nil && len(left) == 0 {
			p.part("directory", s.dir.Root, Amount{}, "empty",
				func(context.Context) error { return rundir.RemoveEmpty(s.dir) })
		} else if err == nil {
			p.keep("%s: it has no %s of this run, so its files are not known to be the run's", s.dir.Root,
				rundir.ClaimFile)
		}
		return nil
	}
	c, err := rundir.ReadContents(s.dir)
	if err != nil {
		return err
	}
	for _, name := range c.Foreign {
		p.keep("%s: the run did not create it", s.dir.Path(name))
	}
	for _, name := range c.Archived {
		p.keep("%s: an earlier run of this directory; remove it separately", s.dir.Path(name))
	}
	if fi, err := os.Lstat(s.dir.Root); err == nil && fi.Mode().Type() == fs.ModeSymlink {
		p.keep("%s: a symbolic link; what it leads to is emptied", s.dir.Root)
	}
	p.part("directory", s.dir.Root, Amount{c.Files, c.Bytes}, "",
		func(context.Context) error { return s.dir.RemoveLocked() })
	return nil
}

// environmentParts returns the environment that the last start or resume passed to the run's calls.
func (o Operator) environmentParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	path, err := environ.Path(o.Settings.StateDir, p.RunID)
	if err == nil {
		_, err = os.Lstat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	p.part("environment", path, Amount{}, "variables handed over to its calls",
		func(context.Context) error { return environ.Remove(o.Settings.StateDir, p.RunID) })
	return nil
}

// sessionParts returns the conversations of roles that continue their session.
func (o Operator) sessionParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	dir, err := sessions.Dir(o.Settings.StateDir, p.RunID)
	if err != nil {
		return err
	}
	var sum Amount
	if err := measure(dir, &sum); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	p.part("sessions", dir, sum, "conversations of its roles",
		func(context.Context) error { return sessions.Remove(o.Settings.StateDir, p.RunID) })
	return nil
}

// registryParts returns the record by which this machine finds the run.
func (o Operator) registryParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	entry := indexEntry(o.Settings.StateDir, p.RunID)
	if _, err := os.Lstat(entry); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	p.part("registry", entry, Amount{}, "the entry of `starter list`", func(context.Context) error {
		if err := os.Remove(entry); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return nil
}
