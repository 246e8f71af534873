package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlankCodeKeepsTextInPlace(t *testing.T) {
	source := strings.Join([]string{
		"// Package p does one thing.",
		"package p",
		`import "a b/c"`,
		"type t struct { F int `json:\"two words\"` } /* and more */",
		`const message = "two\nwords"; const key = "word"`,
		"var raw = `über two", "lines`", "",
	}, "\n")
	got, err := blankCode("p.go", []byte(source))
	require.NoError(t, err)
	require.Len(t, got, len(source))
	want := []string{
		"   Package p does one thing.",
		"", "",
		"                                              and more */",
		`                "two  words"`,
		"           über two", "lines", "",
	}
	for i, line := range strings.Split(string(got), "\n") {
		require.Equal(t, want[i], strings.TrimRight(line, " "), "line %d", i+1)
	}
}
