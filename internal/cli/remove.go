package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

func (a *app) remove() *cobra.Command {
	var r operations.Removal
	var yes bool
	cmd := &cobra.Command{
		Use: "remove RUN...", Short: "List what runs have left behind, and remove it with --yes",
		Aliases: []string{"rm"},
		Long: `Remove runs: their workflow executions in Temporal, workspace and branch, scratch folders, directory and list
entry. Data in the store that only they need is released for starter store gc. Without --yes everything is
listed, and nothing is changed.

RUN is an id, the beginning of one, or a directory. If the directory was deleted manually, the rest is removed.

Only what the run made is removed: other files in its directory are listed and stay, and so does the directory. Links
are not followed. An active, paused or waiting run is refused; cancel it first. A run is also refused if its branch
has commits that no other branch or tag contains, or if its workspace or artifact was changed manually: --discard
removes it anyway, and --keep-branch keeps the branch. If one run is refused, none is removed. Forks, replays and follow-ups keep what they need in the store.

If Temporal does not answer, nothing is removed. With --offline it is not asked: a finished run is removed from this
host and released in the store, and its executions stay until their retention ends. If a part cannot be removed, the
error lists what was removed and what was not (exit code 1). The same command removes the rest, also after an
interruption.`,
		Example: "  starter remove RUN              # list what would be removed\n" +
			"  starter remove RUN --yes        # remove it\n" +
			"  starter store gc --delete       # delete what it had in the store",
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it")
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVar(&r.Offline, "offline", false, "do not ask Temporal, and leave the workflow executions there")
	cmd.Flags().BoolVar(&r.KeepBranch, "keep-branch", false, "leave the run's branch in the repository")
	cmd.Flags().BoolVar(&r.Discard, "discard", false, "also lose commits and changes that exist nowhere else")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || slices.Contains(args, "") {
			return a.named(cmd, "")
		}
		r.Runs = args
		o, done, err := a.remover(cmd.Context(), r.Offline)
		if err != nil {
			return err
		}
		defer done()
		var all []operations.Removable
		if yes {
			all, err = o.Remove(cmd.Context(), r)
		} else if all, err = o.Removables(cmd.Context(), r); err == nil {
			err = operations.Refusals(all)
		}
		switch {
		case *asJSON:
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

// remover returns an operator, connected unless offline. It starts the embedded server if it does not run, but no
// worker.
func (a *app) remover(ctx context.Context, offline bool) (operations.Operator, func(), error) {
	if offline {
		id, err := host.HostID(a.settings.StateDir)
		return operations.Operator{Settings: a.settings, Host: id, By: host.User()}, func() {}, err
	}
	s, err := a.connect(ctx, false)
	if err != nil {
		return operations.Operator{}, nil, fmt.Errorf("nothing was removed: %w\n"+
			"To keep the workflow executions and remove only what is on this host and in the store: --offline", err)
	}
	return s.Operator, func() { _ = s.Close() }, nil
}

// missingRun suggests similar names for a run that is not found.
func (a *app) missingRun(err error) error {
	var name *operations.NameError
	if errors.As(err, &name) && len(name.Found) == 0 {
		if hint := a.nearRuns(name.What); hint != "" {
			return asUsage(fmt.Errorf("%w%s", err, hint))
		}
	}
	return err
}

// printRemovables prints a dry run.
func (a *app) printRemovables(ctx context.Context, all []operations.Removable, r operations.Removal, err error) {
	for _, p := range all {
		a.printRemovable(p)
	}
	if len(all) == 0 {
		return
	}
	for _, f := range a.freedBy(ctx, all) {
		if f.Problem != "" {
			fmt.Fprintf(a.out, "What it frees in the store cannot be computed: %s\n", f.Problem)
			continue
		}
		fmt.Fprintf(a.out,
			"In the store, only these runs need %s: %s store gc --delete then deletes it after 24 hours.\n",
			amount(f.Amount), program())
	}
	if err == nil {
		fmt.Fprintf(a.out, "Nothing was changed. To remove it: %s remove %s --yes\n", program(),
			shell.Line(removeArgs(r)...))
	}
}

// removeArgs returns the arguments of a removal, not yet quoted for a shell.
func removeArgs(r operations.Removal) []string {
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

func (a *app) printRemovable(p operations.Removable) {
	words := slices.DeleteFunc([]string{p.Pipeline, string(p.EffectiveStatus.Status)},
		func(s string) bool { return s == "" })
	fmt.Fprintf(a.out, "Run %s (%s)\n", p.RunID, strings.Join(words, ", "))
	for _, part := range p.Parts {
		text := []string{part.Where}
		if part.Amount.Bytes > 0 {
			text = append(text, fmt.Sprintf("%s, %s", run.Plural(part.Amount.Objects, "file"), size(part.Amount.Bytes)))
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

func (a *app) printKept(p operations.Removable) {
	for _, k := range p.Kept {
		fmt.Fprintf(a.out, "  %-11s  %s\n", "stays", k)
	}
}

// freed is the amount that a collection could delete in a store only after a removal.
type freed struct {
	Store string `json:"store"`
	operations.Amount
	Problem string `json:"problem"` // why it is unknown; empty: it is known
}

// freedBy asks each store once.
func (a *app) freedBy(ctx context.Context, all []operations.Removable) []freed {
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

func (a *app) freed(ctx context.Context, url string, ids []string) (operations.Amount, error) {
	s, err := operations.OpenStore(ctx, url)
	if err != nil {
		return operations.Amount{}, err
	}
	c := operations.Collection{StateDir: a.settings.StateDir, Roots: []string{a.settings.RunRoot}, Now: time.Now()}
	return operations.Freed(ctx, s, c, ids)
}

// removal is the output of `starter remove --json`.
type removal struct {
	Applied bool         `json:"applied"` // false: a dry run
	Runs    []removalRun `json:"runs"`
	Freed   []freed      `json:"freed"` // of a dry run
}

type removalRun struct {
	RunID           string              `json:"run_id"`
	Pipeline        string              `json:"pipeline"`
	Directory       string              `json:"directory"`
	Store           string              `json:"store"`
	EffectiveStatus run.EffectiveStatus `json:"standing"` // before
	Removed         bool                `json:"removed"`  // all parts
	Parts           []removalPart       `json:"parts"`
	Kept            []string            `json:"kept"`
	Problems        []string            `json:"problems"`
}

type removalPart struct {
	What  string `json:"what"`
	Where string `json:"where"`
	operations.Amount
	Note    string `json:"note"`
	Removed bool   `json:"removed"`
}

func (a *app) jsonRemoval(ctx context.Context, all []operations.Removable, applied bool) error {
	out := removal{Applied: applied, Runs: []removalRun{}, Freed: []freed{}}
	if !applied {
		out.Freed = a.freedBy(ctx, all)
	}
	for _, p := range all {
		r := removalRun{
			RunID: p.RunID, Pipeline: p.Pipeline, Directory: p.Directory, Store: p.Store, EffectiveStatus: p.EffectiveStatus,
			Removed: applied && p.Removed(),
			Parts:   []removalPart{}, Kept: p.Kept, Problems: []string{},
		}
		for _, part := range p.Parts {
			r.Parts = append(r.Parts, removalPart{
				What: part.What, Where: part.Where, Amount: part.Amount, Note: part.Note, Removed: part.Removed,
			})
		}
		for _, problem := range p.Problems {
			r.Problems = append(r.Problems, problem.Error())
		}
		out.Runs = append(out.Runs, r)
	}
	return a.json(out)
}

// printRemoved prints what was removed; the error reports the rest.
func (a *app) printRemoved(all []operations.Removable, err error) {
	if partly := (*operations.RemovalError)(nil); err != nil && !errors.As(err, &partly) {
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
		fmt.Fprintf(a.out, "To delete its data in the store after 24 hours: %s store gc --delete\n",
			program())
	}
}
