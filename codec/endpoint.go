package codec

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"

	"go.temporal.io/sdk/converter"
)

// maxRequest is how large a request to an endpoint may be, in bytes: a page of a history.
const maxRequest = 32 << 20

// Endpoint reads and encrypts payloads for the Web UI and the temporal CLI: POST /decode and POST /encode, as Temporal defines them. Whoever reaches
// it reads what was encrypted.
type Endpoint struct {
	Codec   *Codec
	Origins []string // of the pages that browsers may send requests from: http://127.0.0.1:8233
	Token   string   // wanted as Authorization: Bearer TOKEN; empty: none is
	Local   bool     // only requests to names of this host are answered, so that no page can make itself one of its pages by a change of its address
}

// ServeHTTP answers a request. A page of another origin is refused, and so is a request without the token.
func (e Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	switch {
	case e.Local && !loopback(r.Host):
		http.Error(w, "this endpoint answers on the loopback only", http.StatusForbidden)
		return
	case origin != "" && !slices.Contains(e.Origins, origin):
		http.Error(w, "pages of "+origin+" are not served; see starter codec serve --origin", http.StatusForbidden)
		return
	case origin != "":
		w.Header().Set("Access-Control-Allow-Origin", origin)
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Methods", "POST")
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		w.Header().Set("Access-Control-Allow-Private-Network", "true")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if want := "Bearer " + e.Token; e.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1 {
		http.Error(w, "this endpoint wants its token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	converter.NewPayloadCodecHTTPHandler(e.Codec).ServeHTTP(w, r)
}

// loopback says that a Host header names this host.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
