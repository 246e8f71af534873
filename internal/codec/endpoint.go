package codec

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"

	"go.temporal.io/sdk/converter"
)

// maxRequest is the maximum size of a request in bytes: a page of a history.
const maxRequest = 32 << 20

// Endpoint decrypts and encrypts payloads for the Web UI and the temporal CLI: POST /decode and POST /encode, as
// defined by Temporal. Its clients can read all payloads.
type Endpoint struct {
	Codec   *Codec
	Origins []string // allowed origins of browser requests: http://127.0.0.1:8233
	Token   string   // required as Authorization: Bearer TOKEN; empty: none
	Local   bool     // accept only requests to names of this host, against DNS rebinding
}

// ServeHTTP handles a request. It refuses other origins and requests without the token.
func (e Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	switch {
	case e.Local && !isLoopback(r.Host):
		http.Error(w, "this endpoint accepts requests to the loopback address only", http.StatusForbidden)
		return
	case origin != "" && !slices.Contains(e.Origins, origin):
		http.Error(w, "origin "+origin+" is not allowed; see starter codec serve --origin", http.StatusForbidden)
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
	if want := "Bearer " + e.Token; e.Token != "" &&
		subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1 {
		http.Error(w, "missing or wrong token: send Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	converter.NewPayloadCodecHTTPHandler(e.Codec).ServeHTTP(w, r)
}

// isLoopback reports whether a Host header names this host.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
