// Package shell quotes words for a POSIX shell. All commands in messages are built with it.
package shell

import (
	"fmt"
	"strings"
)

// plain are the characters without a meaning in shells. A tilde or equals sign has one at the beginning of a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+=~"

// Quote quotes a word in single quotes if necessary.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" && !strings.HasPrefix(word, "~") && !strings.HasPrefix(word, "=") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line quotes the words of a command.
func Line(words ...string) string {
	typed := make([]string, len(words))
	for i, w := range words {
		typed[i] = Quote(w)
	}
	return strings.Join(typed, " ")
}

// Sprintf formats a command: string arguments are quoted, the format is not.
func Sprintf(format string, args ...any) string {
	typed := make([]any, len(args))
	for i, a := range args {
		if word, ok := a.(string); ok {
			a = Quote(word)
		}
		typed[i] = a
	}
	return fmt.Sprintf(format, typed...)
}
