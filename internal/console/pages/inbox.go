package pages

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/markdown"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// maxListed is the number of questions that the inbox lists beside the one that it shows.
const maxListed = 40

// inbox is the body of the page with the open questions.
type inbox struct {
	Rows       []operations.Row // around the shown one
	Total      int
	Before     int // questions before Rows
	After      int
	Place      int       // of the shown question, from 1
	Open       *question // nil: no question is open
	Prev, Next string
	Problem    string // why the question cannot be shown
}

// question is an open question with what it is about.
type question struct {
	subject
	Asked    api.Asked
	Judged   *run.Judged
	Reply    *text // with the verdict
	Findings []finding
	Texts    []text // other replies
	Facts    []run.Fact
	Changes  []report.Difference
	Cut      bool // the changes are not complete
	Pictures []pair
	Budget   float64
	Spent    string
	Answer   answerForm
	Held     string // why the run does not continue; empty: it does, or that is unknown
	Returns  string // where an answer leads to: "inbox" or "run"
}

// answerForm is what a user has entered.
type answerForm struct{ Action, Feedback, Note, By, Problem string }

// text is a text of an agent.
type text struct {
	Name, Body string
	More       int  // bytes that are left out
	Plain      bool // it is what a command printed
}

// finding is one point of a verdict.
type finding struct{ Severity, Text string }

func inboxPath(id string) string { return "/inbox?run=" + url.QueryEscape(id) }

// inbox shows the open questions, and one of them: the named one, or the oldest.
func (s *site) inbox(r *http.Request) (screen, error) {
	rows, err := s.waiting()
	if err != nil {
		return screen{}, err
	}
	body := inbox{Total: len(rows)}
	v := screen{name: "inbox", title: "Inbox", body: &body}
	if len(rows) == 0 {
		return v, nil
	}
	at := 0
	if name := r.URL.Query().Get("run"); name != "" {
		row, open := named(rows, name)
		if !open {
			row, body.Problem = rows[0], "That question is no longer open. This is the oldest one."
		}
		at = slices.IndexFunc(rows, func(r operations.Row) bool { return r.RunID == row.RunID })
	}
	first := max(0, min(at-maxListed/2, len(rows)-maxListed))
	last := min(len(rows), first+maxListed)
	body.Rows, body.Place, body.Before, body.After = rows[first:last], at+1, first, len(rows)-last
	if at > 0 {
		body.Prev = inboxPath(rows[at-1].RunID)
	}
	if at+1 < len(rows) {
		body.Next = inboxPath(rows[at+1].RunID)
	}
	sub, err := s.of(r.Context(), rows[at])
	if err == nil {
		body.Open, err = s.question(r.Context(), sub)
	}
	if err != nil { // the other questions can be answered
		body.Problem = s.h.ProblemOf(err).Message
	}
	if body.Open != nil {
		body.Open.Returns = "inbox"
		v.title = body.Open.Asked.Text
	}
	return v, nil
}

// question reads the open question of a run; nil: none is open.
func (s *site) question(ctx context.Context, sub subject) (*question, error) {
	if sub.Asks == nil || sub.Away() {
		return nil, nil
	}
	found, err := api.Question(ctx, s.h, api.RunInput{Run: sub.dir.Root})
	if err != nil || found.Question == nil {
		return nil, err
	}
	state := sub.State()
	q := &question{subject: sub, Asked: *found.Question, Judged: sub.Asks.Judged, Returns: "run",
		Budget: state.Budget.CapUSD, Spent: state.CostText()}
	if held := sub.Run.Effective.Held; held != nil {
		q.Held = s.h.HeldText(*held, sub.dir)
	}
	for _, f := range state.Facts(*sub.Asks) {
		if f.Name != "Verdict" && f.Name != "Cost" && f.Name != "Changed" {
			q.Facts = append(q.Facts, f)
		}
	}
	for _, at := range found.About {
		s.attach(q, at)
	}
	own := len(state.Projects) == 0 // projects have their own changes
	if own && (sub.Asks.Change != nil || state.Tree != nil || state.Artifact != nil) {
		s.attachChanges(ctx, q)
	}
	if sub.Asks.Pictures != "" {
		q.Pictures, err = picturesFor(sub, sub.Asks.Pictures)
	}
	return q, err
}

// attach adds what a question is about.
func (s *site) attach(q *question, at api.Attachment) {
	switch at.Name {
	case "Findings", "Found":
		for _, line := range at.Lines {
			severity, rest, ok := strings.Cut(line, "  ")
			if !ok {
				severity, rest = "", line
			}
			q.Findings = append(q.Findings, finding{severity, rest})
		}
	case "Change", "Pictures": // shown in full
	default:
		rel, err := filepath.Rel(q.dir.Root, at.Text)
		if err != nil || !filepath.IsLocal(rel) {
			return
		}
		t, err := s.read(q.subject, at.Name, filepath.ToSlash(rel))
		if err != nil {
			return // the file was removed; the evidence of the run names it
		}
		if t.Plain = at.Plain; !t.Plain {
			t.Body = markdown.WithoutBlock(strings.TrimSpace(t.Body))
		}
		if at.Name == "Review" && q.Judged != nil {
			q.Reply = &t
			return
		}
		q.Texts = append(q.Texts, t)
	}
}

// maxShown is the maximum size of a text on a page, in bytes.
const maxShown = 200 << 10

// read returns a text of the run directory.
func (s *site) read(sub subject, name, file string) (text, error) {
	raw, err := sub.dir.ReadFile(file)
	if err != nil {
		return text{}, err
	}
	t := text{Name: name}
	t.Body, t.More = cutText(s.h.Secrets.Text(string(raw)), maxShown)
	return t, nil
}

// attachChanges adds the changes of the run. The question can be answered without them, as on a host without git.
func (s *site) attachChanges(ctx context.Context, q *question) {
	out, err := api.Diff(ctx, s.h, api.DiffInput{Run: q.dir.Root, Bytes: maxShown})
	if err != nil {
		q.Facts = append(q.Facts, run.Fact{Name: "Changes", Text: "not available: " + s.h.ProblemOf(err).Message})
		return
	}
	q.Changes, q.Cut = report.Patch(out.Patch), out.Truncated
	if len(q.Changes) > 0 { // the attached patch shows the same
		q.Texts = slices.DeleteFunc(q.Texts, func(t text) bool { return t.Name == "Diff" })
	}
}

// pair is one view of the page that a run changes, before and after its last change.
type pair struct {
	Name          string
	Before, After *picture
}

// picture is one screenshot.
type picture struct {
	Source, Caption string
	Width, Height   int
}

// picturesFor returns the pictures of a manifest, each beside the one of the round before.
func picturesFor(sub subject, manifest string) ([]pair, error) {
	found, err := view.ReadRecord(sub.dir)
	if err != nil {
		return nil, err
	}
	shots := found.History.Shots
	at := slices.IndexFunc(shots, func(s view.Shots) bool { return s.Manifest.Digest == manifest })
	if at < 0 {
		return nil, nil
	}
	after, err := screenshots(sub, shots[at])
	if err != nil {
		return nil, err
	}
	var before []screenshot
	if at > 0 {
		if before, err = screenshots(sub, shots[at-1]); err != nil {
			return nil, err
		}
	}
	var pairs []pair
	for _, a := range after {
		p := pair{Name: report.ViewOf(a.name), After: &a.picture}
		if i := slices.IndexFunc(before, func(b screenshot) bool { return b.name == a.name }); i >= 0 {
			p.Before = &before[i].picture
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}
