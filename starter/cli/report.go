package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// offline makes a verb that reads a run directory and prints it for people, or as JSON.
func offline[T any](a *app, use, short string, read func(rundir.Dir) (T, error), print func(T)) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := a.target(&cobra.Command{Use: use + " [RUN]", Short: short, Long: short + ". No server is asked or needed.\n\n" + exitCodesHelp}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		v, err := read(d)
		if err != nil {
			return err
		}
		if !asJSON {
			print(v)
			return nil
		}
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	return cmd
}

// CostReport is the cost log, added up.
type CostReport struct {
	Total   CostLine   `json:"total"`
	Role    []CostLine `json:"by_role"`
	Subset  []CostLine `json:"by_subset"`
	Cycle   []CostLine `json:"by_cycle"`
	Model   []CostLine `json:"by_model"`
	Skipped int        `json:"skipped_lines"`
}

// CostLine is one row of a breakdown.
type CostLine struct {
	Name       string  `json:"name"`
	Calls      int     `json:"calls"`
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	CacheRead  int64   `json:"cache_read_tokens"`
	CacheWrite int64   `json:"cache_write_tokens"`
	USD        float64 `json:"cost_usd"`
	Estimated  float64 `json:"estimated_usd"`
}

func (a *app) costReport() *cobra.Command {
	return offline(a, "cost-report", "What a run has cost, by role, set, cycle and model, from its cost log", readCosts, a.printCosts)
}

func readCosts(d rundir.Dir) (CostReport, error) {
	rows, skipped, err := rundir.Rows[rundir.CostRow](d, rundir.CostLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the log nothing has been called
		return CostReport{}, err
	}
	r := CostReport{Total: CostLine{Name: "total"}, Skipped: skipped}
	for _, row := range rows {
		if row.Role == "" {
			r.Skipped++ // somebody else's line
			continue
		}
		r.Total.add(row)
		r.Role = addLine(r.Role, row.Role, row)
		r.Model = addLine(r.Model, row.Model, row)
		if row.Subset != "" {
			r.Subset = addLine(r.Subset, row.Subset, row)
		}
		if row.PACycle > 0 {
			r.Cycle = addLine(r.Cycle, "cycle "+strconv.Itoa(row.PACycle), row)
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
	if r.Total.Calls == 0 {
		fmt.Fprintln(a.out, "No call has settled yet: there is nothing to add up.")
		a.skipped(r.Skipped)
		return
	}
	for _, part := range []struct {
		title string
		lines []CostLine
	}{{"By role", r.Role}, {"By set", r.Subset}, {"By cycle", r.Cycle}, {"By model", r.Model}, {"Total", []CostLine{r.Total}}} {
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
			fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%d\t%s%s\t\n", l.Name, l.Calls, l.Input, l.Output, l.CacheRead, l.CacheWrite, usd(l.USD), mark)
		}
		w.Flush()
		fmt.Fprintln(a.out)
	}
	a.skipped(r.Skipped)
}

func (a *app) skipped(n int) {
	if n > 0 {
		fmt.Fprintf(a.out, "%d lines that are torn or of another program were skipped.\n", n)
	}
}

// QualityReport is the quality log, by kind.
type QualityReport struct {
	Passed     int                 `json:"validations_passed"`
	Failed     int                 `json:"validations_failed"`
	Warnings   int                 `json:"warnings"`
	Unmodified []int               `json:"unmodified_passes"`
	Depth      []DepthLine         `json:"verifier_depth"`
	Scores     []rundir.QualityRow `json:"scores"`
	Skipped    int                 `json:"skipped_lines"`
}

// DepthLine is what one verifier counted.
type DepthLine struct {
	Pass   int            `json:"pass"`
	Counts map[string]int `json:"counts"`
}

func (a *app) qualityReport() *cobra.Command {
	return offline(a, "quality-report", "How the work's quality went, from its quality log", readQuality, a.printQuality)
}

func readQuality(d rundir.Dir) (QualityReport, error) {
	rows, skipped, err := rundir.Rows[rundir.QualityRow](d, rundir.QualityLog)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // nothing has been judged
	}
	r := QualityReport{Skipped: skipped, Unmodified: []int{}, Depth: []DepthLine{}, Scores: []rundir.QualityRow{}}
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
		case "pa-score":
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
		fmt.Fprintln(a.out, "Nothing has been judged yet: a reply is when its call settles.")
		a.skipped(r.Skipped)
		return
	}
	fmt.Fprintf(a.out, "Validation  %d passed, %d failed, %d warnings\n", r.Passed, r.Failed, r.Warnings)
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
	a.printScores(r.Scores)
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

func (a *app) printScores(scores []rundir.QualityRow) {
	if len(scores) == 0 {
		return
	}
	fmt.Fprintln(a.out, "\nScore")
	for _, s := range scores {
		if s.Score == nil {
			fmt.Fprintf(a.out, "  cycle %d  none\n", s.PACycle)
			continue
		}
		met := ""
		if s.Threshold != nil && *s.Score >= *s.Threshold {
			met = "  threshold met"
		}
		fmt.Fprintf(a.out, "  cycle %d  %.1f  %s%s\n", s.PACycle, *s.Score, strings.Repeat("■", int(*s.Score*4+0.5)), met)
	}
}
