package run

import (
	"fmt"
	"strings"
)

// Ending is how a conversation ended, as its file records it.
type Ending string

// Endings. The zero value means that its last answer is complete.
const (
	EndedByLimit Ending = "limit"       // the provider refused to answer for a time
	EndedByError Ending = "error"       // the agent reported another error
	EndedInTool  Ending = "killed-tool" // its program was ended while a tool was running
	EndedEarly   Ending = "killed"      // its program was ended before the answer was complete
	EndedByUser  Ending = "interrupted" // the user interrupted the answer
)

// Text describes the ending as a predicate: was killed in a tool call.
func (e Ending) Text() string {
	switch e {
	case EndedByLimit:
		return "met a usage limit"
	case EndedByError:
		return "ended with an error"
	case EndedInTool:
		return "was killed in a tool call"
	case EndedEarly:
		return "was killed before its answer was complete"
	case EndedByUser:
		return "was interrupted by its user"
	}
	return "ended after an answer"
}

// Adopted is the conversation of a terminal that a run continues with the first call of a role.
type Adopted struct {
	Program string `json:"program"` // claude or codex
	Session string `json:"session"` // its id
	Digest  string `json:"digest"`  // of its file
	Host    string `json:"host"`    // that has the copy
	File    string `json:"file"`    // the copy, below the folder of kept sessions of that host
	Folder  string `json:"folder"`  // in which the conversation was held
	Phase   string `json:"phase"`
	Role    string `json:"role"` // whose first call in that stage continues it
	Ended   Ending `json:"ended,omitempty"`
	Last    string `json:"last,omitempty"` // time of its last entry
	Before  Spend  `json:"before"`         // what it had cost: not part of the costs and the budget of the run
	Brief   Blob   `json:"brief"`          // what the prompt of that call contains about it

	Limited *LimitedCall `json:"limited,omitempty"` // the limit that the run waits for before that call; nil: none
}

// session returns the session of the role that continues the conversation.
func (a *Adopted) session() RoleSession {
	return RoleSession{Phase: a.Phase, Role: a.Role,
		KeptSession: KeptSession{ID: a.Session, Host: a.Host, Digest: a.Digest, Program: a.Program, File: a.File}}
}

// Text describes the conversation: claude's conversation 0b1c2d3e, which was killed in a tool call.
func (a Adopted) Text() string {
	text := fmt.Sprintf("%s's conversation %s of %s, which %s", a.Program, a.Session, OneLine(a.Folder), a.Ended.Text())
	if a.Last != "" {
		text += " at " + a.Last
	}
	return text
}

// CostText describes what the conversation had cost before.
func (a Adopted) CostText() string {
	return strings.TrimPrefix(CostPhrase(a.Before.USD, a.Before.UnknownCalls()), "cost ") +
		" before the adoption, not in the budget"
}
