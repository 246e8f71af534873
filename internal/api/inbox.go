package api

import (
	"cmp"
	"context"
)

// InboxInput is the input of [Inbox].
type InboxInput struct {
	Limit int `json:"limit,omitempty" jsonschema:"maximum number of questions; default 50, at most 1000"`
}

// Waiting are the open questions of the runs of this host.
type Waiting struct {
	Questions []OpenQuestion `json:"questions"`
	Total     int            `json:"total" jsonschema:"open questions, also those that are not listed"`

	Unrecorded int `json:"unrecorded" jsonschema:"answered questions that their directories do not record yet; not listed"`
}

// OpenQuestion is a question that waits for an answer.
type OpenQuestion struct {
	RunID    string  `json:"run_id"`
	Pipeline string  `json:"pipeline"`
	Task     string  `json:"task"`
	CostUSD  float64 `json:"cost_usd"`
	Question Asked   `json:"question" jsonschema:"without facts: the operation question has them"`
}

// Inbox lists the open questions of the runs of this host, the oldest first. No server is needed.
func Inbox(ctx context.Context, h Host, in InboxInput) (Waiting, error) {
	if in.Limit < 0 || in.Limit > 1000 {
		return Waiting{}, invalid("list questions: the limit is %d; use a number from 1 to 1000", in.Limit)
	}
	rows, unrecorded, err := h.Open(ctx)
	if err != nil {
		return Waiting{}, err
	}
	w := Waiting{Questions: []OpenQuestion{}, Total: len(rows), Unrecorded: unrecorded}
	for _, r := range rows[:min(len(rows), cmp.Or(in.Limit, 50))] {
		w.Questions = append(w.Questions, OpenQuestion{RunID: r.RunID, Pipeline: r.Pipeline, Task: r.Task,
			CostUSD: r.CostUSD, Question: askedOf(nil, *r.Question)})
	}
	return w, nil
}
