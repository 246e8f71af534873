package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
)

func TestEnvelopeHasOneObjectPerLine(t *testing.T) {
	const answer = `{"type":"result","num_turns":3,"session_id":"s-1","permission_denials":[{"tool_name":"Bash"}]}`
	for _, row := range []struct{ name, kind, stdout, want string }{
		{"as it comes", adapter.ClaudeJSON, answer + "\n", answer + "\n"},
		{
			"pretty-printed", adapter.ClaudeJSON, "{\n  \"type\": \"result\",\n  \"result\": \"<a> & b\"\n}\n",
			`{"type":"result","result":"<a> & b"}` + "\n",
		},
		{
			"numbers and order stay", adapter.ClaudeJSON, `{"z": 1.50, "a": 12345678901234567890}`,
			`{"z":1.50,"a":12345678901234567890}` + "\n",
		},
		{
			"an array of messages", adapter.ClaudeJSON, `[{"type":"system"},` + answer + `, 7]`,
			`{"type":"system"}` + "\n" + answer + "\n",
		},
		{
			"words before, between and behind", adapter.ClaudeJSON, "warning: {x}\n{\"a\":1}\nand\n" + answer + "\nbye",
			`{"a":1}` + "\n" + answer + "\n",
		},
		{"cut off", adapter.ClaudeJSON, `{"a":1}` + "\n" + `{"type":"result","result":"half`, `{"a":1}` + "\n"},
		{"no UTF-8", adapter.ClaudeJSON, "{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}\n"},
		{"nothing", adapter.ClaudeJSON, "", ""},
		{"no object", adapter.ClaudeJSON, "7\n\"text\"\n[1]\n", ""},
		{"text", adapter.Text, answer, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, string(Envelope(row.kind, []byte(row.stdout),
				func(s string) string { return s })))
		})
	}
}

func TestEnvelopeIsRedacted(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, `open/"sesame"`, "<hidden>") }
	got := Envelope(adapter.ClaudeJSON, []byte(`{"a":"say open\/\"sesame\" and \u00fc","b":"x\ny"}`), hide)
	require.Equal(t, `{"a":"say <hidden> and ü","b":"x\ny"}`+"\n", string(got), "also where JSON writes it another way")

	broken := Envelope(adapter.ClaudeJSON, []byte(`{"key":"sesame","n":1}`),
		func(text string) string { return strings.ReplaceAll(text, `:"sesame"`, "<hidden>") })
	require.Equal(t, `{"subtype":"text","text":"{\"key\"<hidden>,\"n\":1}","type":"passbook"}`+"\n", string(broken),
		"every line is an object, and nothing is shown that was hidden")
}

func TestLargeEnvelopeIsTruncated(t *testing.T) {
	asIs := func(s string) string { return s }
	long := strings.Repeat("ü\n", maxEnvelope/4)
	raw, err := json.Marshal(map[string]any{"result": long, "session_id": "s-1"})
	require.NoError(t, err)
	got := Envelope(adapter.ClaudeJSON, raw, asIs)
	require.Less(t, len(got), maxEnvelope)
	var e map[string]string
	require.NoError(t, json.Unmarshal(got, &e))
	require.Equal(t, "s-1", e["session_id"])
	require.Contains(t, e["result"], fmt.Sprintf("… [passbook: %d more bytes left out]", len(long)-maxText+1))

	many := strings.Repeat(`{"type":"assistant","text":"`+strings.Repeat("x", maxEnvelope/150)+`"}`+"\n", 300)
	got = Envelope(adapter.ClaudeJSON, []byte(many+`{"type":"result"}`), asIs)
	require.LessOrEqual(t, len(got), maxEnvelope+200)
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	require.Equal(t, `{"type":"result"}`, lines[len(lines)-1])
	var out omission
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &out))
	require.Equal(t, "passbook", out.Type)
	require.Equal(t, "left_out", out.Subtype)
	require.Equal(t, 301, out.Lines+len(lines)-1)

	words := `{"list":[` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, maxEnvelope/1000) + `"x"]}`
	require.Equal(t, fmt.Sprintf(`{"type":"passbook","subtype":"left_out","lines":1,"bytes":%d}`+"\n", len(words)),
		string(Envelope(adapter.ClaudeJSON, []byte(words), asIs)))
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"a":"b\""} x [{"c":1}]`))
	f.Fuzz(func(t *testing.T, stdout []byte) {
		for line := range strings.Lines(string(Envelope(adapter.ClaudeJSON, stdout, strings.ToUpper))) {
			var o map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &o), line)
		}
	})
}
