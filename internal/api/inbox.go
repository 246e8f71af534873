package api

import (
	"cmp"
	"context"
	"slices"

	"github.com/passbook-run/passbook/internal/operations"
)

// InboxInput is the input of [Inbox].
type InboxInput struct {
	Limit int `json:"limit,omitempty" jsonschema:"maximum number of questions; default 50, at most 1000"`
}

// Waiting are the open questions of the runs of this host.
type Waiting struct {
	Questions []OpenQuestion `json:"questions"`
	Total     int            `json:"total" jsonschema:"open questions, also those that are not listed"`
}

// OpenQuestion is a question that waits for an answer.
type OpenQuestion struct {
	RunID    string  `json:"run_id"`
	Pipeline string  `json:"pipeline"`
	Task     string  `json:"task"`
	CostUSD  float64 `json:"cost_usd"`
	Question Asked   `json:"question" jsonschema:"without facts: the operation question has them"`
}

// Open returns the runs of this host with a question that waits for an answer, the oldest question first.
func (h Host) Open() ([]operations.Row, error) {
	rows, _, err := h.Rows.Here(h.Settings.StateDir, h.Settings.RunRoot)
	rows = slices.DeleteFunc(rows, func(r operations.Row) bool { return r.Question == nil })
	slices.SortFunc(rows, func(a, b operations.Row) int {
		return cmp.Or(cmp.Compare(a.Question.RequestedAt, b.Question.RequestedAt), cmp.Compare(a.RunID, b.RunID))
	})
	return rows, err
}

// Inbox lists the open questions of the runs of this host, the oldest first. No server is needed.
func Inbox(_ context.Context, h Host, in InboxInput) (Waiting, error) {
	if in.Limit < 0 || in.Limit > 1000 {
		return Waiting{}, invalid("list questions: the limit is %d; use a number from 1 to 1000", in.Limit)
	}
	rows, err := h.Open()
	if err != nil {
		return Waiting{}, err
	}
	w := Waiting{Questions: []OpenQuestion{}, Total: len(rows)}
	for _, r := range rows[:min(len(rows), cmp.Or(in.Limit, 50))] {
		w.Questions = append(w.Questions, OpenQuestion{RunID: r.RunID, Pipeline: r.Pipeline, Task: r.Task,
			CostUSD: r.CostUSD, Question: askedOf(nil, *r.Question)})
	}
	return w, nil
}
