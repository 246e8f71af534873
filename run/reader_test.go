package run_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// lines writes events as a stream.
func lines(t testing.TB, events []run.Event) []byte {
	t.Helper()
	var out []byte
	for _, e := range events {
		line, err := e.Line()
		require.NoError(t, err)
		out = append(append(out, line...), '\n')
	}
	return out
}

// read is what a stream holds.
type read struct {
	lines, events, size, torn, lastSeq int64
	damage                             []string // line number and error
}

func readAll(t testing.TB, source io.Reader) (*run.Fold, read) {
	t.Helper()
	f, r := run.NewFold(run.State{}, run.History{}), run.NewReader(source, 0)
	var got read
	for line, err := range r.Lines() {
		require.NoError(t, err)
		got.lines, got.size = line.Number, line.End
		if line.Err != nil {
			got.damage = append(got.damage, fmt.Sprint(line.Number, " ", line.Err))
			continue
		}
		got.events, got.lastSeq = got.events+1, max(got.lastSeq, line.Event.Seq)
		f.Apply(line.Event)
	}
	got.torn = int64(len(r.Torn()))
	return f, got
}

func TestReaderNamesWhatIsWrong(t *testing.T) {
	stream := strings.Join([]string{
		`{"seq":1,"kind":"run.start"}`,
		`{"seq":2,"kind":`,
		`[3]`,
		``,
		`null`,
		`{"seq":3,"kind":"phase.start","payload":{"phase_key":"a` + "\u2028" + `b"}}`,
		`{"seq":3,"kind":"x"}`,
		`{"seq":2,"kind":"x"}`,
		`{"kind":"x"}`,
		`{"seq":"4","kind":"x"}`,
		`{"seq":-1,"kind":"x"}`,
		`{"seq":1e2,"kind":"x"}`,
		`{"seq":7,"kind":"x"}` + "\r",
		`{"seq":8,"kind":"run.end","payload":{"status":"done"}}`,
	}, "\n")
	f, got := readAll(t, strings.NewReader(stream))
	require.Equal(t, []string{
		"2 not a JSON object: unexpected end of JSON input",
		"3 not a JSON object: \"[3]\"",
		"4 not a JSON object: \"\"", "5 not a JSON object: \"null\"",
	}, got.damage)
	require.Equal(t, read{lines: 13, events: 9, size: int64(strings.LastIndex(stream, "\n") + 1), torn: 54, lastSeq: 7,
		damage: got.damage}, got)
	require.Equal(t, run.Running, f.State().Status, "what is not terminated does not count")
	require.Equal(t, []string{"a\u2028b"}, f.Snapshot().SeenPhases)

	_, got = readAll(t, strings.NewReader(stream+"\n"))
	require.Zero(t, got.torn)
	require.Equal(t, int64(8), got.lastSeq)
}

// TestReaderInAnyPieces: how the source cuts its bytes makes no difference.
func TestReaderInAnyPieces(t *testing.T) {
	for name, events := range journals(t) {
		stream := append(lines(t, events), `{"torn`...)
		whole, got := readAll(t, bytes.NewReader(stream))
		require.Equal(t, int64(len(events)), got.events, name)
		require.Equal(t, int64(6), got.torn, name)
		for how, source := range map[string]io.Reader{
			"bytes":             iotest.OneByteReader(bytes.NewReader(stream)),
			"halves":            iotest.HalfReader(bytes.NewReader(stream)),
			"data with its end": iotest.DataErrReader(bytes.NewReader(stream)),
		} {
			other, same := readAll(t, source)
			require.Equal(t, got, same, "%s, %s", name, how)
			require.Equal(t, picture(t, whole.State()), picture(t, other.State()), "%s, %s", name, how)
		}
	}
}

// TestTruncation cuts a stream at every byte: what is left folds as its complete lines do.
func TestTruncation(t *testing.T) {
	events := passes(t, 1).events
	events = append(events, run.Event{Seq: int64(len(events) + 1), Kind: "weather.changed",
		Payload: json.RawMessage(`{"wind":" "}`)})
	stream := lines(t, events)
	s := run.State{}
	prefixes := []string{picture(t, s)} // by number of complete lines
	for _, e := range events {
		s = run.Apply(s, e)
		prefixes = append(prefixes, picture(t, s))
	}
	for cut := range len(stream) + 1 {
		f, got := readAll(t, bytes.NewReader(stream[:cut]))
		complete := bytes.Count(stream[:cut], []byte("\n"))
		require.Empty(t, got.damage)
		require.Equal(t, int64(complete), got.lines)
		require.Equal(t, prefixes[complete], picture(t, f.State()), "cut at byte %d", cut)
	}
}

func TestReaderSaysWhatItsSourceSays(t *testing.T) {
	away := errors.New("the disk is away")
	r := run.NewReader(io.MultiReader(strings.NewReader("{\"seq\":1}\n{\"seq\""), iotest.ErrReader(away)), 0)
	line, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, int64(1), line.Event.Seq)
	_, err = r.Next()
	require.ErrorIs(t, err, away)
}

// TestNextReturnsWhatWasWritten, payloads included, as long as the next one is not read.
func TestNextReturnsWhatWasWritten(t *testing.T) {
	events := asked(t)
	r := run.NewReader(bytes.NewReader(lines(t, events)), 0)
	for _, want := range events {
		got, err := r.Next()
		require.NoError(t, err)
		written, err := want.Line()
		require.NoError(t, err)
		require.Equal(t, written, string(got.Bytes))
		read, err := got.Event.Line()
		require.NoError(t, err)
		require.Equal(t, written, read)
	}
	_, err := r.Next()
	require.ErrorIs(t, err, io.EOF)
}

// TestLongLines: 3 MB are read, more than MaxLine is damaged and does not hide the lines behind it.
func TestLongLines(t *testing.T) {
	long := `{"seq":1,"kind":"phase.start","payload":{"phase_key":"` + strings.Repeat("x", 3<<20) + `"}}` + "\n"
	f, got := readAll(t, strings.NewReader(long+`{"seq":2}`+"\n"))
	require.Empty(t, got.damage)
	require.Len(t, f.Snapshot().SeenPhases[0], 3<<20)

	endless := io.MultiReader(strings.NewReader(`{"seq":1,"x":"`), io.LimitReader(exes{}, run.MaxLine+10),
		strings.NewReader("\"}\n{\"seq\":2}\n"))
	_, got = readAll(t, endless)
	require.Equal(t, int64(2), got.lines)
	require.Equal(t, []string{"1 longer than 67108864 bytes"}, got.damage)
	require.Equal(t, int64(run.MaxLine+10+14+3+10), got.size)
	require.Equal(t, int64(2), got.lastSeq)
}

type exes struct{}

func (exes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func oddPayloads() []string {
	return []string{
		`{` + strings.Repeat(`"x":1,`, 63) + `"step":"64th"}`, `{` + strings.Repeat(`"x":1,`, 64) + `"step":"65th"}`,
		`{` + strings.Repeat(`"x":1,`, 62) + `"step":"63rd"}`,
		`null`, `{}`, `7`, `"text"`, `[]`, `[{"step":"1"}]`, ` { "step" : "1" , "role" : "r" } `,
		`{"STEP":"3"}`, `{"ſtep":"1"}`, `{"step":"é"}`, `{"step":"\\u0031"}`, `{"step":"1","step":"2","STEP":"3"}`,
		`{"Step":"3","role":null,"attempt":"x"}`, `{"\u0073tep":"1"}`, `{"ſtep":"1","role":"é","call":"\u00e9\ud800"}`,
		"{\"step\":\"\xff\",\"role\":\"a\u2028b\",\"verdict\":\"\xe2\x80\"}",
		`{"number":1.0,"attempt":1e3,"in_round":9223372036854775808,"duration_ms":-0}`,
		`{"number":999999999999999999999999,"duration_ms":123456789012345678,"retry_in_ms":-5}`,
		`{"judged":1,"modified":"true","last_in_round":null}`,
		`{"spend":{"usd":1e400,"tokens":{"input":1}}}`,
		`{"spend":{"usd":-0.5,"estimated":true},"spend":{"tokens":{"input":4}}}`, `{"spend":null}`, `{"spend":[]}`,
		`{"spend":{"usd":"1"}}`, `{"spend":{"usd":0.25,"tokens":null,"model":"é"}}`,
		`{"outcome":"ok","reply":{"digest":"d","size":1},"reply":{"chars":2}}`,
		`{"outcome":"ok","reply":null,"artifact":{}}`, `{"reply":{"digest":"d"},"reply":null}`,
		`{"validation":{"passed":true,"warnings":["a",7,null,{"b":[1,2]}]}}`,
		`{"validation":{"passed":true,"warnings":null}}`, `{"validation":{"warnings":{}}}`,
		`{"validation":{"warnings":[ ]}}`, `{"validation":{"warnings":[[1,"]"],"x"]}}`,
		`{"next":{"stage":1,"round":2,"step":3},"next":{"step":4}}`, `{"next":null}`, `{"next":7}`,
		`{"artifact":{"digest":"d","size":1.5}}`,
		`{"artifact":null}`, `{"note":"discovery","whole":{"digest":"w","size":3,"chars":2}}`, `{"note":7,"whole":7}`,
		`{"phase_key":"","title":"T"}`,
		`{"phase_key":"k","outcome":" OK ","repeats":true,"round":3}`, `{"score":3.5}`, `{"score":null}`,
		`{"score":"3"}`, `{"score":1,"score":null}`,
		`{"handoff_id":"h1","action":"halt"}`, `{"handoff_id":"h1","available_actions":["a","b"],"approved":false}`,
		`{"handoff_id":"h2","available_actions":[ "a" , "b" ]}`,
		`{"handoff_id":"h1","available_actions":["a",1]}`,
		`{"handoff_id":"h1","available_actions":null,"approved":null}`,
		`{"handoff_id":"h1","artifacts":[{"name":"n"}]}`,
		`{"handoff_id":"h1","action":"continue_with_waiver","feedback":"é\n","implicit":true}`,
		`{"status":"failed","reason":7}`, `{"a":{"b":[{"c":"}]\\\""}]},"step":"z"}`,
	}
}

func oddLines() []string {
	deep := strings.Repeat("[", 9998) + strings.Repeat("]", 9998)
	return []string{
		`{}`, ` { } `, "\ufeff{}", `{"seq":1}x`, `{"seq":1,}`, `{,}`, `{"seq":01}`, `{"seq":-}`, `{"seq":1.}`,
		`{"seq":1e}`, `{"seq":.5}`, `{"seq":+1}`, `{"seq":1e5}`,
		`{"seq":9223372036854775807}`, `{"seq":9223372036854775808}`, `{"seq":1,"seq":2}`, `{"Seq":1}`,
		`{"\u0073eq":3,"kind":"x"}`, `{"seq":null,"ts":null,"kind":null,"phase":null,"payload":null}`,
		`{"phase":7}`, `{"phase":"\u00e9"}`, "{\"phase\":\"a\xffb\"}", "{\"kind\":\"a\tb\"}", `{"kind":"a\qb"}`,
		`{"kind":"\u12G4"}`, `{"kind":"\u12`, `{"kind":"run.end`, `{"kind":tru}`, `{"x":[1,2,]}`,
		`{"x":[1 2]}`, `{"x":{"y" 1}}`, `{"x":{"y":1,}}`, `{"x":nul}`, `{"x":-}`, `{"x":00}`, `{"x":1E+5}`,
		`{"x":"` + "\u2028" + `"}`, `{"x":` + deep + `}`, `{"x":[[` + deep + `]]}`,
		"{\"x\":\"a\tb\"}", "{\"x\":\"1234567\tb\"}", `{"payload":{"step":"1"},"payload":["step","1"]}`,
		`{"kind":"pass.start","payload":{"step":"1"},"payload":7}`,
		`{"kind":"pass.start","payload":{"step":"1"},"payload":{"step":"2"}}`,
		`{"payload":{"step":"1"},"kind":"pass.start","seq":2,"ts":"","phase":""}`,
		`{"seq":1,"ts":"2","kind":"pass.start","payload":{"step":"1"},"payload":null}`,
		`{"seq":1,"ts":"2","kind":"pass.start","payload":{"step":"1"},"payload":[1]}`,
	}
}
