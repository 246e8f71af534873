package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// callLog counts calls outside any run directory, for tests: one line in one write, so lines of parallel calls do
// not mix.
type callLog struct {
	file string
	at   string
}

type callLine struct {
	Event        string `json:"event"` // start or answered
	At           string `json:"at"`
	PID          int    `json:"pid"`
	Dir          string `json:"dir"`
	PromptSHA256 string `json:"prompt_sha256"`
	ReplySHA256  string `json:"reply_sha256,omitempty"` // of the reply's text, when answered
}

func (l callLog) started(prompt string) error {
	return l.write(callLine{Event: "start", PromptSHA256: digest(prompt)})
}

func (l callLog) answered(prompt, reply string) error {
	return l.write(callLine{Event: "answered", PromptSHA256: digest(prompt), ReplySHA256: digest(reply)})
}

func (l callLog) write(line callLine) (err error) {
	if l.file == "" {
		return nil
	}
	line.At, line.PID = l.at, os.Getpid()
	if line.Dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("write call log: %w", err)
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("write call log: %w", err)
	}
	return appendLine(l.file, string(text))
}

// appendLine adds one line with a single write.
func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
