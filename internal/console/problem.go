package console

import (
	"encoding/json"
	"net/http"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
)

// Codes of problems that only a server of the network has.
const (
	codeUnauthenticated api.Code = "unauthenticated"        // no token and no session, or a wrong one
	codeForbidden       api.Code = "forbidden"              // the access is too low, or the request is from another site
	codeNotHere         api.Code = "not_here"               // the directory of the run is on another host
	codeMethod          api.Code = "method_not_allowed"     // the address has no such method
	codeSlow            api.Code = "request_timeout"        // the body did not arrive in time
	codeTooLarge        api.Code = "too_large"              // the body is too long
	codeMediaType       api.Code = "unsupported_media_type" // the body is not JSON
	codeTooMany         api.Code = "too_many_requests"      // wrong tokens or links, or open streams
)

// statuses are the HTTP statuses of problems.
var statuses = map[api.Code]int{
	api.CodeInvalid: http.StatusUnprocessableEntity, api.CodeNotFound: http.StatusNotFound,
	api.CodeNotAllowed: http.StatusConflict, api.CodeUndecided: http.StatusConflict,
	api.CodeDamaged: http.StatusInternalServerError, api.CodeUnavailable: http.StatusServiceUnavailable,
	api.CodeFailed: http.StatusInternalServerError,

	codeUnauthenticated: http.StatusUnauthorized, codeForbidden: http.StatusForbidden,
	codeNotHere: http.StatusNotFound, codeMethod: http.StatusMethodNotAllowed, codeSlow: http.StatusRequestTimeout,
	codeTooLarge:  http.StatusRequestEntityTooLarge,
	codeMediaType: http.StatusUnsupportedMediaType, codeTooMany: http.StatusTooManyRequests,
}

// problem is an error as RFC 9457 describes it. Its code is that of package api.
type problem struct {
	Type   string   `json:"type"`
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail" jsonschema:"operation object: cause; what to do next"`
	Code   api.Code `json:"code"`
	Host   string   `json:"host,omitempty" jsonschema:"host that has the directory of the run"`

	AvailableActions []run.Operation `json:"available_actions,omitempty" jsonschema:"what the status allows instead"`
}

// newProblem describes a problem of this server.
func newProblem(code api.Code, detail string) problem {
	status := statuses[code]
	return problem{Type: "urn:passbook:problem:" + string(code), Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code}
}

// problemOf describes the error of an operation.
func (s *Server) problemOf(err error) problem {
	p := s.host.ProblemOf(err)
	out := newProblem(p.Code, p.Message)
	out.AvailableActions = p.AvailableActions
	return out
}

// refuse answers a request with a problem.
func refuse(w http.ResponseWriter, p problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	w.WriteHeader(p.Status)
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	_, _ = w.Write(append(raw, '\n')) // the client has gone, or reads too slowly
}
