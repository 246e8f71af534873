package scripted

import (
	"encoding/json"
	"fmt"
	"os"
)

// callLog counts calls outside any run directory, for tests: one line in one write, so lines of parallel calls do not mix.
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
}

func (l callLog) write(event, prompt string) error {
	if l.file == "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("write call log: %w", err)
	}
	line, err := json.Marshal(callLine{Event: event, At: l.at, PID: os.Getpid(), Dir: dir, PromptSHA256: digest(prompt)})
	if err != nil {
		return fmt.Errorf("write call log: %w", err)
	}
	return appendLine(l.file, string(line))
}

// appendLine adds one line with a single write.
func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
