// Package invariants checks promises of recovery in a run directory. The kill harness (test/e2e) and the simulation
// (test/simulation) check the others by their means.
package invariants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// CompleteLines returns the lines that end. A process may be writing the next one.
func CompleteLines(raw []byte) []byte { return raw[:bytes.LastIndexByte(raw, '\n')+1] }

// WholeLines requires every line of every JSONL file to be an object that ends. Pieces of lines are in a separate folder.
func WholeLines(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path == filepath.Join(root, filepath.FromSlash(rundir.TornDir)) {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := 0
		for line := range bytes.Lines(raw) {
			var object map[string]any
			if n++; json.Unmarshal(line, &object) != nil || line[len(line)-1] != '\n' {
				return fmt.Errorf("%s, line %d is no whole object: %.80q", path, n, line)
			}
		}
		return nil
	})
}

// Events reads the complete lines of a journal strictly: every one is an event, seq counts from 1 without a gap, and
// time never goes back.
func Events(raw []byte) ([]run.Event, error) {
	var out []run.Event
	for line := range bytes.Lines(CompleteLines(raw)) {
		var e run.Event
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&e); err != nil {
			return out, fmt.Errorf("line %d: %w: %s", len(out)+1, err, line)
		}
		if e.Seq != int64(len(out)+1) {
			return out, fmt.Errorf("line %d has seq %d", len(out)+1, e.Seq)
		}
		if len(out) > 0 && e.TS < out[len(out)-1].TS {
			return out, fmt.Errorf("the time of event %d (%s) goes back to %s", e.Seq, e.Kind, e.TS)
		}
		out = append(out, e)
	}
	return out, nil
}

// Costs requires the rows of the cost log to add up to what both state files and the journal contain. What a reset
// abandoned does not count: its answers are found and journaled again.
func Costs(d rundir.Dir, meta rundir.Meta, book rundir.PipelineState, events []run.Event) error {
	rows, skipped, err := rundir.Rows[rundir.CostRow](d, rundir.CostLog)
	if err != nil {
		return err
	}
	if skipped > 0 {
		return fmt.Errorf("%d rows of %s cannot be read", skipped, rundir.CostLog)
	}
	sum, journal := 0.0, 0.0
	for _, r := range rows {
		sum = run.Cents(sum + r.USD)
	}
	for _, e := range events {
		switch {
		case e.Kind == run.KindPassEnd:
			var p run.PassEnd
			e.Decode(&p)
			journal += p.Spend.USD
		case e.Kind == run.KindPassAttempt:
			var p run.PassAttempt
			if e.Decode(&p); p.Spend != nil {
				journal += p.Spend.USD
			}
		}
	}
	got := []float64{meta.State.Total(), run.Cents(book.Cost.TotalEstimatedCostUSD + book.SunkCostUSD), run.Cents(journal)}
	for _, usd := range got {
		if usd != sum {
			return fmt.Errorf("cost rows add up to %v; meta.json, state.json and the journal have %v", sum, got)
		}
	}
	return nil
}

// OneEnd requires one terminal event in each epoch, or the next epoch of a run that waits. If the run is open, the last
// epoch may have none.
func OneEnd(events []run.Event, open bool) error {
	epoch, ends := 1, map[int][]int64{1: nil}
	for _, e := range events {
		switch e.Kind {
		case run.KindRunResumed:
			var p run.RunResumed
			if e.Decode(&p); p.Waits { // the epoch before waited until here
				ends[epoch] = append(ends[epoch], e.Seq)
			}
			epoch = max(epoch, p.Epoch)
			ends[epoch] = append(ends[epoch], []int64{}...)
		case run.KindRunEnd, run.KindRunInterrupted:
			ends[epoch] = append(ends[epoch], e.Seq)
		}
	}
	for n := range ends {
		if len(ends[n]) != 1 && (!open || n != epoch || len(ends[n]) > 1) {
			return fmt.Errorf("epoch %d has %d terminal events", n, len(ends[n]))
		}
	}
	return nil
}
