package simulation_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// behaviour is what one delivery of a call does.
type behaviour struct {
	stdout, stderr string
	page           string // the artifact as it leaves it; empty: unchanged
	code           int
	takes          time.Duration
	late           bool // it exceeds its timeout
	lost           bool // its supervisor is killed before it records the exit
	usable         bool // its reply can be used
}

// faults of agents, by the category that they show. A usable answer is by far the most frequent.
var agentFaults = []string{"exit", "timeout", "empty", "truncated", "no-artifact", "rate-limit", "overload", "refused",
	"lost"}

var roleOf = regexp.MustCompile(`ROLE ([a-z]+)`)

// behave decides what the agent of a call does. Only a supervisor whose turn it is calls it, so the choices come in the
// order of the schedule.
func (w *world) behave(delivery, prompt string) behaviour {
	call, role := filepath.Dir(delivery), ""
	if m := roleOf.FindStringSubmatch(prompt); m != nil {
		role = m[1]
	}
	b := behaviour{usable: true, takes: time.Duration(1+w.choose(20)) * time.Second}
	text := fmt.Sprintf("The report of %s on %d characters.\n", role, len(prompt))
	switch role {
	case "judge":
		text += fmt.Sprintf("S: %d / 4\n", 1+len(prompt)%4) // of the question alone
	case "builder":
		b.page = fmt.Sprintf("<!DOCTYPE html>\n<html><body>%s</body></html>\n", call)
	}
	b.stdout = envelope(text, false, 0)
	if !w.plan.agentFaults || !w.chance(8) {
		return b
	}
	b.usable = false
	switch agentFaults[w.choose(len(agentFaults))] {
	case "exit":
		b.stdout, b.stderr, b.code, b.page = "", "something broke\n", 1, ""
	case "timeout":
		b.stdout, b.late, b.page = "", true, ""
	case "empty":
		b.stdout, b.page = envelope("", false, 0), ""
	case "truncated":
		b.stdout, b.page = b.stdout[:len(b.stdout)/3], ""
	case "no-artifact":
		b.page, b.usable = "", role != "builder"
	case "rate-limit":
		b.stdout, b.code, b.page = envelope("API Error: Request rejected (429) · Slow down.", true, 429), 1, ""
	case "overload":
		b.stdout, b.code, b.page = envelope("API Error: Repeated 529 Overloaded errors. The API is at capacity.", true,
			529), 1, ""
	case "refused":
		b.stdout, b.code, b.page = envelope("API Error: Connection error.", true, 0), 1, ""
	case "lost":
		b.stdout, b.lost = "", true
	}
	return b
}

// envelope is the result of claude's JSON output.
func envelope(text string, failed bool, status int) string {
	const in, out, usd = 100, 20, 0.01
	raw, err := json.Marshal(map[string]any{
		"type": "result", "subtype": "success", "is_error": failed, "api_error_status": status, "result": text,
		"num_turns": 1, "session_id": "s", "total_cost_usd": usd,
		"usage":      map[string]int{"input_tokens": in, "output_tokens": out},
		"modelUsage": map[string]any{"m": map[string]any{"inputTokens": in, "outputTokens": out, "costUSD": usd}},
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// callLog counts what agents did, which no program under test can change.
type callLog struct {
	mu      sync.Mutex
	begun   map[string]int
	usable  map[string]int
	answers map[string]int
}

func newCallLog() *callLog {
	return &callLog{begun: map[string]int{}, usable: map[string]int{}, answers: map[string]int{}}
}

func (c *callLog) begin(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[call]++
}

func (c *callLog) end(call string, usable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[call]++
	if usable {
		c.usable[call]++
	}
}
