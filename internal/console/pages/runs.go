package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
)

// perPage is the number of runs on a page of the list.
const perPage = 50

// runList is the body of the list of runs.
type runList struct {
	Rows      []listed
	Total     int // that match
	All       int
	Filters   []filter
	Show      string
	Pipeline  string
	Text      string
	Pipelines []string
	First     int // number of the first shown run
	Last      int
	Prev      string
	Next      string
	Server    string // that was asked; "": none
	Problem   string // why no server answered
	Forgotten int
}

// listed is a row of the list.
type listed struct {
	operations.Row
	Progress string
	WaitsFor string
	Since    string // of the question
}

// filter is a link that shows some of the runs.
type filter struct {
	Name, Show, Path string
	Count            int
}

// shown are the filters by status, in the order of the page.
var shown = []struct {
	show, name string
	wants      func(operations.Row) bool
}{
	{"", "All", func(operations.Row) bool { return true }},
	{"asks", "Waiting for you", func(r operations.Row) bool { return waits(r) != nil }},
	{"live", "Working", byColor(run.ColorLive)},
	{"paused", "Paused", byColor(run.ColorPaused)},
	{"done", "Done", byColor(run.ColorDone)},
	{"bad", "Failed or ended", byColor(run.ColorBad)},
}

func byColor(c run.Color) func(operations.Row) bool {
	return func(r operations.Row) bool {
		return waits(r) == nil && report.StatusClass(r.EffectiveStatus.Status) == string(c)
	}
}

// waits is the question for which a run waits; nil: for none.
func waits(r operations.Row) *run.Question { return r.Question }

// listings keeps the last list, because asking the server for it takes time.
type listings struct {
	mu   sync.Mutex
	last api.Listing
	at   time.Time
}

// listingLife is how long a list is shown.
const listingLife = 2 * time.Second

// listing returns all runs of this host and its server, the newest first.
func (s *site) listing(ctx context.Context) (api.Listing, error) {
	s.lists.mu.Lock()
	defer s.lists.mu.Unlock()
	if age := s.now().Sub(s.lists.at); age >= 0 && age < listingLife {
		return s.lists.last, nil
	}
	l, err := s.h.Runs(ctx, operations.Filter{}, false)
	if err != nil {
		return l, err
	}
	newestFirst(l.Runs)
	s.lists.last, s.lists.at = l, s.now()
	return l, nil
}

// runs shows the list of runs.
func (s *site) runs(r *http.Request) (screen, error) {
	l, err := s.listing(r.Context())
	if err != nil {
		return screen{}, err
	}
	q := r.URL.Query()
	body := runList{Show: q.Get("show"), Pipeline: q.Get("pipeline"), Text: strings.TrimSpace(q.Get("text")),
		All: len(l.Runs), Server: l.Server, Problem: l.Problem, Forgotten: len(l.Forgotten)}
	var matching []operations.Row
	text := strings.ToLower(body.Text)
	for _, row := range l.Runs {
		body.Pipelines = append(body.Pipelines, row.Pipeline)
		named := strings.Contains(strings.ToLower(strings.Join([]string{row.RunID, row.Pipeline, row.Task, row.Stage,
			row.Directory}, "\n")), text)
		if named && (body.Pipeline == "" || body.Pipeline == row.Pipeline) {
			matching = append(matching, row)
		}
	}
	slices.Sort(body.Pipelines)
	body.Pipelines = slices.Compact(body.Pipelines)
	wants := shown[0].wants
	for _, f := range shown {
		n := 0
		for _, row := range matching {
			if f.wants(row) {
				n++
			}
		}
		body.Filters = append(body.Filters, filter{f.name, f.show, body.path(f.show, 0), n})
		if f.show == body.Show {
			wants = f.wants
		}
	}
	matching = slices.DeleteFunc(matching, func(row operations.Row) bool { return !wants(row) })
	page, err := strconv.Atoi(q.Get("page"))
	if err != nil {
		page = 0
	}
	body.cut(matching, page)
	return screen{name: "runs", title: "Runs", body: body}, nil
}

// cut selects the rows of a page, from 0.
func (l *runList) cut(rows []operations.Row, page int) {
	l.Total = len(rows)
	last := max(0, (len(rows)-1)/perPage)
	page = max(0, min(page, last))
	from, to := page*perPage, min(len(rows), (page+1)*perPage)
	l.First, l.Last = from+1, to
	for _, row := range rows[from:to] {
		one := listed{Row: row, Progress: progress(row)}
		if q := waits(row); q != nil {
			one.WaitsFor, one.Since = q.Words(), q.RequestedAt
		} else if t := row.EffectiveStatus.Turn; t != nil {
			one.WaitsFor = fmt.Sprintf("its turn: %d of %d in the queue", t.Place, t.Of)
		} else if row.Limited != nil && row.Limited.Kind == run.LimitAtOnce {
			one.WaitsFor = "its turn"
		} else if row.Limited != nil {
			one.WaitsFor = "a limit of the provider"
		}
		l.Rows = append(l.Rows, one)
	}
	if page > 0 {
		l.Prev = l.path(l.Show, page-1)
	}
	if page < last {
		l.Next = l.path(l.Show, page+1)
	}
}

// path is the address of the list with these filters.
func (l *runList) path(show string, page int) string {
	q := url.Values{}
	for name, value := range map[string]string{"show": show, "pipeline": l.Pipeline, "text": l.Text} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if page > 0 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}
