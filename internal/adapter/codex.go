package adapter

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// codexEvents turns the events of `codex exec --json` into frames. The answer is the last message of a completed turn.
type codexEvents struct {
	tools  toolNames
	answer string
}

type codexEvent struct {
	Type    string      `json:"type"`
	Thread  string      `json:"thread_id"`
	Message string      `json:"message"`
	Error   codexError  `json:"error"`
	Usage   *codexUsage `json:"usage"`
	Item    *codexItem  `json:"item"`
}

type codexError struct {
	Message string `json:"message"`
}

// codexUsage is the usage of a session. Input includes what was read from and written to the cache.
type codexUsage struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// Errors of codex have no code.
var (
	codexCut       = lazyregexp.New(`stream disconnected before completion`)
	codexTruncated = lazyregexp.New(`^Incomplete response returned, reason: max_output_tokens`)
)

type codexItem struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Text    string `json:"text"`
	Message string `json:"message"`
	Status  string `json:"status"`

	Command   string          `json:"command"`
	Changes   json.RawMessage `json:"changes"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Query     string          `json:"query"`
	Prompt    string          `json:"prompt"`
	Output    string          `json:"aggregated_output"`
	Result    json.RawMessage `json:"result"`
}

func newCodexJSONL() Parser {
	var c codexEvents
	return newLines(c.frames)
}

func (c *codexEvents) frames(raw []byte) ([]Frame, bool) {
	var e codexEvent
	ok, exact := decode(raw, &e)
	switch {
	case !ok:
		return nil, false
	case e.Type == "thread.started":
		return []Frame{{Kind: KindSession, ID: e.Thread}}, true
	case e.Type == "turn.started":
		c.answer = ""
	case e.Type == "turn.completed":
		return c.completed(e), exact
	case e.Type == "turn.failed":
		f := Frame{Kind: KindResult, Status: StatusError, Text: e.Error.Message, Lost: codexCut.MatchString(e.Error.Message)}
		if codexTruncated.MatchString(f.Text) {
			f.Status = StatusTruncated
		}
		return []Frame{f}, true
	case e.Type == "error":
		return []Frame{{Kind: KindWarning, Code: e.Type, Text: e.Message, Lost: codexCut.MatchString(e.Message)}}, true
	case strings.HasPrefix(e.Type, "item.") && e.Item != nil:
		return c.item(*e.Item, e.Type == "item.completed"), true
	}
	return nil, true
}

func (c *codexEvents) completed(e codexEvent) []Frame {
	var out []Frame
	if e.Usage != nil {
		var u Usage
		u.Input = max(0, e.Usage.Input-e.Usage.CacheRead-e.Usage.CacheWrite)
		u.CacheRead, u.CacheWrite, u.Output = e.Usage.CacheRead, e.Usage.CacheWrite, e.Usage.Output
		out = append(out, Frame{Kind: KindUsage, Total: true, Usage: &u})
	}
	return append(out, Frame{Kind: KindResult, Status: StatusComplete, Text: c.answer})
}

func (c *codexEvents) item(i codexItem, done bool) []Frame {
	input := i.input()
	switch {
	case i.Type == "agent_message" && done:
		c.answer = i.Text
		return []Frame{{Kind: KindText, ID: i.ID, Text: i.Text}}
	case i.Type == "error" && done:
		return []Frame{{Kind: KindWarning, Text: i.Message}}
	case input == nil:
		return nil
	}
	var out []Frame
	if !c.tools.started(i.ID) {
		out = append(out, c.tools.start("", i.ID, i.name(), input))
	}
	if done {
		out = append(out, c.tools.end("", i.ID, i.Status == "failed" || i.Status == "declined", append([]byte(i.Output), i.Result...)))
	}
	return out
}

// input returns the input of a tool; nil: the item is not a tool.
func (i codexItem) input() json.RawMessage {
	field := func(name, value string) json.RawMessage {
		raw, err := json.Marshal(map[string]string{name: value})
		if err != nil {
			return nil
		}
		return raw
	}
	switch i.Type {
	case "command_execution":
		return field("command", i.Command)
	case "web_search":
		return field("query", i.Query)
	case "collab_tool_call":
		return field("prompt", i.Prompt)
	case "file_change":
		return append(json.RawMessage{}, i.Changes...)
	case "mcp_tool_call":
		return append(json.RawMessage{}, i.Arguments...)
	}
	return nil
}

func (i codexItem) name() string {
	if i.Type == "mcp_tool_call" {
		return i.Server + "." + i.Tool
	}
	if i.Type == "collab_tool_call" {
		return i.Tool
	}
	return i.Type
}

// resumeCodex continues a session: `codex exec OPTIONS resume SESSION -`. The prompt comes from standard input.
func resumeCodex(argv []string, session string) ([]string, bool) {
	at := slices.Index(argv, "exec")
	if at < 1 || path.Base(argv[0]) != "codex" || session == "" ||
		slices.ContainsFunc(argv, func(arg string) bool {
			return slices.Contains([]string{"resume", "fork", "review", "--ephemeral"}, arg)
		}) {
		return nil, false
	}
	out := slices.Clone(argv)
	if out[len(out)-1] == "-" {
		out = out[:len(out)-1]
	}
	return append(out, "resume", session, "-"), true
}
