package run

import (
	"slices"
	"strings"
)

// StepOutput is the last output of a step that conditions, prompts and lists of lanes use by its id.
type StepOutput struct {
	ID       string   `json:"id"`
	Phase    string   `json:"phase"`
	Now      bool     `json:"now,omitempty"`       // of this round of its phase
	Skipped  bool     `json:"skipped,omitempty"`   // there is none: the step was skipped
	Command  bool     `json:"command,omitempty"`   // of a command: OK and ExitCode count
	OK       bool     `json:"ok,omitempty"`        // the command exited with code 0
	ExitCode int      `json:"exit_code,omitempty"` // of the command
	Text     *Blob    `json:"text,omitempty"`      // reply, or what the command printed
	Data     *Blob    `json:"data,omitempty"`      // JSON of the reply
	Verdict  string   `json:"verdict,omitempty"`
	Approved *bool    `json:"approved,omitempty"`
	Score    *float64 `json:"score,omitempty"`
}

// Output returns the output of an id; false: there is none.
func (s State) Output(id string) (StepOutput, bool) {
	i := slices.IndexFunc(s.Outputs, func(o StepOutput) bool { return o.ID == id && !o.Skipped })
	if i < 0 {
		return StepOutput{}, false
	}
	return s.Outputs[i], true
}

// Has reports whether this round has what a condition needs: verdict, score, or the output of a step, unless that was
// skipped.
func (s State) Has(need string) bool {
	if need == "verdict" || need == "score" {
		_, ok := s.Value(need)
		return ok
	}
	return slices.ContainsFunc(s.Outputs, func(o StepOutput) bool { return o.ID == need && o.Now })
}

// keepOutput keeps the output of a pass. One that failed leaves none.
func (f *folder) keepOutput(p *PassEnd, phase string) {
	if !p.Keep {
		return
	}
	command := p.Role == commandRole
	o := StepOutput{ID: p.ID, Phase: phase, Now: true, Command: command, OK: command && p.Value == "ok", ExitCode: p.ExitCode,
		Text: p.Reply, Data: p.Data, Verdict: p.Verdict, Approved: p.Approved, Score: p.Score}
	if p.Outcome != CategoryOK {
		o = StepOutput{ID: p.ID, Phase: phase}
	}
	f.setOutput(o)
}

func (f *folder) setOutput(o StepOutput) {
	f.Conditions = nil
	f.Outputs = slices.DeleteFunc(list(f, f.Outputs), func(old StepOutput) bool { return old.ID == o.ID })
	if o.Now {
		f.Outputs = append(f.Outputs, o)
	}
}

// beginOutputs makes the outputs of a phase those of an earlier round: prompts have them, conditions wait for new ones.
func (f *folder) beginOutputs(phase string) {
	f.Outputs = list(f, f.Outputs)
	for i := range f.Outputs {
		f.Outputs[i].Now = f.Outputs[i].Now && f.Outputs[i].Phase != phase
	}
}

// Condition is a condition that was evaluated, until something sets another value.
type Condition struct {
	Of    string  `json:"of"`              // until, when or quality_gate
	Stage string  `json:"stage,omitempty"` // that has not begun; empty: the phase of the event
	Step  string  `json:"step,omitempty"`  // key of the step; empty: the whole stage
	Text  string  `json:"text"`
	Holds bool    `json:"holds"`
	Read  []Value `json:"read,omitempty"` // what it names
}

// Values writes what the condition has read: approved false, tests.ok true.
func (c Condition) Values() string {
	texts := make([]string, len(c.Read))
	for i, v := range c.Read {
		texts[i] = v.Name + " " + v.Text
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, ", ")
}

// Evaluated returns a condition as it was evaluated last; false: it is to be evaluated. stage: it has not begun.
func (s State) Evaluated(of, stage, step, text string) (Condition, bool) {
	i := slices.IndexFunc(s.Conditions, func(c Condition) bool {
		return c.Of == of && c.Stage == stage && c.Step == step && c.Text == text
	})
	if i < 0 {
		return Condition{}, false
	}
	return s.Conditions[i], true
}

// evaluated keeps a condition.
func (f *folder) evaluated(e *Event) {
	c := decoded[Condition](e)
	same := func(o Condition) bool { return o.Of == c.Of && o.Stage == c.Stage && o.Step == c.Step }
	f.Conditions = append(slices.DeleteFunc(list(f, f.Conditions), same), c)
}

func (l *Log) evaluated(_ *Entry, c Condition) {
	met := "is met"
	if !c.Holds {
		met = "is not met"
	}
	of := c.Of
	if c.Stage != "" {
		of += " of stage " + c.Stage
	}
	l.info("  %s %s %s (%s)", of, OneLine(c.Text), met, OneLine(c.Values()))
}
