package api

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsOfMessagesExist: every word that begins a command in a message is a verb with a page. Package cli tests
// the other direction: that every verb is such a word.
func TestCommandsOfMessagesExist(t *testing.T) {
	page := func(name string) {
		require.FileExists(t, filepath.Join("..", "..", "docs", "cli", "starter_"+name+".md"))
	}
	for verb := range verbs {
		if verb != "completion" { // of the library
			page(verb)
		}
	}
	for verb, subs := range subverbs {
		require.True(t, isVerb(verb), verb)
		for _, sub := range subs {
			page(verb + "_" + sub)
		}
	}
}
