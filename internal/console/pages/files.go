package pages

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/rundir"
)

// screenshot is a picture and the name of its view.
type screenshot struct {
	name string
	picture
}

// screenshots lists the pictures of a round.
func screenshots(sub subject, of view.Shots) ([]screenshot, error) {
	shots, err := sub.dir.Pictures(of.Screenshots)
	if err != nil {
		return nil, fmt.Errorf("list the pictures of round %d: %w", of.Round, err)
	}
	var all []screenshot
	for _, one := range shots {
		all = append(all, screenshot{path.Base(one.Name), picture{Source: picturePath(sub, one.Name),
			Caption: fmt.Sprintf("Round %d", of.Round), Width: one.Width, Height: one.Height}})
	}
	return all, nil
}

func picturePath(sub subject, name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return sub.Path + "/pictures/" + strings.Join(parts, "/")
}

// foreign sets the headers of a file that an agent has made: it is never a document of this server.
func foreign(w http.ResponseWriter, kind, name string) {
	headers(w, kind)
	h := w.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if name != "" {
		h.Set("Content-Disposition", `attachment; filename*=UTF-8''`+url.PathEscape(name))
	}
}

// picture serves a screenshot of a run.
func (s *site) picture(w http.ResponseWriter, r *http.Request) {
	sub, err := s.local(r, "")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	name := r.PathValue("name")
	missing := &missingError{what: "picture " + name}
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Ext(name) != ".png" {
		s.fail(w, r, missing)
		return
	}
	raw, err := sub.dir.ReadFile(name)
	if err != nil {
		s.fail(w, r, missing)
		return
	}
	if _, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil {
		s.fail(w, r, missing)
		return
	}
	foreign(w, "image/png", "")
	w.Header().Set("Cache-Control", "private, max-age=3600")
	if _, err := w.Write(raw); err != nil {
		return // the browser has closed the connection
	}
}

// artifact serves the artifact of a run as a download.
func (s *site) artifact(w http.ResponseWriter, r *http.Request) {
	sub, err := s.local(r, "")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	a, err := sub.dir.Artifact()
	if errors.Is(err, rundir.ErrNoArtifact) || err == nil && a.Absent {
		err = &missingError{what: "the artifact of run " + sub.Row.RunID}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	foreign(w, "application/octet-stream", path.Base(filepath.ToSlash(a.File)))
	if _, err := w.Write(a.Now); err != nil {
		return // the browser has closed the connection
	}
}

// temporal leads to the run in Temporal's Web UI. Its links log a browser in, so they are for operators.
func (s *site) temporal(w http.ResponseWriter, r *http.Request) {
	sub, err := s.subject(r)
	if err == nil {
		if id, _ := access.From(r.Context()); !id.Can.Includes(api.CanOperate) {
			err = &accessError{"open the Web UI", api.CanOperate}
		}
	}
	var link string
	if err == nil {
		link, err = s.webUI(sub)
	}
	if err == nil && link == "" {
		err = &missingError{what: "Temporal's Web UI: the address of that of another server is unknown"}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	headers(w, "text/plain; charset=utf-8")
	http.Redirect(w, r, link, http.StatusSeeOther)
}

// webUI is a link to the run in the Web UI of the embedded server; "" if none runs.
func (s *site) webUI(sub subject) (string, error) {
	st, err := host.Read(s.h.Settings.StateDir)
	if err != nil || st.Server == nil {
		return "", err
	}
	namespace := sub.Run.Claim.Namespace
	if namespace == "" {
		namespace = "default"
	}
	return st.Server.LoginLink("/namespaces/" + url.PathEscape(namespace) + "/workflows/" +
		url.PathEscape(sub.Row.RunID))
}

// hasWebUI reports whether an embedded server with a Web UI runs here, and the run is on it.
func (s *site) hasWebUI(sub subject) bool {
	st, err := host.Read(s.h.Settings.StateDir)
	return err == nil && st.Server != nil && (sub.Away() || sub.Run.Claim.Embedded)
}
