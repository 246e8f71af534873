package adapter

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// readIn reads an output in chunks of a size.
func readIn(a Adapter, stdout string, size int) (*Summary, []Frame) {
	var frames []Frame
	p := a.New()
	for chunk := range slices.Chunk([]byte(stdout), size) {
		frames = append(frames, p.Parse(chunk)...)
	}
	frames = append(frames, p.End()...)
	var s Summary
	s.Add(frames...)
	return &s, frames
}

func find(t *testing.T, name string) Adapter {
	t.Helper()
	a, ok := Find(name)
	require.True(t, ok, name)
	return a
}

// want is what a summary must contain.
type want struct {
	status  Status
	code    string
	text    string
	err     string
	session string
	model   string
	turns   int
	tokens  run.Tokens
	usd     float64
	known   run.CostKnown
	warned  int
}

func summaryOf(s *Summary) want {
	u, known := s.Usage()
	return want{
		s.Status, s.Code, s.Text(), s.Error, s.Session, s.Model(), s.Turns, u.Tokens, ModelUsage{Usage: u}.dollars(), known,
		s.Warned,
	}
}

type outputCase struct {
	name   string
	stdout string
	want   want
}

// testCases reads each output at once and byte by byte.
func testCases(t *testing.T, name string, cases []outputCase) {
	t.Helper()
	a := find(t, name)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			whole, frames := readIn(a, c.stdout, chunkSize)
			require.Equal(t, c.want, summaryOf(whole))
			bytewise, _ := readIn(a, c.stdout, 1)
			require.Equal(t, c.want, summaryOf(bytewise))
			for _, f := range frames {
				require.True(t, utf8.ValidString(f.Text))
				raw, err := json.Marshal(f)
				require.NoError(t, err)
				require.NotContains(t, string(raw), "\n")
			}
		})
	}
}

// testPrefixes requires that no beginning of an output is a complete answer before the byte at which it ends.
func testPrefixes(t *testing.T, name, stdout string) {
	t.Helper()
	a, whole := find(t, name), strings.TrimRight(stdout, "\n")
	s, _ := readIn(a, whole, chunkSize)
	require.Equal(t, StatusComplete, s.Status)
	for n := range whole {
		s, _ := readIn(a, whole[:n], chunkSize)
		require.NotEqual(t, StatusComplete, s.Status, "cut at %d", n)
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Table() {
		require.False(t, seen[a.Name], a.Name)
		seen[a.Name] = true
		require.NotNil(t, a.New)
		require.Equal(t, a.Program == "", a.Resume == nil, a.Name)
	}
	_, ok := Find("xml")
	require.False(t, ok)
}

func TestText(t *testing.T) {
	testCases(t, Text, []outputCase{
		{"text", "Grüße\n€ 5", want{text: "Grüße\n€ 5", known: run.CostUnknown}},
		{"nothing", "", want{known: run.CostUnknown}},
		{"ends within a character", "a\xe2\x82", want{text: "a\uFFFD", known: run.CostUnknown}},
	})
	s, _ := readIn(find(t, Text), "a\xff\xfeb", 4)
	require.Equal(t, "a\uFFFDb", s.Text())
}

// TestLongOutputIsReadInBoundedMemory: the buffer holds one event, or the beginning of a line.
func TestLongOutputIsReadInBoundedMemory(t *testing.T) {
	event := `{"type":"user","message":{"content":[{"type":"tool_result","content":"` + strings.Repeat("x", 1<<18) +
		`"}]}}` + "\n"
	for name, row := range map[string]struct {
		unit     string
		bound    int
		warnings int // at the end
	}{
		"events": {event, 2 * len(event), 0},
		"lines":  {strings.Repeat("no JSON\n", 1<<15), 2 * maxLine, 1},
		"a line": {strings.Repeat("no JSON ", 1<<15), 2 * maxLine, 1},
	} {
		p := newClaudeStream().(*lines)
		for range 8 {
			for _, f := range p.Parse([]byte(row.unit)) {
				require.Less(t, len(f.Text), 2*maxLine, name)
			}
			require.LessOrEqual(t, cap(p.split.buf), row.bound, name)
		}
		require.Len(t, p.End(), row.warnings, name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(claudeAnswer), uint16(7))
	f.Add([]byte("["+claudeInit+","+claudeAnswer+"]"), uint16(1))
	f.Add([]byte(lineOf(claudeInit, claudeStart, claudeDelta, claudeEnd, claudeToolOK)), uint16(64))
	f.Add([]byte(lineOf(codexStart, codexCommand, codexFailed, codexAnswer, codexEnd)), uint16(5))
	f.Add([]byte(lineOf(geminiInit, geminiTool, geminiToolBad, geminiHello, geminiEnd)), uint16(9))
	f.Add([]byte("{\"a\":\"\xff\"}\n[\n{\"b\n"), uint16(3))
	f.Fuzz(func(t *testing.T, stdout []byte, size uint16) {
		for _, a := range Table() {
			whole, frames := readIn(a, string(stdout), len(stdout)+1)
			parts, _ := readIn(a, string(stdout), int(size)+1)
			require.Equal(t, summaryOf(whole), summaryOf(parts), a.Name)
			for _, f := range frames {
				raw, err := json.Marshal(f)
				require.NoError(t, err)
				require.True(t, utf8.Valid(raw))
			}
		}
	})
}
