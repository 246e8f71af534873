package pages

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/form"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
)

// startPage is the body of the page that starts a run: a form, and what the run will do.
type startPage struct {
	entered
	Folder string   // to which relative paths belong
	After  *subject // the finished run that the new one follows; nil: none
	Shown  bool     // the plan was asked for
	Plan   string
	Warns  []string
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

// start shows the form that starts a run. The address may name only a run to follow: what is to be executed is entered.
func (s *site) start(r *http.Request) (view, error) {
	e := newEntered()
	e.Values["follow_up"] = r.URL.Query().Get("follow_up")
	return s.startView(r, e)
}

func (s *site) startView(r *http.Request, e entered) (view, error) {
	if err := mayStart(r.Context()); err != nil {
		return view{}, err
	}
	body := startPage{entered: e}
	if id := e.Values["follow_up"]; id != "" {
		row, err := s.find(r.Context(), id)
		if err != nil {
			return view{}, err
		}
		sub, err := s.of(r.Context(), row)
		if err != nil {
			return view{}, err
		}
		if sub.Away() {
			return view{}, &missingError{what: "the records of run " + row.RunID + ", which are in a directory on another host"}
		}
		body.After = &sub
	}
	var err error
	if body.Folder, err = os.Getwd(); err != nil {
		return view{}, err
	}
	return view{name: "start", title: "Start a run", body: &body}, nil
}

func mayStart(ctx context.Context) error {
	if id, _ := access.From(ctx); !id.Can.Includes(api.CanOperate) {
		return &accessError{"start a run", api.CanOperate}
	}
	return nil
}

// begin starts the run that a form describes, or shows its plan.
func (s *site) begin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, tooLong(err))
		return
	}
	v, err := s.startView(r, refill(r, ""))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	body := v.body.(*startPage)
	in := startInput(r.PostForm)
	switch {
	case body.After != nil && r.PostForm.Get("mode") == operations.FromRunPlan:
		in.FromRunPlan = body.After.dir.Root
	case body.After != nil:
		in.FollowUp = body.After.dir.Root
	}
	if r.PostForm.Get("show") != "" {
		err = s.plan(r.Context(), body, in)
	} else if out, failed := s.startRun(r, in); failed != nil {
		err = failed
	} else {
		text := "The run was started."
		if !out.New {
			text = "This run was already started by the same request."
		}
		s.lead(w, r, runPath(out.RunID), strings.Join(append([]string{text}, out.Warnings...), "\n"))
		return
	}
	if err != nil {
		body.Problem, v.status = s.h.ProblemOf(err).Message, statusOf(api.CodeOf(err))
	}
	s.show(w, r, v)
}

// startInput is the input of the operation that starts a run.
func startInput(sent url.Values) api.StartInput {
	text := func(name string) string { return strings.TrimSpace(sent.Get(name)) }
	return api.StartInput{Config: text("config"), Source: text("source"), Task: text("task"), Dirty: text("dirty"),
		Directory: text("directory"), Request: form.Request("start", sent)}
}

// startRun starts a run. It continues if the browser leaves.
func (s *site) startRun(r *http.Request, in api.StartInput) (api.Started, error) {
	ctx, cancel := detached(r.Context(), executeWithin)
	defer cancel()
	raw, err := json.Marshal(in)
	if err != nil {
		return api.Started{}, err
	}
	out, err := operation("start").Call(ctx, s.h, raw)
	if err != nil {
		return api.Started{}, err
	}
	s.lists.forget()
	return out.(api.Started), nil
}

// plan adds the plan of the run that would be started, and what would refuse it.
func (s *site) plan(ctx context.Context, body *startPage, in api.StartInput) error {
	body.Shown = true
	def, dir, err := s.h.Definition(in)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := pipeline.WriteTable(&text, def.Plan); err != nil {
		return err
	}
	body.Plan, body.Warns = s.h.Secrets.Text(text.String()), s.h.Warnings(ctx, def)
	_, _, err = s.h.Prepare(ctx, def, dir)
	return err
}

// operation is a row of the table.
func operation(name string) api.Operation {
	all := api.Table()
	return all[slices.IndexFunc(all, func(o api.Operation) bool { return o.Name == name })]
}
