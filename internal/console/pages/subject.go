package pages

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// here returns the runs with a directory on this host, as recorded.
func (s *site) here() ([]operations.Row, error) {
	rows, lost, err := s.h.Rows.Here(s.h.Settings.StateDir, s.h.Settings.RunRoot)
	if err != nil {
		return nil, err
	}
	return operations.Offline(rows, lost, operations.Filter{}, "Temporal was not asked").Runs, nil
}

// waiting returns the runs with a question that waits for an answer, the oldest question first.
func (s *site) waiting() ([]operations.Row, error) {
	rows, err := s.h.Open()
	if err != nil {
		return nil, err
	}
	return operations.Offline(rows, nil, operations.Filter{}, "Temporal was not asked").Runs, nil
}

// subject is the run that a page is about.
type subject struct {
	Row  operations.Row
	Run  view.Run // zero: its directory is on another host
	Path string   // of its page
	dir  rundir.Dir

	Actions []api.Operation // that its status and the identity allow
	Others  []api.Operation // of these, those without a special place on the page
	Asks    *run.Question
	Tab     string

	Class      string // CSS class of the status
	Status     string // in a few words
	Task       string // "": only the name of the pipeline
	NeedsForce bool   // a resume needs a reason
}

// minPrefix is the length from which the beginning of an id names a run.
const minPrefix = 8

// find returns the row of a run. The name is an id or the beginning of one: a page address cannot name a directory.
func (s *site) find(ctx context.Context, name string) (operations.Row, error) {
	rows, err := s.here()
	if err != nil {
		return operations.Row{}, err
	}
	if row, ok := named(rows, name); ok {
		return row, nil
	}
	all, err := s.h.Runs(ctx, operations.Filter{}, false)
	if err != nil {
		return operations.Row{}, err
	}
	if row, ok := named(all.Runs, name); ok {
		return row, nil
	}
	return operations.Row{}, &missingError{what: "run " + name}
}

func named(rows []operations.Row, name string) (operations.Row, bool) {
	var found []operations.Row
	for _, r := range rows {
		if r.RunID == name {
			return r, true
		}
		if len(name) >= minPrefix && strings.HasPrefix(r.RunID, name) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return operations.Row{}, false
	}
	return found[0], true
}

// subject reads the run that a request names. Of a run on another host only the row is known.
func (s *site) subject(r *http.Request) (subject, error) {
	row, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return subject{}, err
	}
	return s.of(r.Context(), row)
}

func (s *site) of(ctx context.Context, row operations.Row) (subject, error) {
	sub := subject{Row: row, Path: pathFor(ctx, row.RunID)}
	if row.Directory == "" {
		sub.describe()
		return sub, nil
	}
	var err error
	if sub.dir, err = s.h.Find(row.Directory); err != nil {
		return sub, err
	}
	if sub.Run, err = s.h.Inspect(ctx, sub.dir); err != nil {
		return sub, err
	}
	sub.Row.EffectiveStatus = sub.Run.Effective
	if q, open := sub.Run.Now.State.Asks(); open && !sub.Run.Now.State.Status.Settled() {
		sub.Asks = &q
	}
	id, _ := access.From(ctx)
	status, undecided := sub.Run.Effective.Status, sub.Asks != nil
	names := sub.Run.Available()
	for _, op := range []run.Operation{run.Resume, run.Revert} { // of a halted run, with a reason
		if run.May(status, op, run.Terms{Forced: true, Undecided: undecided,
			Projects: len(sub.Run.Now.State.Projects) > 0}) == nil {
			names = append(names, op)
		}
	}
	for _, o := range api.Table() {
		if slices.Contains(names, run.Operation(o.Name)) && id.Can.Includes(o.Access) {
			sub.Actions = append(sub.Actions, o)
		}
	}
	sub.describe()
	return sub, nil
}

// local is subject for pages that need the directory.
func (s *site) local(r *http.Request, tab string) (subject, error) {
	sub, err := s.subject(r)
	if err == nil && sub.Row.Directory == "" {
		err = &missingError{what: "the records of run " + sub.Row.RunID +
			", which are in a directory that is not available here"}
	}
	sub.Tab = tab
	return sub, err
}

// Away reports whether the directory of the run is on another host.
func (s subject) Away() bool { return s.Row.Directory == "" }

// State is the state in the directory.
func (s subject) State() run.State { return s.Run.Now.State }

// May reports whether the identity may do this to the run now.
func (s subject) May(operation string) bool {
	return slices.ContainsFunc(s.Actions, func(o api.Operation) bool { return o.Name == operation })
}

// others are the allowed actions besides answers and the first ones of a page.
func others(all []api.Operation) []api.Operation {
	return slices.DeleteFunc(slices.Clone(all), func(o api.Operation) bool {
		return slices.Contains([]string{"decide", "pause", "resume", "steer", "revert", "fork", "replay", "verify"}, o.Name)
	})
}

func statusText(r operations.Row) string {
	return view.Brief(r.EffectiveStatus, r.NotApproved, "")
}

// describe adds what every page about the run shows.
func (s *subject) describe() {
	s.Class, s.Status, s.Task = report.StatusClass(s.Row.EffectiveStatus.Status), statusText(s.Row), s.Row.Task
	s.Others = others(s.Actions)
	if s.Away() {
		return
	}
	s.NeedsForce = !slices.Contains(s.Run.Available(), run.Resume)
	if task := s.State().Task; task != s.State().Pipeline {
		s.Task = task
	}
}

// Short is the beginning of the id.
func (s subject) Short() string { return shortID(s.Row.RunID) }

func shortID(id string) string {
	if len(id) > minPrefix {
		return id[:minPrefix]
	}
	return id
}
