package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// playClaude is a claude that follows the last line `PLAY: …` of its prompt. It prints the envelope of `claude -p
// --output-format json`, and records each call and each answer in FAKE_CLAUDE_DIR.
func playClaude(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	prompt, err := io.ReadAll(stdin)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	plays := regexp.MustCompile(`(?m)^PLAY: (\w+)(?: (\d+))?$`).FindAllStringSubmatch(string(prompt), -1)
	if len(plays) == 0 {
		fmt.Fprintln(stderr, "the prompt has no line PLAY: NAME")
		return 1
	}
	play := plays[len(plays)-1]
	a := actor{out: stdout, err: stderr, prompt: string(prompt), name: play[1], folder: os.Getenv("FAKE_CLAUDE_DIR")}
	a.size, _ = strconv.Atoi(play[2])
	if err := a.record(args, prompt); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return a.answer()
}

type actor struct {
	out     io.Writer
	err     io.Writer
	prompt  string
	folder  string
	name    string
	size    int
	attempt int    // calls of this play, of all runs
	text    string // of the answer
}

// record writes the call to the log: arguments, working directory, environment and prompt.
func (a *actor) record(args []string, prompt []byte) error {
	name := filepath.Join(a.folder, "calls.jsonl")
	past, _ := os.ReadFile(name)
	a.attempt = 1 + strings.Count(string(past), `"play":"`+a.name+`"`)
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(prompt)
	line, err := json.Marshal(map[string]any{
		"play": a.name, "argv": args, "cwd": dir, "env": os.Environ(), "prompt": hex.EncodeToString(sum[:]),
		"chars": len([]rune(string(prompt))),
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// answer fails in the first attempts of plays that fail.
func (a *actor) answer() int {
	if f, ok := failures[a.name]; ok && a.attempt <= f.attempts {
		return f.do(a)
	}
	if text, ok := texts[a.name]; ok {
		return a.say(text(a))
	}
	if a.attempt == 1 {
		switch a.name {
		case "error":
			return a.print(map[string]any{"type": "result", "subtype": "success", "is_error": true,
				"result": "API Error: the model is confused", "total_cost_usd": 0.002, "usage": usage(10, 2, 0, 0)})
		case "unfinished":
			return a.print(map[string]any{"type": "result", "subtype": "error_max_turns", "is_error": false,
				"total_cost_usd": 0.003, "usage": usage(10, 3, 0, 0)})
		case "broken":
			return a.write([]byte(`{"type":"result","subtype":"success","is_error":false,"result":"This ends in the mid`))
		case "silent":
			return 0
		}
	}
	return a.succeed()
}

func (a *actor) succeed() int {
	text := "This is the answer of " + a.name + "."
	if a.size > 0 {
		text = long(a.size)
	}
	if a.name == "look" {
		for _, name := range []string{"state.json", "artifact.html", "run.json"} {
			if err := os.WriteFile(name, []byte("scribble"), 0o600); err != nil {
				return 1
			}
		}
	}
	e := map[string]any{
		"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "0", "num_turns": 1,
		"duration_ms":     5,
		"duration_api_ms": 4, "total_cost_usd": 0.01, "usage": usage(1000, 200, 0, 0), "permission_denials": []string{},
		"uuid": "0",
		"modelUsage": map[string]any{"claude-small": map[string]any{"outputTokens": 1, "costUSD": 0.001},
			"claude-large": map[string]any{"outputTokens": 199, "costUSD": 0.009}},
	}
	switch a.name {
	case "cached":
		e["usage"], e["total_cost_usd"] = usage(863, 42656, 12000, 345), 3.42794175
	case "costless":
		delete(e, "total_cost_usd")
		e["usage"] = usage(1000, 200, 10000, 4000)
	case "bare":
		delete(e, "total_cost_usd")
		delete(e, "usage")
	}
	return a.print(e)
}

func usage(in, out, read, write int) map[string]int {
	return map[string]int{"input_tokens": in, "output_tokens": out, "cache_read_input_tokens": read,
		"cache_creation_input_tokens": write}
}

// long returns a text of many bytes without repeated lines.
func long(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "line %d — every line differs\n", i)
	}
	return strings.ToValidUTF8(b.String()[:bytes], "")
}

func (a *actor) print(e map[string]any) int {
	raw, err := json.Marshal(e)
	if err != nil {
		return 1
	}
	if text, ok := e["result"].(string); ok && e["is_error"] == false {
		a.text = text
	}
	return a.write(raw)
}

// write prints bytes, and keeps a copy of them, or of the text in them, by play and attempt.
func (a *actor) write(raw []byte) int {
	if _, err := a.out.Write(raw); err != nil {
		return 1
	}
	kept := raw
	if a.text != "" {
		kept = []byte(a.text)
	}
	if err := os.WriteFile(filepath.Join(a.folder, fmt.Sprintf("said-%s-%d", a.name, a.attempt)), kept,
		0o600); err != nil {
		return 1
	}
	return 0
}
