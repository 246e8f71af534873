package run_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestLine(t *testing.T) {
	raw, err := run.Payload(run.RunPaused{Reason: "<a & b>", Detail: "one\u2028two\nthree"})
	require.NoError(t, err)
	line, err := run.Event{Seq: 7, TS: moment(1), Kind: run.KindRunPaused, Payload: raw}.Line()
	require.NoError(t, err)
	require.Equal(t, `{"seq":7,"ts":"2026-01-02T03:04:06.000Z","kind":"run.paused","phase":null,`+
		`"payload":{"reason":"<a & b>","detail":"one\u2028two\nthree"}}`, line)

	back, err := run.ParseEvent([]byte(line))
	require.NoError(t, err)
	again, err := back.Line()
	require.NoError(t, err)
	require.Equal(t, line, again)
}

func TestParseEvent(t *testing.T) {
	for _, bad := range []string{"", "null", "7", `"text"`, `[]`, `{"seq":1`, "{} {}"} {
		_, err := run.ParseEvent([]byte(bad))
		require.ErrorContains(t, err, "not a JSON object", bad)
	}
	e, err := run.ParseEvent(
		[]byte(`{"seq":"one","ts":3,"kind":"run.end","phase":{},"payload":{"status":"done","reason":[],"by":"me"}}`),
	)
	require.NoError(t, err)
	require.Equal(t, int64(0), e.Seq)
	require.Equal(t, run.KindRunEnd, e.Kind)
	var p run.RunEnd
	e.Decode(&p)
	require.Equal(t, run.RunEnd{Status: run.Done, By: "me"}, p, "what fits is read, what does not stays empty")
}

func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("east", 3600))
	require.Equal(t, "2026-01-02T02:04:05.000Z", run.Time(at))
}

func TestChain(t *testing.T) {
	// sha256 of "\none", then of that in hex, a line feed and "two", from sha256sum.
	one := run.Chain("").Then("one")
	require.Equal(t, run.Chain("22de334899ce484a42aecba50558206434927b6a4a6dac9ff76b170683defd82"), one)
	require.Equal(t, one.Then("two"), run.Chain("").Over([]string{"one", "two"}))
	require.NotEqual(t, run.Chain("").Over([]string{"two", "one"}), run.Chain("").Over([]string{"one", "two"}))
	require.Equal(t, one, one.Over(nil))
}

func TestCents(t *testing.T) {
	require.InDelta(t, 0.3, run.Cents(0.1+0.2), 0)
	require.InDelta(t, -0.3, run.Cents(-0.1-0.2), 0)
	require.InDelta(t, 3.42794175, run.Cents(3.42794175), 0)
	for _, huge := range []float64{math.MaxFloat64, -math.MaxFloat64, math.Inf(1)} {
		_, err := json.Marshal(run.Cents(huge))
		require.NoError(t, err)
	}
	var total run.Totals
	for range 3 {
		total.Add(run.Spend{USD: math.MaxFloat64, Estimated: true})
	}
	_, err := json.Marshal(total)
	require.NoError(t, err, "a sum must stay what JSON can carry")
}

// FuzzParseEvent compares each fast path with encoding/json: the event of a line, and its fold.
func FuzzParseEvent(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := run.ParseEvent(line)
		if err != nil {
			return
		}
		text, err := e.Line()
		require.NoError(t, err)
		require.False(t, strings.Contains(text, "\n"))
		again, err := run.ParseEvent([]byte(text))
		require.NoError(t, err)
		require.Equal(t, e.Seq, again.Seq)
		require.Equal(t, e.Kind, again.Kind)
	})
}

// FuzzApply folds any line over states of every status: no panic, and a state that can be carried.
func FuzzApply(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := run.ParseEvent(line)
		if err != nil {
			return
		}
		for _, status := range append(statuses(), "") {
			s := running(t)
			s.Status = status
			before := picture(t, s)
			after := run.Apply(run.Apply(s, e), e)
			require.Equal(t, before, picture(t, s))
			require.Equal(t, picture(t, after), picture(t, carried(t, after)))
		}
	})
}

// FuzzFold folds any stream, as a whole and cut in two and taken through JSON: no panic, and the same in the end.
func FuzzFold(f *testing.F) {
	for _, events := range journals(f) {
		stream := lines(f, events)
		f.Add(stream, len(stream)/2)
	}
	f.Add([]byte(strings.Join(oddLines(), "\n")), 100)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		whole, got := readAll(t, bytes.NewReader(stream))
		require.Equal(t, int64(len(stream)), got.size+got.torn)
		require.Equal(t, int64(bytes.Count(stream, []byte("\n"))), got.lines)
		require.Equal(t, got.lines, got.events+int64(len(got.damage)))

		cut = bytes.LastIndexByte(stream[:max(0, min(cut, len(stream)))], '\n') + 1
		half, _ := readAll(t, bytes.NewReader(stream[:cut]))
		rest := run.NewFold(carried(t, half.State()), throughJSON(t, half.History()))
		for line, err := range run.NewReader(bytes.NewReader(stream[cut:]), int64(cut)).Lines() {
			require.NoError(t, err)
			if line.Err == nil {
				rest.Apply(line.Event)
			}
		}
		require.Equal(t, picture(t, carried(t, whole.State())), picture(t, carried(t, rest.State())))
		require.Equal(t, whole.Snapshot(), rest.Snapshot())

		s := run.State{}
		for line, err := range run.NewReader(bytes.NewReader(stream), 0).Lines() {
			require.NoError(t, err)
			if line.Err == nil {
				s = run.Apply(s, line.Event)
			}
		}
		require.Equal(t, picture(t, whole.State()), picture(t, s))
	})
}

func seed(f *testing.F) {
	f.Helper()
	for _, events := range journals(f) {
		for _, e := range events {
			line, err := e.Line()
			require.NoError(f, err)
			f.Add([]byte(line))
		}
	}
	for _, odd := range []string{`{}`, `{"kind":"pass.end","payload":7}`, `{"kind":"run.end","payload":null}`,
		`{"kind":"run.reverted","payload":{"state":{}}}`,
		`{"kind":"pass.end","payload":{"spend":{"usd":1e308}}}`,
		`{"seq":-9223372036854775808,"kind":"phase.start","phase":"\u0000"}`} {
		f.Add([]byte(odd))
	}
	for i, payload := range oddPayloads() {
		kinds := run.Kinds()
		f.Add([]byte(`{"seq":2,"kind":"` + string(kinds[i%len(kinds)]) + `","payload":` + payload + `}`))
	}
}
