package adapter

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Summary is the fold of the frames of a call. The zero value is ready. It is valid at any time: for a call that was
// ended, it contains what was reported until then.
type Summary struct {
	Session string
	Turns   int
	Status  Status
	Code    string          // of the result
	Error   string          // text of the last error; of a result, else of a warning with a code
	HTTP    int             // of the last error
	Warned  int             // warnings
	Problem string          // the last warning without a code: why an output has no result, or a line that is not an event
	Limit   json.RawMessage // the last one that the provider reported
	Lost    bool            // requests were cut off whose usage may be missing

	ListPrice bool // costs are at list price: a subscription or a gateway pays

	answer    string
	partial   []byte
	model     string // of the session
	total     *Frame
	continued bool                  // after total
	requests  map[string]ModelUsage // after total
	order     []string              // ids in requests
	settled   []ModelUsage
}

// maxRequests is the number of model requests whose usage can still be replaced.
const maxRequests = 10_000

// Add adds frames.
func (s *Summary) Add(frames ...Frame) {
	for _, f := range frames {
		s.add(f)
	}
}

func (s *Summary) add(f Frame) {
	s.Lost = s.Lost || f.Lost
	switch f.Kind {
	case KindSession:
		s.Session, s.model = cmp.Or(f.ID, s.Session), cmp.Or(f.Model, s.model)
		s.ListPrice = s.ListPrice || f.ListPrice
	case KindText:
		if f.Parent == "" {
			s.reopen()
			s.partial = append(s.partial, f.Text...)
		}
	case KindTool:
		if f.Parent == "" && f.State == ToolStarted {
			s.reopen()
		}
	case KindUsage:
		s.addUsage(f)
	case KindLimit:
		s.Limit = f.Limit
	case KindWarning:
		s.Warned++
		if f.Code == "" {
			s.Problem = f.Text
		} else {
			s.Error, s.HTTP = f.Text, f.HTTP
		}
	case KindResult:
		s.Status, s.Code, s.Turns = f.Status, f.Code, f.Turns
		s.answer, s.Error, s.HTTP = f.Text, "", f.HTTP
		if f.Status == StatusError || f.Status == StatusTruncated || f.Status == StatusMaxTurns ||
			f.Status == StatusBudget {
			s.Error = f.Text
		}
	}
}

// reopen drops the result of a call that continues.
func (s *Summary) reopen() {
	if s.Status != "" {
		s.Status, s.Code, s.answer, s.Error, s.Turns = "", "", "", "", 0
		s.partial, s.continued = nil, true
	}
}

func (s *Summary) addUsage(f Frame) {
	if f.Usage == nil {
		return
	}
	used := f.Usage.bounded()
	f.Usage, f.Models = &used, slices.Clone(f.Models)
	for i := range f.Models {
		f.Models[i].Usage = f.Models[i].bounded()
	}
	if f.Total {
		s.total, s.continued, s.requests, s.order, s.settled = &f, false, nil, nil, nil
		return
	}
	row := ModelUsage{Model: f.Model, Usage: *f.Usage}
	if _, known := s.requests[f.ID]; f.ID == "" || !known && len(s.requests) >= maxRequests {
		s.settled = addModel(s.settled, row)
		return
	} else if !known {
		s.order = append(s.order, f.ID)
	}
	if s.requests == nil {
		s.requests = map[string]ModelUsage{}
	}
	s.requests[f.ID] = row
}

// addModel adds usage to the row of its model. It changes the rows in place.
func addModel(rows []ModelUsage, u ModelUsage) []ModelUsage {
	at := slices.IndexFunc(rows, func(r ModelUsage) bool { return r.Model == u.Model })
	if at < 0 {
		own := ModelUsage{Model: u.Model}
		own.add(u.Usage)
		return append(rows, own)
	}
	rows[at].add(u.Usage)
	return rows
}

// Text returns the text of the result, or without one the text until now.
func (s *Summary) Text() string {
	if s.Status != "" {
		return s.answer
	}
	return string(s.partial)
}

// Usage returns what was reported until now: exact if the program reported a total that contains all requests,
// at_least if some may be missing, unknown if nothing.
func (s *Summary) Usage() (Usage, run.CostKnown) {
	var sum Usage
	for _, row := range s.requested() {
		sum.add(row.Usage)
	}
	switch {
	case s.total == nil && len(s.requests)+len(s.settled) == 0:
		return sum, run.CostUnknown
	case s.total == nil:
		return sum, run.CostAtLeast
	}
	known := run.CostExact
	if s.Lost || s.continued || len(s.requests)+len(s.settled) > 0 {
		known = run.CostAtLeast
	}
	sum.add(*s.total.Usage)
	return sum, known
}

// requested returns the usage of model requests that no total contains, by model.
func (s *Summary) requested() []ModelUsage {
	rows := slices.Clone(s.settled)
	for _, id := range s.order {
		rows = addModel(rows, s.requests[id])
	}
	return rows
}

// Models returns the usage of each model, in the order of their first report.
func (s *Summary) Models() []ModelUsage {
	if s.total == nil {
		return s.requested()
	}
	rows := slices.Clone(s.total.Models)
	if len(rows) == 0 {
		rows = []ModelUsage{{Model: cmp.Or(s.total.Model, s.model), Usage: *s.total.Usage}}
	}
	for _, row := range s.requested() {
		rows = addModel(rows, row)
	}
	return rows
}

// Model returns the model that did most of the work, or without a report of it the session's.
func (s *Summary) Model() string {
	rows := s.Models()
	slices.SortFunc(rows, func(a, b ModelUsage) int { return cmp.Compare(a.Model, b.Model) })
	var most ModelUsage
	for _, row := range rows {
		if most.Model == "" || cmp.Or(cmp.Compare(row.dollars(), most.dollars()), cmp.Compare(row.Output, most.Output)) >= 0 {
			most = row
		}
	}
	return cmp.Or(most.Model, s.model)
}

// dollars returns the reported cost, or 0.
func (u ModelUsage) dollars() float64 {
	if u.USD == nil {
		return 0
	}
	return *u.USD
}
