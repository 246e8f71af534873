package pages

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"

	"github.com/passbook-run/passbook/internal/report"
)

// file is a static file.
type file struct {
	kind string
	data []byte
	mark string // of its content, for its address
}

// staticFiles returns the style sheet, which continues that of the report, the script and the icon.
func staticFiles() map[string]file {
	files := map[string]file{}
	for name, kind := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		data, err := assets.ReadFile(path.Join("static", name))
		if err != nil {
			panic(err) // it is part of the program
		}
		if name == "console.css" {
			data = append([]byte(report.Style()), data...)
		}
		sum := sha256.Sum256(data)
		files[name] = file{kind: kind, data: data, mark: hex.EncodeToString(sum[:6])}
	}
	return files
}

// asset is the address of a static file. It changes with the content, so browsers keep the file.
func (s *site) asset(name string) string { return "/static/" + name + "?v=" + s.files[name].mark }

func (s *site) static(w http.ResponseWriter, r *http.Request) {
	f, ok := s.files[r.PathValue("name")]
	if !ok {
		s.fail(w, r, &missingError{what: "page " + r.URL.Path})
		return
	}
	headers(w, f.kind)
	if r.URL.Query().Get("v") == f.mark {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	if _, err := w.Write(f.data); err != nil {
		return // the browser has closed the connection
	}
}

func randomName() string {
	var name [12]byte
	if _, err := rand.Read(name[:]); err != nil {
		panic(err) // it never fails
	}
	return hex.EncodeToString(name[:])
}
