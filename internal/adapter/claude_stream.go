package adapter

// newClaudeStream reads the output of `claude -p --output-format stream-json --verbose`, with or without
// --include-partial-messages.
func newClaudeStream() Parser {
	var c claudeEvents
	return newLines(func(raw []byte) ([]Frame, bool) { return c.frames(raw, false) }, nil)
}
