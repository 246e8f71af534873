package template

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScan(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want []Piece
	}{
		"nothing": {"", nil},
		"text":    {"a\nb", []Piece{{Text: "a\nb", Line: 1}}},
		"a placeholder": {"a\n{{n}}b", []Piece{{Text: "a\n", Line: 1}, {Text: "{{n}}", Name: "n", Line: 2},
			{Text: "b", Line: 2}}},
		"spaces":    {"{{ with.a-b }}", []Piece{{Text: "{{ with.a-b }}", Name: "with.a-b", Line: 1}}},
		"an escape": {`a \{{n}} b`, []Piece{{Text: "a ", Line: 1}, {Text: "{{n}}", Line: 1}, {Text: " b", Line: 1}}},
		"no name":   {"{{}} {{1}} {{a b}} {a}", []Piece{{Text: "{{}} {{1}} {{a b}} {a}", Line: 1}}},
		"three braces": {"{{{n}}}", []Piece{{Text: "{", Line: 1}, {Text: "{{n}}", Name: "n", Line: 1},
			{Text: "}", Line: 1}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Scan(c.src)) })
	}
}

func TestCheckKnowsTheRolesWords(t *testing.T) {
	require.Empty(t, Check("{{with.focus}}", []string{"focus"}))
	require.Empty(t, Check("{{with.focus}}", nil))
	problems := Check("a\n\n{{with.focus}}", []string{})
	require.Equal(t, []Problem{{3,
		"{{with.focus}} has no value; write with: {focus: ...} in the role, or drop it here"}}, problems)
}

func TestPlacedListsPartsInTheirOrder(t *testing.T) {
	require.Equal(t, []string{"references", "files"},
		Placed(`{{files}} {{n}} \{{notes}} {{references}} {{files}} {{feedback}}`))
	require.Empty(t, Placed("{{n}}"))
}

func FuzzScan(f *testing.F) {
	f.Add(`a {{n}} \{{set}} {{ with.x }}`)
	f.Fuzz(func(t *testing.T, src string) {
		var b strings.Builder
		for _, p := range Scan(src) {
			b.WriteString(p.Text)
		}
		if !strings.Contains(src, `\{{`) && b.String() != src {
			t.Fatalf("%q became %q", src, b.String())
		}
	})
}

func TestCheckNamesUnknownPlaceholders(t *testing.T) {
	require.Empty(t, Check("{{content}} {{with.any}} {{n}} \\{{x}} {{feedback}}", nil))
	problems := Check("a\n{{refs}}\n\n{{tasks}}", nil)
	require.Len(t, problems, 2)
	require.Equal(t, 2, problems[0].Line)
	require.Contains(t, problems[0].What, "{{refs}} is not a placeholder; write one of {{context}}, {{references}}, ")
	require.Equal(t, 4, problems[1].Line)
}
