package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// significant is what makes a pipeline the pipeline that it is. Its JSON is canonical: fields in this order, lists in the file's.
// Left out on purpose: limits, budget, how often and until which threshold a stage repeats, labels and themes for people, and what only
// watches (pauses, tallies, scores).
type significant struct {
	Kind       string    `json:",omitempty"`
	Delivery   *Delivery `json:",omitempty"`
	Agents     []sigAgent
	Artifact   *Artifact
	Workspace  *Workspace
	AlwaysRead []File
	Roles      []sigRole
	Corpus     []sigSet
	Stages     []sigStage
}

type sigAgent struct {
	Name  string
	Run   []string
	Reply string
}

type sigRole struct {
	Name, Prompt, Gives, Agent string
	Checks                     []Check
}

type sigSet struct {
	ID    string
	Files []File
}

type sigStage struct {
	Name, ForEach, Checkpoint, Dir string
	Repeats                        bool
	Until, Otherwise               string
	Orders                         []sigOrder
	Steps                          []sigStep
}

type sigOrder struct {
	Name     string
	Num, Den int
}

type sigStep struct {
	Role, Run, Ask, As, See, Order string
	AskType, IfFailing             string `json:",omitempty"`
	Together                       []string
	Sizes                          []Size
	Kinds                          []string
}

// ConfigHash is the first 16 hex digits of the sha-256 of the significant fields. Two definitions with the same hash go through the
// same passes with the same files.
func ConfigHash(d *Definition) string {
	s := significant{Kind: d.Kind, Delivery: d.Delivery, Artifact: d.Artifact, Workspace: d.Workspace, AlwaysRead: d.AlwaysRead}
	for _, a := range d.Agents {
		s.Agents = append(s.Agents, sigAgent{a.Name, a.Run, a.Reply})
	}
	for _, r := range d.Roles {
		s.Roles = append(s.Roles, sigRole{r.Name, r.Prompt, r.Gives, r.Agent, r.Checks})
	}
	for _, c := range d.Corpus {
		s.Corpus = append(s.Corpus, sigSet{c.ID, c.Files})
	}
	for _, st := range d.Stages {
		s.Stages = append(s.Stages, significantStage(st))
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain data always marshals
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}

func significantStage(s Stage) sigStage {
	out := sigStage{Name: s.Name, ForEach: s.ForEach, Checkpoint: s.Checkpoint, Dir: s.Dir}
	if s.Repeat != nil {
		out.Repeats, out.Otherwise = true, s.Repeat.Otherwise
		if u, err := ParseUntil(s.Repeat.Until); err == nil {
			out.Until = u.shape()
		}
	}
	for _, o := range s.Orders {
		out.Orders = append(out.Orders, sigOrder{o.Name, o.Num, o.Den})
	}
	for _, p := range s.Steps {
		step := sigStep{Role: p.Role, Run: p.Run, Ask: p.Ask, As: p.As, See: p.See, Order: p.Order, Together: p.Together}
		if p.AskType != AskAlways {
			step.AskType = p.AskType
		}
		if p.IfFailing == "ask" {
			step.IfFailing = p.IfFailing
		}
		if p.Screenshots != nil {
			step.Sizes, step.Kinds = p.Screenshots.Sizes, p.Screenshots.Kinds
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}
