package run

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Wording chooses the words that a run is reported in. The definition chooses it. The zero value is that of a run that
// an earlier version started, and means WordingCorpus.
type Wording string

// Wordings.
const (
	WordingStages Wording = "stages" // stages, rounds, verdicts, and the roles of the definition
	WordingCorpus Wording = "corpus" // those of requirement 002: corpus passes, subsets, rotations, PA cycles
)

// Vocabulary is the table of words that differ between wordings.
type Vocabulary struct {
	Title    string // of the live screen; empty: the name of the pipeline
	Round    string // one round of a repeated stage
	Set      string
	Order    string // of a set's files
	Judges   string // members of a group that judge screenshots
	Score    string // type of a score in quality.jsonl
	Context  string // prefix of the context of a pass in a repeated stage
	Heading  string // of the section of a prompt that describes the call
	Notes    string // introduction to the notes of earlier passes
	First    string // mark of the first file of a set
	OneRole  string // role that all calls of repeated stages are counted under; empty: their own
	category []alias
}

// Words returns the vocabulary.
func (t Wording) Words() Vocabulary {
	if t == WordingStages {
		return stagesWords
	}
	return corpusWords
}

var corpusWords = Vocabulary{
	Title: "MULTI-PASS CORPUS INTEGRATION PIPELINE",
	Round: "cycle", Set: "subset", Order: "rotation", Judges: "auditors", Score: "pa-score", Context: "pa-cycle",
	Heading: "# DETERMINISTIC ORCHESTRATOR", First: " (PRIMACY POSITION)", OneRole: "pa",
	Notes: "# What earlier passes left behind\n\n" +
		"Read this as atmosphere: the convictions and discoveries of those who worked before you. It is not a list of " +
		"instructions.",
}

var stagesWords = Vocabulary{
	Round: "round", Set: "set", Order: "order", Judges: "members", Score: "score", Context: "round",
	Heading: "# This call",
	Notes:   "# Notes of earlier passes\n\nPasses before this one wrote these notes for you to read.",
	category: []alias{
		{CategoryAgentExit, "agent-exit-nonzero"}, {CategoryAgentTimeout, "agent-timeout"},
		{CategorySpawnFailed, "agent-spawn-failed"},
	},
}

// alias is another name of a category.
type alias struct{ of, name Category }

// In returns the name of the category in a wording. Events have the same name in all of them.
func (c Category) In(t Wording) Category {
	for _, a := range t.Words().category {
		if a.of == c {
			return a.name
		}
	}
	return c
}

// canonical returns the name that events have.
func (c Category) canonical() Category {
	for _, a := range stagesWords.category {
		if a.name == c {
			return a.of
		}
	}
	return c
}

// categoryField is the field of an event that has a category which another wording renames.
var categoryField = lazyregexp.New(`"(category|outcome)":"(claude-p-[a-z-]+)"`)

// Line returns a line of events.jsonl with the names of categories in a wording. On disk they are the same in all.
func (t Wording) Line(line []byte) []byte {
	return categoryField.ReplaceAllFunc(line, func(field []byte) []byte {
		m := categoryField.FindSubmatch(field)
		return fmt.Appendf(nil, "%q:%q", m[1], Category(m[2]).In(t))
	})
}

// CountedAs returns the role that a pass is counted under in breakdowns of costs.
func (t Wording) CountedAs(p Pass) string {
	if one := t.Words().OneRole; one != "" && p.Number == 0 {
		return one
	}
	return p.Role
}

// Progress describes how far a run is: "stage 2 of 3 (review), round 2".
func (s State) Progress() string {
	if s.Wording != WordingStages {
		return fmt.Sprintf("%d/%d corpus passes (%d%%)  +  %s", s.Passes.LastSettled, s.Passes.Total,
			Percent(s.Passes.LastSettled, s.Passes.Total), Plural(s.Rounds, "PA cycle"))
	}
	text := s.position()
	if s.Verdict != "" && s.Lanes == nil { // lanes have a verdict each
		text += ", verdict " + s.Verdict
	}
	return text
}

// position describes the stage and the round.
func (s State) position() string {
	at := slices.IndexFunc(s.Stages, func(r StageRef) bool { return r.Name == s.Phase })
	switch {
	case s.Status == Done && s.Rounds > 0:
		return Plural(Stages(s.Stages), "stage") + ", " + Plural(s.Rounds, "round") + s.LaneTotals.text()
	case s.Status == Done:
		return Plural(Stages(s.Stages), "stage") + s.LaneTotals.text()
	case at >= Stages(s.Stages):
		return "check in a fresh folder"
	case at < 0:
		return fmt.Sprintf("stage 0 of %d", Stages(s.Stages))
	}
	text := fmt.Sprintf("stage %d of %d (%s)", at+1, Stages(s.Stages), s.Phase)
	if most := s.Stages[at].Rounds; most > 0 {
		text += ", " + s.RoundWords("round", most)
	}
	if s.Lanes != nil {
		text += ", " + s.Lanes.Text()
	}
	return text
}

// RoundWords describes the current round of a repeated stage: "round 2 of at most 3", or what follows the last one.
func (s State) RoundWords(noun string, most int) string {
	if text := s.AfterLastRound(noun, most); text != "" {
		return text
	}
	return noun + " " + RoundOf(s.Round, most)
}

// AfterLastRound describes a round after the last one of a repeated stage: one that an operator requested, or the
// closing check, which only judges the last change. It is "" in the rounds before.
func (s State) AfterLastRound(noun string, most int) string {
	d := s.Decided
	switch {
	case most == 0 || s.Round <= most:
		return ""
	case d != nil && d.Phase == s.Phase && (d.Action == ActionRetryFeedback || d.Action == ActionFix) && d.Round >= most:
		return fmt.Sprintf("requested %s %s", noun, RoundOf(s.Round, most))
	}
	return fmt.Sprintf("closing check after %s", Plural(most, noun))
}

// RoundOf writes the number of a round: "2 of at most 3", or "4 after 3" for one after the last, which judges the last
// change or was requested by an operator.
func RoundOf(round, most int) string {
	if round > most {
		return fmt.Sprintf("%d after %d", round, most)
	}
	return fmt.Sprintf("%d of at most %d", round, most)
}

// MaxRounds returns the maximum of the current stage; 0: it does not repeat, or is unknown.
func (s State) MaxRounds() int {
	for _, r := range s.Stages {
		if r.Name == s.Phase {
			return r.Rounds
		}
	}
	return 0
}

// ShortProgress is Progress in few characters, for a column: 35/56, or 2/3 r4.
func (s State) ShortProgress() string {
	if s.Wording != WordingStages {
		return fmt.Sprintf("%d/%d", s.Passes.LastSettled, s.Passes.Total)
	}
	at := slices.IndexFunc(s.Stages, func(r StageRef) bool { return r.Name == s.Phase })
	text := fmt.Sprintf("%d/%d", at+1, len(s.Stages))
	if at >= 0 && s.Stages[at].Rounds > 0 {
		text += fmt.Sprintf(" r%d", s.Round)
	}
	return text
}

// Plural counts: 1 round, 2 rounds.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Percent returns the share of completed passes, rounded half up (TM-02): 34 of 56 is 61.
func Percent(done, total int) int {
	if total <= 0 {
		return 0
	}
	return (200*done + total) / (2 * total)
}
