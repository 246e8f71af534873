package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// maxOpen is the number of running tools and subagents that a parser remembers.
const maxOpen = 1000

// toolNames are the names of running tools by id.
type toolNames map[string]string

func (t *toolNames) start(parent, id, name string, input json.RawMessage) Frame {
	if *t == nil {
		*t = toolNames{}
	}
	if len(*t) < maxOpen {
		(*t)[id] = name
	}
	sum := sha256.Sum256(input)
	return Frame{
		Kind: KindTool, ID: id, Parent: parent, Name: name, State: ToolStarted, Text: inputText(input),
		Digest: hex.EncodeToString(sum[:]),
	}
}

// started reports whether a tool is running.
func (t *toolNames) started(id string) bool {
	_, ok := (*t)[id]
	return ok
}

func (t *toolNames) end(parent, id string, failed bool, result []byte) Frame {
	sum := sha256.Sum256(result)
	f := Frame{Kind: KindTool, ID: id, Parent: parent, Name: (*t)[id], State: ToolOK, Digest: hex.EncodeToString(sum[:])}
	if failed {
		f.State = ToolFailed
	}
	delete(*t, id)
	return f
}

// maxInput is the number of bytes of a tool's input that a frame shows.
const maxInput = 200

// inputText returns what a tool works on in one line: its command, file or pattern, or else all of its input.
func inputText(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) == nil {
		for _, key := range []string{"command", "file_path", "path", "pattern", "url", "query", "description", "prompt"} {
			var value string
			if json.Unmarshal(fields[key], &value) == nil && value != "" {
				return clip([]byte(value), maxInput)
			}
		}
	}
	return clip(input, maxInput)
}
