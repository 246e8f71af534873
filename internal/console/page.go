package console

import (
	"bytes"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/passbook-run/passbook/internal/console/form"
)

// small is a page without navigation: about a login, a link, or a request that was refused.
type small struct {
	Title string
	Text  template.HTML // of this program
	Next  string        // where the browser goes from there; empty: it stays
	Again string        // the page of a form that was not sent on
	Texts []form.Text   // that were entered into it
}

var smallPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("small").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{with .Next}}<meta http-equiv="refresh" content="0;url={{.}}">
{{end}}<title>{{.Title}} · Passbook</title>
<link rel="stylesheet" href="/static/console.css">
</head>
<body>
<main id="main" class="narrow">
<h1>{{.Title}}</h1>
{{with .Text}}<p class="message">{{.}}</p>
{{end}}{{with .Texts}}<section class="card typed"><h2>What you entered</h2>
<p class="quiet">It was not sent to the run. Copy what you still need.</p>
{{range $i, $t := .}}<p class="field"><label for="typed-{{$i}}">{{.Name}}</label>
<textarea id="typed-{{$i}}" rows="3" readonly>{{.Text}}</textarea></p>
{{end}}</section>
{{end}}{{with .Again}}<p class="buttons"><a class="button" href="{{.}}">Open the page again</a></p>
{{end}}{{with .Next}}<p class="buttons"><a class="button" href="{{.}}">Continue</a></p>
{{end}}</main>
</body>
</html>
`))
})

// page sends a small page.
func page(w http.ResponseWriter, code int, p small) {
	var text bytes.Buffer
	if err := smallPage().Execute(&text, p); err != nil {
		panic(err) // it has only texts
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes()) // the client has gone
}

// opens reports whether a browser shows the response as a page.
func opens(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/v1/")
}

// refuseTo answers with a problem: a page for a browser that shows one.
func refuseTo(w http.ResponseWriter, r *http.Request, p problem) {
	if !opens(r) {
		refuse(w, p)
		return
	}
	text := p.Detail
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	page(w, p.Status, small{Title: p.Title, Text: template.HTML(template.HTMLEscapeString(text))})
}

// keepForm answers a form that a browser has sent without a valid session: it shows what was entered.
func (s *Server) keepForm(w http.ResponseWriter, r *http.Request, code int, p small) {
	r, bad := withBody(w, r, s.bodyTime)
	if bad != nil {
		refuse(w, *bad)
		return
	}
	if err := r.ParseForm(); err != nil {
		refuseTo(w, r, newProblem("invalid_input", "read the form: "+err.Error()))
		return
	}
	if p.Texts, p.Again = form.Texts(r.PostForm), r.URL.Path; p.Again == "/logout" {
		p.Again = "/"
	}
	page(w, code, p)
}

// isForm reports whether a browser sends a form and shows the response.
func isForm(r *http.Request) bool {
	return r.Method == http.MethodPost && opens(r) && mediaType(r) == "application/x-www-form-urlencoded"
}
