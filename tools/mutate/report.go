package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
)

// tally counts the outcomes of one package.
type tally map[outcome]int

func (t tally) judged() int { return t[killed] + t[survived] + t[unreached] }

func (t tally) rate() float64 { return 100 * float64(t[killed]) / float64(max(1, t.judged())) }

// lower is the lower bound of the 95 % confidence interval of the kill rate in percent, by Wilson.
func (t tally) lower() float64 {
	const z = 1.96
	n := float64(t.judged())
	if n == 0 {
		return 0
	}
	p := float64(t[killed]) / n
	return 100 * (p + z*z/(2*n) - z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))) / (1 + z*z/n)
}

func report(w io.Writer, targets []*target, mutants []*mutant, o options, took time.Duration) error {
	total, tallies := tally{}, map[string]tally{}
	var missed []string
	for _, m := range mutants {
		if m.kind == fault {
			if m.outcome != killed {
				missed = append(missed, m.name)
			}
			fmt.Fprintf(w, "fault %s: %s %s\n", m.name, m.outcome, m.by)
			continue
		}
		if tallies[m.pkg] == nil {
			tallies[m.pkg] = tally{}
		}
		tallies[m.pkg][m.outcome]++
		total[m.outcome]++
		if m.outcome == survived || m.outcome == unreached || m.outcome == undecided {
			fmt.Fprintf(w, "%s: %s\n\tkey: %s\n", m.outcome, m, m.key())
		}
	}
	fmt.Fprintf(w, "\n%-20s %8s %8s %8s %9s %9s %10s %7s %7s\n", "package", "mutants", "killed", "survived",
		"unreached", "undecided", "equivalent", "rate", "lower")
	for _, t := range targets {
		if of := tallies[t.folder]; of != nil {
			row(w, t.folder, of)
		}
	}
	row(w, "all", total)
	fmt.Fprintf(w, "mutate: seed %d, %.0f s\n", o.seed, took.Seconds())
	switch {
	case len(missed) > 0:
		return fmt.Errorf("%w: the named faults %s", errMissed, strings.Join(missed, ", "))
	case total.judged() > 0 && total.rate() < o.rate:
		return fmt.Errorf("%w: the kill rate is %.1f %% and must be %.0f %%", errMissed, total.rate(), o.rate)
	}
	return nil
}

func row(w io.Writer, name string, t tally) {
	fmt.Fprintf(w, "%-20s %8d %8d %8d %9d %9d %10d %6.1f%% %6.1f%%\n", name,
		t.judged()+t[undecided]+t[equivalent], t[killed], t[survived], t[unreached], t[undecided], t[equivalent],
		t.rate(), t.lower())
}

// readEquivalent reads the keys of mutants that no test can detect, each with its reason after a tab.
func readEquivalent(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: the line has no reason; put one behind a tab", path, n+1)
		}
		reasons[key] = reason
	}
	return reasons, nil
}
