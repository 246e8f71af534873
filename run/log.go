package run

import (
	"fmt"
	"time"
)

// Entry is an event with the states before and after it, for the texts that people read. Only the log needs what
// follows the states.
type Entry struct {
	Event
	Before, After *State

	MaxRounds int      // of the last repeated stage
	Threshold *float64 // the score that ends it
	Backup    string   // of a pass: where the artifact is backed up
	Tried     Totals   // of a pass: its failed attempts

	Zone *time.Location // of times in texts; nil: UTC
}

// Log is what one event adds to the logs.
type Log struct {
	Lines     []LogLine
	Decisions []LogDecision

	wording Wording
}

// LogLine is one line for people.
type LogLine struct {
	Level Level
	Text  string // may hold line feeds and control characters of agents and people
}

// Level is the severity of a line of the log.
type Level string

// Levels.
const (
	LevelInfo  Level = "INFO"
	LevelWarn  Level = "WARN"
	LevelError Level = "ERROR"
)

// LogDecision is one line of decisions.jsonl, without its time and seq. One that is not a plain record has a reason.
type LogDecision struct {
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
}

func (l *Log) line(level Level, format string, args ...any) {
	l.Lines = append(l.Lines, LogLine{level, fmt.Sprintf(format, args...)})
}

func (l *Log) info(format string, args ...any) { l.line(LevelInfo, format, args...) }
func (l *Log) warn(format string, args ...any) { l.line(LevelWarn, format, args...) }

func (l *Log) decide(d LogDecision) { l.Decisions = append(l.Decisions, d) }

// about puts the pass into a decision.
func (d LogDecision) about(p Pass, t Wording) LogDecision {
	d.PassNumber = p.Number
	if p.Number == 0 {
		d.Context = p.Context(t)
	}
	return d
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

// LogOf is what an event adds to the logs.
func LogOf(e Entry) Log {
	l := Log{wording: e.After.Wording}
	if r := kinds()[e.Kind]; r != nil {
		r.log(&l, &e)
	}
	return l
}

// noLog is the log of events that have no log line.
func noLog[P any](*Log, *Entry, P) {}
