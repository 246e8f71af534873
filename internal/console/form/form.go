// Package form reads the forms of the console's pages: which texts a user has entered, and which request a form is.
//
// A form that is refused shows the entered texts again, whatever the reason, so that no user enters them twice.
package form

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Text is a text that a user has entered.
type Text struct{ Name, Text string }

// names are the fields that users write in, by the order in which they are shown.
var names = []Text{
	{"feedback", "Feedback"}, {"text", "Instruction"}, {"task", "Task"}, {"reason", "Reason"}, {"note", "Note"},
	{"by", "Your name"}, {"config", "Pipeline"}, {"source", "Folder to work on"}, {"directory", "Directory of the run"},
	{"to", "Target"}, {"model", "Model"}, {"budget_usd", "Budget in USD"}, {"usd", "Limit in USD"},
	{"calls", "Limit of calls"}, {"hours", "Limit of hours"},
}

// Texts returns the texts that a user has entered.
func Texts(sent url.Values) []Text {
	var all []Text
	for _, n := range names {
		if text := strings.TrimSpace(sent.Get(n.Name)); text != "" {
			all = append(all, Text{n.Text, text})
		}
	}
	return all
}

// Request returns the id of the request that a form is: the same form with the same content is the same request. It is
// empty for a form that names none.
func Request(action string, sent url.Values) string {
	if sent.Get("request") == "" {
		return ""
	}
	h := sha256.New()
	part := func(text string) {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	part(action)
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if name == "csrf" { // of the session
			continue
		}
		part(name)
		for _, value := range sent[name] {
			part(value)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
