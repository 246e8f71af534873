package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// passPage is the body of the page about one pass.
type passPage struct {
	subject
	Pass       view.Pass
	Title      string
	About      string // its title in the pipeline
	Stage      string
	Cost       string
	Passed     int // checks
	Prompt     *text
	Reply      *text
	Changes    []report.Difference
	More       int // changed files that are not listed
	Frames     []frameLine
	MoreFrames int
	Failures   []view.Failure
	Left       []string // what cannot be shown
	Prev, Next string
	Boundary   string // the checkpoint before the pass; "": none
	Usage      string
}

// frameLine is one thing that the agent did.
type frameLine struct{ Kind, Name, Text, State string }

const maxFrames = 400

func (s *site) pass(r *http.Request) (screen, error) {
	sub, err := s.local(r, "overview")
	if err != nil {
		return screen{}, err
	}
	missing := &missingError{what: fmt.Sprintf("pass %s of run %s", r.PathValue("n"), sub.Row.RunID)}
	seq, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil {
		return screen{}, missing
	}
	found, err := view.ReadRecord(sub.dir)
	if err != nil {
		return screen{}, err
	}
	at := slices.IndexFunc(found.Passes, func(p view.Pass) bool { return p.Seq == seq })
	if at < 0 {
		return screen{}, missing
	}
	p := found.Passes[at]
	body := passPage{subject: sub, Pass: p, Cost: run.CostPhrase(p.USD, p.Unknown), Title: titleOf(p),
		Stage: stageOf(found, p)}
	if body.About = pipeline.Fill(p.Title, p.Set, p.Round); body.About == p.Role {
		body.About = ""
	}
	body.link(found.Passes, at)
	body.Passed, _ = p.Checks.Count()
	for _, f := range found.Failures {
		if f.Step == p.Step && f.Round == p.Round && f.Member == p.Member && f.Seq < p.Seq {
			body.Failures = append(body.Failures, f)
		}
	}
	body.Prompt, body.Reply = s.textOf(&body, p.Prompt), s.textOf(&body, p.Reply)
	if err := s.attachFrames(&body); err != nil {
		body.Left = append(body.Left, s.h.ProblemOf(err).Message)
	}
	contents := operations.OpenContents(r.Context(), sub.dir)
	defer contents.Close()
	body.Changes, body.More, err = report.ChangesOf(sub.dir, seq, report.Options{Contents: contents.Copy})
	if err != nil {
		return screen{}, err
	}
	if err := body.boundary(); err != nil {
		return screen{}, err
	}
	return screen{name: "pass", title: body.Title + " · " + sub.Row.Pipeline, body: body}, nil
}

// link names the pages of the passes before and after.
func (p *passPage) link(all []view.Pass, at int) {
	path := func(i int) string { return fmt.Sprintf("%s/passes/%d", p.Path, all[i].Seq) }
	if at > 0 {
		p.Prev = path(at - 1)
	}
	if at+1 < len(all) {
		p.Next = path(at + 1)
	}
}

// boundary finds the last checkpoint before the pass.
func (p *passPage) boundary() error {
	all, err := rundir.ListCheckpoints(p.dir, true)
	for _, l := range slices.Backward(all) {
		if l.Seq < p.Pass.Seq && l.InForce {
			p.Boundary = l.ID
			break
		}
	}
	return err
}

func titleOf(p view.Pass) string {
	title := view.Title(cmp.Or(p.Member, p.Role, p.Step))
	if p.Number > 0 {
		return fmt.Sprintf("Pass %d · %s", p.Number, title)
	}
	return title
}

func stageOf(e view.Record, p view.Pass) string {
	stage := e.History.Stages[p.Stage]
	name := stage.Title
	if name == "" {
		name = p.Stage
	}
	if stage.Repeats {
		name += fmt.Sprintf(", round %d", p.Round)
	}
	return name
}

// textOf reads the prompt or the reply; nil: there is none, or not here.
func (s *site) textOf(p *passPage, file string) *text {
	if file == "" {
		return nil
	}
	t, err := s.read(p.subject, file, file)
	if err != nil {
		p.Left = append(p.Left, "Not available here: "+file)
		return nil
	}
	t.Plain = p.Pass.Value != "" // of a command
	return &t
}

// attachFrames adds what the agent reported beside its reply: its tools and their results.
func (s *site) attachFrames(p *passPage) error {
	plan, err := p.dir.Plan()
	if err != nil {
		return err
	}
	kind := pipeline.StepKind(pipeline.KindRole)
	if p.Pass.Role == pipeline.CommandRole || p.Pass.Role == "" {
		kind = pipeline.KindRun
	}
	a, ok := adapter.Find(plan.ReplyOf(pipeline.PlanStep{Kind: kind}, p.Pass.Role))
	raw, err := p.dir.ReadRaw(p.Pass.Frames)
	if !ok || len(raw) == 0 || err != nil {
		return err
	}
	var sum adapter.Summary
	for _, f := range a.New().Parse(raw) {
		sum.Add(f)
		l := frameLine{Kind: string(f.Kind), Name: f.Name, State: string(f.State)}
		switch f.Kind {
		case adapter.KindTool, adapter.KindWarning, adapter.KindText:
		default:
			continue
		}
		if len(p.Frames) == maxFrames {
			p.MoreFrames++
			continue
		}
		l.Text, _ = cutText(s.h.Secrets.Text(f.Text), 4<<10)
		p.Frames = append(p.Frames, l)
	}
	usage, known := sum.Usage()
	if known != run.CostUnknown {
		p.Usage = fmt.Sprintf("%s tokens in, %s out", number(usage.Input+usage.CacheRead+usage.CacheWrite),
			number(usage.Output))
	}
	return nil
}
