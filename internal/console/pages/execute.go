package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/form"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// maxForm is the maximum size of a form, in bytes.
const maxForm = 1 << 20

// executeWithin limits an operation. It continues if the browser leaves: the request may already have its effect.
const executeWithin = 2 * time.Minute

// execute does what a form asks for, and leads to the page that shows the result.
func (s *site) execute(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, tooLong(err))
		return
	}
	sub, err := s.local(r, "")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	name := r.PathValue("operation")
	if name == "decide" {
		if id, _ := access.From(r.Context()); id.Question != "" && id.Question != r.PostForm.Get("question") {
			s.fail(w, r, &api.InputError{Err: errors.New("answer the question: the link is about another one; open it again")})
			return
		}
		if stale := sub.stale(r.PostForm); stale != nil {
			s.show(w, r, *stale)
			return
		}
	}
	o, err := permitted(r.Context(), sub, name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	request := form.Request(r.URL.Path, r.PostForm)
	input, err := inputOf(o, sub.dir.Root, request, r.PostForm)
	if err == nil {
		err = complete(o.Name, r.PostForm)
	}
	if err != nil {
		s.again(w, r, sub, o, err)
		return
	}
	ctx, cancel := detached(r.Context(), executeWithin)
	defer cancel()
	if request != "" {
		ctx = access.WithRequest(ctx, request)
	}
	out, err := o.Call(ctx, s.h, input)
	if err != nil {
		s.refused(w, r, sub, o, err)
		return
	}
	s.lists.forget()
	path, text := s.result(sub, o, out)
	if o.Name == "decide" && sub.Path == runPath(sub.Row.RunID) && r.PostForm.Get("returns") == "inbox" {
		path = "/inbox"
	}
	s.lead(w, r, path, text)
}

// refused shows why an operation was not done, or the new state if the question was answered meanwhile.
func (s *site) refused(w http.ResponseWriter, r *http.Request, sub subject, o api.Operation, err error) {
	if o.Name == "decide" {
		if now, unread := s.local(r, ""); unread == nil {
			if stale := now.stale(r.PostForm); stale != nil {
				s.show(w, r, *stale)
				return
			}
		}
	}
	if api.CodeOf(err) == api.CodeInvalid {
		s.again(w, r, sub, o, err)
		return
	}
	s.fail(w, r, err)
}

// lead sends the browser to a page, with a text for it.
func (s *site) lead(w http.ResponseWriter, r *http.Request, path, text string) {
	u := url.URL{Path: path, RawQuery: url.Values{"note": {s.notes.keep(text, s.now())}}.Encode()}
	headers(w, "text/plain; charset=utf-8")
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

// again shows the form with what was entered and why it was refused.
func (s *site) again(w http.ResponseWriter, r *http.Request, sub subject, o api.Operation, err error) {
	e := refill(r, s.h.ProblemOf(err).Message)
	if o.Name == "decide" {
		q, unread := s.question(r.Context(), sub)
		if unread != nil || q == nil {
			s.fail(w, r, errors.Join(err, unread))
			return
		}
		q.Returns = e.Values["returns"]
		q.Answer = answerForm{e.Values["action"], e.Values["feedback"], e.Values["note"], e.Values["by"], e.Problem}
		s.show(w, r, questionView(r.Context(), q, http.StatusUnprocessableEntity))
		return
	}
	v, unread := s.preparation(r.Context(), sub, o, e.Values[marksOf[o.Name]])
	if unread != nil {
		s.fail(w, r, errors.Join(err, unread))
		return
	}
	body := v.body.(preparation)
	body.entered, v.status = e, http.StatusUnprocessableEntity
	v.body = body
	s.show(w, r, v)
}

// complete refuses a form that lacks something, in the words of the page.
func complete(operation string, sent url.Values) error {
	missing := func(what string) error { return &api.InputError{Err: errors.New(what)} }
	switch action := sent.Get("action"); {
	case operation == "decide" && action == "":
		return missing("Choose an answer.")
	case operation == "decide" && run.NeedsFeedback(action) && strings.TrimSpace(sent.Get("feedback")) == "":
		return missing(label(action) + " needs your feedback. Enter it and send the answer again.")
	}
	return nil
}

// inputOf makes the input of an operation from a form. Other fields of the form are ignored.
func inputOf(o api.Operation, directory, request string, sent url.Values) ([]byte, error) {
	in := map[string]any{"run": directory}
	for i := range o.Input.NumField() {
		f := o.Input.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		text := strings.TrimSpace(sent.Get(name))
		if name == "request" {
			text = request
		}
		if name == "run" || name == "-" || text == "" {
			continue
		}
		value, err := fieldOf(f.Type.Kind(), text)
		if err != nil {
			return nil, &api.InputError{Err: fmt.Errorf("%s: %q is not a number", words(name), text)}
		}
		in[name] = value
	}
	return json.Marshal(in)
}

func fieldOf(kind reflect.Kind, text string) (any, error) {
	switch kind {
	case reflect.Bool:
		return text == "on" || text == "true", nil
	case reflect.Int, reflect.Int64:
		return strconv.ParseInt(text, 10, 64)
	case reflect.Float64:
		return strconv.ParseFloat(text, 64)
	case reflect.Slice:
		return strings.Fields(text), nil
	}
	return text, nil
}

// result is the page that shows the result of an operation, and a text about it.
func (s *site) result(sub subject, o api.Operation, out any) (path, text string) {
	switch out := out.(type) {
	case api.Answer:
		return sub.Path, out.Message
	case api.Reverted:
		return sub.Path, strings.Join(append([]string{out.Message}, out.Actions...), "\n")
	case api.Started:
		text := fmt.Sprintf("This is the new run, a %s of run %s.", o.Name, sub.Short())
		if !out.New {
			text = "This run was already started by the same request."
		}
		return runPath(out.RunID), strings.Join(append([]string{text}, out.Warnings...), "\n")
	case operations.Promoted:
		if out.Again {
			return sub.Path, fmt.Sprintf("The result was already at %s.", out.Path)
		}
		return sub.Path, fmt.Sprintf("The %s of the run is at %s.", out.Kind, out.Path)
	case operations.Amended:
		return sub.Path, out.Message
	}
	return sub.Path, label(o.Name) + ": done."
}

// staleAnswer is the body of a page about an answer to a question that is no longer open.
type staleAnswer struct {
	subject
	Action   string
	Decision *run.PastDecision // that closed the question; nil: unknown
	Texts    []form.Text       // of the answer that was not sent
}

// stale is the page about an answer that is not to the open question; nil: it is.
func (s subject) stale(sent url.Values) *screen {
	q := s.Asks
	if q != nil && q.ID == sent.Get("question") && q.Digest == sent.Get("digest") {
		return nil
	}
	body := staleAnswer{subject: s, Action: sent.Get("action"), Texts: form.Texts(sent)}
	decisions := s.State().Decisions
	for i, d := range decisions {
		if d.ID == sent.Get("question") {
			body.Decision = &decisions[i]
		}
	}
	return &screen{name: "stale", title: "Already answered", status: http.StatusConflict, body: body}
}

// forget lets the next list ask the server.
func (l *listings) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Time{}
}

// tooLong describes a form that cannot be read.
func tooLong(err error) error {
	return &api.InputError{Err: fmt.Errorf("read the form: %w; shorten the text", err)}
}
