package limits

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Codex and Gemini CLI wait for a connection until they are ended.
var (
	codexWaits  = lazyregexp.New(`^Reconnecting\.\.\. `)
	geminiWaits = lazyregexp.New(`^Attempt \d+ failed\. Retrying with backoff\.\.\. .*\bfetch failed\b`)
	geminiWorks = lazyregexp.New(`"type":"tool_use"|"role":"assistant"`)
)

// Waited reports whether a program that was ended waited for a connection: it is the last that the program printed.
func (r Report) Waited(stdout string) bool {
	switch r.Program {
	case "codex":
		var last struct{ Type, Message string }
		return json.Unmarshal([]byte(lastLine(stdout)), &last) == nil && last.Type == "error" &&
			codexWaits.MatchString(last.Message)
	case "gemini": // which of its outputs came last is unknown
		return geminiWaits.MatchString(lastLine(r.Stderr)) && !geminiWorks.MatchString(stdout)
	}
	return false
}

// lastLine returns the last line without those of a stack trace.
func lastLine(text string) string {
	for _, line := range slices.Backward(strings.Split(text, "\n")) {
		if line != "" && !strings.HasPrefix(line, "    at ") {
			return line
		}
	}
	return ""
}
