package rundir

import (
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/run"
)

// Growing lists them in the order in which they are written.
func Growing() []string {
	return []string{TextLog, DecisionsLog, ErrorsLog, CostLog, QualityLog,
		PassesLog, TracesFile, ProvenanceFile}
}

// logbook collects what one event adds to the growing files.
type logbook struct {
	added map[string][]byte
	load  func(digest string) ([]byte, error) // of a blob
	err   error
}

// row adds one JSON object as one line.
func (l *logbook) row(file string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		l.err = fmt.Errorf("%s: %w", file, err)
		return
	}
	l.added[file] = append(append(l.added[file], raw...), '\n')
}

// line adds one line for people: [time] [LEVEL] text (requirement 002 §2.2).
func (l *logbook) line(e entry, n run.LogLine) {
	l.added[TextLog] = append(l.added[TextLog],
		fmt.Sprintf("[%s] %-7s %s\n", e.TS, "["+n.Level+"]", run.OneLine(n.Text))...)
}

// decide adds one line of decisions.jsonl.
func (l *logbook) decide(e entry, d run.LogDecision) {
	l.row(DecisionsLog, struct {
		TS string `json:"ts"`
		run.LogDecision
		Seq int64 `json:"seq"`
	}{e.TS, d, e.Seq})
}

// entry is one event with what was known before and after it.
type entry struct {
	run.Entry
	book    *PipelineState // after it
	pending []ErrorRecord  // before it: errors of attempts that had not settled
}

// Rows returns what one event adds to the growing files. Every line is a pure function of the event and of what was known
// before and after it; pending are the errors of attempts that had not settled before it. load returns lists of changed
// files.
func RowsOf(e run.Event, before, after *run.State, book *PipelineState, pending []ErrorRecord,
	load func(digest string) ([]byte, error)) (map[string][]byte, error) {
	l := &logbook{added: map[string][]byte{}, load: load}
	l.log(entryOf(e, before, after, book, pending))
	return l.added, l.err
}

func entryOf(e run.Event, before, after *run.State, book *PipelineState, pending []ErrorRecord) entry {
	of := run.Entry{Event: e, Before: before, After: after, MaxRounds: book.MaxPACycles,
		Threshold: book.PAScoreThreshold}
	if e.Kind == run.KindPassStart {
		var p run.PassStart
		e.Decode(&p)
		of.Backup = BackupFile(p.Pass, book.CurrentArtifactPath)
	}
	return entry{Entry: of, book: book, pending: pending}
}

// log writes down what one event means for every growing file. What people read is in package run's table of kinds; the
// rows that refer to files of the directory are here.
func (l *logbook) log(e entry) {
	for _, r := range decideErrors(e.Event, e.After.Wording, e.pending).lines {
		l.row(ErrorsLog, ErrorRow(r))
	}
	logged := run.LogOf(e.Entry)
	for _, n := range logged.Lines {
		l.line(e, n)
	}
	for _, d := range logged.Decisions {
		l.decide(e, d)
	}
	switch e.Kind {
	case run.KindPassAttempt:
		l.attempted(e)
	case run.KindPassEnd:
		l.passEnded(e)
	case run.KindChildEnded:
		l.childCost(e, run.PayloadOf[run.ChildEnd](e.Event).Cost)
	case run.KindChildSkipped:
		l.childCost(e, run.PayloadOf[run.ChildSkip](e.Event).Cost)
	case run.KindScoreRecorded:
		l.scored(e)
	case run.KindArtifactUpdated:
		l.artifact(e)
	case run.KindWorkspaceUpdated:
		l.tree(e)
	}
}
