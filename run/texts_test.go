package run_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestTextsOfEvents compares what people read about every kind of event with testdata/every-kind.txt: log lines,
// decisions, headline and story. Run directories hold the log, so a change of it is a change of the format.
func TestTextsOfEvents(t *testing.T) {
	stream, err := os.ReadFile("testdata/every-kind.jsonl")
	require.NoError(t, err)
	var out strings.Builder
	var s run.State
	threshold := 3.5
	for line := range strings.Lines(string(stream)) {
		e, err := run.ParseEvent([]byte(line))
		require.NoError(t, err)
		before := s
		entry := run.Entry{Event: e, Before: &before, MaxRounds: 2, Threshold: &threshold, Backup: "backup.html"}
		s = run.Apply(s, e)
		entry.After = &s
		writeTexts(t, &out, entry)
	}
	const golden = "testdata/every-kind.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func writeTexts(t *testing.T, out *strings.Builder, e run.Entry) {
	fmt.Fprintf(out, "%d %s\n", e.Seq, e.Kind)
	output := run.LogOf(e)
	for _, n := range output.Lines {
		fmt.Fprintf(out, "  log      [%s] %s\n", n.Level, run.OneLine(n.Text))
	}
	for _, d := range output.Decisions {
		raw, err := run.Payload(d)
		require.NoError(t, err)
		fmt.Fprintf(out, "  decision %s\n", raw)
	}
	if text := run.Headline(e); text != "" {
		fmt.Fprintf(out, "  headline %s\n", run.OneLine(text))
	}
	if s := run.StoryOf(e); s.What != "" {
		fmt.Fprintf(out, "  story    %s, by %q, note %q\n", s.What, s.By, s.Note)
	}
}

// TestSamplesHoldEveryKind: a kind without a sample would have no golden text.
func TestSamplesHoldEveryKind(t *testing.T) {
	stream, err := os.ReadFile("testdata/every-kind.jsonl")
	require.NoError(t, err)
	for _, k := range run.Kinds() {
		require.True(t, bytes.Contains(stream, fmt.Appendf(nil, `"kind":%q`, k)), "testdata/every-kind.jsonl has no %s",
			k)
	}
}
