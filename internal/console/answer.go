package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
)

// answer sends the output of an operation.
func answer(w http.ResponseWriter, r *http.Request, out any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		refuse(w, newProblem(api.CodeFailed, "encode the answer: "+err.Error()))
		return
	}
	send(w, r, "application/json", text.Bytes())
}

// send sends a response. A read that the client has already is not sent again.
func send(w http.ResponseWriter, r *http.Request, kind string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	if r.Method == http.MethodPost {
		_, _ = w.Write(data) // the client has gone
		return
	}
	sum := sha256.Sum256(append([]byte(kind+"\n"), data...))
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Authorization, Cookie")
	if holds(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // the client has gone
	}
}

// holds reports whether a client has the response with that tag.
func holds(sent []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(sent, ","), ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
