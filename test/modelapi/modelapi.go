// Package modelapi is a model API on loopback for tests of real agent programs: Anthropic Messages, OpenAI Responses
// and Gemini generateContent, with streaming, tool use and faults. It answers from a script and logs each request. It
// is not a model.
package modelapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Turn is one answer of the model: text, and the tool that it calls; without a tool the agent is done.
type Turn struct {
	Text    string
	Tool    string
	Input   any
	Usage   Tokens   // what the answer reports; zero: DefaultUsage
	Fault   Fault    // what goes wrong instead
	Refusal *Refusal // sent instead
	Times   int      // the number of requests that get this turn; 0: one; Always: all further ones

	Delay time.Duration // before the answer begins
}

// Always is the Times of a turn that answers all further requests.
const Always = -1

// Tokens are the tokens that an answer reports. The four kinds are disjoint.
type Tokens struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"` // Anthropic only
}

// DefaultUsage is the usage of a turn that sets none.
var DefaultUsage = Tokens{Input: 10, Output: 5}

// Outcomes of a request.
const (
	Open      = "open"      // not answered yet
	Completed = "completed" // answered
	Overlong  = "overlong"  // answered, and cut at the limit of output tokens
	Refused   = "refused"   // answered with an error
	Cut       = "cut"       // the server dropped the connection in the middle of the answer
	Abandoned = "abandoned" // the agent dropped it
)

// Entry is a request in the log.
type Entry struct {
	Time  time.Time `json:"time"`
	Path  string    `json:"path"`
	Model string    `json:"model,omitempty"`
	Turn  int       `json:"turn"` // its number in the script, from 1; 0: not part of the conversation, such as a title
	Tokens
	Status   int    `json:"status"`
	Messages int    `json:"messages"`
	Results  int    `json:"results"` // results of tools in all messages
	Digest   string `json:"digest"`  // SHA-256 of the messages
	Outcome  string `json:"outcome"`
}

// Request is what an agent asked.
type Request struct {
	Key      string // the API key or token
	Path     string
	Body     []byte
	Model    string
	Stream   bool
	Side     bool              // not part of the conversation, such as a request for a title
	Schema   json.RawMessage   // of the JSON that it asks for; empty: text
	Tools    []string          // names of tools that it may call
	Messages []json.RawMessage // in the provider's form
	Results  []string          // results of tools in all messages, as JSON, in order

	calls []string // ids of the tool calls with a result
}

// addResult adds the result of a tool call. gemini sends each result twice in a session that it continues.
func (r *Request) addResult(call string, result json.RawMessage) {
	if call == "" || !slices.Contains(r.calls, call) {
		r.calls, r.Results = append(r.calls, call), append(r.Results, string(result))
	}
}

// provider is one kind of API.
type provider interface {
	// read parses a request; ok is false if its path is not a request to a model.
	read(r *http.Request, body []byte) (asked Request, ok bool)
	// answer sends a turn.
	answer(a *exchange)
	// refusal returns status, headers and body of a fault.
	refusal(f Fault) (status int, header map[string]string, body string)
	// other answers what is not a request to a model, such as a list of models; false: there is nothing.
	other(w http.ResponseWriter, r *http.Request) bool
}

// API is a server of one provider.
type API struct {
	*httptest.Server

	provider provider
	mu       sync.Mutex
	turns    []Turn
	used     int // requests answered by the first of turns
	results  bool
	number   int
	log      []Entry
	asked    []Request
	other    []string
	silent   chan struct{}
	closed   chan struct{}
	closing  sync.Once
}

// NewAnthropic starts a server of the Messages API that answers the requests of a conversation by these turns, in
// order. Other requests, such as one for a title, get a short text, or the zero value of the JSON that they ask for.
func NewAnthropic(turns ...Turn) *API { return start(anthropic{}, turns) }

// NewOpenAI starts a server of the Responses API.
func NewOpenAI(turns ...Turn) *API { return start(openAI{}, turns) }

// NewGemini starts a server of generateContent and streamGenerateContent.
func NewGemini(turns ...Turn) *API { return start(gemini{}, turns) }

func start(p provider, turns []Turn) *API {
	a := &API{provider: p, turns: slices.Clone(turns), silent: make(chan struct{}, 1), closed: make(chan struct{})}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	return a
}

// Close stops the server. Unfinished answers are cut off.
func (a *API) Close() {
	a.closing.Do(func() { close(a.closed) })
	a.CloseClientConnections()
	a.Server.Close()
}

// Script replaces the turns that are left.
func (a *API) Script(turns ...Turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns, a.used = slices.Clone(turns), 0
}

// ByResults has each request of a conversation get the turn of the number of tool results in it, from 0; the last turn
// if there are more. So a request that is sent again gets the same answer again.
func (a *API) ByResults() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results = true
}

// Silent receives when a turn became silent. See [Silent].
func (a *API) Silent() <-chan struct{} { return a.silent }

// Asked returns the requests of the conversation so far, and the paths of requests that are not to a model.
func (a *API) Asked() (requests []Request, other []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked), slices.Clone(a.other)
}

// Log returns all requests to models so far.
func (a *API) Log() []Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent is gone
	}
	asked, ok := a.provider.read(r, body)
	if !ok {
		a.mu.Lock()
		a.other = append(a.other, r.Method+" "+r.URL.Path)
		a.mu.Unlock()
		if !a.provider.other(w, r) {
			http.NotFound(w, r)
		}
		return
	}
	asked.Path, asked.Body = r.URL.Path, body
	turn, at := a.next(asked)
	e := &exchange{a: a, w: w, r: r, asked: asked, turn: turn, at: at}
	select {
	case <-time.After(turn.Delay):
	case <-r.Context().Done():
	case <-a.closed:
	}
	outcome := e.serve()
	a.edit(at, func(l *Entry) { l.Outcome = outcome })
	if outcome == Cut {
		panic(http.ErrAbortHandler) // closes the connection without an end of the answer
	}
}

// next finds the turn of a request and logs it.
func (a *API) next(asked Request) (Turn, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := sha256.New()
	for _, m := range asked.Messages {
		sum.Write(m)
		sum.Write([]byte{'\n'})
	}
	a.log = append(a.log, Entry{
		Time: time.Now().UTC(), Path: asked.Path, Model: asked.Model, Status: http.StatusOK, Messages: len(asked.Messages),
		Results: len(asked.Results), Digest: hex.EncodeToString(sum.Sum(nil)), Outcome: Open,
	})
	at := len(a.log) - 1
	if asked.Side {
		return Turn{Text: aside(asked.Schema), Usage: DefaultUsage}, at
	}
	a.asked = append(a.asked, asked)
	if len(a.turns) == 0 {
		a.log[at].Turn = a.number + 1
		return Turn{Text: "Nothing is left to do.", Usage: DefaultUsage}, at
	}
	if a.results {
		n := min(len(asked.Results), len(a.turns)-1)
		a.log[at].Turn = n + 1
		turn := a.turns[n]
		turn.Usage = cmp.Or(turn.Usage, DefaultUsage)
		return turn, at
	}
	if a.used == 0 {
		a.number++
	}
	turn := a.turns[0]
	if a.used++; turn.Times != Always && a.used >= max(1, turn.Times) {
		a.turns, a.used = a.turns[1:], 0
	}
	turn.Usage = cmp.Or(turn.Usage, DefaultUsage)
	a.log[at].Turn = a.number
	return turn, at
}

// aside is the answer to a request beside the conversation: a title, or the zero value of a JSON schema.
func aside(schema json.RawMessage) string {
	var object struct {
		Properties map[string]struct{ Type string }
	}
	if json.Unmarshal(schema, &object) != nil {
		return "A title"
	}
	zero := map[string]any{"string": "", "number": 0, "integer": 0, "boolean": false, "array": []any{},
		"object": struct{}{}}
	answer := map[string]any{}
	for name, p := range object.Properties {
		answer[name] = zero[strings.ToLower(p.Type)]
	}
	return marshal(answer)
}

func (a *API) edit(at int, change func(*Entry)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.log[at])
}

// exchange is one request and its answer.
type exchange struct {
	a     *API
	w     http.ResponseWriter
	r     *http.Request
	asked Request
	turn  Turn
	at    int
	gone  bool // the agent
}

func (e *exchange) serve() string {
	f := e.turn.Fault
	status, header, body := e.a.provider.refusal(f)
	if r := e.turn.Refusal; r != nil {
		status, header, body = r.Status, r.Header, r.Body
	}
	if status != 0 {
		e.a.edit(e.at, func(l *Entry) { l.Status = status })
		e.w.Header().Set("Content-Type", "application/json")
		for name, value := range header {
			e.w.Header().Set(name, value)
		}
		e.w.WriteHeader(status)
		e.write(body)
		return Refused
	}
	e.a.provider.answer(e)
	switch {
	case e.gone:
		return Abandoned
	case f.Kind == FaultDropped, f.Kind == FaultInStream && !e.asked.Stream:
		return Cut
	case f.Kind == FaultOverlong:
		return Overlong
	case f.Kind == FaultInStream:
		return Refused
	}
	return Completed
}

// report logs tokens that the answer has reported.
func (e *exchange) report(t Tokens) { e.a.edit(e.at, func(l *Entry) { l.Tokens = t }) }

// write sends a text to an agent, which may be gone.
func (e *exchange) write(text string) {
	if _, err := io.WriteString(e.w, text); err != nil {
		e.gone = true
		return
	}
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
	e.gone = e.gone || e.r.Context().Err() != nil
}

// event sends a server-sent event. Without a kind it has data only.
func (e *exchange) event(kind string, fields any) {
	text := "data: " + marshal(fields) + "\n\n"
	if kind != "" {
		text = "event: " + kind + "\n" + text
	}
	e.write(text)
}

// halfway is called in the middle of an answer. It reports whether the answer ends there.
func (e *exchange) halfway() bool {
	switch e.turn.Fault.Kind {
	case FaultDropped, FaultInStream:
		return true
	case FaultSilent:
		select {
		case e.a.silent <- struct{}{}:
		default:
		}
		timer := time.NewTimer(e.turn.Fault.For)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-e.r.Context().Done():
			e.gone = true
		case <-e.a.closed:
			e.gone = true
		}
	}
	return e.gone
}

// pieces splits a text in two, so that an answer has a middle.
func pieces(text string) [2]string {
	runes := []rune(text)
	return [2]string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}

// rawList returns the members of a JSON array, or a text as its only one.
func rawList(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil && len(raw) > 0 {
		return []json.RawMessage{raw}
	}
	return list
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return string(data)
}

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func id(prefix string, n int) string { return fmt.Sprintf("%s_%024d", prefix, n) }
