package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/run"
)

// Conversation is what the file of a session records. All of it is untrusted: an agent may have written the file.
type Conversation struct {
	Program  string
	ID       string
	Folder   string // in which it was held; empty: not recorded
	First    string // the first message of the user, without control characters
	Last     string // the last text of either side, likewise
	Began    time.Time
	At       time.Time // of its last entry
	Ended    run.Ending
	Limit    limits.Limit // that ended it, if it has a cause
	Usage    []adapter.ModelUsage
	USD      float64 // what the program recorded itself, besides Usage
	Unknown  bool    // USD is a part of what was spent
	Entries  int
	Damaged  int // lines that are no entries
	observed time.Time
}

const (
	maxFirst = 8 << 10 // bytes of the first message
	maxLast  = 400
)

// entries reads a conversation line by line.
type entries interface {
	// add takes an entry over. It reports whether the line is one.
	add(line []byte) bool
	// end completes the conversation.
	end()
}

// readConversation reads the lines of a file. It tolerates lines that it does not know, and counts those that are
// damaged.
func (p Program) readConversation(id string, data []byte) Conversation {
	c := &Conversation{Program: p.Name, ID: id}
	e := p.entries(c)
	for line := range bytes.Lines(data) {
		c.take(e, line)
	}
	e.end()
	return *c
}

func (p Program) entries(c *Conversation) entries {
	if p.Name == "codex" {
		return &codexEntries{Conversation: c, calls: map[string]bool{}}
	}
	return &claudeEntries{Conversation: c, calls: map[string]bool{}, usage: &Usage{}, messages: map[string]adapter.ModelUsage{}}
}

func (c *Conversation) take(e entries, line []byte) (taken bool) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return true
	}
	if taken = line[0] == '{' && e.add(line); taken {
		c.Entries++
	} else {
		c.Damaged++
	}
	return taken
}

// decodes reads an entry. A value of another type than expected is left out.
func decodes(line []byte, row any) bool {
	err := json.Unmarshal(line, row)
	return err == nil || errors.As(err, new(*json.UnmarshalTypeError))
}

func (c *Conversation) at(stamp string) {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return
	}
	if c.observed = at.UTC(); c.Began.IsZero() {
		c.Began = c.observed
	}
	if c.observed.After(c.At) {
		c.At = c.observed
	}
}

// addText takes a text of the user or of the agent over.
func (c *Conversation) addText(text string, user bool) {
	if text = Plain(text); text == "" {
		return
	}
	if user && c.First == "" {
		c.First = cut(text, maxFirst)
	}
	c.Last = cut(run.OneLine(text), maxLast)
}

// fails takes an error of the agent over.
func (c *Conversation) fails(report limits.Report) {
	c.Ended, c.Limit = run.EndedByError, report.Limit(c.observed, time.Local)
	if c.Limit.Kind.Passes() {
		c.Ended = run.EndedByLimit
	}
}

// continues takes over that the conversation continued after an error.
func (c *Conversation) continues(e run.Ending) { c.Ended, c.Limit = e, limits.Limit{} }

// Plain returns a text without control characters and those that change the direction of others. Line feeds stay.
func Plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(text)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
