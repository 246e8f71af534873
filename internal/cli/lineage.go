package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// lineageReport is the output of `lineage --json`.
type lineageReport struct {
	ThreadID string              `json:"thread_id"` // of the first run
	Runs     []operations.Branch `json:"runs"`
	Problem  string              `json:"problem"` // why only directories on this host are included
}

func (a *app) lineage() *cobra.Command {
	var dot, offline bool
	cmd := &cobra.Command{
		Use: "lineage [RUN]", Short: "Show the runs that a run was made from, and those made from it",
		Long: `Show the lineage of a run: its source, and every replay, fork and follow-up. Each run records its own source.
No server is needed, and none is started.`,
		Example: "  starter lineage RUN\n  starter lineage RUN --dot | dot -Tsvg > lineage.svg",
	}
	cmd.Flags().BoolVar(&dot, "dot", false, "as a graph for Graphviz")
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask Temporal")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		claim, err := d.Claim()
		if err != nil {
			return err
		}
		list, err := a.host().Runs(ctx, operations.Filter{ThreadID: claim.ThreadID}, offline)
		if err != nil {
			return err
		}
		r := lineageReport{ThreadID: claim.ThreadID, Runs: operations.Lineage(list.Runs), Problem: list.Problem}
		switch {
		case *asJSON:
			return a.json(r)
		case dot:
			a.printDot(r.Runs, claim.RunID)
			return nil
		}
		a.printLineage(r, claim.RunID)
		return nil
	})
}

// printLineage draws the tree.
func (a *app) printLineage(r lineageReport, asked string) {
	var draw func(b operations.Branch, first, rest string)
	draw = func(b operations.Branch, first, rest string) {
		mark := ""
		if b.RunID == asked {
			mark = "  ←"
		}
		fmt.Fprintf(a.out, "%s%s%s%s\n", first, origin(b.Row), lineageWords(b.Row), mark)
		if b.Directory != "" {
			bar := "  "
			if len(b.Branches) > 0 {
				bar = "│ "
			}
			fmt.Fprintf(a.out, "%s%s%s\n", rest, bar, b.Directory)
		}
		for i, child := range b.Branches {
			if i == len(b.Branches)-1 {
				draw(child, rest+"└── ", rest+"    ")
			} else {
				draw(child, rest+"├── ", rest+"│   ")
			}
		}
	}
	for _, b := range r.Runs {
		draw(b, "", "")
	}
	if r.Problem != "" {
		fmt.Fprintf(a.out, "\nStatus as recorded, and only runs with a directory on this host (%s).\n", r.Problem)
	}
}

// origin describes how a run was made from its source.
func origin(r operations.Row) string {
	switch r.Mode {
	case "":
		return ""
	case run.ModeFork, run.ModeReplay:
		return r.Mode + " of " + r.Checkpoint + ": "
	}
	return strings.ReplaceAll(r.Mode, "_", " ") + ": "
}

func lineageWords(r operations.Row) string {
	words := fmt.Sprintf("%.8s  %s  %s", r.RunID, r.Pipeline, listedStatus(r))
	if p := progressWords(r); p != "-" {
		words += "  " + p
	}
	words += "  " + run.CostPhrase(r.CostUSD, r.Unknown)
	if r.Score != nil {
		words += "  score " + listedScore(r)
	}
	return words
}

// printDot draws the tree for Graphviz.
func (a *app) printDot(top []operations.Branch, asked string) {
	fmt.Fprintln(a.out, "digraph lineage {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];")
	var draw func(b operations.Branch)
	draw = func(b operations.Branch) {
		look := ""
		if b.RunID == asked {
			look = ", penwidth=2"
		}
		label := fmt.Sprintf("%.8s\n%s\n%s %s", b.RunID, b.Pipeline, listedStatus(b.Row),
			run.CostPhrase(b.CostUSD, b.Unknown))
		fmt.Fprintf(a.out, "  %s [label=%s%s];\n", strconv.Quote(b.RunID), strconv.Quote(label), look)
		for _, child := range b.Branches {
			label := strings.TrimSuffix(origin(child.Row), ": ")
			fmt.Fprintf(a.out, "  %s -> %s [label=%s];\n",
				strconv.Quote(b.RunID), strconv.Quote(child.RunID), strconv.Quote(label))
			draw(child)
		}
	}
	for _, b := range top {
		draw(b)
	}
	fmt.Fprintln(a.out, "}")
}
