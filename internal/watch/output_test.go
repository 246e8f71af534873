package watch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTailRemovesControlCharacters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	for name, row := range map[string]struct {
		output string
		want   []string
	}{
		"lines, without empty ones": {"one\n\n  two\r\nthree", []string{"one", "  two", "three"}},
		"nothing":                   {"", nil},
		"an envelope gives its answer": {`{"type":"result","result":"first\nsecond","usage":{}}`,
			[]string{"first", "second"}},
		"half an envelope is a text": {`{"type":"result","res`, []string{`{"type":"result","res`}},
		"escapes move no cursor": {"\x1b[2J\x1b[31mred\x1b[0m \x07bell \x1b]0;title\x07",
			[]string{"[2J[31mred[0m bell ]0;title"}},
		"an envelope hides none either": {`{"result":"a\u001b[2Jb\u009b2Jc\u202ed"}`, []string{"a[2Jb2Jcd"}},
		"a progress line written over":  {"10%\r20%\r", []string{"10%", "20%"}},
		"no text":                       {"a\xff\xfeb", []string{"a�b"}},
	} {
		require.NoError(t, os.WriteFile(file, []byte(row.output), 0o600))
		got, err := Tail(file)
		require.NoError(t, err, name)
		require.Equal(t, row.want, got, name)
	}
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("a line of an output that is long\n", 10_000)+
		"the end\n"), 0o600))
	got, err := Tail(file)
	require.NoError(t, err)
	require.Equal(t, "the end", got[len(got)-1])
	require.Less(t, len(got), 600, "only the end is read")
}

// TestTailDoesNotWaitForPipe: the agent may have put one in the place of its output.
func TestTailDoesNotWaitForPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	_, err := Tail(file)
	require.EqualError(t, err, "stdout is a named pipe")
}
