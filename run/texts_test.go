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

// TestTextsOfEvents compares what people read about every kind of event with testdata/every-kind.txt, and in the words
// of stages with every-kind-stages.txt: log lines, decisions, headline and story. Run directories hold the log, so a
// change of it is a change of the format.
func TestTextsOfEvents(t *testing.T) {
	compareTexts(t, "every-kind.txt", strings.NewReplacer())
	compareTexts(t, "every-kind-stages.txt", strings.NewReplacer(
		`"kind":"repeat"}],`, `"kind":"repeat","rounds":2}],"wording":"stages",`,
		`"phase_key":"audit/1"`, `"phase_key":"audit"`,
		`"count":3`, `"count":2`))
}

func compareTexts(t *testing.T, name string, words *strings.Replacer) {
	t.Helper()
	stream, err := os.ReadFile("testdata/every-kind.jsonl")
	require.NoError(t, err)
	var out strings.Builder
	var s run.State
	threshold := 3.5
	for line := range strings.Lines(string(stream)) {
		e, err := run.ParseEvent([]byte(words.Replace(line)))
		require.NoError(t, err)
		before := s
		entry := run.Entry{Event: e, Before: &before, MaxRounds: 2, Threshold: &threshold, Backup: "backup.html"}
		s = run.Apply(s, e)
		entry.After = &s
		writeTexts(t, &out, entry)
	}
	golden(t, name, out.String())
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

func TestUnknownCostIsNamedOnce(t *testing.T) {
	end := run.PassEnd{Pass: run.Pass{Role: "writer"}, Outcome: run.CategoryOK, Validation: run.Validation{Passed: true},
		DurationMS: 1000, Spend: run.Spend{Known: run.CostUnknown}}
	after := run.State{Spent: run.Totals{Unknown: 1}}
	e := event(t, run.KindPassEnd, "", end)
	require.Equal(t, "  ✓ writer                    1.0s  cost unknown  PASS",
		run.Headline(run.Entry{Event: e, After: &after}))
	after.Spent.USD = 1.5
	require.Equal(t, "  ✓ writer                    1.0s  cost unknown  PASS  ≥ $1.50",
		run.Headline(run.Entry{Event: e, After: &after}))
}
