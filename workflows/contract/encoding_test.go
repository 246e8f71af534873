package contract

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinesStayAsTheyAre: a line of a batch has the same bytes after Temporal has stored it, whatever it contains.
func TestLinesStayAsTheyAre(t *testing.T) {
	for _, line := range []string{
		`{"seq":1,"payload":{"a":"ä \u2028 \u003c"}}`, `{"seq":1,"a":"<b> & c"}`, "{\"a\":\"\u2028\"}", `{"seq": 1}`,
		`{"a":1} `, `{"a":`, `[1]`, `"text"`, `text`, ``, `{"n":1e400,"m":1.0,"n":2}`,
	} {
		raw, err := json.Marshal(ProjectInput{Lines: Lines{line, `{"b":2}`}})
		require.NoError(t, err)
		var got ProjectInput
		require.NoError(t, json.Unmarshal(raw, &got))
		require.Equal(t, Lines{line, `{"b":2}`}, got.Lines, string(raw))
	}
	raw, err := json.Marshal(Lines{`{"a":1}`, `{"a":"<"}`})
	require.NoError(t, err)
	require.Equal(t, `[{"a":1},"{\"a\":\"\u003c\"}"]`, string(raw))
	var got Lines
	require.NoError(t, json.Unmarshal([]byte(`["{\"a\":1}"]`), &got), "of an earlier release")
	require.Equal(t, Lines{`{"a":1}`}, got)
	require.Error(t, json.Unmarshal([]byte(`{"a":1}`), &got))
	require.Error(t, json.Unmarshal([]byte(`[1, 2`), &got))
}
