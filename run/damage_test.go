package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestSameDamageWhereTheLineIsNotKnown: digests over all lines change with every line that is added.
func TestSameDamageWhereTheLineIsNotKnown(t *testing.T) {
	whole := run.JournalDamage{File: "events.jsonl", Found: "aa"}
	require.True(t, whole.Same(run.JournalDamage{File: "events.jsonl", Found: "bb"}))
	require.False(t, whole.Same(run.JournalDamage{File: "events.jsonl", Line: 3, Found: "aa"}))
	line := run.JournalDamage{File: "events.jsonl", Line: 3, Found: "aa"}
	require.False(t, line.Same(run.JournalDamage{File: "events.jsonl", Line: 3, Found: "bb"}))
	segment := run.JournalDamage{File: run.SegmentFile + "ff", Found: "damaged"}
	require.False(t, segment.Same(run.JournalDamage{File: run.SegmentFile + "ff", Found: run.Missing}))
}
