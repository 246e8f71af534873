package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KindRunSteered records an instruction that an operator gave a run between two questions.
const KindRunSteered Kind = "run.steered"

// MaxInstructions is the number of instructions that a run keeps. MaxInstruction is the size of one in bytes of JSON,
// with its quotes and escapes, because instructions are part of the state.
const (
	MaxInstructions = 8
	MaxInstruction  = 4 << 10
)

// RunSteered is the payload of run.steered. Its number is that of its event.
type RunSteered struct {
	Role string `json:"role,omitempty"` // whose next prompt contains the text; empty: that of every role
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	Note string `json:"note,omitempty"`
	Now  bool   `json:"now,omitempty"` // the running calls were interrupted for it
}

// ParseInstruction returns the text of an instruction without the space around it, or why it cannot be one.
func ParseInstruction(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("the instruction is empty")
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return "", fmt.Errorf("write the instruction as JSON: %w", err)
	}
	if len(raw) > MaxInstruction {
		return "", fmt.Errorf("the instruction has %d bytes as JSON; the maximum is %d: put the rest into a file and "+
			"name the file", len(raw), MaxInstruction)
	}
	return text, nil
}

// Instruction is a text of an operator for the next prompts of a run. The next prompt of its role contains it, or one
// prompt of each role. Calls that had started keep their prompt.
type Instruction struct {
	ID   int64  `json:"id"` // seq of its event
	Role string `json:"role,omitempty"`
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	TS   string `json:"ts"`
	Now  bool   `json:"now,omitempty"`

	Uses []InstructionUse `json:"uses,omitempty"` // settled passes whose prompt contained it: one of each role
	Not  []string         `json:"not,omitempty"`  // calls that had started before it
}

// InstructionUse is a settled pass whose prompt contained an instruction.
type InstructionUse struct {
	Role   string `json:"role"`
	Step   string `json:"step"`
	Round  int    `json:"round"`
	Member string `json:"member,omitempty"`
}

// UsedBy reports whether a prompt of a role has contained the instruction.
func (i Instruction) UsedBy(role string) bool {
	return slices.ContainsFunc(i.Uses, func(u InstructionUse) bool { return u.Role == role })
}

// UsedAt reports whether the prompt of a pass contained the instruction.
func (i Instruction) UsedAt(step string, round int, member string) bool {
	return slices.ContainsFunc(i.Uses, func(u InstructionUse) bool {
		return u.Step == step && u.Round == round && u.Member == member
	})
}

// Pending lists the instructions that a prompt may still contain. Of a run that has ended, these are the ones that no
// prompt contained.
func (s State) Pending() []Instruction {
	return slices.DeleteFunc(slices.Clone(s.Instructions), func(i Instruction) bool {
		return i.Role != "" && i.UsedBy(i.Role) || s.Status.Closed() && i.used()
	})
}

// Words names the roles of an instruction and its sender: for role reviewer, by ann.
func (i Instruction) Words() string {
	text := "for every role"
	if i.Role != "" {
		text = "for role " + i.Role
	}
	if i.By != "" {
		text += ", by " + i.By
	}
	var used []string
	for _, u := range i.Uses {
		used = append(used, u.Role)
	}
	if len(used) > 0 {
		return text + ", used by " + strings.Join(used, ", ")
	}
	return text + ", not used yet"
}

// InstructionsFor lists the instructions that the prompt of a call contains. An attempt after a failed one gets those
// that arrived meanwhile.
func (s State) InstructionsFor(role, call string) []Instruction {
	var all []Instruction
	for _, i := range s.Instructions {
		if (i.Role == "" || i.Role == role) && !i.UsedBy(role) && !slices.Contains(i.Not, call) {
			all = append(all, i)
		}
	}
	return all
}

// RolesFrom lists the roles of a stage and of the later ones; none where they are not known.
func (s RunStart) RolesFrom(stage int) []string {
	var all []string
	for _, stage := range s.Stages[min(max(0, stage), len(s.Stages)):] {
		for _, role := range stage.Roles {
			if !slices.Contains(all, role) {
				all = append(all, role)
			}
		}
	}
	return all
}

// steer keeps an instruction. A used one stays until a newer one takes its place.
func (f *folder) steer(e *Event) {
	p := decoded[RunSteered](e)
	i := Instruction{ID: e.Seq, Role: p.Role, Text: p.Text, By: p.By, TS: e.TS, Now: p.Now}
	if !p.Now {
		i.Not = slices.Clone(f.Started)
	}
	f.Instructions = list(f, f.Instructions)
	if at := slices.IndexFunc(f.Instructions, Instruction.used); at >= 0 && len(f.Instructions) >= MaxInstructions {
		f.Instructions = slices.Delete(f.Instructions, at, at+1)
	}
	f.Instructions = append(f.Instructions, i)
}

func (i Instruction) used() bool { return len(i.Uses) > 0 }

// SteeringFull reports whether a run can keep no further instruction: they all wait to be used.
func (s State) SteeringFull() bool {
	return len(s.Instructions) >= MaxInstructions && !slices.ContainsFunc(s.Instructions, Instruction.used)
}

// useInstructions marks the instructions of a settled pass.
func (f *folder) useInstructions(p *PassEnd) {
	if len(p.Instructions) == 0 {
		return
	}
	f.Instructions = list(f, f.Instructions)
	for n := range f.Instructions {
		if i := &f.Instructions[n]; slices.Contains(p.Instructions, i.ID) && !i.UsedBy(p.Role) {
			use := InstructionUse{Role: p.Role, Step: p.Step, Round: p.Round, Member: p.Member}
			i.Uses = append(slices.Clone(i.Uses), use)
		}
	}
}

// callStarted has a call keep its prompt: it may be answered already when a run continues.
func (f *folder) callStarted(call string) {
	if !slices.Contains(f.Started, call) {
		f.Started = append(list(f, f.Started), call)
	}
}

// callEnded lets the next prompt of a call contain what arrived while it ran: it was judged, or an operator ended it.
func (f *folder) callEnded(call string) {
	if len(f.Started) > 0 {
		f.Started = slices.DeleteFunc(list(f, f.Started), func(c string) bool { return c == call })
	}
	if len(f.Instructions) == 0 {
		return
	}
	f.Instructions = list(f, f.Instructions)
	for n := range f.Instructions {
		i := &f.Instructions[n]
		i.Not = slices.DeleteFunc(slices.Clone(i.Not), func(c string) bool { return c == call })
	}
}

func (l *Log) steered(_ *Entry, p RunSteered) {
	l.info("Steered by %s%s: %s", p.By, p.to(), p.Text)
	l.decide(LogDecision{Decision: "steer", Reason: p.Text, By: p.By})
}

// to names the role of an instruction in a sentence; empty: every role.
func (p RunSteered) to() string {
	if p.Role == "" {
		return ""
	}
	return " (role " + p.Role + ")"
}

func steeredHeadline(_ *Entry, p RunSteered) string { return fmt.Sprintf("  » %s%s", p.Text, p.to()) }

func steeredStory(_ *Entry, p RunSteered) Story {
	what := "steered" + p.to() + ": " + p.Text
	if p.Now {
		what = "steered at once" + p.to() + ": " + p.Text
	}
	return Story{What: what, By: p.By, Note: strings.TrimSpace(p.Note)}
}
