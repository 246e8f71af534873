package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// CostReport is the sum of the cost log.
type CostReport struct {
	Total   CostLine   `json:"total"`
	Role    []CostLine `json:"by_role"`
	Subset  []CostLine `json:"by_subset"`
	Cycle   []CostLine `json:"by_cycle"`
	Model   []CostLine `json:"by_model"`
	Skipped int        `json:"skipped_lines"`
	Before  *run.Spend `json:"before_adoption"` // what an adopted conversation had cost: in no other number; null: none was adopted

	round string // what the wording calls a round
}

// wordsOf returns the vocabulary of a run.
func wordsOf(d rundir.Dir) run.Vocabulary {
	m, err := d.Meta()
	if err != nil {
		return run.WordingStages.Words()
	}
	return m.State.Wording.Words()
}

// CostLine is a row of a breakdown.
type CostLine struct {
	Name       string  `json:"name"`
	Calls      int     `json:"calls"`
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	CacheRead  int64   `json:"cache_read_tokens"`
	CacheWrite int64   `json:"cache_write_tokens"`
	USD        float64 `json:"cost_usd"`
	Estimated  float64 `json:"estimated_usd"`
	Unknown    int     `json:"unknown_calls"` // calls that cost_usd lacks
}

func readCosts(d rundir.Dir) (CostReport, error) {
	rows, skipped, err := rundir.Rows[rundir.CostRow](d, rundir.CostLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the log no call was made
		return CostReport{}, err
	}
	r := CostReport{Total: CostLine{Name: "total"}, Skipped: skipped, round: wordsOf(d).Round}
	if m, err := d.Meta(); err == nil && m.State.Adopted != nil {
		r.Before = &m.State.Adopted.Before
	}
	for _, row := range rows {
		if row.Role == "" {
			r.Skipped++ // a line of another program
			continue
		}
		r.Total.add(row)
		r.Role = addLine(r.Role, row.Role, row)
		r.Model = addLine(r.Model, row.Model, row)
		if row.Subset != "" {
			r.Subset = addLine(r.Subset, row.Subset, row)
		}
		if row.PACycle > 0 {
			r.Cycle = addLine(r.Cycle, r.round+" "+strconv.Itoa(row.PACycle), row)
		}
	}
	return r, nil
}

func (l *CostLine) add(row rundir.CostRow) {
	l.Calls++
	l.Input += row.Input
	l.Output += row.Output
	l.CacheRead += row.CacheRead
	l.CacheWrite += row.CacheWrite
	l.USD = run.Cents(l.USD + row.USD)
	spend := run.Spend{Known: run.CostKnown(row.Known), Covers: row.Covers}
	l.Unknown = max(0, l.Unknown+spend.UnknownCalls())
	if row.Estimated {
		l.Estimated = run.Cents(l.Estimated + row.USD)
	}
}

func addLine(lines []CostLine, name string, row rundir.CostRow) []CostLine {
	i := slices.IndexFunc(lines, func(l CostLine) bool { return l.Name == name })
	if i < 0 {
		lines, i = append(lines, CostLine{Name: name}), len(lines)
	}
	lines[i].add(row)
	return lines
}

func (a *app) printCosts(r CostReport) {
	if r.Before != nil {
		fmt.Fprintf(a.out, "%s.\n", "Adopted: "+run.Adopted{Before: *r.Before}.CostText())
	}
	if r.Total.Calls == 0 {
		fmt.Fprintln(a.out, "No call has completed yet.")
		a.skipped(r.Skipped)
		return
	}
	for _, part := range []struct {
		title string
		lines []CostLine
	}{
		{"By role", r.Role}, {"By set", r.Subset}, {"By " + r.round, r.Cycle}, {"By model", r.Model},
		{"Total", []CostLine{r.Total}},
	} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintln(a.out, part.title)
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\tcalls\tin\tout\tcache read\tcache write\tcost\t")
		for _, l := range part.lines {
			mark := ""
			if l.Estimated > 0 {
				mark = " (" + usd(l.Estimated) + " estimated)"
			}
			fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%d\t%s%s\t\n",
				l.Name, l.Calls, l.Input, l.Output, l.CacheRead, l.CacheWrite, run.CostText(l.USD, l.Unknown), mark)
		}
		w.Flush()
		fmt.Fprintln(a.out)
	}
	a.skipped(r.Skipped)
}

func (a *app) skipped(n int) {
	if n > 0 {
		fmt.Fprintf(a.out, "%s skipped: torn, or of another program.\n", run.Plural(n, "line"))
	}
}

// QualityReport is the quality log, by kind.
type QualityReport struct {
	Passed     int                 `json:"validations_passed"` // of numbered passes
	Failed     int                 `json:"validations_failed"`
	Warnings   int                 `json:"warnings"`
	Unmodified []int               `json:"unmodified_passes"`
	Depth      []DepthLine         `json:"verifier_depth"`
	Scores     []rundir.QualityRow `json:"scores"`
	Skipped    int                 `json:"skipped_lines"`

	round string // what the wording calls a round
}

// DepthLine holds the counts of one verifier.
type DepthLine struct {
	Pass   int            `json:"pass"`
	Counts map[string]int `json:"counts"`
}

func readQuality(d rundir.Dir) (QualityReport, error) {
	rows, skipped, err := rundir.Rows[rundir.QualityRow](d, rundir.QualityLog)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no reply was judged yet
	}
	r := QualityReport{
		round: wordsOf(d).Round, Skipped: skipped, Unmodified: []int{}, Depth: []DepthLine{}, Scores: []rundir.QualityRow{},
	}
	for _, row := range rows {
		switch row.Type {
		case "validation":
			r.Warnings += row.Warnings
			if row.Result == "pass" {
				r.Passed++
			} else {
				r.Failed++
			}
		case "verifier-depth":
			r.Depth = append(r.Depth, DepthLine{Pass: row.Pass, Counts: row.Counts})
		case run.WordingCorpus.Words().Score, run.WordingStages.Words().Score:
			r.Scores = append(r.Scores, row)
		case "no-modification":
			r.Unmodified = append(r.Unmodified, row.Pass)
		default:
			r.Skipped++
		}
	}
	return r, err
}

func (a *app) printQuality(r QualityReport) {
	if r.Passed+r.Failed+len(r.Depth)+len(r.Scores) == 0 {
		fmt.Fprintln(a.out, "No numbered pass has been validated yet, and there is no score.")
		a.skipped(r.Skipped)
		return
	}
	fmt.Fprintf(a.out, "Validation  %d passed, %d failed, %d warnings (numbered passes)\n", r.Passed, r.Failed, r.Warnings)
	if len(r.Unmodified) > 0 {
		fmt.Fprintf(a.out, "Unchanged   passes %s\n", strings.Trim(fmt.Sprint(r.Unmodified), "[]"))
	}
	if len(r.Depth) > 0 {
		fmt.Fprintln(a.out, "\nVerifier depth")
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		names := depthNames(r.Depth)
		fmt.Fprintf(w, "  pass\t%s\t\n", strings.Join(names, "\t"))
		for _, l := range r.Depth {
			fmt.Fprintf(w, "  %d\t", l.Pass)
			for _, n := range names {
				fmt.Fprintf(w, "%d\t", l.Counts[n])
			}
			fmt.Fprintln(w)
		}
		w.Flush()
	}
	a.printScores(r.Scores, r.round)
	a.skipped(r.Skipped)
}

func depthNames(lines []DepthLine) []string {
	var names []string
	for _, l := range lines {
		for n := range l.Counts {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (a *app) printScores(scores []rundir.QualityRow, round string) {
	if len(scores) == 0 {
		return
	}
	fmt.Fprintln(a.out, "\nScore")
	for _, s := range scores {
		if s.Score == nil {
			fmt.Fprintf(a.out, "  %s %d  none\n", round, s.PACycle)
			continue
		}
		met := ""
		if s.Threshold != nil && *s.Score >= *s.Threshold {
			met = "  threshold met"
		}
		fmt.Fprintf(a.out, "  %s %d  %.1f  %s%s\n", round, s.PACycle, *s.Score, strings.Repeat("■", int(*s.Score*4+0.5)),
			met)
	}
}
