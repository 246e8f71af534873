package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// ListTimeout bounds the time that the server may take for a list.
const ListTimeout = 10 * time.Second

// Listing is a list of runs.
type Listing struct {
	Runs      []operations.Row `json:"runs"`
	Total     int              `json:"total" jsonschema:"matching runs, also those that are not listed"`
	Forgotten []string         `json:"forgotten" jsonschema:"remembered, with neither directory nor workflow"`
	Server    string           `json:"server" jsonschema:"that was asked; empty: none"`
	Problem   string           `json:"problem" jsonschema:"why no server answered; every status is then as recorded"`

	Silent bool `json:"-"` // a server runs or is configured, and did not answer
}

// Runs lists the runs of this machine and of its server, in no order.
func (h Host) Runs(ctx context.Context, f operations.Filter, offline bool) (Listing, error) {
	rows, lost, err := h.Rows.Here(h.Settings.StateDir, h.Settings.RunRoot)
	if err != nil {
		return Listing{}, err
	}
	if offline {
		return serverNotAsked(rows, lost, f, "Temporal was not asked"), nil
	}
	brief, stop := context.WithTimeout(ctx, AskFor)
	defer stop()
	op, err := h.Peek(brief, run.Claim{})
	if err != nil {
		r := serverNotAsked(rows, lost, f, err.Error())
		r.Silent = !errors.Is(err, ErrNoServer)
		return r, nil
	}
	defer op.Client.Close()
	ctx, cancel := context.WithTimeout(ctx, ListTimeout)
	defer cancel()
	l, err := op.List(ctx, rows, lost, f)
	if err != nil {
		return serverNotAsked(rows, lost, f, err.Error()), nil
	}
	return Listing{Runs: l.Runs, Forgotten: l.Forgotten, Server: op.Address}, nil
}

func serverNotAsked(rows []operations.Row, lost []string, f operations.Filter, why string) Listing {
	l := operations.Offline(rows, lost, f, why)
	return Listing{Runs: l.Runs, Forgotten: l.Forgotten, Problem: why}
}

// ListInput is the input of [List].
type ListInput struct {
	Status   []run.Status `json:"status,omitempty" jsonschema:"only runs with these statuses, such as running or paused"`
	Pipeline string       `json:"pipeline,omitempty" jsonschema:"only runs of this pipeline"`
	Stage    string       `json:"stage,omitempty" jsonschema:"only runs in this stage"`
	Since    string       `json:"since,omitempty" jsonschema:"only runs started since, as in 2026-11-25T18:00:00Z"`
	Text     string       `json:"text,omitempty" jsonschema:"only runs with this text in id, pipeline, task or directory"`
	Limit    int          `json:"limit,omitempty" jsonschema:"maximum number of runs; default 20, at most 200"`
	After    string       `json:"after,omitempty" jsonschema:"run_id of the last run of the list before: what follows it"`
}

// List lists runs, the newest first.
func List(ctx context.Context, h Host, in ListInput) (Listing, error) {
	for _, s := range in.Status {
		if !s.Known() {
			return Listing{}, invalid("list runs: the status %q is unknown; use one of %v", s, run.Statuses())
		}
	}
	if in.Limit < 0 || in.Limit > 200 {
		return Listing{}, invalid("list runs: the limit is %d; use a number from 1 to 200", in.Limit)
	}
	f := operations.Filter{Status: in.Status, Pipeline: in.Pipeline, Stage: in.Stage, Text: in.Text}
	if in.Since != "" {
		at, err := time.Parse(time.RFC3339, in.Since)
		if err != nil {
			return Listing{}, invalid("list runs: since is %q; write a time as in 2026-11-25T18:00:00Z", in.Since)
		}
		f.Since = at
	}
	l, err := h.Runs(ctx, f, false)
	if err != nil {
		return l, err
	}
	slices.SortFunc(l.Runs, func(x, y operations.Row) int {
		return cmp.Or(-cmp.Compare(x.StartedAt, y.StartedAt), cmp.Compare(x.RunID, y.RunID))
	})
	l.Total, l.Forgotten = len(l.Runs), append([]string{}, l.Forgotten...)
	if in.After != "" {
		at := slices.IndexFunc(l.Runs, func(r operations.Row) bool { return r.RunID == in.After })
		if at < 0 {
			return Listing{}, invalid("list runs: no listed run has the id %q, after which to continue; list from the start",
				in.After)
		}
		l.Runs = l.Runs[at+1:]
	}
	l.Runs = append([]operations.Row{}, l.Runs[:min(len(l.Runs), cmp.Or(in.Limit, 20))]...)
	return l, nil
}
