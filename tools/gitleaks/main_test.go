package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTableIsThatOfTheRules(t *testing.T) {
	want, err := table()
	require.NoError(t, err)
	have, err := os.ReadFile("../../internal/redact/gitleaks.go")
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run go generate ./internal/redact")
}
