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

func TestUnknownPlaceholders(t *testing.T) {
	require.Empty(t, Unknown("{{content}} {{with.any}} {{n}} \\{{x}} {{feedback}}", nil, Reserved()))
	require.Equal(t, []Piece{{Text: "{{refs}}", Name: "refs", Line: 2}, {Text: "{{ tasks }}", Name: "tasks", Line: 4}},
		Unknown("a\n{{refs}}\n\n{{ tasks }}{{area}}", nil, []string{"area"}))
	require.Empty(t, Unknown("{{with.focus}}", []string{"focus"}, nil))
	require.Len(t, Unknown("a\n\n{{with.focus}}", []string{}, nil), 1)
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
