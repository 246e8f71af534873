package pages

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/form"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
)

// starting is the body of the page that starts a run.
type starting struct {
	entered
	Pipelines []operations.NamedPipeline
	Chosen    *operations.NamedPipeline // nil: the pipelines are listed
	Inputs    []pipeline.Input          // besides the task
	Title     string                    // of the chosen pipeline, in its definition
}

// startPath is the address of the pages that start a run.
const startPath = "/start"

// pipelines are those of the folder in which the console was started, and of the folders that runs of this host work on.
func (s *site) pipelines(ctx context.Context) (all []operations.NamedPipeline, err error) {
	folders := map[string]bool{}
	if here, err := os.Getwd(); err == nil {
		folders[here] = true
	}
	l, err := s.listing(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range l.Runs {
		if on := row.WorksOn(); on != "" {
			folders[on] = true
		}
	}
	files := map[string]operations.NamedPipeline{}
	for folder := range folders {
		for _, p := range operations.PipelinesOf(folder) {
			files[p.File] = p
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		all = append(all, files[file])
	}
	return all, nil
}

// start shows the pipelines, or the form of one.
func (s *site) start(r *http.Request) (screen, error) {
	return s.startForm(r, r.URL.Query().Get("pipeline"), newEntered())
}

// startForm is the page with what was entered. Only pipelines that it lists can be chosen.
func (s *site) startForm(r *http.Request, file string, e entered) (screen, error) {
	if id, _ := access.From(r.Context()); !id.Can.Includes(api.CanOperate) {
		return screen{}, &accessError{"start", api.CanOperate}
	}
	all, err := s.pipelines(r.Context())
	if err != nil {
		return screen{}, err
	}
	v := screen{name: "start", title: "Start a run"}
	if e.Problem != "" {
		v.status = http.StatusUnprocessableEntity
	}
	body := starting{entered: e, Pipelines: all}
	if file != "" {
		at := slices.IndexFunc(all, func(p operations.NamedPipeline) bool { return p.File == file })
		if at < 0 {
			return screen{}, &missingError{what: "pipeline " + file}
		}
		body.Chosen = &all[at]
		def, err := s.h.LoadFile(file)
		if err != nil {
			body.Problem, v.status = s.h.ProblemOf(err).Message, http.StatusUnprocessableEntity
		} else {
			body.Title = def.Plan.Pipeline
			body.Inputs = slices.DeleteFunc(slices.Clone(def.Plan.Inputs), func(in pipeline.Input) bool { return in.Name == pipeline.PartTask })
		}
	}
	v.body = body
	return v, nil
}

// begin starts the run that a form asks for.
func (s *site) begin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, tooLong(err))
		return
	}
	file := r.PostForm.Get("config")
	again := func(err error) {
		v, unread := s.startForm(r, file, refill(r, s.h.ProblemOf(err).Message))
		if unread != nil {
			s.fail(w, r, errors.Join(err, unread))
			return
		}
		s.show(w, r, v)
	}
	if _, err := s.startForm(r, file, newEntered()); err != nil {
		s.fail(w, r, err)
		return
	}
	in := api.StartInput{Config: file, Task: r.PostForm.Get("task"), Unattended: r.PostForm.Get("unattended") == "on",
		Request: form.Request(startPath, r.PostForm), Inputs: map[string]string{}}
	for name := range r.PostForm {
		if input, is := strings.CutPrefix(name, "input-"); is && r.PostForm.Get(name) != "" {
			in.Inputs[input] = r.PostForm.Get(name)
		}
	}
	ctx, cancel := detached(r.Context(), executeWithin)
	defer cancel()
	out, err := api.Start(ctx, s.h, in)
	if err != nil {
		again(err)
		return
	}
	s.lists.forget()
	text := "The run is started."
	if !out.New {
		text = "This run was already started by the same request."
	}
	s.lead(w, r, runPath(out.RunID), strings.Join(append([]string{text}, out.Warnings...), "\n"))
}
