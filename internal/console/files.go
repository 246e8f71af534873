package console

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// files are the addresses of what only a server of the network offers: events and files.
func files() []route {
	reads := []api.Code{api.CodeInvalid, api.CodeNotFound, api.CodeDamaged, api.CodeFailed}
	row := func(name, at, summary, media string, output reflect.Type,
		serve func(*Server, http.ResponseWriter, *http.Request)) route {
		return route{method: http.MethodGet, path: "/v1/runs/{id}/" + at, name: name, access: api.CanRead, problems: reads,
			summary: summary, media: media, output: output, serve: serve}
	}
	events := row("events", "events", "List the events of a run, or follow them", "text/event-stream",
		reflect.TypeFor[eventList](), (*Server).events)
	events.details = "As JSON, at most 1000 at once. With Accept: text/event-stream the stream follows the run until it " +
		"ends; Last-Event-ID continues it. No Temporal server is needed."
	events.query = reflect.VisibleFields(reflect.TypeFor[struct {
		After int64 `json:"after,omitempty" jsonschema:"only events with a greater seq"`
	}]())
	return []route{
		events,
		row("artifact", "artifact", "Return the file that a run revises", "application/octet-stream", nil,
			(*Server).artifact),
		row("report", "report", "Return the report of a run, one page of HTML", "text/html", nil, (*Server).report),
		row("screenshots", "screenshots", "List the screenshots of a run", "", reflect.TypeFor[pictures](),
			(*Server).screenshots),
		row("screenshot", "screenshots/{seq}/{name}", "Return a screenshot of a run", "image/png", nil, (*Server).screenshot),
	}
}

// isolated lets a file of a run that a browser shows neither run scripts nor use this server.
const isolated = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"

// artifact sends the artifact of a run, to be saved.
func (s *Server) artifact(w http.ResponseWriter, r *http.Request) {
	d, err := s.host.Find(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	a, err := d.Artifact()
	if errors.Is(err, rundir.ErrNoArtifact) || err == nil && a.Absent {
		refuse(w, newProblem(api.CodeNotFound, "read the artifact of a run: it has none; its changes are at /diff"))
		return
	}
	if err != nil && a.Now == nil { // the seed may be missing
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", isolated)
	w.Header().Set("Content-Disposition", "attachment")
	send(w, r, "application/octet-stream", a.Now)
}

// report sends the report of a run.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	d, err := s.host.Find(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var page bytes.Buffer
	if err := report.Write(&page, d, report.Options{}); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", isolated)
	send(w, r, "text/html; charset=utf-8", page.Bytes())
}

// pictures are the screenshots of a run.
type pictures struct {
	Screenshots []picture `json:"screenshots"`
}

// picture is one screenshot.
type picture struct {
	Seq    int64  `json:"seq" jsonschema:"number of the event of its round"`
	Step   string `json:"step"`
	Round  int    `json:"round"`
	Name   string `json:"name"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Path   string `json:"path" jsonschema:"address of the picture"`
}

// screenshots lists the pictures of a run.
func (s *Server) screenshots(w http.ResponseWriter, r *http.Request) {
	d, err := s.host.Find(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := pictures{[]picture{}}
	for e, err := range d.Lines(0) {
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if e.Err != nil || e.Event.Kind != run.KindScreenshots {
			continue
		}
		var taken run.Screenshots
		e.Event.Decode(&taken)
		shots, err := d.Pictures(taken)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.fail(w, r, err)
			return
		}
		for _, one := range shots {
			list.Screenshots = append(list.Screenshots, picture{e.Event.Seq, taken.Step, taken.Round, path.Base(one.Name),
				one.Width, one.Height, fmt.Sprintf("/v1/runs/%s/screenshots/%d/%s", r.PathValue("id"), e.Event.Seq,
					path.Base(one.Name))})
		}
	}
	answer(w, r, list)
}

// screenshot sends a picture. Its name is one of the manifest of its round, so it names no other file.
func (s *Server) screenshot(w http.ResponseWriter, r *http.Request) {
	none := newProblem(api.CodeNotFound, "read a screenshot: there is none at this address; /screenshots lists them")
	d, err := s.host.Find(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil {
		refuse(w, none)
		return
	}
	for e, err := range d.Lines(0) {
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if e.Err != nil || e.Event.Seq != seq || e.Event.Kind != run.KindScreenshots {
			continue
		}
		var taken run.Screenshots
		e.Event.Decode(&taken)
		shots, err := d.Pictures(taken)
		i := slices.IndexFunc(shots, func(one run.Shot) bool { return path.Base(one.Name) == r.PathValue("name") })
		if err != nil || i < 0 {
			break
		}
		data, err := d.ReadFile(shots[i].Name)
		if err != nil || disk.Digest(data) != shots[i].Digest {
			break
		}
		w.Header().Set("Content-Security-Policy", isolated)
		send(w, r, "image/png", data)
		return
	}
	refuse(w, none)
}
