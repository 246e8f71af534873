// Package adapter turns what the program of an agent prints into frames: one stream of sessions, texts, tool calls,
// tokens and results for all programs. Everything above an agent knows only frames.
//
// It is pure: it gets the bytes of standard output and does no IO. It never judges the text of an answer.
package adapter

import (
	"slices"
	"strings"
)

// Names of adapters: values of reply in a definition.
const (
	Text         = "text"
	ClaudeJSON   = "claude-json"
	ClaudeStream = "claude-stream"
	CodexJSONL   = "codex-jsonl"
	GeminiJSON   = "gemini-json"
	GeminiStream = "gemini-stream"
)

// CostSource is what the final report of a call contains.
type CostSource string

// Sources of costs.
const (
	ReportsUSD    CostSource = "usd"    // tokens and USD
	ReportsTokens CostSource = "tokens" // tokens; their cost needs a price
	ReportsNone   CostSource = "none"   // nothing; tokens are estimated from characters
)

// Adapter reads the output of one program in one format.
type Adapter struct {
	Name    string // reply in a definition
	Program string // the program whose output it reads: claude, codex or gemini; empty: any
	Command string // how that program is asked for this format
	Stream  bool   // frames arrive while the call runs
	Ends    bool   // a complete output is recognizable; else only the exit of the program ends it
	Stderr  bool   // a call without result prints its error to standard error, in the same format
	Cost    CostSource
	// Ephemeral is the option with which the program stores no session; empty: it has none.
	Ephemeral string
	Session   bool // the total of a continued session includes that of its earlier calls
	New       func() Parser
	// Resume returns the command that continues a session, and false if this command cannot. nil: no command can.
	Resume func(argv []string, session string) ([]string, bool)
	// Budget returns the command that stops when it has cost an amount in USD, and false if this command cannot, or has
	// its own amount. nil: no command can.
	Budget func(argv []string, usd float64) ([]string, bool)
	Setup  func() Setup // of its program; nil: it reads the output of any
}

// Parser reads an output in chunks that may be cut anywhere. It holds at most one value of the output, up to
// [MaxValue] bytes.
type Parser interface {
	Parse(chunk []byte) []Frame
	// End is called once, after the last chunk. It does not know how the program ended.
	End() []Frame
}

var table = []Adapter{
	{
		Name: ClaudeStream, Program: "claude", Command: "claude -p --output-format stream-json --verbose", Stream: true,
		Ends: true, Cost: ReportsUSD, New: newClaudeStream, Resume: resumeClaude, Budget: budgetClaude,
		Setup: claudeSetup, Ephemeral: "--no-session-persistence",
	}, {
		Name: ClaudeJSON, Program: "claude", Command: "claude -p --output-format json", Ends: true, Cost: ReportsUSD,
		New: newClaudeJSON, Resume: resumeClaude, Budget: budgetClaude,
		Setup: claudeSetup, Ephemeral: "--no-session-persistence",
	}, {
		Name: CodexJSONL, Program: "codex", Command: "codex exec --json", Stream: true, Ends: true, Cost: ReportsTokens,
		Session: true, New: newCodexJSONL, Resume: resumeCodex, Setup: codexSetup,
		Ephemeral: "--ephemeral",
	}, {
		Name: GeminiJSON, Program: "gemini", Command: "gemini -o json", Ends: true, Stderr: true, Cost: ReportsTokens,
		New: newGeminiJSON, Resume: resumeGemini, Setup: geminiSetup,
	}, {
		Name: GeminiStream, Program: "gemini", Command: "gemini -o stream-json", Stream: true, Ends: true,
		Cost: ReportsTokens, New: newGeminiStream, Resume: resumeGemini, Setup: geminiSetup,
	},
	{Name: Text, Stream: true, Cost: ReportsNone, New: newText},
}

// Table returns all adapters.
func Table() []Adapter { return slices.Clone(table) }

// Names returns the names of all adapters.
func Names() []string {
	var names []string
	for _, a := range Table() {
		names = append(names, a.Name)
	}
	return names
}

// Find returns the adapter with a name.
func Find(name string) (Adapter, bool) {
	at := slices.IndexFunc(table, func(a Adapter) bool { return a.Name == name })
	if at < 0 {
		return Adapter{}, false
	}
	return table[at], true
}

// Model returns the model that a command names with --model or -m; empty: none.
func Model(argv []string) string {
	for i, arg := range argv {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != "--model" && name != "-m":
		case joined:
			return value
		case i+1 < len(argv):
			return argv[i+1]
		}
	}
	return ""
}

// chunkSize is the number of bytes that Read hands to a parser at once.
const chunkSize = 64 << 10

// Read reads a whole output.
func (a Adapter) Read(stdout []byte) Summary {
	var s Summary
	p := a.New()
	for chunk := range slices.Chunk(stdout, chunkSize) {
		s.Add(p.Parse(chunk)...)
	}
	s.Add(p.End()...)
	return s
}
