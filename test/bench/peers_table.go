package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/test/bench/peer"
)

// table collects the readings of all contenders, by name.
type table struct {
	amounts
	contenders    []contender
	reps          int
	before, after string // load averages
	readings      map[string]map[figure][]reading
	notes         []string // why cells have no value
}

// row describes a figure.
type row struct {
	figure
	title  string
	format func(float64) string
	ratio  bool
}

func (t *table) rows() []row {
	return []row{
		{figOne, "five empty steps, one workflow", seconds, true},
		{figMany, fmt.Sprintf("five empty steps, %d workflows at once: workflows a second", atOnce), plain, true},
		{figLoop, fmt.Sprintf("loop of %d passes: pass to pass", t.Passes), seconds, true},
		{figKill, "worker killed in a call: until the next call begins", seconds, true},
		{figRepeats, "calls started for three passes", plain, false},
		{figRestart, fmt.Sprintf("worker restarted after %d steps: until the next step", t.Steps), seconds, true},
		{figRevert, fmt.Sprintf("revert by %d steps: until the next step", perSet), seconds, true},
		{figFork, fmt.Sprintf("fork after %d steps: until its first step", t.Steps-perSet), seconds, true},
		{figBytes, fmt.Sprintf("stored bytes per step, of %d", t.Steps), plain, true},
		{figStart, "start of the engine: until the first step", seconds, true},
		{figIdle, "memory without workflows", megabytes, true},
		{figWaiting, fmt.Sprintf("memory with %d waiting workflows", t.Waiting), megabytes, true},
	}
}

func (t *table) add(name string, readings map[figure]reading) {
	if t.readings[name] == nil {
		t.readings[name] = map[figure][]reading{}
	}
	for f, r := range readings {
		t.readings[name][f] = append(t.readings[name][f], r)
	}
}

// write writes Markdown.
func (t *table) write(out io.Writer) {
	fmt.Fprintf(out, "%s; medians of %d, in turn; load average %s before, %s after. In brackets: divided by Passbook's "+
		"figure.\n\n", where(), t.reps, t.before, t.after)
	fmt.Fprintln(out, "| | version | a step is stored when |\n|---|---|---|")
	for _, c := range t.contenders {
		fmt.Fprintf(out, "| %s | %s | %s |\n", c.name, c.version, c.durable)
	}
	head, line := "\n| |", "|---|"
	for _, c := range t.contenders {
		head, line = head+" "+c.name+" |", line+"--:|"
	}
	fmt.Fprintln(out, head+"\n"+line)
	for _, r := range t.rows() {
		fmt.Fprintf(out, "| %s |", r.title)
		for _, c := range t.contenders {
			fmt.Fprintf(out, " %s |", t.cell(c, r))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\nStored bytes per step: %s.\n\n", strings.Join(t.parts(), "; "))
	for i, text := range t.notes {
		fmt.Fprintf(out, "%d. %s\n", i+1, text)
	}
}

// cell is a value with its ratio, or why there is none. An error in one repetition is an error of the cell.
func (t *table) cell(c contender, r row) string {
	value, err := t.value(c, r.figure)
	switch {
	case errors.Is(err, peer.ErrNotOffered):
		return err.Error()
	case err != nil:
		return t.note(c, err)
	}
	text := r.format(value)
	base, err := t.value(contender{name: passbookName}, r.figure)
	if r.ratio && c.name != passbookName && err == nil && base > 0 {
		text += fmt.Sprintf(" (%s)", plain(value/base))
	}
	return text
}

// parts lists what the stored bytes are.
func (t *table) parts() (out []string) {
	for _, c := range t.contenders {
		var parts []string
		for _, f := range slices.Sorted(maps.Keys(t.readings[c.name])) {
			name, is := strings.CutPrefix(string(f), string(figBytes)+" ")
			if n, err := t.value(c, f); is && err == nil {
				parts = append(parts, name+" "+plain(n))
			}
		}
		if len(parts) > 0 {
			out = append(out, c.name+": "+strings.Join(parts, ", "))
		}
	}
	return out
}

func (t *table) value(c contender, f figure) (float64, error) {
	if c.missing != nil {
		return 0, c.missing
	}
	var values []float64
	for _, r := range t.readings[c.name][f] {
		if r.err != nil {
			return 0, r.err
		}
		values = append(values, r.value)
	}
	if len(values) == 0 {
		return 0, errors.New("not measured")
	}
	return median(values), nil
}

// note refers to the text of an error below the table.
func (t *table) note(c contender, err error) string {
	text := c.name + ": " + strings.Join(strings.Fields(err.Error()), " ")
	i := slices.Index(t.notes, text)
	if i < 0 {
		t.notes = append(t.notes, text)
		i = len(t.notes) - 1
	}
	return fmt.Sprintf("none (%d)", i+1)
}

// seconds writes a time.
func seconds(s float64) string {
	if s >= 1 {
		return plain(s) + " s"
	}
	return plain(s*1000) + " ms"
}

func megabytes(n float64) string { return plain(n) + " MB" }

// plain writes a number with two or three significant digits.
func plain(n float64) string {
	switch {
	case n >= 99.95:
		return fmt.Sprintf("%.0f", n)
	case n >= 9.995:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.0995 || n == 0:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", n), ".00")
	case n >= 0.001:
		return fmt.Sprintf("%.2g", n)
	}
	return "<0.001"
}
