package simulation_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// behaviour is what one delivery of a call does.
type behaviour struct {
	stdout, stderr string
	files          map[string]string // as it leaves them in its folder
	exit           map[string]any    // what its supervisor records, besides the usual
	code           int
	takes          time.Duration
	lost           bool // its supervisor is killed before it records the exit
	gone           bool // it removes its working directory
	replaced       bool // it puts a folder in the place of its output
	usable         bool // its reply can be used
}

const api = "API Error: "

// agentFaults are the ways in which agents fail. Each changes an answer that is good.
var agentFaults = map[string]func(b *behaviour){
	"exit":      func(b *behaviour) { b.nothing(); b.stderr, b.code = "something broke\n", 1 },
	"not found": func(b *behaviour) { b.nothing(); b.code = 127 },
	"no start": func(b *behaviour) {
		b.nothing()
		b.exit["spawn"] = map[string]any{"path": "/bin/true", "errno": 8, "text": "exec format error"}
	},
	"signal":    func(b *behaviour) { b.nothing(); b.code, b.exit["signal"] = -1, "killed" },
	"timeout":   func(b *behaviour) { b.nothing(); b.late() },
	"idle":      func(b *behaviour) { b.nothing(); b.late(); b.exit["idle"] = true },
	"empty":     func(b *behaviour) { b.nothing(); b.stdout = envelope("", false, 0) },
	"no output": func(b *behaviour) { b.nothing() },
	"truncated": func(b *behaviour) { b.stdout, b.files = b.stdout[:len(b.stdout)/3], nil },
	"binary":    func(b *behaviour) { b.stdout, b.files = "\x00\xff\xfe{\x01", nil },
	"overflow": func(b *behaviour) {
		b.stdout, b.files = strings.Repeat("x", 64_000), nil
		b.code, b.exit["signal"], b.exit["overflow"], b.exit["limit"] = -1, "killed", true, 64_000
	},
	"replaced":       func(b *behaviour) { b.replaced, b.exit["replaced"] = true, true },
	"no change":      func(b *behaviour) { b.files = nil },
	"wrong answer":   func(b *behaviour) { b.nothing(); b.stdout = envelope("Nothing of what was asked.", false, 0) },
	"gone":           func(b *behaviour) { b.gone = true },
	"rate limit":     func(b *behaviour) { b.refused(429, api+"Request rejected (429) · Slow down.") },
	"overload":       func(b *behaviour) { b.refused(529, api+"Repeated 529 Overloaded errors. The API is at capacity.") },
	"unreachable":    func(b *behaviour) { b.refused(0, api+"Connection error.") },
	"usage limit":    func(b *behaviour) { b.refused(429, "You've hit your session limit · resets 11pm (UTC)") },
	"no reset":       func(b *behaviour) { b.refused(429, "You've hit your session limit") },
	"login":          func(b *behaviour) { b.refused(401, "Invalid API key · Please run /login") },
	"credit":         func(b *behaviour) { b.refused(400, "Credit balance is too low") },
	"model":          func(b *behaviour) { b.refused(404, "There's an issue with the selected model (m).") },
	"too long":       func(b *behaviour) { b.refused(0, api+"Claude's response exceeded the 9 output token maximum.") },
	"lost":           func(b *behaviour) { b.nothing(); b.lost = true },
	"lost, answered": func(b *behaviour) { b.lost = true },
}

func (b *behaviour) nothing() { b.stdout, b.files = "", nil }

func (b *behaviour) late() { b.code, b.exit["timed_out"], b.exit["signal"] = -1, true, "killed" }

func (b *behaviour) refused(status int, text string) {
	b.files, b.code, b.stdout = nil, 1, envelope(text, true, status)
}

var roleOf = regexp.MustCompile(`ROLE ([a-z]+)`)

// behave decides what the agent of a call does: the seed and the delivery alone determine it.
func (w *world) behave(delivery, prompt string, command bool) behaviour {
	h := fnv.New64a()
	h.Write([]byte(delivery))
	r := rand.New(rand.NewPCG(w.seed, h.Sum64()))
	call, role := filepath.Dir(delivery), ""
	if m := roleOf.FindStringSubmatch(prompt); m != nil {
		role = m[1]
	}
	b := behaviour{usable: true, takes: time.Duration(1+r.IntN(20)) * time.Second, exit: map[string]any{}}
	text := fmt.Sprintf("The report of %s on %d characters.\n", role, len(prompt))
	switch role {
	case "judge":
		text += fmt.Sprintf("S: %d / 4\n", 1+len(prompt)%4) // of the question alone
	case "reviewer":
		text += "VERDICT: " + []string{"approved", "rejected", "incomplete"}[len(prompt)%3] + "\n"
	case "writer":
		text += "<!-- LOG_START -->\n" + call + "\n<!-- LOG_END -->\n"
	case "builder":
		b.files = map[string]string{"page.html": fmt.Sprintf("<!DOCTYPE html>\n<html><body>%s</body></html>\n", call)}
		if w.plan.tree {
			b.files = map[string]string{"main.txt": call + "\n", "new/" + call[:5] + ".txt": "new\n",
				"tests/main_test.txt": "cheated\n"}
		}
	}
	b.stdout = envelope(text, false, 0)
	if command {
		b.stdout = "ok\n"
	}
	if !w.plan.agentFaults || !w.fails(delivery, r) {
		return b
	}
	if command {
		b.code, b.stdout = 1, "FAIL\n"
		return b
	}
	name := w.faults[r.IntN(len(w.faults))]
	w.note("agent of " + delivery + ": " + name)
	w.failed[name]++
	agentFaults[name](&b)
	b.usable = b.stdout != "" && !b.replaced && (name == "lost, answered" || name == "gone" || name == "no change")
	return b
}

// fails decides whether an agent fails.
func (w *world) fails(delivery string, r *rand.Rand) bool {
	const rare = 8
	return w.happens("agent "+delivery, func() bool { return r.IntN(rare) == 0 })
}

// leave writes what an agent leaves in its folder.
func (w *world) leave(b behaviour, dir string) {
	for name, text := range b.files {
		path := filepath.Join(dir, name)
		w.check(os.MkdirAll(filepath.Dir(path), 0o700))
		w.check(os.WriteFile(path, []byte(text), 0o600))
	}
	if b.gone {
		w.check(os.RemoveAll(dir))
	}
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

// callLog counts the usable answers of each delivery, which no program under test can change.
type callLog struct {
	mu     sync.Mutex
	usable map[string]int
}

func newCallLog() *callLog { return &callLog{usable: map[string]int{}} }

func (c *callLog) end(call string, usable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if usable {
		c.usable[call]++
	}
}
