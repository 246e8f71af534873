package rundir

import (
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/run"
)

// Growing files, all derived: the six logs of requirement 002 §2, and the rows of requirement 004 beside events.jsonl.
const (
	logsDir        = orchestrator + "/logs"
	TextLog        = logsDir + "/orchestrator.log"
	DecisionsLog   = logsDir + "/decisions.jsonl"
	ErrorsLog      = logsDir + "/errors.jsonl"
	CostLog        = logsDir + "/cost.jsonl"
	QualityLog     = logsDir + "/quality.jsonl"
	PassesLog      = logsDir + "/passes.jsonl"
	TracesFile     = "traces.jsonl"
	ProvenanceFile = "provenance.jsonl"
	SpendFile      = "spend.jsonl" // a link to the cost log
)

// growing lists them in the order in which they are written.
func growing() []string {
	return []string{TextLog, DecisionsLog, ErrorsLog, CostLog, QualityLog, PassesLog, TracesFile, ProvenanceFile}
}

// logbook collects what one batch adds to the growing files. Every line is a pure function of the event and of what was before it.
type logbook struct {
	added map[string][]byte
	load  func(digest string) ([]byte, error) // of a blob
	err   error
}

func newLogbook(load func(digest string) ([]byte, error)) *logbook {
	return &logbook{added: map[string][]byte{}, load: load}
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
func (l *logbook) line(e run.Event, level, format string, args ...any) {
	text := run.OneLine(fmt.Sprintf(format, args...))
	l.added[TextLog] = append(l.added[TextLog], fmt.Sprintf("[%s] %-7s %s\n", e.TS, "["+level+"]", text)...)
}

// Levels of the log for people.
const (
	info  = "INFO"
	warn  = "WARN"
	fault = "ERROR"
)

// entry is one event with what was known before and after it.
type entry struct {
	run.Event
	before, after run.State
	book          *PipelineState // after it
	pending       []ErrorRecord  // before it: errors of attempts that had not settled
}

// log writes down what one event means for every growing file.
func (l *logbook) log(e entry) {
	for _, r := range decideErrors(e.Event, e.pending).lines {
		l.row(ErrorsLog, errorRow(r))
	}
	switch e.Kind {
	case run.KindRunStart:
		l.started(e)
	case run.KindRunResumed:
		l.resumed(e)
	case run.KindRunPaused:
		l.paused(e)
	case run.KindRunEnd:
		l.ended(e)
	case run.KindRunReverted:
		l.reverted(e)
	case run.KindPhaseStart:
		l.phase(e)
	case run.KindPhaseEnd:
		l.phaseEnded(e)
	case run.KindPassStart:
		l.passStarted(e)
	case run.KindPassAttempt:
		l.attempted(e)
	case run.KindPassEnd:
		l.passEnded(e)
	case run.KindScreenshots:
		l.pictures(e)
	case run.KindScoreRecorded:
		l.scored(e)
	case run.KindCheckpointCreated:
		l.checkpointed(e)
	case run.KindArtifactUpdated:
		l.artifact(e)
	case run.KindShotsAttempt:
		l.picturesFailed(e)
	case run.KindBudgetWarning, run.KindBudgetRaised:
		l.budget(e)
	case run.KindErrorNoted:
		l.noted(e)
	case run.KindJournalDamaged:
		l.damaged(e)
	case run.KindDecisionRefused:
		l.refused(e)
	case run.KindRunRehomed:
		l.rehomed(e)
	default:
		l.asked(e)
	}
}

// decision is one line of decisions.jsonl. Every decision that is not a plain record says why.
type decision struct {
	TS           string   `json:"ts"`
	Decision     string   `json:"decision"`
	Reason       string   `json:"reason,omitempty"`
	PassNumber   int      `json:"passNumber,omitempty"`
	Context      string   `json:"context,omitempty"` // where there is no pass number
	Role         string   `json:"role,omitempty"`
	Subset       string   `json:"subset,omitempty"`
	Rotation     string   `json:"rotation,omitempty"`
	Files        []string `json:"files,omitempty"`
	Validation   string   `json:"validationResult,omitempty"`
	Checks       int      `json:"checks,omitempty"`
	Length       *int     `json:"length,omitempty"`
	ID           string   `json:"id,omitempty"`
	AtPass       *int     `json:"atPass,omitempty"`
	ArtifactHash string   `json:"artifactHash,omitempty"`
	Cost         *float64 `json:"cost,omitempty"`
	Threshold    *float64 `json:"threshold,omitempty"`
	Attempt      int      `json:"attempt,omitempty"`
	ExitCode     *int     `json:"exitCode,omitempty"`
	DelayMS      int64    `json:"delayMs,omitempty"`
	By           string   `json:"by,omitempty"`
	Seq          int64    `json:"seq"`
}

func (l *logbook) decide(e entry, d decision) {
	d.TS, d.Seq = e.TS, e.Seq
	l.row(DecisionsLog, d)
}

// about puts the pass into a decision.
func (d decision) about(p run.Pass) decision {
	d.PassNumber = p.Number
	if p.Number == 0 {
		d.Context = p.Context()
	}
	return d
}
