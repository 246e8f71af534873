package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/markdown"
	"github.com/passbook-run/passbook/internal/watch"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// records reads what the list of a screen shows.
type records struct {
	a *app
	d rundir.Dir
}

func costOf(p api.PassLine) string {
	spent := run.Spend{USD: p.CostUSD, Known: run.CostKnown(p.Known)}
	return run.CostPhrase(spent.USD, spent.UnknownCalls())
}

// mostShown is the maximum size of a text on a screen, in bytes.
const mostShown = 1 << 20

func (r records) Passes(context.Context) ([]watch.Pass, error) {
	all, err := api.PassesOf(r.d)
	var out []watch.Pass
	for _, p := range all {
		out = append(out, watch.Pass{Seq: p.Seq, Stage: p.Stage, Round: p.Round, Name: p.Name(), OK: p.Outcome == string(run.CategoryOK),
			Outcome: p.Outcome, Verdict: p.Verdict, Cost: costOf(p)})
	}
	return out, err
}

func (r records) Pass(ctx context.Context, seq int64) ([]watch.Section, error) {
	p, err := api.Pass(ctx, r.a.host(), api.PassInput{Run: r.d.Root, Pass: seq})
	if err != nil {
		return nil, err
	}
	facts := []string{p.Outcome}
	if p.Verdict != "" {
		facts = append(facts, p.Verdict)
	}
	if p.Score != nil {
		facts = append(facts, fmt.Sprintf("score %g", *p.Score))
	}
	if p.Changed > 0 {
		facts = append(facts, run.Plural(p.Changed, "changed file"))
	}
	facts = append(facts, costOf(p.PassLine))
	out := []watch.Section{{Title: p.Title, Text: strings.Join(facts, ", ")}}
	for _, one := range []watch.Section{{Title: "Reply", Text: markdown.WithoutBlock(p.ReplyText)}, {Title: "Changes", Text: p.Patch, Patch: true},
		{Title: "Prompt", Text: p.PromptText}} {
		if one.Text != "" {
			out = append(out, one)
		}
	}
	return out, nil
}

func (r records) Changes(ctx context.Context) (text string, err error) {
	c, drop, err := api.OpenChanges(ctx, r.d)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, drop()) }()
	table, err := c.Stat(ctx)
	if err != nil {
		return "", err
	}
	patch, err := c.Patch(ctx)
	if len(patch) == 0 {
		return "Nothing has changed.", err
	}
	if len(patch) > mostShown {
		patch = append(patch[:mostShown:mostShown], "\n… the rest: starter diff"...)
	}
	return table + "\n" + strings.ToValidUTF8(string(patch), "�"), err
}

func (r records) Log(context.Context) (string, error) {
	raw, err := r.d.ReadFile(rundir.TextLog)
	return strings.ToValidUTF8(string(raw[max(0, len(raw)-mostShown):]), "�"), err
}
