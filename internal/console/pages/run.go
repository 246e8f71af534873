package pages

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// runPage is the body of a page about a run.
type runPage struct {
	subject
	Report   *report.Page
	Question *question
	Rows     []view.Row // about the status
	Stages   []stage
	Now      nowPart
	Damage   []string
	Web      bool           // Temporal's Web UI can be opened
	Far      *api.RunStatus // what the workflow of a run without a directory here reports; nil: nothing
	Gone     string         // what to do about a directory that was moved or deleted; empty: it was not on this host
	All      bool           // every pass is listed
	Few      bool           // all of them are unfolded
	Active   []view.LaneNow // that work or wait
	Lanes    []view.Lane
	Hidden   int // passes that are not listed

	Lineage []operations.Branch
	Problem string
	Marks   []mark
	Rounds  []rounds
	Log     logPart
	Changed []report.Difference
	Cut     bool
	Causes  []string
	Over    bool   // it has ended: its result is shown first
	Result  string // what it leaves; empty: nothing
}

// stage is a stage of the timeline.
type stage struct {
	Title    string
	Note     string
	State    string // done, now, later, or bad
	Entries  []entry
	Finished bool
}

// entry is one line of the timeline: a group of passes, or something else that happened.
type entry struct {
	Seq      int64
	Group    *report.Group
	Title    string // of the group within its stage
	Decision *report.Decision
	Action   *view.Action
}

// maxPasses is the number of passes that a page lists unless all are asked for.
const maxPasses = 120

// maxUnfolded is the number of passes up to which none is folded.
const maxUnfolded = 40

// base reads what every tab of a run shows.
func (s *site) base(r *http.Request, tab string) (*runPage, error) {
	sub, err := s.local(r, tab)
	if err != nil {
		return nil, err
	}
	p := &runPage{subject: sub, Web: s.hasWebUI(sub)}
	if sub.Run.Damaged() {
		for _, row := range sub.Run.Health() {
			if row.Name == "Damage" {
				p.Damage = append(p.Damage, row.Value)
			}
		}
	}
	return p, nil
}

// report reads the content of the report.
func (p *runPage) read(rows int) error {
	o := report.Options{Pictures: -1, Texts: 1, Rows: rows}
	if p.Run.Effective.Status.Class() == run.Live {
		o.Now = p.Run.Clock.Now
	}
	page, err := report.Read(p.dir, o)
	p.Report = page
	return err
}

func (p *runPage) view(name string) screen {
	return screen{name: name, title: cmp.Or(p.Row.Pipeline, "Run") + " " + p.Short(), body: p}
}

// overview shows the state of a run and its timeline.
func (s *site) overview(r *http.Request) (screen, error) {
	sub, err := s.subject(r)
	if err != nil {
		return screen{}, err
	}
	if sub.Away() {
		p := &runPage{subject: sub, Web: s.hasWebUI(sub)}
		_, missing := s.h.Find(sub.Row.RunID)
		if gone := (*operations.MissingError)(nil); errors.As(missing, &gone) {
			gone.IDs = true
			p.Gone = s.h.ProblemOf(missing).Message
		}
		if far, err := s.h.Elsewhere(r.Context(), sub.Row.RunID, missing); err == nil {
			p.Far = &far
		}
		return p.view("away"), nil
	}
	s.h.Refresh(r.Context(), sub.dir)
	p, err := s.base(r, "overview")
	if err != nil {
		return screen{}, err
	}
	rows := maxPasses
	if p.All = r.URL.Query().Has("all"); p.All {
		rows = report.DefaultRows * 10
	}
	if err := p.read(rows); err != nil {
		return screen{}, err
	}
	if p.Asks != nil {
		if p.Question, err = s.question(r.Context(), p.subject); err != nil {
			p.Problem = s.h.ProblemOf(err).Message
		}
	}
	p.Now = s.working(p.subject, nil)
	switch held := p.Run.Effective.Held; {
	case held != nil:
		p.Causes = []string{s.h.HeldText(*held, p.dir)}
	case p.Asks == nil && p.Run.Effective.Status.Class() != run.Live: // else the page shows what the run waits for
		p.Causes = p.Run.Causes()
	}
	if state := p.State(); state.Status.Settled() || state.Status == run.Done {
		p.Over, p.Result = true, view.Result(p.dir, state)
		if p.compare(r.Context(), s); p.Problem != "" { // the source may be on another host, or the run works on nothing
			p.Problem = ""
		}
	}
	p.Rows = slices.DeleteFunc(p.Run.Identity(), func(row view.Row) bool {
		return !slices.Contains(shownRows, row.Name)
	})
	return p.view("overview"), p.timeline()
}

// shownRows are the rows about a run that its first page shows.
var shownRows = []string{"Origin", "Started", "Workspace", "Delivered", "Follows up", "Adopted", "Cost before", "Limit", "Instruction", "Last save"}

// timeline arranges what has happened and what is planned.
func (p *runPage) timeline() error {
	f, err := view.Read(p.dir)
	if err != nil {
		return err
	}
	entries := p.entries()
	now := view.Of(f, p.Run.Clock.Now)
	planned := now.Stages
	p.lanes(now.Lanes)
	titles := p.Report.History.Stages
	at := -1
	for _, e := range entries {
		title := ""
		if e.Group != nil {
			title = titles[e.Group.Stage].Title
		}
		if at < 0 || title != "" && title != p.Stages[at].Title {
			p.Stages = append(p.Stages, stage{Title: cmp.Or(title, "Start"), State: "done"})
			at++
		}
		if e.Group != nil && e.Group.Title != p.Stages[at].Title {
			e.Title = strings.TrimPrefix(e.Group.Title, p.Stages[at].Title+" · ")
		}
		p.Stages[at].Entries = append(p.Stages[at].Entries, e)
	}
	for _, one := range planned {
		i := slices.IndexFunc(p.Stages, func(s stage) bool { return s.Title == one.Title })
		if i < 0 {
			p.Stages = append(p.Stages, stage{Title: one.Title})
			i = len(p.Stages) - 1
		}
		p.Stages[i].plan(one)
	}
	listed := listedPasses(p.Report.Groups)
	p.Hidden, p.Few = len(p.Report.Passes)-listed, listed <= maxUnfolded
	return nil
}

// lanes lists the lanes: of many only those that are not simply merged, unless all are asked for.
func (p *runPage) lanes(active []view.LaneNow) {
	p.Active, p.Lanes = active, p.Report.Lanes
	if p.All || len(p.Lanes) <= maxPasses {
		return
	}
	p.Lanes = slices.DeleteFunc(slices.Clone(p.Lanes), func(l view.Lane) bool {
		return l.Outcome == view.LaneMerged && l.Conflicts == 0
	})
	p.Lanes = p.Lanes[:min(len(p.Lanes), maxPasses)]
}

// plan adds what the plan knows of a stage.
func (s *stage) plan(f view.Stage) {
	switch {
	case f.Current && !f.Finished:
		s.State = "now"
	case f.Finished:
		s.State = "done"
	case len(s.Entries) == 0:
		s.State = "later"
	}
	if f.Repeats && s.State != "later" {
		s.Note = roundsText(f)
	}
}

func listedPasses(all []report.Group) int {
	n := 0
	for _, g := range all {
		n += len(g.Rows)
	}
	return n
}

// entries are the groups of passes, the decisions and what was done from outside, in the order of the journal.
func (p *runPage) entries() []entry {
	var all []entry
	for i := range p.Report.Groups {
		if g := &p.Report.Groups[i]; len(g.Rows) > 0 {
			all = append(all, entry{Seq: g.Rows[0].Seq, Group: g})
		}
	}
	for i := range p.Report.Decisions {
		all = append(all, entry{Seq: p.Report.Decisions[i].Seq, Decision: &p.Report.Decisions[i]})
	}
	for i := range p.Report.Actions {
		all = append(all, entry{Seq: p.Report.Actions[i].Seq, Action: &p.Report.Actions[i]})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// cost shows what a run has cost, and its scores.
func (s *site) cost(r *http.Request) (screen, error) {
	p, err := s.base(r, "cost")
	if err != nil {
		return screen{}, err
	}
	return p.view("cost"), p.read(report.DefaultRows)
}

// changes shows what a run has changed.
func (s *site) changes(r *http.Request) (screen, error) {
	p, err := s.base(r, "changes")
	if err != nil {
		return screen{}, err
	}
	if err := p.read(report.DefaultRows); err != nil {
		return screen{}, err
	}
	p.compare(r.Context(), s)
	return p.view("changes"), nil
}

func (p *runPage) compare(ctx context.Context, s *site) {
	out, err := api.Diff(ctx, s.h, api.DiffInput{Run: p.dir.Root, Bytes: 1_000_000})
	if err != nil {
		p.Problem = s.h.ProblemOf(err).Message
		return
	}
	p.Changed, p.Cut = report.Patch(out.Patch), out.Truncated
}

// history shows where a run comes from, what was done to it, and its errors.
func (s *site) history(r *http.Request) (screen, error) {
	p, err := s.base(r, "history")
	if err != nil {
		return screen{}, err
	}
	if err := p.read(report.DefaultRows); err != nil {
		return screen{}, err
	}
	l, err := s.listing(r.Context())
	if err != nil {
		return screen{}, err
	}
	thread := p.Run.Claim.ThreadID
	p.Lineage = operations.Lineage(slices.DeleteFunc(slices.Clone(l.Runs), func(row operations.Row) bool {
		return row.ThreadID != thread
	}))
	p.Rows = append(p.Run.Identity(), p.Run.Details()...)
	return p.view("history"), nil
}

// rounds are the pictures of one view of a page, a picture for each round.
type rounds struct {
	Name  string
	Shots []picture
	First bool
}

// pictures shows the screenshots of a run.
func (s *site) pictures(r *http.Request) (screen, error) {
	p, err := s.base(r, "pictures")
	if err != nil {
		return screen{}, err
	}
	found, err := view.ReadRecord(p.dir)
	if err != nil {
		return screen{}, err
	}
	for _, of := range found.History.Shots {
		shots, err := screenshots(p.subject, of)
		if err != nil {
			p.Problem = s.h.ProblemOf(err).Message
			continue
		}
		for _, one := range shots {
			i := slices.IndexFunc(p.Rounds, func(g rounds) bool { return g.Name == report.ViewOf(one.name) })
			if i < 0 {
				i = len(p.Rounds)
				p.Rounds = append(p.Rounds, rounds{Name: report.ViewOf(one.name)})
			}
			p.Rounds[i].Shots = append(p.Rounds[i].Shots, one.picture)
		}
	}
	return p.view("pictures"), nil
}
