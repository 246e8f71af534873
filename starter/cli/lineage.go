package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
)

// lineageReport is `lineage --json`.
type lineageReport struct {
	ThreadID string           `json:"thread_id"` // of the first run
	Runs     []operate.Branch `json:"runs"`
	Problem  string           `json:"problem"` // why Temporal was not asked; the tree is then of the directories on this host
}

func (a *app) lineage() *cobra.Command {
	var dir string
	var dot, asJSON, offline bool
	cmd := a.target(&cobra.Command{
		Use: "lineage [RUN]", Short: "The runs that a run comes of, and those that were made of it: replays, forks, follow-ups",
		Long: `Draw the family of a run: where it comes from, and every replay, fork and follow-up. Nothing of this is written into a source: it is found by what
each run says of its own origin. No server is started, and none is needed.

` + exitCodesHelp,
		Example: "  starter lineage RUN\n  starter lineage RUN --dot | dot -Tsvg > lineage.svg",
	}, &dir)
	cmd.Flags().BoolVar(&dot, "dot", false, "as a graph for Graphviz")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask Temporal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		claim, err := d.Claim()
		if err != nil {
			return err
		}
		list, err := a.runs(cmd.Context(), listOptions{filter: operate.Filter{Thread: claim.ThreadID}, offline: offline})
		if err != nil {
			return err
		}
		r := lineageReport{ThreadID: claim.ThreadID, Runs: operate.Lineage(list.Runs), Problem: list.Problem}
		switch {
		case asJSON:
			return a.json(r)
		case dot:
			a.printDot(r.Runs, claim.RunID)
			return nil
		}
		a.printLineage(r, claim.RunID)
		return nil
	}
	return cmd
}

// printLineage draws the tree.
func (a *app) printLineage(r lineageReport, asked string) {
	var draw func(b operate.Branch, first, rest string)
	draw = func(b operate.Branch, first, rest string) {
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

// origin says how a run comes of the one above it.
func origin(r operate.Row) string {
	switch r.Mode {
	case "":
		return ""
	case run.ModeFork, run.ModeReplay:
		return r.Mode + " of " + r.Checkpoint + ": "
	}
	return strings.ReplaceAll(r.Mode, "_", " ") + ": "
}

func lineageWords(r operate.Row) string {
	words := fmt.Sprintf("%.8s  %s  %s", r.RunID, r.Pipeline, listedStatus(r))
	if p := progressWords(r); p != "-" {
		words += "  " + p
	}
	words += "  " + usd(r.CostUSD)
	if r.Score != nil {
		words += "  score " + listedScore(r)
	}
	return words
}

// printDot draws the tree for Graphviz.
func (a *app) printDot(top []operate.Branch, asked string) {
	fmt.Fprintln(a.out, "digraph lineage {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];")
	var draw func(b operate.Branch)
	draw = func(b operate.Branch) {
		look := ""
		if b.RunID == asked {
			look = ", penwidth=2"
		}
		label := fmt.Sprintf("%.8s\n%s\n%s %s", b.RunID, b.Pipeline, listedStatus(b.Row), usd(b.CostUSD))
		fmt.Fprintf(a.out, "  %s [label=%s%s];\n", strconv.Quote(b.RunID), strconv.Quote(label), look)
		for _, child := range b.Branches {
			fmt.Fprintf(a.out, "  %s -> %s [label=%s];\n", strconv.Quote(b.RunID), strconv.Quote(child.RunID), strconv.Quote(strings.TrimSuffix(origin(child.Row), ": ")))
			draw(child)
		}
	}
	for _, b := range top {
		draw(b)
	}
	fmt.Fprintln(a.out, "}")
}
