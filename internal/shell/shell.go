// Package shell writes words so that a POSIX shell reads them back as they are. Every command that a message tells people to type is made with it.
package shell

import (
	"fmt"
	"strings"
)

// plain are the characters that no shell gives a meaning to. A tilde or an equals sign has one at the beginning of a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+=~"

// Quote is a word as it is typed: in single quotes, if it holds anything that the shell would not take as it is.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" && !strings.HasPrefix(word, "~") && !strings.HasPrefix(word, "=") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line is a command: its words, each as it is typed.
func Line(words ...string) string {
	typed := make([]string, len(words))
	for i, w := range words {
		typed[i] = Quote(w)
	}
	return strings.Join(typed, " ")
}

// Sprintf formats a command: the arguments that are strings are words of it. The format is typed as it stands.
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
