package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// listOptions are the flags of list.
type listOptions struct {
	statuses      []string
	filter        operations.Filter
	sort, since   string
	limit         int
	offline, json bool
	tree          bool
}

func (a *app) list() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use: "list", Short: "List runs with status, progress and cost", Args: cobra.NoArgs, Aliases: []string{"ls"},
		Long: fmt.Sprintf(`List the runs that this machine remembers, those in the folder for runs, and those in Temporal,
each once. The status is that of starter status; a question mark means: as recorded, and whether the run is alive is
unknown. A run without a directory is shown as recorded in Temporal. No server is needed, and none is started.

Columns to sort by: %s.`, strings.Join(columnNames(), ", ")),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.statuses, "status", nil, "only runs with these statuses, such as running,paused")
	f.StringVar(&o.filter.Pipeline, "pipeline", "", "only runs of this pipeline")
	f.StringVar(&o.filter.Stage, "stage", "", "only runs in this stage")
	f.StringVar(&o.since, "since", "", "only runs started since: "+momentForms)
	f.StringVar(&o.filter.Text, "text", "", "only runs with this text in id, pipeline, task, stage or directory")
	f.StringVar(&o.sort, "sort", "started:desc", "COLUMN, or COLUMN:desc for the greatest first")
	f.IntVar(&o.limit, "limit", 50, "maximum number of runs; 0: all")
	f.BoolVar(&o.tree, "tree", false, "list the runs of projects below the run that they belong to")
	f.BoolVar(&o.offline, "offline", false, "do not ask Temporal")
	f.BoolVar(&o.json, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		order, err := orderOf(o.sort)
		if err != nil {
			return asUsage(err)
		}
		if o.filter.Status, err = statusesOf(o.statuses); err != nil {
			return asUsage(err)
		}
		if o.filter.Since, err = sinceOf(o.since, time.Now()); err != nil {
			return asUsage(err)
		}
		if o.limit < 0 {
			return asUsage(fmt.Errorf("--limit is %d; it must be 0 or more", o.limit))
		}
		r, err := a.host().Runs(cmd.Context(), o.filter, o.offline)
		if err != nil {
			return err
		}
		slices.SortFunc(r.Runs, order)
		if o.tree {
			r.Runs = asTree(r.Runs)
		}
		if r.Total = len(r.Runs); o.limit > 0 && r.Total > o.limit {
			r.Runs = r.Runs[:o.limit]
		}
		if o.json {
			return a.json(r)
		}
		a.printList(r, o)
		return nil
	}
	return cmd
}

// asTree moves the runs of projects below the run that they belong to, in the order of its definition. Without that
// run they stay where they are.
func asTree(runs []operations.Row) []operations.Row {
	at := func(id string) bool {
		return slices.ContainsFunc(runs, func(r operations.Row) bool { return r.RunID == id })
	}
	var out []operations.Row
	for _, r := range runs {
		if r.Of != "" && at(r.Of) {
			continue
		}
		r.Alias = ""
		out = append(out, r)
		members := slices.DeleteFunc(slices.Clone(runs), func(p operations.Row) bool { return p.Of == "" || p.Of != r.RunID })
		slices.SortStableFunc(members, func(a, b operations.Row) int {
			return slices.Index(r.Projects, a.Alias) - slices.Index(r.Projects, b.Alias)
		})
		out = append(out, members...)
	}
	return out
}

// statusesOf parses --status.
func statusesOf(words []string) ([]run.Status, error) {
	var out []run.Status
	for _, w := range words {
		s := run.Status(w)
		if !s.Known() {
			return nil, fmt.Errorf("--status %s is unknown: docs/run-state.md lists all, such as running, paused "+
				"and done%s",
				w, didYouMean(w, statusWords()))
		}
		out = append(out, s)
	}
	return out, nil
}

// statusWords returns all statuses.
func statusWords() []string {
	var out []string
	for _, s := range run.Statuses() {
		out = append(out, string(s))
	}
	return out
}

// sinceOf parses --since.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return momentOf("--since", text, now)
}

// momentForms describes the forms that momentOf accepts.
const momentForms = "2026-11-20, \"2026-11-20 14:00\" (local time), RFC 3339, or an age: 90m, 24h, 7d"

// momentOf parses a day, a time or an age.
func momentOf(flag, text string, now time.Time) (time.Time, error) {
	for _, form := range []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, time.RFC3339} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%s %s: write a day (2026-11-20), a time (2026-11-20 14:00), or an age (90m, "+
		"24h, 7d)",
		flag, text)
}

// column is one column of the list.
type column struct {
	name    string
	text    func(operations.Row) string
	compare func(x, y operations.Row) int
	right   bool
}

func columns() []column {
	by := func(get func(operations.Row) string) (func(operations.Row) string, func(x, y operations.Row) int) {
		return func(r operations.Row) string { return cmp.Or(get(r), "-") },
			func(x, y operations.Row) int { return cmp.Compare(get(x), get(y)) }
	}
	named := func(name string, get func(operations.Row) string) column {
		text, compare := by(get)
		return column{name: name, text: text, compare: compare}
	}
	return []column{
		named("run", func(r operations.Row) string { return r.RunID }),
		named("pipeline", func(r operations.Row) string { return r.Pipeline }),
		{name: "status", text: listedStatus, compare: func(x, y operations.Row) int {
			return cmp.Compare(x.EffectiveStatus.Status, y.EffectiveStatus.Status)
		}},
		named("stage", func(r operations.Row) string { return r.Stage }),
		{name: "progress", text: progressWords, right: true, compare: func(x, y operations.Row) int {
			return cmp.Compare(progress(x), progress(y))
		}},
		{
			name: "cost", text: func(r operations.Row) string { return run.ShortCost(r.CostUSD, r.Unknown) }, right: true,
			compare: func(x, y operations.Row) int { return cmp.Compare(x.CostUSD, y.CostUSD) },
		},
		{name: "score", text: listedScore, right: true, compare: func(x, y operations.Row) int {
			return cmp.Compare(scoreOf(x), scoreOf(y))
		}},
		{name: "started", text: started, compare: func(x, y operations.Row) int {
			return cmp.Compare(x.StartedAt, y.StartedAt)
		}},
		named("directory", func(r operations.Row) string { return r.Directory }),
	}
}

func columnNames() []string {
	var out []string
	for _, c := range columns() {
		out = append(out, c.name)
	}
	return out
}

// orderOf parses --sort. Runs that are equal are sorted by start and id.
func orderOf(by string) (func(x, y operations.Row) int, error) {
	name, way, _ := strings.Cut(by, ":")
	all := columns()
	i := slices.IndexFunc(all, func(c column) bool { return c.name == name })
	if i < 0 || (way != "" && way != "asc" && way != "desc") {
		return nil, fmt.Errorf("--sort %s: write COLUMN or COLUMN:desc; the columns are %s%s",
			by, strings.Join(columnNames(), ", "), didYouMean(name, columnNames()))
	}
	return func(x, y operations.Row) int {
		c := all[i].compare(x, y)
		if way == "desc" {
			c = -c
		}
		return cmp.Or(c, -cmp.Compare(x.StartedAt, y.StartedAt), cmp.Compare(x.RunID, y.RunID))
	}, nil
}

func progress(r operations.Row) float64 {
	if r.Passes == 0 {
		return -1
	}
	return float64(r.Settled) / float64(r.Passes)
}

func progressWords(r operations.Row) string {
	if r.Progress != "" {
		return r.Progress
	}
	if r.Passes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Settled, r.Passes)
}

func scoreOf(r operations.Row) float64 {
	if r.Score == nil {
		return -1
	}
	return *r.Score
}

func listedScore(r operations.Row) string {
	if r.Score == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *r.Score)
}

func listedStatus(r operations.Row) string {
	s, until := r.EffectiveStatus, ""
	if s.Status == run.WaitingLimit && r.Limited != nil {
		until = " until " + clock(time.Now()).At(r.Limited.Until)
		if r.Limited.Kind == run.LimitAtOnce {
			until = ", queued"
		}
		if t := s.Turn; t != nil {
			until = fmt.Sprintf(", queued %d of %d", t.Place, t.Of)
		}
	}
	return view.Brief(s, r.NotApproved, until)
}

func started(r operations.Row) string {
	t, err := time.Parse(run.TimeFormat, r.StartedAt)
	if err != nil {
		return "-"
	}
	if t = t.Local(); t.Year() != time.Now().Year() {
		return t.Format("2006-01-02")
	}
	return t.Format("Jan 02 15:04")
}
