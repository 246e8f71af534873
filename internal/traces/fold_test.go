package traces

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "write the golden files")

// eventsIn reads a stream of package run.
func eventsIn(t *testing.T, name string) (events []run.Event) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "run", "testdata", name))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		e := journal.ParseAny(strings.TrimSuffix(line, "\n"))
		e.Seq = int64(len(events) + 1)
		events = append(events, e)
	}
	return events
}

// drawn writes spans as a tree.
func drawn(spans []*Span) string {
	inside := map[string][]*Span{}
	for _, s := range spans {
		inside[string(s.ParentSpanId)] = append(inside[string(s.ParentSpanId)], s)
	}
	var b strings.Builder
	var draw func(up, indent string)
	draw = func(up, indent string) {
		all := inside[up]
		slices.SortStableFunc(all, func(a, b *Span) int {
			return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano))
		})
		for _, s := range all {
			fmt.Fprintf(&b, "%s%s %dms", indent, s.Name, (s.EndTimeUnixNano-s.StartTimeUnixNano)/1e6)
			for _, a := range s.Attributes {
				if v := a.GetValue().GetStringValue(); v != "" && a.Key != "passbook.run.id" {
					fmt.Fprintf(&b, " %s=%q", strings.TrimPrefix(a.Key, "passbook."), v)
				}
			}
			if s.Status != nil {
				fmt.Fprintf(&b, " ERROR %s", s.Status.Message)
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, "\n%s  * %s", indent, e.Name)
			}
			b.WriteString("\n")
			draw(string(s.SpanId), indent+"  ")
		}
	}
	draw("", "")
	return b.String()
}

func spansOf(f *Fold, events []run.Event) (all []*Span) {
	for _, e := range events {
		all = append(all, f.Add(e)...)
	}
	return all
}

// TestSpansOfEveryKind draws the trace of a stream with every kind of event.
func TestSpansOfEveryKind(t *testing.T) {
	for _, name := range []string{"every-kind", "another-program-done"} {
		t.Run(name, func(t *testing.T) {
			got := drawn(spansOf(NewFold("run-1"), eventsIn(t, name+".jsonl")))
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// TestRestartedWorkerMakesTheSameSpans: a fold of the earlier lines continues like the one that made their spans.
func TestRestartedWorkerMakesTheSameSpans(t *testing.T) {
	events := eventsIn(t, "every-kind.jsonl")
	var made [][]*Span
	f := NewFold("run-1")
	for _, e := range events {
		made = append(made, f.Add(e))
	}
	for cut := range events {
		again := NewFold("run-1")
		spansOf(again, events[:cut])
		want, got := slices.Concat(made[cut:]...), spansOf(again, events[cut:])
		require.Len(t, got, len(want))
		for i := range got {
			require.True(t, proto.Equal(want[i], got[i]), "%v\n%v", want[i], got[i])
		}
	}
}

// TestEventsInAnyOrderAreATrace: whatever a stream contains, ids are unique, and a parent exists or has not ended.
func TestEventsInAnyOrderAreATrace(t *testing.T) {
	events := eventsIn(t, "every-kind.jsonl")
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		mixed := slices.Clone(events)
		rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		for i := range mixed {
			mixed[i].Seq = int64(i + 1)
		}
		f := NewFold("run-1")
		all := spansOf(f, mixed)
		f.ended = nil
		f.finish(run.Failed, "")
		all = append(all, f.ended...)
		require.Zero(t, f.Open())
		ids := map[string]bool{}
		for _, s := range all {
			require.False(t, ids[string(s.SpanId)], "%s has the id of another span", s.Name)
			ids[string(s.SpanId)] = true
			require.Len(t, s.SpanId, 8)
			require.Equal(t, ID("run-1"), hex.EncodeToString(s.TraceId))
			require.GreaterOrEqual(t, s.EndTimeUnixNano, s.StartTimeUnixNano)
		}
		for _, s := range all {
			require.True(t, len(s.ParentSpanId) == 0 || ids[string(s.ParentSpanId)], "%s has no parent", s.Name)
		}
	}
}

// TestCallsHaveTheirAttributes: names and values are those of the semantic conventions.
func TestCallsHaveTheirAttributes(t *testing.T) {
	f := NewFold("r")
	payload := func(v any) []byte {
		raw, err := run.Payload(v)
		require.NoError(t, err)
		return raw
	}
	phase := "build"
	all := spansOf(f, []run.Event{
		{Seq: 1, Kind: run.KindRunStart, Payload: payload(run.RunStart{RunID: "r", Pipeline: "p"})},
		{Seq: 2, Kind: run.KindPassStart, Phase: &phase, Payload: payload(run.PassStart{
			Pass: run.Pass{Step: "s", Role: "worker"}, Call: "r/g0.s.1.-.2", Attempt: 2, Agent: "claude -p"})},
		{Seq: 3, Kind: run.KindPassEnd, Phase: &phase, Payload: payload(run.PassEnd{
			Pass: run.Pass{Step: "s", Role: "worker"}, Call: "r/g0.s.1.-.2", Outcome: run.CategoryOK,
			Spend: run.Spend{Tokens: run.Tokens{Input: 1, CacheRead: 10, CacheWrite: 100, Output: 7}, USD: 0.5, Model: "m"},
			Tools: &run.ToolUses{Count: 3, First: []run.ToolUse{{Name: "Bash", State: "failed"}, {Name: "Read"}}}})},
	})
	i := slices.IndexFunc(all, func(s *Span) bool { return s.Name == "invoke_agent worker" })
	require.Positive(t, i)
	call := all[i]
	require.Equal(t, "00-"+ID("r")+"-"+hex.EncodeToString(call.SpanId)+"-01", Parent("r", "r/g0.s.1.-.2", 2),
		"the agent of the call gets it before there are events")
	require.NotEqual(t, Parent("r", "r/g0.s.1.-.2", 1), Parent("r", "r/g0.s.1.-.2", 2))
	has := map[string]string{}
	for _, a := range call.Attributes {
		has[a.Key] = strings.ReplaceAll(a.Value.String(), "  ", " ")
	}
	for key, want := range map[string]string{
		"gen_ai.operation.name": `string_value:"invoke_agent"`, "gen_ai.provider.name": `string_value:"anthropic"`,
		"gen_ai.response.model": `string_value:"m"`, "gen_ai.usage.input_tokens": "int_value:111",
		"gen_ai.usage.output_tokens": "int_value:7", "gen_ai.usage.cache_read.input_tokens": "int_value:10",
		"passbook.cost.usd": "double_value:0.5", "passbook.tools.count": "int_value:3",
	} {
		require.Equal(t, want, has[key], key)
	}
	tools := 0
	for _, s := range all {
		if bytes.Equal(s.ParentSpanId, call.SpanId) {
			tools++
			require.Equal(t, s.Name == "execute_tool Bash",
				s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR)
		}
	}
	require.Equal(t, 2, tools)
	require.Equal(t, 3, f.Open(), "the run, its stage and its round")
}
