package run_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestQuestionsKeepTheirPayloads: what asks and answers is written as it was read, to the byte.
func TestQuestionsKeepTheirPayloads(t *testing.T) {
	seen := map[run.QuestionKind]int{}
	raw, err := os.ReadFile(filepath.Join("testdata", "questions.jsonl"))
	require.NoError(t, err)
	for line := range bytes.Lines(raw) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		e, err := run.ParseEvent(line)
		require.NoError(t, err)
		var payload any
		if q, asks := e.Question(); asks {
			payload = q
			seen[q.Kind]++
		} else if d, answers := e.Decision(); answers {
			payload = d
			seen[d.Kind]++
		} else {
			continue
		}
		e.Payload, err = run.Payload(payload)
		require.NoError(t, err)
		again, err := e.Line()
		require.NoError(t, err)
		require.Equal(t, string(line), again)
	}
	require.Len(t, seen, 4)
}
