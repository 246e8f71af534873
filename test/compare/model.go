package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// model is the model API on loopback. It has the clock of the comparison: a call works for a number of minutes, and a
// minute ends when the harness moves the clock. Conversations keep the minutes that they have worked.
type model struct {
	*httptest.Server

	reply func(prompt string) work // what a call does

	mu       sync.Mutex
	moved    *sync.Cond
	now      int              // minutes
	begun    []time.Time      // of the calls that were accepted
	refused  int              // at a limit
	resets   time.Time        // of the limit; zero: there is none
	sessions map[string]*work // with the minutes that are left
	active   map[string]bool  // conversations that work, and those of them that wait for the end of a minute
	waiting  map[string]bool
}

// work is what a call does: it takes time, then executes a script in its working directory.
type work struct {
	Minutes int
	Script  string
}

func newModel(reply func(prompt string) work) *model {
	m := &model{reply: reply, sessions: map[string]*work{}, waiting: map[string]bool{}, active: map[string]bool{}}
	m.moved = sync.NewCond(&m.mu)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /begin", m.begin)
	mux.HandleFunc("POST /minute", m.minute)
	m.Server = httptest.NewServer(mux)
	return m
}

// begin accepts or refuses a call: it sends what the agent executes. A conversation that is continued has only its other
// minutes to work.
func (m *model) begin(w http.ResponseWriter, r *http.Request) {
	prompt, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.reply(string(prompt))
	if earlier := m.sessions[r.FormValue("resume")]; earlier != nil {
		reply = *earlier
	}
	session := r.FormValue("session")
	m.sessions[session] = &reply
	asJSON, script := r.FormValue("json") != "", ""
	if time.Now().Before(m.resets) {
		m.refused++
		script = limited(asJSON, session, m.resets)
	} else {
		m.begun = append(m.begun, time.Now())
		if reply.Minutes > 0 {
			m.active[session] = true
		}
		script = fmt.Sprintf("for i in $(seq %d); do api minute </dev/null || exit 1; done\n%s\n%s\n", reply.Minutes, reply.Script,
			result(asJSON, session, "STATUS: done", `"is_error":false,"total_cost_usd":0.5,"usage":{"input_tokens":1000,"output_tokens":1000}`))
	}
	if _, err := io.WriteString(w, script); err != nil {
		delete(m.active, session) // the agent is gone
	}
}

// minute returns when the clock has moved by one.
func (m *model) minute(w http.ResponseWriter, r *http.Request) {
	session := r.FormValue("session")
	m.mu.Lock()
	defer m.mu.Unlock()
	stop := context.AfterFunc(r.Context(), func() { m.mu.Lock(); defer m.mu.Unlock(); m.moved.Broadcast() })
	defer stop()
	m.waiting[session] = true
	for begun := m.now; m.now == begun && r.Context().Err() == nil; {
		m.moved.Wait()
	}
	if r.Context().Err() != nil {
		delete(m.waiting, session)
		delete(m.active, session)
	} else if m.sessions[session].Minutes--; m.sessions[session].Minutes == 0 {
		delete(m.active, session)
	}
}

// move lets a minute pass if every call that works waits for it.
func (m *model) move() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.waiting); n > 0 && n == len(m.active) {
		m.now++
		clear(m.waiting)
		m.moved.Broadcast()
	}
}

// counted returns the accepted calls, the minutes on the clock and the number of calls that wait for the clock.
func (m *model) counted() (calls, now, waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.begun), m.now, len(m.waiting)
}

// result is what Claude Code prints at its end.
func result(asJSON bool, session, text string, more string) string {
	if !asJSON {
		return "echo " + quoted(text)
	}
	return "echo " + quoted(fmt.Sprintf(`{"type":"result","subtype":"success","session_id":%q,"num_turns":1,"result":%q,%s}`,
		session, text, more))
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// limited prints what Claude Code 2.1.330 prints at the limit of five hours.
func limited(asJSON bool, session string, resets time.Time) string {
	text := "You've hit your 5-hour limit · resets " + resets.UTC().Format("3:04pm") + " (UTC)"
	script := ""
	if asJSON {
		script = "echo " + quoted(fmt.Sprintf(`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%d,`+
			`"rateLimitType":"five_hour","isUsingOverage":false},"session_id":%q}`, resets.Unix(), session)) + "\n"
	}
	return script + result(asJSON, session, text, `"is_error":true,"api_error_status":429,"api_error":"usage_limit_reached",`+
		`"total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}`) + "\nexit 1\n"
}
