package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
)

func (a *app) remove() *cobra.Command {
	var r operate.Removal
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use: "remove RUN...", Short: "List everything that runs have left, and remove it with --yes", Aliases: []string{"rm"},
		Long: `Remove runs: their workflow executions in Temporal, their git worktree and branch, the scratch folders of their calls, their directory, and their entry
in the list. What only they need in the store is released: starter store gc deletes it. Without --yes everything is listed, and nothing is changed.

RUN is an id, the beginning of one, or a directory. The directory may have been deleted by hand; what else there is of the run is removed then.

Removed is what the run has made, and nothing else: another file in its directory is named and stays, and so does the directory then. Links are not
followed. A run that is live, paused or waiting is refused; end it first (starter cancel). So is a run whose branch has commits that are on no other
branch or tag, whose workspace or artifact has changes that the run has not made, or whose checkout cannot be compared with its repository: --discard
removes it all the same, and --keep-branch leaves the branch. If one of several runs is refused, none is removed. Runs that were forked, replayed or
followed up from a removed run keep what they need of it in the store.

If Temporal does not answer, nothing is removed. With --offline it is not asked: a run that is recorded as over is removed from this host and released
in the store, and its workflow executions stay until their retention ends. If a part cannot be removed, the error lists what is removed and what is not
(exit code 1). The same command removes the rest, also after a removal that was interrupted.

` + exitCodesHelp,
		Example: "  starter remove RUN              # list what would be removed\n  starter remove RUN --yes        # remove it\n  starter store gc --delete       # delete what it had in the store",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return asUsage(errors.New("say which runs: remove RUN..., by id or directory"))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&r.Offline, "offline", false, "do not ask Temporal, and leave the workflow executions there")
	cmd.Flags().BoolVar(&r.KeepBranch, "keep-branch", false, "leave the run's branch in the repository")
	cmd.Flags().BoolVar(&r.Discard, "discard", false, "also lose commits and changes that exist nowhere else")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.Runs = args
		o, done, err := a.remover(cmd.Context(), r.Offline)
		if err != nil {
			return err
		}
		defer done()
		var all []operate.Removable
		if yes {
			all, err = o.Remove(cmd.Context(), r)
		} else if all, err = o.Removables(cmd.Context(), r); err == nil {
			err = operate.Refusals(all)
		}
		switch {
		case asJSON:
			err = errors.Join(a.jsonRemoval(cmd.Context(), all, yes), err)
		case yes:
			a.printRemoved(all, err)
		default:
			a.printRemovables(cmd.Context(), all, r, err)
		}
		return a.missingRun(err)
	}
	return cmd
}

// remover is an operator with a connection, or without one. The embedded server is started if it does not run; no worker is.
func (a *app) remover(ctx context.Context, offline bool) (operate.Operator, func(), error) {
	if offline {
		host, err := local.HostID(a.settings.StateDir)
		return operate.Operator{Settings: a.settings, Host: host, By: who()}, func() {}, err
	}
	s, err := a.connect(ctx, false)
	if err != nil {
		return operate.Operator{}, nil, fmt.Errorf("nothing was removed: %w\nTo leave the workflow executions there and remove only what is on this host and in the store: --offline", err)
	}
	return s.Operator, func() { _ = s.Close() }, nil
}

// missingRun says which run may have been meant.
func (a *app) missingRun(err error) error {
	var name *operate.NameError
	if errors.As(err, &name) && len(name.Found) == 0 {
		if hint := a.nearRuns(name.What); hint != "" {
			return asUsage(fmt.Errorf("%w%s", err, hint))
		}
	}
	return err
}

// printRemovables is the dry run.
func (a *app) printRemovables(ctx context.Context, all []operate.Removable, r operate.Removal, err error) {
	for _, p := range all {
		a.printRemovable(p)
	}
	if len(all) == 0 {
		return
	}
	for _, f := range a.freedBy(ctx, all) {
		if f.Problem != "" {
			fmt.Fprintf(a.out, "How much of the store is then no longer needed is unknown: %s\n", f.Problem)
			continue
		}
		fmt.Fprintf(a.out, "In the store, only these runs need %s: %s store gc --delete then deletes what is older than 24 hours.\n", amount(f.Amount), program())
	}
	if err == nil {
		fmt.Fprintf(a.out, "Nothing was changed. To remove it: %s remove %s --yes\n", program(), shell.Line(removeArgs(r)...))
	}
}

// removeArgs are the arguments of a removal, before they are typed in a shell.
func removeArgs(r operate.Removal) []string {
	out := slices.Clone(r.Runs)
	for _, flag := range []struct {
		set  bool
		name string
	}{{r.Offline, "--offline"}, {r.KeepBranch, "--keep-branch"}, {r.Discard, "--discard"}} {
		if flag.set {
			out = append(out, flag.name)
		}
	}
	return out
}

func (a *app) printRemovable(p operate.Removable) {
	fmt.Fprintf(a.out, "Run %s (%s)\n", p.RunID, strings.Join(slices.DeleteFunc([]string{p.Pipeline, string(p.Standing.Status)}, func(s string) bool { return s == "" }), ", "))
	for _, part := range p.Parts {
		text := []string{part.Where}
		if part.Amount.Bytes > 0 {
			text = append(text, fmt.Sprintf("%d files, %s", part.Amount.Objects, size(part.Amount.Bytes)))
		}
		if part.Note != "" {
			text = append(text, part.Note)
		}
		fmt.Fprintf(a.out, "  %-11s  %s\n", part.What, strings.Join(text, "; "))
	}
	if len(p.Parts) == 0 {
		fmt.Fprintln(a.out, "  nothing is left of it here")
	}
	a.printKept(p)
}

func (a *app) printKept(p operate.Removable) {
	for _, k := range p.Kept {
		fmt.Fprintf(a.out, "  %-11s  %s\n", "stays", k)
	}
}

// freed is what a collection could delete in a store then that it cannot delete now.
type freed struct {
	Store string `json:"store"`
	operate.Amount
	Problem string `json:"problem"` // why it is not known; empty: it is
}

// freedBy asks each store once.
func (a *app) freedBy(ctx context.Context, all []operate.Removable) []freed {
	var ids []string
	out := []freed{}
	for _, p := range all {
		ids = append(ids, p.RunID)
		if !slices.ContainsFunc(out, func(f freed) bool { return f.Store == p.Store }) {
			out = append(out, freed{Store: p.Store})
		}
	}
	for i, f := range out {
		amount, err := a.freed(ctx, f.Store, ids)
		if out[i].Amount = amount; err != nil {
			out[i].Problem = err.Error()
		}
	}
	return out
}

func (a *app) freed(ctx context.Context, url string, ids []string) (operate.Amount, error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return operate.Amount{}, err
	}
	defer s.Close()
	return operate.Freed(ctx, s, operate.Collection{StateDir: a.settings.StateDir, Roots: []string{a.settings.RunRoot}, Now: time.Now()}, ids)
}

// removal is `starter remove --json`.
type removal struct {
	Applied bool         `json:"applied"` // false: a dry run
	Runs    []removalRun `json:"runs"`
	Freed   []freed      `json:"freed"` // of a dry run
}

type removalRun struct {
	RunID     string        `json:"run_id"`
	Pipeline  string        `json:"pipeline"`
	Directory string        `json:"directory"`
	Store     string        `json:"store"`
	Standing  run.Standing  `json:"standing"` // before
	Removed   bool          `json:"removed"`  // all parts
	Parts     []removalPart `json:"parts"`
	Kept      []string      `json:"kept"`
	Problems  []string      `json:"problems"`
}

type removalPart struct {
	What  string `json:"what"`
	Where string `json:"where"`
	operate.Amount
	Note    string `json:"note"`
	Removed bool   `json:"removed"`
}

func (a *app) jsonRemoval(ctx context.Context, all []operate.Removable, applied bool) error {
	out := removal{Applied: applied, Runs: []removalRun{}, Freed: []freed{}}
	if !applied {
		out.Freed = a.freedBy(ctx, all)
	}
	for _, p := range all {
		r := removalRun{
			RunID: p.RunID, Pipeline: p.Pipeline, Directory: p.Directory, Store: p.Store, Standing: p.Standing, Removed: applied && p.Removed(),
			Parts: []removalPart{}, Kept: p.Kept, Problems: []string{},
		}
		for _, part := range p.Parts {
			r.Parts = append(r.Parts, removalPart{What: part.What, Where: part.Where, Amount: part.Amount, Note: part.Note, Removed: part.Removed})
		}
		for _, problem := range p.Problems {
			r.Problems = append(r.Problems, problem.Error())
		}
		out.Runs = append(out.Runs, r)
	}
	return a.json(out)
}

// printRemoved says what is removed; what is not, the error says.
func (a *app) printRemoved(all []operate.Removable, err error) {
	if partly := (*operate.RemovalError)(nil); err != nil && !errors.As(err, &partly) {
		return
	}
	some := false
	for _, p := range all {
		if !p.Removed() {
			continue
		}
		fmt.Fprintf(a.out, "Run %s is removed.\n", p.RunID)
		a.printKept(p)
		some = true
	}
	if some {
		fmt.Fprintf(a.out, "What only it had in the store can be deleted when it is older than 24 hours: %s store gc --delete\n", program())
	}
}
