package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// printLineage draws the tree of a run's source and of every replay, fork and follow-up, unless the run is alone in it.
func (a *app) printLineage(ctx context.Context, claim run.Claim) error {
	list, err := a.host().Runs(ctx, operations.Filter{ThreadID: claim.ThreadID}, false)
	if err != nil || len(list.Runs) < 2 {
		return err
	}
	var draw func(b operations.Branch, first, rest string)
	draw = func(b operations.Branch, first, rest string) {
		mark := ""
		if b.RunID == claim.RunID {
			mark = "  ←"
		}
		fmt.Fprintf(a.out, "%s%s%s%s\n", first, origin(b.Row), lineageText(b.Row), mark)
		for i, child := range b.Branches {
			if i == len(b.Branches)-1 {
				draw(child, rest+"└── ", rest+"    ")
			} else {
				draw(child, rest+"├── ", rest+"│   ")
			}
		}
	}
	fmt.Fprintln(a.out, "Lineage:")
	for _, b := range operations.Lineage(list.Runs) {
		draw(b, "  ", "  ")
	}
	return nil
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

func lineageText(r operations.Row) string {
	text := fmt.Sprintf("%.8s  %s  %s  %s", r.RunID, r.Pipeline, listedStatus(r), run.CostPhrase(r.CostUSD, r.Unknown))
	if r.Score != nil {
		text += "  score " + listedScore(r)
	}
	return text
}
