package adapter

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// geminiEvents turns the events of `gemini -o stream-json` into frames. The answer is the text after the last tool.
type geminiEvents struct {
	tools  toolNames
	answer []byte
	failed string // text of the last error
}

type geminiEvent struct {
	Type     string          `json:"type"`
	Session  string          `json:"session_id"`
	Model    string          `json:"model"`
	Role     string          `json:"role"`
	Content  string          `json:"content"`
	Tool     string          `json:"tool_name"`
	ID       string          `json:"tool_id"`
	Input    json.RawMessage `json:"parameters"`
	Output   json.RawMessage `json:"output"`
	Status   string          `json:"status"`
	Severity string          `json:"severity"`
	Message  string          `json:"message"`
	Error    *geminiError    `json:"error"`
	Stats    struct {
		Models map[string]struct {
			Total  int64 `json:"total_tokens"`
			Input  int64 `json:"input_tokens"` // with cached tokens
			Output int64 `json:"output_tokens"`
			Cached int64 `json:"cached"`
		} `json:"models"`
	} `json:"stats"`
}

type geminiError struct {
	Type    string          `json:"type"`
	Message string          `json:"message"`
	Code    json.RawMessage `json:"code"` // a number or a word
}

// geminiDocument is the output of `gemini -o json`.
type geminiDocument struct {
	Session  string       `json:"session_id"`
	Response *string      `json:"response"`
	Error    *geminiError `json:"error"`
	Warnings []string     `json:"warnings"`
	Stats    struct {
		Models map[string]struct {
			Tokens struct {
				Prompt     int64 `json:"prompt"` // with cached tokens
				Candidates int64 `json:"candidates"`
				Cached     int64 `json:"cached"`
				Thoughts   int64 `json:"thoughts"`
				Tool       int64 `json:"tool"`
			} `json:"tokens"`
		} `json:"models"`
	} `json:"stats"`
}

// http returns the status of the provider's refusal, or 0: other codes are exit codes or words.
func (e *geminiError) http() int {
	var code int
	if json.Unmarshal(e.Code, &code) != nil || code < 400 || code > 599 {
		return 0
	}
	return code
}

func newGeminiStream() Parser {
	var g geminiEvents
	return newLines(g.frames)
}

func newGeminiJSON() Parser { return newDocument(geminiResult) }

func (g *geminiEvents) frames(raw []byte) ([]Frame, bool) {
	var e geminiEvent
	ok, exact := decode(raw, &e)
	switch {
	case !ok:
		return nil, false
	case e.Type == "init":
		return []Frame{{Kind: KindSession, ID: e.Session, Model: e.Model}}, true
	case e.Type == "message" && e.Role == "assistant" && e.Content != "":
		if len(g.answer)+len(e.Content) <= MaxValue {
			g.answer = append(g.answer, e.Content...)
		}
		return []Frame{{Kind: KindText, Text: e.Content}}, true
	case e.Type == "tool_use":
		g.answer = nil
		return []Frame{g.tools.start("", e.ID, e.Tool, e.Input)}, true
	case e.Type == "tool_result":
		g.answer = nil
		return []Frame{g.tools.end("", e.ID, e.Status == "error", e.Output)}, true
	case e.Type == "error":
		return []Frame{g.error(e)}, true
	case e.Type == "result":
		return g.result(e), exact
	}
	return nil, true
}

func (g *geminiEvents) error(e geminiEvent) Frame {
	f := Frame{Kind: KindWarning, Text: e.Message}
	if e.Severity == "error" {
		f.Code, g.failed = e.Severity, e.Message
	}
	return f
}

func (g *geminiEvents) result(e geminiEvent) []Frame {
	var models []ModelUsage
	for model, m := range e.Stats.Models {
		row := ModelUsage{Model: model}
		row.Input, row.CacheRead = max(0, m.Input-m.Cached), m.Cached
		row.Output = max(m.Output, m.Total-m.Input) // thoughts are in the total only
		models = append(models, row)
	}
	r := Frame{Kind: KindResult, Status: StatusComplete, Text: string(g.answer)}
	if e.Status != "success" {
		r.Status, r.Text = StatusError, g.failed
		if e.Error != nil {
			r.Code, r.Text = e.Error.Type, cmp.Or(e.Error.Message, r.Text)
		}
	}
	return geminiFrames(models, r)
}

// geminiResult reads the output of `gemini -o json`.
func geminiResult(raw []byte, _ bool) ([]Frame, bool) {
	var e geminiDocument
	if ok, exact := decode(raw, &e); !ok || !exact {
		return nil, false
	}
	if e.Response == nil && e.Error == nil {
		return nil, true
	}
	var out []Frame
	if e.Session != "" {
		out = append(out, Frame{Kind: KindSession, ID: e.Session})
	}
	for _, text := range e.Warnings {
		out = append(out, Frame{Kind: KindWarning, Text: text})
	}
	var models []ModelUsage
	for model, m := range e.Stats.Models {
		row := ModelUsage{Model: model}
		t := m.Tokens
		row.Input, row.CacheRead, row.Output = max(0, t.Prompt-t.Cached)+t.Tool, t.Cached, t.Candidates+t.Thoughts
		models = append(models, row)
	}
	r := Frame{Kind: KindResult, Status: StatusComplete}
	if e.Response != nil {
		r.Text = *e.Response
	}
	if e.Error != nil {
		r.Status, r.Code, r.Text, r.HTTP = StatusError, e.Error.Type, e.Error.Message, e.Error.http()
	}
	return append(out, geminiFrames(models, r)...), true
}

// geminiTruncated is how gemini reports an answer without text that exceeds the tokens of the model.
var geminiTruncated = lazyregexp.New(`(?i)truncated because it exceeded the token limit`)

// geminiFrames returns usage and result of a call. The statistics of a failed call lack requests that were cut off.
func geminiFrames(models []ModelUsage, r Frame) []Frame {
	slices.SortFunc(models, func(a, b ModelUsage) int { return strings.Compare(a.Model, b.Model) })
	if r.Status == StatusError && geminiTruncated.MatchString(r.Text) {
		r.Status = StatusTruncated
	}
	var out []Frame
	var all Usage
	for _, m := range models {
		all.add(m.Usage)
		if r.Status != StatusComplete && m.Tokens != (Usage{}).Tokens {
			out = append(out, Frame{Kind: KindUsage, ID: m.Model, Model: m.Model, Usage: &m.Usage})
		}
	}
	if r.Status == StatusComplete && len(models) > 0 {
		out = append(out, Frame{Kind: KindUsage, Total: true, Usage: &all, Models: models})
	}
	return append(out, r)
}

// resumeGemini continues a session.
func resumeGemini(argv []string, session string) ([]string, bool) {
	own := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains([]string{"--resume", "-r", "--session-id"}, name)
	}
	if len(argv) == 0 || path.Base(argv[0]) != "gemini" || session == "" || slices.ContainsFunc(argv, own) {
		return nil, false
	}
	return append(slices.Clone(argv), "--resume", session), true
}
