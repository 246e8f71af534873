package pages

import (
	"context"
	"net/http"
	"slices"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// preparation is the body of the page that prepares an operation: its form, and what it will do.
type preparation struct {
	subject
	entered
	Operation api.Operation
	At        *rundir.Listed // the checkpoint; nil: the operation has none
	Behind    *behind
	Running   []call // calls that it may end
	Roles     []string
	Notes     bool // it takes a note for the record
	Force     bool // the status requires force and a reason
	Budget    run.Budget
	Spent     string
}

// entered is what a user has entered into a form, and why it was refused.
type entered struct {
	Problem string
	Values  map[string]string
	Request string // names the request, so that a form that is sent twice has one effect
}

func newEntered() entered { return entered{Values: map[string]string{}, Request: randomName()} }

// refill returns the content of the form that a browser has sent.
func refill(r *http.Request, problem string) entered {
	e := newEntered()
	e.Problem = problem
	for name := range r.PostForm {
		e.Values[name] = r.PostForm.Get(name)
	}
	if sent := e.Values["request"]; sent != "" {
		e.Request = sent
	}
	return e
}

// behind is what lies after a checkpoint.
type behind struct {
	Passes    []view.Pass // the newest first
	More      int         // passes that are not listed
	USD       string
	Files     []string
	MoreFiles int
	Decisions []view.Decision
	Effects   []string // external actions that are executed again
	Kept      int      // passes before the checkpoint
	Score     *float64 // now
}

// marksOf are the operations that start from a checkpoint, and the field that names it.
var marksOf = map[string]string{"revert": "to", "fork": "from", "replay": "from"}

// prepare shows the form of an operation and what it will do.
func (s *site) prepare(r *http.Request) (screen, error) {
	sub, err := s.local(r, "")
	if err != nil {
		return screen{}, err
	}
	o, err := permitted(r.Context(), sub, r.PathValue("operation"))
	if err != nil {
		return screen{}, err
	}
	return s.preparation(r.Context(), sub, o, r.URL.Query().Get("at"))
}

// permitted returns an operation that the identity may do and the status of the run allows.
func permitted(ctx context.Context, sub subject, name string) (api.Operation, error) {
	for _, o := range api.Table() {
		if o.Name != name || !changes(o) {
			continue
		}
		if id, _ := access.From(ctx); !id.Can.Includes(o.Access) {
			return o, &accessError{name + " run " + sub.Row.RunID, o.Access}
		}
		if !sub.May(name) {
			status := sub.Run.Effective.Status
			return o, &run.ConflictError{Operation: run.Operation(name), From: status,
				Allowed: run.Terms{Undecided: sub.Asks != nil}.Operations(status)}
		}
		return o, nil
	}
	return api.Operation{}, &missingError{what: "operation " + name}
}

// changes reports whether an operation changes a run. Those that only read need no form, start names no run, and verify
// takes minutes.
func changes(o api.Operation) bool {
	return o.Access != api.CanRead && o.Name != "start" && o.Name != "verify"
}

func (s *site) preparation(ctx context.Context, sub subject, o api.Operation, at string) (screen, error) {
	body := preparation{subject: sub, Operation: o, Budget: sub.State().Budget, Spent: sub.State().CostText(),
		entered: newEntered()}
	_, body.Notes = o.Input.FieldByName("Note")
	title := label(o.Name) + " · " + sub.Row.Pipeline
	if o.Name == "decide" { // the page shows the question
		return s.answering(ctx, sub)
	}
	if op := run.Operation(o.Name); op == run.Resume || op == run.Revert {
		body.Force = !slices.Contains(sub.Run.Available(), op)
	}
	if slices.Contains([]string{"pause", "cancel", "steer"}, o.Name) {
		body.Running = s.working(sub, nil).Calls
	}
	if plan, err := sub.dir.Plan(); err == nil && o.Name == "steer" {
		for _, role := range plan.Roles {
			body.Roles = append(body.Roles, role.Name)
		}
	}
	if _, marked := marksOf[o.Name]; marked {
		if err := body.mark(sub, at, o.Name); err != nil {
			return screen{}, err
		}
	}
	return screen{name: "prepare", title: title, body: body}, nil
}

// answering shows the open question of a run alone.
func (s *site) answering(ctx context.Context, sub subject) (screen, error) {
	q, err := s.question(ctx, sub)
	if err == nil && q == nil { // it was answered while the page was made
		err = &missingError{what: "the open question of run " + sub.Row.RunID}
	}
	if err != nil {
		return screen{}, err
	}
	return questionView(ctx, q, http.StatusOK), nil
}

// questionView is the page about one question, for a link alone or beside the navigation.
func questionView(ctx context.Context, q *question, status int) screen {
	v := screen{name: "inbox", title: q.Asked.Text, status: status, body: &inbox{Open: q, Total: 1, Place: 1}}
	if id, _ := access.From(ctx); id.Base != "" {
		v.name, v.body = "asked", q
	}
	return v
}

// mark finds the checkpoint and what follows it.
func (p *preparation) mark(sub subject, at, operation string) error {
	all, err := rundir.ListCheckpoints(sub.dir, true)
	if err != nil {
		return err
	}
	i := len(all) - 1
	if operation == "replay" && at == "" {
		i = min(0, len(all)-1)
	}
	if at != "" {
		i = slices.IndexFunc(all, func(l rundir.Listed) bool { return l.ID == at })
	}
	if i < 0 {
		if at == "" {
			at = "of a run that has none"
		}
		return &missingError{what: "checkpoint " + at}
	}
	p.At = &all[i]
	p.Behind, err = whatIsBehind(sub, all[i].Seq)
	return err
}

const (
	behindPasses = 12
	behindFiles  = 20
)

// whatIsBehind reads what a run has done after an event.
func whatIsBehind(sub subject, seq int64) (*behind, error) {
	found, err := view.ReadRecord(sub.dir)
	if err != nil {
		return nil, err
	}
	b := &behind{Score: sub.State().Score}
	usd, unknown := 0.0, 0
	for _, p := range slices.Backward(found.Passes) {
		if p.Seq <= seq {
			b.Kept++
			continue
		}
		usd, unknown = usd+p.USD, unknown+p.Unknown
		for _, f := range p.Files {
			if !slices.Contains(b.Files, f.Path) {
				b.Files = append(b.Files, f.Path)
			}
		}
		if len(b.Passes) == behindPasses {
			b.More++
			continue
		}
		b.Passes = append(b.Passes, p)
	}
	if n := len(b.Files) - behindFiles; n > 0 {
		b.Files, b.MoreFiles = b.Files[:behindFiles], n
	}
	b.USD = run.CostText(usd, unknown)
	for _, d := range found.Decisions {
		if d.Seq > seq && d.Action != "" {
			b.Decisions = append(b.Decisions, d)
		}
	}
	b.Effects, err = operations.ActionsAfter(sub.dir, seq)
	return b, err
}

// mark is a checkpoint in the list.
type mark struct {
	rundir.Listed
	Named bool
	Later int // passes in force after it
}

// checkpoints shows the checkpoints of a run.
func (s *site) checkpoints(r *http.Request) (screen, error) {
	p, err := s.base(r, "checkpoints")
	if err != nil {
		return screen{}, err
	}
	p.All = r.URL.Query().Has("all")
	list, err := api.Checkpoints(r.Context(), s.h, api.CheckpointsInput{Run: p.dir.Root, All: true})
	if err != nil {
		return screen{}, err
	}
	found, err := view.ReadRecord(p.dir)
	if err != nil {
		return screen{}, err
	}
	named := slices.ContainsFunc(list.Checkpoints, func(l rundir.Listed) bool { return l.ID != run.UnnamedID(l.Seq) })
	for _, l := range slices.Backward(list.Checkpoints) { // without the unnamed ones, unless there are no others
		m := mark{Listed: l, Named: l.ID != run.UnnamedID(l.Seq)}
		if !p.All && (!m.Named && named || len(p.Marks) >= maxPasses) {
			p.Hidden++
			continue
		}
		for _, pass := range found.Passes {
			if pass.Seq > l.Seq {
				m.Later++
			}
		}
		p.Marks = append(p.Marks, m)
	}
	return p.view("checkpoints"), nil
}
